"""Run folders: where samples are kept as they are measured, and found again.

A run is a folder: `run.json` (the machine, the plan, how each experiment ended)
and one file per experiment in the Go benchmark format. Result files are only
ever appended to, a whole line at a time, so a run that is killed at any moment
keeps what it recorded and goes on from there.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gccost.errors import GccostError

FORMAT = 1  # of run.json: a newer one is refused, an older one read


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
        except OSError as error:
            raise GccostError(
                f"the run cannot be read: {error.strerror}", str(path), "name a run folder"
            ) from None
        except ValueError as error:
            raise GccostError(
                f"this is not JSON: {error}",
                str(path),
                "restore the file, or move the run folder away and measure again",
            ) from None
        if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
            raise GccostError("this is not the description of a run", str(path))
        if manifest["format"] > FORMAT:
            raise GccostError(
                f"the run has format {manifest['format']}, this gccost reads up to {FORMAT}",
                str(path),
                "read it with the gccost that wrote it, or a newer one",
            )
        return manifest

    def experiment(self, name: str) -> dict[str, Any]:
        """What the manifest says of one experiment; empty if it was not measured."""
        entry = self.manifest().get("experiments", {}).get(name, {})
        return dict(entry) if isinstance(entry, dict) else {}

    def update(self, experiment: str, **facts: Any) -> None:
        """Add facts on an experiment to the manifest."""
        manifest = self.manifest()
        manifest.setdefault("experiments", {}).setdefault(experiment, {}).update(facts)
        self._write(manifest)

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
        unfinished = self.folder / "run.json.new"
        with writing(unfinished):
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(self.folder / "run.json")

    def results(self, experiment: str) -> Path:
        """The file with the samples of an experiment; it may not exist yet."""
        return self.folder / f"{experiment}.txt"

    def profile(self, experiment: str, benchmark: str, go: str, round_: int) -> Path:
        """The file for the CPU profile of one sample (pprof's own format)."""
        return self.folder / "profiles" / f"{experiment}-{benchmark}-go{go}-{round_:03d}.pb.gz"

    def profiles(self, experiment: str, benchmark: str, go: str) -> dict[int, Path]:
        """The profiles of a case by round, in order."""
        found = self.folder.glob(f"profiles/{experiment}-{benchmark}-go{go}-*.pb.gz")
        return {int(p.name.removesuffix(".pb.gz").rpartition("-")[2]): p for p in sorted(found)}

    def append(self, experiment: str, lines: Iterable[str]) -> None:
        """Add whole lines to an experiment's results, safely on disk when it returns."""
        path = self.results(experiment)
        data = "".join(line + "\n" for line in lines).encode()
        with writing(path):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                end = os.fstat(handle).st_size
                try:
                    written = os.write(handle, data)
                    if written != len(data):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(handle)
                except OSError:
                    os.ftruncate(handle, end)  # no half a line stays
                    raise
            finally:
                os.close(handle)

    def drop_unfinished_line(self, experiment: str) -> None:
        """Cut off a last line that a killed run had not finished writing."""
        path = self.results(experiment)
        if not path.exists():
            return
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            with writing(path):
                os.truncate(path, data.rfind(b"\n") + 1)


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a disk refuses into an error that names the file and the mend."""
    try:
        yield
    except OSError as error:
        mend = {
            errno.ENOSPC: "free some disk space and start again: what was measured is kept",
            errno.EDQUOT: "free some of your quota and start again: what was measured is kept",
            errno.EROFS: "name a writable folder in GCCOST_RUNS",
            errno.EACCES: "make the folder writable, or name another in GCCOST_RUNS",
        }.get(error.errno or 0, "")
        raise GccostError(f"cannot be written: {error.strerror}", str(path), mend) from None


def all_runs(folder: Path) -> list[Run]:
    """The runs in a folder, oldest first by name; none if there is no such folder."""
    if not folder.is_dir():
        return []
    return [Run(p.parent) for p in sorted(folder.glob("*/run.json"))]


def create(
    folder: Path,
    *,
    machine: dict[str, Any],
    fingerprint: str,
    warnings: list[str],
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
            "experiments": {},
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
