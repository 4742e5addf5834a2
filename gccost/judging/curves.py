"""Measured curves: over the object's size, and over the length of the span's list."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from gccost.judging import published
from gccost.judging.models import Line, line, objects_in_span, walked
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import Arm, Ratio
from gccost.measuring.experiments.siebenmann import SIZES, sized
from gccost.stats import Estimate

WORD = 8  # bytes of a pointer


def published_sizes() -> pd.DataFrame:
    """The published times (ns) over the object's size (bytes): a column per benchmark."""
    table = published.table("siebenmann-sizes")
    table = table.assign(bytes=WORD * table["words"])
    times = table.pivot_table(index="bytes", columns="variant", values="ns_per_op")
    return times.astype(float)


def finalizer_adds(recording: Recording, go: str, up_to: float = math.inf) -> dict[int, Estimate]:
    """What a finalizer adds to an allocation (ns), by the object's size (bytes)."""
    found = {
        WORD * words: recording.added(Ratio(sized("Finalize", words), sized("Allocate", words)), go)
        for words in SIZES
        if WORD * words <= up_to
    }
    return {size: estimate for size, estimate in found.items() if estimate.samples}


def over_objects_in_span(by_size: Mapping[int, float], go: str) -> tuple[list[float], Line]:
    """How many objects of each size share a span, and the straight line over them."""
    counts = [float(objects_in_span(size, go)) for size in by_size]
    return counts, line(counts, list(by_size.values()))


def page_faults(recording: Recording, arm: Arm, go: str) -> pd.Series:
    """Page faults per operation in each sample."""
    samples = recording.samples(arm, go)
    return (samples["faults"] / samples["n"]).dropna()


def calls(recording: Recording, arm: Arm, go: str) -> dict[float, list[float]]:
    """What a call took in each sample (ns), by how many records the span's list held."""
    found: dict[float, list[float]] = {}
    for _, sample in recording.samples(arm, go).iterrows():
        for records, ns in zip(*walked(sample), strict=True):
            found.setdefault(records, []).append(ns)
    return dict(sorted(found.items()))
