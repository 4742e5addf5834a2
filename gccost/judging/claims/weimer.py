"""Weimer's document: W1 to W6; and L5, Effective Java's figure."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Amount, Difference, Occurring, TwoBaselines
from gccost.judging.claims.rules import AgainstBoth, AtLeast, Effect, Occurs, Rule, WithinTolerance
from gccost.measuring.experiments.base import Quantity, Ratio
from gccost.measuring.experiments.weimer import (
    CLEANER,
    FINALIZE,
    HEAPS,
    JMH_ESCAPING,
    JMH_FINALIZED,
    JMH_REMOVED,
    LEAK_REMEDIES,
    PLAIN,
    REGISTERED_CLEANER,
    REGISTERED_FINALIZE,
    REMAINING,
    jvm,
    leak,
    small,
)
from gccost.measuring.toolchains import DOCUMENT_JDK, TODAY_JDK

_PEAK = "peak-rss-bytes"
BUSY_CORES = 4  # that the document's finalize needs for its 313 %


def _claims() -> Iterator[Claim]:
    kept = Ratio(jvm("Cleaner", escape="off"), jvm("Plain", escape="off"))
    held = Difference(Ratio(REGISTERED_FINALIZE, REGISTERED_CLEANER, "registered/op"))
    heaps = Occurring(
        "died",
        tuple(small("Finalize", h) for h in HEAPS),
        (tuple(small("Cleaner", h) for h in HEAPS),),
    )
    leaks = Occurring(
        "leaked",
        tuple(leak("LeakNaive", r) for r in REMAINING),
        tuple(tuple(leak(remedy, r) for r in REMAINING) for remedy in LEAK_REMEDIES),
    )
    claims: tuple[tuple[str, str, Quantity, Rule], ...] = (
        ("W1a", "finalize-and-cleaner", Ratio(FINALIZE, CLEANER, "cpu-s"), Effect()),
        ("W1b", "finalize-and-cleaner", Ratio(FINALIZE, CLEANER, "elapsed-s"), Effect()),
        ("W1c", "finalize-and-cleaner", Ratio(FINALIZE, CLEANER, _PEAK), Effect()),
        ("W2a", "plain-and-cleaner", TwoBaselines(kept, Ratio(CLEANER, PLAIN)), AgainstBoth()),
        ("W2b", "plain-and-cleaner", Ratio(CLEANER, PLAIN, _PEAK), Effect()),
        ("W3", "plain-and-cleaner", Amount(PLAIN, "gc-cycles"), AtLeast(margin=1.0)),
        ("W4", "never-short-lived", held, WithinTolerance()),
        ("W5", "small-heaps", heaps, Occurs(share=0.1)),
        ("W6", "the-registration-leak", leaks, Occurs()),
    )
    releases = (DOCUMENT_JDK, TODAY_JDK)
    busy = Amount(FINALIZE, "cpu-share")
    # More than three cores were busy in the document: fewer cannot show that.
    yield Claim(
        *("W1d", "weimer", "finalize-and-cleaner", busy, Effect(), releases), cpus=BUSY_CORES
    )
    for name, anchor, quantity, rule in claims:
        yield Claim(name, "weimer", anchor, quantity, rule, releases)
    against = TwoBaselines(Ratio(JMH_FINALIZED, JMH_ESCAPING), Ratio(JMH_FINALIZED, JMH_REMOVED))
    yield Claim("L5", "jmh", "effective-java", against, AgainstBoth(), releases)


CLAIMS: tuple[Claim, ...] = tuple(_claims())
