import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.effects.bias import (
    bias_covariance,
    bias_estimates,
    error_tests,
    treatment_bias,
)
from equipoise.stats.effects.errors import effect_moments, group_errors
from equipoise.stats.effects.ratio_tests import ratio_tests, score_interval


def trial(*groups, predicted=1.5):
    """Errors of groups given as (control positives, treated positives, rows per arm)."""
    y, t, g = [], [], []
    for k, (control, treated, n) in enumerate(groups):
        y += [np.repeat([1.0, 0.0], [control, n - control])]
        y += [np.repeat([1.0, 0.0], [treated, n - treated])]
        t += [np.repeat([0, 1], n)]
        g += [np.full(2 * n, k)]
    y, t, g = (np.concatenate(v) for v in (y, t, g))
    return group_errors(effect_moments(y, t, np.full(len(y), predicted), g))


class FallingLaw:
    """A law whose statistic is largest at 1 and smaller again at zero, as with few clusters."""

    estimate, se, method = np.array([2.0, -2.0]), np.ones(2), ("t", "t")

    def root(self, value):
        return np.array([1.8, -1.8]) if value == 0.0 else np.array([2.5, -2.5])

    def interval(self, _critical):
        return np.array([0.9, -10.0]), np.array([10.0, -0.9])


def test_an_interval_reaches_zero_where_the_test_does_not_reject_it():
    found = ratio_tests(FallingLaw(), z=1.96, adjust="none")
    assert (found.p_value_raw > 0.05).all()
    assert (found.low, found.high) == ((0.0, -10.0), (10.0, 0.0))
    rejected = ratio_tests(FallingLaw(), z=1.645, adjust="none")
    assert (rejected.low, rejected.high) == ((0.9, -10.0), (10.0, -0.9))
    low, high = rejected.confidence_interval(0.95)
    assert (low.tolist(), high.tolist()) == ([0.0, -10.0], [10.0, 0.0])


THREE = ((100, 150, 1000), (50, 90, 1000), (200, 280, 1000))


def test_score_statistic_and_interval_by_hand():
    found = error_tests(trial((100, 200, 1000)), test="score", adjust="none")
    # D(0) = 1.5 * .1 - .2; variance of 1.5 y in controls plus that of y in treated.
    variance = 1.5**2 * 0.09 / 1000 + 0.16 / 1000
    z = (0.15 - 0.2) / np.sqrt(variance)
    assert_allclose(found.statistic, z)
    assert_allclose(found.p_value, 2 * stats.norm.sf(-z))
    for bound in (found.low[0], found.high[0]):
        at = (1.5 - bound) ** 2 * 0.09 / 1000 + 0.16 / 1000
        assert_allclose(abs(0.15 - bound * 0.1 - 0.2) / np.sqrt(at), stats.norm.isf(0.025))


def test_an_interval_without_bound_is_open_on_both_sides():
    assert score_interval(0.02, 0.01, 1e-4, 0.0, 1e-4, 1.96) == (-np.inf, np.inf)
    found = error_tests(trial((2, 3, 1000)), test="score", adjust="none")
    assert (found.low[0], found.high[0]) == (None, None)


def test_zero_is_in_the_interval_exactly_when_p_exceeds_the_level():
    for treated in range(100, 200, 7):
        for test in ("score", "wald"):
            found = error_tests(trial((100, treated, 1000)), test=test, adjust="none")
            assert (found.low[0] <= 0 <= found.high[0]) == (found.p_value[0] > 0.05)


def test_rest_is_the_outcome_weighted_mean_of_the_other_errors():
    errors = trial(*THREE)
    bias, _ = bias_estimates(errors)
    rest = (0.05 * errors.error[1] + 0.2 * errors.error[2]) / 0.25
    assert_allclose(bias[0], errors.error[0] - rest)
    assert_allclose(treatment_bias(errors).rest[0], rest)


def test_variance_of_the_bias_is_that_of_group_plus_rest():
    errors = trial(*THREE)
    _, se = bias_estimates(errors)
    merged = trial(THREE[0], THREE[1])
    assert se[0] > errors.error_se[0]
    assert bias_estimates(merged)[1][0] == pytest.approx(np.hypot(*merged.error_se))


def test_two_groups_are_one_test():
    found = treatment_bias(trial((20, 30, 1000), (100, 210, 1000)), margin=0.1)
    assert_allclose(found.bias.estimate[0], -found.bias.estimate[1])
    assert found.bias.p_value[0] == found.bias.p_value[1] == found.bias.p_value_raw[0]
    assert found.bias.low[0] == pytest.approx(-found.bias.high[1])


