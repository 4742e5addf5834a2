"""The charts of chapter 04: GOGC and scaling."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from gccost import rounding
from gccost.errors import GccostError
from gccost.judging import gogc, published
from gccost.judging.gogc import RATE, Way, way
from gccost.judging.recording import Recording
from gccost.measuring.experiments import cloudflare as cases
from gccost.measuring.experiments.base import Arm
from gccost.measuring.experiments.cloudflare import BEST_GOGC, MOST_PROCS, signing, turns
from gccost.measuring.toolchains import TODAY_GO
from gccost.rounding import rounded
from gccost.showing.charts.common import Part, in_percent, levels, release, scaled, shares
from gccost.showing.figures import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, Chart
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
    headline,
    name_points,
    table,
    ticks_between,
    told,
)

_TICKS = (1, 8, 16, 24, 32, 48, 64, 96)  # of an axis of goroutines or Ps


def _thousands(x: float) -> str:
    return rounding.plain(x / 1000) + "k"


def _from_zero(label: str, high: float | None = None) -> Axis:
    """The y axis of a throughput."""
    return Axis(label, limits=(0, high), format=_in_thousands)


def _in_thousands(x: float, _: object) -> str:
    return f"{x / 1000:g}k" if x else "0"


def _named(setting: str) -> str:
    return "GC off" if setting == "off" else f"GOGC={setting}"


def _range(values: Sequence[float]) -> str:
    low, high = rounding.plain(min(values)), rounding.plain(max(values))
    return low if low == high else f"{low} to {high}"


# --- The document's figures ------------------------------------------------------------


@chart("cloudflare-published", "The document's throughputs are missing")
def published_scaling(recording: Recording) -> Drawing | None:
    """The document's throughputs, with the scalability law through those up to its peak."""
    del recording
    figures = published.table("cloudflare-throughput").astype({"op_per_s": float})
    law = gogc.published_law()
    if law is None:
        return None
    one, most = figures["op_per_s"].iloc[0], figures["op_per_s"].max()
    last = cases.DOCUMENT_CPUS
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
        f"As published: {_thousands(gogc.published_throughput('100')[last])} signatures a second "
        f"from {last} goroutines, {_thousands(most)} with the best GOGC; a law fitted up to the "
        f"peak says {_thousands(law.at(last))}",
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
    lines: Mapping[str, tuple[str, Mapping[int, Arm]]],
    metric: str,
    x: str,
) -> list[Point]:
    """A metric over x, a panel per release; `lines` are colours, and arms by their x."""
    return [
        point
        for go in recording.releases
        for name, (ink, arms) in lines.items()
        for point in levels(
            recording,
            release(recording, go),
            name,
            go,
            arms.items(),
            metric,
            _thousands,
            data={"arm": name, "go": go, "unit": metric, x: None},
            colour=ink,
        )
    ]


@chart("cloudflare-scaling", "Signing on all CPUs was not measured")
def scaling(recording: Recording) -> Drawing | None:
    """Throughput over the goroutines on this machine's CPUs, a panel per release."""
    lines = {
        _named(setting): (ink, {n: signing(n, setting) for n in cases.GOROUTINES})
        for setting, ink in (("100", ORANGE), (BEST_GOGC, GREEN))
    }
    points = _swept(recording, lines, "op/s", "goroutines")
    cpus, most = recording.cpus, max((p.x for p in points), default=1)

    def this_machine(axes: Axes, _: str) -> None:
        axes.axvline(cpus, color=MUTED, linewidth=1, zorder=0)

    return curves(
        points,
        lambda: _scaling_title(points, cpus),
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
        published=[(n, x, "D") for n, x in gogc.published_throughput("100").items() if n <= most],
        decorate=this_machine,
    )


def _scaling_title(points: Sequence[Point], cpus: int) -> str:
    """What each release gains from more goroutines at the first GOGC that was measured."""
    setting, said = points[0].line, []
    at_one_gogc = [p for p in points if p.line == setting]
    for line in by_panel(at_one_gogc).values():
        first, last, peak = line[0], line[-1], max(line, key=lambda p: p.estimate.value)
        end, most = (rounding.times(p.estimate.value / first.estimate.value) for p in (last, peak))
        more = "" if peak in (first, last) else f", with a peak of {most} at {peak.x:.0f}"
        said.append(f"Go {first.data['go']} {end}{more}")
    return (
        f"Throughput of {max(p.x for p in at_one_gogc):.0f} goroutines over that of one, on "
        f"{cpus} CPUs at {setting}: " + "; ".join(said)
    )


_OFF = 30_000  # where the GC off stands on an axis of GOGC
_STEPS = (100, 200, 400, 800, 2400, 4800, 11300)
_GOGC_TICKS = {float(g): f"{g:,}" for g in _STEPS} | {_OFF: "off"}


