"""Rows with a score: where the score lies, and which independent unit the row belongs to.

What is summed before it is squared is brought together by unit. Arrays of ten million rows are
passed over in pieces that stay in the processor's cache, and weights and units are kept by unit,
not by row: memory costs more time than arithmetic.

Scores are distinct values, or the means of narrow equal bins. The rows may lie in several pieces or
in a database; they are asked for integers, extremes and sums only, by the same arithmetic wherever
they are, so that every engine makes the same bins.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from equipoise._blas import one_thread
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, ParityUnit

__all__ = [
    "BINARY",
    "ScoreBins",
    "ScorePieces",
    "ScoreSupport",
    "Scores",
    "UnitBlock",
    "UnitRows",
    "index_type",
    "is_binary",
    "pieces",
    "score_support",
    "sum_by",
]

CHUNK_UNITS = 8_192
"""Units whose influence values are in memory at once: few enough for the processor's cache."""
CHUNK_ROWS = 65_536
BINARY = np.dtype(np.int8)
"""Type of outcomes that are known to be 0 or 1."""
MOST_VALUES = 100
"""Independent rows are merged when outcomes have at most this many values."""
TAIL = 1e-4
"""Share of the rows on either side that may lie outside the equal bins."""
BUCKETS = 4096
STEPS = 2.0**30
"""Steps within a bin that tell mean scores apart."""


