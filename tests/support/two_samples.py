"""All tables of two samples, and the size and power of tests of them by enumeration."""

import numpy as np
from scipy import stats

from equipoise.stats.pairs import Pairs

RATES = np.unique(
    np.concatenate([np.geomspace(1e-4, 0.1, 25), np.linspace(0.12, 0.88, 39)]).tolist()
    + (1.0 - np.geomspace(0.1, 1e-4, 25)).tolist()
)


def all_tables(n1, n2, most=np.inf):
    """Counts x1 and x2 up to `most` of every table, flat, and the shape that makes them a grid."""
    each = (np.arange(min(n, most) + 1.0) for n in (n1, n2))
    x1, x2 = np.meshgrid(*each, indexing="ij")
    return x1.ravel(), x2.ravel(), x1.shape


def every_root(n1, n2, nulls, *, scale="difference", most=np.inf, **options):
    """Roots for "greater" and "less" of every table at each null, of shape (n1 + 1, n2 + 1)."""
    x1, x2, shape = all_tables(n1, n2, most)
    one = np.ones_like(x1)
    pairs = Pairs.of(x1, one * n1, x2, one * n2, scale=scale, **options)
    which = np.arange(len(x1))
    for null in nulls:
        yield tuple(pairs.root(one * null, which, tail).reshape(shape) for tail in (1, -1))


def chances(n1, n2, first, second):
    """Probability of every table."""
    return np.outer(
        stats.binom.pmf(np.arange(n1 + 1), n1, first),
        stats.binom.pmf(np.arange(n2 + 1), n2, second),
    )


def largest_sizes(n1, n2, nulls, alphas, *, scale="difference", **options):
    """Largest size over alpha and over rates that obey a null: greater, less, two-sided."""
    size = np.zeros((len(alphas), 3))
    for null, (up, down) in zip(
        nulls, every_root(n1, n2, nulls, scale=scale, **options), strict=True
    ):
        greater, less = stats.norm.sf(up), stats.norm.cdf(down)
        two = 2.0 * np.minimum(greater, less)
        for rate in RATES:
            first = rate * null if scale == "ratio" else rate + null
            if 0.0 <= first <= 1.0:
                chance = chances(n1, n2, first, rate)
                rejected = [[chance[p <= a].sum() for p in (greater, less, two)] for a in alphas]
                size = np.maximum(size, rejected)
    return size / np.asarray(alphas)[:, None]
