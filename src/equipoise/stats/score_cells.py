r"""Rows as independent units by (group, score): what every kernel estimate is computed from.

A row i of unit m (a cluster, or the row itself) lies in the *cell* of its group and its score. All
kernel estimates are linear in the rows with coefficients that depend on the cell alone, so a
statistic costs one sparse product of (units x cells) with (cells x points); the units are never
looped over, and a unit with rows in several groups is summed before it is squared.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from equipoise._checks import check_finite, check_option
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, ParityUnit
from equipoise.exceptions import DataError, InvalidParameterError

__all__ = [
    "InfluenceMoments",
    "LinearBlock",
    "ScoreCells",
    "influence_moments",
    "sum_by",
    "weighted_quantile",
]

CHUNK_UNITS = 8_192
"""Units whose influence values are in memory at once: few enough for the processor's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCells:
    """Rows sorted by unit, each with its (group, score) cell, outcome and weight.

    Parameters
    ----------
    support : array of shape (b,)
        Distinct scores, or the mean scores of bins, ascending.
    unit, cell : array of shape (n,)
        Unit of each row, ascending from 0; ``group * b + position of the score``.
    outcome, weight : array of shape (n,)
        Outcome; weight of the row, one over the rows of its unit at the level of clusters.
    copies : array of shape (n_units,)
        How many identical independent units one stands for.
    n_rows : array of shape (n_groups,)
        Rows in each group.
    clustered : bool
        Whether units can have several rows.
    """

    support: FloatArray
    unit: IntArray
    cell: IntArray
    outcome: FloatArray
    weight: FloatArray
    copies: FloatArray
    n_rows: IntArray
    clustered: bool

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.n_rows)

    @property
    def n_units(self) -> int:
        """Independent units."""
        return round(float(self.copies.sum()))

    @property
    def group(self) -> IntArray:
        """Group of each row."""
        return self.cell // len(self.support)

    @property
    def binary(self) -> bool:
        """Whether every outcome is 0 or 1."""
        return bool(np.all((self.outcome == 0.0) | (self.outcome == 1.0)))

    @classmethod
    def from_rows(
        cls,
        y_true: AnyArray,
        y_score: AnyArray,
        group: AnyArray,
        *,
        n_groups: int | None = None,
        cluster: AnyArray | None = None,
        unit: ParityUnit = "row",
        weight: AnyArray | None = None,
        count: AnyArray | None = None,
        n_bins: int | None = None,
        edge: float | None = None,
    ) -> "ScoreCells":
        """Arrange rows.

        Parameters
        ----------
        y_true, y_score : array of shape (n,)
            Outcome and score, finite.
        group : array of shape (n,)
            Group of each row, 0 to G - 1.
        n_groups : int, optional
            G; by default one more than the largest code.
        cluster : array of shape (n,), optional
            Who the row belongs to, any labels; rows are independent without it.
        unit : {"row", "cluster"}, default "row"
            "cluster" gives every cluster the same weight, "row" every row.
        weight : array of shape (n,), optional
            Sampling weight of a row.
        count : array of shape (n,), optional
            How many identical rows a row stands for.
        n_bins : int, optional
            Replace scores by the means of this many equal intervals; by default scores are exact.
        edge : float, optional
            A score at which an interval must begin.

        Returns
        -------
        ScoreCells
        """
        check_option("unit", unit, ParityUnit)
        outcome = check_finite("y_true", y_true, ndim=1)
        score = check_finite("y_score", y_score, ndim=1)
        code = np.asarray(group, dtype=np.int64)
        size = int(code.max(initial=-1)) + 1 if n_groups is None else n_groups
        _check_lengths(outcome=outcome, score=score, group=code, cluster=cluster, weight=weight)
        ones = np.ones(len(outcome))
        repeats = ones if count is None else check_finite("count", count, ndim=1)
        w = ones if weight is None else check_finite("weight", weight, ndim=1)
        if np.any(w < 0.0) or np.any(repeats < 0.0):
            raise DataError("weights and counts must not be negative; some are.")
        support, position = _support(score, n_bins, edge)
        cell = code * len(support) + position
        n_rows = np.bincount(code, weights=repeats, minlength=size).round().astype(np.int64)
        if cluster is None:
            outcome, w, cell, copies = _merge_identical(outcome, w, cell, repeats)
            label = np.arange(len(outcome))
        else:
            label = _codes(cluster)
            w = w * repeats
            if unit == "cluster":
                w = w / np.bincount(label, weights=repeats)[label]
            order = _order(label)
            label, outcome, w, cell = label[order], outcome[order], w[order], cell[order]
            copies = np.ones(int(label.max(initial=-1)) + 1)
        return cls(
            support=support,
            unit=label,
            cell=cell.astype(_index_type(size * len(support))),
            outcome=outcome,
            weight=w,
            copies=copies,
            n_rows=n_rows,
            clustered=cluster is not None,
        )

    def select(self, groups: Sequence[int]) -> "ScoreCells":
        """Return the rows of some groups, renumbered in the order given; weights are unchanged."""
        size = len(self.support)
        place = np.full(self.n_groups, -1)
        place[list(groups)] = np.arange(len(groups))
        new = place[self.group]
        kept = self._keep(new >= 0)
        return replace(
            kept,
            cell=new[new >= 0] * size + kept.cell % size,
            n_rows=self.n_rows[list(groups)],
        )

    def above(self, threshold: float) -> "ScoreCells":
        """Return the rows with a score of at least `threshold`; units without any are dropped."""
        first = int(np.searchsorted(self.support, threshold, side="left"))
        size = len(self.support)
        kept = self._keep(self.cell % size >= first)
        group, position = np.divmod(kept.cell, size)
        rows = np.bincount(group, weights=kept.copies[kept.unit], minlength=self.n_groups)
        return replace(
            kept,
            support=self.support[first:],
            cell=group * (size - first) + position - first,
            n_rows=rows.round().astype(np.int64),
        )

    def _keep(self, rows: BoolArray) -> "ScoreCells":
        unit = self.unit[rows]
        present = np.zeros(len(self.copies), dtype=bool)
        present[unit] = True
        return replace(
            self,
            unit=(np.cumsum(present) - 1)[unit],
            cell=self.cell[rows],
            outcome=self.outcome[rows],
            weight=self.weight[rows],
            copies=self.copies[present],
        )

    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums of weights and of weighted outcomes, each of shape (n_groups, b)."""
        weight = self.weight * self.copies[self.unit]
        shape = (self.n_groups, len(self.support))
        size = shape[0] * shape[1]
        mass = sum_by(self.cell, weight, size)
        total = sum_by(self.cell, weight * self.outcome, size)
        return mass.reshape(shape), total.reshape(shape)

    def unit_start(self) -> IntArray:
        """Return the first row of each unit, and the number of rows at the end."""
        return np.searchsorted(self.unit, np.arange(len(self.copies) + 1))

    def units_in_group(self) -> IntArray:
        """Return the number of units with a row in each group."""
        present = np.zeros((self.n_groups, len(self.copies)), dtype=bool)
        present[self.group, self.unit] = True
        return (present @ self.copies).round().astype(np.int64)

    def units_within(self, low: FloatArray, high: FloatArray) -> IntArray:
        """Count the units that have a score in each window; shape (n_groups, len(low)).

        Windows are ascending in both ends. The scores of a unit that fall in a window are
        consecutive once sorted, so distinct units = rows inside - neighbouring pairs both inside:
        two histograms instead of a search for each window.
        """
        size, k = len(self.support), len(low)
        unit = self.unit
        within = sparse.csr_array(
            (np.empty(len(unit), dtype=np.int8), self.cell.copy(), self.unit_start()),
            shape=(len(self.copies), self.n_groups * size),
        )
        within.sort_indices()
        cell = within.indices.astype(np.int64)
        group, position = cell // size, cell % size
        opened = np.searchsorted(low, self.support, side="right")[position]
        closed = np.searchsorted(high, self.support, side="left")[position]
        same = (unit[1:] == unit[:-1]) & (group[1:] == group[:-1])
        copies = self.copies[unit]
        shape = (self.n_groups, k + 1, k + 1)
        inside = _window_counts(group, opened, closed, copies, shape)
        pairs = _window_counts(
            group[1:][same], opened[:-1][same], closed[1:][same], copies[1:][same], shape
        )
        return (inside - pairs).round().astype(np.int64)


class LinearBlock(NamedTuple):
    r"""Statistics :math:`\sum_i \omega_i c_{k(i)} (Y_i - \mu_{k(i)})` for cells k.

    `coefficient` has shape (cells, p); `centre` is (cells,), or (cells, p) when it differs by
    statistic.
    """

    coefficient: FloatArray
    centre: FloatArray


class InfluenceMoments(NamedTuple):
    """Sums over units of influence values: products of pairs, and fourth powers."""

    covariance: FloatArray
    fourth: FloatArray


def influence_moments(cells: ScoreCells, blocks: Sequence[LinearBlock]) -> InfluenceMoments:
    """Sum the outer product and fourth powers of the stacked influence values over units."""
    size = sum(block.coefficient.shape[1] for block in blocks)
    covariance, fourth = np.zeros((size, size)), np.zeros(size)
    values = _BinaryValues(cells, blocks) if cells.binary else _RealValues(cells, blocks)
    n_units = len(cells.copies)
    start = cells.unit_start().astype(_index_type(len(cells.unit)))
    for first in range(0, n_units, CHUNK_UNITS):
        last = min(first + CHUNK_UNITS, n_units)
        psi = values.of(slice(start[first], start[last]), start[first : last + 1] - start[first])
        # Copies are independent: a unit that stands for c enters sums of squares c times.
        copies = cells.copies[first:last, None]
        square = psi * psi
        covariance += psi.T @ (psi if cells.clustered else psi * copies)
        fourth += ((square if cells.clustered else square * copies) * square).sum(axis=0)
    return InfluenceMoments(covariance, fourth)


class _BinaryValues:
    """Influence values when outcomes are 0 or 1: a row's share depends on cell and outcome only."""

    def __init__(self, cells: ScoreCells, blocks: Sequence[LinearBlock]) -> None:
        coefficient = np.concatenate([block.coefficient for block in blocks], axis=1)
        centre = np.concatenate([_columns(block) for block in blocks], axis=1)
        size = len(coefficient)
        self.table = np.concatenate([coefficient * (0.0 - centre), coefficient * (1.0 - centre)])
        self.cell = cells.cell + (size * cells.outcome).astype(_index_type(2 * size))
        self.weight = cells.weight

    def of(self, rows: slice, bounds: IntArray) -> FloatArray:
        shape = (len(bounds) - 1, len(self.table))
        units = sparse.csr_array((self.weight[rows], self.cell[rows], bounds), shape=shape)
        return np.asarray(units @ self.table)


