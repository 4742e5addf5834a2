"""Which run a study shows: your own if it holds the study, otherwise a recorded one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gccost import paths
from gccost.errors import GccostError, MissingTool, nearest
from gccost.judging import ledger
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.judging.questions import questions
from gccost.judging.recorded import recorded
from gccost.judging.recording import Recording
from gccost.measuring import campaign, languages, planning, runs, toolchains
from gccost.measuring.progress import Progress, unwatched
from gccost.measuring.runs import Run
from gccost.measuring.settings import Mode, Settings
from gccost.showing import progress
from gccost.studies import STUDIES, repeated

_INSTEAD = "a recorded run is shown."


class Shown(NamedTuple):
    """A study's recording, whether it is your own run, and the reasons for showing it."""

    recording: Recording
    mode: Mode
    notices: tuple[str, ...]


def reference(study: Study) -> Run:
    """The preferred recorded run that holds a study (see `gccost.judging.reference`).

    If none does, the preferred run of all.
    """
    recorded_runs = recorded()
    if not recorded_runs:
        problem = f"no recorded run holds {study.name}"
        raise GccostError(problem, str(paths.reference()), _measure(study))
    return next(
        (run for run in reversed(recorded_runs) if study.name in run.studies), recorded_runs[-1]
    )


def shown(study: Study, settings: Settings) -> Shown:
    """Open a study without measuring: your newest run that holds it, or a recorded one.

    A run that measuring would resume comes first, then one of the session's scale: a trial is
    shown if there is nothing else.
    """
    if settings.mode == "replay":
        return _replayed(study)
    own = [run for run in runs.all_runs(paths.runs()) if run.samples_txt.exists()]
    holding = [run for run in own if study.name in run.studies]
    if not holding:
        return _replayed(study, _why_recorded(study, own))
    plan = _plan(study, settings)

    def preferred(run: Run) -> tuple[bool, bool, str]:
        return campaign.fits(run, plan), run.manifest()["scale"] == plan.budget.scale, run.name

    return _shown(study, max(holding, key=preferred))


def chosen(study: Study, name: str) -> Shown:
    """Open a study as one run shows it, which may be unfinished.

    `name` may be shortened, or the folder of a run from elsewhere.
    """
    known = [run for run, _ in listed()]
    candidates = [run for run in known if run.name == name]
    candidates = candidates or [run for run in known if run.name.startswith(name)]
    if not candidates and Path(name, "jobs.csv").exists():
        candidates = [Run(Path(name))]
    if len(candidates) != 1:
        what = f"there are {len(candidates)} runs" if candidates else "there is no run"
        hint = nearest(name, reversed([run.name for run in candidates or known]))
        raise GccostError(f"{what} {name!r}", "gccost.open", f"{hint} (see gccost.runs())")
    run = candidates[0]
    if not _measured_in(study, run):
        held = ", ".join(run.studies) or "no study"
        raise GccostError(f"the run holds {held}, not {study.name}", run.name, "name another run")
    return _shown(study, run)


def listed() -> list[tuple[Run, str]]:
    """Every run that has samples, oldest first, and whose it is: "your run" or "recorded"."""
    entries = [(run, "recorded") for run in recorded()]
    entries += [(run, "your run") for run in runs.all_runs(paths.runs())]
    return sorted(
        (each for each in entries if each[0].samples_txt.exists()), key=lambda of: of[0].name
    )


def why_anew(plan: planning.Plan) -> str:
    """Which changed programs make measuring begin a new run; empty if it does not."""
    own = runs.all_runs(plan.folder)
    if not own or campaign.find(plan):
        return ""
    known = own[-1].manifest()["programs"]
    changed = [name for name, mark in plan.programs.items() if known.get(name, mark) != mark]
    since = f"changed since {own[-1].name}, so a new run is begun"
    return f"{', '.join(changed)}: {since}" if changed else ""


def _measure(study: Study) -> str:
    return f"make measure ONLY={study.name}"


