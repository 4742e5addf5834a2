"""Interactive menus for chapter 04: choose settings to see their results.

They appear only in JupyterLab. The report and replay show the same results as charts and
tables.
"""

from __future__ import annotations

from typing import Any

import ipywidgets
from IPython.display import display

from gccost import rounding
from gccost.judging.recording import Recording
from gccost.measuring.toolchains import title
from gccost.showing.tables import Prose, table
from gccost.showing.widgets import reader
from gccost.studies.cloudflare import GRID_GOGC, GRID_PROCS, PROCS, turns


def choose(recording: Recording) -> Any:
    """Menus with the chosen results below them, or a note where menus cannot work."""
    if not reader():
        return Prose(
            "*In JupyterLab this cell has menus for the Ps, GOGC and the release. The "
            "chart above shows the same results.*"
        )
    procs = [p for p in PROCS if any(_measured(recording, p, g) for g in GRID_GOGC)]
    return ipywidgets.interactive(
        lambda procs, gogc, release: display(chosen(recording, procs, gogc, release)),
        procs=ipywidgets.Dropdown(options=procs, description="Ps"),
        gogc=ipywidgets.Dropdown(options=GRID_GOGC, description="GOGC"),
        release=ipywidgets.Dropdown(
            options=[(title(release), release) for release in recording.releases],
            description="release",
        ),
    )


def chosen(recording: Recording, procs: int, gogc: str, release: str) -> Any:
    """A table of one choice's results, or a sentence that it was not measured."""
    variant = turns(procs, gogc)
    rate = recording.level(variant, release, "op/cpu-s")
    if not rate.samples:
        at = f"{procs} Ps with GOGC={gogc} on {title(release)}"
        grid = ", ".join(map(str, GRID_PROCS))
        return Prose(f"{at}: not measured. The standard budget measures {grid} Ps.")
    cycle = recording.level(variant, release, "gc-cycle-op")
    memory = recording.level(variant, release, "peak-rss-bytes")
    return table(
        ("what", "measured"),
        (
            ("signatures per CPU second", rounding.interval(rate, "frequency")),
            (
                "signatures per GC cycle",
                rounding.interval(cycle, "count") if cycle.samples else "no cycle",
            ),
            ("peak memory", rounding.mebibytes(memory.value)),
        ),
        caption=f"{procs} Ps that take turns on one CPU, GOGC={gogc}, {title(release)}",
    )


def _measured(recording: Recording, procs: int, gogc: str) -> bool:
    return any(
        len(recording.samples(turns(procs, gogc), release)) for release in recording.releases
    )
