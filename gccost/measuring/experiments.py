"""What is measured: arms, cases, experiments and budgets, as data.

An **arm** is a way to run a benchmark; a **case** is an arm on one Go release
with a fixed number of operations N; an **experiment** is a named list of cases
and the paired ratios that matter in it. To add one is to add it here; nothing
else branches on their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from gccost.errors import GccostError
from gccost.measuring.toolchains import CLEANUP_GO, DOCUMENT_GO, ISSUE_GO, TODAY_GO, number

T = TypeVar("T")

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "published": "wall clock, GOMAXPROCS at its default, not pinned: as the documents measured",
        "precise": "CPU clock, GOMAXPROCS=1, pinned to one CPU: as repeatable as can be had",
    }
)


@dataclass(frozen=True)
class Budget:
    """How long an experiment may be measured, and when it is precise enough."""

    name: str
    seconds: float  # of measuring, per experiment
    min_rounds: int
    half_width: float  # relative 95 % half-width aimed at for each headline ratio
    scale: float = 1.0  # of every N: below 1 for tests only, and never pooled with the rest

    def reaches(self, tier: str) -> bool:
        """Whether this budget measures what is declared `since` tier."""
        names = list(BUDGETS)
        return names.index(self.name) >= names.index(tier)


BUDGETS: Mapping[str, Budget] = MappingProxyType(
    {
        b.name: b
        for b in (
            Budget("tiny", seconds=0.0, min_rounds=4, half_width=1.0, scale=1 / 200),
            Budget("quick", seconds=82.0, min_rounds=4, half_width=0.02),
            Budget("standard", seconds=300.0, min_rounds=6, half_width=0.01),
            Budget("thorough", seconds=1800.0, min_rounds=12, half_width=0.005),
        )
    }
)


def budget(name: str) -> Budget:
    """The budget of that name; GccostError with the valid ones if there is none."""
    return _named(BUDGETS, name, "budget")


# Lemire's empty finalizer, a loop that only allocates, and slabs of which some
# handles survive: what they were given to free, nothing frees.
LEAKS_BY_DESIGN = frozenset({"AllocateDummy", "AllocateOnly", "SlabSurvivors"})
# What calls runtime.AddCleanup; the other benchmarks run on every release.
NEEDS_CLEANUP = frozenset(
    {
        *("AllocateCleanup", "Cleanup", "ParallelCleanup", "UntilFreeCleanup"),
        *("LiveCleanup", "HeapCleanup", "Stop", "Padded", "LastFirst", "Registry", "Pinned"),
    }
)


@dataclass(frozen=True)
class Arm:
    """A benchmark and the circumstances that name it, but for the Go release.

    `twin` makes it an A/A control of the arm without one: "same" runs the same
    binary again, "relinked" one that was linked anew with another layout.
    `profile` is "cpu" for a run under the CPU profiler, whose times are not used.
    `sub` names a sub-benchmark of the program, such as words=8; `more` holds keys
    that only one experiment knows, and no program.
    """

    benchmark: str
    gogc: str = "100"
    setting: str = "published"
    twin: str = ""
    profile: str = ""
    sub: tuple[tuple[str, str], ...] = ()
    more: tuple[tuple[str, str], ...] = ()

    def keys(self) -> dict[str, str]:
        """What names the arm in a result beside the benchmark and the release."""
        named = {"gogc": self.gogc, "setting": self.setting}
        if self.twin:
            named["twin"] = self.twin
        if self.profile:
            named["profile"] = self.profile
        return named | dict(self.more)

    def on(self, go: str) -> str:
        """The name of its samples on a release, without the GOMAXPROCS suffix."""
        keys = {"go": go, **self.keys()}
        return self.printed + "".join(f"/{k}={v}" for k, v in keys.items())

    @property
    def printed(self) -> str:
        """The name that the program itself gives its samples."""
        return self.benchmark + "".join(f"/{k}={v}" for k, v in self.sub)


@dataclass(frozen=True)
class Case:
    """An arm of a program (a package of gosrc/) on one Go release, with a fixed N.

    An N of 0 leaves it to `go test`, which fits it to the clock.

    A round takes `repeats` samples of it, spread over the round, and their
    median stands for the round: where a sample is short and cheap, that keeps
    the first thing that disturbs one out of every ratio. With `every` 2 it is
    measured in every other round only: what no ratio that matters rests on.

    `kept` is how many bytes an operation keeps until the loop ends, where it
    does: memory then caps N.
    """

    program: str
    arm: Arm
    go: str
    n: int
    repeats: int = 1
    every: int = 1
    since: str = "tiny"  # the least budget that measures it
    cpus: int = 1  # the fewest on which it is measured
    kept: int = 0

    def __post_init__(self) -> None:
        if self.arm.benchmark in NEEDS_CLEANUP and number(self.go) < number("1.24"):
            raise GccostError(
                f"Go {self.go} has no runtime.AddCleanup",
                f"case {self.arm.benchmark}",
                "name Go 1.24 or later",
            )

    def scaled(self, scale: float) -> Case:
        """The same case at a budget that scales every N."""
        return replace(self, n=max(1, round(self.n * scale)) if self.n else 0)

    def due(self, round_: int) -> bool:
        """Whether a round (from 1) measures it."""
        return (round_ - 1) % self.every == 0

    def capped(self, memory: int) -> Case:
        """The same case with an N whose kept bytes fit into so many bytes of memory."""
        fits = memory // self.kept if self.kept else self.n
        return replace(self, n=max(1, fits)) if fits < self.n else self

    @property
    def leaks(self) -> bool:
        """Whether it never frees its C blocks, by design."""
        return self.arm.benchmark in LEAKS_BY_DESIGN

    @property
    def name(self) -> str:
        """The name of its samples, without the GOMAXPROCS suffix."""
        return self.arm.on(self.go)

    @property
    def sized_name(self) -> str:
        """Its name and N: samples of another N are another case's."""
        return f"{self.name} {self.n}"


