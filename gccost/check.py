"""Finalizers and cleanups in a Go module that harm, or cost more than they need to.

The rules are Go code, `gosrc/check`, which is built once and then reads a module's sources. Here
their findings get their prices, from the recorded run of chapter 8.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from filelock import FileLock

from gccost import paths, processes
from gccost.cases import versions
from gccost.cases.sources import hash_of_go
from gccost.costs.recording import Recording
from gccost.errors import GccostError, failed_build
from gccost.files import write_whole, writing
from gccost.judging.opening import reference
from gccost.judging.quantities import Amount
from gccost.judging.rounding import plain, rounded
from gccost.measuring import builds, toolchains
from gccost.measuring.toolchains import Toolchain
from gccost.processes import Environment
from gccost.progress import Say
from gccost.studies import handles

RULES = {
    "use-after-free": "an object may be freed while C uses its pointer",
    "never-runs": "a finalizer or cleanup that never runs",
    "close-pays": "a Close that frees, and leaves the finalizer or cleanup",
    "expensive-size": "an object of a size that is expensive to register on",
    "blocks-all": "a finalizer or cleanup that stops the others",
    "not-the-object": "registered on a part of an object, a package variable, or twice",
}
ANY = "any"  # rule
CHAPTER = "notebooks/12-in-the-wild.ipynb"
PROGRAM = "check"  # in gosrc
OLDEST = (1, 24)  # Go release that builds it
SECONDS = 600  # after which it counts as hung
BASELINE = 64  # bytes
_BENCHMARKS = {"SetFinalizer": "HandleFinalizer", "AddCleanup": "HandleCleanup"}
_NAMES = {"SetFinalizer": "a finalizer", "AddCleanup": "a cleanup"}
_SIZE = re.compile(r"(\w+)/bytes=(\d+)")
_SHOWN = 3  # places of what was not checked
# Nothing is downloaded. Without a proxy Go cannot ask for sums either.
_OFFLINE = {"GOPROXY": "off", "GOSUMDB": "off"}

Answer = dict[str, Any]
Prices = dict[str, dict[int, float]]


class BadInput(GccostError):
    """A folder that is not a Go module, or sources that cannot be read."""

    exit_code = 2


def known_release(release: str) -> str:
    """A Go release such as "1.24" or "1.24.13", without its patch number.

    Raises BadInput if gccost does not know it.
    """
    minors = [f"1.{versions.number(each)[1]}" for each in versions.GO_RELEASES]
    minor = ".".join(release.split(".")[:2])
    if not re.fullmatch(r"1\.\d+(\.\d+)?", release) or minor not in minors:
        hint = f"name one from {minors[0]} to {minors[-1]}"
        raise BadInput(f"there is no Go release {release!r} here", "--go", hint)
    return minor


def check(folder: Path, patterns: tuple[str, ...], release: str, tags: str, say: Say) -> Answer:
    """Check the packages of the module in a folder, as JSON has the answer.

    `release` is the oldest Go release to check for; if it is empty, the one of go.mod. Raises
    BadInput if the folder is in no module, or a file cannot be parsed.
    """
    environment = _environment()
    named = known_release(release) if release else _release_of(folder, environment)
    measured, prices = prices_for(named)
    options = ["-json", "-prices", str(write_prices(measured, prices)), "-tags", tags]
    if release:
        options += ["-release", named]
    command = [str(program(say)), *options, str(folder), *(patterns or ("./...",))]
    done = processes.run(command, env=environment, limit=SECONDS)
    if done.returncode not in (0, 3) or not done.stdout:
        raise _failed(done, folder)
    answer: Answer = json.loads(done.stdout)
    _refuse(answer, folder)
    answer["prices_of"] = measured
    for finding in answer["findings"]:
        finding["cost"] = _cost(finding, prices)
        finding["chapter"] = f"{CHAPTER}#{finding['rule']}"
    return answer


def _failed(done: CompletedProcess[str], folder: Path) -> GccostError:
    """The error of the go command, which does not list the module."""
    said = done.stderr.strip().removeprefix(f"{folder}: ")
    if said.startswith("panic: "):
        return GccostError(
            f"the program failed:\n{said}", f"gosrc/{PROGRAM}", "report it, with this"
        )
    return BadInput(said or "the module cannot be read", str(folder), "see what go list ./... says")


def _refuse(answer: Answer, folder: Path) -> None:
    """Raise BadInput for a file that cannot be parsed, and if no pattern matches a Go file."""
    for problem in answer["problems"]:
        if problem["syntax"]:
            hint = "make it compile first: go build ./..."
            raise BadInput(problem["message"], problem["place"], hint)
    if not answer["packages"]:
        whys = [each["message"] for each in answer["problems"][:1]]
        why = f" ({whys[0]})" if whys else ""
        hint = "name packages with Go files for this platform, and --tags if they need some"
        raise BadInput(f"no package has Go files to check{why}", str(folder), hint)


# --- Building -------------------------------------------------------------


def _toolchain(say: Say) -> Toolchain:
    """A Go that can build the program: the machine's, or else today's."""
    driver = toolchains.driver(say)
    if versions.number(driver.version) >= OLDEST:
        return driver
    return toolchains.fetch(versions.TODAY_GO, say)


def program(say: Say) -> Path:
    """The program of gosrc/check, built if it is missing. Raises GccostError if that fails."""
    toolchain = _toolchain(say)
    name = f"{PROGRAM}-{toolchain.version}-{hash_of_go([PROGRAM])[:12]}"
    binary = paths.CACHE / PROGRAM / name
    with writing(binary):
        binary.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(binary.with_name(f"{name}.lock")):
        if binary.exists():
            return binary
        say("building gosrc/check, once")
        builds.fetch_modules([PROGRAM])
        # Without cgo no C compiler is needed.
        environment = toolchain.alone() | {"CGO_ENABLED": "0", "GOFLAGS": ""}
        unfinished = binary.with_name(f"{name}.new")
        command = [str(toolchain.go), "build", "-trimpath", "-o", str(unfinished), "."]
        folder = paths.GOSRC / PROGRAM
        done = processes.run(command, cwd=folder, env=environment, limit=builds.BUILD_SECONDS)
        if done.returncode:
            hint = "see whether Go builds it in a shell: cd gosrc/check && go build"
            raise failed_build(done, f"gosrc/{PROGRAM}", hint, [binary.parent])
        unfinished.replace(binary)
    return binary


def _environment() -> Environment:
    """The user's own environment, with a go command, and without downloads."""
    environment = {**os.environ, **_OFFLINE}
    if not shutil.which("go"):
        found = toolchains.find_driver()
        if found:
            folder = str(found.goroot / "bin")
            environment["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])
    return environment


def _release_of(folder: Path, environment: Environment) -> str:
    """The Go release that a module names, such as "1.25"; today's if it names none.

    Raises BadInput if the folder is in no module.
    """
    if not folder.is_dir():
        raise BadInput("there is no such folder", str(folder), "name a folder of a Go module")
    done = processes.run(["go", "env", "GOMOD"], cwd=folder, env=environment)
    go_mod = Path(done.stdout.strip() or os.devnull)
    if done.returncode:
        raise BadInput(done.stderr.strip(), str(folder), "see what go env says there")
    if go_mod == Path(os.devnull):
        hint = "name the folder of a Go module with -C, or make one: go mod init NAME"
        raise BadInput("there is no go.mod in this folder or above it", str(folder), hint)
    text = go_mod.read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^go\s+(\d+\.\d+)", text, re.MULTILINE)
    return found[1] if found else ".".join(versions.TODAY_GO.split(".")[:2])


# --- Prices ---------------------------------------------------------------


@cache
def prices_for(release: str) -> tuple[str, Prices]:
    """The measured release next to a named one, and the prices on it.

    It is the oldest measured release that is as new, or else the newest. Prices are ns an object,
    by what registers and by the object's size in bytes; under "manual free" the size is 0.
    """
    recording = Recording(handles.STUDY, reference(handles.STUDY))
    measured = [each for each in recording.releases if _has(recording, each, "AddCleanup")]
    newer = [each for each in measured if versions.number(each)[:2] >= versions.number(release)]
    chosen = (newer or measured[-1:])[0]
    found: Prices = defaultdict(dict)
    for api, benchmark in _BENCHMARKS.items():
        for size in _sizes(recording, benchmark):
            found[api][size] = _price(recording, f"{benchmark}/bytes={size}", chosen)
    found["manual free"][0] = _price(recording, "HandleFree", chosen)
    return chosen, dict(found)


def _sizes(recording: Recording, benchmark: str) -> list[int]:
    """The sizes of handles (bytes) for which a benchmark was measured."""
    found = (_SIZE.match(name) for name in recording.jobs)
    return sorted({int(each[2]) for each in found if each and each[1] == benchmark})


def _has(recording: Recording, release: str, api: str) -> bool:
    case = f"{_BENCHMARKS[api]}/bytes={BASELINE}"
    return _price(recording, case, release) > 0


def _price(recording: Recording, case: str, release: str) -> float:
    return float(Amount(case, "settled_ns").on(recording, release).value)


def write_prices(measured: str, prices: Prices) -> Path:
    """The file of prices that the rules read."""
    nanoseconds = {api: prices[api] for api in _BENCHMARKS}
    path = paths.CACHE / PROGRAM / f"prices-{measured}.json"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"nanoseconds": nanoseconds}).encode()
    with FileLock(path.with_name(f"{path.name}.lock")):  # two checks may run at once
        if not path.exists() or path.read_bytes() != text:
            write_whole(path, text)
    return path


