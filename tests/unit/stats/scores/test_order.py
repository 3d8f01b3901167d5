import numpy as np
import pytest

from equipoise.stats.scores.cells import ScoreCells
from equipoise.stats.scores.order import order_test


def cells(y, score, group, **options):
    return ScoreCells.from_rows(
        np.asarray(y, dtype=float), np.asarray(score, dtype=float), np.asarray(group), **options
    )


def example(rates, n=500):
    group = np.repeat([0, 1], n)
    y = np.concatenate([np.arange(n) < round(rate * n) for rate in rates])
    return cells(y, group, group)


def test_the_example_of_the_paper_is_a_violation_without_common_scores():
    test = order_test(example((0.8, 0.6)))
    assert (test.group_low, test.group_high) == (0, 1)
    assert (test.scores_low, test.scores_high) == ((0.0, 0.0), (1.0, 1.0))
    assert test.gap == pytest.approx(0.2)
    # Each level has the pooled isotonic mean .7 under the null.
    assert test.se == pytest.approx(np.sqrt(2 * 0.7 * 0.3 / 500))
    assert test.statistic == pytest.approx(0.2 / test.se)
    assert test.p_value == pytest.approx(1 / 5001)
    assert 0.1 < test.bound < test.gap
    assert test.n_contrasts == 1


def test_the_example_turned_round_shows_nothing():
    test = order_test(example((0.6, 0.8)))
    assert test.p_value == 1.0
    assert test.gap < 0
    assert test.bound == -np.inf


def test_too_little_information_is_not_tested():
    assert order_test(example((0.8, 0.6), n=12)) is None


def test_a_middling_gap_below_zero_has_p_value_one_and_a_bound():
    test = order_test(example((0.69, 0.71)))
    assert test.p_value == 1.0
    assert np.isfinite(test.bound)


def test_an_outcome_that_never_varies_cannot_violate_order():
    group = np.repeat([0, 1], 200)
    test = order_test(cells(np.full(400, 0.5), group, group))
    assert test.p_value == 1.0


def test_real_outcomes_use_the_pooled_residual_variance(rng):
    group = np.repeat([0, 1], 400)
    y = rng.normal(size=800) + 0.5 * (group == 0)
    test = order_test(cells(y, group, group))
    # Both levels are pooled by the isotonic fit; the variance is that around each level's fit.
    fit = y.mean()
    v = [np.mean((y[group == g] - fit) ** 2) / 400 for g in (0, 1)]
    assert test.se == pytest.approx(np.sqrt(sum(v)))
    assert test.p_value < 0.001


def test_outcomes_that_vary_more_in_a_small_group_show_no_order(rng):
    group, score = np.repeat([0, 1], [900, 100]), np.tile(np.arange(10), 100)
    y = np.where(group == 1, 3.0, 1.0) * np.tile([1.0, -1.0, -1.0, 1.0], 250)
    y[(group == 1) & (score < 3)] += 1.0
    low = y[(group == 1) & (score < 3)]
    test = order_test(cells(y, score, group))
    assert test.group_low == 1
    assert test.se > 0.9 * low.std() / np.sqrt(len(low))
    assert test.p_value > 0.05


def test_pairs_limit_what_is_compared(rng):
    score = rng.uniform(size=3000)
    group = rng.integers(3, size=3000)
    y = rng.uniform(size=3000) < 0.2 + 0.2 * score + 0.3 * (group == 2)
    rows = cells(y, score, group)
    assert order_test(rows).group_low == 2
    assert {order_test(rows, pairs=[(0, 1)]).group_low} <= {0, 1}
    assert order_test(rows, pairs=[(0, 1)]).p_value > 0.05


def test_more_than_ten_scores_fall_into_ten_bins(rng):
    score = rng.uniform(size=2000)
    group = rng.integers(2, size=2000)
    test = order_test(cells(rng.uniform(size=2000) < score, score, group))
    assert test.n_contrasts <= 990
    assert test.scores_low[1] < test.scores_high[0]


def test_clusters_widen_the_law(rng):
    unit = np.repeat(np.arange(200), 10)
    group = np.repeat(rng.integers(2, size=200), 10)
    y = np.repeat(rng.uniform(size=200), 10) < 0.6
    score = group.astype(float)
    rows = order_test(cells(y, score, group))
    users = order_test(cells(y, score, group, cluster=unit, unit="row"))
    assert users.se == pytest.approx(rows.se * np.sqrt(10), rel=0.05)
    assert users.gap == pytest.approx(rows.gap)


def test_names_of_groups_do_not_matter(rng):
    score = rng.uniform(size=1500)
    group = rng.integers(3, size=1500)
    y = rng.uniform(size=1500) < 0.3 + 0.3 * score
    first = order_test(cells(y, score, group), rng=1)
    other = order_test(cells(y, score, 2 - group), rng=1)
    assert other.p_value == first.p_value
    assert (other.group_low, other.group_high) == (2 - first.group_low, 2 - first.group_high)


def test_of_very_many_groups_the_largest_are_compared(rng):
    group = np.concatenate([np.repeat(np.arange(20), 80), np.repeat(np.arange(20, 25), 60)])
    score = rng.uniform(size=len(group))
    test = order_test(cells(rng.uniform(size=len(group)) < 0.5, score, group))
    assert max(test.group_low, test.group_high) < 20
