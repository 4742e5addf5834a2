"""Runs that came from elsewhere: copied, and checked before anything uses them.

Only files that a run has are copied, by their names, and no more bytes than a limit. tarfile's
filter for strangers' archives, which Python 3.11.2 lacks, is not needed: tarfile extracts nothing.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from gccost.errors import GccostError
from gccost.files import writing
from gccost.run.manifest import fingerprint
from gccost.run.runs import Run

AGAIN = "copy it again from the machine that measured it"
MOST_BYTES = 128 << 20  # of a run, unpacked; one of all studies has 20 MiB
MOST_UNITS = 600  # of a run's samples; those of all studies have 300
_RUN = re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}(-\d+)?", re.ASCII)
_FILE = re.compile(
    r"run\.json|jobs\.csv|ratios\.csv|samples\.txt|"
    r"profiles/[\w.,=+-]+\.pb\.gz|gctraces/[\w.,=+-]+\.txt\.gz",
    re.ASCII,
)
_FOLDERS = ("", "profiles", "gctraces")


class Refused(Exception):
    """Why an archive or a folder is refused."""


def copied(source: Path, into: Path) -> Run:
    """A copy of a run's folder, or of the run in a `.tar.gz`, below the folder `into`.

    Raises GccostError if there is anything else than a run's files, or too much.
    """
    try:
        name, files = _files(source)
    except Refused as why:
        hint = "name a run, such as data/runs/20261122T175855-4b5c7f, or its archive"
        raise GccostError(str(why), str(source), f"{hint}; if it is damaged, {AGAIN}") from None
    run = Run(into / name)
    for inner, data in files.items():
        path = run.folder / inner
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return run


def _files(source: Path) -> tuple[str, dict[str, bytes]]:
    """A run's name, and its files by name. Raises Refused."""
    files: dict[str, bytes] = {}
    run, left, seen = "", MOST_BYTES, set[str]()
    try:
        with tarfile.open(fileobj=io.BytesIO(_tar(source)), mode="r:") as tar:
            for member in tar:
                folder, _, inner = member.name.partition("/")
                run = run or folder
                is_file = member.isreg() and not member.issparse() and _FILE.fullmatch(inner)
                if not (is_file or (member.isdir() and inner in _FOLDERS)) or member.size < 0:
                    what = inner or member.name
                    raise Refused(f"it holds {what!a}, which is not part of a run")
                if not _RUN.fullmatch(run):
                    raise Refused(f"{run!a} is not the name of a run")
                if folder != run:
                    raise Refused(f"it holds {member.name!a}, which is of another run")
                if member.name in seen:
                    raise Refused(f"it holds {member.name!a} twice")
                seen.add(member.name)
                if content := is_file and tar.extractfile(member):
                    files[inner] = content.read()
                    left -= _unpacked(inner, files[inner], left)
    except Refused:
        raise
    except Exception as error:  # an archive can make tarfile raise anything
        why = ascii(str(error))[1:-1][:200]
        raise Refused(f"it is not an archive of a run: {why}") from None
    if not run:
        raise Refused("it holds nothing")
    return run, files


def _tar(source: Path) -> bytes:
    """A run's folder, or the run in a compressed archive, as an archive. Raises Refused."""
    if source.is_dir():
        folder, stream = source.resolve(), io.BytesIO()
        if sum(path.lstat().st_size for path in folder.rglob("*")) > MOST_BYTES:
            raise _too_much()
        with tarfile.open(fileobj=stream, mode="w") as tar:
            tar.add(folder, folder.name)
        return stream.getvalue()
    if not source.is_file():
        raise Refused("it is neither a folder nor a file")
    with gzip.open(source) as file:
        try:
            data = file.read(MOST_BYTES + 1)
        except gzip.BadGzipFile:
            raise Refused("it is not an archive of a run, which is a .tar.gz") from None
    if len(data) > MOST_BYTES:
        raise _too_much()
    return data


def _unpacked(name: str, data: bytes, limit: int) -> int:
    """The bytes in a compressed file; 0 for another one. Raises Refused if there are too many."""
    if not name.endswith(".gz"):
        return 0
    try:
        size = len(gzip.GzipFile(fileobj=io.BytesIO(data)).read(limit + 1))
    except Exception as error:  # of the file's format
        raise Refused(f"{Path(name).name} is damaged: {error}") from None
    if size > limit:
        raise _too_much()
    return size


def _too_much() -> Refused:
    return Refused(f"it unpacks to more than {MOST_BYTES >> 20} MiB")


def faults(run: Run) -> Iterator[str]:
    """What is wrong with a run, whatever it measured; a sentence each.

    Raises GccostError if its manifest or its table of jobs is unusable.
    """
    manifest = run.manifest()
    stem = f"{re.sub('[-:Z]', '', manifest['created'])}-{manifest['fingerprint'][:6]}"
    if fingerprint(manifest["machine"]) != manifest["fingerprint"] or stem != run.name[:22]:
        yield "its fingerprint does not match its machine: run.json was changed"
    if not run.samples_txt.exists():
        yield "it holds no samples"
        return
    if manifest["finished"] and (changed := run.altered()):
        yield f"{', '.join(changed)} was changed after measuring ended"
    reading = run.reading()
    samples = reading.samples.values()
    if len({unit for sample in samples for unit in sample.metrics}) > MOST_UNITS:
        yield f"its samples have more than {MOST_UNITS} units"
    for problem in reading.errors:
        yield f"a line of its samples is damaged: samples.txt:{problem.line}: {problem.why}"
    unusable = run.unusable()
    for line, why in unusable.items():
        yield f"samples.txt:{line}: {why}"
    if len(unusable) == len(samples):
        yield "it holds no usable sample"
