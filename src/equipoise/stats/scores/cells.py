r"""Rows as independent units by (group, score): what every kernel estimate is computed from.

A row i of unit m (a cluster, or the row itself) lies in the *cell* of its group and its score. All
kernel estimates are linear in the rows with coefficients that depend on the cell alone, so a
statistic costs one sparse product of (units x cells) with (cells x points); the units are never
looped over, and a unit with rows in several groups is summed before it is squared.

Everything that the kernel tests ask of rows is a sum over independent units. So the rows may stay
where they are: a function of `ScoreCells` is sent to every part that holds whole units, and the
arrays that come back are added up, part by part in a fixed order. `PartitionedCells` answers the
questions of `ScoreCells` in this way, and the tests do not know the difference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from equipoise._checks import check_finite, check_option
from equipoise._typing import AnyArray, FloatArray, IntArray, ParityUnit
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.scores.rows import (
    BINARY,
    ScorePieces,
    ScoreSupport,
    UnitBlock,
    UnitRows,
    index_type,
    is_binary,
    pieces,
    score_support,
    sum_by,
)

__all__ = [
    "AnyScoreCells",
    "CellCounts",
    "InfluenceMoments",
    "LinearBlock",
    "PartitionedCells",
    "Recipe",
    "ScoreCells",
    "cell_counts",
    "check_unit",
    "coarse",
    "fitted_moments",
    "influence_moments",
    "mid_ranks",
    "mixture",
    "weighted_quantile",
]

Sums = TypeVar("Sums")
Made = TypeVar("Made")


def check_unit(unit: ParityUnit | None, cluster: object) -> ParityUnit:
    """Return what weighs alike: rows, unless clusters are given, when it must be named."""
    if unit is not None:
        check_option("unit", unit, ParityUnit)
        return unit
    if cluster is not None:
        raise InvalidParameterError(
            "`unit` must be named when `cluster` is given: 'cluster' weighs every cluster alike,"
            " 'row' every row, and the two hypotheses differ."
        )
    return "row"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCells:
    """Rows by unit, each with its (group, score) cell, outcome and weight.

    Parameters
    ----------
    support : array of shape (b,)
        Distinct scores, or the mean scores of bins, ascending.
    rows : UnitRows
        The rows; a cell is ``group * b + position of the score``, and a row weighs one over the
        rows of its unit at the level of clusters.
    mass, total : array of shape (n_groups, b)
        Sums of weights and of weighted outcomes at each score.
    counts : array of shape (n_groups, b)
        Rows at each score.
    clustered : bool
        Whether units can have several rows.
    """

    support: FloatArray
    rows: UnitRows
    mass: FloatArray
    total: FloatArray
    counts: IntArray
    clustered: bool

    def to_arrays(self) -> tuple[AnyArray, ...]:
        """Return all that the cells hold, as arrays that `from_arrays` reads."""
        rows = self.rows
        weighted = rows.row_weight is not None
        return (
            *(self.support, self.mass, self.total, self.counts),
            *(rows.start, rows.cell, rows.outcome, rows.unit_weight, rows.copies),
            np.empty(0) if rows.row_weight is None else rows.row_weight,
            np.array([self.clustered, weighted]),
        )

    @classmethod
    def from_arrays(cls, arrays: tuple[AnyArray, ...]) -> "ScoreCells":
        """Return the cells that were written by `to_arrays`."""
        support, mass, total, counts, start, cell, outcome, unit, copies, row, known = arrays
        rows = UnitRows(
            start=start,
            cell=cell,
            outcome=outcome,
            unit_weight=unit,
            row_weight=row if known[1] else None,
            copies=copies,
        )
        return cls(
            support=support,
            rows=rows,
            mass=mass,
            total=total,
            counts=counts,
            clustered=bool(known[0]),
        )

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.counts)

    @property
    def n_rows(self) -> IntArray:
        """Rows in each group."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def n_units(self) -> int:
        """Independent units."""
        return round(float(self.rows.copies.sum()))

    @property
    def binary(self) -> bool:
        """Whether every outcome is 0 or 1."""
        return self.rows.outcome.dtype == BINARY or is_binary(self.rows.outcome)

    @property
    def outcome_range(self) -> tuple[float, float]:
        """Smallest and largest outcome."""
        return float(self.rows.outcome.min()), float(self.rows.outcome.max())

    def reduce(self, function: Callable[..., Sums], *arguments: Any) -> Sums:
        """Return what a function makes of these units and the arguments.

        The function must be additive: of disjoint sets of units it makes arrays that add up to
        those of all units together. Then it can go to rows elsewhere, see `PartitionedCells`.
        """
        return function(self, *arguments)

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
        support: ScoreSupport | None = None,
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
        support : ScoreSupport, optional
            Where scores are placed, if that is agreed with rows elsewhere; `n_bins` and `edge` are
            then not used.

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
        if support is None:
            support = score_support(ScorePieces([score]), n_bins=n_bins, edge=edge)
        shape = (size, len(support.values))
        cell = _cell_numbers(support.position(score), code, *shape)
        counts = sum_by(cell, repeats, shape[0] * shape[1]).round().astype(np.int64)
        if cluster is None:
            rows = UnitRows.independent(cell, outcome, weight=w, repeats=repeats)
        else:
            rows = UnitRows.clustered(
                np.asarray(cluster), unit, code, cell, outcome, weight=w, repeats=repeats
            )
        mass, total = rows.sums(shape[0] * shape[1])
        return cls(
            support=support.values,
            rows=rows,
            mass=mass.reshape(shape),
            total=total.reshape(shape),
            counts=counts.reshape(shape),
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
        number = (place[:, None] * size + np.arange(size)).astype(self.rows.cell.dtype)
        cell = number.ravel()[self.rows.cell]
        kept = cell >= 0
        return replace(
            self,
            rows=self.rows.keep(kept, cell[kept]),
            mass=self.mass[chosen],
            total=self.total[chosen],
            counts=self.counts[chosen],
        )

    def above(self, threshold: float) -> "ScoreCells":
        """Return the rows with a score of at least `threshold`; units without any are dropped."""
        first = int(np.searchsorted(self.support, threshold, side="left"))
        size = len(self.support)
        kept = self.rows.cell % size >= first
        group, position = np.divmod(self.rows.cell[kept], size)
        rows = self.rows.keep(
            kept, (group * (size - first) + position - first).astype(self.rows.cell.dtype)
        )
        return replace(
            self,
            support=self.support[first:],
            rows=rows,
            mass=self.mass[:, first:],
            total=self.total[:, first:],
            counts=self.counts[:, first:],
        )

    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums of weights and of weighted outcomes, each of shape (n_groups, b)."""
        return self.mass, self.total

    def merged(self, place: IntArray, support: FloatArray) -> "ScoreCells":
        """Return the same rows on fewer scores; `place` is the new position of each old one."""
        shape = (self.n_groups, len(support))
        number = (np.arange(self.n_groups)[:, None] * shape[1] + place).ravel()
        cell = number.astype(self.rows.cell.dtype)[self.rows.cell]
        rows = replace(self.rows, cell=cell)
        if not self.clustered:
            rows = UnitRows.independent(
                cell, self.rows.outcome, weight=self.rows.unit_weight, repeats=self.rows.copies
            )
        mass, total, counts = (
            sum_by(number, sums.ravel(), shape[0] * shape[1]).reshape(shape)
            for sums in (self.mass, self.total, self.counts.astype(np.float64))
        )
        whole = counts.round().astype(np.int64)
        return replace(self, support=support, rows=rows, mass=mass, total=total, counts=whole)

    def units_in_group(self) -> IntArray:
        """Return the number of units with a row in each group."""
        total = np.zeros(self.n_groups)
        for block in self.rows.blocks():
            first, last = (end // len(self.support) for end in (block.cell.min(), block.cell.max()))
            if first == last:
                total[first] += block.copies.sum()
                continue
            group, size = block.cell // len(self.support), np.diff(block.start)
            present = np.zeros((self.n_groups, len(size)), dtype=bool)
            present[group, np.repeat(np.arange(len(size)), size)] = True
            total += present @ block.copies
        return total.round().astype(np.int64)

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
        first = (group * (k + 1) + np.tile(opened, self.n_groups)) * (k + 1)
        alone = first + closed
        histogram = np.zeros(self.n_groups * (k + 1) ** 2)
        for block in self.rows.blocks(len(histogram)):
            if not self.clustered:
                rows = np.repeat(block.copies, np.diff(block.start))
                histogram += np.bincount(alone[block.cell], rows, minlength=len(histogram))
                continue
            histogram += np.bincount(alone[block.cell], minlength=len(histogram))
            same = group[block.cell[:-1]] == group[block.cell[1:]]
            same[block.start[1:-1] - 1] = False
            pair = np.flatnonzero(same)
            code = first[block.cell[pair]] + closed[block.cell[pair + 1]]
            histogram -= np.bincount(code, minlength=len(histogram))
        return _window_counts(histogram, self.n_groups, k)


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
    values = _InfluenceValues(cells, blocks)
    for block in cells.rows.blocks():
        psi, columns = values.of(block)
        square = psi * psi
        # Copies are independent: a unit that stands for c enters sums of squares c times.
        times = 1.0 if cells.clustered else block.copies[:, None]
        covariance[np.ix_(columns, columns)] += psi.T @ (psi if cells.clustered else psi * times)
        fourth[columns] += np.einsum("ij,ij->j", square * times, square)
    return InfluenceMoments(covariance, fourth)


class _InfluenceValues:
    r"""Influence values of units: sparse products of their rows with what a cell's row adds.

    A row adds :math:`\omega (y - \mu) c`. Of outcomes 0 and 1 that is one product, with a table
    that has a line for each cell and outcome; of real outcomes it is two. The rows of a group
    reach its own statistics only, and units come ordered by group: most blocks need few columns.
    """

    def __init__(self, cells: ScoreCells, blocks: Sequence[LinearBlock]) -> None:
        self.binary = cells.binary
        self.size = len(cells.support)
        self.coefficient = np.concatenate([block.coefficient for block in blocks], axis=1)
        centre = np.concatenate([_columns(block) for block in blocks], axis=1)
        self.shift = -self.coefficient * centre
        whole = slice(0, len(centre))
        self.whole = self._tables(whole), whole.start, np.arange(centre.shape[1])
        self.of_group = []
        for k in range(cells.n_groups):
            own = slice(k * self.size, (k + 1) * self.size)
            columns = np.flatnonzero(np.any(self.coefficient[own] != 0.0, axis=0))
            self.of_group.append((self._tables(own, columns), own.start, columns))

    def _tables(self, own: slice, columns: IntArray | slice = slice(None)) -> list[FloatArray]:
        """Return what a row adds by itself and times its outcome, as rows that lie together."""
        shift, slope = self.shift[own, columns], self.coefficient[own, columns]
        if self.binary:
            return [np.concatenate([shift, shift + slope]).copy()]
        return [np.ascontiguousarray(shift), np.ascontiguousarray(slope)]

    def of(self, block: UnitBlock) -> tuple[FloatArray, IntArray]:
        """Return the statistics that the units of a block reach, and which they are."""
        ends = (block.cell.min() // self.size, block.cell.max() // self.size)
        tables, first, columns = self.of_group[ends[0]] if ends[0] == ends[1] else self.whole
        cell = block.cell - block.cell.dtype.type(first)
        if self.binary:
            lines = len(tables[0]) // 2
            cell = cell + index_type(2 * lines)(lines) * block.outcome.astype(bool)
            return _product(block.weight, cell, block.start, tables[0]), columns
        psi = _product(block.weight, cell, block.start, tables[0])
        psi += _product(block.weight * block.outcome, cell, block.start, tables[1])
        return psi, columns


def _product(values: FloatArray, cell: IntArray, start: IntArray, table: FloatArray) -> FloatArray:
    units = sparse.csr_array((values, cell, start), shape=(len(start) - 1, len(table)))
    return np.asarray(units @ table)


def _columns(block: LinearBlock) -> FloatArray:
    centre = block.centre if block.centre.ndim == 2 else block.centre[:, None]
    return np.broadcast_to(centre, block.coefficient.shape)


class CellCounts(NamedTuple):
    """Rows of each cell, and sums of their squared weights times powers of the outcome."""

    rows: FloatArray
    square: FloatArray
    square_total: FloatArray
    square_square: FloatArray


def cell_counts(cells: ScoreCells) -> CellCounts:
    """Count the rows of each cell, and sum squared weights times 1, Y and Y squared.

    With clusters a row may stand for several, and weights are taken as they are.
    """
    shape = (cells.n_groups, len(cells.support))
    size = shape[0] * shape[1]
    found = np.zeros((4, size))
    for block in cells.rows.blocks(size):
        copies = np.repeat(block.copies, np.diff(block.start))
        square = copies * block.weight ** (1 if cells.clustered else 2)
        for k, value in enumerate(
            (copies, square, square * block.outcome, square * block.outcome**2)
        ):
            found[k] += np.bincount(block.cell, weights=value, minlength=size)
    return CellCounts(*(part.reshape(shape) for part in found))


MOST_SCORES = 512
"""Distinct scores, in steps of equal share of the groups' mixture, that smoothing tells apart."""


def mixture(mass: FloatArray) -> FloatArray:
    """Return the share of each score in the equal mixture of the groups: a minority has its part.

    Groups without weight are left out.
    """
    weight = mass.sum(axis=1)
    known = weight > 0.0
    return np.asarray((mass[known] / weight[known, None]).mean(axis=0))


def mid_ranks(mass: FloatArray) -> FloatArray:
    """Return the mid-rank of each score in the equal mixture of the groups, from 0 to 1."""
    share = mixture(mass)
    return np.asarray(np.cumsum(share) - 0.5 * share)


def coarse(cells: "AnyScoreCells") -> "AnyScoreCells":
    """Merge neighbouring scores until at most 512 are left, each with its share of the mixture."""
    if len(cells.support) <= MOST_SCORES:
        return cells
    mass, _ = cells.sums()
    step = np.minimum((mid_ranks(mass) * MOST_SCORES).astype(np.int64), MOST_SCORES - 1)
    place = np.unique(step, return_inverse=True)[1]
    weight = mass.sum(axis=0)
    # Scores without weight have no say in where their step lies.
    weight = np.where(np.bincount(place, weight)[place] > 0.0, weight, 1.0)
    centre = np.bincount(place, weight * cells.support) / np.bincount(place, weight)
    return cells.merged(place, centre)


def weighted_quantile(values: FloatArray, mass: FloatArray, levels: FloatArray) -> FloatArray:
    """Return the smallest of the ascending `values` whose share of `mass` reaches each level."""
    share = np.cumsum(mass) / mass.sum()
    at = np.searchsorted(share, levels - 1e-12, side="left")
    return values[np.minimum(at, len(values) - 1)]


def _cell_numbers(position: IntArray, group: IntArray, n_groups: int, size: int) -> IntArray:
    """Return ``group * size + position``."""
    cell = position.astype(index_type(n_groups * size), copy=False)
    for rows in pieces(len(position)):
        cell[rows] += (group[rows] * size).astype(cell.dtype)
    return cell


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


Parts: TypeAlias = Callable[
    [Callable[[ScoreCells], tuple[AnyArray, ...]]], Sequence[tuple[FloatArray, ...]]
]
"""Applies a function to the cells of each part; returns its arrays, flat, in the order of parts."""


class Recipe(Generic[Made]):
    """Something large that is made from small inputs, and made again wherever it is sent.

    Kernel coefficients of many scores at many points would take longer to send than to compute.
    """

    def __init__(self, make: Callable[..., Made], *inputs: Any) -> None:
        self._make, self._inputs = make, inputs

    @cached_property
    def made(self) -> Made:
        """The thing itself."""
        return self._make(*self._inputs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the inputs alone."""
        return Recipe, (self._make, *self._inputs)


def fitted_moments(cells: ScoreCells, fit: Recipe[Any]) -> InfluenceMoments:
    """Sum the products of the influence values of a fit, its `blocks`, over units."""
    return influence_moments(cells, fit.made.blocks)


class _Summary(NamedTuple):
    mass: FloatArray
    total: FloatArray
    counts: IntArray
    units_in_group: IntArray
    n_units: IntArray
    not_binary: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedCells:
    """What `ScoreCells` offers, of rows in several parts.

    Parameters
    ----------
    parts : callable
        Applies a function to the `ScoreCells` of every part that has rows.
    none : ScoreCells
        The same cells without rows: groups, scores, and the shape of every answer.
    summary : tuple of arrays
        Sums by (group, score), rows and units.
    outcome_range : (float, float)
        Smallest and largest outcome.
    """

    parts: Parts
    none: ScoreCells
    summary: _Summary
    outcome_range: tuple[float, float]

    @classmethod
    def of(cls, parts: Parts, none: ScoreCells) -> "PartitionedCells":
        """Sum up the parts; a part may have no row left."""
        found = parts(_described)
        zero = _described(none)
        return cls(
            parts=parts,
            none=none,
            summary=_Summary(*_added(zero[:-1], found)),
            outcome_range=(
                min((float(part[-1][0]) for part in found), default=np.inf),
                max((float(part[-1][1]) for part in found), default=-np.inf),
            ),
        )

    @property
    def support(self) -> FloatArray:
        """Scores of the cells."""
        return self.none.support

    @property
    def clustered(self) -> bool:
        """Whether units can have several rows."""
        return self.none.clustered

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.none.n_groups

    @property
    def counts(self) -> IntArray:
        """Rows at each score, of shape (n_groups, b)."""
        return self.summary.counts

    @property
    def n_rows(self) -> IntArray:
        """Rows in each group."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def n_units(self) -> int:
        """Independent units."""
        return int(self.summary.n_units)

    @property
    def binary(self) -> bool:
        """Whether every outcome is 0 or 1."""
        return not self.summary.not_binary

    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums of weights and of weighted outcomes, each of shape (n_groups, b)."""
        return self.summary.mass, self.summary.total

    def units_in_group(self) -> IntArray:
        """Return the number of units with a row in each group."""
        return self.summary.units_in_group

    def units_within(self, low: FloatArray, high: FloatArray) -> IntArray:
        """Count the units that have a score in each window; shape (n_groups, len(low))."""
        return self.reduce(ScoreCells.units_within, low, high)

    def reduce(self, function: Callable[..., Sums], *arguments: Any) -> Sums:
        """Apply an additive function to every part, and add up what it makes of them."""
        zero: Any = function(self.none, *arguments)
        found = self.parts(partial(_arrays, function, arguments))
        several = isinstance(zero, tuple)
        added = _added(zero if several else (zero,), found)
        total: Sums = type(zero)(*added) if several else added[0]
        return total

    def select(self, groups: Sequence[int]) -> "PartitionedCells":
        """Return the rows of some groups, renumbered in the order given; weights are unchanged."""
        if list(groups) == list(range(self.n_groups)):
            return self
        return self._narrowed(partial(_selected, list(groups)))

    def merged(self, place: IntArray, support: FloatArray) -> "PartitionedCells":
        """Return the same rows on fewer scores; `place` is the new position of each old one."""
        return self._narrowed(partial(_merged, place, support))

    def above(self, threshold: float) -> "PartitionedCells":
        """Return the rows with a score of at least `threshold`; units without any are dropped."""
        return self._narrowed(partial(_above, threshold))

    def _narrowed(self, narrow: Callable[[ScoreCells], ScoreCells]) -> "PartitionedCells":
        parts = self.parts
        return PartitionedCells.of(
            lambda function: parts(partial(_composed, function, narrow)), narrow(self.none)
        )


AnyScoreCells: TypeAlias = ScoreCells | PartitionedCells
"""Rows by group and score, wherever they are."""


def _described(cells: ScoreCells) -> tuple[AnyArray, ...]:
    """Return the fields of the summary, then the range of outcomes."""
    outcome = cells.rows.outcome.astype(np.float64)
    return (
        *cells.sums(),
        cells.counts,
        cells.units_in_group(),
        np.array(cells.n_units),
        np.array(int(not cells.binary)),
        np.array([outcome.min(initial=np.inf), outcome.max(initial=-np.inf)]),
    )


def _arrays(
    function: Callable[..., Any], arguments: tuple[Any, ...], cells: ScoreCells
) -> tuple[AnyArray, ...]:
    found = function(cells, *arguments)
    return found if isinstance(found, tuple) else (found,)


def _added(zero: tuple[AnyArray, ...], parts: Sequence[tuple[FloatArray, ...]]) -> list[Any]:
    """Add up the arrays of the parts, which come flat, in the shapes of `zero`."""
    return [
        sum((part[k] for part in parts), np.zeros(array.size))
        .reshape(array.shape)
        .astype(array.dtype)
        for k, array in enumerate(zero)
    ]


def _selected(groups: list[int], cells: ScoreCells) -> ScoreCells:
    return cells.select(groups)


def _merged(place: IntArray, support: FloatArray, cells: ScoreCells) -> ScoreCells:
    return cells.merged(place, support)


def _above(threshold: float, cells: ScoreCells) -> ScoreCells:
    return cells.above(threshold)


def _composed(
    function: Callable[[ScoreCells], tuple[AnyArray, ...]],
    narrow: Callable[[ScoreCells], ScoreCells],
    cells: ScoreCells,
) -> tuple[AnyArray, ...]:
    return function(narrow(cells))
