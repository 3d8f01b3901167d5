import numpy as np
import pytest
from scipy import stats

from equipoise.exceptions import DataError, GroupTooSmallError, InvalidParameterError
from equipoise.stats.multiplicity import max_t_test
from equipoise.stats.scores.cells import ScoreCells
from equipoise.stats.scores.curves import common_support
from equipoise.stats.scores.parity import (
    compare_groups,
    compare_with_score,
    composite_parity_test,
    parity_test,
)
from simulate.scores import users_with_scores


@pytest.fixture
def levels(rng):
    score = rng.integers(1, 5, size=1200)
    group = rng.integers(2, size=1200)
    return (rng.uniform(size=1200) < score / 6 + 0.15 * group).astype(float), score, group


def test_few_scores_are_compared_value_by_value(levels):
    y, score, group = levels
    test = parity_test(y, score, group)
    assert test.bandwidth is None
    np.testing.assert_array_equal(test.differences.points, [1, 2, 3, 4])
    for s, d in zip(test.differences.points, test.differences.estimate, strict=True):
        at = score == s
        np.testing.assert_allclose(d, y[at & (group == 1)].mean() - y[at & (group == 0)].mean())


def test_level_by_level_standard_error_is_that_of_pooled_proportions(levels):
    y, score, group = levels
    test = parity_test(y, score, group)
    at = score == 2
    n1, n0, p = (at & (group == 1)).sum(), (at & (group == 0)).sum(), y[at].mean()
    # Residuals from the pooled mean: sum over groups of mean((y - p)^2) / n.
    v = sum(np.mean((y[at & (group == g)] - p) ** 2) / n for g, n in ((1, n1), (0, n0)))
    np.testing.assert_allclose(test.differences.test.standard_error[1], np.sqrt(v))


def test_band_excludes_zero_exactly_where_the_adjusted_p_value_says_so(levels):
    y, score, group = levels
    for level in (0.8, 0.95, 0.99):
        d = parity_test(y, score, group, confidence_level=level).differences
        outside = (d.test.low > 0) | (d.test.high < 0)
        np.testing.assert_array_equal(outside, d.test.p_value_adjusted <= 1 - level + 1e-12)


def test_more_comparisons_widen_the_band_and_raise_p_values(levels):
    y, score, group = levels
    cells = ScoreCells.from_rows(y, score, group)
    one = compare_groups(cells, rng=1).differences.test
    ten = compare_groups(cells, n_comparisons=10, rng=1).differences.test
    assert np.all(ten.high - ten.low > one.high - one.low)
    np.testing.assert_allclose(ten.p_value_adjusted, np.minimum(one.p_value_adjusted * 10, 1))


def test_points_with_little_information_are_dropped_and_listed(rng):
    y, score, group, _ = users_with_scores(rng, rows=1, shapes=((2, 5), (5, 2)))
    test = parity_test(y, score, group, smoothing="score")
    assert len(test.dropped) + len(test.differences.points) == 21
    assert len(test.dropped) > 5
    wider = parity_test(y, score, group)
    assert len(wider.dropped) < len(test.dropped)
    local = test.differences.n_local
    assert np.all(local >= 40)


def test_grid_and_bandwidth_are_used(rng):
    y, score, group, _ = users_with_scores(rng, rows=1, n_users=2000)
    test = parity_test(y, score, group, grid=[0.6, 0.4], bandwidth=0.1)
    np.testing.assert_array_equal(test.differences.points, [0.4, 0.6])
    assert test.bandwidth == 0.1


def test_a_real_outcome_needs_thirty_units(rng):
    score, group = rng.uniform(size=500), np.repeat([0, 1], [100, 400])
    y = score + rng.normal(size=500)
    test = parity_test(y, score, group, bandwidth=0.05)
    assert test.differences is None
    assert parity_test(y, score, group, bandwidth=0.25).differences.n_local.min() >= 30


def test_paper_method_is_normal_with_bonferroni(rng):
    y, score, group, user = users_with_scores(rng, n_users=400)
    cells = ScoreCells.from_rows(y, score, group, cluster=user, unit="cluster")
    test = compare_groups(cells, paper=True)
    d = test.differences
    z = d.estimate / d.test.standard_error
    np.testing.assert_allclose(d.test.p_value, 2 * stats.norm.sf(np.abs(z)))
    np.testing.assert_allclose(d.test.p_value_adjusted, np.minimum(d.test.p_value * len(z), 1))
    assert test.bandwidth is None


def test_identical_groups_have_no_difference(rng):
    score = np.tile(rng.uniform(size=300), 2)
    y = np.tile(rng.integers(2, size=300), 2)
    test = parity_test(y, score, np.repeat([0, 1], 300))
    np.testing.assert_allclose(test.differences.estimate, 0.0, atol=1e-12)
    assert test.cusum.ks_p_value > 0.9
    assert test.average.estimate == pytest.approx(0.0, abs=1e-9)


