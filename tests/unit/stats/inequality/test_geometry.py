import math

import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.inequality.geometry import (
    cost_free_mean,
    deviation_slope,
    domain_parallelogram,
    error_cost,
    is_monotone,
    turning_point,
    two_level_peak,
)


@pytest.mark.parametrize(
    ("base_rate", "low", "high", "order", "monotone"),
    [
        (0.4, 0.05, 1.5, 1.5, True),
        (0.05, 0.05, 1.05, 2.0, False),  # turns at .0998, above .0975, at unit rate Q
        (0.05, 0.05, 0.19, 0.3, False),  # two levels are most unequal above Q
    ],
)
def test_each_condition_decides(base_rate, low, high, order, monotone):
    found = is_monotone(base_rate=base_rate, low=low, high=high, kind="punitive", order=order)
    assert found is monotone


def test_the_conditions_are_those_at_unit_rates_zero_q_and_one():
    at_q, at_one = (turning_point(q, low=0.05, high=1.5, order=1.5) for q in (0.4, 1.0))
    assert at_q < 0.05 + 0.95 * 0.4
    assert at_one == pytest.approx(0.617661, abs=1e-6)
    assert two_level_peak(0.05 / 0.19, order=0.3) > 0.05


def test_levels_that_are_equal_peak_in_the_middle():
    assert two_level_peak(1.0, order=2.0) == 0.5
    assert two_level_peak(1.0 + 1e-6, order=2.0) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(("high", "order"), [(1.0, 1.0), (5.0, 0.0), (5.0, -1.0)])
def test_a_region_of_deviation_needs_levels_above_one_and_a_positive_order(high, order):
    with pytest.raises(InvalidParameterError, match="needs `high` > 1 and `order` > 0"):
        deviation_slope(high, error="low", order=order)


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("error", ["low", "high"])
def test_errors_cost_nothing_at_the_mean_that_is_free(error, order):
    levels = {"low": 0.5, "high": 1.5, "error": error, "order": order}
    edge = cost_free_mean(0.8, **levels)
    assert error_cost(edge, 0.8, **levels) == pytest.approx(0.0, abs=1e-12)


def test_the_slope_of_a_region_of_deviation_by_hand():
    # 2 (b - 1)^2 / ((b - 1) b - (b - 1)) at order two, (b - 1) ln b / (b - 1 - ln b) at order one.
    assert deviation_slope(5.0, error="high", order=2.0) == pytest.approx(32.0 / 16.0)
    by_hand = 4.0 * math.log(5.0) / (4.0 - math.log(5.0))
    assert deviation_slope(5.0, error="high", order=1.0) == pytest.approx(by_hand)


def test_corners_are_those_of_the_unit_square_of_errors():
    """Of 30% positives, false positives get 0.8, false negatives 0.2, everybody else 1."""
    corners = domain_parallelogram(0.3, low=0.2, high=0.8, kind="accuracy")
    by_hand = [
        (
            0.7 * (0.8 if fpr else 1.0) + 0.3 * (0.2 if fnr else 1.0),
            0.7 * (not fpr) + 0.3 * (not fnr),
        )
        for fpr, fnr in [(0, 0), (1, 0), (1, 1), (0, 1)]
    ]
    assert_allclose(corners, by_hand)
