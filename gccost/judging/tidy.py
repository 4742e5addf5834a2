"""A recording's samples as a frame that a notebook shows: typed keys, metrics with units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
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
    *("bytes", "dummies", "others", "gogc", "gcthreads"),
)
"""The keys whose values are numbers; all others are text."""

_FIRST = ("round", "procs", "operations", "rejected")
_RENAMED = {"gomemlimit": "memory_limit", "gc": "collector"}


def release_type(releases: Iterable[str]) -> pd.CategoricalDtype:
    """The ordered category of releases by title: "Go 1.9.7" < "Go 1.27.4" < "JDK 11"."""
    found = sorted(set(releases), key=lambda r: (toolchains.key(r), toolchains.number(r)))
    return pd.CategoricalDtype([toolchains.title(release) for release in found], ordered=True)


def keys(case: Case) -> dict[str, Any]:
    """The keys of a case as columns: variant in words, gc, and its other settings."""
    variant = case.variant
    named: dict[str, Any] = {
        "release": toolchains.title(case.release),
        "experiment": EXPERIMENTS.get(variant.benchmark, ""),
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


def tidy(recording: Recording) -> pd.DataFrame:
    """A row per process: the case's keys, the round, the metrics, and whether it was rejected.

    `quiet_ns` is the time per operation that enters a cost: the 5 % quantile of the slices of a
    loop that is timed in slices, and otherwise the mean, corrected by the manual frees that the
    process timed between parts of its loop. `settled_ns` is the same of the settled time.
    """
    parts = list(_parts(recording))
    named = pd.DataFrame([key for key, _ in parts])
    known = ["release", "experiment", "variant", "benchmark", *named.columns]
    columns = list(dict.fromkeys(known))
    frames = [samples.assign(**key) for key, samples in parts if len(samples)]
    found = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
    found = found.reindex(columns=[*columns, *found.columns.difference(columns, sort=False)])
    for column in NUMBERS:
        if column in found:
            found[column] = found[column].astype("Int64")
    releases = [case.release for case in recording.study.cases]
    found["release"] = found["release"].astype(release_type(releases))
    if not len(found):  # every column that a reader may ask for
        every = [*_FIRST, *metrics.QUIET, *(each.column for each in metrics.METRICS.values())]
        found = found.reindex(columns=[*columns, *every])
    return found


def _parts(recording: Recording) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The keys and the samples of each case."""
    for case in {case.name: case for case in recording.study.cases}.values():
        samples = recording.samples(case.variant, case.release)
        accepted = recording.accepted(case.variant, case.release)
        metrics_of = [c for c in samples if not str(c).endswith("-records-ns")]
        numbers = samples[metrics_of].select_dtypes("number")
        frame = numbers.drop(columns=["line", "procs", "n"], errors="ignore")
        counts = samples["line"].isin(accepted["line"]).to_numpy()
        named = pd.DataFrame(
            {
                "round": samples.index.astype(int),
                "procs": samples.get("procs", math.nan),
                "operations": samples.get("n", math.nan),
                "rejected": np.where(counts, "", "its threads waited for a CPU"),
                **{
                    column: recording.undisturbed(case.variant, case.release, metric)
                    for column, metric in metrics.QUIET.items()
                    if metric in samples
                },
            },
            index=samples.index,
        )
        frame = pd.concat([named, frame.rename(columns=metrics.column)], axis="columns")
        yield keys(case), frame.reset_index(drop=True)
