"""Cloudflare: signing on many goroutines, the effect of GOGC, and GC tuning today."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median_high
from types import MappingProxyType

import pandas as pd
from matplotlib.axes import Axes

from gccost import rounding
from gccost.errors import GccostError
from gccost.judging import published
from gccost.judging.claims import Claim, Study
from gccost.judging.fits import Plane, Scaling, plane
from gccost.judging.fits import scaling as fit_scaling
from gccost.judging.quantities import Amount, Share
from gccost.judging.recording import Recording
from gccost.judging.rules import About, AtLeast, AtMost, Effect
from gccost.judging.stacks import GC_AND_LOCKS, MARKING, SWEEPING, WAITING
from gccost.measuring import gctrace
from gccost.measuring.cases import Case, Ratio, Variant
from gccost.measuring.toolchains import CLOUDFLARE_GO, TODAY_GO
from gccost.rounding import rounded
from gccost.showing.figures import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE
from gccost.showing.plots import (
    NO_ESTIMATE,
    PERCENT,
    Axis,
    Drawing,
    Mark,
    Point,
    below,
    by_line,
    by_panel,
    canvas,
    chart,
    curves,
    dots,
    drawing,
    name_points,
    ticks_between,
)
from gccost.stats import Estimate
from gccost.studies.common import Part, in_percent, levels, release, scaled, shares

# === Cases ===========================================================================


DOCUMENT_CPUS = 48  # the document's machine: 24 cores with two threads each
LEAST_CPUS = 16  # the fewest that can test the claims about many cores
BEST_GOGC = "11300"  # the best value of the document's sweep
RELEASES = (CLOUDFLARE_GO, TODAY_GO)

# Bytes of garbage per signature on the newest release; with the GC off they stay allocated.
_SIGNATURE = 7_000
# Operations of a sample, which takes a quarter to half a second on one CPU.
_SIGNATURES = 6_000
_SERVED = 30_000
# The same for half a second or more on the document's machine.
_SIGNATURES_AT_48 = 300_000

# --- The document's sweep: as many Ps as CPUs ------------------------------------

GOROUTINES = tuple(range(1, 97))
_QUICK_GOROUTINES = (1, 2, 4, 8, 12, 17, 24, 32, 48, 64, 96)
_STANDARD_GOROUTINES = (*range(1, 5), *range(6, 97, 2))


def signing(goroutines: int, gogc: str = "100", profile: str = "") -> Variant:
    """Signing on this many goroutines and all CPUs."""
    return Variant("Sign", gogc, profile=profile, sub=(("goroutines", str(goroutines)),))


# --- The mechanism on any number of CPUs: Ps taking turns on one CPU -------------

PROCS = (1, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 64, 96)
_QUICK_PROCS = (1, 8, 16, 24, 32, 48)
MOST_PROCS = 48
# Every combination is measured, for the reader to choose from.
GRID_PROCS = (1, 16, 32, MOST_PROCS)
GRID_GOGC = ("100", "200", "400", "800", "off")


def turns(procs: int, gogc: str = "100", profile: str = "") -> Variant:
    """Signing on this many Ps, one goroutine each, that take turns on one CPU."""
    sub = (("goroutines", str(procs)),)
    return Variant("SignInTurns", gogc, "precise", "", profile, procs=str(procs), sub=sub)


# --- GOGC, in steps set by the budget --------------------------------------------

_QUICK_GOGC = ("100", "200", "400", "800", "off")
_STANDARD_GOGC = (
    *("300", "600", "1200", "1600", "2400", "4800", "8000", "11300", "16000", "20000"),
)
GOGCS = (*map(str, range(100, 20_001, 100)), "off")
# The document publishes figures for these.
_PRINTED_GOGC = ("100", "2400", "4800", BEST_GOGC, "off")


def _tier(value: object, quick: Container[object], standard: Container[object]) -> str:
    """The smallest budget that measures a value of a sweep."""
    return "tiny" if value in quick else "standard" if value in standard else "thorough"


# --- Ways to reduce the GC's work -------------------------------------------------

CONTAINER_MIB = 64
SERVE = Variant("Serve", setting="precise")
_GOALS = (16, 32, 64, 128)


def with_limit(mib: int) -> Variant:
    """A server limited by GOMEMLIMIT alone, with GOGC off."""
    return replace(SERVE, gogc="off", limit=f"{mib}MiB")


def aiming(how: str, mib: int) -> Variant:
    """A server with a "Ballast" or a "Tuner" that targets a heap of `mib` MiB."""
    return replace(SERVE, benchmark=f"Serve{how}", sub=(("mib", str(mib)),))


# automemlimit's rule: GOMEMLIMIT is nine tenths of the container's memory, and GOGC is
# unchanged. This does not need the library.
AUTOMEMLIMIT = replace(SERVE, limit=f"{CONTAINER_MIB * 2**20 * 9 // 10}B")
FIXED = tuple(
    replace(SERVE, gogc=gogc) for gogc in ("50", "100", "200", "400", "800", "1600", "off")
)
LIMITED = tuple(with_limit(mib) for mib in _GOALS)
BALLASTS = tuple(aiming("Ballast", mib) for mib in _GOALS)
TUNERS = tuple(aiming("Tuner", mib) for mib in _GOALS)
WAYS = (*FIXED, *LIMITED, *BALLASTS, *TUNERS, AUTOMEMLIMIT)
_LATER = frozenset({FIXED[0], FIXED[5], LIMITED[0], BALLASTS[0], TUNERS[0]})
_SERVED_BYTES = 19_000  # allocated per operation


def _sweep(go: str) -> Iterator[Case]:
    for goroutines in GOROUTINES:
        min_budget = _tier(goroutines, _QUICK_GOROUTINES, _STANDARD_GOROUTINES)
        n = _SIGNATURES * max(1, goroutines // 2)
        for gogc in ("100", BEST_GOGC):
            variant, cpus = signing(goroutines, gogc), min((goroutines + 1) // 2, LEAST_CPUS)
            yield Case("signing", variant, go, n, min_budget, cpus, traced=True)
    for gogc in GOGCS:
        if gogc not in ("100", BEST_GOGC):  # measured above
            min_budget = _tier(gogc, (*_PRINTED_GOGC, *_QUICK_GOGC), _STANDARD_GOGC)
            variant, retained = signing(DOCUMENT_CPUS, gogc), _SIGNATURE if gogc == "off" else 0
            case = Case("signing", variant, go, _SIGNATURES_AT_48, min_budget, LEAST_CPUS)
            yield replace(case, retained_bytes=retained, traced=True)
    for gogc in ("100", BEST_GOGC):
        variant = signing(DOCUMENT_CPUS, gogc, profile="cpu")
        yield Case("signing", variant, go, _SIGNATURES_AT_48, cpus=LEAST_CPUS)


def _turns(go: str) -> Iterator[Case]:
    def case(procs: int, gogc: str, min_budget: str) -> Case:
        case = Case("signing", turns(procs, gogc), go, _SIGNATURES, min_budget, traced=True)
        return replace(case, retained_bytes=_SIGNATURE if gogc == "off" else 0)

    for procs in PROCS:
        yield case(procs, "100", "tiny" if procs in _QUICK_PROCS else "standard")
    for gogc in GOGCS:
        if gogc != "100":  # measured above
            yield case(MOST_PROCS, gogc, _tier(gogc, _QUICK_GOGC, _STANDARD_GOGC))
    for procs in GRID_PROCS:
        for gogc in GRID_GOGC:
            if gogc != "100" and procs != MOST_PROCS:  # measured above
                yield case(procs, gogc, "tiny" if (procs, gogc) == (1, "400") else "standard")
    for gogc in ("100", "400"):
        variant = turns(MOST_PROCS, gogc, profile="cpu")
        yield Case("signing", variant, go, _SIGNATURES)


def _cases() -> Iterator[Case]:
    for go in RELEASES:
        yield from _sweep(go)
        yield from _turns(go)
    for variant in WAYS:
        min_budget = "standard" if variant in _LATER else "tiny"
        retained = _SERVED_BYTES if variant.gogc == "off" and not variant.limit else 0
        case = Case("churn", variant, TODAY_GO, _SERVED, min_budget, traced=True)
        yield replace(case, retained_bytes=retained)
    control = replace(turns(MOST_PROCS), control="relinked")
    yield Case("signing", control, TODAY_GO, _SIGNATURES, traced=True)


# === Claims ==========================================================================


# A ratio of throughputs is the inverse ratio of times per operation.


def _claims() -> tuple[Claim, ...]:
    claim = partial(Claim, releases=RELEASES, cpus=LEAST_CPUS)
    all_cpus, half = signing(DOCUMENT_CPUS), signing(DOCUMENT_CPUS // 2, BEST_GOGC)
    off, best = signing(DOCUMENT_CPUS, "off"), signing(DOCUMENT_CPUS, BEST_GOGC)
    profile = Share(signing(DOCUMENT_CPUS, profile="cpu"), GC_AND_LOCKS)
    return (
        claim("C1", "does-it-scale", Ratio(all_cpus, signing(17)), Effect()),
        claim("C2", "does-it-scale", Ratio(signing(1), all_cpus, "cpu-ns/op"), AtMost()),
        claim("C3", "the-profile-of-the-collapse", profile, AtLeast()),
        claim("C4", "a-cycle-every-millisecond", Amount(all_cpus, "gc-cycles/s"), About()),
        claim("C5", "with-the-gc-off", Ratio(all_cpus, off), Effect()),
        claim("C6", "with-the-gc-off", Ratio(off, signing(DOCUMENT_CPUS, "2400")), Effect()),
        claim("C7", "with-the-gc-off", Ratio(signing(1), best), Effect()),
        claim("C8", "does-it-scale", Ratio(half, best), AtLeast()),
    )


# === Estimates =======================================================================


RATE = "op/cpu-s"
# The document's 78,940.67 op/s over its 679 cycles a second.
PUBLISHED_OPERATIONS = 116
THRESHOLD = 2.0  # the factor of a steep fall in operations per cycle


# --- Sweeps over the Ps and GOGC -------------------------------------------------------


def threshold(recording: Recording, go: str) -> tuple[int, int, float] | None:
    """The two numbers of Ps between which operations per GC cycle fall most, and the factor.

    None if they never fall by a factor of THRESHOLD or more.
    """
    levels = [
        (procs, e.value)
        for procs in PROCS
        if (e := recording.level(turns(procs), go, "gc-cycle-op")).samples
    ]
    falls = [(before[1] / after[1], before[0], after[0]) for before, after in pairwise(levels)]
    fall, before, after = max(falls, default=(0.0, 0, 0))
    return (before, after, fall) if fall >= THRESHOLD else None


def sweep_variant(recording: Recording) -> tuple[Callable[[str], Variant], str, str]:
    """The GOGC sweep to show: a function from GOGC to variant, its metric, and a description.

    It is the document's own sweep if there are enough CPUs, otherwise Ps taking turns.
    """
    if recording.cpus >= LEAST_CPUS:
        words = f"signatures per second, {DOCUMENT_CPUS} goroutines on {recording.cpus} CPUs"
        return (lambda gogc: signing(DOCUMENT_CPUS, gogc)), "op/s", words
    words = f"signatures per CPU second, {MOST_PROCS} Ps that take turns on one CPU"
    return (lambda gogc: turns(MOST_PROCS, gogc)), RATE, words


def best_gogc(recording: Recording, go: str) -> str:
    """The smallest GOGC of the sweep that no other value significantly outperforms.

    An empty string if none was measured.
    """
    variant, metric, _ = sweep_variant(recording)
    return first_unbeaten(recording, go, {gogc: variant(gogc) for gogc in GOGCS}, metric)


def first_unbeaten(
    recording: Recording, go: str, variants: Mapping[str, Variant], metric: str
) -> str:
    """The name of the first measured variant that no other significantly exceeds, or ""."""

    def beaten(variant: Variant) -> bool:
        ratios = (Ratio(other, variant, metric) for other in variants.values())
        return any(recording.estimate(ratio, go).low > 1 for ratio in ratios)

    measured = (name for name, v in variants.items() if recording.level(v, go, metric).samples)
    return next((name for name in measured if not beaten(variants[name])), "")


def profiled_variants(recording: Recording) -> list[Variant]:
    """The profiled variants: at the default GOGC, and at a better one."""
    if recording.cpus >= LEAST_CPUS:
        return [signing(DOCUMENT_CPUS, gogc, profile="cpu") for gogc in ("100", BEST_GOGC)]
    return [turns(MOST_PROCS, gogc, profile="cpu") for gogc in ("100", "400")]


GC_PARTS = {
    "GC and locks": GC_AND_LOCKS,
    "of it, marking": MARKING,
    "of it, sweeping": SWEEPING,
    "of it, locks and waiting": WAITING,
}
# The functions in the document's profile, by part of the GC.
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


PRINTED, SAVED = "gctrace's percentage", "saved by GOGC=400"
_SHARES = {
    PRINTED: "gctrace-share",
    "MemStats.GCCPUFraction": "gc-share-memstats",
    "runtime/metrics over CPU time": "gc-share-classes",
}


def gc_shares(recording: Recording, go: str) -> dict[str, tuple[Estimate, list[float]]]:
    """The GC's share (0 to 1) of the CPU time with many Ps, and its raw values, by measure.

    The last two measures are its share of the CPU profile and the share that GOGC=400 saves.
    """
    variant, share = turns(MOST_PROCS), Share(turns(MOST_PROCS, profile="cpu"), GC_AND_LOCKS)
    ratio = Ratio(turns(MOST_PROCS, "400"), variant, "cpu-ns/op")
    left = recording.estimate(ratio, go)
    saved = replace(left, value=1 - left.value, low=1 - left.high, high=1 - left.low)
    return {
        name: (recording.amount(variant, go, metric), list(recording.values(variant, go, metric)))
        for name, metric in _SHARES.items()
    } | {
        "profile: GC and locks": (recording.estimate(share, go), list(recording.shares(share, go))),
        SAVED: (saved, [1 - v for v in recording.points(ratio, go)]),
    }


# --- gctraces --------------------------------------------------------------------------


def published_trace() -> gctrace.Trace:
    """The document's printed gctrace lines, parsed."""
    return gctrace.parse(published.text("cloudflare-gctrace.txt"))


