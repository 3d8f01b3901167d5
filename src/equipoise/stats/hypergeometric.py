r"""Ones among rows drawn from a finite table: the law of a count given all margins.

Of n rows, some are ones and `size` are drawn; X is the number of ones among those drawn. Arrays in,
arrays out, one entry for each table.
"""

import numpy as np
from scipy import special

from equipoise._typing import AnyArray, FloatArray

__all__ = ["log_mean", "smallest_tails", "tails"]

_TERMS = 4_000_000
# A window of this many standard deviations (and rows) about the largest term leaves out less than
# 1e-15 of a log-concave sum.
_DEVIATIONS, _ROWS = 9.0, 12.0


def log_mean(n: AnyArray, ones: AnyArray, size: AnyArray, bet: AnyArray) -> FloatArray:
    r"""Logarithm of :math:`E e^{\beta X}` for hypergeometric X.

    Parameters
    ----------
    n, ones, size : array of shape (m,)
        Rows, ones among them, and rows drawn.
    bet : array of shape (K,)
        Values of :math:`\beta`.

    Returns
    -------
    array of shape (m, K)

    Notes
    -----
    Terms are summed in a window about the largest one, which for large batches is many standard
    deviations from the mean: a window about the mean would miss it, and the factor would then be no
    e-value. The summands are log-concave; those left out add less than 1e-15.

    Examples
    --------
    >>> log_mean([2], [1], [1], [np.log(3.0)]).round(6).tolist()
    [[0.693147]]

    One of two is drawn and one of two is a one: (1 + 3) / 2 = 2.
    """
    table = np.stack([np.asarray(part, dtype=np.float64) for part in (n, ones, size)], axis=1)
    distinct, where = np.unique(table, axis=0, return_inverse=True)
    beta = np.asarray(bet, dtype=np.float64)
    result = np.empty((len(distinct), len(beta)))
    # X is a sum of at most `most` independent trials, so that its variance is at most most / 4.
    most = np.minimum(distinct[:, 1], distinct[:, 2])
    width = np.minimum(most, _DEVIATIONS * np.sqrt(most) + 2.0 * _ROWS)
    order = np.argsort(width, kind="stable")
    first = 0
    while first < len(order):
        # As many tables at once as fit; they have about the same width.
        step = max(1, int(_TERMS / len(beta) / (1.5 * width[order[first]] + 16.0)))
        last = min(first + step, len(order))
        rows = order[first:last]
        result[rows] = _log_mean(distinct[rows], beta)
        first = last
    return result[where.reshape(-1)]


def _log_mean(table: FloatArray, beta: FloatArray) -> FloatArray:
    n, ones, size = table[:, :1], table[:, 1:2], table[:, 2:]
    # Zeros that are not drawn, when no one is.
    spare = n - size - ones
    odds = np.exp(beta)
    # Largest x with odds (ones - x + 1)(size - x + 1) >= x (spare + x).
    b = odds * (ones + size + 2.0) + spare
    c = odds * (ones + 1.0) * (size + 1.0)
    root = 2.0 * c / (b + np.sqrt(np.maximum(b**2 - 4.0 * (odds - 1.0) * c, 0.0)))
    low, high = np.maximum(0.0, -spare), np.minimum(size, ones)
    mode = np.clip(np.floor(root), low, high)
    reach = _reach(mode, n, ones, size)
    start, end = np.maximum(low, mode - reach), np.minimum(high, mode + reach)
    x = start[..., None] + np.arange(int((end - start).max(initial=0.0)))
    ratio = (ones[..., None] - x) * (size[..., None] - x)
    ratio /= (x + 1.0) * (spare[..., None] + x + 1.0)
    with np.errstate(divide="ignore"):
        steps = np.where(
            x < end[..., None], np.log(np.maximum(ratio, 0.0)) + beta[:, None], -np.inf
        )
    terms = np.concatenate([np.zeros((*start.shape, 1)), np.cumsum(steps, axis=-1)], axis=-1)
    anchor = _log_probability(start, n, ones, size)
    return np.asarray(anchor + beta * start + special.logsumexp(terms, axis=-1))


