"""Estimates, verdicts and charts follow from a run folder's data."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
from collections.abc import Callable, Container
from dataclasses import replace

import pandas as pd
import pytest
import recordings

from gccost.cases import jobs
from gccost.cases.versions import TODAY_GO
from gccost.costs import busy
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.judging import ledger
from gccost.judging.ledger import Row
from gccost.judging.quantities import (
    AddedRatio,
    Amount,
    CurveDepth,
    Difference,
    ExclusiveEvents,
    Ratio,
    SavedShare,
    Worst,
)
from gccost.judging.rules import Label, Verdict
from gccost.notebook import OpenedStudy
from gccost.run import jobtable
from gccost.run.jobtable import Job
from gccost.showing import notice as showing
from gccost.showing import results
from gccost.stats import FEWEST, JUDGED, Estimate
from gccost.studies import CLAIMS, STUDIES

LEMIRE = STUDIES["lemire"]
ONLY_L1 = replace(LEMIRE, claims=(CLAIMS["L1"],))
FREE, AUTO, CLEANUP, DUMMY = (f"Allocate{what}" for what in ("Free", "Auto", "Cleanup", "Dummy"))
FREE_NOW, AUTO_NOW = (jobs.name(case, TODAY_GO) for case in (FREE, AUTO))
RATIO = Ratio(AUTO, FREE)
HOLDS, UNDECIDED, UNMEASURED = Label.HOLDS, Label.UNDECIDED, Label.UNMEASURED


def judged(recording: Recording) -> dict[str, Row]:
    """The ledger rows of today's release, by claim id."""
    rows = ledger.rows({"lemire": recording}, [recording.study])
    return {row.claim.id: row for row in rows if row.release == TODAY_GO}


def notice(*shown: Recording) -> str:
    return showing.notice(shown).text


pytestmark = pytest.mark.usefixtures("no_recorded_sittings")


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Recording:
    return recordings.recorded(tmp_path_factory.mktemp("runs"))


# --- estimates -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        (Ratio(AUTO, FREE), 700 / 80),
        (CLAIMS["L3"].quantity, 0.137),
        (Amount(DUMMY, "c_unfreed_drained"), 1_600_000),
        (SavedShare(AUTO, CLEANUP, FREE), (700 - 400) / (700 - 80)),
        (AddedRatio(AUTO, FREE, CLEANUP, FREE), (700 - 80) / (400 - 80)),
        (Difference(AUTO, FREE, "gc_cycles"), 3),
        (Worst((Ratio(AUTO, FREE), Ratio(CLEANUP, FREE))), 700 / 80),
        (
            CurveDepth(tuple(Difference(way, FREE) for way in (AUTO, CLEANUP, DUMMY))),
            (700 - 80) / (400 - 80),
        ),
        (ExclusiveEvents("c_unfreed_drained", (DUMMY, AUTO), ((FREE, FREE),)), 1),
        (ExclusiveEvents("c_unfreed_drained", (DUMMY, AUTO), ((DUMMY, FREE),)), 0),
    ],
    ids=lambda x: type(x).__name__,
)
def test_each_quantity_has_the_expected_estimate(recording: Recording, quantity, value):
    assert not recording.problems
    estimate = quantity.on(recording, TODAY_GO)
    assert estimate.value == pytest.approx(value, rel=0.05)
    assert estimate.low <= estimate.value <= estimate.high < math.inf


def test_a_difference_has_the_errors_of_both_sides(tmp_path):
    def varies(job: Job, number: int, metrics: recordings.Metrics) -> None:
        if recordings.is_of(job, AUTO, FREE):
            metrics["gc-cycles"] = float(number if recordings.is_of(job, AUTO) else number % 3)

    made = recordings.recorded(tmp_path, change=varies)
    difference = Difference(AUTO, FREE, "gc_cycles")
    gap, over, under = (
        quantity.on(made, TODAY_GO)
        for quantity in (difference, *(Amount(side, "gc_cycles") for side in difference.cases))
    )
    halves = [each.high - each.value for each in (over, under)]
    assert gap.value == over.value - under.value
    assert gap.high - gap.value == pytest.approx(math.hypot(*halves))


