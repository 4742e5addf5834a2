"""The costs of a run's cases in each sitting, and what the cases of a kind of loop have in common.

A kind is a column of jobs.csv, used to pool a spread over cases, and for nothing else.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from gccost import stats
from gccost.costs import metrics, samples
from gccost.costs.recorded import recorded
from gccost.errors import GccostError
from gccost.run.runs import Run, cached
from gccost.stats import FEWEST, Figure, Sitting

SITTING = ["kind", "name", "sitting"]  # what tells the sittings of cases apart
ROUND = [*SITTING, "round"]
_CASE = "name"
_NORMAL = 0.6745  # standard deviations from a normal's median to its lower quartile


class Level(NamedTuple):
    """How the values of groups become one each, and its variance over the variance of a mean."""

    of: Callable[[pd.Series, list[str]], pd.Series]
    variance: float


def quartile(values: pd.Series, by: list[str]) -> pd.Series:
    """The lower quartile of each group, by a definition whose bias hardly depends on its size.

    It is np.quantile(group, 0.25, method="median_unbiased"), for all groups at once.
    """
    groups = values.groupby(by)
    group, sizes, numbers = groups.ngroup().to_numpy(), groups.size(), values.to_numpy()
    ordered = numbers[np.lexsort([numbers, group])][(group < 0).sum() :]
    size = sizes.to_numpy()
    first, last = size.cumsum() - size, size.cumsum() - 1
    place = np.clip((size + 1 / 3) / 4 - 2 / 3, 0, size - 1)
    at = np.floor(place).astype(int)
    low, high = ordered[first + at], ordered[np.minimum(first + at + 1, last)]
    return pd.Series(low + (place - at) * (high - low), sizes.index)


def scatter(logs: pd.Series) -> pd.Series:
    """The standard deviation of rounds by kind, from the lower halves of the cases' sittings.

    It is that of normal errors whose lower quartile lies as far below their median. `logs` has a
    value for each round, by kind, name, sitting and round. Sittings of fewer than `FEWEST` rounds
    show none.
    """
    groups = logs.groupby(SITTING)
    below = (groups.median() - quartile(logs, SITTING))[groups.size() >= FEWEST]
    return below.groupby("kind").agg(math.fsum) / below.groupby("kind").size() / _NORMAL


def _median(values: pd.Series, by: list[str]) -> pd.Series:
    return values.groupby(by).median()


LOWER_QUARTILE = Level(quartile, stats.QUARTILE)  # of every time in the package
MEDIAN = Level(_median, stats.MEDIAN)


class Kinds:
    """The processes of a run in its sittings. Its tables are kept by metric.

    `frame` has a row per process, in the columns of `Samples`, and `times` is how a sitting's
    times become one. If the processes are some of a case only, `whole` has all of the run.
    """

    def __init__(
        self, frame: pd.DataFrame, times: Level = LOWER_QUARTILE, whole: Kinds | None = None
    ) -> None:
        self.frame, self.times, self.whole = frame, times, whole or self
        self.kind_of = dict(zip(frame["name"], frame["kind"], strict=True))
        self.values, self.rounds = cache(self._values), cache(self._rounds)
        self.scatter, self.spread = cache(self._scatter), cache(self._spread)
        self.sittings, self.count = cache(self._sittings), cache(self._count)

    def cost(
        self, name: str, metric: str, usual: Kinds, only: Callable[[float], bool] = bool
    ) -> Figure:
        """The cost of a case in each sitting, or in those whose numbers are wanted.

        Its kind's spread between sittings is the `usual` one.
        """
        every = self.sittings(metric).get(name, {})
        if not (sittings := {number: every[number] for number in every if only(number)}):
            return Figure()
        spreads, kind = usual.spread(metric), self.kind_of[name]
        apart = spreads.get(kind.partition(", ")[0], math.nan)  # of another method, or under load
        centre = float(np.mean([each.value for each in sittings.values()]))
        return Figure(sittings, spreads.get(kind, apart) * centre, self.count(metric)[name])

    def _values(self, metric: str) -> pd.Series:
        """The finite values of a metric: positive ones, unless it is a count."""
        values = self.frame.get(metric, pd.Series(math.nan, self.frame.index)).astype(float)
        values = values.set_axis(pd.MultiIndex.from_frame(self.frame[ROUND]))
        return values[np.isfinite(values) & ((values > 0) | (metrics.kind(metric) == "count"))]

    def _count(self, metric: str) -> Mapping[str, int]:
        """The number of processes by the case's name."""
        sizes = self.values(metric).groupby(_CASE).size()
        return {str(name): n for name, n in sizes.items()}

    def _level(self, metric: str) -> Level:
        return self.times if metrics.kind(metric) in ("time", "rate") else MEDIAN

    def _rounds(self, metric: str) -> pd.Series:
        """One value per round. A rate is inverted: a time per operation."""
        values = self.values(metric)
        values = 1 / values if metrics.kind(metric) == "rate" else values
        return self._level(metric).of(values, ROUND)

    def _sittings(self, metric: str) -> Mapping[str, Mapping[float, Sitting]]:
        """What each sitting of each case shows, by the case's name.

        The error is that of the kind's rounds. A count has the standard deviation of its own.
        """
        how, rounds, level = metrics.kind(metric), self.rounds(metric), self._level(metric)
        groups, made = rounds.groupby(SITTING), defaultdict[str, dict[float, Sitting]](dict)
        if how == "count":
            scatter = (groups.var().groupby(_CASE).mean() ** 0.5).to_dict()
        else:
            scatter = self.whole.scatter(metric).to_dict()
        values = level.of(rounds, SITTING)
        for (kind, name, number), value, n in zip(values.index, values, groups.size(), strict=True):
            value = 1 / value if how == "rate" else value
            of = scatter.get(name if how == "count" else kind, math.nan)
            error = of * math.sqrt(level.variance / n)
            made[name][number] = Sitting(value, error if how == "count" else error * value, n)
        return made

    def _scatter(self, metric: str) -> pd.Series:
        """The standard deviation of the logs of rounds, by kind."""
        return scatter(np.log(self.rounds(metric)))

    def _spread(self, metric: str) -> Mapping[str, float]:
        """The standard deviation of the logs of sittings, pooled over the cases of a kind.

        It lacks a kind without a case that has two sittings that count, and counts have none.
        """
        if metrics.kind(metric) == "count" or self.frame.empty:
            return {}
        freedom, squares = defaultdict[str, int](int), defaultdict[str, list[float]](list)
        for name, sittings in self.sittings(metric).items():
            own, k = stats.between(Figure(sittings))
            if k > 1:
                freedom[self.kind_of[name]] += k - 1
                squares[self.kind_of[name]].append((k - 1) * own)
        return {kind: math.sqrt(math.fsum(squares[kind]) / k) for kind, k in freedom.items()}


@cached
def of_run(run: Run) -> Kinds:
    """The costs of a run's loops, but for profiled ones."""
    frame, table = samples.of_run(run).frame, run.table()
    profiled = [name for name, job in table.items() if "profile" in job]
    return Kinds(frame[~frame["name"].isin(profiled)])


@cached
def of_recorded(run: Run) -> Kinds:
    """The run whose run-to-run spreads a run uses: the recorded one, or itself without one."""
    try:
        return of_run((recorded() or [run])[-1])
    except GccostError:  # a damaged one
        return of_run(run)


def share(profiles: pd.DataFrame) -> Figure:
    """A share (0 to 1) in each sitting, from its profiles: sitting, share, and total."""
    groups = profiles.groupby("sitting")
    scatter = math.sqrt(groups["share"].var().mean())
    made = {}
    for number, part in groups:
        value = float(np.average(part["share"], weights=part["total"]))
        made[float(str(number))] = Sitting(value, scatter / math.sqrt(len(part)), len(part))
    return Figure(made, math.nan, len(profiles))
