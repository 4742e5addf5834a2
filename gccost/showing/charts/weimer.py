"""The charts of chapter 05: plain handles, Cleaner and finalize, and Java beside Go."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from gccost import rounding, stats
from gccost.judging import published
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import AUTO, CLEANUP, FREE, Arm, Ratio
from gccost.measuring.experiments.weimer import (
    CLEANER,
    COLLECTORS,
    FINALIZE,
    HEAPS,
    JMH_CLEANED,
    JMH_ESCAPING,
    JMH_FINALIZED,
    JMH_REMOVED,
    LEAK_REMEDIES,
    NOTHING,
    PLAIN,
    REGISTERED_CLEANER,
    REGISTERED_FINALIZE,
    REGISTERED_PLAIN,
    REMAINING,
    jvm,
    leak,
    small,
)
from gccost.measuring.toolchains import TODAY_GO, TODAY_JDK
from gccost.measuring.toolchains import title as in_words
from gccost.showing.charts.old import (
    NAMES,
    Curve,
    Dots,
    Mark,
    below,
    canvas,
    colour,
    dot_plot,
    draw,
    headline,
    name_ends,
    nothing,
    plain_ticks,
    release,
    row,
    scaled,
    ticks_between,
)
from gccost.showing.figures import BLUE, GREEN, INK, MUTED, ORANGE, Chart, finish, style
from gccost.stats import Estimate

KINDS = (PLAIN, CLEANER, FINALIZE)
# In Go "Finalize" is another benchmark.
_CALLED = NAMES | {"Finalize": "finalize"}
_INKS = {"Plain": BLUE, "Cleaner": GREEN, "Finalize": ORANGE}
_PEAK = "peak-rss-bytes"
_MIB = 1 / 2**20
_PUBLISHED = {"Plain": "plain", "Cleaner": "Cleaner", "Finalize": "finalize"}
# Plain handles that the compiler was kept from removing.
KEPT = jvm("Plain", escape="off")


_SETTINGS = {
    "escape": "escape analysis {}",
    "finalization": "finalization {}",
    "gcthreads": "{} GC thread",
    "heap": "heap of {} MB",
    "gc": "{}",
}


def name(arm: Arm) -> str:
    """How a kind of handle is called, with the JVM's settings that are not the usual ones."""
    settings = [(k, v) for k, v in arm.more if (k, v) != ("gc", "G1")]
    return ", ".join([_CALLED[arm.benchmark], *(_SETTINGS[k].format(v) for k, v in settings)])


def per_object(recording: Recording, arm: Arm, on: str) -> tuple[list[float], Estimate]:
    """The CPU time of the whole process per object, net of an idle JVM, in
    ns: a value a sample, and the estimate."""
    n = recording.samples(arm, on)["n"]
    if not len(n):
        return [], stats.amount([])
    ratio, factor = Ratio(arm, NOTHING, "cpu-s"), 1e9 / float(n.iloc[0])
    idle = recording.level(NOTHING, on, "cpu-s").value
    values = [float(factor * (v - idle)) for v in recording.values(arm, on, "cpu-s")]
    return values, scaled(recording.added(ratio, on), factor)


def _marks(arm: Arm, column: str, factor: float) -> tuple[Mark, ...]:
    """The document's figure for a kind of handle."""
    table = published.table("weimer-timings")
    (figures,) = table[table["variant"] == _PUBLISHED[arm.benchmark]].to_dict("records")
    line = {key: float(value) for key, value in figures.items() if key != "variant"}
    if column == "cpu":
        return (Mark(1e9 * (line["user_s"] + line["system_s"]) / line["objects"]),)
    return (Mark(factor * line[column]),)


