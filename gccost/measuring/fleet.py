"""A campaign on many machines, as tasks of Dask workers that each have a pack.

Each machine gets a campaign and a folder of runs of its own, in a thread of this process: it
is an ordinary campaign whose samples are taken elsewhere. A sample is a task that is bound to
a worker and takes its only `bench` resource, so no two samples share a machine. If the worker
dies, its thread ends; when it or another worker of the machine arrives, a new thread resumes
the run, beginning with the sample that was lost.

The task hands the request to the pack's own sampler (`packed.serve`), so a worker needs
Dask and the pack, and no package of ours.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures import Future as Job
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, cast

import msgspec
from distributed import Client, Future, KilledWorker, Security, get_worker

from gccost import paths
from gccost.errors import DiskFull, GccostError
from gccost.files import write_whole
from gccost.measuring import benchfmt, campaign, packed, runs
from gccost.measuring.benchfmt import Sample
from gccost.measuring.campaign import GIVE_UP
from gccost.measuring.cases import Case
from gccost.measuring.manifest import MANIFEST
from gccost.measuring.progress import PrintedProgress
from gccost.measuring.runs import Run
from gccost.measuring.sampler import TRACE, SampleFailed
from gccost.measuring.schema import fault

BENCH = "bench"
MOST_WORKERS = 10_000
MOST_FILE = 16 << 20  # bytes of a profile or a gctrace
_MOST_MEMORY = 256 << 20  # bytes, to unpack a pack
_MOST_START = 8 << 20  # bytes of a pack that hold pack.json
CONNECT_SECONDS = 10
POLL_SECONDS = 0.5  # between looks at which workers there are
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_OFFER = f"start it with: dask worker ADDRESS --nthreads 1 --resources {BENCH}=1"
_SAVED = "completed samples are saved"
_RESUME_WITHOUT = f"start a worker of this version there; {_SAVED}"
_RESUME = f"{_SAVED}, and the same command resumes"

Request = Mapping[str, str]


Line = Annotated[str, msgspec.Meta(max_length=1000)]
Text = Annotated[str, msgspec.Meta(max_length=100_000)]


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """What a worker answers: why not, or its machine, or a sample; see `packed.serve`."""

    lacks: Line = ""
    refused: Text = ""
    boot: Line = ""
    fingerprint: Line = ""
    host: Line = ""
    pack: Line = ""
    described: dict[str, Any] = {}
    lacking: dict[Line, Text] = {}
    failed: Text = ""
    line: Text = ""
    files: dict[Line, Annotated[bytes, msgspec.Meta(max_length=MOST_FILE)]] = {}


class WorkerLost(GccostError):
    """A worker went away; another one may take its place."""


class Lied(GccostError):
    """A worker's answer cannot be true, so the worker is dropped."""

    def __init__(self, why: str, worker: str) -> None:
        super().__init__(f"the worker is dropped: {why}", worker, _RESUME_WITHOUT)


# --- On a worker ------------------------------------------------------------------------


