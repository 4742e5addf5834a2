"""The quantities that test claims. Each estimates itself from a recording."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import sub, truediv
from typing import Any, ClassVar, NamedTuple, TypeAlias

from gccost import stats
from gccost.cases import jobs
from gccost.costs import method, models, stacks
from gccost.costs.method import Figure
from gccost.costs.models import slope, walked
from gccost.errors import GccostError
from gccost.run import gctrace
from gccost.run.profiles import Profile
from gccost.stats import Estimate

Case: TypeAlias = str
"""A case without its release, as text: "AllocateAuto", or "Finalize/words=8/gogc=off"."""


class Seen(NamedTuple):
    """What a quantity is estimated from: a `Recording` on one release, at a confidence."""

    recording: Any
    release: str
    confidence: float = stats.SHOWN

    def name(self, case: Case) -> str:
        """The name of a case's samples."""
        return jobs.name(case, self.release)

    def cost(self, case: Case, metric: str) -> Figure:
        """The cost of a case in each sitting."""
        cost: Figure = self.recording.cost(self.name(case), metric)
        return cost

    def processes(self, case: Case) -> Any:
        """A row for each process of a case."""
        return self.recording.processes(self.name(case))

    def slope(self, case: Case) -> Estimate:
        """The cost (ns) that each record in the list adds to a call; a sample per process."""
        processes = self.processes(case)
        slopes = [slope(process) for _, process in processes.iterrows()]
        return models.amount(slopes, self.confidence)


class Quantity(ABC):
    """A quantity that tests a claim.

    A verdict needs three rounds of each case, unless it is `at_once`. If `partial`, it can be
    estimated without some of its cases.
    """

    at_once: ClassVar[bool] = False
    partial: ClassVar[bool] = False

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases that it is computed from: those of its fields, in their order."""
        fields = [field for name, field in vars(self).items() if name not in _OTHERS]
        return tuple(_cases(fields))

    @abstractmethod
    def estimate(self, seen: Seen) -> Estimate:
        """The quantity on a release."""

    def on(self, recording: Any, release: str, confidence: float = stats.SHOWN) -> Estimate:
        """The quantity in a recording on a release, such as a ratio of costs, or a share."""
        return self.estimate(Seen(recording, release, confidence))


_OTHERS = ("function", "metric", "functions", "of", "ranges")  # the fields without cases


def _cases(fields: Iterable[Any]) -> Iterator[Case]:
    for field in fields:
        if isinstance(field, str):
            yield field
        elif isinstance(field, Quantity):
            yield from field.cases
        else:
            yield from _cases(field)


@dataclass(frozen=True)
class Of(Quantity):
    """A function of the costs of cases by one metric, computed in each sitting.

    It is `signed` if it may be zero or negative; sittings are then averaged as they are, and not
    their logs.
    """

    function: Callable[..., float]
    metric: str
    operands: tuple[Case, ...]
    signed: ClassVar[bool] = True

    def costs(self, seen: Seen) -> list[Figure]:
        """What the function is computed from."""
        return [seen.cost(case, self.metric) for case in self.operands]

    def figure(self, seen: Seen) -> Figure:
        """The quantity in each sitting."""
        return method.propagate(self.function, self.costs(seen))

    def estimate(self, seen: Seen) -> Estimate:
        figure = self.figure(seen)
        return method.estimate(figure, seen.confidence, signed=self.signed)


class Ratio(Of):
    """The ratio of two cases' costs."""

    signed = False

    def __init__(self, numerator: Case, denominator: Case, metric: str = "ns") -> None:
        super().__init__(truediv, metric, (numerator, denominator))


class Amount(Of):
    """A case's amount of a metric that may be 0, such as a count: the median."""

    def __init__(self, case: Case, metric: str) -> None:
        super().__init__(float, metric, (case,))


class Difference(Of):
    """A case's amount of a metric minus that of another case."""

    def __init__(self, case: Case, other: Case, metric: str = "ns") -> None:
        super().__init__(sub, metric, (case, other))


