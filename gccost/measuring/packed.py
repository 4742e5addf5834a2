"""The runner of a pack: measures on a machine that has only Python's standard library.

It lies in an unpacked pack (see `gccost.measuring.pack`), whose `run` starts it. Rounds,
samples and the run folder are those of every campaign. Verdicts need libraries, so all claims
whose cases are all measured share what is left of the budget after the first rounds. With
`--for SECONDS` it measures a part for `gccost.measuring.fleet`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import sys
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gccost import paths, processes
from gccost.errors import GccostError, MissingTool, refused
from gccost.files import writing
from gccost.measuring import campaign, jdks, machine, planning, sampler, toolchains
from gccost.measuring.benchfmt import Sample
from gccost.measuring.cases import BUDGETS
from gccost.measuring.jobs import Build, Job
from gccost.measuring.machine import GOARCH
from gccost.measuring.planning import OpenQuestion, Plan, Standing
from gccost.measuring.progress import MEASURING, PrintedProgress
from gccost.measuring.runs import Run

FORMAT = 5  # of pack.json and of the answers to a campaign
Pack = Mapping[str, Any]  # the content of pack.json
PROGRAMS = "programs"  # the folder of the binaries
_BOOT = Path("/proc/sys/kernel/random/boot_id")  # one for all containers of a machine
_MOST_ROUNDS = 320  # of a claim in one sitting
_UNPACK = "unpack the archive again, or make the pack again"


def build_name(build: Build) -> str:
    """A build's name in pack.json and in its binaries' names."""
    program = build.program.replace("/", ".")
    ((name, number),) = toolchains.keyed(build.release).items()
    parts = (program, f"{name}{number}", build.runtime, "relinked" * build.relinked)
    return "-".join(filter(None, parts))


@dataclass(frozen=True)
class PackedPlan(Plan):
    """A plan whose programs are already built; `pack` is the content of pack.json."""

    pack: Pack = field(default_factory=dict)

    def build(self, what: Build, layout: int, into: Path, run: Any, target: str = "") -> Path:
        """A program's folder, or one of its binaries, which differ by their layouts."""
        files = list(self.pack["binaries"][build_name(what)])
        name: str = files[layout % len(files)]
        return paths.ROOT / PROGRAMS / Path(name).parts[0]

    def sample(self, binary: Path, job: Job, scratch: Path, profile: Path | None) -> Sample:
        java = _jvm(job["release"])
        return sampler.sample(job, binary, scratch, java=java, profile=profile)


def _jvm(release: str) -> Path | None:
    """The JVM for a release's programs; None for Go. Raises MissingTool if it is not here."""
    return jdks.system(release).java if toolchains.key(release) == "jdk" else None


def plan(pack: Pack, described: machine.Description, lacking: Mapping[str, str]) -> PackedPlan:
    """The plan of a pack on the machine described.

    `lacking` has what the machine `lacks`, as reasons by release.
    """
    layouts = pack["random_layout"].items()
    made = PackedPlan(
        pack["studies"],
        BUDGETS[pack["budget"]],
        lambda run: standing(run, pack),
        {**described, **pack["made"]},
        missing={**pack["missing"], **lacking},
        programs=pack["programs"],
        compilers=pack["compilers"],
        random_layouts={release: new for release, new in layouts if release not in lacking},
        pack=pack,
    )
    fits = planning.fitting(pack["jobs"], made.description)
    made.add(job for job in fits if job["release"] not in lacking)
    return made


def lacks(pack: Pack) -> dict[str, str]:
    """Why this machine cannot run the pack's programs of some releases, by release."""
    lacking = {}
    for release in {job["release"] for job in pack["jobs"]}:
        try:
            _jvm(release)
        except MissingTool as error:
            lacking[release] = str(error)
    return lacking


def standing(run: Run, pack: Pack) -> Standing:
    """Another round for each claim, up to a number that narrows nothing any more."""
    taken = run.reading().samples.values()
    seen = {(sample.full_name, sample.metrics.get("round", 0.0)) for sample in taken}
    rounds = Counter(name for name, _ in seen)
    open_questions = []
    for claim in pack["claims"]:
        if min(rounds[case] for case in claim) < _MOST_ROUNDS:
            open_questions.append(OpenQuestion(tuple(claim), 1))
    return Standing(tuple(open_questions))


# --- Checks ---------------------------------------------------------------------------


