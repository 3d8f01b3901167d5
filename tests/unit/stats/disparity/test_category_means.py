import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.stats.disparity.category_means import CategoryMeans, fieller_coefficients
from equipoise.stats.small_samples import combine, contrast_law, pooled_shape, side_contrast
from equipoise.stats.unit_sums import UnitSums


@pytest.fixture
def rows(rng):
    category = np.repeat([0, 1, 2], [12, 20, 30])
    return rng.exponential(size=62) + category, category


def test_a_pair_has_the_law_of_a_contrast_of_few_units(rows):
    y, category = rows
    sums = UnitSums.from_rows(y, np.ones(62), category)
    sides = side_contrast(sums, pooled_shape(sums))
    means = CategoryMeans.from_rows(y, category, n_categories=3)
    pair = means.pairs(np.array([0]), np.array([1]), "difference")
    law = contrast_law(combine(sides, np.array([[1.0, -1.0, 0.0]])))
    assert_allclose(pair.root(np.array([0.2])), law.root(0.2))
    assert_allclose(pair.interval(2.5), law.interval(2.5))
    ratio = means.pairs(np.array([0]), np.array([1]), "ratio")
    law = contrast_law(combine(sides, np.array([[1.0, -0.7, 0.0]])))
    assert_allclose(ratio.root(np.array([0.7])), law.root())
    assert_allclose(means.value, [y[category == k].mean() for k in range(3)])


def test_a_ratio_read_from_the_other_side_changes_the_sign_only(rows):
    means = CategoryMeans.from_rows(*rows, n_categories=3)
    one, two = np.array([0]), np.array([1])
    for ratio in (0.3, 0.9, 4.0):
        root = means.pairs(one, two, "ratio").root(np.array([ratio]))
        back = means.pairs(two, one, "ratio").root(np.array([1.0 / ratio]))
        assert_allclose(root, -back)
    low, high = means.pairs(one, two, "ratio").interval(1.96)
    other = means.pairs(two, one, "ratio").interval(1.96)
    assert_allclose([low[0], high[0]], [1.0 / other[1][0], 1.0 / other[0][0]], rtol=1e-8)


def test_weights_of_one_and_clusters_of_one_row_change_nothing(rows):
    y, category = rows
    one, two = np.array([0, 0]), np.array([1, 2])
    plain = CategoryMeans.from_rows(y, category, n_categories=3).pairs(one, two, "difference")
    for unit in ({"weight": np.full(62, 2.0)}, {"cluster": np.arange(62)}):
        other = CategoryMeans.from_rows(y, category, n_categories=3, **unit)
        root = other.pairs(one, two, "difference").root(np.zeros(2))
        assert_allclose(root, plain.root(np.zeros(2)), rtol=1e-9)
        assert other.links is None
        assert other.pair_correlation(one, two) is None


def test_clusters_in_all_categories_make_pairs_correlated(rng):
    cluster, category = np.repeat(np.arange(20), 6), np.tile([0, 0, 1, 1, 2, 2], 20)
    y = rng.normal(size=20)[cluster] + 0.1 * rng.normal(size=120)
    means = CategoryMeans.from_rows(y, category, n_categories=3, cluster=cluster)
    pair = means.pairs(np.array([0]), np.array([1]), "difference")
    # The effect of a cluster cancels in the comparison: a paired test of twenty differences.
    table = y.reshape(20, 3, 2).mean(axis=2)
    gap = table[:, 0] - table[:, 1]
    low, high = pair.interval(1.96)
    assert_allclose(high - low, 2 * 2.09 * gap.std(ddof=1) / np.sqrt(20), rtol=0.03)
    correlation = means.pair_correlation(np.array([0, 0, 1]), np.array([1, 2, 2]))
    assert_allclose(np.diag(correlation), 1.0)
    assert np.abs(correlation[0, 1]) > 0.1


def test_three_units_are_not_enough():
    means = CategoryMeans.from_rows(np.arange(8.0), np.repeat([0, 1], [3, 5]), n_categories=2)
    assert means.enough.tolist() == [False, True]


def test_ratios_are_read_so_that_both_coefficients_are_finite():
    a, b = fieller_coefficients(np.array([0.0, 1.0, np.inf]))
    assert_allclose(a, [1.0, 1.0, 0.0])
    assert_allclose(b, [0.0, 1.0, 1.0])


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize("second", [1.0, 0.5])
def test_of_categories_that_do_not_vary_nothing_is_known(scale, second):
    category = np.arange(20) % 2
    value = np.where(category == 0, 1.0, second)
    pair = CategoryMeans.from_rows(value, category, n_categories=2).pairs(
        np.array([0]), np.array([1]), scale
    )
    natural = np.array([0.0 if scale == "difference" else 1.0])
    assert pair.root(natural).tolist() == [0.0]
    low, high = pair.interval(1.96)
    assert low[0] <= natural[0] <= high[0]
    assert high[0] == np.inf