@chart("cloudflare-gogc", "GOGC was not swept")
def sweep(recording: Recording) -> Drawing | None:
    """Throughput over GOGC, a panel per release; the GC off stands at the right."""
    arm, metric, words = gogc.sweep_arm(recording)
    on = {int(setting): arm(setting) for setting in cases.GOGCS if setting != "off"}
    lines = {"GOGC": (ORANGE, on), "GC off": (GREEN, {_OFF: arm("off")})}
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
    figures = gogc.published_sweep().items() if own else ()
    found = points and curves(
        points + one_p,
        "Throughput over that at GOGC=100: " + "; ".join(map(_gained, by_panel(points).values())),
        Axis(f"GOGC (log); {words.partition(', ')[2]}", "log", _GOGC_TICKS, (85, 36_000)),
        _from_zero(words.partition(",")[0]),
        kind=f"A line chart of {words}, over GOGC ({_OFF:,} stands for off)",
        height=7,
        published=[(_OFF if g == "off" else float(g), x, "D") for g, x in figures],
    )
    if not found:
        return None
    return replace(found, data=found.data.replace({"gogc": {_OFF: "off"}}))


def _gained(swept: Sequence[Point]) -> str:
    """What a release gains from a larger GOGC, and from none."""
    over = {p.x: rounding.times(p.estimate.value / swept[0].estimate.value) for p in swept}
    best = max(swept, key=lambda p: (p.x != _OFF, p.estimate.value))
    said = [f"Go {best.data['go']} up to {over[best.x]} (GOGC={best.x:.0f})"]
    if _OFF in over:  # on one line of the title, as capitals are wide
        said.append(f"{over[_OFF]} with the GC off".replace(" ", "\u00a0"))
    return ", ".join(said)


@chart("cloudflare-grid", "None of the choices was measured")
def grid(recording: Recording) -> Drawing | None:
    """Small multiples of the choices: a panel per release, Ps on x, a line per GOGC."""
    inks = zip(cases.GRID_GOGC, (ORANGE, PURPLE, BLUE, INK, GREEN), strict=True)
    lines = {
        _named(setting): (ink, {procs: turns(procs, setting) for procs in cases.GRID_PROCS})
        for setting, ink in inks
    }
    points = _swept(recording, lines, RATE, "procs")
    best = {
        found[0].data["go"]: gogc.first_unbeaten({p.line: p.estimate for p in found})
        for found in by_panel(p for p in points if p.x == MOST_PROCS).values()
    }
    return curves(
        points,
        f"Smallest setting that no other significantly outperforms, with {MOST_PROCS} Ps: "
        + ", ".join(f"{setting} on Go {go}" for go, setting in best.items()),
        Axis("Ps that take turns on one CPU", ticks=cases.GRID_PROCS, limits=(0, MOST_PROCS + 2)),
        _from_zero("signatures per CPU second"),
        kind="Line charts of signatures per CPU second over the Ps, a line per GOGC",
        gap=0.09,
    )


# --- The mechanism ---------------------------------------------------------------------

_THROUGHPUT, _CYCLES = "throughput", "how often the GC runs"
_MECHANISM = {_THROUGHPUT: (RATE, _thousands), _CYCLES: ("gc-cycle-op", rounding.plain)}


@chart("cloudflare-turns", "Signing on Ps that take turns was not measured, or ran no GC cycle")
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
            [(procs, turns(procs)) for procs in cases.PROCS],
            metric,
            say,
            data={"arm": f"Go {go}", "go": go, "unit": metric, "procs": None},
            colour=ink,
        )
    ]
    panels = by_panel(points)
    if len(panels) < len(_MECHANISM):
        return None
    most = max(p.x for p in points)
    label = f"{gogc.PUBLISHED_OPERATIONS}"
    document = replace(NO_ESTIMATE, value=gogc.PUBLISHED_OPERATIONS)
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
        where = gogc.threshold(recording, str(first.data["go"]))
        fall = f"fall most from {where[0]} to {where[1]} Ps" if where else "nowhere fall steeply"
        said.append(
            f"{first.line}: {first.label} to {last.label} a CPU second, its operations per "
            f"GC cycle {fall}"
        )
    begins = (
        "With more Ps on one CPU signing slows down" if slower else "Signing on more Ps on one CPU"
    )
    return f"{begins}. " + "; ".join(said)


# --- gctrace ---------------------------------------------------------------------------


