"""The samples of a run, and the settings of its jobs, as frames that the job's name joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from gccost.judging import metrics
from gccost.measuring import jobs, toolchains
from gccost.measuring.benchfmt import Sample
from gccost.measuring.jobs import Job
from gccost.measuring.runs import Run, cached

MOST_ROUNDS = 1_000_000  # the largest valid round number
_HIDDEN = ("name", "program", "n", "retained_bytes", "argv", "env", "kind")
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
    table, reading = run.table(), run.reading()
    problems, rows = [str(problem) for problem in reading.errors], []
    for line, sample in reading.samples.items():
        if why := _unusable(sample, table.get(sample.full_name)):
            problems.append(f"{run.samples_txt}:{line}: {why}")
        else:
            kind = table[sample.full_name]["kind"]
            rows.append((line, sample.full_name, kind, sample.procs, sample.n))
    used = (reading.samples[line].metrics for line, *_ in rows)
    measured = pd.DataFrame(list(used), dtype=float).rename(columns=metrics.column)
    # A stranger's units may have the name of another column, or one name together.
    measured = measured.loc[:, ~measured.columns.isin(_OWN) & ~measured.columns.duplicated()]
    known = measured.reindex(columns=[*dict.fromkeys([*measured, "round", "sitting"])])
    own = pd.DataFrame(rows, columns=_OWN)
    return Samples(pd.concat([own, known.fillna({"sitting": 1.0})], axis="columns"), (*problems,))


def _unusable(sample: Sample, job: Job | None) -> str:
    """Why a sample is none of its job; empty if it is one."""
    if job is None:
        return f"no job of jobs.csv is named {sample.full_name}"
    if not 1 <= sample.metrics.get("round", 0) <= MOST_ROUNDS:
        return f"it has no round from 1 to {MOST_ROUNDS:,}"
    is_whole = job["n"] in (0, sample.n)
    return "" if is_whole else f"it has {sample.n:,} operations, its job in jobs.csv {job['n']:,}"


def keys(table: Mapping[str, Job]) -> pd.DataFrame:
    """The settings of jobs as typed columns, by name; `release` is an ordered category."""
    settings = pd.DataFrame(list(table.values()), index=list(table))
    numbers = settings.columns.intersection(list(jobs.NUMBERS))
    by_age = toolchains.titles(settings["release"])
    titles = pd.Categorical(settings["release"].map(toolchains.title), by_age, ordered=True)
    typed = settings.astype(dict.fromkeys(numbers, "Int64")).assign(release=titles)
    return typed.drop(columns=[*_HIDDEN], errors="ignore")
