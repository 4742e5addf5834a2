"""The command line.

What draws charts and runs notebooks is imported where it is used: it takes
seconds to load, and measuring does without it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from gccost import doctor as examination
from gccost import explain as explanation
from gccost import gokernel, paths, rounding, stats
from gccost.errors import GccostError, MissingTool, refused
from gccost.files import write_whole
from gccost.judging import ledger, reference
from gccost.judging.claims import Study
from gccost.judging.questions import questions
from gccost.judging.recording import Recording
from gccost.measuring import campaign, machine, runs, toolchains
from gccost.measuring.cases import BUDGETS, budget
from gccost.measuring.runs import Run
from gccost.precision import SECONDS
from gccost.precision import measure as measure_precision
from gccost.settings import Settings
from gccost.showing import progress
from gccost.studies import STUDIES, declared

TITLE = "What automatic cleanup costs"
PURPOSE = (
    "Published claims about finalizers and cleanups, measured again and judged by stated rules."
)
PICTURE = ("lemire", "lemire-cost")  # the README's: experiment and chart

TERMINATED = 128 + signal.SIGTERM  # the exit code, as shells have it
MOST_AT_ONCE = 4  # notebooks, where nothing is measured: each takes a few hundred megabytes

Command = Callable[..., Any]


class _Command(click.Command):
    """Turns what ends it early into one paragraph on stderr and the exit code for it."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _termination_exits():
                return super().invoke(ctx)
        except GccostError as error:
            said, code = str(error), error.exit_code
        except BrokenPipeError:  # who read our output has gone: click ends silently
            raise
        except OSError as error:
            said, code = str(refused(error)), 1
        except UnicodeError as error:
            said, code = str(error), 1
        except KeyboardInterrupt:
            said, code = _stopped(ctx), 128 + signal.SIGINT
        except SystemExit as ended:
            if ended.code != TERMINATED:
                raise
            said, code = _stopped(ctx), TERMINATED
        if code > 128:  # all is put in order: a second Ctrl-C has nothing more to end
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        click.echo(f"gccost: {said}", err=True)
        sys.exit(code)


class _Commands(click.Group):
    command_class = _Command


@contextmanager
def _termination_exits() -> Iterator[None]:
    """Let SIGTERM put things in order as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stopped(ctx: click.Context) -> str:
    """What a signal ended, and the command that goes on."""
    if "budget_name" not in ctx.params:
        return "Interrupted."
    settings = {"BUDGET": ctx.params["budget_name"], "ONLY": ctx.params.get("only")}
    words = ["make", str(ctx.info_name), *(f"{k}={v}" for k, v in settings.items() if v)]
    return f"Interrupted. Completed samples are saved; resume with: {' '.join(words)}"


def _budget(command: Command) -> Command:
    return click.option(
        "--budget",
        "budget_name",
        envvar="GCCOST_BUDGET",
        default="quick",
        show_default=True,
        help=f"How long to measure: {', '.join(BUDGETS)}.",
    )(command)


def _only(command: Command) -> Command:
    return click.option(
        "--only",
        envvar="GCCOST_ONLY",
        default="",
        help=f"One experiment instead of all: {', '.join(STUDIES)}.",
    )(command)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """What automatic cleanup costs, measured and judged.

    Runs are kept in data/runs (GCCOST_RUNS names another folder). An interrupted
    run is resumed.
    """


@main.command()
@_budget
@_only
def measure(budget_name: str, only: str) -> None:
    """Measure what your newest run lacks.

    An experiment that is complete at this budget, from the same sources,
    toolchains and machine, is not measured again.
    """
    if not _measure(Settings("measure", budget(budget_name), only)):
        sys.exit(1)


@main.command()
@_budget
@_only
def report(budget_name: str, only: str) -> None:
    """Measure what is missing, run the notebooks, and write report/index.html."""
    settings = Settings("measure", budget(budget_name), only)
    with runs.exclusive(paths.report(), "writing the report"):
        if not _measure(settings):
            _say("what is not measured is shown from a recorded run")
        into = paths.report() / "notebooks"
        _write(_execute(_notebooks(settings), into, settings), settings)


@main.command()
@click.option(
    "--seconds",
    default=SECONDS,
    show_default=True,
    help="Time for each measurement by our method.",
)
@_budget
def precision(seconds: float, budget_name: str) -> None:
    """Measure how well independent measurements agree, by our method and others'.

    Takes eight measurements of one ratio by each method, on a quiet machine and
    with another process that keeps a core busy: about 20 minutes.
    """
    plan = campaign.plan([declared("precision")], budget(budget_name), say=_say)
    if not plan.pool:
        raise MissingTool("; ".join(plan.missing.values()), "precision")
    with _progress("precision") as watched:
        run = measure_precision(plan, watched, seconds)
    click.echo(f"kept in {run.name}; make report shows it")


@main.command()
def replay() -> None:
    """Run the notebooks from the recorded runs, and write the report.

    Needs neither Go nor a C compiler. The notebooks in notebooks/ are rewritten,
    and are the same to the byte as long as nothing has changed.
    """
    from gccost import study

    settings = Settings("replay")
    with runs.exclusive(paths.report(), "writing the report"):
        _write(_execute(_notebooks(settings), paths.NOTEBOOKS, settings), settings)
        name, chart = PICTURE
        picture = study.open_study(name, settings).chart(chart).png
        (paths.NOTEBOOKS / f"{chart}.png").write_bytes(picture)


@main.command()
def html() -> None:
    """Rewrite the report from the notebooks that were executed last."""
    measured = sorted((paths.report() / "notebooks").glob("*.ipynb"))
    settings = replace(Settings.read(), mode="measure" if measured else "replay")
    with runs.exclusive(paths.report(), "writing the report"):
        _write(measured or sorted(paths.NOTEBOOKS.glob("*.ipynb")), settings)


@main.command()
def fetch() -> None:
    """Download every compiler that measuring needs, so that it works offline.

    Fails if today's Go release or that of the first document cannot be had.
    """
    plan = campaign.plan(list(STUDIES.values()), list(BUDGETS.values())[-1], say=_say)
    for release, why in plan.missing.items():
        _say(f"{toolchains.title(release)} is left out. {why}")
    for go in (toolchains.TODAY_GO, toolchains.DOCUMENT_GO):
        click.echo(f"Go {go} is in {toolchains.fetch(go, _say).goroot}")


@main.command()
@click.argument("version")
def release(version: str) -> None:
    """Add a Go release, such as 1.28.1, to data/releases.csv: the newest is today's."""
    click.echo(f"added: {toolchains.pin(version, _say)}")


