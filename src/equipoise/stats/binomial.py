r"""Tests of proportions from counts, for many groups at once.

The empirical likelihood of a 0/1 variable is the binomial likelihood, so that counts are
sufficient and every solution is in closed form or one-dimensional. Unlike pure empirical
likelihood, the binomial deviance stays finite when a group has only zeros or only ones.

Functions take arrays and return arrays of the same shape.
"""

import numpy as np
from scipy import special

from equipoise._typing import AnyArray, FloatArray

__all__ = [
    "clopper_pearson",
    "constrained_rates",
    "deviance",
    "difference_fit",
    "exact_tail",
    "log_ways",
    "probability",
    "signed_deviance",
    "upper_tail",
]


def deviance(successes: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    r"""Twice the log likelihood ratio of the observed proportion against `rate`.

    .. math:: 2 [x \log \tfrac{x}{n c} + (n - x) \log \tfrac{n - x}{n (1 - c)}]

    which is the empirical likelihood statistic of a 0/1 variable for 0 < x < n, and its finite
    limit at x = 0 and x = n. Infinite where `rate` makes the data impossible.

    Parameters
    ----------
    successes, n : array
        Ones and rows.
    rate : array
        Hypothesised probabilities.

    Returns
    -------
    array

    Examples
    --------
    Could 30 of 40 come from a fair coin?

    >>> float(deviance(np.array(30.0), np.array(40.0), np.array(0.5)).round(3))
    10.465

    Hardly: the statistic is far above 3.84.
    """
    inside = (rate >= 0.0) & (rate <= 1.0)
    c = np.where(inside, rate, 0.5)
    failures = n - successes
    with np.errstate(divide="ignore"):
        ones = special.rel_entr(successes, n * c)
        zeros = special.rel_entr(failures, n * (1.0 - c))
    return np.where(inside, np.maximum(2.0 * (ones + zeros), 0.0), np.inf)


def signed_deviance(successes: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """Square root of the deviance with the sign of (observed - hypothesised) proportion."""
    return np.sign(successes - n * rate) * np.sqrt(deviance(successes, n, rate))


def exact_tail(
    successes: FloatArray, n: FloatArray, rate: FloatArray, *, mid: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Exact one-sided p-values of a proportion.

    Parameters
    ----------
    successes, n : array
        Ones and rows.
    rate : array
        Hypothesised probabilities; values outside [0, 1] are taken as the nearest limit.
    mid : bool, default False
        Count half of the probability of the observed value (mid-P), which is closer to the nominal
        size but no longer guaranteed to stay below it.

    Returns
    -------
    greater, less : array
        P(X >= x) and P(X <= x).

    Examples
    --------
    Three of three reoffended: is that more than 60%?

    >>> greater, _ = exact_tail(np.array(3.0), np.array(3.0), np.array(0.6))
    >>> float(greater.round(3))
    0.216

    Nobody can tell from three people.
    """
    c = np.clip(rate, 0.0, 1.0)
    greater = upper_tail(successes, n, c)
    less = upper_tail(n - successes, n, 1.0 - c)
    if mid:
        half = 0.5 * (greater + less - 1.0)
        return greater - half, less - half
    return greater, less


def clopper_pearson(
    successes: FloatArray | float, n: FloatArray | float, *, tail: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of proportions, each missed with probability at most `tail`.

    Parameters
    ----------
    successes, n : array
        Counts, of any shapes that broadcast.
    tail : float or array
        Probability on each side: 0.025 gives 95% intervals.

    Returns
    -------
    low, high : array

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson (1934), The use of confidence or fiducial limits
       illustrated in the case of the binomial, Biometrika 26, 404-413.
       doi:10.1093/biomet/26.4.404.

    Examples
    --------
    Nobody in ten was harmed. How many might be?

    >>> low, high = clopper_pearson(0, 10, tail=0.025)
    >>> float(low), round(float(high), 3)
    (0.0, 0.308)

    Up to 31%.
    """
    x, size = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    )
    some, missed = np.maximum(x, 1.0), np.maximum(size - x, 1.0)
    low = np.where(x <= 0.0, 0.0, special.betaincinv(some, size - some + 1.0, tail))
    high = np.where(x >= size, 1.0, special.betainccinv(size - missed + 1.0, missed, tail))
    return low, high


def difference_fit(
    x1: FloatArray, n1: FloatArray, x2: FloatArray, n2: FloatArray, difference: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Most likely pair of proportions with a given difference.

    The root of the cubic of Miettinen and Nurminen (1985) [1]_; at difference 0 the pooled
    proportion. It is also where the profile empirical likelihood of two 0/1 samples has its
    minimum.

    Parameters
    ----------
    x1, n1, x2, n2 : array
        Ones and rows of the two samples.
    difference : array
        First minus second proportion, within [-1, 1].

    Returns
    -------
    first, second : array

    References
    ----------
    .. [1] O. Miettinen and M. Nurminen (1985), Comparative analysis of two rates, Statistics in
       Medicine 4, 213-226. doi:10.1002/sim.4780040211
    """
    d = np.clip(difference, -1.0, 1.0)
    n, x = n1 + n2, x1 + x2
    l2 = (n1 + 2.0 * n2) * d - n - x
    l1 = (n2 * d - n - 2.0 * x2) * d + x
    l0 = x2 * d * (1.0 - d)
    n = np.where(n > 0, n, np.nan)
    third = l2 / (3.0 * n)
    q = third**3 - l1 * l2 / (6.0 * n**2) + l0 / (2.0 * n)
    p = np.where(q >= 0, 1.0, -1.0) * np.sqrt(np.maximum(third**2 - l1 / (3.0 * n), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where(p != 0.0, q / p**3, 0.0)
    angle = (np.pi + np.arccos(np.clip(cosine, -1.0, 1.0))) / 3.0
    second = 2.0 * p * np.cos(angle) - third
    second = np.clip(second, np.maximum(0.0, -d), np.minimum(1.0, 1.0 - d))
    return second + d, second


def constrained_rates(
    successes: FloatArray, n: FloatArray, contrast: FloatArray, value: FloatArray
) -> FloatArray:
    r"""Most likely proportions with a given linear contrast.

    Given the multiplier :math:`\lambda`, proportion r solves
    :math:`\hat p_r - p_r = \lambda (c_r / n_r) p_r (1 - p_r)`, and the contrast decreases in
    :math:`\lambda`; bisection finds it. With two samples and contrast (1, -1) this is the cubic of
    `difference_fit`; with contrast (1, -rho) and value 0 it is the fit under a ratio of rates.

    Parameters
    ----------
    successes, n : array of shape (m, k)
        Ones and rows of k samples; samples with n = 0 are ignored.
    contrast : array of shape (m, k)
        Coefficients of the proportions.
    value : array of shape (m,)
        Required value, within the range the contrast can take.

    Returns
    -------
    array of shape (m, k)
    """
    observed = successes / np.maximum(n, 1.0)
    push = np.where(n > 0, contrast / np.maximum(n, 1.0), 0.0)
    low = np.full(len(n), -np.pi / 2)
    high = np.full(len(n), np.pi / 2)
    # The multiplier is of the order of n / |contrast|; the tangent covers the line.
    scale = n.sum(axis=1) / np.maximum(np.abs(contrast).max(axis=1), 1e-300)
    for _ in range(64):
        middle = 0.5 * (low + high)
        rates = _tilted(observed, (scale * np.tan(middle))[:, None] * push)
        above = (np.where(n > 0, contrast, 0.0) * rates).sum(axis=1) > value
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return _tilted(observed, (scale * np.tan(0.5 * (low + high)))[:, None] * push)


def _tilted(observed: FloatArray, kappa: FloatArray) -> FloatArray:
    """Root p in [0, 1] of observed - p = kappa p (1 - p), without cancellation."""

    def small(rate: FloatArray, k: FloatArray) -> FloatArray:
        root = np.sqrt(np.maximum((1.0 + k) ** 2 - 4.0 * k * rate, 0.0))
        return 2.0 * rate / (1.0 + k + root)

    size = np.abs(kappa)
    return np.where(kappa >= 0, small(observed, size), 1.0 - small(1.0 - observed, size))


def probability(x: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """P(X = x) of binomial counts, zero outside 0 to n."""
    k = np.clip(x, 0.0, n)
    ways = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    log = ways + special.xlogy(k, rate) + special.xlog1py(n - k, -rate)
    return np.where(k == x, np.exp(log), 0.0)


def upper_tail(x: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """P(X >= x) of binomial counts, for any whole number x."""
    k = np.clip(x, 1.0, np.maximum(n, 1.0))
    inside = special.betainc(k, np.maximum(n - k, 0.0) + 1.0, rate)
    return np.where(x <= 0, 1.0, np.where(x > n, 0.0, inside))


def log_ways(n: AnyArray | float, k: AnyArray) -> FloatArray:
    """Logarithm of the number of ways to choose `k` of `n`."""
    return np.asarray(
        special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    )
