"""Measuring an experiment: interleaved rounds of fresh processes, until precise.

A round builds the programs anew, then runs every case once, each in a process
of its own, in an order drawn from the run's seed. After each round the headline
ratios' intervals say whether to go on, within the budget. Everything is kept as
it is measured, so measuring can be ended at any moment and taken up again.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from gccost import places
from gccost.errors import GccostError, MissingTool
from gccost.files import write_whole, writing
from gccost.measuring import benchfmt, frames, languages, machine, runs, toolchains
from gccost.measuring.experiments.base import BUDGETS, Budget, Build, Case, Experiment
from gccost.measuring.runs import Run
from gccost.measuring.samples import GODEBUG, TRACE, SampleFailed
from gccost.processes import Leash
from gccost.stats import Estimate, paired_ratio, precise_enough

# How samples are taken: where it changes, they do not go on a run that was begun before.
METHOD = "a release after the other"
GIVE_UP = 2  # failures after which a case is left out
# Stock Go leaves a cleanup unrun now and then; more than this is a finding.
UNFREED_SHARE = 1e-4
GOARCH = {"x86_64": "amd64", "aarch64": "arm64"}  # as Go names what the kernel names

Progress = Callable[[float, float, str], None]
"""Called with the seconds measured, the seconds there will be at most, and what is next."""


@dataclass(frozen=True)
class Plan:
    """An experiment at a budget on this machine: what can be measured, and what cannot."""

    experiment: Experiment
    budget: Budget
    fingerprint: str
    key: str
    found: Mapping[str, Any]  # the releases' toolchains
    compiler: languages.Compiler | None
    missing: Mapping[str, str]  # release -> why it cannot be had
    cpus: int
    memory: int  # that a sample may keep, in bytes

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(
            case.capped(self.memory)
            for case in self.experiment.within(self.budget)
            if case.release in self.found and case.cpus <= self.cpus
        )

    @property
    def seconds(self) -> float:
        """How long it may be measured."""
        return self.experiment.seconds(self.budget)

    @property
    def capped(self) -> tuple[Case, ...]:
        """The cases that this machine's memory is too small for, with the N that fits."""
        whole = {case.name: case.n for case in self.experiment.within(self.budget)}
        return tuple(case for case in self.cases if case.n < whole[case.name])


def plan(
    experiment: Experiment, budget: Budget, say: Callable[[str], None] = toolchains.silent
) -> Plan:
    """Look for the tools that an experiment needs, fetching what can be fetched.

    Before a download `say` is told what and how much it is.
    """
    releases = dict.fromkeys(case.release for case in experiment.within(budget))
    tools = languages.tools(experiment, releases, say)
    description = machine.describe()
    fingerprint = machine.fingerprint(description)
    memory = machine.memory_for_a_sample(description)
    parts = [
        METHOD,
        languages.source_hash(experiment),
        *experiment.releases,
        tools.compiler.version if tools.compiler else "",
        fingerprint,
        f"{budget.scale:g}",
        *(f"{c.name} {c.capped(memory).n}" for c in experiment.cases if c.capped(memory) != c),
    ]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    cpus = description["allowed_cpus"]
    has = (tools.found, tools.compiler, tools.missing)
    return Plan(experiment, budget, fingerprint, key, *has, cpus, memory)


def finished(run: Run, plan: Plan) -> bool:
    """Whether a run holds every case of the plan at its budget or a larger one."""
    entry = run.experiment(plan.experiment.name)
    if entry.get("key") != plan.key:
        return False
    planned = {case.sized_name for case in plan.cases}
    done = entry.get("finished", {})
    return any(
        planned <= set(done[name].get("cases", ()))
        for name, limit in BUDGETS.items()
        if name in done and limit.reaches(plan.budget.name)
    )


def find(plan: Plan) -> Run | None:
    """The newest of your runs whose samples of this experiment are not stale."""
    name = plan.experiment.name
    for run in reversed(runs.all_runs(places.runs())):
        if run.experiment(name).get("key") == plan.key:
            return run
    return None


def measure(plan: Plan, progress: Progress | None = None) -> Run:
    """Measure what a run lacks of an experiment; returns the run.

    Raises GccostError if nothing can be measured or the disk refuses a write.
    A case that fails is noted in the run and left out; the rest goes on.
    """
    name = plan.experiment.name
    if not plan.cases:
        reasons = "; ".join(dict.fromkeys(plan.missing.values()))
        raise MissingTool(f"nothing can be measured: {reasons}", f"experiment {name}")
    run = find(plan)
    if run is not None and finished(run, plan):
        return run
    with runs.exclusive(places.runs(), "measuring"), runs.scratch(places.runs()) as scratch:
        run = find(plan) or begin(plan)
        run.drop_unfinished_line(name)
        _Session(run, plan, scratch, progress or (lambda done, total, what: None)).rounds()
        return run


