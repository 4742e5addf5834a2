"""What damaged files, full disks and a loopback that is down do: named, and the rest goes on."""

from __future__ import annotations

import errno
import gzip
import io
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import recordings
from conftest import FakeMachine
from faketools import FakeTools

from gccost import errors, files, places
from gccost.errors import DiskFull, GccostError
from gccost.judging.recording import Recording
from gccost.measuring import builds, campaign, gctrace, java, jdks, machine, profiles, runs
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.experiments.base import BUDGETS
from gccost.measuring.jdks import Javac
from gccost.measuring.toolchains import TODAY_GO, CCompiler, Toolchain
from gccost.showing import execute

LEMIRE = EXPERIMENTS["lemire"]
TINY = BUDGETS["tiny"]


# --- one byte -----------------------------------------------------------------------


def damaged(data: bytes) -> Iterator[bytes]:
    """Copies of a file, in each of which another byte is damaged."""
    for at in range(len(data)):
        yield data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def fault_of(same: Callable[[], bool]) -> GccostError | None:
    """The error that reading raises; a byte of the header may say nothing, then it is the same."""
    try:
        assert same()
    except GccostError as error:
        return error
    return None


def broken(path: Path) -> None:
    """Damage the byte that begins what is compressed, which makes it no deflate stream."""
    data = path.read_bytes()
    path.write_bytes(data[:10] + bytes([data[10] | 0b110]) + data[11:])


def test_no_damaged_byte_of_a_profile_is_anything_but_a_named_fault(tmp_path: Path) -> None:
    path = recordings.write_profile(tmp_path / "of-a-case.pb.gz", recordings.STACKS)
    whole, data = profiles.read(path), path.read_bytes()
    faults = 0
    for each in damaged(data):
        path.write_bytes(each)
        fault = fault_of(lambda: profiles.read(path) == whole)
        assert fault is None or fault.place == str(path)
        faults += fault is not None
    assert faults > len(data) - 10


def test_no_damaged_byte_of_a_gctrace_is_anything_but_a_named_fault(tmp_path: Path) -> None:
    path = tmp_path / "of-a-case.txt.gz"
    data = gzip.compress("\n".join([recordings.TRACE] * 3).encode(), mtime=0)
    path.write_bytes(data)
    whole = gctrace.read(path)
    assert len(whole.cycles) == 3
    faults = 0
    for each in damaged(data):
        path.write_bytes(each)
        fault = fault_of(lambda: gctrace.read(path) == whole)
        assert fault is None or fault.place == str(path)
        faults += fault is not None
    assert faults > len(data) - 10


def test_a_profile_with_a_damaged_byte_is_left_out_and_named(tmp_path: Path) -> None:
    run = recordings.record(tmp_path, rounds=3)
    whole = Recording.load(LEMIRE, run)
    path = min(run.folder.glob("profiles/*"))
    broken(path)
    spoilt = Recording.load(LEMIRE, run)
    (problem,) = spoilt.problems
    assert problem.startswith(f"{path}: this is not a CPU profile that Go wrote: Error -3")
    left = sum(len(of) for of in spoilt.cpu_profiles.values())
    assert left == sum(len(of) for of in whole.cpu_profiles.values()) - 1


# --- a full disk ----------------------------------------------------------------------

TOOLCHAIN = Toolchain(TODAY_GO, Path("/the/release"), "test")
COMPILER = CCompiler(("cc",), "cc 1.0", "test")