def cost(recording: Recording) -> Chart:
    """What each kind of handle costs per object in CPU time, on each JDK."""
    panels: dict[str, list[Dots]] = {}
    data, said = [], []
    for on in recording.releases:
        for arm in KINDS:
            values, estimate = per_object(recording, arm, on)
            if not estimate.samples:
                continue
            label = rounding.nanoseconds(estimate.value)
            marks = _marks(arm, "cpu", 1) if on == recording.experiment.document else ()
            dots = Dots(
                _CALLED[arm.benchmark], values, estimate, label, _INKS[arm.benchmark], marks
            )
            panels.setdefault(release(recording, on), []).append(dots)
            data.append(row(arm.benchmark, on, estimate, unit="cpu-ns/op, net"))
            said.append(f"{in_words(on)}, {_CALLED[arm.benchmark]} {label}")
    if not panels:
        return nothing("weimer-cost", "None of the three kinds of handle was measured")
    ratios = [recording.ratio(Ratio(FINALIZE, CLEANER, "cpu-s"), on) for on in recording.releases]
    known = [ratio.value for ratio in ratios if ratio.samples]
    heading = "What finalize costs against Cleaner was not measured"
    if known:
        heading = (
            f"Finalize takes {rounding.times(min(known))} to {rounding.times(max(known))} the CPU "
            "time of Cleaner, whole process"
        )
    with style():
        figure, _ = dot_plot(
            panels,
            heading,
            "CPU time per object (ns), net of an idle JVM\n"
            "diamonds: the document's figures, on OpenJDK 9, not net",
        )
        plt.close(figure)
    alt = "A dot plot of the CPU time per object: " + "; ".join(said)
    return finish(figure, name="weimer-cost", title=heading, alt=alt + ".", data=pd.DataFrame(data))


def memory(recording: Recording) -> Chart:
    """The largest resident set of each kind of handle, and of an idle JVM."""
    panels: dict[str, list[Dots]] = {}
    data, said = [], []
    for on in recording.releases:
        for arm in (NOTHING, *KINDS):
            estimate = scaled(recording.level(arm, on, _PEAK), _MIB)
            if not estimate.samples:
                continue
            label = f"{rounding.plain(estimate.value)} MiB"
            document = on == recording.experiment.document and arm is not NOTHING
            marks = _marks(arm, "max_rss_kb", 1024 * _MIB) if document else ()
            values = [v * _MIB for v in recording.values(arm, on, _PEAK)]
            ink = _INKS.get(arm.benchmark, MUTED)
            dots = Dots(_CALLED[arm.benchmark], values, estimate, label, ink, marks)
            panels.setdefault(release(recording, on), []).append(dots)
            data.append(row(arm.benchmark, on, estimate, unit="MiB"))
            said.append(f"{in_words(on)}, {_CALLED[arm.benchmark]} {label}")
    if not panels:
        return nothing("weimer-memory", "How much memory the handles take was not measured")
    on = recording.releases[-1]
    ratios = [recording.ratio(Ratio(arm, PLAIN, _PEAK), on) for arm in (CLEANER, FINALIZE)]
    heading = (
        f"On {in_words(on)} a Cleaner takes {rounding.times(ratios[0].value)} the memory of a "
        f"plain handle, finalize {rounding.times(ratios[1].value)}"
    )
    with style():
        figure, _ = dot_plot(
            panels,
            heading,
            "largest resident set (MiB)\ndiamonds: the document's figures, on OpenJDK 9",
        )
        plt.close(figure)
    alt = "A dot plot of the largest resident set: " + "; ".join(said)
    return finish(
        figure, name="weimer-memory", title=heading, alt=alt + ".", data=pd.DataFrame(data)
    )


# What an object takes at least, in bytes.
_LEAST_OBJECT = 16


def _made_none(recording: Recording, on: str) -> bool:
    """Whether the memory of the plain run has no room for the handles that it was asked for."""
    taken = recording.added(Ratio(PLAIN, NOTHING, _PEAK), on)
    n = recording.samples(PLAIN, on)["n"]
    return bool(len(n)) and taken.value < 0.1 * _LEAST_OBJECT * float(n.iloc[0])


