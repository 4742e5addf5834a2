"""From a run folder to estimates, the ledger, tables and charts: the data decide everything."""

from __future__ import annotations

import io
import math
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import recordings
from test_profiles import write as write_profile

from gccost import places
from gccost.errors import GccostError
from gccost.judging import ledger
from gccost.judging.claims import CLAIMS
from gccost.judging.claims.rules import Label
from gccost.judging.recording import Recording
from gccost.measuring import frames
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.experiments.base import AUTO, FREE, Arm, Ratio, profiled
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO
from gccost.showing import charts, tables
from gccost.stats import paired_ratio

LEMIRE = EXPERIMENTS["lemire"]


def recorded(folder: Path, **more) -> Recording:
    return Recording.load(LEMIRE, recordings.record(folder, **more))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return recorded(tmp_path_factory.mktemp("runs"))


def test_estimates_are_those_of_the_samples(recording: Recording) -> None:
    assert recording.level(FREE, TODAY_GO).value == pytest.approx(80, rel=0.02)
    ratio = recording.ratio(Ratio(AUTO, FREE), TODAY_GO)
    assert ratio.contains(700 / 80)
    assert recording.added(Ratio(AUTO, FREE), TODAY_GO).contains(620)
    assert recording.amount(Arm("AllocateDummy"), TODAY_GO, "c-unfreed-drained").value == 1_600_000
    claim = CLAIMS["L3"].quantity
    assert recording.estimate(claim, TODAY_GO).value == pytest.approx(0.25, rel=1e-3)


def test_the_noise_floor_comes_from_the_twins(recording: Recording) -> None:
    assert 0 < recording.noise_floor() < 0.05
    assert len(list(recording.controls())) == 4


def test_a_run_that_was_only_begun_has_no_verdict_yet(tmp_path: Path) -> None:
    begun = recorded(tmp_path)
    path = begun.run.results("lemire")
    head = [line for line in path.read_text().splitlines() if not line.startswith("Benchmark")]
    path.write_text("\n".join(head) + "\n")
    shutil.rmtree(begun.run.folder / "profiles")
    made = Recording.load(LEMIRE, begun.run)
    rows = ledger.rows({"lemire": made}, made.claims)
    assert {row.verdict.label for row in rows} == {Label.UNMEASURED}
    assert str(tables.ledger(rows))
    for name, draw in charts.CHARTS.items():
        if name.startswith("lemire"):
            assert draw(made).png


def test_verdicts_follow_the_figures(tmp_path: Path) -> None:
    def labels(name: str, **ns: float) -> dict[str, Label]:
        made = recorded(tmp_path / name, ns={**recordings.NS, **ns})
        rows = ledger.rows({"lemire": made}, made.claims)
        return {r.claim.id: r.verdict.label for r in rows if r.release == TODAY_GO}

    assert labels("a") == {
        "L1": Label.HOLDS,
        "L2a": Label.HOLDS,
        "L2b": Label.HOLDS,
        "L3": Label.FAILS,
        "L4": Label.HOLDS,
    }
    assert labels("b", AllocateAuto=1600)["L1"] is Label.STRONGER
    assert labels("c", AllocateAuto=300)["L1"] is Label.WEAKER
    assert labels("d", AllocateAuto=40)["L1"] is Label.FAILS
    assert labels("e", AllocateAuto=80)["L1"] is Label.FAILS
    assert labels("f", AllocateDummy=1400)["L4"] is Label.FAILS
    assert labels("g", AllocateAuto=867)["L1"] is Label.UNDECIDED


def test_verdicts_are_judged_on_wider_intervals_than_those_shown(recording: Recording) -> None:
    for row in ledger.rows({"lemire": recording}, recording.claims):
        assert row.judged.low <= row.estimate.low
        assert row.estimate.high <= row.judged.high
        assert row.judged.confidence > row.estimate.confidence == 0.95


