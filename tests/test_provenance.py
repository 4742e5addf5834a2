"""No page shows a figure of another machine without saying that it is recorded."""

from __future__ import annotations

import difflib
import json
import re
import shutil
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
# Chapters whose every figure is marked. The others say which run they show in a notice of each
# study, and have tables of their own making, whose figures do not yet carry the mark.
MARKED = ("00-results", "01-lemire", "02-siebenmann", "03-addcleanup")
MARKED += ("06-release-by-release", "07-why", "08-instead")


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


def said(shown: object) -> list[str]:
    """What a reader sees of an output, by lines: of a chart its title and its rows."""
    if isinstance(shown, Chart):
        return [shown.title, *shown.csv().splitlines()]
    if isinstance(shown, Markup):
        return shown.text.splitlines()
    return text(shown).splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("chapter", MARKED)
def test_no_page_has_an_unmarked_figure_of_another_machine(chapter, tmp_path, monkeypatch):
    source = Path(shutil.copytree(paths.reference(), tmp_path / "reference"))
    made = cut(tmp_path / "made", [3])
    own = Run(tmp_path / "runs" / "20261128T000000-ffffff")
    own.folder.parent.mkdir()
    shutil.move(made.folder, own.folder)
    own.update(machine=own.manifest()["machine"] | {"cpu": "My CPU"}, fingerprint="f" * 12)
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("GCCOST_MODE", "measure")
    monkeypatch.setattr(programs, "run", lambda command, of, release: "printed\n")
    pages = []
    for change in (None, tripled):
        monkeypatch.setenv("GCCOST_REFERENCE", str(source))
        recording._of_study.cache_clear()
        if change:
            for run in recorded():
                change(run)
        pages.append([line for _, each in outputs(chapter, monkeypatch) for line in said(each)])
    changed = [
        line[2:]
        for line in difflib.ndiff(*pages)
        if line.startswith("+ ") and re.search(r"\d", line)
    ]
    names = "|".join(run.name for run in recorded())
    unmarked = [line for line in changed if not re.search(f"[Rr]ecorded|{names}", line)]
    assert not unmarked, unmarked[:10]
