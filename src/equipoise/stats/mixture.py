r"""Law of a weighted sum of chi-square variables, :math:`Q = \sum_k \lambda_k Z_k^2`.

It is the null law of quadratic statistics whose terms have unequal variances: the between-group
component of an entropy index, a sum of squared gaps.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from equipoise._checks import check_finite, check_fraction, check_number
from equipoise._typing import FloatArray
from equipoise.exceptions import ConvergenceError, InvalidParameterError

__all__ = ["ChiSquareMixture", "chi_square_mixture_isf", "chi_square_mixture_sf"]

NEGLIGIBLE = 1e-12
"""Weights below this share of the largest are rounding error of an eigenvalue that is zero."""

FAR = 3000.0
"""Beyond this, in units of the largest weight, plus four for each weight, the tail underflows."""

STEEPNESS = 3.0
"""Slope of the asymptotes of the path."""

BLOCK, MOST_POINTS = 32, 32 * 800
"""Points of the integration rule that are taken at a time, and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquareMixture:
    r"""Law of :math:`Z'AZ` for a diagonal matrix, or one less a matrix of rank one.

    Parameters
    ----------
    weights : array of shape (K,)
        Diagonal; without `removed` these are the weights of the chi-squares.
    removed : array of shape (K,), optional
        Squares of a vector w such that :math:`A = \mathrm{diag}(\lambda) - ww'` has no negative
        eigenvalue. Its eigenvalues are not needed, only its determinant, so thousands of weights
        are no burden.
    """

    weights: FloatArray
    removed: FloatArray | None = None

    @property
    def mean(self) -> float:
        """Mean of the law: the trace."""
        taken = 0.0 if self.removed is None else float(self.removed.sum())
        return float(self.weights.sum()) - taken

    @property
    def degenerate(self) -> bool:
        """Whether all mass is at zero."""
        return not self.mean > NEGLIGIBLE * float(self.weights.max(initial=0.0))

    def sf(self, value: float) -> float:
        """Return the probability of a larger value; see `chi_square_mixture_sf`."""
        q = check_number("value", value)
        lam, taken = self._positive()
        if q <= 0.0:
            return 1.0
        unit = _largest_eigenvalue(lam, taken)
        if len(lam) == 1 or (taken is None and lam.min() == lam.max()):
            return float(special.chdtrc(len(lam), q / unit))
        lam, q = lam / unit, q / unit
        taken = None if taken is None else taken / unit
        if q > 4.0 * len(lam) + FAR:
            return 0.0
        return _tail(q, lam, taken)

    def isf(self, probability: float) -> float:
        """Return the value that is exceeded with a probability."""
        tail = check_fraction("probability", probability)
        lam, taken = self._positive()
        if len(lam) == 1 or (taken is None and lam.min() == lam.max()):
            weight = _largest_eigenvalue(lam, taken)
            return float(weight * special.chdtri(len(lam), tail))
        # A chi-square with the same mean and variance is close; widen until the root is inside.
        w = np.zeros(len(lam)) if taken is None else taken
        first = float(lam.sum() - w.sum())
        square = float(np.sum(lam**2) - 2.0 * np.sum(lam * w) + w.sum() ** 2)
        guess = square / first * float(special.chdtri(first**2 / square, tail))

        def excess(q: float) -> float:
            # The tail is nearly exponential, so its logarithm is nearly a line.
            return float(np.log(max(self.sf(q), 1e-300) / tail))

        room = 0.05 / np.sqrt(first**2 / square)
        low, high = (1.0 - room) * guess, (1.0 + room) * guess
        while excess(low) < 0.0:
            low *= 0.7
        while excess(high) > 0.0:
            high *= 1.4
        return float(optimize.brentq(excess, low, high, xtol=1e-8 * guess, rtol=1e-8))

    def _positive(self) -> tuple[FloatArray, FloatArray | None]:
        lam = check_finite("weights", self.weights, ndim=1)
        top = lam.max(initial=0.0)
        if lam.min(initial=0.0) < -NEGLIGIBLE * top or not top > 0.0:
            raise InvalidParameterError(
                "`weights` of a chi-square mixture must be at least zero, one of them positive;"
                f" got {lam.tolist()}."
            )
        keep = lam > NEGLIGIBLE * top
        return lam[keep], None if self.removed is None else self.removed[keep]


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
    function :math:`K(s) = -\frac12 \sum \log(1 - 2\lambda_k s)`. The path is a hyperbola through
    the saddlepoint, open to the right and tangent to the path of steepest descent: the integrand
    has one hump, hardly oscillates, and dies off quickly. Ruben's series, the usual method,
    gives the same numbers, but needs a number of terms in proportion to the ratio of the largest to
    the smallest weight; here the ratio does not matter.

    Examples
    --------
    How unusual is 10 under 2 chi2(1) + 1 chi2(1)?

    >>> round(chi_square_mixture_sf(10.0, [2.0, 1.0]), 4)
    0.0401

    One draw in twenty-five is larger.
    """
    return ChiSquareMixture(weights=check_finite("weights", weights, ndim=1)).sf(value)


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
    return ChiSquareMixture(weights=check_finite("weights", weights, ndim=1)).isf(probability)


def _largest_eigenvalue(lam: FloatArray, taken: FloatArray | None) -> float:
    """Return the largest eigenvalue; with rank one removed, the last root of its equation."""
    top = float(lam.max())
    if taken is None:
        return top
    second = float(np.partition(lam, -2)[-2]) if len(lam) > 1 else 0.0
    near = np.where(lam == top, taken, 0.0).sum()
    if second >= top * (1.0 - 1e-12) or near <= 0.0:
        return top

    other = lam < top

    def secular(x: float) -> float:
        # 1 - sum w^2/(d - x), times top - x: finite at the largest weight.
        return float((1.0 - np.sum(taken[other] / (lam[other] - x))) * (top - x) - near)

    low = second + max(1e-10 * (top - second), 4e-16 * top)
    if low >= top or secular(low) <= 0.0:
        return second
    return float(optimize.brentq(secular, low, top, xtol=1e-15 * top, rtol=1e-14))


def _tail(q: float, lam: FloatArray, taken: FloatArray | None) -> float:
    """Integrate along a hyperbola through the saddlepoint; the largest eigenvalue is one."""

    def cumulants(s: float) -> tuple[float, float]:
        """Return K and its slope."""
        factor = 1.0 - 2.0 * lam * s
        value = -0.5 * np.sum(np.log(np.abs(factor)))
        slope = np.sum(lam / factor)
        if taken is not None:
            h = np.sum(taken / factor)
            g = 1.0 + 2.0 * s * h
            value -= 0.5 * np.log(abs(g))
            slope -= (h + s * np.sum(2.0 * lam * taken / factor**2)) / g
        return float(value), float(slope)

    # K(s) - s q - log s is convex on (0, 1/2) and infinite at both ends.
    end = 0.5 * (1.0 - 1e-9)
    saddle = optimize.brentq(
        lambda s: cumulants(s)[1] - q - 1.0 / s, 1e-300, end, xtol=1e-300, rtol=1e-13
    )
    step = 1e-4 * min(saddle, 0.5 - saddle)
    left, right = cumulants(saddle - step)[1], cumulants(saddle + step)[1]
    second = max((right - left) / (2.0 * step), 1e-300)
    third = max((right - 2.0 * cumulants(saddle)[1] + left) / step**2, 0.0)
    scale = 1.0 / np.sqrt(second + 1.0 / saddle**2)
    # A hyperbola with the bend of the path of steepest descent at its vertex. Its asymptotes keep
    # it away from the branch cuts of small weights, which a parabola would run into.
    bend = max(third / (6.0 * second), 1e-4 / scale)
    up = 1.0 / (2.0 * STEEPNESS * bend)
    across = up / STEEPNESS
    height = cumulants(saddle)[0] - saddle * q - np.log(saddle)

    # The rule of equal steps converges like exp(-2 pi distance / step) for a smooth integrand, with
    # the distance, in the parameter, of the pole at 0, of the branch point at 1/2, and of the strip
    # beyond which the integrand grows.
    def reach(y: float) -> float:
        return float(saddle + across * (np.cos(y) - 1.0) - up * np.sin(y))

    quarter = 0.5 * np.pi
    pole = optimize.brentq(reach, 0.0, quarter) if reach(quarter) < 0.0 else quarter
    branch = quarter
    if reach(-quarter) > 0.5:
        branch = -optimize.brentq(lambda y: reach(y) - 0.5, -quarter, 0.0)
    strip = np.arctan(1.0 / STEEPNESS)
    width = min(0.2 * scale / up, pole / 6.0, branch / 6.0, strip / 6.0)
    area, start = 0.0, 0
    while start < MOST_POINTS:
        t = width * np.arange(start, start + BLOCK)
        s = saddle + across * (np.cosh(t) - 1.0) + 1j * up * np.sinh(t)
        factor = 1.0 - 2.0 * lam[:, None] * s
        exponent = -0.5 * np.sum(np.log(factor), axis=0) - s * q - np.log(s) - height
        if taken is not None:
            exponent -= 0.5 * np.log(1.0 + 2.0 * s * np.sum(taken[:, None] / factor, axis=0))
        values = (np.exp(exponent) * (up * np.cosh(t) - 1j * across * np.sinh(t))).real
        if start == 0:
            # The saddlepoint itself counts half; there, and only there, two logarithms of negative
            # numbers could add up to the wrong branch.
            values[0] = 0.5 * up
        area += float(values.sum())
        start += BLOCK
        if np.abs(values).max() < 1e-15 * abs(area):
            return float(np.clip(area * width * np.exp(height) / np.pi, 0.0, 1.0))
    raise ConvergenceError(
        f"the tail of a chi-square mixture did not converge in {MOST_POINTS} points; the weights"
        f" are {lam.min():g} to {lam.max():g} of the largest eigenvalue."
    )
