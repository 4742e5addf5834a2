"""The declaration of a claim."""

from __future__ import annotations

from dataclasses import dataclass

from gccost.cases.cases import Study as Study
from gccost.cases.versions import DOCUMENT_GO, TODAY_GO
from gccost.judging.quantities import Quantity
from gccost.judging.rules import Rule


@dataclass(frozen=True)
class Claim:
    """A published claim, with the releases, quantity and rule that test it."""

    id: str
    anchor: str  # its heading in the study's chapter; in another notebook, "notebook#heading"
    quantity: Quantity
    rule: Rule
    releases: tuple[str, ...] = (DOCUMENT_GO, TODAY_GO)
    cpus: int = 1  # the CPUs needed to test it
    cores: int = 1  # the cores needed, where two threads of one will not do
    system: str = ""  # the operating system needed, if only one will do
    headline: bool = False  # measure its size to the budget's half-width

    @property
    def needs(self) -> str:
        """What it needs of a machine, in words."""
        return self.system or (f"{self.cores} cores" if self.cores > 1 else f"{self.cpus} CPUs")