def traced(recording: Recording, variant: Variant, go: str) -> gctrace.Trace | None:
    """The gctrace of a variant's first sample; None if the run has none.

    Raises GccostError if the trace is unreadable.
    """
    path = recording.run.gctrace(variant.on(go))
    return gctrace.read(path) if path.exists() else None


def start(recording: Recording, variant: Variant, go: str) -> str:
    """The median heap size (MB) at which a variant's GC cycles start, or "–"."""
    try:
        found = traced(recording, variant, go)
    except GccostError:  # the gctrace chart reports it
        return "–"
    return str(median_high(c.start_mb for c in found.own)) if found and found.own else "–"


def between(trace: gctrace.Trace) -> list[float]:
    """The times (ms) between adjacent cycles of a trace, without forced cycles."""
    return [
        max(1000 * (after.at - before.at), 0.5)  # gctrace prints whole ms
        for before, after in pairwise(trace.own)
        if after.number == before.number + 1
    ]


def medians(trace: gctrace.Trace) -> dict[str, float]:
    """The median ms between a trace's cycles, their number, and their median heaps in MB."""
    own = trace.own
    return {
        "estimate": median_high(between(trace)),
        "cycles": len(own),
        "start_mb": median_high(cycle.start_mb for cycle in own),
        "live_mb": median_high(cycle.live_mb for cycle in own),
        "goal_mb": median_high(cycle.goal_mb for cycle in own),
    }


