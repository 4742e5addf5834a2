"""Benchmark output from elsewhere as a frame: whatever benchstat reads, and `go test -json`."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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
    "these are the samples of a run, with those that do not count; release and quiet_ns are in its "
    'jobs.csv. With it, gccost.open(study, run="{}") shows the run as it is judged'
)
_TOLD = 5  # lines that are left out, of a file
_PRINTED = ("ns/op", "B/op", "allocs/op", "op/s")  # of a plain command's results
_COLUMNS = ("variant", "benchmark", "procs", "operations")


@dataclass(frozen=True)
class Result:
    """A result line: its name in parts, the configuration that holds for it, and its values."""

    benchmark: str
    procs: int
    operations: int
    keys: dict[str, str]
    config: dict[str, str]
    measured: dict[str, float]  # by unit


def read(*sources: str | Path) -> pd.DataFrame:
    """Read the output of your own benchmarks: files, or the text itself.

    Reads whatever benchstat reads, `go test -json`, and the samples.txt of a run. A row per
    result, in the columns of `samples`: variant (in words, if the program is one of ours),
    benchmark, a column for each key of the names (numbers if all of its values are), procs,
    operations, mean_ns (ns/op), and other metrics with the unit in their name. Where several
    packages or files are read, `pkg` and `file` are columns, as is any other line of
    configuration that differs. Two things of the same name are spelled as in the file: the
    units p99-ns and p99-ns/op, a key /procs=4.

    `gccost.cost` refuses results that differ in more than their file; frame.attrs["keys"] has what
    tells them apart. Lines that cannot be read are printed, and so is what the samples of a run
    lack; `gccost.open(study, run=folder)` has it. Raises GccostError if no file is named, or if
    one is missing or holds no result.
    """
    if not sources:
        raise GccostError("no file is named", "gccost.read", _NAME_ONE)
    return frame([result for source in sources for result in _of(source)])


def results(text: str, left_out: list[str] | None = None) -> Iterator[Result]:
    """The results in a text; the lines that are none, but begin like one, go to `left_out`."""
    config: dict[str, str] = {}
    for number, line in enumerate(_printed(text).split("\n"), 1):
        line = line.lstrip("\ufeff").rstrip()
        if line.startswith("Benchmark"):
            if found := _RESULT.fullmatch(line):
                try:
                    yield _result(found, config)
                    continue
                except ValueError as why:
                    line = f"{why}: {line}"
            if left_out is not None and " " in line.replace("\t", " "):  # or -v announces it
                left_out.append(f"line {number} is left out: {printable(line)[:80]}")
        elif (found := _CONFIG.fullmatch(line)) and found[2]:
            config = config | {found[1]: found[2]}
        elif found:
            config = {key: value for key, value in config.items() if key != found[1]}


def frame(found: Iterable[Result], ours: bool = False) -> pd.DataFrame:
    """Results as a frame, see `read`; with `ours` all are from this package's programs."""
    found = list(found)
    if not found:
        return pd.DataFrame(columns=[*_COLUMNS, *metrics.REPORTED])
    settings = pd.DataFrame(_settings(found), range(len(found))).apply(_typed)
    measured = pd.DataFrame([each.measured for each in found])
    spelled = {str(name): str(name).strip("/:") for name in settings}
    spelled |= {str(unit): metrics.column(str(unit)) for unit in measured}
    taken = Counter([*_COLUMNS, *spelled.values()])
    twice = {raw: raw for raw, name in spelled.items() if taken[name] > 1}
    spelled |= twice | {name: f"{name} (unit)" for name in _COLUMNS if name in twice}
    names = [{"variant": _words(each, ours), "benchmark": each.benchmark} for each in found]
    counts = [{"procs": each.procs, "operations": each.operations} for each in found]
    named, counted = settings.rename(columns=spelled), pd.DataFrame(counts)
    parts = [pd.DataFrame(names), named, counted, measured.rename(columns=spelled)]
    whole = pd.concat(parts, axis="columns")
    # A case in two files is one case; two cases have no common cost.
    whole.attrs["keys"] = ["benchmark", *named.columns.drop("file", errors="ignore")]
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


def _words(result: Result, ours: bool) -> str:
    """The variant in words, if the program is one of ours."""
    package = result.config.get("pkg", "")
    if ours or "gccost-format" in result.config or package.startswith("gccost/"):
        return benchmarks.of(result.benchmark).variant
    return result.benchmark


def _settings(found: list[Result]) -> list[dict[str, str | None]]:
    """The configuration that differs between results, and their keys, as a file spells them."""
    configs = [each.config for each in found]
    varied = {
        name: f"{name}:"
        for name in dict.fromkeys(name for config in configs for name in config)
        if len({config.get(name) for config in configs}) > 1
    }
    return [
        {spelled: each.config.get(name) for name, spelled in varied.items()}
        | {f"/{key}": value for key, value in each.keys.items()}
        for each in found
    ]


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
    found = list(results(text, notes))
    if not found:
        hint = "it should have lines such as BenchmarkFree-8  1000000  60.6 ns/op"
        raise GccostError("it holds no result of a benchmark", place, hint)
    if len(notes) > _TOLD:
        notes[_TOLD:] = [f"{len(notes) - _TOLD} more lines are left out"]
    if "gccost-format" in found[0].config:
        notes.append(_OF_A_RUN.format(Path(place).parent))
    for note in notes:
        print(f"{place}: {note}")
    return [replace(each, config=each.config | {"file": place}) for each in found]


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


def _result(found: re.Match[str], config: dict[str, str]) -> Result:
    """A result of the parts of its line. Raises ValueError, saying what is wrong."""
    name, procs, operations, rest = found.groups()
    first, *parts = name.split("/")
    keys: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if key and equals and key not in keys:
            keys[key] = value
        else:
            first += f"/{part}"  # a part of the name that is not a key
    fields = rest.split()
    units = fields[1::2]
    if len(set(units)) < len(units):
        raise ValueError("a unit is there twice")
    values = dict(zip(units, map(float, fields[::2]), strict=True))
    return Result(first, int(procs or 1), int(operations), keys, config, values)


def _typed(column: pd.Series) -> pd.Series:
    """Numbers if all values are, otherwise text."""
    known = column.dropna()
    if not known.map(lambda value: bool(_NUMBER.fullmatch(value))).all():
        return column
    whole = known.str.fullmatch(r"-?\d{1,18}").all()
    return pd.to_numeric(column).astype("Int64" if whole else float)
