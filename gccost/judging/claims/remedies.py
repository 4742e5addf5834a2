"""What to do instead: L6, X6 to X8."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Amount, Worst
from gccost.judging.claims.rules import AtLeast, AtMost, Rule
from gccost.measuring.experiments.base import (
    AUTO,
    FREE,
    GOROUTINES,
    Arm,
    Quantity,
    Ratio,
    shared,
)
from gccost.measuring.experiments.remedies import MANUAL, SURVIVORS, living, slabs
from gccost.measuring.toolchains import TODAY_GO


def _claims() -> Iterator[Claim]:
    def settled(over: Arm, under: Arm = FREE) -> Ratio:
        """An arm with the collecting of the rest, against a manual free."""
        return Ratio(over, under, "settled-ns/op")

    slab, cost, closed = slabs("Slab"), "the-cost", "closed-by-hand"
    held = Amount(SURVIVORS, "c-held/survivor")
    live = Ratio(living("LiveSlab"), living("LiveManual"))
    # With twice as many goroutines as CPUs at most, as the cases are measured.
    among = Worst(tuple(Ratio(shared("Slab", n), shared("Slab", 1)) for n in GOROUTINES[1:]))
    claims: tuple[tuple[str, str, Quantity, Rule], ...] = (
        ("L6", cost, settled(slab, AUTO), AtLeast()),
        ("X6a", cost, settled(slab), AtMost()),
        ("X6b", "the-price-in-memory", held, AtMost(margin=1.0)),
        ("X6c", cost, settled(Arm("LastFirst")), AtMost()),
        ("X6d", cost, settled(slabs("Slab", 256), Arm("Batch")), AtMost()),
        ("X6e", cost, settled(slabs("Adopted"), MANUAL), AtMost()),
        ("X7a", closed, settled(slabs("SlabClose")), AtMost()),
        ("X7b", closed, live, AtMost()),
        ("X7c", "from-many-goroutines", among, AtMost()),
        ("X8", closed, Ratio(living("LiveCleanup"), living("LiveManual")), AtLeast()),
    )
    for name, anchor, quantity, rule in claims:
        yield Claim(name, "remedies", anchor, quantity, rule, (TODAY_GO,))


CLAIMS: tuple[Claim, ...] = tuple(_claims())
