import numpy as np
import pytest

from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.improvement.utilities import estimate_utilities


@pytest.fixture
def rows(rng):
    n = 240
    return {
        "numerator": rng.normal(size=(n, 2, 2)) + 1,
        "denominator": rng.integers(2, size=(n, 2, 2)).astype(float),
        "group": rng.integers(3, size=n),
    }


def influence(rows, *, weight=None, population=False):
    """Values and influence functions by plain loops over ratios."""
    u, w, group = rows["numerator"], rows["denominator"], rows["group"]
    weight = np.ones(len(u)) if weight is None else weight
    masks = [group == g for g in range(3)] + ([np.ones(len(u), bool)] if population else [])
    values, columns = [], []
    for c in range(u.shape[1]):
        for t in range(2):
            for mask in masks:
                top, bottom = weight * u[:, c, t] * mask, weight * w[:, c, t] * mask
                value = top.sum() / bottom.sum()
                values.append(value)
                columns.append((top - value * bottom) / bottom.sum())
    return np.array(values), np.array(columns).T


@pytest.mark.parametrize("population", [True, False])
def test_values_and_covariance_are_those_of_the_influence_functions(rows, rng, population):
    weight = rng.gamma(2.0, size=240)
    estimates = estimate_utilities(**rows, n_groups=3, population=population, weight=weight)
    value, psi = influence(rows, weight=weight, population=population)
    np.testing.assert_allclose(estimates.value.ravel(), value, rtol=1e-12)
    np.testing.assert_allclose(estimates.covariance, psi.T @ psi, atol=1e-14)


def test_clusters_add_up_before_they_are_squared(rows, rng):
    cluster = rng.integers(40, size=240)
    estimates = estimate_utilities(**rows, n_groups=3, cluster=cluster)
    _, psi = influence(rows)
    totals = np.array([psi[cluster == k].sum(axis=0) for k in range(40)])
    np.testing.assert_allclose(estimates.covariance, totals.T @ totals, atol=1e-14)
    assert estimates.n_units == len(np.unique(cluster))


def test_one_row_per_cluster_is_independent_rows(rows):
    alone = estimate_utilities(**rows, n_groups=3)
    clustered = estimate_utilities(**rows, n_groups=3, cluster=np.arange(240))
    np.testing.assert_allclose(clustered.covariance, alone.covariance, atol=1e-14)


def test_count_is_repeated_rows(rows, rng):
    count = rng.integers(1, 4, size=240)
    counted = estimate_utilities(**rows, n_groups=3, count=count, n_resamples=50, rng=1)
    repeated = estimate_utilities(
        **{name: np.repeat(array, count, axis=0) for name, array in rows.items()},
        n_groups=3,
        n_resamples=50,
        rng=1,
    )
    np.testing.assert_allclose(counted.value, repeated.value, rtol=1e-12)
    np.testing.assert_array_equal(counted.support, repeated.support)
    np.testing.assert_allclose(counted.draws.value, repeated.draws.value, rtol=1e-10)


@pytest.mark.parametrize("clustered", [True, False])
def test_draws_have_the_law_of_resampled_units(rows, rng, clustered):
    cluster = rng.integers(120, size=240) if clustered else None
    estimates = estimate_utilities(**rows, n_groups=3, cluster=cluster, n_resamples=4000, rng=rng)
    unit = np.arange(240) if cluster is None else cluster
    members = [np.flatnonzero(unit == k) for k in np.unique(unit)]
    naive = []
    for _ in range(1500):
        drawn = np.concatenate([members[k] for k in rng.integers(len(members), size=len(members))])
        value, _ = influence({name: array[drawn] for name, array in rows.items()})
        naive.append(value)
    draws = estimates.draws
    ours, theirs = draws.value.std(axis=0), np.std(naive, axis=0)
    # 1500 and 4000 draws: the ratio of standard deviations has standard error about 2.2%.
    np.testing.assert_allclose(ours, theirs, rtol=0.12)
    np.testing.assert_allclose(
        draws.value.mean(axis=0), np.mean(naive, axis=0), atol=0.2 * theirs.max()
    )
    assert draws.defined.all()
    # A resample's own standard error is about that of the sample.
    np.testing.assert_allclose(
        np.sqrt(np.median(np.diagonal(draws.covariance, axis1=1, axis2=2), axis=0)),
        np.sqrt(np.diag(estimates.covariance)),
        rtol=0.1,
    )


def test_row_order_does_not_matter_and_inputs_stay_unchanged(rows, rng):
    copies = {name: array.copy() for name, array in rows.items()}
    first = estimate_utilities(**rows, n_groups=3, n_resamples=20, rng=2)
    order = rng.permutation(240)
    second = estimate_utilities(
        **{name: array[order] for name, array in rows.items()}, n_groups=3, n_resamples=20, rng=2
    )
    np.testing.assert_allclose(first.draws.value, second.draws.value, rtol=1e-9)
    for name, array in rows.items():
        np.testing.assert_array_equal(array, copies[name])


def test_support_counts_rows_with_a_denominator():
    w = np.ones((4, 1, 2))
    w[0, 0, 0] = 0
    estimates = estimate_utilities(w * 2, w, [0, 0, 1, 1], n_groups=2, population=True)
    assert estimates.support.tolist() == [[[1, 2, 3], [2, 2, 4]]]
    np.testing.assert_array_equal(estimates.value, 2.0)


def test_resamples_without_a_denominator_are_marked(rng):
    w = np.ones((30, 1, 2))
    w[:29, 0, 1] = 0
    w[29, 0, 1] = 1
    group = np.zeros(30, dtype=int)
    estimates = estimate_utilities(w, w, group, n_groups=1, n_resamples=500, rng=rng)
    share = (~estimates.draws.defined[:, 1]).mean()
    assert share == pytest.approx((29 / 30) ** 30, abs=0.1)
    assert np.isfinite(estimates.draws.value).all()
    assert np.isfinite(estimates.draws.covariance).all()


def test_a_group_without_denominator_is_refused():
    w = np.zeros((4, 1, 2))
    w[:2] = 1
    with pytest.raises(GroupTooSmallError, match="non-zero denominator"):
        estimate_utilities(w, w, [0, 0, 1, 1], n_groups=2)


def test_shapes_must_agree():
    with pytest.raises(InvalidParameterError, match=r"shape \(n, criteria, 2\)"):
        estimate_utilities(np.ones((4, 1, 2)), np.ones((4, 1, 1)), [0, 0, 1, 1], n_groups=2)


def test_count_and_cluster_exclude_each_other():
    w = np.ones((4, 1, 2))
    with pytest.raises(InvalidParameterError, match="cannot be combined"):
        estimate_utilities(w, w, [0, 0, 1, 1], n_groups=2, count=[1, 1, 1, 1], cluster=[0, 1, 2, 3])


def test_clusters_are_what_counts_as_support():
    w = np.ones((6, 1, 2))
    w[0, 0, 0] = 0
    options = {"n_groups": 2, "cluster": [1, 1, 2, 2, 3, 3]}
    estimates = estimate_utilities(w * 2, w, [0, 0, 0, 1, 1, 1], population=True, **options)
    # Cluster 2 has a row in either group.
    assert estimates.support.tolist() == [[[2, 2, 3], [2, 2, 3]]]
