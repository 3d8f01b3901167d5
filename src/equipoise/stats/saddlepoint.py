r"""Tail probabilities of a contrast of binomial counts, by the saddlepoint.

The relative error of a binomial tail is below a tenth down to probabilities of one in 100,000, also
with one expected event, and beyond that on the cautious side: what a normal approximation cannot
offer.

References
----------
.. [1] R. Lugannani and S. Rice (1980), Saddle point approximation for the distribution of the sum
   of independent random variables, Advances in Applied Probability 12, 475-490,
   doi:10.2307/1426607.
.. [2] O. E. Barndorff-Nielsen (1986), Inference on full or partial parameters based on the
   standardized signed log likelihood ratio, Biometrika 73, 307-322, doi:10.1093/biomet/73.2.307.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from equipoise._typing import FloatArray

__all__ = ["FARTHEST", "Side", "tail_root"]

FARTHEST = 37.0
"""Normal quantile beyond any p-value that is printed; a result holds no infinities."""

# Where the saddlepoint is so close to zero that its correction is a difference of equals.
_NEAR_MEAN = 0.01


class Side(NamedTuple):
    """A binomial count and its coefficient in a contrast.

    Parameters
    ----------
    coefficient, n, rate : array of shape (m,)
        Of m contrasts.
    """

    coefficient: FloatArray
    n: FloatArray
    rate: FloatArray


def tail_root(excess: FloatArray, sides: tuple[Side, ...], normal: FloatArray) -> FloatArray:
    r"""Normal quantile of the probability that a centred contrast is at least `excess`.

    The contrast is a sum over binomial `sides` and a normal variable with variance `normal`. The
    form is that of [2]_, :math:`r + \log(u / r) / r` with r the signed root of twice the exponent
    and u the saddlepoint in standard errors, and its limit at r = 0.

    Parameters
    ----------
    excess : array of shape (m,)
        Where the upper tail begins.
    sides : tuple of Side
        Counts; each is centred at its mean.
    normal : array of shape (m,)
        Variance of the normal part; zero without one.

    Returns
    -------
    array of shape (m,)

    References
    ----------
    .. [2] O. E. Barndorff-Nielsen (1986), Inference on full or partial parameters based on the
       standardized signed log likelihood ratio, Biometrika 73, 307-322,
       doi:10.1093/biomet/73.2.307.

    Examples
    --------
    How likely are three or more events among 100 rows when one in a hundred is expected? With half
    a row for continuity:

    >>> side = Side(np.ones(1), np.array([100.0]), np.array([0.01]))
    >>> root = tail_root(np.array([3.0 - 1.0 - 0.5]), (side,), np.zeros(1))
    >>> print(f"{special.ndtr(-root)[0]:.4f}")
    0.0844

    The exact probability is .0794.
    """
    low = high = np.where(normal > 0.0, np.inf, 0.0)
    variance = normal.copy()
    for a, n, p in sides:
        down, up = np.where(a > 0.0, p, 1.0 - p), np.where(a > 0.0, 1.0 - p, p)
        low, high = low + np.abs(a) * n * down, high + np.abs(a) * n * up
        variance += a**2 * n * p * (1.0 - p)
    root = np.where(excess > 0.0, FARTHEST, -FARTHEST)
    inside = (excess > -low * (1.0 - 1e-12)) & (excess < high * (1.0 - 1e-12))
    proper = np.flatnonzero(inside & (variance > 0.0))
    sides = tuple(Side(*(part[proper] for part in side)) for side in sides)
    y, normal = excess[proper], normal[proper]
    t = _saddlepoint(y, sides, normal, variance[proper])
    cumulant, second, third = 0.5 * normal * t**2, normal.copy(), np.zeros_like(normal)
    for a, n, p in sides:
        w = special.expit(special.logit(p) + a * t)
        cumulant += n * _log_mean_exp(a * t, p)
        second += a**2 * n * w * (1.0 - w)
        third += a**3 * n * w * (1.0 - w) * (1.0 - 2.0 * w)
    r = np.sign(t) * np.sqrt(np.maximum(2.0 * (t * y - cumulant), 0.0))
    near = np.abs(r) < _NEAR_MEAN
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = np.log(t * np.sqrt(second) / r) / r
        root[proper] = r + np.where(near, third / second**1.5 / 6.0, correction)
    return np.clip(root, -FARTHEST, FARTHEST)


def _saddlepoint(
    y: FloatArray, sides: tuple[Side, ...], normal: FloatArray, variance: FloatArray
) -> FloatArray:
    """Where the derivative of the cumulant generating function is y: Newton inside a bracket."""
    unit = 1.0 / np.max([np.abs(side.coefficient) for side in sides], axis=0)
    t = np.clip(y / variance, -unit, unit)
    low, high = np.full_like(t, -np.inf), np.full_like(t, np.inf)
    active = np.arange(len(t))
    for _ in range(200):
        if not len(active):
            break
        now = t[active]
        slope, bend = normal[active] * now - y[active], normal[active].copy()
        for side in sides:
            a, n, p = (part[active] for part in side)
            w = special.expit(special.logit(p) + a * now)
            slope += a * n * (w - p)
            bend += a * a * n * w * (1.0 - w)
        low[active] = np.where(slope < 0.0, now, low[active])
        high[active] = np.where(slope < 0.0, high[active], now)
        farthest = 2.0 * np.abs(now) + unit[active]
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.clip(now - slope / bend, -farthest, farthest)
            middle = 0.5 * (low[active] + high[active])
        beyond = (step < low[active]) | (step > high[active])
        t[active] = np.where(beyond, middle, step)
        active = active[np.abs(t[active] - now) > 1e-10 * np.abs(now) + 1e-14 * unit[active]]
    return t


def _log_mean_exp(s: FloatArray, p: FloatArray) -> FloatArray:
    """Log of E exp(s (B - p)) for a 0/1 variable B with rate p, without overflow."""
    size, rate = np.abs(s), np.where(s > 0.0, 1.0 - p, p)
    certain = rate == 1.0
    log = np.log1p(np.where(certain, 0.0, rate) * np.expm1(-size))
    return np.asarray(np.where(certain, -size, log) + size * rate)
