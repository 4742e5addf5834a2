"""Measured curves: over the object's size, and over the length of the span's list."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gccost import stats
from gccost.judging import published
from gccost.judging.models import Line, line, objects_in_span, walked
from gccost.judging.recording import Floats, Recording
from gccost.measuring.experiments.base import Arm, Ratio
from gccost.measuring.experiments.siebenmann import SIZES, sized
from gccost.stats import Estimate

WORD = 8  # bytes of a pointer


def published_sizes() -> dict[str, dict[int, float]]:
    """The published times (ns) by benchmark, then by the object's size (bytes)."""
    found: dict[str, dict[int, float]] = {}
    for row in published.table("siebenmann-sizes").to_dict("records"):
        found.setdefault(row["variant"], {})[WORD * row["words"]] = float(row["ns_per_op"])
    return found


def published_finalizer_adds(up_to: float) -> dict[int, float]:
    """What a finalizer adds to an allocation (ns) as published, by the object's size (bytes)."""
    times = published_sizes()
    found = {size: ns - times["Allocate"][size] for size, ns in times["Finalize"].items()}
    return {size: ns for size, ns in found.items() if size <= up_to}


def finalizer_adds(recording: Recording, go: str, up_to: float = math.inf) -> dict[int, Estimate]:
    """What a finalizer adds to an allocation (ns), by the object's size (bytes)."""
    found = {
        WORD * words: recording.added(Ratio(sized("Finalize", words), sized("Allocate", words)), go)
        for words in SIZES
        if WORD * words <= up_to
    }
    return {size: estimate for size, estimate in found.items() if estimate.samples}


def finalizer_adds_by_sample(recording: Recording, size: int, go: str) -> Floats:
    """What a finalizer adds to the level of an allocation of `size` bytes (ns) in each sample."""
    finalize, allocate = (sized(what, size // WORD) for what in ("Finalize", "Allocate"))
    return recording.values(finalize, go) - recording.level(allocate, go).value


def over_objects_in_span(by_size: Mapping[int, float], go: str) -> tuple[list[float], Line]:
    """How many objects of each size share a span, and the straight line over them."""
    counts = [float(objects_in_span(size, go)) for size in by_size]
    return counts, line(counts, list(by_size.values()))


def per_operation(recording: Recording, arm: Arm, go: str, metric: str) -> tuple[Floats, Estimate]:
    """A count of whole samples per operation, such as "faults": of each sample, and its level."""
    samples = recording.samples(arm, go)
    values = (samples[metric] / samples["n"]).dropna().to_numpy(dtype=float)
    return values, stats.amount(values)


def calls(recording: Recording, arm: Arm, go: str) -> dict[float, list[float]]:
    """What a call took in each sample (ns), by how many records the span's list held."""
    found: dict[float, list[float]] = {}
    for _, sample in recording.samples(arm, go).iterrows():
        for records, ns in zip(*walked(sample), strict=True):
            found.setdefault(records, []).append(ns)
    return dict(sorted(found.items()))
