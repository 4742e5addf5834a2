"""The charts: each takes what was recorded and states what it shows in its title.

Raw samples are drawn with their interval, the published figures under ours as
hollow diamonds. Charts that several chapters share come first.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gccost import rounding
from gccost.judging import published
from gccost.judging.claims import BAND, Agreement, Label, Share
from gccost.judging.ledger import Row
from gccost.judging.recording import Recording
from gccost.measuring.experiments import (
    AUTO,
    DRIFT,
    FREE,
    LOADS,
    METHODS,
    Arm,
    Ratio,
    independent,
)
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO
from gccost.showing.figures import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    WIDTH,
    Chart,
    finish,
    style,
)
from gccost.stats import Estimate

# How an arm is called beside its points.
NAMES = {
    "AllocateFree": "freed by hand",
    "AllocateDefer": "freed by defer",
    "AllocateHeapFree": "heap handle, freed by hand",
    "AllocateCleanup": "AddCleanup frees",
    "AllocateAuto": "finalizer frees",
    "AllocateDummy": "finalizer does nothing",
}
VERDICT_COLOURS = {
    Label.HOLDS: BLUE,
    Label.STRONGER: BLUE,
    Label.WEAKER: BLUE,
    Label.FAILS: ORANGE,
    Label.UNDECIDED: MUTED,
}


def _canvas(rows: int, per_panel: Sequence[float]) -> tuple[Figure, list[Axes]]:
    """Panels below one another, each as high as its lines need."""
    heights = [0.34 * lines + 0.55 for lines in per_panel]
    figure, axes = plt.subplots(
        rows,
        1,
        figsize=(WIDTH, sum(heights) + 0.75),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    return figure, list(axes[:, 0])


def _title(figure: Figure, title: str) -> None:
    figure.suptitle(
        "\n".join(textwrap.wrap(title, 74)), x=0.01, ha="left", fontsize=11, fontweight="bold"
    )


def _line(
    axes: Axes,
    y: float,
    values: Sequence[float],
    estimate: Estimate,
    colour: str,
    label: str,
) -> None:
    """One line of a dot plot: raw points, interval, estimate, and its figure beside it."""
    points = [rounding.rounded(v) for v in values]
    offsets = [y + 0.16 * (i / max(len(points) - 1, 1) - 0.5) for i in range(len(points))]
    axes.scatter(points, offsets, s=14, color=colour, alpha=0.35, linewidths=0)
    low, high = rounding.rounded(estimate.low), rounding.rounded(estimate.high)
    centre = rounding.rounded(estimate.value)
    if math.isfinite(high):
        axes.plot([low, high], [y, y], color=colour, linewidth=2.2, solid_capstyle="round")
    axes.scatter([centre], [y], s=34, color=colour, zorder=3)
    right = max([centre, *points, high if math.isfinite(high) else centre])
    axes.annotate(
        label,
        (right, y),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        color=INK,
        fontsize=9,
    )


def _diamonds(axes: Axes, points: Sequence[tuple[float, float]]) -> None:
    """Published figures: hollow diamonds, under ours."""
    if points:
        xs, ys = zip(*points, strict=True)
        axes.scatter(xs, ys, marker="D", s=46, facecolors="none", edgecolors=PURPLE, zorder=1)


def _lines_down(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(max(len(labels), 1) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def _row(arm: str, go: str, estimate: Estimate, **more: object) -> dict[str, object]:
    return {
        "arm": arm,
        "go": go,
        "estimate": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "samples": estimate.samples,
        **more,
    }


def verdicts(ledger: Sequence[Row]) -> Chart:
    """Every measured claim: ours over the published figure, the band, the verdict."""
    drawn = [row for row in ledger if row.estimate.samples]
    labels = [f"{row.claim.id}  Go {row.go}" for row in drawn]
    with style():
        figure, (axes,) = _canvas(1, [max(len(drawn), 1) + 1])
        axes.axvspan(1 / BAND, BAND, color=BLUE, alpha=0.10, linewidth=0)
        axes.axvline(1, color=PURPLE, linewidth=1)
        for y, row in enumerate(drawn):
            scaled = _over(row.estimate, row.published)
            colour = VERDICT_COLOURS[row.verdict.label]
            _line(axes, y, [], scaled, colour, str(row.verdict))
        axes.set_xscale("log")
        _lines_down(axes, labels)
        _plain_log(axes, [_over(r.estimate, r.published) for r in drawn])
        axes.set_xlabel("measured ÷ published (log scale); the band is a factor of 1.25")
        held = sum(r.verdict.label in (Label.HOLDS, Label.STRONGER, Label.WEAKER) for r in drawn)
        failed = sum(r.verdict.label is Label.FAILS for r in drawn)
        undecided = len(drawn) - held - failed
        title = (
            f"Verdicts that the claim holds: {held} of {len(drawn)}; "
            f"that it does not: {failed}; undecided: {undecided}"
        )
        _title(figure, title)
        plt.close(figure)
    data = pd.DataFrame(
        [
            _row(
                row.claim.id,
                row.go,
                row.estimate,
                published=row.published,
                unit=row.unit,
                verdict=str(row.verdict),
            )
            for row in drawn
        ]
    ).rename(columns={"arm": "claim"})
    alt = "A dot plot, a line per claim and Go release, of the measured over the published figure: "
    alt += "; ".join(
        f"{r.claim.id} on Go {r.go} {rounding.times(r.estimate.value / r.published)}, {r.verdict}"
        for r in drawn
    )
    return finish(figure, name="verdicts", title=title, alt=alt + ".", data=data)


def _over(estimate: Estimate, published_value: float) -> Estimate:
    return Estimate(
        estimate.value / published_value,
        estimate.low / published_value,
        estimate.high / published_value,
        estimate.samples,
        estimate.blocks,
        estimate.confidence,
    )


def _plain_log(axes: Axes, estimates: Sequence[Estimate]) -> None:
    """Ticks of a log axis as plain numbers, and room for the labels on the right."""
    finite = [x for e in estimates for x in (e.low, e.high, e.value) if math.isfinite(x) and x > 0]
    low, high = min([0.7, *finite]), max([1.4, *finite])
    axes.set_xlim(low / 1.15, high * (high / low) ** 0.45)
    ticks = [t for t in (0.05, 0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 3, 5, 10) if low / 1.15 <= t <= high]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()


def control(recording: Recording) -> Chart:
    """The A/A control: identical code against itself, in the same rounds."""
    controls = list(recording.controls())
    floor = math.exp(recording.noise_floor())
    kinds = {"same": "the same binary again", "relinked": "linked anew, another layout"}
    with style():
        figure, (axes,) = _canvas(1, [max(len(controls), 1)])
        if math.isfinite(floor):
            axes.axvspan(1 / floor, floor, color=MUTED, alpha=0.15, linewidth=0)
        axes.axvline(1, color=MUTED, linewidth=1)
        for y, (arm, go, estimate) in enumerate(controls):
            ratio = Ratio(arm, Arm(arm.benchmark, arm.gogc, arm.setting))
            values = recording.single_values(ratio, go)
            _line(axes, y, list(values), estimate, BLUE, rounding.times(estimate.value))
        _lines_down(axes, [f"{NAMES[a.benchmark]}:\n{kinds[a.twin]}" for a, _, _ in controls])
        axes.margins(x=0.16)
        axes.set_xlabel("wall time against its identical twin (ratio); grey: the noise floor")
        title = (
            f"Identical code could differ by up to {rounding.percent(floor - 1)} here: "
            "a smaller difference is not called one"
        )
        if not math.isfinite(floor):
            title = "Identical code was not measured often enough here to call any difference one"
        _title(figure, title)
        plt.close(figure)
    data = pd.DataFrame([_row(a.benchmark, go, e, twin=a.twin) for a, go, e in controls])
    alt = "A dot plot of the ratios of identical code to itself: " + "; ".join(
        f"{NAMES[a.benchmark]}, {kinds[a.twin]}, {rounding.interval(e, 'ratio')}"
        for a, _, e in controls
    )
    name = f"{recording.experiment.name}-control"
    return finish(figure, name=name, title=title, alt=alt + ".", data=data)


# --- Lemire -----------------------------------------------------------------


def _lemire_published() -> dict[tuple[str, str], float]:
    timings = published.table("lemire-timings").query("language == 'Go'")
    keys = zip(timings["variant"], timings["gogc"], strict=True)
    return dict(zip(keys, timings["ns_per_op"].astype(float), strict=True))


def lemire_published(recording: Recording) -> Chart:
    """The document's own four timings; nothing of the recording is used."""
    del recording
    figures = _lemire_published()
    ratios = {
        gogc: figures["AllocateAuto", gogc] / figures["AllocateFree", gogc]
        for gogc in ("100", "off")
    }
    lines = [
        (f"{NAMES[name]}, GC {'on' if gogc == '100' else 'off'}", figures[name, gogc], gogc, name)
        for gogc in ("100", "off")
        for name in ("AllocateFree", "AllocateAuto")
    ]
    with style():
        figure, (axes,) = _canvas(1, [len(lines)])
        _diamonds(axes, [(value, y) for y, (_, value, _, _) in enumerate(lines)])
        for y, (_, value, gogc, name) in enumerate(lines):
            label = rounding.nanoseconds(value)
            if name == "AllocateAuto":
                label += f"  ({rounding.times(ratios[gogc])})"
            axes.annotate(label, (value, y), xytext=(9, 0), textcoords="offset points", va="center")
        _lines_down(axes, [label for label, *_ in lines])
        axes.set_xlim(0, max(figures.values()) * 1.3)
        axes.set_xlabel("wall time per operation (ns), as published")
        title = (
            f"Published: a finalizer costs {rounding.times(ratios['100'])} a manual free, "
            f"and {rounding.times(ratios['off'])} with the GC off"
        )
        _title(figure, title)
        plt.close(figure)
    rows = [{"variant": name, "gogc": gogc, "ns_per_op": ns} for _text, ns, gogc, name in lines]
    alt = "A dot plot of the four published timings: " + "; ".join(
        f"{label} {rounding.nanoseconds(value)}" for label, value, _, _ in lines
    )
    return finish(
        figure, name="lemire-published", title=title, alt=alt + ".", data=pd.DataFrame(rows)
    )


