"""The campaign: one pool of samples for all studies, measured in rounds.

A round builds the programs of its cases again and samples the cases, each in a fresh process.
Nothing is built while a sample is taken. The order is drawn from the run's seed, one release
after the other, so that compared samples are close in time. First every case gets the rounds that
an estimate needs. The remaining time goes to the open questions: the widest figures of headlines
and prices, then undecided verdicts, the quickest first, then any other wide figure. Each of these
rounds includes the baseline. A question that has had a tenth of the time waits for the others.

On a busy machine a sample takes longer, and from `Budget.most` on nothing more is measured. Since
each round has all cases, a run that is cut has fewer rounds of all of them.

Each sample is saved at once, so a campaign can be interrupted and resumed at any moment.
"""

from __future__ import annotations

import gzip
import random
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from gccost import paths
from gccost.cases import jobs, versions
from gccost.cases.cases import BUDGETS, OpenQuestion, Rank, Standing
from gccost.cases.jobs import Build
from gccost.errors import DiskFull, GccostError, MissingTool
from gccost.files import write_whole, writing
from gccost.measuring import builds, machine
from gccost.measuring.planning import Plan
from gccost.measuring.sampler import TRACE, SampleFailed, is_traced
from gccost.progress import Progress, unwatched
from gccost.run import benchfmt, jobtable, runs
from gccost.run.benchfmt import Sample
from gccost.run.jobtable import Job
from gccost.run.manifest import Description, fingerprint
from gccost.run.runs import METHOD, Run

BASELINE = "AllocateFree"  # which each of the later rounds has too
GIVE_UP = 2  # failures after which a case is skipped
# Stock Go sometimes does not run a cleanup; a larger loss is reported. The number is for
# short loops, where the share is less than a block.
UNFREED_SHARE, UNFREED = 1e-4, 8
_LAYOUTS = 3  # builds after which a program is built anew only if its samples take longer
_TENTH = 0.1  # of the time, after which a question waits for the others

Troubles = dict[str, list[str]]  # by case


def fits(run: Run, plan: Plan) -> bool:
    """Whether a run has the plan's method, machine and programs, so that it can be resumed."""
    manifest = run.manifest()
    if manifest["method"] != METHOD or manifest["scale"] != plan.budget.scale:
        return False
    if manifest["fingerprint"] != fingerprint(manifest["machine"]):
        return False
    if manifest["fingerprint"] != plan.fingerprint:
        return False
    is_of_programs = _agree(manifest["programs"], plan.programs)
    return is_of_programs and _agree(manifest["compilers"], plan.compilers)


