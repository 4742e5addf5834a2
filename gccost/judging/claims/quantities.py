"""The quantities that test a claim. Each knows how to estimate itself from a recording."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gccost import stats
from gccost.measuring.experiments.base import Arm, Quantity, Ratio
from gccost.stats import SHOWN, Estimate, Width


@dataclass(frozen=True)
class Share(Quantity):
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
        return (self.arm,)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        """The share over the rounds' profiles."""
        return stats.share(data.shares(self, release).to_numpy(), width)


@dataclass(frozen=True)
class Amount(Quantity):
    """How much of a metric an arm shows: a count, say."""

    arm: Arm
    metric: str

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (self.arm,)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        """The median over the samples."""
        return stats.amount(data.values(self.arm, release, self.metric), width)


@dataclass(frozen=True)
class Difference(Quantity):
    """What a ratio's numerator shows more than its denominator, in the metric's unit: a count."""

    ratio: Ratio

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.ratio.arms

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        """The difference of the two medians."""
        over, under = (
            stats.amount(data.values(arm, release, self.ratio.metric), width) for arm in self.arms
        )
        half = math.hypot(over.high - over.value, under.high - under.value)
        value = over.value - under.value
        samples, rounds = min(over.samples, under.samples), min(over.rounds, under.rounds)
        return Estimate(value, value - half, value + half, samples, rounds, width.confidence)


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

    @property
    def arms(self) -> tuple[Arm, ...]:
        return tuple(arm for ratio in self.curve for arm in ratio.arms)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Dip:
        """The dip over the points that were measured."""
        known = [
            (i, ratio, added.value)
            for i, ratio in enumerate(self.curve)
            if (added := data.added(ratio, release, width)).samples
        ]
        if not known:
            return Dip(
                math.nan, -math.inf, math.inf, 0, 0, width.confidence, math.nan, math.nan, -1
            )
        place, least, _ = min(known, key=lambda point: point[2])
        first, last = (
            data.combine(
                lambda a, b, c, d: (a - b) / (c - d),
                [(arm, end.metric) for arm in (*end.arms, *least.arms)],
                release,
                width,
            )
            if end is not least
            else Estimate(1.0, 1.0, 1.0, 1, 1, width.confidence)
            for end in (known[0][1], known[-1][1])
        )
        values = (first.value, first.low, first.high, first.samples, first.rounds)
        return Dip(*values, width.confidence, last.low, last.high, place)


@dataclass(frozen=True, slots=True)
class Occurrences(Estimate):
    """The estimate of Occurring: a count, so it has no width."""

    looked_at: int  # places with samples of every arm
    elsewhere: int  # places at which another arm shows the event


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
        """The count over the places that were measured; its samples are the first arm's."""
        found, runs = [], 0
        for shown, *others in zip(self.shown, *self.others, strict=True):
            each = [data.values(arm, release, self.metric) for arm in (shown, *others)]
            if all(len(values) for values in each):
                here, *elsewhere = (bool((values > 0).any()) for values in each)
                found.append((here, any(elsewhere)))
                runs += len(each[0])
        count = float(sum(here and not there for here, there in found)) if found else math.nan
        looked, there = len(found), sum(there for _, there in found)
        return Occurrences(
            *(count, count, count, runs, looked, width.confidence),
            looked_at=looked,
            elsewhere=there,
        )


@dataclass(frozen=True, slots=True)
class Range(Estimate):
    """The estimate of TwoBaselines: from the lower end of the one to the upper of the other.

    Its value is their geometric mean.
    """

    one: Estimate
    other: Estimate


@dataclass(frozen=True)
class TwoBaselines(Quantity):
    """A ratio over each baseline that the document could have meant."""

    over: Ratio
    other: Ratio

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.over.arms + self.other.arms

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Range:
        """Both ratios as one range."""
        one, other = (ratio.estimate(data, release, width) for ratio in (self.over, self.other))
        value = math.sqrt(one.value * other.value)
        low, high = min(one.low, other.low), max(one.high, other.high)
        samples, rounds = min(one.samples, other.samples), min(one.rounds, other.rounds)
        return Range(value, low, high, samples, rounds, width.confidence, one, other)


@dataclass(frozen=True)
class Straightness(Quantity):
    """How much of what varies a straight line in the list's length explains: its r²."""

    arm: Arm

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (self.arm,)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        """The median over the rounds' lines."""
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
        """The median over the rounds of one slope, over the median of the other."""
        over, under = (data.slope(arm, release, width) for arm in self.arms)
        if not under.value or not over.samples:
            return stats.amount([], width)
        value = over.value / under.value
        # Of a slope that is nearly none only its own size counts, not its share.
        half = math.hypot(over.high - over.value, value * (under.high - under.value)) / abs(
            under.value
        )
        samples, rounds = min(over.samples, under.samples), min(over.rounds, under.rounds)
        return Estimate(value, value - half, value + half, samples, rounds, width.confidence)


@dataclass(frozen=True)
class Worst(Quantity):
    """The largest of several ratios: its ends are the largest ends of all."""

    ratios: tuple[Ratio, ...]
    partial: ClassVar[bool] = True

    @property
    def arms(self) -> tuple[Arm, ...]:
        return tuple(arm for ratio in self.ratios for arm in ratio.arms)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        """The largest of the ratios that were measured."""
        known = [e for r in self.ratios if (e := r.estimate(data, release, width)).samples]
        if not known:
            return stats.amount([], width)
        value, low, high = (max(getattr(e, end) for e in known) for end in ("value", "low", "high"))
        samples, rounds = (min(getattr(e, count) for e in known) for count in ("samples", "rounds"))
        return Estimate(value, low, high, samples, rounds, width.confidence)


@dataclass(frozen=True)
class Saved(Quantity):
    """Of what an arm costs more than a baseline, the share that a change saves."""

    before: Arm
    after: Arm
    baseline: Arm
    metric: str = "ns/op"

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (self.before, self.after, self.baseline)

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        """The share saved."""
        costs = [(arm, self.metric) for arm in self.arms]
        found: Estimate = data.combine(
            lambda before, after, base: (before - after) / (before - base),
            costs,
            release,
            width,
            signed=True,
        )
        return found


@dataclass(frozen=True, slots=True)
class Spread(Estimate):
    """The estimate of an Agreement: p of the heterogeneity test, of ours and the other method."""

    chance: float
    other_chance: float


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
        """The spread of the measurements that were made."""
        made, others = (
            [e for m in group if (e := m.estimate(data, release)).samples]
            for group in (self.measurements, self.others)
        )
        if len(made) < 2:
            return Spread(*(math.nan, -math.inf, math.inf, 0, 0, 1.0), math.nan, math.nan)
        values = np.array([e.value for e in made])
        widest = float(values.max() / values.min())
        chances = stats.heterogeneity(made), stats.heterogeneity(others)
        return Spread(widest, widest, widest, len(made), len(made), 1.0, *chances)
