"""The verdict rules have the documented error rates on a simulated noisy machine."""

from __future__ import annotations

import pytest

from gccost.estimates import LOOKS
from gccost.simulation import simulate


def test_same_seed_gives_the_same_outcome():
    assert simulate(5.0, 4.8, campaigns=50, seed=3) == simulate(5.0, 4.8, campaigns=50, seed=3)


@pytest.mark.parametrize("case", ["finalizer", "cleanup"])
@pytest.mark.parametrize("busy", [0.1, 0.5])
def test_intervals_cover_the_truth_and_few_verdicts_are_wrong(case, busy):
    outcome = simulate(4.8, 4.8, numerator=case, noise={"busy": busy}, campaigns=1000)
    assert min(outcome.coverage) >= 0.93
    assert outcome.stopping_coverage >= 0.93
    assert outcome.wrong <= 0.01  # although every decision is


def test_what_a_run_has_in_common_hides_in_part_from_a_ratio():
    """Were the two sides of a ratio unlike, more rounds would make its intervals too narrow."""
    together, apart = (
        simulate(4.8, 4.8, noise={"common": 0.05, "together": share}, campaigns=1000)
        for share in (1.0, 0.0)
    )
    assert together.coverage[-1] > 0.95 > 0.8 > apart.coverage[-1]


def test_clear_ratio_is_decided_at_the_first_look():
    outcome = simulate(16.0, 4.8, campaigns=500)
    assert outcome.rounds == LOOKS[0]
    assert outcome.wrong == 0


def test_intervals_do_not_cover_hidden_contention():
    outcome = simulate(4.8, 4.8, noise={"busy": 0.9, "contention": 0.1}, campaigns=500)
    assert outcome.bias > 0.03
    assert outcome.coverage[-1] < 0.7


def test_disturbed_campaigns_decide_what_no_disturbance_could_change():
    noise = {"busy": 1.0, "rejected": 0.95, "contention": 0.05}
    far, on_the_bound = (simulate(truth, 4.8, noise=noise, campaigns=500) for truth in (16.0, 4.8))
    assert far.disturbed > 0.95
    assert far.undecided[-1] < 0.05
    assert far.wrong == on_the_bound.wrong == 0
    assert min(on_the_bound.coverage) >= 0.95


def test_equal_costs_are_judged_equal_within_the_band():
    outcome = simulate(1.0, 1.25, denominator="finalizer", band=True, campaigns=500)
    assert outcome.undecided[-1] < 0.01
    assert outcome.wrong == 0
