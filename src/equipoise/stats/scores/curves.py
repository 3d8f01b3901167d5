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

from equipoise._checks import check_finite, check_fraction, check_number, check_option
from equipoise._numbers import number
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Rng, Smoothing
from equipoise.exceptions import DataError, GroupTooSmallError
from equipoise.stats.multiplicity import SimultaneousTest, gaussian_draws, max_t_test, tail_share
from equipoise.stats.scores.cells import (
    AnyScoreCells,
    InfluenceMoments,
    ScoreCells,
    cell_counts,
    mid_ranks,
    mixture,
    weighted_quantile,
)
from equipoise.stats.scores.kernel import GRID_LEVELS, rule_of_thumb
from equipoise.stats.scores.order import OrderTest
from equipoise.stats.summary import Interval, p_line, summary_table

__all__ = [
    "AverageDifference",
    "Axis",
    "Bands",
    "CommonSupport",
    "CusumTest",
    "Differences",
    "GroupCurve",
    "Neighbourhoods",
    "ParityTest",
    "average_of",
    "check_groups",
    "check_weights",
    "common_support",
    "curve_at",
    "cusum_test",
    "differences_at",
    "informative",
    "neighbourhoods",
    "score_axis",
    "score_bandwidth",
    "score_grid",
]

N_POINTS = 100
"""Score quantiles at which the sum is recorded."""
TAILS = np.array([0.005, 0.995])
SHARE_NEEDED = 0.5
MAX_LEVELS = 30
"""A score with at most this many values is compared value by value."""
LEAST_OVERLAP = 0.01
"""Mean variance of the group given the score, and share of common scores, below which groups
hardly share scores."""
FIRST_WIDTH = 0.02
"""Of ranks, at which few distinct scores begin to be smoothed."""
WIDEST = 0.25
"""Of ranks, for one point."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageDifference:
    r"""Difference averaged over the scores that the groups share, or over all of one group.

    Parameters
    ----------
    estimate, se : float
        Average and its standard error, whether or not there is a difference.
    degrees : float
        Of the t law, :math:`n_e = (\sum \psi^2)^2 / \sum \psi^4`.
    """

    estimate: float
    se: float
    degrees: float

    @property
    def p_value(self) -> float:
        """Of an average of zero; it exceeds one minus the level when the interval holds zero."""
        return float(2.0 * special.stdtr(self.degrees, -abs(self.estimate) / self.se))

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return the interval of the average.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        Interval
        """
        tail = 0.5 * (1.0 - check_fraction("confidence_level", confidence_level))
        half = -float(special.stdtrit(self.degrees, tail)) * self.se
        return Interval(self.estimate - half, self.estimate + half)


def average_of(estimate: float, variance: float, fourth: float) -> AverageDifference | None:
    """Return an average with its law; `None` when no residual is left to judge by."""
    if variance <= 0.0:
        return None
    degrees = max(variance**2 / fourth, 1.0 + 1e-9)
    se = float(np.sqrt(variance * degrees / (degrees - 1.0)))
    return AverageDifference(estimate=estimate, se=se, degrees=degrees)


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
    window : array of shape (p, 2)
        Lowest and highest score within a bandwidth.
    test : SimultaneousTest
        Standard errors, p-values and bands.
    """

    points: FloatArray
    estimate: FloatArray
    n_local: IntArray
    window: FloatArray
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
    average : AverageDifference or None
        Difference averaged over scores, weighted by how much the groups overlap there; `None` when
        every residual is zero.
    curves : tuple of GroupCurve
        One for each group.
    support : CommonSupport or None
        Scores in common; `None` for one group.
    bandwidth : float or None
        `None` when scores are compared value by value, or the bandwidth differs by point.
    overlap : float or None
        Mean variance of the group given the score: 0.25 at most, near 0 where groups hardly share
        scores; `None` for one group.
    order : OrderTest or None
        Whether a lower score means more in one group than a higher one in the other; `None` for one
        group, or with too little information for any comparison.
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
    average: AverageDifference | None
    curves: tuple[GroupCurve, ...]
    support: CommonSupport | None
    bandwidth: float | None
    n_units: IntArray
    n_rows: IntArray
    confidence_level: float
    groups: tuple[Hashable, ...] = ()
    overlap: float | None = None
    order: OrderTest | None = None

    @property
    def estimate(self) -> float:
        """Difference averaged over scores; NaN when every residual is zero."""
        return np.nan if self.average is None else self.average.estimate

    @property
    def statistic(self) -> float:
        """Largest cumulative sum of residuals (Kolmogorov-Smirnov); NaN without residuals."""
        return np.nan if self.cusum is None else self.cusum.ks_statistic

    @property
    def p_value(self) -> float:
        """Of no difference at any score; NaN if the groups hardly share scores."""
        return self.cusum.ks_p_value if self.cusum is not None and self.comparable else np.nan

    @property
    def comparable(self) -> bool:
        """Whether the groups share enough scores for a comparison at equal ones."""
        if self.overlap is None or self.support is None:
            return True
        return min(self.overlap, float(self.support.share.min())) >= LEAST_OVERLAP

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return an interval of the average difference.

        Curves may differ with an average difference of zero, so that the interval can hold zero
        where the test of all scores rejects; `differences` has a band over the scores.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        Interval
        """
        if self.average is None:
            return Interval(np.nan, np.nan)
        return self.average.confidence_interval(confidence_level)

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
    near: "Neighbourhoods",
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
        n_local=near.units.min(axis=0)[at],
        window=near.window[at],
        test=max_t_test(
            estimate[at],
            moments.covariance[np.ix_(at, at)],
            moments.fourth[at],
            repeats=grid.repeats[at],
            confidence_level=bands.confidence_level,
            n_comparisons=bands.n_comparisons,
            ordered=True,
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
        ordered=True,
        rng=bands.rng,
    )
    return GroupCurve(points=points[at], estimate=value[at], low=test.low, high=test.high)


