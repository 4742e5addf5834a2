"""Estimates and their intervals, as data; `gccost.stats` computes them.

This module imports nothing but the standard library, because the runner of a pack needs it
on machines without any package (see `gccost.measuring.packed`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isnan

LOOKS = (3, 4, 6, 8, 10, 14, 20, 28, 40)  # the numbers of rounds at which a verdict is computed
SYSTEMATIC = 0.03
# By which an interval of a disturbed machine is widened at either end: three times what busy
# machines have done to ratios of a loop with a garbage collector to a floor, 6 to 8 %.
DISTURBED = 1.25


@dataclass(frozen=True, slots=True)
class Width:
    """An interval's confidence, and the systematic error added to it."""

    confidence: float = 0.95
    systematic: float = SYSTEMATIC


SHOWN = Width()
JUDGED = Width(0.99, 0.0)  # the rules' margin covers the systematic error


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, and the numbers of its samples and rounds.

    One round does not show how much rounds differ, so its interval is infinite. Without
    rounds the value is NaN too.
    """

    value: float
    low: float
    high: float
    samples: int
    rounds: int
    confidence: float
    parts: tuple[Estimate, ...] = ()  # of which it consists, for the rules that need them

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

    def widened(self, factor: float) -> Estimate:
        """The estimate with each end of its interval moved out by a factor of the value."""
        if self.low > 0:
            low, high = self.low / factor, self.high * factor
        else:
            more = abs(self.value) * (factor - 1)
            low, high = self.low - more, self.high + more
        parts = tuple(part.widened(factor) for part in self.parts)
        return replace(self, low=low, high=high, parts=parts)

    def narrowed(self, share: float) -> Estimate:
        """The estimate with its interval scaled by `share`, on the log scale if positive."""
        if self.low > 0:
            low, high = (self.value * (end / self.value) ** share for end in (self.low, self.high))
        else:
            low, high = (self.value + (end - self.value) * share for end in (self.low, self.high))
        parts = tuple(part.narrowed(share) for part in self.parts)
        return replace(self, low=low, high=high, parts=parts)
