"""Synthetic recordings: run folders of every study with known values.

A model defines the cost of each case; samples have 0.5 % of noise. Tests override figures
with `ns` and change single samples with `change`.
"""

from __future__ import annotations

import gzip
import random
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from gccost.judging import ledger, published
from gccost.judging.claims import Claim, Study
from gccost.judging.recording import Recording
from gccost.judging.rules import Label
from gccost.measuring import benchfmt, jobs, languages, planning, profiles, runs
from gccost.measuring.campaign import METHOD
from gccost.measuring.cases import BUDGETS
from gccost.measuring.jobs import EXPERIMENTS, Job
from gccost.measuring.machine import fingerprint
from gccost.measuring.sampler import is_traced
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies import STUDIES

# ns per operation by benchmark; ns per record in the list by benchmark and order.
NS = {
    "AllocateFree": 80.0,
    "AllocateDefer": 82.0,
    "AllocateHeapFree": 95.0,
    "AllocateAuto": 700.0,
    "AllocateDummy": 690.0,
    "AllocateCleanup": 400.0,
    "AllocateOnly": 110.0,
    "EmptyFinalizer": 600.0,
    "AcrossFree": 80.0,
    "AcrossCall": 35.0,
    "AcrossMalloc": 10.0,
    "AcrossFinalizer": 700.0,
    "AcrossCleanup": 400.0,
    "ParallelFree": 60.0,
    "ParallelCleanup": 480.0,
    "ParallelAuto": 900.0,
    "ScatteredCleanup": 20_000.0,
    "ScatteredStop": 15_000.0,
    "ScatteredFinalizer": 20_000.0,
    "LoopFinalizer": 650.0,
    "LoopCleanup": 350.0,
    "ProgramPlain": 20.0,
    "ProgramCleanup": 400.0,
    "ProgramFinalizer": 450.0,
    "ProgramLists": 1000.0,
    "ascending": 1.0,
    "shuffled": 0.5,
    "descending": 0.0,
    "special": 30.0,
}
# Figures that differ on the runtime without the walk.
INDEXED = {
    "AllocateAuto": 300.0,
    "AllocateCleanup": 220.0,
    "Finalize": 200.0,
    "ScatteredCleanup": 200.0,
    "ScatteredStop": 150.0,
    "ScatteredFinalizer": 200.0,
    "LoopFinalizer": 200.0,
    "LoopCleanup": 210.0,
    "ProgramCleanup": 250.0,
    "ascending": 0.0,
    "shuffled": 0.0,
}
# Figures with the hint, which finds the place only in ascending order.
HINTED = {**INDEXED, "ScatteredCleanup": 18_000.0, "ScatteredStop": 14_000.0, "shuffled": 0.4}
WALKING = ("", *EXPERIMENTS)  # the runtimes whose figures are those of NS
OTHERWISE = 100.0  # ns per operation of any other benchmark
CALL = 70.0  # ns of a call with an empty list
CYCLES = {"UntilFreePlain": 1, "UntilFreeCleanup": 1, "UntilFreeFinalizer": 2}
# CPU seconds and MB of memory of a JVM process.
TAKES = {
    "Nothing": (0.05, 35),
    "Plain": (0.06, 40),
    "Opaque": (0.05, 40),
    "Cleaner": (1.0, 270),
    "Finalize": (4.0, 750),
}
# ns of Cleaners and arenas; the times of few live objects, and of many.
CLEANERS = {
    "ReplacePlain": (10.0, 100.0),
    "ReplaceCleaner": (100.0, 2000.0),
    "CollectPlain": (2e7, 2e7),
    "CollectCleaner": (1e8, 1e8),
    "OpenConfined": (70.0, 70.0),
    "OpenShared": (9000.0, 9000.0),
}
JMH_NS = {"Removed": 0.5, "Escaping": 5.0, "Cleaned": 50.0, "Finalized": 200.0}
TRACE = "gc 3 @0.027s 1%: 0.1+0.4+0.2 ms clock, 0.6+0.5/1/0+1 ms cpu, 4->4->0 MB, 5 MB goal, 48 P"

