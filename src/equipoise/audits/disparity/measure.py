"""From a metric and a table to the moments that the engines take."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._checks import SMALLEST
from equipoise._typing import IntArray
from equipoise.audits.asking import Asking
from equipoise.audits.words import dropped_notes
from equipoise.data.columns import Needs
from equipoise.data.groups import n_subgroups
from equipoise.data.metrics import AnyMetric, Metric, RateMetric, find_metric
from equipoise.data.query import CellRows, NarrowRows
from equipoise.data.table import Quantity, Rows, Sums, Table
from equipoise.exceptions import DataError
from equipoise.moments import CellMoments, transform_quantities
from equipoise.results.finding import Note
from equipoise.results.words import MetricWords
from equipoise.stats.disparity.gaps import Units

if TYPE_CHECKING:
    from equipoise.stats.disparity.survey import SurveyDesign

__all__ = [
    "WORK_LIMIT",
    "Measured",
    "measure",
    "metric_quantities",
    "read_units",
]

WORK_LIMIT = 100_000_000
"""Rows times groups beyond which a metric is tested from its moments, not from its rows."""

MOST_SENT = 5_000_000
"""The same where the rows are on a cluster, which they would have to leave."""


_MOMENTS_ONLY = Note(
    code="moments-only",
    message="With this many rows and groups the tests use sums alone (Euclidean likelihood), which"
    " agree with the empirical likelihood in groups of thousands.",
)


CANCELLED = 1e-8
"""Variance within groups, as a part of the squares it is computed from, that is lost in them."""


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
    centre : float
        What was subtracted from the values: u is that of the metric less `centre` times w.
    notes : tuple of Note
        What the reader should know.
    design : SurveyDesign, optional
        Of a stratified sample; the moments are then its own.
    zero_one : bool
        Whether the metric is a rate: numerator and denominator of each row are 0 or 1.
    told : MetricWords, optional
        How the metric is told, where that does not follow from its name.
    """

    name: str
    words: str
    moments: CellMoments
    defined: IntArray
    binary: bool
    clustered: bool = False
    units: Units | None = None
    centre: float = 0.0
    notes: tuple[Note, ...] = ()
    design: "SurveyDesign | None" = None
    zero_one: bool = False
    told: MetricWords | None = None


def measure(
    table: Table,
    metric: str | AnyMetric,
    *,
    reference: Mapping[str, Any] | None = None,
    rows: bool = True,
    centred: bool = False,
    also: Needs | None = None,
) -> Asking[Measured]:
    """Sum a metric over the cells of a table.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : str or Metric
        Name, or a metric of the user's own.
    reference : mapping, optional
        Columns and labels of the cells that groups are compared with; by default everybody.
    rows : bool
        Whether rows are wanted too, unless counts are sufficient.
    centred : bool
        Whether values may be measured from `Measured.centre`, where squares of the values
        themselves would swallow their variance.
    also : mapping of str to {"label", "number"}, optional
        Further roles that must not be missing: those of metrics that are compared with this one.

    Yields
    ------
    Sums, then Rows if they are needed

    Returns
    -------
    Measured
    """
    found = find_metric(metric)
    binary = table.roles.weight is None and table.roles.cluster is None
    cells = [(column, str(label)) for column, label in (reference or {}).items()]
    declared = _declared(table, found, cells, also=also)
    if isinstance(found, RateMetric) and binary and declared.rate is not None:
        # Counts of the labels serve every rate of them.
        counts: CellMoments = yield table.label_sums(found.roles)
        change = np.array([found.u, found.w], dtype=np.float64)
        moments = replace(
            transform_quantities(counts, change), sums=(counts.sums @ change[1])[:, None]
        )
    else:
        moments = yield declared
    defined = moments.sums[:, 0]
    zero_one = not moments.sums[:, 1:].any()
    binary = binary and zero_one
    _check_size(moments, found.name)
    centre = _centre(moments) if centred and not binary else 0.0
    if centre:
        declared = _declared(table, found, cells, centre=centre)
        moments = yield declared
    units, notes = None, dropped_notes(moments.dropped)
    if rows and not binary:
        far = table.frame.implementation.is_spark_like()
        limit = min(WORK_LIMIT, MOST_SENT) if far else WORK_LIMIT
        if int(moments.n.sum()) * n_subgroups(moments) > limit:
            notes = (*notes, _MOMENTS_ONLY)
        else:
            narrow: NarrowRows = yield Rows(declared)
            units = _units(narrow.read())
    return Measured(
        name=found.name,
        words=found.words,
        clustered=table.roles.cluster is not None,
        moments=moments,
        defined=defined.round().astype(np.int64),
        binary=binary,
        units=units,
        centre=centre,
        notes=notes,
        zero_one=zero_one,
    )


