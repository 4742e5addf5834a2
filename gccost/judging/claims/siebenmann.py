"""Siebenmann: S1 to S8."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims.base import Claim, precise
from gccost.judging.claims.quantities import Amount, Difference, Dip, Quantity, Share
from gccost.judging.claims.rules import About, AtLeast, Banded, Exactly, Rule, UShaped
from gccost.judging.claims.stacks import COLLECTING, FINALIZING, LOCKING, SETTING
from gccost.measuring.experiments.base import AUTO, FREE, Ratio, profiled
from gccost.measuring.experiments.siebenmann import SIZES, sized, until_free


def _claims() -> Iterator[Claim]:
    claims: tuple[tuple[str, str, Quantity, Rule, Quantity | None], ...] = (
        (
            "S1",
            "the-factor-of-ten",
            Ratio(AUTO, FREE),
            Banded(),
            Ratio(precise("AllocateAuto"), precise("AllocateFree"), "cpu-ns/op"),
        ),
        (
            "S2",
            "heap-or-stack",
            Difference(Ratio(AUTO, FREE, "allocs/op")),
            Exactly(),
            None,
        ),
        *(
            (
                name,
                "where-the-time-goes",
                Share(profiled("EmptyFinalizer"), functions),
                rule,
                Share(profiled("EmptyFinalizer", "precise"), functions),
            )
            for name, functions, rule in (
                ("S3", SETTING, AtLeast()),
                ("S4", COLLECTING, About()),
                ("S5", FINALIZING, About()),
                ("S6", LOCKING, About()),
            )
        ),
        (
            "S7",
            "two-cycles-or-one",
            Amount(until_free("Finalizer"), "gc-cycles-to-free"),
            Exactly(),
            None,
        ),
        (
            "S8",
            "how-the-size-matters",
            Dip(tuple(Ratio(sized("Finalize", w), sized("Allocate", w)) for w in SIZES)),
            UShaped(),
            None,
        ),
    )
    for name, anchor, quantity, rule, beside in claims:
        yield Claim(name, "siebenmann", anchor, quantity, rule, beside)


CLAIMS: tuple[Claim, ...] = tuple(_claims())
