r"""Curves of a mean outcome over a score: differences between two, their order and a global test.

The global test cumulates residuals over the score. For two groups with pooled regression
:math:`m(s) = E(Y | S = s)` and group share :math:`\pi(s) = P(G = 1 | S = s)`,

.. math:: R(t) = \sum_i \omega_i (Y_i - m(S_i)) (1\{G_i = 1\} - \pi(S_i)) 1(S_i \le t).

The second factor is orthogonal to functions of the score, so the error of estimating m enters only
through its product with the error of :math:`\pi`.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from equipoise._checks import check_finite, check_number
from equipoise._numbers import number
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Rng
from equipoise.exceptions import DataError, GroupTooSmallError
from equipoise.stats.multiplicity import SimultaneousTest, gaussian_draws, max_t_test, tail_share
from equipoise.stats.scores.cells import (
    AnyScoreCells,
    InfluenceMoments,
    ScoreCells,
    weighted_quantile,
)
from equipoise.stats.scores.kernel import GRID_LEVELS, rule_of_thumb
from equipoise.stats.summary import Interval, normal_quantile, p_line, summary_table

__all__ = [
    "Bands",
    "CommonSupport",
    "CusumTest",
    "Differences",
    "GroupCurve",
    "OrderingViolation",
    "ParityTest",
    "check_groups",
    "check_weights",
    "common_support",
    "curve_at",
    "cusum_test",
    "differences_at",
    "informative",
    "score_bandwidth",
    "score_grid",
    "worst_ordering_violation",
]

N_POINTS = 100
"""Score quantiles at which the sum is recorded."""
TAILS = np.array([0.005, 0.995])
SHARE_NEEDED = 0.5
MAX_LEVELS = 30
"""A score with at most this many values is compared value by value."""
INFORMATION_NEEDED = 10.0
"""Units within a bandwidth times m(1 - m), below which a binary outcome is not compared."""
UNITS_NEEDED = 30
"""Units within a bandwidth, below which other outcomes are not compared."""
MIN_UNITS = 10
"""Units that each group must have."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonSupport:
    """Scores that both groups have; parity outside them is not identified.

    Parameters
    ----------
    low, high : float
        Larger of the two 0.5% quantiles and smaller of the two 99.5% quantiles; ``low > high``
        when the groups do not overlap.
    share : array of shape (2,)
        Part of each group inside.
    """

    low: float
    high: float
    share: FloatArray

    @property
    def testable(self) -> bool:
        """Whether at least half of each group is inside."""
        return bool(self.share.min() >= SHARE_NEEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderingViolation:
    """The strongest sign that a lower score in one group means a higher outcome than in the other.

    Parameters
    ----------
    score_low, score_high : float
        The two scores.
    group_low : int
        Group that has the lower score and the higher estimated outcome.
    gap : float
        Difference of the estimated outcomes, positive for a violation.
    p_value : float
        One-sided, Bonferroni over all pairs of scores looked at.
    """

    score_low: float
    score_high: float
    group_low: int
    gap: float
    p_value: float


def common_support(support: FloatArray, mass: FloatArray) -> CommonSupport:
    """Find the scores two groups share.

    Parameters
    ----------
    support : array of shape (b,)
        Scores, ascending.
    mass : array of shape (2, b)
        Weight of each group at each score.

    Returns
    -------
    CommonSupport

    Examples
    --------
    Do groups scored 0 to 0.9 and 0.5 to 1.4 overlap?

    >>> import numpy as np
    >>> scores = np.arange(15) / 10
    >>> mass = np.array([scores < 0.95, scores > 0.45], dtype=float)
    >>> shared = common_support(scores, mass)
    >>> shared.low, shared.high, shared.share
    (0.5, 0.9, array([0.5, 0.5]))

    From 0.5 to 0.9, with half of each group.
    """
    ends = np.array([weighted_quantile(support, m, TAILS) for m in mass])
    low, high = float(ends[:, 0].max()), float(ends[:, 1].min())
    inside = (support >= low) & (support <= high)
    return CommonSupport(low=low, high=high, share=mass[:, inside].sum(axis=1) / mass.sum(axis=1))


def worst_ordering_violation(
    points: FloatArray, curves: FloatArray, covariance: FloatArray
) -> OrderingViolation | None:
    """Look for a lower score that means a higher outcome than a higher score in the other group.

    Parameters
    ----------
    points : array of shape (p,)
        Scores, ascending.
    curves : array of shape (2, p)
        Estimated mean outcome of each group.
    covariance : array of shape (2 * p, 2 * p)
        Of the two curves, one after the other.

    Returns
    -------
    OrderingViolation or None
        `None` with fewer than two points.

    Notes
    -----
    Second half of Definition 2 of the paper. Every pair of scores in both directions is tested
    one-sided; the smallest p-value is multiplied by their number. The power of this check has not
    been studied.
    """
    p = len(points)
    low, high = np.triu_indices(p, k=1)
    if not len(low):
        return None
    best: OrderingViolation | None = None
    for group in (0, 1):
        i, j = group * p + low, (1 - group) * p + high
        gap = curves[group, low] - curves[1 - group, high]
        variance = covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j]
        z = gap / np.sqrt(np.maximum(variance, 1e-300))
        k = int(np.argmax(z))
        p_value = min(1.0, float(special.ndtr(-z[k])) * 2 * len(low))
        if best is None or p_value < best.p_value:
            best = OrderingViolation(
                score_low=float(points[low[k]]),
                score_high=float(points[high[k]]),
                group_low=group,
                gap=float(gap[k]),
                p_value=p_value,
            )
    return best


