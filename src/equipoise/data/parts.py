"""Rows that stay on a Spark cluster: functions go to them, and arrays come back.

A part is a partition of the DataFrame. It holds whole clusters, so that sums over the units of all
parts are sums over units. The workers of Spark must be able to import equipoise.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from equipoise._typing import AnyArray, FloatArray
from equipoise.data.batches import NarrowRows
from equipoise.data.cells import Rows
from equipoise.data.clusters import CLUSTER
from equipoise.data.query import engine_error, from_engine
from equipoise.exceptions import DataError, EquipoiseError, MissingDependencyError

__all__ = ["SparkParts"]

# The last line of a traceback in Python, among the lines of one in Java.
RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): .+$", re.MULTILINE)
SCHEMA = "part int, sizes array<bigint>, numbers binary"


class SparkParts:
    """Rows in parts, kept in the memory of the cluster until the `with` block ends.

    Parameters
    ----------
    narrow : NarrowRows
        Rows of a Spark DataFrame.
    """

    def __init__(self, narrow: NarrowRows) -> None:
        self._reader = narrow.reader
        frame = narrow.frame.to_native()
        if CLUSTER in narrow.reader.multipliers:
            frame = frame.repartition(CLUSTER)
        # In a fixed order, sums are the same in every run, to the last digit.
        multipliers = sorted(narrow.reader.multipliers)
        frame = frame.sortWithinPartitions(
            *multipliers, *narrow.reader.keys, *narrow.reader.quantities
        )
        self._frame = frame.persist()

    def __enter__(self) -> Self:
        """Return the parts."""
        return self

    def __exit__(self, *error: object) -> None:
        """Free the memory of the cluster."""
        self._frame.unpersist()

    def map(self, function: Callable[[Rows], tuple[AnyArray, ...]]) -> list[tuple[FloatArray, ...]]:
        """Apply a function to the rows of each part that has any.

        Parameters
        ----------
        function : callable
            Makes arrays of numbers; it is pickled and runs in the workers of Spark.

        Returns
        -------
        list of tuple of arrays
            What it made, flat, in the order of the parts.
        """
        reader = self._reader

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa
            from pyspark import TaskContext

            present = [batch for batch in batches if batch.num_rows]
            if not present:
                return
            (whole,) = pa.Table.from_batches(present).combine_chunks().to_batches()
            made = [np.ravel(array).astype("<f8") for array in function(reader.rows(whole))]
            record = {
                "part": pa.array([TaskContext.get().partitionId()], pa.int32()),
                "sizes": pa.array([[len(array) for array in made]], pa.list_(pa.int64())),
                "numbers": pa.array([b"".join(array.tobytes() for array in made)], pa.binary()),
            }
            yield pa.RecordBatch.from_pydict(record)

        try:
            records = self._frame.mapInArrow(work, SCHEMA).collect()
        except Exception as error:
            if not from_engine(error):
                raise
            raise _worker_error(error) from error
        found = []
        for record in sorted(records, key=lambda record: int(record["part"])):
            numbers = np.frombuffer(record["numbers"], dtype="<f8")
            found.append(tuple(np.split(numbers, np.cumsum(record["sizes"])[:-1])))
        return found


def _worker_error(error: Exception) -> EquipoiseError:
    """Return the line that says what went wrong in a worker."""
    text = str(error)
    if "No module named 'equipoise'" in text:
        return MissingDependencyError(
            "The workers of Spark cannot import equipoise. Install the same version on every node,"
            " or send the package along with `--py-files`."
        )
    raised = [line for line in RAISED.findall(text) if "Traceback" not in line]
    if raised:
        return DataError(f"The workers of Spark could not run the query: {raised[-1].strip()}")
    return engine_error(error)
