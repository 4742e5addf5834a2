"""Why: the cost of a call by its object's place in a span, and the programs it affects."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Linearity, Ratio, SlopeRatio
from gccost.judging.rules import AtLeast, AtMost, Between
from gccost.measuring.cases import RECORD, Case, Variant, distinct
from gccost.measuring.toolchains import (
    CLEANUP_GO,
    DOCUMENT_GO,
    GO_RELEASES,
    ISSUE_GO,
    TODAY_GO,
    number,
)

# === Cases ===========================================================================


ORDERS = ("ascending", "shuffled", "descending")
# The sizes of objects whose spans are one page, in bytes.
BYTES = (8, 16, 32, 48, 64, 128, 256, 512)
_BETWEEN = (32, 128, 256)  # omitted at the quick budget
SMALL = 8  # bytes of the documents' handles
CACHED = 16  # bytes of objects whose span's records fit into a first-level cache
OWN_SPAN = 48  # bytes of a handle that shares no span with AddCleanup's own allocations
DUMMIES = (0, 1, 2, 3)
# Objects allocated before a measurement, by their size in bytes: how many.
ALLOCATED_FIRST = {SMALL: (0, 126, 378, 504), CACHED: (126, 504)}
LIVE = (10_000, 100_000, 1_000_000, 10_000_000)
IN_USE = (0, 100_000, 1_000_000)
OTHERS = (0, 1, 3, 9, 31)
# For claims: the number of live objects, and the other objects allocated per handle.
MANY, MIXED = 1_000_000, 9
POOL = 100_000

_REGISTERED = 200_000
_LARGER = 100_000  # for larger objects, whose walks are short
_SCATTERED = 10_000
_LOOPED = 800_000
_PROGRAM = 300_000
# Bytes per live object: itself, two pointers to it, half a record.
_LIVING = 60


def attach(
    benchmark: str, order: str = "ascending", bytes_: int = SMALL, runtime: str = ""
) -> Variant:
    """A variant that times one call by its object's place: "AttachCleanup", "Stop", …"""
    return _off(benchmark, runtime).keyed(order=order, bytes=bytes_)


def refilled(bytes_: int, dummies: int) -> Variant:
    """A variant that times AddCleanup after allocating other objects of a size."""
    return _off("Refill").keyed(bytes=bytes_, dummies=dummies)


def scattered(benchmark: str, live: int = MANY, runtime: str = "") -> Variant:
    """A variant that times calls on random live objects: "ScatteredCleanup", …"""
    return _off(benchmark, runtime).keyed(live=live)


def _off(benchmark: str, runtime: str = "") -> Variant:
    return Variant(benchmark, gogc="off", setting="precise", runtime=runtime)


def looped(benchmark: str, bytes_: int = SMALL, dummies: int = 0, runtime: str = "") -> Variant:
    """A variant that allocates and registers: "LoopCleanup", or "LoopFinalizer" with dummies."""
    more = {"dummies": dummies} if benchmark == "LoopFinalizer" else {}
    return Variant(benchmark, setting="precise", runtime=runtime).keyed(bytes=bytes_, **more)


def program(what: str, live: int = 0, others: int = 0, runtime: str = "") -> Variant:
    """A variant of a program that also does other work: "Plain", "Cleanup", "Lists", …"""
    variant = Variant(f"Program{what}", setting="precise", runtime=runtime)
    return variant.keyed(live=live, others=others)


def registering(variant: Variant, go: str, min_budget: str = "tiny") -> Case:
    """The case of a variant of `attach`."""
    n = _REGISTERED if ("bytes", str(SMALL)) in variant.sub else _LARGER
    return Case("specials", variant, go, n, min_budget, retained_bytes=RECORD)


