"""What a notebook's charts need beyond seaborn: intervals, direct labels, and finishing.

A chart is drawn by seaborn or matplotlib in its notebook's own cell:

    with gccost.chart("lemire-cost", "A finalizer costs …", costs):
        grid = sns.catplot(samples, x="ns", y="variant", row="release", kind="strip")
        gccost.intervals(grid, costs)
"""

from __future__ import annotations

import math
import os
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.core.getipython import get_ipython
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FuncFormatter,
    Locator,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    ScalarFormatter,
)

from gccost.costs.costs import COSTS, FEWEST, RECORDED, is_sharp
from gccost.errors import GccostError, expect
from gccost.files import write_whole
from gccost.judging import rounding
from gccost.showing import charts, provenance, quoting, tables
from gccost.showing.charts import BLUE, GREEN, INK, MARKERS, MUTED, ORANGE, PURPLE, VAGUE
from gccost.showing.tables import Prose

_FURTHEST = 3.0  # an interval is drawn up to this factor from its value
_ENDS = ["value", "low", "high"]
_HEADS = {"x": ("<", ">"), "y": ("v", "^")}  # of an interval that is cut
_GAP = 0.08  # the smallest distance of two lines' names, as a share of the axes' height
_TICKS = range(3, 8)  # their number on a logarithmic axis
_TITLE = 60  # characters of a line of a title
_NOT_BROKEN = re.compile(r" (?=%|[nµm]s\b|[kM]i?B\b|GB\b)|(?<=\bGo) ")  # spaces of a title
_FIGURES = [*COSTS, "label", "says"]  # columns that are no keys


def theme() -> None:
    """Give seaborn and matplotlib the charts' style; `gccost.open` does it.

    Frames are shown whole up to 200 rows, with a dash for what does not exist, and JupyterLab
    does not read their text as TeX.
    """
    pd.options.display.max_rows = 200
    pd.options.display.html.use_mathjax = False
    sns.set_theme(style="whitegrid", palette=_ORDER, rc=dict(charts.STYLE))
    shell = get_ipython()
    if shell and shell.display_formatter:
        formatters = shell.display_formatter.formatters
        formatters["text/html"].for_type(pd.DataFrame, tables.of_frame)
        for kind in (pd.DataFrame, pd.Series):
            formatters["text/plain"].for_type(kind, tables.print_frame)


# Inks with a meaning come last.
_ORDER = (BLUE, PURPLE, MUTED, INK, GREEN, ORANGE)
_INKS = {"manual": BLUE, "finali": ORANGE, "leanup": GREEN, "leaner": GREEN, "slab": INK}


def _own_ink(name: object) -> str:
    """The ink of a kind of variant; empty if it has none."""
    for part, ink in _INKS.items():
        if part in str(name):
            return ink
    return ""


def palette(names: Iterable[object]) -> dict[Any, str]:
    """An ink for each name, for seaborn's `palette`; up to six names have different ones.

    A manual free is blue, a finalizer orange, a cleanup green and a slab black where they can
    be. Each ink has a marker in `gccost.intervals`, so that no chart is told by colour alone.
    """
    # seaborn asks for the ink of every category, also of those without a row.
    unused = names.cat.categories if hasattr(names, "cat") else ()
    inks: dict[Any, str] = {}
    for name in dict.fromkeys([*names, *unused]):
        own = _own_ink(name)
        inks[name] = "" if own in inks.values() else own
    spare = [ink for ink in _ORDER if ink not in inks.values()]
    lacking = [name for name, ink in inks.items() if not ink]
    return inks | dict(zip(lacking, cycle(spare or _ORDER), strict=False))


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
    costs = costs.assign(says=_in_words(costs))
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
    rows = grid.axes.reshape(len(grid.axes), -1)
    return list(rows[:, -1])


def _check(frame: pd.DataFrame, name: str, *columns: str | None) -> None:
    for column in filter(None, columns):
        expect(frame, column, f"column of {name}", "gccost.intervals")


