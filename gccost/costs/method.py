"""The method: from samples to rounds, to levels, to figures, to intervals.

- **Rounds.** A case has one value per round: the lower quartile of the round's processes. Other
  programs on the machine only slow a loop down. A rate is read as a time per operation; memory and
  counts are medians.
- **Levels.** A case has one level per sitting, which is one call of `make report`: the lower
  quartile of its rounds. Its *error* is the variance that the scatter of rounds gives it.
- **Figures.** A ratio, a difference or any other function of costs is computed in each sitting
  that has all of its sides. The value is the mean over sittings, of logs, or of plain values for
  what may be zero or negative.
- **Intervals.** The sitting is the unit of error. How far sittings differ is seldom known well from
  the few sittings of one figure, so that variance is *moderated* (Smyth 2004): shrunk to a prior
  whose value and degrees of freedom are fitted to all figures of its like. So is the scatter of
  rounds, over the cases of a run and a metric. The prior of a figure grows with its error, since
  what scatters within a sitting differs between sittings, too (a trend, as limma has it).

For m sittings of a run, and k recorded ones of the same figure,

    s² = (d0·s0² + (k − 1)·(v_recorded + excess) + (m − 1)·v_own) / (d0 + k − 1 + m − 1)

where s0² (at the error of the run's own rounds) and d0 are the prior's, and `excess` is by how much
that error exceeds the recorded one. The mean has the variance s²/m, and the interval is Student's t
with d0 + k − 1 + m − 1 degrees of freedom. A figure that was never recorded has the prior alone. A
recorded run is the case without another recorded one.

The prior of a figure of several costs is fitted to the ratios of a run (ratios.csv), since what
slows both sides cancels; that of a single cost to the costs of the run. A count, a share without
relatives, and samples without a run have the scatter of their own rounds as prior.

`data/README.md` computes the same from the run's files with pandas alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp, fsum, inf, isfinite, log, nan, sqrt
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from gccost.costs import metrics
from gccost.stats import FEWEST, SHOWN, Estimate, nothing

Floats = NDArray[np.float64]
Places = NDArray[np.int_]

CASE = "name"
SITTING = [CASE, "sitting"]
ROUND = [*SITTING, "round"]

_DRAWS = 10_000  # samples that show the variance of a statistic
_MOST_FREEDOM = 1e3  # of a prior: with so many degrees its variance is taken as known
_LEAST = 1e-5  # times the median: the least variance that a fit reads (limma has the same)
_NORMAL = 0.6745  # standard deviations from a normal's median to its lower quartile
_STEP = 1e-4  # relative, for the slopes of the delta method
_LARGEST = 700.0  # exp(700) is near the largest float


# --- Statistics of a few values -------------------------------------------------------


Statistic = Callable[[pd.Series, list[str]], pd.Series]
"""What the values of each group of a series become, by levels of its index."""


def quartile(values: pd.Series, by: list[str]) -> pd.Series:
    """The lower quartile of each group, by a definition whose bias hardly depends on its size.

    It is np.quantile(group, 0.25, method="median_unbiased"), for all groups at once.
    """
    groups = values.groupby(by)
    sizes = groups.size()
    size = sizes.to_numpy()
    group = groups.ngroup().to_numpy()
    x = values.to_numpy()
    order = np.lexsort([x, group])
    ungrouped = np.count_nonzero(group < 0)
    grouped = x[order][ungrouped:]
    first = size.cumsum() - size
    place, below, above = _places(size)
    low = grouped[first + below]
    high = grouped[first + above]
    quartiles = low + (place - below) * (high - low)
    return pd.Series(quartiles, sizes.index)


def _places(size: NDArray[np.integer[Any]]) -> tuple[Floats, Places, Places]:
    """Where the quartile of so many values is when they are in order, and its neighbours."""
    last = size - 1
    place = (size + 1 / 3) / 4 - 2 / 3
    place = np.clip(place, 0, last)
    below = np.floor(place).astype(int)
    above = np.minimum(below + 1, last)
    return place, below, above


def median(values: pd.Series, by: list[str]) -> pd.Series:
    """The median of each group."""
    return values.groupby(by).median()


@cache
def variance_factor(statistic: Statistic, size: int) -> float:
    """The variance of a statistic of so many standard normal values, by simulation."""
    drawn = np.random.default_rng(0).normal(size=(size, _DRAWS))
    if statistic is quartile:  # the same, but ten times as fast
        place, below, above = _places(np.array(size))
        ordered = np.partition(drawn, (int(below), int(above)), axis=0)
        low, high = ordered[below], ordered[above]
        quartiles = pd.Series(low + (place - below) * (high - low))
        return float(quartiles.var(ddof=0))
    draw = np.repeat(np.arange(_DRAWS), size)
    groups = pd.Index(draw, name="draw")
    values = pd.Series(drawn.T.ravel(), groups)
    statistics = statistic(values, ["draw"])
    return float(statistics.var(ddof=0))


# --- Moderated variances --------------------------------------------------------------


class Spread(NamedTuple):
    """How far values differ: their variance and its degrees of freedom.

    `error` is the part of the variance that the scatter of rounds explains, on average. A prior's
    variance is that at this error; it grows with the error to the power of `slope`.
    """

    variance: float = 0.0
    freedom: float = 0.0
    error: float = 0.0
    slope: float = 0.0

    def times(self, factor: float) -> Spread:
        """The spread of values that are multiplied: its variances are, by `factor`."""
        variance = self.variance * factor
        error = self.error * factor
        return self._replace(variance=variance, error=error)

    def at(self, error: float) -> float:
        """A prior's variance at an error."""
        if not (self.slope and self.error and error):
            return self.variance
        larger = error / self.error
        return float(self.variance * larger**self.slope)


