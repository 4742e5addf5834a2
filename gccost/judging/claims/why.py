"""Why, and without the walk: M7, M8, X1 to X5 and X10."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Quantity, Saved, Steepness, Straightness
from gccost.judging.claims.rules import AtLeast, AtMost, Between, Rule
from gccost.measuring.experiments.base import CLEANUP, FREE, Ratio
from gccost.measuring.experiments.runtime import BEFORE_GO, SMALLEST, patched
from gccost.measuring.experiments.siebenmann import sized
from gccost.measuring.experiments.why import (
    APART,
    CACHED,
    MIXED,
    POOL,
    SMALL,
    attach,
    looped,
    program,
    scattered,
)
from gccost.measuring.toolchains import DOCUMENT_GO, ISSUE_GO, TODAY_GO

Declared = tuple[str, str, Quantity, Rule, Quantity | None, tuple[str, ...]]


def _stock() -> Iterator[Declared]:
    old, new = (DOCUMENT_GO, TODAY_GO), (ISSUE_GO, TODAY_GO)
    # The microbenchmark's call, whose handles come in ascending order, against the same
    # call at random over a million live handles.
    worst = Ratio(scattered("ScatteredCleanup"), attach("AttachCleanup"), "cpu-ns/op")
    mixed = Ratio(program("Lists", POOL, MIXED), program("Lists"), "passed-records/op")
    yield "M8a", "the-worst-case", worst, AtMost(), None, new
    yield "M8b", "programs", mixed, AtMost(), None, new
    ascending = attach("AttachFinalizer")
    yield "X1a", "one-call-by-its-place", Straightness(ascending), AtLeast(), None, old
    # The records of a span of 8-byte objects take 48 KB, which is all of a large first-level
    # cache or more than that: in random order the last ones are dear for that reason.
    (shuffled, fuller), (descending, emptier) = (
        [
            Steepness(
                attach("AttachFinalizer", order, bytes_), attach("AttachFinalizer", bytes_=bytes_)
            )
            for bytes_ in (CACHED, SMALL)
        ]
        for order in ("shuffled", "descending")
    )
    yield "X1b", "the-order", shuffled, Between(0.4, 0.6), fuller, old
    yield "X1c", "the-order", descending, AtMost(), emptier, old
    cleanup, finalizer = (
        attach(f"Attach{what}", bytes_=APART) for what in ("Cleanup", "Finalizer")
    )
    alone = Ratio(cleanup, finalizer, "call-ns")
    looping = Ratio(looped("LoopCleanup", APART), looped("LoopFinalizer", APART), "cpu-ns/op")
    yield "X5", "half-the-price", alone, AtLeast(), looping, new
    yield "X10", "the-worst-case", worst, AtLeast(), None, new


def _patched() -> Iterator[Declared]:
    releases = (BEFORE_GO, TODAY_GO)
    # Judged by the wall, as the documents measured; the CPU time of all threads beside.
    price, busy = (Ratio(patched(CLEANUP), CLEANUP, clock) for clock in ("ns/op", "cpu-ns/op"))
    yield "M7", "without-the-walk", price, AtMost(), busy, releases
    for name, benchmark, order, against in (
        ("X2a", "AttachCleanup", "ascending", "ascending"),
        ("X2b", "AttachCleanup", "shuffled", "shuffled"),
        # Descending order has no slope on stock either: it is held to ascending order's.
        ("X2c", "AttachCleanup", "descending", "ascending"),
        ("X2d", "Stop", "shuffled", "shuffled"),
    ):
        over, under = patched(attach(benchmark, order)), attach(benchmark, against)
        yield name, "without-the-walk", Steepness(over, under), AtMost(), None, releases
    saved, spared = (
        Saved(CLEANUP, patched(CLEANUP), FREE, clock) for clock in ("ns/op", "cpu-ns/op")
    )
    yield "X3", "what-the-walk-costs", saved, AtLeast(), spared, releases
    small = sized("Finalize", SMALLEST)
    cheaper, lighter = (Ratio(small, patched(small), clock) for clock in ("ns/op", "cpu-ns/op"))
    yield "X4", "what-the-walk-costs", cheaper, AtLeast(), lighter, releases


def _claims() -> Iterator[Claim]:
    for experiment, declared in (("why", _stock()), ("runtime", _patched())):
        for name, anchor, quantity, rule, beside, releases in declared:
            yield Claim(name, experiment, anchor, quantity, rule, beside, releases)


CLAIMS: tuple[Claim, ...] = tuple(_claims())
