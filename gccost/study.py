"""What a notebook calls.

    study = gccost.study.open_study("lemire")

opens an experiment: it measures what your run lacks, or replays the recorded one
(`GCCOST_MODE=replay`, a Binder machine, or no toolchain). The study then gives
frames, estimates, verdicts, tables and charts.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import pandas as pd
from IPython.display import display

from gccost import places, processes, rounding
from gccost.errors import GccostError, MissingTool
from gccost.judging import ledger
from gccost.judging.claims.quantities import Share
from gccost.judging.ledger import Row
from gccost.judging.questions import questions
from gccost.judging.recording import Recording
from gccost.measuring import campaign, languages, runs, toolchains
from gccost.measuring.experiments import EXPERIMENTS, experiment
from gccost.measuring.experiments.base import Arm, Experiment, Ratio, named
from gccost.measuring.runs import Run
from gccost.settings import Mode, Settings
from gccost.showing import charts, progress, tables, variants
from gccost.showing.figures import Chart
from gccost.showing.notice import notice
from gccost.showing.tables import Markup, Prose
from gccost.stats import Estimate

SHELL_SECONDS = 300  # after which a chapter's plain command counts as hung


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
        return named(charts.CHARTS, name, "chart")(self.recording)

    def notice(self) -> Markup:
        """Which run is shown, how it was measured, and its caveats."""
        return notice([self.recording], self.mode, self.notices)

    def costs(self, *arms: Arm, under: Arm) -> Markup:
        """What arms cost, a table per release: time, against `under`, memory, what is left."""
        return self._per_release(variants.costs(under), arms, under)

    def processes(self, *arms: Arm, nothing: Arm) -> Markup:
        """What the system counted of whole processes, a table per release, as `time` prints it.

        `nothing` is the process that does no work: per-object costs are net of it.
        """
        return self._per_release(variants.PROCESSES, arms, nothing)

    def _per_release(
        self, columns: variants.Columns, arms: tuple[Arm, ...], baseline: Arm
    ) -> Markup:
        return tables.stacked(
            [
                variants.of_variants(self.recording, columns, arms, baseline, release)
                for release in self.releases
            ]
        )

    def choices(self, *arms: Arm, under: Arm, go: str, c_ns: float, per_second: float) -> Markup:
        """What each arm adds to a program that frees manually now; see `variants.choices`."""
        columns = variants.choices(c_ns, per_second)
        return variants.of_variants(self.recording, columns, arms, under, go)

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


def open_study(name: str, settings: Settings | None = None) -> Study:
    """Open an experiment; measures what is missing unless the settings say replay.

    A notebook gives no settings: they are read from its environment.
    """
    settings = settings or Settings.read()
    of = experiment(name)
    if of.apart or settings.mode == "replay":
        return _as_it_stands(of, settings)
    try:
        plan = _plan(of, settings)
        with progress.bar(f"{of.name}, {plan.budget.name} budget") as watched:
            run = campaign.measure(plan, watched)
        notices = tuple(
            f"{toolchains.title(go)} was not measured. {why}" for go, why in plan.missing.items()
        )
        notices += runs.passed_over(places.runs())
        return Study("measure", Recording.load(of, run), notices)
    except MissingTool as error:
        return _replayed(
            of, (f"Nothing could be measured here, so a recorded run is shown. {error}",)
        )


def _plan(of: Experiment, settings: Settings) -> campaign.Plan:
    return campaign.plan([of], settings.budget, questions([of], settings.budget))


def _as_it_stands(of: Experiment, settings: Settings) -> Study:
    """An experiment without measuring: of your own run, if it is there, else recorded."""
    if settings.mode == "replay":
        return _replayed(of, ())
    run = campaign.find(_plan(of, settings))
    if run is None or not run.holds(of.name):
        how = of.apart or f"make measure ONLY={of.name}"
        return _replayed(of, (f"It was not measured here ({how}): a recorded run is shown.",))
    return Study("measure", Recording.load(of, run), runs.passed_over(places.runs()))


def _replayed(of: Experiment, notices: tuple[str, ...]) -> Study:
    run = reference(of)
    if not run.holds(of.name):
        notices += (f"Nothing of {of.name} is recorded yet: {of.apart} measures it.",)
    notices += runs.passed_over(places.reference())
    recorded, now = run.manifest()["programs"], languages.source_hashes(of)
    if any(recorded.get(program) != mark for program, mark in now.items()):
        notices += ("The measured programs have changed since this run was recorded.",)
    return Study("replay", Recording.load(of, run), notices)


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

    def notice(self) -> Markup:
        """Which run is shown, how it was measured, and its caveats; a table per run."""
        of_run: dict[Path, list[Study]] = {}
        for study in self.studies:
            of_run.setdefault(study.run.folder, []).append(study)
        return tables.stacked(
            [
                notice(
                    [study.recording for study in shown],
                    shown[0].mode,
                    chain.from_iterable(study.notices for study in shown),
                )
                for shown in of_run.values()
            ]
        )


def open_results(settings: Settings | None = None) -> Results:
    """Open every experiment that there is a run of; measures nothing."""
    settings = settings or Settings.read()
    chosen = [experiment(settings.only)] if settings.only else EXPERIMENTS.values()
    return Results(
        tuple(
            _as_it_stands(of, settings)
            for of in chosen
            if settings.only or is_shown(of, settings.mode)
        )
    )


def is_shown(of: Experiment, mode: Mode) -> bool:
    """Whether there is something to show of an experiment, or it can be measured.

    One that is measured apart has nothing until its command was run, and in
    replay none has until it was recorded.
    """
    if not of.apart and mode == "measure":
        return True
    folders = [places.reference()] if mode == "replay" else [places.reference(), places.runs()]
    return any(run.holds(of.name) for folder in folders for run in runs.all_runs(folder))
