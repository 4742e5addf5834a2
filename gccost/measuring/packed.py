"""The runner of a pack: measures on a machine that has only Python's standard library.

It lies in an unpacked pack (see `gccost.measuring.pack`), whose `run` starts it. Rounds,
samples and the run folder are those of every campaign. Verdicts need libraries, so all claims
whose cases are all measured share what is left of the budget after the first rounds. With
`--serve` it only takes the samples that `gccost.measuring.fleet` asks for.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import queue
import signal
import sys
import tarfile
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gccost import paths, processes
from gccost.errors import GccostError, MissingTool, refused
from gccost.files import writing
from gccost.measuring import (
    benchfmt,
    campaign,
    jobs,
    languages,
    machine,
    planning,
    sampler,
    toolchains,
)
from gccost.measuring.benchfmt import Sample
from gccost.measuring.cases import BUDGETS, LOOKS, Build, Case, Study, Variant
from gccost.measuring.machine import GOARCH
from gccost.measuring.planning import Plan, Questions, Standing, Want
from gccost.measuring.progress import PrintedProgress
from gccost.measuring.runs import Run

FORMAT = 3  # of pack.json and of the answers to a campaign
PROGRAMS = "programs"  # the folder of the binaries
_BOOT = Path("/proc/sys/kernel/random/boot_id")  # one for all containers of a machine
_UNPACK = "unpack the archive again, or make the pack again"


def build_name(build: Build) -> str:
    """A build's name in pack.json and in its binaries' names."""
    program = build.program.replace("/", ".")
    ((name, number),) = toolchains.named(build.release).items()
    parts = (program, f"{name}{number}", build.runtime, "relinked" * build.relinked)
    return "-".join(filter(None, parts))


def study_json(study: Study, cases: tuple[Case, ...]) -> dict[str, Any]:
    """A study with some of its cases, as plain JSON; `read_study` reads it."""
    return {
        "name": study.name,
        "document": study.document,
        "cases": [vars(case) | {"variant": vars(case.variant)} for case in cases],
    }


def read_study(entry: Mapping[str, Any]) -> Study:
    """The study that `study_json` wrote."""

    def variant(fields: Mapping[str, Any]) -> Variant:
        pairs = {name: tuple(map(tuple, fields[name])) for name in ("sub", "more")}
        return Variant(**{**fields, **pairs})

    cases = tuple(Case(**{**case, "variant": variant(case["variant"])}) for case in entry["cases"])
    return Study(entry["name"], "", "", cases, entry["document"])


@dataclass(frozen=True)
class PackedPlan(Plan):
    """A plan whose programs are already built; `pack` is the content of pack.json."""

    pack: Mapping[str, Any] = field(default_factory=dict)

    def build(self, what: Build, owner: Study, layout: int, into: Path, run: Any) -> Path:
        """A program's folder, or one of its binaries, which differ by their layouts."""
        files: list[str] = list(self.pack["binaries"][build_name(what)])
        return paths.ROOT / PROGRAMS / Path(files[layout % len(files)]).parts[0]

    def sample(self, binary: Path, case: Case, scratch: Path, profile: Path | None) -> Sample:
        language = languages.of(self.owners[case.name])
        java = language.java(language.find_packed(case.release))
        return sampler.sample(jobs.job(case), binary, scratch, java=java, profile=profile)


def plan(
    pack: Mapping[str, Any],
    described: Mapping[str, Any],
    lacking: Mapping[str, str],
    kind: Callable[..., PackedPlan] = PackedPlan,
    **more: Any,
) -> PackedPlan:
    """The plan of a pack on the machine described, of a kind that may need `more` fields.

    `lacking` has what the machine `lacks`, as reasons by release.
    """
    description = {**described, **pack["made"]}
    budget = BUDGETS[pack["budget"]]
    studies = tuple(map(read_study, pack["studies"]))
    judged = {name for claim in pack["claims"] for name in claim}
    cases = {case.name: case for study in studies for case in study.cases}
    names = frozenset((cases[name].variant, cases[name].release) for name in judged & cases.keys())
    questions = Questions(judged=names, needed=names, standing=lambda run: standing(run, pack))
    made = kind(
        studies,
        budget,
        questions,
        description,
        missing={**pack["missing"], **lacking},
        programs=pack["programs"],
        compilers=pack["compilers"],
        random_layouts={k: v for k, v in pack["random_layout"].items() if k not in lacking},
        pack=pack,
        **more,
    )
    for study in studies:
        for case in planning.fitting(study, budget, questions, description):
            if case.release not in lacking:
                made.pool.setdefault(case.name, case)
                made.owners.setdefault(case.name, study)
    return made


def lacks(pack: Mapping[str, Any]) -> dict[str, str]:
    """Why this machine cannot run the pack's programs of some releases, by release."""
    lacking = {}
    for study in map(read_study, pack["studies"]):
        for release in study.releases:
            try:
                languages.of(study).find_packed(release)
            except MissingTool as error:
                lacking[release] = str(error)
    return lacking


