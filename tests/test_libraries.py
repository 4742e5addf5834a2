"""Chapter 10: pinned libraries, and what is shown if some or all are missing."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import FakeMachine
from recordings import benchmarks_of, having, labels, recorded

import gccost
from gccost import paths
from gccost.cases import sources
from gccost.cases.versions import TODAY_GO
from gccost.costs.recording import Recording
from gccost.errors import MissingTool
from gccost.judging.rules import Label
from gccost.measuring import builds, toolchains, tools
from gccost.studies import STUDIES

STUDY = STUDIES["libraries"]
NATIVE = ("libraries/native/trees", "libraries/native/messages")


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Recording:
    return recorded(tmp_path_factory.mktemp("libraries"), "libraries")


def test_libraries_are_pinned_and_part_of_the_hash_of_a_program():
    module = paths.GOSRC / "libraries"
    required = re.findall(r"^\t(github\S+) (v\S+)$", (module / "go.mod").read_text(), re.MULTILINE)
    sums = (module / "go.sum").read_text()
    assert len(required) == 3
    assert all(f"{name} {version} h1:" in sums for name, version in required)
    files = {p.relative_to(paths.GOSRC).as_posix() for p in sources.sources("libraries/treesitter")}
    wanted = ("go.mod", "go.sum", "loop/loop.go", "treesitter/treesitter.go")
    assert files >= {f"libraries/{name}" for name in wanted} | {"meter/meter.go", "slab/slab.go"}
    assert not any(name.startswith("libraries/sqlite") for name in files)
    for program in NATIVE:
        files = {p.relative_to(paths.GOSRC).as_posix() for p in sources.sources(program)}
        assert files >= {f"{program}/slabs.diff", "libraries/native/main.go", "slab/slab.go"}


def test_a_claim_follows_the_share_of_its_library(recording):
    assert set(labels(recording).values()) == {Label.HOLDS}
    setting = ("main.main", "runtime.SetFinalizer")
    busy = {
        name: {
            number: replace(p, stacks=(*p.stacks, (setting, p.total))) for number, p in each.items()
        }
        for name, each in recording.cpu_profiles.items()
    }
    assert set(labels(having(recording, _profiles=(busy, ()))).values()) == {Label.FAILS}
    kept = {n: p for n, p in recording.cpu_profiles.items() if not n.startswith("Sqlite")}
    frame = recording.frame[~benchmarks_of(recording).str.startswith("Sqlite")]
    left = labels(having(recording, frame=frame, _profiles=(kept, ())))
    assert left.pop("X13a") is Label.UNMEASURED
    assert Label.UNMEASURED not in left.values()


@pytest.mark.slow
@pytest.mark.parametrize("program", NATIVE)
def test_a_library_with_slabs_is_built_from_the_overlay(program, tmp_path):
    toolchain, compiler = toolchains.fetch(TODAY_GO), tools.c_compiler(print)
    builds.fetch_modules([program])
    overlay = builds.with_slabs(program, toolchain)
    built: list[str] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        built.extend(command)
        Path(command[command.index("-o") + 1]).touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    builds.build(program, toolchain, compiler, 1, tmp_path, run)
    assert f"-overlay={overlay}" in built


def test_replay_is_shown_if_the_libraries_cannot_be_fetched(machine: FakeMachine):
    def offline(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "go: no route to host\n")

    builds.fetch_modules(["cstr"], offline)  # this program needs no libraries
    with pytest.raises(MissingTool, match="no route to host"):
        builds.fetch_modules(["libraries/server", "cstr"], offline)
    machine.fetch_modules = lambda programs: builds.fetch_modules(programs, offline)
    shown = gccost.measure("libraries", "tiny")
    assert shown.mode == "replay"
    assert "the libraries cannot be fetched" in shown.recording.notices[0]
