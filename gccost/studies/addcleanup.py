"""The Go issue on AddCleanup, compared with a manual free and a finalizer, GC on and off."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from gccost import rounding, stats
from gccost.judging import published
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Share
from gccost.judging.recording import Recording
from gccost.judging.rules import AtLeast, Effect, Same
from gccost.judging.stacks import ALLOCATING, CALLING_C, LINKING_IN, SPLICE_POINT
from gccost.measuring.cases import (
    ALLOCATE_ONLY,
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    DEFER,
    FREE,
    RECORD,
    Case,
    Ratio,
    Variant,
    among_goroutines,
    controls,
    profiled,
)
from gccost.measuring.toolchains import ISSUE_GO, TODAY_GO
from gccost.showing.figures import ORANGE
from gccost.showing.plots import PERCENT, Drawing, Mark, Point, chart, dots
from gccost.stats import Estimate
from gccost.studies.common import (
    NAMES,
    Part,
    Timing,
    colour,
    costs,
    gc_off_title,
    on_and_off,
    on_each,
    shared_work,
    shares_by_release,
    timings,
)

# === Cases ===========================================================================


def _addcleanup() -> Iterator[Case]:
    for go in (ISSUE_GO, TODAY_GO):
        off = replace(CLEANUP, gogc="off")
        for variant in (FREE, DEFER, CLEANUP, AUTO, off, profiled("AllocateCleanup", gogc="off")):
            retained = RECORD if variant.gogc == "off" else 0
            yield Case("cstr", variant, go, AS_PUBLISHED, retained_bytes=retained)
        for variant in (FREE, DEFER, AUTO):
            off, retained = replace(variant, gogc="off"), 0 if variant.stationary else RECORD
            yield Case("cstr", off, go, AS_PUBLISHED, "standard", retained_bytes=retained)
        yield Case("parallel", ALLOCATE_ONLY, go, AS_PUBLISHED, retained_bytes=RECORD)
    for benchmark in ("Free", "Auto", "Cleanup"):
        yield from among_goroutines("parallel", benchmark)
    yield from controls()


# === Claims ==========================================================================


_OFF = replace(CLEANUP, gogc="off")
_PROFILED = profiled("AllocateCleanup", gogc="off")
_LOOP = ("gccost/cstr.AllocateCleanup",)


def _claims() -> tuple[Claim, ...]:
    claim, times = partial(Claim, releases=(ISSUE_GO, TODAY_GO)), "five-times-as-expensive"
    return (
        claim("M1", times, Ratio(CLEANUP, FREE), Effect(), headline=True),
        claim("M2", times, Ratio(AUTO, CLEANUP), Effect(), headline=True),
        claim("M3", times, Ratio(DEFER, FREE), Same()),
        claim("M4", times, Ratio(CLEANUP, FREE), Effect()),
        claim("M5", "the-profile", Share(_PROFILED, SPLICE_POINT, of=_LOOP), AtLeast()),
        claim("M6", "with-the-gc-off", Ratio(_OFF, CLEANUP), Same()),
    )


# === Charts ==========================================================================


_MARKERS = {"MacBook Pro M1": "D", "Linux VM": "s"}


def _published() -> dict[str, list[Mark]]:
    """The published timings in ns, by benchmark."""
    marks: dict[str, list[Mark]] = {}
    for found in published.table("addcleanup-timings").to_dict("records"):
        mark = Mark(float(found["ns_per_op"]), _MARKERS[found["machine"]])
        marks.setdefault(found["variant"], []).append(mark)
    return marks


@chart("addcleanup-cost", "The cost of AddCleanup and of a manual free was not measured")
def cost(recording: Recording) -> Drawing | None:
    """The cost per operation of each way to free, a panel per release."""
    return dots(
        timings(recording, costs((FREE, DEFER, CLEANUP, AUTO), FREE, _published())),
        "Cost of AddCleanup relative to a manual free: " + on_each(recording, Ratio(CLEANUP, FREE)),
        "wall-clock time per operation (ns); in brackets: relative to a manual free\n"
        "published: hollow diamonds on a MacBook Pro M1, hollow squares on a Linux server",
        kind="A dot plot of the wall-clock time per operation",
    )


# --- Why the ratio changed ---------------------------------------------------------


def _against_the_document(
    recording: Recording, variant: Variant, go: str
) -> tuple[list[float], Estimate]:
    """A variant's cost relative to its cost on the document's release, by sample and estimated."""
    here, there = recording.cost(variant, go), recording.cost(variant, ISSUE_GO)
    estimate = stats.combine(lambda new, old: new / old, (here, there))
    return [float(v) for v in recording.values(variant, go) / math.exp(there.log)], estimate


def moved(recording: Recording) -> tuple[float, float]:
    """Today's cost over the cost on the issue's release: of AddCleanup, and of a manual free."""
    automatic, manual = (
        _against_the_document(recording, variant, TODAY_GO)[1].value for variant in (CLEANUP, FREE)
    )
    return automatic, manual


@chart("addcleanup-why", f"The change in costs since Go {ISSUE_GO} was not measured")
def why(recording: Recording) -> Drawing | None:
    """The change of both sides of the ratio from release to release."""
    points = []
    for variant in (CLEANUP, FREE):
        for go in recording.releases:
            values, estimate = _against_the_document(recording, variant, go)
            level = rounding.nanoseconds(recording.level(variant, go).value)
            if estimate.samples:
                points.append(
                    Point(
                        NAMES[variant.benchmark],
                        f"Go {go}",
                        estimate,
                        raw=values,
                        label=f"{rounding.times(estimate.value)}  ({level})",
                        colour=colour(variant),
                        data={"variant": variant.benchmark, "go": go}
                        | {"unit": "ratio", "against": ISSUE_GO},
                    )
                )
    return dots(
        points,
        _why_title(recording),
        f"wall-clock time per operation relative to Go {ISSUE_GO}",
        kind=f"A dot plot of times relative to Go {ISSUE_GO}",
        reference=1,
    )


def _why_title(recording: Recording) -> str:
    automatic, manual = moved(recording)
    if math.isnan(automatic) or math.isnan(manual):
        return f"The change in costs from Go {ISSUE_GO} to Go {TODAY_GO} was not measured"
    then, now = (
        rounding.times(recording.estimate(Ratio(CLEANUP, FREE), go).value)
        for go in (ISSUE_GO, TODAY_GO)
    )
    sides = [("a manual free", manual), ("AddCleanup", automatic)]
    more, less = sorted(sides, key=lambda side: -abs(math.log(side[1])))
    return (
        f"From Go {ISSUE_GO} to {TODAY_GO} the ratio went from {then} to {now}: {more[0]} "
        f"takes {rounding.times(more[1])} its former time, {less[0]} {rounding.times(less[1])}"
    )


# --- The GC off --------------------------------------------------------------------


@chart("addcleanup-gc-off", "AddCleanup was not measured")
def gc_off(recording: Recording) -> Drawing | None:
    """AddCleanup with the GC on and off, and a variant that only allocates."""
    lines = [
        *on_and_off(CLEANUP, _OFF, {}),
        Timing(NAMES[ALLOCATE_ONLY.benchmark], ALLOCATE_ONLY, colour=colour(ALLOCATE_ONLY)),
    ]
    return dots(
        timings(recording, lines),
        gc_off_title(recording, "AddCleanup", CLEANUP, _OFF),
        "wall-clock time per operation (ns); settled: including the final collections",
        kind="A dot plot of the wall-clock time per operation",
    )


# --- The profile -------------------------------------------------------------------

_WALK = "of it, the walk of the list"
_SHARES = {
    "linking in (addspecial)": Part(LINKING_IN, of=_LOOP),
    _WALK: Part(SPLICE_POINT, of=_LOOP, colour=ORANGE),
    "calling C (cgocall)": Part(CALLING_C, of=_LOOP),
    "allocating (mallocgc)": Part(ALLOCATING, of=_LOOP),
}
_BAR = 50.0  # the claim's bar: our reading of "the root cause"


@chart("addcleanup-profile", "The AddCleanup version was not profiled")
def profile(recording: Recording) -> Drawing | None:
    """Shares of the loop's own CPU time with the GC off."""
    points = shares_by_release(recording, _PROFILED, _SHARES)
    return dots(
        points,
        "Share of the AddCleanup loop's own time spent walking the span's list: "
        + ", ".join(f"{p.label} on Go {p.data['go']}" for p in points if p.line == _WALK),
        "share of the loop's own CPU time with the GC off (%); shares overlap\n"
        f"line: {rounding.plain(_BAR, 2)} %, our threshold for the root cause",
        kind="A dot plot of overlapping shares of the CPU profile",
        limits=PERCENT,
        reference=_BAR,
    )


# --- From many goroutines ------------------------------------------------------------

parallel = shared_work("addcleanup-parallel", ("Free", "Cleanup", "Auto"))


# === The study =======================================================================

STUDY = Study(
    name="addcleanup",
    chapter="03-addcleanup",
    question="Does AddCleanup cost five times a manual free, and half a finalizer?",
    cases=tuple(_addcleanup()),
    document=ISSUE_GO,
    claims=_claims(),
    charts=(cost, why, gc_off, profile, parallel),
)