_COST_ARMS = (
    FREE,
    Arm("AllocateDefer"),
    Arm("AllocateHeapFree"),
    Arm("AllocateCleanup"),
    AUTO,
    Arm("AllocateDummy"),
)


def lemire_cost(recording: Recording) -> Chart:
    """What each way to free costs per operation, a panel per release."""
    figures = _lemire_published()
    panels = {
        go: [arm for arm in _COST_ARMS if len(recording.samples(arm, go))]
        for go in recording.releases
    }
    data = []
    with style():
        figure, all_axes = _canvas(len(panels), [len(arms) for arms in panels.values()])
        for axes, (go, arms) in zip(all_axes, panels.items(), strict=True):
            _diamonds(
                axes,
                [
                    (figures[arm.benchmark, arm.gogc], y)
                    for y, arm in enumerate(arms)
                    if (arm.benchmark, arm.gogc) in figures
                ],
            )
            for y, arm in enumerate(arms):
                estimate = recording.level(arm, go)
                label = rounding.nanoseconds(estimate.value)
                if arm != FREE:
                    against = recording.ratio(Ratio(arm, FREE), go)
                    label += f"  ({rounding.times(against.value)})"
                values = recording.samples(arm, go)["ns/op"]
                automatic = arm in (AUTO, Arm("AllocateDummy"), Arm("AllocateCleanup"))
                _line(axes, y, list(values), estimate, ORANGE if automatic else BLUE, label)
                data.append(_row(arm.benchmark, go, estimate, unit="ns/op"))
            _lines_down(axes, [NAMES[arm.benchmark] for arm in arms])
            axes.set_title(_release(go))
            axes.set_xlim(left=0)
        widest = max(axes.get_xlim()[1] for axes in all_axes)
        for axes in all_axes:
            axes.set_xlim(0, widest * 1.2)
        all_axes[-1].set_xlabel(
            "wall time per operation (ns); in brackets: against freed by hand\n"
            "hollow diamonds: as published"
        )
        title = "Against freeing by hand a finalizer costs " + " and ".join(
            f"{rounding.times(recording.ratio(Ratio(AUTO, FREE), go).value)} on Go {go}"
            for go in panels
        )
        _title(figure, title)
        plt.close(figure)
    frame = pd.DataFrame(data)
    alt = "A dot plot of the wall time per operation: " + "; ".join(
        f"Go {r['go']}, {NAMES[r['arm']]} {rounding.nanoseconds(r['estimate'])}"
        for r in frame.to_dict("records")
    )
    return finish(figure, name="lemire-cost", title=title, alt=alt + ".", data=frame)


