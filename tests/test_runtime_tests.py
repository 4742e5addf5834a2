"""The script that tests the patched runtimes reports failures."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gccost import paths


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("status", [0, 1])
def test_the_exit_status_of_go_test_is_passed_on(tmp_path, status):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "gosrc").mkdir()
    shutil.copy(paths.ROOT / "scripts" / "runtime-tests", tmp_path / "scripts")
    script(tmp_path / ".venv" / "bin" / "python", f"echo '{tmp_path}/go'")
    script(tmp_path / "go" / "bin" / "go", f"exit {status}")
    # The other variants are skipped.
    command = [tmp_path / "scripts" / "runtime-tests", "--mutations", "1.27.4", "stock"]
    assert subprocess.run(command, capture_output=True).returncode == status
