"""Estimates and intervals for the campaign, the claims and the charts.

**A cost is read off a line.** Other programs on the machine slow every loop down. Each Go
process therefore times the probe, a chain of loads that is the same in every process, between
the parts of its loop. On logarithmic axes the times of a case's processes lie along a line over
those of the probe, and the lines of a kind of loop are parallel. The cost of a case is read off
its line at the price, the lower quartile (`PRICE`) of the probe's times next to the same loop:

    log(ns) = a constant for each case and sitting + a slope for each kind x log(probe / price)

The model is an analysis of covariance, fitted once to a run. The slope comes from the deviations
of processes from the mean of their case in their sitting, the constants from the means, and the
spread of a kind from the residuals (`line`). A loop that is timed in slices needs no probe: the
5 % quantile of a process's slices is its floor, and the cost is the lower quartile of the floors
(`floors`).

**The sitting is the unit of error.** A sitting is one call of `make report`. Sittings of a
machine differ by more than the processes of one sitting show, so the error of a cost has two
parts, and `cost` weights sittings by both: the spread of its processes, and the run-to-run
spread of its kind. The latter comes from the run's own sittings if there are `OWN_SITTINGS` or
more, and otherwise from the recorded ones (data/reference/sittings.csv).

A third part of the error is that of the price, the lower quartile of as few probes as the case
has processes. All its sittings share it.

The delta method gives the intervals of values computed from several costs (`propagate`). The
error of a kind's slope is common to all costs of the kind, so it cancels in most ratios.

**Verdicts** are computed after fixed numbers of accepted rounds only (`LOOKS` of
`gccost.measuring.cases`). The 99 % interval must clear a bound by 5 % (`MARGIN`); see
`gccost.judging.rules`. Verdicts are not corrected for multiple testing.
`gccost.judging.simulation` simulates them with the measured spreads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import exp, fsum, hypot, inf, isfinite, isnan, nan, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]
Numbers = NDArray[np.integer[Any]]

# The confidence of the intervals that pages show, and of those that decide a verdict.
SHOWN, JUDGED = 0.95, 0.99
# MARGIN and PRICE are tuned to data. Chapter 9 shows what MARGIN does ("Coverage, and wrong
# verdicts").
MARGIN = 1.05  # the factor by which an interval must clear a bound
PRICE = 0.25  # the quantile of probes, and of floors, that counts as undisturbed
OWN_SITTINGS = 3  # the fewest from which a run estimates its own run-to-run spread
# The standard errors of a median and of a lower quartile over that of a mean, of normal errors.
_MEDIAN, _QUARTILE = sqrt(pi / 2), 1.3626
_STEP = 1e-4  # relative, for the slopes of the delta method
_DRAWS = 2000  # of a bootstrap
_LARGEST = 700.0  # exp(700) is near the largest float


# --- The line of a kind ---------------------------------------------------------------


class Line(NamedTuple):
    """What the cases of a kind of loop have in common, on the log scale.

    `spread` is the standard deviation of processes about their line, with `freedom` degrees
    of freedom, and `probes` that of their probes; `run_to_run` is that of sittings, with
    `run_to_run_freedom`. `sittings` is the largest number of them that a case has.
    The cases of a kind that is `sliced` have floors and no slope.
    """

    kind: str = ""
    slope: float = 0.0
    slope_error: float = 0.0
    spread: float = nan
    freedom: float = 0.0
    run_to_run: float = 0.0
    run_to_run_freedom: float = inf
    sittings: int = 0
    sliced: bool = False
    probes: float = 0.0

    @property
    def scatter(self) -> float:
        """By how much one process moves the cost of a sitting: the standard deviation."""
        return (_QUARTILE if self.sliced else 1) * self.spread

    @property
    def price_scatter(self) -> float:
        """By how much the probe of one process moves the price, and with it the cost."""
        return _QUARTILE * self.slope * self.probes

    def at_price(self, logs: Floats, probes: Floats) -> Floats:
        """The logs moved along the line to the price; without a probe they stay."""
        return logs - self.slope * np.nan_to_num(probes)


def line(logs: Floats, probes: Floats, groups: Numbers, kind: str = "") -> Line:
    """Fit the line of a kind, without its run-to-run spread.

    The arguments have an entry per process: the log of its time, the log of its probe over the
    price (NaN without a probe), and the number of its case and sitting. Processes without a
    probe do not count for the slope.
    """
    known = np.isfinite(probes)
    x, y = np.zeros(len(logs)), _deviations(logs, groups)
    x[known] = _deviations(probes[known], groups[known])
    freedom = len(logs) - len(np.unique(groups))
    square, slope, of_probes = float(x @ x), 0.0, 0.0
    if freedom > 1 and not np.isclose(square, 0):  # equal probes differ by rounding errors
        slope, freedom = float(x @ y) / square, freedom - 1
        of_probes = floors(probes[known], groups[known]).spread  # the price is their quartile
    if freedom < 1:
        return Line(kind)
    spread = sqrt(max(float(y @ y) - slope * float(x @ y), 0.0) / freedom)
    slope_error = spread / sqrt(square) if slope else 0.0
    return Line(kind, slope, slope_error, spread, freedom, probes=of_probes)


def floors(logs: Floats, groups: Numbers, kind: str = "") -> Line:
    """Fit the line of a kind that is timed in slices: it has a spread, but no slope.

    A disturbance can only slow a process down. So the spread comes from the lower half: it is
    that of normal errors whose lower quartile lies as far below the median.
    """
    parts = [part for part in _parts(logs, groups) if len(part) > 1]
    if not parts:
        return Line(kind, sliced=True)
    below = np.mean([np.median(part) - np.quantile(part, PRICE) for part in parts])
    freedom = len(logs) - len(np.unique(groups))
    return Line(kind, spread=float(below / -special.ndtri(PRICE)), freedom=freedom, sliced=True)


def _means(values: Floats, groups: Numbers) -> Floats:
    """The mean of each group; 0 for a group without values."""
    return np.asarray(np.bincount(groups, values) / np.maximum(np.bincount(groups), 1))


def _deviations(values: Floats, groups: Numbers) -> Floats:
    """Each value less the mean of its group."""
    return np.asarray(values - _means(values, groups)[groups])


def _parts(values: Floats, groups: Numbers) -> list[Floats]:
    """The values of each group, in the order of the groups' numbers."""
    return [values[groups == group] for group in np.unique(groups)]


