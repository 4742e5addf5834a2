"""What to do instead: the remedies compared with a manual free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Ratio, Worst
from gccost.judging.rules import AtLeast, AtMost, WithinTolerance
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FREE,
    GOROUTINES,
    HEAP_FREE,
    RECORD,
    SHARED_WORK,
    Case,
    Variant,
    among_goroutines,
    controls,
    distinct,
    each,
    shared,
)
from gccost.measuring.toolchains import CLEANUP_GO, DOCUMENT_GO, ISSUE_GO, TODAY_GO

# === Cases ===========================================================================


def slabs(benchmark: str, handles: int = 64) -> Variant:
    """A variant with slabs of `handles` handles: "Slab", "SlabClose", "Adopted", …"""
    return Variant(benchmark).keyed(handles=handles)


_JUDGED_LIVE = 100_000  # the number of live handles that claims are about


def living(benchmark: str, live: int = _JUDGED_LIVE) -> Variant:
    """A variant that closes a random one of `live` handles: "LiveSlab", …"""
    return Variant(benchmark).keyed(live=live)


def lifetimes(way: str, live: int, order: str = "random", handles: int = 0) -> Variant:
    """A variant that keeps `live` objects and replaces them in an order: "Slab", "Manual", …"""
    sized = {"handles": handles} if handles else {}
    return Variant(f"Lifetimes{way}").keyed(**sized, live=live, order=order)


_LIVE = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_LIVE_REMEDIES = ("LiveManual", "LiveSlab", "LiveCleanup", "LiveFinalizer")
_ONE_HEAP = (Variant("OneHeapCleanup"), Variant("OneHeapFinalizer"))
# One C call to make a block and one to free it, without handles: the baseline of adoption.
MANUAL = Variant("Manual")
# The remedies, without their baselines.
_REMEDIES = (
    Variant("Batch"),
    Variant("Reuse"),
    *(slabs("Slab", handles) for handles in (256, 64, 8)),
    slabs("SlabUnseen"),
    slabs("Adopted"),
    slabs("SlabClose"),
    slabs("SlabCloseAtOnce"),
    slabs("AdoptedClose"),
    Variant("Pinned"),
    Variant("Stop"),
    Variant("LastFirst"),
)
SETTLED = "settled_ns"
_EVERYWHERE = (slabs("Slab"), slabs("SlabClose"))  # measured on each release
_TIMED = [
    Variant(f"Latency{what}")
    for what in ("Manual", "SlabClose", "Slab", "Adopted", "Cleanup", "Finalizer")
]
_TIMED_OPERATIONS = 1_000_000
# Objects that live on while others come and go: how many, and in which order they die. There
# are at least four times as many operations, after which slabs hold nearly what they ever will.
LIFETIMES = (1_000, 10_000, 100_000, 1_000_000)
ORDERS = ("random", "fifo", "lifo")
_SHAPES = ("Manual", "Finalizer", "Adopted", "Slab")
_CLOSED_AT_RANDOM = 200_000
# Half as many where removing the net takes microseconds.
_NET_TAKEN_AWAY = 100_000


def _lifetimes(go: str) -> Iterator[Case]:
    for live, order in product(LIFETIMES, ORDERS):
        n = max(AS_PUBLISHED, 4 * live)
        judged, random = live == _JUDGED_LIVE, order == "random"
        tier = "standard" if judged or random else "thorough"
        quick = "tiny" if judged and random else tier
        slow = tier if live <= _JUDGED_LIVE else "thorough"
        for variant, min_budget in (
            (lifetimes("Slab", live, order, 64), quick),
            (lifetimes("Slab", live, order, 8), tier),
            (lifetimes("Manual", live, order), quick),
            (lifetimes("Cleanup", live, order), quick),
            (lifetimes("Finalizer", live, order), slow),
        ):
            yield Case("remedies", variant, go, n, min_budget)


def _one_at_a_time(go: str) -> Iterator[Case]:
    """A C library that allows one call at a time: goroutines take turns, or a thread owns it."""
    for goroutines in (1, 4, 16):
        for shape in _SHAPES:
            # A call by the owner takes microseconds.
            few = SHARED_WORK if shape == "Slab" else SHARED_WORK // 16
            for kind, n in (("Turns", SHARED_WORK), ("Owned", few)):
                variant = Variant(kind + shape).keyed(goroutines=goroutines)
                yield Case("remedies", variant, go, n, "standard")


def _remedies() -> Iterator[Case]:
    for go in (DOCUMENT_GO, CLEANUP_GO, ISSUE_GO, TODAY_GO):
        min_budget = "tiny" if go == TODAY_GO else "standard"
        yield from each("cstr", (FREE, AUTO), go, AS_PUBLISHED, min_budget)
        yield from each("remedies", _EVERYWHERE, go, AS_PUBLISHED, min_budget)
        yield Case("remedies", living("LiveSlab"), go, _CLOSED_AT_RANDOM, min_budget)
        if go != DOCUMENT_GO:
            yield Case("remedies", living("LiveCleanup"), go, _NET_TAKEN_AWAY, min_budget)
    go = TODAY_GO
    yield from each("cstr", (HEAP_FREE, CLEANUP), go, AS_PUBLISHED)
    yield from each("remedies", (MANUAL, *_REMEDIES), go, AS_PUBLISHED)
    yield Case("remedies", Variant("Registry"), go, AS_PUBLISHED // 2)  # which takes seconds
    yield from each("remedies", _ONE_HEAP, go, AS_PUBLISHED)
    yield from each("remedies", _TIMED, go, _TIMED_OPERATIONS)
    for handles in (8, 64, 256):
        variant = slabs("SlabSurvivors", handles)
        yield Case("remedies", variant, go, AS_PUBLISHED, retained_bytes=RECORD)
    for live in _LIVE:
        for benchmark in _LIVE_REMEDIES:
            variant = living(benchmark, live)
            # Making ten million handles takes ten seconds.
            tier = {_JUDGED_LIVE: "tiny", 10_000_000: "thorough"}.get(live, "standard")
            n = _CLOSED_AT_RANDOM if benchmark in ("LiveManual", "LiveSlab") else _NET_TAKEN_AWAY
            yield Case("remedies", variant, go, n, tier)
    # Once so many that the collector runs in the loop: what the longer run adds is the cost of
    # an object, without that of the collections at the end.
    for mb, benchmark in product(("100", "1000"), ("HeapSlab", "HeapCleanup")):
        variant = Variant(benchmark).keyed(mb=mb)
        yield Case("remedies", variant, go, AS_PUBLISHED, "standard")
        long = replace(variant, more=(("run", "long"),))
        yield Case("remedies", long, go, 8 * AS_PUBLISHED, "standard")
    contending = (MANUAL, *_EVERYWHERE, slabs("Adopted"), *_ONE_HEAP)
    one_arena = [replace(variant, arenas="1") for variant in contending]
    locked = map(slabs, ("SlabLocked", "AdoptedLocked"))
    yield from each("remedies", (*one_arena, *locked), go, AS_PUBLISHED, "standard")
    yield from _lifetimes(go)
    yield from _one_at_a_time(go)
    yield from among_goroutines("parallel", "Free")
    yield from among_goroutines("parallel", "Cleanup")
    yield from among_goroutines("remedies", "SlabCrowded")
    yield from among_goroutines("remedies", "Slab", min_budget="tiny")
    yield from controls()


# === Claims ==========================================================================


def _claims() -> tuple[Claim, ...]:
    def settled(over: Variant, under: Variant = FREE) -> Ratio:
        """The ratio of settled times, by default to a manual free."""
        return Ratio(over, under, SETTLED)

    claim = partial(Claim, releases=(TODAY_GO,))
    slab, cost, closed = slabs("Slab"), "the-cost", "closed-explicitly"
    batches = "compared-with-a-manual-free-in-batches"
    held = Amount(lifetimes("Slab", _JUDGED_LIVE, handles=64), "c_held_per_live")
    live = Ratio(living("LiveSlab"), living("LiveManual"))
    # The cases have at most twice as many goroutines as CPUs.
    among = Worst(tuple(Ratio(shared("Slab", n), shared("Slab", 1)) for n in GOROUTINES[1:]))
    return (
        claim("X6a", cost, settled(slab), AtMost()),
        claim("X6b", "the-price-in-memory", held, WithinTolerance()),
        claim("X6c", cost, settled(Variant("LastFirst")), AtMost()),
        claim("X6d", batches, settled(slabs("Slab", 256), Variant("Batch")), AtMost()),
        claim("X7a", closed, settled(slabs("SlabClose")), AtMost()),
        claim("X7b", closed, live, AtMost()),
        claim("X7c", "from-many-goroutines", among, AtMost()),
        claim("X8", closed, Ratio(living("LiveCleanup"), living("LiveManual")), AtLeast()),
    )


# === The study =======================================================================

STUDY = Study(
    name="remedies",
    quick=False,
    chapter="08-instead",
    question="What to use instead of a finalizer or cleanup per object?",
    cases=distinct(_remedies()),
    document=TODAY_GO,
    claims=_claims(),
)
