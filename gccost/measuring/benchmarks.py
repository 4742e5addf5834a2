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
- `kind`: loops of a kind have their spreads in common (see `gccost.stats`)
- `traits`: `short` (the loop allocates nothing on the Go heap and takes about 0.1 s, so a round has
  several processes of it), `leaks` (it never frees its C memory, by design), `traced` (it runs with
  gctrace=1), `once` (the result is deterministic, so one sample is enough)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import NamedTuple

from gccost import paths
from gccost.errors import GccostError, nearest
from gccost.files import read_table

Keys = Mapping[str, str]


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
    kind: str = ""
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
    known = [field.name for field in fields(Benchmark)]
    lines: dict[str, tuple[_Line, ...]] = {}
    for number, row in enumerate(read_table(paths.BENCHMARKS), 2):
        where = f"{paths.BENCHMARKS}:{number}"
        for column in row:
            if column not in known:
                raise GccostError(f"there is no column {column!r}", where, nearest(column, known))
        names, cases = split(row.pop("benchmark"))
        said = {column: text for column, text in row.items() if text}
        for name in names:
            lines[name] = (*lines.get(name, ()), _Line(where, cases, said))
    return {name: tuple(sorted(of, key=lambda line: len(line.cases))) for name, of in lines.items()}


def of(benchmark: str, keys: Keys | None = None) -> Benchmark:
    """What the table says of a benchmark, or of its cases with these keys.

    One that is not in the table is named by itself. Raises GccostError if two lines disagree.
    """
    said: dict[str, _Line] = {}
    for line in table().get(benchmark, ()):
        for column in line.said if line.fits(keys or {}) else ():
            other = said.get(column, line)
            mine, theirs = line.said[column], other.said[column]
            if mine != theirs and len(line.cases) == len(other.cases):
                raise GccostError(
                    f"{benchmark} has two of {column}: {mine}, and {theirs} in {other.where}",
                    line.where,
                    "say it once, or add a line with more keys",
                )
            said[column] = line
    found = {column: line.said[column] for column, line in said.items()}
    return Benchmark(benchmark, **{"variant": benchmark} | found)
