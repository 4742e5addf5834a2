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

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp, fsum, inf, isfinite, log, nan, sqrt
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
    group = groups.ngroup().to_numpy()
    sizes = groups.size()
    size = sizes.to_numpy()
    order = np.lexsort([values.to_numpy(), group])
    grouped = values.to_numpy()[order][(group < 0).sum() :]
    first = size.cumsum() - size
    place, below, above = _places(size)
    low = grouped[first + below]
    high = grouped[first + above]
    return pd.Series(low + (place - below) * (high - low), sizes.index)


def _places(size: NDArray[np.integer[Any]]) -> tuple[Floats, Places, Places]:
    """Where the quartile of so many values is when they are in order, and its neighbours."""
    place = np.clip((size + 1 / 3) / 4 - 2 / 3, 0, size - 1)
    below = np.floor(place).astype(int)
    return place, below, np.minimum(below + 1, size - 1)


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
        return float(pd.Series(low + (place - below) * (high - low)).var(ddof=0))
    groups = pd.Index(np.repeat(np.arange(_DRAWS), size), name="draw")
    values = pd.Series(drawn.T.ravel(), groups)
    return float(statistic(values, ["draw"]).var(ddof=0))


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
        return self._replace(variance=self.variance * factor, error=self.error * factor)

    def at(self, error: float) -> float:
        """A prior's variance at an error."""
        if not (self.slope and self.error and error):
            return self.variance
        return float(self.variance * (error / self.error) ** self.slope)


NONE = Spread()


def spread(values: ArrayLike, errors: ArrayLike) -> Spread:
    """The spread of the values of sittings, whose errors are variances."""
    x = np.asarray(values, dtype=np.float64)
    variance = float(x.var(ddof=1)) if x.size > 1 else 0.0
    return Spread(variance, x.size - 1, float(np.asarray(errors).mean()))


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
        return Spread()
    half = d / 2
    logs = _logs(v) - special.digamma(half) + np.log(half)
    weights = d / d.sum()
    e = np.zeros_like(v) if errors is None else np.asarray(errors, dtype=np.float64)
    at, slope, taken = 0.0, 0.0, 1  # degrees of freedom that the mean, and the line, take
    if np.median(e):
        taken = 2
        sizes = _logs(e)
        at = float(weights @ sizes)
        slope = max(float(np.polyfit(sizes - at, logs, 1, w=np.sqrt(weights))[0]), 0.0)
        logs = logs - slope * (sizes - at)
    mean = float(weights @ logs)
    count = 1 / float(weights @ weights)  # of equal weights that know as much
    scatter = float(weights @ (logs - mean) ** 2) * count / max(count - taken, 1)
    excess = scatter - float(weights @ special.polygamma(1, half))
    most = _MOST_FREEDOM / 2
    half_d0 = _inverse_trigamma(excess) if excess > special.polygamma(1, most) else most
    log_s0 = mean + special.digamma(half_d0) - log(half_d0)
    return Spread(exp(log_s0), 2 * half_d0, exp(at), slope)


def _logs(values: Floats) -> Floats:
    """Logs; a value of nearly 0 counts as a small part of the median."""
    return np.asarray(np.log(np.maximum(values, _LEAST * np.median(values))))


def _inverse_trigamma(y: float) -> float:
    """The x whose trigamma is y, by Newton's method, which approaches it from below."""
    x = 0.5 + 1 / y
    for _ in range(50):
        trigamma = special.polygamma(1, x)
        x += trigamma * (1 - trigamma / y) / special.polygamma(2, x)
    return float(x)


def t(freedom: float, confidence: float) -> float:
    """Student's t for a two-sided interval."""
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


def variance(own: Spread, recorded: Spread, prior: Spread) -> Spread:
    """The moderated variance of one sitting, and its freedom: s² in the module's formula."""
    excess = max(own.error - recorded.error, 0.0) if recorded.freedom else 0.0
    freedom = prior.freedom + recorded.freedom + own.freedom
    if not freedom:
        return Spread(inf)
    squares = (
        prior.freedom * prior.at(own.error)
        + recorded.freedom * (recorded.variance + excess)
        + own.freedom * own.variance
    )
    return Spread(squares / freedom, freedom)


# --- Rounds and levels ----------------------------------------------------------------