def traces(recording: Recording) -> tuple[dict[str, gctrace.Trace], list[GccostError]]:
    """The traces that have cycles, by name, the document's first; and the read errors."""
    variants = {f"{MOST_PROCS} Ps": turns(MOST_PROCS), "1 P": turns(1)}
    if recording.cpus >= LEAST_CPUS:
        variants = {f"{DOCUMENT_CPUS} goroutines, all CPUs": signing(DOCUMENT_CPUS)} | variants
    found, unread = {"as published": published_trace()}, []
    for go in recording.releases:
        for label, variant in variants.items():
            try:
                trace = traced(recording, variant, go)
            except GccostError as error:
                unread.append(error)
                continue
            if trace is not None and len(between(trace)) > 1:
                found[f"Go {go}, {label}"] = trace
    return found, unread


# --- Throughput against memory -----------------------------------------------------------


def way(variant: Variant) -> str:
    """The name of a way to reduce the GC's work."""
    if variant == AUTOMEMLIMIT:
        return "automemlimit's rule"
    if variant.limit:
        return f"limit {variant.limit.removesuffix('MiB')}"
    if variant.sub:
        return f"{variant.benchmark.removeprefix('Serve').lower()} {variant.sub[0][1]}"
    return "GC off" if variant.gogc == "off" else f"GOGC={variant.gogc}"