@dataclass(frozen=True)
class Ratio:
    """Two arms compared by one metric, sample by sample within a round."""

    numerator: Arm
    denominator: Arm
    metric: str = "ns/op"

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that it rests on."""
        return (self.numerator, self.denominator)


@dataclass(frozen=True)
class Experiment:
    """A named list of cases, and the ratios whose intervals say when to stop.

    `document` is the release of the figures that it tests; `apart` is the command
    that measures it, where that is not `make report`.
    """

    name: str
    chapter: str  # the notebook that tells it
    question: str
    cases: tuple[Case, ...]
    headline: tuple[Ratio, ...]
    document: str = DOCUMENT_GO
    apart: str = ""

    def within(self, limit: Budget) -> tuple[Case, ...]:
        """The cases that a budget measures, each with the N of that budget."""
        return tuple(c.scaled(limit.scale) for c in self.cases if limit.reaches(c.since))

    @property
    def controls(self) -> tuple[tuple[Ratio, str], ...]:
        """The A/A ratios and their releases: each twin against its identical arm."""
        return tuple(
            (Ratio(c.arm, replace(c.arm, twin="")), c.go) for c in self.cases if c.arm.twin
        )

    @property
    def releases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c.go for c in self.cases))


# --- Lemire -----------------------------------------------------------------

# Near the N of the documents' own runs: a second at 650 ns is about 1.8 million,
# the Go issue's finalizer ran 1,739,244. Less than half a million runs no GC.
_AS_PUBLISHED = 1_600_000
# A sample of the baseline takes a tenth of a second, and every ratio rests on it:
# one alone would be at the mercy of whatever disturbs it.
_REPEATS = {"AllocateFree": 3}
# Where N is ours to choose, it is large enough for the GC to run about eight times,
# or half as often where that would leave too few rounds.
_EIGHT_CYCLES = 8_000_000
_FOUR_CYCLES = 4_000_000
# What an object that nothing collects keeps: itself, if it is small, the record of
# its finalizer or cleanup, and what AddCleanup allocates or C holds.
_RECORD = 250
# Enough for a hundred stacks at the profiler's 100 a second.
_PROFILED = 800_000

FREE = Arm("AllocateFree")
AUTO = Arm("AllocateAuto")


def _lemire() -> Iterator[Case]:
    def case(arm: Arm, go: str, n: int = _AS_PUBLISHED, since: str = "tiny") -> Case:
        keeps = arm.benchmark in LEAKS_BY_DESIGN or arm.gogc == "off"
        kept = _RECORD if keeps and arm.benchmark != "AllocateFree" else 0
        repeats = _REPEATS.get(arm.benchmark, 1)
        every = 2 if arm.setting == "precise" else 1
        return Case("cstr", arm, go, n, repeats, every, since=since, kept=kept)

    for go in (DOCUMENT_GO, TODAY_GO):
        yield case(FREE, go)
        yield case(Arm("AllocateFree", gogc="off"), go)
        yield case(Arm("AllocateDefer"), go)
        yield case(Arm("AllocateHeapFree"), go)
        yield case(AUTO, go)
        yield case(Arm("AllocateAuto", gogc="off"), go)
        yield case(Arm("AllocateDummy"), go)
        yield case(Arm("AllocateAuto", profile="cpu"), go, n=_PROFILED)
        yield case(Arm("AllocateFree", setting="precise"), go, since="standard")
        yield case(Arm("AllocateHeapFree", setting="precise"), go, since="standard")
        yield case(Arm("AllocateAuto", setting="precise"), go, n=_EIGHT_CYCLES, since="standard")
        # Nothing is freed in the loop of these: memory caps their N.
        for benchmark, gogc in (("AllocateFree", "off"), ("AllocateAuto", "off")):
            yield case(Arm(benchmark, gogc=gogc, setting="precise"), go, since="standard")
        yield case(Arm("AllocateDummy", setting="precise"), go, since="standard")
    yield case(Arm("AllocateCleanup"), TODAY_GO, since="standard")
    cleanup = Arm("AllocateCleanup", setting="precise")
    yield case(cleanup, TODAY_GO, n=_EIGHT_CYCLES, since="standard")
    yield case(Arm("AllocateFree", twin="same"), TODAY_GO)
    yield case(Arm("AllocateFree", twin="relinked"), TODAY_GO)
    yield case(Arm("AllocateAuto", twin="relinked"), TODAY_GO)
    # A twin linked anew bears the noise of one that is not, and more: at the
    # quick budget it stands for both where a sample is dear.
    yield case(Arm("AllocateAuto", twin="same"), TODAY_GO, since="standard")


# --- Siebenmann ---------------------------------------------------------------

HEAP_FREE = Arm("AllocateHeapFree")
# Of the published curve, in pointer words.
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# Enough for the GC to take part at every size, and for a sample of about a
# tenth of a second: the larger the object, the fewer.
_CURVE = dict(
    zip(SIZES, (800, 800, 600, 600, 400, 400, 300, 200, 100, 80), strict=True)
)  # thousands
# The sizes that the quick budget leaves out.
_BETWEEN = (2, 8, 64, 256)
# A finalizer's profile is sampled for about a second.
_PROFILED_LONG = 1_600_000
# Each operation collects the whole heap a few times.
_LIFETIMES = 10


def sized(benchmark: str, words: int, gogc: str = "100", setting: str = "published") -> Arm:
    """An arm of the object-size curve: "Allocate", "Finalize" or "Cleanup"."""
    return Arm(benchmark, gogc, setting, sub=(("words", str(words)),))


def profiled(benchmark: str, setting: str = "published", gogc: str = "100") -> Arm:
    """The arm that profiles a benchmark."""
    return Arm(benchmark, gogc, setting, profile="cpu")


def until_free(what: str) -> Arm:
    """The arm that counts GC cycles until a dropped object's memory is gone."""
    return Arm(f"UntilFree{what}", setting="precise")


