"""Curves of a mean outcome over a score, and differences between them, at informative scores."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from equipoise._checks import check_finite, check_number
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Rng
from equipoise.exceptions import DataError, GroupTooSmallError
from equipoise.stats.scores.bands import SimultaneousTest, max_t_test
from equipoise.stats.scores.cells import InfluenceMoments, weighted_quantile
from equipoise.stats.scores.cusum import CusumTest
from equipoise.stats.scores.kernel import GRID_LEVELS, rule_of_thumb
from equipoise.stats.scores.order import CommonSupport, OrderingViolation
from equipoise.stats.scores.partitioned import AnyScoreCells

__all__ = [
    "Bands",
    "Differences",
    "GroupCurve",
    "ParityTest",
    "check_groups",
    "check_weights",
    "curve_at",
    "differences_at",
    "informative",
    "score_bandwidth",
    "score_grid",
]

MAX_LEVELS = 30
"""A score with at most this many values is compared value by value."""
INFORMATION_NEEDED = 10.0
"""Units within a bandwidth times m(1 - m), below which a binary outcome is not compared."""
UNITS_NEEDED = 30
"""Units within a bandwidth, below which other outcomes are not compared."""
MIN_UNITS = 10
"""Units that each group must have."""


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
