"""The charts of chapter 03: what AddCleanup costs."""

from __future__ import annotations

import math
from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd

from gccost import rounding, stats
from gccost.judging import published
from gccost.judging.claims.quantities import Share
from gccost.judging.claims.stacks import ALLOCATING, CALLING_C, LINKING_IN, SPLICE_POINT
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import (
    ALLOCATE_ONLY,
    AUTO,
    CLEANUP,
    DEFER,
    FREE,
    Arm,
    Ratio,
    profiled,
)
from gccost.measuring.toolchains import ISSUE_GO, TODAY_GO
from gccost.showing.charts.common import (
    NAMES,
    Dots,
    Mark,
    Timing,
    colour,
    costs,
    dot_plot,
    gc_off_title,
    in_percent,
    nothing,
    on_and_off,
    release,
    row,
    timings,
)
from gccost.showing.charts.goroutines import shared_work
from gccost.showing.figures import BLUE, INK, MUTED, Chart, finish, style
from gccost.stats import Estimate

_MARKERS = {"MacBook Pro M1": "D", "Linux VM": "s"}


def _published() -> dict[str, list[Mark]]:
    """The published timings in ns, by benchmark."""
    marks: dict[str, list[Mark]] = {}
    for found in published.table("addcleanup-timings").to_dict("records"):
        mark = Mark(float(found["ns_per_op"]), _MARKERS[found["machine"]])
        marks.setdefault(found["variant"], []).append(mark)
    return marks


def cost(recording: Recording) -> Chart:
    """What each way to free costs per operation, a panel per release."""
    ratios = {go: recording.ratio(Ratio(CLEANUP, FREE), go) for go in recording.releases}
    measured = [
        f"{rounding.times(ratio.value)} on Go {go}" for go, ratio in ratios.items() if ratio.samples
    ]
    title = "Against a manual free AddCleanup costs " + ", ".join(measured)
    return timings(
        recording,
        "addcleanup-cost",
        costs((FREE, DEFER, CLEANUP, AUTO), FREE, _published()),
        title if measured else "What AddCleanup costs against a manual free was not measured",
        "wall time per operation (ns); in brackets: against a manual free\n"
        "as published: hollow diamonds a MacBook Pro M1, hollow squares a Linux server",
    )


# --- Why the ratio changed ---------------------------------------------------------


def why(recording: Recording) -> Chart:
    """How both sides of the ratio moved from release to release."""
    panels: dict[str, list[Dots]] = {}
    data, said = [], []
    changed: dict[tuple[str, str], float] = {}
    for arm in (CLEANUP, FREE):
        for go in recording.releases:
            values, estimate = _against_the_document(recording, arm, go)
            if not estimate.samples:
                continue
            changed[arm.benchmark, go] = estimate.value
            level = rounding.nanoseconds(recording.level(arm, go).value)
            label = f"{rounding.times(estimate.value)}  ({level})"
            name = NAMES[arm.benchmark]
            dots = Dots(f"Go {go}", values, estimate, label, colour(arm))
            panels.setdefault(name, []).append(dots)
            data.append(row(arm.benchmark, go, estimate, unit="ratio", against=ISSUE_GO))
            said.append(f"{name}, Go {go} {label}")
    if not panels:
        return nothing(
            "addcleanup-why", f"How the costs moved from Go {ISSUE_GO} on was not measured"
        )
    title = _why_title(recording, changed)
    with style():
        figure, all_axes = dot_plot(
            panels,
            title,
            f"wall time per operation against that on Go {ISSUE_GO}",
        )
        for axes in all_axes:
            axes.axvline(1, color=MUTED, linewidth=1, zorder=0)
        plt.close(figure)
    alt = f"A dot plot of times against those on Go {ISSUE_GO}: " + "; ".join(said)
    return finish(
        figure, name="addcleanup-why", title=title, alt=alt + ".", data=pd.DataFrame(data)
    )


def moved(recording: Recording) -> tuple[float, float]:
    """What AddCleanup and a manual free take today over what they took on the issue's release."""
    automatic, by_hand = (
        _against_the_document(recording, arm, TODAY_GO)[1].value for arm in (CLEANUP, FREE)
    )
    return automatic, by_hand


