from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.inequality.benefits import BenefitMoments
from equipoise.stats.inequality.decomposition import (
    between_interval,
    between_test,
    compare_paired,
    contribution_intervals,
    decompose,
    log_interval,
)
from equipoise.stats.inequality.index import entropy_index, kernel
from equipoise.stats.small_samples import combine, contrast_law, pooled_shape, side_contrast
from equipoise.stats.unit_sums import UnitSums

ORDERS = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.3]


def sample(rng, n=300):
    group = rng.integers(3, size=n)
    benefits = rng.choice([0.2, 0.7, 1.0, 2.0], n, p=[0.1, 0.3, 0.4, 0.2]) * (1 + 0.2 * group)
    return benefits, group


def naive_parts(b, group, order):
    """Eq. (2), group by group; shares last."""
    mu, within, between, shares = b.mean(), [], [], []
    for g in range(3):
        mine = b[group == g]
        share, r = len(mine) / len(b), mine.mean() / mu
        within.append(share * r**order * entropy_index(mine, order=order))
        between.append(share * float(kernel(r, order)))
        shares.append(share)
    total = entropy_index(b, order=order)
    apart = sum(between)
    return np.array([total, total - apart, apart, *within, *shares])


def values(parts):
    return np.array([parts.total, parts.within, parts.between, *parts.within_group, *parts.share])


def errors(parts):
    return np.array(
        [
            parts.total_se,
            parts.within_se,
            parts.between_se,
            *parts.within_group_se,
            *parts.share_se,
        ]
    )


@pytest.mark.parametrize("order", ORDERS)
def test_parts_equal_the_naive_decomposition(rng, order):
    b, group = sample(rng)
    parts = decompose(BenefitMoments.from_rows(b, group, order=order))
    np.testing.assert_allclose(values(parts), naive_parts(b, group, order), atol=1e-13)
    np.testing.assert_allclose(parts.within_group.sum(), parts.within, atol=1e-14)
    np.testing.assert_allclose(parts.between_group.sum(), parts.between, atol=1e-14)
    for g in range(3):
        assert parts.group_index[g] == pytest.approx(entropy_index(b[group == g], order=order))


@pytest.mark.parametrize("order", ORDERS)
def test_standard_errors_equal_the_jackknife(rng, order):
    b, group = sample(rng)
    n = len(b)
    left_out = np.array(
        [naive_parts(np.delete(b, i), np.delete(group, i), order) for i in range(n)]
    )
    jackknife = np.sqrt((n - 1) / n * ((left_out - left_out.mean(0)) ** 2).sum(0))
    parts = decompose(BenefitMoments.from_rows(b, group, order=order))
    # The jackknife divides by n - 1 and is of second order: 1/n = 0.003, squared terms add to it.
    np.testing.assert_allclose(errors(parts), jackknife, rtol=0.03)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("clustered", [False, True])
def test_rows_levels_and_power_sums_agree(rng, order, clustered):
    b, group = sample(rng)
    n = len(b)
    weight = rng.uniform(0.5, 2.0, n)
    cluster = rng.integers(60, size=n) if clustered else None
    rows = BenefitMoments.from_rows(b, group, order=order, cluster=cluster, weight=weight)
    levels, code = np.unique(b, return_inverse=True)
    indicators = CellMoments.from_rows(
        np.eye(len(levels))[code], group, cluster=cluster, weight=weight
    )
    means = rows.means
    by_level = BenefitMoments.from_levels(levels, indicators, order=order, means=means)
    power = np.log(b) if order == 0 else b * np.log(b) if order == 1 else b**order
    by_power = BenefitMoments.from_powers(
        CellMoments.from_rows(
            np.stack([np.ones(n), b, power], axis=1), group, cluster=cluster, weight=weight
        ),
        order=order,
        means=means,
    )
    for other in (by_level, by_power):
        assert other.mean == pytest.approx(rows.mean, rel=1e-12)
        np.testing.assert_allclose(values(decompose(other)), values(decompose(rows)), atol=1e-12)
        np.testing.assert_allclose(errors(decompose(other)), errors(decompose(rows)), atol=1e-12)
        assert between_test(other).p_value == pytest.approx(between_test(rows).p_value, rel=1e-8)


