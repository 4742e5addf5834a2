"""Why, and without the walk: M7, M8, X1 to X5 and X10."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Saved, SlopeRatio, Straightness
from gccost.judging.claims.rules import AtLeast, AtMost, Between, Rule
from gccost.measuring.experiments.base import CLEANUP, FREE, Quantity, Ratio
from gccost.measuring.experiments.runtime import SMALLEST, patched
from gccost.measuring.experiments.siebenmann import sized
from gccost.measuring.experiments.why import (
    APART,
    CACHED,
    MIXED,
    POOL,
    attach,
    program,
    scattered,
)
from gccost.measuring.toolchains import DOCUMENT_GO, ISSUE_GO, TODAY_GO

Declared = tuple[str, str, Quantity, Rule, tuple[str, ...]]


def _stock() -> Iterator[Declared]:
    old, new = (DOCUMENT_GO, TODAY_GO), (ISSUE_GO, TODAY_GO)
    # The microbenchmark's call, whose handles come in ascending order, against the same
    # call at random over a million live handles.
    worst = Ratio(scattered("ScatteredCleanup"), attach("AttachCleanup"), "cpu-ns/op")
    mixed = Ratio(program("Lists", POOL, MIXED), program("Lists"), "passed-records/op")
    yield "M8a", "the-worst-case", worst, AtMost(), new
    yield "M8b", "programs", mixed, AtMost(), new
    ascending = attach("AttachFinalizer")
    yield "X1a", "one-call-by-its-place", Straightness(ascending), AtLeast(margin=1.0), old
    # The records of a span of 8-byte objects take 48 KB, which is all of a large first-level
    # cache or more than that: in random order the last ones are dear for that reason.
    shuffled, descending = (
        SlopeRatio(
            attach("AttachFinalizer", order, CACHED), attach("AttachFinalizer", bytes_=CACHED)
        )
        for order in ("shuffled", "descending")
    )
    yield "X1b", "the-order", shuffled, Between(low=0.4, high=0.6), old
    yield "X1c", "the-order", descending, AtMost(), old
    cleanup, finalizer = (
        attach(f"Attach{what}", bytes_=APART) for what in ("Cleanup", "Finalizer")
    )
    yield "X5", "half-the-price", Ratio(cleanup, finalizer, "call-ns"), AtLeast(), new
    yield "X10", "the-worst-case", worst, AtLeast(), new


def _patched() -> Iterator[Declared]:
    releases = (TODAY_GO,)
    yield "M7", "without-the-walk", Ratio(patched(CLEANUP), CLEANUP), AtMost(), releases
    for name, benchmark, order, against in (
        ("X2a", "AttachCleanup", "ascending", "ascending"),
        ("X2b", "AttachCleanup", "shuffled", "shuffled"),
        # Descending order has no slope on stock either: it is compared with ascending order's.
        ("X2c", "AttachCleanup", "descending", "ascending"),
        ("X2d", "Stop", "shuffled", "shuffled"),
    ):
        over, under = patched(attach(benchmark, order)), attach(benchmark, against)
        yield name, "without-the-walk", SlopeRatio(over, under), AtMost(), releases
    saved, small = Saved(CLEANUP, patched(CLEANUP), FREE), sized("Finalize", SMALLEST)
    yield "X3", "what-the-walk-costs", saved, AtLeast(), releases
    yield "X4", "what-the-walk-costs", Ratio(small, patched(small)), AtLeast(), releases


def _claims() -> Iterator[Claim]:
    for experiment, declared in (("why", _stock()), ("runtime", _patched())):
        for name, anchor, quantity, rule, releases in declared:
            yield Claim(name, experiment, anchor, quantity, rule, releases)


CLAIMS: tuple[Claim, ...] = tuple(_claims())
