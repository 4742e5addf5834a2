"""Estimates and intervals: what the campaign, the claims and the charts are based on.

**The undisturbed cost.** Other tenants, the host and the sibling hardware thread only
ever slow a loop down, in bursts of milliseconds, and they slow different programs by
different factors. So the cost of a case is its cost on the machine undisturbed:

- `floor`, for a loop that allocates nothing on the Go heap, whose slices are timed: the
  least 5 % quantile of the slices of a round's processes (of one build), and over the
  rounds the lower quartile. A busy sibling hardware thread slows whole processes by 10 to
  30 %, for seconds or minutes: it may have slowed half of the rounds. Layouts differ by
  0.3 to 1 %, so the lower quartile over builds is at most 0.7 % below their median; the
  least of all processes would pick the luckiest layout of many.
- `level`, for every other time: the median-unbiased lower quartile over the accepted
  processes (see `Recording.accepted`), a process a round. Other amounts, such as memory,
  are disturbed to both sides: there it is the median.

Contention for memory slows a loop with a garbage collector without any thread's waiting for
a CPU. Where a process times manual frees between the parts of its loop, `relieved` takes
off what they say of it: `RELIEF` of how far (on the log scale) they lie above their floor,
beyond the `RESTING` part by which they do on a quiet machine too, for the loop has emptied
the caches. That explained half of the scatter of accepted processes (finalizer 6.3 to 3.1 %,
AddCleanup 10.5 to 6.4 %) and removed a bias of 6 %; verdicts about the band of 1.25 took
half the rounds (a truth of 1.06: 14 to 6, and 28 to 14).

**Intervals** are made on the log scale. With s the standard deviation of the logs (at
least `LEAST_SPREAD`) of n processes or rounds, a cost is uncertain by 1.5 t s / sqrt(n).
From eight on, s is that of the lower half about the median: where four processes in ten
are slowed by up to 30 %, that halves the interval, which still covers 94 % and more, and
at 99 % and with the margin of a verdict errs in fewer than 1 of 1,000 cases. Here
t is Student's, and 1.5 (`WIDENING`) is what a quartile loses against a mean and what a
build or a neighbour that several rounds share costs. A figure drawn from several costs
(a ratio, a difference, a dip) is uncertain by theirs, by the delta method. Shown 95 %
intervals hold 3 % more (`SYSTEMATIC`), in quadrature: what every process of a run shares.

**Verdicts** are looked at after 4, 6, 8, 10, 14, 20, 28 and 40 accepted rounds (`LOOKS`)
and no others. The 99 % interval must clear a bound by 5 % (`MARGIN`): see
`gccost.judging.claims.rules`. Each verdict stands by itself.

`gccost.simulation` runs campaigns on a model of a noisy machine: on a quiet one the 95 %
intervals cover 95.8 %, on one that is busy half of the time 93.6 %, and of campaigns whose
truth lies on a boundary at most 0.2 % decide. Its docstring has the whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, isnan, log, nan, sqrt
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]

LEAST_SPREAD = 0.02  # of the logs: a few processes can look more alike than they are
HALF_FROM = 8  # logs, from which on s is that of their lower half
WIDENING = 1.5
SYSTEMATIC = 0.03
MARGIN = 1.05
LOOKS = (4, 6, 8, 10, 14, 20, 28, 40)
RELIEF, RESTING = 0.6, 0.08
LOW = 0.25  # the quantile over rounds or processes that is taken for the undisturbed time


@dataclass(frozen=True, slots=True)
class Width:
    """How wide an interval is: its confidence, and what is added for what all samples share."""

    confidence: float = 0.95
    systematic: float = SYSTEMATIC


SHOWN = Width()
JUDGED = Width(0.99, 0.0)  # the margin of the rules stands in for what is shared


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a case on the log scale: `spread` is s, `rounds` the n that it rests on."""

    log: float
    spread: float
    rounds: int
    samples: int

    def half_width(self, confidence: float) -> float:
        """Half its interval on the log scale; infinite from a single round."""
        return float(half_width(self.spread, self.rounds, confidence))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval, and the samples and rounds that it rests on.

    From one round there is no telling how much rounds differ, so the interval is
    infinite; from none the value is NaN as well.
    """

    value: float
    low: float
    high: float
    samples: int
    rounds: int
    confidence: float
    has_interval: ClassVar[bool] = True

    @property
    def shown(self) -> tuple[float, ...]:
        """The values to print."""
        return (self.value,)

    @property
    def half_width(self) -> float:
        """Half the interval's length over the size of the value: 0.02 is ±2 %.

        Infinite when there is no value, no finite interval, or a value of zero
        within an interval that is more than a point.
        """
        if self.low == self.high:
            return 0.0
        if not self.value or isnan(self.value):
            return inf
        return (self.high - self.low) / abs(2 * self.value)

    def contains(self, x: float) -> bool:
        """Whether x lies in the interval, its ends included."""
        return self.low <= x <= self.high

    def narrowed(self, share: float) -> Self:
        """The same value with a share of the interval: on the log scale if it is positive."""
        if self.low > 0:
            low, high = (self.value * (end / self.value) ** share for end in (self.low, self.high))
        else:
            low, high = (self.value + (end - self.value) * share for end in (self.low, self.high))
        return replace(self, low=low, high=high)


def nothing(width: Width = SHOWN) -> Estimate:
    """The estimate from no sample at all."""
    return Estimate(nan, -inf, inf, 0, 0, width.confidence)


def around(value: float, half: float, of: Sequence[Estimate]) -> Estimate:
    """A figure drawn from estimates of one confidence, `half` its half-width."""
    samples, rounds = min(e.samples for e in of), min(e.rounds for e in of)
    return Estimate(value, value - half, value + half, samples, rounds, of[0].confidence)


def floor(quantiles: ArrayLike, rounds: ArrayLike) -> Cost:
    """The cost of a loop that is timed in slices.

    An entry a process: the 5 % quantile of its slices, in any unit, and its round.
    """
    logs, labels = _logs(quantiles), np.asarray(rounds)
    known = np.isfinite(logs)
    labels = labels[known]
    least = np.array([logs[known][labels == label].min() for label in np.unique(labels)])
    if not least.size:
        return Cost(nan, inf, 0, 0)
    value, spread = undisturbed(least)
    return Cost(float(value), float(spread), least.size, int(known.sum()))


def relieved(values: ArrayLike, reference: ArrayLike, floor_ns: float) -> Floats:
    """Times without what contention for memory added, by each process's reference.

    `reference` is a manual free in each process and `floor_ns` its floor, in one unit; a
    process without a reference keeps its time.
    """
    above = np.log(np.asarray(reference, dtype=np.float64) / floor_ns) - RESTING
    above = np.where(np.isfinite(above), np.maximum(above, 0.0), 0.0)
    return np.asarray(values, dtype=np.float64) * np.exp(-RELIEF * above)


def level(values: ArrayLike, quantile: float = LOW) -> Cost:
    """The cost of any other case: an entry an accepted process.

    Values that are missing (NaN) or not positive are left out.
    """
    logs = _logs(values)
    logs = logs[np.isfinite(logs)]
    if not logs.size:
        return Cost(nan, inf, 0, 0)
    value, spread = undisturbed(logs)
    if quantile != LOW:
        value, spread = _quantile(logs, quantile), _whole_spread(logs)
    return Cost(float(value), float(spread), logs.size, logs.size)


def undisturbed(logs: Floats) -> tuple[Floats, Floats]:
    """The lower quartile of the logs of times, and s, along the last axis.

    Disturbances only ever make times longer, hence the s of the lower half.
    """
    value, spread = _quantile(logs, LOW), _whole_spread(logs)
    if logs.shape[-1] >= HALF_FROM:
        middle = np.median(logs, axis=-1, keepdims=True)
        below = np.where(logs <= middle, (middle - logs) ** 2, nan)
        spread = np.maximum(np.sqrt(np.nanmean(below, axis=-1)), LEAST_SPREAD)
    return value, spread


def _quantile(logs: Floats, q: float) -> Floats:
    return np.asarray(np.quantile(logs, q, axis=-1, method="median_unbiased"))


def _whole_spread(logs: Floats) -> Floats:
    if logs.shape[-1] < 2:
        return np.full(logs.shape[:-1], inf)
    return np.asarray(np.maximum(logs.std(axis=-1, ddof=1), LEAST_SPREAD))


def combine(
    function: Callable[..., float],
    costs: Sequence[Cost],
    width: Width = SHOWN,
    *,
    signed: bool = False,
) -> Estimate:
    """A figure drawn from costs: function(cost, …), each in its unit.

    The interval is made on the log scale, or as it is for a figure that may be zero or
    less (`signed`). Without a sample of each cost there is no figure.
    """
    samples, rounds = (min(cost.samples for cost in costs), min(cost.rounds for cost in costs))
    if not samples:
        return nothing(width)
    logs = [cost.log for cost in costs]

    def slope(i: int) -> float:
        up, down = ([*logs[:i], logs[i] + step, *logs[i + 1 :]] for step in (_STEP, -_STEP))
        return (_figure(function, up, signed) - _figure(function, down, signed)) / (2 * _STEP)

    value, slopes = _figure(function, logs, signed), [slope(i) for i in range(len(logs))]
    if not all(map(isfinite, (value, *slopes))):
        return nothing(width)
    parts = [s * c.half_width(width.confidence) for s, c in zip(slopes, costs, strict=True) if s]
    shared = width.systematic * max(map(abs, slopes))
    half = sqrt(sum(part**2 for part in parts) + shared**2)
    low, high = value - half, value + half
    if not signed:
        value, low, high = _exp(value), _exp(low), _exp(high)
    return Estimate(value, low, high, samples, rounds, width.confidence)


_STEP = 1e-4  # on the log scale, for the slopes of the delta method


def amount(values: ArrayLike, width: Width = SHOWN) -> Estimate:
    """The level of a count, or of another quantity that may be zero: the median of values.

    Values that are all the same come out as that number, with no width.
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if not x.size:
        return nothing(width)
    value = float(np.median(x))
    half = float(half_width(x.std(ddof=1) if x.size > 1 else nan, x.size, width.confidence))
    return Estimate(value, value - half, value + half, x.size, x.size, width.confidence)