def removed(recording: Recording) -> Chart:
    """A plain handle that the compiler may remove, and one that it may not."""
    panels: dict[str, list[Dots]] = {}
    data, said, counts = [], [], []
    for on in recording.releases:
        for arm, name in ((PLAIN, "default"), (KEPT, "escape analysis off")):
            estimate = recording.level(arm, on)
            if not estimate.samples:
                continue
            cycles = recording.amount(arm, on, "gc-cycles").value
            runs = "collection" if cycles == 1 else "collections"
            label = f"{rounding.nanoseconds(estimate.value)}, {rounding.count(cycles)} {runs}"
            if arm == PLAIN:
                counts.append(cycles)
            values = list(recording.values(arm, on))
            ink = BLUE if arm == PLAIN else INK
            dots = Dots(name, values, estimate, label, ink)
            panels.setdefault(release(recording, on), []).append(dots)
            data.append(row(name, on, estimate, unit="ns/op", collections=cycles))
            said.append(f"{in_words(on)}, {name}: {label}")
    if not panels:
        return nothing("weimer-removed", "Plain handles were not measured")
    most = max(counts, default=math.nan)
    made = not all(_made_none(recording, on) for on in recording.releases)
    heading = (
        "Over a hundred million plain handles the collector "
        + ("does not run" if most == 0 else f"runs up to {rounding.count(most)} times")
        + (": the compiler removes all of them" if most == 0 and not made else "")
    )
    with style():
        figure, axes = dot_plot(
            panels,
            heading,
            "wall time of the loop per object (ns, log scale)\n"
            "100,000,000 handles by default, 10,000,000 with escape analysis off",
        )
        _log(axes, [line for lines in panels.values() for line in lines])
        plt.close(figure)
    alt = "A dot plot of the time per plain handle: " + "; ".join(said)
    return finish(
        figure, name="weimer-removed", title=heading, alt=alt + ".", data=pd.DataFrame(data)
    )


def _log(all_axes: Sequence[Axes], lines: Sequence[Dots]) -> None:
    """Make the scale of a dot plot logarithmic, with room for all that is drawn."""
    drawn = [v for line in lines for v in (line.estimate.value, *line.points) if v > 0]
    drawn += [mark.value for line in lines for mark in line.marks]
    low, high = min(drawn) / 1.4, max(drawn) * 1.4
    for axes in all_axes:
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        ticks = ticks_between(low, high)
        plain_ticks(axes, "x", ticks if len(ticks) < 7 else ticks[::2])


def collectors(recording: Recording) -> Chart:
    """What Cleaner and finalize cost under each collector, on each JDK."""
    panels: dict[str, list[Dots]] = {}
    data, said, ratios = [], [], {}
    for on in recording.releases:
        for gc in COLLECTORS:
            for benchmark in ("Cleaner", "Finalize"):
                arm = jvm(benchmark, gc=gc)
                values, estimate = per_object(recording, arm, on)
                if not estimate.samples:
                    continue
                label = rounding.nanoseconds(estimate.value)
                name = f"{gc}: {_CALLED[benchmark]}"
                dots = Dots(name, values, estimate, label, _INKS[benchmark])
                panels.setdefault(release(recording, on), []).append(dots)
                data.append(row(name, on, estimate, unit="cpu-ns/op, net", gc=gc))
                said.append(f"{in_words(on)}, {name} {label}")
            both = Ratio(jvm("Finalize", gc=gc), jvm("Cleaner", gc=gc), "cpu-s")
            ratio = recording.ratio(both, on)
            if ratio.samples:
                ratios[on, gc] = ratio.value
    others = {key: value for key, value in ratios.items() if key[1] != "G1"}
    if not others:
        return nothing("weimer-collectors", "Other collectors were not measured at this budget")
    least, most = (pick(ratios, key=lambda k: ratios[k]) for pick in (min, max))
    heading = "finalize costs " + " to ".join(
        f"{rounding.times(ratios[key])} ({in_words(key[0])}, {key[1]})" for key in (least, most)
    )
    heading += " what Cleaner costs, depending on the collector"
    with style():
        figure, _ = dot_plot(
            panels,
            heading,
            "CPU time per object (ns), net of an idle JVM",
        )
        plt.close(figure)
    alt = "A dot plot of the CPU time per object by collector: " + "; ".join(said)
    return finish(
        figure, name="weimer-collectors", title=heading, alt=alt + ".", data=pd.DataFrame(data)
    )


