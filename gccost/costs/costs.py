"""Frames of costs, and of values computed from costs.

The frames hold what a notebook shows, and the claims are judged from the same figures.
`gccost.costs.method` defines and explains how they are estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import sub
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from gccost.costs import method, metrics
from gccost.costs.method import Costs, Figure, Sitting
from gccost.errors import GccostError, nearest
from gccost.stats import Estimate

VALUES = ["value", "low", "high", "rounds", "n"]
"""The columns of every frame of figures."""

_KEYS = ("release", "variant", "gc")  # of samples that lost their attrs
COSTS = [*VALUES, "source", "run", "figure"]
"""The columns of costs. `source` is "recorded" if the figure is a recorded run's, because this run
did not measure it, and `run` names that run. `figure` is what `derive` needs: the values of
sittings, of this run and of recorded ones."""
RECORDED = "recorded"
_ENDS = {"": "value", "_low": "low", "_high": "high"}
_NAMED = 5  # of the rows that are left out
FEWEST, WIDEST = 3, 4.0  # processes of a figure that is sharp, and high over low
_NO_VALUE = (
    "no value: the costs have no sitting in common, or the function is zero or negative there, "
    "which signed=True allows"
)
METRIC = "ns"  # of a cost, unless another is named


def row(estimate: Estimate, scale: float = 1.0) -> dict[str, float]:
    """An estimate as a row of a frame, times `scale`; an interval that is not finite is NaN."""
    low, high = scale * estimate.low, scale * estimate.high
    if not (math.isfinite(low) and math.isfinite(high)):
        low, high = math.nan, math.nan
    value = scale * estimate.value
    numbers = [value, low, high, estimate.rounds, estimate.n]
    return dict(zip(VALUES, numbers, strict=True))


def series(figure: Figure, *, signed: bool = False) -> pd.Series:
    """A figure as a row of costs: the recorded run's if this run has not measured it at all."""
    source, shown = "", figure
    if not figure.n and figure.recorded is not None:
        source, shown = RECORDED, figure.recorded
        figure = Figure(recorded=shown)
    estimate = method.estimate(shown, signed=signed)
    values = row(estimate).values()
    return pd.Series([*values, source, shown.run, figure], COSTS)


def is_sharp(row: Any, fewest: int = 1, signed: bool = False) -> bool:
    """Whether a row has enough processes, and an interval that spans less than a factor of 4.

    Figures that are not are drawn in grey, and quoted by their interval alone. A difference, which
    is `signed`, may be small next to its interval.
    """
    value, low, high = row["value"], row["low"], row["high"]
    if pd.isna(value) or pd.isna(low) or row["n"] < fewest:
        return False
    if signed or low <= 0:
        return True
    return bool(high / low <= WIDEST)


def frame(rows: Sequence[pd.Series], index: pd.Index) -> pd.DataFrame:
    """Rows of costs as a frame."""
    made = pd.DataFrame(rows, index, COSTS)
    return made.astype({"value": float, "low": float, "high": float, "rounds": int, "n": int})


def is_signed(metric: str) -> bool:
    """Whether a metric may be zero or negative."""
    return metrics.scale(metric) == "count"


def cost(samples: pd.DataFrame, metric: str = METRIC) -> pd.Series:
    """Estimate one case from its samples: value, low and high (95 %), rounds, n (processes).

    A time is the lower quartile of the rounds of each sitting, averaged over sittings on the log
    scale (see `gccost.costs.method`). Memory and counts are medians. Any column of numbers is a
    metric: one whose name ends in _ns or _s is a time, one that ends in _per_s a rate. The samples
    of a study know their run, and so how far sittings differ. A merge, a file, or pd.concat with
    other frames loses that; then the interval comes from the samples' own scatter, and a time or
    rate that is zero or negative in any sample is a median too, which is printed. With fewer than
    three rounds, low and high are NaN. Samples whose columns `source` and `run` say that they are
    recorded have a recorded cost. Raises GccostError for samples of several cases, and without the
    metric.

        samples.groupby(study.keys, dropna=False).apply(gccost.cost)
    """
    if not isinstance(samples, pd.DataFrame):
        hint = "name a frame, such as study.samples() or pd.DataFrame({'ns': [5.1, 5.3]})"
        raise GccostError("the samples are no frame", "gccost.cost", hint)
    if len(samples):
        _check(samples, metric)
    study = samples.attrs.get("study")
    if study is not None and len(samples) and "name" in samples:
        made: pd.Series = study.cost(samples, metric)
        return made
    rounds = _rounds_of(samples)
    values = _finite(samples.get(metric, pd.Series(dtype=float)), metric)
    zeros = say_zeros(values, metric, "so the cost is the median of all")
    signed = is_signed(metric) or zeros
    column = "value" if signed else metric  # a column that is not known is a count
    rounds[column] = values
    figure = Costs(rounds).cost("", column)
    if _are_recorded(samples):
        run = str(samples["run"].iloc[0])
        figure = Figure(recorded=replace(figure, run=run))
    return series(figure, signed=signed)


