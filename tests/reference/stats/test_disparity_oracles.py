"""The engine against second implementations that read rows and use generic solvers."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize, stats

from equipoise.stats.disparity.gaps import Target, Units, disparities
from equipoise.stats.disparity.joint import joint_test
from equipoise.stats.disparity.likelihoods import Samples, joint_likelihood, likelihood, profile
from equipoise.stats.disparity.references import compare
from oracles.disparity import (
    GROUPS,
    TARGETS,
    eel_statistic,
    el_statistic,
    influence_moments,
    moments_of,
    random_table,
    target_rows,
)


def with_f(statistics, found):
    """Statistics with one degree of freedom on the scale of their F law."""
    t = np.sqrt(np.asarray(statistics))
    return stats.norm.isf(stats.t.sf(t, found.units.df)) ** 2


# statsmodels announces a change of its return type; both have the statistic first.
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_one_mean_equals_statsmodels(rng):
    x = rng.exponential(size=60)
    sample = Samples.of_means(x)
    for mean in (0.7, 0.95, 1.2):
        expected = sm.emplike.DescStat(x).test_mean(mean)[0]
        found = likelihood(sample, np.array([mean])).statistic[0]
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_equal_means_of_several_samples_equal_statsmodels_anova(rng):
    x = [rng.gamma(2.0, size=n) for n in (40, 60, 35)]
    expected = sm.emplike.ANOVA(x).compute_ANOVA()
    found, mean = profile(Samples.of_means(*x), np.zeros(3))
    # statsmodels minimises over the common mean with a simplex search.
    np.testing.assert_allclose(found, expected[0], atol=1e-6)
    np.testing.assert_allclose(mean, expected[2], atol=1e-4)


def test_two_sample_statistic_equals_a_scalar_minimiser(rng):
    x, y = rng.exponential(size=50), rng.normal(1.5, 1.0, size=70)

    def total(theta, eps):
        return el_statistic(x - theta - eps) + el_statistic(y - theta)

    for eps in (-0.6, 0.0, 0.2):
        fit = optimize.minimize_scalar(total, bracket=(1.0, 1.3), args=(eps,), tol=1e-12)
        found = profile(Samples.of_means(x, y), np.array([eps, 0.0]))
        np.testing.assert_allclose(found, (fit.fun, fit.x), atol=1e-6)
        np.testing.assert_allclose(found[0], fit.fun, atol=1e-8)


def primal(z):
    """Maximise the product of weights directly, under the constraints."""
    n = len(z)
    z = z / np.abs(z).max(axis=0)
    fit = optimize.minimize(
        lambda p: -np.log(n * p).sum(),
        np.full(n, 1.0 / n),
        jac=lambda p: -1.0 / p,
        bounds=[(1e-9, 1.0)] * n,
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1.0, "jac": lambda _: np.ones(n)},
            {"type": "eq", "fun": lambda p: z.T @ p, "jac": lambda _: z.T},
        ],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return 2.0 * fit.fun


def test_joint_statistic_equals_a_generic_convex_solver(rng):
    z = rng.normal(0.15, 1.0, size=(40, 3)) @ rng.normal(size=(3, 3))
    found = joint_likelihood(np.ones(40), np.arange(40), z)
    np.testing.assert_allclose(found, primal(z), atol=1e-8)
    np.testing.assert_allclose(found, el_statistic(z), atol=1e-8)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("scale", ["difference", "ratio"])
def test_influence_statistics_of_rows_equal_dense_moments(rng, kind, scale):
    u, w, cell = random_table(rng)
    target = TARGETS[kind]
    null = 0.1 if scale == "difference" else 1.15
    z = influence_moments(u, w, cell, GROUPS, target, null, scale=scale)
    moments = moments_of(u, w, cell, 6)
    eel = disparities(moments, GROUPS, target, binary=False, method="eel", scale=scale, null=null)
    np.testing.assert_allclose(eel.statistic, with_f([eel_statistic(c) for c in z.T], eel))
    units = Units(u=u, w=w, cell=cell, unit=np.arange(len(u)))
    asked = {"binary": False, "method": "el", "scale": scale, "null": null}
    el = disparities(moments, GROUPS, target, units=units, **asked)
    assert set(el.method) <= {"influence_el", "el"}
    np.testing.assert_allclose(el.statistic, with_f([el_statistic(c) for c in z.T], el), atol=1e-8)
    for j, estimate in enumerate(el.estimate):
        at = influence_moments(u, w, cell, GROUPS[:, [j]], target, estimate, scale=scale)
        size = w[GROUPS[cell, j]].sum()
        unit = el.target_value[j] if scale == "ratio" else 1.0
        plain = compare(moments, GROUPS, target, scale=scale).se[j]
        np.testing.assert_allclose(plain, np.sqrt((at**2).sum()) / size / unit, rtol=1e-10)
        # Variances over n - 1.
        np.testing.assert_allclose(el.se[j], plain, rtol=0.02)


@pytest.mark.parametrize("kind", TARGETS)
def test_clusters_and_weights_equal_dense_cluster_totals(rng, kind):
    u, w, cell = random_table(rng)
    weight = rng.uniform(0.5, 3.0, size=len(u))
    cluster = rng.integers(80, size=len(u))
    target = TARGETS[kind]
    z = influence_moments(u * weight, weight, cell, GROUPS, target, 0.1, cluster=cluster)
    moments = moments_of(u, w, cell, 6, cluster=cluster, weight=weight)
    units = Units(u=u * weight, w=weight, cell=cell, unit=cluster)
    asked = {"binary": False, "null": 0.1, "units": units}
    eel = disparities(moments, GROUPS, target, method="eel", **asked)
    np.testing.assert_allclose(eel.statistic, with_f([eel_statistic(c) for c in z.T], eel))
    el = disparities(moments, GROUPS, target, method="el", **asked)
    np.testing.assert_allclose(el.statistic, with_f([el_statistic(c) for c in z.T], el), atol=1e-8)


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize("kind", ["population", "reference"])
def test_influence_likelihood_from_counts_equals_rows(rng, kind, scale):
    y, w, cell = random_table(rng, n=900, binary=True)
    target = TARGETS[kind]
    null = 0.05 if scale == "difference" else 1.1
    z = influence_moments(y, w, cell, GROUPS, target, null, scale=scale)
    found = disparities(
        moments_of(y, w, cell, 6), GROUPS, target, binary=True, method="el", scale=scale, null=null
    )
    which = found.method == "influence_el"
    assert which.sum() >= 2
    expected = with_f([el_statistic(c) for c in z.T], found)
    np.testing.assert_allclose(found.statistic[which], expected[which], atol=1e-8)


def test_profile_likelihood_of_counts_equals_that_of_rows(rng):
    y, w, cell = random_table(rng, n=600, binary=True)
    moments, target = moments_of(y, w, cell, 6), Target(kind="rest")
    for scale, null in (("difference", 0.07), ("ratio", 0.85)):
        asked = {"method": "el", "scale": scale, "null": null}
        counts = disparities(moments, GROUPS, target, binary=True, **asked)
        units = Units(u=y, w=w, cell=cell)
        rows = disparities(
            moments, GROUPS, target, binary=False, method="el", scale=scale, null=null, units=units
        )
        assert set(counts.method) == set(rows.method) == {"profile_el"}
        np.testing.assert_allclose(counts.statistic, rows.statistic, atol=1e-8)
        np.testing.assert_allclose(counts.ci_low, rows.ci_low, atol=1e-8)
        np.testing.assert_allclose(counts.ci_high, rows.ci_high, atol=1e-8)


def test_covariance_of_estimates_equals_influence_functions_of_rows(rng):
    u, w, cell = random_table(rng)
    cluster = rng.integers(90, size=len(u))
    moments = moments_of(u, w, cell, 6, cluster=cluster)
    for target in TARGETS.values():
        for scale in ("difference", "ratio"):
            rows = Units(u=u, w=w, cell=cell, unit=cluster)
            asked = {"binary": False, "method": "eel", "scale": scale, "units": rows}
            found = disparities(moments, GROUPS, target, **asked)
            phi = []
            for j in range(GROUPS.shape[1]):
                z = influence_moments(
                    u,
                    w,
                    cell,
                    GROUPS[:, [j]],
                    target,
                    found.estimate[j],
                    scale=scale,
                    cluster=cluster,
                )
                unit = found.target_value[j] if scale == "ratio" else 1.0
                phi.append(z[:, 0] / w[GROUPS[cell, j]].sum() / unit)
            np.testing.assert_allclose(found.covariance(), np.array(phi) @ np.array(phi).T)


def test_external_target_equals_a_scalar_minimiser(rng):
    u, w, cell = random_table(rng)
    y = (u > 1.0).astype(float)
    target = Target(kind="external", value=0.4, se=0.05)
    for scale, null in (("difference", 0.05), ("ratio", 1.2)):
        for values, binary in ((y, True), (u / 3.0, False)):
            units = None if binary else Units(u=values, w=w, cell=cell)
            found = disparities(
                moments_of(values, w, cell, 6),
                GROUPS,
                target,
                binary=binary,
                method="el",
                scale=scale,
                null=null,
                units=units,
            )
            for j in range(4):
                x = values[GROUPS[cell, j]]

                def total(theta, x=x, scale=scale, null=null):
                    tau = theta * null if scale == "ratio" else theta + null
                    return el_statistic(x - tau) + ((theta - 0.4) / 0.05) ** 2

                fit = optimize.minimize_scalar(total, bracket=(0.38, 0.42), tol=1e-12)
                expected = with_f(np.full(4, fit.fun), found)[j]
                np.testing.assert_allclose(found.statistic[j], expected, atol=1e-7)


@pytest.mark.parametrize("kind", ["known", "population", "reference"])
def test_joint_test_equals_dense_moments(rng, kind):
    for binary in (True, False):
        u, w, cell = random_table(rng, n=900, binary=binary)
        target = TARGETS[kind] if binary or kind != "known" else Target(kind="known", value=1.25)
        moments = moments_of(u, w, cell, 6)
        units = None if binary else Units(u=u, w=w, cell=cell)
        z = influence_moments(u, w, cell, GROUPS, target, 0.0)
        el = joint_test(moments, GROUPS, target, binary=binary, method="el", units=units)
        eel = joint_test(moments, GROUPS, target, binary=binary, method="eel", units=units)
        assert el.df == eel.df == np.linalg.matrix_rank(z) == 4
        assert el.method in {"el", "influence_el"}
        np.testing.assert_allclose(el.statistic, el_statistic(z), atol=1e-8)
        np.testing.assert_allclose(eel.statistic, eel_statistic(z), rtol=1e-8)


def test_joint_test_of_clusters_equals_dense_totals(rng):
    u, w, cell = random_table(rng)
    cluster = rng.integers(90, size=len(u))
    target = TARGETS["reference"]
    z = influence_moments(u, w, cell, GROUPS, target, 0.0, cluster=cluster)
    units = Units(u=u, w=w, cell=cell, unit=cluster)
    moments = moments_of(u, w, cell, 6, cluster=cluster)
    found = joint_test(moments, GROUPS, target, binary=False, method="el", units=units)
    np.testing.assert_allclose(found.statistic, el_statistic(z), atol=1e-8)


def test_score_joint_test_of_a_partition_is_pearsons_chi_square(rng):
    y, w, cell = random_table(rng, n=200, binary=True)
    found = joint_test(
        moments_of(y, w, cell, 6), np.eye(6, dtype=bool), Target(kind="population"), binary=True
    )
    table = np.stack([np.bincount(cell, y), np.bincount(cell, 1 - y)])
    expected = stats.chi2_contingency(table, correction=False)
    assert found.method == "score"
    assert found.df == expected.dof
    np.testing.assert_allclose(found.statistic, expected.statistic)
    np.testing.assert_allclose(found.p_value, expected.pvalue)


def test_target_rows_of_the_oracle_are_what_they_say():
    cell = np.arange(6)
    group = GROUPS[cell, 1]
    assert target_rows(TARGETS["rest"], group, cell).tolist() == (~group).tolist()
    assert not target_rows(TARGETS["known"], group, cell).any()
