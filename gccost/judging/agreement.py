"""Does a new run agree with the recorded one? A row for each claim that both can judge."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
import scipy  # its parts are loaded when they are used

from gccost.costs.recording import Recording
from gccost.judging import leaving_out, ledger
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.run.runs import Run
from gccost.stats import FEWEST, JUDGED

_COLUMNS = [
    *("id", "release", "verdict", "recorded_verdict", "value", "recorded_value"),
    *("factor", "tolerance", "inside", "contradicts"),
]


def tolerances(recordings: Iterable[Recording]) -> dict[tuple[str, str], float]:
    """The tolerance of a quick run, as a factor, by claim and release.

    Each sitting of a recorded run is left out in turn, and has its first three rounds, which are
    those of a quick run. The tolerance is the half-width of its 99 % interval (the median). It is
    known for ratios of times and memory that were recorded in three sittings or more.
    """
    studies: dict[Run, list[Study]] = {}
    for each in recordings:
        studies.setdefault(each.run, []).append(each.study)
    found = [leaving_out.left_out(run, of, rounds=FEWEST) for run, of in studies.items()]
    frame = pd.concat([pd.DataFrame(columns=["id", "release", "tolerance"]), *found])
    return dict(np.exp(frame.groupby(["id", "release"])["tolerance"].median().astype(float)))


def agreement(run: Run, studies: Iterable[Study]) -> pd.DataFrame:
    """A row per claim and release of the run's studies on which the recorded run has a figure.

    `value` is NA where the run has no figure. `factor` is value over recorded value, and
    `inside` says whether it lies between 1/`tolerance` and `tolerance`; they are NA without a
    value or a tolerance. `contradicts` says that the claim holds in one run and does not hold in
    the other.
    """
    own = {each.name: Recording(each, run) for each in studies if each.name in run.studies}
    recorded = {name: each.recorded for name, each in own.items() if each.recorded}
    both = [own[name].study for name in recorded]
    allowed = tolerances(recorded.values())
    pairs = zip(ledger.rows(own, both), ledger.rows(recorded, both), strict=True)
    rows = [_row(*pair, allowed) for pair in pairs if pair[1].judged.n]
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"inside": "boolean"})


def by_chance(found: pd.DataFrame) -> int:
    """The most figures that lie outside their tolerances in 99 % of runs that agree."""
    return int(scipy.stats.binom.ppf(JUDGED, found["inside"].count(), 1 - JUDGED))


def _row(mine: Row, other: Row, allowed: dict[tuple[str, str], float]) -> list[object]:
    where = mine.claim.id, mine.toolchain
    verdicts = [str(mine.verdict), str(other.verdict)]
    values = [mine.estimate.value if mine.judged.n else math.nan, other.estimate.value]
    contradicts = set(verdicts) == leaving_out.DECIDED
    if where not in allowed or not mine.judged.n:
        return [*where, *verdicts, *values, math.nan, math.nan, None, contradicts]
    factor, tolerance = values[0] / values[1], allowed[where]
    inside = 1 / tolerance <= factor <= tolerance
    return [*where, *verdicts, *values, factor, tolerance, inside, contradicts]
