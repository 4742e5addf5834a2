"""A runtime without the walk, compared with the stock runtime."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, product

from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from gccost import rounding
from gccost.judging import published, stacks
from gccost.judging.claims import Claim, Study
from gccost.judging.curves import WORD
from gccost.judging.quantities import SavedShare, SlopeRatio
from gccost.judging.recording import Recording
from gccost.judging.rules import AtLeast, AtMost
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FREE,
    Case,
    Ratio,
    Variant,
    controls,
    profiled,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.figures import BLUE, GREEN, ORANGE
from gccost.showing.plots import PERCENT, Axis, Drawing, Mark, Point, by_line, chart, curves, dots
from gccost.studies.common import Part, Timing, counted, levels, release, shares, timings
from gccost.studies.siebenmann import SIZES, of_size, published_sizes, sized
from gccost.studies.why import (
    BYTES,
    LIVE,
    LIVE_AXES,
    LIVE_KIND,
    MANY,
    MIXED,
    ORDERS,
    POOL,
    SMALL,
    among_live,
    attach,
    call_points,
    looped,
    looping,
    program,
    registering,
    running,
    scattering,
    slope_words,
)

# === Cases ===========================================================================


INDEX = "index"
PLUS = "plus"  # also removes the cost that then dominates
BEFORE_GO = "1.26.11"
RUNTIMES = ("", INDEX)
SMALLEST = 1  # pointer words of an object of 8 bytes
# Yields over a hundred stacks without the walk, at 250 a second (gosrc/meter).
_PROFILED = 1_600_000


def patched(variant: Variant, runtime: str = INDEX) -> Variant:
    """The same variant on a patched runtime, by default the one without the walk."""
    return replace(variant, runtime=runtime)


def _runtime() -> Iterator[Case]:
    for go in (BEFORE_GO, TODAY_GO):
        min_budget = "tiny" if go == TODAY_GO else "standard"
        yield Case("cstr", FREE, go, AS_PUBLISHED, min_budget)
        for runtime in RUNTIMES:
            yield Case("cstr", patched(CLEANUP, runtime), go, AS_PUBLISHED, min_budget)
            yield of_size(patched(sized("Finalize", SMALLEST), runtime), go, min_budget)
            for order in ORDERS:
                yield registering(attach("AttachCleanup", order, runtime=runtime), go, min_budget)
                later = min_budget if order == "shuffled" else "standard"
                yield registering(attach("Stop", order, runtime=runtime), go, later)
            yield scattering("ScatteredCleanup", MANY, go, min_budget, runtime)
    for runtime in RUNTIMES:
        yield from _more(TODAY_GO, runtime)
    for variant in (CLEANUP, AUTO):
        yield Case("cstr", patched(variant, PLUS), TODAY_GO, AS_PUBLISHED, "standard")
    yield of_size(patched(sized("Finalize", SMALLEST), PLUS), TODAY_GO, "standard")
    variant = patched(profiled("AllocateCleanup"), PLUS)
    yield Case("cstr", variant, TODAY_GO, _PROFILED, "standard")
    for words in SIZES:
        yield of_size(sized("Allocate", words), TODAY_GO, "standard")
    yield from controls()


def _more(go: str, runtime: str) -> Iterator[Case]:
    """Further cases for a runtime on today's release."""
    later = "standard"
    yield Case("cstr", patched(profiled("AllocateCleanup"), runtime), go, _PROFILED)
    yield Case("cstr", patched(AUTO, runtime), go, AS_PUBLISHED, later if runtime else "tiny")
    for words in SIZES[1:]:
        yield of_size(patched(sized("Finalize", words), runtime), go, later)
    for order in ORDERS:
        yield registering(attach("AttachFinalizer", order, runtime=runtime), go, later)
    for bytes_ in BYTES[1:]:
        yield registering(attach("AttachCleanup", bytes_=bytes_, runtime=runtime), go, later)
    for live in LIVE:
        for benchmark in ("ScatteredCleanup", "ScatteredStop"):
            if (benchmark, live) != ("ScatteredCleanup", MANY):
                tier = "thorough" if live > MANY else later
                yield scattering(benchmark, live, go, tier, runtime)
    for live in (0, POOL):
        yield running(program("Cleanup", live, MIXED, runtime), go, later)
    for variant in (
        looped("LoopFinalizer", runtime=runtime),
        looped("LoopCleanup", runtime=runtime),
    ):
        yield looping(variant, go, later)


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    releases = (TODAY_GO,)
    yield Claim("M7", "without-the-walk", Ratio(patched(CLEANUP), CLEANUP), AtMost(), releases)
    for name, benchmark, order, against in (
        ("X2a", "AttachCleanup", "ascending", "ascending"),
        ("X2b", "AttachCleanup", "shuffled", "shuffled"),
        # Descending order has no slope on stock either, so the baseline is ascending order.
        ("X2c", "AttachCleanup", "descending", "ascending"),
        ("X2d", "Stop", "shuffled", "shuffled"),
    ):
        over, under = patched(attach(benchmark, order)), attach(benchmark, against)
        yield Claim(name, "without-the-walk", SlopeRatio(over, under), AtMost(), releases)
    saved, small = SavedShare(CLEANUP, patched(CLEANUP), FREE), sized("Finalize", SMALLEST)
    yield Claim("X3", "what-the-walk-costs", saved, AtLeast(), releases)
    yield Claim("X4", "what-the-walk-costs", Ratio(small, patched(small)), AtLeast(), releases)


