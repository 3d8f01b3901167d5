import numpy as np
import pytest

from equipoise.exceptions import DataError, GroupTooSmallError, InvalidParameterError
from equipoise.stats.scores.margins import marginal_outcome_test


@pytest.fixture
def rows(rng):
    n = 4000
    score, group = rng.uniform(size=n), rng.integers(2, size=n)
    y = (rng.uniform(size=n) < 0.3 + 0.4 * score).astype(float)
    return y, score, group


def test_estimate_is_the_intercept_of_a_weighted_line_above_the_threshold(rows):
    y, score, group = rows
    test = marginal_outcome_test(y, score, group, 0.5, bandwidth=0.2)
    for g in (0, 1):
        at = (group == g) & (score >= 0.5)
        u = (score[at] - 0.5) / 0.2
        root = np.sqrt(np.exp(-(u**2) / 2))
        x = np.stack([np.ones_like(u), u], axis=1)
        beta = np.linalg.lstsq(x * root[:, None], y[at] * root, rcond=None)[0]
        np.testing.assert_allclose(test.outcome[g], beta[0])
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
    with pytest.raises(GroupTooSmallError, match="the groups have 0 and 0"):
        marginal_outcome_test(*rows, -5.0)


def test_too_few_people_at_the_threshold_is_refused(rows):
    with pytest.raises(GroupTooSmallError, match="units within a bandwidth above"):
        marginal_outcome_test(*rows, 0.99, bandwidth=0.01)
    y, score, group = rows
    with pytest.raises(GroupTooSmallError, match="about 30 units"):
        marginal_outcome_test(y * 1.5, score, group, 0.99, bandwidth=0.001)


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