def _rounds_of(samples: pd.DataFrame) -> pd.DataFrame:
    """The rounds and sittings of samples; without them each sample is a round of one sitting.

    Samples that are not of a run may have metrics and keys of these names.
    """
    rounds = pd.DataFrame({"round": range(len(samples)), "sitting": 1.0}, samples.index)
    if _of_a_run(samples):
        known = samples.reindex(columns=["round", "sitting"])
        rounds = known.combine_first(rounds)
    rounds["name"] = ""
    return rounds


def _are_recorded(samples: pd.DataFrame) -> bool:
    """Whether samples say that they are all of one recorded run."""
    if samples.empty or not {"source", "run"} <= {*samples}:
        return False
    is_recorded = bool((samples["source"] == RECORDED).all())
    return is_recorded and len(samples["run"].unique()) == 1


def _of_a_run(samples: pd.DataFrame) -> bool:
    """Whether the columns `round` and `sitting` are those of a run; see `gccost.read`."""
    return bool(samples.attrs.get("of_a_run", "release" in samples))


def _finite(values: pd.Series, metric: str) -> pd.Series:
    """The values without those that are NaN or infinite; says how many these are."""
    is_finite = np.isfinite(values.astype(float))
    finite = values.where(is_finite)
    lost = int(finite.isna().sum())
    if lost:
        print(f"{metric}: {lost} of {len(values)} values are NaN or infinite, and are left out")
    return finite


def say_zeros(values: pd.Series, metric: str, so: str) -> bool:
    """Whether a metric that is read on the log scale has values without a logarithm; says so."""
    if is_signed(metric):
        return False
    zeros = int((values <= 0).sum())
    if zeros:
        what = f"{metric}: {zeros} of {values.count()} values are zero or negative"
        print(f"{what} and have no logarithm; {so}")
    return zeros > 0


def _check(samples: pd.DataFrame, metric: str) -> None:
    """Raise GccostError for samples that have no common cost."""
    keys = samples.attrs.get("keys", _KEYS)
    keys = samples.columns.intersection(keys, sort=False)
    several = [name for name in keys if len(samples[name].drop_duplicates()) > 1]
    if several:
        problem = f"the samples have several values of {', '.join(several)}"
        hint = "filter, or groupby(study.keys, dropna=False); of what was read, .attrs['keys']"
        raise GccostError(problem, "gccost.cost", hint)
    if metric not in samples or not is_numeric_dtype(samples[metric]):
        problem = f"the samples have no column {metric!r} of numbers"
        hint = nearest(metric, samples.select_dtypes("number"))
        raise GccostError(problem, "gccost.cost", hint)


def derive(
    function: Callable[..., float], *costs: pd.Series | pd.DataFrame, signed: bool = False
) -> Any:
    """Estimate function(cost, …) with its interval.

    The function is computed in each sitting, and the sittings are averaged: their logs, or with
    `signed` the plain values, for what may be zero or negative. Each cost is a row of `costs`, or a
    frame of such rows; frames are matched by their index, and a frame whose index has only some of
    the others' levels by those. The result has the index of the frame with the most levels, and the
    columns of `costs`,
    as a Series or a frame, and can be derived from in turn. If one of the costs is recorded, the
    result is derived from the recorded run's figures alone. Costs that were never measured in one
    sitting have no common value.

        gccost.derive(lambda new, old: new / old, new, old)
    """
    frames = [each for each in costs if isinstance(each, pd.DataFrame)]
    if not costs or (frames[1:] and any(is_numbered(each) for each in frames)):
        hint = "name costs; frames are matched by their index: frame.set_index('variant')"
        raise GccostError("nothing says which costs belong together", "gccost.derive", hint)
    if not frames:
        return _derived(function, costs, signed)
    for one in frames:
        repeated = one.index[one.index.duplicated()]
        if len(repeated):
            problem = f"two costs are {repeated[0]}"
            raise GccostError(problem, "gccost.derive", "filter, or set_index")
    main = max(frames, key=lambda one: one.index.nlevels).index
    sides = [_on_index(cost, main) for cost in costs]
    kept, rows = [], []
    for place in range(len(main)):
        chosen = [side[place] for side in sides]
        if any(cost is None for cost in chosen):
            continue
        kept.append(place)
        rows.append(_derived(function, chosen, signed))
    index = main.take(kept)
    alike = [one.index for one in frames if one.index.nlevels == main.nlevels]
    say_unmatched("gccost.derive", index, alike)
    return frame(rows, index)


