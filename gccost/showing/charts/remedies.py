"""The charts of chapter 08: what to do instead."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd

from gccost import rounding
from gccost.judging.claims.quantities import Amount
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import AUTO, CLEANUP, FREE, HEAP_FREE, Arm, Ratio
from gccost.measuring.experiments.remedies import (
    LIVE,
    LIVE_REMEDIES,
    ONE_HEAP,
    REMEDIES,
    living,
    slabs,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.charts.common import shared_work
from gccost.showing.charts.old import (
    NAMES,
    Curve,
    Dots,
    Timing,
    below,
    canvas,
    dot_plot,
    draw,
    headline,
    name_ends,
    name_points,
    nothing,
    plain_ticks,
    row,
    scaled,
    ticks_between,
    timings,
)
from gccost.showing.figures import BLUE, GREEN, INK, ORANGE, Chart, finish, style
from gccost.stats import Estimate

SETTLED = "settled-ns/op"
# What the program closes or frees is blue, what cannot be forgotten green, and the
# finalizer and the cleanup for each object, which all of them replace, orange.
_BY_HAND = {"AllocateHeapFree", "Batch", "SlabClose", "SlabCloseAtOnce", "Stop"}
_EACH = {"AllocateCleanup", "AllocateAuto", "OneHeapCleanup", "OneHeapFinalizer"}


def name(arm: Arm) -> str:
    """How a remedy is called beside its points."""
    sizes = dict(arm.sub)
    return NAMES[arm.benchmark] + (f" of {sizes['handles']}" if "handles" in sizes else "")


def _colour(arm: Arm) -> str:
    if arm.benchmark in _EACH:
        return ORANGE
    return BLUE if arm.benchmark in _BY_HAND else GREEN


def cost(recording: Recording) -> Chart:
    """What each remedy costs against a manual free, the rest collected."""
    arms = (HEAP_FREE, *REMEDIES, *ONE_HEAP, CLEANUP, AUTO)
    ratios = {arm: recording.ratio(Ratio(arm, FREE, SETTLED), TODAY_GO) for arm in arms}
    measured = sorted((arm for arm in arms if ratios[arm].samples), key=lambda a: ratios[a].value)
    if not measured:
        return nothing("remedies-cost", "None of the remedies was measured")
    lines, data = [], []
    for arm in measured:
        ratio = ratios[arm]
        values = recording.points(Ratio(arm, FREE, SETTLED), TODAY_GO)
        label = rounding.times(ratio.value)
        lines.append(Dots(name(arm), list(values), ratio, label, _colour(arm)))
        data.append(row(name(arm), TODAY_GO, ratio, unit="ratio"))
    slab, auto = ratios[slabs("Slab")], ratios[AUTO]
    title = (
        f"On Go {TODAY_GO} slabs of 64 cost {rounding.times(slab.value)} a manual free, "
        f"a finalizer for each object {rounding.times(auto.value)}"
    )
    with style():
        figure, (axes,) = dot_plot(
            {"": lines},
            title,
            "settled wall-clock time over that of the manual free (ratio, log scale)\n"
            "blue: the program closes or frees; green: cannot be forgotten; orange: one for each",
        )
        drawn = [v for line in lines for v in (line.estimate.value, *line.points) if v > 0]
        low, high = min(0.5, *drawn) / 1.15, max(drawn) * 1.3
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        plain_ticks(axes, "x", ticks_between(low, high))
        axes.axvline(1, color=INK, linewidth=1, zorder=0)
        plt.close(figure)
    alt = "A dot plot of the settled cost over that of a manual free: " + "; ".join(
        f"{line.name} {line.label}" for line in lines
    )
    return finish(figure, name="remedies-cost", title=title, alt=alt + ".", data=pd.DataFrame(data))


def memory(recording: Recording) -> Chart:
    """Cost against the C blocks that a surviving handle holds, by the size of a slab."""
    points = []
    for handles in (8, 64, 256):
        ratio = recording.ratio(Ratio(slabs("Slab", handles), FREE, SETTLED), TODAY_GO)
        survivors = Amount(slabs("SlabSurvivors", handles), "c-held/survivor")
        held = recording.estimate(survivors, TODAY_GO)
        if ratio.samples and held.samples:
            points.append((f"slabs of {handles}", held, ratio, GREEN))
    for arm in (Arm("LastFirst"), CLEANUP, AUTO):
        ratio = recording.ratio(Ratio(arm, FREE, SETTLED), TODAY_GO)
        if ratio.samples:
            one = Estimate(1.0, 1.0, 1.0, ratio.samples, ratio.rounds, ratio.confidence)
            points.append((name(arm), one, ratio, _colour(arm)))
    if not points:
        return nothing("remedies-memory", "What a survivor holds was not measured")
    title = "What a slab costs, and what a handle that survives holds: " + ", ".join(
        f"{rounding.blocks(held.value)} at {rounding.times(ratio.value)} with {text}"
        for text, held, ratio, _ in points
        if text.startswith("slabs")
    )
    with style():
        figure, (axes,) = canvas([9])
        for _, held, ratio, ink in points:
            x, y = rounding.rounded(held.value), rounding.rounded(ratio.value)
            axes.plot([x, x], [ratio.low, ratio.high], color=ink, linewidth=1.6)
            axes.scatter([x], [y], s=38, color=ink, zorder=3)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(0.7, 2000)
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, 0.8), high)
        plain_ticks(axes, "x", (1, 10, 100, 1000))
        plain_ticks(axes, "y", ticks_between(*axes.get_ylim()))
        axes.axhline(1, color=INK, linewidth=1, zorder=0)
        name_points(
            axes,
            [
                (held.value, ratio.value, f"{text}, {rounding.times(ratio.value)}", ink)
                for text, held, ratio, ink in points
            ],
        )
        axes.set_xlabel("C blocks held per surviving handle, one in a hundred surviving (log)")
        axes.set_ylabel("settled time over the manual free (log)")
        headline(figure, title)
        plt.close(figure)
    data = pd.DataFrame(
        [row(text, TODAY_GO, ratio, held=held.value) for text, held, ratio, _ in points]
    )
    alt = "A scatter plot of cost against memory: " + "; ".join(
        f"{text} {rounding.times(ratio.value)}, {rounding.blocks(held.value)} a survivor"
        for text, held, ratio, _ in points
    )
    return finish(figure, name="remedies-memory", title=title, alt=alt + ".", data=data)


_INKS = dict(zip(LIVE_REMEDIES, (BLUE, GREEN, INK, ORANGE), strict=True))


def _by_live(recording: Recording, metric: str, unit: float = 1) -> list[Curve]:
    """A metric of each remedy in a unit, by how many handles are live."""
    curves = []
    for benchmark in LIVE_REMEDIES:
        xs, estimates, values = [], [], []
        for count in LIVE:
            arm = living(benchmark, count)
            estimate = recording.level(arm, TODAY_GO, metric)
            if estimate.samples:
                xs.append(float(count))
                estimates.append(scaled(estimate, 1 / unit))
                values.append(list(recording.values(arm, TODAY_GO, metric) / unit))
        if xs:
            curves.append(Curve(NAMES[benchmark], xs, estimates, values, _INKS[benchmark]))
    return curves


def _short(x: float) -> str:
    """A number of handles as "10", "100k", "10M"."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if x >= unit:
            return f"{x / unit:g}{letter}"
    return f"{x:g}"


