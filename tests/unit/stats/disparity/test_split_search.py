import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.disparity.discovery import discover_subgroups
from equipoise.stats.disparity.split_search import (
    PermutedContrast,
    _at_most,
    _RateGap,
    at_least,
    split_rows,
)
from oracles.over_time import closed_simes


@pytest.fixture
def planted(rng):
    n = 6000
    columns = {
        "job": rng.choice(["a", "b", "c"], size=n),
        "age": rng.uniform(18, 80, size=n),
        "home": rng.choice(["rent", "own"], size=n),
    }
    inside = (columns["job"] == "b") & (columns["age"] <= 40)
    return rng.exponential(size=n) + 0.6 * inside, columns


def test_real_values_are_searched_in_one_part_and_tested_in_the_other(planted):
    y, columns = planted
    found = discover_subgroups(y, columns)
    assert found.method == "split"
    assert "job=b" in found.subgroups[0].label
    assert found.n == (~split_rows(len(y))).sum()
    assert found.at_least >= 1
    assert 0 < found.subgroups[0].bound < 0.6


def test_the_test_part_alone_decides(planted):
    y, columns = planted
    search = split_rows(len(y))
    whole = discover_subgroups(y, columns, split=search)
    best = whole.subgroups[0]
    # Other values in the test part, and the finding is gone; the candidates are the same.
    other = y.copy()
    other[~search] = np.random.default_rng(1).permutation(other[~search])
    again = discover_subgroups(other, columns, split=search)
    assert best.label in {one.label for one in again.rejected + again.nearest}
    assert not again.rejected


def test_rows_may_come_in_any_order(planted, rng):
    y, columns = planted
    order = rng.permutation(len(y))
    other = {name: column[order] for name, column in columns.items()}
    for outcome in (y, (y > 1.0).astype(float)):
        first = discover_subgroups(outcome, columns, method="split")
        second = discover_subgroups(outcome[order], other, method="split")
        assert [one.label for one in first.rejected] == [one.label for one in second.rejected]
        assert [one.gap for one in first.rejected] == [one.gap for one in second.rejected]
        assert first.rejected


def test_whole_clusters_are_searched(rng):
    cluster = rng.integers(0, 200, size=2000)
    search = split_rows(2000, cluster=cluster)
    assert all(len(set(search[cluster == k])) == 1 for k in range(200))
    assert 0.35 < search.mean() < 0.65


def test_another_seed_is_another_split_and_the_share_is_kept():
    a, b = split_rows(20_000, share=0.3), split_rows(20_000, share=0.3, seed=1)
    assert abs(a.mean() - 0.3) < 0.02
    assert abs((a & b).mean() - 0.09) < 0.02


def test_the_split_may_be_given(planted):
    y, columns = planted
    search = np.arange(len(y)) % 3 == 0
    assert discover_subgroups(y, columns, split=search).n == (~search).sum()


@pytest.mark.parametrize(
    "options", [{"weight": "w"}, {"cluster": "c"}, {"weight": "w", "cluster": "c"}]
)
def test_weights_and_clusters_are_tested_by_units(planted, rng, options):
    y, columns = planted
    values = {"w": rng.uniform(0.5, 2, size=len(y)), "c": np.arange(len(y)) // 4}
    found = discover_subgroups(y, columns, **{role: values[name] for role, name in options.items()})
    assert "job=b" in found.subgroups[0].label


def test_rates_may_be_split_on_request(rng):
    columns = {"a": rng.integers(0, 3, 8000), "b": rng.integers(0, 3, 8000)}
    y = rng.random(8000) < 0.2 + 0.2 * ((columns["a"] == 0) & (columns["b"] == 0))
    found = discover_subgroups(y, columns, method="split", alternative="greater")
    assert "a=0" in found.subgroups[0].label
    rare = discover_subgroups(rng.random(8000) < 0.002, columns, method="split")
    assert all(0 < one.p_value_raw <= 1 for one in rare.nearest + rare.rejected)
    assert discover_subgroups(y, columns, method="split", alternative="less").method == "split"


def test_permutations_are_those_of_scipy(rng):
    x, y = rng.lognormal(size=60), 1.5 * rng.lognormal(size=140)
    from equipoise.stats.disparity.split_search import _mean_gaps

    values, mask = np.concatenate([x, y]), np.arange(200) < 60
    (ours,) = _mean_gaps(values, [mask], np.random.default_rng(0))
    assert isinstance(ours, PermutedContrast)

    def welch(a, b, axis=-1):
        se = np.sqrt(
            a.var(axis=axis, ddof=1) / a.shape[axis] + b.var(axis=axis, ddof=1) / b.shape[axis]
        )
        return (a.mean(axis=axis) - b.mean(axis=axis)) / se

    theirs = stats.permutation_test(
        (x, y), welch, n_resamples=9999, vectorized=True, rng=np.random.default_rng(1)
    )
    p = 2 * stats.norm.sf(abs(ours.root(np.zeros(1))[0]))
    # Two Monte Carlo p-values with 9999 draws each.
    assert p == pytest.approx(theirs.pvalue, abs=5 * np.sqrt(2 * p * (1 - p) / 9999))


def test_permutation_limits_and_p_values_agree(rng):
    draws = np.sort(rng.normal(size=999))
    for estimate in np.linspace(-4, 4, 41):
        found = PermutedContrast(np.array([estimate]), np.array([1.0]), draws)
        p = 2 * stats.norm.sf(abs(found.root(np.zeros(1))[0]))
        low, high = found.interval(np.array([stats.norm.isf(0.025)]))
        assert (low[0] <= 0 <= high[0]) == (p > 0.05 + 1e-12)


def test_a_level_beyond_the_draws_leaves_no_limit():
    found = PermutedContrast(np.array([1.0]), np.array([1.0]), np.linspace(-1, 1, 99))
    assert_allclose(found.interval(np.array([4.0])), [[-np.inf], [np.inf]])


@pytest.mark.parametrize("m", [1, 2, 4, 6])
def test_at_least_is_the_closed_test_of_simes(rng, m):
    for _ in range(60):
        p = rng.beta(0.3, 1.5, size=m)
        assert at_least(p, 0.1) == closed_simes(p, 0.1)
    assert at_least(np.zeros(m)) == m


@pytest.mark.parametrize(
    ("split", "error", "message"),
    [
        (np.ones(400, dtype=bool), DataError, "one of the two parts empty"),
        (np.ones(3, dtype=bool), InvalidParameterError, "each of the 400 rows"),
        (50, InvalidParameterError, r"Pass 0\.5"),
    ],
)
def test_bad_splits_are_refused(rng, split, error, message):
    with pytest.raises(error, match=message):
        discover_subgroups(rng.normal(size=400), {"a": rng.integers(0, 2, 400)}, split=split)


def test_constant_features_leave_nothing_to_search(rng):
    with pytest.raises(DataError, match="No feature splits"):
        discover_subgroups(rng.normal(size=400), {"a": np.ones(400)})


def test_rows_beyond_the_limit_are_left_out_evenly():
    rows = np.array([True] * 10 + [False] * 5 + [True] * 10)
    kept = _at_most(rows, 5)
    assert np.flatnonzero(kept).tolist() == [0, 4, 9, 19, 24]
    assert _at_most(rows, 20) is rows


def test_a_gap_of_rates_is_their_difference():
    y = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    gap = _RateGap.of(y, np.arange(8) < 4)
    assert gap.estimate.tolist() == [0.25]
