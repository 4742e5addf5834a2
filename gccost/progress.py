"""Progress of downloads, builds and measurements, for a log.

A terminal has a bar (`gccost.showing.progress`).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Protocol

Say = Callable[[str], None]  # told a line before each download

MEASURING = "s of measuring"  # the unit of a measurement's progress
LINE_SECONDS = 30  # between two lines in a log
TICK_SECONDS = 1.0  # between two calls while nothing is done


class Progress(Protocol):
    """Called with how much is done and how much there is, in a unit, and the present task."""

    def __call__(self, done: float, total: float, doing: str, unit: str = MEASURING) -> None: ...


def unwatched(done: float, total: float, doing: str, unit: str = MEASURING) -> None:
    """Show no progress."""


class PrintedProgress:
    """Print progress to stderr: a line at once, then one every 30 s, after a prefix.

    `clock` gives the time in seconds.
    """

    def __init__(self, prefix: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.prefix = prefix
        self.clock = clock
        self.printed = -math.inf
        self.unit = ""
        self.began = 0.0

    def __call__(self, done: float, total: float, doing: str, unit: str = MEASURING) -> None:
        now = self.clock()
        if unit != self.unit:
            self.unit = unit
            self.began = now
        if now - self.printed < LINE_SECONDS:
            return
        self.printed = now
        counted = f"{done:.0f} of {total:.0f} {unit}"
        if unit != MEASURING and done:
            left = (now - self.began) * (total - done) / done  # by the pace so far
            counted += f", about {left:.0f} s left"
        at = time.strftime("%H:%M:%S")
        print(f"{at} {self.prefix}{doing} ({counted})", file=sys.stderr, flush=True)


def until_done(tasks: Mapping[Future[Any], str], progress: Progress, doing: str, unit: str) -> None:
    """Wait for named tasks to end, and show how many have ended and the first that has not."""
    running = set(tasks)
    while running:
        ended = len(tasks) - len(running)
        first = next(task for task in tasks if task in running)
        progress(ended, len(tasks), f"{doing} {tasks[first]}", unit)
        _, running = wait(running, TICK_SECONDS, FIRST_COMPLETED)
    progress(len(tasks), len(tasks), doing, unit)
