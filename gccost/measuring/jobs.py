"""Jobs: cases as rows of a table, `jobs.csv`, that lies in the run next to its samples.

A job has the name of its samples, the settings of its case as typed columns, and the command
that measures it. In the command `{program}` stands for what was built, and `{java}` for the
JVM. Only the standard library is needed to read and write the table.
"""

from __future__ import annotations

import csv
import io
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gccost.errors import GccostError
from gccost.files import write_whole
from gccost.measuring import benchmarks, toolchains
from gccost.measuring.cases import EXPERIMENTS, Case
from gccost.measuring.schema import COUNT, LINE, TEXT, columns, rows
from gccost.processes import Environment

NUMBERS = (
    *("words", "goroutines", "threads", "handles", "live", "mb", "mib", "remaining", "waiting"),
    *("bytes", "dummies", "others", "gogc", "gcthreads", "heap"),
)
"""The settings whose values are numbers; all others are text."""

IDENTITY = ("release", "experiment", "variant", "benchmark")
_FIRST = (
    "name",
    "program",
    *IDENTITY,
    "kind",
    "n",
    "retained_bytes",
    "argv",
    "env",
)
_DROPPED = ("sliced", "gated")  # columns of older tables
_RENAMED = {"gomemlimit": "memory_limit", "gc": "collector"}
RESTORE = "restore the file, or move the run folder away and measure again"
_NAME = LINE._replace(least=1)
_COLUMNS = columns(
    "program release experiment variant kind n:count retained_bytes:count argv env"
) | {"name": _NAME, "benchmark": _NAME, "*": TEXT}
_COLUMNS |= {f"{name}?": COUNT.or_null() for name in NUMBERS}

# Because go.mod says go 1.18, new toolchains use old defaults. These are the ones that affect
# measurements, at the values of today's programs.
GODEBUG = "containermaxprocs=1,updatemaxprocs=1"

Job = dict[str, Any]
"""A row: a column's value by its name; without the settings that the case lacks."""


def job(case: Case) -> Job:
    """The row of a case."""
    return {
        "name": case.name,
        "program": case.program,
        "release": case.release,
        **keys(case),
        "kind": kind(case),
        "n": case.n,
        "retained_bytes": case.retained_bytes,
        "argv": shlex.join(arguments(case)),
        "env": shlex.join(f"{name}={value}" for name, value in environment(case).items()),
    }


def kind(case: Case) -> str:
    """The kind of a case's loop: its benchmark's in Go; in Java each benchmark is a kind.

    The loops of another method, or under load, are a kind of their own.
    """
    benchmark = case.variant.benchmark
    in_go = toolchains.key(case.release) == "go"
    base = (in_go and benchmarks.of(benchmark).kind) or benchmark
    apart = [value for key, value in case.variant.more if key in ("method", "load")]
    return ", ".join([base, *apart])


def keys(case: Case) -> Job:
    """The settings of a case as columns; `gc` says whether Go's collector is on."""
    variant, benchmark = case.variant, benchmarks.of(case.variant.benchmark)
    experiment = benchmark.experiment
    if variant.arenas:
        experiment = "one malloc arena"
    elif "run" in dict(variant.more):
        experiment += ", long run"
    row: Job = {
        "experiment": experiment,
        "variant": benchmark.variant,
        "benchmark": variant.benchmark,
    }
    if toolchains.key(case.release) == "go":
        row["gc"] = "off" if variant.gogc == "off" else "on"
        row["runtime"] = "stock"
    settings = dict(variant.sub) | variant.keys()
    if settings.get("gogc") == "off":
        del settings["gogc"]
    if variant.runtime in EXPERIMENTS:
        settings["runtime"] = EXPERIMENTS[variant.runtime]
    for key, value in settings.items():
        row[_RENAMED.get(key, key)] = int(value) if key in NUMBERS else value
    return row


