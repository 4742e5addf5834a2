"""The verdict rules have the documented error rates on simulated machines."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from gccost.judging.simulation import simulate


def kind(spread: float, run_to_run: float, **more: float) -> pd.Series:
    row = {"spread": spread, "freedom": math.inf, "run_to_run": run_to_run}
    return pd.Series(row | {"run_to_run_freedom": math.inf} | more, dtype=object)


FINALIZER, CLEANUP = kind(0.03, 0.015, slope=0.3, probes=0.1), kind(0.06, 0.06)
SLICES = kind(0.02, 0.01, sliced=True)


def test_the_same_campaigns_have_the_same_outcome():
    first, again = (simulate(5.0, 4.8, FINALIZER, SLICES, campaigns=50) for _ in "12")
    assert first == again


@pytest.mark.parametrize("over", [FINALIZER, CLEANUP], ids=["finalizer", "cleanup"])
def test_intervals_cover_the_truth_and_few_verdicts_are_wrong(over):
    outcome = simulate(4.8, 4.8, over, SLICES)
    assert 0.93 <= outcome.coverage <= 0.97
    assert outcome.wrong <= 0.02  # although every decision is
    assert simulate(1.2 * 4.8, 4.8, over, SLICES).wrong <= 0.01


def test_a_noisier_machine_than_the_recorded_one_covers_less():
    outcome = simulate(4.8, 4.8, CLEANUP, SLICES, noise=2.0)
    assert outcome.coverage < 0.85
    assert outcome.wrong > simulate(4.8, 4.8, CLEANUP, SLICES).wrong


def test_an_uncertain_price_of_the_probe_decides_less():
    prices = (kind(0.03, 0.015, slope=slope, probes=0.2) for slope in (0.0, 0.9))
    known, uncertain = (simulate(5.4, 4.8, price, SLICES).undecided[-1] for price in prices)
    assert uncertain > known + 0.1


def test_clear_ratio_is_decided_at_the_first_look():
    outcome = simulate(16.0, 4.8, FINALIZER, SLICES, campaigns=500)
    assert outcome.undecided[0] == outcome.wrong == 0
