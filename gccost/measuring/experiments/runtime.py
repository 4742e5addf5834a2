"""A runtime without the walk, beside the stock one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.measuring.experiments.base import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FOUR_CYCLES,
    FREE,
    REPEATS,
    Arm,
    Case,
    Experiment,
    Ratio,
    profiled,
    twins,
)
from gccost.measuring.experiments.siebenmann import SIZES, sized
from gccost.measuring.experiments.why import (
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
    scattering,
)
from gccost.measuring.toolchains import TODAY_GO

INDEX = "index"
PLUS = "plus"  # which goes on to what then dominates
BEFORE_GO = "1.26.11"
RUNTIMES = ("", INDEX)
SMALLEST = 1  # pointer words of an object of 8 bytes
# Enough for the GC to take part, and for a sample of about a tenth of a second.
_CURVE = {words: max(60_000, 800_000 // max(words // 4, 1)) for words in SIZES}
# At the profiler's 100 stacks a second, some fifty without the walk.
_PROFILED = 1_600_000


def patched(arm: Arm, runtime: str = INDEX) -> Arm:
    """The same arm on the runtime without the walk."""
    return replace(arm, runtime=runtime)


def _runtime() -> Iterator[Case]:
    for go in (BEFORE_GO, TODAY_GO):
        since = "tiny" if go == TODAY_GO else "standard"
        yield Case("cstr", FREE, go, AS_PUBLISHED, REPEATS["AllocateFree"], since=since)
        for runtime in RUNTIMES:
            yield Case("cstr", patched(CLEANUP, runtime), go, AS_PUBLISHED, since=since)
            small = patched(sized("Finalize", SMALLEST), runtime)
            yield Case("objects", small, go, _CURVE[SMALLEST], since=since)
            for order in ORDERS:
                yield registering(attach("AttachCleanup", order, runtime=runtime), go, since)
                later = since if order == "shuffled" else "standard"
                yield registering(attach("Stop", order, runtime=runtime), go, later)
            yield replace(scattering("ScatteredCleanup", MANY, go, since, runtime), every=2)
    for runtime in RUNTIMES:
        yield from _more(TODAY_GO, runtime)
    for arm in (CLEANUP, AUTO, sized("Finalize", SMALLEST)):
        package, n = ("objects", _CURVE[SMALLEST]) if arm.sub else ("cstr", AS_PUBLISHED)
        yield Case(package, patched(arm, PLUS), TODAY_GO, n, since="standard")
    arm = patched(profiled("AllocateCleanup"), PLUS)
    yield Case("cstr", arm, TODAY_GO, _PROFILED, every=2, since="standard")
    free = Arm("AllocateFree", setting="precise")
    repeats = REPEATS["AllocateFree"]
    yield Case("cstr", free, TODAY_GO, AS_PUBLISHED, repeats, every=3, since="standard")
    for words in SIZES:
        arm = sized("Allocate", words)
        yield Case("objects", arm, TODAY_GO, _CURVE[words], every=2, since="standard")
    yield from twins("AllocateFree", "AllocateCleanup")


def _more(go: str, runtime: str) -> Iterator[Case]:
    """What is asked of a runtime on today's release beside."""
    later = "standard"
    yield Case("cstr", patched(profiled("AllocateCleanup"), runtime), go, _PROFILED, every=2)
    yield Case("cstr", patched(AUTO, runtime), go, AS_PUBLISHED, every=2, since=later)
    for benchmark in ("AllocateCleanup", "AllocateAuto"):
        arm = Arm(benchmark, setting="precise", runtime=runtime)
        yield Case("cstr", arm, go, FOUR_CYCLES, every=3, since=later)
    for words in SIZES[1:]:
        arm = patched(sized("Finalize", words), runtime)
        yield Case("objects", arm, go, _CURVE[words], every=2, since=later)
    for order in ORDERS:
        yield registering(attach("AttachFinalizer", order, runtime=runtime), go, later)
    for bytes_ in BYTES[1:]:
        arm = attach("AttachCleanup", bytes_=bytes_, runtime=runtime)
        yield registering(arm, go, later, every=2)
    for live in LIVE:
        for benchmark in ("ScatteredCleanup", "ScatteredStop"):
            if (benchmark, live) != ("ScatteredCleanup", MANY):
                tier = "thorough" if live > MANY else later
                yield scattering(benchmark, live, go, tier, runtime)
    for live in (0, POOL):
        yield running(program("Cleanup", live, MIXED, runtime), go, later, every=2)
    for arm in (looped("LoopFinalizer", runtime=runtime), looped("LoopCleanup", runtime=runtime)):
        yield looping(arm, go, later, every=2)


EXPERIMENT = Experiment(
    name="runtime",
    chapter="07-why",
    question="What is left of the cost in a runtime without the walk?",
    cases=tuple(_runtime()),
    headline=(Ratio(CLEANUP, patched(CLEANUP)), Ratio(CLEANUP, FREE)),
    document=TODAY_GO,
    pace=0.48,
    longer=0.8,
)
