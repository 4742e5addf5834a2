"""The precision of the measuring: X9."""

from __future__ import annotations

from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Agreement
from gccost.judging.claims.rules import Agrees
from gccost.measuring.experiments.precision import LOADS, independent
from gccost.measuring.toolchains import TODAY_GO

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "X9",
        experiment="precision",
        anchor="the-same-again",
        quantity=Agreement(
            tuple(
                independent(benchmark, "rounds", load)
                for benchmark in ("AllocateAuto", "AllocateCleanup")
                for load in LOADS
            )
        ),
        rule=Agrees(),
        releases=(TODAY_GO,),
    ),
)
