"""Release by release: the ways to free C memory, and their parts, on every Go release."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims import Study
from gccost.measuring.cases import AS_PUBLISHED, RECORD, Case, Variant
from gccost.measuring.toolchains import CLEANUP_GO, GO_RELEASES, number
from gccost.studies.cloudflare import MOST_PROCS, SIGNATURES, turns


def sized(what: str, words: int) -> Variant:
    """A variant of an object of `words` pointer words: "Allocate", or "Finalize"."""
    return Variant(f"Across{what}").keyed(words=words)


FREE, CALL, MALLOC, HEAP_FREE, FINALIZER, CLEANUP, SLAB = (
    Variant(f"Across{what}")
    for what in ("Free", "Call", "Malloc", "HeapFree", "Finalizer", "Cleanup", "Slab")
)
ATTACH = Variant("AcrossAttach", gogc="off", setting="precise")
LIVE = Variant("AcrossLive", setting="precise")
SMALLEST, LARGEST = 1, 512  # pointer words: the ends of sean's table
_SIGNED = [turns(procs, gogc) for procs in (1, MOST_PROCS) for gogc in ("100", "400")]
# The rounds that an interval of less than 5 % needs.
_ROUNDS = 8
_OPERATIONS = {
    **dict.fromkeys((FREE, CALL, MALLOC), 500_000),
    **dict.fromkeys((HEAP_FREE, FINALIZER, CLEANUP, SLAB), AS_PUBLISHED),
    **dict.fromkeys((sized("Allocate", SMALLEST), sized("Finalize", SMALLEST)), AS_PUBLISHED),
    **dict.fromkeys((sized("Allocate", LARGEST), sized("Finalize", LARGEST)), 100_000),
    ATTACH: 100_000,
    LIVE: 200_000,
}


def _cases() -> Iterator[Case]:
    for go in GO_RELEASES:
        for variant, n in _OPERATIONS.items():
            if variant != CLEANUP or number(go) >= number(CLEANUP_GO):
                retained = RECORD if variant.gogc == "off" else 0
                yield Case("across", variant, go, n, retained_bytes=retained, rounds=_ROUNDS)
        for variant in _SIGNED:
            yield Case("signing", variant, go, SIGNATURES, traced=True, rounds=_ROUNDS)


STUDY = Study(
    name="releases",
    chapter="06-release-by-release",
    question="Which release changed what cleanup costs?",
    cases=tuple(_cases()),
    on_request=True,
)
