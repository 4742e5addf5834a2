"""The Go issue on AddCleanup: against freeing by hand, a finalizer, with the GC off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.measuring.experiments.base import (
    ALLOCATE_ONLY,
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    DEFER,
    FOUR_CYCLES,
    FREE,
    PRECISE_EVERY,
    RECORD,
    REPEATS,
    Arm,
    Case,
    Experiment,
    Ratio,
    among_goroutines,
    profiled,
    twins,
)
from gccost.measuring.toolchains import CLEANUP_GO, ISSUE_GO, TODAY_GO


def _addcleanup() -> Iterator[Case]:
    for go in (CLEANUP_GO, ISSUE_GO, TODAY_GO):
        # The release of neither the document nor today waits for the standard budget.
        since = "standard" if go == CLEANUP_GO else "tiny"
        yield Case("cstr", FREE, go, AS_PUBLISHED, REPEATS["AllocateFree"], since=since)
        yield Case("cstr", DEFER, go, AS_PUBLISHED, repeats=2, since=since)
        yield Case("cstr", CLEANUP, go, AS_PUBLISHED, since=since)
        yield Case("cstr", AUTO, go, AS_PUBLISHED, since=since)
        off = replace(CLEANUP, gogc="off")
        yield Case("cstr", off, go, AS_PUBLISHED, since=since, kept=RECORD)
        for arm, kept in ((FREE, 0), (DEFER, 0), (AUTO, RECORD)):
            off = replace(arm, gogc="off")
            yield Case("cstr", off, go, AS_PUBLISHED, every=3, since="standard", kept=kept)
        profile = profiled("AllocateCleanup", gogc="off")
        yield Case("cstr", profile, go, AS_PUBLISHED, since=since, kept=RECORD)
        only = Case("parallel", ALLOCATE_ONLY, go, AS_PUBLISHED, every=2, kept=RECORD)
        yield replace(only, since=since)
        for benchmark, n in (
            ("AllocateFree", AS_PUBLISHED),
            ("AllocateCleanup", FOUR_CYCLES),
            ("AllocateAuto", FOUR_CYCLES),
        ):
            arm, repeats = Arm(benchmark, setting="precise"), REPEATS.get(benchmark, 1)
            yield Case("cstr", arm, go, n, repeats, PRECISE_EVERY, since="standard")
    for benchmark in ("Free", "Auto", "Cleanup"):
        yield from among_goroutines("parallel", benchmark)
    yield from twins("AllocateFree", "AllocateCleanup")


EXPERIMENT = Experiment(
    name="addcleanup",
    chapter="03-addcleanup",
    question="Is AddCleanup five times dearer, and twice as cheap as a finalizer?",
    cases=tuple(_addcleanup()),
    headline=(Ratio(CLEANUP, FREE), Ratio(AUTO, CLEANUP), Ratio(DEFER, FREE)),
    document=ISSUE_GO,
)