def _release(go: str) -> str:
    whose = {DOCUMENT_GO: "the document's toolchain", TODAY_GO: "today's"}.get(go, "")
    return f"Go {go}" + (f", {whose}" if whose else "")


def lemire_gc_off(recording: Recording) -> Chart:
    """The finalizer with the GC on and off: in the loop, and with what it left done."""
    lines = [
        ("GC on, the loop", AUTO, "ns/op"),
        ("GC off, the loop", Arm("AllocateAuto", gogc="off"), "ns/op"),
        ("GC on, settled", AUTO, "settled-ns/op"),
        ("GC off, settled", Arm("AllocateAuto", gogc="off"), "settled-ns/op"),
    ]
    published_figures = _lemire_published()
    data, saved = [], []
    with style():
        figure, all_axes = _canvas(len(recording.releases), [4] * len(recording.releases))
        for axes, go in zip(all_axes, recording.releases, strict=True):
            _diamonds(
                axes,
                [
                    (published_figures["AllocateAuto", arm.gogc], y)
                    for y, (_, arm, metric) in enumerate(lines)
                    if metric == "ns/op"
                ],
            )
            for y, (name, arm, metric) in enumerate(lines):
                estimate = recording.level(arm, go, metric)
                values = recording.samples(arm, go)[metric]
                colour = ORANGE if arm.gogc == "100" else GREEN
                _line(axes, y, list(values), estimate, colour, rounding.nanoseconds(estimate.value))
                data.append(_row(name, go, estimate, unit=metric))
            loop, settled = (
                _change(recording, Ratio(lines[1][1], AUTO, metric), go)
                for metric in ("ns/op", "settled-ns/op")
            )
            saved.append(f"{loop} in the loop, {settled} with the rest collected, on Go {go}")
            _lines_down(axes, [name for name, *_ in lines])
            axes.set_title(_release(go))
            axes.set_xlim(left=0)
        widest = max(axes.get_xlim()[1] for axes in all_axes)
        for axes in all_axes:
            axes.set_xlim(0, widest * 1.12)
        all_axes[-1].set_xlabel(
            "wall time per operation (ns); settled: with the collecting that frees the rest\n"
            "hollow diamonds: as published"
        )
        title = "The finalizer with the GC off: " + "; ".join(saved)
        _title(figure, title)
        plt.close(figure)
    frame = pd.DataFrame(data)
    alt = "A dot plot of the finalizer version's time per operation: " + "; ".join(
        f"Go {r['go']}, {r['arm']} {rounding.nanoseconds(r['estimate'])}"
        for r in frame.to_dict("records")
    )
    return finish(figure, name="lemire-gc-off", title=title, alt=alt + ".", data=frame)


