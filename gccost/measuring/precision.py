"""How precise the measuring is: the same ratios, measured several times over.

Each method measures the same arms four times, on a quiet machine and with
another process keeping a core busy, each time for the same number of seconds
and apart from the other times. Only the method decides how well the four agree.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from gccost import places
from gccost.measuring import benchfmt, builds, runs
from gccost.measuring.experiments.base import Case
from gccost.measuring.experiments.precision import (
    BASELINE,
    DRIFT,
    ITSELF,
    LOADS,
    MEASUREMENTS,
    METHODS,
)
from gccost.measuring.measure import Plan, Progress, begin, find, in_order
from gccost.measuring.runs import Run
from gccost.measuring.samples import run_count, run_sample
from gccost.measuring.toolchains import CCompiler
from gccost.processes import Leash

SECONDS = 60.0  # of each measurement
AS_PEOPLE_RUN_IT = 10  # go test -count
# One pass over the compared benchmarks at their N takes about this long: it
# sets how often go test -count runs them to fill its seconds.
_PASS_SECONDS = 3.5


def measure(plan: Plan, progress: Progress, seconds: float = SECONDS) -> Run:
    """Measure what a run lacks of the precision experiment; returns the run.

    A measurement is recorded when it is complete: one that is broken off is
    measured again, whole, for it must be of one piece.
    """
    name = plan.experiment.name
    with runs.exclusive(places.runs(), "measuring"), runs.scratch(places.runs()) as scratch:
        run = find(plan) or begin(plan)
        entry = run.experiment(name)
        done = list(entry.get("done", []))
        run.cut_off(name, entry.get("recorded", run.size(name)))
        run.update(name, recorded=run.size(name))
        todo = [
            (measurement, load, method)
            for measurement in MEASUREMENTS
            for load in LOADS
            for method in METHODS
        ]
        total = seconds * len(todo)
        for i, (measurement, load, method) in enumerate(todo):
            what = f"{method}, {load}, measurement {measurement}"
            if what in done:
                continue
            progress(i * seconds, total, what)
            samples = _measurement(plan, measurement, load, method, seconds, scratch)
            run.append(name, [benchfmt.format_line(sample) for sample in samples])
            done.append(what)
            run.update(name, done=done, recorded=run.size(name))
        run.update(name, finished={plan.budget.name: _summary(run, name, seconds)})
        progress(total, total, "done")
    return run


def _measurement(
    plan: Plan, measurement: str, load: str, method: str, seconds: float, scratch: Path
) -> list[benchfmt.Sample]:
    """One measurement by one method: about `seconds` of it, as samples."""
    wanted = {"method": method, "load": load, "measurement": measurement}
    cases = [c for c in plan.cases if wanted.items() <= dict(c.arm.more).items()]
    drift = [c for c in plan.cases if c.arm == DRIFT]
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        folder = Path(name)
        with _load() if load == "busy" else _quiet():
            if method in _BY_US:
                samples = list(_BY_US[method](plan, cases, folder, seconds))
            else:
                count = max(2, int(seconds / _PASS_SECONDS))
                if method == "count" and seconds >= SECONDS:
                    count = AS_PEOPLE_RUN_IT
                binary = _build(plan, cases[0], 0, folder)
                samples = run_count(binary, cases, count, folder, limit=20 * seconds + 60)
        if method == "rounds" and load == "quiet":
            # The drift needs a process or two: it rides along.
            sample = run_sample(_build(plan, drift[0], 0, folder), drift[0], folder)
            samples.append(sample.with_metrics({"round": float(measurement)}))
    return [sample.with_metrics({"unix-s": round(time.time(), 3)}) for sample in samples]


def _rounds(
    plan: Plan, cases: list[Case], folder: Path, seconds: float
) -> Iterator[benchfmt.Sample]:
    """Paired rounds of fresh processes, each round built anew, for so many seconds."""
    chance = random.SystemRandom()
    start, number = time.monotonic(), 0
    while number < 2 or time.monotonic() - start < seconds:
        number += 1
        binary = _build(plan, cases[0], chance.randrange(1, 2**31), folder)
        for case in in_order(cases, chance):
            yield run_sample(binary, case, folder).with_metrics({"round": float(number)})
        binary.unlink()


def _beside(
    plan: Plan, cases: list[Case], folder: Path, seconds: float
) -> Iterator[benchfmt.Sample]:
    """Each dear sample with the baseline beside it, over and over, for so many seconds.

    All of them are pinned to one CPU, so the system lets them have it in turns of a few
    milliseconds: whatever slows the machine down slows both. Only CPU time can be
    compared then. A dear sample and what ran beside it are a round.
    """
    chance = random.SystemRandom()
    (baseline,) = (c for c in cases if c.arm.benchmark == BASELINE and not _itself(c))
    others = [case for case in cases if case is not baseline]
    start, number = time.monotonic(), 0
    while number < 2 * len(others) or time.monotonic() - start < seconds:
        binary = _build(plan, baseline, chance.randrange(1, 2**31), folder)
        for case in chance.sample(others, len(others)):
            number += 1
            with ThreadPoolExecutor(max_workers=1) as pool:
                dear = pool.submit(run_sample, binary, case, folder)
                beside = [run_sample(binary, baseline, folder)]
                while not dear.done():
                    beside.append(run_sample(binary, baseline, folder))
            # The last one had the CPU to itself for a while.
            for sample in (dear.result(), *(beside[:-1] or beside)):
                yield sample.with_metrics({"round": float(number)})
        binary.unlink()


_BY_US = {"rounds": _rounds, "beside": _beside}


def _itself(case: Case) -> bool:
    return ("against", ITSELF) in case.arm.more


def _build(plan: Plan, case: Case, layout: int, folder: Path) -> Path:
    assert isinstance(plan.compiler, CCompiler)
    return builds.build(case.program, plan.found[case.release], plan.compiler, layout, folder)


@contextmanager
def _load() -> Iterator[None]:
    """Another process keeps a core busy meanwhile."""
    with Leash() as leash, leash.start([sys.executable, "-c", "while True: pass"]) as other:
        try:
            yield
        finally:
            other.kill()


@contextmanager
def _quiet() -> Iterator[None]:
    yield


def _summary(run: Run, name: str, seconds: float) -> dict[str, object]:
    frame = benchfmt.read(run.results(name)).frame
    total = seconds * len(METHODS) * len(LOADS) * len(MEASUREMENTS)
    # What took turns was on the clock while the other ran.
    loops = frame["ns/op"].where(frame["method"] != "beside", frame["cpu-ns/op"])
    return {
        "because": f"each of the {len(MEASUREMENTS)} measurements a method and load was made",
        "rounds": len(MEASUREMENTS),
        "samples": len(frame),
        "seconds": total,
        "share_in_loops": round(float((loops * frame["n"]).sum()) / 1e9 / total, 3),
        "date": runs.now(),
    }
