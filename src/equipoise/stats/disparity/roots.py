r"""Signed roots of the tests of one disparity, for all groups at once.

Each function takes a `Comparison` and returns ``root(null, which, tail)``: the square root of the
statistic at the hypothesised disparity, positive where the estimate is above it. P-values, one
and two-sided, equivalence tests and intervals all follow from it.
"""

import numpy as np

from equipoise._typing import BoolArray, FloatArray, IntArray
from equipoise.stats.binomial import (
    constrained_rates,
    deviance,
    difference_fit,
    signed_deviance,
)
from equipoise.stats.disparity.likelihoods import Samples, likelihood
from equipoise.stats.disparity.rates import Counts
from equipoise.stats.disparity.references import Comparison
from equipoise.stats.inversion import SignedRoot

__all__ = [
    "euclidean_root",
    "external_deviance_root",
    "influence_el_root",
    "known_deviance_root",
    "pure_el_root",
    "two_sample_deviance_root",
]


def euclidean_root(c: Comparison) -> SignedRoot:
    r"""Root of the Euclidean likelihood of the influence-function moments.

    :math:`n \bar u^2 / \widehat{\mathrm{Var}}(u)`, which needs first and second moments only.
    It is bounded in small groups: with three rows it cannot reject at 5%.
    """

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        tau, _ = c.hypothesised(null, which)
        total = c.group[which, 0] - tau * c.group[which, 1]
        spread = c.spread(null, which) - total**2 / c.n_units
        with np.errstate(divide="ignore", invalid="ignore"):
            value = total / np.sqrt(np.maximum(spread, 0.0))
        return np.where(total == 0.0, 0.0, value)

    return root


def known_deviance_root(c: Comparison) -> SignedRoot:
    """Root of the binomial deviance at a value of the group that is taken as known."""

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        tau, _ = c.hypothesised(null, which)
        return signed_deviance(c.group[which, 0], c.group[which, 1], tau)

    return root


def pure_el_root(c: Comparison) -> SignedRoot:
    """Root of the paper's statistic: the deviance, infinite in groups of only zeros or ones."""
    regular = known_deviance_root(c)

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:
        x, n = c.group[which].T
        value = regular(null, which, tail)
        return np.where((x > 0) & (x < n), value, np.copysign(np.inf, value))

    return root


def external_deviance_root(c: Comparison) -> SignedRoot:
    r"""Root of the deviance profiled over an external target, 0/1 metric.

    The statistic is :math:`\min_\theta l_G(\tau(\theta)) + ((\theta - \hat\theta) / se)^2`.
    """

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        x, n = c.group[which, 0], c.group[which, 1]
        centre = c.target_value[which]
        ratio = c.scale == "ratio"
        rate = null if ratio else np.ones_like(null)
        shift = np.zeros_like(null) if ratio else null
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = -shift / rate, (1.0 - shift) / rate
        for _ in range(60):
            theta = 0.5 * (low + high)
            tau = shift + rate * theta
            # Derivative of the sum times tau (1 - tau) / 2, which keeps its sign.
            pull = (theta - centre) / c.target_variance * tau * (1.0 - tau)
            right = rate * (n * tau - x) + pull > 0
            low, high = np.where(right, low, theta), np.where(right, theta, high)
        theta = 0.5 * (low + high)
        statistic = deviance(x, n, shift + rate * theta)
        statistic += (theta - centre) ** 2 / c.target_variance
        return np.asarray(np.sign(x / n - shift - rate * centre) * np.sqrt(statistic))

    return root


def two_sample_deviance_root(c: Comparison) -> SignedRoot:
    """Root of the likelihood ratio of two disjoint binomial samples: profile EL of a 0/1 metric."""

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        (x1, n1), (x2, n2) = c.group[which].T, c.target[which].T
        if c.scale == "ratio":
            fit = constrained_rates(
                np.stack([x1, x2], axis=1),
                np.stack([n1, n2], axis=1),
                np.stack([np.ones_like(null), -null], axis=1),
                np.zeros_like(null),
            )
            first, second = fit.T
        else:
            first, second = difference_fit(x1, n1, x2, n2, null)
        statistic = deviance(x1, n1, first) + deviance(x2, n2, second)
        return np.sign(c.estimate[which] - null) * np.sqrt(statistic)

    return root


def influence_el_root(c: Comparison) -> SignedRoot:
    r"""Root of the empirical likelihood of the influence-function moments, 0/1 metric.

    A row has one of six values: y = 1 or 0 in the group only, in both, in the target only.
    """
    counts = Counts.of(c)
    ones, zeros = counts.ones, counts.n - counts.ones
    y = np.array([1.0, 0.0])

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        tau, rate = c.hypothesised(null, which)
        factor = rate * c.group[which, 1] / c.target[which, 1]
        own = y - tau[:, None]
        other = factor[:, None] * (y - c.target_value[which][:, None])
        z = np.stack([own, own - other, -other], axis=1)
        count = np.stack([ones[which], zeros[which]], axis=2)
        return np.sign(c.estimate[which] - null) * np.sqrt(_el_of_atoms(z, count))

    return root


def _el_of_atoms(z: FloatArray, count: FloatArray) -> FloatArray:
    """Statistics of samples with a few distinct values; values that do not occur are set to 0."""
    m = len(z)
    occurs: BoolArray = count > 0
    flat = np.where(occurs, z, 0.0).reshape(m, -1)
    samples = Samples(
        base=flat.ravel(),
        slope=np.zeros(flat.size),
        start=np.arange(m) * flat.shape[1],
        count=count.reshape(-1),
    )
    return likelihood(samples, np.zeros(m)).statistic
