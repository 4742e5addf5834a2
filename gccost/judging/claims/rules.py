"""The rules by which an interval becomes a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from gccost import stats
from gccost.judging.claims.quantities import Range, Spread, Tally, Valley
from gccost.stats import Estimate

BAND = 1.25  # a figure within this factor of the published one is the same figure


class Label(Enum):
    """What can be said of a claim."""

    HOLDS = "holds"
    STRONGER = "holds, stronger"
    WEAKER = "holds, weaker"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNMEASURED = "not measured"
    UNTESTABLE = "cannot be tested on this machine"

    @property
    def decided(self) -> bool:
        return self in (Label.HOLDS, Label.STRONGER, Label.WEAKER, Label.FAILS)


@dataclass(frozen=True)
class Verdict:
    """A label, with the reason in a few words."""

    label: Label
    reason: str = ""
    factor: float = math.nan  # measured over published

    def __str__(self) -> str:
        return self.label.value


def _bounded(
    measured: Estimate,
    published: float,
    low: float,
    high: float,
    *,
    holds: str,
    fails: str,
    undecided: str,
) -> Verdict:
    """What an interval says of bounds: it lies within them, it lies outside, or neither."""
    factor = measured.value / published
    if low <= measured.low and measured.high <= high:
        return Verdict(Label.HOLDS, holds, factor)
    if measured.high < low or measured.low > high:
        return Verdict(Label.FAILS, fails, factor)
    return Verdict(Label.UNDECIDED, undecided, factor)


@dataclass(frozen=True)
class Banded:
    """A figure that says on which side of `pivot` something lies, and how far.

    A ratio says "dearer" or "cheaper" (pivot 1), a share "most of it" (pivot a
    half). It holds within the band around the published figure, and holds
    stronger or weaker on the same side of the pivot outside it.
    """

    pivot: float = 1.0

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is the A/A noise floor as a log ratio."""
        low, high, factor = measured.low, measured.high, measured.value / published
        above = published > self.pivot
        noise = math.exp(floor)
        # A floor as wide as the band says that the machine was too noisy, not that
        # there is no difference.
        if noise < BAND and self.pivot / noise <= low and high <= self.pivot * noise:
            return Verdict(Label.FAILS, "no difference beyond the noise floor", factor)
        if (high <= self.pivot) if above else (low >= self.pivot):
            other = f"it is {'less' if above else 'more'} than {self.pivot:g}"
            return Verdict(Label.FAILS, other, factor)
        if published / BAND <= low and high <= published * BAND:
            return Verdict(Label.HOLDS, "within the band of the published figure", factor)
        same_side = low > self.pivot if above else high < self.pivot
        if same_side and (low > published * BAND or high < published / BAND):
            further = (low > published) == above
            label = Label.STRONGER if further else Label.WEAKER
            return Verdict(label, "on the same side, outside the band", factor)
        reason = "it holds, how far is undecided" if same_side else "even the side is undecided"
        return Verdict(Label.UNDECIDED, reason, factor)


@dataclass(frozen=True)
class Same:
    """Two things that are said to cost the same: their ratio is 1 within the band."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used, the band is wider."""
        return _bounded(
            *(measured, published, published / BAND, published * BAND),
            holds="the same within the band",
            fails="they differ by more than the band",
            undecided="the interval straddles the band's edge",
        )


@dataclass(frozen=True)
class Agrees:
    """Measurements that lie within the published factor, and differ no more than by chance."""

    chance: float = 0.01

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge a Spread; `floor` is not used."""
        assert isinstance(measured, Spread)
        factor = measured.value / published
        if measured.value > published:
            return Verdict(Label.FAILS, "they lie further apart", factor)
        if measured.chance <= self.chance:
            return Verdict(Label.FAILS, "they differ by more than their intervals say", factor)
        return Verdict(Label.HOLDS, "they lie within it and agree", factor)


@dataclass(frozen=True)
class About:
    """A figure that takes no side: it is the published one within the band, or it is not."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used."""
        return _bounded(
            *(measured, published, published / BAND, published * BAND),
            holds="within the band of the published figure",
            fails=f"it is {'more' if measured.value > published else 'less'}, outside the band",
            undecided="the interval straddles the band's edge",
        )