def _change(recording: Recording, ratio: Ratio, go: str) -> str:
    """A ratio as a change, "−18.2 %", or that there is none to be told from noise."""
    if not recording.differs(ratio, go):
        return "no difference that can be told"
    change = recording.ratio(ratio, go).value - 1
    return ("+" if change > 0 else "") + rounding.percent(change)


_PROFILED = Arm("AllocateAuto", profile="cpu")
# What the profile is sorted into: each a share of the stacks that hold any of
# these functions, so shares overlap and need not add up to the whole. Names
# changed between releases; all of them are listed.
LEMIRE_SHARES = {
    "calling C (cgocall)": ("runtime.cgocall",),
    "SetFinalizer": ("runtime.SetFinalizer",),
    "of it, linking it in (addspecial)": ("runtime.addspecial",),
    "running finalizers": ("runtime.runfinq", "runtime.runFinalizers"),
    "GC workers and sweeping": (
        "runtime.gcBgMarkWorker",
        "runtime.bgsweep",
        "runtime.gcAssistAlloc",
        "runtime.deductSweepCredit",
        "runtime.(*mcentral).cacheSpan",
    ),
    "sleeping (usleep)": ("runtime.usleep",),
    "waking threads (futex)": ("runtime.futex",),
}
_PUBLISHED_AS = {
    "calling C (cgocall)": "runtime.cgocall",
    "sleeping (usleep)": "runtime.usleep",
    "waking threads (futex)": "runtime.pthread_cond_signal",
}


