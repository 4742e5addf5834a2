"""Copy a run, a folder or an archive, that came from anywhere: in a process with limits.

    python -IS unpack.py SOURCE INTO

Only the files of a run are copied, and only if they are whole; INTO then has the run's
folder. If not, the exit code is 1, and standard output says why. Reading an archive may take
any amount of memory and time, so this process has little of both. It needs only Python's
standard library, so that it starts quickly.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import resource
import stat
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

MOST_MEMORY, MOST_SECONDS = 320 << 20, 30
MOST_FILES, MOST_BYTES = 20_000, 256 << 20  # a run of all studies has 900 files, 6 MiB
# The most bytes of each kind of file; of compressed ones unpacked.
KINDS = {
    r"run\.json": 2 << 20,
    r"jobs\.csv": 16 << 20,
    r"samples\.txt": 16 << 20,
    r"slices/[\w.,=+-]+\.txt": 4 << 20,
    r"profiles/[\w.,=+-]+\.pb\.gz": 4 << 20,
    r"gctraces/[\w.,=+-]+\.txt\.gz": 4 << 20,
}
FOLDERS = ("", "profiles", "gctraces", "slices")
NAME = re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}(-\d+)?", re.ASCII)
_PIECE = 1 << 20
_MOST = f"{MOST_BYTES >> 20} MiB or {MOST_FILES:,} files"

Entry = tuple[str, str, IO[bytes] | None]  # a name below the run's, a kind, the content


class Refused(Exception):
    """Why a source is refused."""


def of_folder(folder: Path) -> Iterator[Entry]:
    """What a folder holds."""
    for path in sorted(folder.rglob("*")):
        mode, name = path.lstat().st_mode, f"{folder.name}/{path.relative_to(folder).as_posix()}"
        if stat.S_ISREG(mode):
            with path.open("rb") as file:
                yield name, "", file
        else:
            yield name, "a folder" if stat.S_ISDIR(mode) else "a link", None


def of_archive(archive: Path) -> Iterator[Entry]:
    """What an archive holds, read as a stream."""
    with tarfile.open(archive, "r|*") as tar:
        for member in tar:
            if member.isdir():
                yield member.name, "a folder", None
            elif member.isreg() and not member.issparse():
                yield member.name, "", tar.extractfile(member)
            else:
                yield member.name, "a link", None


def copy(entries: Iterator[Entry], into: Path) -> None:
    """Copy entries that are files of one run. Raises Refused."""
    run, left, files = "", MOST_BYTES, 0
    for number, (name, kind, file) in enumerate(entries):
        first, _, rest = name.partition("/")
        run = run or first
        if not NAME.fullmatch(run):
            raise Refused(f"{run!a} is not the name of a run")
        most = next((m for of, m in KINDS.items() if re.fullmatch(of, rest, re.ASCII)), 0)
        folder = kind == "a folder" and rest in FOLDERS
        if first != run or not (folder or (most and file)):
            what = f"{kind} {name if first != run else rest!a}".strip()
            raise Refused(f"it holds {what}, which is not part of a run")
        if number >= MOST_FILES:
            raise Refused(f"it unpacks to more than {_MOST}")
        if file:
            left -= _copy(file, into / run / rest, min(most, left))
            files += 1
    if not files:
        raise Refused("it is empty")


def _copy(file: IO[bytes], target: Path, most: int) -> int:
    """Copy a file of at most so many bytes, and return how many it has."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as copied:
        while piece := file.read(_PIECE):
            copied.write(piece)
            if copied.tell() > most:
                raise Refused(f"{target.name} has more than {most >> 10:,} KiB")
    size = target.stat().st_size
    if target.suffix == ".gz":
        with gzip.open(target) as unpacked:
            try:
                while piece := unpacked.read(_PIECE):
                    size += len(piece)
                    if size > most:
                        raise Refused(f"{target.name} unpacks to more than {most >> 10:,} KiB")
            except Refused:
                raise
            except Exception as error:
                raise Refused(f"{target.name} is damaged: {error}") from None
    return size


def main(source: Path, into: Path) -> int:
    """Copy a source with this process's limits, and say why not; return the exit code.

    It is the error's number if the copy cannot be written.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    try:
        mode = source.stat().st_mode
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            raise Refused("it is neither a folder nor a file")
        copy((of_folder if stat.S_ISDIR(mode) else of_archive)(source), into)
    except Refused as why:
        print(why)
    except FileExistsError as error:
        print(f"it holds {Path(error.filename).name} twice")
    except MemoryError:
        print(f"reading it takes more than {MOST_MEMORY >> 20} MiB of memory")
    except Exception as error:  # an archive can make tarfile raise anything
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return error.errno
        said = getattr(error, "strerror", None)
        kind = "it cannot be read" if said else "it is not an archive of a run"
        print(f"{kind}: {ascii(said or str(error) or type(error).__name__)[1:-1][:200]}")
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(os.path.realpath(sys.argv[1])), Path(sys.argv[2])))
