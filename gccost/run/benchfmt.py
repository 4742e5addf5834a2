"""The Go benchmark format, as programs print it, runs store it, and benchstat reads it.

A file is UTF-8 text. It has three kinds of line:

    cpu: some CPU at 3 GHz                                    configuration
    BenchmarkAllocateFree/go=1.27.4/gogc=100-2  1600000  60.61 ns/op  0 B/op
    Unit ns/op better=lower                                   metadata of a unit

A result is a name, a count of iterations, and values with their units, separated by white
space. The name has `/key=value` parts that identify the case, and ends in `-N` if
GOMAXPROCS was not 1. All other lines (`PASS`, `ok  pkg 1.2s`, comments, blank lines) are
skipped, as the format's definition says (golang.org/design/14313-benchmark-format).

Some lines are skipped and reported with file and line: malformed results, bytes that are
not text, and in a run's file a last line without its newline (an interrupted write). Our
metrics are counts, times and sizes, so `measured` values are between 0 and 1e18. Only the C blocks
that a loop leaves can be fewer than it found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from gccost.errors import GccostError
from gccost.run.schema import LARGEST, LONGEST, UNSEEN, escaped, printable

PREFIX = "Benchmark"
LEAST, LONG = 0.1, 3600.0  # of a measured time: ns per operation; seconds of a process
MOST_UNITS = 200  # of a line; ours have up to 94
_BLOCKS = ("c-allocated", "c-freed", "c-unfreed-loop", "c-unfreed-drained", "c-misfreed")
_LEFT = ("c-unfreed-loop", "c-unfreed-drained")  # less those before the loop
_CONFIG = re.compile(r"([a-z][^\s:A-Z]*):(?:\s+(.*))?")
# What the go command, a compiler or a linker says between results; it is no configuration.
_SAID = re.compile(r"go: .*|[a-z][^\s:A-Z]*: (warning|note|error|fatal error): .*")
_ANNOUNCED = re.compile(rf"{PREFIX}\S*")  # by go test -v, before the result
# A result after something else on its line, in the columns of a table perhaps. Repetitions are
# possessive (++): a line of bars would be tried in as many ways as it has pairs of them.
_WITHIN = re.compile(
    rf"(.{{1,200}}?){PREFIX}(?:\S*+\s|[^\s|]*+\|)[\s|]*+\d++[\s|]++[^\s|]\S*+\s++[^\d\s]"
)
_PROCS = re.compile(r"(.+)-([1-9][0-9]{0,8})")
_COUNT = re.compile(r"0*[1-9][0-9]{0,17}")

Config = Mapping[str, str | None]
"""The lines `key: value` above a result; None if the value is empty."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One result line: `metrics` maps a unit to its value."""

    name: str  # without "Benchmark", keys and procs
    n: int
    metrics: Mapping[str, float]
    keys: Mapping[str, str] = field(default_factory=dict)
    procs: int = 1
    config: Config = field(default_factory=dict, compare=False)

    @property
    def full_name(self) -> str:
        """The name with its keys, which identifies the case."""
        return self.name + "".join([f"/{k}={v}" for k, v in self.keys.items()])  # often called

    def with_metrics(self, metrics: Mapping[str, float]) -> Sample:
        """The sample with more metrics."""
        return replace(self, metrics={**self.metrics, **metrics})


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """A skipped line, with the reason."""

    file: str
    line: int  # from 1
    text: str  # its beginning, printable
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}: {self.text}"


@dataclass(frozen=True)
class Reading:
    """The content of a file of results: its samples by line (from 1), and the skipped lines."""

    samples: Mapping[int, Sample]
    errors: list[SyntaxProblem]


def implausible(sample: Sample) -> str:
    """What a measured sample cannot be; empty if it is plausible."""
    metrics = sample.metrics
    time, number = metrics.get("ns/op", LEAST), metrics.get("round", 0.0)
    seconds = max(time * sample.n / 1e9, metrics.get("elapsed-s", 0.0))
    counts = {name: metrics.get(name, 0.0) for name in _BLOCKS}
    allocated, freed, loop, drained, misfreed = counts.values()
    # A JVM's clock may show no time at all.
    if seconds > LONG or (time < LEAST and "jdk" not in sample.keys):
        return f"a time is not between {LEAST} ns and {LONG / 3600:.0f} h: {time:g} ns/op"
    if number not in range(1, 1_000_000):
        return f"the round is not a whole number from 1: {number:g}"
    if allocated != freed + loop or drained > loop or misfreed:
        return f"the counts of C blocks do not add up: {counts}"
    return ""


def format_line(sample: Sample) -> str:
    """Format a sample as a line, without a newline, that parse_line turns back into it.

    The name, the keys and the units must be those of a line: without white space.
    """
    name = PREFIX + sample.full_name
    # A 1 is omitted, unless the name's own end would be read as procs.
    if sample.procs != 1 or _PROCS.fullmatch(name):
        name += f"-{sample.procs}"
    # The shortest decimals that are read as the same numbers.
    values = {unit: repr(float(value)) for unit, value in sample.metrics.items()}
    metrics = [f"{value.removesuffix('.0')} {unit}" for unit, value in values.items()]
    return "\t".join([name, str(sample.n), *metrics])


