"""Writing files so that a full disk, or an end at any moment, spoils none."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

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


def make_once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Have `fill` make a folder that does not exist yet; returns the folder.

    It is complete or absent: `fill` gets a path beside it, which is renamed at the end, and
    what a killed process left there is removed first. Other processes wait meanwhile.
    """
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f"{folder.name}.partial")
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
            try:
                fill(partial)
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


def hash_of(paths: Iterable[Path], root: Path) -> str:
    """A SHA-256 over files, in order: their names below `root`, and their content; hex."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
