"""Siebenmann: where a finalizer's time goes, and the object-size curve."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.measuring.experiments.base import (
    AS_PUBLISHED,
    AUTO,
    FOUR_CYCLES,
    FREE,
    HEAP_FREE,
    PRECISE_EVERY,
    RECORD,
    REPEATS,
    Arm,
    Case,
    Experiment,
    Ratio,
    profiled,
    twins,
)
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO

# Of the published curve, in pointer words.
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# Enough for the GC to take part at every size, and for a sample of about a
# tenth of a second: the larger the object, the fewer.
_CURVE = dict(
    zip(SIZES, (800, 800, 600, 600, 400, 400, 300, 200, 100, 80), strict=True)
)  # thousands
# The sizes that the quick budget leaves out.
_BETWEEN = (2, 8, 64, 256)
# A finalizer's profile is sampled for about a second.
_PROFILED_LONG = 1_600_000
# Each operation collects the whole heap a few times.
_LIFETIMES = 10


def sized(benchmark: str, words: int, gogc: str = "100", setting: str = "published") -> Arm:
    """An arm of the object-size curve: "Allocate", "Finalize" or "Cleanup"."""
    return Arm(benchmark, gogc, setting, sub=(("words", str(words)),))


def until_free(what: str) -> Arm:
    """The arm that counts GC cycles until a dropped object's memory is gone."""
    return Arm(f"UntilFree{what}", setting="precise")


def _siebenmann() -> Iterator[Case]:
    for go in (DOCUMENT_GO, TODAY_GO):
        yield Case("cstr", FREE, go, AS_PUBLISHED, REPEATS["AllocateFree"])
        yield Case("cstr", HEAP_FREE, go, AS_PUBLISHED, repeats=2, every=2)
        yield Case("cstr", AUTO, go, AS_PUBLISHED)
        for setting, since in (("published", "tiny"), ("precise", "standard")):
            arm = profiled("EmptyFinalizer", setting)
            yield Case("objects", arm, go, _PROFILED_LONG, since=since)
        for what in ("Plain", "Finalizer") + (("Cleanup",) if go == TODAY_GO else ()):
            yield Case("objects", until_free(what), go, _LIFETIMES, every=2)
        mechanisms = ("Allocate", "Finalize") + (("Cleanup",) if go == TODAY_GO else ())
        for words in SIZES:
            n = _CURVE[words] * 1000
            for mechanism in mechanisms:
                later = words in _BETWEEN or mechanism == "Cleanup"
                arm, since = sized(mechanism, words), "standard" if later else "tiny"
                yield Case("objects", arm, go, n, since=since)
                # With the GC off every object is kept: memory caps their N.
                off, kept = sized(mechanism, words, gogc="off"), 10 * words + RECORD
                few = min(n, 300_000)
                yield Case("objects", off, go, few, every=3, since="standard", kept=kept)
        for benchmark, n in (("AllocateFree", AS_PUBLISHED), ("AllocateAuto", FOUR_CYCLES)):
            arm, repeats = Arm(benchmark, setting="precise"), REPEATS.get(benchmark, 1)
            yield Case("cstr", arm, go, n, repeats, PRECISE_EVERY, since="standard")
    yield from twins("AllocateFree", "AllocateAuto")


EXPERIMENT = Experiment(
    name="siebenmann",
    chapter="02-siebenmann",
    question="Where does a finalizer's time go?",
    cases=tuple(_siebenmann()),
    headline=(Ratio(AUTO, FREE),),
)
