"""Rounds, levels, figures and intervals behave as gccost.costs.method documents."""

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

from gccost.costs import method
from gccost.costs.method import (
    NONE,
    RATIOS,
    SITTING,
    Costs,
    Figure,
    Sitting,
    Spread,
    estimate,
    propagate,
    variance_factor,
)
from gccost.costs.models import amount, heterogeneity, linearity
from gccost.judging.ledger import after
from gccost.stats import JUDGED, Estimate

times = st.lists(st.floats(1e-6, 1e12), min_size=1, max_size=20)
PRIOR = Spread(0.05**2, 4.0, 0.02**2)


def figure(
    values: Sequence[float], error: float = 0.0, prior: Spread = NONE, rounds: int = 8
) -> Figure:
    """A figure with these values in its sittings; the error and the prior are relative."""
    sittings = {float(i): Sitting(x, error * abs(x), rounds) for i, x in enumerate(values, 1)}
    of_value = prior.times(float(np.mean(values)) ** 2)
    return Figure(sittings, rounds * len(values), of_value, of_value)


def half(known: Estimate) -> float:
    """Half of an interval's length on the log scale."""
    return log(known.high / known.value)


def t(freedom: float, confidence: float) -> float:
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


# --- a sitting --------------------------------------------------------------------------


def rounds(*sittings: Sequence[float], name: str = "A") -> pd.Series:
    """The rounds of sittings of one case."""
    at = [(name, k, i) for k, each in enumerate(sittings) for i in range(len(each))]
    index = pd.MultiIndex.from_tuples(at, names=[*SITTING, "round"])
    return pd.Series([value for each in sittings for value in each], index, dtype=float)


def test_a_quartile_is_numpys_that_hardly_depends_on_the_number_of_values():
    groups = [np.random.default_rng(n).lognormal(size=n) for n in range(1, 21)]
    numpys = [np.quantile(each, 0.25, method="median_unbiased") for each in groups]
    made = method.quartile(rounds(*groups), SITTING)
    assert made.to_list() == pytest.approx(numpys, rel=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 20])
@pytest.mark.parametrize(("statistic", "share"), [(method.quartile, 0.25), (method.median, 0.5)])
def test_the_variance_of_a_statistic_is_that_of_so_many_values(statistic, share, n):
    drawn = np.random.default_rng(5).normal(size=(n, 40_000))
    values = np.quantile(drawn, share, axis=0, method="median_unbiased")
    assert variance_factor(statistic, n) == pytest.approx(values.var(), rel=0.06)


def test_the_error_of_a_level_is_the_scatter_of_its_rounds():
    chance = np.random.default_rng(2)
    cases = [
        rounds(*np.exp(chance.normal(scale=0.04, size=(3, 6))), name=f"case {i}") for i in range(80)
    ]
    made = pd.concat(cases)
    scatter = method.scatter(made, "ns")
    assert np.sqrt(scatter.median()) == pytest.approx(0.04, rel=0.05)
    levels = method.levels(made, "ns", scatter)
    shown = np.log(levels["value"]).var()
    assert levels["variance"].mean() == pytest.approx(shown, rel=0.25)


def test_the_scatter_of_one_case_is_shrunk_to_that_of_the_others():
    chance = np.random.default_rng(2)
    many = [rounds(np.exp(chance.normal(scale=0.02, size=4)), name=f"case {i}") for i in range(60)]
    wild = rounds([1.0, 1.5, 1.0, 1.5], name="wild")
    scatter = method.scatter(pd.concat([*many, wild]), "ns")
    assert 0.02**2 < scatter["wild"] < np.log(wild).var()


# --- priors -------------------------------------------------------------------------------