class _RealValues:
    """Influence values of real outcomes: weighted outcomes less weighted centres."""

    def __init__(self, cells: ScoreCells, blocks: Sequence[LinearBlock]) -> None:
        coefficient = np.concatenate([block.coefficient for block in blocks], axis=1)
        centre = np.concatenate([_columns(block) for block in blocks], axis=1)
        self.outcome = coefficient
        self.mass = -coefficient * centre
        self.cells = cells

    def of(self, rows: slice, bounds: IntArray) -> FloatArray:
        cell, weight = self.cells.cell[rows], self.cells.weight[rows]
        shape = (len(bounds) - 1, len(self.outcome))
        outcome = sparse.csr_array((weight * self.cells.outcome[rows], cell, bounds), shape=shape)
        mass = sparse.csr_array((weight, cell, bounds), shape=shape)
        return np.asarray(outcome @ self.outcome + mass @ self.mass)


def _columns(block: LinearBlock) -> FloatArray:
    centre = block.centre if block.centre.ndim == 2 else block.centre[:, None]
    return np.broadcast_to(centre, block.coefficient.shape)


def _index_type(largest: int) -> type[np.signedinteger[Any]]:
    """Sparse products want 32-bit positions, and convert others every time."""
    return np.int32 if largest < 2**31 else np.int64