Stacks = list[tuple[list[str], int]]
STACKS: Stacks = [
    (["cstr.BenchmarkAllocateAuto", "runtime.SetFinalizer", "runtime.addspecial"], 60),
    (["cstr.BenchmarkAllocateAuto", "runtime.cgocall"], 25),
    (["runtime.gcBgMarkWorker"], 15),
]
Metrics = dict[str, float]
Change = Callable[[Job, int, Metrics], None]


def record(
    folder: Path,
    study: str = "lemire",
    *,
    ns: Mapping[str, float] = {},
    rounds: int = 8,
    cpus: int = 2,
    cpu: str = "Made-up CPU",
    change: Change | None = None,
) -> runs.Run:
    """A synthetic run at the standard budget, without samples that `change` empties."""
    machine = {"cpu": cpu, "allowed_cpus": cpus, "release": "Test OS"}
    run = runs.create(
        folder,
        machine=machine,
        fingerprint=fingerprint(machine),
        warnings=["It is made up."],
        method=METHOD,
    )
    chance = random.Random(1)
    lines = []
    due = planning.fitting(STUDIES[study].within(BUDGETS["standard"]), machine)
    for number in range(1, rounds + 1):
        for job in due:
            for _ in range(jobs.processes(job)):
                metrics = _metrics(job, number, ns, chance)
                if change:
                    change(job, number, metrics)
                if metrics:
                    lines.append(benchfmt.format_line(of_job(job, metrics)))
            if "profile" in job:
                path = run.profile(job["name"], number)
                path.parent.mkdir(exist_ok=True)
                write_profile(path, [(s, ns_ * 10**7 + number) for s, ns_ in _stacks(job)])
            if is_traced(job) and number == 1:
                path = run.gctrace(job["name"])
                path.parent.mkdir(exist_ok=True)
                trace = [TRACE.replace("gc 3 @0.027", f"gc {i} @{i / 1000:.3f}") for i in range(9)]
                path.write_bytes(gzip.compress("\n".join(trace[1:]).encode(), mtime=0))
    jobs.write(run.jobs_csv, due)
    run.append(lines)
    run.update(compilers={"C compiler": "cc 1.0"}, programs=languages.source_hashes(STUDIES[study]))
    run.finish("standard", "it was made up", [study])
    return run


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


def recorded(folder: Path, study: str = "lemire", **more: object) -> Recording:
    """A synthetic recording, next to no recorded run; see `record`."""
    run = record(folder, study, **more)  # type: ignore[arg-type]
    return replace(Recording.load(STUDIES[study], run), instead=lambda: None)


def benchmarks_of(recording: Recording) -> pd.Series:
    """The benchmark of each sample."""
    return recording.frame["name"].str.partition("/")[0]


def empty(folder: Path, study: str) -> Recording:
    """A recording of a study without samples."""
    run = runs.create(folder, machine={}, fingerprint="0" * 12, warnings=[])
    jobs.write(run.jobs_csv, [])
    run.append([])
    return replace(Recording.load(STUDIES[study], run), instead=lambda: None)


def job(case: str, release: str = TODAY_GO, n: int = 1000) -> Job:
    """A job of a case with N operations."""
    return jobs.sized(jobs.job(case, release), n)


def is_of(job: Job, *cases: str) -> bool:
    """Whether a job is one of these cases."""
    return job["name"] in {jobs.name(case, job["release"]) for case in cases}


def keys(job: Job) -> dict[str, str]:
    """The keys in a job's name."""
    return dict(key.split("=") for key in job["name"].split("/")[1:])


def of_job(job: jobs.Job, metrics: Metrics) -> benchfmt.Sample:
    """A sample of a job."""
    procs = 1 if job["setting"] == "precise" else 2
    return benchfmt.Sample(job["benchmark"], job["n"] or 1000, metrics, keys(job), procs)