def usable(samples: pd.DataFrame, metric: str) -> pd.Series:
    """The values of processes, by name, sitting and round. A rate becomes a time per operation.

    Values that are not finite are left out, and those that are zero or negative unless the metric
    is a count.
    """
    values = samples.get(metric, pd.Series(nan, samples.index)).astype(float)
    values = values.set_axis(pd.MultiIndex.from_frame(samples[ROUND]))
    values = values[np.isfinite(values)]
    scale = metrics.scale(metric)
    if scale != "count":
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
    is_count = metrics.scale(metric) == "count"
    values = rounds if is_count else np.log(rounds)
    by = values.groupby(SITTING)
    table = pd.DataFrame({"freedom": by.size() - 1, "variance": by.var()})
    if metrics.scale(metric) in ("time", "rate"):
        table["below"] = ((by.median() - quartile(values, SITTING)) / _NORMAL) ** 2
    table = table[table["freedom"] > 0]
    cases = table.mul(table["freedom"], axis="index").groupby(CASE).sum()
    freedom = table["freedom"].groupby(CASE).sum()
    variances = cases["variance"] / freedom
    prior = fitted(variances, freedom) if moderated else NONE
    if is_count:
        return variances
    if not prior.freedom:
        return cases["below"] / freedom if "below" in cases else variances
    return (prior.freedom * prior.variance + freedom * variances) / (prior.freedom + freedom)


def levels(
    rounds: pd.Series,
    metric: str,
    scatters: pd.Series,
    statistic: Statistic | None = None,
) -> pd.DataFrame:
    """A row per case and sitting: its value, the variance of that (`error`), and its rounds.

    The error is of the value's log, but for counts. `scatters` are the variances of rounds, by
    case.
    """
    chosen = statistic or statistic_of(metric)
    values = chosen(rounds, SITTING)
    sizes = rounds.groupby(SITTING).size()
    factors = sizes.map(lambda size: variance_factor(chosen, size))
    of_case = scatters.reindex(sizes.index.get_level_values(CASE)).to_numpy()
    return pd.DataFrame({"value": values, "error": factors * of_case, "rounds": sizes})


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
        return exp(float(np.log([each.value for each in self.counted]).mean()))

    def at(self, centre: float) -> Figure:
        """The same with another mean: what a machine shows that takes so many times as long."""
        if not self.sittings:
            return self
        factor = centre / self.centre
        sittings = {
            number: Sitting(factor * each.value, factor * each.error, each.rounds)
            for number, each in self.sittings.items()
        }
        alone, shared = (prior.times(factor**2) for prior in (self.alone, self.shared))
        return replace(self, sittings=sittings, alone=alone, shared=shared)

    def spread(self, signed: bool) -> Spread:
        """How far its sittings differ: their logs, or their values if it is `signed`."""
        values = np.array([each.value for each in self.counted])
        errors = np.array([each.error for each in self.counted])
        if signed:
            return spread(values, errors**2)
        return spread(np.log(values), (errors / values) ** 2)

    def has_values(self, signed: bool) -> bool:
        """Whether it has a sitting, and in each one a value that its scale can have."""
        values = [each.value for each in self.sittings.values()]
        return bool(values) and all(isfinite(x) and (signed or x > 0) for x in values)


class Level(NamedTuple):
    """A row of `levels`."""

    value: float
    error: float
    rounds: int


def of_levels(case: Mapping[float, Level], metric: str, n: int) -> Figure:
    """The cost of a case from its levels, by sitting.

    Its prior is the scatter of its own rounds; a rate is turned back from a time per operation.
    """
    scale = metrics.scale(metric)
    sittings = {}
    for number, level in case.items():
        value = 1 / level.value if scale == "rate" else level.value
        deviation = sqrt(level.error) * (1 if scale == "count" else value)
        sittings[number] = Sitting(value, deviation, level.rounds)
    made = Figure(sittings, n)
    own = Spread(_mean_error(made), made.rounds - len(made.counted), _mean_error(made))
    return replace(made, alone=own, shared=own)


def _mean_error(figure: Figure) -> float:
    """The mean variance of its sittings' values, in their unit."""
    return fsum(each.error**2 for each in figure.counted) / max(len(figure.counted), 1)


