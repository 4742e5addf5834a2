"""Simulate the verdicts on a ratio whose true value is known.

A campaign is a run of some sittings. Within a sitting the ratio scatters by `within`, and sittings
differ by `spread`, both standard deviations of logs. The intervals and the rule are those of the
report: sittings differ by what was recorded, and by what these sittings show themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gccost.costs.method import Figure, Sitting, estimate
from gccost.judging.rules import AtLeast, Label
from gccost.stats import FEWEST, JUDGED, SHOWN


class Outcome(NamedTuple):
    """Results, as shares of the campaigns."""

    coverage: float  # of the 95 % interval
    wrong: float  # decided wrongly
    undecided: float


def simulate(
    truth: float,
    bound: float,
    within: float,
    spread: float,
    *,
    sittings: int = 1,
    recorded: int = 12,
    noise: float = 1.0,
    campaigns: int = 1000,
) -> Outcome:
    """Run campaigns that judge the claim that a ratio is at least `bound`; return their errors.

    Each campaign has a recorded run of `recorded` sittings. `noise` multiplies both spreads of the
    simulated machine, while those of the recorded one stay. If the truth is on the bound, every
    decision is wrong. Every call draws the same random numbers.
    """
    chance = np.random.default_rng(1)
    spreads = np.hypot(within, spread)

    def run(number: int, noise: float) -> Figure:
        logs = noise * chance.normal(scale=spreads, size=number)
        values = truth * np.exp(logs)
        drawn = {}
        for place, value in enumerate(values):
            drawn[float(place)] = Sitting(value, value * noise * within, FEWEST)
        return Figure(drawn, FEWEST * number)

    right = _side(truth, bound)
    covered = wrong = undecided = 0
    for _ in range(campaigns):
        own = run(sittings, noise)
        figure = replace(own, history=(run(recorded, 1.0),))
        covered += estimate(figure, SHOWN).contains(truth)
        judged = estimate(figure, JUDGED)
        label = AtLeast().judge(judged, bound).label
        undecided += not label.decided
        wrong += label.decided and label is not right
    return Outcome(covered / campaigns, wrong / campaigns, undecided / campaigns)


def _side(truth: float, bound: float) -> Label | None:
    """The right verdict; None if the truth is on the bound."""
    if np.isclose(truth, bound):
        return None
    return Label.HOLDS if truth > bound else Label.FAILS