@main.command()
def kernel() -> None:
    """Build the Go kernel and register it for JupyterLab, once."""
    click.echo(f"the Go kernel is in {os.path.relpath(gokernel.make(_say))}")


@main.command()
def live() -> None:
    """Run the Go notebooks again and keep their output, which replay shows as it is."""
    gokernel.make(_say)
    _execute(_go_notebooks(), paths.NOTEBOOKS, Settings("measure"))


@main.command()
def doctor() -> None:
    """List what was found and what is missing, how it affects the report, and how to fix it."""
    click.echo(examination.render(examination.examine()))


@main.command()
@click.argument("profile")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, for programs.")
def explain(profile: str, as_json: bool) -> None:
    """Show what finalizers, cleanups and weak pointers cost in a Go CPU profile.

    PROFILE is a file, such as go test -cpuprofile writes, or a URL of net/http/pprof on
    a loopback address, such as http://localhost:6060/debug/pprof/profile?seconds=10.

    The exit code is 0 with an answer, also if the profile has none of them, and 2 if
    PROFILE is not a CPU profile of a Go program.
    """
    answer = explanation.explain(explanation.load(profile, _say))
    click.echo(json.dumps(answer, indent=2) if as_json else "\n".join(explanation.lines(answer)))


@main.command()
@click.argument("run", type=click.Path(path_type=Path))
def adopt(run: Path) -> None:
    """Copy a run folder to data/reference, which replay shows.

    Refuses a run whose machine was disturbed, or that is slower than recordings
    of machines like it.
    """
    click.echo(f"replay shows {reference.adopt(Run(run), list(STUDIES.values())).name} from now on")


@main.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--csv", type=click.Path(path_type=Path), help="Also write the comparison here.")
def compare(first: Path, second: Path, csv: Path | None) -> None:
    """Show two run folders side by side: each claim's figure and verdict in both.

    The runs are never pooled. The last column is the probability of a difference
    at least as large between two runs that measure the same quantity.
    """
    one, other = Run(first), Run(second)
    for name, fact in _differences(one, other):
        click.echo(f"{name} differs: {fact}")
    rows = [_rows_of(one), _rows_of(other)]
    chances = {}
    click.echo(f"{'claim':<6} {'release':<12} {one.name:>42} {other.name:>42} {'p':>8}")
    for key in (key for key in rows[0] if key in rows[1]):
        pair = [rows[0][key], rows[1][key]]
        shown = [f"{rounding.interval(r.estimate, r.unit)} {r.verdict}" for r in pair]
        chances[key] = stats.heterogeneity([r.estimate for r in pair])
        told = rounding.plain(chances[key])
        click.echo(f"{key[0]:<6} {key[1]:<12} {shown[0]:>42} {shown[1]:>42} {told:>8}")
    if csv is not None:
        left, right = (
            ledger.table(of[key] for key in chances).set_index(["id", "toolchain"]) for of in rows
        )
        both = left.join(right, lsuffix="_1", rsuffix="_2")
        both["p"] = [rounding.written(p) for p in chances.values()]
        write_whole(csv, both.to_csv(lineterminator="\n").encode())