def _measured_in(study: Study, run: Run) -> bool:
    """Whether a run has samples of a study, finished or not."""
    measured = {sample.full_name for sample in run.reading().samples.values()}
    return not measured.isdisjoint(study.jobs)


def _why_recorded(study: Study, own: list[Run]) -> str:
    how = _measure(study)
    for run in reversed(own):
        if _measured_in(study, run):
            opens = f'gccost.open("{study.name}", run="{run.name}") shows what it has'
            whole = f"To complete it: {how}. {opens}"
            return f"Your run {run.name} is incomplete, so {_INSTEAD} {whole}"
    return f"Your runs do not hold this study, so {_INSTEAD} To measure it: {how}"


def _shown(study: Study, run: Run, *notices: str) -> Shown:
    """A run; a trial says that it is one."""
    own = run.folder.parent == paths.runs()
    notices += runs.skipped(paths.runs()) if own else runs.skipped(paths.reference())
    notices += () if own else runs.changed(run)
    manifest = run.manifest()
    recording = Recording.load(study, run)
    if languages.changed(study, manifest["programs"]):
        anew = f"measured; {_measure(study)} measures them anew" if own else "recorded"
        notices += (f"The measured programs have changed since this run was {anew}.",)
    if manifest["scale"] < 1:
        shorter = f"its loops are {1 / manifest['scale']:.0f} times shorter"
        notices = (f"This run is a trial: {shorter}, so its figures mean nothing.", *notices)
    return Shown(recording, "measure" if own else "replay", notices)


def measured(study: Study, settings: Settings) -> Shown:
    """Measure what your run of a study lacks, and open it.

    Without a toolchain it opens a recorded run.
    """
    try:
        with progress.bar(f"{study.name}, {settings.budget.name} budget") as watched:
            plan = _plan(study, settings, watched)
            run = repeated.measure(plan, watched)
    except MissingTool as error:
        return _replayed(
            study, f"Measuring is not possible here, so a recorded run is shown. {error}"
        )
    missing = (f"{toolchains.title(go)} was not measured. {w}" for go, w in plan.missing.items())
    return _shown(study, run, *missing)


def _plan(study: Study, settings: Settings, watched: Progress | None = None) -> planning.Plan:
    """The plan of a study; it downloads what is missing if its progress is watched."""
    standing = questions([study], settings.budget)
    fetch = watched is not None
    shown = watched or unwatched
    return planning.plan([study], settings.budget, standing, fetch=fetch, progress=shown)


def _replayed(study: Study, *notices: str) -> Shown:
    run = reference(study)
    if study.name not in run.studies:
        how = f"{study.name} has not been recorded yet; measure it with {_measure(study)}."
        notices += (how,)
    return _shown(study, run, *notices)


def every(settings: Settings) -> dict[str, Shown]:
    """Every study that has a run to show, by name, without measuring."""
    chosen = [each for each in STUDIES.values() if is_shown(each, settings.mode)]
    return {each.name: shown(each, settings) for each in chosen}


def rows(opened: Mapping[str, Any]) -> list[Row]:
    """The ledger of all studies, from those that are shown."""
    recordings = {name: each.recording for name, each in opened.items()}
    others = aside(opened)
    return [
        replace(row, is_recorded=row.is_recorded or row.study.name in others)
        for row in ledger.shown(recordings, STUDIES.values())
    ]


def aside(opened: Mapping[str, Any]) -> set[str]:
    """The names of the studies that a recorded run shows next to others that your run shows."""
    modes = {name: each.mode for name, each in opened.items()}
    recorded_ones = {name for name, mode in modes.items() if mode == "replay"}
    return recorded_ones if len(recorded_ones) < len(modes) else set()


def is_shown(study: Study, mode: Mode) -> bool:
    """Whether a study has a run to show, or can be measured.

    A study on request needs a run; in replay every study needs a recorded one.
    """
    if mode == "measure" and not study.on_request:
        return True
    candidates = recorded() if mode == "replay" else [run for run, _ in listed()]
    return any(study.name in run.studies for run in candidates)