def _centre(moments: CellMoments) -> float:
    """Return a number near the mean where values differ from it by little, else zero."""
    u, w = moments.total.T
    mean = np.divide(u, w, out=np.zeros_like(u), where=w != 0.0)
    square = moments.product[:, 0, 0].sum()
    spread = square - (mean * moments.product[:, 0, 1]).sum()
    if not w.sum() or abs(spread) > CANCELLED * square:
        return 0.0
    return float(f"{u.sum() / w.sum():.6g}")


def read_units(table: Table, metric: str | AnyMetric) -> Asking[Units]:
    """Read the rows of a metric, however many.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : str or Metric
        Name, or a metric of the user's own.

    Yields
    ------
    Rows

    Returns
    -------
    Units
    """
    narrow: NarrowRows = yield Rows(_declared(table, find_metric(metric), []))
    return _units(narrow.read())


def _check_size(moments: CellMoments, name: str) -> None:
    """Raise if numbers are so small that their squares vanish: no variance could be trusted."""
    size = np.sqrt(moments.product.diagonal(axis1=1, axis2=2).sum(axis=0) / moments.n.sum())
    if ((size < SMALLEST) & (moments.total != 0.0).any(axis=0)).any():
        raise DataError(
            f"The values or weights of {name!r} are below {SMALLEST:g} in size, where squares"
            " vanish. Rescale them."
        )


def metric_quantities(table: Table, metric: AnyMetric) -> tuple[Quantity, Quantity]:
    """Return numerator and denominator of a metric as quantities that can be summed."""
    if isinstance(metric, RateMetric):
        return table.rate_quantities(metric.roles, (metric.u, metric.w))
    u, w = metric.build(table)
    owner = _owner(metric)
    return Quantity(metric.name, (owner, "u"), u), Quantity(metric.name, (owner, "w"), w)


def _owner(metric: AnyMetric) -> int | None:
    """Tell quantities of one name apart: expressions of the user's own may differ under it."""
    return id(metric) if isinstance(metric, Metric) else None


def _declared(
    table: Table,
    metric: AnyMetric,
    reference: list[tuple[str, str]],
    *,
    centre: float = 0.0,
    also: Needs | None = None,
) -> Sums:
    """Declare the row quantities u and w; counted are rows with a w, and those not 0 or 1."""
    own = metric.needs
    needs = {**(also or {}), **own}
    if isinstance(metric, RateMetric) and needs == own:
        return table.rate_sums(metric.roles, (metric.u, metric.w), reference=reference)
    u, w = metric_quantities(table, metric)
    counted = [w]
    if not isinstance(metric, RateMetric):
        one, two = u.value, w.value
        odd = (one != 0.0) & (one != 1.0)
        if not w.is_one:
            odd = odd | ((two != 0.0) & (two != 1.0)) | (one > two)
        owner = _owner(metric)
        counted = [
            w if w.is_one else Quantity(metric.name, (owner, "defined"), two != 0.0),
            Quantity(metric.name, (owner, "odd"), odd),
        ]
    if centre:
        u = Quantity(u.name, (u.detail, centre), u.value - centre * w.value)
    return table.sums((u, w), needs, counted=counted, order=3, reference=reference)


def _units(rows: CellRows) -> Units:
    weight = 1.0 if rows.weight is None else rows.weight
    u, w = np.array(rows.values) * weight
    # Clusters may be any integers, those of Units number its rows.
    unit = None if rows.unit is None else np.unique(rows.unit, return_inverse=True)[1]
    return Units(u=u, w=w, cell=rows.cell, unit=unit, count=rows.count)
