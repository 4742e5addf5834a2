"""The precision study: independent measurements, each complete or absent."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from math import exp
from pathlib import Path

import pytest
import recordings
from campaigns import PRECISION, TINY, after, gccost
from conftest import FakeMachine

from gccost import paths
from gccost.judging import ledger
from gccost.judging.quantities import Ratio
from gccost.judging.recording import Recording
from gccost.judging.rules import Label
from gccost.measuring import benchfmt, campaign, planning, runs
from gccost.measuring.jobs import Job
from gccost.measuring.progress import unwatched
from gccost.measuring.runs import Run
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing import results
from gccost.studies import repeated
from gccost.studies.precision import (
    BASELINE,
    COSTLY,
    COUNT,
    LOADS,
    MEASUREMENTS,
    OURS,
    MedianRatio,
    measured_by,
    measurements,
)

# A program that prints -test.count results for each benchmark of the pattern, each with a
# different time.
BEHAVIOUR = """
for arg; do case $arg in -test.count=*) count=${arg#*=} ;; esac; done
for each in $(echo "$name" | sed 's/^Benchmark//; s/|/ /g'); do
  case $each in *Auto) base=100 ;; *) base=10 ;; esac
  i=0
  while [ $i -lt "${count:-1}" ]; do
    ns=$base.$i
    line "Benchmark$each"
    i=$((i + 1))
  done
done
"""


@pytest.fixture(autouse=True)
def _briefly(monkeypatch) -> None:
    monkeypatch.setattr(repeated, "SECONDS", 0.0)


@pytest.fixture
def plan(machine: FakeMachine, monkeypatch) -> planning.Plan:
    """A plan whose samples take no time."""

    def one(of: Job, program: Path, scratch: Path) -> benchfmt.Sample:
        return recordings.of_job(of, {"ns/op": 100.0 if of["benchmark"] == COSTLY else 10.0})

    def count(pair: list[Job], program: Path, count: int, *_: object) -> list[benchfmt.Sample]:
        return [one(of, program, program).with_metrics({"round": 1.0}) for of in pair] * count

    monkeypatch.setattr(repeated, "sample", one)
    monkeypatch.setattr(repeated, "in_one_process", count)
    monkeypatch.setattr(repeated, "_load", contextlib.nullcontext)
    return planning.plan([PRECISION], TINY)


def sizes(run: Run) -> Mapping[tuple[str, ...], int]:
    """The number of samples of each measurement and benchmark."""
    keys = ("method", "load", "measurement")
    return Counter(
        (*(sample.keys[key] for key in keys), sample.name)
        for sample in run.reading().samples.values()
    )


WHOLE = {
    (method, load, number, benchmark): samples
    for load in LOADS
    for number in MEASUREMENTS
    for method, benchmark, samples in (
        (OURS, BASELINE, 16),  # four rounds: two before the costly process and two after it
        (OURS, COSTLY, 4),
        (COUNT, BASELINE, 10),
        (COUNT, COSTLY, 10),
    )
}

# --- measuring ---------------------------------------------------------------------


def test_real_processes_measure_each_method_and_load(machine: FakeMachine):
    machine.behaviour = BEHAVIOUR
    done = gccost("measure", "--only=precision")
    assert done.exit_code == 0, done.stderr
    (run,) = runs.all_runs(paths.runs())
    assert sizes(run) == WHOLE
    recording = Recording(PRECISION, run)
    assert recording.problems == ()
    assert "precision" in run.studies
    for method in (OURS, COUNT):
        for load in LOADS:
            for quantity in measurements(method, load):
                assert 9 < recording.estimate(quantity, TODAY_GO).value < 11


@pytest.mark.parametrize("at", [0, 5])
def test_an_interrupted_measurement_is_repeated_entirely(plan: planning.Plan, at):
    with pytest.raises(KeyboardInterrupt):
        repeated.measure(plan, after(at))
    run = campaign.find(plan)
    assert run is not None
    before = run.samples_txt.read_bytes()
    assert len(run.manifest().get("done", [])) == at
    assert repeated.measure(plan, unwatched) == run
    assert run.samples_txt.read_bytes().startswith(before)
    assert sizes(run) == WHOLE
    again = repeated.measure(plan, unwatched)
    assert again.samples_txt.read_bytes() == run.samples_txt.read_bytes()


def test_an_uncounted_measurement_is_not_duplicated(plan: planning.Plan, monkeypatch):
    update = Run.update

    def killed(run: Run, **facts: object) -> None:
        if len(facts.get("done", [])) == 3:  # type: ignore[arg-type]
            raise KeyboardInterrupt
        update(run, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "update", killed)
        with pytest.raises(KeyboardInterrupt):
            repeated.measure(plan, unwatched)
    assert sizes(repeated.measure(plan, unwatched)) == WHOLE


# --- methods -------------------------------------------------------------------------

RATIO = Ratio(*(measured_by(b, COUNT, "quiet", "1") for b in (COSTLY, BASELINE)))


def test_the_median_ratio_follows_its_formula(tmp_path):
    def change(job: Job, number: int, metrics: recordings.Metrics) -> None:
        costly = job["benchmark"] == COSTLY
        metrics["ns/op"] = 100 * exp(0.01 * number) if costly else 10.0

    recording = recordings.recorded(tmp_path, "precision", rounds=10, change=change)
    counted = recording.estimate(MedianRatio(RATIO), TODAY_GO)
    # For ten samples, benchstat's interval goes from the second to the ninth.
    assert counted.value == pytest.approx(10 * exp(0.055))
    assert counted.high / counted.value == pytest.approx(exp(0.035))
    frame = recording.frame[recording.frame["round"] <= 5]
    five = recordings.having(recording, frame=frame)
    assert not five.estimate(MedianRatio(RATIO), TODAY_GO).n


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