class AddedRatio(Of):
    """What a case adds to its baseline, relative to what another adds to its own."""

    def __init__(
        self, many: Case, many_base: Case, few: Case, few_base: Case, metric: str = "ns"
    ) -> None:
        super().__init__(_added_ratio, metric, (many, many_base, few, few_base))


def _added_ratio(many: float, many_base: float, few: float, few_base: float) -> float:
    return (many - many_base) / (few - few_base)


class SavedShare(Of):
    """The share of a case's cost over a baseline that a change saves."""

    def __init__(self, before: Case, after: Case, baseline: Case, metric: str = "ns") -> None:
        super().__init__(_saved_share, metric, (before, after, baseline))


def _saved_share(before: float, after: float, baseline: float) -> float:
    return (before - after) / (before - baseline)


class SavedOverPrinted(Of):
    """The share of the CPU time that `off`, without a GC, saves, over the share by gctrace.

    gctrace drops fractions of a percent, so the GC may have taken one percent more than it prints.
    """

    def __init__(self, collected: Case, off: Case) -> None:
        super().__init__(_saved_over_printed, "cpu_ns", (collected, off))

    def costs(self, seen: Seen) -> list[Figure]:
        printed = seen.cost(self.operands[0], "gctrace_share")
        return [*super().costs(seen), printed]


def _saved_over_printed(collected: float, off: float, printed: float) -> float:
    return (1 - off / collected) / (printed + 0.01)


@dataclass(frozen=True)
class Share(Quantity):
    """The share of a case's CPU profile whose stacks contain any of these functions.

    The case has "profile=cpu". With `of`, the share is of the stacks that contain any of
    those.
    """

    case: Case
    functions: tuple[str, ...]
    of: tuple[str, ...] = ()

    def of_profile(self, profile: Profile) -> float:
        """The share in one profile."""
        return profile.share(self.functions, of=self.of)

    def estimate(self, seen: Seen) -> Estimate:
        figure = seen.recording.share(seen.name(self.case), self.of_profile)
        share = method.estimate(figure, seen.confidence, signed=True)
        if not share.n:
            return share
        return replace(share, low=max(share.low, 0.0), high=min(share.high, 1.0))


class PhaseShare(Share):
    """The same for stacks in phases of a special's life: `functions` are keys of PHASES."""

    def of_profile(self, profile: Profile) -> float:
        shares = stacks.phases(profile)
        return math.fsum(shares[name] for name in self.functions)


@dataclass(frozen=True)
class CurveDepth(Quantity):
    """The depth of a curve: its first point over its lowest.

    The estimate's part is the last point over the lowest.
    """

    curve: tuple[Difference, ...]
    partial: ClassVar[bool] = True

    def estimate(self, seen: Seen) -> Estimate:
        heights = {point: point.estimate(seen) for point in self.curve}
        measured = [point for point in self.curve if heights[point].n]
        if not measured:
            return stats.nothing(seen.confidence)
        lowest = min(measured, key=lambda point: heights[point].value)
        first, last = (_over(measured[end], lowest, seen) for end in (0, -1))
        return replace(first, parts=(last,))


def _over(point: Difference, lowest: Difference, seen: Seen) -> Estimate:
    if point is lowest:
        return Estimate(1.0, 1.0, 1.0, 1, 1, seen.confidence)
    quotient = Of(_over_lowest, point.metric, point.operands + lowest.operands)
    return quotient.estimate(seen)


def _over_lowest(over: float, under: float, lowest_over: float, lowest_under: float) -> float:
    return (over - under) / (lowest_over - lowest_under)


