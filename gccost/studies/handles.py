"""The size of a handle, and the cost of its finalizer or cleanup."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.cases.versions import ISSUE_GO, TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Difference, Ratio
from gccost.judging.rules import AtLeast, AtMost, WithinTolerance

# Sizes of a handle are in bytes. With the GC off a cleanup is only registered: the objects that
# AddCleanup itself allocates lie in the spans of handles of 8 and 16 bytes, unless the handle has
# no pointer.
CASES = """
    standard HandleFree/go=document|issue|today
    standard HandleFinalizer/bytes=8|16|24|32|48|64|128|256|1024/go=document|issue|today
    standard HandleCleanup/bytes=8|16|24|32|48|64|128|256|1024/go=issue|today
    tiny HandleFinalizer/bytes=8|16|64/go=today
    tiny HandleCleanup/bytes=8|16|64/go=today
    quick HandleCleanupUnshared/go=issue|today
    quick HandleCleanup/bytes=8|16|24|32|48|64/gogc=off/go=issue|today
    standard HandleLivesFinalizer|HandleLivesCleanup/live=1000|100000/bytes=8|16|64/go=today
"""


_SETTLED, _TODAY = "settled_ns", (TODAY_GO,)


def _claims() -> Iterator[Claim]:
    size, issue = "use-a-larger-handle-first", (ISSUE_GO, TODAY_GO)
    word = Ratio("HandleFinalizer/bytes=8", "HandleFinalizer/bytes=16", _SETTLED)
    yield Claim("X16a", size, word, AtLeast())
    larger = Ratio("HandleCleanup/bytes=8", "HandleCleanup/bytes=64", _SETTLED)
    yield Claim("X16b", size, larger, AtLeast(), issue)
    held = Amount("HandleLivesFinalizer/bytes=16/live=100000", "c_held_per_live")
    yield Claim("X16c", size, held, AtMost(), _TODAY)
    shared = "08a-details#what-addcleanup-allocates-itself"
    alone = Ratio("HandleCleanupUnshared", "HandleCleanup/bytes=16/gogc=off")
    yield Claim("X16e", shared, alone, AtLeast(), _TODAY)
    which = "cleanup-or-finalizer"
    # What Go's guide says of cleanups, by size.
    for claim, bytes_ in (("X19a", 8), ("X19b", 24), ("X19c", 64)):
        cleanup, finalizer = f"HandleCleanup/bytes={bytes_}", f"HandleFinalizer/bytes={bytes_}"
        yield Claim(claim, which, Ratio(cleanup, finalizer, _SETTLED), AtMost(), _TODAY)
    live = "bytes=64/live=100000"
    many = Ratio(f"HandleLivesCleanup/{live}", f"HandleLivesFinalizer/{live}", _SETTLED)
    yield Claim("X19d", which, many, AtMost(), _TODAY)
    cycles = Difference("UntilFreeFinalizer", "UntilFreeCleanup", "gc_cycles_to_free")
    yield Claim("X19e", which, cycles, WithinTolerance(), _TODAY)


STUDY = Study(
    name="handles",
    report="standard",
    chapter="08-instead",
    question="What does a larger handle save?",
    cases=CASES,
    document=TODAY_GO,
    claims=tuple(_claims()),
)
