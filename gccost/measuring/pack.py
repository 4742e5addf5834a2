"""Packs: the programs, built, and the sampler, for machines without any tools.

A pack is an archive with the table of jobs (`jobs.csv`), the programs, those in Go in several
random layouts, the modules that take samples, and the script `run`. The target needs the same
processor and Linux, Python 3.11 or later, and a glibc as new as this machine's; no compiler,
package, network or root. Java programs are measured on the JDKs that it has. The Go programs are
linked dynamically, as in a local recording, because a static C library has another malloc, whose
time is part of the figures.

`run` runs this module where the pack was unpacked. Each call adds a sitting of the budget's first
rounds to the run of that machine, as any campaign does, and an interrupted sitting resumes.
Verdicts need libraries, so none decides what is measured further. What this module imports needs
Python's standard library only.
"""

from __future__ import annotations

import importlib.metadata
import json
import random
import shutil
import signal
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gccost import paths, processes
from gccost.cases import jobs, versions
from gccost.cases.cases import BUDGETS, Budget, Study
from gccost.cases.jobs import Build
from gccost.errors import GccostError, MissingTool, refused
from gccost.files import temporary, writing
from gccost.measuring import (
    builds,
    campaign,
    jdks,
    languages,
    machine,
    planning,
    sampler,
    toolchains,
)
from gccost.measuring.planning import Plan
from gccost.progress import PrintedProgress, Say
from gccost.run import jobtable
from gccost.run.benchfmt import Sample
from gccost.run.jobtable import Job

FORMAT = 5  # of pack.json and its jobs.csv
PROGRAMS = "programs"  # the folder of the binaries

Manifest = Mapping[str, Any]  # the content of pack.json

_BELOW = ("__init__", "errors", "files", "paths", "processes", "progress")
_FOLDERS = ("run", "cases", "measuring")
_DATA = ("LICENSE", "data/releases.csv", "data/benchmarks.csv")
_ALONG = "filelock"  # the only package that the sampler imports: pure Python
_UNPACK = "unpack the archive again, or make the pack again"
_RUN = """#!/bin/sh
# Measures, and writes the run as an archive. It resumes an interrupted run.
# GCCOST_RUNS names another folder for runs, PYTHON another Python (3.11 or later).
here=$(cd "$(dirname "$0")" && pwd) || exit
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "gccost: $python is missing or older than Python 3.11. To fix it: PYTHON=... ./run" >&2
    exit 1
}
PYTHONPATH=$here exec "$python" -sPB -m gccost.measuring.pack "$@"
"""


def build_name(build: Build) -> str:
    """A build's name in pack.json and in its binaries' names."""
    program = build.program.replace("/", ".")
    ((language, number),) = versions.keyed(build.release).items()
    parts = (program, f"{language}{number}", build.runtime, build.layout)
    return "-".join(filter(None, parts))


# --- Making one -----------------------------------------------------------------------------