def _cost(finding: Answer, prices: Prices) -> Answer | None:
    """What the finding's object costs (ns); None if its size is unknown."""
    by_size = prices[finding["api"]]
    sizes = [size for size in by_size if size >= finding["class"]]
    if finding["class"] < 0 or not sizes:
        return None
    return {
        "ns": rounded(by_size[min(sizes)]),
        "ns_of_64_bytes": rounded(by_size[BASELINE]),
        "ns_of_manual_free": rounded(prices["manual free"][0]),
    }


# --- Reading --------------------------------------------------------------


def lines(answer: Answer) -> Iterator[str]:
    """Write what `check` found for reading."""
    for problem in answer["problems"]:
        place = f"{problem['place']}: " if problem["place"] else ""
        yield f"{place}{problem['message']} (what this leaves without a type is not checked)"
    for finding in answer["findings"]:
        yield from _finding(finding, answer["prices_of"])
    yield from _unchecked(answer["unchecked"])
    yield (
        f"{answer['packages']:,} packages, {answer['lines']:,} lines; finalizers and cleanups "
        f"registered: {len(answer['registrations']):,}; findings: {len(answer['findings']):,}."
    )


def _finding(finding: Answer, release: str) -> Iterator[str]:
    yield f"{finding['place']}: {finding['what']}. [{finding['rule']}]"
    if cost := finding["cost"]:
        yield (
            f"    it costs: {_NAMES[finding['api']]} on {finding['class']} bytes "
            f"{plain(cost['ns'])} ns an object (on 64 bytes {plain(cost['ns_of_64_bytes'])} ns; "
            f"a manual free {plain(cost['ns_of_manual_free'])} ns; Go {release}, as recorded)"
        )
    yield f"    to fix it: {finding['do']}"
    yield f"    why: {finding['chapter']}"


def _unchecked(places: list[Answer]) -> Iterator[str]:
    """What was not checked, by rule and reason."""
    by_reason = defaultdict(list)
    for each in places:
        by_reason[each["rule"], each["why"]].append(each["place"])
    for (rule, why), found in by_reason.items():
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        yield f"not checked for {rule}: {', '.join(found[:_SHOWN])}{more}: {why}"
