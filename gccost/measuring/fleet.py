"""A fleet: the campaigns of many machines, as tasks of Dask workers that each have a pack.

A task takes a worker's only `bench` resource, so no two share a machine. It has the pack measure
for some seconds (`packed.serve`), and returns the run so far. The run is checked as one that
`gccost add` gets, and stored in a folder of the machine. So a worker that dies costs the samples
of one task: when it or another worker of the machine arrives, it gets the stored run and goes on.

A worker needs Dask and the pack, and no package of ours.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import closing
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from distributed import Client, Future, KilledWorker, Security, get_worker

from gccost import paths
from gccost.errors import DiskFull, GccostError
from gccost.files import write_whole
from gccost.measuring import incoming, packed, runs
from gccost.measuring.campaign import GIVE_UP
from gccost.measuring.packed import Pack
from gccost.measuring.progress import Say
from gccost.measuring.runs import Run
from gccost.measuring.schema import FLAG, LINE, TEXT, Field, fault

BENCH = "bench"
CONNECT_SECONDS = 10
POLL_SECONDS = 0.5  # between looks at workers and tasks
PART_SECONDS = 30.0  # of a task; a worker that dies costs the samples of one
_MOST_RUN = 64 << 20  # bytes of a run's archive
_MOST_MEMORY = 256 << 20  # bytes, to unpack a pack
_MOST_START = 8 << 20  # bytes of a pack that hold pack.json
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_OFFER = f"start it with: dask worker ADDRESS --nthreads 1 --resources {BENCH}=1"
_SAVED = "completed samples are saved"
_RESUME_WITHOUT = f"start a worker of this version there; {_SAVED}"
_RESUME = f"{_SAVED}, and the same command resumes"

Answer = Mapping[str, Any]
ANSWER = {
    "lacks?": LINE,
    "refused?": TEXT,
    "host?": LINE,
    "boot?": LINE,
    "pack?": LINE,
    "finished?": FLAG,
    "run?": Field("the archive of a run", (bytes,), 1, _MOST_RUN),
}
"""What a task answers: what it lacks, why it refuses, or its machine and the run so far."""


class Lied(GccostError):
    """A worker's answer cannot be true, so the worker is dropped."""

    def __init__(self, why: str, worker: str) -> None:
        super().__init__(f"the worker is dropped: {why}", worker, _RESUME_WITHOUT)


# --- On a worker ------------------------------------------------------------------------


def task() -> Callable[..., Any]:
    """The function that workers run. Dask sends it with its code, because it is a local one."""

    def take(mark: str, seconds: float, pack: bytes | None, kept: bytes | None) -> Any:
        """Have the pack on this worker measure for some seconds, and return its answer.

        The pack is the folder that GCCOST_PACK names, or the archive `pack`, unpacked. `kept`
        is the archive of a run to go on with. Answers {"lacks": ...} if there is no pack.
        """
        own = Path(get_worker().local_directory, f"gccost-{mark}")
        place = own / "runs"
        folder = Path(os.environ.get("GCCOST_PACK") or own / "gccost-pack")
        if not (folder / "run").exists():
            if pack is None:
                return {"lacks": "the pack"}
            with tarfile.open(fileobj=io.BytesIO(pack)) as tar:
                tar.extractall(own, filter="data")
        if kept is not None:
            shutil.rmtree(place, ignore_errors=True)
            with tarfile.open(fileobj=io.BytesIO(kept)) as tar:
                tar.extractall(place, filter="data")
        with subprocess.Popen(
            ["/bin/sh", folder / "run", "--for", str(seconds)],  # by sh: it says what noexec means
            env={"PYTHON": sys.executable, **os.environ, "GCCOST_RUNS": str(place)},
            stdin=subprocess.PIPE,  # it ends with its input, and so with this worker
            stdout=subprocess.PIPE,
            text=True,
        ) as runner:
            said = cast("IO[str]", runner.stdout).read()
        answer = json.loads(said or '{"refused": "the sampler ended"}')
        if archive := answer.pop("archive", None):
            answer["run"] = Path(archive).read_bytes()
        return answer

    return take