class Axis(NamedTuple):
    """Where scores lie when they are smoothed: at their ranks, or where they are.

    `values` are the places of the scores, `bandwidth` the width of the pooled fit there and, for
    ranks, the smallest width at a point; `grows` says whether widths grow until there is enough
    information.
    """

    values: FloatArray
    bandwidth: float
    grows: bool


def score_axis(cells: AnyScoreCells, smoothing: Smoothing, bandwidth: float | None) -> Axis:
    """Return the axis on which scores are smoothed; a bandwidth that is given is one of scores."""
    check_option("smoothing", smoothing, Smoothing)
    if smoothing == "score" or bandwidth is not None:
        return Axis(cells.support, score_bandwidth(cells, bandwidth), grows=False)
    few = len(cells.support) <= MAX_LEVELS
    # 1.06 standard deviations of a uniform law.
    width = 0.0 if few else 0.306 * cells.n_units**-0.2
    return Axis(mid_ranks(cells.sums()[0]), width, grows=True)


class Neighbourhoods(NamedTuple):
    """What lies around each point: the width, the units of each group and their scores.

    `enough` says where each group has enough information, (n_groups, points); `window` has the
    lowest and the highest score within a width.
    """

    width: FloatArray
    units: IntArray
    enough: BoolArray
    window: FloatArray


def neighbourhoods(cells: AnyScoreCells, axis: Axis, points: FloatArray) -> Neighbourhoods:
    """Choose the width at each point: the smallest that has enough information in every group.

    Where none has, the smallest is kept and the point is not compared. `points` are scores,
    ascending. A wide kernel does not bias a difference of residuals where there is none.
    """
    at = np.interp(points, cells.support, axis.values)
    widths = [axis.bandwidth]
    if axis.grows:
        first = axis.bandwidth or FIRST_WIDTH
        grown = np.minimum(first * 2.0 ** (np.arange(12) / 3.0), WIDEST)
        widths += [float(h) for h in np.unique(grown) if h > axis.bandwidth]
    rows = cells.reduce(cell_counts).rows
    found = _around(cells, axis.values, rows, at, widths[0])
    for h in widths[1:]:
        left = np.flatnonzero(~found.enough.all(axis=0))
        if not len(left):
            break
        these = _around(cells, axis.values, rows, at[left], h)
        # A wider window is taken only where it is wide enough.
        better = these.enough.all(axis=0)
        for whole, part in zip(found, these, strict=True):
            whole[..., left[better]] = part[..., better]
    return found._replace(window=found.window.T)


def _around(
    cells: AnyScoreCells, axis: FloatArray, rows: FloatArray, at: FloatArray, h: float
) -> Neighbourhoods:
    """Look at the scores within h of each place; what has too few rows has too few units."""
    first = np.searchsorted(axis, at - h, side="left")
    last = np.searchsorted(axis, at + h, side="right")
    mass, total = cells.sums()
    weight, outcome, n_rows = (
        _within(sums, first, last) for sums in (mass.sum(axis=0), total.sum(axis=0), rows)
    )
    middle = np.divide(outcome, weight, out=np.zeros(len(at)), where=weight > 0.0)
    units = n_rows.round().astype(np.int64)
    full = first < last
    # An empty window opens above where it closes.
    low = np.where(full, cells.support[np.minimum(first, len(axis) - 1)], np.inf)
    high = np.where(full, cells.support[np.maximum(last - 1, 0)], -np.inf)
    worth = np.flatnonzero(informative(units, middle, binary=cells.binary).any(axis=0))
    if cells.clustered and len(worth):
        units[:, worth] = cells.units_within(low[worth], high[worth])
    window = np.where(full, [low, high], np.interp(at, axis, cells.support))
    enough = informative(units, middle, binary=cells.binary)
    return Neighbourhoods(np.full(len(at), h), units, enough, window)


def _within(sums: FloatArray, first: IntArray, last: IntArray) -> FloatArray:
    running = np.concatenate([np.zeros((*sums.shape[:-1], 1)), np.cumsum(sums, axis=-1)], axis=-1)
    return np.asarray(running[..., last] - running[..., np.minimum(first, last)])


def informative(local: IntArray, middle: FloatArray, *, binary: bool) -> BoolArray:
    """Say where each group has enough units near by; `middle` is the mean outcome there."""
    if not binary:
        return np.asarray(local >= UNITS_NEEDED)
    return np.asarray(local * (middle * (1.0 - middle)) >= INFORMATION_NEEDED)


def score_grid(support: FloatArray, mass: FloatArray, grid: AnyArray | None) -> Grid:
    """Return the scores at which to compare: those asked for, all of few, or 21 quantiles.

    Quantiles are those of the equal mixture of the groups; `mass` has a row for each.
    """
    if grid is None and len(support) <= MAX_LEVELS:
        return Grid(support, np.ones(len(support)))
    points = (
        weighted_quantile(support, mixture(mass), GRID_LEVELS)
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
