"""The table of benchmarks, `data/benchmarks.csv`: what each one is, and how it is measured.

A line describes a benchmark, or some cases of one or several: `Allocate|Finalize/words=8/gogc=off`.
Where two lines differ, the one with more keys decides; an empty field says nothing. The columns:

- `program`, `n`, `retained_bytes`: its package in gosrc/ or javasrc/; its operations, 0 if they are
  chosen by time; the memory that an operation keeps until the loop ends, which limits N
- `keys`: the keys of its sub-benchmarks, in their order; `settings`: other settings than usual,
  a value or the key that has it
- `since`, `cpus`: the oldest release, and the fewest CPUs, on which it is measured
- `variant`, `experiment`: what it compares in words, and in which test if several benchmarks share
  a variant's words
- `traits`: `short` (the loop allocates nothing on the Go heap and takes about 0.1 s, so a round has
  several processes of it), `leaks` (it never frees its C memory, by design), `traced` (it runs with
  gctrace=1), `once` (the result is deterministic, so one sample is enough)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from gccost import paths
from gccost.errors import GccostError, expect, nearest
from gccost.files import read_table
from gccost.run.jobtable import NUMBERS

Keys = Mapping[str, str]


# Values of GOEXPERIMENT: without Green Tea, the newer algorithm of marking (Go 1.26 and 1.27 have
# both), and without the allocators for single size classes (the default of Go 1.27).
NO_GREEN_TEA = "nogreenteagc"
ONE_MALLOC = "nosizespecializedmalloc"
EXPERIMENTS = MappingProxyType({NO_GREEN_TEA: "no Green Tea", ONE_MALLOC: "one malloc"})
STOCK = "stock"  # the release's own runtime, which no name has


def _pairs(text: str) -> dict[str, str]:
    """The settings in a text like "gogc=100 profile="."""
    return dict(word.split("=") for word in text.split())


# The settings that follow the release in a name, in this order, as they usually are.
SETTINGS: Mapping[str, Keys] = {
    "go": _pairs(
        "gogc=100 gomaxprocs= setting=published control= profile= runtime= method= load= "
        "measurement= gomemlimit= arenas="
    ),
    "jdk": _pairs("setting=published control= gc=G1 heap= escape= finalization= gcthreads="),
}
# The words that a setting may have as its value; the others have a number.
_WORDS: Keys = {
    "gogc": "off",
    "setting": "published precise",
    "control": "same relinked",
    "profile": "cpu",
    "runtime": f"{STOCK} hint index plus requeue counting {NO_GREEN_TEA} {ONE_MALLOC}",
    "method": "rounds count",
    "load": "quiet busy full",
    "gc": "G1 Serial Parallel Z Shenandoah Epsilon",
    "escape": "off",
    "finalization": "enabled disabled",
}
_TRAITS = ("short", "leaks", "traced", "once")


@dataclass(frozen=True)
class Benchmark:
    """What the table says of a benchmark's cases, as text; empty where it says nothing."""

    benchmark: str
    program: str = ""
    n: str = ""
    retained_bytes: str = ""
    keys: str = ""
    settings: str = ""
    since: str = ""
    cpus: str = ""
    variant: str = ""
    experiment: str = ""
    traits: str = ""

    def has(self, trait: str) -> bool:
        return trait in self.traits.split()


class _Line(NamedTuple):
    """A line of the table: the cases that it is about, and its fields that are not empty."""

    where: str
    cases: Mapping[str, list[str]]
    said: Keys

    def fits(self, keys: Keys) -> bool:
        return all(keys.get(key) in values for key, values in self.cases.items())


_Lines = Mapping[str, list[_Line]]  # by benchmark


def split(grid: str) -> tuple[list[str], dict[str, list[str]]]:
    """The benchmarks, and the values of each key, of a text in the syntax of samples' names.

    "Plain|Cleaner/heap=8|16" has alternatives; "words=1..4" has the numbers from 1 to 4, and
    "gogc=100..400..100" each hundredth one.
    """
    names, *parts = grid.split("/")
    values = {}
    for part in parts:
        key, _, texts = part.partition("=")
        values[key] = list(_values(texts))
    return names.split("|"), values


