"""The Go benchmark format: what programs print, what a run's files hold, what benchstat reads.

A file is text in UTF-8. Three kinds of line matter:

    cpu: some CPU at 3 GHz                                    configuration
    BenchmarkAllocateFree/go=1.27.4/gogc=100-2  1600000  60.61 ns/op  0 B/op
    Unit ns/op better=lower                                   metadata of a unit: not used

A result is a name, a count of iterations, and values with their units, between any white
space. The name holds what names the case: `/key=value` parts, and at its end `-N` where
GOMAXPROCS was not 1. All other lines (`PASS`, `ok  pkg 1.2s`, comments, blank lines) are
skipped, as the format's own definition says (golang.org/design/14313-benchmark-format).

What cannot be a result although it begins like one, a configuration line that contradicts
an earlier one, bytes that are not text, and a last line without its newline (a write that
was cut short) are left out and reported with file and line; everything else is used.
All our metrics are counts, times and sizes, so a value is at least 0 and at most 1e18.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from gccost.errors import GccostError

PREFIX = "Benchmark"
LARGEST = 10**18  # of counts and of values: what is larger was not measured

_PROCS = re.compile(r"(.+)-([1-9][0-9]{0,8})")
_CONFIG = re.compile(r"([^\s:]+):(?:[ \t]+(.*))?")
# Control characters other than white space, and the bytes that are not UTF-8,
# which the decoder hands on as lone surrogates.
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Sample:
    """One result line: `metrics` maps a unit to its value."""

    name: str  # without "Benchmark", keys and procs
    n: int
    metrics: Mapping[str, float]
    keys: Mapping[str, str] = field(default_factory=dict)
    procs: int = 1

    def with_keys(self, keys: Mapping[str, str]) -> Sample:
        """The same result with more keys in its name."""
        return replace(self, keys={**self.keys, **keys})

    def with_metrics(self, metrics: Mapping[str, float]) -> Sample:
        """The same result with more metrics."""
        return replace(self, metrics={**self.metrics, **metrics})


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """A line that was left out, and why."""

    file: str
    line: int  # from 1
    text: str  # its beginning, fit to print
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}: {self.text}"


@dataclass(frozen=True)
class Reading:
    """What a file of results holds.

    frame   one row a sample, in the order of lines, with the columns `benchmark` (the
            name); one for each key of the names ("" where a name lacks it); `procs` (1
            where the name has none); `n`; one for each unit, called as the unit (NaN
            where a line lacks it); `line` (from 1). Where a key is called like a unit or
            another column, a "/" is put before it; so too for a unit that is called like
            one of the fixed columns.
    config  the configuration.
    errors  the lines that were left out.
    """

    frame: pd.DataFrame
    config: dict[str, str]
    errors: list[SyntaxProblem]


class _Malformed(Exception):
    """Why a line is no result."""


def parse_line(text: str, file: str = "", line: int = 0) -> Sample | SyntaxProblem:
    """The sample of a result line, or what is wrong with it."""
    try:
        return _parse(text)
    except _Malformed as why:
        return _problem(file, line, text, str(why))


def results(output: str) -> list[Sample | SyntaxProblem]:
    """The results in what a program printed, and the lines that only begin like one."""
    return [
        parse_line(text, "output", line)
        for line, text in enumerate(output.split("\n"), 1)
        if text.startswith(PREFIX)
    ]


def format_line(sample: Sample) -> str:
    """The sample's line, without a newline, such that parse_line gives the sample again.

    Raises ValueError for a sample that no line can hold, such as one with a space in a key.
    """
    name = PREFIX + sample.name + "".join(f"/{k}={v}" for k, v in sample.keys.items())
    # A 1 is left out, but for a name whose own end would be taken for procs.
    if sample.procs != 1 or _PROCS.fullmatch(name):
        name += f"-{sample.procs}"
    metrics = [f"{_shortest(value)} {unit}" for unit, value in sample.metrics.items()]
    text = "\t".join([name, str(sample.n), *metrics])
    again = parse_line(text)
    if again != sample:
        why = again.why if isinstance(again, SyntaxProblem) else "it would be read differently"
        raise ValueError(f"{sample} cannot be written as a line: {why}")
    return text


def read(path: Path) -> Reading:
    """Read a file of results; GccostError if it cannot be opened."""
    samples: dict[int, Sample] = {}  # by line
    config: dict[str, str] = {}
    problems: list[SyntaxProblem] = []
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
            for line, text in enumerate(lines, 1):
                # A byte order mark is that of the file, or of one that was joined to it.
                found = _take(text.lstrip("\ufeff"), config)
                if isinstance(found, Sample):
                    samples[line] = found
                elif found:
                    problems.append(_problem(str(path), line, text, found))
    except OSError as error:
        raise GccostError(
            f"cannot be read ({error.strerror or error})",
            str(path),
            "see that the file is there and that you may read it",
        ) from error
    return Reading(_frame(samples), config, problems)


def _take(text: str, config: dict[str, str]) -> Sample | str | None:
    """The sample of a line, or what is wrong with it; a configuration line goes to `config`."""
    if not text.endswith("\n"):
        return "an unfinished line: its end is missing" if text else None
    if text.startswith(PREFIX):
        try:
            return _parse(text)
        except _Malformed as why:
            return str(why)
    if _NOT_TEXT.search(text):
        return "bytes that are not text"
    if pair := _parse_config(text):
        before = config.setdefault(*pair)
        if before != pair[1]:
            return f"the file says {pair[0]}: {before} before this"
    return None


def _frame(found: Mapping[int, Sample]) -> pd.DataFrame:
    samples = list(found.values())
    keys, units = (
        list(dict.fromkeys(name for each in names for name in each))
        for names in ([s.keys for s in samples], [s.metrics for s in samples])
    )
    fixed = {"benchmark", "procs", "n", "line"}
    unit_names = _free_names(units, fixed)
    key_names = _free_names(keys, fixed.union(unit_names.values()))
    return pd.DataFrame(
        {
            "benchmark": _texts(s.name for s in samples),
            **{key_names[key]: _texts(s.keys.get(key, "") for s in samples) for key in keys},
            "procs": np.array([s.procs for s in samples], np.int64),
            "n": np.array([s.n for s in samples], np.int64),
            **{
                unit_names[unit]: np.array([s.metrics.get(unit, np.nan) for s in samples])
                for unit in units
            },
            "line": np.array(list(found), np.int64),
        }
    )


def _parse(text: str) -> Sample:
    fields = text.split()
    if not text.startswith(PREFIX):
        raise _Malformed(f"it does not begin with {PREFIX}")
    name, keys, procs = _parse_name(fields[0])
    if len(fields) == 1:
        raise _Malformed("there is no count of iterations")
    n = _parse_count(fields[1])
    if len(fields) == 2:
        raise _Malformed("there are no values")
    if len(fields) % 2:
        raise _Malformed(f"the value {fields[-1]} has no unit")
    values = [_parse_value(value) for value in fields[2::2]]
    units = _check_units(tuple(fields[3::2]))
    return Sample(name, n, dict(zip(units, values, strict=True)), keys, procs)


@lru_cache(maxsize=4096)
def _parse_name(text: str) -> tuple[str, dict[str, str], int]:
    if _NOT_TEXT.search(text):
        raise _Malformed("the name holds bytes that are not text")
    found = _PROCS.fullmatch(text)
    text, procs = (found[1], int(found[2])) if found else (text, 1)
    first, *parts = text.removeprefix(PREFIX).split("/")
    if not first:
        raise _Malformed(f"there is no name after {PREFIX}")
    keys: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not (key and equals):
            first += f"/{part}"  # a part of the name that is no key
        elif key in keys:
            raise _Malformed(f"the key {key} is there twice")
        else:
            keys[key] = value
    return first, keys, procs


def _parse_count(text: str) -> int:
    # Python would also take signs, underscores and the digits of other scripts.
    if not (text.isascii() and text.isdecimal()) or len(text) >= len(str(LARGEST)):
        raise _Malformed(f"the count of iterations is no whole number: {text}")
    if not int(text):
        raise _Malformed("there were no iterations")
    return int(text)


def _parse_value(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = None
    if value is None or not text.isascii() or "_" in text:
        raise _Malformed(f"the value is no number: {text}")
    if not 0 <= value <= LARGEST:
        raise _Malformed(f"the value is not between 0 and {LARGEST:.0e}: {text}")
    return value


@lru_cache  # most lines share their units
def _check_units(units: tuple[str, ...]) -> tuple[str, ...]:
    seen: set[str] = set()
    for unit in units:
        if _NOT_TEXT.search(unit):
            raise _Malformed("a unit holds bytes that are not text")
        if unit in seen:
            raise _Malformed(f"the unit {unit} is there twice")
        seen.add(unit)
        with suppress(ValueError):
            float(unit)
            raise _Malformed(f"a number is where a unit should be: {unit}")
    return units


def _parse_config(text: str) -> tuple[str, str] | None:
    found = _CONFIG.fullmatch(text.rstrip())
    if not found or not found[1][0].islower() or any(map(str.isupper, found[1])):
        return None
    return found[1], found[2] or ""


def _shortest(value: float) -> str:
    """The shortest decimal that is read as the same number."""
    return repr(float(value)).removesuffix(".0")


def _problem(file: str, line: int, text: str, why: str) -> SyntaxProblem:
    return SyntaxProblem(file, line, _printable(text, 60), _printable(why, 120))


def _printable(text: str, size: int) -> str:
    """The beginning of a text in one line, with what cannot be printed as an escape."""
    beginning = " ".join(text[: 3 * size].split())[:size]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in beginning)


def _texts(values: Iterable[str]) -> pd.Series:
    return pd.Series(list(values), dtype="str")


def _free_names(wanted: Iterable[str], taken: set[str]) -> dict[str, str]:
    """A column's name for each that is wanted: with a "/" before it where it is taken."""
    names = {}
    occupied = taken.union(wanted)
    for name in wanted:
        free = name
        while free in (taken if free == name else occupied):
            free = f"/{free}"
        names[name] = free
        occupied.add(free)
    return names
