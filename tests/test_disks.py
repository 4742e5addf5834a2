"""A full or unwritable disk is reported with the fix, and existing data are kept."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
import recordings
from campaigns import assert_complete, gccost
from conftest import FakeMachine
from faketools import FakeTools, Reported

from gccost import files, paths
from gccost.errors import LEAST_ROOM, DiskFull, GccostError, failed_build
from gccost.run.runs import all_runs
from gccost.showing.report import write_report

pytestmark = pytest.mark.slow


def no_larger_than(kilobytes: int) -> tuple[str, ...]:
    """A command whose children cannot write a larger file, as if the disk were full."""
    return ("sh", "-c", f'ulimit -f {2 * kilobytes}; exec "$@"', "sh")


def not_writable(folder: Path) -> tuple[str, ...]:
    """A command whose children cannot write to a folder, not even as root."""
    folder.chmod(0o555)
    if os.geteuid() != 0:
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("root can write everywhere, and setpriv is missing, which could prevent that")
    return ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


def test_measuring_resumes_after_a_full_disk(tools: FakeTools):
    full = tools.gccost("measure", under=no_larger_than(10))
    assert full.returncode == 1
    path = tools.the_run().samples_txt
    assert f"gccost: {path}: cannot be written: File too large. To fix it: raise" in full.stderr
    before = path.read_bytes()
    assert before.endswith(b"\n")
    assert tools.gccost("measure").returncode == 0
    assert path.read_bytes().startswith(before)
    assert_complete(tools.the_run())


def test_a_finished_run_on_a_read_only_disk_gets_no_sitting_and_loses_nothing(reported: Reported):
    tools, _ = reported
    before = tools.the_run().samples_txt.read_bytes()
    under = not_writable(tools.runs)
    try:
        done = tools.gccost("measure", under=under)
    finally:
        tools.runs.chmod(0o755)
    assert done.returncode == 1
    assert "cannot be written: Permission denied. To fix it" in done.stderr
    assert tools.the_run().samples_txt.read_bytes() == before


def test_a_full_disk_keeps_the_previous_report(reported: Reported, tmp_path):
    tools, _ = reported
    report = shutil.copytree(tools.report, tmp_path / "report")
    before = {p: p.read_bytes() for p in report.rglob("*") if p.is_file()}
    notebooks = sorted((report / "notebooks").glob("*.ipynb"))
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40 << 10, usual[1]))
    try:
        with pytest.raises(GccostError, match=r"index.html: cannot be written: File too large"):
            write_report(notebooks, report, title="t", purpose="p", files={})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert {p: p.read_bytes() for p in report.rglob("*") if p.is_file()} == before


def test_a_full_disk_while_a_run_is_added_is_reported(tools: FakeTools, tmp_path):
    run, place = recordings.record(tmp_path), tmp_path / "reference"
    limited = {"under": no_larger_than(4), "GCCOST_REFERENCE": str(place)}
    done = tools.gccost("add", str(run.folder), **limited)
    assert done.returncode == 1
    assert "cannot be written: File too large. To fix it: raise the limit" in done.stderr
    assert "Traceback" not in done.stderr
    assert all_runs(place) == []


def test_a_failed_atomic_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "profiles" / "cpu.pb.gz"
    files.write_whole(path, b"one")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(GccostError, match="free some disk space"):
        files.write_whole(path, b"another")
    assert path.read_bytes() == b"one"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("~nobody-of-that-name/runs", "GCCOST_RUNS=~nobody-of-that-name/runs: "),
        ("/dev/null/runs", "/dev/null/runs: cannot be written: Not a directory"),
    ],
)
def test_an_invalid_runs_folder_is_reported(machine: FakeMachine, monkeypatch, place, said):
    monkeypatch.setenv("GCCOST_RUNS", place)
    done = gccost("measure", "--only=lemire")
    assert done.exit_code == 1
    assert f"gccost: {said}" in done.stderr
    assert "To fix it: " in done.stderr


# --- builds without space --------------------------------------------------------


@pytest.mark.parametrize(("free", "full"), [(LEAST_ROOM - 1, True), (LEAST_ROOM, False)])
def test_a_build_that_fails_on_a_nearly_full_disk_says_so(monkeypatch, tmp_path, free, full):
    usage = shutil.disk_usage(tmp_path)._replace(free=free << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    done = subprocess.CompletedProcess([], 1, "", "undefined: x")
    error = failed_build(done, "gosrc/cstr", "make doctor", [tmp_path / "none", tmp_path])
    assert isinstance(error, DiskFull) == full
    assert ("free some disk space" in str(error)) == full
    assert "the build failed:\nundefined: x" in str(error)


def test_a_build_on_a_full_disk_is_not_recorded_as_a_trouble(machine: FakeMachine):
    def fail(binary: Path) -> None:
        raise DiskFull("3 MiB are free", "gosrc/cstr")

    machine.spoil = fail
    done = gccost("measure", "--only=lemire")
    assert (done.exit_code, "3 MiB are free" in done.stderr) == (1, True)
    assert [run.manifest()["troubles"] for run in all_runs(paths.runs())] == [{}]
