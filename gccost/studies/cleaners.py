"""Java's Cleaner by the number of live objects, and next to it the arenas of java.lang.foreign.

Up to JDK 21 the registrations of a Cleaner are a linked list, on JDK 25 a list of arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtLeast, AtMost
from gccost.measuring.cases import Case, Variant
from gccost.measuring.toolchains import DOCUMENT_JDK, TODAY_JDK
from gccost.studies.weimer import jvm

# === Cases ===========================================================================

PROGRAM = "cleaners"
FEW, MANY = 1_000, 1_000_000  # live handles
_REPLACED = {FEW: 2_000_000, MANY: 400_000}
_COLLECTIONS = 3
_HEAP = "1024"  # MB, for a million handles and what has not been collected yet
# Operations by benchmark: a tenth of a second or more.
_OPENED = {"OpenCleaner": 4_000_000, "OpenConfined": 4_000_000, "OpenShared": 20_000}


def replaced(handle: str, live: int) -> Variant:
    """A variant in which a thread closes and opens random handles: "Plain" or "Cleaner"."""
    return jvm(f"Replace{handle}", heap=_HEAP).keyed(live=live, threads=1)


def collected(handle: str) -> Variant:
    """A variant that times full collections with a million live handles."""
    return jvm(f"Collect{handle}", heap=_HEAP).keyed(live=MANY)


def opened(benchmark: str) -> Variant:
    """A variant that opens handles or arenas one by one, such as "OpenShared"."""
    return jvm(benchmark, heap=_HEAP)


def _cases() -> Iterator[Case]:
    for jdk in (DOCUMENT_JDK, TODAY_JDK):
        for handle in ("Plain", "Cleaner"):
            for live, n in _REPLACED.items():
                yield Case(PROGRAM, replaced(handle, live), jdk, n, "standard")
            yield Case(PROGRAM, collected(handle), jdk, _COLLECTIONS, "standard")
    for benchmark, n in _OPENED.items():  # JDK 11 has no arenas
        yield Case(PROGRAM, opened(benchmark), TODAY_JDK, n, "standard")


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    live, arenas, both = "many-live-objects", "arenas", (DOCUMENT_JDK, TODAY_JDK)
    scattered = Ratio(replaced("Cleaner", MANY), replaced("Cleaner", FEW))
    scanned = Ratio(collected("Cleaner"), collected("Plain"))
    yield Claim("X18a", live, scattered, AtLeast(), both)
    yield Claim("X18b", live, scanned, AtLeast(), both)
    cleaner = opened("OpenCleaner")
    yield Claim("X18c", arenas, Ratio(opened("OpenConfined"), cleaner), AtMost(), (TODAY_JDK,))
    yield Claim("X18d", arenas, Ratio(opened("OpenShared"), cleaner), AtLeast(), (TODAY_JDK,))


# === The study =======================================================================

STUDY = Study(
    name="cleaners",
    quick=False,
    chapter="05a-cleaners",
    question="What does a Cleaner cost with many live objects, and what does an arena?",
    cases=tuple(_cases()),
    document=DOCUMENT_JDK,
    claims=tuple(_claims()),
)
