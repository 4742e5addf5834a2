"""How throughput depends on Ps and GOGC: sweeps, gctraces, trade-offs and models.

The models are shown next to the measured points, with what they leave unexplained; no
verdict depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_high
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from gccost import places
from gccost.errors import GccostError
from gccost.judging import published
from gccost.judging.claims.quantities import Share
from gccost.judging.claims.stacks import GC_AND_LOCKS, MARKING, SWEEPING, WAITING
from gccost.judging.recording import Recording
from gccost.measuring import gctrace
from gccost.measuring.experiments.base import Arm, Ratio
from gccost.measuring.experiments.cloudflare import (
    AUTOMEMLIMIT,
    BEST_GOGC,
    DOCUMENT_CPUS,
    GOGCS,
    LEAST_CPUS,
    MOST_PROCS,
    PROCS,
    WAYS,
    signing,
    turns,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.stats import Estimate

RATE = "op/cpu-s"
# Of the document's figures: 78,940.67 op/s over 679 cycles a second.
PUBLISHED_OPERATIONS = 116
THRESHOLD = 2.0  # operations per cycle fall by so much from one number of Ps to the next


# --- Sweeps over the Ps and GOGC -------------------------------------------------------


def threshold(recording: Recording, go: str) -> tuple[int, int, float] | None:
    """Between which two numbers of Ps the operations per GC cycle fall most, and by what.

    None where they nowhere fall by the factor THRESHOLD.
    """
    levels = [
        (procs, e.value)
        for procs in PROCS
        if (e := recording.level(turns(procs), go, "gc-cycle-op")).samples
    ]
    falls = [(before[1] / after[1], before[0], after[0]) for before, after in pairwise(levels)]
    fall, before, after = max(falls, default=(0.0, 0, 0))
    return (before, after, fall) if fall >= THRESHOLD else None


def sweep_arm(recording: Recording) -> tuple[Callable[[str], Arm], str, str]:
    """What GOGC is swept on: the arm by GOGC, its metric, and the words for it.

    The document's own sweep where there are CPUs enough, else Ps that take turns.
    """
    if recording.cpus >= LEAST_CPUS:
        words = f"signatures per second, {DOCUMENT_CPUS} goroutines on {recording.cpus} CPUs"
        return (lambda gogc: signing(DOCUMENT_CPUS, gogc)), "op/s", words
    words = f"signatures per CPU second, {MOST_PROCS} Ps that take turns on one CPU"
    return (lambda gogc: turns(MOST_PROCS, gogc)), RATE, words


def best_gogc(recording: Recording, go: str) -> str:
    """The smallest GOGC of the sweep that no other value significantly outperforms.

    Empty if none was measured.
    """
    arm, metric, _ = sweep_arm(recording)
    found = {gogc: recording.level(arm(gogc), go, metric) for gogc in GOGCS}
    return first_unbeaten({gogc: e for gogc, e in found.items() if e.samples})


def first_unbeaten(levels: Mapping[str, Estimate]) -> str:
    """The first of some levels that the largest does not significantly exceed; "" of none."""
    largest = max(levels.values(), key=lambda e: e.value, default=None)
    return next((name for name, e in levels.items() if largest and e.high >= largest.low), "")


def profiled_arms(recording: Recording) -> list[Arm]:
    """The profiled arms: at the collapse, and at a better GOGC."""
    if recording.cpus >= LEAST_CPUS:
        return [signing(DOCUMENT_CPUS, gogc, profile="cpu") for gogc in ("100", BEST_GOGC)]
    return [turns(MOST_PROCS, gogc, profile="cpu") for gogc in ("100", "400")]


GC_PARTS = {
    "GC and locks": GC_AND_LOCKS,
    "of it, marking": MARKING,
    "of it, sweeping": SWEEPING,
    "of it, locks and waiting": WAITING,
}
# The functions that the document prints, by the part of the GC that they belong to.
_PRINTED = {
    "of it, marking": ("runtime.gcDrain", "runtime.gcmarknewobject", "runtime.(*lfstack).pop"),
    "of it, sweeping": ("runtime.sweepone", "runtime.(*mspan).sweep", "runtime.(*gcSweepBuf).push"),
    "of it, locks and waiting": ("runtime.procyield", "runtime.futex", "runtime.lock"),
}


def published_profile() -> dict[str, float]:
    """The document's flat shares (%) of the GC and its parts."""
    flat = published.table("cloudflare-profile").set_index("function")["flat_percent"]
    parts = {name: float(flat[list(functions)].sum()) for name, functions in _PRINTED.items()}
    return {"GC and locks": sum(parts.values())} | parts


SAVED = "saved by GOGC=400"
_SHARES = {
    "gctrace's percentage": "gctrace-share",
    "MemStats.GCCPUFraction": "gc-share-memstats",
    "runtime/metrics over CPU time": "gc-share-classes",
}


