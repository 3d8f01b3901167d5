r"""Cumulative sums of residuals over the score: a global test by score.

For two groups with pooled regression :math:`m(s) = E(Y | S = s)` and group share
:math:`\pi(s) = P(G = 1 | S = s)`,

.. math:: R(t) = \sum_i \omega_i (Y_i - m(S_i)) (1\{G_i = 1\} - \pi(S_i)) 1(S_i \le t).

The second factor is orthogonal to functions of the score, so the error of estimating m enters only
through its product with the error of :math:`\pi`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from equipoise._typing import FloatArray, IntArray, Rng
from equipoise.stats.scores.bands import gaussian_draws, tail_share
from equipoise.stats.scores.cells import ScoreCells, weighted_quantile
from equipoise.stats.scores.partitioned import AnyScoreCells

__all__ = ["CusumTest", "cusum_test"]

N_POINTS = 100
"""Score quantiles at which the sum is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CusumTest:
    """Largest and mean squared cumulative sum, with p-values by Gaussian multipliers over units.

    Parameters
    ----------
    points, path : array of shape (p,)
        Scores; cumulative sum at each divided by its standard deviation at the largest score.
    ks_statistic, ks_p_value : float
        Largest absolute value of the path (Kolmogorov-Smirnov).
    cvm_statistic, cvm_p_value : float
        Mean square of the path (Cramer-von Mises).
    total, total_se : float
        Sum at the largest score and its standard error.
    location : float
        Score at which the path is largest.
    """

    points: FloatArray
    path: FloatArray
    ks_statistic: float
    ks_p_value: float
    cvm_statistic: float
    cvm_p_value: float
    total: float
    total_se: float
    location: float


def cusum_test(
    cells: AnyScoreCells, centre: FloatArray, factor: FloatArray, *, rng: Rng = None
) -> CusumTest | None:
    r"""Test that residuals have mean zero at every score, given the factor.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        The rows.
    centre, factor : array of shape (n_groups * len(support),)
        Mean outcome under the null hypothesis, and multiplier, of each cell.
    rng : numpy.random.Generator or int, optional
        Source of the draws.

    Returns
    -------
    CusumTest or None
        `None` when every residual is zero: there is nothing to judge by.
    """
    mass = cells.sums()[0].sum(axis=0)
    levels = np.arange(1, N_POINTS + 1) / N_POINTS
    points = np.unique(weighted_quantile(cells.support, mass, levels))
    step = np.minimum(np.searchsorted(points, cells.support), len(points) - 1).astype(np.int32)
    moves = cells.reduce(_moves, centre, factor, step, len(points))
    path = np.cumsum(moves.total)
    covariance = np.cumsum(np.cumsum(moves.product, axis=0), axis=1)
    if covariance[-1, -1] <= 0.0:
        return None
    scale = float(np.sqrt(covariance[-1, -1]))
    draws = gaussian_draws(covariance / scale**2, rng=rng)
    scaled = path / scale
    ks, cvm = float(np.abs(scaled).max()), float(np.mean(scaled**2))
    return CusumTest(
        points=points,
        path=scaled,
        ks_statistic=ks,
        ks_p_value=float(tail_share(np.abs(draws).max(axis=1), np.array([ks]))[0]),
        cvm_statistic=cvm,
        cvm_p_value=float(tail_share((draws**2).mean(axis=1), np.array([cvm]))[0]),
        total=float(path[-1]),
        total_se=scale,
        location=float(points[np.argmax(np.abs(scaled))]),
    )


class _Moves(NamedTuple):
    """Sums over units of what moves the path between points, and of products of these."""

    total: FloatArray
    product: FloatArray


def _moves(
    cells: ScoreCells, centre: FloatArray, factor: FloatArray, step: IntArray, n_points: int
) -> _Moves:
    """Sum the moves; a row moves the path from one point on, running sums come at the end."""
    size = len(cells.support)
    total, product = np.zeros(n_points), np.zeros((n_points, n_points))
    for block in cells.rows.blocks():
        term = block.weight * (block.outcome - centre[block.cell]) * factor[block.cell]
        moves = sparse.csr_array(
            (term, step[block.cell % size], block.start), shape=(len(block.copies), n_points)
        ).toarray()
        total += block.copies @ moves
        product += moves.T @ (moves if cells.clustered else moves * block.copies[:, None])
    return _Moves(total, product)
