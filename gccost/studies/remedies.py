"""What to do instead: the remedies compared with a manual free."""

from __future__ import annotations

from functools import partial

from gccost.cases.versions import TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Ratio, Worst
from gccost.judging.rules import AtMost, Shown, WithinTolerance

# Turns and Owned: a C library that allows one call at a time, so that goroutines take turns, or a
# thread owns it.
CASES = """
    tiny AllocateFree|AllocateAuto|AllocateCleanup/go=today
    tiny Batch/go=today
    tiny Slab/handles=256|64|8/go=today
    tiny LastFirst/go=today
    tiny LifetimesSlab/handles=64/live=100000/order=random/go=today
    standard LifetimesSlab/handles=8/live=100000/order=random/go=today
    tiny LifetimesManual|LifetimesCleanup/live=100000/order=random/go=today
    standard LifetimesFinalizer/live=100000/order=random/go=today
    standard TurnsManual|TurnsFinalizer|TurnsAdopted|TurnsSlab/goroutines=1|4|16/go=today
    standard OwnedManual|OwnedFinalizer|OwnedAdopted|OwnedSlab/goroutines=1|4|16/go=today
    standard ParallelFree/goroutines=1|2|4|8|16|32|64/go=today
    standard ParallelCleanup/goroutines=1|2|4|8|16|32|64/go=today
    tiny ParallelSlab/goroutines=1|2|4|8|16|32|64/go=today
"""


_QUESTION = Shown("an open question: the figure is shown without a verdict")


def _claims() -> tuple[Claim, ...]:
    def settled(over: str, under: str = "AllocateFree") -> Ratio:
        """The ratio of settled times, by default to a manual free."""
        return Ratio(over, under, "settled_ns")

    claim = partial(Claim, releases=(TODAY_GO,))
    cost = "slabs"
    batches = "08a-details#compared-with-a-manual-free-in-batches"
    held = Amount("LifetimesSlab/handles=64/live=100000/order=random", "c_held_per_live")
    # The cases have at most twice as many goroutines as CPUs.
    many = [f"ParallelSlab/goroutines={goroutines}" for goroutines in (2, 4, 8, 16, 32, 64)]
    among = Worst(tuple(Ratio(case, "ParallelSlab/goroutines=1") for case in many))
    return (
        claim("L6", cost, settled("Slab/handles=64", "AllocateAuto"), _QUESTION),
        claim("X6a", cost, settled("Slab/handles=64"), AtMost()),
        claim("X6b", "the-price-in-memory", held, WithinTolerance()),
        claim("X6c", cost, settled("LastFirst"), AtMost()),
        claim("X6d", batches, settled("Slab/handles=256", "Batch"), AtMost()),
        claim("X7c", "08a-details#from-many-goroutines", among, AtMost()),
    )


STUDY = Study(
    name="remedies",
    report="standard",
    chapter="08-instead",
    question="What to use instead of a finalizer or cleanup per object?",
    cases=CASES,
    document=TODAY_GO,
    claims=_claims(),
)
