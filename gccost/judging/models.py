"""The time of a call that walks a list, by the number of records in the list."""

from __future__ import annotations

import math
import re

import pandas as pd
import scipy  # its parts are loaded when they are used

_AT = re.compile(r"at_([0-9_]+)_records_ns")


def walked(sample: pd.Series) -> tuple[list[float], list[float]]:
    """The numbers of records in a sample's lists, sorted, and the time of a call (ns) for each."""
    points = sorted(
        (float(match[1].replace("_", ".")), float(ns))
        for metric, ns in sample.items()
        if (match := _AT.fullmatch(str(metric))) and math.isfinite(ns)
    )
    return [records for records, _ in points], [ns for _, ns in points]


def slope(sample: pd.Series) -> float:
    """The time (ns) that a record adds to a sample's call; NaN without two lengths of the list."""
    records, ns = walked(sample)
    return float(scipy.stats.linregress(records, ns).slope) if len(records) > 1 else math.nan
