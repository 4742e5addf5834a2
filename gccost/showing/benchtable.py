"""The results of benchmarks in columns.

A file may have hundreds of thousands of results of some thousand cases. A case is what has one name
and one configuration: it is parsed once, and a result refers to it by a number. Where many
lines follow one another that have the same units, pandas' tokenizer reads their numbers. It reads
them as `gccost.run.benchfmt` does, or that does.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from gccost.run import benchfmt, schema
from gccost.run.benchfmt import Config, Sample

_OTHER = re.compile(rf"\n(?!{benchfmt.PREFIX})")  # the end of lines of results
LONG = 1 << 16  # characters of such lines; fewer are read as quickly one by one
_BLOCK = 1 << 22  # characters that are tokenized at once, about
_STRETCH = schema.LONGEST // 2  # if each has the end of a line, no line is too long
_PLAIN = b"\t\n" + bytes(range(0x20, 0x7F))
_SIGNED = (b" +", b"\t+")  # a count with a sign, which is none
_MOST = 10**18  # a count that is none


class Table:
    """Results in columns.

    `cases` has a row for each case, by the names that `columns_of` describes. The frame has
    a row for each result: the number of its case, its operations, and its metrics.
    """

    def __init__(self) -> None:
        self.cases: list[dict[str, Any]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._configs: list[Config] = []  # kept, because others could get their ids
        self._parts: list[pd.DataFrame] = []

    def frame(self) -> pd.DataFrame:
        """The columns `case` and `operations`, and a column for each unit, after a space."""
        if len(self._parts) == 1:
            return self._parts[0]
        return pd.concat(self._parts, ignore_index=True) if self._parts else pd.DataFrame()

    def add(self, samples: Iterable[Sample], file: str = "") -> None:
        """Add results one by one."""
        rows = []
        for sample in samples:
            case = self._number(sample.config, file, sample.name, sample.procs, sample.keys)
            row: dict[str, float] = {"case": case, "operations": sample.n}
            for unit, value in sample.metrics.items():
                row[f" {unit}"] = value
            rows.append(row)
        if rows:
            self._parts.append(pd.DataFrame(rows))

    def add_run(self, text: str, config: Config, file: str) -> int:
        """Add the results in lines that follow one another; their number, 0 if one is not plain."""
        parts = []
        for block in _blocks(text):
            part = self._tokenized(block, config, file)
            if part is None:
                return 0
            parts.append(part)
        self._parts += parts
        return sum(map(len, parts))

    def _tokenized(self, block: str, config: Config, file: str) -> pd.DataFrame | None:
        """The values of lines with the same units; None if they are not all plain results."""
        data = block.encode()
        if data.translate(None, _PLAIN) or not _has_short_lines(block):
            return None
        if b"+" in data and any(sign in data for sign in _SIGNED):
            return None
        columns = len(block[: block.index("\n")].split())
        if columns < 4 or columns % 2 or columns > 2 * (benchfmt.MOST_UNITS + 1):
            return None
        types: dict[int, str] = {0: "category"}
        for column in range(2, columns, 2):
            types[column] = "float64"
            types[column + 1] = "category"
        try:
            raw = pd.read_csv(
                io.BytesIO(data),
                sep=r"\s+",
                header=None,
                names=range(columns),
                dtype=types,
                quoting=3,
                na_filter=False,
                low_memory=False,
            )
            units = [_only(raw[column]) for column in range(3, columns, 2)]
            benchfmt.check_units(tuple(units))
            numbers = [self._named(name, config, file) for name in raw[0].cat.categories]
        except ValueError:
            return None
        if raw[1].dtype != "int64" or not raw[1].between(1, _MOST - 1).all():
            return None
        made = {"case": np.array(numbers)[raw[0].cat.codes], "operations": raw[1]}
        for column, unit in zip(range(2, columns, 2), units, strict=True):
            if not np.isfinite(raw[column]).all():
                return None
            made[f" {unit}"] = raw[column]
        return pd.DataFrame(made)

    def _named(self, text: str, config: Config, file: str) -> int:
        name, keys, procs = benchfmt.parse_name(text)
        return self._number(config, file, name, procs, keys)

    def _number(
        self, config: Config, file: str, name: str, procs: int, keys: Mapping[str, str]
    ) -> int:
        """The number of a case."""
        case = (id(config), file, name, procs, *keys.items())
        number = self._numbers.get(case)
        if number is None:
            number = self._numbers[case] = len(self.cases)
            self.cases.append(columns_of(config, file, name, procs, keys))
            self._configs.append(config)
        return number


def runs(text: str) -> Iterator[tuple[int, int]]:
    """Where lines of results begin and end that follow one another, if they are LONG."""
    begin = 0
    while True:
        if not text.startswith(benchfmt.PREFIX, begin):
            begin = text.find(f"\n{benchfmt.PREFIX}", begin) + 1
            if not begin:
                return
        other = _OTHER.search(text, begin)
        end = other.end() if other else text.rfind("\n") + 1
        if end - begin >= LONG:
            yield begin, end
        if not other:
            return
        begin = end


def _blocks(text: str) -> Iterator[str]:
    """Whole lines of a text, a part of it at a time."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + _BLOCK) + 1 or len(text)
        yield text[begin:end]
        begin = end


def _has_short_lines(block: str) -> bool:
    """Whether no line is longer than a result can be."""
    ends = (block.find("\n", at, at + _STRETCH) for at in range(0, len(block), _STRETCH))
    return min(ends) >= 0


def _only(column: pd.Series) -> str:
    """The only value of a column of texts; ValueError if there are several."""
    (unit,) = column.cat.categories
    return str(unit)


def columns_of(
    config: Config, file: str, name: str, procs: int, keys: Mapping[str, str]
) -> dict[str, Any]:
    """A case by the names in its file: "pkg:" of the configuration, "/size" of its own name."""
    row: dict[str, Any] = {f"{setting}:": value for setting, value in config.items()}
    if file:
        row["file:"] = file
    row |= {"benchmark": name, "procs": procs}
    return row | {f"/{key}": value for key, value in keys.items()}
