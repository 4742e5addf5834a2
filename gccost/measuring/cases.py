"""Variants, cases, studies and budgets, as data.

A **variant** is a way to run a benchmark. A **case** is a variant on one release with a
fixed number of operations N. A **study** is a named list of cases, and of the claims that
they test. A case that several studies share is measured once. The studies are in
`gccost.studies`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from gccost.errors import GccostError, nearest
from gccost.measuring import benchmarks, toolchains
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO, number

T = TypeVar("T")


@dataclass(frozen=True)
class Budget:
    """The time of a report, the rounds of each case, and the target precision of figures."""

    name: str
    seconds: float  # of a `make report` in all; a campaign gets what set-up and pages leave
    rounds: int  # of each case, before the open questions
    half_width: float  # target relative 95 % half-width of each headline figure
    scale: float = 1.0  # of every N; below 1 in tests only, never pooled with other samples

    @property
    def most(self) -> float:
        """The seconds after which even the first rounds end."""
        return 1.5 * self.seconds or math.inf

    def left(self, began: float, now: float, pages: float) -> Budget:
        """The budget of a campaign that starts now; the report began then, in Unix seconds.

        `pages` is the time in seconds that its pages will take.
        """
        return replace(self, seconds=max(self.seconds - (now - began) - pages, 0.0))

    def reaches(self, tier: str) -> bool:
        """Whether this budget measures a case whose `min_budget` is `tier`."""
        names = list(BUDGETS)
        return names.index(self.name) >= names.index(tier)


BUDGETS: Mapping[str, Budget] = MappingProxyType(
    {
        b.name: b
        for b in (
            Budget("tiny", seconds=0.0, rounds=1, half_width=1.0, scale=1 / 200),
            Budget("quick", seconds=540.0, rounds=3, half_width=0.08),
            Budget("standard", seconds=2700.0, rounds=4, half_width=0.04),
            Budget("thorough", seconds=10800.0, rounds=8, half_width=0.02),
        )
    }
)


def budget(name: str) -> Budget:
    """The budget of that name. Raises GccostError, listing the valid names, if there is none."""
    return one_of(BUDGETS, name, "budget")


def one_of(known: Mapping[str, T], name: str, kind: str) -> T:
    if name not in known:
        raise GccostError(f"there is no {kind} {name!r}", hint=nearest(name, known))
    return known[name]


# The package of gosrc/ that writes patched runtimes.
OVERLAY = "overlay"
# Values of GOEXPERIMENT: without Green Tea, the newer algorithm of marking (Go 1.26 and 1.27 have
# both), and without the allocators for single size classes (the default of Go 1.27).
NO_GREEN_TEA = "nogreenteagc"
ONE_MALLOC = "nosizespecializedmalloc"
EXPERIMENTS = MappingProxyType({NO_GREEN_TEA: "no Green Tea", ONE_MALLOC: "one malloc"})

PROCESSES = 4  # of a short loop in a round: one would give a chance value
CONTROLS = ("same", "relinked")  # the A/A controls of a variant


@dataclass(frozen=True)
class Variant:
    """A benchmark with its settings, except the release.

    `control` makes it an A/A control of the variant without one: "same" runs the same
    binary again, "relinked" a binary linked with another layout.
    `profile` is "cpu" for a run under the CPU profiler, whose times are not used.
    `procs` is GOMAXPROCS if it differs from the setting's own, `limit` is GOMEMLIMIT, and
    `arenas` is glibc's MALLOC_ARENA_MAX; if empty, threads have arenas of their own.
    `runtime` names a patched Go runtime for the build (see gosrc/overlay), or is one of
    EXPERIMENTS; if empty, the release's own runtime is used.
    `sub` selects a sub-benchmark of the program, such as words=8. `more` has keys of a single
    experiment, which programs do not see. A Java variant has no `gogc`; its `more` has the
    JVM's settings (see `java.FLAGS`).
    """

    benchmark: str
    gogc: str = "100"
    setting: str = "published"
    control: str = ""
    profile: str = ""
    procs: str = ""
    limit: str = ""
    arenas: str = ""
    runtime: str = ""
    sub: tuple[tuple[str, str], ...] = ()
    more: tuple[tuple[str, str], ...] = ()

    def keys(self) -> dict[str, str]:
        """The keys of the variant in a result's name, without the release."""
        settings = {
            "gogc": self.gogc,
            "gomemlimit": self.limit,
            "gomaxprocs": self.procs,
            "setting": self.setting,
            "control": self.control,
            "profile": self.profile,
            "runtime": self.runtime,
            "arenas": self.arenas,
        }
        return {key: value for key, value in settings.items() if value} | dict(self.more)

    def keyed(self, **sub: object) -> Variant:
        """The variant of a sub-benchmark, such as keyed(words=8)."""
        return replace(self, sub=tuple((key, str(value)) for key, value in sub.items()))

    def on(self, release: str) -> str:
        """The name of its samples on a release, without the GOMAXPROCS suffix."""
        keys = toolchains.keyed(release) | self.keys()
        return self.printed + "".join(f"/{k}={v}" for k, v in keys.items())

    @property
    def short(self) -> bool:
        """Whether its loop is short, and allocates nothing on the Go heap."""
        return benchmarks.of(self.benchmark).has("short") and not self.profile

    @property
    def needs_cleanup(self) -> bool:
        """Whether it calls runtime.AddCleanup; all others run on every release."""
        return benchmarks.of(self.benchmark).has("cleanup")

    @property
    def printed(self) -> str:
        """The name that the program gives its samples."""
        return self.benchmark + "".join(f"/{k}={v}" for k, v in self.sub)


