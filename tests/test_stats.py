"""Estimates and intervals keep what gccost.stats promises of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf, isnan, log, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gccost.stats import (
    MIN_BLOCKS,
    MOST_FREEDOM,
    Estimate,
    Peers,
    amount,
    angle,
    corrected,
    difference,
    differs,
    heterogeneity,
    intervals,
    level,
    noise_floor,
    paired_ratio,
    peers,
    precise_enough,
    share,
)

Floats = NDArray[np.float64]

# Properties that hold for any samples at all.

positive = st.floats(1e-6, 1e12)
rounds = st.lists(st.tuples(positive, positive, st.integers(0, 8)), min_size=1, max_size=40)


def ratio_of(rows: list[tuple[float, float, int]], confidence: float = 0.95) -> Estimate:
    over, under, block = zip(*rows, strict=True)
    return paired_ratio(over, under, block, confidence)


@given(rounds)
def test_every_estimate_lies_inside_its_interval(rows: list[tuple[float, float, int]]) -> None:
    over, under, block = zip(*rows, strict=True)
    for found in (
        paired_ratio(over, under, block),
        level(over, block),
        amount(over, block),
        difference(over, under, block),
    ):
        assert found.low <= found.value <= found.high
        assert found.contains(found.value)
        assert found.samples == len(rows)
        assert found.blocks == len(set(block))


@given(rounds, st.sampled_from([2.0**k for k in range(-9, 10)]))
def test_a_ratio_scales_with_its_numerator(
    rows: list[tuple[float, float, int]], factor: float
) -> None:
    plain = ratio_of(rows)
    scaled = ratio_of([(over * factor, under, block) for over, under, block in rows])
    assert scaled.value == pytest.approx(factor * plain.value)
    assert scaled.low == pytest.approx(factor * plain.low, rel=1e-6)
    assert scaled.high == pytest.approx(factor * plain.high, rel=1e-6)


@given(rounds)
def test_swapping_the_arms_gives_the_reciprocal(rows: list[tuple[float, float, int]]) -> None:
    plain = ratio_of(rows)
    swapped = ratio_of([(under, over, block) for over, under, block in rows])
    assert log(swapped.value) == pytest.approx(-log(plain.value), abs=1e-9)
    if min(plain.low, swapped.low) > 0 and plain.high < inf:
        assert log(swapped.low) == pytest.approx(-log(plain.high), abs=1e-6, rel=1e-9)


@given(st.data(), rounds)
def test_the_order_of_the_rounds_does_not_matter(
    data: st.DataObject, rows: list[tuple[float, float, int]]
) -> None:
    assert ratio_of(data.draw(st.permutations(rows))) == ratio_of(rows)


@given(rounds, st.sampled_from([nan, 0.0, -1.0, inf]))
def test_a_pair_with_a_useless_sample_is_left_out(
    rows: list[tuple[float, float, int]], useless: float
) -> None:
    extra = [(useless, 1.0, 0), (1.0, useless, 1), (useless, useless, 2)]
    assert ratio_of(rows + extra) == ratio_of(rows)


def test_a_sample_without_a_block_is_left_out() -> None:
    assert amount([1, 2, 3], [1.0, 2.0, nan]) == amount([1, 2], [1.0, 2.0])


@given(rounds)
def test_more_confidence_takes_a_wider_interval(rows: list[tuple[float, float, int]]) -> None:
    narrow, wide = ratio_of(rows, 0.9), ratio_of(rows, 0.99)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


# What a reader sees at the edges.


def test_one_block_says_nothing_about_how_blocks_differ() -> None:
    found = paired_ratio([10, 11, 12], [2, 2, 2], [7, 7, 7])
    assert found.value == pytest.approx(5.5)
    assert (found.low, found.high, found.samples, found.blocks) == (0, inf, 3, 1)
    assert found.half_width == inf
    linear = difference([10, 11], [2, 2], [7, 7])
    assert (linear.value, linear.low, linear.high) == (8.5, -inf, inf)


def test_without_samples_there_is_no_value() -> None:
    found = paired_ratio([nan], [1], [1])
    assert isnan(found.value)
    assert (found.low, found.high, found.samples, found.blocks) == (0, inf, 0, 0)
    assert found.half_width == inf
    assert not precise_enough(found, 1e9)
    assert not differs(found, 0)


def test_constant_data_have_no_width() -> None:
    found = paired_ratio([6.0] * 5, [2.0] * 5, range(5))
    assert found.value == pytest.approx(3)
    assert found.half_width < 1e-12
    assert amount([0] * 5, range(5)).half_width == 0


def test_a_zero_with_width_is_never_precise() -> None:
    assert amount([-1, 0, 0, 1], range(4)).half_width == inf


def test_half_width_is_relative_to_the_value() -> None:
    assert Estimate(4.0, 3.9, 4.2, 9, 9, 0.95).half_width == pytest.approx(0.3 / 8)
    assert Estimate(-4.0, -4.2, -3.9, 9, 9, 0.95).half_width == pytest.approx(0.3 / 8)


def test_the_estimate_is_the_median_of_the_paired_ratios() -> None:
    assert paired_ratio([2, 30, 8, 5, 9], [1, 3, 2, 5, 3], range(5)).value == pytest.approx(3)


def test_rounds_of_one_block_are_not_independent() -> None:
    """Four builds measured ten times each tell as much about builds as four samples."""
    rng = np.random.default_rng(1)
    build = np.repeat(rng.normal(0, 0.05, 4), 10)
    values = np.exp(build + rng.normal(0, 0.001, 40))
    labelled = level(values, np.repeat(range(4), 10))
    assert (labelled.samples, labelled.blocks) == (40, 4)
    assert labelled.half_width > 3 * level(values, range(40)).half_width
    few = level(np.exp(build[::10]), range(4))
    assert labelled.half_width == pytest.approx(few.half_width, rel=0.1)


def test_one_disturbed_sample_in_ten_does_not_widen_the_interval() -> None:
    values = np.exp(np.random.default_rng(2).normal(0, 0.01, 10))
    clean = level(values, range(10))
    values[values.argmax()] *= 3
    disturbed = level(values, range(10))
    assert disturbed.half_width == pytest.approx(clean.half_width)


def test_corrected_confidence_shares_the_error_among_the_claims() -> None:
    assert corrected(0.95, 1) == corrected(0.95, 0) == pytest.approx(0.95)
    assert corrected(0.95, 20) == pytest.approx(0.9975)


def test_measuring_goes_on_until_blocks_and_width_suffice() -> None:
    narrow = Estimate(1.0, 0.99, 1.01, MIN_BLOCKS, MIN_BLOCKS, 0.95)
    assert precise_enough(narrow, 0.0101)
    assert not precise_enough(narrow, 0.0099)
    assert not precise_enough(replace(narrow, blocks=MIN_BLOCKS - 1), 0.0101)


def test_the_floor_is_the_furthest_bound_of_any_twin() -> None:
    twins = [Estimate(1.0, 0.98, 1.02, 9, 9, 0.95), Estimate(0.99, 0.95, 1.03, 9, 9, 0.95)]
    assert noise_floor(twins) == pytest.approx(-log(0.95))
    assert noise_floor(twins[:1]) == pytest.approx(-log(0.98))


def test_without_a_finite_twin_no_difference_is_called() -> None:
    sure = Estimate(10.0, 9.9, 10.1, 9, 9, 0.95)
    assert noise_floor([]) == noise_floor([paired_ratio([1], [1], [1])]) == inf
    assert not differs(sure, inf)


@pytest.mark.parametrize(
    ("value", "low", "high", "called"),
    [
        (1.05, 1.03, 1.07, True),
        (1 / 1.05, 1 / 1.07, 1 / 1.03, True),
        (1.05, 0.99, 1.11, False),  # the interval holds 1
        (1.02, 1.01, 1.05, False),  # the estimate is within the floor
    ],
)
def test_a_difference_must_exclude_1_and_lie_beyond_the_floor(
    value: float, low: float, high: float, called: bool
) -> None:
    assert differs(Estimate(value, low, high, 9, 9, 0.95), log(1.03)) is called


def test_heterogeneity_is_not_known_from_one_ratio() -> None:
    sure = Estimate(2.0, 1.9, 2.1, 9, 9, 0.95)
    unknown = Estimate(2.0, 0.0, inf, 1, 1, 0.95)
    assert isnan(heterogeneity([sure, unknown]))
    assert heterogeneity([sure, sure, unknown]) == pytest.approx(1)


def test_heterogeneity_holds_for_ratios_without_width() -> None:
    two, three = (paired_ratio([x] * 5, [1.0] * 5, range(5)) for x in (2.0, 3.0))
    assert heterogeneity([two, two, two]) == pytest.approx(1)
    assert heterogeneity([two, two, three]) == pytest.approx(0, abs=1e-9)


def test_heterogeneity_tells_scattered_ratios_from_agreeing_ones() -> None:
    """Of four that agree at most 1 in 100 has p < 0.01; with a misfit of 5 % most have."""
    rng = np.random.default_rng(3)

    def p(last: float) -> float:
        logs = rng.normal([[0.0]] * 3 + [[last]], 0.02, (4, 12))
        return heterogeneity([level(np.exp(row), range(12)) for row in logs])

    assert np.mean([p(0.0) < 0.01 for _ in range(2000)]) <= 0.01
    assert np.mean([p(0.05) < 0.01 for _ in range(400)]) >= 0.9


# What the ratios of one experiment say of one another's noise.


def scattered(
    rng: np.random.Generator, sds: Floats, blocks: int = 5
) -> list[tuple[Floats, Floats]]:
    """The logs of a ratio of 1 for each standard deviation, as `peers` takes them."""
    rounds = np.arange(blocks, dtype=float)
    return [(rng.normal(0, sd, blocks), rounds) for sd in sds]


def of_logs(logs: Floats, rounds: Floats, confidence: float, known: Peers | None) -> Estimate:
    return paired_ratio(np.exp(logs), np.ones(len(logs)), rounds, confidence, known)


def test_too_few_ratios_say_nothing_of_one_another() -> None:
    rng = np.random.default_rng(1)
    constant = (np.zeros(5), np.arange(5.0))
    assert peers(scattered(rng, np.full(3, 0.02))) is None
    assert peers([*scattered(rng, np.full(3, 0.02)), constant]) is None
    assert peers(scattered(rng, np.full(4, 0.02))) is not None


def test_ratios_that_scatter_alike_say_more_than_ratios_that_do_not() -> None:
    rng = np.random.default_rng(2)
    alike = peers(scattered(rng, np.full(400, 0.03)))
    unlike = peers(scattered(rng, 0.03 * np.sqrt(3 / rng.chisquare(3, 4000))))
    assert alike is not None
    assert unlike is not None
    assert alike.freedom == MOST_FREEDOM
    assert alike.variance == pytest.approx(0.03**2, rel=0.1)
    assert unlike.freedom == pytest.approx(3, rel=0.15)
    assert unlike.variance == pytest.approx(0.03**2, rel=0.15)


def test_peers_narrow_an_interval_but_never_below_what_its_own_spread_says() -> None:
    known = Peers(0.02**2, 10.0)
    for sd in (0.02, 0.2):
        logs, block = scattered(np.random.default_rng(3), np.array([sd]))[0]
        alone, moderated = (of_logs(logs, block, 0.999, p) for p in (None, known))
        own = intervals(logs, 0.999, Peers(0.0, 10.0))
        assert alone.low < moderated.low < moderated.value < moderated.high < alone.high
        assert log(moderated.low) <= own[0] + 1e-12
        assert log(moderated.high) >= own[1] - 1e-12


@pytest.mark.parametrize(("blocks", "freedom"), [(4, inf), (5, inf), (5, 3.0), (8, 5.0)])
def test_intervals_that_heed_their_peers_hold_the_truth_as_often(
    blocks: int, freedom: float
) -> None:
    rng = np.random.default_rng(5)
    confidence, missed, runs, ratios = 0.99, 0, 600, 12
    for _ in range(runs):
        varied = 1.0 if freedom == inf else np.sqrt(freedom / rng.chisquare(freedom, ratios))
        measured = scattered(rng, 0.03 * varied * np.ones(ratios), blocks)
        known = peers(measured)
        missed += sum(not of_logs(*m, confidence, known).contains(1) for m in measured)
    assert missed / (runs * ratios) <= 1 - confidence


@pytest.mark.parametrize("blocks", [4, 8])
def test_intervals_of_shares_that_heed_their_peers_hold_the_truth_as_often(blocks: int) -> None:
    """Shares of profiles: of 100 stacks each, and another share in each round's program."""
    rng = np.random.default_rng(6)
    confidence, missed, runs = 0.99, 0, 600
    truths, rounds = np.array([0.08, 0.1, 0.2, 0.25, 0.3, 0.5, 0.6, 0.7]), np.arange(blocks)
    for _ in range(runs):
        spread = rng.normal(np.arcsin(np.sqrt(truths)), 0.03, (blocks, len(truths)))
        found = rng.binomial(100, np.sin(spread) ** 2) / 100
        known = peers([(angle(column), rounds) for column in found.T])
        for truth, column in zip(truths, found.T, strict=True):
            missed += not share(column, rounds, confidence, known).contains(truth)
    assert missed / (runs * len(truths)) <= 1 - confidence


