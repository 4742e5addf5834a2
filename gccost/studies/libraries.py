"""What finalizers and cleanups cost in libraries that people use, and in a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from gccost import rounding, stats
from gccost.judging import stacks
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import PhaseShare
from gccost.judging.recording import Recording
from gccost.judging.rules import AtMost
from gccost.measuring.cases import Case, Ratio, Variant, profiled
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing import tables
from gccost.showing.figures import BLUE, GREEN, ORANGE
from gccost.showing.plots import Axis, Drawing, Point, chart, curves, dots
from gccost.showing.tables import Cell, Markup
from gccost.stats import Estimate
from gccost.studies.common import in_percent, levels, measured, scaled
from gccost.studies.runtime import patched

# === Cases ===========================================================================


@dataclass(frozen=True)
class Way:
    """A way to free the library's objects in a workload."""

    variant: Variant
    name: str
    colour: str = ORANGE


@dataclass(frozen=True)
class Workload:
    """A program of gosrc/libraries, its operations, and the ways to free in it.

    The first way is the library's own: finalizers or cleanups free. Most programs do what
    is `chosen`, by default the same.
    """

    program: str
    name: str
    n: int
    ways: tuple[Way, ...]
    chosen: Variant | None = None

    @property
    def closed(self) -> Variant:
        """The way that closes explicitly: the baseline."""
        return next(way.variant for way in self.ways if way.name.startswith("closed explicitly"))

    @property
    def judged(self) -> Variant:
        """What most programs do; its profile decides the claim."""
        return self.chosen or self.ways[0].variant

    @property
    def short(self) -> str:
        """The library's name."""
        return self.name.partition(":")[0]


def _ways(benchmark: str, *more: Way) -> tuple[Way, ...]:
    dropped = Variant(f"{benchmark}Dropped")
    return (
        Way(dropped, "dropped: the finalizer frees"),
        Way(patched(dropped), "the same, runtime without the walk"),
        *more,
        Way(Variant(f"{benchmark}Closed"), "closed explicitly", BLUE),
    )


SQLITE = Workload(
    "libraries/sqlite",
    "go-sqlite3: prepare, step, 10 rows",
    60_000,
    _ways("Sqlite", Way(Variant("SqliteQuery"), "through database/sql, which closes", BLUE)),
    chosen=Variant("SqliteQuery"),
)
TREES = Workload(
    "libraries/treesitter",
    "go-tree-sitter: parse, edit, parse",
    800,
    _ways("Trees", Way(Variant("TreesSlab"), "adopted by slabs of 8", GREEN)),
)
MESSAGES = Workload(
    "libraries/zstd",
    "zstd: a context per message",
    20_000,
    _ways(
        "Messages",
        Way(Variant("MessagesSlab"), "adopted by slabs of 16", GREEN),
        Way(Variant("MessagesReused"), "one context for all messages", BLUE),
    ),
)
SERVER = Workload(
    "libraries/server",
    "os and net: a file per connection",
    10_000,
    (
        Way(Variant("Server"), "closed explicitly; finalizers are set and removed", BLUE),
        Way(patched(Variant("Server")), "the same, runtime without the walk"),
    ),
)
WORKLOADS = (SQLITE, TREES, MESSAGES, SERVER)
_PROFILED = 2  # times the operations, for more samples in a profile


def profile_of(variant: Variant) -> Variant:
    """The variant under the CPU profiler."""
    return profiled(variant.benchmark)


def _profiles(workload: Workload) -> tuple[Way, ...]:
    """The ways whose profiles are shown."""
    shown = {workload.judged, workload.ways[0].variant}
    return tuple(way for way in workload.ways if way.variant in shown)


def _cases() -> Iterator[Case]:
    for load in WORKLOADS:
        for way in load.ways:
            yield Case(load.program, way.variant, TODAY_GO, load.n, "quick")
        for way in _profiles(load):
            tier = "tiny" if way.variant == load.judged else "quick"
            variant = profile_of(way.variant)
            yield Case(load.program, variant, TODAY_GO, _PROFILED * load.n, tier)


# === Claims ==========================================================================

REGISTERING = "registering"


