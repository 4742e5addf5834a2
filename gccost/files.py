"""Atomic file writes: a full disk or a kill at any moment leaves no partial file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from gccost.errors import refused


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into a GccostError with the file and a hint."""
    try:
        yield
    except OSError as error:
        raise refused(error, f"cannot be written: {error.strerror}", str(path)) from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: it has all of the data or, on failure, its previous content.

    Makes the file's folder if needed. The data is synced to disk before this returns, so
    that a power loss leaves no partial file.
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
    """Make a folder with `fill` unless it exists, and return the folder.

    The folder is complete or absent: `fill` gets a temporary path, which is renamed at the
    end. Leftovers of a killed process are removed first. Other processes wait meanwhile.
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
