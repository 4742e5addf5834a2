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


def _claims() -> tuple[Claim, ...]:
    claim = partial(Claim, releases=(DOCUMENT_JDK, TODAY_JDK))
    held = Difference("RegisteredFinalize", "RegisteredCleaner", "registered_per_op")
    heaps = ExclusiveEvents(
        "died",
        tuple(f"Finalize/heap={heap}" for heap in HEAPS),
        (tuple(f"Cleaner/heap={heap}" for heap in HEAPS),),
    )
    leaks, *remedies, registered = (
        tuple(f"Leak{way}/remaining={remaining}" for remaining in REMAINING)
        for way in ("Naive", "RegisterFirst", "TryCatch", "Finalize")
    )
    both, plain = "finalize-and-cleaner", "plain-and-cleaner"
    memory, leak = "the-memory-of-a-cleaner", "the-registration-leak"
    return (
        # The document had more than three busy cores.
        claim("W1d", both, Amount("Finalize", "cpu_share"), Effect(), cpus=BUSY_CORES),
        claim("W1a", both, Ratio("Finalize", "Cleaner", "cpu_s"), Effect(), cpus=BUSY_CORES),
        claim("W1b", both, Ratio("Finalize", "Cleaner", "elapsed_s"), Effect()),
        claim("W1c", both, Ratio("Finalize", "Cleaner", _PEAK), Effect()),
        claim("W2a", plain, Ratio("Cleaner", "Plain", "elapsed_ns"), Effect()),
        claim("W2b", plain, Ratio("Cleaner", "Plain", _PEAK), Effect()),
        claim("W3", plain, Amount("Plain/escape=off", "gc_cycles"), AtLeast(margin=1.0)),
        claim("W4", "never-short-lived", held, WithinTolerance()),
        claim("W5", "small-heaps", heaps, Occurs(share=0.1)),
        claim("W6", leak, ExclusiveEvents("leaked", leaks, (*remedies,)), Occurs()),
        claim("W6b", leak, ExclusiveEvents("leaked", registered, ()), WithinTolerance()),
        claim("W7", memory, Ratio("Cleaner/heap=40", "Cleaner", _PEAK), AtMost()),
        claim("W7b", memory, Ratio("Cleaner/gc=Serial", "Cleaner", _PEAK), AtMost()),
    )


def _jmh_claims() -> Iterator[Claim]:
    removed = Shown("the same quotation, which L5a tests with an object that is allocated")
    for name, plain, rule in (("L5a", "Escaping", Effect()), ("L5b", "Removed", removed)):
        created = Ratio("Finalized", plain)
        yield Claim(name, "effective-java", created, rule, (DOCUMENT_JDK, TODAY_JDK))


STUDY = Study(
    name="weimer",
    chapter="05-weimer",
    question="What do finalize, Cleaner and nothing at all cost in Java?",
    cases=CASES,
    document=DOCUMENT_JDK,
    claims=_claims(),
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
