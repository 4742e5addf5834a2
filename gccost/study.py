"""The notebooks' interface.

    study = gccost.study.open_study("lemire")

measures the samples that your run lacks, or opens a recorded run (with
`GCCOST_MODE=replay`, on Binder, or without a toolchain). The study has methods for
frames, estimates, verdicts, tables and charts.
"""

from __future__ import annotations

import html
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import pandas as pd
from IPython.display import display

from gccost import paths, processes, rounding
from gccost.errors import GccostError, MissingTool
from gccost.judging import ledger
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.judging.machines import Machine, by_machine
from gccost.judging.machines import machines as judge_machines
from gccost.judging.quantities import Share
from gccost.judging.questions import questions
from gccost.judging.recording import Recording
from gccost.judging.reference import recorded
from gccost.measuring import campaign, languages, runs, toolchains
from gccost.measuring.cases import Ratio, Variant, named
from gccost.measuring.runs import Run
from gccost.settings import Mode, Settings
from gccost.showing import progress, results, tables
from gccost.showing.figures import Chart
from gccost.showing.notice import machine, notice
from gccost.showing.tables import Markup, Prose
from gccost.stats import Estimate
from gccost.studies import CHARTS, STUDIES, comparison, declared, machines
from gccost.studies.common import control, headlines
from gccost.studies.weimer import java_and_go

SHELL_SECONDS = 300  # after which a chapter's plain command counts as hung


def reference(study: Study) -> Run:
    """The preferred recorded run that holds a study (see `gccost.judging.reference`).

    If none does, the preferred run of all.
    """
    found = recorded()
    for run in reversed(found):
        if run.holds(study.name):
            return run
    if found:
        return found[-1]
    raise GccostError(
        f"no recorded run holds {study.name}",
        str(paths.reference()),
        f"make measure ONLY={study.name}",
    )


