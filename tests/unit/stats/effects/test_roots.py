"""Roots of effect errors: by hand, and beside other tests of the same hypothesis."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.stats.effects.errors import effect_moments, group_errors
from equipoise.stats.effects.roots import (
    LinearRoots,
    RelativeRoots,
    adjusted_effect_contrasts,
    arm_sides,
    bias_contrasts,
    difference_contrasts,
    plausible_skewness,
)
from equipoise.stats.small_samples import contrast_law
from equipoise.stats.unit_sums import QuantityCross, QuantitySums, UnitSums

CRITICAL = float(stats.norm.ppf(0.975))


def experiment(seed=0, n_groups=3, n=24, effect=0.0):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), n)
    arm = np.tile(np.arange(n) % 2, n_groups)
    y = rng.exponential(size=n_groups * n) + effect * arm
    return y, arm, group, 0.3 * rng.standard_normal(n_groups * n)


def test_error_of_a_difference_is_prediction_minus_effect():
    y, arm, group, f = experiment()
    sums = QuantitySums.from_rows(np.column_stack([np.ones(len(y)), y, f]), 2 * group + arm)
    found = difference_contrasts(sums)
    for g in range(3):
        m, t = group == g, arm == 1
        effect = y[m & t].mean() - y[m & ~t].mean()
        assert_allclose(found.error.estimate[g], f[m].mean() - effect, rtol=1e-12)
    assert found.tested.all()
    assert_allclose(found.size, 24)


def test_bias_is_the_error_minus_that_of_the_others():
    y, arm, group, f = experiment(n_groups=4)
    sums = QuantitySums.from_rows(np.column_stack([np.ones(len(y)), y, f]), 2 * group + arm)
    found = difference_contrasts(sums)
    b, v = found.error.estimate, found.error.variance
    for g in range(4):
        others = np.arange(4) != g
        assert_allclose(found.bias.estimate[g], b[g] - b[others].mean(), rtol=1e-10)
        assert_allclose(found.bias.variance[g], v[g] + v[others].sum() / 9, rtol=1e-10)


def test_an_error_may_be_as_skewed_as_arms_of_one_shape_make_it():
    rng = np.random.default_rng(3)
    side = np.repeat(np.arange(8), [10, 10, 12, 4, 20, 20, 15, 15])
    y = rng.exponential(size=len(side)) * np.where(side % 2, -1.0, 1.0)
    arms = UnitSums.from_rows(y, np.ones(len(y)), side).reshape(4, 2)
    sides = arm_sides(arms)
    found = plausible_skewness(arms, sides)
    # Equal arms of one shape: their difference is symmetric.
    assert_allclose(found[[0, 2, 3]], 0.0, atol=1e-12)
    # Third cumulants of units, drawn together by size: twelve of one arm and four of the other.
    control, treated = sides.shape_third[1] * [12.0**2, -(4.0**2)]
    shared = (12.0 * control + 4.0 * treated) / 16.0
    apart = sides.shape_third[1].sum()
    third = np.clip(shared * (1 / 12**2 - 1 / 4**2), apart, 0.0)
    assert_allclose(found[1], third / sides.shape_variance[1].sum() ** 1.5, rtol=1e-10)
    assert found[1] < 0


def test_a_group_that_lends_its_own_shape_may_have_no_skewness():
    side = np.repeat([0, 1, 2, 3], [30, 10, 6, 6])
    y = np.random.default_rng(0).exponential(size=52) * np.where(side % 2, -1.0, 1.0)
    arms = UnitSums.from_rows(y, np.ones(52), side).reshape(2, 2)
    assert plausible_skewness(arms, arm_sides(arms))[0] == 0.0


def test_the_error_of_equal_arms_is_tested_without_skewness_too():
    y, arm, group, f = experiment(n_groups=4)
    found = group_errors(
        effect_moments(y, arm, f, group, measure="difference"),
        measure="difference",
        collapse="mean",
    )
    roots = LinearRoots.of(
        found.moments,
        found.tested,
        found.numerator,
        found.denominator,
        weight=found.weight.value,
        covariance=found.covariance,
    ).contrasts(found.moments, found.tested)
    plain = contrast_law(roots.error_contrast, shape="none")
    apart = contrast_law(roots.error_contrast)
    assert not np.all((apart.low <= 0) & (apart.high >= 0))
    for null in (-1.0, 0.0, 1.0):
        smaller = np.minimum(np.abs(plain.root(null)), np.abs(apart.root(null)))
        assert np.all(np.abs(roots.root(null)) <= smaller + 1e-9)


def test_links_of_clusters_that_do_not_span_change_nothing():
    y, arm, group, f = experiment(n_groups=4)
    q = np.column_stack([np.ones(len(y)), y, f])
    sums = QuantitySums.from_rows(q, 2 * group + arm)
    p = 8
    empty = QuantityCross(product=np.zeros((p, p, 3, 3)), w2w2=np.zeros((p, p)))
    plain, linked = difference_contrasts(sums), difference_contrasts(sums, cross=empty)
    for name in ("estimate", "variance", "shape_third", "satterthwaite"):
        for part in ("error", "bias"):
            first, second = (getattr(getattr(x, part), name) for x in (plain, linked))
            assert_allclose(first, second, rtol=1e-9, atol=1e-14)


def test_spanning_clusters_have_the_variance_of_their_influence_values():
    rng = np.random.default_rng(2)
    n, units = 240, 16
    unit = rng.integers(0, units, n)
    arm, group = unit % 2, rng.integers(0, 2, n)
    y, f = rng.standard_normal(n) + unit / 8, rng.standard_normal(n)
    q, side = np.column_stack([np.ones(n), y, f]), 2 * group + arm
    sums = QuantitySums.from_rows(q, side, cluster=unit)
    found = difference_contrasts(sums, cross=QuantityCross.from_rows(q, side, unit))
    size = np.bincount(side).reshape(2, 2)
    share = size / size.sum(axis=1, keepdims=True)
    u = np.where(arm == 0, y, -y) + share[group, arm] * f
    for g in range(2):
        phi, scatter, corrected = np.zeros(units), 0.0, 0.0
        for h, factor in ((g, 1.0), (1 - g, -1.0)):
            for a in (0, 1):
                cell = (group == h) & (arm == a)
                total = np.bincount(unit[cell], weights=u[cell], minlength=units)
                count = np.bincount(unit[cell], minlength=units)
                e = (total - u[cell].mean() * count) / cell.sum()
                share_of = count / cell.sum()
                s2, s3 = np.sum(share_of**2), np.sum(share_of**3)
                phi += factor * e
                scatter += np.sum(e**2)
                corrected += np.sum(e**2) * s2 / (s2 - 2 * s3 + s2**2)
        assert_allclose(found.bias.variance[g], np.sum(phi**2) * corrected / scatter, rtol=1e-8)
    z = contrast_law(found.bias).root()
    assert_allclose(z[0], -z[1], rtol=1e-8)


def test_groups_that_are_not_tested_leave_the_rest():
    y, arm, group, f = experiment(n_groups=3)
    keep = (group < 2) | (np.arange(len(y)) < 2 * 24 + 5)
    sums = QuantitySums.from_rows(
        np.column_stack([np.ones(len(y)), y, f])[keep], (2 * group + arm)[keep]
    )
    found = difference_contrasts(sums)
    assert found.tested.tolist() == [True, True, False]
    b = found.error.estimate
    assert_allclose(found.bias.estimate[:2], [b[0] - b[1], b[1] - b[0]], rtol=1e-10)


def test_biases_of_many_tables_at_once():
    y, arm, group, f = experiment(n_groups=4)
    sums = QuantitySums.from_rows(np.column_stack([np.ones(len(y)), y, f]), 2 * group + arm)
    one = difference_contrasts(sums)
    twice = one.error.reshape(1, 4)
    found = bias_contrasts(twice, one.size[None], one.tested[None])
    assert_allclose(found.variance[0], one.bias.variance, rtol=1e-12)


def test_regression_adjustment_has_the_standard_error_of_least_squares():
    rng = np.random.default_rng(4)
    n, k = 60, 3
    x, arm = rng.standard_normal((n, k)), np.arange(n) % 2
    y = x @ [1.0, -1.0, 0.5] + arm + rng.standard_normal(n)
    found = adjusted_effect_contrasts(y, arm, np.zeros(n, int), x)
    variance, effect = 0.0, 0.0
    centre, slopes = x.mean(axis=0), []
    for a, sign in ((0, -1.0), (1, 1.0)):
        design = np.column_stack([np.ones(n // 2), x[arm == a]])
        at = np.append(1.0, centre)
        inverse = np.linalg.inv(design.T @ design)
        coefficient = inverse @ design.T @ y[arm == a]
        residual = y[arm == a] - design @ coefficient
        variance += residual @ residual / (n // 2 - k - 1) * (at @ inverse @ at)
        effect += sign * (at @ coefficient)
        slopes.append(coefficient[1:])
    variance += np.var(x @ (slopes[1] - slopes[0]), ddof=1) / n
    assert_allclose(found.error.estimate, -effect, rtol=1e-10)
    assert_allclose(found.error.variance, variance, rtol=1e-10)
    assert contrast_law(found.error).shape.tolist() == ["none"]
    assert found.error.df.tolist() == [n // 2 - k - 1]


def test_regression_adjustment_needs_four_degrees_of_freedom():
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((16, 3)), rng.standard_normal(16)
    arm = np.arange(16) % 2
    assert adjusted_effect_contrasts(y, arm, np.zeros(16, int), x).tested.tolist() == [True]
    few = adjusted_effect_contrasts(y[:14], arm[:14], np.zeros(14, int), x[:14])
    assert contrast_law(few.error).status.tolist() == ["too-few-units"]
    none = adjusted_effect_contrasts(y[:6], arm[:6], np.ones(6, int), x[:6], n_groups=2)
    assert contrast_law(none.error).status.tolist() == ["empty", "too-few-units"]


def relative(controls, treated, n0, n1, prediction=1.0):
    """Sums of groups with so many events."""
    rows, side = [], []
    for g, (a, b) in enumerate(zip(controls, treated, strict=True)):
        y = np.r_[np.ones(a), np.zeros(n0 - a), np.ones(b), np.zeros(n1 - b)]
        rows.append(np.column_stack([np.ones(n0 + n1), y, prediction * y]))
        side.append(2 * g + np.repeat([0, 1], [n0, n1]))
    return QuantitySums.from_rows(np.concatenate(rows), np.concatenate(side))


def test_relative_root_is_the_conditional_mid_p_of_two_counts():
    tests = RelativeRoots.from_sums(relative([8] * 3, [3] * 3, 4000, 4000), counts=True)
    p = stats.binom.sf(3, 11, 0.5) + 0.5 * stats.binom.pmf(3, 11, 0.5)
    # Events of rate .002 have dispersion .998 to .999, not one.
    assert_allclose(stats.norm.cdf(tests.root(0.0)), p, atol=2e-4)
    assert_allclose(tests.error, 1.0 - 3 / 8, rtol=1e-12)


def test_error_test_and_interval_agree():
    tests = RelativeRoots.from_sums(
        relative([20, 5, 30], [30, 1, 4], 300, 200, prediction=1.3), counts=True
    )
    low, high = tests.interval(CRITICAL)
    assert_allclose(tests.root(low), CRITICAL, rtol=1e-6)
    assert_allclose(tests.root(high), -CRITICAL, rtol=1e-6)
    assert np.all((low < tests.error) & (tests.error < high))
    low, high = tests.interval(CRITICAL, bias=True)
    assert_allclose(tests.root(high, bias=True), -CRITICAL, rtol=1e-6)
    assert np.all(np.isfinite(tests.rest_error))


def test_predictions_too_high_give_a_positive_root():
    tests = RelativeRoots.from_sums(relative([40, 40], [40, 40], 400, 400, 2.0), counts=True)
    assert np.all(tests.root(0.0) > 3)
    assert_allclose(tests.root(1.0), 0.0, atol=0.05)


def test_an_implied_outcome_below_zero_is_ruled_out_by_any_event():
    tests = RelativeRoots.from_sums(relative([9, 9], [5, 0], 90, 90), counts=True)
    assert_allclose(tests.root(1.5), [-37.0, 0.0])


def test_without_a_treated_event_nothing_bounds_the_error_from_above():
    tests = RelativeRoots.from_sums(relative([20, 20], [0, 20], 300, 300), counts=True)
    low, high = tests.interval(CRITICAL)
    assert np.isfinite(low).all()
    assert high[0] == np.inf
    assert np.isfinite(high[1])


def test_no_control_event_or_few_rows_are_not_tested():
    sums = relative([0, 6, 6], [3, 6, 6], 40, 40)
    tests = RelativeRoots.from_sums(sums, counts=True)
    assert tests.status.tolist() == ["no-control-positives", "ok", "ok"]
    assert np.isnan(tests.root(0.0)[0])
    assert np.isnan(tests.interval(1.96)[0][0])
    few = RelativeRoots.from_sums(relative([1, 1], [1, 1], 3, 9), counts=True)
    assert few.status.tolist() == ["too-few-units"] * 2
    assert np.isnan(few.root(bias=True)).all()


def test_the_rest_is_the_error_of_the_other_groups():
    tests = RelativeRoots.from_sums(relative([20, 10, 30], [24, 5, 60], 200, 200), counts=True)
    # Groups of one size: events without treatment weigh the errors.
    d, b = np.array([20, 10, 30]), tests.error
    for g in range(3):
        others = np.arange(3) != g
        assert_allclose(tests.rest_error[g], np.average(b[others], weights=d[others]), rtol=1e-10)
    v = []
    for g in range(3):
        others = np.arange(3) != g
        rest = tests.rest_error[g]
        one = sum(
            p * (1 - p) / 199 * f**2
            for h in np.flatnonzero(others)
            for p, f in ((d[h] / 200, 1 - rest), (np.array([24, 5, 60])[h] / 200, 1.0))
        )
        v.append(one / (d[others].sum() / 200) ** 2)
    assert_allclose(tests.rest_variance, v, rtol=1e-9)


def test_clusters_refer_the_counts_to_t():
    sums = relative([20, 30], [35, 50], 300, 300)
    rows = RelativeRoots.from_sums(sums, counts=True).root(0.0)
    clusters = RelativeRoots.from_sums(sums, counts=True, clustered=True).root(0.0)
    assert np.all(np.abs(clusters) < np.abs(rows))


@pytest.mark.parametrize("null", [0.0, 0.4])
def test_other_outcomes_are_contrasts_at_the_null(null):
    y, arm, group, _ = experiment(n_groups=3, n=60)
    f = 1.0 + 0.1 * np.arange(len(y)) / len(y)
    sums = QuantitySums.from_rows(np.column_stack([np.ones(len(y)), y, y * f]), 2 * group + arm)
    tests = RelativeRoots.from_sums(sums, counts=False)
    moved = np.where(arm == 0, y * (f - null), -y)
    same = difference_like(moved, arm, group)
    assert_allclose(tests.root(null), contrast_law(same).root(), rtol=1e-8)
    low, high = tests.interval(CRITICAL)
    assert_allclose(tests.root(low), CRITICAL, rtol=1e-6)
    assert_allclose(tests.root(high), -CRITICAL, rtol=1e-6)


def difference_like(u, arm, group):
    """Errors whose arms have the given totals: outcome with its sign turned in the treated arm."""
    y = np.where(arm == 0, u, -u)
    rows = np.column_stack([np.ones(len(y)), y, np.zeros(len(y))])
    return difference_contrasts(QuantitySums.from_rows(rows, 2 * group + arm)).error


def test_the_law_of_a_group_does_not_depend_on_what_is_asked_of_the_others():
    y, arm, group, _ = experiment(n_groups=4, n=60)
    y = y + 4.0 * (1 + group)
    f = 1.0 + 0.2 * (np.arange(len(y)) % 7)
    errors = group_errors(
        effect_moments(y, arm, f, group, measure="relative", collapse="control"),
        measure="relative",
        collapse="control",
    )
    roots = LinearRoots.of(
        errors.moments,
        errors.tested,
        errors.numerator,
        errors.denominator,
        weight=errors.weight.value,
        covariance=errors.covariance,
    )
    for bias in (False, True):
        low, high = roots.interval(CRITICAL, bias=bias)
        assert_allclose(roots.root(low, bias=bias), CRITICAL, rtol=1e-7)
        assert_allclose(roots.root(high, bias=bias), -CRITICAL, rtol=1e-7)
        alone = roots.root(np.where(np.arange(4) == 2, low, 0.0), bias=bias)
        assert_allclose(alone[2], CRITICAL, rtol=1e-7)