@dataclass(frozen=True)
class AtLeast:
    """A figure that was published as a bound: "over half"."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used."""
        return _bounded(
            *(measured, published, published, math.inf),
            holds="all of the interval is over it",
            fails="all of the interval is under it",
            undecided="the interval holds the bound",
        )


@dataclass(frozen=True)
class AtMost:
    """A figure that was set as a bar not to be passed."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used."""
        return _bounded(
            *(measured, published, -math.inf, published),
            holds="all of the interval is under it",
            fails="all of the interval is over it",
            undecided="the interval holds the bar",
        )


@dataclass(frozen=True)
class Between:
    """A figure that was set with bounds on both sides."""

    low: float
    high: float

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used."""
        return _bounded(
            *(measured, published, self.low, self.high),
            holds="all of the interval is between the bounds",
            fails="all of the interval is outside the bounds",
            undecided="the interval holds a bound",
        )


@dataclass(frozen=True)
class Exactly:
    """A whole number, to be hit within a tenth."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge an interval; `floor` is not used."""
        return _bounded(
            *(measured, published, published - 0.1, published + 0.1),
            holds="exactly so",
            fails="another number",
            undecided="it is not always the same number",
        )


@dataclass(frozen=True)
class UShaped:
    """A curve whose both ends lie above its least point; then, how deep it dips."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge a Valley; `floor` is not used."""
        assert isinstance(measured, Valley)
        factor = measured.value / published
        if measured.high < 1 or measured.last_high < 1 or measured.least == 0:
            return Verdict(Label.FAILS, "it is least at an end", factor)
        if measured.low <= 1 or measured.last_low <= 1:
            return Verdict(Label.UNDECIDED, "whether both ends rise is undecided", factor)
        return Banded().judge(measured, published, floor=0.0)


@dataclass(frozen=True)
class Somewhere:
    """What is said to happen at some places to one and not to the others.

    Where chance has a part in it, what was not seen may yet happen: then it does not hold
    only where it surely happens in fewer than so many of its runs, a `share` of them.
    """

    share: float = 1.0

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge a Tally; `floor` is not used."""
        assert isinstance(measured, Tally)
        factor = measured.value / published
        where = f"at {measured.value:.0f} of {measured.looked_at} places"
        if measured.value < published:
            most = stats.most_unseen(measured.samples, measured.confidence)
            if most > self.share:
                chance = f"by chance, where up to {100 * most:.0f} % of its runs do so"
                return Verdict(Label.UNDECIDED, f"{where}, perhaps {chance}", factor)
            return Verdict(Label.FAILS, where, factor)
        others = "the others nowhere"
        if measured.elsewhere:
            others = f"the others at {measured.elsewhere}"
        return Verdict(Label.HOLDS, f"{where}; {others}", factor)


@dataclass(frozen=True)
class Stable:
    """A ratio that must be one figure, whatever baseline it is taken against; then, how large."""

    def judge(self, measured: Estimate, published: float, floor: float) -> Verdict:
        """Judge a Range; `floor` is not used."""
        assert isinstance(measured, Range)
        factor = measured.value / published
        low, high = sorted((measured.one, measured.other), key=lambda e: e.value)
        if high.low > low.high * BAND:
            told = f"{low.value:,.3g} against one baseline, {high.value:,.3g} against the other"
            return Verdict(Label.FAILS, f"it is no stable quantity: {told}", factor)
        return Banded().judge(measured, published, floor=0.0)


Rule = (
    Banded
    | Same
    | Agrees
    | About
    | AtLeast
    | AtMost
    | Between
    | Exactly
    | UShaped
    | Somewhere
    | Stable
)
