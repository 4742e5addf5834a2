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
    reading = run.reading()
    unusable = run.unusable()
    problems = [str(problem) for problem in reading.errors]
    for line, reason in unusable.items():
        problems.append(f"{run.samples_txt}:{line}: {reason}")
    rows, measured = [], []
    for line, sample in reading.samples.items():
        if line in unusable:
            continue
        rows.append((line, sample.full_name, sample.procs, sample.n))
        measured.append(sample.metrics)
    own = pd.DataFrame(rows, columns=_OWN)
    values = pd.DataFrame(measured, dtype=float).rename(columns=metrics.column)
    # A stranger's units may have the name of another column, or one name together.
    is_taken = values.columns.isin(_OWN) | values.columns.duplicated()
    values = values.loc[:, ~is_taken]
    columns = dict.fromkeys([*values, "round", "sitting"])
    values = values.reindex(columns=[*columns])
    values["sitting"] = values["sitting"].fillna(1.0)
    if "elapsed_s" in values:
        values["elapsed_ns"] = 1e9 * values["elapsed_s"] / own["operations"]
    frame = pd.concat([own, values], axis="columns")
    return Samples(frame, tuple(problems))


@cached
def costs_of(run: Run) -> Costs:
    """The costs of a run's cases, but for profiled ones."""
    frame = of_run(run).frame
    profiled = [name for name, job in run.table().items() if "profile" in job]
    is_profiled = frame["name"].isin(profiled)
    return Costs(frame[~is_profiled], ratios(run))


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
    settings = settings.astype(dict.fromkeys(numbers, "Int64"))
    titles = settings["release"].map(versions.title)
    by_age = versions.titles(settings["release"])
    settings["release"] = pd.Categorical(titles, by_age, ordered=True)
    return settings.drop(columns=[*_HIDDEN], errors="ignore")
