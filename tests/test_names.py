"""What a case's absence leaves on a page stands under its own name."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pandas as pd
import pytest
from chapters import outputs

from gccost import paths
from gccost.costs.method import Figure
from gccost.costs.recording import Recording
from gccost.judging import leaving_out, opening
from gccost.showing.charts import Chart
from gccost.studies import STUDIES

pytestmark = pytest.mark.slow
CHAPTERS = sorted(path.stem for path in paths.NOTEBOOKS.glob("[01]*.ipynb"))
DRAWN = 2  # cases of each chapter, at random
EVERY_CASE = "GCCOST_EVERY_CASE" in os.environ  # each one in turn: more than an hour

Named = Mapping[tuple[str, str, str], object]


def values(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of a frame that hold figures, by row in words."""
    figures = [
        name
        for name in frame
        if name not in ("low", "high", "rounds", "n", "figure", "run", "source", "label", "says")
        and not str(name).endswith(("_low", "_high"))
    ]
    told = [name for name in figures if name != "value" and "value" in frame]
    words = frame.index.map(str)
    if told:
        words = [", ".join(map(str, row)) for row in frame[told].itertuples(index=False)]
    shown = frame[["value"]] if "value" in frame else frame[figures]
    return shown.set_axis([*words], axis="index") if len(frame) else shown


def named(chapter: str, monkeypatch: pytest.MonkeyPatch) -> Named:
    """Each figure of a chapter's charts and frames, by place, row and column."""
    found: dict[tuple[str, str, str], object] = {}
    for cell, shown in outputs(chapter, monkeypatch):
        frame = shown.data if isinstance(shown, Chart) else shown
        if isinstance(frame, pd.DataFrame):
            place = shown.name if isinstance(shown, Chart) else cell
            for row, columns in values(frame).iterrows():
                for column, value in columns.items():
                    found[place, str(row), str(column)] = value
    return found


@cache
def cases(chapter: str) -> tuple[str, ...]:
    """The cases of a chapter's own studies that the recorded run has measured."""
    studies = [study for study in STUDIES.values() if study.chapter == chapter]
    if chapter == "00-results":
        studies = [STUDIES["wrappers"]]
    recordings = [opening.replayed(study) for study in studies]
    return tuple(sorted({name for each in recordings for name in each.frame["name"].unique()}))


def without(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a case away from every recording."""
    frame, cost = Recording.frame.func, Recording.cost

    def lacking(recording: Recording) -> pd.DataFrame:
        whole = frame(recording)
        return whole[whole["name"] != gone]

    def cost_of(recording: Recording, name: str, *more: object, **keywords: object) -> Figure:
        return Figure() if name == gone else cost(recording, name, *more, **keywords)

    monkeypatch.setattr(Recording, "frame", property(lacking))
    monkeypatch.setattr(Recording, "cost", cost_of)


def same(one: Any, other: Any) -> bool:
    if pd.isna(one) or pd.isna(other):
        return bool(pd.isna(one) and pd.isna(other))
    numbers = isinstance(one, float | int) and isinstance(other, float | int)
    return math.isclose(one, other, rel_tol=1e-9) if numbers else one == other


def under_another_name(before: Named, after: Named) -> list[str]:
    """Figures that stood in another row of their column before."""
    wrong = []
    for (place, row, column), value in after.items():
        known = before.get((place, row, column), value)
        if same(known, value) or pd.isna(value) or not isinstance(value, float | str):
            continue
        of_column = (
            r for (p, r, c), v in before.items() if (p, c) == (place, column) and same(v, value)
        )
        if rows := [*of_column]:
            wrong.append(f"{place}, {row}, {column}: {value}, which is that of {rows[0]}")
    return wrong


@pytest.fixture
def chapter_of(monkeypatch) -> Callable[[str], Named]:
    monkeypatch.setenv("GCCOST_MODE", "replay")
    # Leaving sittings out takes long, and reads whole runs, which lack nothing here.
    for name in ("left_out", "estimators", "ways"):
        monkeypatch.setattr(leaving_out, name, remembered(getattr(leaving_out, name)))
    return lambda chapter: named(chapter, monkeypatch)


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes each answer once."""
    answers: dict[str, Any] = {}

    def answer(run: object, studies: object, *more: object, **keywords: object) -> Any:
        asked = f"{run} {more} {keywords}"
        if asked not in answers:
            answers[asked] = function(run, studies, *more, **keywords)
        return answers[asked]

    return answer


def test_a_figure_that_moved_to_another_row_is_found():
    before = {("t", "a", "x"): 1.0, ("t", "b", "x"): 2.0, ("t", "c", "x"): 3.0}
    after = {("t", "a", "x"): 2.0, ("t", "b", "x"): 2.0}
    assert under_another_name(before, after) == ["t, a, x: 2.0, which is that of b"]
    assert under_another_name(before, {("t", "a", "x"): 1.5, ("t", "c", "x"): 3.0}) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_figure_keeps_its_name_when_a_case_is_missing(chapter, chapter_of, monkeypatch):
    before = chapter_of(chapter)
    known = cases(chapter)
    chosen = known
    if not EVERY_CASE:
        chosen = random.Random(chapter).sample(known, min(DRAWN, len(known)))
    wrong = {}
    for gone in chosen:
        with monkeypatch.context() as patched:
            without(gone, patched)
            if found := under_another_name(before, named(chapter, patched)):
                wrong[gone] = found
    assert not wrong
