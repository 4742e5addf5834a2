"""Names, colours and helpers that the charts of several studies share."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes

from gccost import rounding
from gccost.judging.ledger import Row, by_document
from gccost.judging.quantities import Share
from gccost.judging.recording import Recording
from gccost.judging.rules import Label
from gccost.measuring import toolchains
from gccost.measuring.cases import AUTO, FREE, GOROUTINES, HEAP_FREE, Ratio, Variant, shared
from gccost.measuring.names import NAMES as NAMES
from gccost.measuring.toolchains import DOCUMENT_JDK, TODAY_GO
from gccost.showing.figures import BLUE, GREEN, INK, MUTED, ORANGE, Chart
from gccost.showing.plots import (
    CLOSE,
    Axis,
    Drawing,
    Mark,
    NamedChart,
    Point,
    chart,
    curves,
    dots,
    places,
)
from gccost.showing.results import counts
from gccost.stats import Estimate, Floats

VERDICT_COLOURS = {
    Label.HOLDS: BLUE,
    Label.FAILS: ORANGE,
    Label.UNDECIDED: MUTED,
}
# Blue: no garbage collection needed; orange: a finalizer frees; green: a cleanup frees.
COLOURS = {
    "AllocateFree": BLUE,
    "AllocateDefer": BLUE,
    "AllocateHeapFree": BLUE,
    "AllocateOnly": BLUE,
    "Allocate": BLUE,
    "UntilFreePlain": BLUE,
    "ParallelFree": BLUE,
    "Cleanup": GREEN,
    "UntilFreeCleanup": GREEN,
    "ParallelCleanup": GREEN,
    "ParallelSlab": INK,
    "ParallelSlabCrowded": MUTED,
}


def colour(variant: Variant) -> str:
    """The colour of a variant's points."""
    return COLOURS.get(variant.benchmark, ORANGE)


def release(recording: Recording, on: str) -> str:
    """The heading of a release's panel."""
    document = recording.study.document
    whose = {document: "the document's toolchain", toolchains.today(document): "today's"}
    whose |= {DOCUMENT_JDK: "in place of the document's 9"}
    return toolchains.title(on) + (f", {whose[on]}" if on in whose else "")


def scaled(e: Estimate, factor: float) -> Estimate:
    """An estimate in another unit."""
    return replace(e, value=factor * e.value, low=factor * e.low, high=factor * e.high)


def in_percent(e: Estimate) -> Estimate:
    """A share (0 to 1) in percent."""
    return scaled(e, 100)


def change(recording: Recording, ratio: Ratio, go: str) -> str:
    """A ratio as a change, such as "−18.2 %", or words where there is no significant one."""
    if not recording.estimate(ratio, go).samples:
        return "not measured"
    if not recording.differs(ratio, go):
        return "no significant difference"
    change = recording.estimate(ratio, go).value - 1
    return ("+" if change > 0 else "") + rounding.percent(change)


def on_each(recording: Recording, ratio: Ratio) -> str:
    """A ratio on each release, such as "8.7× on Go 1.20.14, 12.1× on Go 1.27.4"."""
    found = ((go, recording.estimate(ratio, go)) for go in recording.releases)
    return ", ".join(f"{rounding.times(e.value)} on Go {go}" for go, e in found if e.samples)


def heap_share(recording: Recording, go: str) -> Estimate:
    """The share (0 to 1) of a finalizer's added cost that a heap-allocated handle explains."""
    times = [(variant, "ns/op") for variant in (HEAP_FREE, AUTO, FREE)]
    return recording.combine(
        lambda heap, auto, free: (heap - free) / (auto - free), times, go, signed=True
    )


def measured(points: Iterable[Point]) -> list[Point]:
    """The points that have samples."""
    return [point for point in points if point.estimate.samples]


def compared(
    recording: Recording,
    ratio: Ratio,
    go: str,
    line: str,
    colour: str,
    panel: str = "",
    **data: object,
) -> Point:
    """A point for a ratio on a release, with its samples; `data` overrides its CSV columns."""
    estimate = recording.estimate(ratio, go)
    return Point(
        panel,
        line,
        estimate,
        raw=recording.points(ratio, go),
        label=rounding.times(estimate.value),
        colour=colour,
        data={"variant": line, "go": go, "unit": "ratio"} | data,
    )


# --- Lines over x ------------------------------------------------------------------

# A metric's values, one per sample, and its estimate.
Found = tuple[Sequence[float] | Floats, Estimate]


def timed(recording: Recording, variant: Variant, go: str, metric: str) -> Found:
    """The values and level of a time, or of another metric that is never 0."""
    return recording.values(variant, go, metric), recording.level(variant, go, metric)


def counted(recording: Recording, variant: Variant, go: str, metric: str) -> Found:
    """The values and amount of a metric that may be 0."""
    return recording.values(variant, go, metric), recording.amount(variant, go, metric)


