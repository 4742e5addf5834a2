"""Leave each sitting of a run out: does its interval contain what the other sittings show?

For each claim on a ratio of times or memory, each sitting is taken as a run of its own, with the
other sittings as the recorded run. Four ways to read a time off a sitting's processes are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import truediv
from typing import Any

import numpy as np
import pandas as pd

from gccost import stats
from gccost.cases import jobs, published, versions
from gccost.costs import kinds, metrics
from gccost.costs.kinds import Kinds, Level
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.run.runs import Run
from gccost.stats import FEWEST, JUDGED, SHOWN, Figure


def _least(values: pd.Series, by: list[str]) -> pd.Series:
    return values.groupby(by).min()


def _mean(values: pd.Series, by: list[str]) -> pd.Series:
    return values.groupby(by).mean()


ESTIMATORS: Mapping[str, Level] = {
    "mean": Level(_mean, 1.0),
    "median": kinds.MEDIAN,
    "lower quartile": kinds.LOWER_QUARTILE,
    "least": Level(_least, stats.QUARTILE),  # its own factor depends on the number of rounds
}
_HALF = 0.5  # confidence
_FEWEST_SITTINGS = 3
DECIDED = {"holds", "does not hold"}
_COLUMNS = [
    *("id", "release", "sitting", "value", "low", "high", "others"),
    *("error", "half_width", "tolerance", "covers", "covers_50", "contradicts"),
]


def left_out(
    run: Run, studies: Iterable[Study], estimator: str = "lower quartile", rounds: int | None = None
) -> pd.DataFrame:
    """A row per claim, release and sitting, with the sitting as a run of its own.

    `value`, `low` and `high` (95 %) are the sitting's; with `rounds`, those of its first rounds.
    `others` is the ratio in the other sittings. `error` is the log of value over others, and
    `half_width` that of the interval; `tolerance` is that of the interval of 99 %. `covers` and
    `covers_50` say whether the intervals of 95 and 50 % contain others; `contradicts` whether the
    verdicts do. A claim needs three sittings.
    """
    frame, times = kinds.of_run(run).frame, ESTIMATORS[estimator]
    at = frame.groupby(["name", "sitting"])["round"].rank("dense")
    first = frame if rounds is None else frame[at <= rounds]
    whole = Kinds(frame, times)
    # Each sitting has the scatter of its own rounds.
    apart = Kinds(first.assign(kind=first["kind"] + ", " + first["sitting"].astype(str)), times)
    claims = [(claim, go) for study in studies for claim in study.claims for go in claim.releases]
    words = published.by_name("claims", [claim.id for claim, _ in claims])
    rows = []
    for claim, go in claims:
        quantity = claim.quantity
        if not isinstance(quantity, Ratio) or metrics.kind(quantity.metric) == "count":
            continue
        every = _ratio(quantity, go, whole, whole)
        if len(every.sittings) < _FEWEST_SITTINGS:
            continue
        for number in every.sittings:
            others = {k: each for k, each in every.sittings.items() if k != number}
            rest = replace(every, sittings=others)
            own = replace(_ratio(quantity, go, apart, whole, number.__eq__), recorded=rest)
            found = _row(claim, words[claim.id]["value"], own, rest)
            rows.append([claim.id, versions.title(go), int(number), *found])
    return pd.DataFrame(rows, columns=_COLUMNS)


def _ratio(
    quantity: Ratio, release: str, part: Kinds, run: Kinds, only: Callable[[float], bool] = bool
) -> Figure:
    """A claim's ratio in the wanted sittings of a part of a run, with the run's usual spread."""
    names = [jobs.name(case, release) for case in quantity.cases]
    costs = [part.cost(name, quantity.metric, run, only) for name in names]
    figure = stats.propagate(truediv, costs)
    enough = {k: each for k, each in figure.sittings.items() if each.rounds >= FEWEST}
    return replace(figure, sittings=enough)


def _row(claim: Claim, by: float, own: Figure, rest: Figure) -> list[Any]:
    shown, half, judged = (stats.estimate(own, confidence) for confidence in (SHOWN, _HALF, JUDGED))
    others = stats.estimate(rest, JUDGED)
    verdicts = {str(claim.rule.judge(each, by).label.value) for each in (judged, others)}
    return [
        *(shown.value, shown.low, shown.high, others.value),
        math.log(shown.value / others.value),
        *(math.log(each.high / each.low) / 2 for each in (shown, judged)),
        *(shown.contains(others.value), half.contains(others.value), verdicts == DECIDED),
    ]


def by_claim(found: pd.DataFrame) -> pd.DataFrame:
    """The rows of `left_out` by claim and release, in percent.

    Columns: sittings, rms (of the errors), half_width (the median), covers, covers_50.
    """
    by = found.assign(square=found["error"] ** 2).groupby(["id", "release"], sort=False)
    return pd.DataFrame(
        {
            "sittings": by.size(),
            "rms": 100 * np.sqrt(by["square"].mean()),
            "half_width": 100 * np.expm1(by["half_width"].median()),
            "covers": 100 * by["covers"].mean(),
            "covers_50": 100 * by["covers_50"].mean(),
        }
    )


def estimators(run: Run, studies: Iterable[Study]) -> pd.DataFrame:
    """The four estimators on whole sittings and on their first three rounds, in percent.

    Columns: rms (the median over claims), half below (of the errors), 95 % covers, 50 % covers,
    L1 ± and M1 ± (the median half-width of a sitting's interval), contradictions (a count).
    """
    studies, rows = list(studies), {}
    for of, rounds in {"whole sittings": None, "their first 3 rounds": FEWEST}.items():
        for name in ESTIMATORS:
            found = left_out(run, studies, name, rounds)
            claims = by_claim(found)
            widths = found.groupby("id")["half_width"].median()
            rows[of, name] = {
                "rms": claims["rms"].median(),
                "half below": 100 * found["error"].abs().median(),
                "95 % covers": 100 * found["covers"].mean(),
                "50 % covers": 100 * found["covers_50"].mean(),
                **{f"{id} ±": 100 * math.expm1(widths.get(id, math.nan)) for id in ("L1", "M1")},
                "contradictions": found["contradicts"].sum(),
            }
    return pd.DataFrame(rows).T