# === Charts ==========================================================================

_COLOURS = {"": ORANGE, INDEX: BLUE, PLUS: GREEN}  # by runtime
_NAMES = {"": "stock", INDEX: "without the walk", PLUS: "and further"}

_WALKS = {
    "AddCleanup, ascending": ("AttachCleanup", "ascending"),
    "AddCleanup, shuffled": ("AttachCleanup", "shuffled"),
    "AddCleanup, descending": ("AttachCleanup", "descending"),
    "Stop, shuffled": ("Stop", "shuffled"),
}


@chart("runtime-slopes", "The two runtimes were not measured")
def slopes(recording: Recording) -> Drawing | None:
    """The time of a call by the length of its list, on both runtimes."""
    points = []
    shares_left = []
    for panel, (benchmark, order) in _WALKS.items():
        both = {runtime: attach(benchmark, order, runtime=runtime) for runtime in RUNTIMES}
        for runtime, variant in both.items():
            name, told = _NAMES[runtime], slope_words(recording, variant)
            points += [
                replace(p, line=f"{name}: {told}", data={**p.data, "variant": f"{panel}, {name}"})
                for p in call_points(recording, panel, name, variant, _COLOURS[runtime])
            ]
        stock, index = (recording.slope(variant, TODAY_GO).value for variant in both.values())
        if order != "descending" and math.isfinite(index) and stock > 0:
            shares_left.append(index / stock)
    return curves(
        points,
        "Without the walk each record in the list costs at most "
        f"{rounding.percent(max(*shares_left, 0))} of its cost on the stock runtime"
        if shares_left
        else "The cost per record in the list, on both runtimes",
        Axis(
            f"records in the span's list at the time of the call (8-byte objects, Go {TODAY_GO})",
            limits=(0, None),
        ),
        Axis("one call (ns)", limits=(0, None)),
        kind="Curves of the cost of a call on both runtimes",
        height=5,
        columns=2,
    )


_PROGRAMS = {"manual free": FREE, "AddCleanup frees": CLEANUP, "finalizer frees": AUTO}
_PATCHED = {"": "", INDEX: ", no walk", PLUS: ", and further"}


@chart("runtime-cost", "The documents' programs were not measured on both runtimes")
def price(recording: Recording) -> Drawing | None:
    """The documents' programs on both runtimes."""
    printed = published.table("addcleanup-timings").query("machine == 'MacBook Pro M1'")
    issue = printed.astype({"ns_per_op": float}).set_index("variant")["ns_per_op"]
    lines = [
        Timing(
            what + called,
            patched(variant, runtime),
            against=None if variant == FREE else FREE,
            colour=BLUE if variant == FREE else _COLOURS[runtime],
            published=[] if runtime else [Mark(issue[variant.benchmark])],
            data={"variant": what + called, "unit": "ns"}
            | ({"ratio": 1.0} if variant == FREE else {}),
        )
        for what, variant in _PROGRAMS.items()
        for runtime, called in _PATCHED.items()
    ]
    titled = []
    for go in recording.releases:
        stock, index = (recording.ratio(Ratio(patched(CLEANUP, r), FREE), go) for r in RUNTIMES)
        if stock.samples and index.samples:
            titled.append(
                f"{rounding.times(index.value)} a manual free instead of "
                f"{rounding.times(stock.value)} on Go {go}"
            )
    return dots(
        timings(recording, lines),
        "Without the walk AddCleanup costs " + "; ".join(titled),
        "wall-clock time per operation (ns); in brackets: relative to the manual free\n"
        "hollow diamonds: as published in the Go issue, on another machine and release",
        kind="A dot plot of the wall-clock time",
    )


@chart("runtime-sizes", "The object-size curve was not measured on both runtimes")
def curve(recording: Recording) -> Drawing | None:
    """The object-size curve on both runtimes."""
    stock, index = (
        levels(
            recording,
            "",
            _NAMES[runtime],
            TODAY_GO,
            [(WORD * words, patched(sized("Finalize", words), runtime)) for words in SIZES],
            "ns/op",
            data={"unit": "ns", "bytes": None},
            colour=_COLOURS[runtime],
        )
        for runtime in RUNTIMES
    )
    if not stock or not index:
        return None
    first, without = stock[0], index[0]
    return curves(
        stock + index,
        f"A finalizer on an object of {rounding.count(first.x)} bytes: {first.label} on stock, "
        f"{without.label} without the walk "
        f"({rounding.times(first.estimate.value / without.estimate.value)})",
        Axis(
            f"object size in bytes (both scales are logarithmic; Go {TODAY_GO})\n"
            "hollow diamonds: as published, on another machine and release",
            "log2",
        ),
        Axis("wall-clock time per operation (ns)", "log"),
        kind="Curves over the object's size",
        published=[(size, ns, "D") for size, ns in published_sizes()["Finalize"].items()],
    )


