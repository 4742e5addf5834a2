"""Leave sittings of a run out: do their intervals contain what the other sittings show?

For each claim on a ratio of times or memory, each sitting is taken as a run of its own, with the
other sittings as the recorded run. Four ways to read a time off a sitting's processes are compared,
and ratios that were never recorded, and several sittings left out together, are tried as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gccost.cases import published, versions
from gccost.costs import method, samples
from gccost.costs.method import Costs, Spread, Statistic
from gccost.judging.claims import Claim, Study
from gccost.run.runs import Run
from gccost.stats import FEWEST, JUDGED, SHOWN, Estimate


def _plain(name: str) -> Statistic:
    return lambda values, by: values.groupby(by).agg(name)


ESTIMATORS: Mapping[str, Statistic] = {
    "mean": _plain("mean"),
    "median": method.median,
    "lower quartile": method.quartile,
    "least": _plain("min"),
}
_COVERAGE = {"covers": SHOWN, "covers_50": 0.5, "covers_99": JUDGED}
"""The confidence of the intervals of each column."""
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
) -> pd.DataFrame:
    """A row per claim, release and set of sittings, with the set as a run of its own.

    `value`, `low` and `high` (95 %) are those of the sittings that are left out; with `rounds`, of
    their first rounds. `others` is the ratio in the other sittings. `error` is the log of value
    over others, and `half_width` that of the interval; `tolerance` is that of the interval of 99 %.
    `covers`, `covers_50` and `covers_99` say whether the intervals contain others, whose own error
    is added; `contradicts` whether the verdicts do.

    `sittings` is how many are left out together. Unless `recorded`, a ratio is left out whole, as
    if no run had ever recorded it. A claim needs two sittings more than are left out.
    """
    claims = {claim.id: claim for study in studies for claim in study.claims}
    words = published.by_name("claims", claims)
    rows = []
    for ratio in _ratios_of(samples.costs_of(run), estimator, rounds):
        if ratio.claim not in claims:
            continue
        for out in _sets(ratio.sittings, sittings):
            pair = _left_out(ratio, out, recorded)
            if pair is None:
                continue
            bar = words[ratio.claim]["value"]
            row = _row(claims[ratio.claim], bar, pair)
            row["release"] = ratio.release
            row["sitting"] = out[0]
            rows.append(row)
    return pd.DataFrame(rows, columns=_COLUMNS)


@lru_cache(maxsize=16)
def _ratios_of(measured: Costs, estimator: str, rounds: int | None) -> list[_Ratio]:
    """The ratios of a run by an estimator, whole and in their first rounds."""
    statistic = ESTIMATORS[estimator]
    costs = Costs(measured.samples, measured.ratios, statistic)
    part = costs
    if rounds is not None:
        first = _first(measured.samples, rounds)
        part = Costs(first, measured.ratios, statistic)
    return list(_ratios(costs, part))


def _first(processes: pd.DataFrame, rounds: int) -> pd.DataFrame:
    """The processes of the first rounds of each sitting."""
    cases = processes.groupby(["name", "sitting"])
    number = cases["round"].rank("dense")
    return processes[number <= rounds]


class _Log(NamedTuple):
    """The log of a ratio in a sitting, and its variance."""

    value: float
    variance: float


class _Ratio(NamedTuple):
    """A claim's ratio: whole sittings, their first rounds, and the prior that others show."""

    claim: str
    release: str
    whole: Mapping[int, _Log]  # by sitting
    part: Mapping[int, _Log]
    prior: Spread

    @property
    def sittings(self) -> list[int]:
        return [number for number in self.whole if number in self.part]


def _ratios(costs: Costs, part: Costs) -> Iterator[_Ratio]:
    """The ratios of a run, each with the prior that the others of its scale show."""
    keys = ["claim", "release"]
    for scale in _SCALES:
        logs = costs.logs(scale)
        of_part = dict(list(part.logs(scale).groupby(keys)))
        for key, whole in logs.groupby(keys, sort=False):
            if key not in of_part or len(whole) < _FEWEST_SITTINGS:
                continue
            claim, release = map(str, key)
            is_other = (logs["claim"] != claim) | (logs["release"] != release)
            prior = method.of_sittings(logs[is_other], keys)
            first = _by_sitting(of_part[key])
            yield _Ratio(claim, versions.title(release), _by_sitting(whole), first, prior)


def _by_sitting(logs: pd.DataFrame) -> dict[int, _Log]:
    columns = (logs["sitting"], logs["value"], logs["variance"])
    return {number: _Log(value, variance) for number, value, variance in zip(*columns, strict=True)}


def _sets(numbers: list[int], size: int) -> Iterator[tuple[int, ...]]:
    """The sets of so many sittings, or some of them, evenly chosen, if there are too many."""
    sets = list(combinations(numbers, size))
    step = math.ceil(len(sets) / _MOST_SETS)
    yield from sets[:: max(step, 1)]


class _Side(NamedTuple):
    """A ratio in some sittings: the mean of its logs, and the mean's variance."""

    log: float
    spread: Spread

    @property
    def deviation(self) -> float:
        return math.sqrt(self.spread.variance)

    def half(self, confidence: float) -> float:
        """Half the interval of the log."""
        return method.t(self.spread.freedom, confidence) * self.deviation

    def estimate(self, confidence: float) -> Estimate:
        """The ratio with its interval."""
        half = self.half(confidence)
        value = math.exp(self.log)
        low = math.exp(self.log - half)
        high = math.exp(self.log + half)
        return Estimate(value, low, high, FEWEST, FEWEST, confidence)


