"""Siebenmann: a finalizer's profile, and its cost over the object's size."""

from __future__ import annotations

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
_TRIGGERED = Share(_EMPTY, ALLOCATING, of=COLLECTING)
_ALLOCATIONS = Difference("AllocateAuto", "AllocateFree", "allocs_per_op")
_CYCLES_TO_FREE = Amount("UntilFreeFinalizer", "gc_cycles_to_free")
# The document does not name its machine; a desktop of its year has 8 threads or more. Half of
# its GC time is in the background: idle Ps mark too, and wait for each other's locks. Both
# take a larger share the more CPUs there are. S4b and S5 are parts of S4's time.
_CPUS = 8
_CURVE = [Difference(f"Finalize/words={words}", f"Allocate/words={words}") for words in SIZES]
CLAIMS: tuple[Claim, ...] = (
    Claim("S2", "heap-or-stack", _ALLOCATIONS, WithinTolerance()),
    Claim("S3", "where-the-time-goes", Share(_EMPTY, SETTING), AtLeast()),
    Claim("S3b", "where-the-time-goes", Share(_EMPTY, LINKING_IN, of=SETTING), AtLeast()),
    Claim("S4", "where-the-time-goes", Share(_EMPTY, COLLECTING), About(), cpus=_CPUS),
    Claim("S4b", "where-the-time-goes", _TRIGGERED, About(), cpus=_CPUS),
    Claim("S5", "where-the-time-goes", Share(_EMPTY, FINALIZING), About(), cpus=_CPUS),
    Claim("S6", "where-the-time-goes", Share(_EMPTY, LOCKING), About(), cpus=_CPUS),
    Claim("S7", "two-cycles-or-one", _CYCLES_TO_FREE, WithinTolerance()),
    Claim("S8", "how-the-size-matters", CurveDepth(tuple(_CURVE)), UShaped()),
)


STUDY = Study(
    name="siebenmann",
    chapter="02-siebenmann",
    question="Where does a finalizer's time go?",
    cases=CASES,
    claims=CLAIMS,
)
