"""Open whatever holds the rows: a frame, a relation, a dict of arrays or a path.

Local data of every kind become a DuckDB relation, through Arrow and without a copy where the frame
allows it; a Spark DataFrame stays on its cluster, and an Ibis table in its database. The rest of
the package sees one narwhals `LazyFrame`.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw

from equipoise._checks import not_distinct
from equipoise._names import printable
from equipoise.exceptions import DataError, InvalidParameterError

if TYPE_CHECKING:
    from equipoise.data.duckdb import CsvWords

__all__ = ["check_open", "has_nan", "is_remote", "open_frame"]


def open_frame(
    data: Any,
    *,
    engine: str = "duckdb",
    used: Sequence[str] = (),
    words: "CsvWords | None" = None,
) -> "nw.LazyFrame[Any]":
    """Return the rows as a narwhals `LazyFrame` over DuckDB, Spark or a database.

    Parameters
    ----------
    data : frame, relation, Spark DataFrame, Ibis table, dict of arrays, or path
        A path may be csv, tsv, parquet, compressed, a folder of parquet files or a glob.
    engine : {"duckdb", "spark"}
        What reads a path.
    used : sequence of str
        Columns that must be told apart from all others.
    words : CsvWords, optional
        What words such as ``NA``, ``yes`` and ``F`` mean in the columns of a csv file.

    Returns
    -------
    narwhals.LazyFrame
    """
    if isinstance(data, (str, os.PathLike)):
        return _open_path(os.fspath(data), engine, used, words)
    if words is not None:
        from equipoise.data.duckdb import check_no_words

        check_no_words(words, "this table is no file")
    if isinstance(data, Mapping):
        return _from_arrow(_arrow_of_mapping(data), used)
    if not hasattr(data, "collect_schema"):
        # pandas allows repeated names; narwhals would refuse them with a message of its own.
        names: Any = getattr(data, "column_names", None) or getattr(data, "columns", ())
        if any(isinstance(name, tuple) for name in names):
            raise DataError(
                "The columns of the frame have names of several levels. Give each one name:"
                " `frame.columns = ['_'.join(map(str, name)) for name in frame.columns]`."
            )
        _check_distinct(list(names), used)
    try:
        frame = nw.from_native(data)
    except TypeError as error:
        raise InvalidParameterError(
            f"`data` must be a frame, a relation, a dict of arrays or a path;"
            f" got {type(data).__name__}."
        ) from error
    if isinstance(frame, nw.LazyFrame):
        if frame.implementation.is_pyspark():
            return _of_spark(frame, used)
        if frame.implementation.is_duckdb() or is_remote(frame):
            return frame
        frame = _collected(frame)
    return _from_arrow(_arrow_of_frame(frame), used)


def is_remote(frame: "nw.LazyFrame[Any]") -> bool:
    """Return whether the rows are on a cluster or in a database, and should stay there."""
    return bool(frame.implementation.is_pyspark() or frame.implementation.is_ibis())


def check_open(frame: "nw.LazyFrame[Any]") -> None:
    """Raise if the Spark session of the rows was stopped."""
    if not frame.implementation.is_pyspark():
        return
    context = frame.to_native().sparkSession.sparkContext
    if context._jsc is None:  # noqa: SLF001 nothing public says that it was stopped
        raise DataError(
            "The Spark session that holds the rows was stopped. Open the table again in a session"
            " that runs, and make a new `Audit` of it."
        )


def _of_spark(frame: "nw.LazyFrame[Any]", used: Sequence[str]) -> "nw.LazyFrame[Any]":
    """Leave out columns whose names Spark takes for paths into structures; raise if one is used."""
    check_open(frame)
    native = frame.to_native()
    odd = [name for name in native.columns if "." in name or "`" in name]
    for name in odd:
        if name in used:
            raise DataError(
                f"Column {name!r} has a dot or a backtick in its name, which Spark takes for a path"
                " into a structure. Rename it: `frame.withColumnRenamed(...)`."
            )
    if not odd:
        return frame
    return _lazy(native.select(*[name for name in native.columns if name not in odd]))


def has_nan(frame: "nw.LazyFrame[Any]") -> bool:
    """Return whether the engine knows a number that is not one; SQLite and MySQL do not."""
    if not frame.implementation.is_ibis():
        return True
    import ibis
    import ibis.expr.operations as ops

    return bool(ibis.get_backend(frame.to_native()).has_operation(ops.IsNan))


def _collected(frame: "nw.LazyFrame[Any]") -> "nw.DataFrame[Any]":
    """Run a lazy frame of another library; whatever it raises is about the frame."""
    try:
        return frame.collect()
    except Exception as error:
        raise DataError(f"The lazy frame cannot be read: {_one_line(error)}.") from error


def _open_path(
    path: str, engine: str, used: Sequence[str], words: "CsvWords | None"
) -> "nw.LazyFrame[Any]":
    from equipoise.data import duckdb

    if engine == "spark":
        from equipoise.data import spark

        return _of_spark(_lazy(spark.read(path, words=words, used=used)), used)
    return _lazy(duckdb.read(path, words=words, used=used))


def _from_arrow(table: Any, used: Sequence[str]) -> "nw.LazyFrame[Any]":
    from equipoise.data import duckdb

    alike = _check_distinct(table.column_names, used)
    # DuckDB would call a column without a name `v0`, and the one that is called so `v0_1`.
    table = table.drop_columns([name for name in table.column_names if name in {"", *alike}])
    return _lazy(duckdb.from_arrow(table))


def _lazy(native: Any) -> "nw.LazyFrame[Any]":
    frame: nw.LazyFrame[Any] = nw.from_native(native)
    return frame


def _arrow_of_frame(frame: "nw.DataFrame[Any]") -> Any:
    import pyarrow as pa

    _check_written(frame.columns)
    try:
        table = frame.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"The frame cannot be read: {_one_line(error)}. Give each column values of one type,"
            " for instance by `.astype(str)`."
        ) from error
    for k, (name, kind) in enumerate(frame.schema.items()):
        if kind == nw.Object and frame.implementation.is_polars():  # addresses in memory
            table = table.set_column(k, name, pa.nulls(len(frame)))
        elif frame.implementation.is_pandas_like():
            _check_one_kind(name, frame[name], table.column(k).type)
    return table


def _arrow_of_mapping(data: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    _check_written(data)
    columns = {}
    for name, values in data.items():
        try:
            columns[str(name)] = _arrow_of_list(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"Column {name!r} cannot be read: {_one_line(error)}.") from error
        _check_one_kind(str(name), values, columns[str(name)].type)
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise DataError(f"Columns must have one length; got {sizes}.")
    return pa.table(columns)


def _arrow_of_list(values: Any) -> Any:
    import pyarrow as pa

    column = pa.array(values, from_pandas=True)
    if pa.types.is_timestamp(column.type) and any(getattr(v, "nanosecond", 0) for v in values):
        # Moments of pandas have nanoseconds, which Arrow would cut off.
        return pa.array(values, type=pa.timestamp("ns", column.type.tz), from_pandas=True)
    return column


def _check_one_kind(name: str, values: Iterable[Any], kind: Any) -> None:
    """Raise if a column of Python objects has text among bytes: to Arrow b"a" and "a" are one."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not pa.types.is_binary(kind):
        return
    text = next((value for value in values if isinstance(value, str)), None)
    if text is not None:
        raise DataError(
            f"Column {name!r} has bytes and text, such as {text!r}; equal ones would become one"
            " value. Decode the bytes."
        )


def _check_written(names: Iterable[object]) -> None:
    """Raise if a name of a column cannot be written by engines."""
    for name in map(str, names):
        if "\0" in name or name != name.encode(errors="replace").decode():
            raise DataError(
                f"Column {name!r} has a character that no engine can write in a name; rename it."
            )


def _check_distinct(names: Sequence[Any], used: Sequence[str]) -> list[str]:
    """Return names that differ in case only, which SQL engines cannot tell apart.

    Raise if one of them is used, or if a name occurs twice.
    """
    texts = [str(name) for name in names]
    folded = Counter(text.lower() for text in texts)
    alike = sorted({text for text in texts if folded[text.lower()] > 1})
    wanted = {name.lower() for name in used if isinstance(name, str)}
    if len(set(texts)) < len(texts) or any(text.lower() in wanted for text in alike):
        raise not_distinct(alike)
    return alike


def _one_line(error: Exception) -> str:
    words = "; ".join(map(str, error.args)) or str(error)
    return printable(words.strip().splitlines()[0].rstrip("."))
