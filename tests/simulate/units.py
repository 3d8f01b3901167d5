"""Tables of few units, many at once: sums of rows, clusters and weighted rows with a true null.

Every function returns totals `(u, w)` of units, axes (replication, group, unit), whose unit means
have the mean that is returned with them. Units that do not exist have w = 0.
"""

import numpy as np
from scipy import stats

from equipoise.stats.disparity.means import MeanComparison
from equipoise.stats.small_samples import pooled_shape
from equipoise.stats.unit_sums import CrossSums, UnitSums


def _zero_inflated(rng, size, share=0.2):
    return rng.exponential(size=size) * (rng.random(size) < share)


def _outliers(rng, size):
    return rng.standard_normal(size) + 20.0 * (rng.random(size) < 0.02)


_LIKERT = 0.03, 0.03, 0.04, 0.2, 0.7

LAWS = {
    "normal": (lambda rng, size: rng.standard_normal(size), 0.0),
    "exponential": (lambda rng, size: rng.exponential(size=size), 1.0),
    "mirrored exponential": (lambda rng, size: 2.0 - rng.exponential(size=size), 1.0),
    "lognormal": (lambda rng, size: rng.lognormal(size=size), float(np.exp(0.5))),
    "zero-inflated": (_zero_inflated, 0.2),
    "t3": (lambda rng, size: rng.standard_t(3, size), 0.0),
    "poisson .4": (lambda rng, size: rng.poisson(0.4, size).astype(float), 0.4),
    "poisson .05": (lambda rng, size: rng.poisson(0.05, size).astype(float), 0.05),
    "uniform": (lambda rng, size: rng.random(size), 0.5),
    "gamma .6": (lambda rng, size: rng.gamma(0.6, size=size), 0.6),
    "weibull .8": (lambda rng, size: rng.weibull(0.8, size), 1.1330030963193474),
    "left beta": (lambda rng, size: rng.beta(4.0, 0.7, size), 4.0 / 4.7),
    "lognormal 1.5": (lambda rng, size: rng.lognormal(sigma=1.5, size=size), float(np.exp(1.125))),
    "95% zeros": (lambda rng, size: _zero_inflated(rng, size, 0.05), 0.05),
    "outliers": (_outliers, 0.4),
    "pareto 2.5": (lambda rng, size: rng.pareto(2.5, size), 1.0 / 1.5),
    "gamma .3": (lambda rng, size: rng.gamma(0.3, size=size), 0.3),
    "weibull .6": (lambda rng, size: rng.weibull(0.6, size), 1.5045755),
    "pareto 3.5": (lambda rng, size: rng.pareto(3.5, size), 1.0 / 2.5),
    "outliers on both sides": (
        lambda rng, size: rng.standard_normal(size) * np.where(rng.random(size) < 0.02, 10.0, 1.0),
        0.0,
    ),
    "negative binomial": (lambda rng, size: rng.negative_binomial(0.5, 0.2, size) * 1.0, 2.0),
    "u-shaped": (lambda rng, size: rng.beta(0.2, 0.2, size), 0.5),
    "one in a hundred": (lambda rng, size: (rng.random(size) < 0.01) * 1.0, 0.01),
    "likert": (lambda rng, size: 1.0 + rng.choice(5, size, p=_LIKERT), 4.51),
    "inverse gaussian": (lambda rng, size: rng.wald(1.0, 1.2, size), 1.0),
}
"""Values of rows: how they are drawn, and their mean."""


def rows(rng, law, sizes, n_tables):
    """Independent rows of one law in groups of the given sizes."""
    draw, mean = LAWS[law]
    w = (np.arange(max(sizes)) < np.asarray(sizes)[:, None]).astype(float)
    u = draw(rng, (n_tables, *w.shape)) * w
    return u, np.broadcast_to(w, u.shape), mean


