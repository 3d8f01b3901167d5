r"""Signed roots of the empirical likelihood of a real-valued metric, group by group.

Real-valued rows have no finite summary, so that these tests read them. The estimating functions of
a group are linear in the hypothesised disparity (see `likelihoods`); totals of clusters
take the place of rows where units repeat, and sampling weights stay inside the moments. Means of
independent rows are answered from power sums wherever these are proved to be right to 1e-10; the
rows are read for the rest.

A row of cell c has the estimating function :math:`z_i = b + d y_i`, where :math:`y_i \in [-1, 1]`
is its value, centred and scaled in its cell, and b and d depend on the hypothesis alone. With
:math:`\kappa = \lambda d / (1 + \lambda b)`,

.. math:: \sum_{i \in c} \log(1 + \lambda z_i) = n_c \log(1 + \lambda b)
          + \sum_k (-1)^{k+1} \frac{\kappa^k}{k} \sum_{i \in c} y_i^k

so that the power sums of the cells answer every hypothesis. What the series leaves out after an
even power K is at most :math:`|\kappa|^{K+1} \sum y^K / ((K + 1)(1 - |\kappa|))`. The dual is
self-concordant: with Newton decrement :math:`\delta < 1/2` at the multiplier found, its maximum is
at most :math:`\delta^2` higher [1]_. Both together bound the error of the statistic; a hypothesis
far from the data, or one value that is far from all others, makes the bound large, and the rows are
read instead.

References
----------
.. [1] S. Boyd and L. Vandenberghe (2004), Convex Optimization, Cambridge University Press,
   Eq. (9.50). doi:10.1017/CBO9780511804441
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from equipoise._typing import BoolArray, FloatArray, IntArray
from equipoise.moments import CellMoments
from equipoise.stats.disparity.likelihoods import Samples, likelihood, profile
from equipoise.stats.disparity.references import Comparison, Target, target_mask
from equipoise.stats.inversion import SignedRoot
from equipoise.stats.unit_sums import shared_units

__all__ = [
    "CellSeries",
    "RowRoots",
    "SeriesSamples",
    "Units",
    "share_units",
]


POWERS = 24
_TOLERANCE = 1e-12
_ITERATIONS = 60
_LARGEST = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSeries:
    """Power sums of the values of K cells, each cell centred at its mean and scaled to [-1, 1].

    Parameters
    ----------
    n : array of shape (K,)
        Rows.
    centre, scale : array of shape (K,)
        Mean, and largest distance from it.
    low, high : array of shape (K,)
        Smallest and largest scaled value.
    power : array of shape (POWERS + 1, K)
        Sums of the powers of the scaled values.
    """

    n: FloatArray
    centre: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray
    power: FloatArray

    @classmethod
    def of(
        cls, values: FloatArray, start: IntArray, *, count: FloatArray | None = None
    ) -> "CellSeries":
        """Sum the powers of rows that are sorted by cell.

        Parameters
        ----------
        values : array of shape (N,)
            Cell after cell.
        start : array of shape (K + 1,)
            Where each cell begins, and where the last one ends.
        count : array of shape (N,), optional
            How many times a row occurs.

        Returns
        -------
        CellSeries

        Examples
        --------
        >>> series = CellSeries.of(np.array([1.0, 3.0, 5.0]), np.array([0, 2, 3]))
        >>> series.centre.tolist(), series.power[2].tolist()
        ([2.0, 5.0], [2.0, 0.0])
        """
        k = len(start) - 1
        n, centre, scale, low, high = (np.zeros(k) for _ in range(5))
        power = np.zeros((POWERS + 1, k))
        # A cell at a time: its rows stay in the cache while their powers are summed.
        for c, (first, last) in enumerate(pairwise(start)):
            if first == last:
                continue
            x = values[first:last]
            times = None if count is None else count[first:last]
            n[c] = last - first if times is None else times.sum()
            if n[c] == 0.0:
                continue
            if times is not None:
                # A row that occurs no times has no value.
                x, times = x[times > 0.0], times[times > 0.0]
            centre[c] = np.average(x, weights=times)
            y = x - centre[c]
            scale[c] = np.abs(y).max()
            if scale[c] > 0.0:
                y /= scale[c]
            low[c], high[c] = y.min(), y.max()
            term = np.ones(len(y)) if times is None else times.astype(np.float64)
            power[0, c] = n[c]
            for p in range(1, POWERS + 1):
                term = term * y
                power[p, c] = term.sum()
        return cls(n=n, centre=centre, scale=scale, low=low, high=high, power=power)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSamples:
    r"""Samples made of whole cells; rows of an entry are :math:`f (x_i - \theta) + c s`.

    Parameters
    ----------
    cells : CellSeries
        Power sums.
    sample, cell : array of shape (E,)
        The cells of each sample, one entry each, sorted by sample; no sample is empty.
    base, factor, slope : array of shape (E,)
        Value at the centre of the cell, :math:`f (\bar x - \theta)`; f; and s.
    """

    cells: CellSeries
    sample: IntArray
    cell: IntArray
    base: FloatArray
    factor: FloatArray
    slope: FloatArray

    def statistic(self, parameter: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Empirical likelihood statistic of each sample at a value of its parameter.

        Parameters
        ----------
        parameter : array of shape (S,)
            Hypothesised values c.

        Returns
        -------
        statistic : array of shape (S,)
            Infinite where zero is outside the convex hull of the sample.
        error : array of shape (S,)
            Bound of what the series leaves out; infinite where it does not converge.

        Examples
        --------
        Is a mean of 2.2 compatible with the values 1, 2, 2.5, 3?

        >>> values = np.array([1.0, 2.0, 2.5, 3.0])
        >>> cells = CellSeries.of(values, np.array([0, 4]))
        >>> one = {"sample": np.zeros(1, int), "cell": np.zeros(1, int)}
        >>> sample = SeriesSamples(
        ...     cells=cells, **one, base=cells.centre, factor=np.ones(1), slope=-np.ones(1))
        >>> statistic, error = sample.statistic(np.array([2.2]))
        >>> print(f"{statistic[0]:.4f} {error[0] < 1e-6}")
        0.0425 True

        It is: the statistic is below 3.84.
        """
        c, of = self.cells, self.cell
        first = np.flatnonzero(np.diff(self.sample, prepend=-1))
        number = np.arange(len(first)).repeat(np.diff(first, append=len(self.sample)))
        b = self.base + self.slope * parameter[number]
        d = self.factor * c.scale[of]
        ends = np.stack([b + d * c.low[of], b + d * c.high[of]])
        largest = np.maximum.reduceat(ends.max(axis=0), first)
        smallest = np.minimum.reduceat(ends.min(axis=0), first)
        flat = (largest == 0.0) & (smallest == 0.0)
        inside = (smallest < 0.0) & (largest > 0.0)
        n = np.add.reduceat(c.n[of], first)
        power = c.power[:, of]

        def total(values: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(values, first))

        with np.errstate(divide="ignore", invalid="ignore"):
            # At the root every weight 1 / (n (1 + lambda z)) is at most one.
            low = np.where(inside, (1.0 / n - 1.0) / largest, 0.0)
            high = np.where(inside, (1.0 / n - 1.0) / smallest, 0.0)
            square = total(b**2 * power[0] + d**2 * power[2])
            lam = np.where(inside, np.clip(total(b * power[0]) / square, low, high), 0.0)
        for _ in range(_ITERATIONS):
            slope, bend, kappa, one = _derivatives(lam[number], b, d, power)
            gradient, curvature = total(slope), np.where(inside, total(bend), 1.0)
            step = gradient / curvature
            if np.all(np.abs(gradient * step)[inside] < _TOLERANCE):
                break
            low, high = np.where(gradient > 0, lam, low), np.where(gradient < 0, lam, high)
            moved = lam + step
            outside = (moved <= low) | (moved >= high)
            lam = np.where(inside, np.where(outside, 0.5 * (low + high), moved), 0.0)
        logs = power[0] * np.log1p(lam[number] * b) + _log_series(kappa, power)
        error = self._error(kappa, one, b, d, power)
        left, pull, weaker = (total(part) for part in error)
        with np.errstate(divide="ignore", invalid="ignore"):
            decrement = (np.abs(gradient) + pull) ** 2 / (curvature - weaker)
        converges = (weaker < curvature) & (decrement < 0.25)
        bound = np.where(converges, 2.0 * (left + decrement), np.inf)
        statistic = np.where(inside, np.maximum(2.0 * total(logs), 0.0), np.inf)
        return np.where(flat, 0.0, statistic), np.where(inside, bound, 0.0)

    @staticmethod
    def _error(
        kappa: FloatArray, one: FloatArray, b: FloatArray, d: FloatArray, power: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What the sums of logarithms, and their two derivatives, leave out at most."""
        size, last = np.abs(kappa), power[POWERS]
        room = np.where(size < _LARGEST, 1.0 - size, np.nan)
        left = size ** (POWERS + 1) * last / ((POWERS + 1) * room)
        reach = (np.abs(b) + np.abs(d)) / one
        pull = reach * size**POWERS * last / room
        weaker = reach**2 * POWERS * size ** (POWERS - 1) * last / room**2
        # Beyond the radius nothing is known.
        left, pull, weaker = (np.nan_to_num(part, nan=np.inf) for part in (left, pull, weaker))
        return left, pull, weaker


def _derivatives(
    lam: FloatArray, b: FloatArray, d: FloatArray, power: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sums of z / (1 + lambda z) and of its square, by entry; kappa and 1 + lambda b."""
    one = 1.0 + lam * b
    kappa = lam * d / one
    # Outside the radius of convergence only the direction matters: the rows decide.
    x = -np.clip(kappa, -_LARGEST, _LARGEST)
    plain, first, h0, h1, h2 = (np.zeros_like(x) for _ in range(5))
    for k in range(POWERS, -1, -1):
        plain = plain * x + power[k]
        if k < POWERS:
            first = first * x + power[k + 1]
            h1 = h1 * x + (k + 1.0) * power[k + 1]
        if k < POWERS - 1:
            h2 = h2 * x + (k + 1.0) * power[k + 2]
        h0 = h0 * x + (k + 1.0) * power[k]
    slope = (b * plain + d * first) / one
    bend = (b**2 * h0 + 2.0 * b * d * h1 + d**2 * h2) / one**2
    return slope, bend, kappa, one


def _log_series(kappa: FloatArray, power: FloatArray) -> FloatArray:
    """Sums of log(1 + kappa y), by entry."""
    x = -np.clip(kappa, -_LARGEST, _LARGEST)
    value = np.zeros_like(x)
    for k in range(POWERS, 0, -1):
        value = (value - power[k] / k) * x
    return value


_ERROR = 1e-10
"""Error of a statistic that a series may have at most."""
_ENTRIES = 200_000
_LEAST = 32
"""Rows a cell, on average, from which power sums are less work than the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Rows in memory.

    Parameters
    ----------
    u, w : array of shape (n,)
        Numerator and denominator of the metric, sampling weights multiplied in.
    cell : array of shape (n,)
        Cell of each row.
    unit : array of shape (n,), optional
        Independent unit (cluster) of each row, 0 to S - 1; by default every row is one.
    count : array of shape (n,), optional
        How many identical rows a row stands for.
    """

    u: FloatArray
    w: FloatArray
    cell: IntArray
    unit: IntArray | None = None
    count: FloatArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRoots:
    """Empirical likelihood of every group of a comparison, from rows.

    Parameters
    ----------
    units : Units
        The rows.
    comparison : Comparison
        Sums of the same rows, or their plug-in view.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group.
    target : Target
        What groups are compared with.
    start : array of shape (K + 1,)
        Where each cell of the rows begins.
    series : CellSeries, optional
        Power sums of the cells, where the metric is a plain mean of independent rows.
    """

    units: Units
    comparison: Comparison
    membership: Any
    target: Target
    start: IntArray
    series: CellSeries | None

    @classmethod
    def of(
        cls, units: Units, comparison: Comparison, membership: Any, target: Target
    ) -> "RowRoots":
        """Sort the rows by cell, and sum the powers of their values.

        Parameters
        ----------
        units, comparison, membership, target
            As in the class; rows in any order.

        Returns
        -------
        RowRoots
        """
        size = membership.shape[0]
        # Small whole numbers are sorted by their digits, in one pass.
        small = units.cell.astype(np.min_scalar_type(size))
        order = np.argsort(small, kind="stable")
        sizes = np.bincount(units.cell, minlength=size)
        start = np.concatenate([[0], np.cumsum(sizes)])
        w = units.w
        alike = bool(np.all(w == w[:1]))
        ranked = Units(
            u=units.u[order],
            w=w if alike else w[order],
            cell=np.arange(size).repeat(sizes),
            unit=None if units.unit is None else units.unit[order],
            count=None if units.count is None else units.count[order],
        )
        series = None
        many = 0 < _LEAST * np.count_nonzero(np.diff(start)) <= len(w)
        if many and alike and ranked.unit is None and w[0] != 0.0:
            series = CellSeries.of(ranked.u / w[0], start, count=ranked.count)
        return cls(
            units=ranked,
            comparison=comparison,
            membership=sparse.csc_array(membership),
            target=target,
            start=start,
            series=series,
        )

    @property
    def means(self) -> bool:
        """Whether the metric is a plain mean of independent rows: one constant denominator."""
        if self.series is not None:
            return True
        w = self.units.w[self.units.w != 0.0]
        return self.units.unit is None and bool(np.all(w == w[:1]))

    def root(self, code: str) -> SignedRoot:
        """Root of the statistic named `code`: "el", "profile_el", "influence_el".

        Parameters
        ----------
        code : str
            Name of the statistic.

        Returns
        -------
        callable
        """
        profiled = self.comparison.target_variance > 0 or bool(self.comparison.target.any())
        simple = not profiled or (code == "influence_el" and self.comparison.scale == "difference")

        def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
            statistic, left = np.empty(len(which)), np.ones(len(which), dtype=np.bool_)
            if self.series is not None and simple:
                for part in self._batches(len(which)):
                    sums = self._sums(self.series, which[part])
                    statistic[part], error = sums.statistic(null[part])
                    left[part] = ~(error <= _ERROR)
            for i in np.flatnonzero(left):
                j, value = int(which[i]), float(null[i])
                if profiled and code != "influence_el":
                    statistic[i] = self._profiled(j, value)
                else:
                    fit = likelihood(self._moments(j), np.array([value]))
                    statistic[i] = fit.statistic[0]
            return np.sign(self.comparison.estimate[which] - null) * np.sqrt(statistic)

        return root

    def _batches(self, m: int) -> list[slice]:
        """Part m groups so that the cells of each part fit in memory."""
        step = max(1, _ENTRIES // (len(self.start) - 1))
        return [slice(first, first + step) for first in range(0, m, step)]

    def _sums(self, series: CellSeries, which: IntArray) -> SeriesSamples:
        """Influence-function moments of groups in terms of power sums, as in `_moments`."""
        c = self.comparison
        inside = self.membership[:, which].toarray().T != 0
        if self.target.kind == "rest":
            other = ~inside
        elif self.target.cells is not None:
            other = np.broadcast_to(self.target.cells, inside.shape)
        else:
            other = np.full(inside.shape, self.target.kind == "population")
        total = c.target[which, 1]
        share = np.divide(c.group[which, 1], total, out=np.zeros(len(which)), where=total > 0)
        used = (inside | (other & (share[:, None] > 0))) & (series.n > 0)
        sample, cell = np.nonzero(used)
        inside, other = inside[sample, cell], other[sample, cell]
        factor = inside - share[sample] * other
        theta = c.target_value[which][sample]
        ratio = c.scale == "ratio"
        return SeriesSamples(
            cells=series,
            sample=sample,
            cell=cell,
            base=factor * (series.centre[cell] - (0.0 if ratio else theta)),
            factor=factor,
            slope=np.where(inside, -theta if ratio else -1.0, 0.0),
        )

    def _cells(self, j: int) -> IntArray:
        """Cells of group j, in increasing order."""
        column = self.membership.indices[self.membership.indptr[j] : self.membership.indptr[j + 1]]
        return np.sort(column).astype(np.int64)

    def _target_cells(self, j: int, everyone: IntArray) -> IntArray:
        """Cells of the target of group j, in increasing order."""
        if self.target.kind == "rest":
            return np.setdiff1d(everyone, self._cells(j), assume_unique=True)
        if self.target.cells is not None:
            return np.flatnonzero(self.target.cells)
        return everyone if self.target.kind == "population" else everyone[:0]

    def _rows(self, j: int) -> tuple[IntArray, BoolArray, BoolArray]:
        """Rows of group j and of its target; which of them are in the group, and in the target."""
        everyone = np.arange(len(self.start) - 1)
        own, other = self._cells(j), self._target_cells(j, everyone)
        used = np.union1d(own, other)
        size = self.start[used + 1] - self.start[used]
        rows = np.concatenate(
            [np.arange(self.start[c], self.start[c + 1]) for c in used] or [everyone[:0]]
        )
        return rows, np.isin(used, own).repeat(size), np.isin(used, other).repeat(size)

    def _moments(self, j: int) -> Samples:
        """Influence-function moments of group j, linear in the hypothesised disparity."""
        c, units = self.comparison, self.units
        rows, inside, target = self._rows(j)
        total, theta = c.target[j, 1], c.target_value[j]
        factor = c.group[j, 1] / total if total > 0 else 0.0
        if factor == 0.0:
            rows, target, inside = rows[inside], target[inside], inside[inside]
        u, w = units.u[rows], units.w[rows]
        pull = factor * np.where(target, u - theta * w, 0.0)
        if c.scale == "ratio":
            base, slope = np.where(inside, u, 0.0), np.where(inside, -theta * w, 0.0) - pull
        else:
            base, slope = np.where(inside, u - theta * w, 0.0) - pull, np.where(inside, -w, 0.0)
        return self._by_unit(base, slope, rows)

    def _by_unit(self, base: FloatArray, slope: FloatArray, use: IntArray) -> Samples:
        """Moments of rows, or of clusters when units repeat."""
        units = self.units
        count = None if units.count is None else units.count[use]
        if units.unit is not None:
            copies = 1.0 if count is None else count
            _, code = np.unique(units.unit[use], return_inverse=True)
            base = np.bincount(code, weights=base * copies).astype(np.float64)
            slope = np.bincount(code, weights=slope * copies).astype(np.float64)
            count = None
        return Samples(base=base, slope=slope, start=np.zeros(1, dtype=np.int64), count=count)

    def _profiled(self, j: int, null: float) -> float:
        """Statistic with the target as a nuisance parameter: a second sample, or an external one.

        On the ratio scale the group's values are divided by the hypothesised ratio.
        """
        c, units = self.comparison, self.units
        ratio = c.scale == "ratio"
        if ratio and null <= 0.0:
            return np.inf
        divisor, offset = (null, 0.0) if ratio else (1.0, null)
        rows, inside, outside = self._rows(j)
        used = units.w[rows] != 0.0
        group, target = rows[inside & used], rows[outside & used]
        prior = None
        if c.target_variance > 0:
            samples = self._by_unit(units.u[group] / divisor, -units.w[group], group)
            shift = np.array([offset])
            prior = (float(c.target_value[j]), float(np.sqrt(c.target_variance)))
        else:
            count = None
            if units.count is not None:
                count = np.concatenate([units.count[group], units.count[target]])
            samples = Samples.of_means(
                units.u[group] / units.w[group] / divisor,
                units.u[target] / units.w[target],
                count=count,
            )
            shift = np.array([offset, 0.0])
        return profile(samples, shift, prior=prior)[0]


def share_units(moments: CellMoments, units: Units, membership: Any, target: Target) -> CellMoments:
    """Add what the law of few units needs of clusters with rows in several groups.

    Parameters
    ----------
    moments : CellMoments
        Sums of the rows.
    units : Units
        The rows.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group.
    target : Target
        What groups are compared with.

    Returns
    -------
    CellMoments
        With `shared` for these groups.
    """
    copies = 1.0 if units.count is None else units.count
    unit = np.arange(len(units.u)) if units.unit is None else units.unit
    inside = target_mask(target, moments) > 0
    if target.kind != "reference":
        inside[:] = True
    return replace(
        moments,
        shared=shared_units(
            units.u * copies, units.w * copies, unit, units.cell, membership, inside
        ),
    )
