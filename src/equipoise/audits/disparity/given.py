"""Gaps among people who are alike in given factors.

Strata hold people of equal factors; where these are many or continuous, regressions take the place
of strata.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from scipy import special

from equipoise._checks import check_fraction
from equipoise._typing import (
    Adjust,
    AnyArray,
    BoolArray,
    FlagAlternative,
    FloatArray,
    IntArray,
    Rng,
)
from equipoise.audits.asking import Asking
from equipoise.audits.disparity.alike import (
    AlikeComparison,
    AlikeGroups,
    GivenAsked,
    bonferroni,
    conditioning_note,
)
from equipoise.audits.disparity.measure import Measured
from equipoise.audits.disparity.questions import DisparityDetails
from equipoise.audits.disparity.strata import compare_within_strata
from equipoise.audits.disparity.subgroups import MANY_VALUES, finite
from equipoise.audits.disparity.unknown_shapes import WITHIN_STRATA, shape_not_taken_out
from equipoise.audits.disparity.wording import family_note
from equipoise.audits.words import dropped_notes
from equipoise.data.groups import group_tables, matching_cells, subgroup_name
from equipoise.data.metrics import Metric, find_metric
from equipoise.data.query import CellRows, NarrowRows
from equipoise.data.table import Quantity, Rows, Table
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.moments import CellMoments, sum_by
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.doubly_robust import (
    DoublyRobustGap,
    cross_fit,
    doubly_robust_gap,
    folds,
)
from equipoise.stats.disparity.gaps import together
from equipoise.stats.multiplicity import adjusted_p_values, correlations
from equipoise.stats.small_samples import MIN_UNITS, shrunk_correlation

__all__ = [
    "GroupByLearners",
    "LearnedGroups",
    "certify_given",
    "compare_alike",
    "compare_by_learners",
    "disparity_given",
    "flag_given",
]


MOST_LEVELS = 50
"""Categories of a factor that is not a number; each becomes a column of 0 and 1."""
EXTREME = 0.05
"""Share of rows with a chance of membership near 0 or 1 beyond which a note says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupByLearners:
    """One group beside its comparator, or why it has none."""

    name: str
    n: int
    raw: float
    used: BoolArray
    comparison: DoublyRobustGap | None
    reason: Note | None = None

    @property
    def tested(self) -> DoublyRobustGap:
        """The comparison, where there is one."""
        if self.comparison is None:
            raise ValueError(f"{self.name} was not compared")
        return self.comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedGroups:
    """Every group beside its comparator among people alike, by learners.

    Parameters
    ----------
    measured : Measured
        The metric in the cells of the groups.
    reference : str
        Name of the comparator.
    groups : tuple of GroupByLearners
        All groups asked for.
    unit : array of shape (n,), optional
        Number of the cluster of each row.
    """

    measured: Measured
    reference: str
    groups: tuple[GroupByLearners, ...]
    unit: IntArray | None

    @property
    def compared(self) -> list[GroupByLearners]:
        """The groups that have a comparison."""
        return [one for one in self.groups if one.comparison is not None]

    @property
    def clustered_degrees(self) -> float | None:
        """Fewest degrees of freedom of a comparison, where units are clusters."""
        return None if self.unit is None else min(one.tested.degrees for one in self.compared)

    def joint(self, null: str, alpha: float) -> JointTest:
        """Test that no group differs by the smallest of their p-values."""
        return bonferroni(null, [one.tested.p_value for one in self.compared], alpha)

    def correlation(self) -> FloatArray:
        """Correlation of the estimates of the groups that were compared."""
        influence = np.zeros((len(self.compared), len(self.groups[0].used)))
        for row, one in zip(influence, self.compared, strict=True):
            row[one.used] = one.tested.influence
        if self.unit is not None:
            influence = sum_by(self.unit, influence.T, int(self.unit.max()) + 1).T
        return correlations(influence @ influence.T)

    def intervals(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Marginal intervals of the groups that were compared."""
        ends = [one.tested.confidence_interval(level) for one in self.compared]
        return np.array([one.low for one in ends]), np.array([one.high for one in ends])

    def summaries(self, level: float) -> list[dict[str, Any]]:  # noqa: ARG002  (one of two forms)
        """Write how well the learners predict for each group that was compared."""
        return [
            {
                "group": one.name,
                "raw": one.raw,
                "group_covered": None,
                "membership_auc": one.tested.membership_auc,
                "outcome_r2": one.tested.outcome_r2,
                "extreme": one.tested.extreme,
            }
            for one in self.compared
        ]

    def notes_of(self, summary: dict[str, Any]) -> tuple[Note, ...]:
        """Return what the reader of one comparison should know."""
        if summary["extreme"] <= EXTREME:
            return ()
        message = (
            f"{100 * summary['extreme']:.3g}% of the rows have factors that nearly always, or"
            " hardly ever, go with the group: few of them have anybody alike."
        )
        return (Note(code="little-overlap", message=message),)

    def notes(self, summaries: list[dict[str, Any]]) -> tuple[Note, ...]:
        """Return what the reader of all should know."""
        shares = [
            f"{one['group']}: outcome R2 {one['outcome_r2']:.2f}, group AUC"
            f" {one['membership_auc']:.2f}"
            for one in summaries
        ]
        told = f" ({'; '.join(shares)})" if shares else ""
        return (
            Note(
                code="depends-on-learners",
                message="Gaps depend on the learners: right if the outcome, or membership in the"
                f" group, is learnt well from the factors, wrong if neither is{told}.",
            ),
        )


def compare_by_learners(
    table: Table, metric: str | Metric, asked: GivenAsked
) -> Asking[LearnedGroups]:
    """Compare every group with its comparator by two cross-fitted regressions on the factors.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : str or Metric
        Name, or a metric of the user's own.
    asked : GivenAsked
        With the factors and the learners.

    Yields
    ------
    Sums, then Rows

    Returns
    -------
    LearnedGroups
    """
    group = table.roles.group
    for column in asked.given:
        table.check_column(column)
        if column in group:
            raise InvalidParameterError(f"{column!r} is both group and given.")
    numbers = [column for column in asked.given if table.schema[column].is_numeric()]
    words = tuple(column for column in asked.given if column not in numbers)
    found = find_metric(metric)
    view = table.grouped_by((*group, *words))
    values = [*found.build(view), *(nw.col(name).cast(nw.Float64) for name in numbers)]
    sums = view.sums([*map(Quantity.of, values)], found.needs, order=1)
    cells: CellMoments = yield sums
    narrow: NarrowRows = yield Rows(sums)
    rows = _Rows.of(narrow.read(), len(group))
    labelled = replace(cells, columns=group, labels=cells.labels[: len(group)])
    measured = Measured(
        name=found.name,
        words=found.words,
        moments=replace(labelled, n=rows.n_by_cell, n_units=rows.n_units),
        defined=rows.n_by_cell,
        binary=False,
        clustered=rows.unit is not None,
        notes=dropped_notes(cells.dropped),
    )
    target, reference = None, "the rest"
    if isinstance(asked.reference, Mapping):
        target = matching_cells(labelled, dict(asked.reference))[rows.cell]
        names = tuple(str(label) for label in asked.reference.values())
        reference = subgroup_name(tuple(asked.reference), names)
    groups = []
    for one in group_tables(labelled, depth=asked.depth):
        for k, name in enumerate(one.names):
            own = one.category[rows.cell] == k
            other = ~own if target is None else target & ~own
            groups.append(_compare(rows, asked, name, own, other))
    return LearnedGroups(
        measured=measured, reference=reference, groups=tuple(groups), unit=rows.unit
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows on which the metric is defined; a row that stands for several is repeated.

    `weight` is the sampling weight times the denominator of the metric.
    """

    y: FloatArray
    weight: FloatArray
    factors: FloatArray
    cell: IntArray
    unit: IntArray | None
    n_by_cell: IntArray

    @classmethod
    def of(cls, rows: CellRows, n_groups: int) -> "_Rows":
        u, w, *numbers = (np.asarray(value, dtype=np.float64) for value in rows.values)
        kept = np.flatnonzero(w != 0.0)
        if rows.count is not None:
            kept = np.repeat(kept, rows.count[kept].round().astype(np.int64))
        cell = rows.cell[kept]
        columns = [number[kept] for number in numbers]
        for name, labels in zip(rows.columns[n_groups:], rows.labels[n_groups:], strict=True):
            columns += _indicators(name, labels, cell)
        weight = w[kept] if rows.weight is None else w[kept] * rows.weight[kept]
        return cls(
            y=u[kept] / w[kept],
            weight=weight,
            factors=np.column_stack(columns),
            cell=cell,
            unit=None if rows.unit is None else np.unique(rows.unit[kept], return_inverse=True)[1],
            n_by_cell=np.bincount(cell, minlength=len(rows.labels[0])),
        )

    @property
    def n_units(self) -> int:
        """Independent units."""
        return len(self.y) if self.unit is None else int(self.unit.max(initial=-1)) + 1

    def effective(self, which: BoolArray) -> float:
        """Effective units of some of the rows."""
        weight: FloatArray = self.weight[which]
        if self.unit is not None:
            weight = np.bincount(self.unit[which], weight).astype(np.float64)
        return float(weight.sum() ** 2 / np.sum(weight**2)) if weight.any() else 0.0


def _indicators(name: str, labels: AnyArray, cell: IntArray) -> list[FloatArray]:
    """A column of 0 and 1 for each category."""
    levels = sorted(set(labels.tolist()))
    if len(levels) > MOST_LEVELS:
        raise InvalidParameterError(
            f"{name!r} has {len(levels):,} categories; {MOST_LEVELS} are the most that learners"
            " are given. Merge some."
        )
    return [(labels == level)[cell].astype(np.float64) for level in levels]


def _compare(
    rows: _Rows, asked: GivenAsked, name: str, own: BoolArray, other: BoolArray
) -> GroupByLearners:
    used = own | other
    known: dict[str, Any] = {"name": name, "n": int(own.sum()), "used": used}
    if not other.any():
        message = "This group is what the others are compared with."
        reason = Note(code="vacuous", message=message)
        return GroupByLearners(**known, raw=0.0, comparison=None, reason=reason)
    try:
        gap = _learned_gap(rows, asked, own, other)
    except GroupTooSmallError as error:
        reason = Note(code="too-small", message=str(error))
        return GroupByLearners(**known, raw=0.0, comparison=None, reason=reason)
    raw = [float(np.average(rows.y[side], weights=rows.weight[side])) for side in (own, other)]
    return GroupByLearners(**known, raw=raw[0] - raw[1], comparison=gap)


def _learned_gap(
    rows: _Rows, asked: GivenAsked, own: BoolArray, other: BoolArray
) -> DoublyRobustGap:
    if min(rows.effective(own), rows.effective(other)) < MIN_UNITS - 1e-9:
        raise GroupTooSmallError("A comparison needs four effective units on each side.")
    used = own | other
    y, weight, member = rows.y[used], rows.weight[used], own[used].astype(np.float64)
    factors = rows.factors[used]
    unit = None if rows.unit is None else rows.unit[used]
    outcome, membership = asked.learner or _default_learners(y)
    nuisances = cross_fit(
        factors,
        y,
        member,
        folds(asked.n_splits, *factors.T, y, member, weight, cluster=unit),
        outcome_learner=outcome,
        group_learner=membership,
        weight=None if np.all(weight == 1.0) else weight,
    )
    return doubly_robust_gap(
        y,
        member,
        nuisances,
        weights="group" if asked.weights == "group" else "overlap",
        weight=weight,
        cluster=unit,
    )


def _default_learners(y: FloatArray) -> tuple[Any, Any]:
    """Boosted trees: a classifier of outcomes of 0 and 1, otherwise a regressor."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    options: dict[str, Any] = {
        "max_iter": 60,
        "max_leaf_nodes": 8,
        "min_samples_leaf": 30,
        "early_stopping": False,
        "random_state": 0,
    }
    classifier = HistGradientBoostingClassifier(**options)
    binary = bool(np.isin(y, (0.0, 1.0)).all())
    return (classifier if binary else HistGradientBoostingRegressor(**options)), classifier


def compare_alike(table: Table, metric: str | Metric, asked: GivenAsked) -> Asking[AlikeGroups]:
    """Compare every group with its comparator among people alike in the factors.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : str or Metric
        Name, or a metric of the user's own.
    asked : GivenAsked
        The factors, and whether strata or learners make people alike.

    Yields
    ------
    Sums, then Rows where they are needed

    Returns
    -------
    AlikeGroups
    """
    if asked.conditional == "strata":
        return (yield from compare_within_strata(table, metric, asked))
    return (yield from compare_by_learners(table, metric, asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """What is said of the groups that were compared, in their order."""

    low: FloatArray
    high: FloatArray
    statistic: FloatArray
    p_value: FloatArray
    p_value_raw: FloatArray
    decision: list[Decision]
    level: float


def _tested(alike: AlikeGroups) -> list[AlikeComparison]:
    return [one.comparison for one in alike.groups if one.comparison is not None]


def _rejected(p: FloatArray, alpha: float) -> list[Decision]:
    return [Decision.DETECTED if one <= alpha else Decision.NOT_DETECTED for one in p]


def disparity_given(
    table: Table,
    metric: str | Metric,
    asked: GivenAsked,
    *,
    simultaneous: bool,
    alpha: float,
    confidence_level: float,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Say how large each group's gap is among people alike in the factors.

    Parameters
    ----------
    table, metric, asked
        As in `compare_alike`.
    simultaneous, alpha, confidence_level, rng
        As in `disparity`.

    Yields
    ------
    Sums, then Rows where they are needed

    Returns
    -------
    AuditResult
    """
    check_fraction("confidence_level", confidence_level)
    alike = yield from compare_alike(table, metric, asked)
    found, words = _tested(alike), alike.reference
    raw = np.array([one.p_value for one in found])
    p, level, rule = raw, confidence_level, ""
    if simultaneous and len(found) > 1:
        p, level, rule = _together(alike, raw, confidence_level, rng)
    low, high = alike.intervals(level)
    numbers = _Numbers(
        low=low,
        high=high,
        statistic=np.array([one.statistic for one in found]),
        p_value=p,
        p_value_raw=raw,
        decision=_rejected(p, alpha),
        level=confidence_level,
    )
    message = (
        f"Intervals and p-values hold for all {len(found)} groups together ({rule})."
        if simultaneous
        else f"Each interval and p-value stands alone; {len(found)} groups were looked at."
    )
    family = Note(code="simultaneous" if simultaneous else "marginal", message=message)
    null = f"no group differs from {words} among people alike in {asked.factors}"
    return _result(
        alike,
        asked,
        numbers,
        audit="disparity",
        null=null,
        alternative=f"the group differs from {words} among people alike in {asked.factors}",
        alpha=alpha,
        joint=alike.joint(null, alpha),
        notes=(family,) if len(found) > 1 else (),
        simultaneous=simultaneous,
    )


def flag_given(
    table: Table,
    metric: str | Metric,
    asked: GivenAsked,
    *,
    margin: float,
    bounds: tuple[float, float],
    alternative: FlagAlternative,
    adjust: Adjust,
    alpha: float,
    confidence_level: float,
) -> Asking[AuditResult]:
    """Say which groups exceed the tolerance among people alike in the factors.

    Parameters
    ----------
    table, metric, asked
        As in `compare_alike`.
    margin, alternative, adjust, alpha, confidence_level
        As in `flag`.
    bounds : tuple of float
        Ends of what is tolerated.

    Yields
    ------
    Sums, then Rows where they are needed

    Returns
    -------
    AuditResult
    """
    alike = yield from compare_alike(table, metric, asked)
    found, words = _tested(alike), alike.reference
    low, high = bounds
    up = np.array([one.root(high) for one in found])
    down = np.array([one.root(low) for one in found])
    greater, less = special.ndtr(-up), special.ndtr(down)
    raw = {
        "greater": greater,
        "less": less,
        "outside": np.minimum(2.0 * np.minimum(greater, less), 1.0),
        "two-sided": np.array([one.p_value for one in found]),
    }[alternative]
    rule = "bh" if adjust == "auto" else adjust
    p = adjusted_p_values(raw, rule)
    ends = alike.intervals(confidence_level)
    numbers = _Numbers(
        low=ends[0],
        high=ends[1],
        statistic=down if alternative == "less" else up,
        p_value=p,
        p_value_raw=raw,
        decision=_rejected(p, alpha),
        level=confidence_level,
    )
    limit = {
        "greater": f"above {high:g}",
        "less": f"below {low:g}",
        "outside": f"outside {low:g} to {high:g}",
        "two-sided": f"other than {low:g}",
    }[alternative]
    gap = f"the {'gap' if asked.scale == 'difference' else 'ratio'} to {words} among people alike"
    return _result(
        alike,
        asked,
        numbers,
        audit="flag",
        null=f"{gap} in {asked.factors} is not {limit}",
        alternative=f"{gap} in {asked.factors} is {limit}",
        alpha=alpha,
        notes=(family_note(rule, len(found)),),
        margin=margin,
        alternative_asked=alternative,
        adjust=rule,
        bounds=[low, high],
    )


def certify_given(
    table: Table,
    metric: str | Metric,
    asked: GivenAsked,
    *,
    margin: float,
    bounds: tuple[float, float],
    alpha: float,
    confidence_level: float,
) -> Asking[AuditResult]:
    """Show that groups are within the margin among people alike in the factors.

    Parameters
    ----------
    table, metric, asked
        As in `compare_alike`.
    margin, alpha, confidence_level
        As in `certify`.
    bounds : tuple of float
        Ends of the margin.

    Yields
    ------
    Sums, then Rows where they are needed

    Returns
    -------
    AuditResult
    """
    alike = yield from compare_alike(table, metric, asked)
    found, words = _tested(alike), alike.reference
    low, high = bounds
    up = np.array([one.root(low) for one in found])
    down = np.array([one.root(high) for one in found])
    within = np.maximum(special.ndtr(-up), special.ndtr(down))
    outside = 2.0 * np.minimum(special.ndtr(up), special.ndtr(-down))
    beyond = adjusted_p_values(np.minimum(outside, 1.0), "holm")
    ends = alike.intervals(confidence_level)
    numbers = _Numbers(
        low=ends[0],
        high=ends[1],
        statistic=np.minimum(up, -down),
        p_value=within,
        p_value_raw=within,
        decision=[
            Decision.WITHIN_MARGIN
            if p <= alpha
            else Decision.DETECTED
            if q <= alpha
            else Decision.NOT_DETECTED
            for p, q in zip(within, beyond, strict=True)
        ],
        level=confidence_level,
    )
    null = f"some group is at least {margin:g} away from {words}"
    asked_of = [one for one in alike.groups if one.reason is None or one.reason.code != "vacuous"]
    if found and len(found) == len(asked_of):
        p = float(within.max())
        joint = JointTest(
            null=null,
            decision=Decision.WITHIN_MARGIN if p <= alpha else Decision.NOT_DETECTED,
            method="intersection-union",
            p_value=p,
        )
    else:
        message = "Not every group could be tested, so no claim is made about all of them."
        joint = JointTest(
            null=null,
            decision=Decision.NOT_TESTED,
            method="intersection-union",
            notes=(Note(code="not-all-tested", message=message),),
        )
    return _result(
        alike,
        asked,
        numbers,
        audit="certify",
        null=f"the group is at least {margin:g} away from {words} among people alike in"
        f" {asked.factors}",
        alternative=f"the group is closer than {margin:g} to {words}",
        alpha=alpha,
        joint=joint,
        notes=(
            Note(
                code="equivalence",
                message=f"A group is within the margin when its {confidence_level:.0%} interval"
                " lies inside the margin.",
            ),
        ),
        margin=margin,
        bounds=[low, high],
    )


def _together(
    alike: AlikeGroups, raw: FloatArray, confidence_level: float, rng: Rng
) -> tuple[FloatArray, float, str]:
    """P-values for all groups together, the level of their intervals, and the rule in words."""
    found = [one for one in alike.groups if one.comparison is not None]
    # Draws run in an order made of numbers: the names of groups must not matter.
    estimate = [one.comparison.estimate for one in found if one.comparison is not None]
    order = np.lexsort((estimate, [one.n for one in found]))
    correlation = alike.correlation()[np.ix_(order, order)]
    if alike.clustered_degrees is not None:
        correlation = shrunk_correlation(correlation, alike.clustered_degrees)
    ordered, critical = together(raw[order], correlation, confidence_level, rng=rng)
    p = np.empty(len(raw))
    p[order] = ordered
    words = f"max-t, critical value {critical:.2f}"
    return p, float(1.0 - 2.0 * special.ndtr(-critical)), words


def _shape_notes(measured: Measured, n: int) -> tuple[Note, ...]:
    """Say how often tests of few skewed values err; those of rates have laws of their own."""
    if measured.binary or n >= MANY_VALUES:
        return ()
    return (shape_not_taken_out(n, WITHIN_STRATA, "beside ten times as many who are alike"),)


def _result(
    alike: AlikeGroups,
    asked: GivenAsked,
    numbers: _Numbers,
    *,
    audit: str,
    null: str,
    alternative: str,
    alpha: float,
    joint: JointTest | None = None,
    notes: tuple[Note, ...] = (),
    alternative_asked: str | None = None,
    **own: Any,
) -> AuditResult:
    measured, reference = alike.measured, alike.reference
    estimand = Estimand(measured.name, "gap", scale=asked.scale, noun=measured.words)
    summaries = alike.summaries(numbers.level)
    findings = []
    k = -1
    for one in alike.groups:
        shared: dict[str, Any] = {
            "group": one.name,
            "estimand": estimand,
            "n": one.n,
            "reference": reference,
        }
        if one.comparison is None:
            reason = (one.reason,) if one.reason else ()
            findings.append(
                Finding(decision=Decision.NOT_TESTED, method="none", notes=reason, **shared)
            )
            continue
        k += 1
        estimate = one.comparison.estimate
        low, high = float(numbers.low[k]), float(numbers.high[k])
        findings.append(
            Finding(
                estimate=estimate,
                ci=ConfidenceInterval(
                    low=min(low, estimate) if np.isfinite(low) else None,
                    high=max(high, estimate) if np.isfinite(high) else None,
                    confidence_level=numbers.level,
                ),
                statistic=finite(numbers.statistic[k]),
                p_value=float(numbers.p_value[k]),
                p_value_raw=float(numbers.p_value_raw[k]),
                decision=numbers.decision[k],
                method=one.comparison.method,
                notes=(*alike.notes_of(summaries[k]), *_shape_notes(measured, one.n)),
                **shared,
            )
        )
    n_units = measured.moments.n_units
    return AuditResult(
        audit=audit,
        null=null,
        alternative=alternative,
        alpha=alpha,
        method=", ".join(sorted({f.method for f in findings if f.method != "none"})) or "none",
        n=int(measured.moments.n.sum()),
        findings=tuple(findings),
        joint=joint,
        notes=(
            *measured.notes,
            *notes,
            *alike.notes(summaries),
            conditioning_note(asked.factors),
        ),
        details=DisparityDetails(
            **own,
            alternative=alternative_asked,
            metric=measured.name,
            scale=asked.scale,
            reference=reference,
            null_value=asked.natural,
            n_units=n_units,
            n_clusters=n_units if measured.clustered else None,
            given=list(asked.given),
            weights=asked.weights,
            conditional=asked.conditional,
            strata=summaries,
        ),
    )
