"""What the recordings in Java say of objects: their CPU time, and what became of them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from gccost import stats
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import Arm, Ratio
from gccost.measuring.experiments.weimer import (
    HEAPS,
    LEAK_REMEDIES,
    NOTHING,
    PLAIN,
    REMAINING,
    leak,
    small,
)
from gccost.stats import Estimate

# What became of a native resource, from the best to the worst.
OUTCOMES = ("nothing was allocated", "opened, and freed on close", "failed, and freed", "leaked")
LEAKED = len(OUTCOMES) - 1
_LEAST_OBJECT = 16  # bytes


def per_object(
    recording: Recording, arm: Arm, on: str, metric: str = "cpu-s"
) -> tuple[list[float], Estimate]:
    """The time (by default of the CPU) of the process per object, net of an idle JVM, in ns.

    A value for each sample, and the estimate.
    """
    n = recording.samples(arm, on)["n"]
    if not len(n):
        return [], stats.amount([])
    factor = 1e9 / float(n.iloc[0])
    idle = recording.level(NOTHING, on, metric).value
    values = [float(factor * (v - idle)) for v in recording.values(arm, on, metric)]
    e = recording.added(Ratio(arm, NOTHING, metric), on)
    return values, replace(e, value=factor * e.value, low=factor * e.low, high=factor * e.high)


def made_none(recording: Recording, on: str) -> bool:
    """Whether the memory of the plain run has no room for the handles that it was asked for."""
    taken = recording.added(Ratio(PLAIN, NOTHING, "peak-rss-bytes"), on)
    n = recording.samples(PLAIN, on)["n"]
    return bool(len(n)) and taken.value < 0.1 * _LEAST_OBJECT * float(n.iloc[0])


def deaths(recording: Recording) -> pd.DataFrame:
    """How many runs on each small heap (in MB) ran out of memory: `died` of `runs`."""
    rows = []
    for on in recording.releases:
        for benchmark in ("Cleaner", "Finalize"):
            for heap in HEAPS:
                died = recording.values(small(benchmark, heap), on, "died")
                if len(died):
                    rows.append((benchmark, on, heap, int((died > 0).sum()), len(died)))
    return pd.DataFrame(rows, columns=["arm", "release", "heap", "died", "runs"])


def outcomes(recording: Recording) -> pd.DataFrame:
    """What became of the resource with so many bytes of the heap left, as an index of OUTCOMES."""
    rows = []
    for on in recording.releases:
        for kind in ("LeakNaive", *LEAK_REMEDIES):
            for remaining in REMAINING:
                samples = recording.samples(leak(kind, remaining), on)
                if len(samples) and "leaked" in samples:
                    rows.append((kind, on, remaining, _worst(samples)))
    return pd.DataFrame(rows, columns=["arm", "release", "remaining", "outcome"])


def _worst(samples: pd.DataFrame) -> int:
    if (samples["leaked"] > 0).any():
        return LEAKED
    if (samples["opened"] > 0).all():
        return 1
    return 2 if (samples["native-allocated"] > 0).any() else 0
