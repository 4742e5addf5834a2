"""From which run, machine and day the rows of a frame are."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from gccost.costs.recorded import machine_of
from gccost.judging import opening
from gccost.run.runs import Run

COLUMNS = ["run", "machine", "date"]

_opened: dict[str, None] = {}  # the names of the runs that this process has shown, in order


def opened(runs: Iterable[str]) -> None:
    """Note runs that a notebook opens: those of frames that do not name theirs."""
    names = [name for name in runs if name]
    _opened.update(dict.fromkeys(names))


def stated(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with the columns run, machine and date.

    A frame without the column `run` has that of its attrs, or all that the notebook opened.
    """
    if "run" in frame:
        runs = frame["run"].fillna("").astype(str)
    else:
        of_frame = str(frame.attrs.get("run", ""))
        runs = pd.Series(of_frame, frame.index, dtype=object)
    runs = runs.where(runs != "", "; ".join(_opened))
    every = _listed()
    machine, date = {}, {}
    for names in runs.unique():
        named = [every[name] for name in names.split("; ") if name in every]
        machine[names] = _joined(machine_of(run) for run in named)
        date[names] = _joined(_date(run) for run in named)
    rest = frame.drop(columns=COLUMNS, errors="ignore")
    return rest.assign(run=runs, machine=runs.map(machine), date=runs.map(date))


def _listed() -> dict[str, Run]:
    """Every run that has samples, by its name."""
    return {run.name: run for run, _ in opening.listed()}


def _joined(texts: Iterable[str]) -> str:
    """Texts, each once."""
    return "; ".join(dict.fromkeys(texts))


def machines(runs: Iterable[str]) -> list[str]:
    """The machines of runs, in words, each once."""
    every = _listed()
    found: dict[str, None] = {}
    for names in runs:
        for name in str(names).split("; "):
            if name in every:
                found[machine_of(every[name])] = None
    return list(found)


def _date(run: Run) -> str:
    created = run.manifest()["created"]
    return str(created)[:10]
