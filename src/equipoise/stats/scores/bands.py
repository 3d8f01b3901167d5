r"""Simultaneous inference for many correlated estimates: max-t with Satterthwaite degrees.

The Gaussian multiplier bootstrap over independent units has, given the data, exactly the law
:math:`N(0, V)` with :math:`V = \sum_m \psi_m \psi_m'`; so the maximum is simulated from the matrix
of covariances and the rows are never resampled.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_rng
from equipoise._typing import FloatArray, Rng

__all__ = ["SimultaneousTest", "gaussian_draws", "max_t_test", "tail_share"]

N_DRAWS = 5000
"""Draws of the multiplier law; the smallest p-value is one over this plus one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimultaneousTest:
    """Tests that each estimate is zero, valid for all at once.

    Parameters
    ----------
    standard_error, statistic : array of shape (p,)
        Standard error; studentised estimate mapped to the normal scale.
    p_value, p_value_adjusted : array of shape (p,)
        For one estimate alone, and for the largest of all.
    low, high : array of shape (p,)
        Simultaneous band; it excludes zero exactly where ``p_value_adjusted`` is at most
        ``1 - confidence_level``.
    max_p_value, sum_p_value : float
        P-values of the largest statistic and of the sum of squared statistics.
    """

    standard_error: FloatArray
    statistic: FloatArray
    p_value: FloatArray
    p_value_adjusted: FloatArray
    low: FloatArray
    high: FloatArray
    max_p_value: float
    sum_p_value: float


def max_t_test(
    estimate: FloatArray,
    covariance: FloatArray,
    fourth: FloatArray,
    *,
    repeats: FloatArray | None = None,
    confidence_level: float = 0.95,
    n_comparisons: int = 1,
    rng: Rng = None,
) -> SimultaneousTest:
    r"""Test that all estimates are zero, and find which are not.

    Parameters
    ----------
    estimate : array of shape (p,)
        Estimates, each a sum of influence values over independent units.
    covariance : array of shape (p, p)
        Sum over units of products of influence values, with a positive diagonal.
    fourth : array of shape (p,)
        Sum over units of their fourth powers; gives the degrees of freedom
        :math:`n_e = (\sum \psi^2)^2 / \sum \psi^4`.
    repeats : array of shape (p,), optional
        How often each squared statistic enters their sum; by default once.
    confidence_level : float, default 0.95
        Simultaneous level of the band.
    n_comparisons : int, default 1
        How many such families are read together; bands and adjusted p-values allow for it
        (Bonferroni).
    rng : numpy.random.Generator or int, optional
        Source of the draws.

    Returns
    -------
    SimultaneousTest

    Notes
    -----
    :math:`|D|/\mathrm{se} \sqrt{(n_e - 1)/n_e}` has about a t law with :math:`n_e` degrees; its
    tail is mapped to the normal scale, where the maximum is compared with that of
    :math:`N(0, R)`, R the correlation matrix.

    Examples
    --------
    Are two independent estimates, 3 and 0.5 standard errors from zero, both zero?

    >>> import numpy as np
    >>> test = max_t_test(np.array([3.0, 0.5]), np.eye(2), np.full(2, 0.001), rng=1)
    >>> test.p_value_adjusted.round(3)
    array([0.007, 0.858])

    The first is not.
    """
    level = 1.0 - (1.0 - check_fraction("confidence_level", confidence_level)) / n_comparisons
    variance = np.diag(covariance)
    se = np.sqrt(variance)
    # One unit gives n_e = 1 and no scale to judge by; the guard keeps the map finite.
    degrees = np.maximum(variance**2 / fourth, 1.0 + 1e-9)
    shrink = np.sqrt((degrees - 1.0) / degrees)
    tail = np.maximum(special.stdtr(degrees, -np.abs(estimate) / se * shrink), 1e-300)
    z = -special.ndtri(tail)
    draws = gaussian_draws(covariance / np.outer(se, se), rng=rng)
    times = np.ones(len(z)) if repeats is None else repeats
    largest = np.sort(np.abs(draws).max(axis=1))[::-1]
    # Never less than for one estimate alone, whatever the draws.
    share = np.maximum(tail_share(largest, z), 2.0 * tail)
    adjusted = np.minimum(share * n_comparisons, 1.0)
    rank = max(int(np.floor((1.0 - level) * (len(largest) + 1) + 1e-9)), 1)
    cutoff = max(float(largest[rank - 1]), -float(special.ndtri((1.0 - level) / 2.0)))
    critical = -special.stdtrit(degrees, special.ndtr(-cutoff)) / shrink
    return SimultaneousTest(
        standard_error=se,
        statistic=np.sign(estimate) * z,
        p_value=2.0 * tail,
        p_value_adjusted=adjusted,
        low=estimate - critical * se,
        high=estimate + critical * se,
        max_p_value=float(adjusted.min()),
        sum_p_value=float(tail_share(draws**2 @ times, np.array([z**2 @ times]))[0]),
    )


def gaussian_draws(
    covariance: FloatArray, *, n_draws: int = N_DRAWS, rng: Rng = None
) -> FloatArray:
    """Draw from a centred normal law; the covariance may be singular."""
    # A triangular root moves little when the last digits of the matrix do, unlike eigenvectors, so
    # that engines which sum in another order get the same draws.
    ridge = 1e-9 * float(np.trace(covariance)) / len(covariance)
    root = np.linalg.cholesky(covariance + ridge * np.eye(len(covariance)))
    return np.asarray(check_rng(rng).standard_normal((n_draws, len(root))) @ root.T)


def tail_share(draws: FloatArray, observed: FloatArray) -> FloatArray:
    """Return the Monte Carlo p-value of each observed value, ``(1 + draws above) / (1 + draws)``.

    A draw within rounding of the observed value counts as above it.
    """
    ordered = np.sort(draws)
    below = np.searchsorted(ordered, observed * (1.0 - 1e-12), side="left")
    return np.asarray((1.0 + len(ordered) - below) / (1.0 + len(ordered)))
