"""Java's Cleaner by the number of live objects, several Cleaners, and java.lang.foreign's arenas.

Up to JDK 21 the registrations of a Cleaner are a linked list, on JDK 25 a list of arrays. JDK 11
has no arenas.
"""

from __future__ import annotations

from collections.abc import Iterator

from gccost.cases.versions import DOCUMENT_JDK, TODAY_JDK
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import AddedRatio, Ratio
from gccost.judging.rules import AtLeast, AtMost, Shown

# With one Cleaner, by thread and by handle are the same. One thread uses one Cleaner by thread.
CASES = """
    standard ReplacePlain/live=1000|1000000/threads=1/jdk=document|today
    standard CollectPlain/live=1000000/jdk=document|today
    standard ReplaceCleaner/live=1000|1000000/threads=1/jdk=document|today
    standard CollectCleaner/live=1000000/jdk=document|today
    standard OpenCleaner|OpenConfined|OpenShared/jdk=today
    standard ReplaceByThread/cleaners=1/live=1000|1000000/threads=1|4/jdk=21|today
    standard ReplaceByThread/cleaners=2|4/live=1000|1000000/threads=4/jdk=21|today
    standard ReplaceByHandle/cleaners=2|4/live=1000|1000000/threads=1|4/jdk=21|today
"""


def _claims() -> Iterator[Claim]:
    live, arenas, both = "many-live-objects", "arenas", (DOCUMENT_JDK, TODAY_JDK)
    several, newer = "several-cleaners", ("jdk-21", TODAY_JDK)
    many, few = "live=1000000/threads=1", "live=1000/threads=1"
    grows = AddedRatio(
        f"ReplaceCleaner/{many}",
        f"ReplacePlain/{many}",
        f"ReplaceCleaner/{few}",
        f"ReplacePlain/{few}",
    )
    scanned = Ratio("CollectCleaner/live=1000000", "CollectPlain/live=1000000")
    yield Claim("X18a", live, grows, AtLeast(), both)
    whole = Ratio(f"ReplaceCleaner/{many}", f"ReplaceCleaner/{few}")
    yield Claim("X18e", live, whole, Shown("X18a takes the time of plain handles off"), both)
    yield Claim("X18b", live, scanned, AtLeast(), both)
    yield Claim("X18c", arenas, Ratio("OpenConfined", "OpenCleaner"), AtMost(), (TODAY_JDK,))
    yield Claim("X18d", arenas, Ratio("OpenShared", "OpenCleaner"), AtLeast(), (TODAY_JDK,))
    one = "ReplaceByThread/cleaners=1/live=1000/threads=4"
    by_thread = Ratio("ReplaceByThread/cleaners=4/live=1000/threads=4", one)
    by_handle = Ratio("ReplaceByHandle/cleaners=4/live=1000/threads=4", one)
    yield Claim("X27a", several, by_thread, AtMost(), newer)
    yield Claim("X27b", several, by_handle, AtMost(), newer)


STUDY = Study(
    name="cleaners",
    report="standard",
    chapter="05a-cleaners",
    question="What does a Cleaner cost with many live objects, and what does an arena?",
    cases=CASES,
    document=DOCUMENT_JDK,
    claims=tuple(_claims()),
)