def test_outcomes_explained_by_the_score_leave_nothing_to_judge():
    score = np.tile([0.0, 1.0], 40)
    test = parity_test(score, score, np.repeat([0, 1], 40))
    assert test.cusum is None
    assert test.differences is None
    assert test.average is None
    assert np.isnan(test.estimate)
    assert np.isnan(test.confidence_interval().low)


def test_a_cluster_needs_a_unit_to_be_named():
    with pytest.raises(InvalidParameterError, match="`unit` must be named"):
        parity_test([1, 0], [0.1, 0.2], [0, 1], cluster=[0, 1])


def test_a_constant_score_is_refused():
    with pytest.raises(DataError, match="`y_score` must vary"):
        parity_test(np.ones(40), np.ones(40), np.repeat([0, 1], 20))


def test_a_constant_outcome_is_refused():
    with pytest.raises(DataError, match="`y_true` must vary; every outcome is 2"):
        parity_test(np.full(40, 2.0), np.arange(40), np.repeat([0, 1], 20))


def test_one_cluster_in_a_group_is_refused(rng):
    score, group = rng.uniform(size=60), np.repeat([0, 1], 30)
    cluster = np.where(group == 0, 99, np.arange(60))
    with pytest.raises(GroupTooSmallError, match="at least 10 clusters; the smallest has 1"):
        parity_test(score > 0.5, score, group, cluster=cluster, unit="row")


def test_no_common_scores_is_not_testable(rng):
    score = np.concatenate([rng.uniform(0, 0.4, 200), rng.uniform(0.6, 1, 200)])
    test = parity_test(rng.integers(2, size=400), score, np.repeat([0, 1], 200))
    assert not test.support.testable
    assert not test.comparable
    assert np.isnan(test.p_value)
    assert test.support.low > test.support.high
    np.testing.assert_array_equal(test.support.share, 0.0)


def test_common_support_is_the_whole_when_groups_agree():
    mass = np.ones((2, 10))
    shared = common_support(np.arange(10.0), mass)
    assert (shared.low, shared.high) == (0.0, 9.0)
    assert shared.testable


def test_calibration_to_the_diagonal_is_judged_by_outcome_minus_score(rng):
    score = rng.choice([0.2, 0.4, 0.6], size=900)
    y = (rng.uniform(size=900) < score + 0.1).astype(float)
    test = compare_with_score(ScoreCells.from_rows(y, score, np.zeros(900, dtype=int)))
    np.testing.assert_allclose(
        test.differences.estimate, [(y - score)[score == s].mean() for s in (0.2, 0.4, 0.6)]
    )
    assert test.average.estimate == pytest.approx((y - score).mean())
    # The standard error of a mean, with the degrees of its fourth moments.
    e = y - score - (y - score).mean()
    degrees = np.sum(e**2) ** 2 / np.sum(e**4)
    se = np.sqrt(np.sum(e**2) * degrees / (degrees - 1)) / 900
    assert test.average.se == pytest.approx(se)
    assert test.cusum.ks_p_value < 0.001
    assert test.support is None


def test_a_score_off_the_unit_interval_is_not_compared_with_a_binary_outcome():
    cells = ScoreCells.from_rows([0, 1] * 20, np.arange(40), np.zeros(40, dtype=int))
    with pytest.raises(DataError, match=r"must lie in \[0, 1\]"):
        compare_with_score(cells)


def test_composite_is_the_weighted_sum(rng):
    y, s = rng.integers(2, size=(600, 2)).astype(float), rng.uniform(size=(600, 2))
    g = rng.integers(2, size=600)
    both = composite_parity_test(y, s, g, [1.0, 2.0], rng=1)
    plain = parity_test(y @ [1.0, 2.0], s @ [1.0, 2.0], g, rng=1)
    assert both.cusum.ks_p_value == plain.cusum.ks_p_value
    with pytest.raises(InvalidParameterError, match="must agree"):
        composite_parity_test(y, s, g, [1.0])


def test_satterthwaite_widens_the_band_when_few_units_carry_the_variance():
    many = max_t_test(np.array([2.0]), np.eye(1), np.array([0.001]), rng=1)
    few = max_t_test(np.array([2.0]), np.eye(1), np.array([0.2]), rng=1)
    assert few.p_value[0] > many.p_value[0]
    assert few.high[0] - few.low[0] > many.high[0] - many.low[0]


