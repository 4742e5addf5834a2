"""The artifact appendix: each claim with the command that tests it and the recorded result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from gccost.judging.claims import Study
from gccost.judging.ledger import Row, Tested
from gccost.measuring.cases import BUDGETS
from gccost.measuring.runs import Run
from gccost.showing.notice import machine
from gccost.showing.results import PAGES, measured_text, region

REPEATED = 12  # minutes of a repeated study, which has no budget; as measured on 2 CPUs


@dataclass(frozen=True)
class Experiment:
    """A study as an evaluator runs it, and the lines of its claims."""

    study: Study
    lines: tuple[Tested, ...]

    @property
    def command(self) -> str:
        standard = "" if self.study.quick else " BUDGET=standard"
        return f"make report ONLY={self.study.name}{standard}"

    @property
    def minutes(self) -> str:
        """How long the command measures."""
        if self.study.repeated:
            return f"about {REPEATED} minutes"
        limit = BUDGETS["quick" if self.study.quick else "standard"]
        return f"up to {limit.seconds / 60:.0f} minutes"


def appendix(rows: Iterable[Row], recorded: Iterable[Run]) -> str:
    """The appendix as Markdown, from the rows of the ledger and the runs that they rest on."""
    return PAGES.get_template("artifact.md").render(
        experiments=list(_experiments(rows)),
        machines=list(dict.fromkeys(map(machine, recorded))),
        result=result,
        within=within,
    )


def _experiments(rows: Iterable[Row]) -> Iterator[Experiment]:
    """The studies of rows, in the ledger's order."""
    for _, group in groupby(rows, lambda row: row.study.name):
        lines = [Tested(tuple(each)) for _, each in groupby(group, lambda row: row.claim.id)]
        yield Experiment(lines[0].latest.study, tuple(lines))


def within(row: Row) -> str:
    """The range in which a claim holds, or its rule if that has none."""
    return region(row) or str(row.claim.rule)


def result(row: Row | None) -> str:
    """A row's release, estimate with interval, and verdict, as an item of a table."""
    if row is None:
        return "–"
    value = f"{measured_text(row)}, " if row.estimate.n else ""
    return f"{row.toolchain}: {value}**{row.said}**"
