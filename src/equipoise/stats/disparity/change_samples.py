"""What two models or two periods leave of each group: counts where they suffice, else rows."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from equipoise._typing import BoolArray, FloatArray, IntArray

__all__ = ["PairedCounts", "PairedRows", "PeriodCounts", "PeriodRows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """Counts by group; those of a union are sums."""

    def joined(self, cells: BoolArray) -> Self:
        """Counts of unions of groups.

        Parameters
        ----------
        cells : boolean array of shape (m, k)
            Which groups make up each union.

        Returns
        -------
        PairedCounts or PeriodCounts
        """
        join = cells.astype(np.float64)
        return type(self)(**{part.name: getattr(self, part.name) @ join for part in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCounts(_Counts):
    """Decisions of two models on the same rows, by group.

    Parameters
    ----------
    both, lost, gained, neither : array of shape (m,)
        Rows with 1 under both, under the old only, under the new only, and under neither.
    """

    both: FloatArray
    lost: FloatArray
    gained: FloatArray
    neither: FloatArray

    @property
    def n(self) -> FloatArray:
        """Rows."""
        return self.both + self.lost + self.gained + self.neither

    @property
    def size(self) -> FloatArray:
        """What shares of the population are made of: rows."""
        return self.n

    @property
    def values(self) -> tuple[FloatArray, FloatArray]:
        """Old and new rates."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return (self.both + self.lost) / self.n, (self.both + self.gained) / self.n


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodCounts(_Counts):
    """Counts of two independent samples, by group.

    Parameters
    ----------
    n_old, ones_old, n_new, ones_new : array of shape (m,)
        Rows and ones.
    """

    n_old: FloatArray
    ones_old: FloatArray
    n_new: FloatArray
    ones_new: FloatArray

    @property
    def n(self) -> FloatArray:
        """Rows of both samples."""
        return self.n_old + self.n_new

    @property
    def size(self) -> FloatArray:
        """What shares of the population are made of: rows."""
        return self.n

    @property
    def values(self) -> tuple[FloatArray, FloatArray]:
        """Old and new rates."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.ones_old / self.n_old, self.ones_new / self.n_new


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows, or sums of rows of one unit and group.

    Parameters
    ----------
    cell : array of shape (r,)
        Group of each row, from 0.
    unit : array of shape (r,)
        Independent unit of each row, from 0.
    n : array of shape (m,)
        Rows that count, by group.
    """

    cell: IntArray
    unit: IntArray
    n: FloatArray

    @property
    def n_units(self) -> int:
        """Independent units."""
        return int(self.unit.max(initial=-1)) + 1

    def _by_group(self, mass: FloatArray) -> FloatArray:
        sums = np.bincount(self.cell, weights=mass, minlength=len(self.n))
        return np.asarray(sums, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRows(_Rows):
    """Values of two models on the same rows.

    Parameters
    ----------
    cell, unit, n
        Group and unit of each row, and rows by group.
    u_old, w_old, u_new, w_new : array of shape (r,)
        Numerators and denominators of the metric, weights inside.
    """

    u_old: FloatArray
    w_old: FloatArray
    u_new: FloatArray
    w_new: FloatArray

    @property
    def size(self) -> FloatArray:
        """What shares of the population are made of: denominators of both models."""
        return self._by_group(self.w_old + self.w_new)

    def values(self, cells: BoolArray) -> tuple[float, float]:
        """Old and new value of some of the groups; NaN without rows."""
        here = cells[self.cell]
        return (
            _ratio(self.u_old[here], self.w_old[here]),
            _ratio(self.u_new[here], self.w_new[here]),
        )

    def sides(self, cells: BoolArray, sign: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""New value plus `sign` times the old one, as one mean over units.

        A row adds its influence :math:`(u_1 - v_1 w_1) / W_1 \pm (u_0 - v_0 w_0) / W_0`; its share
        of the mean is the average of its shares under the two models.

        Parameters
        ----------
        cells : boolean array of shape (m,)
            The groups.
        sign : float
            1 or -1.

        Returns
        -------
        u, w : array of shape (U, 1)
            Totals by unit.
        coefficients : array of shape (1,)
            Of the mean.
        """
        here = cells[self.cell]
        v0, v1 = self.values(cells)
        h0, h1 = (w[here] / w[here].sum() for w in (self.w_old, self.w_new))
        influence = self.u_new[here] / self.w_new[here].sum() - v1 * h1
        influence += sign * (self.u_old[here] / self.w_old[here].sum() - v0 * h0)
        share = 0.5 * (h0 + h1)
        value = v1 + sign * v0
        totals = [
            np.bincount(self.unit[here], weights=part, minlength=self.n_units)[:, None]
            for part in (influence + value * share, share)
        ]
        return totals[0].astype(np.float64), totals[1].astype(np.float64), np.ones(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRows(_Rows):
    """Rows of two periods; units may have rows in both.

    Parameters
    ----------
    cell, unit, n
        Group and unit of each row, and rows by group.
    u, w : array of shape (r,)
        Numerator and denominator of the metric, weights inside; rows with w = 0 do not count.
    new : boolean array of shape (r,)
        Whether a row belongs to the later period.
    """

    u: FloatArray
    w: FloatArray
    new: BoolArray

    @property
    def size(self) -> FloatArray:
        """What shares of the population are made of: denominators of both periods."""
        return self._by_group(self.w)

    def values(self, cells: BoolArray) -> tuple[float, float]:
        """Old and new value of some of the groups; NaN without rows."""
        here = cells[self.cell]
        old, new = here & ~self.new, here & self.new
        return _ratio(self.u[old], self.w[old]), _ratio(self.u[new], self.w[new])

    def sides(self, cells: BoolArray, sign: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The new period plus `sign` times the old one, as two means over units.

        Parameters
        ----------
        cells : boolean array of shape (m,)
            The groups.
        sign : float
            1 or -1.

        Returns
        -------
        u, w : array of shape (U, 2)
            Totals by unit, the new period first.
        coefficients : array of shape (2,)
            Of the means.
        """
        here = cells[self.cell]
        key = 2 * self.unit[here] + np.where(self.new[here], 0, 1)
        u, w = (
            np.bincount(key, weights=part[here], minlength=2 * self.n_units).reshape(-1, 2)
            for part in (self.u, self.w)
        )
        return u.astype(np.float64), w.astype(np.float64), np.array([1.0, sign])


def _ratio(u: FloatArray, w: FloatArray) -> float:
    total = float(w.sum())
    return float(u.sum()) / total if total else float("nan")
