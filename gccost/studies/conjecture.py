"""A reply in the Go issue on AddCleanup: the worst case, and the lists of real programs."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtLeast, AtMost
from gccost.measuring.cases import Case
from gccost.measuring.toolchains import ISSUE_GO, TODAY_GO
from gccost.studies.why import (
    MANY,
    MIXED,
    POOL,
    attach,
    program,
    registering,
    running,
    scattered,
    scattering,
)

# === Cases ===========================================================================


# A call on a random one of a million live handles, and the microbenchmark's call, whose handles
# come in ascending order.
_RANDOM, _ASCENDING = scattered("ScatteredCleanup"), attach("AttachCleanup")
# Programs that count the records of a list: one that allocates nothing but handles, and one that
# mixes them with other objects.
_ALONE, _MIXED = program("Lists"), program("Lists", POOL, MIXED)


def _conjecture() -> Iterator[Case]:
    for go in (ISSUE_GO, TODAY_GO):
        yield scattering("ScatteredCleanup", MANY, go, "tiny")
        yield registering(_ASCENDING, go)
        for variant in (_ALONE, _MIXED):
            yield running(variant, go, "tiny")


# === Claims ==========================================================================


_WORST = Ratio(_RANDOM, _ASCENDING, "cpu_ns")
_SHORT = Ratio(_MIXED, _ALONE, "passed_records_per_op")
CLAIMS = (
    Claim("M8b", "programs", _SHORT, AtMost(), (ISSUE_GO, TODAY_GO)),
    Claim("X10", "the-worst-case", _WORST, AtLeast(), (ISSUE_GO, TODAY_GO)),
)


# === The study =======================================================================

STUDY = Study(
    name="conjecture",
    chapter="07-why",
    question="Is the microbenchmark the worst case, and how long are the lists of a program?",
    cases=tuple(_conjecture()),
    document=TODAY_GO,
    claims=CLAIMS,
)
