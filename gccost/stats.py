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

**Verdicts** are computed after the accepted rounds in `LOOKS` only. The 99 % interval must
clear a bound by 5 % (`MARGIN`); see `gccost.judging.rules`. Verdicts are not corrected for
multiple testing. `gccost.simulation` simulates them with the measured spreads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import exp, hypot, inf, isfinite, isnan, log, nan, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from gccost.estimates import JUDGED as JUDGED
from gccost.estimates import LOOKS as LOOKS
from gccost.estimates import SHOWN as SHOWN
from gccost.estimates import Estimate as Estimate

Floats = NDArray[np.float64]

MARGIN = 1.05
OWN_SITTINGS = 3  # the fewest from which a run estimates its own run-to-run spread
PRICE = 0.25  # the quantile of probes, and of floors, that counts as undisturbed
# The standard errors of a median and of a lower quartile over that of a mean, of normal errors.
_MEDIAN, _QUARTILE = sqrt(pi / 2), 1.3626
_STEP = 1e-4  # relative, for the slopes of the delta method
_DRAWS = 2000  # of a bootstrap


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


def line(logs: Floats, probes: Floats, groups: NDArray[np.int64], kind: str = "") -> Line:
    """Fit the line of a kind, without its run-to-run spread.

    The arguments have an entry per process: the log of its time, the log of its probe over the
    price (NaN without a probe), and the number of its case and sitting. Processes without a
    probe do not count for the slope.
    """
    y = logs - _means(logs, groups)[groups]
    x, known = np.zeros(len(logs)), np.isfinite(probes)
    x[known] = probes[known] - _means(probes[known], groups[known])[groups[known]]
    freedom = int(len(logs) - len(np.unique(groups)))
    square, slope, slope_error, explained = float(x @ x), 0.0, 0.0, 0.0
    scatter = 0.0  # of probes, whose lower quartile is the price
    if freedom > 1 and not np.isclose(square, 0):  # equal probes differ by rounding errors
        slope, freedom = float(x @ y) / square, freedom - 1
        explained, slope_error = slope * float(x @ y), 1 / sqrt(square)
        scatter = floors(probes[known], groups[known]).spread
    if freedom < 1:
        return Line(kind)
    spread = sqrt(max(float(y @ y) - explained, 0.0) / freedom)
    return Line(kind, slope, slope_error * spread, spread, freedom, probes=scatter)


def floors(logs: Floats, groups: NDArray[np.int64], kind: str = "") -> Line:
    """Fit the line of a kind that is timed in slices: it has a spread, but no slope.

    A disturbance can only slow a process down. So the spread comes from the lower half: it is
    that of normal errors whose lower quartile lies as far below the median.
    """
    found = [np.quantile(part, [PRICE, 0.5]) for part in _parts(logs, groups) if len(part) > 1]
    freedom = int(len(logs) - len(np.unique(groups)))
    if not found:
        return Line(kind, sliced=True)
    below = np.mean([middle - low for low, middle in found]) / -float(special.ndtri(PRICE))
    return Line(kind, spread=float(below), freedom=freedom, sliced=True)


def _means(values: Floats, groups: NDArray[np.int64]) -> Floats:
    """The mean of each group; 0 for a group without values."""
    return np.asarray(np.bincount(groups, values) / np.maximum(np.bincount(groups), 1))


