"""The claims: what is compared with each published figure, and the rule that judges it.

A claim's words and its published figure stand in data/published/claims.csv; here
stands, as data, the quantity that tests it and the rule. To add a claim is to
add its row there and its entry here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

from gccost.measuring.experiments import (
    AUTO,
    CLEANUP,
    DEFER,
    FREE,
    LOADS,
    SIZES,
    SURVIVORS,
    Arm,
    Ratio,
    independent,
    living,
    profiled,
    sized,
    slabs,
    until_free,
)
from gccost.measuring.toolchains import CLEANUP_GO, DOCUMENT_GO, ISSUE_GO, TODAY_GO
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
    """The share of an arm's CPU profile whose stacks hold any of these functions.

    Where `within` is given the stacks must hold any of those too; where `of` is
    given, the share is of the stacks that hold any of those.
    """

    arm: Arm  # with profile="cpu"
    functions: tuple[str, ...]
    within: tuple[str, ...] = ()
    of: tuple[str, ...] = ()

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return (self.arm,)


@dataclass(frozen=True)
class Amount:
    """How much of a metric an arm shows: a count, say."""

    arm: Arm
    metric: str

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return (self.arm,)


@dataclass(frozen=True)
class Difference:
    """What a ratio's numerator shows more than its denominator, in the metric's unit."""

    ratio: Ratio

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return self.ratio.arms


@dataclass(frozen=True)
class Dip:
    """How deep a curve dips: its first point over its least.

    A point is what a ratio's numerator takes more than its denominator.
    """

    curve: tuple[Ratio, ...]

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return tuple(arm for ratio in self.curve for arm in ratio.arms)


@dataclass(frozen=True, slots=True)
class Valley(Estimate):
    """The estimate of a Dip: the first point over the least; and the last point's interval."""

    last_low: float
    last_high: float
    least: int  # the place of the least point on the curve


@dataclass(frozen=True)
class Agreement:
    """How far independent measurements lie apart: of each group the largest over the smallest.

    Its estimate is the widest group's, with the least chance, over the groups,
    of such differences between measurements of one thing.
    """

    groups: tuple[tuple[Ratio, ...], ...]

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return tuple(arm for group in self.groups for ratio in group for arm in ratio.arms)


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


@dataclass(frozen=True)
class About:
    """A figure that takes no side: it is the published one within the band, or it is not."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used."""
        low, high, factor = measured.low, measured.high, measured.value / published
        if published / BAND <= low and high <= published * BAND:
            return Verdict(Label.HOLDS, "within the band of the published figure", factor)
        if low > published * BAND or high < published / BAND:
            more = "more" if measured.value > published else "less"
            return Verdict(Label.FAILS, f"it is {more}, outside the band", factor)
        return Verdict(Label.UNDECIDED, "the interval straddles the band's edge", factor)


@dataclass(frozen=True)
class AtLeast:
    """A figure that was published as a bound: "over half"."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used."""
        factor = measured.value / published
        if measured.low > published:
            return Verdict(Label.HOLDS, "all of the interval is over it", factor)
        if measured.high < published:
            return Verdict(Label.FAILS, "all of the interval is under it", factor)
        return Verdict(Label.UNDECIDED, "the interval holds the bound", factor)


@dataclass(frozen=True)
class AtMost:
    """A figure that was set as a bar not to be passed."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used."""
        factor = measured.value / published
        if measured.high <= published:
            return Verdict(Label.HOLDS, "all of the interval is under it", factor)
        if measured.low > published:
            return Verdict(Label.FAILS, "all of the interval is over it", factor)
        return Verdict(Label.UNDECIDED, "the interval holds the bar", factor)


