"""Whether gaps changed between two models on the same rows, two periods, or two tables.

One scan reads what each leaves of a group. Counts of decisions gained and lost suffice for rates of
independent unweighted rows; everything else reads the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import narwhals as nw
import numpy as np

from equipoise._checks import (
    check_depth,
    check_fraction,
    check_number,
    check_option,
    nearest,
    quoted,
)
from equipoise._typing import Adjust, AnyArray, BoolArray, ChangeDirection, FloatArray, GapSign
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.disparity.questions import CompareDetails
from equipoise.audits.disparity.sides import (
    FinestGroups,
    Reference,
    Sides,
    finest_groups,
    sides_of,
)
from equipoise.audits.disparity.subgroups import finite
from equipoise.audits.words import dropped_notes
from equipoise.data.groups import label_of
from equipoise.data.metrics import AnyMetric, Metric, RateMetric, find_metric
from equipoise.data.query import CellRows, NarrowRows
from equipoise.data.table import Quantity, Rows, Sums, Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments, sum_by
from equipoise.results.estimand import Estimand, EstimandKind
from equipoise.results.finding import (
    INTERVAL_UNADJUSTED,
    ConfidenceInterval,
    Decision,
    Finding,
    JointTest,
    Note,
)
from equipoise.results.formats import counted
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.change import (
    Changes,
    ChangeTest,
    PairedCounts,
    PairedRows,
    PeriodCounts,
    PeriodRows,
    gap_changes,
)
from equipoise.stats.disparity.growth import GapKind
from equipoise.stats.multiplicity import adjusted_p_values

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = [
    "ChangeSample",
    "Sample",
    "compare",
    "read_samples",
]


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
    needs = dict(metric.needs)
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
    (u0, w0), (u1, w1) = metric.build(before), metric.build(view)
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
    u, w = metric.build(table)
    owner = id(u) if isinstance(metric, Metric) else None

    def quantity(term: str, value: nw.Expr) -> Quantity:
        return Quantity(metric.name, ("sums", owner, term), value)

    odd = ((u != 0.0) & (u != 1.0)) | ((w != 0.0) & (w != 1.0)) | (u > w)
    return table.sums(
        [quantity("u", u), quantity("w", w)],
        {**metric.needs, **needs},
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


_METHODS = {
    "tango": "Tango score intervals of paired changes, MOVER for gaps",
    "wilson": "score tests between periods, MOVER on Wilson intervals for gaps",
    "influence": "influence functions summed by unit, t law with Bell-McCaffrey degrees",
}
_STATUS = {
    "empty": Note(
        code="empty-denominator",
        message="The metric is not defined on any row of this group, or of one of its periods.",
    ),
    "too_few": Note(
        code="too-small",
        message="Too few independent units for a test: at least 4 effective ones and 2 degrees of"
        " freedom are needed on each side.",
    ),
    "no_variation": Note(
        code="degenerate",
        message="Every row changed by the same amount; there is no variance to test with.",
    ),
}
_ONE_SIDE = {
    only_before: Note(
        code="one-side-only",
        message=f"The metric is defined on rows of this group {when} only: there is no change to"
        " test, and no gap is shown to be within a margin.",
    )
    for only_before, when in ((True, "before the change"), (False, "after the change"))
}
FAMILY_WORDS = {
    "bh": "adjusted for false discoveries (Benjamini-Hochberg)",
    "by": "adjusted for false discoveries under any dependence (Benjamini-Yekutieli)",
    "holm": "adjusted by Holm's method",
    "bonferroni": "adjusted by Bonferroni's method",
    "none": "not adjusted",
}


@question_method
def compare(
    self: "Audit",
    metric: str | Metric,
    *,
    baseline: Any,
    candidate: Any = None,
    period: str | None = None,
    reference: Reference = "population",
    margin: float | None = None,
    gap: GapSign = "absolute",
    direction: ChangeDirection | None = None,
    depth: int | None = None,
    adjust: Adjust = "holm",
    alpha: float = 0.05,
    confidence_level: float = 0.95,
) -> Asking[AuditResult]:
    """Say whether gaps changed, and whom the change hurt.

    The null hypotheses are that a subgroup's value did not change, that its gap to the reference
    did not change, and that its gap did not grow; that of `joint` is that no gap changed.

    Parameters
    ----------
    metric : str or Metric
        A name such as ``"fpr"``, or a metric of your own.
    baseline : str, value of the period, list of such values, or Audit
        What was before: the column of an earlier decision (score) on the same rows, values of
        `period`, or another `Audit` with the same roles.
    candidate : str, value of the period or list of such values, optional
        What came after; by default the column of `y_pred` (`y_score`), or all other periods.
    period : str, optional
        Column of the period; by default the role `time`.
    reference : "population", "rest" or dict
        What gaps are measured against. Shares of the population are those of all rows compared.
    margin : float, optional
        Growth of a gap that is tolerated; by default none, and nothing is shown to be within it.
    gap : {"absolute", "signed"}
        Whether the size of a gap must not grow, or the gap with its sign in one direction.
    direction : {"increase", "decrease"}, optional
        For ``gap="signed"``, and only there.
    depth : int, optional
        How many group columns may be combined; by default all.
    adjust : {"bh", "by", "holm", "bonferroni", "none", "auto"}
        Adjustment within each family: changes of values, changes of gaps, growth of gaps; "auto"
        is Holm.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Level of the intervals of changes; each stands alone.

    Returns
    -------
    AuditResult
        Three findings for each subgroup (gap change, gap growth, change); `details` has the values
        and gaps before and after, the counts of changed decisions, and the gate.

    Examples
    --------
    A lower threshold labels more people high risk. Does the gap in false positives grow?

    >>> import equipoise as eq
    >>> audit = eq.Audit({"race": ["A"] * 400 + ["B"] * 600, "y": [0] * 1000,
    ...                   "old": [1] * 80 + [0] * 320 + [1] * 90 + [0] * 510,
    ...                   "new": [1] * 120 + [0] * 280 + [1] * 96 + [0] * 504},
    ...                  group="race", y_true="y", y_pred="new")
    >>> result = audit.compare("fpr", baseline="old", reference="rest")
    >>> finding = result.findings[0]
    >>> print(finding.group, finding.estimand, f"{finding.estimate:.3f}", finding.decision)
    race=A fpr gap change 0.090 detected
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    check_option("adjust", adjust, Adjust)
    check_depth(depth)
    kind = _gap_kind(gap, direction)
    tolerated = None if margin is None else check_number("margin", margin, low=0.0)
    found = find_metric(metric)
    sample = yield from read_samples(self.table, found, _other(baseline), candidate, period)
    sides = sides_of(sample.groups, reference, depth, question="compare", numbers=False)
    changes = gap_changes(
        sample.table,
        sides.own,
        sides.other,
        names=sides.names,
        population=sides.population,
        gap=kind,
    )
    rule: Adjust = "holm" if adjust == "auto" else adjust
    found_words = {"metric": found.name, "noun": found.words}
    teller = _Teller(
        changes=changes,
        sides=sides,
        alpha=alpha,
        level=confidence_level,
        adjust=rule,
        margin=tolerated,
        words=found_words,
    )
    notes = [*sample.notes, teller.family_note()]
    if sample.alike:
        notes.append(
            Note(
                code="decide-alike",
                message=f"{sample.old} and {sample.new} agree on every row that counts: there is"
                " no change to test.",
            )
        )
    return AuditResult(
        audit="compare",
        null=f"no gap to {sides.words} changed between {sample.old} and {sample.new}",
        alternative="some gap changed",
        alpha=alpha,
        method=_METHODS[changes.method],
        n=round(float(sample.table.n.sum())),
        findings=teller.findings(),
        joint=teller.joint(),
        notes=tuple(notes),
        details=CompareDetails(
            metric=found.name,
            kind=sample.kind,
            baseline=sample.old,
            candidate=sample.new,
            reference=sides.words,
            margin=tolerated,
            gap=gap,
            direction=direction,
            adjust=rule,
            alike=sample.alike,
            n_clusters=sample.n_clusters,
            changes=teller.values(sample.table),
            gate=teller.gate(),
        ),
    )


