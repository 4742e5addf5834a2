"""Benchmark output from elsewhere as a frame: whatever benchstat reads, and `go test -json`."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from gccost.errors import GccostError
from gccost.judging import metrics
from gccost.measuring import benchmarks
from gccost.showing.tables import printable

_RESULT = re.compile(r"Benchmark(\S+?)(?:-(\d+))?\s+(\d+)((?:\s+\S+\s+\S+)+)\s*")
_CONFIG = re.compile(r"([a-z][^\s:A-Z]*):(?:\s+(.*))?")
# A number in a key; "1.20" is a version, whose last digit counts.
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?([eE][+-]?\d+)?")
_NAME_ONE = "name a file with the output of go test -bench"
_OF_A_RUN = (
    "these are the samples of a run; their settings are keys, as programs print them. "
    'With the run\'s jobs.csv, gccost.open(study, run="{}") shows the run as it is judged'
)
_TOLD = 5  # lines that are left out, of a file
_PRINTED = ("ns/op", "B/op", "allocs/op", "op/s")  # of a plain command's results
Result = dict[str, Any]
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

    frame.attrs["keys"] has what tells cases apart, the file among them, as benchstat has a column
    per file; `gccost.cost` refuses results of several cases. If the files repeat one measurement,
    drop their column: read(…).drop(columns="file"). Lines that cannot be read are printed, and so
    is what the samples of a run lack; `gccost.open(study, run=folder)` has it. Raises GccostError
    if no file is named, or if one is missing or holds no result.
    """
    if not sources:
        raise GccostError("no file is named", "gccost.read", _NAME_ONE)
    return frame([result for source in sources for result in _of(source)])


def results(text: str, notes: list[str] | None = None) -> Iterator[Result]:
    """The results in a text; lines that are none, but begin like one, go to `notes`.

    A result has its values by their names in the file: "/size" of the benchmark's name, "pkg:"
    of the configuration, and units after a space, such as " ns/op".
    """
    config: Result = {}
    for number, line in enumerate(_printed(text).split("\n"), 1):
        line = line.lstrip("\ufeff").rstrip()
        if match := _CONFIG.fullmatch(line):
            config = config | {f"{match[1]}:": match[2]}
        elif line.startswith("Benchmark"):
            try:
                yield config | _result(line)
            except ValueError as why:
                if notes is not None and len(line.split()) > 1:  # or -v announces it
                    notes.append(f"line {number} is left out: {printable(f'{why}: {line}')[:80]}")


def _result(line: str) -> Result:
    """The values of a line. Raises ValueError, saying what is wrong."""
    match = _RESULT.fullmatch(line)
    if not match:
        raise ValueError("it is no result")
    name, procs, operations, rest = match.groups()
    benchmark, *parts = name.split("/")
    result: Result = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if key and equals and f"/{key}" not in result:
            result[f"/{key}"] = value
        else:
            benchmark += f"/{part}"  # a part of the name that is not a key
    fields = rest.split()
    for value, unit in zip(fields[::2], fields[1::2], strict=True):
        if f" {unit}" in result:
            raise ValueError("a unit is there twice")
        result[f" {unit}"] = float(value)
    counts = {"procs": int(procs or 1), "operations": int(operations)}
    return {"benchmark": benchmark} | counts | result


def frame(rows: Iterable[Result], ours: bool = False) -> pd.DataFrame:
    """Results as a frame, see `read`; with `ours` all are from this package's programs."""
    whole = pd.DataFrame(list(rows))
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
    whole.attrs["keys"] = ["benchmark", *(names[name] for name in settings)]
    return whole


def in_columns(printed: str) -> str:
    """What a plain command printed, without the metrics that it does not need."""
    lines = []
    for line in filter(None, printed.splitlines()):
        name, *fields = line.split("\t")
        if any(field.endswith(" ns/op") for field in fields):  # a trace may follow the name
            fields = [f for f in fields if f.strip().isdigit() or f.split()[-1] in _PRINTED]
        lines.append("\t".join([name, *fields]))
    return printable("".join(f"{line}\n" for line in lines))


def _of(source: str | Path) -> list[Result]:
    """The results of a file, or of a text of several lines."""
    text, place = str(source), "the text"
    notes: list[str] = []
    if "\n" not in text:
        place = text
        try:
            text = Path(text).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise GccostError(f"it cannot be read: {error.strerror}", place, _NAME_ONE) from None
    rows = list(results(text, notes))
    if not rows:
        hint = "it should have lines such as BenchmarkFree-8  1000000  60.6 ns/op"
        raise GccostError("it holds no result of a benchmark", place, hint)
    if len(notes) > _TOLD:
        notes[_TOLD:] = [f"{len(notes) - _TOLD} more lines are left out"]
    if "gccost-format:" in rows[0]:
        notes.append(_OF_A_RUN.format(Path(place).parent))
    for note in notes:
        print(f"{place}: {note}")
    return [each | {"file:": place} for each in rows]


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
