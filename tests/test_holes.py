"""The pages of a newcomer's run: no hole, whatever the run lacks.

The run is cut from the recorded one: the cases that the quick budget measures, in a few rounds.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chapters import outputs

from gccost import paths
from gccost.cases.cases import BUDGETS
from gccost.judging import opening
from gccost.measuring import planning
from gccost.run import jobtable
from gccost.run.runs import Run
from gccost.showing import programs, tables
from gccost.showing.charts import Chart
from gccost.studies import STUDIES

pytestmark = pytest.mark.slow
CHAPTERS = sorted(path.stem for path in paths.NOTEBOOKS.glob("[01]*.ipynb"))
DOCUMENTS = [stem for stem in CHAPTERS if stem < "06" and len(stem.partition("-")[0]) == 2]
HOLE = re.compile(
    r"too few samples|not measured|\bnan\b|<NA>|“…|No run has data|no run holds|\b0 claims"
    r"|\b0 of its 0|\b1 processes|Measured values",
    re.IGNORECASE,
)
EXPLAINED = 10  # on all pages but the first page and the openings
QUICK = BUDGETS["quick"]
# Rounds of each case in each sitting.
RUNS = {
    "quick": [QUICK.rounds],
    "one round": [1],
    "a short second sitting": [QUICK.rounds, 1],
    "five sittings of one round": [1] * 5,
}


def names() -> set[str]:
    """The cases that the quick budget measures on the recorded machine."""
    measured = [study for study in STUDIES.values() if study.joins(QUICK)]
    description = opening.reference(STUDIES["lemire"]).manifest()["machine"]
    return {
        job["name"]
        for study in measured
        for job in planning.fitting(study.within(QUICK), description)
    }


def cut(folder: Path, sittings: list[int]) -> Run:
    """A run of yours with some rounds of the recorded run's, in sittings of its own."""
    recorded = opening.reference(STUDIES["lemire"])
    run = Run(Path(shutil.copytree(recorded.folder, folder / recorded.name)))
    wanted, lines = names(), []
    numbers = [number for number, rounds in enumerate(sittings, 1) for _ in range(rounds)]
    seen: dict[str, dict[str, int]] = defaultdict(dict)
    reading = recorded.reading().samples
    for line, text in enumerate(recorded.samples_txt.read_text().splitlines(), 1):
        sample = reading.get(line)
        if sample is None:
            lines.append(text)
        elif sample.full_name in wanted:
            rounds = seen[sample.full_name]
            at = rounds.setdefault(str(sample.metrics["round"]), len(rounds))
            if at < len(numbers):
                text = re.sub(r"\S+ sitting\b", f"{numbers[at]} sitting", text)
                lines.append(text)
    run.samples_txt.write_text("\n".join([*lines, ""]))
    jobtable.write(run.jobs_csv, [job for name, job in recorded.table().items() if name in wanted])
    studies = [study.name for study in STUDIES.values() if study.joins(QUICK)]
    for path in run.folder.glob("profiles/*"):
        path.unlink()
    for name, rounds in seen.items():
        for number in list(rounds)[: len(numbers)]:
            if (profile := recorded.profiles(name).get(int(float(number)))) is not None:
                shutil.copy(profile, run.profile(name, int(float(number))))
    manifest = run.manifest()
    sat = [manifest["sittings"][0] | {"budget": "quick", "studies": studies} for _ in sittings]
    done = {"quick": {"because": "it was cut", "studies": studies, "date": manifest["created"]}}
    run.update(sittings=sat, finished=done, digests={}, shell={})
    return run


@pytest.fixture(params=RUNS)
def run(request, tmp_path, monkeypatch) -> Run:
    monkeypatch.setenv("GCCOST_MODE", "measure")
    monkeypatch.delenv("GCCOST_ONLY", raising=False)
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path / "runs"))
    printed = "BenchmarkAllocateFree-2 \t 20000000\t 60.6 ns/op\t 0 B/op\t 0 allocs/op\n"
    monkeypatch.setattr(programs, "run", lambda command, of, release: printed)
    return cut(tmp_path / "runs", RUNS[request.param])


def shown(chapter: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Iterator[tuple[str, str]]:
    """What a chapter shows, by the id of its cell: titles, tables, sentences, printed text."""
    capsys.readouterr()
    for cell, each in outputs(chapter, monkeypatch):
        yield cell, capsys.readouterr().out
        yield cell, text(each)


def text(shown: object) -> str:
    """What a reader sees of an output."""
    if isinstance(shown, Chart):
        return shown.title
    if hasattr(shown, "_repr_mimebundle_"):
        bundle = shown._repr_mimebundle_()
        return str((bundle[0] if isinstance(bundle, tuple) else bundle)["text/plain"])
    said: list[str] = []

    class Printer:
        text = said.append

    tables.print_frame(shown, Printer(), cycle=False) if hasattr(shown, "index") else None
    return "".join(said)


def test_no_page_has_a_hole(run, monkeypatch, capsys):
    holes: dict[str, list[str]] = defaultdict(list)
    for chapter in CHAPTERS:
        for cell, said in shown(chapter, monkeypatch, capsys):
            for found in HOLE.finditer(said):
                holes[chapter, cell].append(said[max(0, found.start() - 50) : found.end() + 50])
    openings = {place: found for place, found in holes.items() if place[0] == "00-results"}
    openings |= {place: found for place, found in holes.items() if place[1] in ("open", "short")}
    assert not openings
    assert sum(map(len, holes.values())) <= EXPLAINED, holes


@pytest.mark.parametrize("run", ["quick"], indirect=True)
def test_most_that_the_documents_chapters_say_is_of_the_run_itself(run, monkeypatch, capsys):
    said = [
        each
        for chapter in DOCUMENTS
        for cell, each in shown(chapter, monkeypatch, capsys)
        if (cell in ("short", "choices") or each.count("\n") == 0)
        and not each.startswith("*Recorded")
    ]
    figures = sum(len(re.findall(r"\d \(|\d[^\s(]* to \d", each)) for each in said)
    recorded = sum(each.count("recorded") for each in said)
    assert figures > 30
    assert recorded < 0.1 * figures, "\n".join(each for each in said if "recorded" in each)
