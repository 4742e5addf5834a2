"""Measured curves: over the object's size, and over the length of the span's list."""

from __future__ import annotations

from gccost import stats
from gccost.judging.models import walked
from gccost.judging.recording import Floats, Recording
from gccost.measuring.cases import Variant
from gccost.stats import Estimate

WORD = 8  # bytes of a pointer


def per_operation(
    recording: Recording, variant: Variant, go: str, metric: str
) -> tuple[Floats, Estimate]:
    """A count of whole samples per operation, such as "faults": of each sample, and its level."""
    samples = recording.samples(variant, go)
    values = (samples[metric] / samples["n"]).dropna().to_numpy(dtype=float)
    return values, stats.amount(values)


def calls(recording: Recording, variant: Variant, go: str) -> dict[float, list[float]]:
    """What a call took in each sample (ns), by how many records the span's list held."""
    found: dict[float, list[float]] = {}
    for _, sample in recording.samples(variant, go).iterrows():
        for records, ns in zip(*walked(sample), strict=True):
            found.setdefault(records, []).append(ns)
    return dict(sorted(found.items()))
