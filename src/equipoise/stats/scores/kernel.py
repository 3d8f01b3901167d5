r"""Kernel regression of an outcome on a score as ratios of means over independent units.

At score s, with :math:`K = \exp(-u^2/2)`, :math:`u = (S - s)/h` and :math:`x = (1, u)`,

.. math:: \hat f(s) = e_1' Q^{-1} \sum_i \omega_i K_i x_i Y_i,
   \quad Q = \sum_i \omega_i K_i x_i x_i'

is linear in the outcomes; the covariance sums the products of
:math:`\psi_m(s) = e_1' Q^{-1} \sum_{i \in m} \omega_i K_i x_i (Y_i - x_i' \hat\beta)` over units m.
Bandwidth 0 means no smoothing: rows whose score equals s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from equipoise._checks import check_finite, check_number, check_option
from equipoise._typing import AnyArray, Degree, FloatArray, ParityUnit
from equipoise.exceptions import DataError, EstimationError, InvalidParameterError
from equipoise.stats.scores.cells import (
    AnyScoreCells,
    LinearBlock,
    ScoreCells,
    influence_moments,
    weighted_quantile,
)

__all__ = [
    "GRID_LEVELS",
    "PooledFit",
    "RegressionCurve",
    "Smoother",
    "curve_block",
    "difference_block",
    "kernel_regression",
    "paper_bandwidth",
    "rule_of_thumb",
    "smoother",
]

GRID_LEVELS = np.array([0.01, *np.arange(0.05, 0.96, 0.05), 0.99])
"""Score quantiles at which curves are compared (section 7 of the paper)."""
N_NODES = 60


class Smoother(NamedTuple):
    """Coefficients of kernel estimates: value (and slope) = coefficients @ weighted outcomes.

    `level` and `slope` have shape (points, support); `mass` is the kernel mass at each point.
    """

    level: FloatArray
    slope: FloatArray
    mass: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionCurve:
    """A kernel regression at some scores.

    Parameters
    ----------
    points, estimate : array of shape (p,)
        Scores; mean outcome at each.
    covariance : array of shape (p, p)
        Robust to dependence within units.
    n_local : array of shape (p,)
        Units with a score within one bandwidth.
    bandwidth : array of shape (p,)
        Of each point.
    """

    points: FloatArray
    estimate: FloatArray
    covariance: FloatArray
    n_local: FloatArray
    bandwidth: FloatArray

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of each estimate."""
        return np.sqrt(np.diag(self.covariance))


