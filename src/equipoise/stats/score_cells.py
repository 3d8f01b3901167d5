r"""Rows as independent units by (group, score): what every kernel estimate is computed from.

A row i of unit m (a cluster, or the row itself) lies in the *cell* of its group and its score. All
kernel estimates are linear in the rows with coefficients that depend on the cell alone, so a
statistic costs one sparse product of (units x cells) with (cells x points); the units are never
looped over, and a unit with rows in several groups is summed before it is squared.
"""

from collections.abc import Iterator, Sequence
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
    mass, total : array of shape (n_groups, b)
        Sums of weights and of weighted outcomes at each score.
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
    mass: FloatArray
    total: FloatArray
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
        code = np.asarray(group)
        size = int(code.max(initial=-1)) + 1 if n_groups is None else n_groups
        w = None if weight is None else check_finite("weight", weight, ndim=1)
        repeats = None if count is None else check_finite("count", count, ndim=1)
        _check_lengths(
            outcome=outcome, score=score, group=code, cluster=cluster, weight=w, count=repeats
        )
        for extra in (w, repeats):
            if extra is not None and np.any(extra < 0.0):
                raise DataError("weights and counts must not be negative; some are.")
        support, position = _support(score, n_bins, edge)
        cell = position + code.astype(position.dtype) * position.dtype.type(len(support))
        cell = cell.astype(_index_type(size * len(support)), copy=False)
        n_rows = np.bincount(code, weights=repeats, minlength=size).round().astype(np.int64)
        if cluster is None:
            outcome, w, cell, copies = _merge_identical(outcome, w, cell, repeats)
            label = np.arange(len(outcome))
        else:
            label, outcome, w, cell = _by_unit(cluster, unit, outcome, w, cell, repeats)
            copies = np.ones(int(label.max(initial=-1)) + 1)
        shape = (size, len(support))
        full = w if cluster is not None else w * copies
        return cls(
            support=support,
            unit=label,
            cell=cell,
            outcome=outcome,
            weight=w,
            copies=copies,
            mass=sum_by(cell, full, shape[0] * shape[1]).reshape(shape),
            total=sum_by(cell, full * outcome, shape[0] * shape[1]).reshape(shape),
            n_rows=n_rows,
            clustered=cluster is not None,
        )

    def select(self, groups: Sequence[int]) -> "ScoreCells":
        """Return the rows of some groups, renumbered in the order given; weights are unchanged."""
        chosen = list(groups)
        if chosen == list(range(self.n_groups)):
            return self
        size = len(self.support)
        place = np.full(self.n_groups, -1)
        place[chosen] = np.arange(len(chosen))
        new = place[self.group]
        kept = self._keep(new >= 0)
        return replace(
            kept,
            cell=(new[new >= 0] * size + kept.cell % size).astype(self.cell.dtype),
            mass=self.mass[chosen],
            total=self.total[chosen],
            n_rows=self.n_rows[chosen],
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
            cell=(group * (size - first) + position - first).astype(self.cell.dtype),
            mass=self.mass[:, first:],
            total=self.total[:, first:],
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
        return self.mass, self.total

    def blocks(self) -> Iterator[tuple[slice, IntArray, FloatArray]]:
        """Yield blocks of units: their rows, where each unit begins in them, and copies."""
        start = self.unit_start()
        for first in range(0, len(self.copies), CHUNK_UNITS):
            last = min(first + CHUNK_UNITS, len(self.copies))
            bounds = start[first : last + 1]
            yield slice(bounds[0], bounds[-1]), bounds - bounds[0], self.copies[first:last]

    def unit_start(self) -> IntArray:
        """Return the first row of each unit, and the number of rows at the end."""
        sizes = np.bincount(self.unit, minlength=len(self.copies))
        start = np.concatenate([[0], np.cumsum(sizes)])
        return start.astype(_index_type(len(self.unit)))

    def units_in_group(self) -> IntArray:
        """Return the number of units with a row in each group."""
        present = np.zeros((self.n_groups, len(self.copies)), dtype=bool)
        present[self.group, self.unit] = True
        return (present @ self.copies).round().astype(np.int64)

    def units_within(self, low: FloatArray, high: FloatArray) -> IntArray:
        """Count the units that have a score in each window; shape (n_groups, len(low)).

        Windows are ascending in both ends. The scores of a unit that fall in a window are
        consecutive once sorted, so distinct units = rows inside - neighbouring pairs both inside:
        two histograms, over the first window that a score opens and the last that it closes,
        instead of a search for each window.
        """
        size, k = len(self.support), len(low)
        opened = np.searchsorted(low, self.support, side="right")
        closed = np.tile(np.searchsorted(high, self.support, side="left"), self.n_groups)
        group = np.repeat(np.arange(self.n_groups), size)
        first = ((group * (k + 1) + np.tile(opened, self.n_groups)) * (k + 1)).astype(np.int32)
        length = self.n_groups * (k + 1) ** 2
        if not self.clustered:
            rows = sum_by(self.cell, self.copies, len(first))
            return _window_counts(sum_by(first + closed, rows, length), self.n_groups, k)
        rows = np.bincount(self.cell, minlength=len(first)).astype(np.float64)
        inside = sum_by(first + closed, rows, length)
        within = sparse.csr_array(
            (np.empty(len(self.unit), dtype=np.int8), self.cell.copy(), self.unit_start()),
            shape=(len(self.copies), self.n_groups * size),
        )
        within.sort_indices()
        before, after = within.indices[:-1], within.indices[1:]
        same = (self.unit[1:] == self.unit[:-1]) & (group[before] == group[after])
        code = first[before[same]] + closed.astype(np.int32)[after[same]]
        pairs = np.bincount(code, minlength=length)
        return _window_counts(inside - pairs, self.n_groups, k)


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
    for rows, bounds, copies in cells.blocks():
        psi = values.of(rows, bounds)
        square = psi * psi
        # Copies are independent: a unit that stands for c enters sums of squares c times.
        covariance += psi.T @ (psi if cells.clustered else psi * copies[:, None])
        fourth += ((square if cells.clustered else square * copies[:, None]) * square).sum(axis=0)
    return InfluenceMoments(covariance, fourth)


class _BinaryValues:
    """Influence values when outcomes are 0 or 1: a row's share depends on cell and outcome only."""

    def __init__(self, cells: ScoreCells, blocks: Sequence[LinearBlock]) -> None:
        coefficient = np.concatenate([block.coefficient for block in blocks], axis=1)
        centre = np.concatenate([_columns(block) for block in blocks], axis=1)
        size = len(coefficient)
        self.table = np.concatenate([coefficient * (0.0 - centre), coefficient * (1.0 - centre)])
        self.cells = cells
        self.size = _index_type(2 * size)(size)

    def of(self, rows: slice, bounds: IntArray) -> FloatArray:
        shape = (len(bounds) - 1, len(self.table))
        cell = self.cells.cell[rows] + self.size * (self.cells.outcome[rows] == 1.0)
        units = sparse.csr_array((self.cells.weight[rows], cell, bounds), shape=shape)
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
) -> tuple[FloatArray, AnyArray]:
    low, high = float(score.min(initial=np.inf)), float(score.max(initial=-np.inf))
    if n_bins is None or not low < high:
        support, position = np.unique(score, return_inverse=True)
        return support, position.astype(_index_type(len(score)))
    # Equal bins between extreme quantiles: a few outliers must not make all bins wide.
    inner = np.quantile(score, [1e-4, 1.0 - 1e-4])
    width = float(inner[1] - inner[0] if inner[1] > inner[0] else high - low) / n_bins
    origin = low if edge is None else edge
    # Counted from the edge, a score equal to it falls on its right whatever the rounding.
    place = np.floor((score - origin) / width)
    ends = np.floor((inner - origin) / width) + np.array([-0.5, 0.5]) * n_bins
    position = np.clip(place, min(ends[0], -1.0), max(ends[1], 0.0)).astype(np.int32)
    position -= position.min()
    n = np.bincount(position)
    full = n > 0
    # The mean score of a bin makes the error of binning second order in the width.
    support = sum_by(position, score, len(n))[full] / n[full]
    return support, (np.cumsum(full) - 1).astype(np.int32)[position]


