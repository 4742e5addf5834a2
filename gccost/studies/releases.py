"""Release by release: the ways to free C memory, and their parts, on every Go release."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import pandas as pd
from matplotlib.axes import Axes

from gccost import rounding, stats
from gccost.judging import published
from gccost.judging.claims import Study
from gccost.judging.recording import Recording
from gccost.measuring import cases
from gccost.measuring.cases import AS_PUBLISHED, NO_GREEN_TEA, RECORD, Case, Ratio, Variant
from gccost.measuring.toolchains import (
    CLEANUP_GO,
    CLOUDFLARE_GO,
    DOCUMENT_GO,
    GO_RELEASES,
    ISSUE_GO,
    TODAY_GO,
    number,
)
from gccost.showing import tables
from gccost.showing.figures import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE
from gccost.showing.notice import machine
from gccost.showing.plots import Axis, Drawing, Mark, Point, by_line, chart, curves
from gccost.showing.tables import Cell, Markup, Prose, table
from gccost.stats import Estimate, Width
from gccost.studies import siebenmann
from gccost.studies.cloudflare import MOST_PROCS, RATE, turns
from gccost.studies.common import measured, scaled

# === Cases ===========================================================================


def sized(what: str, words: int) -> Variant:
    """A variant of an object of `words` pointer words: "Allocate", or "Finalize"."""
    return Variant(f"Across{what}", sub=(("words", str(words)),))


FREE, CALL, MALLOC, HEAP_FREE, FINALIZER, CLEANUP, SLAB = (
    Variant(f"Across{what}")
    for what in ("Free", "Call", "Malloc", "HeapFree", "Finalizer", "Cleanup", "Slab")
)
ATTACH = Variant("AcrossAttach", gogc="off", setting="precise")
LIVE = Variant("AcrossLive", setting="precise")
SMALLEST, LARGEST = 1, 512  # pointer words: the ends of sean's table
SIGNED = {
    "1 P": turns(1),
    "1 P, GOGC=400": turns(1, "400"),
    f"{MOST_PROCS} Ps": turns(MOST_PROCS),
    f"{MOST_PROCS} Ps, GOGC=400": turns(MOST_PROCS, "400"),
}
_SIGNATURES = 12_000  # twice that of chapter 4
GREEN_TEA_GO = "1.26"  # the first release with Green Tea as its default collector
# The rounds that an interval of less than 5 % needs.
_ROUNDS = 8
_OPERATIONS = {
    **dict.fromkeys((FREE, CALL, MALLOC), 500_000),
    **dict.fromkeys((HEAP_FREE, FINALIZER, CLEANUP, SLAB), AS_PUBLISHED),
    **dict.fromkeys((sized("Allocate", SMALLEST), sized("Finalize", SMALLEST)), AS_PUBLISHED),
    **dict.fromkeys((sized("Allocate", LARGEST), sized("Finalize", LARGEST)), 100_000),
    ATTACH: 100_000,
    LIVE: 200_000,
}


def _without_green_tea(variant: Variant) -> Variant:
    """A variant built with the collector that was the default before Green Tea."""
    return replace(variant, runtime=NO_GREEN_TEA)


def _cases() -> Iterator[Case]:
    for go in GO_RELEASES:
        for variant, n in _OPERATIONS.items():
            if variant != CLEANUP or number(go) >= number(CLEANUP_GO):
                retained = RECORD if variant.gogc == "off" else 0
                yield Case("across", variant, go, n, retained_bytes=retained, rounds=_ROUNDS)
        for variant in SIGNED.values():
            yield Case("signing", variant, go, _SIGNATURES, traced=True, rounds=_ROUNDS)
        if number(go) >= number(GREEN_TEA_GO):
            variant = _without_green_tea(turns(MOST_PROCS))
            yield Case("signing", variant, go, _SIGNATURES, traced=True, rounds=_ROUNDS)


# The chapters on the documents' releases.
_WHOSE = {CLOUDFLARE_GO: "ch. 4", DOCUMENT_GO: "ch. 1, 2", ISSUE_GO: "ch. 3", TODAY_GO: "today"}
# The variants of other studies with the same loop, measured on some of these releases.
_ELSEWHERE = {
    FREE: cases.FREE,
    HEAP_FREE: cases.HEAP_FREE,
    FINALIZER: cases.AUTO,
    CLEANUP: cases.CLEANUP,
    sized("Finalize", SMALLEST): siebenmann.sized("Finalize", SMALLEST),
    **{variant: variant for variant in SIGNED.values()},
}


def _elsewhere() -> Iterator[Case]:
    for go in _WHOSE:
        for variant in _ELSEWHERE.values():
            if variant != cases.CLEANUP or number(go) >= number(CLEANUP_GO):
                yield Case("", variant, go, 0)


# === Estimates =======================================================================


@dataclass(frozen=True)
class Figure:
    """A figure that is compared between releases: a cost, or a ratio of two."""

    name: str
    variant: Variant
    metric: str = "ns/op"
    under: Variant | None = None  # of a ratio
    colour: str = BLUE

    @property
    def unit(self) -> str:
        """Its unit, one of `rounding.FORMATS`."""
        return "ratio" if self.under else "frequency" if self.metric == RATE else "ns"

    @property
    def published(self) -> Mapping[str, float]:
        """The documents' values, by release."""
        over = _published(self.variant)
        if self.under is None:
            return over
        under = _published(self.under)
        return {go: over[go] / under[go] for go in over.keys() & under.keys()}

    @property
    def elsewhere(self) -> Figure | None:
        """The figure from other studies' cases; None if they do not measure it."""
        variant, under = (_ELSEWHERE.get(v) for v in (self.variant, self.under or FREE))
        if variant is None or under is None:
            return None
        return replace(self, variant=variant, under=self.under and under)

    def estimate(
        self, recording: Recording, *releases: str, width: Width = stats.SHOWN
    ) -> Estimate:
        """The figure on a release, or on the second of two over that on the first."""
        variants = [self.variant, *([self.under] if self.under else [])]
        costs = [recording.cost(v, go, self.metric) for go in reversed(releases) for v in variants]

        def figure(*values: float) -> float:
            each = [a / b for a, b in _pairs(values)] if self.under else list(values)
            return each[0] / each[1] if len(releases) > 1 else each[0]

        return stats.combine(figure, costs, width)