# --- The cost of a case ---------------------------------------------------------------


class Figure(NamedTuple):
    """A value with its standard error and that error's degrees of freedom.

    `lasting` is the part of the error that more rounds of the same sittings do not reduce.
    `slope_error` is the error that the slope of its kind of loop causes; it is common to all
    costs of the kind and not part of `error`. All are in the value's unit.
    """

    value: float = nan
    error: float = inf
    freedom: float = 1.0
    slope_error: float = 0.0
    kind: str = ""
    lasting: float = 0.0
    rounds: int = 0
    n: int = 0


def cost(logs: Floats, probes: Floats, sittings: ArrayLike, line: Line, rounds: int) -> Figure:
    """The cost of a case from its processes, each with its sitting, and the line of its kind.

    It is the mean of the sittings' costs, each weighted by the inverse of its variance. All of
    them are read at one price, whose error is added.
    """
    if not len(logs):
        return Figure()
    _, at = np.unique(sittings, return_inverse=True)
    parts = _parts(line.at_price(logs, probes), at)
    levels = np.array([_level(part, line) for part in parts])
    figure = Figure(exp(levels.mean()), kind=line.kind, rounds=rounds, n=len(logs))
    if not (line.freedom or line.run_to_run):  # nothing shows how much processes differ
        return figure
    scatter = line.scatter**2 if line.freedom else 0.0
    within = scatter / np.bincount(at)
    weight = 1 / np.maximum(within + line.run_to_run**2, 1e-24)
    weight /= weight.sum()
    between = line.run_to_run**2 * float(weight @ weight)
    variances = [float(weight**2 @ within), between, line.price_scatter**2 / len(logs)]
    error, freedom = total_error(variances, [line.freedom, line.run_to_run_freedom, line.freedom])
    value = exp(float(weight @ levels))
    lever = float(weight @ _means(np.nan_to_num(probes), at))
    return figure._replace(
        value=value,
        error=value * error,
        freedom=freedom,
        slope_error=value * lever * line.slope_error,
        lasting=value * sqrt(between),
    )