def _claims() -> Iterator[Claim]:
    for letter, load in zip("abcd", WORKLOADS, strict=True):
        share = PhaseShare(profile_of(load.judged), (REGISTERING,))
        yield Claim(f"X13{letter}", "the-share-of-the-time", share, AtMost(), (TODAY_GO,))


# === Charts ==========================================================================

PHASES: Mapping[str, str] = MappingProxyType(
    {
        REGISTERING: "registering and removing",
        "marking": "marking",
        "sweeping": "sweeping",
        "running": "queueing and running",
        stacks.FUNCTIONS: "the library's own frees in them",
    }
)


def share(recording: Recording, variant: Variant, *phases: str) -> Point:
    """The share (%) of a variant's CPU time in phases, by default all but the own functions."""
    phases = phases or tuple(stacks.PHASES)
    quantity = PhaseShare(profile_of(variant), phases)
    estimate = in_percent(recording.estimate(quantity, TODAY_GO))
    return Point(
        "",
        "",
        estimate,
        raw=list(100 * recording.shares(quantity, TODAY_GO)),
        label=rounding.plain(estimate.value) + " %",
    )


@chart("libraries-shares", "No library was profiled")
def shares(recording: Recording) -> Drawing | None:
    """The share of CPU time in each phase of finalizers' and cleanups' lives."""
    points = measured(
        replace(
            share(recording, way.variant, phase),
            panel=f"{load.name}\n{way.name}",
            line=name,
            colour=GREEN if phase == stacks.FUNCTIONS else ORANGE,
            data={"variant": way.variant.benchmark, "go": TODAY_GO, "phase": phase, "unit": "%"},
        )
        for load in WORKLOADS
        for way in _profiles(load)
        for phase, name in PHASES.items()
    )
    registering = [p.estimate.value for p in points if p.data["phase"] == REGISTERING]
    return dots(
        points,
        "Registering and removing finalizers and cleanups takes "
        f"{rounding.extent(registering)} % of the CPU time of these programs (estimates)",
        "share of CPU time (%)",
        kind="A dot plot of shares of CPU time",
    )


def summary(recording: Recording) -> Markup:
    """A table of the shares of the judged programs' CPU time, and of an operation's time."""
    phases = {"registering": (REGISTERING,), "all phases": (), "own functions": (stacks.FUNCTIONS,)}
    rows: list[tuple[str | Cell, ...]] = [
        (
            Cell(load.name, way.name),
            *(share(recording, way.variant, *each).label for each in phases.values()),
            rounding.duration(recording.level(way.variant, TODAY_GO).value),
        )
        for load in WORKLOADS
        for way in load.ways
        if way.variant == load.judged
    ]
    return tables.table(("share of CPU time", *phases, "an operation"), rows)


def faults(recording: Recording) -> Markup:
    """A table of the page faults per operation of each way to free."""
    rows = [
        (
            Cell(load.name, way.name),
            tables.estimate(
                scaled(recording.level(way.variant, TODAY_GO, "faults"), 1 / load.n), "number"
            ),
        )
        for load in WORKLOADS[:-1]
        for way in load.ways
        if not way.variant.runtime
    ]
    return tables.table(("program", "page faults per operation"), rows)


# Each chart's metric, the factor to its unit, the unit, and how its values are written.
_COSTS: Mapping[str, tuple[float, str, Callable[[float], str]]] = {
    "ns/op": (1e-3, "µs", lambda us: rounding.duration(1e3 * us)),
    "peak-rss-bytes": (2**-20, "MiB", lambda mib: f"{rounding.plain(mib)} MiB"),
}


def _compared(recording: Recording, metric: str) -> list[Point]:
    """A metric of each way of each program."""
    factor, unit, say = _COSTS[metric]
    points: list[Point] = []
    for load in WORKLOADS:
        for way in load.ways:
            ratio = recording.estimate(Ratio(way.variant, load.closed), TODAY_GO)
            compared = metric == "ns/op" and way.variant != load.closed and ratio.samples
            benchmark, runtime = way.variant.benchmark, way.variant.runtime
            points += levels(
                recording,
                load.name,
                way.name,
                TODAY_GO,
                way.variant,
                metric,
                say,
                factor=factor,
                after=f"  ({rounding.times(ratio.value)})" if compared else "",
                data={"variant": benchmark, "runtime": runtime, "unit": unit},
                colour=way.colour,
            )
    return points


