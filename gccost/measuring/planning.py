"""What a campaign measures: the cases of studies at a budget, and the tools for them."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any

from gccost import paths
from gccost.errors import GccostError
from gccost.measuring import jobs, languages, machine, sampler, toolchains
from gccost.measuring.benchfmt import Sample
from gccost.measuring.cases import Budget, Build, Case, Study
from gccost.measuring.machine import Description
from gccost.measuring.progress import Progress, Say, until_done, unwatched
from gccost.measuring.runs import Run
from gccost.processes import ProcessGroup


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


@dataclass(frozen=True)
class Questions:
    """The cases that verdicts need, and a function that finds a run's open questions.

    `needed` has (variant, release) pairs, which are measured at every budget. See
    `gccost.judging.questions`.
    """

    needed: frozenset[Any] = frozenset()
    standing: Callable[[Run], Standing] = field(default=lambda run: Standing())


@dataclass(frozen=True)
class Plan:
    """Studies at a budget on this machine, with the tools and cases to measure them."""

    studies: tuple[Study, ...]
    budget: Budget
    questions: Questions
    description: Description  # of the machine
    tools: dict[str, languages.Tools] = field(default_factory=dict)  # by study
    pool: dict[str, Case] = field(default_factory=dict)  # each is measured once for all studies
    toolchains: dict[str, Any] = field(default_factory=dict)  # by release
    compiler: dict[str, Any] = field(default_factory=dict)  # by kind
    missing: dict[str, str] = field(default_factory=dict)  # the reason, by release
    programs: dict[str, str] = field(default_factory=dict)  # the hash of each one's sources
    compilers: dict[str, str] = field(default_factory=dict)  # the version, by kind
    failures: Counter[str] = field(default_factory=Counter)  # by case, of this campaign so far
    # Whether a release's linker can randomize the layout.
    random_layouts: dict[str, bool] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the runs are that this plan resumes or adds to."""
        return paths.runs()

    @cached_property
    def jobs(self) -> dict[str, jobs.Job]:
        """The row of each case that is measured, by name."""
        return {name: jobs.job(case) for name, case in self.pool.items()}

    @property
    def fingerprint(self) -> str:
        return machine.fingerprint(self.description)

    @property
    def measured(self) -> list[str]:
        """The names of the studies with a case that is measured."""
        return [
            study.name
            for study in self.studies
            if any(case.name in self.pool for case in study.cases)
        ]

    def build(self, what: Build, layout: int, into: Path, run: languages.Run) -> Path:
        """Build a binary; see `Language.build`."""
        language = languages.of_release(what.release)
        compiler = self.compiler[language.compiles_with]
        toolchain = self.toolchains[what.release]
        return language.build(what, toolchain, compiler, layout, into, run)

    def sample(self, binary: Path, case: Case, scratch: Path, profile: Path | None) -> Sample:
        """Run a case in a fresh process."""
        java = languages.jvm(self.toolchains[case.release])
        return sampler.sample(jobs.job(case), binary, scratch, java=java, profile=profile)

    def rounds(self, case: Case) -> int:
        """The rounds of a case before the open questions."""
        if case.once:
            return 1
        least = case.rounds if self.budget.reaches("standard") else 0
        return max(self.budget.rounds, least)


def plan(
    studies: Sequence[Study],
    budget: Budget,
    questions: Questions | None = None,
    say: Say = toolchains.silent,
    *,
    fetch: bool = True,
    description: Description | None = None,
    progress: Progress = unwatched,
) -> Plan:
    """Find the tools that studies need, downloading missing releases if `fetch`.

    `say` gets a line before each download. `description` is of another machine, to measure on.
    """
    toolchains.check_releases()
    questions = questions or Questions()
    description = description or machine.describe()
    made = Plan(tuple(studies), budget, questions, description)
    fits_here = {s.name: fitting(s, budget, questions, description) for s in studies}
    if fetch:
        _prepare([case for fitting in fits_here.values() for case in fitting], say, progress)
    for study in studies:
        language, wanted = languages.of(study), fits_here[study.name]
        releases = dict.fromkeys(case.release for case in wanted)
        made.tools[study.name] = tools = languages.tools(study, releases, say, fetch=fetch)
        made.missing.update(tools.missing)
        made.toolchains.update(tools.toolchains)
        for release, toolchain in tools.toolchains.items():
            made.random_layouts[release] = language.programs.shuffles_layout(toolchain)
        if tools.compiler is not None:
            made.compiler[language.compiles_with] = tools.compiler
            made.compilers[language.compiles_with] = tools.compiler.version
        for case in wanted:
            if case.release in tools.toolchains:
                made.pool.setdefault(case.name, case)
    for study in studies:
        if study.name in made.measured:
            made.programs.update(languages.source_hashes(study))
    return made


def _prepare(cases: Sequence[Case], say: Say, progress: Progress) -> None:
    """Download missing releases, and build a program with each as soon as it is there.

    A download needs the network. The first build with a release compiles its library and needs
    the CPU. So some releases are built while others are downloaded. Faults are left to `plan`.
    """
    first = {case.release: case for case in reversed(cases)}
    with suppress(GccostError):
        if all(languages.of_release(release).find(release) for release in first):
            return
    building = Semaphore(machine.allowed_cpus())
    tasks: dict[Future[None], str] = {}
    with tempfile.TemporaryDirectory() as folder, ProcessGroup() as group:

        def prepare(case: Case, done: Future[None]) -> None:
            language = languages.of_release(case.release)
            what = case.build._replace(runtime="", relinked=False)
            with suppress(GccostError, OSError):
                compiler = language.compiler({case.program}, say)
                release = language.fetch(case.release, say)
                with building:
                    language.build(what, release, compiler, 1, Path(folder), group.run)
            done.set_result(None)

        for case in first.values():
            done: Future[None] = Future()
            tasks[done] = toolchains.title(case.release)
            # A daemon, so that an interruption does not wait for a download.
            Thread(target=prepare, args=(case, done), daemon=True).start()
        until_done(tasks, progress, "fetching", "compilers")


def fitting(
    study: Study, budget: Budget, questions: Questions, description: Description
) -> list[Case]:
    """A study's cases at a budget that a machine can run, with their N there."""
    memory, cpus = machine.memory_for_a_sample(description), description["allowed_cpus"]
    return [
        case.scaled(budget.scale).capped(memory)
        for case in study.cases
        if case.cpus <= cpus
        and (budget.reaches(case.min_budget) or (case.variant, case.release) in questions.needed)
    ]
