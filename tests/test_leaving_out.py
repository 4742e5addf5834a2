"""Each sitting of a run is compared with the others."""

from __future__ import annotations

import pytest
import recordings

from gccost.judging import leaving_out
from gccost.run.jobtable import Job
from gccost.studies import STUDIES

LEMIRE = [STUDIES["lemire"]]
SLOW = 3  # the sitting in which finalizers take twice as long


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    def sits(job: Job, number: int, metrics: recordings.Metrics) -> None:
        metrics["sitting"] = float((number - 1) // 4 + 1)
        if metrics["sitting"] == SLOW and recordings.is_of(job, "AllocateAuto"):
            metrics["ns/op"] *= 2

    return recordings.record(tmp_path_factory.mktemp("runs"), rounds=12, change=sits)


@pytest.mark.parametrize("estimator", leaving_out.ESTIMATORS)
@pytest.mark.parametrize("rounds", [None, 3])
def test_a_sitting_that_differs_has_a_large_error(run, estimator, rounds):
    found = leaving_out.left_out(run, LEMIRE, estimator, rounds)
    ratio = found[found["id"] == "L1"].set_index("sitting").loc[:, ["value", "others"]]
    error = (ratio["value"] / ratio["others"]).groupby(level="sitting").mean()
    assert error[SLOW] == pytest.approx(2, rel=0.02)
    assert error[1] == pytest.approx(2**-0.5, rel=0.02)


def test_the_summary_counts_intervals(run):
    found = leaving_out.left_out(run, LEMIRE)
    l1 = leaving_out.by_claim(found).loc["L1"].iloc[0]
    assert l1["sittings"] == 3
    assert l1["covers"] == pytest.approx(200 / 3)  # the others agree, so the slow one is left out


def test_a_run_of_two_sittings_leaves_none_out(tmp_path):
    def sits(job: Job, number: int, metrics: recordings.Metrics) -> None:
        metrics["sitting"] = float((number - 1) // 4 + 1)

    run = recordings.record(tmp_path, rounds=8, change=sits)
    assert leaving_out.left_out(run, LEMIRE).empty