def _relative(recording: Recording, metric: str) -> str:
    """A metric of each library's dropped objects relative to closed ones, with intervals."""
    return ", ".join(
        f"{load.short} {rounding.interval(ratio, 'ratio')}"
        for load in WORKLOADS[:-1]
        for ratio in [
            recording.estimate(Ratio(load.ways[0].variant, load.closed, metric), TODAY_GO)
        ]
        if ratio.samples
    )


@chart("libraries-cost", "No library was measured")
def cost(recording: Recording) -> Drawing | None:
    """The time per operation of each way to free."""
    return dots(
        _compared(recording, "ns/op"),
        "Time if finalizers free, relative to closing: " + _relative(recording, "ns/op"),
        "",
        kind="A dot plot of the time per operation by library",
        each=dict.fromkeys(
            (load.name for load in WORKLOADS),
            "wall-clock time per operation (µs; ×: closing explicitly is 1)",
        ),
    )


@chart("libraries-memory", "The memory of no library was measured")
def memory(recording: Recording) -> Drawing | None:
    """The largest resident memory of the process, by what frees."""
    metric = "peak-rss-bytes"
    return dots(
        [p for p in _compared(recording, metric) if p.panel != SERVER.name],
        "Largest resident memory if finalizers free, relative to closing: "
        + _relative(recording, metric),
        "largest resident memory of the process (MiB, log scale)",
        kind="A dot plot of the resident memory by library",
        log=True,
    )


_MOMENTS = 32  # of a loop at which the memory is recorded; see gosrc/libraries/loop


@chart("libraries-growth", "The memory over the loop was not measured")
def growth(recording: Recording) -> Drawing | None:
    """The resident memory over the loop, by what frees."""
    points = [
        Point(
            load.name,
            way.name,
            scaled(estimate, 2**-20),
            moment * load.n / _MOMENTS / 1000,
            label=rounding.mebibytes(estimate.value),
            colour=way.colour,
            data={"variant": way.variant.benchmark, "go": TODAY_GO}
            | {"operations": moment * load.n // _MOMENTS, "unit": "MiB"},
        )
        for load in (TREES, MESSAGES)
        for way in load.ways
        if not way.variant.runtime and way.variant.benchmark != "MessagesReused"
        for moment in range(1, _MOMENTS + 1)
        for estimate in [recording.level(way.variant, TODAY_GO, f"rss-bytes-{moment}")]
        if estimate.samples
    ]
    told = [
        f"{load.short} {rounding.interval(last[-1].estimate, 'MiB')} after {load.n:,} operations"
        for load in (TREES, MESSAGES)
        if (last := [p for p in points if p.data["variant"] == load.ways[0].variant.benchmark])
    ]
    return curves(
        points,
        "Resident memory if finalizers free the C objects: " + ", ".join(told),
        Axis("operations so far (thousands)", limits=(0, None)),
        Axis("resident memory (MiB)", limits=(0, None)),
        kind="Line charts of the resident memory over the operations",
        height=7,
        shared=False,
        ends=lambda p: p.line.partition(":")[0],
    )


def grown(recording: Recording, load: Workload) -> Estimate:
    """How much (MiB) dropped objects raise the resident memory in the loop's second half."""
    ends = [f"rss-bytes-{moment}" for moment in (_MOMENTS // 2, _MOMENTS)]
    found = recording.samples(load.ways[0].variant, TODAY_GO).reindex(columns=ends)
    return scaled(stats.amount(found[ends[1]] - found[ends[0]]), 2**-20)


# === The study =======================================================================

STUDY = Study(
    name="libraries",
    chapter="10-in-real-programs",
    question="What do finalizers and cleanups cost in libraries that people use?",
    cases=tuple(_cases()),
    document=TODAY_GO,
    claims=tuple(_claims()),
    charts=(shares, cost, memory, growth),
)
