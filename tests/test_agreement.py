"""A new run is compared with the nearest recorded one."""

from __future__ import annotations

import re
import shutil

import pandas as pd
import pytest
import recordings
from click.testing import CliRunner, Result

from gccost import cli
from gccost.cases.versions import ISSUE_GO, TODAY_GO
from gccost.errors import GccostError
from gccost.judging.agreement import agreement, by_chance, counterpart
from gccost.run.jobtable import Job
from gccost.run.runs import Run
from gccost.studies import STUDIES


def times_as_slow(folder, factor: float, benchmark: str = "AllocateAuto", **how) -> Run:
    """A run of the recorded machine whose loops take so many times as long as the recorded ones."""

    def change(job: Job, number: int, metrics: recordings.Metrics) -> None:
        if recordings.is_of(job, benchmark):
            metrics["ns/op"] *= factor

    how = {"like": recordings.reference(), "ns": recordings.AS_RECORDED} | how
    return recordings.record(folder, change=change, **how)


def compared(run: Run, study: str = "lemire") -> pd.DataFrame:
    studies = [STUDIES[study]]
    return agreement(run, counterpart(run, studies), studies).set_index(["id", "release"])


@pytest.fixture
def agree(tmp_path, monkeypatch):
    """A function that runs `gccost agree` on the runs of a temporary folder."""
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path))

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli.main, ["agree", *arguments])

    return run


def test_a_figure_agrees_within_the_interval_of_the_factor(tmp_path):
    found = {
        factor: compared(times_as_slow(tmp_path / str(factor), factor)).loc[("L1", "Go 1.20.14")]
        for factor in (1, 4, 0.05)
    }
    assert found[4]["factor"] == pytest.approx(4 * found[1]["factor"], rel=0.01)
    assert 1 < found[4]["tolerance"] < 2
    assert [row["inside"] for row in found.values()] == [True, False, False]
    assert [row["contradicts"] for row in found.values()] == [False, False, True]


def test_without_a_tolerance_only_the_verdicts_are_compared(tmp_path):
    run = recordings.record(tmp_path, "siebenmann", like=recordings.reference())
    found = compared(run, "siebenmann")
    assert found.loc["S7", "tolerance"].isna().all()
    assert found.loc["S7", "inside"].isna().all()
    assert not found.loc["S7", "contradicts"].any()


@pytest.mark.parametrize(("factor", "code"), [(1, 0), (4, 1)])
def test_the_exit_code_says_whether_a_run_agrees(tmp_path, agree, factor, code):
    times_as_slow(tmp_path, factor)
    done = agree()
    assert done.exit_code == code, done.output
    (outside,) = re.findall(r"tolerances: (\d+) of 8 figures \(by chance up to 1\)", done.output)
    assert (int(outside) > 1) == bool(code)


@pytest.mark.parametrize("study", ["addcleanup"])
def test_a_cleanup_that_takes_twice_as_long_does_not_agree(tmp_path, agree, study):
    times_as_slow(tmp_path, 2.0, "AllocateCleanup", study=study)
    assert agree().exit_code == 1


def test_two_releases_that_were_exchanged_do_not_agree(tmp_path, agree):
    reference = recordings.reference()
    run = times_as_slow(tmp_path, 1.0, study="addcleanup")
    text = run.samples_txt.read_text()
    exchanged = {f"go={ISSUE_GO}/": f"go={TODAY_GO}/", f"go={TODAY_GO}/": f"go={ISSUE_GO}/"}
    either = "|".join(map(re.escape, exchanged))
    run.samples_txt.write_text(re.sub(either, lambda found: exchanged[found[0]], text))
    done = agree()
    assert reference.name in done.output
    assert done.exit_code == 1, done.output


@pytest.mark.parametrize("factor", [1, 40])
def test_figures_of_another_cpu_are_held_to_what_recorded_machines_differ_by(
    tmp_path, agree, factor
):
    times_as_slow(tmp_path, factor, like=None)
    done = agree()
    assert done.exit_code == 0
    assert "such a figure moved at most between recorded machines" in done.output
    run, studies = Run(next(tmp_path.glob("2*"))), [*STUDIES.values()]
    found = agreement(run, counterpart(run, studies), studies).set_index(["id", "release"])
    row = found.loc[("L1", "Go 1.20.14")]
    assert row["factor"] == pytest.approx(factor, rel=0.1)
    assert row["inside"] == (factor == 1)
    assert f"tolerances: {(~found['inside']).sum()} of" in done.output
    farthest = found["tolerance"].dropna().unique()
    assert len(farthest) == 1
    assert farthest > 1.3


