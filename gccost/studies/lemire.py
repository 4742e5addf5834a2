"""Lemire: a finalizer compared with a manual free."""

from __future__ import annotations

from gccost.costs.stacks import CALLING_C
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio, Share
from gccost.judging.rules import Between, Effect, Same

CASES = """
    tiny AllocateFree|AllocateDefer|AllocateHeapFree|AllocateAuto|AllocateDummy/go=document|today
    tiny AllocateFree|AllocateAuto/gogc=off/go=document|today
    tiny AllocateAuto/profile=cpu/go=document|today
    tiny AllocateCleanup/go=today
    tiny AllocateFree|AllocateAuto/control=relinked/go=today
"""

_TIMES = Ratio("AllocateAuto", "AllocateFree")
_ALL_OFF = Ratio("AllocateAuto/gogc=off", "AllocateFree/gogc=off")
_PROFILE = Share("AllocateAuto/profile=cpu", CALLING_C)
CLAIMS: tuple[Claim, ...] = (
    Claim("L1", "ten-times-as-expensive", _TIMES, Effect(), headline=True),
    Claim("L2a", "with-the-gc-off", Ratio("AllocateAuto/gogc=off", "AllocateAuto"), Same()),
    Claim("L2b", "with-the-gc-off", _ALL_OFF, Effect()),
    Claim("L3", "the-profile", _PROFILE, Between(low=0.5), system="macOS"),
    Claim("L4", "a-finalizer-that-does-nothing", Ratio("AllocateDummy", "AllocateAuto"), Same()),
)


STUDY = Study(
    name="lemire",
    chapter="01-lemire",
    question="Is a finalizer ten times as expensive as a manual free?",
    cases=CASES,
    claims=CLAIMS,
)