def _check_one(rows: pd.DataFrame, drawn: list[str]) -> None:
    """Raise GccostError if rows of one place differ in a key that the chart does not show."""
    mixed = rows[rows.duplicated(drawn, keep=False)]
    for name in mixed.columns.difference(drawn):
        if _tells_apart(mixed[name]):
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
    names = [name for each in ("_row_var", "_col_var") if (name := getattr(grid, each, None))]
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


def _in_words(costs: pd.DataFrame) -> list[str]:
    """Each row in words: its keys, and its value with its interval."""
    keys = _keys(costs)
    says = []
    for row in costs.to_dict("records"):
        named = ", ".join(_words(row, keys))
        figure = {name: row[name] for name in _ENDS}
        says.append(f"{named}: {quoting.number(figure)}")
    return says


def _keys(frame: pd.DataFrame) -> list[str]:
    """The columns that tell a frame's rows apart."""
    return [str(column) for column in frame if _tells_apart(frame[column])]


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
    furthest = rows["high"].clip(upper=_FURTHEST * rows["value"])
    ends = [1.02 * end for end in furthest if math.isfinite(end)]
    last = max([last, *ends])
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
    inks = {name: _own_ink(name) or BLUE for name in rows[y]}
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
        text = str(row[label]) if label else quoting.figure_of(row)
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


def _curves(
    axes: Axes, rows: pd.DataFrame, x: str, hue: str | None, label: str | None
) -> list[tuple[float, str, str]]:
    """A marker and a vertical bar for each row; returns the ends of the lines, for `name_ends`."""
    inks = palette(rows[hue]) if hue else {}
    by = rows[hue] if hue else pd.Series("", rows.index)
    ends = []
    for name, line in rows.groupby(by, observed=True, sort=False):
        ink = inks.get(name, BLUE)
        line = line.assign(at=line[x], ink=ink)
        _marks(axes, line, "y", 20)
        end = line.sort_values(x).iloc[-1]
        text = end[label] if label else name
        _, symbol = MARKERS[ink]
        height = float(end["value"])
        ends.append((height, f"{symbol} {text}", ink))
    return ends


def _break_lines(axes: Axes) -> None:
    """Break lines over categories that have no value, such as releases that were not measured."""
    for line in axes.lines:
        drawn_x, drawn_y = line.get_data(orig=False)
        x = np.asarray(drawn_x, dtype=float)
        y = np.asarray(drawn_y, dtype=float)
        gaps = np.flatnonzero(np.diff(x) > 1) + 1
        x = np.insert(x, gaps, math.nan)
        y = np.insert(y, gaps, math.nan)
        line.set_data(x, y)


def _diamonds(axes: Axes, x: pd.Series, y: pd.Series) -> None:
    """Published values, hollow and below ours."""
    axes.scatter(x, y, marker="D", s=46, facecolors="none", edgecolors=MUTED, zorder=1)


