"""What a notebook's charts need beyond seaborn: intervals, direct labels, and finishing.

A chart is drawn by seaborn or matplotlib in its notebook's own cell:

    with gccost.figure("lemire-cost", "A finalizer costs …", costs):
        grid = sns.catplot(samples, x="quiet_ns", y="variant", row="release", kind="strip")
        gccost.intervals(grid, costs)
"""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from gccost import rounding
from gccost.errors import GccostError, nearest
from gccost.files import write_whole
from gccost.showing import figures
from gccost.showing.figures import BLUE, GREEN, INK, MARKERS, MUTED, ORANGE, PURPLE
from gccost.showing.tables import Prose

FEWEST, WIDEST = 3, 4.0  # processes, and high over low, of a figure that is quoted
TOO_FEW = "too few samples"  # in place of any other
_FURTHEST = 3.0  # an interval is drawn up to this factor from its value
_HEADS = {"x": "<>", "y": "v^"}  # of an interval that is cut
_GAP = 0.08  # the smallest distance of two lines' names, as a share of the axes' height
_TITLE = 72  # characters of a line of a title


def theme() -> None:
    """Give seaborn and matplotlib the charts' style; `gccost.open` does it.

    Frames are shown whole up to 200 rows, and JupyterLab does not read their text as TeX.
    """
    pd.options.display.max_rows = 200
    pd.options.display.html.use_mathjax = False
    sns.set_theme(style="whitegrid", rc=dict(figures.STYLE))


def quotable(row: Any) -> bool:
    """Whether a figure is measured well enough to be quoted.

    It needs three processes, and an interval that spans less than a factor of 4.
    """
    value, low, high, n = (row.get(name, math.nan) for name in ("value", "low", "high", "n"))
    if pd.isna(value) or n < FEWEST or pd.isna(low):
        return False
    return not (low > 0 and high / low > WIDEST)


_INKS = {"manual": BLUE, "finali": ORANGE, "leanup": GREEN, "leaner": GREEN, "slab": INK}


def _own_ink(name: object) -> str:
    """The ink of a kind of variant; empty if it has none."""
    return next((ink for part, ink in _INKS.items() if part in str(name)), "")


def palette(names: Iterable[object]) -> dict[Any, str]:
    """An ink for each name, for seaborn's `palette`; up to six names have different ones.

    A manual free is blue, a finalizer orange, a cleanup green and a slab black where they can
    be. Each ink has a marker (see `markers`), so that no chart is told by colour alone.
    """
    inks = (BLUE, ORANGE, GREEN, PURPLE, INK, MUTED)
    found: dict[Any, str] = {}
    # seaborn asks for the ink of every category, also of those without a row.
    unused = names.cat.categories if hasattr(names, "cat") else ()
    wanted = list(dict.fromkeys([*names, *unused]))
    for name in wanted:
        own = _own_ink(name)
        if own and own not in found.values():
            found[name] = own
    for i, name in enumerate(wanted):
        free = [ink for ink in inks if ink not in found.values()] or [inks[i % len(inks)]]
        found.setdefault(name, free[0])
    return {name: found[name] for name in wanted}


def markers(names: Iterable[object]) -> dict[Any, str]:
    """The marker of each name's ink, for seaborn's `markers`."""
    return {name: MARKERS[ink][0] for name, ink in palette(names).items()}


