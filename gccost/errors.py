"""The errors that a user meets: each names the thing, the place and the mend."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess


class GccostError(Exception):
    """Something that the user can mend.

    `thing` says what is wrong, `place` where (a file and line, a tool, an
    experiment), `mend` what to do about it, if possible as a command.
    """

    def __init__(self, thing: str, place: str = "", mend: str = "") -> None:
        super().__init__(thing, place, mend)
        self.thing = thing
        self.place = place
        self.mend = mend

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        mend = f". To mend it: {self.mend}" if self.mend else ""
        return f"{where}{self.thing}{mend}"


class MissingTool(GccostError):
    """A compiler, toolchain or runtime that is not on this machine."""


class DiskFull(GccostError):
    """A write that found no room: on the disk, in a quota, below a limit on files' size.

    Not the fault of what was written or built: it ends what is being done, and there is
    nothing to keep of it, as the same goes well once there is room.
    """


_FREE = "and start again: what was measured is kept"
_WRITABLE = "make it writable, or name another folder (GCCOST_RUNS for runs, GCCOST_REPORT)"
_MENDS = {
    errno.ENOSPC: f"free some disk space {_FREE}",
    errno.EDQUOT: f"free some of your quota {_FREE}",
    errno.EFBIG: f"raise the limit on the size of files (ulimit -f) {_FREE}",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENOMEM: f"free some memory {_FREE}",
    errno.EROFS: _WRITABLE,
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EEXIST: "move away what is in its place",
    errno.ENOTDIR: "move away what is in its place",
    errno.EISDIR: "move away what is in its place",
}


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def refused(error: OSError, thing: str = "", place: str = "") -> GccostError:
    """What the system refused, with the mend where there is one; DiskFull for want of room."""
    thing = thing or error.strerror or str(error)
    kind = DiskFull if error.errno in _NO_ROOM else GccostError
    return kind(thing, place or str(error.filename or ""), _MENDS.get(error.errno or 0, ""))


def no_room(said: str, doing: str, folders: Iterable[Path]) -> DiskFull | None:
    """What a program that failed printed, as a DiskFull; None if it did not fail by that.

    `doing` says what it was for, `folders` where it writes to. The place named is the one
    of these that it printed, else the path that it printed, else where there is least room.
    """
    for number in _NO_ROOM:
        words = os.strerror(number)
        if not re.search(words, said, re.IGNORECASE):
            continue
        known = list(folders)
        path = re.search(rf"(?:^|[\s'\"(])(/[^:\n]+): {words}", said, re.IGNORECASE | re.MULTILINE)
        where = Path(path[1]) if path else min(known, key=_room)
        where = next((folder for folder in known if where.is_relative_to(folder)), where)
        return DiskFull(f"cannot be written: {words} ({doing})", str(where), _MENDS[number])
    return None


def failed_build(
    done: CompletedProcess[str], place: str, mend: str, folders: Iterable[Path]
) -> GccostError:
    """A build that failed, with what it printed; DiskFull for want of room in its folders."""
    if full := no_room(done.stderr + done.stdout, f"building {place}", folders):
        return full
    said = (done.stderr or done.stdout).strip()
    return GccostError(f"the build failed:\n{said}", place, mend)


def _room(folder: Path) -> float:
    """The bytes that are free where a folder lies, or will lie."""
    for above in (folder, *folder.parents):
        with suppress(OSError):
            return shutil.disk_usage(above).free
    return float("inf")
