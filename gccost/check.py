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
_APIS = {"HandleFinalizer": "SetFinalizer", "HandleCleanup": "AddCleanup"}  # by benchmark
_BY_HAND = "HandleFree"  # benchmark
_NAMES = {"SetFinalizer": "a finalizer", "AddCleanup": "a cleanup"}
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
    minors = [_minor(each) for each in versions.GO_RELEASES]
    if re.fullmatch(r"1\.\d+(\.\d+)?", release) and _minor(release) in minors:
        return _minor(release)
    hint = f"name one from {minors[0]} to {minors[-1]}"
    raise BadInput(f"there is no Go release {release!r} here", "--go", hint)


def _minor(release: str) -> str:
    """A release without its patch number."""
    return ".".join(release.split(".")[:2])


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
        rule = finding["rule"]
        finding["cost"] = _cost(finding, prices)
        finding["chapter"] = f"{CHAPTER}#{rule}"
    return answer


def _failed(done: CompletedProcess[str], folder: Path) -> GccostError:
    """The error of the go command, which does not list the module."""
    said = done.stderr.strip().removeprefix(f"{folder}: ")
    if said.startswith("panic: "):
        problem = f"the program failed:\n{said}"
        return GccostError(problem, f"gosrc/{PROGRAM}", "report it, with this")
    said = said or "the module cannot be read"
    return BadInput(said, str(folder), "see what go list ./... says")


def _refuse(answer: Answer, folder: Path) -> None:
    """Raise BadInput for a file that cannot be parsed, and if no pattern matches a Go file."""
    why = ""
    for problem in answer["problems"]:
        message = problem["message"]
        if problem["syntax"]:
            hint = "make it compile first: go build ./..."
            raise BadInput(message, problem["place"], hint)
        why = why or f" ({message})"
    if not answer["packages"]:
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
        sources = paths.GOSRC / PROGRAM
        done = processes.run(command, cwd=sources, env=environment, limit=builds.BUILD_SECONDS)
        if done.returncode:
            hint = "see whether Go builds it in a shell: cd gosrc/check && go build"
            raise failed_build(done, f"gosrc/{PROGRAM}", hint, [binary.parent])
        unfinished.replace(binary)
    return binary


def _environment() -> Environment:
    """The user's own environment, with a go command, and without downloads."""
    environment = {**os.environ, **_OFFLINE}
    found = None if shutil.which("go") else toolchains.find_driver()
    if found:
        path = os.environ.get("PATH", os.defpath)
        environment["PATH"] = f"{found.goroot / 'bin'}{os.pathsep}{path}"
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
    if found:
        return found[1]
    return _minor(versions.TODAY_GO)


# --- Prices ---------------------------------------------------------------


@cache
def prices_for(release: str) -> tuple[str, Prices]:
    """The measured release next to a named one, and the prices on it.

    It is the oldest measured release that is as new, or else the newest. Prices are ns an object,
    by what registers and by the object's size in bytes; under "manual free" the size is 0.
    """
    recording = Recording(handles.STUDY, reference(handles.STUDY))
    chosen = _measured_for(recording, release)
    found: Prices = defaultdict(dict)
    for job in recording.jobs:
        case, measured, _ = job.partition(f"/go={chosen}/")
        benchmark, _, size = case.partition("/bytes=")
        if measured and benchmark in _APIS:
            api = _APIS[benchmark]
            found[api][int(size)] = _price(recording, case, chosen)
    found["manual free"][0] = _price(recording, _BY_HAND, chosen)
    return chosen, dict(found)


def _measured_for(recording: Recording, release: str) -> str:
    """The oldest release with measured cleanups that is as new as one, or else the newest."""
    wanted = versions.number(release)
    case = f"HandleCleanup/bytes={BASELINE}"
    measured = ""
    for each in recording.releases:
        if _price(recording, case, each) > 0:
            measured = each
            if versions.number(each)[:2] >= wanted:
                break
    return measured


def _price(recording: Recording, case: str, release: str) -> float:
    amount = Amount(case, "settled_ns")
    return float(amount.on(recording, release).value)


def write_prices(measured: str, prices: Prices) -> Path:
    """The file of prices that the rules read. Two checks may write it at once."""
    nanoseconds = {api: prices[api] for api in _NAMES}
    path = paths.CACHE / PROGRAM / f"prices-{measured}.json"
    text = json.dumps({"nanoseconds": nanoseconds}).encode()
    if not path.exists() or path.read_bytes() != text:
        write_whole(path, text)
    return path


def _cost(finding: Answer, prices: Prices) -> Answer | None:
    """What the finding's object costs (ns); None if its size is unknown."""
    wanted = finding["class"]
    if wanted < 0:
        return None
    by_size = prices[finding["api"]]
    for size in sorted(by_size):
        if size >= wanted:
            return {
                "ns": rounded(by_size[size]),
                "ns_of_64_bytes": rounded(by_size[BASELINE]),
                "ns_of_manual_free": rounded(prices["manual free"][0]),
            }
    return None


# --- Reading --------------------------------------------------------------


def lines(answer: Answer) -> Iterator[str]:
    """Write what `check` found for reading."""
    for problem in answer["problems"]:
        place, message = problem["place"], problem["message"]
        if place:
            message = f"{place}: {message}"
        yield f"{message} (what this leaves without a type is not checked)"
    for finding in answer["findings"]:
        yield from _finding(finding, answer["prices_of"])
    yield from _unchecked(answer["unchecked"])
    count, read = answer["packages"], answer["lines"]
    packages = "1 package" if count == 1 else f"{count:,} packages"
    registered, found = len(answer["registrations"]), len(answer["findings"])
    yield (
        f"{packages}, {read:,} lines; finalizers and cleanups registered: "
        f"{registered:,}; findings: {found:,}."
    )


def _finding(finding: Answer, release: str) -> Iterator[str]:
    place, what, rule = finding["place"], finding["what"], finding["rule"]
    yield f"{place}: {what}. [{rule}]"
    if cost := finding["cost"]:
        registered = _NAMES[finding["api"]]
        size = finding["class"]
        own = plain(cost["ns"])
        baseline = plain(cost["ns_of_64_bytes"])
        by_hand = plain(cost["ns_of_manual_free"])
        yield (
            f"    it costs: {registered} on {size} bytes {own} ns an object (on 64 bytes "
            f"{baseline} ns; a manual free {by_hand} ns; Go {release}, as recorded)"
        )
    do, chapter = finding["do"], finding["chapter"]
    yield f"    to fix it: {do}"
    yield f"    why: {chapter}"


def _unchecked(places: list[Answer]) -> Iterator[str]:
    """What was not checked, by rule and reason."""
    by_reason = defaultdict(list)
    for each in places:
        reason = each["rule"], each["why"]
        by_reason[reason].append(each["place"])
    for (rule, why), found in by_reason.items():
        named = ", ".join(found[:_SHOWN])
        left = len(found) - _SHOWN
        if left > 0:
            named += f" and {left} more"
        yield f"not checked for {rule}: {named}: {why}"
