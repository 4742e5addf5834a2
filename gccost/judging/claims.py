"""The claims: what is compared with each published figure, and the rule that judges it.

A claim's words and its published figure stand in data/published/claims.csv; here
stands, as data, the quantity that tests it and the rule. To add a claim is to
add its row there and its entry here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from gccost.measuring.experiments import AUTO, FREE, LOADS, Arm, Ratio, independent
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO
from gccost.stats import Estimate

BAND = 1.25  # a figure within this factor of the published one is the same figure


class Label(Enum):
    """What can be said of a claim."""

    HOLDS = "holds"
    STRONGER = "holds, stronger"
    WEAKER = "holds, weaker"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNMEASURED = "not measured"
    UNTESTABLE = "cannot be tested on this machine"

    @property
    def decided(self) -> bool:
        return self in (Label.HOLDS, Label.STRONGER, Label.WEAKER, Label.FAILS)


@dataclass(frozen=True)
class Verdict:
    """A label, with the reason in a few words."""

    label: Label
    reason: str = ""
    factor: float = math.nan  # measured over published

    def __str__(self) -> str:
        return self.label.value


@dataclass(frozen=True)
class Banded:
    """A figure that says on which side of `pivot` something lies, and how far.

    A ratio says "dearer" or "cheaper" (pivot 1), a share "most of it" (pivot a
    half). It holds within the band around the published figure, and holds
    stronger or weaker on the same side of the pivot outside it.
    """

    pivot: float = 1.0

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is the A/A noise floor as a log ratio."""
        low, high, factor = measured.low, measured.high, measured.value / published
        above = published > self.pivot
        noise = math.exp(floor)
        # A floor as wide as the band says that the machine was too noisy, not that
        # there is no difference.
        if noise < BAND and self.pivot / noise <= low and high <= self.pivot * noise:
            return Verdict(Label.FAILS, "no difference beyond the noise floor", factor)
        if (high <= self.pivot) if above else (low >= self.pivot):
            other = f"it is {'less' if above else 'more'} than {self.pivot:g}"
            return Verdict(Label.FAILS, other, factor)
        if published / BAND <= low and high <= published * BAND:
            return Verdict(Label.HOLDS, "within the band of the published figure", factor)
        same_side = low > self.pivot if above else high < self.pivot
        if same_side and (low > published * BAND or high < published / BAND):
            further = (low > published) == above
            label = Label.STRONGER if further else Label.WEAKER
            return Verdict(label, "on the same side, outside the band", factor)
        reason = "it holds, how far is undecided" if same_side else "even the side is undecided"
        return Verdict(Label.UNDECIDED, reason, factor)


@dataclass(frozen=True)
class Same:
    """Two things that are said to cost the same: their ratio is 1 within the band."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used, the band is wider."""
        low, high, factor = measured.low, measured.high, measured.value / published
        if published / BAND <= low and high <= published * BAND:
            return Verdict(Label.HOLDS, "the same within the band", factor)
        if low > published * BAND or high < published / BAND:
            return Verdict(Label.FAILS, "they differ by more than the band", factor)
        return Verdict(Label.UNDECIDED, "the interval straddles the band's edge", factor)


@dataclass(frozen=True)
class Share:
    """The share of an arm's CPU profile whose stacks hold any of these functions."""

    arm: Arm  # with profile="cpu"
    functions: tuple[str, ...]


@dataclass(frozen=True)
class Agreement:
    """How far independent measurements lie apart: of each group the largest over the smallest.

    Its estimate is the widest group's, with the least chance, over the groups,
    of such differences between measurements of one thing.
    """

    groups: tuple[tuple[Ratio, ...], ...]


@dataclass(frozen=True, slots=True)
class Spread(Estimate):
    """The estimate of an Agreement; `chance` is the p of the heterogeneity test."""

    chance: float


@dataclass(frozen=True)
class Agrees:
    """Measurements that lie within the published factor, and differ no more than by chance."""

    chance: float = 0.01

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge a Spread; `floor` is not used."""
        assert isinstance(measured, Spread)
        factor = measured.value / published
        if measured.value > published:
            return Verdict(Label.FAILS, "they lie further apart", factor)
        if measured.chance <= self.chance:
            return Verdict(Label.FAILS, "they differ by more than their intervals say", factor)
        return Verdict(Label.HOLDS, "they lie within it and agree", factor)


Quantity = Ratio | Share | Agreement
Rule = Banded | Same | Agrees


@dataclass(frozen=True)
class Claim:
    """How a published claim is tested: on what, by which quantity and rule."""

    id: str
    experiment: str
    anchor: str  # the heading of the chapter that shows it
    quantity: Quantity
    rule: Rule
    beside: Quantity | None = None  # the same for precision; shown, not judged
    releases: tuple[str, ...] = (DOCUMENT_GO, TODAY_GO)


def _precise(benchmark: str, gogc: str = "100") -> Arm:
    return Arm(benchmark, gogc=gogc, setting="precise")


CLAIMS: Mapping[str, Claim] = MappingProxyType(
    {
        claim.id: claim
        for claim in (
            Claim(
                "L1",
                experiment="lemire",
                anchor="ten-times-dearer",
                quantity=Ratio(AUTO, FREE),
                rule=Banded(),
                beside=Ratio(_precise("AllocateAuto"), _precise("AllocateFree"), "cpu-ns/op"),
            ),
            Claim(
                "L2",
                experiment="lemire",
                anchor="with-the-gc-off",
                quantity=Ratio(Arm("AllocateAuto", gogc="off"), Arm("AllocateFree", gogc="off")),
                rule=Banded(),
                beside=Ratio(
                    _precise("AllocateAuto", "off"), _precise("AllocateFree", "off"), "cpu-ns/op"
                ),
            ),
            Claim(
                "L3",
                experiment="lemire",
                anchor="the-profile",
                quantity=Share(Arm("AllocateAuto", profile="cpu"), ("runtime.cgocall",)),
                rule=Banded(pivot=0.5),
            ),
            Claim(
                "L4",
                experiment="lemire",
                anchor="a-finalizer-that-does-nothing",
                quantity=Ratio(Arm("AllocateDummy"), AUTO),
                rule=Same(),
            ),
            Claim(
                "X9",
                experiment="precision",
                anchor="the-same-again",
                quantity=Agreement(
                    tuple(
                        independent(benchmark, "rounds", load)
                        for benchmark in ("AllocateAuto", "AllocateCleanup")
                        for load in LOADS
                    )
                ),
                rule=Agrees(),
                releases=(TODAY_GO,),
            ),
        )
    }
)
