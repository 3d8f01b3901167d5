"""Scores and outcomes of a table, arranged for the kernel tests, with the names of their groups.

Scores of rows on a cluster are asked for by queries: counts and sums come back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._checks import SMALLEST, check_finite, check_number, check_option, quoted, shown
from equipoise._typing import AnyArray, FloatArray, ParityUnit
from equipoise.audits.scores.questions import Bars, Distribution
from equipoise.audits.words import dropped_notes
from equipoise.data.columns import Needs
from equipoise.data.groups import cell_names, matching_cells
from equipoise.data.query import (
    CLUSTER,
    COUNT,
    WEIGHT,
    CellRows,
    NarrowRows,
    RowReader,
    collect,
    fetch,
)
from equipoise.data.spark import ArrangedParts
from equipoise.data.table import Quantity, Rows, Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.results.finding import Note
from equipoise.stats.scores.cells import AnyScoreCells, PartitionedCells, ScoreCells
from equipoise.stats.scores.histogram import score_histogram
from equipoise.stats.scores.rows import ScoreBins, ScoreSupport, is_binary, score_support, sum_by

__all__ = [
    "ScoreQueries",
    "ScoreSample",
    "composite",
    "pairs_of",
    "pairs_of_names",
    "parity_bandwidth",
    "parity_unit",
    "score_rows",
    "score_sample",
]


PLACE, ROWS, TOTAL = "__eq_place", "__eq_rows", "__eq_total"


class ScoreQueries:
    """Scores of rows, and the rows themselves where those that are alike can be counted.

    Independent rows without weights, and with outcomes 0 and 1, are alike when their groups,
    outcomes and places among the scores agree: one query counts them all.

    Parameters
    ----------
    narrow : NarrowRows
        With an outcome and a score.
    """

    def __init__(self, narrow: NarrowRows) -> None:
        self._frame, self._reader = narrow.frame, narrow.reader
        self._outcome, self._score = narrow.reader.quantities
        outcome, score = nw.col(self._outcome), nw.col(self._score)
        real = (outcome != 0.0) & (outcome != 1.0)
        found = collect(
            self._frame.select(
                n=nw.len(), low=score.min(), high=score.max(), real=real.cast(nw.Int32).sum()
            )
        )
        self._extent = int(found["n"][0]), float(found["low"][0]), float(found["high"][0])
        dependent = {CLUSTER, WEIGHT} & {*narrow.reader.multipliers}
        self.countable = not dependent and not found["real"][0]
        self._alike: CellRows | None = None

    def extent(self) -> tuple[int, float, float]:
        """Return how many there are, the lowest and the highest."""
        return self._extent

    def distinct(self) -> FloatArray:
        """Return those that differ, ascending."""
        place, _, _ = self._sums(nw.col(self._score))
        return np.unique(place)

    def counts(self, bins: ScoreBins) -> FloatArray:
        """Return the rows in each bin."""
        placed = self._frame.select(_number(bins, nw.col(self._score)).alias(PLACE))
        found = collect(placed.group_by(PLACE).agg(nw.len().alias(ROWS)))
        return sum_by(found[PLACE].astype(np.int64), found[ROWS], bins.size)

    def sums(self, bins: ScoreBins) -> tuple[FloatArray, FloatArray]:
        """Return the rows in each bin and the sums of their scores."""
        place, rows, total = self._sums(_number(bins, nw.col(self._score)))
        code = place.astype(np.int64)
        # Sums are added in an order of their own, whatever the engine's.
        order = np.lexsort((total, rows, code))
        return sum_by(code, rows, bins.size), sum_by(code[order], total[order], bins.size)

    def _sums(self, place: nw.Expr) -> tuple[AnyArray, FloatArray, FloatArray]:
        """Return places, rows and sums of scores; keep the rows that are alike, if they can be."""
        multipliers = [COUNT] if COUNT in self._reader.multipliers else []
        by = [*self._reader.keys, self._outcome] if self.countable else []
        query = (
            self._frame.select(*by, *multipliers, self._score, place.alias(PLACE))
            .group_by(*by, PLACE)
            .agg(
                nw.len().cast(nw.Float64).alias(ROWS),
                nw.col(self._score).sum().alias(TOTAL),
                *[nw.col(name).cast(nw.Float64).sum().alias(name) for name in multipliers],
            )
        )
        if not self.countable:
            found = collect(query)
            return found[PLACE], found[ROWS], found[TOTAL]
        table = fetch(query).to_native().combine_chunks()
        reader = replace(
            self._reader,
            quantities=(self._outcome, PLACE, ROWS, TOTAL),
            multipliers=tuple(multipliers),
        )
        self._alike = reader.rows(table.to_batches()[0])
        _, places, rows, total = self._alike.values
        return places, rows, total

    def counted(self, support: ScoreSupport) -> dict[str, Any]:
        """Return what `ScoreCells.from_rows` takes, one row for all that are alike.

        Parameters
        ----------
        support : ScoreSupport
            What `score_support` made of these scores.

        Returns
        -------
        dict of arrays
        """
        if self._alike is None:
            raise TypeError("rows of this kind are not alike")
        outcome, place, rows, _ = self._alike.values
        if support.place is not None:
            place = support.values[support.place[place.astype(np.int64)]]
        return {
            "y_true": outcome,
            "y_score": place,
            "group": self._alike.cell,
            "count": rows if self._alike.count is None else self._alike.count,
        }


def _number(bins: ScoreBins, score: nw.Expr) -> nw.Expr:
    """Write `ScoreBins.number` as an expression, of the same operations on doubles."""
    place = (score - bins.origin) / bins.width
    first, last = bins.first, bins.last
    number = (
        nw.when(place < first)
        .then(nw.lit(first))
        .otherwise(nw.when(place > last).then(nw.lit(last)).otherwise(place))
        .floor()
    )
    if last < 0.0:
        number = nw.when(place >= 0.0).then(nw.lit(last + 1.0)).otherwise(number)
    if first >= 0.0:
        number = nw.when(place < 0.0).then(nw.lit(first - 1.0)).otherwise(number)
    return (number - (first - 1.0)).cast(nw.Int32)


EXACT_ROWS = 200_000
"""Up to this many rows scores are exact; beyond, they are means of narrow bins."""
N_BINS = 4096
MAX_GROUPS = 100
"""Of more groups not all pairs are compared; a reference must be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSample:
    """Rows by group and score.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        The rows; group k is ``names[k]``.
    names : tuple of str
        Groups, written ``race=Black & sex=Female``.
    reader : RowReader
        Columns and labels of the groups.
    notes : tuple of Note
        What was done to the rows.
    """

    cells: AnyScoreCells
    names: tuple[str, ...]
    reader: RowReader
    notes: tuple[Note, ...]

    @property
    def n(self) -> int:
        """Rows used."""
        return int(self.cells.n_rows.sum())

    def distribution(self, *, edge: float | None = None) -> Distribution:
        """Return the rows of each group by score; a bin begins at `edge`."""
        found = score_histogram(self.cells, edge=edge)
        return Distribution(
            low=found.low.tolist(),
            high=found.high.tolist(),
            groups=[
                Bars(group=name, rows=rows.tolist())
                for name, rows in zip(self.names, found.rows, strict=True)
            ],
        )


