"""Run folders, which store samples as they are measured.

A run folder has `run.json` (the machine, the programs, how measuring ended) and
`samples.txt`, one pool of samples for all studies in the Go benchmark format. Samples are
only appended, in whole lines, so a run that is killed at any moment keeps its samples and
can be resumed.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from gccost.errors import GccostError
from gccost.files import reading, temporary, write_whole, writing
from gccost.run import benchfmt, jobtable
from gccost.run.benchfmt import Reading, Sample
from gccost.run.jobtable import RESTORE, Job
from gccost.run.manifest import MANIFEST, Manifest
from gccost.run.schema import LONGEST, UNSEEN, fault

T = TypeVar("T")
_MAY_READ = "see that you may read this folder"
# Sampling-protocol version; changing it invalidates unfinished runs.
METHOD = "sittings, plain loops, one pool"
FORMAT = 4  # of the folder; other formats are rejected

# The initially empty fields of a run.
_BY_NAME = ("programs", "compilers", "random_layout", "missing", "failed", "troubles", "finished")


def cached(function: Callable[[Run], T]) -> Callable[[Run], T]:
    """A function of a run whose result is kept until its samples, jobs or ratios change."""

    @lru_cache(maxsize=8)
    def kept(folder: Path, *state: int) -> T:
        return function(Run(folder))

    def current(run: Run) -> T:
        state = []
        for path in (run.samples_txt, run.jobs_csv, run.ratios_csv):
            if path.exists():
                stat = path.stat()
                state += [stat.st_mtime_ns, stat.st_size]
        return kept(run.folder, *state)

    return current


@lru_cache(maxsize=32)
def _fault(manifest: bytes) -> str:
    """What is wrong with a manifest; it is asked for again and again."""
    return fault(json.loads(manifest), MANIFEST, "manifest")


@dataclass(frozen=True)
class Run:
    """One run folder."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def manifest(self) -> Manifest:
        """Read `run.json`. Raises GccostError if it is unusable."""
        path = self.folder / "run.json"
        if not path.is_file():
            hint = "name a run's folder; unpack an archive first"
            raise GccostError("the run cannot be read", str(path), hint)
        with reading(path, RESTORE):
            written_as = path.read_bytes()
            manifest: Any = json.loads(written_as)
        written = manifest.get("format") if isinstance(manifest, dict) else None
        if isinstance(written, int) and written != FORMAT:
            hint = "read it with the gccost that wrote it, or a newer one"
            if written < FORMAT:
                hint = "move the folder away and measure again; that format has no table of jobs"
            problem = f"the run has format {written}, this gccost reads format {FORMAT}"
            raise GccostError(problem, str(path), hint)
        if problem := _fault(written_as):
            raise GccostError(problem, str(path), RESTORE)
        return dict(manifest)

    @property
    def days(self) -> list[str]:
        """The dates on which its sittings began, in UTC, such as 2026-11-26."""
        begun = [sitting["began"] for sitting in self.manifest()["sittings"]]
        return sorted({moment[:10] for moment in begun})

    def update(self, **facts: Any) -> None:
        """Set fields of the manifest."""
        self._write(self.manifest() | facts)

    def store_shell(self, name: str, command: str, output: str) -> None:
        """Store a command's output, with the date, so that replay can show it."""
        shell = self.manifest().get("shell", {})
        shell[name] = {"command": command, "output": output, "date": now()}
        self.update(shell=shell)

    def sit(self, budget: str, studies: Iterable[str]) -> int:
        """Begin a sitting, or go on with one that was interrupted; return its number, from 1."""
        sittings = list(self.manifest()["sittings"])
        if not sittings or sittings[-1]["because"]:
            sittings.append({"began": now(), "studies": []})
        last = sittings[-1]
        last["budget"] = budget
        last["studies"] = sorted({*last["studies"], *studies})
        last["because"] = ""
        self.update(sittings=sittings)
        return len(sittings)

    def finish(self, name: str, because: str, studies: Iterable[str]) -> None:
        """Store why measuring at a budget ended, and its sitting.

        The digests of the files show whether they were changed afterwards.
        """
        manifest = self.manifest()
        finished, sittings = manifest["finished"], manifest["sittings"]
        if sittings and sittings[-1]["budget"] == name:
            sittings[-1]["because"] = because
        names = {*studies}
        if name in finished:
            names.update(finished[name]["studies"])
        finished[name] = {"because": because, "studies": sorted(names), "date": now()}
        self.update(finished=finished, sittings=sittings, digests=self._digests())

    def altered(self) -> list[str]:
        """The files that have changed since measuring ended, or whose digests are missing.

        A folder's name stands for its compressed files, which show by themselves if they
        are damaged.
        """
        manifest = self.manifest()
        recorded = manifest.get("digests", {})
        digests = self._digests()
        digests["run.json"] = _digest_of(manifest)
        names = recorded.keys() | digests.keys()
        return sorted(name for name in names if recorded.get(name) != digests.get(name))

    def _digests(self) -> dict[str, str]:
        files = []
        for pattern in ("jobs.csv", "samples.txt", "profiles/*.gz", "gctraces/*.gz"):
            for path in sorted(self.folder.glob(pattern)):
                stat = path.stat()
                files.append((path, stat.st_mtime_ns, stat.st_size))
        return dict(_digests(tuple(files)))

    def _write(self, manifest: Manifest) -> None:
        manifest = _seen(manifest)
        if problem := fault(manifest, MANIFEST, "manifest"):  # it could not be read again
            raise GccostError(f"this cannot be stored: {problem}", str(self.folder))
        if digests := manifest.get("digests"):
            digests["run.json"] = _digest_of(manifest)
        text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False)
        write_whole(self.folder / "run.json", f"{text}\n".encode())

    @property
    def studies(self) -> list[str]:
        """The studies that are complete at some budget."""
        names: set[str] = set()
        for ending in self.manifest()["finished"].values():
            names.update(ending["studies"])
        return sorted(names)

    @property
    def last_measured(self) -> str:
        """When its last sitting began."""
        manifest = self.manifest()
        sittings = manifest["sittings"]
        return str(sittings[-1]["began"] if sittings else manifest["created"])

    @property
    def jobs_csv(self) -> Path:
        """The table of jobs that the samples name; see `gccost.cases.jobs`."""
        return self.folder / "jobs.csv"

    @property
    def ratios_csv(self) -> Path:
        """The ratios that the run's claims are about; it may not exist."""
        return self.folder / "ratios.csv"

    @property
    def samples_txt(self) -> Path:
        """The file with the samples; it may not exist yet."""
        return self.folder / "samples.txt"

    @cached
    def table(self) -> dict[str, Job]:
        """The jobs by name. Raises GccostError."""
        return jobtable.read(self.jobs_csv)

    @cached
    def reading(self) -> Reading:
        """Read the samples."""
        return benchfmt.read(self.samples_txt)

    @cached
    def unusable(self) -> dict[int, str]:
        """Why samples cannot be used, by line: they contradict their job, are implausible, or
        are there twice, which would narrow an interval.
        """
        table = self.table()
        reasons: dict[int, str] = {}
        lines: dict[tuple[Any, ...], int] = {}
        for line, sample in self.reading().samples.items():
            name = sample.full_name
            job = table.get(name)
            first = lines.setdefault((name, *sample.metrics.values()), line)
            if job is None:
                reasons[line] = f"no job of jobs.csv is named {sample.full_name}"
            elif job["n"] not in (0, sample.n):
                reasons[line] = f"the sample has {sample.n} operations, and its job has {job['n']}"
            elif reason := benchfmt.implausible(sample):
                reasons[line] = reason
            elif first != line:
                reasons[line] = f"this is the sample of line {first} again"
        return reasons

    def profile(self, case: str, round_: int) -> Path:
        """The file for the CPU profile of one sample (pprof's own format)."""
        return self.folder / "profiles" / f"{_in_a_file(case)}-{round_:03d}.pb.gz"

    def profiles(self, case: str) -> dict[int, Path]:
        """The profiles of a case by round, in order."""
        profiles = {}
        for path in sorted(self.folder.glob(f"profiles/{_in_a_file(case)}-*.pb.gz")):
            _, _, number = path.name.removesuffix(".pb.gz").rpartition("-")
            if number.isdecimal():
                profiles[int(number)] = path
        return profiles

    def gctrace(self, case: str) -> Path:
        """The file for the gctrace of a case's first sample (gzipped)."""
        return self.folder / "gctraces" / f"{_in_a_file(case)}.txt.gz"

    def append(self, lines: Iterable[str]) -> None:
        """Append whole lines to the samples, and sync them to disk."""
        path = self.samples_txt
        data = "".join(line + "\n" for line in lines).encode()
        with writing(path):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                end = os.fstat(handle).st_size
                try:
                    while data:  # on a nearly full disk a write may be partial
                        data = data[os.write(handle, data) :]
                    os.fsync(handle)
                except OSError:
                    with suppress(OSError):
                        os.ftruncate(handle, end)  # remove a partial line
                    raise
            finally:
                os.close(handle)

    def archive(self) -> Path:
        """Write the run as an archive next to its folder, and return the archive."""
        archive = self.folder.with_name(f"{self.name}.tar.gz")
        new = archive.with_name(f".{archive.name}.new")
        with writing(archive):
            with tarfile.open(new, "w:gz") as tar:
                tar.add(self.folder, self.name)
            new.replace(archive)
        return archive

    def drop_unfinished_line(self) -> None:
        """Remove a partial last line, left by a killed run."""
        if not self.samples_txt.exists():
            return
        data = self.samples_txt.read_bytes()
        if data and not data.endswith(b"\n"):
            with writing(self.samples_txt):
                os.truncate(self.samples_txt, data.rfind(b"\n") + 1)