def name_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Name lines (y at their ends, name, colour) right of the axes, without overlaps."""
    labels = []
    for y, text, ink in ends:
        if math.isfinite(y):
            labels.append((_height(axes, y), text, ink))
    labels.sort()
    places = _apart([height for height, *_ in labels])
    for place, (_, text, ink) in zip(places, labels, strict=True):
        _beside(axes, text, place, "axes fraction", ink)


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
            lack = _GAP - (places[i] - places[i - 1])
            if lack > 1e-6:
                places[i - 1] -= lack / 2
                places[i] += lack / 2
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


# --- A finished figure ------------------------------------------------------------


@contextmanager
def chart(name: str, title: str, data: pd.DataFrame) -> Iterator[None]:
    """Finish the figure that the block draws: title, alt text, data, and the SVG for the page.

    `name` names its file, `title` states the finding, `data` is its CSV file: the frame that
    the chart shows. A note below the chart names what is recorded. Without data there is no chart
    but a line of text that says so, whatever the block raises or warns of.
    """
    data = tables.visible(data, run=True)
    shown = data["value"].notna().any() if "value" in data else len(data)
    before = plt.get_fignums()
    try:
        with (
            warnings.catch_warnings(record=not shown),
            nullcontext() if shown else suppress(Exception),
            _laid_out_later(),
        ):
            warnings.filterwarnings("ignore", "Ignoring `palette`")  # a part has no row
            yield
        drawn = [number for number in plt.get_fignums() if number not in before]
        if not shown:
            display(Prose(f"*No run has data for this chart ({name}).*"))
        elif not drawn:
            hint = "draw with seaborn or matplotlib's pyplot inside the with block"
            raise GccostError("the block drew no figure", f"gccost.chart({name!r})", hint)
        else:
            _show(plt.figure(drawn[-1]), name, title, data)
            if note := _recorded(data):
                display(Prose(note))
    finally:
        for number in set(plt.get_fignums()).difference(before):
            plt.close(number)


def table(shown: pd.DataFrame, *of: pd.DataFrame) -> None:
    """Display a table, and beneath it which of its figures are recorded.

    `of` are the frames of costs, samples or calls that it was made from. A table that has their
    column `source` needs no such line.

        gccost.table(costs.pivot(index="variant", columns="release", values="value"), costs)
    """
    display(shown)
    keys = [_keys_of(frame) for frame in of]
    of_cases = pd.concat(keys).drop_duplicates()
    note = _recorded(of_cases)
    if note:
        display(Prose(note))


def _keys_of(figures: pd.DataFrame) -> pd.DataFrame:
    """The columns of figures that tell cases apart, and their source and run."""
    if any(figures.index.names):
        figures = figures.reset_index()
    keys = figures.select_dtypes(exclude="float")
    return keys.drop(columns=["figure", "rounds", "n", "round", "differs"], errors="ignore")


def _recorded(data: pd.DataFrame) -> str:
    """A note on the rows of a chart or table that are recorded; empty if there are none."""
    rows = data[data["source"] == RECORDED] if "source" in data else data[:0]
    if rows.empty:
        return ""
    start = " on ".join(["Recorded", *_machines(rows)])
    if len(rows) == len(data):
        return f"*{start}.*"
    keys = _keys(data.drop(columns="source"))
    named: dict[str, None] = {}
    for row in rows.to_dict("records"):
        words = ", ".join(_words(row, keys))
        named[words] = None
    return f"*{start}: {'; '.join(named)}.*"


def _machines(rows: pd.DataFrame) -> list[str]:
    """The machines of recorded rows, in words."""
    if "run" not in rows:
        return []
    found = provenance.machines(rows["run"].unique())
    return [" and ".join(found)] if found else []


@contextmanager
def _laid_out_later() -> Iterator[None]:
    """Without seaborn's own layouts, each of which draws the figure, and moves the final one."""
    with (
        mock.patch.object(sns.FacetGrid, "tight_layout"),
        mock.patch.object(sns.axisgrid, "_draw_figure"),
    ):
        yield


def _show(drawn: Figure, name: str, title: str, data: pd.DataFrame) -> None:
    """Lay a figure out, give it its title, and display it; write it if it is asked for."""
    drawn.set_layout_engine("constrained")
    drawn.set_figwidth(charts.WIDTH)
    for axes in drawn.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                _label_log(axis)
            elif axis.get_scale() == "symlog":
                curve: Any = axis.get_transform()
                _say(axis, f"log above {curve.linthresh:g}")
            elif isinstance(axis.get_major_formatter(), ScalarFormatter):
                axis.set_major_formatter(FuncFormatter(_plain_tick))
    title = quoting.whole(title) or "Measured values"
    unbroken = _NOT_BROKEN.sub("\u00a0", title)
    lines = "\n".join(textwrap.wrap(unbroken, _TITLE))
    drawn.suptitle(lines, x=0.01, ha="left", fontsize=11, fontweight="bold")
    chart = charts.finish(drawn, name=name, title=title, alt=alt_text(data), data=data)
    display(chart)
    folder = os.environ.get(charts.PICTURES)
    if folder and name in charts.STORY:
        write_whole(Path(folder, f"{name}.png"), chart.png)


