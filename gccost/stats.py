"""Estimates and intervals for the campaign, the claims and the charts.

**The cost of a case** in a sitting is the lower quartile of what its processes print, such as
ns/op: other programs on the machine only slow a loop down. It is that of one value per round,
which is the lower quartile of the round's processes. A rate is read as a time per operation.
Memory and counts are medians. `gccost.costs.kinds` has this in pandas.

**The sitting is the unit of error.** A sitting is one call of `make report`. A ratio is computed in
each sitting that has both sides in `FEWEST` rounds, and the sittings' logs are averaged. Its error
has two parts:

- within a sitting, the scatter of processes, from the lower half, pooled over the run's cases of
  a kind of loop;
- between sittings, the spread of this very ratio. A run with one or two sittings takes that of the
  recorded sittings. From three sittings on, or if the ratio was never recorded, it is that of its
  own sittings, shrunk to the recorded one, or else to the run-to-run spreads of its kinds, with
  `WEIGHT` degrees of freedom.

The half-width is Student's t, with the degrees of freedom of the spread between sittings: `WEIGHT`
more than those of its own sittings where it is shrunk. Any function of costs is treated like a
ratio (`propagate`): differences and shares on the linear scale, everything else on the log scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import exp, fsum, inf, isfinite, isnan, log, nan, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

SHOWN, JUDGED = 0.95, 0.99  # confidence: of the intervals on pages, and of those that decide
MARGIN = 1.05  # the factor by which an interval must clear a bound
FEWEST = 3  # rounds of a sitting that counts, and sittings that show a spread
WEIGHT = 4  # degrees of freedom of the prior of a run-to-run spread
# The variances of a lower quartile and of a median of normal errors over that of a mean.
QUARTILE, MEDIAN = 1.857, pi / 2
_STEP = 1e-4  # relative, for the slopes of the delta method
_LARGEST = 700.0  # exp(700) is near the largest float


class Sitting(NamedTuple):
    """The value of a sitting, its standard error within the sitting, and its rounds."""

    value: float
    error: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A value in each sitting, by the sitting's number.

    `spread` is the standard deviation between sittings that the kinds of its loops show, in the
    unit of the value; NaN if nothing shows it. `n` is the number of processes, `costs` the number
    of costs that it is computed from. `controls` has the ratio of each A/A control to its case.
    `recorded` is the recorded run's figure of the same thing.
    """

    sittings: Mapping[float, Sitting] = field(default_factory=dict)
    spread: float = nan
    n: int = 0
    costs: int = 1
    controls: Mapping[str, Figure] = field(default_factory=dict)
    recorded: Figure | None = None

    def __repr__(self) -> str:
        return "…"

    @property
    def counted(self) -> list[Sitting]:
        """The sittings with enough rounds, or all if none has enough, by number."""
        every = [self.sittings[number] for number in sorted(self.sittings)]
        return [each for each in every if each.rounds >= FEWEST] or every

    @property
    def rounds(self) -> int:
        """The number of its rounds."""
        return sum(each.rounds for each in self.counted)


def propagate(function: Callable[..., float], figures: Sequence[Figure]) -> Figure:
    """The figure function(value, …), in each sitting that all figures have, by the delta method.

    The recorded one is that of the recorded figures, if all have one.
    """
    common = set.intersection(*(set(figure.sittings) for figure in figures))
    made, spreads = {}, []
    for number in sorted(common):
        parts = [figure.sittings[number] for figure in figures]
        values = [each.value for each in parts]
        with suppress(ZeroDivisionError):  # a ratio to nothing has no value
            slopes = [_slope(function, values, at) for at in range(len(values))]
            moving = [(by, at) for at, by in enumerate(slopes) if by]
            error = sqrt(fsum((by * parts[at].error) ** 2 for by, at in moving))
            made[number] = Sitting(function(*values), error, min(each.rounds for each in parts))
            spreads.append(fsum((by * figures[at].spread) ** 2 for by, at in moving))
    if any(isnan(each.value) for each in made.values()):
        made = {}
    spread = sqrt(fsum(spreads) / len(spreads)) if spreads else nan
    controls = {name: each for figure in figures for name, each in figure.controls.items()}
    n, costs = min(figure.n for figure in figures), sum(figure.costs for figure in figures)
    known = [figure.recorded for figure in figures if figure.recorded is not None]
    recorded = propagate(function, known) if len(known) == len(figures) else None
    return Figure(made, spread, n, costs, controls, recorded)