def test_the_ledger_for_programs_has_a_row_per_claim_and_toolchain(recording: Recording) -> None:
    table = ledger.table(ledger.rows({"lemire": recording}))
    assert list(table.columns) == [
        "id",
        "toolchain",
        "published",
        "estimate",
        "low",
        "high",
        "samples",
        "unit",
        "verdict",
    ]
    assert len(table) == ledger.judged_claims()
    assert not table.duplicated(["id", "toolchain"]).any()


def test_a_release_that_was_not_measured_is_said_not_guessed(recording: Recording) -> None:
    only_today = replace(recording, frame=recording.frame.query(f"go == '{TODAY_GO}'"))
    rows = {r.claim.id: r for r in ledger.rows({"lemire": only_today}) if r.release == DOCUMENT_GO}
    assert rows["L1"].verdict.label is Label.UNMEASURED
    assert math.isnan(rows["L1"].estimate.value)


@pytest.mark.parametrize(
    ("values", "middle"),
    [
        ([7], 7),
        ([7, 9], 8),
        ([1, 7, 90], 7),
        ([1, 6, 9, 90], 7.5),
        ([1, 6, 7, 8, 90], 7),
        ([1, 2, 6, 7, 8, 11, 80, 90], 8),
        ([1, np.nan, 7, 90], 7),
    ],
)
def test_the_middle_of_a_rounds_samples_leaves_out_a_third_at_either_end(values, middle) -> None:
    samples = pd.DataFrame(
        {"ns/op": [float(x) for x in (5, *values)]}, index=[1] + [2] * len(values)
    )
    assert frames.by_round(samples, "ns/op").to_dict() == {1: 5, 2: pytest.approx(middle)}
    assert frames.by_round(samples, "B/op").empty


def test_twins_of_few_rounds_heed_what_other_ratios_say_of_noise(recording: Recording) -> None:
    frame = recording.frame
    few = replace(recording, frame=frame[frame["twin"].eq("") | frame["round"].le(2)])
    for control, release in recording.experiment.controls:
        pairs = few.pairs(control, release)
        assert len(pairs) == 2
        alone = paired_ratio(pairs["numerator"], pairs["denominator"], pairs.index)
        heeding = next(e for arm, _, e in few.controls() if arm == control.numerator)
        assert heeding.value == alone.value
        assert heeding.high / heeding.low < alone.high / alone.low
    # Made up with 1 % of noise: two rounds alone would leave it at ten and more.
    assert 0 < few.noise_floor() < 0.08


def test_without_controls_no_difference_is_called(recording: Recording) -> None:
    blind = replace(recording, frame=recording.frame.query("twin == ''"))
    assert blind.noise_floor() == math.inf
    assert not blind.differs(Ratio(AUTO, FREE), TODAY_GO)


def test_a_long_sample_is_judged_by_the_noise_of_long_samples(recording: Recording) -> None:
    own = recording.noise_floor(Ratio(Arm("AllocateDummy"), AUTO))
    twins = {a.benchmark: e for a, _, e in recording.controls() if a.benchmark == "AllocateAuto"}
    assert own >= abs(math.log(twins["AllocateAuto"].value))
    assert own <= recording.noise_floor()


def test_the_ledger_links_to_headings_that_exist(recording: Recording) -> None:
    shown = tables.ledger(ledger.rows({"lemire": recording})).html
    links = re.findall(r'href="([^"#]+)#([^"]+)"', shown)
    assert len(links) == len(CLAIMS)
    for notebook, anchor in links:
        text = (places.NOTEBOOKS / notebook).read_text(encoding="utf-8")
        cells = nbformat.reads(text, as_version=4).cells
        prose = "\n".join(c.source for c in cells if c.cell_type == "markdown")
        headings = re.findall(r"^##+ (.*)$", prose, re.MULTILINE)
        assert anchor in [h.lower().replace(" ", "-") for h in headings]


