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
from pandas.api.types import is_numeric_dtype

from gccost import stats
from gccost.errors import GccostError, nearest
from gccost.judging import metrics
from gccost.judging.lines import Lines
from gccost.judging.metrics import QUIET
from gccost.stats import SHOWN, Estimate, Figure

VALUES = ["value", "low", "high", "rounds", "n"]
"""The columns of every frame of figures."""

_KEYS = ("release", "variant", "gc")  # of samples that lost their attrs
_SLICES = "slice_p05_ns"  # a process's 5 % quantile, if its loop is timed in slices
COSTS = [*VALUES, "error", "freedom", "slope_error", "kind", "source", "other"]
"""The columns of costs. What `derive` needs: the standard error and its degrees of freedom; and
the error of the slope of the kind of loop, which all costs of the kind have in common. `source` is
"recorded" if the figure is the recorded run's, and `other` is a function that gives the recorded
run's figure, so that no figure is derived from two runs."""
RECORDED = "recorded"
FEWEST, WIDEST = 3, 4.0  # processes of a figure that is quoted, and high over low
Other = Callable[[], Figure | None]


def figure(
    samples: pd.DataFrame,
    metric: str = "quiet_ns",
    lines: Lines | None = None,
    last: float = math.inf,
) -> Figure:
    """The cost of one case from its processes that count, up to a round.

    Without `lines`, the spread of its own processes is all that is known of its error.
    """
    how = metrics.kind(metric)
    if math.isfinite(last):
        samples = samples[samples["round"] <= last]
    values = _column(samples, metric)
    if how == "count":
        return stats.amount_figure(values)
    logs = np.log(np.where(values > 0, values, math.nan))
    known = np.isfinite(logs)
    logs, samples = logs[known], samples[known]
    rounds = samples["round"].nunique() if "round" in samples else len(samples)
    if how == "level":
        level = stats.amount_figure(logs)
        value = math.exp(level.value)
        return level._replace(value=value, error=value * level.error, rounds=rounds)
    sittings = _column(samples, "sitting", 1)
    probes = _column(samples, "probe" if lines and metric in QUIET else "")
    if lines is None:
        groups = np.unique(sittings, return_inverse=True)[1]
        sliced = metric in QUIET and np.isfinite(_column(samples, _SLICES)).all()
        line = stats.floors(logs, groups) if sliced else stats.line(logs, probes, groups)
    else:
        kind = str(next(iter(samples.get("kind", ())), ""))
        line = lines.of(kind, metric, last)
        # `quiet_ns` has been moved along the line; the line is fitted to what was timed.
        logs = logs + lines.of(kind, metric).slope * np.nan_to_num(probes)
        if math.isfinite(last) and np.isfinite(probes).any():  # no later round affects the price
            probes = probes - math.log(np.nanquantile(np.exp(probes), stats.PRICE))
    return stats.cost(logs, probes, sittings, line, rounds)


def _column(samples: pd.DataFrame, name: str, default: float = math.nan) -> stats.Floats:
    """The values of a column; without it, the default for each sample."""
    values = np.asarray(samples.get(name, default), dtype=float)
    return np.broadcast_to(values, len(samples))


def cost(samples: pd.DataFrame, metric: str = "quiet_ns") -> pd.Series:
    """Estimate one case from its samples: value, low and high (95 %), rounds, n (processes).

    A time is the mean of the logs, in which each sitting has a weight (see `gccost.stats`), and
    so is a rate. Its error comes from the spread of processes and the run-to-run spread of its
    kind of loop, which the samples of a study carry along in their `attrs`. A merge, a file, or
    pd.concat with other frames loses `attrs`; then `quiet_ns` and `settled_ns` have a value but no
    interval. The interval of samples that are not of a study comes from their own spread. Other
    metrics are medians; any column of numbers is one. A column whose name ends in _ns or _s is
    a time, one that ends in _per_s a rate. With one process, low and high are NaN. `error`,
    `freedom`, `slope_error` and `kind` are for `derive`; the interval is Student's t times both
    errors, added in quadrature. Raises GccostError for samples of several cases, for processes
    that do not count, and without the metric.

        samples.groupby(study.keys, dropna=False).apply(gccost.cost)
    """
    if len(samples):
        _check(samples, metric)
    lines = samples.attrs.get("lines")
    recorded = "source" in samples and (samples["source"] == RECORDED).any()
    if recorded:
        lines = samples.attrs.get("recorded_lines")
    case_figure = figure(samples, metric, lines)
    if lines is None and metric in QUIET:
        case_figure = case_figure._replace(error=math.inf)
    return series(case_figure, metric, source=RECORDED if recorded else "")