@dataclass(frozen=True)
class Exactly:
    """A whole number, to be hit within a tenth."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used."""
        factor = measured.value / published
        if published - 0.1 <= measured.low and measured.high <= published + 0.1:
            return Verdict(Label.HOLDS, "exactly so", factor)
        if measured.low > published + 0.1 or measured.high < published - 0.1:
            return Verdict(Label.FAILS, "another number", factor)
        return Verdict(Label.UNDECIDED, "it is not always the same number", factor)


@dataclass(frozen=True)
class UShaped:
    """A curve whose both ends lie above its least point; then, how deep it dips."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge a Valley; `floor` is not used."""
        assert isinstance(measured, Valley)
        factor = measured.value / published
        if measured.high < 1 or measured.last_high < 1 or measured.least == 0:
            return Verdict(Label.FAILS, "it is least at an end", factor)
        if measured.low <= 1 or measured.last_low <= 1:
            return Verdict(Label.UNDECIDED, "whether both ends rise is undecided", factor)
        return Banded().judge(measured, published, floor=0.0)


Quantity = Ratio | Share | Agreement | Amount | Difference | Dip
Rule = Banded | Same | Agrees | About | AtLeast | AtMost | Exactly | UShaped


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


# --- How the stacks of a CPU profile are sorted --------------------------------
#
# A share is that of the stacks that hold any of the functions anywhere, so shares
# overlap and need not add up. Names changed between releases; all are listed.

SETTING = ("runtime.SetFinalizer",)
LINKING_IN = ("runtime.addspecial",)
SPLICE_POINT = ("runtime.(*mspan).specialFindSplicePoint",)
# What a stack holds that is there because the program allocates.
# From Go 1.27 on the compiler calls a variant for the object's size by itself.
ALLOCATING = ("runtime.mallocgc*", "runtime.newobject")
SWEEPING = (
    "runtime.(*sweepLocked).sweep",
    "runtime.(*mspan).sweep",
    "runtime.sweepone",
    "runtime.bgsweep",
    "runtime.deductSweepCredit",
)
MARKING = (
    "runtime.gcBgMarkWorker",
    "runtime.gcAssistAlloc",
    "runtime.gcAssistAlloc1",
    "runtime.gcStart",
    "runtime.gcMarkDone",
    "runtime.gcMarkTermination",
    "runtime.gcDrain",
)
# Finding what has a finalizer, queueing it, and calling it.
FINALIZING = (
    "runtime.freeSpecial",
    "runtime.freespecial",
    "runtime.queuefinalizer",
    "runtime.markrootSpans",
    "runtime.gcScanFinalizer",
    "runtime.gcScanCleanup",
    "runtime.runfinq",
    "runtime.runFinalizers",
    "runtime.runCleanups",
)
COLLECTING = (*SWEEPING, *MARKING, *FINALIZING)
LOCKING = ("runtime.lock2", "runtime.unlock2")
CALLING_C = ("runtime.cgocall",)


def _precise(benchmark: str, gogc: str = "100") -> Arm:
    return Arm(benchmark, gogc=gogc, setting="precise")


def _siebenmann() -> Iterator[Claim]:
    claims: tuple[tuple[str, str, Quantity, Rule, Quantity | None], ...] = (
        (
            "S1",
            "the-factor-of-ten",
            Ratio(AUTO, FREE),
            Banded(),
            Ratio(_precise("AllocateAuto"), _precise("AllocateFree"), "cpu-ns/op"),
        ),
        (
            "S2",
            "heap-or-stack",
            Difference(Ratio(AUTO, FREE, "allocs/op")),
            Exactly(),
            None,
        ),
        *(
            (
                name,
                "where-the-time-goes",
                Share(profiled("EmptyFinalizer"), functions),
                rule,
                Share(profiled("EmptyFinalizer", "precise"), functions),
            )
            for name, functions, rule in (
                ("S3", SETTING, AtLeast()),
                ("S4", COLLECTING, About()),
                ("S5", FINALIZING, About()),
                ("S6", LOCKING, About()),
            )
        ),
        (
            "S7",
            "two-cycles-or-one",
            Amount(until_free("Finalizer"), "gc-cycles-to-free"),
            Exactly(),
            None,
        ),
        (
            "S8",
            "how-the-size-matters",
            Dip(tuple(Ratio(sized("Finalize", w), sized("Allocate", w)) for w in SIZES)),
            UShaped(),
            None,
        ),
    )
    for name, anchor, quantity, rule, beside in claims:
        yield Claim(name, "siebenmann", anchor, quantity, rule, beside)