def _log_choose(n: FloatArray, k: FloatArray) -> FloatArray:
    return np.asarray(-np.log1p(n) - special.betaln(n - k + 1.0, k + 1.0))


def tails(
    x: AnyArray, n: AnyArray, ones: AnyArray, size: AnyArray
) -> tuple[FloatArray, FloatArray]:
    r"""Exact one-sided p-values of a hypergeometric count.

    Parameters
    ----------
    x, n, ones, size : array of shape (m,)
        Observed count, rows, ones among them, and rows drawn.

    Returns
    -------
    greater, less : array of shape (m,)
        P(X >= x) and P(X <= x).

    Examples
    --------
    Eight cups of tea, four with milk first, all four named rightly:

    >>> greater, less = tails([4], [8], [4], [4])
    >>> print(f"{greater[0]:.4f} {less[0]:.4f}")
    0.0143 1.0000
    """
    k, total, s, drawn = (np.asarray(part, dtype=np.float64) for part in (x, n, ones, size))
    mode = np.floor((s + 1.0) * (drawn + 1.0) / (total + 2.0))
    up = k >= mode
    # The lower tail of X is the upper tail of the ones that were not drawn.
    far = np.empty(len(k))
    point = np.exp(_log_probability(k, total, s, drawn))
    width = _reach(mode, total, s, drawn)
    order = np.argsort(width, kind="stable")
    first = 0
    while first < len(order):
        step = max(1, int(_TERMS / (width[order[first]] * 2.0 + 16.0)))
        rows = order[first : first + step]
        far[rows] = _outer_sum(
            np.where(up, k, s - k)[rows],
            total[rows],
            s[rows],
            np.where(up, drawn, total - drawn)[rows],
            int(width[rows].max()),
        )
        first += step
    far = np.minimum(point * far, 1.0)
    near = np.minimum(1.0 - far + point, 1.0)
    return np.where(up, far, near), np.where(up, near, far)


def _outer_sum(
    x: FloatArray, n: FloatArray, ones: FloatArray, size: FloatArray, width: int
) -> FloatArray:
    """P(X >= x) / P(X = x)."""
    at = x[:, None] + np.arange(width)
    spare = (n - size - ones)[:, None]
    ratio = (ones[:, None] - at) * (size[:, None] - at) / ((at + 1.0) * (spare + at + 1.0))
    return np.asarray(1.0 + np.cumprod(np.maximum(ratio, 0.0), axis=1).sum(axis=1))


def _reach(mode: FloatArray, n: FloatArray, ones: FloatArray, size: FloatArray) -> FloatArray:
    curvature = 1.0 / (mode + 1.0) + 1.0 / (size - mode + 1.0)
    curvature = curvature + 1.0 / (ones - mode + 1.0) + 1.0 / (n - size - ones + mode + 1.0)
    return np.asarray(np.ceil(_DEVIATIONS / np.sqrt(curvature) + _ROWS))


def smallest_tails(n: AnyArray, ones: AnyArray, size: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Smallest p-values that the margins allow.

    Parameters
    ----------
    n, ones, size : array of shape (m,)
        As in `tails`.

    Returns
    -------
    greater, less : array of shape (m,)
        Of the largest and of the smallest possible count.

    Examples
    --------
    >>> greater, less = smallest_tails([8], [4], [4])
    >>> print(f"{greater[0]:.4f} {less[0]:.4f}")
    0.0143 0.0143
    """
    total, s, drawn = (np.asarray(part, dtype=np.float64) for part in (n, ones, size))
    most, least = np.minimum(s, drawn), np.maximum(0.0, s + drawn - total)
    return (
        np.exp(_log_probability(most, total, s, drawn)),
        np.exp(_log_probability(least, total, s, drawn)),
    )


def _log_probability(
    x: FloatArray, n: FloatArray, ones: FloatArray, size: FloatArray
) -> FloatArray:
    return _log_choose(size, x) + _log_choose(n - size, ones - x) - _log_choose(n, ones)
