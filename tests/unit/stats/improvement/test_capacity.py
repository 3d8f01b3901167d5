import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.capacity import select_top, selected_copies, top_share_cutoff


def test_cutoff_never_exceeds_the_capacity(rng):
    score = rng.integers(40, size=500).astype(float)
    for capacity in (0.03, 0.1, 0.5, 0.97):
        cutoff = top_share_cutoff(score, capacity)
        assert np.mean(score >= cutoff) <= capacity
        below = score[score < cutoff].max()
        assert np.mean(score >= below) > capacity


def test_cutoff_of_whole_shares_is_exact():
    assert top_share_cutoff(np.arange(100), 0.29) == 71.0
    assert select_top(np.arange(100), 0.29).sum() == 29


def test_ties_at_the_top_are_kept_together():
    assert top_share_cutoff([1, 1, 1, 0], 0.5) == 1.0


def test_weights_are_repeated_rows(rng):
    score, weight = rng.normal(size=60), rng.integers(1, 5, size=60)
    assert top_share_cutoff(score, 0.2, weight=weight) == top_share_cutoff(
        np.repeat(score, weight), 0.2
    )


def test_ties_are_broken_by_the_key_not_by_the_order():
    score, tie = np.array([5.0, 5.0, 5.0, 1.0]), np.array([9, 2, 5, 0])
    assert select_top(score, 0.5, tie=tie).tolist() == [False, True, True, False]
    assert select_top(score[::-1], 0.5, tie=tie[::-1]).tolist() == [False, True, True, False]


def test_a_capacity_that_selects_nobody_is_refused():
    with pytest.raises(InvalidParameterError, match="selects nobody among 10 rows"):
        select_top(np.arange(10), 0.05)
    with pytest.raises(InvalidParameterError, match="at least one score"):
        top_share_cutoff([], 0.5)


def test_copies_are_selected_as_the_rows_they_stand_for(rng):
    score, count = rng.integers(8, size=30), rng.integers(1, 6, size=30)
    weight = rng.integers(1, 4, size=30).astype(float)
    rows = np.repeat(np.arange(30), count)
    for share in (0.1, 0.37, 0.5, 0.9):
        selected = select_top(score[rows], share, weight=weight[rows])
        expected = np.bincount(rows, weights=selected, minlength=30)
        copies = selected_copies(score, share, count, weight=weight)
        np.testing.assert_array_equal(copies, expected)
