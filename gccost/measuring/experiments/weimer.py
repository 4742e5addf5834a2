"""Weimer's document: plain handles, Cleaner and finalize, on every JDK to be had.

Two experiments, as each needs tools of its own: the document's programs need a JDK,
the benchmark that Effective Java's figure is held against needs JMH as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.measuring.experiments.base import Arm, Case, Experiment
from gccost.measuring.jdks import RELEASES, number
from gccost.measuring.toolchains import DOCUMENT_JDK, TODAY_JDK

# The document's own N: `plain` is so cheap that it makes ten times as many.
AS_WEIMER = 10_000_000
PLAIN_AS_WEIMER = 100_000_000
# Where several collectors are compared, as many as take a second or so.
_COMPARED = 4_000_000
_SMALL_HEAP = 1_000_000
_REGISTERED = 100_000
# So that no collection comes while the registered handles are made, in MB.
_LARGE_HEAP = "1024"

COLLECTORS = ("G1", "Serial", "Parallel", "Z")
HEAPS = (4, 8, 12, 16, 24, 32, 48, 64)  # in MB
_MORE_HEAPS = (4, 12, 16, 24, 32, 48)  # which the quick budget leaves out
REMAINING = tuple(range(0, 136, 8))  # bytes of the heap that are left
_FEW_REMAINING = tuple(range(0, 128, 24))
LEAK_REMEDIES = ("LeakRegisterFirst", "LeakTryCatch")


def jvm(
    benchmark: str, *, sub: tuple[tuple[str, str], ...] = (), twin: str = "", **settings: str
) -> Arm:
    """An arm on a JVM with settings of its own: gc="Serial", heap="16", escape="off", …"""
    more = {"gc": "G1"} | settings
    return Arm(benchmark, gogc="", twin=twin, sub=sub, more=tuple(more.items()))


def small(benchmark: str, heap: int) -> Arm:
    """An arm on a heap of so many MB."""
    return jvm(benchmark, heap=str(heap))


def leak(benchmark: str, remaining: int) -> Arm:
    """An arm that makes one handle when so many bytes of the heap are left."""
    sub = (("remaining", str(remaining)),)
    return jvm(benchmark, sub=sub, gc="Epsilon", heap="64")


NOTHING, PLAIN, CLEANER, FINALIZE = map(jvm, ("Nothing", "Plain", "Cleaner", "Finalize"))
REGISTERED_PLAIN, REGISTERED_CLEANER, REGISTERED_FINALIZE = (
    jvm(f"Registered{kind}", heap=_LARGE_HEAP) for kind in ("Plain", "Cleaner", "Finalize")
)


def _weimer() -> Iterator[Case]:
    for release in RELEASES:
        # What stands for neither the document nor today waits for the standard budget.
        judged = release in (DOCUMENT_JDK, TODAY_JDK)
        since = "tiny" if judged else "standard"
        for case in _on(release):
            yield replace(case, since=since) if case.since == "tiny" else case
    twin = replace(CLEANER, twin="same")
    yield Case("finalization", twin, TODAY_JDK, AS_WEIMER)


def _on(release: str) -> Iterator[Case]:
    yield Case("finalization", NOTHING, release, 1)
    yield Case("finalization", PLAIN, release, PLAIN_AS_WEIMER)
    yield Case("finalization", CLEANER, release, AS_WEIMER)
    yield Case("finalization", FINALIZE, release, AS_WEIMER)
    for benchmark in ("Plain", "Cleaner"):
        arm = jvm(benchmark, escape="off")
        yield Case("finalization", arm, release, AS_WEIMER)
    if number(release) >= 18:
        arm = jvm("Finalize", finalization="disabled")
        yield Case("finalization", arm, release, AS_WEIMER)
    for arm in (REGISTERED_PLAIN, REGISTERED_CLEANER, REGISTERED_FINALIZE):
        since = "standard" if arm == REGISTERED_PLAIN else "tiny"
        yield Case("finalization", arm, release, _REGISTERED, since=since)
    for heap in HEAPS:
        since = "standard" if heap in _MORE_HEAPS else "tiny"
        for benchmark in ("Cleaner", "Finalize"):
            arm = small(benchmark, heap)
            yield Case("finalization", arm, release, _SMALL_HEAP, since=since)
    # The same each time: once says all.
    for remaining in REMAINING:
        since = "tiny" if remaining in _FEW_REMAINING else "standard"
        for benchmark in ("LeakNaive", *LEAK_REMEDIES):
            yield Case("leak", leak(benchmark, remaining), release, 1, since, once=True)
    for gc in COLLECTORS[1:]:
        for benchmark in ("Plain", "Cleaner", "Finalize"):
            arm = jvm(benchmark, gc=gc)
            yield Case("finalization", arm, release, _COMPARED, since="standard")
    if release == TODAY_JDK:
        for benchmark in ("Cleaner", "Finalize"):
            arm = jvm(benchmark, gcthreads="1")
            yield Case("finalization", arm, release, AS_WEIMER, since="standard")


# JMH in a heap that is soon used again, so that fresh pages are none of the cost.
JMH_REMOVED, JMH_ESCAPING, JMH_CLEANED, JMH_FINALIZED = (
    jvm(benchmark, heap="512") for benchmark in ("Removed", "Escaping", "Cleaned", "Finalized")
)


def _jmh() -> Iterator[Case]:
    for release in RELEASES:
        judged = release in (DOCUMENT_JDK, TODAY_JDK)
        for arm in (JMH_REMOVED, JMH_ESCAPING, JMH_CLEANED, JMH_FINALIZED):
            beside = arm == JMH_CLEANED  # no claim rests on it
            since = "tiny" if judged and not beside else "standard"
            yield Case("jmh", arm, release, 0, since=since)


EXPERIMENT = Experiment(
    name="weimer",
    chapter="05-weimer",
    question="What do finalize, Cleaner and nothing at all cost in Java?",
    cases=tuple(_weimer()),
    document=DOCUMENT_JDK,
)
JMH = Experiment(
    name="jmh",
    chapter="05-weimer",
    question="Is an object with a finalizer 430 times as expensive to create and destroy?",
    cases=tuple(_jmh()),
    document=TODAY_JDK,
)
