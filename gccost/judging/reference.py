"""Recorded runs: adding one to data/reference, and the order in which chapters prefer them.

A run comes from this machine or from another one, as a folder or as the archive that a pack
writes. It is checked and added to the others; two machines are never pooled. Chapters show the
newest run of the machine that `reference.json` names. Another machine's run is shown in
chapter 11, and for studies that no other run holds.

`costs.csv` has two variants' costs from every added recording, so that a slow recording is
rejected even after older ones are deleted.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from gccost import paths, stats
from gccost.errors import GccostError
from gccost.files import write_whole, writing
from gccost.judging import kinds
from gccost.judging.claims import Study
from gccost.judging.costs import METRIC
from gccost.judging.recorded import main_machine
from gccost.judging.recording import Recording
from gccost.measuring import benchmarks, incoming, languages, machine, runs, toolchains
from gccost.measuring.campaign import METHOD
from gccost.measuring.cases import CLEANUP, FREE
from gccost.measuring.incoming import AGAIN
from gccost.measuring.runs import Run
from gccost.measuring.schema import AMOUNT, columns, rows
from gccost.measuring.toolchains import TODAY_GO
from gccost.stats import JUDGED, MARGIN

# The variants that tell whether a machine was slower than usual.
_COMPARED = {variant.benchmark: variant for variant in (FREE, CLEANUP)}
_MACHINE = ("cpu_family", "cpu_model", "cpu_stepping", "caches", "libc")
_COSTS = columns("run:line machine:text go:line") | dict.fromkeys(_COMPARED, AMOUNT.or_null())


def add(source: Path, studies: Sequence[Study], *, main: bool = False) -> tuple[Run, list[str]]:
    """Copy a run (a folder or an archive) to data/reference; return the copy and its caveats.

    With `main`, chapters show its machine from now on. Raises GccostError if the run is
    damaged, was changed after measuring, or was measured with other sources. A run that
    chapters would show is also refused if its machine was slower than sittings of similar
    machines have been; of any other run this is a caveat.
    """
    toolchains.check_releases()
    place = paths.reference()
    with (
        runs.exclusive(place, "adding a run"),
        runs.scratch(place) as scratch,
        _named_after(source, scratch),
    ):
        run = incoming.copied(source, scratch)
        check(run, studies)
        manifest = run.manifest()
        shown = main or main_machine() in ("", manifest["fingerprint"])
        costs, known = _costs(run, studies), _known()
        caveats = list(_slow(run, costs, known[known["run"] != run.name]))
        is_test = manifest["scale"] != 1
        if shown and caveats and not is_test:
            raise GccostError(
                f"the run is refused as a reference: {caveats[0]}",
                run.name,
                "measure it again at a quieter time, or on another machine",
            )
        run = _moved(run, place / run.name)
    if shown:
        text = json.dumps({"machine": manifest["fingerprint"]}, indent=1) + "\n"
        write_whole(place / "reference.json", text.encode())
    if is_test:
        return run, [*caveats, "it was measured at the tiny budget, which is for tests"]
    _write(place / "costs.csv", pd.concat([known[known["run"] != run.name], costs]))
    return run, caveats


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


def _write(path: Path, table: pd.DataFrame) -> None:
    write_whole(path, table.to_csv(index=False, lineterminator="\n").encode())


# --- Reading what came from elsewhere -----------------------------------------------------


@contextmanager
def _named_after(source: Path, scratch: Path) -> Iterator[None]:
    """Name the source in errors about its temporary copy."""
    try:
        yield
    except GccostError as error:
        if str(scratch) not in str(error):
            raise
        said = (re.sub(rf"{re.escape(str(scratch))}/[^/]+/", "", part) for part in error.args)
        message, location, hint = said
        where = f"{source}: {location}" if location else str(source)
        raise GccostError(message, where, hint or AGAIN) from None


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def check(run: Run, studies: Sequence[Study]) -> None:
    """Raise GccostError unless a run is whole, consistent, and of today's programs."""
    for why, hint in _refusals(run, studies):
        raise GccostError(why, run.name, hint)


def _refusals(run: Run, studies: Sequence[Study]) -> Iterator[tuple[str, str]]:
    """Why a run is refused, with a hint each, the first reason first."""
    manifest = run.manifest()
    if manifest["method"] != METHOD:
        yield "it was sampled by another version of gccost", "measure it again with this one"
    if not manifest["finished"]:
        yield "it is unfinished", "resume it on its machine until it is complete"
    programs = manifest["programs"]
    here = {name: mark for s in studies for name, mark in languages.source_hashes(s).items()}
    changed = [name for name, mark in programs.items() if here.get(name) != mark]
    if changed or not programs:
        what = ", ".join(changed) or "unknown programs"
        hint = "pack or measure again from this version of the sources"
        yield f"it was measured with other sources of {what}", hint
    held = run.studies
    if others := {*held} - {study.name for study in studies}:
        yield f"it holds unknown studies: {', '.join(sorted(others))}", AGAIN
    for why in incoming.faults(run):
        yield why, AGAIN
    memory = machine.memory_for_a_sample(manifest["machine"])
    cases = (case for study in studies if study.name in held for case in study.cases)
    counts = {c.name: c.scaled(manifest["scale"]).capped(memory).n for c in cases}
    if not any(counts.get(s.full_name) in (0, s.n) for s in run.reading().samples.values()):
        yield "it holds no usable sample of its studies", AGAIN


# --- What recorded runs say of similar machines -------------------------------------------


def _slow(run: Run, costs: pd.DataFrame, known: pd.DataFrame) -> Iterator[str]:
    """The costs that are larger than those of similar machines."""
    like = known.merge(costs[["machine", "go"]])
    for name in _COMPARED:
        cost, usual = float(costs[name].item()), float(like[name].median())
        spreads = kinds.of_recorded(run).spread(METRIC)
        of_kinds = spreads.get(benchmarks.of(name).kind or name, math.nan)
        more = float(stats.t(stats.WEIGHT, JUDGED)) * of_kinds * math.sqrt(2)
        most = max(math.exp(more), MARGIN) if more > 0 else MARGIN
        if cost > most * usual:
            yield (
                f"{name} takes {cost:.1f} ns, more than {most - 1:.0%} above the "
                f"{usual:.1f} ns of similar machines"
            )


def _costs(run: Run, studies: Sequence[Study]) -> pd.DataFrame:
    """A row of costs.csv: the machine, the release, and each variant's cost in ns."""
    cases = {(variant, TODAY_GO) for variant in _COMPARED.values()}
    study = next(s for s in studies if cases <= {(c.variant, c.release) for c in s.cases})
    recording = Recording(study, run)
    described = run.manifest()["machine"]
    similar = json.dumps({name: described.get(name) for name in _MACHINE}, sort_keys=True)
    costs = {
        name: [round(stats.estimate(recording.cost(variant.on(TODAY_GO))).value, 2)]
        for name, variant in _COMPARED.items()
    }
    return pd.DataFrame({"run": run.name, "machine": similar, "go": TODAY_GO, **costs})


def _known() -> pd.DataFrame:
    path = paths.reference() / "costs.csv"
    known = rows(path, _COSTS) if path.exists() else []
    return pd.DataFrame(known, columns=[*_COSTS]).astype(dict.fromkeys(_COMPARED, float))
