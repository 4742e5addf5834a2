"""Leave sittings of a run out: do their intervals contain what the other sittings show?

For each claim on a ratio of times or memory, each sitting is taken as a run of its own, with the
other sittings as the recorded run. Four ways to read a time off a sitting's processes are compared,
and ratios that were never recorded, and several sittings left out together, are tried as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gccost.cases import published, versions
from gccost.costs import method, samples
from gccost.costs.method import Costs, Spread, Statistic
from gccost.judging.claims import Claim, Study
from gccost.judging.rules import Verdict
from gccost.run.runs import Run
from gccost.stats import FEWEST, JUDGED, SHOWN, Estimate


def _mean(values: pd.Series, by: list[str]) -> pd.Series:
    return values.groupby(by).mean()


def _least(values: pd.Series, by: list[str]) -> pd.Series:
    return values.groupby(by).min()


ESTIMATORS: Mapping[str, Statistic] = {
    "mean": _mean,
    "median": method.median,
    "lower quartile": method.quartile,
    "least": _least,
}
_HALF = 0.5  # confidence
_FEWEST_SITTINGS = 3
_SCALES = ("time", "amount")
_MOST_SETS = 50  # of sittings that are left out together, of a ratio
DECIDED = {"holds", "does not hold"}
_COLUMNS = [
    *("id", "release", "sitting", "value", "low", "high", "others", "error", "half_width"),
    *("tolerance", "covers", "covers_50", "covers_99", "contradicts"),
]


def left_out(
    run: Run,
    studies: Iterable[Study],
    estimator: str = "lower quartile",
    rounds: int | None = None,
    *,
    sittings: int = 1,
    recorded: bool = True,
    chosen: Iterable[int] | None = None,
) -> pd.DataFrame:
    """A row per claim, release and set of sittings, with the set as a run of its own.

    `value`, `low` and `high` (95 %) are those of the sittings that are left out; with `rounds`, of
    their first rounds. `others` is the ratio in the other sittings. `error` is the log of value
    over others, and `half_width` that of the interval; `tolerance` is that of the interval of 99 %.
    `covers`, `covers_50` and `covers_99` say whether the intervals contain others, whose own error
    is added; `contradicts` whether the verdicts do.

    `sittings` is how many are left out together. Unless `recorded`, a ratio is left out whole, as
    if no run had ever recorded it. With `chosen` only these sittings are left out. A claim needs
    two sittings more than are left out.
    """
    whole = samples.costs_of(run)
    statistic = ESTIMATORS[estimator]
    costs = Costs(whole.samples, whole.ratios, statistic)
    part = costs
    if rounds is not None:
        number = whole.samples.groupby(["name", "sitting"])["round"].rank("dense")
        part = Costs(whole.samples[number <= rounds], whole.ratios, statistic)
    claims = {claim.id: claim for study in studies for claim in study.claims}
    words = published.by_name("claims", claims)
    wanted = None if chosen is None else set(chosen)
    rows = []
    for scale in _SCALES:
        for ratio in _ratios(costs, part, scale):
            if ratio.claim not in claims:
                continue
            bar = words[ratio.claim]["value"]
            for out in _sets(ratio.sittings, sittings):
                if wanted is not None and not wanted.issuperset(out):
                    continue
                found = _left_out(ratio, out, recorded)
                if found is not None:
                    row = _row(claims[ratio.claim], bar, found)
                    rows.append([ratio.claim, ratio.release, out[0], *row])
    return pd.DataFrame(rows, columns=_COLUMNS)


class _Ratio(NamedTuple):
    """A claim's ratio: whole sittings, their first rounds, and the prior that others show."""

    claim: str
    release: str
    whole: pd.DataFrame  # by sitting: log, error
    part: pd.DataFrame
    prior: Spread

    @property
    def sittings(self) -> list[int]:
        return [number for number in self.whole.index if number in self.part.index]


def _ratios(costs: Costs, part: Costs, scale: str) -> Iterator[_Ratio]:
    """The ratios of a run on a scale, each with the prior that the others show."""
    keys = ["claim", "release"]
    every, first = costs.logs(scale), part.logs(scale)
    of_part = {key: rows.set_index("sitting") for key, rows in first.groupby(keys)}
    for key, rows in every.groupby(keys, sort=False):
        claim, release = key
        is_other = (every["claim"] != claim) | (every["release"] != release)
        prior = method.of_sittings(every[is_other], keys)
        if key in of_part and len(rows) >= _FEWEST_SITTINGS:
            title = versions.title(str(release))
            whole = rows.set_index("sitting")
            yield _Ratio(str(claim), title, whole, of_part[key], prior)


def _sets(numbers: list[int], size: int) -> Iterator[tuple[int, ...]]:
    """The sets of so many sittings, or some of them, evenly chosen, if there are too many."""
    every = list(combinations(numbers, size))
    step = max(1, math.ceil(len(every) / _MOST_SETS))
    yield from every[::step]


