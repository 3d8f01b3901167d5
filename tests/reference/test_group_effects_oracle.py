"""A second implementation from rows: influence values, jackknife, textbook formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.moments import CellMoments
from equipoise.stats.effects.bias import bias_covariance, bias_estimates, treatment_bias
from equipoise.stats.effects.collapse import effect_quantities
from equipoise.stats.effects.effect_scores import lin_outcomes
from equipoise.stats.effects.errors import effect_moments, group_errors


@pytest.fixture
def rows(rng):
    n = 1200
    x = rng.normal(size=n)
    g = rng.integers(3, size=n)
    t = (rng.random(n) < np.array([0.5, 0.4, 0.6])[g]).astype(int)
    mu0 = 0.3 + 0.1 * np.tanh(x)
    y = (rng.random(n) < mu0 * (1 + 0.2 * t)).astype(float)
    return {
        "y": y,
        "t": t,
        "f": 1.2 + 0.2 * np.tanh(x),
        "g": g,
        "mu0": mu0 + 0.05 * x**2,
        "mu1": 1.2 * mu0,
        "x": x,
    }


def relative_error(y, t, f, mu0, mu1, collapse):
    """Error of one group from its rows, written as in the paper."""
    c, a = t == 0, t == 1
    m1, m0 = y[a].mean(), y[c].mean()
    if collapse == "control":
        return (y * f)[c].sum() / y[c].sum() - m1 / m0
    if collapse == "mean":
        return f.mean() - m1 / m0
    if collapse == "weighted":
        return np.mean(mu0 / m0 * f) - m1 / m0
    if collapse == "hajek":
        return (mu0 * f).sum() / mu0.sum() - m1 / m0
    if collapse == "positives":
        lam, psi = (y * f)[c].sum() / y[c].sum(), (y * f)[a].sum() / y[a].sum()
        n0, n1 = y[c].sum(), y[a].sum()
        return (n0 * lam**2 + n1 * psi) / (n0 * lam + n1) - m1 / m0

    def augmented(v, model, arm):
        share = np.mean(t == arm)
        return np.mean(model + (t == arm) * (v - model) / share)

    base = augmented(y, mu0, 0)
    return augmented(y * f, mu0 * f, 0) / base - augmented(y, mu1, 1) / base


def difference_error(y, t, f):
    return f.mean() - (y[t == 1].mean() - y[t == 0].mean())


def jackknife(function, n):
    values = np.array([function(np.delete(np.arange(n), i)) for i in range(n)])
    return np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum())


@pytest.mark.parametrize("collapse", ["control", "mean", "weighted", "hajek", "positives", "aipw"])
def test_errors_from_sums_equal_errors_from_rows(rows, collapse):
    models = (
        {"control_pred": rows["mu0"], "treated_pred": rows["mu1"]}
        if collapse in {"weighted", "hajek", "aipw"}
        else {}
    )
    sums = effect_moments(rows["y"], rows["t"], rows["f"], rows["g"], collapse=collapse, **models)
    found = group_errors(sums, collapse=collapse)
    for g in range(3):
        member = rows["g"] == g
        part = {k: v[member] for k, v in rows.items() if k not in {"g", "x"}}
        assert_allclose(found.error[g], relative_error(**part, collapse=collapse), atol=1e-12)


@pytest.mark.parametrize("collapse", ["control", "mean", "weighted", "hajek", "positives", "aipw"])
def test_standard_errors_agree_with_the_jackknife(rows, collapse):
    member = rows["g"] == 0
    part = {k: v[member] for k, v in rows.items() if k not in {"g", "x"}}
    models = (
        {"control_pred": part["mu0"], "treated_pred": part["mu1"]}
        if collapse in {"weighted", "hajek", "aipw"}
        else {}
    )
    sums = effect_moments(
        part["y"], part["t"], part["f"], np.zeros(member.sum(), int), collapse=collapse, **models
    )
    se = group_errors(sums, collapse=collapse).error_se[0]

    def leave(keep):
        return relative_error(**{k: v[keep] for k, v in part.items()}, collapse=collapse)

    # Delta method and jackknife differ in second order; about 400 rows, 120 positives.
    assert_allclose(se, jackknife(leave, int(member.sum())), rtol=0.02)


def test_difference_has_the_two_sample_variance_with_the_collapse(rows):
    sums = effect_moments(rows["y"], rows["t"], rows["f"], rows["g"], measure="difference")
    found = group_errors(sums, measure="difference", collapse="mean")
    for g in range(3):
        member = rows["g"] == g
        y, t, f = (rows[k][member] for k in ("y", "t", "f"))
        assert_allclose(found.error[g], difference_error(y, t, f), atol=1e-12)
        e, m1, m0 = t.mean(), y[t == 1].mean(), y[t == 0].mean()
        influence = f - f.mean() - (t * (y - m1) / e - (1 - t) * (y - m0) / (1 - e))
        assert_allclose(found.error_se[g], np.sqrt((influence**2).sum()) / len(y), rtol=1e-10)


def test_default_standard_error_is_the_closed_form(rows):
    found = group_errors(effect_moments(rows["y"], rows["t"], rows["f"], rows["g"]))
    for g in range(3):
        member = rows["g"] == g
        y, t, f = (rows[k][member] for k in ("y", "t", "f"))
        c, a = t == 0, t == 1
        b = found.error[g]
        variance = (y * f - b * y)[c].var() / c.sum() + y[a].var() / a.sum()
        assert_allclose(found.error_se[g], np.sqrt(variance) / y[c].mean(), rtol=1e-10)


def test_bias_against_the_stratified_rest_agrees_with_rows_and_jackknife(rows):
    def bias(keep):
        y, t, f, g = (rows[k][keep] for k in ("y", "t", "f", "g"))
        size = np.array([(g == h).sum() for h in range(3)])
        means = np.array(
            [
                [
                    y[(g == h) & (t == 1)].mean(),
                    y[(g == h) & (t == 0)].mean(),
                    (y * f)[(g == h) & (t == 0)].mean(),
                ]
                for h in range(3)
            ]
        )
        m1, m0, z0 = means[0]
        r1, r0, rz = size[1:] @ means[1:] / size[1:].sum()
        return (z0 - m1) / m0 - (rz - r1) / r0

    n = len(rows["y"])
    errors = group_errors(effect_moments(rows["y"], rows["t"], rows["f"], rows["g"]))
    found, se = bias_estimates(errors)
    assert_allclose(found[0], bias(np.arange(n)), atol=1e-10)
    assert_allclose(se[0], jackknife(bias, n), rtol=0.02)
    assert_allclose(np.sqrt(np.diag(bias_covariance(errors))), se, rtol=1e-10)


def test_joint_covariance_of_biases_agrees_with_the_jackknife(rows):
    n = len(rows["y"])

    def biases(keep):
        sums = effect_moments(*(rows[k][keep] for k in ("y", "t", "f", "g")))
        return bias_estimates(group_errors(sums))[0]

    values = np.array([biases(np.delete(np.arange(n), i)) for i in range(0, n, 1)])
    centred = values - values.mean(axis=0)
    expected = (n - 1) / n * centred.T @ centred
    found = bias_covariance(group_errors(effect_moments(*(rows[k] for k in ("y", "t", "f", "g")))))
    assert_allclose(found, expected, rtol=0.05, atol=0.02 * np.abs(expected).max())


def test_cluster_standard_error_sums_influence_values_by_cluster(rows, rng):
    cluster = rng.integers(200, size=len(rows["y"]))
    member = rows["g"] == 0
    y, t, f = (rows[k][member] for k in ("y", "t", "f"))
    sums = effect_moments(y, t, f, np.zeros(member.sum(), int), cluster=cluster[member])
    found = group_errors(sums)
    n, e = len(y), t.mean()
    m1, m0 = y[t == 1].mean(), y[t == 0].mean()
    lam, tau = (y * f)[t == 0].sum() / y[t == 0].sum(), m1 / m0
    influence = (1 - t) * (y * f - lam * y) / (1 - e) / m0
    influence -= (t * (y - m1) / e - tau * (1 - t) * (y - m0) / (1 - e)) / m0
    totals = np.bincount(cluster[member], weights=influence)
    assert_allclose(found.error_se[0], np.sqrt((totals**2).sum()) / n, rtol=1e-10)


def test_clusters_across_groups_give_the_covariance_between_group_and_rest(rows, rng):
    cluster = rng.integers(150, size=len(rows["y"]))
    args = [rows[k] for k in ("y", "t", "f", "g")]
    errors = group_errors(effect_moments(*args, cluster=cluster))
    n = 150

    def biases(gone):
        keep = cluster != gone
        return bias_estimates(group_errors(effect_moments(*(a[keep] for a in args))))[0]

    values = np.array([biases(k) for k in range(n)])
    expected = np.sqrt((n - 1) / n * ((values - values.mean(axis=0)) ** 2).sum(axis=0))
    assert_allclose(bias_estimates(errors)[1], expected, rtol=0.05)
    joint = treatment_bias(errors)
    assert 0 <= joint.equal.p_value <= 1
    assert joint.zero.df == 3


def test_lin_adjustment_is_the_interacted_regression(rows):
    member = rows["g"] == 1
    y, t, x = rows["y"][member], rows["t"][member], rows["x"][member][:, None]
    zero = np.zeros(member.sum(), dtype=int)
    mu0, mu1 = lin_outcomes(y, t, zero, x)
    sums = effect_moments(
        y, t, np.zeros(len(y)), zero, measure="difference", control_pred=mu0, treated_pred=mu1
    )
    found = group_errors(sums, measure="difference", collapse="aipw")
    centred = x - x.mean()
    design = np.column_stack([np.ones(len(y)), t, centred, t[:, None] * centred])
    coefficient = np.linalg.lstsq(design, y, rcond=None)[0]
    assert_allclose(found.effect[0], coefficient[1], atol=1e-12)


def test_paper_split_uses_separate_halves(rows, rng):
    half = rng.integers(2, size=len(rows["y"]))
    args = [rows[k] for k in ("y", "t", "f", "g")]
    found = group_errors(effect_moments(*args, half=half), split=True)
    for g in range(3):
        member = rows["g"] == g
        y, t, f = (rows[k][member] for k in ("y", "t", "f"))
        h = half[member]
        lam = (y * f)[(t == 0) & (h == 0)].sum() / y[(t == 0) & (h == 0)].sum()
        tau = y[(t == 1) & (h == 1)].mean() / y[(t == 0) & (h == 1)].mean()
        assert_allclose(found.error[g], lam - tau, atol=1e-12)
        assert_allclose(found.error_se[g], np.hypot(found.predicted_se[g], found.effect_se[g]))


def test_positives_only_needs_the_arm_ratio_and_has_poisson_variance(rng):
    y = np.ones(300)
    t = np.repeat([0, 1], [120, 180])
    f = rng.uniform(1, 2, 300)
    found = group_errors(effect_moments(y, t, f, np.zeros(300, int)), arm_ratio=1.5)
    tau = 180 / 120 / 1.5
    assert_allclose(found.effect, tau)
    assert_allclose(found.effect_se / tau, np.sqrt(1 / 180 + 1 / 120))
    assert_allclose(found.predicted_se, f[:120].std() / np.sqrt(120))
    assert_allclose(found.error, f[:120].mean() - tau)


def test_weight_k_counts_as_k_rows_for_estimates_and_count_for_variances_too(rows):
    k = rows["g"] + 1
    args = [rows[k_] for k_ in ("y", "t", "f", "g")]
    repeated = [np.repeat(a, k) for a in args]
    direct = group_errors(effect_moments(*repeated))
    counted = group_errors(effect_moments(*args, count=k))
    weighted = group_errors(effect_moments(*args, weight=k))
    assert_allclose(counted.error, direct.error, atol=1e-12)
    assert_allclose(counted.error_se, direct.error_se, rtol=1e-10)
    assert_allclose(weighted.error, direct.error, atol=1e-12)
    assert_allclose(weighted.error_se, group_errors(effect_moments(*args)).error_se, rtol=1e-10)


def test_quantities_of_cells_are_what_the_engine_sums():
    q = effect_quantities("relative", "aipw", treated_pred=True)
    assert q == ("one", "y", "yf", "mu0", "mu0f", "mu1")
    assert isinstance(CellMoments.from_rows(np.ones((2, 1)), [0, 1]), CellMoments)