def _parts(values: Floats, groups: NDArray[np.int64]) -> list[Floats]:
    """The values of each group, in the order of the groups' numbers."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order])) + 1
    return np.split(values[order], starts) if len(values) else []


def _levels(
    logs: Floats, probes: Floats, groups: NDArray[np.int64], line: Line
) -> tuple[Floats, Floats]:
    """The log of the cost of each group of processes, and its variance within a sitting."""
    n = np.bincount(groups)
    if line.sliced:
        levels = np.array([np.quantile(part, PRICE) for part in _parts(logs, groups)])
    else:
        levels = _means(logs - line.slope * np.nan_to_num(probes), groups)
    return levels, (line.scatter**2 if line.freedom else 0.0) / n


class Figure(NamedTuple):
    """A value with its standard error and that error's degrees of freedom.

    `lasting` is the part of the error that more rounds of the same sittings do not reduce.
    `slope_error` is the error that the slope of its kind of loop causes; it is common to all
    costs of the kind and not part of `error`. All are in the value's unit.
    """

    value: float
    error: float
    freedom: float
    slope_error: float = 0.0
    kind: str = ""
    lasting: float = 0.0
    rounds: int = 0
    samples: int = 0


def cost(logs: Floats, probes: Floats, sittings: ArrayLike, line: Line, rounds: int) -> Figure:
    """The cost of a case from its processes, each with its sitting, and the line of its kind.

    It is the mean of the sittings' costs, each weighted by the inverse of its variance. All of
    them are read at one price, whose error is added.
    """
    if not len(logs):
        return Figure(nan, inf, 1)
    _, at = np.unique(sittings, return_inverse=True)
    levels, within = _levels(logs, probes, at, line)
    lever = _means(np.nan_to_num(probes), at)
    if not (line.freedom or line.run_to_run):  # nothing shows how much processes differ
        return Figure(exp(levels.mean()), inf, 1, 0.0, line.kind, 0.0, rounds, len(logs))
    weight = 1 / np.maximum(within + line.run_to_run**2, 1e-24)
    weight /= weight.sum()
    parts = [float(weight**2 @ within), line.run_to_run**2 * float(weight @ weight)]
    parts.append(line.price_scatter**2 / len(logs))
    error, freedom = total_error(parts, [line.freedom, line.run_to_run_freedom, line.freedom])
    value = exp(float(weight @ levels))
    slope_error = value * float(weight @ lever) * line.slope_error
    lasting = value * sqrt(parts[1])
    return Figure(value, value * error, freedom, slope_error, line.kind, lasting, rounds, len(logs))


def run_to_run(
    logs: Floats, probes: Floats, cases: ArrayLike, sittings: ArrayLike, line: Line
) -> tuple[float, float]:
    """The standard deviation between sittings of a kind's costs, with its degrees of freedom.

    Its square is the variance between the sittings of a case, less the part that the spread of
    their own processes explains, pooled over the cases with at least two sittings. It is 0 if
    nothing is left, and NaN without such a case. A sitting with one process of a case does not
    show how much its processes differ. It counts only if no case has two better ones; the spread
    of the kind then stands for its own.
    """
    pairs = np.stack([np.asarray(cases), np.asarray(sittings)])
    keys, at = np.unique(pairs, axis=1, return_inverse=True)
    at = np.asarray(at).ravel()
    levels, within = _levels(logs, probes, at, line)
    # A calm sitting explains less than the kind's mean spread, and a busy one more.
    off = logs - (0 if line.sliced else line.slope) * np.nan_to_num(probes)
    n = np.bincount(at)
    square = np.bincount(at, (off - _means(off, at)[at]) ** 2)
    own = np.divide(square, n - 1, out=np.full(len(n), line.spread) ** 2, where=n > 1)
    within = within * own / line.spread**2 if line.freedom and line.spread else within
    case = keys[0].astype(np.int64)
    known = n > 1
    if not (np.bincount(case[known]) > 1).any():
        known[:] = True
    levels, within, case = (each[known] for each in (levels, within, case))
    sat = np.bincount(case)[case]
    levels, within, case, sat = (each[sat > 1] for each in (levels, within, case, sat))
    if not len(levels):
        return nan, 0.0
    off = levels - _means(levels, case)[case]
    freedom = len(levels) - len(np.unique(case))
    expected = float((within * (1 - 1 / sat)).sum())
    return sqrt(max(float(off @ off) - expected, 0.0) / freedom), float(freedom)


def total_error(variances: Sequence[float], freedom: Sequence[float]) -> tuple[float, float]:
    """The standard error of a sum of independent parts, and Satterthwaite's degrees of freedom."""
    total = sum(variances)
    if not isfinite(total) or not total:
        return sqrt(total) if total else 0.0, 1.0
    parts = sum((v / total) ** 2 / max(f, 1) for v, f in zip(variances, freedom, strict=True) if v)
    return sqrt(total), 1 / parts if parts else inf


