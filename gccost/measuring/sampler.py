"""The sampler: runs a job in a fresh process, and returns its samples.

A job is a row of `jobs.csv` (see `gccost.cases.jobs`): its command, its environment, its
name and its number of operations. The sampler knows nothing else of what it runs. It needs
the standard library only, and a pack ships it as it is.

A process gets a minimal environment, is pinned to a CPU if its job says so, and is killed if
it hangs or if this process ends.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from gccost import processes
from gccost.errors import GccostError
from gccost.files import writing
from gccost.run import benchfmt, gctrace
from gccost.run.benchfmt import Sample

Job = Mapping[str, Any]

SAMPLE_SECONDS = 120.0  # after which a sample counts as hung
TRACE = "gctrace.txt"  # the trace of a traced job's last process, in its scratch folder
JVM_LOG = "gc.log"  # a JVM's log of its collections, in its scratch folder
OUT_OF_MEMORY = 3  # the exit code of a JVM that ran out of memory
_INHERITED = ("PATH", "HOME", "TMPDIR", "LANG")  # of this process's environment

_PAUSE = re.compile(r"\bPause\b.*?([\d.]+)ms\s*$", re.MULTILINE)  # of a JVM's log
_CYCLE = re.compile(r"\bGC\((\d+)\)")
_SKIPPED = re.compile(r"--- SKIP: .*\n\s+\S+\.go:\d+: (.*)")


class SampleFailed(GccostError):
    """A process did not give one valid sample."""


def sample(
    job: Job,
    program: Path,
    scratch: Path,
    *,
    java: Path | None = None,
    profile: Path | None = None,
    limit: float = SAMPLE_SECONDS,
) -> list[Sample]:
    """Run a job in a fresh process, and return its samples, with the job's name.

    There is one, or as many as its column `count` says, which share the time of the process.
    `program` is what was built: a binary, or a folder of classes for the JVM `java`. A JVM that
    runs out of memory also gives a sample, with `died` 1 and no times.

    Raises SampleFailed if the process fails, hangs (over `limit` seconds), or does not print
    that number of valid lines for the job's N.
    """
    start = time.monotonic()
    samples = _process(job, program, scratch, java, profile, limit)
    count = job.get("count", 1)
    elapsed = round((time.monotonic() - start) / count, 4)
    if len(samples) != count:
        raise SampleFailed(f"the program printed {len(samples)} results, not {count}", job["name"])
    metrics = {"elapsed-s": elapsed}
    if "cpu-s" in samples[0].metrics:
        cpu = samples[0].metrics["cpu-s"]
        metrics["cpu-share"] = round(cpu / elapsed, 4)
    return [sample.with_metrics(metrics) for sample in samples]


def is_traced(job: Job) -> bool:
    """Whether the Go runtime prints a line for each of its collections."""
    return "gctrace=1" in job["env"]


# --- One process ----------------------------------------------------------------------


def _process(
    job: Job,
    program: Path,
    scratch: Path,
    java: Path | None,
    profile: Path | None,
    limit: float,
) -> list[Sample]:
    """Run a process, and return its samples."""
    command = []
    for word in shlex.split(job["argv"]):
        word = word.replace("{program}", str(program))
        command.append(word.replace("{java}", str(java)))
    if profile is not None:
        command.append(f"-test.cpuprofile={profile}")
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    for word in shlex.split(job["env"]):
        name, _, value = word.partition("=")
        environment[name] = value
    (scratch / JVM_LOG).unlink(missing_ok=True)
    with processes.pinned() if job.get("setting") == "precise" else nullcontext():
        # Covers all ended children; only this one ends between the two readings.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = processes.run(command, limit=limit, cwd=scratch, env=environment)
        except subprocess.TimeoutExpired:
            hung = f"the program hung: it was ended after {limit:g} s"
            raise SampleFailed(hung, job["name"]) from None
        except OSError as error:
            reason = f"the program did not start: {error.strerror}"
            raise SampleFailed(reason, job["name"]) from None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if java is not None and done.returncode == OUT_OF_MEMORY:
        n = max(job["n"], 1)
        died = Sample(job["benchmark"], n, {"died": 1.0})
        return [_named(died, job)]
    if done.returncode != 0:
        raise _failure(done, job)
    metrics: dict[str, float] = {}
    if java is not None:
        metrics = used(before, after) | collections(scratch / JVM_LOG) | {"died": 0.0}
    if is_traced(job):
        metrics = gctrace.metrics(gctrace.parse(done.stderr))
        with writing(scratch / TRACE):
            (scratch / TRACE).write_text(done.stderr, encoding="utf-8")
    return [sample.with_metrics(metrics) for sample in _results(done.stdout, job)]


# --- What the process of a JVM used ----------------------------------------------------


def used(before: resource.struct_rusage, after: resource.struct_rusage) -> dict[str, float]:
    """The resource usage between two readings: CPU seconds and page faults."""
    user = after.ru_utime - before.ru_utime
    system = after.ru_stime - before.ru_stime
    faults = after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt
    usage = {"user-s": user, "sys-s": system, "cpu-s": user + system, "faults": faults}
    return {unit: round(float(value), 6) for unit, value in usage.items()}


def collections(log: Path) -> dict[str, float]:
    """The number of collections and their total pause (s), from the JVM's log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    paused = sum(map(float, _PAUSE.findall(text)))
    return {
        "gc-cycles": float(len(set(_CYCLE.findall(text)))),
        "gc-pause-s": round(paused / 1000, 6),
    }


# --- Its output ------------------------------------------------------------------------


def _results(output: str, job: Job) -> list[Sample]:
    """The results in a program's output, with the name of the job."""
    name = job["name"]
    # The release and the settings, which the program does not know, follow the printed name.
    printed = re.split("/(?:go|jdk)=", name)[0]
    found = benchfmt.parse(output)
    for problem in found.errors:
        raise SampleFailed(f"the program's line cannot be read: {problem.why}", name)
    samples = []
    for result in found.samples.values():
        if result.full_name != printed:
            raise SampleFailed(f"the program ran {result.full_name}", name)
        if job["n"] not in (0, result.n):
            ran = f"the program ran {result.n} operations, not {job['n']}"
            raise SampleFailed(ran, name)
        if "go=" in name and "ns/op" not in result.metrics:
            raise SampleFailed("the program printed no ns/op", name)
        if result.metrics.get("c-misfreed"):
            raise SampleFailed("a C block was freed that was not allocated", name)
        samples.append(_named(result, job))
    skipped = _SKIPPED.search(output)
    if skipped and not samples:
        raise SampleFailed(f"the program skipped it: {skipped[1]}", name)
    return samples


def _named(sample: Sample, job: Job) -> Sample:
    """A sample with all the keys of its job's name."""
    _, *keys = job["name"].split("/")
    return replace(sample, keys=dict(key.split("=", 1) for key in keys))


def _failure(done: subprocess.CompletedProcess[str], job: Job) -> SampleFailed:
    """The error of a failed process, with the first line of its output."""
    foreign = "\n".join(gctrace.parse(done.stderr).foreign)
    output = foreign.strip() or done.stdout.strip() or "no output"
    first_line = output.splitlines()[0]
    ended = f"failed with exit code {done.returncode}"
    if done.returncode < 0:
        code = -done.returncode
        names = {number.value: number.name for number in signal.Signals}
        ended = f"was ended by {names.get(code, f'signal {code}')}"
    return SampleFailed(f"the program {ended}: {first_line[:200]}", job["name"])
