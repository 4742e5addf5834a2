"""What a claim declares, and a study: what is measured, claimed and drawn for one question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gccost.judging.rules import Rule
from gccost.measuring.cases import Experiment, Quantity
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO


@dataclass(frozen=True)
class Claim:
    """How a published claim is tested: on what, by which quantity and rule."""

    id: str
    anchor: str  # the heading of the chapter that shows it
    quantity: Quantity
    rule: Rule
    releases: tuple[str, ...] = (DOCUMENT_GO, TODAY_GO)
    cpus: int = 1  # what a machine needs for it to be tested
    headline: bool = False  # its size is measured to the budget's half-width


@dataclass(frozen=True)
class Study(Experiment):
    """The cases of a document or a question, its claims and its charts.

    A chart is a `gccost.showing.plots.NamedChart`.
    """

    claims: tuple[Claim, ...] = ()
    charts: tuple[Any, ...] = ()
