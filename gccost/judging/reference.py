"""Adding recorded runs to data/reference, which chapters show and `make replay` needs.

A run comes from this machine or from another one, as a folder or as the archive that a pack
writes. It is checked and added to the others; two machines are never pooled. Chapters show the
newest run of the machine that `reference.json` names. Another machine's run is shown for studies
that no other run holds, and in the table of machines below the ledger.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gccost import paths
from gccost.cases import sources, versions
from gccost.costs.recorded import main_machine
from gccost.errors import GccostError
from gccost.files import write_whole, writing
from gccost.judging import ratios
from gccost.judging.claims import Study
from gccost.run import incoming, runs
from gccost.run.incoming import AGAIN
from gccost.run.jobtable import Job
from gccost.run.runs import METHOD, Run


def add(source: Path, studies: Sequence[Study], *, main: bool = False) -> tuple[Run, list[str]]:
    """Copy a run (a folder or an archive) to data/reference; return the copy and its caveats.

    With `main`, chapters show its machine from now on. Raises GccostError if the run is
    damaged, was changed after measuring, or was measured with other sources.
    """
    versions.check_releases()
    place = paths.reference()
    with checked(source, studies) as run:
        manifest = run.manifest()
        is_main = main or main_machine() in ("", manifest["fingerprint"])
        ratios.write(run, studies)
        run = _moved(run, place / run.name)
    if is_main:
        text = json.dumps({"machine": manifest["fingerprint"]}, indent=1) + "\n"
        write_whole(place / "reference.json", text.encode())
    is_test = manifest["scale"] != 1
    return run, ["it was measured at the tiny budget, which is for tests"] * is_test


_OF_MACHINE = ("retained_bytes", "rounds", "cpus")


@contextmanager
def checked(source: Path, studies: Sequence[Study]) -> Iterator[Run]:
    """A copy of a run (a folder or an archive) below data/reference, which the end removes.

    Raises GccostError unless it is whole, consistent, and of today's programs.
    """
    place = paths.reference()
    with (
        runs.exclusive(place, "adding a run"),
        runs.scratch(place) as scratch,
        _named_after(source, scratch),
    ):
        run = incoming.copied(source, scratch)
        for why, hint in _refusals(run, studies):
            raise GccostError(why, run.name, hint)
        yield run


def _moved(run: Run, target: Path) -> Run:
    """The run moved to its place, unless it is there already."""
    if target.exists() and _contents(target) != _contents(run.folder):
        raise GccostError(
            "another run of this name is recorded, with other contents",
            run.name,
            f"keep that one, or remove it first: rm -r {os.path.relpath(target)}",
        )
    if not target.exists():
        with writing(target):
            run.folder.rename(target)
    return Run(target)


# --- Reading what came from elsewhere -----------------------------------------------------


@contextmanager
def _named_after(source: Path, scratch: Path) -> Iterator[None]:
    """Name the source in errors about its temporary copy."""
    try:
        yield
    except GccostError as error:
        if str(scratch) not in str(error):
            raise
        folder = re.compile(rf"{re.escape(str(scratch))}/[^/]+/")
        message, location, hint = (folder.sub("", part) for part in error.args)
        where = f"{source}: {location}" if location else str(source)
        raise GccostError(message, where, hint or AGAIN) from None


def _contents(folder: Path) -> dict[str, bytes]:
    contents = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "ratios.csv":
            contents[path.relative_to(folder).as_posix()] = path.read_bytes()
    return contents


def _refusals(run: Run, studies: Sequence[Study]) -> Iterator[tuple[str, str]]:
    """Why a run is refused, with a hint each, the first reason first."""
    manifest = run.manifest()
    if manifest["method"] != METHOD:
        yield "it was sampled by another version of gccost", "measure it again with this one"
    if not manifest["finished"]:
        yield "it is unfinished", "resume it on its machine until it is complete"
    programs = manifest["programs"]
    here: dict[str, str] = {}
    for study in studies:
        here |= sources.source_hashes(study)
    changed = [name for name, mark in programs.items() if here.get(name) != mark]
    if changed or not programs:
        what = ", ".join(changed) or "unknown programs"
        hint = "pack or measure again from this version of the sources"
        yield f"it was measured with other sources of {what}", hint
    others = {*run.studies} - {study.name for study in studies}
    if others:
        yield f"it holds unknown studies: {', '.join(sorted(others))}", AGAIN
    for why in (*_contradictions(run, studies), *incoming.faults(run)):
        yield why, AGAIN


def _contradictions(run: Run, studies: Sequence[Study]) -> Iterator[str]:
    """What a run's jobs.csv says of a case that is not what its programs measure."""
    table = run.table()
    for study in studies:
        for name in table.keys() & study.jobs.keys():
            measured = _on_any_machine(table[name])
            planned = _on_any_machine(study.jobs[name])
            differing = {field for field, _ in measured.items() ^ planned.items()}
            if differing:
                yield f"jobs.csv has another {', '.join(sorted(differing))} of {name}"


def _on_any_machine(job: Job) -> Job:
    """A job without what memory and CPUs decide, and without columns that older runs lack."""
    argv = job["argv"].replace(str(job["n"]), "N")
    fixed = {field: value for field, value in job.items() if field not in _OF_MACHINE}
    return fixed | {"argv": argv, "n": job["n"] > 0}
