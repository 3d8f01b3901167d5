r"""Signed roots of the tests of one disparity, for all groups at once.

Each function takes a `Comparison` and returns ``root(null, which, tail)``: the square root of the
statistic at the hypothesised disparity, positive where the estimate is above it. P-values, one
and two-sided, equivalence tests and intervals all follow from it.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import BoolArray, FloatArray, IntArray
from equipoise.stats.binomial import (
    constrained_rates,
    contrast_score,
    deviance,
    difference_fit,
    difference_tail,
    exact_tail,
    signed_deviance,
)
from equipoise.stats.disparity.likelihoods import Samples, likelihood
from equipoise.stats.disparity.references import Comparison
from equipoise.stats.inversion import GREATER, SignedRoot

__all__ = [
    "Counts",
    "euclidean_root",
    "exact_comparison_root",
    "exact_root",
    "external_deviance_root",
    "influence_el_root",
    "known_deviance_root",
    "pure_el_root",
    "score_root",
    "two_sample_deviance_root",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Ones and rows in the group only, in group and target, and in the target only.

    Parameters
    ----------
    ones, n : array of shape (m, 3)
        Of a 0/1 metric without weights or clusters.
    """

    ones: FloatArray
    n: FloatArray

    @classmethod
    def of(cls, comparison: Comparison) -> "Counts":
        """Split the sums of a 0/1 metric into the three regions."""
        both = comparison.overlap
        regions = [comparison.group - both, both, comparison.target - both]
        sums = np.stack(regions, axis=1).round()
        return cls(ones=sums[:, :, 0], n=sums[:, :, 1])


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


def exact_root(c: Comparison) -> SignedRoot:
    """Normal quantile of the exact binomial p-value; the two tails overlap by P(X = x)."""

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:
        tau, _ = c.hypothesised(null, which)
        greater, less = exact_tail(c.group[which, 0], c.group[which, 1], tau)
        quantile = special.ndtri(np.maximum(greater if tail == GREATER else less, _SMALLEST))
        return np.asarray(-quantile if tail == GREATER else quantile)

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


def score_root(c: Comparison) -> SignedRoot:
    """Root of the score statistic at the constrained most likely rates, 0/1 metric, any overlap.

    For a disjoint target it is the statistic of Miettinen and Nurminen; with rows in common there
    are three samples: group only, both, target only.
    """
    counts = Counts.of(c)

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        group, target, gap, rates = _fit(c, counts, null, which)
        return contrast_score(gap, counts.n[which], rates, group, target)

    return root


def exact_comparison_root(c: Comparison) -> SignedRoot:
    """Normal quantile of the exact p-value of a small group against an estimated target.

    The probability of a contrast at least as large as the observed one, at the constrained most
    likely rates; the score statistic where the smaller sample is too large to enumerate. Where
    group and target overlap in part, the rows in both are taken as a fixed share of the group.
    """
    counts = Counts.of(c)
    score = score_root(c)

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:
        group, target, _, rates = _fit(c, counts, null, which)
        n, ones = counts.n[which], counts.ones[which]
        inside = n[:, 2] == 0  # the target is part of the group
        own = n[:, 0] + np.where(inside, 0.0, n[:, 1])
        fitted = n * rates
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (fitted[:, 0] + np.where(inside, 0.0, fitted[:, 1])) / own
            shared = np.where(inside, 0.0, n[:, 1] / own)
        other = np.where(inside, 1, 2)
        row = np.arange(len(which))
        weight = group[:, 0] - shared * target[:, 1]
        against = np.where(inside, target[:, 1] - group[:, 1], target[:, 2])
        sound = (weight > 0) & (against > 0)
        greater, less = difference_tail(
            (ones[:, 0] + np.where(inside, 0.0, ones[:, 1]), ones[row, other]),
            (own, n[row, other]),
            (np.clip(np.nan_to_num(mean), 0.0, 1.0), rates[row, other]),
            (np.where(sound, weight, 1.0), np.where(sound, against, 1.0)),
        )
        p = greater if tail == GREATER else less
        quantile = special.ndtri(np.clip(p, _SMALLEST, 1.0))
        value = -quantile if tail == GREATER else quantile
        rest = np.flatnonzero(~(sound & np.isfinite(p)))
        value[rest] = score(null[rest], which[rest], tail)
        return np.asarray(value)

    return root


# The normal quantile of a p-value that has underflowed is infinite.
_SMALLEST = 1e-300


def _fit(
    c: Comparison, counts: Counts, null: FloatArray, which: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Weights of a row in group and target, observed minus hypothesised contrast, fitted rates."""
    n = counts.n[which]
    group = np.array([1.0, 1.0, 0.0]) / c.group[which, 1][:, None]
    target = np.array([0.0, 1.0, 1.0]) / c.target[which, 1][:, None]
    value = null
    if c.scale == "ratio":
        target, value = target * null[:, None], np.zeros_like(null)
    gap = (counts.ones[which] * (group - target)).sum(axis=1) - value
    contrast = n * (group - target)
    rates = np.empty_like(n)
    # With two samples the contrast of a difference is a multiple of (1, -1).
    two = np.flatnonzero(((n > 0).sum(axis=1) == 2) & (c.scale == "difference"))
    if len(two):
        first, last = np.argmax(n[two] > 0, axis=1), 2 - np.argmax(n[two, ::-1] > 0, axis=1)
        ones, size = counts.ones[which], contrast[two, first]
        pair = difference_fit(
            ones[two, first], n[two, first], ones[two, last], n[two, last], value[two] / size
        )
        rates[two] = 0.0
        rates[two, first], rates[two, last] = pair
    more = np.setdiff1d(np.arange(len(which)), two)
    if len(more):
        rates[more] = constrained_rates(
            counts.ones[which[more]], n[more], contrast[more], value[more]
        )
    return group, target, gap, rates


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
