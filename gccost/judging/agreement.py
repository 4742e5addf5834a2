"""Does a new run agree with a recorded one? A row for each claim that both can judge.

And the verdicts of all recorded machines, next to each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy  # its parts are loaded when they are used

from gccost.cases import sources
from gccost.costs import method
from gccost.costs.recorded import cpu_of, nearest, recorded, words
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
    candidates = nearest(run)
    if name:
        return _named(name, candidates)
    held = _held(studies, run)
    for fewest in (len(held) / 2, 1):
        for other in candidates:
            alike = [study for study in held if _are_alike(study, other)]
            if len(alike) >= max(fewest, 1):
                return other
    hint = "name one with --run, or record one: gccost add"
    raise GccostError("no recorded run has measured the programs of your run", run.name, hint)


def _named(name: str, runs: list[Run]) -> Run:
    """The run whose name begins so."""
    for run in runs:
        if run.name.startswith(name):
            return run
    hint = nearest_name(name, [run.name for run in runs])
    raise GccostError(f"there is no recorded run {name!r}", "gccost agree", hint)


def _held(studies: Iterable[Study], run: Run) -> list[Study]:
    return [study for study in studies if study.name in run.studies]


def _are_alike(study: Study, run: Run) -> bool:
    """Whether a recorded run holds a study, measured with today's programs."""
    if study.name not in run.studies:
        return False
    programs = run.manifest()["programs"]
    return not sources.changed(study, programs)


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
    held = _held(_held(studies, run), other)
    measured = {study.name: Recording(study, run) for study in held}
    others = {study.name: Recording(study, other) for study in held}
    is_judged = is_of_one_cpu(run, other)
    found = []
    own_rows = ledger.rows(measured, held)
    other_rows = ledger.rows(others, held)
    for ours, theirs in zip(own_rows, other_rows, strict=True):
        if not theirs.judged.n:
            continue
        tolerance = math.nan
        if is_judged and ours.judged.n:
            name = ours.study.name
            tolerance = _tolerance(ours, measured[name], others[name])
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


# --- Several recorded machines --------------------------------------------------------


def by_machine(studies: Sequence[Study]) -> dict[str, list[Row] | str]:
    """The ledger of each recorded machine, or why it cannot be judged, by the machine in words.

    A study is shown from the machine's newest run that holds it. Test runs, whose N were scaled,
    are left out, and samples of two machines are never pooled. Empty unless two are recorded.
    """
    machines: dict[str, dict[str, Run]] = {}
    for run in recorded():
        manifest = run.manifest()
        if manifest["scale"] == 1:
            newest = machines.setdefault(manifest["fingerprint"], {})
            newest.update(dict.fromkeys(run.studies, run))
    if len(machines) < 2:
        return {}
    ledgers: dict[str, list[Row] | str] = {}
    for fingerprint, runs in machines.items():
        first, *_ = runs.values()
        machine = first.manifest()["machine"]
        cpu = words(machine.get("cpu"))[:40]
        label = f"{cpu}, {machine.get('allowed_cpus')} CPUs ({fingerprint[:6]})"
        try:
            ledgers[label] = _ledger(studies, runs)
        except Exception as error:  # a stranger's run may break anything
            ledgers[label] = f"cannot be judged: {type(error).__name__}: {error}"
    return ledgers


def _ledger(studies: Sequence[Study], runs: Mapping[str, Run]) -> list[Row]:
    """The ledger of the studies that a machine's runs hold."""
    held = [study for study in studies if study.name in runs]
    recordings = {study.name: Recording(study, runs[study.name]) for study in held}
    return ledger.rows(recordings, held)
