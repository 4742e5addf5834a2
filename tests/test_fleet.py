"""A campaign gives every machine a complete run and refuses inconsistent workers."""

from __future__ import annotations

import io
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from click.testing import CliRunner
from conftest import FakeMachine, due
from faketools import PATIENCE, script, wait_for
from test_pack import changed, cut

from gccost import cli, paths
from gccost.errors import GccostError
from gccost.judging import reference
from gccost.measuring import fleet, pack, packed
from gccost.measuring.campaign import finished, samples_of
from gccost.measuring.cases import BUDGETS
from gccost.measuring.runs import Run, all_runs, exclusive
from gccost.studies import STUDIES

pytestmark = pytest.mark.slow

SMALL = replace(
    STUDIES["lemire"],
    cases="tiny AllocateFree|AllocateDefer|AllocateHeapFree/go=document",
    claims=(),
)
# Starts the sampler without installed packages. The machine's host name, boot ID and CPUs
# come from files in the worker's folder.
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
sys.exit(packed.serve(float(sys.argv[-1])))' "$@"
"""
DASK = """
import sys
sys.modules["gccost"] = None  # cannot be imported
from dask.cli import run_cli
run_cli()
"""
BEHAVIOUR = """case $1 in -test.list*) exit ;; esac
[ -z "$profile" ] || : | gzip > "$profile"
[ ! -e "$TMPDIR/fail" ] || exit 1
if [ -e "$TMPDIR/hang" ]; then
  echo >> "$TMPDIR/hang"
  [ "$(wc -l < "$TMPDIR/hang")" -lt 5 ] || { : > "$TMPDIR/reached"; exec sleep 9999; }
fi
line "$name"
"""  # fails, or hangs in the fifth sample, if told to


@pytest.fixture
def archive(machine: FakeMachine, tmp_path, monkeypatch) -> Path:
    """A pack of three cases whose programs are scripts."""
    machine.behaviour = BEHAVIOUR
    monkeypatch.setenv("PYTHON", str(script(tmp_path / "python", PYTHON)))
    monkeypatch.setattr(fleet, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(fleet, "PART_SECONDS", 0.01)  # two samples or so
    made = tmp_path / "gccost-pack.tar.xz"
    pack.make([SMALL], BUDGETS["tiny"], [], made)
    return made


def place(folder: Path, host: str = "", boot: str = "", cpus: int = 2) -> Path:
    """Make a worker's folder with the description of its machine."""
    folder.mkdir(exist_ok=True)
    for name, value in (("host", host or folder.name), ("boot", boot or folder.name)):
        (folder / name).write_text(value)
    (folder / "cpus").write_text(str(cpus))
    return folder


def run_of(machine: str) -> Run:
    (run,) = all_runs(paths.runs() / "machines" / machine)
    return run


def check_complete(archive: Path, machine: str) -> None:
    """Check that the run holds every sample of every case and round exactly once."""
    run = run_of(machine)
    plan = packed.plan(fleet.read(archive.read_bytes())[0], run.manifest()["machine"], {})
    assert finished(run, plan)
    assert not run.reading().errors
    taken = Counter((s.full_name, s.metrics["round"]) for s in samples_of(run, plan))
    assert taken == {(name, n): k for n in (1, 2) for name, k in due(plan, n).items()}


# --- A scheduler and workers in separate processes ----------------------------------------