# --- Intervals and labels ---------------------------------------------------------


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
    of numbers, as in `relplot`: each row gets a bar, and each `hue` its name at the right end.
    `label` is a column with other text. `published` has published values with the same key
    columns: hollow diamonds. Set scales and limits before.

    An interval is cut, and ends in an arrowhead, where it reaches beyond the axes, above three
    times its value, or on a log axis below a third of it.
    """
    frames = [costs] if published is None else [costs, published]
    for frame in frames:
        for column in {x, y, *([hue] if hue else [])} - set(frame.columns):
            if frame is costs or column in (x, y):
                where = "costs" if frame is costs else "published"
                hint = nearest(column, frame.columns)
                raise GccostError(f"{where} have no column {column!r}", "gccost.intervals", hint)
    # The axes right of which there are no others, which name the lines of their row.
    last = [grid] if isinstance(grid, Axes) else list(grid.axes.reshape(len(grid.axes), -1)[:, -1])
    for axes, rows, theirs in _facets(grid, costs, published):
        if x == "value":
            _dots(axes, rows, theirs, y, hue, label)
        else:
            ends = _curves(axes, rows, theirs, x, hue, label)
            if axes in last:
                name_ends(axes, ends)


def _facets(
    grid: sns.FacetGrid | Axes, costs: pd.DataFrame, published: pd.DataFrame | None
) -> Iterator[tuple[Axes, pd.DataFrame, pd.DataFrame]]:
    """Each axes with the rows of its facet."""
    theirs = pd.DataFrame(columns=costs.columns) if published is None else published
    if isinstance(grid, Axes):
        yield grid, costs, theirs
        return
    names = [
        name for name in (getattr(grid, "_row_var", ""), getattr(grid, "_col_var", "")) if name
    ]
    if not names:
        yield grid.ax, costs, theirs
    for key, axes in grid.axes_dict.items():
        wanted = dict(zip(names, key if isinstance(key, tuple) else (key,), strict=True))
        yield axes, _where(costs, wanted), _where(theirs, wanted)


def _where(frame: pd.DataFrame, wanted: dict[str, Any]) -> pd.DataFrame:
    """The rows of a facet; a column that the frame lacks does not select."""
    for name, value in wanted.items():
        if name in frame:
            frame = frame[frame[name] == value]
    return frame


def _bars(
    axes: Axes, rows: pd.DataFrame, places: Sequence[float], inks: Sequence[str], way: str
) -> None:
    """The intervals of rows along the axis `way` ("x" or "y"), at places on the other."""
    log = getattr(axes, f"get_{way}scale")() == "log"
    first, last = -math.inf, math.inf
    if not getattr(axes, f"get_autoscale{way}_on")():
        first, last = getattr(axes, f"get_{way}lim")()
        most = [min(row["high"], _FURTHEST * row["value"]) for _, row in rows.iterrows()]
        last = max([last, *(1.02 * end for end in most if math.isfinite(end))])
        getattr(axes, f"set_{way}lim")(first, last)
    for at, ink, (_, row) in zip(places, inks, rows.iterrows(), strict=True):
        value, low, high = (float(row[name]) for name in ("value", "low", "high"))
        if math.isnan(low):
            continue
        least = max(first, value / _FURTHEST) if log else first
        furthest = min(last, value * _FURTHEST) if value > 0 else last
        ends = max(low, least), min(high, furthest)
        line = (ends, [at, at]) if way == "x" else ([at, at], ends)
        axes.plot(*line, color=ink, linewidth=2, solid_capstyle="butt", zorder=1.9)
        for end, cut, marker in zip(ends, (low < least, high > furthest), _HEADS[way], strict=True):
            if cut:
                x, y = (end, at) if way == "x" else (at, end)
                axes.scatter(x, y, s=26, marker=marker, color=ink, clip_on=False)


def _dots(
    axes: Axes,
    rows: pd.DataFrame,
    published: pd.DataFrame,
    y: str,
    hue: str | None,
    label: str | None,
) -> None:
    """A marker and a bar for each row, on the line of its category."""
    lines = {text.get_text(): at for text, at in _categories(axes)}
    inks = palette(rows[hue]) if hue else {name: _own_ink(name) or BLUE for name in rows[y]}
    lanes = list(dict.fromkeys(rows[hue])) if hue and hue != y else [None]
    rows = rows[rows[y].astype(str).isin(lines)]
    known = published[published[y].astype(str).isin(lines)] if len(published) else published
    _diamonds(axes, known["value"], [lines[str(name)] for name in known[y]])
    places = []
    for _, row in rows.iterrows():
        lane = lanes.index(row[hue]) if hue and len(lanes) > 1 else 0
        places.append(lines[str(row[y])] + (lane - (len(lanes) - 1) / 2) * 0.8 / len(lanes))
    drawn = [inks[name] for name in rows[hue or y]]
    _bars(axes, rows, places, drawn, "x")
    for at, ink, (_, row) in zip(places, drawn, rows.iterrows(), strict=True):
        axes.scatter([row["value"]], [at], s=34, marker=MARKERS[ink][0], color=ink, zorder=3)
        text = str(row[label]) if label else figure_of(row)
        axes.annotate(
            text,
            (1, at),
            xycoords=axes.get_yaxis_transform(),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=ink,
            fontsize=9,
        )
    right = axes.get_xlim()[1]
    for _, row in known[known["value"] > right].iterrows():
        at = lines[str(row[y])]
        axes.scatter(right, at, marker=">", s=40, color=PURPLE, clip_on=False)
    axes.grid(axis="y", visible=False)
    axes.set_ylim(max(lines.values(), default=0) + 0.5, min(lines.values(), default=0) - 0.5)


def _categories(axes: Axes) -> Iterator[tuple[Any, float]]:
    ticks = zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)
    return ((text, float(at)) for text, at in ticks)


def figure_of(row: Any) -> str:
    """A row's value for a label: three digits, or that there are too few samples."""
    return rounding.plain(float(row["value"])) if quotable(row) else TOO_FEW


