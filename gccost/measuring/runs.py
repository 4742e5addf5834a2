"""Run folders: where samples are kept as they are measured, and found again.

A run is a folder: `run.json` (the machine, the programs, how measuring ended) and
`samples.txt`, one pool of samples for all studies in the Go benchmark format. It is
only ever appended to, a whole line at a time, so a run that is killed at any moment
keeps what it recorded and goes on from there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gccost.errors import GccostError
from gccost.files import write_whole, writing
from gccost.measuring import benchfmt
from gccost.measuring.benchfmt import Reading

FORMAT = 2  # of run.json: any other is refused

# What run.json must be like, as far as it is read: a type; a list of such; or
# names with their values, where "*" is any name and one with "?" may be missing.
# In a tuple stands what may be null too.
_SUMMARY = {"because": str, "rounds": int, "samples": int, "seconds": float}
_MACHINE = {
    "cpu?": str,
    "release?": str,
    "allowed_cpus?": int,
    "cpu_quota?": (float,),
    "memory?": int,
    "memory_limit?": (int,),
}
_SHAPE = {
    "created": str,
    "fingerprint": str,
    "machine": _MACHINE,
    "warnings": [str],
    "scale": float,
    "method": str,
    "seed": int,
    "programs": {"*": str},
    "compilers": {"*": str},
    "random_layout": {"*": bool},
    "missing": {"*": str},
    "failed": {"*": [str]},
    "troubles": {"*": [str]},
    "finished": {"*": {**_SUMMARY, "studies": [str], "share_in_loops": float}},
    "done?": [str],
    "recorded?": int,
    "shell?": {"*": {"command": str, "output": str, "date": str}},
}
# What a run begins without, by program, release or case.
_BY_NAME = (
    *("programs", "compilers", "random_layout", "missing", "failed", "troubles", "finished"),
)
_KINDS = {
    bool: "true or false",
    str: "text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}
_RESTORE = "restore the file, or move the run folder away and measure again"


@dataclass(frozen=True)
class Run:
    """One run folder."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def manifest(self) -> dict[str, Any]:
        """What `run.json` says; GccostError if it cannot be used."""
        path = self.folder / "run.json"
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            json.dumps(manifest, ensure_ascii=False).encode()  # half a surrogate cannot be shown
        except OSError as error:
            raise GccostError(
                f"the run cannot be read: {error.strerror}", str(path), "name a run folder"
            ) from None
        except (ValueError, RecursionError) as error:
            raise GccostError(f"this is not JSON: {error}", str(path), _RESTORE) from None
        if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
            raise GccostError("this is not the description of a run", str(path), _RESTORE)
        if manifest["format"] != FORMAT:
            older = manifest["format"] < FORMAT
            raise GccostError(
                f"the run has format {manifest['format']}, this gccost reads format {FORMAT}",
                str(path),
                "its samples have no slices and cannot be judged any more: remove the folder and "
                "measure again"
                if older
                else "read it with the gccost that wrote it, or a newer one",
            )
        if misfit := next(_misfits(manifest, _SHAPE, "it"), ""):
            raise GccostError(f"this describes no run: {misfit}", str(path), _RESTORE)
        return manifest

    def update(self, **facts: Any) -> None:
        """Set facts in the manifest."""
        self._write(self.manifest() | facts)

    def keep_shell(self, name: str, command: str, output: str) -> None:
        """Keep what a command printed, with the date, so that replay can show it."""
        manifest = self.manifest()
        manifest.setdefault("shell", {})[name] = {
            "command": command,
            "output": output,
            "date": now(),
        }
        self._write(manifest)

    def _write(self, manifest: dict[str, Any]) -> None:
        text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        write_whole(self.folder / "run.json", text.encode())

    def holds(self, study: str) -> bool:
        """Whether a study was measured to the end of a budget."""
        return any(study in done["studies"] for done in self.manifest()["finished"].values())

    @property
    def samples(self) -> Path:
        """The file with the samples; it may not exist yet."""
        return self.folder / "samples.txt"

    def reading(self) -> Reading:
        """The samples; read anew only where the file has changed."""
        state = self.samples.stat()
        return _read(self.samples, state.st_mtime_ns, state.st_size)

    def profile(self, case: str, round_: int) -> Path:
        """The file for the CPU profile of one sample (pprof's own format)."""
        return self.folder / "profiles" / f"{_in_a_file(case)}-{round_:03d}.pb.gz"

    def profiles(self, case: str) -> dict[int, Path]:
        """The profiles of a case by round, in order."""
        found = self.folder.glob(f"profiles/{_in_a_file(case)}-*.pb.gz")
        rounds = {p.name.removesuffix(".pb.gz").rpartition("-")[2]: p for p in sorted(found)}
        return {int(number): path for number, path in rounds.items() if number.isdecimal()}

    def gctrace(self, case: str) -> Path:
        """The file for what a case's first sample wrote with gctrace=1 (gzipped)."""
        return self.folder / "gctraces" / f"{_in_a_file(case)}.txt.gz"

    def slices(self, case: str) -> Path:
        """The file with the ns/op of every slice of a case's first sample, where it was kept."""
        return self.folder / "slices" / f"{_in_a_file(case)}.txt"

    def append(self, lines: Iterable[str]) -> None:
        """Add whole lines to the samples, safely on disk when it returns."""
        path = self.samples
        data = "".join(line + "\n" for line in lines).encode()
        with writing(path):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                end = os.fstat(handle).st_size
                try:
                    while data:  # of a disk that is all but full, a write takes a part
                        data = data[os.write(handle, data) :]
                    os.fsync(handle)
                except OSError:
                    with suppress(OSError):
                        os.ftruncate(handle, end)  # no half a line stays
                    raise
            finally:
                os.close(handle)

    def drop_after(self, size: int, cases: Iterable[str]) -> None:
        """Drop the samples of cases that stand behind the first `size` bytes, and no others."""
        data = self.samples.read_bytes()
        names = tuple(f"{benchfmt.PREFIX}{case}".encode() for case in cases)
        lines = data[max(size, 0) :].splitlines(keepends=True)
        kept = b"".join(line for line in lines if not line.startswith(names))
        if data[max(size, 0) :] != kept:
            write_whole(self.samples, data[: max(size, 0)] + kept)

    def drop_unfinished_line(self) -> None:
        """Cut off a last line that a killed run had not finished writing."""
        if not self.samples.exists():
            return
        data = self.samples.read_bytes()
        if data and not data.endswith(b"\n"):
            with writing(self.samples):
                os.truncate(self.samples, data.rfind(b"\n") + 1)


