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
    points = {}
    for metric, ns in sample.items():
        match = AT.fullmatch(str(metric))
        if match and math.isfinite(ns):
            records = float(match[1].replace("_", "."))
            points[records] = float(ns)
    lengths = sorted(points)
    return lengths, [points[length] for length in lengths]


def slope(sample: pd.Series) -> float:
    """The time (ns) that a record adds to a sample's call; NaN without two lengths of the list."""
    records, ns = walked(sample)
    if len(records) < 2:
        return math.nan
    line = scipy.stats.linregress(records, ns)
    return float(line.slope)


def amount(values: ArrayLike, confidence: float = SHOWN) -> Estimate:
    """Estimate a quantity that may be zero by the median of independent values."""
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    n = x.size
    if not n:
        return nothing(confidence)
    value = float(np.median(x))
    if n == 1:
        return Estimate(value, -inf, inf, n, n, confidence)
    deviation = float(x.std(ddof=1))
    error = sqrt(variance_factor(median, n)) * deviation
    half = t(n - 1, confidence) * error
    return Estimate(value, value - half, value + half, n, n, confidence)


def exactly(value: float, n: int, rounds: int) -> Estimate:
    """The estimate of what has no error, such as a count of events."""
    return Estimate(value, value, value, n, rounds, 1.0)


def spanning(value: float, low: float, high: float, parts: Sequence[Estimate]) -> Estimate:
    """An estimate that rests on others of one confidence, with the fewest samples and rounds."""
    n = min(part.n for part in parts)
    rounds = min(part.rounds for part in parts)
    confidence = parts[0].confidence
    return Estimate(value, low, high, n, rounds, confidence)


def linearity(x: ArrayLike, times: ArrayLike, confidence: float = SHOWN) -> Estimate:
    """Estimate the r² of the straight line through the cost at each x.

    `times` has a row per round and a column per x; a cost is the lower quartile. The interval is
    that of a bootstrap over the rounds, widened by Student's t over the normal quantile.
    """
    lengths = np.asarray(x, dtype=np.float64)
    measured = np.asarray(times, dtype=np.float64)
    value = float(_r2(lengths, measured))
    rounds = len(measured)
    if rounds == 1:
        return Estimate(value, -inf, inf, rounds, rounds, confidence)
    places = np.random.default_rng(0).integers(rounds, size=(_DRAWS, rounds))
    drawn = _r2(lengths, measured[places])
    upper = (1 + confidence) / 2
    ends = np.quantile(drawn, [1 - upper, upper])
    widening = t(rounds - 1, confidence) / special.ndtri(upper)
    widening *= sqrt(rounds / (rounds - 1))
    low, high = map(float, value + widening * (ends - value))
    high = min(high, 1.0)
    return Estimate(value, low, high, rounds, rounds, confidence)


def _r2(x: Floats, times: Floats) -> Floats:
    """The r² of the line through the lower quartile of the rounds at each x."""
    costs = np.quantile(times, 0.25, axis=-2, method="median_unbiased")
    costs -= costs.mean(axis=-1, keepdims=True)
    x = x - x.mean()
    explained = (costs @ x) ** 2 / (x @ x)
    total = (costs**2).sum(axis=-1)
    return np.asarray(explained / total)


def most_unseen(samples: int, confidence: float = 0.95) -> float:
    """Exact upper confidence bound on an event's probability after zero occurrences."""
    if not samples:
        return 1.0
    chance: float = (1 - confidence) ** (1 / samples)
    return 1 - chance


def never_elsewhere(happened: int, samples: int, others: int) -> float:
    """The two-sided p of Fisher's exact test of an event that other samples never had."""
    table = np.array([[happened, samples - happened], [0, others]])
    return float(scipy.stats.fisher_exact(table).pvalue)


def standard_error(estimate: Estimate) -> float:
    """The standard error of an estimate's log, from its interval of a normal error; NaN without."""
    if not (estimate.low > 0 and estimate.high < inf):
        return nan
    half = math.log(estimate.high / estimate.low) / 2
    upper = (1 + estimate.confidence) / 2
    return half / float(special.ndtri(upper))


def heterogeneity(measured: Sequence[tuple[float, float]]) -> float:
    """The probability p that values of one truth scatter at least as much as these.

    `measured` has values, with the standard errors of their logs. Uses Cochran's Q of the logs.
    NaN unless at least two values have an error.
    """
    pairs = np.array(measured, dtype=np.float64).reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    if len(pairs) < 2:
        return nan
    logs = np.log(pairs[:, 0])
    # A value without error (constant data) gets a large, finite weight.
    errors = np.maximum(pairs[:, 1], 1e-12)
    weights = errors**-2
    distances = logs - np.average(logs, weights=weights)
    scatter = weights @ distances**2
    return float(special.chdtrc(len(pairs) - 1, scatter))
