"""What a wrapper of a C library pays for each way to free its objects: the table of prices.

Every wrapper is a Go object of its own, and is compared with one of its size that is freed
manually.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gccost.cases.versions import TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtLeast, AtMost

# The first page has the cases of the quick budget. A wrapper whose Close stops its cleanup stores
# 16 bytes for that, so it has 24 bytes at least; one with a handle of a slab has 16.
CASES = """
    tiny WrapperFree/bytes=8|24|64/go=today
    tiny WrapperGuardian|WrapperAdopted/bytes=24/forgotten=0|100/go=today
    tiny WrapperFinalizer/bytes=8|64/forgotten=0|100/go=today
    tiny WrapperCleanup/bytes=24|64/forgotten=0|100/go=today
    tiny WrapperLivesFree/bytes=8|24|64/live=100000/go=today
    tiny WrapperLivesGuardian|WrapperLivesAdopted/bytes=24/live=100000/go=today
    tiny WrapperLivesFinalizer/bytes=8|64/live=100000/go=today
    tiny WrapperLivesCleanup/bytes=24|64/live=100000/go=today
    standard WrapperGuardian/bytes=8|64/forgotten=0/go=today
    standard WrapperAdopted/bytes=16|64/forgotten=0/go=today
    standard WrapperFinalizer/bytes=24/forgotten=0|1|10|100/go=today
    standard WrapperGuardian|WrapperCleanup|WrapperAdopted/bytes=24/forgotten=1|10/go=today
    standard WrapperLivesFree|WrapperLivesGuardian/bytes=24/live=1000|1000000/go=today
    standard WrapperLivesCleanup|WrapperLivesAdopted/bytes=24/live=1000|1000000/go=today
    standard WrapperLivesFinalizer/bytes=24/live=1000|100000|1000000/go=today
    standard WrapperSharedFree|WrapperSharedGuardian/bytes=24/goroutines=1|2/go=today
    standard WrapperSharedFinalizer|WrapperSharedCleanup/bytes=24/goroutines=1|2/go=today
    standard WrapperSharedAdopted/bytes=24/goroutines=1|2/go=today
    standard WrapperBurstFree|WrapperBurstGuardian|WrapperBurstFinalizer/bytes=64/go=today
    standard WrapperBurstCleanup|WrapperBurstAdopted/bytes=64/go=today
    standard WrapperReusedFree|WrapperReusedGuardian/go=today
"""

_SETTLED = "settled_ns"
_ROWS = (
    ("Guardian", 24),
    ("Finalizer", 8),
    ("Finalizer", 64),
    ("Cleanup", 24),
    ("Cleanup", 64),
    ("Adopted", 24),
)


def _closed(way: str, size: int = 24, forgotten: int = 0) -> Ratio:
    """The ratio to a manual free of the same wrapper, if so many percent are forgotten."""
    case = f"Wrapper{way}/bytes={size}/forgotten={forgotten}"
    return Ratio(case, f"WrapperFree/bytes={size}", _SETTLED)


def _live(way: str) -> Ratio:
    """The same with 100,000 live, a random one of which is closed and made again."""
    case = "bytes=24/live=100000"
    return Ratio(f"WrapperLives{way}/{case}", f"WrapperLivesFree/{case}", _SETTLED)


def _claims() -> Iterator[Claim]:
    claim = partial(Claim, releases=(TODAY_GO,))
    table, net, forgotten = "the-price-of-each-way", "the-recycled-net", "forgotten=100"
    yield claim("X6e", table, _closed("Adopted", forgotten=100), AtMost())
    yield claim("X7a", table, _closed("Adopted"), AtMost())
    yield claim("X7b", table, _live("Adopted"), AtMost())
    yield claim("X8", table, _live("Cleanup"), AtLeast())
    finalizer, slabs = (
        f"WrapperFinalizer/bytes=64/{forgotten}",
        f"WrapperAdopted/bytes=24/{forgotten}",
    )
    yield claim("X16d", table, Ratio(finalizer, slabs, _SETTLED), AtLeast())
    yield claim("X20a", net, _closed("Guardian"), AtMost())
    yield claim("X20b", net, _live("Guardian"), AtMost())
    reused = Ratio("WrapperReusedGuardian", "WrapperReusedFree", _SETTLED)
    yield claim("X20c", net, reused, AtMost())
    burst = Ratio("WrapperBurstGuardian/bytes=64", "WrapperBurstFinalizer/bytes=64", _SETTLED)
    yield claim("X20d", net, burst, AtLeast())


STUDY = Study(
    name="wrappers",
    chapter="08-instead",
    question="What does a wrapper of a C library pay?",
    cases=CASES,
    document=TODAY_GO,
    claims=tuple(_claims()),
    figures=tuple(_closed(way, size) for way, size in _ROWS),
    metric=_SETTLED,
)
