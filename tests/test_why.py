"""Why, and the runtime without the walk: from made-up runs to verdicts, and the builds."""

from __future__ import annotations

import io
import math
import random
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_profiles import write as write_profile

from gccost import paths
from gccost.errors import GccostError
from gccost.judging import ledger, models
from gccost.judging.recording import Recording
from gccost.judging.rules import Label
from gccost.measuring import benchfmt, builds, frames, runs, toolchains
from gccost.measuring.cases import BUDGETS, CLEANUP, Case, Ratio
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.samples import run_sample
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing import charts
from gccost.studies.runtime import INDEX, PLUS, patched
from gccost.studies.why import CACHED, MANY, attach, scattered

WALKS = {"ascending": 1.0, "shuffled": 0.5, "descending": 0.0}
# A call with an empty list, and for each record there: on stock, and with the index.
START, RECORD_NS = 70.0, {"": 1.0, INDEX: 0.0}
# What an operation takes, by benchmark: on stock and with the index.
NS = {
    "AllocateFree": (60.0, 60.0),
    "AllocateCleanup": (500.0, 220.0),
    "AllocateAuto": (700.0, 300.0),
    "Finalize": (600.0, 200.0),
    "Allocate": (15.0, 15.0),
    "ScatteredCleanup": (20_000.0, 200.0),
    "ScatteredStop": (15_000.0, 150.0),
    "ScatteredFinalizer": (20_000.0, 200.0),
    "LoopFinalizer": (650.0, 200.0),
    "LoopCleanup": (350.0, 210.0),
    "ProgramPlain": (20.0, 20.0),
    "ProgramCleanup": (400.0, 250.0),
    "ProgramFinalizer": (450.0, 250.0),
    "ProgramLists": (1000.0, 1000.0),
}
GONE_FROM_4_GB = 4_000_000_000


def record(folder: Path, name: str, more: Mapping[str, float] | None = None) -> Recording:
    """A run of an experiment at the standard budget, made up, with 1 % of noise.

    `more` puts factors on what a record in the list costs, by benchmark and order.
    """
    machine = {"cpu": "Made-up CPU", "allowed_cpus": 2, "release": "Test OS"}
    run = runs.create(folder, machine=machine, fingerprint="0" * 12, warnings=[])
    noise = random.Random(7)
    lines = []
    for number in range(1, 13):
        for case in EXPERIMENTS[name].within(BUDGETS["standard"]):
            for _ in range(case.processes):
                lines.append(benchfmt.format_line(_sample(case, number, noise, more or {})))
            if case.arm.profile:
                path = run.profile(case.name, number)
                path.parent.mkdir(exist_ok=True)
                write_profile(path, _stacks(case))
    run.append(lines)
    return Recording.load(EXPERIMENTS[name], run)


def _stacks(case: Case) -> list[tuple[list[str], int]]:
    own = ["cstr.BenchmarkAllocateCleanup", "runtime.AddCleanup[...]"]
    walk = 10 if case.arm.runtime else 60
    return [
        ([*own, "runtime.(*mspan).specialFindSplicePoint"], walk),
        ([own[0], "runtime.cgocall"], 40),
    ]


