"""The distributed engine: a Spark session and the files it reads."""

import os
import sys
from pathlib import Path
from typing import Any

from equipoise.data.duckdb import (
    CSV_ENDINGS,
    NULL_WORDS,
    check_one_schema,
    connection,
    csv_dialect,
    resolve,
)
from equipoise.exceptions import DataError, MissingDependencyError

__all__ = ["read", "session"]

# What DuckDB finds in a csv file, as Spark calls it; anything else stays text.
SPARK_TYPES = {
    "BIGINT": "bigint",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "DOUBLE": "double",
    "TIMESTAMP": "timestamp",
}


def session() -> Any:
    """Return the active Spark session, or start a local one."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            "A Spark DataFrame needs pyspark. Install `equipoise[spark]`."
        ) from error
    active = SparkSession.getActiveSession()
    if active is not None:
        # A session of the user's keeps its settings.
        return active
    # The workers of a session of our own run this interpreter and import this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        return (
            SparkSession.builder.appName("equipoise")
            .config("spark.executorEnv.PYTHONPATH", str(Path(__file__).parents[2]))
            .config("spark.ui.enabled", "false")
            .config("spark.sql.ansi.enabled", "true")
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .getOrCreate()
        )
    except (PySparkException, RuntimeError, FileNotFoundError) as error:
        raise MissingDependencyError(
            "Spark did not start; it needs Java 17 or newer on the PATH or in JAVA_HOME."
        ) from error


def read(path: str) -> Any:
    """Return a Spark DataFrame over a csv or parquet path, with the columns DuckDB would give."""
    spark = session()
    from pyspark.errors import PySparkException

    try:
        if path.lower().endswith(CSV_ENDINGS):
            return _remote_csv(spark, path) if "://" in path else _csv(spark, path)
        return _parquet(spark, path)
    except PySparkException as error:
        first = str(error).strip().splitlines()[0]
        raise DataError(f"Spark cannot read {path!r}: {first}") from error


def _parquet(spark: Any, path: str) -> Any:
    if "://" in path:
        return spark.read.parquet(path)
    target, _ = resolve(path)
    import duckdb

    try:
        check_one_schema(connection(), target, path)
    except duckdb.Error as error:
        first = str(error).strip().splitlines()[0]
        raise DataError(f"Cannot read {path!r}: {first}") from error
    # Folders named like ``race=Black`` are a column; other folders only hold files.
    nested = Path(path).is_dir() and not any("=" in folder.name for folder in Path(path).iterdir())
    return spark.read.option("recursiveFileLookup", nested).parquet(path)


def _csv(spark: Any, path: str) -> Any:
    """Read text, turn the words for "missing" into nulls, and cast to the types DuckDB found."""
    from pyspark.sql import functions as F  # noqa: N812

    dialect, types = csv_dialect(path)
    text = spark.read.csv(
        path,
        header=True,
        inferSchema=False,
        sep=dialect["delimiter"],
        quote=dialect["quote"] or '"',
        escape=dialect["escape"] or '"',
        mode="FAILFAST",
    )
    columns = []
    for name, kind in zip(text.columns, types.values(), strict=True):
        value = F.col(f"`{name}`")
        known = F.when(~value.isin(*NULL_WORDS), value)
        columns.append(known.cast(SPARK_TYPES.get(kind, "string")).alias(name))
    return text.select(*columns)


def _remote_csv(spark: Any, path: str) -> Any:
    """Read a csv file that only Spark can reach; Spark finds the types and knows one null word."""
    separator = "\t" if ".tsv" in path.lower() else ","
    return spark.read.csv(
        path, header=True, inferSchema=True, sep=separator, nullValue="NA", mode="FAILFAST"
    )
