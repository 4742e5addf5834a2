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
    cleanup, indexed = "AllocateCleanup", "AllocateCleanup/runtime=index"
    yield claim("M7", "without-the-walk", Ratio(indexed, cleanup), AtMost())
    for name, benchmark, order, against in (
        ("X2a", "AttachCleanup", "ascending", "ascending"),
        ("X2b", "AttachCleanup", "shuffled", "shuffled"),
        # Descending order has no slope on stock either, so the baseline is ascending order.
        ("X2c", "AttachCleanup", "descending", "ascending"),
        ("X2d", "Stop", "shuffled", "shuffled"),
    ):
        over = f"{benchmark}/order={order}/bytes=8/runtime=index"
        slopes = SlopeRatio(over, f"{benchmark}/order={against}/bytes=8")
        yield claim(name, "without-the-walk", slopes, AtMost())
    saved = SavedShare(cleanup, indexed, "AllocateFree")
    small = Ratio("Finalize/words=1", "Finalize/words=1/runtime=index")
    for name in ("M5b", "X3"):
        yield claim(name, "what-the-walk-costs", saved, AtLeast())
    yield claim("X4", "what-the-walk-costs", small, AtLeast())
    scattered = "ScatteredCleanup/live=100000"
    hint, index = (
        Ratio(scattered, f"{scattered}/runtime={runtime}", "cpu_ns")
        for runtime in ("hint", "index")
    )
    for letter, kind in zip("abc", ("Finalizer", "Cleanup", "Weak"), strict=True):
        linear = Linearity(f"Cycle{kind}/live=1000000")
        yield claim(f"X11{letter}", "each-cycle", linear, AtLeast(margin=1.0))
    each = SlopeRatio("CycleCleanup/live=1000000/runtime=plus", "CycleCleanup/live=1000000")
    yield claim("X11d", "07a-details#a-second-variant", each, AtMost())
    simplest, cheaper = "07a-details#the-simplest-change", Ratio(cleanup, f"{cleanup}/runtime=hint")
    yield claim("X12a", simplest, cheaper, AtLeast())
    yield claim("X12b", simplest, hint, AtMost())
    yield claim("X12c", simplest, index, AtLeast())


STUDY = Study(
    name="runtime",
    report="standard",
    chapter="07-why",
    question="How much of the cost remains in a runtime without the walk?",
    cases=CASES,
    document=TODAY_GO,
    claims=tuple(_claims()),
)
