"""The charts of chapter 09: how precise the measuring is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from gccost import rounding
from gccost.judging.claims.quantities import Agreement
from gccost.judging.recording import Recording
from gccost.measuring.experiments.precision import DRIFT, ITSELF, LOADS, METHODS, independent
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.charts.common import canvas, headline, lines_down, row
from gccost.showing.figures import BLUE, ORANGE, Chart, finish, style
from gccost.stats import Estimate

_PRECISION_RATIOS = {
    "AllocateAuto": "finalizer over by hand",
    "AllocateCleanup": "AddCleanup over by hand",
}


def precision(recording: Recording) -> Chart:
    """Four independent measurements of two ratios by each method, quiet and busy, and of
    the baseline beside itself."""
    lines = [(method, load) for method in METHODS for load in LOADS]
    itself = [("beside", load) for load in LOADS]
    panels = {name: (benchmark, lines) for benchmark, name in _PRECISION_RATIOS.items()}
    panels["by hand over itself"] = (ITSELF, itself)
    spreads: dict[str, list[float]] = {method: [] for method in METHODS}
    data: list[dict[str, object]] = []
    with style():
        figure, all_axes = canvas([1.6 * len(down) for _, down in panels.values()])
        for axes, (name, (benchmark, down)) in zip(all_axes, panels.items(), strict=True):
            for y, (method, load) in enumerate(down):
                ratios = independent(benchmark, method, load)
                estimates = [recording.ratio(ratio, TODAY_GO) for ratio in ratios]
                spread = recording.spread(Agreement((ratios,)), TODAY_GO)
                if benchmark != ITSELF:
                    spreads[method].append(spread.value)
                colour = BLUE if method in ("rounds", "beside") else ORANGE
                _group(axes, y, estimates, colour, f"within {rounding.percent(spread.value - 1)}")
                data += [
                    row(name, TODAY_GO, e, method=method, load=load, measurement=i, unit="ratio")
                    for i, e in enumerate(estimates, 1)
                ]
            lines_down(axes, [f"{METHODS[m]}\n{LOADS[load]}" for m, load in down])
            axes.set_title(name)
            _around(axes, [float(str(r["estimate"])) for r in data if r["arm"] == name])
        all_axes[-1].set_xlabel("ratio, four measurements each")
        widest = {method: max(found) - 1 for method, found in spreads.items()}
        title = (
            f"Measured four times over, paired rounds agree within "
            f"{rounding.percent(widest['rounds'])}, processes in turns on one CPU within "
            f"{rounding.percent(widest['beside'])}, go test -count within "
            f"{rounding.percent(widest['count'])}"
        )
        headline(figure, title)
        plt.close(figure)
    frame = pd.DataFrame(data)
    alt = "A dot plot of four independent measurements a line: " + "; ".join(
        f"{r['arm']}, {METHODS[r['method']]}, {LOADS[r['load']]}, "
        f"measurement {r['measurement']}: {rounding.times(r['estimate'])}"
        for r in frame.to_dict("records")
    )
    return finish(figure, name="precision", title=title, alt=alt + ".", data=frame)


def _group(axes: Axes, y: float, estimates: Sequence[Estimate], colour: str, label: str) -> None:
    """Several estimates of one thing on one line, one below the other."""
    for i, estimate in enumerate(estimates):
        at = y + 0.5 * (i / max(len(estimates) - 1, 1) - 0.5)
        low, high = rounding.rounded(estimate.low), rounding.rounded(estimate.high)
        if math.isfinite(low) and math.isfinite(high):
            axes.plot([low, high], [at, at], color=colour, linewidth=1.4)
        axes.scatter([rounding.rounded(estimate.value)], [at], s=20, color=colour, zorder=3)
    axes.annotate(
        label,
        (1, y - 0.38),
        xycoords=axes.get_yaxis_transform(),
        xytext=(-4, 0),
        textcoords="offset points",
        va="center",
        ha="right",
        fontsize=9,
    )


def _around(axes: Axes, values: Sequence[float]) -> None:
    """Limits that show the values well; an interval that is wider is cut off there."""
    finite = [v for v in values if math.isfinite(v)]
    if finite:
        low, high = min(finite), max(finite)
        margin = max(high - low, 0.1 * high)
        axes.set_xlim(max(0.0, low - margin), high + 1.6 * margin)


def drift(recording: Recording) -> Chart:
    """The time per operation through one long loop with the GC on."""
    samples = recording.samples(DRIFT, TODAY_GO)
    laps = sorted(c for c in samples.columns if c.startswith("lap") and c.endswith("-ns/op"))
    curves = samples[laps]
    n = float(samples["n"].max()) if len(samples) else math.nan
    ends = [rounding.rounded(n * (i + 1) / len(laps) / 1e6) for i in range(len(laps))]
    median = curves.median()
    with style():
        figure, (axes,) = canvas([8])
        for _, curve in curves.iterrows():
            axes.plot(ends, [rounding.rounded(x) for x in curve], color=BLUE, alpha=0.3)
        axes.plot(ends, [rounding.rounded(x) for x in median], color=BLUE, linewidth=2.4)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("operations so far (millions); thin: one process each, thick: their median")
        axes.set_ylabel("ns per operation in this lap")
        spread = float(median.max() / median.min()) if len(laps) else math.nan
        title = (
            f"In one process the dearest lap costs {rounding.times(spread)} the cheapest: "
            "what is measured depends on N"
        )
        headline(figure, title)
        plt.close(figure)
    frame = pd.DataFrame(
        {"operations": [e * 1e6 for e in ends], "estimate": list(median), "unit": "ns/op"}
    )
    alt = (
        "A line chart of the median time per operation in each sixteenth of the loop: "
        + ", ".join(rounding.nanoseconds(x) for x in median)
    )
    return finish(figure, name="precision-drift", title=title, alt=alt + ".", data=frame)
