import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.moments import CellMoments
from equipoise.stats.effects.collapse import row_quantities, slope_quantities
from equipoise.stats.effects.slopes import group_slopes

NAMES = slope_quantities("difference")


def slopes(y, f, t, group):
    sums = CellMoments.from_rows(row_quantities(NAMES, y=y, f=f), 2 * group + t)
    return group_slopes(sums, NAMES, np.bincount(group).astype(float))


@pytest.fixture
def rows(rng):
    t, group = np.arange(400) % 2, np.repeat([0, 1], [160, 240])
    f = rng.exponential(size=400) + 3.0
    return np.where(t == 1, 0.5 * f, 0.0) + rng.normal(size=400), f, t, group


def test_degrees_are_those_of_predictions_around_their_mean(rows):
    _, f, _, group = rows
    found = slopes(*rows)
    for k in range(2):
        d = f[group == k] - f[group == k].mean()
        assert_allclose(found.df[k], (d**2).sum() ** 2 / (d**4).sum() - 1.0)


def test_a_constant_added_to_predictions_changes_nothing(rows):
    y, f, t, group = rows
    found, moved = slopes(*rows), slopes(y, f + 5.0, t, group)
    assert_allclose(moved.slope, found.slope)
    assert_allclose(moved.se, found.se)
    assert_allclose(moved.difference_root(), found.difference_root())


def test_the_slope_is_the_difference_of_the_arms_covariances(rows):
    y, f, t, group = rows
    found = slopes(*rows)
    own = group == 0
    covariance = [np.cov(f[own & (t == a)], y[own & (t == a)], ddof=0)[0, 1] for a in (0, 1)]
    assert_allclose(found.slope[0], (covariance[1] - covariance[0]) / f[own].var(), rtol=0.02)