def _rows_of(run: Run) -> dict[tuple[str, str], ledger.Row]:
    recordings = {name: Recording.load(of, run) for name, of in STUDIES.items() if run.holds(name)}
    if not recordings:
        raise GccostError("the run holds no study that is known here", str(run.folder))
    rows = ledger.rows(recordings, STUDIES.values())
    return {(r.claim.id, r.toolchain): r for r in rows if r.estimate.samples}


def _differences(one: Run, other: Run) -> Iterator[tuple[str, str]]:
    machines: list[Mapping[str, Any]] = [run.manifest()["machine"] for run in (one, other)]
    for name in sorted(set(machines[0]) & set(machines[1])):
        if name in ("load", "memory_available", "swap_used"):
            continue
        if machines[0][name] != machines[1][name]:
            yield name, f"{machines[0][name]} and {machines[1][name]}"


def _chosen(settings: Settings) -> list[Study]:
    return [declared(settings.only)] if settings.only else list(STUDIES.values())


def _measure(settings: Settings) -> bool:
    """Measure studies in one campaign; whether each could be.

    A study whose tools are missing is reported and left out.
    """
    limit, chosen = settings.budget, _chosen(settings)
    for what in runs.passed_over(paths.runs()):
        _say(what)
    for of in chosen:
        if of.command:
            _say(f"{of.name}: measured by itself, with {of.command}; the newest run is shown")
    together = [of for of in chosen if not of.command]
    if not together:
        return True
    plan = campaign.plan(together, limit, questions(together, limit), _say)
    for release, why in plan.missing.items():
        _say(f"{toolchains.title(release)} is left out. {why}")
    try:
        with _progress("measuring") as watched:
            run = campaign.measure(plan, watched)
    except MissingTool as error:
        _say(f"nothing is measured. {error}")
        return False
    lacking = [of.name for of in together if not run.holds(of.name)]
    for name in lacking:
        _say(f"{name} is not measured: {'; '.join(plan.tools[name].missing.values())}")
    done = run.manifest()["finished"]
    summary = done.get(limit.name) or list(done.values())[-1]
    standing = plan.questions.standing(run)
    click.echo(
        f"{standing.decided} of {standing.verdicts} verdicts decided, from {summary['samples']} "
        f"samples in {rounding.plain(summary['seconds'])} s, "
        f"{rounding.percent(summary['share_in_loops'])} of it inside timed loops "
        f"({summary['because']}); kept in {run.name}"
    )
    return not lacking


def _progress(name: str) -> AbstractContextManager[campaign.Progress]:
    return progress.bar(name) if sys.stderr.isatty() else progress.lines(name)


def _notebooks(settings: Settings) -> list[Path]:
    """The results first, then the chapters that have something to show, in order."""
    from gccost import study

    chapters = {"00-results"}
    for of in _chosen(settings):
        if study.is_shown(of, settings.mode):
            chapters.add(of.chapter)
        else:
            how = of.command or f"make measure ONLY={of.name}"
            _say(f"{of.chapter} is left out: {how} measures it")
    found = [p for p in sorted(paths.NOTEBOOKS.glob("*.ipynb")) if p.stem in chapters]
    return found if settings.only else found + _go_notebooks()


def _go_notebooks() -> list[Path]:
    return sorted(paths.NOTEBOOKS.glob("go-*.ipynb"))


def _execute(notebooks: list[Path], into: Path, settings: Settings) -> list[Path]:
    """Run notebooks: the results last, for they need what the chapters measured.

    The output of the Go notebooks differs each time, so in replay, and where there is
    no Go kernel, they stay as they are. Where nothing is measured several run at once.
    """
    from gccost.showing.execute import execute_all

    into.mkdir(parents=True, exist_ok=True)
    targets = {notebook: into / notebook.name for notebook in notebooks}
    measuring = settings.mode == "measure"
    kept = set() if measuring and gokernel.find() else set(_go_notebooks()) & targets.keys()
    for notebook in kept:
        if targets[notebook] != notebook:
            _say(f"{notebook.stem} is shown as it was recorded: make kernel lets it run")
            write_whole(targets[notebook], notebook.read_bytes())
    running = sorted(targets.keys() - kept, key=lambda p: (p.stem == "00-results", p))
    execute_all(
        {notebook: targets[notebook] for notebook in running},
        settings,
        at_once=1 if measuring else min(machine.allowed_cpus(), MOST_AT_ONCE),
        on_start=lambda notebook: _say(f"running {notebook.stem} ({settings.mode})"),
        on_stderr=sys.stderr.write,
    )
    return list(targets.values())


def _say(text: str) -> None:
    click.echo(text, err=True)


def _write(executed: list[Path], settings: Settings) -> None:
    from gccost import study
    from gccost.showing.report import write_report

    rows = study.open_results(settings).rows
    index = write_report(
        executed,
        paths.report(),
        title=TITLE,
        purpose=PURPOSE,
        ledger_csv=ledger.table(rows).to_csv(index=False, lineterminator="\n"),
    )
    click.echo(f"the report is {os.path.relpath(index)}")
