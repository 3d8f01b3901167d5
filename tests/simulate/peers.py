"""Intervals and tests that people use instead, on arrays of tables."""

import numpy as np
from scipy import stats


def t_interval(u, w):
    """Mean, CR1 variance and t with one degree less than there are units."""
    n, size = (w > 0).sum(-1), w.sum(-1)
    mean = u.sum(-1) / size
    variance = np.sum((u - mean[..., None] * w) ** 2, axis=-1) / size**2 * n / (n - 1)
    reach = stats.t.ppf(0.975, n - 1) * np.sqrt(variance)
    return mean - reach, mean + reach


def korn_graubard(u, w, rows):
    """Clopper-Pearson at the effective size of the design (Korn and Graubard 1998).

    As `svyciprop(method = "beta")` of the R package survey: rate (1 - rate) over the variance of
    the design, times the square of the quotient of t quantiles for `rows` and for units.
    """
    n, size = (w > 0).sum(-1), w.sum(-1)
    p = u.sum(-1) / size
    variance = np.sum((u - p[..., None] * w) ** 2, axis=-1) / size**2 * n / (n - 1)
    whole = np.broadcast_to(np.asarray(rows, dtype=float), p.shape)
    effective = np.divide(p * (1 - p), variance, out=whole.copy(), where=variance > 0)
    effective *= (stats.t.ppf(0.975, whole - 1) / stats.t.ppf(0.975, n - 1)) ** 2
    return _clopper_pearson(p, effective)


def kish(u, w):
    """Clopper-Pearson at (sum w)^2 / sum w^2, whatever the outcomes."""
    size = w.sum(-1)
    return _clopper_pearson(u.sum(-1) / size, size**2 / np.sum(w**2, axis=-1))


def _clopper_pearson(p, n):
    x, tiny = p * n, 1e-9
    low = stats.beta.ppf(0.025, np.maximum(x, tiny), n - x + 1)
    high = stats.beta.ppf(0.975, x + 1, np.maximum(n - x, tiny))
    return np.where(x > 0, low, 0.0), np.where(x < n, high, 1.0)


def covers(ends, value):
    """Whether intervals hold a value."""
    return (ends[0] <= value) & (value <= ends[1])


def welch(difference, v1, v2, n1, n2):
    """Interval of a difference of two means with variances v1, v2 from n1, n2 values."""
    with np.errstate(invalid="ignore"):
        df = (v1 + v2) ** 2 / (v1**2 / (n1 - 1) + v2**2 / (n2 - 1))
    reach = stats.t.ppf(0.975, df) * np.sqrt(v1 + v2)
    return difference - reach, difference + reach


def welch_of_rest(u, w):
    """Welch's interval of group minus rest, for every group of tables of rows."""
    n, total, square = w.sum(-1), u.sum(-1), np.sum(u**2, axis=-1)
    rest = [x.sum(-1, keepdims=True) - x for x in (n, total, square)]
    mean, variance, size = [], [], []
    for k, s, q in ((n, total, square), rest):
        mean.append(s / k)
        variance.append((q - s**2 / k) / (k - 1) / k)
        size.append(k)
    return welch(mean[0] - mean[1], *variance, *size)


def welch_james(mean, variance, df):
    """P-value of Welch (1951) that all means are equal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = 1.0 / variance
        total = weight.sum(-1, keepdims=True)
        centre = (weight * mean).sum(-1, keepdims=True) / total
        spread = np.sum((1 - weight / total) ** 2 / df, axis=-1)
        g = mean.shape[-1]
        between = np.sum(weight * (mean - centre) ** 2, axis=-1) / (g - 1)
        f = between / (1 + 2 * (g - 2) / (g**2 - 1) * spread)
        return stats.f.sf(f, g - 1, (g**2 - 1) / (3 * spread))
