"""Failing programs, compilers and clocks: the fault is reported, the rest continues."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from campaigns import LEMIRE, TINY, assert_only_lost, gccost
from conftest import FakeMachine
from faketools import FakeTools

from gccost import paths, processes
from gccost.cases.benchmarks import ONE_MALLOC
from gccost.errors import GccostError
from gccost.measuring import campaign, planning, toolchains
from gccost.showing import doctor
from gccost.studies import STUDIES


def unbuilt(part: str) -> dict[str, Any]:
    """A machine that cannot build the programs with this in their names."""

    def fail(binary: Path) -> None:
        if part in binary.name:
            raise GccostError("the linker was killed", "go build", "free some memory")

    return {"spoil": fail}


NOT_EXECUTABLE = {"spoil": lambda binary: binary.chmod(0o644 if "1.20" in binary.name else 0o755)}
EXITS = {"behaviour": '[ $name != BenchmarkAllocateDummy ] || exit 9; line "$name"'}


@pytest.mark.parametrize(
    ("study", "broken", "lost", "why"),
    [
        ("lemire", EXITS, "AllocateDummy/", "failed with exit code 9: no output"),
        ("lemire", NOT_EXECUTABLE, "/go=1.20", "did not start: Permission denied"),
        ("lemire", unbuilt("1.20"), "/go=1.20", "the linker was killed"),
        ("malloc", unbuilt(ONE_MALLOC), f"/runtime={ONE_MALLOC}", "the linker was killed"),
        ("libraries", unbuilt("zstd"), "Messages", "the linker was killed"),
    ],
)
def test_what_fails_is_skipped_with_a_reason_and_the_rest_is_measured(
    machine: FakeMachine, study, broken, lost, why
):
    vars(machine).update(broken)
    run = campaign.measure(planning.plan([STUDIES[study]], TINY))
    assert_only_lost(STUDIES[study], run, lost, why)


@pytest.mark.slow
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
from gccost.cases import jobs
from gccost.cases.cases import BUDGETS
from gccost.measuring import planning, sampler
from gccost.studies import STUDIES
plan = planning.plan([STUDIES["lemire"]], BUDGETS["tiny"], say=sys.exit)
assert not plan.missing, plan.missing
job = next(iter(plan.pool.values()))
folder = Path(sys.argv[1])
binary = plan.build(jobs.build(job), 7, folder, processes.run)
print(sampler.sample(job, binary, folder)[0].n)
"""
    alone = ["unshare", "--net", "--map-root-user"]
    if not processes.ask([*alone, "true"]):
        alone = []
    done = processes.run(
        [*alone, sys.executable, "-c", program, str(tmp_path)],
        cwd=paths.ROOT,
        env={**os.environ, "GOPROXY": "off", "PIP_NO_INDEX": "1"},
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
    def fail(studies):
        raise error

    monkeypatch.setattr(doctor, "examine", fail)
    done = gccost("doctor")
    assert done.exit_code == 1
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1


def test_a_closed_pipe_ends_a_command_silently(tools: FakeTools):
    with tools.start("doctor") as started:
        started.stdout.close()
        assert started.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("measure", "--budget=quik"), "quick, tiny, standard, thorough"),
        (("measure", "--only=lemur"), "lemire"),
        (("add", "nowhere"), "it is neither a folder nor a file"),
        (("add", "README.md"), "it is not an archive of a run"),
        (("add", "gccost"), "name a run, such as data/runs/"),
    ],
)
def test_an_invalid_argument_is_explained(arguments, said):
    done = gccost(*arguments)
    assert done.exit_code == 1
    assert said in done.stderr
