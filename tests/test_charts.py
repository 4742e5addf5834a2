"""The charts of chapters 02 and 03: the data decide what they draw and say."""

from __future__ import annotations

import io
import random
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from test_profiles import write as write_profile

from gccost import rounding
from gccost.judging import flame, ledger
from gccost.judging.models import objects_in_span
from gccost.judging.recording import Recording
from gccost.measuring import benchfmt, runs
from gccost.measuring.cases import BUDGETS, Case
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.profiles import Profile
from gccost.measuring.toolchains import DOCUMENT_GO, ISSUE_GO, TODAY_GO
from gccost.showing import charts, plots
from gccost.showing.charts import common, siebenmann

NS = {
    "AllocateFree": 80.0,
    "AllocateDefer": 82.0,
    "AllocateHeapFree": 95.0,
    "AllocateCleanup": 500.0,
    "AllocateAuto": 800.0,
    "AllocateOnly": 110.0,
    "EmptyFinalizer": 600.0,
    "ParallelFree": 60.0,
    "ParallelCleanup": 480.0,
    "ParallelAuto": 900.0,
}
CYCLES = {"UntilFreePlain": 1, "UntilFreeCleanup": 1, "UntilFreeFinalizer": 2}
STACKS = {
    "EmptyFinalizer": [
        (["x.BenchmarkEmptyFinalizer", "runtime.SetFinalizer", "runtime.addspecial"], 50),
        (["x.BenchmarkEmptyFinalizer", "runtime.SetFinalizer", "runtime.lock2"], 10),
        (["x.BenchmarkEmptyFinalizer", "runtime.mallocgc", "runtime.sweepone"], 15),
        (["runtime.gcBgMarkWorker", "runtime.gcDrain"], 24),
        (["runtime.mcall"], 1),
    ],
    "AllocateCleanup": [
        (
            [
                "x.BenchmarkAllocateCleanup",
                "gccost/cstr.AllocateCleanup",
                "runtime.addspecial",
                "runtime.(*mspan).specialFindSplicePoint",
            ],
            60,
        ),
        (
            ["x.BenchmarkAllocateCleanup", "gccost/cstr.AllocateCleanup", "runtime.cgocall"],
            30,
        ),
        (["runtime.gcBgMarkWorker"], 10),
    ],
}


def time(case: Case) -> float:
    """The ns per operation of a case, made up."""
    arm = case.arm
    if arm.benchmark in CYCLES:
        return 1e6
    if "words" not in dict(arm.sub):
        return NS[arm.benchmark] * (0.9 if arm.gogc == "off" else 1.0)
    size = 8 * int(dict(arm.sub)["words"])
    allocating = 8 + 0.17 * size
    added = {"Allocate": 0.0, "Finalize": 160.0, "Cleanup": 190.0}[arm.benchmark]
    each = 0.6 if added else 0.0
    return allocating + added + each * (objects_in_span(size, case.release) + size / 20)


def made_up(folder: Path, name: str, rounds: int = 4) -> Recording:
    """A recording of an experiment at the standard budget, with 1 % of noise."""
    machine = {"cpu": "Made-up CPU", "allowed_cpus": 2, "release": "Test OS"}
    run = runs.create(folder, machine=machine, fingerprint="0" * 12, warnings=[])
    noise = random.Random(1)
    cases = EXPERIMENTS[name].within(BUDGETS["standard"])
    lines = []
    for number in range(1, rounds + 1):
        for case in cases:
            for _ in range(case.processes):
                lines.append(benchfmt.format_line(sample(case, number, noise.gauss(1, 0.01))))
            if case.arm.profile:
                path = run.profile(case.name, number)
                path.parent.mkdir(exist_ok=True)
                stacks = STACKS[case.arm.benchmark]
                write_profile(path, [(stack, ns * 10**7 + number) for stack, ns in stacks])
    run.append(lines)
    recording = Recording.load(EXPERIMENTS[name], run)
    assert len(recording.frame) == len(lines)
    assert not recording.problems
    return recording