class Build(NamedTuple):
    """The inputs of a round's binary; its layout depends on `relinked`."""

    program: str
    release: str
    runtime: str
    relinked: bool


@dataclass(frozen=True)
class Case:
    """A variant of a program (a package of gosrc/ or javasrc/) on one release, with a fixed N.

    If N is 0, `go test` or JMH chooses it by time.

    `retained_bytes` is the memory that an operation keeps until the loop ends, which limits
    N. A `traced` case runs with gctrace=1.
    """

    program: str
    variant: Variant
    release: str
    n: int
    min_budget: str = "tiny"  # the smallest budget that measures it
    cpus: int = 1  # the fewest on which it is measured
    retained_bytes: int = 0
    traced: bool = False
    once: bool = False  # the result is deterministic, so one sample is enough
    rounds: int = 0  # the fewest at the standard budget and larger ones

    def __post_init__(self) -> None:
        in_go = toolchains.key(self.release) == "go"
        if in_go and self.variant.needs_cleanup and number(self.release) < number("1.24"):
            raise GccostError(
                f"Go {self.release} has no runtime.AddCleanup",
                f"case {self.variant.benchmark}",
                "name Go 1.24 or later",
            )

    def scaled(self, scale: float) -> Case:
        """The case with a scaled N."""
        return replace(self, n=max(1, round(self.n * scale)) if self.n else 0)

    def capped(self, memory: int) -> Case:
        """The case with N limited so that its retained bytes fit into `memory` bytes."""
        fits = memory // self.retained_bytes if self.retained_bytes else self.n
        return replace(self, n=max(1, fits)) if fits < self.n else self

    @property
    def processes(self) -> int:
        """The number of its processes in a round."""
        return PROCESSES if self.variant.short else 1

    @property
    def build(self) -> Build:
        """The inputs of its binary in a round."""
        return Build(
            self.program, self.release, self.variant.runtime, self.variant.control == "relinked"
        )

    @property
    def leaks(self) -> bool:
        """Whether it never frees its C blocks, by design."""
        return benchmarks.of(self.variant.benchmark).has("leaks")

    @property
    def name(self) -> str:
        """The name of its samples, without the GOMAXPROCS suffix."""
        return self.variant.on(self.release)


