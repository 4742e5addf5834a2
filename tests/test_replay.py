"""Replay makes every page from the recorded runs, byte for byte the same each time."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest

from gccost import paths
from gccost.cases.settings import Settings
from gccost.run.runs import all_runs
from gccost.showing.execute import execute_all
from gccost.studies import STUDIES

pytestmark = pytest.mark.slow

# Chapters measured by their own command have nothing to replay until recorded.
RECORDED = {name for name in STUDIES for run in all_runs(paths.reference()) if name in run.studies}
NAMES = {"00-results", "11-ledger"}.union(*(STUDIES[name].notebooks for name in RECORDED))
CHAPTERS = [paths.NOTEBOOKS / f"{name}.ipynb" for name in sorted(NAMES)]


def replayed(folder: Path, *only: str, **environment: str) -> dict[str, str]:
    """Execute the named notebooks (default: all) in replay; return their text by name."""
    folder.mkdir()
    chosen = {n: folder / n.name for n in CHAPTERS if not only or n.stem in only}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        for error in execute_all(chosen, Settings("replay"), at_once=2).values():
            raise error
    return {path.stem: path.read_text(encoding="utf-8") for path in chosen.values()}


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> dict[str, str]:
    """The notebooks as replayed without a toolchain."""
    folder = tmp_path_factory.mktemp("replay")
    return replayed(folder / "one", **dict.fromkeys(("PATH", "HOME", "GOMODCACHE"), str(folder)))


def test_committed_notebooks_match_replay_without_toolchain(shown):
    for notebook in CHAPTERS:
        committed = notebook.read_text(encoding="utf-8")
        assert shown[notebook.stem] == committed, f"{notebook.name} is stale: run make replay"


def outputs(pages: dict[str, str], kind: str) -> list[str]:
    """Every output of a kind in executed notebooks, in order."""
    cells = (cell for text in pages.values() for cell in nbformat.reads(text, as_version=4).cells)
    bundles = (output.get("data", {}) for cell in cells for output in cell.get("outputs", []))
    return [bundle[kind] for bundle in bundles if kind in bundle]


def test_scaled_samples_change_prose_charts_and_verdicts(shown, tmp_path):
    reference = shutil.copytree(paths.reference(), tmp_path / "reference")
    for file in reference.glob("*/samples.txt"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(map(thrice, lines)))
    chapters = ("00-results", "01-lemire", "11-ledger")  # they show AllocateAuto
    other = replayed(tmp_path / "scaled", *chapters, GCCOST_REFERENCE=str(reference))
    same = {chapter: shown[chapter] for chapter in chapters}
    for kind in ("text/markdown", "image/svg+xml", "text/csv", "text/html"):
        before, after = outputs(same, kind), outputs(other, kind)
        assert sum(a != b for a, b in zip(before, after, strict=True)) >= 2, kind
    before, after = (
        re.findall(r'<span class="verdict (\w+)"', "".join(outputs(pages, "text/html")))
        for pages in (same, other)
    )
    assert len(before) == len(after) > 0
    assert before != after


def thrice(line: str) -> str:
    """A line of samples with three times the time, if it is of a finalizer that frees."""
    if not line.startswith("BenchmarkAllocateAuto/"):
        return line
    time = r"(\S+) ((?:settled-)?(?:cpu-)?ns/op)"
    return re.sub(time, lambda match: f"{float(match[1]) * 3!r} {match[2]}", line)
