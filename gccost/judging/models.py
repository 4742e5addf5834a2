"""Models for measured curves: a straight line, and the number of objects in a span.

The runtime lists a span's objects that have a finalizer or a cleanup, so the cost of
registering an object may depend on the number of objects in the span.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd
import scipy  # its parts are loaded when they are used
from numpy.typing import ArrayLike

from gccost.errors import GccostError
from gccost.measuring.toolchains import number


@dataclass(frozen=True)
class Line:
    """A straight line fitted to points, and the share of their variance that it explains."""

    slope: float
    intercept: float
    r2: float

    def at(self, x: float) -> float:
        return self.intercept + self.slope * x


def line(x: ArrayLike, y: ArrayLike) -> Line:
    """Fit the least-squares line; all NaN unless there are two distinct values of x."""
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    known = np.isfinite(xs) & np.isfinite(ys)
    if len(set(xs[known])) < 2:
        return Line(math.nan, math.nan, math.nan)
    if not np.ptp(ys[known]):  # constant: there is no variance to explain
        return Line(0.0, float(ys[known][0]), 1.0)
    fit = scipy.stats.linregress(xs[known], ys[known])
    return Line(float(fit.slope), float(fit.intercept), float(fit.rvalue) ** 2)


_AT = re.compile(r"at-([0-9.]+)-records-ns")


def walked(sample: pd.Series) -> tuple[list[float], list[float]]:
    """The numbers of records in a sample's lists, sorted, and the time of a call (ns) for each."""
    found = sorted(
        (float(match[1]), float(ns))
        for metric, ns in sample.items()
        if (match := _AT.fullmatch(str(metric))) and math.isfinite(ns)
    )
    return [records for records, _ in found], [ns for _, ns in found]


def walk(sample: pd.Series) -> Line:
    """Fit a sample's time of a call (ns) to the number of records in its list."""
    return line(*walked(sample))


# The size classes up to 4,864 bytes and their spans, both in bytes, as the table of
# sizeclasses.go has them: the same in Go 1.20 (src/runtime) and Go 1.27
# (src/internal/runtime/gc).
PAGE = 8192
_CLASSES: tuple[int, ...] = (
    *(8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256),
    *(288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 704, 768, 896, 1024, 1152, 1280),
    *(1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864),
)
_LARGER_SPANS: Mapping[int, int] = MappingProxyType(
    {1408: 2 * PAGE, 1792: 2 * PAGE, 2304: 2 * PAGE, 3200: 2 * PAGE}
    | {3072: 3 * PAGE, 3456: 3 * PAGE, 4864: 3 * PAGE}
)
# From Go 1.22 on a span of objects of up to so many bytes contains their pointer bitmap
# (a bit per word: 1/64 of it). A larger object has a header instead.
_BITMAP, _BITMAP_UP_TO, _HEADER = PAGE // 64, 512, 8
# From Go 1.26 on spans of 16 to 512 byte objects also contain their mark bits.
_MARKS, _MARKS_FROM = 128, 16


def size_class(object_bytes: int, go: str) -> int:
    """The bytes that an object with pointers occupies in its span on a release."""
    header = number(go) >= number("1.22") and object_bytes > _BITMAP_UP_TO
    taken = object_bytes + (_HEADER if header else 0)
    if not 0 < taken <= _CLASSES[-1]:
        raise GccostError(
            f"the size class of {object_bytes} bytes is unknown",
            "gccost/judging/models.py",
            f"name a size of 1 to {_CLASSES[-1] - _HEADER} bytes",
        )
    return _CLASSES[bisect_left(_CLASSES, taken)]


def objects_in_span(object_bytes: int, go: str) -> int:
    """The number of objects of this size, with pointers, in a span on a release."""
    taken = size_class(object_bytes, go)
    span = _LARGER_SPANS.get(taken, PAGE)
    if number(go) >= number("1.22") and taken <= _BITMAP_UP_TO:
        span -= _BITMAP
        if number(go) >= number("1.26") and taken >= _MARKS_FROM:
            span -= _MARKS
    return span // taken