def trace(recording: Recording) -> Chart:
    """The document's printed cycles next to ours: how far apart, and with what heap."""
    traces, unread = gogc.traces(recording)
    left_out = _left_out(recording, unread)

    @chart("cloudflare-gctrace", "No gctrace with cycles was kept" + left_out)
    def drawn(recording: Recording) -> Drawing | None:
        data = pd.DataFrame([{"arm": name} | gogc.medians(of) for name, of in traces.items()])
        first, *ours = data["estimate"]
        points = [
            Point(
                "",
                arm,
                replace(NO_ESTIMATE, value=middle),
                raw=gogc.between(traces[arm]),
                label=f"{rounding.plain(middle)} ms; {start}→{live} MB, goal {goal:.0f}",
                colour={"as published": PURPLE}.get(arm, BLUE if arm.endswith(" P") else ORANGE),
            )
            for arm, middle, _, start, live, goal in data.itertuples(index=False)
        ]
        found = ours and dots(
            points,
            f"A cycle every {rounding.plain(first)} ms as published, every {_range(ours)} ms "
            f"here, with {data['live_mb'].max()} MB or less alive after it",
            "time from one GC cycle to the next (ms, log; printed to the ms), GOGC=100;\n"
            "right: the median, and the heap from a cycle's start to what lives after it"
            + "".join(f"\n{line}" for line in textwrap.wrap(left_out[2:], 90)),
            kind="A dot plot of the times between GC cycles" + left_out,
            log=True,
        )
        return replace(found, data=data) if found else None

    return drawn(recording)


def _left_out(recording: Recording, unread: Sequence[GccostError]) -> str:
    """What follows where gctraces cannot be read; nothing where all can."""
    if not unread:
        return ""
    file = Path(unread[0].place).relative_to(recording.run.folder).as_posix()
    more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
    return f"; left out: {file}{more} cannot be read ({unread[0].mend})"


# --- The GC's share ----------------------------------------------------------------------


@chart("cloudflare-profile", "Signing was not profiled")
def profile(recording: Recording) -> Drawing | None:
    """Shares of the CPU profile at the collapse and at a better GOGC, next to the document's."""
    whole, *_ = gogc.GC_PARTS
    printed, arms = gogc.published_profile(), gogc.profiled_arms(recording)
    parts = {
        name: Part(functions, published=printed[name], colour=ORANGE if name == whole else BLUE)
        for name, functions in gogc.GC_PARTS.items()
    }
    points = [
        point if arm.gogc == "100" else replace(point, published=())
        for go in recording.releases
        for arm in arms
        for point in shares(
            recording, arm, go, parts, f"{release(recording, go)}, GOGC={arm.gogc}", gogc=arm.gogc
        )
    ]
    found = {(p.data["go"], p.data["gogc"]): p.label for p in points if p.line == whole}
    return dots(
        points,
        f"The GC and its locks in the CPU profile at GOGC={' and '.join(a.gogc for a in arms)}: "
        + "; ".join(
            f"{' and '.join(found.get((go, arm.gogc), '–') for arm in arms)} on Go {go}"
            for go in dict.fromkeys(go for go, _ in found)
        ),
        "share of the CPU profile (%); shares overlap\n"
        "hollow diamonds: flat shares of the functions that the document printed",
        kind="A dot plot of shares of the CPU profile, which overlap",
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
            label=rounding.percent(estimate.value),
            colour=GREEN if measure == gogc.SAVED else ORANGE,
            data={"arm": measure, "go": go, "unit": "%"},
        )
        for go in recording.releases
        for measure, (estimate, raw) in gogc.gc_shares(recording, go).items()
        if estimate.samples
    ]
    return dots(
        points,
        lambda: (
            f"The GC's share of the CPU time depends on the measure: with {MOST_PROCS} Ps on one "
            f"CPU it is {_range([p.estimate.value for p in points])} %"
        ),
        "share of the process's CPU time (%); more than 100 is counted too high",
        kind="A dot plot of the GC's share by several measures",
    )


# --- What to take home -------------------------------------------------------------------

_WAYS = {
    "fixed GOGC": (cases.FIXED, BLUE),
    "GOMEMLIMIT": (cases.LIMITED, ORANGE),
    "ballast": (cases.BALLASTS, GREEN),
    "tuner": (cases.TUNERS, INK),
    "automemlimit": ((cases.AUTOMEMLIMIT,), PURPLE),
}
_LINES = {arm: (line, ink) for line, (arms, ink) in _WAYS.items() for arm in arms}


