r"""Many tests at once: adjusted p-values, e-values and simultaneous critical values.

Adjusted p-values are compared with the level as they are: a hypothesis is rejected at level alpha
exactly when its adjusted p-value is at most alpha.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from equipoise._checks import check_finite, check_fraction, check_option, check_rng
from equipoise._typing import Adjust, BoolArray, FloatArray, Rng
from equipoise.exceptions import InvalidParameterError

__all__ = ["MaxT", "adjusted_p_values", "betting_e_value", "correlations", "e_bh", "max_t"]


def adjusted_p_values(p_values: FloatArray, method: Adjust = "bh") -> FloatArray:
    r"""Adjust p-values for the number of tests; one call is one family.

    Parameters
    ----------
    p_values : array of shape (m,)
        NaN marks a hypothesis that was not tested: it stays NaN and does not count.
    method : {"bh", "by", "holm", "bonferroni", "none", "auto"}
        "bh" (also "auto") and "by" control the false discovery rate, the latter under any
        dependence; "holm" and "bonferroni" control the chance of a single false rejection.

    Returns
    -------
    array of shape (m,)

    Notes
    -----
    *Deviations from the paper*: it runs Benjamini-Hochberg separately in each layer of a tree of
    groups, which does not control the rate of the figure; everything the user looked at is one
    family here.

    Examples
    --------
    Four groups were tested; which can be flagged at 5%?

    >>> adjusted_p_values(np.array([0.010, 0.040, 0.030, 0.500])).round(3).tolist()
    [0.04, 0.053, 0.053, 0.5]

    Only the first.
    """
    check_option("method", method, Adjust)
    p = np.asarray(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(p))
    result = p.copy()
    m = len(tested)
    if method == "none" or m == 0:
        return result
    order = tested[np.argsort(p[tested], kind="stable")]
    rank = np.arange(1, m + 1)
    if method == "bonferroni":
        scaled = p[order] * m
    elif method == "holm":
        scaled = np.maximum.accumulate(p[order] * (m - rank + 1))
    else:
        penalty = np.sum(1.0 / rank) if method == "by" else 1.0
        scaled = np.minimum.accumulate((p[order] * m * penalty / rank)[::-1])[::-1]
    result[order] = np.minimum(scaled, 1.0)
    return result


def e_bh(e_values: FloatArray, *, alpha: float = 0.05) -> BoolArray:
    r"""Hypotheses rejected by the e-value version of Benjamini-Hochberg.

    The k hypotheses with the largest e-values are rejected for the largest k whose k-th largest
    e-value is at least m / (k alpha); the false discovery rate is at most alpha under any
    dependence.

    Parameters
    ----------
    e_values : array of shape (m,)
        Non-negative variables with mean at most one under their null; NaN is not tested.
    alpha : float, default 0.05
        False discovery rate.

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> e_bh(np.array([50.0, 30.0, 1.0]), alpha=0.05).tolist()
    [True, True, False]
    """
    level = check_fraction("alpha", alpha)
    e = np.nan_to_num(np.asarray(e_values, dtype=np.float64), nan=0.0, posinf=np.inf)
    m = int(np.count_nonzero(~np.isnan(e_values)))
    order = np.argsort(-e, kind="stable")
    enough = e[order] * np.arange(1, len(e) + 1) * level >= m
    k = int(np.max(np.flatnonzero(enough), initial=-1)) + 1
    rejected = np.zeros(len(e), dtype=np.bool_)
    rejected[order[:k]] = True
    return rejected & (e > 0)


def betting_e_value(
    values: FloatArray, null: float, *, low: float = 0.0, high: float = 1.0, n_bets: int = 20
) -> float:
    r"""Evidence that the mean of a bounded variable exceeds `null`, as an e-value.

    The average over bets :math:`\lambda` of :math:`\prod_i (1 + \lambda (x_i - \text{null}))`, with
    :math:`\lambda` on a grid inside (0, 1 / (null - low)). Its mean is at most one under any
    distribution with mean at most `null`, in samples of any size and with optional stopping.

    Parameters
    ----------
    values : array of shape (n,)
        Rows of the group, within [low, high].
    null : float
        Largest mean under the null, above `low`.
    low, high : float
        Bounds of the variable.
    n_bets : int, default 20
        Points of the grid.

    Returns
    -------
    float

    Examples
    --------
    Did 36 of 40 succeed by chance, when half should?

    >>> rows = np.repeat([1.0, 0.0], [36, 4])
    >>> betting_e_value(rows, 0.5) > 20
    True
    """
    x = check_finite("values", values, ndim=1)
    if not low < null < high or x.min(initial=low) < low or x.max(initial=high) > high:
        raise InvalidParameterError(
            f"`values` and `null` must lie within [{low:g}, {high:g}], `null` strictly; got values "
            f"from {x.min(initial=low):g} to {x.max(initial=high):g} and null {null:g}."
        )
    bets = np.arange(1, n_bets + 1) / (n_bets + 1) / (null - low)
    wealth = np.log1p(np.outer(bets, x - null)).sum(axis=1)
    return float(np.exp(wealth).mean())


def correlations(covariance: FloatArray) -> FloatArray:
    r"""Correlation matrix of estimates, some of which may have no estimated variance.

    A rate of 0 or 1 has an estimated variance of zero and is still tested (by a score or exact
    test). It then counts as independent of the others, which is conservative for the maximum.

    Parameters
    ----------
    covariance : array of shape (m, m)
        Of the estimates.

    Returns
    -------
    array of shape (m, m)
        With ones on the diagonal.

    Examples
    --------
    >>> correlations(np.array([[4.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    matrix = check_finite("covariance", covariance, ndim=2)
    variance = np.diag(matrix)
    # Rounding leaves about 1e-16 of the largest variance where the true one is zero.
    varies = variance > 1e-13 * variance.max(initial=0.0)
    scale = np.sqrt(np.where(varies, variance, 1.0))
    result = np.where(np.outer(varies, varies), matrix / np.outer(scale, scale), 0.0)
    np.fill_diagonal(result, 1.0)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxT:
    r"""Law of the largest absolute value of correlated normal variables, by simulation.

    Parameters
    ----------
    maxima : array of shape (n_draws,)
        Simulated maxima, in increasing order.
    """

    maxima: FloatArray

    def critical(self, confidence_level: float = 0.95) -> float:
        """Critical value for intervals that cover all their parameters together.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Joint coverage.

        Returns
        -------
        float
        """
        level = check_fraction("confidence_level", confidence_level)
        return float(np.quantile(self.maxima, level))

    def p_values(self, roots: FloatArray) -> FloatArray:
        """P-values adjusted by the law of the largest absolute root under the null.

        Parameters
        ----------
        roots : array of shape (m,)
            Signed roots of the statistics; NaN stays NaN.

        Returns
        -------
        array of shape (m,)
            Never zero: at least 1 / (draws + 1).
        """
        r = np.abs(np.asarray(roots, dtype=np.float64))
        above = len(self.maxima) - np.searchsorted(self.maxima, r, side="left")
        return np.where(np.isnan(r), np.nan, (1.0 + above) / (1.0 + len(self.maxima)))


def max_t(correlation: FloatArray, *, rng: Rng = None, n_draws: int = 50_000) -> MaxT:
    r"""Simulate :math:`\max_j |Z_j|` with Z normal and correlated like the estimates.

    Parameters
    ----------
    correlation : array of shape (m, m)
        Correlation or covariance matrix of the estimates; those without variance are left out.
    rng : int, Generator or None
        Source of randomness; None means seed 0. The same `rng` gives the same law.
    n_draws : int, default 50000
        Simulated maxima; fewer when the matrix is large, but at least 4000.

    Returns
    -------
    MaxT

    Notes
    -----
    The Monte Carlo standard error of a p-value p is :math:`\sqrt{p (1 - p) / \text{draws}}`: .001
    at p = .05 with 50000 draws, .0034 with 4000.

    Examples
    --------
    How much wider are ten independent intervals, and what is left of a root of 3?

    >>> law = max_t(np.eye(10))
    >>> round(law.critical(), 1)
    2.8
    >>> law.p_values(np.array([3.0])).round(2).tolist()
    [0.03]

    They need 2.8 standard errors instead of 1.96; three are still significant.
    """
    matrix = check_finite("correlation", correlation, ndim=2)
    sd = np.sqrt(np.diag(matrix))
    keep = sd > 0
    if not keep.any():
        raise InvalidParameterError("`correlation` must have a positive diagonal; all of it is 0.")
    # Without the last digits, which depend on the order of summation: another eigenvector of a
    # repeated eigenvalue, or its negative, would give other draws on another engine.
    scaled = np.round(matrix[np.ix_(keep, keep)] / np.outer(sd[keep], sd[keep]), 9)
    values, vectors = linalg.eigh(scaled)
    positive = values > 1e-7 * values[-1]
    factor = (np.sqrt(values[positive])[:, None] * vectors[:, positive].T).astype(np.float32)
    draws = int(np.clip(1e10 / factor.size, 4_000, n_draws))
    generator = check_rng(rng)
    ends = np.append(np.arange(0, draws, 4_000), draws)
    normal = (
        generator.standard_normal((size, len(factor)), dtype=np.float32) for size in np.diff(ends)
    )
    parts = [np.abs(z @ factor).max(axis=1) for z in normal]
    return MaxT(maxima=np.sort(np.concatenate(parts)).astype(np.float64))


def max_t_p_values(roots: FloatArray, correlation: FloatArray, *, rng: Rng = None) -> FloatArray:
    """P-values adjusted by the law of the largest absolute root of the hypotheses tested.

    Parameters
    ----------
    roots : array of shape (m,)
        Signed roots of the statistics; NaN is not tested and does not count.
    correlation : array of shape (m, m)
        Correlation or covariance matrix of the estimates.
    rng : int, Generator or None
        Source of randomness; None means seed 0.

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> max_t_p_values(np.array([3.2, 1.0]), np.eye(2)).round(2).tolist()
    [0.0, 0.53]
    """
    r = np.asarray(roots, dtype=np.float64)
    result = np.full(len(r), np.nan)
    tested = np.flatnonzero(~np.isnan(r))
    if len(tested):
        matrix = np.asarray(correlation, dtype=np.float64)[np.ix_(tested, tested)]
        result[tested] = max_t(matrix, rng=rng).p_values(r[tested])
    return result
