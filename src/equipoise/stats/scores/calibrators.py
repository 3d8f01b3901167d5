"""Maps from the score of a group, or from several scores, to mean outcomes."""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from equipoise._checks import check_option
from equipoise._typing import AnyArray, CalibrationMethod, FloatArray, ParityUnit
from equipoise.exceptions import DataError
from equipoise.stats.scores.cells import ScoreCells, weighted_quantile
from equipoise.stats.scores.kernel import (
    GRID_LEVELS,
    paper_bandwidth,
    rule_of_thumb,
    smoother,
)

__all__ = [
    "ProductKernelFit",
    "ScoreMap",
    "fit_product_kernel",
    "fit_score_map",
    "monotone",
]

MAX_LEVELS = 30
N_BINS = 8192
BLOCK = 4_000_000
"""Kernel values in memory at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreMap:
    """A piecewise map of scores, clipped to the range of the outcomes.

    Parameters
    ----------
    nodes, values : array of shape (k,)
        Ascending scores and the calibrated value at each; linear between them and constant beyond.
    steps : bool
        Whether a value holds from its node up to the next one instead.
    slope, intercept : float or None
        Of a logistic map, which has no nodes.
    low, high : float
        Between which a logistic map runs.
    """

    nodes: FloatArray
    values: FloatArray
    steps: bool = False
    slope: float | None = None
    intercept: float | None = None
    low: float = 0.0
    high: float = 1.0

    def __call__(self, score: FloatArray) -> FloatArray:
        """Return the calibrated value of each score."""
        if self.slope is not None and self.intercept is not None:
            share = special.expit(self.intercept + self.slope * score)
            return np.asarray(self.low + (self.high - self.low) * share)
        if self.steps:
            at = np.searchsorted(self.nodes, score, side="right") - 1
            return self.values[np.clip(at, 0, len(self.values) - 1)]
        return np.interp(score, self.nodes, self.values)


def fit_score_map(
    y_true: AnyArray,
    y_score: AnyArray,
    *,
    method: CalibrationMethod = "monotone",
    cluster: AnyArray | None = None,
    unit: ParityUnit = "row",
    weight: AnyArray | None = None,
    n_bins: int = 20,
) -> ScoreMap:
    r"""Fit the map from a score to the mean outcome.

    Parameters
    ----------
    y_true, y_score : array of shape (n,)
        Outcome and score.
    method : {"monotone", "interpolate", "isotonic", "platt", "binning"}
        "monotone": local-linear estimates at score quantiles, made monotone, linear between them;
        "interpolate": the paper's Nadaraya-Watson estimates between quantiles (section 4.1);
        "isotonic": least squares under monotonicity; "platt": a logistic curve, from 0 to 1 or,
        for other outcomes, from the smallest to the largest; "binning": means of bins with equal
        counts.
    cluster : array of shape (n,), optional
        Who a row belongs to.
    unit : {"row", "cluster"}, default "row"
        Whether rows or clusters weigh alike.
    weight : array of shape (n,), optional
        Sampling weights.
    n_bins : int, default 20
        Of "binning".

    Returns
    -------
    ScoreMap

    Notes
    -----
    *Deviations from the paper*: the default is local linear and monotone; the bandwidth is one
    number for the group.

    Examples
    --------
    Outcomes follow the square of the score. What does a score of 0.5 become?

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> score = rng.uniform(size=5000)
    >>> outcome = rng.uniform(size=5000) < score**2
    >>> round(float(fit_score_map(outcome, score)(np.array([0.5]))[0]), 2)
    0.24

    About a quarter, as it should.
    """
    check_option("method", method, CalibrationMethod)
    size = len(np.asarray(y_true))
    cells = ScoreCells.from_rows(
        y_true,
        y_score,
        np.zeros(size, dtype=np.int64),
        n_groups=1,
        cluster=cluster,
        unit=unit,
        weight=weight,
        n_bins=N_BINS if size > 10 * N_BINS and method in ("monotone", "interpolate") else None,
    )
    mass, total = (sums[0] for sums in cells.sums())
    seen = mass > 0.0
    if not seen.any():
        raise DataError("weights must not all be zero; a calibrator needs rows that count.")
    support, mass, total = cells.support[seen], mass[seen], total[seen]
    if method == "platt":
        return _platt(support, mass, total, cells.rows.outcome)
    if len(support) == 1:
        return ScoreMap(nodes=support, values=total / mass)
    if method == "isotonic":
        return ScoreMap(nodes=support, values=monotone(total / mass, mass))
    if method == "binning":
        return _bins(support, mass, total, n_bins)
    return _kernel(cells, support, mass, total, paper=method == "interpolate")


def monotone(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the non-decreasing sequence nearest to `values` in weighted least squares.

    Parameters
    ----------
    values, weight : array of shape (k,)
        The sequence and the weight of each value.

    Returns
    -------
    array of shape (k,)

    Examples
    --------
    Which monotone sequence is nearest to 1, 3, 2?

    >>> import numpy as np
    >>> monotone(np.array([1.0, 3.0, 2.0]), np.ones(3))
    array([1. , 2.5, 2.5])
    """
    return np.asarray(optimize.isotonic_regression(values, weights=weight).x, dtype=np.float64)


