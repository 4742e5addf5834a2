"""Small controls for a reader in JupyterLab.

They live there alone: a notebook that is executed without one, for the report or
in replay, shows nothing of them, and everything can be read without.
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
"""The variable that says that no reader is there."""


def reader() -> bool:
    """Whether a reader is there, to whom a control is of use."""
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
