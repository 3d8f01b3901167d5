"""Size, coverage and power of the tests, and the ranking of the corrections.

The numbers beside each case are those of the simulation study of the methods page (20,000
replications for the analytic columns, 300 for the corrections); other seeds, same designs.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.stats.effects.bias import error_tests, treatment_bias
from equipoise.stats.effects.corrections import CORRECTIONS, effect_correction
from equipoise.stats.effects.errors import corrected_errors, effect_moments, group_errors
from equipoise.stats.effects.evaluation import evaluate_corrections
from equipoise.stats.multiplicity import adjusted_p_values
from support.rates import assert_at_least, assert_at_most, assert_rate
from support.trials import Trial, control_sums, moments_of, replicated_errors

pytestmark = pytest.mark.calibration

SIZES = np.round(np.geomspace(10_000, 4_000_000, 60)).astype(int)


def covers(tests, value):
    low = np.array([-np.inf if x is None else x for x in tests.low])
    high = np.array([np.inf if x is None else x for x in tests.high])
    return (low <= value) & (value <= high)


# Control positives, rows, conversion; size of Wald and score, coverage of Fieller and Wald.
TABLE = [
    (5, 2_000, 0.005, 0.107, 0.045, 0.953, 0.888),
    (10, 1_000, 0.02, 0.072, 0.048, 0.951, 0.920),
    (25, 10_000, 0.005, 0.057, 0.049, 0.952, 0.941),
    (50, 5_000, 0.02, 0.052, 0.052, 0.951, 0.946),
    (100, 10_000, 0.02, 0.052, 0.049, 0.950, 0.947),
    (500, 50_000, 0.02, 0.052, 0.051, 0.948, 0.948),
]


@pytest.mark.parametrize(
    ("positives", "n", "conversion", "wald", "score", "fieller", "cover"), TABLE
)
def test_score_holds_its_level_from_five_control_positives_and_wald_from_fifty(
    rng, positives, n, conversion, wald, score, fieller, cover
):
    null = replicated_errors(rng, Trial(conversion, 0.0), n, 20_000)
    size = len(null.tested)
    tests = error_tests(null, test="score", adjust="none")
    # The table's own error is .003; the covariate law here is another one.
    assert_rate(np.sum(tests.p_value < 0.05), size, score, below=0.004, above=0.004)
    assert_rate(np.sum(tests.p_value < 0.05), size, 0.05, below=0.006)
    wald_tests = error_tests(null, test="wald", adjust="none")
    assert_rate(np.sum(wald_tests.p_value < 0.05), size, wald, below=0.012, above=0.012)
    if positives >= 50:
        assert_rate(np.sum(wald_tests.p_value < 0.05), size, 0.05, above=0.004)
    errors = replicated_errors(rng, Trial(conversion, 0.2), n, 20_000)
    size = len(errors.tested)
    truth = corrected_errors(errors, np.full(size, 0.2))
    accepted = error_tests(truth, test="score", adjust="none").p_value > 0.05
    assert_rate(accepted.sum(), size, fieller, below=0.004, above=0.004)
    # With few positives the accepted values can be two rays; the interval is then the whole line.
    inside = covers(error_tests(errors, test="score", adjust="none"), 0.2)
    assert_rate(inside.sum(), size, 0.95, above=0.005 if positives > 5 else 0.03)
    inside = covers(error_tests(errors, test="wald", adjust="none"), 0.2)
    assert_rate(inside.sum(), size, cover, below=0.012, above=0.012)


def test_choosing_wald_by_the_observed_positives_loses_the_level(rng):
    # Why "auto" never mixes: around 50 expected positives the mixture rejects 7%.
    errors = replicated_errors(rng, Trial(0.02, 0.0), 5_000, 20_000)
    score, wald = (error_tests(errors, test=t, adjust="none").p_value for t in ("score", "wald"))
    mixed = np.where(errors.control_strength < 50, score, wald)
    assert_at_least(np.sum(mixed < 0.05), len(mixed), 0.065)
    auto = error_tests(errors, adjust="none").p_value
    assert_rate(np.sum(auto < 0.05), len(auto), 0.05)


@pytest.mark.parametrize("level", [0.01, 0.1])
def test_score_test_has_its_size_at_other_levels(rng, level):
    errors = replicated_errors(rng, Trial(0.02, 0.0), 5_000, 20_000)
    p = error_tests(errors, test="score", adjust="none").p_value
    assert_rate(np.sum(p < level), len(p), level, below=0.1 * level, above=0.1 * level)


def test_ninety_percent_intervals_cover_at_ninety_percent(rng):
    errors = replicated_errors(rng, Trial(0.02, 0.2), 5_000, 10_000)
    inside = covers(error_tests(errors, adjust="none", confidence_level=0.9), 0.2)
    assert_rate(inside.sum(), len(inside), 0.9, above=0.004, below=0.004)


@pytest.mark.parametrize(
    ("conversion", "n", "error", "power", "split_power"),
    [
        (0.02, 50_000, 0.1, 0.336, 0.208),
        (0.02, 50_000, 0.2, 0.810, 0.546),
        (0.02, 200_000, 0.1, 0.823, 0.550),
        (0.10, 10_000, 0.2, 0.841, 0.581),
        (0.10, 50_000, 0.1, 0.919, 0.673),
    ],
)
def test_not_splitting_doubles_the_precision(rng, conversion, n, error, power, split_power):
    size = 6_000
    trial = Trial(conversion, error)
    whole = replicated_errors(rng, trial, n, size)
    halves = [control_sums(rng, trial, n // 2, size) for _ in range(2)]
    total = np.concatenate([h[0] for h in halves], axis=1)
    product = np.concatenate([h[1] for h in halves], axis=1)
    split = group_errors(moments_of(total, product), split=True)
    assert_allclose(split.error.var() / whole.error.var(), 2.0, rtol=0.12)
    assert_allclose(np.median(split.error_se / whole.error_se), np.sqrt(2), rtol=0.02)
    # Other covariate law than the table's: the effect, and with it the variance, is not the same.
    found = np.mean(error_tests(whole, adjust="none", test="wald").p_value < 0.05)
    found_split = np.mean(error_tests(split, adjust="none", test="wald").p_value < 0.05)
    assert_allclose([found, found_split], [power, split_power], atol=0.06)


@pytest.mark.parametrize(
    ("smallest", "test", "fwer", "fdr", "power"),
    [
        (2_000, "wald", 0.111, 0.067, 0.558),
        (2_000, "score", 0.046, 0.047, 0.512),
        (10_000, "wald", 0.064, 0.052, 0.714),
        (10_000, "score", 0.041, 0.044, 0.667),
    ],
)
def test_score_with_holm_keeps_the_error_rate_over_sixty_groups(
    rng, smallest, test, fwer, fdr, power
):
    size, n_groups = 500, 60
    biased = np.arange(n_groups) % 10 == 5
    sizes = np.round(np.geomspace(smallest, 4_000_000, n_groups)).astype(int)
    p = np.ones((n_groups, size))
    for g in range(n_groups):
        errors = replicated_errors(rng, Trial(0.02, 0.25 * biased[g]), sizes[g], size)
        p[g, errors.tested] = error_tests(errors, test=test, adjust="none").p_value
    holm = np.array([adjusted_p_values(p[:, k], "holm") <= 0.05 for k in range(size)])
    bh = np.array([adjusted_p_values(p[:, k], "bh") <= 0.05 for k in range(size)])
    false = holm[:, ~biased].any(axis=1).sum()
    if test == "score":
        assert_at_most(false, size, 0.05)
    else:
        assert_at_least(false, size, fwer - 0.03)
    proportion = (bh & ~biased).sum(axis=1) / np.maximum(bh.sum(axis=1), 1)
    assert_allclose(proportion.mean(), fdr, atol=0.02)
    # The table spreads its sizes differently; power is compared between tests only.
    assert holm[:, biased].mean() > power - 0.15


def test_bias_has_no_false_alarms_beyond_its_level_under_a_common_error(rng):
    size = 250
    sizes = SIZES[::3]
    parts = [control_sums(rng, Trial(0.02, 0.1), n, size) for n in sizes]
    raw, holm, maxt, joint = [], [], [], []
    for k in range(size):
        errors = group_errors(
            moments_of(np.stack([p[0][k] for p in parts]), np.stack([p[1][k] for p in parts]))
        )
        found = treatment_bias(errors)
        raw.append(found.bias.p_value_raw.min() < 0.05)
        holm.append(found.bias.p_value.min() < 0.05)
        joint.append(found.equal.p_value < 0.05)
        if k < 40:
            maxt.append(treatment_bias(errors, adjust="max_t").bias.p_value.min() < 0.05)
    assert_at_least(sum(raw), size, 0.5)
    # Score tests; the table's Wald tests give .075.
    assert_rate(sum(holm), size, 0.05, below=0.02, above=0.02)
    assert_rate(sum(joint), size, 0.055, below=0.005, above=0.01)
    assert sum(maxt) >= sum(holm[:40])


def test_cluster_standard_errors_cover_when_assignment_is_shared(rng):
    sizes = rng.integers(1, 5, size=3_000)
    cluster = np.repeat(np.arange(3_000), sizes)
    estimates, plain, clustered = [], [], []
    for _ in range(300):
        strength = rng.gamma(2.0, 0.5, size=3_000)[cluster]
        t = rng.integers(2, size=3_000)[cluster]
        y = (rng.random(len(cluster)) < np.minimum(0.2 * strength * (1 + 0.1 * t), 1)).astype(float)
        f = np.full(len(y), 1.1)
        zero = np.zeros(len(y), dtype=int)
        estimates.append(group_errors(effect_moments(y, t, f, zero)).error[0])
        plain.append(group_errors(effect_moments(y, t, f, zero)).error_se[0])
        clustered.append(group_errors(effect_moments(y, t, f, zero, cluster=cluster)).error_se[0])
    spread = np.std(estimates)
    assert_allclose(np.mean(clustered) / spread, 1.0, atol=0.13)
    assert np.mean(plain) < 0.95 * np.mean(clustered)


def scenario_errors(rng, name, size):
    shape = (60, size)
    if name == "zero":
        return np.zeros(shape)
    if name == "sparse":
        return np.where(rng.random(shape) < 0.1, 0.15 * rng.choice([-1, 1], shape), 0.0)
    mean, sd = {"small": (0.0, 0.03), "large": (0.0, 0.08), "common": (0.06, 0.02)}[name]
    return rng.normal(mean, sd, shape)


# Unweighted RMSE of b - c, times 1000: none, mean, mean_if_detected, positive_part, james_stein,
# eb_zero, eb, sure, npmle; 60 groups of 10,000 to 4,000,000 rows, conversion 2%.
RMSE = {
    "zero": (0.0, 63.5, 32.5, 36.6, 8.9, 1.2, 2.6, 13.5, 11.3),
    "small": (30.0, 63.3, 40.8, 40.6, 46.9, 22.1, 22.4, 25.7, 24.0),
    "large": (79.9, 63.3, 57.6, 50.6, 60.2, 40.4, 40.6, 42.6, 41.7),
    "sparse": (48.1, 62.8, 40.5, 40.6, 53.4, 31.0, 31.2, 32.6, 27.8),
    "common": (63.5, 63.3, 55.4, 49.4, 59.1, 35.9, 16.6, 37.9, 18.7),
}
RULES = (
    "none",
    "mean",
    "mean_if_detected",
    "positive_part",
    "james_stein",
    "eb_zero",
    "eb",
    "sure",
    "npmle",
)


@pytest.mark.parametrize("scenario", list(RMSE))
def test_corrections_rank_as_in_the_simulation_study(rng, scenario):
    size = 60
    b = scenario_errors(rng, scenario, size)
    estimate, se = np.empty((60, size)), np.empty((60, size))
    for g, n in enumerate(SIZES):
        # Predictions shifted by b move the estimate by b and leave its standard error.
        errors = replicated_errors(rng, Trial(0.02, 0.0), n, size)
        estimate[g], se[g] = errors.error + b[g], errors.error_se
    found = {}
    for rule in RULES:
        amount = np.stack(
            [effect_correction(estimate[:, k], se[:, k], method=rule).amount for k in range(size)],
            axis=1,
        )
        found[rule] = 1000 * np.sqrt(np.mean((b - amount) ** 2, axis=0)).mean()
    expected = dict(zip(RULES, RMSE[scenario], strict=True))
    # 60 replications against 300, and sizes spread geometrically here.
    for rule in RULES:
        assert_allclose(found[rule], expected[rule], rtol=0.25, atol=6.0)
    if scenario != "zero":
        for rule in ("eb_zero", "eb", "sure", "npmle"):
            assert found[rule] < found["none"]
    if scenario == "small":
        for rule in ("mean", "mean_if_detected", "positive_part", "james_stein"):
            assert found[rule] > found["none"]
    if scenario == "common":
        assert found["eb"] == min(found.values())
    if scenario == "sparse":
        assert found["npmle"] == min(found.values())


def test_evaluation_estimates_the_remaining_mean_square_without_noise(rng):
    n_groups, n_blocks, size = 20, 16, 40
    sizes = np.round(np.geomspace(20_000, 400_000, n_groups)).astype(int)
    rules = ("none", "mean", "eb_zero", "eb")
    found, truth, raw = [], [], []
    for _ in range(size):
        b = rng.normal(0, 0.05, n_groups)
        total = np.empty((n_blocks, n_groups, 2, 3))
        product = np.empty((n_blocks, n_groups, 2, 3, 3))
        for g in range(n_groups):
            total[:, g], product[:, g] = control_sums(
                rng, Trial(0.05, b[g]), sizes[g] // n_blocks, n_blocks
            )
        blocks = moments_of(total, product)
        result = evaluate_corrections(
            blocks, n_blocks=n_blocks, corrections=rules, n_repeats=2, rng=rng
        )
        found.append(result.error_mean_square)
        raw.append(result.raw_mean_square)
        half = np.arange(n_blocks) < n_blocks // 2
        errors = group_errors(moments_of(total[half].sum(0), product[half].sum(0)))
        truth.append(
            [
                np.mean(
                    (b - effect_correction(errors.error, errors.error_se, method=r).amount) ** 2
                )
                for r in rules
            ]
        )
    found, truth, raw = (np.mean(x, axis=0) for x in (found, truth, raw))
    assert_allclose(found, truth, rtol=0.25)
    assert np.all(raw > 1.5 * truth)
    assert np.argmin(found) in {2, 3}


def test_same_data_interval_for_the_remaining_error_covers(rng):
    errors = replicated_errors(rng, Trial(0.02, 0.1), 20_000, 8_000)
    amount = effect_correction(errors.error, errors.error_se, method="mean_if_detected").amount
    left = corrected_errors(errors, amount)
    tests = error_tests(left, adjust="none")
    assert_rate(covers(tests, 0.1 - amount).sum(), len(amount), 0.95, below=0.003, above=0.003)


def test_difference_scale_covers_for_a_continuous_outcome(rng):
    size, n = 400, 500
    g = np.repeat(np.arange(size), n)
    x = rng.normal(size=size * n)
    t = rng.integers(2, size=size * n)
    y = rng.gamma(2.0, 1.0, size * n) + t * (0.5 + 0.2 * x)
    f = 0.7 + 0.2 * x
    errors = group_errors(
        effect_moments(y, t, f, g, measure="difference"), measure="difference", collapse="mean"
    )
    inside = covers(error_tests(errors, adjust="none"), 0.2)
    assert_rate(inside.sum(), size, 0.95)


def test_every_rule_is_simulated_or_has_the_same_limit():
    assert set(CORRECTIONS) - set(RULES) == {"mse_plus", "mse_minus"}
