"""A newcomer's quick run, kept as a fixture: its verdicts before and after the method changed.

The run is one of 28 November 2026, on a CPU that no recorded run has. `quick-run-before.csv` has
the intervals and verdicts that the package gave it then.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pandas as pd
import pytest

from gccost.costs.recording import Recording
from gccost.judging import ledger
from gccost.run.runs import Run
from gccost.studies import STUDIES

GOLDEN = Path(__file__).parent / "golden"
DECIDED = ["holds", "does not hold"]
# What the new intervals undecided, or decided: the claim and the release.
CHANGED = {
    ("S8", "Go 1.20.14"): "undecided",
    ("C4b", "Go 1.27.4"): "undecided",
    ("X20c", "Go 1.27.4"): "undecided",
    ("W7b", "JDK 25"): "does not hold",
    # Since 29 November by Fisher's exact test.
    ("W5", "JDK 11"): "undecided",
    ("W5", "JDK 25"): "undecided",
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("runs")
    with tarfile.open(GOLDEN / "quick-run.tar.xz") as archive:
        archive.extractall(folder)  # noqa: S202
    run = Run(next(folder.iterdir()))
    held = [study for study in STUDIES.values() if study.name in run.studies]
    made = ledger.rows({study.name: Recording(study, run) for study in held}, held)
    before = pd.read_csv(GOLDEN / "quick-run-before.csv")
    table = ledger.frame(made).astype({"verdict": str})
    return before.merge(
        table,
        left_on=["id", "toolchain"],
        right_on=["id", "release"],
        suffixes=("_before", ""),
    )


def test_no_verdict_changes_sides_and_most_stay(rows):
    assert len(rows) == 75
    was, now = (rows[name].isin(DECIDED) for name in ("verdict_before", "verdict"))
    assert not (was & now & (rows["verdict"] != rows["verdict_before"])).any()
    assert now.sum() >= 57
    moved = rows[rows["verdict"] != rows["verdict_before"]].set_index(["id", "release"])["verdict"]
    assert moved.to_dict() == CHANGED


def test_ratios_have_a_run_to_run_part(rows):
    """An interval of one sitting is never as narrow as its rounds alone would make it."""
    headline = rows[rows["id"].isin(["L1", "M1"])]
    half = (headline["high"] / headline["low"]) ** 0.5 - 1
    assert half.between(0.02, 0.2).all()
    assert (rows["estimate"] - rows["value"]).abs().max() < 1e-4 * rows["value"].abs().max()
