"""Sums by batch: what a monitor needs of a table, and the order of its batches."""

import re
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._checks import shown
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.audits.disparity.sides import FinestGroups, metric_needs, row_quantities
from equipoise.data.columns import Needs
from equipoise.data.metrics import AnyMetric, Metric, RateMetric
from equipoise.data.table import Quantity, Sums, Table
from equipoise.exceptions import DataError
from equipoise.moments import CellMoments, sum_by
from equipoise.stats.disparity.gap_sequence import BatchSums, BatchUnits

__all__ = ["MOST_BATCHES", "batch_order", "batch_sums", "declare_batches"]

MOST_BATCHES = 20_000

_TIME = re.compile(
    r"\d{4}([-/.]?(W\d{2}|Q\d|M\d{2}|\d{2})([-/.]?\d{1,2})?([T ]\d{2}(:?\d{2}){0,2}(\.\d+)?)?)?"
)
"""Text whose order is that of time: 2026, 2026-07, 2026-W07, 2026-Q3, 2026-07-19T10:00."""


def declare_batches(
    table: Table, metric: AnyMetric, *, by: Sequence[Quantity] = (), needs: Needs | None = None
) -> Sums:
    """Declare the sums of a metric that evidence over time is made of.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : AnyMetric
        What is watched.
    by : sequence of Quantity
        Keys beside the groups: the batch. Clusters are added as the last key.
    needs : mapping, optional
        Further roles that must not be missing.

    Returns
    -------
    Sums
        Its quantities are u, w, and the squares and product of both over rows, weights inside;
        its further sum counts the rows on which the metric is defined.
    """
    u, w = row_quantities(table, metric)
    weight = nw.lit(1.0) if table.roles.weight is None else table.value("weight")
    owner = id(u) if isinstance(metric, Metric) else None
    # A quantity is multiplied by the weight once; products of two need it twice.
    terms = {"u": u, "w": w, "uu": u * u * weight, "uw": u * w * weight, "ww": w * w * weight}
    keys = list(by)
    if table.roles.cluster is not None:
        keys.append(Quantity(table.roles.cluster, "cluster", nw.col(table.roles.cluster)))
    return table.sums(
        [Quantity(metric.name, ("batches", owner, term), value) for term, value in terms.items()],
        {**metric_needs(metric), **(needs or {})},
        counted=[Quantity(metric.name, ("batches", owner, "defined"), w != 0.0)],
        by=keys,
        order=1,
    )


def batch_sums(
    cells: CellMoments,
    groups: FinestGroups,
    batch: IntArray,
    n_batches: int,
    *,
    metric: AnyMetric,
    table: Table,
) -> BatchSums:
    """Put the sums of cells into batches and groups.

    Parameters
    ----------
    cells : CellMoments
        What `declare_batches` asked for.
    groups : FinestGroups
        Group of each cell.
    batch : array of shape (K,)
        Batch of each cell.
    n_batches : int
        How many there are.
    metric : AnyMetric
        What was measured.
    table : Table
        Where.

    Returns
    -------
    BatchSums
    """
    size = groups.size
    key = batch * size + groups.place

    def summed(column: FloatArray) -> FloatArray:
        return sum_by(key, column[:, None], n_batches * size).reshape(n_batches, size)

    u, w, uu, uw, ww = (summed(cells.total[:, k]) for k in range(5))
    n = summed(cells.sums[:, 0])
    units = None
    if table.roles.cluster is not None:
        cluster = np.unique(cells.labels[-1].astype(str), return_inverse=True)[1]
        units = BatchUnits(
            batch=batch,
            cluster=cluster,
            cell=groups.place,
            w=cells.total[:, 1],
            u=cells.total[:, 0],
        )
    plain = table.roles.weight is None and units is None
    # Of whole numbers u, only 0 and 1 equal their squares.
    ones = bool(np.array_equal(uu, u) and np.array_equal(ww, n) and np.array_equal(w, n))
    binary = plain and (isinstance(metric, RateMetric) or (ones and np.array_equal(uw, u)))
    return BatchSums(n=n, w=w, u=u, ww=ww, uw=uw, uu=uu, binary=binary, units=units)


def batch_order(labels: AnyArray, column: str, dtype: Any = None) -> list[str]:
    """Return the batches in the order of time.

    Parameters
    ----------
    labels : array of str
        The values of the column as text.
    column : str
        Its name, for messages.
    dtype : narwhals dtype, optional
        Of the column.

    Returns
    -------
    list of str

    Raises
    ------
    DataError
        When the column is no time, or has too many values.
    """
    known = sorted(set(labels.tolist()))
    if dtype == nw.Boolean:
        raise DataError(f"Column {column!r} is not a time: it holds true and false.")
    if len(known) > MOST_BATCHES:
        raise DataError(
            f"Column {column!r} has {len(known):,} different moments; at most {MOST_BATCHES:,}"
            " batches are watched. Make a column of days, weeks or months."
        )
    try:
        return sorted(known, key=float)
    except ValueError:
        pass
    odd = [label for label in known if not _TIME.fullmatch(label)]
    if odd or len({len(label) for label in known if "T" not in label}) > 1:
        one = odd[0] if odd else min(known, key=len)
        raise DataError(
            f"Column {column!r} is not a time: {shown(one)} has no place in an order. Use dates,"
            " numbers, or text such as 2026-07, 2026-W07 or 2026-07-19 of one length."
        )
    return known
