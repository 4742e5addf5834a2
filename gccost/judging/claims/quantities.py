"""The quantities that test a claim, and the estimates that are more than an interval."""

from __future__ import annotations

from dataclasses import dataclass

from gccost.measuring.experiments.base import Arm, Ratio
from gccost.stats import Estimate


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
class Places:
    """At how many places one arm shows a thing (died, leaked) that no other shows there.

    `shown` has an arm a place, and each of `others` has one for each of the same
    places. A metric over 0 in any sample is the thing.
    """

    metric: str
    shown: tuple[Arm, ...]
    others: tuple[tuple[Arm, ...], ...]

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return self.shown + tuple(arm for other in self.others for arm in other)


@dataclass(frozen=True, slots=True)
class Tally(Estimate):
    """The estimate of Places: a count, so it has no width."""

    looked_at: int  # places with samples of every arm
    elsewhere: int  # places at which another arm shows the thing


@dataclass(frozen=True)
class TwoBaselines:
    """Two ratios that ought to be one: over the one baseline, and over the other."""

    over: Ratio
    other: Ratio

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return self.over.arms + self.other.arms


@dataclass(frozen=True, slots=True)
class Range(Estimate):
    """The estimate of TwoBaselines: from the lower end of the one to the upper of the other.

    Its value is their geometric mean.
    """

    one: Estimate
    other: Estimate


@dataclass(frozen=True)
class Straightness:
    """How much of what varies a straight line in the list's length explains: its r²."""

    arm: Arm

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return (self.arm,)


@dataclass(frozen=True)
class Steepness:
    """What each record in the list costs a call, over what it costs another."""

    over: Arm
    under: Arm

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return (self.over, self.under)


@dataclass(frozen=True)
class Saved:
    """Of what an arm costs more than a baseline, the share that a change saves."""

    before: Arm
    after: Arm
    baseline: Arm
    metric: str = "ns/op"

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return (self.before, self.after, self.baseline)


Quantity = (
    Ratio
    | Share
    | Agreement
    | Amount
    | Difference
    | Dip
    | Places
    | TwoBaselines
    | Straightness
    | Steepness
    | Saved
)
