"""Several Cleaners in place of one: what threads save that no longer wait for one lock."""

from __future__ import annotations

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtMost
from gccost.measuring.toolchains import TODAY_JDK

# With one Cleaner both ways are the same. One thread uses one Cleaner by thread.
CASES = """
    tiny ReplaceByThread/cleaners=1/live=1000|1000000/threads=1|4/jdk=21|today
    tiny ReplaceByThread/cleaners=2|4/live=1000|1000000/threads=4/jdk=21|today
    tiny ReplaceByHandle/cleaners=2|4/live=1000|1000000/threads=1|4/jdk=21|today
"""
_JDKS = ("jdk-21", TODAY_JDK)
_FOUR = "live=1000/threads=4"
_SHARED = f"ReplaceByThread/cleaners=1/{_FOUR}"


def _of_shared(way: str) -> Ratio:
    """The time of four threads with four Cleaners over their time with one."""
    return Ratio(f"{way}/cleaners=4/{_FOUR}", _SHARED)


STUDY = Study(
    name="striped",
    report="standard",
    chapter="05a-cleaners",
    question="What do threads save that use several Cleaners?",
    cases=CASES,
    document="jdk-21",
    claims=(
        Claim("X27a", "several-cleaners", _of_shared("ReplaceByThread"), AtMost(), _JDKS),
        Claim("X27b", "several-cleaners", _of_shared("ReplaceByHandle"), AtMost(), _JDKS),
    ),
)
