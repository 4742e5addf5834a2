"""Lemire: a finalizer compared with a manual free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from gccost import rounding
from gccost.judging import published
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Share
from gccost.judging.recording import Recording
from gccost.judging.rules import Between, Effect, Same
from gccost.judging.stacks import CALLING_C
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    CLEANUP,
    DEFER,
    FREE,
    HEAP_FREE,
    LEAKS_BY_DESIGN,
    RECORD,
    Case,
    Ratio,
    Variant,
    controls,
    profiled,
)
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO
from gccost.showing.plots import NO_ESTIMATE, PERCENT, Drawing, Mark, Point, chart, dots
from gccost.studies.common import (
    NAMES,
    Part,
    costs,
    gc_off_title,
    on_and_off,
    on_each,
    shares_by_release,
    timings,
)

# === Cases ===========================================================================


# Yields about two hundred stacks at 250 a second (gosrc/meter).
_PROFILED = 800_000
_DUMMY = Variant("AllocateDummy")
_OFF = replace(AUTO, gogc="off")
_PROFILE = profiled("AllocateAuto")


def _lemire() -> Iterator[Case]:
    def case(variant: Variant, go: str, n: int = AS_PUBLISHED) -> Case:
        # These free nothing in the loop, so memory limits their N.
        frees_nothing = variant.benchmark in LEAKS_BY_DESIGN or variant.gogc == "off"
        retained = RECORD if frees_nothing and not variant.stationary else 0
        return Case("cstr", variant, go, n, retained_bytes=retained)

    for go in (DOCUMENT_GO, TODAY_GO):
        for variant in (FREE, DEFER, HEAP_FREE, AUTO, _DUMMY):
            yield case(variant, go)
        for variant in (FREE, AUTO):
            yield case(replace(variant, gogc="off"), go)
        yield case(_PROFILE, go, n=_PROFILED)
    yield case(CLEANUP, TODAY_GO)
    yield from controls()


# === Claims ==========================================================================


CLAIMS: tuple[Claim, ...] = (
    Claim("L1", "ten-times-as-expensive", Ratio(AUTO, FREE), Effect(), headline=True),
    Claim("L2a", "with-the-gc-off", Ratio(_OFF, AUTO), Same()),
    Claim("L2b", "with-the-gc-off", Ratio(_OFF, replace(FREE, gogc="off")), Effect()),
    Claim("L3", "the-profile", Share(_PROFILE, CALLING_C), Between(low=0.5)),
    Claim("L4", "a-finalizer-that-does-nothing", Ratio(_DUMMY, AUTO), Same()),
)


# === Charts ==========================================================================


def _published() -> pd.DataFrame:
    """The document's timings: variant, gogc and ns_per_op."""
    table = published.table("lemire-timings").query("language == 'Go'")
    table = table.sort_values(["gogc", "variant"], ascending=[True, False])
    return table.astype({"ns_per_op": float})[["variant", "gogc", "ns_per_op"]]


def _marks(figures: pd.Series) -> dict[str, list[Mark]]:
    return {str(name): [Mark(ns)] for name, ns in figures.items()}


@chart("lemire-published", "The document's timings are missing")
def published_timings(recording: Recording) -> Drawing | None:
    """The document's own four timings; the recording is not used."""
    del recording
    table = _published()
    times = table.pivot_table(index="gogc", columns="variant", values="ns_per_op")
    ratios = times["AllocateAuto"] / times["AllocateFree"]
    points = [
        Point(
            "",
            f"{NAMES[variant]}, GC {'off' if gogc == 'off' else 'on'}",
            NO_ESTIMATE,
            label=rounding.nanoseconds(ns)
            + (f"  ({rounding.times(ratios[gogc])})" if variant == "AllocateAuto" else ""),
            published=[Mark(ns)],
        )
        for variant, gogc, ns in table.itertuples(index=False)
    ]
    found = dots(
        points,
        f"Published: a finalizer costs {rounding.times(ratios['100'])} a manual free, "
        f"and {rounding.times(ratios['off'])} with the GC off",
        "wall-clock time per operation (ns), as published",
        kind="A dot plot of the four published timings",
    )
    return found and replace(found, data=table)


@chart("lemire-cost", "The cost of a finalizer and of a manual free was not measured")
def cost(recording: Recording) -> Drawing | None:
    """The cost per operation of each way to free, a panel per release."""
    figures = _published().query("gogc == '100'").set_index("variant")["ns_per_op"]
    variants = (FREE, DEFER, HEAP_FREE, CLEANUP, AUTO, _DUMMY)
    return dots(
        timings(recording, costs(variants, FREE, _marks(figures))),
        "Cost of a finalizer relative to a manual free: " + on_each(recording, Ratio(AUTO, FREE)),
        "wall-clock time per operation (ns); in brackets: relative to a manual free\n"
        "hollow diamonds: as published",
        kind="A dot plot of the wall-clock time per operation",
    )


@chart("lemire-gc-off", "The finalizer was not measured")
def gc_off(recording: Recording) -> Drawing | None:
    """The finalizer with the GC on and off: in the loop alone, and settled."""
    figures = _published().query("variant == 'AllocateAuto'").set_index("gogc")["ns_per_op"]
    return dots(
        timings(recording, on_and_off(AUTO, _OFF, _marks(figures))),
        gc_off_title(recording, "The finalizer", AUTO, _OFF),
        "wall-clock time per operation (ns); settled: including the final collections\n"
        "hollow diamonds: as published",
        kind="A dot plot of the wall-clock time per operation",
    )


# Each share counts the stacks that contain any of its functions, so shares overlap.
# Function names changed between releases; all of them are listed.
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


@chart("lemire-profile", "The finalizer version was not profiled")
def profile(recording: Recording) -> Drawing | None:
    """Shares of the finalizer version's CPU time, with the document's profile."""
    printed = published.table("lemire-profile").set_index("function")["cum_percent"].astype(float)
    parts = {
        name: Part(functions, published=printed.get(_PUBLISHED_AS.get(name, "")))
        for name, functions in LEMIRE_SHARES.items()
    }
    points = shares_by_release(recording, _PROFILE, parts)
    found = {(p.line, p.data["go"]): p.label for p in points}
    return dots(
        points,
        "CPU time of the finalizer version: "
        + "; ".join(
            f"{label} in C calls and {found['SetFinalizer', go]} in SetFinalizer on Go {go}"
            for (line, go), label in found.items()
            if line == "calling C (cgocall)"
        ),
        "share of the CPU profile's stacks that contain it (%)\nhollow diamonds: as published, "
        "on macOS (pthread_cond_signal instead of futex)",
        kind="A dot plot of overlapping shares of the CPU profile",
        limits=PERCENT,
    )


# === The study =======================================================================

STUDY = Study(
    name="lemire",
    chapter="01-lemire",
    question="Is a finalizer ten times as expensive as a manual free?",
    cases=tuple(_lemire()),
    claims=CLAIMS,
    charts=(published_timings, cost, gc_off, profile),
)
