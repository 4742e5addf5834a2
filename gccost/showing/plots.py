"""The chart layer: it turns tidy points and a declaration into a finished chart.

A study's chart is a function that makes a `Point` per estimate from a recording and passes
them to `dots` (a line per estimate) or `curves` (a line through the estimates over x). The
layer draws raw samples, intervals and published values, labels lines directly, and writes
title, alt text and CSV. `chart` gives the chart its name, and its title if nothing was
measured. A special chart (a flame graph, a map) returns a `Drawing` made with matplotlib.
"""

from __future__ import annotations

import functools
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Generic, Literal, TypeVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gccost.errors import GccostError
from gccost.rounding import rounded
from gccost.showing.figures import BLUE, INK, MARKERS, MUTED, PURPLE, WIDTH, Chart, finish, style
from gccost.stats import Estimate

Scale = Literal["linear", "log", "log2"]
Of = TypeVar("Of")  # a chart's input: a recording, or several
PERCENT = (-2.0, 102.0)  # the limits of an axis of shares
NO_ESTIMATE = Estimate(math.nan, -math.inf, math.inf, 0, 0, math.nan)


@dataclass(frozen=True)
class Mark:
    """A published value: a hollow diamond, or a square for a document's second source."""

    value: float
    marker: str = "D"


@dataclass(frozen=True)
class Point:
    """One estimate on a chart.

    `panel` and `line` name its panel and line, and `x` is its position on the line. In a dot
    plot each point has its own line, close below the previous one if its name is the same or
    empty. In a chart of curves a point without x is a level across its panel, and a line of
    points that are `hollow` is hollow squares, not joined and not named. `raw` are its
    samples, `label` is written next to it, and `published` are its published values. `colour`
    is an ink of `figures.MARKERS`, which gives its marker. `data` are the columns of its CSV
    row: two before the estimate (such as variant and go), then any others. Without `data` the
    point has no row.
    """

    panel: str
    line: str
    estimate: Estimate
    x: float = math.nan
    raw: Iterable[float] = ()
    label: str = ""
    colour: str = BLUE
    published: Sequence[Mark] = ()
    dashed: bool = False
    hollow: bool = False
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Drawing:
    """A drawn figure with its title, alt text and data."""

    figure: Figure
    title: str
    alt: str
    data: pd.DataFrame


@dataclass(frozen=True)
class NamedChart(Generic[Of]):
    """A chart with a name, drawn when called.

    `draw` returns None if nothing was measured. `empty` is the chart's title in that case,
    or a function that returns it.
    """

    name: str
    empty: str | Callable[[Any], str]
    draw: Callable[[Of], Drawing | None]

    def __call__(self, source: Of) -> Chart:
        with style():
            try:
                found = self.draw(source)
            except GccostError as damaged:  # a file, which costs this chart alone
                found = _nothing(f"This chart cannot be drawn. {damaged}")
            if found is None:
                found = _nothing(self.empty if isinstance(self.empty, str) else self.empty(source))
        return finish(
            found.figure, name=self.name, title=found.title, alt=found.alt, data=found.data
        )


def chart(
    name: str, empty: str | Callable[[Any], str]
) -> Callable[[Callable[[Of], Drawing | None]], NamedChart[Of]]:
    """Turn a drawing function into a named chart (see `NamedChart`)."""
    return functools.partial(NamedChart, name, empty)


def _nothing(title: str) -> Drawing:
    figure, (axes,) = canvas([2])
    axes.set_axis_off()
    axes.text(0, 0.5, "nothing to draw", color=MUTED, transform=axes.transAxes)
    headline(figure, title)
    data = pd.DataFrame(columns=["variant", "go", "estimate", "low", "high", "samples"])
    return Drawing(figure, title, "An empty chart.", data)


def by_panel(points: Iterable[Point]) -> dict[str, list[Point]]:
    """The points of each panel, in order."""
    return _grouped(points, lambda point: point.panel)


def by_line(points: Iterable[Point]) -> dict[str, list[Point]]:
    """The points of each line, in order."""
    return _grouped(points, lambda point: point.line)


def _grouped(points: Iterable[Point], key: Callable[[Point], str]) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(key(point), []).append(point)
    return found


def drawing(figure: Figure, title: str, points: Sequence[Point], kind: str) -> Drawing:
    """A drawn figure of points with its headline; the alt text begins with its kind."""
    headline(figure, title)
    return Drawing(figure, title, _alt_text(points, kind), _table(points))