@pytest.mark.parametrize("d0", [3.0, 8.0])
@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_a_prior_is_found_again_from_variances_that_were_drawn_from_it(d0, slope):
    chance = np.random.default_rng(4)
    errors = np.exp(chance.normal(scale=1.0, size=4000))
    freedom = chance.integers(2, 12, size=4000)
    truth = 0.01 * errors**slope * d0 / chance.chisquare(d0, size=4000)
    variances = truth * chance.chisquare(freedom) / freedom
    made = method.fitted(variances, freedom, errors)
    assert made.freedom == pytest.approx(d0, rel=0.15)
    assert made.at(1.0) == pytest.approx(0.01, rel=0.1)
    assert made.slope == pytest.approx(slope, abs=0.07)


def test_variances_that_are_alike_have_a_prior_that_is_taken_as_known():
    chance = np.random.default_rng(4)
    made = method.fitted(0.01 * chance.chisquare(5, size=40) / 5, np.full(40, 5))
    assert made.freedom > 30


@pytest.mark.parametrize("variances", [[], [0.1, 0.2], [0.0] * 9, [0.0, 0.0, 0.0, 0.1]])
def test_variances_that_are_too_few_or_0_have_no_prior(variances):
    assert method.fitted(variances, np.ones(len(variances))).freedom == 0


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
    errors = (0.01, 0.02, 0.03)
    costs = [figure([x], error, PRIOR) for x, error in zip((A, B, C), errors, strict=True)]
    made = propagate(function, costs)
    assert made.sittings[1.0].value == pytest.approx(function(A, B, C))
    assert made.sittings[1.0].error == pytest.approx(np.linalg.norm(np.multiply(slopes, errors)))
    assert made.shared.variance == pytest.approx(np.square(slopes).sum() * PRIOR.variance)
    assert made.shared.error == pytest.approx(np.square(slopes).sum() * PRIOR.error)


def test_one_cost_keeps_its_own_prior_and_a_ratio_has_that_of_ratios():
    alone, shared = Spread(4.0, 2.0), Spread(1.0, 5.0)
    cost = replace(figure([10.0]), alone=alone, shared=shared)
    doubled = propagate(lambda x: 2 * x, [cost])
    assert doubled.alone == pytest.approx(alone.times(4))
    assert doubled.shared == pytest.approx(shared.times(4))
    ratio = propagate(truediv, [cost, cost])
    assert ratio.alone == ratio.shared == pytest.approx(shared.times(2 / 10.0**2))


def test_a_figure_that_is_derived_twice_is_that_derived_at_once():
    a, b, c = (figure([x], 0.02, PRIOR) for x in (A, B, C))
    once = propagate(lambda a, b, c: a / b / c, [a, b, c])
    twice = propagate(truediv, [propagate(truediv, [a, b]), c])
    assert twice.sittings[1.0] == pytest.approx(once.sittings[1.0])
    assert twice.shared == pytest.approx(once.shared)


def test_a_time_of_zero_below_a_ratio_leaves_out_its_sitting():
    made = propagate(truediv, [figure([600.0, 600.0]), figure([60.0, 0.0])])
    assert [*made.sittings] == [1.0]
    assert isnan(estimate(propagate(truediv, [figure([600.0]), figure([0.0])])).value)


@pytest.mark.parametrize("wrong", [nan, inf, 0.0, -1.0])
@pytest.mark.parametrize("at", [0, 2])
def test_a_ratio_that_is_no_positive_number_in_a_sitting_has_no_value(wrong, at):
    values = [2.0, 2.1]
    values.insert(at, wrong)
    known = figure([2.0, 2.1, 2.2], 0.01, PRIOR)
    assert isnan(estimate(figure(values, 0.01)).value)
    assert estimate(replace(known, history=(figure(values, 0.01),))) == estimate(known)


def test_the_recorded_figures_of_a_ratio_are_those_of_the_recorded_costs():
    past = [figure([2 * x, 3 * x]) for x in (A, B)]
    a, b = (
        replace(figure([x]), recorded=each, history=(each,))
        for x, each in zip((A, B), past, strict=True)
    )
    made = propagate(sub, [a, b])
    assert made.recorded == propagate(sub, past)
    assert made.history == (propagate(sub, past),)
    assert propagate(truediv, [a, figure([B])]).recorded is None
    assert propagate(truediv, [a, figure([B])]).history == ()


