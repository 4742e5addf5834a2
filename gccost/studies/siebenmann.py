"""Siebenmann: a finalizer's profile, and its cost over the object's size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, CurveDepth, Difference, Ratio, Share
from gccost.judging.rules import About, AtLeast, UShaped, WithinTolerance
from gccost.judging.stacks import COLLECTING, FINALIZING, LOCKING, SETTING
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    FREE,
    HEAP_FREE,
    RECORD,
    Case,
    Variant,
    controls,
    each,
    profiled,
)
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO

# === Cases ===========================================================================


# The sizes of the published curve, in pointer words.
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# Enough objects for the GC to run at every size, in samples of about a tenth of a second.
_THOUSANDS = (800, 800, 600, 600, 400, 400, 300, 200, 100, 80)
_CURVE = dict(zip(SIZES, _THOUSANDS, strict=True))
# Sizes that the quick budget omits.
_BETWEEN = (2, 64, 256)
# Profiles a finalizer for about a second.
_PROFILED_LONG = 1_600_000
# Each operation collects the whole heap a few times.
_LIFETIMES = 10
_EMPTY = profiled("EmptyFinalizer")


def sized(benchmark: str, words: int, gogc: str = "100") -> Variant:
    """A variant of the object-size curve: "Allocate", "Finalize" or "Cleanup"."""
    return Variant(benchmark, gogc).keyed(words=words)


def until_free(what: str) -> Variant:
    """The variant that counts GC cycles until a dropped object's memory is gone."""
    return Variant(f"UntilFree{what}", setting="precise")


def of_size(variant: Variant, go: str, min_budget: str = "tiny") -> Case:
    """The case of a variant of `sized`."""
    words = int(dict(variant.sub)["words"])
    case = Case("objects", variant, go, _CURVE[words] * 1000, min_budget)
    if variant.gogc != "off":
        return case
    # With the GC off every object stays allocated, so memory limits N.
    return replace(case, n=min(case.n, 300_000), retained_bytes=10 * words + RECORD)


def _siebenmann() -> Iterator[Case]:
    for go in (DOCUMENT_GO, TODAY_GO):
        yield from each("cstr", (FREE, HEAP_FREE, AUTO), go, AS_PUBLISHED)
        yield Case("objects", _EMPTY, go, _PROFILED_LONG)
        more = ("Cleanup",) if go == TODAY_GO else ()
        until = map(until_free, ("Plain", "Finalizer", *more))
        yield from each("objects", until, go, _LIFETIMES)
        mechanisms = ("Allocate", "Finalize", *more)
        for words in SIZES:
            for mechanism in mechanisms:
                later = words in _BETWEEN or mechanism == "Cleanup"
                yield of_size(sized(mechanism, words), go, "standard" if later else "tiny")
                yield of_size(sized(mechanism, words, gogc="off"), go, "standard")
    yield from controls()


# === Claims ==========================================================================


_ALLOCATIONS = Difference(Ratio(AUTO, FREE, "allocs_per_op"))
_CYCLES_TO_FREE = Amount(until_free("Finalizer"), "gc_cycles_to_free")
# The document does not name its machine; a desktop of its year has 8 threads or more. Half of
# its GC time is in the background: idle Ps mark too, and wait for each other's locks. Both
# take a larger share the more CPUs there are. The work on a finalizer (S3, S5) does not.
_CPUS = 8
_CURVE_DEPTH = CurveDepth(tuple(Ratio(sized("Finalize", w), sized("Allocate", w)) for w in SIZES))
CLAIMS: tuple[Claim, ...] = (
    Claim("S2", "heap-or-stack", _ALLOCATIONS, WithinTolerance()),
    Claim("S3", "where-the-time-goes", Share(_EMPTY, SETTING), AtLeast()),
    Claim("S4", "where-the-time-goes", Share(_EMPTY, COLLECTING), About(), cpus=_CPUS),
    Claim("S5", "where-the-time-goes", Share(_EMPTY, FINALIZING), About()),
    Claim("S6", "where-the-time-goes", Share(_EMPTY, LOCKING), About(), cpus=_CPUS),
    Claim("S7", "two-cycles-or-one", _CYCLES_TO_FREE, WithinTolerance()),
    Claim("S8", "how-the-size-matters", _CURVE_DEPTH, UShaped()),
)


# === The study =======================================================================

STUDY = Study(
    name="siebenmann",
    chapter="02-siebenmann",
    question="Where does a finalizer's time go?",
    cases=tuple(_siebenmann()),
    claims=CLAIMS,
)