@cache
def _published(variant: Variant) -> Mapping[str, float]:
    """The documents' times (ns) of a variant's loop, by release."""
    benchmark = _ELSEWHERE[variant].benchmark if variant in _ELSEWHERE else ""
    lemire, issue = published.table("lemire-timings"), published.table("addcleanup-timings")
    tables = {
        DOCUMENT_GO: lemire.query("gogc == '100'"),
        ISSUE_GO: issue.query("machine == 'MacBook Pro M1'"),
    }
    return {
        go: float(ns)
        for go, table in tables.items()
        for ns in table.loc[table["variant"] == benchmark, "ns_per_op"]
    }


def _pairs(values: Sequence[float]) -> Iterator[tuple[float, float]]:
    return zip(values[::2], values[1::2], strict=True)


MANUAL = Figure("manual free", FREE)
COSTS = (
    MANUAL,
    Figure("heap handle, freed", HEAP_FREE, colour=MUTED),
    Figure("slabs of 64", SLAB, colour=INK),
    Figure("finalizer frees", FINALIZER, colour=ORANGE),
    Figure("AddCleanup frees", CLEANUP, colour=GREEN),
    Figure("empty finalizer, no C", sized("Finalize", SMALLEST), colour=PURPLE),
)
RATIOS = (
    Figure("finalizer ÷ manual", FINALIZER, under=FREE, colour=ORANGE),
    Figure("AddCleanup ÷ manual", CLEANUP, under=FREE, colour=GREEN),
    Figure("finalizer ÷ AddCleanup", FINALIZER, under=CLEANUP, colour=MUTED),
    Figure("slabs ÷ manual", SLAB, under=FREE, colour=INK),
)
ONE_CALL = Figure("call into C", CALL, colour=INK)
PAIR = Figure("malloc and free in C", MALLOC, colour=MUTED)
REGISTERING = Figure("SetFinalizer alone", ATTACH, "call-ns", colour=ORANGE)
PER_CYCLE = Figure("a special, per cycle", LIVE, "special-ns", colour=PURPLE)
SIGNING = tuple(
    Figure(name, variant, RATE, colour=colour)
    for (name, variant), colour in zip(SIGNED.items(), (BLUE, MUTED, ORANGE, GREEN), strict=True)
)
FIGURES = (*COSTS, *RATIOS, ONE_CALL, PAIR, REGISTERING, PER_CYCLE, *SIGNING)