def _kernel(
    cells: ScoreCells, support: FloatArray, mass: FloatArray, total: FloatArray, *, paper: bool
) -> ScoreMap:
    few = len(support) <= MAX_LEVELS
    nodes = support if few else np.unique(weighted_quantile(support, mass, GRID_LEVELS))
    width: FloatArray | float = 0.0 if few else rule_of_thumb(cells)
    if paper and not few:
        width = paper_bandwidth(nodes, max(int(cells.n_rows[0]), 1))
    fit = smoother(nodes, support, mass, width, degree=0 if paper else 1)
    values = np.clip(fit.level @ total, cells.rows.outcome.min(), cells.rows.outcome.max())
    if not paper:
        values = monotone(values, np.maximum(fit.mass, 1e-12 * fit.mass.max()))
    return ScoreMap(nodes=nodes, values=values)


def _bins(support: FloatArray, mass: FloatArray, total: FloatArray, n_bins: int) -> ScoreMap:
    edges = np.unique(weighted_quantile(support, mass, np.arange(1, n_bins) / n_bins))
    code = np.searchsorted(edges, support, side="left")
    present, code = np.unique(code, return_inverse=True)
    weight = np.bincount(code, weights=mass)
    first = np.array([support[code == k][0] for k in range(len(present))])
    return ScoreMap(nodes=first, values=np.bincount(code, weights=total) / weight, steps=True)


def _platt(
    support: FloatArray, mass: FloatArray, total: FloatArray, outcome: FloatArray
) -> ScoreMap:
    low, high = min(0.0, float(outcome.min())), max(1.0, float(outcome.max()))
    share = (total - low * mass) / (high - low)
    centre = float(np.average(support, weights=mass))
    scale = float(np.sqrt(np.average((support - centre) ** 2, weights=mass))) or 1.0
    u = (support - centre) / scale
    n = mass.sum()

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        eta = theta[0] + theta[1] * u
        # A ridge of 1e-6 keeps perfectly separated groups finite.
        value = mass @ np.logaddexp(0.0, eta) - share @ eta
        gap = mass * special.expit(eta) - share
        ridge = 1e-6 * theta
        return float(value / n + 0.5 * theta @ ridge), np.array([gap.sum(), gap @ u]) / n + ridge

    fit = optimize.minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B")
    slope = float(fit.x[1]) / scale
    return ScoreMap(
        nodes=np.empty(0),
        values=np.empty(0),
        slope=slope,
        intercept=float(fit.x[0]) - slope * centre,
        low=low,
        high=high,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductKernelFit:
    """Nadaraya-Watson regression with a Gaussian product kernel.

    Parameters
    ----------
    score : array of shape (n, k)
        Scores in units of their bandwidths.
    outcome : array of shape (n, q)
        Outcomes.
    weight : array of shape (n,)
        Sampling weights.
    bandwidth : array of shape (k,)
        Of each score.
    """

    score: FloatArray
    outcome: FloatArray
    weight: FloatArray
    bandwidth: FloatArray

    def __call__(self, score: FloatArray) -> FloatArray:
        """Return the mean outcomes at each row of scores; shape (m, q)."""
        scaled = score / self.bandwidth
        step = max(BLOCK // len(self.score), 1)
        parts = [self._at(scaled[first : first + step]) for first in range(0, len(scaled), step)]
        return np.concatenate(parts) if parts else np.empty((0, self.outcome.shape[1]))

    def _at(self, scaled: FloatArray) -> FloatArray:
        distance = np.zeros((len(scaled), len(self.score)))
        for column, own in zip(scaled.T, self.score.T, strict=True):
            distance += (column[:, None] - own[None, :]) ** 2
        # Far from every row all kernels underflow; relative to the nearest row they do not.
        distance -= distance.min(axis=1, keepdims=True)
        kernel = np.exp(-0.5 * distance) * self.weight
        return np.asarray(kernel @ self.outcome / kernel.sum(axis=1, keepdims=True))


def fit_product_kernel(
    outcome: FloatArray, score: FloatArray, *, weight: FloatArray | None = None
) -> ProductKernelFit:
    r"""Fit mean outcomes given several scores.

    Parameters
    ----------
    outcome : array of shape (n, q)
        Outcomes.
    score : array of shape (n, k)
        Scores.
    weight : array of shape (n,), optional
        Sampling weights.

    Returns
    -------
    ProductKernelFit

    Notes
    -----
    The bandwidth of score k is :math:`1.06\,\mathrm{sd}_k n^{-1/(4+K)}`.

    Examples
    --------
    Outcomes depend on the sum of two scores. What is expected at (0.5, 0.5)?

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=(4000, 2))
    >>> outcome = score.sum(axis=1, keepdims=True)
    >>> fit_product_kernel(outcome, score)(np.array([[0.5, 0.5]])).round(2)
    array([[1.]])

    One.
    """
    n, k = score.shape
    w = np.ones(n) if weight is None else weight
    centre = np.average(score, axis=0, weights=w)
    spread = np.sqrt(np.average((score - centre) ** 2, axis=0, weights=w))
    bandwidth = np.where(spread > 0.0, 1.06 * spread * n ** (-1.0 / (4.0 + k)), 1.0)
    return ProductKernelFit(score=score / bandwidth, outcome=outcome, weight=w, bandwidth=bandwidth)
