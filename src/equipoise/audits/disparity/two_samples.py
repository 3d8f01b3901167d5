"""What two models, two periods or two tables leave of each group, read in one scan each.

Counts of decisions gained and lost suffice for rates of independent unweighted rows; everything
else reads the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np

from equipoise._checks import nearest, quoted
from equipoise._typing import AnyArray, BoolArray, FloatArray
from equipoise.audits.asking import Asking
from equipoise.audits.disparity.measure import dropped_notes
from equipoise.audits.disparity.sides import (
    FinestGroups,
    finest_groups,
    metric_needs,
    row_quantities,
)
from equipoise.data.groups import label_of
from equipoise.data.metrics import AnyMetric, Metric, RateMetric
from equipoise.data.query import CellRows, NarrowRows
from equipoise.data.table import Quantity, Rows, Sums, Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments, sum_by
from equipoise.results.finding import Note
from equipoise.stats.disparity.change import (
    PairedCounts,
    PairedRows,
    PeriodCounts,
    PeriodRows,
)

__all__ = ["ChangeSample", "Sample", "read_samples"]

Sample: TypeAlias = PairedCounts | PeriodCounts | PairedRows | PeriodRows
ChangeKind: TypeAlias = Literal["models", "periods", "tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSample:
    """What was read: the table of changes, its groups, and words for old and new."""

    table: Sample
    groups: FinestGroups
    kind: ChangeKind
    old: str
    new: str
    notes: tuple[Note, ...]
    n_clusters: int | None = None

    @property
    def alike(self) -> bool:
        """Whether two models decide alike on every row."""
        if isinstance(self.table, PairedCounts):
            return not (self.table.lost + self.table.gained).any()
        if isinstance(self.table, PairedRows):
            table = self.table
            return bool(
                np.array_equal(table.u_old, table.u_new)
                and np.array_equal(table.w_old, table.w_new)
            )
        return False


def read_samples(
    table: Table, metric: AnyMetric, baseline: object, candidate: object, period: str | None
) -> Asking[ChangeSample]:
    """Read two models, two tables or two periods, whatever `baseline` names.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : AnyMetric
        What is compared.
    baseline : object
        A column, values of the period, or another table.
    candidate : object
        A column, values of the period, or None.
    period : str, optional
        Column of the period.

    Yields
    ------
    Sums, then Rows if counts do not suffice

    Returns
    -------
    ChangeSample
    """
    if isinstance(baseline, Table):
        if candidate is not None or period is not None:
            raise InvalidParameterError(
                "with another `Audit` as `baseline` the candidate is this one; leave out"
                " `candidate` and `period`."
            )
        return (yield from _two_tables(table, baseline, metric))
    if period is None and isinstance(baseline, str) and baseline in table.schema:
        return (yield from _two_models(table, metric, baseline, candidate))
    column = table.roles.time if period is None else period
    if column is None:
        if isinstance(baseline, str):
            table.check_column(baseline)
        raise InvalidParameterError(
            f"`baseline` {baseline!r} is neither a column nor another `Audit`; to compare periods,"
            " name their column in `period` or in the role `time`."
        )
    return (yield from _two_periods(table.with_roles(time=column), metric, baseline, candidate))


def _two_models(
    table: Table, metric: AnyMetric, baseline: str, candidate: object
) -> Asking[ChangeSample]:
    needs = dict(metric_needs(metric))
    role = next((role for role in ("y_pred", "y_score") if role in needs), None)
    if role is None:
        raise InvalidParameterError(
            f"`metric` {metric.name!r} uses neither decision nor score, so that two models cannot"
            " differ in it; name periods, or another metric."
        )
    column = table.roles.column(role) if candidate is None else candidate
    if not isinstance(column, str):
        raise InvalidParameterError(f"`candidate` must name a column; got {candidate!r}.")
    if column == baseline:
        raise InvalidParameterError(
            f"`baseline` and `candidate` are the same column {column!r}; name two."
        )
    view = table.with_roles(**{role: column, "baseline": baseline})
    if role == "y_score" and not all(view.is_number(name) for name in (baseline, column)):
        raise DataError(f"Scores must be numeric; {baseline!r} and {column!r} are not both.")
    needs["baseline"] = needs[role]
    before = table.with_roles(**{role: baseline})
    (u0, w0), (u1, w1) = row_quantities(before, metric), row_quantities(view, metric)
    name = ("models", baseline, column)

    def quantity(term: str, value: nw.Expr) -> Quantity:
        return Quantity(metric.name, (*name, term), value)

    words: dict[str, Any] = {"kind": "models", "old": baseline, "new": column}
    columns = table.roles.group
    if _fixed_denominator(metric) and _plain(table):
        counted = [
            quantity("both", u0 * u1),
            quantity("lost", u0 * (w0 - u1)),
            quantity("gained", (w0 - u0) * u1),
            quantity("neither", (w0 - u0) * (w0 - u1)),
        ]
        cells: CellMoments = yield view.sums((), needs, counted=counted, order=1)
        groups = finest_groups([cells], columns)
        both, lost, gained, neither = sum_by(groups.place, cells.sums, groups.size).T
        return ChangeSample(
            table=PairedCounts(both=both, lost=lost, gained=gained, neither=neither),
            groups=groups,
            notes=dropped_notes(cells.dropped),
            **words,
        )
    declared = view.sums(
        [quantity(term, part) for term, part in zip("abcd", (u0, w0, u1, w1), strict=True)],
        needs,
        order=1,
    )
    cells, rows = yield from _rows(declared)
    groups = finest_groups([cells], columns)
    parts = _weighted(rows)
    counts = (rows.values[1] != 0) | (rows.values[3] != 0)
    place, unit, n = _places(rows, groups.place, counts, groups.size)
    return ChangeSample(
        table=PairedRows(
            **dict(zip(("u_old", "w_old", "u_new", "w_new"), parts, strict=True)),
            cell=place,
            unit=unit,
            n=n,
        ),
        groups=groups,
        notes=dropped_notes(cells.dropped),
        n_clusters=_n_clusters(table, unit),
        **words,
    )


def _fixed_denominator(metric: AnyMetric) -> bool:
    """Whether the rows that count do not depend on the decision: pairs of u tell all."""
    if not isinstance(metric, RateMetric):
        return False
    # In pairs (.., decision 1), (.., decision 0).
    return metric.w[0::2] == metric.w[1::2]


def _plain(table: Table) -> bool:
    return table.roles.weight is None and table.roles.cluster is None


def _rows(declared: Sums) -> Asking[tuple[CellMoments, CellRows]]:
    cells: CellMoments = yield declared
    narrow: NarrowRows = yield Rows(declared)
    return cells, narrow.read()


def _weighted(rows: CellRows) -> list[FloatArray]:
    """Return the quantities times weights, a row as often as it counts."""
    weight = 1.0 if rows.weight is None else rows.weight
    return [np.repeat(part * weight, _times(rows)) for part in rows.values]


def _times(rows: CellRows) -> AnyArray:
    return np.array(1) if rows.count is None else rows.count.round().astype(np.int64)


def _places(
    rows: CellRows, place: AnyArray, counts: BoolArray, size: int
) -> tuple[AnyArray, AnyArray, FloatArray]:
    """Return group and unit of each row, and the rows that count by group."""
    times = _times(rows)
    cell = np.repeat(place[rows.cell], times)
    unit = (
        np.arange(len(cell))
        if rows.unit is None
        else np.repeat(np.unique(rows.unit, return_inverse=True)[1], times)
    )
    n = np.bincount(cell[np.repeat(counts, times)], minlength=size).astype(np.float64)
    return cell, unit, n


def _n_clusters(table: Table, unit: AnyArray) -> int | None:
    return None if table.roles.cluster is None else len(np.unique(unit))


def _declared(table: Table, metric: AnyMetric, by: Sequence[Quantity], needs: Any) -> Sums:
    """Declare u and w by group and further keys, and whether they are counts of ones."""
    u, w = row_quantities(table, metric)
    owner = id(u) if isinstance(metric, Metric) else None

    def quantity(term: str, value: nw.Expr) -> Quantity:
        return Quantity(metric.name, ("sums", owner, term), value)

    odd = ((u != 0.0) & (u != 1.0)) | ((w != 0.0) & (w != 1.0)) | (u > w)
    return table.sums(
        [quantity("u", u), quantity("w", w)],
        {**metric_needs(metric), **needs},
        counted=[quantity("defined", w != 0.0), quantity("odd", odd)],
        by=by,
        order=1,
    )


def _two_periods(
    table: Table, metric: AnyMetric, baseline: object, candidate: object
) -> Asking[ChangeSample]:
    column = table.roles.column("time")
    key = Quantity(column, (), nw.col(column))
    declared = _declared(table, metric, [key], {"time": "number"})
    cells: CellMoments = yield declared
    period = cells.labels[-1]
    known = sorted(set(period.tolist()))
    old = _periods("baseline", baseline, known, column)
    rest = sorted(set(known) - set(old))
    new = rest if candidate is None else _periods("candidate", candidate, known, column)
    both = sorted(set(old) & set(new))
    if both or not new:
        raise InvalidParameterError(
            f"`baseline` and `candidate` must be different periods of {column!r}; "
            + (f"both have {both[0]!r}." if both else "no other period is left.")
        )
    late, early = np.isin(period, new), np.isin(period, old)
    groups = finest_groups([cells], table.roles.group)
    words: dict[str, Any] = {
        "kind": "periods",
        "old": _period_words(old),
        "new": _period_words(new),
    }
    if _plain(table) and not cells.sums[:, 1].any():
        return ChangeSample(
            table=_period_counts(cells, groups, late, early),
            groups=groups,
            notes=dropped_notes(cells.dropped),
            **words,
        )
    narrow: NarrowRows = yield Rows(declared)
    rows = narrow.read()
    u, w = _weighted(rows)
    chosen = (late | early)[rows.cell]
    cell, unit, n = _places(rows, groups.place, chosen & (rows.values[1] != 0), groups.size)
    keep = np.repeat(chosen, _times(rows))
    new_row = np.repeat(late[rows.cell], _times(rows))
    return ChangeSample(
        table=PeriodRows(
            u=u[keep],
            w=w[keep],
            new=new_row[keep],
            cell=cell[keep],
            unit=np.unique(unit[keep], return_inverse=True)[1],
            n=n,
        ),
        groups=groups,
        notes=dropped_notes(cells.dropped),
        n_clusters=_n_clusters(table, unit[keep]),
        **words,
    )


def _period_counts(
    cells: CellMoments, groups: FinestGroups, late: BoolArray, early: BoolArray
) -> PeriodCounts:
    def count(column: FloatArray, rows: BoolArray) -> FloatArray:
        sums = np.bincount(groups.place, weights=column * rows, minlength=groups.size)
        return np.asarray(sums, dtype=np.float64)

    ones, n = cells.total[:, 0], cells.sums[:, 0]
    return PeriodCounts(
        n_old=count(n, early),
        ones_old=count(ones, early),
        n_new=count(n, late),
        ones_new=count(ones, late),
    )


def _periods(name: str, given: object, known: list[str], column: str) -> list[str]:
    if given is None or isinstance(given, (dict, bool)):
        raise InvalidParameterError(f"`{name}` must name periods of {column!r}; got {given!r}.")
    values = given if isinstance(given, (list, tuple)) else [given]
    labels = [label_of(value) for value in values]
    for label in labels:
        if label not in known:
            shown = quoted(known[:20]) + (", ..." if len(known) > 20 else "")
            raise InvalidParameterError(
                f"`{name}` {label!r} is neither a column nor a period of {column!r}."
                f"{nearest(label, known)} Periods: {shown}."
            )
    if not labels:
        raise InvalidParameterError(f"`{name}` names no period of {column!r}.")
    return sorted(set(labels))


def _period_words(periods: list[str]) -> str:
    if len(periods) == 1:
        return periods[0]
    return f"{periods[0]} to {periods[-1]} ({len(periods)} periods)"


def _two_tables(table: Table, other: Table, metric: AnyMetric) -> Asking[ChangeSample]:
    for role in ("group", "cluster", "weight"):
        mine, theirs = getattr(table.roles, role), getattr(other.roles, role)
        alike = mine == theirs if role == "group" else (mine is None) == (theirs is None)
        if not alike:
            raise InvalidParameterError(
                f"two tables are compared with the same roles; `{role}` is {theirs!r} in the"
                f" baseline and {mine!r} here."
            )
    if table == other:
        raise InvalidParameterError("`baseline` is the same table; pass another `Audit`.")
    clustered = table.roles.cluster is not None
    declared = []
    for view in (other, table):
        by = []
        if clustered:
            column = view.roles.column("cluster")
            by = [Quantity(column, "cluster", nw.col(column))]
        declared.append(_declared(view, metric, by, {}))
    old: CellMoments = yield declared[0]
    new: CellMoments = yield declared[1]
    groups = finest_groups([old, new], table.roles.group)
    late = np.repeat([False, True], [len(old.n), len(new.n)])
    notes = dropped_notes(old.dropped + new.dropped)
    words: dict[str, Any] = {"kind": "tables", "old": "the baseline table", "new": "this table"}
    odd = old.sums[:, 1].any() or new.sums[:, 1].any()
    if _plain(table) and not odd:
        joined = _joined(old, new)
        counts = _period_counts(joined, groups, late, ~late)
        return ChangeSample(table=counts, groups=groups, notes=notes, **words)
    if clustered:
        both = _joined(old, new)
        # Clusters are known by their label, so that a person may be in both tables.
        unit = np.unique(
            np.concatenate([old.labels[-1], new.labels[-1]]).astype(str), return_inverse=True
        )[1]
        sample = PeriodRows(
            u=both.total[:, 0],
            w=both.total[:, 1],
            new=late,
            cell=groups.place,
            unit=unit,
            n=sum_by(groups.place, both.sums[:, :1], groups.size)[:, 0],
        )
        return ChangeSample(
            table=sample, groups=groups, notes=notes, n_clusters=int(unit.max()) + 1, **words
        )
    parts = []
    start = 0
    for own, cells in zip(declared, (old, new), strict=True):
        narrow: NarrowRows = yield Rows(own)
        rows = narrow.read()
        u, w = _weighted(rows)
        place = groups.place[start : start + len(cells.n)]
        cell, _, n = _places(rows, place, rows.values[1] != 0, groups.size)
        parts.append((u, w, cell, n))
        start += len(cells.n)
    u, w, cell = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return ChangeSample(
        table=PeriodRows(
            u=u,
            w=w,
            new=np.repeat([False, True], [len(part[0]) for part in parts]),
            cell=cell,
            unit=np.arange(len(u)),
            n=parts[0][3] + parts[1][3],
        ),
        groups=groups,
        notes=notes,
        **words,
    )


def _joined(old: CellMoments, new: CellMoments) -> CellMoments:
    """Put the sums of two tables one after the other, without labels."""
    return CellMoments(
        n=np.concatenate([old.n, new.n]),
        total=np.concatenate([old.total, new.total]),
        product=np.concatenate([old.product, new.product]),
        n_units=old.n_units + new.n_units,
        sums=np.concatenate([old.sums, new.sums]),
    )
