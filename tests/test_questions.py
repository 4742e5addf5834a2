"""Of twenty questions that were drawn, the pages answer eighteen.

The questions are those that were answered by running the real thing (A on Go's runtime, B on Java,
C on formats and notebooks). `data/questions.csv` has the sentence of a page that answers each.
"""

from __future__ import annotations

import json
import random

from gccost import paths
from gccost.files import read_table

ASKED = {"A": 20, "B": 12, "C": 10}
ROWS = read_table(paths.ROOT / "data" / "questions.csv")


def text(page: str) -> str:
    """The text of a page, without line breaks."""
    found = (paths.ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".ipynb"):
        sources = ("".join(cell["source"]) for cell in json.loads(found)["cells"])
        found = "\n".join(sources)
    return " ".join(found.split())


def test_the_questions_are_those_of_the_draw():
    all_of_them = [f"{part}{n}" for part, most in ASKED.items() for n in range(1, most + 1)]
    drawn = random.Random(75).sample(all_of_them, 20)
    assert {row["question"] for row in ROWS} == {*drawn}


def test_the_pages_answer_eighteen():
    answered = [row for row in ROWS if row["page"]]
    missing = [row["question"] for row in answered if row["sentence"] not in text(row["page"])]
    assert missing == []
    assert len(answered) >= 18
