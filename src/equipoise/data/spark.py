"""The distributed engine: a Spark session and the files it reads."""

from typing import Any

from equipoise.data.duckdb import CSV_ENDINGS, NULL_WORDS
from equipoise.exceptions import DataError, MissingDependencyError

__all__ = ["read", "session"]


def session() -> Any:
    """Return the active Spark session, or start a local one."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            "A Spark DataFrame needs pyspark. Install `equipoise[spark]`."
        ) from error
    try:
        return (
            SparkSession.builder.appName("equipoise")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .getOrCreate()
        )
    except (PySparkException, RuntimeError, FileNotFoundError) as error:
        raise MissingDependencyError(
            "Spark did not start; it needs Java 17 or newer on the PATH or in JAVA_HOME."
        ) from error


def read(path: str) -> Any:
    """Return a Spark DataFrame over a csv or parquet path."""
    from pyspark.errors import PySparkException

    reader = session().read
    try:
        if path.lower().endswith(CSV_ENDINGS):
            options = {"header": True, "inferSchema": True, "nullValue": NULL_WORDS[1]}
            separator = "\t" if ".tsv" in path.lower() else ","
            return reader.options(sep=separator, **options).csv(path)
        return reader.parquet(path)
    except PySparkException as error:
        first = str(error).strip().splitlines()[0]
        raise DataError(f"Spark cannot read {path!r}: {first}") from error
