"""Figures as text, and what stands in their place if they were not measured well.

There is one rule for labels, sentences and titles. A figure is quoted if it was measured by three
processes or more, and its interval spans less than a factor of 4. In place of any other stands
why it lacks; a sentence or a title with such a hole is replaced as a whole.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd

from gccost.judging import rounding
from gccost.showing.tables import Prose
from gccost.stats import Estimate

FEWEST, WIDEST = 3, 4.0  # processes, and high over low, of a figure that is quoted
NOT_MEASURED, TOO_FEW = "not measured", "too few samples"  # in place of any other


def lacking(row: Any) -> str:
    """Why a row's figure is not quoted: one of the two texts above, or empty if it is."""
    value, low, high, n = (row.get(name, math.nan) for name in ("value", "low", "high", "n"))
    if pd.isna(value):
        return NOT_MEASURED
    if n < FEWEST or pd.isna(low) or (low > 0 and high / low > WIDEST):
        return TOO_FEW
    return ""


def figure_of(row: Any) -> str:
    """A row's value for a label: three digits, or why it lacks."""
    return lacking(row) or rounding.plain(float(row["value"]))


def _text(row: Any, unit: str, scale: float, name: str = "value") -> str:
    """A row's figure, of this name if it has one, with its interval; or why it lacks.

    The figure is multiplied by `scale`.
    """
    if isinstance(row, pd.DataFrame):
        row = row.iloc[0] if len(row) == 1 else {}
    columns = [name, f"{name}_low", f"{name}_high"]
    if columns[1] not in row:
        columns = ["value", "low", "high"]
    value, low, high = (float(row.get(column, math.nan)) * scale for column in columns)
    n = row.get("n", FEWEST)  # of a frame that was computed from others
    if why := lacking({"value": value, "low": low, "high": high, "n": n}):
        return why
    return rounding.interval(Estimate(value, low, high, int(n), 2, 0.95), unit)


def times(row: Any, scale: float = 1.0) -> str:
    """A ratio with its interval, as text: "15.5× (15.0 to 16.1)"; takes a row of `compare`."""
    return _text(row, "ratio", scale, "ratio")


def ns(row: Any, scale: float = 1.0) -> str:
    """A time with its interval: "51.2 ns (49.9 to 52.6)"; takes a row of `costs` or `compare`."""
    return _text(row, "ns", scale, "more")


def percent(row: Any, scale: float = 1.0) -> str:
    """A share in percent with its interval: "18.1 % (10.9 to 26.7)"; takes a row of `shares`."""
    return _text(row, "percent", scale)


def number(row: Any, scale: float = 1.0) -> str:
    """A count or another number with its interval; takes a row of `costs` or `compare`."""
    return _text(row, "number", scale, "more")


# What ends a sentence, or starts one; and what stands where a figure lacks.
_BETWEEN = re.compile(r"(\A\s*- |\s*\n- |\s*\n\n|(?<=[.?!])\s+|(?<=[.?!]\*\*)\s+)")
_HOLE = re.compile(rf"(?:\*\*)?(?:{NOT_MEASURED}|{TOO_FEW}|<NA>|\bnan\b)(?:\*\*)?")


def whole(text: str) -> str:
    """Text with each sentence that lacks a figure replaced by one that says what it lacks."""
    return "".join(map(_replaced, _BETWEEN.split(text)))


def _replaced(sentence: str) -> str:
    with_gaps, holes = _HOLE.subn("…", sentence)
    why = NOT_MEASURED if NOT_MEASURED in sentence else TOO_FEW
    return f"{why.capitalize()}: “{with_gaps}”" if holes else sentence


def prose(text: str) -> Prose:
    """Sentences in Markdown, with figures. One that lacks a figure says so instead.

    It lacks a figure that is "not measured", "too few samples", or not a number.

        gccost.prose(f"A finalizer costs {gccost.times(gap.loc[study.today])} a manual free.")
    """
    return Prose(whole(text))