def test_a_run_without_the_experiment_says_so(tmp_path: Path) -> None:
    run = recordings.record(tmp_path)
    run.results("lemire").unlink()
    with pytest.raises(GccostError, match="holds no samples of lemire"):
        Recording.load(LEMIRE, run)


def test_lines_that_cannot_be_used_travel_with_the_rest(tmp_path: Path) -> None:
    run = recordings.record(tmp_path)
    with run.results("lemire").open("a") as file:
        file.write("BenchmarkAllocateFree/go=1.27.4 none 3 ns/op\n")
    recording = Recording.load(LEMIRE, run)
    assert len(recording.problems) == 1
    assert "lemire.txt" in recording.problems[0]


# --- charts -------------------------------------------------------------------

LEMIRE_CHARTS = [name for name in charts.CHARTS if name.startswith("lemire") or name == "control"]
every_chart = pytest.mark.parametrize("name", LEMIRE_CHARTS)


@pytest.mark.parametrize(
    ("stacks", "why"),
    [
        ([], "the profile holds no samples"),
        ([(["other.BenchmarkOther", "a"], 1)], "no BenchmarkAllocateAuto"),
    ],
)
def test_a_profile_that_is_empty_or_of_another_program_is_left_out(
    tmp_path: Path, stacks: list[tuple[list[str], int]], why: str
) -> None:
    run = recordings.record(tmp_path)
    arm = profiled("AllocateAuto")
    path = run.profile("lemire", arm.on(TODAY_GO), 3)
    write_profile(path, stacks)
    loaded = Recording.load(LEMIRE, run)
    assert sorted(loaded.profiles(arm, TODAY_GO)) == [1, 2, 4, 5, 6, 7, 8]
    assert any(str(path) in problem and why in problem for problem in loaded.problems)


@every_chart
def test_every_chart_is_complete(recording: Recording, name: str) -> None:
    chart = charts.CHARTS[name](recording)
    assert chart.title in chart.alt
    assert len(chart.alt) > len(chart.title) + 40
    data = pd.read_csv(io.StringIO(chart.csv()))
    assert len(data) == len(chart.data) > 0
    ET.fromstring(chart.svg)  # noqa: S314 - our own
    assert chart.png.startswith(b"\x89PNG")
    assert "#1f2328" not in chart.svg.replace("var(--ink, #1f2328)", "")


@every_chart
def test_every_chart_is_the_same_to_the_byte_each_time(recording: Recording, name: str) -> None:
    one, other = (charts.CHARTS[name](recording) for _ in range(2))
    assert (one.svg, one.png, one.alt) == (other.svg, other.png, other.alt)


@every_chart
def test_every_chart_says_in_its_alt_text_what_it_draws(recording: Recording, name: str) -> None:
    chart = charts.CHARTS[name](recording)
    for value in chart.data.select_dtypes("number").get("estimate", []):
        shown = charts.rounding.plain(float(value))
        assert shown in chart.alt, f"{shown} is drawn and not said"


def test_charts_follow_the_data(recording: Recording, tmp_path: Path) -> None:
    scaled = recorded(tmp_path, ns={**recordings.NS, "AllocateAuto": 1050.0})
    for name in ("lemire-cost", "lemire-gc-off"):
        one, other = charts.CHARTS[name](recording), charts.CHARTS[name](scaled)
        assert one.alt != other.alt
        assert one.csv() != other.csv()
        assert one.svg != other.svg
    rows, other_rows = (ledger.rows({"lemire": r}) for r in (recording, scaled))
    assert charts.verdicts(rows).csv() != charts.verdicts(other_rows).csv()


def test_a_chart_of_one_release_alone_can_be_drawn(recording: Recording) -> None:
    only_today = replace(recording, frame=recording.frame.query(f"go == '{TODAY_GO}'"))
    for name in LEMIRE_CHARTS:
        charts.CHARTS[name](only_today)
