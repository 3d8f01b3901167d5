r"""Whether a score is right, or means the same, in each of many overlapping segments.

For a segment j the residuals of its rows are added up over the score,

.. math:: KS_j = \max_t \Bigl| \sum_{i \in j,\, S_i \le t} w_i (Y_i - S_i) \Bigr| / \sigma_j,

with the moments that the null hypothesis gives: a cell of rows with scores S has variance
:math:`\sum w^2 S(1-S)` and third moment :math:`\sum w^3 S(1-S)(1-2S)`. A segment's own residual
variance is small exactly where it has few positives by chance, and tests that use it reject too
often. Segments share rows; their joint law is that of sums over the finest cells.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy import sparse

from equipoise._checks import check_integer, check_number, check_rng
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Rng
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.multiplicity import N_DRAWS, skewed_draws, step_down_shares, tail_share
from equipoise.stats.resampling import without_last_digits
from equipoise.stats.scores.cells import weighted_quantile

__all__ = ["MIN_UNITS", "MulticalibrationTest", "ResidualCells", "multicalibration_test"]

MIN_INFORMATION = 10.0
"""Sum of S(1 - S) that a segment must have."""
MIN_UNITS = 4.0
"""Effective independent units that a segment must have, where rows repeat units."""
N_CUTS = 20
"""Scores at which sums are looked at."""
_AT_ONCE = 4_000_000
"""Numbers that are drawn at once."""

_Sums: TypeAlias = Callable[[int, np.random.Generator], FloatArray]
"""So many draws of the sums of all cells, (n, C, K)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualCells:
    """Sums of residuals over cells (pattern, bin of the score), with their null moments.

    Parameters
    ----------
    total : array of shape (C, K)
        Residuals times weights; bins are in the order of the score.
    variance, third : array of shape (C, K)
        Moments of `total` under the null hypothesis.
    weight, variance_weighted_once : array of shape (C, K)
        Sum of weights; sum of weight times null variance of a row.
    centre : array of shape (K,), optional
        The mean of each bin, where residuals are taken from it; its error then counts.
    units : sparse array of shape (U, C * K), optional
        `total` by independent unit, where rows repeat units.
    roots : sparse array of shape (U, C * K), optional
        Sums of weight times null standard deviation of a row by unit: how much rows of a unit would
        add up to if they were all alike.
    """

    total: FloatArray
    variance: FloatArray
    third: FloatArray
    weight: FloatArray
    variance_weighted_once: FloatArray
    centre: FloatArray | None = None
    units: "sparse.csr_array | None" = None
    roots: "sparse.csr_array | None" = None

    @classmethod
    def around_score(
        cls,
        residual: FloatArray,
        weight: FloatArray,
        variance: FloatArray,
        variance_weighted_once: FloatArray,
        third: FloatArray,
    ) -> "ResidualCells":
        """Return cells of outcomes minus scores: calibration.

        Parameters
        ----------
        residual, weight : array of shape (C, K)
            Sums of w(Y - S) and of w.
        variance, variance_weighted_once, third : array of shape (C, K)
            Sums of w^2 S(1-S), w S(1-S) and w^3 S(1-S)(1-2S).

        Returns
        -------
        ResidualCells
        """
        return cls(
            total=residual,
            variance=variance,
            third=third,
            weight=weight,
            variance_weighted_once=variance_weighted_once,
        )

    @classmethod
    def around_mean(
        cls, outcome: FloatArray, weight: FloatArray, square: FloatArray, cube: FloatArray
    ) -> "ResidualCells":
        """Return cells of outcomes minus the mean of all rows with that score: parity.

        Parameters
        ----------
        outcome, weight, square, cube : array of shape (C, K)
            Sums of wY, w, w^2 and w^3.

        Returns
        -------
        ResidualCells
        """
        everyone = weight.sum(axis=0)
        m = np.divide(
            outcome.sum(axis=0), everyone, where=everyone > 0, out=np.zeros_like(everyone)
        )
        v = m * (1.0 - m)
        return cls(
            total=outcome - weight * m,
            variance=square * v,
            third=cube * v * (1.0 - 2.0 * m),
            weight=weight,
            variance_weighted_once=weight * v,
            centre=m,
        )

    def in_cuts(self, n_cuts: int) -> "ResidualCells":
        """Merge neighbouring bins into at most `n_cuts` of about equal weight."""
        mass = self.weight.sum(axis=0)
        if n_cuts >= len(mass):
            return self
        place = np.arange(len(mass), dtype=np.float64)
        ends = np.unique(weighted_quantile(place, mass, np.arange(1, n_cuts) / n_cuts))
        start = np.concatenate([[0], np.minimum(ends.astype(np.int64) + 1, len(mass))])
        start = np.unique(start[start < len(mass)])

        def merged(values: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(values, start, axis=1))

        units, roots = self.units, self.roots
        if units is not None:
            cut = np.searchsorted(start, np.arange(len(mass)), side="right") - 1
            n_patterns = len(self.total)
            to = (np.arange(n_patterns)[:, None] * len(start) + cut).ravel()
            column = np.arange(n_patterns * len(mass))
            gather = sparse.csr_array((np.ones(len(to)), (column, to)))
            units = (units @ gather).tocsr()
            roots = None if roots is None else (roots @ gather).tocsr()
        return replace(
            self,
            units=units,
            roots=roots,
            total=merged(self.total),
            variance=merged(self.variance),
            third=merged(self.third),
            weight=merged(self.weight),
            variance_weighted_once=merged(self.variance_weighted_once),
        )

    def shares(self, member: FloatArray) -> FloatArray:
        """Return the part of each bin's variance that a segment has, (J, K); 0 if not centred."""
        everyone = self.variance.sum(axis=0)
        if self.centre is None:
            return np.zeros((len(member), len(everyone)))
        own = member @ self.variance
        return np.asarray(np.divide(own, everyone, where=everyone > 0, out=np.zeros_like(own)))

    def segment_variance(self, member: FloatArray) -> FloatArray:
        """Return the null variance of the whole sum of each segment; units may enlarge it.

        A segment of few units has a variance of its own that is small exactly where few of its
        outcomes are positive. It is never below that of independent rows, nor below that of rows
        whose outcomes are as alike inside a unit as in the whole table.
        """
        variance = self._row_variance(member)
        if self.units is None:
            return variance
        coefficient = self.coefficient(member)
        by_unit = self.units @ coefficient.T
        found = np.maximum((by_unit**2).sum(axis=0), variance)
        if self.roots is None:
            return np.asarray(found)
        alike = ((self.roots @ coefficient.T) ** 2).sum(axis=0)
        alike = np.maximum(alike - coefficient**2 @ self.variance.ravel(), 0.0)
        return np.asarray(np.maximum(found, variance + self.likeness * alike))

    @property
    def likeness(self) -> float:
        """The correlation of the outcomes of a unit over the whole table, from 0 to 1."""
        if self.units is None or self.roots is None:
            return 0.0
        alone = float(self.variance.sum())
        seen, most = (float((x.sum(axis=1) ** 2).sum()) - alone for x in (self.units, self.roots))
        return min(max(seen / most, 0.0), 1.0) if most > 0.0 else 0.0

    def effective_units(self, member: FloatArray) -> FloatArray:
        """Return how many units of equal weight each segment has; infinite for single rows."""
        if self.roots is None:
            return np.full(len(member), np.inf)
        own = self.roots @ np.repeat(member, self.total.shape[1], axis=1).T
        square = (own**2).sum(axis=0)
        whole = own.sum(axis=0) ** 2
        return np.asarray(np.divide(whole, square, where=square > 0, out=np.zeros_like(square)))

    def coefficient(self, member: FloatArray) -> FloatArray:
        """Return how each cell enters the sum of each segment, (J, C * K)."""
        whole = member[:, :, None] - self.shares(member)[:, None, :]
        return np.asarray(whole.reshape(len(member), -1))

    def _row_variance(self, member: FloatArray) -> FloatArray:
        return np.asarray(((member @ self.variance) * (1.0 - self.shares(member))).sum(axis=1))

    def information(self, member: FloatArray) -> FloatArray:
        """Return the effective rows of each segment times their null variance."""
        once = (member @ self.variance_weighted_once).sum(axis=1)
        twice = (member @ self.variance).sum(axis=1)
        own = np.divide(once**2, twice, where=twice > 0, out=np.zeros_like(once))
        alone, whole = self._row_variance(member), self.segment_variance(member)
        left = np.divide(alone, twice, where=twice > 0, out=np.zeros_like(once))
        return np.asarray(own * left * np.divide(alone, whole, where=whole > 0, out=left.copy()))


