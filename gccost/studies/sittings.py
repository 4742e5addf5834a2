"""Do sittings agree, and what does load change? The headline ratios, measured in every sitting."""

from __future__ import annotations

from gccost.cases.versions import DOCUMENT_GO, ISSUE_GO, TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio, SittingsAgree
from gccost.judging.rules import Agrees


def _agree(name: str, over: str, releases: tuple[str, ...]) -> Claim:
    ratio = SittingsAgree(Ratio(over, "AllocateFree"))
    return Claim(name, "how-far-sittings-differ", ratio, Agrees(), releases)


CASES = """
    standard AllocateFree|AllocateAuto/load=full/go=document|today
    standard AllocateFree|AllocateCleanup/load=full/go=issue|today
"""

CLAIMS = (
    _agree("X9d", "AllocateAuto", (DOCUMENT_GO, TODAY_GO)),
    _agree("X9e", "AllocateCleanup", (ISSUE_GO, TODAY_GO)),
)


STUDY = Study(
    name="sittings",
    report="standard",  # one sitting alone shows nothing
    chapter="09-how-sure",
    question="Do sittings of one machine agree, and what does load change?",
    cases=CASES,
    document=DOCUMENT_GO,
    claims=CLAIMS,
)