def test_no_interval_of_a_share_leaves_0_to_1() -> None:
    few, all_ = share([0.0, 0.0, 0.02, 0.01], range(4)), share([1.0, 0.97, 1.0, 0.99], range(4))
    assert 0 <= few.low <= few.value <= few.high < 0.2
    assert 0.8 < all_.low <= all_.value <= all_.high <= 1
    assert share([0.2], [1]).half_width == inf
    assert isnan(share([], []).value)
    assert share([0.3, 1.5, -1.0, 0.3, 0.3], range(5)).samples == 3


# Whole measurements, simulated through the stopping rule.

RUNS, MOST_BLOCKS = 4000, 40
BUILD = 0.01  # the effect of a build on a log ratio: its standard deviation


@dataclass(frozen=True)
class Noise:
    """What a sample's log differs by from its block's figure: sd, and the kind of its tails."""

    sd: float
    disturbed: float = 0.0  # the share of samples that something else slowed down
    freedom: float = inf  # of Student's t

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        if self.freedom < inf:
            spread = np.sqrt(self.freedom / (self.freedom - 2))
            return np.asarray(self.sd / spread * rng.standard_t(self.freedom, shape))
        slowed = rng.exponential(0.2, shape) * (rng.random(shape) < self.disturbed)
        return rng.normal(0, self.sd, shape) + slowed


