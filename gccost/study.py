"""The door: what a notebook calls.

    study = gccost.study.open_study("lemire")

opens an experiment: it measures what your run lacks, or replays the recorded one
(`GCCOST_MODE=replay`, a Binder machine, or no toolchain), and then gives frames,
estimates, verdicts, tables and charts.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import pandas as pd
from IPython.display import display
from tqdm import tqdm

from gccost import places, processes, rounding
from gccost.errors import GccostError, MissingTool
from gccost.judging import ledger
from gccost.judging.claims.quantities import Share
from gccost.judging.ledger import Row
from gccost.judging.objects import per_object
from gccost.judging.questions import questions
from gccost.judging.recording import Recording
from gccost.measuring import campaign, languages, runs, toolchains
from gccost.measuring.experiments import EXPERIMENTS, experiment
from gccost.measuring.experiments.base import BUDGETS, Arm, Budget, Experiment, Ratio, budget
from gccost.measuring.runs import Run
from gccost.measuring.samples import RUN_DELAY
from gccost.showing import charts, tables
from gccost.showing.figures import Chart
from gccost.showing.tables import Cell, Markup, Prose
from gccost.stats import Estimate

SHELL_SECONDS = 300  # after which a chapter's plain command counts as hung
SHOWN_PROBLEMS = 5  # lines that could not be used, by name: of a spoiled file they are many

Mode = Literal["measure", "replay"]


def mode() -> Mode:
    """Whether this session measures or replays."""
    named = os.environ.get("GCCOST_MODE", "")
    if named not in ("", "measure", "replay"):
        raise GccostError(f"there is no mode {named!r}", "GCCOST_MODE", "name measure or replay")
    if named:
        return "replay" if named == "replay" else "measure"
    return "replay" if any(name.startswith("BINDER_") for name in os.environ) else "measure"


def chosen_budget() -> Budget:
    """The budget that `BUDGET=` or `GCCOST_BUDGET` names; quick if none does."""
    return budget(os.environ.get("GCCOST_BUDGET") or "quick")


def reference(of: Experiment) -> Run:
    """The newest recorded run that holds an experiment.

    Of one that is measured apart there may be none yet: then the newest of all.
    """
    recorded = runs.all_runs(places.reference())
    for run in reversed(recorded):
        if run.holds(of.name):
            return run
    if of.apart and recorded:
        return recorded[-1]
    raise GccostError(
        f"no recorded run holds {of.name}", str(places.reference()), f"make measure ONLY={of.name}"
    )


@dataclass(frozen=True)
class Study:
    """An experiment, opened: what was recorded of it, and ways to show it."""

    mode: Mode
    recording: Recording
    notices: tuple[str, ...]  # why this run is shown and not another

    @property
    def experiment(self) -> Experiment:
        return self.recording.experiment

    @property
    def run(self) -> Run:
        return self.recording.run

    @property
    def frame(self) -> pd.DataFrame:
        """A row a sample; see data/README.md for the columns."""
        return self.recording.frame

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases that were measured."""
        return self.recording.releases

    def level(self, arm: Arm, go: str, metric: str = "ns/op") -> Estimate:
        """An arm's own level of a metric."""
        return self.recording.level(arm, go, metric)

    def ratio(self, over: Arm, under: Arm, go: str, metric: str = "ns/op") -> Estimate:
        """The cost of an arm over that of another."""
        return self.recording.ratio(Ratio(over, under, metric), go)

    def added(self, over: Arm, under: Arm, go: str, metric: str = "ns/op") -> Estimate:
        """What one arm costs more than another."""
        return self.recording.added(Ratio(over, under, metric), go)

    def amount(self, arm: Arm, go: str, metric: str) -> Estimate:
        """An arm's amount of a metric that may be 0, such as a count."""
        return self.recording.amount(arm, go, metric)

    def share(
        self,
        arm: Arm,
        go: str,
        *functions: str,
        within: tuple[str, ...] = (),
        of: tuple[str, ...] = (),
    ) -> Estimate:
        """The share of an arm's CPU profile whose stacks hold any of the functions.

        See `Share` for `within` and `of`.
        """
        return self.recording.share(Share(arm, functions, within, of), go)

    @cached_property
    def rows(self) -> list[Row]:
        """The ledger's rows of this experiment's claims."""
        return ledger.rows({self.experiment.name: self.recording}, self.recording.claims)

    def row(self, claim: str, go: str) -> Row:
        """A claim's row on one release."""
        rows = {(row.claim.id, row.release): row for row in self.rows}
        if (claim, go) not in rows:
            known = ", ".join(f"{name} on {release}" for name, release in rows)
            raise GccostError(
                f"there is no claim {claim} on {toolchains.title(go)}", mend=f"name one of {known}"
            )
        return rows[claim, go]

    def verdicts(self) -> Markup:
        """The ledger's lines of this experiment's claims."""
        return tables.ledger(self.rows, links=False)

    def judged(self, claim: str) -> Prose:
        """A claim's verdicts, a line per release."""
        lines = [
            f"- **{row.claim.id} on {row.toolchain}**: "
            + (tables.told(row.estimate, row.unit) if row.estimate.samples else "–")
            + f", {'' if row.is_bar else 'published '}{row.held_to}"
            + (f" ({rounding.times(row.factor)} of it)" if row.sized else "")
            + f": **{row.verdict}** ({row.why})."
            for row in self.rows
            if row.claim.id == claim
        ]
        return Prose("\n".join(lines))

    def chart(self, name: str) -> Chart:
        """A chart by name."""
        if name not in charts.CHARTS:
            raise GccostError(
                f"there is no chart {name!r}", mend=f"name one of {', '.join(charts.CHARTS)}"
            )
        return charts.CHARTS[name](self.recording)

    def notice(self) -> Markup:
        """Which run is shown, how it was measured, and what makes it less trustworthy."""
        return _notice(self)

    def costs(self, *arms: Arm, under: Arm) -> Markup:
        """What arms cost, a table per release: time, against `under`, memory, what is left."""
        header = (
            "variant",
            "cost, ns/op",
            "mean, ns/op",
            f"against {charts.NAMES[under.benchmark]}",
            "added per object",
            "CPU ns/op",
            "settled ns/op",
            "allocs/op",
            "GC cycles",
            "blocks left by the loop, the drain",
            "page faults",
            "peak RSS",
        )
        parts = [
            tables.table(header, self._cost_lines(arms, under, go), caption=toolchains.title(go))
            for go in self.releases
        ]
        return Markup("".join(p.html for p in parts), "\n\n".join(p.text for p in parts))

    def _cost_lines(
        self, arms: tuple[Arm, ...], under: Arm, go: str
    ) -> Iterator[tuple[str | Cell, ...]]:
        for arm in arms:
            if not len(self.recording.samples(arm, go)):
                continue
            allocs, cycles, loop, drained = (
                rounding.count(self.amount(arm, go, unit).value)
                for unit in ("allocs/op", "gc-cycles", "c-unfreed-loop", "c-unfreed-drained")
            )
            ratio, added = self.ratio(arm, under, go), self.added(arm, under, go)
            yield (
                charts.NAMES[arm.benchmark] + (", GC off" if arm.gogc == "off" else ""),
                rounding.plain(self.level(arm, go).value),
                rounding.plain(self.recording.mean(arm, go)),
                Cell("1") if arm == under else tables.estimate(ratio, "ratio"),
                Cell("–") if arm == under else tables.estimate(added, "ns"),
                rounding.plain(self.level(arm, go, "cpu-ns/op").value),
                rounding.plain(self.level(arm, go, "settled-ns/op").value),
                allocs,
                cycles,
                Cell(loop, drained),
                rounding.count(self.recording.amount(arm, go, "faults").value),
                rounding.mebibytes(self.level(arm, go, "peak-rss-bytes").value),
            )

    def processes(self, *arms: Arm, nothing: Arm) -> Markup:
        """What the system counted of whole processes, a table per release, as `time` prints it.

        `nothing` is the process that does no work: it is taken off what an object costs.
        """
        header = (
            "variant",
            "objects",
            "user s",
            "system s",
            "elapsed s",
            "CPU",
            "peak RSS",
            "page faults",
            "collections",
            "paused ms",
            "CPU ns per object",
        )
        parts = [
            tables.table(
                header,
                self._process_lines(arms, nothing, release),
                caption=toolchains.title(release),
            )
            for release in self.releases
        ]
        return Markup("".join(p.html for p in parts), "\n\n".join(p.text for p in parts))

    def _process_lines(
        self, arms: tuple[Arm, ...], nothing: Arm, release: str
    ) -> Iterator[tuple[str | Cell, ...]]:
        for arm in arms:
            samples = self.recording.samples(arm, release)
            if not len(samples):
                continue
            user, system, elapsed, paused, share, faults, cycles = (
                self.amount(arm, release, unit).value
                for unit in (
                    *("user-s", "sys-s", "elapsed-s", "gc-pause-s"),
                    *("cpu-share", "faults", "gc-cycles"),
                )
            )
            added = per_object(self.recording, arm, release)[1]
            yield (
                charts.on_a_jvm(arm),
                "–" if arm == nothing else rounding.count(float(samples["n"].iloc[0])),
                *map(rounding.plain, (user, system, elapsed)),
                rounding.percent(share),
                rounding.mebibytes(self.level(arm, release, "peak-rss-bytes").value),
                rounding.count(faults),
                rounding.count(cycles),
                rounding.plain(1000 * paused),
                Cell("–") if arm == nothing else tables.estimate(added, "ns"),
            )

    def choices(self, *arms: Arm, under: Arm, go: str, c_ns: float, per_second: float) -> Markup:
        """What each arm adds to a program that frees manually now.

        `c_ns` is what the C work behind an object takes, in ns; `per_second` is how
        many objects a second there are. Where the arms and `under` run beside a large live
        heap, the caption says so.
        """
        header = (
            "choice",
            "added per object",
            f"to C work of {rounding.nanoseconds(c_ns)}",
            f"of a core, at {rounding.count(per_second)} a second",
            "adds 5 % or less from",
            "C blocks waiting, at most",
            "a block waits, on average",
        )
        lines: list[tuple[str | Cell, ...]] = []
        for arm in arms:
            added = self.added(arm, under, go, "settled-ns/op")
            if not added.samples:
                continue
            cpu = self.added(arm, under, go, "settled-cpu-ns/op").value
            held = self.amount(arm, go, "c-held-peak")
            waiting = held if held.samples else self.amount(arm, go, "c-unfreed-loop")
            # By Little's law: what waits on average, over what is freed in a time.
            mean, pace = self.amount(arm, go, "c-held-mean"), self.level(arm, go)
            lines.append(
                (
                    charts.called(arm),
                    tables.estimate(added, "ns"),
                    rounding.percent(added.value / c_ns),
                    rounding.percent(cpu * per_second / 1e9),
                    rounding.nanoseconds(max(added.value, 0) / 0.05),
                    rounding.count(waiting.value),
                    rounding.nanoseconds(mean.value * pace.value) if mean.samples else "–",
                )
            )
        heap = dict(under.sub).get("mb")
        where = f", beside {heap} MB of live Go memory" if heap else ""
        return tables.table(header, lines, caption=toolchains.title(go) + where)

    def changed(self, ratio: Ratio, go: str, less: str, more: str) -> str:
        """A ratio as a change in words, if it is more than noise.

        `less` and `more` are the verbs: "saves 12.3 %", "costs 12.3 %".
        """
        if not self.recording.differs(ratio, go):
            return "makes no difference that the measuring can tell from noise"
        value = self.recording.ratio(ratio, go).value
        return f"{less if value < 1 else more} {rounding.percent(abs(1 - value))}"

    def shell(self, name: str, command: str) -> Prose:
        """Run a plain command where the programs are, with the newest release measured, and
        show what it prints.

        It runs once a run, and its output is kept there; replay shows what was kept.
        """
        kept = self.run.manifest().get("shell", {}).get(name)
        if self.mode == "measure" and (kept is None or kept["command"] != command):
            printed = _shell(command, languages.of(self.experiment), self.releases[-1])
            self.run.keep_shell(name, command, printed)
            kept = self.run.manifest()["shell"][name]
        if kept is None:
            return Prose(f"```\n$ {command}\n```\nThe recorded run does not hold its output.")
        folder = languages.of(self.experiment).folder.name
        return Prose(
            f"```\n$ cd {folder} && {kept['command']}\n{kept['output'].rstrip()}\n```\n"
            f"*Run on {kept['date'][:10]}.*"
        )


