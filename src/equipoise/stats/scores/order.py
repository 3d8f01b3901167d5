r"""Whether a lower score in one group means more than a higher score in another.

The second half of Definition 2 of the paper: :math:`f_g(s) \le f_h(s')` for all groups
:math:`g \ne h` and scores :math:`s < s'`. Any average of the left side is at most any average of
the right one, so that intervals of scores are compared; the groups need no score in common.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
from scipy import sparse

from equipoise._typing import AnyArray, FloatArray, IntArray, Rng
from equipoise.stats.multiplicity import gaussian_draws, skewed_draws, tail_share
from equipoise.stats.scores.cells import AnyScoreCells, ScoreCells, mid_ranks
from equipoise.stats.scores.rows import sum_by

__all__ = ["OrderTest", "order_test"]

N_BINS = 10
"""Intervals of equal share of the groups' mixture; their runs are compared."""
N_DRAWS = 5000
INFORMATION = 10.0
"""Units times m(1 - m) that each side must have when outcomes are 0 or 1."""
UNITS = 30.0
"""Units that each side must have otherwise."""
MOST_GROUPS = 20
"""Of more groups the largest are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTest:
    """The strongest sign that lower scores of one group mean more than higher ones of another.

    Parameters
    ----------
    group_low, group_high : int
        Group with the lower scores and the higher mean outcome; the other one.
    scores_low, scores_high : tuple of float
        Lowest and highest score of each of the two intervals.
    gap, se : float
        Mean outcome of the first minus that of the second, and its standard error under the null
        hypothesis.
    statistic, p_value : float
        Largest gap in standard errors; one-sided, for all pairs of groups and intervals at once.
    bound : float
        With 95% confidence the gap exceeds it.
    n_contrasts : int
        Comparisons made.
    """

    group_low: int
    group_high: int
    scores_low: tuple[float, float]
    scores_high: tuple[float, float]
    gap: float
    se: float
    statistic: float
    p_value: float
    bound: float
    n_contrasts: int


class _Bins(NamedTuple):
    """Sums of a group in an interval of scores; arrays of shape (n_groups, bins).

    `weight`, `total`: sums of weights and of weighted outcomes; `second`, `third`: of squared
    and cubed weights; `moments`: sums of w, w Y, w Y^2, w Y^3 of all groups, shape (4, bins).
    """

    weight: FloatArray
    total: FloatArray
    second: FloatArray
    third: FloatArray
    moments: FloatArray


class _Dependence(NamedTuple):
    """Sums over clusters of products of their residual sums by cell, and of powers of weights."""

    product: FloatArray
    second: FloatArray
    third: FloatArray


def order_test(
    cells: AnyScoreCells,
    *,
    pairs: Sequence[tuple[int, int]] | None = None,
    rng: Rng = None,
) -> OrderTest | None:
    r"""Test that nobody with a lower score has a higher mean outcome than another group's higher.

    The null hypothesis is :math:`f_g(s) \le f_h(s')` for all pairs of groups and all s < s'.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        The rows.
    pairs : sequence of (int, int), optional
        Groups to compare, both ways; by default all.
    rng : numpy.random.Generator or int, optional
        Source of the draws.

    Returns
    -------
    OrderTest or None
        `None` when no two intervals of two groups have enough information.

    Notes
    -----
    Scores fall into ten bins of equal share of the groups' mixture. Every run of bins of one group
    is compared with every higher run of another; the largest one-sided statistic is referred to
    the law of the maximum at the least favourable null, where all means agree. Variances and third
    moments are those of the pooled isotonic regression, never less: a cell with few positives by
    chance has a low mean and a small variance of its own, and a test with own variances rejects
    11.8% at level 5% where outcomes are rare. Outcomes other than 0 and 1 can vary more in one
    group than in another at the same mean; the variance of a group, and of its cell, counts where
    it is larger. Cell sums are drawn from Pearson type III laws with these moments. Comparisons far
    below zero cannot bind and are left out of the law [2]_ [3]_.

    References
    ----------
    .. [1] C. DiCiccio, B. Hsu, Y. Yu, P. Nandy and K. Basu (2023), Detection and mitigation of
       algorithmic bias via predictive rate parity, FAccT, 1801-1816. doi:10.1145/3593013.3594117
    .. [2] P. R. Hansen (2005), A test for superior predictive ability, Journal of Business &
       Economic Statistics 23. https://doi.org/10.1198/073500105000000063
    .. [3] D. W. K. Andrews and G. Soares (2010), Inference for parameters defined by moment
       inequalities, Econometrica 78. https://doi.org/10.3982/ECTA7502

    Examples
    --------
    Score 0 means 80% in one group, score 1 means 60% in the other. Is the order violated?

    >>> import numpy as np
    >>> group = np.repeat([0, 1], 500)
    >>> outcome = np.concatenate([np.arange(500) % 10 < 8, np.arange(500) % 10 < 6])
    >>> test = order_test(ScoreCells.from_rows(outcome, group, group))
    >>> test.p_value < 0.001, round(test.gap, 2)
    (True, 0.2)

    It is, by twenty points, though no score is common to both.
    """
    place, edges = _places(cells)
    bins = cells.reduce(_binned, place, len(edges))
    level = _pooled_level(bins)
    variance, skew, correlation = _null_law(cells, bins, level, place)
    units = _units(cells, edges)
    information = units * level * (1.0 - level) / INFORMATION if cells.binary else units / UNITS
    # Draws run in an order made of numbers, so that the names of groups do not matter.
    numeric = sorted(
        range(cells.n_groups), key=lambda g: (bins.weight[g].sum(), bins.total[g].sum())
    )
    if pairs is None:
        kept = sorted(numeric[-MOST_GROUPS:])
        pairs = [(a, b) for a, b in permutations(kept, 2) if a < b]
    ordered = [pair for a, b in pairs for pair in ((a, b), (b, a))]
    tested = [found for low, high in ordered for found in _contrasts(bins, information, low, high)]
    if not tested:
        return None
    contrasts = _Contrasts.of(tested, bins, variance)
    best = int(np.argmax(contrasts.statistic))
    binding = contrasts.statistic >= -np.sqrt(2.0 * np.log(max(len(tested), 2)))
    observed = float(contrasts.statistic[best])
    p_value, critical = 1.0, np.inf
    if binding.any():
        draws = _draws(variance[numeric], skew[numeric], correlation, numeric, rng)
        largest = contrasts.maxima(draws[:, np.argsort(numeric)], bins, binding)
        p_value = float(tail_share(largest, np.array([observed]))[0]) if observed > 0.0 else 1.0
        critical = float(np.quantile(largest, 0.95))
    low, high, i, j = tested[best]
    gap, se = float(contrasts.gap[best]), float(contrasts.se[best])
    return OrderTest(
        group_low=low,
        group_high=high,
        scores_low=(edges[i[0]][0], edges[i[1] - 1][1]),
        scores_high=(edges[j[0]][0], edges[j[1] - 1][1]),
        gap=gap,
        se=se,
        statistic=observed,
        p_value=p_value,
        bound=gap - critical * se if np.isfinite(critical) else -np.inf,
        n_contrasts=len(tested),
    )


def _places(cells: AnyScoreCells) -> tuple[IntArray, list[tuple[float, float]]]:
    """Return the bin of each score, and the lowest and highest score of each bin."""
    if len(cells.support) <= N_BINS:
        place = np.arange(len(cells.support))
    else:
        step = np.minimum((mid_ranks(cells.sums()[0]) * N_BINS).astype(np.int64), N_BINS - 1)
        place = np.unique(step, return_inverse=True)[1]
    first = np.searchsorted(place, np.arange(place[-1] + 1))
    last = np.searchsorted(place, np.arange(place[-1] + 1), side="right") - 1
    ends = zip(cells.support[first].tolist(), cells.support[last].tolist(), strict=True)
    return place, list(ends)


def _binned(cells: ScoreCells, place: IntArray, n_bins: int) -> _Bins:
    shape = (cells.n_groups, n_bins)
    length = shape[0] * shape[1]
    binary, at = cells.binary, np.tile(place, cells.n_groups)
    code = _codes(cells, place, n_bins)
    weight, total = (sum_by(code, sums.ravel(), length) for sums in cells.sums())
    powers, moments = np.zeros((2, length)), np.zeros((2, n_bins))
    for block in cells.rows.blocks(length):
        w = block.weight
        square = w * w if cells.clustered else w * w * np.repeat(block.copies, np.diff(block.start))
        own = code[block.cell]
        powers[0] += np.bincount(own, weights=square, minlength=length)
        powers[1] += np.bincount(own, weights=square * w, minlength=length)
        if not binary:
            y, bins = block.outcome, at[block.cell]
            mass = w if cells.clustered else w * np.repeat(block.copies, np.diff(block.start))
            moments[0] += np.bincount(bins, weights=mass * y * y, minlength=n_bins)
            moments[1] += np.bincount(bins, weights=mass * y * y * y, minlength=n_bins)
    first = total.reshape(shape).sum(axis=0)
    # Powers of 0 and 1 are what they are.
    higher = np.stack([first, first]) if binary else moments
    return _Bins(
        weight=weight.reshape(shape),
        total=total.reshape(shape),
        second=powers[0].reshape(shape),
        third=powers[1].reshape(shape),
        moments=np.stack([weight.reshape(shape).sum(axis=0), first, *higher]),
    )


def _codes(cells: ScoreCells, place: IntArray, n_bins: int) -> IntArray:
    """Return the (group, bin) of each cell."""
    return np.asarray(
        (np.arange(cells.n_groups)[:, None] * n_bins + place).ravel().astype(np.int32)
    )


def _pooled_level(bins: _Bins) -> FloatArray:
    """Return the non-decreasing mean outcome of all groups by bin: the shape of the null."""
    weight, total = bins.moments[:2]
    mean = np.divide(total, weight, out=np.zeros(len(weight)), where=weight > 0.0)
    # A bin without weight takes any value between its neighbours.
    return _non_decreasing(mean, np.maximum(weight, 1e-12 * weight.max()))


def _non_decreasing(mean: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the isotonic fit: the largest over a of the smallest over b of means from a to b."""
    k = len(mean)
    before = np.triu(np.ones((k, k)))
    mass = np.cumsum(before * weight, axis=1)
    sums = np.cumsum(before * weight * mean, axis=1)
    means = np.divide(sums, mass, out=np.full((k, k), -np.inf), where=mass > 0.0)
    smallest = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.maximum.accumulate(smallest, axis=0).diagonal())