def parity_unit(table: Table, unit: ParityUnit | None) -> ParityUnit:
    """Return what counts alike; with clusters it must be said."""
    if unit is not None:
        check_option("unit", unit, ParityUnit)
        if unit == "cluster" and table.roles.cluster is None:
            raise InvalidParameterError(
                "`unit='cluster'` needs clusters; pass `cluster` to `Audit`, or leave `unit` out."
            )
        return unit
    if table.roles.cluster is not None:
        raise InvalidParameterError(
            f"`unit` must be said because rows repeat {table.roles.cluster!r}: 'cluster' weighs"
            " every cluster alike (user-level parity), 'row' every row (aggregate parity). The two"
            " hypotheses differ when activity is related to the outcome."
        )
    return "row"


def parity_bandwidth(bandwidth: float | str) -> float | None:
    """Return a bandwidth given as a number, and `None` for "auto"."""
    if bandwidth == "auto":
        return None
    if isinstance(bandwidth, str):
        raise InvalidParameterError(f"`bandwidth` must be 'auto' or a number; got {bandwidth!r}.")
    return check_number("bandwidth", bandwidth, low=0.0)


def _objectives(name: str, columns: object) -> list[str]:
    """Return the names of columns as a list."""
    if columns is None:
        return []
    if isinstance(columns, str):
        return [columns]
    if not isinstance(columns, Sequence):
        raise InvalidParameterError(
            f"`{name}` must be a list of columns, one for each objective; got {columns!r}."
        )
    return list(columns)


