"""The same rows on every engine."""

import os
import sys
import warnings
from pathlib import Path

import pytest

import equipoise

ENGINES = [
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "dict",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
]


def on_engine(engine, table):
    """Return a pyarrow table as a frame of the engine."""
    if engine == "pandas":
        return table.to_pandas()
    if engine == "polars":
        import polars as pl

        return pl.from_arrow(table)
    if engine == "pyarrow":
        return table
    if engine == "duckdb":
        import duckdb

        return duckdb.connect().from_arrow(table)
    if engine == "dict":
        return {name: table.column(name).to_pylist() for name in table.column_names}
    return spark_session().createDataFrame(table)


def spark_session():
    """Return a quiet local Spark session, the same for all tests of a process."""
    os.environ.setdefault("PYARROW_IGNORE_TIMEZONE", "1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2]")
            .appName("equipoise-tests")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.executorEnv.PYTHONPATH", str(Path(equipoise.__file__).parents[1]))
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("OFF")
    return session