@dataclass(frozen=True)
class Study:
    """The cases and the claims of a document or a question.

    `document` is the release of the published values that it tests. A study `on_request` is
    measured only if it is asked for by name. The cases of a `repeated` one are measurements of
    one ratio, each made without a pause. `claims` are `gccost.judging.claims.Claim`s, and
    `figures` are `gccost.judging.quantities.Quantity`s.
    """

    name: str
    chapter: str  # its notebook
    question: str
    cases: tuple[Case, ...]
    document: str = DOCUMENT_GO
    on_request: bool = False
    repeated: bool = False
    claims: tuple[Any, ...] = ()
    figures: tuple[Any, ...] = ()  # quantities that the first page shows
    metric: str = "ns"  # that its charts show
    quick: bool = True  # whether the quick budget measures it

    def within(self, limit: Budget) -> tuple[Case, ...]:
        """The cases at a budget, with the budget's N."""
        return tuple(c.scaled(limit.scale) for c in self.cases if limit.reaches(c.min_budget))

    def evidence(self, claim: Any) -> str:
        """The notebook and the heading that show a claim, such as "01-lemire#the-ratio"."""
        anchor: str = claim.anchor
        return anchor if "#" in anchor else f"{self.chapter}#{anchor}"

    @property
    def notebooks(self) -> tuple[str, ...]:
        """Its chapter, and the other notebooks that show its claims."""
        shown = (self.evidence(claim).partition("#")[0] for claim in self.claims)
        return tuple(dict.fromkeys([self.chapter, *shown]))

    def joins(self, limit: Budget) -> bool:
        """Whether a campaign of all studies measures it at a budget."""
        return not self.on_request and (self.quick or limit.name != "quick")

    @property
    def releases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c.release for c in self.cases))

    @property
    def packages(self) -> list[str]:
        """The packages of gosrc/ that are measured."""
        patched = {c.variant.runtime for c in self.cases} - {"", *EXPERIMENTS}
        overlay = {OVERLAY} if patched else set()
        return sorted({c.program for c in self.cases} | overlay)


# --- What several studies share ---

# Near the N of the documents' own runs: a second at 650 ns is about 1.8 million,
# the Go issue's finalizer ran 1,739,244. Less than half a million runs no GC.
AS_PUBLISHED = 1_600_000
# Bytes retained per uncollected object: a small object, the record of its finalizer or
# cleanup, and its C memory or AddCleanup's allocation.
RECORD = 250

FREE = Variant("AllocateFree")
AUTO = Variant("AllocateAuto")
HEAP_FREE = Variant("AllocateHeapFree")
CLEANUP = Variant("AllocateCleanup")
DEFER = Variant("AllocateDefer")
ALLOCATE_ONLY = Variant("AllocateOnly")

GOROUTINES = (1, 2, 4, 8, 16, 32, 64)
SHARED_WORK = 800_000


def shared(benchmark: str, goroutines: int) -> Variant:
    """A variant that shares its operations among goroutines: "Free", "Auto", "Cleanup", …"""
    return Variant(f"Parallel{benchmark}").keyed(goroutines=goroutines)


def profiled(benchmark: str, gogc: str = "100") -> Variant:
    """A variant that runs a benchmark under the CPU profiler."""
    return Variant(benchmark, gogc, profile="cpu")


def each(
    program: str, variants: Iterable[Variant], release: str, n: int, min_budget: str = "tiny"
) -> Iterator[Case]:
    """The cases of several variants of a program."""
    for variant in variants:
        yield Case(program, variant, release, n, min_budget)


def distinct(cases: Iterable[Case]) -> tuple[Case, ...]:
    """The cases without those that came before under the same name."""
    by_name: dict[str, Case] = {}
    for case in cases:
        by_name.setdefault(case.name, case)
    return tuple(by_name.values())


def controls() -> Iterator[Case]:
    """The A/A controls: the baseline and a GC-heavy case, each relinked."""
    relinked = [replace(variant, control="relinked") for variant in (FREE, AUTO)]
    return each("cstr", relinked, TODAY_GO, AS_PUBLISHED)


def among_goroutines(program: str, benchmark: str, min_budget: str = "standard") -> Iterator[Case]:
    """The cases that share a benchmark's work among 1 goroutine to two per CPU."""
    for goroutines in GOROUTINES:
        variant, cpus = shared(benchmark, goroutines), (goroutines + 1) // 2
        yield Case(program, variant, TODAY_GO, SHARED_WORK, min_budget, cpus)
