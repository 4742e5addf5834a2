"""The studies: each module holds the cases and claims of a document or a question.

To add a study, write its module. No other code branches on study names.
It may import: the ground (errors, files, paths, processes, progress, stats), run, cases, costs,
judging.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType

from gccost.cases.cases import one_of
from gccost.judging.claims import Claim, Study

_ORDER = (
    *("lemire", "siebenmann", "addcleanup", "cloudflare", "weimer", "jmh", "cleaners"),
    *("releases", "conjecture", "why", "runtime", "malloc", "wrappers", "handles", "remedies"),
    *("late", "truths", "surprises", "sittings", "precision", "libraries", "wasm", "weakly"),
)
"""The order in which pages show studies; others follow."""


def _studies() -> Iterator[Study]:
    """The studies of all modules of this package."""
    for module in pkgutil.iter_modules(__path__):
        names = vars(import_module(f"{__name__}.{module.name}"))
        for value in names.values():
            if isinstance(value, Study):
                yield value


_FOUND = {study.name: study for study in _studies()}
STUDIES: Mapping[str, Study] = MappingProxyType(
    {name: _FOUND[name] for name in dict.fromkeys([*_ORDER, *_FOUND])}
)
CLAIMS: Mapping[str, Claim] = MappingProxyType(
    {claim.id: claim for study in STUDIES.values() for claim in study.claims}
)


def declared(name: str) -> Study:
    """The study of that name. Raises GccostError, naming the nearest, if there is none."""
    return one_of(STUDIES, name, "study")


def chosen(only: str = "") -> list[Study]:
    """The study of that name, or all of them."""
    return [declared(only)] if only else list(STUDIES.values())
