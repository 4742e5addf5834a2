"""The releases study: every release is measured alike; unusable ones are skipped."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest
from faketools import FakeTools
from measured import run_sample

from gccost.errors import GccostError
from gccost.judging.recording import Recording
from gccost.measuring import builds, ccompilers, toolchains
from gccost.measuring.cases import Case
from gccost.measuring.ccompilers import CCompiler
from gccost.measuring.toolchains import GO_RELEASES, TODAY_GO, Toolchain, number
from gccost.studies.releases import CLEANUP, STUDY

# --- The list of releases -----------------------------------------------------------


def test_every_minor_release_has_the_same_cases_except_addcleanup():
    listed = [number(go)[:2] for go in GO_RELEASES]
    assert listed == [(1, minor) for minor in range(9, number(TODAY_GO)[1] + 1)]
    of = {go: {c.variant for c in STUDY.cases if c.release == go} for go in GO_RELEASES}
    for go, variants in of.items():
        assert variants == of[TODAY_GO] - ({CLEANUP} if number(go) < (1, 24) else set()), go
    with pytest.raises(GccostError, match=r"1\.23\.12 has no runtime\.AddCleanup.*1\.24 or later"):
        Case("across", CLEANUP, "1.23.12", 1000)


# --- Measuring ----------------------------------------------------------------------


@pytest.mark.slow
def test_unusable_releases_are_reported_and_skipped(tools: FakeTools):
    damaged, missing = "1.13.15", "1.14.15"
    platform = toolchains._platform()
    records = tools.folder / "mod/cache/download/golang.org/toolchain/@v"
    (records / f"v0.0.1-go{damaged}.{platform}.ziphash").write_text("h1:another")
    (records / f"v0.0.1-go{missing}.{platform}.ziphash").unlink()
    done = tools.gccost("measure", GCCOST_ONLY="releases")
    assert done.returncode == 0, done.stderr
    for said in (
        "not on this machine: 1.",
        f"Go {damaged} is skipped",
        "is not the pinned",
        f"Go {missing} is skipped",
        "cannot be fetched",
    ):
        assert said in done.stderr
    run = tools.the_run()
    assert "releases" in run.studies
    measured = set(Recording(STUDY, run).releases)
    assert measured == {*GO_RELEASES} - {damaged, missing}


@pytest.mark.slow
def test_only_downloaded_releases_are_removed(tools: FakeTools):
    assert tools.gccost("fetch", "--remove").stdout == ""  # they are the user's own
    records = tools.folder / "mod/cache/download/golang.org/toolchain/@v"
    for record in list(records.glob("*.ziphash")):
        record.with_suffix(toolchains._OURS).touch()
    kept = tools.folder / "mod/another@v1.0.0/file"
    kept.parent.mkdir()
    kept.touch()
    folder = next((tools.folder / "mod/golang.org").iterdir())
    (folder / "bin").chmod(0o555)  # as Go leaves it
    done = tools.gccost("fetch", "--remove")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("removed Go ") == len(GO_RELEASES)
    assert not list((tools.folder / "mod/golang.org").iterdir())
    assert kept.exists()
    assert tools.gccost("fetch", "--remove").stdout == ""


# --- Building -----------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.9.7", "1.17.13", "1.19.13", "1.22.12", "1.23.12"])
def test_each_release_is_built_with_supported_options(version, tmp_path):
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


@pytest.mark.slow
def test_the_oldest_release_builds_and_runs_the_program(tmp_path):
    oldest = min(GO_RELEASES, key=number)
    if (go := toolchains.find(oldest)) is None:
        pytest.skip(f"Go {oldest} is not on this machine")
    binary = builds.build("across", go, ccompilers.fetch(print), 1, tmp_path)
    case = next(c for c in STUDY.cases if (c.release, c.program) == (oldest, "across"))
    sample = run_sample(binary, case.scaled(1 / 20), tmp_path)
    assert sample.metrics["ns/op"] > 0
