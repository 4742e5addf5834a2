"""Do sittings agree? The headline ratios, each measured anew in every sitting of a run."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio, SittingsAgree
from gccost.judging.rules import Agrees
from gccost.measuring.cases import AS_PUBLISHED, AUTO, CLEANUP, FREE, Case
from gccost.measuring.toolchains import DOCUMENT_GO, ISSUE_GO, TODAY_GO

# === Cases ===========================================================================


_FINALIZER, _CLEANUP = (DOCUMENT_GO, TODAY_GO), (ISSUE_GO, TODAY_GO)


def _sittings() -> Iterator[Case]:
    for go in (DOCUMENT_GO, ISSUE_GO, TODAY_GO):
        yield Case("cstr", FREE, go, AS_PUBLISHED)
    for variant, releases in ((AUTO, _FINALIZER), (CLEANUP, _CLEANUP)):
        for go in releases:
            yield Case("cstr", variant, go, AS_PUBLISHED)


# === Claims ==========================================================================


def _agree(name: str, over: Ratio, releases: tuple[str, ...]) -> Claim:
    return Claim(name, "how-far-sittings-differ", SittingsAgree(over), Agrees(), releases)


CLAIMS = (
    _agree("X9d", Ratio(AUTO, FREE), _FINALIZER),
    _agree("X9e", Ratio(CLEANUP, FREE), _CLEANUP),
)


# === The study =======================================================================

STUDY = Study(
    name="sittings",
    chapter="09-how-sure",
    question="Do sittings of one machine agree?",
    cases=tuple(_sittings()),
    document=DOCUMENT_GO,
    claims=CLAIMS,
    quick=False,  # one sitting alone shows nothing
)
