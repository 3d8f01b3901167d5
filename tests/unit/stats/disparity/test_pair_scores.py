import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.stats.disparity.pair_scores import ProportionPairs, ratio_fit


def pairs(*tables, scale="ratio"):
    x1, n1, x2, n2 = np.array(tables, dtype=float).T
    return ProportionPairs(x1=x1, n1=n1, x2=x2, n2=n2, scale=scale)


def test_the_root_at_equality_is_the_pooled_z_with_the_factor_of_miettinen_and_nurminen():
    pooled = 70 / 500
    z = (0.1 - 0.2) / np.sqrt(pooled * (1 - pooled) * (1 / 300 + 1 / 200) * 500 / 499)
    for scale, null in (("ratio", 1.0), ("difference", 0.0)):
        assert_allclose(pairs((30, 300, 40, 200), scale=scale).root(np.array([null])), z)


def test_the_fit_under_a_ratio_maximises_the_likelihood():
    grid = np.linspace(1e-6, 1 - 1e-6, 200_001)
    for ratio in (0.4, 0.8):
        first, second = ratio_fit(*(np.array([v]) for v in (5.0, 48.0, 14.0, 60.0, ratio)))
        log = stats.binom.logpmf(5, 48, ratio * grid) + stats.binom.logpmf(14, 60, grid)
        assert_allclose(second[0], grid[log.argmax()], atol=1e-5)
        assert_allclose(first, ratio * second)


def test_a_ratio_read_from_the_other_side_changes_the_sign_only():
    one, other = pairs((5, 48, 14, 60)), pairs((14, 60, 5, 48))
    for ratio in (0.25, 0.8, 3.0):
        root = one.root(np.array([ratio]))
        assert_allclose(root, -other.root(np.array([1.0 / ratio])), rtol=1e-10)


def test_the_exact_tail_replaces_the_score_where_a_fitted_count_is_below_one():
    # 3 of 10 against 0 of 50; at equality 0.5 ones are expected among the ten: only the chance
    # that all three fall among the ten or more, at the pooled rate, counts.
    rate = 3 / 60
    tail = sum(
        stats.binom.pmf(a, 10, rate) * stats.binom.pmf(b, 50, rate)
        for a in range(11)
        for b in range(51)
        if a / 10 - b / 50 >= 0.3 - 1e-12
    )
    for scale, null in (("ratio", 1.0), ("difference", 0.0)):
        assert_allclose(
            pairs((3, 10, 0, 50), scale=scale).root(np.array([null])), -stats.norm.ppf(tail)
        )


@pytest.mark.parametrize("scale", ["ratio", "difference"])
def test_intervals_contain_equality_exactly_when_the_root_is_within_the_critical_value(scale):
    n1, n2 = 12, 40
    tables = [(a, n1, b, n2) for a in range(n1 + 1) for b in range(n2 + 1)]
    every = pairs(*tables, scale=scale)
    null = np.full(len(tables), 1.0 if scale == "ratio" else 0.0)
    for critical in (1.96, 2.95):
        low, high = every.interval(critical)
        inside = (low <= null) & (null <= high)
        np.testing.assert_array_equal(inside, np.abs(every.root(null)) <= critical)


@pytest.mark.parametrize("scale", ["ratio", "difference"])
def test_roots_that_could_decide_decrease_in_the_hypothesised_value(scale):
    tables = [(a, 9, b, 30) for a in range(10) for b in range(0, 31, 3)]
    every = pairs(*tables, scale=scale)
    grid = np.geomspace(0.01, 100.0, 60) if scale == "ratio" else np.linspace(-0.99, 0.99, 60)
    roots = np.stack([every.root(np.full(len(tables), value)) for value in grid])
    decisive = np.clip(np.where(np.abs(roots) > 1.3, roots, 1.3 * np.sign(roots)), -4.0, 4.0)
    assert np.diff(decisive, axis=0).max() <= 1e-9


def test_zero_counts_leave_open_ends():
    low, high = pairs((0, 10, 3, 50), (3, 10, 0, 50), (0, 10, 0, 50)).interval(1.96)
    assert low[0] == 0.0
    assert np.isfinite(high[0])
    assert np.isinf(high[1])
    assert low[1] > 1.0
    assert (low[2], high[2]) == (0.0, np.inf)


def test_estimates_of_zero_counts_are_infinite_or_undefined():
    with np.errstate(all="raise"):
        estimate = pairs((3, 10, 0, 50), (0, 10, 0, 50)).estimate
    assert np.isinf(estimate[0])
    assert np.isnan(estimate[1])
