"""What a run has not measured is the recorded run's, whole and marked, and never mixed with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import recordings
from recordings import Metrics

import gccost
from gccost.cases.settings import Settings
from gccost.cases.versions import DOCUMENT_GO
from gccost.costs import recording
from gccost.judging import ledger, opening
from gccost.notebook import OpenedStudy
from gccost.run import jobtable
from gccost.run.jobtable import Job
from gccost.showing import drawing
from gccost.studies import STUDIES

AUTO, FREE, EMPTY = "finalizer frees", "manual free", "finalizer does nothing"
PAIR = AUTO, FREE
# In the recorded run everything takes twice as long; a ratio of two runs would show it.
RECORDED = {"AllocateFree": 160.0, "AllocateAuto": 2000.0, "AllocateDummy": 1900.0}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., OpenedStudy]:
    """A function that makes a run and opens its study, next to a recorded run."""
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("GCCOST_MODE", "measure")
    recordings.record(tmp_path / "reference", ns=RECORDED).finish("standard", "done", ["lemire"])
    recording._of_study.cache_clear()

    def make(**how: Any) -> OpenedStudy:
        made = recordings.record(tmp_path / "runs", cpu="My CPU", **how)
        made.sit("standard", ["lemire"])
        made.finish("standard", "done", ["lemire"])
        return gccost.open("lemire", run=made.name)

    return make


def without(benchmark: str, release: str = DOCUMENT_GO, rounds: int = 0) -> recordings.Change:
    """Without the samples of a benchmark on a release after some rounds."""

    def change(job: Job, number: int, metrics: Metrics) -> None:
        if (job["benchmark"], job["release"]) == (benchmark, release) and number > rounds:
            metrics.clear()

    return change


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_what_was_measured_badly_is_never_replaced(run, rounds):
    def scatters(job: Job, number: int, metrics: Metrics) -> None:
        if recordings.is_of(job, "AllocateAuto"):
            metrics["ns/op"] *= 4 ** (number % 3)

    def change(job: Job, number: int, metrics: Metrics) -> None:
        scatters(job, number, metrics)
        without("AllocateAuto", rounds=rounds)(job, number, metrics)

    study = run(change=change)
    then = study.costs(gc="on", release=study.then).set_index("variant").loc[AUTO]
    assert (then["source"], then["n"]) == ("", rounds)
    assert then["value"] != pytest.approx(2000, rel=0.05)
    gap = study.compare(*PAIR, gc="on").loc[study.then]
    assert gap.source == ""
    text = gccost.times(gap)
    assert "recorded" not in text
    assert text.startswith("between") or "process" in text
    assert not judged_as_recorded(study)


def judged_as_recorded(study: OpenedStudy) -> bool:
    return "recorded" in study.judge("L1").text


def test_a_case_without_a_process_is_the_recorded_one(run):
    study = run(change=without("AllocateAuto"))
    costs = study.costs(gc="on").set_index(["release", "variant"])
    then, today = costs.loc[study.then], costs.loc[study.today]
    assert then.loc[AUTO, ["source", "n"]].to_list() == ["recorded", 8]
    assert then.loc[AUTO, "value"] == pytest.approx(2000, rel=0.05)
    assert set(then.source.drop(AUTO)) == set(today.source) == {""}
    assert then.loc[FREE, "value"] == pytest.approx(80, rel=0.05)
    samples = study.samples(gc="on")
    of = samples[(samples.variant == AUTO) & (samples.release == study.then)]
    assert set(of.source) == {"recorded"}
    assert len(of) == 8
    assert gccost.cost(of)["value"] == then.loc[AUTO, "value"]


def test_no_ratio_or_difference_is_of_two_runs(run):
    study = run(change=without("AllocateAuto"))
    gap = study.compare(*PAIR, gc="on")
    assert gap.source.to_list() == ["recorded", ""]
    assert gap.ratio.to_list() == pytest.approx([2000 / 160, 700 / 80], rel=0.05)
    assert gap.more.to_list() == pytest.approx([2000 - 160, 700 - 80], rel=0.05)
    costs = study.costs(gc="on", release=study.then).set_index("variant")
    ratio = gccost.derive(lambda a, b: a / b, costs.loc[AUTO], costs.loc[FREE])
    assert (ratio["source"], ratio["value"]) == ("recorded", gap.ratio.iloc[0])
    own = gccost.derive(lambda a, b: a / b, costs.loc[EMPTY], costs.loc[FREE])
    assert own["source"] == ""
    again = gccost.derive(lambda a, b: a / b, ratio, own)
    assert again["value"] == pytest.approx(2000 / 1900, rel=0.05)


def test_a_verdict_is_of_one_run(run):
    _, *verdicts = run(change=without("AllocateAuto")).judge("L1").text.splitlines()
    assert sorted(verdict.rpartition("  ")[2] for verdict in verdicts) == [
        "holds",
        "holds (recorded)",
    ]


def test_a_figure_that_no_run_has_is_missing(run):
    study = run(change=without("AllocateAuto"))
    reference = opening.reference(study.recording.study)
    kept = [x for x in reference.samples_txt.read_text().splitlines() if "AllocateAuto" not in x]
    reference.samples_txt.write_text("\n".join([*kept, ""]))
    recording._of_study.cache_clear()
    gap = gccost.open("lemire", run=study.run).compare(*PAIR, gc="on")
    assert gap.ratio.notna().to_list() == [False, True]
    assert gap.differs.isna().to_list() == [True, False]
    sentence = f"Then it took {gccost.times(gap.loc[study.then])}. That was then."
    assert gccost.prose(sentence).markdown == "That was then."


def test_text_and_charts_say_what_is_recorded(run, monkeypatch):
    study = run(change=without("AllocateAuto"))
    gap, costs = study.compare(*PAIR, gc="on"), study.costs(gc="on")
    assert gccost.times(gap.loc[study.then]).endswith("; recorded)")
    assert "recorded" not in gccost.times(gap.loc[study.today])
    shown: list[Any] = []
    monkeypatch.setattr(drawing, "display", shown.append)
    with gccost.chart("some", "A title", costs):
        plt.figure()
    chart, note = shown
    assert note.markdown == f"*Recorded on Made-up CPU, 2 CPUs: {study.then}, {AUTO}.*"
    assert "recorded" in chart.csv()
    assert "figure" in costs
    assert "figure" not in chart.csv().partition("\n")[0]


def test_the_first_page_marks_studies_that_only_the_recorded_run_has(run):
    run()
    studies = gccost.results()
    assert not studies.study("lemire").recording.is_aside
    sources = studies.verdicts.groupby("id").source.unique().map(list)
    assert (sources["L1"], sources["X10"]) == ([""], ["recorded"])
    rows = ledger.shown(opening.every(STUDIES.values(), Settings("replay")), STUDIES.values())
    assert not any(row.is_recorded for row in rows)


def test_a_curve_is_not_filled_up_with_points_of_a_larger_budget(run):
    study = run(change=without("AllocateAuto"))
    planned = study.recording.run.table()
    early = [job for job in planned.values() if job["benchmark"] != "AllocateAuto"]
    jobtable.write(study.recording.run.jobs_csv, early)
    assert AUTO not in set(study.costs(gc="on", release=study.then).variant)
    # Without any other point the recorded one stands there.
    assert study.costs(gc="on", release=study.then, variant=AUTO).source.to_list() == ["recorded"]
