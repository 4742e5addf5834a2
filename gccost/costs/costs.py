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
    numbers = [scale * end for end in (estimate.value, estimate.low, estimate.high)]
    if not np.isfinite(numbers[1:]).all():
        numbers[1:] = math.nan, math.nan
    return dict(zip(VALUES, [*numbers, estimate.rounds, estimate.n], strict=True))


def series(figure: Figure, *, signed: bool = False) -> pd.Series:
    """A figure as a row of costs: the recorded run's if this run has not measured it at all."""
    source = ""
    if not figure.n and figure.recorded is not None:
        source = RECORDED
        shown = figure.recorded
        figure = Figure(recorded=shown)
    else:
        shown = figure
    made = row(method.estimate(shown, signed=signed))
    return pd.Series([*made.values(), source, shown.run, figure], COSTS)


def is_sharp(row: Any, fewest: int = 1, signed: bool = False) -> bool:
    """Whether a row has enough processes, and an interval that spans less than a factor of 4.

    Figures that are not are drawn in grey, and quoted by their interval alone. A difference, which
    is `signed`, may be small next to its interval.
    """
    low, high = row["low"], row["high"]
    known = not (pd.isna(row["value"]) or pd.isna(low)) and row["n"] >= fewest
    return known and (signed or not (low > 0 and high / low > WIDEST))


def frame(rows: Sequence[pd.Series], index: pd.Index) -> pd.DataFrame:
    """Rows of costs as a frame."""
    types = dict.fromkeys(VALUES[:3], float) | {"rounds": int, "n": int}
    return pd.DataFrame(rows, index, COSTS).astype(types)


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
    alone = pd.DataFrame({"round": range(len(samples)), "sitting": 1.0}, samples.index)
    # Others may have metrics and keys of these names.
    known = samples.reindex(columns=[*alone]).combine_first(alone) if _of_a_run(samples) else alone
    known = known.assign(name="")
    values = _finite(samples.get(metric, pd.Series(dtype=float)), metric)
    zeros = say_zeros(values, metric, "so the cost is the median of all")
    signed = is_signed(metric) or zeros
    column = "value" if signed else metric  # a column that is not known is a count
    of_one = Costs(known.assign(**{column: values}))
    made_alone = of_one.cost("", column)
    if _are_recorded(samples):
        made_alone = Figure(recorded=replace(made_alone, run=str(samples["run"].iloc[0])))
    return series(made_alone, signed=signed)


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
    finite = values.where(np.isfinite(values.astype(float)))
    if lost := int(finite.isna().sum()):
        print(f"{metric}: {lost} of {len(values)} values are NaN or infinite, and are left out")
    return finite


def say_zeros(values: pd.Series, metric: str, so: str) -> bool:
    """Whether a metric that is read on the log scale has values without a logarithm; says so."""
    zeros = 0 if is_signed(metric) else int((values <= 0).sum())
    if zeros:
        what = f"{metric}: {zeros} of {values.count()} values are zero or negative"
        print(f"{what} and have no logarithm; {so}")
    return zeros > 0


