"""Growth of gaps: bounds and p-values are inverses of each other, whichever side is asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.stats.disparity.growth import _Negative, _Reported, growth_between

ALPHA = 0.05


def sample(estimate, se):
    z = stats.norm.ppf(0.975)
    return np.array([[estimate], [estimate - z * se], [estimate + z * se]])


def test_gaps_of_the_same_sign_are_a_difference_of_two_normal_estimates():
    growth = growth_between(sample(0.3, 0.02), sample(0.4, 0.03))
    z = 0.1 / np.hypot(0.02, 0.03)
    # The other sign is excluded, and each sign has half of the level.
    assert_allclose(growth.p_grown(0.0), 2.0 * stats.norm.sf(z), rtol=1e-6)
    assert_allclose(growth.estimate, 0.1)


@given(
    old=st.floats(-0.5, 0.5),
    new=st.floats(-0.5, 0.5),
    margin=st.floats(-0.3, 0.3),
)
def test_bounds_and_p_values_agree(old, new, margin):
    growth = growth_between(sample(old, 0.05), sample(new, 0.08))
    for p, beyond in (
        (growth.p_within(margin)[0], margin - growth.bound(ALPHA)[0]),
        (growth.p_grown(margin)[0], growth.lower_bound(ALPHA)[0] - margin),
    ):
        if abs(p - ALPHA) > 1e-9:
            assert (p < ALPHA) == (beyond > 0)


def test_the_bound_lies_above_the_estimate_and_the_lower_bound_below():
    growth = growth_between(sample(-0.1, 0.05), sample(0.2, 0.05))
    assert growth.lower_bound()[0] < growth.estimate[0] < growth.bound()[0]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_sign_of_both_gaps_does_not_matter(sign):
    one = growth_between(sample(0.1, 0.05), sample(0.2, 0.05))
    two = growth_between(sample(sign * 0.1, 0.05), sample(sign * 0.2, 0.05))
    assert_allclose(one.p_grown(0.02), two.p_grown(0.02), rtol=1e-8)


def test_a_contrast_with_the_other_sign_has_the_other_ends_and_roots():
    one = _Reported(np.array([0.3]), below=np.array([0.1]), above=np.array([0.2]))
    other = _Negative(one)
    assert other.estimate.tolist() == [-0.3]
    np.testing.assert_allclose(one.interval(np.array([2.0])), [[0.1], [0.7]])
    np.testing.assert_allclose(other.interval(np.array([2.0])), [[-0.7], [-0.1]])
    # Down to zero it is three lower halves, up to 0.7 two upper ones.
    np.testing.assert_allclose(one.root(np.array([0.0])), [3.0])
    np.testing.assert_allclose(one.root(np.array([0.7])), [-2.0])
    np.testing.assert_allclose(other.root(np.array([-0.7])), [2.0])
