"""The size of a handle and the cost of its finalizer or cleanup; and prices for wrappers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Ratio
from gccost.judging.rules import AtLeast, AtMost
from gccost.measuring.cases import AS_PUBLISHED, RECORD, SHARED_WORK, Case, Variant, each
from gccost.measuring.toolchains import DOCUMENT_GO, ISSUE_GO, TODAY_GO

# === Cases ===========================================================================

SIZES = (8, 16, 24, 32, 48, 64, 128, 256, 1024)  # of a handle, in bytes
FEW = (8, 16, 64)  # the sizes with many live handles and on several goroutines
_JUDGED_LIVE = 100_000
LIVE = (1_000, _JUDGED_LIVE)
_RELEASES = (DOCUMENT_GO, ISSUE_GO, TODAY_GO)
_SETTLED = "settled_ns"
FREE = Variant("HandleFree")
ADOPTED = Variant("HandleAdopted")
ADOPTED_CLOSE = Variant("HandleAdoptedClose")
# With the GC off a cleanup is only registered. The objects that AddCleanup itself allocates
# lie in the spans of handles of 8 and 16 bytes, unless the handle has no pointer.
_REGISTERED = (8, 16, 24, 32, 48, 64)
UNSHARED = Variant("HandleCleanupUnshared", "off")


def handle(benchmark: str, size: int, **more: int) -> Variant:
    """A variant with handles of `size` bytes: "Finalizer", "Cleanup", "LivesFinalizer", …"""
    return Variant(f"Handle{benchmark}").keyed(bytes=size, **more)


def _sized(go: str) -> Iterator[Case]:
    """Handles that are dropped at once; those of the table of prices at every budget."""
    kinds = ("Finalizer",) if go == DOCUMENT_GO else ("Finalizer", "Cleanup")
    yield Case("handles", FREE, go, AS_PUBLISHED, "tiny" if go == TODAY_GO else "standard")
    for kind in kinds:
        for size in SIZES:
            priced = go == TODAY_GO and size in FEW
            # A loop must run at least three collections, and a handle is all that it allocates.
            n = AS_PUBLISHED if (kind, size) == ("Finalizer", 8) else AS_PUBLISHED // 2
            yield Case("handles", handle(kind, size), go, n, "tiny" if priced else "standard")


def _handles() -> Iterator[Case]:
    for go in _RELEASES:
        yield from _sized(go)
    yield from each("handles", (ADOPTED, ADOPTED_CLOSE), TODAY_GO, AS_PUBLISHED)
    registered = [replace(handle("Cleanup", size), gogc="off") for size in _REGISTERED]
    for go, variant in product((ISSUE_GO, TODAY_GO), (UNSHARED, *registered)):
        yield Case("handles", variant, go, AS_PUBLISHED // 4, "quick", retained_bytes=RECORD)
    for live in LIVE:
        yield from _among("Lives", live=live)
    for goroutines in (1, 2):
        yield from _among("Shared", goroutines=goroutines)


def _among(how: str, **key: int) -> Iterator[Case]:
    """Handles with many live ones, or on several goroutines."""
    without = [Variant(f"Handle{how}{way}").keyed(**key) for way in ("Free", "Adopted")]
    sized = product(("Finalizer", "Cleanup"), FEW)
    each_its_own = [handle(f"{how}{kind}", size, **key) for kind, size in sized]
    # With many live handles these are enough that slabs hold nearly what they ever will.
    yield from each("handles", [*without, *each_its_own], TODAY_GO, SHARED_WORK, "standard")


# === Claims ==========================================================================


def _settled(over: Variant, under: Variant) -> Ratio:
    return Ratio(over, under, _SETTLED)


_WORD = _settled(handle("Finalizer", 8), handle("Finalizer", 16))
_LARGER = _settled(handle("Cleanup", 8), handle("Cleanup", 64))
_HELD = Amount(handle("LivesFinalizer", 16, live=_JUDGED_LIVE), "c_held_per_live")
_SLABS = _settled(handle("Finalizer", 16), ADOPTED)
_ALONE = Ratio(UNSHARED, replace(handle("Cleanup", 16), gogc="off"))
_SIZE = "use-a-larger-handle-first"
_SHARED = "08a-details#why-addcleanup-costs-more-on-24-bytes-than-on-16"
CLAIMS: tuple[Claim, ...] = (
    Claim("X6e", "the-cost", _settled(ADOPTED, FREE), AtMost(), (TODAY_GO,)),
    Claim("X16a", _SIZE, _WORD, AtLeast()),
    Claim("X16b", _SIZE, _LARGER, AtLeast(), (ISSUE_GO, TODAY_GO)),
    Claim("X16c", _SIZE, _HELD, AtMost(), (TODAY_GO,)),
    Claim("X16d", _SIZE, _SLABS, AtLeast(), (TODAY_GO,)),
    Claim("X16e", _SHARED, _ALONE, AtLeast(), (TODAY_GO,)),
)

# === The study =======================================================================

STUDY = Study(
    name="handles",
    quick=False,
    chapter="08-instead",
    question="What does a larger handle save?",
    cases=tuple(_handles()),
    document=TODAY_GO,
    claims=CLAIMS,
)