def _siebenmann() -> Iterator[Case]:
    for go in (DOCUMENT_GO, TODAY_GO):
        yield Case("cstr", FREE, go, _AS_PUBLISHED, repeats=3)
        yield Case("cstr", HEAP_FREE, go, _AS_PUBLISHED, repeats=2, every=2)
        yield Case("cstr", AUTO, go, _AS_PUBLISHED)
        for setting, since in (("published", "tiny"), ("precise", "standard")):
            arm = profiled("EmptyFinalizer", setting)
            yield Case("objects", arm, go, _PROFILED_LONG, since=since)
        for what in ("Plain", "Finalizer") + (("Cleanup",) if go == TODAY_GO else ()):
            yield Case("objects", until_free(what), go, _LIFETIMES, every=2)
        mechanisms = ("Allocate", "Finalize") + (("Cleanup",) if go == TODAY_GO else ())
        for words in SIZES:
            n = _CURVE[words] * 1000
            for mechanism in mechanisms:
                later = words in _BETWEEN or mechanism == "Cleanup"
                arm, since = sized(mechanism, words), "standard" if later else "tiny"
                yield Case("objects", arm, go, n, since=since)
                # With the GC off every object is kept: memory caps their N.
                off, kept = sized(mechanism, words, gogc="off"), 10 * words + _RECORD
                few = min(n, 300_000)
                yield Case("objects", off, go, few, every=3, since="standard", kept=kept)
        for benchmark, n in (("AllocateFree", _AS_PUBLISHED), ("AllocateAuto", _FOUR_CYCLES)):
            arm, repeats = Arm(benchmark, setting="precise"), _REPEATS.get(benchmark, 1)
            yield Case("cstr", arm, go, n, repeats, every=2, since="standard")
    yield from _twins("AllocateFree", "AllocateAuto")


