"""Samples: fresh processes of a measured program, and their output.

A process gets a minimal environment, is pinned to a CPU if its case says so, and is killed
if it hangs or if this process ends.
"""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from subprocess import CompletedProcess
from types import MappingProxyType
from typing import Any

from gccost import processes
from gccost.errors import GccostError
from gccost.files import writing
from gccost.measuring import benchfmt, gctrace, toolchains
from gccost.measuring.cases import Case

# CPU time is net of the estimated time of the references in the loop, so it can be negative
# for a loop far shorter than they are (N of the tests).
_NEGATIVE = re.compile(r"-[0-9.]+ ((?:settled-)?cpu-ns/op)")
_SKIPPED = re.compile(r"--- SKIP: .*\n\s+\S+\.go:\d+: (.*)")
TRACE = "gctrace.txt"  # the trace of a traced case's last sample, in its scratch folder
SAMPLE_SECONDS = 120.0  # after which a sample counts as hung
# Because go.mod says go 1.18, new toolchains use old defaults. These are the ones that affect
# measurements, at the values of today's programs.
GODEBUG = "containermaxprocs=1,updatemaxprocs=1"


# A process counts if its threads waited for a CPU for at most this share of wall-clock time.
# On a half-busy machine they wait for up to 0.11 of it, or for 0.35 and more.
RUN_DELAY = 0.2
# The slices' times must add up to the loop's time, within a share of it or within the time of
# a few preemptions between the two clock readings.
_SLICES_WITHIN, _SLICES_NS = 0.02, 10_000_000
SLICES = "slices.txt"  # the slices of a loop, written to its scratch folder on request


def slices_fault(sample: Mapping[Any, Any]) -> str:
    """The fault in the metrics of a loop timed in slices; empty if there is none."""
    low, sums, loop, n = (
        float(sample.get(name, math.nan))
        for name in ("slice-p05-ns/op", "slices-ns/op", "ns/op", "n")
    )
    if not (low > 0 and math.isfinite(sums)):
        return "the sample holds no slices"
    if abs(sums - loop) > max(_SLICES_WITHIN * loop, _SLICES_NS / n):
        return f"its slices add up to {sums:.4g} ns/op, its loop took {loop:.4g}"
    return ""


def hindered(metrics: Mapping[str, float], procs: int) -> bool:
    """Whether a process waited too long for a CPU to count.

    With a single P the GC's threads wait for the program's by design.
    """
    return procs > 1 and metrics.get("run-delay-share", 0.0) > RUN_DELAY


class SampleFailed(GccostError):
    """A process did not give one valid sample."""


def run_sample(
    binary: Path,
    case: Case,
    scratch: Path,
    *,
    profile: Path | None = None,
    slices: bool = False,
    limit: float = SAMPLE_SECONDS,
) -> benchfmt.Sample:
    """Run a case in a fresh process, and return its sample, named by the case.

    With `slices` a loop that is timed in slices writes them to SLICES in `scratch`.

    Raises SampleFailed if the process fails, hangs (over `limit` seconds), or does not print
    exactly one valid line for the case's N.
    """
    extra = [] if profile is None else [f"-test.cpuprofile={profile}"]
    start = time.monotonic()
    more = {"GCCOST_SLICES": str(scratch / SLICES)} if slices else {}
    sample = only(_results(binary, [case], extra, scratch, limit, more), case)
    elapsed = time.monotonic() - start
    if case.variant.stationary and (fault := slices_fault({**sample.metrics, "n": sample.n})):
        raise SampleFailed(fault, case.name, "gosrc/meter times the slices")
    return sample.with_metrics({"elapsed-s": round(elapsed, 4)})


def run_count(
    binary: Path, cases: Sequence[Case], count: int, scratch: Path, limit: float
) -> list[benchfmt.Sample]:
    """Run each case `count` times in a row in one process, as `go test -count` does.

    The cases have one program, setting and N. Each sample's `round` is its index among those
    of its case. Raises SampleFailed as `run_sample` does.
    """
    samples = _results(binary, cases, [f"-test.count={count}"], scratch, limit)
    numbered = []
    for case in cases:
        own = [s for s in samples if s.name == case.variant.benchmark]
        if len(own) != count:
            raise SampleFailed(f"the program printed {len(own)} results, not {count}", case.name)
        numbered += [s.with_metrics({"round": float(i)}) for i, s in enumerate(own, 1)]
    return numbered


