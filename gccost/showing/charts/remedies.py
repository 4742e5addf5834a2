"""The charts of chapter 08: what to do instead."""

from __future__ import annotations

import math
from dataclasses import replace

from matplotlib.axes import Axes

from gccost import rounding
from gccost.judging.claims.quantities import Amount
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import AUTO, CLEANUP, FREE, HEAP_FREE, Arm, Ratio
from gccost.measuring.experiments.remedies import (
    HEAP_REMEDIES,
    LIVE,
    LIVE_REMEDIES,
    ONE_HEAP,
    REMEDIES,
    living,
    slabs,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.charts.common import (
    NAMES,
    Timing,
    compared,
    levels,
    measured,
    shared_work,
    timings,
)
from gccost.showing.figures import BLUE, GREEN, INK, ORANGE
from gccost.showing.plots import Axis, Drawing, chart, curves, dots

SETTLED = "settled-ns/op"
# What the program closes or frees is blue, what cannot be forgotten green, and the
# finalizer and the cleanup for each object, which all of them replace, orange.
_BLUE = {"AllocateHeapFree", "Batch", "SlabClose", "SlabCloseAtOnce", "Stop"}
_ORANGE = {"AllocateCleanup", "AllocateAuto", "OneHeapCleanup", "OneHeapFinalizer", "LiveCleanup"}


def name(arm: Arm) -> str:
    """How a remedy is called beside its points."""
    sizes = dict(arm.sub)
    return NAMES[arm.benchmark] + (f" of {sizes['handles']}" if "handles" in sizes else "")


def _colour(arm: Arm) -> str:
    if arm.benchmark in _ORANGE:
        return ORANGE
    return BLUE if arm.benchmark in _BLUE else GREEN


@chart("remedies-cost", "None of the remedies was measured")
def cost(recording: Recording) -> Drawing | None:
    """What each remedy costs against a manual free, the rest collected."""
    points = measured(
        compared(recording, Ratio(arm, FREE, SETTLED), TODAY_GO, name(arm), _colour(arm))
        for arm in (HEAP_FREE, *REMEDIES, *ONE_HEAP, CLEANUP, AUTO)
    )
    slab, auto = (
        rounding.times(recording.ratio(Ratio(arm, FREE, SETTLED), TODAY_GO).value)
        for arm in (slabs("Slab"), AUTO)
    )
    return dots(
        sorted(points, key=lambda p: p.estimate.value),
        f"On Go {TODAY_GO} slabs of 64 cost {slab} a manual free, "
        f"a finalizer for each object {auto}",
        "settled wall-clock time over that of the manual free (ratio, log scale)\n"
        "blue: the program closes or frees; green: cannot be forgotten; orange: one for each",
        kind="A dot plot of the settled cost over that of a manual free",
        log=True,
        reference=1,
    )


@chart("remedies-memory", "What a survivor holds was not measured")
def memory(recording: Recording) -> Drawing | None:
    """Cost against the C blocks that a surviving handle holds, by the size of a slab."""
    held = {
        slabs("Slab", handles): recording.estimate(
            Amount(slabs("SlabSurvivors", handles), "c-held/survivor"), TODAY_GO
        ).value
        for handles in (8, 64, 256)
    } | dict.fromkeys((Arm("LastFirst"), CLEANUP, AUTO), 1.0)
    points = measured(
        replace(
            compared(recording, Ratio(arm, FREE, SETTLED), TODAY_GO, name(arm), _colour(arm)),
            x=blocks,
            data={"arm": name(arm), "go": TODAY_GO, "held": blocks},
        )
        for arm, blocks in held.items()
        if math.isfinite(blocks)
    )

    def manual_free(axes: Axes, _: str) -> None:
        axes.axhline(1, color=INK, linewidth=1, zorder=0)

    return curves(
        points,
        "What a slab costs, and what a handle that survives holds: "
        + ", ".join(
            f"{rounding.blocks(p.x)} at {p.label} with {p.line}"
            for p in points
            if p.line.startswith("slabs")
        ),
        Axis(
            "C blocks held per surviving handle, one in a hundred surviving (log)",
            "log",
            (1, 10, 100, 1000),
            (0.7, 2000),
        ),
        Axis("settled time over the manual free (log)", "log"),
        kind="A scatter plot of the cost by the C blocks that a survivor holds",
        height=9,
        near=lambda p: f"{p.line}, {p.label}",
        decorate=manual_free,
    )


_INKS = dict(zip(LIVE_REMEDIES, (BLUE, GREEN, INK, ORANGE), strict=True))
# A panel each: the metric, its factor and its unit.
_LIVE = {
    "time to close one and open another, ns": ("ns/op", 1.0, "ns"),
    "peak memory of the process, MiB": ("peak-rss-bytes", 1 / 2**20, "MiB"),
}


def _short(x: float) -> str:
    """A number of handles as "10", "100k", "10M"."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if x >= unit:
            return f"{x / unit:g}{letter}"
    return f"{x:g}"


@chart("remedies-live", "Handles closed at random were not measured")
def live(recording: Recording) -> Drawing | None:
    """What closing a handle at random costs, and the memory, by how many are live."""
    points = [
        point
        for panel, (metric, factor, unit) in _LIVE.items()
        for benchmark in LIVE_REMEDIES
        for point in levels(
            recording,
            panel,
            NAMES[benchmark],
            TODAY_GO,
            [(float(count), living(benchmark, count)) for count in LIVE],
            metric,
            rounding.plain,
            factor=factor,
            data={"arm": NAMES[benchmark], "go": TODAY_GO, "live": None, "unit": unit},
            colour=_INKS[benchmark],
        )
    ]
    counts = sorted({p.x for p in points}) or [math.nan]
    return curves(
        points,
        f"Closing one of {counts[-1]:,.0f} live handles at random and opening another: "
        + ", ".join(
            f"{p.line} {p.label} ns" for p in points if p.x == counts[-1] and p.data["unit"] == "ns"
        ),
        Axis(
            "handles live (log)",
            "log",
            {x: _short(x) for x in counts},
            (LIVE[0] / 1.5, 1.5 * counts[-1]),
        ),
        {panel: Axis(f"{unit} (log)", "log") for panel, (*_, unit) in _LIVE.items()},
        kind="Line charts of time and memory over the handles live",
        height=9,
    )


@chart("remedies-heap", "Remedies beside a large heap were not measured")
def heap(recording: Recording) -> Drawing | None:
    """The same with 100 MB of live Go memory."""
    by_hand, slab, *_ = arms = [Arm(benchmark) for benchmark in HEAP_REMEDIES]
    lines = [
        Timing(NAMES[arm.benchmark], arm, SETTLED, None if arm == by_hand else by_hand, ink)
        for arm, ink in zip(arms, (BLUE, GREEN, ORANGE, ORANGE), strict=True)
    ]
    ratio = recording.ratio(Ratio(slab, by_hand, SETTLED), TODAY_GO)
    return dots(
        timings(recording, lines),
        f"With 100 MB of live Go memory slabs of 64 cost {rounding.times(ratio.value)} "
        "a manual free",
        "settled wall-clock time per operation (ns); in brackets: over the manual free",
        kind="A dot plot of the wall time per operation",
    )


_BY_RELEASE = {
    "slabs of 64: dropped": (slabs("Slab"), SETTLED),
    "closed, with a net: slabs of 64: closed at once": (slabs("SlabClose"), SETTLED),
    "slab and Close: 100,000 live, closed at random": (living("LiveSlab"), "ns/op"),
    "Close and Stop: 100,000 live, closed at random": (living("LiveCleanup"), "ns/op"),
    "finalizer frees: dropped": (AUTO, SETTLED),
}


@chart("remedies-releases", "The remedies were not measured on any release")
def releases(recording: Recording) -> Drawing | None:
    """The slab and Close with Stop on every release, against the manual free there."""
    points = measured(
        replace(
            compared(recording, Ratio(arm, FREE, metric), go, f"Go {go}", _colour(arm)),
            panel=panel,
            data={"arm": panel, "go": go, "unit": "ratio", "metric": metric},
        )
        for panel, (arm, metric) in _BY_RELEASE.items()
        for go in recording.releases
    )
    of_slab = [p.estimate.value for p in points if p.panel == next(iter(_BY_RELEASE))]
    ends = [rounding.times(end(of_slab, default=math.nan)) for end in (min, max)]
    return dots(
        points,
        f"From release to release slabs of 64 cost {ends[0]} to {ends[1]} a manual free"
        if len(of_slab) > 1
        else f"Slabs of 64 cost {ends[0]} a manual free",
        "cost over that of the manual free (ratio, log scale)",
        kind="A dot plot of ratios to the manual free, by release",
        log=True,
        reference=1,
    )


parallel = shared_work("remedies-parallel", ("Free", "Slab", "SlabCrowded", "Cleanup"))
