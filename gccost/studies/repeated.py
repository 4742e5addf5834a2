"""Measuring one ratio repeatedly, by several methods, to compare their precision.

Each method makes eight independent measurements on a quiet machine, and eight while another
process keeps a core busy. Each of our measurements takes a given number of seconds, without
the builds, which are made first.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path

from gccost import paths, processes
from gccost.errors import MissingTool
from gccost.measuring import benchfmt, campaign, jobs, runs
from gccost.measuring.campaign import begin
from gccost.measuring.jobs import Job
from gccost.measuring.planning import Plan
from gccost.measuring.progress import Progress
from gccost.measuring.runs import Run
from gccost.measuring.sampler import in_one_process, sample
from gccost.measuring.toolchains import TODAY_GO
from gccost.processes import ProcessGroup
from gccost.studies.precision import (
    BASELINE,
    COSTLY,
    COUNT,
    LOADS,
    MEASUREMENTS,
    METHODS,
    OURS,
    STUDY,
    measured_by,
)

SECONDS = 20.0  # per measurement by rounds
GO_TEST_COUNT = 10  # go test -count
_ROUNDS = 4  # builds of a measurement
_BASELINES = 2  # baseline processes before and after each costly one
_COUNT_LIMIT = 600.0  # after which go test counts as hung


def measure(plan: Plan, progress: Progress, *, again: bool = False) -> Run:
    """Measure what a run lacks of the plan's studies, and return the run.

    With `again` a complete campaign gets another sitting.
    """
    if STUDY.name in plan.studies:
        return _measure(plan, progress)
    return campaign.measure(plan, progress, again=again)


def _measure(plan: Plan, progress: Progress) -> Run:
    """Measure what a run lacks of a repeated study, and return the run.

    A measurement is recorded once it is complete; an interrupted one is repeated entirely.
    """
    if not plan.pool:
        reasons = "; ".join(plan.missing.values())
        raise MissingTool(f"nothing can be measured: {reasons}", "precision")
    seconds = SECONDS * plan.budget.scale
    with runs.exclusive(paths.runs(), "measuring"), runs.scratch(paths.runs()) as scratch:
        run = begin(plan)
        run.drop_unfinished_line()
        manifest = run.manifest()
        done = list(manifest.get("done", []))
        # Drop a measurement whose writing was interrupted; a campaign's samples may follow it.
        run.drop_after(manifest.get("recorded", 0), plan.pool)
        todo = list(product(MEASUREMENTS, LOADS, METHODS))
        total = seconds * len(todo)
        for i, (measurement, load, method) in enumerate(todo):
            what = f"{method}, {load}, measurement {measurement}"
            if what in done:
                continue
            progress(i * seconds, total, what)
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                which = measurement, load, method
                samples = _measurement(run, plan, which, seconds, Path(folder))
            run.append([benchfmt.format_line(each) for each in samples])
            done.append(what)
            run.update(done=done, recorded=run.samples_txt.stat().st_size)
        because = f"all {len(MEASUREMENTS)} measurements by each method were made"
        run.finish("precision", because, ["precision"])
        progress(total, total, "done")
    return run


def _measurement(
    run: Run, plan: Plan, which: tuple[str, str, str], seconds: float, folder: Path
) -> list[benchfmt.Sample]:
    """Make one measurement by one method, and return its samples."""
    measurement, load, method = which
    baseline, costly = (
        plan.pool[jobs.name(measured_by(b, method, load, measurement), TODAY_GO)]
        for b in (BASELINE, COSTLY)
    )
    chance = random.SystemRandom()
    built = [
        _build(plan, baseline, chance.randrange(1, 2**31), folder)
        for _ in range(_ROUNDS if method == OURS else 1)
    ]
    with _load() if load == "busy" else nullcontext():
        if method == COUNT:
            samples = in_one_process(
                [baseline, costly], built[0], GO_TEST_COUNT, folder, _COUNT_LIMIT
            )
        else:
            samples = list(_rounds(built, baseline, costly, folder, seconds))
    measured = {"unix-s": round(time.time(), 3)}
    return [each.with_metrics(measured) for each in samples]


def _rounds(
    built: list[Path], baseline: Job, costly: Job, folder: Path, seconds: float
) -> Iterator[benchfmt.Sample]:
    """Run rounds of one build each, alternating costly and baseline samples."""
    start = time.monotonic()
    for number, binary in enumerate(built, 1):
        first = True
        while first or time.monotonic() - start < seconds * number / len(built):
            for job in (*[baseline] * _BASELINES, costly, *[baseline] * _BASELINES):
                taken = sample(job, binary, folder)
                yield taken.with_metrics({"round": float(number)})
            first = False


def _build(plan: Plan, job: Job, layout: int, folder: Path) -> Path:
    return plan.build(jobs.build(job), layout, folder, processes.run)


@contextmanager
def _load() -> Iterator[None]:
    """Keep a core busy with another process."""
    with ProcessGroup() as group, group.start([sys.executable, "-c", "while True: pass"]) as other:
        try:
            yield
        finally:
            other.kill()
