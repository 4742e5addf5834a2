"""Which run a study shows: your own if it holds the study, otherwise a recorded one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gccost import paths
from gccost.cases import sources, versions
from gccost.cases.settings import Mode, Settings
from gccost.costs.recorded import nearest, recorded
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.errors import nearest as nearest_name
from gccost.judging.claims import Study
from gccost.run import runs
from gccost.run.runs import Run

OWN = "your run"
_INSTEAD = "a recorded run is shown."


def reference(study: Study, own: Run | None = None) -> Run:
    """The recorded run that stands for a study: the nearest to one's own that was measured last.

    It holds the study, measured with today's programs if there is such a run. Without a run of
    one's own, the preferred one (see `gccost.judging.reference`).
    """
    candidates = nearest(own) if own else [*reversed(recorded())]
    if not candidates:
        problem = f"no recorded run holds {study.name}"
        raise GccostError(problem, str(paths.reference()), _measure(study))

    def fits(run: Run) -> tuple[bool, bool]:
        holds = study.name in run.studies
        return holds, holds and not sources.changed(study, run.manifest()["programs"])

    return max(candidates, key=fits)  # the first of those that fit best


def shown(study: Study, settings: Settings, sittings: int = 1) -> Recording:
    """Your run that holds the study and was measured last, or else a recorded one.

    Never measures. One of the session's scale comes first, so a trial is shown only if there is
    nothing else. A run of yours with fewer `sittings` is not shown.
    """
    if settings.mode == "replay":
        return replayed(study)
    own = [run for run, whose in listed() if whose == OWN]
    holding = [run for run in own if study.name in run.studies and _has(run, sittings)]

    def preferred(run: Run) -> tuple[bool, str]:
        return run.manifest()["scale"] == settings.budget.scale, run.last_measured

    if holding:
        return with_notices(study, max(holding, key=preferred))
    if not own:
        return replayed(study, _why_recorded(study, own))
    newest = max(own, key=preferred)
    recording = replayed(study, _why_recorded(study, own), own=newest)
    return replace(recording, is_aside=True)


def _has(run: Run, sittings: int) -> bool:
    return sittings == 1 or len(run.manifest()["sittings"]) >= sittings


def chosen(study: Study, name: str | Path) -> Recording:
    """Open a study as one run shows it, which may be unfinished.

    `name` may be shortened, or the folder of a run from elsewhere. If a recorded
    run is yours too, your copy is opened.
    """
    run = _named(str(name))
    if not _measured_in(study, run):
        held = ", ".join(run.studies) or "no study"
        raise GccostError(f"the run holds {held}, not {study.name}", run.name, "name another run")
    return with_notices(study, run)


def _named(name: str) -> Run:
    """The run of a name, or of its beginning, or in a folder; of two copies, your own."""
    by_name = {run.name: run for run, _ in listed()}
    is_of_a_run = any(known.startswith(name) for known in by_name)
    if not is_of_a_run and Path(name, "jobs.csv").exists():
        return Run(Path(name))
    return named(name, reversed(by_name.values()), "gccost.open", "run")


def named(name: str, known: Iterable[Run], where: str, kind: str) -> Run:
    """The one of some runs that has a name, or whose name alone begins so.

    `kind` is what the error calls them, such as "recorded run". Raises GccostError, which says
    `where` the name was given, if there is none or several.
    """
    by_name = {run.name: run for run in known}
    if name in by_name:
        return by_name[name]
    candidates = [run for run in by_name.values() if run.name.startswith(name)]
    if len(candidates) == 1:
        return candidates[0]
    what = f"there are {len(candidates)} {kind}s" if candidates else f"there is no {kind}"
    names = [run.name for run in candidates or by_name.values()]
    hint = nearest_name(name, names) or "name another"
    raise GccostError(f"{what} {name!r}", where, f"{hint} (see gccost.runs())")


def listed() -> list[tuple[Run, str]]:
    """Every run that has samples, oldest first, and whose it is: "your run" or "recorded"."""
    entries = []
    for run in (*recorded(), *runs.all_runs(paths.runs())):
        if run.samples_txt.exists():
            is_own = run.folder.parent == paths.runs()
            entries.append((run, OWN if is_own else "recorded"))
    return sorted(entries, key=lambda entry: entry[0].name)


def _measure(study: Study) -> str:
    return f"make measure ONLY={study.name}"


def _measured_in(study: Study, run: Run) -> bool:
    """Whether a run has samples of a study, finished or not."""
    measured = {sample.full_name for sample in run.reading().samples.values()}
    return not measured.isdisjoint(study.jobs)


def _why_recorded(study: Study, own: list[Run]) -> str:
    if not own and not study.on_request:
        return f"You have no run of your own, so {_INSTEAD} To measure: make report"
    how = _measure(study)
    for run in reversed(own):
        if not _measured_in(study, run):
            continue
        lacks = "lacks what only this study measures"
        if any(study.name in sitting["studies"] for sitting in run.manifest()["sittings"]):
            lacks = "is incomplete"
        opens = f'gccost.open("{study.name}", run="{run.name}")'
        return f"Your run {run.name} {lacks}, so {_INSTEAD} {how} completes it; {opens} shows it"
    return f"Your runs do not hold this study, so {_INSTEAD} To measure it: {how}"


def with_notices(study: Study, run: Run, *notices: str) -> Recording:
    """A run; a trial says that it is one."""
    recording = Recording(study, run)
    manifest = recording.manifest
    is_own = recording.mode == "measure"
    notices += runs.skipped(paths.runs() if is_own else paths.reference())
    if not is_own:
        notices += runs.changed(run)
    notices += _of_unknown_releases(study, run)
    if sources.changed(study, manifest["programs"]):
        anew = f"measured; {_measure(study)} measures them anew" if is_own else "recorded"
        notices += (f"The measured programs have changed since this run was {anew}.",)
    if manifest["scale"] < 1:
        shorter = f"its loops are {1 / manifest['scale']:.0f} times shorter"
        notices = (f"This run is a trial: {shorter}, so its figures mean nothing.", *notices)
    return replace(recording, notices=notices)


def _of_unknown_releases(study: Study, run: Run) -> tuple[str, ...]:
    """A sentence if a run has a study's benchmarks on releases that are in no table of ours."""
    benchmarks = {job["benchmark"] for job in study.jobs.values()}
    unknown = set()
    for job in run.table().values():
        if job["benchmark"] in benchmarks:
            unknown.add(job["release"])
    unknown -= {*versions.GO_RELEASES, *versions.JDK_RELEASES}
    if not unknown:
        return ()
    releases = sorted(unknown)
    titles = ", ".join(map(versions.title, releases))
    what = f"The run {run.name} has samples of {titles}, which data/releases.csv does not list"
    add = f"gccost release {releases[0]}"
    return (f"{what}: they are not shown. To show them, add it: {add}.",)


def replayed(study: Study, *notices: str, own: Run | None = None) -> Recording:
    run = reference(study, own)
    if study.name not in run.studies:
        how = f"{study.name} has not been recorded yet; measure it with {_measure(study)}."
        notices += (how,)
    return with_notices(study, run, *notices)


def every(studies: Iterable[Study], settings: Settings, sittings: int = 1) -> dict[str, Recording]:
    """Every study that has a run to show, by name, without measuring.

    Studies that a recorded run shows stand aside if there is a run of yours.
    """
    recordings = {}
    for study in studies:
        if is_shown(study, settings.mode):
            recordings[study.name] = shown(study, settings, sittings)
    return recordings


def is_shown(study: Study, mode: Mode) -> bool:
    """Whether a study has a run to show, or can be measured.

    A study on request needs a run; in replay every study needs a recorded one.
    """
    if mode == "measure" and not study.on_request:
        return True
    candidates = recorded() if mode == "replay" else [run for run, _ in listed()]
    return any(study.name in run.studies for run in candidates)
