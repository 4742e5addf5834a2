"""The precision of the measuring: X9, and the methods that ours is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special
from scipy import stats as scipy_stats

from gccost import stats
from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Agreement
from gccost.judging.claims.rules import Agrees, AtMost
from gccost.measuring.experiments.base import Arm, Quantity, Ratio
from gccost.measuring.experiments.precision import (
    BASELINE,
    COSTLY,
    COUNT,
    MEASUREMENTS,
    OURS,
    measured_by,
)
from gccost.measuring.toolchains import TODAY_GO
from gccost.stats import SHOWN, Estimate, Width


@dataclass(frozen=True)
class _OtherMethod(Quantity):
    """A ratio that is estimated by another method than ours."""

    ratio: Ratio
    at_once: ClassVar[bool] = True

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.ratio.arms


class PairedMeans(_OtherMethod):
    """A ratio as this package estimated it before: the median of the rounds' ratios of means."""

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        """The ratio, with Student's interval over the rounds."""
        over, under = (
            data.samples(arm, release)[self.ratio.metric].groupby(level=0).median()
            for arm in self.arms
        )
        logs = np.log((over / under).dropna().to_numpy(dtype=float))
        if len(logs) < 2:
            return stats.amount([])
        value, spread = float(np.median(logs)), float(logs.std(ddof=1))
        t = float(special.stdtrit(len(logs) - 1, (1 + width.confidence) / 2))
        return _on_log_scale(value, t * spread / len(logs) ** 0.5, len(logs), width)


class MedianRatio(_OtherMethod):
    """A ratio of two medians, each with the interval that benchstat gives: by order statistics."""

    def estimate(self, data: Any, release: str, width: Width = SHOWN) -> Estimate:
        """The ratio; the two intervals are combined as independent errors."""
        sides = [
            np.sort(np.log(data.samples(arm, release)[self.ratio.metric].dropna().to_numpy()))
            for arm in self.arms
        ]
        n = min(map(len, sides))
        if n < 6:  # with fewer no interval of order statistics is as sure as 95 %
            return stats.amount([])
        halves = []
        for logs in sides:
            rank = int(scipy_stats.binom.ppf((1 - width.confidence) / 2, len(logs), 0.5))
            halves.append((logs[len(logs) - rank] - logs[rank - 1]) / 2)
        value = float(np.median(sides[0]) - np.median(sides[1]))
        return _on_log_scale(value, float(np.hypot(*halves)), n, width)


def _on_log_scale(value: float, half: float, n: int, width: Width) -> Estimate:
    middle, low, high = (float(end) for end in np.exp([value, value - half, value + half]))
    return Estimate(middle, low, high, n, n, width.confidence)


METHODS: dict[str, tuple[str, Callable[[Ratio], Quantity]]] = {
    "the undisturbed cost": (OURS, lambda ratio: ratio),
    "paired rounds of means": (OURS, PairedMeans),
    "go test -count=10, benchstat": (COUNT, MedianRatio),
}


def measurements(method: str, load: str) -> tuple[Quantity, ...]:
    """The independent measurements of L1's ratio by one of METHODS."""
    samples, quantity = METHODS[method]
    return tuple(
        quantity(
            Ratio(
                measured_by(COSTLY, samples, load, number),
                measured_by(BASELINE, samples, load, number),
            )
        )
        for number in MEASUREMENTS
    )


def agreement(load: str) -> Agreement:
    """Whether our measurements agree within their intervals, and go test -count's do not."""
    ours, _, count = (measurements(method, load) for method in METHODS)
    return Agreement(ours, count)


CLAIMS: tuple[Claim, ...] = tuple(
    Claim(name, "precision", "the-same-again", quantity, rule, (TODAY_GO,))
    for name, quantity, rule in (
        ("X9a", agreement("quiet"), Agrees()),
        ("X9b", agreement("quiet"), AtMost(margin=1.0)),
        ("X9c", agreement("busy"), Agrees()),
    )
)
