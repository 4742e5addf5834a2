"""Every chart of every chapter as it is drawn: readable labels, and scales with names."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
from chapters import outputs
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import gccost
from gccost import paths
from gccost.showing import drawing
from gccost.showing.charts import Chart

CHAPTERS = sorted(path.stem for path in paths.NOTEBOOKS.glob("[01]*.ipynb"))
TOUCH = 1.0  # pixels by which two labels may meet


def beyond(figure: Figure) -> set[Text]:
    """The labels of ticks that lie beyond their axis, and are not drawn."""
    labels: set[Text] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    labels |= {tick.label1, tick.label2}
    return labels


def texts(figure: Figure) -> Iterator[Text]:
    """The labels that a reader sees."""
    for text in set(figure.findobj(Text)) - beyond(figure):
        if text.get_visible() and text.get_text().strip():
            yield text


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """The pairs of labels that lie on each other."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = {text: text.get_window_extent(renderer) for text in texts(figure)}
    shown = {text: box for text, box in boxes.items() if figure.bbox.overlaps(box)}
    pairs = []
    for (one, a), (other, b) in itertools.combinations(shown.items(), 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        if wide > TOUCH and high > TOUCH:
            pairs.append((one.get_text(), other.get_text()))
    return pairs


def unnamed(figure: Figure) -> list[str]:
    """The axes with a scale that is not linear, if no label of the figure names it."""
    beside = {
        "x": " ".join(filter(None, [figure.get_supxlabel()])),
        "y": " ".join(filter(None, [figure.get_supylabel()])),
    }
    for axes in figure.axes:
        beside["x"] += axes.get_xlabel()
        beside["y"] += axes.get_ylabel()
    return [
        f"{way} {getattr(axes, f'get_{way}scale')()}"
        for axes in figure.axes
        for way in ("x", "y")
        if getattr(axes, f"get_{way}scale")() != "linear" and "log" not in beside[way]
    ]


@pytest.fixture
def replay(monkeypatch) -> None:
    monkeypatch.setenv("GCCOST_MODE", "replay")


@pytest.mark.slow
@pytest.mark.usefixtures("replay")
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_label_lies_on_another_and_each_scale_has_its_name(chapter, monkeypatch):
    charts = [each for _, each in outputs(chapter, monkeypatch) if isinstance(each, Chart)]
    faults = {chart.name: (overlapping(chart.figure), unnamed(chart.figure)) for chart in charts}
    assert not {name: found for name, found in faults.items() if any(found)}


# --- the checks notice, and what `gccost.intervals` draws does it right ----------------

COSTS = pd.DataFrame(
    {
        "variant": "a",
        "release": ["Go 1.25", "Go 1.27"],
        "value": [1.0, 2.0],
        "low": 0.9,
        "high": 2.1,
    }
)


def drawn(monkeypatch: pytest.MonkeyPatch, **settings: object) -> Figure:
    """A chart of two releases, with one between them that has no value."""
    shown: list[Chart] = []
    monkeypatch.setattr(drawing, "display", shown.append)
    kinds = pd.CategoricalDtype(["Go 1.25", "Go 1.26", "Go 1.27"], ordered=True)
    costs = COSTS.assign(release=COSTS.release.astype(kinds), n=9)
    with gccost.chart("own", "A title", costs):
        grid = sns.relplot(costs, x="release", y="value", hue="variant", kind="line", legend=False)
        grid.ax.set_xticks(range(3), kinds.categories)
        grid.set(**settings)
        gccost.intervals(grid, costs, x="release", y="value", hue="variant")
    return shown[0].figure


def test_labels_that_touch_are_noticed(monkeypatch):
    figure = drawn(monkeypatch)
    assert not overlapping(figure)
    for place in (1.0, 1.01):
        figure.axes[0].text(place, 1.5, "on another")
    assert ("on another", "on another") in overlapping(figure)


def test_a_line_never_joins_what_was_not_measured(monkeypatch):
    [line] = [line for line in drawn(monkeypatch).axes[0].lines if len(line.get_xdata()) > 2]
    assert np.isnan(line.get_xdata(orig=False)).tolist() == [False, True, False]


@pytest.mark.parametrize(("scale", "name"), [("log", "(log)"), ("symlog", "(log above 2)")])
def test_a_scale_that_is_not_linear_has_its_name(monkeypatch, scale, name):
    figure = drawn(monkeypatch, yscale=scale, ylabel="time")
    assert figure.axes[0].get_ylabel() == f"time {name}"
    assert not unnamed(figure)
    figure.axes[0].set_ylabel("time")
    assert unnamed(figure) == [f"y {scale}"]
    plt.close(figure)
