"""The releases study: every release is measured alike; unusable ones are skipped."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess, run

import pytest
import recordings
from faketools import FakeTools

from gccost import paths
from gccost.choosing import choose_release
from gccost.errors import GccostError, MissingTool
from gccost.judging import published
from gccost.judging.recording import Recording
from gccost.measuring import builds, campaign, toolchains
from gccost.measuring.cases import BUDGETS, Case
from gccost.measuring.samples import run_sample
from gccost.measuring.toolchains import (
    DOCUMENT_GO,
    GO_RELEASES,
    ISSUE_GO,
    TODAY_GO,
    CCompiler,
    Toolchain,
    number,
)
from gccost.settings import Settings
from gccost.showing.tables import Prose
from gccost.showing.widgets import HEADLESS
from gccost.stats import Estimate
from gccost.studies import CHARTS, STUDIES, releases
from gccost.studies.releases import (
    CLEANUP,
    COSTS,
    MANUAL,
    ONE_CALL,
    RATIOS,
    STUDY,
    causes,
    every,
    gains,
    jumps,
    losses,
    minor,
    moved,
    overview,
    since_first,
    steps_tested,
    upgrading,
)
from gccost.study import _with_own_run, open_study

CHEAPER = "1.26.11"  # the release that made calls into C cheaper


def cheaper_calls(case: Case, _: int, metrics: recordings.Metrics) -> None:
    """From CHEAPER on, make each call into C 15 ns faster."""
    saved = {"AcrossCall": 15.0, "AcrossFree": 30.0}.get(case.variant.benchmark, 0.0)
    if number(case.release) >= number(CHEAPER):
        for metric in ("ns/op", "slice-p05-ns/op", "slices-ns/op"):
            if metric in metrics:
                metrics[metric] -= saved


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("releases")
    return recordings.recorded(folder, "releases", change=cheaper_calls)


# --- The list of releases -----------------------------------------------------------


def test_every_minor_release_is_listed_once() -> None:
    listed = [number(go)[:2] for go in GO_RELEASES]
    assert listed == [(1, minor) for minor in range(9, number(TODAY_GO)[1] + 1)]


def test_all_releases_have_the_same_cases_except_addcleanup_and_green_tea() -> None:
    of = {go: {c.variant for c in STUDY.cases if c.release == go} for go in GO_RELEASES}
    (no_green_tea,) = (variant for variant in of[TODAY_GO] if variant.runtime)
    for go, variants in of.items():
        missing = {CLEANUP: (1, 24), no_green_tea: (1, 26)}
        lacks = {variant for variant, since in missing.items() if number(go) < since}
        assert variants == of[TODAY_GO] - lacks, go


def test_cleanup_cases_are_refused_before_go_1_24() -> None:
    with pytest.raises(GccostError, match=r"Go 1\.23\.12 has no runtime\.AddCleanup"):
        Case("across", CLEANUP, "1.23.12", 1000)


def test_other_studies_use_fewer_than_half_of_the_releases() -> None:
    others = {go for of in STUDIES.values() if of is not STUDY for go in of.releases}
    assert len(others & {*GO_RELEASES}) < len(GO_RELEASES) / 2


def test_a_new_release_gets_the_same_cases(tmp_path: Path) -> None:
    listed = tmp_path / "releases.csv"
    listed.write_text(paths.RELEASES.read_text() + "1.99.1,linux-amd64,h1:=\n")
    program = (
        "import pathlib, sys; from gccost import paths\n"
        "paths.RELEASES = pathlib.Path(sys.argv[1])\n"
        "from gccost.studies.releases import STUDY\n"
        "print(sum(case.release == '1.99.1' for case in STUDY.cases))"
    )
    command = [sys.executable, "-c", program, str(listed)]
    done = run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) == sum(case.release == TODAY_GO for case in STUDY.cases)


def test_release_notes_link_to_listed_releases() -> None:
    notes = published.table("release-notes")
    assert set(notes["release"]) <= {f"Go {minor(go)}" for go in GO_RELEASES}
    for release, link in zip(notes["release"], notes["link"], strict=True):
        assert link.startswith(f"https://go.dev/doc/{release.lower().replace(' ', '')}#")


# --- Which release changed what -----------------------------------------------------


def test_a_jump_is_attributed_to_its_release_and_cause(recording: Recording) -> None:
    for figure in (MANUAL, ONE_CALL, RATIOS[0]):
        assert list(jumps(recording, figure)) == [CHEAPER], figure.name
    assert jumps(recording, RATIOS[0])[CHEAPER].value > 1 > jumps(recording, MANUAL)[CHEAPER].value
    assert not jumps(recording, COSTS[3])  # the finalizer, the ratio's numerator
    (said,) = causes(recording)
    assert "From Go 1.25 to 1.26" in said
    lines = moved(recording).text.splitlines()
    assert [line.split()[0] for line in lines] == ["Go", "1.26", "since"]


def test_steady_costs_have_no_jumps(tmp_path: Path) -> None:
    steady = recordings.recorded(tmp_path, "releases")
    assert not any(jumps(steady, figure) for figure in releases.FIGURES)
    assert causes(steady) == []
    assert moved(steady).text == "Go"
    assert losses(steady) == [
        f"Signing with {ps} is not significantly slower on any release." for ps in ("1 P", "48 Ps")
    ]
    since = len(GO_RELEASES) - list(GO_RELEASES).index("1.24.13")
    with_cleanup = sum(CLEANUP in (f.variant, f.under) for f in releases.FIGURES)
    steps = (len(releases.FIGURES) - with_cleanup) * (len(GO_RELEASES) - 1)
    assert steps_tested(steady) == steps + with_cleanup * (since - 1)


def test_many_small_steps_are_in_the_last_row(tmp_path: Path) -> None:
    def slower_each_time(case: Case, _: int, metrics: recordings.Metrics) -> None:
        if case.variant == releases.LIVE:
            metrics["special-ns"] *= 1.02 ** list(GO_RELEASES).index(case.release)

    creeping = recordings.recorded(tmp_path, "releases", change=slower_each_time)
    assert not jumps(creeping, releases.PER_CYCLE)
    assert since_first(creeping, releases.PER_CYCLE).low > 1
    lines = [line.split() for line in moved(creeping).text.splitlines()]
    assert [line[0] for line in lines] == ["Go", "since"]


@pytest.mark.parametrize(
    ("without", "cause"),
    [
        (1.0, "So the loss is that of Green Tea."),
        (1.4, "So Green Tea is a part of the cause."),
        (2.0, "So the loss is there without Green Tea too. We do not know its cause."),
        (3.0, "So the loss is there without Green Tea too. We do not know its cause."),
    ],
)
def test_the_largest_loss_of_signing_is_tested_without_green_tea(
    tmp_path: Path, without: float, cause: str
) -> None:
    def dearer_cycles(case: Case, _: int, metrics: recordings.Metrics) -> None:
        many = releases.SIGNED["48 Ps"]
        if case.variant == many and number(case.release) >= number(CHEAPER):
            metrics["op/cpu-s"] /= 2
        elif case.variant.runtime:
            metrics["op/cpu-s"] /= without

    one, step, tea = losses(recordings.recorded(tmp_path, "releases", change=dearer_cycles))
    assert one == "Signing with 1 P is not significantly slower on any release."
    assert "on Go 1.26" in step
    assert "With 48 Ps and GOGC=400 it is" in step
    assert "of the loss lies in the cycles" in step
    assert tea.endswith(cause)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.95, 1.05, "same"), (0.85, 1.05, "undecided"), (0.95, 1.2, "undecided")],
)
def test_a_cost_is_the_same_only_if_no_larger_change_is_possible(
    low: float, high: float, said: str
) -> None:
    assert releases._differs(Estimate(1.0, low, high, 8, 8, 0.95)) == said


def test_every_release_has_an_upgrade_summary(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = gains(recording).text.splitlines()[1:]
    assert [line.split()[1] for line in lines] == [minor(go) for go in GO_RELEASES][:-1]
    assert len(overview(recording).text.splitlines()) == 1 + len(GO_RELEASES)
    told = upgrading(recording, DOCUMENT_GO)
    assert "Go 1.20" in told.text
    assert "same" in told.text
    monkeypatch.delenv(HEADLESS, raising=False)
    (menu, *_) = choose_release(recording).children
    assert len(menu.options) == len(GO_RELEASES)
    monkeypatch.setenv(HEADLESS, "1")
    assert isinstance(choose_release(recording), Prose)


def test_an_unmeasured_release_is_left_out(tmp_path: Path) -> None:
    def without(case: Case, _: int, metrics: recordings.Metrics) -> None:
        if case.release == ISSUE_GO:
            metrics.clear()

    part = recordings.recorded(tmp_path, "releases", rounds=4, change=without)
    assert ISSUE_GO not in part.releases
    assert ISSUE_GO not in set(STUDY.charts[0](part).data["go"])
    assert minor(ISSUE_GO) not in gains(part).text
    empty = recordings.empty(tmp_path / "empty", "releases")
    assert isinstance(upgrading(empty, TODAY_GO), Prose)
    assert causes(empty) == []


def test_own_measurements_are_added_to_the_recorded_charts(
    recording: Recording, tmp_path: Path
) -> None:
    assert open_study("releases", Settings("replay")).recording.own_run is None
    of = recordings.recorded(tmp_path, "addcleanup").run
    shown = _with_own_run(
        replace(open_study("releases", Settings("replay")), recording=recording), of
    )
    assert shown.recording.run == recording.run
    assert f"{of.name}; " in shown.notices[-1]
    assert f"Go {ISSUE_GO}, Go {TODAY_GO}." in shown.notices[-1]
    for name, lines in (("cost", 3), ("ratio", 3), ("signing", 0)):
        data = shown.chart(f"releases-{name}").data
        own = data[data["variant"].str.endswith(", measured here")]
        assert own["variant"].nunique() == lines, name
        assert set(own["go"]) <= {ISSUE_GO, TODAY_GO}
        alone = CHARTS[f"releases-{name}"](recording).data
        assert data.drop(index=own.index).reset_index(drop=True).equals(alone)
    assert set(every(shown.recording)["run"]) == {recording.run.name, of.name}
    assert set(every(recording)["run"]) == {recording.run.name}


def test_the_releases_table_has_costs_with_intervals(recording: Recording) -> None:
    _, about = overview(recording)._repr_mimebundle_()
    assert about == {"gccost": {"table": "releases"}}
    found = every(recording).set_index(["variant", "go"])
    assert {go for _, go in found.index} == {*GO_RELEASES}
    row = found.loc["finalizer frees", TODAY_GO]
    assert float(row["low"]) < float(row["cost"]) < float(row["high"])
    assert float(row["ratio_low"]) < float(row["ratio_to_manual"]) < float(row["ratio_high"])
    assert not found.loc["manual free", TODAY_GO]["ratio_to_manual"]


# --- Measuring ----------------------------------------------------------------------


def test_the_study_is_measured_only_on_request(tools: FakeTools) -> None:
    assert STUDY.on_request
    assert [of.name for of in STUDIES.values() if of.on_request] == ["releases"]
    assert "releases is skipped" not in tools.gccost("measure").stderr
    assert not tools.the_run().holds("releases")


def test_requesting_the_study_measures_no_other_study(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "measure", lambda *_: pytest.fail("it measures"))
    chapter = open_study("weimer", Settings("measure", BUDGETS["tiny"], "releases"))
    assert chapter.mode == "replay"


def test_unusable_releases_are_reported_and_skipped(tools: FakeTools) -> None:
    damaged, missing, unbuilt = "1.13.15", "1.14.15", "1.12.17"
    platform = toolchains._platform()
    records = tools.folder / "mod/cache/download/golang.org/toolchain/@v"
    (records / f"v0.0.1-go{damaged}.{platform}.ziphash").write_text("h1:another")
    (records / f"v0.0.1-go{missing}.{platform}.ziphash").unlink()
    why = "undefined reference to pthread_yield"
    tools.do(build=f'case $binary in *go{unbuilt}-*) echo "{why}" >&2; exit 1 ;; esac')
    done = tools.gccost("measure", GCCOST_ONLY="releases")
    assert done.returncode == 0, done.stderr
    assert "not on this machine: 1." in done.stderr
    assert f"Go {damaged} is skipped" in done.stderr
    assert "is not the pinned" in done.stderr
    assert f"Go {missing} is skipped" in done.stderr
    assert "cannot be fetched" in done.stderr
    found = tools.the_run()
    assert found.holds("releases")
    measured = set(Recording.load(STUDY, found).releases)
    assert measured == {*GO_RELEASES} - {damaged, missing, unbuilt}
    troubles = [what for whats in found.manifest()["troubles"].values() for what in whats]
    assert any(f"Go {unbuilt}" in what and why in what for what in troubles)
    # Nothing is measured twice.
    before = found.samples.read_bytes()
    assert tools.gccost("measure", GCCOST_ONLY="releases").returncode == 0
    assert found.samples.read_bytes() == before


def test_remove_deletes_downloaded_releases_and_reports_space(tools: FakeTools) -> None:
    assert "removed" not in tools.gccost("remove").stdout  # they are the user's own
    records = tools.folder / "mod/cache/download/golang.org/toolchain/@v"
    for record in list(records.glob("*.ziphash")):
        record.with_suffix(toolchains._OURS).touch()
    kept = tools.folder / "mod/another@v1.0.0/file"
    kept.parent.mkdir()
    kept.touch()
    folder = next((tools.folder / "mod/golang.org").iterdir())
    (folder / "bin").chmod(0o555)  # as Go leaves it
    done = tools.gccost("remove")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("removed Go ") == len(GO_RELEASES)
    assert "freed " in done.stdout.splitlines()[-1]
    assert not list((tools.folder / "mod/golang.org").iterdir())
    assert kept.exists()
    assert "removed" not in tools.gccost("remove").stdout


def test_cases_get_more_rounds_than_the_standard_budget() -> None:
    (rounds,) = {case.rounds for case in STUDY.cases}
    assert rounds > BUDGETS["standard"].shown


# --- Building -----------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.9.7", "1.17.13", "1.19.13", "1.22.12", "1.23.12"])
def test_each_release_is_built_with_supported_options(version: str, tmp_path: Path) -> None:
    seen = {}

    def made(command: list[str], **how: object) -> CompletedProcess[str]:
        seen.update(how, command=command)
        Path(command[command.index("-o") + 1]).touch()
        return CompletedProcess(command, 0, "", "")

    go = Toolchain(version, Path("/nowhere"), "module proxy")
    builds.build("across", go, CCompiler(("cc",), "cc 1.0", "system"), 7, tmp_path, made)
    command, environment, folder = seen["command"], seen["env"], Path(seen["cwd"])
    in_gopath = number(version) < (1, 18)
    assert (environment.get("GO111MODULE") == "off") == in_gopath
    assert ("-trimpath" in command) == (not in_gopath)
    assert ("-ldflags=-randlayout=7" in command) == (number(version) >= (1, 23))
    assert (environment.get("GODEBUG") == "goindex=0") == (version == "1.19.13")
    if in_gopath:  # builds run concurrently, each in its own folder
        assert version in folder.parent.parent.name
        assert (folder / "across" / "across.go").exists()


def test_the_oldest_release_builds_and_runs_the_program(tmp_path: Path) -> None:
    oldest = min(GO_RELEASES, key=number)
    try:
        go, compiler = toolchains.find(oldest), toolchains.c_compiler()
    except MissingTool as why:
        pytest.skip(str(why))
    if go is None:
        pytest.skip(f"Go {oldest} is not on this machine")
    binary = builds.build("across", go, compiler, 1, tmp_path)
    for case in STUDY.cases:
        if case.release == oldest and case.program == "across":
            few = case.scaled(1 / 20)
            sample = run_sample(binary, few, tmp_path)
            assert sample.n == few.n
            assert sample.metrics["ns/op"] > 0
