"""The table of benchmarks, `data/benchmarks.csv`: what each compares, and how its loop behaves.

Its traits are:

- `short`: the loop allocates nothing on the Go heap and takes about 0.1 s, so a round has several
  processes of it
- `cleanup`: it calls runtime.AddCleanup, which Go has since 1.24
- `leaks`: it never frees its C memory, by design
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from gccost import paths
from gccost.files import reading


@dataclass(frozen=True)
class Benchmark:
    """A row of the table. `variant` says in words what it compares, `experiment` in which test.

    `experiment` is empty unless several benchmarks share a variant's words. The loops of a `kind`
    have their spreads in common (see `gccost.stats`).
    """

    benchmark: str
    variant: str
    experiment: str = ""
    kind: str = ""
    traits: str = ""

    def has(self, trait: str) -> bool:
        return trait in self.traits.split()


@cache
def table() -> Mapping[str, Benchmark]:
    """The benchmarks by name. Raises GccostError if the file is damaged."""
    path = paths.BENCHMARKS
    with reading(path), path.open(encoding="utf-8", newline="") as file:
        rows = [Benchmark(**row) for row in csv.DictReader(file)]
    return {row.benchmark: row for row in rows}


def of(benchmark: str) -> Benchmark:
    """The row of a benchmark; one that is not in the table is named by itself."""
    return table().get(benchmark) or Benchmark(benchmark, benchmark)