def _other(baseline: object) -> object:
    """Return the table of another audit, or what was given."""
    table = getattr(baseline, "table", None)
    return table if isinstance(table, Table) else baseline


def _gap_kind(gap: GapSign, direction: ChangeDirection | None) -> GapKind:
    check_option("gap", gap, GapSign)
    if (gap == "signed") != (direction is not None):
        raise InvalidParameterError(
            '`direction` ("increase" or "decrease") belongs to `gap="signed"`, and only there; got'
            f" gap {gap!r} with direction {direction!r}."
        )
    if direction is None:
        return "absolute"
    check_option("direction", direction, ChangeDirection)
    return direction


@dataclass(frozen=True, slots=True, kw_only=True)
class _Teller:
    """Writes findings, joint test and details."""

    changes: Changes
    sides: Sides
    alpha: float
    level: float
    adjust: Adjust
    margin: float | None
    words: dict[str, str]

    def findings(self) -> tuple[Finding, ...]:
        """Gap changes first, then growth, then changes of values."""
        gaps = self._tested("gap change", self.changes.gap_change)
        values = self._tested("change", self.changes.change)
        return (*gaps, *self._growth(), *values)

    def _estimand(self, kind: EstimandKind) -> Estimand:
        return Estimand(self.words["metric"], kind, scale="difference", noun=self.words["noun"])

    def _shared(self, j: int, kind: EstimandKind) -> dict[str, Any]:
        return {
            "group": self.changes.groups[j],
            "estimand": self._estimand(kind),
            "n": round(float(self.changes.n[j])),
            "method": self.changes.method,
            "reference": "" if kind == "change" else self.sides.words,
        }

    def _why_not(self, j: int) -> Note:
        status = str(self.changes.status[j])
        why = self.sides.why[j]
        if status == "alone" and why is not None:
            return why
        if status == "empty" and np.isnan(self.changes.old[j]) != np.isnan(self.changes.new[j]):
            return _ONE_SIDE[bool(np.isnan(self.changes.new[j]))]
        return _STATUS[{"ok": "no_variation", "alone": "empty"}.get(status, status)]

    def _tested(self, kind: EstimandKind, test: ChangeTest) -> list[Finding]:
        low, high = test.confidence_interval(self.level)
        adjusted = adjusted_p_values(test.p_value_raw, self.adjust)
        statistic = test.statistic
        findings = []
        for j in range(len(self.changes.groups)):
            shared = self._shared(j, kind)
            raw = finite(test.p_value_raw[j])
            if raw is None:
                note = self._why_not(j)
                findings.append(Finding(decision=Decision.NOT_TESTED, notes=(note,), **shared))
                continue
            p = float(adjusted[j])
            findings.append(
                Finding(
                    decision=Decision.DETECTED if p <= self.alpha else Decision.NOT_DETECTED,
                    estimate=float(test.estimate[j]),
                    ci=ConfidenceInterval(
                        low=finite(low[j]), high=finite(high[j]), confidence_level=self.level
                    ),
                    statistic=finite(statistic[j]),
                    p_value=p,
                    p_value_raw=raw,
                    notes=(INTERVAL_UNADJUSTED,) if p > raw else (),
                    **shared,
                )
            )
        return findings

    def _growth(self) -> list[Finding]:
        """Whether gaps grew by more than the margin, or are shown to have grown by less."""
        growth = self.changes.growth
        raw = growth.p_grown(self.margin or 0.0)
        known = self.changes.status == "ok"
        grown = adjusted_p_values(np.where(known, raw, np.nan), self.adjust)
        within = growth.p_within(self.margin or 0.0)
        low, high = growth.lower_bound(self.alpha), growth.bound(self.alpha)
        findings = []
        for j in range(len(self.changes.groups)):
            shared = self._shared(j, "gap growth")
            bound = finite(high[j])
            if not known[j] or bound is None:
                note = self._why_not(j)
                findings.append(Finding(decision=Decision.NOT_TESTED, notes=(note,), **shared))
                continue
            decision = Decision.DETECTED if grown[j] <= self.alpha else Decision.NOT_DETECTED
            p, p_raw = float(grown[j]), float(raw[j])
            ci = ConfidenceInterval(
                low=finite(low[j]), high=None, confidence_level=1.0 - self.alpha
            )
            if self.margin is not None and decision is Decision.NOT_DETECTED:
                p = p_raw = float(within[j])
                decision = Decision.WITHIN_MARGIN if p <= self.alpha else decision
                ci = ConfidenceInterval(low=None, high=bound, confidence_level=1.0 - self.alpha)
            findings.append(
                Finding(
                    decision=decision,
                    estimate=float(growth.estimate[j]),
                    ci=ci,
                    p_value=p,
                    p_value_raw=p_raw,
                    notes=(INTERVAL_UNADJUSTED,) if p > p_raw else (),
                    **shared,
                )
            )
        return findings

    def joint(self) -> JointTest:
        """The test that no gap changed."""
        joint = self.changes.joint
        null = "all groups changed alike"
        if not (self.changes.status == "ok").any():
            note = Note(code="vacuous", message="No hypothesis is left to test jointly.")
            return JointTest(
                null=null, decision=Decision.NOT_TESTED, method=joint.method, notes=(note,)
            )
        return JointTest(
            null=null,
            decision=Decision.DETECTED if joint.p_value <= self.alpha else Decision.NOT_DETECTED,
            method=joint.method,
            statistic=finite(joint.statistic),
            df=float(joint.df),
            p_value=float(joint.p_value),
        )

    def family_note(self) -> Note:
        """Say what is adjusted together."""
        tested = int(np.isfinite(self.changes.gap_change.p_value_raw).sum())
        words = FAMILY_WORDS[self.adjust]
        gate = ""
        if self.margin is not None:
            gate = (
                " That no gap grew by more than the margin needs every bound to be below it, which"
                " takes no further adjustment."
            )
        return Note(
            code="multiplicity",
            message=f"Changes of gaps, growth of gaps and changes of values are three families of"
            f" {counted(tested, 'group')}, each {words}.{gate}",
        )

    def values(self, table: Sample) -> list[dict[str, Any]]:
        """Values and gaps before and after, and the decisions that changed."""
        growth = self.changes.growth
        columns = {
            "old": self.changes.old,
            "new": self.changes.new,
            "gap_old": growth.gap_old,
            "gap_new": growth.gap_new,
        }
        if isinstance(table, PairedCounts):
            joined = table.joined(self.sides.own)
            columns |= {"gained": joined.gained, "lost": joined.lost}
        return [
            {"group": name, "n": round(float(self.changes.n[j]))}
            | {key: finite(column[j]) for key, column in columns.items()}
            for j, name in enumerate(self.changes.groups)
        ]

    def gate(self) -> dict[str, Any] | None:
        """Whether every gap is shown to have grown by no more than the margin."""
        if self.margin is None:
            return None
        bound = np.where(self.changes.status == "ok", self.changes.growth.bound(self.alpha), np.nan)
        worst = None if np.isnan(bound).all() else int(np.nanargmax(bound))
        asked = [finding for finding in self._growth() if not finding.is_reference]
        # Nothing is shown of a gap that could not be tested.
        untested = [one.group for one in asked if one.decision is Decision.NOT_TESTED]
        return {
            "within": bool(asked) and all(one.decision is Decision.WITHIN_MARGIN for one in asked),
            "untested": untested,
            "margin": self.margin,
            "worst": None if worst is None else self.changes.groups[worst],
            "bound": None if worst is None else float(bound[worst]),
        }