# --- Here ---------------------------------------------------------------------------------


class Machine(NamedTuple):
    """A worker's machine."""

    name: str  # its host's, of the first worker that stood for it
    boot: str  # one for all containers of a machine

    @property
    def folder(self) -> Path:
        """The folder of its run."""
        return paths.runs() / "machines" / self.name

    def run(self) -> Run | None:
        """Its newest run."""
        own_runs = runs.all_runs(self.folder)
        return own_runs[-1] if own_runs else None


class _Fleet:
    """The workers of a scheduler, and the runs of their machines."""

    def __init__(self, client: Client, archive: bytes, say: Say) -> None:
        self.client = client
        self.archive = archive
        self.say = say
        self.pack, self.mark = read(archive)
        self.take = task()
        self.tasks: dict[str, Future[Any]] = {}  # by worker
        self.sent: dict[str, list[Any]] = {}  # the archives for these tasks
        self.at: dict[str, Machine] = {}  # by worker
        self.names: dict[str, str] = {}  # of machines, by boot: a worker's host may be a container
        self.died: Counter[str] = Counter()  # workers in a row without an answer, by machine
        self.settled: set[str] = set()  # workers whose machine is finished, or which are refused
        self.done: dict[str, Run] = {}  # by machine

    def measure(self, machines: int, wait: float) -> tuple[dict[str, Run], set[str]]:
        """The finished runs by machine, and the names of unfinished machines."""
        busy = time.monotonic()
        with closing(self.client):
            while True:
                offers = self._offers()
                for worker, task in list(self.tasks.items()):
                    if worker not in offers:
                        task.cancel()
                    if worker not in offers or task.done():
                        self._guarded(self._answered, worker)
                for worker in self.at.keys() - offers.keys():
                    del self.at[worker]
                self.settled &= offers.keys()
                for worker in offers.keys() - self.tasks.keys() - self.settled:
                    self._guarded(self._begin, worker, offers[worker])
                now = time.monotonic()
                if self.tasks:
                    busy = now
                unfinished = set(self.names.values()) - self.done.keys()
                gone = unfinished - {machine.name for machine in self.at.values()}
                complete = len(self.done) >= machines and not gone
                if not self.tasks and (complete or now > busy + wait):
                    return self.done, unfinished
                time.sleep(POLL_SECONDS)

    def _offers(self) -> dict[str, float]:
        """The benches that each worker offers."""
        if self.client.status != "running":
            raise ConnectionError("the connection was lost")
        workers = self.client.scheduler_info()["workers"]
        return {name: info["resources"].get(BENCH, 0) for name, info in workers.items()}

    def _guarded(self, step: Callable[..., None], worker: str, *given: float) -> None:
        """Take a step with a worker; what it raises is said, and costs no other machine."""
        try:
            step(worker, *given)
            return
        except DiskFull:
            raise
        except (CancelledError, KilledWorker, TimeoutError):  # another may take its place
            if machine := self.at.pop(worker, None):
                self.died[machine.name] += 1
            self.tasks.pop(worker, None)
            self.say(f"{worker}: the worker went away; {_SAVED}")
            return
        except GccostError as refused:
            self.say(str(refused))
        except Exception as error:
            self.say(f"{worker}: the campaign on it failed: {error!r}")
        self.settled.add(worker)

    def _begin(self, worker: str, benches: float) -> None:
        """Ask a worker for its machine."""
        if benches != 1:
            raise GccostError(f"it offers {benches:g} of the resource {BENCH}", worker, _OFFER)
        self._submit(worker, 0.0)

    def _submit(
        self, worker: str, seconds: float, pack: bytes | None = None, kept: bytes | None = None
    ) -> None:
        # Archives go in messages of their own, because tasks should be small.
        # Dask drops one that nothing here refers to.
        sent = self.sent[worker] = [
            data and self.client.scatter(data, workers=[worker], hash=False)
            for data in (pack, kept)
        ]
        self.tasks[worker] = self.client.submit(
            self.take,
            self.mark,
            seconds,
            *sent,
            workers=[worker],
            resources={BENCH: 1},
            pure=False,
        )

    def _answered(self, worker: str) -> None:
        """Store what a worker's task answered, and submit the next one."""
        answer = self._answer(worker, self.tasks.pop(worker))
        if answer.get("lacks"):
            self._submit(worker, 0.0, pack=self.archive)
        elif worker not in self.at:
            machine = self._enter(worker, answer)
            run = machine.run()
            kept = packed.archived(run).read_bytes() if run else None
            self._submit(worker, PART_SECONDS, kept=kept)
        elif self.at[worker].boot != answer.get("boot"):
            why = "the worker answers for another machine now"
            raise GccostError(why, self.at[worker].name, _RESUME)
        else:
            self._measured(worker, answer)

    def _answer(self, worker: str, task: Future[Any]) -> Answer:
        """The answer of a task.

        Raises what Dask does if the worker has gone, GccostError if it refuses, Lied if it is none.
        """
        try:
            answer = task.result()
        except (CancelledError, KilledWorker, TimeoutError):
            raise
        except Exception as error:  # whatever the worker raised
            raise GccostError(f"the worker failed: {error!r}", worker) from None
        if why := fault(answer, ANSWER, "answer"):
            raise Lied(f"its answer cannot be read: {why}", worker)
        if answer.get("refused"):
            raise GccostError(answer["refused"], worker)
        return cast(Answer, answer)

    def _enter(self, worker: str, answer: Answer) -> Machine:
        """A worker's machine, unless another worker stands for it or it has another pack."""
        if answer.get("pack") != self.mark:
            hint = "unpack the pack there, or do not set GCCOST_PACK"
            raise GccostError("GCCOST_PACK names another pack", worker, hint)
        host: str = answer.get("host", "")
        boot: str = answer.get("boot", "")
        if not _NAME.fullmatch(host):
            raise GccostError(f"the machine's name cannot name a folder: {host!r}", worker)
        machine = Machine(self.names.get(boot, host), boot)
        if self.died[machine.name] >= GIVE_UP:
            why = f"its workers died {GIVE_UP} times in the same part of the run"
            raise GccostError(why, machine.name, _RESUME)
        for other, taken in self.at.items():
            if boot == taken.boot or machine.name == taken.name:
                same = "on the same machine as" if boot == taken.boot else "named like"
                raise GccostError(
                    f"it is {same} the worker {other}, {taken.name}",
                    f"{worker}, {host}",
                    "start one worker on each machine, each with a host name of its own",
                )
        self.names[boot] = machine.name
        self.at[worker] = machine
        return machine

    def _measured(self, worker: str, answer: Answer) -> None:
        """Store the run of a worker's machine, and go on if it is unfinished."""
        machine = self.at[worker]
        if "run" not in answer:
            raise Lied("it sent no run", machine.name)
        run = _stored(machine, answer["run"], self.pack)
        self.died[machine.name] = 0
        samples = run.reading().samples.values()
        self.say(f"{machine.name}: {len(samples)} samples, {runs.seconds_of(samples):.0f} s")
        if not answer.get("finished"):
            self._submit(worker, PART_SECONDS)
            return
        if not samples:
            again = f"see why in run.json, and remove the run to measure it again: {run.folder}"
            raise GccostError("no sample succeeded", machine.name, again)
        self.done[machine.name] = run
        self.settled.add(worker)


