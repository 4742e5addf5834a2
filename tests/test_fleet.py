"""Every machine with a Dask worker measures in its own clone, and its run comes back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import recordings
from campaigns import assert_complete, assert_no_process_stays, gccost
from faketools import FakeTools, wait_for

from gccost import paths
from gccost.judging import reference
from gccost.measuring import fleet
from gccost.measuring.runs import Run
from gccost.studies import STUDIES


@pytest.fixture
def archive(tmp_path, monkeypatch) -> Path:
    """An archive of a run; the folders of this machine are empty."""
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path / "here"))
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    return recordings.record(tmp_path / "there", rounds=1).archive()


def test_runs_are_checked_and_a_refused_or_failed_one_costs_no_other(archive, monkeypatch):
    came = {"10.0.0.1": b"no archive", "fe80::1": archive.read_bytes(), "10.0.0.3": b""}
    monkeypatch.setattr(fleet, "measure", lambda *_: came.items())
    done = gccost("fleet")
    assert done.exit_code == 1
    assert "it is not an archive of a run" in done.stderr
    assert "not measured: 10.0.0.1, 10.0.0.3" in done.stderr
    stored = paths.runs() / "machines" / "fe80--1.tar.gz"
    assert done.stdout.startswith("fe80::1 is measured. To add it: python -m gccost add ")
    copy, _ = reference.add(stored, list(STUDIES.values()))
    assert copy.name == archive.name.removesuffix(".tar.gz")


def test_an_unreachable_scheduler_is_named(monkeypatch):
    monkeypatch.setattr(fleet, "CONNECT_SECONDS", 0.2)
    done = gccost("fleet", "--scheduler", "tcp://127.0.0.1:9")
    assert done.exit_code == 1
    assert "tcp://127.0.0.1:9: the scheduler cannot be reached" in done.stderr
    assert "dask scheduler" in done.stderr


@pytest.fixture
def dask(tools: FakeTools) -> Iterator[object]:
    """A function that starts a part of Dask in the environment of a machine's clone."""
    started = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        with (tools.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=paths.ROOT, env=tools.environment(), stdout=log, stderr=log
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_machine_resumes_when_its_worker_was_killed(tools: FakeTools, dask, monkeypatch):
    monkeypatch.setenv("GCCOST_RUNS", str(tools.folder / "here"))
    file = tools.folder / "scheduler.json"
    place = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
    scheduler = dask("scheduler", *place)
    assert wait_for(lambda: file.exists() and file.read_text().endswith("}"))
    address = json.loads(file.read_text())["address"]
    work = ("worker", address, "--nthreads", "1", "--no-nanny")
    worker = dask(*work)
    tools.from_the(20, of="sample")
    measuring = tools.start(
        *("fleet", "--budget", "tiny", "--only", "lemire", "--scheduler", address),
        GCCOST_RUNS=str(tools.folder / "here"),
    )
    tools.wait_until_at_work(measuring)
    before = tools.the_run().samples_txt.read_bytes()
    worker.kill()
    worker.wait()
    tools.do()
    again = dask(*work)
    said, complaint = measuring.communicate()
    assert measuring.returncode == 0, complaint
    assert "127.0.0.1 is measured" in said
    run: Run = tools.the_run()
    assert run.samples_txt.read_bytes().startswith(before)
    assert_complete(run)
    for process in (again, scheduler):
        process.kill()
        process.wait()
    assert_no_process_stays(tools)
