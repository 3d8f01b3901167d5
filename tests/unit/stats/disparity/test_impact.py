import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.disparity.impact import (
    boschloo_p_value,
    companions,
    eligible_categories,
    fisher_p_value,
    impact_ratio_test,
    observed_below,
    odds_ratio_interval,
    readings,
)


def test_the_guidelines_own_example_turns_with_one_person():
    # Questions and Answers 21: 16 of 80 and 3 of 20.
    beside = companions(np.array([16, 3]), np.array([80, 20]), 0)
    assert beside.flip_moved.tolist() == [0, 1]
    assert beside.flip_added.tolist() == [0, 0]
    assert_allclose(beside.shortfall, [0.0, 20 * 19 / 100 - 3])
    assert_allclose(beside.shortfall_parity, [0.0, 1.0])
    assert_allclose(beside.odds_ratio[1], (3 * 64) / (17 * 16))


def test_added_selections_until_two_standard_deviations():
    beside = companions(np.array([10, 30]), np.array([100, 100]), 1)
    assert abs(beside.z[0]) > 1.96
    m = beside.flip_added[0]
    closer = companions(np.array([10 + m, 30]), np.array([100, 100]), 1).z[0]
    short = companions(np.array([9 + m, 30]), np.array([100, 100]), 1).z[0]
    assert abs(closer) < 1.96 <= abs(short)


def test_a_table_of_more_than_a_million_outcomes_has_no_unconditional_test():
    beside = companions(np.array([500, 700]), np.array([1001, 1000]), 1)
    assert np.isnan(beside.boschloo[0])
    assert beside.fisher[0] < 0.001


def test_boschloo_is_smaller_than_fisher_and_never_above_one():
    assert boschloo_p_value(0, 10, 0, 10) == 1.0
    assert boschloo_p_value(1, 10, 8, 10) < fisher_p_value(1, 10, 8, 10)


def test_mid_p_counts_tables_as_likely_as_the_observed_by_half():
    # Four of four against none of four: the two extreme tables have a chance of 1/70 each.
    assert_allclose(fisher_p_value(4, 4, 0, 4), 2 / 70)
    assert_allclose(fisher_p_value(4, 4, 0, 4, mid_p=True), 1 / 70)


def test_the_interval_of_the_odds_ratio_agrees_with_the_pooled_z():
    for x1 in range(11):
        z = companions(np.array([x1, 12]), np.array([40, 40]), 1).z[0]
        low, high = odds_ratio_interval(x1, 40, 12, 40)
        assert (low <= 1.0 <= high) == (abs(z) <= 1.959963984540054)


def test_the_odds_ratio_of_a_table_with_one_outcome_is_undefined():
    assert np.isnan(odds_ratio_interval(0, 5, 0, 5)).all()
    assert odds_ratio_interval(5, 5, 0, 5)[1] == np.inf


def test_exactly_four_fifths_is_not_below():
    assert observed_below(np.array([48, 60, 47]), np.array([100, 100, 100]), 1).tolist() == [
        False,
        False,
        True,
    ]


def test_two_per_cent_is_enough():
    assert eligible_categories(np.array([2, 98])).tolist() == [True, True]
    assert eligible_categories(np.array([19, 981])).tolist() == [False, True]


def test_every_reading():
    low = np.array([0.5, 0.85, 0.6, 0.9, 0.6])
    high = np.array([0.7, 0.95, 0.95, 1.0, 1.0])
    known = ("beyond", "apart, within", "apart", "within", "not settled")
    assert readings(low, high) == known
    # The same on the other side of no disparity, and for differences.
    assert readings(1 / high, 1 / low, 1.25) == known
    assert readings(low - 1, high - 1, -0.2, natural=0.0) == known
    assert readings(1 - high, 1 - low, 0.2, natural=0.0) == known


def rows(*categories):
    group = np.concatenate([[name] * n for name, n, _ in categories])
    selected = np.concatenate([np.arange(n) < x for _, n, x in categories])
    return selected, group


def test_unknown_rows_and_small_categories_are_counted_and_not_compared():
    selected, group = rows(("a", 500, 150), ("b", 480, 160), ("c", 15, 1), ("?", 7, 7))
    group = group.astype(object)
    group[:3] = None
    test = impact_ratio_test(selected, group, unknown=["?"])
    assert test.unknown == 10
    assert test.categories == ("a", "b", "c")
    assert test.compared.tolist() == [True, True, False]
    assert np.isnan(test.estimate[2])
    assert_allclose(test.estimate[:2], [(147 / 497) / (160 / 480), 1.0])
    text = str(test)
    assert "too small to be compared" in text
    assert "10 rows of unknown category" in text
    assert test.companions is not None


def test_rare_events_get_a_permutation_test():
    selected, group = rows(("a", 100, 2), ("b", 50, 3), ("c", 50, 1))
    assert 0.0 < impact_ratio_test(selected, group).permutation_p_value <= 1.0
    selected, group = rows(("a", 100, 40), ("b", 50, 20), ("c", 50, 25))
    assert impact_ratio_test(selected, group).permutation_p_value is None


def test_scores_weights_and_clusters_have_no_companions(rng):
    selected, group = rows(("a", 60, 30), ("b", 60, 20))
    for options in ({"weight": np.ones(120)}, {"cluster": np.arange(120) // 4}):
        test = impact_ratio_test(selected, group, **options)
        assert test.companions is None
        assert 0.0 < test.p_value < 0.5
    assert impact_ratio_test(rng.exponential(size=120), group).companions is None


def test_too_few_categories_units_or_rows_are_refused():
    selected, group = rows(("a", 60, 30), ("b", 60, 20))
    with pytest.raises(GroupTooSmallError, match="two categories of at least 2%"):
        impact_ratio_test(selected[:60], group[:60])
    with pytest.raises(GroupTooSmallError, match="Category 'a' has 3 units"):
        impact_ratio_test(selected, group, cluster=np.arange(120) // 20)
    with pytest.raises(InvalidParameterError, match="one entry for each row"):
        impact_ratio_test(selected, group[:5])