def _level(logs: Floats, line: Line) -> float:
    """The log of the cost of one sitting's processes."""
    return float(np.quantile(logs, PRICE) if line.sliced else logs.mean())


def run_to_run(
    logs: Floats, probes: Floats, cases: Any, sittings: Any, line: Line
) -> tuple[float, float]:
    """The standard deviation between sittings of a kind's costs, with its degrees of freedom.

    Its square is the variance between the sittings of a case, less the part that the spread of
    their own processes explains, pooled over cases. A case counts if it has at least two
    sittings, and half as many as the case with the most: a few sittings of one hour say little
    about how sittings differ. It is 0 if nothing is left, and NaN without such a case. A sitting
    with one process of a case does not show how much its processes differ. It counts only if no
    case has two better ones; the spread of the kind then stands for its own.
    """
    frame = pd.DataFrame({"case": cases, "sitting": sittings, "log": line.at_price(logs, probes)})
    by_sitting = frame.groupby(["case", "sitting"])["log"]
    level = by_sitting.quantile(PRICE) if line.sliced else by_sitting.mean()
    n, own = by_sitting.size(), by_sitting.var()
    # A calm sitting explains less than the kind's mean spread, and a busy one more.
    scatter = line.scatter**2 if line.freedom else 0.0
    share = own.fillna(line.spread**2) / line.spread**2 if line.spread else 1.0
    table = pd.DataFrame({"level": level, "within": scatter * share / n})
    better = table[n > 1]
    if better.empty or better.groupby("case").size().max() < 2:
        better = table
    sat = better.groupby("case")["level"].transform("size")
    often = (sat > 1) & (sat >= sat.max() / 2)
    better, sat = better[often], sat[often]
    if better.empty:
        return nan, 0.0
    off = better["level"] - better.groupby("case")["level"].transform("mean")
    freedom = len(better) - better.index.unique("case").size
    expected = (better["within"] * (1 - 1 / sat)).sum()
    return sqrt(max((off**2).sum() - expected, 0.0) / freedom), float(freedom)


def total_error(variances: Sequence[float], freedom: Sequence[float]) -> tuple[float, float]:
    """The standard error of a sum of independent parts, and Satterthwaite's degrees of freedom."""
    # sum() rounds differently since Python 3.12.
    total = fsum(variances)
    if not isfinite(total) or not total:
        return sqrt(total), 1.0
    parts = fsum((v / total) ** 2 / max(f, 1) for v, f in zip(variances, freedom, strict=True) if v)
    return sqrt(total), 1 / parts if parts else inf


