"""The charts of chapter 09: how precise the measuring is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gccost import rounding
from gccost.judging.claims.quantities import Agreement
from gccost.judging.models import Line, line
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
    """Each pair of processes beside each other: its ratio, by how slow the machine was then."""
    pairs = {name: _by_slowness(recording, benchmark) for benchmark, name in _BESIDE.items()}
    pairs = {name: found for name, found in pairs.items() if len(found) > 2}
    if not pairs:
        return nothing("precision-neighbours", "No pair was measured beside each other")
    moves = {name: _moves(found) for name, found in pairs.items()}
    with style():
        figure, (axes,) = canvas([12])
        axes.axhline(0, color=MUTED, linewidth=1)
        ends = []
        for (name, found), colour in zip(pairs.items(), (GREEN, BLUE, ORANGE), strict=False):
            xs = [rounding.rounded(x) for x in found["slow"]]
            ys = [rounding.rounded(100 * (ratio - 1)) for ratio in found["ratio"]]
            axes.scatter(xs, ys, s=14, color=colour, alpha=0.55, linewidth=0)
            across = np.geomspace(min(xs), max(xs), 20)
            fitted = [100 * (2 ** moves[name].fit.at(math.log2(x)) - 1) for x in across]
            axes.plot(across, fitted, color=colour, linewidth=2)
            ends.append((rounding.rounded(fitted[-1]), name, colour))
        name_ends(axes, ends)
        axes.set_xlabel("how slow the machine was: freeing by hand over its median (1: as usual)")
        axes.set_ylabel("the pair's ratio over its median, %")
        title = _neighbours_title(moves)
        headline(figure, title)
        plt.close(figure)
    data = pd.concat([found.assign(pairs=name) for name, found in pairs.items()])
    alt = "A scatter plot of each pair's ratio by how slow the machine was then: " + "; ".join(
        f"{name}, {len(found)} pairs, where the machine is {rounding.times(moves[name].slower)} as "
        f"slow the ratio changes by {rounding.percent(moves[name].change)}"
        for name, found in pairs.items()
    )
    columns = ["pairs", "slow", "ratio"]
    data = data[columns].map(lambda x: rounding.rounded(x) if isinstance(x, float) else x)
    return finish(figure, name="precision-neighbours", title=title, alt=alt + ".", data=data)


def _by_slowness(recording: Recording, benchmark: str) -> pd.DataFrame:
    """How slow the machine was in each pair, and the pair's ratio, each over its median in
    the measurement.

    Every other sample of the baseline tells how slow, the rest are the ratio's: what
    disturbs one sample would else move both, and make a slope where there is none.
    """
    found = []
    for load in LOADS:
        for ratio in independent(benchmark, "beside", load):
            samples = {arm: recording.samples(arm, TODAY_GO) for arm in ratio.arms}
            if any(ratio.metric not in each for each in samples.values()):
                continue
            baseline = samples[ratio.denominator][ratio.metric]
            told = baseline.groupby(level=0).cumcount() % 2 == 1
            slow, under = (baseline[chosen].groupby(level=0).mean() for chosen in (told, ~told))
            over = samples[ratio.numerator][ratio.metric].groupby(level=0).mean()
            each = pd.DataFrame({"slow": slow, "ratio": over / under}).dropna()
            each = each[((each > 0) & (each < math.inf)).all(axis="columns")]
            found.append(each / each.median())
    return pd.concat(found) if found else pd.DataFrame(columns=["slow", "ratio"], dtype=float)


@dataclass(frozen=True)
class _Move:
    """How a ratio moves with how slow the machine is, over most of what was seen."""

    fit: Line  # of the logs, to the base of 2
    slower: float  # than at its fastest tenth: at its slowest
    change: float  # of the ratio between the two, a share
    sure: bool


def _moves(pairs: pd.DataFrame) -> _Move:
    fit = line(np.log2(pairs["slow"]), np.log2(pairs["ratio"]))
    slower = float(pairs["slow"].quantile(0.9) / pairs["slow"].quantile(0.1))
    sure = bool(fit.slope) and fit.r2 * (len(pairs) - 2) > _SURE**2 * (1 - fit.r2)
    return _Move(fit, slower, slower**fit.slope - 1, sure)


def _neighbours_title(moves: Mapping[str, _Move]) -> str:
    """Names what moves most, if it surely does and more than the baseline against itself."""
    others = {name: move for name, move in moves.items() if name != _BESIDE[ITSELF]}
    itself = moves.get(_BESIDE[ITSELF])
    least = abs(itself.change) if itself else 0.0
    sure = [n for n, move in others.items() if move.sure and abs(move.change) > least]
    if not sure:
        return "How slow the machine was made no sure difference to the ratios here"
    name = max(sure, key=lambda n: abs(others[n].change))
    move = others[name]
    return (
        f"Where the machine was {rounding.times(move.slower)} as slow, the ratio of {name} was "
        f"{rounding.percent(abs(move.change))} {'lower' if move.change < 0 else 'higher'}"
    )