@dataclass(frozen=True)
class ExclusiveEvents(Quantity):
    """The number of places where one case has an event (it died, it leaked) and no other has.

    `shown` has a case per place; each of `others` has one for each of the same places.
    The event is a metric over 0 in any sample. The estimate's rounds are the places with
    samples of every case. Its parts are the number of places where another case has the
    event, and the chance that the cases differ so much: the least p of Fisher's exact test at
    a place, times the number of places.
    """

    metric: str
    shown: tuple[Case, ...]
    others: tuple[tuple[Case, ...], ...]
    at_once: ClassVar[bool] = True
    partial: ClassVar[bool] = True

    def estimate(self, seen: Seen) -> Estimate:
        samples = places = alone = elsewhere = 0
        least = 1.0
        for place in zip(self.shown, *self.others, strict=True):
            values = [seen.recording.values(seen.name(case), self.metric) for case in place]
            if not all(map(len, values)):
                continue
            here, *there = (bool(of_case.any()) for of_case in values)
            samples += len(values[0])
            places += 1
            elsewhere += any(there)
            if here and not any(there):
                alone += 1
                happened = int((values[0] > 0).sum())
                tried = sum(map(len, values[1:]))
                least = min(least, models.never_elsewhere(happened, len(values[0]), tried))
        others = models.exactly(float(elsewhere), samples, places)
        chance = models.exactly(min(1.0, places * least), samples, places)
        number = float(alone) if places else math.nan
        return replace(others, value=number, low=number, high=number, parts=(others, chance))


@dataclass(frozen=True)
class CyclesWithin(Quantity):
    """The share of a case's GC cycles with sizes in these ranges; the least of the cases.

    A range has the name of a value of a gctrace's line (MB), and its ends. The share is that of
    the trace that a run keeps of each case.
    """

    traced: tuple[Case, ...]
    ranges: tuple[tuple[str, float, float], ...]
    at_once: ClassVar[bool] = True

    def estimate(self, seen: Seen) -> Estimate:
        shares = []
        for case in self.traced:
            cycles = _cycles(seen, case)
            if not cycles:
                return stats.nothing(seen.confidence)
            within = [cycle for cycle in cycles if self.has(cycle)]
            shares.append(len(within) / len(cycles))
        return models.exactly(min(shares), len(shares), len(shares))

    def has(self, cycle: gctrace.Cycle) -> bool:
        """Whether a cycle has sizes in the ranges."""
        sizes = cycle._asdict()
        return all(low <= sizes[name] <= high for name, low, high in self.ranges)


@dataclass(frozen=True)
class ShareOfTime(Quantity):
    """The share of the clock's time that goes to a value of each GC cycle of a case.

    It is that of the trace that a run keeps of the case.
    """

    case: Case
    metric: str
    at_once: ClassVar[bool] = True

    def estimate(self, seen: Seen) -> Estimate:
        cycles = _cycles(seen, self.case)
        share = gctrace.share_of_time(cycles, self.metric) if cycles else math.nan
        if math.isnan(share):
            return stats.nothing(seen.confidence)
        return models.exactly(share, 1, 1)


def _cycles(seen: Seen, case: Case) -> list[gctrace.Cycle]:
    """The GC cycles of a case's gctrace that its program did not request."""
    path = seen.recording.run.gctrace(seen.name(case))
    if not path.exists():
        return []
    try:
        trace = gctrace.read(path)
    except GccostError:  # a damaged one, which the page names
        return []
    return [cycle for cycle in trace.cycles if not cycle.forced]


@dataclass(frozen=True)
class Linearity(Quantity):
    """The r² of the straight line through the costs of a call at each length of its list.

    A disturbance slows a part of a process and bends that process's line. So each length has
    its own cost, the lower quartile over the rounds, and the line goes through these.
    """

    case: Case

    def estimate(self, seen: Seen) -> Estimate:
        processes = seen.processes(self.case)
        calls = [walked(process) for _, process in processes.iterrows()]
        if not calls or not calls[0][0]:
            return stats.nothing(seen.confidence)
        lengths = calls[0][0]
        times = [ns for records, ns in calls if records == lengths]
        return models.linearity(lengths, times, seen.confidence)


