"""Run a lazy query; hand its columns over as numpy arrays."""

from typing import Any

import narwhals as nw
import numpy as np

from equipoise._typing import AnyArray
from equipoise.exceptions import DataError

__all__ = ["collect", "engine_error", "fetch", "from_engine"]


def collect(frame: "nw.LazyFrame[Any]") -> dict[str, AnyArray]:
    """Run a query; return its columns as numpy arrays."""
    native = fetch(frame).to_native()
    return {name: _array(native.column(name)) for name in native.column_names}


def fetch(frame: "nw.LazyFrame[Any]") -> "nw.DataFrame[Any]":
    """Run a query; return its rows as an Arrow table in a narwhals `DataFrame`."""
    try:
        return frame.collect(backend="pyarrow")
    except Exception as error:
        if not from_engine(error):
            raise
        raise engine_error(error) from error


def from_engine(error: Exception) -> bool:
    """Say whether an error is DuckDB's or Spark's, by module, so that neither is imported."""
    return type(error).__module__.split(".")[0] in ("duckdb", "_duckdb", "pyspark", "py4j")


def engine_error(error: Exception) -> DataError:
    """Return the first line of an engine's error as a `DataError`."""
    message = str(error).strip().splitlines()[0]
    return DataError(f"The engine could not run the query: {message}")


def _array(column: Any) -> AnyArray:
    import pyarrow as pa

    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        return _numbers(column.fill_null(float("nan")) if column.null_count else column)
    if pa.types.is_integer(column.type) and not column.null_count:
        return _numbers(column)
    coded = _whole(column).dictionary_encode("encode")
    levels = np.empty(len(coded.dictionary), dtype=object)
    levels[:] = coded.dictionary.to_pylist()
    return np.asarray(levels[_numbers(coded.indices)])


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
