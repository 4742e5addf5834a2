"""Cloudflare: signing on many goroutines, and the effect of GOGC."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from functools import partial

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, CyclesWithin, Ratio, SavedOverPrinted, Share
from gccost.judging.rules import ABOUT, About, AtLeast, Between, Effect, Shown
from gccost.judging.stacks import GC_AND_LOCKS
from gccost.measuring.cases import Case, Variant, distinct, each
from gccost.measuring.toolchains import CLOUDFLARE_GO, TODAY_GO

# === Cases ===========================================================================


DOCUMENT_CPUS = 48  # the document's machine: 24 cores with two threads each
LEAST_CPUS = 16  # the fewest that can test the claims about many cores
BEST_GOGC = "11300"  # the best value of the document's sweep
RELEASES = (CLOUDFLARE_GO, TODAY_GO)

# Bytes of garbage per signature on the newest release; with the GC off they stay allocated.
_SIGNATURE = 7_000
# Operations of a sample, which takes a quarter to half a second on one CPU.
SIGNATURES = 6_000
# The same for half a second or more on the document's machine.
_PROFILED = 12 * SIGNATURES  # at least 500 stacks in the profiles of a case
_SIGNATURES_AT_48 = 300_000

# --- The document's sweep: as many Ps as CPUs ------------------------------------

GOROUTINES = tuple(range(1, 97))
_QUICK_GOROUTINES = (1, 2, 4, 8, 12, 17, 24, 32, 48, 64, 96)
_STANDARD_GOROUTINES = (*range(1, 5), *range(6, 97, 2))


def signing(goroutines: int, gogc: str = "100", profile: str = "") -> Variant:
    """Signing on this many goroutines and all CPUs."""
    return Variant("Sign", gogc, profile=profile).keyed(goroutines=goroutines)


# --- The mechanism on any number of CPUs: Ps taking turns on one CPU -------------

PROCS = (1, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 64, 96)
_QUICK_PROCS = (1, 8, 16, 24, 32, 48)
MOST_PROCS = 48


def turns(procs: int, gogc: str = "100", profile: str = "") -> Variant:
    """Signing on this many Ps, one goroutine each, that take turns on one CPU."""
    variant = Variant("SignInTurns", gogc, "precise", "", profile, str(procs))
    return variant.keyed(goroutines=procs)


# --- GOGC, in steps set by the budget --------------------------------------------

_QUICK_GOGC = ("100", "200", "400", "800", "off")
_STANDARD_GOGC = (
    *("300", "600", "1200", "1600", "2400", "4800", "8000", "11300", "16000", "20000"),
)
GOGCS = (*map(str, range(100, 20_001, 100)), "off")
# The document publishes figures for these.
_PRINTED_GOGC = ("100", "2400", "4800", BEST_GOGC, "off")


def _tier(value: object, quick: Container[object], standard: Container[object]) -> str:
    """The smallest budget that measures a value of a sweep."""
    return "tiny" if value in quick else "standard" if value in standard else "thorough"


def _sweep(go: str) -> Iterator[Case]:
    for goroutines in GOROUTINES:
        min_budget = _tier(goroutines, _QUICK_GOROUTINES, _STANDARD_GOROUTINES)
        n = SIGNATURES * max(1, goroutines // 2)
        for gogc in ("100", BEST_GOGC):
            variant, cpus = signing(goroutines, gogc), min((goroutines + 1) // 2, LEAST_CPUS)
            yield Case("signing", variant, go, n, min_budget, cpus, traced=True)
    for gogc in GOGCS:
        min_budget = _tier(gogc, (*_PRINTED_GOGC, *_QUICK_GOGC), _STANDARD_GOGC)
        variant, retained = signing(DOCUMENT_CPUS, gogc), _SIGNATURE if gogc == "off" else 0
        case = Case("signing", variant, go, _SIGNATURES_AT_48, min_budget, LEAST_CPUS)
        yield replace(case, retained_bytes=retained, traced=True)
    for gogc in ("100", BEST_GOGC):
        variant = signing(DOCUMENT_CPUS, gogc, profile="cpu")
        yield Case("signing", variant, go, _SIGNATURES_AT_48, cpus=LEAST_CPUS)


def _turns(go: str) -> Iterator[Case]:
    def case(procs: int, gogc: str, min_budget: str) -> Case:
        case = Case("signing", turns(procs, gogc), go, SIGNATURES, min_budget, traced=True)
        return replace(case, retained_bytes=_SIGNATURE if gogc == "off" else 0)

    for procs in PROCS:
        yield case(procs, "100", "tiny" if procs in _QUICK_PROCS else "standard")
    for gogc in GOGCS:
        yield case(MOST_PROCS, gogc, _tier(gogc, _QUICK_GOGC, _STANDARD_GOGC))
    variants = [turns(MOST_PROCS, gogc, profile="cpu") for gogc in ("100", "400")]
    yield from each("signing", variants, go, _PROFILED, "standard")


def _cases() -> Iterator[Case]:
    for go in RELEASES:
        yield from _sweep(go)
        yield from _turns(go)
    control = replace(turns(MOST_PROCS), control="relinked")
    yield Case("signing", control, TODAY_GO, SIGNATURES, traced=True)


# === Claims ==========================================================================


# A ratio of throughputs is the inverse ratio of times per operation.

# Sizes (MB) in the lines of gctrace that the document prints.
_LIVE = ("live_mb", 0, 1)
_HEAP = (("start_mb", 4, 4), _LIVE, ("goal_mb", 5, 6))


def _any_machine() -> Iterator[Claim]:
    """The document's claims that need no 16 CPUs, and what is left of others on one."""
    claim, heap = partial(Claim, releases=RELEASES), "the-heap"
    many, one, off = turns(MOST_PROCS), turns(1), turns(MOST_PROCS, "off")
    most = Between(low=0.5, margin=1.0)
    few = (signing(1), signing(2), many)
    profile = Share(turns(MOST_PROCS, profile="cpu"), GC_AND_LOCKS)
    yield claim("C4a", heap, CyclesWithin((many,), _HEAP), most)
    yield claim("C4b", "a-cycle-every-millisecond", Amount(many, "gc_cycle_op"), About())
    yield claim("C9", "does-it-scale", Ratio(signing(1), signing(2)), Effect(), cores=2)
    yield claim("C10", "with-the-gc-off", SavedOverPrinted(many, off), Between(low=3.0))
    yield claim("C11", heap, CyclesWithin(few, (_LIVE,)), most)
    left = Shown("what 48 Ps that take turns on one CPU show: such Ps do not wait for locks")
    yield claim("X22", "the-profile-of-the-collapse", profile, left)
    yield claim("X23", "with-the-gc-off", Ratio(many, off, "cpu_ns"), left)
    for name, gogc in (("X24a", "2400"), ("X24b", BEST_GOGC)):
        larger = Ratio(off, turns(MOST_PROCS, gogc), "cpu_ns")
        yield claim(name, "with-the-gc-off", larger, left)
    yield claim("X25", "48-ps-on-one-cpu", Ratio(many, one, "cpu_ns"), left)


