"""The distributed engine: a Spark session, the files it reads, and rows that stay where they are.

Functions go to the rows of a cluster, and arrays come back. A part is a partition of the DataFrame;
it holds whole clusters, so that sums over the units of all parts are sums over units. The workers
of Spark must be able to import equipoise.
"""

import copy
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import reduce
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import narwhals as nw
import numpy as np

from equipoise._checks import shown
from equipoise._typing import AnyArray, FloatArray
from equipoise.data.duckdb import (
    CSV_ENDINGS,
    NULL_WORDS,
    CsvWords,
    check_no_words,
    check_one_schema,
    connection,
    csv_dialect,
    csv_headers,
    cut_words,
    resolve,
)
from equipoise.data.query import (
    CLUSTER,
    CellRows,
    NarrowRows,
    engine_error,
    from_engine,
    reason,
    record,
)
from equipoise.data.splitting import PRIME
from equipoise.exceptions import DataError, EquipoiseError, MissingDependencyError

__all__ = [
    "ArrangedParts",
    "collected",
    "drawn",
    "read",
    "session",
    "with_predictions",
]

# What DuckDB finds in a csv file, as Spark calls it; anything else stays text.
SPARK_TYPES = {
    "BIGINT": "bigint",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "DOUBLE": "double",
    "TIMESTAMP": "timestamp_ntz",
}

# The last line of a traceback in Python, among the lines of one in Java.
RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): .+$", re.MULTILINE)
DRAW = "__eq_draw"
SCHEMA = "part int, sizes array<bigint>, numbers binary"
MOST_BYTES = 1_500_000_000
"""Of the arranged rows of one partition: Arrow and Java have 32 bits for the length of a value."""


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


def read(path: str, *, words: CsvWords | None = None, used: Collection[str] = ()) -> Any:
    """Return a Spark DataFrame over a csv or parquet path, with the columns DuckDB would give.

    Parameters
    ----------
    path : str
        What to read.
    words : CsvWords, optional
        As in `equipoise.data.duckdb.read`.
    used : collection of str
        As there.

    Returns
    -------
    pyspark.sql.DataFrame
    """
    spark = session()
    from pyspark.errors import PySparkException

    try:
        if path.lower().endswith(CSV_ENDINGS):
            if "://" in path:
                return _remote_csv(spark, path, words)
            return _csv(spark, path, words, used)
        check_no_words(words, f"{shown(path)} is parquet")
        return _parquet(spark, path)
    except PySparkException as error:
        raise DataError(f"Spark cannot read {shown(path)}: {reason(error)}") from error


def _parquet(spark: Any, path: str) -> Any:
    if "://" in path:
        return spark.read.parquet(path)
    files, _ = resolve(path)
    import duckdb

    try:
        check_one_schema(connection(*files), files, path)
    except duckdb.Error as error:
        raise DataError(f"Cannot read {shown(path)}: {reason(error)}") from error
    # Folders named like ``race=Black`` are a column; other folders only hold files.
    nested = Path(path).is_dir() and not any("=" in folder.name for folder in Path(path).iterdir())
    return spark.read.option("recursiveFileLookup", nested).parquet(path)


def _csv(spark: Any, path: str, words: CsvWords | None, used: Collection[str]) -> Any:
    """Read text, turn the words for "missing" into nulls, and cast to the types DuckDB found."""
    from pyspark.sql import functions as F  # noqa: N812

    layout, types, cuts = csv_dialect(path, words, used)
    if layout.runs:
        raise DataError(
            f"Spark cannot read runs of blanks between fields, as {shown(path)} has. Write single"
            " ones, `awk '{$1 = $1} 1' OLD > NEW`, or read it with engine \"duckdb\"."
        )
    if layout.skipped:
        raise DataError(
            f"Spark cannot skip lines above a table, and {shown(path)} starts with"
            f' {shown(layout.skipped[0])}. Delete that line, or read it with engine "duckdb".'
        )
    # Spark reads by position: files with columns in another order are read apart.
    alike: dict[tuple[str, ...], list[str]] = {}
    files, _ = resolve(path)
    for file, header in csv_headers(connection(*files), files, layout).items():
        alike.setdefault(tuple(header), []).append(file)
    frames = [
        spark.read.csv(
            files,
            header=layout.named,
            inferSchema=False,
            sep=layout.separator,
            ignoreLeadingWhiteSpace=layout.spaced,
            quote=layout.quote,
            escape=layout.escape,
            mode="FAILFAST",
        ).toDF(*(header or types))
        for header, files in alike.items()
    ]
    text = reduce(lambda first, second: first.unionByName(second), frames)
    columns = []
    for name, kind in zip(text.columns, types.values(), strict=True):
        value = F.col(f"`{name}`")
        absent = [""] if words is not None and words.is_word(name, kind) else NULL_WORDS
        known = F.when(~value.isin(*absent), value)
        cast = known.cast(SPARK_TYPES.get(kind, "string"))
        if kind in SPARK_TYPES and cuts.get(name):
            found, remedy = map(F.lit, cut_words(name, kind))
            told = F.raise_error(F.concat(found, F.substring(value, 1, 40), remedy))
            cast = F.when(F.expr(cuts[name]), told).otherwise(cast)
        columns.append(cast.alias(name))
    return text.select(*columns)


