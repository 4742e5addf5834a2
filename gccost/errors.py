"""The errors that a user meets: each names the thing, the place and the mend."""

from __future__ import annotations


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