def begin(plan: Plan) -> Run:
    """A run for an experiment: the newest on this machine without it, or a new one."""
    description = machine.describe()
    open_runs = [
        run
        for run in runs.all_runs(places.runs())
        if run.manifest().get("fingerprint") == plan.fingerprint
        and not run.experiment(plan.experiment.name)
        and run.manifest().get("scale") == plan.budget.scale
    ]
    run = (
        open_runs[-1]
        if open_runs
        else runs.create(
            places.runs(),
            machine=description,
            fingerprint=plan.fingerprint,
            warnings=machine.warnings(description),
            scale=plan.budget.scale,
        )
    )
    # First, so that an experiment that run.json names has its file, whenever we are killed.
    head = (
        f"gccost-format: {runs.FORMAT}",
        f"experiment: {plan.experiment.name}",
        f"goos: {str(description['system']).lower()}",
        f"goarch: {GOARCH.get(description['architecture'], description['architecture'])}",
        f"cpu: {description['cpu']}",
        f"key: {plan.key}",
    )
    write_whole(run.results(plan.experiment.name), "".join(f"{s}\n" for s in head).encode())
    run.update(
        plan.experiment.name,
        key=plan.key,
        seed=random.SystemRandom().randrange(2**31),
        sources=languages.source_hash(plan.experiment),
        machine=description,
        warnings=machine.warnings(description),
        godebug=GODEBUG,
        compiler=plan.compiler.version if plan.compiler else "",
        toolchains={go: t.source for go, t in plan.found.items()},
        random_layout={
            release: languages.of(plan.experiment).random_layout(toolchain)
            for release, toolchain in plan.found.items()
        },
        missing=dict(plan.missing),
        troubles=[
            f"{case.name}: this machine's memory allows {case.n:,} operations only"
            for case in plan.capped
        ],
    )
    return run


def in_order(cases: Iterable[Case], chance: random.Random) -> list[Case]:
    """A round's samples in the order in which they are taken, drawn by chance.

    One release comes after the other, for a verdict compares samples of one: the nearer in
    time they are, the more alike is what the machine does to them. What is sampled
    repeatedly, the baseline, is spread evenly over its release's stretch.
    """
    stretches: dict[str, list[tuple[float, Case]]] = {}
    for case in cases:
        for i in range(case.repeats):
            place = (i + chance.random()) / case.repeats
            stretches.setdefault(case.release, []).append((place, case))
    releases = list(stretches)
    chance.shuffle(releases)
    return [case for r in releases for _, case in sorted(stretches[r], key=itemgetter(0))]