@lru_cache(maxsize=8)
def _read(path: Path, changed: int, size: int) -> Reading:
    del changed, size  # another state of the file is another reading
    return benchfmt.read(path)


def _in_a_file(case: str) -> str:
    """A case's name as a part of a file's: AllocateAuto,go=1.27.4,gogc=100,…"""
    return case.replace("/", ",")


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def all_runs(folder: Path) -> list[Run]:
    """The runs in a folder that can be read, oldest first by name."""
    return [run for run, fault in _look_at(folder) if fault is None]


def passed_over(folder: Path) -> tuple[str, ...]:
    """A sentence on each run in a folder that cannot be read."""
    return tuple(
        f"The run {run.name} is passed over: {fault.thing}. To mend it: {fault.mend}."
        for run, fault in _look_at(folder)
        if fault is not None
    )


def _look_at(folder: Path) -> Iterator[tuple[Run, GccostError | None]]:
    """Every run in a folder, with what is wrong with its description."""
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*/run.json")):
        run = Run(path.parent)
        try:
            run.manifest()
        except GccostError as fault:
            yield run, fault
        else:
            yield run, None


def _misfits(value: Any, shape: Any, name: str) -> Iterator[str]:
    """What in a value is not of a shape (see _SHAPE)."""
    if isinstance(shape, tuple):
        if value is not None:
            yield from (f"{misfit} or null" for misfit in _misfits(value, shape[0], name))
        return
    kind = type(shape) if isinstance(shape, list | dict) else shape
    fits = isinstance(value, kind) if kind is not float else _is_amount(value)
    if not fits:
        yield f"{name} is not {_KINDS[kind]}"
    elif kind is list:
        for entry in value:
            yield from _misfits(entry, shape[0], f"an entry of {name}")
    elif kind is dict:
        for key, of in shape.items():
            known = key.removesuffix("?")
            if key == "*":
                for each, entry in value.items():
                    yield from _misfits(entry, of, each)
            elif known in value:
                yield from _misfits(value[known], of, known)
            elif known == key:
                yield f"{name} has no {key}"


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1e18


def create(
    folder: Path,
    *,
    machine: dict[str, Any],
    fingerprint: str,
    warnings: list[str],
    method: str = "",
    seed: int = 0,
    scale: float = 1.0,
) -> Run:
    """A new run folder, named by the date and the machine."""
    created = now()
    stem = f"{created[:19].replace(':', '').replace('-', '')}-{fingerprint[:6]}"
    path, number = folder / stem, 1
    with writing(path):
        while True:
            try:
                path.mkdir(parents=True)
                break
            except FileExistsError:  # two in one second
                number += 1
                path = folder / f"{stem}-{number}"
    run = Run(path)
    run._write(
        {
            "format": FORMAT,
            "created": created,
            "machine": machine,
            "fingerprint": fingerprint,
            "warnings": warnings,
            "scale": scale,
            "method": method,
            "seed": seed,
            **{name: {} for name in _BY_NAME},
        }
    )
    return run


@contextmanager
def exclusive(folder: Path, doing: str) -> Iterator[None]:
    """Hold a folder for this process; GccostError if another one holds it."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise GccostError(
                f"another gccost is {doing} here; this one leaves it alone",
                str(folder),
                "wait until it is done, or stop it, and start again",
            ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A place for what is not kept, in a folder that this process holds (see `exclusive`).

    Nowhere else, so that what a killed process left there is found again and removed.
    """
    place = folder / ".scratch"
    shutil.rmtree(place, ignore_errors=True)
    with writing(place):
        place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
