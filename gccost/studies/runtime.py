"""A runtime without the walk, compared with the stock runtime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Linearity, Ratio, SavedShare, SlopeRatio
from gccost.judging.rules import AtLeast, AtMost
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FREE,
    NO_GREEN_TEA,
    RECORD,
    Case,
    Variant,
    controls,
    distinct,
    each,
    profiled,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies.siebenmann import SIZES, of_size, sized
from gccost.studies.why import (
    BYTES,
    LIVE,
    MANY,
    MIXED,
    ORDERS,
    POOL,
    attach,
    looped,
    looping,
    program,
    registering,
    running,
    scattered,
    scattering,
)

# === Cases ===========================================================================


HINT = "hint"
INDEX = "index"
PLUS = "plus"  # also removes the cost that then dominates
BEFORE_GO = "1.26.11"
RUNTIMES = ("", INDEX)
PATCHED = ("", HINT, INDEX, PLUS)
SMALLEST = 1  # pointer words of an object of 8 bytes
# Yields over a hundred stacks without the walk, at 250 a second (gosrc/meter).
_PROFILED = 1_600_000
_PROGRAM_PROFILED = 1_000_000
# Specials by kind, as the benchmarks of gosrc/cycles name them.
KINDS = {"finalizer": "Finalizer", "cleanup": "Cleanup", "weak pointer": "Weak"}
# Operations timed for the latency, by live handles: several GC cycles in a second or two.
_TIMED = {100_000: 500_000, MANY: 1_000_000, 10_000_000: 2_000_000}


def patched(variant: Variant, runtime: str = INDEX) -> Variant:
    """The same variant on a patched runtime, by default the one without the walk."""
    return replace(variant, runtime=runtime)


def cycle(kind: str, live: int = MANY, runtime: str = "") -> Variant:
    """A variant that times GC cycles by the number of live specials: "Cleanup", …"""
    return replace(
        tail(kind, live, runtime), benchmark=f"Cycle{kind}", gogc="off", setting="precise"
    )


def tail(kind: str, live: int = MANY, runtime: str = "") -> Variant:
    """A variant that times single operations with many live specials: "Plain", "Cleanup", …"""
    return Variant(f"Tail{kind}", runtime=runtime).keyed(live=live)


def profiled_program(what: str, runtime: str = "") -> Variant:
    """The program with handles in use and other objects, under the CPU profiler."""
    return replace(program(what, POOL, MIXED, runtime), profile="cpu")


def _runtime() -> Iterator[Case]:
    for go in (BEFORE_GO, TODAY_GO):
        min_budget = "tiny" if go == TODAY_GO else "standard"
        yield Case("cstr", FREE, go, AS_PUBLISHED, min_budget)
        for runtime in RUNTIMES:
            yield Case("cstr", patched(CLEANUP, runtime), go, AS_PUBLISHED, min_budget)
            yield of_size(patched(sized("Finalize", SMALLEST), runtime), go, min_budget)
            for order in ORDERS:
                yield registering(attach("AttachCleanup", order, runtime=runtime), go, min_budget)
                later = min_budget if order == "shuffled" else "standard"
                yield registering(attach("Stop", order, runtime=runtime), go, later)
            yield scattering("ScatteredCleanup", MANY, go, min_budget, runtime)
    for runtime in RUNTIMES:
        yield from _more(TODAY_GO, runtime)
    dearer = patched(CLEANUP, PLUS), patched(AUTO, PLUS)
    yield from each("cstr", dearer, TODAY_GO, AS_PUBLISHED, "standard")
    yield of_size(patched(sized("Finalize", SMALLEST), PLUS), TODAY_GO, "standard")
    variant = patched(profiled("AllocateCleanup"), PLUS)
    yield Case("cstr", variant, TODAY_GO, _PROFILED, "standard")
    for words in SIZES:
        yield of_size(sized("Allocate", words), TODAY_GO, "standard")
    # Programs without specials, which a patched runtime must not slow down.
    yield Case("cstr", patched(FREE), TODAY_GO, AS_PUBLISHED, "standard")
    yield of_size(patched(sized("Allocate", SMALLEST)), TODAY_GO, "standard")
    yield running(patched(program("Plain", POOL, MIXED)), TODAY_GO, "standard")
    yield from _hint(TODAY_GO)
    yield from _programs(TODAY_GO)
    yield from _cycles(TODAY_GO)
    yield from controls()


def _hint(go: str) -> Iterator[Case]:
    """The cases that compare the hint with the index."""
    yield Case("cstr", patched(CLEANUP, HINT), go, AS_PUBLISHED)
    yield Case("cstr", patched(AUTO, HINT), go, AS_PUBLISHED, "standard")
    yield of_size(patched(sized("Finalize", SMALLEST), HINT), go, "standard")
    for order in ORDERS:
        yield registering(attach("AttachCleanup", order, runtime=HINT), go, "standard")
    yield registering(attach("Stop", "shuffled", runtime=HINT), go, "standard")
    yield from _scattered(go, HINT)


def _programs(go: str) -> Iterator[Case]:
    """A program with other objects on each runtime, and its profiles."""
    for what, runtime in (("Plain", ""), *(("Cleanup", runtime) for runtime in PATCHED)):
        yield running(program(what, POOL, MIXED, runtime), go, "tiny")
        yield Case("specials", profiled_program(what, runtime), go, _PROGRAM_PROFILED, "standard")


def _cycles(go: str) -> Iterator[Case]:
    """The cost of live specials: GC cycles, memory, and the latency of operations."""
    for kind, live, runtime in product(KINDS.values(), LIVE, ("", PLUS, NO_GREEN_TEA)):
        judged = live == MANY and runtime != NO_GREEN_TEA
        tier = "tiny" if judged else "standard"
        if live > MANY and (kind != "Cleanup" or runtime == NO_GREEN_TEA):
            tier = "thorough"  # ten million take ten seconds
        if runtime != NO_GREEN_TEA or live >= MANY:
            variant = cycle(kind, live, runtime)
            yield Case("cycles", variant, go, live, tier, retained_bytes=RECORD)
    for live, n in _TIMED.items():
        for kind, runtime in (("Plain", ""), ("Finalizer", ""), ("Cleanup", ""), ("Cleanup", PLUS)):
            tier = "tiny" if live == MANY else "standard"
            yield Case("cycles", tail(kind, live, runtime), go, n, tier)


def _more(go: str, runtime: str) -> Iterator[Case]:
    """Further cases for a runtime on today's release."""
    later = "standard"
    yield Case("cstr", patched(profiled("AllocateCleanup"), runtime), go, _PROFILED)
    yield Case("cstr", patched(AUTO, runtime), go, AS_PUBLISHED, later if runtime else "tiny")
    for words in SIZES:
        yield of_size(patched(sized("Finalize", words), runtime), go, later)
    for order in ORDERS:
        yield registering(attach("AttachFinalizer", order, runtime=runtime), go, later)
    for bytes_ in BYTES:
        yield registering(attach("AttachCleanup", bytes_=bytes_, runtime=runtime), go, later)
    yield from _scattered(go, runtime)
    yield running(program("Cleanup", 0, MIXED, runtime), go, later)
    for benchmark in ("LoopFinalizer", "LoopCleanup"):
        yield looping(looped(benchmark, runtime=runtime), go, later)