class Bands(NamedTuple):
    """Level of a simultaneous band, how many bands are read together, and the source of draws."""

    confidence_level: float
    n_comparisons: int
    rng: Rng


class Grid(NamedTuple):
    """Distinct scores at which groups are compared, and how many quantiles fell on each."""

    points: FloatArray
    repeats: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCurve:
    """Mean outcome of one group by score, with a simultaneous band.

    Parameters
    ----------
    points, estimate, low, high : array of shape (p,)
        Scores with enough information; local-linear estimate; band.
    """

    points: FloatArray
    estimate: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Differences between two curves, or between a curve and the diagonal.

    Parameters
    ----------
    points, estimate : array of shape (p,)
        Scores with enough information; difference at each.
    n_local : array of shape (p,)
        Units within a bandwidth, in the smaller group.
    test : SimultaneousTest
        Standard errors, p-values and bands.
    """

    points: FloatArray
    estimate: FloatArray
    n_local: IntArray
    test: SimultaneousTest


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityTest:
    """What the scores of two groups, or of one group against the diagonal, say.

    Parameters
    ----------
    differences : Differences or None
        Where they differ; `None` when no grid point has enough information.
    dropped : array
        Grid points without enough information.
    cusum : CusumTest or None
        Whether they differ at all; `None` when every residual is zero.
    average : float or None
        Difference averaged over scores, weighted by how much the groups overlap there.
    average_se : float or None
        Its standard error under the null hypothesis.
    curves : tuple of GroupCurve
        One for each group.
    support : CommonSupport or None
        Scores in common; `None` for one group.
    ordering : OrderingViolation or None
        Strongest sign against the order of Definition 2.
    bandwidth : float or None
        `None` when scores are compared value by value, or the bandwidth differs by point.
    n_units, n_rows : array
        Of each group.
    confidence_level : float
        Simultaneous level of the bands.
    groups : tuple
        Labels of the groups, if known; differences are the second minus the first.
    """

    differences: Differences | None
    dropped: FloatArray
    cusum: CusumTest | None
    average: float | None
    average_se: float | None
    curves: tuple[GroupCurve, ...]
    support: CommonSupport | None
    ordering: OrderingViolation | None
    bandwidth: float | None
    n_units: IntArray
    n_rows: IntArray
    confidence_level: float
    groups: tuple[Hashable, ...] = ()

    @property
    def estimate(self) -> float:
        """Difference averaged over scores; NaN when every residual is zero."""
        return np.nan if self.average is None else self.average

    @property
    def statistic(self) -> float:
        """Largest cumulative sum of residuals (Kolmogorov-Smirnov); NaN without residuals."""
        return np.nan if self.cusum is None else self.cusum.ks_statistic

    @property
    def p_value(self) -> float:
        """Of no difference at any score; NaN if the groups have too few scores in common."""
        apart = self.support is not None and not self.support.testable
        return np.nan if self.cusum is None or apart else self.cusum.ks_p_value

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return an interval of the average difference.

        Curves may differ with an average difference of zero, so that the interval can hold zero
        where the test of all scores rejects; `differences` has a band over the scores. The standard
        error is that of residuals from the common curve, a little too large where curves differ.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        Interval
        """
        half = normal_quantile(confidence_level) * (self.average_se or 0.0)
        return Interval(self.estimate - half, self.estimate + half)

    def __str__(self) -> str:
        named = [str(label) for label in self.groups]
        what = f"outcome, {named[1]} minus {named[0]}" if len(named) == 2 else "outcome minus score"
        interval = f"{self.confidence_level:.0%} interval"
        columns: dict[str, list[object]] = {
            "score": ["average"],
            "difference": [self.estimate],
            interval: [self.confidence_interval(self.confidence_level)],
            "p": [None],
        }
        if self.differences is not None:
            at = self.differences
            ends = zip(at.test.low, at.test.high, strict=True)
            columns["score"] += [number(float(point)) for point in at.points]
            columns["difference"] += at.estimate.tolist()
            columns[interval] += [Interval(*pair) for pair in ends]
            columns["p"] += at.test.p_value_adjusted.tolist()
        title = f"Mean {what}: " + p_line(self.statistic, self.p_value, name="largest sum")
        return summary_table(title, columns)


