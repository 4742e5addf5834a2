"""Replay makes every page from the recorded runs, byte for byte the same each time."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import fakeconda
import nbformat
import pytest

from gccost import paths
from gccost.measuring.runs import all_runs
from gccost.settings import Settings
from gccost.showing.execute import execute_all
from gccost.studies import STUDIES

# Chapters measured by their own command have nothing to replay until recorded.
RECORDED = {name for name in STUDIES for run in all_runs(paths.reference()) if run.holds(name)}
CHAPTERS = [
    paths.NOTEBOOKS / f"{chapter}.ipynb"
    for chapter in dict.fromkeys(
        [
            "00-results",
            "11-machine-by-machine",
            *(of.chapter for of in STUDIES.values() if of.name in RECORDED),
        ]
    )
]


def replayed(folder: Path, *only: str, **environment: str) -> dict[str, str]:
    """Execute the named notebooks (default: all) in replay; return their text by name."""
    folder.mkdir()
    chosen = {n: folder / n.name for n in CHAPTERS if not only or n.stem in only}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        execute_all(chosen, Settings("replay"), at_once=2)
    return {path.stem: path.read_text(encoding="utf-8") for path in chosen.values()}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The notebooks as replayed without a toolchain."""
    folder = tmp_path_factory.mktemp("replay")
    return replayed(folder / "one", **dict.fromkeys(("PATH", "HOME", "GOMODCACHE"), str(folder)))


def test_committed_notebooks_match_replay_without_toolchain(shown: dict[str, str]) -> None:
    for notebook in CHAPTERS:
        committed = notebook.read_text(encoding="utf-8")
        assert shown[notebook.stem] == committed, f"{notebook.name} is stale: run make replay"


def test_replay_gives_the_same_bytes_inside_conda(shown: dict[str, str], tmp_path: Path) -> None:
    prefix = tmp_path / "conda"
    environment = dict(fakeconda.make(prefix, tmp_path / "store"))
    environment["PATH"] = fakeconda.path(prefix, os.environ["PATH"])
    chapters = ("01-lemire",)
    again = replayed(tmp_path / "again", *chapters, **environment)
    assert again == {chapter: shown[chapter] for chapter in chapters}


def outputs(text: str, kind: str) -> list[str]:
    """Every output of a kind in an executed notebook, in order."""
    cells = nbformat.reads(text, as_version=4).cells
    return [
        output["data"][kind]
        for cell in cells
        for output in cell.get("outputs", [])
        if kind in output.get("data", {})
    ]


def test_scaled_samples_change_prose_charts_and_verdicts(
    shown: dict[str, str], tmp_path: Path
) -> None:
    shutil.copytree(paths.reference(), tmp_path / "reference")
    for file in (tmp_path / "reference").glob("*/samples.txt"):
        scaled = [
            re.sub(
                r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?) ((?:settled-)?(?:cpu-)?ns/op)",
                lambda m: f"{float(m[1]) * 3!r} {m[2]}",
                line,
            )
            if line.startswith("BenchmarkAllocateAuto/")
            else line
            for line in file.read_text().splitlines()
        ]
        file.write_text("\n".join(scaled) + "\n")
    chapters = ("00-results", "01-lemire")  # they show AllocateAuto
    other = replayed(tmp_path / "scaled", *chapters, GCCOST_REFERENCE=str(tmp_path / "reference"))
    same = {chapter: shown[chapter] for chapter in chapters}

    def of(pages: dict[str, str], kind: str) -> list[str]:
        return [text for page in pages.values() for text in outputs(page, kind)]

    for kind in ("text/markdown", "image/svg+xml", "text/csv", "text/html"):
        before, after = of(same, kind), of(other, kind)
        assert len(before) == len(after)
        assert sum(a != b for a, b in zip(before, after, strict=True)) >= 2, kind
    pattern = re.compile(r'<span class="verdict (\w+)"')
    ledgers = [
        pattern.findall("".join(outputs(p["00-results"], "text/html"))) for p in (same, other)
    ]
    assert len(ledgers[0]) == len(ledgers[1]) > 0
    assert ledgers[0] != ledgers[1]