def test_counts_of_levels_have_the_moments_of_their_rows(rng):
    b, group = sample(rng)
    levels, code = np.unique(b, return_inverse=True)
    counts = CellMoments.from_rows(np.eye(len(levels))[code], group)
    by_level, rows = BenefitMoments.from_levels(levels, counts), BenefitMoments.from_rows(b, group)
    np.testing.assert_allclose(by_level.means.units.third, rows.means.units.third, rtol=1e-12)
    np.testing.assert_allclose(by_level.means.units.fifth, rows.means.units.fifth, rtol=1e-12)
    assert between_test(by_level).p_value == pytest.approx(between_test(rows).p_value, rel=1e-9)


def test_weighted_levels_alone_do_not_tell_the_moments(rng):
    b, group = sample(rng)
    levels, code = np.unique(b, return_inverse=True)
    counts = CellMoments.from_rows(np.eye(len(levels))[code], group, weight=rng.uniform(1, 2, 300))
    with pytest.raises(InvalidParameterError, match="sums of the third order"):
        between_test(BenefitMoments.from_levels(levels, counts))


def test_two_groups_have_the_p_value_of_their_difference(rng):
    """The contrast of two means by hand: t of few units with the shape of both groups."""
    b = np.concatenate([rng.gamma(2.0, size=12), rng.gamma(2.0, size=30) + 0.5])
    group = np.repeat([0, 1], [12, 30])
    test = between_test(BenefitMoments.from_rows(b, group))
    sums = UnitSums.from_rows(b, np.ones(42), group)
    sides = side_contrast(sums, pooled_shape(sums))
    z = contrast_law(combine(sides, np.array([1.0, -1.0]))).root(0.0)
    assert test.p_value == pytest.approx(2 * special.ndtr(-abs(float(z))), rel=1e-9)
    np.testing.assert_allclose(test.groups.p_value, test.p_value, rtol=1e-9)
    assert test.df == 1


@pytest.mark.parametrize("order", ORDERS)
def test_the_test_does_not_depend_on_the_order_or_the_unit(rng, order):
    b, group = sample(rng)
    one, other = (between_test(BenefitMoments.from_rows(x, group, order=order)) for x in (b, 7 * b))
    assert one.p_value == pytest.approx(other.p_value, rel=1e-8)
    assert one.p_value == pytest.approx(
        between_test(BenefitMoments.from_rows(b, group)).p_value, rel=1e-12
    )


def test_units_that_span_groups_are_told_apart_from_rows(rng):
    """Everybody has one row in each of three groups: what is shared does not count."""
    unit, group = np.tile(np.arange(60), 3), np.repeat([0, 1, 2], 60)
    person = rng.gamma(3.0, size=60)
    b = person[unit] + 0.2 * group + 0.2 * rng.gamma(1.0, size=180)
    paired = between_test(BenefitMoments.from_rows(b, group, cluster=unit))
    apart = between_test(BenefitMoments.from_rows(b, group))
    assert paired.p_value < 1e-6
    assert apart.p_value > 0.05


def test_thousands_of_groups_need_no_matrix_of_that_size(rng):
    group = np.repeat(np.arange(5_000), 4)
    b = rng.gamma(5.0, size=20_000)
    rows = BenefitMoments.from_rows(b, group)
    parts, test = decompose(rows), between_test(rows)
    assert 0.0 <= test.p_value <= 1.0
    assert parts.between_bias > 0.0


