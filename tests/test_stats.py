"""Quartiles, figures and intervals behave as gccost.stats documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, isnan, log, nan, sqrt
from operator import sub, truediv

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from gccost.costs.kinds import SITTING, Kinds, quartile, scatter
from gccost.costs.models import amount, heterogeneity, linearity
from gccost.judging.ledger import after
from gccost.stats import (
    FEWEST,
    JUDGED,
    MEDIAN,
    QUARTILE,
    WEIGHT,
    Estimate,
    Figure,
    Sitting,
    between,
    estimate,
    propagate,
)

times = st.lists(st.floats(1e-6, 1e12), min_size=1, max_size=20)


def figure(
    values: Sequence[float], error: float = 0.0, spread: float = 0.0, rounds: int = 8
) -> Figure:
    """A figure with these values in its sittings; the error and the kinds' spread are relative."""
    sittings = {float(i): Sitting(x, error * abs(x), rounds) for i, x in enumerate(values, 1)}
    return Figure(sittings, spread * float(np.mean(values)), rounds * len(values))


def half(known: Estimate) -> float:
    """Half of an interval's length on the log scale."""
    return log(known.high / known.value)


def t(freedom: float, confidence: float) -> float:
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


# --- a sitting --------------------------------------------------------------------------


def rounds(*sittings: Sequence[float]) -> pd.Series:
    """The rounds of sittings of one case."""
    at = [("kind", "A", k, i) for k, each in enumerate(sittings) for i in range(len(each))]
    index = pd.MultiIndex.from_tuples(at, names=[*SITTING, "round"])
    return pd.Series([value for each in sittings for value in each], index, dtype=float)


def test_a_quartile_is_numpys_that_hardly_depends_on_the_number_of_values():
    groups = [np.random.default_rng(n).lognormal(size=n) for n in range(1, 21)]
    numpys = [np.quantile(each, 0.25, method="median_unbiased") for each in groups]
    assert quartile(rounds(*groups), SITTING).to_list() == pytest.approx(numpys, rel=1e-14)


NOISES = {
    "normal": lambda chance, size: chance.normal(size=size),
    "lognormal": lambda chance, size: chance.lognormal(sigma=0.2, size=size),
}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 20])
@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_the_lower_half_shows_the_scatter_from_three_rounds_on(noise, n):
    groups = noise(np.random.default_rng(1), (4000, n))
    shown = scatter(rounds(*groups))
    if n < FEWEST:
        assert shown.empty
        return
    estimated = shown["kind"] ** 2
    assert 0.8 <= estimated / groups.var() <= 1.6
    costs = quartile(rounds(*groups), SITTING)  # whose error it is used for
    assert 0.9 <= QUARTILE * estimated / n / np.var(costs) <= 1.8


def test_groups_of_one_or_two_rounds_show_no_scatter():
    three = [1.0, 2.0, 3.0]
    assert scatter(rounds(three, [5.0], [1.0, 9.0]))["kind"] == scatter(rounds(three))["kind"]


# --- a figure of several costs --------------------------------------------------------------


def test_a_ratio_is_read_in_each_sitting_and_their_logs_are_averaged():
    over, under = figure([600.0, 1600.0, 99.0]), figure([60.0, 40.0])
    made = propagate(truediv, [over, under])
    assert [each.value for each in made.counted] == [10.0, 40.0]
    assert estimate(made).value == pytest.approx(20.0)
    assert (made.rounds, made.n) == (16, 16)


def test_two_sides_that_were_never_in_one_sitting_have_no_ratio():
    over, under = figure([600.0]), figure([60.0])
    apart = replace(under, sittings={2.0: under.sittings[1.0]})
    made = estimate(propagate(truediv, [over, apart]))
    assert isnan(made.value)
    assert (made.n, made.rounds) == (0, 0)


A, B, C = 900.0, 100.0, 240.0


@pytest.mark.parametrize(
    ("function", "slopes"),
    [
        # The derivatives by each cost's logarithm.
        (lambda a, b, c: log(a / b), (1, -1, 0)),
        (lambda a, b, c: a - 2 * b, (A, -2 * B, 0)),
        (
            lambda before, base, after: (before - after) / (before - base),
            (A * (C - B) / (A - B) ** 2, B * (A - C) / (A - B) ** 2, -C / (A - B)),
        ),
    ],
    ids=["log of a ratio", "difference", "saved"],
)
def test_the_delta_method_agrees_with_the_closed_form(function, slopes):
    errors, spreads = (0.01, 0.02, 0.03), (0.05, 0.0, 0.04)
    costs = [figure([x], *each) for x, *each in zip((A, B, C), errors, spreads, strict=True)]
    made = propagate(function, costs)
    assert made.sittings[1.0].value == pytest.approx(function(A, B, C))
    assert made.sittings[1.0].error == pytest.approx(np.linalg.norm(np.multiply(slopes, errors)))
    assert made.spread == pytest.approx(np.linalg.norm(np.multiply(slopes, spreads)))


