"""What a wrapper of a C library pays for each way to free its blocks: the first page's table."""

from __future__ import annotations

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import Shown
from gccost.measuring.toolchains import TODAY_GO

CASES = """
    tiny HandleFree/go=today
    tiny HandleFinalizer/bytes=8|64/go=today
    tiny HandleCleanup/bytes=8|64/go=today
    tiny HandleAdopted|HandleAdoptedClose/go=today
    tiny AllocateFree|AllocateAuto/go=today
    tiny Slab/handles=64/go=today
"""

_SETTLED = "settled_ns"
_WAYS = (
    *("HandleAdoptedClose", "HandleAdopted"),
    *(f"Handle{kind}/bytes={size}" for kind in ("Cleanup", "Finalizer") for size in (8, 64)),
)
_SLABS = Ratio("Slab/handles=64", "AllocateAuto", _SETTLED)
_QUESTION = Shown("an open question, which chapter 8 answers in words")
CLAIMS = (Claim("L6", "the-cost", _SLABS, _QUESTION, (TODAY_GO,)),)


STUDY = Study(
    name="prices",
    chapter="08-instead",
    question="What does a wrapper of a C library pay?",
    cases=CASES,
    document=TODAY_GO,
    claims=CLAIMS,
    figures=tuple(Ratio(way, "HandleFree", _SETTLED) for way in _WAYS),
    metric=_SETTLED,
)
