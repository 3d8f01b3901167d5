import numpy as np
import pytest
from scipy import optimize

from equipoise.stats.inversion import invert


def test_normal_interval_is_estimate_plus_minus_critical_errors():
    estimate, se = np.array([1.0, -3.0, np.nan]), np.array([0.5, 2.0, 1.0])

    def root(null, which, tail):
        return (estimate[which] - null) / se[which]

    low, high = invert(
        root, estimate, se, critical=2.0, low=np.full(3, -np.inf), high=np.full(3, np.inf)
    )
    np.testing.assert_allclose(low, [0.0, -7.0, np.nan])
    np.testing.assert_allclose(high, [2.0, 1.0, np.nan])


def test_limits_that_are_not_rejected_end_the_interval():
    def root(null, which, tail):
        return (0.1 - null) / 0.2

    ends = invert(
        root, np.array([0.1]), np.array([0.2]), critical=2.0, low=np.zeros(1), high=np.ones(1)
    )
    np.testing.assert_allclose(np.concatenate(ends), [0.0, 0.5])


def test_an_estimate_at_the_limit_is_the_end():
    def root(null, which, tail):
        return (0.0 - null) / 0.2

    low, high = invert(
        root, np.zeros(1), np.zeros(1), critical=2.0, low=np.zeros(1), high=np.ones(1)
    )
    np.testing.assert_allclose([low[0], high[0]], [0.0, 0.4])


def test_bounded_statistic_leaves_the_interval_unbounded():
    def root(null, which, tail):
        return np.tanh(0.0 - null)

    low, high = invert(
        root,
        np.zeros(1),
        np.zeros(1),
        critical=2.0,
        low=-np.full(1, np.inf),
        high=np.full(1, np.inf),
    )
    assert np.isneginf(low[0])
    assert np.isposinf(high[0])


def test_infinite_roots_only_mean_further_in():
    def root(null, which, tail):
        return np.where(np.abs(null) < 1, -null * 3.0, np.copysign(np.inf, -null))

    low, high = invert(
        root,
        np.zeros(1),
        np.full(1, 5.0),
        critical=2.0,
        low=-np.full(1, np.inf),
        high=np.full(1, np.inf),
    )
    np.testing.assert_allclose([low[0], high[0]], [-2 / 3, 2 / 3])


@pytest.mark.parametrize("bend", [0.05, 1.0, 6.0])
def test_ends_where_the_root_is_curved_are_those_scipy_finds(bend):
    estimate = np.array([0.3, -1.0, 2.0])

    def root(null, which, tail):
        return np.sinh(bend * (estimate[which] - null))

    low, high = invert(
        root, estimate, np.ones(3), critical=2.0, low=np.full(3, -np.inf), high=np.full(3, np.inf)
    )
    distance = optimize.brentq(lambda x: np.sinh(bend * x) - 2.0, 0.0, 100.0, xtol=1e-14)
    np.testing.assert_allclose(estimate - low, distance, rtol=1e-9)
    np.testing.assert_allclose(high - estimate, distance, rtol=1e-9)


def test_a_step_in_the_root_is_the_end():
    def root(null, which, tail):
        return np.where(np.abs(null) < 0.7, -null, -8.0 * np.sign(null))

    low, high = invert(
        root, np.zeros(1), np.ones(1), critical=2.0, low=-np.ones(1), high=np.ones(1)
    )
    np.testing.assert_allclose([low[0], high[0]], [-0.7, 0.7], rtol=1e-9)


def test_an_end_at_the_first_guess_needs_no_search():
    def root(null, which, tail):
        return -2.0 * null

    low, high = invert(
        root, np.zeros(1), np.full(1, 0.5), critical=2.0, low=-np.full(1, 9.0), high=np.full(1, 9.0)
    )
    np.testing.assert_allclose([low[0], high[0]], [-1.0, 1.0], rtol=1e-12)
