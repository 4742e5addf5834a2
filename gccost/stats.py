"""Estimates and intervals for the campaign, the claims and the charts.

**The undisturbed cost.** Other tenants, the host and the sibling hardware thread can only
slow a loop down. They do so in bursts of milliseconds, and by different factors for
different programs. The cost of a case is therefore its cost on an undisturbed machine:

- `floor` is for a loop that allocates nothing on the Go heap and times its slices. It takes
  the least 5 % quantile of the slices of a round's processes (of one build), and the lower
  quartile over rounds. A busy sibling hardware thread slows whole processes by 10 to 30 %,
  for seconds or minutes, in up to half of the rounds. Layouts differ by 0.3 to 1 %, so the
  lower quartile over builds is at most 0.7 % below their median. The minimum over all
  processes would select the luckiest layout.
- `level` is for every other time: the median-unbiased lower quartile over the accepted
  processes (see `Recording.accepted`), one process per round. Disturbances both raise and
  lower other amounts, such as memory; for these it is the median.

Memory contention slows a loop with a garbage collector although no thread waits for a CPU.
If a process times manual frees between parts of its loop, `relieved` uses them to correct
its time: it subtracts `RELIEF` times their excess over their floor, on the log scale and
beyond `RESTING`. `RESTING` is their excess on a quiet machine, where the loop has emptied
the caches. This explained half of the scatter of accepted processes (finalizer 6.3 to 3.1 %,
AddCleanup 10.5 to 6.4 %) and removed a bias of 6 %. Verdicts about the band of 1.25 needed
half the rounds (a truth of 1.06: 14 to 6, and 28 to 14).

**Intervals** are computed on the log scale. A cost from n processes or rounds has the
half-width 1.5 t s / sqrt(n), where s is the standard deviation of the logs (at least
`LEAST_SPREAD`) and t is Student's. The factor 1.5 (`WIDENING`) allows for the lower
efficiency of a quartile, and for builds and neighbours shared by several rounds. From n = 8
on, s is that of the lower half about the median. If four processes in ten are slowed by up
to 30 %, this halves the interval, which still covers 94 % or more; at 99 % and with a
verdict's margin it errs in fewer than 1 of 1,000 cases. The delta method gives the intervals
of values computed from several costs (a ratio, a difference, a curve's depth), with Welch's
degrees of freedom (`propagate`). Shown 95 % intervals add 3 % (`SYSTEMATIC`) in quadrature for
effects common to all processes of a run. On a disturbed machine both ends of every interval
that compares times are moved out by a factor of 1.25 (`DISTURBED`).

**Verdicts** are computed after the accepted rounds in `LOOKS` only. The 99 % interval must
clear a bound by 5 % (`MARGIN`); see `gccost.judging.rules`. Verdicts are not corrected for
their number.

`gccost.simulation` simulates campaigns on a noisy machine, whose rounds have as much in common
as recorded ones. At every look the 95 % intervals cover 95.7 % or more on a machine that is busy
up to half of the time. If the truth is on a boundary, at most 0.2 % of campaigns decide through
all looks; if it is 5 % from one, no campaign of a thousand decides wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, hypot, inf, isfinite, isnan, log, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from gccost.estimates import JUDGED as JUDGED
from gccost.estimates import LOOKS as LOOKS
from gccost.estimates import SHOWN as SHOWN
from gccost.estimates import SYSTEMATIC as SYSTEMATIC
from gccost.estimates import Estimate as Estimate
from gccost.estimates import Width as Width

Floats = NDArray[np.float64]

LEAST_SPREAD = 0.02  # of the logs; a few processes can agree by chance
HALF_FROM = 8  # the number of logs from which s is that of their lower half
WIDENING = 1.5
MARGIN = 1.05
RELIEF, RESTING = 0.6, 0.08
LOW = 0.25  # the quantile over rounds or processes that estimates the undisturbed time


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a case on the log scale; `spread` is s and `rounds` is n."""

    log: float
    spread: float
    rounds: int
    samples: int

    def figure(self, systematic: float) -> Figure:
        """Its value and errors; the error of a single round is infinite."""
        value = exp(self.log)
        error = WIDENING * self.spread / sqrt(self.rounds) if self.rounds > 1 else inf
        return Figure(value, value * error, max(self.rounds - 1, 1), value * systematic)


def nothing(width: Width = SHOWN) -> Estimate:
    """The estimate without any sample."""
    return Estimate(nan, -inf, inf, 0, 0, width.confidence)


def around(value: float, half: float, estimates: Sequence[Estimate]) -> Estimate:
    """An estimate of half-width `half`, computed from estimates of one confidence."""
    samples, rounds = min(e.samples for e in estimates), min(e.rounds for e in estimates)
    return Estimate(value, value - half, value + half, samples, rounds, estimates[0].confidence)


