"""What finalizers and cleanups cost in libraries that people use, and in a server."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.cases.versions import TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import PhaseShare
from gccost.judging.rules import AtMost

# In the library's own way finalizers or cleanups free. LateClosed shows what it costs that SQLite's
# statements are freed later, without finalizers: it closes them, but only when so many are open.
# The profiles measured at every budget are of what most programs do, and decide the claims.
CASES = """
    quick SqliteDropped|SqliteClosed/go=today
    quick SqliteLateClosed/waiting=30|300|3000/go=today
    quick SqliteDropped/profile=cpu/go=today
    tiny SqliteQuery/profile=cpu/go=today
    quick TreesDropped|TreesSlab|TreesClosed/go=today
    standard TreesDropped/gogc=10|50/go=today
    standard TreesDropped/gomemlimit=8MiB|16MiB/go=today
    tiny TreesDropped/profile=cpu/go=today
    quick MessagesDropped|MessagesSlab|MessagesReused|MessagesClosed/go=today
    tiny MessagesDropped/profile=cpu/go=today
    tiny Server/profile=cpu/go=today
    quick TreesNative|TreesNativeClosed/go=today
    quick TreesNative/profile=cpu/go=today
    quick MessagesNative|MessagesNativeClosed/go=today
    quick MessagesNative/profile=cpu/go=today
"""
JUDGED = ("SqliteQuery", "TreesDropped", "MessagesDropped", "Server")


def _claims() -> Iterator[Claim]:
    for letter, judged in zip("abcd", JUDGED, strict=True):
        share = PhaseShare(f"{judged}/profile=cpu", ("registering",))
        yield Claim(f"X13{letter}", "the-share-of-the-time", share, AtMost(), (TODAY_GO,))


STUDY = Study(
    name="libraries",
    report="standard",
    chapter="10-in-real-programs",
    question="What do finalizers and cleanups cost in libraries that people use?",
    cases=CASES,
    document=TODAY_GO,
    claims=tuple(_claims()),
)
