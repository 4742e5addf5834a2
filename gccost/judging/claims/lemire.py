"""Lemire: L1 to L4."""

from __future__ import annotations

from gccost.judging.claims.base import Claim, precise
from gccost.judging.claims.quantities import Share
from gccost.judging.claims.rules import Banded, Same
from gccost.judging.claims.stacks import CALLING_C
from gccost.measuring.experiments.base import AUTO, FREE, Arm, Ratio, profiled

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "L1",
        experiment="lemire",
        anchor="ten-times-dearer",
        quantity=Ratio(AUTO, FREE),
        rule=Banded(),
        beside=Ratio(precise("AllocateAuto"), precise("AllocateFree"), "cpu-ns/op"),
    ),
    Claim(
        "L2a",
        experiment="lemire",
        anchor="with-the-gc-off",
        quantity=Ratio(Arm("AllocateAuto", gogc="off"), AUTO),
        rule=Same(),
        beside=Ratio(Arm("AllocateAuto", gogc="off"), AUTO, "cpu-ns/op"),
    ),
    Claim(
        "L2b",
        experiment="lemire",
        anchor="with-the-gc-off",
        quantity=Ratio(Arm("AllocateAuto", gogc="off"), Arm("AllocateFree", gogc="off")),
        rule=Banded(),
        beside=Ratio(precise("AllocateAuto", "off"), precise("AllocateFree", "off"), "cpu-ns/op"),
    ),
    Claim(
        "L3",
        experiment="lemire",
        anchor="the-profile",
        quantity=Share(profiled("AllocateAuto"), CALLING_C),
        rule=Banded(pivot=0.5),
    ),
    Claim(
        "L4",
        experiment="lemire",
        anchor="a-finalizer-that-does-nothing",
        quantity=Ratio(Arm("AllocateDummy"), AUTO),
        rule=Same(),
    ),
)
