"""The recorded runs, and which of them chapters prefer."""

from __future__ import annotations

import json

from gccost import paths
from gccost.cases import versions
from gccost.files import read_text, reading
from gccost.run import runs
from gccost.run.runs import Run
from gccost.run.schema import LINE, fault


def recorded() -> list[Run]:
    """The recorded runs; those that chapters prefer come last.

    A run whose N was scaled (a test's) is never preferred to another one.
    """
    versions.check_releases()
    main = main_machine()

    def preference(run: Run) -> tuple[bool, bool, str]:
        manifest = run.manifest()
        return manifest["scale"] == 1, manifest["fingerprint"] == main, run.name

    return sorted(runs.all_runs(paths.reference()), key=preference)


def main_machine() -> str:
    """The fingerprint in reference.json, or that of the newest run; empty without runs."""
    path = paths.reference() / "reference.json"
    if path.exists():
        with reading(path):
            content = json.loads(read_text(path))
            if why := fault(content, {"machine": LINE}, "the file"):
                raise ValueError(why)
            return str(content["machine"])
    recorded_runs = runs.all_runs(paths.reference())
    return str(recorded_runs[-1].manifest()["fingerprint"]) if recorded_runs else ""