# --- Intervals ------------------------------------------------------------------------


def nothing(confidence: float = SHOWN) -> Estimate:
    """The estimate without any sample."""
    return Estimate(nan, -inf, inf, 0, 0, confidence)


def around(value: float, half: float, estimates: Sequence[Estimate]) -> Estimate:
    """An estimate of half-width `half`, computed from estimates of one confidence."""
    samples, rounds = min(e.samples for e in estimates), min(e.rounds for e in estimates)
    return Estimate(value, value - half, value + half, samples, rounds, estimates[0].confidence)


def combine(
    function: Callable[..., float],
    figures: Sequence[Figure],
    confidence: float = SHOWN,
    *,
    signed: bool = False,
) -> Estimate:
    """Estimate function(value, …) of figures.

    The interval is symmetric on the log scale, or on the linear scale for a value that may be
    zero or negative (`signed`). The value is NaN unless each figure has a sample.
    """
    found = propagate(function, figures, signed)
    if not found.samples or isnan(found.value) or isnan(found.error):
        return nothing(confidence)
    low, high = interval(found, confidence, signed)
    variance = found.error**2 + found.slope_error**2
    lasting = (found.lasting**2 + found.slope_error**2) / variance if 0 < variance < inf else 0.0
    return Estimate(
        found.value, low, high, found.samples, found.rounds, confidence, lasting=lasting
    )


def interval(figure: Figure, confidence: float, signed: bool = False) -> tuple[float, float]:
    """The ends of a figure's interval, which is symmetric on the log scale unless `signed`."""
    error = hypot(figure.error, figure.slope_error)
    if not isfinite(error):
        return (-inf if signed else 0.0), inf
    half = float(t(figure.freedom, confidence)) * error
    if signed:
        return figure.value - half, figure.value + half
    middle, half = log(figure.value), half / figure.value
    return _exp(middle - half), _exp(middle + half)


def propagate(
    function: Callable[..., float], figures: Sequence[Figure], signed: bool = False
) -> Figure:
    """Propagate errors to the figure function(value, …) by the delta method; NaN if it has none.

    The errors of figures are independent, except for those of their kinds' slopes. A figure
    that does not affect the value may have an infinite error.
    """
    values = [each.value for each in figures]

    def moved(at: int, by: float) -> float:
        return function(*(v + by * (i == at) for i, v in enumerate(values)))

    value = nan
    with suppress(ZeroDivisionError):  # a ratio to nothing has no value
        value = function(*values)
    rounds = min((each.rounds for each in figures), default=0)
    samples = min((each.samples for each in figures), default=0)
    if isnan(value) or (not signed and value <= 0):
        return Figure(nan, nan, 1, rounds=rounds, samples=samples)
    own, lasting, slopes = [], 0.0, defaultdict[str, float](float)
    for i, each in enumerate(figures):
        step = _STEP * (abs(each.value) or 1.0)
        gradient = (moved(i, step) - moved(i, -step)) / (2 * step)
        own.append((gradient * each.error) ** 2 if gradient else 0.0)
        lasting += (gradient * each.lasting) ** 2 if gradient else 0.0
        slopes[each.kind] += gradient * each.slope_error
    error, freedom = total_error(own, [each.freedom for each in figures])
    kinds = {kind: part for kind, part in slopes.items() if part}
    if len(kinds) == 1:
        kind, slope_error = kinds.popitem()
        return Figure(value, error, freedom, slope_error, kind, sqrt(lasting), rounds, samples)
    # A value of several kinds has no kind; their slopes' errors are independent.
    slope_error = hypot(*kinds.values())
    error, lasting = hypot(error, slope_error), hypot(sqrt(lasting), slope_error)
    return Figure(value, error, freedom, 0.0, "", lasting, rounds, samples)


