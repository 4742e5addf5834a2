"""The claims: what is compared with each published figure, and the rule that judges it.

A claim's words and its published figure are in data/published/claims.csv. The quantity
that tests it and the rule are data here, in a module for each experiment. To add a
claim, add its row there and its entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gccost.judging.claims import (
    addcleanup,
    cloudflare,
    lemire,
    precision,
    remedies,
    siebenmann,
    weimer,
    why,
)
from gccost.judging.claims.base import Claim

CLAIMS: Mapping[str, Claim] = MappingProxyType(
    {
        claim.id: claim
        for group in (
            *(lemire, siebenmann, addcleanup, cloudflare, weimer),
            *(why, remedies, precision),
        )
        for claim in group.CLAIMS
    }
)
