"""The releases study: every release is measured alike; unusable ones are skipped."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest
from faketools import FakeTools
from measured import run_sample

from gccost.cases import jobs
from gccost.cases.versions import GO_RELEASES, TODAY_GO, number
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.measuring import builds, toolchains, tools
from gccost.measuring.toolchains import Toolchain
from gccost.measuring.tools import CCompiler
from gccost.studies.releases import STUDY

# --- The list of releases -----------------------------------------------------------


def test_every_minor_release_has_the_same_cases_except_addcleanup():
    listed = [number(go)[:2] for go in GO_RELEASES]
    assert listed == [(1, minor) for minor in range(9, number(TODAY_GO)[1] + 1)]
    found = STUDY.jobs.values()
    of = {go: {job["argv"] for job in found if job["release"] == go} for go in GO_RELEASES}
    cleanup = {jobs.job("AcrossCleanup", TODAY_GO)["argv"]}
    for go, commands in of.items():
        assert commands == of[TODAY_GO] - (cleanup if number(go) < (1, 24) else set()), go
    with pytest.raises(GccostError, match=r"is not in Go 1\.23\.12.*1\.24 or later"):
        jobs.job("AcrossCleanup", "1.23.12")


# --- Measuring ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_missing_release_is_reported_and_skipped(tools: FakeTools):
    missing = "1.14.15"
    (tools.folder / f"go{missing}").rename(tools.folder / "elsewhere")
    done = tools.gccost("measure", GCCOST_ONLY="releases")
    assert done.returncode == 0, done.stderr
    for said in ("not on this machine: 1.", f"Go {missing} is skipped", "cannot be fetched"):
        assert said in done.stderr
    run = tools.the_run()
    assert "releases" in run.studies
    assert set(Recording(STUDY, run).releases) == {*GO_RELEASES} - {missing}


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
    assert ("-ldflags=-s -w -randlayout=7" in command) == (number(version) >= (1, 23))
    assert (environment.get("GODEBUG") == "goindex=0") == (version == "1.19.13")
    if in_gopath:  # builds run concurrently, each in its own folder
        assert version in folder.parent.parent.name
        assert (folder / "across" / "across.go").exists()


@pytest.mark.slow
def test_the_oldest_release_builds_and_runs_the_program(tmp_path):
    oldest = min(GO_RELEASES, key=number)
    if (go := toolchains.find(oldest)) is None:
        pytest.skip(f"Go {oldest} is not on this machine")
    binary = builds.build("across", go, tools.c_compiler(print), 1, tmp_path)
    sample = run_sample(binary, jobs.scaled(jobs.job("AcrossFree", oldest), 1 / 20), tmp_path)
    assert sample.metrics["ns/op"] > 0
