"""Intervals, markers and labels over a chart of seaborn's or matplotlib's.

grid = sns.catplot(samples, x="ns", y="variant", row="release", kind="strip")
gccost.intervals(grid, costs)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from gccost.costs.costs import FEWEST, is_sharp
from gccost.errors import GccostError, expect
from gccost.showing import charts, quoting
from gccost.showing.charts import BLUE, MARKERS, MUTED, VAGUE
from gccost.showing.inks import own_ink, palette
from gccost.showing.rows import tells_apart, with_intervals

_FURTHEST = 3.0  # an interval is drawn up to this factor from its value
_HEADS = {"x": ("<", ">"), "y": ("v", "^")}  # of an interval that is cut
_GAP = 0.08  # the smallest distance of two lines' names, as a share of the axes' height


def intervals(
    grid: sns.FacetGrid | Axes,
    costs: pd.DataFrame,
    *,
    x: str = "value",
    y: str = "variant",
    hue: str | None = None,
    published: pd.DataFrame | None = None,
    label: str | None = None,
) -> None:
    """Draw each row's value and 95 % interval over a seaborn grid or axes, facet by facet.

    With x="value" (the default) y is a column of categories, as in `catplot(kind="strip")`:
    each row gets a marker, a bar, and its figure to the right. With y="value" x is a column
    of numbers or releases, as in `relplot`: each row gets a bar, and each `hue` its name at the
    right end. Lines break at releases without a value.
    `label` is a column with other text. `published` has published values with the same key
    columns: hollow diamonds. Set scales and limits before.

    An interval is cut, and ends in an arrowhead, where it reaches beyond the axes, above three
    times its value, or on a log axis below a third of it. A figure of fewer than three processes,
    or whose interval spans more than a factor of 4, is grey. In the page, pointing at a mark shows
    its row in words.
    """
    if published is None:
        published = costs[:0]
    _check(costs, "costs", x, y, hue)
    _check(published, "published", x, y)
    costs = costs.assign(says=with_intervals(costs))
    place = y if x == "value" else x
    drawn = [place, hue] if hue else [place]
    last = _last_axes(grid)
    for axes, rows, theirs in _facets(grid, costs, published):
        _check_one(rows, drawn)
        if x == "value":
            _dots(axes, rows, theirs, y, hue, label)
            continue
        if isinstance(rows[x].dtype, pd.CategoricalDtype):
            _break_lines(axes)
        ends = _curves(axes, rows, x, hue, label)
        if len(theirs):
            _diamonds(axes, theirs[x], theirs["value"])
        if axes in last and hue:
            name_ends(axes, ends)


def _last_axes(grid: sns.FacetGrid | Axes) -> list[Axes]:
    """The axes right of which there are no others, which name the lines of their row."""
    if isinstance(grid, Axes):
        return [grid]
    count = len(grid.axes)
    rows = grid.axes.reshape(count, -1)
    return list(rows[:, -1])


def _check(frame: pd.DataFrame, name: str, *columns: str | None) -> None:
    for column in filter(None, columns):
        expect(frame, column, f"column of {name}", "gccost.intervals")


def _check_one(rows: pd.DataFrame, drawn: list[str]) -> None:
    """Raise GccostError if rows of one place differ in a key that the chart does not show."""
    mixed = rows[rows.duplicated(drawn, keep=False)]
    for name in mixed.columns.difference(drawn):
        if tells_apart(mixed[name]):
            some = mixed[name].unique()[:3]
            values = ", ".join(map(str, some))
            hint = f"choose one of {values}, or draw a facet for each (row={name!r})"
            raise GccostError(f"values of several {name} meet", "gccost.intervals", hint)


def _facets(
    grid: sns.FacetGrid | Axes, costs: pd.DataFrame, published: pd.DataFrame
) -> Iterator[tuple[Axes, pd.DataFrame, pd.DataFrame]]:
    """Each axes with the rows of its facet."""
    if isinstance(grid, Axes):
        yield grid, costs, published
        return
    names = []
    for each in ("_row_var", "_col_var"):
        name = getattr(grid, each, None)
        if name:
            names.append(name)
    if not names:
        yield grid.ax, costs, published
    for key, axes in grid.axes_dict.items():
        keys = key if isinstance(key, tuple) else (key,)
        wanted = dict(zip(names, keys, strict=True))
        yield axes, _where(costs, wanted), _where(published, wanted)


def _where(frame: pd.DataFrame, wanted: dict[str, Any]) -> pd.DataFrame:
    """The rows of a facet; a column that the frame lacks does not select."""
    for name, value in wanted.items():
        if name in frame:
            frame = frame[frame[name] == value]
    return frame


def _marks(axes: Axes, rows: pd.DataFrame, way: str, size: float) -> None:
    """A marker and a bar for each row along the axis `way` ("x" or "y").

    `at` is its place on the other axis, `ink` its colour, `says` what pointing at it shows.
    """
    is_log = getattr(axes, f"get_{way}scale")() == "log"
    first, last = _limits(axes, rows, way)
    for row in rows.to_dict("records"):
        value, place = row["value"], row["at"]
        ink = row["ink"] if _is_sharp(row) else VAGUE
        shown = {"color": ink, "gid": charts.SAYS + row["says"]}
        marker, _ = MARKERS[row["ink"]]
        point = _turned([value], [place], way)
        axes.scatter(*point, s=size, marker=marker, zorder=3, **shown)
        if math.isnan(row["low"]):
            continue
        least, most = first, last
        if is_log:
            least = max(first, value / _FURTHEST)
        if value > 0:
            most = min(last, value * _FURTHEST)
        low = max(row["low"], least)
        high = min(row["high"], most)
        bar = _turned([low, high], [place, place], way)
        axes.plot(*bar, linewidth=2, solid_capstyle="butt", zorder=1.9, **shown)
        below, above = _HEADS[way]
        if row["low"] < least:
            _arrowhead(axes, _turned(low, place, way), below, ink)
        if row["high"] > most:
            _arrowhead(axes, _turned(high, place, way), above, ink)


def _limits(axes: Axes, rows: pd.DataFrame, way: str) -> tuple[float, float]:
    """The ends of an axis that was limited, widened to the rows' intervals; else infinite ones."""
    if getattr(axes, f"get_autoscale{way}_on")():
        return -math.inf, math.inf
    first, last = getattr(axes, f"get_{way}lim")()
    most = _FURTHEST * rows["value"]
    for end in rows["high"].clip(upper=most):
        if math.isfinite(end):
            last = max(last, 1.02 * end)
    getattr(axes, f"set_{way}lim")(first, last)
    return first, last


