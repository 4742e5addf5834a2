"""Atomic file writes: a full disk or a kill at any moment leaves no partial file.

Files of the clone are read here so that a damaged one is named, with what restores it.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from gccost.errors import GccostError, refused


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into a GccostError with the file and a hint."""
    try:
        yield
    except OSError as error:
        raise refused(error, f"cannot be written: {error.strerror or error}", str(path)) from None


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


@contextmanager
def temporary(place: Path) -> Iterator[Path]:
    """An empty folder, removed at the end.

    The next process removes what a killed process left there.
    """
    shutil.rmtree(place, ignore_errors=True)
    with writing(place):
        place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def reading(path: Path, hint: str = "") -> Iterator[None]:
    """Turn what a damaged or missing file raises into a GccostError with the file and a hint.

    Without a hint, the file is one of the clone's.
    """
    try:
        yield
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise GccostError(
            f"the file is damaged or cannot be read: {getattr(error, 'strerror', None) or error}",
            str(path),
            hint or f"restore it: git checkout -- {os.path.relpath(path)}",
        ) from None


def read_text(path: Path, hint: str = "") -> str:
    """A text that ends with a newline. Raises GccostError if the file is damaged."""
    with reading(path, hint):
        text = path.read_bytes().decode()
        if not text.endswith("\n") or "\0" in text:
            raise ValueError("its end is missing" if text else "it is empty")
        return text


def read_table(path: Path, hint: str = "") -> list[dict[str, Any]]:
    """The rows of a CSV file. Raises GccostError if it is damaged."""
    with reading(path, hint):
        rows = csv.reader(io.StringIO(read_text(path, hint), newline=""), strict=True)
        head, *body = [(row, rows.line_num) for row in rows]
        for row, line in body:
            if len(row) != len(head[0]):
                names = ", ".join(head[0])
                raise ValueError(f"line {line} has {len(row)} columns, not {len(head[0])}: {names}")
        return [dict(zip(head[0], row, strict=True)) for row, _ in body]


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
