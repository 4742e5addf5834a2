"""Estimates and intervals: the ground that the stopping rule, claims and charts stand on.

A measurement is a series of rounds. Every round runs each case once, and every
**block** of rounds (usually of one) has programs that were built afresh, so that
their layout in memory is drawn anew. A log ratio is then

    the truth + an effect of the block's build + the noise of its two samples,

and only blocks are independent of one another: all intervals here are built from
one figure a block, its median.

**Estimate and interval.** The estimate is the median of the samples. The interval is
Student's t about the mean of the block figures with a tenth of them trimmed at each
end and their winsorised variance (Tukey and McLaughlin): below ten blocks that is the
plain t interval, from ten on one disturbed sample at either end no longer widens it.
Where the median lies outside it, it is widened to hold it (fewer than 1 in 10,000).
Ratios and times are treated on the log scale, shares of a whole on the angular scale (the
arcsine of the root, on which their noise hardly depends on how large they are, and no
interval leaves 0 to 1), counts and differences as they are.

**Stopping.** A measurement stops as soon as its intervals are narrow, so it tends to
stop when they are too narrow by luck. In simulations that stop at ±1 to 5 %, look after
every block from the fourth to the fortieth, and have build effects of 1 % and noise of
1 to 3 % a sample, plain 95 % intervals cover the truth 90.6 % of the time at worst. So
every half-width is widened by 15 % (`WIDENING`), and they cover 93.8 to 97.3 %; those of
99 % cover 98.4 % or more, those of 99.9 % 99.8 %. Noise from Student's t with three
degrees of freedom and samples of which 4 % are slowed by a fifth on average are among
these. Looking less often, or asking for narrowness twice in a row, takes more rounds for
the same coverage.

**What is not covered.** An effect that several blocks share. Where adjacent blocks are
labelled apart but use the same builds by twos, threes or fives, 95 % intervals stopped at
±1.5 % cover 91, 88 and 81 % at noise 1 % and 92, 92 and 89 % at noise 2 %. So build anew
for every block, or label the blocks as they were built.

**Peers.** Four or five blocks say little of their own spread: at the confidence of a
verdict, which shares its error with dozens of others, Student's t is then 9 to 13
standard errors wide, most of it doubt about the spread. But the ratios of one experiment,
its A/A controls among them, are measured in the same rounds, by like samples, and scatter
alike; and so do the shares of its profiles. `peers` draws from
them what variance to expect and how sure that is (Smyth's moderated t, with its degrees
of freedom held to 10), and the interval that a verdict is judged on uses both: the mean of
its own variance and that of its peers, weighted by their degrees of freedom, and the
degrees of both. A ratio that scatters more than its peers keeps its own variance. With
four or five blocks that takes 0.4 to 0.55 of the width at the same coverage (99.85 % or
more where 99.94 % is asked for, over all ratios, whether they scatter alike or have
variances that differ as an inverse chi square of three degrees does). A single ratio that
scatters three times as much as all its peers is covered 99.1 % of the time at worst.
The 95 % intervals that are shown use no peers, but for those of the A/A controls, of which
there are the fewest rounds.

**Differences.** `noise_floor` bounds what A/A twins differ by: identical programs
measured in the same rounds. `differs` calls a difference when the interval excludes 1 and
the estimate lies beyond the floor. To ask that the whole interval lie beyond it would
count the noise twice, since the floor holds it already: measured to ±2 %, only 53 to
92 in 100 true differences of 5 % would be called. The floor is as fine as the ratio if
the twins are among the ratios that must be precise before the measurement stops; then,
measured to ±1.5 or 2 %, 94 or more in 100 are called, and 1 in 1,000 equal programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isnan, log, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

Floats = NDArray[np.float64]

TRIM = 10  # one block figure in this many is trimmed at each end
WIDENING = 1.15  # what stopping at a narrow interval costs: see above
MOST_FREEDOM = 10.0  # that peers may add: they are alike, not the same
FEWEST_PEERS = 4  # with fewer, how alike they are cannot be told
MIN_BLOCKS = 4  # with fewer, no interval is precise enough to stop at


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval, the samples (or pairs) and the blocks that it rests on.

    From one block there is no telling how much blocks differ, so the interval is
    infinite; from none the value is NaN as well.
    """

    value: float
    low: float
    high: float
    samples: int
    blocks: int
    confidence: float

    @property
    def half_width(self) -> float:
        """Half the interval's length over the size of the value: 0.02 is ±2 %.

        Infinite when there is no value, no finite interval, or a value of zero
        within an interval that is more than a point.
        """
        if self.low == self.high:
            return 0.0
        if not self.value or isnan(self.value):
            return inf
        return (self.high - self.low) / abs(2 * self.value)

    def contains(self, x: float) -> bool:
        """Whether x lies in the interval, its ends included."""
        return self.low <= x <= self.high


