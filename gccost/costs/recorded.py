"""The recorded runs, and which of them is nearest to a run.

Two questions, two answers. *How far do sittings differ?* The nearest recorded run that has a figure
in enough sittings says so, whatever the version of its programs. *What is the value of what was not
measured?* The nearest recorded run whose programs are today's says so.
"""

from __future__ import annotations

import json
import re
from typing import Any

from gccost import paths
from gccost.cases import versions
from gccost.files import read_text, reading
from gccost.run import runs
from gccost.run.runs import Run
from gccost.run.schema import LINE, fault

_CPU = ("architecture", "cpu", "cpu_family", "cpu_model")  # what tells models of CPUs apart


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


def nearest(run: Run) -> list[Run]:
    """The recorded runs that may stand for a run, the nearest first.

    Nearest is the same machine: its fingerprint, and its model of CPU, since two machines may share
    a fingerprint. Then the same model of CPU, then the machine that chapters prefer. A recorded run
    has no relatives, nor has one in data/loaded: its sittings differ by their load.
    """
    if run.folder.parent in (paths.reference(), paths.ROOT / "data" / "loaded"):
        return []
    manifest = run.manifest()
    cpu = cpu_of(manifest["machine"])

    def nearness(other: Run) -> tuple[bool, bool]:
        theirs = other.manifest()
        is_alike = cpu_of(theirs["machine"]) == cpu
        return is_alike and theirs["fingerprint"] == manifest["fingerprint"], is_alike

    preferred = reversed(recorded())
    return sorted(preferred, key=nearness, reverse=True)


def cpu_of(machine: dict[str, Any]) -> tuple[str, ...]:
    """The model of a machine's CPU, as far as it is known."""
    return tuple(str(machine.get(field)) for field in _CPU)


_UNSAFE = re.compile(r"[^\w ().,@/+-]")


def words(text: object) -> str:
    """A text of a run in words: without any character that markup knows."""
    return _UNSAFE.sub("", str(text or "")).strip()[:100]


def machine_of(run: Run) -> str:
    """The machine of a run in a few words, which are safe in markup."""
    known = run.manifest()["machine"]
    family = known.get("cpu_family")
    model = f" (family {family}, model {known.get('cpu_model')})" if family else ""
    return f"{words(known.get('cpu'))}{model}, {known.get('allowed_cpus')} CPUs"


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
