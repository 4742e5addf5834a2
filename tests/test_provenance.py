"""No page shows a figure of another machine without saying that it is recorded."""

from __future__ import annotations

import difflib
import json
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import recordings
from chapters import outputs
from test_holes import cut, text

import gccost
from gccost import paths
from gccost.costs import recording
from gccost.costs.recorded import nearest, recorded
from gccost.judging import ledger
from gccost.run.runs import Run
from gccost.showing import programs, provenance
from gccost.showing.charts import Chart
from gccost.showing.tables import Markup
from gccost.studies import STUDIES

RATE = re.compile(r"op/(?:cpu-)?s$")
# All but 12, whose figures are counted in public modules and belong to no machine.
CHAPTERS = [path.stem for path in sorted(paths.NOTEBOOKS.glob("[01]*.ipynb"))][:-1]
# An interval, such as "(95.2 to 97.1". Its spread may be a recorded run's, as the notice says.
INTERVAL = re.compile(r"\([^();]* to [^();]*(?=[;)])")
# What marks a cell: a notice, a line beneath a chart or a table, a table of machines.
NOTE = re.compile(r"\*?Recorded (?:run of|on) |The verdicts of \d+ recorded machines")


# --- Which run is nearest -----------------------------------------------------------------


@pytest.fixture
def folders(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("GCCOST_MODE", "measure")
    recording._of_study.cache_clear()
    return tmp_path


def kept(folder: Path, name: str, cpu: str, fingerprint: str = "", **how: Any) -> Run:
    """A recorded run of that name, on that model of CPU."""
    made = recordings.record(folder / "made", cpu=cpu, **how)
    run = Run(folder / "reference" / name)
    run.folder.parent.mkdir(exist_ok=True)
    shutil.move(made.folder, run.folder)
    if fingerprint:
        run.update(fingerprint=fingerprint)
    return run


def test_the_nearest_run_is_of_the_same_machine_then_cpu_then_the_main_one(folders):
    main = kept(folders, "20260103T000000-aaaaaa", "Main CPU")
    alike = kept(folders, "20260102T000000-bbbbbb", "My CPU", fingerprint="a" * 12)
    same = kept(folders, "20260101T000000-cccccc", "My CPU")
    reference = {"machine": main.manifest()["fingerprint"]}
    (folders / "reference" / "reference.json").write_text(json.dumps(reference) + "\n")
    own = recordings.record(folders / "runs", cpu="My CPU")
    assert [run.name for run in nearest(own)] == [same.name, alike.name, main.name]
    stranger = recordings.record(folders / "runs", cpu="A third CPU")
    assert nearest(stranger)[0].name == main.name
    assert nearest(main) == []


def test_two_machines_of_one_fingerprint_and_other_cpus_are_not_one(folders):
    own = recordings.record(folders / "runs", cpu="My CPU")
    mark = own.manifest()["fingerprint"]
    other = kept(folders, "20260102T000000-aaaaaa", "Another CPU", fingerprint=mark)
    alike = kept(folders, "20260101T000000-bbbbbb", "My CPU", fingerprint="a" * 12)
    assert [run.name for run in nearest(own)] == [alike.name, other.name]


def test_a_ratio_of_another_program_version_gives_its_spread_and_not_its_value(folders):
    def sits(job: Any, number: int, metrics: recordings.Metrics) -> None:
        metrics["sitting"] = float((number - 1) // 3 + 1)
        if recordings.is_of(job, "AllocateAuto"):
            metrics["ns/op"] *= 1 + 0.2 * (metrics["sitting"] % 2)

    old = kept(folders, "20260101T000000-aaaaaa", "My CPU", rounds=9, change=sits)
    old.update(programs={"cstr": "0" * 64})

    def lacks(job: Any, number: int, metrics: recordings.Metrics) -> None:
        if recordings.is_of(job, "AllocateCleanup"):
            metrics.clear()

    own = recordings.record(folders / "runs", cpu="My CPU", rounds=4, change=lacks)
    study = gccost.open("lemire", run=own.name)
    costs = study.costs(gc="on")
    assert not (costs.variant == "AddCleanup frees").any()
    assert not (costs.source == "recorded").any()
    calm = study.recording
    width = {
        name: calm.cost(name).history[0].spread(signed=False).variance
        for name in calm.jobs
        if calm.cost(name).n and calm.cost(name).history[0].n
    }
    assert max(width.values()) > 0.005


def test_a_run_without_a_recorded_relative_shows_what_its_own_rounds_say(folders):
    own = recordings.record(folders / "runs", cpu="My CPU")
    study = gccost.open("lemire", run=own.name)
    gap = study.compare("finalizer frees", "manual free", gc="on")
    assert recorded() == []
    assert (gap.ratio_low < gap.ratio).all()
    assert (gap.source == "").all()


def test_one_recorded_sitting_shows_no_spread_and_its_prior_is_that_of_the_rounds(folders):
    kept(folders, "20260101T000000-aaaaaa", "My CPU")
    own = recordings.record(folders / "runs", cpu="My CPU")
    gap = gccost.open("lemire", run=own.name).compare("finalizer frees", "manual free", gc="on")
    assert (gap.ratio_low > 0.8 * gap.ratio).all()


# --- What says so ---------------------------------------------------------------------------


def test_files_name_the_run_machine_and_day_of_each_row(folders):
    old = kept(folders, "20260101T000000-aaaaaa", "Recorded CPU")

    def lacks(job: Any, number: int, metrics: recordings.Metrics) -> None:
        if recordings.is_of(job, "AllocateAuto"):
            metrics.clear()

    own = recordings.record(folders / "runs", cpu="My CPU", change=lacks)
    study = gccost.open("lemire", run=own.name)
    costs = provenance.stated(study.costs(gc="on")).set_index("variant")
    finalizer, free = costs.loc["finalizer frees"].iloc[0], costs.loc["manual free"].iloc[0]
    assert (finalizer.run, finalizer.machine) == (old.name, "Recorded CPU, 2 CPUs")
    assert (free.run, free.machine) == (own.name, "My CPU, 2 CPUs")
    assert free.date == own.manifest()["created"][:10]
    rows = ledger.table(ledger.shown({"lemire": study.recording}, [STUDIES["lemire"]]))
    l1 = rows[rows.id == "L1"]
    assert set(l1["run"]) == {old.name}
    assert set(l1["machine"]) == {"Recorded CPU, 2 CPUs"}
    # A frame of a notebook's own has the runs that the notebook opened.
    provenance.opened([own.name])
    assert own.name in provenance.stated(pd.DataFrame({"x": [1]}))["run"].iloc[0]


def tripled(run: Run) -> None:
    """Make each figure of a run's cases three or nine times as large, by its name."""
    lines = []
    for line in run.samples_txt.read_text().splitlines():
        if line.startswith("Benchmark"):
            name, n, *pairs = line.split()
            factor = 3 if len(name) % 2 else 9
            scaled = [
                repr(float(x) * (1 / factor if RATE.search(unit) else factor))
                if unit not in ("round", "sitting", "unix-s", "run-delay-share")
                else x
                for x, unit in zip(pairs[::2], pairs[1::2], strict=True)
            ]
            both = (f"{x} {unit}" for x, unit in zip(scaled, pairs[1::2], strict=True))
            line = f"{name}\t{n}\t" + "\t".join(both)
        lines.append(line)
    run.samples_txt.write_text("\n".join([*lines, ""]))


def lose_a_quarter(run: Run) -> None:
    """Take all samples of a quarter of the cases from a run, so that recorded ones stand there."""
    lines = run.samples_txt.read_text().splitlines(keepends=True)
    kept = [line for line in lines if zlib.crc32(line.split("\t")[0].encode()) % 4]
    run.samples_txt.write_text("".join(kept))


def said(shown: object) -> list[str]:
    """What a reader sees of an output, by lines: of a chart its title and its rows."""
    if isinstance(shown, Chart):
        return [shown.title, *shown.csv().splitlines()]
    if isinstance(shown, Markup):
        return shown.text.splitlines()
    return text(shown).splitlines()


def page(chapter: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of a chapter without intervals; one says its cell, and that it is marked."""
    by_cell: dict[str, list[str]] = {}
    for cell, shown in outputs(chapter, monkeypatch):
        by_cell.setdefault(cell, []).extend(said(shown))
    lines = []
    for cell, each in by_cell.items():
        marked = " (recorded)" * any(NOTE.match(line) for line in each)
        words = (" ".join(INTERVAL.sub("", line).split()) for line in each)
        lines += [f"{cell}{marked}: {line}" for line in words]
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_page_has_an_unmarked_figure_of_another_machine(chapter, tmp_path, monkeypatch):
    source = Path(shutil.copytree(paths.reference(), tmp_path / "reference"))
    made = cut(tmp_path / "made", [3])
    own = Run(tmp_path / "runs" / "20261128T000000-ffffff")
    own.folder.parent.mkdir()
    shutil.move(made.folder, own.folder)
    own.update(machine=own.manifest()["machine"] | {"cpu": "My CPU"}, fingerprint="f" * 12)
    lose_a_quarter(own)
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("GCCOST_MODE", "measure")
    monkeypatch.setattr(programs, "run", lambda command, of, release: "printed\n")
    monkeypatch.setenv("GCCOST_REFERENCE", str(source))
    # No column is left out of a wide frame, nor is a row broken.
    whole = ("display.width", 10_000, "display.max_columns", 100, "display.max_colwidth", None)
    with pd.option_context(*whole):
        recording._of_study.cache_clear()
        before = page(chapter, monkeypatch)
        recording._of_study.cache_clear()
        for run in recorded():
            tripled(run)
        after = page(chapter, monkeypatch)
    names = "|".join(run.name for run in recorded())
    marked = re.compile(f"[Rr]ecorded|{names}")
    changed = [line[2:] for line in difflib.ndiff(before, after) if line.startswith("+ ")]
    with_figures = [line for line in changed if re.search(r"\d", line.partition(": ")[2])]
    assert with_figures
    unmarked = [line for line in with_figures if not marked.search(line)]
    assert not unmarked, unmarked[:10]