def load(folder: Path) -> Pack:
    """Read pack.json and check that the pack is whole and fits this machine.

    Raises GccostError if it is damaged, or made for another processor or a newer C library,
    or lies where no program may be started.
    """
    path = folder / "pack.json"
    try:
        pack: Pack = json.loads(path.read_bytes())
        check_format(pack, str(path))
    except (OSError, ValueError, AttributeError) as error:
        raise GccostError(f"the pack cannot be read: {error}", str(path), _UNPACK) from None
    here = platform.machine()
    if platform.system() != "Linux" or GOARCH.get(here) != pack["goarch"]:
        raise GccostError(
            f"the pack is for Linux on {pack['goarch']}, this is {platform.system()} on {here}",
            str(folder),
            f"make one for this machine: python -m gccost pack --arch {GOARCH.get(here, 'amd64')}",
        )
    files = {name: mark for built in pack["binaries"].values() for name, mark in built.items()}
    _check_files(files, folder)
    if name := next((name for name in files if "/" not in name), None):  # not of Java
        _check_libc(pack["glibc"], folder)
        _check_start(folder / PROGRAMS / name)
    return pack


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _check_files(files: Mapping[str, str], folder: Path) -> None:
    for name, known in files.items():
        path = folder / PROGRAMS / name
        try:
            actual = digest(path)
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            raise GccostError(why, str(path), _UNPACK) from None
        if actual != known:
            raise GccostError("the program is damaged: its hash differs", str(path), _UNPACK)


def check_format(pack: Pack, where: str) -> None:
    if pack.get("format") != FORMAT:
        raise GccostError(f"the pack has format {pack.get('format')}", where, "make the pack again")


def _check_libc(needed: str, folder: Path) -> None:
    name, version = platform.libc_ver()
    if name != "glibc" or _numbers(version) < _numbers(needed):
        raise GccostError(
            f"the programs need glibc {needed} or newer, this machine has "
            f"{name or 'another C library'} {version}".strip(),
            str(folder),
            "make a pack for an older glibc: python -m gccost pack --old-libc",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _check_start(binary: Path) -> None:
    try:
        done = processes.run([str(binary), "-test.list=^$"], limit=60)
    except OSError as error:
        raise GccostError(
            f"no program can be started here: {error.strerror or error}",
            str(binary.parent),
            "unpack the pack on a disk that is not mounted noexec",
        ) from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[0]
        raise GccostError(f"the program does not run: {said}", str(binary), _UNPACK)


# --- The command ------------------------------------------------------------------------


def main() -> int:
    """Measure, and write the run as an archive; return the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run = campaign.measure(_plan_here(), PrintedProgress())
        archive = archived(run)
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


def _plan_here() -> PackedPlan:
    pack = load(paths.ROOT)
    lacking = lacks(pack)
    for why in lacking.values():
        print(f"not measured: {why}", file=sys.stderr)
    return plan(pack, machine.describe(), lacking)


def archived(run: Run) -> Path:
    """Write a run as an archive next to it, and return the archive."""
    archive = run.folder.with_name(f"{run.name}.tar.gz")
    with writing(archive), tarfile.open(archive, "w:gz") as tar:
        tar.add(run.folder, run.name)
    return archive


# --- A part of a campaign on many machines ---------------------------------------------------


def serve(seconds: float) -> int:
    """Measure for some seconds, and print as JSON what came of it; return the exit code.

    The end of standard input ends the program being measured, so none goes on when the worker
    that started this process has died.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_input, daemon=True).start()
    answer: dict[str, Any] = {"host": platform.node(), "boot": _BOOT.read_text().strip()}
    try:
        made = _plan_here()
        answer["pack"] = digest(paths.ROOT / "pack.json")
        if seconds > 0:
            if run := campaign.find(made):  # of an earlier part
                failed = run.manifest()["failed"]
                made.failures.update({case: len(whys) for case, whys in failed.items()})
            answer["finished"] = _measure_for(seconds, made)
            if run := campaign.find(made):
                answer["archive"] = str(archived(run))
    except GccostError as error:
        answer["refused"] = str(error)
    except OSError as error:
        answer["refused"] = str(refused(error))
    print(json.dumps(answer))
    return 0


def _end_with_input() -> None:
    while os.read(0, 1024):  # without a lock, which would hinder the end of this process
        pass
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _measure_for(seconds: float, plan: PackedPlan) -> bool:
    """Measure at least one sample, and more for some seconds; return whether all is measured."""
    end = time.monotonic() + seconds
    taken = -1

    def progress(done: float, total: float, doing: str, unit: str = MEASURING) -> None:
        nonlocal taken
        taken += unit == MEASURING
        if taken > 0 and time.monotonic() > end:
            raise KeyboardInterrupt

    try:
        campaign.measure(plan, progress)
    except KeyboardInterrupt:
        return False
    return True


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            sys.exit(main())
        case ["--for", seconds]:
            sys.exit(serve(float(seconds)))
        case _:
            sys.exit("usage: ./run, without arguments; see the comments in it")
