"""What to do instead: the remedies compared with a manual free."""

from __future__ import annotations

from collections.abc import Iterator
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
    SHARED_WORK,
    Case,
    Variant,
    among_goroutines,
    distinct,
    each,
    shared,
)
from gccost.measuring.toolchains import TODAY_GO

# === Cases ===========================================================================


def slabs(benchmark: str, handles: int = 64) -> Variant:
    """A variant with slabs of `handles` handles: "Slab", "SlabClose", "Adopted", …"""
    return Variant(benchmark).keyed(handles=handles)


_JUDGED_LIVE = 100_000  # the number of live handles that claims are about


def living(benchmark: str, live: int = _JUDGED_LIVE) -> Variant:
    """A variant that closes a random one of `live` handles: "LiveSlab", …"""
    return Variant(benchmark).keyed(live=live)


def lifetimes(way: str, handles: int = 0) -> Variant:
    """A variant that keeps many objects, and replaces them at random: "Slab", "Manual", …"""
    sized = {"handles": handles} if handles else {}
    return Variant(f"Lifetimes{way}").keyed(**sized, live=_JUDGED_LIVE, order="random")


_LIVE = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
_LIVE_REMEDIES = ("LiveManual", "LiveSlab", "LiveCleanup", "LiveFinalizer")
# The remedies, without their baselines.
_REMEDIES = (
    Variant("Batch"),
    *(slabs("Slab", handles) for handles in (256, 64, 8)),
    slabs("SlabClose"),
    Variant("Stop"),
    Variant("LastFirst"),
)
SETTLED = "settled_ns"
_SHAPES = ("Manual", "Finalizer", "Adopted", "Slab")
_CLOSED_AT_RANDOM = 200_000
# Half as many where removing the net takes microseconds.
_NET_TAKEN_AWAY = 100_000


def _lifetimes(go: str) -> Iterator[Case]:
    for variant, min_budget in (
        (lifetimes("Slab", 64), "tiny"),
        (lifetimes("Slab", 8), "standard"),
        (lifetimes("Manual"), "tiny"),
        (lifetimes("Cleanup"), "tiny"),
        (lifetimes("Finalizer"), "standard"),
    ):
        yield Case("remedies", variant, go, AS_PUBLISHED, min_budget)


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
    go = TODAY_GO
    yield from each("cstr", (FREE, AUTO, CLEANUP), go, AS_PUBLISHED)
    yield from each("remedies", _REMEDIES, go, AS_PUBLISHED)
    for live, benchmark in product(_LIVE, _LIVE_REMEDIES):
        tier = "tiny" if live == _JUDGED_LIVE else "standard"
        n = _CLOSED_AT_RANDOM if benchmark in ("LiveManual", "LiveSlab") else _NET_TAKEN_AWAY
        yield Case("remedies", living(benchmark, live), go, n, tier)
    yield from _lifetimes(go)
    yield from _one_at_a_time(go)
    yield from among_goroutines("parallel", "Free")
    yield from among_goroutines("parallel", "Cleanup")
    yield from among_goroutines("remedies", "Slab", min_budget="tiny")


# === Claims ==========================================================================


def _claims() -> tuple[Claim, ...]:
    def settled(over: Variant, under: Variant = FREE) -> Ratio:
        """The ratio of settled times, by default to a manual free."""
        return Ratio(over, under, SETTLED)

    claim = partial(Claim, releases=(TODAY_GO,))
    slab, cost, closed = slabs("Slab"), "the-cost", "closed-explicitly"
    batches = "08a-details#compared-with-a-manual-free-in-batches"
    held = Amount(lifetimes("Slab", 64), "c_held_per_live")
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
        claim("X7c", "08a-details#from-many-goroutines", among, AtMost()),
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
