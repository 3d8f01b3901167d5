"""Where scores are placed, wherever the rows are."""

import numpy as np
import pytest

from equipoise.stats.scores.cells import (
    LinearBlock,
    ScoreCells,
    influence_moments,
)
from equipoise.stats.scores.rows import (
    ScoreBins,
    ScorePieces,
    UnitRows,
    is_binary,
    score_support,
    sum_by,
)

N = 90


def rows_of(kind, rng):
    """Rows of users in three groups, some of them in two; 5 scores."""
    user = rng.integers(100, 130, size=N)
    group = np.where(user < 126, user % 3, rng.integers(3, size=N))
    score = rng.integers(5, size=N) / 4
    outcome = rng.normal(size=N) if kind == "real" else rng.integers(2, size=N).astype(float)
    weight = rng.uniform(0.5, 2.0, size=N) if kind == "weighted" else None
    return outcome, score, group, user, weight


def moments_user_by_user(outcome, score, group, user, weight, block):
    covariance, fourth = 0.0, 0.0
    cell = group * 5 + (4 * score).astype(int)
    for one in np.unique(user):
        psi = 0.0
        mine = np.flatnonzero(user == one)
        for row in mine:
            w = (1.0 if weight is None else weight[row]) / len(mine)
            psi += w * block.coefficient[cell[row]] * (outcome[row] - block.centre[cell[row]])
        covariance += np.outer(psi, psi)
        fourth += psi**4
    return covariance, fourth


