"""Recordings for tests: run folders of a study, cut from the recorded run.

A case's samples are copies of one process of the recorded run, with 0.5 % of noise. Tests set
times with `ns` and change single samples with `change`.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd

from gccost import paths
from gccost.cases import jobs, sources
from gccost.cases.cases import BUDGETS
from gccost.cases.versions import TODAY_GO
from gccost.costs import metrics
from gccost.costs.recording import Recording
from gccost.judging import ledger, ratios
from gccost.judging.claims import Claim, Study
from gccost.judging.rules import Label
from gccost.measuring import planning
from gccost.run import benchfmt, jobtable, profiles, runs
from gccost.run.jobtable import Job
from gccost.run.manifest import fingerprint
from gccost.run.runs import METHOD
from gccost.studies import STUDIES

# ns per operation of the benchmarks whose ratios tests know.
NS = {
    "AllocateFree": 80.0,
    "AllocateHeapFree": 95.0,
    "AllocateAuto": 700.0,
    "AllocateDummy": 690.0,
    "AllocateCleanup": 400.0,
}
AS_RECORDED = dict.fromkeys(NS, 0.0)
OTHERWISE = 100.0  # ns per operation of a case that was not recorded
TRACE = "gc 3 @0.027s 1%: 0.1+0.4+0.2 ms clock, 0.6+0.5/1/0+1 ms cpu, 4->4->0 MB, 5 MB goal, 48 P"

Stacks = list[tuple[list[str], int]]
STACKS: Stacks = [
    (["cstr.BenchmarkAllocateAuto", "runtime.SetFinalizer", "runtime.addspecial"], 60),
    (["cstr.BenchmarkAllocateAuto", "runtime.cgocall"], 25),
    (["runtime.gcBgMarkWorker"], 15),
]
Metrics = dict[str, float]
Change = Callable[[Job, int, Metrics], None]


@cache
def reference() -> runs.Run:
    """The newest recorded run of the machine that chapters show."""
    folder = paths.ROOT / "data" / "reference"
    main = json.loads((folder / "reference.json").read_text())["machine"]
    return [run for run in runs.all_runs(folder) if run.manifest()["fingerprint"] == main][-1]


@cache
def _processes() -> Mapping[str, benchfmt.Sample]:
    """The process of each case of the recorded run whose time is the median."""
    by_name = defaultdict(list)
    for sample in reference().reading().samples.values():
        by_name[sample.full_name].append(sample)
    return {
        name: sorted(every, key=lambda each: each.metrics.get("ns/op", 0.0))[len(every) // 2]
        for name, every in by_name.items()
    }


def record(
    folder: Path,
    study: str = "lemire",
    *,
    ns: Mapping[str, float] = {},
    rounds: int = 8,
    cpus: int = 2,
    cpu: str = "Made-up CPU",
    like: runs.Run | None = None,
    change: Change | None = None,
) -> runs.Run:
    """A run at the standard budget, without samples that `change` empties.

    A time of 0 in `ns` stands for the recorded one. The machine is made up, or that of a run that
    it is `like`.
    """
    machine = {"cpu": cpu, "allowed_cpus": cpus, "release": "Test OS"}
    if like is not None:
        machine = like.manifest()["machine"]
    run = runs.create(
        folder,
        machine=machine,
        fingerprint=fingerprint(machine),
        method=METHOD,
    )
    chance = random.Random(1)
    lines = []
    due = planning.fitting(STUDIES[study].within(BUDGETS["standard"]), machine)
    for number in range(1, rounds + 1):
        for job in due:
            for _ in range(jobs.processes(job)):
                metrics = _metrics(job, number, NS | ns, chance)
                if change:
                    change(job, number, metrics)
                if metrics:
                    lines.append(benchfmt.format_line(of_job(job, metrics)))
    for job in due:
        _copy_files(job["name"], run, rounds)
    jobtable.write(run.jobs_csv, due)
    run.append(lines)
    run.update(compilers={"C compiler": "cc 1.0"}, programs=sources.source_hashes(STUDIES[study]))
    run.finish("standard", "it was made up", [study])
    ratios.write(run, [STUDIES[study]])
    return run


def _metrics(job: Job, number: int, ns: Mapping[str, float], chance: random.Random) -> Metrics:
    """A process of a case: that of the recorded run, with noise in its times."""
    noise = chance.gauss(1, 0.005)
    known = _processes().get(job["name"])
    values = dict(known.metrics) if known else {"ns/op": OTHERWISE}
    for unit in values.keys() - {"unix-s", "build-s", "elapsed-s"}:
        how = metrics.scale(metrics.column(unit))
        values[unit] *= {"time": noise, "rate": 1 / noise}.get(how, 1.0)
    if time := ns.get(job["benchmark"]):
        values["ns/op"] = time * noise
    for of_its_run in ("sitting", "build-s"):
        values.pop(of_its_run, None)
    return values | {"round": float(number), "unix-s": 1e9 + number}


def _copy_files(case: str, run: runs.Run, rounds: int) -> None:
    """Copy the profiles and the gctrace of a case."""
    kept = [*reference().profiles(case).values()]
    for number in range(1, rounds + 1) if kept else ():
        path = run.profile(case, number)
        path.parent.mkdir(exist_ok=True)
        shutil.copy(kept[number % len(kept)], path)
    if (trace := reference().gctrace(case)).exists():
        path = run.gctrace(case)
        path.parent.mkdir(exist_ok=True)
        shutil.copy(trace, path)


def cut(reference: Path, into: Path, *names: str) -> Path:
    """A copy of recordings without the samples and files whose names match any of `names`."""
    shutil.copytree(reference, into)
    cut_out = re.compile("|".join(names))
    for file in into.glob("*/*/*"):
        if cut_out.search(file.name):
            file.unlink()
    for file in into.glob("*/samples.txt"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if not cut_out.search(line.split("\t")[0])))
    return into


def alone(study: str, run: runs.Run) -> Recording:
    """A recording next to no recorded run."""
    return having(Recording(STUDIES[study], run))


def having(recording: Recording, **parts: object) -> Recording:
    """A recording with other parts, such as its frame."""
    made = replace(recording)
    vars(made).update({"recorded": None, **parts})
    return made


def recorded(folder: Path, study: str = "lemire", **more: object) -> Recording:
    """A synthetic recording, next to no recorded run; see `record`."""
    return alone(study, record(folder, study, **more))  # type: ignore[arg-type]


def benchmarks_of(recording: Recording) -> pd.Series:
    """The benchmark of each sample."""
    return recording.frame["name"].str.partition("/")[0]


def empty(folder: Path, study: str) -> Recording:
    """A recording of a study without samples."""
    run = runs.create(folder, machine={}, fingerprint="0" * 12)
    jobtable.write(run.jobs_csv, [])
    run.append([])
    return alone(study, run)


def job(case: str, release: str = TODAY_GO, n: int = 1000) -> Job:
    """A job of a case with N operations."""
    return jobs.sized(jobs.job(case, release), n)


def is_of(job: Job, *cases: str) -> bool:
    """Whether a job is one of these cases."""
    return job["name"] in {jobs.name(case, job["release"]) for case in cases}


def keys(job: Job) -> dict[str, str]:
    """The keys in a job's name."""
    return dict(key.split("=") for key in job["name"].split("/")[1:])