def write_profile(path: Path, stacks: Stacks, unit: str = "nanoseconds") -> Path:
    """Write a profile.proto of stacks (outermost first), with one location per function.

    A value is a number of samples, of 1 ns each.
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
                message.function.add(id=ids[name], name=len(strings) - 1)
                message.location.add(id=ids[name]).line.add(function_id=ids[name])
        message.sample.add(location_id=[ids[n] for n in reversed(stack)], value=[value, value])
    message.string_table.extend(map(str.encode, strings))
    path.write_bytes(gzip.compress(message.SerializeToString()))
    return path


# --- The model --------------------------------------------------------------------


def _metrics(job: Job, number: int, ns: Mapping[str, float], chance: random.Random) -> Metrics:
    noise = chance.gauss(1, 0.005)
    common = {"round": number, "unix-s": 1e9 + number, "elapsed-s": 1}
    if job["release"].startswith("jdk"):
        return common | _of_a_jvm(job, noise)
    patched = HINTED if keys(job).get("runtime") == "hint" else INDEXED
    known = {**NS, **({} if keys(job).get("runtime", "") in WALKING else patched), **ns}
    metrics = common | _of_go(job, _time(job, known) * noise)
    if job["program"] == "signing":
        metrics |= _of_a_service(job, metrics["ns/op"], number)
    if job["benchmark"] == "AcrossAttach":
        at = {f"at-{x}-records-ns": (CALL + x) * noise for x in range(64, 1024, 128)}
        metrics |= at | {"call-ns": 580.0 * noise}
    if job["benchmark"] == "AcrossLive":
        metrics["special-ns"] = 90.0 * noise
    if job["program"] == "specials":
        metrics |= _of_specials(job, known, noise)
    if job["program"] == "cycles":
        metrics |= _of_cycles(job, known, noise)
    if job["program"].startswith("libraries/"):
        held = 1e3 if "Closed" in job["benchmark"] else 1e7
        metrics |= {f"rss-bytes-{i}": held * (1 + i % 8) * noise for i in range(1, 33)}
        metrics["peak-rss-bytes"] = 9 * held * noise
    if job["program"] == "remedies":
        metrics["c-held/live"] = 2 * noise
    return metrics


def _time(job: Job, known: Mapping[str, float]) -> float:
    """The time per operation in ns."""
    sub, runtime = keys(job), keys(job).get("runtime", "")
    if job["program"] == "signing":
        return 1e9 / _rate(job)
    if "bytes" in sub and "order" in sub:
        return _call(job, known, 8064 / int(sub["bytes"]) / 2)
    if "words" in sub and runtime in WALKING:
        size = 8 * int(sub["words"])
        records = 8192 // size + size / 20
        added = {"Allocate": 0.0, "Finalize": 160.0 + 0.6 * records, "Cleanup": 190 + 0.6 * records}
        return 8 + 0.17 * size + added[job["benchmark"].removeprefix("Across")]
    time = 1e6 if job["benchmark"] in CYCLES else known.get(job["benchmark"], OTHERWISE)
    return time * (0.92 if sub.get("gogc") == "off" else 1) * (0.8 if runtime == "plus" else 1)


def _call(job: Job, known: Mapping[str, float], records: float) -> float:
    """The time in ns of a call whose span's list has this many records."""
    order = keys(job)["order"]
    each = known.get(
        f"{job['benchmark']} {order} {keys(job).get('runtime', '')}".strip(), known[order]
    )
    return CALL * (1.3 if "Cleanup" in job["benchmark"] else 1) + each * records


