"""The kinds of loop of a run: how much their processes scatter, and how sittings differ.

A kind is a column of jobs.csv, used to pool a spread over cases, and for nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gccost import stats
from gccost.errors import GccostError
from gccost.judging import metrics, samples
from gccost.judging.recorded import recorded
from gccost.measuring.runs import Run, cached
from gccost.stats import Figure, Floats, Sitting

Cells = Mapping[float, Floats]
"""The values of rounds, by sitting."""


class Level(NamedTuple):
    """How several times become one, and the variance of that over the variance of a mean."""

    of: Callable[[Floats], float]
    variance: float


LOWER_QUARTILE = Level(stats.quartile, stats.QUARTILE)  # of every time in the package
MEDIAN = Level(np.median, stats.MEDIAN)


class Kinds:
    """The kinds of a run; copies are the same object."""

    def __init__(self, frame: pd.DataFrame, times: Level = LOWER_QUARTILE) -> None:
        """`frame` has the processes of a run, in the columns of `Samples`."""
        self.frame, self.times = frame, times
        kinds = frame.drop_duplicates("name")[["kind", "name"]]
        self._cases = kinds.groupby("kind")["name"].agg(list).to_dict()
        self.cells = cache(self._cells)
        self.scatter = cache(self._scatter)
        self.spread = cache(self._spread)

    def __deepcopy__(self, memo: Any) -> Kinds:
        return self

    def _cells(self, metric: str) -> Mapping[str, Cells]:
        """The rounds of every case, by its name."""
        return cells(self.frame, metric, self.times)

    def _of(self, kind: str, metric: str) -> Iterable[Cells]:
        if metrics.kind(metric) == "count":  # has a scatter of its own
            return []
        known = self.cells(metric)
        return [known[name] for name in self._cases.get(kind, ()) if name in known]

    def _scatter(self, kind: str, metric: str) -> float:
        """The standard deviation of the logs of a kind's rounds, see `stats.scatter`."""
        return stats.scatter(
            [np.log(each) for case in self._of(kind, metric) for each in case.values()]
        )

    def _spread(self, kind: str, metric: str) -> float:
        """The standard deviation of the logs of a kind's sittings, pooled over cases.

        NaN if no case of the kind has two sittings that count.
        """
        scatter = self._scatter(kind, metric)
        found = [
            stats.between(cost(case, metric, scatter, math.nan, times=self.times))
            for case in self._of(kind, metric)
        ]
        freedom = sum(k - 1 for _, k in found if k > 1)
        pooled = math.fsum((k - 1) * own for own, k in found if k > 1)
        return math.sqrt(pooled / freedom) if freedom else math.nan


@cached
def of_run(run: Run) -> Kinds:
    """The kinds of a run's loops."""
    if not run.samples_txt.exists():
        return Kinds(pd.DataFrame(columns=["name", "kind", "sitting", "round"]))
    frame, table = samples.of_run(run).frame, run.table()
    profiled = [name for name, job in table.items() if "profile" in job]
    return Kinds(frame[~frame["name"].isin(profiled)])


@cached
def of_recorded(run: Run) -> Kinds:
    """The kinds whose run-to-run spread a run uses: the recorded run's, or its own without one."""
    try:
        return of_run((recorded() or [run])[-1])
    except GccostError:  # a damaged one
        return of_run(run)


def usable(processes: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The processes with a finite value of a metric: a positive one, unless it is a count."""
    if metric not in processes:
        return pd.DataFrame(columns=["name", "sitting", "round", metric])
    values = processes[metric].astype(float)
    is_usable = np.isfinite(values) & ((values > 0) | (metrics.kind(metric) == "count"))
    known: pd.DataFrame = processes[is_usable]
    return known[["name", "sitting", "round", metric]]


def cells(processes: pd.DataFrame, metric: str, times: Level = LOWER_QUARTILE) -> dict[str, Cells]:
    """One value per round of each case in each sitting, by the case's name.

    It is the lower quartile of the round's processes (`times`), or the median of an amount. A rate
    is inverted: a time per operation.
    """
    how, known = metrics.kind(metric), usable(processes, metric)
    known = known.sort_values(["name", "sitting", "round"], kind="stable")
    values = known[metric].to_numpy(dtype=np.float64)
    values = 1 / values if how == "rate" else values
    level = times.of if how in ("time", "rate") else MEDIAN.of
    made: dict[str, dict[float, list[float]]] = {}
    keys = list(zip(known["name"], known["sitting"], known["round"], strict=True))
    ends = [i for i in range(1, len(keys)) if keys[i] != keys[i - 1]] + [len(keys)]
    start = 0
    for end in ends if keys else ():
        name, sitting, _ = keys[start]
        part = values[start:end]
        value = float(level(part)) if end - start > 1 else float(part[0])
        made.setdefault(str(name), {}).setdefault(float(sitting), []).append(value)
        start = end
    return {
        name: {sitting: np.array(rounds) for sitting, rounds in case.items()}
        for name, case in made.items()
    }


def cost(
    case: Cells,
    metric: str,
    scatter: float,
    spread: float,
    n: int = 0,
    times: Level = LOWER_QUARTILE,
) -> Figure:
    """The cost of a case in each sitting, from the values of its rounds and `n` processes.

    `scatter` is the standard deviation of the logs of its kind's rounds, and `spread` that of
    its sittings. A count has the standard deviation of its own values in place of the first.
    """
    how = metrics.kind(metric)
    if how == "count":
        own = [float(values.var(ddof=1)) for values in case.values() if values.size > 1]
        scatter = math.sqrt(math.fsum(own) / len(own)) if own else math.nan
    by = times if how in ("time", "rate") else MEDIAN
    made = {}
    for number, values in case.items():
        level = float(by.of(values))
        level = 1 / level if how == "rate" else level
        error = scatter * math.sqrt(by.variance / values.size)
        made[number] = Sitting(level, error if how == "count" else error * level, values.size)
    centre = float(np.mean([each.value for each in made.values()])) if made else math.nan
    return Figure(made, math.nan if how == "count" else spread * centre, n)


def share(profiles: pd.DataFrame) -> Figure:
    """A share (0 to 1) in each sitting, from its profiles: sitting, share, and total."""
    made, groups = {}, profiles.groupby("sitting")
    own = groups["share"].var().dropna()
    scatter = math.sqrt(own.mean()) if len(own) else math.nan
    for number, part in groups:
        value = float(np.average(part["share"], weights=part["total"]))
        made[float(str(number))] = Sitting(value, scatter / math.sqrt(len(part)), len(part))
    return Figure(made, math.nan, len(profiles))
