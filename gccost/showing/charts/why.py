"""The charts of chapter 07: why, and a runtime without the walk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, product

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MultipleLocator

from gccost import rounding
from gccost.judging import published
from gccost.judging.claims import stacks
from gccost.judging.curves import WORD, calls, published_sizes
from gccost.judging.models import line
from gccost.judging.recording import Recording
from gccost.measuring.experiments import why as study
from gccost.measuring.experiments.base import AUTO, CLEANUP, FREE, Arm, Ratio, profiled
from gccost.measuring.experiments.runtime import INDEX, PLUS, RUNTIMES, patched
from gccost.measuring.experiments.siebenmann import SIZES, sized
from gccost.measuring.experiments.why import attach, looped, program, scattered
from gccost.measuring.toolchains import ISSUE_GO, TODAY_GO
from gccost.showing import plots
from gccost.showing.charts.common import Part, Timing, counted, levels, release, shares, timings
from gccost.showing.figures import BLUE, GREEN, INK, MUTED, ORANGE
from gccost.showing.plots import PERCENT, Axis, Drawing, Mark, Point, by_line, chart, curves, dots
from gccost.stats import amount

_CPU = "cpu-ns/op"
_ORDERS = {"ascending": ORANGE, "shuffled": GREEN, "descending": BLUE}
_COLOURS = {"": ORANGE, INDEX: BLUE, PLUS: GREEN}  # of the runtimes
_NAMES = {"": "stock", INDEX: "without the walk", PLUS: "and further"}
_CALLED = {"SetFinalizer": "AttachFinalizer", "AddCleanup": "AttachCleanup"}


# --- One call, by the length of its list ---------------------------------------------


def _calls(recording: Recording, panel: str, line: str, arm: Arm, colour: str) -> list[Point]:
    """What a call takes (ns) by how many records its list holds."""
    return [
        Point(
            panel,
            line,
            estimate,
            records,
            values,
            rounding.nanoseconds(estimate.value),
            colour,
            data={"arm": line, "go": TODAY_GO, "unit": "ns", "records": records},
        )
        for records, values in calls(recording, arm, TODAY_GO).items()
        if (estimate := amount(values)).samples
    ]


def _slope(recording: Recording, arm: Arm) -> str:
    slope = round(recording.slope(arm, TODAY_GO).value, 2)  # finer is the noise of a level line
    digits = 1 if abs(slope) < 0.1 else 2 if abs(slope) < 1 else 3
    return f"{rounding.plain(slope, digits)} ns a record"


@chart("why-span", "What a call costs by its place was not measured")
def span(recording: Recording) -> Drawing | None:
    """A span, the walk over it, and what a call costs by the place of its object."""
    ascending, *others = (
        _calls(recording, "", order, attach("AttachFinalizer", order), ink)
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
    slopes = {order: _slope(recording, attach("AttachFinalizer", order)) for order in _ORDERS}
    ends = [(p.estimate.value, f"{p.line}\n{slopes[p.line]}", p.colour) for p in _last(points)]
    plots.name_ends(axes, ends, gap=0.13)
    plots.below(
        figure, f"records that the span's list holds at the call (SetFinalizer, Go {TODAY_GO})"
    )
    title = (
        f"The last of {rounding.count(slots)} objects in a span costs "
        f"{rounding.times(last.estimate.value / first.estimate.value)} what the first does: "
        f"{rounding.plain(recording.slope(attach('AttachFinalizer'), TODAY_GO).value)} ns "
        "for each record on the way"
    )
    plots.headline(figure, title)
    told = plots.told(points, "A span's slots, and curves of what a call costs")
    return Drawing(figure, title, told, plots.table(points))


def _last(points: Iterable[Point]) -> list[Point]:
    """The last point of each line."""
    return [found[-1] for found in by_line(points).values()]


def _slots(axes: Axes, points: Sequence[Point], slots: int) -> None:
    """The slots of a span in its parts, inked by what a call costs there, and three walks."""
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


@chart("why-sizes", "What a call costs at each size was not measured")
def sizes(recording: Recording) -> Drawing | None:
    """A call over a whole span, by how many objects the span has, in each order."""
    points: list[Point] = []
    titled = []
    for called, benchmark in _CALLED.items():
        for order, ink in _ORDERS.items():
            arms = [attach(benchmark, order, size) for size in reversed(study.BYTES)]
            over = [(recording.amount(arm, TODAY_GO, "records").value, arm) for arm in arms]
            data = {"arm": f"{called}, {order}", "unit": "ns", "records": None}
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
        "Over objects of 8 to 512 bytes, in ascending order: " + "; ".join(titled),
        Axis(
            f"records in the list on average: half the objects of a span (Go {TODAY_GO})",
            limits=(0, None),
        ),
        Axis("a call, on average over a span (ns)", limits=(0, None)),
        kind="Curves of what a call costs, over sizes",
        columns=2,
    )


_FITTED = {  # the straight line over the length of the list
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
                    data={"arm": called, "go": go, "unit": unit},
                )
                points += [point] if estimate.samples else []
    slopes = [p.estimate.value for p in points if p.data["unit"] == "ns a record"]
    least, most = min(slopes, default=math.nan), max(slopes, default=math.nan)
    where = "depending on the release" if most > 1.5 * least else "whatever the release"
    if len(recording.releases) == 1:
        where = f"on Go {recording.releases[0]}"
    return dots(
        points,
        f"A record in the list costs {rounding.plain(least)} to {rounding.plain(most)} ns, {where}",
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
    f"finalizer, {study.APART} bytes": looped("LoopFinalizer", study.APART),
    f"cleanup, {study.APART} bytes": looped("LoopCleanup", study.APART),
}


@chart("why-cleanup", "The causal test was not measured")
def causes(recording: Recording) -> Drawing | None:
    """A finalizer with dummies next to it, against a cleanup, and larger handles."""
    points = []
    for go in (go for go in (ISSUE_GO, TODAY_GO) if go in recording.releases):
        for what, arm in _CAUSES.items():
            stride = recording.amount(arm, go, "stride-bytes").value
            points += levels(
                recording,
                release(recording, go),
                what,
                go,
                [(math.nan, arm)],
                _CPU,
                after=f", {rounding.count(stride)} bytes apart",
                data={"unit": "ns", "stride": stride},
                colour=GREEN if arm.benchmark == "LoopCleanup" else ORANGE,
            )
    today = [recording.level(a, TODAY_GO, _CPU) for a in (_ALONE, _DUMMY, _LOOPED_CLEANUP)]
    alone, dummy, cleanup = (rounding.nanoseconds(e.value) for e in today)
    return dots(
        points,
        f"A finalizer takes {alone}, with one dummy object next to it {dummy}; "
        f"a cleanup takes {cleanup}"
        if all(e.samples for e in today)
        else "A finalizer with dummies next to it, against a cleanup",
        "CPU time of an operation (ns); right: also the distance of one handle to the next",
        kind="A dot plot of CPU time and stride",
    )


# --- Many that live -----------------------------------------------------------------------

_LIVE = (
    Axis(f"handles of 8 bytes that live (both scales are logarithmic; Go {TODAY_GO})", "log"),
    Axis("CPU time of one call (ns)", "log"),
)
_LIVE_KIND = "Curves over the number of live handles"


def _among_live(
    recording: Recording, name: str, what: str, colour: str, runtime: str = ""
) -> list[Point]:
    """One call at random, over how many handles live."""
    arms = [(live, scattered(f"Scattered{what}", live, runtime)) for live in study.LIVE]
    data = {"unit": "ns", "live": None}
    return levels(recording, "", name, TODAY_GO, arms, _CPU, data=data, colour=colour)


@chart("why-live", "Calls at random over live handles were not measured")
def live(recording: Recording) -> Drawing | None:
    """One call at random over many live handles, against the microbenchmark's."""
    cleanups = _among_live(recording, "AddCleanup", "Cleanup", GREEN)
    if not cleanups:
        return None
    points = _among_live(recording, "SetFinalizer", "Finalizer", ORANGE) + cleanups
    points += _among_live(recording, "Stop", "Stop", BLUE)
    last = cleanups[-1]
    title = f"AddCleanup at random among {rounding.count(last.x)} live handles takes {last.label}"
    micro, name = [(math.nan, attach("AttachCleanup"))], "the microbenchmark's call"
    data = {"unit": "ns"}
    for p in levels(recording, "", name, TODAY_GO, micro, _CPU, data=data, colour=MUTED):
        points.append(replace(p, line=f"microbenchmark's\nAddCleanup: {p.label}"))
        title += f", {rounding.times(last.estimate.value / p.estimate.value)} {name}"
    return curves(points, title, *_LIVE, kind=_LIVE_KIND)