def lemire_profile(recording: Recording) -> Chart:
    """Where the finalizer version's CPU time goes, beside the document's profile."""
    printed = published.table("lemire-profile").set_index("function")["cum_percent"]
    profiled = [go for go in recording.releases if recording.profiles("AllocateAuto", go)]
    measured = profiled or list(recording.releases)
    data, cgocall = [], []
    with style():
        figure, all_axes = _canvas(max(len(measured), 1), [len(LEMIRE_SHARES)] * len(measured))
        for axes, go in zip(all_axes, measured, strict=True):
            _diamonds(
                axes,
                [
                    (float(printed[_PUBLISHED_AS[name]]), y)
                    for y, name in enumerate(LEMIRE_SHARES)
                    if name in _PUBLISHED_AS
                ],
            )
            for y, (name, functions) in enumerate(LEMIRE_SHARES.items()):
                share = Share(_PROFILED, functions)
                estimate = _in_percent(recording.share(share, go))
                values = 100 * recording.shares(share, go)
                _line(axes, y, list(values), estimate, BLUE, rounding.plain(estimate.value) + " %")
                data.append(_row(name, go, estimate, unit="%"))
                if name in ("calling C (cgocall)", "SetFinalizer"):
                    cgocall.append(estimate.value)
            _lines_down(axes, list(LEMIRE_SHARES))
            axes.set_xlim(-2, 108)
            axes.set_title(_release(go))
        all_axes[-1].set_xlabel(
            "share of the CPU profile whose stacks hold it (%)\nhollow diamonds: as published, "
            "on macOS (its pthread_cond_signal for futex)"
        )
        parts = [
            f"{rounding.plain(c)} % calls C and {rounding.plain(s)} % is SetFinalizer on Go {go}"
            for go, c, s in zip(measured, cgocall[::2], cgocall[1::2], strict=True)
        ]
        title = "Of the finalizer version's CPU time " + "; ".join(parts)
        _title(figure, title)
        plt.close(figure)
    frame = pd.DataFrame(data)
    alt = "A dot plot of shares of the CPU profile, which overlap: " + "; ".join(
        f"Go {r['go']}, {r['arm']} {rounding.plain(r['estimate'])} %"
        for r in frame.to_dict("records")
    )
    return finish(figure, name="lemire-profile", title=title, alt=alt + ".", data=frame)


def _in_percent(e: Estimate) -> Estimate:
    return Estimate(100 * e.value, 100 * e.low, 100 * e.high, e.samples, e.blocks, e.confidence)


# --- How precise the measuring is ---------------------------------------------

_PRECISION_RATIOS = {
    "AllocateAuto": "finalizer against freed by hand",
    "AllocateCleanup": "AddCleanup against freed by hand",
}


def precision(recording: Recording) -> Chart:
    """Four independent measurements of two ratios, by three methods, quiet and busy."""
    lines = [(method, load) for method in METHODS for load in LOADS]
    spreads: dict[str, list[float]] = {method: [] for method in METHODS}
    data = []
    with style():
        figure, all_axes = _canvas(len(_PRECISION_RATIOS), [1.6 * len(lines)] * 2)
        for axes, (benchmark, name) in zip(all_axes, _PRECISION_RATIOS.items(), strict=True):
            for y, (method, load) in enumerate(lines):
                ratios = independent(benchmark, method, load)
                estimates = [recording.ratio(ratio, TODAY_GO) for ratio in ratios]
                spread = recording.spread(Agreement((ratios,)), TODAY_GO)
                spreads[method].append(spread.value)
                colour = BLUE if method == "rounds" else ORANGE
                _group(axes, y, estimates, colour, f"within {rounding.percent(spread.value - 1)}")
                data += [
                    _row(name, TODAY_GO, e, method=method, load=load, measurement=i, unit="ratio")
                    for i, e in enumerate(estimates, 1)
                ]
            _lines_down(axes, [f"{METHODS[m]}\n{LOADS[load]}" for m, load in lines])
            axes.set_title(name)
            _around(axes, [float(str(row["estimate"])) for row in data if row["arm"] == name])
        all_axes[-1].set_xlabel("ratio to freed by hand, four measurements each")
        widest = {method: max(found) - 1 for method, found in spreads.items()}
        title = (
            f"Measured four times over, paired rounds agree within "
            f"{rounding.percent(widest['rounds'])}, go test -count within "
            f"{rounding.percent(widest['count'])}"
        )
        _title(figure, title)
        plt.close(figure)
    frame = pd.DataFrame(data)
    alt = "A dot plot of four independent measurements a line: " + "; ".join(
        f"{r['arm']}, {METHODS[r['method']]}, {LOADS[r['load']]}, "
        f"measurement {r['measurement']}: {rounding.times(r['estimate'])}"
        for r in frame.to_dict("records")
    )
    return finish(figure, name="precision", title=title, alt=alt + ".", data=frame)