def _sample(
    case: Case, number: int, noise: random.Random, more: Mapping[str, float]
) -> benchfmt.Sample:
    keys = dict(case.arm.sub)
    metrics = {"round": number, "elapsed-s": 1, "unix-s": 1e9 + number, "gc-cycles": 8}
    metrics |= {"allocs/op": 1, "c-unfreed-drained": 0, "peak-rss-bytes": 1e8}
    if "order" in keys:
        records = 8064 // int(keys["bytes"])
        factor = more.get(f"{case.arm.benchmark} {keys['order']} {case.arm.runtime}".strip(), 1)
        each = WALKS[keys["order"]] * factor * (1 if factor != 1 else RECORD_NS[case.arm.runtime])
        places_ = [records * (i + 0.5) / 8 for i in range(8)]
        start = START * (1.3 if "Cleanup" in case.arm.benchmark else 1)
        calls = [(start + each * at) * noise.gauss(1, 0.003) for at in places_]
        metrics |= {f"at-{at:g}-records-ns": ns for at, ns in zip(places_, calls, strict=True)}
        metrics |= {"call-ns": sum(calls) / 8, "records": records / 2}
        metrics |= {"off-heap-bytes/span": 56.0 * records * (1.05 if case.arm.runtime else 1)}
        time = metrics["call-ns"]
    else:
        time = (
            NS[case.arm.benchmark][bool(case.arm.runtime)]
            * (1 - 0.2 * (case.arm.runtime == PLUS))
            * noise.gauss(1, 0.01)
        )
    if "others" in keys:
        metrics |= {"passed-records/op": 120 / (1 + int(keys["others"])), "held-records/op": 150}
    if case.arm.benchmark.startswith("Loop"):
        metrics["stride-bytes"] = int(keys["bytes"]) * (1 + int(keys.get("dummies", "0")))
    metrics |= {"ns/op": time, "cpu-ns/op": time, "settled-ns/op": time, "settled-cpu-ns/op": time}
    if case.arm.stationary:
        metrics |= {"slice-p05-ns/op": time, "slices-ns/op": time}
    return benchfmt.Sample(
        name=case.arm.benchmark,
        n=case.n,
        metrics=metrics,
        keys={**keys, "go": case.release, **case.arm.keys()},
        procs=1 if case.arm.setting == "precise" else 2,
    )