class Parser:
    """Reads lines, in parts of a file perhaps. `measured` results are ours.

    `config` is what holds for the next result, and `line` the number of lines that were read.
    """

    def __init__(self, file: str, *, measured: bool = True) -> None:
        self.file = file
        self.measured = measured
        self.config: Config = {}
        self.line = 0
        self.errors: list[SyntaxProblem] = []

    def read(self, text: str) -> dict[int, Sample]:
        """The results of the next lines, by line."""
        samples = {}
        for text_line in text.split("\n"):
            self.line += 1
            line = text_line.lstrip("\ufeff").rstrip("\r")  # of the file, or of one appended
            line = line if self.measured or is_plain(line) else escaped(line)
            try:
                sample = self._sample(line)
            except ValueError as why:
                self.errors.append(_problem(self.file, self.line, line, str(why)))
            else:
                if sample:
                    samples[self.line] = sample
        return samples

    def _sample(self, line: str) -> Sample | None:
        """The result of a line, if it has one. Raises ValueError with what is wrong."""
        if line.startswith(PREFIX):
            if self.measured or not _ANNOUNCED.fullmatch(line):
                return _result(line, self.config, self.measured)
        elif self.measured and UNSEEN.search(line):
            raise ValueError("bytes that are not text")
        elif not self.measured and (match := _WITHIN.match(line)):
            prefix = match[1].strip() or "white space"
            raise ValueError(f"remove what stands before the result: {prefix}")
        elif not _SAID.match(line) and (match := _CONFIG.fullmatch(line.rstrip())):
            self.config = {**self.config, match[1]: match[2]}
        return None


def parse(text: str, file: str = "output", *, measured: bool = True) -> Reading:
    """The results in a text, and its lines that are malformed. `measured` results are ours."""
    parser = Parser(file, measured=measured)
    samples = parser.read(text)
    return Reading(samples, parser.errors)


def read(path: Path) -> Reading:
    """Read a file of measured results. Raises GccostError if it cannot be opened."""
    try:
        text = path.read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise GccostError(
            f"cannot be read ({error.strerror or error})",
            str(path),
            "see that the file is there and that you may read it",
        ) from error
    whole, _, rest = text.rpartition("\n")
    found = parse(whole, str(path))
    if rest.strip("\ufeff"):
        why = "an unfinished line: its end is missing"
        found.errors.append(_problem(str(path), whole.count("\n") + 2 - (not whole), rest, why))
    return found


def _result(line: str, config: Config, measured: bool) -> Sample:
    """The sample of a line. Raises ValueError with what is wrong."""
    fields = line[:LONGEST].split()
    if len(line) > LONGEST or len(fields) > 2 * (MOST_UNITS + 1):
        raise ValueError(f"it has more than {LONGEST:,} characters or {MOST_UNITS} values")
    if not is_plain(line) and UNSEEN.search(line):
        raise ValueError("it holds bytes that are not text")
    if len(fields) == 2 and fields[1].isdecimal():
        raise ValueError("it has no value, as go test prints for a reported time of 0")
    if len(fields) < 4 or len(fields) % 2:
        raise ValueError("it is not a name, a count of iterations, and values with units")
    name, keys, procs = parse_name(fields[0])
    if not fields[1].strip("0"):
        raise ValueError("the count of iterations is 0, so nothing was measured")
    if not _COUNT.fullmatch(fields[1]):
        raise ValueError(f"the count of iterations is not a whole number from 1: {fields[1][:40]}")
    units = tuple(fields[3::2])
    check_units(units)
    metrics = dict(zip(units, _parse_values(fields[2::2]), strict=True))
    if measured and not all(0 <= value <= LARGEST for value in metrics.values()):
        _check_values(metrics)
    return Sample(name, int(fields[1]), metrics, keys, procs, config)


@lru_cache(maxsize=4096)
def parse_name(text: str) -> tuple[str, dict[str, str], int]:
    procs = 1
    if match := _PROCS.fullmatch(text):
        text, procs = match[1], int(match[2])
    first, *parts = text.removeprefix(PREFIX).split("/")
    if not first:
        raise ValueError(f"there is no name after {PREFIX}")
    keys: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if key and equals and key not in keys:
            keys[key] = value
        else:
            first += f"/{part}"  # a part of the name that is not a key
    return first, keys, procs


def _number(text: str) -> float | None:
    """A number in Go's notation; Python's also has underscores and digits of other scripts."""
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def _parse_values(texts: list[str]) -> list[float]:
    joined = "".join(texts)
    if joined.isascii() and "_" not in joined:
        with suppress(ValueError):
            return [*map(float, texts)]
    for text in texts:
        if _number(text) is None:
            raise ValueError(f"the value is not a number: {text}")
    return [*map(float, texts)]


def _check_values(metrics: Mapping[str, float]) -> None:
    for unit, value in metrics.items():
        if not 0 <= (abs(value) if unit in _LEFT else value) <= LARGEST:
            raise ValueError(f"a value is not between 0 and {LARGEST:.0e}: {value:g}")


def is_plain(line: str) -> bool:
    """Whether a line has only characters of ASCII that are seen, and tabs."""
    return line.isascii() and line.replace("\t", " ").isprintable()


@lru_cache  # most lines share their units
def check_units(units: tuple[str, ...]) -> None:
    for number, unit in enumerate(units):
        if unit in units[:number]:
            raise ValueError(f"the unit {unit} is there twice")
        if _number(unit) is not None:
            raise ValueError(f"a number is where a unit should be: {unit}")


def _problem(file: str, line: int, text: str, why: str) -> SyntaxProblem:
    return SyntaxProblem(file, line, printable(text, 60), printable(why, 120))