def _check(samples: pd.DataFrame, metric: str) -> None:
    """Raise GccostError for samples that have no common cost."""
    problem = ""
    keys = [name for name in samples.attrs.get("keys", _KEYS) if name in samples]
    several = [name for name in keys if len(samples[name].drop_duplicates()) > 1]
    if several:
        problem = f"the samples have several values of {', '.join(several)}"
        hint = "filter, or groupby(study.keys, dropna=False); of what was read, .attrs['keys']"
    elif not is_numeric_dtype(samples.get(metric, pd.Series(dtype=str))):
        problem = f"the samples have no column {metric!r} of numbers"
        hint = nearest(metric, samples.select_dtypes("number"))
    if problem:
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
        made = series(method.propagate(function, [*map(_figure, costs)]), signed=signed)
        if not made["n"] and all(cost["n"] for cost in costs):
            print(f"gccost.derive: {_NO_VALUE}")
        return made
    for each in frames:
        if not each.index.is_unique:
            twice = each.index[each.index.duplicated()][0]
            raise GccostError(f"two costs are {twice}", "gccost.derive", "filter, or set_index")
    main = max(frames, key=lambda each: each.index.nlevels).index
    sides = [_on_index(each, main) if isinstance(each, pd.DataFrame) else each for each in costs]
    kept, rows = [], []
    for place in range(len(main)):
        chosen = [each.get(place) if isinstance(each, dict) else each for each in sides]
        known = [each for each in chosen if each is not None]
        if len(known) == len(sides):
            kept.append(place)
            rows.append(derive(function, *known, signed=signed))
    index = main.take(kept)
    alike = [each.index for each in frames if each.index.nlevels == main.nlevels]
    say_unmatched("gccost.derive", index, alike)
    return frame(rows, index)


def _on_index(costs: pd.DataFrame, index: pd.Index) -> dict[int, pd.Series]:
    """The row of a frame for each place of an index that may have more levels."""
    names = list(costs.index.names)
    if names != list(index.names) and None not in names and {*names} <= {*index.names}:
        index = index.to_frame(index=False).set_index(names).index
    places = costs.index.get_indexer(index)
    return {place: costs.iloc[int(at)] for place, at in enumerate(places) if at >= 0}


def is_numbered(frame: pd.DataFrame) -> bool:
    """Whether the index of a frame that has rows only counts them."""
    return len(frame) > 0 and frame.index.names == [None] and frame.index.dtype.kind == "i"


def say_unmatched(place: str, index: pd.Index, of: Sequence[pd.Index]) -> None:
    """Print what is left out because not all indexes have it."""
    every = dict.fromkeys(each for one in of for each in one)
    if lacking := [str(each) for each in every if each not in index]:
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
    counted = {k: each for k, each in figure.sittings.items() if each in figure.counted}
    made = pd.DataFrame(counted.values(), [*map(int, counted)], list(Sitting._fields))
    made["error"] /= made["value"]
    of_one = method.moderated_spread(figure, signed=False)
    spread, freedom = math.sqrt(of_one.variance), of_one.freedom
    made = made.assign(spread=spread, freedom=freedom, source=cost["source"], run=figure.run)
    return made.rename_axis("sitting")


def compare(over: pd.DataFrame, under: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The ratio and the difference of costs that have the same keys, which become the index.

    Columns: ratio, ratio_low, ratio_high; more, more_low, more_high (the difference, in the
    metric's unit); differs (whether the ratio's interval excludes 1; NA if it is unknown);
    rounds, n; source, run.
    """
    sides = [each.set_index(list(keys)) for each in (over, under)]
    index = sides[0].index.intersection(sides[1].index, sort=False)
    pairs = [_compared([each.loc[at] for each in sides]) for at in index]
    ratio, more = (frame([pair[i] for pair in pairs], index) for i in (0, 1))
    parts = {"ratio": ratio, "more": more}
    comparison = pd.DataFrame(
        {f"{name}{end}": part[of] for name, part in parts.items() for end, of in _ENDS.items()}
    )
    apart = (comparison["ratio_low"] > 1) | (comparison["ratio_high"] < 1)
    comparison["differs"] = apart.astype("boolean").where(comparison["ratio_low"].notna())
    return comparison.join(ratio[["rounds", "n", "source", "run"]])


def _compared(costs: list[pd.Series]) -> list[pd.Series]:
    """The ratio and the difference of two costs, both of one run."""
    figures = [*map(_figure, costs)]
    ratio = series(method.propagate(lambda a, b: a / b if b else math.nan, figures))
    if ratio["source"] == RECORDED:
        figures = [Figure(recorded=each.recorded) for each in figures]
    return [ratio, series(method.propagate(sub, figures), signed=True)]