# --- Programs that do something else as well --------------------------------------------------


def _added(recording: Recording, handles: int, others: int) -> float:
    """The CPU time (ns) that a cleanup adds to a program's operation."""
    with_, without = (program(what, handles, others) for what in ("Cleanup", "Plain"))
    return recording.added(Ratio(with_, without, _CPU), TODAY_GO).value


@chart("why-programs", "The lists of programs were not counted")
def programs(recording: Recording) -> Drawing | None:
    """How far the walk is in programs, and what a cleanup adds there."""
    points = []
    told = {}
    for handles, others in product(study.IN_USE, study.OTHERS):
        lists, added = program("Lists", handles, others), _added(recording, handles, others)
        passed, held = (
            recording.amount(lists, TODAY_GO, f"{which}-records/op").value
            for which in ("passed", "held")
        )
        told[handles, others] = rounding.plain(passed), rounding.nanoseconds(added)
        panel = f"{rounding.count(handles)} handles in use, replaced at random"
        panel = panel if handles else "handles dropped at once"
        name = f"with {others} other{'' if others == 1 else 's'}" if others else "handles alone"
        data = {"arm": f"{panel}, {name}", "unit": "records", "held": held, "added": added}
        points += levels(
            recording,
            panel,
            name,
            TODAY_GO,
            [(math.nan, lists)],
            "passed-records/op",
            rounding.plain,
            find=counted,
            after=f" of {rounding.plain(held)}; adds {rounding.nanoseconds(added)}",
            data=data,
            colour=ORANGE,
        )
    alone, mixed = told[0, 0], told[study.POOL, study.MIXED]
    return dots(
        points,
        f"In a loop of handles a walk passes {alone[0]} records and a cleanup adds {alone[1]}; "
        f"with {rounding.count(study.POOL)} in use and {study.MIXED} others for each it passes "
        f"{mixed[0]} and adds {mixed[1]}",
        "records that AddCleanup passes on its way, of those in the list;\n"
        f"and the CPU time that it adds to an operation (handles of 16 bytes, Go {TODAY_GO})",
        kind="A dot plot of the records passed",
    )


