"""What to do instead: the remedies against a manual free."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from matplotlib.axes import Axes

from gccost import rounding
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount
from gccost.judging.recording import Recording
from gccost.judging.rules import AtLeast, AtMost, Rule
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FREE,
    HEAP_FREE,
    RECORD,
    Arm,
    Case,
    Quantity,
    Ratio,
    among_goroutines,
    controls,
)
from gccost.measuring.toolchains import CLEANUP_GO, DOCUMENT_GO, ISSUE_GO, TODAY_GO
from gccost.showing.figures import BLUE, GREEN, INK, ORANGE
from gccost.showing.plots import Axis, Drawing, chart, curves, dots
from gccost.studies.common import (
    NAMES,
    Timing,
    compared,
    levels,
    measured,
    shared_work,
    timings,
)

# === Cases ===========================================================================


def slabs(benchmark: str, handles: int = 64) -> Arm:
    """An arm with slabs of so many handles: "Slab", "SlabClose", "Reuse", …"""
    return Arm(benchmark, sub=(("handles", str(handles)),))


def living(benchmark: str, live: int = 100_000) -> Arm:
    """An arm that closes one of so many live handles at random: "LiveSlab", …"""
    return Arm(benchmark, sub=(("live", str(live)),))


LIVE = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
LIVE_REMEDIES = ("LiveManual", "LiveSlab", "LiveCleanup", "LiveFinalizer")
ONE_HEAP = (Arm("OneHeapCleanup"), Arm("OneHeapFinalizer"))
HEAP_REMEDIES = ("HeapManual", "HeapSlab", "HeapCleanup", "HeapFinalizer")
# What is decided between, beside what they are measured against.
REMEDIES: tuple[Arm, ...] = (
    Arm("Batch"),
    Arm("Reuse"),
    *(slabs("Slab", handles) for handles in (256, 64, 8)),
    slabs("SlabWeighted"),
    slabs("SlabClose"),
    slabs("SlabCloseAtOnce"),
    Arm("Pinned"),
    Arm("Stop"),
    Arm("LastFirst"),
    Arm("Padded"),
    Arm("Registry"),
)
SURVIVORS = slabs("SlabSurvivors")
_CLOSED_AT_RANDOM = 200_000
# Half as often where the net is taken away as well, which takes microseconds.
_NET_TAKEN_AWAY = 100_000


def _remedies() -> Iterator[Case]:
    for go in (DOCUMENT_GO, CLEANUP_GO, ISSUE_GO, TODAY_GO):
        since = "tiny" if go == TODAY_GO else "standard"
        for arm in (FREE, AUTO):
            yield Case("cstr", arm, go, AS_PUBLISHED, since)
        for arm in (slabs("Slab"), slabs("SlabClose")):
            yield Case("remedies", arm, go, AS_PUBLISHED, since)
        yield Case("remedies", living("LiveSlab"), go, _CLOSED_AT_RANDOM, since)
        if go != DOCUMENT_GO:
            yield Case("remedies", living("LiveCleanup"), go, _NET_TAKEN_AWAY, since)
    go = TODAY_GO
    for arm in (HEAP_FREE, CLEANUP):
        yield Case("cstr", arm, go, AS_PUBLISHED)
    for arm in REMEDIES:
        if arm not in (slabs("Slab"), slabs("SlabClose")):
            few = arm in (Arm("Registry"), Arm("Padded"))  # a sample takes seconds
            yield Case("remedies", arm, go, AS_PUBLISHED // 2 if few else AS_PUBLISHED)
    for arm in ONE_HEAP:
        yield Case("remedies", arm, go, AS_PUBLISHED, "standard")
    for handles in (8, 64, 256):
        yield Case("remedies", slabs("SlabSurvivors", handles), go, AS_PUBLISHED, kept=RECORD)
    for live in LIVE:
        for benchmark in LIVE_REMEDIES:
            arm = living(benchmark, live)
            if arm in (living("LiveSlab"), living("LiveCleanup")):
                continue
            # To make ten million handles takes ten seconds.
            tier = {100_000: "tiny", 10_000_000: "thorough"}.get(live, "standard")
            n = _CLOSED_AT_RANDOM if benchmark in ("LiveManual", "LiveSlab") else _NET_TAKEN_AWAY
            yield Case("remedies", arm, go, n, tier)
    for benchmark in HEAP_REMEDIES:
        yield Case("remedies", Arm(benchmark), go, AS_PUBLISHED)
    for program, benchmark in (
        *(("parallel", "Free"), ("parallel", "Cleanup")),
        *(("remedies", "Slab"), ("remedies", "SlabCrowded")),
    ):
        yield from among_goroutines(program, benchmark)
    yield from controls()


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    def settled(over: Arm, under: Arm = FREE) -> Ratio:
        """An arm with the collecting of the rest, against a manual free."""
        return Ratio(over, under, "settled-ns/op")

    slab, cost, closed = slabs("Slab"), "the-cost", "closed-by-hand"
    held = Amount(SURVIVORS, "c-held/survivor")
    live = Ratio(living("LiveSlab"), living("LiveManual"))
    claims: tuple[tuple[str, str, Quantity, Rule], ...] = (
        ("L6", cost, settled(slab, AUTO), AtLeast()),
        ("X6a", cost, settled(slab), AtMost()),
        ("X6b", "the-price-in-memory", held, AtMost(margin=1.0)),
        ("X6c", cost, settled(Arm("LastFirst")), AtMost()),
        ("X7a", closed, settled(slabs("SlabClose")), AtMost()),
        ("X7b", closed, live, AtMost()),
        ("X8", closed, Ratio(living("LiveCleanup"), living("LiveManual")), AtLeast()),
    )
    for name, anchor, quantity, rule in claims:
        yield Claim(name, anchor, quantity, rule, (TODAY_GO,))


# === Charts ==========================================================================


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


# === The study =======================================================================

STUDY = Study(
    name="remedies",
    chapter="08-instead",
    question="What to do instead of a finalizer or cleanup for each object?",
    cases=tuple(_remedies()),
    document=TODAY_GO,
    claims=tuple(_claims()),
    charts=(
        cost,
        memory,
        live,
        heap,
        parallel,
        releases,
    ),
)