# --- Intervals ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, and the numbers of its samples and rounds.

    One process does not show how much processes differ, so its interval is infinite unless its
    kind of loop shows it. Without a process the value is NaN too. `lasting` is the part of the
    interval's variance that more rounds of the same sittings do not reduce.
    """

    value: float
    low: float
    high: float
    n: int
    rounds: int
    confidence: float
    parts: tuple[Estimate, ...] = ()  # of which it consists, for the rules that need them
    lasting: float = 0.0

    @property
    def has_interval(self) -> bool:
        """Whether an interval is shown; a count of events is exact."""
        return self.confidence < 1

    @property
    def shown(self) -> tuple[float, ...]:
        """The values to print."""
        return (self.value,)

    @property
    def half_width(self) -> float:
        """Half the interval's length relative to the value; 0.02 is ±2 %.

        Infinite without a value or a finite interval, or if the value is zero and the
        interval is not.
        """
        if self.low == self.high:
            return 0.0
        if not self.value or isnan(self.value):
            return inf
        return (self.high - self.low) / abs(2 * self.value)

    def contains(self, x: float) -> bool:
        """Whether x is in the interval, including its ends."""
        return self.low <= x <= self.high

    def after(self, rounds: int, more: int, sittings: int = 1) -> Estimate:
        """The estimate if it had `more` rounds instead of `rounds`, and stayed the same.

        `sittings` is by how much the number of sittings, each of as many rounds, is multiplied.
        """
        share = sqrt((self.lasting + (1 - self.lasting) * rounds / more) / sittings)
        value = self.value

        def moved(end: float) -> float:
            by_ratio = self.low > 0
            return value * (end / value) ** share if by_ratio else value + (end - value) * share

        parts = tuple(part.after(rounds, more, sittings) for part in self.parts)
        return replace(self, low=moved(self.low), high=moved(self.high), parts=parts)


def nothing(confidence: float = SHOWN) -> Estimate:
    """The estimate without any sample."""
    return Estimate(nan, -inf, inf, 0, 0, confidence)


def exactly(value: float, n: int, rounds: int) -> Estimate:
    """The estimate of what has no error, such as a count of events."""
    return Estimate(value, value, value, n, rounds, 1.0)


def spanning(value: float, low: float, high: float, parts: Sequence[Estimate]) -> Estimate:
    """An estimate that rests on others of one confidence, with the fewest samples and rounds."""
    n, rounds = min(e.n for e in parts), min(e.rounds for e in parts)
    return Estimate(value, low, high, n, rounds, parts[0].confidence)


def estimate(figure: Figure, confidence: float = SHOWN, *, signed: bool = False) -> Estimate:
    """A figure with its interval.

    It is symmetric on the log scale, or on the linear scale for a value that may be zero or
    negative (`signed`). The value is NaN without a sample.
    """
    value, error = figure.value, hypot(figure.error, figure.slope_error)
    if not figure.n or isnan(value) or isnan(error):
        return nothing(confidence)
    half = float(t(figure.freedom, confidence)) * error
    low, high = value - half, value + half
    if not signed:
        factor = exp(half / value) if half / value < _LARGEST else inf
        low, high = value / factor, value * factor
    lasting = hypot(figure.lasting, figure.slope_error) / error if 0 < error < inf else 0.0
    return Estimate(value, low, high, figure.n, figure.rounds, confidence, lasting=lasting**2)


def combine(
    function: Callable[..., float],
    figures: Sequence[Figure],
    confidence: float = SHOWN,
    *,
    signed: bool = False,
) -> Estimate:
    """Estimate function(value, …) of figures, if each has a sample."""
    return estimate(propagate(function, figures, signed), confidence, signed=signed)


def propagate(
    function: Callable[..., float], figures: Sequence[Figure], signed: bool = False
) -> Figure:
    """Propagate errors to the figure function(value, …) by the delta method; NaN if it has none.

    The errors of figures are independent, except for those of their kinds' slopes. A figure
    that does not affect the value may have an infinite error.
    """
    values = [float(each.value) for each in figures]  # which do not warn, as those of numpy do

    def gradient(at: int) -> float:
        step = _STEP * (abs(values[at]) or 1.0)
        ends = (function(*values[:at], values[at] + by, *values[at + 1 :]) for by in (step, -step))
        high, low = ends
        return (high - low) / (2 * step)

    value = nan
    with suppress(ZeroDivisionError):  # a ratio to nothing has no value
        value = function(*values)
    rounds = min((each.rounds for each in figures), default=0)
    n = min((each.n for each in figures), default=0)
    if isnan(value) or (not signed and value <= 0):
        return Figure(error=nan, rounds=rounds, n=n)
    moving = [(by, each) for i, each in enumerate(figures) if (by := gradient(i))]
    own = [(by * each.error) ** 2 for by, each in moving]
    error, freedom = total_error(own, [each.freedom for _, each in moving])
    lasting = hypot(*(by * each.lasting for by, each in moving))
    slopes: dict[str, float] = defaultdict(float)
    for by, each in moving:
        slopes[each.kind] += by * each.slope_error
    slopes = {kind: part for kind, part in slopes.items() if part}
    if len(slopes) > 1:  # a value of several kinds has none; their errors are independent
        error, lasting = (hypot(part, *slopes.values()) for part in (error, lasting))
        slopes = {}
    kind, slope_error = next(iter(slopes.items()), ("", 0.0))
    return Figure(value, error, freedom, slope_error, kind, lasting, rounds, n)


def t(freedom: float | Floats, confidence: float) -> Floats:
    """Student's t for a two-sided interval; the normal quantile with infinite freedom."""
    return np.asarray(special.stdtrit(np.minimum(freedom, 1e9), (1 + confidence) / 2))