def weighted_rows(rng, law, n, n_groups, cv, n_tables, *, rate=None):
    """Rows with lognormal weights of a given coefficient of variation."""
    shape = (n_tables, n_groups, n)
    w = rng.lognormal(0.0, np.sqrt(np.log1p(cv**2)), shape)
    if rate is not None:
        return w * (rng.random(shape) < rate), w, rate
    draw, mean = LAWS[law]
    return w * draw(rng, shape), w, mean


def rates_that_go_with_weights(rng, n, n_groups, cv, n_tables, *, rate, heavy_rate):
    """0/1 rows; those with the quarter of largest weights have another rate."""
    shape, sd = (n_tables, n_groups, n), np.sqrt(np.log1p(cv**2))
    z = rng.standard_normal(shape)
    heavy = z > stats.norm.ppf(0.75)
    w = np.exp(sd * z)
    u = w * (rng.random(shape) < np.where(heavy, heavy_rate, rate))
    return u, w, rate + (heavy_rate - rate) * stats.norm.cdf(sd - stats.norm.ppf(0.75))


def clusters(rng, n_clusters, n_groups, n_tables, *, icc, rate=None, rows_each=20, size_cv=0.0):
    """Clusters inside groups: 0/1 rows of a given rate, or lognormal rows."""
    shape = (n_tables, n_groups, n_clusters)
    w = np.full(shape, float(rows_each))
    if size_cv:
        w = np.maximum(1.0, np.round(rng.gamma(size_cv**-2.0, rows_each * size_cv**2, shape)))
    if rate is not None:
        concentration = 1.0 / icc - 1.0
        p = rng.beta(rate * concentration, (1.0 - rate) * concentration, shape)
        return rng.binomial(w.astype(int), p).astype(float), w, rate
    effect = np.sqrt(icc) * rng.standard_normal(shape)
    u = np.zeros(shape)
    for row in range(int(w.max())):
        noise = np.sqrt(1.0 - icc) * rng.standard_normal(shape)
        u += np.where(row < w, np.exp(effect + noise), 0.0)
    return u, w, float(np.exp(0.5))


def spanning_clusters(rng, n_clusters, n_groups, n_tables, *, icc, rate=0.3, rows_each=60):
    """Clusters with rows in every group; axes (replication, cluster, group)."""
    w = rng.multinomial(rows_each, np.full(n_groups, 1.0 / n_groups), (n_tables, n_clusters))
    concentration = 1.0 / icc - 1.0
    p = rng.beta(rate * concentration, (1.0 - rate) * concentration, (n_tables, n_clusters, 1))
    return rng.binomial(w, p).astype(float), w.astype(float), rate


def against_known(u, w, value, *, rule="checked", scale="difference"):
    """Groups against the true value."""
    sums = UnitSums.of_units(u, w)
    return MeanComparison.with_known(
        sums, pooled_shape(sums).expand(), value, rule=rule, scale=scale
    )


def against_population(u, w, *, rule="checked", scale="difference", centre=0.0, population=True):
    """Groups of a partition against everyone, or everyone else; no unit spans groups."""
    sums = UnitSums.of_units(u, w, centre=centre)
    return MeanComparison.with_rest(
        sums,
        sums.sum().expand(-1) - sums,
        pooled_shape(sums).expand(),
        population=population,
        rule=rule,
        scale=scale,
    )


def spanning_population(u, w, *, rule="checked"):
    """Groups against everyone when all units span groups; axes (replication, unit, group)."""
    rest_u, rest_w = u.sum(axis=-1, keepdims=True) - u, w.sum(axis=-1, keepdims=True) - w
    group = UnitSums.of_units(u, w, axis=-2)
    rest = UnitSums.of_units(rest_u, rest_w, axis=-2)
    sides = [np.swapaxes(np.stack(pair, axis=-1), -2, -3) for pair in ((u, rest_u), (w, rest_w))]
    return MeanComparison.with_rest(
        group,
        rest,
        pooled_shape(group).expand(),
        population=True,
        cross=CrossSums.of_units(*sides),
        rule=rule,
    )
