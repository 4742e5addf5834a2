"""All charts satisfy the same contract, and their content follows the samples."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import pandas as pd
import pytest
import recordings
from matplotlib.backends.backend_svg import FigureCanvasSVG

from gccost import rounding, stats
from gccost.cli import STORY
from gccost.judging import flame, ledger
from gccost.judging.recording import Recording
from gccost.measuring.profiles import Profile
from gccost.measuring.toolchains import DOCUMENT_GO, ISSUE_GO, TODAY_GO
from gccost.showing import plots, results
from gccost.showing.figures import Chart
from gccost.studies import CHARTS, STUDIES
from gccost.studies.cloudflare import MOST_PROCS, start, turns
from gccost.studies.common import headlines, release
from gccost.studies.siebenmann import kind
from gccost.study import OpenStudy

# The recording of the Cloudflare study on 48 CPUs, as many as in the document.
MANY = "cloudflare on 48 CPUs"
# These need further files of `make precision`; see tests/test_precision.py.
WITH_FURTHER_FILES = ("precision-slices", "precision-drift")
NAMED = ["control", *CHARTS]
EVERY = [
    *((name, study) for name in NAMED for study in [{"control": "lemire"}.get(name, "")]),
    *((name, MANY) for name in NAMED if name.startswith("cloudflare")),
]
EVERY = [(name, study or name.partition("-")[0]) for name, study in EVERY]
DRAWN = [each for each in EVERY if each[0] not in WITH_FURTHER_FILES]
every_chart = pytest.mark.parametrize(("name", "study"), DRAWN, ids=lambda x: x.replace(" ", "-"))
Recordings = dict[str, Recording]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """A synthetic recording of every study."""
    folder = tmp_path_factory.mktemp("runs")
    found = {name: recordings.recorded(folder / name, name, rounds=4) for name in STUDIES}
    many = recordings.recorded(folder / "many", "cloudflare", rounds=4, cpus=48)
    assert not any(recording.problems for recording in found.values())
    return found | {MANY: many}


def draw(recording: Recording, name: str) -> Chart:
    return OpenStudy("replay", recording, ()).chart(name)


@pytest.fixture(scope="module")
def drawn(made: Recordings) -> Callable[[str, str], Chart]:
    """Each chart, drawn once."""
    known: dict[tuple[str, str], Chart] = {}

    def chart(name: str, study: str) -> Chart:
        if (name, study) not in known:
            known[name, study] = draw(made[study], name)
        return known[name, study]

    return chart


@pytest.fixture
def no_pictures() -> Iterator[None]:
    """Skip drawing the SVG, which takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FigureCanvasSVG, "print_svg", lambda self, f, **_: f.write("<svg />"))
        yield


# --- The contract of all charts ------------------------------------------------------


def test_a_clipped_interval_has_an_arrowhead_where_it_goes_on() -> None:
    wide = stats.Estimate(10.0, 0.01, 12.0, 2, 2, 0.95)
    points = [
        plots.Point("", "wide", wide, raw=[9.0, 11.0]),
        plots.Point("", "other", replace(wide, low=9.0), raw=[9.0, 11.0]),
    ]
    arrows = [
        plots.dots(some, "", "ns", kind="A dot plot", log=True).figure.axes[0].collections
        for some in (points[1:], points)
    ]
    assert len(arrows[1]) - len(arrows[0]) == 2  # the further estimate, and the arrowhead


@every_chart
def test_every_chart_is_complete_and_describes_its_data(
    drawn: Callable[[str, str], Chart], name: str, study: str
) -> None:
    chart = drawn(name, study)
    assert chart.name == ("lemire-control" if name == "control" else name)
    assert chart.alt.startswith(chart.title)
    assert len(chart.alt) > len(chart.title) + 40
    data = pd.read_csv(io.StringIO(chart.csv()))
    assert len(data) == len(chart.data) > 0
    ET.fromstring(chart.svg)  # noqa: S314 - our own
    if name in STORY:  # which `make figures` writes as PNG
        assert chart.png.startswith(b"\x89PNG")
    assert "#1f2328" not in chart.svg.replace("var(--ink, #1f2328)", "")
    for gap in ("nan", "∞", "not measured"):
        assert gap not in chart.alt
    if name.startswith(("lemire", "siebenmann", "addcleanup", "control")):
        for value in chart.data.select_dtypes("number").get("estimate", []):
            shown = rounding.whole(float(value))
            assert shown in chart.alt, f"{shown} is drawn but not in the alt text"


def test_overlapping_dots_are_in_separate_paths() -> None:
    near = [10.0, 10.001, 20.0, 30.0]
    point = plots.Point("", "one", stats.amount(near), raw=near)
    draw = plots.chart("dotted", "")(lambda _: plots.dots([point], "Dots", "x"))
    paths = re.findall(r'd="((?:M[\d.]+ [\d.]+h0)+)"', draw(None).svg)
    assert sorted(path.count("h0") for path in paths) == [1, 3]


