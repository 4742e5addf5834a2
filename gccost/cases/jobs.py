"""Jobs: what is measured, as rows of a table, `jobs.csv`, that lies in the run next to its samples.

A job is a case of a benchmark on one release, with a fixed number of operations N. It has the name
of its samples, its settings as typed columns, and the command that measures it. In the command
`{program}` stands for what was built, and `{java}` for the JVM. Only the standard library is needed
to read and write the table.

A case is text in the syntax of the names. The release and the usual settings may be left out:
`name("Finalize/words=8", "1.27.4")` is "Finalize/words=8/go=1.27.4/gogc=100/setting=published".
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from gccost.cases import benchmarks, versions
from gccost.cases.benchmarks import EXPERIMENTS, SETTINGS, STOCK, whole
from gccost.errors import GccostError, expect
from gccost.run.jobtable import NUMBERS, Job

_RENAMED = {"gc": "collector"}

# Because go.mod says go 1.18, new toolchains use old defaults. These are the ones that affect
# measurements, at the values of today's programs.
GODEBUG = "containermaxprocs=1,updatemaxprocs=1"
PROCESSES = 4  # of a short loop in a round: one would give a chance value
COUNTED = 10  # samples of one process, of a case that is measured as go test -count does
# What keeps CPUs busy while a command runs: a loop, or one for each CPU.
_LOADS = {
    "busy": 'while :; do :; done & "$@"; ended=$?; kill $!; exit $ended',
    "full": (
        "for cpu in $(seq $(nproc || getconf _NPROCESSORS_ONLN)); do"
        ' while :; do :; done & loops="$loops $!"; done;'
        ' "$@"; ended=$?; kill $loops; exit $ended'
    ),
}


class Build(NamedTuple):
    """The inputs of a round's binary; those with another `layout` have one of their own.

    `runtime` names a patched Go runtime (see gosrc/overlay), or is one of EXPERIMENTS; if empty,
    the release's own is used.
    """

    program: str
    release: str
    runtime: str
    layout: str


# --- From a case to its job ---------------------------------------------------------------


@cache
def name(case: str, release: str) -> str:
    """The name of a case's samples on a release, without the GOMAXPROCS suffix.

    Raises GccostError if there is no such benchmark or key, with the nearest that there is.
    """
    language = versions.key(release)
    usual = SETTINGS[language]
    benchmark, given = _parsed(case)
    given.pop(language, None)  # of a name
    row = benchmarks.of(benchmark, {**usual, **given})
    expect(benchmarks.table(), benchmark, "benchmark", case)
    order = row.keys.split()
    for key, value in given.items():
        benchmarks.check_setting(key, value, [*order, *usual], case)
    settings = dict(usual)
    if row.settings:
        _, own = _parsed(f"/{row.settings}")
        for key, text in own.items():
            settings[key] = given.get(text, text)
    settings.update(given)
    keys = {key: given[key] for key in order if key in given}
    keys |= versions.keyed(release)
    for key in usual:
        if settings[key] not in ("", STOCK):
            keys[key] = settings[key]
    return "/".join([benchmark, *_words(keys)])


def _words(keys: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in keys.items()]


def _parsed(case: str) -> tuple[str, dict[str, str]]:
    """The benchmark and the keys of a name, or of a case as text."""
    benchmark, *parts = case.split("/")
    keys: dict[str, str] = {}
    for part in parts:
        key, _, value = part.partition("=")
        if key in keys:
            raise GccostError("a key is there twice", case, "name each key once")
        keys[key] = value
    return benchmark, keys


def job(case: str, release: str) -> Job:
    """The row of a case on a release. Raises GccostError if there is no such case."""
    full = name(case, release)
    benchmark, keys = _parsed(full)
    row = benchmarks.of(benchmark, keys)
    if is_too_old(case, release):
        title = versions.title(release)
        language, _ = title.split()
        hint = f"name {language} {row.since} or later"
        raise GccostError(f"{benchmark} is not in {title}", case, hint)
    if not row.n:
        where = benchmarks.table()[benchmark][0].where
        raise GccostError(f"{full} has no n", where, "fill the column n of its line")
    benchmarks.check_program(benchmark, row.program)
    n = whole(row.n, full)
    made: Job = {
        "name": full,
        "program": row.program,
        "release": release,
        "experiment": row.experiment,
        "variant": row.variant,
        "benchmark": benchmark,
        **_settings(keys),
        "n": n,
        "retained_bytes": whole(row.retained_bytes or "0", full),
        "argv": _command(full, row.program, n),
        "env": _environment(keys, traced=row.has("traced")),
    }
    if row.cpus:
        made["cpus"] = whole(row.cpus, full)
    if _is_counted(keys):
        made["count"] = COUNTED
    return made


def _is_counted(keys: Mapping[str, str]) -> bool:
    return keys.get("method") == "count"


def is_too_old(case: str, release: str) -> bool:
    """Whether a case is measured on newer releases only."""
    benchmark, keys = _parsed(name(case, release))
    since = benchmarks.of(benchmark, keys).since
    return bool(since) and versions.age(release)[1] < versions.number(since)


def _settings(keys: Mapping[str, str]) -> Job:
    """The settings of a case as columns; `gc` says whether Go's collector is on."""
    row: Job = {}
    if "go" in keys:
        row["gc"] = "off" if keys["gogc"] == "off" else "on"
        row["runtime"] = STOCK
    for key, value in keys.items():
        if key in SETTINGS or (key, value) == ("gogc", "off"):
            continue
        column = _RENAMED.get(key, key)
        row[column] = whole(value, key) if key in NUMBERS else EXPERIMENTS.get(value, value)
    return row


