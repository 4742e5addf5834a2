"""What the charts are made of, and the charts that several chapters share."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gccost import rounding
from gccost.judging.claims.rules import Label
from gccost.judging.ledger import Row
from gccost.judging.recording import Recording
from gccost.measuring import toolchains
from gccost.measuring.experiments.base import Arm, Ratio
from gccost.measuring.toolchains import DOCUMENT_JDK
from gccost.showing.figures import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    WIDTH,
    Chart,
    finish,
    style,
)
from gccost.stats import Estimate

# How an arm is called beside its points.
NAMES = {
    "AllocateFree": "manual free",
    "AllocateDefer": "freed by defer",
    "AllocateHeapFree": "heap handle, manual free",
    "AllocateCleanup": "AddCleanup frees",
    "AllocateAuto": "finalizer frees",
    "AllocateDummy": "finalizer does nothing",
    "AllocateOnly": "allocated, never freed",
    "EmptyFinalizer": "empty finalizer, no C",
    "Allocate": "allocated only",
    "Finalize": "with a finalizer",
    "Cleanup": "with a cleanup",
    "UntilFreePlain": "plain object",
    "UntilFreeCleanup": "with a cleanup",
    "UntilFreeFinalizer": "with a finalizer",
    "ParallelFree": "manual free",
    "ParallelCleanup": "AddCleanup frees",
    "ParallelAuto": "finalizer frees",
    "AttachFinalizer": "SetFinalizer alone",
    "AttachCleanup": "AddCleanup alone",
    "ParallelSlab": "slabs of 64",
    "ParallelSlabCrowded": "slabs, all in C at once",
    "Batch": "manual free, batches of 256",
    "Reuse": "slabs, blocks used again",
    "Slab": "slabs",
    "SlabWeighted": "weighted slabs",
    "SlabClose": "closed, with a net: slabs",
    "SlabCloseAtOnce": "the same, freed at each Close: slabs",
    "Pinned": "pinned Go memory, no C",
    "Stop": "closed, with a net: Cleanup.Stop",
    "LastFirst": "AddCleanup, last handle first",
    "Padded": "AddCleanup, handle of 64 bytes",
    "Registry": "registry of weak pointers",
    "LiveManual": "manual free",
    "LiveSlab": "slab and Close",
    "LiveCleanup": "Close and Stop",
    "LiveFinalizer": "Close and SetFinalizer(nil)",
    "OneHeapCleanup": "AddCleanup frees, one C heap",
    "OneHeapFinalizer": "finalizer frees, one C heap",
    "HeapManual": "manual free",
    "HeapSlab": "slabs of 64",
    "HeapCleanup": "AddCleanup frees",
    "HeapFinalizer": "finalizer frees",
    "Nothing": "an idle JVM",
    "Plain": "plain",
    "Cleaner": "Cleaner",
    "LeakNaive": "allocate, then register",
    "LeakRegisterFirst": "register first",
    "LeakTryCatch": "free if it fails",
    "Removed": "plain, may be removed",
    "Escaping": "plain, must be allocated",
    "Cleaned": "with a Cleaner",
    "Finalized": "with a finalizer",
    "Sign": "signing, all CPUs",
    "SignInTurns": "signing, Ps in turns",
    "Serve": "a server's garbage",
    "ServeBallast": "with a ballast",
    "ServeTuner": "with a tuner",
}
VERDICT_COLOURS = {
    Label.HOLDS: BLUE,
    Label.FAILS: ORANGE,
    Label.UNDECIDED: MUTED,
}
# What needs no collecting is blue, what the GC frees orange; what is beside that green.
COLOURS = {
    "AllocateFree": BLUE,
    "AllocateDefer": BLUE,
    "AllocateHeapFree": BLUE,
    "AllocateOnly": BLUE,
    "Allocate": BLUE,
    "UntilFreePlain": BLUE,
    "ParallelFree": BLUE,
    "Cleanup": GREEN,
    "UntilFreeCleanup": GREEN,
    "ParallelCleanup": GREEN,
    "ParallelSlab": INK,
    "ParallelSlabCrowded": MUTED,
}


def colour(arm: Arm) -> str:
    """The colour of an arm's points."""
    return COLOURS.get(arm.benchmark, ORANGE)


