"""The quantities that test claims. Each estimates itself from a recording."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
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

    def derived(
        self,
        function: Callable[..., float],
        metric: str,
        *cases: Case,
        signed: bool = False,
    ) -> Estimate:
        """An estimate of function(cost, …) of cases by a metric."""
        costs = [self.cost(case, metric) for case in cases]
        return method.estimate(method.propagate(function, costs), self.confidence, signed=signed)

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

    def cycles(self, case: Case) -> list[gctrace.Cycle]:
        """The GC cycles of a case's gctrace that its program did not request."""
        path = self.recording.run.gctrace(self.name(case))
        with suppress(GccostError):  # a damaged one, which the page names
            cycles = gctrace.read(path).cycles if path.exists() else ()
            return [cycle for cycle in cycles if not cycle.forced]
        return []

    def slope(self, case: Case) -> Estimate:
        """The cost (ns) that each record in the list adds to a call; a sample per process."""
        slopes = [slope(sample) for _, sample in self.processes(case).iterrows()]
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
        return tuple(_cases(of for name, of in vars(self).items() if name not in _OTHERS))

    @abstractmethod
    def estimate(self, seen: Seen) -> Estimate:
        """The quantity on a release."""

    def on(self, recording: Any, release: str, confidence: float = stats.SHOWN) -> Estimate:
        """The quantity in a recording on a release, such as a ratio of costs, or a share."""
        return self.estimate(Seen(recording, release, confidence))


_OTHERS = ("metric", "functions", "of", "ranges")  # the fields without cases


def _cases(values: Iterable[Any]) -> Iterator[Case]:
    for value in values:
        if isinstance(value, str):
            yield value
        else:
            yield from value.cases if isinstance(value, Quantity) else _cases(value)


@dataclass(frozen=True)
class Ratio(Quantity):
    """The ratio of two cases' costs by one metric."""

    numerator: Case
    denominator: Case
    metric: str = "ns"

    def figure(self, seen: Seen) -> Figure:
        """The ratio in each sitting."""
        costs = [seen.cost(case, self.metric) for case in self.cases]
        return method.propagate(truediv, costs)

    def estimate(self, seen: Seen) -> Estimate:
        return method.estimate(self.figure(seen), seen.confidence)


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
        share = seen.recording.share(seen.name(self.case), self.of_profile)
        made = method.estimate(share, seen.confidence, signed=True)
        return replace(made, low=max(made.low, 0.0), high=min(made.high, 1.0)) if made.n else made


class PhaseShare(Share):
    """The same for stacks in phases of a special's life: `functions` are keys of PHASES."""

    def of_profile(self, profile: Profile) -> float:
        return math.fsum(stacks.phases(profile)[name] for name in self.functions)


@dataclass(frozen=True)
class Amount(Quantity):
    """A case's amount of a metric that may be 0, such as a count: the median."""

    case: Case
    metric: str

    def estimate(self, seen: Seen) -> Estimate:
        return seen.derived(float, self.metric, self.case, signed=True)


@dataclass(frozen=True)
class Difference(Quantity):
    """The numerator's count minus the denominator's, in the metric's unit."""

    ratio: Ratio

    def estimate(self, seen: Seen) -> Estimate:
        return seen.derived(sub, self.ratio.metric, *self.cases, signed=True)


@dataclass(frozen=True)
class CurveDepth(Quantity):
    """The depth of a curve: its first point over its lowest.

    Each point is the difference of a ratio's numerator and denominator. The estimate's part
    is the last point over the lowest.
    """

    curve: tuple[Ratio, ...]
    partial: ClassVar[bool] = True

    def estimate(self, seen: Seen) -> Estimate:
        added = {
            point: seen.derived(sub, point.metric, *point.cases, signed=True)
            for point in self.curve
        }
        known = [point for point in self.curve if added[point].n]
        if not known:
            return stats.nothing(seen.confidence)
        least = min(known, key=lambda point: added[point].value)

        def over_least(end: Ratio) -> Estimate:
            if end is least:
                return Estimate(1.0, 1.0, 1.0, 1, 1, seen.confidence)
            return seen.derived(
                lambda a, b, c, d: (a - b) / (c - d),
                end.metric,
                *(*end.cases, *least.cases),
                signed=True,
            )

        return replace(over_least(known[0]), parts=(over_least(known[-1]),))


