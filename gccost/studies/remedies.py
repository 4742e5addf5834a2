"""What to do instead: the remedies compared with a manual free."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from types import MappingProxyType

from matplotlib.axes import Axes

from gccost import rounding
from gccost.estimates import SHOWN, Estimate
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Worst
from gccost.judging.recording import Recording
from gccost.judging.rules import AtLeast, AtMost, AtMostCount
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FREE,
    GOROUTINES,
    HEAP_FREE,
    RECORD,
    Case,
    Ratio,
    Variant,
    among_goroutines,
    controls,
    shared,
)
from gccost.measuring.toolchains import CLEANUP_GO, DOCUMENT_GO, ISSUE_GO, TODAY_GO
from gccost.showing.figures import BLUE, GREEN, INK, ORANGE
from gccost.showing.plots import Axis, Drawing, Point, by_line, chart, curves, dots
from gccost.studies.common import (
    NAMES,
    compared,
    counted,
    levels,
    measured,
    shared_work,
)

# === Cases ===========================================================================


def slabs(benchmark: str, handles: int = 64) -> Variant:
    """A variant with slabs of `handles` handles: "Slab", "SlabClose", "Adopted", …"""
    return Variant(benchmark, sub=(("handles", str(handles)),))


_JUDGED_LIVE = 100_000  # the number of live handles that claims are about


def living(benchmark: str, live: int = _JUDGED_LIVE) -> Variant:
    """A variant that closes a random one of `live` handles: "LiveSlab", …"""
    return Variant(benchmark, sub=(("live", str(live)),))


LIVE = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
LIVE_REMEDIES = ("LiveManual", "LiveSlab", "LiveCleanup", "LiveFinalizer")
ONE_HEAP = (Variant("OneHeapCleanup"), Variant("OneHeapFinalizer"))
# One C call to make a block and one to free it, without handles: the baseline of adoption.
MANUAL = Variant("Manual")
# Benchmarks with a large live heap, each with the variant that has none.
HEAPS = (0, 100, 1_000)
HEAP_REMEDIES: Mapping[str, Variant] = MappingProxyType(
    {
        "HeapManual": MANUAL,
        "HeapSlab": slabs("Slab"),
        "HeapCleanup": ONE_HEAP[0],
        "HeapFinalizer": ONE_HEAP[1],
    }
)
# Variants that time each operation.
LATENCY = tuple(
    Variant(f"Latency{what}")
    for what in ("Manual", "SlabClose", "Slab", "Adopted", "Cleanup", "Finalizer")
)
# The remedies, without their baselines.
REMEDIES: tuple[Variant, ...] = (
    Variant("Batch"),
    Variant("Reuse"),
    *(slabs("Slab", handles) for handles in (256, 64, 8)),
    slabs("SlabUnseen"),
    slabs("Adopted"),
    slabs("SlabClose"),
    slabs("SlabCloseAtOnce"),
    slabs("AdoptedClose"),
    Variant("Pinned"),
    Variant("Stop"),
    Variant("LastFirst"),
    Variant("Padded"),
    Variant("Registry"),
)
SURVIVORS = slabs("SlabSurvivors")
_SIZES = (8, 64, 256)  # handles of a slab
SETTLED = "settled-ns/op"
_TIMED = 1_000_000  # operations of a latency sample
_CLOSED_AT_RANDOM = 200_000
# Half as many where removing the net takes microseconds.
_NET_TAKEN_AWAY = 100_000


def with_heap(benchmark: str, mb: int) -> Variant:
    """A benchmark of `HEAP_REMEDIES` with `mb` MB of live Go memory, one of `HEAPS`."""
    return Variant(benchmark, sub=(("mb", str(mb)),)) if mb else HEAP_REMEDIES[benchmark]


def _remedies() -> Iterator[Case]:
    for go in (DOCUMENT_GO, CLEANUP_GO, ISSUE_GO, TODAY_GO):
        min_budget = "tiny" if go == TODAY_GO else "standard"
        for variant in (FREE, AUTO):
            yield Case("cstr", variant, go, AS_PUBLISHED, min_budget)
        for variant in (slabs("Slab"), slabs("SlabClose")):
            yield Case("remedies", variant, go, AS_PUBLISHED, min_budget)
        yield Case("remedies", living("LiveSlab"), go, _CLOSED_AT_RANDOM, min_budget)
        if go != DOCUMENT_GO:
            yield Case("remedies", living("LiveCleanup"), go, _NET_TAKEN_AWAY, min_budget)
    go = TODAY_GO
    for variant in (HEAP_FREE, CLEANUP):
        yield Case("cstr", variant, go, AS_PUBLISHED)
    for variant in (MANUAL, *REMEDIES):
        if variant not in (slabs("Slab"), slabs("SlabClose")):
            few = variant in (Variant("Registry"), Variant("Padded"))  # a sample takes seconds
            yield Case("remedies", variant, go, AS_PUBLISHED // 2 if few else AS_PUBLISHED)
    for variant in ONE_HEAP:
        yield Case("remedies", variant, go, AS_PUBLISHED)
    for variant in LATENCY:
        yield Case("remedies", variant, go, _TIMED)
    for handles in _SIZES:
        variant = slabs("SlabSurvivors", handles)
        yield Case("remedies", variant, go, AS_PUBLISHED, retained_bytes=RECORD)
    for live in LIVE:
        for benchmark in LIVE_REMEDIES:
            variant = living(benchmark, live)
            if variant in (living("LiveSlab"), living("LiveCleanup")):
                continue
            # Making ten million handles takes ten seconds.
            tier = {_JUDGED_LIVE: "tiny", 10_000_000: "thorough"}.get(live, "standard")
            n = _CLOSED_AT_RANDOM if benchmark in ("LiveManual", "LiveSlab") else _NET_TAKEN_AWAY
            yield Case("remedies", variant, go, n, tier)
    for mb, min_budget in zip(HEAPS[1:], ("tiny", "standard"), strict=True):
        for benchmark in HEAP_REMEDIES:
            yield Case("remedies", with_heap(benchmark, mb), go, AS_PUBLISHED, min_budget)
    yield from among_goroutines("parallel", "Free")
    yield from among_goroutines("parallel", "Cleanup")
    yield from among_goroutines("remedies", "SlabCrowded")
    yield from among_goroutines("remedies", "Slab", min_budget="tiny")
    yield from controls()


# === Claims ==========================================================================


def _claims() -> tuple[Claim, ...]:
    def settled(over: Variant, under: Variant = FREE) -> Ratio:
        """The ratio of settled times, by default to a manual free."""
        return Ratio(over, under, SETTLED)

    claim = partial(Claim, releases=(TODAY_GO,))
    slab, cost, closed = slabs("Slab"), "the-cost", "closed-explicitly"
    held = Amount(SURVIVORS, "c-held/survivor")
    live = Ratio(living("LiveSlab"), living("LiveManual"))
    # The cases have at most twice as many goroutines as CPUs.
    among = Worst(tuple(Ratio(shared("Slab", n), shared("Slab", 1)) for n in GOROUTINES[1:]))
    return (
        claim("L6", cost, settled(slab, AUTO), AtLeast()),
        claim("X6a", cost, settled(slab), AtMost()),
        claim("X6b", "the-price-in-memory", held, AtMostCount()),
        claim("X6c", cost, settled(Variant("LastFirst")), AtMost()),
        claim("X6d", cost, settled(slabs("Slab", 256), Variant("Batch")), AtMost()),
        claim("X6e", cost, settled(slabs("Adopted"), MANUAL), AtMost()),
        claim("X7a", closed, settled(slabs("SlabClose")), AtMost()),
        claim("X7b", closed, live, AtMost()),
        claim("X7c", "from-many-goroutines", among, AtMost()),
        claim("X8", closed, Ratio(living("LiveCleanup"), living("LiveManual")), AtLeast()),
    )


# === Charts ==========================================================================


# Blue: the program must close or free. Green: automatic. Orange: a finalizer or cleanup per
# object, which the others replace.
_BLUE = {
    *("AllocateHeapFree", "Manual", "Batch", "Stop", "LatencyManual", "LatencySlabClose"),
    *("SlabClose", "SlabCloseAtOnce", "AdoptedClose"),
}
_ORANGE = {
    *("AllocateCleanup", "AllocateAuto", "OneHeapCleanup", "OneHeapFinalizer", "LiveCleanup"),
    *("LatencyCleanup", "LatencyFinalizer"),
}


def name(variant: Variant) -> str:
    """The name of a remedy in charts and tables."""
    sizes = dict(variant.sub)
    return NAMES[variant.benchmark] + (f" of {sizes['handles']}" if "handles" in sizes else "")


def _colour(variant: Variant) -> str:
    if variant.benchmark in _ORANGE:
        return ORANGE
    return BLUE if variant.benchmark in _BLUE else GREEN


# Each panel's baseline and remedies.
_POOLS = (
    slabs("Slab", 256),
    slabs("Slab"),
    slabs("Slab", 8),
    slabs("SlabUnseen"),
    Variant("Reuse"),
)
_AGAINST: Mapping[str, tuple[Variant, Iterable[Variant]]] = {
    "relative to manual free": (
        FREE,
        (HEAP_FREE, MANUAL, *REMEDIES, *ONE_HEAP, CLEANUP, AUTO),
    ),
    "relative to batches of 256": (Variant("Batch"), _POOLS),
    "relative to two calls": (
        MANUAL,
        (slabs("Adopted"), slabs("AdoptedClose"), *ONE_HEAP),
    ),
}


def _settled(recording: Recording, over: Variant, under: Variant) -> str:
    """A ratio of settled costs, such as "1.04×"."""
    return rounding.times(recording.estimate(Ratio(over, under, SETTLED), TODAY_GO).value)


def _against(
    recording: Recording, variant: Variant, under: Variant, panel: str = "", **data: object
) -> Point:
    """A point for a remedy's settled cost relative to another's."""
    ratio = Ratio(variant, under, SETTLED)
    return compared(recording, ratio, TODAY_GO, name(variant), _colour(variant), panel, **data)


@chart("remedies-cost", "None of the remedies was measured")
def cost(recording: Recording) -> Drawing | None:
    """The cost of each remedy relative to a manual free, to batches, and to single calls."""
    points = []
    for panel, (under, variants) in _AGAINST.items():
        found = measured(
            _against(recording, variant, under, panel, against=name(under)) for variant in variants
        )
        points += sorted(found, key=lambda p: p.estimate.value)
    return dots(
        points,
        f"On Go {TODAY_GO} slabs of 64 cost {_settled(recording, slabs('Slab'), FREE)} a manual "
        f"free, slabs of 256 {_settled(recording, slabs('Slab', 256), Variant('Batch'))} one in "
        "batches of 256; "
        f"a finalizer per object costs {_settled(recording, AUTO, FREE)}",
        "settled wall-clock time relative to the manual free (ratio, log scale)\n"
        "circle: the program closes or frees; triangle: automatic; square: one per object",
        kind="A dot plot of the settled cost relative to a manual free",
        log=True,
        reference=1,
    )


@chart("remedies-memory", "The memory that a survivor holds was not measured")
def memory(recording: Recording) -> Drawing | None:
    """The cost against the C blocks held per surviving handle, by slab size."""
    held = {
        slabs("Slab", handles): recording.estimate(
            Amount(slabs("SlabSurvivors", handles), "c-held/survivor"), TODAY_GO
        ).value
        for handles in _SIZES
    } | dict.fromkeys((Variant("LastFirst"), CLEANUP, AUTO), 1.0)
    points = measured(
        replace(
            _against(recording, variant, FREE),
            x=blocks,
            data={"variant": name(variant), "go": TODAY_GO, "held": blocks},
        )
        for variant, blocks in held.items()
        if math.isfinite(blocks)
    )

    def manual_free(axes: Axes, _: str) -> None:
        axes.axhline(1, color=INK, linewidth=1, zorder=0)

    return curves(
        points,
        "C blocks held per surviving handle, and cost: "
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
        Axis("settled time relative to the manual free (log)", "log"),
        kind="A scatter plot of the cost against the C blocks held per survivor",
        height=9,
        near=lambda p: f"{p.line}, {p.label}",
        decorate=manual_free,
    )


_INKS = dict(zip(LIVE_REMEDIES, (BLUE, GREEN, INK, ORANGE), strict=True))
# Each panel's metric, factor and unit.
_LIVE = {
    "time to close one and open another, ns": ("ns/op", 1.0, "ns"),
    "peak memory of the process, MiB": ("peak-rss-bytes", 1 / 2**20, "MiB"),
}


def _short(x: float) -> str:
    """A number of handles as text: "10", "100k", "10M"."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if x >= unit:
            return f"{x / unit:g}{letter}"
    return f"{x:g}"


