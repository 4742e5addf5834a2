"""What a notebook calls: a study with its samples, costs, ratios, shares and verdicts as frames.

`gccost` itself exports it; `help(gccost)` is the manual.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from gccost import paths
from gccost.cases import published as transcribed
from gccost.cases import versions
from gccost.cases.cases import BUDGETS, one_of
from gccost.cases.settings import Mode, Settings
from gccost.costs.recorded import machine_of, nearest, words
from gccost.costs.recording import Recording
from gccost.costs.study_cases import of_run
from gccost.costs.study_costs import StudyCosts
from gccost.costs.study_profiles import StudyProfiles
from gccost.errors import GccostError, MissingTool, expect
from gccost.judging import leaving_out, ledger, opening
from gccost.judging.carrying import by_machine, carried, with_others
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.judging.questions import questions
from gccost.judging.rules import Label
from gccost.judging.since import since_last
from gccost.measuring import campaign, languages, planning
from gccost.run import benchfmt
from gccost.run.runs import Run
from gccost.showing import programs, progress, provenance, reading, tables
from gccost.showing import results as results_of
from gccost.showing.notice import notice
from gccost.showing.tables import Cell, Markup
from gccost.stats import FEWEST
from gccost.studies import STUDIES, declared


@dataclass(frozen=True)
class OpenedStudy(StudyCosts, StudyProfiles):
    """A study and the run that it shows. Display it to see which run, and its caveats.

    `then` and `today` are releases, such as "Go 1.20.14"; `verdicts` says on which releases each
    claim is tested.
    """

    def __repr__(self) -> str:
        count = len(self.recording.frame)
        return f"<study {self.name}, run {self.run}, {count} samples>"

    @property
    def mode(self) -> Mode:
        """Whether the run is your own ("measure") or a recorded one ("replay")."""
        return self.recording.mode

    @property
    def releases(self) -> list[str]:
        """The releases that were measured, oldest first."""
        return list(map(versions.title, self.recording.releases))

    @property
    def cpus(self) -> int:
        """The CPUs that the measured programs could use."""
        return self.recording.cpus

    @property
    def machine(self) -> str:
        """The machine of the run in words, which are safe in Markdown."""
        machine = self.recording.manifest["machine"]
        kind = words(machine.get("virtualisation"))
        shared = f"a virtual machine ({kind}), shared with others" if kind else ""
        parts = [self.recording.machine, shared, words(machine.get("release"))]
        return ", ".join(filter(None, parts))

    @property
    def about(self) -> str:
        """The run in one line: its date, name, machine, budgets and sittings, and gccost's version.

        It is safe in Markdown.
        """
        manifest = self.recording.manifest
        sittings = manifest["sittings"]
        budgets = dict.fromkeys(sitting["budget"] for sitting in sittings)
        count = f"{len(sittings)} sittings" if len(sittings) != 1 else "1 sitting"
        whose = "recorded" if self.mode == "replay" else "measured"
        date = manifest["created"][:10]
        run = f"run {self.run}, {self.recording.machine}"
        return f"{whose} {date}, {run}, {count} ({', '.join(budgets)}), gccost {version()}"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        return notice([self.recording])._repr_mimebundle_()

    # --- The document, and its claims ------------------------------------------------

    @property
    def published(self) -> pd.DataFrame:
        """The document's main table; `gccost.published(name)` reads the others."""
        names = [path.stem for path in sorted(paths.PUBLISHED.glob(f"{self.name}-*.csv"))]
        if not names:
            raise GccostError(f"no figures are published for {self.name}", str(paths.PUBLISHED))
        for name in names:
            if name.endswith("timings"):
                return transcribed.published(name)
        return transcribed.published(names[0])

    @cached_property
    def _rows(self) -> list[Row]:
        return ledger.shown({self.name: self.recording}, [self.recording.study])

    @cached_property
    @of_run
    def verdicts(self) -> pd.DataFrame:
        """A row per claim and release: what is claimed, measured, the rule's range, the verdict.

        Columns: id, release, claim, published, value, low, high (95 %), rounds, n, unit, verdict,
        reason, holds_from, holds_to, is_bar (no figure is published; the bar is ours), document,
        source ("recorded" if a recorded run stands for yours), run.
        """
        return ledger.frame(self._rows)

    def judge(self, *claims: str) -> Markup:
        """The verdicts of claims as a table, with the rule's range, and why one is open.

        A claim holds if the 99 % interval lies within the rule's range, and clears its ends by
        5 % (counts need not).
        """
        tested = dict.fromkeys(row.claim.id for row in self._rows)
        for claim in claims:
            expect(tested, claim, "claim", self._where)
        lines: list[list[str | Cell]] = []
        for row in self._rows:
            if claims and row.claim.id not in claims:
                continue
            text = f"{row.claim.id}: {row.words}"
            is_open = row.verdict.label in (Label.UNDECIDED, Label.UNMEASURED)
            verdict = Cell(row.said, row.why if is_open else "")
            measured = results_of.cell(row)
            region = results_of.region(row)
            lines.append([text, row.held_to, row.toolchain, measured, region, verdict])
        header = ("claim", "published", "on", "measured (95 %)", "holds if", "verdict")
        return tables.table(header, lines, merged={0, 1, 4})

    def shell(self, command: str) -> pd.DataFrame:
        """Run a command in the folder of the measured programs, as anyone would type it.

        Prints the command and its output, and returns its results in the columns of `samples`.
        It runs on the newest release that was measured. Replay, or a machine that lacks a tool,
        prints the output that was stored with the recorded run.
        """
        study, release = self.recording.study, self.recording.newest
        title = versions.title(release)
        stored = self.recording.manifest.get("shell", {}).values()
        entries = [entry for entry in stored if entry["command"] == command]
        printed = ""
        if self.mode == "measure":
            try:
                printed = programs.run(command, languages.of(study), release)
            except MissingTool as error:
                print(f"The command cannot run here, so its recorded output is shown. {error}")
                recorded = opening.shown(study, Settings("replay"))
                return OpenedStudy(recorded).shell(command)
            self.recording.run.store_shell(command, command, printed)
            print(f"{title}, run just now")
        elif entries:
            printed = entries[0]["output"]
            print(f"{title}, recorded on {entries[0]['date'][:10]}")
        else:
            print("The recorded run lacks this command's output; it runs in a run of your own.")
        print(f"$ {command}")
        print(reading.in_columns(printed), end="")
        results = benchfmt.parse(printed, measured=False).samples.values()
        frame = reading.frame(results, ours=True)
        return frame.assign(release=title)


