"""The lines of a run: what the loops of a kind have in common (see `gccost.stats`).

The run-to-run spread of a kind comes from the run's own sittings, if it has enough of them, and
otherwise from data/reference/sittings.csv, which `gccost add` writes from recorded sittings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gccost import paths, stats
from gccost.judging import samples
from gccost.judging.metrics import QUIET
from gccost.judging.samples import state
from gccost.measuring.runs import Run
from gccost.measuring.schema import AMOUNT, columns, rows
from gccost.stats import OWN_SITTINGS, Line

_NOTHING = pd.DataFrame(
    {
        name: []
        for name in ("name", "sitting", "round", "sliced", "raw_quiet_ns", "probe_ns", "probe")
    }
)
ANY = ""  # the kind of the row for kinds that no recording has several sittings of
_COLUMNS = columns("kind:line") | {"run_to_run": AMOUNT, "freedom": AMOUNT}


class Lines:
    """The lines of a run's kinds, by kind and metric. Copies are the same object."""

    def __init__(self, frame: pd.DataFrame) -> None:
        """`frame` has the processes that count, in the columns of `Samples`."""
        self._kinds = {
            str(kind): (part, _codes(part["name"]), part["probe"].to_numpy(dtype=float))
            for kind, part in frame.groupby("kind", sort=False)
        }
        self._known: dict[tuple[str, str, float], Line] = {}

    def __deepcopy__(self, memo: Any) -> Lines:
        return self

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def processes(self, kind: str) -> pd.DataFrame:
        """The processes that a kind's line is fitted to."""
        return self._kinds[kind][0] if kind in self._kinds else _NOTHING

    def of(self, kind: str, metric: str = "quiet_ns", last: float = math.inf) -> Line:
        """The line of a kind, from the rounds up to `last`."""
        key = kind, metric, last
        if key not in self._known:
            self._known[key] = self._fit(*key)
        return self._known[key]

    def _fit(self, kind: str, metric: str, last: float) -> Line:
        if kind not in self._kinds:
            return _with_recorded(Line(kind))
        part, cases, probes = self._kinds[kind]
        if metric not in QUIET:
            probes = np.full(len(part), math.nan)
        elif f"raw_{metric}" in part:
            metric = f"raw_{metric}"
        values = part.reindex(columns=[metric])[metric].to_numpy(dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(values)
        known = np.isfinite(logs) & (part["round"].to_numpy() <= last)
        logs, probes, cases = logs[known], probes[known], cases[known]
        sittings = _codes(part["sitting"])[known]
        number = int(sittings.max(initial=0)) + 1
        groups = cases * number + sittings
        if part["sliced"].all() and metric.startswith("raw_"):
            line = stats.floors(logs, groups, kind)
        else:
            line = stats.line(logs, probes, groups, kind)
        most = np.bincount(np.unique(groups) // number).max(initial=0)  # of any case
        line = line._replace(sittings=int(most))
        if line.sittings < OWN_SITTINGS:
            return _with_recorded(line)
        between, freedom = stats.run_to_run(logs, probes, cases, sittings, line)
        return line._replace(run_to_run=between, run_to_run_freedom=freedom)


def _codes(names: pd.Series) -> Any:
    """A number for each different name."""
    return pd.factorize(names)[0].astype(np.int64)


def of_run(run: Run) -> Lines:
    """The lines of a run; cached until its files change."""
    return _of_run(run.folder, state(run))


@lru_cache(maxsize=8)
def _of_run(folder: Path, state: object) -> Lines:
    del state  # a cache key
    run = Run(folder)
    if not run.samples.exists():
        return Lines(_NOTHING.assign(kind=[]))
    frame, table = samples.of_run(run).frame, run.table()
    profiled = [name for name, job in table.items() if "profile" in job]
    return Lines(frame[~frame["rejected"] & ~frame["name"].isin(profiled)])


def _with_recorded(line: Line) -> Line:
    """A line with the recorded run-to-run spread of its kind, if it has one of processes."""
    if not line.freedom:
        return line
    between, freedom = recorded(line.kind)
    return line._replace(run_to_run=between, run_to_run_freedom=freedom)


def recorded(kind: str) -> tuple[float, float]:
    """The recorded run-to-run spread of a kind, or else of any kind, and its degrees of freedom."""
    path = paths.reference() / "sittings.csv"
    table = _recorded(path, path.stat().st_mtime_ns) if path.exists() else {}
    return table.get(kind) or table.get(ANY) or (0.0, math.inf)


@lru_cache(maxsize=8)
def _recorded(path: Path, changed: int) -> Mapping[str, tuple[float, float]]:
    del changed  # a cache key
    return {row["kind"]: (row["run_to_run"], row["freedom"]) for row in rows(path, _COLUMNS)}