@dataclass(frozen=True)
class Way:
    """A way's throughput per CPU second and peak memory, and whether it is on the front."""

    variant: Variant
    rate: Estimate
    memory: Estimate
    front: bool


def ways(recording: Recording) -> list[Way]:
    """The throughput and memory of each measured way.

    A way is on the Pareto front if no other has more throughput with no more memory.
    """
    found = [
        (variant, rate, recording.level(variant, TODAY_GO, "peak-rss-bytes"))
        for variant in WAYS
        if (rate := recording.level(variant, TODAY_GO, RATE)).samples
    ]
    return [
        Way(
            variant,
            rate,
            memory,
            not any(r.value > rate.value and m.value <= memory.value for _, r, m in found),
        )
        for variant, rate, memory in found
    ]


# --- What a GC cycle and a page fault cost ------------------------------------------------

MODELLED: Mapping[str, tuple[Variant, ...]] = MappingProxyType(
    {
        "signing on Ps that take turns": tuple(turns(MOST_PROCS, g) for g in GOGCS),
        "a server's garbage": WAYS,
    }
)


def modelled(recording: Recording, go: str, variants: Iterable[Variant]) -> pd.DataFrame:
    """A frame with a row per sample: CPU ns, GC cycles and page faults per operation."""
    parts = [pd.DataFrame(columns=["cpu", "cycles", "faults"], dtype=float)]
    for variant in variants:
        samples = recording.samples(variant, go)
        if len(samples):
            cycles, faults = samples["gc-cycles"] / samples["n"], samples["faults"] / samples["n"]
            found = {"cpu": samples["cpu-ns/op"], "cycles": cycles, "faults": faults}
            parts.append(pd.DataFrame(found).dropna())
    return pd.concat(parts)


def cost_model(recording: Recording, go: str, variants: Iterable[Variant]) -> Plane | None:
    """Fit cpu/op = a + c·GC/op + f·faults/op to the samples, in ns; None if too few.

    It is fitted without page faults, and has no f, if f is not significantly above zero.
    """
    found = modelled(recording, go, variants)
    fit = plane([found["cycles"], found["faults"]], found["cpu"])
    if fit is None or fit.coefficients[-1].low > 0:
        return fit
    return plane([found["cycles"]], found["cpu"])


def variation_at_gogc_100(recording: Recording, go: str, variants: Iterable[Variant]) -> float:
    """The share (0 to 1) of the samples' variation in GC cycles per operation at GOGC=100.

    It is of the sum of squares about the mean, on which the fitted cost of a cycle rests.
    """
    every, own = (
        modelled(recording, go, chosen)["cycles"]
        for chosen in (variants, [v for v in variants if v in (turns(MOST_PROCS), SERVE)])
    )
    about = every.mean()
    return float(((own - about) ** 2).sum() / ((every - about) ** 2).sum())


# --- Scaling with cores ------------------------------------------------------------------


def published_throughput() -> dict[float, float]:
    """The document's signatures per second at GOGC=100, by the number of goroutines."""
    found = published.table("cloudflare-throughput").query("gogc == '100'")
    return {float(n): float(x) for n, x in zip(found["goroutines"], found["op_per_s"], strict=True)}


def published_sweep() -> dict[str, float]:
    """The document's signatures per second on all its CPUs, for each GOGC except 100."""
    found = published.table("cloudflare-throughput").query("gogc != '100'")
    return {str(gogc): float(x) for gogc, x in zip(found["gogc"], found["op_per_s"], strict=True)}


def published_law() -> Scaling | None:
    """The scalability law fitted to the document's throughputs at GOGC=100 up to their peak."""
    found = published_throughput()
    peak = max(found, key=found.__getitem__)
    rising = {n: x for n, x in found.items() if n <= peak}
    return fit_scaling(list(rising), list(rising.values()))


# === Charts ==========================================================================


_TICKS = (1, 8, 16, 24, 32, 48, 64, 96)  # on axes of goroutines or Ps


def _thousands(x: float) -> str:
    return rounding.plain(x / 1000) + "k"


def _from_zero(label: str, high: float | None = None) -> Axis:
    """A y axis for a throughput."""
    return Axis(label, limits=(0, high), format=_in_thousands)


def _in_thousands(x: float, _: object) -> str:
    return f"{x / 1000:g}k" if x else "0"


def _named(setting: str) -> str:
    return "GC off" if setting == "off" else f"GOGC={setting}"


# --- The document's figures ------------------------------------------------------------


