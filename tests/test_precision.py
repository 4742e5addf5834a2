"""The precision study: independent measurements by two methods."""

from __future__ import annotations

from collections import Counter
from math import exp
from pathlib import Path

import pytest
import recordings
from campaigns import TINY, gccost
from conftest import FakeMachine
from faketools import wait_for
from measured import run_sample
from test_campaign import program

from gccost import paths
from gccost.cases import jobs
from gccost.cases.versions import TODAY_GO
from gccost.costs.recording import Recording
from gccost.judging import ledger
from gccost.judging.quantities import Ratio
from gccost.judging.rules import Label
from gccost.measuring.sampler import SampleFailed
from gccost.run import runs
from gccost.run.jobtable import Job
from gccost.showing import results
from gccost.studies.precision import (
    BASELINE,
    COSTLY,
    COUNT,
    MEASUREMENTS,
    OURS,
    STUDY,
    MedianRatio,
    measured_by,
    measurements,
)

# A program that prints -test.count results, each with a different time.
BEHAVIOUR = """
for arg; do case $arg in -test.count=*) count=${arg#*=} ;; esac; done
case $name in *Auto) base=100 ;; *) base=10 ;; esac
i=0
while [ $i -lt "${count:-1}" ]; do
  ns=$base.$i
  line "$name"
  i=$((i + 1))
done
"""
LOADS = ("quiet", "busy")

# --- measuring ---------------------------------------------------------------------


def test_a_round_has_the_samples_of_each_method_and_load(machine: FakeMachine):
    machine.behaviour = BEHAVIOUR
    done = gccost("measure", "--only=precision")
    assert done.exit_code == 0, done.stderr
    (run,) = runs.all_runs(paths.runs())
    taken = Counter(sample.full_name for sample in run.reading().samples.values())
    counts = {(OURS, BASELINE): jobs.PROCESSES * TINY.rounds, (OURS, COSTLY): TINY.rounds}
    assert taken == {
        jobs.name(measured_by(name, method, load, number), TODAY_GO): counts.get((method, name), 10)
        for name in (BASELINE, COSTLY)
        for method in (OURS, COUNT)
        for load in LOADS
        for number in MEASUREMENTS
    }
    assert len(set(machine.built)) == len(MEASUREMENTS)  # each has a layout of its own
    recording = Recording(STUDY, run)
    assert recording.problems == ()
    for method in (OURS, COUNT):
        for load in LOADS:
            for quantity in measurements(method, load):
                assert 9 < quantity.on(recording, TODAY_GO).value < 11


def test_a_busy_case_runs_beside_a_loop_that_ends_with_it(tmp_path):
    busy = recordings.job(measured_by(BASELINE, OURS, "busy", "1"))
    children = f'cat /proc/$PPID/task/$PPID/children > "{tmp_path}/children"'
    run_sample(program(tmp_path, f'{children}; line "$name"'), busy, tmp_path)
    loop, own = (tmp_path / "children").read_text().split()
    assert loop != own
    assert wait_for(lambda: not Path("/proc", loop).exists())
    with pytest.raises(SampleFailed, match="exit code 3"):
        run_sample(program(tmp_path, "exit 3"), busy, tmp_path)


# --- methods -------------------------------------------------------------------------

RATIO = Ratio(*(measured_by(b, COUNT, "quiet", "1") for b in (COSTLY, BASELINE)))


def test_the_median_ratio_follows_its_formula(tmp_path):
    def change(job: Job, number: int, metrics: recordings.Metrics) -> None:
        costly = job["benchmark"] == COSTLY
        metrics["ns/op"] = 100 * exp(0.01 * number) if costly else 10.0

    recording = recordings.recorded(tmp_path, "precision", rounds=10, change=change)
    counted = MedianRatio(RATIO).on(recording, TODAY_GO)
    # For ten samples, benchstat's interval goes from the second to the ninth.
    assert counted.value == pytest.approx(10 * exp(0.055))
    assert counted.high / counted.value == pytest.approx(exp(0.035))
    frame = recording.frame[recording.frame["round"] <= 5]
    five = recordings.having(recording, frame=frame)
    assert not MedianRatio(RATIO).on(five, TODAY_GO).n


def test_the_ledger_shows_what_x9_judges(tmp_path):
    recording = recordings.recorded(tmp_path, "precision", rounds=4)
    agrees, spread, _ = ledger.rows({"precision": recording}, [recording.study])
    assert "go test" in results.measured_text(agrees)
    assert spread.estimate.value == pytest.approx(1.0, abs=0.03)

    def third(job: Job, number: int, metrics: recordings.Metrics) -> None:
        if recordings.keys(job)["measurement"] != "3":
            metrics.clear()

    alone = recordings.recorded(tmp_path / "alone", "precision", rounds=4, change=third)
    rows = ledger.rows({"precision": alone}, [recording.study])
    assert {row.verdict.label for row in rows} == {Label.UNMEASURED}
