import numpy as np
import pytest

from equipoise.exceptions import DataError, GroupTooSmallError, InvalidParameterError
from equipoise.stats.scores.cells import ScoreCells
from equipoise.stats.scores.margins import compare_margins, marginal_outcome_test


@pytest.fixture
def rows(rng):
    n = 4000
    score, group = rng.uniform(size=n), rng.integers(2, size=n)
    y = (rng.uniform(size=n) < 0.3 + 0.4 * score).astype(float)
    return y, score, group


def test_estimate_is_the_intercept_of_a_weighted_parabola_above_the_threshold(rows):
    y, score, group = rows
    test = marginal_outcome_test(y, score, group, 0.5, bandwidth=0.2)
    for g in (0, 1):
        at = (group == g) & (score >= 0.5)
        u = (score[at] - 0.5) / 0.2
        root = np.sqrt(np.exp(-(u**2) / 2))
        x = np.stack([np.ones_like(u), u, u**2], axis=1)
        beta = np.linalg.lstsq(x * root[:, None], y[at] * root, rcond=None)[0]
        np.testing.assert_allclose(test.outcome[g], beta[0])
        # The sandwich of weighted least squares.
        q = np.linalg.inv((x * root[:, None] ** 2).T @ x)
        psi = (x * (root**2 * (y[at] - x @ beta))[:, None]) @ q[0]
        np.testing.assert_allclose(test.outcome_se[g], np.sqrt(np.sum(psi**2)))
        np.testing.assert_allclose(test.mean_above[g], y[at].mean())
        assert test.n_above[g] == at.sum()


def test_outcomes_below_the_threshold_do_not_matter(rows):
    y, score, group = rows
    hidden = np.where(score < 0.5, np.nan, y)
    assert (
        marginal_outcome_test(y, score, group, 0.5).estimate
        == marginal_outcome_test(hidden, score, group, 0.5).estimate
    )


def test_interval_and_p_value_agree(rows):
    y, score, group = rows
    test = marginal_outcome_test(y, score, group, 0.5)
    ends = test.confidence_interval(1 - test.p_value)
    assert np.abs(ends).min() == pytest.approx(0.0, abs=1e-9)


def test_a_user_in_both_groups_is_summed_before_it_is_squared(rng):
    score = np.tile(rng.uniform(0.5, 1, size=800), 2)
    y = np.tile(rng.integers(2, size=800).astype(float), 2)
    group, user = np.repeat([0, 1], 800), np.tile(np.arange(800), 2)
    y[rng.integers(1600, size=80)] = 1.0
    apart = marginal_outcome_test(y, score, group, 0.5)
    together = marginal_outcome_test(y, score, group, 0.5, cluster=user, unit="row")
    assert together.se < 0.7 * apart.se


def test_missing_outcome_above_the_threshold_is_refused(rows):
    y, score, group = rows
    y = np.where(score > 0.9, np.nan, y)
    with pytest.raises(InvalidParameterError, match="`y_true` must be finite"):
        marginal_outcome_test(y, score, group, 0.5)


def test_threshold_outside_the_scores_is_refused(rows):
    with pytest.raises(DataError, match="`threshold` must be below the highest score"):
        marginal_outcome_test(*rows, 1.0)
    with pytest.raises(DataError, match="`threshold` must be below the highest score"):
        marginal_outcome_test(*rows, rows[1].max(), at="limit")
    with pytest.raises(GroupTooSmallError, match=r"0 people near -5 carry information 0\.0"):
        marginal_outcome_test(*rows, -5.0, bandwidth=0.1)


def test_too_few_people_at_the_threshold_is_refused(rows):
    with pytest.raises(
        GroupTooSmallError, match=r"near 0\.99 carry information .* of the 10 needed"
    ):
        marginal_outcome_test(*rows, 0.99, bandwidth=0.01)
    y, score, group = rows
    with pytest.raises(GroupTooSmallError, match=r"people near 0\.99 where 30 are needed"):
        marginal_outcome_test(y * 1.5, score, group, 0.99, bandwidth=0.001)
    users = np.arange(4000)
    with pytest.raises(GroupTooSmallError, match=r"clusters near 0\.99"):
        marginal_outcome_test(y, score, group, 0.99, bandwidth=0.01, cluster=users, unit="row")


