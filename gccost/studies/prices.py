"""What a wrapper of a C library pays for each way to free its blocks."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtLeast
from gccost.measuring.cases import AS_PUBLISHED, AUTO, CLEANUP, FREE, HEAP_FREE, Case, Variant
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies.remedies import MANUAL, SETTLED, slabs

# === Cases ===========================================================================


SLAB = slabs("Slab")
_WAYS = (
    MANUAL,
    slabs("AdoptedClose"),
    slabs("Adopted"),
    SLAB,
    Variant("OneHeapCleanup"),
    Variant("OneHeapFinalizer"),
)


def _prices() -> Iterator[Case]:
    for variant in (FREE, HEAP_FREE, AUTO, CLEANUP):
        yield Case("cstr", variant, TODAY_GO, AS_PUBLISHED)
    for variant in _WAYS:
        yield Case("remedies", variant, TODAY_GO, AS_PUBLISHED)


# === Claims ==========================================================================


CLAIMS = (Claim("L6", "the-cost", Ratio(SLAB, AUTO, SETTLED), AtLeast(), (TODAY_GO,)),)


# === The study =======================================================================

STUDY = Study(
    name="prices",
    chapter="08-instead",
    question="What does a wrapper of a C library pay?",
    cases=tuple(_prices()),
    document=TODAY_GO,
    claims=CLAIMS,
)
