"""Tables of fields, with their types and ranges, and the function that checks data against them.

Everything that comes from a file or from another machine is checked once, on entry:

    fault(value, table, "run.json")    a value of JSON
    rows(path, table)                  a CSV file

A table is a Field; a list of one table; or a dict of tables by name, where a name that ends in
"?" may be absent and the name "*" stands for any. `columns` makes the usual ones from a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gccost.files import read_table, reading

# Control characters but tab and newline, characters that reverse or hide others, and bytes
# that are not UTF-8, which the decoder turns into lone surrogates. Texts of a run are shown in
# terminals and pages, so they have none of these.
_UNSEEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e00ff"
)
UNSEEN = re.compile(f"[{_UNSEEN}]")
LARGEST = 10**18  # of counts and values; larger ones cannot be measurements
LONGEST = 100_000  # characters of a text


class Field(NamedTuple):
    """A type with its range: the ends of a number, or of a text's length, and its pattern.

    Among its types, None stands for null, or for an empty field of a CSV file.
    """

    words: str  # "a whole number"
    types: tuple[type | None, ...]
    least: float = 0
    most: float = LARGEST
    pattern: str = ".*"

    def holds(self, value: Any) -> bool:
        """Whether a value has this type and range."""
        if value is None:
            return None in self.types
        if type(value) not in self.types:
            return False
        if not isinstance(value, str):
            return bool(self.least <= value <= self.most)
        is_long_enough = self.least <= len(value) <= self.most
        return is_long_enough and re.fullmatch(self.pattern, value) is not None

    def or_null(self) -> Field:
        """The field that may also be null."""
        return self._replace(types=(*self.types, None))


Table = Any  # a Field, or a list or dict of tables

TEXT = Field("a text without control characters", (str,), 0, LONGEST, f"[^{_UNSEEN}]*")
LINE = Field("a line of up to 1,000 characters", (str,), 0, 1000, rf"[^\t\n{_UNSEEN}]*")
HASH = Field("a SHA-256", (str,), pattern="[0-9a-f]{64}")
COUNT = Field(f"a whole number up to {LARGEST:.0e}", (int,))
AMOUNT = Field(f"a number from 0 to {LARGEST:.0e}", (int, float))
FLAG = Field("true or false", (bool,))
_DAYS = r"(0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|[12]\d)"
_DATE = rf"(19|20)\d\d-({_DAYS})T([01]\d|2[0-3])(:[0-5]\d){{2}}Z"
DATE = Field("a date like 2026-01-31T23:59:59Z", (str,), pattern=_DATE)
_KINDS = {
    "": TEXT,
    "text": TEXT,
    "line": LINE,
    "hash": HASH,
    "date": DATE,
    "count": COUNT,
    "amount": AMOUNT,
    "flag": FLAG,
}


def columns(text: str) -> dict[str, Table]:
    """A table from words like "name:line seconds:amount? samples:text[] digests:hash{}".

    "amount?" may be null; "text[]" is a list of texts, "hash{}" an object of hashes by name.
    """
    table = {}
    for word in text.split():
        name, _, kind = word.partition(":")
        table[name] = _table(kind)
    return table


def _table(kind: str) -> Table:
    inner, suffix = kind[:-2], kind[-2:]
    if suffix == "[]":
        return [_table(inner)]
    if suffix == "{}":
        return {"*": _table(inner)}
    if kind.endswith("?"):
        return _KINDS[kind[:-1]].or_null()
    return _KINDS[kind]


def fault(value: Any, table: Table, at: str) -> str:
    """What is wrong with a value of JSON, in printable words, or ""; `at` is its place."""
    return printable(next(_faults(value, table, at), ""), 300)


def _faults(value: Any, table: Table, at: str) -> Iterator[str]:
    if isinstance(table, Field):
        if not table.holds(value):
            yield f"{at} is {printable(repr(value), 60)}, not {table.words}"
    elif not isinstance(value, type(table)):
        kind = "list" if isinstance(table, list) else "object"
        yield f"{at} is no {kind}"
    elif isinstance(table, list):
        for number, inner in enumerate(value):
            yield from _faults(inner, table[0], f"{at}[{number}]")
    else:
        yield from _faults_of_object(value, table, at)


def _faults_of_object(value: Mapping[str, Any], table: Table, at: str) -> Iterator[str]:
    expected = {}
    for name, inner in table.items():
        if name[-1] not in "?*" and name not in value:
            yield f"{at} lacks {name}"
        expected[name.removesuffix("?")] = inner
    for name, inner in value.items():
        yield from _faults(name, LINE, f"a name in {at}")
        inner_table = expected.get(name) or expected.get("*")
        if inner_table is None:
            yield f"{at} has an unknown field: {name}"
        yield from _faults(inner, inner_table, f"{at}.{name}")


def rows(path: Path, table: Mapping[str, Field], hint: str = "") -> list[dict[str, Any]]:
    """The rows of a CSV file with exactly these columns.

    Raises GccostError, with the file and the line, if it is missing, damaged or does not fit.
    """
    typed_rows = []
    known = {name.removesuffix("?"): field for name, field in table.items()}
    fitting: dict[tuple[str, str], Any] = {}  # values by column and text; most recur
    with reading(path, hint):
        for line, texts in enumerate(read_table(path, hint), 2):
            new = [item for item in texts.items() if item not in fitting]
            for name, text in new:
                fitting[name, text] = _value(text, known.get(name, TEXT))
            row = {name: fitting[name, text] for name, text in texts.items()}
            is_first = line == 2
            unknown = row if is_first else {name: row[name] for name, _ in new}
            if fault(unknown, {**table} if is_first else _optional(table), "the row"):
                raise ValueError(fault(row, {**table}, f"line {line}"))
            typed_rows.append(row)
    return typed_rows


def _optional(table: Mapping[str, Field]) -> dict[str, Table]:
    """A table whose columns may be absent."""
    return {f"{name.removesuffix('?')}?" if name != "*" else name: table[name] for name in table}


def _value(text: str, field: Field) -> Any:
    """The value of a field of a CSV file; the text itself if it is none."""
    if str in field.types:
        return text
    try:
        value = json.loads(text.lower() or "null")
    except ValueError:
        return text
    if float in field.types and value is not None:
        return float(value)
    return value


def escaped(text: str) -> str:
    """A text whose unseen characters are escaped."""
    return UNSEEN.sub(lambda unseen: ascii(unseen[0])[1:-1], text)


def printable(text: str, size: int) -> str:
    """The beginning of a text in one line, with unprintable characters escaped."""
    words = text[: 3 * size].split()
    line = " ".join(words)[:size]
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