def test_a_figure_that_is_derived_twice_is_that_derived_at_once():
    a, b, c = (figure([x], 0.02, 0.03) for x in (A, B, C))
    once = propagate(lambda a, b, c: a / b / c, [a, b, c])
    twice = propagate(truediv, [propagate(truediv, [a, b]), c])
    assert twice.sittings[1.0] == pytest.approx(once.sittings[1.0])
    assert twice.spread == pytest.approx(once.spread)


def test_a_time_of_zero_below_a_ratio_leaves_out_its_sitting():
    made = propagate(truediv, [figure([600.0, 600.0]), figure([60.0, 0.0])])
    assert [*made.sittings] == [1.0]
    assert isnan(estimate(propagate(truediv, [figure([600.0]), figure([0.0])])).value)


@pytest.mark.parametrize("wrong", [nan, inf, 0.0, -1.0])
@pytest.mark.parametrize("at", [0, 2])
def test_a_ratio_that_is_no_positive_number_in_a_sitting_has_no_value(wrong, at):
    values = [2.0, 2.1]
    values.insert(at, wrong)
    known = figure([2.0, 2.1, 2.2], 0.01)
    assert isnan(estimate(figure(values, 0.01)).value)
    assert estimate(replace(known, recorded=figure(values, 0.01))) == estimate(known)


def test_the_recorded_figure_of_a_ratio_is_that_of_the_recorded_costs():
    a, b = (replace(figure([x]), recorded=figure([2 * x, 3 * x])) for x in (A, B))
    made = propagate(lambda a, b: a - b, [a, b])
    assert made.recorded == propagate(lambda a, b: a - b, [a.recorded, b.recorded])
    assert propagate(truediv, [a, figure([B])]).recorded is None


# --- intervals --------------------------------------------------------------------------


def test_an_interval_is_the_documented_one():
    values, error, kinds = np.array([9.0, 10.0, 12.0]), 0.02, 0.05
    known = estimate(figure(values, error, kinds))
    logs, k = np.log(values), 3
    centre, own = logs.mean(), logs.var(ddof=1) - error**2
    prior = (kinds * values.mean() / exp(centre)) ** 2
    spread = ((k - 1) * own + WEIGHT * prior) / (k - 1 + WEIGHT)
    width = t(k - 1 + WEIGHT, 0.95) * sqrt((spread + error**2) / k)
    assert [known.low, known.value, known.high] == pytest.approx(
        [exp(centre - width), exp(centre), exp(centre + width)]
    )
    assert (known.n, known.rounds, known.confidence) == (24, 24, 0.95)
    assert known.lasting == pytest.approx(spread / (spread + error**2))


def test_the_prior_is_what_the_recorded_sittings_show_of_the_same_ratio():
    own, calm, rough = (figure(x, 0.01, 0.1) for x in ([5.0], [5.0] * 17, [3.0, 8.0] * 9))
    alone, with_calm, with_rough = (
        half(estimate(replace(own, recorded=recorded))) for recorded in (None, calm, rough)
    )
    assert with_calm < alone < with_rough
    few = figure([3.0, 5.0, 8.0], 0.01)
    expected = t(2, 0.95) * sqrt(between(few)[0] + 0.01**2)
    assert half(estimate(replace(own, recorded=few))) == pytest.approx(expected)
    # Two sittings show no spread.
    assert half(estimate(replace(own, recorded=figure([3.0, 8.0], 0.01)))) == alone


def drawn(chance: np.random.Generator, k: int, spread: float) -> Figure:
    """A ratio whose truth is 5, from rounds in k sittings; its kinds show the true spread."""
    sittings = 5 * np.exp(chance.normal(scale=spread, size=(k, 1)))
    costs = []
    for level in (sittings, 1.0):
        side = level * np.exp(chance.normal(scale=0.05, size=(k, 6)))
        values = np.quantile(side, 0.25, axis=1, method="median_unbiased")
        costs.append(figure(values, 0.05 * sqrt(QUARTILE / 6), spread / sqrt(2), 6))
    return propagate(truediv, costs)


