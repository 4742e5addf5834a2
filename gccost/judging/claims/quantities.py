"""The quantities that test a claim. Each knows how to estimate itself from a recording."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from gccost import stats
from gccost.measuring.experiments.base import Arm, Quantity, Ratio
from gccost.stats import SHOWN, Estimate, Width


@dataclass(frozen=True)
class _OfOneArm(Quantity):
    arm: Arm

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (self.arm,)


@dataclass(frozen=True)
class Share(_OfOneArm):
    """The share of an arm's CPU profile whose stacks hold any of these functions.

    The arm has profile="cpu". Where `within` is given the stacks must hold any of those too;
    where `of` is given, the share is of the stacks that hold any of those.
    """

    functions: tuple[str, ...]
    within: tuple[str, ...] = ()
    of: tuple[str, ...] = ()

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        return stats.share(data.shares(self, release).to_numpy(), width)


@dataclass(frozen=True)
class Amount(_OfOneArm):
    """How much of a metric an arm shows, such as a count: the median over the samples."""

    metric: str

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        return stats.amount(data.values(self.arm, release, self.metric), width)


@dataclass(frozen=True)
class Difference(Quantity):
    """What a ratio's numerator shows more than its denominator, in the metric's unit: a count."""

    ratio: Ratio

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.ratio.arms

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        over, under = (
            stats.amount(data.values(arm, release, self.ratio.metric), width) for arm in self.arms
        )
        half = math.hypot(over.high - over.value, under.high - under.value)
        return stats.around(over.value - under.value, half, (over, under))


@dataclass(frozen=True, slots=True)
class Dip(Estimate):
    """The estimate of a Dipping: its first point over its least; and the last point's interval."""

    last_low: float
    last_high: float
    least: int  # the place of the least point on the curve


@dataclass(frozen=True)
class Dipping(Quantity):
    """How far a curve dips: its first point over its least.

    A point is what a ratio's numerator takes more than its denominator.
    """

    curve: tuple[Ratio, ...]
    partial: ClassVar[bool] = True
    timed: ClassVar[bool] = True

    @property
    def arms(self) -> tuple[Arm, ...]:
        return tuple(arm for ratio in self.curve for arm in ratio.arms)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Dip:
        known = [
            (i, ratio, added.value)
            for i, ratio in enumerate(self.curve)
            if (added := data.added(ratio, release, width)).samples
        ]
        if not known:
            return Dip(
                **asdict(stats.nothing(width)), last_low=math.nan, last_high=math.nan, least=-1
            )
        place, least, _ = min(known, key=lambda point: point[2])

        def over_least(end: Ratio) -> Estimate:
            if end is least:
                return Estimate(1.0, 1.0, 1.0, 1, 1, width.confidence)
            costs = [(arm, end.metric) for arm in (*end.arms, *least.arms)]
            found: Estimate = data.combine(
                lambda a, b, c, d: (a - b) / (c - d), costs, release, width
            )
            return found

        first, last = over_least(known[0][1]), over_least(known[-1][1])
        return Dip(**asdict(first), last_low=last.low, last_high=last.high, least=place)


@dataclass(frozen=True, slots=True)
class Occurrences(Estimate):
    """The estimate of Occurring: a count, so it has no width."""

    looked_at: int  # places with samples of every arm
    elsewhere: int  # places at which another arm shows the event
    has_interval: ClassVar[bool] = False


@dataclass(frozen=True)
class Occurring(Quantity):
    """At how many places one arm shows an event (it died, it leaked) that no other shows there.

    `shown` has an arm a place, and each of `others` has one for each of the same
    places. A metric over 0 in any sample is the event.
    """

    metric: str
    shown: tuple[Arm, ...]
    others: tuple[tuple[Arm, ...], ...]
    at_once: ClassVar[bool] = True
    partial: ClassVar[bool] = True

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.shown + tuple(arm for other in self.others for arm in other)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Occurrences:
        found, runs = [], 0
        for shown, *others in zip(self.shown, *self.others, strict=True):
            each = [data.values(arm, release, self.metric) for arm in (shown, *others)]
            if all(len(values) for values in each):
                here, *elsewhere = (bool((values > 0).any()) for values in each)
                found.append((here, any(elsewhere)))
                runs += len(each[0])
        count = float(sum(here and not there for here, there in found)) if found else math.nan
        looked, there = len(found), sum(there for _, there in found)
        return Occurrences(count, count, count, runs, looked, width.confidence, looked, there)