def levels(
    recording: Recording,
    panel: str,
    line: str,
    go: str,
    variants: Variant | Iterable[tuple[float, Variant]],
    metric: str,
    say: Callable[[float], str] = rounding.nanoseconds,
    *,
    factor: float = 1.0,
    find: Callable[[Recording, Variant, str, str], Found] = timed,
    after: str = "",
    data: Mapping[str, object],
    **drawn: Any,
) -> list[Point]:
    """A metric (times `factor`) at the x of each variant, or of a variant without an x.

    Unmeasured variants are left out.

    `say` formats a value's label and `after` is appended to it. The points' data default to
    the line (as variant) and the release; `data` overrides them, and a None in it is replaced
    by x. Other arguments are passed to `Point`.
    """
    named = {"variant": line, "go": go} | dict(data)
    pairs = [(math.nan, variants)] if isinstance(variants, Variant) else variants
    found = [(x, *find(recording, variant, go, metric)) for x, variant in pairs]
    return [
        Point(
            panel,
            line,
            scaled(estimate, factor),
            x,
            [factor * v for v in values],
            say(factor * estimate.value) + after,
            data={key: x if value is None else value for key, value in named.items()},
            **drawn,
        )
        for x, values, estimate in found
        if estimate.samples
    ]


# --- Shares of a CPU profile ---------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A share of a CPU profile to draw; see `Share` for `within` and `of`."""

    functions: tuple[str, ...]
    within: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    published: float | None = None  # in percent
    colour: str = BLUE


def shares(
    recording: Recording,
    variant: Variant,
    go: str,
    parts: Mapping[str, Part],
    panel: str,
    **data: object,
) -> list[Point]:
    """The shares (%) of a variant's profiles, a line per part; empty if it was not profiled."""
    points = []
    for name, part in parts.items():
        share = Share(variant, part.functions, part.within, part.of)
        estimate = in_percent(recording.estimate(share, go))
        if estimate.samples:
            points.append(
                Point(
                    panel,
                    name,
                    estimate,
                    raw=list(100 * recording.shares(share, go)),
                    label=rounding.plain(estimate.value) + " %",
                    colour=part.colour,
                    published=[] if part.published is None else [Mark(part.published)],
                    data={"variant": name.replace("\n", " "), "go": go, "unit": "%"} | data,
                )
            )
    return points


def shares_by_release(
    recording: Recording, variant: Variant, parts: Mapping[str, Part]
) -> list[Point]:
    """The shares (%) of a variant's profiles, a panel per release."""
    return [
        point
        for go in recording.releases
        for point in shares(recording, variant, go, parts, release(recording, go))
    ]


# --- Times, a panel per release ------------------------------------------------------


@dataclass(frozen=True)
class Timing:
    """One line of a chart of times; `data` replaces the default data columns."""

    name: str
    variant: Variant
    metric: str = "ns/op"
    against: Variant | None = None  # the baseline of the ratio in brackets
    colour: str = BLUE
    published: Sequence[Mark] = ()
    find: Callable[[Recording, Variant, str, str], Found] = timed
    data: Mapping[str, object] | None = None


def costs(
    variants: Iterable[Variant], against: Variant, published: Mapping[str, Sequence[Mark]]
) -> list[Timing]:
    """Lines that compare the costs of ways to free; `published` is by benchmark."""
    return [
        Timing(
            NAMES[variant.benchmark],
            variant,
            against=None if variant == against else against,
            colour=colour(variant),
            published=published.get(variant.benchmark, ()),
        )
        for variant in variants
    ]


def timings(
    recording: Recording,
    lines: Sequence[Timing],
    say: Callable[[float], str] = rounding.nanoseconds,
) -> list[Point]:
    """The cost per operation of each measured line, a panel per release."""
    points = []
    for go in recording.releases:
        for line in lines:
            columns = line.data or {"unit": line.metric, "gogc": line.variant.gogc}
            data = {"variant": line.variant.benchmark, "go": go, **columns}
            after = ""
            if line.against is not None:
                ratio = recording.estimate(Ratio(line.variant, line.against, line.metric), go)
                data["ratio"] = ratio.value
                after = f"  ({rounding.times(ratio.value)})" if ratio.samples else ""
            points += levels(
                recording,
                release(recording, go),
                line.name,
                go,
                line.variant,
                line.metric,
                say,
                find=line.find,
                after=after,
                data=data,
                colour=line.colour,
                published=line.published,
            )
    return points


def on_and_off(variant: Variant, off: Variant, marks: Mapping[str, Sequence[Mark]]) -> list[Timing]:
    """Lines for a variant with the GC on and off: the loop alone, and settled."""
    return [
        Timing("GC on, the loop", variant, colour=ORANGE, published=marks.get("100", ())),
        Timing("GC off, the loop", off, colour=GREEN, published=marks.get("off", ())),
        Timing("GC on, settled", variant, "settled-ns/op", colour=ORANGE),
        Timing("GC off, settled", off, "settled-ns/op", colour=GREEN),
    ]


