"""What a claim declares."""

from __future__ import annotations

from dataclasses import dataclass

from gccost.judging.claims.quantities import Quantity
from gccost.judging.claims.rules import Rule
from gccost.measuring.experiments.base import Arm
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO


@dataclass(frozen=True)
class Claim:
    """How a published claim is tested: on what, by which quantity and rule."""

    id: str
    experiment: str
    anchor: str  # the heading of the chapter that shows it
    quantity: Quantity
    rule: Rule
    beside: Quantity | None = None  # the same for precision; shown, not judged
    releases: tuple[str, ...] = (DOCUMENT_GO, TODAY_GO)
    cpus: int = 1  # what a machine needs for it to be tested


def precise(benchmark: str, gogc: str = "100") -> Arm:
    """The arm in the precise setting."""
    return Arm(benchmark, gogc=gogc, setting="precise")
