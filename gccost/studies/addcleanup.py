"""The Go issue on AddCleanup, compared with a manual free and a finalizer, GC on and off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio, Share
from gccost.judging.rules import AtLeast, Effect, Same
from gccost.judging.stacks import SPLICE_POINT
from gccost.measuring.cases import (
    ALLOCATE_ONLY,
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    DEFER,
    FREE,
    RECORD,
    Case,
    controls,
    profiled,
)
from gccost.measuring.toolchains import ISSUE_GO, TODAY_GO

# === Cases ===========================================================================


def _addcleanup() -> Iterator[Case]:
    for go in (ISSUE_GO, TODAY_GO):
        off = replace(CLEANUP, gogc="off")
        for variant in (FREE, DEFER, CLEANUP, AUTO, off, profiled("AllocateCleanup", gogc="off")):
            retained = RECORD if variant.gogc == "off" else 0
            yield Case("cstr", variant, go, AS_PUBLISHED, retained_bytes=retained)
        for variant in (FREE, DEFER, AUTO):
            off, retained = replace(variant, gogc="off"), 0 if variant.short else RECORD
            yield Case("cstr", off, go, AS_PUBLISHED, "standard", retained_bytes=retained)
        yield Case("parallel", ALLOCATE_ONLY, go, AS_PUBLISHED, retained_bytes=RECORD)
    yield from controls()


# === Claims ==========================================================================


_OFF = replace(CLEANUP, gogc="off")
_PROFILED = profiled("AllocateCleanup", gogc="off")
_ADDING = ("runtime.AddCleanup*",)  # a generic function has its type in its name


def _claims() -> tuple[Claim, ...]:
    claim, times = partial(Claim, releases=(ISSUE_GO, TODAY_GO)), "five-times-as-expensive"
    return (
        claim("M1", times, Ratio(CLEANUP, FREE), Effect(), headline=True),
        claim("M2", times, Ratio(AUTO, CLEANUP), Effect(), headline=True),
        claim("M3", times, Ratio(DEFER, FREE), Same()),
        claim("M5a", "the-profile", Share(_PROFILED, SPLICE_POINT, of=_ADDING), AtLeast()),
        claim("M6", "with-the-gc-off", Ratio(_OFF, CLEANUP), Same()),
    )


# === The study =======================================================================

STUDY = Study(
    name="addcleanup",
    chapter="03-addcleanup",
    question="Does AddCleanup cost five times a manual free, and half a finalizer?",
    cases=tuple(_addcleanup()),
    document=ISSUE_GO,
    claims=_claims(),
)
