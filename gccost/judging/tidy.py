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
    *("words", "goroutines", "handles", "live", "mb", "mib", "remaining", "waiting"),
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
    found = pd.DataFrame([keys(case) for case in recording.numbered.values()])
    for column in NUMBERS:
        if column in found:
            found[column] = found[column].astype("Int64")
    releases = [case.release for case in recording.study.cases]
    return found.astype({"release": release_type(releases)})


def tidy(recording: Recording) -> pd.DataFrame:
    """A row per process: the case's keys, the round, the metrics, and whether it was rejected.

    Its index is the number of its case. `quiet_ns` is the time per operation that enters a
    cost: the 5 % quantile of the slices of a loop that is timed in slices, and otherwise the
    mean, corrected by the manual frees that the process timed between parts of its loop.
    `settled_ns` is the same of the settled time.
    """
    named, metric = cases(recording), [metrics.column(str(column)) for column in recording.frame]
    parts = {
        number: recording.processes(case.variant, case.release)
        for number, case in recording.cases.items()
    }
    if not parts:  # every column that a reader may ask for
        every = [*_FIRST, *metrics.QUIET, *metrics.REPORTED]
        return named.iloc[:0].reindex(columns=[*named, *every])
    found = pd.concat(parts).droplevel(1).rename(columns={"n": "operations"})
    found = found.astype(dict.fromkeys(("round", "procs", "operations"), int))
    found["rejected"] = np.where(found["rejected"], WAITED, "")
    order = dict.fromkeys([*_FIRST, *metrics.QUIET, *metric])
    hidden = ["line", *(column for column in order if column.endswith("_records_ns"))]
    found = found[[column for column in order if column in found and column not in hidden]]
    return pd.concat([named.loc[found.index], found], axis="columns")


WAITED = "its threads waited for a CPU"
