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
LIVE = 100_000
_OPERATIONS = 400_000
_PROFILED = 2_000_000  # operations, a second or more of samples


def among(benchmark: str) -> Variant:
    """A variant with many live values: "HashCons", "Unique", "WeakAgain"."""
    return Variant(benchmark).keyed(live=LIVE)


def sampled(rate: int) -> Variant:
    """A variant that allocates while the heap profiler samples an object in so many bytes."""
    return Variant("Profiled").keyed(rate=rate)


def under_profiler(variant: Variant) -> Variant:
    """The variant under the CPU profiler."""
    return replace(variant, profile="cpu")


USUAL = sampled(512 << 10)  # the default
VARIANTS = (*map(among, ("HashCons", "Unique", "WeakAgain")), sampled(1), USUAL)
_FAST = {USUAL: 20}  # times the operations in a profile, because one takes so little


def _cases() -> Iterator[Case]:
    for variant in VARIANTS:
        for runtime in ("", HINT, INDEX):
            yield Case(PROGRAM, patched(variant, runtime), TODAY_GO, _OPERATIONS, "quick")
        n = _PROFILED * _FAST.get(variant, 1)
        yield Case(PROGRAM, under_profiler(variant), TODAY_GO, n, "tiny")


# === Claims ==========================================================================


def walk(variant: Variant) -> Share:
    """The share of the CPU time in which a variant searches for places in lists of specials."""
    return Share(under_profiler(variant), SPLICE_POINT)


def _claims() -> Iterator[Claim]:
    for letter, variant in zip("abcde", VARIANTS, strict=True):
        rule = AtMost() if variant == USUAL else AtLeast()
        yield Claim(f"X15{letter}", "without-c", walk(variant), rule, (TODAY_GO,))


# === The study =======================================================================

STUDY = Study(
    name="weakly",
    quick=False,
    chapter="10a-without-c",
    question="What do weak pointers, package unique and the heap profiler pay for the walk?",
    cases=tuple(_cases()),
    document=TODAY_GO,
    claims=tuple(_claims()),
)
