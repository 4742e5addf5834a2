"""The command line.

Only what every command needs is imported here, so that `gccost --help` and a mistyped
command answer at once: pandas and what draws take seconds to load.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from gccost import paths
from gccost.cases import versions
from gccost.cases.cases import BUDGETS, budget
from gccost.cases.settings import Settings
from gccost.errors import GccostError, expect, refused
from gccost.files import write_whole
from gccost.measuring import pack, planning, toolchains
from gccost.progress import PrintedProgress, Progress
from gccost.run import runs
from gccost.run.runs import Run
from gccost.run.schema import escaped
from gccost.showing import gokernel

if TYPE_CHECKING:
    from gccost.judging.claims import Study

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ENDED = {128 + number for number in _ENDS}  # exit codes, as a shell has them


class _Command(click.Command):
    """A command that reports errors and signals as one paragraph on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _ended_by_one_signal():
                return super().invoke(ctx)
        except GccostError as error:
            said, code = str(error), error.exit_code
        except BrokenPipeError:  # the reader of our output has gone; click exits silently
            raise
        except OSError as error:
            said, code = str(refused(error)), 1
        except UnicodeError as error:
            said, code = str(error), 1
        except SystemExit as ended:
            if ended.code not in _ENDED:
                raise
            said, code = _stopped(ctx), int(ended.code)
        click.echo(f"gccost: {escaped(said)}", err=True)
        sys.exit(code)


def percent(text: str) -> float:
    """The share (0 to 1) of a percentage such as "5%"."""
    if not re.fullmatch(r"\d{1,3}(\.\d+)?%", text) or float(text[:-1]) > 100:
        raise click.BadParameter("name a percentage of the CPU time, such as 5%")
    return float(text[:-1]) / 100


class _Commands(click.Group):
    command_class = _Command


@contextmanager
def _ended_by_one_signal() -> Iterator[None]:
    """Make Ctrl-C, SIGTERM, and SIGHUP of a closed terminal, exit this process.

    Later ones are ignored, because they would end the cleanup. What is ignored stays so, as
    SIGHUP is under nohup.
    """
    before = {number: signal.getsignal(number) for number in _ENDS}

    def end(received: int, frame: object) -> None:
        for number in _ENDS:
            signal.signal(number, lambda *_: None)  # SIG_IGN prints a traceback if one is pending
        sys.exit(128 + received)

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is end:
                signal.signal(number, handler)


def _stopped(ctx: click.Context) -> str:
    """The message after an interruption."""
    if ctx.info_name in ("measure", "report", "fleet"):
        return "Interrupted. Completed samples are saved; the same command resumes."
    return "Interrupted."