# --- A figure ---------------------------------------------------------------------


def canvas(lines: Sequence[float]) -> tuple[Figure, list[Axes]]:
    """Panels below one another, each as high as its lines need."""
    heights = [0.34 * max(count, 1) + 0.55 for count in lines]
    figure, axes = plt.subplots(
        len(heights),
        1,
        figsize=(WIDTH, sum(heights) + 0.75),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    return figure, list(axes[:, 0])


def headline(figure: Figure, title: str) -> None:
    """The finding, above the figure."""
    text = re.sub(r" (?=%|ns\b)|(?<=\bGo) ", "\u00a0", title)  # where no line may break
    figure.suptitle(
        "\n".join(textwrap.wrap(text, 74)), x=0.01, ha="left", fontsize=11, fontweight="bold"
    )


def below(figure: Figure, text: str) -> None:
    """What the x axes show, below the whole figure: the axes may be narrower than it."""
    figure.supxlabel(text, fontsize=10)


def nothing(name: str, title: str) -> Chart:
    """The chart of what was not measured: an empty panel, and a title that says so."""
    with style():
        figure, (axes,) = canvas([2])
        axes.set_axis_off()
        axes.text(0, 0.5, "nothing to draw", color=MUTED, transform=axes.transAxes)
        headline(figure, title)
        plt.close(figure)
    data = pd.DataFrame(columns=["arm", "go", "estimate", "low", "high", "samples"])
    return finish(figure, name=name, title=title, alt="An empty chart.", data=data)


def release(recording: Recording, on: str) -> str:
    """A panel's heading."""
    document = recording.experiment.document
    whose = {document: "the document's toolchain", toolchains.today(document): "today's"}
    whose |= {DOCUMENT_JDK: "in place of the document's 9"}
    return toolchains.title(on) + (f", {whose[on]}" if on in whose else "")


def row(arm: str, go: str, estimate: Estimate, **more: object) -> dict[str, object]:
    """A row of a chart's data."""
    return {
        "arm": arm,
        "go": go,
        "estimate": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "samples": estimate.samples,
        **more,
    }


def in_percent(e: Estimate) -> Estimate:
    """A share (0 to 1) in percent."""
    return scaled(e, 100)


def scaled(e: Estimate, factor: float) -> Estimate:
    """An estimate in another unit."""
    return Estimate(
        factor * e.value, factor * e.low, factor * e.high, e.samples, e.rounds, e.confidence
    )


def change(recording: Recording, ratio: Ratio, go: str) -> str:
    """A ratio as a change, "−18.2 %", or that there is none to be told from noise."""
    if not recording.ratio(ratio, go).samples:
        return "not measured"
    if not recording.differs(ratio, go):
        return "no difference that can be told"
    change = recording.ratio(ratio, go).value - 1
    return ("+" if change > 0 else "") + rounding.percent(change)


# --- Dot plots ----------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """A published figure: a hollow diamond, or a square for a document's second source."""

    value: float
    marker: str = "D"


@dataclass(frozen=True)
class Dots:
    """One line of a dot plot: raw points, estimate, interval, and its figure beside it.

    Without a name it is a second line of the one before it, close below.
    """

    name: str
    points: Sequence[float]
    estimate: Estimate
    label: str
    colour: str = BLUE
    marks: Sequence[Mark] = ()


def _places(lines: Sequence[Dots]) -> tuple[list[float], dict[str, float]]:
    """Where each line stands, and where the names of the named ones do."""
    places: list[float] = []
    ticks: dict[str, float] = {}
    name = ""
    for line in lines:
        if line.name or not places:
            name = line.name
            places.append(places[-1] + 1.0 if places else 0.0)
            ticks[name] = places[-1]
        else:
            places.append(places[-1] + 0.42)
            ticks[name] += 0.21
    return places, ticks


def _dots(axes: Axes, y: float, line: Dots, most: float = math.inf) -> float:
    """Draw a line's points, interval and estimate; returns how far right they reach."""
    points = [rounding.rounded(v) for v in line.points if math.isfinite(v)]
    offsets = [y + 0.16 * (i / max(len(points) - 1, 1) - 0.5) for i in range(len(points))]
    axes.scatter(points, offsets, s=14, color=line.colour, alpha=0.35, linewidths=0)
    low, high = rounding.rounded(line.estimate.low), rounding.rounded(line.estimate.high)
    centre = rounding.rounded(line.estimate.value)
    if math.isfinite(low) and math.isfinite(high):
        if math.isfinite(most):
            low, high = max(low, 0.0), min(high, most)
        axes.plot([low, high], [y, y], color=line.colour, linewidth=2.2, solid_capstyle="round")
    axes.scatter([centre], [y], s=34, color=line.colour, zorder=3)
    return max(x for x in (centre, high, *points, 0.0) if math.isfinite(x))


def _labelled(axes: Axes, y: float, line: Dots) -> None:
    """A line of a dot plot with its label right beside it."""
    axes.annotate(
        line.label,
        (_dots(axes, y, line), y),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        color=INK,
        fontsize=9,
    )


def diamonds(axes: Axes, points: Iterable[tuple[float, float, str]]) -> None:
    """Published figures (x, y, marker): hollow, under ours."""
    by_marker: dict[str, list[tuple[float, float]]] = {}
    for x, y, marker in points:
        by_marker.setdefault(marker, []).append((x, y))
    for marker, places in by_marker.items():
        xs, ys = zip(*places, strict=True)
        axes.scatter(xs, ys, marker=marker, s=46, facecolors="none", edgecolors=PURPLE, zorder=1)


def lines_down(axes: Axes, labels: Sequence[str]) -> None:
    """A name per line, from the top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(max(len(labels), 1) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def dot_plot(
    panels: Mapping[str, Sequence[Dots]], title: str, xlabel: str, most: float | None = None
) -> tuple[Figure, list[Axes]]:
    """Dot plots below one another, on one scale from 0, the labels in a column on the right.

    The scale ends at `most` where it is given. An interval that is far wider than the
    points lie apart (as from two samples) is cut off; the data have its ends.
    """
    figure, all_axes = canvas([_places(lines)[0][-1] + 1 for lines in panels.values()])
    right = most or 1.12 * max(_reach(line) for lines in panels.values() for line in lines)
    for axes, (heading, lines) in zip(all_axes, panels.items(), strict=True):
        places, ticks = _places(lines)
        for y, line in zip(places, lines, strict=True):
            diamonds(axes, [(mark.value, y, mark.marker) for mark in line.marks])
            _dots(axes, y, line, right)
            axes.annotate(
                line.label,
                (1, y),
                xycoords=axes.get_yaxis_transform(),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=line.colour,
                fontsize=9,
            )
        axes.set_yticks(list(ticks.values()), list(ticks))
        axes.set_ylim(places[-1] + 0.5, -0.5)
        axes.set_xlim(-0.02 * right, 1.02 * right)
        axes.grid(axis="y", visible=False)
        axes.set_title(heading)
    below(figure, xlabel)
    headline(figure, title)
    return figure, all_axes


def _reach(line: Dots) -> float:
    """How far right a line needs its panel to reach."""
    values = (line.estimate.value, *line.points, *(mark.value for mark in line.marks), 1e-9)
    return max(x for x in values if math.isfinite(x))


# --- Timings, a panel per release -----------------------------------------------


@dataclass(frozen=True)
class Timing:
    """What one line of a chart of timings shows."""

    name: str
    arm: Arm
    metric: str = "ns/op"
    against: Arm | None = None  # the ratio to it stands in brackets
    colour: str = BLUE
    marks: Sequence[Mark] = ()


def costs(
    arms: Iterable[Arm], against: Arm, published: Mapping[str, Sequence[Mark]]
) -> list[Timing]:
    """Lines that compare what each way to free costs; `published` is by benchmark."""
    return [
        Timing(
            NAMES[arm.benchmark],
            arm,
            against=None if arm == against else against,
            colour=colour(arm),
            marks=published.get(arm.benchmark, ()),
        )
        for arm in arms
    ]


def timings(
    recording: Recording, name: str, lines: Sequence[Timing], title: str, xlabel: str
) -> Chart:
    """What each line takes per operation, a panel per release; what is missing is left out."""
    panels: dict[str, list[Dots]] = {}
    data: list[dict[str, object]] = []
    said: list[str] = []
    for go in recording.releases:
        for line in lines:
            estimate = recording.level(line.arm, go, line.metric)
            if not estimate.samples:
                continue
            label = rounding.nanoseconds(estimate.value)
            ratio = math.nan
            if line.against is not None:
                ratio = recording.ratio(Ratio(line.arm, line.against, line.metric), go).value
            if math.isfinite(ratio):
                label += f"  ({rounding.times(ratio)})"
            values = list(recording.values(line.arm, go, line.metric))
            dots = Dots(line.name, values, estimate, label, line.colour, line.marks)
            panels.setdefault(release(recording, go), []).append(dots)
            named = row(line.arm.benchmark, go, estimate, unit=line.metric, gogc=line.arm.gogc)
            data.append(named | ({"ratio": ratio} if line.against is not None else {}))
            said.append(f"Go {go}, {line.name} {label}")
    if not panels:
        return nothing(name, "None of what this chart compares was measured")
    with style():
        figure, _ = dot_plot(panels, title, xlabel)
        plt.close(figure)
    alt = "A dot plot of the wall time per operation: " + "; ".join(said)
    return finish(figure, name=name, title=title, alt=alt + ".", data=pd.DataFrame(data))


def on_and_off(arm: Arm, off: Arm, marks: Mapping[str, Sequence[Mark]]) -> list[Timing]:
    """An arm with the GC on and off: in the loop, and with what it left done."""
    return [
        Timing("GC on, the loop", arm, colour=ORANGE, marks=marks.get("100", ())),
        Timing("GC off, the loop", off, colour=GREEN, marks=marks.get("off", ())),
        Timing("GC on, settled", arm, "settled-ns/op", colour=ORANGE),
        Timing("GC off, settled", off, "settled-ns/op", colour=GREEN),
    ]


def gc_off_title(recording: Recording, what: str, arm: Arm, off: Arm) -> str:
    """What turning the GC off does to an arm, per release."""
    saved: dict[str, list[str]] = {}
    for go in recording.releases:
        if recording.ratio(Ratio(off, arm), go).samples:
            loop, settled = (
                change(recording, Ratio(off, arm, metric), go)
                for metric in ("ns/op", "settled-ns/op")
            )
            told = f"{loop} in the loop, {settled} with the rest collected"
            if loop == settled:
                told = f"{loop}, in the loop or with the rest collected"
            saved.setdefault(told, []).append(f"Go {go}")
    parts = [f"{told}, on {' and '.join(releases)}" for told, releases in saved.items()]
    return f"{what} with the GC off: " + ("; ".join(parts) or "it was not measured")


# --- Curves ---------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """A line through estimates at places of x, with the raw points and its name at the end."""

    name: str
    xs: Sequence[float]
    estimates: Sequence[Estimate]
    points: Sequence[Sequence[float]]  # the raw ones at each x
    colour: str = BLUE
    dashed: bool = False


_FACTOR = 3.0  # an interval is drawn no further from its estimate than by this


def draw(axes: Axes, curve: Curve) -> None:
    """Raw points, intervals, estimates and the line through them."""
    points(axes, curve)
    axes.plot(
        list(curve.xs),
        [rounding.rounded(e.value) for e in curve.estimates],
        color=curve.colour,
        linewidth=1.0 if curve.dashed else 1.9,
        linestyle=(0, (4, 2)) if curve.dashed else "-",
        marker="o",
        markersize=2.5 if curve.dashed else 4,
    )


def points(axes: Axes, curve: Curve) -> None:
    """Raw points and intervals.

    An interval as wide as from two samples would hide all else: it is cut off, and
    the data have its ends.
    """
    xs = [x for x, raw in zip(curve.xs, curve.points, strict=True) for _ in raw]
    ys = [rounding.rounded(y) for raw in curve.points for y in raw]
    axes.scatter(xs, ys, s=9, color=curve.colour, alpha=0.35, linewidths=0)
    for x, e in zip(curve.xs, curve.estimates, strict=True):
        if math.isfinite(e.low) and math.isfinite(e.high):
            low, high = max(e.low, e.value / _FACTOR), min(e.high, e.value * _FACTOR)
            ends = [rounding.rounded(low), rounding.rounded(high)]
            axes.plot([x, x], ends, color=curve.colour, linewidth=1.4, alpha=0.6)


def name_ends(axes: Axes, ends: Iterable[tuple[float, str, str]], gap: float = 0.06) -> None:
    """Name lines (y at their ends, name, colour) right of the axes, none over another.

    `gap` is the least distance, as a share of the axes' height.
    """
    named = sorted((_fraction(axes, y), text, ink) for y, text, ink in ends)
    for at, (_, text, ink) in zip(_apart([at for at, *_ in named], gap), named, strict=True):
        axes.annotate(
            text,
            (1, at),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=ink,
            fontsize=9,
        )


def name_points(axes: Axes, named: Sequence[tuple[float, float, str, str]]) -> None:
    """Name points (x, y, name, colour) close by, none over another name or point.

    The axes' limits must stand. Where there is no room a name goes to the upper right.
    """
    height, letter, gap = 10.0, 5.2, 5.0  # of the text, in points
    scale = 72 / axes.figure.dpi
    at = [axes.transData.transform((x, y)) * scale for x, y, _, _ in named]
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in at]
    for (x, y), (data_x, data_y, text, ink) in zip(at, named, strict=True):
        width = letter * len(text)
        places = [
            (right, up)
            for up in (gap, -gap - height, -height / 2, 2.2 * gap, -2.2 * gap - height)
            for right in (gap, -gap - width)
        ]

        def free(place: tuple[float, float], x: float = x, y: float = y, w: float = width) -> bool:
            left, low = x + place[0], y + place[1]
            return not any(
                left < right and other < left + w and low < top and bottom < low + height
                for other, bottom, right, top in taken
            )

        right, up = next(filter(free, places), places[0])
        taken.append((x + right, y + up, x + right + width, y + up + height))
        axes.annotate(
            text,
            (rounding.rounded(data_x), rounding.rounded(data_y)),
            xytext=(right, up),
            textcoords="offset points",
            va="bottom",
            fontsize=8,
            color=ink,
        )


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Places (0 to 1) a gap apart at least, each as near to the wanted one as can be."""
    groups: list[list[float]] = []  # of wanted places that touch one another

    def first(group: list[float]) -> float:
        return sum(group) / len(group) - gap * (len(group) - 1) / 2

    for at in wanted:
        groups.append([at])
        while len(groups) > 1 and first(groups[-2]) + gap * len(groups[-2]) > first(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    placed = [first(group) + gap * i for group in groups for i in range(len(group))]
    top = 1.0  # nothing stands above the axes, where the headings are
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], top)
        top = placed[i] - gap
    return placed


