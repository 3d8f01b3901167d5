import numpy as np
import pytest
from scipy import special, stats

from equipoise.exceptions import ConvergenceError, InvalidParameterError
from equipoise.stats import mixture as chi_square_mixture
from equipoise.stats.mixture import (
    ChiSquareMixture,
    chi_square_mixture_isf,
    chi_square_mixture_sf,
)


def ruben(value, weights, terms):
    """Series of chi-square tails with positive coefficients (Ruben 1962)."""
    lam = np.asarray(weights, dtype=float)
    beta, size = lam.min(), len(lam)
    a = 1.0 - beta / lam
    c = np.empty(terms)
    c[0], h = np.sqrt(np.prod(beta / lam)), np.zeros(size)
    for k in range(1, terms):
        h = a * (h + c[k - 1])
        c[k] = h.sum() / (2 * k)
    return float(np.sum(c * special.chdtrc(size + 2 * np.arange(terms), value / beta)))


@pytest.mark.parametrize("size", [2, 3, 6, 20])
@pytest.mark.parametrize("ratio", [1.01, 3.0, 30.0])
@pytest.mark.parametrize("times", [0.05, 1.0, 5.0, 30.0])
def test_tail_equals_the_series_of_ruben_to_ten_digits(rng, size, ratio, times):
    lam = np.exp(rng.uniform(0.0, np.log(ratio), size))
    lam[0], lam[-1] = 1.0, ratio
    value = times * lam.sum()
    np.testing.assert_allclose(
        chi_square_mixture_sf(value, lam), ruben(value, lam, 6000), rtol=1e-10
    )


def test_tail_equals_simulation(rng):
    lam = np.array([2.0, 0.7, 0.01])
    draws = rng.chisquare(1, size=(400_000, 3)) @ lam
    for value in (1.0, 5.0, 9.0):
        share = np.mean(draws > value)
        error = 4.0 * np.sqrt(share * (1 - share) / 400_000)
        assert abs(chi_square_mixture_sf(value, lam) - share) < error


@pytest.mark.parametrize("weights", [[3.0], [3.0, 3.0], [3.0, 3.0, 0.0]])
def test_equal_weights_give_the_chi_square(weights):
    positive = sum(w > 0 for w in weights)
    np.testing.assert_allclose(
        chi_square_mixture_sf(7.0, weights), stats.chi2.sf(7.0 / 3.0, positive), rtol=1e-12
    )
    np.testing.assert_allclose(
        chi_square_mixture_isf(0.1, weights), 3.0 * stats.chi2.isf(0.1, positive), rtol=1e-9
    )


def test_a_vanishing_weight_changes_nothing():
    np.testing.assert_allclose(
        chi_square_mixture_sf(5.0, [1.0, 1e-7]), stats.chi2.sf(5.0, 1), rtol=1e-6
    )


def test_extremes_are_one_and_zero():
    assert chi_square_mixture_sf(0.0, [1.0, 2.0]) == 1.0
    assert chi_square_mixture_sf(-1.0, [1.0, 2.0]) == 1.0
    assert chi_square_mixture_sf(1e9, [1.0, 2.0]) == 0.0


def test_quantile_inverts_the_tail():
    lam = [4.0, 1.0, 0.3]
    for tail in (0.5, 0.05, 1e-4):
        value = chi_square_mixture_isf(tail, lam)
        np.testing.assert_allclose(chi_square_mixture_sf(value, lam), tail, rtol=1e-8)


@pytest.mark.parametrize("weights", [[-1.0, 2.0], [0.0, 0.0], []])
def test_weights_without_a_law_are_refused(weights):
    with pytest.raises(InvalidParameterError, match="at least zero, one of them positive"):
        chi_square_mixture_sf(1.0, weights)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 60])
@pytest.mark.parametrize("ratio", [1.0, 5.0, 1e4])
def test_rank_one_removed_equals_the_eigenvalues(rng, size, ratio):
    d = np.exp(rng.uniform(0.0, np.log(ratio), size))
    share = rng.dirichlet(np.full(size, 0.7)) if size > 1 else np.array([0.4])
    w = np.sqrt(d * share)
    eigenvalues = np.maximum(np.linalg.eigvalsh(np.diag(d) - np.outer(w, w)), 0.0)
    eigenvalues = eigenvalues[eigenvalues > 1e-11 * eigenvalues.max()]
    law = ChiSquareMixture(weights=d, removed=d * share)
    assert law.mean == pytest.approx(eigenvalues.sum())
    assert not law.degenerate
    for times in (0.1, 1.0, 4.0):
        value = times * law.mean
        assert law.sf(value) == pytest.approx(chi_square_mixture_sf(value, eigenvalues), rel=1e-7)
    assert law.isf(0.05) == pytest.approx(chi_square_mixture_isf(0.05, eigenvalues), rel=1e-7)


def test_group_that_is_everybody_leaves_nothing():
    assert ChiSquareMixture(weights=np.array([2.0]), removed=np.array([2.0])).degenerate


def test_largest_weight_may_be_shared_or_untouched():
    tied = ChiSquareMixture(weights=np.array([2.0, 2.0, 1.0]), removed=np.array([0.5, 0.5, 0.1]))
    w = np.sqrt([0.5, 0.5, 0.1])
    expected = np.linalg.eigvalsh(np.diag([2.0, 2.0, 1.0]) - np.outer(w, w))
    assert tied.sf(4.0) == pytest.approx(chi_square_mixture_sf(4.0, expected), rel=1e-8)
    apart = ChiSquareMixture(weights=np.array([2.0, 1.0]), removed=np.array([0.0, 0.5]))
    assert apart.sf(4.0) == pytest.approx(chi_square_mixture_sf(4.0, [2.0, 0.5]), rel=1e-8)
    swallowed = ChiSquareMixture(weights=np.array([3.0, 1.0]), removed=np.array([2.5, 0.0]))
    assert swallowed.sf(2.0) == pytest.approx(chi_square_mixture_sf(2.0, [0.5, 1.0]), rel=1e-8)


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e6])
def test_unit_of_the_weights_does_not_matter(unit):
    d, w = np.array([0.7134, 1.0762, 0.9202]), np.array([0.3460, 0.3417, 0.1817])
    law = ChiSquareMixture(weights=d, removed=w)
    scaled = ChiSquareMixture(weights=unit * d, removed=unit * w)
    for value in (0.2, 1.0426, 8.0):
        assert scaled.sf(unit * value) == pytest.approx(law.sf(value), rel=1e-9)
    assert scaled.isf(0.05) == pytest.approx(unit * law.isf(0.05), rel=1e-7)


def test_too_few_points_are_an_error_and_no_number(monkeypatch):
    monkeypatch.setattr(chi_square_mixture, "MOST_POINTS", 0)
    with pytest.raises(ConvergenceError, match="did not converge in 0 points"):
        chi_square_mixture_sf(3.0, [2.0, 1.0])


@pytest.mark.parametrize("value", [5.0, 9.0, 20.0, 100.0, 900.0])
def test_one_large_weight_among_many_small_ones(value):
    lam = [50.0, *[0.2] * 40]
    np.testing.assert_allclose(
        chi_square_mixture_sf(value, lam), ruben(value, lam, 40_000), rtol=1e-9
    )


@pytest.mark.parametrize("tail", [0.9, 0.3, 1e-6])
def test_quantile_of_very_unequal_weights(tail):
    lam = [50.0, *[0.2] * 40]
    assert chi_square_mixture_sf(chi_square_mixture_isf(tail, lam), lam) == pytest.approx(
        tail, rel=1e-6
    )
