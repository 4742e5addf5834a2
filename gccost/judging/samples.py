"""The samples of a run, and the settings of its jobs, as frames that the job's name joins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from gccost.judging import metrics
from gccost.measuring import jobs, toolchains
from gccost.measuring.benchfmt import Sample
from gccost.measuring.jobs import Job
from gccost.measuring.runs import Run
from gccost.measuring.sampler import RUN_DELAY, slices_fault
from gccost.stats import PRICE

MOST_ROUNDS = 1_000_000  # the largest valid round number
_HIDDEN = ("name", "program", "n", "sliced", "gated", "retained_bytes", "argv", "env")
_SLICES = "slice_p05_ns"  # a process's 5 % quantile, if its loop is timed in slices


class Samples(NamedTuple):
    """A row per usable sample of a run, and a sentence on each line that is not usable.

    Columns: name, kind, round, sitting, procs, operations, the metrics with their unit in
    their name (NaN if a sample lacks it), and:

    - raw_quiet_ns, raw_settled_ns: the time of the loop as it enters the line of its kind (see
      `gccost.stats`): the low quantile of its slices, if it is timed in slices, or the mean
    - probe: the log of the probe's time over its undisturbed price next to this loop
    - waited: whether its threads waited long for a CPU
    - rejected: whether it does not count for that reason. If most processes of a job waited,
      none is rejected: the probe waited as well
    - line: of the file
    """

    frame: pd.DataFrame
    problems: tuple[str, ...]


def of_run(run: Run) -> Samples:
    """The samples of a run; cached until its files change."""
    return _of_run(run.folder, state(run))


def state(run: Run) -> tuple[tuple[int, int], ...]:
    """A value that changes with the run's samples and jobs."""
    files = (path.stat() for path in (run.samples, run.jobs) if path.exists())
    return tuple((file.st_mtime_ns, file.st_size) for file in files)


@lru_cache(maxsize=8)
def _of_run(folder: Path, state: object) -> Samples:
    del state  # a cache key
    run = Run(folder)
    table, reading = run.table(), run.reading()
    problems = [str(problem) for problem in reading.errors]
    problems += [
        f"{run.samples}:{line}: no job of jobs.csv is named {sample.full_name}"
        for line, sample in reading.samples.items()
        if sample.full_name not in table
    ]
    found = {
        line: sample
        for line, sample in reading.samples.items()
        if sample.full_name in table and 1 <= sample.metrics.get("round", 0) <= MOST_ROUNDS
    }
    frame = _frame(found)
    settings = pd.DataFrame(
        {
            "kind": [table[name]["kind"] for name in frame["name"]],
            "sliced": np.array([table[name]["sliced"] for name in frame["name"]], bool),
            "gated": np.array([table[name]["gated"] for name in frame["name"]], bool),
        }
    )
    frame = pd.concat([frame, settings], axis="columns")
    faulty = dict(_faulty(frame))
    problems += faulty.values()
    return Samples(_entering(frame.drop(index=list(faulty))), tuple(problems))


def _frame(found: Mapping[int, Sample]) -> pd.DataFrame:
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
    columns.setdefault("round", np.zeros(len(samples)))
    columns.setdefault("sitting", np.ones(len(samples)))
    frame = pd.DataFrame(columns | {"line": np.array(list(found), np.int64)}).copy()
    return frame.fillna({"sitting": 1.0})


def _faulty(frame: pd.DataFrame) -> Iterator[tuple[int, str]]:
    """The rows whose slices cannot be true, and why."""
    times = frame.reindex(columns=[_SLICES, "slices_ns", "mean_ns"])
    for at, low, sums, loop, n in times.assign(n=frame["operations"])[frame["sliced"]].itertuples():
        if fault := slices_fault(low, sums, loop, n):
            yield at, f"{frame['name'][at]}, round {frame['round'][at]:.0f}: {fault}"


def _entering(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with what enters the lines, and the processes that count."""
    entering = ["run_delay_share", "probe_ns", _SLICES, *metrics.QUIET.values()]
    known = frame.reindex(columns=entering).astype(float)
    delay = known["run_delay_share"].where(frame["gated"] & (frame["procs"] > 1))
    usual = delay.groupby(frame["name"]).transform("quantile", PRICE)
    waited, rejected = delay > RUN_DELAY, delay > usual + RUN_DELAY
    read = known["probe_ns"].where(known["probe_ns"] > 0)
    price = read[~rejected].groupby(frame["name"]).quantile(PRICE)
    probe = pd.Series(np.log(read / frame["name"].map(price).astype(float)), frame.index)
    raw: dict[str, pd.Series] = {
        f"raw_{quiet}": known[mean].where(~frame["sliced"], known[_SLICES])
        for quiet, mean in metrics.QUIET.items()
    }
    found = frame.drop(columns="gated").assign(**raw)
    found["probe"] = probe.where(np.isfinite(probe) & ~frame["sliced"])
    return found.assign(waited=waited, rejected=rejected)


def keys(table: Mapping[str, Job]) -> pd.DataFrame:
    """The settings of jobs as typed columns, by name; `release` is an ordered category."""
    found = pd.DataFrame(list(table.values()), index=list(table))
    for column in jobs.NUMBERS:
        if column in found:
            found[column] = found[column].astype("Int64")
    titles = found["release"].map(toolchains.title)
    found["release"] = titles.astype(release_type(found["release"]))
    return found.drop(columns=[*_HIDDEN, "kind"])


def release_type(releases: Iterable[str]) -> pd.CategoricalDtype:
    """The ordered category of releases by title: "Go 1.9.7" < "Go 1.27.4" < "JDK 11"."""

    def age(release: str) -> tuple[str, tuple[int, ...]]:
        key = toolchains.key(release)
        return key, toolchains.number(toolchains.named(release)[key])

    found = sorted(set(releases), key=age)
    return pd.CategoricalDtype([toolchains.title(release) for release in found], ordered=True)
