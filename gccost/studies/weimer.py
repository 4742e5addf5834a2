"""Weimer's document: plain handles, Cleaner and finalize, on every available JDK.

There are two studies because they need different tools: the document's programs need a JDK,
and the benchmark that tests Effective Java's figure also needs JMH."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Difference, ExclusiveEvents, Ratio
from gccost.judging.rules import AtLeast, AtMost, Effect, Occurs, WithinTolerance
from gccost.measuring.cases import Case, Variant
from gccost.measuring.jdks import RELEASES, number
from gccost.measuring.toolchains import DOCUMENT_JDK, TODAY_JDK

# === Cases ===========================================================================


# The document's own N; it makes ten times as many of the cheap plain handles.
# Shorter processes would measure the JVM's start and the compiler more: with a third of N, in a
# trial, a Cleaner costs more per handle and finalize holds less memory at its peak.
AS_WEIMER = 10_000_000
PLAIN_AS_WEIMER = 100_000_000
_SMALL_HEAP = 1_000_000
_REGISTERED = 100_000
# In MB; large enough that no collection runs while the registered handles are made.
_LARGE_HEAP = "1024"

HEAPS = (4, 8, 12, 16, 24, 32, 48, 64)  # in MB
_MORE_HEAPS = (4, 12, 16, 24, 32, 48)  # omitted at the quick budget
REMAINING = tuple(range(0, 136, 8))  # bytes left in the heap
_FEW_REMAINING = tuple(range(0, 128, 24))
LEAK_REMEDIES = ("LeakRegisterFirst", "LeakTryCatch")


def jvm(benchmark: str, **settings: str) -> Variant:
    """A variant with JVM settings, such as gc="Serial", heap="16" or escape="off"."""
    more = {"gc": "G1"} | settings
    return Variant(benchmark, gogc="", more=tuple(more.items()))


def small(benchmark: str, heap: int) -> Variant:
    """A variant with a heap of `heap` MB."""
    return jvm(benchmark, heap=str(heap))


def leak(benchmark: str, remaining: int) -> Variant:
    """A variant that makes one handle when `remaining` bytes are left in the heap."""
    return jvm(benchmark, gc="Epsilon", heap="64").keyed(remaining=remaining)


NOTHING, PLAIN, CLEANER, FINALIZE = map(jvm, ("Nothing", "Plain", "Cleaner", "Finalize"))
ALLOCATED, ALLOCATED_CLEANER = (jvm(kind, escape="off") for kind in ("Plain", "Cleaner"))
# A heap (MB) of a fixed size, and a collector that sizes it otherwise.
FIXED_HEAP, SERIAL = jvm("Cleaner", heap="40"), jvm("Cleaner", gc="Serial")
DISABLED = jvm("Finalize", finalization="disabled")
_FIRST_TO_DISABLE = 18  # the first JDK with --finalization=disabled
REGISTERED_PLAIN, REGISTERED_CLEANER, REGISTERED_FINALIZE = (
    jvm(f"Registered{kind}", heap=_LARGE_HEAP) for kind in ("Plain", "Cleaner", "Finalize")
)


def _weimer() -> Iterator[Case]:
    for jdk in RELEASES:
        yield from _on(jdk) if jdk in (DOCUMENT_JDK, TODAY_JDK) else _between(jdk)
    control = replace(CLEANER, control="same")
    yield Case("finalization", control, TODAY_JDK, AS_WEIMER)


def _between(jdk: str) -> Iterator[Case]:
    """The cases of the chart of all JDKs, in chapter 6."""
    yield Case("finalization", NOTHING, jdk, 1, "standard")
    for variant in (ALLOCATED, CLEANER, FINALIZE, DISABLED):
        if variant != DISABLED or number(jdk) >= _FIRST_TO_DISABLE:
            yield Case("finalization", variant, jdk, AS_WEIMER, "standard")


def _on(jdk: str) -> Iterator[Case]:
    yield Case("finalization", NOTHING, jdk, 1)
    yield Case("finalization", PLAIN, jdk, PLAIN_AS_WEIMER)
    for variant in (CLEANER, FINALIZE, ALLOCATED, ALLOCATED_CLEANER):
        yield Case("finalization", variant, jdk, AS_WEIMER)
    for variant in (FIXED_HEAP, SERIAL):
        yield Case("finalization", variant, jdk, AS_WEIMER)
    if number(jdk) >= _FIRST_TO_DISABLE:
        yield Case("finalization", DISABLED, jdk, AS_WEIMER)
    for variant in (REGISTERED_PLAIN, REGISTERED_CLEANER, REGISTERED_FINALIZE):
        min_budget = "standard" if variant == REGISTERED_PLAIN else "tiny"
        yield Case("finalization", variant, jdk, _REGISTERED, min_budget)
    for heap in HEAPS:
        min_budget = "standard" if heap in _MORE_HEAPS else "tiny"
        for benchmark in ("Cleaner", "Finalize"):
            yield Case("finalization", small(benchmark, heap), jdk, _SMALL_HEAP, min_budget)
    # The outcome is deterministic, so one sample is enough.
    for remaining in REMAINING:
        min_budget = "tiny" if remaining in _FEW_REMAINING else "standard"
        for benchmark in ("LeakNaive", *LEAK_REMEDIES):
            yield Case("leak", leak(benchmark, remaining), jdk, 1, min_budget, once=True)
    if jdk == TODAY_JDK:
        yield Case("finalization", jvm("Opaque", escape="off"), jdk, AS_WEIMER, "standard")


# A small heap for JMH, which reuses its pages early, so that page faults add no cost.
JMH_REMOVED, JMH_ESCAPING, JMH_FINALIZED = (
    jvm(benchmark, heap="512") for benchmark in ("Removed", "Escaping", "Finalized")
)


def _jmh() -> Iterator[Case]:
    for jdk in (DOCUMENT_JDK, TODAY_JDK):
        for variant in (JMH_REMOVED, JMH_ESCAPING, JMH_FINALIZED):
            yield Case("jmh", variant, jdk, 0)


# === Claims ==========================================================================


_PEAK = "peak_rss_bytes"
# Needed to reproduce the 313 % of the document's finalize, which are most of its CPU time.
BUSY_CORES = 4


def _claims() -> tuple[Claim, ...]:
    claim = partial(Claim, releases=(DOCUMENT_JDK, TODAY_JDK))
    held = Difference(Ratio(REGISTERED_FINALIZE, REGISTERED_CLEANER, "registered_per_op"))
    heaps = ExclusiveEvents(
        "died",
        tuple(small("Finalize", h) for h in HEAPS),
        (tuple(small("Cleaner", h) for h in HEAPS),),
    )
    leaks = ExclusiveEvents(
        "leaked",
        tuple(leak("LeakNaive", r) for r in REMAINING),
        tuple(tuple(leak(remedy, r) for r in REMAINING) for remedy in LEAK_REMEDIES),
    )
    both = "finalize-and-cleaner"
    return (
        # The document had more than three busy cores.
        claim("W1d", both, Amount(FINALIZE, "cpu_share"), Effect(), cpus=BUSY_CORES),
        claim("W1a", both, Ratio(FINALIZE, CLEANER, "cpu_s"), Effect(), cpus=BUSY_CORES),
        claim("W1b", both, Ratio(FINALIZE, CLEANER, "elapsed_s"), Effect()),
        claim("W1c", both, Ratio(FINALIZE, CLEANER, _PEAK), Effect()),
        claim("W2a", "plain-and-cleaner", Ratio(CLEANER, PLAIN), Effect()),
        claim("W2b", "plain-and-cleaner", Ratio(CLEANER, PLAIN, _PEAK), Effect()),
        claim("W3", "plain-and-cleaner", Amount(PLAIN, "gc_cycles"), AtLeast(margin=1.0)),
        claim("W4", "never-short-lived", held, WithinTolerance()),
        claim("W5", "small-heaps", heaps, Occurs(share=0.1)),
        claim("W6", "the-registration-leak", leaks, Occurs()),
        claim("W7", "the-memory-of-a-cleaner", Ratio(FIXED_HEAP, CLEANER, _PEAK), AtMost()),
    )


def _jmh_claims() -> Iterator[Claim]:
    for name, plain in (("L5a", JMH_ESCAPING), ("L5b", JMH_REMOVED)):
        created = Ratio(JMH_FINALIZED, plain)
        yield Claim(name, "effective-java", created, Effect(), (DOCUMENT_JDK, TODAY_JDK))


# === The study =======================================================================

STUDY = Study(
    name="weimer",
    chapter="05-weimer",
    question="What do finalize, Cleaner and nothing at all cost in Java?",
    cases=tuple(_weimer()),
    document=DOCUMENT_JDK,
    claims=_claims(),
    metric="elapsed_s",
)
JMH = Study(
    name="jmh",
    chapter="05-weimer",
    question="Is an object with a finalizer 430 times as expensive to create and destroy?",
    cases=tuple(_jmh()),
    document=TODAY_JDK,
    claims=tuple(_jmh_claims()),
)
