"""Rows in parts give the answers of the same rows together."""

import pickle

import numpy as np
import pytest

from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.scores.cells import (
    LinearBlock,
    PartitionedCells,
    Recipe,
    ScoreCells,
    influence_moments,
    weighted_quantile,
)
from equipoise.stats.scores.kernel import rule_of_thumb
from equipoise.stats.scores.margins import compare_margins
from equipoise.stats.scores.parity import compare_groups, compare_with_score
from equipoise.stats.scores.rows import ScorePieces, score_support


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
    monkeypatch.setattr("equipoise.stats.scores.rows.CHUNK_UNITS", 7)
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


def rows(rng, n=1500, users=400):
    group, score = rng.integers(3, size=n), rng.uniform(size=n).round(3)
    return {
        "y_true": (rng.uniform(size=n) < score).astype(float),
        "y_score": score,
        "group": group,
        "cluster": rng.integers(users, size=n),
        "weight": rng.uniform(0.5, 1.5, size=n),
    }


def together_and_apart(columns, n_bins=None, edge=None, **options):
    """The same rows as one object, and in two parts that hold whole clusters."""
    whole = ScoreCells.from_rows(**columns, n_groups=3, n_bins=n_bins, edge=edge, **options)
    unit = columns.get("cluster", np.arange(len(columns["y_true"])))
    pieces = [{k: v[unit % 2 == part] for k, v in columns.items()} for part in (0, 1)]
    support = score_support(
        ScorePieces([piece["y_score"] for piece in pieces]), n_bins=n_bins, edge=edge
    )

    def arranged(piece):
        return ScoreCells.from_rows(**piece, n_groups=3, support=support, **options)

    def parts(function):
        # Numbers travel flat, and the function as bytes.
        sent = pickle.loads(pickle.dumps(function))
        return [tuple(np.ravel(a).astype(float) for a in sent(arranged(p))) for p in pieces]

    none = arranged({k: v[:0] for k, v in columns.items() if k != "weight"})
    return whole, PartitionedCells.of(parts, none)


def same(ours, theirs):
    """Compare results field by field."""
    if hasattr(ours, "__slots__"):
        for name in ours.__slots__:
            same(getattr(ours, name), getattr(theirs, name))
    elif isinstance(ours, tuple):
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    elif isinstance(ours, str):
        assert ours == theirs
    elif ours is not None:
        # Quantiles of t laws are found by iteration, to about eight digits.
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-8)
    else:
        assert theirs is None


@pytest.fixture(params=["users", "rows of users", "rows", "bins of users"])
def pair(request, rng):
    columns = rows(rng)
    if request.param == "rows":
        del columns["cluster"], columns["weight"]
        return together_and_apart(columns)
    return together_and_apart(
        columns,
        unit="row" if request.param == "rows of users" else "cluster",
        n_bins=64 if request.param == "bins of users" else None,
        edge=0.4,
    )


def test_parity_of_two_groups_is_the_same(pair):
    whole, apart = (cells.select([2, 0]) for cells in pair)
    for paper in (False, True):
        same(compare_groups(whole, rng=1, paper=paper), compare_groups(apart, rng=1, paper=paper))


def test_calibration_of_a_group_is_the_same(pair):
    whole, apart = (cells.select([1]) for cells in pair)
    same(compare_with_score(whole, rng=1), compare_with_score(apart, rng=1))


def test_outcomes_at_a_threshold_are_the_same(pair):
    pairs = [(1, 0), (2, 0), (2, 1)]
    whole, apart = (compare_margins(cells, 0.4, pairs, bandwidth=0.3) for cells in pair)
    for one, other in zip(whole, apart, strict=True):
        same(one, other)


def test_counts_and_ranges_are_the_same(pair):
    whole, apart = pair
    assert whole.n_units == apart.n_units
    assert whole.outcome_range == apart.outcome_range
    assert whole.binary == apart.binary
    assert rule_of_thumb(whole) == pytest.approx(rule_of_thumb(apart), rel=1e-12)
    np.testing.assert_array_equal(whole.n_rows, apart.n_rows)
    np.testing.assert_array_equal(whole.units_in_group(), apart.units_in_group())


def test_outcomes_that_are_not_labels_are_noticed_in_any_part(rng):
    columns = rows(rng)
    columns["y_true"][7] = 0.5
    whole, apart = together_and_apart(columns)
    assert not whole.binary
    assert not apart.binary


def test_all_groups_in_order_are_the_cells_themselves(rng):
    _, apart = together_and_apart(rows(rng))
    assert apart.select([0, 1, 2]) is apart


def test_a_recipe_travels_without_what_it_makes():
    recipe = Recipe(np.arange, 1_000_000)
    assert len(recipe.made) == 1_000_000
    sent = pickle.dumps(recipe)
    assert len(sent) < 1000
    assert len(pickle.loads(sent).made) == 1_000_000