def of_job(job: Job, metrics: Metrics) -> benchfmt.Sample:
    """A sample of a job."""
    procs = 1 if job["setting"] == "precise" else 2
    name, *keys = job["name"].split("/")
    values = dict(key.split("=") for key in keys)
    return benchfmt.Sample(name, job["n"] or 1000, metrics, values, procs)


def write_profile(
    path: Path,
    stacks: Stacks,
    unit: str = "nanoseconds",
    files: Mapping[str, str] = {},
    build_id: str = "",
) -> Path:
    """Write a profile.proto of stacks (outermost first), with one location per function.

    A value is a number of samples, of 1 ns each. `files` has the source files of functions.
    """
    message = profiles._message()()
    strings = ["", "samples", "count", "cpu", unit]
    message.sample_type.add(type=1, unit=2)
    message.sample_type.add(type=3, unit=4)
    ids: dict[str, int] = {}
    for stack, value in stacks:
        for name in stack:
            if name not in ids:
                ids[name] = len(ids) + 1
                strings.append(name)
                function = message.function.add(id=ids[name], name=len(strings) - 1)
                if name in files:
                    strings.append(files[name])
                    function.filename = len(strings) - 1
                message.location.add(id=ids[name]).line.add(function_id=ids[name])
        message.sample.add(location_id=[ids[n] for n in reversed(stack)], value=[value, value])
    if build_id:
        strings.append(build_id)
        message.mapping.add(build_id=len(strings) - 1)
    message.string_table.extend(map(str.encode, strings))
    path.write_bytes(gzip.compress(message.SerializeToString()))
    return path


def labels(recording: Recording) -> dict[str, Label]:
    """The verdicts on a study's claims on today's release, by claim id."""
    rows = ledger.rows({recording.study.name: recording}, [recording.study])
    return {row.claim.id: row.verdict.label for row in rows if row.is_today}


def study_of(claim: Claim) -> Study:
    """The study that a claim belongs to."""
    return next(study for study in STUDIES.values() if claim in study.claims)