class _Found(NamedTuple):
    """A ratio in sittings that are left out, and in the others, as logs."""

    log: float
    variance: Spread  # of the log, for an interval
    others: float
    of_others: Spread  # of the mean of the others
    n: int


def _left_out(ratio: _Ratio, out: tuple[int, ...], recorded: bool) -> _Found | None:
    """What the sittings that are left out show; None if too few others are left."""
    own, others = ratio.part.loc[[*out]], ratio.whole.drop(index=[*out])
    if len(others) < 2:
        return None
    spread = method.spread(own["log"], own["error"])
    past = method.spread(others["log"], others["error"])
    made = method.variance(spread, past if recorded else Spread(), ratio.prior)
    alone = method.variance(past, Spread(), ratio.prior)
    return _Found(
        float(own["log"].mean()),
        made.times(1 / len(own)),
        float(others["log"].mean()),
        alone.times(1 / len(others)),
        len(own),
    )


def _row(claim: Claim, bar: float, found: _Found) -> list[Any]:
    error = found.log - found.others
    deviation = math.sqrt(found.variance.variance)
    both = math.sqrt(found.variance.variance + found.of_others.variance)
    half = {c: method.t(found.variance.freedom, c) for c in (SHOWN, _HALF, JUDGED)}
    covers = [bool(abs(error) <= t * both) for t in half.values()]
    ends = [math.exp(found.log + sign * half[SHOWN] * deviation) for sign in (-1, 1)]
    verdicts = {
        str(_judged(claim, bar, found.log, found.variance)),
        str(_judged(claim, bar, found.others, found.of_others)),
    }
    return [
        *(math.exp(found.log), *ends, math.exp(found.others), error),
        *(half[SHOWN] * deviation, half[JUDGED] * both, *covers, verdicts == DECIDED),
    ]


def _judged(claim: Claim, bar: float, log: float, variance: Spread) -> Verdict:
    """The verdict on a claim whose ratio has this log and variance."""
    half = method.t(variance.freedom, JUDGED) * math.sqrt(variance.variance)
    value, low, high = (math.exp(log + by) for by in (0, -half, half))
    return claim.rule.judge(Estimate(value, low, high, FEWEST, FEWEST, JUDGED), bar)


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


def summary(found: pd.DataFrame) -> dict[str, float]:
    """Coverage and widths of the rows of `left_out`, in percent.

    `±` columns have the standard error of a coverage, with sittings as the units that differ.
    """
    widths = found.groupby("id")["half_width"].median()
    return {
        "ratios": len(found),
        "half below": 100 * found["error"].abs().median(),
        "half-width": 100 * math.expm1(found["half_width"].median()),
        **{f"{id} ±": 100 * math.expm1(widths.get(id, math.nan)) for id in ("L1", "M1")},
        **{name: value for each in _coverage(found) for name, value in each.items()},
        "contradictions": int(found["contradicts"].sum()),
    }


def _coverage(found: pd.DataFrame) -> Iterator[dict[str, float]]:
    by = found.groupby("sitting")
    for column, name in {"covers": "95 %", "covers_50": "50 %", "covers_99": "99 %"}.items():
        share, size = by[column].mean(), by.size()
        off = (share - found[column].mean()) * size
        error = math.sqrt((off**2).sum()) / max(len(found), 1)
        yield {f"{name} covers": 100 * found[column].mean(), f"{name} ±": 100 * error}


def ways(run: Run, studies: Iterable[Study], **more: Any) -> pd.DataFrame:
    """How well the intervals of a run hold, a row for each way to leave something out."""
    studies = list(studies)
    asked: Mapping[str, dict[str, Any]] = {
        "a sitting": {},
        "its first 3 rounds": {"rounds": FEWEST},
        "a ratio never recorded": {"recorded": False},
        "two sittings": {"sittings": 2},
        "three sittings": {"sittings": 3},
    }
    rows = {name: summary(left_out(run, studies, **of, **more)) for name, of in asked.items()}
    return pd.DataFrame(rows).T


def estimators(run: Run, studies: Iterable[Study]) -> pd.DataFrame:
    """The four estimators on whole sittings and on their first three rounds, in percent.

    Columns: rms (the median over claims), half below (of the errors), 95 % covers, 50 % covers,
    L1 ± and M1 ± (the median half-width of a sitting's interval), contradictions (a count).
    """
    studies, rows = list(studies), {}
    for of, rounds in {"whole sittings": None, "their first 3 rounds": FEWEST}.items():
        for name in ESTIMATORS:
            found = left_out(run, studies, name, rounds)
            shown = summary(found)
            kept = ("half below", "95 % covers", "50 % covers", "L1 ±", "M1 ±", "contradictions")
            rms = float(by_claim(found)["rms"].median())
            rows[of, name] = {"rms": rms, **{column: shown[column] for column in kept}}
    return pd.DataFrame(rows).T