def _check(samples: pd.DataFrame, metric: str) -> None:
    """Raise GccostError for samples that have no common cost."""
    problem = ""
    keys = [name for name in samples.attrs.get("keys", _KEYS) if name in samples]
    several = [name for name in keys if len(samples[name].drop_duplicates()) > 1]
    if several:
        problem = f"the samples have several values of {', '.join(several)}"
        hint = "filter, or groupby(study.keys, dropna=False); of what was read, .attrs['keys']"
    elif "rejected" in samples and any(samples["rejected"]):
        problem, hint = "some of the samples do not count", "leave out those that say `rejected`"
    elif not is_numeric_dtype(samples.get(metric, pd.Series(dtype=str))):
        problem = f"the samples have no column {metric!r} of numbers"
        hint = nearest(QUIET.get(metric, metric), samples.select_dtypes("number"))
    if problem:
        raise GccostError(problem, "gccost.cost", hint)


def row(estimate: Estimate, scale: float = 1.0) -> dict[str, float]:
    """An estimate as a row of a frame, times `scale`; an interval that is not finite is NaN."""
    numbers = [scale * end for end in (estimate.value, estimate.low, estimate.high)]
    if not np.isfinite(numbers[1:]).all():
        numbers[1:] = math.nan, math.nan
    return dict(zip(VALUES, [*numbers, estimate.rounds, estimate.n], strict=True))


def nothing() -> None:
    """The other figure of what has none."""


def series(
    figure: Figure,
    metric: str = "",
    *,
    signed: bool = False,
    source: str = "",
    other: Other = nothing,
) -> pd.Series:
    """A figure as a row of costs."""
    signed = signed or (bool(metric) and metrics.kind(metric) == "count")
    estimate = stats.combine(float, [figure], signed=signed)
    error = figure.error if estimate.n else math.nan
    more = [error, figure.freedom, figure.slope_error, figure.kind, source, other]
    return pd.Series([*row(estimate).values(), *more], COSTS)


def better(
    own: Figure, other: Other, metric: str = "", *, signed: bool = False, fewest: int = FEWEST
) -> pd.Series:
    """A figure as a row of costs: the recorded run's if only that one can be quoted."""
    mine = series(own, metric, signed=signed, other=other)
    if is_quotable(mine, fewest, signed) or (recorded := other()) is None:
        return mine
    theirs = series(recorded, metric, signed=signed, source=RECORDED, other=other)
    return theirs if is_quotable(theirs, fewest, signed) else mine


def is_quotable(row: Any, fewest: int = 1, signed: bool = False) -> bool:
    """Whether a row has a figure with enough processes, and an interval that is not too wide.

    A difference, which is `signed`, may be small next to its interval.
    """
    low, high = row["low"], row["high"]
    known = not (pd.isna(row["value"]) or pd.isna(low)) and row["n"] >= fewest
    return known and (signed or not (low > 0 and high / low > WIDEST))


def frame(rows: Sequence[pd.Series], index: pd.Index) -> pd.DataFrame:
    """Rows of costs as a frame."""
    types = dict.fromkeys(COSTS[:-3], float) | {"rounds": int, "n": int}
    return pd.DataFrame(rows, index, COSTS).astype(types)


def of_share(estimate: Estimate, source: str = "") -> dict[str, Any]:
    """The estimate of a share as a row of costs, in percent."""
    percents = row(estimate, 100)
    freedom = max(estimate.rounds - 1, 1)
    error = (percents["high"] - percents["low"]) / 2 / float(stats.t(freedom, SHOWN))
    more = {"error": error, "freedom": freedom, "slope_error": 0.0, "kind": ""}
    return percents | more | {"source": source, "other": nothing}