def _label_log(axis: Axis) -> None:
    """Ticks as plain numbers, three or more, unless others were set; the label says "log"."""
    if isinstance(axis.get_major_locator(), LogLocator):
        axis.set_major_locator(_log_ticks(*axis.get_view_interval()))
    axis.set_major_formatter(FuncFormatter(_plain_tick))
    axis.set_minor_formatter(NullFormatter())
    _say(axis, "log")


def _say(axis: Axis, scale: str) -> None:
    """Name an axis's scale in its label, if it has a label and that does not name one."""
    label = axis.get_label_text()
    if not label or "log" in label:
        return
    named = f"{label} ({scale})"
    if label.endswith(")"):
        named = f"{label[:-1]}, {scale})"
    axis.set_label_text(named)


def _log_ticks(low: float, high: float) -> Locator:
    """Ticks at 1, 2 and 5 between two values, or others if these are too few or would touch."""
    for subs in ((1, 2, 5), (1,), (1, 1.5, 2, 3, 4, 6, 8)):
        ticks = LogLocator(subs=subs, numticks=9)
        # LogLocator itself puts ticks elsewhere if it has too few.
        drawn = ticks.tick_values(low, high)
        shown = [tick for tick in drawn if low <= tick <= high]
        leading = {_leading(tick) for tick in shown}
        if len(shown) in _TICKS and leading.issubset(subs):
            return ticks
    return MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])


def _leading(value: float) -> float:
    """A value between 1 and 10: the value without its power of ten."""
    return float(f"{value:.9e}".partition("e")[0])


def _plain_tick(value: float, _: object) -> str:
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"
    return text.replace("-", "\N{MINUS SIGN}")


_SPOKEN = 40  # rows of a chart that its alt text lists; of more it tells the ends


def alt_text(data: pd.DataFrame) -> str:
    """A chart in words: its rows, with the values of each."""
    if "value" not in data:
        return f"A chart of {len(data)} rows; its data are in the table."
    known = data.dropna(subset="value")
    keys = _keys(data)
    listed = [_spoken(row, keys) for row in known.to_dict("records")]
    if len(listed) > _SPOKEN:
        middle = len(known) // 2
        few = known.sort_values("value").iloc[[0, middle, -1]]
        listed = [f"{len(known)} values, among them"]
        listed += [_spoken(row, keys) for row in few.to_dict("records")]
    return "A chart of " + "; ".join(listed) + "."


def _tells_apart(column: pd.Series) -> bool:
    """Whether a chart's rows differ in a column, which is a key and no figure."""
    name = str(column.name)
    if name in _FIGURES or name.endswith(("_low", "_high")):
        return False
    if column.nunique(dropna=False) < 2:
        return False
    if not pd.api.types.is_float_dtype(column):
        return True
    return bool((column % 1 == 0).all())


def _spoken(row: Mapping[Any, Any], keys: Sequence[str]) -> str:
    """A row in words: its keys and its value."""
    words = ", ".join(_words(row, keys))
    value = rounding.plain(float(row["value"]))
    return f"{words}: {value}" if words else value


def _words(row: Mapping[Any, Any], keys: Sequence[str]) -> list[str]:
    """A row's keys in words."""
    words: list[str] = []
    parts: set[str] = set()  # a column such as "Go 1.20, busy" has the words of two others
    for key in keys:
        value = row[key]
        if isinstance(value, bool) or pd.isna(value):
            continue
        if isinstance(value, int | float):
            words.append(f"{key} {value:,.0f}")
            parts.add(f"{value:.0f}")
        else:
            text = " ".join(str(value).split())  # a label may have line breaks
            words.append(text)
            parts.update(text.split(", ") if ", " in text else ())
    return [each for each in dict.fromkeys(words) if each not in parts]


theme()  # a study may have been opened before anything was loaded that draws
