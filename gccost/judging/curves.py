"""Curves over the object's size, and over the length of the span's list."""

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
    """A sample-wide count per operation, such as "faults": its values, and its level."""
    samples = recording.samples(variant, go)
    values = (samples[metric] / samples["n"]).dropna().to_numpy(dtype=float)
    return values, stats.amount(values)


def calls(recording: Recording, variant: Variant, go: str) -> dict[float, list[float]]:
    """The time of a call (ns) in each sample, by the number of records in the span's list."""
    found: dict[float, list[float]] = {}
    for _, sample in recording.samples(variant, go).iterrows():
        for records, ns in zip(*walked(sample), strict=True):
            found.setdefault(records, []).append(ns)
    return dict(sorted(found.items()))
