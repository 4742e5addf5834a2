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

# The settings that follow the release in a name, in this order, as they usually are.
SETTINGS: Mapping[str, Keys] = {
    "go": {"gogc": "100", "gomaxprocs": "", "setting": "published", "control": "", "profile": ""}
    | dict.fromkeys(("runtime", "method", "load", "measurement", "gomemlimit", "arenas"), ""),
    "jdk": {"setting": "published", "control": "", "gc": "G1"}
    | dict.fromkeys(("heap", "escape", "finalization", "gcthreads"), ""),
}
# The words that a setting may have as its value; the others have a number.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "gogc": ("off",),
    "setting": ("published", "precise"),
    "control": ("same", "relinked"),
    "profile": ("cpu",),
    "runtime": (STOCK, "hint", "index", "plus", "requeue", "counting", *EXPERIMENTS),
    "method": ("rounds", "count"),
    "load": ("quiet", "busy", "full"),
    "gc": ("G1", "Serial", "Parallel", "Z", "Shenandoah", "Epsilon"),
    "escape": ("off",),
    "finalization": ("enabled", "disabled"),
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


def split(grid: str) -> tuple[list[str], dict[str, list[str]]]:
    """The benchmarks, and the values of each key, of a text in the syntax of samples' names.

    "Plain|Cleaner/heap=8|16" has alternatives; "words=1..4" has the numbers from 1 to 4, and
    "gogc=100..400..100" each hundredth one.
    """
    names, *parts = grid.split("/")
    pairs = (part.partition("=") for part in parts)
    return names.split("|"), {key: list(_values(texts)) for key, _, texts in pairs}


def _values(texts: str) -> Iterator[str]:
    for text in texts.split("|"):
        first, *rest = text.split("..")
        if rest and not all(map(str.isdecimal, [first, *rest])):
            raise GccostError(
                "this is no range of numbers", text, "write it like 1..96 or 0..96..8"
            )
        if rest and int(rest[0]) < int(first):
            raise GccostError("this range is empty", text, f"write {rest[0]}..{first}")
        if rest:
            yield from map(str, range(int(first), int(rest[0]) + 1, *map(int, rest[1:])))
        else:
            yield first


@cache
def table() -> Mapping[str, tuple[_Line, ...]]:
    """The lines on each benchmark, those with fewer keys first. Raises GccostError if damaged."""
    columns = [field.name for field in fields(Benchmark)]
    lines: dict[str, tuple[_Line, ...]] = {}
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
            lines[name] = (*lines.get(name, ()), _Line(where, cases, said))
    _check(lines)
    return {name: tuple(sorted(of, key=lambda line: len(line.cases))) for name, of in lines.items()}


def _check(lines: Mapping[str, tuple[_Line, ...]]) -> None:
    """Raise GccostError, with the line and the nearest word, for one that is unknown."""
    whole = [name for name, own in lines.items() if any("program" in line.said for line in own)]
    for name, own in lines.items():
        if name not in whole:
            hint = ", or ".join(filter(None, ["fill the column program", nearest(name, whole)]))
            raise GccostError(f"{name} has no program", own[0].where, hint)
        keys = [key for line in own for key in line.said.get("keys", "").split()]
        for line in own:
            _, settings = split(f"/{line.said['settings']}" if "settings" in line.said else "")
            for key, value in _pairs(line.cases, settings):
                if value not in keys:
                    check_setting(key, value, [*keys, *chain(*SETTINGS.values())], line.where)
            for trait in line.said.get("traits", "").split():
                expect(_TRAITS, trait, "trait", line.where)


def _pairs(*grids: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    """Each key of grids with each of its values."""
    return ((key, value) for grid in grids for key, values in grid.items() for value in values)


def check_program(benchmark: str, program: str) -> None:
    """Raise GccostError, with the line and the nearest, for a program that is not in the clone."""
    if not any((folder / program).is_dir() for folder in (paths.GOSRC, paths.JAVASRC)):
        said = {line.said.get("program"): line.where for line in table()[benchmark]}
        others = {line.said.get("program", program) for own in table().values() for line in own}
        expect(others - {program}, program, "program", said[program])


def check_setting(key: str, value: str, keys: Iterable[str], where: str) -> None:
    """Raise GccostError, with the nearest word, unless the key is known and may have the value."""
    expect(keys, key, "key", where)
    words = _WORDS.get(key, ())
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
    fitting = [line for line in table().get(benchmark, ()) if line.fits(keys or {})]
    said: dict[str, _Line] = {}
    for line in sorted(fitting, key=lambda each: -len(each.cases)):  # more keys come first
        for column, mine in line.said.items():
            other = said.setdefault(column, line)
            theirs = other.said[column]
            if mine != theirs and len(line.cases) == len(other.cases):
                raise GccostError(
                    f"{benchmark} has two of {column}: {mine}, and {theirs} in {other.where}",
                    line.where,
                    "say it once, or add a line with more keys",
                )
    found = {column: line.said[column] for column, line in said.items()}
    return Benchmark(benchmark, **{"variant": benchmark} | found)
