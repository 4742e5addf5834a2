"""Weimer's document: plain handles, Cleaner and finalize, on every available JDK.

There are two studies because they need different tools: the document's programs need a JDK,
and the benchmark that tests Effective Java's figure also needs JMH."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gccost.cases.versions import DOCUMENT_JDK, TODAY_JDK
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Difference, ExclusiveEvents, Ratio
from gccost.judging.rules import AtLeast, AtMost, Effect, Occurs, Shown, WithinTolerance

HEAPS = (4, 8, 12, 16, 24, 32, 48, 64)  # in MB
REMAINING = tuple(range(0, 136, 8))  # bytes left in the heap
# N is the document's own; it makes ten times as many of the cheap plain handles. Shorter processes
# would measure the JVM's start and the compiler more: with a third of N, in a trial, a Cleaner
# costs more per handle and finalize holds less memory at its peak. JDK 17 and 21 are in the chart
# of all JDKs, in chapter 6.
CASES = """
    tiny Nothing|Plain|Cleaner|Finalize/jdk=document|today
    tiny Plain/escape=off/jdk=document|today
    tiny Cleaner/heap=40/jdk=document|today
    tiny Cleaner/gc=Serial/jdk=document|today
    standard Nothing/jdk=17|21
    standard Plain/escape=off/jdk=17|21
    standard Cleaner|Finalize/jdk=17|21
    standard Finalize/finalization=disabled/jdk=21
    tiny Finalize/finalization=disabled/jdk=today
    tiny RegisteredCleaner|RegisteredFinalize/jdk=document|today
    standard Cleaner|Finalize/heap=4|8|12|16|24|32|48|64/jdk=document|today
    tiny Cleaner|Finalize/heap=8|64/jdk=document|today
    standard LeakNaive|LeakRegisterFirst/remaining=0..128..8/jdk=document|today
    standard LeakTryCatch|LeakFinalize/remaining=0..128..8/jdk=document|today
    tiny LeakNaive|LeakRegisterFirst/remaining=0..120..24/jdk=document|today
    tiny LeakTryCatch|LeakFinalize/remaining=0..120..24/jdk=document|today
    tiny Cleaner/control=same/jdk=today
"""

_PEAK = "peak_rss_bytes"
# Needed to reproduce the 313 % of the document's finalize, which are most of its CPU time.
BUSY_CORES = 4


_HELD = Difference("RegisteredFinalize", "RegisteredCleaner", "registered_per_op")


def _heaps(way: str) -> tuple[str, ...]:
    return tuple(f"{way}/heap={heap}" for heap in HEAPS)


def _leaks(way: str) -> tuple[str, ...]:
    return tuple(f"Leak{way}/remaining={remaining}" for remaining in REMAINING)


_DIED = ExclusiveEvents("died", _heaps("Finalize"), (_heaps("Cleaner"),))
_REMEDIES = (_leaks("RegisterFirst"), _leaks("TryCatch"))
_LEAKED = ExclusiveEvents("leaked", _leaks("Naive"), _REMEDIES)
_REGISTERED = ExclusiveEvents("leaked", _leaks("Finalize"), ())
_BOTH, _PLAIN = "finalize-and-cleaner", "plain-and-cleaner"
_MEMORY, _LEAK = "the-memory-of-a-cleaner", "the-registration-leak"
_claim = partial(Claim, releases=(DOCUMENT_JDK, TODAY_JDK))


def _claims() -> Iterator[Claim]:
    finalize = partial(Ratio, "Finalize", "Cleaner")
    cleaner = partial(Ratio, "Cleaner", "Plain")
    share = Amount("Finalize", "cpu_share")
    cycles = Amount("Plain/escape=off", "gc_cycles")
    small_heap = Ratio("Cleaner/heap=40", "Cleaner", _PEAK)
    serial = Ratio("Cleaner/gc=Serial", "Cleaner", _PEAK)
    # The document had more than three busy cores.
    yield _claim("W1d", _BOTH, share, Effect(), cpus=BUSY_CORES)
    yield _claim("W1a", _BOTH, finalize("cpu_s"), Effect(), cpus=BUSY_CORES)
    yield _claim("W1b", _BOTH, finalize("elapsed_s"), Effect())
    yield _claim("W1c", _BOTH, finalize(_PEAK), Effect())
    yield _claim("W2a", _PLAIN, cleaner("elapsed_ns"), Effect())
    yield _claim("W2b", _PLAIN, cleaner(_PEAK), Effect())
    yield _claim("W3", _PLAIN, cycles, AtLeast(margin=1.0))
    yield _claim("W4", "never-short-lived", _HELD, WithinTolerance())
    yield _claim("W5", "small-heaps", _DIED, Occurs(share=0.1))
    yield _claim("W6", _LEAK, _LEAKED, Occurs())
    yield _claim("W6b", _LEAK, _REGISTERED, WithinTolerance())
    yield _claim("W7", _MEMORY, small_heap, AtMost())
    yield _claim("W7b", _MEMORY, serial, AtMost())


def _jmh_claims() -> Iterator[Claim]:
    same = Shown("the same quotation, which L5a tests with an object that is allocated")
    yield _claim("L5a", "effective-java", Ratio("Finalized", "Escaping"), Effect())
    yield _claim("L5b", "effective-java", Ratio("Finalized", "Removed"), same)


STUDY = Study(
    name="weimer",
    chapter="05-weimer",
    question="What do finalize, Cleaner and nothing at all cost in Java?",
    cases=CASES,
    document=DOCUMENT_JDK,
    claims=tuple(_claims()),
    metric="elapsed_s",
)
JMH = Study(
    name="jmh",
    chapter="05a-cleaners",
    question="Is an object with a finalizer 430 times as expensive to create and destroy?",
    cases="tiny Removed|Escaping|Finalized/jdk=document|today",
    document=TODAY_JDK,
    claims=tuple(_jmh_claims()),
)
