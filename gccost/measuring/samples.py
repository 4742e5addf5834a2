"""Samples: fresh processes of a measured program, and what they print.

A process sees little of our environment, runs pinned where its case says so,
and is ended when it hangs or when we are.
"""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gccost import processes
from gccost.errors import GccostError
from gccost.files import writing
from gccost.measuring import benchfmt, gctrace, toolchains
from gccost.measuring.experiments.base import Case

# CPU time is less that of the references in the loop, which is estimated: of a loop that is
# far shorter than they are (N of the tests) nothing may be left.
_NEGATIVE = re.compile(r"-[0-9.]+ ((?:settled-)?cpu-ns/op)")
_SKIPPED = re.compile(r"--- SKIP: .*\n\s+\S+\.go:\d+: (.*)")
TRACE = "gctrace.txt"  # what a traced case's last sample wrote, in its scratch folder
SAMPLE_SECONDS = 120.0  # after which a sample counts as hung
# A go.mod that says go 1.18 gives new toolchains old defaults: these are the
# ones that bear on what is measured, at the value that today's programs have.
GODEBUG = "containermaxprocs=1,updatemaxprocs=1"


# A process counts if its threads waited for a CPU for at most this share of the wall time:
# on a machine that is half busy they do for up to 0.11 of it, or for 0.35 and more.
RUN_DELAY = 0.2
# The slices' times must add up to the loop's: within a share of it, or what a process loses
# where it has to give way to others a few times between the two clocks' readings.
_SLICES_WITHIN, _SLICES_NS = 0.02, 10_000_000
SLICES = "slices.txt"  # what a loop in slices writes if it is asked to, in its scratch folder


def slices_fault(sample: Mapping[Any, Any]) -> str:
    """What is wrong with the metrics of a loop that is timed in slices; empty if nothing is."""
    low, sums, loop, n = (
        float(sample.get(name, math.nan))
        for name in ("slice-p05-ns/op", "slices-ns/op", "ns/op", "n")
    )
    if not (low > 0 and math.isfinite(sums)):
        return "the sample holds no slices"
    if abs(sums - loop) > max(_SLICES_WITHIN * loop, _SLICES_NS / n):
        return f"its slices add up to {sums:.4g} ns/op, its loop took {loop:.4g}"
    return ""


class SampleFailed(GccostError):
    """A process that did not give one good sample."""


def run_sample(
    binary: Path,
    case: Case,
    scratch: Path,
    *,
    profile: Path | None = None,
    slices: bool = False,
    limit: float = SAMPLE_SECONDS,
) -> benchfmt.Sample:
    """One fresh process of a case, as a sample named by the case.

    With `slices` a loop that is timed in slices writes them to SLICES in `scratch`.

    Raises SampleFailed if the process fails, hangs (over `limit` seconds), or
    does not print exactly one good line for the case's N.
    """
    extra = [] if profile is None else [f"-test.cpuprofile={profile}"]
    start = time.monotonic()
    more = {"GCCOST_SLICES": str(scratch / SLICES)} if slices else {}
    results = _results(binary, [case], extra, scratch, limit, more)
    elapsed = time.monotonic() - start
    if len(results) != 1:
        raise SampleFailed(f"the program printed {len(results)} results, not one", case.name)
    (sample,) = results
    if case.arm.stationary and (fault := slices_fault({**sample.metrics, "n": sample.n})):
        raise SampleFailed(fault, case.name, "gosrc/meter times the slices")
    return sample.with_metrics({"elapsed-s": round(elapsed, 4)})


