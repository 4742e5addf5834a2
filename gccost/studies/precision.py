"""The precision of the measurements: one ratio measured independently, by two methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy  # its parts are loaded when they are used

from gccost import rounding, stats
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Agreement
from gccost.judging.recording import Recording
from gccost.judging.rules import Agrees, AtMost
from gccost.measuring.cases import AS_PUBLISHED, Case, Quantity, Ratio, Variant
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.figures import BLUE, GREEN, ORANGE
from gccost.showing.plots import (
    NO_ESTIMATE,
    Axis,
    Drawing,
    Point,
    below,
    canvas,
    chart,
    curves,
    dots,
    headline,
    label_right,
)
from gccost.stats import SHOWN, Estimate, Width
from gccost.studies.common import measured

# === Cases ===========================================================================


OURS, COUNT = "rounds", "count"
METHODS: Mapping[str, str] = MappingProxyType(
    {
        OURS: "fresh processes in rounds, each round built anew",
        COUNT: "go test -count=10, as commonly run",
    }
)
LOADS: Mapping[str, str] = MappingProxyType(
    {"quiet": "quiet", "busy": "another process keeps a core busy"}
)
MEASUREMENTS = tuple(str(number) for number in range(1, 9))
BASELINE, COSTLY = "AllocateFree", "AllocateAuto"
# Long enough for the GC's cycles to show in sixteen laps.
_DRIFTED = 8_000_000
DRIFT = Variant("AllocateAutoLaps")


def measured_by(benchmark: str, method: str, load: str, measurement: str) -> Variant:
    """A variant of one independent measurement."""
    return Variant(
        benchmark, more=(("method", method), ("load", load), ("measurement", measurement))
    )


def _precision() -> Iterator[Case]:
    for method in METHODS:
        for load in LOADS:
            for measurement in MEASUREMENTS:
                for benchmark in (BASELINE, COSTLY):
                    variant = measured_by(benchmark, method, load, measurement)
                    yield Case("cstr", variant, TODAY_GO, AS_PUBLISHED if method == OURS else 0)
    yield Case("cstr", DRIFT, TODAY_GO, _DRIFTED)


# === Claims ==========================================================================


@dataclass(frozen=True)
class _OtherMethod(Quantity):
    """A ratio that is estimated by a method other than ours."""

    ratio: Ratio
    at_once: ClassVar[bool] = True


class PairedMeans(_OtherMethod):
    """The median over rounds of the ratio of means, this package's former estimator."""

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        """The ratio, with Student's interval over the rounds."""
        over, under = (
            data.samples(variant, release)[self.ratio.metric].groupby(level=0).median()
            for variant in self.variants
        )
        logs = np.log((over / under).dropna().to_numpy(dtype=float))
        if len(logs) < 2:
            return stats.amount([])
        value, spread = float(np.median(logs)), float(logs.std(ddof=1))
        t = float(scipy.special.stdtrit(len(logs) - 1, (1 + width.confidence) / 2))
        return _on_log_scale(value, t * spread / len(logs) ** 0.5, len(logs), width)


class MedianRatio(_OtherMethod):
    """A ratio of two medians, each with benchstat's interval from order statistics."""

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        """The ratio, with both intervals combined as independent errors."""
        sides = [
            np.sort(np.log(data.samples(variant, release)[self.ratio.metric].dropna().to_numpy()))
            for variant in self.variants
        ]
        n = min(map(len, sides))
        if n < 6:  # order statistics of fewer cannot give a 95 % interval
            return stats.amount([])
        halves = []
        for logs in sides:
            rank = int(scipy.stats.binom.ppf((1 - width.confidence) / 2, len(logs), 0.5))
            halves.append((logs[len(logs) - rank] - logs[rank - 1]) / 2)
        value = float(np.median(sides[0]) - np.median(sides[1]))
        return _on_log_scale(value, float(np.hypot(*halves)), n, width)