def _twins(baseline: str, dear: str) -> Iterator[Case]:
    """The A/A controls: at the quick budget the one that bears more noise stands for both."""
    for benchmark in (baseline, dear):
        for twin in ("relinked", "same"):
            arm, since = Arm(benchmark, twin=twin), "tiny" if twin == "relinked" else "standard"
            repeats = 3 if benchmark == baseline else 1
            yield Case("cstr", arm, TODAY_GO, _AS_PUBLISHED, repeats, every=2, since=since)


# --- The issue on AddCleanup ---------------------------------------------------

CLEANUP = Arm("AllocateCleanup")
DEFER = Arm("AllocateDefer")
GOROUTINES = (1, 2, 4, 8, 16, 32, 64)
_SHARED = 800_000


def shared(benchmark: str, goroutines: int, gogc: str = "100") -> Arm:
    """An arm that shares its operations among goroutines: "Free", "Auto", "Cleanup", …"""
    return Arm(f"Parallel{benchmark}", gogc, sub=(("goroutines", str(goroutines)),))


ALLOCATE_ONLY = Arm("AllocateOnly")


def _addcleanup() -> Iterator[Case]:
    for go in (CLEANUP_GO, ISSUE_GO, TODAY_GO):
        # The release of neither the document nor today waits for the standard budget.
        since = "standard" if go == CLEANUP_GO else "tiny"
        yield Case("cstr", FREE, go, _AS_PUBLISHED, repeats=3, since=since)
        yield Case("cstr", DEFER, go, _AS_PUBLISHED, repeats=2, since=since)
        yield Case("cstr", CLEANUP, go, _AS_PUBLISHED, since=since)
        yield Case("cstr", AUTO, go, _AS_PUBLISHED, since=since)
        off = replace(CLEANUP, gogc="off")
        yield Case("cstr", off, go, _AS_PUBLISHED, since=since, kept=_RECORD)
        for arm, kept in ((FREE, 0), (DEFER, 0), (AUTO, _RECORD)):
            off = replace(arm, gogc="off")
            yield Case("cstr", off, go, _AS_PUBLISHED, every=3, since="standard", kept=kept)
        profile = profiled("AllocateCleanup", gogc="off")
        yield Case("cstr", profile, go, _AS_PUBLISHED, since=since, kept=_RECORD)
        only = Case("parallel", ALLOCATE_ONLY, go, _AS_PUBLISHED, every=2, kept=_RECORD)
        yield replace(only, since=since)
        for benchmark, n in (
            ("AllocateFree", _AS_PUBLISHED),
            ("AllocateCleanup", _FOUR_CYCLES),
            ("AllocateAuto", _FOUR_CYCLES),
        ):
            arm, repeats = Arm(benchmark, setting="precise"), _REPEATS.get(benchmark, 1)
            yield Case("cstr", arm, go, n, repeats, every=2, since="standard")
    for goroutines in GOROUTINES:
        for benchmark in ("Free", "Auto", "Cleanup"):
            arm, cpus = shared(benchmark, goroutines), (goroutines + 1) // 2
            case = Case("parallel", arm, TODAY_GO, _SHARED, every=3, cpus=cpus)
            yield replace(case, since="standard")
    yield from _twins("AllocateFree", "AllocateCleanup")


