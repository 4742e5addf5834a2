"""The table of jobs in a run, `jobs.csv`. A row has the columns that its case has."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gccost.errors import GccostError
from gccost.files import write_whole
from gccost.run.schema import COUNT, LINE, TEXT, columns, rows

NUMBERS = (
    *("words", "goroutines", "threads", "handles", "live", "mb", "mib", "remaining", "waiting"),
    *("cleaners", "bytes", "forgotten", "dummies", "others", "gogc", "gcthreads", "heap", "arenas"),
)
"""The keys whose values are numbers; all others are text."""


IDENTITY = ("release", "experiment", "variant", "benchmark")


_FIRST = (
    "name",
    "program",
    *IDENTITY,
    "n",
    "retained_bytes",
    "argv",
    "env",
)


_DROPPED = ("sliced", "gated", "kind")  # columns of older tables


RESTORE = "restore the file, or move the run folder away and measure again"


_NAME = LINE._replace(least=1)


_COLUMNS = columns("program release experiment variant n:count retained_bytes:count argv env") | {
    "name": _NAME,
    "benchmark": _NAME,
    "*": TEXT,
}


_COLUMNS |= {f"{name}?": COUNT.or_null() for name in (*NUMBERS, "cpus", "rounds", "count")}


Job = dict[str, Any]
"""A row: a column's value by its name; without the settings that the case lacks."""


def write(path: Path, jobs: Iterable[Job]) -> None:
    """Write a table of jobs; a setting that a job lacks is empty."""
    rows = list(jobs)
    columns = dict.fromkeys([*_FIRST, *(name for row in rows for name in row)])
    text = io.StringIO()
    table = csv.DictWriter(text, list(columns), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write_whole(path, text.getvalue().encode())


def read(path: Path) -> dict[str, Job]:
    """The jobs by name. Raises GccostError, with the line, for a file that no gccost wrote."""
    jobs: dict[str, Job] = {}
    for line, row in enumerate(rows(path, _COLUMNS, RESTORE), 2):
        name = row["name"]
        if name in jobs:
            raise GccostError(f"the job {name} is there twice", f"{path}:{line}", RESTORE)
        lacking = [key for key, value in row.items() if value in ("", None) and key not in _FIRST]
        for key in {*lacking, *_DROPPED} & row.keys():
            del row[key]
        jobs[name] = row
    return jobs