def _of_go(job: Job, time: float) -> Metrics:
    off = keys(job).get("gogc") == "off"
    left = job["n"] if jobs.has(job, "leaks") or off else 0
    metrics = {
        "ns/op": time,
        "cpu-ns/op": time * 1.05,
        "settled-ns/op": time * (1.3 if left else 1.05),
        "settled-cpu-ns/op": time * 1.1,
        "run-delay-share": 0.02,
        "gc-cycles": 3,
        "faults": job["n"] * (0.9 if off else 0.01),
        "peak-rss-bytes": 1e8,
        "c-allocated": job["n"],
        "c-freed": job["n"] - left,
        "c-unfreed-loop": left,
        "c-unfreed-drained": job["n"] if jobs.has(job, "leaks") else 0,
        "c-misfreed": 0,
        "allocs/op": 1,
        "B/op": 8,
    }
    if job["benchmark"] in CYCLES:
        metrics["gc-cycles-to-free"] = CYCLES[job["benchmark"]]
    return metrics


def _of_specials(job: Job, known: Mapping[str, float], noise: float) -> Metrics:
    """Further metrics of chapter 07's programs."""
    sub = keys(job)
    if "bytes" in sub and "order" in sub:
        records = 8064 // int(sub["bytes"])
        at = [records * (i + 0.5) / 8 for i in range(8)]
        calls = {f"at-{x:g}-records-ns": _call(job, known, x) * noise for x in at}
        held = 56.0 * records * (1.05 if keys(job).get("runtime", "") else 1)
        return calls | {
            "call-ns": sum(calls.values()) / 8,
            "records": records / 2,
            "off-heap-bytes/span": held,
        }
    if "others" in sub:
        return {"passed-records/op": 120 / (1 + int(sub["others"])), "held-records/op": 150}
    if job["benchmark"].startswith("Loop"):
        return {"stride-bytes": int(sub["bytes"]) * (1 + int(sub.get("dummies", "0")))}
    return {}


