"""Run a lazy query: its columns as numpy arrays at once, or its rows in batches.

Whatever is sent to an engine goes through here, and can be recorded.
"""

import io
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._names import printable
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.data.groups import label_of, unknown_group
from equipoise.exceptions import (
    DataError,
    EquipoiseError,
    InvalidParameterError,
    ResourceError,
)

__all__ = [
    "CLUSTER",
    "CellRows",
    "NarrowRows",
    "RowReader",
    "Sent",
    "collect",
    "engine_error",
    "fetch",
    "from_engine",
    "listed",
    "reason",
    "record",
    "recorded",
]

CLUSTER, WEIGHT, COUNT = "__eq_cluster", "__eq_weight", "__eq_count"
CREATE = "CREATE OR REPLACE TEMP TABLE"
BATCH_ROWS = 1_000_000

LONGEST_REASON = 500
"""Characters of an engine's message that are passed on."""

ROW_LIMIT = 5_000_000
"""Rows that leave a database at most; ``EQUIPOISE_ROW_LIMIT`` sets another number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A query that was sent to an engine.

    Parameters
    ----------
    sql : str
        Its text; for Spark the formatted plan.
    returned : int
        Rows that came back.
    columns : int
        How many columns they have.
    rows : bool
        Whether they are rows of a table that left its database, not sums.
    """

    sql: str
    returned: int = 0
    columns: int = 0
    rows: bool = False


_record: "ContextVar[list[Sent] | None]" = ContextVar("_record", default=None)


@contextmanager
def recorded() -> Iterator[list[Sent]]:
    """Yield a list to which every query that the body sends is added."""
    sent: list[Sent] = []
    token = _record.set(sent)
    try:
        yield sent
    finally:
        _record.reset(token)


def record(
    frame: "nw.LazyFrame[Any]",
    *,
    shape: tuple[int, int] = (0, 0),
    rows: bool = False,
    table: str = "",
) -> None:
    """Write down a query that is sent, if anybody keeps a record; `table` may keep its rows."""
    sent = _record.get()
    if sent is not None:
        sql = f"{CREATE} {table} AS {_text(frame)}" if table else _text(frame)
        sent.append(Sent(sql=sql, returned=shape[0], columns=shape[1], rows=rows))


def _text(frame: "nw.LazyFrame[Any]") -> str:
    """Return a query in the language of its engine."""
    native = frame.to_native()
    if frame.implementation.is_duckdb():
        return str(native.sql_query())
    if frame.implementation.is_ibis():
        import ibis

        return str(ibis.to_sql(native))
    with redirect_stdout(io.StringIO()) as plan:
        native.explain(mode="formatted")
    return plan.getvalue()


def collect(
    frame: "nw.LazyFrame[Any]", *, keys: Collection[str] = (), rows: bool = False
) -> dict[str, AnyArray]:
    """Run a query; return its columns as numpy arrays, those of `keys` with exact values.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        The query.
    keys : collection of str
        Columns whose values must not be rounded.
    rows : bool
        As in `fetch`.

    Returns
    -------
    dict of arrays
    """
    native = fetch(frame, rows=rows).to_native()
    return {name: _array(native.column(name), exact=name in keys) for name in native.column_names}


def fetch(frame: "nw.LazyFrame[Any]", *, rows: bool = False) -> "nw.DataFrame[Any]":
    """Run a query; return its rows as an Arrow table in a narwhals `DataFrame`.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        The query.
    rows : bool
        Whether the query returns rows of the table, not sums of them: of those at most `ROW_LIMIT`
        leave a database.

    Returns
    -------
    narwhals.DataFrame
    """
    remote = frame.implementation.is_ibis()
    if remote:
        frame = _as_doubles(frame)
    if remote and rows:
        _check_departure(frame)
    try:
        found = frame.collect(backend="pyarrow")
    except Exception as error:
        # Behind Ibis stands the driver of any database, each with errors of its own.
        if not (remote or from_engine(error)):
            raise
        raise engine_error(error) from error
    record(frame, shape=found.shape, rows=remote and rows)
    return found


def _as_doubles(frame: "nw.LazyFrame[Any]") -> "nw.LazyFrame[Any]":
    """Return a query whose numbers are doubles for the database too.

    Literals of PostgreSQL are decimal, and so are their sums; a cast that Ibis thinks unnecessary
    is not sent.
    """
    zero = nw.lit(0).cast(nw.Float64)
    kinds = frame.collect_schema()
    floats = [name for name, kind in kinds.items() if kind.is_float()]
    doubles = [(nw.col(name) + zero).alias(name) for name in floats]
    return frame.with_columns(*doubles) if doubles else frame