# --- What to do instead ---------------------------------------------------------


def slabs(benchmark: str, handles: int = 64) -> Arm:
    """An arm with slabs of so many handles: "Slab", "SlabClose", "Reuse", …"""
    return Arm(benchmark, sub=(("handles", str(handles)),))


def living(benchmark: str, live: int = 100_000) -> Arm:
    """An arm that closes one of so many live handles at random: "LiveSlab", …"""
    return Arm(benchmark, sub=(("live", str(live)),))


LIVE = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
LIVE_REMEDIES = ("LiveManual", "LiveSlab", "LiveCleanup", "LiveFinalizer")
HEAP_REMEDIES = ("HeapManual", "HeapSlab", "HeapCleanup", "HeapFinalizer")
# What is decided between, beside what they are measured against.
REMEDIES: tuple[Arm, ...] = (
    Arm("Batch"),
    Arm("Reuse"),
    *(slabs("Slab", handles) for handles in (256, 64, 8)),
    slabs("SlabWeighted"),
    slabs("SlabClose"),
    Arm("Pinned"),
    Arm("Stop"),
    Arm("LastFirst"),
    Arm("Padded"),
    Arm("Registry"),
)
SURVIVORS = slabs("SlabSurvivors")
_CLOSED_AT_RANDOM = 200_000


def _remedies() -> Iterator[Case]:
    for go in (DOCUMENT_GO, CLEANUP_GO, ISSUE_GO, TODAY_GO):
        since = "tiny" if go == TODAY_GO else "standard"
        yield Case("cstr", FREE, go, _AS_PUBLISHED, repeats=3, since=since)
        yield Case("cstr", AUTO, go, _AS_PUBLISHED, every=2, since=since)
        for arm in (slabs("Slab"), slabs("SlabClose")):
            yield Case("remedies", arm, go, _AS_PUBLISHED, since=since)
        yield Case("remedies", living("LiveSlab"), go, _CLOSED_AT_RANDOM, since=since)
        if go == DOCUMENT_GO:
            continue
        yield Case("remedies", living("LiveCleanup"), go, _CLOSED_AT_RANDOM, since=since)
    go = TODAY_GO
    yield Case("cstr", HEAP_FREE, go, _AS_PUBLISHED)
    yield Case("cstr", CLEANUP, go, _AS_PUBLISHED)
    for arm in REMEDIES:
        if arm not in (slabs("Slab"), slabs("SlabClose")):
            every = 2 if arm == Arm("Registry") else 1
            yield Case("remedies", arm, go, _AS_PUBLISHED, every=every)
    for handles in (8, 64, 256):
        survivors = slabs("SlabSurvivors", handles)
        yield Case("remedies", survivors, go, _AS_PUBLISHED, every=2, kept=_RECORD)
    for live in LIVE:
        for benchmark in LIVE_REMEDIES:
            arm = living(benchmark, live)
            if arm in (living("LiveSlab"), living("LiveCleanup")):
                continue
            tier = {100_000: "tiny", 10_000_000: "thorough"}.get(live, "standard")
            every = 1 if live == 100_000 else 2
            yield Case("remedies", arm, go, _CLOSED_AT_RANDOM, every=every, since=tier)
    for benchmark in HEAP_REMEDIES:
        yield Case("remedies", Arm(benchmark), go, _AS_PUBLISHED, every=2)
    yield from _twins("AllocateFree", "AllocateAuto")


# --- How precise the measuring is ---------------------------------------------