def gc_shares(recording: Recording, go: str) -> dict[str, tuple[Estimate, list[float]]]:
    """The GC's share (0 to 1) of the CPU time with many Ps and its raw values, by measure.

    The last two are its share of the CPU profile, and what GOGC=400 saves.
    """
    arm, share = turns(MOST_PROCS), Share(turns(MOST_PROCS, profile="cpu"), GC_AND_LOCKS)
    ratio = Ratio(turns(MOST_PROCS, "400"), arm, "cpu-ns/op")
    left = recording.ratio(ratio, go)
    saved = replace(left, value=1 - left.value, low=1 - left.high, high=1 - left.low)
    return {
        name: (recording.amount(arm, go, metric), list(recording.values(arm, go, metric)))
        for name, metric in _SHARES.items()
    } | {
        "profile: GC and locks": (recording.share(share, go), list(recording.shares(share, go))),
        SAVED: (saved, [1 - v for v in recording.points(ratio, go)]),
    }


# --- gctraces --------------------------------------------------------------------------


def published_trace() -> gctrace.Trace:
    """The document's printed lines, read as any trace is."""
    path = places.PUBLISHED / "cloudflare-gctrace.txt"
    return gctrace.parse(path.read_text(encoding="utf-8"))


def traced(recording: Recording, arm: Arm, go: str) -> gctrace.Trace | None:
    """The gctrace that the run kept of an arm's first sample; None if it kept none.

    Raises GccostError if it cannot be read.
    """
    path = recording.run.gctrace(arm.on(go))
    return gctrace.read(path) if path.exists() else None


def start(recording: Recording, arm: Arm, go: str) -> str:
    """The median heap in MB at which an arm's cycles start, by the trace that was kept."""
    try:
        found = traced(recording, arm, go)
    except GccostError:  # the chart of the traces reports it
        return "–"
    return str(median_high(c.start_mb for c in found.own)) if found and found.own else "–"


def between(trace: gctrace.Trace) -> list[float]:
    """The ms from each cycle to the next one of its own, where the lines are adjacent."""
    return [
        max(1000 * (after.at - before.at), 0.5)  # printed to the ms
        for before, after in pairwise(trace.own)
        if after.number == before.number + 1
    ]


def medians(trace: gctrace.Trace) -> dict[str, float]:
    """The ms between a trace's cycles, how many there are, and their heaps in MB."""
    own = trace.own
    return {
        "estimate": median_high(between(trace)),
        "cycles": len(own),
        "start_mb": median_high(cycle.start_mb for cycle in own),
        "live_mb": median_high(cycle.live_mb for cycle in own),
        "goal_mb": median_high(cycle.goal_mb for cycle in own),
    }


def traces(recording: Recording) -> tuple[dict[str, gctrace.Trace], list[GccostError]]:
    """The traces with cycles by what was traced, the document's first; what cannot be read."""
    arms = {f"{MOST_PROCS} Ps": turns(MOST_PROCS), "1 P": turns(1)}
    if recording.cpus >= LEAST_CPUS:
        arms = {f"{DOCUMENT_CPUS} goroutines, all CPUs": signing(DOCUMENT_CPUS)} | arms
    found, unread = {"as published": published_trace()}, []
    for go in recording.releases:
        for label, arm in arms.items():
            try:
                trace = traced(recording, arm, go)
            except GccostError as error:
                unread.append(error)
                continue
            if trace is not None and len(between(trace)) > 1:
                found[f"Go {go}, {label}"] = trace
    return found, unread


# --- Throughput against memory -----------------------------------------------------------


def way(arm: Arm) -> str:
    """A way to give the GC less to do, in words."""
    if arm == AUTOMEMLIMIT:
        return "automemlimit's rule"
    if arm.limit:
        return f"limit {arm.limit.removesuffix('MiB')}"
    if arm.sub:
        return f"{arm.benchmark.removeprefix('Serve').lower()} {arm.sub[0][1]}"
    return "GC off" if arm.gogc == "off" else f"GOGC={arm.gogc}"


@dataclass(frozen=True)
class Way:
    """A way's throughput per CPU second and peak memory, and whether it is on the front."""

    arm: Arm
    rate: Estimate
    memory: Estimate
    front: bool


def ways(recording: Recording) -> list[Way]:
    """What each way gives.

    The Pareto front holds the ways that no other beats in throughput with no more memory.
    """
    found = [
        (arm, rate, recording.level(arm, TODAY_GO, "peak-rss-bytes"))
        for arm in WAYS
        if (rate := recording.level(arm, TODAY_GO, RATE)).samples
    ]
    return [
        Way(
            arm,
            rate,
            memory,
            not any(r.value > rate.value and m.value <= memory.value for _, r, m in found),
        )
        for arm, rate, memory in found
    ]


# --- What a GC cycle and a page fault cost ------------------------------------------------

MODELLED: Mapping[str, tuple[Arm, ...]] = MappingProxyType(
    {
        "signing on Ps that take turns": tuple(turns(MOST_PROCS, g) for g in GOGCS),
        "a server's garbage": WAYS,
    }
)


