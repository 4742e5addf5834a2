"""The rules that turn an interval into a verdict.

A verdict says whether a claim is true on this machine. The size of the effect is shown
with its interval, but not judged. `data/published/README.md` lists each claim's rule.

For a cost, a ratio of costs or a share, the 99 % interval must clear a bound by the factor
`stats.MARGIN`. Chapter 9 simulates how often a truth on a bound is then decided wrongly, with
the spreads of the run.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from gccost import stats
from gccost.costs import models
from gccost.judging import rounding
from gccost.stats import Estimate

Range: TypeAlias = tuple[float, float]
"""The ends of the range in which a claim holds."""
SAME = 1.25  # costs within this factor are the same
ABOUT = 1.5  # a share within this factor of the published one is "about" as large


class Label(Enum):
    """The possible verdicts on a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNMEASURED = "not measured"
    UNTESTABLE = "cannot be tested on this machine"
    UNSCORED = "not scored"

    @property
    def decided(self) -> bool:
        return self in (Label.HOLDS, Label.FAILS)


@dataclass(frozen=True)
class Verdict:
    """A label with a short reason."""

    label: Label
    reason: str = ""

    def __str__(self) -> str:
        return self.label.value


class Rule(ABC):
    """A rule that turns an interval and a published value into a verdict.

    A claim whose rule is not `scored` has a figure without a verdict.
    """

    scored: ClassVar[bool] = True

    def bounds(self, published: float) -> Range:
        """The range in which the claim holds; either end may be infinite, both NaN if none."""
        return 1.0, math.inf

    @abstractmethod
    def judge(self, measured: Estimate, published: float, unit: str = "number") -> Verdict:
        """The verdict on an estimate of the rule's kind of quantity; its reason uses the unit."""


@dataclass(frozen=True)
class Bounded(Rule):
    """A value that must lie between bounds derived from the published value.

    `margin` is the factor by which the interval must clear a bound, for either decision. It
    is 1 for values whose noise is not proportional to them, such as counts.
    """

    margin: float = stats.MARGIN

    @abstractmethod
    def bounds(self, published: float) -> Range: ...

    def judge(self, measured: Estimate, published: float, unit: str = "number") -> Verdict:
        least, most = self.bounds(published)
        where = region(least, most, unit)
        if measured.low >= least * self.margin and measured.high <= most / self.margin:
            return Verdict(Label.HOLDS, f"the interval lies {where}")
        if measured.high < least / self.margin or measured.low > most * self.margin:
            return Verdict(Label.FAILS, f"the interval does not lie {where}")
        return Verdict(Label.UNDECIDED, "the interval is too wide or too near a bound to decide")


@dataclass(frozen=True)
class Between(Bounded):
    """A value between bounds of its own; either may be missing."""

    low: float = -math.inf
    high: float = math.inf

    def bounds(self, published: float) -> Range:
        return self.low, self.high


def region(low: float, high: float, unit: str) -> str:
    """The range between two bounds in words; either may be infinite.

    Bounds that leave room for one whole number are near it: "near 2 cycles".
    """
    if unit in rounding.WHOLE and high - low < 1:
        middle = round((low + high) / 2)
        if math.isclose(middle, (low + high) / 2, abs_tol=1e-9):
            return f"near {rounding.value(middle, unit)}"
    least, most = (rounding.value(bound, unit) for bound in (low, high))
    is_whole = unit in rounding.WHOLE
    if high == math.inf:
        return f"at least {least}" if is_whole else f"above {least}"
    if low == -math.inf:
        return f"at most {most}" if is_whole else f"below {most}"
    if is_whole:
        least = rounding.plain(low)  # the unit stands once
    return f"between {least} and {most}"


class Effect(Bounded):
    """A published ratio p: the measured excess is at least half of the published excess.

    For p under 1 the rule applies to 1/p.
    """

    def bounds(self, published: float) -> Range:
        if published >= 1:
            return 1 + (published - 1) / 2, math.inf
        return -math.inf, 1 / (1 + (1 / published - 1) / 2)


class Same(Bounded):
    """No difference, or hardly any: a ratio within a factor of 1.25 of 1."""

    def bounds(self, published: float) -> Range:
        return 1 / SAME, SAME


class About(Bounded):
    """A share or a frequency published as "about" a value: within a factor of 1.5 of it."""

    def bounds(self, published: float) -> Range:
        return published / ABOUT, published * ABOUT


