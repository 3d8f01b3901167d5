"""Every category beside the highest or the lowest one, which the data chose."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np
from scipy import special

from equipoise._checks import (
    check_depth,
    check_flag,
    check_fraction,
    check_number,
    check_option,
    quoted,
)
from equipoise._typing import (
    BoolArray,
    Extreme,
    Family,
    FlagAlternative,
    FloatArray,
    IntArray,
    Rng,
    Scale,
    SmallCategories,
)
from equipoise.audits.asking import Asking
from equipoise.audits.disparity.measure import Measured, measure
from equipoise.audits.disparity.questions import DisparityDetails
from equipoise.audits.disparity.survey import measure_survey
from equipoise.audits.words import good_event, words_of
from equipoise.data.groups import GroupTable, group_tables
from equipoise.data.metrics import Metric, RateMetric, find_metric
from equipoise.data.roles import Roles
from equipoise.data.table import Table
from equipoise.exceptions import DataError, GroupTooSmallError, InvalidParameterError
from equipoise.moments import merge_cells
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.formats import number, p_value
from equipoise.results.result import AuditResult
from equipoise.results.words import MetricWords, Words
from equipoise.stats.disparity.category_means import CategoryMeans
from equipoise.stats.disparity.contrasts import WilsonRate
from equipoise.stats.disparity.extremes import (
    ExtremeComparison,
    Means,
    compare_counts_with_extreme,
    compare_means_with_extreme,
    permutation_p_value,
)
from equipoise.stats.disparity.impact import companions, eligible_categories, readings
from equipoise.stats.disparity.row_roots import Units
from equipoise.stats.disparity.standardised import standardised_mean_difference
from equipoise.stats.disparity.survey import FEW_EVENTS, means_of_sums
from equipoise.stats.small_samples import MIN_UNITS

__all__ = [
    "ComparedTable",
    "ExtremeAsked",
    "ExtremeTable",
    "certify_extreme",
    "compare_with_extreme",
    "describe_tables",
    "disparity_to_extreme",
    "extreme_findings",
    "flag_extreme",
]

FEW_ROWS = 30
"""Rows of the extreme category below which its own uncertainty is pointed out."""
FEW_EXPECTED = 5.0
"""Expected ones or zeros of a category below which the permutation test is added."""

_CHOSEN = Note(
    code="reference-chosen-from-data",
    message="The category compared with was chosen from these data; intervals and p-values allow"
    " for that. `p_value_raw` does not: it compares with the category as if it had been named"
    " before. A ratio is evidence, not a legal finding.",
)


class ExtremeTable(TypedDict):
    """One table of disjoint categories, row by row; None where a number is not defined."""

    columns: list[str]
    categories: list[str]
    labels: list[list[str]]
    n: list[int]
    selected: list[float]
    rate: list[float | None]
    rate_low: list[float | None]
    rate_high: list[float | None]
    share: list[float]
    estimate: list[float | None]
    low: list[float | None]
    high: list[float | None]
    p_equal: list[float | None]
    p_below: list[float | None]
    certify_low: list[float | None]
    verdict: list[str | None]
    excluded: list[str | None]
    highest: str | None
    critical: float | None
    k: int
    permutation_p: float | None
    companions: list[dict[str, float | int | None]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremeAsked:
    """The options of a comparison with the highest or the lowest category."""

    reference: Extreme
    scale: Scale
    depth: int | None = None
    min_share: float = 0.02
    small: SmallCategories = "exclude"
    by: Family = "table"
    rng: Rng = None

    def __post_init__(self) -> None:
        check_option("scale", self.scale, Scale)
        check_option("small", self.small, SmallCategories)
        check_option("by", self.by, Family)
        check_depth(self.depth)
        check_number("min_share", self.min_share, low=0.0, high=1.0)

    @property
    def side(self) -> int:
        """-1 where disparities lie below no disparity, 1 where they lie above."""
        return -1 if self.reference == "highest" else 1

    def limit(self, margin: float) -> float:
        """Return the disparity that is `margin` away from none."""
        largest = 0.999 if self.scale == "ratio" else math.inf
        value = check_number("margin", margin, low=0.0, high=largest)
        if self.scale == "difference":
            return self.side * value + 0.0  # no -0
        return 1.0 - value if self.side < 0 else 1.0 / (1.0 - value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """The categories of one table, and those that are compared."""

    table: GroupTable
    n: IntArray
    selected: FloatArray
    rate: FloatArray
    compared: BoolArray
    reasons: dict[int, Note]
    comparison: ExtremeComparison | None
    method: str
    counts: bool
    known: BoolArray = field(repr=False)
    rng: Rng = field(default=None, repr=False)

    @property
    def highest(self) -> str | None:
        """Name of the category that the others are compared with."""
        if self.comparison is None:
            return None
        return self.table.names[int(np.flatnonzero(self.compared)[self.comparison.extreme])]

    def whole(self, values: FloatArray) -> FloatArray:
        """Spread values of the compared categories over all; NaN elsewhere."""
        result = np.full(len(self.n), np.nan)
        result[self.compared] = values
        return result


def compare_with_extreme(
    table: Table, metric: str | Metric, asked: ExtremeAsked, *, unknown: Sequence[str] = ()
) -> Asking[tuple[Measured, list[ComparedTable]]]:
    """Measure a metric, and compare the categories of every table with the extreme one.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : str or Metric
        Name, or a metric of the user's own.
    asked : ExtremeAsked
        What they are compared with, and how.
    unknown : sequence of str
        Labels that mean "not known"; rows with one of them are in no table.

    Yields
    ------
    Sums, then Rows if they are needed

    Returns
    -------
    Measured, list of ComparedTable
    """
    found = find_metric(metric)
    counted = found
    if isinstance(found, RateMetric) and asked.scale == "ratio":
        # Ratios of a decision and of its opposite differ; the one that matters is the good one.
        counted = found.in_favour_of(good_event(table.roles))
    if table.roles.strata is None:
        measured = yield from measure(table, counted)
    else:
        measured, _ = yield from measure_survey(table, counted)
    if isinstance(counted, RateMetric) and counted is not found:
        measured = _of_good_decision(measured, counted, table.roles)
    known = np.ones(len(measured.moments.n), dtype=np.bool_)
    for labels in measured.moments.labels:
        known &= ~np.isin(labels.astype(str), list(unknown))
    if not known.any():
        raise DataError(f"No row has a known category: all labels are among {quoted(unknown)}.")
    tables = [_known(one, known) for one in group_tables(measured.moments, depth=asked.depth)]
    return measured, [_compare(measured, one, known, asked) for one in tables]


def _of_good_decision(measured: Measured, counted: RateMetric, roles: Roles) -> Measured:
    """Say that the good decision is counted, although the metric is named after the other."""
    told = MetricWords(noun=counted.words, event=counted.event, better="higher")
    people = words_of(roles, ()).phrase(counted.event)
    note = Note(
        code="good-decision-counted",
        message=f"Counted are those who {people}, the decision that is good for a person: a ratio"
        " of the other decision would say nothing about who is selected less often.",
    )
    return replace(measured, told=told, notes=(*measured.notes, note))


def _told(measured: Measured) -> Words:
    """Words that do not follow from the name of the metric."""
    return Words(metrics={} if measured.told is None else {measured.name: measured.told})


def _known(table: GroupTable, known: BoolArray) -> GroupTable:
    """Leave out categories without a row of known category; cells of unknown ones count nowhere."""
    kept = np.unique(table.category[known])
    return GroupTable(
        columns=table.columns,
        names=tuple(table.names[k] for k in kept),
        labels=tuple(table.labels[k] for k in kept),
        category=np.where(known, np.searchsorted(kept, table.category), 0),
    )


def _compare(
    measured: Measured, table: GroupTable, known: BoolArray, asked: ExtremeAsked
) -> ComparedTable:
    moments, size = measured.moments, len(table.names)
    u, w = (
        np.bincount(table.category, moments.total[:, k] * known, size).astype(np.float64)
        for k in (0, 1)
    )
    n = np.bincount(table.category, measured.defined * known, size).round().astype(np.int64)
    reasons = {
        int(k): Note(
            code="empty-denominator", message="The metric is not defined on any row of this group."
        )
        for k in np.flatnonzero(w <= 0.0)
    }
    large = eligible_categories(n, min_share=asked.min_share) & (w > 0.0)
    left_out = " and not compared." if asked.small == "exclude" else "."
    small = Note(
        code="below-min-share",
        message=f"Under {100 * asked.min_share:g}% of the rows: not used as the category compared"
        f" with{left_out}",
    )
    reasons |= {int(k): small for k in np.flatnonzero(~large & (w > 0.0))}
    compared = large if asked.small == "exclude" else w > 0.0
    means: Means | None = None
    if not measured.binary and compared.any():
        means, enough = _means(measured, table, known, compared)
        for k in np.flatnonzero(compared)[~enough]:
            reasons[int(k)] = Note(
                code="too-small",
                message="Too few independent units: a comparison needs four effective ones, and of"
                " a rate in a survey five ones and zeros.",
            )
        compared = compared.copy()
        compared[np.flatnonzero(compared)[~enough]] = False
        means = _means(measured, table, known, compared)[0] if compared.any() else None
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = u / w
    eligible = large[compared]
    found = None
    if compared.sum() >= 2 and eligible.any():
        if means is None:
            found = compare_counts_with_extreme(
                u[compared],
                w[compared],
                reference=asked.reference,
                scale=asked.scale,
                eligible=eligible,
            )
        else:
            found = compare_means_with_extreme(
                means,
                reference=asked.reference,
                scale=asked.scale,
                eligible=eligible,
                rng=asked.rng,
            )
    else:
        single = Note(
            code="single-category",
            message=f"A comparison needs two categories of at least {100 * asked.min_share:g}% of"
            " the rows.",
        )
        reasons |= {int(k): single for k in np.flatnonzero(compared)}
        compared = np.zeros_like(compared)
    if found is not None and not np.isfinite(found.estimate).all():
        zero = _zero_note(asked, nobody=not u[compared].any())
        reasons |= {int(k): zero for k in np.flatnonzero(compared)}
        found, compared = None, np.zeros_like(compared)
    words = "score, all pairs" if int(compared.sum()) > 2 else "one pair"
    return ComparedTable(
        table=table,
        n=n,
        # Only the proportions of weights matter: as many of the rows as the rate says.
        selected=u if measured.binary else np.nan_to_num(rate * n),
        rate=rate,
        compared=compared,
        reasons=reasons,
        comparison=found,
        method=words if means is None else "studentised means, all pairs",
        counts=measured.binary,
        known=known,
        rng=asked.rng,
    )


def _zero_note(asked: ExtremeAsked, *, nobody: bool) -> Note:
    if nobody:
        return Note(
            code="nobody-selected",
            message="The metric is zero in every category: there is no ratio. Nobody was selected.",
        )
    return Note(
        code="ratio-to-zero",
        message=f'The {asked.reference} rate is zero: there is no ratio. Ask scale="difference".',
    )


def _means(
    measured: Measured, table: GroupTable, known: BoolArray, compared: BoolArray
) -> tuple[Means, BoolArray]:
    """Means of the compared categories, and which of them have enough units."""
    number_of = np.where(compared, np.cumsum(compared) - 1, -1)
    code = np.where(known, number_of[table.category], -1)
    size = int(compared.sum())
    if measured.design is not None:
        chosen = code[:, None] == np.arange(size)
        enough = measured.design.effective(chosen) >= MIN_UNITS - 1e-9
        df = measured.design.degrees(chosen)[enough].min(initial=np.inf)
        merged = merge_cells(measured.moments, np.where(code >= 0, code, size)).first(size)
        found = means_of_sums(merged, df=max(df, 1.0))
        # A category that does not vary in the sample would look as if it were known.
        enough &= found.variance > 0.0
        if measured.zero_one:
            rarer = np.minimum(found.value, 1.0 - found.value)
            enough &= measured.design.effective(chosen) * rarer >= FEW_EVENTS
        return found, enough
    units: Units | None = measured.units
    if units is not None:
        kept = code[units.cell] >= 0
        means = CategoryMeans.from_ratios(
            units.u[kept],
            units.w[kept],
            code[units.cell[kept]],
            n_categories=size,
            cluster=None if units.unit is None else units.unit[kept],
            count=None if units.count is None else units.count[kept],
        )
        return means, means.enough
    # Cells that take no part come last and are cut off.
    merged = merge_cells(measured.moments, np.where(code >= 0, code, size)).first(size)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.nan_to_num(merged.total[:, 1] ** 2 / merged.product[:, 1, 1])
    enough = effective >= MIN_UNITS
    df = float(effective[enough].min(initial=np.inf)) - 1.0
    return means_of_sums(merged, df=max(df, 1.0)), enough


def extreme_findings(
    measured: Measured,
    tables: list[ComparedTable],
    asked: ExtremeAsked,
    *,
    numbers: "list[TableNumbers]",
    level: float,
) -> tuple[Finding, ...]:
    """Write a finding for every category of every table; one that is not compared says why."""
    estimand = Estimand(measured.name, "gap", scale=asked.scale, noun=measured.words)
    findings = []
    for one, own in zip(tables, numbers, strict=True):
        found = one.comparison
        place = np.cumsum(one.compared) - 1
        for k, name in enumerate(one.table.names):
            n = int(one.n[k])
            shared: dict[str, Any] = {
                "group": name,
                "estimand": estimand,
                "n": n,
                "method": one.method,
                "reference": f"the {asked.reference} ({one.highest})"
                if found
                else f"the {asked.reference}",
            }
            notes = [one.reasons[k]] if k in one.reasons else []
            if found is None or not one.compared[k]:
                findings.append(Finding(decision=Decision.NOT_TESTED, notes=(*notes,), **shared))
                continue
            i = place[k]
            if i == found.extreme and n < FEW_ROWS:
                notes.append(
                    Note(
                        code="small-highest",
                        message=f"The {asked.reference} category has {n} rows: how little is known"
                        " of it shows in every interval.",
                    )
                )
            if own.beyond is not None and own.decision[i] is Decision.DETECTED:
                notes.append(_beyond_note(float(own.beyond[i])))
            low, high = (end if np.isfinite(end) else None for end in own.ends(i))
            findings.append(
                Finding(
                    estimate=float(found.estimate[i]),
                    ci=ConfidenceInterval(low=low, high=high, confidence_level=level),
                    statistic=float(own.statistic[i]),
                    p_value=float(own.p_value[i]),
                    p_value_raw=float(own.p_value_raw[i]),
                    decision=own.decision[i],
                    notes=tuple(notes),
                    **shared,
                )
            )
    return tuple(findings)


def _beyond_note(p: float) -> Note:
    return Note(
        code="interval-unadjusted",
        message=f"Shown beyond the margin by a test of its own (p {p_value(p)}); the p-value"
        " and the one-sided interval beside it are those of the claim of being within.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNumbers:
    """What is said of the compared categories of a table; empty where none are.

    `beyond` holds the p-values of "beyond the margin", where `p_value` is that of "within".
    """

    low: FloatArray
    high: FloatArray
    statistic: FloatArray
    p_value: FloatArray
    p_value_raw: FloatArray
    decision: list[Decision]
    beyond: FloatArray | None = None

    def ends(self, i: int) -> tuple[float, float]:
        """Ends of one interval."""
        return float(self.low[i]), float(self.high[i])


_NOTHING = TableNumbers(
    low=np.empty(0),
    high=np.empty(0),
    statistic=np.empty(0),
    p_value=np.empty(0),
    p_value_raw=np.empty(0),
    decision=[],
)


def _shared_level(level: float, tables: list[ComparedTable], asked: ExtremeAsked) -> float:
    """The level of one table's family."""
    return 1.0 - (1.0 - level) / _families(tables, asked)