NONE = Spread()


def spread(values: ArrayLike, errors: ArrayLike) -> Spread:
    """The spread of the values of sittings, whose errors are variances."""
    x = np.asarray(values, dtype=np.float64)
    error = float(np.asarray(errors, dtype=np.float64).mean())
    freedom = x.size - 1
    variance = float(x.var(ddof=1)) if freedom else 0.0
    return Spread(variance, freedom, error)


def fitted(variances: ArrayLike, freedom: ArrayLike, errors: ArrayLike | None = None) -> Spread:
    """The prior of variances, each with its degrees of freedom, by which it weighs.

    They are taken as s0² times a scaled χ² with `freedom` degrees, whose own scale varies as one
    over a χ² with d0 degrees. Fitted by the moments of their logs (Smyth 2004, section 6.2). With
    errors, s0² follows them, by a straight line through the logs. Without three variances over 0
    there is no prior: its freedom is 0.
    """
    v = np.asarray(variances, dtype=np.float64)
    d = np.asarray(freedom, dtype=np.float64)
    if np.count_nonzero(v) < FEWEST or not np.median(v):
        return NONE
    half = d / 2
    weights = d / d.sum()
    logs = _logs(v) - special.digamma(half) + np.log(half)
    centre, slope = 0.0, 0.0
    taken = 1  # degrees of freedom that the mean takes
    e = np.zeros(1) if errors is None else np.asarray(errors, dtype=np.float64)
    if np.median(e):
        sizes = _logs(e)
        centre = float(weights @ sizes)
        sizes = sizes - centre
        slope = _slope_of(sizes, logs, weights)
        logs = logs - slope * sizes
        taken = 2  # with the line
    mean = float(weights @ logs)
    count = 1 / float(weights @ weights)  # of equal weights that know as much
    scatter = float(weights @ (logs - mean) ** 2)
    scatter *= count / max(count - taken, 1)
    chance = float(weights @ special.polygamma(1, half))
    half_d0 = _half_freedom(scatter - chance)
    log_s0 = mean + special.digamma(half_d0) - log(half_d0)
    return Spread(exp(log_s0), 2 * half_d0, exp(centre), slope)


def _slope_of(x: Floats, y: Floats, weights: Floats) -> float:
    """The slope of a straight line through points with weights; 0 if it would fall."""
    slope, _ = np.polyfit(x, y, 1, w=np.sqrt(weights))
    return max(float(slope), 0.0)


def _half_freedom(excess: float) -> float:
    """Half the degrees of freedom of a prior, whose logs scatter by more than chance."""
    most = _MOST_FREEDOM / 2
    if excess <= special.polygamma(1, most):
        return most
    return _inverse_trigamma(excess)


