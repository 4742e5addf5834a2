"""What finalizers and cleanups cost in libraries that people use, and in a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import PhaseShare
from gccost.judging.rules import AtMost
from gccost.measuring.cases import Case, Variant, each, profiled
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies.runtime import patched

# === Cases ===========================================================================


@dataclass(frozen=True)
class Workload:
    """A program of gosrc/libraries, its operations, and the ways to free in it.

    The first way is the library's own: finalizers or cleanups free. Most programs do what
    is `judged`: its profile decides the claim.
    """

    program: str
    n: int
    ways: tuple[Variant, ...]
    judged: Variant


def _ways(benchmark: str, *more: str) -> tuple[Variant, ...]:
    dropped = Variant(f"{benchmark}Dropped")
    return (dropped, patched(dropped), *map(Variant, (*more, f"{benchmark}Closed")))


def late(waiting: int) -> Variant:
    """Statements that are closed explicitly, but only when so many are open."""
    return Variant("SqliteLateClosed").keyed(waiting=waiting)


def _native(benchmark: str) -> tuple[Variant, Variant]:
    """The library built with slabs of its own."""
    return Variant(f"{benchmark}Native"), Variant(f"{benchmark}NativeClosed")


# What it costs that statements are freed later, without finalizers and without the memory
# that SQLite itself keeps for statements.
DELAYED = (
    *map(late, (30, 300, 3000)),
    Variant("SqlitePlainClosed"),
    Variant("SqlitePlainDropped"),
)
SQLITE = Workload(
    "libraries/sqlite",
    60_000,
    (*_ways("Sqlite", "SqliteQuery"), *DELAYED),
    Variant("SqliteQuery"),
)
TREES = Workload("libraries/treesitter", 800, _ways("Trees", "TreesSlab"), Variant("TreesDropped"))
MESSAGES = Workload(
    "libraries/zstd",
    20_000,
    _ways("Messages", "MessagesSlab", "MessagesReused"),
    Variant("MessagesDropped"),
)
NATIVE = {
    "libraries/native/trees": (TREES, _native("Trees")),
    "libraries/native/messages": (MESSAGES, _native("Messages")),
}
_SERVER = Variant("Server")
SERVER = Workload("libraries/server", 10_000, (_SERVER, patched(_SERVER)), _SERVER)
WORKLOADS = (SQLITE, TREES, MESSAGES, SERVER)
_PROFILED = 2  # times the operations, for more samples in a profile


def profile_of(variant: Variant) -> Variant:
    """The variant under the CPU profiler."""
    return profiled(variant.benchmark)


def _cases() -> Iterator[Case]:
    for load in WORKLOADS:
        yield from each(load.program, load.ways, TODAY_GO, load.n, "quick")
        for way in load.ways:
            if way in (load.judged, load.ways[0]):
                tier = "tiny" if way == load.judged else "quick"
                yield Case(load.program, profile_of(way), TODAY_GO, _PROFILED * load.n, tier)
    for program, (load, ways) in NATIVE.items():
        yield from each(program, ways, TODAY_GO, load.n, "quick")
        yield Case(program, profile_of(ways[0]), TODAY_GO, _PROFILED * load.n, "quick")


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    for letter, load in zip("abcd", WORKLOADS, strict=True):
        share = PhaseShare(profile_of(load.judged), ("registering",))
        yield Claim(f"X13{letter}", "the-share-of-the-time", share, AtMost(), (TODAY_GO,))


# === The study =======================================================================

STUDY = Study(
    name="libraries",
    quick=False,
    chapter="10-in-real-programs",
    question="What do finalizers and cleanups cost in libraries that people use?",
    cases=tuple(_cases()),
    document=TODAY_GO,
    claims=tuple(_claims()),
)
