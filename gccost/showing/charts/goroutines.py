"""The chart of work that many goroutines share, for the chapters that have one."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd

from gccost import rounding
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import GOROUTINES, shared
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.charts.common import (
    NAMES,
    Curve,
    below,
    canvas,
    colour,
    draw,
    headline,
    name_ends,
    nothing,
    plain_ticks,
    row,
    ticks_between,
)
from gccost.showing.figures import Chart, finish, style

_CLOCKS = {"ns/op": "wall time per object", "cpu-ns/op": "CPU time per object, all threads"}


def shared_work(recording: Recording, name: str, benchmarks: Sequence[str]) -> Chart:
    """What an object costs when many goroutines share the work, a curve a benchmark."""
    found = {
        metric: [
            curve
            for benchmark in benchmarks
            if (curve := _over_goroutines(recording, benchmark, metric)).xs
        ]
        for metric in _CLOCKS
    }
    found = {metric: curves for metric, curves in found.items() if curves}
    if not found:
        return nothing(name, f"Work shared among goroutines was not measured on Go {TODAY_GO}")
    data = [
        row(c.name, TODAY_GO, e, goroutines=x, unit=metric)
        for metric, curves in found.items()
        for c in curves
        for x, e in zip(c.xs, c.estimates, strict=True)
    ]
    title = _parallel_title(next(iter(found.values())))
    with style():
        figure, all_axes = canvas([9] * len(found))
        for axes, (metric, curves) in zip(all_axes, found.items(), strict=True):
            for curve in curves:
                draw(axes, curve)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            places = sorted({x for curve in curves for x in curve.xs})
            axes.set_xlim(places[0] / 1.15, places[-1] * 1.15)
            axes.set_xticks(places, [f"{x:.0f}" for x in places])
            axes.minorticks_off()
            low, high = axes.get_ylim()
            axes.set_ylim(low, high)
            plain_ticks(axes, "y", ticks_between(low, high))
            axes.set_ylabel("ns per object (log)")
            axes.set_title(_CLOCKS[metric])
            name_ends(axes, [(c.estimates[-1].value, c.name, c.colour) for c in curves], gap=0.1)
        below(figure, "goroutines that share the work (log)")
        headline(figure, title)
        plt.close(figure)
    alt = "A line chart of the time per object over the goroutines: " + "; ".join(
        f"{_CLOCKS[metric]}, {c.name}: "
        + ", ".join(
            f"{rounding.nanoseconds(e.value)} at {x:.0f}"
            for x, e in zip(c.xs, c.estimates, strict=True)
        )
        for metric, curves in found.items()
        for c in curves
    )
    return finish(figure, name=name, title=title, alt=alt + ".", data=pd.DataFrame(data))


def _over_goroutines(recording: Recording, benchmark: str, metric: str) -> Curve:
    xs, estimates, values = [], [], []
    for goroutines in GOROUTINES:
        arm = shared(benchmark, goroutines)
        estimate = recording.level(arm, TODAY_GO, metric)
        if estimate.samples:
            xs.append(float(goroutines))
            estimates.append(estimate)
            values.append(list(recording.samples(arm, TODAY_GO)[metric].dropna()))
    arm = shared(benchmark, 1)
    return Curve(NAMES[arm.benchmark], xs, estimates, values, colour(arm))


def _parallel_title(curves: list[Curve]) -> str:
    parts = [
        f"{c.name} {rounding.plain(c.estimates[0].value)} to "
        f"{rounding.nanoseconds(c.estimates[-1].value)}"
        for c in reversed(curves)
    ]
    first, last = min(c.xs[0] for c in curves), max(c.xs[-1] for c in curves)
    return (
        f"Wall time per object from {first:.0f} to {last:.0f} goroutines on Go {TODAY_GO}: "
        + "; ".join(parts)
    )
