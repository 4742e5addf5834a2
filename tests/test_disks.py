"""A full or unwritable disk is reported with the fix, and existing data are kept."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from campaigns import assert_complete, gccost
from conftest import FakeMachine
from faketools import FakeTools, Reported

from gccost import files, paths
from gccost.errors import DiskFull, GccostError
from gccost.measuring import builds, java, jdks
from gccost.measuring.jdks import Javac
from gccost.measuring.toolchains import TODAY_GO, CCompiler, Toolchain


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


def test_measuring_resumes_after_a_full_disk(tools: FakeTools) -> None:
    full = tools.gccost("measure", under=no_larger_than(10))
    assert full.returncode == 1
    said = full.stderr.splitlines()[-1]
    path = tools.the_run().samples
    assert said.startswith(f"gccost: {path}: cannot be written: File too large. To fix it: raise")
    before = path.read_bytes()
    assert before.endswith(b"\n")
    assert tools.gccost("measure").returncode == 0
    assert path.read_bytes().startswith(before)
    assert_complete(tools.the_run())


def test_an_unwritable_disk_is_reported_with_the_fix(tools: FakeTools) -> None:
    tools.runs.mkdir()
    done = tools.gccost("measure", under=not_writable(tools.runs))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"gccost: {tools.runs}: cannot be written: Permission denied. To fix it")


def test_a_finished_run_can_be_used_on_a_read_only_disk(reported: Reported) -> None:
    tools, _ = reported
    under = not_writable(tools.runs)
    try:
        done = tools.gccost("measure", under=under)
    finally:
        tools.runs.chmod(0o755)
    assert done.returncode == 0, done.stderr


def test_a_full_disk_keeps_the_previous_report(reported: Reported, tmp_path: Path) -> None:
    tools, _ = reported
    report = shutil.copytree(tools.report, tmp_path / "report")
    before = {p: p.read_bytes() for p in report.rglob("*") if p.is_file()}
    done = tools.gccost("html", under=no_larger_than(40), GCCOST_REPORT=str(report))
    assert done.returncode == 1
    assert f"{report}/index.html: cannot be written: File too large. To fix it" in done.stderr
    assert "Traceback" not in done.stderr
    assert {p: p.read_bytes() for p in report.rglob("*") if p.is_file()} == before


def test_a_failed_atomic_write_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        ("/dev/null", "/dev/null: cannot be written: "),
        ("/dev/null/runs", "/dev/null/runs: cannot be written: Not a directory"),
    ],
)
def test_an_invalid_runs_folder_is_reported(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, place: str, said: str
) -> None:
    monkeypatch.setenv("GCCOST_RUNS", place)
    done = gccost("measure", "--only=lemire")
    assert done.exit_code == 1
    assert f"gccost: {said}" in done.stderr
    assert "To fix it: " in done.stderr


# --- builds without space --------------------------------------------------------


TOOLCHAIN = Toolchain(TODAY_GO, Path("/the/release"), "test")
COMPILER = CCompiler(("cc",), "cc 1.0", "test")
FULL = "no space left on device"


class Fails:
    """A fake `run` that fails with this output."""

    def __init__(self, said: str) -> None:
        self.said = said

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", self.said)


def built(said: str, folder: Path) -> GccostError:
    """The error of a Go build that fails with this output."""
    with pytest.raises(GccostError) as failed:
        builds.build("cstr", TOOLCHAIN, COMPILER, 7, folder / "into", Fails(said))
    return failed.value


@pytest.fixture(autouse=True)
def caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A toolchain environment sufficient for building, with its caches in tmp_path."""
    environment = {"GOCACHE": str(tmp_path / "go-build"), "PATH": "/bin"}
    monkeypatch.setattr(Toolchain, "environment", lambda _: dict(environment))
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ("# runtime\ncompile: writing output: write $WORK/b9/_pkg_.a: {full}", "into"),
        ("unicode: write {tmp}/into/go-build32/b1/importcfg: {full}", "into"),
        ("go: unicode: write {tmp}/go-build/3f/3f00-d: {full}", "go-build"),
        ("cmp: write /elsewhere/a b/c: {full}", "/elsewhere/a b/c"),
        # No path is printed: the folder on the fullest disk.
        ("/usr/bin/ld: final link failed: {full}", "go-build"),
    ],
)
def test_a_build_without_space_reports_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, where: str
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: usage._replace(free=5 if "go-build" in str(path) else 9)
    )
    full = built(said.format(tmp=tmp_path, full=FULL), tmp_path)
    assert isinstance(full, DiskFull)
    assert full.location == str(tmp_path / where)
    assert f"building gosrc/cstr with Go {TODAY_GO}" in full.message
    assert "free some disk space" in full.hint


def test_only_a_full_disk_or_quota_is_reported_as_one(tmp_path: Path) -> None:
    quota = built(f"open {tmp_path}/x: disk quota exceeded", tmp_path)
    assert isinstance(quota, DiskFull)
    assert "free some of your quota" in quota.hint
    other = built("undefined: x", tmp_path)
    assert not isinstance(other, DiskFull)
    assert "undefined: x" in other.message


def test_a_runtime_overlay_without_space_reports_a_full_disk(tmp_path: Path) -> None:
    run = Fails(f"write {tmp_path}/cache/overlays/x/mheap.go: {FULL}")
    with pytest.raises(DiskFull) as full:
        builds.overlay(TOOLCHAIN, "index", run)
    assert full.value.location.startswith(f"{tmp_path}/cache/overlays/")


def test_java_without_space_reports_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = Javac(Path("/bin/javac"), "25")
    said = f"Handle.java:9: error: error while writing Handle: {FULL}\ninterface Handle\n^"
    with pytest.raises(DiskFull, match="building javasrc/finalization"):
        java.build("finalization", compiler, Fails(said))
    with pytest.raises(GccostError, match="the build failed") as failed:
        java.build("finalization", compiler, Fails("error: cannot find symbol"))
    assert not isinstance(failed.value, DiskFull)

    def copytree(source: Path, into: Path) -> None:
        raise shutil.Error([(source, into, f"[Errno 28] {FULL}: 'x.jar'")])

    monkeypatch.setattr(jdks, "jmh", lambda: tmp_path)
    monkeypatch.setattr(shutil, "copytree", copytree)
    with pytest.raises(DiskFull):
        java.build("jmh", compiler, Fails(""))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_write_without_space_reports_a_full_disk(tmp_path: Path, number: int) -> None:
    with pytest.raises(DiskFull, match="cannot be written"), files.writing(tmp_path):
        raise OSError(number, "no room")
    with pytest.raises(GccostError) as other, files.writing(tmp_path):
        raise PermissionError(errno.EACCES, "not allowed")
    assert not isinstance(other.value, DiskFull)


def test_a_full_disk_in_a_build_is_not_recorded_as_a_trouble(tmp_path: Path) -> None:
    tools = FakeTools(tmp_path)
    full = 'echo "write $GOTMPDIR/b1/x.a: no space left on device" >&2; exit 1'
    tools.from_the(4, of="build", what=full)
    done = tools.gccost("measure")
    assert done.returncode == 1
    assert "cannot be written: No space left on device (building gosrc/cstr" in done.stderr
    assert "Traceback" not in done.stderr
    assert tools.the_run().manifest()["troubles"] == {}
    tools.do()
    assert tools.gccost("measure").returncode == 0
    assert tools.the_run().manifest()["troubles"] == {}
