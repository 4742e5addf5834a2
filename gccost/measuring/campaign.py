"""The campaign: one pool of samples for all studies, measured in rounds.

A round builds the programs again and samples its cases, each in a fresh process. The order
is drawn from the run's seed, one release after the other, so that compared samples are
close in time. First every case gets the rounds that an estimate needs. The remaining time
goes to the open questions, undecided verdicts and headline figures with wide intervals,
those that need the least time first. Each of these rounds includes the baseline.

On a busy machine a sample takes longer, and more are repeated. Once the time is spent nothing
is repeated, and from `Budget.most` on nothing more is measured. Since each round has all
cases, a run that is cut has fewer rounds of all of them.

Each sample is saved at once, so a campaign can be interrupted and resumed at any moment.
"""

from __future__ import annotations

import gzip
import random
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from threading import Thread
from typing import Any

from gccost import paths
from gccost.errors import DiskFull, GccostError, MissingTool
from gccost.files import write_whole, writing
from gccost.measuring import benchfmt, languages, machine, runs, toolchains
from gccost.measuring.benchfmt import Sample
from gccost.measuring.cases import BUDGETS, FREE, Budget, Build, Case, Study
from gccost.measuring.runs import Run
from gccost.measuring.samples import TRACE, SampleFailed, hindered
from gccost.processes import ProcessGroup

# Sampling-protocol version; changing it invalidates unfinished runs.
METHOD = "slices, gated processes, one pool"
GIVE_UP = 2  # failures after which a case is skipped
# Stock Go sometimes does not run a cleanup; a larger loss is reported. The number is for
# short loops, where the share is less than a block.
UNFREED_SHARE, UNFREED = 1e-4, 8

Progress = Callable[[float, float, str], None]
"""Called with the seconds measured, the maximum number of seconds, and the next task."""


@dataclass(frozen=True)
class Want:
    """An undecided verdict or an imprecise headline figure: its cases, and the rounds it needs."""

    cases: tuple[str, ...]
    rounds: int


@dataclass(frozen=True)
class Standing:
    """The state of a run: the open questions, and the numbers of decided and all verdicts.

    `left` is the number of undecided verdicts that are no question, because the recorded run
    could not decide them either.
    """

    wants: tuple[Want, ...] = ()
    decided: int = 0
    verdicts: int = 0
    left: int = 0


@dataclass(frozen=True)
class Questions:
    """The cases that verdicts need, and a function that finds a run's open questions.

    `judged` and `needed` have (variant, release) pairs; needed cases are measured at every
    budget. See `gccost.judging.questions`.
    """

    judged: frozenset[Any] = frozenset()
    needed: frozenset[Any] = frozenset()
    standing: Callable[[Run], Standing] = field(default=lambda run: Standing())


@dataclass(frozen=True)
class Plan:
    """Studies at a budget on this machine, with the tools and cases to measure them."""

    studies: tuple[Study, ...]
    budget: Budget
    questions: Questions
    description: Mapping[str, Any]  # of the machine
    tools: dict[str, languages.Tools] = field(default_factory=dict)  # by study
    pool: dict[str, Case] = field(default_factory=dict)  # each is measured once for all studies
    owners: dict[str, Study] = field(default_factory=dict)  # by case: a study that uses it
    missing: dict[str, str] = field(default_factory=dict)  # the reason, by release
    programs: dict[str, str] = field(default_factory=dict)  # the hash of each one's sources
    compilers: dict[str, str] = field(default_factory=dict)  # the version, by kind
    # Whether a release's linker can randomize the layout.
    random_layouts: dict[str, bool] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the runs are that this plan resumes or adds to."""
        return paths.runs()

    @property
    def fingerprint(self) -> str:
        return machine.fingerprint(self.description)

    @property
    def measured(self) -> list[str]:
        """The names of the studies with a case that is measured."""
        return [s.name for s in self.studies if any(case.name in self.pool for case in s.cases)]

    def build(self, what: Build, owner: Study, layout: int, into: Path, run: Any) -> Path:
        """Build a binary of one of the owner's programs; `run` runs the command."""
        tools = self.tools[owner.name]
        found, compiler = tools.found[what.release], tools.compiler
        return languages.of(owner).build(what, found, compiler, layout, into, run)

    def sample(self, binary: Path, case: Case, scratch: Path, profile: Path | None) -> Sample:
        """Run a case in a fresh process."""
        owner = self.owners[case.name]
        toolchain = self.tools[owner.name].found[case.release]
        return languages.of(owner).run_sample(binary, toolchain, case, scratch, profile)

    def rounds(self, case: Case) -> int:
        """The rounds of a case before the open questions."""
        if case.once:
            return 1
        judged = (case.variant, case.release) in self.questions.judged or case.variant.control
        least = case.rounds if self.budget.reaches("standard") else 0
        return max(self.budget.judged if judged else self.budget.shown, least)


