"""Every chapter: what its cells look like, and that it runs on whatever was recorded."""

from __future__ import annotations

import io
import os
import random
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
import recordings
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from gccost import paths
from gccost.cases import versions
from gccost.judging.claims import Study
from gccost.showing import drawing, intervals
from gccost.showing.charts import Chart
from gccost.studies import STUDIES

CHAPTERS = sorted(path.stem for path in paths.NOTEBOOKS.glob("[01]*.ipynb"))
LONGEST, WIDEST = 20, 100


def code(chapter: str) -> list[str]:
    node = nbformat.read(paths.NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    return [cell.source for cell in node.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_short_ordinary_code(chapter):
    cells = code(chapter)
    for cell in cells:
        lines = [line for line in cell.splitlines() if line.strip()]
        assert len(lines) <= LONGEST, cell
        assert max(map(len, lines)) <= WIDEST, cell
        assert not re.search(r"^\s*(from|import) gccost\.|^\s*from gccost import", cell, re.M), cell
    if chapter[:2] not in ("00", "11"):
        assert any("sns." in cell for cell in cells)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_sentence_has_no_condition(chapter):
    for cell in code(chapter):
        if "gccost.prose(" in cell:
            assert not re.search(r"^\s*(if|else|elif)\b| if .* else ", cell, re.M), cell


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_link_in_brackets_names_its_file(chapter):
    """Or the report, which writes the path after the link, has brackets in brackets."""
    node = nbformat.read(paths.NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in node.cells)
    for named, path in re.findall(r"\(\[([^\]]*)\]\(\.\./([^)#]*)", text):
        assert path in named, text


# --- On recordings that differ --------------------------------------------------------


def of(releases: Iterable[str]) -> list[str]:
    """Patterns of the names of all samples of some releases."""
    names = (name for release in releases for name in versions.keyed(release).items())
    return [rf"\b{key}={re.escape(value)}\b" for key, value in names]


TODAY = {versions.today(study.document) for study in STUDIES.values()}
THEN = {study.document for study in STUDIES.values()} - TODAY
# What is recorded, and what is then cut out.
RECORDINGS: dict[str, tuple[dict[str, int], list[str]]] = {
    "whole, 48 CPUs": ({"rounds": 3, "cpus": 48}, []),
    "two rounds, without today": ({"rounds": 2}, of(TODAY)),
    "without the documents' releases": ({"rounds": 3}, of(THEN)),
    "empty": ({"rounds": 0}, []),
}
# Of the variant left out. CI draws the same one each time: it should fail for a change only.
DRAWN = 1 if "CI" in os.environ else random.randrange(10**6)
SEED = int(os.environ.get("GCCOST_SEED", DRAWN))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Callable[[str], Path]:
    """The folder of a recording of all studies, made once."""
    made: dict[str, Path] = {}

    def record(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("reference")
            for study in STUDIES:
                recordings.record(made[name], study, **RECORDINGS[name][0])
        return made[name]

    return record


NO_POINTS = {"weimer-heaps", "releases"}  # heat maps


def of_chapter(chapter: str) -> list[Study]:
    """The studies of a chapter; of one about all studies, all of them."""
    return [s for s in STUDIES.values() if chapter in s.notebooks] or list(STUDIES.values())


def drawn(figure: Figure) -> Iterator[np.ndarray]:
    """The coordinates of all points, lines and bars of a figure."""
    for axes in figure.axes:
        for line in axes.lines:
            yield np.ravel(line.get_xydata())
        for points in axes.collections:
            yield np.ravel(np.ma.filled(points.get_offsets(), np.nan))
            yield from (np.ravel(path.vertices) for path in points.get_paths())
        for patch in axes.patches:
            yield np.ravel(patch.get_bbox().get_points()) if hasattr(patch, "get_bbox") else []


def displayed(chapter: str, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What a chapter displays when all its cells are run on the recorded runs."""
    monkeypatch.setenv("GCCOST_MODE", "replay")
    monkeypatch.chdir(paths.NOTEBOOKS)
    shown: list[object] = []
    monkeypatch.setattr(drawing, "display", shown.append)
    namespace: dict[str, object] = {"display": shown.append}
    # What is drawn is not written, which takes half of the time; test_replay does it.
    monkeypatch.setattr(FigureCanvasSVG, "print_svg", lambda _, to, **__: to.write("<svg>"))
    with plt.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("error")  # a reader would see it
        for number, cell in enumerate(code(chapter), 1):
            exec(compile(cell, f"{chapter}, cell {number}", "exec"), namespace)  # noqa: S102
    plt.close("all")
    return shown


def test_an_interval_that_is_cut_ends_in_an_arrowhead():
    rows = pd.DataFrame(
        {"variant": ["cut", "whole"], "value": 1.0, "low": [0.5, 0.9], "high": [9.0, 1.1], "n": 4}
    )
    axes = plt.figure().subplots()
    axes.set(xlim=(0.8, 2), yticks=[0, 1], yticklabels=rows["variant"])
    intervals.intervals(axes, rows)
    heads = [points.get_offsets()[0] for points in axes.collections if not points.get_clip_on()]
    plt.close("all")
    assert [tuple(map(float, head)) for head in heads] == [(0.8, 0), (3.0, 0)]


def test_the_results_are_shown_for_a_study_without_claims(tmp_path, monkeypatch):
    monkeypatch.setenv("GCCOST_ONLY", "releases")
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path))
    recordings.record(tmp_path, "releases", rounds=3)
    assert not STUDIES["releases"].claims
    displayed("00-results", monkeypatch)  # or raises


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_runs_on(chapter, name, recorded, monkeypatch, tmp_path, capsys):
    reference, (_, without) = recorded(name), RECORDINGS[name]
    if name.startswith("without"):  # and a variant, another one each time
        used = {job["benchmark"] for s in of_chapter(chapter) for job in s.jobs.values()}
        variant = random.Random(SEED).choice(sorted(used))
        print(f"without {variant}; to repeat it, set GCCOST_SEED={SEED}")
        without = [*without, rf"^(Benchmark)?{variant}\b"]
    if without:
        reference = recordings.cut(reference, tmp_path / "cut", *without)
    monkeypatch.setenv("GCCOST_REFERENCE", str(reference))
    monkeypatch.delenv("GCCOST_ONLY", raising=False)
    shown = displayed(chapter, monkeypatch)
    assert not capsys.readouterr().err
    assert_charts_show_their_data(shown)


def test_a_chapter_runs_on_a_small_recording(monkeypatch, tmp_path):
    recordings.record(tmp_path, rounds=3)
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path))
    assert_charts_show_their_data(displayed("01-lemire", monkeypatch))


def assert_charts_show_their_data(shown: Iterable[object]) -> None:
    for chart in (each for each in shown if isinstance(each, Chart)):
        assert chart.title
        assert chart.alt != chart.title
        rows = pd.read_csv(io.StringIO(chart.csv()))
        assert len(rows) == len(chart.data) > 0
        if "value" in rows and chart.name not in NO_POINTS:
            points = np.concatenate(list(drawn(chart.figure)))
            for value in rows["value"].dropna():
                assert np.isclose(points, value, rtol=1e-5).any(), f"{chart.name} lacks {value}"