def _addcleanup() -> Iterator[Claim]:
    off = replace(CLEANUP, gogc="off")
    free, cleanup, auto = (_precise(b) for b in ("AllocateFree", "AllocateCleanup", "AllocateAuto"))
    claims: tuple[tuple[str, str, Quantity, Rule, Quantity | None], ...] = (
        (
            "M1",
            "five-times-dearer",
            Ratio(CLEANUP, FREE),
            Banded(),
            Ratio(cleanup, free, "cpu-ns/op"),
        ),
        (
            "M2",
            "five-times-dearer",
            Ratio(AUTO, CLEANUP),
            Banded(),
            Ratio(auto, cleanup, "cpu-ns/op"),
        ),
        ("M3", "five-times-dearer", Ratio(DEFER, FREE), Same(), None),
        (
            "M4",
            "five-times-dearer",
            Ratio(CLEANUP, FREE),
            Banded(),
            Ratio(cleanup, free, "cpu-ns/op"),
        ),
        (
            "M5",
            "the-profile",
            Share(
                profiled("AllocateCleanup", gogc="off"),
                SPLICE_POINT,
                of=("gccost/cstr.AllocateCleanup",),
            ),
            AtLeast(),
            None,
        ),
        ("M6", "with-the-gc-off", Ratio(off, CLEANUP), Same(), None),
    )
    for name, anchor, quantity, rule, beside in claims:
        releases = (CLEANUP_GO, ISSUE_GO, TODAY_GO)
        yield Claim(name, "addcleanup", anchor, quantity, rule, beside, releases)


def _remedies() -> Iterator[Claim]:
    def settled(over: Arm) -> tuple[Ratio, Ratio]:
        """An arm against freeing by hand, the rest collected: by the wall and in CPU time."""
        wall, cpu = (Ratio(over, FREE, f"settled-{clock}/op") for clock in ("ns", "cpu-ns"))
        return wall, cpu

    def closing(over: Arm) -> tuple[Ratio, Ratio]:
        """The same in the loop alone, for what is closed by hand there."""
        return Ratio(over, FREE), Ratio(over, FREE, "cpu-ns/op")

    individual, closed = settled(Arm("LastFirst")), settled(slabs("SlabClose"))
    slab, live = settled(slabs("Slab")), closing(living("LiveSlab"))
    stopped = closing(living("LiveCleanup"))
    better = Ratio(slabs("Slab"), AUTO, "settled-ns/op")
    held = Amount(SURVIVORS, "c-held/survivor")
    claims: tuple[tuple[str, str, Quantity, Rule, Quantity | None], ...] = (
        ("L6", "the-cost", better, AtLeast(), None),
        ("X6a", "the-cost", slab[0], AtMost(), slab[1]),
        ("X6b", "the-price-in-memory", held, AtMost(), None),
        ("X6c", "the-cost", individual[0], AtMost(), individual[1]),
        ("X7a", "closed-by-hand", closed[0], AtMost(), closed[1]),
        ("X7b", "closed-by-hand", live[0], AtMost(), live[1]),
        ("X8", "closed-by-hand", stopped[0], AtLeast(), stopped[1]),
    )
    for name, anchor, quantity, rule, beside in claims:
        yield Claim(name, "remedies", anchor, quantity, rule, beside, (TODAY_GO,))


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
            *_siebenmann(),
            *_addcleanup(),
            *_remedies(),
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
