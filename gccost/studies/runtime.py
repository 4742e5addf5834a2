"""A runtime without the walk, compared with the stock runtime."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gccost.cases.versions import TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Linearity, Ratio, SavedShare, SlopeRatio
from gccost.judging.rules import AtLeast, AtMost

# The patched runtimes: without the walk by an index, by a hint, and "plus" also without the cost
# that then dominates. The last lines have programs without specials, which a patched runtime must
# not slow down.
CASES = """
    tiny AllocateFree/go=today
    standard AllocateCleanup|AllocateAuto/runtime=stock|hint|index|plus/go=today
    tiny AllocateCleanup/runtime=stock|hint|index|plus/go=today
    tiny ProgramCleanup/live=100000/others=9/runtime=stock|hint|index|plus/go=today
    tiny Finalize/words=1/runtime=stock|index/go=today
    tiny Stop/order=shuffled/bytes=8/runtime=stock|index/go=today
    tiny AttachCleanup/runtime=stock|index/order=ascending|shuffled|descending/bytes=8/go=today
    standard AttachCleanup/runtime=hint/order=ascending|shuffled|descending/bytes=8/go=today
    standard ScatteredCleanup/runtime=stock|index|hint/live=10000|100000|1000000/go=today
    tiny ScatteredCleanup/runtime=stock|index|hint/live=100000/go=today
    standard AllocateFree/runtime=index/go=today
    standard ProgramPlain/live=100000/others=9/runtime=stock|index/go=today
"""


def _claims() -> Iterator[Claim]:
    claim = partial(Claim, releases=(TODAY_GO,))
    without = "without-the-walk"
    walk = "what-the-walk-costs"
    cycle = "each-cycle"
    simplest = "07a-details#the-simplest-change"
    second = "07a-details#a-second-variant"
    cleanup = "AllocateCleanup"
    indexed = "AllocateCleanup/runtime=index"
    yield claim("M7", without, Ratio(indexed, cleanup), AtMost())
    ascending = "AttachCleanup/order=ascending/bytes=8"
    shuffled = "AttachCleanup/order=shuffled/bytes=8"
    descending = "AttachCleanup/order=descending/bytes=8"
    stop = "Stop/order=shuffled/bytes=8"
    yield claim("X2a", without, _slopes(ascending, ascending), AtMost())
    yield claim("X2b", without, _slopes(shuffled, shuffled), AtMost())
    # Descending order has no slope on stock either, so the baseline is ascending order.
    yield claim("X2c", without, _slopes(descending, ascending), AtMost())
    yield claim("X2d", without, _slopes(stop, stop), AtMost())
    saved = SavedShare(cleanup, indexed, "AllocateFree")
    small = Ratio("Finalize/words=1", "Finalize/words=1/runtime=index")
    yield claim("M5b", walk, saved, AtLeast())
    yield claim("X3", walk, saved, AtLeast())
    yield claim("X4", walk, small, AtLeast())
    linear = AtLeast(margin=1.0)
    yield claim("X11a", cycle, Linearity("CycleFinalizer/live=1000000"), linear)
    yield claim("X11b", cycle, Linearity("CycleCleanup/live=1000000"), linear)
    yield claim("X11c", cycle, Linearity("CycleWeak/live=1000000"), linear)
    plus = SlopeRatio("CycleCleanup/live=1000000/runtime=plus", "CycleCleanup/live=1000000")
    yield claim("X11d", second, plus, AtMost())
    scattered = "ScatteredCleanup/live=100000"
    hint = Ratio(scattered, "ScatteredCleanup/live=100000/runtime=hint", "cpu_ns")
    index = Ratio(scattered, "ScatteredCleanup/live=100000/runtime=index", "cpu_ns")
    hinted = "AllocateCleanup/runtime=hint"
    yield claim("X12a", simplest, Ratio(cleanup, hinted), AtLeast())
    yield claim("X12b", simplest, hint, AtMost())
    yield claim("X12c", simplest, index, AtLeast())


def _slopes(case: str, baseline: str) -> SlopeRatio:
    return SlopeRatio(f"{case}/runtime=index", baseline)


STUDY = Study(
    name="runtime",
    report="standard",
    chapter="07-why",
    question="How much of the cost remains in a runtime without the walk?",
    cases=CASES,
    document=TODAY_GO,
    claims=tuple(_claims()),
)