@dataclass(frozen=True, slots=True)
class Peers:
    """What other figures of the same rounds say of a figure's noise: of a ratio's, those of
    other ratios, of a share's, those of other shares.

    The variance of a block's figure, on the scale that intervals are made on, and the
    degrees of freedom that it counts for.
    """

    variance: float
    freedom: float


def paired_ratio(
    numerator: ArrayLike,
    denominator: ArrayLike,
    block: ArrayLike,
    confidence: float = 0.95,
    peers: Peers | None = None,
) -> Estimate:
    """The ratio of two quantities that were measured in the same rounds.

    The three arrays have one entry a round. A round in which either sample is
    missing (NaN) or not positive is left out.
    """
    return _on_log_scale(log_ratio(numerator, denominator), block, confidence, peers)


def log_ratio(numerator: ArrayLike, denominator: ArrayLike) -> Floats:
    """The scale on which ratios have intervals; NaN where either is missing or not positive."""
    return _log(_floats(numerator)) - _log(_floats(denominator))


def angle(shares: ArrayLike) -> Floats:
    """The scale on which shares (0 to 1) have intervals; NaN for what is no share."""
    x = _floats(shares)
    return np.arcsin(np.sqrt(np.where((x >= 0) & (x <= 1), x, nan)))


def peers(measured: Iterable[tuple[ArrayLike, ArrayLike]]) -> Peers | None:
    """What figures of the same rounds say of one another's noise.

    Each is an array with an entry a round, on the scale that its intervals are made on
    (`log_ratio`, `angle`), and the array of its blocks. None where they are too few to
    tell. By Smyth's moments of the log variances.
    """
    found: list[tuple[float, int]] = []
    for values, block in measured:
        figures = _figures(*_usable(_floats(values), block))
        if figures.size > 1 and (spread := float(_variance(figures))) > 0:
            found.append((spread, _freedom(figures.size)))
    if len(found) < FEWEST_PEERS:
        return None
    variance, own = (np.array(column, dtype=float) for column in zip(*found, strict=True))
    levels = np.log(variance) - special.digamma(own / 2) + np.log(own / 2)
    # How much more they differ than samples of one variance would.
    excess = float(levels.var(ddof=1) - special.polygamma(1, own / 2).mean())
    if excess <= 0:
        return Peers(float(np.exp(levels.mean())), MOST_FREEDOM)
    freedom = 2 * float(
        optimize.brentq(lambda half: float(special.polygamma(1, half)) - excess, 1e-3, 1e9)
    )
    shift = float(special.digamma(freedom / 2)) - log(freedom / 2)
    return Peers(float(np.exp(levels.mean() + shift)), min(freedom, MOST_FREEDOM))


def level(values: ArrayLike, block: ArrayLike, confidence: float = 0.95) -> Estimate:
    """The level of a positive quantity whose noise is in proportion to it, such as ns/op.

    Samples that are missing (NaN) or not positive are left out.
    """
    return _on_log_scale(_log(_floats(values)), block, confidence)


