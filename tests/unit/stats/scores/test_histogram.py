"""Rows on common bins."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from equipoise.stats.scores.cells import PartitionedCells, ScoreCells
from equipoise.stats.scores.histogram import N_BARS, score_histogram


def cells(score, group=None, **options):
    score = np.asarray(score, dtype=float)
    group = np.zeros(len(score), dtype=int) if group is None else np.asarray(group)
    return ScoreCells.from_rows(np.arange(len(score)) % 2, score, group, **options)


def test_few_scores_have_a_bin_each():
    found = score_histogram(cells([3, 1, 1, 2, 3, 3], [0, 0, 1, 1, 1, 1]))
    assert_array_equal(found.low, [1, 2, 3])
    assert_array_equal(found.high, found.low)
    assert_array_equal(found.rows, [[1, 0, 1], [1, 1, 2]])


def test_many_scores_share_equal_bins_that_hold_every_row(rng):
    score, group = rng.uniform(size=2000), rng.integers(3, size=2000)
    found = score_histogram(cells(score, group))
    edges = np.append(found.low, found.high[-1])
    assert len(found.low) == N_BARS
    assert_array_equal(found.low[1:], found.high[:-1])
    assert_allclose(np.diff(edges), np.ptp(score) / N_BARS)
    for k in range(3):
        assert_array_equal(found.rows[k], np.histogram(score[group == k], edges)[0])


def test_a_bin_begins_at_the_edge_and_no_row_below_it_is_in_it(rng):
    score = rng.uniform(size=2000)
    found = score_histogram(cells(score), edge=0.5)
    (place,) = np.flatnonzero(found.low == 0.5)
    assert found.rows[0, place:].sum() == np.sum(score >= 0.5)
    assert found.rows.sum() == 2000
    outside = score_histogram(cells(score), edge=2.0)
    assert_array_equal(outside.low, score_histogram(cells(score)).low)


def test_an_outlier_does_not_leave_the_others_one_bin(rng):
    score = np.append(rng.uniform(size=2000), [1e9, -1e9])
    found = score_histogram(cells(score))
    assert (found.rows[0] > 10).sum() > 0.9 * len(found.low)
    assert (found.low[0], found.high[-1]) == (-1e9, 1e9)
    assert found.rows.sum() == 2002


def test_a_score_that_nearly_everybody_has_leaves_the_whole_range(rng):
    score = np.append(np.zeros(100_000), np.linspace(0.0, 1.0, 100))
    found = score_histogram(cells(score))
    assert len(found.low) == N_BARS
    assert (found.low[0], found.high[-1]) == pytest.approx((0.0, 1.0))


@pytest.mark.parametrize("clustered", [False, True])
def test_rows_count_as_often_as_they_are_repeated_whatever_they_weigh(rng, clustered):
    score, count = rng.integers(5, size=300), rng.integers(0, 4, size=300)
    options = {"count": count, "weight": rng.uniform(1, 2, 300)}
    if clustered:
        options |= {"cluster": rng.integers(40, size=300), "unit": "cluster"}
    one = cells(score, **options)
    expected = np.bincount(score, weights=count)
    assert_array_equal(score_histogram(one).rows, [expected])
    assert_array_equal(one.n_rows, [count.sum()])
    assert_array_equal(one.above(3.0).n_rows, [expected[3:].sum()])
    halves = one.merged(np.array([0, 0, 1, 1, 1]), np.array([0.5, 3.0]))
    assert_array_equal(halves.counts, [[expected[:2].sum(), expected[2:].sum()]])


def test_rows_in_parts_are_counted_like_rows_together(rng):
    score, group = rng.uniform(size=400).round(2), rng.integers(2, size=400)
    whole = cells(score, group)
    support = np.unique(score)

    def part(rows):
        from equipoise.stats.scores.rows import ScoreSupport

        exact = ScoreSupport(values=support)
        return cells(score[rows], group[rows], n_groups=2, support=exact)

    parts = [part(slice(0, 150)), part(slice(150, 400))]
    apart = PartitionedCells.of(
        lambda function: [tuple(a.ravel() for a in function(one)) for one in parts],
        part(slice(0, 0)),
    )
    assert_array_equal(score_histogram(apart).rows, score_histogram(whole).rows)
    assert_array_equal(apart.n_rows, whole.n_rows)