def _arrowhead(axes: Axes, point: tuple[Any, Any], marker: str, ink: str) -> None:
    """The end of an interval that is cut."""
    axes.scatter(*point, s=26, marker=marker, color=ink, clip_on=False)


def _is_sharp(row: Any) -> bool:
    """Whether a row has its colour: a difference may be small next to its interval."""
    n = row.get("n", FEWEST)
    if row["low"] <= 0 and n >= FEWEST:
        return True
    return is_sharp({**row, "n": n}, FEWEST)


def _turned(along: Any, across: Any, way: str) -> tuple[Any, Any]:
    """Places along the axis `way` and across it, as x and y."""
    return (along, across) if way == "x" else (across, along)


def _dots(
    axes: Axes,
    rows: pd.DataFrame,
    published: pd.DataFrame,
    y: str,
    hue: str | None,
    label: str | None,
) -> None:
    """A marker and a bar for each row, on the line of its category."""
    categories = [text.get_text() for text in axes.get_yticklabels()]
    places = map(float, axes.get_yticks())
    lines = dict(zip(categories, places, strict=True))
    lanes: list[object] = []
    inks = {}
    for name in rows[y]:
        inks[name] = own_ink(name) or BLUE
    if hue:
        inks = palette(rows[hue])
    if hue and hue != y:
        lanes += dict.fromkeys(rows[hue])
    rows = _on_lines(rows, y, lines)
    names = rows[hue or y].astype(object)
    rows["ink"] = names.map(inks)
    if lanes:
        middle = (len(lanes) - 1) / 2
        from_middle = names.map(lanes.index) - middle
        rows["at"] += from_middle * 0.8 / len(lanes)
    known = _on_lines(published, y, lines)
    _diamonds(axes, known["value"], known["at"])
    _marks(axes, rows, "x", 34)
    transform = axes.get_yaxis_transform()
    for _, row in rows.iterrows():
        text = quoting.figure_of(row)
        if label:
            text = str(row[label])
        ink = row["ink"] if _is_sharp(row) else VAGUE
        _beside(axes, text, row["at"], transform, ink)
    _, right = axes.get_xlim()
    beyond = known[known["value"] > right]
    for place in beyond["at"]:
        axes.scatter(right, place, marker=">", s=40, color=MUTED, clip_on=False)
    axes.grid(axis="y", visible=False)
    first = min(lines.values(), default=0)
    last = max(lines.values(), default=0)
    axes.set_ylim(last + 0.5, first - 0.5)


