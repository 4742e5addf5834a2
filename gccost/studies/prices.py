"""What a wrapper of a C library pays for each way to free its blocks: the first page's table."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtLeast
from gccost.measuring import cases
from gccost.measuring.cases import AS_PUBLISHED, AUTO, Case
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies import handles
from gccost.studies.remedies import SETTLED, slabs

# === Cases ===========================================================================


_SLAB = slabs("Slab")
_WAYS = {"HandleFree", "HandleAdopted", "HandleAdoptedClose", "HandleFinalizer", "HandleCleanup"}


def _prices() -> Iterator[Case]:
    for case in handles.STUDY.cases:
        priced = case.release == TODAY_GO and case.min_budget == "tiny"
        if priced and case.variant.benchmark in _WAYS:
            yield case
    for variant in (cases.FREE, AUTO):
        yield Case("cstr", variant, TODAY_GO, AS_PUBLISHED)
    yield Case("remedies", _SLAB, TODAY_GO, AS_PUBLISHED)


# === Claims ==========================================================================


CLAIMS = (Claim("L6", "the-cost", Ratio(_SLAB, AUTO, SETTLED), AtLeast(), (TODAY_GO,)),)


# === The study =======================================================================

STUDY = Study(
    name="prices",
    chapter="08-instead",
    question="What does a wrapper of a C library pay?",
    cases=tuple(_prices()),
    document=TODAY_GO,
    claims=CLAIMS,
)
