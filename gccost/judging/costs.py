"""From samples to figures: frames of costs, and of values computed from costs.

The frames hold what a notebook shows, and the claims are judged from the same functions.
`gccost.stats` defines the estimators and explains them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from gccost import stats
from gccost.errors import GccostError
from gccost.judging import metrics
from gccost.judging.metrics import QUIET
from gccost.stats import SHOWN, Cost, Estimate, Figure

VALUES = ["value", "low", "high", "rounds", "n"]
"""The columns of every frame of figures."""

COSTS = [*VALUES, "shared"]
"""The columns of costs. `shared` is the part of the interval's half-width, relative to the value,
that all costs of a run have in common; it is 0 for counts and shares."""

_SLICES = "slice_p05_ns"  # a process's 5 % quantile, if its loop is timed in slices
_QUANTILES = {"time": stats.LOW, "rate": 1 - stats.LOW, "level": 0.5}


def fitted(samples: pd.DataFrame, metric: str = "quiet_ns") -> Cost:
    """The cost of one case on the log scale; of one without samples, NaN."""
    kind = metrics.kind(metric)
    if metric not in samples:
        return stats.level([])
    known = samples[metric].notna()
    values = samples[metric][known]
    if metric in QUIET and _SLICES in samples and samples[_SLICES][known].notna().all():
        return stats.floor(values, samples["round"][known])
    return stats.level(values, _QUANTILES.get(kind, 0.5))


def cost(samples: pd.DataFrame, metric: str = "quiet_ns") -> pd.Series:
    """Estimate one case from its samples: value, low and high (95 %), rounds, n (processes).

    A time is the lower quartile of its processes. If the loop is timed in slices, it is the
    lower quartile over rounds of the least process of each round. Other metrics are medians,
    and rates upper quartiles. With one round, low and high are NaN. `shared` is the part of the
    half-width (relative) that all costs of a run have in common, which `derive` needs.

        samples.groupby(["release", "variant"]).apply(gccost.cost)
    """
    if metrics.kind(metric) == "count":
        return _series(stats.amount(samples.get(metric, [])))
    return _series(stats.combine(float, [fitted(samples, metric)]), SHOWN.systematic)


def row(estimate: Estimate, scale: float = 1.0) -> dict[str, float]:
    """An estimate as a row of a frame, times `scale`; an interval that is not finite is NaN."""
    ends = (estimate.low, estimate.high)
    low, high = ends if all(map(math.isfinite, ends)) else (math.nan, math.nan)
    values = [estimate.value * scale, low * scale, high * scale]
    return dict(zip(VALUES, [*values, estimate.rounds, estimate.samples], strict=True))


def _series(estimate: Estimate, shared: float = 0.0) -> pd.Series:
    return pd.Series(row(estimate) | {"shared": shared})


def derive(
    function: Callable[..., float], *costs: pd.Series | pd.DataFrame, signed: bool = False
) -> Any:
    """Estimate function(cost, …) with its interval, by the delta method.

    Each cost is a row of `costs`, or a frame of such rows; frames are matched by their index.
    With `signed` the interval is symmetric on the linear scale, for a value that may be zero
    or negative; otherwise on the log scale. The result has the columns of `costs`, as a Series
    or a frame, and can be derived from in turn. Rounded values and ends change nothing else.

        gccost.derive(lambda new, old: new / old, new, old)
    """
    frames = [each for each in costs if isinstance(each, pd.DataFrame)]
    if not frames:
        return _derived(function, [each for each in costs if isinstance(each, pd.Series)], signed)
    index = frames[0].index
    for each in frames:
        if not each.index.is_unique:
            twice = each.index[each.index.duplicated()][0]
            raise GccostError(f"two costs are {twice}", "gccost.derive", "filter, or set_index")
        index = index.intersection(each.index, sort=False)
    rows = [
        _derived(function, [e.loc[at] if isinstance(e, pd.DataFrame) else e for e in costs], signed)
        for at in index
    ]
    return pd.DataFrame(rows, index=index, columns=COSTS).astype({"rounds": int, "n": int})


def _derived(function: Callable[..., float], rows: Sequence[pd.Series], signed: bool) -> pd.Series:
    """What `derive` says of a single row of each cost."""
    found = stats.propagate(function, list(map(_figure, rows)), signed)
    low, high = -math.inf, math.inf
    if math.isfinite(found.error):
        low, high = found.interval(SHOWN.confidence, signed)
    known = [each.fillna({"rounds": 0, "n": 0}) for each in rows]
    rounds, n = (min((int(each[name]) for each in known), default=0) for name in ("rounds", "n"))
    shared = 0.0 if signed or not found.value else found.shared / found.value
    return _series(Estimate(found.value, low, high, n, rounds, SHOWN.confidence), shared)


def _figure(cost: pd.Series) -> Figure:
    """A row of costs with its errors. One with a shared part is symmetric on the log scale."""
    if "shared" not in cost:
        hint = "keep the column `shared` of costs: it says which errors they have in common"
        raise GccostError("a cost has no column `shared`", "gccost.derive", hint)
    value, high, shared, rounds = (float(cost[k]) for k in ("value", "high", "shared", "rounds"))
    freedom = max(rounds - 1, 1)
    if math.isnan(high):
        return Figure(value, math.inf, freedom)
    half = high - value
    if shared:
        half = value * math.sqrt(max(math.log(high / value) ** 2 - shared**2, 0.0))
    return Figure(value, half / float(stats.t(freedom, SHOWN.confidence)), freedom, value * shared)


def compare(over: pd.DataFrame, under: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The ratio and the difference of costs that have the same keys, which become the index.

    Columns: ratio, ratio_low, ratio_high; more, more_low, more_high (the difference, in the
    metric's unit); differs (whether the ratio's interval excludes 1); rounds, n.
    """
    one, other = (each.set_index(list(keys)) for each in (over, under))
    ratio = derive(lambda a, b: a / b if b else math.nan, one, other)
    more = derive(lambda a, b: a - b, one, other, signed=True)
    found = pd.DataFrame(index=ratio.index)
    for name, frame in (("ratio", ratio), ("more", more)):
        for end, of in (("", "value"), ("_low", "low"), ("_high", "high")):
            found[name + end] = frame[of]
    known = found["ratio_low"].notna()
    apart = (found["ratio_low"] > 1) | (found["ratio_high"] < 1)
    found["differs"] = apart.astype("boolean").where(known)
    return found.assign(rounds=ratio["rounds"], n=ratio["n"])
