"""The embedded engine: DuckDB connections and files."""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from equipoise.exceptions import DataError

__all__ = [
    "check_one_schema",
    "connection",
    "csv_dialect",
    "csv_files",
    "from_arrow",
    "is_word",
    "read",
    "resolve",
]

# What csv writers use for "missing"; anything else is text.
NULL_WORDS = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]

NOT_TEXT = "it is not UTF-8 text. Convert it first."

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


def read(path: str, *, coded: Collection[str] | None = None) -> Any:
    """Return a relation over a csv or parquet file, a folder of parquet files, or a glob.

    Parameters
    ----------
    path : str
        What to read.
    coded : collection of str, optional
        Columns of text of a csv file in which the words of `NULL_WORDS` mean "missing"; by default
        all. In others they are words, and only an empty field is missing.

    Returns
    -------
    duckdb.DuckDBPyRelation
    """
    import duckdb

    target, kind = resolve(path)
    reader = connection()
    try:
        if kind == "parquet":
            check_one_schema(reader, target, path)
            # Folders named like ``race=Black`` are a column, as they are for Spark.
            relation = reader.read_parquet(target, hive_partitioning="=" in target or "*" in target)
        else:
            relation = _read_csv(reader, target, path, coded)
        # Binding reads only headers; one row shows corrupt files before an audit is under way.
        relation.limit(1).to_arrow_table()
    except duckdb.Error as error:
        raise DataError(f"Cannot read {path!r}: {_reason(error, path)}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"Cannot read {path!r}: {NOT_TEXT}") from error
    if kind == "csv" and len(relation.columns) == 1:
        raise DataError(
            f"{path!r} has a single column {relation.columns[0]!r}; the delimiter must be a comma,"
            " a tab, a semicolon or a bar."
        )
    return relation


def _read_csv(reader: Any, target: str, path: str, coded: Collection[str] | None) -> Any:
    files = csv_files(reader, target)
    by_name = len({tuple(header) for header in files.values()}) > 1
    _check_headers(files, path)
    relation = reader.read_csv(target, na_values=NULL_WORDS, header=True, union_by_name=by_name)
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    if coded is None or not any(is_word(name, kind, coded) for name, kind in types.items()):
        return relation
    # The reader knows one list of words for all columns: read text, and cast what is not.
    text = reader.read_csv(
        target, na_values=[""], header=True, union_by_name=by_name, all_varchar=True
    )
    formats = _time_formats(reader, next(iter(files)), types)
    words = ", ".join(f"'{word}'" for word in NULL_WORDS)
    columns = []
    for name, kind in types.items():
        column = '"' + name.replace('"', '""') + '"'
        if not is_word(name, kind, coded):
            value = f"CASE WHEN {column} NOT IN ({words}) THEN {column} END"
            if kind in formats:
                value = f"strptime({value}, '{formats[kind]}')"
            column = f"CAST({value} AS {kind}) AS {column}"
        columns.append(column)
    return text.project(", ".join(columns))


def is_word(name: str, kind: str, coded: Collection[str] | None) -> bool:
    """Return whether a column of a csv file holds text in which any word is a value."""
    return coded is not None and kind == "VARCHAR" and name not in coded


def _time_formats(reader: Any, file: str, types: Mapping[str, str]) -> dict[str, str]:
    """Return the formats of dates and times that are not ISO."""
    if not {"DATE", "TIMESTAMP"} & set(types.values()):
        return {}
    (found,) = reader.execute(
        "SELECT DateFormat, TimestampFormat FROM sniff_csv(?, nullstr=?)", [file, NULL_WORDS]
    ).fetchall()
    return {kind: form for kind, form in zip(("DATE", "TIMESTAMP"), found, strict=True) if form}


def csv_files(reader: Any, target: str) -> dict[str, list[str]]:
    """Return the csv files of a path or glob, each with its header if there are several."""
    if Path(target).is_file():
        return {target: []}
    found = reader.execute("SELECT file FROM glob(?) ORDER BY file", [target]).fetchall()
    if len(found) == 1:
        return {found[0][0]: []}
    return {file: reader.read_csv(file, header=True).columns for (file,) in found}


def _check_headers(files: Mapping[str, list[str]], path: str) -> None:
    """Raise unless csv files have the same columns, in whatever order."""
    first, *others = files.items()
    for file, header in others:
        if set(header) != set(first[1]):
            raise _different(path, first, (file, header))


def check_one_schema(reader: Any, target: str, path: str) -> None:
    """Raise unless all parquet files have the same columns of the same types.

    DuckDB would cast the values of later files to the types of the first, and Spark would drop
    columns; neither says so.
    """
    found = reader.execute(
        """
        SELECT file_name, string_agg(name || ' ' || coalesce(duckdb_type, type), ', ' ORDER BY name)
        FROM parquet_schema(?) WHERE num_children IS NULL GROUP BY file_name ORDER BY file_name
        """,
        [target],
    ).fetchall()
    first_file, first = found[0]
    for file, columns in found[1:]:
        if columns != first:
            raise _different(path, (first_file, first.split(", ")), (file, columns.split(", ")))


def _different(
    path: str, first: tuple[str, Iterable[str]], second: tuple[str, Iterable[str]]
) -> DataError:
    """Say which columns one file has and another has not."""
    ours, theirs = set(first[1]), set(second[1])
    return DataError(
        f"The files of {path!r} differ in their columns: {Path(first[0]).name!r} has"
        f" {_listed(ours - theirs)}, {Path(second[0]).name!r} has {_listed(theirs - ours)}."
        " Rewrite them alike; nothing is cast silently."
    )


def _listed(columns: set[str]) -> str:
    return ", ".join(sorted(columns)) or "nothing else"


def csv_dialect(path: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the delimiter, quote and escape of a csv file, and the types of its columns."""
    relation = read(path)
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    names = ("delimiter", "quote", "escape")
    engine = connection()
    (sample,) = engine.execute("SELECT min(file) FROM glob(?)", [path]).fetchone()
    marks = engine.execute(
        f"SELECT {', '.join(names)} FROM sniff_csv(?)",  # noqa: S608 names are ours
        [sample],
    ).fetchone()
    # A mark that the file does not use is written out, as "(empty)".
    one = {name: mark if len(mark) == 1 else "" for name, mark in zip(names, marks, strict=True)}
    return one, types


def resolve(path: str) -> tuple[str, str]:
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


def _reason(error: Exception, path: str) -> str:
    """Say in the reader's words what DuckDB says in its own."""
    if Path(path).is_file() and Path(path).stat().st_size == 0:
        return "the file is empty."
    if "not utf-8" in str(error):
        return NOT_TEXT
    if "sniffing file" in str(error):
        return "no delimiter gives every line the same columns; is it a csv file?"
    return _one_line(error)


def _one_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
