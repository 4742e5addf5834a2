"""The why and runtime studies: slopes, what is measured, and patched builds."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from measured import run_sample
from recordings import job, recorded

from gccost import paths
from gccost.cases.versions import TODAY_GO
from gccost.costs import metrics, models
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.judging.quantities import Seen
from gccost.measuring import builds, toolchains, tools


@pytest.fixture(scope="module")
def why(tmp_path_factory) -> Recording:
    return recorded(tmp_path_factory.mktemp("why"), "why", rounds=12)


# --- From samples to slopes -----------------------------------------------------------


def test_the_line_fits_call_times_by_list_length():
    sample = pd.Series(
        {
            "ns": 9.0,
            "at_31_records_ns": 101.0,
            "at_7_5_records_ns": 54.0,
            "at_94_records_ns": 227.0,
        }
    )
    assert models.walked(sample) == ([7.5, 31.0, 94.0], [54.0, 101.0, 227.0])
    assert models.slope(sample) == pytest.approx(2)
    assert math.isnan(models.slope(pd.Series({"ns": 9.0})))


def test_a_slope_uses_each_round_as_one_sample(why: Recording):
    slope = Seen(why, TODAY_GO).slope("AttachFinalizer/order=ascending/bytes=8")
    assert slope.n == 12
    assert slope.value > 1
    assert slope.half_width < 0.01
    level = Seen(why, TODAY_GO).slope("AttachFinalizer/order=descending/bytes=8")
    assert abs(level.value) < 0.05


# --- Building with a patched runtime -------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


class Writer:
    """Replaces `go run ./overlay`: writes the same files, or fails."""

    def __init__(self, goroot: Path, error: str = "", whole: bool = True) -> None:
        self.goroot, self.error, self.whole, self.calls = goroot, error, whole, 0

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.calls += 1
        folder = Path(command[command.index("-o") + 1])
        link = folder / "goroot"
        link.unlink(missing_ok=True)
        link.symlink_to(self.goroot)
        if self.error:
            return subprocess.CompletedProcess(command, 1, "", self.error)
        if not self.whole:
            raise KeyboardInterrupt
        (folder / "overlay.json").write_text('{"Replace": {}}')
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.mark.slow
def test_an_overlay_is_written_once_and_again_if_partial_or_moved(cache, tmp_path, monkeypatch):
    toolchain = toolchains.fetch(TODAY_GO)
    with pytest.raises(KeyboardInterrupt):
        builds.overlay(toolchain, "index", Writer(toolchain.goroot, whole=False))
    builds.overlay(toolchain, "index", Writer(cache))  # by a Go that has moved since
    writer = Writer(toolchain.goroot)
    written = [builds.overlay(toolchain, "index", writer) for _ in range(2)]
    assert (writer.calls, written[0]) == (1, written[1])
    assert written[0].exists()
    assert builds.overlay(toolchain, "checked", writer) != written[0]
    moved = tmp_path / "moved"
    shutil.copytree(cache, moved, symlinks=True)
    monkeypatch.setattr(paths, "CACHE", moved)
    assert builds.overlay(toolchain, "index", writer).is_relative_to(moved)
    assert writer.calls == 3


@pytest.mark.slow
def test_an_unknown_runtime_source_is_refused(cache):
    toolchain = toolchains.fetch(TODAY_GO)
    said = "overlay: mheap.go:2066: specialFindSplicePoint is not the one that is known"
    with pytest.raises(GccostError, match="is not the one that is known") as caught:
        builds.overlay(toolchain, "index", Writer(toolchain.goroot, error=said))
    assert said in str(caught.value)
    assert f"Go {TODAY_GO}" in str(caught.value)


@pytest.mark.slow
def test_a_program_runs_with_the_patched_runtime(tmp_path):
    toolchain, compiler = toolchains.fetch(TODAY_GO), tools.c_compiler(print)
    stock, index = (
        builds.build("specials", toolchain, compiler, 7, tmp_path, runtime=runtime)
        for runtime in ("", "index")
    )
    assert b"makeSpecialIndex" in index.read_bytes()
    assert b"makeSpecialIndex" not in stock.read_bytes()
    patched = job("AttachCleanup/order=ascending/bytes=8/runtime=index", n=4000)
    sample = run_sample(index, patched, tmp_path)
    assert sample.keys["runtime"] == "index"
    assert len(models.walked(pd.Series(sample.metrics).rename(metrics.column))[0]) == 16