def registered(recording: Recording) -> Chart:
    """What the JVM still holds of a handle that was closed."""
    panels: dict[str, list[Dots]] = {}
    data, said = [], []
    for on in recording.releases:
        for arm in (REGISTERED_PLAIN, REGISTERED_CLEANER, REGISTERED_FINALIZE):
            kind = arm.benchmark.removeprefix("Registered")
            for metric, when in (
                ("registered/op", ""),
                ("registered-drained/op", ", after the finalizer thread"),
            ):
                estimate = recording.amount(arm, on, metric)
                if not estimate.samples or (when and kind != "Finalize"):
                    continue
                label = rounding.plain(estimate.value) if estimate.value else "none"
                values = list(recording.values(arm, on, metric))
                name = _CALLED[kind] + when
                dots = Dots(name, values, estimate, label, _INKS[kind])
                panels.setdefault(release(recording, on), []).append(dots)
                data.append(row(name, on, estimate, unit="registrations/op"))
                said.append(f"{in_words(on)}, {name}: {label}")
    if not panels:
        return nothing("weimer-registered", "What is left of closed handles was not counted")
    on = recording.releases[-1]
    left = [
        recording.amount(arm, on, "registered/op").value
        for arm in (REGISTERED_CLEANER, REGISTERED_FINALIZE)
    ]
    heading = (
        f"Of closed handles with finalize {rounding.percent(left[1])} are still registered, "
        f"of those with a Cleaner {rounding.percent(left[0])} ({in_words(on)})"
    )
    with style():
        figure, _ = dot_plot(panels, heading, "registrations the JVM holds per closed handle")
        plt.close(figure)
    alt = "A dot plot of live registrations per closed handle: " + "; ".join(said)
    return finish(
        figure, name="weimer-registered", title=heading, alt=alt + ".", data=pd.DataFrame(data)
    )


def heaps(recording: Recording) -> Chart:
    """Heap size against the share of runs that ran out of memory."""
    points: dict[str, dict[str, list[tuple[int, int, int]]]] = {}
    for on in recording.releases:
        for benchmark in ("Cleaner", "Finalize"):
            for heap in HEAPS:
                samples = recording.samples(small(benchmark, heap), on)
                ends = samples["died"].dropna() if "died" in samples else pd.Series(dtype=float)
                if len(ends):
                    point = (heap, int((ends > 0).sum()), len(ends))
                    points.setdefault(on, {}).setdefault(benchmark, []).append(point)
    if not points:
        return nothing("weimer-heaps", "Small heaps were not measured")
    totals = {
        benchmark: [
            sum(p[i] for of in points.values() for p in of.get(benchmark, ())) for i in (1, 2)
        ]
        for benchmark in ("Cleaner", "Finalize")
    }
    heading = "On small heaps " + ", ".join(
        f"{_CALLED[benchmark]} ran out of memory in {died} of {runs} runs"
        for benchmark, (died, runs) in totals.items()
    )
    data, said = [], []
    with style():
        figure, all_axes = canvas([5] * len(points))
        for axes, (on, kinds) in zip(all_axes, points.items(), strict=True):
            for benchmark, found in kinds.items():
                xs = [p[0] for p in found]
                ys = [rounding.rounded(100 * died / runs) for _, died, runs in found]
                ink = _INKS[benchmark]
                axes.plot(xs, ys, color=ink, linewidth=1.9, marker="o", markersize=5)
                for heap, died, runs in found:
                    data.append(
                        {"arm": benchmark, "release": on, "heap": heap, "died": died, "runs": runs}
                    )
                    said.append(f"{in_words(on)}, {heap} MB, {_CALLED[benchmark]} {died} of {runs}")
            axes.set_xscale("log")
            plain_ticks(axes, "x", [p for p in HEAPS if any(p == q[0] for q in kinds["Finalize"])])
            axes.set_ylim(-8, 108)
            axes.set_ylabel("runs that died (%)")
            axes.set_title(release(recording, on))
            names = [
                (100 * f[-1][1] / f[-1][2] + (4 if b == "Finalize" else -4), _CALLED[b], _INKS[b])
                for b, f in kinds.items()
            ]
            name_ends(axes, names, gap=0.13)
        below(figure, "heap (MB, log scale); a million handles a run, all of them closed")
        headline(figure, heading)
        plt.close(figure)
    alt = "A line chart of the share of runs that ran out of memory: " + "; ".join(said)
    return finish(
        figure, name="weimer-heaps", title=heading, alt=alt + ".", data=pd.DataFrame(data)
    )