@dataclass(frozen=True)
class SlopeRatio(Quantity):
    """The ratio of two cases' costs per record in the list."""

    over: Case
    under: Case

    def estimate(self, seen: Seen) -> Estimate:
        over, under = seen.slope(self.over), seen.slope(self.under)
        if not under.value or not over.n:
            return stats.nothing(seen.confidence)
        value = over.value / under.value
        # Absolute errors: relative to a slope near zero they are unbounded.
        error = math.hypot(over.high - over.value, value * (under.high - under.value))
        half = error / abs(under.value)
        return models.spanning(value, value - half, value + half, (over, under))


@dataclass(frozen=True)
class Worst(Quantity):
    """The largest of several ratios; its interval has the largest ends of all."""

    ratios: tuple[Ratio, ...]
    partial: ClassVar[bool] = True

    def estimate(self, seen: Seen) -> Estimate:
        estimates = [ratio.estimate(seen) for ratio in self.ratios]
        measured = [estimate for estimate in estimates if estimate.n]
        if not measured:
            return stats.nothing(seen.confidence)
        value = max(estimate.value for estimate in measured)
        low = max(estimate.low for estimate in measured)
        high = max(estimate.high for estimate in measured)
        return models.spanning(value, low, high, measured)


@dataclass(frozen=True)
class SittingsAgree(Quantity):
    """How far a ratio in one sitting of a run lies from that in another; as `Agreement`.

    A sitting's standard error is that of a run of one sitting.
    """

    ratio: Ratio
    at_once: ClassVar[bool] = True

    def estimate(self, seen: Seen) -> Estimate:
        figure = self.ratio.figure(seen)
        spread = method.moderated_spread(figure, signed=False)
        error = math.sqrt(spread.variance)
        measured = []
        for sitting in figure.counted:
            if sitting.rounds >= stats.FEWEST:
                measured.append(Measured(sitting.value, error))
        return _agreement(measured, [])


@dataclass(frozen=True)
class Agreement(Quantity):
    """The spread of independent measurements of one sitting: the largest over the smallest.

    The estimate's parts are the heterogeneity p of these measurements, and of the other
    method's. Ours are compared by their error within the sitting, since they share it.
    """

    measurements: tuple[Quantity, ...]
    others: tuple[Quantity, ...] = ()
    at_once: ClassVar[bool] = True

    @property
    def cases(self) -> tuple[Case, ...]:
        """Those of the measurements; the other method's are compared only if there are any."""
        return tuple(_cases(self.measurements))

    def estimate(self, seen: Seen) -> Estimate:
        seen = seen._replace(confidence=stats.SHOWN)
        ours = [_measured(quantity, seen) for quantity in self.measurements]
        others = [_measured(quantity, seen) for quantity in self.others]
        return _agreement(ours, others)


class Measured(NamedTuple):
    """A value, and the standard error of its log."""

    value: float
    error: float


def _measured(quantity: Quantity, seen: Seen) -> Measured:
    """One measurement, with its error within the sitting; NaN without enough rounds."""
    estimate = quantity.estimate(seen)
    if not isinstance(quantity, Ratio):
        return Measured(estimate.value, models.standard_error(estimate))
    figure = quantity.figure(seen)
    if estimate.rounds < stats.FEWEST or not figure.has_values(signed=False):
        return Measured(math.nan, math.nan)
    variance = figure.spread(signed=False).error
    return Measured(estimate.value, math.sqrt(variance))


def _agreement(ours: Sequence[Measured], others: Sequence[Measured]) -> Estimate:
    """The largest value over the smallest; its parts are the heterogeneity p of each method."""
    values = [measured.value for measured in ours if math.isfinite(measured.value)]
    count = len(values)
    if count < 2:
        return stats.nothing()
    parts = []
    for measurements in (ours, others):
        chance = models.heterogeneity(measurements)
        parts.append(models.exactly(chance, count, count))
    spread = models.exactly(max(values) / min(values), count, count)
    return replace(spread, parts=tuple(parts))