def composite(
    table: Table,
    y_true: Sequence[str] | None,
    y_score: Sequence[str] | None,
    weights: Sequence[float] | None,
) -> Table:
    """Return the table with weighted sums of outcomes and of scores in place of single ones.

    Parameters
    ----------
    table : Table
        As given.
    y_true, y_score : sequence of str, optional
        Columns of the outcomes and of their scores, one score for each outcome; without them the
        table is returned as it is.
    weights : sequence of float, optional
        Of the sums; by default 1 each.

    Returns
    -------
    Table
        A view, still lazy; a row in which one part is missing has no sum.
    """
    if y_true is None and y_score is None:
        if weights is not None:
            raise InvalidParameterError("`weights` needs the columns `y_true` and `y_score`.")
        return table
    outcomes, scores = _objectives("y_true", y_true), _objectives("y_score", y_score)
    w = check_finite("weights", [1.0] * len(outcomes) if weights is None else weights, ndim=1)
    if not len(outcomes) == len(scores) == len(w) or not len(outcomes):
        raise InvalidParameterError(
            "`y_true`, `y_score` and `weights` must have one entry for each objective; got"
            f" {len(outcomes)}, {len(scores)} and {len(w)}."
        )
    for column in (*outcomes, *scores):
        table.check_column(column)
        if not table.schema[column].is_numeric():
            raise DataError(
                f"the columns of a sum must be numeric; {column!r} is {table.schema[column]}."
            )
    named = {_sum_name(columns, w): _weighted_sum(columns, w) for columns in (outcomes, scores)}
    frame = table.frame.with_columns(**named)
    first, second = named
    roles = replace(table.roles.without_file(), y_true=first, y_score=second)
    return Table(frame.to_native(), roles)


def _sum_name(columns: Sequence[str], weights: FloatArray) -> str:
    return " + ".join(
        column if weight == 1.0 else f"{weight:g} {column}"
        for column, weight in zip(columns, weights.tolist(), strict=True)
    )


def _weighted_sum(columns: Sequence[str], weights: FloatArray) -> nw.Expr:
    parts = [
        nw.col(column).cast(nw.Float64) * weight
        for column, weight in zip(columns, weights.tolist(), strict=True)
    ]
    total: nw.Expr = sum(parts[1:], parts[0])
    return total


def score_rows(table: Table, outcome: Quantity, needs: Needs) -> Rows:
    """Declare the rows of a question about scores: the outcome and the score of each.

    Parameters
    ----------
    table : Table
        With the roles `y_score` and those of `needs`.
    outcome : Quantity
        The outcome of a row.
    needs : mapping of str to {"label", "number"}
        Roles that are used.

    Returns
    -------
    Rows
    """
    if not table.roles.group:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    score = Quantity("y_score", None, table.y_score)
    return Rows(table.sums([outcome, score], needs, order=1))


@contextmanager
def score_sample(
    narrow: NarrowRows, unit: ParityUnit, *, edge: float | None = None
) -> Iterator[ScoreSample]:
    """Arrange scores and outcomes, for a `with` block; of more than 200,000 rows scores are binned.

    Rows of a Spark DataFrame are counted there; those that cannot be, with clusters, weights or
    real outcomes, stay on the cluster, which keeps them in memory during the block.

    Parameters
    ----------
    narrow : NarrowRows
        The rows that `score_rows` declares.
    unit : {"cluster", "row"}
        What counts alike.
    edge : float, optional
        A score at which a bin must begin.

    Yields
    ------
    ScoreSample
    """
    reader = narrow.reader
    if not narrow.frame.implementation.is_pyspark():
        yield _sample(*_local(narrow, unit, edge), reader)
        return
    scores = ScoreQueries(narrow)
    support = score_support(scores, n_bins=N_BINS, edge=edge, exact_rows=EXACT_ROWS)
    binned = support.bins is not None
    if scores.countable:
        # The places of the rows are known: their scores are those of the support.
        exact = ScoreSupport(values=support.values)
        n_groups = len(reader.labels[0])
        cells = ScoreCells.from_rows(
            **scores.counted(support), n_groups=n_groups, unit=unit, support=exact
        )
        yield _sample(cells, binned, reader)
        return
    # Sorted into units and bins once; every statistic then starts from there.
    arrange = partial(_arranged, unit=unit, support=support)
    with ArrangedParts(narrow, arrange) as parts:
        yield _sample(_partitioned(parts, arrange, reader), binned, reader)


def _local(narrow: NarrowRows, unit: ParityUnit, edge: float | None) -> tuple[ScoreCells, bool]:
    """Read the rows; return them, and whether scores are binned."""
    joined = _joined(narrow)
    binned = len(joined["group"]) > EXACT_ROWS
    n_groups = len(narrow.reader.labels[0])
    n_bins = N_BINS if binned else None
    cells = ScoreCells.from_rows(**joined, n_groups=n_groups, unit=unit, n_bins=n_bins, edge=edge)
    return cells, binned


