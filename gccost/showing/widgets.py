"""Interactive widgets for a reader in JupyterLab.

The report and replay do not show them; everything is also readable without them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import ipywidgets
from IPython.display import display

from gccost.judging.ledger import Row, by_document
from gccost.showing import results, tables

ALL = "all"

HEADLESS = "GCCOST_HEADLESS"
"""The environment variable that is set if no reader is present."""


def reader() -> bool:
    """Whether a reader is present who can use widgets."""
    return not os.environ.get(HEADLESS)


def picked(
    rows: Sequence[Row], document: str = ALL, verdict: str = ALL, text: str = ""
) -> list[Row]:
    """The rows of the claims of a document, with a verdict today and a text in their words."""
    return [
        row
        for group in by_document(rows)
        for line in group.lines
        if document in (ALL, group.short)
        and verdict in (ALL, str(line.latest.verdict))
        and text.lower() in f"{line.claim.id} {line.latest.words}".lower()
        for row in line.rows
    ]


def pick(rows: Sequence[Row]) -> None:
    """Let a reader pick document, verdict and text, and show those claims of the ledger."""
    if not reader():
        return

    def show(document: str, verdict: str, text: str) -> None:
        found = picked(rows, document, verdict, text)
        nothing = tables.Prose("No claim is like this.")
        display(results.ledger(found, links=False) if found else nothing)

    ipywidgets.interact(
        show,
        document=[ALL, *(group.short for group in by_document(rows))],
        verdict=[ALL, *map(str, dict.fromkeys(row.verdict.label.value for row in rows))],
        text="",
    )
