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
from gccost.measuring.sampler import RUN_DELAY, slices_fault
from gccost.stats import PRICE

MOST_ROUNDS = 1_000_000  # the largest valid round number
_HIDDEN = ("name", "program", "n", "sliced", "gated", "retained_bytes", "argv", "env", "kind")
_OWN = ("name", "procs", "operations", "line", "kind", "sliced", "gated")  # columns
# A process's floor, if its loop is timed in slices: their 5 % quantile. It is tuned to data, as
# RUN_DELAY is: chapter 9 compares floors with means ("What a disturbance looks like"), and has the
# share of processes that waited for longer ("The same again").
_SLICES = "slice_p05_ns"


class Samples(NamedTuple):
    """A row per usable sample of a run, and a sentence on each line that is not usable.

    Columns: name, kind, round, sitting, procs, operations, the metrics with their unit in
    their name (NaN if a sample lacks it), and:

    - raw_quiet_ns, raw_settled_ns: the time of the loop as it enters the line of its kind (see
      `gccost.stats`): the low quantile of its slices, if it is timed in slices, or the mean
    - probe: the log of the probe's time over its undisturbed price next to this loop
    - waited: whether its threads waited long for a CPU
    - rejected: whether it does not count, because it waited longer than the calmest of its job
    - line: of the file
    """

    frame: pd.DataFrame
    problems: tuple[str, ...]


@cached
def of_run(run: Run) -> Samples:
    """The samples of a run."""
    table, reading = run.table(), run.reading()
    problems = [str(problem) for problem in reading.errors]
    by_line = {}
    for line, sample in reading.samples.items():
        if sample.full_name not in table:
            why = f"no job of jobs.csv is named {sample.full_name}"
            problems.append(f"{run.samples_txt}:{line}: {why}")
        elif 1 <= sample.metrics.get("round", 0) <= MOST_ROUNDS:
            by_line[line] = sample
    frame = _frame(by_line, table)
    faults = _faults(frame)
    problems += list(faults)
    return Samples(_entering(frame.drop(index=faults.index)), tuple(problems))


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
    of_job = {"line": np.array(list(by_line), np.int64)}
    for name, kind in (("kind", "object"), ("sliced", bool), ("gated", bool)):
        of_job[name] = np.array([table[job][name] for job in names], kind)
    return pd.concat([pd.DataFrame(own), measured, pd.DataFrame(of_job)], axis="columns")


def _faults(frame: pd.DataFrame) -> pd.Series:
    """What cannot be true of the slices of some rows."""
    sliced = frame.reindex(columns=[_SLICES, "slices_ns", "mean_ns", "operations"])
    sliced = sliced[frame["sliced"]]
    faults = {at: why for at, *times in sliced.itertuples() if (why := slices_fault(*times))}
    return pd.Series(
        {at: f"{frame['name'][at]}, round {frame['round'][at]:.0f}: {faults[at]}" for at in faults},
        dtype=object,
    )


def _entering(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with what enters the lines, and the processes that count."""
    entering = ["run_delay_share", "probe_ns", _SLICES, *metrics.QUIET.values()]
    known = frame.reindex(columns=entering).astype(float)
    jobs = frame["name"]
    delay = known["run_delay_share"].where(frame["gated"] & (frame["procs"] > 1))
    usual = delay.groupby(jobs).transform("quantile", PRICE)
    waited, rejected = delay > RUN_DELAY, delay > usual + RUN_DELAY
    probe_ns = known["probe_ns"].where(known["probe_ns"] > 0)
    price = probe_ns[~rejected].groupby(jobs).quantile(PRICE)
    probe = np.log(probe_ns / jobs.map(price).astype(float))
    raw: dict[str, pd.Series] = {
        f"raw_{quiet}": known[_SLICES].where(frame["sliced"], known[mean])
        for quiet, mean in metrics.QUIET.items()
    }
    processes = frame.drop(columns="gated").assign(**raw, probe=probe.where(~frame["sliced"]))
    return processes.assign(waited=waited, rejected=rejected)


def keys(table: Mapping[str, Job]) -> pd.DataFrame:
    """The settings of jobs as typed columns, by name; `release` is an ordered category."""
    settings = pd.DataFrame(list(table.values()), index=list(table))
    numbers = settings.columns.intersection(list(jobs.NUMBERS))
    by_age = toolchains.titles(settings["release"])
    titles = pd.Categorical(settings["release"].map(toolchains.title), by_age, ordered=True)
    typed = settings.astype(dict.fromkeys(numbers, "Int64")).assign(release=titles)
    return typed.drop(columns=[*_HIDDEN])
