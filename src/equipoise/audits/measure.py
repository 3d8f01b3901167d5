"""From a metric and a table to the moments that the engines take."""

from dataclasses import dataclass

import narwhals as nw
import numpy as np

from equipoise._typing import IntArray
from equipoise.audits.finding import Note
from equipoise.data.cells import Cells, Rows
from equipoise.data.columns import Needs
from equipoise.data.metrics import Metric, RateMetric, RealMetric, find_metric
from equipoise.data.table import Table
from equipoise.stats.disparity import Units
from equipoise.stats.moments import CellMoments, CrossMoments, transform_quantities

__all__ = ["ROW_LIMIT", "Measured", "dropped_notes", "measure", "moments_of"]

ROW_LIMIT = 1_000_000
"""Beyond this many rows a real-valued metric is tested from its moments, not from its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A metric in every cell.

    Parameters
    ----------
    name : str
        Of the metric.
    cells : Cells
        Labels of the cells, and rows left out.
    moments : CellMoments
        Sums of (u, w).
    defined : array of shape (K,)
        Rows on which the metric is defined.
    binary : bool
        Whether counts are sufficient: 0/1 quantities, no weights, no clusters.
    units : Units, optional
        The rows, for empirical likelihood of a real-valued metric.
    notes : tuple of Note
        What the reader should know.
    """

    name: str
    cells: Cells
    moments: CellMoments
    defined: IntArray
    binary: bool
    units: Units | None = None
    notes: tuple[Note, ...] = ()


def measure(table: Table, metric: str | Metric, *, rows: bool = True) -> Measured:
    """Sum a metric over the cells of a table.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : str or Metric
        Name, or a metric of the user's own.
    rows : bool
        Whether rows are wanted too if the metric is real-valued.

    Returns
    -------
    Measured
    """
    found = find_metric(metric)
    simple = table.roles.weight is None and table.roles.cluster is None
    if isinstance(found, RateMetric):
        cells = table.label_cells(found.roles)
        linear = np.array([found.u, found.w], dtype=np.float64)
        moments = transform_quantities(moments_of(cells), linear)
        rows_by_label = np.stack([cells.sums[f"rows{k}"] for k in range(len(found.w))], axis=1)
        return Measured(
            name=found.name,
            cells=cells,
            moments=moments,
            defined=(rows_by_label @ linear[1]).round().astype(np.int64),
            binary=simple,
            notes=dropped_notes(cells),
        )
    u, w, needs = _quantities(table, found)
    odd = ((u != 0.0) & (u != 1.0)) | ((w != 0.0) & (w != 1.0)) | (u > w)
    sums = {"defined": (w != 0.0).cast(nw.Float64), "odd": odd.cast(nw.Float64)}
    cells = table.cells({"u": u, "w": w}, needs, sums=sums)
    moments = moments_of(cells)
    binary = simple and not cells.sums["odd"].any()
    notes = dropped_notes(cells)
    units = None
    if rows and not binary and cells.n.sum() > ROW_LIMIT:
        notes = (
            *notes,
            Note(
                code="moments-only",
                message=f"More than {ROW_LIMIT} rows: tested by the Euclidean likelihood, from sums"
                " alone; at this size it agrees with the empirical likelihood.",
            ),
        )
    elif rows and not binary:
        units = _units(table.rows({"u": u, "w": w}, needs))
    return Measured(
        name=found.name,
        cells=cells,
        moments=moments,
        defined=cells.sums["defined"].round().astype(np.int64),
        binary=binary,
        units=units,
        notes=notes,
    )


def moments_of(cells: Cells) -> CellMoments:
    """Hand the sums of a query over to the engines."""
    cross = None
    if cells.cross is not None:
        first, second, product = cells.cross
        cross = CrossMoments(first=first, second=second, product=product)
    return CellMoments(
        n=cells.n, total=cells.total, product=cells.product, n_units=cells.n_units, cross=cross
    )


def dropped_notes(cells: Cells | Rows) -> tuple[Note, ...]:
    """Say how many rows were left out because a value was missing."""
    if not cells.dropped:
        return ()
    message = f"{cells.dropped} rows with a missing value in a column that is used were left out."
    return (Note(code="missing-dropped", message=message),)


def _quantities(table: Table, metric: Metric | RealMetric) -> tuple[nw.Expr, nw.Expr, Needs]:
    if isinstance(metric, Metric):
        return _expression(table, metric.numerator), _expression(table, metric.denominator), {}
    u, w = metric.build(table)
    return u, w, metric.needs


def _expression(table: Table, quantity: "nw.Expr | str | None") -> nw.Expr:
    if quantity is None:
        return nw.lit(1.0)
    if isinstance(quantity, str):
        table.check_column(quantity)
        return nw.col(quantity).cast(nw.Float64)
    return quantity.cast(nw.Float64)


def _units(rows: Rows) -> Units:
    weight = 1.0 if rows.weight is None else rows.weight
    u, w = rows.values["u"] * weight, rows.values["w"] * weight
    return Units(u=u, w=w, cell=rows.cell, unit=rows.unit, count=rows.count)
