"""Interactive widgets for a reader in JupyterLab.

The report and replay do not show them; everything is also readable without them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import ipywidgets
from IPython.display import display

from gccost.judging.ledger import Row
from gccost.showing import tables

ALL = "all"

HEADLESS = "GCCOST_HEADLESS"
"""The environment variable that is set if no reader is present."""


def reader() -> bool:
    """Whether a reader is present who can use widgets."""
    return not os.environ.get(HEADLESS)


def picked(rows: Sequence[Row], claim: str = ALL, toolchain: str = ALL) -> list[Row]:
    """The ledger's rows of a claim and a toolchain, in the ledger's order."""
    return [
        row for row in rows if claim in (ALL, row.claim.id) and toolchain in (ALL, row.toolchain)
    ]


def pick(rows: Sequence[Row]) -> None:
    """Let a reader pick claim and toolchain, and show those rows of the ledger."""
    if not reader():
        return

    def show(claim: str, toolchain: str) -> None:
        found = picked(rows, claim, toolchain)
        nothing = tables.Prose(f"{claim} is not judged on {toolchain}.")
        display(tables.ledger(found, links=False) if found else nothing)

    ipywidgets.interact(
        show,
        claim=[ALL, *dict.fromkeys(row.claim.id for row in rows)],
        toolchain=[ALL, *dict.fromkeys(row.toolchain for row in rows)],
    )