NOISES = [Noise(0.01), Noise(0.02), Noise(0.03)]
HEAVY = [
    *(replace(n, disturbed=0.04) for n in NOISES),
    *(replace(n, freedom=3.0) for n in NOISES),
]


@dataclass(frozen=True)
class Course:
    """A log ratio after each block of many runs at once: arrays of (runs, MOST_BLOCKS + 1)."""

    value: Floats
    low: Floats
    high: Floats

    def at(self, blocks: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        rows = np.arange(len(blocks))
        return self.value[rows, blocks], self.low[rows, blocks], self.high[rows, blocks]


def course(logs: Floats, confidence: float = 0.95) -> Course:
    """What paired_ratio finds after each block, by the very function it uses."""
    value, low, high = (np.full((len(logs), MOST_BLOCKS + 1), x) for x in (nan, -inf, inf))
    for blocks in range(2, MOST_BLOCKS + 1):
        middle = np.median(logs[:, :blocks], axis=1)
        ends = intervals(logs[:, :blocks], confidence)
        value[:, blocks] = middle
        low[:, blocks] = np.minimum(ends[0], middle)
        high[:, blocks] = np.maximum(ends[1], middle)
    return Course(value, low, high)


def stopped_at(courses: list[Course], target: float) -> NDArray[np.intp]:
    """The number of blocks after which all are precise enough or the budget is spent."""
    wide = np.max([np.exp(c.high - c.value) - np.exp(c.low - c.value) for c in courses], axis=0) / 2
    precise = wide <= target
    precise[:, :MIN_BLOCKS] = False
    precise[:, -1] = True
    return np.asarray(precise.argmax(axis=1))


def block_effects(rng: np.random.Generator, run: int = 1) -> Floats:
    """An arm's build effects, each shared by so many adjacent blocks."""
    effects = rng.normal(0, BUILD / np.sqrt(2), (RUNS, -(-MOST_BLOCKS // run)))
    return np.repeat(effects, run, axis=1)[:, :MOST_BLOCKS]


def coverage(noise: Noise, target: float, confidence: float = 0.95, run: int = 1) -> float:
    """In what share of the runs, stopped at the target, the interval holds the truth of 0."""
    rng = np.random.default_rng(11)
    shape = (2, RUNS, MOST_BLOCKS)
    builds = block_effects(rng, run) - block_effects(rng, run)
    samples = noise.draw(rng, shape)
    logs = builds + samples[0] - samples[1]
    blocks = stopped_at([course(logs)], target)
    _, low, high = course(logs, confidence).at(blocks)
    return float(np.mean((low <= 0) & (high >= 0)))


def test_the_simulation_measures_the_package() -> None:
    """One simulated run, sample by sample through the public functions."""
    rng = np.random.default_rng(4)
    over, under = np.exp(rng.normal(0, 0.02, (2, MOST_BLOCKS)))
    simulated = course(np.log(over) - np.log(under)[np.newaxis])
    stop = None
    for blocks in range(1, MOST_BLOCKS + 1):
        found = paired_ratio(over[:blocks], under[:blocks], range(blocks))
        if blocks > 1:
            logs = [float(x[0, blocks]) for x in (simulated.value, simulated.low, simulated.high)]
            assert [found.value, found.low, found.high] == pytest.approx([exp(x) for x in logs])
        if stop is None and precise_enough(found, 0.02):
            stop = blocks
    assert stop == stopped_at([simulated], 0.02)[0]


@pytest.mark.parametrize("target", [0.015, 0.02, 0.05], ids=lambda t: f"target={t}")
@pytest.mark.parametrize("noise", NOISES + HEAVY, ids=str)
def test_an_interval_holds_the_truth_through_the_stopping_rule(noise: Noise, target: float) -> None:
    assert coverage(noise, target) >= 0.93


@pytest.mark.parametrize("confidence", [0.99, 0.999])
def test_so_does_an_interval_corrected_for_many_claims(confidence: float) -> None:
    missed = max(1 - coverage(noise, 0.02, confidence) for noise in NOISES)
    assert missed <= 2 * (1 - confidence)


@pytest.mark.parametrize(("run", "at_least"), [(2, 0.89), (3, 0.86), (5, 0.79)])
def test_coverage_falls_as_documented_when_blocks_share_a_build(run: int, at_least: float) -> None:
    assert at_least <= coverage(Noise(0.01), 0.015, run=run) < 0.93


@pytest.mark.parametrize("target", [0.015, 0.02], ids=lambda t: f"target={t}")
@pytest.mark.parametrize("noise", NOISES + HEAVY, ids=str)
def test_a_difference_of_5_percent_is_called_and_an_equal_pair_is_not(
    noise: Noise, target: float
) -> None:
    """Two arms and for each its A/A twins: the same binary again, and one linked anew."""
    rng = np.random.default_rng(12)
    shape = (RUNS, MOST_BLOCKS)
    one_build, other_build = block_effects(rng), block_effects(rng)
    one, one_again = (one_build + noise.draw(rng, shape) for _ in range(2))
    other, other_again = (other_build + noise.draw(rng, shape) for _ in range(2))
    one_relinked, other_relinked = (block_effects(rng) + noise.draw(rng, shape) for _ in range(2))
    ratio = course(other - one)
    twins = [
        course(again - arm)
        for arm, again in (
            (one, one_again),
            (one, one_relinked),
            (other, other_again),
            (other, other_relinked),
        )
    ]
    blocks = stopped_at([ratio, *twins], target)
    bounds = np.array([twin.at(blocks)[1:] for twin in twins])  # (twins, ends, runs)
    floors = np.abs(bounds).max(axis=(0, 1))

    def share_called(truth: float) -> float:
        ends = np.exp(np.transpose(ratio.at(blocks)) + log(truth))
        found = (Estimate(value, low, high, 9, 9, 0.95) for value, low, high in ends)
        return float(np.mean([differs(f, x) for f, x in zip(found, floors, strict=True)]))

    assert share_called(1.05) >= 0.9
    assert share_called(1.0) <= 0.07
    # Nor would the interval alone call more than it may.
    _, low, high = ratio.at(blocks)
    assert np.mean((low > 0) | (high < 0)) <= 0.07