def _check_departure(frame: "nw.LazyFrame[Any]") -> None:
    """Raise if more rows would leave a database than may."""
    limit = _row_limit()
    leaving = int(collect(frame.select(nw.len().alias("n")))["n"][0])
    if leaving > limit:
        raise DataError(
            f"This question needs rows, and {leaving} would leave the database; the limit is"
            f" {limit}. Audit an extract, for instance a parquet file of a random sample; use"
            " Spark, where rows stay; or set EQUIPOISE_ROW_LIMIT."
        )


def _row_limit() -> int:
    given = os.environ.get("EQUIPOISE_ROW_LIMIT")
    if given is None:
        return ROW_LIMIT
    if not given.isdecimal():
        raise InvalidParameterError(f"EQUIPOISE_ROW_LIMIT must be a whole number; got {given!r}.")
    return int(given)


def from_engine(error: Exception) -> bool:
    """Say whether an error is DuckDB's or Spark's, by module, so that neither is imported."""
    return type(error).__module__.split(".")[0] in ("duckdb", "_duckdb", "pyspark", "py4j")


def engine_error(error: Exception) -> EquipoiseError:
    """Return an engine's error as one of ours, with its reason in one line."""
    words = reason(error)
    if type(error).__name__ == "OutOfMemoryException" or "No space left on device" in words:
        return ResourceError(
            f"The engine has not enough memory or disk: {words} Raise EQUIPOISE_MEMORY_LIMIT, or"
            " name a folder with more room in EQUIPOISE_TEMP."
        )
    return DataError(f"The engine could not run the query: {words}")


ADVICE = re.compile(
    r"\n\s*(LINE \d+:|Possible (fixes|solutions):|Column .* is being converted|The search space"
    r"|== |JVM stacktrace:|\tat |Driver stacktrace:|See also )"
)
"""Where the message of an engine stops to say what is wrong."""


def reason(error: Exception) -> str:
    """Return what an engine says is wrong, in one line that ends with a full stop.

    The first line alone often says only where: "CSV Error on Line: 7".
    """
    told = ADVICE.split(str(error).strip(), maxsplit=1)[0].removeprefix("Invalid Input Error: ")
    words = printable(" ".join(told.split()))[:LONGEST_REASON].rstrip(". ")
    return f"{words or type(error).__name__}."


def _array(column: Any, *, exact: bool = False) -> AnyArray:
    import pyarrow as pa

    if pa.types.is_decimal(column.type) and not exact:
        column = column.cast(pa.float64())
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        return _numbers(column.fill_null(float("nan")) if column.null_count else column)
    if pa.types.is_integer(column.type) and not column.null_count:
        return _numbers(column)
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        # To Python two moments of one zone are equal when its clocks show the same, as they do in
        # the hour that autumn repeats.
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    if pa.types.is_dictionary(column.type):  # an ENUM of DuckDB
        column = column.cast(column.type.value_type)
    coded = _whole(column).dictionary_encode("encode")
    levels = np.empty(len(coded.dictionary), dtype=object)
    levels[:] = listed(coded.dictionary)
    return np.asarray(levels[_numbers(coded.indices)])


def listed(values: Any) -> list[Any]:
    """Return what an Arrow array holds as values of Python; raise if Python has none for them."""
    try:
        return list(values.to_pylist())
    except (OverflowError, ValueError) as error:
        raise DataError(
            "A date or a time is before the year 1 or after 9999, perhaps infinite, and has no"
            " name. Mend it, drop it, or cast its column to text."
        ) from error


def _numbers(column: Any) -> AnyArray:
    # `to_numpy` and the scalars of Arrow import pandas, which takes longer than most queries.
    return np.from_dlpack(_whole(column))


