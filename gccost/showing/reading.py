"""Benchmark output from elsewhere as a frame: whatever benchstat reads, and `go test -json`."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from gccost.cases import benchmarks
from gccost.costs import metrics
from gccost.errors import GccostError
from gccost.run import benchfmt, schema
from gccost.run.benchfmt import Sample
from gccost.showing.tables import printable

# A number in a key; "1.20" is a version, whose last digit counts.
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?([eE][+-]?\d+)?")
_NAME_ONE = "name a file with the output of go test -bench"
_OF_A_RUN = (
    "these are the samples of a run; their settings are keys, as programs print them. "
    'With the run\'s jobs.csv, gccost.open(study, run="{}") shows the run as it is judged'
)
_OTHERS = {  # what may be taken for results: a pattern, what it is, and what to do
    "\0": ("; it is UTF-16 or no text", "write it as UTF-8: iconv -f UTF-16 -t UTF-8"),
    r"(?m)^Benchmark .*\bMode\b.*\bScore\b": (
        "; it is a table of JMH",
        "write JMH's results as a file (-rf csv), which pandas.read_csv reads",
    ),
    r"(?m)^name +old |vs base": (
        "; it is a comparison by benchstat",
        "name the files that benchstat compared",
    ),
    "": ("", "it should have lines such as BenchmarkFree-8  1000000  60.6 ns/op"),
}
_TOLD = 5  # lines that are left out, of a file
_PRINTED = ("ns/op", "B/op", "allocs/op", "op/s")  # of a plain command's results
_COLUMNS = ("variant", "benchmark", "procs", "operations")


def read(*sources: str | Path) -> pd.DataFrame:
    """Read the output of your own benchmarks: files, or the text itself.

    Reads whatever benchstat reads, `go test -json`, and the samples.txt of a run. A row per
    result, in the columns of `samples`: variant (in words, if the program is one of ours),
    benchmark, a column for each key of the names (numbers if all of its values are), procs,
    operations, ns (ns/op), and other metrics with the unit in their name. Where several
    packages or files are read, `pkg` and `file` are columns, as is any other line of
    configuration that differs. Two things of the same name are spelled as in the file: the
    units p99-ns and p99-ns/op, a key /procs=4.

    frame.attrs["keys"] has what tells cases apart, as for benchstat: the file and GOMAXPROCS
    (procs) among them if there are several. `gccost.cost` refuses results of several cases. If the
    files repeat one measurement, drop their column: read(…).drop(columns="file"). benchstat shows
    medians; `gccost.cost` gives the lower quartile of times and rates. Lines that cannot be read
    are printed, and so is what the samples of a run lack; `gccost.open(study, run=folder)` has it.
    What a finalizer takes and allocates counts in whichever benchmark runs when it is called, so
    run each benchmark in a process of its own: see chapter 8b.
    Raises GccostError if no file is named, or if one is missing or holds no result.
    """
    if not sources:
        raise GccostError("no file is named", "gccost.read", _NAME_ONE)
    return frame([result for source in sources for result in _of(source)])


def frame(results: Iterable[Sample], ours: bool = False) -> pd.DataFrame:
    """Results as a frame, see `read`; with `ours` all are from this package's programs."""
    whole = pd.DataFrame(map(_row, results))
    if whole.empty:
        return pd.DataFrame(columns=[*_COLUMNS, *metrics.REPORTED])
    columns = list(map(str, whole))
    units = [name for name in columns if name.startswith(" ")]
    keys = [name for name in columns if name.startswith("/")]
    config = [name for name in columns if name.endswith(":") and name not in (*keys, *units)]
    settings = [name for name in config if len(whole[name].drop_duplicates()) > 1] + keys
    spelled = {name: name.strip("/:") for name in settings}
    spelled |= {unit: metrics.column(unit[1:]) for unit in units}
    taken = Counter([*_COLUMNS, *spelled.values()])
    names = {raw: raw.strip() if taken[name] > 1 else name for raw, name in spelled.items()}
    names |= {f" {name}": f"{name} (unit)" for name in _COLUMNS}
    whole[settings] = whole[settings].apply(_typed)
    known = whole.reindex(columns=["gccost-format:", "pkg:"])
    mine = (
        ours | known["gccost-format:"].notna() | known["pkg:"].astype(str).str.startswith("gccost/")
    )
    words = whole["benchmark"].map(lambda name: benchmarks.of(name).variant)
    whole["variant"] = whole["benchmark"].mask(mine, words)
    whole = whole[["variant", "benchmark", *settings, *_COLUMNS[2:], *units]].rename(columns=names)
    several = ["procs"] * (len(set(whole["procs"])) > 1)
    whole.attrs["keys"] = ["benchmark", *(names[name] for name in settings), *several]
    return whole