# --- intervals --------------------------------------------------------------------------


@pytest.mark.parametrize("error", [0.02, 0.05])
def test_an_interval_is_the_documented_one(error):
    own, recorded = np.log([9.0, 10.0]), np.log([9.0, 10.0, 12.0, 11.0])
    past = figure(np.exp(recorded), 0.03)
    trend = PRIOR._replace(slope=1.2)
    known = estimate(replace(figure(np.exp(own), error, trend), history=(past,)))
    m, k, d0 = 2, 4, PRIOR.freedom
    excess = max(error**2 - 0.03**2, 0)
    centre = np.exp(own).mean() ** 2 / np.exp(own.mean()) ** 2  # of the prior
    s0 = centre * PRIOR.variance * (error**2 / (centre * PRIOR.error)) ** 1.2
    squares = d0 * s0 + (k - 1) * (recorded.var(ddof=1) + excess) + (m - 1) * own.var(ddof=1)
    freedom = d0 + k - 1 + m - 1
    width = t(freedom, 0.95) * sqrt(squares / freedom / m)
    assert [known.low, known.value, known.high] == pytest.approx(
        [exp(own.mean() - width), exp(own.mean()), exp(own.mean() + width)]
    )
    assert (known.n, known.rounds, known.confidence) == (16, 16, 0.95)


def test_the_spread_of_a_ratio_is_that_of_its_recorded_sittings():
    own, calm, rough = (figure(x, 0.01, PRIOR) for x in ([5.0], [5.0] * 17, [3.0, 8.0] * 9))
    never, with_calm, with_rough = (
        half(estimate(replace(own, history=history))) for history in ((), (calm,), (rough,))
    )
    assert with_calm < never < with_rough
    # The nearest run comes first, unless it has too few sittings to show a spread.
    few = figure([3.0], 0.01)
    assert half(estimate(replace(own, history=(calm, rough)))) == with_calm
    assert half(estimate(replace(own, history=(few, rough)))) == with_rough
    two = figure([5.0, 5.1], 0.01)
    assert half(estimate(replace(own, history=(two, rough)))) == with_rough
    assert half(estimate(replace(own, history=(few, two)))) != never


def test_a_sitting_of_scattered_rounds_has_a_wider_interval_than_a_calm_one():
    past = figure([5.0, 5.1, 4.9, 5.05], 0.01)
    calm, rough = (
        half(estimate(replace(figure([5.0], error, PRIOR), history=(past,))))
        for error in (0.01, 0.1)
    )
    assert rough > 1.5 * calm
    # A steady load shifts all rounds alike, and widens nothing.
    shifted = half(estimate(replace(figure([9.0], 0.01, PRIOR), history=(past,))))
    assert shifted == pytest.approx(calm)


def test_without_any_prior_the_rounds_of_its_own_are_all_that_is_known():
    samples = pd.DataFrame({"ns": [5.0, 5.2, 5.4, 5.1], "round": range(4), "sitting": 1.0})
    made = Costs(samples.assign(name="A")).cost("A", "ns")
    known, (sitting,) = estimate(made), made.counted
    assert half(known) == pytest.approx(t(3, 0.95) * sitting.error / sitting.value)


def drawn(chance: np.random.Generator, k: int, spread: float, freedom: float) -> Figure:
    """A ratio whose truth is 5, from six rounds of both sides in k sittings; the prior is right."""
    sittings = 5 * np.exp(chance.normal(scale=spread, size=(k, 1)))
    error = 0.05 * sqrt(variance_factor(method.quartile, 6))
    prior = Spread(error**2 + spread**2 / 2, freedom, error**2)
    costs = []
    for level in (sittings, 1.0):
        side = level * np.exp(chance.normal(scale=0.05, size=(k, 6)))
        values = np.quantile(side, 0.25, axis=1, method="median_unbiased")
        costs.append(figure(values, error, prior, 6))
    return propagate(truediv, costs)