def propagate(function: Callable[..., float], figures: Sequence[Figure]) -> Figure:
    """The figure function(value, …), in each sitting that all figures have, by the delta method.

    Its recorded figures are the same function of theirs.
    """
    made: dict[float, Sitting] = {}
    slopes: list[list[float]] = []
    for number in sorted(set.intersection(*(set(figure.sittings) for figure in figures))):
        parts = [figure.sittings[number] for figure in figures]
        values = [part.value for part in parts]
        try:
            value = function(*values)
            by = [_slope(function, values, at) for at in range(len(values))]
        except ZeroDivisionError:  # a ratio to nothing has no value
            continue
        deviations = [a * part.error for a, part in zip(by, parts, strict=True) if a]
        error = sqrt(fsum(deviation**2 for deviation in deviations))
        made[number] = Sitting(value, error, min(part.rounds for part in parts))
        slopes.append(by)
    if not all(isfinite(each.value) for each in made.values()):
        made = {}
    squares = np.square(slopes).mean(axis=0) if slopes else np.zeros(len(figures))
    shared = _summed([f.shared for f in figures], squares)
    alone = _summed([figures[0].alone], squares) if len(figures) == 1 else shared
    runs = min(len(figure.history) for figure in figures)
    return Figure(
        made,
        min(figure.n for figure in figures),
        alone,
        shared,
        tuple(propagate(function, [f.history[at] for f in figures]) for at in range(runs)),
        _of_recorded(function, [figure.recorded for figure in figures]),
        "; ".join(dict.fromkeys(figure.run for figure in figures if figure.run)),
    )


def _slope(function: Callable[..., float], values: list[float], at: int) -> float:
    step = _STEP * (abs(values[at]) or 1.0)
    high, low = [*values], [*values]
    high[at] += step
    low[at] -= step
    return (function(*high) - function(*low)) / (2 * step)


def _summed(priors: Sequence[Spread], squares: Floats) -> Spread:
    """The prior of a function of costs, from theirs and the squares of its slopes."""
    parts = [prior.times(square) for prior, square in zip(priors, squares, strict=True) if square]
    if not parts:
        return priors[0].times(0.0)
    return Spread(
        fsum(part.variance for part in parts),
        min(part.freedom for part in parts),
        fsum(part.error for part in parts),
        fsum(part.slope for part in parts) / len(parts),
    )


def _of_recorded(
    function: Callable[..., float], recorded: Sequence[Figure | None]
) -> Figure | None:
    known = [figure for figure in recorded if figure is not None]
    return propagate(function, known) if len(known) == len(recorded) else None


# --- Intervals ------------------------------------------------------------------------


def estimate(figure: Figure, confidence: float = SHOWN, *, signed: bool = False) -> Estimate:
    """A figure with its interval.

    It is symmetric on the log scale, or on the linear scale for a value that may be zero or
    negative (`signed`).
    """
    if not figure.n or not figure.has_values(signed):
        return nothing(confidence)
    values = np.array([each.value for each in figure.counted])
    centre = float(values.mean() if signed else np.log(values).mean())
    value = centre if signed else exp(centre)
    whole = Estimate(value, -inf, inf, figure.n, figure.rounds, confidence)
    if all(each.rounds < FEWEST for each in figure.counted):
        return whole
    made = moderated_spread(figure, signed)
    if not isfinite(made.variance):
        return whole
    half = t(made.freedom, confidence) * sqrt(made.variance / values.size)
    if made.variance:
        explained = figure.spread(signed).error / made.variance
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
        self._of_cases = cache(self._by_case)

    def _rounds(self, metric: str) -> pd.Series:
        statistic = self._statistic(metric)
        return statistic(usable(self.samples, metric), ROUND)

    def _scatter(self, metric: str) -> pd.Series:
        return scatter(self.rounds(metric), metric)

    def _levels(self, metric: str) -> pd.DataFrame:
        scatters = self.whole.scatter(metric)
        return levels(self.rounds(metric), metric, scatters, self._statistic(metric))

    def _statistic(self, metric: str) -> Statistic:
        is_time = metrics.scale(metric) in ("time", "rate")
        return self.statistic if self.statistic and is_time else statistic_of(metric)

    def _by_case(self, metric: str) -> Mapping[str, dict[float, Level]]:
        """The levels of each case, by its name and the sitting."""
        cases = defaultdict[str, dict[float, Level]](dict)
        for (name, number), value, error, size in self.levels(metric).itertuples():
            cases[name][float(number)] = Level(value, error, int(size))
        return cases

    def _alone(self, metric: str) -> Spread:
        """The prior of a single cost by a metric: that of the logs of all costs."""
        table = self.levels(metric)
        table = table[table["rounds"] >= FEWEST].assign(log=lambda rows: np.log(rows["value"]))
        return of_sittings(table, [CASE])

    def _shared(self, scale: str) -> Spread:
        """The prior of ratios of costs on a scale, for each of their two costs."""
        return of_sittings(self.logs(scale), ["claim", "release"]).times(1 / 2)

    def logs(self, scale: str) -> pd.DataFrame:
        """A row per ratio and sitting: claim, release, sitting, log, error (its variance).

        Sittings with fewer than three rounds of a side have none.
        """
        rows = []
        for claim, release, metric, over, under in self.ratios.to_numpy():
            if not _are_alike(metrics.scale(metric), scale):
                continue
            cases = self._of_cases(metric)
            if over not in cases or under not in cases:
                continue
            for number, a in cases[over].items():
                b = cases[under].get(number)
                if b is not None and min(a.rounds, b.rounds) >= FEWEST:
                    ratio = log(a.value / b.value)
                    rows.append((claim, release, number, ratio, a.error + b.error))
        return pd.DataFrame(rows, columns=["claim", "release", "sitting", "log", "error"])

    def cost(self, name: str, metric: str, relatives: Sequence[Costs] = ()) -> Figure:
        """The cost of a case in each sitting.

        `relatives` are the recorded runs, the nearest first; without one, the run itself.
        """
        table = self._of_cases(metric).get(name)
        if table is None:
            return Figure(history=tuple(Figure() for _ in relatives))
        own = of_levels(table, metric, int(self.sizes(metric)[name]))
        past = [each.cost(name, metric) for each in relatives]
        scale = metrics.scale(metric)
        if scale == "count":
            return replace(own, history=tuple(past))
        centre = own.centre
        made = replace(own, history=tuple(each.at(centre) for each in past))
        for run in reversed([*relatives] or [self.whole]):
            alone, shared = run.alone(metric), run.shared(scale)
            if alone.freedom:
                made = replace(made, alone=alone.times(centre**2))
            if shared.freedom:
                made = replace(made, shared=shared.times(centre**2))
        return made

    def _sizes(self, metric: str) -> pd.Series:
        """The number of processes of each case with a usable value."""
        return usable(self.samples, metric).groupby(CASE).size()