def differences_at(
    grid: Grid,
    estimate: FloatArray,
    n_local: IntArray,
    moments: InfluenceMoments,
    keep: BoolArray,
    bands: Bands,
) -> Differences | None:
    """Test the differences at the points to keep; `moments` starts with theirs."""
    at = np.flatnonzero(keep & (np.diag(moments.covariance)[: len(keep)] > 0.0))
    if not len(at):
        return None
    return Differences(
        points=grid.points[at],
        estimate=estimate[at],
        n_local=n_local[at],
        test=max_t_test(
            estimate[at],
            moments.covariance[np.ix_(at, at)],
            moments.fourth[at],
            repeats=grid.repeats[at],
            confidence_level=bands.confidence_level,
            n_comparisons=bands.n_comparisons,
            rng=bands.rng,
        ),
    )


def curve_at(
    points: FloatArray,
    value: FloatArray,
    moments: InfluenceMoments,
    offset: int,
    keep: BoolArray,
    bands: Bands,
) -> GroupCurve:
    """Return a curve with its band at the points to keep; its moments start at `offset`."""
    variance = np.diag(moments.covariance)[offset : offset + len(points)]
    at = np.flatnonzero(keep & (variance > 0.0))
    if not len(at):
        none = np.empty(0)
        return GroupCurve(points=none, estimate=none, low=none, high=none)
    test = max_t_test(
        value[at],
        moments.covariance[np.ix_(offset + at, offset + at)],
        moments.fourth[offset + at],
        confidence_level=bands.confidence_level,
        n_comparisons=bands.n_comparisons,
        rng=bands.rng,
    )
    return GroupCurve(points=points[at], estimate=value[at], low=test.low, high=test.high)


def informative(local: IntArray, middle: FloatArray, *, binary: bool) -> BoolArray:
    """Say where each group has enough units near by; `middle` is the mean outcome there."""
    if not binary:
        return np.asarray(local >= UNITS_NEEDED)
    return np.asarray(local * (middle * (1.0 - middle)) >= INFORMATION_NEEDED)


def score_grid(support: FloatArray, mass: FloatArray, grid: AnyArray | None) -> Grid:
    """Return the scores at which to compare: those asked for, all of few, or 21 quantiles."""
    if grid is None and len(support) <= MAX_LEVELS:
        return Grid(support, np.ones(len(support)))
    points = (
        weighted_quantile(support, mass, GRID_LEVELS)
        if grid is None
        else check_finite("grid", grid, ndim=1)
    )
    distinct, repeats = np.unique(points, return_counts=True)
    return Grid(distinct, repeats.astype(np.float64))


def score_bandwidth(cells: AnyScoreCells, bandwidth: float | None) -> float:
    """Return the bandwidth asked for, 0 for a score with few values, or the rule of thumb."""
    if bandwidth is not None:
        return check_number("bandwidth", bandwidth, low=0.0)
    if len(cells.support) <= MAX_LEVELS:
        return 0.0
    return rule_of_thumb(cells)


def check_groups(cells: AnyScoreCells) -> IntArray:
    """Return the units of each group; raise if the score is constant or a group too small."""
    if len(cells.support) < 2:
        raise DataError(
            "`y_score` must vary; every score is the same. Compare the groups' mean outcomes with a"
            " disparity audit instead."
        )
    n_units = cells.units_in_group()
    if n_units.min() < MIN_UNITS:
        what = "clusters" if cells.clustered else "rows"
        raise GroupTooSmallError(
            f"each group must have at least {MIN_UNITS} {what}; the smallest has"
            f" {int(n_units.min())}. Merge groups or gather more data."
        )
    return n_units


def check_weights(mass: FloatArray) -> None:
    """Raise if the rows of a group have no weight."""
    if mass.sum(axis=1).min() == 0.0:
        raise DataError("each group must have weight; that of one is zero in every row.")