def _joined(narrow: NarrowRows) -> dict[str, Any]:
    """Read the rows, each batch into its place: ten million are held once."""
    columns: dict[str, Any] = {}
    end = 0
    for rows in narrow.batches():
        first, end = end, end + len(rows.cell)
        for name, values in _columns(rows).items():
            column = columns.get(name, np.empty(0, values.dtype))
            if len(column) < end:
                longer = np.empty(max(end, narrow.n_rows), column.dtype)
                longer[:first] = column[:first]
                column = columns[name] = longer
            column[first:end] = values
    return {name: column[:end] for name, column in columns.items()}


def _partitioned(
    parts: ArrangedParts, arrange: Callable[[CellRows], tuple[AnyArray, ...]], reader: RowReader
) -> PartitionedCells:
    """Return the rows where they are."""
    clustered = CLUSTER in reader.multipliers
    none = CellRows(
        columns=reader.columns,
        labels=reader.labels,
        values=(np.empty(0), np.empty(0)),
        cell=np.empty(0, dtype=np.int64),
        unit=np.empty(0, dtype=np.int64) if clustered else None,
    )
    return PartitionedCells.of(
        lambda function: parts.map(partial(_of_cells, function)),
        ScoreCells.from_arrays(arrange(none)),
    )


def _columns(rows: CellRows) -> dict[str, Any]:
    """Return the columns of rows by their names in `ScoreCells.from_rows`."""
    outcome, score = rows.values
    columns = {
        "y_true": outcome,
        "y_score": score,
        "group": rows.cell.astype(np.int32),
        "cluster": rows.unit,
        "weight": rows.weight,
        "count": rows.count,
    }
    return {name: values for name, values in columns.items() if values is not None}


def _of_cells(
    function: Callable[[ScoreCells], tuple[AnyArray, ...]], arrays: tuple[AnyArray, ...]
) -> tuple[AnyArray, ...]:
    return function(ScoreCells.from_arrays(arrays))


def _arranged(rows: CellRows, *, unit: ParityUnit, support: ScoreSupport) -> tuple[AnyArray, ...]:
    columns = _columns(rows)
    if rows.weight is not None or not is_binary(rows.values[0]):
        # In a fixed order, sums are the same in every run, to the last digit; counts always are.
        order = np.lexsort([*columns.values()])
        columns = {name: values[order] for name, values in columns.items()}
    n_groups = len(rows.labels[0])
    cells = ScoreCells.from_rows(**columns, n_groups=n_groups, unit=unit, support=support)
    return cells.to_arrays()


def _sample(cells: AnyScoreCells, binned: bool, reader: RowReader) -> ScoreSample:
    if 0.0 < np.abs(cells.support).max() < SMALLEST:
        raise DataError(
            f"Scores must not all be below {SMALLEST:g} in size, where squares vanish. Rescale"
            " them."
        )
    notes = [*dropped_notes(reader.dropped)]
    if binned:
        notes.append(
            Note(
                code="binned-scores",
                message=f"Scores were rounded to the means of {N_BINS} narrow bins.",
            )
        )
    return ScoreSample(
        cells=cells,
        names=cell_names(reader.columns, reader.labels),
        reader=reader,
        notes=tuple(notes),
    )


def pairs_of(
    sample: ScoreSample, reference: Mapping[str, object] | None
) -> tuple[tuple[int, int], ...]:
    """Return the pairs (group, reference) to compare: all, or each with one reference."""
    return pairs_of_names(sample.names, sample.reader, reference)


def pairs_of_names(
    groups: Sequence[str], reader: RowReader, reference: Mapping[str, object] | None
) -> tuple[tuple[int, int], ...]:
    """Return the pairs (group, reference) of named groups: all, or each with one reference."""
    size = len(groups)
    if size < 2:
        raise InvalidParameterError(
            f"parity compares groups; the table has one, {shown(groups[0])}."
        )
    if reference is None:
        if size > MAX_GROUPS:
            raise InvalidParameterError(
                f"{size} groups make {size * (size - 1) // 2} pairs; all pairs are compared of at"
                f" most {MAX_GROUPS} groups. Pass `reference`, or merge groups."
            )
        return tuple((b, a) for a, b in combinations(range(size), 2))
    if not isinstance(reference, Mapping):
        raise InvalidParameterError(
            f'`reference` must name a group, {{"race": "White"}}; got {reference!r}.'
        )
    chosen = np.flatnonzero(matching_cells(reader, dict(reference)))
    if len(chosen) > 1:
        names = quoted(groups[int(k)] for k in chosen)
        raise InvalidParameterError(
            f"`reference` must select one group; {dict(reference)} selects {names}."
        )
    return tuple((k, int(chosen[0])) for k in range(size) if k != chosen[0])