@dataclass(frozen=True, slots=True)
class Range(Estimate):
    """The estimate of TwoBaselines: from the lower end of the one to the upper of the other.

    Its value is their geometric mean.
    """

    one: Estimate
    other: Estimate

    @property
    def shown(self) -> tuple[float, ...]:
        """Both values."""
        return tuple(sorted((self.one.value, self.other.value)))

    @classmethod
    def over(cls, one: Estimate, other: Estimate) -> Range:
        """The range that two estimates of one confidence span."""
        value = math.sqrt(one.value * other.value)
        low, high = min(one.low, other.low), max(one.high, other.high)
        samples, rounds = min(one.samples, other.samples), min(one.rounds, other.rounds)
        return cls(value, low, high, samples, rounds, one.confidence, one, other)

    def narrowed(self, share: float) -> Range:
        """The range of both with a share of their intervals."""
        return Range.over(self.one.narrowed(share), self.other.narrowed(share))


@dataclass(frozen=True)
class TwoBaselines(Quantity):
    """A ratio over each baseline that the document could have meant."""

    over: Ratio
    other: Ratio
    timed: ClassVar[bool] = True

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.over.arms + self.other.arms

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Range:
        one, other = (ratio.estimate(data, release, width) for ratio in (self.over, self.other))
        return Range.over(one, other)


@dataclass(frozen=True)
class Straightness(_OfOneArm):
    """How much of the variance a straight line in the list's length explains: its r², the median
    over the rounds."""

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        return stats.amount(data.walks(self.arm, release)["r2"], width)


@dataclass(frozen=True)
class SlopeRatio(Quantity):
    """What each record in the list costs a call, over what it costs another."""

    over: Arm
    under: Arm

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (self.over, self.under)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        over, under = (data.slope(arm, release, width) for arm in self.arms)
        if not under.value or not over.samples:
            return stats.nothing(width)
        value = over.value / under.value
        # In absolute terms: relative to a slope of nearly zero the error is unbounded.
        error = math.hypot(over.high - over.value, value * (under.high - under.value))
        return stats.around(value, error / abs(under.value), (over, under))


@dataclass(frozen=True)
class Saved(Quantity):
    """Of what an arm costs more than a baseline, the share that a change saves."""

    before: Arm
    after: Arm
    baseline: Arm
    metric: str = "ns/op"
    timed: ClassVar[bool] = True

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (self.before, self.after, self.baseline)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:

        def share(before: float, after: float, base: float) -> float:
            return (before - after) / (before - base)

        costs = [(arm, self.metric) for arm in self.arms]
        found: Estimate = data.combine(share, costs, release, width, signed=True)
        return found


@dataclass(frozen=True, slots=True)
class Spread(Estimate):
    """The estimate of an Agreement: p of the heterogeneity test, of ours and the other method."""

    chance: float
    other_chance: float
    has_interval: ClassVar[bool] = False


@dataclass(frozen=True)
class Agreement(Quantity):
    """How far independent measurements lie apart: the largest over the smallest.

    With the chance of such differences between measurements of one thing, of these and
    of the other method's.
    """

    measurements: tuple[Quantity, ...]
    others: tuple[Quantity, ...] = ()
    at_once: ClassVar[bool] = True

    @property
    def arms(self) -> tuple[Arm, ...]:
        return tuple(arm for each in self.measurements for arm in each.arms)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Spread:
        made, others = (
            [e for m in group if (e := m.estimate(data, release)).samples]
            for group in (self.measurements, self.others)
        )
        if len(made) < 2:
            return Spread(**asdict(stats.nothing()), chance=math.nan, other_chance=math.nan)
        values = np.array([e.value for e in made])
        widest = float(values.max() / values.min())
        chances = stats.heterogeneity(made), stats.heterogeneity(others)
        return Spread(widest, widest, widest, len(made), len(made), 1.0, *chances)
