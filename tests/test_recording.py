"""Estimates, verdicts and charts follow from a run folder's data."""

from __future__ import annotations

import json
import math
import re
import shutil
from dataclasses import replace

import nbformat
import numpy as np
import pandas as pd
import pytest
import recordings

from gccost import paths, stats
from gccost.errors import GccostError
from gccost.judging import ledger, lines
from gccost.judging.ledger import Row
from gccost.judging.lines import Lines
from gccost.judging.quantities import (
    Amount,
    CurveDepth,
    Difference,
    ExclusiveEvents,
    Ratio,
    RatioToEither,
    SavedShare,
    Worst,
)
from gccost.judging.recording import Recording
from gccost.judging.rules import Label
from gccost.measuring.cases import AUTO, CLEANUP, FREE, HEAP_FREE, LOOKS, Case, Variant, profiled
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing import notice as showing
from gccost.showing import results
from gccost.stats import Line
from gccost.studies import CLAIMS, STUDIES

LEMIRE = STUDIES["lemire"]
ONLY_L1 = replace(LEMIRE, claims=(CLAIMS["L1"],))
DUMMY = Variant("AllocateDummy")
HOLDS, UNDECIDED, UNMEASURED = Label.HOLDS, Label.UNDECIDED, Label.UNMEASURED


def judged(recording: Recording) -> dict[str, Row]:
    """The ledger rows of today's release, by claim id."""
    rows = ledger.rows({"lemire": recording}, [recording.study])
    return {row.claim.id: row for row in rows if row.release == TODAY_GO}


def notice(*shown: Recording) -> str:
    return showing.notice(shown, "replay").text


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Recording:
    return recordings.recorded(tmp_path_factory.mktemp("runs"))


# --- estimates -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        (Ratio(AUTO, FREE), 700 / 78.4),
        (CLAIMS["L3"].quantity, 0.25),
        (Amount(DUMMY, "c_unfreed_drained"), 1_600_000),
        (SavedShare(AUTO, CLEANUP, FREE), (700 - 400) / (700 - 80)),
        (Difference(Ratio(AUTO, FREE, "gc_cycles")), 0),
        (RatioToEither(Ratio(AUTO, FREE), Ratio(AUTO, HEAP_FREE)), 700 / math.sqrt(78.4 * 95)),
        (Worst((Ratio(AUTO, FREE), Ratio(CLEANUP, FREE))), 700 / 78.4),
        (
            CurveDepth((Ratio(AUTO, FREE), Ratio(CLEANUP, FREE), Ratio(DUMMY, FREE))),
            (700 - 78.4) / (400 - 78.4),
        ),
        (ExclusiveEvents("c_unfreed_drained", (DUMMY, AUTO), ((FREE, FREE),)), 1),
        (ExclusiveEvents("c_unfreed_drained", (DUMMY, AUTO), ((DUMMY, FREE),)), 0),
    ],
    ids=lambda x: type(x).__name__,
)
def test_each_quantity_has_the_expected_estimate(recording: Recording, quantity, value):
    assert not recording.problems
    estimate = recording.estimate(quantity, TODAY_GO)
    assert estimate.value == pytest.approx(value, rel=0.05)
    assert estimate.low <= estimate.value <= estimate.high < math.inf


def test_a_difference_has_the_errors_of_both_sides(tmp_path):
    def varies(case: Case, number: int, metrics: recordings.Metrics) -> None:
        if case.variant in (AUTO, FREE):
            metrics["gc-cycles"] = float(number if case.variant == AUTO else number % 3)

    made = recordings.recorded(tmp_path, change=varies)
    difference = Difference(Ratio(AUTO, FREE, "gc_cycles"))
    gap, over, under = (
        made.estimate(quantity, TODAY_GO)
        for quantity in (difference, *(Amount(side, "gc_cycles") for side in difference.variants))
    )
    halves = [each.high - each.value for each in (over, under)]
    assert gap.value == over.value - under.value
    assert gap.high - gap.value == pytest.approx(math.hypot(*halves))


# --- ignored samples ------------------------------------------------------------


def test_rejected_samples_are_kept_but_not_used(tmp_path):
    def waits(case: Case, number: int, metrics: recordings.Metrics) -> None:
        if number in (2, 5) and case.variant in (AUTO, FREE):  # whose slices show its floor
            metrics["run-delay-share"] = 0.4
            metrics["ns/op"] *= 3 if case.variant == AUTO else 1

    made = recordings.recorded(tmp_path, change=waits)
    assert made.rounds(AUTO, TODAY_GO) == [1, 3, 4, 6, 7, 8]
    assert made.rounds(FREE, TODAY_GO) == list(range(1, 9))
    assert len(made.processes(AUTO, TODAY_GO)) == 8
    assert made.estimate(Ratio(AUTO, FREE), TODAY_GO).contains(700 / 78.4)
    assert judged(made)["L1"].judged.rounds == LOOKS[0]
    assert "; 4 are rejected" in notice(made)