def test_bias_is_that_of_the_spec(rng):
    b, group = sample(rng)
    parts = decompose(BenefitMoments.from_rows(b, group))
    share = np.bincount(group) / len(b)
    variance = np.array([b[group == g].var(ddof=1) for g in range(3)])
    expected = np.sum((1 - share) * variance) / (2 * len(b) * b.mean() ** 2)
    assert parts.between_bias == pytest.approx(expected, rel=1e-12)
    assert parts.between_corrected == pytest.approx(max(parts.between - expected, 0.0))


def test_interval_of_between_starts_at_zero_exactly_when_the_test_does_not_reject(rng):
    for shift in (0.0, 0.05, 0.1, 0.4):
        group = np.arange(200) % 2
        b = rng.choice([0.5, 1.5], 200) + shift * group
        rows = BenefitMoments.from_rows(b, group)
        test = between_test(rows)
        low, high = between_interval(decompose(rows), test)
        assert (low == 0.0) == (test.p_value > 0.05)
        assert high is not None
        assert high > low


def test_interval_of_a_contribution_starts_at_zero_when_the_mean_is_that_of_all():
    rows = BenefitMoments.from_rows([1, 3] * 3 + [2, 2.5] * 3, [0] * 6 + [1] * 6, order=2.0)
    low, high = contribution_intervals(decompose(rows), between_test(rows))
    assert low.tolist() == [0.0, 0.0]
    assert (high > 0.0).all()


def test_interval_of_a_contribution_is_that_of_the_ratio_of_means(rng):
    """By hand at order 2: share / 2 (r - 1)^2, with the error of the share in logarithms."""
    group = np.repeat([0, 1], [40, 160])
    b = rng.gamma(4.0, 0.25, size=200) * np.where(group == 0, 2.0, 1.0)
    rows = BenefitMoments.from_rows(b, group, order=2.0)
    parts, test = decompose(rows), between_test(rows)
    low, high = contribution_intervals(parts, test)
    ends = [end[0] for end in test.ratios.interval(special.ndtri(0.975))]
    centre = 0.1 * (b[:40].mean() / b.mean() - 1) ** 2
    doubt = special.ndtri(0.975) * np.sqrt(0.2 * 0.8 / 200) / 0.2
    reach = [np.log(0.1 * (end - 1) ** 2 / centre) for end in ends]
    assert low[0] == pytest.approx(centre * np.exp(-np.hypot(reach[0], doubt)), rel=1e-9)
    assert high[0] == pytest.approx(centre * np.exp(np.hypot(reach[1], doubt)), rel=1e-9)


def test_interval_of_between_is_positive_where_only_the_joint_test_rejects(rng):
    """A precise group may tell the means apart while the noise of others hides it in the index."""
    b, group = rng.gamma(2.0, size=60), np.repeat([0, 1, 2], 20)
    rows = BenefitMoments.from_rows(b, group, order=2.0)
    parts, test = decompose(rows), between_test(rows)
    hidden = replace(parts, between=0.5 * parts.between_bias, between_corrected=0.0)
    low, high = between_interval(hidden, replace(test, p_value=0.001))
    # Chi-square with 2 degrees of freedom has the quantiles -2 ln p.
    gap = np.sqrt(-2 * np.log(0.001)) - np.sqrt(-2 * np.log(0.05))
    se = test.groups.se / b.mean()
    weight = (parts.share * se**2 / (1 - parts.share)).min()
    assert low == pytest.approx(0.5 * weight * gap**2, rel=1e-9)
    assert high > low
    assert between_interval(hidden, replace(test, p_value=0.06))[0] == 0.0


def test_groups_without_rows_and_with_constant_benefits_do_no_harm():
    b, group = [1.0] * 4 + [0.0] * 4 + [1.0, 2.0] * 2, [0] * 4 + [2] * 4 + [3] * 4
    rows = BenefitMoments.from_rows(b, group, order=1.0, n_groups=5)
    parts, test = decompose(rows), between_test(rows)
    assert np.isfinite(errors_of(parts)).all()
    assert parts.share.tolist() == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3, 0])
    assert parts.group_index[2] is None
    assert parts.total == pytest.approx(entropy_index(b))
    assert 0.0 < test.p_value < 1.0


