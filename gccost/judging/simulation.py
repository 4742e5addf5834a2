"""Simulate the verdicts on a ratio whose true value is known.

A campaign is a run of some sittings. Within a sitting the ratio scatters by `within`, and sittings
differ by `spread`, both standard deviations of logs. The intervals and the rule are those of the
report: the run-to-run spread is shrunk to what was recorded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gccost.judging.rules import AtLeast
from gccost.stats import FEWEST, JUDGED, SHOWN, Figure, Sitting, estimate


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
    noise: float = 1.0,
    campaigns: int = 1000,
) -> Outcome:
    """Run campaigns that judge the claim that a ratio is at least `bound`; return their errors.

    `noise` multiplies both spreads of the simulated machine, while the recorded spread stays. If
    the truth is on the bound, every decision is wrong. Every call draws the same random numbers.
    """
    chance = np.random.default_rng(1)
    recorded = Figure({0.0: Sitting(truth, 0.0, FEWEST)}, truth * spread, 1)
    covered = wrong = undecided = 0
    right = 0 if np.isclose(truth, bound) else int(np.sign(truth - bound))
    for _ in range(campaigns):
        errors = noise * chance.normal(scale=np.hypot(within, spread), size=sittings)
        values = truth * np.exp(errors)
        figure = Figure(
            {float(i): Sitting(v, v * noise * within, FEWEST) for i, v in enumerate(values)},
            truth * spread,
            FEWEST * sittings,
            recorded=recorded,
        )
        shown, judged = (estimate(figure, confidence) for confidence in (SHOWN, JUDGED))
        covered += shown.contains(truth)
        side = AtLeast().judge(judged, bound).label
        decision = {"holds": 1, "does not hold": -1}.get(str(side.value), 0)
        undecided += decision == 0
        wrong += decision not in (0, right)
    return Outcome(covered / campaigns, wrong / campaigns, undecided / campaigns)
