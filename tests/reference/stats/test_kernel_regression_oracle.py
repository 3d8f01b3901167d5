"""Kernel estimates against loops over rows and users, and against statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.nonparametric.kernel_regression import KernelReg

from equipoise.stats.scores.cells import ScoreCells, weighted_quantile
from equipoise.stats.scores.kernel import kernel_regression
from equipoise.stats.scores.parity import compare_groups, parity_test


@pytest.fixture
def rows(rng):
    n = 1200
    user = rng.integers(500, size=n)
    score = rng.normal(size=n).round(2) * 3.0
    group = rng.integers(2, size=n)
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-score))).astype(float)
    return y, score, group, user


def loop_regression(y, score, points, h, w, user, degree):
    """Weighted least squares at each point, influence values summed user by user."""
    users = np.unique(user)
    estimate, psi = np.empty(len(points)), np.zeros((len(users), len(points)))
    for k, s in enumerate(points):
        u = (score - s) / h
        x = np.stack([u**d for d in range(degree + 1)], axis=1)
        kernel = w * np.exp(-(u**2) / 2)
        inverse = np.linalg.inv((x * kernel[:, None]).T @ x)
        beta = inverse @ (x * kernel[:, None]).T @ y
        estimate[k] = beta[0]
        for j, m in enumerate(users):
            i = user == m
            psi[j, k] = (inverse @ (x[i] * kernel[i, None]).T @ (y[i] - x[i] @ beta))[0]
    return estimate, psi


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("unit", ["row", "cluster"])
def test_curve_and_covariance_equal_a_loop_over_users(rows, degree, unit):
    y, score, _, user = rows
    points, h = np.array([-2.0, 0.0, 1.5]), 0.8
    w = 1.0 / np.bincount(user)[user] if unit == "cluster" else np.ones(len(y))
    estimate, psi = loop_regression(y, score, points, h, w, user, degree)
    curve = kernel_regression(y, score, points, cluster=user, unit=unit, bandwidth=h, degree=degree)
    np.testing.assert_allclose(curve.estimate, estimate, rtol=0, atol=1e-10)
    np.testing.assert_allclose(curve.covariance, psi.T @ psi, rtol=0, atol=1e-10)
    near = [len(np.unique(user[np.abs(score - s) <= h])) for s in points]
    np.testing.assert_array_equal(curve.n_local, near)


@pytest.mark.parametrize("degree", [0, 1])
def test_curve_equals_weighted_least_squares_with_clusters_of_statsmodels(rows, degree):
    y, score, _, user = rows
    curve = kernel_regression(y, score, [0.3], cluster=user, bandwidth=0.7, degree=degree)
    u = (score - 0.3) / 0.7
    x = np.stack([u**d for d in range(degree + 1)], axis=1)
    fit = sm.WLS(y, x, weights=np.exp(-(u**2) / 2)).fit(
        cov_type="cluster", cov_kwds={"groups": user, "use_correction": False}
    )
    np.testing.assert_allclose(curve.estimate[0], fit.params[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(curve.standard_error[0], fit.bse[0], rtol=0, atol=1e-12)


# statsmodels announces a change of its random numbers, which a given bandwidth does not use.
@pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")
@pytest.mark.parametrize(("degree", "name"), [(0, "lc"), (1, "ll")])
def test_curve_equals_kernel_reg_of_statsmodels(rows, degree, name):
    y, score, _, _ = rows
    points = np.array([-1.0, 0.0, 2.0])
    theirs = KernelReg(y, score, "c", reg_type=name, bw=[0.6]).fit(points)[0]
    curve = kernel_regression(y, score, points, bandwidth=0.6, degree=degree)
    np.testing.assert_allclose(curve.estimate, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("unit", ["row", "cluster"])
def test_residual_differences_equal_a_dense_linear_map(rows, unit):
    """D = M y with M built row by row; users span both groups."""
    y, score, group, user = rows
    test = parity_test(y, score, group, cluster=user, unit=unit, bandwidth=0.9, rng=1)
    w = 1.0 / np.bincount(user)[user] if unit == "cluster" else np.ones(len(y))
    order = np.argsort(score, kind="stable")
    # Nodes are equally spaced in the equal mixture of the groups.
    share = (w / np.bincount(group, w)[group])[order]
    nodes = np.unique(weighted_quantile(score[order], share, np.linspace(0.0, 1.0, 60)))
    smooth = np.empty((len(nodes), len(y)))
    for j, s in enumerate(nodes):
        u = (score - s) / 0.9
        x = np.stack([np.ones_like(u), u], axis=1)
        kernel = w * np.exp(-(u**2) / 2)
        smooth[j] = np.linalg.solve((x * kernel[:, None]).T @ x, (x * kernel[:, None]).T)[0]
    to_rows = np.array([np.interp(score, nodes, column) for column in np.eye(len(nodes))]).T
    pooled = to_rows @ smooth
    points = test.differences.points
    direct = np.empty((len(points), len(y)))
    for k, s in enumerate(points):
        kernel = w * np.exp(-(((score - s) / 0.9) ** 2) / 2)
        direct[k] = kernel * np.where(
            group == 1, 1 / kernel[group == 1].sum(), -1 / kernel[group == 0].sum()
        )
    influence = direct @ (np.eye(len(y)) - pooled)
    np.testing.assert_allclose(test.differences.estimate, influence @ y, rtol=0, atol=1e-10)
    terms = influence * (y - pooled @ y)
    psi = np.stack([np.bincount(user, weights=t) for t in terms])
    np.testing.assert_allclose(
        test.differences.test.standard_error,
        np.sqrt((psi**2).sum(axis=1)),
        rtol=0,
        atol=1e-10,
    )


def test_cumulative_sum_equals_a_loop(rows):
    y, score, group, user = rows
    score = np.clip(np.round(score), -4, 4)
    cells = ScoreCells.from_rows(y, score, group, cluster=user, unit="cluster")
    cusum = compare_groups(cells, rng=3).cusum
    w = 1.0 / np.bincount(user)[user]
    levels = np.unique(score)
    mean, share = {}, {}
    for s in levels:
        at = score == s
        mean[s] = np.average(y[at], weights=w[at])
        share[s] = np.average(group[at], weights=w[at])
    term = w * np.array([(y[i] - mean[s]) * (group[i] - share[s]) for i, s in enumerate(score)])
    path = np.array([term[score <= s].sum() for s in levels])
    total = np.bincount(user, weights=term)
    np.testing.assert_allclose(cusum.path * cusum.total_se, path, rtol=0, atol=1e-12)
    np.testing.assert_allclose(cusum.total_se, np.sqrt((total**2).sum()), rtol=1e-12)


def test_binned_scores_agree_with_exact_ones(rng):
    n = 6000
    user = rng.integers(1500, size=n)
    score, group = rng.beta(2, 3, size=n), rng.integers(2, size=n)
    y = (rng.uniform(size=n) < score).astype(float)
    keywords = {"cluster": user, "unit": "cluster"}
    exact = compare_groups(ScoreCells.from_rows(y, score, group, **keywords), rng=1)
    binned = compare_groups(ScoreCells.from_rows(y, score, group, n_bins=4096, **keywords), rng=1)
    at = np.interp(exact.differences.points, binned.differences.points, binned.differences.estimate)
    # Grid points move to the mean of their bin, 1/8192 of the range at most.
    np.testing.assert_allclose(exact.differences.estimate, at, rtol=0, atol=1e-3)
    # One row more or less below a quantile moves the path by about a hundredth.
    np.testing.assert_allclose(exact.cusum.ks_statistic, binned.cusum.ks_statistic, rtol=2e-2)