def _stored(machine: Machine, archive: bytes, pack: Pack) -> Run:
    """Check the archive of a machine's run, and store what is new of it.

    Raises Lied if it cannot be what the pack measured, GccostError if the machine has changed.
    """
    before = machine.run()
    with runs.scratch(paths.runs() / "machines") as scratch:
        given = scratch / "run.tar.gz"
        given.write_bytes(archive)
        try:
            run = incoming.copied(given, scratch)
            why = _fault(run, pack)
        except DiskFull:
            raise
        except GccostError as error:
            why = error.message
        if why:
            raise Lied(why, machine.name)
        if before and before.name != run.name:
            raise GccostError(
                "the machine's description changed while it was measured",
                machine.name,
                f"see that its CPUs and limits stay the same; {_RESUME}",
            )
        if before and not run.samples_txt.read_bytes().startswith(before.samples_txt.read_bytes()):
            raise Lied("its run lacks samples that it had sent", machine.name)
        stored = Run(machine.folder / run.name)
        files = [path for path in run.folder.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: path.name == "run.json"):  # last
            copy = stored.folder / path.relative_to(run.folder)
            data = path.read_bytes()
            if not copy.exists() or copy.read_bytes() != data:
                write_whole(copy, data)
    return stored


def _fault(run: Run, pack: Pack) -> str:
    """Why a run cannot be what the pack measured; empty if it can."""
    described = run.manifest()["machine"]
    if absent := {"cpu", "allowed_cpus", "architecture", "system"} - described.keys():
        return f"it does not describe its machine: {', '.join(sorted(absent))}"
    if why := next(incoming.unusable(run), ""):
        return why
    pool = packed.plan(pack, described, {}).pool
    for sample in run.reading().samples.values():
        job = pool.get(sample.full_name)
        if job is None or job["n"] not in (0, sample.n):
            return f"its sample is not of the pack: {sample.full_name}, {sample.n} operations"
        if "elapsed-s" not in sample.metrics:
            return f"its sample of {job['name']} lacks its time"
    return ""