def floor(quantiles: ArrayLike, rounds: ArrayLike) -> Cost:
    """The cost of a loop timed in slices.

    The arguments have an entry per process: the 5 % quantile of its slices in any unit, and
    its round.
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
    """Times corrected for memory contention by each process's reference.

    `reference` is the time of a manual free in each process and `floor_ns` its floor, in one
    unit. The time of a process without a reference is unchanged.
    """
    above = np.log(np.asarray(reference, dtype=np.float64) / floor_ns) - RESTING
    above = np.where(np.isfinite(above), np.maximum(above, 0.0), 0.0)
    return np.asarray(values, dtype=np.float64) * np.exp(-RELIEF * above)


def level(values: ArrayLike, quantile: float = LOW) -> Cost:
    """The cost of any other case, from an entry per accepted process.

    Values that are missing (NaN) or not positive are ignored.
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

    s is that of the lower half, because disturbances only make times longer.
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
    """Estimate function(cost, …), with each cost in its unit.

    The interval is computed on the log scale, or on the linear scale for a value that may
    be zero or negative (`signed`). The value is NaN unless each cost has a sample.
    """
    samples, rounds = (min(cost.samples for cost in costs), min(cost.rounds for cost in costs))
    if not samples:
        return nothing(width)
    found = propagate(function, [cost.figure(width.systematic) for cost in costs], signed)
    if isnan(found.value) or isnan(found.error):
        return nothing(width)
    low, high = found.interval(width.confidence, signed)
    return Estimate(found.value, low, high, samples, rounds, width.confidence)


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its standard error and that error's degrees of freedom.

    `shared` is the error that all figures of a run have in common. All are in the value's unit.
    """

    value: float
    error: float
    freedom: float
    shared: float = 0.0

    def interval(self, confidence: float, signed: bool) -> tuple[float, float]:
        """The ends of its interval, which is symmetric on the log scale unless `signed`."""
        half = hypot(float(t(self.freedom, confidence)) * self.error, self.shared)
        if signed:
            return self.value - half, self.value + half
        middle, half = log(self.value), half / self.value
        return _exp(middle - half), _exp(middle + half)


def propagate(
    function: Callable[..., float], figures: Sequence[Figure], signed: bool = False
) -> Figure:
    """The figure function(value, …), by the delta method; NaN if the function gives none.

    Its slopes are taken on the log scale unless it is `signed`. Its degrees of freedom are
    Welch's: those of the part with the largest error, up to the sum over all parts if their
    errors are equal. A figure that does not affect it may have an infinite error.
    """
    values = [each.value for each in figures]

    def moved(at: int, by: float) -> float:
        found = function(*(v + by * (i == at) for i, v in enumerate(values)))
        if signed:
            return found
        return log(found) if found > 0 else nan

    value = moved(0, 0.0)
    errors, shared = [], 0.0
    for i, each in enumerate(figures):
        step = _STEP * (abs(each.value) or 1.0)
        slope = (moved(i, step) - moved(i, -step)) / (2 * step)
        errors.append(abs(slope) * each.error if slope else 0.0)
        shared = max(shared, abs(slope) * each.shared)
    error, freedom = welch(errors, [each.freedom for each in figures])
    if not signed and isfinite(value):
        value = exp(value)
        error, shared = error * value, shared * value
    return Figure(value, float(error), float(freedom), shared)


def welch(errors: ArrayLike, freedom: Sequence[float]) -> tuple[Floats, Floats]:
    """The standard error of a sum of independent parts, and Welch's degrees of freedom.

    The parts are along the first axis.
    """
    parts = np.asarray(errors, dtype=np.float64)
    largest = np.maximum(parts.max(axis=0, initial=0), _TINY)
    with np.errstate(invalid="ignore"):  # parts that are infinite, or all 0
        variances = (parts / largest) ** 2
        total = variances.sum(axis=0)
        degrees = np.maximum(np.asarray(freedom, dtype=np.float64), 1)
        found = total**2 / (variances.T**2 / degrees).T.sum(axis=0)
    sound = (total > 0) & np.isfinite(largest)
    error = np.select([np.isinf(largest), total == 0], [inf, 0.0], largest * np.sqrt(total))
    return np.asarray(error), np.where(sound, found, 1.0)


def joint(halves: ArrayLike, rounds: Sequence[int], confidence: float) -> Floats:
    """Half the interval of a sum of independent parts, from those of its parts."""
    freedom = np.maximum(np.asarray(rounds, dtype=np.float64) - 1, 1)
    error, degrees = welch((np.asarray(halves).T / t(freedom, confidence)).T, list(freedom))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(error == 0, 0.0, t(degrees, confidence) * error))


def t(freedom: float | Floats, confidence: float) -> Floats:
    """Student's t for a two-sided interval."""
    return np.asarray(special.stdtrit(freedom, (1 + confidence) / 2))