def _fraction(axes: Axes, y: float) -> float:
    """A y of the data as a share of the axes' height; its limits must stand."""
    at = axes.transData.transform((axes.get_xlim()[0], y))
    return float(axes.transAxes.inverted().transform(at)[1])


def plain_ticks(axes: Axes, which: str, values: Iterable[float]) -> None:
    """Ticks of a log axis as plain numbers."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    values = list(values)
    axis.set_ticks(values, [f"{v:,.0f}" if v >= 1000 else f"{v:g}" for v in values])
    axis.set_ticks([], minor=True)


def ticks_between(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, 20, … as far as they lie between, and no more than can be read."""
    steps = [m * 10.0**e for e in range(-3, 9) for m in (1, 2, 5)]
    found = [t for t in steps if low <= t <= high]
    return found if len(found) <= 9 else [t for t in found if math.log10(t).is_integer()]


# --- Charts of more than one chapter ------------------------------------------------


def verdicts(ledger: Sequence[Row]) -> Chart:
    """Every measured claim: ours over the published figure, where it holds, the verdict."""
    judged = [row for row in ledger if row.verdict.label is not Label.UNTESTABLE]
    drawn = [row for row in judged if row.estimate.samples]
    labels = [f"{row.claim.id}  {row.toolchain}" for row in drawn]
    with style():
        figure, (axes,) = canvas([max(len(drawn), 1) + 1])
        axes.axvline(1, color=PURPLE, linewidth=1)
        axes.set_xscale("log")
        lines_down(axes, labels)
        _plain_log(axes, [scaled(r.estimate, 1 / r.published) for r in drawn])
        left, right = axes.get_xlim()
        for y, r in enumerate(drawn):
            low, high = (end / r.published for end in r.claim.rule.bounds(r.published))
            low, high = max(low, left), min(high, right)
            if low < high:
                axes.barh(y, high - low, 1, low, color=BLUE, alpha=0.10, linewidth=0)
        axes.set_xlim(left, right)
        for y, r in enumerate(drawn):
            ratio = scaled(r.estimate, 1 / r.published)
            ink = VERDICT_COLOURS[r.verdict.label]
            if ratio.value > 0:
                _labelled(axes, y, Dots("", [], ratio, str(r.verdict), ink))
            else:  # which a log scale has no place for
                left = axes.get_xlim()[0]
                axes.scatter([left], [y], s=34, marker="<", color=ink, zorder=3, clip_on=False)
                label = f"{r.verdict} (0 or less)"
                axes.annotate(
                    label,
                    (left, y),
                    xytext=(8, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=9,
                )
        axes.set_xlabel(
            "measured ÷ published, or ÷ the bar (log scale)\nshaded: where the claim holds"
        )
        axes.tick_params(labeltop=True)
        held = sum(r.verdict.label is Label.HOLDS for r in drawn)
        failed = sum(r.verdict.label is Label.FAILS for r in drawn)
        undecided = len(drawn) - held - failed
        title = (
            f"Verdicts that the claim holds: {held} of {len(drawn)}; "
            f"that it does not: {failed}; undecided: {undecided}"
        )
        headline(figure, title)
        plt.close(figure)
    data = pd.DataFrame(
        [
            row(
                r.claim.id,
                r.release,
                r.estimate,
                published=r.published,
                unit=r.unit,
                verdict=str(r.verdict),
            )
            for r in drawn
        ]
    ).rename(columns={"arm": "claim"})
    alt = "A dot plot, a line per claim and Go release, of the measured over the published figure: "
    alt += "; ".join(
        f"{r.claim.id} on {r.toolchain} {rounding.times(r.estimate.value / r.published)}, "
        f"{r.verdict}"
        for r in drawn
    )
    return finish(figure, name="verdicts", title=title, alt=alt + ".", data=data)


def _plain_log(axes: Axes, estimates: Sequence[Estimate]) -> None:
    """Ticks of a log axis as plain numbers, and room for the labels on the right."""
    finite = [x for e in estimates for x in _seen(e) if math.isfinite(x) and x > 0]
    low, high = min([0.7, *finite]), max([1.4, *finite])
    axes.set_xlim(low / 1.15, high * (high / low) ** 0.45)
    wide = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
    steps = wide if high / low > 5 else (0.5, 0.8, 1, 1.25, 2)
    ticks = [t for t in steps if low / 1.15 <= t <= high]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()


def _seen(e: Estimate) -> tuple[float, ...]:
    """An interval's ends and its value; without a low end that is next to nothing."""
    return (e.value, e.high) if e.low < e.value / 10 else (e.value, e.low, e.high)


def control(recording: Recording) -> Chart:
    """The A/A controls: identical code against itself."""
    controls = list(recording.controls())
    off = max((abs(math.log(e.value)) for _, _, e in controls), default=math.nan)
    names = [f"{NAMES[arm.benchmark]}, {toolchains.title(go)}" for arm, go, _ in controls]
    with style():
        figure, (axes,) = canvas([max(len(controls), 1)])
        axes.axvline(1, color=MUTED, linewidth=1)
        for y, (arm, go, estimate) in enumerate(controls):
            values = recording.points(Ratio(arm, replace(arm, twin="")), go)
            _labelled(axes, y, Dots("", values, estimate, rounding.times(estimate.value)))
        lines_down(axes, names)
        axes.margins(x=0.16)
        axes.set_xlabel("cost over that of the same code, measured once more (ratio)")
        title = (
            f"Identical code measured twice differs by {rounding.percent(math.expm1(off))} at most"
        )
        if not math.isfinite(off):
            title = "No code was measured twice here"
        headline(figure, title)
        plt.close(figure)
    data = pd.DataFrame([row(a.benchmark, go, e, twin=a.twin) for a, go, e in controls])
    alt = "A dot plot of the ratios of identical code to itself: " + "; ".join(
        f"{name}, {rounding.interval(e, 'ratio')}"
        for name, (_, _, e) in zip(names, controls, strict=True)
    )
    name = f"{recording.experiment.name}-control"
    return finish(figure, name=name, title=title, alt=alt + ".", data=data)