def _scattered(go: str, runtime: str) -> Iterator[Case]:
    """Calls on random live handles on a runtime, by the number of live handles."""
    for live, benchmark in product(LIVE, ("ScatteredCleanup", "ScatteredStop")):
        judged = (benchmark, live) == ("ScatteredCleanup", POOL)
        tier = "thorough" if live > MANY else "tiny" if judged else "standard"
        yield scattering(benchmark, live, go, tier, runtime)


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    claim = partial(Claim, releases=(TODAY_GO,))
    yield claim("M7", "without-the-walk", Ratio(patched(CLEANUP), CLEANUP), AtMost())
    for name, benchmark, order, against in (
        ("X2a", "AttachCleanup", "ascending", "ascending"),
        ("X2b", "AttachCleanup", "shuffled", "shuffled"),
        # Descending order has no slope on stock either, so the baseline is ascending order.
        ("X2c", "AttachCleanup", "descending", "ascending"),
        ("X2d", "Stop", "shuffled", "shuffled"),
    ):
        over, under = patched(attach(benchmark, order)), attach(benchmark, against)
        yield claim(name, "without-the-walk", SlopeRatio(over, under), AtMost())
    saved, small = SavedShare(CLEANUP, patched(CLEANUP), FREE), sized("Finalize", SMALLEST)
    yield claim("X3", "what-the-walk-costs", saved, AtLeast())
    yield claim("X4", "what-the-walk-costs", Ratio(small, patched(small)), AtLeast())
    each = cycle("Cleanup")
    scattered_ = scattered("ScatteredCleanup", POOL)
    hint, index = (Ratio(scattered_, patched(scattered_, r), "cpu_ns") for r in (HINT, INDEX))
    for letter, kind in zip("abc", KINDS.values(), strict=True):
        linear = Linearity(cycle(kind))
        yield claim(f"X11{letter}", "each-cycle", linear, AtLeast(margin=1.0))
    yield claim("X11d", "a-second-variant", SlopeRatio(patched(each, PLUS), each), AtMost())
    simplest, cheaper = "the-simplest-change", Ratio(CLEANUP, patched(CLEANUP, HINT))
    yield claim("X12a", simplest, cheaper, AtLeast())
    yield claim("X12b", simplest, hint, AtMost())
    yield claim("X12c", simplest, index, AtLeast())


# === The study =======================================================================

STUDY = Study(
    name="runtime",
    quick=False,
    chapter="07-why",
    question="How much of the cost remains in a runtime without the walk?",
    cases=distinct(_runtime()),
    document=TODAY_GO,
    claims=tuple(_claims()),
)