def take(mark: str, request: Request | None, archive: bytes | None) -> Any:
    """Pass a request to the sampler of the pack on this worker, and return its answer.

    Without a request, starts the sampler, which describes the machine. The pack is the folder
    that GCCOST_PACK names, or the archive, unpacked. Answers {"lacks": ...} if there is none.
    """
    worker: Any = get_worker()
    samplers: dict[str, Any] = vars(worker).setdefault("gccost_samplers", {})
    sampler: Any = samplers.get(mark)
    if request is None:
        if sampler is not None:  # of an earlier campaign
            samplers.pop(mark).communicate()
        own = Path(worker.local_directory, f"gccost-{mark}")
        folder = Path(os.environ.get("GCCOST_PACK") or own / "gccost-pack")
        if not (folder / "run").exists():
            if archive is None:
                return {"lacks": "the pack"}
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(own, filter="data")
        samplers[mark] = sampler = subprocess.Popen(
            ["/bin/sh", folder / "run", "--serve"],  # by sh: it says what noexec means
            env={"PYTHON": sys.executable, **os.environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    elif sampler is None:
        return {"lacks": "the sampler"}
    else:
        sampler.stdin.write(json.dumps(request) + "\n")
        sampler.stdin.flush()
    return json.loads(sampler.stdout.readline() or '{"refused": "the sampler ended"}')


take.__module__ = "__main__"  # so that it is pickled with its code: a worker has no gccost


# --- Here ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class FleetPlan(packed.PackedPlan):
    """A pack's plan for another machine, where `ask` takes a sample of a case's program."""

    place: Path = Path()
    ask: Callable[[Request], Answer] = lambda request: Answer()

    @property
    def folder(self) -> Path:
        return self.place

    def sample(self, binary: Path, case: Case, scratch: Path, profile: Path | None) -> Sample:
        answer = self.ask({"case": case.name, "program": binary.name})
        if answer.fingerprint != self.fingerprint:
            raise GccostError(
                "the machine's description changed while it was measured",
                self.place.name,
                f"see that its CPUs and limits stay the same; {_RESUME}",
            )
        if answer.failed:
            raise SampleFailed(answer.failed, case.name)
        sample = benchfmt.parse_line(answer.line)
        if not isinstance(sample, Sample) or (sample.full_name, sample.n) != (case.name, case.n):
            raise Lied(f"its sample is not of {case.name}: {sample}", self.place.name)
        why = "" if "elapsed-s" in sample.metrics else "it lacks its time"
        if why := why or benchfmt.implausible(sample):
            raise Lied(f"its sample of {case.name} cannot be: {why}", self.place.name)
        for path in (profile, scratch / TRACE if case.traced else None):
            if path and path.name not in answer.files:
                raise Lied(f"it sent no {path.name}", self.place.name)
            if path:
                write_whole(path, answer.files[path.name])
        return sample


class _Fleet:
    """The workers of a scheduler, and a campaign on each of their machines."""

    def __init__(self, client: Client, archive: bytes, say: Callable[[str], None]) -> None:
        self.client, self.archive, self.say = client, archive, say
        self.pack, self.mark = read(archive)
        self.asked: dict[str, Future[Any]] = {}  # by worker: the task under way
        self.at: dict[str, tuple[str, str]] = {}  # by worker: its machine's name and boot
        self.names: dict[str, str] = {}  # of machines, by boot: a worker's host may be a container
        self.died: Counter[tuple[str, Any]] = Counter()  # workers, by machine and request
        self.lock = threading.Lock()

    def submit(self, worker: str, request: Request | None, archive: Any = None) -> Answer:
        """The answer of a worker.

        Raises WorkerLost if it has gone, GccostError if it refuses, Lied if it is no answer.
        """
        try:
            if archive is not None:  # in its own message, because tasks should be small
                archive = self.client.scatter(archive, workers=[worker], hash=False)
            task = self.asked[worker] = self.client.submit(
                take,
                self.mark,
                request,
                archive,
                workers=[worker],
                resources={BENCH: 1},
                pure=False,
            )
            answer = msgspec.convert(task.result(), Answer)
        except (CancelledError, KilledWorker, TimeoutError):
            raise WorkerLost(f"the worker went away; {_SAVED}", worker) from None
        except msgspec.ValidationError as error:
            raise Lied(f"its answer cannot be read: {error}", worker) from None
        except Exception as error:  # whatever the worker raised
            raise GccostError(f"the worker failed: {error!r}", worker) from None
        finally:
            self.asked.pop(worker, None)
        if why := fault(answer.described, MANIFEST["machine"], "$.described"):
            raise Lied(f"its answer cannot be read: {why}", worker)
        if answer.refused:
            raise GccostError(answer.refused, worker)
        if answer.lacks and request is not None:
            raise WorkerLost("the worker was started anew", worker)
        return answer

    def work(self, worker: str, benches: float) -> Run:
        """Measure what the machine of a worker lacks, and return its run."""
        if benches != 1:
            raise GccostError(f"it offers {benches:g} of the resource {BENCH}", worker, _OFFER)
        found = self.submit(worker, None)
        if found.lacks:
            found = self.submit(worker, None, self.archive)
        if found.pack != self.mark:
            hint = "unpack the campaign's pack there, or do not set GCCOST_PACK"
            raise GccostError("GCCOST_PACK names another pack", worker, hint)
        name = self._enter(worker, found.host, found.boot)
        described = found.described
        if absent := {"cpu", "allowed_cpus", "architecture", "system"} - described.keys():
            raise Lied(f"it does not describe its machine: {', '.join(sorted(absent))}", worker)
        self.say(f"{name}: {described['cpu']}, {described['allowed_cpus']} CPUs")

        def ask(request: Request) -> Answer:
            which = name, request["case"]
            if self.died[which] >= GIVE_UP:
                raise SampleFailed(f"the worker died {GIVE_UP} times in this case", request["case"])
            try:
                answer = self.submit(worker, request)
            except WorkerLost:
                self.died[which] += 1
                raise
            if answer.boot != found.boot:
                raise GccostError("the worker answers for another machine now", name, _RESUME)
            return answer

        place = paths.runs() / "machines" / name
        plan = packed.plan(self.pack, described, found.lacking, FleetPlan, place=place, ask=ask)
        run = campaign.measure(plan, PrintedProgress(f"{name}: "))
        if not campaign.samples_of(run, plan):
            again = f"see why in run.json, and remove the run to measure it again: {run.folder}"
            raise GccostError("no sample succeeded", name, again)
        return run

    def _enter(self, worker: str, host: str, boot: str) -> str:
        """The name of a worker's machine, unless another worker stands for it."""
        if not _NAME.fullmatch(host):
            raise GccostError(f"the machine's name cannot name a folder: {host!r}", worker)
        with self.lock:
            name = self.names.setdefault(boot, host)
            for other, (taken, booted) in self.at.items():
                if boot == booted or name == taken:
                    same = "it is on the same machine as" if boot == booted else "it is named like"
                    raise GccostError(
                        f"{same} the worker {other}, {taken}",
                        f"{worker}, {host}",
                        "start one worker on each machine, each with a host name of its own",
                    )
            self.at[worker] = name, boot
        return name

    def offers(self) -> dict[str, float]:
        """The benches that each worker offers."""
        if self.client.status != "running":
            raise ConnectionError("the connection was lost")
        workers = self.client.scheduler_info()["workers"]
        return {name: info["resources"].get(BENCH, 0) for name, info in workers.items()}

    def measure(self, machines: int, wait: float) -> tuple[dict[str, Run], set[str]]:
        """The finished runs by machine, and the names of unfinished machines."""
        running: dict[str, Job[Run]] = {}
        settled: set[str] = set()  # workers whose machine is finished, or which are refused
        done: dict[str, Run] = {}
        busy = time.monotonic()
        with ThreadPoolExecutor(MOST_WORKERS) as pool, closing(self.client):
            while True:
                offers = self.offers()
                for worker, task in list(self.asked.items()):
                    if worker not in offers:
                        task.cancel()
                for worker in settled - offers.keys():
                    settled.remove(worker)
                    self.at.pop(worker, None)
                if not running.keys() - offers.keys():  # else another may be of the same machine
                    for worker in offers.keys() - running.keys() - settled:
                        running[worker] = pool.submit(self.work, worker, offers[worker])
                for worker in [each for each, job in running.items() if job.done()]:
                    try:
                        run = running.pop(worker).result()
                        done[run.folder.parent.name] = run
                    except WorkerLost as lost:
                        self.at.pop(worker, None)
                        self.say(str(lost))
                        continue
                    except DiskFull:
                        raise
                    except GccostError as refused:
                        self.say(str(refused))
                    except Exception as error:  # which no other machine is to pay for
                        self.say(f"{worker}: the campaign on it failed: {error!r}")
                    settled.add(worker)
                now = time.monotonic()
                busy = now if running else busy
                open_ = set(self.names.values()) - done.keys()
                gone = open_ - {name for name, _ in self.at.values()}
                if not running and (now > busy + wait or (len(done) >= machines and not gone)):
                    return done, open_
                time.sleep(POLL_SECONDS)


def read(archive: bytes) -> tuple[dict[str, Any], str]:
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
        pack: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except Exception as error:  # an archive can make tarfile raise anything
        raise GccostError(f"it is not a pack: {error}", hint="make one: gccost pack") from None
    packed.check_format(pack, "pack.json")
    return pack, hashlib.sha256(text).hexdigest()


def measure(
    scheduler: str,
    archive: bytes,
    security: Security | None,
    machines: int,
    wait: float,
    say: Callable[[str], None],
) -> tuple[dict[str, Run], set[str]]:
    """Measure on every machine that has a worker; return the finished runs and what is open.

    Ends when no machine is being measured, `machines` are finished and no worker that went
    away is missing, or when nothing has been measured for `wait` seconds.

    Raises GccostError if the archive is no pack or the scheduler cannot be reached or goes away.
    """
    read(archive)  # before anything is waited for
    try:
        with runs.exclusive(paths.runs() / "machines", "running a campaign"):
            client = Client(scheduler, security=security, timeout=CONNECT_SECONDS)
            return _Fleet(client, archive, say).measure(machines, wait)
    except (OSError, RuntimeError, TypeError, ValueError, CancelledError) as error:
        raise GccostError(
            f"the scheduler cannot be reached: {error}",
            scheduler,
            f"start it with: dask scheduler --host 127.0.0.1; {_RESUME}",
        ) from None
