"""The verdict rules have the documented error rates on a simulated noisy machine."""

from __future__ import annotations

import pytest

from gccost.simulation import Noise, simulate


def test_same_seed_gives_the_same_outcome():
    assert simulate(5.0, 4.8, campaigns=50, seed=3) == simulate(5.0, 4.8, campaigns=50, seed=3)


@pytest.mark.parametrize("case", ["finalizer", "cleanup"])
@pytest.mark.parametrize("busy", [0.1, 0.5])
def test_intervals_cover_the_truth_and_few_verdicts_are_wrong(case, busy):
    outcome = simulate(4.8, 4.8, numerator=case, noise=Noise(busy=busy), campaigns=1000)
    assert min(outcome.coverage) >= 0.93
    assert outcome.stopping_coverage >= 0.93
    assert outcome.wrong <= 0.01


def test_clear_ratio_is_decided_at_the_first_look():
    outcome = simulate(16.0, 4.8, campaigns=500)
    assert outcome.rounds == 4
    assert outcome.wrong == 0


def test_intervals_do_not_cover_hidden_contention():
    outcome = simulate(4.8, 4.8, noise=Noise(busy=0.9, contention=0.1), campaigns=500)
    assert outcome.bias > 0.03
    assert outcome.coverage[-1] < 0.7


def test_disturbed_campaigns_give_no_verdict():
    noise = Noise(busy=1.0, rejected=0.95)
    outcome = simulate(16.0, 4.8, noise=noise, campaigns=200)
    assert outcome.disturbed > 0.95
    assert outcome.undecided[-1] > 0.95


def test_equal_costs_are_judged_equal_within_the_band():
    outcome = simulate(1.0, 1.25, denominator="finalizer", band=True, campaigns=500)
    assert outcome.undecided[-1] < 0.01
    assert outcome.wrong == 0
