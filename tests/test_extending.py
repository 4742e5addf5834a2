"""The recipes in CONTRIBUTING.md work, applied literally to a copy of the tree."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from faketools import FakeTools

from gccost import paths, processes
from gccost.cases.versions import TODAY_GO

pytestmark = pytest.mark.slow

BLOCK = re.compile(r"^```\w+\n# (\S+), (.+)\n((?:.*\n)+?)```$", re.MULTILINE)
PYTHON = re.compile(r"^```python\n((?:.*\n)+?)```$", re.MULTILINE)
CONTRIBUTING = paths.ROOT / "CONTRIBUTING.md"
COPIED = (
    *("gccost", "gosrc", "javasrc", "locks"),
    *("data/published", "data/releases.csv", "data/benchmarks.csv", "data/go-packages.txt"),
)


def blocks() -> list[tuple[str, str, str]]:
    """The recipes' additions: for each, the file, the place in it and the text."""
    return BLOCK.findall(CONTRIBUTING.read_text(encoding="utf-8"))


def added(to: str, where: str, text: str) -> str:
    """A file's text with a block added where the recipe says."""
    if where == "at the end":
        return to + text
    name = re.fullmatch(r"in (.+)", where)
    assert name, where
    # The first line from the name on that ends with an open bracket or quote.
    words = r"\s+".join(map(re.escape, name[1].split()))
    opened = re.search(rf'^[^\n#]*{words}\b[\s\S]*?(?:[({{]|""")\n(?:\s*{{\n)?', to, re.MULTILINE)
    assert opened, where
    return to[: opened.end()] + text + to[opened.end() :]


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the tree with every recipe applied."""
    folder = tmp_path_factory.mktemp("extended")
    for name in COPIED:
        source, into = paths.ROOT / name, folder / name
        into.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, into, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, into)
    for file, where, text in blocks():
        path = folder / file
        if where == "a new file":
            assert not path.exists(), f"{file} is the example of CONTRIBUTING.md: rename yours"
            path.write_text(text, encoding="utf-8")
        else:
            path.write_text(added(path.read_text(encoding="utf-8"), where, text), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tools(tmp_path_factory) -> Iterator[FakeTools]:
    tools = FakeTools(tmp_path_factory.mktemp("extended-tools") / "machine")
    yield tools
    tools.end()


def run(tree: Path, tools: FakeTools, *arguments: str) -> str:
    environment = {**tools.environment(), "GCCOST_MODE": "measure", "GCCOST_ONLY": ""}
    done = processes.run([sys.executable, *arguments], cwd=tree, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


CASES = "from gccost.studies import STUDIES\nprint(*STUDIES['lemire'].jobs, sep='\\n')"
VERDICTS = """
import gccost
for row in gccost.open("lemire").verdicts.itertuples():
    print(row.id, row.claim, row.n > 0)
"""
CHART = """
from gccost.showing import drawing
drawing.display = lambda chart: print(chart.title, len(chart.data), "<svg" in chart.svg)
"""


def test_the_added_case_and_claim_are_measured_and_judged(tree, tools: FakeTools):
    cases = run(tree, tools, "-c", CASES).splitlines()
    assert f"AllocateDefer/go={TODAY_GO}/gogc=off/setting=published" in cases
    run(tree, tools, "-m", "gccost", "measure", "--budget=tiny", "--only=lemire")
    lines = run(tree, tools, "-c", VERDICTS).splitlines()
    added = {line for line in lines if line.startswith("Z1 ")}
    assert added == {"Z1 A deferred free costs what a manual free costs True"}


def test_the_added_study_is_measured_and_charted(tree, tools: FakeTools):
    said = run(tree, tools, "-m", "gccost", "measure", "--budget=tiny", "--only=mine")
    assert re.match(r"0 of 1 verdicts decided, from \d+ samples in ", said)
    (example,) = PYTHON.findall(CONTRIBUTING.read_text(encoding="utf-8"))
    said = run(tree, tools, "-c", CHART + example)
    # Lemire's run, if it is there, has the quick case too.
    assert re.search(r"What a handle on the heap costs [23] True", said)
    judged = run(tree, tools, "-c", VERDICTS.replace("lemire", "mine")).splitlines()
    assert "Y1 Mine costs at most 1.4 manual frees True" in judged