def _seen(value: Any) -> Any:
    """A value of a manifest whose texts have no unseen characters; see `manifest`."""
    if isinstance(value, str):
        return UNSEEN.sub("\N{REPLACEMENT CHARACTER}", value)[:LONGEST]
    if isinstance(value, dict):
        return {_seen(name): _seen(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_seen(inner) for inner in value]
    return value


@lru_cache(maxsize=8)
def _digests(files: tuple[tuple[Path, int, int], ...]) -> Mapping[str, str]:
    """The digests of a run's files, each with its time and size; a folder's is of all in it.

    Each study of a run asks for them.
    """
    contents: dict[str, bytes] = {}
    for path, _, _ in files:
        name, data = path.name, path.read_bytes()
        if path.suffix == ".gz":
            line = f"{path.parent.name}/{name} {_digest(data)}\n"
            name = path.parent.name
            data = contents.get(name, b"") + line.encode()
        contents[name] = data
    return {name: _digest(data) for name, data in contents.items()}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_of(manifest: Manifest) -> str:
    rest = {name: value for name, value in manifest.items() if name != "digests"}
    return _digest(json.dumps(rest, sort_keys=True).encode())


def _in_a_file(case: str) -> str:
    """A case's name for use in a file name: AllocateAuto,go=1.27.4,gogc=100,…"""
    return case.replace("/", ",")


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(samples: Iterable[Sample]) -> float:
    """The seconds that samples took, including their builds."""
    return sum(s.metrics.get("elapsed-s", 0.0) + s.metrics.get("build-s", 0.0) for s in samples)


def all_runs(folder: Path) -> list[Run]:
    """The readable runs in a folder, oldest first by name."""
    return [run for run, fault in _look_at(folder) if fault is None]


def skipped(folder: Path) -> tuple[str, ...]:
    """A sentence on each run in a folder that is skipped because it cannot be read."""
    sentences = []
    for run, error in _look_at(folder):
        if error is not None:
            name = Path(error.location).name
            reason = f"{name}: {error.message}. To fix it: {error.hint}"
            sentences.append(f"The run {run.name} is skipped: {reason}.")
    return tuple(sentences)


def changed(run: Run) -> tuple[str, ...]:
    """A sentence on each file of a recorded run that has changed since measuring ended."""
    return tuple(
        f"{name} of the run {run.name} was changed after measuring ended. To fix it: {RESTORE}."
        for name in run.altered()
    )


def _look_at(folder: Path) -> Iterator[tuple[Run, GccostError | None]]:
    """Every run in a folder, with the error of an unreadable manifest or table of jobs."""
    if not folder.is_dir():
        return
    with reading(folder, _MAY_READ):
        paths = sorted(path for path in folder.iterdir() if path.is_dir())
    for path in paths:
        run = Run(path)
        try:
            with reading(path, _MAY_READ):
                if path / "run.json" not in [*path.iterdir()]:
                    continue
            run.manifest()
            if run.samples_txt.exists():  # or measuring has only begun
                run.table()
        except GccostError as fault:
            yield run, fault
        else:
            yield run, None


def create(
    folder: Path,
    *,
    machine: dict[str, Any],
    fingerprint: str,
    method: str = "",
    seed: int = 0,
    scale: float = 1.0,
) -> Run:
    """Create a run folder, named by the date and the machine."""
    created = now()
    stem = f"{created[:19].replace(':', '').replace('-', '')}-{fingerprint[:6]}"
    run = Run(folder / stem)
    with writing(run.folder):
        folder.mkdir(parents=True, exist_ok=True)
        for number in count(2):
            try:
                run.folder.mkdir()
                break
            except FileExistsError:  # another run in the same second
                run = Run(folder / f"{stem}-{number}")
    run._write(
        {
            "format": FORMAT,
            "created": created,
            "machine": machine,
            "fingerprint": fingerprint,
            "scale": scale,
            "method": method,
            "seed": seed,
            "sittings": [],
            **{name: {} for name in _BY_NAME},
        }
    )
    return run


@contextmanager
def exclusive(folder: Path, doing: str) -> Iterator[None]:
    """Lock a folder for this process. Raises GccostError if another process has it."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise GccostError(
                f"another gccost is {doing} here",
                str(folder),
                "wait until it is done, or stop it, and start again",
            ) from None
    try:
        yield
    finally:
        lock.release()


def scratch(folder: Path) -> AbstractContextManager[Path]:
    """A temporary folder within a folder that this process has locked (see `exclusive`)."""
    return temporary(folder / ".scratch")
