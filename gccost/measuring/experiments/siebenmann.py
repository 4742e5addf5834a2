"""Siebenmann: where a finalizer's time goes, and the object-size curve."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.measuring.experiments.base import (
    AS_PUBLISHED,
    AUTO,
    FREE,
    HEAP_FREE,
    RECORD,
    Arm,
    Case,
    Experiment,
    controls,
    profiled,
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


def of_size(arm: Arm, go: str, since: str = "tiny") -> Case:
    """The case of an arm of `sized`."""
    words = int(dict(arm.sub)["words"])
    n = _CURVE[words] * 1000
    if arm.gogc != "off":
        return Case("objects", arm, go, n, since=since)
    # With the GC off every object is kept: memory caps their N.
    return Case("objects", arm, go, min(n, 300_000), since=since, kept=10 * words + RECORD)


def _siebenmann() -> Iterator[Case]:
    for go in (DOCUMENT_GO, TODAY_GO):
        for arm in (FREE, HEAP_FREE, AUTO):
            yield Case("cstr", arm, go, AS_PUBLISHED)
        yield Case("objects", profiled("EmptyFinalizer"), go, _PROFILED_LONG)
        for what in ("Plain", "Finalizer") + (("Cleanup",) if go == TODAY_GO else ()):
            yield Case("objects", until_free(what), go, _LIFETIMES)
        mechanisms = ("Allocate", "Finalize") + (("Cleanup",) if go == TODAY_GO else ())
        for words in SIZES:
            for mechanism in mechanisms:
                later = words in _BETWEEN or mechanism == "Cleanup"
                yield of_size(sized(mechanism, words), go, "standard" if later else "tiny")
                yield of_size(sized(mechanism, words, gogc="off"), go, "standard")
    yield from controls()


EXPERIMENT = Experiment(
    name="siebenmann",
    chapter="02-siebenmann",
    question="Where does a finalizer's time go?",
    cases=tuple(_siebenmann()),
)
