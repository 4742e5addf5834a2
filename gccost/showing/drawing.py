"""What finishes a notebook's chart or table: title, ticks, alt text, data, what is recorded.

A chart is drawn by seaborn or matplotlib in its notebook's own cell:

    with gccost.chart("lemire-cost", "A finalizer costs …", costs):
        grid = sns.catplot(samples, x="ns", y="variant", row="release", kind="strip")
        gccost.intervals(grid, costs)
"""

from __future__ import annotations

import os
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from IPython.core.getipython import get_ipython
from IPython.display import display
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

from gccost.costs.costs import RECORDED
from gccost.errors import GccostError
from gccost.files import write_whole
from gccost.showing import charts, inks, provenance, quoting, tables
from gccost.showing.rows import keys_of, with_value, words
from gccost.showing.tables import Prose

_TICKS = range(3, 8)  # their number on a logarithmic axis
_TITLE = 60  # characters of a line of a title
_NOT_BROKEN = re.compile(r" (?=%|[nµm]s\b|[kM]i?B\b|GB\b)|(?<=\bGo) ")  # spaces of a title


def theme() -> None:
    """Give seaborn and matplotlib the charts' style; `gccost.open` does it.

    Frames are shown whole up to 200 rows, with a dash for what does not exist, and JupyterLab
    does not read their text as TeX.
    """
    pd.options.display.max_rows = 200
    pd.options.display.html.use_mathjax = False
    sns.set_theme(style="whitegrid", palette=inks.ORDER, rc=dict(charts.STYLE))
    shell = get_ipython()
    if shell and shell.display_formatter:
        formatters = shell.display_formatter.formatters
        formatters["text/html"].for_type(pd.DataFrame, tables.of_frame)
        for kind in (pd.DataFrame, pd.Series):
            formatters["text/plain"].for_type(kind, tables.print_frame)


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
    keys = keys_of(data.drop(columns="source"))
    named: dict[str, None] = {}
    for row in rows.to_dict("records"):
        named[", ".join(words(row, keys))] = None
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
    keys = keys_of(data)
    listed = [with_value(row, keys) for row in known.to_dict("records")]
    if len(listed) > _SPOKEN:
        middle = len(known) // 2
        few = known.sort_values("value").iloc[[0, middle, -1]]
        listed = [f"{len(known)} values, among them"]
        listed += [with_value(row, keys) for row in few.to_dict("records")]
    return "A chart of " + "; ".join(listed) + "."


theme()  # a study may have been opened before anything was loaded that draws
