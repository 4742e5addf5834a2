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
from gccost.showing.charts import (
    addcleanup,
    cloudflare,
    lemire,
    precision,
    remedies,
    siebenmann,
    weimer,
    why,
)
from gccost.showing.charts.common import NAMES, control, verdicts
from gccost.showing.charts.lemire import LEMIRE_SHARES
from gccost.showing.charts.remedies import name as called
from gccost.showing.charts.weimer import beside
from gccost.showing.charts.weimer import name as on_a_jvm
from gccost.showing.figures import Chart

__all__ = [
    "CHARTS",
    "LEMIRE_SHARES",
    "NAMES",
    "Chart",
    "beside",
    "called",
    "on_a_jvm",
    "rounding",
    "verdicts",
]

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
        "cloudflare-published": cloudflare.published_scaling,
        "cloudflare-scaling": cloudflare.scaling,
        "cloudflare-turns": cloudflare.mechanism,
        "cloudflare-gogc": cloudflare.sweep,
        "cloudflare-grid": cloudflare.grid,
        "cloudflare-gctrace": cloudflare.trace,
        "cloudflare-profile": cloudflare.profile,
        "cloudflare-share": cloudflare.gc_share,
        "cloudflare-pareto": cloudflare.pareto,
        "cloudflare-model": cloudflare.model,
        "why-span": why.span,
        "why-sizes": why.sizes,
        "why-releases": why.releases,
        "why-cleanup": why.causes,
        "why-live": why.live,
        "why-programs": why.programs,
        "runtime-slopes": why.slopes,
        "runtime-cost": why.price,
        "runtime-sizes": why.curve,
        "runtime-live": why.live_both,
        "runtime-left": why.left,
        "runtime-memory": why.memory,
        "remedies-cost": remedies.cost,
        "remedies-memory": remedies.memory,
        "remedies-live": remedies.live,
        "remedies-heap": remedies.heap,
        "remedies-parallel": remedies.parallel,
        "remedies-releases": remedies.releases,
        "weimer-cost": weimer.cost,
        "weimer-memory": weimer.memory,
        "weimer-removed": weimer.removed,
        "weimer-collectors": weimer.collectors,
        "weimer-registered": weimer.registered,
        "weimer-heaps": weimer.heaps,
        "weimer-leak": weimer.leaks,
        "jmh-ratio": weimer.effective,
        "jmh-warm-up": weimer.warm_up,
        "precision": precision.precision,
        "precision-slices": precision.slices,
        "precision-drift": precision.drift,
    }
)