@dataclass(frozen=True)
class ExclusiveEvents(Quantity):
    """The number of places where one case has an event (it died, it leaked) and no other has.

    `shown` has a case per place; each of `others` has one for each of the same places.
    The event is a metric over 0 in any sample. The estimate's rounds are the places with
    samples of every case, and its part is the number of places where another case has
    the event.
    """

    metric: str
    shown: tuple[Case, ...]
    others: tuple[tuple[Case, ...], ...]
    at_once: ClassVar[bool] = True
    partial: ClassVar[bool] = True

    def estimate(self, seen: Seen) -> Estimate:
        samples, alone, elsewhere = 0, [], []
        for place in zip(self.shown, *self.others, strict=True):
            values = [seen.recording.values(seen.name(case), self.metric) for case in place]
            if all(map(len, values)):
                here, *there = (bool(each.any()) for each in values)
                samples += len(values[0])
                alone.append(here and not any(there))
                elsewhere.append(any(there))
        number = float(sum(alone)) if alone else math.nan
        others = models.exactly(float(sum(elsewhere)), samples, len(alone))
        return replace(others, value=number, low=number, high=number, parts=(others,))


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
        traces = [seen.cycles(case) for case in self.traced]
        if not all(traces):
            return stats.nothing(seen.confidence)
        shares = [sum(map(self._within, trace)) / len(trace) for trace in traces]
        return models.exactly(min(shares), len(traces), len(traces))

    def _within(self, cycle: gctrace.Cycle) -> bool:
        sizes = cycle._asdict()
        return all(low <= sizes[name] <= high for name, low, high in self.ranges)


@dataclass(frozen=True)
class SavedOverPrinted(Quantity):
    """The share of the CPU time that `off`, without a GC, saves, over the share by gctrace.

    gctrace drops fractions of a percent, so the GC may have taken one percent more than it prints.
    """

    collected: Case
    off: Case

    def estimate(self, seen: Seen) -> Estimate:
        costs = [seen.cost(case, "cpu_ns") for case in self.cases]
        printed = seen.cost(self.collected, "gctrace_share")
        figure = method.propagate(_saved_over_printed, [*costs, printed])
        return method.estimate(figure, seen.confidence, signed=True)


def _saved_over_printed(collected: float, off: float, printed: float) -> float:
    return (1 - off / collected) / (printed + 0.01)


@dataclass(frozen=True)
class Linearity(Quantity):
    """The r² of the straight line through the costs of a call at each length of its list.

    A disturbance slows a part of a process and bends that process's line. So each length has
    its own cost, the lower quartile over the rounds, and the line goes through these.
    """

    case: Case

    def estimate(self, seen: Seen) -> Estimate:
        calls = [walked(sample) for _, sample in seen.processes(self.case).iterrows()]
        lengths = next((records for records, _ in calls), [])
        if not lengths:
            return stats.nothing(seen.confidence)
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
        known = [e for ratio in self.ratios if (e := ratio.estimate(seen)).n]
        if not known:
            return stats.nothing(seen.confidence)
        low, high = max(e.low for e in known), max(e.high for e in known)
        return models.spanning(max(e.value for e in known), low, high, known)


@dataclass(frozen=True)
class SavedShare(Quantity):
    """The share of a case's cost over a baseline that a change saves."""

    before: Case
    after: Case
    baseline: Case
    metric: str = "ns"

    def estimate(self, seen: Seen) -> Estimate:
        def share(before: float, after: float, base: float) -> float:
            return (before - after) / (before - base)

        return seen.derived(share, self.metric, *self.cases, signed=True)


@dataclass(frozen=True)
class SittingsAgree(Quantity):
    """How far a ratio in one sitting of a run lies from that in another; as `Agreement`.

    A sitting's standard error is that of a run of one sitting.
    """

    ratio: Ratio
    at_once: ClassVar[bool] = True

    def estimate(self, seen: Seen) -> Estimate:
        whole = self.ratio.figure(seen)
        enough = [each for each in whole.counted if each.rounds >= stats.FEWEST]
        error = math.sqrt(method.moderated_spread(whole, signed=False).variance)
        return _agreement([Measured(each.value, error) for each in enough], [])


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
        shown = seen._replace(confidence=stats.SHOWN)
        ours = [_measured(each, shown) for each in self.measurements]
        others = [_measured(each, shown) for each in self.others]
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
    return Measured(estimate.value, math.sqrt(figure.spread(signed=False).error))


def _agreement(ours: Sequence[Measured], others: Sequence[Measured]) -> Estimate:
    """The largest value over the smallest; its parts are the heterogeneity p of each method."""
    known = [each.value for each in ours if math.isfinite(each.value)]
    if len(known) < 2:
        return stats.nothing()
    spread = models.exactly(max(known) / min(known), len(known), len(known))
    chances = [models.heterogeneity(group) for group in (ours, others)]
    parts = [models.exactly(chance, len(known), len(known)) for chance in chances]
    return replace(spread, parts=tuple(parts))