def run_count(
    binary: Path, cases: Sequence[Case], count: int, scratch: Path, limit: float
) -> list[benchfmt.Sample]:
    """One process that runs each case `count` times in a row, as `go test -count` does.

    The cases have one program, setting and N. Each sample's `round` is its place
    among those of its case. Raises SampleFailed as `run_sample` does.
    """
    samples = _results(binary, cases, [f"-test.count={count}"], scratch, limit)
    numbered = []
    for case in cases:
        own = [s for s in samples if s.name == case.arm.benchmark]
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
    """What one process prints for the cases, each sample named by its case.

    Where they are traced the samples hold what their gctrace says, and `scratch` its text.
    """
    by_name = {case.arm.printed: case for case in cases}
    first = cases[0]
    command = [str(binary), "-test.run=^$", f"-test.bench={_pattern(cases)}", *extra]
    if first.n:
        command.append(f"-test.benchtime={first.n}x")
    with _affinity(_last_cpu() if first.arm.setting == "precise" else None):
        output, said = _run(command, {**_environment(first), **more}, scratch, limit, first.name)
    traced: dict[str, float] = {}
    if first.traced:
        traced = gctrace.metrics(gctrace.parse(said))
        with writing(scratch / TRACE):
            (scratch / TRACE).write_text(said, encoding="utf-8")
    samples = []
    for sample in benchfmt.results(_NEGATIVE.sub(r"0 \1", output)):
        if not isinstance(sample, benchfmt.Sample):
            raise SampleFailed(f"the program's line cannot be read: {sample.why}", first.name)
        case = by_name.get(printed(sample))
        if case is None:
            raise SampleFailed(f"the program ran {sample.name}", first.name)
        if case.n and sample.n != case.n:
            raise SampleFailed(f"the program ran {sample.n} operations, not {case.n}", case.name)
        if "ns/op" not in sample.metrics:
            raise SampleFailed("the program printed no ns/op", case.name)
        if sample.metrics.get("c-misfreed", 0.0) != 0:
            raise SampleFailed("a C block was freed that was not allocated", case.name)
        keys = toolchains.named(case.release) | case.arm.keys()
        samples.append(sample.with_keys(keys).with_metrics(traced))
    if not samples and (skipped := _SKIPPED.search(output)):
        raise SampleFailed(f"the program skipped it: {skipped[1]}", first.name)
    return samples


def _pattern(cases: Sequence[Case]) -> str:
    """What selects the cases' benchmarks, and their sub-benchmark if they name one."""
    names = "|".join(dict.fromkeys(case.arm.benchmark for case in cases))
    return "/".join([f"^Benchmark({names})$", *(f"^{k}={v}$" for k, v in cases[0].arm.sub)])


def printed(sample: benchfmt.Sample) -> str:
    """A sample's name with its keys, as the program printed it."""
    return sample.name + "".join(f"/{k}={v}" for k, v in sample.keys.items())


def _environment(case: Case) -> dict[str, str]:
    """The little of our environment that a measured process sees."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR", "LANG")}
    debug = f"{GODEBUG},gctrace=1" if case.traced else GODEBUG
    kept |= {"GOGC": case.arm.gogc, "GODEBUG": debug}
    if case.arm.limit:
        kept["GOMEMLIMIT"] = case.arm.limit
    if procs := case.arm.procs or ("1" if case.arm.setting == "precise" else ""):
        kept["GOMAXPROCS"] = procs
    return kept


def _last_cpu() -> int | None:
    """The CPU to pin to: the last, which the kernel's own work prefers least."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return max(os.sched_getaffinity(0))


@contextmanager
def _affinity(cpu: int | None) -> Iterator[None]:
    """Let processes started inside run on one CPU only, where the system can."""
    if cpu is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _run(
    command: list[str], environment: dict[str, str], cwd: Path, limit: float, name: str
) -> tuple[str, str]:
    """What the program writes to stdout and stderr.

    SampleFailed, with the case's name, if it does not come to that.
    """
    try:
        done = processes.run(command, cwd=cwd, env=environment, limit=limit)
    except subprocess.TimeoutExpired:
        raise SampleFailed(f"the program hung: it was ended after {limit:g} s", name) from None
    except OSError as error:
        raise SampleFailed(f"the program did not start: {error.strerror}", name) from None
    if done.returncode != 0:
        told = "\n".join(gctrace.parse(done.stderr).foreign)
        said = (told.strip() or done.stdout.strip() or "no output").splitlines()
        raise SampleFailed(f"the program {ended(done.returncode)}: {said[0][:200]}", name)
    return done.stdout, done.stderr


def ended(code: int) -> str:
    """What an exit code says of how a process ended."""
    if code < 0:
        named = {each.value: each.name for each in signal.Signals}
        return f"was ended by {named.get(-code, f'signal {-code}')}"
    return f"failed with exit code {code}"