def errors_of(parts):
    return np.concatenate(
        [parts.within_group_se, parts.between_group, parts.share_se, parts.within_group]
    )


def test_equal_benefits_have_index_zero_and_no_upper_bound():
    rows = BenefitMoments.from_rows([2.0, 2.0, 2.0], [0, 1, 1])
    parts, test = decompose(rows), between_test(rows)
    assert parts.total == 0.0
    assert np.isnan(test.p_value)
    assert between_interval(parts, test) == (0.0, None)
    assert log_interval(parts.total, parts.total_se) == (0.0, None)


def test_constant_groups_have_no_error_and_are_not_tested():
    rows = BenefitMoments.from_rows([1.0] * 4 + [2.0] * 4, [0] * 4 + [1] * 4)
    assert np.isnan(between_test(rows).p_value)


def test_log_interval_is_open_where_the_error_swamps_the_estimate():
    assert log_interval(1e-6, 1.0) == (0.0, None)


def test_one_group_has_no_between_test():
    with pytest.raises(InvalidParameterError, match="at least two groups with rows; got 1"):
        between_test(BenefitMoments.from_rows([1.0, 2.0]))


def test_power_sums_that_overflow_are_refused():
    huge = CellMoments(
        n=np.array([2]),
        total=np.array([[2.0, 1e300, np.inf]]),
        product=np.full((1, 3, 3), np.inf),
        n_units=2,
    )
    with pytest.raises(InvalidParameterError, match="power 60 overflow"):
        BenefitMoments.from_powers(huge, order=60.0)


def test_empty_cells_of_the_matrix_do_not_bring_in_their_benefit():
    people = CellMoments.from_rows(np.eye(3)[1:], [0, 0])
    assert BenefitMoments.from_levels([0.0, 1.0, 2.0], people, order=0.0).mean == 1.5


def test_difference_and_error_equal_the_jackknife(rng):
    n = 250
    first, group = rng.choice([0.3, 1.0, 2.0], n), rng.integers(2, size=n)
    second = np.where(rng.random(n) < 0.7, first, rng.choice([0.3, 1.0, 2.0], n))
    found = compare_paired(first, second, group, order=0.5).total
    gap = entropy_index(first, order=0.5) - entropy_index(second, order=0.5)
    left_out = np.array(
        [
            entropy_index(np.delete(first, i), order=0.5)
            - entropy_index(np.delete(second, i), order=0.5)
            for i in range(n)
        ]
    )
    jackknife = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    assert found.estimate == pytest.approx(gap)
    assert found.se == pytest.approx(jackknife, rel=0.02)


def test_parts_of_the_difference_add_up(rng):
    first, second = rng.gamma(2.0, size=(2, 60))
    found = compare_paired(first, second, rng.integers(3, size=60), order=2.0)
    assert found.total.estimate == pytest.approx(found.within.estimate + found.between.estimate)


def test_counts_stand_for_repeated_rows(rng):
    first, second = rng.gamma(2.0, size=(2, 20))
    count = rng.integers(1, 4, size=20)
    counted = compare_paired(first, second, count=count)
    repeated = compare_paired(np.repeat(first, count), np.repeat(second, count))
    assert counted.total.se == pytest.approx(repeated.total.se)
    assert counted.total.estimate == pytest.approx(repeated.total.estimate)


def test_a_model_does_not_differ_from_itself(rng):
    b = rng.gamma(2.0, size=30)
    found = compare_paired(b, b).total
    assert (found.estimate, found.p_value) == (0.0, 1.0)
    assert found.se == pytest.approx(0.0, abs=1e-9)


def test_models_on_different_rows_are_refused():
    with pytest.raises(InvalidParameterError, match="same rows; got 2 and 3"):
        compare_paired([1.0, 2.0], [1.0, 2.0, 3.0])