def sum_by(code: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Sum values by code, 0 to size - 1."""
    return np.bincount(code, weights=values, minlength=size).astype(np.float64, copy=False)


def weighted_quantile(values: FloatArray, mass: FloatArray, levels: FloatArray) -> FloatArray:
    """Return the smallest of the ascending `values` whose share of `mass` reaches each level."""
    share = np.cumsum(mass) / mass.sum()
    at = np.searchsorted(share, levels - 1e-12, side="left")
    return values[np.minimum(at, len(values) - 1)]


def _support(
    score: FloatArray, n_bins: int | None, edge: float | None
) -> tuple[FloatArray, IntArray]:
    low, high = float(score.min(initial=np.inf)), float(score.max(initial=-np.inf))
    if n_bins is None or not low < high:
        support, position = np.unique(score, return_inverse=True)
        return support, position.astype(np.int64)
    width = (high - low) / n_bins
    origin = low if edge is None else edge
    # Counted from the edge, a score equal to it falls on its right whatever the rounding.
    position = np.floor((score - origin) / width).astype(np.int64)
    position -= position.min()
    n = np.bincount(position)
    full = n > 0
    # The mean score of a bin makes the error of binning second order in the width.
    support = sum_by(position, score, len(n))[full] / n[full]
    return support, (np.cumsum(full) - 1)[position]


def _merge_identical(
    outcome: FloatArray, weight: FloatArray, cell: IntArray, repeats: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Merge independent rows of the same cell, outcome and weight: ten million become thousands."""
    values, code = np.unique(outcome, return_inverse=True)
    if len(values) > 100 or np.ptp(weight) > 0.0 or not len(weight):
        keep = repeats > 0.0
        return outcome[keep], weight[keep], cell[keep], repeats[keep]
    size = (int(cell.max()) + 1) * len(values)
    copies = sum_by(cell * len(values) + code, repeats, size)
    full = np.flatnonzero(copies)
    return (
        values[full % len(values)],
        np.full(len(full), weight[0]),
        (full // len(values)).astype(np.int64),
        copies[full],
    )


def _codes(labels: AnyArray) -> IntArray:
    array = np.asarray(labels)
    if (
        array.dtype.kind in "iu"
        and len(array)
        and array.min() >= 0
        and array.max() < 4 * len(array)
    ):
        present = np.bincount(array) > 0
        return np.asarray((np.cumsum(present) - 1)[array], dtype=np.int64)
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _order(label: IntArray) -> IntArray | slice:
    """Order that brings the rows of a unit together; a counting sort, linear in the rows."""
    if np.all(label[1:] >= label[:-1]):
        return slice(None)
    n = len(label)
    rows = sparse.coo_array(
        (np.arange(n), (label, np.arange(n))), shape=(int(label.max()) + 1, n)
    ).tocsr()
    return np.asarray(rows.data)


def _window_counts(
    group: IntArray,
    opened: IntArray,
    closed: IntArray,
    copies: FloatArray,
    shape: tuple[int, int, int],
) -> FloatArray:
    """Sum copies over entries with opened > k (start not below low k) and closed <= k."""
    code = (group * shape[1] + opened) * shape[2] + closed
    table = sum_by(code, copies, shape[0] * shape[1] * shape[2]).reshape(shape)
    from_above = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    both = np.cumsum(from_above, axis=2)
    k = np.arange(shape[1] - 1)
    return np.asarray(both[:, k + 1, k])


def _check_lengths(**arrays: AnyArray | None) -> None:
    lengths = {name: len(a) for name, a in arrays.items() if a is not None}
    if len(set(lengths.values())) > 1:
        raise InvalidParameterError(f"arrays must have one length; got {lengths}.")
