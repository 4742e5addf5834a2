"""A campaign on many machines: each gets a complete run, and none that lies is measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner
from conftest import FakeMachine, due
from faketools import wait_for

from gccost import cli, paths
from gccost.judging import reference
from gccost.measuring import fleet, pack, packed
from gccost.measuring.campaign import Questions, finished, samples_of
from gccost.measuring.cases import BUDGETS
from gccost.measuring.runs import Run, all_runs
from gccost.studies import STUDIES

SMALL = replace(STUDIES["lemire"], cases=STUDIES["lemire"].cases[:3])
# Starts the sampler without installed packages, on a machine with the host name, boot and
# CPUs that stand in files of the worker's folder.
PYTHON = f"""#!/bin/sh
case $1 in -c) exec {sys.executable} "$@" ;; esac
exec {sys.executable} -sPBS -c '
import os, pathlib, platform, sys
sys.path.insert(0, os.environ["PYTHONPATH"])
from gccost.measuring import machine, packed
here = next(p for p in pathlib.Path(sys.path[0]).parents if (p / "host").exists())
described = machine.describe()
machine.describe = lambda: described | {{"allowed_cpus": int((here / "cpus").read_text())}}
platform.node = (here / "host").read_text
packed._BOOT = here / "boot"
sys.exit(packed.serve())'
"""
DASK = """
import sys
sys.modules["gccost"] = None  # cannot be imported
from dask.cli import run_cli
run_cli()
"""
BEHAVIOUR = """[ -z "$profile" ] || : | gzip > "$profile"
[ ! -e "$TMPDIR/hang" ] || { : > "$TMPDIR/reached"; exec sleep 600; }
line "$name"
"""


@pytest.fixture
def archive(machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pack of three cases whose programs are scripts."""
    build = machine.build
    machine.behaviour = BEHAVIOUR
    monkeypatch.setattr(
        "gccost.measuring.builds.build",
        lambda *given, environment, ldflags, **more: build(*given, **more),
    )
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    monkeypatch.setenv("PYTHON", str(python))
    monkeypatch.setattr(fleet, "POLL_SECONDS", 0.05)
    made = tmp_path / "gccost-pack.tar.xz"
    pack.make([SMALL], BUDGETS["tiny"], Questions(), [], made)
    return made


def place(folder: Path, host: str = "", boot: str = "", cpus: int = 2) -> Path:
    """A worker's folder, with what its machine says of itself."""
    folder.mkdir(exist_ok=True)
    for name, value in (("host", host or folder.name), ("boot", boot or folder.name)):
        (folder / name).write_text(value)
    (folder / "cpus").write_text(str(cpus))
    return folder


def run_of(machine: str) -> Run:
    (run,) = all_runs(paths.runs() / "machines" / machine)
    return run


def begun(machine: str) -> bool:
    found = all_runs(paths.runs() / "machines" / machine)
    return any(run.samples.exists() and run.reading().samples for run in found)


def check_complete(archive: Path, machine: str) -> None:
    """The run holds the samples of every case and round, each of them once."""
    run = run_of(machine)
    plan = packed.plan(fleet.read(archive.read_bytes())[0], run.manifest()["machine"])
    assert finished(run, plan)
    assert not run.reading().errors
    taken = Counter((s.full_name, s.metrics["round"]) for s in samples_of(run, plan))
    assert taken == {(name, n): k for n in (1, 2) for name, k in due(plan, n).items()}


# --- A scheduler and workers as processes of their own ------------------------------------


@dataclass
class Cluster:
    """A scheduler on loopback, and workers that have no gccost."""

    folder: Path
    stack: ExitStack = field(default_factory=ExitStack)
    port: str = "0"

    def start(self, *arguments: str, folder: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", DASK, *arguments, "--no-dashboard"]
        environment = {**os.environ, "TMPDIR": str(folder)}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, cwd=folder, env=environment, stderr=log)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def schedule(self) -> subprocess.Popen[bytes]:
        folder, file = self.folder, self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        started = self.start(
            *("scheduler", "--host", "127.0.0.1", "--port", self.port),
            *("--scheduler-file", str(file)),
            folder=folder,
        )
        assert wait_for(file.exists, seconds=60), (folder / "log").read_text()
        self.address = str(fleet.json.loads(file.read_text())["address"])
        self.port = self.address.rpartition(":")[2]
        return started

    def work(self, name: str, bench: str = "bench=1") -> subprocess.Popen[bytes]:
        folder = place(self.folder / name)
        options = ("--no-nanny", "--nthreads", "1", "--local-directory", str(folder))
        return self.start("worker", self.address, *options, "--resources", bench, folder=folder)


def is_sample(process: psutil.Process, folder: Path) -> bool:
    environment = process.info["environ"] or {}
    return process.name() == "sleep" and environment.get("TMPDIR") == str(folder)


@pytest.fixture
def cluster(tmp_path: Path, archive: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    with made.stack:
        yield made


def campaign(cluster: Cluster, archive: Path, *more: str) -> Any:
    given = ["campaign", str(archive), "--scheduler", cluster.address, "--wait", "60", *more]
    return CliRunner().invoke(cli.main, given)


def test_a_killed_worker_costs_the_sample_it_was_at(cluster: Cluster, archive: Path) -> None:
    cluster.schedule()
    workers = {name: cluster.work(name) for name in ("node1", "node2", "node3")}

    def kill() -> None:
        folder = cluster.folder / "node2"
        wait_for(lambda: begun("node2"), seconds=60)
        (folder / "hang").touch()
        wait_for((folder / "reached").exists, seconds=60)
        hung = [p for p in psutil.process_iter(["environ"]) if is_sample(p, folder)]
        kept.append(len(run_of("node2").reading().samples))
        workers["node2"].kill()
        assert hung
        psutil.wait_procs(hung, timeout=20)  # no sample goes on without its worker
        orphans.extend(each for each in hung if each.is_running())
        (folder / "hang").unlink()
        cluster.work("node2")

    kept: list[int] = []
    orphans: list[psutil.Process] = []
    with ThreadPoolExecutor() as pool:
        killing = pool.submit(kill)
        done = campaign(cluster, archive, "--machines", "3")
    killing.result()
    assert done.exit_code == 0, done.output
    assert not orphans
    assert kept[0] < len(run_of("node2").reading().samples)
    assert "the worker went away; completed samples are saved" in done.output
    for machine in workers:
        check_complete(archive, machine)
        assert f"node{machine[-1]} is measured. To add it: gccost add" in done.output


def test_what_was_measured_on_a_machine_can_be_added(
    cluster: Cluster, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = cluster.schedule()
    cluster.work("node1")

    def kill() -> None:
        wait_for(lambda: begun("node1"), seconds=60)
        scheduler.kill()

    with ThreadPoolExecutor() as pool:
        killing = pool.submit(kill)
        done = campaign(cluster, archive)
    killing.result()
    assert done.exit_code == 1
    assert "the scheduler cannot be reached" in done.output
    assert "completed samples are saved" in done.output
    before = run_of("node1").samples.read_bytes()
    cluster.schedule()
    cluster.work("node1")
    done = campaign(cluster, archive)
    assert done.exit_code == 0, done.output
    assert run_of("node1").samples.read_bytes().startswith(before)
    check_complete(archive, "node1")
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    copy, _ = reference.add(run_of("node1").folder, list(STUDIES.values()))
    assert copy.holds("lemire")
