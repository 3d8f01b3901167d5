"""Each test fails with the formula as the paper prints it; the numbers are those of the erratum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats

from equipoise.exceptions import DataError
from equipoise.stats.delta import Linearised
from equipoise.stats.effects.bias import bias_estimates, error_tests, treatment_bias
from equipoise.stats.effects.collapse import collapse_parts, effect_quantities
from equipoise.stats.effects.corrections import effect_correction, normal_prior
from equipoise.stats.effects.errors import corrected_errors, effect_moments, group_errors
from support.trials import (
    EFFECT,
    SHARE,
    Trial,
    control_sums,
    moments_of,
    population_sums,
    replicated_errors,
)


def collapsed(trial, collapse, *, change=None):
    """Predicted effect of an infinite group, and its true effect."""
    names = effect_quantities("relative", collapse)
    total = population_sums([trial], [1.0], names)
    if change is not None:
        total = change(total, names)
    implied, treated, control, _ = collapse_parts(total, measure="relative", collapse=collapse)
    return (implied / control).value[0], (treated / control).value[0]


def test_e1_root_n_times_the_estimate_diverges(rng):
    # (21) says that sqrt(n) B has mean b; it is sqrt(n) b.
    means = {}
    for n in (2_000, 200_000):
        error = replicated_errors(rng, Trial(0.02, 0.1), n, 4_000)
        means[n] = np.mean(np.sqrt(n) * (error.error - error.second_order_bias))
    assert means[200_000] > 5 * means[2_000]
    assert_allclose(means[200_000], np.sqrt(200_000) * 0.1, rtol=0.05)


def test_e2_the_estimate_is_root_n_consistent_and_no_faster(rng):
    # "B = b + o_p(n^-1/2)" would make sqrt(n) |B - b| vanish.
    spread = [
        np.sqrt(n) * np.std(replicated_errors(rng, Trial(0.02, 0.1), n, 4_000).error)
        for n in (20_000, 500_000)
    ]
    assert_allclose(spread[1], spread[0], rtol=0.1)


def test_e3_standard_errors_are_those_of_the_estimate(rng):
    # (22) calls Var(B) the variance of the limit of sqrt(n)(B - b); that is n Var(B).
    n = 50_000
    error = replicated_errors(rng, Trial(0.02, 0.1), n, 4_000)
    assert_allclose(np.median(error.error_se), error.error.std(), rtol=0.05)
    assert error.error.std() * np.sqrt(n) > 100 * np.median(error.error_se) ** 2


def test_e4_the_debiased_prediction_is_the_estimated_effect(rng):
    # (23) gives it the variance of the prediction.
    error = replicated_errors(rng, Trial(0.02, 0.1), 50_000, 50)
    assert_allclose(error.predicted - error.error, error.effect, rtol=1e-12)
    assert np.all(error.effect_se > 2 * error.predicted_se)


def test_e5_gradient_of_a_ratio():
    # C.1 prints (1/x, -x/y).
    x = Linearised(value=np.array([3.0]), gradient=np.array([[[1.0, 0.0]]]))
    y = Linearised(value=np.array([2.0]), gradient=np.array([[[0.0, 1.0]]]))
    assert_allclose((x / y).gradient[0, 0], [1 / 2, -3 / 4])
    assert not np.allclose((x / y).gradient[0, 0], [1 / 3, -3 / 2])


def test_e6_variance_of_a_ratio_of_means(rng):
    # C.1 prints the variance of m0/m1.
    error = replicated_errors(rng, Trial(0.02, 0.0), 100_000, 6_000)
    m1, m0, n = error.effect.mean() * 0.02, 0.02, 50_000
    s1, s0 = m1 * (1 - m1), m0 * (1 - m0)
    right = s1 / (n * m0**2) + m1**2 * s0 / (n * m0**4)
    printed = s0 / (n * m1**2) + s1 * m0**2 / (n * m1**4)
    assert_allclose(np.median(error.effect_se) ** 2, right, rtol=0.03)
    assert_allclose(error.effect.var(), right, rtol=0.08)
    assert abs(printed / error.effect.var() - 1) > 0.15


def test_e7_the_variance_of_the_collapsed_prediction_counts(rng):
    # C.1 leaves Var(tau_f) out.
    n, size = 4_000, 400
    f = np.where(rng.random(n) < 0.5, 0.2, 2.2)
    y = rng.random((size, n)) < 0.3
    t = rng.random((size, n)) < 0.5
    found = group_errors(
        effect_moments(
            y.ravel().astype(float),
            t.ravel().astype(int),
            np.tile(f, size),
            np.repeat(np.arange(size), n),
        )
    )
    assert_allclose(found.error.std(), np.median(found.error_se), rtol=0.12)
    assert np.median(found.error_se) > 1.2 * np.median(found.effect_se)
    assert_allclose(found.error_se**2, found.effect_se**2 + found.predicted_se**2, rtol=1e-9)


def test_e8_a_detected_error_of_either_sign_is_corrected(rng):
    # (42) is one-sided: risk 9.00 at b = -3 s, against 1.95.
    b = -3.0 + rng.standard_normal(200_000)
    c = effect_correction(b, np.ones_like(b), method="mean_if_detected").amount
    assert_allclose(np.mean((-3.0 - c) ** 2), 1.95, atol=0.05)
    one_sided = np.where(b > stats.norm.isf(0.025), b, 0.0)
    assert np.mean((-3.0 - one_sided) ** 2) > 8.9


def test_e9_the_best_factor_for_absolute_error_is_continuous():
    # Proposition 2: 1 whenever b is not zero.
    def risk(factor, z):
        mean, sd = z * (1 - factor), factor
        return stats.foldnorm.mean(abs(mean) / sd, scale=sd) if sd > 0 else abs(z)

    best = [
        optimize.minimize_scalar(risk, args=(z,), bounds=(1e-6, 1), method="bounded").x
        for z in (0.25, 0.5, 1.0, 2.0, 5.0)
    ]
    assert_allclose(best, [0.135, 0.293, 0.555, 0.811, 0.962], atol=0.002)
    assert_allclose([risk(1.0, 0.5), risk(0.0, 0.5)], [0.798, 0.5], atol=0.001)


def test_e10_the_two_mse_factors_share_a_limit_and_are_clipped(rng):
    size = 20_000
    for z in (0.0, 1.0):
        b = z + rng.standard_normal(size)
        s = np.ones(size)
        draws = b[:, None] + rng.standard_normal((size, 50))
        m2, variance = np.mean(draws**2, axis=1), draws.var(axis=1, ddof=1)
        plus = effect_correction(b, s, method="mse_plus", second_moment=m2).amount
        minus = effect_correction(b, np.sqrt(variance), method="mse_minus", second_moment=m2).amount
        limit = effect_correction(b, s, method="mse_plus").amount
        assert_allclose(limit, b**3 / (b**2 + 1), rtol=1e-12)
        other = effect_correction(b, s, method="mse_minus").amount
        assert_allclose(limit, other, rtol=1e-12, atol=1e-14)
        assert np.corrcoef(plus / b, minus / b)[0, 1] > 0.85
        assert max(np.max(plus / b), np.max(minus / b)) <= 1.0
        assert np.min(minus / b) >= 0.0
    # At b = 0 the factor estimates 0 by .34.
    at_zero = rng.standard_normal(size)
    factor = effect_correction(at_zero, np.ones(size), method="mse_plus").amount / at_zero
    assert_allclose(factor.mean(), 0.34, atol=0.01)


def test_e11_mse_one_is_worst_only_because_of_the_split(rng):
    # B comes from one split, the draws are centred at the estimate from all rows.
    size = 60_000
    s = rng.choice(np.geomspace(0.007, 0.2, 60), size=size)
    b = rng.normal(0, 0.03, size)
    full = b + s * rng.standard_normal(size)
    split = full + s * rng.standard_normal(size)
    m2 = full**2 + 2 * s**2

    def rmse(amount):
        return np.sqrt(np.mean((b - amount) ** 2))

    split_se = np.sqrt(2) * s
    paper = [
        rmse(effect_correction(split, split_se, method=m, second_moment=m2).amount)
        for m in ("mse_plus", "mse_minus")
    ]
    whole = [rmse(effect_correction(full, s, method=m).amount) for m in ("mse_plus", "mse_minus")]
    assert paper[0] > 1.25 * paper[1]
    assert_allclose(whole[0], whole[1], rtol=1e-12)
    assert whole[0] < 0.8 * paper[0]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_e12_equation_20_misses_the_effect_for_a_perfect_model(share):
    trial = Trial(0.02, 0.0, treated_share=share)
    control, effect = collapsed(trial, "control")
    assert_allclose(control, effect, rtol=1e-12)
    equation_20, _ = collapsed(trial, "positives")
    assert equation_20 > effect + 0.002
    if share == 0.5:
        weight = SHARE * trial.control_rate / (SHARE @ trial.control_rate)
        variance = weight @ EFFECT**2 - (weight @ EFFECT) ** 2
        assert_allclose(equation_20, effect + variance / (2 * effect), rtol=1e-12)


def test_e13_the_step_from_69_to_70_needs_equality_of_means():
    trial = Trial(0.02, 0.0)
    weight = SHARE * trial.control_rate * EFFECT
    weight = weight / weight.sum()
    assert (weight @ (1 / EFFECT)) * (weight @ EFFECT) > 1.005


def test_e14_a_constant_prediction_hides_the_fault_of_equation_20():
    trial = Trial(0.02, 0.0)
    names = effect_quantities("relative", "positives")
    total = population_sums([trial], [1.0], names)
    total[:, :, names.index("yf")] = 1.3 * total[:, :, names.index("y")]
    implied, _, control, _ = collapse_parts(total, measure="relative", collapse="positives")
    assert_allclose((implied / control).value, 1.3)
    assert abs(np.subtract(*collapsed(trial, "positives"))) > 0.002


def test_e15_equation_20_does_not_move_with_the_predictions():
    moved = [
        collapsed(Trial(0.02, -0.1), c)[0] - collapsed(Trial(0.02, 0.0), c)[0]
        for c in ("control", "positives")
    ]
    assert_allclose(moved[0], -0.1, rtol=1e-12)
    assert abs(moved[1] + 0.1) > 2e-4


def test_e16_equation_16_depends_on_the_scale_of_the_outcome_model():
    def scaled(total, names):
        out = total.copy()
        for name in ("mu0", "mu0f"):
            if name in names:
                out[:, :, names.index(name)] *= 1.2
        return out

    trial = Trial(0.02, 0.0)
    effect = collapsed(trial, "control")[1]
    assert_allclose(collapsed(trial, "weighted", change=scaled)[0], 1.2 * effect, rtol=1e-9)
    for collapse in ("hajek", "aipw"):
        assert_allclose(collapsed(trial, collapse, change=scaled)[0], effect, rtol=1e-9)


def test_e16_equation_16_is_blind_to_an_error_in_the_baseline_of_a_t_learner():
    trial = Trial(0.02, 0.0)

    def halved(total, names):
        # f = p1 / (p0 / 2) and mu0 = p0 / 2: the product is p1, whatever p0 is.
        out = total.copy()
        for name in ("yf",):
            if name in names:
                out[:, :, names.index(name)] *= 2.0
        return out

    blind, effect = collapsed(trial, "weighted", change=halved)
    assert_allclose(blind - effect, 0.0, atol=1e-12)
    seen, effect = collapsed(trial, "control", change=halved)
    assert_allclose(seen - effect, effect, rtol=1e-9)


def test_e17_an_unweighted_mean_of_relative_effects_is_not_the_relative_effect():
    trial = Trial(0.02, 0.0)
    mean, effect = collapsed(trial, "mean")
    assert abs(mean - effect) > 0.03
    assert_allclose(collapsed(trial, "control")[0], effect, rtol=1e-12)


def test_e18_the_reference_law_is_normal_because_variances_are_exact(rng):
    # 50 bootstrap draws leave 49 degrees of freedom: 1.96 has size .0557, not .05.
    assert_allclose(2 * stats.t.sf(1.96, 49), 0.0557, atol=1e-4)
    tests = error_tests(replicated_errors(rng, Trial(0.02, 0.0), 2_000, 50), adjust="none")
    assert_allclose(tests.p_value, 2 * stats.norm.sf(np.abs(tests.statistic)), rtol=1e-12)


def test_e19_a_pooled_rest_is_confounded_when_treated_shares_differ():
    # Every group has effect 1.2 and predictions of 1.2.
    def rows(n, share, base):
        treated, control = int(n * share), int(n * (1 - share))
        y1, y0 = round(treated * base * 1.2), round(control * base)
        y = np.r_[np.ones(y1), np.zeros(treated - y1), np.ones(y0), np.zeros(control - y0)]
        return y, np.repeat([1, 0], [treated, control])

    parts = [rows(10_000, 0.5, 0.05), rows(10_000, 0.2, 0.25), rows(10_000, 0.5, 0.1)]
    y, t = (np.concatenate(p) for p in zip(*parts, strict=True))
    g = np.repeat([0, 1, 2], [len(p[0]) for p in parts])
    rest = g < 2
    pooled = y[rest & (t == 1)].mean() / y[rest & (t == 0)].mean()
    assert pooled < 0.8
    errors = group_errors(effect_moments(y, t, np.full(len(y), 1.2), g))
    assert_allclose(bias_estimates(errors)[0], 0.0, atol=1e-3)
    with pytest.raises(DataError, match="treated share"):
        treatment_bias(errors, rest="pooled")


def test_e20_the_rest_is_weighted_by_outcomes(rng):
    trials = [Trial(0.06, 0.3), Trial(0.006, -0.1), Trial(0.05, 0.0)]
    sizes = (10**9, 3 * 10**9, 10**9)
    parts = [control_sums(rng, trial, n, 1) for trial, n in zip(trials, sizes, strict=True)]
    errors = group_errors(
        moments_of(np.stack([p[0][0] for p in parts]), np.stack([p[1][0] for p in parts]))
    )
    bias, _ = bias_estimates(errors)
    rest = errors.error[2] - bias[2]
    assert_allclose(rest, 0.208, atol=0.001)
    assert abs(rest - (0.3 * 1e6 - 0.1 * 3e6) / 4e6) > 0.2


def test_e21_errors_of_group_and_rest_are_uncorrelated(rng):
    trials = [Trial(0.05, 0.1), Trial(0.03, 0.0), Trial(0.04, 0.2)]
    parts = [control_sums(rng, trial, 20_000, 400) for trial in trials]
    own, rest, spread = [], [], []
    for k in range(400):
        total = np.stack([p[0][k] for p in parts])
        product = np.stack([p[1][k] for p in parts])
        errors = group_errors(moments_of(total, product))
        bias, se = bias_estimates(errors)
        own.append(errors.error[0])
        rest.append(errors.error[0] - bias[0])
        spread.append(se[0])
    assert abs(np.corrcoef(own, rest)[0, 1]) < 0.17
    assert_allclose(np.hypot(np.std(own), np.std(rest)), np.median(spread), rtol=0.12)


def test_e22_the_rest_is_corrected_group_by_group(rng):
    trials = [Trial(0.05, 0.3), Trial(0.05, 0.1), Trial(0.02, -0.2)]
    parts = [control_sums(rng, trial, 50_000, 1) for trial in trials]
    errors = group_errors(
        moments_of(np.stack([p[0][0] for p in parts]), np.stack([p[1][0] for p in parts]))
    )
    c = effect_correction(errors.error, errors.error_se, method="mse_plus").amount
    remaining, _ = bias_estimates(corrected_errors(errors, c))
    weight = errors.weight.value * errors.denominator.value
    left = errors.error - c
    assert_allclose(remaining[0], left[0] - weight[1:] @ left[1:] / weight[1:].sum(), rtol=1e-9)
    pooled_error = weight[1:] @ errors.error[1:] / weight[1:].sum()
    pooled_factor = pooled_error**2 / (pooled_error**2 + 0.05**2)
    assert abs(remaining[0] - (left[0] - pooled_error * (1 - pooled_factor))) > 1e-4


def test_e23_a_smaller_level_asks_for_more_certainty():
    b, s = np.array([0.5, 2.2, 3.5, -2.4]), np.ones(4)
    strict = effect_correction(b, s, method="mean_if_detected", alpha=0.01).amount
    loose = effect_correction(b, s, method="mean_if_detected", alpha=0.2).amount
    assert np.count_nonzero(strict) == 1
    assert np.count_nonzero(loose) == 3


def test_e24_the_threshold_of_equation_28_is_a_detection_limit(rng):
    limits = [
        np.median(replicated_errors(rng, Trial(0.02, 0.05), n, 50).error_se) * 1.96
        for n in (10_000, 1_000_000)
    ]
    assert limits[1] < 0.15 * limits[0]
    parts = [control_sums(rng, Trial(0.1, e), 2_000_000, 1) for e in (0.0, 0.02, 0.0)]
    errors = group_errors(
        moments_of(np.stack([p[0][0] for p in parts]), np.stack([p[1][0] for p in parts]))
    )
    material = treatment_bias(errors, margin=0.1).bias
    assert material.equivalence_p_value.max() < 0.001


def test_e25_the_shifted_interval_on_the_same_data_covers(rng):
    size = 20_000
    b = rng.normal(0, 0.05, size)
    s = np.full(size, 0.05)
    estimate = b + s * rng.standard_normal(size)
    c = effect_correction(estimate, s, method="mean_if_detected").amount
    remaining = b - c
    low, high = estimate - c - 1.96 * s, estimate - c + 1.96 * s
    assert_allclose(np.mean((low <= remaining) & (remaining <= high)), 0.95, atol=0.006)
    assert np.mean(np.abs((estimate - c) / s) > 1.96) < 0.02


def test_e26_the_prior_shows_the_spread_between_groups_and_the_draws_do_not(rng):
    s = np.full(4_000, 0.05)
    b = rng.normal(0.02, 0.04, 4_000)
    estimate = b + s * rng.standard_normal(4_000)
    draws = estimate[:, None] + s[:, None] * rng.standard_normal((4_000, 20))
    assert_allclose(draws.var(), 0.04**2 + 2 * 0.05**2, rtol=0.06)
    prior = normal_prior(estimate, s)
    assert_allclose([prior.mean, prior.sd], [0.02, 0.04], atol=0.004)


def test_e27_control_positives_decide_not_rows(rng):
    few, many = (
        error_tests(
            replicated_errors(rng, Trial(rate, 0.0), 2_000, 8_000), test="wald", adjust="none"
        )
        for rate in (0.005, 0.1)
    )
    assert np.mean(few.p_value < 0.05) > 0.08
    assert np.mean(many.p_value < 0.05) < 0.065
