"""Cloudflare: C1 to C8, on a machine with many CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Amount, Share
from gccost.judging.claims.rules import About, AtLeast, AtMost, Effect, Rule
from gccost.judging.claims.stacks import GC_AND_LOCKS
from gccost.measuring.experiments.base import Quantity, Ratio
from gccost.measuring.experiments.cloudflare import (
    BEST_GOGC,
    DOCUMENT_CPUS,
    LEAST_CPUS,
    RELEASES,
    signing,
)

# A throughput over another is the time of the other's operation over that of its own.


def _claims() -> Iterator[Claim]:
    all_cpus = signing(DOCUMENT_CPUS)
    off, best = signing(DOCUMENT_CPUS, "off"), signing(DOCUMENT_CPUS, BEST_GOGC)
    claims: tuple[tuple[str, str, Quantity, Rule], ...] = (
        ("C1", "does-it-scale", Ratio(all_cpus, signing(17)), Effect()),
        ("C2", "does-it-scale", Ratio(signing(1), all_cpus, "cpu-ns/op"), AtMost()),
        (
            "C3",
            "the-profile-of-the-collapse",
            Share(signing(DOCUMENT_CPUS, profile="cpu"), GC_AND_LOCKS),
            AtLeast(),
        ),
        ("C4", "a-cycle-every-millisecond", Amount(all_cpus, "gc-cycles/s"), About()),
        ("C5", "with-the-gc-off", Ratio(all_cpus, off), Effect()),
        ("C6", "with-the-gc-off", Ratio(off, signing(DOCUMENT_CPUS, "2400")), Effect()),
        ("C7", "with-the-gc-off", Ratio(signing(1), best), Effect()),
        ("C8", "does-it-scale", Ratio(signing(DOCUMENT_CPUS // 2, BEST_GOGC), best), AtLeast()),
    )
    for name, anchor, quantity, rule in claims:
        yield Claim(
            *(name, "cloudflare", anchor, quantity, rule),
            releases=RELEASES,
            cpus=LEAST_CPUS,
        )


CLAIMS: tuple[Claim, ...] = tuple(_claims())
