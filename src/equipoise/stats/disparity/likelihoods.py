r"""Empirical likelihood of estimating functions that are linear in one parameter.

The statistic of a hypothesis :math:`E[z] = 0` is :math:`2 \sum_i c_i \log(1 + \lambda z_i)` with
:math:`\lambda` the root of :math:`\sum_i c_i z_i / (1 + \lambda z_i)`, Eq. (3.3) of [1]_, and
c_i the number of times row i occurs. Every disparity of a group is of the form
:math:`z_i(c) = b_i + c s_i`: known target, influence function of an estimated target, difference
or ratio, weights, totals of clusters. So one solver serves them all. It works on many samples at
once, stored one after the other.

References
----------
.. [1] J. Tang, C. Xie, X. Zeng and L. Zhu (2026), Empirical likelihood-based fairness auditing:
   distribution-free certification and flagging. doi:10.48550/arXiv.2601.20269
.. [2] A. B. Owen (2001), Empirical Likelihood, Chapman and Hall. doi:10.1201/9781420036152
"""

from dataclasses import dataclass

import numpy as np
import scipy

from equipoise._typing import FloatArray, IntArray

__all__ = [
    "Likelihood",
    "Samples",
    "joint_likelihood",
    "likelihood",
    "profile",
]

_TOLERANCE = 1e-12
_ITERATIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    r"""Estimating functions :math:`b_i + c s_i` of one or more samples, one after the other.

    Parameters
    ----------
    base, slope : array of shape (N,)
        b and s of every row.
    start : array of shape (S,)
        Where each sample begins; samples are not empty.
    count : array of shape (N,), optional
        How many times a row occurs; 1 by default.
    """

    base: FloatArray
    slope: FloatArray
    start: IntArray
    count: FloatArray | None = None

    @classmethod
    def of_means(cls, *values: FloatArray, count: FloatArray | None = None) -> "Samples":
        """Samples whose parameter is their mean: b = x, s = -1."""
        base = np.concatenate(values)
        sizes = [len(x) for x in values]
        start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        return cls(base=base, slope=np.full(len(base), -1.0), start=start, count=count)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum over each sample, with multiplicity."""
        weighted = values if self.count is None else values * self.count
        return np.asarray(np.add.reduceat(weighted, self.start), dtype=np.float64)

    @property
    def size(self) -> IntArray:
        """Distinct rows of each sample."""
        return np.diff(self.start, append=len(self.base))


@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihood:
    """Empirical likelihood statistics of samples.

    Parameters
    ----------
    statistic : array of shape (S,)
        Infinite where zero is outside the convex hull of the sample.
    multiplier : array of shape (S,)
        Lagrange multipliers.
    gradient, curvature : array of shape (S,)
        First and second derivative of the statistic in the parameter.
    """

    statistic: FloatArray
    multiplier: FloatArray
    gradient: FloatArray
    curvature: FloatArray


def likelihood(
    samples: Samples, parameter: FloatArray, *, multiplier: FloatArray | None = None
) -> Likelihood:
    r"""Empirical likelihood statistic of each sample at a value of its parameter.

    Newton's method for :math:`\lambda` kept inside the interval where all weights are at most one,
    with bisection when a step leaves it; rows are scaled by their largest absolute value first.

    Parameters
    ----------
    samples : Samples
        Estimating functions.
    parameter : array of shape (S,)
        Hypothesised values c.
    multiplier : array of shape (S,), optional
        Starting values, for instance those found at a parameter nearby.

    Returns
    -------
    Likelihood

    Notes
    -----
    Iteration stops when (gradient of the dual) x (step) is below 1e-12, which bounds the error in
    the statistic up to a constant.

    *Deviations from* [1]_: the reference implementation damps the k-th Newton step by
    :math:`(k + 1)^{-1/2}` and returns a finite value after 301 iterations when zero is outside the
    hull; here that is an infinite statistic, which callers must not turn into p = 0.

    Examples
    --------
    Is a mean of 2 compatible with the values 1, 2, 3, 6?

    >>> sample = Samples.of_means(np.array([1.0, 2.0, 3.0, 6.0]))
    >>> float(likelihood(sample, np.array([2.0])).statistic.round(4)[0])
    1.6219

    It is: the statistic is below 3.84.
    """
    size = samples.size
    z = samples.base + samples.slope * np.repeat(parameter, size)
    largest = np.maximum.reduceat(z, samples.start)
    smallest = np.minimum.reduceat(z, samples.start)
    scale = np.maximum(np.abs(largest), np.abs(smallest))
    flat = scale == 0.0
    inside = (smallest < 0.0) & (largest > 0.0)
    scale = np.where(flat, 1.0, scale)
    z = z / np.repeat(scale, size)
    n = samples.sums(np.ones_like(z))
    with np.errstate(divide="ignore", invalid="ignore"):
        # At the root every weight 1 / (n (1 + lambda z)) is at most one.
        low = np.where(inside, (1.0 / n - 1.0) * scale / largest, 0.0)
        high = np.where(inside, (1.0 / n - 1.0) * scale / smallest, 0.0)
        first = samples.sums(z) / samples.sums(z * z)
    guess = first if multiplier is None else multiplier * scale
    lam = np.where(inside, np.clip(np.nan_to_num(guess), low, high), 0.0)
    # Bisection alone would do in 60 steps, so that the loop always breaks.
    for _ in range(_ITERATIONS):  # pragma: no branch
        ratio = z / (1.0 + np.repeat(lam, size) * z)
        slope = samples.sums(ratio)
        step = slope / np.where(inside, samples.sums(ratio * ratio), 1.0)
        if np.all(np.abs(slope * step)[inside] < _TOLERANCE):
            break
        low = np.where(slope > 0, lam, low)
        high = np.where(slope < 0, lam, high)
        moved = lam + step
        outside = (moved <= low) | (moved >= high)
        lam = np.where(inside, np.where(outside, 0.5 * (low + high), moved), 0.0)
    factor = np.repeat(lam, size) * z
    statistic = np.where(inside, 2.0 * samples.sums(np.log1p(factor)), np.inf)
    weight = 1.0 / (1.0 + factor)
    # Envelope theorem; see the methods page for the curvature.
    direction = samples.slope / np.repeat(scale, size)
    gradient = 2.0 * lam * samples.sums(direction * weight)
    bend = samples.sums(direction * weight**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        curvature = 2.0 * (
            bend**2 / samples.sums((z * weight) ** 2)
            - lam**2 * samples.sums((direction * weight) ** 2)
        )
    return Likelihood(
        statistic=np.where(flat, 0.0, np.maximum(statistic, 0.0)),
        multiplier=lam / scale,
        gradient=gradient,
        curvature=curvature,
    )


def profile(
    samples: Samples, offset: FloatArray, *, prior: tuple[float, float] | None = None
) -> tuple[float, float]:
    r"""Minimise the sum of statistics over a parameter that the samples share.

    Sample s has the parameter :math:`\theta + \text{offset}_s`; the result is
    :math:`\min_\theta \sum_s l_s(\theta + \text{offset}_s)`: the two-sample statistic when there
    is a group and a reference, and the joint one when there are several groups.

    Parameters
    ----------
    samples : Samples
        Means of disjoint sets of rows.
    offset : array of shape (S,)
        Hypothesised differences.
    prior : (float, float), optional
        Estimate of theta from an independent sample and its standard error; adds
        :math:`((\theta - \text{estimate}) / \text{se})^2`.

    Returns
    -------
    statistic, theta : float
        Infinite and NaN when no theta is inside all hulls.

    Examples
    --------
    Do two samples have the same mean?

    >>> two = Samples.of_means(np.array([1.0, 2.0, 4.0]), np.array([2.0, 3.0, 7.0, 5.0]))
    >>> statistic, mean = profile(two, np.zeros(2))
    >>> round(statistic, 3), round(mean, 3)
    (2.909, 3.154)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.where(samples.slope != 0.0, -samples.base / samples.slope, np.nan)
    low = float(np.max(np.fmin.reduceat(zero, samples.start) - offset))
    high = float(np.min(np.fmax.reduceat(zero, samples.start) - offset))
    if not low < high:
        return np.inf, np.nan
    centre = -samples.sums(samples.base) / samples.sums(samples.slope) - offset
    residual = samples.base + samples.slope * np.repeat(centre + offset, samples.size)
    information = samples.sums(np.abs(samples.slope)) ** 2 / samples.sums(residual**2)
    if prior is not None:
        centre = np.append(centre, prior[0])
        information = np.append(information, prior[1] ** -2.0)
    theta = float(np.average(centre, weights=information))
    if not low < theta < high:
        theta = 0.5 * (low + high)
    multiplier = None
    for _ in range(_ITERATIONS):  # pragma: no branch
        fit = likelihood(samples, theta + offset, multiplier=multiplier)
        statistic = float(fit.statistic.sum())
        slope, bend = float(fit.gradient.sum()), float(fit.curvature.sum())
        if prior is not None:
            statistic += ((theta - prior[0]) / prior[1]) ** 2
            slope += 2.0 * (theta - prior[0]) / prior[1] ** 2
            bend += 2.0 / prior[1] ** 2
        low, high = (low, theta) if slope > 0 else (theta, high)
        step = slope / bend if bend > 0 else np.inf
        if abs(slope * step) < _TOLERANCE or high - low <= 4e-16 * (abs(low) + abs(high)):
            break
        multiplier = fit.multiplier
        theta = theta - step if low < theta - step < high else 0.5 * (low + high)
    return statistic, theta


