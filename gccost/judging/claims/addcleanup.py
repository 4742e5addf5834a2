"""The Go issue on AddCleanup: M1 to M6."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Share
from gccost.judging.claims.rules import AtLeast, Effect, Rule, Same
from gccost.judging.claims.stacks import SPLICE_POINT
from gccost.measuring.experiments.base import AUTO, CLEANUP, DEFER, FREE, Quantity, Ratio, profiled
from gccost.measuring.toolchains import ISSUE_GO, TODAY_GO


def _claims() -> Iterator[Claim]:
    off = replace(CLEANUP, gogc="off")
    walking = Share(
        profiled("AllocateCleanup", gogc="off"), SPLICE_POINT, of=("gccost/cstr.AllocateCleanup",)
    )
    times = "five-times-as-expensive"
    claims: tuple[tuple[str, str, Quantity, Rule], ...] = (
        ("M1", times, Ratio(CLEANUP, FREE), Effect()),
        ("M2", times, Ratio(AUTO, CLEANUP), Effect()),
        ("M3", times, Ratio(DEFER, FREE), Same()),
        ("M4", times, Ratio(CLEANUP, FREE), Effect()),
        ("M5", "the-profile", walking, AtLeast()),
        ("M6", "with-the-gc-off", Ratio(off, CLEANUP), Same()),
    )
    for name, anchor, quantity, rule in claims:
        releases = (ISSUE_GO, TODAY_GO)
        headline = name in ("M1", "M2")
        yield Claim(name, "addcleanup", anchor, quantity, rule, releases, headline=headline)


CLAIMS: tuple[Claim, ...] = tuple(_claims())
