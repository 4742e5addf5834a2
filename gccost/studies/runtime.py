"""A runtime without the walk, compared with the stock runtime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Linearity, Ratio, SavedShare, SlopeRatio
from gccost.judging.rules import AtLeast, AtMost
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FREE,
    RECORD,
    Case,
    Variant,
    distinct,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies.siebenmann import of_size, sized
from gccost.studies.why import (
    LIVE,
    MANY,
    MIXED,
    ORDERS,
    POOL,
    attach,
    program,
    registering,
    running,
    scattered,
    scattering,
)

# === Cases ===========================================================================


HINT = "hint"
INDEX = "index"
PLUS = "plus"  # also removes the cost that then dominates
RUNTIMES = ("", INDEX)
PATCHED = ("", HINT, INDEX, PLUS)
SMALLEST = 1  # pointer words of an object of 8 bytes
KINDS = ("Finalizer", "Cleanup", "Weak")  # of specials


def patched(variant: Variant, runtime: str = INDEX) -> Variant:
    """The same variant on a patched runtime, by default the one without the walk."""
    return replace(variant, runtime=runtime)


def cycle(kind: str, runtime: str = "") -> Variant:
    """A variant that times GC cycles by the number of live specials: "Cleanup", …"""
    variant = Variant(f"Cycle{kind}", gogc="off", setting="precise", runtime=runtime)
    return variant.keyed(live=MANY)


def _runtime() -> Iterator[Case]:
    go = TODAY_GO
    small = sized("Finalize", SMALLEST)
    yield Case("cstr", FREE, go, AS_PUBLISHED)
    for runtime in PATCHED:
        yield Case("cstr", patched(CLEANUP, runtime), go, AS_PUBLISHED)
        yield Case("cstr", patched(AUTO, runtime), go, AS_PUBLISHED, "standard")
        yield running(program("Cleanup", POOL, MIXED, runtime), go, "tiny")
    for runtime in RUNTIMES:
        yield of_size(patched(small, runtime), go, "tiny")
        yield registering(attach("Stop", "shuffled", runtime=runtime), go)
    for runtime, order in product((*RUNTIMES, HINT), ORDERS):
        min_budget = "standard" if runtime == HINT else "tiny"
        yield registering(attach("AttachCleanup", order, runtime=runtime), go, min_budget)
    for runtime, live in product((*RUNTIMES, HINT), LIVE):
        tier = "tiny" if live == POOL else "standard"
        yield scattering("ScatteredCleanup", live, go, tier, runtime)
    for runtime, kind in product(("", PLUS), KINDS):
        variant = cycle(kind, runtime)
        yield Case("cycles", variant, go, MANY, retained_bytes=RECORD)
    # Programs without specials, which a patched runtime must not slow down.
    yield Case("cstr", patched(FREE), go, AS_PUBLISHED, "standard")
    for runtime in RUNTIMES:
        yield running(program("Plain", POOL, MIXED, runtime), go, "standard")


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    claim = partial(Claim, releases=(TODAY_GO,))
    yield claim("M7", "without-the-walk", Ratio(patched(CLEANUP), CLEANUP), AtMost())
    for name, benchmark, order, against in (
        ("X2a", "AttachCleanup", "ascending", "ascending"),
        ("X2b", "AttachCleanup", "shuffled", "shuffled"),
        # Descending order has no slope on stock either, so the baseline is ascending order.
        ("X2c", "AttachCleanup", "descending", "ascending"),
        ("X2d", "Stop", "shuffled", "shuffled"),
    ):
        over, under = patched(attach(benchmark, order)), attach(benchmark, against)
        yield claim(name, "without-the-walk", SlopeRatio(over, under), AtMost())
    saved, small = SavedShare(CLEANUP, patched(CLEANUP), FREE), sized("Finalize", SMALLEST)
    yield claim("M5b", "what-the-walk-costs", saved, AtLeast())
    yield claim("X4", "what-the-walk-costs", Ratio(small, patched(small)), AtLeast())
    each = cycle("Cleanup")
    scattered_ = scattered("ScatteredCleanup", POOL)
    hint, index = (Ratio(scattered_, patched(scattered_, r), "cpu_ns") for r in (HINT, INDEX))
    for letter, kind in zip("abc", KINDS, strict=True):
        linear = Linearity(cycle(kind))
        yield claim(f"X11{letter}", "each-cycle", linear, AtLeast(margin=1.0))
    yield claim(
        "X11d", "07a-details#a-second-variant", SlopeRatio(patched(each, PLUS), each), AtMost()
    )
    simplest, cheaper = "07a-details#the-simplest-change", Ratio(CLEANUP, patched(CLEANUP, HINT))
    yield claim("X12a", simplest, cheaper, AtLeast())
    yield claim("X12b", simplest, hint, AtMost())
    yield claim("X12c", simplest, index, AtLeast())


# === The study =======================================================================

STUDY = Study(
    name="runtime",
    quick=False,
    chapter="07-why",
    question="How much of the cost remains in a runtime without the walk?",
    cases=distinct(_runtime()),
    document=TODAY_GO,
    claims=tuple(_claims()),
)