def joint_likelihood(
    values: FloatArray, start: IntArray, directions: FloatArray, *, count: FloatArray | None = None
) -> float:
    r"""Empirical likelihood statistic of several moments that must be zero together.

    Row i of atom k has the moments :math:`v_i d_k`, a number times the direction of its atom; rows
    of general moments are atoms of their own. The dual, :math:`\sum \log(1 + \lambda' v_i d_k)`,
    is self-concordant: Newton steps of length :math:`1 / (1 + \delta)`, with :math:`\delta` the
    Newton decrement, stay inside its domain and converge exactly when zero is inside the hull.
    Full steps are taken where they are close enough or increase the dual.

    Parameters
    ----------
    values : array of shape (N,)
        v, atom after atom.
    start : array of shape (S,)
        Where each atom begins.
    directions : array of shape (S, d)
        d_k; their columns are independent.
    count : array of shape (N,), optional
        How many times a row occurs.

    Returns
    -------
    float
        Infinite when zero is outside the convex hull of the moments.

    Notes
    -----
    A pass costs one sum over rows for each atom, whatever the number of moments.
    """
    if count is not None:
        # A row that occurs no times must not hold the multiplier back.
        values = np.where(count > 0.0, values, 0.0)
    samples = Samples(base=values, slope=np.zeros_like(values), start=start, count=count)
    size = samples.size
    lam = np.zeros(directions.shape[1])
    x = np.ones_like(values)
    for _ in range(_ITERATIONS):
        ratio = values / x
        gradient = directions.T @ samples.sums(ratio)
        hessian = (directions.T * samples.sums(ratio * ratio)) @ directions
        try:
            step = scipy.linalg.cho_solve(scipy.linalg.cho_factor(hessian), gradient)
        except scipy.linalg.LinAlgError:
            # On the way to infinity the moments that hold zero back lose all weight.
            return np.inf
        decrement = float(np.sqrt(max(gradient @ step, 0.0)))
        if decrement < 1e-8:
            return float(2.0 * samples.sums(np.log(x)).sum())
        full = 1.0 + values * np.repeat(directions @ (lam + step), size)
        if full.min() > 0.0 and (
            decrement <= 0.25 or samples.sums(np.log(full)).sum() > samples.sums(np.log(x)).sum()
        ):
            lam, x = lam + step, full
        else:
            lam = lam + step / (1.0 + decrement)
            x = 1.0 + values * np.repeat(directions @ lam, size)
            if x.min() <= 0.0:
                # Rounding: the multiplier is too large for its digits, on the way to infinity.
                return np.inf
    return np.inf