def _remote_csv(spark: Any, path: str, words: CsvWords | None) -> Any:
    """Read a csv file that only Spark can reach; Spark finds the types and knows one null word."""
    separator = "\t" if ".tsv" in path.lower() else ","
    words = words or CsvWords()
    header = not words.names if words.header is None else words.header
    frame = spark.read.csv(
        path, header=header, inferSchema=True, sep=separator, nullValue="NA", mode="FAILFAST"
    )
    return frame.toDF(*words.names) if words.names else frame


def drawn(
    frame: "nw.LazyFrame[Any]",
    columns: Collection[str],
    share: float,
    *,
    together: bool,
    seed: int,
) -> "tuple[nw.LazyFrame[Any], nw.LazyFrame[Any]]":
    """Draw about a share of the rows, the same ones whatever their order and partitions.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        Rows of a Spark DataFrame.
    columns : collection of str
        What is hashed.
    share : float
        Part of the rows.
    together : bool
        Whether rows that agree in the columns are drawn together, as those of a cluster; otherwise
        they are numbered first, each hash by itself, so that no partition holds all rows.
    seed : int
        Another one draws other rows.

    Returns
    -------
    drawn, others : narwhals.LazyFrame
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    names = sorted(columns)
    place = F.xxhash64(F.lit(seed), *names)
    native = frame.to_native().withColumn(DRAW, place)
    if not together:
        number = F.row_number().over(Window.partitionBy(DRAW).orderBy(*names))
        native = native.withColumn(DRAW, F.xxhash64(DRAW, number))
    chosen = F.pmod(F.col(DRAW), F.lit(PRIME)) < int(share * PRIME)
    return (
        nw.from_native(native.filter(chosen).drop(DRAW)),
        nw.from_native(native.filter(~chosen).drop(DRAW)),
    )


def with_predictions(
    frame: "nw.LazyFrame[Any]",
    predict: Callable[[FloatArray], AnyArray],
    features: Sequence[str],
    name: str,
) -> "nw.LazyFrame[Any]":
    """Add a column that a function predicts from the features, in the partitions.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        Rows of a Spark DataFrame.
    predict : callable
        Of a matrix of features; it is pickled and runs in the workers of Spark.
    features : sequence of str
        Columns of the matrix, in this order.
    name : str
        Of the new column; null where a feature is missing.

    Returns
    -------
    narwhals.LazyFrame
    """
    from pyspark.sql.types import DoubleType

    native = frame.to_native()
    schema = copy.deepcopy(native.schema).add(name, DoubleType())

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            X = np.empty((batch.num_rows, len(features)))
            for k, feature in enumerate(features):
                X[:, k] = batch.column(feature).cast(pa.float64()).to_numpy(zero_copy_only=False)
            known = np.flatnonzero(np.isfinite(X).all(axis=1))
            values = np.full(batch.num_rows, np.nan)
            if len(known):
                values[known] = np.asarray(predict(X[known]), dtype=np.float64)
            column = pa.array(values, from_pandas=True)
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, column], names=[*batch.schema.names, name]
            )

    found: nw.LazyFrame[Any] = nw.from_native(native.mapInArrow(work, schema))
    return found


class ArrangedParts:
    """Arrays made of the rows of each part, in the memory of the cluster until a `with` block ends.

    Parameters
    ----------
    narrow : NarrowRows
        Rows of a Spark DataFrame.
    arrange : callable
        Makes arrays of the rows of a part; it is pickled and runs in the workers of Spark, and what
        it makes stays there.
    """

    def __init__(
        self, narrow: NarrowRows, arrange: Callable[[CellRows], tuple[AnyArray, ...]]
    ) -> None:
        reader = narrow.reader
        frame = narrow.frame.to_native()
        if CLUSTER in reader.multipliers:
            frame = frame.repartition(CLUSTER)
        record(nw.from_native(frame))

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            whole = _joined(batches)
            if whole is None:
                return
            made = [_written(array) for array in arrange(reader.rows(whole))]
            if sum(len(array) for array in made) > MOST_BYTES:
                raise ValueError(
                    f"a partition takes more than {MOST_BYTES:,} bytes; repartition the DataFrame"
                    " into more parts"
                )
            yield pa.RecordBatch.from_pydict({"made": pa.array([made], pa.list_(pa.binary()))})

        self._frame = frame.mapInArrow(work, "made array<binary>").persist()

    def __enter__(self) -> Self:
        """Return the parts."""
        return self

    def __exit__(self, *error: object) -> None:
        """Free the memory of the cluster."""
        self._frame.unpersist()

    def map(
        self, function: Callable[[tuple[AnyArray, ...]], tuple[AnyArray, ...]]
    ) -> list[tuple[FloatArray, ...]]:
        """Apply a function to the arrays of each part that has rows.

        Parameters
        ----------
        function : callable
            Makes arrays of numbers; it is pickled and runs in the workers of Spark.

        Returns
        -------
        list of tuple of arrays
            What it made, flat, in the order of the parts.
        """

        def of_arrays(batches: Iterator[Any]) -> tuple[AnyArray, ...] | None:
            whole = _joined(batches)
            if whole is None:
                return None
            return function(tuple(_read(made.as_buffer()) for made in whole.column(0)[0]))

        return collected(self._frame, of_arrays)


def _written(array: AnyArray) -> bytes:
    file = BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _read(made: Any) -> AnyArray:
    array: AnyArray = np.load(BytesIO(made), allow_pickle=False)
    return array


def _joined(batches: Iterator[Any]) -> Any:
    """Return the rows of a part as one batch, or None where there are none."""
    import pyarrow as pa

    present = [batch for batch in batches if batch.num_rows]
    if not present:
        return None
    (whole,) = pa.Table.from_batches(present).combine_chunks().to_batches()
    return whole


def collected(
    frame: Any, function: Callable[[Iterator[Any]], tuple[AnyArray, ...] | None]
) -> list[tuple[FloatArray, ...]]:
    """Apply a function in every part; return the arrays it makes, in the order of the parts."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        found = function(batches)
        if found is None:
            return
        made = [np.ravel(array).astype("<f8") for array in found]
        record = {
            "part": pa.array([TaskContext.get().partitionId()], pa.int32()),
            "sizes": pa.array([[len(array) for array in made]], pa.list_(pa.int64())),
            "numbers": pa.array([b"".join(array.tobytes() for array in made)], pa.binary()),
        }
        yield pa.RecordBatch.from_pydict(record)

    try:
        records = frame.mapInArrow(work, SCHEMA).collect()
    except Exception as error:
        if not from_engine(error):
            raise
        raise _worker_error(error) from error
    parts = []
    for part in sorted(records, key=lambda part: int(part["part"])):
        numbers = np.frombuffer(part["numbers"], dtype="<f8")
        parts.append(tuple(np.split(numbers, np.cumsum(part["sizes"])[:-1])))
    return parts


