"""The lines of a run: what the loops of a kind have in common (see `gccost.stats`).

The run-to-run spread of a kind comes from the run's own sittings, if it has enough of them, and
otherwise from data/reference/sittings.csv, which `gccost add` writes from recorded sittings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gccost import paths, stats
from gccost.judging import samples
from gccost.judging.metrics import QUIET
from gccost.measuring.runs import Run, cached
from gccost.measuring.schema import AMOUNT, columns, rows
from gccost.stats import OWN_SITTINGS, Line

_NOTHING = pd.DataFrame(
    columns=["name", "kind", "sitting", "round", "sliced", "raw_quiet_ns", "probe_ns", "probe"],
    dtype=float,
)
ANY = ""  # the kind of the row for kinds that no recording has several sittings of
_COLUMNS = columns("kind:line") | {"run_to_run": AMOUNT, "freedom": AMOUNT}


class Lines:
    """The lines of a run's kinds, by kind and metric. Copies are the same object."""

    def __init__(self, frame: pd.DataFrame) -> None:
        """`frame` has the processes that count, in the columns of `Samples`."""
        self._kinds = {str(kind): part for kind, part in frame.groupby("kind", sort=False)}
        self._known: dict[tuple[str, str, float], Line] = {}

    def __deepcopy__(self, memo: Any) -> Lines:
        return self

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def processes(self, kind: str) -> pd.DataFrame:
        """The processes that a kind's line is fitted to."""
        return self._kinds.get(kind, _NOTHING)

    def of(self, kind: str, metric: str = "quiet_ns", last: float = math.inf) -> Line:
        """The line of a kind, from the rounds up to `last`."""
        key = kind, metric, last
        if key not in self._known:
            self._known[key] = self._fit(*key)
        return self._known[key]

    def _fit(self, kind: str, metric: str, last: float) -> Line:
        part = self.processes(kind)
        raw = f"raw_{metric}" if f"raw_{metric}" in part else metric
        sliced = raw != metric and len(part) and part["sliced"].all()
        times = part.get(raw, part["probe"] * math.nan).astype(float)
        part = part[(times > 0) & np.isfinite(times) & (part["round"] <= last)]
        logs = np.log(times[part.index].to_numpy())
        probes = part["probe"].to_numpy(dtype=float)
        if metric not in QUIET:
            probes = np.full(len(part), math.nan)
        groups = part.groupby(["name", "sitting"]).ngroup().to_numpy()
        if sliced:
            line = stats.floors(logs, groups, kind)
        else:
            line = stats.line(logs, probes, groups, kind)
        most = part.groupby("name")["sitting"].nunique().max()
        line = line._replace(sittings=int(most) if len(part) else 0)
        if line.sittings >= OWN_SITTINGS:
            between, freedom = stats.run_to_run(
                logs, probes, part["name"].array, part["sitting"].array, line
            )
        elif line.freedom:
            between, freedom = recorded(kind)
        else:  # nothing shows how much its processes differ
            return line
        return line._replace(run_to_run=between, run_to_run_freedom=freedom)


@cached
def of_run(run: Run) -> Lines:
    """The lines of a run."""
    if not run.samples_txt.exists():
        return Lines(_NOTHING)
    frame, table = samples.of_run(run).frame, run.table()
    profiled = [name for name, job in table.items() if "profile" in job]
    return Lines(frame[~frame["rejected"] & ~frame["name"].isin(profiled)])


def recorded(kind: str) -> tuple[float, float]:
    """The recorded run-to-run spread of a kind, or else of any kind, and its degrees of freedom.

    The loops of another method, or under load, have the spread of their kind (`jobs.kind`).
    """
    path = paths.reference() / "sittings.csv"
    table = _recorded(path, path.stat().st_mtime_ns) if path.exists() else {}
    base = kind.partition(", ")[0]
    return table.get(kind) or table.get(base) or table.get(ANY) or (0.0, math.inf)


@lru_cache(maxsize=8)
def _recorded(path: Path, changed: int) -> dict[str, tuple[float, float]]:
    del changed  # a cache key
    return {row["kind"]: (row["run_to_run"], row["freedom"]) for row in rows(path, _COLUMNS)}
