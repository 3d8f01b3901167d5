"""Rows handed over in batches, so that ten million never meet in one table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._typing import AnyArray, IntArray
from equipoise.data.cells import Rows, label_text
from equipoise.data.collect import engine_error, from_engine

__all__ = ["CellNumbering", "record_batches"]

BATCH_ROWS = 1_000_000


def record_batches(frame: "nw.LazyFrame[Any]") -> Iterator[Any]:
    """Run a query; yield its rows as Arrow record batches. Spark sends them all at once."""
    try:
        if frame.implementation.is_duckdb():
            yield from frame.to_native().to_arrow_reader(BATCH_ROWS)
            return
        yield from frame.collect(backend="pyarrow").to_native().to_batches()
    except Exception as error:
        if not from_engine(error):
            raise
        raise engine_error(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class CellNumbering:
    """Numbers the cells of a batch by the labels of all cells, sorted as in `Cells`.

    Parameters
    ----------
    columns : tuple of str
        The group columns.
    labels : tuple of arrays of shape (K,)
        Text label of each cell in each column.
    """

    columns: tuple[str, ...]
    labels: tuple[AnyArray, ...]

    def rows(
        self,
        batch: Any,
        keys: Sequence[str],
        quantities: Mapping[str, nw.Expr],
        extra: Sequence[str],
        dropped: int,
    ) -> Rows:
        """Turn a record batch into `Rows`; `extra` names the columns of cluster, weight, count."""
        present = {name: _numbers(batch.column(name)) for name in extra}
        return Rows(
            columns=self.columns,
            labels=self.labels,
            values={name: _numbers(batch.column(name)) for name in quantities},
            cell=self._cell([batch.column(key) for key in keys], batch.num_rows),
            unit=present.get("__eq_cluster"),
            weight=present.get("__eq_weight"),
            count=present.get("__eq_count"),
            dropped=dropped,
        )

    def _cell(self, keys: Sequence[Any], n: int) -> IntArray:
        code = np.zeros(n, dtype=np.int64)
        known = np.zeros(len(self.labels[0]) if self.labels else 1, dtype=np.int64)
        for key, labels in zip(keys, self.labels, strict=True):
            levels, place = np.unique(labels.astype(str), return_inverse=True)
            coded = key.dictionary_encode()
            text = label_text(coded.dictionary.to_pylist())
            at = np.searchsorted(levels, text)
            code = code * len(levels) + at[coded.indices.to_numpy(zero_copy_only=False)]
            known = known * len(levels) + place
        # Cells are sorted by label, so their codes ascend.
        return np.searchsorted(known, code).astype(np.int64)


def _numbers(column: Any) -> AnyArray:
    return np.asarray(column.to_numpy(zero_copy_only=False))
