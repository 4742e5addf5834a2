"""What docs/robustness.md lists, but for what other modules test."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import recordings
from faketools import wait_for

from gccost import paths
from gccost.judging import reference
from gccost.measuring.runs import all_runs
from gccost.studies import STUDIES

COMMAND = [sys.executable, "-m", "gccost"]


def test_every_line_of_the_table_has_a_test_that_exists() -> None:
    lines = (paths.ROOT / "docs" / "robustness.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and "| test |" not in line]
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row.split(" | ")[-1])
        assert named, row
        for module, name in named:
            tree = ast.parse((paths.ROOT / "tests" / module).read_text())
            assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


def test_a_killed_add_leaves_no_half_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    run = recordings.record(tmp_path)
    stop = f"""
import pathlib, time
from gccost.judging import reference
before = reference._costs
def halt(*given):
    found = before(*given)
    pathlib.Path({str(tmp_path / "reached")!r}).touch()
    time.sleep(600)
reference._costs = halt
from gccost.cli import main
main(["add", {str(run.folder)!r}])
"""
    with subprocess.Popen([sys.executable, "-c", stop]) as adding:
        assert wait_for((tmp_path / "reached").exists, seconds=120)
        adding.send_signal(signal.SIGKILL)
    assert all_runs(paths.reference()) == []
    assert (paths.reference() / ".scratch").exists()
    reference.add(run.folder, list(STUDIES.values()))
    assert [each.name for each in all_runs(paths.reference())] == [run.name]
    assert not (paths.reference() / ".scratch").exists()


def test_a_full_disk_while_a_run_is_added_is_reported(tmp_path: Path) -> None:
    run = recordings.record(tmp_path)
    environment = {**os.environ, "GCCOST_REFERENCE": str(tmp_path / "reference")}
    limited = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *COMMAND, "add", str(run.folder)]
    done = subprocess.run(limited, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "cannot be written: File too large. To fix it: raise the limit" in done.stderr
    assert "Traceback" not in done.stderr
    assert all_runs(tmp_path / "reference") == []


def test_a_closed_pipe_ends_a_command_silently(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(recordings.record(tmp_path).folder, tmp_path / name)
    pipe = " ".join([*COMMAND, "compare", str(tmp_path / "one"), str(tmp_path / "two"), "| true"])
    done = subprocess.run(["sh", "-c", pipe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