def scattering(benchmark: str, live: int, go: str, min_budget: str, runtime: str = "") -> Case:
    """The case of a variant of `scattered`."""
    variant, n = scattered(benchmark, live, runtime), min(live, _SCATTERED)
    retained = max(RECORD, live * _LIVING // n)
    return Case("specials", variant, go, n, min_budget, retained_bytes=retained)


def running(variant: Variant, go: str, min_budget: str) -> Case:
    """The case of a variant of `program`."""
    return Case("specials", variant, go, _PROGRAM, min_budget)


def looping(variant: Variant, go: str, min_budget: str = "tiny") -> Case:
    """The case of a variant of `looped`."""
    return Case("specials", variant, go, _LOOPED, min_budget)


def _releases() -> Iterator[Case]:
    """One call by its object's place, and the loops, on the documents' releases and later ones."""
    for go in (go for go in GO_RELEASES if go == DOCUMENT_GO or number(go) >= number(CLEANUP_GO)):
        today = go == TODAY_GO
        min_budget = "tiny" if today else "standard"
        kinds = ["Finalizer", "Cleanup"] if number(go) >= number(CLEANUP_GO) else ["Finalizer"]
        for order in ORDERS:
            for kind in kinds:
                yield registering(attach(f"Attach{kind}", order), go, min_budget)
                if kind == "Finalizer":
                    yield registering(attach("AttachFinalizer", order, CACHED), go, min_budget)
            if "Cleanup" in kinds:
                yield registering(attach("Stop", order), go, min_budget)
            if today:
                yield registering(attach("ClearFinalizer", order), go, "standard")
        for kind in kinds:
            yield registering(attach(f"Attach{kind}", bytes_=OWN_SPAN), go, min_budget)
            for bytes_ in (SMALL, OWN_SPAN):
                yield looping(looped(f"Loop{kind}", bytes_), go, min_budget)
        yield looping(looped("LoopFinalizer", dummies=1), go, min_budget)


def _why() -> Iterator[Case]:
    yield from _releases()
    go = TODAY_GO
    for bytes_ in BYTES:
        min_budget = "standard" if bytes_ in _BETWEEN else "tiny"
        for benchmark in ("AttachFinalizer", "AttachCleanup"):
            yield registering(attach(benchmark, bytes_=bytes_), go, min_budget)
            for order in ORDERS[1:]:
                yield registering(attach(benchmark, order, bytes_), go, "standard")
    for bytes_, counts in ALLOCATED_FIRST.items():
        for dummies in counts:
            yield registering(refilled(bytes_, dummies), go, "standard")
    for dummies in DUMMIES:
        yield looping(looped("LoopFinalizer", dummies=dummies), go, "standard")
    for bytes_ in (16, 64):
        for benchmark in ("LoopCleanup", "LoopFinalizer"):
            yield looping(looped(benchmark, bytes_), go, "standard")
    for live in LIVE:
        for benchmark in ("ScatteredFinalizer", "ScatteredCleanup", "ScatteredStop"):
            min_budget = "tiny" if benchmark == "ScatteredCleanup" else "standard"
            min_budget = "thorough" if live > MANY else min_budget
            yield scattering(benchmark, live, go, min_budget)
    yield scattering("ScatteredFinalizer", MANY, DOCUMENT_GO, "standard")
    yield scattering("ScatteredCleanup", MANY, ISSUE_GO, "standard")
    for live in IN_USE:
        for others in OTHERS if live <= POOL else (0, MIXED):
            early = live <= POOL and others in (0, MIXED)
            min_budget = "tiny" if early else "standard"
            for what in ("Plain", "Cleanup", "Lists"):
                yield running(program(what, live, others), go, min_budget)
            if others in (0, MIXED):
                yield running(program("Finalizer", live, others), go, "standard")
    for variant in (program("Lists"), program("Lists", POOL, MIXED)):
        yield running(variant, ISSUE_GO, "standard")


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    old, new = (DOCUMENT_GO, TODAY_GO), (ISSUE_GO, TODAY_GO)
    ascending = attach("AttachFinalizer")
    yield Claim("X1a", "one-call-by-its-place", Linearity(ascending), AtLeast(margin=1.0), old)
    # The records of a span of 8-byte objects take over 48 KB, which fills or exceeds a first-level
    # cache. We think that it makes the last calls in random order more expensive.
    shuffled, descending = (
        SlopeRatio(
            attach("AttachFinalizer", order, CACHED), attach("AttachFinalizer", bytes_=CACHED)
        )
        for order in ("shuffled", "descending")
    )
    yield Claim("X1b", "the-order", shuffled, Between(low=0.4, high=0.6), old)
    yield Claim("X1c", "the-order", descending, AtMost(), old)
    cleanup, finalizer = (
        attach(f"Attach{what}", bytes_=OWN_SPAN) for what in ("Cleanup", "Finalizer")
    )
    yield Claim("X5", "half-the-price", Ratio(cleanup, finalizer, "call_ns"), AtLeast(), new)


# === The study =======================================================================

STUDY = Study(
    name="why",
    quick=False,
    chapter="07-why",
    question="What determines the cost, and in which programs does it matter?",
    cases=distinct(_why()),
    document=TODAY_GO,
    claims=tuple(_claims()),
)