@dataclass(frozen=True, slots=True, kw_only=True)
class MulticalibrationTest:
    """Tests of J segments.

    Parameters
    ----------
    gap : array of shape (J,)
        Mean residual of each segment: positive where outcomes are above the score.
    statistic : array of shape (J,)
        Largest cumulative sum in standard deviations of the whole sum; NaN where not tested.
    p_value, p_value_adjusted : array of shape (J,)
        Alone, and for all segments together, step by step; NaN where not tested.
    information : array of shape (J,)
        Effective rows times their null variance.
    units : array of shape (J,)
        Effective independent units; infinite where rows do not repeat units.
    tested : array of bool of shape (J,)
        Segments with enough information, and four effective units.
    """

    gap: FloatArray
    statistic: FloatArray
    p_value: FloatArray
    p_value_adjusted: FloatArray
    information: FloatArray
    units: FloatArray
    tested: BoolArray


def multicalibration_test(
    cells: ResidualCells,
    member: AnyArray,
    *,
    n_cuts: int = N_CUTS,
    min_information: float = MIN_INFORMATION,
    rng: Rng = None,
) -> MulticalibrationTest:
    """Test that residuals have mean zero at every score, in every segment.

    Parameters
    ----------
    cells : ResidualCells
        Sums over the finest patterns of the columns that make segments.
    member : array of bool of shape (J, C)
        Which patterns make up each segment.
    n_cuts : int, default 20
        Scores at which sums are looked at.
    min_information : float, default 10
        Least information of a segment that is tested.
    rng : numpy.random.Generator or int, optional
        Source of the draws, in an order made of numbers.

    Returns
    -------
    MulticalibrationTest

    Notes
    -----
    Cell sums of independent rows are drawn from Pearson type III laws with their null moments.
    Where rows repeat units, the sums of units are multiplied by draws with third moment one
    ([3]_); the variance of a segment is at least that of independent rows, and at least that of
    rows whose outcomes are as alike inside a unit as in the whole table.

    References
    ----------
    .. [1] U. Hebert-Johnson, M. P. Kim, O. Reingold and G. N. Rothblum (2018), Multicalibration:
       calibration for the (computationally-identifiable) masses, ICML.
       doi:10.48550/arXiv.1711.08513
    .. [2] N. Tax et al. (2025), MCGrad: multicalibration at web scale.
       doi:10.48550/arXiv.2509.19884
    .. [3] E. Mammen (1993), Bootstrap and wild bootstrap for high dimensional linear models, Annals
       of Statistics 21. https://doi.org/10.1214/aos/1176349025

    Examples
    --------
    Two patterns, three bins; the score of the second pattern is too low by twenty points.

    >>> import numpy as np
    >>> n, s = np.full((2, 3), 200.0), np.array([0.2, 0.4, 0.6])
    >>> v = n * s * (1 - s)
    >>> cells = ResidualCells.around_score(np.array([[0.0] * 3, [40.0] * 3]), n, v, v,
    ...                                    v * (1 - 2 * s))
    >>> found = multicalibration_test(cells, np.eye(2, dtype=bool), rng=0)
    >>> found.gap.tolist(), (found.p_value_adjusted < 0.05).tolist()
    ([0.0, 0.2], [False, True])
    """
    check_integer("n_cuts", n_cuts, low=1)
    check_number("min_information", min_information, low=0.0)
    belongs = np.asarray(member, dtype=np.float64)
    if belongs.ndim != 2 or belongs.shape[1] != len(cells.total):
        raise InvalidParameterError(
            f"`member` must have one column for each of {len(cells.total)} patterns; got shape"
            f" {belongs.shape}."
        )
    weight = (belongs @ cells.weight).sum(axis=1)
    whole = (belongs @ cells.total).sum(axis=1)
    gap = np.divide(whole, weight, where=weight > 0, out=np.zeros_like(whole))
    information, variance = cells.information(belongs), cells.segment_variance(belongs)
    units = cells.effective_units(belongs)
    tested = (information >= min_information) & (variance > 0.0) & (units >= MIN_UNITS)
    nothing = np.full(len(gap), np.nan)
    statistic, alone, together = nothing, nothing.copy(), nothing.copy()
    if tested.any():
        cuts = cells.in_cuts(n_cuts)
        own = belongs[tested]
        path = np.cumsum(own @ cuts.total, axis=1)
        seen = np.abs(path).max(axis=1) / np.sqrt(variance[tested])
        draws = _null_draws(cuts, own, rng)
        statistic = nothing.copy()
        statistic[tested] = seen
        alone[tested] = [tail_share(draws[:, j], seen[j : j + 1])[0] for j in range(len(seen))]
        together[tested] = np.maximum(step_down_shares(seen, draws), alone[tested])
    return MulticalibrationTest(
        gap=gap,
        statistic=statistic,
        p_value=alone,
        p_value_adjusted=together,
        information=information,
        units=units,
        tested=tested,
    )