def _derived(function: Callable[..., float], costs: Sequence[Any], signed: bool) -> pd.Series:
    """The function of rows of costs, as a row."""
    figures = [_figure(cost) for cost in costs]
    made = series(method.propagate(function, figures), signed=signed)
    if not made["n"] and all(cost["n"] for cost in costs):
        print(f"gccost.derive: {_NO_VALUE}")
    return made


def _on_index(costs: pd.Series | pd.DataFrame, index: pd.Index) -> list[pd.Series | None]:
    """The row of a frame for each place of an index that may have more levels, or the one row."""
    if isinstance(costs, pd.Series):
        return [costs] * len(index)
    names = list(costs.index.names)
    if names != list(index.names) and None not in names and {*names} <= {*index.names}:
        index = index.to_frame(index=False).set_index(names).index
    places = costs.index.get_indexer(index)
    return [costs.iloc[place] if place >= 0 else None for place in places]


def is_numbered(frame: pd.DataFrame) -> bool:
    """Whether the index of a frame that has rows only counts them."""
    return len(frame) > 0 and frame.index.names == [None] and frame.index.dtype.kind == "i"


def say_unmatched(place: str, index: pd.Index, of: Sequence[pd.Index]) -> None:
    """Print what is left out because not all indexes have it."""
    labels = dict.fromkeys(label for one in of for label in one)
    lacking = [str(label) for label in labels if label not in index]
    if lacking:
        named = "; ".join(lacking[:_NAMED])
        print(f"{place}: {len(lacking)} rows left out, which not all frames have: {named}")


def _figure(cost: Any, place: str = "gccost.derive") -> Figure:
    """The values in sittings of a row of costs."""
    if "figure" not in getattr(cost, "index", ()):
        hint = "keep the column `figure` of costs and derive; compare has none"
        raise GccostError("a row has no column 'figure'", place, hint)
    figure = cost["figure"]
    return figure if isinstance(figure, Figure) else Figure()


def sittings(cost: Any) -> pd.DataFrame:
    """The sittings that a row of `costs` or `derive` averages, with what its interval is made of.

    A row per sitting: value; error (the standard deviation of its log within the sitting); rounds;
    spread (the standard deviation of the log of one sitting, moderated); freedom (its degrees of
    freedom); source and run, as in costs.
    """
    figure = _figure(cost, "gccost.sittings")
    if figure.recorded and cost["source"] == RECORDED:
        figure = figure.recorded
    made = pd.DataFrame(figure.sittings.values(), columns=list(Sitting._fields))
    made["sitting"] = [int(number) for number in figure.sittings]
    counted = [sitting in figure.counted for sitting in figure.sittings.values()]
    made = made.loc[counted].set_index("sitting")
    made["error"] /= made["value"]
    of_one = method.moderated_spread(figure, signed=False)
    made["spread"] = math.sqrt(of_one.variance)
    made["freedom"] = of_one.freedom
    return made.assign(source=cost["source"], run=figure.run)


def compare(over: pd.DataFrame, under: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The ratio and the difference of costs that have the same keys, which become the index.

    Columns: ratio, ratio_low, ratio_high; more, more_low, more_high (the difference, in the
    metric's unit); differs (whether the ratio's interval excludes 1; NA if it is unknown);
    rounds, n; source, run.
    """
    over = over.set_index(list(keys))
    under = under.set_index(list(keys))
    index = over.index.intersection(under.index, sort=False)
    ratios, differences = [], []
    for case in index:
        pair = _compared(over.loc[case], under.loc[case])
        ratios.append(pair[0])
        differences.append(pair[1])
    ratio = frame(ratios, index)
    more = frame(differences, index)
    ratio_ends = {column: f"ratio{end}" for end, column in _ENDS.items()}
    more_ends = {column: f"more{end}" for end, column in _ENDS.items()}
    comparison = ratio[[*ratio_ends]].rename(columns=ratio_ends)
    comparison = comparison.join(more[[*more_ends]].rename(columns=more_ends))
    apart = (ratio["low"] > 1) | (ratio["high"] < 1)
    comparison["differs"] = apart.astype("boolean").where(ratio["low"].notna())
    return comparison.join(ratio[["rounds", "n", "source", "run"]])


def _compared(over: pd.Series, under: pd.Series) -> tuple[pd.Series, pd.Series]:
    """The ratio and the difference of two costs, both of one run."""
    figures = [_figure(over), _figure(under)]
    ratio = series(method.propagate(_ratio, figures))
    if ratio["source"] == RECORDED:
        figures = [Figure(recorded=figure.recorded) for figure in figures]
    difference = method.propagate(sub, figures)
    return ratio, series(difference, signed=True)


def _ratio(over: float, under: float) -> float:
    return over / under if under else math.nan
