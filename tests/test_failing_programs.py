"""Failing programs, compilers and clocks: the fault is reported, the rest continues."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
import recordings
from campaigns import LEMIRE, gccost, page_of, planned
from conftest import FakeMachine
from faketools import FakeTools
from recordings import benchmarks_of

from gccost import doctor, paths
from gccost.errors import GccostError
from gccost.judging.recording import Recording
from gccost.measuring import builds, campaign, sampler, toolchains
from gccost.measuring.toolchains import TODAY_GO


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("sleep 600", "the program hung: it was ended after 0.3 s"),
        ('line "$name" | sed "s/ ns.op/ ms\\/op/"', "the program printed no ns/op"),
        ("exit 9", "the program failed with exit code 9: no output"),
    ],
    ids=["hangs", "prints another unit", "fails"],
)
def test_a_failing_program_is_skipped_and_the_others_are_measured(
    machine: FakeMachine, monkeypatch, behaviour, why
):
    sample = sampler.sample

    def run(job: sampler.Job, *given: Any, **more: Any) -> sampler.Sample:
        hangs = "sleep" in behaviour and job["name"].startswith("AllocateDummy/")
        return sample(job, *given, **more, **({"limit": 0.3} if hangs else {}))

    monkeypatch.setattr(sampler, "sample", run)
    machine.behaviour = (
        f'[ $name = BenchmarkAllocateDummy ] && {{ {behaviour}; exit 0; }}; line "$name"'
    )
    run = campaign.measure(planned())
    assert not run.reading().errors
    names = set(benchmarks_of(Recording.load(LEMIRE, run)))
    assert "AllocateDummy" not in names
    assert "AllocateAuto" in names
    manifest = run.manifest()
    for case, troubles in manifest["troubles"].items():
        assert "AllocateDummy" in case
        assert why in troubles[0]
        assert troubles[-1].endswith("it is skipped from here on")
        assert manifest["failed"][case] == [troubles[0]] * 2
    assert why in page_of(Recording.load(LEMIRE, run))


def test_a_program_that_cannot_start_is_skipped(machine: FakeMachine, monkeypatch):
    def not_executable(*arguments, **more):
        binary = machine.build(*arguments, **more)
        if "1.20" in binary.name:
            binary.chmod(0o644)
        return binary

    monkeypatch.setattr(builds, "build", not_executable)
    run = campaign.measure(planned())
    assert Recording.load(LEMIRE, run).releases == (TODAY_GO,)
    old = {t for case, ts in run.manifest()["troubles"].items() if "1.20" in case for t in ts}
    assert any("did not start: Permission denied" in trouble for trouble in old)


def test_measuring_works_offline_once_tools_are_installed(tmp_path):
    """The real compilers, without a network if the system supports that."""
    try:
        for release in LEMIRE.releases:
            toolchains.fetch(release)
    except GccostError as why:
        pytest.skip(str(why))
    program = """
import sys
from pathlib import Path
from gccost import processes
from gccost.measuring import planning, sampler
from gccost.studies import STUDIES
from gccost.measuring.cases import BUDGETS
plan = planning.plan([STUDIES["lemire"]], BUDGETS["tiny"], say=sys.exit)
assert not plan.missing, plan.missing
case = next(iter(plan.pool.values()))
folder = Path(sys.argv[1])
binary = plan.build(case.build, 7, folder, processes.run)
print(sampler.sample(plan.jobs[case.name], binary, folder).n)
"""
    alone = ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        alone = []
    done = subprocess.run(
        [*alone, sys.executable, "-c", program, str(tmp_path)],
        cwd=paths.ROOT,
        env={**os.environ, "GOPROXY": "off", "PIP_NO_INDEX": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "8000\n"


# --- the command line ---------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "some/file"),
            "gccost: some/file: Permission denied. To fix it: make it writable",
        ),
        (OSError(errno.EIO, "Input/output error", "disk"), "gccost: disk: Input/output error"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no text"), "gccost: 'utf-8' codec can't"),
        (
            GccostError("a message", "a place", "a hint"),
            "gccost: a place: a message. To fix it: a hint",
        ),
    ],
)
def test_an_error_prints_one_line_and_exits_with_1(monkeypatch, error, said):
    def fail():
        raise error

    monkeypatch.setattr(doctor, "examine", fail)
    done = gccost("doctor")
    assert done.exit_code == 1
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", [("doctor",), ("compare", "one", "two")], ids=" ".join)
def test_a_closed_pipe_ends_a_command_silently(tools: FakeTools, tmp_path, command):
    name, *given = command
    for each in given:
        shutil.copytree(recordings.record(tmp_path, rounds=1).folder, tmp_path / each)
    with tools.start(name, *(str(tmp_path / each) for each in given)) as started:
        started.stdout.close()
        assert started.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("measure", "--budget=quik"), "quick, tiny, standard, thorough"),
        (("measure", "--only=lemur"), "lemire"),
        (("compare", "nowhere", "nowhere"), "name a run's folder"),
        (("compare", "README.md", "README.md"), "unpack an archive first"),
        (("add", "gccost"), "name a run, such as data/runs/"),
    ],
)
def test_an_invalid_argument_is_explained(arguments, said):
    done = gccost(*arguments)
    assert done.exit_code == 1
    assert said in done.stderr
