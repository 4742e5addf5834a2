"""Estimates, verdicts and charts follow from a run folder's data."""

from __future__ import annotations

import json
import math
import re
import shutil
from dataclasses import replace

import nbformat
import pandas as pd
import pytest
import recordings

from gccost import paths
from gccost.errors import GccostError
from gccost.judging import ledger
from gccost.judging.ledger import Row
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
from gccost.measuring.cases import AUTO, CLEANUP, FREE, HEAP_FREE, Case, Variant, profiled
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing import notice as showing
from gccost.showing import results
from gccost.stats import FEWEST, JUDGED, Estimate
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
        (Ratio(AUTO, FREE), 700 / 80),
        (CLAIMS["L3"].quantity, 0.25),
        (Amount(DUMMY, "c_unfreed_drained"), 1_600_000),
        (SavedShare(AUTO, CLEANUP, FREE), (700 - 400) / (700 - 80)),
        (Difference(Ratio(AUTO, FREE, "gc_cycles")), 0),
        (RatioToEither(Ratio(AUTO, FREE), Ratio(AUTO, HEAP_FREE)), 700 / math.sqrt(80 * 95)),
        (Worst((Ratio(AUTO, FREE), Ratio(CLEANUP, FREE))), 700 / 80),
        (
            CurveDepth((Ratio(AUTO, FREE), Ratio(CLEANUP, FREE), Ratio(DUMMY, FREE))),
            (700 - 80) / (400 - 80),
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


# --- what a recording holds ------------------------------------------------------


def test_the_notice_counts_a_shared_sample_once(recording: Recording):
    other = Recording.load(STUDIES["siebenmann"], recording.run)
    lines = {*recording.frame["line"], *other.frame["line"]}
    assert len(lines) < len(recording.frame) + len(other.frame)
    assert f"{len(lines)} of these studies" in notice(recording, other)


def test_unusable_profiles_are_reported_and_skipped(tmp_path):
    run = recordings.record(tmp_path, rounds=6)
    variant = profiled("AllocateAuto")
    empty = run.profile(variant.on(TODAY_GO), 3)
    recordings.write_profile(empty, [])
    made = Recording.load(LEMIRE, run)
    assert made.rounds(variant, TODAY_GO) == [1, 2, 4, 5, 6]
    assert made.problems == (f"{empty}: the profile holds no samples",)
    assert made.problems[0] in notice(made)


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


@pytest.mark.parametrize("value", [390.0, 700.0])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_verdict_needs_three_rounds_and_uses_all(tmp_path, rounds, value):
    row = judged(recordings.recorded(tmp_path, ns={"AllocateAuto": value}, rounds=rounds))["L1"]
    assert row.estimate.rounds == rounds
    assert row.judged.rounds == (rounds if rounds >= FEWEST else 0)
    assert row.verdict.label is (HOLDS if value == 700 and rounds >= FEWEST else UNDECIDED)
    assert row.verdict.label is HOLDS or row.needed >= 1


@pytest.mark.parametrize("value", [340.0, 365.0, 387.0, 410.0, 440.0])
def test_a_verdict_never_contradicts_the_interval_beside_it(tmp_path, value):
    row = judged(recordings.recorded(tmp_path, ns={"AllocateAuto": value}))["L1"]
    least, _ = row.bounds
    assert row.judged.low <= row.estimate.low <= row.estimate.high <= row.judged.high
    assert (row.verdict.label is HOLDS) == (row.judged.low >= 1.05 * least)
    assert (row.verdict.label is Label.FAILS) == (row.judged.high < least / 1.05)


def test_a_later_sitting_may_reopen_a_verdict(tmp_path):
    def later(case: Case, number: int, metrics: recordings.Metrics) -> None:
        metrics["sitting"] = 1 + (number > 4)
        if case.variant.benchmark == "AllocateAuto" and number > 4:
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