@chart("remedies-live", "Handles closed at random were not measured")
def live(recording: Recording) -> Drawing | None:
    """The cost of closing a random handle, and the memory, by the number of live handles."""
    points = [
        point
        for panel, (metric, factor, unit) in _LIVE.items()
        for benchmark in LIVE_REMEDIES
        for point in levels(
            recording,
            panel,
            NAMES[benchmark],
            TODAY_GO,
            [(count, living(benchmark, count)) for count in LIVE],
            metric,
            rounding.plain,
            factor=factor,
            data={"live": None, "unit": unit},
            colour=_INKS[benchmark],
        )
    ]
    counts = sorted({p.x for p in points}) or [math.nan]
    told = _JUDGED_LIVE if _JUDGED_LIVE in counts else counts[-1]
    return curves(
        points,
        f"Closing a random one of {told:,.0f} live handles and opening another: "
        + ", ".join(
            f"{p.line} {p.label} ns" for p in points if p.x == told and p.data["unit"] == "ns"
        ),
        Axis(
            "live handles (log)",
            "log",
            {x: _short(x) for x in counts},
            (LIVE[0] / 1.5, 1.5 * counts[-1]),
        ),
        {panel: Axis(f"{unit} (log)", "log") for panel, (*_, unit) in _LIVE.items()},
        kind="Line charts of time and memory over the live handles",
        height=9,
    )