def plan(
    studies: Sequence[Study],
    budget: Budget,
    questions: Questions | None = None,
    say: Callable[[str], None] = toolchains.silent,
    *,
    fetch: bool = True,
    description: Mapping[str, Any] | None = None,
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
        _prepare([(study, case) for study in studies for case in fits_here[study.name]], say)
    for study in studies:
        language = languages.of(study)
        wanted = fits_here[study.name]
        releases = dict.fromkeys(case.release for case in wanted)
        made.tools[study.name] = tools = languages.tools(study, releases, say, fetch=fetch)
        made.missing.update(tools.missing)
        made.random_layouts.update((k, language.random_layout(v)) for k, v in tools.found.items())
        if tools.compiler is not None:
            made.compilers[language.compiles_with] = tools.compiler.version
        for case in wanted:
            if case.release in tools.found:
                other = made.pool.setdefault(case.name, case)
                if other.n != case.n:
                    told = f"{case.name} has {case.n} operations, in another study {other.n}"
                    hint = "give a case the same number in all studies: it is measured once"
                    raise GccostError(told, study.name, hint)
                made.owners.setdefault(case.name, study)
    for study in studies:
        if study in made.owners.values():
            made.programs.update(languages.source_hashes(study))
    return made


def _prepare(cases: Sequence[tuple[Study, Case]], say: Callable[[str], None]) -> None:
    """Download missing releases, and build a program with each as soon as it is there.

    A download needs the network. The first build with a release compiles its library and needs
    the CPU. So some releases are built while others are downloaded. Faults are left to `plan`.
    """

    def prepare(study: Study, case: Case) -> None:
        language, what = languages.of(study), case.build._replace(runtime="", relinked=False)
        with suppress(GccostError, OSError):
            compiler = language.compiler({case.program}, say)
            release = language.fetch(case.release, say)
            language.build(what, release, compiler, 1, Path(folder), group.run)

    first = {case.release: (study, case) for study, case in reversed(cases)}
    with suppress(GccostError):
        if all(languages.of(study).find(release) for release, (study, _) in first.items()):
            return
    with tempfile.TemporaryDirectory() as folder, ProcessGroup() as group:
        # Daemons, so that an interruption does not wait for a download.
        threads = [Thread(target=prepare, args=each, daemon=True) for each in first.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def chosen(study: Study, budget: Budget, questions: Questions) -> list[Case]:
    """A study's cases at a budget."""
    return [
        case
        for case in study.cases
        if budget.reaches(case.min_budget) or (case.variant, case.release) in questions.needed
    ]


def fitting(
    study: Study, budget: Budget, questions: Questions, description: Mapping[str, Any]
) -> list[Case]:
    """A study's cases at a budget that a machine can run, with their N there."""
    memory, cpus = machine.memory_for_a_sample(description), description["allowed_cpus"]
    found = chosen(study, budget, questions)
    return [c.scaled(budget.scale).capped(memory) for c in found if c.cpus <= cpus]


def fits(run: Run, plan: Plan) -> bool:
    """Whether a run has the plan's method, machine and programs, so that it can be resumed."""
    manifest = run.manifest()
    programs, compilers = manifest["programs"], manifest["compilers"]
    return (
        manifest["method"] == METHOD
        and manifest["scale"] == plan.budget.scale
        and manifest["fingerprint"] == plan.fingerprint == machine.fingerprint(manifest["machine"])
        and all(programs.get(name, mark) == mark for name, mark in plan.programs.items())
        and all(compilers.get(name, v) == v for name, v in plan.compilers.items())
    )


def finished(run: Run, plan: Plan) -> bool:
    """Whether a run has the plan's studies at its budget or a larger one.

    False if a case without failures lacks samples, because it is new or its release has
    become available.
    """
    manifest = run.manifest()
    if not run.samples.exists() or not any(
        set(plan.measured) <= set(done["studies"])
        for name, done in manifest["finished"].items()
        if name in BUDGETS and BUDGETS[name].reaches(plan.budget.name)
    ):
        return False
    sampled = {sample.full_name for sample in samples_of(run, plan)}
    return plan.pool.keys() <= {*sampled, *manifest["failed"]}


def samples_of(run: Run, plan: Plan) -> list[Sample]:
    """A run's samples of the plan's cases with their N, in order."""
    pool = plan.pool
    return [
        sample
        for sample in run.reading().samples.values()
        if (case := pool.get(sample.full_name))
        and case.n in (0, sample.n)
        and sample.metrics.get("round", 0) >= 1
    ]


def find(plan: Plan) -> Run | None:
    """The newest of your runs that this plan can resume; None if there is none."""
    return next((r for r in reversed(runs.all_runs(plan.folder)) if fits(r, plan)), None)


def measure(plan: Plan, progress: Progress | None = None) -> Run:
    """Measure what a run lacks, and return the run.

    Raises GccostError if nothing can be measured or a write fails. A case that fails is
    recorded in the run and skipped.
    """
    if not plan.pool:
        reasons = "; ".join(dict.fromkeys(plan.missing.values()))
        names = ", ".join(study.name for study in plan.studies)
        raise MissingTool(f"nothing can be measured: {reasons}", names)
    run = find(plan)
    if run is not None and finished(run, plan):
        return run
    with runs.exclusive(plan.folder, "measuring"), runs.scratch(plan.folder) as scratch:
        run = begin(plan)
        run.drop_unfinished_line()
        _Campaign(run, plan, scratch, progress or (lambda done, total, what: None)).measure()
        return run


def begin(plan: Plan) -> Run:
    """The newest run that the plan can resume, or a new one."""
    run = find(plan) or runs.create(
        plan.folder,
        machine=dict(plan.description),
        fingerprint=plan.fingerprint,
        warnings=machine.warnings(plan.description),
        method=METHOD,
        seed=random.SystemRandom().randrange(2**31),
        scale=plan.budget.scale,
    )
    if not run.samples.exists():  # new, or killed at its start
        architecture = plan.description["architecture"]
        head = (
            f"gccost-format: {runs.FORMAT}",
            f"goos: {str(plan.description['system']).lower()}",
            f"goarch: {machine.GOARCH.get(architecture, architecture)}",
            f"cpu: {plan.description['cpu']}",
        )
        write_whole(run.samples, "".join(f"{line}\n" for line in head).encode())
    manifest = run.manifest()
    layouts = plan.random_layouts
    troubles = dict(manifest["troubles"])
    whole = {c.name: c.scaled(plan.budget.scale).n for s in plan.studies for c in s.cases}
    for name, case in plan.pool.items():
        if case.n < whole[name]:
            allows = f"this machine's memory allows {case.n:,} operations only"
            troubles[name] = list(dict.fromkeys([*troubles.get(name, []), allows]))
    run.update(
        programs=manifest["programs"] | plan.programs,
        compilers=manifest["compilers"] | plan.compilers,
        random_layout=manifest["random_layout"] | layouts,
        missing={go: why for go, why in manifest["missing"].items() if go not in layouts}
        | plan.missing,
        troubles=troubles,
    )
    return run


def in_order(cases: Iterable[Case], chance: random.Random) -> list[Case]:
    """A round's samples in random order, one release after the other.

    Repeated cases, such as the baseline, are spread evenly over their release's samples.
    """
    stretches: dict[str, list[tuple[float, Case]]] = {}
    for case in cases:
        for i in range(case.processes):
            place = (i + chance.random()) / case.processes
            stretches.setdefault(case.release, []).append((place, case))
    releases = list(stretches)
    chance.shuffle(releases)
    return [case for r in releases for _, case in sorted(stretches[r], key=itemgetter(0))]


class _Campaign:
    """A session of measuring, until it is finished or interrupted."""

    def __init__(self, run: Run, plan: Plan, scratch: Path, progress: Progress) -> None:
        self.run, self.plan, self.scratch, self.progress = run, plan, scratch, progress
        manifest = run.manifest()
        self.seed: int = manifest["seed"]
        self.troubles: dict[str, list[str]] = manifest["troubles"]
        self.failures: Counter[str] = Counter()
        self.standing = Standing()
        self.spent = runs.seconds_of(self._samples())  # before, or at a smaller budget

    def measure(self) -> None:
        """Measure rounds until no question is open or the time is spent."""
        self._warm_up()
        number = max(self._last_round(), 1)  # the last round may be incomplete
        while due := self._first_rounds():
            self._round(number, due)
            number += 1
        while True:
            self.standing = self.plan.questions.standing(self.run)
            because, due, rounds = self._next()
            if because:
                left = self.standing.left
                told = f"; {left} verdicts are left that the recorded run could not decide either"
                self._finish(because + told * bool(left))
                return
            for _ in range(rounds):
                self._round(self._last_round() + 1, due)

    # --- Choosing the next round ------------------------------------------------------

    def _first_rounds(self) -> list[Case]:
        """The cases that still lack rounds that an estimate needs.

        A case whose processes were all rejected gets a few further rounds.
        """
        pool, budget = self.plan.pool, self.plan.budget
        if self.spent > budget.most:
            return []
        taken, accepted = Counter[tuple[str, float]](), Counter[tuple[str, float]]()
        for sample in self._samples():
            process = sample.full_name, sample.metrics["round"]
            taken[process] += 1
            gated = pool[sample.full_name].variant.gated
            accepted[process] += not (gated and hindered(sample.metrics, sample.procs))
        # The rounds of each case with all its processes, and with all of them accepted.
        complete, usable = (
            Counter(name for (name, _), n in found.items() if n >= pool[name].processes)
            for found in (taken, accepted)
        )
        lacking = []
        for case in self._still_measured():
            needed = self.plan.rounds(case)
            most = needed + (budget.retries if case.variant.gated and self._has_time else 0)
            if usable[case.name] < needed and complete[case.name] < most:
                lacking.append(case)
        return lacking

    @property
    def _has_time(self) -> bool:
        """Whether the first rounds may repeat what was rejected."""
        return not self.plan.budget.seconds or self.spent < self.plan.budget.seconds

    def _next(self) -> tuple[str, list[Case], int]:
        """The reason to stop measuring, or the cases and the number of the next rounds.

        Until the last of these rounds no verdict can change.
        """
        left = self.plan.budget.seconds - self.spent
        seconds = self._seconds()
        names = {case.name: case for case in self._still_measured() if not case.once}
        wants = [w for w in self.standing.wants if all(n in names for n in w.cases)]
        if not wants:
            return "nothing is open that more rounds could settle", [], 0

        def takes(want: Want, cases: Iterable[str]) -> float:
            return want.rounds * sum(seconds.get(name, 0.0) for name in cases)

        due: dict[str, Case] = {}
        reserved, rounds = 0.0, 0
        for want in sorted(wants, key=lambda w: takes(w, w.cases)):
            if reserved + takes(want, want.cases) > left:
                break
            new = {name: names[name] for name in want.cases if name not in due}
            reserved += takes(want, new)
            due |= new
            rounds = min(rounds or want.rounds, want.rounds)
        if not due:
            return "the budget is spent", [], 0
        releases = {case.release for case in due.values()}
        due |= {n: c for n, c in names.items() if c.variant == FREE and c.release in releases}
        return "", list(due.values()), rounds

    def _seconds(self) -> dict[str, float]:
        """The seconds of a round of each case, including its part of the builds."""
        taken = self._samples()
        builds = sum(s.metrics.get("build-s", 0.0) for s in taken) / max(len(taken), 1)
        elapsed: defaultdict[str, list[float]] = defaultdict(list)
        for sample in taken:
            elapsed[sample.full_name].append(sample.metrics.get("elapsed-s", 0.0))
        return {
            name: (sum(elapsed[name]) / max(len(elapsed[name]), 1) + builds) * case.processes
            for name, case in self.plan.pool.items()
        }

    def _still_measured(self) -> list[Case]:
        return [c for c in self.plan.pool.values() if self.failures[c.name] < GIVE_UP]

    # --- A round ----------------------------------------------------------------------

    def _warm_up(self) -> None:
        """Build once before the clock starts, because later builds only link."""
        self.progress(0.0, self.plan.budget.seconds, "building programs")
        with self._folder() as scratch:
            self._build(list(self.plan.pool.values()), 0, scratch)
        if not self._still_measured():
            raise GccostError(
                "no case can be measured: "
                + "; ".join(dict.fromkeys(t for ts in self.troubles.values() for t in ts)),
                ", ".join(study.name for study in self.plan.studies),
                "make doctor shows the toolchains that were found",
            )

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """A folder for a round's programs."""
        with writing(self.scratch):
            folder = Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _samples(self) -> list[Sample]:
        return samples_of(self.run, self.plan)

    def _last_round(self) -> int:
        return int(max((sample.metrics["round"] for sample in self._samples()), default=0))

    def _round(self, number: int, cases: list[Case]) -> None:
        done = Counter(s.full_name for s in self._samples() if s.metrics["round"] == number)
        left = []
        for case in in_order(cases, random.Random(f"{self.seed} {number}")):
            done[case.name] -= 1
            if done[case.name] < 0:
                left.append(case)
        tries: Counter[str] = Counter()
        budget = self.plan.budget
        with self._folder() as scratch:
            start = time.monotonic()
            self._say(f"round {number}: building programs")
            binaries = self._build(left, number, scratch)
            building = time.monotonic() - start
            while left:
                case = left.pop(0)
                if self.failures[case.name] >= GIVE_UP:
                    continue
                if number > 1 and self.spent > budget.most:
                    break
                self._say(f"round {number}: {case.name}")
                try:
                    sample = self._sample(case, binaries, number, scratch)
                except SampleFailed as failure:
                    last = self.failures[case.name] == GIVE_UP - 1
                    told = failure.message + "; it is skipped from here on" * last
                    self._note_failure(case, 1, failure, told)
                    continue
                if building:
                    sample = sample.with_metrics({"build-s": round(building, 3)})
                    self.spent += building
                    building = 0.0
                sample = sample.with_metrics(
                    {"round": float(number), "unix-s": round(max(time.time(), 0), 3)}
                )
                self.run.append([benchfmt.format_line(sample)])
                self.spent += sample.metrics["elapsed-s"]
                waited = hindered(sample.metrics, sample.procs)
                again = tries[case.name] < budget.retries and self._has_time
                if case.variant.gated and waited and again:
                    tries[case.name] += 1
                    left.append(case)

    def _say(self, what: str) -> None:
        decided, verdicts = self.standing.decided, self.standing.verdicts
        told = f"{decided} of {verdicts} verdicts decided; " if verdicts else ""
        self.progress(self.spent, max(self.plan.budget.seconds, self.spent), told + what)

    def _build(self, cases: list[Case], number: int, into: Path) -> dict[Build, Path]:
        """Build the round's binaries: one per program, release and layout."""
        draw = random.Random(f"{self.seed} layout {number}")
        layouts = {relinked: draw.randrange(1, 2**31) for relinked in (False, True)}
        wanted = {c.build: self.plan.owners[c.name] for c in cases}
        # In parallel: a link uses one core. An interruption ends the builds first.
        with ThreadPoolExecutor() as pool, ProcessGroup() as group:
            made = {
                build: pool.submit(
                    self.plan.build, build, owner, layouts[build.relinked], into, group.run
                )
                for build, owner in wanted.items()
            }
            built = {}
            for key, future in made.items():
                try:
                    built[key] = future.result()
                except DiskFull:  # not the program's fault, so do not record it
                    raise
                except GccostError as error:
                    for case in self.plan.pool.values():
                        if case.build == key:
                            told = f"{error}; its cases are skipped"
                            self._note_failure(case, GIVE_UP, error, told)
            return built

    def _sample(
        self, case: Case, binaries: Mapping[Build, Path], number: int, scratch: Path
    ) -> Sample:
        profile = scratch / "cpu.pb.gz" if case.variant.profile else None
        sample = self.plan.sample(binaries[case.build], case, scratch, profile)
        if profile is not None:
            if not profile.exists():
                raise SampleFailed("the program wrote no profile", case.name)
            write_whole(self.run.profile(case.name, number), profile.read_bytes())
        if case.traced and not (path := self.run.gctrace(case.name)).exists():
            # Without a timestamp, so that the same text makes the same file.
            write_whole(path, gzip.compress((scratch / TRACE).read_bytes(), mtime=0))
        self._note_losses(case, sample)
        return sample

    # --- Failures -----------------------------------------------------------------------

    def _note_losses(self, case: Case, sample: Sample) -> None:
        left = sample.metrics.get("c-unfreed-drained", 0.0)
        if not case.leaks and left > max(UNFREED, UNFREED_SHARE * sample.n):
            self._trouble(case.name, f"{left:.0f} of {sample.n} C blocks were never freed")

    def _note_failure(self, case: Case, failures: int, error: GccostError, told: str) -> None:
        self.failures[case.name] += failures
        failed = dict(self.run.manifest()["failed"])
        failed[case.name] = [*failed.get(case.name, []), error.message]
        self.run.update(failed=failed)
        self._trouble(case.name, told)

    def _trouble(self, case: str, what: str) -> None:
        if what not in self.troubles.setdefault(case, []):  # a build may fail in every round
            self.troubles[case].append(what)
            self.run.update(troubles=self.troubles)

    def _finish(self, because: str) -> None:
        self.run.finish(self.plan.budget.name, because, self.plan.measured)
        self.progress(self.spent, self.spent, because)