# --- what a recording holds ------------------------------------------------------


def sat(sittings: int, *also: recordings.Change) -> recordings.Change:
    """Rounds in so many sittings in turn, and other changes."""

    def change(job: Job, number: int, metrics: recordings.Metrics) -> None:
        metrics["sitting"] = 1.0 + number % sittings
        for each in also:
            each(job, number, metrics)

    return change


def of_auto(
    change: Callable[[recordings.Metrics], object], rounds: Container[int] = range(99)
) -> recordings.Change:
    """A change of the finalizer's samples in some rounds."""

    def changed(job: Job, number: int, metrics: recordings.Metrics) -> None:
        if job["benchmark"] == "AllocateAuto" and number in rounds:
            change(metrics)

    return changed


def zero(metrics: recordings.Metrics) -> None:
    metrics["ns/op"] = 0.0


@pytest.mark.parametrize("spoil", [zero, lambda metrics: metrics.pop("ns/op")], ids=["0", "NaN"])
def test_a_time_of_zero_or_none_enters_no_cost(tmp_path, spoil):
    spoilt, without = (
        recordings.recorded(tmp_path / name, change=of_auto(change, {2, 5}))
        for name, change in (("spoilt", spoil), ("without", dict.clear))
    )
    for quantity in (RATIO, Difference(AUTO, FREE)):
        assert quantity.on(spoilt, TODAY_GO) == quantity.on(without, TODAY_GO)
    assert spoilt.cost(AUTO_NOW).rounds == 6
    none = recordings.recorded(tmp_path / "none", change=of_auto(spoil))
    assert math.isnan(RATIO.on(none, TODAY_GO).value)
    assert judged(none)["L1"].verdict.label is UNMEASURED


def test_samples_in_any_order_give_the_same_bytes(tmp_path):
    run = recordings.record(tmp_path, change=sat(3), rounds=9)

    def written() -> str:
        rows = ledger.rows({"lemire": Recording(LEMIRE, run)}, [LEMIRE])
        return ledger.table(rows).to_csv()

    before, lines = written(), run.samples_txt.read_text().splitlines(keepends=True)
    samples = [line for line in lines if line.startswith("Benchmark")]
    random.Random(1).shuffle(samples)
    others = [line for line in lines if not line.startswith("Benchmark")]
    run.samples_txt.write_text("".join([*others, *samples]))
    assert written() == before


def half(estimate: Estimate) -> float:
    return math.log(estimate.high / estimate.value)


def test_a_control_is_shown_and_widens_no_interval(tmp_path):
    def rough(job: Job, number: int, metrics: recordings.Metrics) -> None:
        if "control" in job and job["benchmark"] == "AllocateFree":
            metrics["ns/op"] *= 1.2 if number % 2 else 1.0

    made, calm = (
        recordings.recorded(tmp_path / name, change=sat(2, *change))
        for name, change in (("rough", [rough]), ("calm", []))
    )
    assert half(RATIO.on(made, TODAY_GO)) == pytest.approx(half(RATIO.on(calm, TODAY_GO)), rel=0.5)
    widths = [OpenedStudy(each).controls.eval("high / low").max() for each in (made, calm)]
    assert widths[0] > 1.1 > widths[1]


