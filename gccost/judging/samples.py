"""The samples of a run, and the settings of its jobs, as frames that the job's name joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from gccost.judging import metrics
from gccost.measuring import jobs, toolchains
from gccost.measuring.benchfmt import Sample
from gccost.measuring.jobs import Job
from gccost.measuring.runs import Run, cached

_HIDDEN = ("name", "program", "n", "retained_bytes", "argv", "env", "kind", "cpus", "rounds")
_OWN = ("name", "procs", "operations", "line", "kind")  # columns


class Samples(NamedTuple):
    """A row per usable sample of a run, and a sentence on each line that is not usable.

    Columns: name, kind, round, sitting, procs, operations, line (of the file), and the metrics
    with their unit in their name (NaN if a sample lacks it).
    """

    frame: pd.DataFrame
    problems: tuple[str, ...]


@cached
def of_run(run: Run) -> Samples:
    """The samples of a run."""
    reading, unusable = run.reading(), run.unusable()
    problems = [str(problem) for problem in reading.errors]
    problems += [f"{run.samples_txt}:{line}: {why}" for line, why in unusable.items()]
    usable = {line: each for line, each in reading.samples.items() if line not in unusable}
    return Samples(_frame(usable, run.table()), tuple(problems))


def _frame(by_line: Mapping[int, Sample], table: Mapping[str, Job]) -> pd.DataFrame:
    """A row per sample: the settings of its job that matter here, and its metrics."""
    samples = list(by_line.values())
    names = [sample.full_name for sample in samples]
    own = {
        "name": pd.Series(names, dtype="str"),
        "procs": np.array([sample.procs for sample in samples], np.int64),
        "operations": np.array([sample.n for sample in samples], np.int64),
    }
    measured = pd.DataFrame([sample.metrics for sample in samples], dtype=float)
    measured = measured.rename(columns=metrics.column)
    # A stranger's units may have the name of another column, or one name together.
    measured = measured.loc[:, ~measured.columns.isin(_OWN) & ~measured.columns.duplicated()]
    measured = measured.assign(round=measured.get("round", 0.0))
    measured["sitting"] = measured["sitting"].fillna(1.0) if "sitting" in measured else 1.0
    of_job = pd.DataFrame(
        {
            "line": np.array(list(by_line), np.int64),
            "kind": np.array([table[job]["kind"] for job in names], "object"),
        }
    )
    return pd.concat([pd.DataFrame(own), measured, of_job], axis="columns")


def keys(table: Mapping[str, Job]) -> pd.DataFrame:
    """The settings of jobs as typed columns, by name; `release` is an ordered category."""
    settings = pd.DataFrame(list(table.values()), index=list(table))
    numbers = settings.columns.intersection(list(jobs.NUMBERS))
    by_age = toolchains.titles(settings["release"])
    titles = pd.Categorical(settings["release"].map(toolchains.title), by_age, ordered=True)
    typed = settings.astype(dict.fromkeys(numbers, "Int64")).assign(release=titles)
    return typed.drop(columns=[*_HIDDEN], errors="ignore")