def _null_law(
    cells: AnyScoreCells, bins: _Bins, level: FloatArray, place: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return variance and skewness of each cell's sum under the null, and their correlations."""
    if cells.binary:
        second = level * (1.0 - level)
        third = second * (1.0 - 2.0 * level)
    else:
        weight = np.where(bins.moments[0] > 0.0, bins.moments[0], 1.0)
        one, two, three = bins.moments[1:] / weight
        second = np.maximum(two - 2.0 * level * one + level**2, 0.0)
        third = three - 3.0 * level * two + 3.0 * level**2 * one - level**3
    variance, cube = bins.second * second, bins.third * third
    correlation = None
    if cells.clustered and cells.n_rows.sum() > cells.n_units:
        found = cells.reduce(_dependence, place, level, bins.weight.shape[1])
        own = np.diag(found.product).reshape(variance.shape)
        # As if the rows of a cluster were one, times how much less that is on the whole.
        variance, cube = (
            moment * power.reshape(own.shape)
            for moment, power in ((second, found.second), (third, found.third))
        )
        part = min(float(own.sum() / max(variance.sum(), 1e-300)), 1.0)
        # A cell's own variance counts where it is larger, never where chance lowers it.
        variance, cube = np.maximum(own, part * variance), part * cube
        sd = np.sqrt(np.where(variance.ravel() > 0.0, variance.ravel(), 1.0))
        correlation = found.product / np.outer(sd, sd)
        np.fill_diagonal(correlation, 1.0)
    elif not cells.binary:
        own = cells.reduce(_own_variance, place, level, bins.weight.shape[1])
        pooled = np.where(variance > 0.0, variance, 1.0)
        times = np.maximum(own.sum(axis=1) / np.maximum(variance.sum(axis=1), 1e-300), 1.0)
        # As skewed as the pooled ones; more varied where the group is, or the cell itself.
        wider = np.maximum(own / pooled, times[:, None])
        variance, cube = variance * wider, cube * wider**1.5
    safe = np.where(variance > 0.0, variance, 1.0)
    return variance, np.where(variance > 0.0, cube / safe**1.5, 0.0), correlation


def _own_variance(cells: ScoreCells, place: IntArray, level: FloatArray, n_bins: int) -> FloatArray:
    """Return the variance of each cell's sum around the null, as if rows were independent."""
    length = cells.n_groups * n_bins
    number, null = _codes(cells, place, n_bins), np.tile(level[place], cells.n_groups)
    found = np.zeros(length)
    for block in cells.rows.blocks(length):
        square = (block.weight * (block.outcome - null[block.cell])) ** 2
        square *= np.repeat(block.copies, np.diff(block.start))
        found += np.bincount(number[block.cell], weights=square, minlength=length)
    return found.reshape(cells.n_groups, n_bins)


def _dependence(cells: ScoreCells, place: IntArray, level: FloatArray, n_bins: int) -> _Dependence:
    length = cells.n_groups * n_bins
    number, null = _codes(cells, place, n_bins), np.tile(level[place], cells.n_groups)
    product, second, third = np.zeros((length, length)), np.zeros(length), np.zeros(length)
    for block in cells.rows.blocks():
        code = number[block.cell]
        shape = (len(block.copies), length)
        term = block.weight * (block.outcome - null[block.cell])
        units = sparse.csr_array((term, code, block.start), shape=shape).toarray()
        product += units.T @ units
        weight = sparse.csr_array((block.weight, code, block.start), shape=shape).toarray()
        square = weight * weight
        second += np.sum(square, axis=0)
        third += np.einsum("ij,ij->j", square, weight)
    return _Dependence(product, second, third)


def _units(cells: AnyScoreCells, edges: list[tuple[float, float]]) -> FloatArray:
    low, high = np.array(edges).T
    return cells.units_within(low, high).astype(np.float64)


_Contrast = tuple[int, int, tuple[int, int], tuple[int, int]]
"""Lower and higher group, run of bins of each: from the first to before the second number."""


def _contrasts(bins: _Bins, information: FloatArray, low: int, high: int) -> Iterator[_Contrast]:
    """Yield the runs of the lower group below runs of the higher one, with enough information."""
    k = bins.weight.shape[1]
    running = np.concatenate([np.zeros((len(information), 1)), np.cumsum(information, axis=1)], 1)
    runs = [(i, j) for i in range(k) for j in range(i + 1, k + 1)]
    below = [run for run in runs if running[low, run[1]] - running[low, run[0]] >= 1.0]
    above = [run for run in runs if running[high, run[1]] - running[high, run[0]] >= 1.0]
    for first in below:
        for second in above:
            if first[1] <= second[0]:
                yield low, high, first, second


class _Contrasts(NamedTuple):
    """Gaps, standard errors and statistics, and where their runs begin and end."""

    runs: IntArray
    gap: FloatArray
    se: FloatArray
    statistic: FloatArray

    @classmethod
    def of(cls, tested: list[_Contrast], bins: _Bins, variance: FloatArray) -> "_Contrasts":
        runs = np.array([(low, *i, high, *j) for low, high, i, j in tested])
        weight = _over(bins.weight, runs)
        mean = _over(bins.total, runs) / weight
        spread = _over(variance, runs) / weight**2
        gap, se = mean[0] - mean[1], np.sqrt(spread.sum(axis=0))
        safe = np.where(se > 0.0, se, 1.0)
        # Without variance under the null nothing can differ.
        return cls(runs, gap, se, np.where(se > 0.0, gap / safe, -np.inf))

    def maxima(self, draws: FloatArray, bins: _Bins, binding: AnyArray) -> FloatArray:
        """Return the largest statistic of each draw of the sums, among those that can bind."""
        largest = np.full(len(draws), -np.inf)
        runs, se = self.runs[binding], self.se[binding]
        weight = _over(bins.weight, runs)
        running = np.concatenate([np.zeros((*draws.shape[:2], 1)), np.cumsum(draws, axis=2)], 2)
        step = max(2_000_000 // len(draws), 1)
        for first in range(0, len(runs), step):
            part = slice(first, first + step)
            low, i0, i1, high, j0, j1 = runs[part].T
            mean = (running[:, low, i1] - running[:, low, i0]) / weight[0, part]
            mean -= (running[:, high, j1] - running[:, high, j0]) / weight[1, part]
            largest = np.maximum(largest, (mean / se[part]).max(axis=1))
        return largest


def _over(values: FloatArray, runs: IntArray) -> FloatArray:
    """Sum values over the two runs of each contrast; shape (2, contrasts)."""
    running = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    low, i0, i1, high, j0, j1 = runs.T
    return np.array([running[low, i1] - running[low, i0], running[high, j1] - running[high, j0]])


def _draws(
    variance: FloatArray,
    skew: FloatArray,
    correlation: FloatArray | None,
    numeric: list[int],
    rng: Rng,
) -> FloatArray:
    """Draw sums of cells, (draws, groups, bins), with the moments given."""
    shape = variance.shape
    gamma, scale = skew.ravel(), np.sqrt(variance.ravel())
    if correlation is not None:
        order = (np.array(numeric)[:, None] * shape[1] + np.arange(shape[1])).ravel()
        z = gaussian_draws(correlation[np.ix_(order, order)], n_draws=N_DRAWS, rng=rng)
        z += gamma / 6.0 * (z * z - 1.0)
    else:
        z = skewed_draws(gamma, n_draws=N_DRAWS, rng=rng)
    return np.asarray((z * scale).reshape(N_DRAWS, *shape))