@pytest.mark.parametrize("benchmark", ["AllocateFree", "AllocateAuto"])
def test_busy_sittings_are_named_and_count(tmp_path, benchmark):
    def waits(job: Job, number: int, metrics: recordings.Metrics) -> None:
        if job["benchmark"] == benchmark and metrics["sitting"] == 2:
            metrics["run-delay-share"] = 0.3

    made = recordings.recorded(tmp_path, change=sat(3, waits))
    is_named = benchmark == "AllocateFree"
    delays = OpenedStudy(made).busy
    calm = delays[1]
    assert delays.to_dict() == {1: calm, 2: 0.3 if is_named else calm, 3: calm}
    assert calm < busy.BUSY
    said = "1 of 3 sittings were busy: half of the processes of AllocateFree waited"
    assert (said in notice(made)) == is_named
    assert len(made.cost(FREE_NOW).sittings) == 3


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (["SignInTurns/x", "AllocateAuto/x"], None),  # the first waits by design
        (["SignInTurns/x", "HandleFree/x"], "HandleFree"),
        (["HandleFree/x", "AllocateFree/x"], "AllocateFree"),
        (["AllocateFree/load=busy/x", "AllocateFree/x"], "AllocateFree"),
    ],
)
def test_busy_sittings_are_told_by_a_benchmark_that_waits_for_nothing(names, read):
    shares = pd.DataFrame({"name": names, "run_delay_share": [0.9, 0.2], "sitting": 1.0})
    delays = busy.delays(shares)
    assert (delays.name, delays.to_list()) == (read, [0.2] if read else [])
    assert busy.delays(shares.drop(columns="run_delay_share")).empty


def test_the_notice_counts_a_shared_sample_once(recording: Recording):
    other = Recording(STUDIES["siebenmann"], recording.run)
    lines = {*recording.frame["line"], *other.frame["line"]}
    assert len(lines) < len(recording.frame) + len(other.frame)
    assert f"{len(lines)} of these studies" in notice(recording, other)


def test_unusable_profiles_are_reported_and_skipped(tmp_path):
    run = recordings.record(tmp_path, rounds=6)
    name = jobs.name("AllocateAuto/profile=cpu", TODAY_GO)
    empty = run.profile(name, 3)
    recordings.write_profile(empty, [])
    made = Recording(LEMIRE, run)
    assert made.rounds(name) == [1, 2, 4, 5, 6]
    assert made.problems == (f"{empty}: the profile holds no samples",)
    assert made.problems[0] in notice(made)


def test_samples_of_another_number_of_operations_enter_no_cost(tmp_path):
    run = recordings.record(tmp_path)
    planned = [job | {"n": 7} if name == AUTO_NOW else job for name, job in run.table().items()]
    jobtable.write(run.jobs_csv, planned)
    text = run.samples_txt.read_text()
    run.samples_txt.write_text(re.sub(r"(?m)^(BenchmarkAllocateAuto/\S+\s+)\d+", r"\g<1>7", text))
    made = Recording(LEMIRE, run)
    assert made.rounds(AUTO_NOW) == []
    assert made.cost(AUTO_NOW).n == 0
    assert judged(made)["L1"].verdict.label is UNMEASURED


def test_a_run_without_usable_samples_has_no_verdict(tmp_path):
    run = recordings.record(tmp_path, rounds=1)
    run.samples_txt.write_text("goos: linux\n")
    shutil.rmtree(run.folder / "profiles")
    made = Recording(LEMIRE, run)
    rows = ledger.rows({"lemire": made}, [made.study])
    assert {row.verdict.label for row in rows if not row.claim.system} == {UNMEASURED}
    assert str(results.ledger(rows))
    run.samples_txt.unlink()
    with pytest.raises(GccostError, match="holds no samples"):
        Recording(LEMIRE, run)


# --- verdicts ----------------------------------------------------------------------


@pytest.mark.parametrize("value", [390.0, 700.0])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_verdict_needs_three_rounds_and_uses_all(tmp_path, rounds, value):
    row = judged(recordings.recorded(tmp_path, ns={"AllocateAuto": value}, rounds=rounds))["L1"]
    assert row.estimate.rounds == rounds
    assert row.judged.rounds == (rounds if rounds >= FEWEST else 0)
    assert row.verdict.label is (HOLDS if value == 700 and rounds >= FEWEST else UNDECIDED)
    assert row.verdict.label is HOLDS or row.needed >= 1


