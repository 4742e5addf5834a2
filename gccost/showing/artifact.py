"""The artifact appendix: each claim with the command that tests it and the recorded result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from gccost.judging.claims import Study
from gccost.judging.ledger import Row, Tested
from gccost.measuring.cases import BUDGETS
from gccost.measuring.runs import Run
from gccost.showing.notice import machine
from gccost.showing.results import PAGES, measured_text, region


def appendix(rows: Iterable[Row], recorded: Iterable[Run]) -> str:
    """The appendix as Markdown, from the rows of the ledger and the runs that they rest on."""
    return PAGES.get_template("artifact.md").render(
        experiments=list(_experiments(rows)),
        machines=list(dict.fromkeys(map(machine, recorded))),
        budgets=BUDGETS,
        region=region,
        result=result,
    )


def _experiments(rows: Iterable[Row]) -> Iterator[tuple[Study, list[Tested]]]:
    """The studies of rows, in the ledger's order, with the lines of their claims."""
    for _, group in groupby(rows, lambda row: row.study.name):
        lines = [Tested(tuple(each)) for _, each in groupby(group, lambda row: row.claim.id)]
        yield lines[0].latest.study, lines


def result(row: Row | None) -> str:
    """A row's release, estimate with interval, and verdict, as an item of a table."""
    if row is None:
        return "–"
    value = f"{measured_text(row)}, " if row.estimate.n else ""
    return f"{row.toolchain}: {value}**{row.said}**"
