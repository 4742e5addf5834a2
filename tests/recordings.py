"""Made-up recordings: a run folder whose figures a test knows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

from test_profiles import write as write_profile

from gccost.measuring import benchfmt, runs
from gccost.measuring.cases import BUDGETS, Case
from gccost.measuring.experiments import EXPERIMENTS

NS = {
    "AllocateFree": 80.0,
    "AllocateDefer": 82.0,
    "AllocateHeapFree": 95.0,
    "AllocateAuto": 700.0,
    "AllocateDummy": 690.0,
    "AllocateCleanup": 400.0,
}
STACKS = [
    (["cstr.BenchmarkAllocateAuto", "runtime.SetFinalizer", "runtime.addspecial"], 60),
    (["cstr.BenchmarkAllocateAuto", "runtime.cgocall"], 25),
    (["runtime.gcBgMarkWorker"], 15),
]

Metrics = dict[str, float]
Change = Callable[[Case, int, Metrics], None]


def record(
    folder: Path, ns: Mapping[str, float] = NS, rounds: int = 8, change: Change | None = None
) -> runs.Run:
    """A run of lemire at the standard budget, made up, with 1 % of noise.

    `change` may change the metrics of each sample: it is given the case, the round and them.
    """
    machine = {"cpu": "Made-up CPU", "allowed_cpus": 2, "release": "Test OS"}
    run = runs.create(folder, machine=machine, fingerprint="0" * 12, warnings=["It is made up."])
    noise = random.Random(1)
    lines = []
    for number in range(1, rounds + 1):
        for case in EXPERIMENTS["lemire"].within(BUDGETS["standard"]):
            for _ in range(case.processes):
                metrics = _metrics(case, ns, number, noise)
                if change:
                    change(case, number, metrics)
                lines.append(benchfmt.format_line(sample(case, metrics)))
            if case.arm.profile:
                path = run.profile(case.name, number)
                path.parent.mkdir(exist_ok=True)
                stacks = [(stack, ns_ * 10**7 + number) for stack, ns_ in STACKS]
                write_profile(path, stacks)
    run.append(lines)
    finished = {
        "because": "it was made up",
        "studies": ["lemire"],
        "rounds": rounds,
        "samples": len(lines),
        "seconds": 10.0,
        "share_in_loops": 0.8,
        "date": "2026-01-01T00:00:00Z",
    }
    run.update(compilers={"C compiler": "cc 1.0"}, finished={"standard": finished})
    return run


def sample(case: Case, metrics: Metrics) -> benchfmt.Sample:
    """A sample of a case."""
    procs = 1 if case.arm.setting == "precise" else 2
    keys = {**dict(case.arm.sub), "go": case.release, **case.arm.keys()}
    return benchfmt.Sample(case.arm.benchmark, n=case.n, metrics=metrics, keys=keys, procs=procs)


def _metrics(case: Case, ns: Mapping[str, float], number: int, noise: random.Random) -> Metrics:
    time = ns[case.arm.benchmark] * noise.gauss(1, 0.01) * (0.92 if case.arm.gogc == "off" else 1)
    left = case.n if case.leaks or case.arm.gogc == "off" else 0
    slices = {"slice-p05-ns/op": time * 0.98, "slices-ns/op": time} if case.arm.stationary else {}
    return {
        "ns/op": time,
        "cpu-ns/op": time * 1.05,
        "settled-ns/op": time * (1.3 if left else 1.05),
        "settled-cpu-ns/op": time * 1.1,
        **slices,
        "run-delay-share": 0.02,
        "gc-cycles": 3,
        "faults": 1000,
        "peak-rss-bytes": 1e8,
        "c-allocated": case.n,
        "c-freed": case.n - left,
        "c-unfreed-loop": left,
        "c-unfreed-drained": case.n if case.leaks else 0,
        "c-misfreed": 0,
        "allocs/op": 1,
        "B/op": 8,
        "round": number,
        "unix-s": 1e9 + number,
        "elapsed-s": 1,
    }
