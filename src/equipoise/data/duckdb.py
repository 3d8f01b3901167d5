"""The embedded engine: DuckDB connections and files."""

import os
from pathlib import Path
from typing import Any

from equipoise.exceptions import DataError

__all__ = ["from_arrow", "read"]

# What csv writers use for "missing"; anything else is text.
NULL_WORDS = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".csv.zst")
PARQUET_ENDINGS = (".parquet", ".pq")


def connection() -> Any:
    """Return a fresh in-memory connection that neither installs nor loads extensions.

    ``EQUIPOISE_MEMORY_LIMIT`` (for instance ``2GB``), ``EQUIPOISE_TEMP`` (a folder to spill to) and
    ``EQUIPOISE_THREADS`` set DuckDB's limits.
    """
    import duckdb

    config: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "allow_community_extensions": False,
    }
    settings = {
        "EQUIPOISE_MEMORY_LIMIT": "memory_limit",
        "EQUIPOISE_TEMP": "temp_directory",
        "EQUIPOISE_THREADS": "threads",
    }
    for variable, setting in settings.items():
        if os.environ.get(variable):
            config[setting] = os.environ[variable]
    try:
        return duckdb.connect(":memory:", config=config)
    except duckdb.Error as error:
        raise DataError(f"DuckDB refused its settings: {_one_line(error)}") from error


def from_arrow(table: Any) -> Any:
    """Return a relation over an Arrow table."""
    import duckdb
    import pyarrow as pa

    for k, column in enumerate(table.schema):
        if column.type == pa.float16():  # DuckDB has no half precision
            table = table.set_column(k, column.name, table.column(k).cast(pa.float32()))
    try:
        return connection().from_arrow(table)
    except duckdb.Error as error:
        raise DataError(f"The table could not be read: {_one_line(error)}") from error


def read(path: str) -> Any:
    """Return a relation over a csv or parquet file, a folder of parquet files, or a glob."""
    import duckdb

    target, kind = _resolve(path)
    reader = connection()
    try:
        if kind == "parquet":
            relation = reader.read_parquet(target, union_by_name=False)
        else:
            relation = reader.read_csv(target, na_values=NULL_WORDS, header=True)
        # Binding reads only headers; one row shows corrupt files before an audit is under way.
        relation.limit(1).fetchall()
    except duckdb.Error as error:
        raise DataError(f"Cannot read {path!r}: {_one_line(error)}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"Cannot read {path!r}: it is not UTF-8 text. Convert it first.") from error
    if kind == "csv" and len(relation.columns) == 1:
        raise DataError(
            f"{path!r} has a single column {relation.columns[0]!r}; the delimiter must be a comma,"
            " a tab, a semicolon or a bar."
        )
    return relation


def _resolve(path: str) -> tuple[str, str]:
    """Return what DuckDB reads, and whether it is parquet or csv."""
    folder = Path(path)
    if folder.is_dir():
        if not any(folder.rglob("*.parquet")):
            raise DataError(f"Folder {path!r} holds no parquet file.")
        return str(folder / "**" / "*.parquet"), "parquet"
    if not folder.exists() and not any(mark in path for mark in "*?["):
        raise DataError(f"File {path!r} not found.")
    name = path.lower()
    if name.endswith(PARQUET_ENDINGS):
        return path, "parquet"
    if name.endswith(CSV_ENDINGS):
        return path, "csv"
    endings = ", ".join((*CSV_ENDINGS, *PARQUET_ENDINGS))
    raise DataError(f"{path!r} has an unknown ending; known are {endings}.")


def _one_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
