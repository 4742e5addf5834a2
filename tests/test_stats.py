"""Lines, costs, intervals and looks behave as gccost.stats documents."""

from __future__ import annotations

from math import exp, inf, isnan, log, nan, sqrt
from operator import truediv

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from gccost.stats import (
    JUDGED,
    SHOWN,
    Estimate,
    Figure,
    Line,
    amount,
    combine,
    cost,
    estimate,
    floors,
    heterogeneity,
    line,
    linearity,
    propagate,
    run_to_run,
    share,
    total_error,
)

positive = st.floats(1e-6, 1e12)
values = st.lists(positive, min_size=2, max_size=40)


def t(freedom: float, confidence: float) -> float:
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


def unprobed(logs: np.ndarray) -> np.ndarray:
    return np.full(len(logs), nan)


def of(logs: np.ndarray, fitted: Line, sittings: object = 0) -> Figure:
    """The cost of a case without a probe; by default in one sitting."""
    sittings = np.broadcast_to(sittings, len(logs))
    return cost(logs, unprobed(logs), sittings, fitted, len(logs))


def of_one(x: list[float]) -> Figure:
    """The cost of a case that is alone in its kind, without a probe."""
    logs = np.log(x)
    return of(logs, line(logs, unprobed(logs), np.zeros(len(x), int)))


# --- the line -----------------------------------------------------------------------


def measured(
    cases: int = 6, n: int = 5, slope: float = 0.5, spread: float = 0.04, seed: int = 1
) -> tuple[np.ndarray, ...]:
    """Logs, probes and cases of processes along parallel lines."""
    chance = np.random.default_rng(seed)
    case = np.repeat(np.arange(cases), n)
    probes = np.abs(chance.normal(0, 0.2, cases * n))
    logs = case + slope * probes + spread * chance.standard_normal(cases * n)
    return logs, probes, case


def test_the_line_is_the_analysis_of_covariance():
    """The same as statsmodels' least squares with a constant for each case."""
    logs, probes, case = measured()
    fitted = line(logs, probes, case, "finalizer")
    design = np.column_stack([case[:, None] == np.arange(6), probes]).astype(float)
    model = sm.OLS(logs, design).fit()
    assert fitted.slope == pytest.approx(model.params[-1])
    assert fitted.slope_error == pytest.approx(model.bse[-1])
    assert fitted.spread == pytest.approx(sqrt(model.scale))
    assert fitted.freedom == model.df_resid
    for number in range(6):
        mine = case == number
        known = fitted._replace(probes=0.0)  # at a price that is known
        mean = cost(logs[mine], probes[mine], np.ones(5), known, 5)
        assert mean.value == pytest.approx(exp(model.params[number]))
        both = sqrt(mean.error**2 + mean.slope_error**2) / mean.value
        assert both == pytest.approx(model.bse[number])


@pytest.mark.parametrize("useless", [nan, 0.3, 0.1], ids=["missing", "equal", "nearly equal"])
def test_a_probe_that_explains_nothing_has_no_slope(useless):
    logs, _, case = measured(n=3, slope=0.0)
    fitted = line(logs, np.full(len(logs), useless), case)
    assert (fitted.slope, fitted.slope_error) == (0.0, 0.0)
    assert fitted.spread == pytest.approx(0.04, rel=0.5)


@pytest.mark.parametrize(("log_ns", "of"), [(9.0, 6), (0.4, 0)], ids=["alone", "among others"])
def test_a_process_without_a_probe_does_not_count_for_the_slope(log_ns, of):
    logs, probes, case = measured()
    with_one = line(np.append(logs, log_ns), np.append(probes, nan), np.append(case, of))
    assert with_one.slope == pytest.approx(line(logs, probes, case).slope)


def test_one_slow_process_moves_no_other_case():
    """A process whose probe and loop are ten times as slow lies on the line, as all others do."""
    logs, probes, case = measured(n=12, spread=0.01)
    slow = np.arange(len(logs)) == 3
    slowed = line(logs + slow * 0.5 * log(10), probes + slow * log(10), case)
    assert slowed.slope == pytest.approx(0.5, abs=0.02)
    other = cost(logs[case == 2], probes[case == 2], np.ones(12), slowed, 12)
    assert log(other.value) == pytest.approx(2, abs=0.02)