def test_a_group_with_little_information_gets_a_wider_window(rows):
    y, score, group = rows
    group = np.where(np.arange(4000) < 300, 1, 0)
    test = marginal_outcome_test(y, score, group, 0.5)
    assert test.bandwidth[1] > test.bandwidth[0]
    assert test.n_local[1] >= 40
    fixed = marginal_outcome_test(y, score, group, 0.5, bandwidth=0.3)
    np.testing.assert_array_equal(fixed.bandwidth, 0.3)


def test_people_at_an_atom_are_compared_without_extrapolation(rows):
    y, score, group = rows
    level = np.ceil(10 * score)
    test = marginal_outcome_test(y, level, group, 5)
    assert test.place == "level"
    for g in (0, 1):
        own = y[(level == 5) & (group == g)]
        assert test.outcome[g] == pytest.approx(own.mean())
        assert test.outcome_se[g] == pytest.approx(np.std(own) / np.sqrt(len(own)))
    assert marginal_outcome_test(y, level, group, 5, at="limit").place == "limit"
    # The highest level is one too; a threshold between two levels is none.
    assert marginal_outcome_test(y, level, group, 10).place == "level"
    assert marginal_outcome_test(y, level, group, 4.5).place == "limit"
    with pytest.raises(DataError, match=r"nobody has the score 4\.5"):
        marginal_outcome_test(y, level, group, 4.5, at="level")


def test_a_heap_among_many_scores_is_a_level_where_it_tells_enough(rows):
    y, score, group = rows
    heaped = np.where(np.abs(score - 0.5) < 0.05, 0.5, score)
    assert marginal_outcome_test(y, heaped, group, 0.5).place == "level"
    few = np.where(np.abs(score - 0.5) < 0.001, 0.5, score)
    assert marginal_outcome_test(y, few, group, 0.5).place == "limit"
    with pytest.raises(GroupTooSmallError, match="carry information"):
        marginal_outcome_test(y, few, group, 0.5, at="level")


def test_a_level_that_one_group_does_not_have_is_not_compared(rows):
    y, score, group = rows
    level = np.ceil(10 * score) + 0.5 * group
    with pytest.raises(GroupTooSmallError, match="0 people near 5"):
        marginal_outcome_test(y, level, group, 5)


def test_pairs_share_one_critical_value(rng):
    score, group = rng.uniform(size=3000), rng.choice(4, size=3000, p=[0.5, 0.3, 0.19, 0.01])
    y = (rng.uniform(size=3000) < 0.4 + 0.25 * (group == 2)).astype(float)
    cells = ScoreCells.from_rows(y, score, group)
    pairs = [(b, a) for a in range(4) for b in range(a + 1, 4)]
    found = compare_margins(cells, 0.5, pairs, confidence_level=0.9)
    tested = [test for test in found if not isinstance(test, str)]
    assert len(tested) == 3
    for test in tested:
        assert (test.low <= 0 <= test.high) == (test.p_value_adjusted > 0.1)
        assert test.p_value_adjusted >= test.p_value
    assert "carry information" in found[2]


def test_each_outcome_the_same_at_the_threshold_is_refused():
    score = np.tile([1.0, 2.0], 200)
    group = np.repeat([0, 1], 200)
    y = np.where(score == 1, group * 1.0, np.arange(400) % 3 == 0)
    with pytest.raises(DataError, match="outcomes must vary near the threshold"):
        marginal_outcome_test(y, score, group, 1)


def test_constant_outcomes_are_refused(rows):
    _, score, group = rows
    with pytest.raises(DataError, match="outcomes must vary above the threshold"):
        marginal_outcome_test(np.full(4000, 2.0), score, group, 0.5)


def test_wrong_options_are_refused(rows):
    y, score, group = rows
    with pytest.raises(InvalidParameterError, match="`bandwidth` must be positive"):
        marginal_outcome_test(y, score, group, 0.5, bandwidth=0)
    with pytest.raises(InvalidParameterError, match="`unit` must be named"):
        marginal_outcome_test(y, score, group, 0.5, cluster=group)


def test_clusters_of_many_rows_that_tell_little_end_the_search():
    y, group = np.tile([0.0, 1.0], 20), np.repeat([0, 1], 20)
    score, cluster = np.linspace(0.51, 0.99, 40), np.tile([0, 0, 1, 1], 10)
    with pytest.raises(GroupTooSmallError, match="2 clusters near"):
        marginal_outcome_test(y, score, group, 0.5, cluster=cluster, unit="row")
