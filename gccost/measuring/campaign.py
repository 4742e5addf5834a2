"""The campaign: one pool of samples for all studies, measured in rounds.

A round builds the programs of its cases again and samples the cases, each in a fresh process.
Nothing is built while a sample is taken, and builds take no time from the budget. The order is
drawn from the run's seed, one release after the other, so that compared samples are close in
time. First every case gets the rounds that an estimate needs. The remaining time goes to the
open questions, undecided verdicts and headline figures with wide intervals, those that need
the least time first. Each of these rounds includes the baseline.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from statistics import fmean

from gccost.errors import DiskFull, GccostError, MissingTool
from gccost.files import write_whole, writing
from gccost.measuring import benchfmt, builds, jobs, machine, runs
from gccost.measuring.benchfmt import Sample
from gccost.measuring.cases import BUDGETS, FREE, Build, Case
from gccost.measuring.planning import Plan, Standing, Want
from gccost.measuring.progress import Progress, unwatched
from gccost.measuring.runs import Run
from gccost.measuring.sampler import TRACE, SampleFailed

# Sampling-protocol version; changing it invalidates unfinished runs.
METHOD = "sittings, a probe in each process, one pool"
GIVE_UP = 2  # failures after which a case is skipped
# Stock Go sometimes does not run a cleanup; a larger loss is reported. The number is for
# short loops, where the share is less than a block.
UNFREED_SHARE, UNFREED = 1e-4, 8


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


def measure(plan: Plan, progress: Progress = unwatched, *, again: bool = False) -> Run:
    """Measure what a run lacks, and return the run; with `again` add a sitting if it is complete.

    Raises GccostError if nothing can be measured or a write fails. A case that fails is
    recorded in the run and skipped.
    """
    if not plan.pool:
        reasons = "; ".join(dict.fromkeys(plan.missing.values()))
        names = ", ".join(study.name for study in plan.studies)
        raise MissingTool(f"nothing can be measured: {reasons}", names)
    run = find(plan)
    if run is not None and finished(run, plan) and not again:
        return run
    with runs.exclusive(plan.folder, "measuring"), runs.scratch(plan.folder) as scratch:
        run = begin(plan)
        run.drop_unfinished_line()
        _Campaign(run, plan, scratch, progress).measure()
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
    known = run.table() if run.jobs.exists() else {}
    jobs.write(run.jobs, (known | plan.jobs).values())
    manifest = run.manifest()
    layouts = plan.random_layouts
    troubles = dict(manifest["troubles"])
    whole = {c.name: c.scaled(plan.budget.scale).n for s in plan.studies for c in s.cases}
    for name, case in plan.pool.items():
        if case.n < whole[name]:
            allows = f"this machine's memory allows {case.n:,} operations only"
            troubles[name] = list(dict.fromkeys([*troubles.get(name, []), allows]))
    run.update(
        machine=dict(plan.description),  # its load and commit are those of the last sitting
        warnings=machine.warnings(plan.description),
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
        self.sitting = run.sit(plan.budget.name, plan.measured)
        manifest = run.manifest()
        self.seed: int = manifest["seed"]
        self.troubles: dict[str, list[str]] = manifest["troubles"]
        self.failures: Counter[str] = Counter()
        self.first = 1  # round of this sitting, which is measured whatever it takes
        self.standing = Standing()
        # Also before an interruption.
        self.spent = sum(sample.metrics.get("elapsed-s", 0.0) for sample in self._samples())

    def measure(self) -> None:
        """Measure rounds until no question is open or the time is spent."""
        # After an interruption the last round may be incomplete.
        rounds = [sample.metrics["round"] for sample in self._samples()]
        number = int(max(rounds)) if rounds else self._last_round() + 1
        self.first = int(min(rounds, default=number))
        while due := self._first_rounds():
            self._round(number, due)
            number += 1
        while True:
            self.standing = self.plan.questions.standing(self.run)
            measured = {case.name: case for case in self._still_measured() if not case.once}
            wants = [want for want in self.standing.wants if measured.keys() >= {*want.cases}]
            affordable = self._affordable(wants)
            if not affordable:
                break
            # Until the last of these rounds no verdict can change.
            for _ in range(min(want.rounds for want in affordable)):
                self._round(self._last_round() + 1, _with_baselines(affordable, measured))
        open_ = "nothing is open that more rounds could settle"
        self._finish("the budget is spent" if wants else open_)

    # --- Choosing the next round ------------------------------------------------------

    def _first_rounds(self) -> list[Case]:
        """The cases that still lack rounds that an estimate needs."""
        if self.spent > self.plan.budget.most:
            return []
        taken = Counter((s.full_name, s.metrics["round"]) for s in self._samples())
        pool = self.plan.pool
        whole = Counter(name for (name, _), n in taken.items() if n >= pool[name].processes)
        return [c for c in self._still_measured() if whole[c.name] < self.plan.rounds(c)]

    def _affordable(self, wants: Sequence[Want]) -> list[Want]:
        """The open questions that the time left allows, those that need the least time first."""
        seconds = self._seconds_of_a_round()

        def takes(want: Want, cases: Iterable[str]) -> float:
            return want.rounds * sum(seconds[name] for name in cases)

        left = self.plan.budget.seconds - self.spent
        found: list[Want] = []
        planned: set[str] = set()
        for want in sorted(wants, key=lambda want: takes(want, want.cases)):
            if takes(want, want.cases) > left:
                break
            left -= takes(want, {*want.cases} - planned)
            found.append(want)
            planned.update(want.cases)
        return found

    def _seconds_of_a_round(self) -> dict[str, float]:
        """The seconds that a case's processes take in a round."""
        elapsed = defaultdict[str, list[float]](list)
        for sample in self._samples():
            elapsed[sample.full_name].append(sample.metrics.get("elapsed-s", 0.0))
        pool = self.plan.pool
        return {name: fmean(elapsed[name] or [0.0]) * pool[name].processes for name in pool}

    def _still_measured(self) -> list[Case]:
        return [c for c in self.plan.pool.values() if self.failures[c.name] < GIVE_UP]

    # --- A round ----------------------------------------------------------------------

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
        """The samples of this sitting."""
        found = samples_of(self.run, self.plan)
        return [s for s in found if s.metrics.get("sitting", 1) == self.sitting]

    def _last_round(self) -> int:
        """The last round of any sitting."""
        found = self.run.reading().samples.values()
        return int(max((s.metrics.get("round", 0) for s in found), default=0))

    def _round(self, number: int, cases: list[Case]) -> None:
        """Build the programs, then sample what the round lacks; nothing is built meanwhile."""
        left = self._left(number, cases)
        with self._folder() as scratch:
            start = time.monotonic()
            binaries = self._build(left, number, scratch)
            building = {"build-s": round(time.monotonic() - start, 3)}
            while left and (number == self.first or self.spent <= self.plan.budget.most):
                case = left.pop(0)
                if self.failures[case.name] >= GIVE_UP:
                    continue
                self._say(f"round {number}: {case.name}")
                try:
                    sample = self._sample(case, binaries, number, scratch)
                except SampleFailed as failure:
                    last = self.failures[case.name] == GIVE_UP - 1
                    told = failure.message + "; it is skipped from here on" * last
                    self._note_failure(case, 1, failure, told)
                    continue
                at = {"round": float(number), "sitting": float(self.sitting)}
                at["unix-s"] = round(max(time.time(), 0), 3)
                self.run.append([benchfmt.format_line(sample.with_metrics(building | at))])
                building = {}  # with the round's first sample
                self.spent += sample.metrics["elapsed-s"]

    def _left(self, number: int, cases: list[Case]) -> list[Case]:
        """The samples that a round lacks, in random order."""
        done = Counter(s.full_name for s in self._samples() if s.metrics["round"] == number)
        left = []
        for case in in_order(cases, random.Random(f"{self.seed} {number}")):
            done[case.name] -= 1
            if done[case.name] < 0:
                left.append(case)
        return left

    def _say(self, what: str) -> None:
        decided, verdicts = self.standing.decided, self.standing.verdicts
        told = f"{decided} of {verdicts} verdicts decided; " if verdicts else ""
        self.progress(self.spent, max(self.plan.budget.seconds, self.spent), told + what)

    def _build(self, cases: list[Case], number: int, into: Path) -> dict[Build, Path]:
        """Build the binaries of a round's samples: one per program, release and layout.

        Raises GccostError if nothing is left to measure, because no program can be built.
        """
        draw = random.Random(f"{self.seed} layout {number}")
        layouts = {relinked: draw.randrange(1, 2**31) for relinked in (False, True)}
        owners = {case.build: self.plan.owners[case.name] for case in cases}

        def build(what: Build, run: builds.Run) -> Path:
            return self.plan.build(what, owners[what], layouts[what.relinked], into, run)

        built = {}
        for what, made in builds.build_all(list(owners), build, self.progress).items():
            try:
                built[what] = made.result()
            except DiskFull:  # not the program's fault, so do not record it
                raise
            except GccostError as error:
                for case in self.plan.pool.values():
                    if case.build == what:
                        self._note_failure(case, GIVE_UP, error, f"{error}; its cases are skipped")
        if not self._still_measured():
            raise GccostError(
                "no case can be measured: "
                + "; ".join(dict.fromkeys(t for ts in self.troubles.values() for t in ts)),
                ", ".join(study.name for study in self.plan.studies),
                "make doctor shows the toolchains that were found",
            )
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
        if left := self.standing.left:
            because += f"; {left} verdicts are left that the recorded run could not decide either"
        self.run.finish(self.plan.budget.name, because, self.plan.measured)
        self.progress(self.spent, self.spent, because)


def _with_baselines(wants: Iterable[Want], measured: Mapping[str, Case]) -> list[Case]:
    """The cases of open questions, and the baselines of their releases."""
    wanted = {name for want in wants for name in want.cases}
    releases = {measured[name].release for name in wanted}
    return [
        case
        for name, case in measured.items()
        if name in wanted or (case.variant == FREE and case.release in releases)
    ]
