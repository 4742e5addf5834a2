"""The quantities that test claims. Each estimates itself from a recording."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gccost import stats
from gccost.judging import stacks
from gccost.judging.models import walked
from gccost.measuring.cases import Variant
from gccost.measuring.profiles import Profile
from gccost.stats import SHOWN, Estimate


class Quantity(ABC):
    """A quantity that tests a claim.

    Its verdict is computed at the rounds of `stats.LOOKS`, or from all samples if it is
    `at_once`. If `partial`, it can be estimated without some of its variants.
    """

    at_once: ClassVar[bool] = False
    partial: ClassVar[bool] = False

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants that it is computed from: those of its fields, in their order."""
        return tuple(_variants(vars(self).values()))

    @abstractmethod
    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        """The quantity on a release; `data` is a `Recording`."""


def _variants(values: Iterable[object]) -> Iterator[Variant]:
    for value in values:
        if isinstance(value, Variant):
            yield value
        elif isinstance(value, Quantity):
            yield from value.variants
        elif isinstance(value, tuple):
            yield from _variants(value)


@dataclass(frozen=True)
class Ratio(Quantity):
    """The ratio of two variants' costs by one metric."""

    numerator: Variant
    denominator: Variant
    metric: str = "quiet_ns"

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        """The ratio on a release."""
        costs = [(variant, self.metric) for variant in self.variants]
        found: Estimate = data.combine(lambda a, b: a / b, costs, release, confidence)
        return found


@dataclass(frozen=True)
class Share(Quantity):
    """The share of a variant's CPU profile whose stacks contain any of these functions.

    The variant has profile="cpu". With `within`, the stacks must also contain any of those;
    with `of`, the share is of the stacks that contain any of those.
    """

    variant: Variant
    functions: tuple[str, ...]
    within: tuple[str, ...] = ()
    of: tuple[str, ...] = ()

    def of_profile(self, profile: Profile) -> float:
        """The share in one profile."""
        return profile.share(self.functions, self.within, self.of)

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        profiles = data.profiles(self.variant, release).values()
        return stats.share([self.of_profile(profile) for profile in profiles], confidence)


class PhaseShare(Share):
    """The same for stacks in phases of a special's life: `functions` are keys of PHASES."""

    def of_profile(self, profile: Profile) -> float:
        return sum(stacks.phases(profile)[name] for name in self.functions)


@dataclass(frozen=True)
class Amount(Quantity):
    """A variant's amount of a metric that may be 0, such as a count: the median over samples."""

    variant: Variant
    metric: str

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        return stats.amount(data.values(self.variant, release, self.metric), confidence)


@dataclass(frozen=True)
class Difference(Quantity):
    """The numerator's count minus the denominator's, in the metric's unit."""

    ratio: Ratio

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        over, under = (
            stats.amount(data.values(variant, release, self.ratio.metric), confidence)
            for variant in self.variants
        )
        half = math.hypot(over.high - over.value, under.high - under.value)
        return stats.around(over.value - under.value, half, (over, under))


@dataclass(frozen=True)
class CurveDepth(Quantity):
    """The depth of a curve: its first point over its lowest.

    Each point is the difference of a ratio's numerator and denominator. The estimate's part
    is the last point over the lowest.
    """

    curve: tuple[Ratio, ...]
    partial: ClassVar[bool] = True

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        def combine(function: Callable[..., float], *ratios: Ratio, signed: bool = False) -> Any:
            costs = [(variant, ratio.metric) for ratio in ratios for variant in ratio.variants]
            return data.combine(function, costs, release, confidence, signed=signed)

        added = {r: combine(lambda a, b: a - b, r, signed=True) for r in self.curve}
        known = [ratio for ratio in self.curve if added[ratio].samples]
        if not known:
            return stats.nothing(confidence)
        least = min(known, key=lambda ratio: added[ratio].value)
        first, last = (
            Estimate(1.0, 1.0, 1.0, 1, 1, confidence)
            if end is least
            else combine(lambda a, b, c, d: (a - b) / (c - d), end, least)
            for end in (known[0], known[-1])
        )
        return replace(first, parts=(last,))


