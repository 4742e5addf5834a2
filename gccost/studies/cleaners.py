"""Java's Cleaner by the number of live objects and of threads, on every JDK, and next to it the
arenas of java.lang.foreign.

Up to JDK 21 the registrations of a Cleaner are a linked list, on JDK 25 a list of arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtLeast, AtMost
from gccost.measuring.cases import Case, Variant
from gccost.measuring.jdks import RELEASES, number
from gccost.measuring.toolchains import DOCUMENT_JDK, TODAY_JDK
from gccost.studies.weimer import jvm

# === Cases ===========================================================================

PROGRAM = "cleaners"
FEW, MANY = 1_000, 1_000_000
LIVE = (FEW, 10_000, 100_000, MANY)
THREADS = (1, 4)
_FIRST_ARENAS = 22  # the first JDK with java.lang.foreign, but for previews
_LINKED, _SEGMENTED = "jdk-21", TODAY_JDK  # the ends of the change
_REPLACED = {FEW: 2_000_000, 10_000: 2_000_000, 100_000: 400_000, MANY: 400_000}
_COLLECTIONS = 3
_HEAP = "1024"  # MB, for a million handles and what has not been collected yet
# Operations by benchmark: a tenth of a second or more.
_OPENED = {
    "OpenPlain": 4_000_000,
    "OpenCleaner": 4_000_000,
    "DropCleaner": 1_000_000,
    "OpenConfined": 4_000_000,
    "OpenShared": 20_000,
    "DropAuto": 1_000_000,
}


def replaced(handle: str, live: int, threads: int = 1) -> Variant:
    """A variant in which threads close and open random handles: "Plain" or "Cleaner"."""
    return jvm(f"Replace{handle}", heap=_HEAP).keyed(live=live, threads=threads)


def collected(handle: str) -> Variant:
    """A variant that times full collections with a million live handles."""
    return jvm(f"Collect{handle}", heap=_HEAP).keyed(live=MANY)


def opened(benchmark: str) -> Variant:
    """A variant that opens handles or arenas one by one: "OpenShared", "DropCleaner", …"""
    return jvm(benchmark, heap=_HEAP)


def _cases() -> Iterator[Case]:
    for jdk in RELEASES:
        ends = jdk in (_LINKED, _SEGMENTED)
        for live in LIVE if ends else (FEW, MANY):
            for threads in THREADS if live in (FEW, MANY) else (1,):
                yield _replacing("Cleaner", live, jdk, threads)
        for live in (FEW, MANY):
            yield _replacing("Plain", live, jdk)
        for handle in ("Plain", "Cleaner"):
            yield Case(PROGRAM, collected(handle), jdk, _COLLECTIONS, "standard")
        for benchmark, n in _OPENED.items() if number(jdk) >= _FIRST_ARENAS else ():
            yield Case(PROGRAM, opened(benchmark), jdk, n, "standard")


def _replacing(handle: str, live: int, jdk: str, threads: int = 1) -> Case:
    cpus = (threads + 1) // 2
    return Case(PROGRAM, replaced(handle, live, threads), jdk, _REPLACED[live], "standard", cpus)


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
    chapter="05-weimer",
    question="What does a Cleaner cost with many live objects, and what does an arena?",
    cases=tuple(_cases()),
    document=DOCUMENT_JDK,
    claims=tuple(_claims()),
)
