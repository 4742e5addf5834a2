"""The size of a handle and the cost of its finalizer or cleanup; and prices for wrappers."""

from __future__ import annotations

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Ratio
from gccost.judging.rules import AtLeast, AtMost
from gccost.measuring.toolchains import ISSUE_GO, TODAY_GO

# Sizes of a handle are in bytes. With the GC off a cleanup is only registered: the objects that
# AddCleanup itself allocates lie in the spans of handles of 8 and 16 bytes, unless the handle has
# no pointer.
CASES = """
    standard HandleFree/go=document|issue
    tiny HandleFree/go=today
    standard HandleFinalizer/bytes=8|16|24|32|48|64|128|256|1024/go=document|issue|today
    standard HandleCleanup/bytes=8|16|24|32|48|64|128|256|1024/go=issue|today
    tiny HandleFinalizer/bytes=8|16|64/go=today
    tiny HandleCleanup/bytes=8|16|64/go=today
    tiny HandleAdopted|HandleAdoptedClose/go=today
    quick HandleCleanupUnshared/go=issue|today
    quick HandleCleanup/bytes=8|16|24|32|48|64/gogc=off/go=issue|today
    standard HandleLivesFree|HandleLivesAdopted/live=1000|100000/go=today
    standard HandleLivesFinalizer/live=1000|100000/bytes=8|16|64/go=today
    standard HandleLivesCleanup/live=1000|100000/bytes=8|16|64/go=today
    standard HandleSharedFree|HandleSharedAdopted/goroutines=1|2/go=today
    standard HandleSharedFinalizer/goroutines=1|2/bytes=8|16|64/go=today
    standard HandleSharedCleanup/goroutines=1|2/bytes=8|16|64/go=today
"""


def _settled(over: str, under: str) -> Ratio:
    return Ratio(over, under, "settled_ns")


_WORD = _settled("HandleFinalizer/bytes=8", "HandleFinalizer/bytes=16")
_LARGER = _settled("HandleCleanup/bytes=8", "HandleCleanup/bytes=64")
_HELD = Amount("HandleLivesFinalizer/bytes=16/live=100000", "c_held_per_live")
_SLABS = _settled("HandleFinalizer/bytes=16", "HandleAdopted")
_ALONE = Ratio("HandleCleanupUnshared", "HandleCleanup/bytes=16/gogc=off")
_SIZE = "use-a-larger-handle-first"
_SHARED = "08a-details#why-addcleanup-costs-more-on-24-bytes-than-on-16"
CLAIMS: tuple[Claim, ...] = (
    Claim("X6e", "the-cost", _settled("HandleAdopted", "HandleFree"), AtMost(), (TODAY_GO,)),
    Claim("X16a", _SIZE, _WORD, AtLeast()),
    Claim("X16b", _SIZE, _LARGER, AtLeast(), (ISSUE_GO, TODAY_GO)),
    Claim("X16c", _SIZE, _HELD, AtMost(), (TODAY_GO,)),
    Claim("X16d", _SIZE, _SLABS, AtLeast(), (TODAY_GO,)),
    Claim("X16e", _SHARED, _ALONE, AtLeast(), (TODAY_GO,)),
)

STUDY = Study(
    name="handles",
    report="standard",
    chapter="08-instead",
    question="What does a larger handle save?",
    cases=CASES,
    document=TODAY_GO,
    claims=CLAIMS,
)