class UnitBlock(NamedTuple):
    """Some units: the cells, outcomes and weights of their rows; where each begins; its copies."""

    cell: IntArray
    outcome: AnyArray
    weight: FloatArray
    start: IntArray
    copies: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRows:
    """Rows sorted by unit, and by cell within a unit.

    Parameters
    ----------
    start : array of shape (n_units + 1,)
        First row of each unit, and the number of rows at the end.
    cell, outcome : array of shape (n,)
        Cell and outcome of each row; outcomes 0 and 1 may be integers.
    unit_weight : array of shape (n_units,)
        Factor of the weight that the rows of a unit share.
    row_weight : array of shape (n,) or None
        Factor of its own.
    copies : array of shape (n_units,)
        How many identical independent units one stands for.
    """

    start: IntArray
    cell: IntArray
    outcome: AnyArray
    unit_weight: FloatArray
    row_weight: FloatArray | None
    copies: FloatArray

    @property
    def unit(self) -> IntArray:
        """Unit of each row, ascending from 0."""
        return np.repeat(np.arange(len(self.copies)), np.diff(self.start))

    @property
    def weight(self) -> FloatArray:
        """Weight of each row."""
        shared = np.repeat(self.unit_weight, np.diff(self.start))
        return shared if self.row_weight is None else shared * self.row_weight

    @classmethod
    def independent(
        cls,
        cell: IntArray,
        outcome: FloatArray,
        *,
        weight: FloatArray | None = None,
        repeats: FloatArray | None = None,
    ) -> "UnitRows":
        """Take every row as a unit; merge those of the same cell, outcome and weight.

        Ten million rows become thousands.
        """
        same = weight is None or not len(weight) or np.ptp(weight) == 0.0
        values = np.unique(outcome) if same and len(outcome) else np.empty(0)
        if 0 < len(values) <= MOST_VALUES:
            size = (int(cell.max()) + 1) * len(values)
            code = cell.astype(np.int64) * len(values) + np.searchsorted(values, outcome)
            copies = sum_by(code, repeats, size)
            full = np.flatnonzero(copies)
            copies, outcome = copies[full], values[full % len(values)]
            cell = (full // len(values)).astype(cell.dtype)
            w = np.full(len(full), 1.0 if weight is None else weight[0])
        else:
            copies = np.ones(len(outcome)) if repeats is None else repeats
            w = np.ones(len(outcome)) if weight is None else weight
            keep = copies > 0.0
            copies, outcome, cell, w = copies[keep], outcome[keep], cell[keep], w[keep]
        return cls(
            start=np.arange(len(cell) + 1, dtype=index_type(len(cell))),
            cell=cell,
            outcome=outcome,
            unit_weight=w,
            row_weight=None,
            copies=copies,
        )

    @classmethod
    def clustered(
        cls,
        cluster: AnyArray,
        unit: ParityUnit,
        group: IntArray,
        cell: IntArray,
        outcome: FloatArray,
        *,
        weight: FloatArray | None = None,
        repeats: FloatArray | None = None,
    ) -> "UnitRows":
        """Bring the rows of a cluster together, and weigh them; units of a group are neighbours."""
        if repeats is not None and np.any(repeats == 0.0):
            keep = repeats > 0.0
            cluster, group, outcome, cell = cluster[keep], group[keep], outcome[keep], cell[keep]
            repeats = repeats[keep]
            weight = None if weight is None else weight[keep]
        units = _Units.of(cluster, group)
        n_rows = np.bincount(units.code)[units.order]
        size = n_rows if repeats is None else np.bincount(units.code, repeats)[units.order]
        row_weight = weight if repeats is None else repeats if weight is None else weight * repeats
        cell, outcome, row_weight = _sorted(units, cell, outcome, row_weight)
        n_units = len(n_rows)
        return cls(
            start=_start(n_rows),
            cell=cell,
            outcome=outcome,
            unit_weight=1.0 / size if unit == "cluster" else np.ones(n_units),
            row_weight=row_weight,
            copies=np.ones(n_units),
        )

    def keep(self, rows: BoolArray, cell: IntArray) -> "UnitRows":
        """Return some rows, with new cells; units without any are dropped."""
        kept = np.concatenate([[0], np.cumsum(rows)])[self.start]
        n_rows = np.diff(kept)
        present = n_rows > 0
        return UnitRows(
            start=_start(n_rows[present]),
            cell=cell,
            outcome=self.outcome[rows],
            unit_weight=self.unit_weight[present],
            row_weight=None if self.row_weight is None else self.row_weight[rows],
            copies=self.copies[present],
        )

    def blocks(self, least: int = 0) -> Iterator[UnitBlock]:
        """Yield blocks of units that fit the cache, or of `least` units if that is more.

        Matrix products of blocks are too small for a second thread: BLAS has one meanwhile.
        """
        step = max(CHUNK_UNITS, least)
        many = len(self.copies) > step
        with one_thread() if many else nullcontext():
            for first in range(0, len(self.copies), step):
                units = slice(first, first + step)
                bounds = self.start[first : first + step + 1]
                rows = slice(bounds[0], bounds[-1])
                weight = np.repeat(self.unit_weight[units], np.diff(bounds))
                if self.row_weight is not None:
                    weight *= self.row_weight[rows]
                start, copies = bounds - bounds[0], self.copies[units]
                yield UnitBlock(self.cell[rows], self.outcome[rows], weight, start, copies)

    def sums(self, n_cells: int) -> tuple[FloatArray, FloatArray]:
        """Return the sums of weights and of weighted outcomes in each cell."""
        mass, total = np.zeros(n_cells), np.zeros(n_cells)
        for block in self.blocks(n_cells):
            weight = block.weight * np.repeat(block.copies, np.diff(block.start))
            mass += np.bincount(block.cell, weights=weight, minlength=n_cells)
            total += np.bincount(block.cell, weights=weight * block.outcome, minlength=n_cells)
        return mass, total


def index_type(largest: int) -> type[np.signedinteger[Any]]:
    """Sparse products want 32-bit positions, and convert others every time."""
    return np.int32 if largest < 2**31 else np.int64


def is_binary(outcome: AnyArray) -> bool:
    """Say whether every outcome is 0 or 1."""
    parts = (outcome[rows] for rows in pieces(len(outcome)))
    return all(bool(np.all((part == 0) | (part == 1))) for part in parts)


def sum_by(code: IntArray, values: FloatArray | None, size: int) -> FloatArray:
    """Sum values by code, 0 to size - 1; without values, count."""
    total = np.zeros(size)
    for rows in pieces(len(code), size):
        part = None if values is None else values[rows]
        total += np.bincount(code[rows], weights=part, minlength=size)
    return total


def pieces(n: int, least: int = 0) -> Iterator[slice]:
    """Cut n rows into slices that fit the cache, or have `least` rows if that is more."""
    step = max(CHUNK_ROWS, least)
    return (slice(first, first + step) for first in range(0, n, step))


class _Units(NamedTuple):
    """`code` of each row, `rank` of each code among the units, `order`: the code of each unit."""

    code: IntArray
    rank: IntArray
    order: IntArray

    @classmethod
    def of(cls, cluster: AnyArray, group: IntArray) -> "_Units":
        """Number the units that have rows, by the last of their groups when they are many.

        A block of units then has rows of few groups.
        """
        whole = cluster.dtype.kind in "iu" and len(cluster) > 0
        if whole and cluster.min() >= 0 and cluster.max() < 4 * len(cluster):
            code = cluster.astype(np.intp, copy=False)
        else:
            code = np.unique(cluster, return_inverse=True)[1]
        kind = index_type(len(code))
        rank = np.zeros(int(code.max(initial=-1)) + 1, dtype=kind)
        if len(rank) > CHUNK_UNITS:
            for rows in pieces(len(code)):
                np.maximum.at(rank, code[rows], group[rows].astype(kind) + kind(1))
        else:
            rank[code] = 1
        present = np.flatnonzero(rank)
        order = present[np.argsort(rank[present], kind="stable")]
        rank[order] = np.arange(len(order), dtype=kind)
        return cls(code, rank, order)


def _sorted(
    units: _Units, cell: IntArray, outcome: FloatArray, weight: FloatArray | None
) -> tuple[IntArray, AnyArray, FloatArray | None]:
    """Sort rows by unit, then by cell, then by outcome if it is 0 or 1.

    Unit, cell and such an outcome are one number. When there is nothing else, the numbers are
    sorted and taken apart again, which is much faster than to find an order and follow it.
    """
    bits = int(cell.max(initial=0)).bit_length()
    binary = is_binary(outcome)
    key = np.empty(len(cell), dtype=np.int64)
    for rows in pieces(len(cell)):
        key[rows] = units.rank[units.code[rows]]
        key[rows] <<= bits
        key[rows] += cell[rows]
        key[rows] <<= 1
        if binary:
            key[rows] += outcome[rows] == 1.0
    if binary and weight is None:
        key.sort()
    else:
        order = np.argsort(key)
        key, outcome = key[order], outcome[order]
        weight = None if weight is None else weight[order]
    sorted_cell = np.empty(len(key), dtype=cell.dtype)
    sorted_outcome = np.empty(len(key), dtype=BINARY) if binary else outcome
    for rows in pieces(len(key)):
        sorted_cell[rows] = (key[rows] >> 1) & (2**bits - 1)
        if binary:
            sorted_outcome[rows] = key[rows] & 1
    return sorted_cell, sorted_outcome, weight


def _start(n_rows: AnyArray) -> IntArray:
    start = np.concatenate([[0], np.cumsum(n_rows)])
    return start.astype(index_type(int(start[-1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBins:
    """Equal bins between extreme quantiles: a few outliers must not make all bins wide.

    Parameters
    ----------
    origin, width : float
        Where a bin begins; a score equal to it falls on its right whatever the rounding.
    first, last : float
        Lowest and highest bin, counted from the origin; scores beyond them share these two.
    """

    origin: float
    width: float
    first: float
    last: float

    @property
    def size(self) -> int:
        """Bins, with one more at each end for scores on the other side of the origin."""
        return int(self.last - self.first) + 3

    def number(self, score: FloatArray) -> AnyArray:
        """Return the bin of each score, from 0 to `size` - 1."""
        found = np.empty(len(score), dtype=np.int32)
        for rows in pieces(len(score)):
            place = np.floor((score[rows] - self.origin) / self.width)
            number = np.clip(place, self.first, self.last)
            if self.last < 0.0:
                number[place >= 0.0] = self.last + 1.0
            if self.first >= 0.0:
                number[place < 0.0] = self.first - 1.0
            found[rows] = number - (self.first - 1.0)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSupport:
    """Scores, ascending, and how a score is placed among them.

    Parameters
    ----------
    values : array of shape (b,)
        Distinct scores, or mean scores of the bins that have any.
    bins : ScoreBins, optional
        `None` for distinct scores.
    place : array, optional
        Position of each bin among the values.
    """

    values: FloatArray
    bins: ScoreBins | None = None
    place: IntArray | None = None

    def position(self, score: FloatArray) -> IntArray:
        """Return the position of each score among the values."""
        if self.bins is None or self.place is None:
            return np.searchsorted(self.values, score).astype(np.int32)
        return self.place[self.bins.number(score)]


class Scores(Protocol):
    """Scores of rows, wherever the rows are."""

    def extent(self) -> tuple[int, float, float]:
        """Return how many there are, the lowest and the highest."""
        ...

    def distinct(self) -> FloatArray:
        """Return those that differ, ascending."""
        ...

    def counts(self, bins: ScoreBins) -> FloatArray:
        """Return the rows in each bin."""
        ...

    def sums(self, bins: ScoreBins) -> tuple[FloatArray, FloatArray]:
        """Return the rows in each bin and the sums of their scores."""
        ...


class ScorePieces:
    """Scores in memory, in pieces.

    Parameters
    ----------
    pieces : sequence of arrays
        The scores.
    """

    def __init__(self, pieces: Sequence[FloatArray]) -> None:
        self._pieces = [piece for piece in pieces if len(piece)]

    def extent(self) -> tuple[int, float, float]:
        """Return how many there are, the lowest and the highest."""
        return (
            sum(len(piece) for piece in self._pieces),
            min((float(piece.min()) for piece in self._pieces), default=np.nan),
            max((float(piece.max()) for piece in self._pieces), default=np.nan),
        )

    def distinct(self) -> FloatArray:
        """Return those that differ, ascending."""
        return np.unique(np.concatenate([np.empty(0), *map(np.unique, self._pieces)]))

    def counts(self, bins: ScoreBins) -> FloatArray:
        """Return the rows in each bin."""
        parts = (sum_by(bins.number(piece), None, bins.size) for piece in self._pieces)
        return sum(parts, np.zeros(bins.size))

    def sums(self, bins: ScoreBins) -> tuple[FloatArray, FloatArray]:
        """Return the rows in each bin and the sums of their scores."""
        n, total = np.zeros(bins.size), np.zeros(bins.size)
        for piece in self._pieces:
            number = bins.number(piece)
            n += sum_by(number, None, bins.size)
            total += sum_by(number, piece, bins.size)
        return n, total


def score_support(
    scores: Scores, *, n_bins: int | None, edge: float | None = None, exact_rows: int = 0
) -> ScoreSupport:
    """Agree on the scores that all rows use.

    Parameters
    ----------
    scores : Scores
        Of all rows.
    n_bins : int, optional
        How many equal bins to use between extreme quantiles; `None` for exact scores.
    edge : float, optional
        A score at which a bin must begin.
    exact_rows : int, default 0
        Scores of at most this many rows are exact.

    Returns
    -------
    ScoreSupport

    Examples
    --------
    Where do the scores 0.1, 0.5 and 0.9 lie, when one machine has seen two of them?

    >>> pieces = ScorePieces([np.array([0.9, 0.1]), np.array([0.5, 0.5])])
    >>> support = score_support(pieces, n_bins=9, exact_rows=4)
    >>> support.position(np.array([0.5, 0.9])).tolist()
    [1, 2]

    At the second and third place.
    """
    if n_bins is None:
        return ScoreSupport(values=scores.distinct())
    n_rows, low, high = scores.extent()
    if n_rows <= exact_rows or not low < high:
        return ScoreSupport(values=scores.distinct())
    inner = np.array(_inner_range(scores, low, high))
    width = float(inner[1] - inner[0]) / n_bins
    origin = low if edge is None else float(edge)
    first, last = np.floor((inner - origin) / width) + np.array([-1.0, 1.0]) * (n_bins // 2)
    bins = ScoreBins(origin=origin, width=width, first=float(first), last=float(last))
    n, total = scores.sums(bins)
    full = n > 0.0
    # The mean score of a bin makes the error of binning second order in the width.
    return ScoreSupport(
        values=_rounded(total[full] / n[full], bins),
        bins=bins,
        place=(np.cumsum(full) - 1).astype(np.int32),
    )


def _rounded(mean: FloatArray, bins: ScoreBins) -> FloatArray:
    """Drop the last digits, which depend on the order in which scores were added.

    No mean leaves its side of the origin, where a bin begins.
    """
    steps = (mean - bins.origin) / bins.width * STEPS
    near = np.abs(steps) < 2.0**52
    rounded = bins.origin + np.round(steps) / STEPS * bins.width
    return np.where(near & ((rounded < bins.origin) == (mean < bins.origin)), rounded, mean)


def _inner_range(scores: Scores, low: float, high: float) -> tuple[float, float]:
    """Narrow the range to the buckets of the extreme quantiles, until it hardly shrinks.

    Counts are integers and the edges follow from counts, so every engine finds the same range.
    """
    a, b = low, high
    while True:
        width = (b - a) / BUCKETS
        if not a < a + width or not b - width < b:
            # Nearly all scores are one value.
            return low, high
        # The first and the last bucket count what lies outside.
        counts = scores.counts(ScoreBins(origin=a, width=width, first=-1.0, last=float(BUCKETS)))
        share = np.cumsum(counts[1:-1]) / counts[1:-1].sum()
        i = int(np.clip(np.searchsorted(share, TAIL, side="right") - 1, 0, BUCKETS - 1))
        j = int(np.clip(np.searchsorted(share, 1.0 - TAIL) - 1, i, BUCKETS - 1))
        before = b - a
        a, b = a + i * width, a + (j + 1) * width
        if 2.0 * (b - a) > before:
            return a, b