# Many steps are tested, so few of them may seem to be jumps by chance.
_CERTAIN = Width(confidence=0.99)


def _steps(recording: Recording, figure: Figure) -> dict[str, Estimate]:
    """A figure on each release over that on the release before."""
    steps = {
        after: figure.estimate(recording, before, after, width=_CERTAIN)
        for before, after in pairwise(recording.releases)
    }
    return {go: e for go, e in steps.items() if e.samples}


def jumps(recording: Recording, figure: Figure) -> dict[str, Estimate]:
    """The releases on which a figure differs significantly from that on the one before it.

    The estimate is the figure over that on the release before.
    """
    return {go: e for go, e in _steps(recording, figure).items() if not e.contains(1)}


def since_first(recording: Recording, figure: Figure) -> Estimate:
    """A figure on the newest release over that on the first that has it."""
    having = [go for go in recording.releases if figure.estimate(recording, go).samples]
    if len(having) < 2:
        return stats.nothing(_CERTAIN)
    return figure.estimate(recording, having[0], having[-1], width=_CERTAIN)


def change(estimate: Estimate) -> str:
    """A ratio as a change: "−35.1 %"."""
    return ("+" if estimate.value > 1 else "") + rounding.percent(estimate.value - 1)


def _ends_of(estimate: Estimate) -> str:
    """The interval of a ratio as changes in percent: "−38.1 to −32.0"."""
    return " to ".join(rounding.plain(100 * (end - 1)) for end in (estimate.low, estimate.high))


def moved(recording: Recording) -> Markup:
    """A table of the releases on which a figure changed significantly, and by how much."""
    steps = {figure: jumps(recording, figure) for figure in FIGURES}
    whole = {figure: since_first(recording, figure) for figure in FIGURES}
    shown = [f for f in FIGURES if steps[f] or (whole[f].samples and not whole[f].contains(1))]
    rows: list[list[str | Cell]] = [
        [minor(go), *(change(steps[f][go]) if go in steps[f] else "" for f in shown)]
        for go in recording.releases
        if any(go in steps[f] for f in shown)
    ]
    if shown:
        changes = [Cell(change(whole[f]), _ends_of(whole[f])) for f in shown]
        rows.append(["since the first", *changes])
    return table(("Go", *(figure.name for figure in shown)), rows)


def steps_tested(recording: Recording) -> int:
    """The number of steps from one release to the next that the table of `moved` tests."""
    return sum(len(_steps(recording, figure)) for figure in FIGURES)


def losses(recording: Recording) -> list[str]:
    """The largest losses of signing from release to release, in sentences."""
    one, _, many, larger = SIGNING
    return [*_with_allocations(recording, one), *_with_larger_gogc(recording, many, larger)]


