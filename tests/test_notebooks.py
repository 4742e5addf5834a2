"""Every chapter: what its cells look like, and that it runs on whatever was recorded."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
import recordings

from gccost import paths
from gccost.showing import drawing
from gccost.showing.figures import Chart
from gccost.studies import STUDIES

CHAPTERS = sorted(path.stem for path in paths.NOTEBOOKS.glob("[01]*.ipynb"))
LONGEST, WIDEST = 20, 100


def code(chapter: str) -> list[str]:
    node = nbformat.read(paths.NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    return [cell.source for cell in node.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_short_ordinary_code(chapter: str) -> None:
    cells = code(chapter)
    for cell in cells:
        lines = [line for line in cell.splitlines() if line.strip()]
        assert len(lines) <= LONGEST, cell
        assert max(map(len, lines)) <= WIDEST, cell
        assert not re.search(r"^\s*(from|import) gccost\.|^\s*from gccost import", cell, re.M), cell
    if chapter[:2] not in ("00", "11"):
        assert any("sns." in cell for cell in cells)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_sentence_has_no_condition(chapter: str) -> None:
    for cell in code(chapter):
        if "Markdown(" in cell:
            assert not re.search(r"^\s*(if|else|elif)\b| if .* else ", cell, re.M), cell


# --- On four recordings -------------------------------------------------------------


def _whole(folder: Path) -> None:
    for name in STUDIES:
        recordings.record(folder, name, rounds=4)


def _one_round(folder: Path) -> None:
    for name in STUDIES:
        recordings.record(folder, name, rounds=1)


def _empty(folder: Path) -> None:
    for name in STUDIES:
        recordings.record(folder, name, rounds=0)


def _many_cpus(folder: Path) -> None:
    for name in STUDIES:
        recordings.record(folder, name, rounds=4, cpus=48)


RECORDINGS = {"whole": _whole, "one round": _one_round, "empty": _empty, "48 CPUs": _many_cpus}


@pytest.fixture(scope="module", params=RECORDINGS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("reference")
    RECORDINGS[request.param](folder)
    return folder


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_runs_on(chapter: str, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCCOST_MODE", "replay")
    monkeypatch.setenv("GCCOST_HEADLESS", "1")
    monkeypatch.setenv("GCCOST_REFERENCE", str(recorded))
    monkeypatch.delenv("GCCOST_ONLY", raising=False)
    monkeypatch.chdir(paths.NOTEBOOKS)
    shown: list[object] = []
    monkeypatch.setattr(drawing, "display", shown.append)
    namespace: dict[str, object] = {"display": shown.append}
    with plt.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of layouts that do not fit
        for number, cell in enumerate(code(chapter), 1):
            exec(compile(cell, f"{chapter}, cell {number}", "exec"), namespace)  # noqa: S102
    plt.close("all")
    for chart in (each for each in shown if isinstance(each, Chart)):
        assert chart.title
        assert chart.csv().count("\n") > 1
        assert chart.alt != chart.title