def test_the_interval_of_a_cost_has_the_error_of_its_price():
    """Each case's price is the lower quartile of its own probes, as in a run."""
    chance, hits = np.random.default_rng(4), []
    for _ in range(150):
        above = chance.exponential(0.15, (10, 8))
        logs = (0.9 * above + 0.03 * chance.standard_normal((10, 8))).ravel()
        probes = (above - np.quantile(above, 0.25, axis=1)[:, None]).ravel()
        fitted = line(logs, probes, np.repeat(np.arange(10), 8))
        sides = [cost(logs[i : i + 8], probes[i : i + 8], np.ones(8), fitted, 8) for i in (0, 8)]
        hits.append(combine(lambda a, b: a / b, sides).contains(1))
    assert np.mean(hits) >= 0.9


def test_two_processes_borrow_the_spread_of_their_kind():
    logs, probes, case = measured()
    fitted = line(logs, probes, case)
    two = cost(logs[:2], probes[:2], np.ones(2), fitted._replace(probes=0.0), 2)
    assert two.error / two.value == pytest.approx(fitted.spread / sqrt(2))
    alone = of_one([6.0])
    assert alone.value == pytest.approx(6)
    assert (estimate(alone).low, estimate(alone).high) == (0.0, inf)


# --- sittings ------------------------------------------------------------------------


def sittings(between: float, seed: int = 2, cases: int = 40) -> tuple[np.ndarray, ...]:
    """Logs, cases and sittings of cases that five sittings shift."""
    chance = np.random.default_rng(seed)
    case, sitting = (a.ravel() for a in np.mgrid[0:cases, 0:5])
    shift = between * chance.standard_normal(len(case))
    each = np.repeat(shift + case, 4) + 0.03 * chance.standard_normal(4 * len(case))
    return each, np.repeat(case, 4), np.repeat(sitting, 4)


def fitted_to(logs: np.ndarray, case: np.ndarray, sitting: np.ndarray) -> Line:
    return line(logs, unprobed(logs), case * 5 + sitting)


def spread_of(logs: np.ndarray, case: np.ndarray, sitting: np.ndarray) -> tuple[float, float]:
    fitted = fitted_to(logs, case, sitting)
    return run_to_run(logs, unprobed(logs), case, sitting, fitted)


@pytest.mark.parametrize("between", [0.0, 0.05])
def test_the_run_to_run_spread_is_what_the_spread_of_processes_leaves(between):
    logs, case, sitting = sittings(between)
    assert spread_of(logs, case, sitting) == (pytest.approx(between, abs=0.012), 40 * 4)
    one = sitting == 0
    assert isnan(spread_of(logs[one], case[one], sitting[one])[0])


def test_two_sittings_do_not_explain_the_run_to_run_spread_away():
    """The mean of two sittings takes up half of the variance of their own processes."""
    logs, case, sitting = sittings(0.015, cases=400)
    two = sitting < 2
    assert spread_of(logs[two], case[two], sitting[two])[0] == pytest.approx(0.015, abs=0.003)


def test_a_busy_sitting_with_many_processes_does_not_hide_the_run_to_run_spread():
    """The mean spread of processes would explain more than calm sittings of few of them scatter."""
    chance, groups = np.random.default_rng(5), []
    for case in range(60):
        for sitting, (n, spread) in enumerate([(3, 0.01), (3, 0.01), (12, 0.2)]):
            logs = 0.05 * chance.standard_normal() + spread * chance.standard_normal(n)
            groups.append((logs, np.full(n, case), np.full(n, sitting)))
    logs, case, sitting = (np.concatenate(each) for each in zip(*groups, strict=True))
    assert spread_of(logs, case, sitting)[0] == pytest.approx(0.05, abs=0.02)


def test_the_interval_of_a_sitting_contains_the_mean_of_the_others():
    logs, case, sitting = sittings(0.05, cases=80)
    fitted = fitted_to(logs, case, sitting)._replace(run_to_run=0.05, run_to_run_freedom=160.0)
    hits = []
    for number in range(80):
        here = (case == number) & (sitting == 0)
        others = logs[(case == number) & (sitting > 0)].mean()
        hits.append(estimate(of(logs[here], fitted)).contains(exp(others)))
    assert np.mean(hits) >= 0.85


