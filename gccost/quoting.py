"""Figures as text, for a sentence or a title; one that was not measured well is not quoted."""

from __future__ import annotations

from typing import Any

import pandas as pd

from gccost import rounding
from gccost.showing import drawing
from gccost.stats import Estimate


def _text(row: Any, unit: str, columns: tuple[str, str, str]) -> str:
    """A row's figure with its interval; "not measured", or "too few samples"."""
    if isinstance(row, pd.DataFrame):
        row = row.iloc[0] if len(row) == 1 else {}
    if columns[0] not in row:
        columns = ("value", "low", "high")
    value, low, high = (row.get(name, float("nan")) for name in columns)
    if pd.isna(value):
        return "not measured"
    if columns[1] not in row:  # a bare value, computed from a figure that is quoted
        return rounding.duration(float(value)) if unit == "ns" else rounding.value(value, unit)
    known = {"value": value, "low": low, "high": high, "n": row.get("n", drawing.FEWEST)}
    if not drawing.quotable(known):
        return drawing.TOO_FEW
    e = Estimate(float(value), float(low), float(high), int(known["n"]), 2, 0.95)
    return rounding.interval(e, unit)


_RATIO = ("ratio", "ratio_low", "ratio_high")
_MORE = ("more", "more_low", "more_high")


def times(row: Any) -> str:
    """A ratio with its interval, as text: "15.5× (15.0 to 16.1)"; takes a row of `compare`."""
    return _text(row, "ratio", _RATIO)


def ns(row: Any) -> str:
    """A time with its interval: "51.2 ns (49.9 to 52.6)"; takes a row of `costs` or `compare`."""
    return _text(row, "ns", _MORE)


def percent(row: Any) -> str:
    """A share in percent with its interval: "18.1 % (10.9 to 26.7)"; takes a row of `shares`."""
    return _text(row, "percent", ("value", "low", "high"))


def number(row: Any) -> str:
    """A count or another number with its interval; takes a row of `costs` or `derive`."""
    return _text(row, "number", ("value", "low", "high"))
