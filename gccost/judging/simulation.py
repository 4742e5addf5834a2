"""Simulate the verdicts on a ratio of two costs whose true value is known.

A campaign is one sitting. Its processes scatter about their case's line by the spread of their
kind of loop, and the sitting shifts each case by the run-to-run spread of its kind. The
intervals, the looks and the rule are those of the report. `noise` multiplies both spreads of
the simulated machine. A campaign sees how much its own processes scatter, but knows the
run-to-run spread from recorded sittings only, so that stays what was recorded.
"""

from __future__ import annotations

from math import hypot
from operator import truediv
from typing import NamedTuple

import numpy as np
import pandas as pd

from gccost.judging.rules import AtLeast
from gccost.measuring.cases import LOOKS
from gccost.stats import JUDGED, SHOWN, Line, combine, cost


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
    noise: float = 1.0,
    campaigns: int = 2000,
) -> Outcome:
    """Run campaigns that judge a ratio at each look, and return their error rates.

    `over` and `under` are rows of `study.lines`, of the kinds of the two loops. The claim is
    that the ratio is at least `bound`. If the truth is on the bound, every decision is wrong.
    Every call draws the same random numbers.
    """
    chance, looks = np.random.default_rng(1), np.array(LOOKS)
    sides = [
        line._replace(spread=noise * line.spread, probes=noise * line.probes)
        for line in (Line(**over), Line(**under))
    ]
    error = np.zeros((campaigns, len(looks)))
    for line in sides:
        scatter = hypot(line.scatter, line.price_scatter)
        rounds = scatter * chance.standard_normal((campaigns, looks[-1]))
        error += rounds.cumsum(axis=1)[:, looks - 1] / looks
        error += noise * line.run_to_run * chance.standard_normal((campaigns, 1))
    ratios = truth * np.exp(error)
    factor = np.array([_factor(sides, rounds, JUDGED) for rounds in LOOKS])
    verdict = AtLeast().side(ratios / factor, ratios * factor, bound)
    decided = np.maximum.accumulate(verdict != 0, axis=1)
    first = verdict[np.arange(campaigns), (verdict != 0).argmax(axis=1)]
    right = 0 if np.isclose(truth, bound) else np.sign(truth - bound)
    covered = np.abs(error[:, -1]) <= np.log(_factor(sides, LOOKS[-1], SHOWN))
    return Outcome(
        coverage=float(covered.mean()),
        wrong=float((decided[:, -1] & (first != right)).mean()),
        undecided=tuple(map(float, 1 - decided.mean(axis=0))),
    )


def _factor(sides: list[Line], rounds: int, confidence: float) -> float:
    """The upper end of the interval of a ratio over its value, after some rounds."""
    logs, sitting = np.zeros(rounds), np.ones(rounds)
    costs = [cost(logs, logs, sitting, line, rounds) for line in sides]
    return combine(truediv, costs, confidence).high
