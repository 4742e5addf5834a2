"""Lemire: a finalizer compared with a manual free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio, Share
from gccost.judging.rules import Between, Effect, Same
from gccost.judging.stacks import CALLING_C
from gccost.measuring import benchmarks
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    DEFER,
    FREE,
    HEAP_FREE,
    RECORD,
    Case,
    Variant,
    controls,
    profiled,
)
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO

# === Cases ===========================================================================


# Yields about two hundred stacks at 250 a second (gosrc/meter).
_PROFILED = 800_000
_DUMMY = Variant("AllocateDummy")
_OFF = replace(AUTO, gogc="off")
_PROFILE = profiled("AllocateAuto")


def _lemire() -> Iterator[Case]:
    def case(variant: Variant, go: str, n: int = AS_PUBLISHED) -> Case:
        # These free nothing in the loop, so memory limits their N.
        frees_nothing = benchmarks.of(variant.benchmark).has("leaks") or variant.gogc == "off"
        retained = RECORD if frees_nothing and not variant.short else 0
        return Case("cstr", variant, go, n, retained_bytes=retained)

    for go in (DOCUMENT_GO, TODAY_GO):
        for variant in (FREE, DEFER, HEAP_FREE, AUTO, _DUMMY):
            yield case(variant, go)
        for variant in (FREE, AUTO):
            yield case(replace(variant, gogc="off"), go)
        yield case(_PROFILE, go, n=_PROFILED)
    yield case(CLEANUP, TODAY_GO)
    yield from controls()


# === Claims ==========================================================================


CLAIMS: tuple[Claim, ...] = (
    Claim("L1", "ten-times-as-expensive", Ratio(AUTO, FREE), Effect(), headline=True),
    Claim("L2a", "with-the-gc-off", Ratio(_OFF, AUTO), Same()),
    Claim("L2b", "with-the-gc-off", Ratio(_OFF, replace(FREE, gogc="off")), Effect()),
    Claim("L3", "the-profile", Share(_PROFILE, CALLING_C), Between(low=0.5), system="macOS"),
    Claim("L4", "a-finalizer-that-does-nothing", Ratio(_DUMMY, AUTO), Same()),
)


# === The study =======================================================================

STUDY = Study(
    name="lemire",
    chapter="01-lemire",
    question="Is a finalizer ten times as expensive as a manual free?",
    cases=tuple(_lemire()),
    claims=CLAIMS,
)