@pytest.mark.parametrize("k", [1, 2, 5, 17])
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_intervals_contain_the_truth(k, recorded, spread):
    chance, hits = np.random.default_rng(k), []
    for _ in range(400):
        other = drawn(chance, 17, spread) if recorded else None
        known = replace(drawn(chance, k, spread), recorded=other)
        hits.append([estimate(known, c).contains(5) for c in (0.5, 0.95)])
    half_of, most = np.mean(hits, axis=0)
    assert 0.45 <= half_of <= 0.70
    assert most >= 0.93


@given(times, st.floats(0, 0.5))
def test_an_interval_contains_its_value_and_grows_with_confidence(values, error):
    narrow, wide = (estimate(figure(values, error), c) for c in (0.9, 0.99))
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high


def test_equal_times_have_no_width():
    known = estimate(figure([7.0, 7.0, 7.0]))
    assert known.low == known.high == pytest.approx(7)
    assert known.half_width == known.lasting == 0


@pytest.mark.parametrize("error", [0.02, nan])
def test_one_process_has_a_value_and_no_interval(error):
    known = estimate(figure([6.0], error, rounds=1))
    assert (known.value, known.low, known.high) == (pytest.approx(6), -inf, inf)
    assert known.half_width == inf


def test_a_sitting_with_one_process_counts_only_without_better_ones():
    better, worse = figure([6.0, 6.2], 0.01), figure([99.0], 0.01, rounds=1)
    both = replace(better, sittings={**better.sittings, 3.0: worse.sittings[1.0]})
    assert estimate(both) == estimate(better)
    assert estimate(worse).value == pytest.approx(99)


def test_nothing_has_no_estimate():
    known = estimate(Figure())
    assert isnan(known.value)
    assert known.n == known.rounds == 0
    assert known.half_width == inf
    assert between(Figure()) == (0.0, 0)


def test_sittings_in_any_order_give_the_same_bytes():
    chance = np.random.default_rng(7)
    known = figure(chance.lognormal(size=9), 0.03, 0.05)
    recorded = figure(chance.lognormal(size=9), 0.03, 0.05)

    def shuffled(of: Figure) -> Figure:
        numbers = chance.permutation([*of.sittings])
        return replace(of, sittings={number: of.sittings[number] for number in numbers})

    expected = estimate(replace(known, recorded=recorded))
    for _ in range(20):
        again = replace(shuffled(known), recorded=shuffled(recorded))
        assert estimate(again) == expected
        ratio = propagate(truediv, [shuffled(known), shuffled(recorded)])
        assert ratio == propagate(truediv, [known, recorded])


def test_what_may_be_negative_has_an_interval_on_the_linear_scale():
    made = propagate(sub, [figure([5.0, 6.0, 5.5], 0.01), figure([6.0, 5.0, 5.8], 0.01)])
    known = estimate(made, signed=True)
    assert known.value == pytest.approx(-0.1)
    assert known.low < 0 < known.high
    assert known.high - known.value == pytest.approx(known.value - known.low)
    assert isnan(estimate(made).value)
    assert estimate(figure([0.0, 0.0, 0.0]), signed=True).low == 0


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_the_spread_between_sittings_is_beyond_their_own_errors(signed, spread):
    chance = np.random.default_rng(3)
    errors = chance.normal(scale=np.hypot(0.2, spread), size=2000)
    values = 5 + errors if signed else np.exp(errors)
    made = enumerate(Sitting(x, 0.2 if signed else 0.2 * x, 8) for x in values)
    variance, k = between(Figure(dict(made)), signed=signed)
    assert (variance, k) == (pytest.approx(spread**2, abs=0.01), 2000)


def test_a_ratio_is_at_least_as_wide_as_that_of_its_control():
    a, b = figure([600.0, 605.0], 0.01), figure([60.0, 60.2], 0.01)
    rough = propagate(truediv, [figure([50.0, 70.0], 0.05, 0.2), b])
    controlled = replace(b, controls={"b again": rough})
    plain, wide = (propagate(truediv, [a, under]) for under in (b, controlled))
    for confidence in (0.95, JUDGED):
        control = estimate(rough, confidence)
        assert half(estimate(plain, confidence)) < half(control)
        assert half(estimate(wide, confidence)) == pytest.approx(half(control))
    assert estimate(wide).value == estimate(plain).value
    # The recorded sittings show the control's spread too.
    calm = replace(rough, recorded=figure([1.0] * 17, 0.01))
    assert half(estimate(replace(wide, controls={"b again": calm}))) < half(estimate(wide))
    # A control with too few rounds, or a narrow one, widens nothing, nor is a cost a ratio.
    few = figure([1.0, 9.0], 0.1, rounds=1)
    for control in (few, figure([1.0], 0.001)):
        made = propagate(truediv, [a, replace(b, controls={"b again": control})])
        assert estimate(made) == estimate(plain)
    assert estimate(controlled) == estimate(b)


