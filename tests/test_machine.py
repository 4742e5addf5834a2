"""Machine descriptions are accurate, comparable and safe to publish."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest

from gccost import paths
from gccost.measuring import machine
from gccost.run.manifest import COMPARABLE, fingerprint
from gccost.showing import doctor

QUIET = {
    "allowed_cpus": 8,
    "cpu_quota": None,
    "smt": False,
    "governor": "performance",
    "virtualisation": "",
    "load": [0.2, 0.1, 0.1],
    "memory_available": 30 * 2**30,
    "memory_limit": None,
    "swap_used": 0,
    "dirty": False,
}


def test_a_description_is_json_without_paths_or_the_host_name():
    described = machine.describe()
    text = json.dumps(described)
    assert json.loads(text) == described
    assert str(Path.home()) not in text
    assert str(paths.ROOT) not in text
    if len(platform.node()) > 6:
        assert platform.node() not in text


@pytest.mark.parametrize("name", [*COMPARABLE, "kernel", "load", "commit"])
def test_only_comparable_fields_change_the_fingerprint(name):
    same = fingerprint({**QUIET, name: "other"}) == fingerprint(QUIET)
    assert same == (name not in COMPARABLE)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"virtualisation": "kvm"}, "virtual machine (kvm)"),
        ({"cpu_quota": 1.5}, "quota of 1.5 CPUs"),
        ({"memory_limit": 2**30}, "Only 1.0 GiB"),
        ({"swap_used": 2**30}, "1.0 GiB are swapped out"),
        ({"dirty": True}, "uncommitted"),
    ],
    ids=str,
)
def test_each_problem_gives_one_warning(change, says):
    warnings = machine.warnings({**QUIET, **change})
    assert len(warnings) == bool(change)
    assert says in "".join(warnings)


@pytest.mark.parametrize(("load", "notes"), [(0.2, 0), (4.1, 1)])
def test_the_doctor_says_if_the_cpus_are_in_use(monkeypatch, load, notes):
    monkeypatch.setattr(machine, "describe", lambda: QUIET | {"load": [load, 0, 0]})
    found = [each.detail for each in doctor.examine(()) if each.what == "Machine"]
    assert len(found) == notes
    assert ("in use during the last minute (load 4.1, 8 CPUs)" in "".join(found)) == bool(notes)


@pytest.fixture
def about(monkeypatch):
    """A function that describes a machine with these files, whose commands say nothing."""

    def about(files: dict[str, str]) -> dict[str, object]:
        monkeypatch.setattr(machine, "_read", lambda path: files.get(str(path), ""))
        monkeypatch.setattr(machine, "_output", lambda *asked: "")
        indices = sorted({str(Path(name).parent) for name in files if "/cache/index" in name})
        monkeypatch.setattr(Path, "glob", lambda self, pattern: [Path(each) for each in indices])
        return machine.describe()

    return about


# --- container limits ---------------------------------------------------------------


OF_PARENTS = {
    "/proc/self/cgroup": "0::/outer/inner",
    "/sys/fs/cgroup/outer/inner/cpu.max": "max 100000",
    "/sys/fs/cgroup/outer/cpu.max": "75000 50000",
    "/sys/fs/cgroup/cpu.max": "400000 100000",
    "/sys/fs/cgroup/outer/inner/memory.max": "max",
    "/sys/fs/cgroup/memory.max": "1073741824",
}
VERSION_1 = {
    "/proc/self/cgroup": "5:memory:/m\n4:cpu,cpuacct:/c\n0::/",
    "/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us": "50000",
    "/sys/fs/cgroup/cpu/c/cpu.cfs_period_us": "100000",
    "/sys/fs/cgroup/memory/m/memory.limit_in_bytes": "1073741824",
}
NO_LIMIT = {
    "/proc/self/cgroup": "0::/",
    "/sys/fs/cgroup/memory.max": "9223372036854771712",
    "/sys/fs/cgroup/cpu.max": "-1 100000",
}


@pytest.mark.parametrize(
    ("files", "quota", "limit"),
    [(OF_PARENTS, 1.5, 2**30), (VERSION_1, 0.5, 2**30), (NO_LIMIT, None, None)],
)
def test_limits_of_a_container_are_described(about, files, quota, limit):
    described = about(files)
    assert (described["cpu_quota"], described["memory_limit"]) == (quota, limit)
    assert not limit or machine.memory_for_a_sample(described) == limit // 2


# --- the clone --------------------------------------------------------------------


def test_the_commit_is_that_of_the_clone_and_of_no_other_repository(monkeypatch, tmp_path):
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        return subprocess.check_output(["git", "-C", tmp_path, *who, *arguments], text=True).strip()

    monkeypatch.setattr(paths, "ROOT", tmp_path)
    git("init", "--quiet")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "--quiet", "--no-verify", "--message", "one")
    (tmp_path / "untracked").touch()
    assert machine._commit() == (git("rev-parse", "HEAD"), False)
    (tmp_path / "file").write_text("two")
    assert machine._commit() == (git("rev-parse", "HEAD"), True)
    monkeypatch.setattr(paths, "ROOT", tmp_path / "vendored")
    (tmp_path / "vendored").mkdir()
    assert machine._commit() == ("", False)


# --- the processor ----------------------------------------------------------------------


CPUINFO = """processor : 0
cpu family : 26
model : 2
stepping : 1

processor : 1
cpu family : 27
"""


def test_processor_model_and_caches_are_described(about):
    index = "/sys/devices/system/cpu/cpu0/cache/index"
    files = {"/proc/cpuinfo": CPUINFO}
    caches = ("1 Data 48K", "1 Instruction 32K", "2 Unified 2048K", "3 Unified 32M")
    for i, cache in enumerate(caches):
        for name, value in zip(("level", "type", "size"), cache.split(), strict=True):
            files[f"{index}{i}/{name}"] = value
    described = about(files)
    assert [described[f"cpu_{name}"] for name in ("family", "model", "stepping")] == [26, 2, 1]
    assert described["caches"] == {"L1d": 49152, "L1i": 32768, "L2": 2097152, "L3": 33554432}


def test_a_machine_that_says_nothing_usable_is_described(about):
    described = about({"/proc/cpuinfo": "model : POWER9"})
    unknown = {"cpu_family", "cpu_model", "cpu_stepping"}
    assert {described[name] for name in unknown} == {None}
    assert (described["caches"], described["governor"]) == ({}, "")
    for each in (described, {}):  # {}: an old description lacks fields
        assert fingerprint(each)
        machine.warnings(each)
