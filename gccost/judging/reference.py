"""Adopting runs as references, if their machine was not disturbed.

`data/reference/costs.csv` has two variants' costs from every adopted recording, so that a
slow recording is rejected even after older ones are deleted.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from gccost import paths
from gccost.errors import GccostError
from gccost.files import write_whole, writing
from gccost.judging.claims import Study
from gccost.judging.recording import Recording
from gccost.measuring.cases import CLEANUP, FREE, Variant
from gccost.measuring.runs import Run
from gccost.measuring.toolchains import TODAY_GO

# The largest accepted cost relative to the lower quartile of similar recordings.
MOST: dict[str, float] = {FREE.benchmark: 1.10, CLEANUP.benchmark: 1.15}
_MACHINE = ("cpu_family", "cpu_model", "cpu_stepping", "caches", "libc")


def adopt(run: Run, studies: Sequence[Study]) -> Run:
    """Copy a run to data/reference and return the copy.

    Raises GccostError if it is disturbed, or slower than recordings of similar machines.
    """
    line, known = _costs(run, studies), _known()
    for why in _reasons(run, studies, line, known):
        raise GccostError(
            f"the run is refused as a reference: {why}",
            run.name,
            "record it again in another hour, or on another machine",
        )
    target = paths.reference() / run.name
    with writing(target):
        shutil.copytree(run.folder, target, dirs_exist_ok=True)
    lines = pd.concat([known[known["run"] != run.name], pd.DataFrame([line])], ignore_index=True)
    text = lines.to_csv(index=False, lineterminator="\n")
    write_whole(paths.reference() / "costs.csv", text.encode())
    return Run(target)


def _reasons(
    run: Run, studies: Sequence[Study], line: dict[str, Any], known: pd.DataFrame
) -> Iterator[str]:
    for study in studies:
        if run.holds(study.name) and not study.command:  # a command may load the machine
            recording = Recording.load(study, run)
            for claim in study.claims:
                for release in claim.releases if claim.cpus <= recording.cpus else ():
                    yield from recording.disturbances(claim.quantity.variants, release)
    like = known[known["run"] != run.name]
    for name in ("machine", "go"):
        like = like[like[name] == line[name]]
    for variant, most in MOST.items():
        others = like[variant].dropna()
        if len(others) and line[variant] > most * (usual := float(others.quantile(0.25))):
            yield (
                f"{variant} takes {line[variant]:.1f} ns, more than {most - 1:.0%} above the "
                f"{usual:.1f} ns of like machines"
            )


def _costs(run: Run, studies: Sequence[Study]) -> dict[str, Any]:
    """A row of costs.csv: the machine, the release, and each variant's cost in ns."""
    both = {(variant, TODAY_GO) for variant in (FREE, CLEANUP)}
    study = next(s for s in studies if both <= {(c.variant, c.release) for c in s.cases})
    recording = Recording.load(study, run)
    described = run.manifest()["machine"]
    machine = {name: described.get(name) for name in _MACHINE}

    def cost(variant: Variant) -> float:
        found = recording.cost(variant, TODAY_GO)
        return round(math.exp(found.log), 2) if found.samples else math.nan

    costs = {variant.benchmark: cost(variant) for variant in (FREE, CLEANUP)}
    told = json.dumps(machine, sort_keys=True)
    return {"run": run.name, "machine": told, "go": TODAY_GO, **costs}


def _known() -> pd.DataFrame:
    path = paths.reference() / "costs.csv"
    if not path.exists():
        return pd.DataFrame(columns=["run", "machine", "go", *MOST])
    return pd.read_csv(path, dtype={"run": str, "machine": str, "go": str})
