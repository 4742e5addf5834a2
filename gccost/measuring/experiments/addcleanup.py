"""The Go issue on AddCleanup: against a manual free, a finalizer, with the GC off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.measuring.experiments.base import (
    ALLOCATE_ONLY,
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    DEFER,
    FREE,
    RECORD,
    Case,
    Experiment,
    among_goroutines,
    controls,
    profiled,
)
from gccost.measuring.toolchains import CLEANUP_GO, ISSUE_GO, TODAY_GO


def _addcleanup() -> Iterator[Case]:
    for go in (CLEANUP_GO, ISSUE_GO, TODAY_GO):
        # The release of neither the document nor today waits for the standard budget.
        since = "standard" if go == CLEANUP_GO else "tiny"
        off = replace(CLEANUP, gogc="off")
        for arm in (FREE, DEFER, CLEANUP, AUTO, off, profiled("AllocateCleanup", gogc="off")):
            kept = RECORD if arm.gogc == "off" else 0
            yield Case("cstr", arm, go, AS_PUBLISHED, since, kept=kept)
        for arm in (FREE, DEFER, AUTO):
            kept = 0 if arm.stationary else RECORD
            arm = replace(arm, gogc="off")
            yield Case("cstr", arm, go, AS_PUBLISHED, since="standard", kept=kept)
        yield Case("parallel", ALLOCATE_ONLY, go, AS_PUBLISHED, since, kept=RECORD)
    for benchmark in ("Free", "Auto", "Cleanup"):
        yield from among_goroutines("parallel", benchmark)
    yield from controls()


EXPERIMENT = Experiment(
    name="addcleanup",
    chapter="03-addcleanup",
    question="Does AddCleanup cost five times a manual free, and half a finalizer?",
    cases=tuple(_addcleanup()),
    document=ISSUE_GO,
)
