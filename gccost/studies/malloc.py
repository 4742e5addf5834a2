"""The allocators for single size classes, which are the default since Go 1.27: their part in
what finalizers and cleanups cost.

Go 1.27 can also be built without them, for the last time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import Same
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FREE,
    HEAP_FREE,
    ONE_MALLOC,
    Case,
    Variant,
)
from gccost.measuring.toolchains import TODAY_GO

# === Cases ===========================================================================


def without(variant: Variant) -> Variant:
    """The variant on a runtime with one allocator for all sizes."""
    return replace(variant, runtime=ONE_MALLOC)


def _cases() -> Iterator[Case]:
    for variant in (FREE, HEAP_FREE, AUTO, CLEANUP):
        tier = "quick" if variant == HEAP_FREE else "tiny"
        for runtime in ("", ONE_MALLOC):
            there = replace(variant, runtime=runtime)
            yield Case("cstr", there, TODAY_GO, AS_PUBLISHED, tier)


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    for letter, variant in (("a", AUTO), ("b", CLEANUP)):
        ratio = Ratio(without(variant), variant)
        yield Claim(f"X17{letter}", "the-new-allocators", ratio, Same(), (TODAY_GO,))


# === The study =======================================================================

STUDY = Study(
    name="malloc",
    quick=False,
    chapter="07a-details",
    question="What do the allocators for single size classes change?",
    cases=tuple(_cases()),
    document=TODAY_GO,
    claims=tuple(_claims()),
)