def _on_lines(frame: pd.DataFrame, y: str, lines: Mapping[str, float]) -> pd.DataFrame:
    """The rows whose category has a line, with its place as `at`."""
    categories = frame[y].astype(str)
    places = categories.map(lines).astype(float)
    return frame.assign(at=places).dropna(subset="at")


class End(NamedTuple):
    """The right end of a line: its height, its name, and its colour."""

    y: float
    text: str
    ink: str


def _curves(
    axes: Axes, rows: pd.DataFrame, x: str, hue: str | None, label: str | None
) -> list[End]:
    """A marker and a vertical bar for each row; returns the ends of the lines, for `name_ends`."""
    inks: dict[Any, str] = {}
    by = pd.Series("", rows.index)
    if hue:
        by = rows[hue]
        inks = palette(by)
    ends = []
    for name, line in rows.groupby(by, observed=True, sort=False):
        ink = inks.get(name, BLUE)
        line = line.assign(at=line[x], ink=ink)
        _marks(axes, line, "y", 20)
        end = line.sort_values(x).iloc[-1]
        text = end[label] if label else name
        _, symbol = MARKERS[ink]
        height = float(end["value"])
        ends.append(End(height, f"{symbol} {text}", ink))
    return ends


def _break_lines(axes: Axes) -> None:
    """Break lines over categories that have no value, such as releases that were not measured."""
    for line in axes.lines:
        drawn_x, drawn_y = line.get_data(orig=False)
        x = np.asarray(drawn_x, dtype=float)
        y = np.asarray(drawn_y, dtype=float)
        steps = np.diff(x)
        gaps = np.flatnonzero(steps > 1) + 1
        x = np.insert(x, gaps, math.nan)
        y = np.insert(y, gaps, math.nan)
        line.set_data(x, y)


def _diamonds(axes: Axes, x: pd.Series, y: pd.Series) -> None:
    """Published values, hollow and below ours."""
    axes.scatter(x, y, marker="D", s=46, facecolors="none", edgecolors=MUTED, zorder=1)


def name_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Name lines right of the axes, without overlaps."""
    labels = []
    for end in ends:
        if math.isfinite(end.y):
            height = _height(axes, end.y)
            labels.append(end._replace(y=height))
    labels.sort()
    places = _apart([label.y for label in labels])
    for place, label in zip(places, labels, strict=True):
        _beside(axes, label.text, place, "axes fraction", label.ink)


def _height(axes: Axes, y: float) -> float:
    """A value's place as a share of the axes' height."""
    left, _ = axes.get_xlim()
    point = axes.transData.transform((left, y))
    _, height = axes.transAxes.inverted().transform(point)
    return float(np.clip(height, 0, 1))


def _apart(places: list[float]) -> list[float]:
    """Heights in order, pushed apart until none overlap."""
    for _ in range(50):
        for i in range(1, len(places)):
            distance = places[i] - places[i - 1]
            half = (_GAP - distance) / 2
            if half > 5e-7:
                places[i - 1] -= half
                places[i] += half
    return places


def _beside(axes: Axes, text: str, y: float, units: Any, ink: str) -> None:
    """A text right of the axes, at a height in these units."""
    axes.annotate(
        text,
        (1, y),
        xycoords=units,
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        color=ink,
        fontsize=9,
    )