@pytest.mark.parametrize("days", [["2026-11-26"], ["2026-11-26", "2026-11-29"]])
def test_a_recording_of_one_day_is_said_to_be_one(tmp_path, agree, monkeypatch, days):
    recorded = recordings.reference()
    shutil.copytree(recorded.folder, tmp_path / "reference" / recorded.name)
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    copied = Run(tmp_path / "reference" / recorded.name)
    first = copied.manifest()["sittings"][0]
    copied.update(sittings=[first | {"began": f"{day}T10:00:00Z"} for day in days])
    times_as_slow(tmp_path, 1.0)
    done = agree()
    assert f"sittings: {len(days)}, days: {len(days)}" in done.output
    assert ("recorded sittings are of one day" in done.output) == (len(days) == 1)


def test_without_a_second_machine_figures_of_another_cpu_are_not_judged(
    tmp_path, agree, monkeypatch
):
    recorded = recordings.reference()
    shutil.copytree(recorded.folder, tmp_path / "reference" / recorded.name)
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    times_as_slow(tmp_path, 4, like=None)
    done = agree()
    assert done.exit_code == 0
    assert "No two machines are recorded" in done.output
    assert compared(Run(next(tmp_path.glob("2*"))))["inside"].isna().all()


def test_a_damaged_run_is_named_and_the_folder_that_holds_no_other(tmp_path, agree):
    run = times_as_slow(tmp_path, 1.0)
    (run.folder / "jobs.csv").unlink()
    done = agree()
    assert done.exit_code == 1
    assert f"The run {run.name} is skipped: jobs.csv" in done.output
    assert f"{tmp_path}: there is no run to compare" in done.output


def test_runs_without_a_common_claim_are_not_said_to_agree(tmp_path, agree):
    times_as_slow(tmp_path, 1.0)
    done = agree("--run", "20261128T183926-4b5c7f")
    assert done.exit_code == 1
    assert "the run has no claim in common with 20261128T183926-4b5c7f" in done.output


def test_a_recorded_run_is_chosen_by_its_name(tmp_path, agree):
    times_as_slow(tmp_path, 1.0)
    reference = recordings.reference()
    assert f"recorded: {reference.name}, " in agree("--run", reference.name[:12]).output
    unknown = agree("--run", "2019")
    assert unknown.exit_code == 1
    assert "there is no recorded run '2019'" in unknown.output
    several = agree("--run", "2026")
    assert several.exit_code == 1
    assert re.search(r"gccost agree: there are \d recorded runs '2026'", several.output)


def test_samples_that_were_changed_after_measuring_are_said_to_be(tmp_path, agree):
    run = times_as_slow(tmp_path, 1.0)
    told = f"samples.txt of the run {run.name} was changed after measuring ended"
    assert told not in agree().output
    run.samples_txt.write_text(run.samples_txt.read_text().replace("ns/op", "ns/op ", 1))
    assert told in agree().output


def test_a_run_of_other_programs_has_no_counterpart(tmp_path, monkeypatch):
    run = times_as_slow(tmp_path, 1.0)
    monkeypatch.setattr("gccost.cases.sources.changed", lambda study, programs: ["cstr"])
    with pytest.raises(GccostError, match="no recorded run has measured the programs"):
        counterpart(run, [STUDIES["lemire"]])


def test_figures_of_too_few_rounds_are_counted_and_not_compared(tmp_path, agree):
    times_as_slow(tmp_path, 1.0, rounds=2)
    done = agree()
    assert "tolerances: 0 of 0 figures" in done.output
    assert re.search(r"without a figure in your run: [1-9]", done.output)


@pytest.mark.parametrize("delay", [0.02, 0.5])
def test_a_run_on_a_busy_machine_is_named(tmp_path, agree, delay):
    def change(job: Job, number: int, metrics: recordings.Metrics) -> None:
        metrics["run-delay-share"] = delay

    like = recordings.reference()
    recordings.record(tmp_path, like=like, ns=recordings.AS_RECORDED, change=change)
    assert ("kept the machine busy" in agree().output) == (delay > 0.1)


@pytest.mark.parametrize(("figures", "most"), [(1, 0), (10, 1), (83, 3)])
def test_a_few_figures_may_lie_outside_by_chance(figures, most):
    found = pd.DataFrame({"inside": [True] * figures + [None]}).astype("boolean")
    assert by_chance(found) == most


def test_without_a_run_it_says_how_to_measure_one(agree):
    done = agree()
    assert done.exit_code == 1
    assert "make report" in done.output