def _values(texts: str) -> Iterator[str]:
    for text in texts.split("|"):
        ends = text.split("..")
        if len(ends) == 1:
            yield text
            continue
        if not all(map(str.isdecimal, ends)):
            hint = "write it like 1..96 or 0..96..8"
            raise GccostError("this is no range of numbers", text, hint)
        first, last, *step = map(int, ends)
        if last < first:
            raise GccostError("this range is empty", text, f"write {last}..{first}")
        yield from map(str, range(first, last + 1, *step))


@cache
def table() -> Mapping[str, list[_Line]]:
    """The lines on each benchmark, those with fewer keys first. Raises GccostError if damaged."""
    lines = _read()
    _check(lines)
    for own in lines.values():
        own.sort(key=lambda line: len(line.cases))
    return lines


def _read() -> _Lines:
    columns = [field.name for field in fields(Benchmark)]
    lines: dict[str, list[_Line]] = {}
    for number, row in enumerate(read_table(paths.BENCHMARKS), 2):
        where = f"{paths.BENCHMARKS}:{number}"
        for column in row:
            expect(columns, column, "column", where)
        try:
            names, cases = split(row.pop("benchmark"))
        except GccostError as error:
            raise GccostError(error.message, f"{where} ({error.location})", error.hint) from None
        said = {column: text for column, text in row.items() if text}
        for name in names:
            lines.setdefault(name, []).append(_Line(where, cases, said))
    return lines


def _check(lines: _Lines) -> None:
    """Raise GccostError, with the line and the nearest word, for one that is unknown."""
    with_program = []
    for name, own in lines.items():
        if any("program" in line.said for line in own):
            with_program.append(name)
    for name, own in lines.items():
        if name not in with_program:
            hints = ["fill the column program", nearest(name, with_program)]
            hint = ", or ".join(filter(None, hints))
            raise GccostError(f"{name} has no program", own[0].where, hint)
        keys: list[str] = []
        for line in own:
            keys += line.said.get("keys", "").split()
        for line in own:
            _check_line(line, keys)


def _check_line(line: _Line, own_keys: list[str]) -> None:
    known = [*own_keys, *chain(*SETTINGS.values())]
    grids = [line.cases]
    if settings := line.said.get("settings"):
        grids.append(split(f"/{settings}")[1])
    for grid in grids:
        for key, values in grid.items():
            for value in values:
                if value not in own_keys:
                    check_setting(key, value, known, line.where)
    for trait in line.said.get("traits", "").split():
        expect(_TRAITS, trait, "trait", line.where)


def check_program(benchmark: str, program: str) -> None:
    """Raise GccostError, with the line and the nearest, for a program that is not in the clone."""
    for folder in (paths.GOSRC, paths.JAVASRC):
        if (folder / program).is_dir():
            return
    where = ""
    for line in table()[benchmark]:
        if line.said.get("program") == program:
            where = line.where
    programs = set()
    for line in chain(*table().values()):
        programs.add(line.said.get("program", program))
    expect(programs - {program}, program, "program", where)


def check_setting(key: str, value: str, keys: Iterable[str], where: str) -> None:
    """Raise GccostError, with the nearest word, unless the key is known and may have the value."""
    expect(keys, key, "key", where)
    words = _WORDS.get(key, "").split()
    if not value:
        raise GccostError(f"{key} has no value", where, f"write {key}=…, or leave it out")
    if key in (*NUMBERS, "gomaxprocs", "measurement") and value not in words:
        whole(value, where)
    elif words:
        expect(words, value, key, where)


def whole(text: str, where: str) -> int:
    """A number of a case or of its benchmark. Raises GccostError for other text."""
    if not text.isdecimal():
        raise GccostError(f"{text!r} is no whole number", where, "write it like 100")
    return int(text)


def of(benchmark: str, keys: Keys | None = None) -> Benchmark:
    """What the table says of a benchmark, or of its cases with these keys.

    One that is not in the table is named by itself. Raises GccostError if two lines disagree.
    """
    deciding: dict[str, _Line] = {}  # by column
    for line in reversed(table().get(benchmark, [])):  # more keys come first
        if not line.fits(keys or {}):
            continue
        for column, text in line.said.items():
            other = deciding.setdefault(column, line)
            other_text = other.said[column]
            if text != other_text and len(line.cases) == len(other.cases):
                raise GccostError(
                    f"{benchmark} has two of {column}: {other_text}, and {text} in {line.where}",
                    other.where,
                    "say it once, or add a line with more keys",
                )
    said = {column: line.said[column] for column, line in deciding.items()}
    said.setdefault("variant", benchmark)
    return Benchmark(benchmark, **said)