def _slope(function: Callable[..., float], values: list[float], at: int) -> float:
    step = _STEP * (abs(values[at]) or 1.0)
    high, low = (function(*values[:at], values[at] + by, *values[at + 1 :]) for by in (step, -step))
    return (high - low) / (2 * step)


# --- Intervals ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, and the numbers of its processes and rounds.

    Without a process the value is NaN; without a sitting that counts the interval is infinite.
    `lasting` is the part of the interval's variance that more rounds of the same sittings do not
    reduce.
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


def between(figure: Figure, *, signed: bool = False) -> tuple[float, int]:
    """The variance between a figure's sittings beyond their own errors, and their number."""
    if len(figure.counted) < 2:
        return 0.0, len(figure.counted)
    values, errors, _ = scaled(figure, signed)
    return max(float(values.var(ddof=1)) - float((errors**2).mean()), 0.0), len(values)


def scaled(figure: Figure, signed: bool) -> tuple[Floats, Floats, float]:
    """The values of the sittings that count, their errors and the kinds' spread: logs or not."""
    values = np.array([each.value for each in figure.counted])
    errors = np.array([each.error for each in figure.counted])
    if signed:
        return values, errors, figure.spread
    return np.log(values), errors / values, figure.spread / exp(float(np.log(values).mean()))


def estimate(figure: Figure, confidence: float = SHOWN, *, signed: bool = False) -> Estimate:
    """A figure with its interval.

    It is symmetric on the log scale, or on the linear scale for a value that may be zero or
    negative (`signed`). A ratio's is at least as wide as those of its A/A controls.
    """
    if not figure.n or not _has_values(figure, signed):
        return nothing(confidence)
    values, errors, kinds = scaled(figure, signed)
    centre, k = float(values.mean()), len(values)
    value = centre if signed else exp(centre)
    whole = Estimate(value, -inf, inf, figure.n, figure.rounds, confidence)
    is_enough = any(each.rounds >= FEWEST for each in figure.counted)
    if not is_enough or not np.isfinite(errors).all():
        return whole
    spread, freedom = prior(figure.recorded, kinds, signed)
    if k >= FEWEST or not freedom:
        own, _ = between(figure, signed=signed)
        freedom = k - 1 + WEIGHT
        spread = ((k - 1) * own + WEIGHT * spread) / freedom
    within = float((errors**2).mean())
    half = float(t(freedom, confidence)) * sqrt((spread + within) / k)
    lasting = spread / (spread + within) if spread + within else 0.0
    if signed:
        return replace(whole, low=value - half, high=value + half, lasting=lasting)
    half = max(half, _of_controls(figure, confidence))
    factor = exp(half) if half < _LARGEST else inf
    return replace(whole, low=value / factor, high=value * factor, lasting=lasting)


def _has_values(figure: Figure, signed: bool) -> bool:
    """Whether a figure has a value in a sitting, and in each one that its scale can have."""
    values = [each.value for each in figure.sittings.values()]
    return bool(values) and all(isfinite(value) and (signed or value > 0) for value in values)


def _of_controls(figure: Figure, confidence: float) -> float:
    """Half the widest interval of a ratio's A/A controls, in logs; 0 without any."""
    controls = figure.controls.values() if figure.costs > 1 else ()
    made = [estimate(control, confidence) for control in controls]
    return max((log(each.high / each.value) for each in made if isfinite(each.high)), default=0.0)


def prior(recorded: Figure | None, kinds: float, signed: bool) -> tuple[float, int]:
    """The variance between sittings that the recorded ones show, and its degrees of freedom.

    Without recorded ones it is that of the kinds of loop, and 0.
    """
    if recorded and len(recorded.counted) >= FEWEST and _has_values(recorded, signed):
        own, k = between(recorded, signed=signed)
        return own, k - 1
    return kinds**2 if isfinite(kinds) else 0.0, 0


def t(freedom: float | Floats, confidence: float) -> Floats:
    """Student's t for a two-sided interval."""
    return np.asarray(special.stdtrit(freedom, (1 + confidence) / 2))