_TINY = 1e-300
_STEP = 1e-4  # on the log scale, for the slopes of the delta method


def amount(values: ArrayLike, width: Width = SHOWN) -> Estimate:
    """Estimate a count, or another quantity that may be zero, by the median of values.

    If all values are equal, the interval has no width.
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if not x.size:
        return nothing(width)
    value = float(np.median(x))
    half = float(half_width(x.std(ddof=1) if x.size > 1 else nan, x.size, width.confidence))
    return Estimate(value, value - half, value + half, x.size, x.size, width.confidence)


def linearity(x: ArrayLike, times: ArrayLike, width: Width = SHOWN) -> Estimate:
    """Estimate the r² of the straight line through the undisturbed cost at each x.

    `times` has a row per round and a column per x. The interval is that of a bootstrap over
    the rounds, widened as all others are: with a truth on a bound, at most 1 % of simulated
    campaigns decided wrongly (without it 2 to 18 %).
    """
    logs = np.log(np.asarray(times, dtype=np.float64))
    at = np.asarray(x, dtype=np.float64)
    offsets = at - at.mean()

    def r2(logs: Floats) -> Floats:
        costs = np.exp(_quantile(np.swapaxes(logs, -1, -2), LOW))
        costs -= costs.mean(axis=-1, keepdims=True)
        explained = (costs @ offsets) ** 2 / (offsets @ offsets)
        return np.asarray(explained / (costs**2).sum(axis=-1))

    value, rounds, inside = float(r2(logs)), len(logs), (1 + width.confidence) / 2
    drawn = np.random.default_rng(0).integers(rounds, size=(_DRAWS, rounds))
    ends = np.quantile(r2(logs[drawn]), [1 - inside, inside])
    wider = half_width(sqrt(rounds), rounds, width.confidence) / special.ndtri(inside)
    low, high = value + wider * (ends - value) if rounds > 1 else (-inf, inf)
    return Estimate(value, float(low), min(float(high), 1), rounds, rounds, width.confidence)


_DRAWS = 2000


def share(values: ArrayLike, width: Width = SHOWN) -> Estimate:
    """Estimate a share (0 to 1), such as a share of a profile's stacks.

    Its interval is computed on the angular scale (the arcsine of the root), where the noise
    hardly depends on the value, and stays within 0 to 1.
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
    """The factor by which a half-width shrinks from `rounds` to `more` rounds."""
    return float(half_width(1, more, confidence) / half_width(1, rounds, confidence))


def most_unseen(samples: int, confidence: float = 0.95) -> float:
    """Exact upper confidence bound on an event's probability after zero occurrences."""
    return float(1 - (1 - confidence) ** (1 / samples)) if samples else 1.0


def heterogeneity(ratios: Sequence[Estimate]) -> float:
    """The probability p that ratios of one truth scatter at least as much as these.

    Uses Cochran's Q of the log ratios, with the standard errors of their intervals, in
    Welch's form for errors from few rounds. It is valid for measurements whose length was
    fixed beforehand. NaN unless at least two ratios have finite intervals.
    """
    known = [r for r in ratios if r.low > 0 and r.high < inf and r.rounds > 1]
    if len(known) < 2:
        return nan
    ends = np.log([(r.low, r.high) for r in known])
    centre, freedom = ends.mean(axis=1), np.array([r.rounds - 1 for r in known])
    t = special.stdtrit(freedom, [(1 + r.confidence) / 2 for r in known])
    # A ratio without width (constant data) gets a large, finite weight.
    error = np.maximum(np.ptp(ends, axis=1) / 2 / t, 1e-12)
    weight = error**-2
    part = weight / weight.sum()
    others = len(known) - 1
    lack = float(((1 - part) ** 2 / freedom).sum()) / (len(known) ** 2 - 1)
    q = float((weight * (centre - (part * centre).sum()) ** 2).sum())
    f = q / others / (1 + 2 * (others - 1) * lack)
    return float(special.fdtrc(others, 1 / (3 * lack), f))


def half_width(spread: Floats | float, rounds: int, confidence: float) -> Floats:
    """Half the interval from s and the number of rounds; infinite for a single round."""
    if rounds < 2:
        return np.full_like(spread, inf, dtype=np.float64)
    t = float(special.stdtrit(rounds - 1, (1 + confidence) / 2))
    return np.asarray(WIDENING * t * spread / sqrt(rounds))


def _exp(x: float) -> float:
    return exp(x) if x < _LARGEST else inf  # from few rounds an end can overflow


_LARGEST = 700.0  # exp(700) is near the largest float


def _logs(values: ArrayLike) -> Floats:
    """Natural logarithms; NaN for values that have none."""
    x = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(np.where((x > 0) & np.isfinite(x), x, nan))
