"""Where a campaign on many machines stops scaling.

Runs campaigns of made-up samples that take no time, on workers that are entries of a table, and
judges the runs as `gccost compare` does. Prints the CPU time that this process needs for each
sample and each run, and for how many machines that is enough. It leaves out Dask's scheduler,
which is a process of its own.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import tarfile
import tempfile
import time
from concurrent.futures import Future
from typing import Any

from gccost.judging.machines import machines
from gccost.measuring import fleet, machine, pack, packed
from gccost.measuring.benchfmt import Sample, format_line
from gccost.measuring.cases import BUDGETS
from gccost.measuring.progress import PrintedProgress
from gccost.measuring.sampler import TRACE
from gccost.studies import STUDIES

STUDY, BUDGET = STUDIES["lemire"], BUDGETS["tiny"]
CASES = tuple(case for case in STUDY.cases if BUDGET.reaches(case.min_budget))
N = {case.name: case.scaled(BUDGET.scale).n for case in CASES}
SECONDS = 0.4  # of a real sample, on average, with the check of its machine
HERE = machine.describe()
METRICS = (
    *("ns/op", "cpu-ns/op", "settled-ns/op", "settled-cpu-ns/op", "B/op", "allocs/op"),
    *("slice-p01-ns/op", "slice-p05-ns/op", "slice-p10-ns/op", "slices", "slices-ns/op"),
    *("gc-cycles", "faults", "peak-rss-bytes", "reference-ns/op", "elapsed-s"),
)


class Client:
    """A Dask client with so many workers, which answer at once."""

    status = "running"

    def __init__(self, count: int) -> None:
        offer = {"resources": {fleet.BENCH: 1}}
        self.workers = {str(number): offer for number in range(count)}

    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": self.workers}

    def submit(self, _: object, *given: Any, workers: list[str], **__: object) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(take(workers[0], *given))
        return done

    def close(self) -> None:
        pass


def take(name: str, mark: str, request: dict[str, str] | None, _: object) -> dict[str, Any]:
    """The answer of a worker, with a made-up sample."""
    state = {"boot": name, "fingerprint": machine.fingerprint(HERE)}
    if request is None:
        return {"described": HERE, "lacking": {}, "host": f"node{name}", "pack": mark, **state}
    first, *parts = request["case"].split("/")
    metrics = {unit: random.uniform(50, 500) for unit in METRICS}
    metrics |= {"run-delay-share": 0.01, "elapsed-s": SECONDS}
    keys = dict(part.split("=", 1) for part in parts)
    line = format_line(Sample(first, N[request["case"]], metrics, keys, procs=2))
    return {"line": line, "files": {"cpu.pb.gz": "", TRACE: ""}, **state}


def archived() -> bytes:
    """A pack without programs."""
    told = {
        "format": packed.FORMAT,
        "budget": BUDGET.name,
        "made": {"commit": "", "dirty": False},
        "studies": [packed.study_json(STUDY, CASES)],
        "claims": [],
        "programs": {case.program: "" for case in CASES},
        "compilers": {},
        "random_layout": dict.fromkeys((case.release for case in CASES), True),
        "missing": {},
        "binaries": {packed.build_name(case.build): {"none": ""} for case in CASES},
    }
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:xz") as tar:
        pack._add(tar, "pack.json", json.dumps(told).encode(), 0o644)
    return stream.getvalue()


def simulate(count: int, archive: bytes) -> None:
    """Measure on so many machines; print the rates."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GCCOST_RUNS"] = folder
        start, before = time.perf_counter(), time.process_time()
        client: Any = Client(count)
        done, _ = fleet._Fleet(client, archive, lambda _: None).measure(count, 5.0)
        seconds, cpu = time.perf_counter() - start, time.process_time() - before
        assert len(done) == count
        samples = sum(len(run.reading().samples) for run in done.values())
        before = time.process_time()
        judged = machines([[run] for run in list(done.values())[:50]], [STUDY])
        judging = (time.process_time() - before) / len(judged)
    print(
        f"{count:5} machines: {samples:7,} samples in {seconds:5.1f} s, {cpu / samples * 1e3:4.1f} "
        f"ms of CPU time each, enough for {samples / cpu * SECONDS:5,.0f} machines; "
        f"{judging:4.2f} s to judge a run",
        flush=True,
    )


def main() -> None:
    """Simulate campaigns of growing size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("machines", type=int, nargs="*", default=[1, 10, 100, 1000])
    PrintedProgress.__call__ = lambda *_: None  # type: ignore[method-assign]
    archive = archived()
    for count in parser.parse_args().machines:
        simulate(count, archive)


if __name__ == "__main__":
    main()
