"""The Go benchmark format: what programs print, what a run's files hold, what benchstat reads.

A file is text in UTF-8. Three kinds of line matter:

    cpu: some CPU at 3 GHz                                    configuration
    BenchmarkAllocateFree/go=1.27.4/gogc=100-2  1600000  60.61 ns/op  0 B/op
    Unit ns/op better=lower                                   metadata of a unit: not used

A result is a name, a count of iterations, and values with their units, between any white
space. The name holds what names the case: `/key=value` parts, and at its end `-N` where
GOMAXPROCS was not 1. All other lines (`PASS`, `ok  pkg 1.2s`, comments, blank lines) are
passed over, as the format's own definition says (golang.org/design/14313-benchmark-format).

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
from itertools import islice
from os import PathLike, fspath
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gccost.errors import GccostError

PREFIX = "Benchmark"
LARGEST = 10**18  # of counts and of values: what is larger was not measured

_PROCS = re.compile(r"(.+)-([1-9][0-9]{0,8})")
_CONFIG = re.compile(r"([^\s:]+):(?:[ \t]+(.*))?")
# Control characters other than white space, and the bytes that are not UTF-8,
# which the decoder hands on as lone surrogates.
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\ud800-\udfff]")
# How a file in UTF-16 begins when it is decoded so: with a byte order mark or without.
_UTF16 = re.compile("\udcff\udcfe|\udcfe\udcff|(?:[^\0]\0){2}|(?:\0[^\0]){2}")


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
    """What files of results hold.

    frame   one row a sample, in the order of files and lines, with the columns
            `benchmark` (the name); one for each key of the names ("" where a name lacks
            it); `procs` (1 where the name has none); `n`; one for each unit, called
            as the unit (NaN where a line lacks it); `file`; `line` (from 1).
            Where a key is called like a unit or another column, a "/" stands
            before it; so too for a unit that is called like one of the fixed columns.
    config  the configuration of each file; also in `frame.attrs["config"]`.
    errors  the lines that were left out.
    """

    frame: pd.DataFrame
    config: dict[str, dict[str, str]]
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


def format_config(config: Mapping[str, str]) -> str:
    """The configuration's lines, each with its newline.

    Raises ValueError for what a configuration line cannot hold.
    """
    lines = [f"{key}: {value}" for key, value in config.items()]
    for text, pair in zip(lines, config.items(), strict=True):
        if _parse_config(text) != pair or _NOT_TEXT.search(text) or "\n" in text:
            raise ValueError(f"{pair} cannot be written as a configuration line")
    return "".join(f"{text}\n" for text in lines)


def read(paths: str | PathLike[str] | Iterable[str | PathLike[str]]) -> Reading:
    """Read files of results; a file that cannot be opened is a GccostError."""
    reader = _Reader()
    for path in [paths] if isinstance(paths, str | PathLike) else paths:
        try:
            reader.read(fspath(path))
        except OSError as error:
            raise GccostError(
                f"cannot be read ({error.strerror or error})",
                place=fspath(path),
                mend="see that the file is there and that you may read it",
            ) from error
    return reader.reading()


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
    units = _check_units(fields[3::2])
    return Sample(name, n, dict(zip(units, values, strict=True)), keys, procs)


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
            raise _Malformed(f"the key {key} stands twice in the name")
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
    if value is None or "_" in text or not text.isascii():
        raise _Malformed(f"the value is no number: {text}")
    if not 0 <= value <= LARGEST:
        raise _Malformed(f"the value is not between 0 and {LARGEST:.0e}: {text}")
    return value


def _check_units(units: list[str]) -> list[str]:
    seen: set[str] = set()
    for unit in units:
        if _NOT_TEXT.search(unit):
            raise _Malformed("a unit holds bytes that are not text")
        if unit in seen:
            raise _Malformed(f"the unit {unit} stands twice")
        seen.add(unit)
        with suppress(ValueError):
            float(unit)
            raise _Malformed(f"a number stands where a unit should: {unit}")
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


class _Pending:
    """Lines with the same units in the same order, whose numbers are yet to be converted."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.places: list[int] = []  # for each text the numbers of its name, file and line
        self.counts: list[str] = []
        self.values: list[str] = []  # for each text as many as there are units


