"""The size of a handle, and the cost of its finalizer or cleanup."""

from __future__ import annotations

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


def _settled(over: str, under: str) -> Ratio:
    return Ratio(over, under, "settled_ns")


_WORD = _settled("HandleFinalizer/bytes=8", "HandleFinalizer/bytes=16")
_LARGER = _settled("HandleCleanup/bytes=8", "HandleCleanup/bytes=64")
_HELD = Amount("HandleLivesFinalizer/bytes=16/live=100000", "c_held_per_live")
_ALONE = Ratio("HandleCleanupUnshared", "HandleCleanup/bytes=16/gogc=off")
_CYCLES = Difference("UntilFreeFinalizer", "UntilFreeCleanup", "gc_cycles_to_free")
_SIZE, _WHICH = "use-a-larger-handle-first", "cleanup-or-finalizer"
_SHARED = "08a-details#what-addcleanup-allocates-itself"
# What Go's guide says of cleanups, by size: X19a to X19c.
_GUIDE = {
    claim: _settled(f"HandleCleanup/bytes={size}", f"HandleFinalizer/bytes={size}")
    for claim, size in (("X19a", 8), ("X19b", 24), ("X19c", 64))
}
_LIVE = "bytes=64/live=100000"
_MANY = _settled(f"HandleLivesCleanup/{_LIVE}", f"HandleLivesFinalizer/{_LIVE}")
CLAIMS: tuple[Claim, ...] = (
    Claim("X16a", _SIZE, _WORD, AtLeast()),
    Claim("X16b", _SIZE, _LARGER, AtLeast(), (ISSUE_GO, TODAY_GO)),
    Claim("X16c", _SIZE, _HELD, AtMost(), (TODAY_GO,)),
    Claim("X16e", _SHARED, _ALONE, AtLeast(), (TODAY_GO,)),
    *(Claim(id, _WHICH, ratio, AtMost(), (TODAY_GO,)) for id, ratio in _GUIDE.items()),
    Claim("X19d", _WHICH, _MANY, AtMost(), (TODAY_GO,)),
    Claim("X19e", _WHICH, _CYCLES, WithinTolerance(), (TODAY_GO,)),
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