@pytest.mark.parametrize("k", [1, 2, 5, 17])
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_intervals_contain_the_truth(k, recorded, spread):
    chance, hits = np.random.default_rng(k), []
    for _ in range(400):
        past = (drawn(chance, 17, spread, 4),) if recorded else ()
        known = replace(drawn(chance, k, spread, 4 if recorded else 1000), history=past)
        hits.append([estimate(known, c).contains(5) for c in (0.5, 0.95)])
    half_of, most = np.mean(hits, axis=0)
    assert 0.42 <= half_of <= 0.60
    assert 0.92 <= most <= 0.985


@given(times, st.floats(0, 0.5))
def test_an_interval_contains_its_value_and_grows_with_confidence(values, error):
    narrow, wide = (estimate(figure(values, error, PRIOR), c) for c in (0.9, 0.99))
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high


def test_equal_times_have_no_width():
    known = estimate(figure([7.0, 7.0, 7.0]))
    assert known.low == known.high == pytest.approx(7)
    assert known.half_width == 0


@pytest.mark.parametrize("error", [0.02, nan])
def test_one_process_has_a_value_and_no_interval(error):
    known = estimate(figure([6.0], error, PRIOR, rounds=1))
    assert (known.value, known.low, known.high) == (pytest.approx(6), -inf, inf)
    assert known.half_width == inf


def test_a_sitting_with_one_process_counts_only_without_better_ones():
    better, worse = figure([6.0, 6.2], 0.01, PRIOR), figure([99.0], 0.01, PRIOR, rounds=1)
    both = replace(better, sittings={**better.sittings, 3.0: worse.sittings[1.0]})
    assert estimate(both) == estimate(better)
    assert estimate(worse).value == pytest.approx(99)


def test_nothing_has_no_estimate():
    known = estimate(Figure())
    assert isnan(known.value)
    assert known.n == known.rounds == 0
    assert known.half_width == inf


def test_sittings_in_any_order_give_the_same_bytes():
    chance = np.random.default_rng(7)
    known = figure(chance.lognormal(size=9), 0.03, PRIOR)
    past = figure(chance.lognormal(size=9), 0.03, PRIOR)

    def shuffled(of: Figure) -> Figure:
        numbers = chance.permutation([*of.sittings])
        return replace(of, sittings={number: of.sittings[number] for number in numbers})

    expected = estimate(replace(known, history=(past,)))
    for _ in range(20):
        again = replace(shuffled(known), history=(shuffled(past),))
        assert estimate(again) == expected
        ratio = propagate(truediv, [shuffled(known), shuffled(past)])
        assert ratio == propagate(truediv, [known, past])


def test_what_may_be_negative_has_an_interval_on_the_linear_scale():
    sides = figure([5.0, 6.0, 5.5], 0.01, PRIOR), figure([6.0, 5.0, 5.8], 0.01, PRIOR)
    made = propagate(sub, sides)
    known = estimate(made, signed=True)
    assert known.value == pytest.approx(-0.1)
    assert known.low < 0 < known.high
    assert known.high - known.value == pytest.approx(known.value - known.low)
    assert isnan(estimate(made).value)
    assert estimate(figure([0.0, 0.0, 0.0]), signed=True).low == 0


def test_more_rounds_narrow_what_they_can_and_more_sittings_all():
    known = Estimate(10.0, 10 / 1.2, 12.0, 4, 4, 0.99, lasting=0.36)
    assert half(after(known, rounds=4)) == pytest.approx(log(1.2) * sqrt(0.36 + 0.64 / 4))
    assert half(after(known, sittings=4)) == pytest.approx(log(1.2) / 2)
    assert after(known) == pytest.approx(known)
    below = Estimate(1.0, -1.0, 3.0, 4, 4, 0.99, parts=(known,))
    later = after(below, sittings=4)
    assert (later.low, later.high) == (0.0, 2.0)
    assert later.parts == (after(known, sittings=4),)