def _on_log_scale(value: float, half: float, n: int, width: Width) -> Estimate:
    middle, low, high = (float(end) for end in np.exp([value, value - half, value + half]))
    return Estimate(middle, low, high, n, n, width.confidence)


ESTIMATORS: dict[str, tuple[str, Callable[[Ratio], Quantity]]] = {
    "the undisturbed cost": (OURS, lambda ratio: ratio),
    "paired rounds of means": (OURS, PairedMeans),
    "go test -count=10, benchstat": (COUNT, MedianRatio),
}


def measurements(method: str, load: str) -> tuple[Quantity, ...]:
    """The independent measurements of claim L1's ratio by one of ESTIMATORS."""
    samples, quantity = ESTIMATORS[method]
    return tuple(
        quantity(
            Ratio(
                measured_by(COSTLY, samples, load, number),
                measured_by(BASELINE, samples, load, number),
            )
        )
        for number in MEASUREMENTS
    )


def agreement(load: str) -> Agreement:
    """The agreement of our measurements, compared with that of go test -count's."""
    ours, _, count = (measurements(method, load) for method in ESTIMATORS)
    return Agreement(ours, count)


def shift(recording: Recording, method: str) -> Estimate:
    """How many times as large a method's measurements are on the busy machine.

    The ratio of the geometric means, with Welch's interval over the measurements.
    """
    made = {load: measurements(method, load) for load in ("busy", "quiet")}
    busy, quiet = (
        np.log([e.value for m in made[load] if (e := recording.estimate(m, TODAY_GO)).samples])
        for load in made
    )
    n = min(len(busy), len(quiet))
    if n < 2:
        return stats.amount([])
    ends = scipy.stats.ttest_ind(busy, quiet, equal_var=False).confidence_interval()
    value, low, high = map(float, np.exp([busy.mean() - quiet.mean(), *ends]))
    return Estimate(value, low, high, n, n, SHOWN.confidence)


CLAIMS: tuple[Claim, ...] = tuple(
    Claim(name, "the-same-again", quantity, rule, (TODAY_GO,))
    for name, quantity, rule in (
        ("X9a", agreement("quiet"), Agrees()),
        ("X9b", agreement("quiet"), AtMost(margin=1.0)),
        ("X9c", agreement("busy"), Agrees()),
    )
)


# === Charts ==========================================================================


_INKS = dict(zip(ESTIMATORS, (BLUE, GREEN, ORANGE), strict=True))


@chart("precision", "No ratio was measured repeatedly")
def precision(recording: Recording) -> Drawing | None:
    """Eight independent measurements of claim L1 by each method, quiet and busy."""
    within = {
        (method, load): rounding.percent(
            Agreement(measurements(method, load)).estimate(recording, TODAY_GO).value - 1
        )
        for method in ESTIMATORS
        for load in LOADS
    }
    points = measured(
        Point(
            "",
            f"{method},\n{LOADS[load]}",
            quantity.estimate(recording, TODAY_GO),
            label=f"within {spread}" if i == len(MEASUREMENTS) // 2 else "",
            colour=_INKS[method],
            data={"method": method, "go": TODAY_GO}
            | {"load": load, "measurement": i, "unit": "ratio"},
        )
        for (method, load), spread in within.items()
        for i, quantity in enumerate(measurements(method, load), 1)
    )
    ends = [end for p in points for end in (p.estimate.low, p.estimate.value, p.estimate.high)]
    low, high = (f(filter(math.isfinite, ends), default=math.nan) for f in (min, max))
    margin = 0.03 * (high - low)
    return dots(
        points,
        "Eight measurements of the same ratio lie within "
        + ", ".join(
            f"{spread} by {method}"
            for (method, load), spread in within.items()
            if load == "quiet" and spread != rounding.percent(math.nan)
        ),
        f"a finalizer over a manual free, Go {TODAY_GO} (ratio)\n"
        f"{len(MEASUREMENTS)} measurements each; bars: their 95 % intervals",
        kind="A dot plot of independent measurements of one ratio",
        limits=(low - margin, high + margin),
        close=0.18,
    )