def _families(tables: list[ComparedTable], asked: ExtremeAsked) -> int:
    """How many tables share one level."""
    counted = sum(one.comparison is not None for one in tables)
    return max(counted, 1) if asked.by == "audit" else 1


def _tested(
    one: ComparedTable, null: float, alpha: float, level: float, families: int
) -> TableNumbers:
    """Test "no further than `null`" of the compared categories of a table."""
    found = one.comparison
    if found is None:
        return _NOTHING
    low, high = found.confidence_interval(level)
    p = np.minimum(families * found.p_values(null), 1.0)
    return TableNumbers(
        low=np.minimum(low, found.estimate),
        high=np.maximum(high, found.estimate),
        statistic=found.roots(null),
        p_value=p,
        p_value_raw=np.minimum(found.p_values_raw(null), p),
        decision=[Decision.DETECTED if one <= alpha else Decision.NOT_DETECTED for one in p],
    )


def disparity_to_extreme(
    table: Table,
    metric: str | Metric,
    asked: ExtremeAsked,
    *,
    alpha: float,
    confidence_level: float,
    margin: float = 0.2,
    audit: str = "disparity",
    unknown: Sequence[str] = (),
    with_companions: bool = False,
) -> Asking[AuditResult]:
    """Say how far each category is from the highest or lowest one, and whether any is.

    Parameters
    ----------
    table, metric, asked, unknown
        As in `compare_with_extreme`.
    alpha, confidence_level : float
        Level of the tests and of the joint intervals.
    margin : float
        What the readings of the tables are about; 0.2 for four fifths.
    audit : str
        Name of the question.
    with_companions : bool
        Whether what courts and agencies read stands beside the ratios.

    Yields
    ------
    Sums, then Rows if they are needed

    Returns
    -------
    AuditResult
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    check_flag("companions", with_companions)
    limit = asked.limit(margin)
    measured, tables = yield from compare_with_extreme(table, metric, asked, unknown=unknown)
    level, families = _shared_level(confidence_level, tables, asked), _families(tables, asked)
    numbers = [_tested(one, _natural(asked), alpha, level, families) for one in tables]
    null = f"no category is {_away(asked)}"
    return AuditResult(
        audit=audit,
        null=null,
        alternative=f"the category is {_away(asked)}",
        alpha=alpha,
        method=_methods(tables),
        n=int(measured.moments.n.sum()),
        words=_told(measured),
        findings=extreme_findings(measured, tables, asked, numbers=numbers, level=confidence_level),
        joint=_all_equal(tables, null, alpha),
        notes=(*measured.notes, _CHOSEN, _family_note(tables, asked, confidence_level)),
        details=_details(
            measured,
            tables,
            asked,
            simultaneous=True,
            margin=margin if audit != "disparity" else None,
            tables=describe_tables(
                tables,
                level=level,
                limit=limit,
                with_companions=with_companions,
                units=measured.units,
            ),
        ),
    )


def flag_extreme(
    table: Table,
    metric: str | Metric,
    asked: ExtremeAsked,
    *,
    margin: float,
    alternative: FlagAlternative,
    adjust: str,
    alpha: float,
    confidence_level: float,
) -> Asking[AuditResult]:
    """Say which categories are shown to be further from the extreme one than the margin.

    Parameters
    ----------
    table, metric, asked
        As in `compare_with_extreme`.
    margin, alternative, adjust, alpha, confidence_level
        As in `flag`.

    Yields
    ------
    Sums, then Rows if they are needed

    Returns
    -------
    AuditResult
    """
    needed = "less" if asked.reference == "highest" else "greater"
    if alternative != needed:
        beyond = "above" if asked.reference == "highest" else "below"
        raise InvalidParameterError(
            f"No category is {beyond} the {asked.reference} one; pass"
            f' `alternative="{needed}"`, got {alternative!r}.'
        )
    if adjust != "auto":
        raise InvalidParameterError(
            f"The reference was chosen as the {asked.reference} rate; only"
            f' `adjust="auto"` allows for that, got {adjust!r}.'
        )
    limit = asked.limit(margin)
    measured, tables = yield from compare_with_extreme(table, metric, asked)
    level, families = _shared_level(confidence_level, tables, asked), _families(tables, asked)
    numbers = [_tested(one, limit, alpha, level, families) for one in tables]
    gap = "gap" if asked.scale == "difference" else "ratio"
    inside, outside = ("at least", "below") if asked.side < 0 else ("at most", "above")
    return AuditResult(
        audit="flag",
        null=f"the {gap} to the {asked.reference} category is {inside} {limit:g}",
        alternative=f"the {gap} to the {asked.reference} category is {outside} {limit:g}",
        alpha=alpha,
        method=_methods(tables),
        n=int(measured.moments.n.sum()),
        words=_told(measured),
        findings=extreme_findings(measured, tables, asked, numbers=numbers, level=confidence_level),
        notes=(*measured.notes, _CHOSEN, _family_note(tables, asked, confidence_level)),
        details=_details(
            measured,
            tables,
            asked,
            margin=margin,
            alternative=alternative,
            adjust="all pairs",
            bounds=sorted([limit, _natural(asked)]),
            tables=describe_tables(tables, level=level, limit=limit),
        ),
    )


def certify_extreme(
    table: Table,
    metric: str | Metric,
    asked: ExtremeAsked,
    *,
    margin: float,
    alpha: float,
    confidence_level: float | None,
) -> Asking[AuditResult]:
    """Show, where the data can, that every category is near the highest or lowest one.

    Parameters
    ----------
    table, metric, asked
        As in `compare_with_extreme`.
    margin, alpha
        As in `certify`.
    confidence_level : float, optional
        Of the one-sided bounds; by default 1 - alpha.

    Yields
    ------
    Sums, then Rows if they are needed

    Returns
    -------
    AuditResult
    """
    limit = asked.limit(margin)
    level = 1.0 - alpha if confidence_level is None else confidence_level
    measured, tables = yield from compare_with_extreme(table, metric, asked)
    families = _families(tables, asked)
    own_level = _shared_level(level, tables, asked)
    numbers = []
    for one in tables:
        found = one.comparison
        if found is None:
            numbers.append(_NOTHING)
            continue
        within = np.minimum(families * found.p_values_within(limit), 1.0)
        beyond = families * found.p_values(limit)
        end, none = found.bounds(own_level), np.full(len(found.value), _natural(asked))
        below, above = (end, none) if asked.side < 0 else (none, end)
        numbers.append(
            TableNumbers(
                low=np.minimum(below, found.estimate),
                high=np.maximum(above, found.estimate),
                statistic=-asked.side * found.roots(limit),
                p_value=within,
                p_value_raw=np.minimum(special.ndtr(asked.side * found.roots(limit)), within),
                decision=[
                    Decision.WITHIN_MARGIN
                    if p <= alpha
                    else Decision.DETECTED
                    if q <= alpha
                    else Decision.NOT_DETECTED
                    for p, q in zip(within, beyond, strict=True)
                ],
                beyond=beyond,
            )
        )
    side = "below" if asked.side < 0 else "above"
    gap = "gap" if asked.scale == "difference" else "ratio"
    return AuditResult(
        audit="certify",
        null=f"the {gap} to the {asked.reference} category is {side} {limit:g}",
        alternative=f"the {gap} to the {asked.reference} category is not {side} {limit:g}",
        alpha=alpha,
        method="comparisons with the best (Edwards and Hsu)",
        n=int(measured.moments.n.sum()),
        words=_told(measured),
        findings=extreme_findings(measured, tables, asked, numbers=numbers, level=level),
        joint=_every_category(tables, limit, asked, alpha),
        notes=(
            *measured.notes,
            _CHOSEN,
            Note(
                code="equivalence",
                message=f"A category is within the margin when its {level:.0%} bound, valid for"
                " all categories of a table whichever is truly the extreme one, lies inside.",
            ),
        ),
        details=_details(
            measured,
            tables,
            asked,
            margin=margin,
            bounds=sorted([limit, _natural(asked)]),
            tables=describe_tables(tables, level=own_level, limit=limit),
        ),
    )


def describe_tables(
    tables: list[ComparedTable],
    *,
    level: float,
    limit: float,
    with_companions: bool = False,
    units: Units | None = None,
) -> list[ExtremeTable]:
    """Write the numbers of every table, row by row."""
    return [
        _description(one, level, limit, with_companions=with_companions, units=units)
        for one in tables
    ]


def _description(
    one: ComparedTable, level: float, limit: float, *, with_companions: bool, units: Units | None
) -> ExtremeTable:
    found = one.comparison
    empty = np.full(int(one.compared.sum()), np.nan)
    low, high, equal, below, bound = (one.whole(empty) for _ in range(5))
    words: list[str | None] = [None] * len(one.n)
    permutation, critical, beside = None, None, None
    if found is not None:
        low, high = (one.whole(end) for end in found.confidence_interval(level))
        equal, below = one.whole(found.p_values()), one.whole(found.p_values(limit))
        bound = one.whole(found.bounds(level))
        critical = float(found.critical(level))
        said = readings(low[one.compared], high[one.compared], limit, natural=found.natural)
        for k, reading in zip(np.flatnonzero(one.compared), said, strict=True):
            words[k] = reading
        if one.counts:
            x, n = one.selected[one.compared], one.n[one.compared].astype(np.float64)
            common = x.sum() / n.sum()
            if n.min() * min(common, 1.0 - common) < FEW_EXPECTED:
                permutation = permutation_p_value(x, n, rng=one.rng)
            if with_companions:
                beside = _companions(one, x, n, found.extreme, level)
        elif with_companions and units is not None:
            beside = _standardised(one, units, found.extreme, level)
    wilson = np.full((2, len(one.n)), np.nan)
    if one.counts:
        z = np.full(len(one.n), special.ndtri((1.0 + level) / 2.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            wilson = np.array(WilsonRate(one.selected, one.n.astype(np.float64)).interval(z))
    return {
        "columns": list(one.table.columns),
        "categories": list(one.table.names),
        "labels": [list(labels) for labels in one.table.labels],
        "n": one.n.tolist(),
        "selected": one.selected.tolist(),
        "rate": _numbers(one.rate),
        "rate_low": _numbers(wilson[0]),
        "rate_high": _numbers(wilson[1]),
        "share": (one.n / max(one.n.sum(), 1)).tolist(),
        "estimate": _numbers(one.whole(empty if found is None else found.estimate)),
        "low": _numbers(low),
        "high": _numbers(high),
        "p_equal": _numbers(equal),
        "p_below": _numbers(below),
        "certify_low": _numbers(bound),
        "verdict": words,
        "excluded": [
            one.reasons[k].code if k in one.reasons and not one.compared[k] else None
            for k in range(len(one.n))
        ],
        "highest": one.highest,
        "critical": critical,
        "k": int(one.compared.sum()),
        "permutation_p": permutation,
        "companions": beside,
    }


def _companions(
    one: ComparedTable, x: FloatArray, n: FloatArray, extreme: int, level: float
) -> list[dict[str, float | int | None]]:
    found = companions(x, n, extreme, confidence_level=level)
    rows: list[dict[str, float | int | None]] = [{} for _ in one.n]
    for name in found.__dataclass_fields__:
        for k, value in zip(np.flatnonzero(one.compared), getattr(found, name), strict=True):
            written = int(value) if isinstance(value, np.integer) else float(value)
            rows[k][name] = written if np.isfinite(written) else None
    return rows


def _standardised(
    one: ComparedTable, units: Units, extreme: int, level: float
) -> list[dict[str, float | int | None]] | None:
    """Differences of means in standard deviations of all rows of the table."""
    if not np.all(units.w == 1.0):
        return None
    count = np.ones(len(units.u)) if units.count is None else units.count
    kept = np.repeat(np.arange(len(units.u)), (count * one.known[units.cell]).round().astype(int))
    category, y = one.table.category[units.cell[kept]], units.u[kept]
    cluster = None if units.unit is None else units.unit[kept]
    places = np.flatnonzero(one.compared)
    rows: list[dict[str, float | int | None]] = [{} for _ in one.n]
    if np.ptp(y) == 0.0:
        return None
    for k in places:
        if k == places[extreme]:
            continue
        try:
            found = standardised_mean_difference(
                y, category == k, comparator=category == places[extreme], cluster=cluster
            )
        except GroupTooSmallError:
            continue  # neither of the two varies
        low, high = found.confidence_interval(level)
        rows[k] = {
            "smd": found.estimate,
            "smd_low": float(low),
            "smd_high": float(high),
            "smd_p": found.p_value,
        }
    return rows


def _numbers(values: FloatArray) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def _natural(asked: ExtremeAsked) -> float:
    return 1.0 if asked.scale == "ratio" else 0.0


def _away(asked: ExtremeAsked) -> str:
    return f"{'lower' if asked.side < 0 else 'higher'} than the {asked.reference} one"


def _methods(tables: list[ComparedTable]) -> str:
    return ", ".join(sorted({one.method for one in tables}))


def _family_note(tables: list[ComparedTable], asked: ExtremeAsked, level: float) -> Note:
    counted = sum(one.comparison is not None for one in tables)
    if counted > 1 and asked.by == "audit":
        family = f"all {counted} tables together (a share of the level for each)"
    elif counted > 1:
        family = f"each of {counted} tables by itself"
    else:
        family = "the table"
    return Note(
        code="multiplicity",
        message=f"Intervals hold for all categories of a table at once, at {100 * level:g}% for"
        f" {family}, whichever category is truly the {asked.reference} one (all pairs).",
    )


def _all_equal(tables: list[ComparedTable], null: str, alpha: float) -> JointTest:
    found = [one.comparison for one in tables if one.comparison is not None]
    if not found:
        note = Note(code="vacuous", message="No hypothesis is left to test jointly.")
        return JointTest(null=null, decision=Decision.NOT_TESTED, method="all pairs", notes=(note,))
    smallest = min(found, key=lambda one: one.p_value)
    p = min(len(found) * smallest.p_value, 1.0)
    method = "all pairs" if len(found) == 1 else f"all pairs, Bonferroni over {len(found)} tables"
    return JointTest(
        null=null,
        decision=Decision.DETECTED if p <= alpha else Decision.NOT_DETECTED,
        method=method,
        statistic=smallest.statistic,
        p_value=p,
    )


def _every_category(
    tables: list[ComparedTable], limit: float, asked: ExtremeAsked, alpha: float
) -> JointTest:
    side = "below" if asked.side < 0 else "above"
    null = f"some category compared is {side} {number(limit)} of the {asked.reference}"
    found = [one.comparison for one in tables if one.comparison is not None]
    method = "intersection-union"
    if not found:
        note = Note(code="not-all-tested", message="No category could be compared.")
        return JointTest(null=null, decision=Decision.NOT_TESTED, method=method, notes=(note,))
    p = max(one.p_value_within(limit) for one in found)
    decision = Decision.WITHIN_MARGIN if p <= alpha else Decision.NOT_DETECTED
    return JointTest(null=null, decision=decision, method=method, p_value=p)


def _details(
    measured: Measured, compared: list[ComparedTable], asked: ExtremeAsked, **own: Any
) -> DisparityDetails:
    n_units = measured.moments.n_units
    values = [
        {
            "group": name,
            "group_value": float(rate) if np.isfinite(rate) else None,
            "target_value": None
            if one.comparison is None
            else float(one.comparison.value[one.comparison.extreme]),
            "se": None,
        }
        for one in compared
        for name, rate in zip(one.table.names, one.rate, strict=True)
    ]
    return DisparityDetails(
        **own,
        metric=measured.name,
        scale=asked.scale,
        reference=asked.reference,
        null_value=_natural(asked),
        n_units=n_units,
        n_clusters=n_units if measured.clustered else None,
        values=values,  # type: ignore[arg-type]
    )
