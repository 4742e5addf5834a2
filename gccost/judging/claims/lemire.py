"""Lemire: L1 to L4."""

from __future__ import annotations

from dataclasses import replace

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Share
from gccost.judging.claims.rules import Between, Effect, Same
from gccost.judging.claims.stacks import CALLING_C
from gccost.measuring.experiments.base import AUTO, FREE, Arm, Ratio, profiled

_OFF = replace(AUTO, gogc="off")
CLAIMS: tuple[Claim, ...] = (
    Claim("L1", "lemire", "ten-times-as-expensive", Ratio(AUTO, FREE), Effect(), headline=True),
    Claim("L2a", "lemire", "with-the-gc-off", Ratio(_OFF, AUTO), Same()),
    Claim("L2b", "lemire", "with-the-gc-off", Ratio(_OFF, replace(FREE, gogc="off")), Effect()),
    Claim(
        "L3", "lemire", "the-profile", Share(profiled("AllocateAuto"), CALLING_C), Between(low=0.5)
    ),
    Claim(
        "L4",
        "lemire",
        "a-finalizer-that-does-nothing",
        Ratio(Arm("AllocateDummy"), AUTO),
        Same(),
    ),
)
