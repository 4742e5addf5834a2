"""Machine by machine: the ledger side by side, and how each claim's size varies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gccost import rounding, stats
from gccost.judging.machines import Key, Machine, travels
from gccost.judging.quantities import Quantity
from gccost.judging.rules import Label
from gccost.showing import results, tables
from gccost.showing.figures import INK, MUTED
from gccost.showing.plots import Drawing, Mark, Point, chart, dots
from gccost.showing.tables import Cell, Markup, Prose
from gccost.studies.common import VERDICT_COLOURS

_GIB = 2**30
_ALL = "all computers"
_DIFFER = 0.01  # below this heterogeneity p, ratios differ significantly

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


def computers(found: Sequence[Machine]) -> list[Machine]:
    """A machine of each computer, which may be measured with some of its CPUs too."""
    return list({machine.computer: machine for machine in reversed(compared(found))}.values())


def _measured_on(found: Sequence[Machine]) -> str:
    """What was compared, such as "One computer, measured with 2 CPUs and with 1 CPU"."""
    if len(computers(found)) > 1:
        return f"{len(computers(found))} computers"
    used = [int(machine.description.get("allowed_cpus") or 1) for machine in compared(found)]
    told = " and ".join(f"with {cpus} CPU{'s' * (cpus != 1)}" for cpus in used)
    return f"One computer, measured {told}"


def in_short(found: Sequence[Machine]) -> str:
    """How many of the verdicts agree, in a sentence or two."""
    if len(compared(found)) < 2:
        return "One machine was recorded, so there is nothing to compare yet."
    agreed = travel(found)
    counts = [len(agreed.get(what, ())) for what in _SHARED]
    about = {
        (found[0].rows[key].claim.quantity, key[1])
        for key in keys(found)
        if travels([machine.rows[key] for machine in compared(found)]) in _SHARED
    }
    alone = " This says nothing about other computers." if len(computers(found)) == 1 else ""
    return (
        f"{_measured_on(found)}: {sum(counts[:2])} of the {sum(counts)} verdicts that were decided "
        f"more than once agree. They are about {len(about)} different figures.{alone}"
    )


def agreement(found: Sequence[Machine]) -> Prose:
    """How the verdicts agree, in words."""
    if len(compared(found)) < 2:
        return Prose(in_short(found))
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
    """Each document's ratio of times on today's release, on each machine.

    Two or more computers also have a mean, in which each counts once.
    """
    points = []
    chances: dict[Quantity, float] = {}  # several claims may be about one ratio
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
        if len(whole) > 1:
            chances[first.claim.quantity] = stats.heterogeneity(whole)
        mean = stats.random_effects(
            [m.rows[key].estimate for m in computers(found) if m.label in measured]
        )
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
    differ = sum(p < _DIFFER for p in chances.values())
    several = len(computers(found)) > 1
    return dots(
        points,
        f"{_measured_on(found)}: {differ} of the {len(chances)} ratios on today's release that "
        f"were measured more than once differ significantly (p < {_DIFFER})"
        if len(compared(found)) > 1
        else "One machine was recorded; add others to compare them",
        "ratio (log scale); diamond: published value or bar"
        + several * f"\n{_ALL}: random-effects mean with its 95 % interval",
        kind="A forest plot",
        log=True,
        reference=1,
    )