# What became of a native resource, by how dark it is: nothing was allocated, the handle
# was opened and closed, it was freed though no handle came of it, it leaked.
_OUTCOMES = ("nothing was allocated", "opened, and freed on close", "failed, and freed", "leaked")


def _outcome(samples: pd.DataFrame) -> int | None:
    """The worst that became of the resource in any sample; None if there are none."""
    if not len(samples) or "leaked" not in samples:
        return None
    if (samples["leaked"] > 0).any():
        return 3
    if (samples["opened"] > 0).all():
        return 1
    return 2 if (samples["native-allocated"] > 0).any() else 0


def leaks(recording: Recording) -> Chart:
    """What becomes of a resource when so many bytes of the heap are left."""
    kinds = ("LeakNaive", *LEAK_REMEDIES)
    maps: dict[str, dict[str, dict[int, int]]] = {}
    for on in recording.releases:
        for kind in kinds:
            for remaining in REMAINING:
                outcome = _outcome(recording.samples(leak(kind, remaining), on))
                if outcome is not None:
                    maps.setdefault(on, {}).setdefault(kind, {})[remaining] = outcome
    if not maps:
        return nothing("weimer-leak", "What becomes of a resource in a full heap was not measured")
    leaked = {
        kind: sum(o == 3 for of in maps.values() for o in of.get(kind, {}).values())
        for kind in kinds
    }
    on = list(maps)[-1]
    naive = [r for r, o in maps[on].get("LeakNaive", {}).items() if o == 3]
    heading = "Allocating before registering leaked at no heap size tried"
    if naive:
        heading = (
            f"With {min(naive)} to {max(naive)} bytes of the heap left, allocating before "
            f"registering leaks on {in_words(on)}"
        )
    remedies = sum(leaked[kind] for kind in LEAK_REMEDIES)
    heading += "; the two remedies " + (
        "never leak" if not remedies else f"leak at {remedies} places"
    )
    inks = ListedColormap(["#f2f2f2", "#9ecae1", "#3182bd", ORANGE])
    data, said = [], []
    with style():
        figure, all_axes = canvas([3] * len(maps))
        for axes, (on, of) in zip(all_axes, maps.items(), strict=True):
            xs = sorted({r for outcomes in of.values() for r in outcomes})
            grid = np.array([[of.get(k, {}).get(r, np.nan) for r in xs] for k in kinds])
            axes.imshow(grid, cmap=inks, vmin=0, vmax=3, aspect="auto", interpolation="nearest")
            for y, kind in enumerate(kinds):
                for x, remaining in enumerate(xs):
                    outcome = of.get(kind, {}).get(remaining)
                    if outcome is None:
                        continue
                    mark = ("·", "○", "●", "×")[outcome]
                    ink = "white" if outcome == 2 else INK
                    axes.text(x, y, mark, ha="center", va="center", color=ink)
                    data.append(
                        {
                            "arm": kind,
                            "release": on,
                            "remaining": remaining,
                            "outcome": _OUTCOMES[outcome],
                        }
                    )
            axes.set_xticks(range(len(xs)), [str(x) for x in xs])
            axes.set_yticks(range(len(kinds)), [_CALLED[kind] for kind in kinds])
            axes.grid(visible=False)
            axes.set_title(release(recording, on))
            for kind in kinds:
                bad = [str(r) for r, o in of.get(kind, {}).items() if o == 3]
                where = f"leaks at {', '.join(bad)}" if bad else "leaks nowhere"
                said.append(f"{in_words(on)}, {_CALLED[kind]} {where}")
        marks = "   ".join(f"{m} {t}" for m, t in zip(("·", "○", "●", "×"), _OUTCOMES, strict=True))
        below(figure, f"bytes of the heap that are left\n{marks}")
        headline(figure, heading)
        plt.close(figure)
    alt = "A map of what becomes of a resource by the bytes left: " + "; ".join(said)
    return finish(figure, name="weimer-leak", title=heading, alt=alt + ".", data=pd.DataFrame(data))