def _row(result: Sample) -> dict[str, Any]:
    """A result's values by their names in the file: "pkg:" of the configuration, "/size" of the
    benchmark's name, and units after a space, such as " ns/op".
    """
    return {
        **{f"{name}:": value for name, value in result.config.items()},
        **{"benchmark": result.name, "procs": result.procs, "operations": result.n},
        **{f"/{key}": value for key, value in result.keys.items()},
        **{f" {unit}": value for unit, value in result.metrics.items()},
    }


def in_columns(printed: str) -> str:
    """What a plain command printed, without the metrics that it does not need."""
    lines = []
    for line in filter(None, printed.splitlines()):
        name, *fields = line.split("\t")
        if any(field.endswith(" ns/op") for field in fields):  # a trace may follow the name
            fields = [f for f in fields if f.strip().isdigit() or f.split()[-1] in _PRINTED]
        lines.append("\t".join([name, *fields]))
    return printable("".join(f"{line}\n" for line in lines))


def _of(source: str | Path) -> list[Sample]:
    """The results of a file, or of a text."""
    text, place = str(source), "the text"
    if not text.strip():
        raise GccostError("it is empty", place, _NAME_ONE)
    if "\n" not in text and not re.match(r"Benchmark\S*\s+\d", text):
        place = text
        try:
            data = Path(text).read_bytes()
        except (OSError, ValueError) as error:  # a name can hold a zero byte
            why = f"it cannot be read: {getattr(error, 'strerror', error)}"
            raise GccostError(why, schema.printable(place, 200), _NAME_ONE) from None
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # of PowerShell
        text = data.decode("utf-16" if wide else "utf-8", errors="replace")
    found = benchfmt.parse(_printed(text), place, measured=False)
    results = list(found.samples.values())
    if not results:
        what, hint = next(said for has, said in _OTHERS.items() if re.search(has, text))
        if found.errors and not what:
            what = f"; line {found.errors[0].line}: {found.errors[0].why}"
        raise GccostError(f"it holds no result of a benchmark{what}", place, hint)
    for problem in found.errors[:_TOLD]:
        print(f"{problem} (left out)")
    if more := len(found.errors[_TOLD:]):
        print(f"{place}: {more} more lines are left out")
    if "gccost-format" in results[0].config:
        print(f"{place}: {_OF_A_RUN.format(Path(place).parent)}")
    return [replace(each, config={**each.config, "file": place}) for each in results]


def _printed(text: str) -> str:
    """What the programs printed, if a text is the output of `go test -json`."""
    if '"Action":' not in text:
        return text
    printed: dict[str, str] = defaultdict(str)  # by package: they run at the same time
    for line in text.splitlines():
        try:
            event: dict[str, Any] = json.loads(line)
            printed[event.get("Package", "")] += event.get("Output", "")
        except (ValueError, AttributeError, TypeError):
            printed[""] += f"{line}\n"  # what go itself says
    return "\n".join(f"pkg: {package}\n{output}" for package, output in printed.items())


def _typed(column: pd.Series) -> pd.Series:
    """Numbers if all values are, otherwise text."""
    known = column.dropna()
    if not known.map(lambda value: bool(_NUMBER.fullmatch(value))).all():
        return column
    whole = known.str.fullmatch(r"-?\d{1,18}").all()
    return pd.to_numeric(column).astype("Int64" if whole else float)