@dataclass(frozen=True)
class AtLeast(Bounded):
    """A minimum: our bar, or two thirds of a published figure."""

    within: float = 1.0

    def bounds(self, published: float) -> Range:
        return published / self.within, math.inf


@dataclass(frozen=True)
class AtMost(Bounded):
    """A maximum: our bar, or 1.5 times a published figure."""

    within: float = 1.0

    def bounds(self, published: float) -> Range:
        return -math.inf, published * self.within


@dataclass(frozen=True)
class WithinTolerance(Bounded):
    """A number, within 0.1."""

    margin: float = 1.0

    def bounds(self, published: float) -> Range:
        return published - 0.1, published + 0.1


@dataclass(frozen=True)
class Shown(Rule):
    """No rule: the figure is shown, and not scored."""

    why: str
    scored: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"not scored: {self.why}"

    def bounds(self, published: float) -> Range:
        return math.nan, math.nan

    def judge(self, measured: Estimate, published: float, unit: str = "number") -> Verdict:
        return Verdict(Label.UNSCORED, self.why)


@dataclass(frozen=True)
class UShaped(Rule):
    """A curve whose ends both lie above its lowest point."""

    def judge(self, measured: Estimate, published: float, unit: str = "number") -> Verdict:
        ends = (measured, *measured.parts)
        falls = measured.low < measured.high
        if not falls or any(end.high < 1 / stats.MARGIN for end in ends):
            return Verdict(Label.FAILS, "the curve is least at an end")
        if all(end.low > stats.MARGIN for end in ends):
            return Verdict(Label.HOLDS, "both ends lie above the least point")
        return Verdict(Label.UNDECIDED, "whether both ends rise is not clear")


@dataclass(frozen=True)
class Occurs(Rule):
    """An event of one variant, at heap sizes at which it never happens to the others.

    An event with a `share` under 1 is random. The claim then holds only if Fisher's exact test
    tells the variants apart at 99 %, with Bonferroni's correction for the sizes. It fails only if
    the event was not observed, and the upper confidence bound on its probability is at most
    `share`.
    """

    share: float = 1.0

    def bounds(self, published: float) -> Range:
        return published, math.inf

    def judge(self, measured: Estimate, published: float, unit: str = "number") -> Verdict:
        where = f"it happens at {measured.value:.0f} of {measured.rounds} sizes"
        if measured.value < published:
            most = models.most_unseen(measured.n, stats.JUDGED)
            if most > self.share:
                chance = f"up to {100 * most:.0f} % of its runs could still do so"
                return Verdict(Label.UNDECIDED, f"{where}; {chance}")
            return Verdict(Label.FAILS, where)
        others, p = (part.value for part in measured.parts)
        there = f"{others:.0f}" if others else "none"
        reason = f"{where}, and with the others at {there}"
        if self.share == 1:
            return Verdict(Label.HOLDS, reason)
        label = Label.HOLDS if p <= 1 - stats.JUDGED else Label.UNDECIDED
        return Verdict(label, f"{reason}; by Fisher's exact test {_p(p)}")


@dataclass(frozen=True)
class Agrees(Rule):
    """Independent measurements that agree within chance; those of another named method do not.

    Both sides count: if p is over 0.99, their intervals are too wide.
    """

    other: str = ""  # another method, in words; without one, only ours must agree
    chance: float = 0.01

    def __str__(self) -> str:
        ours = f"{self.chance} < p < {1 - self.chance}"
        return ours + (f"; {self.other} p ≤ {self.chance}" if self.other else "")

    def bounds(self, published: float) -> Range:
        return math.nan, math.nan

    def judge(self, measured: Estimate, published: float, unit: str = "number") -> Verdict:
        p, other = (part.value for part in measured.parts)
        agrees = self.chance < p < 1 - self.chance and not other > self.chance
        return Verdict(Label.HOLDS if agrees else Label.FAILS, self.p_text(measured))

    def p_text(self, measured: Estimate) -> str:
        """The probabilities in words."""
        p, other = (part.value for part in measured.parts)
        return _p(p) + (f"; {self.other} {_p(other)}" if self.other else "")


def _p(value: float) -> str:
    """A probability in words. It is never certain."""
    return "p > 0.99" if value > 0.99 else f"p = {value:.2g}"
