r"""Disparity among people who are alike in given factors.

Strata are the combinations of the factors. Within each stratum a group is compared with its
comparator, and the gaps are averaged with one of four sets of weights; "overlap", n1 n0 / N, is
that of Mantel and Haenszel and of a regression with stratum effects.

A 0/1 outcome of independent rows has the stratified score (`mantel_haenszel`), whose test of no gap
is Cochran's. Other outcomes, weights and clusters have the same estimates with a variance that is
right in both limits: rows are measured from the mean of their stratum and group, and from the fit
of their stratum where one of the two has a single row. Matched pairs then give the paired variance.

References
----------
.. [1] R. M. Bell and D. F. McCaffrey (2002), Bias reduction in standard errors for linear
   regression with multi-stage samples, Survey Methodology 28(2), 169-181.
.. [2] W. G. Cochran (1954), Some methods for strengthening the common chi-square tests, Biometrics
   10, 417-451. doi:10.2307/3001616
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse, special

from equipoise._checks import check_finite, check_option, quoted
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Scale, StratumWeights
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.moments import CellMoments, linear_covariance, merge_cells
from equipoise.stats.disparity.extremes import OnePair
from equipoise.stats.disparity.mantel_haenszel import (
    ChiSquare,
    StratumCounts,
    generalised_test,
    quadratic_test,
    score_intervals,
)
from equipoise.stats.disparity.pair_scores import outer_ends
from equipoise.stats.pairs import Pairs
from equipoise.stats.small_samples import MIN_UNITS, normal_root
from equipoise.stats.summary import Interval, normal_quantile

__all__ = [
    "Strata",
    "StratifiedComparison",
    "StratifiedDisparityTest",
    "StratumMeans",
    "stratified_disparity_test",
    "stratified_intervals",
]

GROUP, COMPARATOR, NEITHER = 1, 0, -1
# With more units the correlation of their residuals no longer moves the degrees of freedom.
_DENSE_UNITS = 300
_MANY_DEGREES = 1e10


@dataclass(frozen=True, slots=True, kw_only=True)
class Strata:
    """Sums of an outcome in K strata and G categories.

    Parameters
    ----------
    moments : CellMoments
        Of the quantities (outcome, 1), in cells ``stratum * G + category``.
    n_categories : int
        G.
    binary : bool
        Whether the outcome is 0 or 1, of independent rows without weights.
    units : sparse matrix of shape (units, K * G), optional
        Weight of every independent unit in every cell. Without it rows are independent and have
        equal weights.
    """

    moments: CellMoments
    n_categories: int
    binary: bool
    units: sparse.csr_array | None = field(default=None, repr=False)

    @classmethod
    def from_rows(
        cls,
        y: FloatArray,
        category: IntArray,
        stratum: IntArray,
        *,
        n_categories: int | None = None,
        weight: FloatArray | None = None,
        cluster: AnyArray | None = None,
    ) -> "Strata":
        """Sum rows in memory.

        Parameters
        ----------
        y : array of shape (n,)
            Outcome.
        category, stratum : array of shape (n,)
            Codes from zero.
        n_categories : int, optional
            G; by default one more than the largest code.
        weight, cluster : array of shape (n,), optional
            Sampling weight of a row, and the unit it belongs to.

        Returns
        -------
        Strata
        """
        size = int(category.max()) + 1 if n_categories is None else n_categories
        cell = stratum * size + category
        n_cells = (int(stratum.max()) + 1) * size
        quantities = np.column_stack([y, np.ones(len(y))])
        moments = CellMoments.from_rows(
            quantities, cell, n_cells=n_cells, cluster=cluster, weight=weight
        )
        units = None
        if weight is not None or cluster is not None:
            rows = np.ones(len(y)) if weight is None else weight
            unit = np.arange(len(y))
            if cluster is not None:
                unit = np.unique(cluster, return_inverse=True)[1]
            units = sparse.csr_array((rows, (unit, cell)), shape=(int(unit.max()) + 1, n_cells))
        binary = units is None and bool(np.isin(y, (0.0, 1.0)).all())
        return cls(moments=moments, n_categories=size, binary=binary, units=units)

    @property
    def rows(self) -> IntArray:
        """Rows of each stratum and category, (K, G)."""
        return self.moments.n.reshape(-1, self.n_categories)

    def total(self, quantity: int) -> FloatArray:
        """Sums of the outcome (0) or of the weights (1), (K, G).

        Parameters
        ----------
        quantity : {0, 1}
            Which.

        Returns
        -------
        array of shape (K, G)
        """
        return np.asarray(self.moments.total[:, quantity].reshape(-1, self.n_categories))

    def two_sides(self, group: int, reference: int | None) -> "StratumMeans":
        """Return one category beside another, or beside all others.

        Parameters
        ----------
        group : int
            Category of interest.
        reference : int or None
            Category it is compared with; None for all others.

        Returns
        -------
        StratumMeans
            Of the strata that have rows of both.
        """
        category = np.tile(np.arange(self.n_categories), len(self.rows))
        stratum = np.repeat(np.arange(len(self.rows)), self.n_categories)
        other = category != group if reference is None else category == reference
        side = np.where(category == group, GROUP, np.where(other, COMPARATOR, NEITHER))
        return StratumMeans.of_cells(
            self.moments, stratum, side, units=self.units, binary=self.binary
        )

    def joint_test(self) -> ChiSquare:
        """Test that all categories have equal means in every stratum.

        Returns
        -------
        ChiSquare
            Generalised Cochran-Mantel-Haenszel; with weights or clusters the variance is that of
            sums over units.
        """
        size, total = self.total(1), self.total(0)
        if self.units is None:
            square = self.moments.product[:, 0, 0].reshape(-1, self.n_categories).sum(axis=1)
            return generalised_test(size, total, square)
        n = size.sum(axis=1)
        kept = n > 0.0
        mean = np.where(kept, total.sum(axis=1) / np.where(kept, n, 1.0), 0.0)
        share = size / np.where(kept, n, 1.0)[:, None]
        gap = (total - size * mean[:, None]).sum(axis=0)
        # A row of category g in stratum k adds (1_g - share_k)(y - mean_k) to the gaps.
        slope = (np.eye(self.n_categories)[None] - share[:, None, :]).reshape(-1, self.n_categories)
        level = -np.repeat(mean, self.n_categories)[:, None] * slope
        return quadratic_test(gap, linear_covariance(self.moments, [slope, level]))


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumMeans:
    """A group beside its comparator in the strata that have both.

    Parameters
    ----------
    moments : CellMoments
        Of (outcome, 1), in cells ``2 * stratum + side``; side 1 is the group.
    units : sparse matrix of shape (units, 2 * K), optional
        Weight of every unit in every cell; None for independent rows of equal weight.
    binary : bool
        Whether the counts are sufficient.
    strata : array of shape (K,)
        Numbers of the strata.
    n_group, n_comparator : int
        Rows in all strata, those without the other side included.
    """

    moments: CellMoments
    units: sparse.csr_array | None = field(repr=False)
    binary: bool
    strata: IntArray
    n_group: int
    n_comparator: int

    @classmethod
    def of_cells(
        cls,
        moments: CellMoments,
        stratum: IntArray,
        side: IntArray,
        *,
        binary: bool,
        units: sparse.csr_array | None = None,
    ) -> "StratumMeans":
        """Sum cells into a group and its comparator in the strata that have both.

        Parameters
        ----------
        moments : CellMoments
            Of (outcome, 1), in C cells.
        stratum : array of shape (C,)
            Stratum of each cell, 0 to K - 1.
        side : array of shape (C,)
            1 for the group, 0 for its comparator, -1 for cells that take no part.
        binary : bool
            Whether the outcome is 0 or 1, of independent rows without weights.
        units : sparse matrix of shape (units, C), optional
            Weight of every independent unit in every cell.

        Returns
        -------
        StratumMeans
        """
        size = int(stratum.max(initial=-1)) + 1
        positive = moments.total[:, 1] > 0.0
        inside = [
            np.bincount(stratum[(side == one) & positive], minlength=size) > 0
            for one in (GROUP, COMPARATOR)
        ]
        used = np.flatnonzero(inside[0] & inside[1])
        number = np.full(size, -1, dtype=np.int64)
        number[used] = np.arange(len(used))
        kept = (number[stratum] >= 0) & (side != NEITHER)
        # Cells that do not take part come last and are cut off.
        code = np.where(kept, 2 * number[stratum] + side, 2 * len(used))
        if units is not None:
            sums = sparse.csr_array(
                (np.ones(int(kept.sum())), (np.flatnonzero(kept), code[kept])),
                shape=(len(code), 2 * len(used)),
            )
            units = (units @ sums).tocsr()
        return cls(
            moments=merge_cells(moments, code, n_groups=2 * len(used) + 1).first(2 * len(used)),
            units=units,
            binary=binary,
            strata=used,
            n_group=int(moments.n[side == GROUP].sum()),
            n_comparator=int(moments.n[side == COMPARATOR].sum()),
        )

    @property
    def size(self) -> FloatArray:
        """Sums of weights, (K, 2): comparator, group."""
        return np.asarray(self.moments.total[:, 1].reshape(-1, 2))

    @property
    def mean(self) -> FloatArray:
        """Means of the outcome, (K, 2): comparator, group."""
        return np.asarray(self.moments.total[:, 0].reshape(-1, 2) / self.size)

    @property
    def counts(self) -> StratumCounts:
        """Ones and rows, when the outcome is 0 or 1."""
        total = self.moments.total[:, 0].reshape(-1, 2)
        return StratumCounts(x1=total[:, 1], n1=self.size[:, 1], x0=total[:, 0], n0=self.size[:, 0])

    @property
    def group_covered(self) -> float:
        """Share of the group's rows that have a comparator in their stratum."""
        return float(self.moments.n.reshape(-1, 2)[:, 1].sum() / max(self.n_group, 1))

    @property
    def comparator_covered(self) -> float:
        """Share of the comparator's rows that have somebody of the group in their stratum."""
        return float(self.moments.n.reshape(-1, 2)[:, 0].sum() / max(self.n_comparator, 1))

    def weights(self, kind: StratumWeights) -> FloatArray:
        """Weights of the strata.

        Parameters
        ----------
        kind : {"overlap", "group", "reference", "population"}
            n1 n0 / N, n1, n0 or N.

        Returns
        -------
        array of shape (K,)
        """
        check_option("weights", kind, StratumWeights)
        n0, n1 = self.size.T
        choices = {"overlap": n1 * n0 / (n1 + n0), "group": n1, "reference": n0}
        return np.asarray(choices.get(kind, n1 + n0))

    def estimate(self, weights: FloatArray, scale: Scale) -> float:
        """Weighted difference of means, or ratio of weighted means.

        Parameters
        ----------
        weights : array of shape (K,)
            Weights of the strata.
        scale : {"difference", "ratio"}
            How means are compared.

        Returns
        -------
        float
        """
        zero, one = weights @ self.mean / weights.sum()
        if scale == "difference":
            return float(one - zero)
        return float(one / zero) if zero != 0.0 else np.nan

    def contrast(
        self, null: float, weights: FloatArray, scale: Scale
    ) -> tuple[float, float, float]:
        """Observed minus hypothesised contrast, its variance and its degrees of freedom.

        Parameters
        ----------
        null : float
            Hypothesised difference or ratio.
        weights : array of shape (K,)
            Weights of the strata.
        scale : {"difference", "ratio"}
            How means are compared.

        Returns
        -------
        gap, variance, degrees : float
        """
        ratio = scale == "ratio"
        gap, coefficient, centre, alone = self._linear(null, weights, scale)
        n, inflation = self.size, self._inflation(alone)
        slope = (coefficient * inflation).reshape(-1, 1)
        raw = linear_covariance(self.moments, [slope, -centre.reshape(-1, 1) * slope])
        # Only a difference is estimated before it is taken out; a ratio is hypothesised.
        away = np.column_stack([-n[:, 1], n[:, 0]]) / n.sum(axis=1, keepdims=True)
        shifted = np.where(alone[:, None], away, 0.0) * (0.0 if ratio else 1.0)
        scaled, degrees = self._degrees(coefficient, inflation, alone, shifted)
        return gap, float(max(raw[0, 0], 0.0)) * scaled, degrees

    def influence(
        self, null: float, weights: FloatArray, scale: Scale
    ) -> tuple[FloatArray, FloatArray]:
        """What a row of each cell adds to the contrast at `null`: slope (y - centre).

        Parameters
        ----------
        null : float
            Difference or ratio.
        weights : array of shape (K,)
            Weights of the strata.
        scale : {"difference", "ratio"}
            How means are compared.

        Returns
        -------
        slope, centre : array of shape (2 K,)
        """
        _, coefficient, centre, alone = self._linear(null, weights, scale)
        return (coefficient * self._inflation(alone)).ravel(), centre.ravel()

    def _linear(
        self, null: float, weights: FloatArray, scale: Scale
    ) -> tuple[float, FloatArray, FloatArray, BoolArray]:
        """The contrast, its coefficients and centres by cell, and which strata have a lone row."""
        ratio = scale == "ratio"
        a = 1.0 / max(null, 1.0) if ratio else 1.0
        b = min(null, 1.0) if ratio else 1.0
        n, mean = self.size, self.mean
        share = weights / weights.sum()
        gap = float(share @ (a * mean[:, 1] - b * mean[:, 0])) - (0.0 if ratio else null)
        coefficient = np.column_stack([-b * share / n[:, 0], a * share / n[:, 1]])
        alone = np.asarray((self.moments.n.reshape(-1, 2) < 2).any(axis=1))
        # Fit of a stratum with a lone row: means that differ as much as all strata do.
        shift = 0.0 if ratio else self.estimate(weights, scale)
        stretch = (a, b) if ratio else (1.0, 1.0)
        base = (n * mean).sum(axis=1) - n[:, 1] * shift
        # a mu1 = b mu0 is written as mu1 = b t, mu0 = a t.
        common = base / (n[:, 1] * stretch[1] + n[:, 0] * stretch[0])
        fitted = np.column_stack([common * stretch[0], common * stretch[1] + shift])
        centre = np.where(alone[:, None], fitted, mean)
        return gap, coefficient, centre, alone

    def root(self, null: float, weights: FloatArray, scale: Scale) -> float:
        """Signed root on the normal scale.

        Parameters
        ----------
        null : float
            Hypothesised difference or ratio.
        weights : array of shape (K,)
            Weights of the strata.
        scale : {"difference", "ratio"}
            How means are compared.

        Returns
        -------
        float
        """
        gap, variance, degrees = self.contrast(null, weights, scale)
        if gap == 0.0:
            return 0.0
        with np.errstate(divide="ignore"):
            t = gap / np.sqrt(variance)
        return float(normal_root(np.array(t), degrees))

    def interval(self, critical: float, weights: FloatArray, scale: Scale) -> tuple[float, float]:
        """Disparities whose root is between minus and plus `critical`.

        Parameters
        ----------
        critical : float
            1.96 for a 95% interval.
        weights : array of shape (K,)
            Weights of the strata.
        scale : {"difference", "ratio"}
            How means are compared.

        Returns
        -------
        low, high : float
        """
        if scale == "difference":
            estimate, variance, degrees = self.contrast(0.0, weights, scale)
            quantile = float(-special.stdtrit(degrees, special.ndtr(-critical)))
            reach = quantile * float(np.sqrt(variance))
            return estimate - reach, estimate + reach

        def root(null: FloatArray, _: IntArray) -> FloatArray:
            return np.array([self.root(float(value), weights, scale) for value in null])

        start = np.array([self.estimate(weights, scale)])
        _, variance, _ = self.contrast(max(start[0], 0.0), weights, scale)
        step = np.sqrt(variance) / np.abs(weights @ self.mean / weights.sum()).max()
        low, high = outer_ends(root, start, np.array([step]), critical, scale=scale)
        return float(low[0]), float(high[0])

    def n_effective(self, weights: FloatArray) -> tuple[float, float]:
        """Units of equal weight that would tell as much, in the group and in its comparator.

        Parameters
        ----------
        weights : array of shape (K,)
            Weights of the strata.

        Returns
        -------
        group, comparator : float
        """
        coefficient = weights[:, None] / self.size
        if self.units is None:
            square = (coefficient**2 * self.size).sum(axis=0)
        else:
            by_side = self._by_side(coefficient)
            square = (by_side**2).sum(axis=0)
        zero, one = weights.sum() ** 2 / square
        return float(one), float(zero)

    def _inflation(self, alone: BoolArray) -> FloatArray:
        """Factors that make squared residuals of independent rows unbiased, (K, 2)."""
        rows = self.moments.n.reshape(-1, 2).astype(np.float64)
        if self.units is not None:
            square = np.asarray(self.units.power(2).sum(axis=0)).reshape(-1, 2)
            # Equally weighted rows that would tell as much; a cluster's rows count as they are.
            rows = np.minimum(rows, np.maximum(self.size**2 / square, 1.0 + 1e-9))
            if self._clustered:
                rows = self.moments.n.reshape(-1, 2).astype(np.float64)
        together = rows.sum(axis=1, keepdims=True)
        n = np.where(alone[:, None], together, rows)
        return np.sqrt(n / np.maximum(n - 1.0, 1e-9))

    @property
    def _clustered(self) -> bool:
        return self.moments.n_units < int(self.moments.n.sum())

    def _by_side(self, coefficient: FloatArray) -> FloatArray:
        """What the mean of each unit on each side weighs in the contrast, (units, 2)."""
        if self.units is None:
            raise ValueError("rows of equal weight have no table of units")
        side = np.zeros((coefficient.size, 2))
        side[0::2, 0], side[1::2, 1] = coefficient[:, 0], coefficient[:, 1]
        return np.asarray(self.units @ side)

    def _degrees(
        self, coefficient: FloatArray, inflation: FloatArray, alone: BoolArray, shifted: FloatArray
    ) -> tuple[float, float]:
        """Factor that makes the variance unbiased, and degrees of freedom, after [1]_.

        Both hold when the means of units, on one side, have a constant variance. The covariance of
        the residuals of units is then known; `shifted` tells how much of the estimate is taken out
        of each cell.
        """
        if self.units is None:
            return self._row_degrees(coefficient, inflation, alone, shifted)
        by_side = self._by_side(coefficient)
        own = self._by_side(coefficient * inflation)
        estimate = self.units @ (coefficient * inflation * shifted).ravel()
        removed, means = self._projection(coefficient * inflation, alone)
        variance = float((by_side**2).sum())
        n_units = self.units.shape[0]
        if n_units <= _DENSE_UNITS:
            gram = np.zeros((n_units, n_units))
            for s in (COMPARATOR, GROUP):
                loading = np.diag(own[:, s]) - (removed @ means[s].T).toarray()
                loading -= np.outer(estimate, by_side[:, s])
                gram += loading @ loading.T
            trace, square = float(np.trace(gram)), float((gram**2).sum())
        else:
            diagonal = np.zeros(n_units)
            for s in (COMPARATOR, GROUP):
                cross = np.asarray(removed.multiply(means[s]).sum(axis=1)).ravel()
                inner = removed @ (means[s].T @ means[s])
                diagonal += own[:, s] ** 2 - 2.0 * own[:, s] * cross
                diagonal += np.asarray(removed.multiply(inner).sum(axis=1)).ravel()
            trace, square = float(diagonal.sum()), float((diagonal**2).sum())
        if trace <= 1e-12 * variance:
            return 0.0, 1.0
        return variance / trace, min(trace**2 / square, _MANY_DEGREES)

    def _projection(
        self, slope: FloatArray, alone: BoolArray
    ) -> tuple[sparse.csr_array, list[sparse.csr_array]]:
        """What the fitted means take out of every unit, and what units put into them, by side.

        Fitted are the means of cells, or of whole strata where one side is a lone row.
        """
        if self.units is None:
            raise ValueError("rows of equal weight have no table of units")
        n = self.size
        cell = np.arange(n.size)
        pooled = np.repeat(alone, 2)
        divisor = np.where(pooled, np.repeat(n.sum(axis=1), 2), n.ravel())
        column = np.where(pooled, 2 * (cell // 2), cell)
        gather = sparse.csr_array((np.ones(n.size), (cell, column)), shape=(n.size, n.size))
        removed = self.units @ sparse.diags_array(slope.ravel()) @ gather
        put = [sparse.diags_array((cell % 2 == s) / divisor) for s in (COMPARATOR, GROUP)]
        return removed.tocsr(), [(self.units @ one @ gather).tocsr() for one in put]

    def _row_degrees(
        self, coefficient: FloatArray, inflation: FloatArray, alone: BoolArray, shifted: FloatArray
    ) -> tuple[float, float]:
        """The same for independent rows of equal weight, in closed form."""
        n = self.size
        total = n.sum(axis=1)
        rows = coefficient**2 * n
        trace = rows.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = (rows**2 / (n - 1.0)).sum(axis=1)
            fourth = (coefficient**4 * n).sum(axis=1)
            together = fourth * (1.0 - 2.0 / total) + trace**2 / total**2
            together *= (total / (total - 1.0)) ** 2
        variance = float(trace.sum())
        square = float(np.where(alone, together, apart).sum())
        # Rank-one change: residuals have estimate * q taken out, and covary with it by t.
        q = coefficient * inflation * shifted
        middle = (coefficient * n).sum(axis=1, keepdims=True) / total[:, None]
        t = np.where(alone[:, None], coefficient * inflation * (coefficient - middle), 0.0)
        qq, qt, tt = (float((n * one * two).sum()) for one, two in ((q, q), (q, t), (t, t)))

        def inner(one: FloatArray, two: FloatArray) -> float:
            slope = coefficient * inflation
            own = (n * one * two * slope**2).sum(axis=1)
            mean = (n * one * slope).sum(axis=1) * (n * two * slope).sum(axis=1) / total
            return float((own - mean)[alone].sum())

        change = 2.0 * (variance * inner(q, q) - 2.0 * inner(q, t))
        change += 2.0 * (qq * tt + qt**2) - 4.0 * variance * qq * qt + (variance * qq) ** 2
        kept = variance - 2.0 * qt + variance * qq
        if kept <= 1e-12 * variance:
            return 0.0, 1.0
        return variance / kept, min(kept**2 / (square + change), _MANY_DEGREES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StratifiedComparison:
    """Gap of one group to its comparator among people alike in the given factors.

    Parameters
    ----------
    group, reference : str
        Labels.
    sides : StratumMeans
        Means in the strata that have both.
    weights : {"overlap", "group", "reference", "population"}
        How strata are averaged.
    scale : {"difference", "ratio"}
        How means are compared.
    n_strata : int
        Strata in which the group has rows.
    """

    group: str
    reference: str
    sides: StratumMeans
    weights: StratumWeights
    scale: Scale
    n_strata: int

    @property
    def method(self) -> str:
        """Which law the p-value and the interval have."""
        if not self.sides.binary:
            return "stratified t"
        return "one pair" if self.single else "stratified score"

    @property
    def single(self) -> bool:
        """Whether one stratum remains, so that nothing is conditioned on."""
        return len(self.sides.strata) == 1

    @property
    def estimate(self) -> float:
        """Average gap, or ratio of averages."""
        return self.sides.estimate(self.stratum_weights, self.scale)

    @property
    def statistic(self) -> float:
        """Signed root of the test of no gap, on the normal scale."""
        return self.root(1.0 if self.scale == "ratio" else 0.0)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no gap."""
        return float(2.0 * special.ndtr(-abs(self.statistic)))

    def root(self, null: float) -> float:
        """Signed root at a hypothesised gap.

        Parameters
        ----------
        null : float
            Difference or ratio.

        Returns
        -------
        float
        """
        if self._pair is not None:
            return float(self._pair.root(np.array([null]))[0])
        law = self.sides.counts if self.sides.binary else self.sides
        return law.root(null, self.stratum_weights, self.scale)

    def confidence_interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Gaps that the test does not reject.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        low, high : float
        """
        critical = normal_quantile(confidence_level)
        if self._pair is not None:
            low, high = self._pair.interval(critical)
            return float(low[0]), float(high[0])
        law = self.sides.counts if self.sides.binary else self.sides
        return law.interval(critical, self.stratum_weights, self.scale)

    def linearised_interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Interval by the two-limit variance, which allows gaps to differ between strata.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        low, high : float
        """
        critical = normal_quantile(confidence_level)
        return self.sides.interval(critical, self.stratum_weights, self.scale)

    def __str__(self) -> str:
        """One sentence for people."""
        low, high = self.confidence_interval()
        share = self.sides.group_covered
        return (
            f"{self.group} against {self.reference}: {self.estimate:.3g} ({low:.3g} to {high:.3g}),"
            f" p = {self.p_value:.3g}; {share:.0%} of the group has a comparator in"
            f" {len(self.sides.strata)} of {self.n_strata} strata"
        )

    def influence(self) -> tuple[FloatArray, FloatArray]:
        """What a row of each side of each stratum adds to the estimate: slope (y - centre).

        Returns
        -------
        slope, centre : array of shape (2 K,)
            In the order of the cells of `sides`: comparator, then group, of every stratum.
        """
        slope, centre = self.sides.influence(self.estimate, self.stratum_weights, self.scale)
        if self.sides.binary:
            # Rates that are equal in a stratum, as in the test: its rows have one mean.
            n, mean = self.sides.size, self.sides.mean
            centre = np.repeat((n * mean).sum(axis=1) / n.sum(axis=1), 2)
        return slope, centre

    @property
    def stratum_weights(self) -> FloatArray:
        """Weights of the strata."""
        return self.sides.weights(self.weights)

    @property
    def _pair(self) -> OnePair | None:
        """The only stratum as a plain comparison of two proportions."""
        if not (self.sides.binary and self.single):
            return None
        c = self.sides.counts
        return OnePair(Pairs.of(c.x1, c.n1, c.x0, c.n0, scale=self.scale))


def stratified_intervals(
    comparisons: Sequence[StratifiedComparison], confidence_level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Marginal intervals of many comparisons on one scale.

    Parameters
    ----------
    comparisons : sequence of StratifiedComparison
        Of one table; those with a stratified score are searched together.
    confidence_level : float, default 0.95
        Of each interval.

    Returns
    -------
    low, high : array of shape (m,)
        Those of `confidence_interval`, one by one.
    """
    low, high = np.empty(len(comparisons)), np.empty(len(comparisons))
    scored = [k for k, one in enumerate(comparisons) if one.method == "stratified score"]
    for k in sorted(set(range(len(comparisons))) - set(scored)):
        low[k], high[k] = comparisons[k].confidence_interval(confidence_level)
    if scored:
        found = [comparisons[k] for k in scored]
        low[scored], high[scored] = score_intervals(
            [one.sides.counts for one in found],
            [one.stratum_weights for one in found],
            normal_quantile(confidence_level),
            found[0].scale,
        )
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class StratifiedDisparityTest:
    """Gaps of all groups among people alike in the given factors.

    Parameters
    ----------
    comparisons : tuple of StratifiedComparison
        One for each group that can be compared.
    joint : ChiSquare
        Test that no group differs in any stratum.
    without_comparator : tuple of str
        Groups none of whose strata has a comparator.
    """

    comparisons: tuple[StratifiedComparison, ...]
    joint: ChiSquare
    without_comparator: tuple[str, ...]

    @property
    def estimate(self) -> FloatArray:
        """Gaps of the groups."""
        return np.array([one.estimate for one in self.comparisons])

    @property
    def statistic(self) -> float:
        """Joint statistic."""
        return self.joint.statistic

    @property
    def p_value(self) -> float:
        """P-value of "no group differs in any stratum"."""
        return self.joint.p_value

    def p_values(self) -> FloatArray:
        """P-value of every group, not adjusted for their number.

        Returns
        -------
        array of shape (m,)
        """
        return np.array([one.p_value for one in self.comparisons])

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Marginal intervals of the gaps.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of each interval.

        Returns
        -------
        Interval
        """
        return Interval(*stratified_intervals(self.comparisons, confidence_level))

    def __str__(self) -> str:
        """Lines for people."""
        lines = [f"no gap in any stratum: {self.joint}", *(str(one) for one in self.comparisons)]
        if self.without_comparator:
            lines.append(f"no stratum has a comparator of {quoted(self.without_comparator)}")
        return "\n".join(lines)


def stratified_disparity_test(
    y: AnyArray,
    group: AnyArray,
    strata: AnyArray | Sequence[AnyArray],
    *,
    reference: object = None,
    scale: Scale = "difference",
    weights: StratumWeights = "overlap",
    weight: AnyArray | None = None,
    cluster: AnyArray | None = None,
) -> StratifiedDisparityTest:
    """Test whether groups differ among people who are alike in given factors.

    The null hypothesis is that, in every stratum, the group has the mean of its comparator.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome: 0 or 1, or any number.
    group : array of shape (n,)
        Group of each row.
    strata : array of shape (n,) or sequence of such arrays
        Factor, or several factors whose combinations are the strata.
    reference : label, optional
        Group that the others are compared with; by default each group is compared with the rest.
    scale : {"difference", "ratio"}
        How means are compared.
    weights : {"overlap", "group", "reference", "population"}
        How strata are averaged. "overlap" is Mantel and Haenszel's; "group" is the gap of the
        group's own members to comparators like them.
    weight, cluster : array of shape (n,), optional
        Sampling weight of a row, and the unit it belongs to.

    Returns
    -------
    StratifiedDisparityTest

    Raises
    ------
    GroupTooSmallError
        If no stratum has rows of both sides, or one side has fewer than four effective units of a
        real-valued, weighted or clustered outcome.

    Examples
    --------
    Women apply to the department that admits few. Are they admitted less within departments?

    >>> admitted = np.repeat([1, 0, 1, 0, 1, 0, 1, 0], [60, 40, 12, 8, 2, 18, 10, 90])
    >>> sex = np.repeat(["man", "woman", "man", "woman"], [100, 20, 20, 100])
    >>> department = np.repeat(["easy", "hard"], [120, 120])
    >>> test = stratified_disparity_test(admitted, sex, department, reference="man")
    >>> f"{test.estimate[0]:.3f}, p = {test.p_value:.2f}"
    '0.000, p = 1.00'

    Not at all, although 52% of the men and 18% of the women were.
    """
    outcome = check_finite("y", y, ndim=1)
    factors = [strata] if np.ndim(strata[0]) == 0 else list(strata)
    labels, category = np.unique(np.asarray(group).astype(str), return_inverse=True)
    stratum = _combinations([np.asarray(one) for one in factors])
    if len(category) != len(outcome) or len(stratum) != len(outcome):
        raise InvalidParameterError(
            "`y`, `group` and `strata` must have one entry for each row; got "
            f"{len(outcome)}, {len(category)} and {len(stratum)}."
        )
    other = None if reference is None else _position(labels, reference)
    table = Strata.from_rows(
        outcome,
        category,
        stratum,
        n_categories=len(labels),
        weight=None if weight is None else check_finite("weight", weight, ndim=1),
        cluster=cluster,
    )
    names = labels.tolist()
    compared = [g for g in range(len(names)) if g != other]
    sides = {g: table.two_sides(g, other) for g in compared}
    result = tuple(
        StratifiedComparison(
            group=names[g],
            reference="the rest" if other is None else names[other],
            sides=sides[g],
            weights=weights,
            scale=scale,
            n_strata=int(np.count_nonzero(table.rows[:, g])),
        )
        for g in compared
        if len(sides[g].strata)
    )
    if not result:
        raise GroupTooSmallError("No stratum has rows of both groups; use fewer factors or bands.")
    for one in result:
        _check_units(one)
    return StratifiedDisparityTest(
        comparisons=result,
        joint=table.joint_test(),
        without_comparator=tuple(names[g] for g in compared if not len(sides[g].strata)),
    )


def _check_units(one: StratifiedComparison) -> None:
    if one.sides.binary:
        return
    for name, units in zip(
        (one.group, one.reference),
        one.sides.n_effective(one.sides.weights(one.weights)),
        strict=True,
    ):
        if units < MIN_UNITS - 1e-9:
            raise GroupTooSmallError(
                f"{name!r} has effectively {units:.1f} units in the strata that it shares; "
                "a comparison needs 4."
            )


def _combinations(factors: list[AnyArray]) -> IntArray:
    """One code for each combination of the factors that occurs."""
    code = np.zeros(len(factors[0]), dtype=np.int64)
    for factor in factors:
        level = np.unique(factor.astype(str), return_inverse=True)[1]
        code = np.unique(code * (int(level.max(initial=0)) + 1) + level, return_inverse=True)[1]
    return code


def _position(labels: AnyArray, label: object) -> int:
    where = np.flatnonzero(labels == str(label))
    if not len(where):
        raise InvalidParameterError(
            f"`reference` must be one of the groups {quoted(labels)}; got {label!r}."
        )
    return int(where[0])
