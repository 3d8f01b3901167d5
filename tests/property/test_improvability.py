import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.stats.improvement.frontier import combine_splits
from equipoise.stats.improvement.test import ImprovementQuestion, compare_utilities
from equipoise.stats.improvement.utilities import estimate_utilities

QUESTION = ImprovementQuestion(inference="analytic")


@st.composite
def tables(draw):
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    n = draw(st.integers(60, 200))
    u = rng.integers(0, 5, size=(n, 1, 2)).astype(float)
    return u, np.ones_like(u), np.arange(n) % 2


@given(tables(), st.floats(0, 0.5), st.floats(0, 0.9))
@settings(max_examples=25, deadline=None)
def test_labels_of_the_groups_do_not_matter(table, gain, reduction):
    u, w, group = table
    options = {"question": QUESTION, "delta_accuracy": gain, "delta_fairness": reduction}
    one = compare_utilities(
        estimate_utilities(u, w, group, n_groups=2), directions=[(0, 1)], **options
    )
    two = compare_utilities(
        estimate_utilities(u, w, 1 - group, n_groups=2), directions=[(1, 0)], **options
    )
    np.testing.assert_allclose(one.p_value, two.p_value, atol=1e-12)
    np.testing.assert_allclose(one.accuracy[0].p_value, two.accuracy[1].p_value, atol=1e-12)


@given(tables(), st.floats(0.1, 100))
@settings(max_examples=25, deadline=None)
def test_units_of_the_utility_do_not_matter(table, scale):
    u, w, group = table
    p = [
        compare_utilities(
            estimate_utilities(unit * u, w, group, n_groups=2),
            directions=[(0, 1)],
            question=QUESTION,
            delta_accuracy=0.1,
        ).p_value
        for unit in (1.0, scale)
    ]
    np.testing.assert_allclose(p[0], p[1], atol=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_exchangeable_rule_is_never_larger_than_twice_the_median(p):
    assert combine_splits(p, "exch_median") <= combine_splits(p, "median") + 1e-15 or len(p) == 1


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12), st.floats(0, 1))
def test_rules_are_monotone(p, larger):
    raised = [max(value, larger) for value in p]
    for rule in ("median", "exch_median", "bonferroni"):
        assert combine_splits(p, rule) <= combine_splits(raised, rule)
