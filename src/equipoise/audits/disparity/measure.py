"""From a metric and a table to the moments that the engines take."""

from dataclasses import dataclass

import narwhals as nw
import numpy as np

from equipoise._typing import IntArray
from equipoise.data.batches import RowReader
from equipoise.data.cells import Cells, Rows
from equipoise.data.columns import Needs
from equipoise.data.groups import n_subgroups
from equipoise.data.metrics import AnyMetric, Metric, RateMetric, RealMetric, find_metric
from equipoise.data.table import Table, label_combinations
from equipoise.exceptions import DataError
from equipoise.moments import CellMoments, CrossMoments, transform_quantities
from equipoise.results.finding import Note
from equipoise.stats.disparity.gaps import Units

__all__ = ["SMALLEST", "WORK_LIMIT", "Measured", "dropped_notes", "measure", "moments_of"]

WORK_LIMIT = 5_000_000
"""Rows times groups beyond which a metric is tested from its moments, not from its rows."""


_MOMENTS_ONLY = Note(
    code="moments-only",
    message="With this many rows and groups the tests use sums alone (Euclidean likelihood), which"
    " agree with the empirical likelihood in groups of thousands; groups below 50 rows are left"
    " untested.",
)


SMALLEST = 1e-70
"""Typical sizes below this are refused, as those beyond `equipoise._checks.LARGEST` are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A metric in every cell.

    Parameters
    ----------
    name, words : str
        Of the metric, and how a person says it.
    cells : Cells
        Labels of the cells, and rows left out.
    moments : CellMoments
        Sums of (u, w).
    defined : array of shape (K,)
        Rows on which the metric is defined.
    binary : bool
        Whether counts are sufficient: 0/1 quantities, no weights, no clusters.
    clustered : bool
        Whether independent units are clusters of rows.
    units : Units, optional
        The rows, for empirical likelihood of a real-valued metric.
    notes : tuple of Note
        What the reader should know.
    """

    name: str
    words: str
    cells: Cells
    moments: CellMoments
    defined: IntArray
    binary: bool
    clustered: bool = False
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
        Whether rows are wanted too, unless counts are sufficient.

    Returns
    -------
    Measured
    """
    found = find_metric(metric)
    u, w, needs = _quantities(table, found)
    simple = table.roles.weight is None and table.roles.cluster is None
    if isinstance(found, RateMetric):
        cells = table.label_cells(found.roles)
        linear = np.array([found.u, found.w], dtype=np.float64)
        moments = transform_quantities(moments_of(cells), linear)
        by_label = np.stack([cells.sums[f"rows{k}"] for k in range(len(found.w))], axis=1)
        defined = by_label @ linear[1]
        binary = simple
    else:
        odd = ((u != 0.0) & (u != 1.0)) | ((w != 0.0) & (w != 1.0)) | (u > w)
        sums = {"defined": (w != 0.0).cast(nw.Float64), "odd": odd.cast(nw.Float64)}
        cells = table.cells({"u": u, "w": w}, needs, sums=sums)
        moments = moments_of(cells)
        defined = cells.sums["defined"]
        binary = simple and not cells.sums["odd"].any()
    _check_size(moments, found.name)
    units, notes = None, dropped_notes(cells)
    if rows and not binary:
        if int(cells.n.sum()) * n_subgroups(cells) > WORK_LIMIT:
            notes = (*notes, _MOMENTS_ONLY)
        else:
            units = _units(table.rows({"u": u, "w": w}, needs))
    return Measured(
        name=found.name,
        words=found.words,
        clustered=table.roles.cluster is not None,
        cells=cells,
        moments=moments,
        defined=defined.round().astype(np.int64),
        binary=binary,
        units=units,
        notes=notes,
    )


def _check_size(moments: CellMoments, name: str) -> None:
    """Raise if numbers are so small that their squares vanish: no variance could be trusted."""
    size = np.sqrt(moments.product.diagonal(axis1=1, axis2=2).sum(axis=0) / moments.n.sum())
    if ((size < SMALLEST) & (moments.total != 0.0).any(axis=0)).any():
        raise DataError(
            f"The values or weights of {name!r} are below {SMALLEST:g} in size, where squares"
            " vanish. Rescale them."
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


def dropped_notes(cells: Cells | Rows | RowReader) -> tuple[Note, ...]:
    """Say how many rows were left out because a value was missing."""
    if not cells.dropped:
        return ()
    message = f"{cells.dropped} rows with a missing value in a column that is used were left out."
    return (Note(code="missing-dropped", message=message),)


def _quantities(table: Table, metric: AnyMetric) -> tuple[nw.Expr, nw.Expr, Needs]:
    """Return the row quantities u and w, and the roles that they use."""
    if isinstance(metric, Metric):
        return _expression(table, metric.numerator), _expression(table, metric.denominator), {}
    if isinstance(metric, RealMetric):
        return *metric.build(table), metric.needs
    needs: Needs = dict.fromkeys(metric.roles, "label")
    u, w = nw.lit(0.0), nw.lit(0.0)
    for labels, *places in zip(label_combinations(metric.roles), metric.u, metric.w, strict=True):
        match = table.has_labels(metric.roles, labels).cast(nw.Float64)
        u, w = u + match * places[0], w + match * places[1]
    return u, w, needs


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