@pytest.fixture(scope="module")
def why(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record(tmp_path_factory.mktemp("why"), "why")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record(tmp_path_factory.mktemp("runtime"), "runtime")


def labels(recording: Recording) -> dict[str, Label]:
    rows = ledger.rows({recording.study.name: recording}, recording.claims)
    return {row.claim.id: row.verdict.label for row in rows if row.release == TODAY_GO}


# --- From samples to slopes -----------------------------------------------------------


def test_the_line_goes_through_what_calls_took_by_their_lists_length() -> None:
    sample = pd.Series(
        {
            "ns/op": 9.0,
            "at-31-records-ns": 101.0,
            "at-7.5-records-ns": 54.0,
            "at-94-records-ns": 227.0,
        }
    )
    assert models.walked(sample) == ([7.5, 31.0, 94.0], [54.0, 101.0, 227.0])
    fit = models.walk(sample)
    assert (fit.slope, fit.intercept, fit.r2) == pytest.approx((2, 39, 1))
    assert math.isnan(models.walk(pd.Series({"ns/op": 9.0})).slope)


def test_a_slope_has_the_rounds_as_its_samples(why: Recording) -> None:
    arm = attach("AttachFinalizer")
    slope = why.slope(arm, TODAY_GO)
    assert slope.samples == 12
    assert slope.contains(1.0)
    assert slope.half_width < 0.01
    assert why.walks(arm, TODAY_GO)["intercept"].median() == pytest.approx(START, rel=0.01)
    level = why.slope(attach("AttachFinalizer", "descending"), TODAY_GO)
    assert level.contains(0.0)


def test_the_two_runtimes_are_told_apart(runtime: Recording) -> None:
    assert patched(CLEANUP).on(TODAY_GO).endswith("/runtime=index")
    ratio = runtime.ratio(Ratio(CLEANUP, patched(CLEANUP)), TODAY_GO)
    assert ratio.contains(500 / 220)
    assert "runtime" in frames.KEYS


# --- Verdicts -----------------------------------------------------------------------


def test_what_walks_is_judged_to_walk(why: Recording, runtime: Recording) -> None:
    assert labels(why) == {
        "M8a": Label.FAILS,
        "M8b": Label.HOLDS,
        "X1a": Label.HOLDS,
        "X1b": Label.HOLDS,
        "X1c": Label.HOLDS,
        "X5": Label.HOLDS,
        "X10": Label.HOLDS,
    }
    assert set(labels(runtime).values()) == {Label.HOLDS}
    assert {"M7", "X2a", "X2b", "X2c", "X2d", "X3", "X4"} == set(labels(runtime))


def test_a_walk_that_does_not_end_half_way_is_judged_so(tmp_path: Path) -> None:
    made = record(tmp_path, "why", {"AttachFinalizer shuffled": 1.6})
    assert labels(made)["X1b"] is Label.FAILS
    assert labels(made)["X1a"] is Label.HOLDS


def test_an_index_that_walks_is_judged_to_walk(tmp_path: Path) -> None:
    made = record(
        tmp_path, "runtime", {"AttachCleanup shuffled index": 0.2, "Stop shuffled index": 0.3}
    )
    verdicts = labels(made)
    assert verdicts["X2b"] is verdicts["X2d"] is Label.FAILS
    assert verdicts["X2a"] is verdicts["X2c"] is Label.HOLDS


def test_what_goes_further_is_told_apart(runtime: Recording) -> None:
    ratio = runtime.ratio(Ratio(patched(CLEANUP), patched(CLEANUP, PLUS)), TODAY_GO)
    assert ratio.contains(1 / 0.8)


def test_the_share_that_the_walk_takes_is_of_what_the_cleanup_adds(runtime: Recording) -> None:
    row = next(
        r
        for r in ledger.rows({"runtime": runtime}, runtime.claims)
        if r.claim.id == "X3" and r.release == TODAY_GO
    )
    assert row.estimate.value == pytest.approx((500 - 220) / (500 - 60), rel=0.02)


# --- Charts --------------------------------------------------------------------------

OWN = [name for name in charts.CHARTS if name.split("-")[0] in ("why", "runtime")]


@pytest.mark.parametrize("name", OWN)
def test_every_chart_draws_what_was_recorded(name: str, why: Recording, runtime: Recording) -> None:
    chart = charts.CHARTS[name]({"why": why, "runtime": runtime}[name.split("-")[0]])
    assert chart.name == name
    assert len(chart.data) > 2
    assert chart.alt.startswith(chart.title)
    assert "nan" not in chart.title + chart.alt
    ET.parse(io.StringIO(chart.svg))  # noqa: S314 - our own


@pytest.mark.parametrize("name", OWN)
def test_a_chart_of_nothing_says_so(name: str, tmp_path: Path) -> None:
    experiment = EXPERIMENTS[name.split("-")[0]]
    machine = {"cpu": "Made-up CPU", "allowed_cpus": 2, "release": "Test OS"}
    run = runs.create(tmp_path, machine=machine, fingerprint="0" * 12, warnings=[])
    run.append([])
    chart = charts.CHARTS[name](Recording.load(experiment, run))
    assert not len(chart.data)
    assert "not" in chart.title


def test_the_drawing_follows_the_data(tmp_path: Path, why: Recording) -> None:
    dearer = record(tmp_path, "why", {"AttachFinalizer ascending": 3.0})
    before, after = (charts.CHARTS["why-span"](r) for r in (why, dearer))
    assert before.title != after.title
    assert "3.0" in after.title or "2.9" in after.title


# --- What is measured -------------------------------------------------------------------


def test_no_sample_of_it_takes_four_gigabytes() -> None:
    for name in ("why", "runtime"):
        for case in EXPERIMENTS[name].cases:
            assert case.n * case.kept < GONE_FROM_4_GB


def test_ten_million_live_handles_wait_for_the_thorough_budget() -> None:
    for name in ("why", "runtime"):
        for case in EXPERIMENTS[name].within(BUDGETS["standard"]):
            assert int(dict(case.arm.sub).get("live", "0")) <= MANY


def test_the_quick_budget_shows_slopes_and_both_runtimes() -> None:
    quick = {
        c.arm for name in ("why", "runtime") for c in EXPERIMENTS[name].within(BUDGETS["quick"])
    }
    needed = {attach("AttachFinalizer", order, bytes_) for order in WALKS for bytes_ in (8, CACHED)}
    needed |= {CLEANUP, patched(CLEANUP), scattered("ScatteredCleanup")}
    assert needed <= quick


# --- Building with another runtime ---------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    return tmp_path


class Writer:
    """Stands in for `go run ./overlay`: writes what that writes, or fails."""

    def __init__(self, goroot: Path, error: str = "", whole: bool = True) -> None:
        self.goroot, self.error, self.whole, self.calls = goroot, error, whole, 0

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.calls += 1
        folder = Path(command[command.index("-o") + 1])
        link = folder / "goroot"
        link.unlink(missing_ok=True)
        link.symlink_to(self.goroot)
        if self.error:
            return subprocess.CompletedProcess(command, 1, "", self.error)
        if not self.whole:
            raise KeyboardInterrupt
        (folder / "overlay.json").write_text('{"Replace": {}}')
        return subprocess.CompletedProcess(command, 0, "", "")


def test_an_overlay_is_written_once(cache: Path) -> None:
    toolchain = toolchains.fetch(TODAY_GO)
    writer = Writer(toolchain.goroot)
    paths = [builds.overlay(toolchain, INDEX, writer) for _ in range(2)]
    assert writer.calls == 1
    assert paths[0] == paths[1]
    assert paths[0].is_relative_to(cache)
    assert builds.overlay(toolchain, "checked", writer) != paths[0]


def test_an_overlay_for_a_go_that_has_moved_is_written_anew(cache: Path) -> None:
    toolchain = toolchains.fetch(TODAY_GO)
    builds.overlay(toolchain, INDEX, Writer(cache))
    writer = Writer(toolchain.goroot)
    builds.overlay(toolchain, INDEX, writer)
    assert writer.calls == 1


def test_an_overlay_broken_off_half_way_is_written_anew(cache: Path) -> None:
    toolchain = toolchains.fetch(TODAY_GO)
    with pytest.raises(KeyboardInterrupt):
        builds.overlay(toolchain, INDEX, Writer(toolchain.goroot, whole=False))
    writer = Writer(toolchain.goroot)
    assert builds.overlay(toolchain, INDEX, writer).exists()
    assert writer.calls == 1


def test_a_source_that_is_not_recognised_is_refused_by_name(cache: Path) -> None:
    toolchain = toolchains.fetch(TODAY_GO)
    said = "overlay: mheap.go:2066: specialFindSplicePoint is not the one that is known"
    with pytest.raises(GccostError, match="is not the one that is known") as caught:
        builds.overlay(toolchain, INDEX, Writer(toolchain.goroot, error=said))
    assert said in str(caught.value)
    assert f"Go {TODAY_GO}" in str(caught.value)


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("")
    monkeypatch.setattr(paths, "CACHE", tmp_path / "taken")
    with pytest.raises(GccostError, match="taken"):
        builds.overlay(toolchains.fetch(TODAY_GO), INDEX, Writer(tmp_path))


def test_a_program_is_built_with_the_other_runtime_and_runs(tmp_path: Path) -> None:
    toolchain, compiler = toolchains.fetch(TODAY_GO), toolchains.c_compiler()
    arm = attach("AttachCleanup", runtime=INDEX)
    stock, index = (
        builds.build("specials", toolchain, compiler, 7, tmp_path, runtime=runtime)
        for runtime in ("", INDEX)
    )
    assert b"makeSpecialIndex" in index.read_bytes()
    assert b"makeSpecialIndex" not in stock.read_bytes()
    sample = run_sample(index, Case("specials", arm, TODAY_GO, 4000), tmp_path)
    assert sample.keys["runtime"] == INDEX
    assert len(models.walked(pd.Series(sample.metrics))[0]) == 16


def test_the_key_of_a_run_heeds_the_overlays_source() -> None:
    assert "overlay" in EXPERIMENTS["runtime"].packages
    assert "overlay" not in EXPERIMENTS["why"].packages
    hashed = {path.name for path in builds.sources("overlay")}
    assert {"main.go", "mspecialindex.go.txt"} <= hashed
