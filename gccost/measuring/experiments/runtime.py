"""A runtime without the walk, beside the stock one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.measuring.experiments.base import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    FREE,
    Arm,
    Case,
    Experiment,
    controls,
    profiled,
)
from gccost.measuring.experiments.siebenmann import SIZES, of_size, sized
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
# At 250 stacks a second (gosrc/meter), over a hundred without the walk.
_PROFILED = 1_600_000


def patched(arm: Arm, runtime: str = INDEX) -> Arm:
    """The same arm on the runtime without the walk."""
    return replace(arm, runtime=runtime)


def _runtime() -> Iterator[Case]:
    for go in (BEFORE_GO, TODAY_GO):
        since = "tiny" if go == TODAY_GO else "standard"
        yield Case("cstr", FREE, go, AS_PUBLISHED, since)
        for runtime in RUNTIMES:
            yield Case("cstr", patched(CLEANUP, runtime), go, AS_PUBLISHED, since)
            yield of_size(patched(sized("Finalize", SMALLEST), runtime), go, since)
            for order in ORDERS:
                yield registering(attach("AttachCleanup", order, runtime=runtime), go, since)
                later = since if order == "shuffled" else "standard"
                yield registering(attach("Stop", order, runtime=runtime), go, later)
            yield scattering("ScatteredCleanup", MANY, go, since, runtime)
    for runtime in RUNTIMES:
        yield from _more(TODAY_GO, runtime)
    for arm in (CLEANUP, AUTO):
        yield Case("cstr", patched(arm, PLUS), TODAY_GO, AS_PUBLISHED, "standard")
    yield of_size(patched(sized("Finalize", SMALLEST), PLUS), TODAY_GO, "standard")
    arm = patched(profiled("AllocateCleanup"), PLUS)
    yield Case("cstr", arm, TODAY_GO, _PROFILED, "standard")
    for words in SIZES:
        yield of_size(sized("Allocate", words), TODAY_GO, "standard")
    yield from controls()


def _more(go: str, runtime: str) -> Iterator[Case]:
    """What is asked of a runtime on today's release beside."""
    later = "standard"
    yield Case("cstr", patched(profiled("AllocateCleanup"), runtime), go, _PROFILED)
    yield Case("cstr", patched(AUTO, runtime), go, AS_PUBLISHED, later if runtime else "tiny")
    for words in SIZES[1:]:
        yield of_size(patched(sized("Finalize", words), runtime), go, later)
    for order in ORDERS:
        yield registering(attach("AttachFinalizer", order, runtime=runtime), go, later)
    for bytes_ in BYTES[1:]:
        yield registering(attach("AttachCleanup", bytes_=bytes_, runtime=runtime), go, later)
    for live in LIVE:
        for benchmark in ("ScatteredCleanup", "ScatteredStop"):
            if (benchmark, live) != ("ScatteredCleanup", MANY):
                tier = "thorough" if live > MANY else later
                yield scattering(benchmark, live, go, tier, runtime)
    for live in (0, POOL):
        yield running(program("Cleanup", live, MIXED, runtime), go, later)
    for arm in (looped("LoopFinalizer", runtime=runtime), looped("LoopCleanup", runtime=runtime)):
        yield looping(arm, go, later)


EXPERIMENT = Experiment(
    name="runtime",
    chapter="07-why",
    question="What is left of the cost in a runtime without the walk?",
    cases=tuple(_runtime()),
    document=TODAY_GO,
)