def _logs(values: Floats) -> Floats:
    """Logs; a value of nearly 0 counts as a small part of the median."""
    least = _LEAST * np.median(values)
    raised = np.maximum(values, least)
    return np.asarray(np.log(raised))


def _inverse_trigamma(y: float) -> float:
    """The x whose trigamma is y, by Newton's method, which approaches it from below."""
    x = 0.5 + 1 / y
    for _ in range(50):
        trigamma = special.polygamma(1, x)
        slope = special.polygamma(2, x)
        x += trigamma * (1 - trigamma / y) / slope
    return float(x)


def t(freedom: float, confidence: float) -> float:
    """Student's t for a two-sided interval."""
    below = (1 + confidence) / 2
    return float(special.stdtrit(freedom, below))


def variance(own: Spread, recorded: Spread, prior: Spread) -> Spread:
    """The moderated variance of one sitting, and its freedom: s² in the module's formula."""
    freedom = prior.freedom + recorded.freedom + own.freedom
    if not freedom:
        return Spread(inf)
    excess = max(own.error - recorded.error, 0.0)
    squares = prior.freedom * prior.at(own.error)
    squares += recorded.freedom * (recorded.variance + excess)
    squares += own.freedom * own.variance
    return Spread(squares / freedom, freedom)


# --- Rounds and levels ----------------------------------------------------------------


def usable(samples: pd.DataFrame, metric: str) -> pd.Series:
    """The values of processes, by name, sitting and round. A rate becomes a time per operation.

    Values that are not finite are left out, and those that are zero or negative unless the metric
    is a count.
    """
    missing = pd.Series(nan, samples.index)
    values = samples.get(metric, missing).astype(float)
    rounds = pd.MultiIndex.from_frame(samples[ROUND])
    values = values.set_axis(rounds)
    values = values[np.isfinite(values)]
    scale = metrics.scale(metric)
    if scale == "count":
        return values
    values = values[values > 0]
    return 1 / values if scale == "rate" else values


def statistic_of(metric: str) -> Statistic:
    """The lower quartile for times and rates, the median for memory and counts."""
    return quartile if metrics.scale(metric) in ("time", "rate") else median


def scatter(rounds: pd.Series, metric: str, *, moderated: bool = True) -> pd.Series:
    """The variance of rounds within sittings, by case: of logs, or of counts as they are.

    It is moderated over the cases, but for counts, which have no scale in common. A time that has
    no other case to moderate it has the scatter of its lower half, or one slow round would decide;
    so has each case of those that are not `moderated` because they have nothing in common.
    """
    scale = metrics.scale(metric)
    values = rounds if scale == "count" else np.log(rounds)
    by_sitting = values.groupby(SITTING)
    freedom = by_sitting.size() - 1
    freedom = freedom[freedom > 0]
    variances = _pooled(by_sitting.var(), freedom)
    if scale == "count":
        return variances
    freedom_of_case = freedom.groupby(CASE).sum()
    prior = fitted(variances, freedom_of_case) if moderated else NONE
    if prior.freedom:
        squares = prior.freedom * prior.variance + freedom_of_case * variances
        return squares / (prior.freedom + freedom_of_case)
    if scale == "amount":
        return variances
    lower_half = by_sitting.median() - quartile(values, SITTING)
    deviations = lower_half / _NORMAL
    return _pooled(deviations**2, freedom)


def _pooled(variances: pd.Series, freedom: pd.Series) -> pd.Series:
    """The variance of each case, from its sittings', by their degrees of freedom."""
    squares = variances * freedom
    by_case = squares.reindex(freedom.index).groupby(CASE)
    return by_case.sum() / freedom.groupby(CASE).sum()


def levels(
    rounds: pd.Series,
    metric: str,
    scatters: pd.Series,
    statistic: Statistic | None = None,
) -> pd.DataFrame:
    """A row per case and sitting: its value, the variance of that, and its rounds.

    The variance is of the value's log, but for counts. `scatters` are those of rounds, by case.
    """
    chosen = statistic or statistic_of(metric)
    values = chosen(rounds, SITTING)
    sizes = rounds.groupby(SITTING).size()
    factors = sizes.map(lambda size: variance_factor(chosen, size))
    of_case = scatters.reindex(sizes.index.get_level_values(CASE)).to_numpy()
    return pd.DataFrame({"value": values, "variance": factors * of_case, "rounds": sizes})