def _agree(recorded: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether the names that both have mean the same."""
    shared = recorded.keys() & now.keys()
    return all(recorded[name] == now[name] for name in shared)


def finished(run: Run, plan: Plan) -> bool:
    """Whether a run has the plan's studies at its budget or a larger one.

    False if a case without failures lacks samples, because it is new or its release has
    become available.
    """
    if not run.samples_txt.exists():
        return False
    manifest = run.manifest()
    if not _has_budget(manifest["finished"], plan):
        return False
    sampled = {sample.full_name for sample in samples_of(run, plan)}
    return plan.pool.keys() <= {*sampled, *manifest["failed"]}


def _has_budget(finished: Mapping[str, Any], plan: Plan) -> bool:
    """Whether the plan's studies were finished at its budget or a larger one."""
    for name, ending in finished.items():
        is_large = name in BUDGETS and BUDGETS[name].reaches(plan.budget.name)
        if is_large and set(plan.measured) <= set(ending["studies"]):
            return True
    return False


def samples_of(run: Run, plan: Plan) -> list[Sample]:
    """A run's samples of the plan's cases with their N, in order."""
    samples = []
    for sample in run.reading().samples.values():
        job = plan.pool.get(sample.full_name)
        if job is None or job["n"] not in (0, sample.n):
            continue
        if sample.metrics.get("round", 0) >= 1:
            samples.append(sample)
    return samples


def find(plan: Plan) -> Run | None:
    """The newest of your runs that this plan can resume; None if there is none."""
    for run in reversed(runs.all_runs(paths.runs())):
        if fits(run, plan):
            return run
    return None


def why_anew(plan: Plan) -> str:
    """Which changed programs make measuring begin a new run; empty if it does not."""
    own_runs = runs.all_runs(paths.runs())
    if not own_runs or find(plan):
        return ""
    newest = own_runs[-1]
    recorded = newest.manifest()["programs"]
    changed = []
    for program, source_hash in plan.programs.items():
        if recorded.get(program, source_hash) != source_hash:
            changed.append(program)
    if not changed:
        return ""
    return f"{', '.join(changed)}: changed since {newest.name}, so a new run is begun"


def measure(
    plan: Plan,
    progress: Progress = unwatched,
    *,
    again: bool = False,
    on_round: Callable[[Run], object] = lambda run: None,
) -> Run:
    """Measure what a run lacks, and return the run; with `again` add a sitting if it is complete.

    `on_round` is called with the run after each round. Raises GccostError if nothing can be
    measured or a write fails. A case that fails is recorded in the run and skipped.
    """
    if not plan.pool:
        reasons = "; ".join(dict.fromkeys(plan.missing.values()))
        raise MissingTool(f"nothing can be measured: {reasons}", ", ".join(plan.studies))
    run = find(plan)
    if run is not None and finished(run, plan) and not again:
        return run
    with runs.exclusive(paths.runs(), "measuring"), runs.scratch(paths.runs()) as scratch:
        run = begin(plan)
        run.drop_unfinished_line()
        _Campaign(run, plan, scratch, progress, on_round).measure()
        return run


def begin(plan: Plan) -> Run:
    """The newest run that the plan can resume, or a new one."""
    run = find(plan) or runs.create(
        paths.runs(),
        machine=dict(plan.description),
        fingerprint=plan.fingerprint,
        method=METHOD,
        seed=random.SystemRandom().randrange(2**31),
        scale=plan.budget.scale,
    )
    if not run.samples_txt.exists():  # new, or killed at its start
        write_whole(run.samples_txt, _head(plan.description).encode())
    table = run.table() if run.jobs_csv.exists() else {}
    table |= plan.pool
    jobtable.write(run.jobs_csv, table.values())
    manifest = run.manifest()
    missing = dict(manifest["missing"])
    for release in plan.random_layouts:  # it is here now
        missing.pop(release, None)
    run.update(
        machine=dict(plan.description),  # its load and commit are those of the last sitting
        programs=manifest["programs"] | plan.programs,
        compilers=manifest["compilers"] | plan.compilers,
        random_layout=manifest["random_layout"] | plan.random_layouts,
        missing=missing | plan.missing,
        troubles=_with_capped(manifest["troubles"], plan),
    )
    return run


def _head(described: Description) -> str:
    """The configuration lines of a file of samples."""
    architecture = described["architecture"]
    facts = {
        "gccost-format": runs.FORMAT,
        "goos": str(described["system"]).lower(),
        "goarch": machine.GOARCH.get(architecture, architecture),
        "cpu": described["cpu"],
    }
    return "".join(f"{name}: {value}\n" for name, value in facts.items())


def _with_capped(troubles: Troubles, plan: Plan) -> Troubles:
    """The troubles of a run, and those of jobs whose N the memory limits."""
    combined = dict(troubles)
    for name in sorted(plan.capped):
        n = plan.pool[name]["n"]
        limit = f"this machine's memory allows {n:,} operations only"
        others = combined.get(name, [])
        if limit not in others:
            combined[name] = [*others, limit]
    return combined


def in_order(pool: Iterable[Job], chance: random.Random) -> list[Job]:
    """A round's samples in random order, one release after the other.

    Repeated jobs, such as the baseline, are spread evenly over their release's samples.
    """
    placed: dict[str, list[tuple[float, Job]]] = {}  # by release
    for job in pool:
        count = jobs.processes(job)
        for i in range(count):
            place = (i + chance.random()) / count
            placed.setdefault(job["release"], []).append((place, job))
    releases = list(placed)
    chance.shuffle(releases)
    order = []
    for release in releases:
        by_place = sorted(placed[release], key=itemgetter(0))
        order += [job for _, job in by_place]
    return order


class _Built(NamedTuple):
    """A binary, its folder, how often it was built in this session, and the last build's time."""

    path: Path
    folder: Path
    times: int
    seconds: float


class _Campaign:
    """A session of measuring, until it is finished or interrupted."""

    def __init__(
        self,
        run: Run,
        plan: Plan,
        scratch: Path,
        progress: Progress,
        on_round: Callable[[Run], object],
    ) -> None:
        self.run = run
        self.plan = plan
        self.scratch = scratch
        self.progress = progress
        self.on_round = on_round
        self.sitting = run.sit(plan.budget.name, plan.measured)
        manifest = run.manifest()
        self.seed: int = manifest["seed"]
        self.troubles: Troubles = manifest["troubles"]
        self.failures = plan.failures.copy()
        self.standing = Standing()
        self.built: dict[Build, _Built] = {}
        # The seconds that a question had, by its cases.
        self.seconds_of: dict[tuple[str, ...], float] = defaultdict(float)
        self.start = time.monotonic()
        # Of this sitting's samples, also of those before an interruption.
        self.taken: Counter[tuple[str, int]] = Counter()  # by case and round
        self.seconds: dict[str, list[float]] = defaultdict(list)  # of each sample, by case
        self.sampling = 0.0
        for sample in samples_of(run, plan):
            if sample.metrics.get("sitting", 1) == self.sitting:
                self._count(sample)
        earlier_rounds = [s.metrics.get("round", 0) for s in run.reading().samples.values()]
        self.last_round = int(max(earlier_rounds, default=0))
        own_rounds = [number for _, number in self.taken]
        # This sitting's first round is measured whatever it takes.
        self.first_round = min(own_rounds, default=self.last_round + 1)
        # After an interruption the last round may be incomplete.
        self.resumed_round = max(own_rounds, default=self.first_round)

    def measure(self) -> None:
        """Measure rounds until no question is open or the time is spent."""
        number = self.resumed_round
        while due := self._lacking_rounds():
            self._round(number, due)
            number += 1
        while True:
            open_questions = self._open()
            chosen = self._chosen(open_questions)
            if not chosen:
                break
            due = self._with_baselines(chosen)
            for _ in range(self._rounds_at_once(chosen, due)):
                self._round(self.last_round + 1, due)
                for question in chosen:
                    self.seconds_of[question.cases] += self._takes(question.cases)
        self._finish(self._why(open_questions))

    def _rounds_at_once(self, chosen: Sequence[OpenQuestion], due: Sequence[Job]) -> int:
        """The rounds until a verdict can change, as far as a tenth of the time allows them."""
        seconds = self._takes(job["name"] for job in due)
        allowed = int(self._turn / (seconds or 1))
        needed = min(question.rounds for question in chosen)
        return max(1, min(allowed, needed))

    @property
    def _turn(self) -> float:
        """The seconds after which a question waits for the others."""
        return _TENTH * self.plan.budget.seconds

    @property
    def spent(self) -> float:
        """The seconds of this sitting so far: of its samples, or since it was begun or resumed."""
        return max(self.sampling, time.monotonic() - self.start)

    def _why(self, open_questions: Sequence[OpenQuestion]) -> str:
        """Why measuring ends."""
        if not open_questions:
            return "nothing is open that more rounds could settle"
        seconds = self.plan.budget.seconds
        if not seconds:
            return "each case has its rounds"
        spent = f"{self.spent:.0f} of the {seconds:.0f} s are spent"
        if self.spent >= seconds:
            return spent
        return f"{spent}, and what is open needs more than the rest"

    def _count(self, sample: Sample) -> None:
        seconds = sample.metrics.get("elapsed-s", 0.0)
        self.taken[sample.full_name, int(sample.metrics["round"])] += 1
        self.seconds[sample.full_name].append(seconds)
        self.sampling += seconds

    # --- Choosing the next round ------------------------------------------------------

    def _still_measured(self) -> list[Job]:
        return [job for name, job in self.plan.pool.items() if self.failures[name] < GIVE_UP]

    def _lacking_rounds(self) -> list[Job]:
        """The jobs that still lack rounds that an estimate needs."""
        if self.spent > self.plan.budget.most:
            return []
        complete: Counter[str] = Counter()
        for (name, _), taken in self.taken.items():
            if taken >= jobs.processes(self.plan.pool[name]):
                complete[name] += 1
        due = []
        for job in self._still_measured():
            if complete[job["name"]] < self.plan.rounds(job):
                due.append(job)
        return due

    def _open(self) -> list[OpenQuestion]:
        """The open questions whose cases can be measured again."""
        self.standing = self.plan.standing(self.run)
        again = {job["name"] for job in self._still_measured() if not jobs.once(job)}
        questions = self.standing.open_questions
        return [question for question in questions if again.issuperset(question.cases)]

    def _chosen(self, open_questions: Sequence[OpenQuestion]) -> list[OpenQuestion]:
        """The questions of the next round, all of one rank, which the time left allows.

        A verdict must be within reach; a figure becomes narrower with each round.
        """
        left = self.plan.budget.seconds - self.spent
        chosen: list[OpenQuestion] = []
        planned: set[str] = set()
        for question in sorted(open_questions, key=self._urgency):
            if chosen and question.rank != chosen[0].rank:
                break
            if chosen and self._takes(planned) > self._turn:
                break
            rounds = question.rounds if question.rank is Rank.VERDICT else 1
            takes = rounds * self._takes({*question.cases} - planned)
            if takes <= left:
                left -= takes
                chosen.append(question)
                planned.update(question.cases)
        return chosen

    def _urgency(self, question: OpenQuestion) -> tuple[bool, Rank, float, float]:
        """What sorts open questions, the most urgent first."""
        takes = question.rounds * self._takes(question.cases)
        waits = self.seconds_of[question.cases] >= self._turn
        return waits, question.rank, -question.width, takes

    def _takes(self, cases: Iterable[str]) -> float:
        """The seconds that a round of cases takes."""
        seconds = 0.0
        for name in cases:
            job = self.plan.pool[name]
            samples = jobs.processes(job) * job.get("count", 1)
            seconds += samples * fmean(self.seconds[name] or [0.0])
        return seconds

    def _with_baselines(self, questions: Iterable[OpenQuestion]) -> list[Job]:
        """The jobs of open questions, and the baselines of their releases."""
        wanted: set[str] = set()
        for question in questions:
            wanted.update(question.cases)
        for release in {self.plan.pool[name]["release"] for name in wanted}:
            if versions.key(release) == "go":
                wanted.add(jobs.name(BASELINE, release))
        return [job for job in self._still_measured() if job["name"] in wanted]

    # --- A round ----------------------------------------------------------------------

    def _round(self, number: int, due: Sequence[Job]) -> None:
        """Build the programs, then sample what the round lacks; nothing is built meanwhile."""
        lacking = self._lacking(number, due)
        self.last_round = max(self.last_round, number)
        with writing(self.scratch):
            folder = tempfile.TemporaryDirectory(dir=self.scratch, ignore_cleanup_errors=True)
        with folder as name:
            start = time.monotonic()
            binaries = self._build(lacking, number)
            building = {"build-s": round(time.monotonic() - start, 3)}
            for job in lacking:
                if number != self.first_round and self.spent > self.plan.budget.most:
                    break
                if self.failures[job["name"]] >= GIVE_UP:
                    continue
                self._say(f"round {number}: {job['name']}")
                binary = binaries[jobs.build(job)]
                try:
                    samples = self._sample(job, binary, number, Path(name))
                except SampleFailed as failure:
                    self._failed(job, failure)
                    continue
                samples[0] = samples[0].with_metrics(building)
                building = {}  # it is said with the round's first sample
                self.run.append(map(benchfmt.format_line, samples))
                for sample in samples:
                    self._count(sample)
        self.on_round(self.run)

    def _lacking(self, number: int, due: Iterable[Job]) -> list[Job]:
        """The samples that a round lacks, in random order."""
        chance = random.Random(f"{self.seed} {number}")
        seen: Counter[str] = Counter()
        lacking = []
        for job in in_order(due, chance):
            name = job["name"]
            seen[name] += 1
            if seen[name] > self.taken[name, number]:
                lacking.append(job)
        return lacking

    def _say(self, doing: str) -> None:
        if verdicts := self.standing.verdicts:
            doing = f"{self.standing.decided} of {verdicts} verdicts decided; {doing}"
        seconds = max(self.plan.budget.seconds, self.spent)
        self.progress(self.spent, seconds, doing)

    def _build(self, lacking: list[Job], number: int) -> dict[Build, Path]:
        """Build the binaries of a round's samples: one per program, release and layout.

        A program that was built in some rounds of this session is built again only if its
        samples take longer. Raises GccostError if nothing is left to measure, because no program
        can be built.
        """
        needed: dict[Build, float] = defaultdict(float)  # the seconds of its samples
        for job in lacking:
            seconds = self._takes([job["name"]]) / jobs.processes(job)
            needed[jobs.build(job)] += seconds
        wanted = [what for what, seconds in needed.items() if not self._keeps(what, seconds)]

        def build(what: Build, run: builds.Run) -> _Built:
            return self._build_anew(what, number, run)

        for what, built in builds.build_all(wanted, build, self.progress).items():
            try:
                self.built[what] = built.result()
            except DiskFull:  # not the program's fault, so do not record it
                raise
            except GccostError as error:
                self._not_built(what, error)
        if not self._still_measured():
            reasons = dict.fromkeys(chain(*self.troubles.values()))
            raise GccostError(
                f"no case can be measured: {'; '.join(reasons)}",
                ", ".join(self.plan.studies),
                "make doctor shows the toolchains that were found",
            )
        return {what: self.built[what].path for what in needed if what in self.built}

    def _keeps(self, what: Build, seconds: float) -> bool:
        """Whether a binary is used again, for samples that take these seconds."""
        built = self.built.get(what)
        return built is not None and built.times >= _LAYOUTS and built.seconds > seconds

    def _build_anew(self, what: Build, number: int, run: builds.Run) -> _Built:
        start = time.monotonic()
        times = 0
        if earlier := self.built.get(what):
            times = earlier.times
            shutil.rmtree(earlier.folder, ignore_errors=True)
        with writing(self.scratch):
            folder = Path(tempfile.mkdtemp(dir=self.scratch))
        chance = random.Random(f"{self.seed} layout {number} {what.layout}")
        layout = chance.randrange(1, 2**31)
        path = self.plan.build(what, layout, folder, run)
        return _Built(path, folder, times + 1, time.monotonic() - start)

    def _not_built(self, what: Build, error: GccostError) -> None:
        self.built.pop(what, None)
        for job in self.plan.pool.values():
            if jobs.build(job) == what:
                self._failed(job, error, built=False)

    def _sample(self, job: Job, binary: Path, number: int, scratch: Path) -> list[Sample]:
        name = job["name"]
        profile = scratch / "cpu.pb.gz" if "profile" in job else None
        samples = self.plan.sample(binary, job, scratch, profile)
        if profile is not None:
            if not profile.exists():
                raise SampleFailed("the program wrote no profile", name)
            write_whole(self.run.profile(name, number), profile.read_bytes())
        trace = self.run.gctrace(name)
        if is_traced(job) and not trace.exists():
            # Without a timestamp, so that the same text makes the same file.
            zipped = gzip.compress((scratch / TRACE).read_bytes(), mtime=0)
            write_whole(trace, zipped)
        if not jobs.has(job, "leaks"):
            self._check_freed(samples)
        metrics = {
            "round": float(number),
            "sitting": float(self.sitting),
            "unix-s": round(max(time.time(), 0), 6),
        }
        return [sample.with_metrics(metrics) for sample in samples]

    def _check_freed(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            unfreed = sample.metrics.get("c-unfreed-drained", 0.0)
            if unfreed > max(UNFREED, UNFREED_SHARE * sample.n):
                lost = f"{unfreed:.0f} of {sample.n} C blocks were never freed"
                self._trouble(sample.full_name, lost)

    # --- Failures -----------------------------------------------------------------------

    def _failed(self, job: Job, error: GccostError, *, built: bool = True) -> None:
        """Record a failure; a job that was not built, or fails again, is skipped."""
        name = job["name"]
        self.failures[name] += 1 if built else GIVE_UP
        failed = dict(self.run.manifest()["failed"])
        failed[name] = [*failed.get(name, []), error.message]
        self.run.update(failed=failed)
        if not built:
            message = f"{error}; its cases are skipped"
        elif self.failures[name] == GIVE_UP:
            message = f"{error.message}; it is skipped from here on"
        else:
            message = error.message
        self._trouble(name, message)

    def _trouble(self, name: str, what: str) -> None:
        troubles = self.troubles.setdefault(name, [])
        if what not in troubles:  # a build may fail in every round
            troubles.append(what)
            self.run.update(troubles=self.troubles)

    def _finish(self, because: str) -> None:
        if left := self.standing.left:
            because += f"; {left} verdicts are left that the recorded run could not decide either"
        self.run.finish(self.plan.budget.name, because, self.plan.measured)
        self.progress(self.spent, self.spent, because)
