"""The samples of a run, and the settings of its jobs, as frames that the job's name joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from gccost.cases import versions
from gccost.costs import metrics
from gccost.run.jobtable import NUMBERS, Job
from gccost.run.runs import Run, cached

_HIDDEN = (
    *("name", "program", "n", "retained_bytes", "argv", "env"),
    *("kind", "cpus", "rounds", "count"),
)
_OWN = ("line", "name", "kind", "procs", "operations")  # columns


class Samples(NamedTuple):
    """A row per usable sample of a run, and a sentence on each line that is not usable.

    Columns: line (of the file), name, kind, procs, operations, and the metrics with their unit in
    their name (NaN if a sample lacks it), among them round and sitting.
    """

    frame: pd.DataFrame
    problems: tuple[str, ...]


@cached
def of_run(run: Run) -> Samples:
    """The samples of a run, joined with its jobs."""
    table, reading, unusable = run.table(), run.reading(), run.unusable()
    problems = [str(problem) for problem in reading.errors]
    problems += [f"{run.samples_txt}:{line}: {why}" for line, why in unusable.items()]
    usable = {line: each for line, each in reading.samples.items() if line not in unusable}
    rows = [
        (line, each.full_name, table[each.full_name]["kind"], each.procs, each.n)
        for line, each in usable.items()
    ]
    used = [sample.metrics for sample in usable.values()]
    measured = pd.DataFrame(used, dtype=float).rename(columns=metrics.column)
    # A stranger's units may have the name of another column, or one name together.
    measured = measured.loc[:, ~measured.columns.isin(_OWN) & ~measured.columns.duplicated()]
    known = measured.reindex(columns=[*dict.fromkeys([*measured, "round", "sitting"])])
    own = pd.DataFrame(rows, columns=_OWN)
    if "elapsed_s" in known:
        known["elapsed_ns"] = 1e9 * known["elapsed_s"] / own["operations"]
    return Samples(pd.concat([own, known.fillna({"sitting": 1.0})], axis="columns"), (*problems,))


def keys(table: Mapping[str, Job]) -> pd.DataFrame:
    """The settings of jobs as typed columns, by name; `release` is an ordered category."""
    settings = pd.DataFrame(list(table.values()), index=list(table))
    numbers = settings.columns.intersection(list(NUMBERS))
    by_age = versions.titles(settings["release"])
    titles = pd.Categorical(settings["release"].map(versions.title), by_age, ordered=True)
    typed = settings.astype(dict.fromkeys(numbers, "Int64")).assign(release=titles)
    return typed.drop(columns=[*_HIDDEN], errors="ignore")