def _of_cycles(job: Job, known: Mapping[str, float], noise: float) -> Metrics:
    """Further metrics of GC cycles with live specials."""
    each = known.get(f"special {keys(job).get('runtime', '')}".strip(), 10.0)
    cycles = {
        f"at-{x}-records-ns": 1e6 + each * x * noise for x in range(0, job["n"] + 1, job["n"] // 8)
    }
    parts = {"mark-ns/special": 0.8 * each, "sweep-ns/special": 0.2 * each}
    return cycles | parts | {"rss-bytes/special": 90.0}


def _rate(job: Job) -> float:
    """Signatures per second, modelled on the document's machine."""
    goroutines, gogc = int(keys(job).get("goroutines", "1")), keys(job)["gogc"]
    if job["benchmark"] == "SignInTurns":
        collapsed = gogc == "100" and goroutines >= 32
        return 45_000.0 - 40 * goroutines - (16_000.0 if collapsed else 0.0)
    table = published.table("cloudflare-throughput").itertuples(index=False)
    known = {(int(g), str(q)): float(v) for g, q, v in table}
    # Follow the document's points; beyond the physical cores, little is gained.
    rising = 30_600.0 * min(goroutines, 24) * 0.8 + 4000.0 * max(goroutines - 24, 0)
    falling = 274_622.0 * min(1.0, (17 / goroutines) ** 1.2)
    made = known.get((goroutines, gogc), falling if gogc == "100" else rising)
    return min(made, 30_618.5 * goroutines) if gogc == "100" else made


def _of_a_service(job: Job, time: float, number: int) -> Metrics:
    """Further metrics of chapter 04's programs."""
    gogc = keys(job)["gogc"]
    busy = min(int(keys(job)["goroutines"]), 30) if job["benchmark"] == "Sign" else 1
    cycles = {"100": 100.0, "off": 0.0}.get(gogc, 5.0)
    metrics = {
        "op/s": 1e9 / time,
        "cpu-ns/op": busy * time,
        "op/cpu-s": 1e9 / time / busy,
        "cpus-busy": busy,
        "gc-cycles": cycles,
        "gc-cycles/s": 679.0 if gogc == "100" else 6.0,
        "faults": 9000.0 * (2 + number % 2) if gogc == "off" else 1000.0 + 10 * number,
        "gc-share-memstats": 0.1,
        "gc-share-classes": 3.0,
        "gctrace-share": 0.02,
        "peak-rss-bytes": 5e8 if gogc == "off" else 5e7,
    }
    if cycles:
        metrics["gc-cycle-op"] = 116.0 if int(keys(job).get("gomaxprocs", 48)) >= 32 else 1000.0
    return metrics


def _of_a_jvm(job: Job, noise: float) -> Metrics:
    kind, more = job["benchmark"], keys(job)
    if kind.startswith("Leak"):
        remaining = int(keys(job)["remaining"])
        opened, allocated = remaining >= 80, remaining >= 32
        lost = allocated and not opened and kind == "LeakNaive"
        freed = allocated and not lost
        return {
            "opened": opened,
            "native-allocated": allocated,
            "native-freed": freed,
            "leaked": lost,
        }
    if kind.startswith("Registered"):
        left = float(kind == "RegisteredFinalize")
        drained = {"registered-drained/op": 0.0, "held-drained/op": 0.0}
        return {"registered/op": left, "held/op": left} | drained
    if kind == "Finalize" and int(more.get("heap", 64)) < 16:
        return {"died": 1.0}
    if job["program"] == "jmh":
        ns = JMH_NS[kind] * noise
        return {"ns/op": ns} | {f"lap{i:02}-ns/op": ns * (1 + 2 * (i == 1)) for i in range(1, 11)}
    if job["program"] == "cleaners":
        few, many = CLEANERS.get(kind, (OTHERWISE, OTHERWISE))
        return {"ns/op": (few if keys(job).get("live") == "1000" else many) * noise}
    cpu, memory = TAKES[kind]
    cpu *= noise
    return {
        "ns/op": cpu / job["n"] * 1e9,
        "user-s": 0.8 * cpu,
        "sys-s": 0.2 * cpu,
        "cpu-s": cpu,
        "elapsed-s": cpu,
        "cpu-share": 1.5 * noise,
        "faults": 1000,
        "gc-cycles": 0.0 if kind == "Plain" and "escape" not in more else 5.0,
        "gc-pause-s": 0.1,
        "peak-rss-bytes": memory * 1e6,
        "died": 0.0,
    }


def _stacks(job: Job) -> Stacks:
    """The stacks of a case's profile, in percent."""
    own = f"x.Benchmark{job['benchmark']}"
    if job["program"] == "signing":
        collecting = 70 if keys(job).get("gogc") == "100" else 3
        return [
            (["gccost/rates.Measure.func1", "gccost/signing.Sign"], 30),
            (["runtime.gcBgMarkWorker", "runtime.gcDrain"], collecting),
        ]
    if job["benchmark"] == "AllocateAuto":
        return STACKS
    if job["benchmark"] == "EmptyFinalizer":
        return [
            ([own, "runtime.SetFinalizer", "runtime.addspecial"], 50),
            ([own, "runtime.SetFinalizer", "runtime.lock2"], 10),
            ([own, "runtime.mallocgc", "runtime.sweepone"], 15),
            (["runtime.gcBgMarkWorker", "runtime.gcDrain"], 24),
            (["runtime.mcall"], 1),
        ]
    cleanup = [own, "gccost/cstr.AllocateCleanup"]
    add = [*cleanup, "runtime.AddCleanup[...]", "runtime.addspecial"]
    return [
        (
            [*add, "runtime.(*mspan).specialFindSplicePoint"],
            10 if "runtime" in keys(job) else 60,
        ),
        ([*cleanup, "runtime.cgocall"], 30),
        (["runtime.gcBgMarkWorker"], 10),
    ]


def labels(recording: Recording) -> dict[str, Label]:
    """The verdicts on a study's claims on today's release, by claim id."""
    rows = ledger.rows({recording.study.name: recording}, [recording.study])
    return {row.claim.id: row.verdict.label for row in rows if row.is_today}


def study_of(claim: Claim) -> Study:
    """The study that a claim belongs to."""
    return next(study for study in STUDIES.values() if claim in study.claims)
