"""Machine by machine: the ledger side by side, and how each claim's size varies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gccost import rounding, stats
from gccost.judging.machines import Key, Machine, travels
from gccost.judging.rules import Label
from gccost.showing import results, tables
from gccost.showing.figures import INK, MUTED
from gccost.showing.plots import Drawing, Mark, Point, chart, dots
from gccost.showing.tables import Cell, Markup, Prose
from gccost.studies.common import VERDICT_COLOURS

_GIB = 2**30
_ALL = "all machines"

# A row of the table of machines: its name, and its text from a run's description.
_FACTS: dict[str, Callable[[Machine, Any], object]] = {
    "run": lambda machine, facts: machine.run.name,
    "budgets": lambda machine, facts: ", ".join(machine.run.manifest()["finished"]),
    "CPU": lambda machine, facts: facts.get("cpu"),
    "CPUs used": lambda machine, facts: facts.get("allowed_cpus"),
    "CPUs, cores": lambda machine, facts: (
        f"{facts.get('logical_cpus')}, {facts.get('physical_cores')}"
    ),
    "caches": lambda machine, facts: ", ".join(
        f"{name} {size >> 10} KiB" for name, size in (facts.get("caches") or {}).items()
    ),
    "memory": lambda machine, facts: f"{(facts.get('memory') or 0) / _GIB:.0f} GiB",
    "virtual machine": lambda machine, facts: facts.get("virtualisation") or "no",
    "system": lambda machine, facts: facts.get("release"),
    "kernel": lambda machine, facts: facts.get("kernel"),
    "C library": lambda machine, facts: facts.get("libc"),
    "compilers": lambda machine, facts: ", ".join(machine.run.manifest()["compilers"].values()),
}


def compared(found: Sequence[Machine]) -> list[Machine]:
    """The machines whose verdicts count; those of test runs are only shown."""
    return [machine for machine in found if not machine.is_test]


def described(found: Sequence[Machine]) -> Markup:
    """A table of the machines, a column each."""
    rows = [
        [name, *(str(say(machine, machine.description) or "–") for machine in found)]
        for name, say in _FACTS.items()
    ]
    return tables.table(("", *(machine.label for machine in found)), rows)


def keys(found: Sequence[Machine]) -> list[Key]:
    """The claims and releases that any machine has a verdict on, in the ledger's order."""
    untested = (Label.UNMEASURED, Label.UNTESTABLE)
    return [
        key
        for key in (found[0].rows if found else ())
        if any(m.rows[key].verdict.label not in untested for m in found)
    ]


def side_by_side(found: Sequence[Machine]) -> Markup:
    """The ledger with a column per machine, and whether its verdicts agree."""
    rows: list[list[str | Cell]] = []
    for key in keys(found):
        rows_of = [machine.rows[key] for machine in found]
        cells = [
            Cell(
                results.cell(row).text,
                f"{row.verdict}" if row.estimate.samples else "",
            )
            for row in rows_of
        ]
        more = [travels([m.rows[key] for m in compared(found)])] if len(found) > 1 else []
        rows.append([f"{key[0]}, {rows_of[0].toolchain}", rows_of[0].held_to, *cells, *more])
    header = ["claim", "published", *(machine.label for machine in found)]
    return tables.table([*header, "verdicts"] if len(found) > 1 else header, rows)


_SHARED = {
    "holds where decided": "**Hold on every machine that decides them**",
    "fails where decided": "**Do not hold on any machine that decides them**",
    "depends on the machine": "**Depend on the machine**",
}


def travel(found: Sequence[Machine]) -> dict[str, list[str]]:
    """The claims on their releases, by how their verdicts agree between the machines."""
    agreed: dict[str, list[str]] = {}
    for key in keys(found):
        rows = [machine.rows[key] for machine in compared(found)]
        agreed.setdefault(travels(rows), []).append(f"{key[0]} on {found[0].rows[key].toolchain}")
    return agreed


def agreement(found: Sequence[Machine]) -> Prose:
    """How the verdicts agree, in words."""
    if len(compared(found)) < 2:
        return Prose("One machine was recorded, so there is nothing to compare yet.")
    agreed = travel(found)
    lines = [
        f"- {said} ({len(agreed[what])}): {', '.join(agreed[what])}."
        for what, said in _SHARED.items()
        if what in agreed
    ]
    one, none = (len(agreed.get(w, ())) for w in ("decided on one machine only", "undecided"))
    return Prose("\n".join([*lines, f"- Decided on one machine only: {one}; on none: {none}."]))


@chart("machines", "No ratio was measured")
def forest(found: Sequence[Machine]) -> Drawing | None:
    """Each document's ratio of times on today's release, on each machine, and their mean."""
    points = []
    for key in keys(found):
        row_by_label = {machine.label: machine.rows[key] for machine in found}
        first = next(iter(row_by_label.values()))
        if first.ours or first.unit != "ratio" or not first.is_today:
            continue
        line = f"{key[0]} on {first.toolchain}"
        measured = {label: row for label, row in row_by_label.items() if row.estimate.low > 0}
        for label, row in measured.items():
            figures = " and ".join(map(rounding.times, row.estimate.shown))
            points.append(
                Point(
                    "",
                    line,
                    row.estimate,
                    label=f"{figures} {row.verdict}, {label}",
                    colour=VERDICT_COLOURS.get(row.verdict.label, MUTED),
                    published=[Mark(row.published)],
                    data={"claim": key[0], "go": key[1], "machine": label, "unit": "ratio"},
                )
            )
        whole = [m.rows[key].estimate for m in compared(found) if m.label in measured]
        mean = stats.random_effects(whole)
        if mean.samples:
            points.append(
                Point(
                    "",
                    line,
                    mean,
                    label=f"{rounding.interval(mean, 'ratio')}, {_ALL}",
                    colour=INK,
                    data={"claim": key[0], "go": key[1], "machine": _ALL, "unit": "ratio"},
                )
            )
    counts = [len(travel(found).get(what, ())) for what in _SHARED]
    return dots(
        points,
        f"Of {sum(counts)} verdicts that two or more machines decide, {sum(counts[:2])} are the "
        f"same, and {counts[2]} depend on the machine"
        if len(compared(found)) > 1
        else "One machine was recorded; add others to compare them",
        "ratio (log scale); diamond: published value or bar\n"
        "all machines: random-effects mean with its 95 % interval",
        kind="A forest plot",
        log=True,
        reference=1,
    )