def read(archive: bytes) -> tuple[Pack, str]:
    """The content of pack.json in a pack, and its hash. Raises GccostError if it is no pack.

    pack.json is the archive's first file, so no more than its beginning is unpacked.
    """
    try:
        start = lzma.LZMADecompressor(memlimit=_MOST_MEMORY).decompress(archive, _MOST_START)
        with tarfile.open(fileobj=io.BytesIO(start), mode="r:") as tar:
            member = tar.next()
            if member is None or member.name != "gccost-pack/pack.json":
                raise ValueError("it does not begin with pack.json")
            text = cast("IO[bytes]", tar.extractfile(member)).read()
        pack = json.loads(text)
        packed.check_format(pack, "pack.json")
    except GccostError:
        raise
    except Exception as error:  # an archive can make tarfile raise anything
        raise GccostError(
            f"it is not a pack: {error}", hint="make one: python -m gccost pack"
        ) from None
    return pack, hashlib.sha256(text).hexdigest()


def measure(
    scheduler: str,
    archive: bytes,
    security: Security | None,
    machines: int,
    wait: float,
    say: Say,
) -> tuple[dict[str, Run], set[str]]:
    """Measure on every machine that has a worker; return the finished runs and what is open.

    Ends when no machine is being measured, `machines` are finished and no worker that went
    away is missing, or when nothing has been measured for `wait` seconds.

    Raises GccostError if the archive is no pack or the scheduler cannot be reached or goes away.
    """
    read(archive)  # before anything is waited for
    try:
        with runs.exclusive(paths.runs() / "machines", "measuring a fleet"):
            client = Client(scheduler, security=security, timeout=CONNECT_SECONDS)
            return _Fleet(client, archive, say).measure(machines, wait)
    except (OSError, RuntimeError, TypeError, ValueError, CancelledError) as error:
        raise GccostError(
            f"the scheduler cannot be reached: {error}",
            scheduler,
            f"start it with: dask scheduler --host 127.0.0.1; {_RESUME}",
        ) from None
