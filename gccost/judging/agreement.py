"""Does a new run agree with a recorded one? A row for each claim that both can judge."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
import scipy  # its parts are loaded when they are used

from gccost.cases import sources
from gccost.costs import method
from gccost.costs.recorded import cpu_of, nearest
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.errors import nearest as nearest_name
from gccost.judging import leaving_out, ledger
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
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
    known = nearest(run)
    if name:
        for other in known:
            if other.name.startswith(name):
                return other
        hint = nearest_name(name, [other.name for other in known])
        raise GccostError(f"there is no recorded run {name!r}", "gccost agree", hint)
    held = [study for study in studies if study.name in run.studies]
    alike = {other: sum(_are_alike(study, other) for study in held) for other in known}
    for fewest in (len(held) / 2, 1):
        for other in known:
            if alike[other] >= fewest and alike[other]:
                return other
    hint = "name one with --run, or record one: gccost add"
    raise GccostError("no recorded run has measured the programs of your run", run.name, hint)


def _are_alike(study: Study, run: Run) -> bool:
    """Whether a recorded run holds a study, measured with today's programs."""
    return study.name in run.studies and not sources.changed(study, run.manifest()["programs"])


def is_of_one_cpu(run: Run, other: Run) -> bool:
    """Whether two runs were measured on the same model of CPU, so that figures can be judged."""
    return cpu_of(run.manifest()["machine"]) == cpu_of(other.manifest()["machine"])


def agreement(run: Run, other: Run, studies: Iterable[Study]) -> pd.DataFrame:
    """A row per claim and release that a run and a recorded one have studied.

    `value` is NA where the run has no figure. `factor` is value over recorded value, and
    `inside` says whether it lies between 1/`tolerance` and `tolerance`, which are the ends of the
    99 % interval of the factor. They are NA without a value, for what is no ratio of times or
    memory, and if the two runs are of different CPUs. `contradicts` says that the claim holds in
    one run and does not hold in the other.
    """
    held = [each for each in studies if each.name in run.studies and each.name in other.studies]
    own = {each.name: Recording(each, run) for each in held}
    recorded = {each.name: Recording(each, other) for each in held}
    is_judged = is_of_one_cpu(run, other)
    rows = []
    for mine, theirs in zip(ledger.rows(own, held), ledger.rows(recorded, held), strict=True):
        if theirs.judged.n:
            name = mine.study.name
            tolerance = math.nan
            if is_judged and mine.judged.n:
                tolerance = _tolerance(mine, own[name], recorded[name])
            rows.append(_row(mine, theirs, tolerance))
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"inside": "boolean"})


def _tolerance(row: Row, own: Recording, recorded: Recording) -> float:
    """The largest factor that 99 % of pairs of runs that agree have; NaN if it is not known."""
    quantity: Quantity = row.claim.quantity
    if not isinstance(quantity, Ratio):
        return math.nan
    of_mean = []
    for recording in (own, recorded):
        figure = quantity.figure(Seen(recording, row.release))
        if not figure.has_values(signed=False) or figure.rounds < FEWEST:
            return math.nan
        spread = method.moderated_spread(figure, signed=False)
        of_mean.append(spread.times(1 / len(figure.counted)))
    freedom = min(spread.freedom for spread in of_mean)
    variance = sum(spread.variance for spread in of_mean)
    return math.exp(method.t(freedom, JUDGED) * math.sqrt(variance))


def _row(mine: Row, other: Row, tolerance: float) -> list[object]:
    verdicts = [str(mine.verdict), str(other.verdict)]
    values = [mine.estimate.value if mine.judged.n else math.nan, other.estimate.value]
    factor = values[0] / values[1] if values[1] else math.nan
    inside = None
    if math.isfinite(tolerance) and math.isfinite(factor):
        inside = 1 / tolerance <= factor <= tolerance
    contradicts = set(verdicts) == leaving_out.DECIDED
    start = [mine.claim.id, mine.toolchain, *verdicts, *values]
    return [*start, factor, tolerance, inside, contradicts]


def by_chance(found: pd.DataFrame) -> int:
    """The most figures that lie outside their tolerances in 99 % of runs that agree."""
    return int(scipy.stats.binom.ppf(JUDGED, found["inside"].count(), 1 - JUDGED))


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
