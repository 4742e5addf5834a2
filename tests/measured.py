"""Programs that are run: a real `gccost report` of one case of each kind, and single samples.

As a program, `gccost` that measures no other cases.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from faketools import PATIENCE

from gccost import cli, paths, processes, sitting
from gccost.cases import versions
from gccost.cases.cases import BUDGETS
from gccost.errors import MissingTool
from gccost.measuring import builds, planning, sampler
from gccost.run.benchfmt import Sample
from gccost.run.jobtable import Job
from gccost.showing import gokernel, programs
from gccost.studies import STUDIES

WHOLE = {"lemire", "siebenmann"}  # their chapters are drawn as a reader sees them
# Chapters that show the recorded runs only, as in replay.
RECORDED = {"06-release-by-release", "09-how-sure"}


def kinds(job: Job) -> Iterator[Hashable]:
    """What a case shows that another may not: its program's benchmark, release and keys."""
    yield job["program"], job["benchmark"]
    yield job["program"], job["release"]
    printed, settings = re.split("/(?=go=|jdk=)", job["name"])
    yield from re.findall(r"(\w+)=", settings)
    yield from ((job["program"], key) for key in re.findall(r"(\w+)=", printed))


def one_of_a_kind() -> dict[str, Job]:
    """All cases of some studies, and of the others the first of each kind, if possible today's."""
    seen: set[Hashable] = set()
    first = {}
    for study in STUDIES.values():
        today = versions.today(study.document)
        cases = () if study.on_request else study.within(BUDGETS["tiny"])
        for job in sorted(cases, key=lambda job: job["release"] != today):
            if study.name in WHOLE or not seen.issuperset(kinds(job)):
                first.setdefault(job["name"], job)
                seen.update(kinds(job))
    return first


def run_sample(program: Path, job: Job, scratch: Path, **more: Any) -> Sample:
    """The sample of a job in a fresh process; see `sampler.sample`."""
    [sample] = sampler.sample(job, program, scratch, **more)
    return sample


@dataclass(frozen=True)
class Made:
    """The files and output of one `gccost report`."""

    report: Path
    runs: Path
    said: str


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Made:
    """A report at the tiny budget; Go notebooks run if the Go kernel is available."""
    with suppress(MissingTool):
        gokernel.make(print)
    folder = tmp_path_factory.mktemp("pipeline")
    report, runs = folder / "report", folder / "runs"
    before = {p: p.read_bytes() for p in paths.NOTEBOOKS.glob("*.ipynb")}
    places = {"GCCOST_REPORT": str(report), "GCCOST_RUNS": str(runs)}
    environment = {**os.environ, **places, "GCCOST_MODE": "measure"}
    command = [sys.executable, __file__, "report", "--budget=tiny"]
    done = processes.run(command, cwd=paths.ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    after = {p: p.read_bytes() for p in paths.NOTEBOOKS.glob("*.ipynb")}
    assert before == after, "only replay writes into notebooks/"
    return Made(report, runs, done.stdout)


def main() -> None:
    builds.BUILD_SECONDS = programs.SHELL_SECONDS = PATIENCE
    kept, fitting, notebooks = one_of_a_kind(), planning.fitting, sitting.notebooks
    planning.fitting = lambda *given: [job for job in fitting(*given) if job["name"] in kept]
    sitting.notebooks = lambda *given: [n for n in notebooks(*given) if n.stem not in RECORDED]
    cli.main()


if __name__ == "__main__":
    main()
