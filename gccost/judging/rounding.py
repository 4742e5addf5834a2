"""Rounding of numbers before they are printed, plotted or written.

The measurements support three significant digits. Charts round values before drawing them,
so that they have the same bytes on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gccost.stats import Estimate

PRINTED = 3  # significant digits in prose and tables
WRITTEN = 6  # significant digits in charts and CSV files


def rounded(x: float, digits: int = WRITTEN) -> float:
    """x rounded to `digits` significant digits; NaN and infinities are unchanged."""
    if not math.isfinite(x) or x == 0:
        return x
    return float(f"{x:.{digits - 1}e}")


def plain(x: float) -> str:
    """x for reading: "1,150", "60.6", "0.0121"; "–" for NaN."""
    if math.isnan(x):
        return "–"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    x = rounded(x, PRINTED)
    if x == 0:
        return "0"
    decimals = max(0, PRINTED - 1 - math.floor(math.log10(abs(x))))
    return f"{x:,.{decimals}f}".replace("-", "−")


def written(x: float) -> str:
    """x for a CSV file: the shortest form of six significant digits; empty if not finite."""
    return repr(rounded(x)).removesuffix(".0") if math.isfinite(x) else ""


def times(x: float) -> str:
    """A ratio: "18.4×"."""
    return value(x, "ratio")


def percent(x: float) -> str:
    """A share (0 to 1) as "70.2 %"."""
    return value(x, "share")


WHOLE: Mapping[str, tuple[str, str]] = {
    "allocations": (" more", " more"),  # per operation, than another variant
    "registrations": (" more", " more"),  # per object, than another variant
    "cycles": (" cycle", " cycles"),
    "blocks": (" block", " blocks"),
    "sizes": (" size", " sizes"),
}
"""What follows one, and any other number, of units that are usually whole."""
_UNITS: Mapping[str, str] = {
    "ratio": "×",
    "share": " %",
    "percent": " %",
    "ns": " ns",
    "number": "",
    "frequency": "/s",
}


def bare(x: float, unit: str) -> str:
    """A number without its unit: a share in percent, and no decimals of what is whole."""
    if unit in WHOLE and float(x).is_integer():
        return f"{x:,.0f}"
    return plain(100 * x if unit == "share" else x)


def value(x: float, unit: str) -> str:
    """A number with its unit: "2 cycles", "1 cycle", "70.2 %"; a count has no decimals."""
    if unit == "number" and float(x).is_integer():
        return f"{x:,.0f}"
    return bare(x, unit) + (WHOLE[unit][x != 1] if unit in WHOLE else _UNITS[unit])


def ends(estimate: Estimate, unit: str) -> str:
    """An interval's ends: "18.1 to 18.8"; empty without one, or if all three read the same."""
    low, high = estimate.low, estimate.high
    if estimate.n and math.isinf(low) and math.isinf(high):
        return "no interval yet"
    if not estimate.has_interval or plain(low) == plain(estimate.value) == plain(high):
        return ""
    return f"{bare(low, unit)} to {bare(high, unit)}"


def interval(estimate: Estimate, unit: str) -> str:
    """An estimate with its interval, if it has one: "18.4× (18.1 to 18.8)"."""
    between = ends(estimate, unit)
    if not between:
        return value(estimate.value, unit)
    shown = plain(estimate.value) if unit == "number" else value(estimate.value, unit)
    return f"{shown} ({between})"
