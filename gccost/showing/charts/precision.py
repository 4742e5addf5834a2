"""The charts of chapter 09: how precise the measuring is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from gccost import rounding
from gccost.judging.claims.precision import METHODS, measurements
from gccost.judging.claims.quantities import Agreement
from gccost.judging.recording import Recording
from gccost.measuring.experiments.precision import (
    BASELINE,
    DRIFT,
    LOADS,
    MEASUREMENTS,
    OURS,
    measured_by,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.charts.common import measured
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

_INKS = dict(zip(METHODS, (BLUE, GREEN, ORANGE), strict=True))


@chart("precision", "No ratio was measured several times over")
def precision(recording: Recording) -> Drawing | None:
    """Eight independent measurements of L1 by each method, quiet and busy."""
    within = {
        (method, load): rounding.percent(
            Agreement(measurements(method, load)).estimate(recording, TODAY_GO).value - 1
        )
        for method in METHODS
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
        "The same ratio measured eight times over lies within "
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


@chart("precision-slices", "The slices of no sample were kept")
def slices(recording: Recording) -> Drawing | None:
    """The slices of one process of the baseline, quiet and busy: the floor and the bursts."""
    found = {}
    for load in LOADS:
        path = recording.run.slices(measured_by(BASELINE, OURS, load, MEASUREMENTS[0]).on(TODAY_GO))
        if path.exists():
            found[load] = np.array(path.read_text().split(), dtype=float)
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
    below(figure, "slice of 1,024 operations, in order; slices above the top are drawn there")
    title = "A loop is slowed down in bursts: " + ", ".join(
        f"{LOADS[load]}, its mean is {rounding.nanoseconds(means[load])} "
        f"and its floor {rounding.nanoseconds(floors[load])}"
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
            "median",
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
        f"In one process the most expensive lap costs {rounding.times(max(medians) / min(medians))}"
        " the cheapest: what is measured depends on N",
        Axis("operations so far (millions)"),
        Axis("ns per operation in this lap", limits=(0, None)),
        kind="A line chart of the time per operation over the millions of operations so far",
    )
    data = [(1e6 * p.x, p.estimate.value, "ns/op") for p in points]
    return found and replace(
        found, data=pd.DataFrame(data, columns=["operations", "estimate", "unit"])
    )