@chart("cloudflare-pareto", f"A server's garbage was not measured on Go {TODAY_GO}")
def pareto(recording: Recording) -> Drawing | None:
    """Throughput per CPU second against peak memory, the Pareto front drawn."""
    found = gogc.ways(recording)
    if not found:
        return None
    points = []
    for w in found:
        name, memory, (line, ink) = way(w.arm), w.memory.value / 2**20, _LINES[w.arm]
        label = f"{name} {_thousands(w.rate.value)}" + (" (on the front)" if w.front else "")
        data = {"arm": name, "go": TODAY_GO, "unit": RATE, "peak_rss_mib": memory, "front": w.front}
        points.append(Point("", line, w.rate, rounded(memory, 3), (), label, ink, data=data))

    def raw_and_front(axes: Axes, _: str) -> None:
        for w, p in zip(found, points, strict=True):
            samples = recording.samples(w.arm, TODAY_GO)
            memory, rates = samples["peak-rss-bytes"] / 2**20, samples[RATE]
            axes.scatter(memory.map(rounded), rates.map(rounded), s=9, color=p.colour, alpha=0.3)
        front = sorted((p.x, rounded(p.estimate.value)) for p in points if p.data["front"])
        axes.step(*zip(*front, strict=True), where="post", color=MUTED, linewidth=1.2, zorder=0)
        names = [re.split("[= ]", str(p.data["arm"]))[-1] for p in points]
        at = zip(points, names, strict=True)
        name_points(axes, [(p.x, p.estimate.value, name, p.colour) for p, name in at])

    least, most = min(p.x for p in points), max(p.x for p in points)
    return curves(
        points,
        _pareto_title(found),
        Axis(
            "peak resident memory (MiB, log); next to each point: its GOGC, or its goal in MiB\n"
            "grey line: the Pareto front",
            "log",
            ticks_between(least, most),
            (least / 1.2, most * 1.4),
        ),
        _from_zero(
            "operations per CPU second",
            1.1 * max(recording.values(w.arm, TODAY_GO, RATE).max() for w in found),
        ),
        kind="A scatter plot of operations per CPU second against the peak memory in MiB",
        height=13,
        joined=False,
        decorate=raw_and_front,
    )


def _pareto_title(found: Sequence[Way]) -> str:
    best = max(found, key=lambda w: w.rate.value)
    title = (
        f"The most throughput, {_thousands(best.rate.value)} operations per CPU second, "
        f"takes {rounding.mebibytes(best.memory.value)} ({way(best.arm)})"
    )
    for w in found:
        if w.arm == cases.SERVE:
            memory = rounding.mebibytes(w.memory.value)
            title += f"; the default makes {_thousands(w.rate.value)} with {memory}"
    return title


# --- The model -----------------------------------------------------------------------------


@chart("cloudflare-model", "There are too few samples to tell cycles from page faults")
def model(recording: Recording) -> Drawing | None:
    """What the model leaves unexplained, a panel per workload and release."""
    fits = [
        (workload, go, fit)
        for workload, arms in gogc.MODELLED.items()
        for go in recording.releases
        if (fit := gogc.cost_model(recording, go, arms)) is not None
    ]
    if not fits:
        return None
    points = []
    figure, all_axes = canvas([5.5] * len(fits))
    for axes, (workload, go, fit) in zip(all_axes, fits, strict=True):
        panel = f"{workload}, Go {go}"
        own, cycle, fault = fit.coefficients
        micros = rounding.interval(scaled(cycle, 1e-3), "number")
        parts = {
            "operation": (own, f"R² {rounding.plain(fit.r2)}"),
            "GC cycle": (cycle, f"{micros} µs a GC cycle"),
            "page fault": (fault, f"{rounding.interval(fault, 'number')} ns a page fault"),
        }
        for name, (e, label) in parts.items():
            data = {"arm": name, "go": go, "unit": "ns", "workload": workload}
            points.append(Point(panel, name, e, label=label, data=data))
        left = [rounded(v / 1000) for v in fit.residuals]
        xs = [rounded(v / 1000) for v in fit.fitted]
        axes.scatter(xs, left, s=14, color=ORANGE, alpha=0.6, linewidths=0)
        axes.axhline(0, color=INK, linewidth=1, zorder=0)
        reach = 1.15 * max(map(abs, left))
        axes.set(ylim=(-reach, reach), ylabel="measured −\nmodel (µs)")
        words = f"{panel}: " + ", ".join(label for _, label in parts.values())
        axes.set_title("\n".join(textwrap.wrap(words, 76)), fontsize=9)
    below(figure, "CPU time per operation by the model (µs)")
    explained = _range([100 * fit.r2 for *_, fit in fits])
    cycles = _range([fit.coefficients[1].value / 1000 for *_, fit in fits])
    title = (
        f"Two counts explain {explained} % of what an operation takes; a GC cycle costs {cycles} µs"
    )
    headline(figure, title)
    alt = told(points, "Residuals of a linear model of the CPU time per operation")
    return Drawing(figure, title, alt, table(points))
