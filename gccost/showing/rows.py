"""The rows of a frame of figures in words: what tells them apart, and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from gccost.costs.costs import COSTS
from gccost.judging import rounding
from gccost.showing import quoting

_FIGURES = [*COSTS, "label", "says"]  # columns that are no keys
_ENDS = ["value", "low", "high"]


def keys_of(frame: pd.DataFrame) -> list[str]:
    """The columns that tell a frame's rows apart."""
    return [str(column) for column in frame if tells_apart(frame[column])]


def tells_apart(column: pd.Series) -> bool:
    """Whether a chart's rows differ in a column, which is a key and no figure."""
    name = str(column.name)
    if name in _FIGURES or name.endswith(("_low", "_high")):
        return False
    if column.nunique(dropna=False) < 2:
        return False
    if not pd.api.types.is_float_dtype(column):
        return True
    return bool((column % 1 == 0).all())


def words(row: Mapping[Any, Any], keys: Sequence[str]) -> list[str]:
    """A row's keys in words."""
    named: list[str] = []
    parts: set[str] = set()  # a column such as "Go 1.20, busy" has the words of two others
    for key in keys:
        value = row[key]
        if isinstance(value, bool) or pd.isna(value):
            continue
        if isinstance(value, int | float):
            named.append(f"{key} {value:,.0f}")
            parts.add(f"{value:.0f}")
        else:
            text = " ".join(str(value).split())  # a label may have line breaks
            named.append(text)
            parts.update(text.split(", ") if ", " in text else ())
    return [each for each in dict.fromkeys(named) if each not in parts]


def with_intervals(costs: pd.DataFrame) -> list[str]:
    """Each row in words: its keys, and its value with its interval."""
    keys = keys_of(costs)
    says = []
    for row in costs.to_dict("records"):
        named = ", ".join(words(row, keys))
        figure = {name: row[name] for name in _ENDS}
        says.append(f"{named}: {quoting.number(figure)}")
    return says


def with_value(row: Mapping[Any, Any], keys: Sequence[str]) -> str:
    """A row in words: its keys and its value."""
    named = ", ".join(words(row, keys))
    value = rounding.plain(float(row["value"]))
    return f"{named}: {value}" if named else value
