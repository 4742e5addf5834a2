"""Runs that came from elsewhere: copied with limits, and checked before anything uses them."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from gccost import processes
from gccost.errors import GccostError
from gccost.files import temporary, writing
from gccost.measuring import benchfmt, machine, unpack
from gccost.measuring.runs import Run
from gccost.measuring.unpack import MOST_SECONDS, Refused

AGAIN = "copy it again from the machine that measured it"
MOST_UNITS = 600  # of a run's samples; those of all studies have 300
MOST_BYTES = 16 << 20  # of a file, unpacked; a run of all studies has 6 MiB
FOLDERS = ("profiles", "gctraces")
_FILE = re.compile(
    r"run\.json|jobs\.csv|samples\.txt|"
    r"profiles/[\w.,=+-]+\.pb\.gz|gctraces/[\w.,=+-]+\.txt\.gz",
    re.ASCII,
)
_NAME = re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}(-\d+)?", re.ASCII)


def copied(source: Path, into: Path) -> Run:
    """A copy of a run's folder, or of the run in an archive, below the folder `into`.

    Only the files of a run are copied. Raises GccostError if there is anything else, or too much.
    """
    try:
        with temporary(into / "extracted") as extracted:
            folder = source.resolve() if source.is_dir() else _extracted(source, extracted)
            for path in _files(folder):
                target = into / folder.name / path.relative_to(folder)
                with writing(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)
    except Refused as why:
        run = "name a run, such as data/runs/20261122T175855-4b5c7f, or its archive"
        raise GccostError(str(why), str(source), f"{run}; if it is damaged, {AGAIN}") from None
    return Run(into / folder.name)


def _extracted(archive: Path, into: Path) -> Path:
    """The folder in an archive, which is extracted by a process with limits."""
    if not archive.is_file():
        raise Refused("it is neither a folder nor a file")
    command = [sys.executable, "-IS", unpack.__file__, str(archive.resolve()), str(into)]
    try:
        done = processes.run(command, limit=2 * MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise Refused(f"reading it takes more than {2 * MOST_SECONDS} s") from None
    if done.returncode > 1:
        with writing(into):
            raise OSError(done.returncode, os.strerror(done.returncode))
    if done.returncode:
        raise Refused(done.stdout.strip() or f"reading it takes over {MOST_SECONDS} s of CPU")
    folders = sorted(into.iterdir())
    if len(folders) != 1:
        raise Refused(f"it holds {len(folders)} folders, not a run's")
    return folders[0]


def _files(folder: Path) -> list[Path]:
    """The files of a run's folder. Raises Refused if anything else is in it."""
    if not _NAME.fullmatch(folder.name):
        raise Refused(f"{folder.name!a} is not the name of a run")
    files = []
    for path in folder.rglob("*"):
        name, mode = path.relative_to(folder).as_posix(), path.lstat().st_mode
        if stat.S_ISREG(mode) and _FILE.fullmatch(name):
            _check_size(path)
            files.append(path)
        elif not (stat.S_ISDIR(mode) and name in FOLDERS):
            raise Refused(f"it holds {name!a}, which is not part of a run")
    return files


def _check_size(path: Path) -> None:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            size = len(file.read(MOST_BYTES + 1))
    except (OSError, EOFError, zlib.error) as error:
        raise Refused(f"{path.name} is damaged: {error}") from None
    if size > MOST_BYTES:
        raise Refused(f"{path.name} unpacks to more than {MOST_BYTES >> 20} MiB")


def faults(run: Run) -> Iterator[str]:
    """What is wrong with a run, whatever it measured; a sentence each.

    Raises GccostError if its manifest is unusable.
    """
    manifest = run.manifest()
    stem = f"{re.sub('[-:Z]', '', manifest['created'])}-{manifest['fingerprint'][:6]}"
    if machine.fingerprint(manifest["machine"]) != manifest["fingerprint"] or stem != run.name[:22]:
        yield "its fingerprint does not match its machine: run.json was changed"
    if not run.samples_txt.exists():
        yield "it holds no samples"
        return
    if manifest["finished"] and (changed := run.altered()):
        yield f"{', '.join(changed)} was changed after measuring ended"
    if (
        len({unit for sample in run.reading().samples.values() for unit in sample.metrics})
        > MOST_UNITS
    ):
        yield f"its samples have more than {MOST_UNITS} units"
    yield from unusable(run)


def unusable(run: Run) -> Iterator[str]:
    """What is wrong with a run's samples, whatever they measured; a sentence for each."""
    reading = run.reading()
    for problem in reading.errors:
        yield f"a line of its samples is damaged: samples.txt:{problem.line}: {problem.why}"
    for line, sample in reading.samples.items():
        if why := benchfmt.implausible(sample):
            yield f"samples.txt:{line}: {why}"