def arguments(case: Case) -> list[str]:
    """The command that measures a case."""
    if toolchains.key(case.release) != "go":
        return _java(case)
    parts = [f"^Benchmark({case.variant.benchmark})$"]
    parts += [f"^{key}={value}$" for key, value in case.variant.sub]
    command = ["{program}", "-test.run=^$", f"-test.bench={'/'.join(parts)}"]
    return [*command, f"-test.benchtime={case.n}x"] if case.n else command


def environment(case: Case) -> Environment:
    """The variables that configure the Go runtime and malloc for a case; none for Java."""
    variant = case.variant
    if toolchains.key(case.release) != "go":
        return {}
    variables = {
        "GOGC": variant.gogc,
        "GODEBUG": f"{GODEBUG},gctrace=1" if case.traced else GODEBUG,
        "GOMEMLIMIT": variant.limit,
        "MALLOC_ARENA_MAX": variant.arenas,
        "GOMAXPROCS": variant.procs or ("1" if variant.setting == "precise" else ""),
    }
    return {name: value for name, value in variables.items() if value}


# The options of every JVM: allow experimental options (ZGC on 11), exit if any thread runs
# out of memory, and log collections.
_ALWAYS = (
    *("-XX:+UnlockExperimentalVMOptions", "-XX:-UsePerfData"),
    *("-Xlog:disable", "-Xlog:gc,gc+phases:file=gc.log", "-XX:+ExitOnOutOfMemoryError"),
)
# The JVM option of each setting of a case; a numeric setting has a template.
_JVM: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("gc", "G1"): ("-XX:+UseG1GC",),
    ("gc", "Serial"): ("-XX:+UseSerialGC",),
    ("gc", "Parallel"): ("-XX:+UseParallelGC",),
    ("gc", "Z"): ("-XX:+UseZGC",),
    # In this JVM only the program allocates, and nothing is collected. The program must
    # continue when the heap is full.
    ("gc", "Epsilon"): (
        *("-XX:+UseEpsilonGC", "-XX:-UseTLAB", "-Xint", "-XX:-ExitOnOutOfMemoryError"),
    ),
    ("heap", ""): ("-Xms{}m", "-Xmx{}m"),
    ("escape", "off"): ("-XX:-DoEscapeAnalysis",),
    ("finalization", "disabled"): ("--finalization=disabled",),
    ("gcthreads", ""): ("-XX:ParallelGCThreads={}",),
}


def _java(case: Case) -> list[str]:
    """The command that measures a case in a JVM."""
    options = [*_ALWAYS]
    for key, value in case.variant.more:
        known = _JVM.get((key, value)) or _JVM[key, ""]
        options += [each.format(value) for each in known]
    where = os.pathsep.join(("{program}", "{program}/*"))
    run = [f"{case.program}.Main", case.variant.printed, str(case.n)]
    return ["{java}", *options, "-classpath", where, *run]


# --- The file ---------------------------------------------------------------------------


def write(path: Path, jobs: Iterable[Job]) -> None:
    """Write a table of jobs; a setting that a job lacks is empty."""
    rows = list(jobs)
    columns = dict.fromkeys([*_FIRST, *(name for row in rows for name in row)])
    text = io.StringIO()
    table = csv.DictWriter(text, list(columns), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write_whole(path, text.getvalue().encode())


def read(path: Path) -> dict[str, Job]:
    """The jobs by name. Raises GccostError, with the line, for a file that no gccost wrote."""
    jobs: dict[str, Job] = {}
    for line, row in enumerate(rows(path, _COLUMNS, RESTORE), 2):
        name = row["name"]
        if name in jobs:
            raise GccostError(f"the job {name} is there twice", f"{path}:{line}", RESTORE)
        lacking = [key for key, value in row.items() if value in ("", None) and key not in _FIRST]
        for key in {*lacking, *_DROPPED} & row.keys():
            del row[key]
        jobs[name] = row
    return jobs