def t(freedom: float | Floats, confidence: float) -> Floats:
    """Student's t for a two-sided interval; the normal quantile with infinite freedom."""
    inside = (1 + confidence) / 2
    finite = np.minimum(freedom, 1e9)
    return np.asarray(special.stdtrit(finite, inside))


def amount_figure(values: ArrayLike) -> Figure:
    """The median of values with its standard error, for counts and other amounts."""
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if not x.size:
        return Figure(nan, inf, 1)
    error = _MEDIAN * x.std(ddof=1) / sqrt(x.size) if x.size > 1 else inf
    return Figure(
        float(np.median(x)), float(error), max(x.size - 1, 1), rounds=x.size, samples=x.size
    )


def amount(values: ArrayLike, confidence: float = SHOWN) -> Estimate:
    """Estimate a count, or another quantity that may be zero, by the median of values.

    If all values are equal, the interval has no width.
    """
    found = amount_figure(values)
    if not found.samples:
        return nothing(confidence)
    low, high = interval(found, confidence, signed=True)
    return Estimate(found.value, low, high, found.samples, found.rounds, confidence)


def linearity(x: ArrayLike, times: ArrayLike, confidence: float = SHOWN) -> Estimate:
    """Estimate the r² of the straight line through the cost at each x.

    `times` has a row per round and a column per x; a cost is the mean of the logs. The interval
    is that of a bootstrap over the rounds, widened by Student's t over the normal quantile.
    """
    logs = np.log(np.asarray(times, dtype=np.float64))
    at = np.asarray(x, dtype=np.float64)
    offsets = at - at.mean()

    def r2(logs: Floats) -> Floats:
        costs = np.exp(logs.mean(axis=-2))
        costs -= costs.mean(axis=-1, keepdims=True)
        explained = (costs @ offsets) ** 2 / (offsets @ offsets)
        return np.asarray(explained / (costs**2).sum(axis=-1))

    value, rounds, inside = float(r2(logs)), len(logs), (1 + confidence) / 2
    if rounds < 2:
        return Estimate(value, -inf, inf, rounds, rounds, confidence)
    drawn = np.random.default_rng(0).integers(rounds, size=(_DRAWS, rounds))
    ends = np.quantile(r2(logs[drawn]), [1 - inside, inside])
    wider = float(t(rounds - 1, confidence)) / special.ndtri(inside)
    low, high = value + wider * sqrt(rounds / (rounds - 1)) * (ends - value)
    return Estimate(value, float(low), min(float(high), 1), rounds, rounds, confidence)


def share(values: ArrayLike, confidence: float = SHOWN) -> Estimate:
    """Estimate a share (0 to 1), such as a share of a profile's stacks.

    Its interval is computed on the angular scale (the arcsine of the root), where the noise
    hardly depends on the value, and stays within 0 to 1.
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[(x >= 0) & (x <= 1)]
    found = amount(np.arcsin(np.sqrt(x)), confidence)
    low, high = (
        float(np.sin(np.clip(end, 0, np.pi / 2)) ** 2) if isfinite(end) else end
        for end in (found.low, found.high)
    )
    value = float(np.sin(found.value) ** 2)
    return Estimate(value, low, high, found.samples, found.rounds, confidence)


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
    q = float((weight * (centre - (weight * centre).sum() / weight.sum()) ** 2).sum())
    return float(special.chdtrc(len(known) - 1, q))


def _exp(x: float) -> float:
    return exp(x) if x < _LARGEST else inf  # from few rounds an end can overflow


_LARGEST = 700.0  # exp(700) is near the largest float