def _curves(
    axes: Axes,
    rows: pd.DataFrame,
    published: pd.DataFrame,
    x: str,
    hue: str | None,
    label: str | None,
) -> list[tuple[float, str, str]]:
    """A marker and a vertical bar for each row; returns the ends of the lines, for `name_ends`."""
    inks = palette(rows[hue]) if hue else {}
    last: list[tuple[float, str, str]] = []
    lines = rows.groupby(hue, observed=True, sort=False) if hue else [("", rows)]
    for name, line in lines:
        ink = inks.get(name, BLUE)
        _bars(axes, line, list(line[x]), [ink] * len(line), "y")
        axes.scatter(line[x], line["value"], s=20, marker=MARKERS[ink][0], color=ink, zorder=3)
        end = line.sort_values(x).iloc[-1]
        text = str(end[label]) if label else str(name)
        last.append((float(end["value"]), f"{MARKERS[ink][1]} {text}", ink))
    _diamonds(axes, published[x], published["value"]) if len(published) else None
    return last if hue else []


def _diamonds(axes: Axes, x: Iterable[float], y: Iterable[float]) -> None:
    """Published values, hollow and below ours."""
    axes.scatter(list(x), list(y), marker="D", s=46, facecolors="none", edgecolors=PURPLE, zorder=1)


