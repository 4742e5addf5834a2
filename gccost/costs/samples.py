"""The samples of a run, and the settings of its jobs, as frames that the job's name joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from gccost.cases import versions
from gccost.costs import method, metrics
from gccost.costs.method import Costs
from gccost.files import reading as reading_of
from gccost.run.jobtable import NUMBERS, Job
from gccost.run.runs import Run, cached

_HIDDEN = (
    *("name", "program", "n", "retained_bytes", "argv", "env"),
    *("cpus", "rounds", "count"),
)
_OWN = ("line", "name", "procs", "operations")  # columns


class Samples(NamedTuple):
    """A row per usable sample of a run, and a sentence on each line that is not usable.

    Columns: line (of the file), name, procs, operations, and the metrics with their unit in
    their name (NaN if a sample lacks it), among them round and sitting.
    """

    frame: pd.DataFrame
    problems: tuple[str, ...]


@cached
def of_run(run: Run) -> Samples:
    """The samples of a run, joined with its jobs."""
    reading, unusable = run.reading(), run.unusable()
    problems = [str(problem) for problem in reading.errors]
    problems += [f"{run.samples_txt}:{line}: {why}" for line, why in unusable.items()]
    usable = {line: each for line, each in reading.samples.items() if line not in unusable}
    rows = [(line, each.full_name, each.procs, each.n) for line, each in usable.items()]
    used = [sample.metrics for sample in usable.values()]
    measured = pd.DataFrame(used, dtype=float).rename(columns=metrics.column)
    # A stranger's units may have the name of another column, or one name together.
    measured = measured.loc[:, ~measured.columns.isin(_OWN) & ~measured.columns.duplicated()]
    known = measured.reindex(columns=[*dict.fromkeys([*measured, "round", "sitting"])])
    own = pd.DataFrame(rows, columns=_OWN)
    if "elapsed_s" in known:
        known["elapsed_ns"] = 1e9 * known["elapsed_s"] / own["operations"]
    return Samples(pd.concat([own, known.fillna({"sitting": 1.0})], axis="columns"), (*problems,))


@cached
def costs_of(run: Run) -> Costs:
    """The costs of a run's cases, but for profiled ones."""
    frame, table = of_run(run).frame, run.table()
    profiled = [name for name, job in table.items() if "profile" in job]
    return Costs(frame[~frame["name"].isin(profiled)], ratios(run))


def ratios(run: Run) -> pd.DataFrame:
    """The ratios that a run's claims are about, in the columns of `method.RATIOS`."""
    path = run.ratios_csv
    if not path.exists():
        return pd.DataFrame(columns=method.RATIOS)
    with reading_of(path):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if list(table) != method.RATIOS:
            raise ValueError(f"its columns are not {', '.join(method.RATIOS)}")
        return table


def keys(table: Mapping[str, Job]) -> pd.DataFrame:
    """The settings of jobs as typed columns, by name; `release` is an ordered category."""
    settings = pd.DataFrame(list(table.values()), index=list(table))
    numbers = settings.columns.intersection(list(NUMBERS))
    by_age = versions.titles(settings["release"])
    titles = pd.Categorical(settings["release"].map(versions.title), by_age, ordered=True)
    typed = settings.astype(dict.fromkeys(numbers, "Int64")).assign(release=titles)
    return typed.drop(columns=[*_HIDDEN], errors="ignore")
