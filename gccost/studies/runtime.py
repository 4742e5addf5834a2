"""A runtime without the walk, compared with the stock runtime."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, product

from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from gccost import rounding
from gccost.judging import published, stacks
from gccost.judging.claims import Claim, Study
from gccost.judging.curves import WORD, per_operation
from gccost.judging.quantities import Linearity, SavedShare, Share, SlopeRatio
from gccost.judging.recording import Recording
from gccost.judging.rules import AtLeast, AtMost
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FREE,
    NO_GREEN_TEA,
    RECORD,
    Case,
    Ratio,
    Variant,
    controls,
    profiled,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing import tables
from gccost.showing.figures import BLUE, GREEN, INK, MUTED, ORANGE
from gccost.showing.plots import PERCENT, Axis, Drawing, Mark, Point, by_line, chart, curves, dots
from gccost.showing.tables import Cell, Markup
from gccost.stats import Estimate
from gccost.studies.common import (
    Part,
    Timing,
    counted,
    levels,
    release,
    shares,
    timings,
)
from gccost.studies.siebenmann import SIZES, of_size, published_sizes, sized
from gccost.studies.why import (
    BYTES,
    CPU,
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
    scattered,
    scattering,
    slope_words,
)

# === Cases ===========================================================================


HINT = "hint"
INDEX = "index"
PLUS = "plus"  # also removes the cost that then dominates
BEFORE_GO = "1.26.11"
RUNTIMES = ("", INDEX)
PATCHED = ("", HINT, INDEX, PLUS)
SMALLEST = 1  # pointer words of an object of 8 bytes
# Yields over a hundred stacks without the walk, at 250 a second (gosrc/meter).
_PROFILED = 1_600_000
_PROGRAM_PROFILED = 1_000_000
# Specials by kind, as the benchmarks of gosrc/cycles name them.
KINDS = {"finalizer": "Finalizer", "cleanup": "Cleanup", "weak pointer": "Weak"}
# Operations timed for the latency, by live handles: several GC cycles in a second or two.
_TIMED = {100_000: 500_000, MANY: 1_000_000, 10_000_000: 2_000_000}


def patched(variant: Variant, runtime: str = INDEX) -> Variant:
    """The same variant on a patched runtime, by default the one without the walk."""
    return replace(variant, runtime=runtime)


def cycle(kind: str, live: int = MANY, runtime: str = "") -> Variant:
    """A variant that times GC cycles by the number of live specials: "Cleanup", …"""
    return replace(
        tail(kind, live, runtime), benchmark=f"Cycle{kind}", gogc="off", setting="precise"
    )


def tail(kind: str, live: int = MANY, runtime: str = "") -> Variant:
    """A variant that times single operations with many live specials: "Plain", "Cleanup", …"""
    return Variant(f"Tail{kind}", runtime=runtime, sub=(("live", str(live)),))


def profiled_program(what: str, runtime: str = "") -> Variant:
    """The program with handles in use and other objects, under the CPU profiler."""
    return replace(program(what, POOL, MIXED, runtime), profile="cpu")


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
    # Programs without specials, which a patched runtime must not slow down.
    yield Case("cstr", patched(FREE), TODAY_GO, AS_PUBLISHED, "standard")
    yield of_size(patched(sized("Allocate", SMALLEST)), TODAY_GO, "standard")
    yield running(patched(program("Plain", POOL, MIXED)), TODAY_GO, "standard")
    yield from _hint(TODAY_GO)
    yield from _programs(TODAY_GO)
    yield from _cycles(TODAY_GO)
    yield from controls()


def _hint(go: str) -> Iterator[Case]:
    """The cases that compare the hint with the index."""
    yield Case("cstr", patched(CLEANUP, HINT), go, AS_PUBLISHED)
    yield Case("cstr", patched(AUTO, HINT), go, AS_PUBLISHED, "standard")
    yield of_size(patched(sized("Finalize", SMALLEST), HINT), go, "standard")
    for order in ORDERS:
        yield registering(attach("AttachCleanup", order, runtime=HINT), go, "standard")
    yield registering(attach("Stop", "shuffled", runtime=HINT), go, "standard")
    yield from _scattered(go, HINT)


def _programs(go: str) -> Iterator[Case]:
    """A program with other objects on each runtime, and its profiles."""
    for what, runtime in (("Plain", ""), *(("Cleanup", runtime) for runtime in PATCHED)):
        yield running(program(what, POOL, MIXED, runtime), go, "tiny")
        yield Case("specials", profiled_program(what, runtime), go, _PROGRAM_PROFILED, "standard")


def _cycles(go: str) -> Iterator[Case]:
    """The cost of live specials: GC cycles, memory, and the latency of operations."""
    for kind, live, runtime in product(KINDS.values(), LIVE, ("", PLUS, NO_GREEN_TEA)):
        judged = live == MANY and runtime != NO_GREEN_TEA
        tier = "tiny" if judged else "standard"
        if live > MANY and (kind != "Cleanup" or runtime == NO_GREEN_TEA):
            tier = "thorough"  # ten million take ten seconds
        if runtime != NO_GREEN_TEA or live >= MANY:
            variant = cycle(kind, live, runtime)
            yield Case("cycles", variant, go, live, tier, retained_bytes=RECORD)
    for live, n in _TIMED.items():
        for kind, runtime in (("Plain", ""), ("Finalizer", ""), ("Cleanup", ""), ("Cleanup", PLUS)):
            tier = "tiny" if live == MANY else "standard"
            yield Case("cycles", tail(kind, live, runtime), go, n, tier)


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
    for case in _scattered(go, runtime):
        if case.variant != scattered("ScatteredCleanup", MANY, runtime):  # measured above
            yield case
    yield running(program("Cleanup", 0, MIXED, runtime), go, later)
    for benchmark in ("LoopFinalizer", "LoopCleanup"):
        yield looping(looped(benchmark, runtime=runtime), go, later)


def _scattered(go: str, runtime: str) -> Iterator[Case]:
    """Calls on random live handles on a runtime, by the number of live handles."""
    for live, benchmark in product(LIVE, ("ScatteredCleanup", "ScatteredStop")):
        judged = (benchmark, live) == ("ScatteredCleanup", POOL)
        tier = "thorough" if live > MANY else "tiny" if judged else "standard"
        yield scattering(benchmark, live, go, tier, runtime)


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    claim = partial(Claim, releases=(TODAY_GO,))
    yield claim("M7", "without-the-walk", Ratio(patched(CLEANUP), CLEANUP), AtMost())
    for name, benchmark, order, against in (
        ("X2a", "AttachCleanup", "ascending", "ascending"),
        ("X2b", "AttachCleanup", "shuffled", "shuffled"),
        # Descending order has no slope on stock either, so the baseline is ascending order.
        ("X2c", "AttachCleanup", "descending", "ascending"),
        ("X2d", "Stop", "shuffled", "shuffled"),
    ):
        over, under = patched(attach(benchmark, order)), attach(benchmark, against)
        yield claim(name, "without-the-walk", SlopeRatio(over, under), AtMost())
    saved, small = SavedShare(CLEANUP, patched(CLEANUP), FREE), sized("Finalize", SMALLEST)
    yield claim("X3", "what-the-walk-costs", saved, AtLeast())
    yield claim("X4", "what-the-walk-costs", Ratio(small, patched(small)), AtLeast())
    each = cycle("Cleanup")
    scattered_ = scattered("ScatteredCleanup", POOL)
    hint, index = (Ratio(scattered_, patched(scattered_, r), "cpu-ns/op") for r in (HINT, INDEX))
    for letter, kind in zip("abc", KINDS.values(), strict=True):
        linear = Linearity(cycle(kind))
        yield claim(f"X11{letter}", "each-cycle", linear, AtLeast(margin=1.0))
    yield claim("X11d", "each-cycle", SlopeRatio(patched(each, PLUS), each), AtMost())
    simplest, cheaper = "the-simplest-change", Ratio(CLEANUP, patched(CLEANUP, HINT))
    yield claim("X12a", simplest, cheaper, AtLeast())
    yield claim("X12b", simplest, hint, AtMost())
    yield claim("X12c", simplest, index, AtLeast())


# === Charts ==========================================================================

_COLOURS = {"": ORANGE, HINT: MUTED, INDEX: BLUE, PLUS: GREEN, NO_GREEN_TEA: INK}  # by runtime
_NAMES = {"": "stock", HINT: "hint", INDEX: "index", PLUS: "plus"}

_WALKS = {
    "AddCleanup, ascending": ("AttachCleanup", "ascending"),
    "AddCleanup, shuffled": ("AttachCleanup", "shuffled"),
    "AddCleanup, descending": ("AttachCleanup", "descending"),
    "Stop, shuffled": ("Stop", "shuffled"),
}


@chart("runtime-slopes", "The two runtimes were not measured")
def slopes(recording: Recording) -> Drawing | None:
    """The time of a call by the length of its list, on each runtime."""
    points = []
    shares_left = []
    for panel, (benchmark, order) in _WALKS.items():
        each = {runtime: attach(benchmark, order, runtime=runtime) for runtime in PATCHED[:-1]}
        for runtime, variant in each.items():
            name, told = _NAMES[runtime], slope_words(recording, variant)
            points += [
                replace(p, line=f"{name}: {told}", data={**p.data, "variant": f"{panel}, {name}"})
                for p in call_points(recording, panel, name, variant, _COLOURS[runtime])
            ]
        stock, index = (recording.slope(each[r], TODAY_GO).value for r in RUNTIMES)
        if order != "descending" and math.isfinite(index) and stock > 0:
            shares_left.append(index / stock)
    return curves(
        points,
        "With the index each record in the list costs about "
        f"{rounding.percent(max(*shares_left, 0))} of its cost on the stock runtime, or less"
        if shares_left
        else "The cost per record in the list, on each runtime",
        Axis(
            f"records in the span's list at the time of the call (8-byte objects, Go {TODAY_GO})",
            limits=(0, None),
        ),
        Axis("one call (ns)", limits=(0, None)),
        kind="Curves of the cost of a call on each runtime",
        height=5,
        columns=2,
    )


_PROGRAMS = {"manual free": FREE, "AddCleanup frees": CLEANUP, "finalizer frees": AUTO}


@chart("runtime-cost", "The documents' programs were not measured on both runtimes")
def price(recording: Recording) -> Drawing | None:
    """The documents' programs on both runtimes."""
    printed = published.table("addcleanup-timings").query("machine == 'MacBook Pro M1'")
    issue = printed.astype({"ns_per_op": float}).set_index("variant")["ns_per_op"]
    lines = [
        Timing(
            line,
            patched(variant, runtime),
            against=None if variant == FREE else FREE,
            colour=BLUE if variant == FREE else _COLOURS[runtime],
            published=[] if runtime else [Mark(issue[variant.benchmark])],
            data={"variant": line, "unit": "ns"} | ({"ratio": 1.0} if variant == FREE else {}),
        )
        for what, variant in _PROGRAMS.items()
        for runtime, name in _NAMES.items()
        for line in [f"{what}, {name}" if runtime else what]
    ]
    titled = []
    for go in recording.releases:
        stock, index = (recording.estimate(Ratio(patched(CLEANUP, r), FREE), go) for r in RUNTIMES)
        if stock.samples and index.samples:
            titled.append(
                f"{rounding.times(index.value)} a manual free instead of "
                f"{rounding.times(stock.value)} on Go {go}"
            )
    return dots(
        timings(recording, lines),
        "With the index AddCleanup costs " + "; ".join(titled),
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
        f"{without.label} with the index "
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
    """Calls on random live handles, on each runtime."""
    lines = {
        (what, runtime): among_live(
            recording, f"{called}, {_NAMES[runtime]}", what, _COLOURS[runtime], runtime
        )
        for called, what in (("AddCleanup", "Cleanup"), ("Stop", "Stop"))
        for runtime in PATCHED[:-1]
    }
    stock, index = lines["Cleanup", ""], lines["Cleanup", INDEX]
    if not stock or not index:
        return None
    return curves(
        list(chain(*lines.values())),
        f"With {rounding.count(stock[-1].x)} live handles a call takes {stock[-1].label} on "
        f"the stock runtime and {index[-1].label} with the index",
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
        "Overlapping shares of the CPU time with the index: "
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
            attach("AttachCleanup", bytes_=size, runtime=runtime),
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
    more = rounding.extent(100 * (index / stock - 1) for stock, index in both.values())
    return (
        f"The records of a span of {SMALL}-byte objects use "
        f"{rounding.plain(smallest[0] / _KIB)} KiB; the index adds {more} %"
        + (", depending on the size" if " to " in more else "")
    )


# --- What live specials cost -----------------------------------------------------------

_GC = {"": "stock", PLUS: "plus", NO_GREEN_TEA: "stock without Green Tea"}
_PHASES = {"marking": "mark-ns/special", "sweeping": "sweep-ns/special"}


@chart("runtime-cycles", "GC cycles with live specials were not measured")
def cycles(recording: Recording) -> Drawing | None:
    """The time of a GC cycle by the number of live specials, by kind and runtime."""
    points = []
    for runtime, (what, kind) in product(("", PLUS), KINDS.items()):
        variant = cycle(kind, runtime=runtime)
        told = f"{what}: {slope_words(recording, variant).replace('record', 'special')}"
        colour = {"Finalizer": ORANGE, "Cleanup": GREEN, "Weak": BLUE}[kind]
        points += [
            replace(p, line=told, data={**p.data, "variant": f"{what}, {_NAMES[runtime]}"})
            for p in call_points(recording, _NAMES[runtime], what, variant, colour)
        ]
    each = recording.slope(cycle("Cleanup"), TODAY_GO)
    return curves(
        points,
        f"Each live cleanup adds {rounding.interval(each, 'ns')} to every GC cycle",
        Axis(
            f"live specials, one per 16-byte object (Go {TODAY_GO})",
            ticks={0: "0", MANY // 2: rounding.count(MANY // 2), MANY: rounding.count(MANY)},
            limits=(0, None),
        ),
        Axis(
            "CPU time of one GC cycle (ms)", limits=(0, None), format=lambda ns, _: f"{ns / 1e6:g}"
        ),
        kind="Curves of the time of a GC cycle",
        columns=2,
    )


@chart("runtime-phases", "Marking and sweeping specials were not measured")
def phases(recording: Recording) -> Drawing | None:
    """What a live special costs a GC cycle, to mark and to sweep, by kind and runtime."""
    points = []
    for (phase, metric), (what, kind), (runtime, name) in product(
        _PHASES.items(), KINDS.items(), _GC.items()
    ):
        points += levels(
            recording,
            phase,
            f"{what}, {name}",
            TODAY_GO,
            cycle(kind, runtime=runtime),
            metric,
            find=counted,
            data={"unit": "ns", "phase": phase, "kind": what, "runtime": name},
            colour=_COLOURS[runtime],
        )
    told = {p.line: p.label for p in points if p.panel == "marking"}
    return dots(
        points,
        "Marking costs "
        + "; ".join(f"{told[f'{w}, stock']} per {w}" for w in KINDS if f"{w}, stock" in told),
        f"ns per live special and GC cycle, {rounding.count(MANY)} live (Go {TODAY_GO})",
        kind="A dot plot of the cost per live special",
    )


_TAILS = {
    "no specials": tail("Plain"),
    "finalizers": tail("Finalizer"),
    "cleanups": tail("Cleanup"),
    "cleanups, plus": tail("Cleanup", runtime=PLUS),
}
_TAIL_COLOURS = dict(zip(_TAILS, (MUTED, ORANGE, GREEN, BLUE), strict=True))
_SLOWEST = {
    "p99.9 of an operation": "op-p99.9-ns",
    "the slowest operation": "op-max-ns",
    "the longest pause": "pause-max-ns",
}


@chart("runtime-tail", "The latency with live specials was not measured")
def tails(recording: Recording) -> Drawing | None:
    """The slowest operations and pauses, by the number of live specials."""
    points: list[Point] = []
    for (panel, metric), (name, variant) in product(_SLOWEST.items(), _TAILS.items()):
        points += levels(
            recording,
            panel,
            name,
            TODAY_GO,
            [(live, replace(variant, sub=(("live", str(live)),))) for live in _TIMED],
            metric,
            lambda us: rounding.duration(1e3 * us),
            factor=1e-3,
            data={"unit": "µs", "metric": metric, "live": None},
            colour=_TAIL_COLOURS[name],
        )
    none = _TAILS["no specials"]
    ratios = {
        name: Ratio(variant, none, "op-max-ns")
        for name, variant in _TAILS.items()
        if variant != none and recording.level(variant, TODAY_GO, "op-max-ns").samples
    }
    differ = {name: recording.differs(ratio, TODAY_GO) for name, ratio in ratios.items()}
    told = [
        f"{rounding.interval(recording.estimate(ratio, TODAY_GO), 'ratio')} with {name}"
        for name, ratio in ratios.items()
        if differ[name]
    ]
    if same := [name for name in ratios if not differ[name]]:
        told.append(f"no significant difference with {' or '.join(same)}")
    return curves(
        points,
        f"The slowest operation with {rounding.count(MANY)} live handles, relative to no specials: "
        + "; ".join(told),
        Axis(f"live handles (both scales are logarithmic; Go {TODAY_GO})", "log"),
        Axis("time (µs, log)", "log"),
        kind="Curves of the slowest operations and pauses",
        height=9,
    )


# --- Programs ------------------------------------------------------------------------------

_SPENT = {
    "marking specials": ("runtime.markrootSpans",),
    "sweeping": stacks.SWEEPING,
    "finding the place": stacks.SPLICE_POINT,
}


def spent(recording: Recording, what: str, functions: Iterable[str], runtime: str = "") -> Estimate:
    """The CPU time (ns) that a program's operation spends in functions: a share of its cost.

    Its interval covers the errors of both.
    """
    part = Share(profiled_program(what, runtime), tuple(functions))
    share = recording.estimate(part, TODAY_GO)
    cost = recording.level(program(what, POOL, MIXED, runtime), TODAY_GO, CPU)

    def error(of_share: float, of_cost: float) -> float:
        # A share of zero is zero of any cost, even of one without an interval.
        return math.hypot(cost.value * of_share, share.value and share.value * of_cost)

    value = share.value * cost.value
    low = value - error(share.value - share.low, cost.value - cost.low)
    high = value + error(share.high - share.value, cost.high - cost.value)
    samples, rounds = min(share.samples, cost.samples), min(share.rounds, cost.rounds)
    return Estimate(value, max(low, 0), high, samples, rounds, share.confidence)


@chart("runtime-programs", "The program was not profiled on the runtimes")
def programs(recording: Recording) -> Drawing | None:
    """Where a program with other objects spends its CPU time, on each runtime."""
    points = []
    runs = [("no cleanups", "Plain", ""), *((_NAMES[r], "Cleanup", r) for r in PATCHED)]
    for name, what, runtime in runs:
        variant = program(what, POOL, MIXED, runtime)
        colour = INK if what == "Plain" else _COLOURS[runtime]
        data = {"unit": "ns", "part": "all"}
        points += levels(
            recording, "all of it", name, TODAY_GO, variant, CPU, data=data, colour=colour
        )
        for part, functions in _SPENT.items():
            e = spent(recording, what, functions, runtime)
            if e.samples:
                label = rounding.nanoseconds(e.value)
                more = {"variant": name, "go": TODAY_GO, "unit": "ns", "part": part}
                points.append(Point(part, name, e, label=label, colour=colour, data=more))
    parts = {p.panel: rounding.interval(p.estimate, "ns") for p in points if p.line == "stock"}
    return dots(
        points,
        f"With {rounding.count(POOL)} handles in use and {MIXED} other objects for each, "
        f"an operation takes {parts.get('all of it', '–')}"
        + "".join(f"; {part}: {parts[part]}" for part in _SPENT if part in parts),
        f"CPU time of one operation (ns, Go {TODAY_GO}); parts: from CPU profiles",
        kind="A dot plot of the CPU time of an operation",
    )


# === Tables ==========================================================================

_RELATIVE = {
    "AddCleanup, the issue's loop": (CLEANUP, "ns/op"),
    "SetFinalizer, the same loop": (AUTO, "ns/op"),
    "the program with other objects and cleanups": (program("Cleanup", POOL, MIXED), CPU),
    "without specials: a manual free": (FREE, "ns/op"),
    "without specials: allocating an 8-byte object": (sized("Allocate", SMALLEST), "ns/op"),
    "without specials: the program with other objects": (program("Plain", POOL, MIXED), CPU),
}


def relative(recording: Recording) -> Markup:
    """A table of programs' costs on each patched runtime, relative to the stock runtime."""
    ratios = {
        what: [Ratio(patched(variant, runtime), variant, clock) for runtime in PATCHED[1:]]
        for what, (variant, clock) in _RELATIVE.items()
    }
    rows = [
        [Cell(what), *(tables.estimate(recording.estimate(r, TODAY_GO), "ratio") for r in each)]
        for what, each in ratios.items()
    ]
    return tables.table(("cost relative to stock", *PATCHED[1:]), rows)


def without_green_tea(recording: Recording) -> dict[str, Estimate]:
    """What a live special costs a GC cycle without Green Tea over stock, by kind of special."""
    ratios = {
        what: SlopeRatio(cycle(kind, runtime=NO_GREEN_TEA), cycle(kind))
        for what, kind in KINDS.items()
    }
    found = {what: recording.estimate(ratio, TODAY_GO) for what, ratio in ratios.items()}
    return {what: e for what, e in found.items() if e.samples}


def tail_cycles(recording: Recording) -> dict[str, Estimate]:
    """The GC cycles of a run whose operations are timed, by kind of special."""
    found = {name: recording.amount(v, TODAY_GO, "gc-cycles") for name, v in _TAILS.items()}
    return {name: e for name, e in found.items() if e.samples}


def slowest_calls(recording: Recording) -> list[Point]:
    """The slowest call of AddCleanup in descending order, where nothing walks, by runtime.

    Empty unless it is at the same number of records on every runtime and stands out there.
    """
    lines = [
        call_points(recording, "", _NAMES[r], attach("AttachCleanup", "descending", runtime=r), INK)
        for r in PATCHED[:-1]
    ]
    if not all(lines):
        return []
    peaks = [max(line, key=lambda p: p.estimate.value) for line in lines]
    stand_out = all(
        peak.estimate.low > p.estimate.value
        for peak, line in zip(peaks, lines, strict=True)
        for p in line
        if p != peak
    )
    return peaks if stand_out and len({peak.x for peak in peaks}) == 1 else []


def each_cycle(recording: Recording) -> Markup:
    """A table of what a live special costs in each GC cycle, and of its resident memory."""
    rows = []
    for what, kind in KINDS.items():
        slopes = [recording.slope(cycle(kind, live), TODAY_GO) for live in LIVE]
        resident = recording.amount(cycle(kind), TODAY_GO, "rss-bytes/special")
        cells = [tables.estimate(slope, "ns") for slope in slopes]
        rows.append([Cell(f"a live {what}"), *cells, tables.estimate(resident, "number")])
    header = (f"{rounding.count(live)} live" for live in LIVE)
    return tables.table(("in each GC cycle", *header, "resident bytes"), rows)


# The cost of the program with other objects on each patched runtime, relative to stock.
PROGRAM = {
    _NAMES[r]: Ratio(
        patched(program("Cleanup", POOL, MIXED), r), program("Cleanup", POOL, MIXED), CPU
    )
    for r in PATCHED[1:]
}


def program_shares(recording: Recording) -> dict[str, Estimate]:
    """The shares (0 to 1) of the program's CPU profile on the stock runtime, by part."""
    found = {
        part: recording.estimate(Share(profiled_program("Cleanup"), functions), TODAY_GO)
        for part, functions in _SPENT.items()
    }
    return {part: e for part, e in found.items() if e.samples}


def visits(recording: Recording) -> list[str]:
    """The cost of the collector's visits to records in the program, from counts, in a sentence."""
    mixed = program("Cleanup", POOL, MIXED)
    _, found = per_operation(recording, mixed, TODAY_GO, "gc-cycles")
    each = recording.slope(cycle("Cleanup", POOL), TODAY_GO)
    if not found.samples or not each.samples:
        return []
    # The collector visits a record in each cycle of its handle's life, and once when it is dead.
    times = 1 + POOL * found.value
    return [
        f"The counts give a second estimate. The program runs {rounding.plain(1e6 * found.value)} "
        f"GC cycles for a million operations. With {rounding.count(POOL)} handles in use, the "
        f"collector visits {rounding.plain(times)} records for each operation: each record in "
        "every cycle of its handle's life, and once more when the handle is dead. A visit costs "
        f"{rounding.interval(each, 'ns')} where the objects lie next to each other, which gives "
        f"{rounding.nanoseconds(times * each.value)} for each operation. In the program the "
        "objects lie apart, and we did not measure what a visit costs then. The profiles show how "
        "long marking and sweeping really take."
    ]


# === The study =======================================================================

STUDY = Study(
    name="runtime",
    chapter="07-why",
    question="How much of the cost remains in a runtime without the walk?",
    cases=tuple(_runtime()),
    document=TODAY_GO,
    claims=tuple(_claims()),
    charts=(slopes, price, curve, live_both, left, memory, cycles, phases, tails, programs),
)