def derive(
    function: Callable[..., float], *costs: pd.Series | pd.DataFrame, signed: bool = False
) -> Any:
    """Estimate function(cost, …) with its interval, by the delta method.

    Each cost is a row of `costs`, or a frame of such rows; frames are matched by their index.
    With `signed` the interval is symmetric on the linear scale, for a value that may be zero
    or negative; otherwise on the log scale. The result has the columns of `costs`, as a Series
    or a frame, and can be derived from in turn. Rounded values change nothing else. If one of
    the costs is recorded, the result is derived from the recorded run's figures alone.

        gccost.derive(lambda new, old: new / old, new, old)
    """
    frames = [each for each in costs if isinstance(each, pd.DataFrame)]
    if not frames:
        return _derived(function, costs, signed)
    index = frames[0].index
    for each in frames:
        if not each.index.is_unique:
            twice = each.index[each.index.duplicated()][0]
            raise GccostError(f"two costs are {twice}", "gccost.derive", "filter, or set_index")
        index = index.intersection(each.index, sort=False)
    rows = []
    for at in index:
        chosen = [each.loc[at] if isinstance(each, pd.DataFrame) else each for each in costs]
        rows.append(derive(function, *chosen, signed=signed))
    return frame(rows, index)


def _derived(function: Callable[..., float], costs: Sequence[Any], signed: bool) -> pd.Series:
    """A row of costs that is derived from others of one run."""

    def recorded() -> Figure | None:
        figures = [cost.get("other", nothing)() for cost in costs]
        if any(figure is None for figure in figures):
            return None
        return stats.propagate(function, figures, signed)

    own = stats.propagate(function, [*map(_figure, costs)], signed)
    if any(cost.get("source", "") == RECORDED for cost in costs):
        own = Figure()
    return better(own, recorded, signed=signed)


def _figure(cost: Any) -> Figure:
    """A row of costs with its errors."""
    known = getattr(cost, "index", ())
    optional = ("low", "high", "source", "other")
    if missing := [name for name in COSTS if name not in (*optional, *known)]:
        hint = "keep the columns of costs: they say how large the errors are"
        raise GccostError(f"a cost has no column {missing[0]!r}", "gccost.derive", hint)
    known = cost.fillna({"error": math.inf, "kind": "", "rounds": 0, "n": 0})
    value, error, freedom, slope_error, kind = known[["value", *COSTS[5:9]]]
    rounds, n = int(known["rounds"]), int(known["n"])
    return Figure(value, error, freedom, slope_error, kind, 0.0, rounds, n)


def compare(over: pd.DataFrame, under: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The ratio and the difference of costs that have the same keys, which become the index.

    Columns: ratio, ratio_low, ratio_high; more, more_low, more_high (the difference, in the
    metric's unit); differs (whether the ratio's interval excludes 1; NA if it is unknown);
    rounds, n; source.
    """
    sides = [each.set_index(list(keys)) for each in (over, under)]
    index = sides[0].index.intersection(sides[1].index, sort=False)
    pairs = [_compared([each.loc[at] for each in sides]) for at in index]
    names = [f"{name}{end}" for name in ("ratio", "more") for end in ("", "_low", "_high")]
    values = [[*ratio[VALUES[:3]], *more[VALUES[:3]]] for ratio, more in pairs]
    comparison = pd.DataFrame(values, index, names, dtype=float)
    apart = (comparison["ratio_low"] > 1) | (comparison["ratio_high"] < 1)
    comparison["differs"] = apart.astype("boolean").where(comparison["ratio_low"].notna())
    others = pd.DataFrame([ratio for ratio, _ in pairs], index, COSTS)
    types = {"rounds": int, "n": int, "source": object}
    return comparison.join(others[[*types]].astype(types))


def _compared(sides: list[pd.Series]) -> list[pd.Series]:
    """The ratio and the difference of two costs, both of one run."""
    wanted = ((lambda a, b: a / b if b else math.nan, False), (lambda a, b: a - b, True))
    both = [_derived(function, sides, signed) for function, signed in wanted]
    if both[0]["source"] == both[1]["source"]:
        return both
    figures = [side["other"]() for side in sides]
    return [
        series(stats.propagate(function, figures, signed), signed=signed, source=RECORDED)
        for function, signed in wanted
    ]
