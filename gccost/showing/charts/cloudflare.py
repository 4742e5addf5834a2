"""The charts of chapter 04: GOGC and scaling."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from gccost import places, rounding
from gccost.errors import GccostError
from gccost.judging import fits, published
from gccost.judging.claims.quantities import Share
from gccost.judging.claims.stacks import GC_AND_LOCKS, MARKING, SWEEPING, WAITING
from gccost.judging.recording import Recording
from gccost.measuring import gctrace
from gccost.measuring.experiments.base import Arm, Ratio
from gccost.measuring.experiments.cloudflare import (
    AUTOMEMLIMIT,
    BALLASTS,
    BEST_GOGC,
    DOCUMENT_CPUS,
    FIXED,
    GOGCS,
    GOROUTINES,
    GRID_GOGC,
    GRID_PROCS,
    LEAST_CPUS,
    LIMITED,
    MOST_PROCS,
    PROCS,
    SERVE,
    TUNERS,
    WAYS,
    signing,
    turns,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.charts.old import (
    Curve,
    Dots,
    Mark,
    below,
    canvas,
    diamonds,
    dot_plot,
    draw,
    headline,
    in_percent,
    name_ends,
    name_points,
    nothing,
    plain_ticks,
    release,
    row,
    ticks_between,
)
from gccost.showing.figures import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    Chart,
    finish,
    style,
)
from gccost.stats import Estimate

RATE = "op/cpu-s"
# Of the figures: 78,940.67 op/s over 679 cycles a second.
PUBLISHED_OPERATIONS = 116
THRESHOLD = 2.0  # operations per cycle fall by so much from one number of Ps to the next


def _thousands(x: float) -> str:
    return rounding.plain(x / 1000) + "k"


def _in_thousands(x: float, _: object) -> str:
    """A tick of an axis."""
    return f"{x / 1000:g}k" if x else "0"


def _glued(title: str) -> str:
    """A title whose lines do not break within "GOGC=400 on Go 1.27.4": capitals are wide."""
    return title.replace(" on Go ", "\u00a0on\u00a0Go\u00a0")


def _published(gogc: str) -> list[tuple[float, float]]:
    found = published.table("cloudflare-throughput")
    chosen = found[found["gogc"] == gogc]
    return [
        (float(g), float(v)) for g, v in zip(chosen["goroutines"], chosen["op_per_s"], strict=True)
    ]


def _curve(
    recording: Recording,
    name: str,
    go: str,
    arms: Iterable[tuple[float, Arm]],
    metric: str,
    colour: str,
) -> Curve:
    """A metric over what each arm is given at; what was not measured is left out."""
    xs, estimates, values = [], [], []
    for x, arm in arms:
        estimate = recording.level(arm, go, metric)
        if estimate.samples:
            xs.append(x)
            estimates.append(estimate)
            values.append(list(recording.values(arm, go, metric)))
    return Curve(name, xs, estimates, values, colour)


def _log(axes: Axes, which: str, values: Iterable[float] | None = None) -> None:
    """A log axis with plain numbers, at the values or at 1, 2, 5, …"""
    if which == "x":
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xlim(low, high)
    else:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high)
    plain_ticks(axes, which, ticks_between(low, high) if values is None else values)


def _curve_rows(curves: Iterable[tuple[str, Curve]], unit: str, x: str) -> list[dict[str, object]]:
    return [
        row(c.name, go, e, unit=unit, **{x: at})
        for go, c in curves
        for at, e in zip(c.xs, c.estimates, strict=True)
    ]


def _told(curve: Curve, say: Callable[[float], str], x: str) -> str:
    return f"{curve.name}: " + ", ".join(
        f"{say(e.value)} at {at:g} {x}" for at, e in zip(curve.xs, curve.estimates, strict=True)
    )


# --- The document's figures ------------------------------------------------------------


def published_scaling(recording: Recording) -> Chart:
    """The document's throughputs, with the scalability law through those up to its peak."""
    found = _published("100")
    peak = max(found, key=lambda point: point[1])
    rising = [point for point in found if point[0] <= peak[0]]
    law = fits.scaling([n for n, _ in rising], [x for _, x in rising])
    assert law is not None
    last, one = max(found), min(found)
    tuned = {
        "GC off": _published("off"),
        "GOGC=2400": _published("2400"),
        "GOGC=4800": _published("4800"),
        "GOGC=11300": _published("11300"),
    }
    best = max(value for pairs in tuned.values() for _, value in pairs)
    title = (
        f"As published: {_thousands(last[1])} signatures a second from {last[0]:.0f} goroutines, "
        f"{_thousands(best)} with the best GOGC; a law fitted up to the peak says "
        f"{_thousands(law.at(last[0]))}"
    )
    grid = [1 + i * (last[0] - 1) / 94 for i in range(95)]
    with style():
        figure, (axes,) = canvas([10])
        axes.plot(grid, [rounding.rounded(law.at(n)) for n in grid], color=BLUE, linewidth=1.6)
        axes.plot(grid, [one[1] * n for n in grid], color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
        diamonds(axes, [(n, x, "D") for n, x in found])
        for pairs in tuned.values():
            diamonds(axes, [(n, x, "s") for n, x in pairs])
        axes.set_xlim(0, last[0] * 1.03)
        axes.set_ylim(0, 1.12 * best)
        thousands = range(0, int(1.12 * best), 100_000)
        axes.set_yticks(thousands, [f"{x // 1000}k" if x else "0" for x in thousands])
        ends = [(pairs[0][1], name, PURPLE) for name, pairs in tuned.items()]
        ends += [(last[1], "GOGC=100", PURPLE), (law.at(last[0]), "the law", BLUE)]
        name_ends(axes, ends)
        axes.annotate(
            "proportional\nto the first",
            (best / one[1], best),
            xytext=(-8, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            color=MUTED,
            fontsize=9,
        )
        axes.set_ylabel("signatures per second")
        below(figure, "goroutines, on 24 cores with 48 threads")
        headline(figure, title)
        plt.close(figure)
    data = published.table("cloudflare-throughput").assign(
        law=[law.at(float(n)) for n in published.table("cloudflare-throughput")["goroutines"]]
    )
    alt = (
        "A chart of the published throughputs over the goroutines: "
        + "; ".join(f"{_thousands(x)} at {n:.0f}" for n, x in found)
        + "; at 48 with other settings "
        + ", ".join(f"{name} {_thousands(pairs[0][1])}" for name, pairs in tuned.items())
        + ". The Universal Scalability Law through the points up to the peak: contention "
        f"{rounding.percent(law.contention)}, coherence {rounding.percent(law.coherence)}."
    )
    return finish(figure, name="cloudflare-published", title=title, alt=alt, data=data)


# --- The document's own sweep ------------------------------------------------------------


def scaling(recording: Recording) -> Chart:
    """Throughput over the goroutines on this machine's CPUs, a panel per release."""
    name = "cloudflare-scaling"
    panels: dict[str, list[Curve]] = {}
    for go in recording.releases:
        for gogc, ink in (("100", ORANGE), (BEST_GOGC, GREEN)):
            arms = [(float(g), signing(g, gogc)) for g in GOROUTINES]
            curve = _curve(recording, f"GOGC={gogc}", go, arms, "op/s", ink)
            if curve.xs:
                panels.setdefault(go, []).append(curve)
    if not panels:
        return nothing(name, "Signing on all CPUs was not measured")
    cpus = recording.cpus
    told = []
    for go, curves in panels.items():
        curve = curves[0]
        best = max(range(len(curve.xs)), key=lambda i: curve.estimates[i].value)
        end, most = (curve.estimates[i].value / curve.estimates[0].value for i in (-1, best))
        told.append(f"Go {go} {rounding.times(end)}")
        if best not in (0, len(curve.xs) - 1):
            told[-1] += f", with a peak of {rounding.times(most)} at {curve.xs[best]:.0f}"
    first = next(iter(panels.values()))[0]
    title = (
        f"Throughput of {first.xs[-1]:.0f} goroutines over that of one, on {cpus} CPUs at "
        f"{first.name}: " + "; ".join(told)
    )
    with style():
        figure, all_axes = canvas([7] * len(panels))
        for axes, (go, curves) in zip(all_axes, panels.items(), strict=True):
            most = max(x for c in curves for x in c.xs)
            for curve in curves:
                draw(axes, curve)
            diamonds(axes, [(g, x, "D") for g, x in _published("100") if g <= most])
            axes.axvline(cpus, color=MUTED, linewidth=1, zorder=0)
            axes.set_xlim(0, most * 1.06)
            axes.set_ylim(0, axes.get_ylim()[1])
            axes.yaxis.set_major_formatter(_in_thousands)
            ticks = range(1, 9) if most <= 8 else (1, 8, 16, 24, 32, 48, 64, 96)
            axes.set_xticks([x for x in ticks if x <= most])
            axes.set_title(release(recording, go))
            axes.set_ylabel("signatures per second")
            name_ends(axes, [(c.estimates[-1].value, c.name, c.colour) for c in curves], 0.1)
        below(
            figure,
            f"goroutines; line: this machine's {cpus} CPUs\n"
            "hollow diamonds: as published on 24 cores, at GOGC=100",
        )
        headline(figure, title)
        plt.close(figure)
    flat = [(go, curve) for go, curves in panels.items() for curve in curves]
    alt = "A line chart of signatures per second over the goroutines: " + "; ".join(
        f"Go {go}, {_told(curve, _thousands, 'goroutines')}" for go, curve in flat
    )
    data = pd.DataFrame(_curve_rows(flat, "op/s", "goroutines"))
    return finish(figure, name=name, title=title, alt=alt + ".", data=data)


# --- The mechanism ---------------------------------------------------------------------


def _over_procs(recording: Recording, go: str, metric: str, colour: str = ORANGE) -> Curve:
    arms = [(float(p), turns(p)) for p in PROCS]
    return _curve(recording, f"Go {go}", go, arms, metric, colour)


def threshold(recording: Recording, go: str) -> tuple[int, int, float] | None:
    """Between which two numbers of Ps the operations per GC cycle fall most, and by what.

    None where they nowhere fall by the factor THRESHOLD.
    """
    curve = _over_procs(recording, go, "gc-cycle-op")
    places = [(x, e.value) for x, e in zip(curve.xs, curve.estimates, strict=True)]
    falls = [(before[1] / after[1], before[0], after[0]) for before, after in pairwise(places)]
    if not falls or max(falls)[0] < THRESHOLD:
        return None
    fall, before, after = max(falls)
    return int(before), int(after), fall


_INKS = (BLUE, ORANGE, GREEN, INK)


def mechanism(recording: Recording) -> Chart:
    """Throughput and operations per GC cycle over the Ps that take turns on one CPU."""
    name = "cloudflare-turns"
    found = {
        metric: [
            curve
            for go, ink in zip(recording.releases, _INKS, strict=False)
            if (curve := _over_procs(recording, go, metric, ink)).xs
        ]
        for metric in (RATE, "gc-cycle-op")
    }
    if not all(found.values()):
        return nothing(name, "Signing on Ps that take turns was not measured, or ran no GC cycle")
    told = []
    for curve in found[RATE]:
        go = curve.name.removeprefix("Go ")
        where = threshold(recording, go)
        fell = "its operations per GC cycle nowhere fall steeply"
        if where is not None:
            fell = f"its operations per GC cycle fall most from {where[0]} to {where[1]} Ps"
        told.append(
            f"{curve.name}: {_thousands(curve.estimates[0].value)} to "
            f"{_thousands(curve.estimates[-1].value)} a CPU second, {fell}"
        )
    title = "With more Ps on one CPU signing slows down. " + "; ".join(told)
    slower = all(c.estimates[-1].high < c.estimates[0].low for c in found[RATE])
    if not slower:
        title = "Signing on more Ps on one CPU. " + "; ".join(told)
    with style():
        figure, (rate, cycle) = canvas([8, 8])
        for axes, metric in ((rate, RATE), (cycle, "gc-cycle-op")):
            for curve in found[metric]:
                draw(axes, curve)
            places = sorted({x for curve in found[metric] for x in curve.xs})
            axes.set_xlim(0, places[-1] * 1.04)
            axes.set_xticks([p for p in (1, 8, 16, 24, 32, 48, 64, 96) if p <= places[-1]])
        rate.set_ylim(0, rate.get_ylim()[1])
        rate.yaxis.set_major_formatter(_in_thousands)
        rate.set_ylabel("signatures per CPU second")
        rate.set_title("throughput")
        cycle.axhline(PUBLISHED_OPERATIONS, color=PURPLE, linewidth=1.2, linestyle=(0, (2, 2)))
        _log(cycle, "y")
        cycle.set_ylabel("signatures per GC cycle (log)")
        cycle.set_title("how often the GC runs")
        for axes, metric in ((rate, RATE), (cycle, "gc-cycle-op")):
            ends = [(c.estimates[-1].value, c.name, c.colour) for c in found[metric]]
            if axes is cycle:
                ends.append((PUBLISHED_OPERATIONS, "as published", PURPLE))
            name_ends(axes, ends, 0.09)
        below(figure, "Ps, a goroutine each, that take turns on one CPU; GOGC=100")
        headline(figure, title)
        plt.close(figure)
    flat = [(c.name.removeprefix("Go "), c) for c in found[RATE]]
    cycles = [(c.name.removeprefix("Go "), c) for c in found["gc-cycle-op"]]
    data = pd.DataFrame(
        _curve_rows(flat, RATE, "procs") + _curve_rows(cycles, "gc-cycle-op", "procs")
    )
    alt = (
        "Two line charts over the number of Ps. Signatures per CPU second: "
        + "; ".join(_told(c, _thousands, "Ps") for _, c in flat)
        + ". Signatures per GC cycle: "
        + "; ".join(_told(c, rounding.plain, "Ps") for _, c in cycles)
        + f"; as published {PUBLISHED_OPERATIONS}."
    )
    return finish(figure, name=name, title=title, alt=alt, data=data)


# --- GOGC ------------------------------------------------------------------------------


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
    return _enough({gogc: e for gogc, e in found.items() if e.samples})


def _enough(levels: Mapping[str, Estimate]) -> str:
    """The first of some levels, in their order, that the largest does not significantly exceed."""
    if not levels:
        return ""
    largest = max(levels.values(), key=lambda e: e.value)
    return next(name for name, e in levels.items() if e.high >= largest.low)


def gogc(recording: Recording) -> Chart:
    """Throughput over GOGC, a panel per release; the GC off stands at the right."""
    name = "cloudflare-gogc"
    arm, metric, words = sweep_arm(recording)
    panels = {}
    for go in recording.releases:
        arms = [(float(g), arm(g)) for g in GOGCS if g != "off"]
        curve = _curve(recording, "GOGC", go, arms, metric, ORANGE)
        off = _curve(recording, "off", go, [(30_000.0, arm("off"))], metric, GREEN)
        if curve.xs:
            panels[go] = (curve, off)
    if not panels:
        return nothing(name, "GOGC was not swept")
    told = []
    for go, (curve, off) in panels.items():
        base = curve.estimates[0].value
        most = max(range(len(curve.xs)), key=lambda i: curve.estimates[i].value)
        top = curve.estimates[most].value / base
        part = f"Go {go} up to {rounding.times(top)} (GOGC={curve.xs[most]:.0f})"
        if off.xs:
            off_over = rounding.times(off.estimates[0].value / base)
            part += (
                f", {off_over}\u00a0with\u00a0the\u00a0GC\u00a0off"  # one line: capitals are wide
            )
        told.append(part)
    title = "Throughput over that at GOGC=100: " + "; ".join(told)
    with style():
        figure, all_axes = canvas([7] * len(panels))
        for axes, (go, (curve, off)) in zip(all_axes, panels.items(), strict=True):
            draw(axes, curve)
            if off.xs:
                draw(axes, off)
            marks = [(g, dict(_published(g)).get(48.0)) for g in ("2400", "4800", BEST_GOGC)]
            marks.append(("30000", dict(_published("off"))[48.0]))
            if metric == "op/s":
                diamonds(axes, [(float(g), x, "D") for g, x in marks if x])
            one = recording.level(turns(1), go, metric)
            if metric == RATE and one.samples:
                axes.axhline(rounding.rounded(one.value), color=MUTED, linewidth=1.2)
            axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
            axes.set_xscale("log")
            axes.set_xlim(85, 36_000)
            ticks = [100, 200, 400, 800, 2400, 4800, 11300, 30_000]
            axes.set_xticks(ticks, [*(f"{t:,}" for t in ticks[:-1]), "off"])
            axes.set_xticks([], minor=True)
            axes.yaxis.set_major_formatter(_in_thousands)
            axes.set_title(release(recording, go))
            axes.set_ylabel(words.partition(",")[0])
            if metric == RATE and one.samples:
                name_ends(axes, [(one.value, "one P", MUTED)])
        below(figure, f"GOGC (log); {words.partition(', ')[2]}")
        headline(figure, title)
        plt.close(figure)
    flat = [(go, curve) for go, pair in panels.items() for curve in pair if curve.xs]
    data = pd.DataFrame(
        [
            row("GC off" if c.name == "off" else "GOGC", go, e, unit=metric)
            | {"gogc": "off" if c.name == "off" else f"{x:.0f}"}
            for go, c in flat
            for x, e in zip(c.xs, c.estimates, strict=True)
        ]
    )
    alt = f"A line chart of {words}, over GOGC: " + "; ".join(
        f"Go {r['go']}, {r['gogc']}: {_thousands(float(str(r['estimate'])))}"
        for r in data.to_dict("records")
    )
    return finish(figure, name=name, title=title, alt=alt + ".", data=data)


def grid(recording: Recording) -> Chart:
    """Small multiples of the choices: a panel per release, Ps on x, a line per GOGC."""
    name = "cloudflare-grid"
    inks = dict(zip(GRID_GOGC, (ORANGE, PURPLE, BLUE, INK, GREEN), strict=True))
    panels: dict[str, list[Curve]] = {}
    for go in recording.releases:
        for setting in GRID_GOGC:
            arms = [(float(p), turns(p, setting)) for p in GRID_PROCS]
            label = "GC off" if setting == "off" else f"GOGC={setting}"
            curve = _curve(recording, label, go, arms, RATE, inks[setting])
            if curve.xs:
                panels.setdefault(go, []).append(curve)
    if not panels:
        return nothing(name, "None of the choices was measured")
    told = []
    for go, curves in panels.items():
        at_most = {c.name: c.estimates[-1] for c in curves if c.xs[-1] == MOST_PROCS}
        if at_most:
            told.append(f"{_enough(at_most)} on Go {go}")
    title = (
        f"Smallest setting that no other significantly outperforms, with {MOST_PROCS} Ps: "
        + ", ".join(told)
    )
    with style():
        figure, all_axes = canvas([8] * len(panels))
        for axes, (go, curves) in zip(all_axes, panels.items(), strict=True):
            for curve in curves:
                draw(axes, curve)
            axes.set_xlim(0, MOST_PROCS * 1.04)
            axes.set_xticks(GRID_PROCS)
            axes.set_ylim(0, axes.get_ylim()[1])
            axes.yaxis.set_major_formatter(_in_thousands)
            axes.set_ylabel("signatures per CPU second")
            axes.set_title(release(recording, go))
            name_ends(axes, [(c.estimates[-1].value, c.name, c.colour) for c in curves], 0.09)
        below(figure, "Ps that take turns on one CPU")
        headline(figure, _glued(title))
        plt.close(figure)
    flat = [(go, curve) for go, curves in panels.items() for curve in curves]
    alt = "Line charts of signatures per CPU second over the Ps, a line per GOGC: " + "; ".join(
        f"Go {go}, {_told(curve, _thousands, 'Ps')}" for go, curve in flat
    )
    data = pd.DataFrame(_curve_rows(flat, RATE, "procs"))
    return finish(figure, name=name, title=title, alt=alt + ".", data=data)


# --- gctrace ---------------------------------------------------------------------------


def published_trace() -> gctrace.Trace:
    """The document's printed lines, read as any trace is."""
    path = places.PUBLISHED / "cloudflare-gctrace.txt"
    return gctrace.parse(path.read_text(encoding="utf-8"), path.name)


def traced(recording: Recording, arm: Arm, go: str) -> gctrace.Trace | None:
    """The gctrace that the run kept of an arm's first sample; None if it kept none.

    Raises GccostError if it cannot be read.
    """
    path = recording.run.gctrace(arm.on(go))
    return gctrace.read(path) if path.exists() else None


def start(recording: Recording, arm: Arm, go: str) -> str:
    """The heap in MB at which an arm's cycles start, by the trace that was kept: its median."""
    try:
        found = traced(recording, arm, go)
    except GccostError:  # the chart of it says so
        return "–"
    if found is None or not found.own:
        return "–"
    return str(sorted(cycle.start_mb for cycle in found.own)[len(found.own) // 2])


def between(trace: gctrace.Trace) -> list[float]:
    """The ms from each cycle to the next one of its own, where the lines are adjacent."""
    return [
        max(1000 * (after.at - before.at), 0.5)  # printed to the ms
        for before, after in pairwise(trace.own)
        if after.number == before.number + 1
    ]


def trace(recording: Recording) -> Chart:
    """The document's printed cycles beside ours: how far apart, and with what heap."""
    name = "cloudflare-gctrace"
    lines: list[tuple[str, gctrace.Trace, str]] = [("as published", published_trace(), PURPLE)]
    unread: list[GccostError] = []
    arms = [(f"{p} P" + ("s" if p > 1 else ""), turns(p)) for p in (MOST_PROCS, 1)]
    if recording.cpus >= LEAST_CPUS:
        arms.insert(0, (f"{DOCUMENT_CPUS} goroutines, all CPUs", signing(DOCUMENT_CPUS)))
    for go in recording.releases:
        for label, arm in arms:
            try:
                found = traced(recording, arm, go)
            except GccostError as error:
                unread.append(error)
                continue
            if found is not None and len(between(found)) > 1:
                lines.append((f"Go {go}, {label}", found, ORANGE if "48" in label else BLUE))
    if len(lines) == 1:
        return nothing(name, "No gctrace with cycles was kept" + _left_out(recording, unread))
    data, said = [], []
    with style():
        figure, (axes,) = canvas([1.2 * len(lines) + 1])
        for y, (label, found, ink) in enumerate(lines):
            gaps = between(found)
            values = [rounding.rounded(v) for v in gaps]
            spread = [y + 0.3 * (i / max(len(values) - 1, 1) - 0.5) for i in range(len(values))]
            axes.scatter(values, spread, s=12, color=ink, alpha=0.45, linewidths=0)
            middle = sorted(gaps)[len(gaps) // 2]
            axes.scatter([rounding.rounded(middle)], [y], s=44, color=ink, zorder=3)
            own = found.own
            live = sorted(c.live_mb for c in own)[len(own) // 2]
            start = sorted(c.start_mb for c in own)[len(own) // 2]
            goal = sorted(c.goal_mb for c in own)[len(own) // 2]
            text = f"{rounding.plain(middle)} ms; {start}→{live} MB, goal {goal:.0f}"
            axes.annotate(
                text,
                (1, y),
                xycoords=axes.get_yaxis_transform(),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=ink,
                fontsize=9,
            )
            said.append(f"{label}: {text}")
            data.append(
                {"arm": label, "estimate": middle, "cycles": len(own), "start_mb": start}
                | {"live_mb": live, "goal_mb": goal}
            )
        axes.set_yticks(range(len(lines)), [label for label, *_ in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        _log(axes, "x")
        lives = {str(r["arm"]): r["live_mb"] for r in data}
        most = max(int(str(v)) for v in lives.values())
        title = (
            f"A cycle every {rounding.plain(float(str(data[0]['estimate'])))} ms as published, "
            f"every {_range([float(str(r['estimate'])) for r in data[1:]])} ms here, "
            f"with {most} MB or less alive after it"
        )
        below(
            figure,
            "time from one GC cycle to the next (ms, log; printed to the ms), GOGC=100;\n"
            "right: the median, and the heap from a cycle's start to what lives after it"
            + "".join(f"\n{line}" for line in textwrap.wrap(_left_out(recording, unread)[2:], 90)),
        )
        headline(figure, title)
        plt.close(figure)
    alt = "A dot plot of the times between GC cycles: " + "; ".join(said)
    alt += _left_out(recording, unread)
    return finish(figure, name=name, title=title, alt=alt + ".", data=pd.DataFrame(data))


def _left_out(recording: Recording, unread: Sequence[GccostError]) -> str:
    """What follows where gctraces cannot be read; nothing where all can."""
    if not unread:
        return ""
    file = Path(unread[0].place).relative_to(recording.run.folder).as_posix()
    more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
    return f"; left out: {file}{more} cannot be read ({unread[0].mend})"


def _range(values: Sequence[float]) -> str:
    low, high = rounding.plain(min(values)), rounding.plain(max(values))
    return low if low == high else f"{low} to {high}"


# --- The profile -----------------------------------------------------------------------

_SHARES = {
    "GC and locks": (GC_AND_LOCKS, ORANGE),
    "of it, marking": (MARKING, BLUE),
    "of it, sweeping": (SWEEPING, BLUE),
    "of it, locks and waiting": (WAITING, BLUE),
}
# Of the ten functions that the document prints, by what they belong to: flat shares.
_PRINTED = {
    "of it, sweeping": ("runtime.sweepone", "runtime.(*mspan).sweep", "runtime.(*gcSweepBuf).push"),
    "of it, marking": ("runtime.gcDrain", "runtime.gcmarknewobject", "runtime.(*lfstack).pop"),
    "of it, locks and waiting": ("runtime.procyield", "runtime.futex", "runtime.lock"),
}


def profiled_arms(recording: Recording) -> list[tuple[str, Arm]]:
    """The arms that are profiled: at the collapse and at a better GOGC."""
    if recording.cpus >= LEAST_CPUS:
        return [(f"GOGC={g}", signing(DOCUMENT_CPUS, g, profile="cpu")) for g in ("100", BEST_GOGC)]
    return [(f"GOGC={g}", turns(MOST_PROCS, g, profile="cpu")) for g in ("100", "400")]


def profile(recording: Recording) -> Chart:
    """Shares of the CPU profile at the collapse and at a better GOGC, beside the document's."""
    name = "cloudflare-profile"
    flat = published.table("cloudflare-profile").set_index("function")["flat_percent"]
    marks = {part: float(flat[list(names)].sum()) for part, names in _PRINTED.items()}
    marks["GC and locks"] = sum(marks.values())
    panels: dict[str, list[Dots]] = {}
    data, said = [], []
    told: dict[str, list[str]] = {}
    for go in recording.releases:
        for label, arm in profiled_arms(recording):
            for part, (functions, ink) in _SHARES.items():
                share = Share(arm, functions)
                estimate = in_percent(recording.share(share, go))
                if not estimate.samples:
                    continue
                values = [100 * float(v) for v in recording.shares(share, go)]
                text = rounding.plain(estimate.value) + " %"
                mark = [Mark(marks[part])] if label == "GOGC=100" else []
                panels.setdefault(f"{release(recording, go)}, {label}", []).append(
                    Dots(part, values, estimate, text, ink, mark)
                )
                data.append(row(part, go, estimate, unit="%", gogc=arm.gogc))
                said.append(f"Go {go}, {label}, {part} {text}")
                if part == "GC and locks":
                    told.setdefault(go, []).append(f"{text} at {label}")
    if not panels:
        return nothing(name, "Signing was not profiled")
    title = "The GC and its locks in the CPU profile: " + "; ".join(
        f"{', '.join(shares)} on Go {go}" for go, shares in told.items()
    )
    with style():
        figure, _ = dot_plot(
            panels,
            _glued(title),
            "share of the CPU profile (%); shares overlap\n"
            "hollow diamonds: flat shares of the functions that the document printed",
            most=100,
        )
        plt.close(figure)
    alt = "A dot plot of shares of the CPU profile, which overlap: " + "; ".join(said)
    return finish(figure, name=name, title=title, alt=alt + ".", data=pd.DataFrame(data))


# --- What the GC takes, by several measures ----------------------------------------------


def gc_share(recording: Recording) -> Chart:
    """The GC's share of the CPU time by several measures, one P and many."""
    name = "cloudflare-share"
    panels: dict[str, list[Dots]] = {}
    data, said, seen = [], [], []
    measures = (
        ("gctrace's percentage", "gctrace-share"),
        ("MemStats.GCCPUFraction", "gc-share-memstats"),
        ("runtime/metrics over CPU time", "gc-share-classes"),
    )
    for go in recording.releases:
        found = []
        for label, metric in measures:
            e = in_percent(recording.amount(turns(MOST_PROCS), go, metric))
            samples = recording.samples(turns(MOST_PROCS), go)
            values = [100 * float(v) for v in samples[metric].dropna()] if metric in samples else []
            found.append((label, e, values))
        share = Share(turns(MOST_PROCS, profile="cpu"), GC_AND_LOCKS)
        values = [100 * float(v) for v in recording.shares(share, go)]
        found.append(("profile: GC and locks", in_percent(recording.share(share, go)), values))
        saved = saved_share(recording, go)
        found.append(("saved by GOGC=400", *saved))
        for label, e, values in found:
            if not e.samples:
                continue
            text = rounding.plain(e.value) + " %"
            ink = GREEN if label.startswith("saved") else ORANGE
            panels.setdefault(release(recording, go), []).append(Dots(label, values, e, text, ink))
            data.append(row(label, go, e, unit="%"))
            said.append(f"Go {go}, {label} {text}")
            seen.append(e.value)
    if not panels:
        return nothing(name, "The GC's share of the CPU time was not measured")
    title = (
        f"The GC's share of the CPU time depends on the measure: with {MOST_PROCS} Ps on one CPU "
        f"it is {rounding.plain(min(seen))} to {rounding.plain(max(seen))} %"
    )
    with style():
        figure, _ = dot_plot(
            panels, title, "share of the process's CPU time (%); more than 100 is counted too high"
        )
        plt.close(figure)
    alt = "A dot plot of the GC's share by several measures: " + "; ".join(said)
    return finish(figure, name=name, title=title, alt=alt + ".", data=pd.DataFrame(data))


def saved_share(recording: Recording, go: str) -> tuple[Estimate, list[float]]:
    """What GOGC=400 saves of the CPU time of GOGC=100 with many Ps, in percent."""
    ratio = Ratio(turns(MOST_PROCS, "400"), turns(MOST_PROCS), "cpu-ns/op")
    e, points = recording.ratio(ratio, go), recording.points(ratio, go)
    saved = replace(e, value=1 - e.value, low=1 - e.high, high=1 - e.low)
    return in_percent(saved), [100 * (1 - v) for v in points]


# --- What to take home -------------------------------------------------------------------


def way(arm: Arm) -> str:
    """A way to give the GC less to do, in words."""
    if arm == AUTOMEMLIMIT:
        return "automemlimit's rule"
    if arm.limit:
        return f"limit {arm.limit.removesuffix('MiB')}"
    if arm.sub:
        return f"{arm.benchmark.removeprefix('Serve').lower()} {arm.sub[0][1]}"
    return "GC off" if arm.gogc == "off" else f"GOGC={arm.gogc}"


_WAYS = (
    ("a fixed GOGC", FIXED, BLUE),
    ("GOMEMLIMIT in MiB, GOGC=off", LIMITED, ORANGE),
    ("a ballast, by its goal in MiB", BALLASTS, GREEN),
    ("a tuner, by its goal in MiB", TUNERS, INK),
    ("automemlimit's rule", (AUTOMEMLIMIT,), PURPLE),
)


@dataclass(frozen=True)
class Way:
    """A way's throughput per CPU second and peak memory, and whether it is on the front."""

    arm: Arm
    rate: Estimate
    memory: Estimate
    front: bool


def ways(recording: Recording) -> list[Way]:
    """What each way gives.

    On the front stands what no other beats in one without being worse in the other.
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


def pareto(recording: Recording) -> Chart:
    """Throughput per CPU second against peak memory, the Pareto front drawn."""
    name = "cloudflare-pareto"
    found = ways(recording)
    if not found:
        return nothing(name, f"A server's garbage was not measured on Go {TODAY_GO}")
    by_arm = {line.arm: line for line in found}
    front = sorted(
        (line.memory.value / 2**20, line.rate.value) for line in by_arm.values() if line.front
    )
    best = max(by_arm.values(), key=lambda line: line.rate.value)
    title = (
        f"The most throughput, {_thousands(best.rate.value)} operations per CPU second, "
        f"takes {rounding.mebibytes(best.memory.value)} ({way(best.arm)})"
    )
    base = by_arm.get(SERVE)
    if base is not None:
        title += (
            f"; the default makes {_thousands(base.rate.value)} "
            f"with {rounding.mebibytes(base.memory.value)}"
        )
    with style():
        figure, (axes,) = canvas([13])
        axes.step(
            [rounding.rounded(x) for x, _ in front],
            [rounding.rounded(y) for _, y in front],
            where="post",
            color=MUTED,
            linewidth=1.2,
            zorder=0,
        )
        for _, arms, ink in _WAYS:
            for arm in arms:
                if arm in by_arm:
                    _placed(axes, recording, by_arm[arm], ink)
        _log(axes, "x")
        low, high = axes.get_xlim()
        axes.set_xlim(low / 1.1, high * 1.35)
        rates = [v for arm in by_arm for v in recording.samples(arm, TODAY_GO)[RATE]]
        axes.set_ylim(0, 1.1 * max(rates))
        axes.yaxis.set_major_formatter(_in_thousands)
        axes.set_ylabel("operations per CPU second")
        inks = {arm: ink for _, arms, ink in _WAYS for arm in arms}
        name_points(
            axes,
            [
                (line.memory.value / 2**20, line.rate.value, _short(line.arm), inks[line.arm])
                for line in by_arm.values()
            ],
        )
        for i, (label, _, ink) in enumerate(_WAYS):
            axes.annotate(
                label, (0.99, 0.05 + 0.06 * i), xycoords="axes fraction", ha="right", color=ink
            )
        below(figure, "peak resident memory (MiB, log); grey line: the Pareto front")
        headline(figure, title)
        plt.close(figure)
    data = pd.DataFrame(
        [
            row(way(line.arm), TODAY_GO, line.rate, unit=RATE)
            | {"peak_rss_mib": line.memory.value / 2**20, "front": line.front}
            for line in by_arm.values()
        ]
    )
    alt = "A scatter plot of operations per CPU second against peak memory: " + "; ".join(
        f"{way(line.arm)} {_thousands(line.rate.value)} with "
        f"{rounding.mebibytes(line.memory.value)}" + (", on the front" if line.front else "")
        for line in by_arm.values()
    )
    return finish(figure, name=name, title=title, alt=alt + ".", data=data)


def _placed(axes: Axes, recording: Recording, line: Way, ink: str) -> None:
    """A way's raw samples, and its estimate with its interval."""
    samples = recording.samples(line.arm, TODAY_GO)
    x, y = rounding.rounded(line.memory.value / 2**20), rounding.rounded(line.rate.value)
    raw_x = [rounding.rounded(v / 2**20) for v in samples["peak-rss-bytes"]]
    axes.scatter(raw_x, [rounding.rounded(v) for v in samples[RATE]], s=9, color=ink, alpha=0.3)
    if math.isfinite(line.rate.low) and math.isfinite(line.rate.high):
        ends = [rounding.rounded(max(line.rate.low, 0)), rounding.rounded(line.rate.high)]
        axes.plot([x, x], ends, color=ink, linewidth=1.4, alpha=0.6)
    axes.scatter([x], [y], s=36, color=ink, zorder=3)


def _short(arm: Arm) -> str:
    """A way beside its point, whose colour says the rest."""
    if arm == AUTOMEMLIMIT:
        return ""
    if arm.limit:
        return arm.limit.removesuffix("MiB")
    return arm.sub[0][1] if arm.sub else arm.gogc


# --- The model -----------------------------------------------------------------------------


def modelled(recording: Recording, go: str, arms: Iterable[Arm]) -> pd.DataFrame:
    """The samples of arms: CPU ns, GC cycles and page faults, each per operation."""
    parts = []
    for arm in arms:
        samples = recording.samples(arm, go)
        if len(samples):
            parts.append(
                pd.DataFrame(
                    {
                        "arm": arm.on(go),
                        "cpu": samples["cpu-ns/op"],
                        "cycles": samples["gc-cycles"] / samples["n"],
                        "faults": samples["faults"] / samples["n"],
                    }
                ).dropna()
            )
    return pd.concat(parts) if parts else pd.DataFrame(columns=["arm", "cpu", "cycles", "faults"])


MODELLED: Mapping[str, tuple[Arm, ...]] = MappingProxyType(
    {
        "signing on Ps that take turns": tuple(turns(MOST_PROCS, g) for g in GOGCS),
        "a server's garbage": WAYS,
    }
)


def cost_model(recording: Recording, go: str, arms: Iterable[Arm]) -> fits.Plane | None:
    """cpu/op = a + c·GC/op + f·faults/op through the samples of arms, in ns; None if too few."""
    found = modelled(recording, go, arms)
    return fits.plane([found["cycles"], found["faults"]], found["cpu"])


def _interval(e: Estimate, per: float) -> str:
    low, value, high = (rounding.plain(x / per) for x in (e.low, e.value, e.high))
    return f"{value} ({low} to {high})"


def model(recording: Recording) -> Chart:
    """What the model leaves unexplained, a panel per workload and release."""
    name = "cloudflare-model"
    panels, told, data, said = [], [], [], []
    for label, arms in MODELLED.items():
        for go in recording.releases:
            found, fit = modelled(recording, go, arms), cost_model(recording, go, arms)
            if fit is None:
                continue
            heading = f"{label}, Go {go}"
            panels.append((heading, found, fit))
            _, cycle, fault = fit.coefficients
            words = (
                f"R² {rounding.plain(fit.r2)}, {_interval(cycle, 1000)} µs a GC cycle, "
                f"{_interval(fault, 1)} ns a page fault"
            )
            said.append(f"{heading}: {words}")
            told.append(cycle.value / 1000)
            data += [
                row(part, go, e, unit="ns", workload=label)
                for part, e in zip(
                    ("operation", "GC cycle", "page fault"), fit.coefficients, strict=True
                )
            ]
    if not panels:
        return nothing(name, "There are too few samples to tell cycles from page faults")
    title = (
        "Two counts explain "
        + _range([100 * fit.r2 for *_, fit in panels])
        + f" % of what an operation takes; a GC cycle costs {_range(told)} µs"
    )
    with style():
        figure, all_axes = canvas([5.5] * len(panels))
        for axes, (_, found, fit), words in zip(all_axes, panels, said, strict=True):
            xs = [rounding.rounded(v / 1000) for v in fit.fitted]
            left = [
                rounding.rounded((y - f) / 1000)
                for y, f in zip(found["cpu"], fit.fitted, strict=True)
            ]
            axes.scatter(xs, left, s=14, color=ORANGE, alpha=0.6, linewidths=0)
            axes.axhline(0, color=INK, linewidth=1, zorder=0)
            reach = 1.15 * max(map(abs, left))
            axes.set_ylim(-reach, reach)
            axes.set_title("\n".join(textwrap.wrap(words, 64)), fontsize=9)
            axes.set_ylabel("measured −\nmodel (µs)")
        below(figure, "CPU time per operation by the model (µs)")
        headline(figure, title)
        plt.close(figure)
    alt = "Residuals of a linear model of the CPU time per operation: " + "; ".join(said)
    return finish(figure, name=name, title=title, alt=alt + ".", data=pd.DataFrame(data))