def _are_alike(scale: str, other: str) -> bool:
    """Whether two scales have one prior: a rate is read as a time."""
    return scale == other or {scale, other} == {"time", "rate"}


def of_sittings(logs: pd.DataFrame, by: list[str]) -> Spread:
    """The prior of all figures of a kind: a row per figure and sitting, with its log and error.

    Figures with fewer than three sittings do not count.
    """
    groups = logs.groupby(by)
    table = pd.DataFrame(
        {"variance": groups["log"].var(), "k": groups.size(), "error": groups["error"].mean()}
    )
    table = table[table["k"] >= FEWEST].astype(float)
    return fitted(table["variance"], table["k"] - 1, table["error"])


# --- Shares of profiles ---------------------------------------------------------------


def share(profiles: pd.DataFrame) -> Figure:
    """A share (0 to 1) in each sitting, from its profiles: sitting, share, and total.

    Its prior is the scatter of its own profiles.
    """
    groups = profiles.groupby("sitting")
    scatter = groups["share"].var().mean()
    sittings = {}
    for number, part in groups:
        value = float(np.average(part["share"], weights=part["total"]))
        sittings[float(str(number))] = Sitting(value, sqrt(scatter / len(part)), len(part))
    made = Figure(sittings, len(profiles))
    own = Spread(_mean_error(made), len(profiles) - len(sittings), _mean_error(made))
    return replace(made, alone=own, shared=own)


def of_shares(profiles: Sequence[tuple[str, pd.DataFrame]]) -> Spread:
    """The prior of shares, each with a name and its profiles, divided by p·(1 − p)."""
    parts = [pd.DataFrame(columns=["name", "log", "error"])]
    for name, table in profiles:
        figure = share(table)
        p = float(np.mean([each.value for each in figure.counted] or [0.0]))
        if 0 < p < 1:
            size = sqrt(p * (1 - p))
            rows = [(name, each.value / size, (each.error / size) ** 2) for each in figure.counted]
            parts.append(pd.DataFrame(rows, columns=["name", "log", "error"]))
    return of_sittings(pd.concat([part for part in parts if len(part)] or parts), ["name"])


def with_prior(figure: Figure, prior: Spread) -> Figure:
    """A share with the prior of all shares, if there is one."""
    if not prior.freedom:
        return figure
    p = float(np.mean([each.value for each in figure.counted] or [0.0]))
    own = prior.times(p * (1 - p))
    return replace(figure, alone=own, shared=own) if own.variance else figure