# --- Effective Java's figure --------------------------------------------------------

_JMH = ((JMH_REMOVED, BLUE), (JMH_ESCAPING, INK), (JMH_CLEANED, GREEN), (JMH_FINALIZED, ORANGE))


def effective(recording: Recording) -> Chart:
    """Creating and destroying an object by JMH, with and without a finalizer."""
    table = published.table("lemire-timings").query("language == 'Java'")
    plain, finalized = (float(v) for v in sorted(table["ns_per_op"]))
    marks = {JMH_REMOVED: plain, JMH_ESCAPING: plain, JMH_FINALIZED: finalized}
    panels: dict[str, list[Dots]] = {}
    data, said = [], []
    for on in recording.releases:
        for arm, ink in _JMH:
            estimate = recording.level(arm, on)
            if not estimate.samples:
                continue
            label = rounding.nanoseconds(estimate.value)
            own = (Mark(marks[arm]),) if arm in marks else ()
            values = list(recording.values(arm, on))
            dots = Dots(_CALLED[arm.benchmark], values, estimate, label, ink, own)
            panels.setdefault(release(recording, on), []).append(dots)
            data.append(row(arm.benchmark, on, estimate, unit="ns/op"))
            said.append(f"{in_words(on)}, {_CALLED[arm.benchmark]} {label}")
    if not panels:
        return nothing("jmh-ratio", "Effective Java's figure was not measured")
    on = recording.releases[-1]
    ratios = [recording.ratio(Ratio(JMH_FINALIZED, arm), on) for arm in (JMH_ESCAPING, JMH_REMOVED)]
    heading = (
        f"On {in_words(on)} an object with a finalizer is "
        f"{rounding.times(ratios[0].value)} as expensive as one that must be allocated, "
        f"{rounding.times(ratios[1].value)} as one that may be removed"
    )
    with style():
        figure, axes = dot_plot(
            panels,
            heading,
            "time per object by JMH (ns, log scale)\n"
            "diamonds: Effective Java's figures, from before 2008",
        )
        _log(axes, [line for lines in panels.values() for line in lines])
        plt.close(figure)
    alt = "A dot plot of the time to create and destroy an object: " + "; ".join(said)
    return finish(figure, name="jmh-ratio", title=heading, alt=alt + ".", data=pd.DataFrame(data))


