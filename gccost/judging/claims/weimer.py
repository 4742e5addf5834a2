"""Weimer's document: W1 to W6; and L5, Effective Java's figure."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Amount, Difference, Places, Quantity, TwoBaselines
from gccost.judging.claims.rules import AtLeast, Banded, Exactly, Rule, Somewhere, Stable
from gccost.measuring.experiments.base import Ratio
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
    heaps = Places(
        "died",
        tuple(small("Finalize", h) for h in HEAPS),
        (tuple(small("Cleaner", h) for h in HEAPS),),
    )
    leaks = Places(
        "leaked",
        tuple(leak("LeakNaive", r) for r in REMAINING),
        tuple(tuple(leak(remedy, r) for r in REMAINING) for remedy in LEAK_REMEDIES),
    )
    claims: tuple[tuple[str, str, Quantity, Rule, Quantity | None], ...] = (
        ("W1a", "finalize-and-cleaner", Ratio(FINALIZE, CLEANER, "cpu-s"), Banded(), None),
        ("W1b", "finalize-and-cleaner", Ratio(FINALIZE, CLEANER, "elapsed-s"), Banded(), None),
        ("W1c", "finalize-and-cleaner", Ratio(FINALIZE, CLEANER, _PEAK), Banded(), None),
        ("W2a", "plain-and-cleaner", TwoBaselines(kept, Ratio(CLEANER, PLAIN)), Stable(), None),
        ("W2b", "plain-and-cleaner", Ratio(CLEANER, PLAIN, _PEAK), Banded(), None),
        ("W3", "plain-and-cleaner", Amount(PLAIN, "gc-cycles"), AtLeast(), None),
        ("W4", "never-short-lived", held, Exactly(), None),
        ("W5", "small-heaps", heaps, Somewhere(share=0.1), None),
        ("W6", "the-registration-leak", leaks, Somewhere(), None),
    )
    releases = (DOCUMENT_JDK, TODAY_JDK)
    busy = Amount(FINALIZE, "cpu-share")
    # More than three cores were busy in the document: fewer cannot show that.
    yield Claim(
        *("W1d", "weimer", "finalize-and-cleaner", busy, Banded(), None, releases), cpus=BUSY_CORES
    )
    for name, anchor, quantity, rule, beside in claims:
        yield Claim(name, "weimer", anchor, quantity, rule, beside, releases)
    against = TwoBaselines(Ratio(JMH_FINALIZED, JMH_ESCAPING), Ratio(JMH_FINALIZED, JMH_REMOVED))
    yield Claim("L5", "jmh", "effective-java", against, Stable(), None, releases)


CLAIMS: tuple[Claim, ...] = tuple(_claims())
