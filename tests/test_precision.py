"""The precision experiment: independent measurements, complete or not at all."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import FakeMachine

from gccost.judging import ledger
from gccost.judging.claims.quantities import Agreement
from gccost.judging.claims.rules import Label
from gccost.judging.recording import Recording
from gccost.measuring import benchfmt, measure, precision
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.experiments.base import BUDGETS
from gccost.measuring.experiments.precision import (
    BASELINE_REPEATS,
    DRIFT,
    ITSELF,
    LOADS,
    MEASUREMENTS,
    METHODS,
    independent,
)
from gccost.measuring.runs import Run
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing import charts

PRECISION = EXPERIMENTS["precision"]
TINY = BUDGETS["tiny"]
KEYS = ["benchmark", "method", "load", "measurement", "round"]
# A program that answers for every benchmark of the pattern, as often as asked,
# each with another time, and with laps where they are asked for.
BEHAVIOUR = """
for arg; do case $arg in -test.count=*) count=${arg#*=} ;; esac; done
for each in $(echo "$name" | sed 's/^Benchmark//; s/|/ /g'); do
  case $each in *Auto) base=100 ;; *Cleanup) base=50 ;; *) base=10 ;; esac
  i=0
  while [ $i -lt "${count:-1}" ]; do
    ns=$base.$i
    line "Benchmark$each" | sed "s/$/\\t5 lap01-ns\\/op\\t6 lap02-ns\\/op/"
    i=$((i + 1))
  done
done
"""


def nothing(done: float, total: float, what: str) -> None:
    pass


@pytest.fixture
def plan(machine: FakeMachine) -> measure.Plan:
    machine.behaviour = BEHAVIOUR
    return measure.plan(PRECISION, TINY)


def test_each_method_and_load_is_measured_so_many_times(plan: measure.Plan) -> None:
    run = precision.measure(plan, nothing, seconds=0.1)
    recording = Recording.load(PRECISION, run)
    assert recording.problems == ()
    for method in METHODS:
        for load in LOADS:
            for ratio in independent("AllocateAuto", method, load):
                estimate = recording.ratio(ratio, TODAY_GO)
                assert estimate.samples >= 2
                assert 9 < estimate.value < 11
    assert len(recording.samples(DRIFT, TODAY_GO)) == len(MEASUREMENTS)


def test_a_measurement_that_was_broken_off_is_made_again_whole(plan: measure.Plan) -> None:
    steps = 0

    def stop(done: float, total: float, what: str) -> None:
        nonlocal steps
        steps += 1
        if steps == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        precision.measure(plan, stop, seconds=0.1)
    run = measure.find(plan)
    assert run is not None
    before = run.results("precision").read_bytes()
    assert len(run.experiment("precision")["done"]) == 4
    assert precision.measure(plan, nothing, seconds=0.1) == run
    assert run.results("precision").read_bytes().startswith(before)
    frame = benchfmt.read(run.results("precision")).frame
    repeats = frame[~frame["method"].isin(["", "beside"])].groupby(KEYS).size()
    assert set(repeats) <= {1, BASELINE_REPEATS}


def test_what_is_beside_the_baseline_is_one_process_and_the_baseline_others(
    plan: measure.Plan,
) -> None:
    run = precision.measure(plan, nothing, seconds=0.1)
    frame = benchfmt.read(run.results("precision")).frame
    beside = frame[frame["method"] == "beside"]
    for _, round_ in beside.groupby(["load", "measurement", "round"]):
        baseline = (round_["benchmark"] == "AllocateFree") & (round_["against"] == "")
        assert (~baseline).sum() == 1
        assert baseline.sum() >= 1
    recording = Recording.load(PRECISION, run)
    for load in LOADS:
        for ratio in independent(ITSELF, "beside", load):
            assert recording.ratio(ratio, TODAY_GO).value == pytest.approx(1, abs=0.1)


def test_how_far_pairs_scatter(plan: measure.Plan) -> None:
    recording = Recording.load(PRECISION, precision.measure(plan, nothing, seconds=0.1))
    ratios = independent("AllocateAuto", "rounds", "quiet")
    logs = [
        np.log(pairs["numerator"] / pairs["denominator"])
        for pairs in (recording.pairs(ratio, TODAY_GO) for ratio in ratios)
    ]
    expected = np.sqrt(np.mean([x.var(ddof=1) for x in logs]))
    assert recording.scatter(ratios, TODAY_GO) == pytest.approx(expected)
    assert np.isnan(recording.scatter([], TODAY_GO))


def test_a_measurement_that_was_written_and_not_yet_counted_is_not_doubled(
    plan: measure.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Run.update

    def killed(run: Run, experiment: str, **facts: object) -> None:
        if len(facts.get("done", [])) == 3:  # type: ignore[arg-type]
            raise KeyboardInterrupt
        update(run, experiment, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "update", killed)
        with pytest.raises(KeyboardInterrupt):
            precision.measure(plan, nothing, seconds=0.1)
    run = precision.measure(plan, nothing, seconds=0.1)
    frame = benchfmt.read(run.results("precision")).frame
    repeats = frame[~frame["method"].isin(["", "beside"])].groupby(KEYS).size()
    assert set(repeats) <= {1, BASELINE_REPEATS}


def test_measurements_that_agree_hold_and_others_do_not(plan: measure.Plan, tmp_path) -> None:
    run = precision.measure(plan, nothing, seconds=0.1)

    def verdict() -> ledger.Row:
        recording = Recording.load(PRECISION, run)
        (row,) = ledger.rows({"precision": recording}, recording.claims)
        return row

    row = verdict()
    assert row.verdict.label is Label.HOLDS
    assert row.estimate.value == pytest.approx(1, abs=0.02)
    path = run.results("precision")
    moved = [
        line.replace("\t100 ", "\t130 ")
        if "AllocateAuto/" in line and "method=rounds/load=busy/measurement=3" in line
        else line
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(moved) + "\n")
    row = verdict()
    assert row.verdict.label is Label.FAILS
    assert row.estimate.value == pytest.approx(1.3, abs=0.02)


def test_its_charts_are_drawn_from_the_run(plan: measure.Plan) -> None:
    recording = Recording.load(PRECISION, precision.measure(plan, nothing, seconds=0.1))
    chart = charts.CHARTS["precision"](recording)
    lines = 2 * len(METHODS) + 1  # each ratio by each method, and the baseline beside itself
    assert len(chart.data) == lines * len(LOADS) * len(MEASUREMENTS)
    drift = charts.CHARTS["precision-drift"](recording)
    assert list(drift.data["estimate"]) == [5, 6]


def test_one_measurement_alone_has_no_spread(plan: measure.Plan) -> None:
    recording = Recording.load(PRECISION, precision.measure(plan, nothing, seconds=0.1))
    (first, *_) = independent("AllocateAuto", "rounds", "quiet")
    assert recording.spread(Agreement(((first,),)), TODAY_GO).samples == 0