def _largest_loss(recording: Recording, figure: Figure) -> tuple[str, str, Estimate, str]:
    """The releases before and after a rate's largest loss, the step, and all in a sentence.

    Without a significant loss the releases are empty.
    """
    steps = {go: step for go, step in jumps(recording, figure).items() if step.value < 1}
    if not steps:
        said = f"Signing with {figure.name} is not significantly slower on any release."
        return "", "", stats.nothing(_CERTAIN), said
    on = min(steps, key=lambda go: steps[go].value)
    before = recording.releases[recording.releases.index(on) - 1]
    then, now = (
        rounding.value(figure.estimate(recording, go).value, figure.unit) for go in (before, on)
    )
    said = (
        f"The largest loss with {figure.name} is {change(steps[on])} ({_ends_of(steps[on])}; 99 %) "
        f"on Go {minor(on)}, from {then} to {now}."
    )
    return before, on, steps[on], said


def _with_allocations(recording: Recording, figure: Figure) -> list[str]:
    """The largest loss, with what an operation allocates before and after it."""
    before, on, _, said = _largest_loss(recording, figure)
    then, now = (recording.amount(figure.variant, go, "B/op") for go in (before, on))
    if on and then.samples and now.samples:
        said += (
            f" A signature allocates {rounding.count(now.value)} bytes there; before it allocated "
            f"{rounding.count(then.value)}. We did not test whether this is the cause."
        )
    return [said]


def _with_larger_gogc(recording: Recording, many: Figure, larger: Figure) -> list[str]:
    """The largest loss, next to that with a larger GOGC and to that without Green Tea."""
    before, on, one, said = _largest_loss(recording, many)
    if not on:
        return [said]
    other = larger.estimate(recording, before, on, width=_CERTAIN)
    if other.samples:
        named = larger.name.replace(", ", " and ")
        said += f" With {named} it is {change(other)} ({_ends_of(other)}; 99 %)."
        if other.low > one.high:
            said += (
                " The larger GOGC means fewer GC cycles, so at least a part of the loss lies in "
                "the cycles."
            )
    every = [recording.level(many.variant, go, "gc-cycle-op") for go in (before, on)]
    if all(e.samples for e in every):
        then, now = (rounding.interval(e, "number") for e in every)
        said += f" A cycle comes every {now} signatures; before it came every {then}."
    return [said, *_green_tea(recording, many, before, on)]


def _green_tea(recording: Recording, figure: Figure, before: str, on: str) -> list[str]:
    """A figure without Green Tea next to that with it and that on the release before."""
    plain = replace(figure, variant=_without_green_tea(figure.variant))
    rate = plain.estimate(recording, on)
    if not rate.samples:
        return []
    over, left = (
        stats.combine(
            lambda a, b: a / b,
            [recording.cost(v, go, figure.metric) for v, go in ((plain.variant, on), under)],
            _CERTAIN,
        )
        for under in ((figure.variant, on), (figure.variant, before))
    )
    cause = {  # is it faster without Green Tea, and is it as fast as before?
        (True, True): "So the loss is that of Green Tea.",
        (True, False): "So Green Tea is a part of the cause.",
        (False, False): "So the loss is there without Green Tea too. We do not know its cause.",
        (False, True): "These intervals do not decide it.",
    }[over.low > 1, left.contains(1)]
    return [
        f"Does Green Tea, the default collector from Go {GREEN_TEA_GO} on, cause it? Built without "
        f"it, the program makes {rounding.value(rate.value, figure.unit)} on Go {minor(on)}. That "
        f"is {rounding.interval(over, 'ratio')} what it makes with Green Tea, and "
        f"{rounding.interval(left, 'ratio')} what it makes on Go {minor(before)} (both "
        f"intervals at 99 %). {cause}"
    ]


def causes(recording: Recording) -> list[str]:
    """For each jump of the manual free: the parts of the change in ns, in a sentence."""
    said = []
    for before, after in pairwise(recording.releases):
        if after not in jumps(recording, MANUAL):
            continue
        whole, call, pair = (
            recording.level(figure.variant, after).value
            - recording.level(figure.variant, before).value
            for figure in (MANUAL, ONE_CALL, PAIR)
        )
        said.append(
            f"From Go {minor(before)} to {minor(after)} a manual free changed by "
            f"{rounding.nanoseconds(whole)}. Its two calls into C changed by "
            f"{rounding.nanoseconds(2 * call)}, and malloc and free themselves by "
            f"{_small(pair)}."
        )
    return said


