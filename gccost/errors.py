"""Errors shown to the user: each has a message, a location and a hint."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from subprocess import CompletedProcess


class GccostError(Exception):
    """A problem that the user can fix.

    `message` says what is wrong, `location` where (a file and line, a tool, a study),
    and `hint` how to fix it, if possible as a command. A command that it ends exits with
    `exit_code`.
    """

    exit_code = 1

    def __init__(self, message: str, location: str = "", hint: str = "") -> None:
        super().__init__(message, location, hint)
        self.message = message
        self.location = location
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        hint = f". To fix it: {self.hint}" if self.hint else ""
        return f"{where}{self.message}{hint}"


class MissingTool(GccostError):
    """A compiler, toolchain or runtime is missing on this machine."""


_FEW = 24  # names that a hint lists


def nearest(name: object, known: Iterable[object]) -> str:
    """A hint with the known names that are like an unknown one; the nearest comes first.

    It has all of them if they are few, or numbers; it is empty if none is like it.
    """
    names = {str(each).lower(): str(each) for each in known}
    asked = str(name).lower()
    begun = [each for each in names if asked and each.startswith(asked)]
    close = begun[:3] or get_close_matches(asked, names, n=3, cutoff=0.5)
    if len(names) <= _FEW or not isinstance(name, str):
        close += names
    found = [names[each] for each in dict.fromkeys(close)]
    suggestions = [repr(each) if "," in each else each for each in found]
    return f"name one of {', '.join(suggestions)}" if suggestions else ""


def expect(known: Iterable[object], name: object, kind: str, where: str = "") -> None:
    """Raise GccostError, naming the nearest, for a name that is unknown."""
    names = list(known)
    if name not in names:
        raise GccostError(f"there is no {kind} {name!r}", where, nearest(name, names))


class DiskFull(GccostError):
    """A write failed because of a full disk, a quota, or a limit on the size of files.

    The failure is not recorded, because the same write succeeds once there is room.
    """


_RETRY = "and start again; completed samples are saved"
_WRITABLE = "make it writable, or name another folder (GCCOST_RUNS for runs, GCCOST_REPORT)"
_IN_THE_WAY = "move the file or folder that is in its place"
_HINTS = {
    errno.ENOSPC: f"free some disk space {_RETRY}",
    errno.EDQUOT: f"free some of your quota {_RETRY}",
    errno.EFBIG: f"raise the limit on the size of files (ulimit -f) {_RETRY}",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENOMEM: f"free some memory {_RETRY}",
    errno.EROFS: _WRITABLE,
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EISDIR: _IN_THE_WAY,
}
LEAST_ROOM = 64  # MiB; a build that fails with less may only lack room
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def refused(error: OSError, message: str = "", location: str = "") -> GccostError:
    """A GccostError for an OSError, with a hint if there is one; DiskFull for lack of room."""
    kind = DiskFull if error.errno in _NO_ROOM else GccostError
    return kind(
        message or error.strerror or str(error),
        location or str(error.filename or ""),
        _HINTS.get(error.errno or 0, ""),
    )


def failed_build(
    done: CompletedProcess[str], location: str, hint: str, folders: Iterable[Path]
) -> GccostError:
    """An error for a failed build, with its output; DiskFull if a folder's disk is nearly full."""
    said = (done.stderr or done.stdout).strip()
    for folder in filter(Path.exists, folders):
        free = shutil.disk_usage(folder).free >> 20
        if free < LEAST_ROOM:
            why = f"{free} MiB are free on the disk of {folder}, and the build failed:\n{said}"
            return DiskFull(why, location, _HINTS[errno.ENOSPC])
    return GccostError(f"the build failed:\n{said}", location, hint)
