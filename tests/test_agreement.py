"""A new run is compared with the recorded one."""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest
import recordings
from click.testing import CliRunner

from gccost import cli
from gccost.judging.agreement import agreement, by_chance
from gccost.run.jobtable import Job
from gccost.run.runs import Run
from gccost.studies import STUDIES


def times_as_slow(folder, factor: float) -> Run:
    """A run whose finalizers take so many times as long as the recorded ones."""

    def change(job: Job, number: int, metrics: recordings.Metrics) -> None:
        if recordings.is_of(job, "AllocateAuto"):
            metrics["ns/op"] *= factor

    return recordings.record(folder, ns=recordings.AS_RECORDED, change=change)


def test_a_figure_agrees_within_the_tolerance_of_a_quick_run(tmp_path):
    found = {
        factor: agreement(times_as_slow(tmp_path / str(factor), factor), [STUDIES["lemire"]])
        .set_index(["id", "release"])
        .loc[("L1", "Go 1.20.14")]
        for factor in (1, 4, 0.05)
    }
    assert found[4]["factor"] == pytest.approx(4 * found[1]["factor"], rel=0.01)
    assert 1 < found[4]["tolerance"] < 4
    assert [row["inside"] for row in found.values()] == [True, False, False]
    assert [row["contradicts"] for row in found.values()] == [False, False, True]


def test_without_a_tolerance_only_the_verdicts_are_compared(tmp_path):
    run = recordings.record(tmp_path, "siebenmann")
    found = agreement(run, [STUDIES["siebenmann"]]).set_index("id")
    assert math.isnan(found.loc["S7", "tolerance"].iloc[0])
    assert found.loc["S7", "inside"].isna().all()
    assert not found.loc["S7", "contradicts"].any()


@pytest.mark.parametrize(("factor", "code"), [(1, 0), (4, 1)])
def test_the_exit_code_says_whether_a_run_agrees(tmp_path, monkeypatch, factor, code):
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path))
    times_as_slow(tmp_path, factor)
    done = CliRunner().invoke(cli.main, ["agree"])
    assert done.exit_code == code, done.output
    outside, contradicting = (0, 0) if code == 0 else (6, 2)
    assert f"tolerances: {outside} of 8 figures (by chance up to 1)" in done.output
    assert f"recorded run: {contradicting} of 8 verdicts" in done.output


def test_figures_of_too_few_rounds_are_counted_and_not_compared(tmp_path, monkeypatch):
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path))
    recordings.record(tmp_path, rounds=2, ns=recordings.AS_RECORDED)
    done = CliRunner().invoke(cli.main, ["agree"])
    assert "tolerances: 0 of 0 figures" in done.output
    assert re.search(r"without a figure in your run: [1-9]", done.output)


@pytest.mark.parametrize("delay", [0.02, 0.5])
def test_a_run_on_a_busy_machine_is_named(tmp_path, monkeypatch, delay):
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path))

    def change(job: Job, number: int, metrics: recordings.Metrics) -> None:
        metrics["run-delay-share"] = delay

    recordings.record(tmp_path, ns=recordings.AS_RECORDED, change=change)
    done = CliRunner().invoke(cli.main, ["agree"])
    assert ("kept the machine busy" in done.output) == (delay > 0.1)


@pytest.mark.parametrize(("figures", "most"), [(1, 0), (10, 1), (83, 3)])
def test_a_few_figures_may_lie_outside_by_chance(figures, most):
    found = pd.DataFrame({"inside": [True] * figures + [None]}).astype("boolean")
    assert by_chance(found) == most


def test_without_a_run_it_says_how_to_measure_one(tmp_path, monkeypatch):
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path))
    done = CliRunner().invoke(cli.main, ["agree"])
    assert done.exit_code == 1
    assert "make report" in done.output