@dataclass(frozen=True)
class ExclusiveEvents(Quantity):
    """The number of places where one variant has an event (it died, it leaked) and no other has.

    `shown` has a variant per place; each of `others` has one for each of the same places.
    The event is a metric over 0 in any sample. The estimate's rounds are the places with
    samples of every variant, and its part is the number of places where another variant has
    the event.
    """

    metric: str
    shown: tuple[Variant, ...]
    others: tuple[tuple[Variant, ...], ...]
    at_once: ClassVar[bool] = True
    partial: ClassVar[bool] = True

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        found, runs = [], 0
        for place in zip(self.shown, *self.others, strict=True):
            each = [data.values(variant, release, self.metric) for variant in place]
            if all(map(len, each)):
                here, *elsewhere = (bool((values > 0).any()) for values in each)
                found.append((here, any(elsewhere)))
                runs += len(each[0])
        only = sum(here and not there for here, there in found) if found else math.nan
        count, others = (
            Estimate(float(n), float(n), float(n), runs, len(found), 1.0)
            for n in (only, sum(there for _, there in found))
        )
        return replace(count, parts=(others,))


@dataclass(frozen=True, slots=True)
class Either(Estimate):
    """The estimates of two ratios, as the range of both; its value is their geometric mean."""

    @property
    def shown(self) -> tuple[float, ...]:
        """Both values."""
        return tuple(sorted(part.value for part in self.parts))


@dataclass(frozen=True)
class RatioToEither(Quantity):
    """A ratio to each of the two baselines that the document could have meant."""

    over: Ratio
    other: Ratio

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        one, other = (
            ratio.estimate(data, release, confidence) for ratio in (self.over, self.other)
        )
        value = math.sqrt(one.value * other.value)
        low, high = min(one.low, other.low), max(one.high, other.high)
        samples, rounds = min(one.samples, other.samples), min(one.rounds, other.rounds)
        return Either(value, low, high, samples, rounds, one.confidence, (one, other))


@dataclass(frozen=True)
class Linearity(Quantity):
    """The r² of the straight line through the costs of a call at each length of its list.

    A disturbance slows a part of a process and bends that process's line. So each length has
    its own cost, the mean of the logs over the rounds, and the line goes through these.
    """

    variant: Variant

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        samples = data.processes(self.variant, release)
        found = [walked(sample) for _, sample in samples.iterrows()]
        times = [ns for lengths, ns in found if lengths and lengths == found[0][0]]
        return (
            stats.linearity(found[0][0], times, confidence) if times else stats.nothing(confidence)
        )


@dataclass(frozen=True)
class SlopeRatio(Quantity):
    """The ratio of two variants' costs per record in the list."""

    over: Variant
    under: Variant

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        over, under = (data.slope(variant, release, confidence) for variant in self.variants)
        if not under.value or not over.samples:
            return stats.nothing(confidence)
        value = over.value / under.value
        # Absolute errors: relative to a slope near zero they are unbounded.
        error = math.hypot(over.high - over.value, value * (under.high - under.value))
        return stats.around(value, error / abs(under.value), (over, under))


@dataclass(frozen=True)
class Worst(Quantity):
    """The largest of several ratios; its interval has the largest ends of all."""

    ratios: tuple[Ratio, ...]
    partial: ClassVar[bool] = True

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        """The largest of the ratios that were measured."""
        known = [e for r in self.ratios if (e := r.estimate(data, release, confidence)).samples]
        if not known:
            return stats.amount([], confidence)
        value, low, high = (max(getattr(e, end) for e in known) for end in ("value", "low", "high"))
        samples, rounds = (min(getattr(e, count) for e in known) for count in ("samples", "rounds"))
        return Estimate(value, low, high, samples, rounds, confidence)


@dataclass(frozen=True)
class SavedShare(Quantity):
    """The share of a variant's cost over a baseline that a change saves."""

    before: Variant
    after: Variant
    baseline: Variant
    metric: str = "quiet_ns"

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:

        def share(before: float, after: float, base: float) -> float:
            return (before - after) / (before - base)

        costs = [(variant, self.metric) for variant in self.variants]
        found: Estimate = data.combine(share, costs, release, confidence, signed=True)
        return found


@dataclass(frozen=True)
class Agreement(Quantity):
    """The spread of independent measurements: the largest over the smallest.

    The estimate's parts are the heterogeneity p of these measurements, and of the other
    method's.
    """

    measurements: tuple[Quantity, ...]
    others: tuple[Quantity, ...] = ()
    at_once: ClassVar[bool] = True

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Those of the measurements; the other method's are compared only if there are any."""
        return tuple(variant for each in self.measurements for variant in each.variants)

    def estimate(self, data: Any, release: str, confidence: float = SHOWN) -> Estimate:
        made, others = (
            [e for m in group if (e := m.estimate(data, release)).samples]
            for group in (self.measurements, self.others)
        )
        if len(made) < 2:
            return stats.nothing()
        values = [e.value for e in made]
        spread, *chances = (
            Estimate(x, x, x, len(made), len(made), 1.0)
            for x in (max(values) / min(values), *map(stats.heterogeneity, (made, others)))
        )
        return replace(spread, parts=tuple(chances))