def _worker_error(error: Exception) -> EquipoiseError:
    """Return the line that says what went wrong in a worker."""
    text = str(error)
    if "No module named 'equipoise'" in text:
        return MissingDependencyError(
            "The workers of Spark cannot import equipoise. Install the same version on every node,"
            " or send an environment along: pack it with `venv-pack` or `conda-pack`, pass it as"
            " `--archives environment.tar.gz#environment`, and set"
            " PYSPARK_PYTHON=./environment/bin/python."
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        return MissingDependencyError(
            f"The workers of Spark run another Python than this one, which is"
            f" {sys.version_info.major}.{sys.version_info.minor}. Set PYSPARK_PYTHON to the same"
            " version on every node before the session starts, or send an environment along with"
            " `--archives`."
        )
    if "pyspark.daemon's stdout" in text or "Cannot run program" in text:
        return MissingDependencyError(
            "The workers of Spark could not start Python, or one too old for Spark. Set"
            f" PYSPARK_PYTHON to a Python {sys.version_info.major}.{sys.version_info.minor} that"
            " every node has before the session starts, or send an environment along with"
            " `--archives`."
        )
    raised = [line for line in RAISED.findall(text) if "Traceback" not in line]
    if raised:
        return DataError(f"The workers of Spark could not run the query: {raised[-1].strip()}")
    return engine_error(error)
