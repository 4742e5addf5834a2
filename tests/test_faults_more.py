"""Faults that tests/test_faults.py leaves out: moments and answers that are hard to come by."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import recordings
import test_faults as faults
from conftest import FakeMachine
from faketools import AT_WORK, FakeTools, wait_for
from test_campaign import CASE, program
from test_precision import BEHAVIOUR
from test_setup import Clone
from test_toolchains import bare, fresh, script  # noqa: F401 - fixtures

from gccost import paths
from gccost.errors import GccostError
from gccost.judging.recording import Recording
from gccost.measuring import campaign, precision, runs, toolchains
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.samples import SampleFailed, run_count

PRECISION = EXPERIMENTS["precision"]

tools = faults.tools


class Killed(BaseException):
    """Stands for SIGKILL where the process must live on to be looked at."""


# --- signals ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "sent"), [("first builds", signal.SIGKILL), ("a write", signal.SIGTERM)]
)
def test_measuring_that_a_signal_ends_here_too_goes_on_from_there(
    tools: FakeTools, phase: str, sent: signal.Signals
) -> None:
    faults.test_measuring_that_a_signal_ends_goes_on_from_there(tools, phase, sent)


def test_a_download_that_ctrl_c_ends_leaves_no_process(tools: FakeTools) -> None:
    module = toolchains._module_version("1.20.14")
    shutil.rmtree(tools.folder / f"mod/golang.org/toolchain@{module}")
    tools.do(shell=tools.here(AT_WORK))  # what `go mod download` does here
    started = tools.start("measure")
    tools.wait_until_at_work(started)
    code, said = tools.stop(started, signal.SIGINT)
    faults.assert_no_process_stays(tools)
    assert code == 130
    assert said.splitlines()[-1] == faults.TO_GO_ON.format("measure")
    assert not runs.all_runs(tools.runs)


def test_precision_that_a_signal_ends_says_how_to_go_on(tools: FakeTools) -> None:
    tools.from_the(1, of="sample")
    started = tools.start("precision", "--seconds=0.1")
    tools.wait_until_at_work(started)
    code, said = tools.stop(started, signal.SIGINT)
    faults.assert_no_process_stays(tools)
    assert code == 130
    assert said.splitlines()[-1] == faults.TO_GO_ON.format("precision").removesuffix(" ONLY=lemire")
    assert {p.name for p in tools.runs.iterdir()} == {".lock", tools.the_run().name}


def killed_at(monkeypatch: pytest.MonkeyPatch, moment: str, number: int) -> None:
    """Let a kill come in the nth write to disk, before it is safe, or right after it."""
    owner, name = {"in": (os, "fsync"), "after": (Path, "replace")}[moment]
    real, left = getattr(owner, name), itertools.count(number - 1, -1)

    def write(*arguments: Any) -> Any:
        last = next(left) == 0
        if last and moment == "in":
            raise Killed
        done = real(*arguments)
        if last:
            raise Killed
        return done

    monkeypatch.setattr(owner, name, write)


@pytest.mark.parametrize(("moment", "number"), [("in", 1), ("in", 3), ("after", 1), ("after", 2)])
def test_a_run_that_was_killed_as_it_began_goes_on(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, moment: str, number: int
) -> None:
    with monkeypatch.context() as patch:
        killed_at(patch, moment, number)
        with pytest.raises(Killed):
            campaign.measure(faults.planned())
    with pytest.raises(KeyboardInterrupt):
        campaign.measure(faults.planned(), faults.after(9))
    (run,) = runs.all_runs(paths.runs())
    reading = run.reading()
    assert reading.errors == []
    assert len(reading.frame) >= 7


@pytest.mark.parametrize(("moment", "number"), [("in", 3), ("after", 2)])
def test_a_precision_run_that_was_killed_as_it_began_goes_on(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, moment: str, number: int
) -> None:
    machine.behaviour = BEHAVIOUR
    plan = campaign.plan([PRECISION], faults.TINY)
    with monkeypatch.context() as patch:
        killed_at(patch, moment, number)
        with pytest.raises(Killed):
            precision.measure(plan, faults.after(100), seconds=0.1)
    with pytest.raises(KeyboardInterrupt):
        precision.measure(plan, faults.after(2), seconds=0.1)
    (run,) = runs.all_runs(paths.runs())
    assert len(run.manifest()["done"]) == 2


def test_precision_that_goes_on_keeps_what_was_measured_meanwhile(machine: FakeMachine) -> None:
    machine.behaviour = BEHAVIOUR
    plan = campaign.plan([PRECISION], faults.TINY)
    with pytest.raises(KeyboardInterrupt):
        precision.measure(plan, faults.after(2), seconds=0.1)
    run = campaign.measure(faults.planned())
    unfinished = [line for line in run.samples.read_text().splitlines() if "/method=" in line][:1]
    run.append(unfinished)  # of a measurement during which it was killed
    before = run.samples.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        precision.measure(plan, faults.after(2), seconds=0.1)
    assert campaign.find(plan) == run
    assert run.samples.read_bytes().startswith(before.removesuffix(unfinished[0].encode() + b"\n"))
    assert run.samples.read_text().count(unfinished[0]) == 1
    assert campaign.finished(run, faults.planned())


# --- two at once --------------------------------------------------------------


def test_a_report_leaves_measuring_that_goes_on_alone(tools: FakeTools) -> None:
    tools.from_the(1, of="sample")
    first = tools.start("measure")
    tools.wait_until_at_work(first)
    second = tools.gccost("report")
    assert second.returncode == 1
    assert second.stderr.splitlines()[-1] == (
        f"gccost: {tools.runs}: another gccost is measuring here; this one leaves it alone. "
        "To fix it: wait until it is done, or stop it, and start again"
    )
    assert first.poll() is None
    tools.stop(first, signal.SIGTERM)


@pytest.fixture
def slow(tmp_path: Path) -> Clone:
    """A clone whose set-up is held up where it fetches, until `hold` is gone."""
    clone = Clone(tmp_path / "clone")
    python = clone.folder / "stand-in"
    hold = ': > reached; while [ -e hold ]; do sleep 0.05; done; exit "${SYNC_FAILS:-0}"'
    python.write_text(python.read_text().replace('exit "${SYNC_FAILS:-0}"', hold))
    (clone.folder / "hold").touch()
    return clone


def start(clone: Clone) -> subprocess.Popen[str]:
    """Start a set-up in a process group of its own; wait until it fetches, or has ended."""
    reached = clone.folder / "reached"
    reached.unlink(missing_ok=True)
    started = subprocess.Popen(
        [clone.folder / "scripts" / "setup"],
        env={**os.environ, "LOG": str(clone.log), "PYTHON": str(clone.folder / "stand-in")},
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert wait_for(lambda: reached.exists() or started.poll() is not None, seconds=20)
    return started


def test_a_second_set_up_at_once_says_so_and_leaves_the_first_alone(slow: Clone) -> None:
    first = start(slow)
    second = start(slow)
    fetches = second.poll() is None
    (slow.folder / "hold").unlink()
    said = second.communicate(timeout=20)[1]
    first.communicate(timeout=20)
    assert not fetches
    assert second.returncode == 1
    (line,) = said.splitlines()
    assert line.startswith("setup: another set-up fills .venv here")
    assert first.returncode == 0
    assert slow.setup().returncode == 0
    assert slow.asked == ""


@pytest.mark.parametrize("sent", faults.SIGNALS)
def test_a_set_up_that_a_signal_ended_is_not_taken_for_done(
    slow: Clone, sent: signal.Signals
) -> None:
    started = start(slow)
    os.killpg(started.pid, sent)
    started.communicate(timeout=20)
    assert started.returncode != 0
    (slow.folder / "hold").unlink()
    again = slow.setup()
    assert again.returncode == 0, again.stderr
    assert "pip sync" in slow.asked
    assert slow.setup().returncode == 0
    assert "pip sync" not in slow.asked


# --- disks and files ----------------------------------------------------------


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A disk that cannot be written."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=100k", "none", str(place)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a disk cannot be mounted here: it takes root")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize(
    ("variable", "command"), [("GCCOST_RUNS", "measure"), ("GCCOST_REPORT", "html")]
)
@pytest.mark.parametrize("below", ["", "a/folder"])
def test_a_read_only_disk_is_named_with_the_mend(
    machine: FakeMachine,
    monkeypatch: pytest.MonkeyPatch,
    read_only: Path,
    variable: str,
    command: str,
    below: str,
) -> None:
    monkeypatch.setenv("GCCOST_ONLY", "lemire")
    monkeypatch.setenv(variable, str(read_only / below))
    done = faults.gccost(command)
    assert done.exit_code == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith(f"gccost: {read_only / below}")
    assert "cannot be written: Read-only file system. To fix it: make it writable" in said
    assert variable in said


@pytest.mark.parametrize("garbage", [b"", b"\x00" * 100, b"\x1f\x8b\x08\x00 no gzip"])
def test_a_spoilt_profile_is_told_on_the_page_and_the_others_are_used(
    tmp_path: Path, garbage: bytes
) -> None:
    run = recordings.record(tmp_path, rounds=3)
    whole = Recording.load(faults.LEMIRE, run)
    path = min(run.folder.glob("profiles/*"))
    path.write_bytes(garbage)
    spoilt = Recording.load(faults.LEMIRE, run)
    (problem,) = spoilt.problems
    assert path.name in problem
    assert path.name in faults.page_of(spoilt)
    left = sum(len(of) for of in spoilt.cpu_profiles.values())
    assert left == sum(len(of) for of in whole.cpu_profiles.values()) - 1


# --- programs and compilers ---------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("kill -SEGV $$", "the program was ended by SIGSEGV"),
        ("exit 0", "the program printed 0 results, not "),
        ('line "$name"', "the program ran "),
        ("printf '\\377\\376\\000'; exit 3", "the program failed with exit code 3"),
    ],
    ids=["crashes", "prints nothing", "prints another name", "prints no text"],
)
def test_a_precision_measurement_whose_program_fails_is_made_anew(
    machine: FakeMachine, behaviour: str, why: str
) -> None:
    plan = campaign.plan([PRECISION], faults.TINY)
    machine.behaviour = BEHAVIOUR
    with pytest.raises(KeyboardInterrupt):
        precision.measure(plan, faults.after(1), seconds=0.1)
    (run,) = runs.all_runs(paths.runs())
    before = run.samples.read_bytes()
    machine.behaviour = behaviour
    with pytest.raises(GccostError, match=why) as failure:
        precision.measure(plan, faults.after(100), seconds=0.1)
    assert "Allocate" in failure.value.location
    assert run.samples.read_bytes() == before
    machine.behaviour = BEHAVIOUR
    with pytest.raises(KeyboardInterrupt):
        precision.measure(plan, faults.after(2), seconds=0.1)
    assert run.samples.read_bytes().startswith(before)
    assert len(run.manifest()["done"]) == 3


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("sleep 60", r"the program hung: it was ended after 0\.3 s"),
        ('line "$name"', "the program printed 1 results, not 2"),
        ('line "$name"; line "$name"; line "$name"', "the program printed 3 results, not 2"),
    ],
    ids=["hangs", "prints once", "prints thrice"],
)
def test_a_process_that_does_not_count_as_asked_is_no_sample(
    tmp_path: Path, behaviour: str, why: str
) -> None:
    with pytest.raises(SampleFailed, match=why) as failure:
        run_count(program(tmp_path, behaviour), [CASE], 2, tmp_path, limit=0.3)
    assert failure.value.location == CASE.name


@pytest.mark.parametrize(
    "answer", ["[]", "3", "{", '{"GOMODCACHE": 3}', r"\377\376", "go version go1.27.4"]
)
def test_a_go_that_answers_as_none_does_is_passed_over(
    bare: Path,  # noqa: F811
    fresh: None,  # noqa: F811
    answer: str,
) -> None:
    script(bare / "go", f"[ $1 = version ] && exit 1; printf '{answer}'")
    assert toolchains.find_driver() is None
    assert toolchains._module_cache() == Path(os.environ["GOMODCACHE"])


def test_a_go_that_says_no_text_is_passed_over(bare: Path, fresh: None) -> None:  # noqa: F811
    script(bare / "go", r"printf 'go version go1.27.4 \377\376'")
    assert toolchains.find("1.27.4") is None


def test_a_c_compiler_whose_version_is_no_utf_8_serves(bare: Path, fresh: None) -> None:  # noqa: F811
    script(bare / "cc", r"printf 'compil\351 1.0\n'")
    found = toolchains.find_c_compiler()
    assert found is not None
    found.version.encode()


@pytest.mark.parametrize("named", ['cc "', "'"])
def test_a_c_compiler_that_is_misnamed_is_passed_over(
    bare: Path,  # noqa: F811
    fresh: None,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    named: str,
) -> None:
    monkeypatch.setenv("CC", named)
    assert toolchains.find_c_compiler() is None
    script(bare / "cc", "echo cc 1.0")
    toolchains.find_c_compiler.cache_clear()
    found = toolchains.find_c_compiler()
    assert found is not None
    assert found.command == (str(bare / "cc"),)