def share(
    values: ArrayLike, block: ArrayLike, confidence: float = 0.95, peers: Peers | None = None
) -> Estimate:
    """The level of a share of a whole (0 to 1), such as that of the stacks of a profile."""
    found = _estimate(angle(values), block, confidence, peers)
    # An end that is not known stays so: all that there is would look like an interval.
    low, high = (
        float(np.sin(np.clip(end, 0, np.pi / 2)) ** 2) if np.isfinite(end) else end
        for end in (found.low, found.high)
    )
    value = float(np.sin(found.value) ** 2)
    return Estimate(value, low, high, found.samples, found.blocks, confidence)


def amount(values: ArrayLike, block: ArrayLike, confidence: float = 0.95) -> Estimate:
    """The level of a count, or of another quantity that may be zero.

    A count that is the same in nine of ten blocks or more comes out as that number,
    with no width: what it was in the others is for the samples to show.
    """
    return _estimate(_floats(values), block, confidence)


def difference(a: ArrayLike, b: ArrayLike, block: ArrayLike, confidence: float = 0.95) -> Estimate:
    """a - b, paired by round, such as the ns that a variant adds to each object."""
    return _estimate(_floats(a) - _floats(b), block, confidence)


def corrected(confidence: float, claims: int) -> float:
    """The confidence each of so many claims needs for all to hold together (Bonferroni)."""
    return 1 - (1 - confidence) / max(claims, 1)


def precise_enough(estimate: Estimate, target: float) -> bool:
    """Whether to stop here: the half-width is at most the target (0.02 is ±2 %)."""
    return estimate.blocks >= MIN_BLOCKS and estimate.half_width <= target


def most_unseen(samples: int, confidence: float = 0.95) -> float:
    """The largest share of all samples in which a thing may happen that none of so many showed.

    One-sided and exact: a larger share would have shown it with more than that confidence.
    """
    return float(1 - (1 - confidence) ** (1 / samples)) if samples else 1.0


def noise_floor(twins: Sequence[Estimate]) -> float:
    """The largest |log| of any bound of the ratios of A/A twins: a log ratio.

    Infinite when a twin's interval is, or when there are no twins: what identical
    programs differ by is then unknown, and no difference can be called.
    """
    return max((_reach(twin) for twin in twins), default=inf)


def differs(ratio: Estimate, floor: float) -> bool:
    """Whether a ratio is called different from 1: see the module's last paragraph."""
    return not ratio.contains(1) and abs(log(ratio.value)) > floor


def heterogeneity(ratios: Sequence[Estimate]) -> float:
    """The probability p that ratios of one truth scatter as much as these.

    Cochran's Q of the log ratios in Welch's form, which allows for standard errors
    that come from few blocks. It is for measurements whose length was set beforehand:
    of four that agree fewer than 1 in 100 has p < 0.01. Where each stopped as soon as
    it was precise, those that stopped too early weigh too much, and up to 6 in 100 do.
    NaN unless two ratios or more have finite intervals.
    """
    known = [r for r in ratios if r.low > 0 and r.high < inf]
    if len(known) < 2:
        return nan
    ends = np.log([(r.low, r.high) for r in known])
    centre, half = ends.mean(axis=1), np.ptp(ends, axis=1) / 2
    freedom = np.array([_freedom(r.blocks) for r in known])
    error = half / special.stdtrit(freedom, [(1 + r.confidence) / 2 for r in known])
    # Without width (constant data) a ratio outweighs all others, but not infinitely.
    weight = np.maximum(error, 1e-12) ** -2
    share = weight / weight.sum()
    others = len(known) - 1
    lack = float(((1 - share) ** 2 / freedom).sum()) / (len(known) ** 2 - 1)
    q = float((weight * (centre - (share * centre).sum()) ** 2).sum())
    f = q / others / (1 + 2 * (others - 1) * lack)
    return float(special.fdtrc(others, 1 / (3 * lack), f))


