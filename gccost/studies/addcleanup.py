"""The Go issue on AddCleanup, compared with a manual free and a finalizer, GC on and off."""

from __future__ import annotations

from functools import partial

from gccost.cases.versions import ISSUE_GO, TODAY_GO
from gccost.costs.stacks import SPLICE_POINT
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio, Share
from gccost.judging.rules import AtLeast, Effect, Same

CASES = """
    tiny AllocateFree|AllocateDefer|AllocateCleanup|AllocateAuto/go=issue|today
    tiny AllocateCleanup/gogc=off/go=issue|today
    tiny AllocateCleanup/gogc=off/profile=cpu/go=issue|today
    tiny AllocateOnly/go=issue|today
    tiny AllocateFree|AllocateAuto/control=relinked/go=today
"""

_OFF, _PROFILED = "AllocateCleanup/gogc=off", "AllocateCleanup/gogc=off/profile=cpu"
_ADDING = ("runtime.AddCleanup*",)  # a generic function has its type in its name


def _claims() -> tuple[Claim, ...]:
    claim, times = partial(Claim, releases=(ISSUE_GO, TODAY_GO)), "five-times-as-expensive"
    return (
        claim("M1", times, Ratio("AllocateCleanup", "AllocateFree"), Effect(), headline=True),
        claim("M2", times, Ratio("AllocateAuto", "AllocateCleanup"), Effect(), headline=True),
        claim("M3", times, Ratio("AllocateDefer", "AllocateFree"), Same()),
        claim("M5a", "the-profile", Share(_PROFILED, SPLICE_POINT, of=_ADDING), AtLeast()),
        claim("M6", "with-the-gc-off", Ratio(_OFF, "AllocateCleanup"), Same()),
    )


STUDY = Study(
    name="addcleanup",
    chapter="03-addcleanup",
    question="Does AddCleanup cost five times a manual free, and half a finalizer?",
    cases=CASES,
    document=ISSUE_GO,
    claims=_claims(),
)