def modelled(recording: Recording, go: str, arms: Iterable[Arm]) -> pd.DataFrame:
    """The samples of arms: CPU ns, GC cycles and page faults, each per operation."""
    parts = [pd.DataFrame(columns=["cpu", "cycles", "faults"], dtype=float)]
    for arm in arms:
        samples = recording.samples(arm, go)
        if len(samples):
            cycles, faults = samples["gc-cycles"] / samples["n"], samples["faults"] / samples["n"]
            found = {"cpu": samples["cpu-ns/op"], "cycles": cycles, "faults": faults}
            parts.append(pd.DataFrame(found).dropna())
    return pd.concat(parts)


def cost_model(recording: Recording, go: str, arms: Iterable[Arm]) -> Plane | None:
    """cpu/op = a + c·GC/op + f·faults/op through the samples of arms, in ns; None if too few."""
    found = modelled(recording, go, arms)
    return plane([found["cycles"], found["faults"]], found["cpu"])


@dataclass(frozen=True)
class Plane:
    """A least-squares fit y = first + the sum of each other coefficient times its x.

    `coefficients` have 95 % intervals by Student's t; `fitted` and
    `residuals` (y - fitted) have an entry a point.
    """

    coefficients: tuple[Estimate, ...]
    fitted: tuple[float, ...]
    residuals: tuple[float, ...]
    r2: float


def plane(xs: Sequence[ArrayLike], y: ArrayLike) -> Plane | None:
    """Fit points; None where they are too few, or do not tell the coefficients apart."""
    ys = np.asarray(y, dtype=float)
    design = np.column_stack([np.ones_like(ys), *(np.asarray(x, dtype=float) for x in xs)])
    freedom = len(ys) - design.shape[1]
    if freedom < 1:
        return None
    # On one scale, so that what counts as the same direction does not depend on units.
    scale = np.abs(design).max(axis=0)
    if not scale.all():
        return None
    scaled = design / scale
    if np.linalg.matrix_rank(scaled, tol=1e-6) < design.shape[1]:
        return None
    found = np.linalg.lstsq(scaled, ys, rcond=None)[0]
    fitted = scaled @ found
    left, total = float(((ys - fitted) ** 2).sum()), float(((ys - ys.mean()) ** 2).sum())
    variance = np.diag(np.linalg.inv(scaled.T @ scaled)) * left / freedom
    half = float(special.stdtrit(freedom, 0.975)) * np.sqrt(variance)
    coefficients = tuple(
        Estimate(float(c), float(c - h), float(c + h), len(ys), len(ys), 0.95)
        for c, h in zip(found / scale, half / scale, strict=True)
    )
    r2 = 1 - left / total if total else math.nan
    return Plane(coefficients, tuple(fitted.tolist()), tuple((ys - fitted).tolist()), r2)


# --- How far cores scale -----------------------------------------------------------------


@dataclass(frozen=True)
class Scaling:
    """The Universal Scalability Law: X(N) = one N / (1 + contention (N - 1) + coherence N (N - 1)).

    `one` is the throughput of one, the other two are shares of it that each other costs.
    """

    one: float
    contention: float
    coherence: float

    def at(self, n: float) -> float:
        """The throughput of n."""
        return self.one * n / (1 + self.contention * (n - 1) + self.coherence * n * (n - 1))


def scaling(n: ArrayLike, throughput: ArrayLike) -> Scaling | None:
    """The law through points, by their relative errors; None for fewer than its three.

    n / X(n) is linear in what is sought, so the fit has one answer.
    """
    ns, found = np.asarray(n, dtype=float), np.asarray(throughput, dtype=float)
    if len(set(ns.tolist())) < 3:
        return None
    each = ns / found
    design = np.column_stack([np.ones_like(ns), ns - 1, ns * (ns - 1)]) / each[:, None]
    alone, contention, coherence = np.linalg.lstsq(design, np.ones_like(ns), rcond=None)[0]
    if alone <= 0:
        return None
    return Scaling(1 / float(alone), float(contention / alone), float(coherence / alone))


def published_throughput(gogc: str) -> dict[float, float]:
    """The document's signatures per second at a GOGC, by the number of goroutines."""
    found = published.table("cloudflare-throughput").query("gogc == @gogc")
    return {float(n): float(x) for n, x in zip(found["goroutines"], found["op_per_s"], strict=True)}


def published_sweep() -> dict[str, float]:
    """The document's signatures per second of all its CPUs, by every GOGC but 100."""
    found = published.table("cloudflare-throughput").query("gogc != '100'")
    return {str(gogc): float(x) for gogc, x in zip(found["gogc"], found["op_per_s"], strict=True)}


def published_law() -> Scaling | None:
    """The law through the document's throughputs at GOGC=100 up to their peak."""
    found = published_throughput("100")
    peak = max(found, key=found.__getitem__)
    rising = {n: x for n, x in found.items() if n <= peak}
    return scaling(list(rising), list(rising.values()))
