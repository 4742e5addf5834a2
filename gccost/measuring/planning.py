"""What a campaign measures: the jobs of studies at a budget, and the tools for them."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any

from gccost.cases import jobs, sources, versions
from gccost.cases.cases import Budget, Standing, Study
from gccost.cases.jobs import Build
from gccost.errors import GccostError
from gccost.measuring import languages, machine, toolchains
from gccost.processes import ProcessGroup
from gccost.progress import Progress, Say, until_done, unwatched
from gccost.run.benchfmt import Sample
from gccost.run.jobtable import Job
from gccost.run.manifest import Description, fingerprint
from gccost.run.runs import Run


def settled(run: Run) -> Standing:
    """The state of a run of which nothing is asked."""
    return Standing()


@dataclass(frozen=True)
class Plan:
    """Studies at a budget on this machine, with the tools and jobs to measure them.

    `standing` finds a run's open questions (see `gccost.judging.questions`).
    """

    studies: Mapping[str, Collection[str]]  # the names of each one's jobs
    budget: Budget
    standing: Callable[[Run], Standing]
    description: Description  # of the machine
    tools: dict[str, languages.Tools] = field(default_factory=dict)  # by study
    pool: dict[str, Job] = field(default_factory=dict)  # each is measured once for all studies
    capped: set[str] = field(default_factory=set)  # the jobs whose N the memory limits
    toolchains: dict[str, Any] = field(default_factory=dict)  # by release
    compiler: dict[str, Any] = field(default_factory=dict)  # by kind
    missing: dict[str, str] = field(default_factory=dict)  # the reason, by release
    programs: dict[str, str] = field(default_factory=dict)  # the hash of each one's sources
    compilers: dict[str, str] = field(default_factory=dict)  # the version, by kind
    failures: Counter[str] = field(default_factory=Counter)  # by case, of this campaign so far
    # Whether a release's linker can randomize the layout.
    random_layouts: dict[str, bool] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.description)

    @property
    def measured(self) -> list[str]:
        """The names of the studies with a case that is measured."""
        return [name for name, own in self.studies.items() if self.pool.keys() & own]

    def build(self, what: Build, layout: int, into: Path, run: languages.Run) -> Path:
        """Build a binary; see `Language.build`."""
        language = languages.of_release(what.release)
        compiler = self.compiler[language.compiles_with]
        toolchain = self.toolchains[what.release]
        return language.build(what, toolchain, compiler, layout, into, run)

    def sample(self, binary: Path, job: Job, scratch: Path, profile: Path | None) -> list[Sample]:
        """Run a job in a fresh process."""
        language = languages.of_release(job["release"])
        toolchain = self.toolchains[job["release"]]
        return language.sample(job, binary, toolchain, scratch, profile)

    def rounds(self, job: Job) -> int:
        """The rounds of a job before the open questions."""
        if jobs.once(job):
            return 1
        rounds = self.budget.rounds
        if self.budget.reaches("standard"):
            rounds = max(rounds, job.get("rounds", 0))
        return rounds

    def use(self, study: Study, tools: languages.Tools) -> None:
        """Measure a study with these tools."""
        language = languages.of(study)
        self.tools[study.name] = tools
        self.missing.update(tools.missing)
        self.toolchains.update(tools.toolchains)
        for release, toolchain in tools.toolchains.items():
            self.random_layouts[release] = toolchain.shuffles_layout
            if toolchain.jvm:
                self.compilers[release] = toolchain.jvm
        if tools.compiler is not None:
            self.compiler[language.compiles_with] = tools.compiler
            self.compilers[language.compiles_with] = tools.compiler.version

    def add(self, wanted: Iterable[Job]) -> None:
        """Measure jobs, with the N that this machine's memory allows."""
        memory = machine.memory_for_a_sample(self.description)
        for job in wanted:
            whole = jobs.scaled(job, self.budget.scale)
            fits = jobs.capped(whole, memory)
            self.pool.setdefault(job["name"], fits)
            if fits is not whole:
                self.capped.add(job["name"])


def plan(
    studies: Sequence[Study],
    budget: Budget,
    standing: Callable[[Run], Standing] = settled,
    say: Say = toolchains.silent,
    *,
    fetch: bool = True,
    description: Description | None = None,
    progress: Progress = unwatched,
) -> Plan:
    """Find the tools that studies need, downloading missing releases if `fetch`.

    `say` gets a line before each download. `description` is of another machine, to measure on.
    """
    versions.check_releases()
    description = description or machine.describe()
    names = {study.name: study.jobs.keys() for study in studies}
    plan = Plan(names, budget, standing, description)
    fits_here = {}
    for study in studies:
        fits_here[study.name] = fitting(study.within(budget), description)
    if fetch:
        _prepare(list(chain(*fits_here.values())), say, progress)
    for study in studies:
        wanted = fits_here[study.name]
        releases = dict.fromkeys(job["release"] for job in wanted)
        tools = languages.tools_of(study, releases, say, fetch=fetch)
        plan.use(study, tools)
        plan.add(job for job in wanted if job["release"] in tools.toolchains)
    for study in studies:
        if study.name in plan.measured:
            plan.programs.update(sources.source_hashes(study))
    return plan


def _prepare(wanted: Sequence[Job], say: Say, progress: Progress) -> None:
    """Download missing releases, and build a program with each as soon as it is there.

    A download needs the network. The first build with a release compiles its library and needs
    the CPU. So some releases are built while others are downloaded. Faults are left to `plan`.
    """
    first = {job["release"]: job for job in reversed(wanted)}
    with suppress(GccostError):
        if all(map(_is_here, first)):
            return
    building = Semaphore(machine.allowed_cpus())
    tasks: dict[Future[None], str] = {}
    with tempfile.TemporaryDirectory() as folder, ProcessGroup() as group:

        def prepare(job: Job, done: Future[None]) -> None:
            what = jobs.build(job)._replace(runtime="", layout="")
            language = languages.of_release(what.release)
            with suppress(GccostError, OSError):
                compiler = language.compiler({what.program}, say)
                toolchain = language.fetch(what.release, say)
                with building:
                    language.build(what, toolchain, compiler, 1, Path(folder), group.run)
            done.set_result(None)

        for release, job in first.items():
            done: Future[None] = Future()
            tasks[done] = versions.title(release)
            # A daemon, so that an interruption does not wait for a download.
            thread = Thread(target=prepare, args=(job, done), daemon=True)
            thread.start()
        until_done(tasks, progress, "fetching", "compilers")


def _is_here(release: str) -> bool:
    return languages.of_release(release).find(release) is not None


def fitting(wanted: Iterable[Job], description: Description) -> list[Job]:
    """The jobs for which a machine has the CPUs."""
    return [job for job in wanted if job.get("cpus", 1) <= description["allowed_cpus"]]
