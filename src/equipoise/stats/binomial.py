r"""Tests of proportions from counts, for many groups at once.

The empirical likelihood of a 0/1 variable is the binomial likelihood, so that counts are
sufficient and every solution is in closed form or one-dimensional. Unlike pure empirical
likelihood, the binomial deviance stays finite when a group has only zeros or only ones.

Functions take arrays and return arrays of the same shape.
"""

import numpy as np
from scipy import special

from equipoise._typing import FloatArray

__all__ = [
    "clopper_pearson",
    "constrained_rates",
    "contrast_score",
    "deviance",
    "difference_fit",
    "difference_tail",
    "exact_tail",
    "signed_deviance",
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
    greater = _at_least(successes, n, c)
    less = _at_least(n - successes, n, 1.0 - c)
    if mid:
        half = 0.5 * (greater + less - 1.0)
        return greater - half, less - half
    return greater, less


def clopper_pearson(
    successes: FloatArray | float, n: FloatArray | float, *, tail: float
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of proportions, each missed with probability at most `tail`.

    Parameters
    ----------
    successes, n : array
        Counts, of any shapes that broadcast.
    tail : float
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
       Medicine 4, 213-226.
    """
    d = np.clip(difference, -1.0, 1.0)
    n, x = n1 + n2, x1 + x2
    l2 = (n1 + 2.0 * n2) * d - n - x
    l1 = (n2 * d - n - 2.0 * x2) * d + x
    l0 = x2 * d * (1.0 - d)
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


_WINDOW = 256
_TINY = 5


def difference_tail(
    x: tuple[FloatArray, FloatArray],
    n: tuple[FloatArray, FloatArray],
    rate: tuple[FloatArray, FloatArray],
    weight: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    r"""Exact one-sided p-values of a weighted difference of two binomial counts at given rates.

    With :math:`D = a X - b Y` the p-values are P(D >= observed) and P(D <= observed); with fewer
    than five rows in the smaller sample at least those of that sample alone, unless the larger one
    rules the rates out by itself. At the most likely rates under the null this is the test for
    groups too small for any approximation: one person who was selected proves nothing, whatever
    the score statistic says.

    In all samples of up to 12 against 5 to 2000 rows the size of a nominal 5% test is at most .05
    with fewer than five rows, and otherwise at most .07 two-sided and .09 one-sided (.05 on average
    over rates), like that of a mid-P test.

    Parameters
    ----------
    x, n, rate : pair of arrays
        Observed ones, rows and hypothesised rates of the two samples.
    weight : pair of arrays
        a and b, positive.

    Returns
    -------
    greater, less : array
        NaN where the smaller sample spreads over more than 256 counts; the normal approximation
        serves there.

    Examples
    --------
    One of one against 30 of 300: is that more than the same rate?

    >>> one = tuple(np.array([value]) for value in (1.0, 30.0))
    >>> rows = tuple(np.array([value]) for value in (1.0, 300.0))
    >>> pooled = (np.array([31 / 301]),) * 2
    >>> greater, _ = difference_tail(one, rows, pooled, (1.0 / rows[0], 1.0 / rows[1]))
    >>> print(f"{greater[0]:.2f}")
    0.10
    """
    swap = n[1] < n[0]
    (x1, x2), (n1, n2), (p1, p2), (a, b) = (
        (np.where(swap, pair[1], pair[0]), np.where(swap, pair[0], pair[1]))
        for pair in (x, n, rate, weight)
    )
    spread = n1 * p1 * (1.0 - p1)
    # The smaller sample is enumerated around its mean, the other enters by its distribution.
    width = int(min(np.max(n1, initial=0.0) + 1, _WINDOW))
    first = np.clip(np.round(n1 * p1) - width // 2, 0, np.maximum(n1 + 1 - width, 0))
    count = first[:, None] + np.arange(width)
    chance = _probability(count, n1[:, None], p1[:, None])
    edge = x2[:, None] + (a / b)[:, None] * (count - x1[:, None])
    least = np.ceil(edge - 1e-9)
    above = _at_least(least, n2[:, None], p2[:, None])
    tie = np.where(least - edge <= 1e-9, _probability(least, n2[:, None], p2[:, None]), 0.0)
    below = 1.0 - above + tie
    # Fitted rates follow a large sample, which then breaks ties of the small one by a coin: a
    # mid-P value, right on average over rates. That is not enough for a handful of people.
    tiny = n1 < _TINY
    up = np.where(tiny, _at_least(x1, n1, p1), 0.0)
    down = np.where(tiny, _at_least(n1 - x1, n1, 1.0 - p1), 0.0)
    # Unless the other sample rules the null out by itself, whatever the handful says.
    up = np.minimum(up, 2.0 * _at_least(n2 - x2, n2, 1.0 - p2))
    down = np.minimum(down, 2.0 * _at_least(x2, n2, p2))
    low = np.maximum((chance * below).sum(axis=1), up)
    high = np.maximum((chance * above).sum(axis=1), down)
    greater, less = np.where(swap, high, low), np.where(swap, low, high)
    wide = spread > 400.0
    return np.where(wide, np.nan, greater), np.where(wide, np.nan, less)


def _probability(x: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """P(X = x), zero outside 0 to n."""
    k = np.clip(x, 0.0, n)
    ways = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    log = ways + special.xlogy(k, rate) + special.xlog1py(n - k, -rate)
    return np.where(k == x, np.exp(log), 0.0)


def _at_least(x: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """P(X >= x), for any whole number x."""
    k = np.clip(x, 1.0, np.maximum(n, 1.0))
    inside = special.betainc(k, np.maximum(n - k, 0.0) + 1.0, rate)
    return np.where(x <= 0, 1.0, np.where(x > n, 0.0, inside))


def contrast_score(
    gap: FloatArray, n: FloatArray, rates: FloatArray, group: FloatArray, target: FloatArray
) -> FloatArray:
    r"""Signed root of the score statistic for the contrast of two averages of rates.

    Samples are, for instance, the rows in the group only, in both, and in the target only. A row
    of sample r adds :math:`a_r (y - p_G) - b_r (y - p_R)` with p_G and p_R the fitted averages; the
    variance of the sum is taken at the fitted rates and allows for the random sizes of the
    samples. With two samples this is the score statistic of Miettinen and Nurminen.

    Parameters
    ----------
    gap : array of shape (m,)
        Observed minus hypothesised contrast.
    n, rates : array of shape (m, k)
        Rows and fitted rates of the samples.
    group, target : array of shape (m, k)
        a and b: what a row of the sample weighs in the average of the group, and in that of the
        target times the derivative of the hypothesis.

    Returns
    -------
    array of shape (m,)
    """
    mean_group = _average(rates, n * group)
    mean_target = _average(rates, n * target)
    at_zero = target * mean_target - group * mean_group
    at_one = at_zero + group - target
    variance = (n * (rates * at_one**2 + (1.0 - rates) * at_zero**2)).sum(axis=1)
    total = n.sum(axis=1)
    # Miettinen and Nurminen's factor makes the variance of the pooled case unbiased.
    variance *= total / np.maximum(total - 1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = gap / np.sqrt(variance)
    return np.where(gap == 0.0, 0.0, root)


def _average(rates: FloatArray, weight: FloatArray) -> FloatArray:
    total = weight.sum(axis=1, keepdims=True)
    average = (weight * rates).sum(axis=1, keepdims=True) / np.where(total > 0, total, 1.0)
    return np.asarray(average)
