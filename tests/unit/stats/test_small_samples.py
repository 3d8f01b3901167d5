"""The law of a contrast with few units: by hand, and beside loops over rows."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.disparity.means import MeanComparison
from equipoise.stats.small_samples import (
    Contrast,
    Links,
    Shape,
    combine,
    contrast_law,
    influence_correlation,
    joint_bonferroni,
    joint_test,
    likelihood_is_long_enough,
    normal_root,
    one_sided_fold,
    pooled_shape,
    shape_is_unknown,
    side_contrast,
)
from equipoise.stats.unit_sums import CrossSums, UnitSums
from oracles import units as naive

X = np.array([1.0, 2.0, 4.0, 5.0, 8.0])
Y = np.array([2.0, 9.0, 11.0, 14.0])


def two_samples(x=X, y=Y):
    return UnitSums.stack([UnitSums.of_units(values, 1.0) for values in (x, y)])


def random_rows(seed, n=80, n_units=14, n_sides=2):
    rng = np.random.default_rng(seed)
    unit = rng.integers(0, n_units, n)
    side = rng.integers(0, n_sides, n)
    w = rng.integers(1, 4, n).astype(float)
    return rng.exponential(size=n) * w + unit / n_units, w, side, unit


def test_standard_error_is_welchs():
    sides = two_samples()
    law = contrast_law(combine(side_contrast(sides, pooled_shape(sides)), [1.0, -1.0]))
    expected = np.sqrt(X.var(ddof=1) / len(X) + Y.var(ddof=1) / len(Y))
    assert_allclose([law.estimate, law.se], [X.mean() - Y.mean(), expected], rtol=1e-12)


def test_without_borrowing_test_and_interval_are_welchs():
    # Sides as large and as variable as each other: pooling changes nothing.
    y = X[::-1] * 1.0 + 3.0
    sides = two_samples(X, y)
    law = contrast_law(
        combine(side_contrast(sides, pooled_shape(sides)), [1.0, -1.0]), shape="none"
    )
    test = stats.ttest_ind(X, y, equal_var=False)
    assert_allclose(law.df, test.df, rtol=1e-12)
    assert_allclose(2 * stats.norm.sf(abs(law.root(0.0))), test.pvalue, rtol=1e-10)
    ends = test.confidence_interval(0.95)
    assert_allclose(law.interval(stats.norm.ppf(0.975)), [ends.low, ends.high], rtol=1e-8)
    assert law.shape == "none"


def test_pooled_shape_is_the_within_variance_and_unbiased_skewness():
    sides = two_samples()
    shape = pooled_shape(sides)
    squares = np.sum((X - X.mean()) ** 2) + np.sum((Y - Y.mean()) ** 2)
    cubes = np.sum((X - X.mean()) ** 3) + np.sum((Y - Y.mean()) ** 3)
    third = cubes / (4 * 3 / 5 + 3 * 2 / 4)
    assert_allclose(shape.variance, squares / 7, rtol=1e-12)
    assert_allclose(shape.skewness, third / (squares / 7) ** 1.5, rtol=1e-12)
    assert shape.n == 9


def test_a_side_that_does_not_vary_has_a_quarter_of_the_pooled_variance():
    sides = two_samples(np.full(5, 3.0), Y)
    shape = replace(pooled_shape(sides), skewness=np.asarray(0.0))
    side = side_contrast(sides, shape)
    assert_allclose(side.variance[0], 0.25 * shape.variance / 5)
    assert_allclose(side.variance[1], Y.var(ddof=1) / 4)


def test_the_floor_fades_from_twenty_units_on():
    sides = two_samples(np.full(40, 3.0), Y)
    shape = replace(pooled_shape(sides), skewness=np.asarray(0.0))
    assert_allclose(side_contrast(sides, shape).variance[0], 0.125 * shape.variance / 40)


def test_a_side_without_rare_events_varies_as_if_one_had_been_seen():
    """With a skewness of 3 there is one event in ten units: ten of them beside the forty."""
    sides = two_samples(np.full(40, 3.0), Y)
    shape = replace(pooled_shape(sides), skewness=np.asarray(-3.0))
    assert_allclose(side_contrast(sides, shape).variance[0], 0.2 * shape.variance / 40)
    without = side_contrast(sides, shape, events=0.0)
    assert_allclose(without.variance[0], 0.125 * shape.variance / 40)


@pytest.mark.parametrize("seed", range(8))
def test_known_target_equals_the_second_implementation(seed):
    u, w, side, unit = random_rows(seed)
    cluster = unit * 2 + side  # clusters inside sides
    sums = UnitSums.from_rows(u, w, side, cluster=cluster)
    found = MeanComparison.with_known(sums, pooled_shape(sums), 1.5)
    sides = [naive.cumulants(naive.unit_totals(u, w, side, cluster, s)) for s in range(2)]
    for s in range(2):
        law = naive.law([sides[s]], [1.0], naive.pool(sides))
        assert_allclose(found.root(0.0)[s], naive.root(law, 1.5), rtol=1e-9)
        assert_allclose(found.law(0.0).df[s], law["df"], rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scale", ["difference", "ratio"])
def test_spanning_clusters_equal_the_second_implementation(seed, scale):
    u, w, side, unit = random_rows(seed, n_sides=3)
    group, both, target = (side == s for s in range(3))
    table = np.zeros((2, 14, 3))
    np.add.at(table[0], (unit, side), u)
    np.add.at(table[1], (unit, side), w)
    sums = UnitSums.from_rows(u, w, side, cluster=unit, centre=0.0)
    found = MeanComparison.with_sides(
        *(sums[[s]] for s in range(3)), pooled_shape(sums.expand(0)), scale=scale,
        cross=CrossSums.of_units(*table[:, None]),
    )  # fmt: skip
    sides = [naive.cumulants(naive.unit_totals(u, w, side, unit, s)) for s in range(3)]
    size = np.array([w[part].sum() for part in (group, both, target)])
    a = size * [1, 1, 0] / size[:2].sum()
    b = size * [0, 1, 1] / size[1:].sum()
    null = 1.1 if scale == "ratio" else 0.1
    c = a - null * b if scale == "ratio" else a - b
    law = naive.law(sides, c, naive.pool(sides))
    expected = naive.root(law, 0.0 if scale == "ratio" else null)
    assert_allclose(found.root(null), expected, rtol=1e-8)
    assert_allclose(found.law(null).df, law["df"], rtol=1e-9)


def test_the_population_is_group_and_rest_and_has_the_root_of_the_rest():
    sums = two_samples()
    shape = pooled_shape(sums)
    rest = MeanComparison.with_rest(sums[0], sums[1], shape)
    population = MeanComparison.with_rest(sums[0], sums[1], shape, population=True)
    assert_allclose(population.estimate, X.mean() - np.r_[X, Y].mean(), rtol=1e-12)
    assert_allclose(population.root(0.0), rest.root(0.0), rtol=1e-10)
    empty = sums[0] - sums[0]
    general = MeanComparison.with_sides(empty, sums[0], sums[1], shape)
    assert_allclose(general.root(0.3), population.root(0.3), rtol=1e-10)
    disjoint = MeanComparison.with_sides(sums[0], empty, sums[1], shape)
    assert_allclose(disjoint.root(0.3), rest.root(0.3), rtol=1e-10)


def test_an_external_target_is_a_side_with_infinite_degrees():
    sums = two_samples()
    shape = pooled_shape(sums)
    exact = MeanComparison.with_known(sums, shape, 3.0)
    external = MeanComparison.with_known(sums, shape, 3.0, se=0.7)
    assert_allclose(external.law(0.0).se ** 2, exact.law(0.0).se ** 2 + 0.49, rtol=1e-12)
    assert np.all(external.law(0.0).df > exact.law(0.0).df)
    far = MeanComparison.with_known(sums, shape, 3.0, se=1e6)
    assert np.all(far.law(0.0).df > 1e9)


def test_all_units_in_both_sides_alike_leave_n_minus_one_degrees():
    u = np.stack([X, np.array([3.0, 1.0, 4.0, 1.0, 5.0])], axis=1)
    w = np.full_like(u, 2.0)
    sides = UnitSums.of_units(u, w, axis=0)
    links = Links.between(sides, CrossSums.of_units(u, w))
    side = side_contrast(sides, pooled_shape(sides))
    law = contrast_law(combine(side, [1.0, -1.0], links), shape="none")
    assert_allclose(law.df, 4.0, rtol=1e-10)
    # The paired t test.
    assert_allclose(law.se, stats.sem((u[:, 0] - u[:, 1]) / 2), rtol=1e-10)


@pytest.mark.parametrize(
    ("w", "status"),
    [
        (np.ones(4), "ok"),
        (np.ones(3), "too-few-units"),
        (np.array([5.0, 1, 1, 1, 1, 1]), "too-few-units"),
        (np.zeros(0), "empty"),
    ],
)
def test_four_effective_units_are_needed(w, status):
    sums = UnitSums.of_units(w * np.arange(len(w)), w)
    shape = pooled_shape(two_samples())
    found = MeanComparison.with_known(sums.expand(0), shape.expand(), 0.5)
    assert found.status.tolist() == [status]
    assert np.isnan(found.root(0.0)[0]) == (status != "ok")
    assert np.isnan(found.interval(1.96)).all() == (status != "ok")


def test_the_minimum_holds_for_the_target_too():
    few, many = UnitSums.of_units(X[:3], 1.0), UnitSums.of_units(np.arange(30.0), 1.0)
    shape = pooled_shape(UnitSums.stack([few, many]))
    assert MeanComparison.with_rest(many, few, shape).status == "too-few-units"
    assert MeanComparison.with_rest(many, few, shape, population=True).status == "too-few-units"


def test_nothing_varies():
    sums = UnitSums.of_units(np.full((2, 6), 2.0), 1.0)
    found = MeanComparison.with_known(sums, pooled_shape(sums), 1.0)
    assert found.status.tolist() == ["no-variation", "no-variation"]


def contrast(third=0.0, own=0.0, doubt=0.0):
    one = np.ones(1)
    return Contrast(
        estimate=2 * one, variance=one, model_variance=one, shape_variance=one,
        shape_third=third * one,
        satterthwaite=one / 9, own_variance=one, own_third=own * one,
        own_third_variance=doubt**2 * one, scatter=one, n_units=10 * one, n_eff=10 * one,
        df=9 * one,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("third", "own", "doubt", "low", "high", "shape"),
    [
        (0.3, 0.25, 0.2, 0.3, 0.3, "borrowed"),  # inside half a standard error
        (0.3, -0.1, 0.2, 0.0, 0.3, "checked"),  # own + doubt / 2
        (0.1, 0.5, 0.2, 0.1, 0.4, "checked"),
        (0.9, 0.9, 0.0, 0.6, 0.6, "borrowed"),  # the largest skewness
        (0.0, 0.0, 1.0, 0.0, 0.0, "none"),
    ],
)
def test_own_shape_is_heard_beyond_half_a_standard_error(third, own, doubt, low, high, shape):
    law = contrast_law(contrast(third, own, doubt))
    assert_allclose([law.low[0], law.high[0]], [low, high], atol=1e-12)
    assert law.shape.tolist() == [shape]
    assert law.df.tolist() == [9.0]


def test_the_transformation_by_hand():
    law = contrast_law(contrast(0.3), shape="borrowed")
    g = 1.5 / 0.3 * np.expm1(2 * 0.3 * 2.0 / 3) + 0.05
    assert_allclose(law.root(0.0), stats.norm.isf(stats.t.sf(g, 9)), rtol=1e-10)
    straight = contrast_law(contrast(1e-9), shape="borrowed").root(0.0)
    assert_allclose(straight, contrast_law(contrast(), shape="none").root(0.0), rtol=1e-8)


def test_the_cautious_end_of_the_shape_counts_on_each_side():
    checked = contrast_law(contrast(0.3, -0.5, 0.2))
    for null in (-3.0, 0.0, 1.9, 2.1, 4.0, 9.0):
        roots = [contrast_law(contrast(s), shape="borrowed").root(null)[0] for s in (0.3, -0.4)]
        assert_allclose(abs(checked.root(null)[0]), min(map(abs, roots)), atol=0.12)
        assert abs(checked.root(null)[0]) <= min(map(abs, roots)) + 1e-12


@pytest.mark.parametrize("skewness", [0.3, -0.3])
def test_a_shape_that_nobody_else_shares_may_be_none_at_all(skewness):
    # The borrowed shape is the contrast's own, so that the check alone would change nothing.
    law = contrast_law(contrast(skewness, skewness, 0.2), plausible=0.0)
    assert (law.low.item(), law.high.item()) == (min(skewness, 0.0), max(skewness, 0.0))
    plain = contrast_law(contrast(skewness), shape="borrowed")
    straight = contrast_law(contrast(), shape="none")
    for null in (-3.0, 0.0, 4.0, 9.0):
        smaller = min(abs(one.root(null)[0]) for one in (plain, straight))
        assert abs(law.root(null)[0]) <= smaller + 1e-12


def test_only_a_group_without_others_beside_a_known_value_is_alone():
    values = np.random.default_rng(0).exponential(size=40)
    known = [
        MeanComparison.with_known(sums, pooled_shape(sums), 1.0)
        for sums in (
            UnitSums.from_rows(values, np.ones(40), np.zeros(40)),
            UnitSums.from_rows(values, np.ones(40), np.arange(40) >= 30),
        )
    ]
    assert [one.lone.tolist() for one in known] == [[True], [True, False]]


def test_much_skewness_and_few_degrees_leave_an_end_open():
    few = contrast(0.6)
    few = contrast_law(
        Contrast(
            **{name: getattr(few, name) for name in few.__slots__}
            | {"satterthwaite": np.array([0.4])}
        ),
        shape="borrowed",
    )
    low, high = few.interval(stats.norm.ppf(0.995))
    assert np.isfinite(low[0])
    assert high[0] == np.inf
    # No null however large is rejected.
    assert few.root(1e9)[0] > stats.norm.ppf(0.005)


def test_shape_must_be_a_known_rule():
    with pytest.raises(InvalidParameterError, match="shape"):
        contrast_law(contrast(), shape="own")


def test_ratio_needs_positive_means():
    sums = two_samples(-X, Y)
    found = MeanComparison.with_rest(
        sums[[0]], sums[[1]], pooled_shape(sums.expand(0)), scale="ratio"
    )
    assert found.status.tolist() == ["no-ratio"]
    assert np.isnan(found.root(1.0)).all()
    assert np.isnan(found.interval(1.96)).all()


def test_interval_of_a_ratio_is_where_the_test_does_not_reject():
    sums = two_samples(X + 4, Y + 2)
    found = MeanComparison.with_rest(
        sums[[0]], sums[[1]], pooled_shape(sums.expand(0)), population=True, scale="ratio"
    )
    low, high = found.interval(1.96)
    assert 0 < low[0] < found.estimate[0] < high[0]
    assert_allclose([found.root(low)[0], found.root(high)[0]], [1.96, -1.96], rtol=1e-6)


def test_ratio_to_an_external_value():
    sums = two_samples(np.arange(30.0), np.arange(40.0))
    exact = MeanComparison.with_known(sums, pooled_shape(sums), 5.0, scale="ratio")
    difference = MeanComparison.with_known(sums, pooled_shape(sums), 5.0)
    assert_allclose(exact.root(1.2), difference.root(1.0), rtol=1e-10)
    wide = MeanComparison.with_known(sums, pooled_shape(sums), 5.0, se=1.0, scale="ratio")
    inner, outer = exact.interval(1.96), wide.interval(1.96)
    assert np.all(outer[0] < inner[0])
    assert np.all(outer[1] > inner[1])


def test_a_ratio_to_what_may_be_zero_has_no_upper_end():
    sums = two_samples(X + 4, np.array([-3.0, 0.5, 1.0, 2.5, 0.0]))
    found = MeanComparison.with_rest(
        sums[[0]], sums[[1]], pooled_shape(sums.expand(0)), scale="ratio"
    )
    assert found.interval(1.96)[1].tolist() == [np.inf]


def test_joint_statistic_is_that_of_brown_and_forsythe():
    z, size = np.array([1.0, -2.0, 0.5]), np.array([10.0, 30.0, 60.0])
    test = joint_test(z, share=size)
    assert_allclose(test.statistic, 0.9 * 1 + 0.7 * 4 + 0.4 * 0.25)
    assert_allclose(test.p_value, stats.chi2.sf(test.statistic, 2))
    known = joint_test(z)
    assert_allclose([known.statistic, known.df], [5.25, 3])


def test_groups_that_are_not_tested_leave_the_joint_test():
    z = np.array([1.0, np.nan, 0.5])
    assert_allclose(
        joint_test(z, share=np.array([1.0, 5.0, 2.0])).p_value,
        joint_test(z[[0, 2]], share=np.array([1.0, 2.0])).p_value,
    )
    assert np.isnan(joint_test(np.array([np.nan, 1.0]), share=np.ones(2)).p_value)
    assert joint_bonferroni(z).df == 2
    assert np.isnan(joint_bonferroni(np.full(2, np.nan)).p_value)


def test_bonferroni_multiplies_the_smallest_p_value():
    p = joint_bonferroni(np.array([[2.5, 0.1, -0.3], [0.1, 0.2, 0.0]])).p_value
    assert_allclose(p, [3 * 2 * stats.norm.sf(2.5), 1.0])


def test_normal_root_gives_the_f_law():
    statistic = 5.0
    z = normal_root(np.sqrt(statistic), 7.0)
    assert_allclose(2 * stats.norm.sf(z), stats.f.sf(statistic, 1, 7), rtol=1e-10)
    assert_allclose(normal_root(np.array([1.3]), np.inf), [1.3], rtol=1e-10)
    assert np.isfinite(normal_root(np.array([1e200]), 50.0)).all()


def test_likelihood_is_long_enough_from_twenty_units_of_little_skewness():
    assert likelihood_is_long_enough(20, 0.8)
    assert not likelihood_is_long_enough(19, 0.0)
    assert likelihood_is_long_enough(100, 2.0)
    assert not likelihood_is_long_enough(99, 2.0)


def test_very_skewed_values_count_more_on_one_side_and_never_less():
    units = np.arange(4.0, 3000.0)
    plain, skewed = one_sided_fold(units, 3.99), one_sided_fold(units, 4.0)
    assert (skewed >= plain).all()
    assert (np.diff(plain) <= 0).all()
    assert (np.diff(skewed) <= 0).all()
    assert one_sided_fold([60.0, 60.0, 300.0], [2.0, 4.0, 4.0]).tolist() == [2.0, 5.0, 3.0]


def test_shape_is_unknown_with_little_to_borrow_and_few_units():
    assert shape_is_unknown(49, 29.9)
    assert not shape_is_unknown(50, 4)
    assert shape_is_unknown([10, 200], [30, 5]).tolist() == [False, False]


def test_influence_correlation_of_group_and_rest_is_minus_one():
    sides = side_contrast(two_samples(), pooled_shape(two_samples()))
    matrix = influence_correlation(sides, np.array([[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]]))
    assert_allclose(matrix, [[1, -1, 0], [-1, 1, 0], [0, 0, 1]], atol=1e-12)


def test_influence_correlation_of_spanning_units_is_that_of_their_influence_values():
    u, w, side, unit = random_rows(3, n_sides=3)
    table = np.zeros((2, 14, 3))
    np.add.at(table[0], (unit, side), u)
    np.add.at(table[1], (unit, side), w)
    sums = UnitSums.of_units(*table, axis=0)
    links = Links.between(sums, CrossSums.of_units(*table))
    c = np.array([[1.0, -0.5, -0.5], [-0.2, 1.0, -0.8]])
    influence = (table[0] - sums.mean * table[1]) / sums.w @ c.T
    expected = influence.T @ influence
    expected /= np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    found = influence_correlation(side_contrast(sums, pooled_shape(sums)), c, links)
    assert_allclose(found, expected, rtol=1e-10)


def test_contrasts_add_and_multiply_like_their_formula():
    sums = two_samples()
    sides = side_contrast(sums, pooled_shape(sums))
    by_hand = (sides[0] - sides[1]) * 0.9
    combined = combine(sides, [0.9, -0.9])
    for name in Contrast.__slots__:
        assert_allclose(getattr(by_hand, name), getattr(combined, name), rtol=1e-12)
    total = sides.sum()
    assert_allclose(total.without(sides[0]).variance, sides[1].variance, rtol=1e-12)


def test_shape_of_several_tables_at_once():
    shape = Shape(variance=np.ones(3), skewness=np.zeros(3), n=np.ones(3))
    assert shape.expand().variance.shape == (3, 1)
