"""Siebenmann: a finalizer's profile, and its cost over the object's size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from gccost import rounding
from gccost.judging import published
from gccost.judging.claims import Claim, Study
from gccost.judging.curves import WORD
from gccost.judging.flame import Frame, frames
from gccost.judging.models import Line, line, objects_in_span
from gccost.judging.quantities import Amount, CurveDepth, Difference, Share
from gccost.judging.recording import Floats, Recording
from gccost.judging.rules import About, AtLeast, Effect, UShaped, WithinTolerance
from gccost.judging.stacks import (
    ALLOCATING,
    CALLING_C,
    COLLECTING,
    FINALIZING,
    LINKING_IN,
    LOCKING,
    SETTING,
)
from gccost.measuring.cases import (
    AS_PUBLISHED,
    AUTO,
    FREE,
    HEAP_FREE,
    RECORD,
    Case,
    Ratio,
    Variant,
    controls,
    profiled,
)
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO
from gccost.showing import plots
from gccost.showing.figures import BLUE, FILLS, GREEN, ORANGE, PURPLE
from gccost.showing.plots import PERCENT, Axis, Drawing, Mark, Point, chart, curves, dots
from gccost.stats import Estimate
from gccost.studies.common import (
    NAMES,
    Part,
    Timing,
    colour,
    costs,
    counted,
    heap_share,
    levels,
    release,
    shares_by_release,
    timings,
)

# === Cases ===========================================================================


# The sizes of the published curve, in pointer words.
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# Enough objects for the GC to run at every size, in samples of about a tenth of a second.
_THOUSANDS = (800, 800, 600, 600, 400, 400, 300, 200, 100, 80)
_CURVE = dict(zip(SIZES, _THOUSANDS, strict=True))
# Sizes that the quick budget omits.
_BETWEEN = (2, 8, 64, 256)
# Profiles a finalizer for about a second.
_PROFILED_LONG = 1_600_000
# Each operation collects the whole heap a few times.
_LIFETIMES = 10
_EMPTY = profiled("EmptyFinalizer")


def sized(benchmark: str, words: int, gogc: str = "100") -> Variant:
    """A variant of the object-size curve: "Allocate", "Finalize" or "Cleanup"."""
    return Variant(benchmark, gogc, sub=(("words", str(words)),))


def until_free(what: str) -> Variant:
    """The variant that counts GC cycles until a dropped object's memory is gone."""
    return Variant(f"UntilFree{what}", setting="precise")


def of_size(variant: Variant, go: str, min_budget: str = "tiny") -> Case:
    """The case of a variant of `sized`."""
    words = int(dict(variant.sub)["words"])
    case = Case("objects", variant, go, _CURVE[words] * 1000, min_budget)
    if variant.gogc != "off":
        return case
    # With the GC off every object stays allocated, so memory limits N.
    return replace(case, n=min(case.n, 300_000), retained_bytes=10 * words + RECORD)


def _siebenmann() -> Iterator[Case]:
    for go in (DOCUMENT_GO, TODAY_GO):
        for variant in (FREE, HEAP_FREE, AUTO):
            yield Case("cstr", variant, go, AS_PUBLISHED)
        yield Case("objects", _EMPTY, go, _PROFILED_LONG)
        more = ("Cleanup",) if go == TODAY_GO else ()
        for what in ("Plain", "Finalizer", *more):
            yield Case("objects", until_free(what), go, _LIFETIMES)
        mechanisms = ("Allocate", "Finalize", *more)
        for words in SIZES:
            for mechanism in mechanisms:
                later = words in _BETWEEN or mechanism == "Cleanup"
                yield of_size(sized(mechanism, words), go, "standard" if later else "tiny")
                yield of_size(sized(mechanism, words, gogc="off"), go, "standard")
    yield from controls()


# === Claims ==========================================================================


