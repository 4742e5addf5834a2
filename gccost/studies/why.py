"""Why: the cost of a call by its object's place in a span, and the programs it affects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from gccost import rounding
from gccost.judging.claims import Claim, Study
from gccost.judging.curves import calls
from gccost.judging.models import line
from gccost.judging.quantities import Linearity, SlopeRatio
from gccost.judging.recording import Recording
from gccost.judging.rules import AtLeast, AtMost, Between
from gccost.measuring.cases import RECORD, Case, Ratio, Variant
from gccost.measuring.toolchains import (
    CLEANUP_GO,
    DOCUMENT_GO,
    GO_RELEASES,
    ISSUE_GO,
    TODAY_GO,
    number,
)
from gccost.showing import plots
from gccost.showing.figures import BLUE, GREEN, INK, MUTED, ORANGE
from gccost.showing.plots import Axis, Drawing, Point, by_line, chart, curves, dots
from gccost.stats import Estimate, amount
from gccost.studies.common import counted, levels, release

# === Cases ===========================================================================


ORDERS = ("ascending", "shuffled", "descending")
# The sizes of objects whose spans are one page, in bytes.
BYTES = (8, 16, 32, 48, 64, 128, 256, 512)
_BETWEEN = (32, 128, 256)  # omitted at the quick budget
SMALL = 8  # bytes of the documents' handles
CACHED = 16  # bytes of objects whose span's records fit into a first-level cache
OWN_SPAN = 48  # bytes of a handle that shares no span with AddCleanup's own allocations
DUMMIES = (0, 1, 2, 3)
LIVE = (10_000, 100_000, 1_000_000, 10_000_000)
IN_USE = (0, 100_000, 1_000_000)
OTHERS = (0, 1, 3, 9, 31)
# For claims: the number of live objects, and the other objects allocated per handle.
MANY, MIXED = 1_000_000, 9
POOL = 100_000

_REGISTERED = 200_000
_LARGER = 100_000  # for larger objects, whose walks are short
_SCATTERED = 10_000
_LOOPED = 800_000
_PROGRAM = 300_000
# Bytes per live object: itself, two pointers to it, half a record.
_LIVING = 60


def attach(
    benchmark: str, order: str = "ascending", bytes_: int = SMALL, runtime: str = ""
) -> Variant:
    """A variant that times one call by its object's place: "AttachCleanup", "Stop", …"""
    sub = (("order", order), ("bytes", str(bytes_)))
    return Variant(benchmark, gogc="off", setting="precise", runtime=runtime, sub=sub)


def scattered(benchmark: str, live: int = MANY, runtime: str = "") -> Variant:
    """A variant that times calls on random live objects: "ScatteredCleanup", …"""
    sub = (("live", str(live)),)
    return Variant(benchmark, gogc="off", setting="precise", runtime=runtime, sub=sub)


def looped(benchmark: str, bytes_: int = SMALL, dummies: int = 0, runtime: str = "") -> Variant:
    """A variant that allocates and registers: "LoopCleanup", or "LoopFinalizer" with dummies."""
    sub = [("bytes", str(bytes_))]
    if benchmark == "LoopFinalizer":
        sub.append(("dummies", str(dummies)))
    return Variant(benchmark, setting="precise", runtime=runtime, sub=tuple(sub))


def program(what: str, live: int = 0, others: int = 0, runtime: str = "") -> Variant:
    """A variant of a program that also does other work: "Plain", "Cleanup", "Lists", …"""
    sub = (("live", str(live)), ("others", str(others)))
    return Variant(f"Program{what}", setting="precise", runtime=runtime, sub=sub)


def registering(variant: Variant, go: str, min_budget: str = "tiny") -> Case:
    """The case of a variant of `attach`."""
    n = _REGISTERED if ("bytes", str(SMALL)) in variant.sub else _LARGER
    return Case("specials", variant, go, n, min_budget, retained_bytes=RECORD)