def test_sittings_are_the_unit_of_error():
    """More processes of one sitting do not reduce the error below the run-to-run spread."""
    fitted = Line("finalizer", 0.0, 0.0, 0.03, 100, run_to_run=0.05, run_to_run_freedom=100)

    zeros = np.zeros(400)
    one, four = of(zeros, fitted), of(zeros, fitted, np.repeat([1, 2, 3, 4], 100))
    assert [one.error, four.error, one.lasting] == pytest.approx([0.05, 0.025, 0.05], rel=0.01)
    # The weight of a sitting hardly grows with its processes, and the order does not count.
    uneven, order = np.repeat([1, 2], [10, 390]), np.random.default_rng(3).permutation(400)
    shifted = (uneven == 2) * 0.1
    both = of(shifted, fitted, uneven)
    assert log(both.value) == pytest.approx(0.05, abs=0.003)
    assert of(shifted[order], fitted, uneven[order]) == pytest.approx(both)


def test_cases_of_few_sittings_do_not_hide_how_sittings_differ():
    """Two neighbouring sittings of many cases are alike; ten sittings of one case are not."""
    often, few = np.linspace(0, 1, 10), np.zeros(80)
    logs = np.repeat([*often, *few], 4)
    case = np.repeat([*np.zeros(10, int), *np.repeat(np.arange(1, 41), 2)], 4)
    sitting = np.repeat([*np.arange(10), *np.tile([8, 9], 40)], 4)
    between, freedom = spread_of(logs, case, sitting)
    assert (between, freedom) == (pytest.approx(often.std(ddof=1)), 9)


def test_a_sitting_with_one_process_counts_only_without_better_ones():
    logs = np.repeat([0.0, 0.0, 0.0, 1.0], [4, 4, 1, 1])
    case, sitting = np.repeat([0, 1], [8, 2]), np.repeat([0, 1, 0, 1], [4, 4, 1, 1])
    assert spread_of(logs, case, sitting) == (0.0, 1)
    assert spread_of(logs[8:], case[8:], sitting[8:])[0] > 0.5


def test_sittings_of_one_process_each_show_the_error():
    logs, case, sitting = np.array([0.0, 0.1, 0.2]), np.zeros(3, int), np.arange(3)
    for none in (line(logs, unprobed(logs), sitting), floors(logs, sitting)):
        between, freedom = run_to_run(logs, unprobed(logs), case, sitting, none)
        fitted = none._replace(run_to_run=between, run_to_run_freedom=freedom)
        mean = of(logs, fitted, sitting)
        assert mean.error / mean.value == pytest.approx(0.1 / sqrt(3))


# --- intervals --------------------------------------------------------------------


def test_intervals_match_the_documented_formula():
    x = [1.0, 1.1, 0.9, 1.3, 1.2, 1.0]
    interval = combine(float, [of_one(x)])
    s = np.std(np.log(x), ddof=1)
    half = t(5, 0.95) * s / sqrt(6)
    middle = np.log(x).mean()
    assert [interval.low, interval.value, interval.high] == pytest.approx(
        [exp(middle - half), exp(middle), exp(middle + half)]
    )
    assert (interval.n, interval.rounds, interval.confidence) == (6, 6, 0.95)


@given(values)
def test_intervals_contain_the_estimate_and_grow_with_confidence(x):
    narrow, wide = (combine(float, [of_one(x)], c) for c in (0.9, 0.99))
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high
    assert narrow.contains(narrow.value)


def test_nothing_has_no_estimate():
    for nothing in (combine(float, [of_one([])]), amount([]), share([])):
        assert isnan(nothing.value)
        assert nothing.n == nothing.rounds == 0
        assert nothing.half_width == inf
    assert not combine(lambda a, b: a / b, [of_one([6.0, 6.1]), of_one([])]).n
    assert amount([-1, 0, 0, 1]).half_width == inf
    costs = [of_one([1.0, 1.1]), of_one([2.0, 2.1])]
    assert not combine(lambda a, b: a - b, costs).n  # negative, so it needs `signed`
    assert combine(lambda a, b: a - b, costs, signed=True).value == pytest.approx(-1, rel=0.1)


def test_degrees_of_freedom_are_those_of_satterthwaite():
    assert total_error([2.0, 2.0], [7, 7]) == (2.0, pytest.approx(14))
    assert total_error([1.0, 3.0], [inf, 5]) == (2.0, pytest.approx(5 / (3 / 4) ** 2))
    assert total_error([inf, 1.0], [1, 5])[0] == inf


A, B, C = 900.0, 100.0, 240.0