_budget = click.option(
    "--budget",
    "budget_name",
    envvar="GCCOST_BUDGET",
    default="quick",
    show_default=True,
    help=f"How long to measure: {', '.join(BUDGETS)}.",
)
_only = click.option(
    "--only", envvar="GCCOST_ONLY", default="", help="One study instead of all, such as lemire."
)
_open = click.option("--open", "opens", is_flag=True, help="Open the report in a browser.")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure and judge the cost of automatic cleanup.

    Runs are saved in data/runs (GCCOST_RUNS sets another folder). The same command
    resumes an interrupted run.
    """


@main.command()
@_budget
@_only
@click.option("--fixed", is_flag=True, help="Give each case the same rounds, for a recording.")
def measure(budget_name: str, only: str, *, fixed: bool) -> None:
    """Add a sitting to your newest run.

    A run with the same sources, toolchains and machine gets further samples, and
    narrower intervals. Without such a run, begins one. An interrupted sitting is resumed.

    With --fixed, what is measured does not depend on what was found: the sitting ends when
    each case has the budget's rounds, whatever time that takes.
    """
    from gccost import sitting

    limit = budget(budget_name)
    if fixed:
        limit = replace(limit, seconds=0.0)
    settings = Settings("measure", limit, only)
    if not sitting.measure(settings, _say, _progress):
        sys.exit(1)


@main.command()
@_budget
@_only
@_open
def report(budget_name: str, only: str, *, opens: bool) -> None:
    """Measure, and write report/index.html.

    Each call adds a sitting to your newest run; an interrupted sitting is resumed. If the
    sources, toolchains or machine have changed, begins a new run.
    """
    from gccost import sitting
    from gccost.showing.underway import FirstFigures

    settings = Settings("measure", budget(budget_name), only)
    with runs.exclusive(paths.report(), "writing the report"):
        figures = FirstFigures(_chosen(only), _say)
        if not sitting.measure(settings, _say, _progress, sitting.PAGES, figures.show):
            _say("studies that could not be measured are shown from a recorded run")
        failed = _show(settings, opens=opens)
    _end(failed)


@main.command()
@_only
@_open
def replay(only: str, *, opens: bool) -> None:
    """Run the notebooks on the recorded runs, and write the report.

    Needs neither Go nor a C compiler. Rewrites the notebooks and the README's picture in
    notebooks/; if nothing has changed, they are identical to the byte.
    """
    from gccost.showing import reporting

    _recorded()
    settings = Settings("replay", only=only)
    with runs.exclusive(paths.report(), "writing the report"):
        failed = _show(settings, opens=opens)
        reporting.keep(paths.report() / "notebooks", failed)
        reporting.write_documents(_chosen(), settings)
    _end(failed)


@main.command()
@_only
def fetch(only: str) -> None:
    """Download every compiler, so that measuring works offline.

    Without --only, leaves out the studies that are measured only on request. Fails if
    today's Go release or that of the first document is unavailable.
    """
    chosen = [study for study in _chosen(only) if only or not study.on_request]
    *_, largest = BUDGETS.values()
    with _progress("fetching") as watched:
        plan = planning.plan(chosen, largest, say=_say, progress=watched)
    for release, reason in plan.missing.items():
        _say(f"{versions.title(release)} is skipped. {reason}")
    for go in (versions.TODAY_GO, versions.DOCUMENT_GO):
        click.echo(f"Go {go} is in {toolchains.fetch(go, _say).goroot}")
    if not only:
        from gccost import check as checking

        click.echo(f"gosrc/check is built: {os.path.relpath(checking.program(_say))}")


@main.command("release")
@click.argument("version")
def pin(version: str) -> None:
    """Add a Go release, such as 1.28.1, to data/releases.csv.

    The newest release in that table is used as today's Go.
    """
    click.echo(f"added: {toolchains.pin(version, _say)}")


@main.command()
@click.option("--live", is_flag=True, help="Run the Go notebooks and store their output.")
def kernel(*, live: bool) -> None:
    """Build the Go kernel and register it for JupyterLab.

    Replay shows the stored output of the Go notebooks unchanged.
    """
    click.echo(f"the Go kernel is in {os.path.relpath(gokernel.make(_say))}")
    if live:
        from gccost.showing import reporting

        chosen = sorted(paths.NOTEBOOKS.glob(paths.IN_GO))
        with TemporaryDirectory() as scratch, _progress("notebooks") as watched:
            failed = reporting.execute(chosen, Path(scratch), Settings("measure"), _say, watched)
            reporting.keep(Path(scratch), failed)
        _end(failed)


@main.command()
def doctor() -> None:
    """List what is missing, what it affects, and how to fix it."""
    from gccost.showing import doctor as examination

    click.echo(examination.render(examination.examine(_chosen())))


@main.command()
@click.option("--run", "name", default="", help="The recorded run to compare with.")
def agree(name: str) -> None:
    """Compare your newest run with the nearest recorded one, claim by claim.

    Nearest is a run of the same machine, then of the same model of CPU, then of the machine that
    the chapters show. The tolerance is the 99 % interval of the factor between the two. One figure
    in a hundred lies outside it by chance. The exit code is 1 if more do than chance explains, or
    if a claim holds in one run and does not hold in the other.

    If the recorded run is of another model of CPU, the tolerance is the farthest that a figure of
    the same kind has moved between recorded machines, and the exit code is 0.
    """
    from gccost.costs import busy, samples
    from gccost.costs.recorded import machine_of
    from gccost.judging.agreement import agreement, by_chance, counterpart, is_of_one_cpu

    for line in runs.skipped(paths.runs()):
        _say(line)
    own = runs.all_runs(paths.runs())
    if not own:
        hint = "measure one: make report"
        raise GccostError("there is no run to compare", str(paths.runs()), hint)
    newest = own[-1]
    for line in runs.changed(newest):
        _say(line)
    other = counterpart(newest, _chosen(), name)
    found = agreement(newest, other, _chosen())
    if found.empty:
        hint = "name another one with --run, or none"
        raise GccostError(f"the run has no claim in common with {other.name}", newest.name, hint)
    sittings, days = len(other.manifest()["sittings"]), len(other.days)
    click.echo(f"recorded: {other.name}, {machine_of(other)}; sittings: {sittings}, days: {days}")
    click.echo(found.round(3).to_string(index=False, na_rep=""))
    figures = found["inside"].count()
    of_one_cpu = is_of_one_cpu(newest, other)
    if not of_one_cpu:
        tolerance = "A tolerance is how far such a figure moved at most between recorded machines."
        if not figures:
            tolerance = "No two machines are recorded that say how far such a figure moves."
        click.echo(f"This run was measured on another CPU, {machine_of(newest)}. {tolerance}")
    outside = (~found["inside"]).sum()
    expected = f" (by chance up to {by_chance(found)})" if of_one_cpu else ""
    contradictions = found["contradicts"].sum()
    compared = found["value"].count()
    click.echo(
        f"outside their tolerances: {outside} of {figures} figures{expected}; contradicting the "
        f"recorded run: {contradictions} of {compared} verdicts; without a figure in your run: "
        f"{len(found) - compared}"
    )
    if of_one_cpu and days == 1 and newest.days != other.days:
        click.echo(
            "The recorded sittings are of one day: how far figures differ from day to day is not "
            "in the tolerances."
        )
    delays = busy.delays(samples.of_run(newest).frame)
    if (delays > busy.BUSY).any():
        click.echo("other programs kept the machine busy; measure while nothing else runs")
    if of_one_cpu and (outside > by_chance(found) or contradictions):
        sys.exit(1)


@main.command()
@click.argument("profile", type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, for programs.")
@click.option(
    "--fail-above",
    "limit",
    type=percent,
    default="100%",
    help="Exit with 3 if finalizers, cleanups and weak pointers take more of the CPU time: 5%.",
)
def explain(profile: str, as_json: bool, limit: float) -> None:
    """Show what automatic cleanup costs in a Go CPU profile.

    Counts the time of finalizers, cleanups and weak pointers, and says what registers them.

    PROFILE is a file, such as go test -cpuprofile writes, or what curl fetches from
    http://localhost:6060/debug/pprof/profile?seconds=10 of net/http/pprof.

    \b
    Exit codes:
      0  an answer, even if the profile has none of them
      1  any other failure
      2  PROFILE is not a CPU profile of a Go program, or the command is mistyped
      3  an answer, and a share above that of --fail-above
    """
    from gccost import explain as explanation

    answer = explanation.explain(explanation.load(profile))
    text = "\n".join(explanation.lines(answer))
    click.echo(json.dumps(answer, indent=2) if as_json else text)
    if answer["share"] > limit:
        _say(f"{profile}: {answer['share']:.2%} is above the limit of {limit:.2%}")
        sys.exit(3)


@main.command()
@click.argument("patterns", nargs=-1, metavar="[PACKAGES]...")
@click.option(
    "-C",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    help="The folder of the Go module, if it is not this one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, for programs.")
@click.option(
    "--fail-on",
    "rules",
    multiple=True,
    metavar="RULE",
    help="Exit with 3 if there is a finding of this rule, or of any: --fail-on any.",
)
@click.option("--go", "release", default="", help="The oldest Go release to check for: 1.24.")
@click.option("--tags", default="", help="Build tags, as for go build.")
def check(
    patterns: tuple[str, ...],
    folder: Path,
    as_json: bool,
    rules: tuple[str, ...],
    release: str,
    tags: str,
) -> None:
    """Find finalizers and cleanups in your Go module that harm or cost too much.

    Run it in the folder of a module, or name that with -C. PACKAGES are as for go vet: ./... if
    there are none. It needs no C compiler and no headers, builds nothing of yours and downloads
    nothing.

    \b
    Rules:
      use-after-free  an object may be freed while C uses its pointer
      never-runs      a finalizer or cleanup that never runs
      close-pays      a Close that frees, and leaves the finalizer or cleanup
      expensive-size  an object of a size that is expensive to register on
      blocks-all      a finalizer or cleanup that stops the others
      not-the-object  registered on a part of an object, a package variable, or twice

    \b
    Exit codes:
      0  an answer, even if nothing is found
      1  any other failure
      2  the module cannot be read, or the command is mistyped
      3  an answer, and a finding of a rule of --fail-on
    """
    from gccost import check as checking

    names = [*checking.RULES, checking.ANY]
    for rule in rules:
        if rule not in names:
            raise click.BadParameter(f"there is no rule {rule!r}: name one of {', '.join(names)}")
    answer = checking.check(folder.resolve(), patterns, release, tags, _say)
    text = "\n".join(map(escaped, checking.lines(answer)))  # names of files are the module's
    click.echo(json.dumps(answer, indent=2) if as_json else text)
    failing = {finding["rule"] for finding in answer["findings"]}
    if checking.ANY not in rules:
        failing.intersection_update(rules)
    if failing:
        _say(f"{folder}: found {', '.join(sorted(failing))}")
        sys.exit(3)


@main.command("read")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--metric", default="ns", show_default=True, help="A column, such as B_per_op.")
def read_results(files: tuple[str, ...], metric: str) -> None:
    """Show the cost of each case in the output of go test -bench.

    A cost is the lower quartile of times and rates, and the median of memory and counts, with its
    95 % interval from three results or more. See docs/read.md.
    """
    from gccost.costs.costs import VALUES
    from gccost.judging.rounding import plain
    from gccost.showing import reading

    if len({os.path.realpath(file) for file in files}) < len(files):
        raise click.BadParameter("a file is named twice: its results would count twice")
    results = reading.read(*files)
    expect(results.select_dtypes("number"), metric, "metric", "gccost read --metric")
    costs = reading.costs(results, metric)[VALUES]
    shown = costs[VALUES[:3]].map(plain)
    for end in ("low", "high"):
        shown.loc[costs[end].isna() & costs["value"].notna(), end] = "unknown"
    table = shown.assign(n=costs["n"]).rename(columns={"value": metric}).reset_index()
    click.echo(table.to_string(index=False))


@main.command("pack")
@click.argument("names", nargs=-1, metavar="[STUDY]...")
@_budget
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default="gccost-pack.tar.xz",
    show_default=True,
)
def pack_it(names: tuple[str, ...], budget_name: str, output: Path) -> None:
    """Pack the programs, to measure on a machine without tools.

    On that machine: tar -xf gccost-pack.tar.xz && gccost-pack/run. It needs Linux on the same
    processor, a glibc as new as this machine's, Python 3.11 or later, and a JDK for the Java
    programs. Each call of run adds a sitting. Copy the archive that it writes back, and add it
    here with gccost add.
    """
    if names:
        chosen = [study for name in names for study in _chosen(name)]
    else:
        chosen = [study for study in _chosen() if not study.on_request]
    pack.make(chosen, budget(budget_name), output, _say)


@main.command("fleet")
@_budget
@_only
@click.option(
    "--scheduler",
    default="tcp://127.0.0.1:8786",
    show_default=True,
    help="The address of the Dask scheduler.",
)
@click.option(
    "--machines",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many workers to wait for.",
)
def measure_fleet(budget_name: str, only: str, scheduler: str, machines: int) -> None:
    """Measure on many machines, with Dask.

    Start the scheduler here, and one worker on each machine, in a clone (after make setup) or in
    the image:

    \b
      dask scheduler --host 127.0.0.1 --dashboard-address 127.0.0.1:0
      dask worker ADDRESS --nthreads 1 --host 127.0.0.1 --dashboard-address 127.0.0.1:0

    Each worker measures as gccost measure does. Its run is checked as gccost add checks one, and
    stored in data/runs/machines.

    Whoever reaches the scheduler or a worker can run code there and here. These commands listen on
    loopback addresses only. Between machines, use an SSH tunnel or TLS: see docs/elsewhere.md.

    The exit code is 0 if all the machines were measured.
    """
    from gccost.judging import reference
    from gccost.measuring import fleet

    lacking = []
    limit = budget(budget_name).name
    _chosen(only)  # a mistyped name ends this before it waits
    for host, archive in fleet.measure(scheduler, limit, only, machines, _say):
        path = paths.runs() / "machines" / f"{host.replace(':', '-')}.tar.gz"
        new = path.with_name(f"unchecked-{path.name}")
        try:
            if archive:
                write_whole(new, archive)
                with reference.checked(new, _chosen()):
                    new.replace(path)
                how = f".venv/bin/python -m gccost add {os.path.relpath(path)}"
                click.echo(f"{host} is measured. To add it: {how}")
                continue
        except GccostError as error:
            _say(str(error))
        lacking.append(host)
    if lacking:
        raise GccostError(f"not measured: {', '.join(lacking)}", scheduler)


@main.command()
@click.argument("given", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--main", "as_main", is_flag=True, help="Let the chapters show its machine.")
def add(given: tuple[Path, ...], as_main: bool) -> None:
    """Check runs and copy them to data/reference.

    A RUN is a folder or an archive. The chapters show the newest run of one machine; the
    results have a table of all recorded machines below the ledger. Rejects a run that is
    damaged or was measured with other sources.
    """
    from gccost.judging import reference

    for run in given:
        copy, caveats = reference.add(run, _chosen(), main=as_main)
        for caveat in caveats:
            _say(f"caveat: {caveat}")
        click.echo(f"added: {copy.name}")


def _recorded() -> list[Run]:
    """The recorded runs. Raises GccostError if there are none."""
    from gccost.costs.recorded import recorded

    if recorded_runs := recorded():
        return recorded_runs
    raise GccostError(
        "there is no recorded run",
        str(paths.reference()),
        "git checkout data/reference, or set GCCOST_REFERENCE to their folder",
    )


def _chosen(only: str = "") -> list[Study]:
    """The study of that name, or all of them."""
    from gccost.studies import chosen

    return chosen(only)


def _show(settings: Settings, *, opens: bool) -> Mapping[str, GccostError]:
    """Write the report, and return the errors of the notebooks that failed."""
    from gccost import sitting
    from gccost.showing import reporting

    notebooks = sitting.notebooks(settings, _say)
    with _progress("notebooks") as watched:
        return reporting.show(notebooks, _chosen(), settings, _say, watched, opens=opens)


def _progress(name: str) -> AbstractContextManager[Progress]:
    """A bar on a terminal, and lines in a log."""
    from gccost.showing import progress

    if sys.stderr.isatty():
        return progress.bar(name)
    return nullcontext(PrintedProgress(f"{name}: "))


def _say(text: str) -> None:
    """Write a line to stderr, above a bar if one is drawn."""
    tqdm.write(escaped(text), file=sys.stderr)


def _end(failed: Mapping[str, GccostError]) -> None:
    """Raise GccostError if notebooks failed."""
    if failed:
        pages = ", ".join(sorted(failed))
        reasons = "\n".join(map(str, failed.values()))
        raise GccostError(f"the pages of {pages} are incomplete:\n{reasons}")
