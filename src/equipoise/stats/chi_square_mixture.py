r"""Law of a weighted sum of chi-square variables, :math:`Q = \sum_k \lambda_k Z_k^2`.

It is the null law of quadratic statistics whose terms have unequal variances: the between-group
component of an entropy index, a sum of squared gaps.
"""

import numpy as np
from scipy import integrate, optimize, special

from equipoise._checks import check_finite, check_fraction, check_number
from equipoise._typing import FloatArray
from equipoise.exceptions import InvalidParameterError

__all__ = ["chi_square_mixture_isf", "chi_square_mixture_sf"]

NEGLIGIBLE = 1e-12
"""Weights below this share of the largest are rounding error of an eigenvalue that is zero."""

FAR = 1e5
"""In units of the largest weight times their number: the probability underflows beyond it."""


def chi_square_mixture_sf(value: float, weights: object) -> float:
    r"""Return :math:`P(\sum_k \lambda_k Z_k^2 > q)` for independent standard normal Z.

    Parameters
    ----------
    value : float
        q; the probability is one for q <= 0.
    weights : array of shape (K,)
        :math:`\lambda_k \ge 0`, at least one positive.

    Returns
    -------
    float
        Correct to about ten digits *relative* to the probability, however small it is.

    Raises
    ------
    InvalidParameterError
        If a weight is negative or all are zero.

    Notes
    -----
    The tail is :math:`\frac{1}{2\pi i}\int e^{K(s) - s q} s^{-1} ds` with the cumulant generating
    function :math:`K(s) = -\frac12 \sum \log(1 - 2\lambda_k s)`. The path is a parabola through the
    saddlepoint, open to the right and tangent to the path of steepest descent: the integrand has
    one hump, no oscillation, and dies off like a normal density. Ruben's series, the usual method,
    gives the same numbers, but needs a number of terms in proportion to the ratio of the largest to
    the smallest weight; here the ratio does not matter.

    Examples
    --------
    How unusual is 10 under 2 chi2(1) + 1 chi2(1)?

    >>> round(chi_square_mixture_sf(10.0, [2.0, 1.0]), 4)
    0.0401

    One draw in twenty-five is larger.
    """
    q = check_number("value", value)
    lam = _positive(weights)
    if q <= 0.0:
        return 1.0
    if lam.min() == lam.max():
        return float(special.chdtrc(len(lam), q / lam[0]))
    unit = lam.max()
    lam, q = lam / unit, q / unit
    if q > FAR * len(lam):
        return 0.0

    def slope(s: float) -> float:
        return float(np.sum(lam / (1.0 - 2.0 * lam * s)) - q - 1.0 / s)

    # K(s) - s q - log s is convex on (0, 1/2) and infinite at both ends.
    saddle = optimize.brentq(slope, 1e-300, 0.5 * (1.0 - 1e-15), xtol=1e-300, rtol=1e-14)
    rate = lam / (1.0 - 2.0 * lam * saddle)
    second, third = 2.0 * np.sum(rate**2), 8.0 * np.sum(rate**3)
    scale = 1.0 / np.sqrt(second + 1.0 / saddle**2)
    bend = third / (6.0 * second)
    height = -0.5 * np.sum(np.log1p(-2.0 * lam * saddle)) - saddle * q - np.log(saddle)

    def integrand(t: float) -> float:
        u = t * scale
        s = saddle + bend * u * u + 1j * u
        exponent = -0.5 * np.sum(np.log(1.0 - 2.0 * lam * s)) - s * q - np.log(s) - height
        return float((np.exp(exponent) * (1.0 - 2j * bend * u)).real)

    area = integrate.quad(integrand, 0.0, np.inf, epsabs=0.0, epsrel=1e-10, limit=500)[0]
    return float(np.clip(area * scale * np.exp(height) / np.pi, 0.0, 1.0))


def chi_square_mixture_isf(probability: float, weights: object) -> float:
    r"""Return the value that :math:`\sum_k \lambda_k Z_k^2` exceeds with a given probability.

    Parameters
    ----------
    probability : float
        Between 0 and 1.
    weights : array of shape (K,)
        :math:`\lambda_k \ge 0`, at least one positive.

    Returns
    -------
    float

    Examples
    --------
    With equal weights it is the chi-square quantile:

    >>> round(chi_square_mixture_isf(0.05, [1.0, 1.0]), 3)
    5.991
    """
    tail = check_fraction("probability", probability)
    lam = _positive(weights)
    # Between the quantiles of the largest term alone and of all terms at the largest weight.
    low = lam.max() * special.chdtri(1, tail)
    high = lam.max() * special.chdtri(len(lam), tail)
    if len(lam) == 1 or lam.min() == lam.max():
        return float(high)
    return float(
        # The tail is nearly exponential, so its logarithm is nearly a line.
        optimize.brentq(
            lambda q: np.log(chi_square_mixture_sf(q, lam) / tail), low, high, rtol=1e-9
        )
    )


def _positive(weights: object) -> FloatArray:
    lam = check_finite("weights", weights, ndim=1)
    if lam.min(initial=0.0) < -NEGLIGIBLE * lam.max(initial=0.0) or not lam.max(initial=0.0) > 0.0:
        raise InvalidParameterError(
            "`weights` of a chi-square mixture must be at least zero, one of them positive;"
            f" got {lam.tolist()}."
        )
    return np.asarray(lam[lam > NEGLIGIBLE * lam.max()])
