import numpy as np
import pytest
from scipy import stats

from equipoise.stats.binomial import (
    clopper_pearson,
    constrained_rates,
    deviance,
    difference_fit,
    exact_tail,
    signed_deviance,
)


def columns(*values):
    return tuple(np.array([float(v)]) for v in values)


def test_deviance_is_finite_in_constant_groups_and_infinite_at_impossible_rates():
    x, n = np.array([0.0, 5.0, 2.0, 2.0]), np.full(4, 5.0)
    found = deviance(x, n, np.array([0.3, 0.3, 0.0, 1.2]))
    np.testing.assert_allclose(found[:2], [-10 * np.log(0.7), -10 * np.log(0.3)])
    assert np.isinf(found[2:]).all()


def test_signed_deviance_has_the_sign_of_the_difference():
    root = signed_deviance(*columns(3, 10, 0.5))
    np.testing.assert_allclose(root**2, deviance(*columns(3, 10, 0.5)))
    assert root < 0


@pytest.mark.parametrize("x", [0, 3, 8])
def test_exact_tails_are_binomial_probabilities(x):
    greater, less = exact_tail(*columns(x, 8, 0.3))
    np.testing.assert_allclose(greater, stats.binom.sf(x - 1, 8, 0.3))
    np.testing.assert_allclose(less, stats.binom.cdf(x, 8, 0.3))
    mid = exact_tail(*columns(x, 8, 0.3), mid=True)
    np.testing.assert_allclose(mid[0], greater - stats.binom.pmf(x, 8, 0.3) / 2)
    np.testing.assert_allclose(mid[0] + mid[1], 1.0)


def test_fit_at_no_difference_is_the_pooled_rate():
    first, second = difference_fit(*columns(3, 10, 8, 30, 0))
    np.testing.assert_allclose([first, second], [[11 / 40], [11 / 40]])


def test_fit_of_a_ratio_solves_the_quadratic_of_miettinen_and_nurminen():
    x1, n1, x2, n2, rho = 12.0, 50.0, 30.0, 80.0, 0.8
    a, b, c = (n1 + n2) * rho, -(n1 * rho + x1 + n2 + x2 * rho), x1 + x2
    second = (-b - np.sqrt(b**2 - 4 * a * c)) / (2 * a)
    found = constrained_rates(
        np.array([[x1, x2]]), np.array([[n1, n2]]), np.array([[1.0, -rho]]), np.zeros(1)
    )
    np.testing.assert_allclose(found[0], [rho * second, second], rtol=1e-10)


def test_samples_without_rows_do_not_count():
    found = constrained_rates(
        np.array([[3.0, 0.0, 8.0]]),
        np.array([[10.0, 0.0, 30.0]]),
        np.array([[1.0, 5.0, -1.0]]),
        np.zeros(1),
    )
    np.testing.assert_allclose(found[0, [0, 2]], 11 / 40)


# Coverage of a nominal 95% set, by exact enumeration: specification section 6.
@pytest.mark.parametrize(
    ("n_group", "n_target", "rates", "ratio", "score"),
    [
        (20, 100, (0.05, 0.05), 0.971, 0.963),
        (30, 300, (0.10, 0.05), 0.935, 0.959),
        (100, 300, (0.02, 0.02), 0.920, 0.960),
    ],
)
def test_coverage_of_two_binomials_is_the_known_one(n_group, n_target, rates, ratio, score):
    a, b = (
        g.ravel()
        for g in np.meshgrid(np.arange(n_group + 1.0), np.arange(n_target + 1.0), indexing="ij")
    )
    chance = stats.binom.pmf(a, n_group, rates[0]) * stats.binom.pmf(b, n_target, rates[1])
    n1, n2 = np.full(len(a), float(n_group)), np.full(len(a), float(n_target))
    delta = np.full(len(a), rates[0] - rates[1])
    first, second = difference_fit(a, n1, b, n2, delta)
    statistic = deviance(a, n1, first) + deviance(b, n2, second)
    cut = stats.chi2.isf(0.05, 1)
    np.testing.assert_allclose(chance[statistic <= cut].sum(), ratio, atol=6e-4)
    variance = (first * (1 - first) / n1 + second * (1 - second) / n2) * (n1 + n2) / (n1 + n2 - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.nan_to_num((a / n1 - b / n2 - delta) / np.sqrt(variance))
    np.testing.assert_allclose(chance[root**2 <= cut].sum(), score, atol=6e-4)


@pytest.mark.parametrize(
    ("n", "rate", "pure", "ratio", "exact", "mid"),
    [
        (20, 0.05, 0.626, 0.984, 0.984, 0.984),
        (50, 0.02, 0.618, 0.982, 0.982, 0.982),
        (100, 0.02, 0.852, 0.852, 0.9845, 0.9845),
        (50, 0.10, 0.942, 0.942, 0.970, 0.942),
    ],
)
def test_coverage_of_one_binomial_is_the_known_one(n, rate, pure, ratio, exact, mid):
    x = np.arange(n + 1.0)
    size, c = np.full(n + 1, float(n)), np.full(n + 1, rate)
    chance = stats.binom.pmf(x, n, rate)
    inside = deviance(x, size, c) <= stats.chi2.isf(0.05, 1)
    np.testing.assert_allclose(chance[inside & (x > 0) & (x < n)].sum(), pure, atol=6e-4)
    np.testing.assert_allclose(chance[inside].sum(), ratio, atol=6e-4)
    for half, expected in ((False, exact), (True, mid)):
        p = 2 * np.minimum(*exact_tail(x, size, c, mid=half))
        np.testing.assert_allclose(chance[p > 0.05].sum(), expected, atol=6e-4)


def test_clopper_pearson_inverts_the_exact_tails():
    x, n = np.array([0.0, 1.0, 7.0, 20.0, 20.0]), np.array([20.0, 20.0, 20.0, 20.0, 20.0])
    low, high = clopper_pearson(x, n, tail=0.03)
    expected = [stats.binomtest(int(k), 20).proportion_ci(0.94, method="exact") for k in x]
    np.testing.assert_allclose(np.stack([low, high], axis=1), expected, rtol=1e-9)
