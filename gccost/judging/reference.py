"""Recorded runs: adding one to data/reference, and the order in which chapters prefer them.

A run comes from this machine or from another one, as a folder or as the archive that a pack
writes. It is checked and added to the others; two machines are never pooled. Chapters show the
newest run of the machine that `reference.json` names. Another machine's run is shown in
chapter 11, and for studies that no other run holds.

`costs.csv` has two variants' costs from every added recording, so that a slow recording is
rejected even after older ones are deleted.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from gccost import paths
from gccost.errors import GccostError
from gccost.files import write_whole, writing
from gccost.judging.claims import Study
from gccost.judging.recording import Recording
from gccost.measuring import languages, machine, runs
from gccost.measuring.campaign import METHOD
from gccost.measuring.cases import CLEANUP, FREE, Variant
from gccost.measuring.runs import Run
from gccost.measuring.toolchains import TODAY_GO

# The largest accepted cost relative to the lower quartile of similar recordings.
MOST: dict[str, float] = {FREE.benchmark: 1.10, CLEANUP.benchmark: 1.15}
_MACHINE = ("cpu_family", "cpu_model", "cpu_stepping", "caches", "libc")
# What a run consists of; a name of a case has no other characters.
_NAME = re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}(-\d+)?")
_FILES = re.compile(
    r"run\.json|samples\.txt|(profiles/[\w.,=+-]+\.pb|gctraces/[\w.,=+-]+\.txt)\.gz"
    r"|slices/[\w.,=+-]+\.txt"
)
MOST_BYTES, MOST_FILES = 256 << 20, 20_000  # of a run; one of all studies has 4 MB
_AGAIN = "copy it again from the machine that measured it"


def add(source: Path, studies: Sequence[Study], *, main: bool = False) -> tuple[Run, list[str]]:
    """Copy a run (a folder or an archive) to data/reference; return the copy and its caveats.

    With `main`, chapters show its machine from now on. Raises GccostError if the run is
    damaged, was changed after measuring, or was measured with other sources. A run that
    chapters would show is also refused if its machine was disturbed, or slower than similar
    machines; of any other run these are caveats.
    """
    with _opened(source) as run:
        check(run, studies)
        manifest = run.manifest()
        shown = main or _main_machine() in ("", manifest["fingerprint"])
        line, known = _costs(run, studies), _known()
        caveats = list(_reasons(run, studies, line, known))
        if caveats and shown and manifest["scale"] == 1:
            raise GccostError(
                f"the run is refused as a reference: {caveats[0]}",
                run.name,
                "measure it again at a quieter time, or on another machine",
            )
        target = paths.reference() / run.name
        with writing(target):
            shutil.copytree(run.folder, target, dirs_exist_ok=True)
    if shown:
        text = json.dumps({"machine": manifest["fingerprint"]}, indent=1) + "\n"
        write_whole(paths.reference() / "reference.json", text.encode())
    lines = pd.concat([known[known["run"] != run.name], pd.DataFrame([line])], ignore_index=True)
    text = lines.to_csv(index=False, lineterminator="\n")
    write_whole(paths.reference() / "costs.csv", text.encode())
    return Run(target), caveats


def recorded() -> list[Run]:
    """The recorded runs; those that chapters prefer come last.

    A run whose N was scaled (a test's) never comes before another one.
    """
    main = _main_machine()

    def preference(run: Run) -> tuple[bool, bool, str]:
        manifest = run.manifest()
        return manifest["scale"] == 1, manifest["fingerprint"] == main, run.name

    return sorted(runs.all_runs(paths.reference()), key=preference)


def _main_machine() -> str:
    """The fingerprint in reference.json, or that of the newest run; empty without runs."""
    path = paths.reference() / "reference.json"
    if path.exists():
        try:
            return str(json.loads(path.read_text(encoding="utf-8"))["machine"])
        except (ValueError, KeyError, TypeError) as error:
            hint = 'it should be {"machine": "<a run\'s fingerprint>"}'
            raise GccostError(f"it names no machine: {error}", str(path), hint) from None
    found = runs.all_runs(paths.reference())
    return found[-1].manifest()["fingerprint"] if found else ""


# --- Reading what came from elsewhere -----------------------------------------------------


@contextmanager
def _opened(source: Path) -> Iterator[Run]:
    """A run folder, or one unpacked from an archive for as long as this context lasts."""
    if source.is_dir():
        source = source.resolve()
        for path in source.rglob("*"):
            kind = "a link" if path.is_symlink() else "" if path.is_file() else "a folder"
            _check_name(source.name, path.relative_to(source).as_posix(), kind, source)
        yield Run(source)
        return
    with tempfile.TemporaryDirectory(prefix="gccost-") as scratch:
        yield Run(_unpacked(source, Path(scratch)))


def _unpacked(archive: Path, into: Path) -> Path:
    top, size, files = "", 0, 0
    try:
        # As a stream, so that a bomb is refused before it is unpacked any further.
        with tarfile.open(archive, "r|*") as tar:
            for member in tar:
                size, files = size + member.size, files + 1
                if size > MOST_BYTES or files > MOST_FILES:
                    most = f"{MOST_BYTES >> 20} MiB or {MOST_FILES:,} files"
                    raise GccostError(f"it unpacks to more than {most}", str(archive), _AGAIN)
                first, _, rest = member.name.partition("/")
                top = top or first
                kind = "a folder" if member.isdir() else "" if member.isreg() else "a link"
                if first != top or member.issparse() or not (rest or kind == "a folder"):
                    raise GccostError(f"{member.name!r} is not part of a run", str(archive), _AGAIN)
                _check_name(top, rest, kind, archive)
                tar.extract(member, into, filter="data")
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise GccostError(f"it is not an archive of a run: {error}", str(archive), _AGAIN) from None
    except OSError as error:
        why = f"it cannot be read: {error.strerror or error}"
        raise GccostError(why, str(archive), "name a run folder or an archive") from None
    if not top:
        raise GccostError("the archive is empty", str(archive), _AGAIN)
    return into / top


def _check_name(run: str, name: str, kind: str, source: Path) -> None:
    if not _NAME.fullmatch(run):
        hint = "name a run, such as data/runs/20261122T175855-4b5c7f, or its archive"
        raise GccostError(f"{run!r} is not the name of a run", str(source), hint)
    folders = {"", "profiles", "gctraces", "slices"}
    fits = name in folders if kind == "a folder" else not kind and _FILES.fullmatch(name)
    if not fits:
        what = f"{kind} {name!r}".strip()
        raise GccostError(f"it holds {what}, which is not part of a run", str(source), _AGAIN)


def check(run: Run, studies: Sequence[Study]) -> None:
    """Raise GccostError unless a run is whole, consistent, and of today's programs."""

    def refuse(why: str, hint: str = _AGAIN) -> None:
        raise GccostError(why, run.name, hint)

    manifest = run.manifest()
    if manifest["method"] != METHOD:
        refuse("it was sampled by another version of gccost", "measure it again with this one")
    stem = f"{re.sub('[-:Z]', '', manifest['created'])}-{manifest['fingerprint'][:6]}"
    if machine.fingerprint(manifest["machine"]) != manifest["fingerprint"] or stem != run.name[:22]:
        refuse("its fingerprint does not match its machine: run.json was changed")
    if not manifest["finished"]:
        refuse("it is unfinished", "resume it on its machine until it is complete")
    here = {name: mark for s in studies for name, mark in languages.source_hashes(s).items()}
    changed = [name for name, mark in manifest["programs"].items() if here.get(name) != mark]
    if changed or not manifest["programs"]:
        refuse(
            f"it was measured with other sources of {', '.join(changed) or 'unknown programs'}",
            "pack or measure again from this version of the sources",
        )
    if not run.samples.exists():
        refuse("it holds no samples")
    digest = hashlib.sha256(run.samples.read_bytes()).hexdigest()
    if manifest.get("digest", digest) != digest:
        refuse("samples.txt was changed after measuring ended")
    reading = run.reading()
    for problem in reading.errors:
        refuse(f"a line of its samples is damaged: {problem}")
    for line, sample in reading.samples.items():
        counts = {name: sample.metrics.get(name, 0.0) for name in _BLOCKS}
        allocated, freed, loop, drained, misfreed = counts.values()
        if allocated != freed + loop or drained > loop or misfreed:
            refuse(f"samples.txt:{line}: the counts of C blocks do not add up: {counts}")
    for path in run.folder.glob("*/*.gz"):
        try:
            with gzip.open(path) as file:
                if len(file.read(_MOST_TEXT + 1)) > _MOST_TEXT:
                    refuse(f"{path.name} unpacks to more than {_MOST_TEXT >> 20} MiB")
        except (OSError, EOFError, zlib.error) as error:
            refuse(f"{path.name} is damaged: {error}")


_MOST_TEXT = 32 << 20
_BLOCKS = ("c-allocated", "c-freed", "c-unfreed-loop", "c-unfreed-drained", "c-misfreed")


def _reasons(
    run: Run, studies: Sequence[Study], line: dict[str, Any], known: pd.DataFrame
) -> Iterator[str]:
    for study in studies:
        if run.holds(study.name) and not study.command:  # a command may load the machine
            recording = Recording.load(study, run)
            for claim in study.claims:
                for release in claim.releases if claim.cpus <= recording.cpus else ():
                    yield from recording.disturbances(claim.quantity.variants, release)
    like = known[known["run"] != run.name]
    for name in ("machine", "go"):
        like = like[like[name] == line[name]]
    for variant, most in MOST.items():
        others = like[variant].dropna()
        if len(others) and line[variant] > most * (usual := float(others.quantile(0.25))):
            yield (
                f"{variant} takes {line[variant]:.1f} ns, more than {most - 1:.0%} above the "
                f"{usual:.1f} ns of similar machines"
            )


def _costs(run: Run, studies: Sequence[Study]) -> dict[str, Any]:
    """A row of costs.csv: the machine, the release, and each variant's cost in ns."""
    both = {(variant, TODAY_GO) for variant in (FREE, CLEANUP)}
    study = next(s for s in studies if both <= {(c.variant, c.release) for c in s.cases})
    recording = Recording.load(study, run)
    described = run.manifest()["machine"]
    similar = {name: described.get(name) for name in _MACHINE}

    def cost(variant: Variant) -> float:
        found = recording.cost(variant, TODAY_GO)
        return round(math.exp(found.log), 2) if found.samples else math.nan

    costs = {variant.benchmark: cost(variant) for variant in (FREE, CLEANUP)}
    told = json.dumps(similar, sort_keys=True)
    return {"run": run.name, "machine": told, "go": TODAY_GO, **costs}


def _known() -> pd.DataFrame:
    path = paths.reference() / "costs.csv"
    if not path.exists():
        return pd.DataFrame(columns=["run", "machine", "go", *MOST])
    return pd.read_csv(path, dtype={"run": str, "machine": str, "go": str})