def live(recording: Recording) -> Chart:
    """What closing a handle at random costs, and the memory, by how many are live."""
    curves, held = _by_live(recording, "ns/op"), _by_live(recording, "peak-rss-bytes", 2**20)
    if not curves:
        return nothing("remedies-live", "Handles closed at random were not measured")
    most = max(curve.xs[-1] for curve in curves)
    title = f"Closing one of {most:,.0f} live handles at random and opening another: " + ", ".join(
        f"{c.name} {rounding.nanoseconds(c.estimates[-1].value)}"
        for c in curves
        if c.xs[-1] == most
    )
    panels = (
        (curves, "ns per close and open (log)", "ns"),
        (held, "peak memory of the process, MiB (log)", "MiB"),
    )
    data, said = [], []
    with style():
        figure, all_axes = canvas([10, 8])
        for axes, (drawn, heading, unit) in zip(all_axes, panels, strict=True):
            for curve in drawn:
                draw(axes, curve)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlim(LIVE[0] / 1.5, most * 1.5)
            low, high = axes.get_ylim()
            axes.set_ylim(low, high)
            places = sorted({x for curve in drawn for x in curve.xs})
            axes.set_xticks(places, [_short(x) for x in places])
            axes.set_xticks([], minor=True)
            plain_ticks(axes, "y", ticks_between(low, high))
            axes.set_ylabel(heading)
            name_ends(axes, [(c.estimates[-1].value, c.name, c.colour) for c in drawn], gap=0.08)
            for curve in drawn:
                at = list(zip(curve.xs, curve.estimates, strict=True))
                data += [row(curve.name, TODAY_GO, e, live=x, unit=unit) for x, e in at]
                each = ", ".join(f"{rounding.plain(e.value)} {unit} at {x:,.0f}" for x, e in at)
                said.append(f"{curve.name}: {each}")
        below(figure, "handles live (log)")
        headline(figure, title)
        plt.close(figure)
    alt = (
        "Two line charts over the handles live, of the time to close and open one, and of the "
        "process's memory: " + "; ".join(said)
    )
    return finish(figure, name="remedies-live", title=title, alt=alt + ".", data=pd.DataFrame(data))