def name_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Name lines (y at their ends, name, colour) right of the axes, without overlaps."""

    def share(y: float) -> float:
        at = axes.transData.transform((axes.get_xlim()[0], y))
        return float(np.clip(axes.transAxes.inverted().transform(at)[1], 0, 1))

    named = sorted((share(y), text, ink) for y, text, ink in ends if math.isfinite(y))
    places = [at for at, *_ in named]
    for _ in range(50):  # push neighbours apart until none overlap
        for i in range(1, len(places)):
            if (lack := _GAP - (places[i] - places[i - 1])) > 1e-6:
                places[i - 1] -= lack / 2
                places[i] += lack / 2
    for at, (_, text, ink) in zip(places, named, strict=True):
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


# --- A finished figure ------------------------------------------------------------


@contextmanager
def figure(name: str, title: str, data: pd.DataFrame) -> Iterator[None]:
    """Finish the figure that the block draws: title, alt text, data, and the SVG for the page.

    `name` names its file, `title` states the finding, `data` is its CSV file: the frame that
    the chart shows. Without data there is no chart but a line of text that says so, whatever
    the block raises.
    """
    values = data["value"] if "value" in data else pd.Series(range(len(data)), dtype=float)
    empty = not values.notna().any()
    before = set(plt.get_fignums())
    try:
        # They draw the figure to lay it out, which is done below.
        drawing = (sns.FacetGrid, "tight_layout"), (sns.axisgrid, "_draw_figure")
        with mock.patch.object(*drawing[0]), mock.patch.object(*drawing[1]):
            yield
    except Exception:
        if not empty:
            raise
    drawn = [number for number in plt.get_fignums() if number not in before]
    try:
        if empty:
            display(Prose(f"*Nothing to draw ({name}): it was not measured.*"))
        elif not drawn:
            hint = "draw with seaborn or matplotlib's pyplot inside the with block"
            raise GccostError("the block drew no figure", f"gccost.figure({name!r})", hint)
        else:
            shown = plt.figure(drawn[-1])
            shown.set_layout_engine("constrained")
            shown.set_figwidth(figures.WIDTH)
            for axes in shown.axes:
                for axis in (axes.xaxis, axes.yaxis):
                    if axis.get_scale() == "log":
                        if isinstance(axis.get_major_locator(), LogLocator):  # no ticks were set
                            axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9))
                        axis.set_major_formatter(FuncFormatter(_plain_tick))
                        axis.set_minor_formatter(NullFormatter())
                        if (label := axis.get_label_text()) and "log" not in label:
                            at = len(label) - label.endswith(")")
                            log = f", log{label[at:]}" if label[at:] else " (log)"
                            axis.set_label_text(label[:at] + log)
            if TOO_FEW in title:  # in place of the finding
                title = f"{name}: {TOO_FEW} for a finding"
            text = re.sub(r" (?=%|[nµm]s\b|[kM]i?B\b|GB\b)|(?<=\bGo) ", "\u00a0", title)
            lines = "\n".join(textwrap.wrap(text, _TITLE))
            shown.suptitle(lines, x=0.01, ha="left", fontsize=11, fontweight="bold")
            chart = figures.finish(shown, name=name, title=title, alt=alt_text(data), data=data)
            display(chart)
            into = os.environ.get(figures.PICTURES)
            if into and name in figures.STORY:
                write_whole(Path(into) / f"{name}.svg", figures.as_file(chart.svg).encode())
                write_whole(Path(into) / f"{name}.png", chart.png)
    finally:
        for number in drawn:
            plt.close(number)


def _plain_tick(value: float, _: object) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


_SPOKEN = 40  # rows of a chart that its alt text lists; of more it tells the ends


def alt_text(data: pd.DataFrame) -> str:
    """A chart in words: its rows, with the values of each."""
    if "value" not in data:
        return f"A chart of {len(data)} rows; its data are in the table."
    names = [
        column
        for column in data.columns
        if column not in ("value", "low", "high", "rounds", "n", "label")
        and len(data[column].drop_duplicates()) > 1
        and not str(column).endswith(("_low", "_high"))
    ]
    whole = [n for n in names if pd.api.types.is_float_dtype(data[n]) and (data[n] % 1 == 0).all()]
    keys = [n for n in names if n in whole or not pd.api.types.is_float_dtype(data[n])]

    def told(row: Any) -> str:
        named = ", ".join(
            f"{row[key]:g} {key}" if key in whole else str(row[key])
            for key in keys
            if pd.notna(row[key])
        )
        return f"{named}: {rounding.plain(float(row['value']))}".removeprefix(": ")

    known = data[data["value"].notna()]
    listed = [told(row) for _, row in known.iterrows()]
    if len(listed) > _SPOKEN:
        few = known.sort_values("value").iloc[[0, len(known) // 2, -1]]
        listed = [f"{len(known)} values, among them", *(told(row) for _, row in few.iterrows())]
    return "A chart of " + "; ".join(listed) + "."
