"""The charts of chapter 08: what to do instead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from matplotlib.axes import Axes

from gccost import rounding
from gccost.judging.claims.quantities import Amount
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import AUTO, CLEANUP, FREE, HEAP_FREE, Arm, Ratio
from gccost.measuring.experiments.remedies import (
    HEAP_REMEDIES,
    HEAPS,
    LATENCY,
    LIVE,
    LIVE_REMEDIES,
    MANUAL,
    ONE_HEAP,
    REMEDIES,
    beside,
    living,
    slabs,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.charts.common import (
    NAMES,
    compared,
    levels,
    measured,
    scaled,
    shared_work,
)
from gccost.showing.figures import BLUE, GREEN, INK, ORANGE
from gccost.showing.plots import Axis, Drawing, Point, chart, curves, dots

SETTLED = "settled-ns/op"
# What the program closes or frees is blue, what cannot be forgotten green, and the
# finalizer and the cleanup for each object, which all of them replace, orange.
_BLUE = {
    *("AllocateHeapFree", "Manual", "Batch", "Stop", "LatencyManual", "LatencySlabClose"),
    *("SlabClose", "SlabCloseAtOnce", "AdoptedClose"),
}
_ORANGE = {
    *("AllocateCleanup", "AllocateAuto", "OneHeapCleanup", "OneHeapFinalizer", "LiveCleanup"),
    *("LatencyCleanup", "LatencyFinalizer"),
}


def name(arm: Arm) -> str:
    """How a remedy is called beside its points."""
    sizes = dict(arm.sub)
    return NAMES[arm.benchmark] + (f" of {sizes['handles']}" if "handles" in sizes else "")


def _colour(arm: Arm) -> str:
    if arm.benchmark in _ORANGE:
        return ORANGE
    return BLUE if arm.benchmark in _BLUE else GREEN


# What each panel compares with, and the remedies in it.
_POOLS = (slabs("Slab", 256), slabs("Slab"), slabs("Slab", 8), slabs("SlabUnseen"), Arm("Reuse"))
_AGAINST: Mapping[str, tuple[Arm, Iterable[Arm]]] = {
    "over the manual free of each block": (
        FREE,
        (HEAP_FREE, MANUAL, *REMEDIES, *ONE_HEAP, CLEANUP, AUTO),
    ),
    "over the manual free in batches of 256": (Arm("Batch"), _POOLS),
    "over one call to make and one to free": (
        MANUAL,
        (slabs("Adopted"), slabs("AdoptedClose"), *ONE_HEAP),
    ),
}


def _settled(recording: Recording, over: Arm, under: Arm) -> str:
    """A settled cost over another: "1.04×"."""
    return rounding.times(recording.ratio(Ratio(over, under, SETTLED), TODAY_GO).value)


@chart("remedies-cost", "None of the remedies was measured")
def cost(recording: Recording) -> Drawing | None:
    """What each remedy costs over a manual free and, like for like, over batches and calls."""
    points = []
    for panel, (under, arms) in _AGAINST.items():
        found = measured(
            compared(recording, Ratio(arm, under, SETTLED), TODAY_GO, name(arm), _colour(arm))
            for arm in arms
        )
        points += [
            replace(p, panel=panel, data={**p.data, "against": name(under)})
            for p in sorted(found, key=lambda p: p.estimate.value)
        ]
    return dots(
        points,
        f"On Go {TODAY_GO} slabs cost {_settled(recording, slabs('Slab'), FREE)} a manual free "
        f"and {_settled(recording, slabs('Slab', 256), Arm('Batch'))} one in batches; "
        f"a finalizer for each object costs {_settled(recording, AUTO, FREE)}",
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


_HEAP_INKS = dict(zip(HEAP_REMEDIES, (BLUE, GREEN, ORANGE, ORANGE), strict=True))


def megabytes(mb: float) -> str:
    """A size of the live heap: "100 MB", "1 GB"."""
    return f"{mb / 1000:g} GB" if mb >= 1000 else f"{mb:g} MB"


@chart("remedies-heap", "Remedies beside a large heap were not measured")
def heap(recording: Recording) -> Drawing | None:
    """What remedies cost beside live Go memory, in the loop and with the rest collected."""
    points = []
    for mb in HEAPS:
        for benchmark, ink in _HEAP_INKS.items():
            arm, by_hand = beside(benchmark, mb), beside("HeapManual", mb)
            for metric, part in (("ns/op", "the loop"), (SETTLED, "settled")):
                estimate = recording.level(arm, TODAY_GO, metric)
                if not estimate.samples or (arm == by_hand and metric == SETTLED):
                    continue  # a manual free leaves nothing to collect
                ratio = recording.ratio(Ratio(arm, by_hand, metric), TODAY_GO)
                label = rounding.nanoseconds(estimate.value)
                if arm != by_hand:
                    label += f", {part}"
                    label += f"  ({rounding.times(ratio.value)})" if ratio.samples else ""
                points.append(
                    Point(
                        f"beside {megabytes(mb)} of live Go memory" if mb else "on an empty heap",
                        NAMES[benchmark],
                        estimate,
                        raw=recording.values(arm, TODAY_GO, metric),
                        label=label,
                        colour=ink,
                        data={
                            "arm": benchmark,
                            "go": TODAY_GO,
                            "mb": mb,
                            "unit": metric,
                            "ratio": ratio.value,
                        },
                    )
                )
    ratios = {
        mb: recording.ratio(
            Ratio(beside("HeapSlab", mb), beside("HeapManual", mb), SETTLED), TODAY_GO
        )
        for mb in HEAPS
    }
    known = {mb: ratio for mb, ratio in ratios.items() if ratio.samples}
    if not known:
        return None
    return dots(
        points,
        f"Beside {', '.join(map(megabytes, known))} of live Go memory slabs of 64 cost "
        f"{', '.join(rounding.times(ratio.value) for ratio in known.values())} a manual free, "
        "settled",
        "wall-clock time per operation (ns, log scale); in brackets: over the manual free",
        kind="A dot plot of the wall time per operation by live heap",
        log=True,
    )


_QUANTILES = {
    "op-p99-ns": "1 in 100 takes longer",
    "op-p99.9-ns": "1 in 1,000 takes longer",
    "op-max-ns": "the longest",
}


@chart("remedies-latency", "How long the slowest operations take was not measured")
def latency(recording: Recording) -> Drawing | None:
    """How long the slowest operations take, by remedy."""
    points = measured(
        Point(
            panel,
            NAMES[arm.benchmark],
            recording.level(arm, TODAY_GO, metric),
            raw=recording.values(arm, TODAY_GO, metric),
            label=rounding.duration(recording.level(arm, TODAY_GO, metric).value),
            colour=_colour(arm),
            data={"arm": NAMES[arm.benchmark], "go": TODAY_GO, "unit": metric},
        )
        for metric, panel in _QUANTILES.items()
        for arm in LATENCY
    )

    told = [
        f"{p.label} ({p.line})"
        for p in points
        if p.panel == _QUANTILES["op-p99.9-ns"]
        and p.line in (NAMES["LatencyManual"], NAMES["LatencySlab"], NAMES["LatencyFinalizer"])
    ]
    return dots(
        points,
        "One operation in a thousand takes longer than " + ", ".join(told),
        "wall-clock time of one operation (ns, log scale)",
        kind="A dot plot of the slowest operations by remedy",
        log=True,
    )


BLOCK_KB = 0.1  # a block has 100 bytes
_HELD = {"c-held-mean": "on average", "c-held-peak": "at most"}


@chart("remedies-held", "How much C memory each remedy holds was not measured")
def held(recording: Recording) -> Drawing | None:
    """How much C memory is held in the loop, on average and at most."""
    points = []
    for arm in (*REMEDIES, *ONE_HEAP):
        for metric, told in _HELD.items():
            estimate = recording.amount(arm, TODAY_GO, metric)
            if not estimate.samples or not estimate.value:
                continue  # what frees before it allocates again holds none
            points.append(
                Point(
                    "",
                    name(arm),
                    scaled(estimate, BLOCK_KB),
                    raw=BLOCK_KB * recording.values(arm, TODAY_GO, metric),
                    label=f"{rounding.plain(BLOCK_KB * estimate.value)} kB {told}",
                    colour=_colour(arm),
                    data={"arm": name(arm), "go": TODAY_GO, "unit": "kB", "metric": metric},
                )
            )
    most = {p.data["arm"]: p.label for p in points if p.data["metric"] == "c-held-peak"}
    named = [
        f"{most[name(arm)].removesuffix(' at most')} ({name(arm)})"
        for arm in (slabs("Slab"), ONE_HEAP[1])
        if name(arm) in most
    ]
    return dots(
        points,
        "C memory held at most: " + ", ".join(named),
        "C memory held (kB, log scale)",
        kind="A dot plot of the C memory held, by remedy",
        log=True,
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
