"""Size and power of the test of many segments, where outcomes are rare and segments small."""

import numpy as np
import pytest

from calibration import segment_designs
from equipoise.stats.scores.multicalibration import ResidualCells, multicalibration_test
from support.rates import assert_at_least, assert_at_most, assert_rate

pytestmark = pytest.mark.calibration

BINS = 50
SEGMENTS = np.concatenate(
    [np.eye(6), np.kron(np.eye(2), np.ones(3)), np.kron(np.ones(2), np.eye(3))]
)
"""Two columns with two and three values: every combination, then every value."""


def cells(rng, n, shape, shift=0.0, *, parity=False):
    pattern, s = rng.integers(6, size=n), rng.beta(*shape, size=n)
    y = (rng.random(n) < s + shift * (pattern == 0)).astype(float)
    place = pattern * BINS + np.minimum((s * BINS).astype(int), BINS - 1)

    def sums(values):
        return np.bincount(place, values, minlength=6 * BINS).reshape(6, BINS)

    v, one = s * (1 - s), np.ones(n)
    if parity:
        return ResidualCells.around_mean(sums(y), sums(one), sums(one), sums(one))
    return ResidualCells.around_score(
        sums(y - s), sums(one), sums(v), sums(v), sums(v * (1 - 2 * s))
    )


SLOW = pytest.mark.slow


@SLOW
@pytest.mark.parametrize("hypothesis", ["calibration", "parity"])
@pytest.mark.parametrize("design", segment_designs.DESIGNS)
def test_true_scores_of_few_clusters_are_not_rejected_too_often(rng, design, hypothesis):
    rate, _ = segment_designs.simulate(rng, segment_designs.DESIGNS[design], hypothesis, 100)
    assert_at_most(round(100 * rate), 100, 0.05)


@pytest.mark.parametrize(
    ("n", "shape", "parity"),
    [
        (2_000, (1, 15), False),
        pytest.param(600, (2, 3), False, marks=SLOW),
        pytest.param(1_500, (2, 3), True, marks=SLOW),
    ],
)
def test_true_scores_are_rejected_as_often_as_said(rng, n, shape, parity):
    trials, hits = 150, 0
    for _ in range(trials):
        found = multicalibration_test(cells(rng, n, shape, parity=parity), SEGMENTS, rng=rng)
        hits += np.nanmin(found.p_value_adjusted) <= 0.05
    assert_rate(hits, trials, 0.05)


def test_the_wrong_segment_is_found_and_untouched_ones_are_left_alone(rng):
    trials, found, false = 50, 0, 0
    touched = SEGMENTS[:, 0] > 0
    for _ in range(trials):
        p = multicalibration_test(
            cells(rng, 1_500, (2, 3), 0.15), SEGMENTS, rng=rng
        ).p_value_adjusted
        found += p[0] <= 0.05
        false += np.nanmin(p[~touched]) <= 0.05
    assert_at_least(found, trials, 0.70)
    assert_at_most(false, trials, 0.05)
