"""Why: the cost of a call by its object's place in a span, and the programs it affects."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Linearity, Ratio, SlopeRatio
from gccost.judging.rules import AtLeast, AtMost, Between
from gccost.measuring.cases import RECORD, Case, Variant, distinct
from gccost.measuring.toolchains import DOCUMENT_GO, ISSUE_GO, TODAY_GO

# === Cases ===========================================================================


ORDERS = ("ascending", "shuffled", "descending")
# The sizes of objects whose spans are one page, in bytes.
BYTES = (8, 16, 32, 48, 64, 128, 256, 512)
_BETWEEN = (32, 128, 256)  # omitted at the quick budget
SMALL = 8  # bytes of the documents' handles
CACHED = 16  # bytes of objects whose span's records fit into a first-level cache
OWN_SPAN = 48  # bytes of a handle that shares no span with AddCleanup's own allocations
DUMMIES = (1, 2, 3)
LIVE = (10_000, 100_000, 1_000_000)
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


def scattered(benchmark: str, live: int = MANY, runtime: str = "") -> Variant:
    """A variant that times calls on random live objects: "ScatteredCleanup", …"""
    return _off(benchmark, runtime).keyed(live=live)


def _off(benchmark: str, runtime: str = "") -> Variant:
    return Variant(benchmark, gogc="off", setting="precise", runtime=runtime)


def looped(benchmark: str, bytes_: int = SMALL, dummies: int = 0) -> Variant:
    """A variant that allocates and registers: "LoopCleanup", or "LoopFinalizer" with dummies."""
    more = {"dummies": dummies} if benchmark == "LoopFinalizer" else {}
    return Variant(benchmark, setting="precise").keyed(bytes=bytes_, **more)


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


def _then() -> Iterator[Case]:
    """The cases that claims compare, on the documents' releases."""
    for order, bytes_ in product(ORDERS, (SMALL, CACHED)):
        yield registering(attach("AttachFinalizer", order, bytes_), DOCUMENT_GO, "standard")
    for kind in ("Finalizer", "Cleanup"):
        alone = attach(f"Attach{kind}", bytes_=OWN_SPAN)
        yield registering(alone, ISSUE_GO, "standard")
        for bytes_ in (SMALL, OWN_SPAN):
            yield looping(looped(f"Loop{kind}", bytes_), ISSUE_GO, "standard")
    yield looping(looped("LoopFinalizer", dummies=1), ISSUE_GO, "standard")


def _why() -> Iterator[Case]:
    yield from _then()
    go = TODAY_GO
    for bytes_, order in product(BYTES, ORDERS):
        early = bytes_ <= CACHED or (order == ORDERS[0] and bytes_ not in _BETWEEN)
        for kind in ("Finalizer", "Cleanup"):
            variant = attach(f"Attach{kind}", order, bytes_)
            yield registering(variant, go, "tiny" if early else "standard")
    for kind, bytes_ in product(("Finalizer", "Cleanup"), (SMALL, OWN_SPAN)):
        yield looping(looped(f"Loop{kind}", bytes_), go)
    for dummies in DUMMIES:
        variant = looped("LoopFinalizer", dummies=dummies)
        yield looping(variant, go, "tiny" if dummies == 1 else "standard")
    for live in LIVE:
        for benchmark in ("ScatteredFinalizer", "ScatteredCleanup", "ScatteredStop"):
            min_budget = "tiny" if benchmark == "ScatteredCleanup" else "standard"
            yield scattering(benchmark, live, go, min_budget)
    for live in IN_USE:
        for others in OTHERS if live <= POOL else (0, MIXED):
            early = live <= POOL and others in (0, MIXED)
            min_budget = "tiny" if early else "standard"
            for what in ("Plain", "Cleanup", "Lists"):
                yield running(program(what, live, others), go, min_budget)


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
