"""A recording's samples as a frame that a notebook shows: typed keys, metrics with units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from gccost.judging import metrics
from gccost.judging.recording import Recording
from gccost.measuring import toolchains
from gccost.measuring.cases import NO_GREEN_TEA, Case
from gccost.measuring.names import EXPERIMENTS, NAMES

NUMBERS = (
    *("words", "goroutines", "handles", "live", "mb", "mib", "remaining"),
    *("bytes", "dummies", "others", "gogc", "gcthreads", "heap"),
)
"""The keys whose values are numbers; all others are text."""

_FIRST = ("round", "procs", "operations", "rejected")
_RENAMED = {"gomemlimit": "memory_limit", "gc": "collector"}


def release_type(releases: Iterable[str]) -> pd.CategoricalDtype:
    """The ordered category of releases by title: "Go 1.9.7" < "Go 1.27.4" < "JDK 11"."""
    found = sorted(
        set(releases), key=lambda r: (toolchains.key(r), toolchains.number(r.removeprefix("jdk-")))
    )
    return pd.CategoricalDtype([toolchains.title(release) for release in found], ordered=True)


def keys(case: Case) -> dict[str, Any]:
    """The keys of a case as columns: variant in words, gc, and its other settings."""
    variant = case.variant
    experiment = EXPERIMENTS.get(variant.benchmark, "")
    if variant.arenas or "run" in dict(variant.more):
        experiment = "one malloc arena" if variant.arenas else f"{experiment}, long run"
    named: dict[str, Any] = {
        "release": toolchains.title(case.release),
        "experiment": experiment,
        "variant": NAMES.get(variant.benchmark, variant.benchmark),
        "benchmark": variant.benchmark,
    }
    if toolchains.key(case.release) == "go":
        named |= {"gc": "off" if variant.gogc == "off" else "on", "runtime": "stock"}
        if variant.runtime:
            named["runtime"] = variant.runtime
        if variant.runtime == NO_GREEN_TEA:
            named["runtime"] = "no Green Tea"
    for key, value in (*variant.sub, *variant.keys().items()):
        if key != "runtime" and (key, value) != ("gogc", "off"):
            named[_RENAMED.get(key, key)] = float(value) if key in NUMBERS else value
    return named


def cases(recording: Recording) -> pd.DataFrame:
    """A row per case of the study, measured or not: its keys, typed. Its index numbers them."""
    found = pd.DataFrame([keys(case) for case in numbered(recording).values()])
    for column in NUMBERS:
        if column in found:
            found[column] = found[column].astype("Int64")
    releases = [case.release for case in recording.study.cases]
    return found.astype({"release": release_type(releases)})


def numbered(recording: Recording) -> dict[int, Case]:
    """The cases of the study by number; the index of every frame of cases has these numbers."""
    return dict(enumerate({case.name: case for case in recording.study.cases}.values()))


def tidy(recording: Recording) -> pd.DataFrame:
    """A row per process: the case's keys, the round, the metrics, and whether it was rejected.

    Its index is the number of its case. `quiet_ns` is the time per operation that enters a
    cost: the 5 % quantile of the slices of a loop that is timed in slices, and otherwise the
    mean, corrected by the manual frees that the process timed between parts of its loop.
    `settled_ns` is the same of the settled time.
    """
    named, frame = cases(recording), recording.frame
    numbers = {case.name: number for number, case in numbered(recording).items()}
    if not len(frame):  # every column that a reader may ask for
        every = [*_FIRST, *metrics.QUIET, *(each.column for each in metrics.METRICS.values())]
        return named.iloc[:0].reindex(columns=[*named, *every])
    frame = frame.assign(case=frame["name"].map(numbers)).dropna(subset="case")
    frame = frame.sort_values(["case", "round"], kind="stable").set_index("line")
    series = [column for column in frame if str(column).endswith("-records-ns")]
    found = frame.drop(columns=[*series, "n", "procs", "round", "case"]).select_dtypes("number")
    quiet = {column: _quiet(recording, metric) for column, metric in metrics.QUIET.items()}
    first = {
        "round": frame["round"].astype(int),
        "procs": frame["procs"],
        "operations": frame["n"],
        "rejected": np.where(frame.index.isin(recording.rejected), WAITED, ""),
        **{column: values for column, values in quiet.items() if len(values)},
    }
    parts = [pd.DataFrame(first, index=frame.index), found.rename(columns=metrics.column)]
    found = pd.concat(parts, axis="columns").set_index(frame["case"].astype(int).to_numpy())
    return pd.concat([named.loc[found.index], found], axis="columns")


WAITED = "its threads waited for a CPU"


def _quiet(recording: Recording, metric: str) -> pd.Series:
    """What enters the cost, of every process by its line, as `Recording.undisturbed` says."""
    parts = [
        recording.undisturbed(case.variant, case.release, metric).set_axis(samples["line"])
        for case in numbered(recording).values()
        for samples in [recording.samples(case.variant, case.release)]
        if metric in samples
    ]
    return pd.concat(parts) if parts else pd.Series(dtype=float)
