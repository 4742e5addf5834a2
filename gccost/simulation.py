"""Simulate the verdicts on a ratio of two costs whose true value is known.

A campaign is one sitting. Its processes scatter about their case's line by the spread of their
kind of loop, and the sitting shifts each case by the run-to-run spread of its kind. The
intervals, the looks and the rule are those of the report. `noise` multiplies both spreads of
the simulated machine. A campaign sees how much its own processes scatter, but knows the
run-to-run spread from recorded sittings only, so that stays what was recorded.
"""

from __future__ import annotations

from dataclasses import replace
from math import hypot
from typing import NamedTuple

import numpy as np
import pandas as pd

from gccost.judging.rules import AtLeast, Between
from gccost.stats import JUDGED, LOOKS, SHOWN, Line, total_error
from gccost.stats import t as student


class Outcome(NamedTuple):
    """Results of the sequential looks, as shares of the campaigns."""

    coverage: float  # of the 95 % interval at the last look
    wrong: float  # decided wrongly at some look
    undecided: tuple[float, ...]  # after each look


def simulate(
    truth: float,
    bound: float,
    over: pd.Series,
    under: pd.Series,
    *,
    band: bool = False,
    noise: float = 1.0,
    campaigns: int = 2000,
    seed: int = 1,
) -> Outcome:
    """Run campaigns that judge a ratio at each look, and return their error rates.

    `over` and `under` are rows of `study.lines`, of the kinds of the two loops. The claim is
    that the ratio is at least `bound` or, with `band`, between 1/bound and bound. If the truth
    is on the bound, every decision is wrong.
    """
    rule = Between(low=1 / bound, high=bound) if band else AtLeast()
    chance = np.random.default_rng(seed)
    looks, sides = np.array(LOOKS), [Line(**side) for side in (over, under)]
    error = np.zeros((campaigns, len(looks)))
    for side in sides:
        scatter = noise * hypot(side.scatter, side.price_scatter)
        rounds = scatter * chance.standard_normal((campaigns, looks[-1]))
        error += rounds.cumsum(axis=1)[:, looks - 1] / looks
        error += noise * side.run_to_run * chance.standard_normal((campaigns, 1))
    half = {SHOWN: np.zeros(len(looks)), JUDGED: np.zeros(len(looks))}
    for look, n in enumerate(looks):
        variances = [(noise * side.scatter) ** 2 / n for side in sides]
        variances += [(noise * side.price_scatter) ** 2 / n for side in sides]
        variances += [side.run_to_run**2 for side in sides]
        freedom = [side.freedom for side in sides] * 2
        freedom += [side.run_to_run_freedom for side in sides]
        deviation, degrees = total_error(variances, freedom)
        for confidence, halves in half.items():
            halves[look] = student(degrees, confidence) * deviation
    centre = truth * np.exp(error)
    verdict = rule.side(centre / np.exp(half[JUDGED]), centre * np.exp(half[JUDGED]), bound)
    decided = np.maximum.accumulate(verdict != 0, axis=1)
    first = (verdict != 0).argmax(axis=1)
    on_bound = np.isclose(truth, rule.bounds(bound)).any()
    right = 0 if on_bound else replace(rule, margin=1.0).side(truth, truth, bound)
    mistaken = decided[:, -1] & (verdict[np.arange(campaigns), first] != right)
    return Outcome(
        coverage=float((np.abs(error[:, -1]) <= half[SHOWN][-1]).mean()),
        wrong=float(mistaken.mean()),
        undecided=tuple(map(float, 1 - decided.mean(axis=0))),
    )