@dataclass(frozen=True)
class OpenStudy:
    """A study with its recording, and methods to show it."""

    mode: Mode
    recording: Recording
    notices: tuple[str, ...]  # the reasons for showing this run

    @property
    def study(self) -> Study:
        return self.recording.study

    @property
    def run(self) -> Run:
        return self.recording.run

    @property
    def frame(self) -> pd.DataFrame:
        """A frame with a row per sample; see data/README.md for the columns."""
        return self.recording.frame

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases that were measured."""
        return self.recording.releases

    def level(self, variant: Variant, go: str, metric: str = "ns/op") -> Estimate:
        """A variant's level of a metric that is never 0."""
        return self.recording.level(variant, go, metric)

    def ratio(self, over: Variant, under: Variant, go: str, metric: str = "ns/op") -> Estimate:
        """The ratio of two variants' costs."""
        return self.recording.estimate(Ratio(over, under, metric), go)

    def added(self, over: Variant, under: Variant, go: str, metric: str = "ns/op") -> Estimate:
        """The difference of two variants' costs, in the metric's unit."""
        return self.recording.added(Ratio(over, under, metric), go)

    def amount(self, variant: Variant, go: str, metric: str) -> Estimate:
        """A variant's amount of a metric that may be 0, such as a count."""
        return self.recording.amount(variant, go, metric)

    def share(
        self,
        variant: Variant,
        go: str,
        *functions: str,
        within: tuple[str, ...] = (),
        of: tuple[str, ...] = (),
    ) -> Estimate:
        """The share (0 to 1) of a variant's CPU profile whose stacks contain any of the functions.

        See `Share` for `within` and `of`.
        """
        return self.recording.estimate(Share(variant, functions, within, of), go)

    @cached_property
    def rows(self) -> list[Row]:
        """The ledger's rows for this study's claims."""
        return ledger.rows({self.study.name: self.recording}, [self.study])

    def row(self, claim: str, go: str) -> Row:
        """A claim's row on one release. Raises GccostError if there is none."""
        rows = {(row.claim.id, row.release): row for row in self.rows}
        if (claim, go) not in rows:
            known = ", ".join(f"{name} on {release}" for name, release in rows)
            raise GccostError(
                f"there is no claim {claim} on {toolchains.title(go)}", hint=f"name one of {known}"
            )
        return rows[claim, go]

    def said(self, claim: str, go: str) -> str:
        """A claim's figure on one release with its interval; a dash if it was not measured."""
        return results.measured(self.row(claim, go))

    def verdicts(self) -> Markup:
        """A table of the ledger's rows for this study's claims."""
        return results.ledger(self.rows, links=False)

    def judged(self, claim: str) -> Prose:
        """A claim's verdicts, a line per release."""
        lines = [
            f"- **{row.claim.id} on {row.toolchain}**: {results.measured(row)}"
            + f", {'' if row.is_bar else 'published '}{row.held_to}"
            + (f" ({rounding.times(row.factor)} of it)" if row.sized else "")
            + f": **{row.verdict}** ({row.why})."
            for row in self.rows
            if row.claim.id == claim
        ]
        return Prose("\n".join(lines))

    def chart(self, name: str) -> Chart:
        """A chart by name."""
        known: dict[str, Callable[[Recording], Chart]] = {"control": control, **CHARTS}
        return named(known, name, "chart")(self.recording)

    def notice(self) -> Markup:
        """A notice of the run shown, how it was measured, and its caveats."""
        return notice([self.recording], self.mode, self.notices)

    def costs(self, *variants: Variant, under: Variant) -> Markup:
        """A table per release of variants' time, ratio to `under`, memory, and unfreed blocks."""
        return self._per_release(comparison.costs(under), variants, under)

    def processes(self, *variants: Variant, nothing: Variant) -> Markup:
        """A table per release of whole processes' resource usage, as `time` prints it.

        `nothing` is an idle process; per-object costs are net of it.
        """
        return self._per_release(comparison.PROCESSES, variants, nothing)

    def _per_release(
        self, columns: comparison.Columns, variants: tuple[Variant, ...], baseline: Variant
    ) -> Markup:
        return tables.stacked(
            [
                comparison.of_variants(self.recording, columns, variants, baseline, release)
                for release in self.releases
            ]
        )

    def choices(
        self, *variants: Variant, under: Variant, go: str, c_ns: float, per_second: float
    ) -> Markup:
        """A table of the cost added to a program that frees manually; see `comparison.choices`."""
        columns = comparison.choices(c_ns, per_second)
        return comparison.of_variants(self.recording, columns, variants, under, go)

    def changed(self, ratio: Ratio, go: str, less: str, more: str) -> str:
        """A ratio as a change in words, if it is significant.

        `less` and `more` are the verbs: "saves 12.3 % (10.1 to 14.5)".
        """
        if not self.recording.differs(ratio, go):
            return "makes no significant difference"
        e = self.recording.estimate(ratio, go)
        verb = less if e.value < 1 else more
        ends = sorted(100 * abs(1 - end) for end in (e.low, e.high))
        said = " to ".join(map(rounding.plain, ends))
        return f"{verb} {rounding.percent(abs(1 - e.value))} ({said})"

    def shell(self, name: str, command: str) -> Prose:
        """Run a command in the programs' folder, with the newest release measured, and show its
        output.

        It runs once per run; the run stores its output, and replay shows the stored output.
        """
        stored = self.run.manifest().get("shell", {}).get(name)
        if self.mode == "measure" and (stored is None or stored["command"] != command):
            printed = _shell(command, languages.of(self.study), self.releases[-1])
            self.run.store_shell(name, command, printed)
            stored = self.run.manifest()["shell"][name]
        if stored is None:
            return Prose(f"```\n$ {command}\n```\nThe recorded run lacks its output.")
        folder = languages.of(self.study).folder.name
        return Prose(
            f"```\n$ cd {folder} && {stored['command']}\n{stored['output'].rstrip()}\n```\n"
            f"*Run on {stored['date'][:10]}.*"
        )


def open_study(name: str, settings: Settings | None = None) -> OpenStudy:
    """Open a study, measuring missing samples unless the settings say replay.

    Without settings (as in notebooks) they are read from the environment. If they name one
    study, no other is measured.
    """
    settings = settings or Settings.read()
    study = declared(name)
    if study.command or settings.mode == "replay" or settings.only not in ("", name):
        return _without_measuring(study, settings)
    try:
        plan = _plan(study, settings)
        with progress.bar(f"{study.name}, {plan.budget.name} budget") as watched:
            run = campaign.measure(plan, watched)
        notices = tuple(
            f"{toolchains.title(go)} was not measured. {why}" for go, why in plan.missing.items()
        )
        notices += runs.skipped(paths.runs())
        return OpenStudy("measure", Recording.load(study, run), notices)
    except MissingTool as error:
        return _replayed(
            study, (f"Measuring is not possible here, so a recorded run is shown. {error}",)
        )


def _plan(study: Study, settings: Settings, *, fetch: bool = True) -> campaign.Plan:
    return campaign.plan([study], settings.budget, questions([study], settings.budget), fetch=fetch)


def _without_measuring(study: Study, settings: Settings) -> OpenStudy:
    """Open a study without measuring: your own run if it exists, otherwise a recorded run."""
    if settings.mode == "replay":
        return _replayed(study, ())
    run = campaign.find(_plan(study, settings, fetch=False))
    if run is None or not run.holds(study.name):
        how = study.command or f"make measure ONLY={study.name}"
        return _replayed(study, (f"Not measured here (see {how}), so a recorded run is shown.",))
    return OpenStudy("measure", Recording.load(study, run), runs.skipped(paths.runs()))


