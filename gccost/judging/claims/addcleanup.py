"""The Go issue on AddCleanup: M1 to M6."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gccost.judging.claims.base import Claim, precise
from gccost.judging.claims.quantities import Quantity, Share
from gccost.judging.claims.rules import AtLeast, Banded, Rule, Same
from gccost.judging.claims.stacks import SPLICE_POINT
from gccost.measuring.experiments.base import AUTO, CLEANUP, DEFER, FREE, Ratio, profiled
from gccost.measuring.toolchains import CLEANUP_GO, ISSUE_GO, TODAY_GO


def _claims() -> Iterator[Claim]:
    off = replace(CLEANUP, gogc="off")
    free, cleanup, auto = (precise(b) for b in ("AllocateFree", "AllocateCleanup", "AllocateAuto"))
    claims: tuple[tuple[str, str, Quantity, Rule, Quantity | None], ...] = (
        (
            "M1",
            "five-times-dearer",
            Ratio(CLEANUP, FREE),
            Banded(),
            Ratio(cleanup, free, "cpu-ns/op"),
        ),
        (
            "M2",
            "five-times-dearer",
            Ratio(AUTO, CLEANUP),
            Banded(),
            Ratio(auto, cleanup, "cpu-ns/op"),
        ),
        ("M3", "five-times-dearer", Ratio(DEFER, FREE), Same(), None),
        (
            "M4",
            "five-times-dearer",
            Ratio(CLEANUP, FREE),
            Banded(),
            Ratio(cleanup, free, "cpu-ns/op"),
        ),
        (
            "M5",
            "the-profile",
            Share(
                profiled("AllocateCleanup", gogc="off"),
                SPLICE_POINT,
                of=("gccost/cstr.AllocateCleanup",),
            ),
            AtLeast(),
            None,
        ),
        ("M6", "with-the-gc-off", Ratio(off, CLEANUP), Same(), None),
    )
    for name, anchor, quantity, rule, beside in claims:
        releases = (CLEANUP_GO, ISSUE_GO, TODAY_GO)
        yield Claim(name, "addcleanup", anchor, quantity, rule, beside, releases)


CLAIMS: tuple[Claim, ...] = tuple(_claims())
