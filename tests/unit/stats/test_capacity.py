import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.capacity import cutoff_influence, select_top, top_share_cutoff


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


def test_estimated_cutoff_influence_gives_the_sampling_variance(rng):
    """The mean outcome of the top 20% when outcome depends on the score, y = 3 s + noise."""
    reps, n = 600, 2000
    score = rng.normal(size=(reps, n))
    y = 3 * score + rng.normal(size=(reps, n))
    estimates, fixed, full = [], [], []
    group = np.zeros(n, dtype=int)
    for s, outcome in zip(score, y, strict=True):
        chosen = select_top(s, 0.2)
        mean = outcome[chosen].mean()
        estimates.append(mean)
        psi = chosen * (outcome - mean) / 0.2
        extra = cutoff_influence(s, outcome, np.ones(n), group, capacity=0.2, n_groups=1)[:, 0]
        fixed.append(np.sum(psi**2) / n**2)
        full.append(np.sum((psi + extra) ** 2) / n**2)
    truth = np.var(estimates)
    # The variance of 600 estimates has a relative standard error of 6%.
    assert np.mean(full) == pytest.approx(truth, rel=0.2)
    assert abs(np.mean(full) - truth) < abs(np.mean(fixed) - truth)


def test_a_group_nobody_selects_has_no_cutoff_influence():
    score = np.arange(100.0)
    group = (score < 50).astype(int)
    influence = cutoff_influence(score, score, np.ones(100), group, capacity=0.1, n_groups=2)
    assert not influence[:, 1].any()
    assert influence[:, 0].any()
