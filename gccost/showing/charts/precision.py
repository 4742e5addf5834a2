"""The charts of chapter 09: how precise the measuring is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

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
from gccost.showing.charts.old import below, canvas, headline, lines_down, nothing, row
from gccost.showing.figures import BLUE, GREEN, MUTED, ORANGE, Chart, finish, style
from gccost.stats import Estimate

_INKS = dict(zip(METHODS, (BLUE, GREEN, ORANGE), strict=True))


def precision(recording: Recording) -> Chart:
    """Eight independent measurements of L1 by each method, quiet and busy."""
    found = {
        (method, load): [
            quantity.estimate(recording, TODAY_GO) for quantity in measurements(method, load)
        ]
        for method in METHODS
        for load in LOADS
    }
    found = {key: known for key, es in found.items() if (known := [e for e in es if e.samples])}
    if not found:
        return nothing("precision", "No ratio was measured several times over")
    within = {
        key: Agreement(measurements(*key)).estimate(recording, TODAY_GO).value for key in found
    }
    with style():
        figure, (axes,) = canvas([1.7 * len(found)])
        for y, ((method, load), estimates) in enumerate(found.items()):
            label = f"within {rounding.percent(within[method, load] - 1)}"
            _group(axes, y, estimates, _INKS[method], label)
        lines_down(axes, [f"{method}\n{LOADS[load]}" for method, load in found])
        ends = [end for es in found.values() for e in es for end in (e.low, e.value, e.high)]
        low, high = (f(end for end in ends if math.isfinite(end)) for f in (min, max))
        axes.set_xlim(low - 0.03 * (high - low), high + 0.03 * (high - low))
        below(
            figure,
            f"a finalizer over a manual free, Go {TODAY_GO} (ratio)\n"
            f"{len(MEASUREMENTS)} measurements each; bars: their 95 % intervals",
        )
        title = "The same ratio measured eight times over lies within " + ", ".join(
            f"{rounding.percent(spread - 1)} by {method}"
            for (method, load), spread in within.items()
            if load == "quiet"
        )
        headline(figure, title)
        plt.close(figure)
    data = pd.DataFrame(
        [
            row(method, TODAY_GO, e, load=load, measurement=i, unit="ratio")
            for (method, load), es in found.items()
            for i, e in enumerate(es, 1)
        ]
    ).rename(columns={"arm": "method"})
    alt = "A dot plot of independent measurements of one ratio: " + "; ".join(
        f"{method}, {LOADS[load]}, {', '.join(rounding.times(e.value) for e in es)}"
        for (method, load), es in found.items()
    )
    return finish(figure, name="precision", title=title, alt=alt + ".", data=data)


def _group(axes: Axes, y: float, estimates: Sequence[Estimate], colour: str, label: str) -> None:
    """Several estimates of one thing on one line, one below the other."""
    for i, estimate in enumerate(estimates):
        at = y + 0.6 * (i / max(len(estimates) - 1, 1) - 0.5)
        low, high = rounding.rounded(estimate.low), rounding.rounded(estimate.high)
        if math.isfinite(low) and math.isfinite(high):
            axes.plot([low, high], [at, at], color=colour, linewidth=1.4)
        axes.scatter([rounding.rounded(estimate.value)], [at], s=20, color=colour, zorder=3)
    axes.annotate(
        label,
        (1, y),
        xycoords=axes.get_yaxis_transform(),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        color=colour,
        fontsize=9,
    )


def slices(recording: Recording) -> Chart:
    """The slices of one process of the baseline, quiet and busy: the floor and the bursts."""
    found = {}
    for load in LOADS:
        path = recording.run.slices(measured_by(BASELINE, OURS, load, MEASUREMENTS[0]).on(TODAY_GO))
        if path.exists():
            found[load] = np.array(path.read_text().split(), dtype=float)
    if not found:
        return nothing("precision-slices", "The slices of no sample were kept")
    with style():
        figure, all_axes = canvas([5] * len(found))
        tops = [float(np.quantile(values, 0.99)) * 1.6 for values in found.values()]
        for axes, (load, values) in zip(all_axes, found.items(), strict=True):
            floor, mean = float(np.quantile(values, 0.05)), float(values.mean())
            shown = [rounding.rounded(min(v, max(tops))) for v in values]
            axes.scatter(range(len(shown)), shown, s=3, color=BLUE, alpha=0.5, linewidths=0)
            for level, name, ink in ((floor, "5 % quantile", BLUE), (mean, "mean", ORANGE)):
                axes.axhline(level, color=ink, linewidth=1.2)
                axes.annotate(
                    f"{name} {rounding.nanoseconds(level)}",
                    (1, level),
                    xycoords=axes.get_yaxis_transform(),
                    xytext=(6, 0),
                    textcoords="offset points",
                    va="bottom" if name == "mean" else "top",
                    color=ink,
                    fontsize=9,
                )
            axes.set_ylim(0, max(tops))
            axes.set_title(LOADS[load])
            axes.set_ylabel("ns per operation")
        below(figure, "slice of 1,024 operations, in order; slices above the top are drawn there")
        means, floors = (
            {load: float(f(v)) for load, v in found.items()}
            for f in (np.mean, lambda v: np.quantile(v, 0.05))
        )
        title = "A loop is slowed down in bursts: " + ", ".join(
            f"{LOADS[load]}, its mean is {rounding.nanoseconds(means[load])} and its floor "
            f"{rounding.nanoseconds(floors[load])}"
            for load in found
        )
        headline(figure, title)
        plt.close(figure)
    data = pd.DataFrame(
        [
            {"load": load, "slice": i, "estimate": rounding.rounded(float(v)), "unit": "ns/op"}
            for load, values in found.items()
            for i, v in enumerate(values)
        ]
    )
    alt = "A scatter plot of the time of each slice of one process: " + "; ".join(
        f"{LOADS[load]}, floor {rounding.nanoseconds(floors[load])}, mean "
        f"{rounding.nanoseconds(means[load])}, slowest slice {rounding.nanoseconds(float(v.max()))}"
        for load, v in found.items()
    )
    return finish(figure, name="precision-slices", title=title, alt=alt + ".", data=data)


def drift(recording: Recording) -> Chart:
    """The time per operation through one long loop with the GC on."""
    samples = recording.samples(DRIFT, TODAY_GO)
    laps = sorted(c for c in samples.columns if c.startswith("lap") and c.endswith("-ns/op"))
    if not len(samples) or not laps:
        return nothing("precision-drift", "No loop was timed in laps")
    n = float(samples["n"].max())
    ends = [rounding.rounded(n * (i + 1) / len(laps) / 1e6) for i in range(len(laps))]
    median = samples[laps].median()
    with style():
        figure, (axes,) = canvas([8])
        for _, curve in samples[laps].iterrows():
            axes.plot(ends, [rounding.rounded(x) for x in curve], color=MUTED, alpha=0.5)
        axes.plot(ends, [rounding.rounded(x) for x in median], color=BLUE, linewidth=2.4)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("operations so far (millions)")
        axes.set_ylabel("ns per operation in this lap")
        spread = float(median.max() / median.min())
        title = (
            f"In one process the most expensive lap costs {rounding.times(spread)} the cheapest: "
            "what is measured depends on N"
        )
        headline(figure, title)
        plt.close(figure)
    frame = pd.DataFrame(
        {"operations": [e * 1e6 for e in ends], "estimate": list(median), "unit": "ns/op"}
    )
    alt = "A line chart of the time per operation in each sixteenth of a loop: " + ", ".join(
        rounding.nanoseconds(x) for x in median
    )
    return finish(figure, name="precision-drift", title=title, alt=alt + ".", data=frame)
