"""Where scores are placed, wherever the rows are."""

import numpy as np
import pytest

from equipoise.stats.scores.support import ScoreBins, score_support


def support_of(*pieces, **options):
    return score_support(lambda function: [function(piece) for piece in pieces], **options)


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
