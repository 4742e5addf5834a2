"""Machine descriptions are accurate, comparable and safe to publish."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gccost import paths
from gccost.measuring import machine

QUIET = {
    "cpu": "Some CPU",
    "cpu_family": 6,
    "cpu_model": 106,
    "cpu_stepping": 6,
    "caches": {"L1d": 49152, "L2": 2097152, "L3": 33554432},
    "architecture": "x86_64",
    "logical_cpus": 8,
    "allowed_cpus": 8,
    "cpu_quota": None,
    "smt": False,
    "governor": "performance",
    "virtualisation": "",
    "system": "Linux",
    "load": [0.2, 0.1, 0.1],
    "memory": 32 * 2**30,
    "memory_available": 30 * 2**30,
    "memory_limit": None,
    "swap_used": 0,
    "kernel": "6.1.0-13",
    "dirty": False,
}


def test_a_description_survives_a_json_round_trip():
    described = machine.describe()
    assert json.loads(json.dumps(described)) == described


def test_a_description_contains_no_paths_or_host_name():
    text = json.dumps(machine.describe())
    assert str(Path.home()) not in text
    assert str(paths.ROOT) not in text
    if len(platform.node()) > 6:
        assert platform.node() not in text


def test_describe_works_if_nothing_can_be_read(monkeypatch):
    monkeypatch.setattr(machine, "_read", lambda _: "")
    monkeypatch.setattr(machine, "_output", lambda *_: "")
    described = machine.describe()
    assert described["governor"] == ""
    assert described["turbo"] is None
    assert machine.fingerprint(described)
    machine.warnings(described)


# --- comparable machines -------------------------------------------------------


@pytest.mark.parametrize(
    "name", [*machine.COMPARABLE, "kernel", "load", "memory_available", "commit"]
)
def test_only_comparable_fields_change_the_fingerprint(name):
    same = machine.fingerprint({**QUIET, name: "other"}) == machine.fingerprint(QUIET)
    assert same == (name not in machine.COMPARABLE)


# --- warnings -------------------------------------------------------------------


def test_a_quiet_machine_gives_no_warning():
    assert machine.warnings(QUIET) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"virtualisation": "kvm"}, "virtual machine (kvm)"),
        ({"allowed_cpus": 2}, "Only 2 CPUs may be used"),
        ({"allowed_cpus": 1}, "Only 1 CPU may be used"),
        ({"cpu_quota": 1.5}, "quota of 1.5 CPUs"),
        ({"load": [4.1, 0, 0]}, "busy before measuring began (load 4.1"),
        ({"governor": "powersave"}, "“powersave”"),
        ({"smt": True}, "SMT"),
        ({"memory_available": 2**30}, "Only 1.0 GiB"),
        ({"memory_limit": 2**30}, "Only 1.0 GiB"),
        ({"swap_used": 2**30}, "1.0 GiB are swapped out"),
        ({"dirty": True}, "uncommitted"),
    ],
)
def test_each_problem_gives_one_warning(change, says):
    (warning,) = machine.warnings({**QUIET, **change})
    assert says in warning
    assert warning.endswith(".")


def test_fields_missing_from_old_descriptions_are_tolerated():
    machine.warnings({})
    machine.fingerprint({})


# --- container limits ---------------------------------------------------------------


OF_PARENTS = {
    "/proc/self/cgroup": "0::/outer/inner",
    "/sys/fs/cgroup/outer/inner/cpu.max": "max 100000",
    "/sys/fs/cgroup/outer/cpu.max": "150000 100000",
    "/sys/fs/cgroup/outer/inner/memory.max": "max",
    "/sys/fs/cgroup/memory.max": "1073741824",
}
VERSION_1 = {
    "/proc/self/cgroup": "5:memory:/m\n4:cpu,cpuacct:/c\n0::/",
    "/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us": "50000",
    "/sys/fs/cgroup/cpu/c/cpu.cfs_period_us": "100000",
    "/sys/fs/cgroup/memory/m/memory.limit_in_bytes": "1073741824",
}
NO_LIMIT = {"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/memory.max": "9223372036854771712"}


@pytest.mark.parametrize(
    ("files", "quota", "limit"),
    [
        (OF_PARENTS, 1.5, 2**30),
        (VERSION_1, 0.5, 2**30),
        (NO_LIMIT | {"/sys/fs/cgroup/cpu.max": "max 100000"}, None, None),
        (NO_LIMIT | {"/sys/fs/cgroup/cpu.max": "-1 100000"}, None, None),
        (NO_LIMIT, None, None),
    ],
)
def test_limits_of_a_container_are_described(monkeypatch, files, quota, limit):
    described = about(monkeypatch, files)
    assert (described["cpu_quota"], described["memory_limit"]) == (quota, limit)


# --- the clone --------------------------------------------------------------------


def test_the_commit_is_that_of_the_clone_and_of_no_other_repository(monkeypatch, tmp_path):
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", "-C", tmp_path, *who, *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    def described() -> tuple[str, bool]:
        found = machine.describe()
        return found["commit"], found["dirty"]

    monkeypatch.setattr(paths, "ROOT", tmp_path)
    git("init", "--quiet")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "--quiet", "--no-verify", "--message", "one")
    (tmp_path / "untracked").touch()
    assert described() == (git("rev-parse", "HEAD"), False)
    (tmp_path / "file").write_text("two")
    assert described() == (git("rev-parse", "HEAD"), True)
    monkeypatch.setattr(paths, "ROOT", tmp_path / "vendored")
    (tmp_path / "vendored").mkdir()
    assert described() == ("", False)


# --- the processor ----------------------------------------------------------------------


def about(monkeypatch: pytest.MonkeyPatch, read: dict[str, str], lscpu: str = "") -> dict[str, Any]:
    """Describe a machine with these files and this output of lscpu."""
    monkeypatch.setattr(machine, "_read", lambda path: read.get(str(path), ""))
    monkeypatch.setattr(
        machine, "_output", lambda *command: lscpu if command == ("lscpu", "-B", "-J") else ""
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


def test_processor_model_and_caches_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    index = "/sys/devices/system/cpu/cpu0/cache/index"
    files = {"/proc/cpuinfo": CPUINFO}
    caches = ("1 Data 48K", "1 Instruction 32K", "2 Unified 2048K", "3 Unified 32M")
    for i, cache in enumerate(caches):
        for name, value in zip(("level", "type", "size"), cache.split(), strict=True):
            files[f"{index}{i}/{name}"] = value
    found = about(monkeypatch, files)
    assert [found[f"cpu_{name}"] for name in ("family", "model", "stepping")] == [26, 2, 1]
    assert found["caches"] == {"L1d": 49152, "L1i": 32768, "L2": 2097152, "L3": 33554432}


def test_lscpu_supplies_caches_missing_from_sysfs(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_describe_tolerates_unusable_lscpu_output(
    monkeypatch: pytest.MonkeyPatch, lscpu: str
) -> None:
    found = about(monkeypatch, {"/proc/cpuinfo": "model : POWER9"}, lscpu)
    assert found["cpu_family"] is None
    assert found["cpu_model"] is None
    assert found["cpu_stepping"] is None
    assert found["caches"] == {}
