"""What `gccost measure` and `gccost report` do: measure a sitting, and choose the pages to show."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

import psutil

from gccost import paths
from gccost.cases import versions
from gccost.cases.cases import Budget
from gccost.cases.settings import Settings
from gccost.costs.recording import Recording
from gccost.errors import MissingTool
from gccost.judging import ledger, ratios
from gccost.judging.claims import Study
from gccost.judging.opening import is_shown
from gccost.judging.questions import questions
from gccost.measuring import campaign, planning, toolchains
from gccost.measuring.planning import Plan
from gccost.progress import Progress, Say
from gccost.run import runs
from gccost.run.runs import Run
from gccost.showing import results
from gccost.showing.notice import effort
from gccost.studies import chosen

PAGES = 80.0  # seconds of the budget that are kept for the pages of a report

Watching = Callable[[str], AbstractContextManager[Progress]]
Widths = Mapping[tuple[str, str], float]  # relative half-widths, by claim and release


# --- Measuring ----------------------------------------------------------------------------


def measure(
    settings: Settings,
    say: Say,
    watching: Watching,
    pages: float = 0.0,
    on_round: Callable[[Run], object] = lambda run: None,
) -> bool:
    """Measure the chosen studies in one campaign; return whether all could be measured.

    Leaves so many seconds to the `pages` of the report. `watching` shows the progress, and
    `on_round` is called with the run after each round. Studies whose tools are missing are reported
    and skipped.
    """
    for line in runs.skipped(paths.runs()):
        say(line)
    studies = _together(settings)
    _announce_downloads(studies, say)
    with watching("measuring") as progress:
        plan = _plan(settings.budget, studies, pages, say, progress)
        try:
            before = half_widths(campaign.find(plan), studies)
            run = campaign.measure(plan, progress, again=True, on_round=on_round)
        except MissingTool as error:
            say(str(error))
            return False
    ratios.write(run, chosen())
    lacking = [study.name for study in studies if study.name not in run.studies]
    for name in lacking:
        reasons = plan.tools[name].missing.values()
        say(f"{name} is skipped: {'; '.join(reasons)}")
    for name, reasons in run.manifest()["failed"].items():
        say(f"{name} failed: {reasons[0]}")
    print(_summary(plan, run), flush=True)
    _compare(before, half_widths(run, studies), say)
    return not lacking


def _together(settings: Settings) -> list[Study]:
    """The studies of one campaign: the one that is asked for, or all that join at its budget."""
    studies = chosen(settings.only)
    if settings.only:
        return studies
    return [study for study in studies if study.joins(settings.budget)]


def _announce_downloads(studies: Sequence[Study], say: Say) -> None:
    for study in studies:
        if not study.on_request:
            continue
        if downloads := toolchains.absent(study.releases):
            say(downloads)


def _plan(
    limit: Budget, studies: Sequence[Study], pages: float, say: Say, progress: Progress
) -> Plan:
    """The plan of the studies, with the time that set-up and pages leave for measuring."""
    standing = questions(studies, limit)
    plan = planning.plan(studies, limit, standing, say, progress=progress)
    left = limit.left(_began(), time.time(), pages)
    plan = replace(plan, budget=left)
    if limit.seconds:
        say(
            f"{left.seconds:.0f} s are left for measuring: the {limit.name} budget has "
            f"{limit.seconds:.0f} s, of which {pages:.0f} s are kept for the pages"
        )
    for release, reason in plan.missing.items():
        say(f"{versions.title(release)} is skipped. {reason}")
    if changed := campaign.why_anew(plan):
        say(changed)
    return plan


def _began() -> float:
    """When the command began, in Unix seconds: `make` says it, because it sets up first."""
    with suppress(ValueError):
        return float(os.environ.get("GCCOST_BEGAN", ""))
    return psutil.Process().create_time()


def _summary(plan: Plan, run: Run) -> str:
    """What a campaign has measured, and why it ended."""
    standing = plan.standing(run)
    verdicts = ""
    if standing.verdicts:
        verdicts = f"{standing.decided} of {standing.verdicts} verdicts decided, from "
    because = run.manifest()["finished"][plan.budget.name]["because"]
    return f"{verdicts}{effort(run)} ({because}); saved in {run.name}"


def half_widths(run: Run | None, studies: Sequence[Study]) -> Widths:
    """The relative half-widths of headline figures in a run, by claim and release."""
    if run is None:
        return {}
    recordings = {}
    for study in studies:
        if study.name in run.studies:
            recordings[study.name] = Recording(study, run)
    widths = {}
    for row in ledger.rows(recordings, studies):
        if row.claim.headline and row.estimate.rounds:
            widths[row.claim.id, row.toolchain] = row.estimate.half_width
    return widths


def _compare(before: Widths, now: Widths, say: Say) -> None:
    """Say how much narrower each figure became."""
    for figure, width in now.items():
        earlier = before.get(figure, math.inf)
        if earlier < math.inf:
            name = " on ".join(figure)
            say(f"{name}: ±{earlier:.1%} before this sitting, ±{width:.1%} now")


# --- The pages ----------------------------------------------------------------------------


def notebooks(settings: Settings, say: Say) -> list[Path]:
    """The notebooks to show, in order: the results first, then chapters with recordings."""
    chapters = {results.RESULTS, results.LEDGER}
    if not settings.only:
        chapters.add(results.WILD)
    for study in chosen(settings.only):
        if is_shown(study, settings.mode):
            chapters.update(study.notebooks)
        else:
            say(f"{study.chapter} is skipped; measure it with make measure ONLY={study.name}")
    shown = []
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        if path.stem in chapters:
            shown.append(path)
            chapters.remove(path.stem)
    for chapter in sorted(chapters):
        say(f"there is no chapter notebooks/{chapter}.ipynb, so the report lacks its study")
    if not settings.only:
        shown += sorted(paths.NOTEBOOKS.glob(paths.IN_GO))
    return shown
