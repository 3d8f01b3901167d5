import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.splits import central_p_value, combine_splits

P = [0.30, 0.01, 0.04, 0.02, 0.20]


def test_rules_by_hand():
    assert combine_splits(P, "median") == pytest.approx(0.08)
    assert combine_splits(P, "bonferroni") == pytest.approx(0.05)
    # Lower medians of the first k: .30, .01, .04, .02, .04.
    assert combine_splits(P, "exch_median") == pytest.approx(0.02)


def test_even_number_of_splits_takes_the_lower_median():
    assert combine_splits([0.01, 0.02, 0.03, 0.9], "median") == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("rule", "central"), [("median", 0.02), ("bonferroni", 0.01), ("exch_median", 0.01)]
)
def test_the_central_p_value_is_what_the_rule_multiplies(rule, central):
    p = [0.03, 0.01, 0.9, 0.02]
    assert central_p_value(p, rule) == pytest.approx(central)
    assert combine_splits(p, rule) >= central_p_value(p, rule)


def test_only_the_exchangeable_rule_depends_on_the_order():
    back = P[::-1]
    assert combine_splits(P, "median") == combine_splits(back, "median")
    assert combine_splits(P, "bonferroni") == combine_splits(back, "bonferroni")
    assert combine_splits(P, "exch_median") != combine_splits(
        [0.3, 0.2, 0.04, 0.02, 0.01], "exch_median"
    )


@pytest.mark.parametrize("rule", ["median", "exch_median", "bonferroni"])
def test_one_split_keeps_its_p_value_and_the_result_is_at_most_one(rule):
    assert combine_splits([0.7], rule) == pytest.approx(0.7)
    assert combine_splits([0.9, 0.8, 0.95], rule) == 1.0


def test_every_column_is_combined_on_its_own():
    table = np.array([P, [0.5] * 5]).T
    np.testing.assert_allclose(combine_splits(table), [0.08, 1.0])


def test_invalid_rules_are_not_offered():
    with pytest.raises(InvalidParameterError, match="'median', 'exch_median', 'bonferroni'"):
        combine_splits(P, "min")


@pytest.mark.parametrize("bad", [[], [0.1, 1.2], 0.3])
def test_p_values_must_be_a_list_of_probabilities(bad):
    with pytest.raises(InvalidParameterError, match="one p-value in"):
        combine_splits(bad)