def _table(points: Iterable[Point]) -> pd.DataFrame:
    """A chart's data, with a row per point."""
    rows = []
    for point in filter(lambda p: p.data, points):
        named, e = list(point.data.items()), point.estimate
        limits = {"estimate": e.value, "low": e.low, "high": e.high, "samples": e.samples}
        rows.append(dict(named[:2]) | limits | dict(named[2:]))
    return pd.DataFrame(rows)


def _alt_text(points: Iterable[Point], kind: str) -> str:
    """The alt text: the kind of chart, and each line's labels."""
    parts = [
        ", ".join(filter(None, (panel, line.replace("\n", " ")))) + f": {_labels(each)}"
        for panel, group in by_panel(points).items()
        for line, each in by_line(group).items()
    ]
    return f"{kind}: " + "; ".join(parts) + "."


def _labels(points: Sequence[Point]) -> str:
    at = [f"{p.label} at {p.x:,.10g}" if math.isfinite(p.x) else p.label for p in points]
    return ", ".join(filter(None, at))


# --- A figure ---------------------------------------------------------------------


def canvas(heights: Sequence[float], columns: int = 1, **shared: Any) -> tuple[Figure, list[Axes]]:
    """A figure with panels in rows of the given heights, in lines (see `dots`)."""
    inches = [0.34 * max(height, 1) + 0.55 for height in heights]
    figure = Figure((WIDTH, sum(inches) + 0.75), layout="constrained")
    axes = figure.subplots(len(inches), columns, height_ratios=inches, squeeze=False, **shared)
    return figure, list(axes.flat)


def headline(figure: Figure, title: str) -> None:
    """Write the finding above the figure."""
    # A number keeps its unit, and Go its version.
    text = re.sub(r" (?=%|[nµm]s\b|[kM]i?B\b|GB\b)|(?<=\bGo) ", "\u00a0", title)
    figure.suptitle(
        "\n".join(textwrap.wrap(text, 72)), x=0.01, ha="left", fontsize=11, fontweight="bold"
    )


def below(figure: Figure, text: str) -> None:
    """Write the x axes' label below the whole figure, which may be wider than the axes."""
    figure.supxlabel(text, fontsize=10)


def label_right(axes: Axes, y: float, text: str, colour: str, **more: Any) -> None:
    """Write a label to the right of the axes, at a y of the data."""
    settings: dict[str, Any] = {
        "xycoords": axes.get_yaxis_transform(),
        "xytext": (6, 0),
        "textcoords": "offset points",
        "va": "center",
        "color": colour,
        "fontsize": 9,
    }
    axes.annotate(text, (1, y), **(settings | more))


def diamonds(axes: Axes, points: Iterable[tuple[float, float, str]]) -> None:
    """Draw published values (x, y, marker), hollow and below ours."""
    frame = pd.DataFrame(points, columns=["x", "y", "marker"])
    for marker, found in frame.groupby("marker", sort=False):
        axes.scatter(
            found["x"],
            found["y"],
            marker=str(marker),
            s=46,
            facecolors="none",
            edgecolors=PURPLE,
            zorder=1,
        )


# --- Dot plots --------------------------------------------------------------------

CLOSE = 0.42  # the distance of a line to a previous one of the same name


def dots(
    points: Iterable[Point],
    title: str,
    xlabel: str,
    *,
    kind: str = "A dot plot",
    limits: tuple[float, float] | None = None,
    log: bool = False,
    reference: float | None = None,
    each: Mapping[str, str] | None = None,
    close: float = CLOSE,
    decorate: Callable[[Axes, str], None] | None = None,
) -> Drawing | None:
    """A dot plot with a line per point: samples, interval, estimate, published values, label.

    The panels are stacked and share one scale, from 0 to the largest value or within
    `limits`; `log` makes it logarithmic. `reference` is a vertical line. `each` labels the x
    axis of every panel and gives every panel its own scale. `close` is the distance of a line
    to a previous one of the same or an empty name, where other lines have distance 1.
    `decorate` draws further parts of a panel. Returns None if there are no points.
    """
    points = list(points)
    if not points:
        return None
    panels = by_panel(points)
    ys = {panel: places(lines, close) for panel, lines in panels.items()}
    figure, all_axes = canvas([at[-1] + 1 for at in ys.values()])
    for axes, (panel, lines) in zip(all_axes, panels.items(), strict=True):
        on_scale = lines if each else points
        low, high = limits or (_log_limits if log else _limits)(on_scale, reference)
        axes.set_title(panel)
        if log:
            axes.set_xscale("log")
            ticks = ticks_between(low, high)
            first = ticks.index(reference) % 2 if reference in ticks else 0
            plain_ticks(axes, "x", ticks if len(ticks) < 7 else ticks[first::2])
        axes.set_xlim(low, high)
        _lines(axes, ys[panel], lines)
        if reference is not None:
            axes.axvline(reference, color=INK, linewidth=1, zorder=0)
        if each:
            axes.set_xlabel(each[panel])
        if decorate:
            decorate(axes, panel)
    if not each:
        below(figure, xlabel)
    return drawing(figure, title, points, kind)


