"""What a claim declares."""

from __future__ import annotations

from dataclasses import dataclass

from gccost.judging.claims.rules import Rule
from gccost.measuring.experiments.base import Quantity
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO


@dataclass(frozen=True)
class Claim:
    """How a published claim is tested: on what, by which quantity and rule."""

    id: str
    experiment: str
    anchor: str  # the heading of the chapter that shows it
    quantity: Quantity
    rule: Rule
    releases: tuple[str, ...] = (DOCUMENT_GO, TODAY_GO)
    cpus: int = 1  # what a machine needs for it to be tested
    headline: bool = False  # its size is measured to the budget's half-width