def standing(run: Run, pack: Mapping[str, Any]) -> Standing:
    """Another round for each claim, up to the last look."""
    taken = run.reading().samples.values()
    seen = {(sample.full_name, sample.metrics.get("round", 0.0)) for sample in taken}
    rounds = Counter(name for name, _ in seen)
    open_ = (claim for claim in pack["claims"] if min(rounds[c] for c in claim) < LOOKS[-1])
    return Standing(tuple(Want(tuple(claim), 1) for claim in open_))


# --- Checks ---------------------------------------------------------------------------


def load(folder: Path) -> dict[str, Any]:
    """Read pack.json and check that the pack is whole and fits this machine.

    Raises GccostError if it is damaged, or made for another processor or a newer C library,
    or lies where no program may be started.
    """
    path = folder / "pack.json"
    try:
        pack: dict[str, Any] = json.loads(path.read_bytes())
        check_format(pack, str(path))
    except (OSError, ValueError, AttributeError) as error:
        raise GccostError(f"the pack cannot be read: {error}", str(path), _UNPACK) from None
    here = platform.machine()
    if platform.system() != "Linux" or GOARCH.get(here) != pack["goarch"]:
        raise GccostError(
            f"the pack is for Linux on {pack['goarch']}, this is {platform.system()} on {here}",
            str(folder),
            f"make a pack for this machine: gccost pack --arch {GOARCH.get(here, 'amd64')}",
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
            found = digest(path)
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            raise GccostError(why, str(path), _UNPACK) from None
        if found != known:
            raise GccostError("the program is damaged: its hash differs", str(path), _UNPACK)


def check_format(pack: Mapping[str, Any], where: str) -> None:
    if pack.get("format") != FORMAT:
        raise GccostError(f"the pack has format {pack.get('format')}", where, "make the pack again")


def _check_libc(needed: str, folder: Path) -> None:
    name, version = platform.libc_ver()
    if name != "glibc" or _numbers(version) < _numbers(needed):
        raise GccostError(
            f"the programs need glibc {needed} or newer, this machine has "
            f"{name or 'another C library'} {version}".strip(),
            str(folder),
            "make a pack for an older glibc: gccost pack --old-libc",
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
        pack = load(paths.ROOT)
        lacking = lacks(pack)
        for why in lacking.values():
            print(f"not measured: {why}", file=sys.stderr)
        run = campaign.measure(plan(pack, machine.describe(), lacking), PrintedProgress())
        archive = run.folder.with_name(f"{run.name}.tar.gz")
        with writing(archive), tarfile.open(archive, "w:gz") as tar:
            tar.add(run.folder, run.name)
    except GccostError as error:
        said, code = str(error), error.exit_code
    except OSError as error:
        said, code = str(refused(error)), 1
    except KeyboardInterrupt:
        said, code = "Interrupted. Completed samples are saved; resume with: ./run", 130
    else:
        print(f"the run is in {archive}\ncopy it back, and add it there: gccost add {archive.name}")
        return 0
    print(f"gccost: {said}", file=sys.stderr)
    return code


# --- Samples for a campaign on many machines -------------------------------------------------


def serve() -> int:
    """Take the samples that standard input asks for, a line of JSON each; return the exit code.

    First describes the machine. The end of the input ends the program being measured, so none
    goes on when the worker that started this process has died.
    """
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            asked.put(json.loads(line))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=read, daemon=True).start()
    try:
        pack = load(paths.ROOT)
        described, lacking = machine.describe(), lacks(pack)
        mine = plan(pack, described, lacking)
        mark = digest(paths.ROOT / "pack.json")
        answer = {
            "described": described,
            "lacking": lacking,
            "host": platform.node(),
            "pack": mark,
        }
        while True:
            print(json.dumps(answer | _state()), flush=True)
            request = asked.get()
            with tempfile.TemporaryDirectory() as scratch:
                answer = _answer(mine, request["case"], request["program"], Path(scratch))
    except GccostError as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        return 1
    except KeyboardInterrupt:
        return 0


def _state() -> dict[str, str]:
    """What stays the same from one sample to the next."""
    boot, described = _BOOT.read_text().strip(), machine.describe()
    return {"boot": boot, "fingerprint": machine.fingerprint(described)}


def _answer(mine: PackedPlan, name: str, program: str, scratch: Path) -> dict[str, Any]:
    """A sample of a case as a line, with the files that its process wrote, or why it failed."""
    case = mine.pool[name]
    binary = paths.ROOT / PROGRAMS / program
    files = mine.pack["binaries"][build_name(case.build)]
    _check_files({n: mark for n, mark in files.items() if Path(n).parts[0] == program}, paths.ROOT)
    profile = scratch / "cpu.pb.gz" if case.variant.profile else None
    try:
        sample = mine.sample(binary, case, scratch, profile)
    except sampler.SampleFailed as failure:
        return {"failed": failure.message}
    kept = (path for path in (profile, scratch / sampler.TRACE) if path and path.exists())
    files = {path.name: base64.b64encode(path.read_bytes()).decode() for path in kept}
    return {"line": benchfmt.format_line(sample), "files": files}


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--serve"]):
        sys.exit("usage: ./run, without arguments; see the comments in it")
    sys.exit(serve() if sys.argv[1:] else main())
