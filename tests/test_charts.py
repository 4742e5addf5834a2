"""What a reader sees of a chart that is his own, in Jupyter and outside."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest
import seaborn as sns
from bs4 import BeautifulSoup

import gccost
from gccost import paths
from gccost.errors import GccostError
from gccost.showing import drawing, tables
from gccost.showing.charts import VAGUE

COSTS = pd.DataFrame({"variant": ["a", "b"], "value": [1.0, 2.0], "low": 1.0, "high": 2.0, "n": 3})


@pytest.fixture(autouse=True)
def theme() -> None:
    drawing.theme()


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (40, 900, "50 100 200 500"),
        (110, 600, "150 200 300 400 600"),
        (70, 96, "70 80 90"),
        (55, 90, "60 70 80 90"),
        (190, 380, "200 250 300 350"),
        (0.3, 4, "0.5 1 2"),
        (1, 1e6, None),
    ],
)
def test_a_log_axis_has_three_ticks_or_more_in_plain_numbers(monkeypatch, low, high, labels):
    shown = []
    monkeypatch.setattr(drawing, "display", shown.append)
    with gccost.chart("own", "A title", COSTS):
        _, axes = plt.subplots()
        axes.set(xscale="log", xlim=(low, high))
        axes.plot([low, high], [1, 2])
    axis = shown[0].figure.axes[0].xaxis
    ticks = [
        tick.label1.get_text() for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high
    ]
    assert len(ticks) >= 3
    assert ticks == (labels.split() if labels else ticks)
    assert not any("10^" in text for text in ticks)


def test_outside_jupyter_a_figure_prints_its_alt_text(capsys):
    with gccost.chart("own", "A title", COSTS):
        sns.scatterplot(COSTS, x="value", y="variant")
    assert capsys.readouterr().out == "A title. A chart of a: 1.00; b: 2.00.\n"


def test_alt_text_leaves_out_what_is_unknown():
    data = COSTS.assign(gc=pd.array([4, None], dtype="Int64"))
    assert drawing.alt_text(data) == "A chart of a, gc 4: 1.00; b: 2.00."


def test_alt_text_says_each_word_of_a_row_once():
    data = COSTS.assign(when=["early", "late"], line=["a, early", "b, late"], own=[True, False])
    data = data.assign(goroutines=[1, 2], procs=["1", "2"])
    spoken = "A chart of a, early, goroutines 1: 1.00; b, late, goroutines 2: 2.00."
    assert drawing.alt_text(data) == spoken


def test_a_figure_that_is_hardly_known_is_grey_and_has_its_label():
    figure, axes = plt.subplots()
    axes.set(yticks=[0, 1], yticklabels=COSTS["variant"])
    gccost.intervals(axes, COSTS.assign(low=[0.9, math.nan], high=[1.1, math.nan]))
    labels = [(text.get_text(), text.get_color() == VAGUE) for text in axes.texts]
    plt.close(figure)
    assert labels == [("1.00", False), ("2.00", True)]


@pytest.mark.parametrize("x", ["value", "size"])
def test_pointing_at_a_mark_shows_its_row(monkeypatch, x):
    data = COSTS.assign(variant=['a "b" <c>', "d"], low=[0.9, math.nan], size=[1, 2])
    shown = []
    monkeypatch.setattr(drawing, "display", shown.append)
    with gccost.chart("own", "A title", data):
        y = "variant" if x == "value" else "value"
        gccost.intervals(sns.scatterplot(data, x=x, y=y), data, x=x, y=y, hue="variant")
    said = [title.get_text() for title in BeautifulSoup(shown[0].svg, "html.parser")("title")]
    whole, unknown = 'a "b" <c>, size 1: 1.00 (0.900 to 2.00)', "d, size 2: 2 (3 processes)"
    assert sorted(said) == [whole, whole, unknown]


def test_a_part_without_a_row_makes_no_warning(monkeypatch):
    monkeypatch.setattr(drawing, "display", lambda chart: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in (COSTS, COSTS[:0]):
            with gccost.chart("own", "A title", data):
                sns.scatterplot(
                    COSTS[:0], x="value", y="variant", hue="variant", palette={"a": "red"}
                )


def test_a_chart_that_mixes_releases_names_them():
    both = pd.concat([COSTS.assign(release=f"Go 1.{n}") for n in (20, 27)], ignore_index=True)
    with pytest.raises(GccostError, match=r"several release .* choose one of Go 1\.20, Go 1\.27"):
        gccost.intervals(sns.scatterplot(both, x="value", y="variant"), both)


def test_the_numbers_of_rows_are_not_shown():
    assert "<th>1</th>" not in tables.of_frame(COSTS)
    assert "<th>b</th>" in tables.of_frame(COSTS.set_index("variant"))


def test_a_table_separates_thousands_and_has_intervals_below_their_figures():
    frame = pd.DataFrame(
        {"bytes": [1024, 64], "ns": ["1.47× (1.44 to 1.49)", "64 (a few)"], "n": [235990.5, 2.0]}
    )
    html = tables.of_frame(frame)
    for shown in ("<td>1,024<", "<td>235,990.5<", "<td>1.47×<br><small>1.44 to 1.49</small>"):
        assert shown in html
    assert "64 (a few)" in html
    counts = pd.DataFrame({"n": [2.0, math.nan], "mixed": [3.0, "none"], "ns": [1.0, 1.5]})
    html = tables.of_frame(counts)
    assert re.findall("<td>(.*?)</td>", html) == ["2", "3", "1.0", "–", "none", "1.5"]
    assert "<td>1999<" in tables.of_frame(pd.DataFrame({"year": [1999]}))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(-64, 550, "under 550"), (150, 190, "170 (150 to 190)"), (math.nan, math.nan, "170 (2 pro")],
)
def test_a_price_of_the_first_page_says_what_is_known(low, high, said):
    cells = nbformat.read(paths.NOTEBOOKS / "00-results.ipynb", as_version=4).cells
    [source] = [cell.source for cell in cells if cell.id == "added"]
    of: dict[str, Any] = {"pd": pd, "gccost": gccost}
    exec(source, of)  # noqa: S102
    row = {"value": 170.0, "low": low, "high": high, "n": 2 if math.isnan(low) else 9, "source": ""}
    assert of["known"](row, gccost.number).startswith(said)