def test_an_interval_of_one_value_is_no_reason(recording: Recording):
    one = replace(judged(recording)["L1"].judged, low=1.0, high=1.0)
    verdict = Verdict(UNDECIDED, "it is rare")
    assert replace(judged(recording)["L1"], judged=one, verdict=verdict).why == "it is rare"


@pytest.mark.parametrize("value", [340.0, 365.0, 387.0, 410.0, 440.0])
def test_a_verdict_never_contradicts_the_interval_beside_it(tmp_path, value):
    row = judged(recordings.recorded(tmp_path, ns={"AllocateAuto": value}))["L1"]
    least, _ = row.bounds
    assert row.judged.low <= row.estimate.low <= row.estimate.high <= row.judged.high
    assert (row.verdict.label is HOLDS) == (row.judged.low >= 1.05 * least)
    assert (row.verdict.label is Label.FAILS) == (row.judged.high < least / 1.05)


def test_a_later_sitting_may_reopen_a_verdict(tmp_path):
    def later(job: Job, number: int, metrics: recordings.Metrics) -> None:
        metrics["sitting"] = 1 + (number > 4)
        if job["benchmark"] == "AllocateAuto" and number > 4:
            metrics["ns/op"] /= 3

    one = judged(recordings.recorded(tmp_path / "one", rounds=4))["L1"]
    both = judged(recordings.recorded(tmp_path / "both", change=later))["L1"]
    assert one.verdict.label is HOLDS
    assert both.verdict.label is UNDECIDED


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (5.5, "5 times as many sittings could decide it"),
        (5.1, "10 times as many sittings would not decide it"),
    ],
)
def test_a_verdict_that_rounds_cannot_decide_says_what_sittings_would(recording, value, what):
    (row, *_) = ledger.rows({"lemire": recording}, [ONLY_L1])  # its bound is 4.83
    judged = Estimate(value, value / 1.17, value * 1.17, 20, 20, JUDGED, lasting=0.5)
    undecided = replace(row.verdict, label=UNDECIDED)
    row = replace(row, verdict=undecided, judged=judged, needed=math.inf)
    assert row.why.endswith(what)


def test_the_verdict_of_today_is_the_one_that_counts(recording: Recording):
    rows = ledger.rows({"lemire": recording}, [ONLY_L1])
    (then,), (today,) = ([r for r in rows if r.is_today == new] for new in (False, True))
    fails = replace(then, verdict=replace(then.verdict, label=Label.FAILS))
    assert today.verdict.label is HOLDS
    assert ledger.verdict_counts([ledger.Tested((fails, today))]) == {HOLDS: 1}
    assert ledger.verdict_counts([ledger.Tested((fails,))]) == {Label.FAILS: 1}


# --- the ledger ----------------------------------------------------------------------


def test_ledger_csv_and_json_have_one_row_per_claim_and_toolchain(recording: Recording):
    frame = ledger.table(ledger.rows({"lemire": recording}, STUDIES.values()))
    table = json.loads(ledger.as_json(frame.to_csv(index=False)))
    assert not frame.duplicated(["id", "toolchain"]).any()
    fields = {field["name"]: field for field in table["schema"]["fields"]}
    assert list(frame.columns) == list(fields) == list(ledger.COLUMNS)
    assert all(field["description"] for field in fields.values())
    first, *_, last = table["data"]
    assert first["over_published"] == pytest.approx(first["estimate"] / 8.667, 1e-3)
    assert last["verdict"] == "not measured"
    assert last["estimate"] is last["low"] is None
    numbers = [name for name, field in fields.items() if field["type"] == "number"]
    written = frame.replace(dict.fromkeys(numbers, ""), math.nan)
    written = written.astype(dict.fromkeys(numbers, float))
    read = pd.DataFrame(table["data"]).astype(dict.fromkeys(numbers, float))
    pd.testing.assert_frame_equal(read, written, check_dtype=False)