_ALLOCATIONS = Difference(Ratio(AUTO, FREE, "allocs/op"))
_CYCLES_TO_FREE = Amount(until_free("Finalizer"), "gc-cycles-to-free")
_CURVE_DEPTH = CurveDepth(tuple(Ratio(sized("Finalize", w), sized("Allocate", w)) for w in SIZES))
CLAIMS: tuple[Claim, ...] = (
    Claim("S1", "the-factor-of-ten", Ratio(AUTO, FREE), Effect(), headline=True),
    Claim("S2", "heap-or-stack", _ALLOCATIONS, WithinTolerance()),
    Claim("S3", "where-the-time-goes", Share(_EMPTY, SETTING), AtLeast()),
    Claim("S4", "where-the-time-goes", Share(_EMPTY, COLLECTING), About()),
    Claim("S5", "where-the-time-goes", Share(_EMPTY, FINALIZING), About()),
    Claim("S6", "where-the-time-goes", Share(_EMPTY, LOCKING), About()),
    Claim("S7", "two-cycles-or-one", _CYCLES_TO_FREE, WithinTolerance()),
    Claim("S8", "how-the-size-matters", _CURVE_DEPTH, UShaped()),
)


# === Estimates =======================================================================


def published_sizes() -> dict[str, dict[int, float]]:
    """The published times (ns) by benchmark, then by the object's size (bytes)."""
    found: dict[str, dict[int, float]] = {}
    for row in published.table("siebenmann-sizes").to_dict("records"):
        found.setdefault(row["variant"], {})[WORD * row["words"]] = float(row["ns_per_op"])
    return found


def published_finalizer_adds(up_to: float) -> dict[int, float]:
    """The published cost (ns) that a finalizer adds to an allocation, by object size (bytes)."""
    times = published_sizes()
    found = {size: ns - times["Allocate"][size] for size, ns in times["Finalize"].items()}
    return {size: ns for size, ns in found.items() if size <= up_to}


def finalizer_adds(recording: Recording, go: str, up_to: float = math.inf) -> dict[int, Estimate]:
    """The cost (ns) that a finalizer adds to an allocation, by object size (bytes)."""
    found = {
        WORD * words: recording.added(Ratio(sized("Finalize", words), sized("Allocate", words)), go)
        for words in SIZES
        if WORD * words <= up_to
    }
    return {size: estimate for size, estimate in found.items() if estimate.samples}


