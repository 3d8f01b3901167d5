import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.capacity import (
    ScoredDecisions,
    select_top,
    selected_copies,
    top_share_cutoff,
    with_estimated_cutoffs,
)
from equipoise.stats.improvement.utilities import estimate_utilities


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


def both_covariances(score, y, group, **options):
    selected = np.column_stack([select_top(s, 0.2) for s in score.T]).astype(float)
    u, w = (y[:, None] * selected)[:, None], selected[:, None]
    fixed = estimate_utilities(u, w, group, n_groups=group.max() + 1, **options)
    rules = ScoredDecisions(
        numerator=u,
        denominator=w,
        change_numerator=y[:, None],
        change_denominator=np.ones((len(y), 1)),
        score=score,
        selected=selected,
        group=group,
        weight=options.get("weight"),
        cluster=options.get("cluster"),
    )
    return fixed, with_estimated_cutoffs(fixed, rules)


def test_variance_of_a_top_share_counts_the_cutoff(rng):
    """Mean outcome of the top 20% by one score when y = 3 s + noise, over 600 samples."""
    values, fixed, full = [], [], []
    for _ in range(600):
        score = rng.normal(size=(2000, 2))
        y = 3 * score[:, 0] + rng.normal(size=2000)
        one, two = both_covariances(score, y, np.zeros(2000, dtype=int))
        values.append(one.value[0, :, 0])
        fixed.append(np.diag(one.covariance))
        full.append(np.diag(two.covariance))
    truth = np.var(values, axis=0)
    # A variance from 600 samples has a relative standard error of 6%.
    np.testing.assert_allclose(np.mean(full, axis=0), truth, rtol=0.2)
    assert np.mean(fixed, axis=0)[0] < 0.7 * truth[0]


def test_the_term_cancels_between_two_rules_with_the_same_score(rng):
    score = np.repeat(rng.normal(size=(500, 1)), 2, axis=1)
    _, full = both_covariances(score, score[:, 0] * 2, np.arange(500) % 2)
    contrast = np.array([-1.0, 0.0, 1.0, 0.0])
    assert contrast @ full.covariance @ contrast == pytest.approx(0, abs=1e-20)
    assert full.draws is None


def test_clusters_and_weights_are_kept(rng):
    score, y = rng.normal(size=(300, 2)), np.zeros(300)
    group, cluster = np.arange(300) % 2, np.arange(300) // 3
    y = rng.normal(size=300) + 5
    weight = rng.gamma(2.0, size=300)
    fixed, full = both_covariances(score, y, group, cluster=cluster, weight=weight)
    # An outcome unrelated to the score leaves the cut-off without influence but for noise.
    np.testing.assert_allclose(np.diag(full.covariance), np.diag(fixed.covariance), rtol=0.5)
    assert not np.allclose(full.covariance, fixed.covariance)