# --- Figures --------------------------------------------------------------------------


class Sitting(NamedTuple):
    """The value of a sitting, its standard error within the sitting, and its rounds."""

    value: float
    error: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A value in each sitting, by the sitting's number.

    `alone` is the prior of a cost that is shown by itself; `shared` is its part of the prior of a
    function of several costs. Both are in the unit of the value. `n` is the number of processes.
    `history` has the same figure of recorded runs, the nearest first, which show how far sittings
    differ. `recorded` is the recorded figure that a page shows if this one has no value. `run` is
    the name of the run, or the names of several.
    """

    sittings: Mapping[float, Sitting] = field(default_factory=dict)
    n: int = 0
    alone: Spread = NONE
    shared: Spread = NONE
    history: tuple[Figure, ...] = ()
    recorded: Figure | None = None
    run: str = ""

    def __repr__(self) -> str:
        return "…"

    @property
    def counted(self) -> list[Sitting]:
        """The sittings with enough rounds, or all if none has enough, by number."""
        every = [self.sittings[number] for number in sorted(self.sittings)]
        return [each for each in every if each.rounds >= FEWEST] or every

    @property
    def rounds(self) -> int:
        """The number of its rounds."""
        return sum(each.rounds for each in self.counted)

    @property
    def centre(self) -> float:
        """The geometric mean over its sittings."""
        values = [each.value for each in self.counted]
        return exp(float(np.log(values).mean()))

    def at(self, centre: float) -> Figure:
        """The same with another mean: what a machine shows that takes so many times as long."""
        if not self.sittings:
            return self
        factor = centre / self.centre
        sittings = {}
        for number, each in self.sittings.items():
            value = factor * each.value
            error = factor * each.error
            sittings[number] = Sitting(value, error, each.rounds)
        alone = self.alone.times(factor**2)
        shared = self.shared.times(factor**2)
        return replace(self, sittings=sittings, alone=alone, shared=shared)

    def only(self, numbers: Collection[float]) -> Figure:
        """Its sittings with these numbers. Its priors keep their size relative to its mean."""
        if self.sittings.keys() <= set(numbers):
            return self
        kept = {number: each for number, each in self.sittings.items() if number in numbers}
        fewer = replace(self, sittings=kept)
        if not (self.has_values(signed=False) and fewer.has_values(signed=False)):
            return fewer
        factor = fewer.centre / self.centre
        alone = self.alone.times(factor**2)
        shared = self.shared.times(factor**2)
        return replace(fewer, alone=alone, shared=shared)

    def spread(self, signed: bool) -> Spread:
        """How far its sittings differ: their logs, or their values if it is `signed`."""
        values = np.array([each.value for each in self.counted])
        errors = np.array([each.error for each in self.counted])
        if signed:
            return spread(values, errors**2)
        of_logs = errors / values
        return spread(np.log(values), of_logs**2)

    def has_values(self, signed: bool) -> bool:
        """Whether it has a sitting, and in each one a value that its scale can have."""
        for each in self.sittings.values():
            if not isfinite(each.value):
                return False
            if each.value <= 0 and not signed:
                return False
        return bool(self.sittings)


class Level(NamedTuple):
    """A row of `levels`."""

    value: float
    variance: float
    rounds: int


def of_levels(case: Mapping[float, Level], metric: str, n: int) -> Figure:
    """The cost of a case from its levels, by sitting.

    Its prior is the scatter of its own rounds; a rate is turned back from a time per operation.
    """
    scale = metrics.scale(metric)
    sittings = {}
    for number, level in case.items():
        value, error = level.value, sqrt(level.variance)
        if scale == "rate":
            value = 1 / value
        if scale != "count":
            error *= value
        sittings[number] = Sitting(value, error, level.rounds)
    return _with_own_prior(Figure(sittings, n))


def _with_own_prior(figure: Figure) -> Figure:
    """A figure whose prior is the scatter of its own rounds."""
    counted = figure.counted
    if not counted:
        return figure
    errors = [each.error**2 for each in counted]
    error = fsum(errors) / len(errors)
    own = Spread(error, figure.rounds - len(counted), error)
    return replace(figure, alone=own, shared=own)


def propagate(function: Callable[..., float], figures: Sequence[Figure]) -> Figure:
    """The figure function(value, …), in each sitting that all figures have, by the delta method.

    Its recorded figures are the same function of theirs.
    """
    common = set.intersection(*(set(figure.sittings) for figure in figures))
    figures = [figure.only(common) for figure in figures]
    made: dict[float, Sitting] = {}
    slopes: list[list[float]] = []
    for number in sorted(common):
        parts = [figure.sittings[number] for figure in figures]
        values = [part.value for part in parts]
        try:
            value = function(*values)
            slope = [_slope(function, values, place) for place in range(len(values))]
        except ZeroDivisionError:  # a ratio to nothing has no value
            continue
        errors = [a * part.error for a, part in zip(slope, parts, strict=True) if a]
        error = sqrt(fsum(each**2 for each in errors))
        rounds = min(part.rounds for part in parts)
        made[number] = Sitting(value, error, rounds)
        slopes.append(slope)
    if not all(isfinite(each.value) for each in made.values()):
        made = {}
    squares = np.zeros(len(figures))
    if slopes:
        squares = np.square(slopes).mean(axis=0)
    shared = _summed([figure.shared for figure in figures], squares)
    alone = shared
    if len(figures) == 1:
        alone = _summed([figures[0].alone], squares)
    runs = dict.fromkeys(figure.run for figure in figures)
    return Figure(
        made,
        n=min(figure.n for figure in figures),
        alone=alone,
        shared=shared,
        history=_of_history(function, figures),
        recorded=_of_recorded(function, figures),
        run="; ".join(filter(None, runs)),
    )


def _slope(function: Callable[..., float], values: list[float], place: int) -> float:
    """The slope of a function by one of its values."""
    value = values[place]
    step = _STEP * (abs(value) or 1.0)
    above = function(*values[:place], value + step, *values[place + 1 :])
    below = function(*values[:place], value - step, *values[place + 1 :])
    return (above - below) / (2 * step)


def _summed(priors: Sequence[Spread], squares: Floats) -> Spread:
    """The prior of a function of costs, from theirs and the squares of its slopes."""
    parts = []
    for prior, square in zip(priors, squares, strict=True):
        if square:
            parts.append(prior.times(square))
    if not parts:
        return priors[0].times(0.0)
    variance = fsum(part.variance for part in parts)
    freedom = min(part.freedom for part in parts)
    error = fsum(part.error for part in parts)
    slope = fsum(part.slope for part in parts)
    return Spread(variance, freedom, error, slope / len(parts))


def _of_history(function: Callable[..., float], figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """The function of the figures of each recorded run that all of them have."""
    by_run = zip(*(figure.history for figure in figures), strict=False)
    return tuple(propagate(function, of_run) for of_run in by_run)


def _of_recorded(function: Callable[..., float], figures: Sequence[Figure]) -> Figure | None:
    """The function of the recorded figures, if all have one."""
    recorded = [figure.recorded for figure in figures if figure.recorded is not None]
    if len(recorded) < len(figures):
        return None
    return propagate(function, recorded)


# --- Intervals ------------------------------------------------------------------------


def estimate(figure: Figure, confidence: float = SHOWN, *, signed: bool = False) -> Estimate:
    """A figure with its interval.

    It is symmetric on the log scale, or on the linear scale for a value that may be zero or
    negative (`signed`).
    """
    if not figure.n or not figure.has_values(signed):
        return nothing(confidence)
    counted = figure.counted
    value = fmean(each.value for each in counted) if signed else figure.centre
    whole = Estimate(value, -inf, inf, figure.n, figure.rounds, confidence)
    if all(each.rounds < FEWEST for each in counted):
        return whole
    spread_of_one = moderated_spread(figure, signed)
    if not isfinite(spread_of_one.variance):
        return whole
    error = sqrt(spread_of_one.variance / len(counted))
    half = t(spread_of_one.freedom, confidence) * error
    if spread_of_one.variance:
        explained = figure.spread(signed).error / spread_of_one.variance
        whole = replace(whole, lasting=max(1 - explained, 0.0))
    if signed:
        return replace(whole, low=value - half, high=value + half)
    factor = exp(half) if half < _LARGEST else inf
    return replace(whole, low=value / factor, high=value * factor)


def moderated_spread(figure: Figure, signed: bool) -> Spread:
    """The moderated variance of one sitting of a figure: of its log, or of what is `signed`."""
    if not figure.counted:
        return Spread(nan)
    own = figure.spread(signed)
    prior = figure.alone
    if not signed:
        prior = prior.times(figure.centre**-2)
    return variance(own, history(figure, signed), prior)


def history(figure: Figure, signed: bool = False) -> Spread:
    """How far recorded sittings of a figure differ: in the nearest run that has enough of them."""
    usable = [each for each in figure.history if each.has_values(signed)]
    for fewest in (FEWEST, 2):
        for each in usable:
            counted = [sitting for sitting in each.counted if sitting.rounds >= FEWEST]
            if len(counted) >= fewest:
                return each.spread(signed)
    return Spread()


# --- The costs of a run ---------------------------------------------------------------


RATIOS = ["claim", "release", "metric", "over", "under"]
"""The columns of ratios.csv: the claim and release, and the names of the two cases' samples."""


