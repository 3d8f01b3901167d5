"""Open whatever holds the rows: a frame, a relation, a dict of arrays or a path.

Local data of every kind become a DuckDB relation, through Arrow and without a copy where the frame
allows it; a Spark DataFrame stays on its cluster. The rest of the package sees one narwhals
`LazyFrame`.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from equipoise._checks import quoted
from equipoise.exceptions import DataError, InvalidParameterError

__all__ = ["open_frame"]


def open_frame(
    data: Any,
    *,
    engine: str = "duckdb",
    used: Sequence[str] = (),
    coded: Sequence[str] | None = None,
) -> "nw.LazyFrame[Any]":
    """Return the rows as a narwhals `LazyFrame` over DuckDB or Spark.

    Parameters
    ----------
    data : frame, relation, Spark DataFrame, dict of arrays, or path
        A path may be csv, tsv, parquet, compressed, a folder of parquet files or a glob.
    engine : {"duckdb", "spark"}
        What reads a path.
    used : sequence of str
        Columns that must be told apart from all others.
    coded : sequence of str, optional
        Columns of text of a csv file in which words such as ``NA`` and ``None`` mean that a value
        is missing; by default all. In others they are words, and only an empty field is missing.

    Returns
    -------
    narwhals.LazyFrame
    """
    if isinstance(data, (str, os.PathLike)):
        return _open_path(os.fspath(data), engine, coded)
    if isinstance(data, Mapping):
        return _from_arrow(_arrow_of_mapping(data), used)
    # pandas allows repeated names; narwhals would refuse them with a message of its own.
    names: Any = getattr(data, "column_names", None) or getattr(data, "columns", ())
    _check_distinct(list(names), used)
    try:
        frame = nw.from_native(data)
    except TypeError as error:
        raise InvalidParameterError(
            f"`data` must be a frame, a relation, a dict of arrays or a path;"
            f" got {type(data).__name__}."
        ) from error
    if isinstance(frame, nw.LazyFrame):
        if frame.implementation.is_duckdb() or frame.implementation.is_pyspark():
            return frame
        frame = frame.collect()
    return _from_arrow(_arrow_of_frame(frame), used)


def _open_path(path: str, engine: str, coded: Sequence[str] | None) -> "nw.LazyFrame[Any]":
    if engine == "spark":
        from equipoise.data import spark

        return _lazy(spark.read(path, coded=coded))
    from equipoise.data import duckdb

    return _lazy(duckdb.read(path, coded=coded))


def _from_arrow(table: Any, used: Sequence[str]) -> "nw.LazyFrame[Any]":
    from equipoise.data import duckdb

    table = table.drop_columns(_check_distinct(table.column_names, used))
    return _lazy(duckdb.from_arrow(table))


def _lazy(native: Any) -> "nw.LazyFrame[Any]":
    frame: nw.LazyFrame[Any] = nw.from_native(native)
    return frame


def _arrow_of_frame(frame: "nw.DataFrame[Any]") -> Any:
    import pyarrow as pa

    try:
        return frame.to_arrow()
    except (pa.ArrowException, TypeError) as error:
        raise DataError(f"The frame cannot be read: {_one_line(error)}.") from error


def _arrow_of_mapping(data: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    columns = {}
    for name, values in data.items():
        try:
            columns[str(name)] = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError) as error:
            raise DataError(f"Column {name!r} cannot be read: {_one_line(error)}.") from error
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise DataError(f"Columns must have one length; got {sizes}.")
    return pa.table(columns)


def _check_distinct(names: Sequence[Any], used: Sequence[str]) -> list[str]:
    """Return names that differ in case only, which SQL engines cannot tell apart.

    Raise if one of them is used, or if a name occurs twice.
    """
    texts = [str(name) for name in names]
    folded = Counter(text.lower() for text in texts)
    alike = sorted({text for text in texts if folded[text.lower()] > 1})
    wanted = {name.lower() for name in used if isinstance(name, str)}
    if len(set(texts)) < len(texts) or any(text.lower() in wanted for text in alike):
        raise DataError(
            f"Column names must be distinct, in lower case too; {quoted(alike)} are not. Rename"
            " them."
        )
    return alike


def _one_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")
