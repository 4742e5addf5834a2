"""The models for curves: lines, and the number of objects in a span."""

from __future__ import annotations

import math

import pytest

from gccost.errors import GccostError
from gccost.judging.models import line, objects_in_span, size_class
from gccost.studies.siebenmann import SIZES


def test_collinear_points_are_fitted_exactly() -> None:
    found = line([1, 2, 4], [12.0, 14.0, 18.0])
    assert (found.slope, found.intercept, found.r2) == pytest.approx((2, 10, 1))
    assert found.at(10) == pytest.approx(30)


def test_scatter_lowers_r2() -> None:
    assert 0.5 < line([1, 2, 3, 4], [1.0, 3.0, 2.0, 4.0]).r2 < 0.9


def test_constant_values_have_slope_0_and_r2_1() -> None:
    found = line([1, 2, 3], [5.0, 5.0, 5.0])
    assert (found.slope, found.intercept, found.r2) == (0, 5, 1)


@pytest.mark.parametrize("x", [[], [1.0], [2.0, 2.0], [1.0, math.nan]])
def test_a_line_needs_two_distinct_x_values(x: list[float]) -> None:
    found = line(x, [7.0] * len(x))
    assert math.isnan(found.slope)
    assert math.isnan(found.intercept)
    assert math.isnan(found.r2)


@pytest.mark.parametrize(
    ("go", "counts"),
    [
        ("1.20.14", (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2)),
        ("1.21.13", (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2)),
        # A pointer bitmap uses part of the span; from 1,024 bytes on, a header raises the class.
        ("1.22.12", (1008, 504, 252, 126, 63, 31, 15, 7, 7, 5)),
        ("1.25.14", (1008, 504, 252, 126, 63, 31, 15, 7, 7, 5)),
        # The span also holds the mark bits, except for the smallest objects.
        ("1.27.4", (1008, 496, 248, 124, 62, 31, 15, 7, 7, 5)),
    ],
)
def test_objects_per_span_depend_on_the_go_release(go: str, counts: tuple[int, ...]) -> None:
    assert tuple(objects_in_span(8 * words, go) for words in SIZES) == counts


def test_sizes_round_up_to_a_size_class() -> None:
    assert size_class(33, "1.20.14") == 48
    assert objects_in_span(33, "1.20.14") == 170
    assert size_class(1024, "1.20.14") == 1024
    assert size_class(1024, "1.27.4") == 1152
    assert size_class(512, "1.27.4") == 512


@pytest.mark.parametrize("size", [0, 4857, 100_000])
def test_a_size_without_a_known_class_is_refused(size: int) -> None:
    with pytest.raises(GccostError, match="size class"):
        objects_in_span(size, "1.27.4")
