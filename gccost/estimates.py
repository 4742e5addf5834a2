"""Estimates and their intervals, as data; `gccost.stats` computes them.

This module imports nothing but the standard library, because the runner of a pack needs it
on machines without any package (see `gccost.measuring.packed`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isnan, sqrt

LOOKS = (3, 4, 6, 8, 10, 14, 20, 28, 40)  # the numbers of rounds at which a verdict is computed


# The confidence of the intervals that pages show, and of those that decide a verdict.
SHOWN, JUDGED = 0.95, 0.99


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, and the numbers of its samples and rounds.

    One process does not show how much processes differ, so its interval is infinite unless its
    kind of loop shows it. Without a process the value is NaN too. `lasting` is the part of the
    interval's variance that more rounds of the same sittings do not reduce.
    """

    value: float
    low: float
    high: float
    samples: int
    rounds: int
    confidence: float
    parts: tuple[Estimate, ...] = ()  # of which it consists, for the rules that need them
    lasting: float = 0.0

    @property
    def has_interval(self) -> bool:
        """Whether an interval is shown; a count of events is exact."""
        return self.confidence < 1

    @property
    def shown(self) -> tuple[float, ...]:
        """The values to print."""
        return (self.value,)

    @property
    def half_width(self) -> float:
        """Half the interval's length relative to the value; 0.02 is ±2 %.

        Infinite without a value or a finite interval, or if the value is zero and the
        interval is not.
        """
        if self.low == self.high:
            return 0.0
        if not self.value or isnan(self.value):
            return inf
        return (self.high - self.low) / abs(2 * self.value)

    def contains(self, x: float) -> bool:
        """Whether x is in the interval, including its ends."""
        return self.low <= x <= self.high

    def after(self, rounds: int, more: int) -> Estimate:
        """The estimate if it had `more` rounds instead of `rounds`, and stayed the same."""
        share = sqrt(self.lasting + (1 - self.lasting) * rounds / more)
        if self.low > 0:
            low, high = (self.value * (end / self.value) ** share for end in (self.low, self.high))
        else:
            low, high = (self.value + (end - self.value) * share for end in (self.low, self.high))
        parts = tuple(part.after(rounds, more) for part in self.parts)
        return replace(self, low=low, high=high, parts=parts)
