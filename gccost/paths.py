"""Folders in a clone, and the environment variables that override them.

`GCCOST_RUNS`, `GCCOST_REFERENCE` and `GCCOST_REPORT` set the folders of your own runs, of
the recorded runs and of the report.
"""

from __future__ import annotations

import os
from pathlib import Path

from gccost.errors import GccostError

ROOT = Path(__file__).resolve().parent.parent
GOSRC = ROOT / "gosrc"
JAVASRC = ROOT / "javasrc"
NOTEBOOKS = ROOT / "notebooks"
IN_GO = "go-*.ipynb"  # the notebooks in Go
PUBLISHED = ROOT / "data" / "published"
RELEASES = ROOT / "data" / "releases.csv"
GO_PACKAGES = ROOT / "data" / "go-packages.txt"
GO_REGISTERS = ROOT / "data" / "go-registers.csv"
SAVED_SHARES = ROOT / "data" / "saved-shares.csv"
BENCHMARKS = ROOT / "data" / "benchmarks.csv"
CACHE = ROOT / ".cache"


def runs() -> Path:
    """The folder of your own runs."""
    return _folder("GCCOST_RUNS", ROOT / "data" / "runs")


def reference() -> Path:
    """The folder of the recorded runs that replay shows."""
    return _folder("GCCOST_REFERENCE", ROOT / "data" / "reference")


def report() -> Path:
    """The folder that the report is written to."""
    return _folder("GCCOST_REPORT", ROOT / "report")


def _folder(variable: str, default: Path) -> Path:
    value = os.environ.get(variable)
    try:
        return Path(value).expanduser().resolve() if value else default
    except (OSError, RuntimeError) as error:  # an unknown user's home, or a symlink loop
        raise GccostError(str(error), f"{variable}={value}", "name another folder") from None
