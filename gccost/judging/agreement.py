"""Does a new run agree with a recorded one? A row for each claim that both can judge."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy  # its parts are loaded when they are used

from gccost.costs import method
from gccost.costs.recorded import cpu_of, nearest
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.judging import carrying, leaving_out, ledger
from gccost.judging.carrying import is_current
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.judging.opening import named
from gccost.judging.quantities import Quantity, Ratio, Seen
from gccost.run.runs import Run
from gccost.stats import FEWEST, JUDGED

_COLUMNS = [
    *("id", "release", "verdict", "recorded_verdict", "value", "recorded_value"),
    *("factor", "tolerance", "inside", "contradicts"),
]


def counterpart(run: Run, studies: Iterable[Study], name: str = "") -> Run:
    """The recorded run that a run is compared with: that of a name, or the nearest of its programs.

    It holds half of the run's studies, if there is one that does. Raises GccostError if there is
    none.
    """
    candidates = nearest(run)
    if name:
        return named(name, candidates, "gccost agree", "recorded run")
    held = _held(studies, run)
    for fewest in (len(held) / 2, 1):
        for other in candidates:
            alike = [study for study in held if is_current(study, other)]
            if len(alike) >= max(fewest, 1):
                return other
    hint = "name one with --run, or record one: gccost add"
    raise GccostError("no recorded run has measured the programs of your run", run.name, hint)


def _held(studies: Iterable[Study], run: Run) -> list[Study]:
    return [study for study in studies if study.name in run.studies]


def is_of_one_cpu(run: Run, other: Run) -> bool:
    """Whether two runs were measured on the same model of CPU, so that figures can be judged."""
    return cpu_of(run.manifest()["machine"]) == cpu_of(other.manifest()["machine"])


def agreement(run: Run, other: Run, studies: Iterable[Study]) -> pd.DataFrame:
    """A row per claim and release that a run and a recorded one have studied.

    `value` is NA where the run has no figure. `factor` is value over recorded value, and
    `inside` says whether it lies between 1/`tolerance` and `tolerance`. For two runs of one CPU
    these are the ends of the 99 % interval of the factor. For two CPUs they are the farthest that a
    figure of the same kind has moved between recorded machines. They are NA without a value, for
    what is no ratio of times or memory, and if no two machines are recorded. `contradicts` says
    that the claim holds in one run and does not hold in the other.
    """
    return frame(pairs(run, other, studies))


class Pair(NamedTuple):
    """A claim's row in a run, that in another one, and the tolerance of the factor between them.

    The tolerance is NaN if it is not known.
    """

    ours: Row
    theirs: Row
    tolerance: float

    @property
    def factor(self) -> float:
        """The value over the other one; NaN if there is none."""
        other = self.theirs.estimate.value
        if not self.ours.judged.n or not other:
            return math.nan
        return self.ours.estimate.value / other

    @property
    def inside(self) -> bool | None:
        """Whether the factor is within the tolerance; None if one of them is not known."""
        if not math.isfinite(self.tolerance) or not math.isfinite(self.factor):
            return None
        return 1 / self.tolerance <= self.factor <= self.tolerance

    @property
    def contradicts(self) -> bool:
        """Whether the claim holds in one run, and does not hold in the other."""
        return {str(self.ours.verdict), str(self.theirs.verdict)} == leaving_out.DECIDED


def pairs(run: Run, other: Run, studies: Iterable[Study]) -> list[Pair]:
    """A pair for each claim and release of which the other run has a figure."""
    studies = list(studies)
    held = _held(_held(studies, run), other)
    measured = {study.name: Recording(study, run) for study in held}
    others = {study.name: Recording(study, other) for study in held}
    of_one_cpu = is_of_one_cpu(run, other)
    between = {} if of_one_cpu else carrying.farthest(carrying.by_machine(studies))
    found = []
    own_rows = ledger.rows(measured, held)
    other_rows = ledger.rows(others, held)
    for ours, theirs in zip(own_rows, other_rows, strict=True):
        if not theirs.judged.n:
            continue
        name = ours.study.name
        tolerance = math.nan
        if ours.judged.n and of_one_cpu:
            tolerance = _tolerance(ours, measured[name], others[name])
        elif ours.judged.n:
            tolerance = between.get(carrying.kind(ours.claim.quantity), math.nan)
        found.append(Pair(ours, theirs, tolerance))
    return found


def frame(found: Iterable[Pair]) -> pd.DataFrame:
    """Pairs in the columns of `agreement`."""
    rows = []
    for pair in found:
        ours, theirs, tolerance = pair
        value = ours.estimate.value if ours.judged.n else math.nan
        claim = [ours.claim.id, ours.toolchain, str(ours.verdict), str(theirs.verdict)]
        figures = [value, theirs.estimate.value, pair.factor, tolerance]
        rows.append([*claim, *figures, pair.inside, pair.contradicts])
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"inside": "boolean"})


def _tolerance(row: Row, *recordings: Recording) -> float:
    """The largest factor that 99 % of pairs of runs that agree have; NaN if it is not known."""
    quantity: Quantity = row.claim.quantity
    if not isinstance(quantity, Ratio):
        return math.nan
    variance, freedom = 0.0, math.inf
    for recording in recordings:
        figure = quantity.figure(Seen(recording, row.release))
        if not figure.has_values(signed=False) or figure.rounds < FEWEST:
            return math.nan
        of_one = method.moderated_spread(figure, signed=False)
        of_mean = of_one.times(1 / len(figure.counted))
        variance += of_mean.variance
        freedom = min(freedom, of_mean.freedom)
    half = method.t(freedom, JUDGED) * math.sqrt(variance)
    return math.exp(half)


def by_chance(found: pd.DataFrame) -> int:
    """The most figures that lie outside their tolerances in 99 % of runs that agree."""
    most = scipy.stats.binom.ppf(JUDGED, found["inside"].count(), 1 - JUDGED)
    return int(most)


def tolerances(recordings: Iterable[Recording]) -> dict[tuple[str, str], float]:
    """The tolerance of a quick run, as a factor, by claim and release.

    Each sitting of a recorded run is left out in turn, and has its first three rounds, which are
    those of a quick run. The tolerance is the half-width of its 99 % interval (the median). It is
    known for ratios of times and memory that were recorded in three sittings or more.
    """
    studies: dict[Run, list[Study]] = {}
    for recording in recordings:
        studies.setdefault(recording.run, []).append(recording.study)
    parts = [pd.DataFrame(columns=["id", "release", "tolerance"])]
    for run, of_run in studies.items():
        parts.append(leaving_out.left_out(run, of_run, rounds=FEWEST))
    by_claim = pd.concat(parts).groupby(["id", "release"])
    logs = by_claim["tolerance"].median().astype(float)
    return dict(np.exp(logs))