@pytest.mark.parametrize("name", list(CHARTS))
def test_a_chart_without_samples_says_so(made: Recordings, name: str) -> None:
    recording = made[dict(EVERY)[name]]
    nothing = replace(recording, frame=recording.frame.iloc[:0], cpu_profiles={})
    chart = draw(nothing, name)
    if name.endswith("-published"):
        assert len(chart.data)
        return
    assert "nothing to draw" in chart.svg
    assert re.search(r"\b([Nn]ot?|None|too few|Neither)\b", chart.title)
    assert not len(chart.data)
    assert chart.csv().startswith("variant,go,estimate")


# Charts of published values, gctraces, outcomes and held memory, which metrics do not change.
OF_OTHER_THINGS = {
    *("lemire-published", "cloudflare-published", "cloudflare-gctrace"),
    *("remedies-latency", "remedies-held", "remedies-over-time"),
    *("libraries-memory", "libraries-growth"),
    *("runtime-slopes", "remedies-memory"),
}
# Columns that are not scaled with a sample's metrics.
UNSCALED = ["round", "line", "procs", "n"]
FIRST_AND_LAST = {
    "addcleanup": (ISSUE_GO, TODAY_GO),
}


@pytest.fixture(scope="module")
def alone(made: Recordings) -> Recordings:
    """The first round of the last release of each study."""
    found = {}
    for study, recording in made.items():
        _, only = FIRST_AND_LAST.get(study, (DOCUMENT_GO, TODAY_GO))
        frame = recording.frame.query(f"release == '{only}' and round == 1")
        profiles = {
            case: {round_: profile for round_, profile in profiles.items() if round_ == 1}
            for case, profiles in recording.cpu_profiles.items()
            if f"/go={only}/" in case
        }
        found[study] = replace(recording, frame=frame, cpu_profiles=profiles)
    return found


@pytest.mark.usefixtures("no_pictures")
@every_chart
def test_charts_can_be_drawn_from_one_round_of_one_release(
    made: Recordings, alone: Recordings, name: str, study: str
) -> None:
    other, _ = FIRST_AND_LAST.get(study, (DOCUMENT_GO, TODAY_GO))
    chart = draw(alone[study], name)
    assert "nan" not in chart.title
    if len(made[study].releases) > 1 and not name.endswith(("-published", "-releases")):
        assert other not in chart.alt.removeprefix(chart.title)


def mark(text: str) -> float:
    """A number from 0 to 1, determined by the text."""
    return crc32(text.encode()) % 100 / 100


@pytest.fixture(scope="module")
def others(made: Recordings) -> Recordings:
    """The recordings with each metric of each case scaled by a factor of its own."""
    other = Profile(
        (
            (("x", "gccost/cstr.AllocateCleanup", "runtime.cgocall"), 90),
            (("x", "gccost/cstr.AllocateCleanup", "runtime.(*mspan).specialFindSplicePoint"), 10),
            (("x", "runtime.SetFinalizer"), 20),
        )
    )
    changed = {}
    for study, recording in made.items():
        metrics = recording.frame.select_dtypes("number").columns.difference(UNSCALED)
        factors = {
            name: {m: 1 + mark(name + m) for m in metrics} for name in recording.frame["name"]
        }
        by_sample = [factors[name] for name in recording.frame["name"]]
        scale = pd.DataFrame(by_sample, index=recording.frame.index, columns=metrics)
        frame = recording.frame.assign(**(recording.frame[metrics] * scale))
        profiles = {c: dict.fromkeys(found, other) for c, found in recording.cpu_profiles.items()}
        changed[study] = replace(recording, frame=frame, cpu_profiles=profiles)
    return changed


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("name", "study"), [each for each in DRAWN if each[0] not in OF_OTHER_THINGS]
)
def test_titles_and_data_follow_the_samples(
    others: Recordings, drawn: Callable[[str, str], Chart], name: str, study: str
) -> None:
    before, after = drawn(name, study), draw(others[study], name)
    assert after.title != before.title
    assert after.csv() != before.csv()


# --- Individual charts -----------------------------------------------------


@pytest.mark.usefixtures("no_pictures")
def test_the_title_names_the_variant_that_changed_more(made: Recordings) -> None:
    recording = made["addcleanup"]

    def title(benchmark: str) -> str:
        frame = recording.frame.copy()
        today = (frame["benchmark"] == benchmark) & (frame["release"] == TODAY_GO)
        frame.loc[today, ["ns/op", "slice-p05-ns/op"]] *= 0.6
        return draw(replace(recording, frame=frame), "addcleanup-why").title

    assert ": a manual free takes 0.60" in title("AllocateFree")
    assert ": AddCleanup takes 0.6" in title("AllocateCleanup")


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("siebenmann-heap", "AllocateHeapFree"),
        ("siebenmann-sizes", "Allocate"),
        ("siebenmann-fit", "Allocate"),
        ("addcleanup-cost", "AllocateFree"),
        ("addcleanup-why", "AllocateFree"),
        ("addcleanup-gc-off", "AllocateOnly"),
        ("addcleanup-parallel", "ParallelAuto"),
    ],
)
def test_unmeasured_variants_are_omitted(
    made: Recordings, drawn: Callable[[str, str], Chart], name: str, lost: str
) -> None:
    study = name.partition("-")[0]
    frame = made[study].frame.query(f"benchmark != '{lost}'")
    chart = draw(replace(made[study], frame=frame), name)
    assert len(chart.data) < len(drawn(name, study).data)
    assert "nan" not in chart.alt
    assert "–" not in chart.title


