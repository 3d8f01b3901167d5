r"""Many tests at once: adjusted p-values, e-values, and the law of the largest statistic (max-t).

Adjusted p-values are compared with the level as they are: a hypothesis is rejected at level alpha
exactly when its adjusted p-value is at most alpha.

The Gaussian multiplier bootstrap over independent units has, given the data, exactly the law
:math:`N(0, V)` with :math:`V = \sum_m \psi_m \psi_m'`; so maxima are simulated from the matrix of
covariances and the rows are never resampled.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._blas import one_thread
from equipoise._checks import check_finite, check_fraction, check_option, check_rng
from equipoise._typing import Adjust, BoolArray, FloatArray, IntArray, Rng
from equipoise.exceptions import InvalidParameterError

__all__ = [
    "MaxT",
    "SimultaneousTest",
    "adjusted_p_values",
    "betting_e_value",
    "correlations",
    "e_bh",
    "gaussian_draws",
    "max_t",
    "max_t_test",
    "skewed_draws",
    "step_down_shares",
    "tail_share",
]

N_DRAWS = 5000
"""Draws of the multiplier law; the smallest p-value is one over this plus one."""


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

        A root exceeds it exactly when its p-value is at most 1 - `confidence_level`.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Joint coverage.

        Returns
        -------
        float
        """
        level = check_fraction("confidence_level", confidence_level)
        rank = max(int(np.floor((1.0 - level) * (len(self.maxima) + 1) + 1e-9)), 1)
        return float(self.maxima[-rank])

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
        return np.where(np.isnan(r), np.nan, tail_share(self.maxima, r))


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
    factor = _factor(matrix[np.ix_(keep, keep)] / np.outer(sd[keep], sd[keep])).astype(np.float32)
    draws = int(np.clip(1e10 / factor.size, 4_000, n_draws))
    generator = check_rng(rng)
    ends = np.append(np.arange(0, draws, 4_000), draws)
    normal = (
        generator.standard_normal((size, len(factor)), dtype=np.float32) for size in np.diff(ends)
    )
    # Small products: a second thread of BLAS would mostly wait. One row for each estimate, so that
    # the maximum of all runs along the draws.
    with one_thread():
        roots = (factor.T @ z.T for z in normal)
        parts = [np.abs(root, out=root).max(axis=0) for root in roots]
    return MaxT(maxima=np.sort(np.concatenate(parts)).astype(np.float64))


def _factor(correlation: FloatArray) -> FloatArray:
    """Return L of shape (rank, m) with L'L the correlation: Cholesky's, with pivots.

    Eigenvectors of repeated eigenvalues are arbitrary, so that other machines and engines would get
    other draws. A triangular root is unique once the pivots are, and these are chosen without the
    last digits.
    """
    m = len(correlation)
    left = correlation.diagonal().copy()
    factor = np.zeros((m, m))
    for k in range(m):
        pivot = int(np.argmax(np.round(left, 9)))
        if left[pivot] <= 1e-7:
            return factor[:k]
        row = correlation[pivot] - factor[:k].T @ factor[:k, pivot]
        factor[k] = row / np.sqrt(left[pivot])
        left -= factor[k] ** 2
    return factor


@dataclass(frozen=True, slots=True, kw_only=True)
class SimultaneousTest:
    """Tests that each estimate is zero, valid for all at once.

    Parameters
    ----------
    standard_error, statistic : array of shape (p,)
        Standard error; studentised estimate mapped to the normal scale.
    p_value, p_value_adjusted : array of shape (p,)
        For one estimate alone, and for the largest of all.
    low, high : array of shape (p,)
        Simultaneous band; it excludes zero exactly where ``p_value_adjusted`` is at most
        ``1 - confidence_level``.
    max_p_value, sum_p_value : float
        P-values of the largest statistic and of the sum of squared statistics.
    """

    standard_error: FloatArray
    statistic: FloatArray
    p_value: FloatArray
    p_value_adjusted: FloatArray
    low: FloatArray
    high: FloatArray
    max_p_value: float
    sum_p_value: float