def make(
    studies: Sequence[Study], budget: Budget, output: Path, say: Say = toolchains.silent
) -> None:
    """Write a pack of the studies at a budget. Raises GccostError if a program cannot be built.

    An interruption leaves no part of it.
    """
    large = {"allowed_cpus": sys.maxsize, "memory": sys.maxsize, "memory_limit": None}
    described = {**machine.describe(), **large}
    plan = planning.plan(studies, budget, say=say, description=described)
    if not plan.pool:
        raise MissingTool(f"nothing can be packed: {'; '.join(plan.missing.values())}")
    parts = output.resolve().with_name(f".{output.name}.parts")
    with temporary(parts) as folder, writing(output):
        pack = folder / "gccost-pack"
        (pack / PROGRAMS).mkdir(parents=True)
        manifest = _manifest(plan)
        manifest["builds"] = _build(plan, folder, pack / PROGRAMS)
        (pack / "pack.json").write_text(json.dumps(manifest, indent=1))
        _write_jobs(studies, plan, pack / "jobs.csv")
        _copy_modules(pack)
        say("compressing")
        archive = folder / output.name
        # With a dictionary of 64 MiB, in which the layouts of a program are much alike.
        with tarfile.open(archive, "w:xz", preset=9) as tar:
            tar.add(pack, pack.name, filter=_nobody)
        archive.replace(output)
    say(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


def _build(plan: Plan, folder: Path, programs: Path) -> dict[str, list[str]]:
    """Build each program in its number of layouts; return the names of these, by build."""
    chance = random.SystemRandom()

    def build(what: Build, run: builds.Run) -> list[str]:
        names = []
        layouts = languages.of_release(what.release).layouts
        for number in range(1, layouts + 1):
            built = plan.build(what, chance.randrange(1, 2**31), folder, run)
            name = f"{build_name(what)}-{number}{built.suffix}"
            if built.is_dir():  # of Java
                shutil.copytree(built, programs / name)
            else:
                built.rename(programs / name)
            names.append(name)
        return names

    wanted = sorted({jobs.build(job) for job in plan.pool.values()})
    built = builds.build_all(wanted, build, PrintedProgress("packing: "))
    return {build_name(what): names.result() for what, names in built.items()}


def _manifest(plan: Plan) -> dict[str, Any]:
    """The content of pack.json, but for the builds."""
    described = plan.description
    made = {"commit": described["commit"], "dirty": described["dirty"]}
    if compiler := plan.compiler.get("C compiler"):
        made["c_compiler"] = compiler.version
        made["c_compiler_source"] = compiler.source
    studies = {}
    for name, own in plan.studies.items():
        studies[name] = sorted(plan.pool.keys() & own)
    return {
        "format": FORMAT,
        "needs": f"Linux on {described['architecture']}, and {described['libc']} or newer",
        "budget": plan.budget.name,
        "made": made,
        "studies": studies,
        "programs": plan.programs,
        "compilers": {kind: compiler.version for kind, compiler in plan.compiler.items()},
        "random_layout": plan.random_layouts,
        "missing": plan.missing,
    }


def _write_jobs(studies: Sequence[Study], plan: Plan, path: Path) -> None:
    """Write the table of the plan's jobs, with any budget's N."""
    whole: dict[str, Job] = {}
    for study in reversed(studies):
        whole.update(study.jobs)
    jobtable.write(path, [whole[name] for name in plan.pool])


def _copy_modules(pack: Path) -> None:
    """Copy the modules that take samples, and `run`."""
    script = pack / "run"
    script.write_text(_RUN)
    script.chmod(0o755)
    package = paths.ROOT / "gccost"
    files = [package / f"{name}.py" for name in _BELOW]
    for folder in _FOLDERS:
        files += sorted(package.glob(f"{folder}/*.py"))
    files += [paths.ROOT / name for name in _DATA]
    copies = {path: path.relative_to(paths.ROOT) for path in files}
    for file in importlib.metadata.files(_ALONG) or ():
        if file.suffix == ".py" or file.name.startswith("LICENSE"):
            path = Path(str(file.locate()))
            copies[path] = Path(file)
    for path, name in copies.items():
        copy = pack / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry without the name of whoever made the pack."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


# --- Running one ----------------------------------------------------------------------------


def load(folder: Path) -> Manifest:
    """Read pack.json. Raises GccostError if it is damaged, or if no program starts here."""
    path = folder / "pack.json"
    try:
        manifest: Manifest = json.loads(path.read_bytes())
        if manifest["format"] != FORMAT:
            raise ValueError(f"it has format {manifest['format']}, not {FORMAT}")
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise GccostError(f"the pack is damaged: {error}", str(path), _UNPACK) from None
    binary = next((folder / PROGRAMS).glob("*.test"), None)  # there is none of Java
    if binary and (reason := _why_not_started(binary)):
        hint = f"use {manifest['needs']}, and a disk that is not mounted noexec"
        raise GccostError(f"no program can be started here: {reason}", str(binary), hint)
    return manifest


def _why_not_started(binary: Path) -> str:
    try:
        done = processes.run([str(binary), "-test.list=^$"], limit=60)
    except OSError as error:
        return error.strerror or str(error)
    return done.stderr.strip() if done.returncode else ""


@dataclass(frozen=True)
class PackedPlan(Plan):
    """A plan whose programs are already built; `pack` is the content of pack.json."""

    pack: Manifest = field(default_factory=dict)

    def build(self, what: Build, layout: int, into: Path, run: Any) -> Path:
        """A program's folder, or one of its binaries, which differ by their layouts."""
        files: list[str] = self.pack["builds"][build_name(what)]
        return paths.ROOT / PROGRAMS / files[layout % len(files)]

    def sample(self, binary: Path, job: Job, scratch: Path, profile: Path | None) -> list[Sample]:
        java = _jvm(job["release"])
        return sampler.sample(job, binary, scratch, java=java, profile=profile)


def _jvm(release: str) -> Path | None:
    """The JVM for a release's programs; None for Go. Raises MissingTool if it is not here."""
    return jdks.system(release).java if versions.key(release) == "jdk" else None


def packed_plan(pack: Manifest, table: Mapping[str, Job]) -> PackedPlan:
    """The plan of a pack on this machine: the jobs for which it has the JDK and the CPUs."""
    described = {**machine.describe(), **pack["made"]}
    plan = PackedPlan(
        pack["studies"],
        BUDGETS[pack["budget"]],
        planning.settled,
        described,
        missing=dict(pack["missing"]),
        programs=pack["programs"],
        compilers=pack["compilers"],
        random_layouts=dict(pack["random_layout"]),
        pack=pack,
    )
    for release in {job["release"] for job in table.values()}:
        try:
            _jvm(release)
        except MissingTool as error:
            plan.missing[release] = str(error)
            plan.random_layouts.pop(release, None)
    fits = planning.fitting(table.values(), described)
    plan.add(job for job in fits if job["release"] not in plan.missing)
    return plan


def main() -> int:
    """Measure, and write the run as an archive; return the exit code."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(ending, signal.default_int_handler)
    try:
        plan = packed_plan(load(paths.ROOT), jobtable.read(paths.ROOT / "jobs.csv"))
        for reason in plan.missing.values():
            print(f"not measured: {reason}", file=sys.stderr)
        run = campaign.measure(plan, PrintedProgress(), again=True)
        archive = run.archive()
    except GccostError as error:
        said, code = str(error), error.exit_code
    except OSError as error:
        said, code = str(refused(error)), 1
    except KeyboardInterrupt:
        said, code = "Interrupted. Completed samples are saved; resume with: ./run", 130
    else:
        print(f"the run is in {archive}\nTo add it: copy it to a clone of gccost, and there")
        print(f"  .venv/bin/python -m gccost add {archive.name}")
        return 0
    print(f"gccost: {said}", file=sys.stderr)
    return code


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("usage: ./run, without arguments; see the comments in it")
    sys.exit(main())
