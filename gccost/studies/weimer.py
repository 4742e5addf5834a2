"""Weimer's document: plain handles, Cleaner and finalize, on every available JDK.

There are two studies because they need different tools: the document's programs need a JDK,
and the benchmark that tests Effective Java's figure also needs JMH."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import pandas as pd
from matplotlib.colors import ListedColormap

from gccost import rounding, stats
from gccost.judging import published
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Difference, ExclusiveEvents, RatioToEither
from gccost.judging.recording import Recording
from gccost.judging.rules import AgainstBoth, AtLeast, Effect, Occurs, WithinTolerance
from gccost.measuring.cases import AUTO, CLEANUP, FREE, Case, Ratio, Variant
from gccost.measuring.jdks import RELEASES, number
from gccost.measuring.toolchains import DOCUMENT_JDK, TODAY_GO, TODAY_JDK
from gccost.measuring.toolchains import title as in_words
from gccost.showing.figures import BLUE, FILLS, GREEN, INK, MUTED, ORANGE
from gccost.showing.plots import (
    NO_ESTIMATE,
    Axis,
    Drawing,
    Mark,
    Point,
    below,
    by_line,
    canvas,
    chart,
    curves,
    dots,
    headline,
)
from gccost.stats import Estimate
from gccost.studies.common import (
    NAMES,
    Found,
    Timing,
    colour,
    compared,
    counted,
    levels,
    measured,
    release,
    scaled,
    timed,
    timings,
)

# === Cases ===========================================================================


# The document's own N; it makes ten times as many of the cheap plain handles.
AS_WEIMER = 10_000_000
PLAIN_AS_WEIMER = 100_000_000
# For comparing collectors: takes about a second.
_COMPARED = 4_000_000
_SMALL_HEAP = 1_000_000
_REGISTERED = 100_000
# In MB; large enough that no collection runs while the registered handles are made.
_LARGE_HEAP = "1024"

COLLECTORS = ("G1", "Serial", "Parallel", "Z")
HEAPS = (4, 8, 12, 16, 24, 32, 48, 64)  # in MB
_MORE_HEAPS = (4, 12, 16, 24, 32, 48)  # omitted at the quick budget
REMAINING = tuple(range(0, 136, 8))  # bytes left in the heap
_FEW_REMAINING = tuple(range(0, 128, 24))
LEAK_REMEDIES = ("LeakRegisterFirst", "LeakTryCatch")


def jvm(benchmark: str, *, sub: tuple[tuple[str, str], ...] = (), **settings: str) -> Variant:
    """A variant with JVM settings, such as gc="Serial", heap="16" or escape="off"."""
    more = {"gc": "G1"} | settings
    return Variant(benchmark, gogc="", sub=sub, more=tuple(more.items()))


def small(benchmark: str, heap: int) -> Variant:
    """A variant with a heap of `heap` MB."""
    return jvm(benchmark, heap=str(heap))


def leak(benchmark: str, remaining: int) -> Variant:
    """A variant that makes one handle when `remaining` bytes are left in the heap."""
    sub = (("remaining", str(remaining)),)
    return jvm(benchmark, sub=sub, gc="Epsilon", heap="64")


NOTHING, PLAIN, CLEANER, FINALIZE = map(jvm, ("Nothing", "Plain", "Cleaner", "Finalize"))
ALLOCATED, ALLOCATED_CLEANER, ALLOCATED_FINALIZE = (
    jvm(kind, escape="off") for kind in ("Plain", "Cleaner", "Finalize")
)
DISABLED = jvm("Finalize", finalization="disabled")
_FIRST_TO_DISABLE = 18  # the first JDK with --finalization=disabled
_BY_JDK = {
    "plain, must be allocated": (ALLOCATED, BLUE),
    "Cleaner": (CLEANER, GREEN),
    "finalize": (FINALIZE, ORANGE),
    "finalize, disabled": (DISABLED, MUTED),
}
REGISTERED_PLAIN, REGISTERED_CLEANER, REGISTERED_FINALIZE = (
    jvm(f"Registered{kind}", heap=_LARGE_HEAP) for kind in ("Plain", "Cleaner", "Finalize")
)


def _weimer() -> Iterator[Case]:
    for jdk in RELEASES:
        yield from _on(jdk) if jdk in (DOCUMENT_JDK, TODAY_JDK) else _between(jdk)
    control = replace(CLEANER, control="same")
    yield Case("finalization", control, TODAY_JDK, AS_WEIMER)


def _between(jdk: str) -> Iterator[Case]:
    """The cases of the chart of all JDKs, in chapter 6."""
    yield Case("finalization", NOTHING, jdk, 1, "standard")
    for variant, _ in _BY_JDK.values():
        if variant != DISABLED or number(jdk) >= _FIRST_TO_DISABLE:
            yield Case("finalization", variant, jdk, AS_WEIMER, "standard")


def _on(jdk: str) -> Iterator[Case]:
    yield Case("finalization", NOTHING, jdk, 1)
    yield Case("finalization", PLAIN, jdk, PLAIN_AS_WEIMER)
    for variant in (CLEANER, FINALIZE, ALLOCATED, ALLOCATED_CLEANER):
        yield Case("finalization", variant, jdk, AS_WEIMER)
    if number(jdk) >= _FIRST_TO_DISABLE:
        yield Case("finalization", DISABLED, jdk, AS_WEIMER)
    for variant in (REGISTERED_PLAIN, REGISTERED_CLEANER, REGISTERED_FINALIZE):
        min_budget = "standard" if variant == REGISTERED_PLAIN else "tiny"
        yield Case("finalization", variant, jdk, _REGISTERED, min_budget)
    for heap in HEAPS:
        min_budget = "standard" if heap in _MORE_HEAPS else "tiny"
        for benchmark in ("Cleaner", "Finalize"):
            yield Case("finalization", small(benchmark, heap), jdk, _SMALL_HEAP, min_budget)
    # The outcome is deterministic, so one sample is enough.
    for remaining in REMAINING:
        min_budget = "tiny" if remaining in _FEW_REMAINING else "standard"
        for benchmark in ("LeakNaive", *LEAK_REMEDIES):
            yield Case("leak", leak(benchmark, remaining), jdk, 1, min_budget, once=True)
    for gc in COLLECTORS[1:]:
        for benchmark in ("Plain", "Cleaner", "Finalize"):
            yield Case("finalization", jvm(benchmark, gc=gc), jdk, _COMPARED, "standard")
    if jdk == TODAY_JDK:
        yield Case("finalization", ALLOCATED_FINALIZE, jdk, AS_WEIMER)
        for benchmark in ("Cleaner", "Finalize"):
            yield Case("finalization", jvm(benchmark, gcthreads="1"), jdk, AS_WEIMER, "standard")


# A small heap for JMH, which reuses its pages early, so that page faults add no cost.
JMH_REMOVED, JMH_ESCAPING, JMH_CLEANED, JMH_FINALIZED = (
    jvm(benchmark, heap="512") for benchmark in ("Removed", "Escaping", "Cleaned", "Finalized")
)


def _jmh() -> Iterator[Case]:
    for jdk in (DOCUMENT_JDK, TODAY_JDK):
        for variant in (JMH_REMOVED, JMH_ESCAPING, JMH_CLEANED, JMH_FINALIZED):
            min_budget = "standard" if variant == JMH_CLEANED else "tiny"  # no claim needs it
            yield Case("jmh", variant, jdk, 0, min_budget)


# === Claims ==========================================================================


_PEAK = "peak-rss-bytes"
BUSY_CORES = 4  # needed to reproduce the 313 % of the document's finalize


def _claims() -> tuple[Claim, ...]:
    claim = partial(Claim, releases=(DOCUMENT_JDK, TODAY_JDK))
    plain = RatioToEither(Ratio(ALLOCATED_CLEANER, ALLOCATED), Ratio(CLEANER, PLAIN))
    held = Difference(Ratio(REGISTERED_FINALIZE, REGISTERED_CLEANER, "registered/op"))
    heaps = ExclusiveEvents(
        "died",
        tuple(small("Finalize", h) for h in HEAPS),
        (tuple(small("Cleaner", h) for h in HEAPS),),
    )
    leaks = ExclusiveEvents(
        "leaked",
        tuple(leak("LeakNaive", r) for r in REMAINING),
        tuple(tuple(leak(remedy, r) for r in REMAINING) for remedy in LEAK_REMEDIES),
    )
    both = "finalize-and-cleaner"
    return (
        # The document had more than three busy cores.
        claim("W1d", both, Amount(FINALIZE, "cpu-share"), Effect(), cpus=BUSY_CORES),
        claim("W1a", both, Ratio(FINALIZE, CLEANER, "cpu-s"), Effect()),
        claim("W1b", both, Ratio(FINALIZE, CLEANER, "elapsed-s"), Effect()),
        claim("W1c", both, Ratio(FINALIZE, CLEANER, _PEAK), Effect()),
        claim("W2a", "plain-and-cleaner", plain, AgainstBoth()),
        claim("W2b", "plain-and-cleaner", Ratio(CLEANER, PLAIN, _PEAK), Effect()),
        claim("W3", "plain-and-cleaner", Amount(PLAIN, "gc-cycles"), AtLeast(margin=1.0)),
        claim("W4", "never-short-lived", held, WithinTolerance()),
        claim("W5", "small-heaps", heaps, Occurs(share=0.1)),
        claim("W6", "the-registration-leak", leaks, Occurs()),
    )


_EITHER = RatioToEither(Ratio(JMH_FINALIZED, JMH_ESCAPING), Ratio(JMH_FINALIZED, JMH_REMOVED))
_JMH_CLAIM = Claim("L5", "effective-java", _EITHER, AgainstBoth(), (DOCUMENT_JDK, TODAY_JDK))


# === Estimates =======================================================================


# The outcomes for a native resource, from best to worst.
OUTCOMES = ("nothing was allocated", "opened, and freed on close", "failed, and freed", "leaked")
LEAKED = len(OUTCOMES) - 1
_LEAST_OBJECT = 16  # bytes


def per_object(
    recording: Recording, variant: Variant, on: str, metric: str = "cpu-s"
) -> tuple[list[float], Estimate]:
    """The process's time (by default CPU time) per object in ns, net of an idle JVM.

    Returns a value per sample, and the estimate.
    """
    n = recording.samples(variant, on)["n"]
    if not len(n):
        return [], stats.amount([])
    factor = 1e9 / float(n.iloc[0])
    idle = recording.level(NOTHING, on, metric).value
    values = [float(factor * (v - idle)) for v in recording.values(variant, on, metric)]
    return values, scaled(recording.added(Ratio(variant, NOTHING, metric), on), factor)


def finalize_over_cleaner(recording: Recording, on: str, gc: str = "G1") -> Estimate:
    """The CPU time of finalize over that of Cleaner, both net of an idle JVM."""
    variants = jvm("Finalize", gc=gc), jvm("Cleaner", gc=gc), NOTHING
    costs = [(variant, "cpu-s") for variant in variants]
    return recording.combine(lambda over, under, idle: (over - idle) / (under - idle), costs, on)


def made_none(recording: Recording, on: str) -> bool:
    """Whether the plain run used too little memory to have allocated its handles."""
    taken = recording.added(Ratio(PLAIN, NOTHING, _PEAK), on)
    n = recording.samples(PLAIN, on)["n"]
    return bool(len(n)) and taken.value < 0.1 * _LEAST_OBJECT * float(n.iloc[0])


def deaths(recording: Recording) -> pd.DataFrame:
    """A frame of the runs that ran out of memory (`died` of `runs`), by heap size (MB)."""
    rows = []
    for on in recording.releases:
        for benchmark in ("Cleaner", "Finalize"):
            for heap in HEAPS:
                died = recording.values(small(benchmark, heap), on, "died")
                if len(died):
                    rows.append((benchmark, on, heap, int((died > 0).sum()), len(died)))
    return pd.DataFrame(rows, columns=["variant", "release", "heap", "died", "runs"])


def outcomes(recording: Recording) -> pd.DataFrame:
    """A frame of outcomes, as indices of OUTCOMES, by the bytes left in the heap."""
    rows = []
    for on in recording.releases:
        for kind in ("LeakNaive", *LEAK_REMEDIES):
            for remaining in REMAINING:
                samples = recording.samples(leak(kind, remaining), on)
                if len(samples) and "leaked" in samples:
                    rows.append((kind, on, remaining, _worst(samples)))
    return pd.DataFrame(rows, columns=["variant", "release", "remaining", "outcome"])


def _worst(samples: pd.DataFrame) -> int:
    if (samples["leaked"] > 0).any():
        return LEAKED
    if (samples["opened"] > 0).all():
        return 1
    return 2 if (samples["native-allocated"] > 0).any() else 0


# === Charts ==========================================================================


# In Go "Finalize" is another benchmark.
_CALLED = NAMES | {"Finalize": "finalize"}
_INKS = {"Cleaner": GREEN, "Finalize": ORANGE}
_SETTINGS = {
    "escape": "escape analysis {}",
    "finalization": "finalization {}",
    "gcthreads": "{} GC thread",
    "heap": "heap of {} MB",
    "gc": "{}",
}


def name(variant: Variant) -> str:
    """The name of a kind of handle, with its non-default JVM settings."""
    settings = [(k, v) for k, v in variant.more if (k, v) != ("gc", "G1")]
    return ", ".join([_CALLED[variant.benchmark], *(_SETTINGS[k].format(v) for k, v in settings)])


def _ratio(recording: Recording, over: Variant, under: Variant, metric: str = "ns/op") -> str:
    """A ratio on the newest JDK, as text."""
    return rounding.times(recording.estimate(Ratio(over, under, metric), recording.newest).value)


def _lines(
    inks: Mapping[Variant, str],
    unit: str,
    figures: Mapping[Variant, float],
    metric: str = "ns/op",
    find: Callable[[Recording, Variant, str, str], Found] = timed,
) -> list[Timing]:
    """A line for each variant, with its published value if there is one."""
    return [
        Timing(
            _CALLED[variant.benchmark],
            variant,
            metric,
            colour=ink,
            published=[Mark(figures[variant])] if variant in figures else [],
            find=find,
            data={"unit": unit},
        )
        for variant, ink in inks.items()
    ]


_KINDS = {PLAIN: BLUE, CLEANER: GREEN, FINALIZE: ORANGE}


def _figures(column: str) -> dict[Variant, float]:
    """The published values: "cpu" time per object (ns), or peak "memory" (MiB)."""
    table = published.table("weimer-timings").set_index("variant").astype(float)
    table["cpu"] = 1e9 * (table["user_s"] + table["system_s"]) / table["objects"]
    table["memory"] = table["max_rss_kb"] / 1024
    return {variant: float(table[column][_CALLED[variant.benchmark]]) for variant in _KINDS}


@chart("weimer-cost", "None of the three kinds of handle was measured")
def cost(recording: Recording) -> Drawing | None:
    """The CPU time per object of each kind of handle, on each JDK."""
    lines = _lines(_KINDS, "cpu-ns/op, net", _figures("cpu"), "cpu-s", per_object)
    ratios = (finalize_over_cleaner(recording, on) for on in recording.releases)
    known = rounding.extent((e.value for e in ratios if e.samples), rounding.times)
    return dots(
        timings(recording, lines),
        f"An object with finalize takes {known} the CPU time of one with a Cleaner",
        "CPU time per object (ns), net of an idle JVM\n"
        "diamonds: as published, on OpenJDK 9, not net of an idle JVM",
        kind="A dot plot of the CPU time per object",
    )


@chart("weimer-releases", "None of the kinds of handle was measured")
def releases(recording: Recording) -> Drawing | None:
    """The CPU time per object of each kind of handle, over the JDKs."""
    points = [
        point
        for line, (variant, ink) in _BY_JDK.items()
        for on in recording.releases
        for point in levels(
            recording,
            "",
            line,
            on,
            [(float(number(on)), variant)],
            "cpu-s",
            find=per_object,
            data={"unit": "cpu-ns/op, net"},
            colour=ink,
        )
    ]
    costs = ", ".join(
        f"{line} {rounding.extent(p.estimate.value for p in each)} ns"
        for line, each in by_line(points).items()
        if line in ("Cleaner", "finalize")
    )
    return curves(
        points,
        f"CPU time per object, depending on the JDK: {costs}",
        Axis("JDK", ticks={float(number(on)): str(number(on)) for on in RELEASES}),
        Axis("CPU ns per object, net of an idle JVM", limits=(0, None)),
        kind="A line chart of the CPU time per object by JDK",
    )


def _mebibytes(recording: Recording, variant: Variant, on: str, metric: str) -> Found:
    values, estimate = timed(recording, variant, on, metric)
    return [v / 2**20 for v in values], scaled(estimate, 1 / 2**20)


@chart("weimer-memory", "The memory of the handles was not measured")
def memory(recording: Recording) -> Drawing | None:
    """The peak resident memory of each kind of handle, and of an idle JVM."""
    lines = _lines({NOTHING: MUTED} | _KINDS, "MiB", _figures("memory"), _PEAK, _mebibytes)
    return dots(
        timings(recording, lines, lambda mib: f"{rounding.plain(mib)} MiB"),
        f"On {in_words(recording.newest)} the process with Cleaners uses "
        f"{_ratio(recording, CLEANER, PLAIN, _PEAK)} the memory of the one with plain handles, "
        f"and that with finalize uses {_ratio(recording, FINALIZE, PLAIN, _PEAK)}",
        "peak resident memory (MiB)\ndiamonds: as published, on OpenJDK 9",
        kind="A dot plot of the peak resident memory",
    )


@chart("weimer-removed", "Plain handles were not measured")
def removed(recording: Recording) -> Drawing | None:
    """The time of plain handles that the compiler may remove, and of those that it may not."""
    variants = {"default": (PLAIN, BLUE), "escape analysis off": (ALLOCATED, INK)}
    lines = [
        Timing(line, variant, colour=ink, data={"variant": line, "unit": "ns/op"})
        for line, (variant, ink) in variants.items()
    ]
    found = [
        (p, recording.amount(variants[p.line][0], str(p.data["go"]), "gc-cycles").value)
        for p in timings(recording, lines)
    ]
    points = [
        replace(
            p,
            label=f"{p.label}, {rounding.count(n)} collection{'' if n == 1 else 's'}",
            data={**p.data, "collections": n},
        )
        for p, n in found
    ]
    counts = {str(p.data["go"]): n for p, n in found if p.line == "default"}
    heading = f"runs up to {rounding.count(max(counts.values(), default=math.nan))} times"
    if counts and not any(counts.values()):
        none = all(made_none(recording, on) for on in counts)
        heading = "does not run" + (": the compiler removes all of them" if none else "")
    return dots(
        points,
        f"By default, during a hundred million plain handles the collector {heading}",
        "wall-clock time of the loop per object (ns, log scale)\n"
        "100,000,000 handles by default, 10,000,000 with escape analysis off",
        kind="A dot plot of the time per plain handle",
        log=True,
    )


@chart("weimer-collectors", "Other collectors were not measured at this budget")
def collectors(recording: Recording) -> Drawing | None:
    """The cost of Cleaner and finalize with each collector, on each JDK."""
    lines = [
        Timing(line, jvm(kind, gc=gc), "cpu-s", None, ink, find=per_object, data=data)
        for gc in COLLECTORS
        for kind, ink in _INKS.items()
        for line in [f"{gc}: {_CALLED[kind]}"]
        for data in [{"variant": line, "unit": "cpu-ns/op, net", "gc": gc}]
    ]
    points = timings(recording, lines)
    if all(p.data["gc"] == "G1" for p in points):
        return None
    ratios = [
        (estimate.value, f"{rounding.interval(estimate, 'ratio')} with {gc} on {in_words(on)}")
        for on in recording.releases
        for gc in COLLECTORS
        if (estimate := finalize_over_cleaner(recording, on, gc)).samples
    ]
    least, most = (end(ratios, default=(math.nan, "–"))[1] for end in (min, max))
    return dots(
        points,
        f"CPU time of finalize relative to Cleaner: from {least} to {most}",
        "CPU time per object (ns), net of an idle JVM",
        kind="A dot plot of the CPU time per object by collector",
    )


_LEFT, _DRAINED = "registered/op", "registered-drained/op"
_REGISTRATIONS = (
    ("plain", REGISTERED_PLAIN, _LEFT, BLUE),
    ("Cleaner", REGISTERED_CLEANER, _LEFT, GREEN),
    ("finalize", REGISTERED_FINALIZE, _LEFT, ORANGE),
    ("finalize, after the finalizer thread", REGISTERED_FINALIZE, _DRAINED, ORANGE),
)


@chart("weimer-registered", "The registrations of closed handles were not counted")
def registered(recording: Recording) -> Drawing | None:
    """The registrations that the JVM still holds per closed handle."""
    lines = [
        Timing(line, variant, metric, colour=ink, find=counted, data=data)
        for line, variant, metric, ink in _REGISTRATIONS
        for data in [{"variant": line, "unit": "registrations/op"}]
    ]
    on = recording.newest
    cleaner, finalize = (
        rounding.percent(recording.amount(variant, on, _LEFT).value)
        for variant in (REGISTERED_CLEANER, REGISTERED_FINALIZE)
    )
    return dots(
        timings(recording, lines, lambda left: rounding.plain(left) if left else "none"),
        f"{finalize} of closed handles with finalize are still registered, "
        f"and {cleaner} of those with a Cleaner ({in_words(on)})",
        "registrations the JVM holds per closed handle",
        kind="A dot plot of live registrations per closed handle",
    )


@chart("weimer-heaps", "Small heaps were not measured")
def heaps(recording: Recording) -> Drawing | None:
    """The share of runs that ran out of memory, by heap size."""
    table = deaths(recording)
    points = [
        Point(
            release(recording, on),
            _CALLED[benchmark],
            replace(NO_ESTIMATE, value=100 * died / runs),
            heap,
            label=f"{died} of {runs}",
            colour=_INKS[benchmark],
        )
        for benchmark, on, heap, died, runs in table.itertuples(index=False)
    ]
    totals = table.groupby("variant")[["died", "runs"]].sum()
    found = curves(
        points,
        "On small heaps "
        + ", ".join(
            f"{_CALLED[benchmark]} ran out of memory in {died} of {runs} runs"
            for benchmark, died, runs in totals.itertuples()
        ),
        Axis("heap (MB, log scale); a million handles a run, all of them closed", "log"),
        Axis("runs that died (%)", limits=(-8, 108)),
        kind="A line chart of the runs that ran out of memory, by heap size in MB",
        height=5,
        gap=0.13,
    )
    return found and replace(found, data=table)


_SIGNS = ("·", "○", "●", "×")  # of the outcomes


@chart("weimer-leak", "The outcome for a resource in a full heap was not measured")
def leaks(recording: Recording) -> Drawing | None:
    """The outcome for a resource, by the bytes left in the heap."""
    import seaborn as sns  # takes a second to load

    table = outcomes(recording)
    if table.empty:
        return None
    maps = {
        str(on): found.pivot_table(
            index="variant", columns="remaining", values="outcome", sort=False
        )
        for on, found in table.groupby("release", sort=False)
    }
    figure, all_axes = canvas([3] * len(maps))
    told = []
    for axes, (on, found) in zip(all_axes, maps.items(), strict=True):
        kinds = [_CALLED[str(kind)] for kind in found.index]
        sns.heatmap(
            found,
            vmin=0,
            vmax=LEAKED,
            cmap=ListedColormap(["#f2f2f2", "#9ecae1", "#3182bd", FILLS[1]]),
            annot=found.map(lambda outcome: _SIGNS[int(outcome)], na_action="ignore"),
            fmt="",
            cbar=False,
            yticklabels=kinds,
            ax=axes,
        )
        axes.set(xlabel="", ylabel="", title=release(recording, on))
        axes.tick_params(axis="both", rotation=0)
        for kind, lost in zip(kinds, (found == LEAKED).to_numpy(), strict=True):
            at = ", ".join(map(str, found.columns[lost]))
            told.append(f"{in_words(on)}, {kind} leaks {f'at {at}' if at else 'nowhere'}")
    signs = "   ".join(f"{sign} {what}" for sign, what in zip(_SIGNS, OUTCOMES, strict=True))
    below(figure, f"bytes left in the heap\n{signs}")
    leaking = table[table["outcome"] == LEAKED]
    naive = leaking[(leaking["variant"] == "LeakNaive") & (leaking["release"] == on)]["remaining"]
    title = "Allocating before registering leaked at no heap size tried"
    if len(naive):
        title = (
            f"With {naive.min()} to {naive.max()} bytes left in the heap, allocating before "
            f"registering leaks on {in_words(on)}"
        )
    remedies = int(leaking["variant"].isin(LEAK_REMEDIES).sum())
    title += "; the two remedies " + (f"leak at {remedies} places" if remedies else "never leak")
    headline(figure, title)
    alt = f"A map of a resource's outcomes by the bytes left in the heap: {'; '.join(told)}."
    data = table.assign(outcome=[OUTCOMES[i] for i in table["outcome"]])
    return Drawing(figure, title, alt, data)


# --- Effective Java's figure --------------------------------------------------------

_JMH = {JMH_REMOVED: BLUE, JMH_ESCAPING: INK, JMH_CLEANED: GREEN, JMH_FINALIZED: ORANGE}


@chart("jmh-ratio", "Effective Java's figure was not measured")
def effective(recording: Recording) -> Drawing | None:
    """The time to create and destroy an object, with and without a finalizer, by JMH."""
    table = published.table("lemire-timings").query("language == 'Java'")
    plain, finalized = sorted(map(float, table["ns_per_op"]))
    figures = {JMH_REMOVED: plain, JMH_ESCAPING: plain, JMH_FINALIZED: finalized}
    return dots(
        timings(recording, _lines(_JMH, "ns/op", figures)),
        f"On {in_words(recording.newest)} an object with a finalizer is "
        f"{_ratio(recording, JMH_FINALIZED, JMH_ESCAPING)} as expensive as one that must be "
        f"allocated and {_ratio(recording, JMH_FINALIZED, JMH_REMOVED)} as one that may be removed",
        "time per object by JMH (ns, log scale)\n"
        "diamonds: Effective Java's figures, from before 2008",
        kind="A dot plot of the time to create and destroy an object",
        log=True,
    )


@chart("jmh-warm-up", "The warm-up of a JVM was not measured")
def warm_up(recording: Recording) -> Drawing | None:
    """The time per object while a JVM warms up."""
    on = recording.newest
    laps = sorted(c for c in map(str, recording.frame) if c.startswith("lap"))
    points = [
        point
        for variant, ink in _JMH.items()
        for i, lap in enumerate(laps, 1)
        for point in levels(
            recording,
            "",
            _CALLED[variant.benchmark],
            on,
            [(float(i), variant)],
            lap,
            data={"variant": variant.benchmark, "lap": None, "unit": "ns/op"},
            colour=ink,
        )
    ]
    return curves(
        points,
        f"On {in_words(on)} the first of {len(laps)} laps takes this multiple of the last: "
        + "; ".join(
            f"{rounding.times(each[0].estimate.value / each[-1].estimate.value)} ({line})"
            for line, each in by_line(points).items()
        ),
        Axis(
            "lap of 50 ms in a fresh JVM; the second half counts as warm",
            ticks=range(1, len(laps) + 1),
        ),
        Axis("ns per object (log)", "log"),
        kind="A line chart of the time per object over the laps of a fresh JVM",
        height=10,
    )


# --- Java next to Go ------------------------------------------------------------------

# Each line's release, name, study and ratio.
_SAFETY_NETS = (
    (TODAY_GO, "closed at once, with Cleanup.Stop", "remedies", Ratio(Variant("Stop"), FREE)),
    (TODAY_GO, "left to AddCleanup", "addcleanup", Ratio(CLEANUP, FREE)),
    (TODAY_GO, "left to a finalizer", "lemire", Ratio(AUTO, FREE)),
    (
        TODAY_JDK,
        "closed explicitly, with a Cleaner as net",
        "weimer",
        Ratio(ALLOCATED_CLEANER, ALLOCATED),
    ),
    (
        TODAY_JDK,
        "closed explicitly, with finalize as net",
        "weimer",
        Ratio(ALLOCATED_FINALIZE, ALLOCATED),
    ),
)


@chart("java-beside-go", "Neither Go nor Java was measured")
def java_and_go(recordings: Mapping[str, Recording]) -> Drawing | None:
    """The cost of a safety net relative to manual, in Go and in Java."""
    points = measured(
        compared(recordings[experiment], ratio, on, line, colour(ratio.numerator), in_words(on))
        for on, line, experiment, ratio in _SAFETY_NETS
        if experiment in recordings
    )
    what = {TODAY_GO: "a finalizer that frees", TODAY_JDK: "a finalizer as a safety net"}
    last = {str(p.data["go"]): p.label for p in points}
    return dots(
        points,
        "Cost relative to manual: "
        + ", ".join(f"in {in_words(on)} {what[on]} {label}" for on, label in last.items()),
        "wall-clock time per object relative to manual (ratio, log scale)\n"
        "manual: freeing C memory (Go), or closing a plain handle that is allocated (Java)\n"
        "Java without escape analysis",
        kind="A dot plot of the cost relative to manual",
        log=True,
        reference=1,
    )


# === The study =======================================================================

STUDY = Study(
    name="weimer",
    chapter="05-weimer",
    question="What do finalize, Cleaner and nothing at all cost in Java?",
    cases=tuple(_weimer()),
    document=DOCUMENT_JDK,
    claims=_claims(),
    charts=(
        cost,
        memory,
        removed,
        collectors,
        registered,
        heaps,
        leaks,
        releases,
    ),
)
JMH = Study(
    name="jmh",
    chapter="05-weimer",
    question="Is an object with a finalizer 430 times as expensive to create and destroy?",
    cases=tuple(_jmh()),
    document=TODAY_JDK,
    claims=(_JMH_CLAIM,),
    charts=(effective, warm_up),
)
