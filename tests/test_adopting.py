"""A run becomes the reference only if its machine was not disturbed and not slow."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import recordings

from gccost import paths
from gccost.errors import GccostError
from gccost.judging import reference
from gccost.measuring.cases import AUTO, FREE, Case
from gccost.studies import STUDIES
from gccost.study import reference as shown


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    return tmp_path / "runs"


def test_a_run_is_copied_and_its_costs_are_kept(runs: Path) -> None:
    run = recordings.record(runs)
    copy = reference.adopt(run, list(STUDIES.values()))
    assert shown(STUDIES["lemire"]).folder == copy.folder
    assert copy.samples.read_bytes() == run.samples.read_bytes()
    reference.adopt(run, list(STUDIES.values()))  # again, with samples added since
    costs = pd.read_csv(paths.reference() / "costs.csv")
    assert list(costs["run"]) == [run.name]
    assert costs.loc[0, "AllocateFree"] == pytest.approx(0.98 * 80, rel=0.05)


@pytest.mark.parametrize(
    ("variant", "factor", "refused"),
    [
        ("AllocateFree", 1.05, False),
        ("AllocateFree", 1.2, True),
        ("AllocateCleanup", 1.1, False),
        ("AllocateCleanup", 1.3, True),
    ],
)
def test_a_run_that_is_slower_than_like_machines_is_refused(
    runs: Path, variant: str, factor: float, refused: bool
) -> None:
    reference.adopt(recordings.record(runs), list(STUDIES.values()))
    later = recordings.record(runs, ns={variant: factor * recordings.NS[variant]})
    if refused:
        with pytest.raises(GccostError, match=rf"refused as a reference: {variant} takes .* ns"):
            reference.adopt(later, list(STUDIES.values()))
        assert not (paths.reference() / later.name).exists()
    else:
        assert reference.adopt(later, list(STUDIES.values())).samples.exists()


def test_a_run_on_another_machine_is_not_compared(runs: Path) -> None:
    reference.adopt(recordings.record(runs), list(STUDIES.values()))
    slow = recordings.record(runs, ns={name: 2 * ns for name, ns in recordings.NS.items()})
    slow.update(machine={**slow.manifest()["machine"], "cpu_model": 99})
    assert reference.adopt(slow, list(STUDIES.values())).samples.exists()


def test_a_run_of_a_disturbed_machine_is_refused(runs: Path) -> None:
    def waits(case: Case, number: int, metrics: recordings.Metrics) -> None:
        metrics["run-delay-share"] = 0.5 if case.variant in (AUTO, FREE) else 0.0

    with pytest.raises(GccostError, match="every process waited for a CPU"):
        reference.adopt(recordings.record(runs, change=waits), list(STUDIES.values()))
    assert not paths.reference().exists()