def heap(recording: Recording) -> Chart:
    """The same with 100 MB of live Go memory."""
    by_hand = Arm("HeapManual")
    lines = [
        Timing(NAMES[arm.benchmark], arm, SETTLED, None if arm == by_hand else by_hand, ink)
        for arm, ink in (
            (by_hand, BLUE),
            (Arm("HeapSlab"), GREEN),
            (Arm("HeapCleanup"), ORANGE),
            (Arm("HeapFinalizer"), ORANGE),
        )
    ]
    slab = recording.ratio(Ratio(Arm("HeapSlab"), by_hand, SETTLED), TODAY_GO)
    title = (
        f"With 100 MB of live Go memory slabs of 64 cost {rounding.times(slab.value)} a manual free"
    )
    return timings(
        recording,
        "remedies-heap",
        lines,
        title if slab.samples else "Remedies beside a large heap were not measured",
        "settled wall-clock time per operation (ns); in brackets: over the manual free",
    )


def releases(recording: Recording) -> Chart:
    """The slab and Close with Stop on every release, against the manual free there."""
    panels: dict[str, list[Dots]] = {}
    data, said = [], []
    shown = (
        (slabs("Slab"), SETTLED, "dropped"),
        (slabs("SlabClose"), SETTLED, "closed at once"),
        (living("LiveSlab"), "ns/op", "100,000 live, closed at random"),
        (living("LiveCleanup"), "ns/op", "100,000 live, closed at random"),
        (AUTO, SETTLED, "dropped"),
    )
    for arm, metric, how in shown:
        heading = f"{name(arm)}: {how}"
        for go in recording.releases:
            ratio = Ratio(arm, FREE, metric)
            estimate = recording.ratio(ratio, go)
            if not estimate.samples:
                continue
            label = rounding.times(estimate.value)
            ink = _colour(arm) if arm.benchmark != "LiveCleanup" else ORANGE
            dots = Dots(f"Go {go}", list(recording.points(ratio, go)), estimate, label, ink)
            panels.setdefault(heading, []).append(dots)
            data.append(row(heading, go, estimate, unit="ratio", metric=metric))
            said.append(f"{heading}, Go {go} {label}")
    if not panels:
        return nothing("remedies-releases", "The remedies were not measured on any release")
    of_slab = [line.estimate.value for line in panels.get(f"{name(slabs('Slab'))}: dropped", [])]
    title = "The cost of slabs over a manual free was not measured"
    if len(of_slab) == 1:
        title = f"Slabs of 64 cost {rounding.times(of_slab[0])} a manual free"
    elif of_slab:
        title = (
            f"From release to release slabs of 64 cost {rounding.times(min(of_slab))} to "
            f"{rounding.times(max(of_slab))} a manual free"
        )
    with style():
        figure, all_axes = dot_plot(
            panels, title, "cost over that of the manual free (ratio, log scale)"
        )
        drawn = [
            v for lines in panels.values() for d in lines for v in (d.estimate.value, *d.points)
        ]
        low, high = min(0.7, *drawn) / 1.1, 1.3 * max(drawn)
        for axes in all_axes:
            axes.set_xscale("log")
            axes.set_xlim(low, high)
            plain_ticks(axes, "x", ticks_between(low, high))
            axes.axvline(1, color=INK, linewidth=1, zorder=0)
        plt.close(figure)
    alt = "A dot plot of ratios to the manual free, by release: " + "; ".join(said)
    return finish(
        figure, name="remedies-releases", title=title, alt=alt + ".", data=pd.DataFrame(data)
    )


parallel = shared_work("remedies-parallel", ("Free", "Slab", "SlabCrowded", "Cleanup"))