@pytest.mark.parametrize("kind", ["binary", "real", "weighted"])
@pytest.mark.parametrize("chunk", [4, 8192])
def test_moments_equal_sums_user_by_user_when_users_are_in_one_group_or_two(
    rng, monkeypatch, kind, chunk
):
    monkeypatch.setattr("equipoise.stats.scores.rows.CHUNK_UNITS", chunk)
    outcome, score, group, user, weight = rows_of(kind, rng)
    coefficient = rng.normal(size=(15, 6))
    for k in range(3):
        # Each group reaches a statistic of its own and shares the others.
        coefficient[5 * k : 5 * (k + 1), [(k + 1) % 3, (k + 2) % 3]] = 0.0
    block = LinearBlock(coefficient, rng.normal(size=15))
    cells = ScoreCells.from_rows(outcome, score, group, cluster=user, unit="cluster", weight=weight)
    moments = influence_moments(cells, [block])
    covariance, fourth = moments_user_by_user(outcome, score, group, user, weight, block)
    np.testing.assert_allclose(moments.covariance, covariance, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(moments.fourth, fourth, rtol=1e-10)


@pytest.mark.parametrize("kind", ["binary", "real", "weighted"])
def test_units_of_a_group_are_neighbours_when_they_are_many(rng, monkeypatch, kind):
    monkeypatch.setattr("equipoise.stats.scores.rows.CHUNK_UNITS", 2)
    outcome, _, group, user, weight = rows_of(kind, rng)
    rows = UnitRows.clustered(user, "row", group, group, outcome, weight=weight)
    last = np.maximum.reduceat(rows.cell, rows.start[:-1])
    assert np.all(np.diff(last) >= 0)
    assert len(rows.copies) == len(np.unique(user))


def test_rows_are_sorted_by_unit_then_cell_and_keep_outcome_and_weight():
    rows = UnitRows.clustered(
        np.array(["b", "a", "b", "a"]),
        "cluster",
        np.zeros(4, dtype=int),
        np.array([3, 2, 1, 0]),
        np.array([0.5, 1.5, 2.5, 3.5]),
        weight=np.array([1.0, 2.0, 3.0, 4.0]),
    )
    np.testing.assert_array_equal(rows.unit, [0, 0, 1, 1])
    np.testing.assert_array_equal(rows.cell, [0, 2, 1, 3])
    np.testing.assert_array_equal(rows.outcome, [3.5, 1.5, 2.5, 0.5])
    np.testing.assert_array_equal(rows.weight, [2.0, 1.0, 1.5, 0.5])


def test_keeping_rows_drops_units_without_any():
    rows = UnitRows.clustered(
        np.array([7, 7, 8, 9]), "cluster", np.zeros(4, dtype=int), np.arange(4), np.ones(4)
    )
    kept = rows.keep(np.array([True, False, False, True]), np.array([0, 1]))
    np.testing.assert_array_equal(kept.unit, [0, 1])
    np.testing.assert_array_equal(kept.weight, [0.5, 1.0])


def test_sums_do_not_depend_on_the_pieces(rng, monkeypatch):
    code, values = rng.integers(3, size=50), rng.normal(size=50)
    monkeypatch.setattr("equipoise.stats.scores.rows.CHUNK_ROWS", 7)
    expected = [values[code == k].sum() for k in range(3)]
    np.testing.assert_allclose(sum_by(code, values, 3), expected)
    np.testing.assert_array_equal(sum_by(code, None, 3), np.bincount(code))
    assert is_binary(code == 1)
    assert not is_binary(np.append(np.zeros(20), 0.5))


@pytest.mark.parametrize("kind", ["int8", "uint64", "float64", "str"])
def test_clusters_of_every_type_are_the_same_units(kind):
    label = np.array([5, 3, 5, 0, 3]).astype(kind)
    zero, outcome = np.zeros(5, dtype=int), np.array([1.0, 0.0, 0.0, 1.0, 1.0])
    rows = UnitRows.clustered(label, "cluster", zero, np.arange(5), outcome)
    np.testing.assert_array_equal(rows.start, [0, 1, 3, 5])
    np.testing.assert_array_equal(rows.cell, [3, 1, 4, 0, 2])
    np.testing.assert_array_equal(rows.outcome, [1, 0, 1, 1, 0])
    np.testing.assert_array_equal(rows.weight, [1.0, 0.5, 0.5, 0.5, 0.5])


def support_of(*pieces, **options):
    return score_support(ScorePieces(pieces), **options)


def test_few_rows_keep_their_scores(rng):
    score = rng.uniform(size=100)
    support = support_of(score[:30], score[30:], n_bins=8, exact_rows=100)
    np.testing.assert_array_equal(support.values, np.sort(score))
    np.testing.assert_array_equal(support.values[support.position(score)], score)


def test_one_row_more_is_binned(rng):
    score = rng.uniform(size=101)
    support = support_of(score[:30], score[30:], n_bins=8, exact_rows=100)
    assert support.bins is not None
    assert len(support.values) <= 17


@pytest.mark.parametrize("edge", [None, 0.25])
def test_bins_do_not_depend_on_the_parts(rng, edge):
    score = rng.normal(size=5000)
    whole = support_of(score, n_bins=64, edge=edge)
    apart = support_of(score[::3], score[1::3], score[2::3], n_bins=64, edge=edge)
    assert whole.bins == apart.bins
    np.testing.assert_array_equal(whole.place, apart.place)
    np.testing.assert_allclose(whole.values, apart.values, rtol=1e-12)


def test_bins_are_equal_between_the_extreme_quantiles(rng):
    score = np.append(rng.uniform(size=20_000), [-1e9, 1e12])
    bins = support_of(score, n_bins=100).bins
    # The range of the inner rows, to two of 4096 buckets, in a hundred bins.
    assert bins.width == pytest.approx(0.01, rel=2e-3)


def test_scores_that_are_nearly_all_one_value_use_the_whole_range():
    score = np.append(np.full(50_000, 0.3), [0.1, 0.7])
    bins = support_of(score, n_bins=10).bins
    assert bins.width == pytest.approx(0.06)


def test_one_score_is_one_value():
    np.testing.assert_array_equal(support_of(np.full(9, 0.3), n_bins=4).values, [0.3])


@pytest.mark.parametrize("edge", [-1e9, -1.0, 0.3, 0.30000000000000004, 2.0, 1e9])
def test_a_bin_begins_at_the_edge_however_far_it_is(rng, edge):
    score = np.append(rng.uniform(size=3000), [0.3, 0.30000000000000004, edge])
    support = support_of(score, n_bins=32, edge=edge)
    position = support.position(score)
    first = position[score >= edge].min()
    assert position[score < edge].max(initial=-1) < first
    assert support.values[first] >= edge
    assert len(support.place) < 100


def test_numbers_ascend_with_the_score():
    for first, last in [(-4.0, -2.0), (-1.0, 3.0), (2.0, 5.0)]:
        bins = ScoreBins(origin=0.0, width=0.5, first=first, last=last)
        number = bins.number(np.linspace(-9, 9, 200))
        assert (np.diff(number) >= 0).all()
        assert number.min() >= 0
        assert number.max() < bins.size


def test_mean_scores_do_not_depend_on_the_order_of_rows(rng):
    score = rng.normal(size=5000)
    first, second = (support_of(one, n_bins=16) for one in (score, np.sort(score)))
    assert (score.cumsum()[-1] != np.sort(score).cumsum()[-1]) & (len(first.values) > 8)
    np.testing.assert_array_equal(first.values, second.values)


def test_mean_scores_stay_on_their_side_of_the_edge():
    score = np.concatenate([np.linspace(0.0, 1.0, 200), np.full(50, np.nextafter(0.5, 0.0))])
    support = support_of(score, n_bins=8, edge=0.5)
    below = score < 0.5
    assert support.values[support.position(score[below])].max() < 0.5
    assert support.values[support.position(score[~below])].min() >= 0.5
    lone = support_of(np.append(np.arange(20.0), np.nextafter(25.5, 0.0)), n_bins=4, edge=25.5)
    assert lone.values[-1] < 25.5
