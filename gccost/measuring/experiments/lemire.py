"""Lemire: a finalizer against a manual free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.measuring.experiments.base import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    DEFER,
    FREE,
    HEAP_FREE,
    LEAKS_BY_DESIGN,
    RECORD,
    Arm,
    Case,
    Experiment,
    controls,
    profiled,
)
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO

# Enough for some two hundred stacks at 250 a second (gosrc/meter).
_PROFILED = 800_000


def _lemire() -> Iterator[Case]:
    def case(arm: Arm, go: str, n: int = AS_PUBLISHED) -> Case:
        keeps = arm.benchmark in LEAKS_BY_DESIGN or arm.gogc == "off"
        # Nothing is freed in the loop of these: memory caps their N.
        return Case("cstr", arm, go, n, kept=RECORD if keeps and not arm.stationary else 0)

    for go in (DOCUMENT_GO, TODAY_GO):
        for arm in (FREE, DEFER, HEAP_FREE, AUTO, Arm("AllocateDummy")):
            yield case(arm, go)
        for arm in (FREE, AUTO):
            yield case(replace(arm, gogc="off"), go)
        yield case(profiled("AllocateAuto"), go, n=_PROFILED)
    yield case(CLEANUP, TODAY_GO)
    yield from controls()


EXPERIMENT = Experiment(
    name="lemire",
    chapter="01-lemire",
    question="Is a finalizer ten times as expensive as a manual free?",
    cases=tuple(_lemire()),
)
