"""A reply in the Go issue on AddCleanup: the worst case, and the lists of real programs."""

from __future__ import annotations

from gccost.cases.versions import ISSUE_GO, TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtLeast, AtMost

# A call on a random one of a million live handles, and the microbenchmark's call, whose handles
# come in ascending order. Then programs that count the records of a list: one that allocates
# nothing but handles, and one that mixes them with other objects.
CASES = """
    tiny ScatteredCleanup/live=1000000/go=issue|today
    tiny AttachCleanup/order=ascending/bytes=8/go=issue|today
    tiny ProgramLists/live=0/others=0/go=issue|today
    tiny ProgramLists/live=100000/others=9/go=issue|today
"""

_WORST = Ratio("ScatteredCleanup/live=1000000", "AttachCleanup/order=ascending/bytes=8", "cpu_ns")
_MIXED, _ALONE = "ProgramLists/live=100000/others=9", "ProgramLists/live=0/others=0"
_SHORT = Ratio(_MIXED, _ALONE, "passed_records_per_op")
CLAIMS = (
    Claim("M8b", "programs", _SHORT, AtMost(), (ISSUE_GO, TODAY_GO)),
    Claim("X10", "the-worst-case", _WORST, AtLeast(), (ISSUE_GO, TODAY_GO)),
)


STUDY = Study(
    name="conjecture",
    chapter="07-why",
    question="Is the microbenchmark the worst case, and how long are the lists of a program?",
    cases=CASES,
    document=TODAY_GO,
    claims=CLAIMS,
)