def _small(ns: float) -> str:
    return rounding.nanoseconds(ns) if abs(ns) >= 1 else "less than 1 ns"


def notes() -> Markup:
    """The lines of the release notes that concern these costs, in our words."""
    rows = published.table("release-notes")[["release", "what", "link"]]
    return table(("release", "what changed", "source"), rows.to_numpy().tolist())


def minor(go: str) -> str:
    """A release without its patch: "1.27" of "1.27.4"."""
    return ".".join(go.split(".")[:2])


def overview(recording: Recording) -> Markup:
    """A table of every release: costs, and the ratios to a manual free. Its CSV has all figures."""
    shown = (*COSTS, *RATIOS[:2], ONE_CALL, REGISTERING, PER_CYCLE)
    made = table(
        ("Go", *(figure.name for figure in shown)),
        [
            (go, *(tables.estimate(f.estimate(recording, go), f.unit) for f in shown))
            for go in recording.releases
        ],
    )
    return replace(made, name="releases", csv=every(recording).to_csv(index=False))


def every(recording: Recording) -> pd.DataFrame:
    """Every cost on every release with its ratio to the manual free, and 95 % intervals.

    Also has what your own run measured; the column `run` says which run it is.
    """
    sources = [(recording, FIGURES)]
    if recording.own_run:
        sources.append((recording.own_run, tuple(e for f in FIGURES if (e := f.elsewhere))))
    rows = [
        (go, figure.name, figure.unit, *_written(cost), *_written(over), recording.run.name, where)
        for recording, figures in sources
        for where in [machine(recording.run)]
        for figure in figures
        if not figure.under
        for go in recording.releases
        if (cost := figure.estimate(recording, go)).samples
        for over in [
            stats.nothing()
            if figure == figures[0]
            else replace(figure, under=figures[0].variant).estimate(recording, go)
        ]
    ]
    ratio = ("ratio_to_manual", "ratio_low", "ratio_high")
    columns = ("go", "variant", "unit", "cost", "low", "high", *ratio, "run", "machine")
    return pd.DataFrame(rows, columns=columns)


def _written(estimate: Estimate) -> list[str]:
    values = (estimate.value, estimate.low, estimate.high)
    return [rounding.written(value) if estimate.samples else "" for value in values]


_SAME = 0.1  # two costs are the same if the interval of their ratio lies within 1 ± _SAME


def upgrading(recording: Recording, go: str) -> Markup | Prose:
    """A table of one release next to the newest measured."""
    newest = recording.newest
    rows = []
    for figure in (*COSTS, *RATIOS[:2], PER_CYCLE, *SIGNING):
        then, now, over = (
            figure.estimate(recording, *on) for on in ((go,), (newest,), (go, newest))
        )
        if now.samples:
            both = [tables.estimate(e, figure.unit) for e in (then, now)]
            rows.append([Cell(figure.name), *both, Cell(_differs(over))])
    if not rows:
        return Prose(f"Go {go} was not measured.")
    header = ("", f"Go {minor(go)}", f"Go {minor(newest)}", "change")
    return table(header, rows, caption=f"If you are on Go {minor(go)}")


def _differs(over: Estimate) -> str:
    if not over.samples:
        return "–"
    if not over.contains(1):
        return change(over)
    return "same" if over.low >= 1 - _SAME and over.high <= 1 + _SAME else "undecided"


def gains(recording: Recording) -> Markup:
    """A table of what upgrading to the newest release changes, by the release upgraded from."""
    *older, newest = recording.releases or (TODAY_GO,)
    shown = (*COSTS, PER_CYCLE)
    return table(
        (f"to Go {minor(newest)} from", *(figure.name for figure in shown)),
        [
            (f"Go {minor(go)}", *(_differs(f.estimate(recording, go, newest)) for f in shown))
            for go in older
        ],
    )


