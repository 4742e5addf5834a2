"""The charts of chapter 01: what a finalizer costs."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd

from gccost import rounding
from gccost.judging import published
from gccost.judging.claims.quantities import Share
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import AUTO, FREE, Arm, Ratio, profiled
from gccost.showing.charts.common import (
    NAMES,
    Dots,
    Mark,
    canvas,
    costs,
    diamonds,
    dot_plot,
    gc_off_title,
    headline,
    in_percent,
    lines_down,
    nothing,
    on_and_off,
    release,
    row,
    timings,
)
from gccost.showing.figures import Chart, finish, style


def _published() -> dict[tuple[str, str], float]:
    """The document's timings in ns, by benchmark and GOGC."""
    table = published.table("lemire-timings").query("language == 'Go'")
    keys = zip(table["variant"], table["gogc"], strict=True)
    return dict(zip(keys, table["ns_per_op"].astype(float), strict=True))


def published_timings(recording: Recording) -> Chart:
    """The document's own four timings; nothing of the recording is used."""
    del recording
    figures = _published()
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
        figure, (axes,) = canvas([len(lines)])
        diamonds(axes, [(value, y, "D") for y, (_, value, _, _) in enumerate(lines)])
        for y, (_, value, gogc, name) in enumerate(lines):
            label = rounding.nanoseconds(value)
            if name == "AllocateAuto":
                label += f"  ({rounding.times(ratios[gogc])})"
            axes.annotate(label, (value, y), xytext=(9, 0), textcoords="offset points", va="center")
        lines_down(axes, [label for label, *_ in lines])
        axes.set_xlim(0, max(figures.values()) * 1.3)
        axes.set_xlabel("wall time per operation (ns), as published")
        title = (
            f"Published: a finalizer costs {rounding.times(ratios['100'])} a manual free, "
            f"and {rounding.times(ratios['off'])} with the GC off"
        )
        headline(figure, title)
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


def cost(recording: Recording) -> Chart:
    """What each way to free costs per operation, a panel per release."""
    ratios = {go: recording.ratio(Ratio(AUTO, FREE), go) for go in recording.releases}
    measured = [
        f"{rounding.times(ratio.value)} on Go {go}" for go, ratio in ratios.items() if ratio.samples
    ]
    title = "Against a manual free a finalizer costs " + " and ".join(measured)
    figures = {name: [Mark(ns)] for (name, gogc), ns in _published().items() if gogc == "100"}
    return timings(
        recording,
        "lemire-cost",
        costs(_COST_ARMS, FREE, figures),
        title if measured else "What a finalizer costs against a manual free was not measured",
        "wall time per operation (ns); in brackets: against a manual free\n"
        "hollow diamonds: as published",
    )


def gc_off(recording: Recording) -> Chart:
    """The finalizer with the GC on and off: in the loop, and with what it left done."""
    off = Arm("AllocateAuto", gogc="off")
    figures = _published()
    marks = {gogc: [Mark(figures["AllocateAuto", gogc])] for gogc in ("100", "off")}
    return timings(
        recording,
        "lemire-gc-off",
        on_and_off(AUTO, off, marks),
        gc_off_title(recording, "The finalizer", AUTO, off),
        "wall time per operation (ns); settled: with the collecting that frees the rest\n"
        "hollow diamonds: as published",
    )


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


def profile(recording: Recording) -> Chart:
    """Where the finalizer version's CPU time goes, beside the document's profile."""
    arm = profiled("AllocateAuto")
    printed = published.table("lemire-profile").set_index("function")["cum_percent"]
    panels: dict[str, list[Dots]] = {}
    data, parts, said = [], [], []
    for go in recording.releases:
        if not recording.profiles(arm, go):
            continue
        found = {}
        for name, functions in LEMIRE_SHARES.items():
            share = Share(arm, functions)
            estimate = in_percent(recording.share(share, go))
            label = rounding.plain(estimate.value) + " %"
            known = [Mark(float(printed[_PUBLISHED_AS[name]]))] if name in _PUBLISHED_AS else []
            values = list(100 * recording.shares(share, go))
            dots = Dots(name, values, estimate, label, marks=known)
            panels.setdefault(release(recording, go), []).append(dots)
            data.append(row(name, go, estimate, unit="%"))
            said.append(f"Go {go}, {name} {label}")
            found[name] = label
        parts.append(
            f"{found['calling C (cgocall)']} calls C and {found['SetFinalizer']} "
            f"is SetFinalizer on Go {go}"
        )
    if not panels:
        return nothing("lemire-profile", "The finalizer version was not profiled")
    title = "Of the finalizer version's CPU time " + "; ".join(parts)
    with style():
        figure, _ = dot_plot(
            panels,
            title,
            "share of the CPU profile whose stacks hold it (%)\nhollow diamonds: as published, "
            "on macOS (its pthread_cond_signal for futex)",
            most=100,
        )
        plt.close(figure)
    alt = "A dot plot of shares of the CPU profile, which overlap: " + "; ".join(said)
    return finish(
        figure, name="lemire-profile", title=title, alt=alt + ".", data=pd.DataFrame(data)
    )
