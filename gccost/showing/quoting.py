"""Figures as text, and sentences that need them.

One rule says how a figure is quoted (`quoted`): with its interval; by its interval alone, if that
spans more than a factor of 4; or with the number of its processes, if these are too few for an
interval. The text of a recorded run's figure says that it is recorded. If no run has a figure, a
sentence or title that needs it is left out.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd

from gccost.costs.costs import FEWEST, RECORDED, is_sharp
from gccost.judging import rounding
from gccost.showing.tables import Prose
from gccost.stats import Estimate

# A dash that sentences are searched for: a reader sees no difference from any other.
MISSING = "–\N{WORD JOINER}"


def figure_of(row: Any) -> str:
    """A row's value for a label: three digits, and whether it is recorded."""
    value = float(row["value"])
    if math.isnan(value):
        return "not measured"
    return marked(rounding.plain(value), row)


def marked(text: str, row: Any) -> str:
    """A text that says so if its row is the recorded run's."""
    if row.get("source", "") != RECORDED:
        return text
    return f"{text[:-1]}; {RECORDED})" if text.endswith(")") else f"{text} ({RECORDED})"


def quoted(estimate: Estimate, unit: str, *, signed: bool = False) -> str:
    """An estimate as a sentence or title quotes it: what is known, and no more.

    "15.5× (15.0 to 16.1)"; "between 1.30 and 7.70×", if the interval spans more than a factor of 4;
    "5.06× (2 processes)", if there are too few for an interval.
    """
    if math.isnan(estimate.value):
        return MISSING
    low, high = estimate.low, estimate.high
    if math.isnan(low) or math.isinf(high):
        count = "1 process" if estimate.n == 1 else f"{estimate.n} processes"
        return f"{rounding.value(estimate.value, unit)} ({count})"
    if is_sharp({"value": estimate.value, "low": low, "high": high, "n": FEWEST}, signed=signed):
        return rounding.interval(estimate, unit)
    return f"between {rounding.bare(low, unit)} and {rounding.value(high, unit)}"


def _text(row: Any, unit: str, scale: float, name: str = "value", *, interval: bool = True) -> str:
    """A row's figure, of this name if it has one, as `quoted`; or as a label, without an interval.

    The figure is multiplied by `scale`.
    """
    if isinstance(row, pd.DataFrame):
        row = row.iloc[0] if len(row) == 1 else {}
    columns = [name, f"{name}_low", f"{name}_high"]
    if columns[1] not in row:
        columns = ["value", "low", "high"]
    value, low, high = (float(row.get(column, math.nan)) * scale for column in columns)
    if not interval:
        text = MISSING if math.isnan(value) else rounding.value(value, unit)
        return marked(text, row)
    n = row.get("n", FEWEST)  # of a frame that was computed from others
    estimate = Estimate(value, low, high, 0 if pd.isna(n) else int(n), 2, 0.95)
    return marked(quoted(estimate, unit, signed=columns[0] == "more"), row)


def times(row: Any, scale: float = 1.0, *, interval: bool = True) -> str:
    """A ratio with its interval, as text: "15.5× (15.0 to 16.1)"; takes a row of `compare`.

    Without its interval it is a label: "15.5×". So are `ns`, `percent` and `number`.
    """
    return _text(row, "ratio", scale, "ratio", interval=interval)


def ns(row: Any, scale: float = 1.0, *, interval: bool = True) -> str:
    """A time with its interval: "51.2 ns (49.9 to 52.6)"; takes a row of `costs` or `compare`."""
    return _text(row, "ns", scale, "more", interval=interval)


def percent(row: Any, scale: float = 1.0, *, interval: bool = True) -> str:
    """A share in percent with its interval: "18.1 % (10.9 to 26.7)"; takes a row of `shares`.

    It also takes a row of `compare` or of a share between 0 and 1, with a scale of 100.
    """
    return _text(row, "percent", scale, "ratio", interval=interval)


def number(row: Any, scale: float = 1.0, *, interval: bool = True) -> str:
    """A count or another number with its interval; takes a row of `costs` or `compare`."""
    return _text(row, "number", scale, "more", interval=interval)


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

    It lacks a figure that no run has measured, or that is not a number.

        gccost.prose(f"A finalizer costs {gccost.times(gap.loc[study.today])} a manual free.")
    """
    return Prose(whole(text))
