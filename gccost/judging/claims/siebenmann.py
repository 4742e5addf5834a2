"""Siebenmann: S1 to S8."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Amount, Difference, Dipping, Share
from gccost.judging.claims.rules import About, AtLeast, Effect, Rule, UShaped, WithinTolerance
from gccost.judging.claims.stacks import COLLECTING, FINALIZING, LOCKING, SETTING
from gccost.measuring.experiments.base import AUTO, FREE, Quantity, Ratio, profiled
from gccost.measuring.experiments.siebenmann import SIZES, sized, until_free


def _claims() -> Iterator[Claim]:
    profile = profiled("EmptyFinalizer")
    where = "where-the-time-goes"
    curve = tuple(Ratio(sized("Finalize", w), sized("Allocate", w)) for w in SIZES)
    claims: tuple[tuple[str, str, Quantity, Rule], ...] = (
        ("S1", "the-factor-of-ten", Ratio(AUTO, FREE), Effect()),
        ("S2", "heap-or-stack", Difference(Ratio(AUTO, FREE, "allocs/op")), WithinTolerance()),
        ("S3", where, Share(profile, SETTING), AtLeast()),
        ("S4", where, Share(profile, COLLECTING), About()),
        ("S5", where, Share(profile, FINALIZING), About()),
        ("S6", where, Share(profile, LOCKING), About()),
        (
            "S7",
            "two-cycles-or-one",
            Amount(until_free("Finalizer"), "gc-cycles-to-free"),
            WithinTolerance(),
        ),
        ("S8", "how-the-size-matters", Dipping(curve), UShaped()),
    )
    for name, anchor, quantity, rule in claims:
        yield Claim(name, "siebenmann", anchor, quantity, rule, headline=name == "S1")


CLAIMS: tuple[Claim, ...] = tuple(_claims())