@chart("cloudflare-published", "The document's throughputs are missing")
def published_scaling(recording: Recording) -> Drawing | None:
    """The document's throughputs, with the scalability law fitted up to the peak."""
    del recording
    figures = published.table("cloudflare-throughput").astype({"op_per_s": float})
    law = published_law()
    if law is None:
        return None
    one, most = figures["op_per_s"].iloc[0], figures["op_per_s"].max()
    last = DOCUMENT_CPUS
    points = [
        Point(
            "",
            _named(setting),
            NO_ESTIMATE,
            n,
            label=_thousands(rate),
            colour=PURPLE,
            published=[Mark(rate, "D" if setting == "100" else "s")],
        )
        for n, setting, rate in figures.itertuples(index=False)
    ]

    def lines(axes: Axes, _: str) -> None:
        grid = [1 + i * (last - 1) / 94 for i in range(95)]
        axes.plot(grid, [rounded(law.at(n)) for n in grid], color=BLUE, linewidth=1.6)
        axes.axline((0, 0), slope=one, color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
        at, text = (most / one - 0.5, most), "proportional\nto the first"
        axes.text(*at, text, ha="right", va="center", color=MUTED, fontsize=9)

    found = curves(
        points,
        f"As published: {_thousands(published_throughput()[last])} signatures a second "
        f"from {last} goroutines, {_thousands(most)} with the best GOGC; a law fitted up to the "
        f"peak predicts {_thousands(law.at(last))}",
        Axis("goroutines, on 24 cores with 48 threads", limits=(0, last * 1.03)),
        _from_zero("signatures per second", 1.12 * most),
        kind="A chart of the published throughputs over the goroutines, with the Universal "
        "Scalability Law through the points up to the peak (contention "
        f"{rounding.percent(law.contention)}, coherence {rounding.percent(law.coherence)})",
        height=10,
        gap=0.06,
        more_ends=[(law.at(last), "the law", BLUE)],
        decorate=lines,
    )
    return found and replace(found, data=figures.assign(law=figures["goroutines"].map(law.at)))


# --- Throughput over goroutines, Ps and GOGC ----------------------------------------------


def _swept(
    recording: Recording,
    lines: Mapping[str, tuple[str, Mapping[int, Variant]]],
    metric: str,
    x: str,
) -> list[Point]:
    """A metric over x, a panel per release; `lines` maps names to a colour and variants by x."""
    return [
        point
        for go in recording.releases
        for name, (ink, variants) in lines.items()
        for point in levels(
            recording,
            release(recording, go),
            name,
            go,
            variants.items(),
            metric,
            _thousands,
            data={"unit": metric, x: None},
            colour=ink,
        )
    ]


@chart("cloudflare-scaling", "Signing on all CPUs was not measured")
def scaling(recording: Recording) -> Drawing | None:
    """Throughput over the goroutines on this machine's CPUs, a panel per release."""
    lines = {
        _named(setting): (ink, {n: signing(n, setting) for n in GOROUTINES})
        for setting, ink in (("100", ORANGE), (BEST_GOGC, GREEN))
    }
    points = _swept(recording, lines, "op/s", "goroutines")
    cpus, most = recording.cpus, max((p.x for p in points), default=1)

    def this_machine(axes: Axes, _: str) -> None:
        axes.axvline(cpus, color=MUTED, linewidth=1, zorder=0)

    return curves(
        points,
        _scaling_title(recording, points) if points else "",
        Axis(
            f"goroutines; line: this machine's {cpus} CPUs\n"
            "hollow diamonds: as published on 24 cores, at GOGC=100",
            ticks=[x for x in (range(1, 9) if most <= 8 else _TICKS) if x <= most],
            limits=(0, most * 1.06),
        ),
        _from_zero("signatures per second"),
        kind="A line chart of signatures per second over the goroutines",
        height=7,
        gap=0.1,
        published=[(n, x, "D") for n, x in published_throughput().items() if n <= most],
        decorate=this_machine,
    )


def _scaling_title(recording: Recording, points: Sequence[Point]) -> str:
    """The gain of each release from more goroutines, at the first GOGC that was measured."""
    setting, said = points[0].line, []
    at_one_gogc = [p for p in points if p.line == setting]
    for line in by_panel(at_one_gogc).values():
        first, last, peak = line[0], line[-1], max(line, key=lambda p: p.estimate.value)
        go = str(first.data["go"])
        one, *others = (signing(int(p.x), setting[len("GOGC=") :]) for p in (first, last, peak))
        end, most = (
            rounding.interval(recording.estimate(Ratio(many, one, "op/s"), go), "ratio")
            for many in others
        )
        peaks = all(peak.estimate.low > p.estimate.high for p in (first, last))
        said.append(
            f"Go {go} {end}" + (f", with a peak of {most} at {peak.x:.0f}" if peaks else "")
        )
    return (
        f"Throughput of {max(p.x for p in at_one_gogc):.0f} goroutines over that of one, on "
        f"{recording.cpus} CPUs at {setting}: " + "; ".join(said)
    )


_OFF = 30_000  # the position of "off" on an axis of GOGC
_STEPS = (100, 200, 400, 800, 2400, 4800, 11300)
_GOGC_TICKS = {float(g): f"{g:,}" for g in _STEPS} | {_OFF: "off"}


@chart("cloudflare-gogc", "No sweep of GOGC was measured")
def sweep(recording: Recording) -> Drawing | None:
    """Throughput over GOGC, a panel per release; GC off is at the right."""
    variant, metric, words = sweep_variant(recording)
    on = {int(setting): variant(setting) for setting in GOGCS if setting != "off"}
    lines = {"GOGC": (ORANGE, on), "GC off": (GREEN, {_OFF: variant("off")})}
    swept = _swept(recording, lines, metric, "gogc")
    panels = {p.panel for p in swept if p.x != _OFF}
    points = [p for p in swept if p.panel in panels]
    own = metric == "op/s"  # the document's own sweep
    one_p = [
        Point(panel, "one P", e, label=_thousands(e.value), colour=MUTED)
        for go in recording.releases
        if (panel := release(recording, go)) in panels and not own
        if (e := recording.level(turns(1), go, metric)).samples
    ]
    figures = published_sweep().items() if own else ()
    found = points and curves(
        points + one_p,
        "Throughput relative to GOGC=100: "
        + "; ".join(_gained(recording, of) for of in by_panel(points).values()),
        Axis(f"GOGC (log); {words.partition(', ')[2]}", "log", _GOGC_TICKS, (85, 36_000)),
        _from_zero(words.partition(",")[0]),
        kind=f"A line chart of {words}, over GOGC ({_OFF:,} stands for off)",
        height=7,
        published=[(_OFF if g == "off" else float(g), x, "D") for g, x in figures],
    )
    if not found:
        return None
    return replace(found, data=found.data.replace({"gogc": {_OFF: "off"}}))


def _gained(recording: Recording, swept: Sequence[Point]) -> str:
    """A release's gain from a larger GOGC, and from turning the GC off."""
    variant, metric, _ = sweep_variant(recording)
    go, least = str(swept[0].data["go"]), variant(f"{swept[0].x:.0f}")

    def over(setting: str) -> str:
        return rounding.interval(
            recording.estimate(Ratio(variant(setting), least, metric), go), "ratio"
        )

    best = max(swept, key=lambda p: (p.x != _OFF, p.estimate.value))
    said = [f"Go {go} up to {over(f'{best.x:.0f}')} at GOGC={best.x:.0f}"]
    if any(p.x == _OFF for p in swept):
        said.append(f"{over('off')} with the GC off")
    return ", ".join(said)


@chart("cloudflare-grid", "No combination of Ps and GOGC was measured")
def grid(recording: Recording) -> Drawing | None:
    """Small multiples of all combinations: a panel per release, Ps on x, a line per GOGC."""
    inks = zip(GRID_GOGC, (ORANGE, PURPLE, BLUE, INK, GREEN), strict=True)
    lines = {
        _named(setting): (ink, {procs: turns(procs, setting) for procs in GRID_PROCS})
        for setting, ink in inks
    }
    points = _swept(recording, lines, RATE, "procs")
    at_most = {name: variants[MOST_PROCS] for name, (_, variants) in lines.items()}
    best = {go: first_unbeaten(recording, go, at_most, RATE) for go in recording.releases}
    return curves(
        points,
        f"With {MOST_PROCS} Ps "
        + "; ".join(
            f"no setting significantly outperforms {setting} on Go {go}"
            if setting == _named("100")
            else f"{setting} is the smallest that none significantly outperforms on Go {go}"
            for go, setting in best.items()
            if setting
        ),
        Axis("Ps that take turns on one CPU", ticks=GRID_PROCS, limits=(0, MOST_PROCS + 2)),
        _from_zero("signatures per CPU second"),
        kind="Line charts of signatures per CPU second over the Ps, a line per GOGC",
        gap=0.09,
    )


# --- The mechanism ---------------------------------------------------------------------

_THROUGHPUT, _CYCLES = "throughput", "how often the GC runs"
_MECHANISM = {_THROUGHPUT: (RATE, _thousands), _CYCLES: ("gc-cycle-op", rounding.plain)}


@chart("cloudflare-turns", "Signing on Ps taking turns was not measured, or had no GC cycle")
def mechanism(recording: Recording) -> Drawing | None:
    """Throughput and operations per GC cycle over the Ps that take turns on one CPU."""
    points = [
        point
        for panel, (metric, say) in _MECHANISM.items()
        for go, ink in zip(recording.releases, (BLUE, ORANGE, GREEN, INK), strict=False)
        for point in levels(
            recording,
            panel,
            f"Go {go}",
            go,
            [(procs, turns(procs)) for procs in PROCS],
            metric,
            say,
            data={"unit": metric, "procs": None},
            colour=ink,
        )
    ]
    panels = by_panel(points)
    if len(panels) < len(_MECHANISM):
        return None
    most = max(p.x for p in points)
    label = f"{PUBLISHED_OPERATIONS}"
    document = replace(NO_ESTIMATE, value=PUBLISHED_OPERATIONS)
    return curves(
        [*points, Point(_CYCLES, "as published", document, label=label, colour=PURPLE)],
        _mechanism_title(recording, by_line(panels[_THROUGHPUT]).values()),
        Axis(
            "Ps, a goroutine each, that take turns on one CPU; GOGC=100",
            ticks=[procs for procs in _TICKS if procs <= most],
            limits=(0, most * 1.04),
        ),
        {
            _THROUGHPUT: _from_zero("signatures per CPU second"),
            _CYCLES: Axis("signatures per GC cycle (log)", "log"),
        },
        kind="Line charts over the Ps, of signatures per CPU second and per GC cycle",
        gap=0.09,
    )


def _mechanism_title(recording: Recording, rates: Iterable[Sequence[Point]]) -> str:
    said, slower = [], True
    for line in rates:
        first, last = line[0], line[-1]
        slower &= last.estimate.high < first.estimate.low
        where = threshold(recording, str(first.data["go"]))
        fall = f"fall most from {where[0]} to {where[1]} Ps" if where else "never fall steeply"
        said.append(
            f"{first.line}: {first.label} to {last.label} a CPU second; operations per "
            f"GC cycle {fall}"
        )
    begins = (
        "Signing slows down with more Ps on a CPU" if slower else "Signing with more Ps on a CPU"
    )
    return f"{begins}. " + "; ".join(said)


# --- gctrace ---------------------------------------------------------------------------


def _whole_ms(x: float) -> str:
    return f"{x:.0f}" if x > 0.5 else "under 1"


def _no_trace(recording: Recording) -> str:
    return "No gctrace with cycles was recorded" + _left_out(recording, traces(recording)[1])


@chart("cloudflare-gctrace", _no_trace)
def trace(recording: Recording) -> Drawing | None:
    """The document's GC cycles and ours: the time between them, and the heap."""
    found, unread = traces(recording)
    left_out = _left_out(recording, unread)
    data = pd.DataFrame([{"variant": name} | medians(of) for name, of in found.items()])
    first, *ours = data["estimate"]
    points = [
        Point(
            "",
            variant,
            replace(NO_ESTIMATE, value=middle),
            raw=between(found[variant]),
            label=f"{_whole_ms(middle)} ms; {start}→{live} MB, goal {goal:.0f}",
            colour={"as published": PURPLE}.get(
                variant, BLUE if variant.endswith(" P") else ORANGE
            ),
        )
        for variant, middle, _, start, live, goal in data.itertuples(index=False)
    ]
    drawing = ours and dots(
        points,
        f"A cycle every {_whole_ms(first)} ms as published, every "
        f"{rounding.extent(ours, _whole_ms)} ms here, with at most {data['live_mb'].max()} MB "
        "live after it",
        "time from one GC cycle to the next (ms, log; rounded to 1 ms), GOGC=100;\n"
        "right: the median, and the heap at a cycle's start and its live heap at the end"
        + "".join(f"\n{line}" for line in textwrap.wrap(left_out[2:], 90)),
        kind="A dot plot of the times between GC cycles" + left_out,
        log=True,
    )
    return replace(drawing, data=data) if drawing else None


def _left_out(recording: Recording, unread: Sequence[GccostError]) -> str:
    """A note that names unreadable gctraces; empty if all can be read."""
    if not unread:
        return ""
    file = Path(unread[0].location).relative_to(recording.run.folder).as_posix()
    more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
    return f"; left out: {file}{more} cannot be read ({unread[0].hint})"


# --- The GC's share ----------------------------------------------------------------------


_PER_STACK = 10_000_000  # ns of CPU time between two stacks of a Go profile


@chart("cloudflare-profile", "Signing was not profiled")
def profile(recording: Recording) -> Drawing | None:
    """Shares of the CPU profile at the default and a better GOGC, with the document's."""
    whole, *_ = GC_PARTS
    printed, variants = published_profile(), profiled_variants(recording)
    parts = {
        name: Part(functions, published=printed[name], colour=ORANGE if name == whole else BLUE)
        for name, functions in GC_PARTS.items()
    }
    points = [
        point if variant.gogc == "100" else replace(point, published=())
        for go in recording.releases
        for variant in variants
        for point in shares(
            recording,
            variant,
            go,
            parts,
            f"{release(recording, go)}, GOGC={variant.gogc}",
            gogc=variant.gogc,
        )
    ]
    found = {
        (p.data["go"], p.data["gogc"]): rounding.interval(p.estimate, "number")
        for p in points
        if p.line == whole
    }
    stacks = [
        each.total / _PER_STACK
        for go in recording.releases
        for variant in variants
        for each in recording.profiles(variant, go).values()
    ]
    return dots(
        points,
        "Share (%) of the GC and its locks in the CPU profile at GOGC="
        + f"{' and '.join(variant.gogc for variant in variants)}: "
        + "; ".join(
            f"{' and '.join(found.get((go, variant.gogc), '–') for variant in variants)} on Go {go}"
            for go in dict.fromkeys(go for go, _ in found)
        ),
        f"share of the CPU profile (%), of {rounding.extent(stacks, rounding.count)} stacks each; "
        "shares overlap\n"
        "hollow diamonds: flat shares of the functions that the document lists",
        kind="A dot plot of overlapping shares of the CPU profile",
        limits=PERCENT,
    )


@chart("cloudflare-share", "The GC's share of the CPU time was not measured")
def gc_share(recording: Recording) -> Drawing | None:
    """The GC's share of the CPU time by several measures, with many Ps."""
    points = [
        Point(
            release(recording, go),
            measure,
            in_percent(estimate),
            raw=[100 * v for v in raw],
            label="under 1 %"  # gctrace prints whole percents
            if measure == PRINTED and not estimate.value
            else rounding.interval(estimate, "share"),
            colour=GREEN if measure == SAVED else ORANGE,
            data={"variant": measure, "go": go, "unit": "%"},
        )
        for go in recording.releases
        for measure, (estimate, raw) in gc_shares(recording, go).items()
        if estimate.samples
    ]
    found = {(p.data["go"], p.line): p.label for p in points}
    return dots(
        points,
        f"The GC's share with {MOST_PROCS} Ps on one CPU, by gctrace and as saved by GOGC=400: "
        + "; ".join(
            f"{found.get((go, PRINTED), '–')} and {found.get((go, SAVED), '–')} on Go {go}"
            for go in recording.releases
        ),
        "share (%) of the process's CPU time; of gctrace and GCCPUFraction, of the time of all Ps\n"
        "a value over 100 is an overcount; gctrace prints whole percents",
        kind="A dot plot of the GC's share by several measures",
    )


# --- Throughput against memory, drawn ----------------------------------------------------

_WAYS = {
    "fixed GOGC": (FIXED, BLUE),
    "GOMEMLIMIT": (LIMITED, ORANGE),
    "ballast": (BALLASTS, GREEN),
    "tuner": (TUNERS, INK),
    "automemlimit": ((AUTOMEMLIMIT,), PURPLE),
}
_LINES = {variant: (line, ink) for line, (variants, ink) in _WAYS.items() for variant in variants}


@chart("cloudflare-pareto", f"A server's garbage was not measured on Go {TODAY_GO}")
def pareto(recording: Recording) -> Drawing | None:
    """Throughput per CPU second against peak memory, with the Pareto front."""
    found = ways(recording)
    if not found:
        return None
    points = []
    for w in found:
        name, memory, (line, ink) = way(w.variant), w.memory.value / 2**20, _LINES[w.variant]
        label = f"{name} {_thousands(w.rate.value)}" + (" (on the front)" if w.front else "")
        data = {
            "variant": name,
            "go": TODAY_GO,
            "unit": RATE,
            "peak_rss_mib": memory,
            "front": w.front,
        }
        points.append(Point("", line, w.rate, rounded(memory, 3), (), label, ink, data=data))

    def raw_and_front(axes: Axes, _: str) -> None:
        for w, p in zip(found, points, strict=True):
            samples = recording.samples(w.variant, TODAY_GO)
            memory, rates = samples["peak-rss-bytes"] / 2**20, samples[RATE]
            axes.scatter(memory.map(rounded), rates.map(rounded), s=9, color=p.colour, alpha=0.3)
        front = sorted((p.x, rounded(p.estimate.value)) for p in points if p.data["front"])
        axes.step(*zip(*front, strict=True), where="post", color=MUTED, linewidth=1.2, zorder=0)
        names = [re.split("[= ]", str(p.data["variant"]))[-1] for p in points]
        at = zip(points, names, strict=True)
        name_points(axes, [(p.x, p.estimate.value, name, p.colour) for p, name in at])

    highs = [w.rate.high for w in found]
    highs += [recording.values(w.variant, TODAY_GO, RATE).max() for w in found]
    least, most = min(p.x for p in points), max(p.x for p in points)
    return curves(
        points,
        _pareto_title(recording, found),
        Axis(
            "peak resident memory (MiB, log); labels: GOGC, or the target in MiB\n"
            "grey line: the Pareto front",
            "log",
            ticks_between(least, most),
            (least / 1.2, most * 1.4),
        ),
        _from_zero(
            "operations per CPU second",
            1.05 * max(filter(math.isfinite, highs)),
        ),
        kind="A scatter plot of operations per CPU second against the peak memory in MiB",
        height=13,
        joined=False,
        decorate=raw_and_front,
    )


def _pareto_title(recording: Recording, found: Sequence[Way]) -> str:
    over = {w.variant: Ratio(w.variant, SERVE, RATE) for w in found}
    default = [
        f"{rounding.interval(w.rate, 'number')} operations per CPU second with "
        f"{rounding.mebibytes(w.memory.value)}"
        for w in found
        if w.variant == SERVE
    ]
    if not default:
        return f"Throughput and memory of {len(found)} settings; the default was not measured"
    differ = [w for w in found if recording.differs(over[w.variant], TODAY_GO)]
    if not differ:
        return f"No setting's throughput differs significantly from the default's, {default[0]}"
    best = max(differ, key=lambda w: w.rate.value).variant
    most = rounding.interval(recording.estimate(over[best], TODAY_GO), "ratio")
    return (
        f"The throughput of {len(differ)} of {len(found) - 1} settings differs significantly from "
        f"the default's, {default[0]}; of these {way(best)} has the highest, {most}"
    )


# --- The model -----------------------------------------------------------------------------


@chart("cloudflare-model", "There are too few samples to separate GC cycles from page faults")
def model(recording: Recording) -> Drawing | None:
    """The residuals of the cost model, a panel per workload and release."""
    fits = [
        (workload, go, fit)
        for workload, variants in MODELLED.items()
        for go in recording.releases
        if (fit := cost_model(recording, go, variants)) is not None
    ]
    if not fits:
        return None
    points = []
    figure, all_axes = canvas([5.5] * len(fits))
    for axes, (workload, go, fit) in zip(all_axes, fits, strict=True):
        panel = f"{workload}, Go {go}"
        own, cycle, *faults = fit.coefficients
        micros = rounding.interval(scaled(cycle, 1e-3), "number")
        parts = {
            "operation": (own, f"R² {rounding.plain(fit.r2)}"),
            "GC cycle": (cycle, f"{micros} µs a GC cycle"),
        }
        for fault in faults:
            ns = rounding.interval(fault, "number")
            parts["page fault"] = fault, f"{ns} ns a page fault"
        for name, (e, label) in parts.items():
            data = {"variant": name, "go": go, "unit": "ns", "workload": workload}
            points.append(Point(panel, name, e, label=label, data=data))
        left = [rounded(v / 1000) for v in fit.residuals]
        xs = [rounded(v / 1000) for v in fit.fitted]
        axes.scatter(xs, left, s=14, color=ORANGE, alpha=0.6, linewidths=0)
        axes.axhline(0, color=INK, linewidth=1, zorder=0)
        reach = 1.15 * max(map(abs, left))
        axes.set(ylim=(-reach, reach), ylabel="measured −\nmodel (µs)")
        words = f"{panel}: " + ", ".join(label for _, label in parts.values())
        axes.set_title("\n".join(textwrap.wrap(words, 76)), fontsize=9)
    below(figure, "CPU time per operation predicted by the model (µs)")
    title = "CPU time of a GC cycle by a linear model: " + "; ".join(
        f"{rounding.interval(scaled(fit.coefficients[1], 1e-3), 'number')} µs in {workload} on "
        f"Go {go}"
        for workload, go, fit in fits
    )
    return drawing(
        figure, title, points, "Residuals of a linear model of the CPU time per operation"
    )


# === The study =======================================================================

STUDY = Study(
    name="cloudflare",
    chapter="04-cloudflare",
    question="Does signing scale, and what does GOGC do for it?",
    cases=tuple(_cases()),
    document=CLOUDFLARE_GO,
    claims=_claims(),
    charts=(
        published_scaling,
        scaling,
        mechanism,
        sweep,
        grid,
        trace,
        profile,
        gc_share,
        pareto,
        model,
    ),
)