def sample(case: Case, number: int, noise: float) -> benchfmt.Sample:
    arm, ns = case.arm, time(case) * noise
    metrics = {
        "ns/op": ns,
        "cpu-ns/op": ns * 1.05,
        "settled-ns/op": ns * 1.2,
        "allocs/op": 1,
        "faults": case.n * (0.9 if arm.gogc == "off" else 0.01),
        "round": number,
    }
    if arm.stationary:
        metrics |= {"slice-p05-ns/op": ns, "slices-ns/op": ns}
    if arm.benchmark in CYCLES:
        metrics["gc-cycles-to-free"] = CYCLES[arm.benchmark]
    keys = {**dict(arm.sub), "go": case.release, **arm.keys()}
    procs = 1 if arm.setting == "precise" else 2
    return benchfmt.Sample(arm.benchmark, n=case.n, metrics=metrics, keys=keys, procs=procs)


Recordings = dict[str, Recording]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    folder = tmp_path_factory.mktemp("runs")
    return {name: made_up(folder / name, name) for name in ("siebenmann", "addcleanup")}


@pytest.fixture(scope="module")
def drawn(recordings: Recordings) -> dict[str, charts.Chart]:
    return {name: charts.CHARTS[name](of(recordings, name)) for name in NEW}


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are made and not saved as pictures, which takes most of the time."""

    def savefig(figure: Figure, file: io.IOBase, **_: object) -> None:
        file.write("<svg/>" if isinstance(file, io.StringIO) else b"")

    monkeypatch.setattr(Figure, "savefig", savefig)


NEW = [name for name in charts.CHARTS if name.startswith(("siebenmann-", "addcleanup-"))]
every_chart = pytest.mark.parametrize("name", NEW)


def of(recordings: Recordings, chart: str) -> Recording:
    return recordings[chart.partition("-")[0]]


def test_there_are_charts_of_both_chapters() -> None:
    assert len(NEW) == 12


@every_chart
def test_every_chart_is_complete(drawn: dict[str, charts.Chart], name: str) -> None:
    chart = drawn[name]
    assert chart.name == name
    assert chart.title in chart.alt
    assert len(chart.alt) > len(chart.title) + 40
    data = pd.read_csv(io.StringIO(chart.csv()))
    assert len(data) == len(chart.data) > 0
    ET.fromstring(chart.svg)  # noqa: S314 - our own
    assert chart.png.startswith(b"\x89PNG")
    for gap in ("nan", "–", "∞", "not measured"):
        assert gap not in chart.alt


@every_chart
def test_every_chart_says_in_its_alt_text_what_it_draws(
    drawn: dict[str, charts.Chart], name: str
) -> None:
    chart = drawn[name]
    for value in chart.data.get("estimate", []):
        shown = rounding.whole(float(value))
        assert shown in chart.alt, f"{shown} is drawn and not said"


# What to change for each chart, so that what it says must change.
CHANGED = {
    "siebenmann-heap": {"AllocateHeapFree": "ns/op"},
    "siebenmann-cycles": {"UntilFreeFinalizer": "gc-cycles-to-free"},
    "siebenmann-sizes": {"Finalize": "ns/op"},
    "siebenmann-fit": {"Finalize": "ns/op"},
    "siebenmann-faults": {"Finalize": "faults"},
    "addcleanup-cost": {"AllocateCleanup": "ns/op"},
    "addcleanup-gc-off": {"AllocateCleanup": "settled-ns/op"},
    "addcleanup-parallel": {"ParallelAuto": "ns/op"},
}


@pytest.mark.usefixtures("unsaved")
@pytest.mark.parametrize("name", CHANGED)
def test_titles_and_data_follow_the_samples(
    recordings: Recordings, drawn: dict[str, charts.Chart], name: str
) -> None:
    recording = of(recordings, name)
    frame = recording.frame.copy()
    for benchmark, metric in CHANGED[name].items():
        frame.loc[(frame["benchmark"] == benchmark) & (frame["gogc"] == "100"), metric] *= 1.5
    chart = charts.CHARTS[name](replace(recording, frame=frame))
    assert chart.title != drawn[name].title
    assert chart.csv() != drawn[name].csv()


@pytest.mark.usefixtures("unsaved")
@pytest.mark.parametrize("name", [n for n in NEW if n.endswith(("-profile", "-flame"))])
def test_titles_and_data_follow_the_profiles(
    recordings: Recordings, drawn: dict[str, charts.Chart], name: str
) -> None:
    recording = of(recordings, name)
    other = Profile(
        (
            (("x", "gccost/cstr.AllocateCleanup", "runtime.cgocall"), 90),
            (("x", "gccost/cstr.AllocateCleanup", "runtime.(*mspan).specialFindSplicePoint"), 10),
            (("x", "runtime.SetFinalizer"), 20),
        )
    )
    profiles = {case: dict.fromkeys(found, other) for case, found in recording.cpu_profiles.items()}
    chart = charts.CHARTS[name](replace(recording, cpu_profiles=profiles))
    assert chart.title != drawn[name].title
    assert chart.csv() != drawn[name].csv()


@pytest.mark.usefixtures("unsaved")
def test_which_side_moved_more_is_read_from_the_data(
    recordings: Recordings, drawn: dict[str, charts.Chart]
) -> None:
    recording = recordings["addcleanup"]

    def title(benchmark: str) -> str:
        frame = recording.frame.copy()
        today = (frame["benchmark"] == benchmark) & (frame["release"] == TODAY_GO)
        frame.loc[today, ["ns/op", "slice-p05-ns/op"]] *= 0.6
        return charts.CHARTS["addcleanup-why"](replace(recording, frame=frame)).title

    assert "a manual free moved more, to 0.59" in title("AllocateFree")
    assert "AddCleanup moved more" in title("AllocateCleanup")


@every_chart
def test_a_release_with_one_sample_and_profile_alone_can_be_drawn(
    recordings: Recordings, name: str
) -> None:
    chart = charts.CHARTS[name](_only(of(recordings, name), TODAY_GO))
    assert TODAY_GO in chart.title or "was not measured" in chart.title
    assert DOCUMENT_GO not in chart.alt.removeprefix(chart.title)


def _only(recording: Recording, go: str) -> Recording:
    frame = recording.frame.query(f"go == '{go}' and round == 1")
    profiles = {
        case: {round_: p for round_, p in found.items() if round_ == 1}
        for case, found in recording.cpu_profiles.items()
        if f"/go={go}/" in case
    }
    return replace(recording, frame=frame, cpu_profiles=profiles)


@pytest.mark.usefixtures("unsaved")
@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("siebenmann-heap", "AllocateHeapFree"),
        ("siebenmann-sizes", "Allocate"),
        ("siebenmann-fit", "Allocate"),
        ("siebenmann-faults", "Finalize"),
        ("addcleanup-cost", "AllocateFree"),
        ("addcleanup-why", "AllocateFree"),
        ("addcleanup-gc-off", "AllocateOnly"),
        ("addcleanup-parallel", "ParallelAuto"),
    ],
)
def test_what_was_not_measured_is_left_out(
    recordings: Recordings, drawn: dict[str, charts.Chart], name: str, lost: str
) -> None:
    recording = of(recordings, name)
    frame = recording.frame.query(f"benchmark != '{lost}'")
    chart = charts.CHARTS[name](replace(recording, frame=frame))
    assert len(chart.data) < len(drawn[name].data)
    assert "nan" not in chart.alt
    assert "–" not in chart.title


@pytest.mark.usefixtures("unsaved")
def test_without_the_gc_off_the_chart_of_page_faults_says_so(recordings: Recordings) -> None:
    recording = recordings["siebenmann"]
    on = replace(recording, frame=recording.frame.query("gogc == '100'"))
    title = charts.CHARTS["siebenmann-faults"](on).title
    assert title.endswith("with the GC off it was not measured")


@every_chart
def test_with_nothing_measured_a_chart_says_so(recordings: Recordings, name: str) -> None:
    recording = of(recordings, name)
    empty = replace(recording, frame=recording.frame.iloc[:0], cpu_profiles={})
    chart = charts.CHARTS[name](empty)
    assert "nothing to draw" in chart.svg
    assert any(word in chart.title for word in ("not", "None", "No ", "too few"))
    assert not len(chart.data)
    assert chart.csv().startswith("arm,go,estimate")


@pytest.mark.parametrize("name", ["siebenmann-flame", "siebenmann-fit", "addcleanup-parallel"])
def test_a_chart_is_the_same_to_the_byte_each_time(
    recordings: Recordings, drawn: dict[str, charts.Chart], name: str
) -> None:
    again = charts.CHARTS[name](of(recordings, name))
    once = drawn[name]
    assert (again.svg, again.png, again.alt) == (once.svg, once.png, once.alt)


def test_the_picture_follows_the_samples(
    recordings: Recordings, drawn: dict[str, charts.Chart]
) -> None:
    recording = recordings["siebenmann"]
    frame = recording.frame.assign(**{"ns/op": 1.5 * recording.frame["ns/op"]})
    for name in ("siebenmann-heap", "siebenmann-fit"):
        chart = charts.CHARTS[name](replace(recording, frame=frame))
        assert chart.svg != drawn[name].svg


# --- What they are made of -----------------------------------------------------


def test_the_fit_finds_the_line_that_the_samples_lie_on(
    drawn: dict[str, charts.Chart],
) -> None:
    data = drawn["siebenmann-fit"].data
    assert set(data["go"]) == {DOCUMENT_GO, TODAY_GO}
    assert data["slope"].between(0.55, 0.65).all()
    assert data["r2"].min() > 0.98
    today = data.query(f"go == '{TODAY_GO}'").set_index("bytes")["objects_in_span"]
    assert dict(today) == {8: 1008, 16: 496, 32: 248, 64: 124, 128: 62, 256: 31}


def test_a_flame_graph_merges_what_stacks_share() -> None:
    profiles = [
        Profile(((("main", "runtime.SetFinalizer"), 60), (("main", "b"), 20))),
        Profile(((("main", "b"), 10), (("runtime.gcDrain", "c"), 9), (("rare",), 0))),
    ]
    frames = {frame.path: frame for frame in flame.frames(profiles, 14, 0.01)}
    assert list(frames) == [
        ("main",),
        ("main", "runtime.SetFinalizer"),
        ("main", "b"),
        ("runtime.gcDrain",),
        ("runtime.gcDrain", "c"),
    ]
    assert frames["main",].width == pytest.approx(90 / 99)
    assert frames["main", "b"].left == pytest.approx(60 / 99)
    assert frames["runtime.gcDrain",].left == pytest.approx(90 / 99)
    kinds = {path[-1]: siebenmann.kind(frame) for path, frame in frames.items()}
    assert kinds == {
        "main": "the rest",
        "runtime.SetFinalizer": "SetFinalizer",
        "b": "the rest",
        "runtime.gcDrain": "collecting",
        "c": "collecting",
    }


def test_a_flame_graph_is_cut_below_its_depth() -> None:
    deep = Profile(((tuple(f"f{i}" for i in range(40)), 10),))
    assert max(len(frame.path) for frame in flame.frames([deep], 14, 0.01)) == 14


@pytest.mark.parametrize(
    "wanted", [[0.1, 0.5, 0.9], [0.5, 0.5, 0.5], [0.1, 0.11, 0.12, 0.3], [0.95, 0.98, 0.99], []]
)
def test_names_at_the_ends_of_lines_stand_apart(wanted: list[float]) -> None:
    apart: Callable[[list[float], float], list[float]] = plots._apart
    placed = apart(wanted, 0.1)
    assert all(b - a > 0.1 - 1e-9 for a, b in pairwise(placed))
    assert len(placed) == len(wanted)
    assert max(placed, default=0) <= 1
    if wanted == [0.1, 0.5, 0.9]:
        assert placed == pytest.approx(wanted)


def test_verdicts_show_a_figure_that_has_no_place_on_a_log_scale(recordings: Recordings) -> None:
    rows = ledger.rows({"siebenmann": recordings["siebenmann"]})
    chart = charts.verdicts(rows)
    none = chart.data.query("claim == 'S2'")
    assert (none["estimate"] == 0).all()
    assert chart.svg.count("(0 or less)") >= len(none) > 0


def test_every_measured_benchmark_has_a_name() -> None:
    measured = {
        case.arm.benchmark
        for name in ("lemire", "siebenmann", "addcleanup")
        for case in EXPERIMENTS[name].cases
    }
    assert measured <= set(charts.NAMES)


def test_a_panel_says_whose_release_it_shows(recordings: Recordings) -> None:
    recording = recordings["addcleanup"]
    assert common.release(recording, ISSUE_GO).endswith("the document's toolchain")
    assert common.release(recording, TODAY_GO).endswith("today's")