def finalizer_adds_by_sample(recording: Recording, size: int, go: str) -> Floats:
    """The cost (ns) that a finalizer adds to an allocation of `size` bytes, per sample."""
    finalize, allocate = (sized(what, size // WORD) for what in ("Finalize", "Allocate"))
    return recording.values(finalize, go) - recording.level(allocate, go).value


def over_objects_in_span(by_size: Mapping[int, float], go: str) -> tuple[list[float], Line]:
    """The number of objects per span for each size, and the line fitted over it."""
    counts = [float(objects_in_span(size, go)) for size in by_size]
    return counts, line(counts, list(by_size.values()))


# === Charts ==========================================================================


# --- The cost of each way to free ---------------------------------------------------

_HEAP_UNKNOWN = "The cost of a heap-allocated handle was not measured"


@chart("siebenmann-heap", _HEAP_UNKNOWN)
def heap(recording: Recording) -> Drawing | None:
    """The part of a finalizer's cost that comes from a heap-allocated handle."""
    parts = [
        f"{rounding.interval(share, 'share')} on Go {go}"
        for go in recording.releases
        if (share := heap_share(recording, go)).samples
    ]
    title = "A heap-allocated handle explains this share of a finalizer's added cost: "
    return dots(
        timings(recording, costs((FREE, HEAP_FREE, AUTO), FREE, {})),
        title + " and ".join(parts) if parts else _HEAP_UNKNOWN,
        "wall-clock time per operation (ns); in brackets: relative to a manual free",
        kind="A dot plot of the wall-clock time per operation",
    )


# --- The profile -------------------------------------------------------------------

# Each share: its functions, the functions that must call them, and the matching rows of
# the document's profile.
_PROFILE: dict[str, tuple[tuple[str, ...], tuple[str, ...], list[str]]] = {
    "SetFinalizer": (SETTING, (), ["SetFinalizer"]),
    "of it, linking in": (LINKING_IN, (), []),
    "collecting": (COLLECTING, (), ["GC"]),
    "of it, by allocating": (COLLECTING, ALLOCATING, ["GC triggered by allocation"]),
    "of it, finalizers": (FINALIZING, (), ["processing and running finalizers"]),
    "lock2 and unlock2": (LOCKING, (), ["runtime.lock2", "runtime.unlock2"]),
}


@chart("siebenmann-profile", "The empty finalizer was not profiled")
def profile(recording: Recording) -> Drawing | None:
    """Shares of the CPU time of an empty finalizer."""
    printed = published.table("siebenmann-profile").set_index("share")["percent"].astype(float)
    parts = {
        name: Part(functions, within, published=printed[rows].sum() if rows else None)
        for name, (functions, within, rows) in _PROFILE.items()
    }
    points = shares_by_release(recording, _EMPTY, parts)
    found = {(p.line, p.data["go"]): p.label for p in points}
    return dots(
        points,
        "CPU time of an empty finalizer: "
        + "; ".join(
            f"{label} in SetFinalizer and {found['collecting', go]} in collecting on Go {go}"
            for (line, go), label in found.items()
            if line == "SetFinalizer"
        ),
        "share of the CPU profile's stacks that contain it (%); shares overlap\n"
        "hollow diamonds: as published, on an unnamed machine",
        kind="A dot plot of overlapping shares of the CPU profile",
        limits=PERCENT,
    )


# --- The flame graph ---------------------------------------------------------------

_DEPTH = 14  # the deepest frame drawn
_LEAST = 0.007  # the smallest share of the time drawn
_REST = "the rest"
_COLOURS = dict(zip(("SetFinalizer", "collecting", "calling C"), FILLS, strict=True))
_COLOURS[_REST] = "#b6bdc5"
_KINDS = {
    **dict.fromkeys(CALLING_C, "calling C"),
    **dict.fromkeys(COLLECTING, "collecting"),
    **dict.fromkeys(SETTING, "SetFinalizer"),
}
_BLACK, _WHITE = "#000000", "#ffffff"  # text on frames, independent of the page's theme


def kind(frame: Frame) -> str:
    """The kind of work in a frame, by the innermost function that has one."""
    return next((_KINDS[name] for name in reversed(frame.path) if name in _KINDS), _REST)


@chart("siebenmann-flame", "The empty finalizer was not profiled")
def flame(recording: Recording) -> Drawing | None:
    """The stacks of the empty finalizer's profiles, the outermost function at the top."""
    go = recording.newest
    drawn = frames(recording.profiles(_EMPTY, go).values(), _DEPTH, _LEAST)
    if not drawn:
        return None
    setting, collecting = (
        rounding.percent(recording.estimate(Share(_EMPTY, functions), go).value)
        for functions in (SETTING, COLLECTING)
    )
    title = (
        f"An empty finalizer on Go {go} spends {setting} of its CPU time in SetFinalizer and "
        f"{collecting} in collecting"
    )
    depth = max(len(frame.path) for frame in drawn)
    figure, (axes,) = plots.canvas([0.62 * depth + 0.6])
    for frame in drawn:
        _box(axes, frame)
    axes.set(xlim=(0, 100), ylim=(depth + 0.05, -1.0), yticks=[])
    axes.grid(visible=False)
    left = 0.0
    for name in dict.fromkeys(map(kind, drawn)):
        axes.add_patch(Rectangle((left, -0.75), 2, 0.5, color=_COLOURS[name], linewidth=0))
        axes.text(left + 2.7, -0.5, name, va="center", fontsize=9)
        left += 5 + 1.4 * len(name)
    plots.below(
        figure,
        "share of the CPU time (%); each function is below its caller;\n"
        f"frames under {rounding.plain(100 * _LEAST, 1)} % or deeper than {_DEPTH} are omitted",
    )
    plots.headline(figure, title)
    data = pd.DataFrame(
        [
            {
                "depth": len(frame.path),
                "function": frame.path[-1],
                "called_by": frame.path[-2] if len(frame.path) > 1 else "",
                "left_percent": 100 * frame.left,
                "percent": 100 * frame.width,
                "kind": kind(frame),
                "go": go,
            }
            for frame in drawn
        ]
    )
    widest = sorted(drawn, key=lambda frame: (-frame.width, len(frame.path), frame.path))[:12]
    alt = f"A flame graph of {len(drawn)} frames; the widest: " + ", ".join(
        f"{_short(frame)} {rounding.percent(frame.width)}" for frame in widest
    )
    return Drawing(figure, title, alt + ".", data)


def _short(frame: Frame) -> str:
    return frame.path[-1].removeprefix("runtime.")


def _box(axes: Axes, frame: Frame) -> None:
    left, width = rounding.rounded(100 * frame.left), rounding.rounded(100 * frame.width)
    top, ink, name = len(frame.path) - 1, _COLOURS[kind(frame)], _short(frame)
    box = Rectangle((left, top), width, 0.94, facecolor=ink, edgecolor=_WHITE, linewidth=0.4)
    axes.add_patch(box)
    letters = int(0.98 * width) - 1  # that fit at this font size and figure width
    if letters >= 4:
        axes.text(
            left + 0.5,
            top + 0.48,
            name if len(name) <= letters else name[: letters - 1] + "…",
            va="center",
            fontsize=7.5,
            color=_WHITE if ink == FILLS[0] else _BLACK,
        )


# --- Cycles until the memory is freed --------------------------------------------------

_CYCLES = {"Plain": [Mark(1)], "Cleanup": [], "Finalizer": [Mark(2)]}  # as published


@chart("siebenmann-cycles", "The collections needed to free an object were not measured")
def cycles(recording: Recording) -> Drawing | None:
    """The number of garbage collections until a dropped object's memory is freed."""
    lines = [
        Timing(
            NAMES[variant.benchmark],
            variant,
            "gc-cycles-to-free",
            colour=colour(variant),
            published=marks,
            find=counted,
            data={"unit": "cycles"},
        )
        for what, marks in _CYCLES.items()
        for variant in [until_free(what)]
    ]
    points = timings(recording, lines, rounding.whole)

    def whole_ticks(axes: Axes, _: str) -> None:
        axes.set_xticks(range(int(axes.get_xlim()[1]) + 1))

    return dots(
        points,
        "Garbage collections until a dropped object's memory is freed: "
        + "; ".join(
            ", ".join(f"{p.line} {p.label}" for p in found) + f" on Go {found[0].data['go']}"
            for found in plots.by_panel(points).values()
        ),
        "garbage collections (GC cycles)\nhollow diamonds: as published",
        kind="A dot plot of GC cycles",
        decorate=whole_ticks,
    )


# --- The object's size ------------------------------------------------------------------

_GC_OFF = ", GC off"


@chart("siebenmann-sizes", "No object size was measured")
def sizes(recording: Recording) -> Drawing | None:
    """The time per operation over the object's size, with and without a finalizer."""
    points: list[Point] = []
    for go, gogc in product(recording.releases, ("100", "off")):
        for benchmark in ("Allocate", "Finalize", "Cleanup"):
            points += levels(
                recording,
                release(recording, go),
                NAMES[benchmark] + (_GC_OFF if gogc == "off" else ""),
                go,
                [(WORD * words, sized(benchmark, words, gogc)) for words in SIZES],
                "ns/op",
                data={"bytes": None, "unit": "ns/op"},
                colour=colour(Variant(benchmark)),
                dashed=gogc == "off",
            )
    printed = published_sizes().values()

    def join_published(axes: Axes, _: str) -> None:
        for times in printed:
            axes.plot(list(times), list(times.values()), color=PURPLE, linewidth=0.8, zorder=1)

    return curves(
        points,
        _sizes_title(recording),
        Axis(
            "object size (bytes, log); thin dashed: with the GC off\n"
            "hollow purple diamonds: as published, with a finalizer above, without below",
            "log2",
        ),
        Axis("ns per operation (log)", "log"),
        kind="A line chart of the time per operation over the object's size",
        height=12,
        gap=0.06,
        published=[(size, ns, "D") for times in printed for size, ns in times.items()],
        decorate=join_published,
    )


def _sizes_title(recording: Recording) -> str:
    told = []
    for go in recording.releases:
        added = finalizer_adds(recording, go)
        if len(added) > 1:
            least = min(added, key=lambda size: added[size].value)
            shown = sorted({min(added), least, max(added)})
            told.append(
                ", ".join(
                    f"{rounding.nanoseconds(added[size].value)} at {size:,}" for size in shown
                )
                + f" bytes on Go {go}"
            )
    if not told:
        return "The cost of a finalizer over the object's size was not measured"
    return "A finalizer adds " + "; ".join(told)


# --- A line over the objects of a span -------------------------------------------------

_FITTED_UP_TO = 256  # bytes; above, the time to fill the object dominates


@chart("siebenmann-fit", "The cost of a finalizer was measured at too few sizes to fit a line")
def fit(recording: Recording) -> Drawing | None:
    """The cost that a finalizer adds over the objects per span, with fitted lines."""
    printed = published_finalizer_adds(_FITTED_UP_TO)
    counts, theirs = over_objects_in_span(printed, recording.study.document)
    fitted = {}
    points = []
    for go, ink in zip(recording.releases, (BLUE, ORANGE, GREEN), strict=False):
        added = finalizer_adds(recording, go, _FITTED_UP_TO)
        xs, ours = over_objects_in_span({s: e.value for s, e in added.items()}, go)
        if math.isnan(ours.slope):
            continue
        fitted[go] = ours, ink
        for x, (size, estimate) in zip(xs, added.items(), strict=True):
            named = {"variant": "Finalize - Allocate", "go": go, "objects_in_span": x}
            points.append(
                Point(
                    "",
                    f"Go {go}\n{_formula(ours)}",
                    estimate,
                    x,
                    finalizer_adds_by_sample(recording, size, go),
                    rounding.nanoseconds(estimate.value),
                    ink,
                    data={**named, "bytes": size, "unit": "ns", **vars(ours)},
                )
            )
    if not points:
        return None
    name = f"published\n{_formula(theirs)}"
    for x, ns in zip(counts, printed.values(), strict=True):
        label, marks = rounding.nanoseconds(ns), [Mark(ns)]
        points.append(Point("", name, plots.NO_ESTIMATE, x, (), label, PURPLE, marks))

    def lines(axes: Axes, _: str) -> None:
        for found, ink in [*fitted.values(), (theirs, PURPLE)]:
            axes.axline((0, found.at(0)), slope=found.slope, color=ink, linewidth=1.2)

    return curves(
        points,
        "Cost that a finalizer adds per additional object in the span: "
        + ", ".join(f"{rounding.nanoseconds(f.slope)} on Go {go}" for go, (f, _) in fitted.items())
        + f" (published: {rounding.nanoseconds(theirs.slope)})",
        Axis(
            f"objects in a span, for sizes of {_FITTED_UP_TO} bytes (left) down to 8 (right)\n"
            "hollow purple diamonds: as published, with a fitted line",
            limits=(0, None),
        ),
        Axis("added by a finalizer (ns)", limits=(0, None)),
        kind="A scatter chart with fitted lines",
        height=13,
        gap=0.17,
        joined=False,
        decorate=lines,
    )


def _formula(found: Line) -> str:
    sign = "+" if found.slope >= 0 else "−"
    intercept, slope = rounding.plain(found.intercept), rounding.plain(abs(found.slope))
    return f"{intercept} {sign} {slope} ns each\nr² {rounding.plain(found.r2)}"


# === The study =======================================================================

STUDY = Study(
    name="siebenmann",
    chapter="02-siebenmann",
    question="Where does a finalizer's time go?",
    cases=tuple(_siebenmann()),
    claims=CLAIMS,
    charts=(heap, profile, flame, cycles, sizes, fit),
)
