"""Weak pointers, package unique and the heap profiler, which use the same lists as finalizers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Share
from gccost.judging.rules import AtLeast, AtMost
from gccost.judging.stacks import SPLICE_POINT
from gccost.measuring.cases import Case, Variant
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies.runtime import HINT, INDEX, patched

# === Cases ===========================================================================

PROGRAM = "weakly"
LIVE = (1_000, 10_000, 100_000, 1_000_000)
MANY = 100_000
RATES = (0, 512 << 10, 4 << 10, 1)  # of the heap profiler: none, the default, often, always
_OPERATIONS = 400_000
_PROFILED = 2_000_000  # operations, a second or more of samples


def among(benchmark: str, live: int = MANY) -> Variant:
    """A variant with so many live values: "HashCons", "Unique", "WeakAgain"."""
    return Variant(benchmark).keyed(live=live)


def sampled(rate: int) -> Variant:
    """A variant that allocates while the heap profiler samples at a rate."""
    return Variant("Profiled").keyed(rate=rate)


def under_profiler(variant: Variant) -> Variant:
    """The variant under the CPU profiler."""
    return replace(variant, profile="cpu")


WEAK = ("HashCons", "Unique", "WeakAgain")
USUAL = sampled(RATES[1])
JUDGED = (*map(among, WEAK), sampled(1), USUAL)
_FAST = {USUAL: 20}  # times the operations in a profile, because one takes so little


def _cases() -> Iterator[Case]:
    variants = [among(benchmark, live) for benchmark in WEAK for live in LIVE]
    for variant in (*variants, *map(sampled, RATES)):
        tier = "quick" if variant in JUDGED else "standard"
        for runtime in ("", HINT, INDEX):
            yield Case(PROGRAM, patched(variant, runtime), TODAY_GO, _OPERATIONS, tier)
    for variant in JUDGED:
        n = _PROFILED * _FAST.get(variant, 1)
        yield Case(PROGRAM, under_profiler(variant), TODAY_GO, n, "tiny")


# === Claims ==========================================================================


def walk(variant: Variant) -> Share:
    """The share of the CPU time in which a variant searches for places in lists of specials."""
    return Share(under_profiler(variant), SPLICE_POINT)


def _claims() -> Iterator[Claim]:
    for letter, variant in zip("abcde", JUDGED, strict=True):
        rule = AtMost() if variant == USUAL else AtLeast()
        yield Claim(f"X15{letter}", "without-c", walk(variant), rule, (TODAY_GO,))


# === The study =======================================================================

STUDY = Study(
    name="weakly",
    quick=False,
    chapter="10-in-real-programs",
    question="What do weak pointers, package unique and the heap profiler pay for the walk?",
    cases=tuple(_cases()),
    document=TODAY_GO,
    claims=tuple(_claims()),
)