def kernel_regression(
    y_true: AnyArray,
    y_score: AnyArray,
    points: AnyArray,
    *,
    cluster: AnyArray | None = None,
    unit: ParityUnit = "row",
    weight: AnyArray | None = None,
    bandwidth: float | AnyArray | None = None,
    degree: Degree = 1,
) -> RegressionCurve:
    r"""Estimate the mean outcome at given scores, with a covariance robust to repeated units.

    Parameters
    ----------
    y_true, y_score : array of shape (n,)
        Outcome and score.
    points : array of shape (p,)
        Scores at which to estimate.
    cluster : array of shape (n,), optional
        Who a row belongs to; rows are independent without it.
    unit : {"row", "cluster"}, default "row"
        Estimand: "row" averages over rows (Definition 4 of [1]_), "cluster" over clusters, each row
        weighing one over the rows of its cluster (Definition 3).
    weight : array of shape (n,), optional
        Sampling weights.
    bandwidth : float or array of shape (p,), optional
        Standard deviation of the Gaussian kernel; by default `rule_of_thumb`. 0 does not smooth.
    degree : {0, 1}, default 1
        0 is Nadaraya-Watson, 1 local linear.

    Returns
    -------
    RegressionCurve

    Raises
    ------
    EstimationError
        If a point has no score near enough for an estimate.

    Notes
    -----
    *Deviations from* [1]_: the kernel is :math:`\exp(-u^2/2)`, not the printed
    :math:`\exp(-x^2/2h)`, which has standard deviation :math:`\sqrt h`; local linear is offered
    because the bias of Nadaraya-Watson depends on the density of scores.

    References
    ----------
    .. [1] C. DiCiccio, B. Hsu, Y. Yu, P. Nandy and K. Basu (2023), Detection and mitigation of
       algorithmic bias via predictive rate parity, FAccT, 1801-1816. doi:10.1145/3593013.3594117

    Examples
    --------
    What share of loans scored 0.5 is repaid, when each of two clients has two loans?

    >>> curve = kernel_regression(
    ...     [1, 1, 0, 1], [0.4, 0.6, 0.4, 0.6], [0.5], cluster=[0, 0, 1, 1], bandwidth=0.2
    ... )
    >>> curve.estimate.round(3), curve.standard_error.round(3)
    (array([0.75]), array([0.177]))

    Three in four; with two clients the standard error is large.
    """
    cells = ScoreCells.from_rows(
        y_true,
        y_score,
        np.zeros(len(np.asarray(y_true)), dtype=np.int64),
        n_groups=1,
        cluster=cluster,
        unit=unit,
        weight=weight,
    )
    at = np.atleast_1d(check_finite("points", points))
    h = np.broadcast_to(
        rule_of_thumb(cells) if bandwidth is None else check_finite("bandwidth", bandwidth),
        at.shape,
    ).astype(np.float64)
    if np.any(h < 0.0):
        raise InvalidParameterError(f"`bandwidth` must not be negative; got {h.min():g}.")
    mass, total = cells.sums()
    fit = smoother(at, cells.support, mass[0], h, degree=degree)
    if np.any(fit.mass <= 0.0):
        alone = at[fit.mass <= 0.0]
        raise EstimationError(
            f"{len(alone)} of {len(at)} points have no score near enough, the first at"
            f" {alone[0]:g} with bandwidth {h[fit.mass <= 0.0][0]:g}. Move the points inside"
            f" [{cells.support[0]:g}, {cells.support[-1]:g}] or widen the bandwidth."
        )
    moments = influence_moments(cells, [curve_block(fit, at, cells.support, total[0])])
    order = np.argsort(at, kind="stable")
    n_local = np.empty(len(at))
    n_local[order] = cells.units_within((at - h)[order], (at + h)[order])[0]
    return RegressionCurve(
        points=at,
        estimate=fit.level @ total[0],
        covariance=moments.covariance,
        n_local=n_local,
        bandwidth=h,
    )


def rule_of_thumb(cells: AnyScoreCells) -> float:
    r"""Return :math:`h = 1.06 \min(\mathrm{sd}, \mathrm{IQR}/1.349) M^{-1/5}` of pooled scores.

    M is the number of independent units. One bandwidth serves all groups: with one for each group
    the smoothing bias differs and shows as a disparity.
    """
    mass = cells.sums()[0].sum(axis=0)
    support = cells.support
    if not mass.sum() > 0.0:
        raise DataError("Every row at these scores has weight zero; no curve can be fitted.")
    share = mass / mass.sum()
    centre = share @ support
    spread = float(np.sqrt(share @ (support - centre) ** 2))
    low, high = weighted_quantile(support, mass, np.array([0.25, 0.75]))
    quartiles = (high - low) / 1.349
    if spread <= 0.0:
        raise DataError(
            f"`y_score` must vary; every score is {support[0]:g}. Compare the groups' mean outcomes"
            " with a disparity audit instead."
        )
    # Half of the scores tied leaves no interquartile range; the standard deviation remains.
    scale = min(spread, quartiles) if quartiles > 0.0 else spread
    return float(1.06 * scale * cells.n_units**-0.2)


def paper_bandwidth(points: FloatArray, n: float) -> FloatArray:
    r"""Return :math:`\max(1.06 \sqrt{s(1-s)} n^{-1/5}, n^{-1/5}/10)`, section 7 of the paper.

    Scores outside [0, 1] are clipped; the square root does not exist there.
    """
    check_number("n", n, low=1)
    s = np.clip(points, 0.0, 1.0)
    return np.asarray(np.maximum(1.06 * np.sqrt(s * (1.0 - s)), 0.1) * n**-0.2)


