"""Progress of a measurement, as a bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tqdm import tqdm

from gccost.measuring import campaign


@contextmanager
def bar(name: str) -> Iterator[campaign.Progress]:
    """A bar in seconds of measuring, which appears with the first task.

    It is text, because a restarted kernel draws no widgets while it is busy.
    """
    with ExitStack() as stack:
        drawn: tqdm[Any] | None = None

        def progress(done: float, total: float, doing: str) -> None:
            nonlocal drawn
            if drawn is None:
                drawn = tqdm(
                    desc=name,
                    bar_format="{desc}: {percentage:3.0f} %|{bar}| {elapsed} of about "
                    "{total} s of measuring{postfix}",
                )
                stack.callback(drawn.close)
            drawn.total, drawn.n = round(max(total, done)), round(done)
            drawn.set_postfix_str(doing)

        yield progress