def open_study(name: str) -> Study:
    """Open an experiment; measures what is missing unless this session replays."""
    of = experiment(name)
    if mode() == "replay":
        return _replayed(of, ())
    if of.apart:
        return _as_it_stands(of)
    try:
        plan = _plan(of)
        with _bar(f"{of.name}, {plan.budget.name} budget") as progress:
            run = campaign.measure(plan, progress)
        notices = tuple(
            f"{toolchains.title(go)} was not measured. {why}" for go, why in plan.missing.items()
        )
        notices += runs.passed_over(places.runs())
        return Study("measure", Recording.load(of, run), notices)
    except MissingTool as error:
        return _replayed(
            of, (f"Nothing could be measured here, so a recorded run is shown. {error}",)
        )


def _plan(of: Experiment) -> campaign.Plan:
    limit = chosen_budget()
    return campaign.plan([of], limit, questions([of], limit))


def _replayed(of: Experiment, notices: tuple[str, ...]) -> Study:
    run = reference(of)
    if not run.holds(of.name):
        notices += (f"Nothing of {of.name} is recorded yet: {of.apart} measures it.",)
    notices += runs.passed_over(places.reference())
    recorded, now = run.manifest()["programs"], languages.source_hashes(of)
    if any(recorded.get(program) != mark for program, mark in now.items()):
        notices += ("The measured programs have changed since this run was recorded.",)
    return Study("replay", Recording.load(of, run), notices)


