"""Packs: the programs, built, and the sampler, for machines without any tools.

A pack is an archive with the table of jobs (`jobs.csv`), the programs, those in Go in several
random layouts, the modules that take samples, and the script `run`. The target needs the same
processor and Linux, Python 3.11 or later, and a glibc as new as this machine's; no compiler,
package, network or root. Java programs are measured on the JDKs that it has. The Go programs are
linked dynamically, as in a local recording, because a static C library has another malloc, whose
time is part of the figures.
"""

from __future__ import annotations

import importlib.metadata
import json
import random
import shutil
import sys
import tarfile
from collections import ChainMap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gccost import paths
from gccost.cases import jobs
from gccost.cases.cases import Budget, Study
from gccost.cases.jobs import Build
from gccost.errors import MissingTool
from gccost.files import temporary, writing
from gccost.measuring import builds, languages, machine, planning, toolchains
from gccost.measuring.packed import FORMAT, PROGRAMS, build_name
from gccost.measuring.planning import Plan
from gccost.progress import PrintedProgress, Say
from gccost.run import jobtable

_BELOW = ("__init__", "errors", "files", "paths", "processes", "progress")
_FOLDERS = ("run", "cases", "measuring")
_ALONG = "filelock"  # the only package that the sampler imports: pure Python
_RUN = """#!/bin/sh
# Measures, and writes the run as an archive. It resumes an interrupted run.
# GCCOST_RUNS names another folder for runs, PYTHON another Python (3.11 or later).
here=$(cd "$(dirname "$0")" && pwd) || exit
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "gccost: $python is missing or older than Python 3.11. To fix it: PYTHON=... ./run" >&2
    exit 1
}
PYTHONPATH=$here exec "$python" -sPB -m gccost.measuring.packed "$@"
"""


def make(
    studies: Sequence[Study],
    budget: Budget,
    output: Path,
    say: Say = toolchains.silent,
) -> None:
    """Write a pack of the studies at a budget. Raises GccostError if a program cannot be built.

    An interruption leaves no part of it.
    """
    large = {"allowed_cpus": sys.maxsize, "memory": sys.maxsize, "memory_limit": None}
    described = {**machine.describe(), **large}
    plan = planning.plan(studies, budget, say=say, description=described)
    if not plan.pool:
        raise MissingTool(f"nothing can be packed: {'; '.join(plan.missing.values())}")
    with temporary(output.resolve().with_name(f".{output.name}.parts")) as folder:
        pack, packed = folder / "gccost-pack", folder / output.name
        with writing(output):
            (pack / PROGRAMS).mkdir(parents=True)
            manifest = _manifest(plan) | {"builds": _build(plan, folder, pack / PROGRAMS)}
            (pack / "pack.json").write_text(json.dumps(manifest, indent=1))
            whole = ChainMap(*(dict(study.jobs) for study in studies))  # with any budget's N
            jobtable.write(pack / "jobs.csv", (whole[name] for name in plan.pool))
            _copy_modules(pack)
            say("compressing")
            # With a dictionary of 64 MiB, in which the layouts of a program are much alike.
            with tarfile.open(packed, "w:xz", preset=9) as tar:
                tar.add(pack, pack.name, filter=_nobody)
            packed.replace(output)
    say(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


def _build(plan: Plan, folder: Path, programs: Path) -> dict[str, list[str]]:
    """Build each program in its number of layouts; return the names of these, by build."""
    chance = random.SystemRandom()

    def build(what: Build, run: builds.Run) -> list[str]:
        names = []
        for number in range(1, languages.of_release(what.release).layouts + 1):
            built = plan.build(what, chance.randrange(1, 2**31), folder, run)
            name = f"{build_name(what)}-{number}{built.suffix}"
            if built.is_dir():  # of Java
                shutil.copytree(built, programs / name)
            else:
                built.rename(programs / name)
            names.append(name)
        return names

    wanted = sorted({jobs.build(job) for job in plan.pool.values()})
    made = builds.build_all(wanted, build, PrintedProgress("packing: "))
    return {build_name(what): names.result() for what, names in made.items()}


def _manifest(plan: Plan) -> dict[str, Any]:
    """The content of pack.json, but for the builds."""
    described, compiler = plan.description, plan.compiler.get("C compiler")
    made = {name: described[name] for name in ("commit", "dirty")}
    if compiler:
        made |= {"c_compiler": compiler.version, "c_compiler_source": compiler.source}
    return {
        "format": FORMAT,
        "needs": f"Linux on {described['architecture']}, and {described['libc']} or newer",
        "budget": plan.budget.name,
        "made": made,
        "studies": {name: sorted(plan.pool.keys() & own) for name, own in plan.studies.items()},
        "programs": plan.programs,
        "compilers": {kind: each.version for kind, each in plan.compiler.items()},
        "random_layout": plan.random_layouts,
        "missing": plan.missing,
    }


def _copy_modules(pack: Path) -> None:
    """Copy the modules that take samples, and `run`."""
    script = pack / "run"
    script.write_text(_RUN)
    script.chmod(0o755)
    package = paths.ROOT / "gccost"
    modules = [package / f"{name}.py" for name in _BELOW]
    modules += [path for folder in _FOLDERS for path in sorted(package.glob(f"{folder}/*.py"))]
    data = [paths.ROOT / name for name in ("LICENSE", "data/releases.csv", "data/benchmarks.csv")]
    copies = {path: path.relative_to(paths.ROOT) for path in [*modules, *data]}
    for file in importlib.metadata.files(_ALONG) or ():
        if file.suffix == ".py" or file.name.startswith("LICENSE"):
            copies[Path(str(file.locate()))] = Path(file)
    for path, name in copies.items():
        (pack / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, pack / name)


def _nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry without the name of whoever made the pack."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
