"""The ledger machine by machine: rows are compared between machines, samples never are pooled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from gccost.errors import GccostError
from gccost.judging import ledger, models
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.judging.recording import Recording
from gccost.judging.rules import Label
from gccost.measuring import languages
from gccost.measuring.machine import fingerprint
from gccost.measuring.runs import Run

Key = tuple[str, str]  # a claim's id, and a release
_UNSAFE = re.compile(r"[^\w ().,@/+-]")
_GIB = 2**30


@dataclass(frozen=True)
class Machine:
    """One machine's rows of the ledger, and the run with most of them.

    The label has no character that any markup knows, because runs come from anywhere.
    """

    label: str
    run: Run
    rows: Mapping[Key, Row]

    @property
    def description(self) -> dict[str, Any]:
        return dict(self.run.manifest()["machine"])

    @property
    def computer(self) -> str:
        """A hash that is equal for machines that differ in nothing but the CPUs used."""
        return fingerprint({**self.description, "allowed_cpus": None, "cpu_quota": None})

    @property
    def is_test(self) -> bool:
        """Whether the run's N were scaled, so that its figures are no estimates."""
        return bool(self.run.manifest()["scale"] != 1)


def machines(
    groups: Iterable[Sequence[Run]],
    studies: Sequence[Study],
    unusable: list[str] | None = None,
) -> list[Machine]:
    """A machine for each group of runs; a study is shown from the last run that holds it.

    A group that cannot be judged, whatever the reason, is left out, and so is a study whose
    programs have changed since; `unusable` gets a sentence on each. Without that list all
    studies are shown, and a group that holds no known study raises GccostError.
    """
    made: list[Machine] = []
    for group in groups:
        names = ", ".join(run.name for run in group)
        try:
            held = {name: run for run in group for name in run.studies}
            stale = [s.name for s in studies if unusable is not None and _is_stale(s, held)]
            if unusable is not None and stale:
                changed = "their programs have changed since"
                unusable.append(f"{names}: {', '.join(stale)} left out, because {changed}")
            recordings = {
                study.name: Recording(study, held[study.name])
                for study in studies
                if study.name in held and study.name not in stale
            }
            if not recordings:
                raise GccostError("the run has no known study", names)
            machine = _machine([each.run for each in recordings.values()], group)
            rows = ledger.rows(recordings, studies)
            by_key = {(row.claim.id, row.release): row for row in rows}
            made.append(replace(machine, label=_numbered(machine.label, made), rows=by_key))
        except Exception as error:  # a stranger's run may break anything
            if unusable is None:
                raise
            unusable.append(f"{names} cannot be shown: {type(error).__name__}: {error}")
    return made


def _is_stale(study: Study, held: Mapping[str, Run]) -> bool:
    """Whether the programs of a study have changed since its run, if it has one."""
    run = held.get(study.name)
    return run is not None and languages.changed(study, run.manifest()["programs"])


def _machine(shown: Sequence[Run], group: Sequence[Run]) -> Machine:
    """The machine of some runs, without its rows."""
    run = max(group, key=shown.count)
    manifest = run.manifest()
    cpu = words(manifest["machine"].get("cpu"))[:40] or "unnamed CPU"
    cpus = manifest["machine"].get("allowed_cpus") or 1
    test = "" if manifest["scale"] == 1 else ", test run"
    return Machine(f"{cpu} ({cpus} CPU{'s' * (cpus != 1)}{test})", run, {})


def _numbered(label: str, others: Iterable[Machine]) -> str:
    """A label that no other machine has."""
    same = sum(label == re.sub(r" #\d+$", "", other.label) for other in others)
    return f"{label} #{same + 1}" if same else label


def by_machine(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs grouped by machine; that of the last run, which chapters prefer, comes first.

    A machine's test runs are a group of their own, so that they replace no measured figures.
    """
    groups: dict[tuple[str, float], list[Run]] = {}
    for run in runs:
        manifest = run.manifest()
        key = manifest["fingerprint"], manifest["scale"]
        groups[key] = [*groups.pop(key, []), run]
    return list(groups.values())[::-1]


def words(text: object) -> str:
    """A text of a run in words: without any character that markup knows."""
    return _UNSAFE.sub("", str(text or "")).strip()[:100]


def frame(machines: Sequence[Machine]) -> pd.DataFrame:
    """A row per machine, claim and release: the columns of `ledger.frame`, and three more.

    `machine` is its label. `agree` says whether the decided verdicts on the claim agree, and `p`
    is the probability that measurements of one true value lie at least so far apart. Test runs
    count in neither.
    """
    parts = []
    for machine in machines:
        part = ledger.frame(machine.rows.values())
        part.insert(0, "machine", machine.label)
        together = [
            [each.rows[key] for each in machines if key in each.rows and not each.is_test]
            for key in machine.rows
        ]
        part["agree"] = list(map(_agreement, together))
        part["p"] = list(map(_chance, together))
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _agreement(rows: Sequence[Row]) -> str:
    """Whether the decided verdicts on a claim agree between machines."""
    labels = [row.verdict.label for row in rows if row.verdict.label.decided]
    if len(labels) < 2:
        return "decided on one machine only" if labels else "undecided"
    if len(set(labels)) > 1:
        return "depends on the machine"
    return "holds where decided" if labels[0] is Label.HOLDS else "fails where decided"


def _chance(rows: Sequence[Row]) -> float:
    """The probability that measurements of one true value lie at least so far apart."""
    return models.heterogeneity([row.estimate for row in rows])


def facts(machines: Sequence[Machine]) -> pd.DataFrame:
    """What each run says of its machine and compilers: a row per fact, a column per machine."""
    return pd.DataFrame({machine.label: _facts(machine) for machine in machines})


def _facts(machine: Machine) -> dict[str, str]:
    known, manifest = machine.description, machine.run.manifest()
    caches = (known.get("caches") or {}).items()
    return {
        "run": machine.run.name,
        "computer": machine.computer[:8],
        "budgets": ", ".join(manifest["finished"]),
        "CPU": str(known.get("cpu")),
        "CPUs used": str(known.get("allowed_cpus")),
        "CPUs, cores": f"{known.get('logical_cpus')}, {known.get('physical_cores')}",
        "caches": ", ".join(f"{name} {size >> 10} KiB" for name, size in caches),
        "memory": f"{(known.get('memory') or 0) / _GIB:.0f} GiB",
        "virtual machine": str(known.get("virtualisation") or "no"),
        "system": str(known.get("release")),
        "kernel": str(known.get("kernel")),
        "C library": str(known.get("libc")),
        "compilers": ", ".join(manifest["compilers"].values()),
    }