def max_t_test(
    estimate: FloatArray,
    covariance: FloatArray,
    fourth: FloatArray,
    *,
    repeats: FloatArray | None = None,
    confidence_level: float = 0.95,
    n_comparisons: int = 1,
    ordered: bool = False,
    rng: Rng = None,
) -> SimultaneousTest:
    r"""Test that all estimates are zero, and find which are not.

    Parameters
    ----------
    estimate : array of shape (p,)
        Estimates, each a sum of influence values over independent units.
    covariance : array of shape (p, p)
        Sum over units of products of influence values, with a positive diagonal.
    fourth : array of shape (p,)
        Sum over units of their fourth powers; gives the degrees of freedom
        :math:`n_e = (\sum \psi^2)^2 / \sum \psi^4`.
    repeats : array of shape (p,), optional
        How often each squared statistic enters their sum; by default once.
    confidence_level : float, default 0.95
        Simultaneous level of the band.
    n_comparisons : int, default 1
        How many such families are read together; bands and adjusted p-values allow for it
        (Bonferroni).
    ordered : bool, default False
        Whether the order and the signs of the estimates are made of numbers, as those of the points
        of a curve are. Otherwise they may come from names, and the law is drawn for estimates from
        the smallest to the largest, all of them positive.
    rng : numpy.random.Generator or int, optional
        Source of the draws.

    Returns
    -------
    SimultaneousTest

    Notes
    -----
    :math:`|D|/\mathrm{se} \sqrt{(n_e - 1)/n_e}` has about a t law with :math:`n_e` degrees; its
    tail is mapped to the normal scale, where the maximum is compared with that of
    :math:`N(0, R)`, R the correlation matrix.

    Examples
    --------
    Are two independent estimates, 3 and 0.5 standard errors from zero, both zero?

    >>> import numpy as np
    >>> test = max_t_test(np.array([3.0, 0.5]), np.eye(2), np.full(2, 0.001), rng=1)
    >>> test.p_value_adjusted.round(3)
    array([0.007, 0.858])

    The first is not.
    """
    level = 1.0 - (1.0 - check_fraction("confidence_level", confidence_level)) / n_comparisons
    variance = np.diag(covariance)
    se = np.sqrt(variance)
    # One unit gives n_e = 1 and no scale to judge by; the guard keeps the map finite.
    degrees = np.maximum(variance**2 / fourth, 1.0 + 1e-9)
    shrink = np.sqrt((degrees - 1.0) / degrees)
    tail = np.maximum(special.stdtr(degrees, -np.abs(estimate) / se * shrink), 1e-300)
    z = -special.ndtri(tail)
    correlation = covariance / np.outer(se, se)
    times = np.ones(len(z)) if repeats is None else repeats
    place = np.arange(len(z))
    if not ordered:
        place, sign = _nameless(estimate / se, correlation, variance)
        correlation = (correlation * np.outer(sign, sign))[np.ix_(place, place)]
        times = times[place]
    draws = gaussian_draws(correlation, rng=rng)
    law = MaxT(maxima=np.sort(np.abs(draws).max(axis=1)))
    # Never less than for one estimate alone, whatever the draws.
    share = np.maximum(law.p_values(z), 2.0 * tail)
    adjusted = np.minimum(share * n_comparisons, 1.0)
    cutoff = max(law.critical(level), -float(special.ndtri((1.0 - level) / 2.0)))
    critical = -special.stdtrit(degrees, special.ndtr(-cutoff)) / shrink
    return SimultaneousTest(
        standard_error=se,
        statistic=np.sign(estimate) * z,
        p_value=2.0 * tail,
        p_value_adjusted=adjusted,
        low=estimate - critical * se,
        high=estimate + critical * se,
        max_p_value=float(adjusted.min()),
        sum_p_value=float(tail_share(draws**2 @ times, np.array([z[place] ** 2 @ times]))[0]),
    )