def intervals(
    figures: Floats, confidence: float, peers: Peers | None = None
) -> tuple[Floats, Floats]:
    """Low and high end of the interval of each row of block figures (..., blocks)."""
    blocks = figures.shape[-1]
    if blocks < 2:
        edge = np.full(figures.shape[:-1], inf)
        return -edge, edge
    centre = _middle(np.sort(figures, axis=-1)).mean(axis=-1)
    variance, freedom = _variance(figures), float(_freedom(blocks))
    if peers is not None:
        shared = (freedom * variance + peers.freedom * peers.variance) / (freedom + peers.freedom)
        variance, freedom = np.maximum(variance, shared), freedom + peers.freedom
    times = WIDENING * float(special.stdtrit(freedom, (1 + confidence) / 2))
    half = times * np.sqrt(variance / blocks)
    return centre - half, centre + half


def _middle(ordered: Floats) -> Floats:
    """What trimming keeps of each row of ordered figures."""
    trimmed = ordered.shape[-1] // TRIM
    return ordered[..., trimmed : ordered.shape[-1] - trimmed]


def _variance(figures: Floats) -> Floats:
    """The variance of each row of block figures, as if none had been trimmed."""
    blocks = figures.shape[-1]
    middle = _middle(np.sort(figures, axis=-1))
    kept = middle.shape[-1]
    # Winsorised: the trimmed figures count as the outermost that were kept.
    pinned = np.clip(figures, middle[..., :1], middle[..., -1:])
    scale = blocks * (blocks - 1) / (kept * (kept - 1))
    return np.asarray(pinned.var(axis=-1, ddof=1) * scale)


def _usable(values: Floats, block: ArrayLike) -> tuple[Floats, NDArray[Any]]:
    """The values that are there (not NaN) and their blocks, in the order of the blocks."""
    labels = np.asarray(block)
    usable = ~np.isnan(values) & (labels == labels)  # a NaN label is not equal to itself
    values, labels = values[usable], labels[usable]
    order = np.argsort(labels, kind="stable")
    return values[order], labels[order]


def _figures(values: Floats, labels: NDArray[Any]) -> Floats:
    """One figure a block, its median, of what `_usable` gives."""
    starts = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    if starts.size >= values.size - 1:
        return values
    return np.array([np.median(part) for part in np.split(values, starts)])


def _estimate(
    values: Floats, block: ArrayLike, confidence: float, peers: Peers | None = None
) -> Estimate:
    """The estimate from values, one a round; what is missing (NaN) is left out."""
    values, labels = _usable(values, block)
    if not values.size:
        return Estimate(nan, -inf, inf, 0, 0, confidence)
    figures = _figures(values, labels)
    value = float(np.median(values))
    low, high = (float(end) for end in intervals(figures, confidence, peers))
    low, high = min(low, value), max(high, value)
    return Estimate(value, low, high, values.size, figures.size, confidence)


def _on_log_scale(
    logs: Floats, block: ArrayLike, confidence: float, peers: Peers | None = None
) -> Estimate:
    found = _estimate(logs, block, confidence, peers)
    with np.errstate(over="ignore"):  # few blocks: an upper end beyond all floats is infinite
        value, low, high = (float(x) for x in np.exp([found.value, found.low, found.high]))
    return Estimate(value, low, high, found.samples, found.blocks, confidence)


def _freedom(blocks: int) -> int:
    """The degrees of freedom that trimming leaves."""
    return blocks - 2 * (blocks // TRIM) - 1


def _reach(ratio: Estimate) -> float:
    return max(-log(ratio.low), log(ratio.high)) if ratio.low > 0 else inf


def _log(x: Floats) -> Floats:
    """Natural logarithms; NaN where there is none."""
    return np.log(np.where(x > 0, x, nan))


def _floats(values: ArrayLike) -> Floats:
    """The values; NaN for those that are infinite."""
    x = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(x), x, nan)
