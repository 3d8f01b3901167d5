import numpy as np
import pytest

from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.scores.cells import (
    LinearBlock,
    ScoreCells,
    influence_moments,
    weighted_quantile,
)


def test_clusters_weigh_alike_at_the_level_of_clusters():
    cells = ScoreCells.from_rows(
        [1, 0, 1], [0.1, 0.2, 0.1], [0, 0, 0], cluster=["a", "a", "b"], unit="cluster"
    )
    mass, total = cells.sums()
    np.testing.assert_allclose(mass, [[1.5, 0.5]])
    np.testing.assert_allclose(total, [[1.5, 0.0]])


def test_rows_of_a_cluster_are_counted_over_all_groups():
    cells = ScoreCells.from_rows([1, 1], [0.1, 0.1], [0, 1], cluster=[7, 7], unit="cluster")
    np.testing.assert_allclose(cells.sums()[0], [[0.5], [0.5]])
    np.testing.assert_allclose(cells.select([1]).sums()[0], [[0.5]])


def test_units_within_counts_a_user_once_in_each_window():
    cells = ScoreCells.from_rows(
        [0, 0, 0, 0, 0],
        [0.1, 0.3, 0.2, 0.9, 0.2],
        [0, 0, 0, 0, 1],
        cluster=[0, 0, 1, 1, 1],
        unit="row",
    )
    windows = np.array([0.0, 0.15, 0.5]), np.array([0.35, 0.25, 1.0])
    np.testing.assert_array_equal(cells.units_within(*windows), [[2, 1, 1], [1, 1, 0]])
    np.testing.assert_array_equal(cells.units_in_group(), [2, 1])


def test_counts_are_repeated_rows(rng):
    y, s, g = rng.integers(2, size=30), rng.integers(5, size=30) / 4, rng.integers(2, size=30)
    count = rng.integers(1, 4, size=30)
    counted = ScoreCells.from_rows(y, s, g, count=count)
    repeated = ScoreCells.from_rows(*(np.repeat(a, count) for a in (y, s, g)))
    block = LinearBlock(rng.normal(size=(10, 2)), np.full(10, 0.3))
    for a, b in zip(
        influence_moments(counted, [block]), influence_moments(repeated, [block]), strict=True
    ):
        np.testing.assert_allclose(a, b)
    np.testing.assert_array_equal(counted.n_rows, repeated.n_rows)
    assert counted.n_units == repeated.n_units == count.sum()


def test_counts_within_clusters_are_repeated_rows(rng):
    y, s, u = rng.integers(2, size=30), rng.integers(5, size=30) / 4, rng.integers(9, size=30)
    g, count = np.zeros(30, dtype=int), rng.integers(1, 4, size=30)
    counted = ScoreCells.from_rows(y, s, g, cluster=u, unit="cluster", count=count)
    many = [np.repeat(a, count) for a in (y, s, g, u)]
    repeated = ScoreCells.from_rows(*many[:3], cluster=many[3], unit="cluster")
    np.testing.assert_allclose(counted.sums(), repeated.sums())


def test_a_chunk_of_units_changes_nothing(rng, monkeypatch):
    y, s, u = rng.normal(size=60), rng.uniform(size=60), rng.integers(25, size=60)
    cells = ScoreCells.from_rows(y, s, np.zeros(60, dtype=int), cluster=u)
    block = LinearBlock(rng.normal(size=(60, 3)), rng.normal(size=(60, 3)))
    whole = influence_moments(cells, [block])
    monkeypatch.setattr("equipoise.stats.scores.unit_rows.CHUNK_UNITS", 7)
    parts = influence_moments(cells, [block])
    np.testing.assert_allclose(whole.covariance, parts.covariance)
    np.testing.assert_allclose(whole.fourth, parts.fourth)


def test_above_keeps_scores_from_the_threshold_on_even_in_bins(rng):
    score = np.concatenate([rng.uniform(size=500), [0.3, 0.3]])
    y, g = np.ones(502), np.zeros(502, dtype=int)
    for n_bins in (None, 37):
        cells = ScoreCells.from_rows(y, score, g, n_bins=n_bins, edge=0.3)
        above = cells.above(0.3)
        assert above.n_rows[0] == np.sum(score >= 0.3)
        assert above.support[0] >= 0.3
        assert above.n_units == np.sum(score >= 0.3)


def test_bins_keep_the_mean_score(rng):
    score = rng.normal(size=400)
    cells = ScoreCells.from_rows(score, score, np.zeros(400, dtype=int), n_bins=16)
    np.testing.assert_allclose(cells.sums()[0][0] @ cells.support, score.sum())


def test_quantile_is_the_first_value_that_reaches_the_level():
    values, mass = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 1.0])
    levels = np.array([0.0, 0.25, 0.26, 0.75, 1.0])
    np.testing.assert_array_equal(weighted_quantile(values, mass, levels), [1, 1, 2, 2, 3])


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(InvalidParameterError, match="must have one length"):
        ScoreCells.from_rows([1, 0], [0.1, 0.2], [0, 0, 1])


def test_negative_weights_are_refused():
    with pytest.raises(DataError, match="must not be negative"):
        ScoreCells.from_rows([1, 0], [0.1, 0.2], [0, 0], weight=[1, -1])


def test_a_constant_score_is_one_cell_whatever_the_bins():
    cells = ScoreCells.from_rows([1, 0], [0.5, 0.5], [0, 0], n_bins=8)
    np.testing.assert_array_equal(cells.support, [0.5])


def test_outliers_do_not_widen_the_bins(rng):
    score = np.concatenate([rng.uniform(size=20_000), [-1e6, 1e6]])
    cells = ScoreCells.from_rows(score, score, np.zeros(20_002, dtype=int), n_bins=256)
    inside = cells.support[(cells.support > 0.01) & (cells.support < 0.99)]
    assert len(inside) > 240
    assert cells.support[0] < -1e5
    assert cells.support[-1] > 1e5


def test_rows_that_stand_for_nothing_are_left_out():
    y, s, u = [1.0, 0.0, 1.0], [0.1, 0.2, 0.1], [0, 1, 1]
    with_zero = ScoreCells.from_rows(y, s, [0, 0, 0], cluster=u, unit="cluster", count=[1, 0, 2])
    without = ScoreCells.from_rows(
        [1.0, 1.0], [0.1, 0.1], [0, 0], cluster=[0, 1], unit="cluster", count=[1, 2]
    )
    np.testing.assert_allclose(with_zero.mass[:, :1], without.mass)
    assert with_zero.n_units == without.n_units
    assert ScoreCells.from_rows([1.5, 0.0], s[:2], [0, 0], weight=[1, 2], count=[1, 0]).n_units == 1