@dataclass
class Cluster:
    """A scheduler on loopback, and workers without gccost installed."""

    folder: Path
    stack: ExitStack = field(default_factory=ExitStack)
    port: str = "0"
    tls: tuple[str, ...] = ()

    def start(self, *arguments: str, folder: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", DASK, *arguments, "--no-dashboard", *self.tls]
        command += ["--protocol", "tls"] if self.tls else []
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
        written = lambda: file.exists() and file.read_text().endswith("}")  # noqa: E731
        assert wait_for(written), (folder / "log").read_text()
        self.address = str(fleet.json.loads(file.read_text())["address"])
        self.port = self.address.rpartition(":")[2]
        return started

    def work(self, name: str, *, hangs: bool = False) -> subprocess.Popen[bytes]:
        folder = place(self.folder / name)
        if hangs:
            (folder / "hang").touch()
        else:
            (folder / "hang").unlink(missing_ok=True)
        options = ("--no-nanny", "--nthreads", "1", "--resources", "bench=1")
        where = ("--local-directory", str(folder))
        return self.start("worker", self.address, *options, *where, folder=folder)


def is_sample(process: psutil.Process, folder: Path) -> bool:
    environment = process.info["environ"] or {}
    return process.name() == "sleep" and environment.get("TMPDIR") == str(folder)


@pytest.fixture
def cluster(tmp_path, archive) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    with made.stack:
        yield made


def campaign(cluster: Cluster, archive: Path, *more: str) -> Any:
    given = [
        "fleet",
        str(archive),
        "--scheduler",
        cluster.address,
        "--wait",
        str(PATIENCE),
        *more,
    ]
    return CliRunner().invoke(cli.main, given)


def test_a_killed_worker_loses_only_its_current_part(cluster: Cluster, archive):
    cluster.schedule()
    names = ("node1", "node2", "node3")
    workers = {name: cluster.work(name, hangs=name == "node2") for name in names}

    def kill() -> bytes:
        folder = cluster.folder / "node2"
        assert wait_for((folder / "reached").exists)
        hung = [p for p in psutil.process_iter(["environ"]) if is_sample(p, folder)]
        kept = run_of("node2").samples_txt.read_bytes()
        workers["node2"].kill()
        assert hung
        _, orphans = psutil.wait_procs(hung, timeout=PATIENCE)
        assert not orphans  # no sample outlives its worker
        cluster.work("node2")
        return kept

    with ThreadPoolExecutor() as pool:
        killing = pool.submit(kill)
        done = campaign(cluster, archive, "--machines", "3")
    assert done.exit_code == 0, done.output
    assert run_of("node2").samples_txt.read_bytes().startswith(killing.result())
    assert "the worker went away; completed samples are saved" in done.output
    for machine in workers:
        check_complete(archive, machine)
        assert f"node{machine[-1]} is measured. To add it: python -m gccost add" in done.output


def secured(cluster: Cluster, folder: Path) -> tuple[str, ...]:
    """Options for a cluster with TLS, which it has then."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    files = {"ca-file": certificate, "cert": certificate, "key": key}
    cluster.tls = tuple(f"--tls-{name}={path}" for name, path in files.items())
    return cluster.tls


def test_a_campaign_resumes_after_its_scheduler_is_killed(
    cluster: Cluster, archive, tmp_path, monkeypatch
):
    tls = secured(cluster, tmp_path) if shutil.which("openssl") else ()
    scheduler = cluster.schedule()
    cluster.work("node1", hangs=True)

    def kill() -> None:
        assert wait_for((cluster.folder / "node1" / "reached").exists)
        scheduler.kill()

    with ThreadPoolExecutor() as pool:
        killing = pool.submit(kill)
        done = campaign(cluster, archive, *tls)
    killing.result()
    assert done.exit_code == 1
    assert "the scheduler cannot be reached" in done.output
    assert "completed samples are saved" in done.output
    before = run_of("node1").samples_txt.read_bytes()
    assert b"Benchmark" in before
    cluster.schedule()
    cluster.work("node1")
    done = campaign(cluster, archive, *tls)
    assert done.exit_code == 0, done.output
    assert cluster.address.startswith("tls://" if tls else "tcp://")
    assert run_of("node1").samples_txt.read_bytes().startswith(before)
    check_complete(archive, "node1")
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    copy, _ = reference.add(run_of("node1").folder, list(STUDIES.values()))
    assert "lemire" in copy.studies


# --- Inconsistent workers, in this process ------------------------------------------------

HERE = threading.local()


@dataclass
class Local:
    """A Dask client whose workers are folders of this machine. Tasks run when submitted."""

    folders: tuple[Path, ...]
    benches: float = 1
    before: Callable[[float], object] = lambda seconds: None
    change: Callable[[Any], Any] = lambda answer: answer
    status: str = "running"

    def __post_init__(self) -> None:
        self.workers = {str(each): SimpleNamespace(local_directory=each) for each in self.folders}

    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": {name: {"resources": {"bench": self.benches}} for name in self.workers}}

    def scatter(self, data: bytes, **_: object) -> bytes:
        return data

    def submit(self, take: Any, *given: Any, workers: list[str], **__: object) -> Future[Any]:
        HERE.worker = self.workers[workers[0]]
        done: Future[Any] = Future()
        try:
            self.before(given[1])
            done.set_result(self.change(take(*given)))
        except (OSError, CancelledError) as error:
            done.set_exception(error)
        return done

    def close(self) -> None:
        pass


def measured(archive: Path, *folders: Path, **more: Any) -> tuple[set[str], str]:
    """The names of the finished machines, and the messages."""
    said: list[str] = []
    client: Any = Local(folders, **more)
    with pytest.MonkeyPatch.context() as patch, exclusive(paths.runs() / "machines", "testing"):
        patch.setattr(fleet, "get_worker", lambda: HERE.worker)
        done, _ = fleet._Fleet(client, archive.read_bytes(), said.append).measure(len(folders), 0.2)
    return set(done), "\n".join(said)


def later(change: Callable[[], object]) -> Callable[[float], None]:
    """Make a change before the fifth task."""
    tasks = Counter[str]()

    def before(seconds: float) -> None:
        tasks["asked"] += 1
        if tasks["asked"] == 5:
            change()

    return before


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ({"boot": "node1"}, "it is on the same machine as the worker"),
        ({"host": "node1"}, "it is named like the worker"),
        ({"host": "../../elsewhere"}, "the machine's name cannot name a folder"),
    ],
)
def test_a_worker_with_a_duplicate_or_invalid_machine_is_refused(archive, tmp_path, second, why):
    places = place(tmp_path / "node1"), place(tmp_path / "node2", **second)
    done, said = measured(archive, *places)
    assert len(done) == 1, said
    assert why in said
    check_complete(archive, *done)


@pytest.mark.parametrize(
    ("file", "value", "why"),
    [
        ("cpus", "4", "the machine's description changed"),
        ("boot", "another", "the worker answers for another machine now"),
    ],
)
def test_a_changed_machine_is_refused_until_it_is_restored(archive, tmp_path, file, value, why):
    node = place(tmp_path / "node1")
    before = (node / file).read_text()
    done, said = measured(archive, node, before=later(lambda: (node / file).write_text(value)))
    assert not done
    assert why in said
    kept = run_of("node1").samples_txt.read_bytes()
    (node / file).write_text(before)
    assert measured(archive, node)[0] == {"node1"}
    assert run_of("node1").samples_txt.read_bytes().startswith(kept)
    check_complete(archive, "node1")


def test_a_program_changed_during_a_campaign_is_refused(archive, tmp_path):
    node = place(tmp_path / "node1")

    def spoil() -> None:
        for program in node.glob("*/*/programs/*"):
            program.write_text(program.read_text() + "#")

    done, said = measured(archive, node, before=later(spoil))
    assert not done
    assert "the program is damaged: its hash differs" in said


BAD_LINE = b"BenchmarkAllocateFree/go=1.27.4\t1\t1 ns/op\t1 round\n"
Answer = dict[str, Any]


def in_the_run(file: str, change: Callable[[bytes], bytes]) -> Callable[[Answer], Answer]:
    """Change a file of the run that a worker sends."""

    def changed(answer: Answer) -> Answer:
        if "run" not in answer:
            return answer
        stream = io.BytesIO()
        with (
            tarfile.open(fileobj=io.BytesIO(answer["run"])) as given,
            tarfile.open(fileobj=stream, mode="w:gz") as sent,
        ):
            for member in given:
                data = b"" if member.isdir() else given.extractfile(member).read()
                data = change(data) if member.name.endswith(file) else data
                member.size = len(data)
                sent.addfile(member, io.BytesIO(data))
        return answer | {"run": stream.getvalue()}

    return changed


def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: re.sub(old, new, data)


LIES: dict[str, tuple[Callable[[Answer], Any], str]] = {
    "no object": (lambda answer: [answer], "answer is no object"),
    "another field": (lambda answer: answer | {"more": 1}, "answer has an unknown field: more"),
    "no archive": (lambda answer: answer | {"run": b"x"}, "it is not an archive of a run"),
    "no run": (lambda answer: {k: v for k, v in answer.items() if k != "run"}, "it sent no run"),
    "no machine": (
        in_the_run("run.json", replaced(rb'"machine": \{[^}]*\}[^}]*\}', b'"machine": {}')),
        "it does not describe its machine: allowed_cpus, ",
    ),
    "CPUs in words": (
        in_the_run("run.json", replaced(rb'"allowed_cpus": \d+', b'"allowed_cpus": "2"')),
        "allowed_cpus is '2', not",
    ),
    "a line of another case": (
        in_the_run("samples.txt", lambda data: data + BAD_LINE),
        "its sample is not of the pack",
    ),
    "no line": (
        in_the_run("samples.txt", lambda data: data + b"BenchmarkX\n"),
        "a line of its samples is damaged",
    ),
    "no time": (in_the_run("samples.txt", replaced(rb"\t\S+ elapsed-s", b"")), "lacks its time"),
    "no time at all": (
        in_the_run("samples.txt", replaced(rb"\t\S+ ns/op", b"\t0.001 ns/op")),
        "a time is not between 0.1 ns and 1 h",
    ),
}


def test_workers_that_lie_are_dropped_and_named_and_cost_no_other_machine(archive, tmp_path):
    nodes = {f"node{number}": lie for number, lie in enumerate(LIES.values())}

    def change(answer: Any) -> Any:
        tell, _ = nodes.get(HERE.worker.local_directory.name, (lambda answer: answer, ""))
        return tell(answer)

    places = [place(tmp_path / name) for name in (*nodes, "honest")]
    done, said = measured(archive, *places, change=change)
    assert done == {"honest"}
    for name, (_, why) in nodes.items():
        assert re.search(rf"{name}: the worker is dropped: .*{re.escape(why)}", said), said
    check_complete(archive, "honest")


def test_a_worker_that_takes_samples_back_is_dropped(archive, tmp_path):
    sent = Counter[str]()

    def change(answer: Any) -> Any:
        sent["parts"] += "run" in answer
        lost = in_the_run("samples.txt", replaced(rb"Benchmark.*\n", b""))
        return lost(answer) if sent["parts"] == 3 else answer

    done, said = measured(archive, place(tmp_path / "node1"), change=change)
    assert not done
    assert "its run lacks samples that it had sent" in said
    assert run_of("node1").reading().samples


def test_a_machine_without_a_sample_is_not_measured(archive, tmp_path, monkeypatch):
    node = place(tmp_path / "node1")
    (node / "fail").touch()
    monkeypatch.setenv("TMPDIR", str(node))
    done, said = measured(archive, node)
    assert not done
    assert "no case can be measured" in said or "no sample succeeded" in said
    assert run_of("node1").manifest()["failed"]


def test_a_second_campaign_at_once_is_refused(archive):
    with (
        exclusive(paths.runs() / "machines", "testing"),
        pytest.raises(GccostError, match="another gccost is measuring a fleet here"),
    ):
        fleet.measure("tcp://127.0.0.1:9", archive.read_bytes(), None, 1, 1.0, print)


def test_a_machine_whose_workers_keep_dying_is_given_up(archive, tmp_path):
    parts = Counter[str]()

    def die(seconds: float) -> None:
        parts["asked"] += seconds > 0
        if seconds > 0 and parts["asked"] > 2:
            raise CancelledError

    done, said = measured(archive, place(tmp_path / "node1"), before=die)
    assert not done
    assert said.count("the worker went away; completed samples are saved") == 2
    assert "node1: its workers died 2 times in the same part of the run" in said
    assert run_of("node1").reading().samples


def test_a_worker_must_offer_exactly_one_bench(archive, tmp_path):
    done, said = measured(archive, place(tmp_path / "node1"), benches=2)
    assert not done
    assert "it offers 2 of the resource bench" in said
    assert "--resources bench=1" in said


def test_an_unpacked_pack_is_used(archive, tmp_path, monkeypatch):
    node = place(tmp_path / "node1")
    with tarfile.open(archive) as tar:
        tar.extractall(node, filter="data")
    monkeypatch.setenv("GCCOST_PACK", str(node / "gccost-pack"))
    assert measured(archive, node)[0] == {"node1"}
    assert not list(node.glob("gccost-*/gccost-pack"))  # none was sent
    changed(missing={"1.9": "a change"})(node / "gccost-pack")
    assert "GCCOST_PACK names another pack" in measured(archive, node)[1]
    cut(node / "gccost-pack")
    assert "the program is damaged" in measured(archive, node)[1]


def archived(name: str, text: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:xz") as tar:
        pack._add(tar, name, text, 0o644)
    return stream.getvalue()


def archived_header(size: int) -> bytes:
    """The start of an archive whose first member claims a name of so many bytes."""
    entry = tarfile.TarInfo("././@LongLink")
    entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, size
    return entry.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)


@pytest.mark.parametrize(
    ("archive", "why"),
    [
        (b"no archive", "it is not a pack"),
        (archived("run", b""), "it is not a pack"),
        (archived("pack.json", b"{"), "it is not a pack"),
        (archived("pack.json", b"[]"), "it is not a pack"),
        (archived("pack.json", b'{"format": 1}'), "the pack has format 1"),
        (archived("pack.json", b" " * (9 << 20)), "it is not a pack"),
        (lzma.compress(archived_header(3 << 30)), "it is not a pack"),
    ],
)
def test_an_archive_that_is_not_a_pack_is_refused(archive, why):
    with pytest.raises(GccostError, match=why):
        fleet.read(archive)
