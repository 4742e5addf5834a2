"""What to do instead: the remedies against a manual free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from gccost.measuring.experiments.base import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FREE,
    HEAP_FREE,
    RECORD,
    Arm,
    Case,
    Experiment,
    among_goroutines,
    controls,
)
from gccost.measuring.toolchains import CLEANUP_GO, DOCUMENT_GO, ISSUE_GO, TODAY_GO


def slabs(benchmark: str, handles: int = 64) -> Arm:
    """An arm with slabs of so many handles: "Slab", "SlabClose", "Adopted", …"""
    return Arm(benchmark, sub=(("handles", str(handles)),))


def living(benchmark: str, live: int = 100_000) -> Arm:
    """An arm that closes one of so many live handles at random: "LiveSlab", …"""
    return Arm(benchmark, sub=(("live", str(live)),))


LIVE = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
LIVE_REMEDIES = ("LiveManual", "LiveSlab", "LiveCleanup", "LiveFinalizer")
ONE_HEAP = (Arm("OneHeapCleanup"), Arm("OneHeapFinalizer"))
# The C calls of one block each that handles of a library are adopted from, without a handle.
MANUAL = Arm("Manual")
# What runs beside a large live heap, each with the arm that does the same without one.
HEAPS = (0, 100, 1_000)
HEAP_REMEDIES: Mapping[str, Arm] = MappingProxyType(
    {
        "HeapManual": MANUAL,
        "HeapSlab": slabs("Slab"),
        "HeapCleanup": ONE_HEAP[0],
        "HeapFinalizer": ONE_HEAP[1],
    }
)
# What times each operation.
LATENCY = tuple(
    Arm(f"Latency{what}")
    for what in ("Manual", "SlabClose", "Slab", "Adopted", "Cleanup", "Finalizer")
)
# What is decided between, beside what they are measured against.
REMEDIES: tuple[Arm, ...] = (
    Arm("Batch"),
    Arm("Reuse"),
    *(slabs("Slab", handles) for handles in (256, 64, 8)),
    slabs("SlabUnseen"),
    slabs("Adopted"),
    slabs("SlabClose"),
    slabs("SlabCloseAtOnce"),
    slabs("AdoptedClose"),
    Arm("Pinned"),
    Arm("Stop"),
    Arm("LastFirst"),
    Arm("Padded"),
    Arm("Registry"),
)
SURVIVORS = slabs("SlabSurvivors")
_TIMED = 1_000_000  # operations whose slowest are told
_CLOSED_AT_RANDOM = 200_000
# Half as often where the net is taken away as well, which takes microseconds.
_NET_TAKEN_AWAY = 100_000


def beside(benchmark: str, mb: int) -> Arm:
    """One of `HEAP_REMEDIES` next to so many MB of live Go memory: one of `HEAPS`."""
    return Arm(benchmark, sub=(("mb", str(mb)),)) if mb else HEAP_REMEDIES[benchmark]


def _remedies() -> Iterator[Case]:
    for go in (DOCUMENT_GO, CLEANUP_GO, ISSUE_GO, TODAY_GO):
        since = "tiny" if go == TODAY_GO else "standard"
        for arm in (FREE, AUTO):
            yield Case("cstr", arm, go, AS_PUBLISHED, since)
        for arm in (slabs("Slab"), slabs("SlabClose")):
            yield Case("remedies", arm, go, AS_PUBLISHED, since)
        yield Case("remedies", living("LiveSlab"), go, _CLOSED_AT_RANDOM, since)
        if go != DOCUMENT_GO:
            yield Case("remedies", living("LiveCleanup"), go, _NET_TAKEN_AWAY, since)
    go = TODAY_GO
    for arm in (HEAP_FREE, CLEANUP):
        yield Case("cstr", arm, go, AS_PUBLISHED)
    for arm in (MANUAL, *REMEDIES):
        if arm not in (slabs("Slab"), slabs("SlabClose")):
            few = arm in (Arm("Registry"), Arm("Padded"))  # a sample takes seconds
            yield Case("remedies", arm, go, AS_PUBLISHED // 2 if few else AS_PUBLISHED)
    for arm in ONE_HEAP:
        yield Case("remedies", arm, go, AS_PUBLISHED)
    for arm in LATENCY:
        yield Case("remedies", arm, go, _TIMED)
    for handles in (8, 64, 256):
        yield Case("remedies", slabs("SlabSurvivors", handles), go, AS_PUBLISHED, kept=RECORD)
    for live in LIVE:
        for benchmark in LIVE_REMEDIES:
            arm = living(benchmark, live)
            if arm in (living("LiveSlab"), living("LiveCleanup")):
                continue
            # To make ten million handles takes ten seconds.
            tier = {100_000: "tiny", 10_000_000: "thorough"}.get(live, "standard")
            n = _CLOSED_AT_RANDOM if benchmark in ("LiveManual", "LiveSlab") else _NET_TAKEN_AWAY
            yield Case("remedies", arm, go, n, tier)
    for mb, since in zip(HEAPS[1:], ("tiny", "standard"), strict=True):
        for benchmark in HEAP_REMEDIES:
            yield Case("remedies", beside(benchmark, mb), go, AS_PUBLISHED, since)
    for program, benchmark in (
        *(("parallel", "Free"), ("parallel", "Cleanup")),
        ("remedies", "SlabCrowded"),
    ):
        yield from among_goroutines(program, benchmark)
    yield from among_goroutines("remedies", "Slab", since="tiny")
    yield from controls()


EXPERIMENT = Experiment(
    name="remedies",
    chapter="08-instead",
    question="What to do instead of a finalizer or cleanup for each object?",
    cases=tuple(_remedies()),
    document=TODAY_GO,
)
