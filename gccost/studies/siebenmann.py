"""Siebenmann: a finalizer's profile, and its cost over the object's size."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gccost.costs.stacks import ALLOCATING, COLLECTING, FINALIZING, LINKING_IN, LOCKING, SETTING
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, CurveDepth, Difference, Share
from gccost.judging.rules import About, AtLeast, UShaped, WithinTolerance

# The sizes of the published curve, in pointer words.
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
CASES = """
    tiny AllocateFree|AllocateHeapFree|AllocateAuto/go=document|today
    tiny EmptyFinalizer/profile=cpu/go=document|today
    tiny UntilFreePlain|UntilFreeFinalizer/go=document|today
    tiny UntilFreeCleanup/go=today
    standard Allocate|Finalize/words=1|2|4|8|16|32|64|128|256|512/go=document
    standard Allocate|Finalize|Cleanup/words=1|2|4|8|16|32|64|128|256|512/go=today
    tiny Allocate|Finalize/words=1|4|8|16|32|128|512/go=document|today
    tiny AllocateFree|AllocateAuto/control=relinked/go=today
"""

_EMPTY = "EmptyFinalizer/profile=cpu"
# The document does not name its machine; a desktop of its year has 8 threads or more. Half of
# its GC time is in the background: idle Ps mark too, and wait for each other's locks. Both
# take a larger share the more CPUs there are. S4b and S5 are parts of S4's time.
_CPUS = 8


def _claims() -> Iterator[Claim]:
    where = "where-the-time-goes"
    many_cpus = partial(Claim, cpus=_CPUS)
    allocations = Difference("AllocateAuto", "AllocateFree", "allocs_per_op")
    linking_in = Share(_EMPTY, LINKING_IN, of=SETTING)
    triggered = Share(_EMPTY, ALLOCATING, of=COLLECTING)
    cycles = Amount("UntilFreeFinalizer", "gc_cycles_to_free")
    curve = [Difference(f"Finalize/words={words}", f"Allocate/words={words}") for words in SIZES]
    yield Claim("S2", "heap-or-stack", allocations, WithinTolerance())
    yield Claim("S3", where, Share(_EMPTY, SETTING), AtLeast())
    yield Claim("S3b", where, linking_in, AtLeast())
    yield many_cpus("S4", where, Share(_EMPTY, COLLECTING), About())
    yield many_cpus("S4b", where, triggered, About())
    yield many_cpus("S5", where, Share(_EMPTY, FINALIZING), About())
    yield many_cpus("S6", where, Share(_EMPTY, LOCKING), About())
    yield Claim("S7", "two-cycles-or-one", cycles, WithinTolerance())
    yield Claim("S8", "how-the-size-matters", CurveDepth(tuple(curve)), UShaped())


STUDY = Study(
    name="siebenmann",
    chapter="02-siebenmann",
    question="Where does a finalizer's time go?",
    cases=CASES,
    claims=tuple(_claims()),
)
