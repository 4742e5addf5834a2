"""The inks of charts: which colour, and which marker, a name has."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import Any

from gccost.showing.charts import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE

# Inks with a meaning come last.
ORDER = (BLUE, PURPLE, MUTED, INK, GREEN, ORANGE)
_INKS = {"manual": BLUE, "inali": ORANGE, "leanup": GREEN, "leaner": GREEN, "slab": INK}


def own_ink(name: object) -> str:
    """The ink of a kind of variant; empty if it has none."""
    for part, ink in _INKS.items():
        if part in str(name):
            return ink
    return ""


def palette(names: Iterable[object]) -> dict[Any, str]:
    """An ink for each name, for seaborn's `palette`; up to six names have different ones.

    A manual free is blue, a finalizer orange, a cleanup green and a slab black where they can
    be. Each ink has a marker in `gccost.intervals`, so that no chart is told by colour alone.
    """
    # seaborn asks for the ink of every category, also of those without a row.
    unused = names.cat.categories if hasattr(names, "cat") else ()
    inks: dict[Any, str] = {}
    for name in dict.fromkeys([*names, *unused]):
        ink = own_ink(name)
        inks[name] = "" if ink in inks.values() else ink
    spare = [ink for ink in ORDER if ink not in inks.values()]
    lacking = [name for name, ink in inks.items() if not ink]
    return inks | dict(zip(lacking, cycle(spare or ORDER), strict=False))