_HEAP_INKS = dict(zip(HEAP_REMEDIES, (BLUE, GREEN, ORANGE, ORANGE), strict=True))


def megabytes(mb: float) -> str:
    """A size of the live heap as text: "100 MB", "1 GB"."""
    return f"{mb / 1000:g} GB" if mb >= 1000 else f"{mb:g} MB"


@chart("remedies-heap", "Remedies with a large live heap were not measured")
def heap(recording: Recording) -> Drawing | None:
    """The cost of remedies with a live Go heap, in the loop alone and settled."""
    points = []
    for mb in HEAPS:
        for benchmark, ink in _HEAP_INKS.items():
            variant, manual = with_heap(benchmark, mb), with_heap("HeapManual", mb)
            for metric, part in (("ns/op", "the loop"), (SETTLED, "settled")):
                if variant == manual and metric == SETTLED:
                    continue  # a manual free leaves nothing to collect
                ratio = recording.estimate(Ratio(variant, manual, metric), TODAY_GO)
                after = f"  ({rounding.times(ratio.value)})" if ratio.samples else ""
                points += levels(
                    recording,
                    f"with {megabytes(mb)} of live Go memory" if mb else "on an empty heap",
                    NAMES[benchmark],
                    TODAY_GO,
                    variant,
                    metric,
                    after="" if variant == manual else f", {part}{after}",
                    data={"variant": benchmark, "mb": mb, "unit": metric, "ratio": ratio.value},
                    colour=ink,
                )
    known = [
        (megabytes(mb), rounding.times(ratio.value))
        for mb in HEAPS
        for over in [Ratio(with_heap("HeapSlab", mb), with_heap("HeapManual", mb), SETTLED)]
        if (ratio := recording.estimate(over, TODAY_GO)).samples
    ]
    if not known:
        return None
    heaps, costs = (", ".join(each) for each in zip(*known, strict=True))
    return dots(
        points,
        f"With {heaps} of live Go memory slabs of 64 cost {costs} a manual free on one C heap, "
        "settled",
        "wall-clock time per operation (ns, log scale)\n"
        "brackets: relative to the manual free on one C heap",
        kind="A dot plot of the wall-clock time per operation by live heap",
        log=True,
    )


