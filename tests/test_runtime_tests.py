"""The script that tests the patched runtimes reports failures."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from faketools import script

from gccost import paths


@pytest.mark.parametrize("status", [0, 1])
def test_the_exit_status_of_go_test_is_passed_on(tmp_path, status):
    for name, text in (
        ("scripts/x", ""),
        ("gosrc/x", ""),
        (".venv/bin/python", f"echo '{tmp_path}/go'"),
        ("go/bin/go", f"exit {status}"),
    ):
        script(tmp_path / name, text)
    copy = shutil.copy(paths.ROOT / "scripts" / "runtime-tests", tmp_path / "scripts")
    # The other variants are skipped.
    command = [copy, "--mutations", "1.27.4", "stock"]
    assert subprocess.run(command, capture_output=True).returncode == status
