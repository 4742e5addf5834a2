"""Rounding of numbers before they are printed, plotted or written.

The measurements support three significant digits. Charts round values before drawing them,
so that they have the same bytes on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

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
    return plain(x) + "×"


def percent(x: float) -> str:
    """A share (0 to 1) as "70.2 %"."""
    return plain(100 * x) + " %"


def nanoseconds(x: float) -> str:
    """A duration in ns: "1,150 ns"."""
    return plain(x) + " ns"


def duration(x: float) -> str:
    """A duration in ns, in a suitable unit: "850 ns", "8.45 µs", "18.5 ms"."""
    for size, unit in ((1e6, "ms"), (1e3, "µs")):
        if x >= size:
            return f"{plain(x / size)} {unit}"
    return nanoseconds(x)


def count(x: float) -> str:
    """A whole number: "1,600,000"."""
    return "–" if math.isnan(x) else f"{x:,.0f}"


def whole(x: float) -> str:
    """A number that is usually whole, without decimals if it is: "2", "1.33"."""
    return count(x) if float(x).is_integer() else plain(x)


def blocks(x: float) -> str:
    """C blocks: "64 blocks"."""
    return whole(x) + " blocks"


def sizes(x: float) -> str:
    """A number of sizes: "5 sizes"."""
    return whole(x) + (" size" if x == 1 else " sizes")


WHOLE: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        "allocations": lambda x: whole(x) + " more",  # per operation, than another variant
        "registrations": lambda x: whole(x) + " more",  # per object, than another variant
        "cycles": lambda x: whole(x) + (" cycle" if x == 1 else " cycles"),
        "blocks": blocks,
        "sizes": sizes,
    }
)
FORMATS: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        **WHOLE,
        "ratio": times,
        "share": percent,
        "percent": lambda x: plain(x) + " %",
        "ns": nanoseconds,
        "count": count,
        "number": plain,
        "frequency": lambda x: plain(x) + "/s",
        "MiB": lambda x: plain(x) + " MiB",
    }
)


def value(x: float, unit: str) -> str:
    """A number with its unit, one of FORMATS."""
    return FORMATS[unit](x)


def ends(estimate: Estimate, unit: str) -> str:
    """An interval's ends: "18.1 to 18.8"; empty without one, or if all three read the same."""
    low, high = estimate.low, estimate.high
    if not estimate.has_interval or plain(low) == plain(estimate.value) == plain(high):
        return ""
    scale = 100.0 if unit == "share" else 1.0
    end = whole if unit in WHOLE else plain
    return f"{end(scale * low)} to {end(scale * high)}"


def interval(estimate: Estimate, unit: str) -> str:
    """An estimate's values with its interval, if it has one: "18.4× (18.1 to 18.8)"."""
    values = " and ".join(value(x, unit) for x in estimate.shown)
    between = ends(estimate, unit)
    return f"{values} ({between})" if between else values