_QUANTILES = {
    "op-p99-ns": "1 in 100 takes longer",
    "op-p99.9-ns": "1 in 1,000 takes longer",
    "op-max-ns": "the longest",
}


@chart("remedies-latency", "The times of the slowest operations were not measured")
def latency(recording: Recording) -> Drawing | None:
    """The times of the slowest operations, by remedy."""
    points: list[Point] = []
    for (metric, panel), variant in product(_QUANTILES.items(), LATENCY):
        points += levels(
            recording,
            panel,
            NAMES[variant.benchmark],
            TODAY_GO,
            variant,
            metric,
            rounding.duration,
            data={"unit": metric},
            colour=_colour(variant),
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


BLOCK_KB = 0.1  # the size of a block: 100 bytes
_HELD = {"c-held-mean": "on average", "c-held-peak": "at its peak"}


@chart("remedies-held", "The C memory held by each remedy was not measured")
def held(recording: Recording) -> Drawing | None:
    """The C memory held in the loop, on average and at its peak."""
    points = []
    for variant in (*REMEDIES, *ONE_HEAP):
        for metric, told in _HELD.items():
            points += levels(
                recording,
                "",
                name(variant),
                TODAY_GO,
                variant,
                metric,
                rounding.plain,
                factor=BLOCK_KB,
                find=counted,
                after=f" kB {told}",
                data={"unit": "kB", "metric": metric},
                colour=_colour(variant),
            )
    # A remedy that frees before it allocates again holds none.
    points = [p for p in points if p.estimate.value]
    most = {p.data["variant"]: p.label for p in points if p.data["metric"] == "c-held-peak"}
    named = [
        f"{most[name(variant)].removesuffix(' at its peak')} ({name(variant)})"
        for variant in (slabs("Slab"), ONE_HEAP[1])
        if name(variant) in most
    ]
    return dots(
        points,
        "C memory held at the peak of a run, median of the runs: " + ", ".join(named),
        "C memory held (kB, log scale)",
        kind="A dot plot of the C memory held, by remedy",
        log=True,
    )


# Each panel's remedies; those that hold no dead blocks are left out.
_OVER_TIME: Mapping[str, Mapping[Variant, str]] = {
    "slabs": {
        slabs("Slab"): GREEN,
        slabs("SlabUnseen"): INK,
        slabs("SlabClose"): BLUE,
        Variant("Reuse"): ORANGE,
    },
    "one finalizer, cleanup or weak pointer per object": {
        ONE_HEAP[0]: ORANGE,
        ONE_HEAP[1]: INK,
        Variant("LastFirst"): GREEN,
        Variant("Registry"): BLUE,
    },
}


def held_over_time(recording: Recording, variant: Variant) -> list[tuple[float, float]]:
    """The times (s) of a variant's first run and the C memory held then (MB)."""
    for _, run in recording.accepted(variant, TODAY_GO).head(1).iterrows():
        units = [unit for unit in run.index if re.fullmatch(r"c-held-\d\d", unit)]
        readings = [(run[f"{unit}-ms"], run[unit]) for unit in sorted(units)]
        return [(round(ms / 1e3, 3), BLOCK_KB * held / 1e3) for ms, held in readings if ms > 0]
    return []


@chart("remedies-over-time", "The C memory held over time was not measured")
def over_time(recording: Recording) -> Drawing | None:
    """The C memory held over time by each remedy, in one run each."""
    points = [
        Point(
            panel,
            name(variant),
            Estimate(held, held, held, 1, 1, SHOWN.confidence),
            seconds,
            label=f"{rounding.plain(held)} MB",
            colour=ink,
            data={"variant": name(variant), "go": TODAY_GO, "seconds": seconds, "unit": "MB"},
        )
        for panel, inks in _OVER_TIME.items()
        for variant, ink in inks.items()
        for seconds, held in held_over_time(recording, variant)
    ]
    most = {name: max(p.estimate.value for p in line) for name, line in by_line(points).items()}
    return curves(
        points,
        "C memory held over one run: up to "
        + ", ".join(
            f"{rounding.plain(most[each])} MB ({each})"
            for each in map(name, (slabs("Slab"), *ONE_HEAP))
            if each in most
        ),
        Axis("time since the start of the run (s)", limits=(0, None)),
        Axis("C memory held (MB)", limits=(0, None)),
        kind="Line charts of the C memory held over time, one run each",
        height=7,
        shared=False,
        ends=lambda p: p.line.partition(":")[0].removesuffix(", one C heap"),
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
    """The cost of remedies relative to the manual free, on each release."""
    points = measured(
        compared(
            recording,
            Ratio(variant, FREE, metric),
            go,
            f"Go {go}",
            _colour(variant),
            panel,
            variant=panel,
            metric=metric,
        )
        for panel, (variant, metric) in _BY_RELEASE.items()
        for go in recording.releases
    )
    of_slab = [p for p in points if p.panel == next(iter(_BY_RELEASE))]
    ends = dict.fromkeys((of_slab[0].line, of_slab[-1].line)) if of_slab else {}
    return dots(
        points,
        "Relative to a manual free, slabs of 64 cost "
        + " and ".join(
            f"{rounding.interval(p.estimate, 'ratio')} on {p.line}"
            for p in of_slab
            if p.line in ends
        ),
        "cost relative to a manual free right after the allocation (ratio, log scale)",
        kind="A dot plot of ratios to the manual free, by release",
        log=True,
        reference=1,
    )


parallel = shared_work("remedies-parallel", ("Free", "Slab", "SlabCrowded", "Cleanup"))


# === The study =======================================================================

STUDY = Study(
    name="remedies",
    chapter="08-instead",
    question="What to use instead of a finalizer or cleanup per object?",
    cases=tuple(_remedies()),
    document=TODAY_GO,
    claims=_claims(),
    charts=(cost, memory, live, heap, latency, held, over_time, parallel, releases),
)