def _nameless(
    statistic: FloatArray, correlation: FloatArray, variance: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return an order and signs of estimates that names cannot change, without last digits.

    An estimate of zero has the sign that its correlation with the others gives it.
    """
    sign = np.sign(np.round(statistic, 9))
    sign = np.where(sign == 0.0, np.sign(np.round(correlation @ sign, 9)), sign)
    sign = np.where(sign == 0.0, 1.0, sign)
    size = np.round(variance / variance.max(), 9)
    return np.lexsort((size, np.round(np.abs(statistic), 9))), sign


def gaussian_draws(
    covariance: FloatArray, *, n_draws: int = N_DRAWS, rng: Rng = None
) -> FloatArray:
    """Draw from a centred normal law; the covariance may be singular."""
    # A triangular root moves little when the last digits of the matrix do, unlike eigenvectors, so
    # that engines which sum in another order get the same draws; neighbouring points of a curve are
    # nearly the same, and a smaller ridge would magnify those digits a thousandfold.
    ridge = 1e-5 * float(np.trace(covariance)) / len(covariance)
    root = np.linalg.cholesky(covariance + ridge * np.eye(len(covariance)))
    return np.asarray(check_rng(rng).standard_normal((n_draws, len(root))) @ root.T)


def tail_share(draws: FloatArray, observed: FloatArray) -> FloatArray:
    """Monte Carlo p-value of each observed value, ``(1 + draws above) / (1 + draws)``.

    A draw within rounding of the observed value counts as above it.
    """
    ordered = np.sort(draws)
    below = np.searchsorted(ordered, observed * (1.0 - 1e-12), side="left")
    return np.asarray((1.0 + len(ordered) - below) / (1.0 + len(ordered)))


def step_down_shares(observed: FloatArray, draws: FloatArray) -> FloatArray:
    """P-values adjusted step by step by the law of the largest of the remaining statistics.

    Parameters
    ----------
    observed : array of shape (m,)
        Statistics, large against the null hypothesis.
    draws : array of shape (n, m)
        Of all together, where every null hypothesis is true.

    Returns
    -------
    array of shape (m,)

    References
    ----------
    .. [1] J. P. Romano and M. Wolf (2005), Exact and approximate stepdown methods for multiple
       hypothesis testing, Journal of the American Statistical Association 100, 94-108.
       https://doi.org/10.1198/016214504000000539

    Examples
    --------
    The largest of two is compared with the larger draw, the other one with its own.

    >>> import numpy as np
    >>> draws = np.array([[0.0, 3.0], [2.5, 1.0], [0.5, 0.5], [1.0, 0.0]])
    >>> step_down_shares(np.array([1.5, 2.0]), draws).tolist()
    [0.6, 0.6]
    """
    order = np.argsort(-observed, kind="stable")
    largest = np.maximum.accumulate(draws[:, order[::-1]], axis=1)[:, ::-1]
    p = [tail_share(largest[:, k], observed[j : j + 1])[0] for k, j in enumerate(order)]
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(p)
    return adjusted


def skewed_draws(skewness: FloatArray, *, n_draws: int = N_DRAWS, rng: Rng = None) -> FloatArray:
    """Draw numbers of mean zero and variance one with the skewness given: Pearson type III.

    Parameters
    ----------
    skewness : array of shape (m,)
        Of each number; they are independent.
    n_draws : int
        Draws of each.
    rng : numpy.random.Generator or int, optional
        Source of the draws.

    Returns
    -------
    array of shape (n_draws, m)
    """
    generator = check_rng(rng)
    z = generator.standard_normal((n_draws, len(skewness)))
    skewed = np.abs(skewness) > 1e-3
    size = 4.0 / skewness[skewed] ** 2
    drawn = generator.standard_gamma(size, size=(n_draws, len(size)))
    z[:, skewed] = np.sign(skewness[skewed]) * (drawn - size) / np.sqrt(size)
    return z
