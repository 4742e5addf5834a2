"""What one finalizer or cleanup that blocks stops, and how late forgotten objects are freed.

Its claims are about counts of objects, their memory, and delays of milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gccost.cases.versions import TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Ratio
from gccost.judging.rules import AtLeast, AtMost

# `blocks` is what blocks while objects of a way wait: for slabs also the Free of their own pool, or
# of another one. All programs but that of BlockedIdle go on making objects. `rate` is how many
# objects a second are forgotten; for each, the program allocates `garbage` bytes besides. Large
# objects have 7 KiB. `arenas` is how many heaps for threads glibc may have.
CASES = """
    quick BlockedFinalizer|BlockedCleanup/blocks=finalizer|cleanup/gomaxprocs=2|8/go=today
    quick BlockedGuardian|BlockedAdopted/blocks=finalizer|cleanup/gomaxprocs=2|8/go=today
    quick BlockedFinalizer|BlockedCleanup/blocks=nothing/gomaxprocs=2/go=today
    quick BlockedGuardian|BlockedAdopted/blocks=nothing/gomaxprocs=2/go=today
    quick BlockedCleanup/blocks=cleanup/gomaxprocs=4/go=today
    quick BlockedIdle/blocks=cleanup/gomaxprocs=8/go=today
    quick BlockedAdopted/blocks=free|elsewhere/gomaxprocs=2/go=today
    standard LateFinalizer/bytes=8|64/rate=1000|100000/garbage=4096/go=today
    standard LateFinalizer/bytes=8|64/rate=100000/garbage=0/go=today
    standard LateCleanup|LateGuardian|LateAdopted/rate=1000|100000/garbage=4096/go=today
    standard LateCleanup|LateGuardian|LateAdopted/rate=100000/garbage=0/go=today
    standard LargeFree|LargeBallast|LargeAdopted|LargeUnseen/go=today
    standard LargeFinalizer/bytes=8|64/go=today
    standard LargeGuardian|LargeCleanup|LargeLate/go=today
    standard LargeLivesFree|LargeLivesFinalizer|LargeLivesAdopted|LargeLivesAtOnce/go=today
    standard LargeFree|LargeBallast|LargeAdopted/arenas=1/go=today
    standard LargeFinalizer/bytes=64/arenas=1/go=today
"""


def _freed(case: str) -> Amount:
    """The share of forgotten objects that is freed while one blocks."""
    return Amount(f"Blocked{case}", "freed_share")


_ALONE = "rate=100000/garbage=0"
_SMALL = f"LateFinalizer/bytes=8/{_ALONE}"
_LARGER = f"LateFinalizer/bytes=64/{_ALONE}"
_WAIT = partial(Ratio, metric="delay_p50_ms")
_PEAK = partial(Ratio, denominator="LargeFinalizer/bytes=64", metric="peak_rss_bytes")
_BLOCKED, _LATE, _LARGE = "one-that-blocks", "how-late", "objects-of-kilobytes"
# The share is that of a count, without noise that is proportional to it.
_NONE, _ALL = AtMost(margin=1.0), AtLeast(margin=1.0)


def _claims() -> Iterator[Claim]:
    claim = partial(Claim, releases=(TODAY_GO,))
    yield claim("X21a", _BLOCKED, _freed("Finalizer/blocks=finalizer/gomaxprocs=2"), _NONE)
    yield claim("X21b", _BLOCKED, _freed("Cleanup/blocks=cleanup/gomaxprocs=4"), _NONE)
    yield claim("X21c", _BLOCKED, _freed("Cleanup/blocks=cleanup/gomaxprocs=8"), _ALL)
    yield claim("X28a", _LATE, _WAIT(_SMALL, _LARGER), AtLeast())
    yield claim("X28b", _LATE, _WAIT(f"LateAdopted/{_ALONE}", _LARGER), AtMost())
    yield claim("X29a", _LARGE, _PEAK("LargeBallast"), AtMost())
    yield claim("X29b", _LARGE, _PEAK("LargeAdopted"), AtMost())


STUDY = Study(
    name="late",
    report="standard",
    chapter="08b-late",
    question="How late are forgotten objects freed, and what stops it?",
    cases=CASES,
    document=TODAY_GO,
    claims=tuple(_claims()),
    metric="delay_p50_ms",
)