@chart("precision-slices", "No slices were recorded")
def slices(recording: Recording) -> Drawing | None:
    """The slices of one baseline process, quiet and busy, with their floor and mean."""
    found = {}
    for load in LOADS:
        case = measured_by(BASELINE, OURS, load, MEASUREMENTS[0]).on(TODAY_GO)
        if stored := recording.run.read_slices(case):
            found[load] = np.array(stored)
    if not found:
        return None
    floors = {load: float(np.quantile(values, 0.05)) for load, values in found.items()}
    means = {load: float(values.mean()) for load, values in found.items()}
    top = 1.6 * max(float(np.quantile(values, 0.99)) for values in found.values())
    figure, all_axes = canvas([5] * len(found))
    for axes, (load, values) in zip(all_axes, found.items(), strict=True):
        shown = [rounding.rounded(v) for v in np.minimum(values, top)]
        axes.scatter(range(len(shown)), shown, s=3, color=BLUE, alpha=0.5, linewidths=0)
        for level, name, ink, side in (
            (floors[load], "5 % quantile", BLUE, "top"),
            (means[load], "mean", ORANGE, "bottom"),
        ):
            axes.axhline(level, color=ink, linewidth=1.2)
            label_right(axes, level, f"{name} {rounding.nanoseconds(level)}", ink, va=side)
        axes.set(ylim=(0, top), title=LOADS[load], ylabel="ns per operation")
    below(figure, "slice of 1,024 operations, in order; slower slices are drawn at the top edge")
    title = "The mean and the floor of one process each: " + "; ".join(
        f"{LOADS[load]}, {rounding.nanoseconds(means[load])} and "
        f"{rounding.nanoseconds(floors[load])}"
        for load in found
    )
    headline(figure, title)
    slowest = "; ".join(
        f"{LOADS[load]} {rounding.nanoseconds(values.max())}" for load, values in found.items()
    )
    data = pd.DataFrame(
        {"load": load, "slice": i, "estimate": value, "unit": "ns/op"}
        for load, values in found.items()
        for i, value in enumerate(values)
    )
    alt = f"A scatter plot of the time of each slice of one process; the slowest: {slowest}."
    return Drawing(figure, title, alt, data)


@chart("precision-drift", "No loop was timed in laps")
def drift(recording: Recording) -> Drawing | None:
    """The time per operation through one long loop with the GC on."""
    samples = recording.samples(DRIFT, TODAY_GO)
    laps = sorted(c for c in samples.columns if c.startswith("lap") and c.endswith("-ns/op"))
    each = samples["n"].max() / len(laps) if laps else math.nan
    points = [
        Point(
            "",
            "median of the processes" if len(samples) > 1 else "one process",
            replace(NO_ESTIMATE, value=float(samples[lap].median())),
            i * each / 1e6,
            raw=samples[lap],
            label=rounding.nanoseconds(samples[lap].median()),
        )
        for i, lap in enumerate(laps, 1)
        if len(samples)
    ]
    medians = [p.estimate.value for p in points] or [math.nan]
    found = curves(
        points,
        "The laps of a long loop take "
        f"{rounding.extent(medians, rounding.nanoseconds)} per operation",
        Axis("operations so far (millions)"),
        Axis("ns per operation in this lap", limits=(0, None)),
        kind="A line chart of the time per operation over the millions of operations so far",
    )
    data = [(1e6 * p.x, p.estimate.value, "ns/op") for p in points]
    return found and replace(
        found, data=pd.DataFrame(data, columns=["operations", "estimate", "unit"])
    )


# === The study =======================================================================

STUDY = Study(
    name="precision",
    chapter="09-how-sure",
    question="Do repeated measurements agree?",
    cases=tuple(_precision()),
    document=TODAY_GO,
    command="make precision",
    claims=CLAIMS,
    charts=(precision, slices, drift),
)