def scattering(benchmark: str, live: int, go: str, min_budget: str, runtime: str = "") -> Case:
    """The case of a variant of `scattered`."""
    variant, n = scattered(benchmark, live, runtime), min(live, _SCATTERED)
    retained = max(RECORD, live * _LIVING // n)
    return Case("specials", variant, go, n, min_budget, retained_bytes=retained)


def running(variant: Variant, go: str, min_budget: str) -> Case:
    """The case of a variant of `program`."""
    return Case("specials", variant, go, _PROGRAM, min_budget)


def looping(variant: Variant, go: str, min_budget: str = "tiny") -> Case:
    """The case of a variant of `looped`."""
    return Case("specials", variant, go, _LOOPED, min_budget)


def _releases() -> Iterator[Case]:
    """One call by its object's place, and the loops, on the documents' releases and later ones."""
    for go in (go for go in GO_RELEASES if go == DOCUMENT_GO or number(go) >= number(CLEANUP_GO)):
        today = go == TODAY_GO
        min_budget = "tiny" if today else "standard"
        kinds = ["Finalizer", "Cleanup"] if number(go) >= number(CLEANUP_GO) else ["Finalizer"]
        for order in ORDERS:
            for kind in kinds:
                yield registering(attach(f"Attach{kind}", order), go, min_budget)
                if kind == "Finalizer":
                    yield registering(attach("AttachFinalizer", order, CACHED), go, min_budget)
            if "Cleanup" in kinds:
                yield registering(attach("Stop", order), go, min_budget)
            if today:
                yield registering(attach("ClearFinalizer", order), go, "standard")
        for kind in kinds:
            yield registering(attach(f"Attach{kind}", bytes_=OWN_SPAN), go, min_budget)
            for bytes_ in (SMALL, OWN_SPAN):
                yield looping(looped(f"Loop{kind}", bytes_), go, min_budget)
        yield looping(looped("LoopFinalizer", dummies=1), go, min_budget)


def _why() -> Iterator[Case]:
    yield from _releases()
    go = TODAY_GO
    for bytes_ in BYTES:
        for benchmark in ("AttachFinalizer", "AttachCleanup"):
            known = (
                (SMALL, OWN_SPAN, CACHED) if benchmark == "AttachFinalizer" else (SMALL, OWN_SPAN)
            )
            if bytes_ not in known:
                min_budget = "standard" if bytes_ in _BETWEEN else "tiny"
                yield registering(attach(benchmark, bytes_=bytes_), go, min_budget)
            between = bytes_ != SMALL and (bytes_, benchmark) != (CACHED, "AttachFinalizer")
            for order in ORDERS[1:] if between else ():
                yield registering(attach(benchmark, order, bytes_), go, "standard")
    for dummies in DUMMIES[2:]:
        yield looping(looped("LoopFinalizer", dummies=dummies), go, "standard")
    for bytes_ in (16, 64):
        for benchmark in ("LoopCleanup", "LoopFinalizer"):
            yield looping(looped(benchmark, bytes_), go, "standard")
    for live in LIVE:
        for benchmark in ("ScatteredFinalizer", "ScatteredCleanup", "ScatteredStop"):
            min_budget = "tiny" if benchmark == "ScatteredCleanup" else "standard"
            min_budget = "thorough" if live > MANY else min_budget
            yield scattering(benchmark, live, go, min_budget)
    yield scattering("ScatteredFinalizer", MANY, DOCUMENT_GO, "standard")
    yield scattering("ScatteredCleanup", MANY, ISSUE_GO, "standard")
    for live in IN_USE:
        for others in OTHERS if live <= POOL else (0, MIXED):
            early = live <= POOL and others in (0, MIXED)
            min_budget = "tiny" if early else "standard"
            for what in ("Plain", "Cleanup", "Lists"):
                yield running(program(what, live, others), go, min_budget)
            if others in (0, MIXED):
                yield running(program("Finalizer", live, others), go, "standard")
    for variant in (program("Lists"), program("Lists", POOL, MIXED)):
        yield running(variant, ISSUE_GO, "standard")


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    old, new = (DOCUMENT_GO, TODAY_GO), (ISSUE_GO, TODAY_GO)
    # A call on a random one of a million live handles, against the microbenchmark's call,
    # whose handles come in ascending order.
    worst = Ratio(scattered("ScatteredCleanup"), attach("AttachCleanup"), "cpu-ns/op")
    mixed = Ratio(program("Lists", POOL, MIXED), program("Lists"), "passed-records/op")
    yield Claim("M8a", "the-worst-case", worst, AtMost(), new)
    yield Claim("M8b", "programs", mixed, AtMost(), new)
    ascending = attach("AttachFinalizer")
    yield Claim("X1a", "one-call-by-its-place", Linearity(ascending), AtLeast(margin=1.0), old)
    # The records of a span of 8-byte objects take over 48 KB, which fills or exceeds a first-level
    # cache. We think that it makes the last calls in random order more expensive.
    shuffled, descending = (
        SlopeRatio(
            attach("AttachFinalizer", order, CACHED), attach("AttachFinalizer", bytes_=CACHED)
        )
        for order in ("shuffled", "descending")
    )
    yield Claim("X1b", "the-order", shuffled, Between(low=0.4, high=0.6), old)
    yield Claim("X1c", "the-order", descending, AtMost(), old)
    cleanup, finalizer = (
        attach(f"Attach{what}", bytes_=OWN_SPAN) for what in ("Cleanup", "Finalizer")
    )
    yield Claim("X5", "half-the-price", Ratio(cleanup, finalizer, "call-ns"), AtLeast(), new)
    yield Claim("X10", "the-worst-case", worst, AtLeast(), new)


# === Charts ==========================================================================


CPU = "cpu-ns/op"
_ORDERS = {"ascending": ORANGE, "shuffled": GREEN, "descending": BLUE}
_CALLED = {"SetFinalizer": "AttachFinalizer", "AddCleanup": "AttachCleanup"}


# --- One call, by the length of its list ---------------------------------------------


def call_points(
    recording: Recording, panel: str, line: str, variant: Variant, colour: str
) -> list[Point]:
    """Points for the time of a call (ns) by the number of records in its list."""
    return [
        Point(
            panel,
            line,
            estimate,
            records,
            values,
            rounding.nanoseconds(estimate.value),
            colour,
            data={"variant": line, "go": TODAY_GO, "unit": "ns", "records": records},
        )
        for records, values in calls(recording, variant, TODAY_GO).items()
        if (estimate := amount(values)).samples
    ]


def slope_words(recording: Recording, variant: Variant) -> str:
    slope = recording.slope(variant, TODAY_GO).value
    if abs(slope) < 1:
        slope = round(slope, 2)  # further digits are noise
    digits = 1 if abs(slope) < 0.1 else 2 if abs(slope) < 1 else 3
    return f"{rounding.plain(slope, digits)} ns a record"


@chart("why-span", "The cost of a call by its object's place was not measured")
def span(recording: Recording) -> Drawing | None:
    """A span, the walk over it, and the cost of a call by its object's place."""
    ascending, *others = (
        call_points(recording, "", order, attach("AttachFinalizer", order), ink)
        for order, ink in _ORDERS.items()
    )
    if not ascending:
        return None
    points = [*ascending, *(p for each in others for p in each)]
    first, last = ascending[0], ascending[-1]
    slots = round(first.x + last.x) + 1
    figure, (top, axes) = plots.canvas([2.8, 8.2], sharex=True)
    _slots(top, ascending, slots)
    plots.draw(axes, points)
    axes.set(xlim=(0, slots), ylim=(0, None), ylabel="one call (ns)")
    slopes = {order: slope_words(recording, attach("AttachFinalizer", order)) for order in _ORDERS}
    last_points = [line[-1] for line in by_line(points).values()]
    ends = [(p.estimate.value, f"{p.line}\n{slopes[p.line]}", p.colour) for p in last_points]
    plots.name_ends(axes, ends, gap=0.13)
    plots.below(
        figure, f"records in the span's list at the time of the call (SetFinalizer, Go {TODAY_GO})"
    )
    title = (
        f"A call for the last sixteenth of a span's {rounding.count(slots)} objects costs "
        f"{rounding.times(last.estimate.value / first.estimate.value)} as much as for the first: "
        f"{rounding.interval(recording.slope(attach('AttachFinalizer'), TODAY_GO), 'ns')} "
        "for each record passed"
    )
    return plots.drawing(figure, title, points, "A span's slots, and curves of the cost of a call")


def _slots(axes: Axes, points: Sequence[Point], slots: int) -> None:
    """Draw a span's slots, shaded by the cost of a call there, and three walks."""
    axes.set_axis_off()
    axes.set_ylim(0, 4.2)
    most = max(p.estimate.value for p in points)
    width = slots / len(points)
    for i, p in enumerate(points):
        shade = 0.08 + 0.72 * p.estimate.value / most
        slot = Rectangle((i * width, 0.1), width * 0.94, 0.75, color=ORANGE, alpha=shade, lw=0)
        axes.add_patch(slot)
    axes.text(0, 3.75, "the span's slots, by address", fontsize=9, color=MUTED, va="center")
    for i, p in enumerate((points[len(points) // 5], points[len(points) // 2], points[-1])):
        y = 1.25 + 0.8 * i
        arrow = {"arrowstyle": "->", "color": INK, "linewidth": 1.1}
        axes.annotate("", (p.x, y), (0, y), arrowprops=arrow)
        axes.plot([p.x, p.x], [0.9, y], color=INK, linewidth=0.8)
        passed = f"passes {rounding.count(p.x)}: {p.label}"
        side = "center" if i else "left"
        axes.text(p.x / 2, y + 0.08, passed, ha=side, va="bottom", fontsize=8.5)


@chart("why-sizes", "The cost of a call at each size was not measured")
def sizes(recording: Recording) -> Drawing | None:
    """The mean cost of a call over a span, by the objects in the span, in each order."""
    points: list[Point] = []
    titled = []
    for called, benchmark in _CALLED.items():
        for order, ink in _ORDERS.items():
            over = [
                (recording.amount(variant, TODAY_GO, "records").value, variant)
                for size in reversed(BYTES)
                for variant in [attach(benchmark, order, size)]
            ]
            data = {"variant": f"{called}, {order}", "unit": "ns", "records": None}
            found = levels(
                recording, called, order, TODAY_GO, over, "call-ns", data=data, colour=ink
            )
            fit = line([p.x for p in found], [p.estimate.value for p in found])
            told = f"{rounding.plain(fit.slope)} ns a record, r² {rounding.plain(fit.r2)}"
            if not math.isnan(fit.slope):
                points += [replace(p, line=f"{order}: {told}") for p in found]
                titled += [f"{called} {told}"] if order == "ascending" else []
    return curves(
        points if titled else [],
        "For objects of 8 to 512 bytes in ascending order: " + "; ".join(titled),
        Axis(
            f"records in the list on average: half the objects of a span (Go {TODAY_GO})",
            limits=(0, None),
        ),
        Axis("mean time of a call over a span (ns)", limits=(0, None)),
        kind="Curves of the cost of a call, by size",
        columns=2,
    )


_FITTED = {  # the line fitted over the length of the list
    "for each record in the list": ("slope", "ns a record"),
    "for the call itself, with an empty list": ("intercept", "ns"),
}


@chart("why-releases", "The slope was not measured on any release")
def releases(recording: Recording) -> Drawing | None:
    """The slope and the intercept of each release."""
    points = []
    for panel, (column, unit) in _FITTED.items():
        for go in recording.releases:
            for called, benchmark in _CALLED.items():
                values = recording.walks(attach(benchmark), go)[column]
                estimate = amount(values)
                point = Point(
                    panel,
                    f"Go {go}, {called}",
                    estimate,
                    raw=values,
                    label=f"{rounding.plain(estimate.value)} {unit}",
                    colour=GREEN if called == "AddCleanup" else ORANGE,
                    data={"variant": called, "go": go, "unit": unit},
                )
                points += [point] if estimate.samples else []
    slopes = [p.estimate.value for p in points if p.data["unit"] == "ns a record"]
    varies = bool(slopes) and max(slopes) > 1.5 * min(slopes)
    where = "depending on the release" if varies else "on every release"
    if len(recording.releases) == 1:
        where = f"on Go {recording.releases[0]}"
    return dots(
        points,
        f"A record in the list costs {rounding.extent(slopes)} ns, {where}",
        "",
        kind="Dot plots of slope and intercept",
        each={panel: unit for panel, (_, unit) in _FITTED.items()},
    )


# --- Why AddCleanup looks cheaper -------------------------------------------------------

_ALONE, _DUMMY = looped("LoopFinalizer"), looped("LoopFinalizer", dummies=1)
_LOOPED_CLEANUP = looped("LoopCleanup")
_CAUSES = {
    "finalizer": _ALONE,
    "finalizer and 1 dummy": _DUMMY,
    **{f"finalizer and {d} dummies": looped("LoopFinalizer", dummies=d) for d in (2, 3)},
    "cleanup": _LOOPED_CLEANUP,
    f"finalizer, {OWN_SPAN} bytes": looped("LoopFinalizer", OWN_SPAN),
    f"cleanup, {OWN_SPAN} bytes": looped("LoopCleanup", OWN_SPAN),
}


@chart("why-cleanup", "The causal test was not measured")
def causes(recording: Recording) -> Drawing | None:
    """A finalizer with adjacent dummy objects, a cleanup, and larger handles."""
    points = []
    for go in (go for go in (ISSUE_GO, TODAY_GO) if go in recording.releases):
        for what, variant in _CAUSES.items():
            stride = recording.amount(variant, go, "stride-bytes").value
            points += levels(
                recording,
                release(recording, go),
                what,
                go,
                variant,
                CPU,
                after=f", {rounding.count(stride)} bytes apart",
                data={"unit": "ns", "stride": stride},
                colour=GREEN if variant.benchmark == "LoopCleanup" else ORANGE,
            )
    today = [recording.level(a, TODAY_GO, CPU) for a in (_ALONE, _DUMMY, _LOOPED_CLEANUP)]
    alone, dummy, cleanup = (rounding.nanoseconds(e.value) for e in today)
    return dots(
        points,
        f"On Go {TODAY_GO} a finalizer takes {alone}, and {dummy} with one dummy object next to "
        f"each handle; a cleanup takes {cleanup}"
        if all(e.samples for e in today)
        else "A finalizer with dummy objects, compared with a cleanup",
        "CPU time per operation (ns); right: also the distance between handles",
        kind="A dot plot of CPU time and stride",
    )


# --- Many live handles --------------------------------------------------------------------

LIVE_AXES = (
    Axis(f"live handles of 8 bytes (both scales are logarithmic; Go {TODAY_GO})", "log"),
    Axis("CPU time of one call (ns)", "log"),
)
LIVE_KIND = "Curves over the number of live handles"


def among_live(
    recording: Recording, name: str, what: str, colour: str, runtime: str = ""
) -> list[Point]:
    """Points for a call on a random live handle, by the number of live handles."""
    variants = [(live, scattered(f"Scattered{what}", live, runtime)) for live in LIVE]
    data = {"unit": "ns", "live": None}
    return levels(recording, "", name, TODAY_GO, variants, CPU, data=data, colour=colour)


@chart("why-live", "Calls on random live handles were not measured")
def live(recording: Recording) -> Drawing | None:
    """A call on a random one of many live handles, compared with the microbenchmark's."""
    cleanups = among_live(recording, "AddCleanup", "Cleanup", GREEN)
    if not cleanups:
        return None
    points = among_live(recording, "SetFinalizer", "Finalizer", ORANGE) + cleanups
    points += among_live(recording, "Stop", "Stop", BLUE)
    last = cleanups[-1]
    title = f"With {rounding.count(last.x)} live handles a random AddCleanup takes {last.label}"
    micro, name, data = attach("AttachCleanup"), "the microbenchmark's call", {"unit": "ns"}
    for p in levels(recording, "", name, TODAY_GO, micro, CPU, data=data, colour=MUTED):
        points.append(replace(p, line=f"microbenchmark's\nAddCleanup: {p.label}"))
        title += f", {rounding.times(last.estimate.value / p.estimate.value)} {name}"
    return curves(points, title, *LIVE_AXES, kind=LIVE_KIND)


# --- Programs that also do other work ---------------------------------------------------------


@chart("why-programs", "The lists of programs were not counted")
def programs(recording: Recording) -> Drawing | None:
    """The length of the walk in programs, and the time that a cleanup adds."""
    points = []
    told = {}
    for handles, others in product(IN_USE, OTHERS):
        lists, plain, cleanup = (program(w, handles, others) for w in ("Lists", "Plain", "Cleanup"))
        added = recording.added(Ratio(cleanup, plain, CPU), TODAY_GO)
        passed, held = (
            recording.amount(lists, TODAY_GO, f"{which}-records/op").value
            for which in ("passed", "held")
        )
        told[handles, others] = rounding.plain(passed), rounding.interval(added, "ns")
        panel = f"{rounding.count(handles)} handles in use, replaced at random"
        panel = panel if handles else "handles dropped at once"
        name = f"with {others} other{'' if others == 1 else 's'}" if others else "handles alone"
        data = {"variant": f"{panel}, {name}", "unit": "records", "held": held}
        data |= {"added": added.value, "added_low": added.low, "added_high": added.high}
        points += levels(
            recording,
            panel,
            name,
            TODAY_GO,
            lists,
            "passed-records/op",
            rounding.plain,
            find=counted,
            after=f" of {rounding.plain(held)}; adds {rounding.interval(added, 'ns')}",
            data=data,
            colour=ORANGE,
        )
    alone, mixed = told[0, 0], told[POOL, MIXED]
    return dots(
        points,
        f"In a loop of handles a walk passes {alone[0]} records and a cleanup adds {alone[1]}; "
        f"with {rounding.count(POOL)} in use and {MIXED} other objects for each it passes "
        f"{mixed[0]} and adds {mixed[1]}",
        "records that AddCleanup passes, of those in the list;\n"
        f"and the CPU time that it adds to an operation (handles of 16 bytes, Go {TODAY_GO})",
        kind="A dot plot of the records passed",
    )


# === Estimates =======================================================================


def straightness(recording: Recording) -> tuple[Estimate, Estimate, Estimate]:
    """How straight the curves of the smallest objects are.

    The slope in shuffled order over that in ascending order, and the r² in ascending and in
    shuffled order.
    """
    shuffled, ascending = (attach("AttachFinalizer", order) for order in ("shuffled", "ascending"))
    quantities = SlopeRatio(shuffled, ascending), Linearity(ascending), Linearity(shuffled)
    ratio, *lines = (recording.estimate(quantity, TODAY_GO) for quantity in quantities)
    return ratio, lines[0], lines[1]


def walks_by_mix(recording: Recording) -> dict[int, Estimate]:
    """The quantity of M8b, by the number of other objects for each handle."""
    loop = program("Lists")
    found = {
        others: recording.estimate(
            Ratio(program("Lists", POOL, others), loop, "passed-records/op"), TODAY_GO
        )
        for others in OTHERS
    }
    return {others: e for others, e in found.items() if e.samples}


# === The study =======================================================================

STUDY = Study(
    name="why",
    chapter="07-why",
    question="What determines the cost, and in which programs does it matter?",
    cases=tuple(_why()),
    document=TODAY_GO,
    claims=tuple(_claims()),
    charts=(span, sizes, releases, causes, live, programs),
)
