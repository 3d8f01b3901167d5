import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.stats.disparity.simultaneous import together


def test_independent_tests_are_adjusted_by_the_formula_of_sidak():
    p = np.array([0.01, 0.05, 0.4])
    adjusted, critical = together(p, np.eye(3), 0.95, rng=0)
    assert_allclose(adjusted, 1.0 - (1.0 - p) ** 3, atol=0.01)
    assert_allclose(critical, stats.norm.isf((1.0 - 0.95 ** (1 / 3)) / 2), atol=0.03)


def test_tests_of_one_thing_are_not_adjusted():
    p = np.array([0.01, 0.05])
    adjusted, critical = together(p, np.ones((2, 2)), 0.95, rng=0)
    assert np.all(adjusted >= p)
    assert_allclose(adjusted, p, atol=0.005)
    assert -1e-12 <= critical - stats.norm.isf(0.025) < 0.03
