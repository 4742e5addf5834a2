"""Which run a study shows: your own if it holds the study, otherwise a recorded one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gccost import paths
from gccost.errors import GccostError, MissingTool
from gccost.judging import ledger
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.judging.questions import questions
from gccost.judging.recording import Recording
from gccost.judging.reference import recorded
from gccost.measuring import campaign, languages, planning, runs, toolchains
from gccost.measuring.progress import Progress, unwatched
from gccost.measuring.runs import Run
from gccost.measuring.settings import Mode, Settings
from gccost.showing import progress
from gccost.studies import STUDIES, declared, repeated


class Shown(NamedTuple):
    """A study's recording, whether it is your own run, and the reasons for showing it."""

    recording: Recording
    mode: Mode
    notices: tuple[str, ...]


def reference(study: Study) -> Run:
    """The preferred recorded run that holds a study (see `gccost.judging.reference`).

    If none does, the preferred run of all.
    """
    found = recorded()
    for run in reversed(found):
        if run.holds(study.name):
            return run
    if found:
        return found[-1]
    raise GccostError(
        f"no recorded run holds {study.name}",
        str(paths.reference()),
        f"make measure ONLY={study.name}",
    )


def shown(study: Study, settings: Settings) -> Shown:
    """Open a study without measuring: your own run if it exists, otherwise a recorded run."""
    if settings.mode == "replay":
        return _replayed(study)
    run = campaign.find(_plan(study, settings))
    if run is None or not run.holds(study.name):
        how = f"make measure ONLY={study.name}"
        return _replayed(study, f"Not measured here (see {how}), so a recorded run is shown.")
    return Shown(Recording.load(study, run), "measure", runs.skipped(paths.runs()))


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
    return Shown(Recording.load(study, run), "measure", (*missing, *runs.skipped(paths.runs())))


def _plan(study: Study, settings: Settings, watched: Progress | None = None) -> planning.Plan:
    """The plan of a study; it downloads what is missing if its progress is watched."""
    asked = questions([study], settings.budget)
    shown = watched or unwatched
    fetch = watched is not None
    return planning.plan([study], settings.budget, asked, fetch=fetch, progress=shown)


def _replayed(study: Study, *notices: str) -> Shown:
    run = reference(study)
    if not run.holds(study.name):
        how = f"make measure ONLY={study.name}"
        notices += (f"{study.name} has not been recorded yet; measure it with {how}.",)
    notices += runs.skipped(paths.reference()) + runs.changed(run)
    if languages.changed(study, run.manifest()["programs"]):
        notices += ("The measured programs have changed since this run was recorded.",)
    return Shown(Recording.load(study, run), "replay", notices)


def every(settings: Settings) -> dict[str, Shown]:
    """Every study that has a run to show, by name, without measuring."""
    if settings.only:
        return {settings.only: shown(declared(settings.only), settings)}
    chosen = (study for study in STUDIES.values() if is_shown(study, settings.mode))
    return {study.name: shown(study, settings) for study in chosen}


def rows(found: Mapping[str, Shown], only: str = "") -> list[Row]:
    """The ledger of all studies, or of one, from those that are shown."""
    chosen = [declared(only)] if only else STUDIES.values()
    return ledger.rows({name: each.recording for name, each in found.items()}, chosen)


def is_shown(study: Study, mode: Mode) -> bool:
    """Whether a study has a run to show, or can be measured.

    A study on request needs a run; in replay every study needs a recorded one.
    """
    if not study.on_request and mode == "measure":
        return True
    folders = [paths.reference()] if mode == "replay" else [paths.reference(), paths.runs()]
    return any(run.holds(study.name) for folder in folders for run in runs.all_runs(folder))