# --- The runtime without the walk ----------------------------------------------------------------

_WALKS = {
    "AddCleanup, ascending": ("AttachCleanup", "ascending"),
    "AddCleanup, shuffled": ("AttachCleanup", "shuffled"),
    "AddCleanup, descending": ("AttachCleanup", "descending"),
    "Stop, shuffled": ("Stop", "shuffled"),
}


@chart("runtime-slopes", "The two runtimes were not measured")
def slopes(recording: Recording) -> Drawing | None:
    """One call by its list's length, on both runtimes."""
    points = []
    shares_left = []
    for panel, (benchmark, order) in _WALKS.items():
        both = {runtime: attach(benchmark, order, runtime=runtime) for runtime in RUNTIMES}
        for runtime, arm in both.items():
            name, told = _NAMES[runtime], _slope(recording, arm)
            points += [
                replace(p, line=f"{name}: {told}", data={**p.data, "arm": f"{panel}, {name}"})
                for p in _calls(recording, panel, name, arm, _COLOURS[runtime])
            ]
        stock, index = (recording.slope(arm, TODAY_GO).value for arm in both.values())
        if order != "descending" and math.isfinite(index) and stock > 0:
            shares_left.append(index / stock)
    return curves(
        points,
        "Without the walk a record in the list costs a call at most "
        f"{rounding.percent(max(*shares_left, 0))} of what it costs on stock"
        if shares_left
        else "A record in the list costs a call on both runtimes",
        Axis(
            f"records that the span's list holds at the call (8-byte objects, Go {TODAY_GO})",
            limits=(0, None),
        ),
        Axis("one call (ns)", limits=(0, None)),
        kind="Curves of what a call costs on both runtimes",
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
            patched(arm, runtime),
            against=None if arm == FREE else FREE,
            colour=BLUE if arm == FREE else _COLOURS[runtime],
            published=[] if runtime else [Mark(issue[arm.benchmark])],
            data={"arm": what + called, "unit": "ns"} | ({"ratio": 1.0} if arm == FREE else {}),
        )
        for what, arm in _PROGRAMS.items()
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
        "wall time of an operation (ns); in brackets: over the manual free\n"
        "hollow diamonds: as the Go issue printed them, on another machine and release",
        kind="A dot plot of the wall time",
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
            f"the object's size in bytes (both scales are logarithmic; Go {TODAY_GO})\n"
            "hollow diamonds: as published, on another machine and release",
            "log2",
        ),
        Axis("wall time of an operation (ns)", "log"),
        kind="Curves over the object's size",
        published=[(size, ns, "D") for size, ns in published_sizes()["Finalize"].items()],
    )


