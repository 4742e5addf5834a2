"""What to do instead: L6, X6 to X8."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Amount, Quantity
from gccost.judging.claims.rules import AtLeast, AtMost, Rule
from gccost.measuring.experiments.base import AUTO, FREE, Arm, Ratio
from gccost.measuring.experiments.remedies import SURVIVORS, living, slabs
from gccost.measuring.toolchains import TODAY_GO


def _claims() -> Iterator[Claim]:
    def settled(over: Arm) -> tuple[Ratio, Ratio]:
        """An arm against freeing by hand, the rest collected: by the wall and in CPU time."""
        wall, cpu = (Ratio(over, FREE, f"settled-{clock}/op") for clock in ("ns", "cpu-ns"))
        return wall, cpu

    def closing(over: Arm) -> tuple[Ratio, Ratio]:
        """The same in the loop alone, for what is closed by hand there."""
        return Ratio(over, FREE), Ratio(over, FREE, "cpu-ns/op")

    individual, closed = settled(Arm("LastFirst")), settled(slabs("SlabClose"))
    slab, live = settled(slabs("Slab")), closing(living("LiveSlab"))
    stopped = closing(living("LiveCleanup"))
    better = Ratio(slabs("Slab"), AUTO, "settled-ns/op")
    held = Amount(SURVIVORS, "c-held/survivor")
    claims: tuple[tuple[str, str, Quantity, Rule, Quantity | None], ...] = (
        ("L6", "the-cost", better, AtLeast(), None),
        ("X6a", "the-cost", slab[0], AtMost(), slab[1]),
        ("X6b", "the-price-in-memory", held, AtMost(), None),
        ("X6c", "the-cost", individual[0], AtMost(), individual[1]),
        ("X7a", "closed-by-hand", closed[0], AtMost(), closed[1]),
        ("X7b", "closed-by-hand", live[0], AtMost(), live[1]),
        ("X8", "closed-by-hand", stopped[0], AtLeast(), stopped[1]),
    )
    for name, anchor, quantity, rule, beside in claims:
        yield Claim(name, "remedies", anchor, quantity, rule, beside, (TODAY_GO,))


CLAIMS: tuple[Claim, ...] = tuple(_claims())
