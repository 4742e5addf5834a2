"""From samples to figures: frames of costs, and of values computed from costs.

The frames hold what a notebook shows, and the claims are judged from the same functions.
`gccost.stats` defines the estimators and explains them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gccost import stats
from gccost.errors import GccostError, nearest
from gccost.judging import metrics
from gccost.judging.lines import Lines
from gccost.judging.metrics import QUIET
from gccost.stats import SHOWN, Estimate, Figure

VALUES = ["value", "low", "high", "rounds", "n"]
"""The columns of every frame of figures."""

_SLICES = "slice_p05_ns"  # a process's 5 % quantile, if its loop is timed in slices
COSTS = [*VALUES, "error", "freedom", "slope_error", "kind"]
"""The columns of costs. What `derive` needs: the standard error and its degrees of freedom; and
the error of the slope of the kind of loop, which all costs of the kind have in common."""


def figure(
    samples: pd.DataFrame,
    metric: str = "quiet_ns",
    lines: Lines | None = None,
    last: float = math.inf,
) -> Figure:
    """The cost of one case from its processes that count, up to a round.

    Without `lines`, the spread of its own processes is all that is known of its error.
    """
    if metric not in samples:
        return Figure(math.nan, math.inf, 1)
    how = metrics.kind(metric)
    samples = samples[samples["round"] <= last] if math.isfinite(last) else samples
    values = samples[metric].to_numpy(dtype=float)
    if how == "count":
        return stats.amount_figure(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(values > 0, values, math.nan))
    known = np.isfinite(logs)
    logs, samples = logs[known], samples[known]
    if not len(logs):
        return Figure(math.nan, math.inf, 1)
    rounds = samples["round"].nunique() if "round" in samples else len(samples)
    if how == "level":
        found = stats.amount_figure(logs)
        value = math.exp(found.value)
        return found._replace(value=value, error=value * found.error, rounds=rounds)
    sittings = samples["sitting"].to_numpy() if "sitting" in samples else np.ones(len(logs))
    nothing = np.full(len(logs), math.nan)
    if lines is None:
        groups = np.unique(sittings, return_inverse=True)[1]
        sliced = metric in QUIET and _SLICES in samples and samples[_SLICES].notna().all()
        line = stats.floors(logs, groups) if sliced else stats.line(logs, nothing, groups)
        return stats.cost(logs, nothing, sittings, line, rounds)
    probes = nothing
    if metric in QUIET and "probe" in samples:
        probes = samples["probe"].to_numpy(dtype=float)
    kind = str(samples["kind"].iloc[0]) if "kind" in samples else ""
    # `quiet_ns` has been moved along the line; the line is fitted to what was timed.
    raw = logs + lines.of(kind, metric).slope * np.nan_to_num(probes)
    if math.isfinite(last) and np.isfinite(probes).any():  # no later round affects the price
        probes = probes - math.log(np.nanquantile(np.exp(probes), stats.PRICE))
    return stats.cost(raw, probes, sittings, lines.of(kind, metric, last), rounds)


def cost(samples: pd.DataFrame, metric: str = "quiet_ns") -> pd.Series:
    """Estimate one case from its samples: value, low and high (95 %), rounds, n (processes).

    A time is the mean of the logs, in which each sitting has a weight (see `gccost.stats`), and
    so is a rate. Its error comes from the spread of processes and the run-to-run spread of its
    kind of loop, which the samples of a study carry along in their `attrs`. A merge, a file, or
    pd.concat with other frames loses `attrs`; then `quiet_ns` and `settled_ns` have a value but no
    interval. The interval of samples that are not of a study comes from their own spread. Other
    metrics are medians. With one process, low and high are NaN. `error`, `freedom`,
    `slope_error` and `kind` are for `derive`; the interval is Student's t times both errors,
    added in quadrature. Raises GccostError for samples of several cases, or without the
    metric.

        samples.groupby(study.keys, dropna=False).apply(gccost.cost)
    """
    for name in samples.attrs.get("keys", ()):
        if name in samples and len(samples[name].drop_duplicates()) > 1:
            hint = f"group by {name} too, or filter; study.keys has all such columns"
            raise GccostError(f"the samples have several values of {name}", "gccost.cost", hint)
    if len(samples) and metric not in samples:
        numbers = samples.select_dtypes("number").columns
        hint = nearest(metric, numbers)
        raise GccostError(f"the samples have no column {metric!r}", "gccost.cost", hint)
    lines = samples.attrs.get("lines")
    found = figure(samples, metric, lines)
    if lines is None and metric in QUIET:
        found = found._replace(error=math.inf)
    return series(found, metric)


def row(estimate: Estimate, scale: float = 1.0) -> dict[str, float]:
    """An estimate as a row of a frame, times `scale`; an interval that is not finite is NaN."""
    ends = (estimate.low, estimate.high)
    low, high = ends if all(map(math.isfinite, ends)) else (math.nan, math.nan)
    values = [estimate.value * scale, low * scale, high * scale]
    return dict(zip(VALUES, [*values, estimate.rounds, estimate.samples], strict=True))


def series(figure: Figure, metric: str = "", *, signed: bool = False) -> pd.Series:
    """A figure as a row of costs."""
    signed = signed or (bool(metric) and metrics.kind(metric) == "count")
    found = stats.combine(float, [figure], signed=signed)
    return pd.Series(
        row(found)
        | {
            "error": figure.error if found.samples else math.nan,
            "freedom": figure.freedom,
            "slope_error": figure.slope_error,
            "kind": figure.kind,
        }
    )


def of_share(estimate: Estimate) -> dict[str, Any]:
    """The estimate of a share as a row of costs, in percent."""
    found = row(estimate, 100)
    freedom = max(estimate.rounds - 1, 1)
    half = (found["high"] - found["low"]) / 2
    error = half / float(stats.t(freedom, SHOWN))
    return found | {"error": error, "freedom": freedom, "slope_error": 0.0, "kind": ""}


def derive(
    function: Callable[..., float], *costs: pd.Series | pd.DataFrame, signed: bool = False
) -> Any:
    """Estimate function(cost, …) with its interval, by the delta method.

    Each cost is a row of `costs`, or a frame of such rows; frames are matched by their index.
    With `signed` the interval is symmetric on the linear scale, for a value that may be zero
    or negative; otherwise on the log scale. The result has the columns of `costs`, as a Series
    or a frame, and can be derived from in turn. Rounded values change nothing else.

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
    return pd.DataFrame(rows, index=index, columns=COSTS).astype(
        {"rounds": int, "n": int} | dict.fromkeys(["value", "low", "high"], float)
    )


def _derived(function: Callable[..., float], rows: Sequence[pd.Series], signed: bool) -> pd.Series:
    """What `derive` says of a single row of each cost."""
    found = stats.propagate(function, list(map(_figure, rows)), signed)
    return series(found, signed=signed)


def _figure(cost: pd.Series) -> Figure:
    """A row of costs with its errors."""
    missing = [name for name in COSTS if name not in ("low", "high") and name not in cost]
    if missing:
        hint = "keep the columns of costs: they say how large the errors are"
        raise GccostError(f"a cost has no column {missing[0]!r}", "gccost.derive", hint)
    value, error, slope_error = (float(cost[k]) for k in ("value", "error", "slope_error"))
    rounds, n = (0 if pd.isna(cost[name]) else int(cost[name]) for name in ("rounds", "n"))
    error = math.inf if math.isnan(error) else error
    return Figure(
        value, error, float(cost["freedom"]), slope_error, str(cost["kind"]), 0.0, rounds, n
    )


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