@chart("runtime-live", "Live handles were not measured on both runtimes")
def live_both(recording: Recording) -> Drawing | None:
    """Calls at random over many live handles, on both runtimes."""
    stock, index, *others = (
        _among_live(recording, f"{called}, {_NAMES[runtime]}", what, _COLOURS[runtime], runtime)
        for called, what in (("AddCleanup", "Cleanup"), ("Stop", "Stop"))
        for runtime in RUNTIMES
    )
    if not stock or not index:
        return None
    return curves(
        [*stock, *index, *chain(*others)],
        f"Among {rounding.count(stock[-1].x)} live handles a call takes {stock[-1].label} on "
        f"stock and {index[-1].label} without the walk",
        *_LIVE,
        kind=_LIVE_KIND,
    )


_LEFT = {  # what is drawn of the profiles: the functions that the stacks hold
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
    """What is left of the cost, by profile."""
    arm, panel = profiled("AllocateCleanup"), release(recording, TODAY_GO)
    points = []
    for (what, functions), (runtime, name) in product(_LEFT.items(), _NAMES.items()):
        part = {what: Part(functions, colour=_COLOURS[runtime])}
        found = shares(recording, patched(arm, runtime), TODAY_GO, part, panel, runtime=name)
        points += [replace(p, label=f"{p.label} ({name})") for p in found]
    index = [p for p in points if p.data["runtime"] == _NAMES[INDEX] and "of it" not in p.line]
    most = sorted(index, key=lambda p: -p.estimate.value)[:3]
    return dots(
        points,
        "Without the walk the CPU time goes to "
        + ", ".join(f"{p.line} ({rounding.plain(p.estimate.value)} %)" for p in most),
        "share of the CPU profile whose stacks hold it (%); shares overlap",
        kind="A dot plot of shares of the CPU profile",
        limits=PERCENT,
    )


_KIB = 1024


@chart("runtime-memory", "The memory was not measured")
def memory(recording: Recording) -> Drawing | None:
    """What the runtime takes for a span's records, on both runtimes."""
    points = []
    for size, runtime in product(study.BYTES, RUNTIMES):
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
            data={"arm": f"{size} bytes", "unit": "bytes", "runtime": _NAMES[runtime]},
            colour=_COLOURS[runtime],
        )

    def in_kib(axes: Axes, _: str) -> None:
        axes.xaxis.set_major_locator(MultipleLocator(10 * _KIB))
        axes.xaxis.set_major_formatter(lambda x, _: f"{x / _KIB:g}")

    return dots(
        points,
        _memory_title(points),
        "memory outside the heap that the runtime takes for each span whose objects\n"
        "all have a cleanup (KiB)",
        kind="A dot plot of memory for each span",
        decorate=in_kib,
    )


def _memory_title(points: Iterable[Point]) -> str:
    both = {
        name: [p.estimate.value for p in pair]
        for name, pair in by_line(points).items()
        # A program that ends soon takes no memory that was not there before.
        if len(pair) == 2 and pair[0].estimate.value
    }
    smallest = both.get(f"objects of {study.SMALL} bytes")
    if smallest is None:
        return "What the records of a span take was too little to be seen"
    more = [100 * (index / stock - 1) for stock, index in both.values()]
    ends = list(dict.fromkeys(rounding.plain(pick(more)) for pick in (min, max)))
    return (
        f"The records of a span of {study.SMALL}-byte objects take "
        f"{rounding.plain(smallest[0] / _KIB)} KiB; the index adds {' to '.join(ends)} %"
        + (", depending on the size" if len(ends) > 1 else "")
    )
