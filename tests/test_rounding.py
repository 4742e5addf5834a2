"""Numbers are rounded in one place, the same way everywhere."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gccost.judging import rounding
from gccost.stats import Estimate


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1153.2, "1,150"),
        (60.61, "60.6"),
        (0.01214, "0.0121"),
        (9.996, "10.0"),
        (999.6, "1,000"),
        (0, "0"),
        (-0.25, "−0.250"),
        (math.nan, "–"),
        (math.inf, "∞"),
    ],
)
def test_numbers_have_three_significant_digits(x, text):
    assert rounding.plain(x) == text


@pytest.mark.parametrize(
    ("ends", "unit", "text"),
    [
        ((0.7017, 0.65, 0.75), "share", "70.2 % (65.0 to 75.0)"),
        ((0.7017, 0.65, 0.75), "ratio", "0.702× (0.650 to 0.750)"),
        ((1, 0.9999, 1.0001), "registrations", "1 more"),  # the ends read as the value
        ((1, 1, 2), "cycles", "1 cycle (1 to 2)"),
    ],
)
def test_an_interval_is_shown_in_the_unit_of_its_value(ends, unit, text):
    assert rounding.interval(Estimate(*ends, 5, 5, 0.95), unit) == text


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_written_as_an_empty_field(x):
    assert rounding.written(x) == ""


@given(st.floats(min_value=1e-12, max_value=1e15))
def test_written_numbers_keep_six_digits(x):
    assert float(rounding.written(x)) == rounding.rounded(x)
    assert math.isclose(rounding.rounded(x), x, rel_tol=1e-5)
    assert rounding.written(0.1 + 0.2) == rounding.written(0.3)
    assert rounding.written(2.0) == "2"
