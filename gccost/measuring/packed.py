"""The runner of a pack: measures its jobs on a machine that has only Python's standard library.

It lies in an unpacked pack (see `gccost.measuring.pack`), whose `run` starts it. Each call adds a
sitting of the budget's first rounds to the run of this machine, as any campaign does, and an
interrupted sitting resumes. Verdicts need libraries, so none decides what is measured further.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gccost import paths, processes
from gccost.cases import versions
from gccost.cases.cases import BUDGETS
from gccost.cases.jobs import Build
from gccost.errors import GccostError, MissingTool, refused
from gccost.measuring import campaign, jdks, machine, sampler
from gccost.measuring.planning import Plan, fitting, settled
from gccost.progress import PrintedProgress
from gccost.run import jobtable
from gccost.run.benchfmt import Sample
from gccost.run.jobtable import Job

FORMAT = 5  # of pack.json and its jobs.csv
Pack = Mapping[str, Any]  # the content of pack.json
PROGRAMS = "programs"  # the folder of the binaries
_UNPACK = "unpack the archive again, or make the pack again"


def build_name(build: Build) -> str:
    """A build's name in pack.json and in its binaries' names."""
    program = build.program.replace("/", ".")
    ((name, number),) = versions.keyed(build.release).items()
    parts = (program, f"{name}{number}", build.runtime, build.layout)
    return "-".join(filter(None, parts))


def load(folder: Path) -> Pack:
    """Read pack.json. Raises GccostError if it is damaged, or if no program starts here."""
    path = folder / "pack.json"
    try:
        pack: Pack = json.loads(path.read_bytes())
        if pack["format"] != FORMAT:
            raise ValueError(f"it has format {pack['format']}, not {FORMAT}")
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise GccostError(f"the pack is damaged: {error}", str(path), _UNPACK) from None
    for binary in list((folder / PROGRAMS).glob("*.test"))[:1]:  # there is none of Java
        try:
            done = processes.run([str(binary), "-test.list=^$"], limit=60)
            why = done.stderr.strip() if done.returncode else ""
        except OSError as error:
            why = error.strerror or str(error)
        if why:
            hint = f"use {pack['needs']}, and a disk that is not mounted noexec"
            raise GccostError(f"no program can be started here: {why}", str(binary), hint)
    return pack


@dataclass(frozen=True)
class PackedPlan(Plan):
    """A plan whose programs are already built; `pack` is the content of pack.json."""

    pack: Pack = field(default_factory=dict)

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


def plan(pack: Pack, table: Mapping[str, Job]) -> PackedPlan:
    """The plan of a pack on this machine: the jobs for which it has the JDK and the CPUs."""
    described = {**machine.describe(), **pack["made"]}
    made = PackedPlan(
        pack["studies"],
        BUDGETS[pack["budget"]],
        settled,
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
            made.missing[release] = str(error)
            made.random_layouts.pop(release, None)
    fits = fitting(table.values(), described)
    made.add(job for job in fits if job["release"] not in made.missing)
    return made


def main() -> int:
    """Measure, and write the run as an archive; return the exit code."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(ending, signal.default_int_handler)
    try:
        made = plan(load(paths.ROOT), jobtable.read(paths.ROOT / "jobs.csv"))
        for why in made.missing.values():
            print(f"not measured: {why}", file=sys.stderr)
        archive = campaign.measure(made, PrintedProgress(), again=True).archive()
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
