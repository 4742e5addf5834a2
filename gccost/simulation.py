"""Simulate the estimators and the verdicts on a model of a noisy machine.

The model was fitted to the slices of 240 processes and the means of 132 more on a virtual
machine that shares its cores. Processes run in spells of a *quiet* or a *busy* regime, and
contention only adds time:

- A slice of a stationary loop takes the floor's time unless a burst slows it. Some processes
  are slow throughout, as next to a busy hardware thread.
- The mean of a process that uses the garbage collector scatters (`SCATTER`), and contention
  slows it. A process with too much run delay is rejected and retried twice.
- Every build has a layout effect. What all rounds of a run have in common (`common`) is the
  same for both sides of a ratio in part (`together`), so a ratio hides half of it.

The truth is the floor for a stationary case. For other cases it is the lower quartile of
undisturbed processes, 2 % (finalizer) and 3.4 % (AddCleanup) below their median.

Chapter 09 shows what comes of it. `gccost.stats` has the error rates for truths from the boundary
to 50 % beyond it. Contention that affects neither the run delay nor the reference causes a bias
that no interval's width corrects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from gccost import stats
from gccost.estimates import DISTURBED
from gccost.judging.rules import AtLeast, Between
from gccost.stats import JUDGED, LOOKS, Floats

Booleans = NDArray[np.bool_]
Case = Literal["stationary", "finalizer", "cleanup"]
PROCESSES = 4  # of a stationary case in a round
TRIES = 3  # of any other case in a round
SCATTER = {"finalizer": 0.031, "cleanup": 0.064}  # sd of the logs of relieved processes
SLICES = 20.0  # independent slices in a process, of 64 with correlated neighbours


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of a machine, as shares and on the log scale."""

    busy: float = 0.1  # share of the time in the busy regime
    spell: float = 12.0  # mean number of processes before the regime is redrawn
    rejected: float = 0.5  # share of busy processes with too much run delay
    contention: float = 0.025  # mean slowdown of an accepted busy process
    slow: tuple[float, float] = (0.1, 0.45)  # share of slow processes: quiet, busy
    layout: float = 0.003  # sd of a build's layout effect
    # Of eight measurements of L1 (chapter 9): the sd of the logs of what all processes of a
    # measurement have in common, 0.011 to 0.021, and its correlation between the finalizer and
    # the manual free, 0.66 to 0.86. It is a third of the variance of a finalizer's processes.
    common: float = 0.015
    together: float = 0.66


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of the sequential looks, as shares of the campaigns."""

    coverage: tuple[float, ...]  # of the 95 % interval at each look
    stopping_coverage: float  # at the look that decided, or else at the last
    bias: float  # median of the log of estimate over truth at the last look
    wrong: float  # decided wrongly
    undecided: tuple[float, ...]  # after each look
    rounds: float  # median rounds to a verdict, infinite if most stay undecided
    disturbed: float  # fewer than half of the processes accepted, hence wider intervals


def simulate(
    truth_ratio: float,
    boundary: float,
    *,
    numerator: Case = "finalizer",
    denominator: Case = "stationary",
    band: bool = False,
    noise: Mapping[str, Any] = MappingProxyType({}),
    campaigns: int = 2000,
    seed: int = 1,
) -> Outcome:
    """Run campaigns that judge a ratio at each look, and return their error rates.

    With `band` the claim is that the ratio is between 1/boundary and boundary. With the
    truth on the boundary every decision is wrong. `noise` names values of `Noise`.
    """
    machine = Noise(**noise)
    rule = Between(low=1 / boundary, high=boundary) if band else AtLeast()
    rng = np.random.default_rng(seed)
    busy = _regimes(rng, machine, campaigns)
    over, under = _shared(rng, machine, campaigns)
    upper, tried_upper = _samples(rng, numerator, busy, machine, over)
    lower, tried_lower = _samples(rng, denominator, busy[..., ::-1], machine, under)
    tried = np.maximum(tried_upper, tried_lower)[:, np.array(LOOKS) - 1]
    disturbed = tried > 2 * np.array(LOOKS)

    error, covered, verdict = np.zeros((3, campaigns, len(LOOKS)))
    for look, n in enumerate(LOOKS):
        (top, top_spread), (bottom, bottom_spread) = _cost(upper, n), _cost(lower, n)
        wider = disturbed[:, look] * np.log(DISTURBED)
        shown, judged = (
            _half_width(top_spread, bottom_spread, n, level) for level in (0.95, JUDGED.confidence)
        )
        error[:, look] = top - bottom
        covered[:, look] = np.abs(top - bottom) <= np.hypot(shown, stats.SYSTEMATIC) + wider
        low = truth_ratio * np.exp(top - bottom - judged - wider)
        high = truth_ratio * np.exp(top - bottom + judged + wider)
        verdict[:, look] = rule.side(low, high, boundary)
    verdict[np.isinf(tried)] = 0  # there are too few rounds

    decided = np.maximum.accumulate(verdict != 0, axis=1)
    stop = np.where(decided[:, -1], decided.argmax(axis=1), len(LOOKS) - 1)
    at_stop = np.arange(campaigns), stop
    on_a_bound = np.isclose(truth_ratio, rule.bounds(boundary)).any()
    exact = replace(rule, margin=1.0)
    right = 0 if on_a_bound else exact.side(truth_ratio, truth_ratio, boundary)
    return Outcome(
        coverage=tuple(map(float, covered.mean(axis=0))),
        stopping_coverage=float(covered[at_stop].mean()),
        bias=float(np.median(error[:, -1])),
        wrong=float((decided[:, -1] & (verdict[at_stop] != right)).mean()),
        undecided=tuple(map(float, 1 - decided.mean(axis=0))),
        rounds=float(np.median(np.where(decided[:, -1], np.array(LOOKS)[stop], np.inf))),
        disturbed=float(disturbed[at_stop].mean()),
    )


def _regimes(rng: np.random.Generator, noise: Noise, campaigns: int) -> Booleans:
    """Whether each process is busy, by campaign, round and process."""
    rounds = LOOKS[-1] * 3 // 2  # spare rounds replace rejected ones
    slots = PROCESSES + TRIES
    size = campaigns, rounds * slots
    begins = np.where(rng.random(size) < 1 / noise.spell, np.arange(size[1]), 0)
    spell = np.maximum.accumulate(begins, axis=1)
    busy = np.take_along_axis(rng.random(size) < noise.busy, spell, axis=1)
    return busy.reshape(campaigns, rounds, slots)


def _shared(rng: np.random.Generator, noise: Noise, campaigns: int) -> Iterator[Floats]:
    """What all rounds of a campaign have in common, for each side of the ratio."""
    both, *own = rng.standard_normal((3, campaigns, 1))
    for each in own:
        part = noise.together**0.5 * both + (1 - noise.together) ** 0.5 * each
        yield noise.common * part


def _half_width(over: Floats, under: Floats, n: int, confidence: float) -> Floats:
    """Half the interval of a ratio's log from the spreads of its sides after n rounds."""
    halves = [stats.half_width(spread, n, confidence) for spread in (over, under)]
    return stats.joint(halves, (n, n), confidence)


