"""Lemire: a finalizer against freeing by hand."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.measuring.experiments.base import (
    AS_PUBLISHED,
    AUTO,
    EIGHT_CYCLES,
    FREE,
    LEAKS_BY_DESIGN,
    PRECISE_EVERY,
    RECORD,
    REPEATS,
    Arm,
    Case,
    Experiment,
    Ratio,
)
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO

# Enough for a hundred stacks at the profiler's 100 a second.
_PROFILED = 800_000


def _lemire() -> Iterator[Case]:
    def case(arm: Arm, go: str, n: int = AS_PUBLISHED, since: str = "tiny") -> Case:
        keeps = arm.benchmark in LEAKS_BY_DESIGN or arm.gogc == "off"
        kept = RECORD if keeps and arm.benchmark != "AllocateFree" else 0
        repeats = REPEATS.get(arm.benchmark, 1)
        every = PRECISE_EVERY if arm.setting == "precise" else 2 if arm.twin else 1
        return Case("cstr", arm, go, n, repeats, every, since=since, kept=kept)

    for go in (DOCUMENT_GO, TODAY_GO):
        yield case(FREE, go)
        yield case(Arm("AllocateFree", gogc="off"), go)
        yield case(Arm("AllocateDefer"), go)
        yield case(Arm("AllocateHeapFree"), go)
        yield case(AUTO, go)
        yield case(Arm("AllocateAuto", gogc="off"), go)
        yield case(Arm("AllocateDummy"), go)
        yield case(Arm("AllocateAuto", profile="cpu"), go, n=_PROFILED)
        yield case(Arm("AllocateFree", setting="precise"), go, since="standard")
        yield case(Arm("AllocateHeapFree", setting="precise"), go, since="standard")
        yield case(Arm("AllocateAuto", setting="precise"), go, n=EIGHT_CYCLES, since="standard")
        # Nothing is freed in the loop of these: memory caps their N.
        for benchmark, gogc in (("AllocateFree", "off"), ("AllocateAuto", "off")):
            yield case(Arm(benchmark, gogc=gogc, setting="precise"), go, since="standard")
        yield case(Arm("AllocateDummy", setting="precise"), go, since="standard")
    yield case(Arm("AllocateCleanup"), TODAY_GO, since="standard")
    cleanup = Arm("AllocateCleanup", setting="precise")
    yield case(cleanup, TODAY_GO, n=EIGHT_CYCLES, since="standard")
    yield case(Arm("AllocateFree", twin="same"), TODAY_GO)
    yield case(Arm("AllocateFree", twin="relinked"), TODAY_GO)
    yield case(Arm("AllocateAuto", twin="relinked"), TODAY_GO)
    # A twin linked anew bears the noise of one that is not, and more: at the
    # quick budget it stands for both where a sample is dear.
    yield case(Arm("AllocateAuto", twin="same"), TODAY_GO, since="standard")


EXPERIMENT = Experiment(
    name="lemire",
    chapter="01-lemire",
    question="Is a finalizer ten times dearer than freeing by hand?",
    cases=tuple(_lemire()),
    headline=(
        Ratio(AUTO, FREE),
        Ratio(Arm("AllocateAuto", gogc="off"), Arm("AllocateFree", gogc="off")),
        Ratio(Arm("AllocateDummy"), AUTO),
    ),
)