def _claims() -> tuple[Claim, ...]:
    claim = partial(Claim, releases=RELEASES, cpus=LEAST_CPUS)
    all_cpus, half = signing(DOCUMENT_CPUS), signing(DOCUMENT_CPUS // 2, BEST_GOGC)
    off, best = signing(DOCUMENT_CPUS, "off"), signing(DOCUMENT_CPUS, BEST_GOGC)
    profile = Share(signing(DOCUMENT_CPUS, profile="cpu"), GC_AND_LOCKS)
    about = AtLeast(within=ABOUT)
    return (
        claim("C1", "does-it-scale", Ratio(all_cpus, signing(17)), Effect()),
        claim("C2", "does-it-scale", Ratio(all_cpus, signing(1), "cpu_ns"), about),
        claim("C3", "the-profile-of-the-collapse", profile, about),
        claim("C4", "a-cycle-every-millisecond", Amount(all_cpus, "gc_cycles_per_s"), about),
        claim("C5", "with-the-gc-off", Ratio(all_cpus, off), Effect()),
        claim("C6", "with-the-gc-off", Ratio(off, signing(DOCUMENT_CPUS, "2400")), Effect()),
        claim("C7", "with-the-gc-off", Ratio(signing(1), best), Effect()),
        claim("C8", "does-it-scale", Ratio(half, best), AtLeast()),
        *_any_machine(),
    )


# === The study =======================================================================

STUDY = Study(
    name="cloudflare",
    chapter="04-cloudflare",
    question="Does signing scale, and what does GOGC do for it?",
    cases=distinct(_cases()),
    document=CLOUDFLARE_GO,
    claims=_claims(),
    metric="cpu_ns",
)