def share(values: ArrayLike, width: Width = SHOWN) -> Estimate:
    """The level of a share of a whole (0 to 1), such as that of the stacks of a profile.

    Its interval is made on the angular scale (the arcsine of the root), on which its noise
    hardly depends on how large it is, and never leaves 0 to 1.
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[(x >= 0) & (x <= 1)]
    found = amount(np.arcsin(np.sqrt(x)), width)
    low, high = (
        float(np.sin(np.clip(end, 0, np.pi / 2)) ** 2) if isfinite(end) else end
        for end in (found.low, found.high)
    )
    value = float(np.sin(found.value) ** 2)
    return Estimate(value, low, high, found.samples, found.rounds, width.confidence)


def narrowing(rounds: int, more: int, confidence: float) -> float:
    """What is left of a half-width when so many rounds become more."""
    return float(half_width(1, more, confidence) / half_width(1, rounds, confidence))


def most_unseen(samples: int, confidence: float = 0.95) -> float:
    """Exact upper confidence bound on an event's probability after zero occurrences."""
    return float(1 - (1 - confidence) ** (1 / samples)) if samples else 1.0


def heterogeneity(ratios: Sequence[Estimate]) -> float:
    """The probability p that ratios of one truth scatter as much as these.

    Cochran's Q of the log ratios in Welch's form, which allows for standard errors that
    come from few rounds, with the errors that their intervals claim. It is for
    measurements whose length was set beforehand. NaN unless two ratios or more have
    finite intervals.
    """
    known = [r for r in ratios if r.low > 0 and r.high < inf and r.rounds > 1]
    if len(known) < 2:
        return nan
    ends = np.log([(r.low, r.high) for r in known])
    centre, half = ends.mean(axis=1), np.ptp(ends, axis=1) / 2
    freedom = np.array([r.rounds - 1 for r in known])
    error = half / special.stdtrit(freedom, [(1 + r.confidence) / 2 for r in known])
    # Without width (constant data) a ratio outweighs all others, but not infinitely.
    weight = np.maximum(error, 1e-12) ** -2
    part = weight / weight.sum()
    others = len(known) - 1
    lack = float(((1 - part) ** 2 / freedom).sum()) / (len(known) ** 2 - 1)
    q = float((weight * (centre - (part * centre).sum()) ** 2).sum())
    f = q / others / (1 + 2 * (others - 1) * lack)
    return float(special.fdtrc(others, 1 / (3 * lack), f))


def half_width(spread: Floats | float, rounds: int, confidence: float) -> Floats:
    """Half the interval from s of so many rounds: infinite from a single one."""
    if rounds < 2:
        return np.full_like(spread, inf, dtype=np.float64)
    t = float(special.stdtrit(rounds - 1, (1 + confidence) / 2))
    return np.asarray(WIDENING * t * spread / sqrt(rounds))


def _figure(function: Callable[..., float], logs: Sequence[float], signed: bool) -> float:
    found = function(*map(exp, logs))
    if signed:
        return found
    return log(found) if found > 0 else nan


def _exp(x: float) -> float:
    return exp(x) if x < _LARGEST else inf  # few rounds: an upper end beyond all floats


_LARGEST = 700.0  # whose exponential is near the largest float


def _logs(values: ArrayLike) -> Floats:
    """Natural logarithms; NaN where there is none."""
    x = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(np.where((x > 0) & np.isfinite(x), x, nan))