# === Charts ==========================================================================


def _at(go: str) -> float:
    return float(number(go)[1])


def _marked(axes: Axes, _: str) -> None:
    """Mark the documents' releases and today's."""
    for go in _WHOSE:
        axes.axvline(_at(go), color=MUTED, linewidth=1, linestyle="--", zorder=0)


def _lines(recording: Recording, figures: Sequence[Figure], panel: str = "") -> list[Point]:
    """A line over the releases for each figure, and what your own run measured."""
    points = _of_run(recording, figures, panel)
    if recording.own_run:
        others = [e for figure in figures if (e := figure.elsewhere)]
        points += [
            replace(p, line=line, hollow=True, published=[], data={**p.data, "variant": line})
            for p in _of_run(recording.own_run, others, panel)
            for line in [f"{p.line}, measured here"]
        ]
    return points


def _of_run(recording: Recording, figures: Iterable[Figure], panel: str) -> list[Point]:
    return measured(
        Point(
            panel,
            figure.name,
            estimate,
            _at(go),
            () if figure.under else recording.values(figure.variant, go, figure.metric),
            rounding.value(estimate.value, figure.unit),
            figure.colour,
            [Mark(figure.published[go])] if go in figure.published else [],
            data={"variant": figure.name, "go": go, "unit": figure.unit},
        )
        for figure in figures
        for go in recording.releases
        for estimate in [figure.estimate(recording, go)]
    )


def _ends(points: Sequence[Point]) -> str:
    return "; ".join(
        f"{line} {each[0].label} on Go {minor(str(each[0].data['go']))} and {each[-1].label} on "
        f"{minor(str(each[-1].data['go']))}"
        for line, each in by_line(points).items()
    )


def _over_releases(
    points: Sequence[Point], title: str, y: Axis | Mapping[str, Axis], kind: str, **more: object
) -> Drawing | None:
    # Close to each other, so without the "1." that all have.
    ticks = {_at(go): f"{_at(go):.0f}\n{_WHOSE.get(go, '')}" for go in GO_RELEASES}
    label = "minor release of Go 1; dashed: the documents' releases, and today's"
    if any(point.published for point in points):
        label += "\ndiamonds: published values"
    if any(point.hollow for point in points):
        label += "; hollow squares: measured here"
    return curves(
        points,
        title,
        Axis(label, ticks=ticks),
        y,
        kind=f"A line chart of {kind} by minor release of Go 1",
        decorate=_marked,
        **more,  # type: ignore[arg-type]
    )


NOTHING = "No release was measured"


@chart("releases-cost", NOTHING)
def cost(recording: Recording) -> Drawing | None:
    """The cost of each way to free, on every release."""
    points = _lines(recording, COSTS)
    ends = [p for p in points if p.line in ("manual free", "finalizer frees")]
    return _over_releases(
        points, f"Cost: {_ends(ends)}", Axis("ns per object (log)", "log"), "the cost", height=11
    )


@chart("releases-ratio", NOTHING)
def ratio(recording: Recording) -> Drawing | None:
    """The ratio of each automatic way to a manual free, on every release."""
    points = _lines(recording, RATIOS)
    steps = jumps(recording, RATIOS[0])
    most = max(steps, key=lambda go: abs(math.log(steps[go].value)), default="")
    where = f"; its largest change is {change(steps[most])} on Go {minor(most)}" if most else ""
    return _over_releases(
        points,
        _ends([p for p in points if p.line == RATIOS[0].name]) + where,
        Axis("ratio (log)", "log"),
        "the ratios",
        height=9,
    )


_FREE, _RECORD, _EMPTY, _CYCLE = (
    "manual free, and its parts (ns)",
    "SetFinalizer, for each record in the list (ns)",
    "SetFinalizer, with an empty list (ns)",
    "a special in each GC cycle (ns)",
)