def _replayed(study: Study, notices: tuple[str, ...]) -> OpenStudy:
    run = reference(study)
    if not run.holds(study.name):
        how = study.command or f"make measure ONLY={study.name}"
        notices += (f"{study.name} has not been recorded yet; measure it with {how}.",)
    notices += runs.skipped(paths.reference())
    then, now = run.manifest()["programs"], languages.source_hashes(study)
    if any(then.get(program, mark) != mark for program, mark in now.items()):
        notices += ("The measured programs have changed since this run was recorded.",)
    return OpenStudy("replay", Recording.load(study, run), notices)


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
        raise GccostError(f"stopped after {SHELL_SECONDS} s", place) from None
    if done.returncode:
        raise GccostError(f"the command failed:\n{done.stdout.strip()}", place)
    return done.stdout


def source(path: str, *functions: str) -> Prose:
    """Show functions of a file of gosrc/, with their comments."""
    text = (paths.GOSRC / path).read_text(encoding="utf-8")
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
    """Show a file of javasrc/ without its package and imports."""
    text = (paths.JAVASRC / path).read_text(encoding="utf-8")
    shown = re.sub(r"^(?:package|import) .*;\n+", "", text, flags=re.MULTILINE)
    return Prose("\n".join(("```java", f"// javasrc/{path}", "", shown.strip(), "```")))


def say(*paragraphs: str) -> None:
    """Display paragraphs of prose, if there are any."""
    if paragraphs:
        display(Prose("\n\n".join(" ".join(text.split()) for text in paragraphs)))


@dataclass(frozen=True)
class Results:
    """The studies of a report, for the results notebook; `chosen` includes those without a run."""

    studies: tuple[OpenStudy, ...]
    chosen: tuple[Study, ...] = tuple(STUDIES.values())

    @cached_property
    def rows(self) -> list[Row]:
        """The ledger of the chosen studies."""
        return ledger.rows({s.study.name: s.recording for s in self.studies}, self.chosen)

    def ledger(self) -> Markup:
        """The ledger as a table."""
        return results.ledger(self.rows)

    def first_screen(self) -> Markup:
        """The verdicts counted, and each document's headline claim, then and today."""
        return results.first_screen(self.rows)

    def chart(self) -> Chart:
        """A chart of the headline claims."""
        return headlines(self.rows)

    @property
    def machines(self) -> list[str]:
        """The machines in words, as HTML."""
        return list(dict.fromkeys(html.escape(machine(each.run)) for each in self.studies))

    def java_and_go(self) -> Chart:
        """A chart of a safety net's cost relative to manual, in Java and Go."""
        return java_and_go({s.study.name: s.recording for s in self.studies})

    def notice(self) -> Markup:
        """A notice per run: how it was measured, and its caveats."""
        of_run: dict[Path, list[OpenStudy]] = {}
        for each in self.studies:
            of_run.setdefault(each.run.folder, []).append(each)
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


@dataclass(frozen=True)
class Machines:
    """Every recorded machine, for the notebook that compares them."""

    found: tuple[Machine, ...]

    def described(self) -> Markup:
        """A table of the machines."""
        return machines.described(self.found)

    def ledger(self) -> Markup:
        """The ledger with a column per machine."""
        return machines.side_by_side(self.found)

    def forest(self) -> Chart:
        """A forest plot of the documents' ratios."""
        return machines.forest(self.found)

    def in_short(self) -> str:
        """How many of the verdicts agree, in a sentence or two."""
        return machines.in_short(self.found)

    def agreement(self) -> Prose:
        """The claims whose verdicts agree between the machines, and those that differ."""
        return machines.agreement(self.found)


def open_machines(settings: Settings | None = None) -> Machines:
    """Open every recorded machine, and your own newest run unless the settings say replay."""
    settings = settings or Settings.read()
    own = [run for run in runs.all_runs(paths.runs()) if run.manifest()["finished"]]
    groups = by_machine([*recorded(), *([] if settings.mode == "replay" else own[-1:])])
    return Machines(tuple(judge_machines(groups, list(STUDIES.values()))))


def open_results(settings: Settings | None = None) -> Results:
    """Open every study that has a run, without measuring."""
    settings = settings or Settings.read()
    chosen = (declared(settings.only),) if settings.only else tuple(STUDIES.values())
    return Results(
        tuple(
            _without_measuring(study, settings)
            for study in chosen
            if settings.only or is_shown(study, settings.mode)
        ),
        chosen,
    )


def is_shown(study: Study, mode: Mode) -> bool:
    """Whether a study has a run to show, or can be measured.

    A study with its own command needs a run; in replay every study needs a recorded one.
    """
    if not study.command and mode == "measure":
        return True
    folders = [paths.reference()] if mode == "replay" else [paths.reference(), paths.runs()]
    return any(run.holds(study.name) for folder in folders for run in runs.all_runs(folder))
