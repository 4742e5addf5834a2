"""Studies and budgets, as data.

A **case** is a benchmark with its settings, on one release. A **study** is a named list of cases,
and of the claims that they test; `gccost.studies` has them. A study lists its cases as text, a grid
a line, in the syntax of their names (see `gccost.cases.jobs`), with the smallest budget that
measures them:

    quick Allocate|Finalize/words=1|4|16/go=document|today

A case that several studies, or several lines, have is measured once, at the smallest of their
budgets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any, TypeVar

from gccost.cases import benchmarks, jobs, versions
from gccost.cases.benchmarks import EXPERIMENTS, STOCK
from gccost.cases.versions import DOCUMENT_GO
from gccost.errors import GccostError, expect
from gccost.run.jobtable import Job

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
        """The seconds after which even the first rounds end.

        Large, because two rounds are worth nothing: an estimate needs three.
        """
        return 3 * self.seconds or math.inf

    def left(self, began: float, now: float, pages: float) -> Budget:
        """The budget of a campaign that starts now; the report began then, in Unix seconds.

        `pages` is the time in seconds that is kept for its pages.
        """
        return replace(self, seconds=max(self.seconds - (now - began) - pages, 0.0))

    def reaches(self, tier: str) -> bool:
        """Whether this budget is as large as that of the name `tier`."""
        tiers = list(BUDGETS)
        return tiers.index(self.name) >= tiers.index(tier)


_BUDGETS = (
    Budget("tiny", seconds=0.0, rounds=1, half_width=1.0, scale=1 / 200),
    Budget("quick", seconds=540.0, rounds=3, half_width=0.08),
    Budget("standard", seconds=2700.0, rounds=4, half_width=0.04),
    Budget("thorough", seconds=10800.0, rounds=8, half_width=0.02),
)
BUDGETS: Mapping[str, Budget] = MappingProxyType({budget.name: budget for budget in _BUDGETS})
SMALLEST = "tiny"


def budget(name: str) -> Budget:
    """The budget of that name. Raises GccostError, listing the valid names, if there is none."""
    return one_of(BUDGETS, name, "budget")


def one_of(choices: Mapping[str, T], name: str, kind: str) -> T:
    expect(choices, name, kind)
    return choices[name]


# The packages of gosrc/ that write patched runtimes: the one that counts what is registered, and
# all others.
COUNTING, OVERLAY = "counting", "overlay"
# What a grid may name in place of a release; "all" are those on which a case can be measured.
ALL = "all"
RELEASES: Mapping[str, Mapping[str, str]] = {
    "go": {
        "cloudflare": versions.CLOUDFLARE_GO,
        "document": DOCUMENT_GO,
        "issue": versions.ISSUE_GO,
        "today": versions.TODAY_GO,
        **{release: release for release in versions.GO_RELEASES},
    },
    "jdk": {
        "document": versions.DOCUMENT_JDK,
        "today": versions.TODAY_JDK,
        **{versions.keyed(release)["jdk"]: release for release in versions.JDK_RELEASES},
    },
}


def expanded(grid: str) -> Iterator[tuple[str, str]]:
    """The cases of a grid, as text, each with its release.

    The benchmarks vary fastest, then the last key. Raises GccostError for an unknown release.
    """
    names, keys = benchmarks.split(grid)
    languages = keys.keys() & RELEASES.keys()
    if len(languages) != 1:
        raise GccostError("it does not name a release", grid, "add /go=today or /jdk=today")
    (language,) = languages
    chosen = [_releases(language, word, grid) for word in keys.pop(language)]
    for releases, *values in product(chosen, *keys.values()):
        settings = ""
        for key, value in zip(keys, values, strict=True):
            settings += f"/{key}={value}"
        for release, name in product(releases, names):
            case = f"{name}{settings}"
            if len(releases) == 1 or not jobs.is_too_old(case, release):
                yield case, release


def _releases(language: str, word: str, grid: str) -> list[str]:
    """The release, or all, that a word of a grid names."""
    named = RELEASES[language]
    if word == ALL:
        return sorted(set(named.values()), key=versions.age)
    expect([*named, ALL], word, "release", grid)
    return [named[word]]


@dataclass(frozen=True)
class Study:
    """The cases and the claims of a document or a question.

    `cases` has a line for each grid, with its budget. The cases of `figures`, and of claims that
    are scored and whose quantity is not `partial`, need no line; they are measured at every budget.

    `report` is the smallest budget at which a report of everything measures the study; if it is
    empty, only a report of this study does. `document` is the release of the published values
    that it tests. From the standard budget on, each case gets `rounds` rounds at least. `claims`
    are `gccost.judging.claims.Claim`s, and `figures` `gccost.judging.quantities.Quantity`s.
    """

    name: str
    chapter: str  # its notebook
    question: str
    cases: str = ""
    document: str = DOCUMENT_GO
    report: str = "quick"
    rounds: int = 0
    claims: tuple[Any, ...] = ()
    figures: tuple[Any, ...] = ()  # quantities that the first page shows
    metric: str = "ns"  # that its charts show

    @cached_property
    def _measured(self) -> Mapping[str, tuple[Job, str]]:
        """The job of each case, and the smallest budget that measures it, by name."""
        tiers = list(BUDGETS)
        found: dict[str, tuple[Job, str]] = {}
        for job, tier in (*self._listed(), *self._needed()):
            name = job["name"]
            if self.rounds:
                job["rounds"] = self.rounds
            _, other = found.get(name, (job, tier))
            found[name] = job, min(tier, other, key=tiers.index)
        by_age = sorted(found.items(), key=lambda item: versions.age(item[1][0]["release"]))
        return dict(by_age)

    def _listed(self) -> Iterator[tuple[Job, str]]:
        """The cases of the lines. Raises GccostError, with the line, for what is unknown."""
        for text in self.cases.splitlines():
            line = text.strip()
            if not line:
                continue
            tier, _, grid = line.partition(" ")
            try:
                one_of(BUDGETS, tier, "budget")
                found = [jobs.job(case, release) for case, release in expanded(grid.strip())]
            except GccostError as error:
                where = f"study {self.name}: {line} ({error.location or tier})"
                raise GccostError(error.message, where, error.hint) from None
            for job in found:
                yield job, tier

    def _needed(self) -> Iterator[tuple[Job, str]]:
        """The cases of the claims and the figures."""
        asked = []
        for claim in self.claims:
            if claim.rule.scored:
                asked += [(claim.quantity, release) for release in claim.releases]
        asked += [(figure, self.document) for figure in self.figures]
        for quantity, release in asked:
            if quantity.partial:
                continue
            for case in quantity.cases:
                yield jobs.job(case, release), SMALLEST

    @cached_property
    def jobs(self) -> Mapping[str, Job]:
        """The jobs of its cases by name, with their whole N; those of older releases first."""
        return {name: job for name, (job, _) in self._measured.items()}

    def within(self, limit: Budget) -> list[Job]:
        """The jobs that a budget measures, with their whole N."""
        return [job for job, tier in self._measured.values() if limit.reaches(tier)]

    def evidence(self, claim: Any) -> str:
        """The notebook and the heading that show a claim, such as "01-lemire#the-ratio"."""
        anchor: str = claim.anchor
        return anchor if "#" in anchor else f"{self.chapter}#{anchor}"

    @property
    def notebooks(self) -> tuple[str, ...]:
        """Its chapter, and the other notebooks that show its claims."""
        names = [self.chapter]
        for claim in self.claims:
            name, _, _ = self.evidence(claim).partition("#")
            names.append(name)
        return tuple(dict.fromkeys(names))

    @property
    def on_request(self) -> bool:
        """Whether it is measured only if it is asked for by name."""
        return not self.report

    def joins(self, limit: Budget) -> bool:
        """Whether a report of everything measures it at a budget; the trial has all but those."""
        if self.on_request:
            return False
        return limit.name == SMALLEST or limit.reaches(self.report)

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases of its cases, the oldest first."""
        releases = [job["release"] for job in self.jobs.values()]
        return tuple(dict.fromkeys(releases))

    @property
    def packages(self) -> list[str]:
        """The packages of gosrc/ that are measured."""
        without_overlay = {None, STOCK, *EXPERIMENTS.values()}
        found = set()
        for job in self.jobs.values():
            found.add(job["program"])
            runtime = job.get("runtime")
            if runtime not in without_overlay:
                found.add(writes_runtime(str(runtime)))
        return sorted(found)


def writes_runtime(name: str) -> str:
    """The package of gosrc/ that writes the patched runtime of that name."""
    return COUNTING if name == COUNTING else OVERLAY


class Rank(IntEnum):
    """What open questions are about, the most urgent first."""

    FIGURE = 0  # imprecise, of a headline or of the table of prices
    VERDICT = 1  # undecided
    COST = 2  # imprecise, of any other case


@dataclass(frozen=True)
class OpenQuestion:
    """An undecided verdict or an imprecise figure: its cases, and the rounds it needs.

    `width` is the relative half-width of the figure's interval.
    """

    cases: tuple[str, ...]
    rounds: int
    rank: Rank = Rank.VERDICT
    width: float = 0.0


@dataclass(frozen=True)
class Standing:
    """The state of a run: the open questions, and the numbers of decided and all verdicts.

    `left` is the number of undecided verdicts that are no question, because the recorded run
    could not decide them either.
    """

    open_questions: tuple[OpenQuestion, ...] = ()
    decided: int = 0
    verdicts: int = 0
    left: int = 0
