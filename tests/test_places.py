"""Prose that says where something is ("the last line", "the table above") is checked.

Every such phrase of a notebook is listed here with the check that it is true. A phrase without a
check fails, and so does a check without its phrase: prefer the name of a line or a column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

import gccost
from gccost import paths

Cell: TypeAlias = dict[str, Any]
PLACE = re.compile(
    r"\b(?:first|last|second|third|top|bottom|left|right|upper|lower|middle|two last|last two)"
    r" (?:line|row|column|panel|chart|table|bar|dot|curve|point)s?\b"
    r"|\b[Tt]he (?:left|right) one\b"
    r"|\b[Tt]he (?:left|right|upper|lower|last two|first two) (?:have|has|is|are)\b"
    r"|\b(?:chart|table|program|cell|dot|diamond|wrapper)s? (?:above|below)\b"
    r"|\bfar to the (?:left|right)\b|\bin this order\b|\brespectively\b"
)
WORDS = re.compile(r"\s+")


def cells(chapter: str) -> list[Cell]:
    path = paths.NOTEBOOKS / f"{chapter}.ipynb"
    every: list[Cell] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return every


def source(cell: Cell) -> str:
    return "".join(cell["source"])


def prose(cell: Cell) -> str:
    """The sentences of a cell, on one line."""
    text = source(cell)
    if cell["cell_type"] == "code":
        text = " ".join(re.findall(r'prose\(f?"""(.*?)"""', text, re.DOTALL))
    return WORDS.sub(" ", text)


def phrases() -> Iterator[tuple[str, str]]:
    """Each phrase with the id of its chapter's cell, as "chapter cell"."""
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        for cell in cells(path.stem):
            for found in PLACE.finditer(prose(cell)):
                yield f"{path.stem} {cell['id']}", found[0]


# --- what is checked --------------------------------------------------------------------


def around(place: str) -> tuple[list[Cell], int]:
    chapter, _, wanted = place.partition(" ")
    every = cells(chapter)
    [at] = [at for at, cell in enumerate(every) if cell["id"] == wanted]
    return every, at


def next_code(place: str) -> str:
    """The code of the first cell with code after a cell."""
    every, at = around(place)
    return next(source(cell) for cell in every[at:] if cell["cell_type"] == "code")


def next_has(text: str) -> Callable[[str], bool]:
    return lambda place: text in next_code(place)


def next_chart_has(text: str) -> Callable[[str], bool]:
    def check(place: str) -> bool:
        every, at = around(place)
        charts = [source(cell) for cell in every[at:] if "gccost.chart(" in source(cell)]
        return text in charts[0]

    return check


def after(heading: str, text: str) -> Callable[[str], bool]:
    """Whether a text is in the code between a heading and the next one."""

    def check(place: str) -> bool:
        every, _ = around(place)
        whole = "\n".join(source(cell) for cell in every)
        return text in whole.split(f"# {heading}\n")[1].split("\n## ")[0]

    return check


def first_line_has(text: str) -> Callable[[str], bool]:
    return lambda place: next_code(place).startswith(text)


def first_chart_has(text: str) -> Callable[[str], bool]:
    def check(place: str) -> bool:
        every, _ = around(place)
        charts = [source(cell) for cell in every if "gccost.chart(" in source(cell)]
        return text in charts[0]

    return check


def last_command_has(text: str) -> Callable[[str], bool]:
    def check(place: str) -> bool:
        every, at = around(place)
        block = source(every[at]).split("```")[1].strip().splitlines()
        return text in block[-1]

    return check


def laptop_is_left(place: str) -> bool:
    timings = gccost.published("addcleanup-timings").set_index("variant")
    laptop = timings[timings.machine == "MacBook Pro M1"].value
    server = timings[timings.machine != "MacBook Pro M1"].value
    return len(laptop) > 3 and bool((laptop < server.reindex(laptop.index)).all())


def beyond_the_axis(place: str) -> bool:
    timings = gccost.published("weimer-timings").set_index("variant").loc["finalize"]
    cpu_ns = 1e9 * (timings.user_s + timings.system_s) / timings.objects
    return f"finalize, {cpu_ns:,.0f} ns" in prose(around(place)[0][around(place)[1]])


def last_rows_are(*names: str) -> Callable[[str], bool]:
    """The rows of the table that the next cell makes, from a dictionary in its code."""

    def check(place: str) -> bool:
        keys = re.findall(r'^ +"([^"]+)":', next_code(place), re.MULTILINE)
        return tuple(keys[-len(names) :]) == names

    return check


CHECKED: dict[tuple[str, str], Callable[[str], bool]] = {
    ("01-lemire try-prose", "first chart"): first_chart_has("grid.set(xlim=(0, None))"),
    ("03-addcleanup five-legend", "the left one"): laptop_is_left,
    ("03-addcleanup five-legend", "the right one"): laptop_is_left,
    ("04-cloudflare cores-prose", "last line"): last_command_has("gccost add"),
    ("05-weimer cost-legend", "far to the right"): beyond_the_axis,
    ("06-release-by-release try-prose", "cell below"): after(
        "Which release changed what", "steps.value.between("
    ),
    ("06-release-by-release yours-prose", "first line"): first_line_has("mine = "),
    ("06-release-by-release yours-prose", "cell below"): next_has("mine = "),
    ("07-why programs-prose", "program below"): next_has("gccost.source("),
    ("07a-details further-prose", "The last two have"): last_rows_are(
        "manual free", "the program without cleanups"
    ),
    ("12-in-the-wild sizes-text", "dot below"): next_chart_has("sns.relplot("),
}


def test_each_phrase_of_place_has_a_check_and_each_check_a_phrase():
    assert sorted(set(phrases())) == sorted(CHECKED)


@pytest.mark.parametrize(("place", "phrase"), CHECKED)
def test_what_is_said_to_be_there_is_there(place, phrase):
    assert CHECKED[place, phrase](place)


@pytest.mark.parametrize(
    "text",
    ["The last line is a loop that only allocates.", "See the left panel, and the row below."],
)
def test_phrases_are_found(text):
    assert PLACE.search(text)
