"""Programs that are run: a real `gccost report`, once per session, and single samples."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gccost import paths
from gccost.errors import MissingTool
from gccost.measuring import jobs, sampler
from gccost.measuring.benchfmt import Sample
from gccost.measuring.cases import Case
from gccost.showing import gokernel


def run_sample(program: Path, case: Case, scratch: Path, **more: Any) -> Sample:
    """The sample of a case in a fresh process; see `sampler.sample`."""
    return sampler.sample(jobs.job(case), program, scratch, **more)


@dataclass(frozen=True)
class Made:
    """The files and output of one `gccost report`."""

    report: Path
    runs: Path
    said: str


def gccost(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gccost", *arguments],
        cwd=paths.ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A report at the tiny budget; Go notebooks run if the Go kernel is available."""
    with suppress(MissingTool):
        gokernel.make(print)
    folder = tmp_path_factory.mktemp("pipeline")
    report, runs = folder / "report", folder / "runs"
    before = {p: p.read_bytes() for p in paths.NOTEBOOKS.glob("*.ipynb")}
    done = gccost(
        "report",
        "--budget=tiny",
        GCCOST_REPORT=str(report),
        GCCOST_RUNS=str(runs),
        GCCOST_MODE="measure",
    )
    assert done.returncode == 0, done.stderr
    after = {p: p.read_bytes() for p in paths.NOTEBOOKS.glob("*.ipynb")}
    assert before == after, "only replay writes into notebooks/"
    return Made(report, runs, done.stdout)
