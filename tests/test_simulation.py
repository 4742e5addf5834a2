"""The verdict rules have the documented error rates on simulated machines."""

from __future__ import annotations

import pytest

from gccost.judging.simulation import simulate

BOUND = 4.8
CALM, ROUGH = (0.02, 0.02), (0.06, 0.1)  # within a sitting, and between sittings


def test_the_same_campaigns_have_the_same_outcome():
    first, again = (simulate(5.0, BOUND, *CALM, campaigns=50) for _ in "12")
    assert first == again


@pytest.mark.parametrize("sittings", [1, 3, 12])
@pytest.mark.parametrize("spreads", [CALM, ROUGH], ids=["calm", "rough"])
def test_intervals_cover_the_truth_and_few_verdicts_are_wrong(spreads, sittings):
    outcome = simulate(BOUND, BOUND, *spreads, sittings=sittings)
    assert 0.93 <= outcome.coverage <= 0.996
    assert outcome.wrong <= 0.01  # although every decision is
    assert simulate(1.2 * BOUND, BOUND, *spreads, sittings=sittings).wrong <= 0.005


def test_a_noisier_machine_than_the_recorded_one_covers_less():
    usual, noisy = (simulate(BOUND, BOUND, *ROUGH, noise=noise) for noise in (1.0, 3.0))
    assert noisy.coverage < usual.coverage
    assert noisy.wrong > usual.wrong


def test_more_sittings_decide_more():
    one, many = (simulate(5.4, BOUND, *CALM, sittings=sittings) for sittings in (1, 12))
    assert many.undecided < one.undecided


def test_a_clear_ratio_is_decided_in_one_sitting():
    outcome = simulate(16.0, BOUND, *CALM, campaigns=500)
    assert outcome.undecided == outcome.wrong == 0