def test_omnibus_of_equality_by_hand():
    errors = trial(*THREE)
    weight = 1 / errors.error_se**2
    common = weight @ errors.error / weight.sum()
    statistic = weight @ (errors.error - common) ** 2
    found = treatment_bias(errors, test="score")
    assert_allclose(found.equal.statistic, statistic)
    assert_allclose(found.equal.p_value, stats.chi2.sf(statistic, 2))
    assert found.zero.df == 3
    assert_allclose(found.zero.statistic, (found.error.statistic**2).sum())


def test_adjustments_order_the_p_values():
    errors = trial(*THREE)
    by = {
        a: treatment_bias(errors, adjust=a).bias.p_value
        for a in ("none", "bh", "by", "holm", "bonferroni", "max_t")
    }
    assert np.all(by["none"] <= by["bh"])
    assert np.all(by["bh"] <= by["holm"])
    assert np.all(by["holm"] <= by["bonferroni"])
    assert np.all(by["bh"] <= by["by"])
    assert np.all(by["none"] <= by["max_t"] + 0.01)


def test_equivalence_by_hand_on_the_difference_scale():
    y = np.tile(np.repeat([1.0, 0.0], [50, 50]), 6)
    t, g = np.tile(np.repeat([0, 1], 100), 3), np.repeat([0, 1, 2], 200)
    errors = group_errors(
        effect_moments(y, t, np.zeros(600), g, measure="difference"),
        measure="difference",
        collapse="mean",
    )
    found = treatment_bias(errors, margin=0.3, adjust="none", test="wald")
    se = np.sqrt(0.25 / 50 * (1 + 0.5))
    assert_allclose(found.bias.equivalence_p_value, stats.norm.sf(0.3 / se), rtol=1e-6)
    found = treatment_bias(errors, margin=0.3, adjust="none")
    # Welch: six arms of 100 rows, variances over n - 1.
    se *= np.sqrt(100 / 99)
    assert_allclose(found.bias.equivalence_p_value, stats.t.sf(0.3 / se, found.df), rtol=1e-3)
    tighter = treatment_bias(errors, margin=0.01, adjust="none")
    assert np.all(tighter.bias.equivalence_p_value > 0.3)


def test_pooled_rest_equals_stratified_rest_under_equal_shares():
    errors = trial(*THREE)
    pooled = treatment_bias(errors, rest="pooled")
    stratified = treatment_bias(errors)
    assert_allclose(pooled.rest, stratified.rest)
    assert_allclose(pooled.bias.se, stratified.bias.se, rtol=0.01)
    covariance = bias_covariance(errors, rest="pooled")
    assert_allclose(np.sqrt(np.diag(covariance)), bias_estimates(errors, rest="pooled")[1])


def test_variances_of_all_biases_together_are_those_of_each_alone():
    errors = trial(*THREE)
    assert_allclose(np.sqrt(np.diag(bias_covariance(errors))), bias_estimates(errors)[1])


def test_one_group_has_no_rest():
    with pytest.raises(DataError, match="at least two groups"):
        treatment_bias(trial((10, 20, 100)))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"rest": "all"}, "`rest` must be one of"),
        ({"test": "exact"}, "`test` must be one of"),
        ({"adjust": "hom"}, "Did you mean 'holm'"),
        ({"margin": -1}, "`margin` must be"),
        ({"confidence_level": 95}, "Pass 0.95"),
    ],
)
def test_options_are_checked(options, match):
    with pytest.raises(InvalidParameterError, match=match):
        treatment_bias(trial(*THREE), **options)


def test_a_pooled_rest_needs_one_treated_share():
    """5 standard errors of a share apart are refused, 1 is not."""

    def errors(treated, n):
        y = np.resize([0.0, 1.0, 1.0], n + 400)
        t = np.concatenate([np.arange(n) < treated, np.arange(400) % 2])
        g = np.repeat([0, 1], [n, 400])
        return group_errors(effect_moments(y, t.astype(int), np.full(len(y), 1.5), g))

    with pytest.raises(DataError, match=r"ranges from 0\.50 to 0\.75"):
        treatment_bias(errors(300, 400), rest="pooled")
    assert treatment_bias(errors(210, 400), rest="pooled").rest.shape == (2,)