def _whole(column: Any) -> Any:
    """Return a column in one chunk."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        # An Arrow without rows may have no chunk at all.
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRows:
    """Complete rows in memory, with the cell and the unit of each.

    Cells are numbered as in `equipoise.moments.CellMoments`: sorted by label.

    Parameters
    ----------
    columns : tuple of str
        The group columns.
    labels : tuple of arrays of shape (K,)
        Text label of each cell in each group column.
    values : tuple of arrays of shape (n,)
        The quantities, in the order in which they were declared.
    cell : array of shape (n,)
        Cell of each row.
    unit, weight, count : array of shape (n,), optional
        Absent where those roles are.
    dropped : int
        Rows left out because a value was missing.
    """

    columns: tuple[str, ...]
    labels: tuple[AnyArray, ...]
    values: tuple[FloatArray, ...]
    cell: IntArray
    unit: IntArray | None = None
    weight: FloatArray | None = None
    count: FloatArray | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Turns record batches into `CellRows`; a group that is not known raises.

    Parameters
    ----------
    columns, keys : tuple of str
        The group columns, and their names in the batches.
    labels : tuple of arrays of shape (K,)
        Text label of each cell in each group column.
    quantities, multipliers : tuple of str
        Columns of quantities; those of cluster, weight and count as far as there are any.
    dropped : int
        Rows left out because a value was missing.
    """

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    labels: tuple[AnyArray, ...]
    quantities: tuple[str, ...]
    multipliers: tuple[str, ...]
    dropped: int

    def rows(self, batch: Any) -> CellRows:
        """Read a record batch; clusters that are not integers of 64 bits are ranked within it."""
        present: dict[str, AnyArray] = {
            name: (_units if name == CLUSTER else _plain)(batch.column(name))
            for name in self.multipliers
        }
        return CellRows(
            columns=self.columns,
            labels=self.labels,
            values=tuple(_plain(batch.column(name)) for name in self.quantities),
            cell=self._cell([batch.column(key) for key in self.keys], batch.num_rows),
            unit=present.get(CLUSTER),
            weight=present.get(WEIGHT),
            count=present.get(COUNT),
            dropped=self.dropped,
        )

    def _cell(self, keys: Sequence[Any], n: int) -> IntArray:
        """Number rows by the codes of their keys; a key is written once, not in every row."""
        cell = np.zeros(n, dtype=np.int64)
        known = np.zeros(len(self.labels[0]) if self.labels else 1, dtype=np.int64)
        for k, (key, labels) in enumerate(zip(keys, self.labels, strict=True)):
            levels = {label: place for place, label in enumerate(sorted(set(labels.tolist())))}
            coded = key.dictionary_encode()
            written = [label_of(value) for value in listed(coded.dictionary)]
            own = np.array([levels.get(label, len(levels)) for label in written], dtype=np.int64)
            index = _plain(coded.indices)
            # Renumbered after each column: products of many levels would overflow.
            known = known * (len(levels) + 1)
            known += np.array([levels[label] for label in labels.tolist()], dtype=np.int64)
            numbers, known = np.unique(known, return_inverse=True)
            cell *= len(levels) + 1
            cell += own[index]
            cell = _places(numbers, cell)
            if cell.min(initial=0) < 0:
                unknown = written[index[np.argmin(cell)]]
                raise unknown_group(self.columns[k : k + 1], (unknown,))
        return cell


def _places(known: IntArray, codes: IntArray) -> IntArray:
    """Return where each code is among known ones, which ascend; -1 if it is not there."""
    size = int(max(known[-1], codes.max(initial=0))) + 1
    if size <= max(len(codes), BATCH_ROWS):
        table = np.full(size, -1)
        table[known] = np.arange(len(known))
        return table[codes]
    found = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[found] == codes, found, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowRows:
    """Complete rows with the columns that a question needs, not yet read.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        The rows.
    reader : RowReader
        What its columns are.
    n_rows : int
        How many there are; 0 where that is not known.
    """

    frame: "nw.LazyFrame[Any]"
    reader: RowReader
    n_rows: int

    def batches(self) -> Iterator[CellRows]:
        """Read rows from DuckDB in batches: ten million never meet in one table.

        Rows of a database, which are few, come in one.

        The `unit` of a row is an integer that is the same in every batch: the cluster itself, or
        its rank where clusters are not integers of 64 bits.
        """
        frame = self.frame
        if frame.implementation.is_ibis():
            yield self.read()
            return
        if CLUSTER in self.reader.multipliers:
            cluster = nw.col(CLUSTER)
            kind = frame.collect_schema()[CLUSTER]
            if not kind.is_integer() or kind in {nw.UInt64, nw.Int128, nw.UInt128}:
                cluster = cluster.rank("dense")
            frame = frame.with_columns(cluster.cast(nw.Int64).alias(CLUSTER))
        record(frame)
        try:
            for batch in frame.to_native().to_arrow_reader(BATCH_ROWS):
                yield self.reader.rows(batch)
        except Exception as error:
            if not from_engine(error):
                raise
            raise engine_error(error) from error

    def read(self) -> CellRows:
        """Bring the rows into memory at once."""
        table = fetch(self.frame, rows=True).to_native().combine_chunks()
        return self.reader.rows(table.to_batches()[0])


def _plain(column: Any) -> AnyArray:
    import pyarrow as pa

    kind = column.type
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        # Arrow's own way to numpy imports pandas, wherever that is installed.
        return np.asarray(np.from_dlpack(column))
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _units(column: Any) -> AnyArray:
    """Return integers that tell clusters apart and do not depend on the order of rows."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_signed_integer(column.type):
        return _plain(column)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.unique(_plain(column), return_inverse=True)[1]
    coded = column.dictionary_encode()
    values = coded.dictionary
    if pa.types.is_interval(values.type):  # spans of time, which Arrow does not sort
        values = pa.array([label_of(value) for value in values.to_pylist()])
    rank = np.empty(len(values), dtype=np.int64)
    rank[_plain(compute.array_sort_indices(values))] = np.arange(len(rank))
    return np.asarray(rank[_plain(coded.indices)])
