"""The artifact appendix: each claim with the command that tests it and the recorded result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby

from gccost.cases.cases import BUDGETS
from gccost.costs.recording import Recording
from gccost.judging import rounding
from gccost.judging.agreement import tolerances
from gccost.judging.claims import Study
from gccost.judging.ledger import Row, Tested
from gccost.showing.notice import machine
from gccost.showing.results import PAGES, measured_text, region


def appendix(rows: Iterable[Row], recorded: Iterable[Recording]) -> str:
    """The appendix as Markdown, from the rows of the ledger and the recordings they rest on."""
    recorded = list(recorded)
    return PAGES.get_template("artifact.md").render(
        experiments=list(_experiments(rows)),
        machines=list(dict.fromkeys(machine(each.run) for each in recorded)),
        budgets=BUDGETS,
        region=region,
        result=partial(result, tolerances(recorded)),
    )


def _experiments(rows: Iterable[Row]) -> Iterator[tuple[Study, list[Tested]]]:
    """The studies of rows, in the ledger's order, with the lines of their claims."""
    for _, group in groupby(rows, lambda row: row.study.name):
        lines = [Tested(tuple(each)) for _, each in groupby(group, lambda row: row.claim.id)]
        yield lines[0].latest.study, lines


def result(allowed: Mapping[tuple[str, str], float], row: Row | None) -> str:
    """A row's release, estimate with interval, and verdict, as an item of a table.

    Where a tolerance is known, the interval is the range of a quick run.
    """
    if row is None:
        return "–"
    value = f"{measured_text(row)}, " if row.estimate.n else ""
    if tolerance := allowed.get((row.claim.id, row.toolchain)):
        middle = row.estimate.value
        quick = replace(row.estimate, low=middle / tolerance, high=middle * tolerance)
        ends = rounding.ends(quick, row.unit)
        value = f"{rounding.value(middle, row.unit)} (quick: {ends}), "
    return f"{row.toolchain}: {value}**{row.said}**"