def test_the_notice_counts_a_shared_sample_once(recording: Recording):
    other = Recording.load(STUDIES["siebenmann"], recording.run)
    lines = {*recording.frame["line"], *other.frame["line"]}
    assert len(lines) < len(recording.frame) + len(other.frame)
    assert f"{len(lines)} of these studies" in notice(recording, other)


def contended(*slower: float) -> recordings.Change:
    """A machine that is slower in some rounds, as the probe shows; a finalizer feels a part."""

    def change(case: Case, number: int, metrics: recordings.Metrics) -> None:
        by = slower[(number - 1) % len(slower)]
        metrics["probe-ns/op"] = by * 60.0
        if by and case.variant.benchmark in ("AllocateAuto", "AllocateDummy"):  # the kind's
            metrics["ns/op"] *= by**0.6

    return change


def test_times_are_read_at_the_price_of_the_probe(tmp_path):
    made = recordings.recorded(tmp_path, change=contended(2, 1))
    assert made.lines.of("finalizer").slope == pytest.approx(0.6, abs=0.1)
    assert not made.lines.processes("finalizer")["name"].str.contains("profile=").any()
    assert made.values(AUTO, TODAY_GO) == pytest.approx([700] * 8, rel=0.1)
    assert made.processes(AUTO, TODAY_GO)["mean_ns"].median() > 800  # as it is usually reported


def test_later_rounds_do_not_change_what_a_look_sees(tmp_path):
    """The machine is calm from round 5 on, which lowers the price of the probe."""
    calms_down = contended(3.3, 3.6, 3.0, 3.3, 1.2, 1.0, 1.1, 1.2)
    whole = recordings.recorded(tmp_path / "whole", change=calms_down).until(4)
    cut = recordings.recorded(tmp_path / "cut", change=calms_down, rounds=4)
    seen, alone = (made.cost(AUTO, TODAY_GO)[:4] for made in (whole, cut))
    assert seen == pytest.approx(alone)


def test_a_probe_of_zero_does_not_lower_the_price(tmp_path):
    probes = recordings.recorded(tmp_path, change=contended(1, 1, 0)).every["probe"]
    assert probes.dropna().eq(0).all()
    assert probes.isna().any()


def lines_of(sittings: list[int], names: list[str], *, sliced: bool = False) -> Line:
    """The line of a kind from a process in each of these sittings."""
    times = [100.0 + i for i in range(len(names))]
    columns = {"name": names, "sitting": sittings, "round": sittings, "raw_quiet_ns": times}
    frame = pd.DataFrame(columns).assign(kind="finalizer", sliced=sliced, probe=math.nan)
    return Lines(frame).of("finalizer")


@pytest.mark.parametrize("sliced", [False, True])
def test_a_single_process_does_not_show_its_error(monkeypatch, sliced):
    monkeypatch.setattr(lines, "recorded", lambda kind: (0.02, 40.0))
    one, log = np.ones(1), np.log([100.0])
    cost = stats.cost(log, one * math.nan, one, lines_of([1], ["a"], sliced=sliced), 1)
    assert (cost.value, cost.error) == (pytest.approx(100), math.inf)


@pytest.mark.parametrize(
    ("sittings", "names", "most"),
    [
        ([1, 1, 2, 2, 3, 3], "aabbcc", 1),  # only repeated cases show the run-to-run spread
        ([1, 1, 2, 3], "aaaa", 3),
        ([1, 1, 7, 7, 10**12], "aaaaa", 3),  # a sitting's number is a name
    ],
)
def test_a_kind_has_as_many_sittings_as_the_case_with_most(monkeypatch, sittings, names, most):
    monkeypatch.setattr(lines, "recorded", lambda kind: (0.02, 40.0))
    line = lines_of(sittings, list(names))
    assert line.sittings == most
    assert (line.run_to_run == 0.02) == (most < stats.OWN_SITTINGS)


def test_a_process_counts_unless_it_waited_longer_than_the_calmest_of_its_case(tmp_path):
    def waits(case: Case, number: int, metrics: recordings.Metrics) -> None:
        delay = 0.4 if number < 7 else 0.9
        metrics["run-delay-share"] = delay if case.variant == AUTO else 0.0

    made = recordings.recorded(tmp_path, change=waits)
    assert made.rounds(AUTO, TODAY_GO) == list(range(1, 7))
    assert made.rounds(FREE, TODAY_GO) == list(range(1, 9))
    assert "12 waited for a CPU for more than 20 %" in notice(made)  # on two releases


