"""Coverage of the calibration error's interval, and size of differences of quality."""

import numpy as np
import pytest

from calibration import parity_error_designs
from equipoise.stats.scores.group_quality import calibration_error, group_quality, parity_error
from simulate.scores import awkward_clusters
from support.rates import assert_at_least, assert_at_most, assert_rate

pytestmark = pytest.mark.calibration


@pytest.mark.parametrize(
    ("mean", "truth"),
    [
        (lambda s: s, 0.0),
        (lambda s: s + 0.03 * (1 - s), None),
        (lambda s: 0.1 + 0.8 * s, None),
    ],
)
def test_the_interval_of_the_calibration_error_covers(seed, mean, truth):
    rng = np.random.default_rng(seed)
    grid = rng.beta(2, 3, size=200_000)
    error = np.sqrt(np.mean((mean(grid) - grid) ** 2)) if truth is None else truth
    trials, hits = 400, 0
    for _ in range(trials):
        s = rng.beta(2, 3, size=1000)
        low, high = calibration_error(rng.uniform(size=1000) < mean(s), s).confidence_interval()
        # Averages within bins hide a little of an error that changes with the score.
        hits += low - 0.002 <= error <= high + 0.002
    # Conservative near zero by construction: 97% were measured.
    assert_rate(hits, trials, 0.95, above=0.03)


def test_differences_between_groups_and_scores_keep_their_level(seed):
    rng = np.random.default_rng(seed)
    trials, wrong = 400, 0
    for k in range(trials):
        s = rng.beta(2, 3, size=800)
        other = np.clip(s + rng.choice([-0.1, 0.1], size=800), 0, 1)
        first, second = (s, other) if k % 2 else (other, s)
        mixed = rng.uniform(size=800) < 0.5
        y = (rng.uniform(size=800) < s).astype(float)
        found = group_quality(
            y,
            np.where(mixed, first, second),
            rng.integers(2, size=800),
            baseline=np.where(mixed, second, first),
            metrics=("auc", "brier"),
            pairs=((1, 0),),
            rng=k,
        )
        wrong += any(d.p_value_adjusted <= 0.05 for d in found.differences)
    assert_rate(wrong, trials, 0.05)


@pytest.mark.parametrize(
    ("gap", "mean"),
    [(0.0, lambda s: s), (0.06, lambda s: 0.1 + 0.7 * s), (0.0, lambda s: 0.05 + 0.0 * s)],
)
def test_the_interval_of_the_parity_error_covers(rng, gap, mean):
    """Groups with shifted scores; outcomes that follow the score, and rare ones that do not."""
    trials, hits, n = 250, 0, 2_000
    for _ in range(trials):
        member = rng.random(n) < 0.4
        s = np.where(member, rng.beta(2, 4, n), rng.beta(4, 2, n))
        low, high = parity_error(
            rng.random(n) < mean(s) + gap * member, s, member
        ).confidence_interval()
        hits += low <= gap <= high
    # Conservative near zero, like the calibration error: 97% and 98% were measured.
    assert_rate(hits, trials, 0.95, above=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("design", parity_error_designs.DESIGNS)
def test_the_interval_of_the_parity_error_covers_in_designs_held_out(rng, design):
    for gap in parity_error_designs.GAPS:
        covered, _, told = parity_error_designs.simulate(
            rng, parity_error_designs.DESIGNS[design], gap, 300
        )
        assert told > 0.9
        # Never below the level; above it near zero, like the calibration error.
        assert_at_least(round(300 * covered), 300, 0.95)


@pytest.mark.parametrize(
    ("n_clusters", "kind"),
    [
        (8, {}),
        (12, {}),
        (40, {"spanning": True}),
        (60, {"giant": True}),
        (40, {"giant": True, "spanning": True}),
        (60, {"informative": True}),
    ],
)
def test_differences_of_awkward_clusters_keep_their_level(rng, n_clusters, kind):
    trials, hits = 600, 0
    for _ in range(trials):
        y, score, group, cluster = awkward_clusters(rng, n_clusters, **kind)
        found = group_quality(
            y, score, group, metrics=("auc", "brier"), pairs=((1, 0),), cluster=cluster
        )
        hits += min((d.p_value_adjusted for d in found.differences), default=1.0) <= 0.05
    # Measured .025 to .065 with 1,500 tables.
    assert_at_most(hits, trials, 0.05)
