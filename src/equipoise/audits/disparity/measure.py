"""From a metric and a table to the moments that the engines take."""

from dataclasses import dataclass

import narwhals as nw
import numpy as np

from equipoise._typing import FloatArray, IntArray
from equipoise.audits.asking import Asking
from equipoise.data.columns import Needs
from equipoise.data.groups import n_subgroups
from equipoise.data.metrics import Metric, RateMetric, RealMetric, find_metric
from equipoise.data.query import CellRows, NarrowRows
from equipoise.data.table import Quantity, Rows, Sums, Table
from equipoise.exceptions import DataError
from equipoise.moments import CellMoments, transform_quantities
from equipoise.results.finding import Note
from equipoise.stats.disparity.gaps import Units

__all__ = ["SMALLEST", "WORK_LIMIT", "Measured", "dropped_notes", "measure"]

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
    moments : CellMoments
        Sums of (u, w), with the labels of the cells.
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
    moments: CellMoments
    defined: IntArray
    binary: bool
    clustered: bool = False
    units: Units | None = None
    notes: tuple[Note, ...] = ()


def measure(table: Table, metric: str | Metric, *, rows: bool = True) -> Asking[Measured]:
    """Sum a metric over the cells of a table.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : str or Metric
        Name, or a metric of the user's own.
    rows : bool
        Whether rows are wanted too, unless counts are sufficient.

    Yields
    ------
    Sums, then Rows if they are needed

    Returns
    -------
    Measured
    """
    found = find_metric(metric)
    binary = table.roles.weight is None and table.roles.cluster is None
    change = np.eye(2)
    if isinstance(found, RateMetric):
        declared = table.label_sums(found.roles)
        change = np.array([found.u, found.w], dtype=np.float64)
        cells: CellMoments = yield declared
        moments = transform_quantities(cells, change)
        defined = cells.sums @ change[1]
    else:
        declared = _declared(table, found)
        moments = yield declared
        defined, odd = moments.sums.T
        binary = binary and not odd.any()
    _check_size(moments, found.name)
    units, notes = None, dropped_notes(moments.dropped)
    if rows and not binary:
        if int(moments.n.sum()) * n_subgroups(moments) > WORK_LIMIT:
            notes = (*notes, _MOMENTS_ONLY)
        else:
            narrow: NarrowRows = yield Rows(declared)
            units = _units(narrow.read(), change)
    return Measured(
        name=found.name,
        words=found.words,
        clustered=table.roles.cluster is not None,
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


def dropped_notes(dropped: int) -> tuple[Note, ...]:
    """Say how many rows were left out because a value was missing."""
    if not dropped:
        return ()
    message = f"{dropped} rows with a missing value in a column that is used were left out."
    return (Note(code="missing-dropped", message=message),)


def _declared(table: Table, metric: Metric | RealMetric) -> Sums:
    """Declare the row quantities u and w; counted are rows with a w, and those not 0 or 1."""
    if isinstance(metric, Metric):
        u, w = _own(table, metric.numerator), _own(table, metric.denominator)
        needs: Needs = {}
    else:
        (u, w), needs = metric.build(table), metric.needs
    odd = ((u != 0.0) & (u != 1.0)) | ((w != 0.0) & (w != 1.0)) | (u > w)
    terms = {"u": u, "w": w, "defined": (w != 0.0), "odd": odd}
    # Expressions of the user's own may differ under one name.
    owner = id(u) if isinstance(metric, Metric) else None
    quantities = [Quantity(metric.name, (owner, term), value) for term, value in terms.items()]
    return table.sums(quantities[:2], needs, counted=quantities[2:])


def _own(table: Table, quantity: "nw.Expr | str | None") -> nw.Expr:
    if quantity is None:
        return nw.lit(1.0)
    if isinstance(quantity, str):
        table.check_column(quantity)
        return nw.col(quantity).cast(nw.Float64)
    return quantity.cast(nw.Float64)


def _units(rows: CellRows, change: FloatArray) -> Units:
    weight = 1.0 if rows.weight is None else rows.weight
    u, w = change @ np.array(rows.values) * weight
    return Units(u=u, w=w, cell=rows.cell, unit=rows.unit, count=rows.count)