def test_more_rounds_narrow_what_they_can_and_more_sittings_all():
    known = Estimate(10.0, 10 / 1.2, 12.0, 4, 4, 0.99, lasting=0.36)
    assert half(after(known, rounds=4)) == pytest.approx(log(1.2) * sqrt(0.36 + 0.64 / 4))
    assert half(after(known, sittings=4)) == pytest.approx(log(1.2) / 2)
    assert after(known) == pytest.approx(known)
    below = Estimate(1.0, -1.0, 3.0, 4, 4, 0.99, parts=(known,))
    later = after(below, sittings=4)
    assert (later.low, later.high) == (0.0, 2.0)
    assert later.parts == (after(known, sittings=4),)


# --- single questions ---------------------------------------------------------------------


def test_amounts_are_medians():
    assert amount([2] * 5) == Estimate(2, 2, 2, 5, 5, 0.95)
    known = amount([1, 2, 2, 3, nan])
    assert (known.value, known.n) == (2, 4)
    width = sqrt(MEDIAN) * t(3, 0.95) * np.std([1, 2, 2, 3], ddof=1) / 2
    assert known.high - 2 == pytest.approx(width)
    assert amount([]).n == 0
    assert amount([-1, 0, 0, 1]).half_width == inf


@pytest.mark.parametrize(
    ("low", "high", "rounds"), [(0, 2.5, 5), (1.5, inf, 5), (1.5, 2.5, 1), (0, inf, 1)]
)
def test_heterogeneity_leaves_out_ratios_without_an_interval(low, high, rounds):
    known = Estimate(2, 1.9, 2.1, 5, 5, 0.95)
    unknown = Estimate(9, low, high, rounds, rounds, 0.95)
    assert isnan(heterogeneity([known, unknown]))
    assert heterogeneity([known, known, unknown]) == heterogeneity([known, known])


@pytest.mark.parametrize(("metric", "value"), [("MB_per_s", 400), ("parse_ns", 25), ("score", 100)])
def test_a_cost_of_a_sitting_has_the_metrics_own_unit(metric, value):
    frame = pd.DataFrame({"kind": "", "name": "", "sitting": 1.0, "round": range(3)})
    made = Kinds(frame.assign(**{metric: [10.0, 100.0, 1000.0]}))
    figure = made.cost("", metric, Kinds(made.frame[:0]))
    assert [each.value for each in figure.sittings.values()] == [pytest.approx(value)]


def test_heterogeneity_detects_scattered_ratios_among_two_or_more():
    """p < 0.01 for about 1 % of agreeing sets, but for 90 % of sets with one ratio 15 % off."""
    assert isnan(heterogeneity([Estimate(2, 2, 2, 5, 5, 0.95), Estimate(2, 0, inf, 1, 1, 0.95)]))
    chance = np.random.default_rng(3)

    def p(last: float) -> float:
        values = (exp(chance.normal(shift, 0.02)) for shift in (0.0, 0.0, 0.0, last))
        width = exp(1.96 * 0.02)
        return heterogeneity([Estimate(x, x / width, x * width, 9, 9, 0.95) for x in values])

    assert np.mean([p(0.0) < 0.01 for _ in range(500)]) <= 0.03
    assert np.mean([p(0.15) < 0.01 for _ in range(100)]) >= 0.9


def test_linearity_of_a_line_and_of_a_curve():
    x = np.arange(9)
    times = np.outer(np.linspace(1, 1.02, 8), 10 + 5 * x)
    straight = linearity(x, times, JUDGED)
    assert straight.value == pytest.approx(1, abs=1e-4)
    assert (straight.rounds, straight.high) == (8, 1)
    bent = linearity(x, np.outer(np.linspace(1, 1.02, 8), 10 + x**3), JUDGED)
    assert bent.low < bent.value < bent.high < 0.95
    assert linearity(x, times[:1]).low == -inf