def test_unusable_slices_and_profiles_are_reported_and_skipped(tmp_path):
    def spoil(case: Case, number: int, metrics: recordings.Metrics) -> None:
        if case.name == FREE.on(TODAY_GO) and number == 2:
            del metrics["slice-p05-ns/op"]
        if case.name == FREE.on(TODAY_GO) and number == 3:
            metrics["slices-ns/op"] *= 1.5

    run = recordings.record(tmp_path, change=spoil, rounds=6)
    variant = profiled("AllocateAuto")
    empty = run.profile(variant.on(TODAY_GO), 3)
    recordings.write_profile(empty, [])
    made = Recording.load(LEMIRE, run)
    assert made.rounds(FREE, TODAY_GO) == [1, 4, 5, 6]
    assert made.rounds(variant, TODAY_GO) == [1, 2, 4, 5, 6]
    assert len(made.problems) == 8 + 1
    for where, why in (
        (f"{FREE.on(TODAY_GO)}, round 2", "the sample holds no slices"),
        (f"{FREE.on(TODAY_GO)}, round 3", "its slices add up to"),
        (str(empty), "the profile holds no samples"),
    ):
        assert any(where in problem and why in problem for problem in made.problems)
    assert "the sample holds no slices" in notice(made)


def test_a_run_without_usable_samples_has_no_verdict(tmp_path):
    run = recordings.record(tmp_path, rounds=1)
    run.samples_txt.write_text("goos: linux\n")
    shutil.rmtree(run.folder / "profiles")
    made = Recording.load(LEMIRE, run)
    rows = ledger.rows({"lemire": made}, [made.study])
    assert {row.verdict.label for row in rows} == {UNMEASURED}
    assert str(results.ledger(rows))
    run.samples_txt.unlink()
    with pytest.raises(GccostError, match="holds no samples"):
        Recording.load(LEMIRE, run)


# --- verdicts ----------------------------------------------------------------------


def test_the_first_decisive_look_is_final(tmp_path):
    def later(case: Case, number: int, metrics: recordings.Metrics) -> None:
        if case.variant.benchmark == "AllocateAuto" and number > 4:
            metrics["ns/op"] /= 8

    one = judged(recordings.recorded(tmp_path / "one", rounds=4))["L1"]
    row = judged(recordings.recorded(tmp_path / "other", change=later))["L1"]
    assert row.verdict == one.verdict
    assert row.verdict.label is HOLDS
    assert row.judged == one.judged
    assert row.estimate.value < one.estimate.value / 2  # the displayed estimate uses all samples


@pytest.mark.parametrize(("rounds", "look"), [(2, 0), (3, 3), (5, 4)])
def test_verdicts_change_only_at_scheduled_looks(tmp_path, rounds, look):
    row = judged(recordings.recorded(tmp_path, ns={"AllocateAuto": 390.0}, rounds=rounds))["L1"]
    assert row.verdict.label is UNDECIDED
    assert (row.judged.rounds, row.estimate.rounds) == (look, rounds)
    assert row.needed >= 1


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (5.5, "5 times as many sittings could decide it"),
        (5.1, "10 times as many sittings would not decide it"),
    ],
)
def test_a_verdict_that_rounds_cannot_decide_says_what_sittings_would(recording, value, what):
    (row, *_) = ledger.rows({"lemire": recording}, [ONLY_L1])  # its bound is 4.83
    judged = stats.Estimate(value, value / 1.17, value * 1.17, 20, 20, stats.JUDGED, lasting=0.5)
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
    written = frame.replace("", math.nan).astype(dict.fromkeys(numbers, float))
    read = pd.DataFrame(table["data"]).astype(dict.fromkeys(numbers, float))
    pd.testing.assert_frame_equal(read, written, check_dtype=False)


def test_ledger_links_lead_to_existing_headings(recording: Recording):
    shown = results.ledger(ledger.rows({"lemire": recording}, STUDIES.values())).html
    links = re.findall(r'href="([^"#]+)#([^"]+)"', shown)
    assert len(links) == len(CLAIMS)
    for notebook, anchor in links:
        text = (paths.NOTEBOOKS / notebook).read_text(encoding="utf-8")
        cells = nbformat.reads(text, as_version=4).cells
        prose = "\n".join(c.source for c in cells if c.cell_type == "markdown")
        headings = re.findall(r"^##+ (.*)$", prose, re.MULTILINE)
        assert anchor in [h.lower().replace(" ", "-") for h in headings], notebook
