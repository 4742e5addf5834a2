"""The studies: each module holds the cases and claims of a document or a question.

To add a study, write its module and list it here. No other code branches on study names.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gccost.judging.claims import Claim, Study
from gccost.measuring.cases import one_of
from gccost.studies import (
    addcleanup,
    cleaners,
    cloudflare,
    conjecture,
    handles,
    lemire,
    libraries,
    malloc,
    precision,
    prices,
    releases,
    remedies,
    runtime,
    siebenmann,
    sittings,
    wasm,
    weakly,
    weimer,
    why,
)

STUDIES: Mapping[str, Study] = MappingProxyType(
    {
        each.name: each
        for each in (
            lemire.STUDY,
            siebenmann.STUDY,
            addcleanup.STUDY,
            cloudflare.STUDY,
            weimer.STUDY,
            weimer.JMH,
            cleaners.STUDY,
            releases.STUDY,
            conjecture.STUDY,
            why.STUDY,
            runtime.STUDY,
            malloc.STUDY,
            prices.STUDY,
            handles.STUDY,
            remedies.STUDY,
            sittings.STUDY,
            precision.STUDY,
            libraries.STUDY,
            wasm.STUDY,
            weakly.STUDY,
        )
    }
)

CLAIMS: Mapping[str, Claim] = MappingProxyType(
    {claim.id: claim for study in STUDIES.values() for claim in study.claims}
)


def declared(name: str) -> Study:
    """The study of that name. Raises GccostError, naming the nearest, if there is none."""
    return one_of(STUDIES, name, "study")
