r"""Signed roots of the empirical likelihood of a real-valued metric, group by group.

Real-valued rows have no finite summary, so that these tests read them. The estimating functions of
a group are linear in the hypothesised disparity (see `empirical_likelihood`); totals of clusters
take the place of rows where units repeat, and sampling weights stay inside the moments.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from equipoise._typing import BoolArray, FloatArray, IntArray
from equipoise.moments import CellMoments
from equipoise.stats.disparity.likelihoods import Samples, likelihood, profile
from equipoise.stats.disparity.references import Comparison, Target, target_mask
from equipoise.stats.inversion import SignedRoot
from equipoise.stats.unit_sums import shared_units

__all__ = ["RowRoots", "Units", "share_units"]


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
    """

    units: Units
    comparison: Comparison
    membership: Any
    target: Target

    @property
    def means(self) -> bool:
        """Whether the metric is a plain mean of independent rows: one constant denominator."""
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

        # Values near each other have multipliers near each other: half of the Newton steps.
        last: dict[int, FloatArray] = {}

        def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
            statistic = np.empty(len(which))
            for i, (j, value) in enumerate(zip(which, null, strict=True)):
                if profiled and code != "influence_el":
                    statistic[i] = self._profiled(int(j), float(value))
                else:
                    samples = self._moments(int(j))
                    fit = likelihood(samples, np.array([value]), multiplier=last.get(int(j)))
                    last[int(j)] = fit.multiplier
                    statistic[i] = fit.statistic[0]
            return np.sign(self.comparison.estimate[which] - null) * np.sqrt(statistic)

        return root

    def _rows(self, j: int) -> tuple[BoolArray, BoolArray]:
        """Rows of group j and rows of its target."""
        column = self.membership[:, [j]]
        member = np.asarray(column.toarray() if sparse.issparse(column) else column).ravel() != 0
        group = member[self.units.cell]
        if self.target.kind == "rest":
            return group, ~group
        if self.target.cells is not None:
            return group, self.target.cells[self.units.cell]
        return group, np.full(len(group), self.target.kind == "population")

    def _moments(self, j: int) -> Samples:
        """Influence-function moments of group j, linear in the hypothesised disparity."""
        c, units = self.comparison, self.units
        group, target = self._rows(j)
        total, theta = c.target[j, 1], c.target_value[j]
        factor = c.group[j, 1] / total if total > 0 else 0.0
        use = group | (target & (factor > 0))
        u, w, inside = units.u[use], units.w[use], group[use]
        pull = factor * np.where(target[use], u - theta * w, 0.0)
        if c.scale == "ratio":
            base, slope = np.where(inside, u, 0.0), np.where(inside, -theta * w, 0.0) - pull
        else:
            base, slope = np.where(inside, u - theta * w, 0.0) - pull, np.where(inside, -w, 0.0)
        return self._by_unit(base, slope, use)

    def _by_unit(self, base: FloatArray, slope: FloatArray, use: BoolArray) -> Samples:
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
        used = units.w != 0.0
        group, target = self._rows(j)
        group, target = group & used, target & used
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
