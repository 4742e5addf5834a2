"""The errors that a user meets: each names the thing, the place and the mend."""

from __future__ import annotations

import errno


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
    """A disk that has no room for what a command writes."""


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


def refused(error: OSError, thing: str = "", place: str = "") -> GccostError:
    """What the system refused, with the mend where there is one."""
    thing = thing or error.strerror or str(error)
    return GccostError(thing, place or str(error.filename or ""), _MENDS.get(error.errno or 0, ""))
