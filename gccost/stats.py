"""An estimate with its interval, and what intervals are judged by.

`gccost.costs.method` defines how an interval is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan, nan

SHOWN, JUDGED = 0.95, 0.99  # confidence: of the intervals on pages, and of those that decide
MARGIN = 1.05  # the factor by which an interval must clear a bound
FEWEST = 3  # rounds of a sitting that counts, and sittings that show a spread


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, and the numbers of its processes and rounds.

    Without a process the value is NaN; without a sitting that counts the interval is infinite.
    `lasting` is the part of the interval's variance that the scatter of its own rounds does not
    explain, so that more rounds of the same sittings do not reduce it.
    """

    value: float
    low: float
    high: float
    n: int
    rounds: int
    confidence: float
    parts: tuple[Estimate, ...] = ()  # of which it consists, for the rules that need them
    lasting: float = 0.0

    @property
    def has_interval(self) -> bool:
        """Whether an interval is shown; a count of events is exact."""
        return self.confidence < 1

    @property
    def half_width(self) -> float:
        """Half the interval's length relative to the value; 0.02 is ±2 %. Infinite without one."""
        if self.low == self.high:
            return 0.0
        if not self.value or isnan(self.value):
            return inf
        return (self.high - self.low) / abs(2 * self.value)

    def contains(self, x: float) -> bool:
        """Whether x is in the interval, including its ends."""
        return self.low <= x <= self.high


def nothing(confidence: float = SHOWN) -> Estimate:
    """The estimate without any sample."""
    return Estimate(nan, -inf, inf, 0, 0, confidence)
