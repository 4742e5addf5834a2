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
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO

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
            Budget("quick", seconds=72.0, min_rounds=4, half_width=0.02),
            Budget("standard", seconds=300.0, min_rounds=6, half_width=0.01),
            Budget("thorough", seconds=1800.0, min_rounds=12, half_width=0.005),
        )
    }
)


def budget(name: str) -> Budget:
    """The budget of that name; GccostError with the valid ones if there is none."""
    return _named(BUDGETS, name, "budget")


# Lemire's empty finalizer: what it was given to free, nothing frees.
LEAKS_BY_DESIGN = frozenset({"AllocateDummy"})


@dataclass(frozen=True)
class Arm:
    """A benchmark and the circumstances that name it, but for the Go release.

    `twin` makes it an A/A control of the arm without one: "same" runs the same
    binary again, "relinked" one that was linked anew with another layout.
    `profile` is "cpu" for a run under the CPU profiler, whose times are not used.
    `more` holds keys that only one experiment knows.
    """

    benchmark: str
    gogc: str = "100"
    setting: str = "published"
    twin: str = ""
    profile: str = ""
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
        return self.benchmark + "".join(f"/{k}={v}" for k, v in keys.items())


@dataclass(frozen=True)
class Case:
    """An arm of a program (a package of gosrc/) on one Go release, with a fixed N.

    An N of 0 leaves it to `go test`, which fits it to the clock.

    A round takes `repeats` samples of it, spread over the round, and their
    median stands for the round: where a sample is short and cheap, that keeps
    the first thing that disturbs one out of every ratio.
    """

    program: str
    arm: Arm
    go: str
    n: int
    repeats: int = 1
    since: str = "tiny"  # the least budget that measures it

    def scaled(self, scale: float) -> Case:
        """The same case at a budget that scales every N."""
        return replace(self, n=max(1, round(self.n * scale)) if self.n else 0)

    @property
    def leaks(self) -> bool:
        """Whether it never frees its C blocks, by design."""
        return self.arm.benchmark in LEAKS_BY_DESIGN

    @property
    def name(self) -> str:
        """The name of its samples, without the GOMAXPROCS suffix."""
        return self.arm.on(self.go)


@dataclass(frozen=True)
class Ratio:
    """Two arms compared by one metric, sample by sample within a round."""

    numerator: Arm
    denominator: Arm
    metric: str = "ns/op"


@dataclass(frozen=True)
class Experiment:
    """A named list of cases, and the ratios whose intervals say when to stop.

    `apart` is the command that measures it, where that is not `make report`.
    """

    name: str
    chapter: str  # the notebook that tells it
    question: str
    cases: tuple[Case, ...]
    headline: tuple[Ratio, ...]
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
# Where N is ours to choose, it is large enough for the GC to run eight times.
_EIGHT_CYCLES = 8_000_000
# Enough for a hundred stacks at the profiler's 100 a second.
_PROFILED = 800_000

FREE = Arm("AllocateFree")
AUTO = Arm("AllocateAuto")


def _lemire() -> Iterator[Case]:
    def case(arm: Arm, go: str, n: int = _AS_PUBLISHED, since: str = "tiny") -> Case:
        return Case("cstr", arm, go, n, repeats=_REPEATS.get(arm.benchmark, 1), since=since)

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
                    repeats = _REPEATS.get(benchmark, 1) if method == "rounds" else 1
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
                name="precision",
                chapter="09-how-sure",
                question="Does the measuring give the same figure again?",
                cases=tuple(_precision()),
                headline=(),
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