@pytest.mark.parametrize(
    ("function", "signed", "slopes"),
    [
        # Slopes: derivatives of the figure (its logarithm if not signed) by each cost's logarithm.
        (lambda a, b, c: a / b, False, (1, -1, 0)),
        (
            lambda before, base, after: (before - after) / (before - base),
            True,
            (A * (C - B) / (A - B) ** 2, B * (A - C) / (A - B) ** 2, -C / (A - B)),
        ),
    ],
    ids=["ratio", "saved"],
)
def test_the_delta_method_agrees_with_the_closed_form(function, signed, slopes):
    errors = [0.01, 0.02, 0.03]
    costs = [
        Figure(x, error * x, inf, 0.005 * x, "finalizer", 0.0, 4, 4)
        for x, error in zip((A, B, C), errors, strict=True)
    ]
    interval = combine(function, costs, signed=signed)
    common = 0.005 * sum(slopes)  # of the slope of their kind, which cancels in a ratio
    half = t(1e9, 0.95) * np.hypot(np.linalg.norm(np.multiply(slopes, errors)), common)
    value = function(A, B, C)
    ends = [value - half, value + half] if signed else [value * exp(-half), value * exp(half)]
    assert [interval.value, interval.low, interval.high] == pytest.approx([value, *ends], rel=1e-4)


def test_the_slopes_of_different_kinds_do_not_cancel_when_values_are_derived_twice():
    kinds = ("finalizer", "cleanup", "slab", "signing")
    a, b, c, d = (Figure(1.0, 0.0, inf, 0.01, kind, 0.0, 4, 4) for kind in kinds)

    def ratio(over: Figure, under: Figure) -> Figure:
        return propagate(lambda x, y: x / y, [over, under])

    once = propagate(lambda a, b, c, d: (a / b) / (c / d), [a, b, c, d])
    twice = ratio(ratio(a, b), ratio(c, d))
    assert once.error == pytest.approx(0.02)
    assert twice.error == pytest.approx(once.error)
    assert twice.lasting == pytest.approx(once.lasting)


def test_more_rounds_narrow_what_they_can_and_more_sittings_all():
    known = Estimate(10.0, 10 / 1.2, 12.0, 4, 4, 0.99, lasting=0.36)
    later = known.after(4, 16)
    assert log(later.high / 10) == pytest.approx(log(1.2) * sqrt(0.36 + 0.64 / 4))
    assert known.after(4, 4) == pytest.approx(known)
    assert log(known.after(4, 4, sittings=4).high / 10) == pytest.approx(log(1.2) / 2)


# --- counts, shares, and unseen events ----------------------------------------


def test_identical_counts_have_zero_width():
    assert amount([2] * 5) == Estimate(2, 2, 2, 5, 5, 0.95)
    interval = amount([1, 2, 2, 3, nan])
    assert (interval.value, interval.n) == (2, 4)
    half = sqrt(np.pi / 2) * t(3, 0.95) * np.std([1, 2, 2, 3], ddof=1) / 2
    assert interval.high - 2 == pytest.approx(half)


def test_share_intervals_stay_between_0_and_1():
    few, all_ = share([0.0, 0.0, 0.02, 0.01]), share([1.0, 0.97, 1.0, 0.99])
    assert 0 <= few.low <= few.value <= few.high < 0.2
    assert 0.8 < all_.low <= all_.value <= all_.high <= 1
    assert share([0.2]).half_width == inf
    assert share([0.3, 1.5, -1.0, 0.3, 0.3]).n == 3


# --- heterogeneity -------------------------------------------------------------------


def test_heterogeneity_detects_scattered_ratios_among_two_or_more():
    """p < 0.01 for about 1 % of agreeing sets, but for 90 % of sets with one ratio 15 % off."""
    assert isnan(heterogeneity([Estimate(2, 2, 2, 5, 5, 0.95), Estimate(2, 0, inf, 1, 1, 0.95)]))
    chance = np.random.default_rng(3)

    def p(last: float) -> float:
        costs = [
            Figure(exp(chance.normal(shift, 0.02)), 0.02, inf, rounds=9, n=9)
            for shift in (0.0, 0.0, 0.0, last)
        ]
        return heterogeneity([combine(float, [each], SHOWN) for each in costs])

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


def test_a_ratio_of_numpy_values_to_nothing_has_no_value_and_no_warning():
    sides = [Figure(np.float64(value), 0.1, 5) for value in (1.0, 0.0)]
    assert isnan(propagate(truediv, sides).value)