def warm_up(recording: Recording) -> Chart:
    """How the time per object falls while a JVM warms up."""
    on = recording.releases[-1] if recording.releases else TODAY_JDK
    laps = sorted(c for c in map(str, recording.frame) if c.startswith("lap"))
    curves, data = [], []
    for arm, ink in _JMH:
        samples = recording.samples(arm, on)
        if not len(samples) or not laps:
            continue
        estimates = [recording.level(arm, on, lap) for lap in laps]
        points = [list(samples[lap].dropna()) for lap in laps]
        xs = [float(i) for i in range(1, len(laps) + 1)]
        curves.append(Curve(_CALLED[arm.benchmark], xs, estimates, points, ink))
        data += [
            row(arm.benchmark, on, e, lap=x, unit="ns/op")
            for x, e in zip(xs, estimates, strict=True)
        ]
    if not curves:
        return nothing("jmh-warm-up", "How a JVM warms up was not measured")
    fell = {c.name: c.estimates[0].value / c.estimates[-1].value for c in curves}
    heading = f"On {in_words(on)} the first of {len(laps)} laps over the last: " + ", ".join(
        f"{name} {rounding.times(by)}" for name, by in fell.items()
    )
    with style():
        figure, (axes,) = canvas([10])
        for curve in curves:
            draw(axes, curve)
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high)
        plain_ticks(axes, "y", ticks_between(low, high))
        axes.set_xticks([int(x) for x in curves[0].xs])
        axes.set_ylabel("ns per object (log)")
        name_ends(axes, [(c.estimates[-1].value, c.name, c.colour) for c in curves], gap=0.08)
        below(figure, "lap of 50 ms in a fresh JVM; the second half counts as warm")
        headline(figure, heading)
        plt.close(figure)
    alt = "A line chart of the time per object over the laps of a fresh JVM: " + "; ".join(
        f"{c.name} from {rounding.nanoseconds(c.estimates[0].value)} to "
        f"{rounding.nanoseconds(c.estimates[-1].value)}"
        for c in curves
    )
    return finish(figure, name="jmh-warm-up", title=heading, alt=alt + ".", data=pd.DataFrame(data))


# --- Java beside Go -------------------------------------------------------------------

# A line each: the experiment, what is compared with what, on which release, and its colour.
_BESIDE: Mapping[str, Sequence[tuple[str, str, Ratio]]] = {
    TODAY_GO: (
        ("closed at once, with Cleanup.Stop", "remedies", Ratio(Arm("Stop"), FREE)),
        ("left to AddCleanup", "addcleanup", Ratio(CLEANUP, FREE)),
        ("left to a finalizer", "lemire", Ratio(AUTO, FREE)),
    ),
    TODAY_JDK: (
        ("closed by hand, with a Cleaner as net", "weimer", Ratio(CLEANER, KEPT)),
        ("closed by hand, with finalize as net", "weimer", Ratio(FINALIZE, KEPT)),
    ),
}


def beside(recordings: Mapping[str, Recording]) -> Chart:
    """What a safety net costs as a multiple of manual, in Go and in Java."""
    panels: dict[str, list[Dots]] = {}
    data, said, most = [], [], {}
    for on, lines in _BESIDE.items():
        for name, experiment, ratio in lines:
            recording = recordings.get(experiment)
            if recording is None:
                continue
            estimate = recording.ratio(ratio, on)
            if not estimate.samples:
                continue
            label = rounding.times(estimate.value)
            values = list(recording.points(ratio, on))
            dots = Dots(name, values, estimate, label, colour(ratio.numerator))
            panels.setdefault(in_words(on), []).append(dots)
            data.append(row(name, on, estimate, unit="ratio"))
            said.append(f"{in_words(on)}, {name} {label}")
            most[on] = label
    if not panels:
        return nothing("java-beside-go", "Neither Go nor Java was measured")
    what = {TODAY_GO: "a finalizer that frees", TODAY_JDK: "a finalizer that is only a net"}
    heading = "Against manual: " + ", ".join(
        f"in {in_words(on)} {what[on]} {label}" for on, label in most.items()
    )
    with style():
        figure, all_axes = dot_plot(
            panels,
            heading,
            "wall time per object against manual (ratio, log scale)\n"
            "manual: Go frees C memory by hand; Java closes a plain handle that the compiler keeps",
        )
        _log(all_axes, [line for lines in panels.values() for line in lines])
        for axes in all_axes:
            axes.set_xlim(0.7, axes.get_xlim()[1])
            plain_ticks(axes, "x", ticks_between(*axes.get_xlim()))
            axes.axvline(1, color=INK, linewidth=1, zorder=0)
        plt.close(figure)
    alt = "A dot plot of the cost against manual: " + "; ".join(said)
    return finish(
        figure, name="java-beside-go", title=heading, alt=alt + ".", data=pd.DataFrame(data)
    )
