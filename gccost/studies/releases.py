"""Release by release: the ways to free C memory, and their parts, on every Go release."""

from __future__ import annotations

from gccost.judging.claims import Study

# An interval of less than 5 % needs the rounds.
STUDY = Study(
    name="releases",
    chapter="06-release-by-release",
    question="Which release changed what cleanup costs?",
    cases="""
    tiny AcrossFree|AcrossCall|AcrossMalloc|AcrossHeapFree|AcrossFinalizer|AcrossCleanup/go=all
    tiny AcrossSlab/go=all
    tiny AcrossAllocate|AcrossFinalize/words=1/go=all
    tiny AcrossAttach|AcrossLive/go=all
    tiny SignInTurns/goroutines=1|48/gogc=100|400/go=all
    """,
    report="",
    rounds=8,
)