class _Session:
    """One stretch of measuring, from here to the end or to where it is broken off."""

    def __init__(self, run: Run, plan: Plan, scratch: Path, progress: Progress) -> None:
        self.run, self.plan, self.scratch, self.progress = run, plan, scratch, progress
        self.name = plan.experiment.name
        self.entry = run.experiment(self.name)
        self.seed: int = self.entry.get("seed", 0)
        self.troubles: list[str] = list(self.entry.get("troubles", []))
        self.failures: dict[str, int] = {}
        self.cases = plan.cases
        self.language = languages.of(plan.experiment)

    def rounds(self) -> None:
        """Measure rounds until they are precise enough or the budget is spent."""
        frame = self._frame()
        number = int(frame["round"].max()) if len(frame) else 0
        if number and self.entry.get("round_budget") != self.plan.budget.name:
            number += 1  # the last round belongs to another budget: leave it as it is
        number = max(number, 1)
        self.run.update(self.name, round_budget=self.plan.budget.name)
        self._warm_up()
        while True:
            self._round(number, frame)
            frame = self._frame()
            because = self._enough(frame)
            if because:
                self._finish(frame, because)
                return
            number += 1

    def _warm_up(self) -> None:
        """Build once before the clock runs: the first build compiles what later ones only link."""
        self.progress(0.0, self.plan.seconds, "first builds")
        with self._folder() as scratch:
            self._build(list(self.cases), 0, scratch)

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """A folder for a round's programs."""
        with writing(self.scratch):
            folder = Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _frame(self) -> pd.DataFrame:
        """The samples so far of the cases that this plan measures."""
        path = self.run.results(self.name)
        return frames.of_cases(benchfmt.read(path).frame, self.cases)

    def _round(self, number: int, frame: pd.DataFrame) -> None:
        due = [c for c in self.cases if c.due(number) or self._owed(c, frame)]
        order = in_order(due, random.Random(f"{self.seed} {number}"))
        done = Counter(frame.loc[frame["round"] == number, "name"]) if len(frame) else Counter()
        left = []
        for case in order:
            if done[case.name]:
                done[case.name] -= 1
            else:
                left.append(case)
        if not left:
            return
        spent, total = _spent(frame), self._total(frame)
        with self._folder() as scratch:
            start = time.monotonic()
            self.progress(spent, total, f"round {number}: building")
            binaries = self._build(left, number, scratch)
            building = time.monotonic() - start
            for case in left:
                if self.failures.get(case.name, 0) == GIVE_UP:
                    continue
                self.progress(spent, total, f"round {number}: {case.name}")
                try:
                    sample = self._sample(case, binaries, number, scratch)
                except SampleFailed as failure:
                    self._note_failure(case, failure)
                    continue
                if building:
                    sample = sample.with_metrics({"build-s": round(building, 3)})
                    building = 0.0
                sample = sample.with_metrics(
                    {"round": float(number), "unix-s": round(max(time.time(), 0), 3)}
                )
                self.run.append(self.name, [benchfmt.format_line(sample)])
                spent += sample.metrics["elapsed-s"]

    def _owed(self, case: Case, frame: pd.DataFrame) -> bool:
        """Whether a case has failed and has no sample yet: it is tried again before it is due."""
        return case.name in self.failures and not (
            len(frame) and (frame["name"] == case.name).any()
        )

    def _build(self, cases: list[Case], number: int, into: Path) -> dict[Build, Path]:
        """A binary per program, release and layout: the round's, and its twin's."""
        assert self.plan.compiler is not None
        draw = random.Random(f"{self.seed} layout {number}")
        layouts = {relinked: draw.randrange(1, 2**31) for relinked in (False, True)}
        compiler, found = self.plan.compiler, self.plan.found
        wanted = dict.fromkeys(c.build for c in cases)
        # All at once: a link uses one core, and nothing is being measured meanwhile.
        # What breaks off the wait ends the builds first, and then no thread waits for them.
        with ThreadPoolExecutor() as pool, Leash() as leash:
            made = {
                build: pool.submit(
                    self.language.build,
                    *(build, found[build.release], compiler, layouts[build.relinked]),
                    *(into, leash.run),
                )
                for build in wanted
            }
            built = {}
            for key, future in made.items():
                try:
                    built[key] = future.result()
                except GccostError as error:
                    self._note_unbuilt(key, error)
            return built

    def _sample(
        self,
        case: Case,
        binaries: Mapping[Build, Path],
        number: int,
        scratch: Path,
    ) -> benchfmt.Sample:
        binary = binaries[case.build]
        profile = scratch / "cpu.pb.gz" if case.arm.profile else None
        toolchain = self.plan.found[case.release]
        sample = self.language.run_sample(binary, toolchain, case, scratch, profile)
        if profile is not None:
            if not profile.exists():
                raise SampleFailed("the program wrote no profile", case.name)
            kept = self.run.profile(self.name, case.name, number)
            write_whole(kept, profile.read_bytes())
        if case.traced and not (kept := self.run.gctrace(self.name, case.name)).exists():
            # No time in it: the same text makes the same file.
            write_whole(kept, gzip.compress((scratch / TRACE).read_bytes(), mtime=0))
        self._note_losses(case, sample)
        return sample

    def _note_losses(self, case: Case, sample: benchfmt.Sample) -> None:
        left = sample.metrics.get("c-unfreed-drained", 0.0)
        if not case.leaks and left > max(8.0, UNFREED_SHARE * sample.n):
            self._trouble(f"{case.name}: {left:.0f} of {sample.n} C blocks were never freed")

    def _note_failure(self, case: Case, failure: SampleFailed) -> None:
        self.failures[case.name] = self.failures.get(case.name, 0) + 1
        given_up = "; it is left out from here on" if self.failures[case.name] == GIVE_UP else ""
        failed = dict(self.run.experiment(self.name).get("failed", {}))
        failed[case.name] = [*failed.get(case.name, []), failure.thing]
        self.run.update(self.name, failed=failed)
        self._trouble(f"{case.name}: {failure.thing}{given_up}")

    def _note_unbuilt(self, build: Build, error: GccostError) -> None:
        for case in self.cases:
            if case.build == build:
                self.failures[case.name] = GIVE_UP
        self._trouble(f"{error}; what it would have run is left out from here on")

    def _trouble(self, what: str) -> None:
        if what in self.troubles:  # a build that fails does so in every round
            return
        self.troubles.append(what)
        self.run.update(self.name, troubles=self.troubles)

    def _enough(self, frame: pd.DataFrame) -> str:
        """Why measuring is done; empty if it is not."""
        if not self._still_measured():
            raise GccostError(
                "no case of it can be measured: " + "; ".join(dict.fromkeys(self.troubles)),
                f"experiment {self.name}",
                "make doctor shows the toolchains that were found",
            )
        budget = self.plan.budget
        if self._complete_rounds(frame) < budget.min_rounds:
            return ""
        if all(precise_enough(e, budget.half_width) for e in self._headline(frame)):
            return "every ratio that matters is as precise as aimed at"
        if _spent(frame) + self._next_round(frame) > self.plan.seconds:
            return "the budget is spent"
        return ""

    def _still_measured(self) -> list[Case]:
        return [c for c in self.cases if self.failures.get(c.name, 0) < GIVE_UP]

    def _complete_rounds(self, frame: pd.DataFrame) -> int:
        """How many rounds the case with the fewest was due in, of those not given up."""
        rounds = frame.groupby("name")["round"].nunique()
        return min(
            (int(rounds.get(c.name, 0)) * c.every for c in self._still_measured()), default=0
        )

    def _headline(self, frame: pd.DataFrame) -> Iterator[Estimate]:
        """The ratios that must be precise: the headline's, and the A/A controls'.

        The controls are among them because a difference is only called beyond
        what they differ by, so that must be known as finely.
        """
        experiment = self.plan.experiment
        cases = frames.by_case(frame)
        measured = {(case.arm, case.release) for case in self._still_measured()}
        # A release that is measured in few rounds is none that a verdict waits for.
        few = {(case.arm, case.release) for case in self._still_measured() if case.every > 1}
        headline = (
            (ratio, go)
            for go in self.plan.found
            for ratio in experiment.headline
            if (ratio.numerator, go) not in few
        )
        for ratio, go in (*headline, *experiment.controls):
            if {(ratio.numerator, go), (ratio.denominator, go)} <= measured:
                pairs = frames.pairs(cases, ratio, go)
                over, under = pairs["numerator"].to_numpy(), pairs["denominator"].to_numpy()
                yield paired_ratio(over, under, pairs.index.to_numpy())

    def _total(self, frame: pd.DataFrame) -> float:
        """The seconds of measuring that there will be at most, as far as can be told."""
        lacking = self.plan.budget.min_rounds - self._complete_rounds(frame) if len(frame) else 0
        return max(self.plan.seconds, _spent(frame) + lacking * self._next_round(frame))

    def _next_round(self, frame: pd.DataFrame) -> float:
        """The seconds that the next round will take, as far as can be told."""
        if not len(frame):
            return 0.0
        number = int(frame["round"].max()) + 1
        each = frame.groupby("name")["elapsed-s"].mean()
        due = [case for case in self._still_measured() if case.due(number)]
        samples = sum(float(each.get(case.name, 0.0)) * case.repeats for case in due)
        builds = frame.groupby("round")["build-s"].sum() if "build-s" in frame else None
        return samples + (float(builds.iloc[-1]) if builds is not None else 0.0)

    def _finish(self, frame: pd.DataFrame, because: str) -> None:
        spent = _spent(frame)
        in_loops = float((frame["ns/op"] * frame["n"]).sum()) / 1e9
        done = dict(self.run.experiment(self.name).get("finished", {}))
        done[self.plan.budget.name] = {
            "because": because,
            "cases": sorted(c.sized_name for c in self._still_measured()),
            "rounds": self._complete_rounds(frame),
            "samples": len(frame),
            "seconds": round(spent, 1),
            "share_in_loops": round(in_loops / spent, 3) if spent else 0.0,
            "date": runs.now(),
        }
        self.run.update(self.name, finished=done, missing=dict(self.plan.missing))
        self.progress(spent, spent, because)


def _spent(frame: pd.DataFrame) -> float:
    """The seconds that the samples took, their builds included."""
    if not len(frame):
        return 0.0
    columns = [c for c in ("elapsed-s", "build-s") if c in frame]
    return float(frame[columns].sum().sum())
