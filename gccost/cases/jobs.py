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
    benchmark, given = _parsed(case)
    given.pop(versions.key(release), None)  # of a name
    usual = SETTINGS[versions.key(release)]
    known = benchmarks.of(benchmark, {**usual, **given})
    expect(benchmarks.table(), benchmark, "benchmark", case)
    order = known.keys.split()
    for key, value in given.items():
        benchmarks.check_setting(key, value, [*order, *usual], case)
    _, own = _parsed(f"/{known.settings}" if known.settings else "")
    settings = {**usual, **{key: given.get(text, text) for key, text in own.items()}, **given}
    keys = {key: given[key] for key in order if key in given} | versions.keyed(release)
    keys |= {key: settings[key] for key in usual if settings[key] not in ("", STOCK)}
    return benchmark + "".join(f"/{key}={value}" for key, value in keys.items())


def _parsed(case: str) -> tuple[str, dict[str, str]]:
    """The benchmark and the keys of a name, or of a case as text."""
    benchmark, *parts = case.split("/")
    pairs = [part.partition("=") for part in parts]
    keys = {key: value for key, _, value in pairs}
    if len(keys) < len(pairs):
        raise GccostError("a key is there twice", case, "name each key once")
    return benchmark, keys


def job(case: str, release: str) -> Job:
    """The row of a case on a release. Raises GccostError if there is no such case."""
    full = name(case, release)
    benchmark, keys = _parsed(full)
    known = benchmarks.of(benchmark, keys)
    if is_too_old(case, release):
        needed = versions.title(release).split()[0]
        hint = f"name {needed} {known.since} or later"
        raise GccostError(f"{benchmark} is not in {versions.title(release)}", case, hint)
    if not known.n:
        where = benchmarks.table()[benchmark][0].where
        raise GccostError(f"{full} has no n", where, "fill the column n of its line")
    benchmarks.check_program(benchmark, known.program)
    n = whole(known.n, full)
    row: Job = {
        "name": full,
        "program": known.program,
        "release": release,
        "experiment": known.experiment,
        "variant": known.variant,
        "benchmark": benchmark,
        **_settings(keys),
        "n": n,
        "retained_bytes": whole(known.retained_bytes or "0", full),
        "argv": _command(full, known.program, n),
        "env": _environment(keys, traced=known.has("traced")),
    }
    row |= {"cpus": whole(known.cpus, full)} if known.cpus else {}
    return row | ({"count": COUNTED} if keys.get("method") == "count" else {})


def is_too_old(case: str, release: str) -> bool:
    """Whether a case is measured on newer releases only."""
    benchmark, keys = _parsed(name(case, release))
    since = benchmarks.of(benchmark, keys).since
    return bool(since) and versions.age(release)[1] < versions.number(since)


def _settings(keys: Mapping[str, str]) -> Job:
    """The settings of a case as columns; `gc` says whether Go's collector is on."""
    row: Job = {}
    if "go" in keys:
        row = {"gc": "off" if keys["gogc"] == "off" else "on", "runtime": STOCK}
    for key, value in keys.items():
        if key not in SETTINGS and (key, value) != ("gogc", "off"):
            text = EXPERIMENTS.get(value, value)
            row[_RENAMED.get(key, key)] = whole(text, key) if key in NUMBERS else text
    return row


# The options of every JVM: allow experimental options (ZGC on 11), exit if any thread runs
# out of memory, and log collections.
_ALWAYS = (
    *("-XX:+UnlockExperimentalVMOptions", "-XX:-UsePerfData"),
    *("-Xlog:disable", "-Xlog:gc,gc+phases:file=gc.log", "-XX:+ExitOnOutOfMemoryError"),
)
# The JVM options of each setting of a case; without a value they are a template.
_JVM: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("gc", ""): ("-XX:+Use{}GC",),
    # In this JVM only the program allocates, and nothing is collected. The program must
    # continue when the heap is full.
    ("gc", "Epsilon"): (
        *("-XX:+UseEpsilonGC", "-XX:-UseTLAB", "-Xint", "-XX:-ExitOnOutOfMemoryError"),
    ),
    ("heap", ""): ("-Xms{}m", "-Xmx{}m"),
    ("escape", "off"): ("-XX:-DoEscapeAnalysis",),
    ("finalization", ""): ("--finalization={}",),
    ("gcthreads", ""): ("-XX:ParallelGCThreads={}",),
}


def _command(full: str, program: str, n: int) -> str:
    """The command that measures a case with N operations, as a line for a shell."""
    printed = re.split("/(?:go|jdk)=", full)[0]
    benchmark, keys = _parsed(full)
    if "go" in keys:
        parts = [f"^Benchmark({benchmark})$", *(f"^{part}$" for part in printed.split("/")[1:])]
        bounded = [f"-test.benchtime={n}x"] if n else []
        counted = [f"-test.count={COUNTED}"] if keys.get("method") == "count" else []
        load = _LOADS.get(keys.get("load", ""))
        beside = ["sh", "-c", load, "sh"] if load else []
        command = ["{program}", "-test.run=^$", f"-test.bench={'/'.join(parts)}"]
        return shlex.join([*beside, *command, *bounded, *counted])
    options = [*_ALWAYS]
    for key, value in keys.items():
        known = _JVM.get((key, value)) or _JVM.get((key, ""), ())
        options += [each.format(value) for each in known]
    where = os.pathsep.join(("{program}", "{program}/*"))
    run = [f"{program}.Main", printed, str(n)]
    return shlex.join(["{java}", *options, "-classpath", where, *run])


def _environment(keys: Mapping[str, str], *, traced: bool) -> str:
    """The variables that configure the Go runtime for a case; none for Java."""
    if "go" not in keys:
        return ""
    is_traced = traced and "profile" not in keys
    variables = {
        "GOGC": keys["gogc"],
        "GODEBUG": f"{GODEBUG},gctrace=1" if is_traced else GODEBUG,
        "GOMEMLIMIT": keys.get("gomemlimit", ""),
        "MALLOC_ARENA_MAX": keys.get("arenas", ""),  # of glibc
        "GOMAXPROCS": keys.get("gomaxprocs") or ("1" if keys["setting"] == "precise" else ""),
    }
    return shlex.join(f"{name}={value}" for name, value in variables.items() if value)


# --- What a row says --------------------------------------------------------------------


def sized(job: Job, n: int) -> Job:
    """The job with another N."""
    return job | {"n": n, "argv": _command(job["name"], job["program"], n)}


def scaled(job: Job, scale: float) -> Job:
    """The job with a scaled N."""
    return sized(job, max(1, round(job["n"] * scale))) if job["n"] and scale != 1 else job


def capped(job: Job, memory: int) -> Job:
    """The job with N limited so that its retained bytes fit into `memory` bytes."""
    fits = memory // job["retained_bytes"] if job["retained_bytes"] else job["n"]
    return sized(job, max(1, fits)) if fits < job["n"] else job


def build(job: Job) -> Build:
    """The inputs of its binary in a round."""
    _, keys = _parsed(job["name"])
    layout = "relinked" if keys.get("control") == "relinked" else keys.get("measurement", "")
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
    return PROCESSES if has(job, "short") and not {"profile", "count"} & job.keys() else 1


# --- The file ---------------------------------------------------------------------------