@contextmanager
def _bar(what: str) -> Iterator[campaign.Progress]:
    """A progress bar in seconds of measuring; it appears with the first thing to do.

    It is text: a widget is not drawn while a kernel that was restarted is busy.
    """
    bar: Any = None

    def progress(done: float, total: float, doing: str) -> None:
        nonlocal bar
        if bar is None:
            bar = tqdm(
                total=round(total),
                desc=what,
                unit="s",
                leave=True,  # what was drawn and wiped away would be an empty line in the notebook
                bar_format="{desc}: {percentage:3.0f} %|{bar}| {elapsed} of about "
                "{total} s of measuring{postfix}",
            )
        bar.total = round(max(total, done))
        bar.n = round(done)
        bar.set_postfix_str(doing)

    try:
        yield progress
    finally:
        if bar is not None:
            bar.close()


def _shell(command: str, language: languages.Language, release: str) -> str:
    toolchain = language.fetch(release, toolchains.silent)
    place = shlex.join(["sh", "-c", command])
    try:
        done = processes.run(
            ["/bin/sh", "-c", command],
            cwd=language.folder,
            env=language.environment(toolchain),
            stderr=subprocess.STDOUT,
            limit=SHELL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise GccostError(f"it took over {SHELL_SECONDS} s and was ended", place) from None
    if done.returncode:
        raise GccostError(f"the command failed:\n{done.stdout.strip()}", place)
    return done.stdout


def _notice(study: Study) -> Markup:
    manifest = study.run.manifest()
    machine = manifest["machine"]
    spoken = languages.of(study.experiment)
    budget_name, summary = _summary(manifest, study.experiment.name)
    lines = [
        ("study", study.experiment.name),
        (
            "run",
            f"{study.run.name}, "
            + ("recorded" if study.mode == "replay" else "your own")
            + f", begun {manifest['created'][:10]}",
        ),
        (
            "machine",
            f"{machine.get('cpu')}, {machine.get('allowed_cpus')} CPUs, {machine.get('release')}",
        ),
        ("releases", ", ".join(map(toolchains.title, study.releases))),
        (spoken.compiles_with, manifest["compilers"].get(spoken.compiles_with, "")),
        ("samples", _samples(study.frame)),
    ]
    if summary:
        lines.append(
            (
                "measured",
                f"all studies together: {summary['samples']} samples in "
                f"{rounding.plain(summary['seconds'])} s "
                f"({rounding.percent(summary['share_in_loops'])} of it inside timed loops), "
                f"{budget_name}{' budget' if budget_name in BUDGETS else ''}; it ended because "
                f"{summary['because']}",
            )
        )
    facts = tables.table(("what", "which"), lines)
    cases = {case.name for case in study.experiment.cases}
    doubts = [
        *(
            f"{DISTURBED} {why}."
            for why in dict.fromkeys(chain(*study.recording.disturbed.values()))
        ),
        *study.notices,
        *(
            ["This run was broken off before its budget was spent."]
            if not summary and len(study.frame)
            else []
        ),
        *_fixed_layout(manifest, study.releases),
        *manifest["warnings"],
        *dict.fromkeys(
            t if t.startswith("gosrc/") else f"{name}: {t}"
            for name, troubles in manifest["troubles"].items()
            if name in cases
            for t in troubles
        ),
        *_unused(study.recording.problems),
    ]
    box = tables.warnings(doubts, "Caveats")
    return Markup(facts.html + box.html, facts.text + "\n" + box.text)


DISTURBED = (
    "The machine was disturbed while this was measured, so ratios of the times concerned are not "
    "judged. Close other programs, or use another machine, and measure again:"
)


def _summary(manifest: Mapping[str, Any], study: str) -> tuple[str, Mapping[str, Any]]:
    """The largest budget that a study was measured to the end of, and how it ended."""
    done = manifest["finished"]
    order = [*(name for name in done if name not in BUDGETS), *BUDGETS]
    names = [name for name in order if name in done and study in done[name]["studies"]]
    return (names[-1], done[names[-1]]) if names else ("", {})


def _samples(frame: pd.DataFrame) -> str:
    if "run-delay-share" not in frame:
        return f"{len(frame)} of this study"
    rejected = int((frame["run-delay-share"] > RUN_DELAY).sum())
    return (
        f"{len(frame)} of this study; in {rejected} the threads waited for a CPU for more than "
        f"{rounding.percent(RUN_DELAY)} of the time"
    )


def _fixed_layout(manifest: Mapping[str, Any], releases: Sequence[str]) -> Iterator[str]:
    for go in releases:
        if not manifest["random_layout"].get(go, True):
            yield (
                f"{toolchains.title(go)} has no random layout: its rounds move the C code alone, "
                "so what the layout of the Go code does to these times is in none of the intervals."
            )


def _unused(problems: Sequence[str]) -> Iterator[str]:
    for problem in problems[:SHOWN_PROBLEMS]:
        yield f"A line could not be used: {problem}"
    if more := len(problems[SHOWN_PROBLEMS:]):
        yield f"{more} more lines of that file could not be used."


def source(path: str, *functions: str) -> Prose:
    """Functions of a file of gosrc/, shown as they stand there, comments included."""
    text = (places.GOSRC / path).read_text(encoding="utf-8")
    parts = []
    for name in functions:
        # Its comment lines, its first line, and what follows up to a brace in the first column.
        start = rf"(?:^//.*\n)*^func (?:\([^)]*\) )?{re.escape(name)}\("
        pattern = start + r".*(?:\}|(?:\n(?:[\t ].*)?)+\n\})$"
        found = re.search(pattern, text, re.MULTILINE)
        if found is None:
            raise GccostError(f"there is no function {name}", f"gosrc/{path}")
        parts.append(found.group(0))
    return Prose("\n".join(("```go", f"// gosrc/{path}", "", "\n\n".join(parts), "```")))


def listing(path: str) -> Prose:
    """A file of javasrc/, shown as it stands there but for its package and imports."""
    text = (places.JAVASRC / path).read_text(encoding="utf-8")
    kept = re.sub(r"^(?:package|import) .*;\n+", "", text, flags=re.MULTILINE)
    return Prose("\n".join(("```java", f"// javasrc/{path}", "", kept.strip(), "```")))


def say(*paragraphs: str) -> None:
    """Show prose that was filled in from the data."""
    prose = Prose("\n\n".join(" ".join(text.split()) for text in paragraphs))
    display(prose)


@dataclass(frozen=True)
class Results:
    """Every experiment that was recorded, for the results notebook."""

    studies: tuple[Study, ...]

    @cached_property
    def rows(self) -> list[Row]:
        """The whole ledger."""
        return ledger.rows({s.experiment.name: s.recording for s in self.studies})

    def ledger(self) -> Markup:
        """The whole ledger as a table."""
        return tables.ledger(self.rows)

    def chart(self) -> Chart:
        """Every verdict in one chart."""
        return charts.verdicts(self.rows)

    def beside(self) -> Chart:
        """Java beside Go: what a safety net costs as a multiple of manual."""
        return charts.beside({s.experiment.name: s.recording for s in self.studies})

    def notice(self) -> Iterator[Markup]:
        """What was run, a table per experiment."""
        return (study.notice() for study in self.studies)


def open_results() -> Results:
    """Open every experiment that there is a run of; measures nothing."""
    only = os.environ.get("GCCOST_ONLY")
    chosen = [experiment(only)] if only else [of for of in EXPERIMENTS.values() if shown(of)]
    return Results(tuple(_as_it_stands(of) for of in chosen))


def shown(of: Experiment) -> bool:
    """Whether there is something to show of an experiment, or it can be measured.

    One that is measured apart has nothing until its command was run, and in
    replay none has until it was recorded.
    """
    if not of.apart and mode() == "measure":
        return True
    folders = [places.reference()] if mode() == "replay" else [places.reference(), places.runs()]
    return any(run.holds(of.name) for f in folders for run in runs.all_runs(f))


def _as_it_stands(of: Experiment) -> Study:
    if mode() == "replay":
        return _replayed(of, ())
    run = campaign.find(_plan(of))
    if run is None or not run.holds(of.name):
        how = of.apart or f"make measure ONLY={of.name}"
        return _replayed(of, (f"It was not measured here ({how}): a recorded run is shown.",))
    return Study("measure", Recording.load(of, run), runs.passed_over(places.runs()))