@chart("releases-parts", NOTHING)
def parts(recording: Recording) -> Drawing | None:
    """The parts of the costs, on every release."""
    twice = "two calls into C"
    points = _lines(recording, (MANUAL, PAIR), _FREE)
    points += [
        replace(
            p,
            line=twice,
            estimate=scaled(p.estimate, 2),
            raw=[2 * ns for ns in p.raw],
            label=rounding.nanoseconds(2 * p.estimate.value),
            data={**p.data, "variant": twice},
        )
        for p in _lines(recording, (ONE_CALL,), _FREE)
    ]
    points += measured(
        Point(
            panel,
            "SetFinalizer",
            estimate,
            _at(go),
            values,
            rounding.nanoseconds(estimate.value),
            ORANGE,
            data={"variant": f"SetFinalizer, {column}", "go": go, "unit": "ns"},
        )
        for panel, column in ((_RECORD, "slope"), (_EMPTY, "intercept"))
        for go in recording.releases
        for values in [recording.walks(ATTACH, go)[column]]
        for estimate in [stats.amount(values)]
    )
    points += _lines(recording, (PER_CYCLE,), _CYCLE)
    found, calls = (jumps(recording, figure) for figure in (MANUAL, ONE_CALL))
    told = "; ".join(
        f"{change(step)} on Go {minor(go)}"
        + (f", where a call into C changes by {change(calls[go])}" if go in calls else "")
        for go, step in found.items()
    )
    axis = Axis(limits=(0, None))
    return _over_releases(
        points,
        f"The manual free changes by {told}" if told else "The manual free shows no change",
        dict.fromkeys((_FREE, _RECORD, _EMPTY, _CYCLE), axis),
        "the parts of the cost",
        height=6,
        shared=False,
    )


@chart("releases-sizes", NOTHING)
def sizes(recording: Recording) -> Drawing | None:
    """What a finalizer adds to the smallest and to the largest object, on every release."""
    points = measured(
        Point(
            "",
            name,
            estimate,
            _at(go),
            label=rounding.nanoseconds(estimate.value),
            colour=colour,
            data={"variant": name, "go": go, "unit": "ns"},
        )
        for words, colour in ((SMALLEST, ORANGE), (LARGEST, BLUE))
        for name in [f"{8 * words:,} bytes"]
        for added in [Ratio(sized("Finalize", words), sized("Allocate", words))]
        for go in recording.releases
        for estimate in [recording.added(added, go)]
    )
    return _over_releases(
        points,
        f"A finalizer adds: {_ends(points)}",
        Axis("added to an allocation (ns)", limits=(0, None)),
        "what a finalizer adds",
    )


@chart("releases-signing", "Signing was not measured on any release")
def signing(recording: Recording) -> Drawing | None:
    """Signatures per CPU second with one P and with many, on every release."""
    points = _lines(recording, SIGNING)
    shares = {
        go: each.value
        for go in recording.releases
        for each in [recording.estimate(Ratio(turns(1), turns(MOST_PROCS), "cpu-ns/op"), go)]
        if each.samples
    }
    low, high = (f(shares, key=lambda go: shares[go], default="") for f in (min, max))
    title = "Signing with many Ps"
    if low:
        title = (
            f"With {MOST_PROCS} Ps taking turns, signing keeps {rounding.percent(shares[low])} "
            f"(Go {minor(low)}) to {rounding.percent(shares[high])} (Go {minor(high)}) of the "
            "throughput of one P"
        )
    return _over_releases(
        points, title, Axis("signatures per CPU second", limits=(0, None)), "signatures", height=9
    )


# === The study =======================================================================

STUDY = Study(
    name="releases",
    chapter="06-release-by-release",
    question="Which release changed what cleanup costs?",
    cases=tuple(_cases()),
    elsewhere=tuple(_elsewhere()),
    command="make report ONLY=releases",
    charts=(cost, ratio, parts, sizes, signing),
)