def _theme() -> None:
    """Give charts their style, unless nothing here draws: what draws takes a second to load."""
    pd.options.display.max_rows = 200
    if {"IPython", "matplotlib", "seaborn"} & sys.modules.keys():
        from gccost.showing import drawing

        drawing.theme()


def open_study(name: str, run: str | Path = "") -> OpenedStudy:
    """Open a study: your newest run that holds it, or the recorded one. Never measures.

    `run` names another one, which `gccost.runs()` lists (its beginning is enough), or its folder.
    A trial (a run at the budget tiny) is shown only if no other of your runs holds the study, or
    by its name. Display the result to see which run it is. Also gives seaborn the charts' style.
    Raises GccostError, naming the nearest, if there is no such study or run.
    """
    _theme()
    study = declared(name)
    recording = opening.chosen(study, run) if run else opening.shown(study, Settings.read())
    provenance.opened([recording.run.name])
    return OpenedStudy(recording)


def listed_runs() -> pd.DataFrame:
    """The runs that `gccost.open` can show, oldest first, recorded ones and your own.

    Columns: run, machine, studies (that it holds), budget (empty: interrupted; tiny: a trial),
    date, source ("your run" or "recorded").
    """
    rows = []
    for run, source in opening.listed():
        manifest = run.manifest()
        held = ", ".join(name for name in run.studies if name in STUDIES)
        budgets = ", ".join(manifest["finished"])
        date = pd.Timestamp(manifest["created"][:10])
        rows.append([run.name, machine_of(run), held, budgets, date, source])
    return pd.DataFrame(rows, columns=["run", "machine", "studies", "budget", "date", "source"])


