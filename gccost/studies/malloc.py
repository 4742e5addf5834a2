"""The allocators for single size classes, which are the default since Go 1.27: their part in
what finalizers and cleanups cost.

Go 1.27 can also be built without them, for the last time.
"""

from __future__ import annotations

from collections.abc import Iterator

from gccost.cases.versions import TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import Same

CASES = """
    tiny AllocateAuto|AllocateCleanup/runtime=stock|nosizespecializedmalloc/go=today
"""


def _claims() -> Iterator[Claim]:
    for letter, case in (("a", "AllocateAuto"), ("b", "AllocateCleanup")):
        ratio = Ratio(f"{case}/runtime=nosizespecializedmalloc", case)
        yield Claim(f"X17{letter}", "the-new-allocators", ratio, Same(), (TODAY_GO,))


STUDY = Study(
    name="malloc",
    report="standard",
    chapter="07a-details",
    question="What do the allocators for single size classes change?",
    cases=CASES,
    document=TODAY_GO,
    claims=tuple(_claims()),
)
