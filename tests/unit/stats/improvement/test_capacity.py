"""A top share of a score, ties included."""

import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.capacity import (
    cut_top_share,
    match_share,
    select_top,
    top_share_cutoff,
)


def test_ties_at_the_cutoff_share_the_room():
    found = cut_top_share([3.0, 2.0, 2.0, 2.0, 1.0], 0.4)
    np.testing.assert_allclose(found.chance, [1.0, 1 / 3, 1 / 3, 1 / 3, 0.0])
    assert (found.cutoff, found.tied) == (2.0, 3)
    assert found.share() == pytest.approx(0.4, abs=1e-12)


def test_a_capacity_that_is_no_whole_number_is_met_by_a_fraction():
    found = cut_top_share(np.arange(10.0), 0.25)
    assert found.chance[:7].sum() == 0.0
    assert found.chance[7:].tolist() == pytest.approx([0.5, 1.0, 1.0])
    assert found.share() == pytest.approx(0.25, abs=1e-12)


def test_a_block_that_fills_the_room_is_selected_whole():
    found = cut_top_share([2.0, 2.0, 2.0] + [1.0] * 7, 0.3)
    assert found.at_cutoff == 1.0
    assert found.chance.tolist() == [1.0] * 3 + [0.0] * 7


def test_all_equal_scores_draw_lots():
    found = cut_top_share(np.ones(40), 0.3)
    np.testing.assert_allclose(found.chance, 0.3)
    assert found.near.all()


def test_scores_that_differ_in_the_last_bit_are_equal():
    third = 0.1 + 0.2
    found = cut_top_share([third, 0.3, 0.3, 0.1], 0.5)
    np.testing.assert_allclose(found.chance, [2 / 3, 2 / 3, 2 / 3, 0.0])


def test_weights_and_counts_are_repeated_rows(rng):
    score = rng.integers(5, size=60).astype(float)
    copies = rng.integers(1, 4, size=60)
    whole = cut_top_share(np.repeat(score, copies), 0.37)
    for option in ({"weight": copies}, {"count": copies}):
        found = cut_top_share(score, 0.37, **option)
        np.testing.assert_allclose(np.repeat(found.chance, copies), whole.chance, rtol=1e-9)
        assert found.share(**option) == pytest.approx(0.37, abs=1e-12)


def test_near_are_the_block_or_the_nearest_ranks():
    block = cut_top_share(np.repeat([3.0, 2.0, 1.0], [30, 50, 20]), 0.5)
    assert block.near.sum() == 50
    ranks = cut_top_share(np.arange(5000.0), 0.2)
    near = np.flatnonzero(ranks.near)
    assert (near.min(), near.max()) == (3950, 4050)
    few = cut_top_share(np.arange(30.0), 0.1)
    assert few.near.sum() == 13


def test_a_capacity_below_one_row_is_refused():
    with pytest.raises(InvalidParameterError, match="selects nobody among 5 rows"):
        cut_top_share(np.arange(5.0), 0.1)
    with pytest.raises(InvalidParameterError, match="`capacity` must be in"):
        cut_top_share(np.arange(5.0), 1.0)
    with pytest.raises(InvalidParameterError, match="score"):
        cut_top_share([np.nan, 1.0], 0.5)


@pytest.mark.parametrize(
    ("capacity", "expected"), [(0.5, [0.5 / 0.75] * 3 + [0.0]), (0.8, [1.0] * 3 + [0.2])]
)
def test_given_decisions_are_thinned_or_filled_by_lot(capacity, expected):
    found = match_share([1, 1, 1, 0], capacity)
    np.testing.assert_allclose(found.chance, expected)
    assert found.share() == pytest.approx(capacity, abs=1e-12)
    assert found.near.tolist() == (
        [True] * 3 + [False] if capacity < 0.75 else [False] * 3 + [True]
    )


def test_top_share_cutoff_never_exceeds_the_capacity():
    assert top_share_cutoff([1, 2, 3, 4], 0.5) == 3.0
    assert top_share_cutoff([1, 2, 2, 2], 0.5) == 2.0
    with pytest.raises(InvalidParameterError, match="at least one score"):
        top_share_cutoff([], 0.5)


def test_select_top_decides_by_row_order_or_by_a_given_tie():
    assert select_top([1.0, 1.0, 0.0, 0.0], 0.25).tolist() == [True, False, False, False]
    assert select_top([1.0, 1.0, 0.0, 0.0], 0.25, tie=[1, 0, 0, 0]).tolist() == [
        False,
        True,
        False,
        False,
    ]
    assert select_top([1.0, 2.0, 3.0], 0.5, weight=[1, 1, 1]).tolist() == [False, False, True]
    with pytest.raises(InvalidParameterError, match="selects nobody"):
        select_top([1.0, 2.0], 0.3)