def amount_figure(values: ArrayLike) -> Figure:
    """The median of values with its standard error, for counts and other amounts."""
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    n = x.size
    if not n:
        return Figure()
    error = float(_MEDIAN * x.std(ddof=1) / sqrt(n)) if n > 1 else inf
    return Figure(float(np.median(x)), error, max(n - 1, 1), rounds=n, n=n)


def amount(values: ArrayLike, confidence: float = SHOWN) -> Estimate:
    """Estimate a count, or another quantity that may be zero, by the median of values.

    If all values are equal, the interval has no width.
    """
    return estimate(amount_figure(values), confidence, signed=True)


def linearity(x: ArrayLike, times: ArrayLike, confidence: float = SHOWN) -> Estimate:
    """Estimate the r² of the straight line through the cost at each x.

    `times` has a row per round and a column per x; a cost is the mean of the logs. The interval
    is that of a bootstrap over the rounds, widened by Student's t over the normal quantile.
    """
    logs, at = np.log(np.asarray(times, dtype=np.float64)), np.asarray(x, dtype=np.float64)
    at = at - at.mean()

    def r2(logs: Floats) -> Floats:
        costs = np.exp(logs.mean(axis=-2))
        costs -= costs.mean(axis=-1, keepdims=True)
        explained = (costs @ at) ** 2 / (at @ at)
        return np.asarray(explained / (costs**2).sum(axis=-1))

    value, rounds, inside = float(r2(logs)), len(logs), (1 + confidence) / 2
    low, high = -inf, inf
    if rounds > 1:
        drawn = np.random.default_rng(0).integers(rounds, size=(_DRAWS, rounds))
        ends = np.quantile(r2(logs[drawn]), [1 - inside, inside])
        wider = float(t(rounds - 1, confidence)) / special.ndtri(inside)
        low, high = value + wider * sqrt(rounds / (rounds - 1)) * (ends - value)
        high = min(high, 1.0)
    return Estimate(value, float(low), float(high), rounds, rounds, confidence)


def share(values: ArrayLike, confidence: float = SHOWN) -> Estimate:
    """Estimate a share (0 to 1), such as a share of a profile's stacks.

    Its interval is computed on the angular scale (the arcsine of the root), where the noise
    hardly depends on the value, and stays within 0 to 1.
    """
    x = np.asarray(values, dtype=np.float64)
    arcsine = amount(np.arcsin(np.sqrt(x[(x >= 0) & (x <= 1)])), confidence)

    def back(angle: float) -> float:
        return float(np.sin(np.clip(angle, 0, pi / 2)) ** 2) if isfinite(angle) else angle

    low, high = back(arcsine.low), back(arcsine.high)
    return replace(arcsine, value=back(arcsine.value), low=low, high=high)


def most_unseen(samples: int, confidence: float = 0.95) -> float:
    """Exact upper confidence bound on an event's probability after zero occurrences."""
    return float(1 - (1 - confidence) ** (1 / samples)) if samples else 1.0


def heterogeneity(ratios: Sequence[Estimate]) -> float:
    """The probability p that ratios of one truth scatter at least as much as these.

    Uses Cochran's Q of the log ratios, with the standard errors of their intervals. NaN unless
    at least two ratios have finite intervals.
    """
    known = [r for r in ratios if r.low > 0 and r.high < inf and r.rounds > 1]
    if len(known) < 2:
        return nan
    ends = np.log([(r.low, r.high) for r in known])
    z = special.ndtri([(1 + r.confidence) / 2 for r in known])
    # A ratio without width (constant data) gets a large, finite weight.
    error = np.maximum(np.ptp(ends, axis=1) / 2 / z, 1e-12)
    weight, centre = error**-2, ends.mean(axis=1)
    mean = np.average(centre, weights=weight)
    return float(special.chdtrc(len(known) - 1, weight @ (centre - mean) ** 2))
