"""Cloudflare: signing on many goroutines, GOGC, and what a tuned GC gains today."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.measuring.experiments.base import Arm, Case, Experiment
from gccost.measuring.toolchains import CLOUDFLARE_GO, TODAY_GO

DOCUMENT_CPUS = 48  # of its machine: 24 cores with two threads each
LEAST_CPUS = 16  # with fewer what it says of many cores cannot be tested
BEST_GOGC = "11300"  # the best of its sweep
RELEASES = (CLOUDFLARE_GO, TODAY_GO)

# What one signature leaves on the newest release: with the GC off that is kept.
_SIGNATURE = 7_000
# A sample of these takes half a second to a second on one CPU.
_SIGNATURES = 12_000
_SERVED = 30_000
# As many as a sample of the document's machine makes in half a second or more.
_SIGNATURES_AT_48 = 300_000

# --- The document's own sweep: as many Ps as CPUs --------------------------------

GOROUTINES = tuple(range(1, 97))
_QUICK_GOROUTINES = frozenset({1, 2, 4, 8, 12, 17, 24, 32, 48, 64, 96})
_STANDARD_GOROUTINES = frozenset({*range(1, 5), *range(6, 97, 2)}) | _QUICK_GOROUTINES


def signing(goroutines: int, gogc: str = "100", profile: str = "") -> Arm:
    """Signing on so many goroutines and all CPUs."""
    return Arm("Sign", gogc, profile=profile, sub=(("goroutines", str(goroutines)),))


# --- The mechanism on any number of CPUs: Ps that take turns on one --------------

PROCS = (1, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 64, 96)
_QUICK_PROCS = frozenset({1, 8, 16, 24, 32, 48})
MOST_PROCS = 48
# Every one with every one, for the reader to choose from.
GRID_PROCS = (1, 16, 32, MOST_PROCS)
GRID_GOGC = ("100", "200", "400", "800", "off")


def turns(procs: int, gogc: str = "100", profile: str = "") -> Arm:
    """Signing on so many Ps, a goroutine each, that take turns on one CPU."""
    sub = (("goroutines", str(procs)),)
    return Arm("SignInTurns", gogc, "precise", "", profile, procs=str(procs), sub=sub)


# --- GOGC, in steps that the budget sets -----------------------------------------

_QUICK_GOGC = (100, 200, 400, 800)
_STANDARD_GOGC = (300, 600, 1200, 1600, 2400, 4800, 8000, 11300, 16000, 20000)
_EVERY_GOGC = range(100, 20_001, 100)
GOGCS = (*(str(gogc) for gogc in _EVERY_GOGC), "off")
# What the document prints a figure for.
_PRINTED_GOGC = frozenset({"100", "2400", "4800", BEST_GOGC, "off"})


def _gogc_since(gogc: str) -> str:
    if gogc == "off" or int(gogc) in _QUICK_GOGC:
        return "tiny"
    return "standard" if int(gogc) in _STANDARD_GOGC else "thorough"


# --- What to take home: the ways to give the GC less to do -----------------------

CONTAINER_MIB = 64
SERVE = Arm("Serve", setting="precise")
_GOALS = (16, 32, 64, 128)


def with_limit(mib: int) -> Arm:
    """GOMEMLIMIT alone: GOGC is off."""
    return replace(SERVE, gogc="off", limit=f"{mib}MiB")


def aiming(how: str, mib: int) -> Arm:
    """A "Ballast" or a "Tuner" that aims at a heap of so many MiB."""
    return replace(SERVE, benchmark=f"Serve{how}", sub=(("mib", str(mib)),))


# The rule of automemlimit in one line: GOMEMLIMIT is nine tenths of the container's
# memory, and GOGC stays as it is. The library itself is not needed for that.
AUTOMEMLIMIT = replace(SERVE, limit=f"{CONTAINER_MIB * 2**20 * 9 // 10}B")
FIXED = tuple(
    replace(SERVE, gogc=gogc) for gogc in ("50", "100", "200", "400", "800", "1600", "off")
)
LIMITED = tuple(with_limit(mib) for mib in _GOALS)
BALLASTS = tuple(aiming("Ballast", mib) for mib in _GOALS)
TUNERS = tuple(aiming("Tuner", mib) for mib in _GOALS)
WAYS = (*FIXED, *LIMITED, *BALLASTS, *TUNERS, AUTOMEMLIMIT)
_LATER = frozenset({FIXED[0], FIXED[5], LIMITED[0], BALLASTS[0], TUNERS[0]})
_SERVED_BYTES = 19_000  # by one operation


def _sweep(release: str) -> Iterator[Case]:
    for goroutines in GOROUTINES:
        since = "standard" if goroutines in _STANDARD_GOROUTINES else "thorough"
        since = "tiny" if goroutines in _QUICK_GOROUTINES else since
        n = _SIGNATURES * max(1, goroutines // 2)
        for gogc in ("100", BEST_GOGC):
            arm, cpus = signing(goroutines, gogc), min((goroutines + 1) // 2, LEAST_CPUS)
            yield Case("signing", arm, release, n, since, cpus, traced=True)
    for gogc in GOGCS:
        since = "tiny" if gogc in _PRINTED_GOGC else _gogc_since(gogc)
        arm, kept = signing(DOCUMENT_CPUS, gogc), _SIGNATURE if gogc == "off" else 0
        if gogc not in ("100", BEST_GOGC):  # measured above
            yield Case(*("signing", arm, release, _SIGNATURES_AT_48, since, LEAST_CPUS, kept, True))
    for gogc in ("100", BEST_GOGC):
        arm = signing(DOCUMENT_CPUS, gogc, profile="cpu")
        yield Case("signing", arm, release, _SIGNATURES_AT_48, cpus=LEAST_CPUS)


def _turns(release: str) -> Iterator[Case]:
    def case(procs: int, gogc: str, since: str) -> Case:
        arm, kept = turns(procs, gogc), _SIGNATURE if gogc == "off" else 0
        return Case("signing", arm, release, _SIGNATURES, since, kept=kept, traced=True)

    for procs in PROCS:
        yield case(procs, "100", "tiny" if procs in _QUICK_PROCS else "standard")
    for gogc in GOGCS:
        if gogc != "100":  # measured above
            yield case(MOST_PROCS, gogc, _gogc_since(gogc))
    for procs in GRID_PROCS:
        for gogc in GRID_GOGC:
            if gogc != "100" and procs != MOST_PROCS:  # measured above
                yield case(procs, gogc, "tiny" if (procs, gogc) == (1, "400") else "standard")
    for gogc in ("100", "400"):
        arm = turns(MOST_PROCS, gogc, profile="cpu")
        yield Case("signing", arm, release, _SIGNATURES)


def _cases() -> Iterator[Case]:
    for release in RELEASES:
        yield from _sweep(release)
        yield from _turns(release)
    for arm in WAYS:
        since = "standard" if arm in _LATER else "tiny"
        kept = _SERVED_BYTES if arm.gogc == "off" and not arm.limit else 0
        yield Case("churn", arm, TODAY_GO, _SERVED, since, kept=kept, traced=True)
    twin = replace(turns(MOST_PROCS), twin="relinked")
    yield Case("signing", twin, TODAY_GO, _SIGNATURES, traced=True)


EXPERIMENT = Experiment(
    name="cloudflare",
    chapter="04-cloudflare",
    question="Does signing scale, and what does GOGC do for it?",
    cases=tuple(_cases()),
    document=CLOUDFLARE_GO,
)
