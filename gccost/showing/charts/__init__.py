"""The charts: each takes what was recorded and states what it shows in its title.

Raw samples are drawn with their interval, the published figures under ours as
hollow diamonds. A chart leaves out what was not measured. Those of a chapter
stand in a module of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gccost import rounding
from gccost.judging.recording import Recording
from gccost.showing.charts import addcleanup, lemire, precision, remedies, siebenmann
from gccost.showing.charts.common import NAMES, control, verdicts
from gccost.showing.charts.lemire import LEMIRE_SHARES
from gccost.showing.charts.remedies import name as called
from gccost.showing.figures import Chart

__all__ = ["CHARTS", "LEMIRE_SHARES", "NAMES", "Chart", "called", "rounding", "verdicts"]

CHARTS: Mapping[str, Callable[[Recording], Chart]] = MappingProxyType(
    {
        "control": control,
        "lemire-published": lemire.published_timings,
        "lemire-cost": lemire.cost,
        "lemire-gc-off": lemire.gc_off,
        "lemire-profile": lemire.profile,
        "siebenmann-heap": siebenmann.heap,
        "siebenmann-profile": siebenmann.profile,
        "siebenmann-flame": siebenmann.flame,
        "siebenmann-cycles": siebenmann.cycles,
        "siebenmann-sizes": siebenmann.sizes,
        "siebenmann-fit": siebenmann.fit,
        "siebenmann-faults": siebenmann.faults,
        "addcleanup-cost": addcleanup.cost,
        "addcleanup-why": addcleanup.why,
        "addcleanup-gc-off": addcleanup.gc_off,
        "addcleanup-profile": addcleanup.profile,
        "addcleanup-parallel": addcleanup.parallel,
        "remedies-cost": remedies.cost,
        "remedies-memory": remedies.memory,
        "remedies-live": remedies.live,
        "remedies-heap": remedies.heap,
        "remedies-parallel": remedies.parallel,
        "remedies-releases": remedies.releases,
        "precision": precision.precision,
        "precision-drift": precision.drift,
    }
)
