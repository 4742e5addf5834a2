"""Figures as text, and sentences that need them.

A figure is quoted if it was measured by three processes or more, and its interval spans less than
a factor of 4. A frame holds the recorded run's figure in place of any other, and its text says so
(`gccost.costs.costs.better`). If no run has the figure, its text is a dash, and a sentence or
title that needs it is left out.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd

from gccost.costs.costs import FEWEST, RECORDED, is_quotable
from gccost.judging import rounding
from gccost.showing.tables import Prose
from gccost.stats import Estimate

# A dash that sentences are searched for: a reader sees no difference from any other.
MISSING = "–\N{WORD JOINER}"


def figure_of(row: Any) -> str:
    """A row's value for a label: three digits, or a dash."""
    known = {"low": math.nan, "high": math.nan, "n": FEWEST} | dict(row)
    return rounding.plain(float(row["value"])) if is_quotable(known) else MISSING


def _text(row: Any, unit: str, scale: float, name: str = "value") -> str:
    """A row's figure, of this name if it has one, with its interval; or a dash.

    The figure is multiplied by `scale`.
    """
    if isinstance(row, pd.DataFrame):
        row = row.iloc[0] if len(row) == 1 else {}
    columns = [name, f"{name}_low", f"{name}_high"]
    if columns[1] not in row:
        columns = ["value", "low", "high"]
    value, low, high = (float(row.get(column, math.nan)) * scale for column in columns)
    n = row.get("n", FEWEST)  # of a frame that was computed from others
    known = {"value": value, "low": low, "high": high, "n": n}
    if not is_quotable(known, signed=columns[0] == "more"):
        return MISSING
    text = rounding.interval(Estimate(value, low, high, int(n), 2, 0.95), unit)
    if row.get("source", "") != RECORDED:
        return text
    return f"{text[:-1]}; {RECORDED})" if text.endswith(")") else f"{text} ({RECORDED})"


def times(row: Any, scale: float = 1.0) -> str:
    """A ratio with its interval, as text: "15.5× (15.0 to 16.1)"; takes a row of `compare`."""
    return _text(row, "ratio", scale, "ratio")


def ns(row: Any, scale: float = 1.0) -> str:
    """A time with its interval: "51.2 ns (49.9 to 52.6)"; takes a row of `costs` or `compare`."""
    return _text(row, "ns", scale, "more")


def percent(row: Any, scale: float = 1.0) -> str:
    """A share in percent with its interval: "18.1 % (10.9 to 26.7)"; takes a row of `shares`.

    It also takes a row of `compare` or of a share between 0 and 1, with a scale of 100.
    """
    return _text(row, "percent", scale, "ratio")


def number(row: Any, scale: float = 1.0) -> str:
    """A count or another number with its interval; takes a row of `costs` or `compare`."""
    return _text(row, "number", scale, "more")


# What ends a sentence, or starts one; and what stands where a figure lacks.
_BETWEEN = re.compile(r"(\A\s*- |\s*\n- |\s*\n\n|(?<=[.?!])\s+|(?<=[.?!]\*\*)\s+)")
_HOLE = re.compile(rf"{MISSING}|<NA>|\bnan\b")


def whole(text: str) -> str:
    """Text without the sentences that lack a figure, and without the list items left empty."""
    parts = _BETWEEN.split(text)
    sentences, gaps = parts[::2], [*parts[1::2], ""]
    kept = "".join(
        "" if _HOLE.search(sentence) else sentence + gap
        for sentence, gap in zip(sentences, gaps, strict=True)
    )
    return re.sub(r"(?m)^- *(\n|\Z)", "", kept).strip()


def prose(text: str) -> Prose:
    """Sentences in Markdown, with figures. One that lacks a figure is left out.

    It lacks a figure that no run has measured well, or that is not a number.

        gccost.prose(f"A finalizer costs {gccost.times(gap.loc[study.today])} a manual free.")
    """
    return Prose(whole(text))