def _null_draws(cells: ResidualCells, member: FloatArray, rng: Rng) -> FloatArray:
    """Draw the statistics of all segments together, (draws, segments)."""
    # Names of patterns must not choose their draws: patterns come in the order of their sums.
    order = np.lexsort(np.concatenate([cells.total, cells.variance, cells.weight], axis=1).T)
    shape, own = cells.variance.shape, member[:, order]
    share, size = cells.shares(member), np.sqrt(cells.segment_variance(member))
    sums = _row_sums(cells, order) if cells.units is None else _unit_sums(cells, order)
    if cells.units is not None:
        by_unit = cells.units @ cells.coefficient(member).T
        drawn = np.sqrt((by_unit**2).sum(axis=0))
        size = np.where(drawn > 0.0, drawn, size)
    found, generator = [], check_rng(rng)
    wide = 1 if cells.units is None else cells.units.shape[0]
    step = max(_AT_ONCE // max(cells.variance.size, len(own) * shape[1], wide), 1)
    for first in range(0, N_DRAWS, step):
        drawn_sums = sums(min(step, N_DRAWS - first), generator)
        moves = np.einsum("jc,nck->njk", own, drawn_sums, optimize=True)
        moves -= share * drawn_sums.sum(axis=1)[:, None, :]
        found.append(np.abs(np.cumsum(moves, axis=2)).max(axis=2) / size)
    return np.concatenate(found)


def _row_sums(cells: ResidualCells, order: IntArray) -> _Sums:
    """Draw sums of cells of independent rows."""
    variance, third = cells.variance[order], cells.third[order]
    live = variance > 0.0
    scale = np.sqrt(variance[live])

    def sums(n: int, rng: np.random.Generator) -> FloatArray:
        drawn = np.zeros((n, *variance.shape))
        drawn[:, live] = scale * skewed_draws(third[live] / scale**3, n_draws=n, rng=rng)
        return drawn

    return sums


def _unit_sums(cells: ResidualCells, order: IntArray) -> _Sums:
    """Draw sums of cells by multiplying those of units."""
    n_patterns, n_bins = cells.total.shape
    column = (order[:, None] * n_bins + np.arange(n_bins)).ravel()
    units = cells.units[:, column]  # type: ignore[index]
    place = np.arange(units.shape[1])
    squares = units.multiply(units)
    keys = np.column_stack([units @ place, squares @ place, units.sum(axis=1)])
    units = units[np.lexsort(without_last_digits(keys).T)]
    root = np.sqrt(5.0)

    def sums(n: int, rng: np.random.Generator) -> FloatArray:
        high = rng.random((n, units.shape[0])) < (root - 1.0) / (2.0 * root)
        times = np.where(high, (1.0 + root) / 2.0, (1.0 - root) / 2.0)
        return np.asarray((units.T @ times.T).T).reshape(n, n_patterns, n_bins)

    return sums
