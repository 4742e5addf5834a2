"""A first page while measuring is under way: the headline figures so far, without verdicts.

It never takes the place of a report's page: a reader of an earlier report keeps it until the new
one is there.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import markupsafe

from gccost import paths
from gccost.costs.recorded import machine_of
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.files import write_whole
from gccost.judging import ledger
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.progress import Say
from gccost.run.runs import Run
from gccost.showing import results, tables
from gccost.showing.tables import Cell, Markup

SECONDS = 20
"""After which the page loads itself anew, and is written anew if another round has ended."""
_MARK = 'class="report under-way"'


class FirstFigures:
    """Shows the headline figures on the report's first page after a round, if none is there yet."""

    def __init__(self, studies: Collection[Study], say: Say) -> None:
        self.studies = studies
        self.say = say
        self.page = paths.report() / "index.html"
        self.wanted = may_write(self.page)
        self.written = -math.inf

    def show(self, run: Run) -> None:
        """Write the page, at most every 20 seconds."""
        now = time.monotonic()
        if not self.wanted or now - self.written < SECONDS:
            return
        is_first = math.isinf(self.written)
        with suppress(GccostError):  # the report will say what is wrong
            if write(self.page, run, self.studies):
                self.written = now
                if is_first:
                    self.say(f"the first figures are in {os.path.relpath(self.page)}")


def may_write(page: Path) -> bool:
    """Whether the first page is not there yet, or is such a page."""
    return not page.exists() or _MARK in page.read_text(encoding="utf-8")[:500]


def write(page: Path, run: Run, studies: Iterable[Study]) -> bool:
    """Write the page of a run that is being measured; return whether it has a figure."""
    rows = headlines(run, studies)
    if not rows:
        return False
    template = results.PAGES.get_template("underway.html")
    style = (results.TEMPLATES / "style.css").read_text(encoding="utf-8")
    html = template.render(
        title=results.TITLE,
        style=markupsafe.Markup(style),  # noqa: S704 - our own
        seconds=SECONDS,
        run=run.name,
        machine=machine_of(run),
        table=markupsafe.Markup(table(rows).html),  # noqa: S704 - its cells are escaped
    )
    write_whole(page, html.encode())
    return True


def headlines(run: Run, studies: Iterable[Study]) -> list[Row]:
    """The headline claims on which a run has a figure, whether measuring has ended or not."""
    chosen = []
    for study in studies:
        if any(claim.headline for claim in study.claims):
            chosen.append(study)
    recordings = {study.name: Recording(study, run) for study in chosen}
    rows = ledger.rows(recordings, chosen)
    return [row for row in rows if row.claim.headline and row.estimate.n]


def table(rows: Iterable[Row]) -> Markup:
    """The figures so far."""
    lines: list[list[str | Cell]] = []
    for row in rows:
        so_far = results.cell(row)
        processes = str(row.estimate.n)
        lines.append([row.words, row.held_to, row.toolchain, so_far, processes])
    header = ("claim", "published", "on", "so far (95 %)", "processes")
    return tables.table(header, lines, merged={0, 1})
