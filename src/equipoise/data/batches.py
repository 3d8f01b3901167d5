"""Complete rows with few columns, handed over in batches: ten million never meet in one table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._typing import AnyArray, IntArray
from equipoise.data.cells import Rows, label_text
from equipoise.data.clusters import CLUSTER
from equipoise.data.query import engine_error, from_engine

__all__ = ["NarrowRows", "RowReader", "batches"]

BATCH_ROWS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Turns record batches into `Rows`; numbers their cells by the labels of all, as in `Cells`.

    Parameters
    ----------
    columns, keys : tuple of str
        The group columns, and their names in the batches.
    labels : tuple of arrays of shape (K,)
        Text label of each cell in each group column.
    quantities, multipliers : tuple of str
        Columns of quantities; those of cluster, weight and count as far as there are any.
    dropped : int
        Rows left out because a value was missing.
    """

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    labels: tuple[AnyArray, ...]
    quantities: tuple[str, ...]
    multipliers: tuple[str, ...]
    dropped: int

    def rows(self, batch: Any) -> Rows:
        """Read a record batch; clusters that are not integers are numbered within it."""
        present = {name: _numbers(batch.column(name)) for name in self.multipliers}
        return Rows(
            columns=self.columns,
            labels=self.labels,
            values={name: _numbers(batch.column(name)) for name in self.quantities},
            cell=self._cell([batch.column(key) for key in self.keys], batch.num_rows),
            unit=present.get(CLUSTER),
            weight=present.get("__eq_weight"),
            count=present.get("__eq_count"),
            dropped=self.dropped,
        )

    def _cell(self, keys: Sequence[Any], n: int) -> IntArray:
        """Number rows by the codes of their keys; a key is looked up once, not in every row."""
        code = np.zeros(n, dtype=np.int64)
        known = np.zeros(len(self.labels[0]) if self.labels else 1, dtype=np.int64)
        for key, labels in zip(keys, self.labels, strict=True):
            levels, place = np.unique(labels.astype(str), return_inverse=True)
            coded = key.dictionary_encode()
            at = np.searchsorted(levels, label_text(coded.dictionary.to_pylist()))
            code *= len(levels)
            code += at[coded.indices.to_numpy(zero_copy_only=False)]
            known = known * len(levels) + place
        if known[-1] < len(code):
            cell = np.zeros(known[-1] + 1, dtype=np.int64)
            cell[known] = np.arange(len(known))
            return cell[code]
        # Cells are sorted by label, so their codes ascend.
        return np.searchsorted(known, code)


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowRows:
    """Complete rows with the columns that a question needs, not yet read.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        The rows.
    reader : RowReader
        What its columns are.
    """

    frame: "nw.LazyFrame[Any]"
    reader: RowReader


def batches(narrow: NarrowRows) -> Iterator[Rows]:
    """Read rows from DuckDB in batches.

    The `unit` of a row is an integer that is the same in every batch: the cluster itself, or its
    rank where clusters are not integers.
    """
    frame = narrow.frame
    if CLUSTER in narrow.reader.multipliers:
        cluster = nw.col(CLUSTER)
        if not frame.collect_schema()[CLUSTER].is_integer():
            cluster = cluster.rank("dense")
        frame = frame.with_columns(cluster.cast(nw.Int64).alias(CLUSTER))
    try:
        for batch in frame.to_native().to_arrow_reader(BATCH_ROWS):
            yield narrow.reader.rows(batch)
    except Exception as error:
        if not from_engine(error):
            raise
        raise engine_error(error) from error


def _numbers(column: Any) -> AnyArray:
    import pyarrow as pa

    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        column = column.dictionary_encode().indices
    return np.asarray(column.to_numpy(zero_copy_only=False))
