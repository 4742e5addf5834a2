"""Costs, intervals and looks behave as gccost.stats documents."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isnan, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy.stats import ttest_ind

from gccost.stats import (
    JUDGED,
    LEAST_SPREAD,
    LOW,
    SYSTEMATIC,
    WIDENING,
    Cost,
    Estimate,
    Width,
    amount,
    combine,
    floor,
    half_width,
    heterogeneity,
    joint,
    level,
    linearity,
    narrowing,
    share,
)

positive = st.floats(1e-6, 1e12)
values = st.lists(positive, min_size=1, max_size=40)


def half_width_of(cost: Cost, confidence: float) -> float:
    """Half the interval of a cost on the log scale."""
    return float(half_width(cost.spread, cost.rounds, confidence))


def t(freedom: int, confidence: float) -> float:
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


def shown(cost: Cost, width: Width = Width()) -> Estimate:  # noqa: B008 - it is frozen
    return combine(float, [cost], width)


# --- the undisturbed cost ---------------------------------------------------------


def test_a_floor_ignores_bursts_and_lucky_builds() -> None:
    """Three rounds of four processes: all but one per round have a burst; one build is lucky."""
    quantiles = [130, 100, 125, 160, 80, 95, 92, 140, 101, 150, 170, 102]
    cost = floor(quantiles, np.repeat([1, 2, 3], 4))
    assert cost.log == pytest.approx(level([100, 80, 101]).log)
    assert 80 < exp(cost.log) < 100  # between the luckiest and the median build
    assert (cost.rounds, cost.samples) == (3, 12)
    worse = np.where(np.isin(quantiles, [100, 80, 101]), quantiles, 5 * np.array(quantiles))
    assert floor(worse, np.repeat([1, 2, 3], 4)) == cost


def test_a_level_is_the_median_unbiased_lower_quartile() -> None:
    # With five samples, it is two thirds of the way from the first to the second.
    assert level(np.exp([4, 0, 3, 1, 2])).log == pytest.approx(2 / 3)
    assert level(np.exp([4, 0, 3, 1, 2]), 0.5).log == pytest.approx(2)
    rng = np.random.default_rng(1)
    truth = special.ndtri(LOW)
    below = [level(np.exp(rng.normal(0, 1, 7))).log < truth for _ in range(2000)]
    assert np.mean(below) == pytest.approx(0.5, abs=0.04)


def test_disturbances_do_not_widen_intervals_of_eight_samples() -> None:
    quiet = [100, 101, 99, 102, 98, 100, 103, 97]
    disturbed = [*quiet[:5], 130, 140, 128]
    assert level(disturbed).spread == pytest.approx(level(quiet).spread, abs=0.01)
    assert level(disturbed[:7]).spread > 0.1  # with fewer samples, all count
    assert level(disturbed, 0.5).spread > 0.1  # a median, as for memory, has no such protection


@given(values, st.sampled_from([2.0**k for k in range(-9, 10)]))
def test_costs_scale_with_samples_and_ignore_their_order(x: list[float], factor: float) -> None:
    rounds = [i % 5 for i in range(len(x))]
    for cost, scaled in (
        (level(x), level([factor * v for v in reversed(x)])),
        (floor(x, rounds), floor([factor * v for v in reversed(x)], rounds[::-1])),
    ):
        assert scaled.log == pytest.approx(cost.log + log(factor), abs=1e-9)
        assert scaled.spread == pytest.approx(cost.spread, abs=1e-9)


@given(values, st.sampled_from([nan, 0.0, -1.0, inf]))
def test_invalid_samples_are_skipped(x: list[float], useless: float) -> None:
    assert level([*x, useless]) == level(x)
    rounds = list(range(len(x)))
    assert floor([*x, useless], [*rounds, 99]) == floor(x, rounds)


# --- intervals --------------------------------------------------------------------


def test_intervals_match_the_documented_formula() -> None:
    x = [1.0, 1.1, 0.9, 1.3, 1.2, 1.0]
    cost, found = level(x), shown(level(x))
    s = np.std(np.log(x), ddof=1)
    half = sqrt((1.5 * t(5, 0.95) * s / sqrt(6)) ** 2 + 0.03**2)
    assert found.value == pytest.approx(exp(cost.log))
    assert [found.low, found.high] == pytest.approx([exp(cost.log - half), exp(cost.log + half)])
    assert (found.samples, found.rounds, found.confidence) == (6, 6, 0.95)
    judged = shown(cost, JUDGED)
    assert log(judged.high / judged.value) == pytest.approx(1.5 * t(5, 0.99) * s / sqrt(6))
    least = WIDENING * t(5, 0.99) * LEAST_SPREAD / sqrt(6)
    assert half_width_of(level([7.0] * 6), 0.99) == pytest.approx(least)


@given(values)
def test_intervals_contain_the_estimate_and_grow_with_confidence(x: list[float]) -> None:
    narrow, wide = (shown(level(x), Width(c)) for c in (0.9, 0.99))
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high
    assert narrow.contains(narrow.value)


def test_one_round_has_a_value_but_no_interval() -> None:
    one = shown(level([6.0]))
    assert (one.value, one.low, one.high, one.rounds) == (pytest.approx(6), 0, inf, 1)
    assert one.half_width == inf
    for nothing in (shown(level([])), shown(floor([nan], [1])), amount([]), share([])):
        assert isnan(nothing.value)
        assert nothing.samples == nothing.rounds == 0
        assert nothing.half_width == inf
    assert not combine(lambda a, b: a / b, [level([6.0, 6.1]), level([])]).samples
    assert Estimate(-4.0, -4.2, -3.9, 9, 9, 0.95).half_width == pytest.approx(0.3 / 8)
    assert amount([-1, 0, 0, 1]).half_width == inf
    costs = [level([1.0, 1.1]), level([2.0, 2.1])]
    assert not combine(lambda a, b: a - b, costs).samples  # negative, so it needs `signed`
    assert combine(lambda a, b: a - b, costs, signed=True).value == pytest.approx(-1, rel=0.1)


def test_joint_intervals_are_those_of_welch() -> None:
    one, other = [1.0, 1.4, 0.9, 1.2], [3.0, 3.1, 2.8, 3.3, 3.0, 2.9]
    halves = [t(len(x) - 1, 0.95) * np.std(x, ddof=1) / sqrt(len(x)) for x in (one, other)]
    low, high = ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert joint(halves, (4, 6), 0.95) == pytest.approx((high - low) / 2)
    assert joint([halves[0]], (4,), 0.95) == pytest.approx(halves[0])
    assert joint([halves[0], 0.0], (4, 6), 0.95) == pytest.approx(halves[0])
    assert joint([halves[0], inf], (4, 1), 0.95) == inf
    assert joint([], (), 0.95) == joint([0.0], (4,), 0.95) == 0
    each = joint(np.array([[halves[0], inf], [halves[1], 1.0]]), (4, 6), 0.95)
    assert each == pytest.approx([(high - low) / 2, inf])


A, B, C, D = 900.0, 100.0, 240.0, 80.0


@pytest.mark.parametrize(
    ("function", "figures", "signed", "slopes"),
    [
        # Slopes: derivatives of the figure (its logarithm if not signed) by each cost's logarithm.
        (lambda a, b: a / b, (A, B), False, (1, -1)),
        (lambda a, b: a - b, (A, B), True, (A, -B)),
        (
            lambda before, after, base: (before - after) / (before - base),
            (A, C, B),
            True,
            (A * (C - B) / (A - B) ** 2, -C / (A - B), B * (A - C) / (A - B) ** 2),
        ),
        (
            lambda a, b, c, d: (a - b) / (c - d),
            (A, B, C, D),
            False,
            (A / (A - B), -B / (A - B), -C / (C - D), D / (C - D)),
        ),
    ],
    ids=["ratio", "difference", "saved", "dip"],
)
def test_the_delta_method_agrees_with_the_closed_form(
    function: Callable[..., float],
    figures: tuple[float, ...],
    signed: bool,
    slopes: tuple[float, ...],
) -> None:
    costs = [Cost(log(x), 0.02 * (i + 1), 4 + i, 4 + i) for i, x in enumerate(figures)]
    found = combine(function, costs, signed=signed)
    parts = [abs(s) * half_width_of(cost, 0.95) for s, cost in zip(slopes, costs, strict=True)]
    own = joint(parts, [cost.rounds for cost in costs], 0.95)
    half = sqrt(own**2 + (SYSTEMATIC * max(map(abs, slopes))) ** 2)
    value = function(*figures)
    ends = [value - half, value + half] if signed else [value * exp(-half), value * exp(half)]
    assert found.value == pytest.approx(value)
    assert [found.low, found.high] == pytest.approx(ends, rel=1e-5)
    assert (found.samples, found.rounds) == (4, 4)


# --- counts, shares, and unseen events ----------------------------------------


def test_identical_counts_have_zero_width() -> None:
    assert amount([2] * 5) == Estimate(2, 2, 2, 5, 5, 0.95)
    found = amount([1, 2, 2, 3, nan])
    assert (found.value, found.samples) == (2, 4)
    assert found.high - 2 == pytest.approx(1.5 * t(3, 0.95) * np.std([1, 2, 2, 3], ddof=1) / 2)


def test_share_intervals_stay_between_0_and_1() -> None:
    few, all_ = share([0.0, 0.0, 0.02, 0.01]), share([1.0, 0.97, 1.0, 0.99])
    assert 0 <= few.low <= few.value <= few.high < 0.2
    assert 0.8 < all_.low <= all_.value <= all_.high <= 1
    assert share([0.2]).half_width == inf
    assert share([0.3, 1.5, -1.0, 0.3, 0.3]).samples == 3


def test_more_rounds_narrow_an_interval_as_predicted() -> None:
    few, many = Cost(0, 0.1, 4, 4), Cost(0, 0.1, 10, 10)
    assert narrowing(4, 10, 0.99) == pytest.approx(
        half_width_of(many, 0.99) / half_width_of(few, 0.99)
    )


# --- heterogeneity -------------------------------------------------------------------


def test_heterogeneity_detects_scattered_ratios_among_two_or_more() -> None:
    """p < 0.01 for at most 1 % of agreeing sets, but for 90 % of sets with one ratio 15 % off."""
    assert isnan(heterogeneity([Estimate(2, 2, 2, 5, 5, 0.95), Estimate(2, 0, inf, 1, 1, 0.95)]))
    rng = np.random.default_rng(3)

    def p(last: float) -> float:
        logs = rng.normal([[0.0]] * 3 + [[last]], 0.02, (4, 12))
        return heterogeneity([shown(level(np.exp(row)), Width(systematic=0.0)) for row in logs])

    assert np.mean([p(0.0) < 0.01 for _ in range(500)]) <= 0.01
    assert np.mean([p(0.15) < 0.01 for _ in range(100)]) >= 0.9


def test_linearity_ignores_a_disturbed_process() -> None:
    x = np.arange(9)
    times = np.outer(np.linspace(1, 1.02, 8), 10 + 5 * x)
    times[2, 4:] *= 1.6
    found = linearity(x, times, JUDGED)
    assert found.value == pytest.approx(1, abs=1e-4)
    assert (found.rounds, found.high) == (8, 1)
    bent = linearity(x, np.outer(np.linspace(1, 1.02, 8), 10 + x**3), JUDGED)
    assert bent.low < bent.value < bent.high < 0.95
    assert linearity(x, times[:1]).low == -inf
