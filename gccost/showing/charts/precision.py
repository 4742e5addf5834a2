"""The charts of chapter 09: how precise the measuring is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gccost import rounding
from gccost.judging.claims.quantities import Agreement
from gccost.judging.models import line
from gccost.judging.recording import Recording
from gccost.measuring.experiments.precision import DRIFT, ITSELF, LOADS, METHODS, independent
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.charts.common import canvas, headline, lines_down, name_ends, nothing, row
from gccost.showing.figures import BLUE, GREEN, MUTED, ORANGE, Chart, finish, style
from gccost.stats import Estimate

_PRECISION_RATIOS = {
    "AllocateAuto": "finalizer against freed by hand",
    "AllocateCleanup": "AddCleanup against freed by hand",
}


_BESIDE = {
    ITSELF: "freed by hand against itself",
    "AllocateAuto": "a finalizer against freed by hand",
    "AllocateCleanup": "AddCleanup against freed by hand",
}
# So many standard errors of a slope that it is surely one.
_SURE = 3.0


def precision(recording: Recording) -> Chart:
    """Four independent measurements of two ratios by each method, quiet and busy, and of
    the baseline beside itself."""
    lines = [(method, load) for method in METHODS for load in LOADS]
    itself = [("beside", load) for load in LOADS]
    panels = {name: (benchmark, lines) for benchmark, name in _PRECISION_RATIOS.items()}
    panels[_BESIDE[ITSELF]] = (ITSELF, itself)
    spreads: dict[str, list[float]] = {method: [] for method in METHODS}
    data: list[dict[str, object]] = []
    with style():
        figure, all_axes = canvas([1.6 * len(lines) for _, lines in panels.values()])
        for axes, (name, (benchmark, lines)) in zip(all_axes, panels.items(), strict=True):
            for y, (method, load) in enumerate(lines):
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
            lines_down(axes, [f"{METHODS[m]}\n{LOADS[load]}" for m, load in lines])
            axes.set_title(name)
            _around(axes, [float(str(r["estimate"])) for r in data if r["arm"] == name])
        all_axes[-1].set_xlabel("ratio to freed by hand, four measurements each")
        widest = {method: max(found) - 1 for method, found in spreads.items()}
        title = (
            f"Measured four times over, paired rounds agree within "
            f"{rounding.percent(widest['rounds'])}, processes beside each other within "
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


def neighbours(recording: Recording) -> Chart:
    """Each pair of processes beside each other: its ratio, by how slow the machine was then.

    How slow is told by both programs alike: by one alone, what disturbed that one would
    move the ratio and the place, and make a slope where there is none.
    """
    pairs = {
        name: pd.concat(
            [
                recording.pairs(ratio, TODAY_GO)
                for load in LOADS
                for ratio in independent(benchmark, "beside", load)
            ]
        )
        for benchmark, name in _BESIDE.items()
    }
    pairs = {name: found for name, found in pairs.items() if len(found) > 2}
    if not pairs:
        return nothing("precision-neighbours", "No pair was measured beside each other")
    data, halved, sure = [], {}, {}
    with style():
        figure, (axes,) = canvas([12])
        axes.axhline(0, color=MUTED, linewidth=1)
        ends = []
        for (name, found), colour in zip(pairs.items(), (GREEN, BLUE, ORANGE), strict=False):
            ratios = found["numerator"] / found["denominator"]
            slow = np.sqrt((found / found.median()).prod(axis="columns"))
            fit = line(np.log2(slow), np.log2(ratios))
            halved[name] = 2**fit.slope - 1
            sure[name] = fit.r2 * (len(found) - 2) > _SURE**2 * (1 - fit.r2)
            usual = float(np.median(ratios))
            xs = [rounding.rounded(x) for x in slow]
            ys = [rounding.rounded(100 * (ratio / usual - 1)) for ratio in ratios]
            axes.scatter(xs, ys, s=14, color=colour, alpha=0.55, linewidth=0)
            across = np.geomspace(slow.min(), slow.max(), 20)
            fitted = [100 * (2 ** fit.at(math.log2(x)) / usual - 1) for x in across]
            axes.plot(across, fitted, color=colour, linewidth=2)
            ends.append((rounding.rounded(fitted[-1]), name, colour))
            data += [
                {"ratio": name, "slowness": x, "estimate": rounding.rounded(r), "unit": "ratio"}
                for x, r in zip(xs, ratios, strict=True)
            ]
        name_ends(axes, ends)
        axes.set_xlabel("how slow the machine was: both programs' CPU time over its median")
        axes.set_ylabel("ratio against its median, %")
        title = _neighbours_title(halved, sure)
        headline(figure, title)
        plt.close(figure)
    alt = "A scatter plot of each pair's ratio by how slow the machine was then: " + "; ".join(
        f"{name}, {len(found)} pairs, where the machine is half as fast the ratio changes by "
        f"{rounding.percent(halved[name])}"
        for name, found in pairs.items()
    )
    frame = pd.DataFrame(data)
    return finish(figure, name="precision-neighbours", title=title, alt=alt + ".", data=frame)


def _neighbours_title(halved: Mapping[str, float], sure: Mapping[str, bool]) -> str:
    moved = max(halved, key=lambda name: abs(halved[name]) if sure[name] else 0.0)
    if not sure[moved]:
        return "How slow the machine was made no sure difference to the ratios here"
    change = f"{'falls' if halved[moved] < 0 else 'rises'} by"
    return (
        f"Where the machine is half as fast, the ratio of {moved} {change} "
        f"{rounding.percent(abs(halved[moved]))}"
    )