def test_gctrace_chart_names_an_unreadable_trace(tmp_path: Path) -> None:
    recording = recordings.recorded(tmp_path, "cloudflare", rounds=1)
    whole = draw(recording, "cloudflare-gctrace")
    path = recording.run.gctrace(turns(MOST_PROCS).on(TODAY_GO))
    path.write_bytes(path.read_bytes()[:-9])
    chart = draw(recording, "cloudflare-gctrace")
    assert len(chart.data) == len(whole.data) - 1
    assert f"; left out: gctraces/{path.name} cannot be read (remove the file" in chart.alt
    assert "left out:" in chart.svg
    assert path.name in chart.svg
    assert str(tmp_path) not in chart.alt + chart.svg
    assert start(recording, turns(MOST_PROCS), TODAY_GO) == "–"
    assert start(recording, turns(1), TODAY_GO) != "–"
    for each in path.parent.iterdir():
        each.write_bytes(each.read_bytes()[:-9])
    nothing = draw(recording, "cloudflare-gctrace")
    assert nothing.title.startswith("No gctrace with cycles was recorded; left out: gctraces/")
    assert "more cannot be read" in nothing.title


def test_summary_charts_follow_the_samples(made: Recordings) -> None:
    recording = made["lemire"]
    costlier = recording.frame["benchmark"].eq("AllocateAuto")
    frame = recording.frame.assign(**{"ns/op": recording.frame["ns/op"] * (1 + costlier / 2)})
    scaled = replace(recording, frame=frame)
    one, other = (
        headlines(ledger.rows({"lemire": r}, [STUDIES["lemire"]])) for r in (recording, scaled)
    )
    assert one.csv() != other.csv()


# --- Parts of charts -----------------------------------------------------------


@pytest.mark.usefixtures("no_pictures")
def test_the_fit_recovers_the_slope_of_the_samples(made: Recordings) -> None:
    data = draw(made["siebenmann"], "siebenmann-fit").data
    assert set(data["go"]) == {DOCUMENT_GO, TODAY_GO}
    assert data["slope"].between(0.55, 0.65).all()
    assert data["r2"].min() > 0.98
    today = data.query(f"go == '{TODAY_GO}'").set_index("bytes")["objects_in_span"]
    assert dict(today) == {8: 1008, 16: 496, 32: 248, 64: 124, 128: 62, 256: 31}


def test_a_flame_graph_merges_shared_stack_prefixes() -> None:
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
    kinds = {path[-1]: kind(frame) for path, frame in frames.items()}
    assert kinds == {
        "main": "the rest",
        "runtime.SetFinalizer": "SetFinalizer",
        "b": "the rest",
        "runtime.gcDrain": "collecting",
        "c": "collecting",
    }


def test_a_flame_graph_is_truncated_at_its_depth() -> None:
    deep = Profile(((tuple(f"f{i}" for i in range(40)), 10),))
    assert max(len(frame.path) for frame in flame.frames([deep], 14, 0.01)) == 14


@pytest.mark.parametrize(
    "wanted", [[0.1, 0.5, 0.9], [0.5, 0.5, 0.5], [0.1, 0.11, 0.12, 0.3], [0.95, 0.98, 0.99], []]
)
def test_line_end_labels_do_not_overlap(wanted: list[float]) -> None:
    apart: Callable[[list[float], float], list[float]] = plots._apart
    placed = apart(wanted, 0.1)
    assert all(b - a > 0.1 - 1e-9 for a, b in pairwise(placed))
    assert len(placed) == len(wanted)
    assert max(placed, default=0) <= 1
    if wanted == [0.1, 0.5, 0.9]:
        assert placed == pytest.approx(wanted)


def test_the_ledger_marks_values_off_the_scale(made: Recordings) -> None:
    rows = ledger.rows({"siebenmann": made["siebenmann"]}, [STUDIES["siebenmann"]])
    none = [row for row in rows if row.claim.id == "S2"]
    assert [row.estimate.value for row in none] == [0, 0]
    assert results.ledger(none).html.count("◀") == 2


def test_panel_labels_distinguish_original_and_current_toolchains(made: Recordings) -> None:
    recording = made["addcleanup"]
    assert release(recording, ISSUE_GO).endswith("the document's toolchain")
    assert release(recording, TODAY_GO).endswith("today's")