def gc_off_title(recording: Recording, what: str, variant: Variant, off: Variant) -> str:
    """A title that says how turning the GC off changes a variant's cost, per release."""
    saved: dict[str, list[str]] = {}
    for go in recording.releases:
        if recording.estimate(Ratio(off, variant), go).samples:
            loop, settled = (
                change(recording, Ratio(off, variant, metric), go)
                for metric in ("ns/op", "settled-ns/op")
            )
            told = f"{loop} in the loop, {settled} settled"
            if loop == settled:
                told = f"{loop}, in the loop and settled"
            saved.setdefault(told, []).append(f"Go {go}")
    parts = [f"{told}, on {' and '.join(releases)}" for told, releases in saved.items()]
    return f"{what} with the GC off: " + ("; ".join(parts) or "it was not measured")


# --- Work that many goroutines share ---------------------------------------------------

_CLOCKS = {"ns/op": "wall-clock time per object", "cpu-ns/op": "CPU time per object, all threads"}


def shared_work(name: str, benchmarks: Sequence[str]) -> NamedChart[Recording]:
    """A chart of the cost per object when goroutines share the work, a curve per benchmark."""

    @chart(name, f"Work shared among goroutines was not measured on Go {TODAY_GO}")
    def drawn(recording: Recording) -> Drawing | None:
        points = []
        for metric, clock in _CLOCKS.items():
            for benchmark in benchmarks:
                variants = [(float(n), shared(benchmark, n)) for n in GOROUTINES]
                line = NAMES[variants[0][1].benchmark]
                points += levels(
                    recording,
                    clock,
                    line,
                    TODAY_GO,
                    variants,
                    metric,
                    data={"goroutines": None, "unit": metric},
                    colour=colour(variants[0][1]),
                )
        most = int(max((p.x for p in points), default=0))
        changes = {
            NAMES[one.benchmark]: change(recording, Ratio(many, one), TODAY_GO)
            for benchmark in reversed(benchmarks)
            for one, many in [(shared(benchmark, 1), shared(benchmark, most))]
        }
        return curves(
            points,
            f"Wall-clock time per object on {most} goroutines relative to 1 on Go {TODAY_GO}: "
            + "; ".join(f"{line}: {changed}" for line, changed in changes.items()),
            Axis("goroutines that share the work (log)", "log2"),
            Axis("ns per object (log)", "log"),
            kind="A line chart of the time per object over the goroutines",
            height=9,
            gap=0.1,
            shared=False,
        )

    return drawn


# --- Charts of more than one chapter --------------------------------------------------


@chart("headlines", "No headline claim was measured")
def headlines(ledger: Sequence[Row]) -> Drawing | None:
    """Each document's headline claim: published, then and today, and where it holds."""
    chosen = [(each, line) for each in by_document(ledger) if (line := each.chosen)]
    drawn = [
        ("\n".join(textwrap.wrap(f"{document.short}: {document.words}", 30)), row)
        for document, line in chosen
        for row in line.rows
        if row.estimate.samples
    ]
    points = [
        Point(
            "",
            words,
            row.estimate,
            label=f"{rounding.value(row.estimate.value, row.unit)} {row.toolchain}, {row.said}",
            colour=VERDICT_COLOURS.get(row.verdict.label, MUTED),
            published=[Mark(row.published)],
            data={"claim": row.claim.id, "go": row.release}
            | {"published": row.published, "unit": row.unit, "verdict": str(row.verdict)},
        )
        for words, row in drawn
    ]

    def where_it_holds(axes: Axes, _: str) -> None:
        left, right = axes.get_xlim()
        for y, (_, row) in zip(places(points), drawn, strict=True):
            low, high = max(row.bounds[0], left), min(row.bounds[1], right)
            if low < high:
                axes.barh(y, high - low, CLOSE, low, color=BLUE, alpha=0.10, linewidth=0)

    return dots(
        points,
        f"The headline claims today: {counts(line for _, line in chosen)}",
        "times as expensive, or as slow (log scale)\n"
        "shaded: where the claim holds; hollow diamonds: as published",
        kind="A dot plot of the documents' headline claims, then and today",
        log=True,
        reference=1,
        decorate=where_it_holds,
    )


def control(recording: Recording) -> Chart:
    """A chart of the A/A controls: identical code compared with itself."""
    points = [
        Point(
            "",
            f"{NAMES[variant.benchmark]}, {toolchains.title(go)}",
            estimate,
            raw=recording.points(Ratio(variant, replace(variant, control="")), go),
            label=rounding.times(estimate.value),
            data={"variant": variant.benchmark, "go": go, "control": variant.control},
        )
        for variant, go, estimate in recording.controls()
    ]
    values = [v for p in points for v in (p.estimate.low, p.estimate.high, *p.raw)]
    ends = [v for v in values if math.isfinite(v)] or [1.0]

    @chart(f"{recording.study.name}-control", "No A/A control was measured")
    def drawn(points: list[Point]) -> Drawing | None:
        if not points:
            return None
        furthest = max((p.estimate for p in points), key=lambda e: abs(math.log(e.value)))
        return dots(
            points,
            "Identical code measured twice: the ratio furthest from 1 is "
            + rounding.interval(furthest, "ratio"),
            "cost relative to a second measurement of the same code (ratio)",
            kind="A dot plot of the ratios of identical code",
            limits=(min(0.98, *ends) - 0.01, max(1.02, *ends) + 0.01),
            reference=1,
        )

    return drawn(points)