def _results(
    binary: Path,
    cases: Sequence[Case],
    extra: list[str],
    scratch: Path,
    limit: float,
    more: Mapping[str, str] = MappingProxyType({}),
) -> list[benchfmt.Sample]:
    """Run one process and return its samples, each named by its case.

    Samples of traced cases include their gctrace's metrics; its text is in `scratch`.
    """
    first = cases[0]
    command = [str(binary), "-test.run=^$", f"-test.bench={_pattern(cases)}", *extra]
    if first.n:
        command.append(f"-test.benchtime={first.n}x")
    with _pinned() if first.variant.setting == "precise" else nullcontext():
        done = complete(
            processes.run,
            command,
            first,
            limit,
            cwd=scratch,
            env={**inherited(), **_settings(first), **more},
        )
    if done.returncode != 0:
        raise failure(done, first)
    traced: dict[str, float] = {}
    if first.traced:
        traced = gctrace.metrics(gctrace.parse(done.stderr))
        with writing(scratch / TRACE):
            (scratch / TRACE).write_text(done.stderr, encoding="utf-8")
    samples = [sample.with_metrics(traced) for sample in parsed(done.stdout, cases)]
    if not samples and (skipped := _SKIPPED.search(done.stdout)):
        raise SampleFailed(f"the program skipped it: {skipped[1]}", first.name)
    if any("ns/op" not in sample.metrics for sample in samples):
        raise SampleFailed("the program printed no ns/op", first.name)
    if any(sample.metrics.get("c-misfreed") for sample in samples):
        raise SampleFailed("a C block was freed that was not allocated", first.name)
    return samples


def parsed(output: str, cases: Sequence[Case]) -> list[benchfmt.Sample]:
    """Parse a program's results for the cases, each named by its case.

    Raises SampleFailed for a line that is not a valid result of one of them.
    """
    by_name = {case.variant.printed: case for case in cases}
    samples = []
    for sample in benchfmt.results(_NEGATIVE.sub(r"0 \1", output)):
        if not isinstance(sample, benchfmt.Sample):
            raise SampleFailed(f"the program's line cannot be read: {sample.why}", cases[0].name)
        case = by_name.get(sample.full_name)
        if case is None:
            raise SampleFailed(f"the program ran {sample.full_name}", cases[0].name)
        if case.n and sample.n != case.n:
            raise SampleFailed(f"the program ran {sample.n} operations, not {case.n}", case.name)
        samples.append(sample.with_keys(toolchains.named(case.release) | case.variant.keys()))
    return samples


def only(samples: Sequence[benchfmt.Sample], case: Case) -> benchfmt.Sample:
    """The only sample. Raises SampleFailed if there are more or none."""
    if len(samples) != 1:
        raise SampleFailed(f"the program printed {len(samples)} results, not one", case.name)
    return samples[0]


def _pattern(cases: Sequence[Case]) -> str:
    """The pattern that selects the cases' benchmarks and sub-benchmarks."""
    names = "|".join(dict.fromkeys(case.variant.benchmark for case in cases))
    return "/".join([f"^Benchmark({names})$", *(f"^{k}={v}$" for k, v in cases[0].variant.sub)])


def inherited() -> dict[str, str]:
    """The part of this process's environment that a measured process gets."""
    return {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR", "LANG")}


def _settings(case: Case) -> dict[str, str]:
    """The environment variables that configure the Go runtime and malloc for a case."""
    debug = f"{GODEBUG},gctrace=1" if case.traced else GODEBUG
    settings = {"GOGC": case.variant.gogc, "GODEBUG": debug}
    if case.variant.limit:
        settings["GOMEMLIMIT"] = case.variant.limit
    if case.variant.arenas:
        settings["MALLOC_ARENA_MAX"] = case.variant.arenas
    if procs := case.variant.procs or ("1" if case.variant.setting == "precise" else ""):
        settings["GOMAXPROCS"] = procs
    return settings


@contextmanager
def _pinned() -> Iterator[None]:
    """Restrict processes started inside to the last CPU, which the kernel itself uses least.

    Does nothing if the system does not support that.
    """
    if not hasattr(os, "sched_getaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def complete(
    run: Callable[..., CompletedProcess[str]],
    command: list[str],
    case: Case,
    limit: float,
    **options: Any,
) -> CompletedProcess[str]:
    """Run a case's process. Raises SampleFailed if it does not start or hangs (`limit` s)."""
    try:
        return run(command, limit=limit, **options)
    except subprocess.TimeoutExpired:
        why = f"the program hung: it was ended after {limit:g} s"
        raise SampleFailed(why, case.name) from None
    except OSError as error:
        raise SampleFailed(f"the program did not start: {error.strerror}", case.name) from None


def failure(done: CompletedProcess[str], case: Case) -> SampleFailed:
    """The error of a failed process, with the first line of its output."""
    told = "\n".join(gctrace.parse(done.stderr).foreign)
    said = (told.strip() or done.stdout.strip() or "no output").splitlines()
    ended = f"failed with exit code {done.returncode}"
    if done.returncode < 0:
        named = {each.value: each.name for each in signal.Signals}
        ended = f"was ended by {named.get(-done.returncode, f'signal {-done.returncode}')}"
    return SampleFailed(f"the program {ended}: {said[0][:200]}", case.name)
