"""The ledger machine by machine: rows are compared between machines, samples never are pooled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gccost import rounding, stats
from gccost.errors import GccostError
from gccost.judging import ledger
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.judging.recording import Recording
from gccost.judging.rules import Label
from gccost.measuring import languages
from gccost.measuring.machine import fingerprint
from gccost.measuring.runs import Run

Key = tuple[str, str]  # a claim's id, and a release
_UNSAFE = re.compile(r"[^\w ().,@/+-]")


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
    found: Iterable[Sequence[Run]],
    studies: Sequence[Study],
    unusable: list[str] | None = None,
) -> list[Machine]:
    """A machine for each group of runs; a study is shown from the last run that holds it.

    A group that cannot be judged, whatever the reason, is left out, and so is a study whose
    programs have changed since; `unusable` gets a sentence on each. Without that list all
    studies are shown, and a group that holds no known study raises GccostError.
    """
    made: list[Machine] = []
    for group in found:
        names = ", ".join(run.name for run in group)
        try:
            held = {s.name: run for run in group for s in studies if run.holds(s.name)}
            if unusable is not None:
                stale = [s.name for s in studies if s.name in held and _is_stale(s, held[s.name])]
                if stale:
                    left = ", ".join(stale)
                    unusable.append(
                        f"{left} are left out of {names}: their programs have changed since"
                    )
                held = {name: run for name, run in held.items() if name not in stale}
            made.append(_machine(group, held, studies, made))
        except Exception as error:  # a stranger's run may break anything
            if unusable is None:
                raise
            unusable.append(f"{names} cannot be shown: {type(error).__name__}: {error}")
    return made


def _is_stale(study: Study, run: Run) -> bool:
    return languages.changed(study, run.manifest()["programs"])


def _machine(
    group: Sequence[Run],
    held: Mapping[str, Run],
    studies: Sequence[Study],
    made: Sequence[Machine],
) -> Machine:
    if not held:
        where = ", ".join(run.name for run in group)
        raise GccostError("the run has no known study", where)
    recordings = {s.name: Recording.load(s, held[s.name]) for s in studies if s.name in held}
    rows = {(row.claim.id, row.release): row for row in ledger.rows(recordings, studies)}
    run = max(group, key=lambda run: sum(run is other for other in held.values()))
    label = _label(run)
    same = sum(label == re.sub(r" #\d+$", "", other.label) for other in made)
    return Machine(f"{label} #{same + 1}" if same else label, run, rows)


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


def _label(run: Run) -> str:
    manifest = run.manifest()
    machine = manifest["machine"]
    cpu = words(machine.get("cpu"))[:40] or "unnamed CPU"
    cpus = machine.get("allowed_cpus") or 1
    test = "" if manifest["scale"] == 1 else ", test run"
    return f"{cpu} ({cpus} CPU{'s' * (cpus != 1)}{test})"


def frame(found: Sequence[Machine]) -> pd.DataFrame:
    """A row per machine, claim and release: the columns of `ledger.frame`, and three more.

    `machine` is its label. `agree` says whether the decided verdicts on the claim agree, and `p`
    is the probability that measurements of one true value lie at least so far apart. Test runs
    count in neither.
    """
    compared = [machine for machine in found if not machine.is_test]
    parts = []
    for machine in found:
        others = {key: [each.rows.get(key) for each in compared] for key in machine.rows}
        known = {key: [row.estimate for row in rows if row] for key, rows in others.items()}
        part = ledger.frame(machine.rows.values())
        part.insert(0, "machine", machine.label)
        part["agree"] = [travels(rows) for rows in others.values()]
        part["p"] = [stats.heterogeneity(estimates) for estimates in known.values()]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


_GIB = 2**30


def facts(found: Sequence[Machine]) -> pd.DataFrame:
    """What each run says of its machine and compilers: a row per fact, a column per machine."""
    told: dict[str, dict[str, str]] = {}
    for machine in found:
        known, manifest = machine.description, machine.run.manifest()
        caches = (known.get("caches") or {}).items()
        told[machine.label] = {
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
    return pd.DataFrame(told)


def travels(rows: Sequence[Row | None]) -> str:
    """Whether the decided verdicts on a claim agree between machines."""
    labels = [row.verdict.label for row in rows if row and row.verdict.label.decided]
    if len(labels) < 2:
        return "decided on one machine only" if labels else "undecided"
    if len(set(labels)) > 1:
        return "depends on the machine"
    return "holds where decided" if labels[0] is Label.HOLDS else "fails where decided"


def compared(found: Sequence[Machine]) -> tuple[list[str], pd.DataFrame]:
    """Runs side by side: lines to print, and the same as a table.

    The last columns are p and whether the decided verdicts agree, as in `frame`.
    """
    keys = [key for key in found[0].rows if all(m.rows[key].estimate.samples for m in found)]
    lines = [f"{name} differs: {values}" for name, values in _differences(found)]
    lines.append(_aligned("claim", "release", [m.run.name for m in found], "p", "verdicts"))
    chances = []
    for key in keys:
        rows = [machine.rows[key] for machine in found]
        chance = stats.heterogeneity([row.estimate for row in rows])
        chances.append(chance)
        shown = [f"{rounding.interval(row.estimate, row.unit)} {row.verdict}" for row in rows]
        p = "<0.001" if chance < 0.001 else rounding.plain(chance)
        lines.append(_aligned(*key, shown, p, travels(rows)))
    tables = []
    for i, machine in enumerate(found, 1):
        table = ledger.table(machine.rows[key] for key in keys)
        tables.append(table.set_index(["id", "toolchain"]).add_suffix(f"_{i}"))
    together = pd.concat(tables, axis="columns")
    return lines, together.assign(p=[rounding.written(p) for p in chances])


def _aligned(claim: str, release: str, shown: Iterable[str], p: str, verdicts: str) -> str:
    columns = "".join(f" {text:>42}" for text in shown)
    return f"{claim:<6} {release:<12}{columns} {p:>8}  {verdicts}"


def _differences(found: Sequence[Machine]) -> Iterator[tuple[str, str]]:
    described = [machine.description for machine in found]
    for name in sorted(set.intersection(*map(set, described))):
        values = [str(description[name]) for description in described]
        if name not in ("load", "memory_available", "swap_used") and len(set(values)) > 1:
            yield name, " and ".join(values)