def _against_the_document(recording: Recording, arm: Arm, go: str) -> tuple[list[float], Estimate]:
    """An arm's cost against its cost on the document's release."""
    here, there = recording.cost(arm, go), recording.cost(arm, ISSUE_GO)
    estimate = stats.combine(lambda new, old: new / old, (here, there))
    return [float(v) for v in recording.values(arm, go) / math.exp(there.log)], estimate


def _why_title(recording: Recording, changed: dict[tuple[str, str], float]) -> str:
    automatic, by_hand = (
        changed.get((arm.benchmark, TODAY_GO), math.nan) for arm in (CLEANUP, FREE)
    )
    if math.isnan(automatic) or math.isnan(by_hand):
        return f"How the costs moved from Go {ISSUE_GO} to Go {TODAY_GO} was not measured"
    then, now = (
        rounding.times(recording.ratio(Ratio(CLEANUP, FREE), go).value)
        for go in (ISSUE_GO, TODAY_GO)
    )
    sides = [("a manual free", by_hand), ("AddCleanup", automatic)]
    more, less = sorted(sides, key=lambda side: -abs(math.log(side[1])))
    return (
        f"From Go {ISSUE_GO} to {TODAY_GO} the ratio went from {then} to {now}: {more[0]} moved "
        f"more, to {rounding.plain(more[1])} of its time, {less[0]} to {rounding.plain(less[1])}"
    )


# --- The GC off --------------------------------------------------------------------


def gc_off(recording: Recording) -> Chart:
    """AddCleanup with the GC on and off, beside what only allocates."""
    off = replace(CLEANUP, gogc="off")
    lines = [
        *on_and_off(CLEANUP, off, {}),
        Timing(NAMES[ALLOCATE_ONLY.benchmark], ALLOCATE_ONLY, colour=colour(ALLOCATE_ONLY)),
    ]
    return timings(
        recording,
        "addcleanup-gc-off",
        lines,
        gc_off_title(recording, "AddCleanup", CLEANUP, off),
        "wall time per operation (ns); settled: with the collecting that frees the rest",
    )


# --- The profile -------------------------------------------------------------------

_LOOP = ("gccost/cstr.AllocateCleanup",)
_SHARES = {
    "linking in (addspecial)": LINKING_IN,
    "of it, the walk of the list": SPLICE_POINT,
    "calling C (cgocall)": CALLING_C,
    "allocating (mallocgc)": ALLOCATING,
}
_BAR = 50.0  # the claim's: our reading of "the root cause"


def profile(recording: Recording) -> Chart:
    """Where the loop's own time goes with the GC off."""
    arm = profiled("AllocateCleanup", gogc="off")
    panels: dict[str, list[Dots]] = {}
    data, titled, said = [], [], []
    for go in recording.releases:
        for name, functions in _SHARES.items():
            share = Share(arm, functions, of=_LOOP)
            estimate = in_percent(recording.share(share, go))
            if not estimate.samples:
                continue
            label = rounding.plain(estimate.value) + " %"
            values = [100 * float(v) for v in recording.shares(share, go)]
            walk = functions == SPLICE_POINT
            dots = Dots(name, values, estimate, label, colour(CLEANUP) if walk else BLUE)
            panels.setdefault(release(recording, go), []).append(dots)
            data.append(row(name, go, estimate, unit="%"))
            said.append(f"Go {go}, {name} {label}")
            if walk:
                titled.append(f"{label} on Go {go}")
    if not panels:
        return nothing("addcleanup-profile", "The AddCleanup version was not profiled")
    title = "Of the AddCleanup loop's own time the walk of the span's list takes " + ", ".join(
        titled
    )
    with style():
        figure, all_axes = dot_plot(
            panels,
            title,
            "share of the loop's own CPU time with the GC off (%); shares overlap\n"
            f"line: {rounding.plain(_BAR, 2)} %, over which we call it the root cause",
            most=100,
        )
        for axes in all_axes:
            axes.axvline(_BAR, color=INK, linewidth=1, zorder=0)
        plt.close(figure)
    alt = "A dot plot of shares of the CPU profile, which overlap: " + "; ".join(said)
    return finish(
        figure, name="addcleanup-profile", title=title, alt=alt + ".", data=pd.DataFrame(data)
    )


# --- From many goroutines ------------------------------------------------------------


def parallel(recording: Recording) -> Chart:
    """What an object costs when many goroutines share the work."""
    return shared_work(recording, "addcleanup-parallel", ("Free", "Cleanup", "Auto"))