class Fails:
    """In place of running a command: it fails, and says this."""

    def __init__(self, said: str) -> None:
        self.said = said

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", self.said)


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Enough of a toolchain to build with, its cache in tmp_path."""
    environment = {"GOCACHE": str(tmp_path / "go-build"), "PATH": "/bin"}
    monkeypatch.setattr(Toolchain, "environment", lambda _: dict(environment))


@pytest.mark.usefixtures("compilers")
@pytest.mark.parametrize(
    ("said", "where"),
    [
        ("# runtime\ncompile: writing output: write $WORK/b9/_pkg_.a: {full}", "into"),
        ("unicode: write {tmp}/into/go-build32/b1/importcfg: {full}", "into"),
        ("go: unicode: write {tmp}/go-build/3f/3f00-d: {full}", "go-build"),
        ("cmp: write /elsewhere/a b/c: {full}", "/elsewhere/a b/c"),
    ],
)
def test_a_build_that_finds_no_room_is_a_full_disk(tmp_path: Path, said: str, where: str) -> None:
    into = tmp_path / "into"
    run = Fails(said.format(tmp=tmp_path, full="no space left on device"))
    with pytest.raises(DiskFull) as full:
        builds.build("cstr", TOOLCHAIN, COMPILER, 7, into, run)
    assert str(full.value) == (
        f"{tmp_path / where}: cannot be written: No space left on device (building gosrc/cstr "
        f"with Go {TODAY_GO}). To mend it: free some disk space and start again: what was "
        "measured is kept"
    )


@pytest.mark.usefixtures("compilers")
def test_where_no_path_is_printed_the_fullest_disk_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: usage._replace(free=5 if "go-build" in str(path) else 9)
    )
    run = Fails("/usr/bin/ld: final link failed: No space left on device")
    with pytest.raises(DiskFull) as full:
        builds.build("cstr", TOOLCHAIN, COMPILER, 7, tmp_path / "into", run)
    assert full.value.place == str(tmp_path / "go-build")


@pytest.mark.usefixtures("compilers")
def test_a_quota_that_is_used_up_is_the_same_with_its_own_mend(tmp_path: Path) -> None:
    run = Fails(f"open {tmp_path}/x: disk quota exceeded")
    with pytest.raises(DiskFull, match=r"Disk quota exceeded.*free some of your quota"):
        builds.build("cstr", TOOLCHAIN, COMPILER, 7, tmp_path, run)


@pytest.mark.usefixtures("compilers")
def test_another_fault_of_a_build_is_still_the_builds(tmp_path: Path) -> None:
    with pytest.raises(GccostError, match="the build failed:\nundefined: x") as failed:
        builds.build("cstr", TOOLCHAIN, COMPILER, 7, tmp_path, Fails("undefined: x"))
    assert not isinstance(failed.value, DiskFull)


@pytest.mark.usefixtures("compilers")
def test_a_runtime_that_finds_no_room_is_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(places, "CACHE", tmp_path / "cache")
    run = Fails(f"write {tmp_path}/cache/overlays/x/mheap.go: no space left on device")
    with pytest.raises(DiskFull) as full:
        builds.overlay(TOOLCHAIN, "index", run)
    assert full.value.place.startswith(f"{tmp_path}/cache/overlays/")


JAVAC_SAYS = """Handle.java:9: error: error while writing Handle: No space left on device
interface Handle extends AutoCloseable {
^
1 error"""


def test_classes_that_find_no_room_are_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(places, "CACHE", tmp_path)
    compiler = Javac(Path("/bin/javac"), "25")
    with pytest.raises(DiskFull, match=r"No space left on device \(building javasrc/finalization"):
        java.build("finalization", compiler, Fails(JAVAC_SAYS))
    with pytest.raises(GccostError, match="the build failed") as failed:
        java.build("finalization", compiler, Fails("error: cannot find symbol"))
    assert not isinstance(failed.value, DiskFull)


def test_jars_that_find_no_room_are_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def copytree(source: Path, into: Path) -> None:
        raise shutil.Error([(source, into, "[Errno 28] No space left on device: 'x.jar'")])

    monkeypatch.setattr(places, "CACHE", tmp_path)
    monkeypatch.setattr(jdks, "jmh", lambda: tmp_path)
    monkeypatch.setattr(shutil, "copytree", copytree)
    with pytest.raises(DiskFull, match="No space left on device"):
        java.build("jmh", Javac(Path("/bin/javac"), "25"), Fails(""))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_write_of_ours_that_finds_no_room_is_a_full_disk(tmp_path: Path, number: int) -> None:
    with pytest.raises(DiskFull, match="cannot be written"), files.writing(tmp_path):
        raise OSError(number, "no room")
    with pytest.raises(GccostError) as other, files.writing(tmp_path):
        raise PermissionError(errno.EACCES, "not allowed")
    assert not isinstance(other.value, DiskFull)


def test_what_fails_otherwise_is_no_full_disk() -> None:
    assert errors.no_room("there is plenty of space left", "building", []) is None


def test_a_disk_that_fills_up_in_a_build_ends_measuring_with_nothing_noted(
    tmp_path: Path,
) -> None:
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


# --- what a run says of its machine ----------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("allowed_cpus", "2", "allowed_cpus is not a whole number"),
        ("allowed_cpus", None, "allowed_cpus is not a whole number"),
        ("allowed_cpus", [2], "allowed_cpus is not a whole number"),
        ("cpu_quota", "1.5", "cpu_quota is not a number or null"),
        ("cpu_quota", {}, "cpu_quota is not a number or null"),
        ("memory", "much", "memory is not a whole number"),
        ("memory_limit", [], "memory_limit is not a whole number or null"),
    ],
)
def test_a_wrong_type_in_a_machine_is_named(
    tmp_path: Path, field: str, value: object, says: str
) -> None:
    run = recordings.record(tmp_path, rounds=2)
    path = run.folder / "run.json"
    manifest = json.loads(path.read_text())
    manifest["machine"] |= {field: value}
    path.write_text(json.dumps(manifest))
    with pytest.raises(GccostError) as wrong:
        Recording.load(LEMIRE, run)
    assert wrong.value.thing == f"this describes no run: {says}"
    assert wrong.value.place == str(path)
    assert wrong.value.mend
    (said,) = runs.passed_over(tmp_path)
    assert says in said


@pytest.mark.parametrize("quota", [None, 1.5, 2])
def test_a_quota_may_be_null_or_a_number(tmp_path: Path, quota: float | None) -> None:
    run = recordings.record(tmp_path, rounds=2)
    about = {"allowed_cpus": 4, "cpu_quota": quota, "memory": 2**30, "memory_limit": None}
    run.update(machine=about)
    assert Recording.load(LEMIRE, run).cpus == (4 if quota is None else int(quota))


def test_what_is_written_of_a_machine_can_be_read(fake: FakeMachine) -> None:
    run = campaign.begin(campaign.plan([LEMIRE], TINY))
    described = run.manifest()["machine"]
    assert {"allowed_cpus", "cpu_quota", "memory", "memory_limit", "caches"} <= set(described)


@pytest.fixture
def fake(request: pytest.FixtureRequest) -> FakeMachine:
    """conftest's machine, whose name here is the module's."""
    found: FakeMachine = request.getfixturevalue("machine")
    return found


# --- a kernel -------------------------------------------------------------------------


def kernel_failed() -> str:
    error = RuntimeError("Kernel didn't respond")
    return str(execute._kernel_failed(Path("a.ipynb"), 0, error, None, io.StringIO()))


def test_a_kernel_that_cannot_be_talked_to_is_told_from_one_without_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "see that memory and disk are free" in kernel_failed()

    def refuse(*_: object, **__: object) -> socket.socket:
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    monkeypatch.setattr(socket, "create_server", refuse)
    said = kernel_failed()
    assert "the loopback interface is down" in said
    assert "ip link set lo up" in said
    assert "memory and disk" not in said


def test_without_a_file_to_spare_the_loopback_is_not_blamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "create_server", refuse)
    assert "see that memory and disk are free" in kernel_failed()


NOTEBOOK = """
import sys
from pathlib import Path
import nbformat
from gccost.errors import GccostError
from gccost.showing.execute import execute
path = Path(sys.argv[1])
nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")]), path)
try:
    execute(path, path, mode="replay", environment={})
except GccostError as error:
    print(error)
"""


def test_where_the_loopback_is_down_a_notebook_says_so_at_once(tmp_path: Path) -> None:
    apart = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a network of its own cannot be had here")
    command = [*apart, sys.executable, "-c", NOTEBOOK, str(tmp_path / "one.ipynb")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=170)
    assert done.stdout.startswith("one.ipynb: the kernel cannot start. To mend it: "), done.stderr
    assert "the loopback interface is down" in done.stdout


# --- the processor ----------------------------------------------------------------------


def about(monkeypatch: pytest.MonkeyPatch, read: dict[str, str], lscpu: str = "") -> dict[str, Any]:
    """The machine described by these files, and by what lscpu prints."""
    monkeypatch.setattr(machine, "_read", lambda path: read.get(str(path), ""))
    monkeypatch.setattr(
        machine, "_say", lambda *command: lscpu if command == ("lscpu", "-B", "-J") else ""
    )
    indices = sorted({str(Path(name).parent) for name in read if "/cache/index" in name})
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [Path(each) for each in indices])
    return machine.describe()


CPUINFO = """processor : 0
cpu family : 26
model : 2
model name : AMD EPYC
stepping : 1

processor : 1
cpu family : 27
"""


def test_what_tells_clouds_processors_apart_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    index = "/sys/devices/system/cpu/cpu0/cache/index"
    files = {"/proc/cpuinfo": CPUINFO}
    for i, (level, kind, size) in enumerate(
        [
            ("1", "Data", "48K"),
            ("1", "Instruction", "32K"),
            ("2", "Unified", "2048K"),
            ("3", "Unified", "32M"),
        ]
    ):
        files |= {f"{index}{i}/level": level, f"{index}{i}/type": kind, f"{index}{i}/size": size}
    found = about(monkeypatch, files)
    assert [found[f"cpu_{name}"] for name in ("family", "model", "stepping")] == [26, 2, 1]
    assert found["caches"] == {"L1d": 49152, "L1i": 32768, "L2": 2097152, "L3": 33554432}


def test_caches_that_the_system_does_not_list_are_asked_of_lscpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = {
        "lscpu": [
            {"field": "Model name:", "data": "AMD EPYC"},
            {
                "field": "Caches (sum of all):",
                "data": None,
                "children": [
                    {"field": "L1d cache:", "data": "98304 (2 instances)"},
                    {"field": "L2 cache:", "data": "1048576"},
                    {"field": "L3 cache:", "data": "33554432 (1 instance)"},
                    {"field": "L4 cache:", "data": "unknown"},
                ],
            },
        ]
    }
    found = about(monkeypatch, {}, json.dumps(said))
    assert found["caches"] == {"L1d": 49152, "L2": 1048576, "L3": 33554432}


@pytest.mark.parametrize("lscpu", ["", "no JSON", "[]", '{"lscpu": [1]}', '{"lscpu": null}', "3"])
def test_a_processor_that_tells_nothing_is_still_described(
    monkeypatch: pytest.MonkeyPatch, lscpu: str
) -> None:
    found = about(monkeypatch, {"/proc/cpuinfo": "model : POWER9"}, lscpu)
    assert found["cpu_family"] is None
    assert found["cpu_model"] is None
    assert found["cpu_stepping"] is None
    assert found["caches"] == {}


def test_processors_of_one_name_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    described = machine.describe()
    for other in (
        {"cpu_family": 1},
        {"cpu_model": -1},
        {"cpu_stepping": -1},
        {"caches": {"L3": 1}},
    ):
        assert machine.fingerprint({**described, **other}) != machine.fingerprint(described)


# --- the image -------------------------------------------------------------------------


def test_the_image_is_made_from_one_base_that_can_be_replaced(tmp_path: Path) -> None:
    """docker-test names the digest by default, and a stand-in where it is asked to."""
    asked = tmp_path / "asked"
    docker = tmp_path / "docker"
    docker.write_text(
        f'#!/bin/sh\necho "$@" >> {asked}\n[ "$1 $2" != "image inspect" ] || exit 1\n'
        '[ "$1" != pull ] || exit 1\n'
    )
    docker.chmod(0o755)
    for more, base in (
        ({}, r"debian:trixie-20260918-slim@sha256:a99cfc517144bc59"),
        ({"GCCOST_DOCKER_BASE": "stand-in"}, "stand-in"),
    ):
        asked.unlink(missing_ok=True)
        done = subprocess.run(
            [places.ROOT / "scripts" / "docker-test"],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 77
        assert f"the base image {base}" in done.stderr
        assert f"pull --quiet {base}" in asked.read_text()
