"""Estimates of single questions: a call by the length of its list, a line, chances."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from math import inf, nan, sqrt

import numpy as np
import pandas as pd
import scipy  # its parts are loaded when they are used
from numpy.typing import ArrayLike
from scipy import special

from gccost.costs.method import Floats, median, t, variance_factor
from gccost.stats import SHOWN, Estimate, nothing

_DRAWS = 2000  # of a bootstrap

AT = re.compile(r"at_([0-9_]+)_records_ns")


def walked(sample: pd.Series) -> tuple[list[float], list[float]]:
    """The numbers of records in a sample's lists, sorted, and the time of a call (ns) for each."""
    points = sorted(
        (float(match[1].replace("_", ".")), float(ns))
        for metric, ns in sample.items()
        if (match := AT.fullmatch(str(metric))) and math.isfinite(ns)
    )
    return [records for records, _ in points], [ns for _, ns in points]


def slope(sample: pd.Series) -> float:
    """The time (ns) that a record adds to a sample's call; NaN without two lengths of the list."""
    records, ns = walked(sample)
    return float(scipy.stats.linregress(records, ns).slope) if len(records) > 1 else math.nan


def amount(values: ArrayLike, confidence: float = SHOWN) -> Estimate:
    """Estimate a quantity that may be zero by the median of independent values."""
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if not x.size:
        return nothing(confidence)
    error = sqrt(variance_factor(median, x.size)) * float(x.std(ddof=1)) if x.size > 1 else inf
    half = float(t(max(x.size - 1, 1), confidence)) * error
    value = float(np.median(x))
    return Estimate(value, value - half, value + half, x.size, x.size, confidence)


def exactly(value: float, n: int, rounds: int) -> Estimate:
    """The estimate of what has no error, such as a count of events."""
    return Estimate(value, value, value, n, rounds, 1.0)


def spanning(value: float, low: float, high: float, parts: Sequence[Estimate]) -> Estimate:
    """An estimate that rests on others of one confidence, with the fewest samples and rounds."""
    n, rounds = min(e.n for e in parts), min(e.rounds for e in parts)
    return Estimate(value, low, high, n, rounds, parts[0].confidence)


def linearity(x: ArrayLike, times: ArrayLike, confidence: float = SHOWN) -> Estimate:
    """Estimate the r² of the straight line through the cost at each x.

    `times` has a row per round and a column per x; a cost is the lower quartile. The interval is
    that of a bootstrap over the rounds, widened by Student's t over the normal quantile.
    """
    rows, at = np.asarray(times, dtype=np.float64), np.asarray(x, dtype=np.float64)
    at = at - at.mean()

    def r2(rows: Floats) -> Floats:
        costs = np.quantile(rows, 0.25, axis=-2, method="median_unbiased")
        costs -= costs.mean(axis=-1, keepdims=True)
        return np.asarray((costs @ at) ** 2 / (at @ at) / (costs**2).sum(axis=-1))

    value, rounds, inside = float(r2(rows)), len(rows), (1 + confidence) / 2
    low, high = -inf, inf
    if rounds > 1:
        drawn = np.random.default_rng(0).integers(rounds, size=(_DRAWS, rounds))
        ends = np.quantile(r2(rows[drawn]), [1 - inside, inside])
        wider = float(t(rounds - 1, confidence)) / special.ndtri(inside)
        low, high = value + wider * sqrt(rounds / (rounds - 1)) * (ends - value)
        high = min(high, 1.0)
    return Estimate(value, float(low), float(high), rounds, rounds, confidence)


def most_unseen(samples: int, confidence: float = 0.95) -> float:
    """Exact upper confidence bound on an event's probability after zero occurrences."""
    return float(1 - (1 - confidence) ** (1 / samples)) if samples else 1.0


def standard_error(estimate: Estimate) -> float:
    """The standard error of an estimate's log, from its interval of a normal error; NaN without."""
    if not (estimate.low > 0 and estimate.high < inf):
        return nan
    half = math.log(estimate.high / estimate.low) / 2
    return half / float(special.ndtri((1 + estimate.confidence) / 2))


def heterogeneity(measured: Sequence[tuple[float, float]]) -> float:
    """The probability p that values of one truth scatter at least as much as these.

    `measured` has values, with the standard errors of their logs. Uses Cochran's Q of the logs.
    NaN unless at least two values have an error.
    """
    known = np.array([pair for pair in measured if np.isfinite(pair).all()])
    if len(known) < 2:
        return nan
    logs = np.log(known[:, 0])
    # A value without error (constant data) gets a large, finite weight.
    weights = np.maximum(known[:, 1], 1e-12) ** -2
    centre = np.average(logs, weights=weights)
    return float(special.chdtrc(len(known) - 1, weights @ (logs - centre) ** 2))