class Costs:
    """The costs of a run's cases. What is computed is kept by metric.

    `samples` has a row per process, and `ratios` a row per ratio of the run, to which the prior of
    figures of several costs is fitted. If the processes are some of a run, `whole` has all of it.
    """

    def __init__(
        self,
        samples: pd.DataFrame,
        ratios: pd.DataFrame | None = None,
        statistic: Statistic | None = None,
        whole: Costs | None = None,
    ) -> None:
        self.samples = samples
        self.ratios = pd.DataFrame(columns=RATIOS) if ratios is None else ratios
        self.statistic = statistic
        self.whole = whole or self
        self.rounds = cache(self._rounds)
        self.scatter = cache(self._scatter)
        self.levels = cache(self._levels)
        self.sizes = cache(self._sizes)
        self.alone = cache(self._alone)
        self.shared = cache(self._shared)
        self.of_cases = cache(self._of_cases)

    def _rounds(self, metric: str) -> pd.Series:
        processes = usable(self.samples, metric)
        statistic = self._statistic(metric)
        return statistic(processes, ROUND)

    def _scatter(self, metric: str) -> pd.Series:
        return scatter(self.rounds(metric), metric)

    def _levels(self, metric: str) -> pd.DataFrame:
        rounds = self.rounds(metric)
        scatters = self.whole.scatter(metric)
        return levels(rounds, metric, scatters, self._statistic(metric))

    def _statistic(self, metric: str) -> Statistic:
        if self.statistic and metrics.scale(metric) in ("time", "rate"):
            return self.statistic
        return statistic_of(metric)

    def _of_cases(self, metric: str) -> Mapping[str, dict[float, Level]]:
        """The levels of each case, by its name and the sitting."""
        cases: dict[str, dict[float, Level]] = {}
        for (name, number), value, variance, size in self.levels(metric).itertuples():
            of_case = cases.setdefault(name, {})
            of_case[float(number)] = Level(value, variance, int(size))
        return cases

    def _alone(self, metric: str) -> Spread:
        """The prior of a single cost by a metric: that of the logs of all costs."""
        table = self.levels(metric)
        table = table[table["rounds"] >= FEWEST]
        table = table.assign(value=np.log(table["value"]))
        return of_sittings(table, [CASE])

    def _shared(self, scale: str) -> Spread:
        """The prior of ratios of costs on a scale, for each of their two costs."""
        of_ratios = of_sittings(self.logs(scale), ["claim", "release"])
        return of_ratios.times(1 / 2)

    def logs(self, scale: str) -> pd.DataFrame:
        """A row per ratio and sitting: claim, release, sitting, value (its log), variance.

        Sittings with fewer than three rounds of a side have none.
        """
        rows = []
        for claim, release, metric, over, under in self.ratios.to_numpy():
            if not _are_alike(metrics.scale(metric), scale):
                continue
            cases = self.of_cases(metric)
            bottoms = cases.get(under, {})
            for number, top in cases.get(over, {}).items():
                bottom = bottoms.get(number)
                if bottom is None or min(top.rounds, bottom.rounds) < FEWEST:
                    continue
                ratio = log(top.value / bottom.value)
                variance = top.variance + bottom.variance
                rows.append((claim, release, number, ratio, variance))
        return pd.DataFrame(rows, columns=["claim", "release", "sitting", "value", "variance"])

    def cost(self, name: str, metric: str, relatives: Sequence[Costs] = ()) -> Figure:
        """The cost of a case in each sitting.

        `relatives` are the recorded runs, the nearest first; without one, the run itself.
        """
        of_case = self.of_cases(metric).get(name)
        if of_case is None:
            return Figure(history=tuple(Figure() for _ in relatives))
        n = int(self.sizes(metric)[name])
        own = of_levels(of_case, metric, n)
        past = [each.cost(name, metric) for each in relatives]
        scale = metrics.scale(metric)
        if scale == "count":
            return replace(own, history=tuple(past))
        centre = own.centre
        past = [figure.at(centre) for figure in past]
        runs = [*relatives] or [self.whole]
        alone = _first(run.alone(metric) for run in runs).times(centre**2)
        shared = _first(run.shared(scale) for run in runs).times(centre**2)
        return replace(
            own,
            history=tuple(past),
            alone=alone if alone.freedom else own.alone,
            shared=shared if shared.freedom else own.shared,
        )

    def _sizes(self, metric: str) -> pd.Series:
        """The number of processes of each case with a usable value."""
        return usable(self.samples, metric).groupby(CASE).size()