def _merge_identical(
    outcome: FloatArray, weight: FloatArray | None, cell: IntArray, repeats: FloatArray | None
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Merge independent rows of the same cell, outcome and weight: ten million become thousands."""
    same = weight is None or np.ptp(weight) == 0.0
    values = np.unique(outcome) if same and len(outcome) else np.empty(0)
    if not 0 < len(values) <= 100:
        copies = np.ones(len(outcome)) if repeats is None else repeats
        w = np.ones(len(outcome)) if weight is None else weight
        keep = copies > 0.0
        return outcome[keep], w[keep], cell[keep], copies[keep]
    size = (int(cell.max()) + 1) * len(values)
    code = cell.astype(np.int64) * len(values) + np.searchsorted(values, outcome)
    copies = np.bincount(code, weights=repeats, minlength=size).astype(np.float64)
    full = np.flatnonzero(copies)
    return (
        values[full % len(values)],
        np.full(len(full), 1.0 if weight is None else weight[0]),
        (full // len(values)).astype(cell.dtype),
        copies[full],
    )


def _by_unit(
    cluster: AnyArray,
    unit: ParityUnit,
    outcome: FloatArray,
    weight: FloatArray | None,
    cell: IntArray,
    repeats: FloatArray | None,
) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
    """Bring the rows of a cluster together, and weigh them."""
    label = _codes(cluster)
    if repeats is not None and np.any(repeats == 0.0):
        keep = repeats > 0.0
        label, outcome, cell, repeats = (
            _codes(label[keep]),
            outcome[keep],
            cell[keep],
            repeats[keep],
        )
        weight = None if weight is None else weight[keep]
    sizes = np.bincount(label, weights=repeats)
    order = _order(label)
    label = label[order]
    w = (1.0 / sizes)[label] if unit == "cluster" else np.ones(len(label))
    for extra in (weight, repeats):
        if extra is not None:
            w *= extra[order]
    return label, outcome[order], w, cell[order]


def _codes(labels: AnyArray) -> AnyArray:
    array = np.asarray(labels)
    if (
        array.dtype.kind in "iu"
        and len(array)
        and array.min() >= 0
        and array.max() < 4 * len(array)
    ):
        present = np.bincount(array) > 0
        return np.asarray((np.cumsum(present) - 1).astype(_index_type(len(array)))[array])
    return np.unique(array, return_inverse=True)[1].astype(_index_type(len(array)))


def _order(label: IntArray) -> IntArray | slice:
    """Order that brings the rows of a unit together; a counting sort, linear in the rows."""
    if np.all(label[1:] >= label[:-1]):
        return slice(None)
    n = len(label)
    rows = sparse.csr_array(
        (np.empty(n, dtype=np.int8), label, np.arange(n + 1, dtype=label.dtype)),
        shape=(n, int(label.max()) + 1),
    )
    return np.asarray(rows.tocsc().indices)


def _window_counts(histogram: FloatArray, n_groups: int, k: int) -> IntArray:
    """Add entries with opened > j (start not below low j) and closed <= j, for each window j."""
    table = histogram.reshape(n_groups, k + 1, k + 1)
    from_above = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    both = np.cumsum(from_above, axis=2)
    j = np.arange(k)
    return both[:, j + 1, j].round().astype(np.int64)


def _check_lengths(**arrays: AnyArray | None) -> None:
    lengths = {name: len(a) for name, a in arrays.items() if a is not None}
    if len(set(lengths.values())) > 1:
        raise InvalidParameterError(f"arrays must have one length; got {lengths}.")