def _group(axes: Axes, y: float, estimates: Sequence[Estimate], colour: str, label: str) -> None:
    """Several estimates of one thing on one line, one below the other."""
    for i, estimate in enumerate(estimates):
        at = y + 0.5 * (i / max(len(estimates) - 1, 1) - 0.5)
        low, high = rounding.rounded(estimate.low), rounding.rounded(estimate.high)
        if math.isfinite(low) and math.isfinite(high):
            axes.plot([low, high], [at, at], color=colour, linewidth=1.4)
        axes.scatter([rounding.rounded(estimate.value)], [at], s=20, color=colour, zorder=3)
    axes.annotate(
        label,
        (1, y - 0.38),
        xycoords=axes.get_yaxis_transform(),
        xytext=(-4, 0),
        textcoords="offset points",
        va="center",
        ha="right",
        fontsize=9,
    )


def _around(axes: Axes, values: Sequence[float]) -> None:
    """Limits that show the values well; an interval that is wider is cut off there."""
    finite = [v for v in values if math.isfinite(v)]
    if finite:
        low, high = min(finite), max(finite)
        margin = max(high - low, 0.1 * high)
        axes.set_xlim(max(0.0, low - margin), high + 1.6 * margin)


def drift(recording: Recording) -> Chart:
    """The time per operation through one long loop with the GC on."""
    samples = recording.samples(DRIFT, TODAY_GO)
    laps = sorted(c for c in samples.columns if c.startswith("lap") and c.endswith("-ns/op"))
    curves = samples[laps]
    n = float(samples["n"].max()) if len(samples) else math.nan
    ends = [rounding.rounded(n * (i + 1) / len(laps) / 1e6) for i in range(len(laps))]
    median = curves.median()
    with style():
        figure, (axes,) = _canvas(1, [8])
        for _, curve in curves.iterrows():
            axes.plot(ends, [rounding.rounded(x) for x in curve], color=BLUE, alpha=0.3)
        axes.plot(ends, [rounding.rounded(x) for x in median], color=BLUE, linewidth=2.4)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("operations so far (millions); thin: one process each, thick: their median")
        axes.set_ylabel("ns per operation in this lap")
        spread = float(median.max() / median.min()) if len(laps) else math.nan
        title = (
            f"In one process the dearest lap costs {rounding.times(spread)} the cheapest: "
            "what is measured depends on N"
        )
        _title(figure, title)
        plt.close(figure)
    frame = pd.DataFrame(
        {"operations": [e * 1e6 for e in ends], "estimate": list(median), "unit": "ns/op"}
    )
    alt = (
        "A line chart of the median time per operation in each sixteenth of the loop: "
        + ", ".join(rounding.nanoseconds(x) for x in median)
    )
    return finish(figure, name="precision-drift", title=title, alt=alt + ".", data=frame)


CHARTS: dict[str, Callable[[Recording], Chart]] = {
    "control": control,
    "lemire-published": lemire_published,
    "lemire-cost": lemire_cost,
    "lemire-gc-off": lemire_gc_off,
    "lemire-profile": lemire_profile,
    "precision": precision,
    "precision-drift": drift,
}