def smoother(
    points: FloatArray,
    support: FloatArray,
    mass: FloatArray,
    bandwidth: FloatArray | float,
    *,
    degree: Degree = 1,
) -> Smoother:
    """Return the coefficients that turn weighted outcomes on `support` into estimates at `points`.

    Parameters
    ----------
    points, support : array
        Where to estimate; where the data are.
    mass : array of shape (len(support),)
        Sum of weights at each support score.
    bandwidth : float or array of shape (len(points),)
        0 selects equal scores.
    degree : {0, 1}, default 1
        0 is Nadaraya-Watson, 1 local linear.

    Returns
    -------
    Smoother
        Rows of points without data are zero, with zero mass.
    """
    check_option("degree", degree, Degree)
    h = np.broadcast_to(np.asarray(bandwidth, dtype=np.float64), points.shape)[:, None]
    distance = support[None, :] - points[:, None]
    smooth = h > 0.0
    u = np.where(
        smooth, distance / np.where(smooth, h, 1.0), np.where(distance == 0.0, 0.0, np.inf)
    )
    kernel = np.exp(-0.5 * u * u)
    u = np.where(kernel > 0.0, u, 0.0)
    q0 = kernel @ mass
    safe = np.where(q0 > 0.0, q0, 1.0)[:, None]
    level = np.where(q0[:, None] > 0.0, kernel / safe, 0.0)
    slope = np.zeros_like(level)
    if degree == 1:
        q1, q2 = (kernel * u) @ mass, (kernel * u * u) @ mass
        determinant = q0 * q2 - q1 * q1
        # One distinct score nearby: no slope can be fitted and the mean is the estimate.
        line = determinant > 1e-10 * q0 * np.maximum(q2, q0)
        d = np.where(line, determinant, 1.0)[:, None]
        level = np.where(line[:, None], kernel * (q2[:, None] - q1[:, None] * u) / d, level)
        unit = np.where(smooth, h, 1.0)
        slope = np.where(line[:, None], kernel * (q0[:, None] * u - q1[:, None]) / d / unit, 0.0)
    return Smoother(level, slope, q0)


def curve_block(
    fit: Smoother, points: FloatArray, support: FloatArray, total: FloatArray
) -> LinearBlock:
    """Return the influence values of a curve: residuals are taken from the local line."""
    value, slope = fit.level @ total, fit.slope @ total
    centre = value[:, None] + slope[:, None] * (support[None, :] - points[:, None])
    return LinearBlock(fit.level.T, centre.T)


def difference_block(
    fits: Sequence[Smoother], points: FloatArray, support: FloatArray, total: FloatArray
) -> LinearBlock:
    """Return the influence values of curve 1 minus curve 0; shared units are summed first."""
    first, second = (curve_block(fits[k], points, support, total[k]) for k in (0, 1))
    return LinearBlock(
        np.concatenate([-first.coefficient, second.coefficient]),
        np.concatenate([first.centre, second.centre]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledFit:
    """Local-linear fit at nodes, interpolated to the support: linear in the weighted outcomes."""

    nodes: FloatArray
    level: FloatArray
    interpolation: sparse.csr_array
    value: FloatArray

    @classmethod
    def of(
        cls,
        support: FloatArray,
        mass: FloatArray,
        total: FloatArray,
        bandwidth: float,
        *,
        share: FloatArray | None = None,
    ) -> "PooledFit":
        """Fit weighted outcomes on the support; bandwidth 0 takes the mean at each score.

        Nodes are equally spaced in `share`, by default the mass itself.
        """
        nodes = support
        if bandwidth > 0.0:
            levels = np.linspace(0.0, 1.0, N_NODES)
            spread = mass if share is None else share
            nodes = np.unique(weighted_quantile(support, spread, levels))
        level = smoother(nodes, support, mass, bandwidth).level
        interpolation = _between(nodes, support)
        value = interpolation @ (level @ total)
        return cls(nodes=nodes, level=level, interpolation=interpolation, value=value)

    def coefficients(self, points: FloatArray) -> FloatArray:
        """Return what turns weighted outcomes into the fit at other points; (points, support)."""
        return np.asarray(_between(self.nodes, points) @ self.level)

    def fitted(self, total: FloatArray) -> FloatArray:
        """Smooth other weighted outcomes in the same way."""
        return np.asarray(self.interpolation @ (self.level @ total))


def _between(nodes: FloatArray, points: FloatArray) -> sparse.csr_array:
    """Return the matrix of linear interpolation from nodes to points, constant beyond."""
    right = np.minimum(np.maximum(np.searchsorted(nodes, points), 1), len(nodes) - 1)
    left = np.maximum(right - 1, 0)
    # Scores that no row has share the rank of the next one.
    gap = nodes[right] - nodes[left]
    part = np.clip((points - nodes[left]) / np.where(gap > 0.0, gap, 1.0), 0.0, 1.0)
    rows = np.arange(len(points))
    entries = np.concatenate([1.0 - part, part])
    places = (np.concatenate([rows, rows]), np.concatenate([left, right]))
    return sparse.coo_array((entries, places), shape=(len(points), len(nodes))).tocsr()