METHODS: Mapping[str, str] = MappingProxyType(
    {
        "count": "go test -count=10, as people run it",
        "matched": "go test -count, our clock, procs, pinning and N",
        "rounds": "fresh processes in paired rounds",
    }
)
LOADS: Mapping[str, str] = MappingProxyType(
    {"quiet": "quiet", "busy": "another process keeps a core busy"}
)
MEASUREMENTS = ("1", "2", "3", "4")
# How often a round of ours samples the baseline: its short samples are the noisy ones.
BASELINE_REPEATS = 8
_COMPARED = ("AllocateFree", "AllocateAuto", "AllocateCleanup")
# Long enough for the GC's own rhythm to show in sixteen laps.
_DRIFTED = 8_000_000


def measured_by(benchmark: str, method: str, load: str, measurement: str) -> Arm:
    """An arm of one of the independent measurements of the precision experiment."""
    setting = "published" if method == "count" else "precise"
    more = (("method", method), ("load", load), ("measurement", measurement))
    return Arm(benchmark, setting=setting, more=more)


def precision_clock(method: str) -> str:
    """The metric that a method compares."""
    return "ns/op" if method == "count" else "cpu-ns/op"


def independent(benchmark: str, method: str, load: str) -> tuple[Ratio, ...]:
    """The independent measurements of one ratio to the baseline."""
    return tuple(
        Ratio(
            measured_by(benchmark, method, load, measurement),
            measured_by("AllocateFree", method, load, measurement),
            precision_clock(method),
        )
        for measurement in MEASUREMENTS
    )


DRIFT = Arm("AllocateAutoLaps")


def _precision() -> Iterator[Case]:
    for method in METHODS:
        n = 0 if method == "count" else _AS_PUBLISHED
        for load in LOADS:
            for measurement in MEASUREMENTS:
                for benchmark in _COMPARED:
                    arm = measured_by(benchmark, method, load, measurement)
                    often = method == "rounds" and benchmark == "AllocateFree"
                    repeats = BASELINE_REPEATS if often else 1
                    yield Case("cstr", arm, TODAY_GO, n, repeats=repeats)
    yield Case("cstr", DRIFT, TODAY_GO, _DRIFTED)


EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        e.name: e
        for e in (
            Experiment(
                name="lemire",
                chapter="01-lemire",
                question="Is a finalizer ten times dearer than freeing by hand?",
                cases=tuple(_lemire()),
                headline=(
                    Ratio(AUTO, FREE),
                    Ratio(Arm("AllocateAuto", gogc="off"), Arm("AllocateFree", gogc="off")),
                    Ratio(Arm("AllocateDummy"), AUTO),
                ),
            ),
            Experiment(
                name="siebenmann",
                chapter="02-siebenmann",
                question="Where does a finalizer's time go?",
                cases=tuple(_siebenmann()),
                headline=(Ratio(AUTO, FREE),),
            ),
            Experiment(
                name="addcleanup",
                chapter="03-addcleanup",
                question="Is AddCleanup five times dearer, and twice as cheap as a finalizer?",
                cases=tuple(_addcleanup()),
                headline=(Ratio(CLEANUP, FREE), Ratio(AUTO, CLEANUP), Ratio(DEFER, FREE)),
                document=ISSUE_GO,
            ),
            Experiment(
                name="remedies",
                chapter="08-instead",
                question="What to do instead of a finalizer or cleanup for each object?",
                cases=tuple(_remedies()),
                headline=(Ratio(slabs("Slab"), FREE, "settled-ns/op"),),
                document=TODAY_GO,
            ),
            Experiment(
                name="precision",
                chapter="09-how-sure",
                question="Does the measuring give the same figure again?",
                cases=tuple(_precision()),
                headline=(),
                document=TODAY_GO,
                apart="make precision",
            ),
        )
    }
)


def experiment(name: str) -> Experiment:
    """The experiment of that name; GccostError with the valid ones if there is none."""
    return _named(EXPERIMENTS, name, "experiment")


def _named(known: Mapping[str, T], name: str, kind: str) -> T:
    if name not in known:
        raise GccostError(f"there is no {kind} {name!r}", mend=f"name one of {', '.join(known)}")
    return known[name]
