"""Weak pointers, package unique and the heap profiler, which use the same lists as finalizers."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.cases.versions import TODAY_GO
from gccost.costs.stacks import SPLICE_POINT
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Share
from gccost.judging.rules import AtLeast, AtMost

# The heap profiler samples an object in `rate` bytes; 524288 is its default.
CASES = """
    quick HashCons/live=100000/runtime=stock|hint|index/go=today
    tiny HashCons/live=100000/profile=cpu/go=today
    quick Unique/live=100000/runtime=stock|hint|index/go=today
    tiny Unique/live=100000/profile=cpu/go=today
    quick WeakAgain/live=100000/runtime=stock|hint|index/go=today
    tiny WeakAgain/live=100000/profile=cpu/go=today
    quick Profiled/rate=1|524288/runtime=stock|hint|index/go=today
    tiny Profiled/rate=1|524288/profile=cpu/go=today
"""


def _claims() -> Iterator[Claim]:
    for name, case, rule in (
        ("X15a", "HashCons/live=100000", AtLeast()),
        ("X15b", "Unique/live=100000", AtLeast()),
        ("X15c", "WeakAgain/live=100000", AtLeast()),
        ("X15d", "Profiled/rate=1", AtLeast()),
        ("X15e", "Profiled/rate=524288", AtMost()),
    ):
        # The share of the CPU time in which it searches for places in lists of specials.
        walk = Share(f"{case}/profile=cpu", SPLICE_POINT)
        yield Claim(name, "without-c", walk, rule, (TODAY_GO,))


STUDY = Study(
    name="weakly",
    report="standard",
    chapter="10a-without-c",
    question="What do weak pointers, package unique and the heap profiler pay for the walk?",
    cases=CASES,
    document=TODAY_GO,
    claims=tuple(_claims()),
)