@dataclass(frozen=True)
class Results:
    """Every study that has a run, and the ledger of all claims. Displays what was run."""

    studies: Mapping[str, OpenedStudy]

    @cached_property
    def _rows(self) -> list[Row]:
        recordings = {name: study.recording for name, study in self.studies.items()}
        return ledger.shown(recordings, STUDIES.values())

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """The verdicts of all claims, in the columns of a study's `verdicts`."""
        return ledger.frame(self._rows)

    def study(self, name: str) -> OpenedStudy:
        """One of the studies, opened."""
        return self.studies.get(name) or open_study(name)

    def left_out(
        self, estimator: str = "lower quartile", rounds: int | None = None
    ) -> pd.DataFrame:
        """Each sitting of a run by itself, next to the others, for claims on ratios.

        The run is the one shown if it has three sittings, or else the nearest recorded one.

        A row per claim, release and sitting: value, low and high (95 %) of the sitting, or of its
        first `rounds`; others (the other sittings' ratio); error and half_width (logs); covers and
        covers_50 (whether the 95 % and 50 % intervals contain others); contradicts (the verdicts).
        """
        return leaving_out.left_out(*self._tested, estimator, rounds)

    def left_out_ways(self) -> pd.DataFrame:
        """How well the intervals of that run hold, in percent, for each way to leave sittings out.

        Columns: ratios; half below (of the errors); half-width (median), L1 ±, M1 ±; the coverage
        of 95, 50 and 99 % intervals, each with its standard error; contradictions (of verdicts).
        """
        return leaving_out.ways(*self._tested)

    def estimators(self) -> pd.DataFrame:
        """What four estimators of a time give in `left_out`, in percent: errors and coverage."""
        return leaving_out.estimators(*self._tested)

    @property
    def tested(self) -> str:
        """The name of the run whose sittings `left_out` leaves out."""
        return self._tested[0].name

    @cached_property
    def _tested(self) -> tuple[Run, list[Study]]:
        """The run whose sittings are left out, and the studies."""
        recordings = [study.recording for study in self.studies.values()]
        studies = [recording.study for recording in recordings]
        own = [recording.run for recording in recordings if not recording.is_aside]
        most = max(own or [recordings[0].run], key=_sittings)
        if _sittings(most) >= FEWEST:
            return most, studies
        candidates = nearest(most) or [most]
        for run in candidates:
            if _sittings(run) >= FEWEST:
                return run, studies
        return candidates[0], studies

    def first_screen(self) -> Markup:
        """The verdicts counted, and each document's headline claim, then and today."""
        return results_of.first_screen(self._rows)

    def ledger(self) -> Markup:
        """The ledger as a table that opens into rules, reasons and evidence."""
        return results_of.ledger(with_others(self._rows, self._ledgers))

    @cached_property
    def _ledgers(self) -> dict[str, list[Row] | str]:
        return by_machine([*STUDIES.values()])

    def carried(self) -> pd.DataFrame:
        """How far a figure carries: a row per claim and release that two recorded machines have.

        Columns: id, release, claim; kind ("ratio of times", "ratio of memory", "count", "another
        figure"); value, low, high, verdict, machine, run; the same of the other machine
        (other_value and so on); factor (other_value over value). Samples of two machines are
        never pooled.
        """
        return carried(self._ledgers)

    def machines(self) -> Markup | None:
        """The verdicts that several recorded machines have; None if no claim has two."""
        return results_of.machines(self._ledgers) if self._ledgers else None

    def since_last(self) -> Markup | None:
        """What changed between your newest run's last sitting and those before, or your last run.

        None without a run of yours, and for a first sitting.
        """
        recordings = [study.recording for study in self.studies.values()]
        own = {each.run.name: each.run for each in recordings if each.mode == "measure"}
        if not own:
            return None
        newest = max(own.values(), key=lambda run: run.last_measured)
        changes = since_last(newest, STUDIES.values())
        return results_of.changes(changes) if changes and changes.pairs else None

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        by_run: dict[Path, list[Recording]] = {}
        for study in self.studies.values():
            folder = study.recording.run.folder
            by_run.setdefault(folder, []).append(study.recording)
        notices = [notice(recordings) for recordings in by_run.values()]
        return tables.stacked(notices)._repr_mimebundle_()


def version() -> str:
    """The version of gccost."""
    text = (paths.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def _sittings(run: Run) -> int:
    return len(run.manifest()["sittings"])


def results(*, sittings: int = 1) -> Results:
    """Open every study that has a run, without measuring; for the notebook of all results.

    A run of yours with fewer `sittings` is not shown.
    """
    _theme()
    recordings = opening.every(STUDIES.values(), Settings.read(), sittings)
    studies = {name: OpenedStudy(recording) for name, recording in recordings.items()}
    provenance.opened(study.run for study in studies.values())
    return Results(studies)


def measure(name: str, budget: str = "quick") -> OpenedStudy:
    """Measure what your run of a study lacks, with a progress bar, and open it."""
    _theme()
    limit = one_of(BUDGETS, budget, "budget")
    study = declared(name)
    with progress.bar(f"{name}, {budget} budget") as watched:
        try:
            plan = planning.plan([study], limit, questions([study], limit), progress=watched)
            run = campaign.measure(plan, watched)
        except MissingTool as error:
            why = f"Measuring is not possible here, so a recorded run is shown. {error}"
            return OpenedStudy(opening.replayed(study, why))
    notices = []
    for release, why in plan.missing.items():
        notices.append(f"{versions.title(release)} was not measured. {why}")
    return OpenedStudy(opening.with_notices(study, run, *notices))