# --- the costs of a run ---------------------------------------------------------------------


def run(chance: np.random.Generator, *, sittings: int = 5, rounds: int = 4) -> Costs:
    """Eight pairs of cases; what slows a sitting slows both sides of a pair alike."""
    rows, ratios = [], []
    for pair in range(8):
        names = [f"over {pair}", f"under {pair}"]
        ratios.append(dict(zip(RATIOS, [f"C{pair}", "1.27", "ns", *names], strict=True)))
        for sitting in range(1, sittings + 1):
            common = chance.normal(scale=0.1)
            for name, level in zip(names, (500.0, 50.0), strict=True):
                own = chance.normal(scale=0.02)
                for number in range(rounds):
                    noise = chance.normal(scale=0.02)
                    ns = level * exp(common + own + noise)
                    rows.append({"name": name, "sitting": sitting, "round": number, "ns": ns})
    return Costs(pd.DataFrame(rows), pd.DataFrame(ratios))


def test_what_slows_both_sides_widens_a_cost_and_not_a_ratio():
    made = run(np.random.default_rng(8))
    costs = [made.cost(name, "ns") for name in ("over 1", "under 1")]
    ratio = propagate(truediv, costs)
    assert half(estimate(ratio)) < half(estimate(costs[0])) / 2
    assert made.shared("time").variance < made.alone("ns").variance / 5


def test_a_run_of_one_sitting_has_the_spread_of_its_recorded_relatives():
    past = run(np.random.default_rng(8))
    made = run(np.random.default_rng(9), sittings=1)
    own, usual = (estimate(made.cost("over 1", "ns", of)) for of in ((), (past,)))
    assert half(own) < 0.1 < half(usual)


def test_a_count_that_never_differs_is_exact():
    samples = pd.DataFrame({"name": "A", "sitting": [1, 1, 1, 2, 2, 2], "round": [*range(6)]})
    made = Costs(samples.assign(gc_cycles=3.0)).cost("A", "gc_cycles")
    known = estimate(made, signed=True)
    assert known.low == known.value == known.high == 3


# --- single questions ---------------------------------------------------------------------


def test_amounts_are_medians():
    assert amount([2] * 5) == Estimate(2, 2, 2, 5, 5, 0.95)
    known = amount([1, 2, 2, 3, nan])
    assert (known.value, known.n) == (2, 4)
    factor = variance_factor(method.median, 4)
    assert known.high - 2 == pytest.approx(sqrt(factor) * t(3, 0.95) * np.std([1, 2, 2, 3], ddof=1))
    assert amount([]).n == 0
    assert amount([-1, 0, 0, 1]).half_width == inf


@pytest.mark.parametrize(("metric", "value"), [("MB_per_s", 400), ("parse_ns", 25), ("score", 100)])
def test_a_cost_of_a_sitting_has_the_metrics_own_unit(metric, value):
    frame = pd.DataFrame({"name": "", "sitting": 1.0, "round": range(3)})
    figure = Costs(frame.assign(**{metric: [10.0, 100.0, 1000.0]})).cost("", metric)
    assert [each.value for each in figure.sittings.values()] == [pytest.approx(value)]


def test_heterogeneity_detects_scattered_ratios_among_two_or_more():
    """p < 0.01 for about 1 % of agreeing sets, but for 90 % of sets with one ratio 15 % off."""
    assert isnan(heterogeneity([(2.0, 0.1), (2.0, nan)]))
    chance = np.random.default_rng(3)

    def p(last: float) -> float:
        values = (exp(chance.normal(shift, 0.02)) for shift in (0.0, 0.0, 0.0, last))
        return heterogeneity([(x, 0.02) for x in values])

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
