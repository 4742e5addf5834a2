"""Progress of a measurement, as a bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from gccost.progress import MEASURING, Progress

_FORMAT = "{desc}: {percentage:3.0f} %|{bar}| "
_MEASURED = _FORMAT + "{n_fmt} of about {total_fmt} {unit}{postfix}"
_COUNTED = _FORMAT + "{n_fmt} of {total_fmt} {unit}, {remaining} left{postfix}"


@contextmanager
def bar(name: str) -> Iterator[Progress]:
    """A bar, which appears with the first task; one of another unit takes its place.

    It is text, because a restarted kernel draws no widgets while it is busy.
    """
    drawn: tqdm[Any] | None = None

    def progress(done: float, total: float, doing: str, unit: str = MEASURING) -> None:
        nonlocal drawn
        whole = round(max(total, done))
        if drawn is None or drawn.unit != unit:
            if drawn is not None:
                drawn.leave = False
                drawn.close()
            layout = _MEASURED if unit == MEASURING else _COUNTED
            drawn = tqdm(desc=name, total=whole, unit=unit, bar_format=layout, postfix=doing)
        drawn.total, drawn.n = whole, round(done)
        drawn.set_postfix_str(doing)

    try:
        yield progress
    finally:
        if drawn is not None:
            drawn.close()
