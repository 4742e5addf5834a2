"""The charts of chapter 07: why, and a runtime without the walk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from gccost import rounding
from gccost.judging import published
from gccost.judging.claims.quantities import Share
from gccost.judging.claims.stacks import (
    ALLOCATING,
    CALLING_C,
    COLLECTING,
    LOCKING,
    SPLICE_POINT,
)
from gccost.judging.models import line, walked
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import AUTO, CLEANUP, FREE, Arm, Ratio, profiled
from gccost.measuring.experiments.runtime import INDEX, PLUS, patched
from gccost.measuring.experiments.siebenmann import SIZES, sized
from gccost.measuring.experiments.why import (
    APART,
    BYTES,
    IN_USE,
    LIVE,
    MIXED,
    ORDERS,
    OTHERS,
    POOL,
    SMALL,
    attach,
    looped,
    program,
    scattered,
)
from gccost.measuring.toolchains import ISSUE_GO, TODAY_GO
from gccost.showing.charts.old import (
    Curve,
    Dots,
    Mark,
    below,
    canvas,
    diamonds,
    dot_plot,
    draw,
    headline,
    in_percent,
    name_ends,
    nothing,
    plain_ticks,
    release,
    row,
    scaled,
    ticks_between,
)
from gccost.showing.figures import BLUE, GREEN, INK, MUTED, ORANGE, Chart, finish, style
from gccost.stats import Estimate, amount

CALL = "call-ns"
CPU = "cpu-ns/op"
COLOURS = {"ascending": ORANGE, "shuffled": GREEN, "descending": BLUE}
RUNTIME_COLOURS = {"": ORANGE, INDEX: BLUE, PLUS: GREEN}
RUNTIME_NAMES = {"": "stock", INDEX: "without the walk", PLUS: "and further"}


@dataclass
class _Made:
    """What a chart's data and alt text are gathered in."""

    data: list[dict[str, object]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def add(self, name: str, go: str, estimate: Estimate, unit: str, **more: object) -> None:
        self.data.append(row(name, go, estimate, unit=unit, **more))

    def say(self, what: str) -> None:
        self.said.append(what)


def _finished(figure: Figure, name: str, title: str, kind: str, made: _Made) -> Chart:
    plt.close(figure)
    alt = f"{kind}: " + "; ".join(made.said) + "."
    return finish(figure, name=name, title=title, alt=alt, data=pd.DataFrame(made.data))


# --- One call, by its place ----------------------------------------------------------


def _by_place(recording: Recording, arm: Arm, go: str) -> tuple[list[float], list[list[float]]]:
    """What a call took in each sample, in ns, by how many records its list held."""
    samples = [walked(sample) for _, sample in recording.samples(arm, go).iterrows()]
    places = sorted({at for records, _ in samples for at in records})
    by = [dict(zip(records, ns, strict=True)) for records, ns in samples]
    return places, [[each[at] for each in by if at in each] for at in places]


def _curve(recording: Recording, arm: Arm, go: str, name: str, colour: str) -> Curve:
    places, values = _by_place(recording, arm, go)
    estimates = [amount(each) for each in values]
    return Curve(name, places, estimates, values, colour)


def _slope(recording: Recording, arm: Arm, go: str) -> str:
    slope = round(recording.slope(arm, go).value, 2)  # finer is the noise of a level line
    digits = 1 if abs(slope) < 0.1 else 2 if abs(slope) < 1 else 3
    return f"{rounding.plain(slope, digits)} ns a record"


def span(recording: Recording) -> Chart:
    """A span, the walk over it, and what a call costs by the place of its object."""
    go, name = TODAY_GO, "why-span"
    drawn = [
        (order, _curve(recording, attach("AttachFinalizer", order), go, order, COLOURS[order]))
        for order in ORDERS
        if len(recording.walks(attach("AttachFinalizer", order), go))
    ]
    if not drawn or drawn[0][0] != "ascending":
        return nothing(name, "What a call costs by its place was not measured")
    made = _Made()
    ascending = drawn[0][1]
    slots = round(ascending.xs[-1] + ascending.xs[0]) + 1
    means = [e.value for e in ascending.estimates]
    slope = recording.slope(attach("AttachFinalizer"), go)
    title = (
        f"The last of {rounding.count(slots)} objects in a span costs "
        f"{rounding.times(means[-1] / means[0])} what the first does: "
        f"{rounding.plain(slope.value)} ns for each record on the way"
    )
    with style():
        figure, (top, axes) = plt.subplots(
            2, 1, figsize=(6.8, 5.4), height_ratios=[1.35, 3], sharex=True, layout="constrained"
        )
        _slots(top, ascending, slots)
        for order, curve in drawn:
            draw(axes, curve)
            arm = attach("AttachFinalizer", order)
            said = f"{order}, {_slope(recording, arm, go)}"
            made.say(f"{said}, from {rounding.nanoseconds(curve.estimates[0].value)}")
            for at, estimate in zip(curve.xs, curve.estimates, strict=True):
                made.add(order, go, estimate, "ns", records=at)
        axes.set_xlim(0, slots)
        axes.set_ylim(0)
        name_ends(
            axes,
            [
                (
                    c.estimates[-1].value,
                    f"{o}\n{_slope(recording, attach('AttachFinalizer', o), go)}",
                    c.colour,
                )
                for o, c in drawn
            ],
            gap=0.13,
        )
        axes.set_ylabel("one call (ns)")
        below(figure, f"records that the span's list holds at the call (SetFinalizer, Go {go})")
        headline(figure, title)
    return _finished(figure, name, title, "A span's slots, and curves of what a call costs", made)


def _slots(axes: Axes, curve: Curve, slots: int) -> None:
    """The slots of a span in its parts, inked by what a call costs there, and three walks."""
    axes.set_axis_off()
    axes.set_ylim(0, 4.2)
    most = max(e.value for e in curve.estimates)
    width = slots / len(curve.xs)
    for i, e in enumerate(curve.estimates):
        shade = 0.08 + 0.72 * e.value / most
        box = Rectangle(
            (i * width, 0.1), width * 0.94, 0.75, color=ORANGE, alpha=shade, linewidth=0
        )
        axes.add_patch(box)
    axes.annotate("the span's slots, by address", (0, 3.75), fontsize=9, color=MUTED, va="center")
    for level_, i in enumerate((len(curve.xs) // 5, len(curve.xs) // 2, len(curve.xs) - 1)):
        y, x = 1.25 + 0.8 * level_, curve.xs[i]
        axes.annotate(
            "",
            (x, y),
            (0, y),
            arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 1.1},
        )
        axes.plot([x, x], [0.9, y], color=INK, linewidth=0.8)
        passed = f"passes {rounding.count(x)}: {rounding.nanoseconds(curve.estimates[i].value)}"
        axes.annotate(
            passed,
            (x / 2, y + 0.08),
            ha="center" if level_ else "left",
            va="bottom",
            fontsize=8.5,
            color=INK,
        )


def sizes(recording: Recording) -> Chart:
    """A call over a whole span, by how many objects the span has, in each order."""
    go, name = TODAY_GO, "why-sizes"
    panels = {"SetFinalizer": "AttachFinalizer", "AddCleanup": "AttachCleanup"}
    made = _Made()
    slopes: dict[str, str] = {}
    with style():
        figure, all_axes = plt.subplots(1, 2, figsize=(6.8, 3.6), sharey=True, layout="constrained")
        for axes, (heading, benchmark) in zip(all_axes, panels.items(), strict=True):
            for order in ORDERS:
                curve = _over_sizes(recording, benchmark, order, go)
                if len(curve.xs) < 2:
                    continue
                draw(axes, curve)
                fit = line(curve.xs, [e.value for e in curve.estimates])
                said = f"{rounding.plain(fit.slope)} ns a record, r² {rounding.plain(fit.r2)}"
                if order == "ascending":
                    slopes[heading] = said
                made.say(f"{heading}, {order}: {said}")
                for at, estimate in zip(curve.xs, curve.estimates, strict=True):
                    made.add(f"{heading}, {order}", go, estimate, "ns", records=at)
                where = curve.estimates[-1].value
                axes.annotate(
                    f"{order}",
                    (curve.xs[-1], where),
                    xytext=(-4, 7),
                    textcoords="offset points",
                    ha="right",
                    va="bottom",
                    color=curve.colour,
                    fontsize=9,
                )
            axes.set_title(heading)
            axes.set_xlim(0)
            axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
        all_axes[0].set_ylabel("a call, on average over a span (ns)")
        below(figure, f"records in the list on average: half the objects of a span (Go {go})")
        told = "; ".join(f"{what} {said}" for what, said in slopes.items())
        title = f"Over objects of 8 to 512 bytes, in ascending order: {told}"
        if not slopes:
            plt.close(figure)
            return nothing(name, "What a call costs at each size was not measured")
        headline(figure, title)
    return _finished(figure, name, title, "Curves of what a call costs, over sizes", made)


def _over_sizes(recording: Recording, benchmark: str, order: str, go: str) -> Curve:
    xs, estimates, points = [], [], []
    for bytes_ in reversed(BYTES):
        arm = attach(benchmark, order, bytes_)
        values = recording.values(arm, go, CALL)
        if len(values):
            xs.append(float(recording.samples(arm, go)["records"].median()))
            estimates.append(recording.level(arm, go, CALL))
            points.append(list(values))
    return Curve(order, xs, estimates, points, COLOURS[order])


def releases(recording: Recording) -> Chart:
    """The slope and the intercept of each release."""
    name = "why-releases"
    panels: dict[tuple[str, str], list[Dots]] = {}
    made = _Made()
    kinds = (("SetFinalizer", "AttachFinalizer", ORANGE), ("AddCleanup", "AttachCleanup", GREEN))
    found: list[float] = []
    for heading, column, unit in (
        ("for each record in the list", "slope", "ns a record"),
        ("for the call itself, with an empty list", "intercept", "ns"),
    ):
        for go in recording.releases:
            for kind, benchmark, ink in kinds:
                fits = recording.walks(attach(benchmark), go)
                if not len(fits):
                    continue
                estimate = amount(fits[column])
                label = f"{rounding.plain(estimate.value)} {unit}"
                panels.setdefault((heading, unit), []).append(
                    Dots(f"Go {go}, {kind}", list(fits[column]), estimate, label, ink)
                )
                made.add(kind, go, estimate, unit)
                made.say(f"Go {go}, {kind} {label}")
                if column == "slope":
                    found.append(estimate.value)
    if not panels:
        return nothing(name, "The slope was not measured on any release")
    least, most = rounding.plain(min(found)), rounding.plain(max(found))
    asked = "depending on" if max(found) > 1.5 * min(found) else "whatever"
    title = f"A record in the list costs {least} to {most} ns, {asked} the release"
    if len(recording.releases) == 1:
        title = f"A record in the list costs {least} to {most} ns on Go {recording.releases[0]}"
    with style():
        # Slopes and intercepts have scales of their own.
        figure, all_axes = canvas([len(lines) for lines in panels.values()])
        for axes, ((heading, unit), lines) in zip(all_axes, panels.items(), strict=True):
            _level_dots(axes, heading, lines)
            axes.set_xlabel(unit)
        headline(figure, title)
    return _finished(figure, name, title, "Dot plots of slope and intercept", made)


def _level_dots(axes: Axes, heading: str, lines: Sequence[Dots]) -> None:
    """A dot plot with a scale of its own."""
    most = max([e for d in lines for e in (*d.points, d.estimate.value) if math.isfinite(e)] + [0])
    for y, dots in enumerate(lines):
        points = [rounding.rounded(p) for p in dots.points]
        axes.scatter(points, [y] * len(points), s=14, color=dots.colour, alpha=0.35, linewidths=0)
        ends = [dots.estimate.low, dots.estimate.high]
        if all(math.isfinite(e) for e in ends):
            ends = [rounding.rounded(min(max(e, 0), 1.05 * most)) for e in ends]
            axes.plot(ends, [y, y], color=dots.colour, linewidth=2.2, solid_capstyle="round")
        axes.scatter(
            [rounding.rounded(dots.estimate.value)], [y], s=34, color=dots.colour, zorder=3
        )
        axes.annotate(
            dots.label,
            (1, y),
            xycoords=axes.get_yaxis_transform(),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=dots.colour,
            fontsize=9,
        )
    axes.set_yticks(range(len(lines)), [d.name for d in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlim(0, 1.08 * most or 1)
    axes.grid(axis="y", visible=False)
    axes.set_title(heading)


# --- Why AddCleanup looks cheaper -------------------------------------------------------


def causes(recording: Recording) -> Chart:
    """A finalizer with dummies beside it, against a cleanup, and larger handles."""
    name = "why-cleanup"
    panels: dict[str, list[Dots]] = {}
    made = _Made()
    titled = []
    for go in (go for go in (ISSUE_GO, TODAY_GO) if go in recording.releases):
        lines: list[tuple[str, Arm, str]] = [
            ("finalizer", looped("LoopFinalizer"), ORANGE),
            *(
                (
                    f"finalizer and {d} {'dummy' if d == 1 else 'dummies'}",
                    looped("LoopFinalizer", dummies=d),
                    ORANGE,
                )
                for d in (1, 2, 3)
            ),
            ("cleanup", looped("LoopCleanup"), GREEN),
            (f"finalizer, {APART} bytes", looped("LoopFinalizer", APART), ORANGE),
            (f"cleanup, {APART} bytes", looped("LoopCleanup", APART), GREEN),
        ]
        for what, arm, ink in lines:
            estimate = recording.level(arm, go, CPU)
            if not estimate.samples:
                continue
            stride = recording.amount(arm, go, "stride-bytes").value
            label = f"{rounding.nanoseconds(estimate.value)}, {rounding.count(stride)} bytes apart"
            values = list(recording.values(arm, go, CPU))
            panels.setdefault(release(recording, go), []).append(
                Dots(what, values, estimate, label, ink)
            )
            made.add(what, go, estimate, "ns", stride=stride)
            made.say(f"Go {go}, {what}: {label}")
        alone, dummy, cleanup = (
            recording.level(arm, go, CPU).value
            for arm in (
                looped("LoopFinalizer"),
                looped("LoopFinalizer", dummies=1),
                looped("LoopCleanup"),
            )
        )
        if go == TODAY_GO and math.isfinite(alone + dummy + cleanup):
            titled.append(
                f"A finalizer takes {rounding.nanoseconds(alone)}, with one dummy object next to "
                f"it {rounding.nanoseconds(dummy)}; a cleanup takes {rounding.nanoseconds(cleanup)}"
            )
    if not panels:
        return nothing(name, "The causal test was not measured")
    title = titled[0] if titled else "A finalizer with dummies next to it, against a cleanup"
    with style():
        figure, _ = dot_plot(
            panels,
            title,
            "CPU time of an operation (ns); right: also the distance of one handle to the next",
        )
    return _finished(figure, name, title, "A dot plot of CPU time and stride", made)


# --- Many that live -----------------------------------------------------------------------

_SCATTERED = {
    "ScatteredFinalizer": ("SetFinalizer", ORANGE),
    "ScatteredCleanup": ("AddCleanup", GREEN),
    "ScatteredStop": ("Stop", BLUE),
}


def live(recording: Recording) -> Chart:
    """One call at random over many live handles, against the microbenchmark's."""
    go, name = TODAY_GO, "why-live"
    curves = [
        curve
        for benchmark, (what, ink) in _SCATTERED.items()
        if len((curve := _over_lives(recording, benchmark, go, what, ink)).xs)
    ]
    micro = recording.level(attach("AttachCleanup"), go, CPU)
    made = _Made()
    for curve in curves:
        for x, e in zip(curve.xs, curve.estimates, strict=True):
            made.add(curve.name, go, e, "ns", live=x)
            made.say(f"{curve.name}, {rounding.count(x)} live: {rounding.nanoseconds(e.value)}")
    last = next((c for c in curves if c.name == "AddCleanup"), None)
    if last is None:
        return nothing(name, "Calls at random over live handles were not measured")
    title = (
        f"AddCleanup at random among {rounding.count(last.xs[-1])} live handles takes "
        f"{rounding.nanoseconds(last.estimates[-1].value)}"
    )
    if micro.samples:
        made.add("the microbenchmark's call", go, micro, "ns")
        made.say(f"the microbenchmark's AddCleanup: {rounding.nanoseconds(micro.value)}")
        ratio = last.estimates[-1].value / micro.value
        title += f", {rounding.times(ratio)} the microbenchmark's call"
    with style():
        figure, (axes,) = canvas([8])
        _log_curves(axes, curves, [micro.value] if micro.samples else [])
        if micro.samples:
            axes.axhline(
                rounding.rounded(micro.value), color=MUTED, linewidth=1, linestyle=(0, (4, 2))
            )
            axes.annotate(
                f"the microbenchmark's AddCleanup: {rounding.nanoseconds(micro.value)}",
                (0.02, micro.value),
                xycoords=axes.get_yaxis_transform(),
                xytext=(0, 4),
                textcoords="offset points",
                color=MUTED,
                fontsize=9,
            )
        name_ends(axes, [(c.estimates[-1].value, c.name, c.colour) for c in curves], gap=0.08)
        axes.set_ylabel("CPU time of one call (ns)")
        below(figure, f"handles of 8 bytes that live (both scales are logarithmic; Go {go})")
        headline(figure, title)
    return _finished(figure, name, title, "Curves over the number of live handles", made)


def _over_lives(
    recording: Recording, benchmark: str, go: str, what: str, ink: str, runtime: str = ""
) -> Curve:
    xs, estimates, points = [], [], []
    for handles in LIVE:
        arm = scattered(benchmark, handles, runtime)
        estimate = recording.level(arm, go, CPU)
        if estimate.samples:
            xs.append(float(handles))
            estimates.append(estimate)
            points.append(list(recording.values(arm, go, CPU)))
    return Curve(what, xs, estimates, points, ink)


def _log_curves(axes: Axes, curves: Sequence[Curve], more: Iterable[float] = ()) -> None:
    """Curves on two logarithmic scales."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for curve in curves:
        draw(axes, curve)
    values = [e.value for c in curves for e in c.estimates] + list(more)
    low, high = min(values) / 1.6, max(values) * 1.6
    axes.set_ylim(low, high)
    plain_ticks(axes, "y", ticks_between(low, high))
    plain_ticks(axes, "x", sorted({x for c in curves for x in c.xs}))


# --- Programs that do something else as well --------------------------------------------------


def programs(recording: Recording) -> Chart:
    """How far the walk is in programs, and what a cleanup adds there."""
    go, name = TODAY_GO, "why-programs"
    panels: dict[str, list[Dots]] = {}
    made = _Made()
    for handles in IN_USE:
        heading = (
            f"{rounding.count(handles)} handles in use, replaced at random"
            if handles
            else "handles dropped at once"
        )
        for others in OTHERS:
            lists = program("Lists", handles, others)
            passed = recording.amount(lists, go, "passed-records/op")
            if not passed.samples:
                continue
            held = recording.amount(lists, go, "held-records/op").value
            added = recording.added(
                Ratio(program("Cleanup", handles, others), program("Plain", handles, others), CPU),
                go,
            )
            label = f"of {rounding.plain(held)}; adds {rounding.nanoseconds(added.value)}"
            values = list(recording.values(lists, go, "passed-records/op"))
            what = f"with {others} other{'' if others == 1 else 's'}" if others else "handles alone"
            panels.setdefault(heading, []).append(Dots(what, values, passed, label, ORANGE))
            made.add(f"{heading}, {what}", go, passed, "records", held=held, added=added.value)
            made.say(f"{heading}, {what}: passes {rounding.plain(passed.value)} {label}")
    if not panels:
        return nothing(name, "The lists of programs were not counted")
    first, last = (
        (
            recording.amount(program("Lists", *mix), go, "passed-records/op").value,
            recording.added(Ratio(program("Cleanup", *mix), program("Plain", *mix), CPU), go).value,
        )
        for mix in ((0, 0), (POOL, MIXED))
    )
    title = (
        f"In a loop of handles a walk passes {rounding.plain(first[0])} records and a cleanup adds "
        f"{rounding.nanoseconds(first[1])}; with {rounding.count(POOL)} in use and {MIXED} others "
        f"for each it passes {rounding.plain(last[0])} and adds {rounding.nanoseconds(last[1])}"
    )
    with style():
        figure, _ = dot_plot(
            panels,
            title,
            "records that AddCleanup passes on its way, of those in the list;\n"
            f"and the CPU time that it adds to an operation (handles of 16 bytes, Go {go})",
        )
    return _finished(figure, name, title, "A dot plot of the records passed", made)


def _plain(value: object) -> str:
    return rounding.plain(float(str(value)))


# --- The runtime without the walk ----------------------------------------------------------------

_WALKS = (
    ("AddCleanup, ascending", "AttachCleanup", "ascending"),
    ("AddCleanup, shuffled", "AttachCleanup", "shuffled"),
    ("AddCleanup, descending", "AttachCleanup", "descending"),
    ("Stop, shuffled", "Stop", "shuffled"),
)


def slopes(recording: Recording) -> Chart:
    """One call by its list's length, on both runtimes."""
    go, name = TODAY_GO, "runtime-slopes"
    made = _Made()
    shares: list[float] = []
    with style():
        figure, grid = plt.subplots(
            2, 2, figsize=(6.8, 5.0), sharex=True, sharey=True, layout="constrained"
        )
        for axes, (heading, benchmark, order) in zip(grid.flat, _WALKS, strict=True):
            axes.set_title(heading)
            for runtime in ("", INDEX):
                arm = attach(benchmark, order, runtime=runtime)
                if not len(recording.walks(arm, go)):
                    continue
                curve = _curve(recording, arm, go, RUNTIME_NAMES[runtime], RUNTIME_COLOURS[runtime])
                draw(axes, curve)
                said = f"{curve.name}: {_slope(recording, arm, go)}"
                made.say(f"{heading}, {said}")
                for at, estimate in zip(curve.xs, curve.estimates, strict=True):
                    made.add(f"{heading}, {curve.name}", go, estimate, "ns", records=at)
                axes.annotate(
                    said,
                    (0.03, 0.95 if runtime else 0.85),
                    xycoords="axes fraction",
                    color=curve.colour,
                    fontsize=8.5,
                    va="top",
                )
            stock, index = (
                recording.slope(attach(benchmark, order, runtime=r), go).value for r in ("", INDEX)
            )
            if order != "descending" and math.isfinite(stock + index) and stock > 0:
                shares.append(index / stock)
        if not made.data:
            plt.close(figure)
            return nothing(name, "The two runtimes were not measured")
        for axes in grid[:, 0]:
            axes.set_ylabel("one call (ns)")
            axes.set_ylim(0)
            axes.set_xlim(0)
        below(figure, f"records that the span's list holds at the call (8-byte objects, Go {go})")
        title = "A record in the list costs a call on both runtimes"
        if shares:
            title = (
                "Without the walk a record in the list costs a call at most "
                f"{rounding.percent(max(*shares, 0))} of what it costs on stock"
            )
        headline(figure, title)
    return _finished(figure, name, title, "Curves of what a call costs on both runtimes", made)


def price(recording: Recording) -> Chart:
    """The documents' programs on both runtimes."""
    name = "runtime-cost"
    panels: dict[str, list[Dots]] = {}
    made = _Made()
    titled = []
    printed = published.table("addcleanup-timings").query("machine == 'MacBook Pro M1'")
    issue = dict(zip(printed["variant"], printed["ns_per_op"].astype(float), strict=True))
    for go in recording.releases:
        for what, arm in (
            ("manual free", FREE),
            ("AddCleanup frees", CLEANUP),
            ("finalizer frees", AUTO),
        ):
            for runtime in RUNTIME_NAMES:
                own = patched(arm, runtime)
                estimate = recording.level(own, go)
                if not estimate.samples:
                    continue
                label = rounding.nanoseconds(estimate.value)
                ratio = recording.ratio(Ratio(own, FREE), go)
                if own != FREE and ratio.samples:
                    label += f"  ({rounding.times(ratio.value)})"
                values = list(recording.values(own, go))
                called = what + {"": "", INDEX: ", no walk", PLUS: ", and further"}[runtime]
                ink = BLUE if own == FREE else RUNTIME_COLOURS[runtime]
                marks = [] if runtime else [Mark(issue[arm.benchmark])]
                panels.setdefault(release(recording, go), []).append(
                    Dots(called, values, estimate, label, ink, marks)
                )
                made.add(called, go, estimate, "ns", ratio=ratio.value)
                made.say(f"Go {go}, {called} {label}")
        before, after = (recording.ratio(Ratio(patched(CLEANUP, r), FREE), go) for r in ("", INDEX))
        if before.samples and after.samples:
            titled.append(
                f"{rounding.times(after.value)} a manual free instead of "
                f"{rounding.times(before.value)} on Go {go}"
            )
    if not panels:
        return nothing(name, "The documents' programs were not measured on both runtimes")
    title = "Without the walk AddCleanup costs " + "; ".join(titled)
    with style():
        figure, _ = dot_plot(
            panels,
            title,
            "wall time of an operation (ns); in brackets: over the manual free\n"
            "hollow diamonds: as the Go issue printed them, on another machine and release",
        )
    return _finished(figure, name, title, "A dot plot of the wall time", made)


def curve(recording: Recording) -> Chart:
    """The object-size curve on both runtimes."""
    go, name = TODAY_GO, "runtime-sizes"
    made = _Made()
    curves = []
    for what, runtime, ink in (
        ("stock", "", ORANGE),
        ("without the walk", INDEX, BLUE),
    ):
        xs, estimates, points = [], [], []
        for words in SIZES:
            arm = patched(sized("Finalize", words), runtime)
            estimate = recording.level(arm, go)
            if estimate.samples:
                xs.append(8.0 * words)
                estimates.append(estimate)
                points.append(list(recording.values(arm, go)))
                made.add(what, go, estimate, "ns", bytes=8 * words)
                made.say(f"{what}, {8 * words} bytes: {rounding.nanoseconds(estimate.value)}")
        if xs:
            curves.append(Curve(what, xs, estimates, points, ink))
    if len(curves) < 2:
        return nothing(name, "The object-size curve was not measured on both runtimes")
    stock, index = (c.estimates[0].value for c in curves)
    title = (
        f"A finalizer on an object of {rounding.count(curves[0].xs[0])} bytes: "
        f"{rounding.nanoseconds(stock)} on stock, {rounding.nanoseconds(index)} without the walk "
        f"({rounding.times(stock / index)})"
    )
    with style():
        figure, (axes,) = canvas([7])
        _log_curves(axes, curves)
        printed = published.table("siebenmann-sizes").query("variant == 'Finalize'")
        shown = [
            (8.0 * int(words), float(ns), "D")
            for words, ns in zip(printed["words"], printed["ns_per_op"], strict=True)
        ]
        diamonds(axes, shown)
        low, high = axes.get_ylim()
        values = [y for _, y, _ in shown]
        axes.set_ylim(min(low, min(values) / 1.2), max(high, max(values) * 1.2))
        name_ends(axes, [(c.estimates[-1].value, c.name, c.colour) for c in curves], gap=0.08)
        axes.set_ylabel("wall time of an operation (ns)")
        below(
            figure,
            f"the object's size in bytes (both scales are logarithmic; Go {go})\n"
            "hollow diamonds: as published, on another machine and release",
        )
        headline(figure, title)
    return _finished(figure, name, title, "Curves over the object's size", made)


def live_both(recording: Recording) -> Chart:
    """Calls at random over many live handles, on both runtimes."""
    go, name = TODAY_GO, "runtime-live"
    curves = [
        curve
        for benchmark, what in (("ScatteredCleanup", "AddCleanup"), ("ScatteredStop", "Stop"))
        for runtime in ("", INDEX)
        if len(
            (
                curve := _over_lives(
                    recording,
                    benchmark,
                    go,
                    f"{what}, {RUNTIME_NAMES[runtime]}",
                    RUNTIME_COLOURS[runtime],
                    runtime,
                )
            ).xs
        )
    ]
    if len(curves) < 2:
        return nothing(name, "Live handles were not measured on both runtimes")
    made = _Made()
    for each in curves:
        for x, e in zip(each.xs, each.estimates, strict=True):
            made.add(each.name, go, e, "ns", live=x)
            made.say(f"{each.name}, {rounding.count(x)} live: {rounding.nanoseconds(e.value)}")
    stock, index = curves[0], curves[1]
    title = (
        f"Among {rounding.count(stock.xs[-1])} live handles a call takes "
        f"{rounding.nanoseconds(stock.estimates[-1].value)} on stock and "
        f"{rounding.nanoseconds(index.estimates[-1].value)} without the walk"
    )
    with style():
        figure, (axes,) = canvas([8])
        _log_curves(axes, curves)
        name_ends(axes, [(c.estimates[-1].value, c.name, c.colour) for c in curves], gap=0.08)
        axes.set_ylabel("CPU time of one call (ns)")
        below(figure, f"handles of 8 bytes that live (both scales are logarithmic; Go {go})")
        headline(figure, title)
    return _finished(figure, name, title, "Curves over the number of live handles", made)


# What is drawn of the profiles: the functions, and what the stacks must hold too.
LEFT: dict[str, tuple[str, ...]] = {
    "AddCleanup": ("runtime.AddCleanup*",),
    "of it, finding the place": SPLICE_POINT,
    "of it, keeping the index": (
        "runtime.(*mspan).linkSpecial",
        "runtime.(*mspan).unlinkSpecial",
        "runtime.(*mspan).makeSpecialIndex",
    ),
    "allocating Go memory": ALLOCATING,
    "collecting": COLLECTING,
    "locks": LOCKING,
    "calling C": CALLING_C,
}


def left(recording: Recording) -> Chart:
    """What is left of the cost, by profile."""
    go, name = TODAY_GO, "runtime-left"
    arms = {runtime: patched(profiled("AllocateCleanup"), runtime) for runtime in RUNTIME_NAMES}
    made = _Made()
    lines: list[Dots] = []
    for what, functions in LEFT.items():
        first = True
        for runtime, arm in arms.items():
            if not recording.profiles(arm, go):
                continue
            share = Share(arm, functions)
            estimate = in_percent(recording.share(share, go))
            values = [100 * float(v) for v in recording.shares(share, go)]
            label = f"{rounding.plain(estimate.value)} %, {RUNTIME_NAMES[runtime]}"
            ink = RUNTIME_COLOURS[runtime]
            lines.append(Dots(what if first else "", values, estimate, label, ink))
            first = False
            made.add(what, go, estimate, "%", runtime=RUNTIME_NAMES[runtime])
            made.say(f"{what}, {label}")
    if not lines:
        return nothing(name, "The two runtimes were not profiled")
    rest = {str(d["arm"]): d for d in made.data if d["runtime"] == RUNTIME_NAMES[INDEX]}
    tops = sorted(rest, key=lambda k: -float(str(rest[k]["estimate"])))
    tops = [t for t in tops if not t.startswith("of it")][:3]
    title = "Without the walk the CPU time goes to " + ", ".join(
        f"{t} ({_plain(rest[t]['estimate'])} %)" for t in tops
    )
    with style():
        figure, _ = dot_plot(
            {release(recording, go): lines},
            title,
            "share of the CPU profile whose stacks hold it (%); shares overlap",
            most=100,
        )
    return _finished(figure, name, title, "A dot plot of shares of the CPU profile", made)


def memory(recording: Recording) -> Chart:
    """What the runtime takes for a span's records, on both runtimes."""
    go, name = TODAY_GO, "runtime-memory"
    made = _Made()
    lines: list[Dots] = []
    most, more = "", list[float]()
    for bytes_ in BYTES:
        first = True
        both = []
        for runtime in ("", INDEX):
            arm = attach("AttachCleanup", bytes_=bytes_, runtime=runtime)
            taken = recording.amount(arm, go, "off-heap-bytes/span")
            if not taken.samples:
                continue
            both.append(taken.value)
            estimate = scaled(taken, 1 / 1024)
            values = list(recording.values(arm, go, "off-heap-bytes/span") / 1024)
            label = f"{rounding.plain(estimate.value)} KiB, {RUNTIME_NAMES[runtime]}"
            what = f"objects of {bytes_} bytes" if first else ""
            lines.append(Dots(what, values, estimate, label, RUNTIME_COLOURS[runtime]))
            first = False
            made.add(f"{bytes_} bytes", go, taken, "bytes", runtime=RUNTIME_NAMES[runtime])
            made.say(f"objects of {bytes_} bytes: {label}")
        # A program that ends soon takes no memory that was not there before.
        if len(both) == 2 and both[0]:
            more.append(both[1] / both[0] - 1)
            if bytes_ == SMALL:
                most = f"{rounding.plain(both[0] / 1024)} KiB"
    if not lines:
        return nothing(name, "The memory was not measured")
    ends = [rounding.plain(100 * pick(more)) for pick in (min, max)] if more else []
    title = (
        f"The records of a span of {SMALL}-byte objects take {most}; the index adds "
        f"{' to '.join(dict.fromkeys(ends))} %"
        + (", depending on the size" if len(set(ends)) > 1 else "")
        if most
        else "What the records of a span take was too little to be seen"
    )
    with style():
        figure, _ = dot_plot(
            {release(recording, go): lines},
            title,
            "memory outside the heap that the runtime takes for each span whose objects\n"
            "all have a cleanup (KiB)",
        )
    return _finished(figure, name, title, "A dot plot of memory for each span", made)
