import numpy as np
import pytest
from scipy import stats

from equipoise.stats.saddlepoint import FARTHEST, Side, tail_root


def array(*values):
    return np.array(values, dtype=float)


@pytest.mark.parametrize(("n", "rate"), [(40, 0.3), (400, 0.02), (5000, 0.5)])
def test_tail_of_a_binomial_count_is_within_a_tenth_of_the_exact_one(n, rate):
    x = np.arange(n * rate + 1, n * rate + 4 * np.sqrt(n * rate * (1 - rate))).round()
    one = np.ones_like(x)
    root = tail_root(x - 0.5 - n * rate, (Side(one, n * one, rate * one),), 0 * one)
    exact = stats.binom.sf(x - 1, n, rate)
    np.testing.assert_allclose(stats.norm.sf(root), exact, rtol=0.1)


def test_without_counts_that_vary_the_tail_is_normal():
    side = Side(array(1), array(3), array(0.0))
    root = tail_root(array(1.5), (side,), array(4.0))
    np.testing.assert_allclose(root, 0.75, rtol=1e-12)


def test_contrast_of_two_samples_agrees_with_its_convolution():
    n1, n2, p1, p2 = 60, 90, 0.2, 0.3
    x1, x2 = np.meshgrid(np.arange(n1 + 1), np.arange(n2 + 1), indexing="ij")
    chance = np.outer(
        stats.binom.pmf(np.arange(n1 + 1), n1, p1), stats.binom.pmf(np.arange(n2 + 1), n2, p2)
    )
    contrast = (x1 / n1 - p1) - (x2 / n2 - p2)
    sides = (Side(array(1 / n1), array(n1), array(p1)), Side(array(-1 / n2), array(n2), array(p2)))
    for excess in (0.05, 0.1, 0.2):
        # Both lattices together are fine; the tail between two points has no atom.
        exact = chance[contrast >= excess].sum()
        root = tail_root(array(excess), sides, array(0.0))
        np.testing.assert_allclose(stats.norm.sf(root), exact, rtol=0.15)


def test_far_tails_err_on_the_cautious_side():
    x = np.arange(25.0, 33.0)
    one = np.ones_like(x)
    root = tail_root(x - 12.5, (Side(one, 40 * one, 0.3 * one),), 0 * one)
    ratio = stats.norm.sf(root) / stats.binom.sf(x - 1, 40, 0.3)
    assert (ratio > 1.0).all()
    assert (ratio < 1.3).all()


def test_correction_is_continuous_where_the_saddlepoint_is_zero():
    side = Side(np.ones(3), np.full(3, 30.0), np.full(3, 0.1))
    sd = np.sqrt(2.7)
    root = tail_root(sd * array(-0.0101, 0.0, 0.0101), (side,), np.zeros(3))
    # At zero: the third cumulant over 6 standard deviations cubed.
    np.testing.assert_allclose(root[1], 2.7 * 0.8 / sd**3 / 6)
    np.testing.assert_allclose(np.diff(root), 0.0101, rtol=0.05)


def test_impossible_and_certain_tails_are_finite():
    side = Side(np.ones(3), np.full(3, 10.0), array(0.3, 0.3, 0.0))
    root = tail_root(array(7.5, -3.5, 0.1), (side,), np.zeros(3))
    np.testing.assert_array_equal(root, [FARTHEST, -FARTHEST, FARTHEST])
