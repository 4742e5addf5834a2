"""Every machine with a Dask worker measures in its own clone, and its run comes back."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from pathlib import Path

import psutil
import pytest
import recordings
from campaigns import assert_complete, assert_no_process_stays, gccost
from distributed import Client
from distributed.comm.addressing import get_address_host
from faketools import PATIENCE, FakeTools, wait_for

from gccost import paths
from gccost.judging import reference
from gccost.measuring import fleet
from gccost.run.runs import Run
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
    before = paths.runs() / "machines" / "10.0.0.1.tar.gz"  # what it measured last time
    before.parent.mkdir(parents=True)
    before.write_bytes(b"whole")
    done = gccost("fleet")
    assert before.read_bytes() == b"whole"
    assert done.exit_code == 1
    assert "it is not an archive of a run" in done.stderr
    assert "not measured: 10.0.0.1, 10.0.0.3" in done.stderr
    stored = paths.runs() / "machines" / "fe80--1.tar.gz"
    assert done.stdout.startswith("fe80::1 is measured. To add it: .venv/bin/python -m gccost add ")
    copy, _ = reference.add(stored, list(STUDIES.values()))
    assert copy.name == archive.name.removesuffix(".tar.gz")


def test_what_a_worker_says_is_escaped_and_what_it_returns_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path))
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))

    class Task(Future):
        def __init__(self, came: object) -> None:
            super().__init__()
            if isinstance(came, Exception):
                self.set_exception(came)
            else:
                self.set_result(came)

    class Client(nullcontext):
        def wait_for_workers(self, machines: int) -> None:
            assert machines == 3

        def nthreads(self) -> list[str]:
            return ["tcp://10.0.0.1:1", "tcp://10.0.0.2:1"]

        def submit(self, *_: object, workers: list[str], **more: object) -> Task:
            return Task(5 if workers == ["10.0.0.1"] else ValueError("\x1b[31mboom"))

    monkeypatch.setattr(fleet, "Client", lambda *_, **more: Client())
    monkeypatch.setattr(fleet, "as_completed", list)
    done = gccost("fleet", "--machines", "3")
    assert done.exit_code == 1
    assert "waiting for workers: 2 of 3 are there" in done.stderr
    assert "workers of one address are one machine: 2 of 3" in done.stderr
    assert "10.0.0.1.tar.gz: it is not an archive of a run" in done.stderr
    assert "10.0.0.2: \\x1b[31mboom" in done.stderr


def test_an_unreachable_scheduler_is_named(monkeypatch):
    monkeypatch.setattr(fleet, "CONNECT_SECONDS", 0.2)
    done = gccost("fleet", "--scheduler", "tcp://127.0.0.1:9")
    assert done.exit_code == 1
    assert "tcp://127.0.0.1:9: the scheduler cannot be reached" in done.stderr
    assert "dask scheduler" in done.stderr


DOCUMENT = paths.ROOT / "docs" / "elsewhere.md"


def printed() -> dict[str, str]:
    """Each command that starts a part of Dask, by where it is printed."""
    unreachable = gccost("fleet", "--scheduler", "tcp://127.0.0.1:9").stderr
    places = {"the document": DOCUMENT.read_text(), "the message": unreachable}
    places["the help"] = gccost("fleet", "--help").stdout
    return {
        f"{place} {n}": command
        for place, text in places.items()
        for n, command in enumerate(re.findall(r"\bdask (?:scheduler|worker) [^\n'`]*", text))
    }


def listening(process: subprocess.Popen[bytes]) -> set[str]:
    """The addresses on which a process and its children listen."""
    found = set()
    for each in [psutil.Process(process.pid), *psutil.Process(process.pid).children(True)]:
        with suppress(psutil.NoSuchProcess):
            connections = each.net_connections("inet")
            found |= {one.laddr.ip for one in connections if one.status == psutil.CONN_LISTEN}
    return found


def test_every_place_that_prints_a_command_of_dask_is_known(monkeypatch):
    monkeypatch.setattr(fleet, "CONNECT_SECONDS", 0.2)
    assert len(printed()) == 6
    texts = (
        path.read_text(encoding="utf-8")
        for folder, pattern in ((paths.ROOT, "*.md"), (paths.NOTEBOOKS, "*.ipynb"))
        for path in folder.rglob(pattern)
        if ".venv" not in path.parts and path != DOCUMENT
    )
    assert not [text for text in texts if re.search("dask[ -](scheduler|worker)", text)]


@pytest.mark.slow
def test_dask_as_printed_listens_on_loopback_only(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet, "CONNECT_SECONDS", 0.2)
    started = []

    def start(command: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", *shlex.split(command)]
        with (tmp_path / "log").open("ab") as log:
            process = subprocess.Popen(words, cwd=tmp_path, stdout=log, stderr=log)
        started.append(process)
        return process

    try:
        commands = printed()
        schedulers = {place: c for place, c in commands.items() if c.startswith("dask scheduler")}
        workers = {place: c for place, c in commands.items() if c.startswith("dask worker")}
        file = tmp_path / "scheduler.json"
        for place, command in schedulers.items():
            file.unlink(missing_ok=True)
            # The port may be taken on this machine; nothing else is changed.
            scheduler = start(f"{command} --port 0 --scheduler-file {file}")
            assert wait_for(lambda: file.exists() and file.read_text().endswith("}")), place
            assert listening(scheduler) == {"127.0.0.1"}, place
        address = json.loads(file.read_text())["address"]
        for command in workers.values():
            start(re.sub(r"ADDRESS|tcp://127.0.0.1:8786", address, command))
        with Client(address, timeout=PATIENCE) as client:
            client.wait_for_workers(len(workers))
            found = client.scheduler_info(-1)["workers"]
        # A machine is known by its worker's address, so two on loopback need two.
        assert {get_address_host(each) for each in found} == {"127.0.0.1", "127.0.0.2"}
        for process in started[len(schedulers) :]:
            assert listening(process) <= {"127.0.0.1", "127.0.0.2"}
            assert listening(process)
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


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
@pytest.mark.parametrize("how", ["killed", "stopped", "scheduler"])
def test_a_machine_loses_no_sample_when_dask_fails(how, tools: FakeTools, dask, monkeypatch):
    monkeypatch.setenv("GCCOST_RUNS", str(tools.folder / "here"))
    file = tools.folder / "scheduler.json"
    place = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
    scheduler = dask("scheduler", *place)
    assert wait_for(lambda: file.exists() and file.read_text().endswith("}"))
    address = json.loads(file.read_text())["address"]
    work = ("worker", address, "--nthreads", "1", "--no-nanny")
    worker = dask(*work)
    short = ': > "{folder}/reached"; sleep 1'
    tools.from_the(20, of="sample", **({} if how == "killed" else {"what": short}))
    measuring = tools.start(
        *("fleet", "--budget", "tiny", "--only", "lemire", "--scheduler", address),
        GCCOST_RUNS=str(tools.folder / "here"),
    )
    tools.wait_until_at_work(measuring)
    before = tools.the_run().samples_txt.read_bytes()
    lost = {"killed": worker, "scheduler": scheduler}.get(how)
    if lost:
        lost.kill()
        lost.wait()
    else:
        worker.send_signal(signal.SIGSTOP)
    tools.do()
    again = dask(*work) if how == "killed" else worker
    worker.send_signal(signal.SIGCONT)
    said, complaint = measuring.communicate()
    assert measuring.returncode == (how == "scheduler"), complaint
    assert "Traceback" not in complaint
    if how == "scheduler":  # the machine measures to the end, and its worker ends
        assert "127.0.0.1: " in complaint
        assert "what it measured is in its own run folder" in complaint
        worker.wait()
    else:
        assert "127.0.0.1 is measured" in said
    run: Run = tools.the_run()
    assert run.samples_txt.read_bytes().startswith(before)
    assert_complete(run)
    for process in (again, scheduler):
        process.kill()
        process.wait()
    assert_no_process_stays(tools)
