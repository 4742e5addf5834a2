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
from gccost.judging.rules import AtLeast
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

    def run(number: int, noise: float) -> Figure:
        errors = noise * chance.normal(scale=np.hypot(within, spread), size=number)
        values = truth * np.exp(errors)
        made = {float(i): Sitting(v, v * noise * within, FEWEST) for i, v in enumerate(values)}
        return Figure(made, FEWEST * number)

    covered = wrong = undecided = 0
    right = 0 if np.isclose(truth, bound) else int(np.sign(truth - bound))
    for _ in range(campaigns):
        figure = replace(run(sittings, noise), history=(run(recorded, 1.0),))
        shown, judged = (estimate(figure, confidence) for confidence in (SHOWN, JUDGED))
        covered += shown.contains(truth)
        side = AtLeast().judge(judged, bound).label
        decision = {"holds": 1, "does not hold": -1}.get(str(side.value), 0)
        undecided += decision == 0
        wrong += decision not in (0, right)
    return Outcome(covered / campaigns, wrong / campaigns, undecided / campaigns)
