"""Writing files so that a full disk, or an end at any moment, spoils none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gccost.errors import refused


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a disk refuses into an error that names the file and the mend."""
    try:
        yield
    except OSError as error:
        raise refused(error, f"cannot be written: {error.strerror}", str(path)) from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it holds all of the data or, if that fails, what it held before.

    Its folder is made if need be. It is safely on disk when this returns: a
    machine that loses power does not leave half of it either.
    """
    new = path.with_name(f".{path.name}.new")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with new.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