# The options of every JVM: allow experimental options (ZGC on 11), exit if any thread runs
# out of memory, and log collections.
_ALWAYS = (
    "-XX:+UnlockExperimentalVMOptions -XX:-UsePerfData -Xlog:disable "
    "-Xlog:gc,gc+phases:file=gc.log -XX:+ExitOnOutOfMemoryError"
)
# The JVM options of each setting of a case; without a value they are a template.
_JVM = {
    ("gc", ""): "-XX:+Use{}GC",
    # In this JVM only the program allocates, and nothing is collected. The program must
    # continue when the heap is full.
    ("gc", "Epsilon"): "-XX:+UseEpsilonGC -XX:-UseTLAB -Xint -XX:-ExitOnOutOfMemoryError",
    ("heap", ""): "-Xms{0}m -Xmx{0}m",
    ("escape", "off"): "-XX:-DoEscapeAnalysis",
    ("finalization", ""): "--finalization={}",
    ("gcthreads", ""): "-XX:ParallelGCThreads={}",
}


def _command(full: str, program: str, n: int) -> str:
    """The command that measures a case with N operations, as a line for a shell."""
    printed = re.split("/(?:go|jdk)=", full)[0]
    _, keys = _parsed(full)
    if "go" in keys:
        return shlex.join(_go_command(printed, keys, n))
    return shlex.join(_java_command(printed, keys, program, n))


def _go_command(printed: str, keys: Mapping[str, str], n: int) -> list[str]:
    benchmark, *parts = printed.split("/")
    pattern = "/".join([f"^Benchmark({benchmark})$", *(f"^{part}$" for part in parts)])
    command = ["{program}", "-test.run=^$", f"-test.bench={pattern}"]
    if n:
        command.append(f"-test.benchtime={n}x")
    if _is_counted(keys):
        command.append(f"-test.count={COUNTED}")
    if load := _LOADS.get(keys.get("load", "")):
        command = ["sh", "-c", load, "sh", *command]
    return command


def _java_command(printed: str, keys: Mapping[str, str], program: str, n: int) -> list[str]:
    options = _ALWAYS.split()
    for key, value in keys.items():
        template = _JVM.get((key, value)) or _JVM.get((key, ""), "")
        options += template.format(value).split()
    classes = os.pathsep.join(("{program}", "{program}/*"))
    return ["{java}", *options, "-classpath", classes, f"{program}.Main", printed, str(n)]


def _environment(keys: Mapping[str, str], *, traced: bool) -> str:
    """The variables that configure the Go runtime for a case; none for Java."""
    if "go" not in keys:
        return ""
    godebug = GODEBUG
    if traced and "profile" not in keys:
        godebug += ",gctrace=1"
    processors = keys.get("gomaxprocs", "")
    if not processors and keys["setting"] == "precise":
        processors = "1"
    variables = {
        "GOGC": keys["gogc"],
        "GODEBUG": godebug,
        "GOMEMLIMIT": keys.get("gomemlimit", ""),
        "MALLOC_ARENA_MAX": keys.get("arenas", ""),  # of glibc
        "GOMAXPROCS": processors,
    }
    return shlex.join(_words({name: value for name, value in variables.items() if value}))


# --- What a row says --------------------------------------------------------------------


def sized(job: Job, n: int) -> Job:
    """The job with another N."""
    return job | {"n": n, "argv": _command(job["name"], job["program"], n)}


def scaled(job: Job, scale: float) -> Job:
    """The job with a scaled N."""
    if scale == 1 or not job["n"]:
        return job
    n = round(job["n"] * scale)
    return sized(job, max(1, n))


def capped(job: Job, memory: int) -> Job:
    """The job with N limited so that its retained bytes fit into `memory` bytes."""
    if not job["retained_bytes"]:
        return job
    fits = memory // job["retained_bytes"]
    return sized(job, max(1, fits)) if fits < job["n"] else job


def build(job: Job) -> Build:
    """The inputs of its binary in a round."""
    _, keys = _parsed(job["name"])
    layout = keys.get("measurement", "")
    if keys.get("control") == "relinked":
        layout = "relinked"
    return Build(job["program"], job["release"], keys.get("runtime", ""), layout)


def has(job: Job, trait: str) -> bool:
    """Whether its benchmark has a trait (see `gccost.cases.benchmarks`)."""
    return benchmarks.of(job["benchmark"]).has(trait)


def once(job: Job) -> bool:
    """Whether a sitting has one round of it."""
    return has(job, "once") or "count" in job


def uncontrolled(job: Job) -> str:
    """The name of the case that an A/A control measures again."""
    return str(job["name"]).replace(f"/control={job['control']}", "")


def processes(job: Job) -> int:
    """The number of its processes in a round."""
    if "profile" in job or "count" in job:
        return 1
    return PROCESSES if has(job, "short") else 1