def _first(priors: Iterable[Spread]) -> Spread:
    """The first prior that could be fitted; NONE if there is none."""
    return next((prior for prior in priors if prior.freedom), NONE)


def _are_alike(scale: str, other: str) -> bool:
    """Whether two scales have one prior: a rate is read as a time."""
    return scale == other or {scale, other} == {"time", "rate"}


def of_sittings(values: pd.DataFrame, by: list[str]) -> Spread:
    """The prior of all figures of a kind: a row per figure and sitting, with value and variance.

    Figures with fewer than three sittings do not count.
    """
    groups = values.groupby(by)
    sizes = groups.size()
    table = pd.DataFrame({"variance": groups["value"].var(), "error": groups["variance"].mean()})
    table = table[sizes >= FEWEST].astype(float)
    freedom = sizes[sizes >= FEWEST] - 1
    return fitted(table["variance"], freedom, table["error"])


# --- Shares of profiles ---------------------------------------------------------------


def share(profiles: pd.DataFrame) -> Figure:
    """A share (0 to 1) in each sitting, from its profiles: sitting, share, and total.

    Its prior is the scatter of its own profiles.
    """
    groups = profiles.groupby("sitting")
    scatter_within = groups["share"].var().mean()
    sittings = {}
    for number, part in groups:
        value = float(np.average(part["share"], weights=part["total"]))
        error = sqrt(scatter_within / len(part))
        sittings[float(str(number))] = Sitting(value, error, len(part))
    return _with_own_prior(Figure(sittings, len(profiles)))


def of_shares(profiles: Sequence[tuple[str, pd.DataFrame]]) -> Spread:
    """The prior of shares, each with a name and its profiles, divided by p·(1 − p)."""
    rows = []
    for name, table in profiles:
        figure = share(table)
        unit = _unit(figure)
        if not unit:
            continue
        for each in figure.counted:
            rows.append((name, each.value / unit, (each.error / unit) ** 2))
    table = pd.DataFrame(rows, columns=["name", "value", "variance"])
    return of_sittings(table, ["name"])


def _unit(figure: Figure) -> float:
    """The standard deviation of one draw with a share's chance, p: √(p·(1 − p))."""
    if not figure.counted:
        return 0.0
    p = fmean(each.value for each in figure.counted)
    return sqrt(max(p * (1 - p), 0.0))


def with_prior(figure: Figure, prior: Spread) -> Figure:
    """A share with the prior of all shares, if there is one."""
    unit = _unit(figure)
    own = prior.times(unit**2)
    if not own.freedom or not own.variance:
        return figure
    return replace(figure, alone=own, shared=own)