class _Pair(NamedTuple):
    """A ratio in the sittings that are left out, and in the others."""

    out: _Side
    others: _Side


def _left_out(ratio: _Ratio, out: tuple[int, ...], recorded: bool) -> _Pair | None:
    """What the sittings that are left out show; None if too few others are left."""
    own = [ratio.part[number] for number in out]
    others = [log for number, log in ratio.whole.items() if number not in out]
    if len(others) < 2:
        return None
    spread = _spread(own)
    past = _spread(others)
    unknown = Spread()
    before = past if recorded else unknown
    of_own = method.variance(spread, before, ratio.prior)
    of_others = method.variance(past, unknown, ratio.prior)
    return _Pair(_side(own, of_own), _side(others, of_others))


def _spread(logs: Sequence[_Log]) -> Spread:
    values = [log.value for log in logs]
    return method.spread(values, [log.variance for log in logs])


def _side(logs: Sequence[_Log], of_one: Spread) -> _Side:
    mean = float(np.mean([log.value for log in logs]))
    of_mean = of_one.times(1 / len(logs))
    return _Side(mean, of_mean)


def _row(claim: Claim, bar: float, pair: _Pair) -> dict[str, Any]:
    out, others = pair
    error = out.log - others.log
    freedom = out.spread.freedom
    variance = out.spread.variance + others.spread.variance
    deviation = math.sqrt(variance)
    shown = out.estimate(SHOWN)
    row: dict[str, Any] = {"id": claim.id, "value": shown.value}
    row["low"] = shown.low
    row["high"] = shown.high
    row["others"] = math.exp(others.log)
    row["error"] = error
    row["half_width"] = out.half(SHOWN)
    row["tolerance"] = method.t(freedom, JUDGED) * deviation
    for column, confidence in _COVERAGE.items():
        half = method.t(freedom, confidence) * deviation
        row[column] = bool(abs(error) <= half)
    verdicts = set()
    for side in pair:
        judged = side.estimate(JUDGED)
        verdicts.add(str(claim.rule.judge(judged, bar)))
    row["contradicts"] = verdicts == DECIDED
    return row


def by_claim(found: pd.DataFrame) -> pd.DataFrame:
    """The rows of `left_out` by claim and release, in percent.

    Columns: sittings, rms (of the errors), half_width (the median), covers, covers_50.
    """
    squares = found.assign(square=found["error"] ** 2)
    by = squares.groupby(["id", "release"], sort=False)
    table = by.size().to_frame("sittings")
    table["rms"] = 100 * np.sqrt(by["square"].mean())
    table["half_width"] = 100 * np.expm1(by["half_width"].median())
    table["covers"] = 100 * by["covers"].mean()
    table["covers_50"] = 100 * by["covers_50"].mean()
    return table


def summary(found: pd.DataFrame) -> dict[str, float]:
    """Coverage and widths of the rows of `left_out`, in percent.

    `±` columns have the standard error of a coverage, with sittings as the units that differ.
    """
    widths = found.groupby("id")["half_width"].median()
    percent: dict[str, float] = {"ratios": len(found)}
    percent["half below"] = 100 * found["error"].abs().median()
    percent["half-width"] = 100 * math.expm1(found["half_width"].median())
    for claim in ("L1", "M1"):
        width = widths.get(claim, math.nan)
        percent[f"{claim} ±"] = 100 * math.expm1(width)
    for column, confidence in _COVERAGE.items():
        name = f"{100 * confidence:.0f} %"
        percent[f"{name} covers"] = 100 * found[column].mean()
        percent[f"{name} ±"] = 100 * _error_of_coverage(found, column)
    percent["contradictions"] = int(found["contradicts"].sum())
    return percent


def _error_of_coverage(found: pd.DataFrame, column: str) -> float:
    """The standard error of a coverage, with sittings as the units that differ."""
    covers = found.groupby("sitting")[column]
    distances = covers.mean() - found[column].mean()
    weighted = distances * covers.size()
    squares = (weighted**2).sum()
    return math.sqrt(squares) / max(len(found), 1)


def ways(run: Run, studies: Iterable[Study]) -> pd.DataFrame:
    """How well the intervals of a run hold, a row for each way to leave something out."""
    studies = list(studies)
    settings: Mapping[str, dict[str, Any]] = {
        "a sitting": {},
        "its first 3 rounds": {"rounds": FEWEST},
        "a ratio never recorded": {"recorded": False},
        "two sittings": {"sittings": 2},
        "three sittings": {"sittings": 3},
    }
    columns = {}
    for way, of_way in settings.items():
        found = left_out(run, studies, **of_way)
        columns[way] = summary(found)
    return pd.DataFrame(columns).T


def estimators(run: Run, studies: Iterable[Study]) -> pd.DataFrame:
    """The four estimators on whole sittings and on their first three rounds, in percent.

    Columns: rms (the median over claims), half below (of the errors), 95 % covers, 50 % covers,
    L1 ± and M1 ± (the median half-width of a sitting's interval), contradictions (a count).
    """
    studies = list(studies)
    columns = ["rms", "half below", "95 % covers", "50 % covers", "L1 ±", "M1 ±", "contradictions"]
    rows = {}
    for part, rounds in {"whole sittings": None, "their first 3 rounds": FEWEST}.items():
        for name in ESTIMATORS:
            found = left_out(run, studies, name, rounds)
            percent = summary(found)
            percent["rms"] = by_claim(found)["rms"].median()
            rows[part, name] = percent
    return pd.DataFrame(rows).T[columns]
