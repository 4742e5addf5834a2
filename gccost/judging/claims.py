"""The declarations of a claim and of a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gccost.judging.rules import Rule
from gccost.measuring.cases import Experiment, Quantity
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO


@dataclass(frozen=True)
class Claim:
    """A published claim, with the releases, quantity and rule that test it."""

    id: str
    anchor: str  # the chapter's heading for it
    quantity: Quantity
    rule: Rule
    releases: tuple[str, ...] = (DOCUMENT_GO, TODAY_GO)
    cpus: int = 1  # the CPUs needed to test it
    headline: bool = False  # measure its size to the budget's half-width


@dataclass(frozen=True)
class Study(Experiment):
    """The cases, claims and charts of a document or a question.

    A chart is a `gccost.showing.plots.NamedChart`.
    """

    claims: tuple[Claim, ...] = ()
    charts: tuple[Any, ...] = ()
