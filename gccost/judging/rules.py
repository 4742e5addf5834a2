"""The rules by which an interval becomes a verdict.

A verdict answers one question: is what the claim says true here? The size of the effect
is shown next to it, with its interval, and is not judged. `data/published/README.md`
says which claim has which rule.

The 99 % interval must clear a bound by the factor `stats.MARGIN` where the quantity is a
cost, a ratio of costs or a share. So a truth that lies on a bound is decided wrongly fewer
than once in a hundred times, although a verdict is looked at up to eight times
(`stats.LOOKS`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any

from gccost import stats
from gccost.judging.quantities import (
    AgreementEstimate,
    CurveDepthEstimate,
    ExclusiveEventCount,
    RangeEstimate,
)
from gccost.stats import Estimate

SAME = 1.25  # two things within this factor cost the same
ABOUT = 1.5  # a share within this factor of the published one is about as large


class Label(Enum):
    """What can be said of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNMEASURED = "not measured"
    UNTESTABLE = "cannot be tested on this machine"

    @property
    def decided(self) -> bool:
        return self in (Label.HOLDS, Label.FAILS)


@dataclass(frozen=True)
class Verdict:
    """A label, with the reason in a few words."""

    label: Label
    reason: str = ""

    def __str__(self) -> str:
        return self.label.value


class Rule(ABC):
    """How an interval becomes a verdict, given the published figure."""

    def bounds(self, published: float) -> tuple[float, float]:
        """The region in which the claim holds; either end may be infinite."""
        return 1.0, math.inf

    @abstractmethod
    def judge(self, measured: Any, published: float) -> Verdict:
        """Judge the estimate of the rule's kind of quantity."""


@dataclass(frozen=True)
class Bounded(Rule):
    """A figure that must lie between the bounds that its published figure sets.

    `margin` is the factor by which the interval must clear a bound, for either decision; a
    figure whose noise is not in proportion to it, such as a count, needs none (1).
    """

    margin: float = stats.MARGIN

    @abstractmethod
    def bounds(self, published: float) -> tuple[float, float]: ...

    def judge(self, measured: Estimate, published: float) -> Verdict:
        low, high = self.bounds(published)
        if low * self.margin <= measured.low and measured.high <= high / self.margin:
            return Verdict(Label.HOLDS, f"the interval lies {_region(low, high)}")
        if measured.high < low / self.margin or measured.low > high * self.margin:
            return Verdict(Label.FAILS, f"the interval does not lie {_region(low, high)}")
        return Verdict(Label.UNDECIDED, "the interval is too wide or too near a bound to decide")


@dataclass(frozen=True)
class Between(Bounded):
    """A figure that was set with bounds on both sides."""

    low: float = -math.inf
    high: float = math.inf

    def bounds(self, published: float) -> tuple[float, float]:
        return self.low, self.high


def _region(low: float, high: float) -> str:
    if high == math.inf:
        return f"above {low:.3g}"
    if low == -math.inf:
        return f"below {high:.3g}"
    return f"between {low:.3g} and {high:.3g}"


class Effect(Bounded):
    """It costs p times as much, p the published ratio: at least half of the published excess.

    For p under 1 the same of 1/p.
    """

    def bounds(self, published: float) -> tuple[float, float]:
        if published >= 1:
            return 1 + (published - 1) / 2, math.inf
        return -math.inf, 1 / (1 + (1 / published - 1) / 2)


class Same(Bounded):
    """The same, or hardly any difference: a ratio of 1 within a quarter."""

    def bounds(self, published: float) -> tuple[float, float]:
        return 1 / SAME, SAME


class About(Bounded):
    """A share that was published as "about so much": within a factor of 1.5."""

    def bounds(self, published: float) -> tuple[float, float]:
        return published / ABOUT, published * ABOUT


class AtLeast(Bounded):
    """A figure that was published as a bound ("over half"), or a bar."""

    def bounds(self, published: float) -> tuple[float, float]:
        return published, math.inf


class AtMost(Bounded):
    """A figure that was set as a bar not to be passed."""

    def bounds(self, published: float) -> tuple[float, float]:
        return -math.inf, published


@dataclass(frozen=True)
class WithinTolerance(Bounded):
    """A whole number, to be hit within a tenth."""

    margin: float = 1.0

    def bounds(self, published: float) -> tuple[float, float]:
        return published - 0.1, published + 0.1


class UShaped(Rule):
    """A curve both of whose ends lie above its least point."""

    def judge(self, measured: CurveDepthEstimate, published: float) -> Verdict:
        ends = ((measured.low, measured.high), (measured.last_low, measured.last_high))
        if measured.least == 0 or any(high < 1 / stats.MARGIN for _, high in ends):
            return Verdict(Label.FAILS, "the curve is least at an end")
        if all(low > stats.MARGIN for low, _ in ends):
            return Verdict(Label.HOLDS, "both ends lie above the least point")
        return Verdict(Label.UNDECIDED, "whether both ends rise is not clear")


@dataclass(frozen=True)
class Occurs(Rule):
    """An event that happens at some places to one and not to the others.

    Where chance has a part in it, what was not seen may yet happen: then it does not hold
    only if it surely happens in fewer than a `share` of the runs.
    """

    share: float = 1.0

    def bounds(self, published: float) -> tuple[float, float]:
        return published, math.inf

    def judge(self, measured: ExclusiveEventCount, published: float) -> Verdict:
        where = f"at {measured.value:.0f} of {measured.looked_at} places"
        if measured.value < published:
            most = stats.most_unseen(measured.samples, 0.99)
            if most > self.share:
                chance = f"up to {100 * most:.0f} % of its runs could still do so"
                return Verdict(Label.UNDECIDED, f"{where}; {chance}")
            return Verdict(Label.FAILS, where)
        there = measured.elsewhere
        others = f"the others at {there}" if there else "no other anywhere"
        return Verdict(Label.HOLDS, f"{where}; {others}")


class AgainstBoth(Rule):
    """An effect that must hold against each baseline that the document could have meant."""

    effect = Effect()

    def bounds(self, published: float) -> tuple[float, float]:
        return self.effect.bounds(published)

    def judge(self, measured: RangeEstimate, published: float) -> Verdict:
        parts = sorted((measured.one, measured.other), key=lambda e: e.value)
        verdicts = [(part, self.effect.judge(part, published)) for part in parts]
        for part, verdict in verdicts:
            if verdict.label is Label.FAILS:
                reason = f"against one baseline it is {part.value:.3g}: {verdict.reason}"
                return Verdict(Label.FAILS, reason)
        for _, verdict in verdicts:
            if verdict.label is Label.UNDECIDED:
                return verdict
        return Verdict(Label.HOLDS, "against both baselines " + verdicts[0][1].reason)


@dataclass(frozen=True)
class Agrees(Rule):
    """Independent measurements that differ no more than by chance, and others that do."""

    chance: float = 0.01

    def judge(self, measured: AgreementEstimate, published: float) -> Verdict:
        p, other = measured.chance, measured.other_chance
        told = f"p = {p:.2g} for ours, {other:.2g} for the other method"
        agrees = p > self.chance and not other > self.chance
        return Verdict(Label.HOLDS if agrees else Label.FAILS, told)
