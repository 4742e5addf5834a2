"""How far a figure carries: what several recorded machines have found for the same claims.

Each machine is judged from its newest recorded runs of today's programs. Samples of two machines
are never pooled, and no verdict rests on two machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pandas as pd

from gccost.cases import sources
from gccost.costs import metrics
from gccost.costs.recorded import machine_of, recorded
from gccost.costs.recording import Recording
from gccost.judging import ledger
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.judging.quantities import Of, Quantity, Ratio
from gccost.judging.rules import Label
from gccost.run.runs import Run

Ledgers: TypeAlias = Mapping[str, Sequence[Row] | str]
"""The rows of each machine, or why it cannot be judged, by the machine in words."""

_KEYS = ["id", "release", "claim", "kind"]
_FIGURE = ["value", "low", "high", "verdict", "machine", "run"]
_COLUMNS = [*_KEYS, *_FIGURE, *(f"other_{name}" for name in _FIGURE), "factor"]
_FEWEST = 20  # figures of a kind that say how far machines differ


# --- The recorded machines ------------------------------------------------------------


def by_machine(studies: Sequence[Study]) -> dict[str, list[Row] | str]:
    """The ledger of each recorded machine, or why it cannot be judged, by the machine in words.

    The machine that chapters prefer comes first. A study is judged from the machine's newest run
    that holds it with today's programs. Test runs, whose N were scaled, are left out, and so are
    studies that one machine alone has measured.
    """
    machines: dict[str, dict[str, Run]] = {}
    for run in reversed(recorded()):
        manifest = run.manifest()
        held = [study for study in studies if is_current(study, run)]
        if manifest["scale"] != 1 or not held:
            continue
        runs = machines.setdefault(manifest["fingerprint"], {})
        for study in held:
            runs.setdefault(study.name, run)
    machines = _shared(machines)
    if len(machines) < 2:
        return {}
    ledgers: dict[str, list[Row] | str] = {}
    for fingerprint, runs in machines.items():
        first, *_ = runs.values()
        label = f"{machine_of(first)} ({fingerprint[:6]})"
        try:
            ledgers[label] = _ledger(studies, runs)
        except Exception as error:  # a stranger's run may break anything
            ledgers[label] = f"cannot be judged: {type(error).__name__}: {error}"
    return ledgers


def _shared(machines: Mapping[str, Mapping[str, Run]]) -> dict[str, dict[str, Run]]:
    """The runs of each machine by study, of the studies that two machines or more have."""
    holders = Counter(name for runs in machines.values() for name in runs)
    shared = {}
    for fingerprint, runs in machines.items():
        kept = {name: run for name, run in runs.items() if holders[name] > 1}
        if kept:
            shared[fingerprint] = kept
    return shared


def is_current(study: Study, run: Run) -> bool:
    """Whether a recorded run holds a study, measured with today's programs."""
    if study.name not in run.studies:
        return False
    programs = run.manifest()["programs"]
    return not sources.changed(study, programs)


def _ledger(studies: Sequence[Study], runs: Mapping[str, Run]) -> list[Row]:
    """The ledger of the studies that a machine's runs hold."""
    held = [study for study in studies if study.name in runs]
    recordings = {study.name: Recording(study, runs[study.name]) for study in held}
    return ledger.rows(recordings, held)


# --- The factors between two of them --------------------------------------------------


def carried(ledgers: Ledgers) -> pd.DataFrame:
    """A row per claim, release and other machine, of figures that the first machine has, too.

    `value` is the first machine's figure and `other_value` that of the other one. `factor` is the
    second over the first: 1 if they are equal, NaN if only one of them is positive. `kind` says
    what they are: see `kind`.
    """
    judged = [rows for rows in ledgers.values() if not isinstance(rows, str)]
    if len(judged) < 2:
        return pd.DataFrame(columns=_COLUMNS).astype({"factor": float})
    first, *others = judged
    parts = [_pairs(first, other) for other in others]
    pairs = pd.concat(parts, ignore_index=True)
    return pairs[pairs["machine"] != pairs["other_machine"]]


def _pairs(first: Sequence[Row], other: Sequence[Row]) -> pd.DataFrame:
    """The claims of which two machines have a figure."""
    theirs = _figures(other).rename(columns={name: f"other_{name}" for name in _FIGURE})
    pairs = _figures(first).merge(theirs, on=_KEYS)
    pairs["factor"] = [*map(ledger.over, pairs["other_value"], pairs["value"])]
    return pairs[_COLUMNS]


def _figures(rows: Sequence[Row]) -> pd.DataFrame:
    """The rows that have a figure, as a frame; without claims that the machine cannot test."""
    measured = [row for row in rows if row.estimate.n and row.verdict.label is not Label.UNTESTABLE]
    figures = ledger.frame(measured)
    figures["kind"] = [kind(row.claim.quantity) for row in measured]
    figures["machine"] = [row.machine for row in measured]
    return figures[[*_KEYS, *_FIGURE]]


def kind(quantity: Quantity) -> str:
    """What a figure is: a "ratio of times", a "ratio of memory", a "count", or "another figure".

    Among the others are shares, slopes, differences, and depths of a curve.
    """
    if not isinstance(quantity, Of):
        return "another figure"
    scale = metrics.scale(quantity.metric)
    if scale == "count":
        return "count"
    if isinstance(quantity, Ratio) and scale in ("time", "rate"):
        return "ratio of times"
    if isinstance(quantity, Ratio) and "bytes" in quantity.metric:
        return "ratio of memory"
    return "another figure"


def farthest(ledgers: Ledgers) -> dict[str, float]:
    """The largest factor, at least 1, between two recorded machines, by kind of ratio.

    Only kinds with twenty figures.
    """
    pairs = carried(ledgers).dropna(subset="factor")
    pairs = pairs[pairs["kind"].str.startswith("ratio")]
    logs = np.log(pairs["factor"]).abs().groupby(pairs["kind"])
    largest = np.exp(logs.max())
    return dict(largest[logs.size() >= _FEWEST])


# --- In a ledger ----------------------------------------------------------------------


def with_others(rows: Iterable[Row], ledgers: Ledgers) -> list[Row]:
    """The rows, each with those of the other machines that have its figure."""
    found: dict[tuple[str, str], list[Row]] = {}
    for judged in ledgers.values():
        if isinstance(judged, str):
            continue
        for row in judged:
            if row.estimate.n:
                found.setdefault((row.claim.id, row.release), []).append(row)
    return [replace(row, others=_others(row, found)) for row in rows]


def _others(row: Row, found: Mapping[tuple[str, str], Sequence[Row]]) -> tuple[Row, ...]:
    if not row.estimate.n:
        return ()
    judged = found.get((row.claim.id, row.release), ())
    return tuple(other for other in judged if other.machine != row.machine)
