"""Why: the cost of a call by its object's place in a span, and the programs it affects."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.cases.versions import DOCUMENT_GO, ISSUE_GO, TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Linearity, Ratio, SlopeRatio
from gccost.judging.rules import AtLeast, AtMost, Between

# Sizes are of objects whose spans are one page, in bytes: 8 are the documents' handles; with 16 a
# span's records fit into a first-level cache; a handle of 48 shares no span with AddCleanup's own
# allocations. Programs have `live` objects, and allocate `others` for each handle.
CASES = """
    tiny AttachFinalizer/bytes=8/order=ascending|shuffled|descending/go=today
    tiny AttachCleanup/bytes=8/order=ascending/go=today
    tiny LoopFinalizer/bytes=8|48/dummies=0/go=today
    tiny LoopCleanup/bytes=8|48/go=today
    tiny LoopFinalizer/bytes=8/dummies=1/go=today
    standard LoopFinalizer/bytes=8/dummies=2|3/go=today
    standard ScatteredFinalizer|ScatteredCleanup|ScatteredStop/live=10000|100000|1000000/go=today
    tiny ScatteredCleanup/live=10000|100000|1000000/go=today
    standard ProgramLists/live=0|100000/others=0|1|3|9|31/go=today
    standard ProgramLists/live=1000000/others=0|9/go=today
    tiny ProgramLists/live=0|100000/others=0|9/go=today
"""


def _claims() -> Iterator[Claim]:
    old, new = (DOCUMENT_GO, TODAY_GO), (ISSUE_GO, TODAY_GO)
    linear = Linearity("AttachFinalizer/order=ascending/bytes=8")
    yield Claim("X1a", "one-call-by-its-place", linear, AtLeast(margin=1.0), old)
    # The records of a span of 8-byte objects take over 48 KB, which fills or exceeds a first-level
    # cache. We think that it makes the last calls in random order more expensive.
    ascending = "AttachFinalizer/order=ascending/bytes=16"
    shuffled = SlopeRatio("AttachFinalizer/order=shuffled/bytes=16", ascending)
    descending = SlopeRatio("AttachFinalizer/order=descending/bytes=16", ascending)
    yield Claim("X1b", "the-order", shuffled, Between(low=0.4, high=0.6), old)
    yield Claim("X1c", "the-order", descending, AtMost(), old)
    cleanup = "AttachCleanup/order=ascending/bytes=48"
    finalizer = "AttachFinalizer/order=ascending/bytes=48"
    yield Claim("X5", "half-the-price", Ratio(cleanup, finalizer, "call_ns"), AtLeast(), new)


STUDY = Study(
    name="why",
    report="standard",
    chapter="07-why",
    question="What determines the cost, and in which programs does it matter?",
    cases=CASES,
    document=TODAY_GO,
    claims=tuple(_claims()),
)
