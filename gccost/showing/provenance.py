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
    _opened.update(dict.fromkeys(filter(None, runs)))


def stated(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with the columns run, machine and date.

    A frame without the column `run` has that of its attrs, or all that the notebook opened.
    """
    if "run" in frame:
        runs = frame["run"].fillna("").astype(str)
    else:
        runs = pd.Series(str(frame.attrs.get("run", "")), frame.index, dtype=object)
    runs = runs.where(runs != "", "; ".join(_opened))
    known = {run.name: run for run, _ in opening.listed()}
    machine, date = {}, {}
    for names in runs.unique():
        named = [known[name] for name in names.split("; ") if name in known]
        machine[names] = "; ".join(dict.fromkeys(map(machine_of, named)))
        date[names] = "; ".join(dict.fromkeys(map(_date, named)))
    rest = frame.drop(columns=COLUMNS, errors="ignore")
    return rest.assign(run=runs, machine=runs.map(machine), date=runs.map(date))


def machines(runs: Iterable[str]) -> list[str]:
    """The machines of runs, in words, each once."""
    known = {run.name: run for run, _ in opening.listed()}
    names = dict.fromkeys(name for each in runs for name in str(each).split("; "))
    return list(dict.fromkeys(machine_of(known[name]) for name in names if name in known))


def _date(run: Run) -> str:
    return str(run.manifest()["created"])[:10]
