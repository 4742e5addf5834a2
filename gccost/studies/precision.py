"""The precision of the measurements: one ratio measured independently, by two methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pandas as pd
import scipy  # its parts are loaded when they are used

from gccost import stats
from gccost.cases.versions import TODAY_GO
from gccost.costs.method import Floats
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Agreement, Quantity, Ratio, Seen
from gccost.judging.rules import Agrees, AtMost
from gccost.stats import Estimate

# === Cases ===========================================================================


OURS = "rounds"  # fresh processes in rounds, each round built anew
COUNT = "count"  # go test -count=10, as commonly run
MEASUREMENTS = tuple(str(number) for number in range(1, 9))
BASELINE, COSTLY = "AllocateFree", "AllocateAuto"


def measured_by(benchmark: str, method: str, load: str, measurement: str) -> str:
    """A case of one independent measurement."""
    return f"{benchmark}/method={method}/load={load}/measurement={measurement}"


# === Claims ==========================================================================


@dataclass(frozen=True)
class MedianRatio(Quantity):
    """A ratio of two medians, each with benchstat's interval from order statistics."""

    ratio: Ratio
    at_once: ClassVar[bool] = True

    def estimate(self, seen: Seen) -> Estimate:
        """The ratio, with both intervals combined as independent errors."""
        over, under = (_logs(seen, case) for case in self.cases)
        n = min(len(over), len(under))
        if n < 6:  # order statistics of fewer cannot give a 95 % interval
            return stats.nothing()
        half = np.hypot(_half(over, seen.confidence), _half(under, seen.confidence))
        value = np.median(over) - np.median(under)
        middle, low, high = map(float, np.exp([value, value - half, value + half]))
        return Estimate(middle, low, high, n, n, seen.confidence)


def _logs(seen: Seen, case: str) -> Floats:
    """The logs of a case's times, sorted."""
    times = seen.processes(case).get("ns", pd.Series(dtype=float))
    return np.sort(np.log(times.dropna().to_numpy()))


def _half(logs: Floats, confidence: float) -> float:
    """Half the length of benchstat's interval of a median, from ten sorted values.

    It is the symmetric one, which benchstat's is for ten, and for some other numbers is not.
    """
    rank = int(scipy.stats.binom.ppf((1 - confidence) / 2, len(logs), 0.5))
    return float(logs[-rank] - logs[rank - 1]) / 2


def measurements(method: str, load: str) -> tuple[Quantity, ...]:
    """The independent measurements of claim L1's ratio by a method."""
    ratios = []
    for number in MEASUREMENTS:
        over = measured_by(COSTLY, method, load, number)
        under = measured_by(BASELINE, method, load, number)
        ratios.append(Ratio(over, under))
    return tuple(ratios) if method == OURS else tuple(map(MedianRatio, ratios))


def agreement(load: str) -> Agreement:
    """The agreement of our measurements, compared with that of go test -count's."""
    return Agreement(measurements(OURS, load), measurements(COUNT, load))


_claim = partial(Claim, anchor="the-same-again", releases=(TODAY_GO,))
CLAIMS: tuple[Claim, ...] = (
    _claim("X9a", quantity=agreement("quiet"), rule=Agrees("go test")),
    _claim("X9b", quantity=agreement("quiet"), rule=AtMost(margin=1.0)),
    _claim("X9c", quantity=agreement("busy"), rule=Agrees("go test")),
)


# === The study =======================================================================

STUDY = Study(
    name="precision",
    chapter="09-how-sure",
    question="Do repeated measurements agree?",
    cases="""
    tiny AllocateFree|AllocateAuto/method=rounds|count/load=quiet|busy/measurement=1..8/go=today
    """,
    document=TODAY_GO,
    report="",
    claims=CLAIMS,
)