def _cost(samples: Floats, n: int) -> tuple[Floats, Floats]:
    """Return the log cost and s from n rounds. Stationary samples have a third axis."""
    first = samples[:, :n] if samples.ndim == 2 else samples[:, :n].min(axis=2)
    return stats.undisturbed(np.log(first))


def _samples(
    rng: np.random.Generator, case: Case, busy: Booleans, noise: Noise, common: Floats
) -> tuple[Floats, Floats]:
    """Draw a case's samples over the truth, and the processes tried up to each."""
    campaigns, rounds, _ = busy.shape
    sd = 0.0 if case == "stationary" else SCATTER[case]
    normal = rng.standard_normal((2, campaigns, rounds))
    logs = common + noise.layout * normal[0] + sd * normal[1]
    if case == "stationary":
        quantiles = _quantiles(rng, busy[..., :PROCESSES], noise)
        return np.exp(logs[..., None]) * quantiles, np.zeros((campaigns, rounds))
    tries = busy[..., :TRIES]
    accepted = ~tries | (rng.random(tries.shape) >= noise.rejected)
    first, done = accepted.argmax(axis=2), accepted.any(axis=2)
    slowed = np.take_along_axis(tries, first[..., None], axis=2)[..., 0]
    logs += slowed * rng.uniform(0.0, 2 * noise.contention, logs.shape)
    logs -= special.ndtri(0.25) * np.hypot(sd, noise.layout)  # the truth is the quartile
    tried = np.where(done, np.where(done, first + 1, TRIES).cumsum(axis=1), np.inf)
    order = np.argsort(~done, axis=1, kind="stable")  # rounds without a sample last
    return np.exp(np.take_along_axis(logs, order, 1)), np.take_along_axis(tried, order, 1)


def _quantiles(rng: np.random.Generator, busy: Booleans, noise: Noise) -> Floats:
    """Draw the 5 % slice quantiles of stationary processes over their floor.

    The quantile is the slice at a random rank. Bursts hit a share of the slices: calm slices
    span 2 %, and the excess of hit slices is log-normal.
    """
    hit = rng.beta(7.0, np.where(busy, 0.8, 1.6))
    rank = rng.beta(0.05 * SLICES, 0.95 * SLICES, busy.shape)
    burst = np.clip((rank - (1 - hit)) / hit, 0.0, 1.0)
    calm = 0.02 * np.minimum(rank / np.maximum(1 - hit, 1e-9), 1.0)
    excess = calm + np.exp(1.3 * special.ndtri(burst) - 2.0)
    slow = rng.random(busy.shape) < np.where(busy, noise.slow[1], noise.slow[0])
    return np.exp(excess + slow * rng.uniform(0.02, 0.5, busy.shape))