@chart("runtime-live", "Live handles were not measured on both runtimes")
def live_both(recording: Recording) -> Drawing | None:
    """Calls on random live handles, on both runtimes."""
    stock, index, *others = (
        among_live(recording, f"{called}, {_NAMES[runtime]}", what, _COLOURS[runtime], runtime)
        for called, what in (("AddCleanup", "Cleanup"), ("Stop", "Stop"))
        for runtime in RUNTIMES
    )
    if not stock or not index:
        return None
    return curves(
        [*stock, *index, *chain(*others)],
        f"With {rounding.count(stock[-1].x)} live handles a call takes {stock[-1].label} on "
        f"the stock runtime and {index[-1].label} without the walk",
        *LIVE_AXES,
        kind=LIVE_KIND,
    )


_LEFT = {  # the shares of the profiles to draw, with their functions
    "AddCleanup": ("runtime.AddCleanup*",),
    "of it, finding the place": stacks.SPLICE_POINT,
    "of it, keeping the index": (
        "runtime.(*mspan).linkSpecial",
        "runtime.(*mspan).unlinkSpecial",
        "runtime.(*mspan).makeSpecialIndex",
    ),
    "allocating Go memory": stacks.ALLOCATING,
    "collecting": stacks.COLLECTING,
    "locks": stacks.LOCKING,
    "calling C": stacks.CALLING_C,
}


@chart("runtime-left", "The two runtimes were not profiled")
def left(recording: Recording) -> Drawing | None:
    """The remaining cost without the walk, by CPU profile."""
    variant, panel = profiled("AllocateCleanup"), release(recording, TODAY_GO)
    points = []
    for (what, functions), (runtime, name) in product(_LEFT.items(), _NAMES.items()):
        part = {what: Part(functions, colour=_COLOURS[runtime])}
        found = shares(recording, patched(variant, runtime), TODAY_GO, part, panel, runtime=name)
        points += [replace(p, label=f"{p.label} ({name})") for p in found]
    index = [p for p in points if p.data["runtime"] == _NAMES[INDEX] and "of it" not in p.line]
    most = sorted(index, key=lambda p: -p.estimate.value)[:3]
    return dots(
        points,
        "Without the walk the CPU time goes to "
        + ", ".join(f"{p.line} ({rounding.plain(p.estimate.value)} %)" for p in most),
        "share of the CPU profile's stacks that contain it (%); shares overlap",
        kind="A dot plot of shares of the CPU profile",
        limits=PERCENT,
    )


_KIB = 1024


@chart("runtime-memory", "The memory was not measured")
def memory(recording: Recording) -> Drawing | None:
    """The off-heap memory of a span's records, on both runtimes."""
    points = []
    for size, runtime in product(BYTES, RUNTIMES):
        points += levels(
            recording,
            release(recording, TODAY_GO),
            f"objects of {size} bytes",
            TODAY_GO,
            [(math.nan, attach("AttachCleanup", bytes_=size, runtime=runtime))],
            "off-heap-bytes/span",
            lambda taken: f"{rounding.plain(taken / _KIB)} KiB",
            find=counted,
            after=f" ({_NAMES[runtime]})",
            data={"variant": f"{size} bytes", "unit": "bytes", "runtime": _NAMES[runtime]},
            colour=_COLOURS[runtime],
        )

    def in_kib(axes: Axes, _: str) -> None:
        axes.xaxis.set_major_locator(MultipleLocator(10 * _KIB))
        axes.xaxis.set_major_formatter(lambda x, _: f"{x / _KIB:g}")

    return dots(
        points,
        _memory_title(points),
        "off-heap memory that the runtime uses per span\nwhose objects all have a cleanup (KiB)",
        kind="A dot plot of memory per span",
        decorate=in_kib,
    )


def _memory_title(points: Iterable[Point]) -> str:
    both = {
        name: [p.estimate.value for p in pair]
        for name, pair in by_line(points).items()
        # A short program may find enough memory already allocated.
        if len(pair) == 2 and pair[0].estimate.value
    }
    smallest = both.get(f"objects of {SMALL} bytes")
    if smallest is None:
        return "The memory of a span's records was too small to measure"
    more = [100 * (index / stock - 1) for stock, index in both.values()]
    ends = list(dict.fromkeys(rounding.plain(pick(more)) for pick in (min, max)))
    return (
        f"The records of a span of {SMALL}-byte objects use "
        f"{rounding.plain(smallest[0] / _KIB)} KiB; the index adds {' to '.join(ends)} %"
        + (", depending on the size" if len(ends) > 1 else "")
    )


# === The study =======================================================================

STUDY = Study(
    name="runtime",
    chapter="07-why",
    question="How much of the cost remains in a runtime without the walk?",
    cases=tuple(_runtime()),
    document=TODAY_GO,
    claims=tuple(_claims()),
    charts=(
        slopes,
        price,
        curve,
        live_both,
        left,
        memory,
    ),
)
