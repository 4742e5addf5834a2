"""What changed since the last sitting: a sitting against the earlier ones, or run against run."""

from __future__ import annotations

from pathlib import Path

import pytest
import recordings

import gccost
from gccost.judging.agreement import Pair
from gccost.judging.since import Since, since_last
from gccost.run.jobtable import Job
from gccost.run.runs import Run
from gccost.showing import results
from gccost.studies import STUDIES

BEGAN = [f"2026-11-2{day}T08:30:00Z" for day in (1, 2, 3)]
FINALIZER = ("L1", "Go 1.27.4")


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch) -> Path:
    """The folder of your own runs."""
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path))
    return tmp_path


def sat(folder: Path, sittings: int, slower: float = 1.0, study: str = "lemire") -> Run:
    """A run of so many sittings; a finalizer is this much slower in the last one."""

    def change(job: Job, number: int, metrics: recordings.Metrics) -> None:
        metrics["sitting"] = 1 + (number - 1) // 4
        if metrics["sitting"] == sittings and job["benchmark"] == "AllocateAuto":
            metrics["ns/op"] *= slower

    run = recordings.record(folder, study, rounds=4 * sittings, change=change)
    kept = {"studies": [study], "budget": "standard", "because": "it was made up"}
    run.update(sittings=[{"began": began, **kept} for began in BEGAN[:sittings]])
    return run


def changed(run: Run) -> Since:
    found = since_last(run, STUDIES.values())
    assert found is not None
    return found


def of(since: Since, claim: str, release: str) -> Pair:
    (found,) = (
        pair
        for pair in since.pairs
        if (pair.ours.claim.id, pair.ours.toolchain) == (claim, release)
    )
    return found


def moved(since: Since) -> set[tuple[str, str]]:
    rows = [pair.ours for pair in since.pairs if pair.inside is False]
    return {(row.claim.id, row.toolchain) for row in rows}


@pytest.mark.parametrize("sittings", [2, 3])
def test_the_last_sitting_is_compared_with_those_before_it(own, sittings):
    assert not moved(changed(sat(own, sittings)))
    since = changed(sat(own, sittings, slower=3.0))
    assert FINALIZER in moved(since)
    pair = of(since, *FINALIZER)
    assert pair.factor == pytest.approx(3, rel=0.05)
    assert (pair.ours.estimate.rounds, pair.theirs.estimate.rounds) == (4, 4 * (sittings - 1))
    assert since.now == f"the sitting of 2026-11-2{sittings} 08:30"
    assert since.before.endswith(f"until 2026-11-2{sittings - 1} 08:30")


def test_a_profile_belongs_to_the_sitting_of_its_round(own):
    share = of(changed(sat(own, 2, study="siebenmann")), "S3", "Go 1.27.4")
    assert (share.ours.estimate.n, share.theirs.estimate.n) == (4, 4)


def test_a_sitting_that_was_stopped_at_once_shows_nothing(own, monkeypatch):
    monkeypatch.setenv("GCCOST_MODE", "measure")
    run = sat(own, 2)
    sittings = run.manifest()["sittings"]
    run.update(sittings=[*sittings, {**sittings[-1], "began": BEGAN[2], "because": ""}])
    assert changed(run).pairs == ()
    assert gccost.results().since_last() is None


def test_a_first_sitting_is_compared_with_the_run_before_it(own):
    first = sat(own, 1)
    assert since_last(first, STUDIES.values()) is None
    second = sat(own, 1, slower=3.0)
    since = changed(second)
    assert FINALIZER in moved(since)
    assert since.before == "your run of 2026-11-21 08:30"


def test_a_run_of_another_machine_is_not_the_last_one(own):
    recordings.record(own, cpu="Another CPU")
    assert since_last(sat(own, 1), STUDIES.values()) is None


def test_the_table_begins_with_what_moved(own):
    shown = results.changes(changed(sat(own, 2, slower=3.0)))
    summary, header, first, *_ = shown.text.splitlines()
    assert "figures moved" in summary
    assert "2026-11-22 08:30" in header
    assert "moved (tolerance 1." in first
    assert shown.html.startswith("<details open>")
    still = results.changes(changed(sat(own, 2)))
    assert still.html.startswith("<details><summary>Since the sitting until 2026-11-21 08:30: 0 of")


@pytest.mark.parametrize("mode", ["measure", "replay"])
def test_nothing_is_shown_of_recorded_runs_or_of_a_first_run(own, monkeypatch, mode):
    monkeypatch.setenv("GCCOST_MODE", mode)
    assert gccost.results().since_last() is None
    sat(own, 1)
    assert gccost.results().since_last() is None
    sat(own, 2)
    shown = gccost.results().since_last()
    assert (shown is not None) == (mode == "measure")
