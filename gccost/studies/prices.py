"""What a wrapper of a C library pays for each way to free its blocks: the first page's table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import Shown
from gccost.measuring import cases
from gccost.measuring.cases import AS_PUBLISHED, AUTO, Case
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies import handles
from gccost.studies.remedies import SETTLED, slabs

# === Cases ===========================================================================


_SLAB = slabs("Slab")
_WAYS = (
    *(handles.ADOPTED_CLOSE, handles.ADOPTED),
    *(handles.handle(kind, size) for kind in ("Cleanup", "Finalizer") for size in (8, 64)),
)


def _prices() -> Iterator[Case]:
    for case in handles.STUDY.cases:
        if case.release == TODAY_GO and case.variant in (handles.FREE, *_WAYS):
            yield replace(case, min_budget="tiny")
    for variant in (cases.FREE, AUTO):
        yield Case("cstr", variant, TODAY_GO, AS_PUBLISHED)
    yield Case("remedies", _SLAB, TODAY_GO, AS_PUBLISHED)


# === Claims ==========================================================================


_QUESTION = Shown("an open question, which chapter 8 answers in words")
CLAIMS = (Claim("L6", "the-cost", Ratio(_SLAB, AUTO, SETTLED), _QUESTION, (TODAY_GO,)),)


# === The study =======================================================================

STUDY = Study(
    name="prices",
    chapter="08-instead",
    question="What does a wrapper of a C library pay?",
    cases=tuple(_prices()),
    document=TODAY_GO,
    claims=CLAIMS,
    figures=tuple(Ratio(way, handles.FREE, SETTLED) for way in _WAYS),
    metric=SETTLED,
)