@dataclass(frozen=True)
class _Block:
    """Samples with the same units, a row each."""

    places: NDArray[np.int64]  # (samples, 3): as in _Pending
    counts: NDArray[np.int64]
    metrics: NDArray[np.float64]  # (samples, units)


class _Reader:
    """Collects samples from files, quickly.

    The first line with a name, or with a sequence of units, that has not been seen goes
    through parse_line. Of the lines that follow with the same name and units only the
    numbers are new: they are put aside and converted together, many lines at once. A line
    whose numbers do not convert, or not to what may be, goes through parse_line again.
    """

    AT_ONCE = 1 << 11  # lines: few enough to stay in the processor's cache

    def __init__(self) -> None:
        self.files: list[str] = []
        self.config: dict[str, dict[str, str]] = {}
        self.problems: list[tuple[int, SyntaxProblem]] = []  # with its file's number
        self.names: dict[str, int] = {}
        self.named: list[Sample] = []  # the first sample with each name
        self.pending: dict[tuple[str, ...], _Pending] = {}
        self.blocks: dict[tuple[str, ...], list[_Block]] = {}

    def read(self, path: str) -> None:
        file = len(self.files)
        self.files.append(path)
        self.config[path] = {}
        problems, blocks = len(self.problems), self._count_blocks()
        start, line = "", 0
        with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
            while some := list(islice(lines, self.AT_ONCE)):
                start = start or some[0][:4]
                self._take(file, line + 1, some)
                self._convert()
                line += len(some)
        if _UTF16.match(start) and blocks == self._count_blocks():
            del self.problems[problems:]
            mend = "convert it with iconv -f UTF-16 -t UTF-8"
            self._leave_out(file, 1, "", f"the file is in UTF-16, not UTF-8: {mend}")

    def reading(self) -> Reading:
        """All that was read so far."""
        blocks = [block for blocks in self.blocks.values() for block in blocks]
        places = np.concatenate([np.empty((0, 3), np.int64), *(b.places for b in blocks)])
        counts = np.concatenate([np.empty(0, np.int64), *(b.counts for b in blocks)])
        order = np.lexsort((places[:, 2], places[:, 1]))
        names, files, lines = places[order].T
        metrics = self._metrics(order)
        keys = list(dict.fromkeys(key for sample in self.named for key in sample.keys))
        fixed = {"benchmark", "procs", "n", "file", "line"}
        unit_names = _free_names(metrics, fixed)
        key_names = _free_names(keys, fixed.union(unit_names.values()))

        columns: dict[str, object] = {"benchmark": _pick([s.name for s in self.named], names)}
        for key in keys:
            columns[key_names[key]] = _pick([s.keys.get(key, "") for s in self.named], names)
        columns["procs"] = np.array([s.procs for s in self.named], np.int64)[names]
        columns["n"] = counts[order]
        columns |= {unit_names[unit]: values for unit, values in metrics.items()}
        columns["file"] = _pick(self.files, files)
        columns["line"] = lines
        frame = pd.DataFrame(columns)
        frame.attrs["config"] = self.config
        problems = sorted(self.problems, key=lambda entry: (entry[0], entry[1].line))
        return Reading(frame, self.config, [problem for _, problem in problems])

    def _metrics(self, order: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        """The values of each unit, NaN where a sample has none; order: see lexsort."""
        row = np.empty_like(order)  # where each sample of the blocks stands in the frame
        row[order] = np.arange(order.size)
        units = dict.fromkeys(unit for shape in self.blocks for unit in shape)
        metrics = {unit: np.full(order.size, np.nan) for unit in units}
        first = 0
        for shape, blocks in self.blocks.items():
            for block in blocks:
                rows = row[first : first + len(block.counts)]
                first += len(block.counts)
                for unit, values in zip(shape, block.metrics.T, strict=True):
                    metrics[unit][rows] = values
        return metrics

    def _take(self, file: int, first: int, lines: list[str]) -> None:
        units: list[str] = []  # of the line before, which most lines share
        pending = None
        for line, text in enumerate(lines, first):
            if not text.startswith(PREFIX) or not text.endswith("\n"):
                self._take_other(file, line, text)
                continue
            fields = text.split()
            name = self.names.get(fields[0])
            if fields[3::2] != units:
                units = fields[3::2]
                pending = self.pending.get(tuple(units))
            if name is None or pending is None or len(fields) != 2 * len(units) + 2:
                sample = parse_line(text, self.files[file], line)
                if isinstance(sample, SyntaxProblem):
                    self.problems.append((file, sample))
                    continue
                if name is None:
                    name = self.names[fields[0]] = len(self.named)
                    self.named.append(sample)
                pending = self.pending.setdefault(tuple(units), _Pending())
            pending.texts.append(text)
            pending.places += (name, file, line)
            pending.counts.append(fields[1])
            pending.values += fields[2::2]

    def _take_other(self, file: int, line: int, text: str) -> None:
        if not text.endswith("\n"):
            self._leave_out(file, line, text, "an unfinished line: its end is missing")
        elif text[0] == "\ufeff":  # a byte order mark, of this file or of one joined to it
            self._take(file, line, [text.lstrip("\ufeff")])
        elif _NOT_TEXT.search(text):
            self._leave_out(file, line, text, "bytes that are not text")
        elif pair := _parse_config(text):
            key, value = pair
            before = self.config[self.files[file]].setdefault(key, value)
            if before != value:
                self._leave_out(file, line, text, f"the file says {key}: {before} before this")

    def _leave_out(self, file: int, line: int, text: str, why: str) -> None:
        self.problems.append((file, _problem(self.files[file], line, text, why)))

    def _convert(self) -> None:
        for units, pending in self.pending.items():
            if pending.texts:
                self.blocks.setdefault(units, []).append(self._block(pending))
                self.pending[units] = _Pending()

    def _block(self, pending: _Pending) -> _Block:
        samples = len(pending.texts)
        places = np.array(pending.places, np.int64).reshape(samples, 3)
        counts = _whole_numbers(pending.counts)
        values = _numbers(pending.values).reshape(samples, -1)
        sound = (counts > 0) & ((values >= 0) & (values <= LARGEST)).all(axis=1)
        for row in np.flatnonzero(~sound):
            _, file, line = (int(x) for x in places[row])
            found = parse_line(pending.texts[row], self.files[file], line)
            if isinstance(found, SyntaxProblem):
                self.problems.append((file, found))
            else:  # a good line among bad ones
                counts[row], values[row], sound[row] = found.n, [*found.metrics.values()], True
        return _Block(places[sound], counts[sound], values[sound])

    def _count_blocks(self) -> int:
        return sum(map(len, self.blocks.values()))


def _whole_numbers(texts: list[str]) -> NDArray[np.int64]:
    """All the counts, or zeros where one of them is none."""
    together = "".join(texts)
    if together.isascii() and together.isdecimal() and max(map(len, texts)) < len(str(LARGEST)):
        return np.fromiter(map(int, texts), np.int64, len(texts))
    return np.zeros(len(texts), np.int64)


def _numbers(texts: list[str]) -> NDArray[np.float64]:
    """All the values, or NaNs where one of them is none."""
    together = "".join(texts)
    if together.isascii() and "_" not in together:
        with suppress(ValueError):
            return np.fromiter(map(float, texts), np.float64, len(texts))
    return np.full(len(texts), np.nan)


def _pick(texts: list[str], which: NDArray[np.int64]) -> object:
    """A column of texts, each stored once."""
    return pd.Series(texts, dtype="str").array.take(which)


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
