"""Run the notebooks, and write the report and what else shows their results."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Callable, Collection, Container, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from gccost import paths
from gccost.cases.settings import Settings
from gccost.errors import GccostError
from gccost.files import write_whole
from gccost.judging import ledger, opening
from gccost.judging.claims import Study
from gccost.measuring import machine
from gccost.progress import Progress
from gccost.showing import forked, gokernel, results
from gccost.showing.artifact import appendix
from gccost.showing.charts import as_file
from gccost.showing.execute import execute_all, named_outputs
from gccost.showing.report import write_report

Say = Callable[[str], object]

PURPOSE = (
    "Published claims about finalizers and cleanups, reproduced and judged by documented rules."
)
MOST_AT_ONCE = 4  # notebooks, or pages; each takes a few hundred megabytes


def execute(
    notebooks: list[Path],
    into: Path,
    settings: Settings,
    say: Say,
    progress: Progress,
    on_end: Say = lambda stem: None,
) -> dict[str, GccostError]:
    """Run notebooks, several at once; return the errors of those that failed, by stem.

    The Go notebooks' output differs each time, so they are not run in replay, nor without
    a Go kernel.
    """
    runs_go = settings.mode == "measure" and gokernel.find()
    running: dict[Path, Path] = {}
    # The last chapters take longest: begun last, they would leave a CPU idle at the end.
    first, *others = notebooks
    for notebook in [first, *reversed(others)]:
        if notebook.match(paths.IN_GO) and not runs_go:
            write_whole(into / notebook.name, notebook.read_bytes())
            if settings.mode == "measure":
                say(f"{notebook.stem} is shown as recorded; run make kernel to execute it")
        else:
            running[notebook] = into / notebook.name
    return execute_all(running, settings, at_once=_at_once(), on_end=on_end, progress=progress)


def _at_once() -> int:
    return min(machine.allowed_cpus(), MOST_AT_ONCE)


def show(
    notebooks: list[Path],
    studies: Collection[Study],
    settings: Settings,
    say: Say,
    progress: Progress,
    *,
    opens: bool,
) -> dict[str, GccostError]:
    """Run notebooks and write the report; return the errors of those that failed, by stem.

    The first page is written as soon as its notebook has run. The executed notebooks are in
    the report's folder.
    """
    into = paths.report() / "notebooks"
    for old in into.glob("*.ipynb"):
        old.unlink()
    executed = [into / notebook.name for notebook in notebooks]

    def on_end(stem: str) -> None:
        if stem == executed[0].stem:
            _write(executed, say, {})
            if opens:
                webbrowser.open((paths.report() / "index.html").resolve().as_uri())
            say("the chapters follow")

    failed = execute(notebooks, into, settings, say, progress, on_end)
    shown = named_outputs(into / f"{results.LEDGER}.ipynb")
    if "ledger" in shown:
        csv = shown["ledger"]["text/csv"]
    else:  # its notebook failed
        csv = results.csv(ledger.shown(opening.every(studies, settings), studies))
    files = {"ledger.csv": csv, "ledger.json": ledger.as_json(csv)}
    return _write(executed, print, files) | failed


def _write(executed: list[Path], tell: Say, files: Mapping[str, str]) -> dict[str, GccostError]:
    """Write the report, and tell its answers and its path; the first notebook has them.

    Returns the errors of pages that cannot be shown, by stem.
    """
    outputs = named_outputs(executed[0])
    words = {"title": results.TITLE, "purpose": PURPOSE}
    failed = write_report(executed, paths.report(), files=files, at_once=_at_once(), **words)
    if "answers" in outputs:
        tell(outputs["answers"]["text/plain"])
    tell(f"the report is {os.path.relpath(paths.report() / 'index.html')}")
    return failed


def write_documents(studies: Collection[Study], settings: Settings) -> None:
    """Write what else shows the results: the README's picture and report/artifact.md."""
    executed = paths.report() / "notebooks" / f"{results.LEDGER}.ipynb"
    if drawn := named_outputs(executed).get("headlines"):
        svg = as_file(drawn["image/svg+xml"])
        write_whole(paths.NOTEBOOKS / "headlines.svg", svg.encode())
        write = partial(_write_appendix, settings=settings)
        forked.each(write, [studies])  # where all is judged already


def _write_appendix(studies: Collection[Study], settings: Settings) -> None:
    shown = opening.every(studies, settings)
    text = appendix(ledger.shown(shown, studies), shown.values())
    write_whole(paths.report() / "artifact.md", text.encode())


def keep(executed: Path, failed: Container[str]) -> None:
    """Copy the executed notebooks of a folder to notebooks/, but for those that failed."""
    for path in sorted(executed.glob("*.ipynb")):
        if path.stem not in failed:
            kept = paths.NOTEBOOKS / path.name
            write_whole(kept, path.read_bytes())
            sign(kept)


def sign(notebook: Path) -> None:
    """Trust a notebook as it is now, unless there is no home that Jupyter can write to."""
    with suppress(OSError):
        NotebookNotary().sign(nbformat.read(notebook, as_version=4))