def test_adjusted_p_values_are_never_below_raw_ones(rng):
    for _ in range(20):
        estimate = rng.normal(size=3)
        test = max_t_test(estimate, np.eye(3), np.full(3, 0.01), rng=rng)
        assert np.all(test.p_value_adjusted >= test.p_value)
        one = max_t_test(estimate[:1], np.eye(1), np.full(1, 0.01), confidence_level=0.8, rng=rng)
        assert one.p_value_adjusted[0] >= one.p_value[0]
        assert (one.low[0] > 0 or one.high[0] < 0) == (one.p_value_adjusted[0] <= 0.2)


def test_points_that_repeat_enter_the_sum_of_squares_as_often():
    estimate, covariance = np.array([2.5, 0.3, 0.0]), np.diag([1.0, 4.0, 1.0])
    fourth = np.full(3, 1e-6)
    once = max_t_test(estimate, covariance, fourth, rng=1)
    often = max_t_test(estimate, covariance, fourth, repeats=np.array([6.0, 1.0, 1.0]), rng=1)
    assert often.max_p_value == once.max_p_value
    draws = np.random.default_rng(5).normal(size=(200_000, 3)) ** 2
    squares = np.array([2.5, 0.15, 0.0]) ** 2
    for test, repeats in ((once, [1, 1, 1]), (often, [6, 1, 1])):
        assert test.sum_p_value == pytest.approx(
            np.mean(draws @ repeats >= squares @ repeats), abs=0.02
        )
    assert often.sum_p_value < once.sum_p_value


def test_an_enormous_statistic_stays_finite():
    test = max_t_test(np.array([1e6]), np.eye(1), np.array([1e-6]))
    assert np.isfinite(test.statistic[0])
    assert test.max_p_value == pytest.approx(1 / 5001)


def test_the_average_at_levels_is_least_squares_with_a_dummy_for_each_level(levels):
    y, score, group = levels
    design = np.column_stack([group, *((score == s) for s in np.unique(score))]).astype(float)
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    test = parity_test(y, score, group)
    assert test.estimate == pytest.approx(beta[0])
    # The sandwich of the residualised group.
    a = group - np.array([group[score == s].mean() for s in score])
    psi = a * (y - design @ beta) / np.sum(a**2)
    degrees = np.sum(psi**2) ** 2 / np.sum(psi**4)
    assert test.average.se == pytest.approx(np.sqrt(np.sum(psi**2) * degrees / (degrees - 1)))
    assert test.overlap == pytest.approx(np.mean(a**2))


def test_the_interval_of_the_average_and_its_p_value_agree(levels):
    average = parity_test(*levels).average
    for level in (0.5, 0.9, 0.999):
        low, high = average.confidence_interval(level)
        assert (low <= 0 <= high) == (average.p_value > 1 - level)


def test_curves_differ_by_the_difference_that_is_tested(rng):
    y, score, group, _ = users_with_scores(rng, rows=1, n_users=3000)
    test = parity_test(y, score, group)
    first, second = test.curves
    at = np.isin(first.points, test.differences.points)
    np.testing.assert_allclose(
        (second.estimate - first.estimate)[at], test.differences.estimate, atol=1e-12
    )


def test_any_increasing_map_of_the_score_gives_the_same_test(rng):
    y, score, group, _ = users_with_scores(rng, rows=1, n_users=1500)
    plain, mapped = (parity_test(y, s, group, rng=1) for s in (score, np.exp(9 * score)))
    assert mapped.p_value == plain.p_value
    assert mapped.estimate == pytest.approx(plain.estimate)
    np.testing.assert_allclose(mapped.differences.estimate, plain.differences.estimate)


def test_widths_are_said_as_scores_and_hold_enough_people(rng):
    y, score, group, _ = users_with_scores(rng, rows=1, n_users=500, shapes=((2, 3), (3, 2)))
    found = parity_test(y, score, group).differences
    for point, (low, high), n in zip(found.points, found.window, found.n_local, strict=True):
        assert low <= point <= high
        inside = (score >= low) & (score <= high)
        m = y[inside].mean()
        assert n == min(np.sum(inside & (group == g)) for g in (0, 1))
        assert n * m * (1 - m) >= 10 - 1e-9


def test_many_scores_are_merged_and_the_answer_stays(rng):
    n = 6000
    group, score = rng.integers(2, size=n), rng.uniform(size=n)
    y = (rng.uniform(size=n) < 0.2 + 0.5 * score + 0.1 * group).astype(float)
    fine = parity_test(y, score, group, rng=1)
    rounded = parity_test(y, np.round(score, 2), group, rng=1)
    assert fine.estimate == pytest.approx(rounded.estimate, abs=0.005)
    user = np.arange(n)
    assert parity_test(y, score, group, cluster=user, unit="row", rng=1).estimate == pytest.approx(
        fine.estimate
    )