def places(lines: Sequence[Point], close: float = CLOSE) -> list[float]:
    """The y of each line; one without a new name is close below the previous one."""
    found = [0.0]
    for above, line in pairwise(lines):
        same = line.line in ("", above.line)
        found.append(found[-1] + (close if same else 1.0))
    return found


def _values(point: Point) -> list[float]:
    values = (point.estimate.value, *point.raw, *(mark.value for mark in point.published))
    return [v for v in values if math.isfinite(v)]


def _limits(points: Sequence[Point], reference: float | None) -> tuple[float, float]:
    right = max([v for point in points for v in _values(point)] + [reference or 1e-9])
    return -0.022 * right, 1.14 * right


def _log_limits(points: Sequence[Point], reference: float | None) -> tuple[float, float]:
    values = [v for point in points for v in _values(point) if v > 0]
    values += [reference] if reference else []
    return min(values) / 1.4, max(values) * 1.4


def _lines(axes: Axes, ys: Sequence[float], lines: Sequence[Point]) -> None:
    """Draw the lines of a dot plot's panel, after its scale is set.

    An interval much wider than the spread of the points (as from two samples) is clipped,
    with an arrowhead where it goes on; the data have its ends.
    """
    limits = axes.get_xlim()
    ticks: dict[str, list[float]] = {}
    name = ""
    raw: list[tuple[float, float, str]] = []
    for y, line in zip(ys, lines, strict=True):
        name = line.line or name
        ticks.setdefault(name, []).append(y)
        values = [rounded(v) for v in line.raw if math.isfinite(v)]
        spread = [y + 0.16 * (i / max(len(values) - 1, 1) - 0.5) for i in range(len(values))]
        raw += [(x, at, line.colour) for x, at in zip(values, spread, strict=True)]
        e = line.estimate
        if math.isfinite(e.low) and math.isfinite(e.high):
            ends = [rounded(min(max(end, limits[0]), limits[1])) for end in (e.low, e.high)]
            axes.plot(ends, [y, y], color=line.colour, linewidth=2.2, solid_capstyle="round")
            cut = (("<", ends[0], e.low < limits[0]), (">", ends[1], e.high > limits[1]))
            for arrow, end, goes_on in cut:
                if goes_on:
                    axes.scatter([end], [y], s=26, marker=arrow, color=line.colour)
        inside = rounded(max(e.value, limits[0]))  # a log scale has no place for 0
        marker = "<" if e.value < limits[0] else MARKERS[line.colour][0]
        axes.scatter([inside], [y], s=34, marker=marker, color=line.colour, zorder=3)
        label_right(axes, y, line.label, line.colour)
    diamonds(
        axes,
        [(m.value, y, m.marker) for y, p in zip(ys, lines, strict=True) for m in p.published],
    )
    _scatter(axes, raw, 14)
    axes.set_yticks([sum(at) / len(at) for at in ticks.values()], list(ticks))
    axes.set_ylim(ys[-1] + 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def _scatter(axes: Axes, raw: Sequence[tuple[float, float, str]], size: float) -> None:
    """Draw raw samples (x, y, colour), small and pale."""
    import seaborn as sns  # takes a second to load

    frame = pd.DataFrame(raw, columns=["x", "y", "colour"])
    # One call per colour keeps the SVG small.
    for colour, found in frame.groupby("colour", sort=False):
        sns.scatterplot(
            found, x="x", y="y", color=str(colour), s=size, alpha=0.35, linewidth=0, ax=axes
        )
    axes.set(xlabel="", ylabel="")


# --- Curves -----------------------------------------------------------------------

_DASHED = (0, (4, 2))
_FACTOR = 3.0  # the largest drawn ratio of an interval's end to its estimate


@dataclass(frozen=True)
class Axis:
    """An axis of a chart of curves: its label, scale, ticks and limits.

    Without ticks, a logarithmic axis has 1, 2, 5, 10, … and a linear axis has matplotlib's
    default ticks. An end of `limits` that is None is set by the data.
    """

    label: str = ""
    scale: Scale = "linear"
    ticks: Mapping[float, str] | Sequence[float] | None = None
    limits: tuple[float | None, float | None] = (None, None)
    format: Callable[[float, object], str] | None = None


def curves(
    points: Iterable[Point],
    title: str,
    x: Axis,
    y: Axis | Mapping[str, Axis],
    *,
    kind: str = "A line chart",
    height: float = 8,
    columns: int = 1,
    shared: bool = True,
    gap: float = 0.08,
    joined: bool = True,
    ends: Callable[[Point], str] | None = None,
    more_ends: Sequence[tuple[float, str, str]] = (),
    near: Callable[[Point], str] | None = None,
    published: Iterable[tuple[float, float, str]] = (),
    decorate: Callable[[Axes, str], None] | None = None,
) -> Drawing | None:
    """A chart of curves, with raw samples and intervals.

    Each curve is named at its right end, with `ends` of its last point if given, or at the
    published value of a point without an estimate. With several columns the names are in
    the upper left. A curve's marker is before its name. With `near` each point is named
    instead. Each panel has its own y axis if `y` is by panel; all panels have the same one
    if it is `shared`. `published` are values (x, y, marker) for every panel. `decorate` draws
    further parts of a panel after its limits are set. Unless `joined`, points are not
    connected. Returns None if there are no points.
    """
    points = list(points)
    if not points:
        return None
    panels = by_panel(points)
    rows = math.ceil(len(panels) / columns)
    one_scale = shared and isinstance(y, Axis)
    figure, all_axes = canvas([height] * rows, columns, sharey=one_scale, sharex=columns > 1)
    theirs = list(published)
    axis = {panel: y if isinstance(y, Axis) else y[panel] for panel in panels}
    for axes, (panel, group) in zip(all_axes, panels.items(), strict=False):
        draw(axes, group, joined=joined)
        diamonds(axes, [*theirs, *((p.x, m.value, m.marker) for p in group for m in p.published)])
        axes.set_title(panel)
    for i, (axes, (panel, group)) in enumerate(zip(all_axes, panels.items(), strict=False)):
        _scaled(axes, "x", x, [p.x for p in group])
        _scaled(axes, "y", axis[panel], [])
        if i % columns == 0:
            axes.set_ylabel(axis[panel].label)
        joint = by_line(p for p in group if not p.hollow)
        last = [max(line, key=lambda p: p.x) for line in joint.values()]
        named = [(_values(p)[0], _signed(p, ends(p) if ends else p.line), p.colour) for p in last]
        if near:
            name_points(axes, [(p.x, p.estimate.value, near(p), p.colour) for p in group])
        elif columns == 1:
            name_ends(axes, [*named, *more_ends], gap)
        else:
            name_corner(axes, [name for _, *name in named])
        if decorate:
            decorate(axes, panel)
    below(figure, x.label)
    return drawing(figure, title, points, kind)


def _signed(point: Point, name: str) -> str:
    """A curve's name after its marker; a level and a published curve have none."""
    drawn = point.estimate.samples and math.isfinite(point.x)
    return f"{MARKERS[point.colour][1]} {name}" if drawn else name


def draw(axes: Axes, points: Sequence[Point], *, joined: bool = True) -> None:
    """Draw raw samples, intervals, estimates and the lines through them.

    A very wide interval (as from two samples) is clipped; the data have its ends.
    """
    _scatter(axes, [(p.x, rounded(v), p.colour) for p in points for v in p.raw], 9)
    for line in by_line(points).values():
        if math.isnan(line[0].x):
            value, ink = rounded(line[0].estimate.value), line[0].colour
            axes.axhline(value, color=ink, linewidth=1.2, linestyle=_DASHED, zorder=1)
            continue
        ends: list[tuple[float, float]] = []
        for p in line:
            e = p.estimate
            if math.isfinite(e.low) and math.isfinite(e.high):
                low, high = max(e.low, e.value / _FACTOR), min(e.high, e.value * _FACTOR)
                ends += [(p.x, rounded(low)), (p.x, rounded(high)), (math.nan, math.nan)]
        axes.plot(*zip(*ends, strict=True), color=line[0].colour, linewidth=1.4, alpha=0.6)
        dashed, hollow = line[0].dashed, line[0].hollow
        axes.plot(
            [p.x for p in line],
            [rounded(p.estimate.value) for p in line],
            color=line[0].colour,
            linewidth=1.0 if dashed else 1.9,
            linestyle=("-" if not dashed else _DASHED) if joined and not hollow else "none",
            marker="s" if hollow else MARKERS[line[0].colour][0],
            fillstyle="none" if hollow else "full",
            markersize=6 if hollow else 2.5 if dashed else 4 if joined else 5.5,
        )


def _scaled(axes: Axes, which: Literal["x", "y"], axis: Axis, places: Iterable[float]) -> None:
    """Set an axis's scale, limits and ticks."""
    set_scale, limits = getattr(axes, f"set_{which}scale"), getattr(axes, f"set_{which}lim")
    if axis.scale != "linear":
        set_scale("log", base=2 if axis.scale == "log2" else 10)
    low, high = getattr(axes, f"get_{which}lim")()
    low = low if axis.limits[0] is None else axis.limits[0]
    high = high if axis.limits[1] is None else axis.limits[1]
    limits(low, high)
    if axis.format is not None:
        (axes.xaxis if which == "x" else axes.yaxis).set_major_formatter(axis.format)
    ticks = axis.ticks
    if ticks is None and axis.scale != "linear":
        ticks = sorted(filter(math.isfinite, set(places))) or ticks_between(low, high)
    if isinstance(ticks, Mapping):
        getattr(axes, f"set_{which}ticks")(list(ticks), list(ticks.values()))
        getattr(axes, f"set_{which}ticks")([], minor=True)
    elif ticks is not None:
        plain_ticks(axes, which, ticks)


def name_ends(axes: Axes, ends: Iterable[tuple[float, str, str]], gap: float = 0.06) -> None:
    """Name lines (y at their ends, name, colour) right of the axes, without overlaps.

    `gap` is the smallest distance, as a share of the axes' height.
    """
    named = sorted((_fraction(axes, y), text, ink) for y, text, ink in ends)
    for at, (_, text, ink) in zip(_apart([at for at, *_ in named], gap), named, strict=True):
        label_right(axes, at, text, ink, xycoords="axes fraction")


def name_corner(axes: Axes, names: Iterable[Sequence[str]]) -> None:
    """Name lines (name, colour) in the upper left of the axes, one below another."""
    for i, (text, ink) in enumerate(names):
        axes.annotate(
            text,
            (0.03, 0.97),
            xycoords="axes fraction",
            xytext=(0, -12 * i),
            textcoords="offset points",
            va="top",
            color=ink,
            fontsize=8.5,
        )


def name_points(axes: Axes, named: Sequence[tuple[float, float, str, str]]) -> None:
    """Name points (x, y, name, colour) close by, without overlapping names or points.

    The axes' limits must be set. A name without room goes to the upper right.
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
            (rounded(data_x), rounded(data_y)),
            xytext=(right, up),
            textcoords="offset points",
            va="bottom",
            fontsize=8,
            color=ink,
        )


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Positions (0 to 1) with at least a gap between them, as near as possible to `wanted`."""
    groups: list[list[float]] = []  # of wanted positions that touch one another

    def first(group: list[float]) -> float:
        return sum(group) / len(group) - gap * (len(group) - 1) / 2

    for at in wanted:
        groups.append([at])
        while len(groups) > 1 and first(groups[-2]) + gap * len(groups[-2]) > first(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    placed = [first(group) + gap * i for group in groups for i in range(len(group))]
    top = 1.0  # the headings are above the axes
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], top)
        top = placed[i] - gap
    return placed


def _fraction(axes: Axes, y: float) -> float:
    """A y of the data as a share of the axes' height, whose limits must be set."""
    at = axes.transData.transform((axes.get_xlim()[0], y))
    return float(axes.transAxes.inverted().transform(at)[1])


def plain_ticks(axes: Axes, which: str, values: Iterable[float]) -> None:
    """Label the ticks of a log axis as plain numbers."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    values = list(values)
    axis.set_ticks(values, [f"{v:,.0f}" if v >= 1000 else f"{v:g}" for v in values])
    axis.set_ticks([], minor=True)


def ticks_between(low: float, high: float) -> list[float]:
    """Ticks at 1, 2, 5, 10, 20, … between two values, few enough to be readable."""
    steps = [m * 10.0**e for e in range(-3, 9) for m in (1, 2, 5)]
    found = [t for t in steps if low <= t <= high]
    return found if len(found) <= 9 else [t for t in found if math.log10(t).is_integer()]
