"""The samples of a run, and the settings of its jobs, as frames that the job's name joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from gccost.judging import metrics
from gccost.measuring import jobs, toolchains
from gccost.measuring.benchfmt import Reading
from gccost.measuring.jobs import Job

MOST_ROUNDS = 1_000_000  # the largest valid round number
_HIDDEN = ("name", "program", "n", "sliced", "gated", "retained_bytes", "argv", "env")


def of_jobs(reading: Reading, table: Mapping[str, Job]) -> pd.DataFrame:
    """A row per sample of the jobs that has their N and a round.

    Columns: name, round, procs, operations, the metrics with their unit in their name (NaN if
    a sample lacks it), and the line of the file.
    """
    found = {
        line: sample
        for line, sample in reading.samples.items()
        if (job := table.get(sample.full_name)) is not None
        and job["n"] in (0, sample.n)
        and 1 <= sample.metrics.get("round", 0) <= MOST_ROUNDS
    }
    samples = list(found.values())
    columns = {
        "name": pd.Series([sample.full_name for sample in samples], dtype="str"),
        "procs": np.array([sample.procs for sample in samples], np.int64),
        "operations": np.array([sample.n for sample in samples], np.int64),
    }
    for unit in dict.fromkeys(unit for sample in samples for unit in sample.metrics):
        # A stranger's unit may be named like one of these columns.
        values = np.array([sample.metrics.get(unit, np.nan) for sample in samples])
        columns.setdefault(metrics.column(unit), values)
    frame = pd.DataFrame(columns | {"line": np.array(list(found), np.int64)})
    return frame if found else frame.assign(round=pd.Series(dtype=float))


def keys(table: Mapping[str, Job]) -> pd.DataFrame:
    """The settings of jobs as typed columns, by name; `release` is an ordered category."""
    found = pd.DataFrame(list(table.values()), index=list(table))
    for column in jobs.NUMBERS:
        if column in found:
            found[column] = found[column].astype("Int64")
    titles = found["release"].map(toolchains.title)
    found["release"] = titles.astype(release_type(found["release"]))
    return found.drop(columns=list(_HIDDEN))


def release_type(releases: Iterable[str]) -> pd.CategoricalDtype:
    """The ordered category of releases by title: "Go 1.9.7" < "Go 1.27.4" < "JDK 11"."""

    def age(release: str) -> tuple[str, tuple[int, ...]]:
        key = toolchains.key(release)
        return key, toolchains.number(toolchains.named(release)[key])

    found = sorted(set(releases), key=age)
    return pd.CategoricalDtype([toolchains.title(release) for release in found], ordered=True)
