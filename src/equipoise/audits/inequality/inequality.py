"""How unequal benefits are, within and between groups, and whether harmful errors are kept rare."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np

from equipoise._checks import check_flag, check_fraction
from equipoise._typing import Rng
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.disparity.subgroups import (
    STATUS_NOTES,
    finite,
    status_notes,
    unit_notes,
)
from equipoise.audits.inequality.benefits import (
    AnyBenefits,
    Benefits,
    MeasuredBenefits,
    find_benefits,
    measure_benefits,
)
from equipoise.audits.inequality.questions import InequalityDetails
from equipoise.data.groups import cell_names
from equipoise.data.metrics import METRICS
from equipoise.data.query import NarrowRows
from equipoise.data.table import Quantity, Rows, Table
from equipoise.moments import CellMoments, number_cells, sum_by
from equipoise.results.estimand import Estimand
from equipoise.results.finding import (
    INTERVAL_UNADJUSTED,
    ConfidenceInterval,
    Decision,
    Finding,
    JointTest,
    Note,
)
from equipoise.results.result import AuditResult
from equipoise.stats.inequality.benefits import exact_bounds
from equipoise.stats.inequality.cap import (
    CapCheck,
    IndexCap,
    KappaScheme,
    check_cap,
    effective_kappa,
)
from equipoise.stats.inequality.decomposition import (
    BetweenTest,
    EntropyDecomposition,
    between_interval,
    between_test,
    contribution_intervals,
    decompose,
    log_interval,
)
from equipoise.stats.inequality.resampled import (
    MOST_UNITS,
    ResampledIntervals,
    kernel_coefficients,
    resampled_intervals,
    resampled_unit_intervals,
)
from equipoise.stats.multiplicity import adjusted_p_values

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

_Ends: TypeAlias = tuple[float, float | None]

__all__ = ["inequality"]

EVERYBODY = "everybody"
ERROR_WORDS = {name: METRICS[name].words for name in ("fpr", "fnr")}
FEW_EVENTS = 10
MOST_CUTS = 501
LARGEST_SHARE = 0.03
"""Sum of fourth powers of the influence over the squared sum of squares: from here on the normal
law covered less than 93% in simulations of 20,000 to 100,000 rows."""
MOVED = 0.05
"""Relative change of kappa through the base rate beyond which the reader is told."""

DESCRIPTIVE = Note(
    code="descriptive",
    message="An estimate, not a test: any spread of benefits makes this part positive. The test is"
    " that of the between-group part.",
)
ONE_GROUP = Note(code="one-group", message="There is one group; nothing lies between groups.")
TOO_FEW = Note(
    code="too-few-units",
    message="No group has 4 effective units and as many outside it: mean benefits have no reliable"
    " errors.",
)
RARE = Note(
    code="rare-benefit",
    message=f"Fewer than {FEW_EVENTS} people have one of the benefit levels; large-sample intervals"
    " are too narrow then.",
)
HEAVY_TAIL = Note(
    code="heavy-tail",
    message="A few people with very large benefits make up most of the index's error. In"
    " simulations like this, intervals that claim 95% covered 89% to 93%.",
)
FEW_CLUSTERS = 20
NULL = "all groups have the same mean benefit (the between-group part is zero)"


@question_method
def inequality(
    self: "Audit",
    benefits: AnyBenefits,
    *,
    order: float = 1.0,
    soft: bool = False,
    kappa: float | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking[AuditResult]:
    r"""Say how unequal the benefits of decisions are, within and between groups.

    The null hypothesis of `joint` is that all groups have the same mean benefit, so that the
    between-group part of the index is zero.

    Parameters
    ----------
    benefits : "speicher", BenefitDesign, dict, matrix or column
        What a decision is worth to the person: ``yhat - y + 1``; a design from
        `equipoise.design.benefit_design`, or a dict of its arguments; a matrix
        ``B[yhat][y]`` for labels 0, 1, ...; or the name of a column of benefits.
    order : float, default 1
        Order of the index; a design brings its own.
    soft : bool
        Whether to read `y_score` as the probability of decision 1, and average over it.
    kappa : float, optional
        How many benign errors a harmful one is worth, for a matrix with one benefit for one
        of the decisions; a design brings its own.
    alpha : float, default 0.05
        Level of the tests; those of single groups are adjusted by Holm.
    confidence_level : float, default 0.95
        Level of the intervals.
    rng : int or numpy Generator, optional
        For intervals that rest on resamples.

    Returns
    -------
    AuditResult
        Findings: the index, its within- and between-group parts (each less its bias),
        with `kappa` the contrast of error rates and then the index against its cap, and each
        group's contributions. `details` has `total`, `within`, `between`, `between_share`,
        `within_share`, `contributions`, `error_rates`, `cap`, `roc`, `matrix`, `order`.

    Examples
    --------
    Do false alarms and misses fall unequally on the races?

    >>> import equipoise as eq
    >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group="race", count="count",
    ...                  y_true="two_year_recid", y_pred="high_risk")
    >>> result = audit.inequality("speicher", order=2)
    >>> print(f"{result.findings[0].estimate:.4f} {result.details['between_share']:.1%}")
    0.1700 1.4%
    >>> result.joint.p_value < 0.001
    True

    They do, though 1.4% of the inequality lies between races and the rest within them.
    """
    check_fraction("alpha", alpha)
    check_flag("soft", soft)
    check_fraction("confidence_level", confidence_level)
    table = self.table
    asked = find_benefits(table, benefits, order=order, soft=soft, kappa=kappa)
    measured = yield from measure_benefits(table, asked)
    parts = decompose(measured.moments)
    names = _names(measured)
    test = between_test(measured.moments) if len(names) > 1 else None
    rates = None if measured.people is None else _error_rates(measured.people)
    limit = None if rates is None else asked.limit(rates["base_rate"])
    check = None
    if limit is not None and measured.people is not None:
        check = check_cap(
            measured.people,
            limit[0],
            cap=limit[1].cap,
            order=asked.order,
            confidence_level=1.0 - alpha,
        )
    found = yield from _intervals(table, asked, measured, parts, confidence_level, rng)
    findings, details = _parts(parts, found, test, alpha, confidence_level)
    if limit is not None and check is not None:
        findings += _cap_findings(limit[0], check, parts, alpha)
        details["cap"] = _cap_details(limit, check)
        details["roc"] = yield from _roc(table)
    group_findings, contributions = _contributions(
        parts,
        found,
        test,
        names,
        alpha,
        confidence_level,
        clustered=table.roles.cluster is not None,
        few_levels=measured.people is not None,
    )
    notes = [*measured.notes, *found.notes]
    if asked.design is not None and rates is not None:
        notes += _moved(asked.design.scheme, rates["base_rate"])
    if table.roles.cluster is not None:
        details["n_clusters"] = measured.moments.moments.n_units
    return AuditResult(
        audit="inequality",
        null=NULL,
        alternative="groups differ in mean benefit",
        alpha=alpha,
        method=f"generalized entropy index of order {asked.order:g}, benefits: {asked.name}",
        n=int(measured.cells.n.sum()),
        findings=tuple(findings + group_findings),
        joint=_joint(test, alpha),
        notes=tuple(notes),
        details=InequalityDetails(
            **details,
            order=asked.order,
            benefits=asked.name,
            soft=asked.soft,
            matrix=None if asked.matrix is None else asked.matrix.tolist(),
            mean_benefit=parts.mean,
            error_rates=rates,
            contributions=contributions,
        ),
    )


def _names(measured: MeasuredBenefits) -> list[str]:
    cells = measured.cells
    if not cells.columns:
        return [EVERYBODY]
    return list(cell_names(cells.columns, cells.labels))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Intervals:
    """Intervals of the index, its within-group part and what each group adds to that."""

    total: _Ends
    within: _Ends
    within_group: Sequence[_Ends]
    method: str
    method_of_total: str
    rare: bool = False
    notes: tuple[Note, ...] = ()


def _intervals(
    table: Table,
    asked: Benefits,
    measured: MeasuredBenefits,
    parts: EntropyDecomposition,
    level: float,
    rng: Rng,
) -> Asking[_Intervals]:
    """Resample rows or units; where there are many, or few benefit levels, sums are enough."""
    found = yield from _resampled(table, measured, level, rng)
    if found is not None:
        n_units = measured.cells.n_units
        few = table.roles.cluster is not None and n_units < FEW_CLUSTERS
        return _Intervals(
            total=_around(found.total, parts.total),
            within=_around(found.within, parts.within_corrected),
            within_group=[*map(_around, found.within_group, parts.within_group.tolist())],
            method="studentised bootstrap",
            method_of_total="studentised bootstrap",
            notes=(_few_units(n_units),) if few else (),
        )
    total = log_interval(parts.total, parts.total_se, confidence_level=level)
    method = "log-Wald interval"
    rare = _rare(asked, measured)
    if rare and measured.independent and measured.counts is not None:
        tp, fn, fp, tn = measured.counts
        if min(tp + fn, fp + tn) > 0:
            bounds = exact_bounds(
                [[tn, fn], [fp, tp]],
                matrix=asked.matrix,
                order=asked.order,
                confidence_level=level,
            )
            total, method = (bounds.low, bounds.high), "exact binomial bounds"
    notes: tuple[Note, ...] = ()
    # A few benefit levels have no tail.
    if measured.people is None and table.roles.cluster is None:
        notes = yield from _heavy_tail(table, measured, parts)
    return _Intervals(
        total=total,
        within=log_interval(parts.within_corrected, parts.within_se, confidence_level=level),
        within_group=[
            log_interval(float(value), float(se), confidence_level=level)
            for value, se in zip(parts.within_group, parts.within_group_se, strict=True)
        ],
        method="log-Wald interval",
        method_of_total=method,
        rare=rare,
        notes=notes,
    )


def _resampled(
    table: Table, measured: MeasuredBenefits, level: float, rng: Rng
) -> Asking[ResampledIntervals | None]:
    """Return None where counts are sufficient, or with more units than are resampled."""
    if measured.independent or measured.cells.n_units > MOST_UNITS:
        return None
    options: dict[str, Any] = {
        "order": measured.moments.order,
        "confidence_level": level,
        "rng": rng,
    }
    if table.roles.cluster is not None:
        cluster = Quantity("cluster", None, nw.col(table.roles.cluster))
        units: CellMoments = yield replace(
            measured.declared, keys=(*measured.declared.keys, cluster), counted=(), order=1
        )
        group = np.zeros(len(units.n), dtype=np.int64)
        if len(units.labels) > 1:
            group, _ = number_cells(units.labels[:-1])
        sums = units.total @ measured.change.T
        return resampled_unit_intervals(sums, group, units.labels[-1], **options)
    narrow: NarrowRows = yield Rows(measured.declared)
    rows = narrow.read()
    benefit, group, weight = measured.change[1] @ np.array(rows.values), rows.cell, rows.weight
    if rows.count is not None:
        times = rows.count.round().astype(np.int64)
        benefit, group = np.repeat(benefit, times), np.repeat(group, times)
        weight = None if weight is None else np.repeat(weight, times)
    return resampled_intervals(benefit, group, weight=weight, **options)


def _around(ends: _Ends, estimate: float) -> _Ends:
    """Widen an interval that leaves out its estimate, as resamples of a few rows may."""
    low, high = ends
    return min(low, estimate), None if high is None else max(high, estimate)


def _few_units(n_units: int) -> Note:
    return Note(
        code="few-units",
        message=f"{n_units} clusters: in simulations of ten, intervals of the index that claim 95%"
        " covered 92% to 93%.",
    )


def _heavy_tail(
    table: Table, measured: MeasuredBenefits, parts: EntropyDecomposition
) -> Asking[tuple[Note, ...]]:
    """Say so where a few rows make up the error of the index: one more scan, fourth powers."""
    _, benefit, power = (q.value for q in measured.declared.quantities)
    constant, slope, curve = kernel_coefficients(parts.mean, measured.moments.order)
    a, x = measured.moments.order, benefit / parts.mean
    influence = constant + slope * x + curve * power - parts.total * (1.0 + a * (x - 1.0))
    weight = nw.lit(1.0) if table.roles.weight is None else table.value("weight")
    squares = Quantity.of(influence * influence * weight)
    cells: CellMoments = yield replace(measured.declared, quantities=(squares,), counted=())
    share = float(cells.product.sum()) / float(cells.total.sum()) ** 2
    return (HEAVY_TAIL,) if share > LARGEST_SHARE else ()


def _parts(
    parts: EntropyDecomposition,
    found: _Intervals,
    test: BetweenTest | None,
    alpha: float,
    level: float,
) -> tuple[list[Finding], dict[str, Any]]:
    """Return the findings of total, within and between, and their numbers."""
    n = int(parts.n.sum())
    notes = (DESCRIPTIVE, RARE) if found.rare else (DESCRIPTIVE,)
    findings = [
        Finding(
            group=EVERYBODY,
            estimand=Estimand(part, "index"),
            estimate=estimate,
            ci=_ci(ends, level),
            decision=Decision.ESTIMATED,
            n=n,
            method=how,
            notes=notes,
        )
        for part, estimate, ends, how in (
            ("inequality index", parts.total, found.total, found.method_of_total),
            ("within-group part", parts.within_corrected, found.within, found.method),
        )
    ]
    details: dict[str, Any] = {
        "total": _numbers(parts.total, parts.total_se, found.total),
        "within": _numbers(parts.within, parts.within_se, found.within)
        | {"corrected": parts.within_corrected},
    }
    if test is not None:
        ends = between_interval(parts, test, confidence_level=level)
        common: dict[str, Any] = {
            "group": EVERYBODY,
            "estimand": Estimand("between-group part", "index"),
            "n": n,
            "method": "joint test of group means, bias-corrected estimate",
        }
        if np.isfinite(test.p_value):
            common |= {
                "estimate": parts.between_corrected,
                "ci": _ci(ends, level),
                "statistic": finite(test.statistic),
                "p_value": test.p_value,
                "p_value_raw": test.p_value,
                "decision": _decision(test.p_value, alpha),
            }
        else:
            common |= {"decision": Decision.NOT_TESTED, "notes": (_untested(test),)}
        findings.append(Finding(**common))
        details["between"] = _numbers(parts.between, parts.between_se, ends) | {
            "bias": parts.between_bias,
            "corrected": parts.between_corrected,
        }
        share = parts.between / parts.total if parts.total > 0.0 else 0.0
        details |= {"between_share": share, "within_share": 1.0 - share}
    return findings, details


def _contributions(
    parts: EntropyDecomposition,
    found: _Intervals,
    test: BetweenTest | None,
    names: list[str],
    alpha: float,
    level: float,
    *,
    clustered: bool,
    few_levels: bool,
) -> tuple[list[Finding], list[dict[str, Any]]]:
    """Return, for each group, what it adds to both parts; tests are adjusted by Holm."""
    if test is None:
        return [], []
    groups = test.groups
    tested, raw = groups.tested, groups.p_value
    adjusted = adjusted_p_values(raw, "holm")
    low, high = contribution_intervals(parts, test, confidence_level=level)
    method = "ratio of mean benefits; Holm"
    few = unit_notes(groups, clustered=clustered, bounded=few_levels)
    findings, records = [], []
    for g, name in enumerate(names):
        within_ci = found.within_group[g]
        between_ci = (float(low[g]), float(high[g]) if np.isfinite(high[g]) else None)
        common: dict[str, Any] = {"group": name, "n": int(parts.n[g]), "reference": EVERYBODY}
        if tested[g]:
            decision, ci = _decision(float(adjusted[g]), alpha), _ci(between_ci, level)
            differ = (0.0 in ci) == (decision is Decision.DETECTED)
            findings.append(
                Finding(
                    **common,
                    estimand=Estimand("between contribution", "contribution"),
                    estimate=float(parts.between_group[g]),
                    ci=ci,
                    statistic=float(groups.statistic[g]),
                    p_value=float(adjusted[g]),
                    p_value_raw=float(raw[g]),
                    decision=decision,
                    method=method,
                    notes=(*few[g], INTERVAL_UNADJUSTED) if differ else few[g],
                )
            )
        else:
            findings.append(
                Finding(
                    **common,
                    estimand=Estimand("between contribution", "contribution"),
                    decision=Decision.NOT_TESTED,
                    method=method,
                    notes=few[g] or status_notes(str(groups.status[g]), 0, tested=False),
                )
            )
        findings.append(
            Finding(
                **common,
                estimand=Estimand("within contribution", "contribution"),
                estimate=float(parts.within_group[g]),
                ci=_ci(within_ci, level),
                decision=Decision.ESTIMATED,
                method=found.method,
                notes=(DESCRIPTIVE,),
            )
        )
        records.append(
            {
                "group": name,
                "n": int(parts.n[g]),
                "share": float(parts.share[g]),
                "mean_benefit": float(parts.relative_mean[g] * parts.mean),
                "relative_mean": float(parts.relative_mean[g]),
                "index": parts.group_index[g],
                "within": _numbers(
                    float(parts.within_group[g]), float(parts.within_group_se[g]), within_ci
                ),
                "between": {
                    "estimate": float(parts.between_group[g]),
                    "ci_low": between_ci[0] if tested[g] else None,
                    "ci_high": between_ci[1] if tested[g] else None,
                },
            }
        )
    return findings, records


def _cap_findings(
    scheme: KappaScheme, check: CapCheck, parts: EntropyDecomposition, alpha: float
) -> list[Finding]:
    """Return the direct contrast first, then the index against its cap."""
    n = int(parts.n.sum())
    direct = Decision.NOT_DETECTED
    if check.contrast_shown:
        direct = Decision.WITHIN_MARGIN
    elif check.contrast_refuted:
        direct = Decision.DETECTED
    benign, harmful = ("fnr", "fpr") if scheme.kind == "punitive" else ("fpr", "fnr")
    contrast = Finding(
        group=EVERYBODY,
        estimand=Estimand(
            f"{benign} - {scheme.kappa:g} x {harmful}",
            "contrast",
            noun=f"{ERROR_WORDS[benign]} - {scheme.kappa:g} x {ERROR_WORDS[harmful]}",
        ),
        estimate=check.contrast,
        ci=ConfidenceInterval(
            low=check.contrast_low, high=check.contrast_high, confidence_level=1.0 - 2.0 * alpha
        ),
        decision=direct,
        n=n,
        reference="0",
        method="Clopper-Pearson rectangle" if check.exact else "delta method",
        notes=(
            Note(
                code="direct-contrast",
                message=f"Within margin means: shown that {scheme.kappa:g} x {harmful} < {benign}."
                " This is the question itself; the cap below is a stricter stand-in for it.",
            ),
        ),
    )
    high = None if check.index_high is None else check.index_high - check.cap
    index = Finding(
        group=EVERYBODY,
        estimand=Estimand("index less its cap", "index"),
        estimate=check.index - check.cap,
        ci=ConfidenceInterval(low=None, high=high, confidence_level=1.0 - alpha),
        decision=Decision.WITHIN_MARGIN if check.index_shown else Decision.NOT_DETECTED,
        n=n,
        reference=f"cap {check.cap:.4g}",
        method="log-Wald bound",
        notes=(
            Note(
                code="conservative-cap",
                message="An index below its cap proves the ratio of errors; one above it proves"
                " nothing. Many models that respect the ratio are above the cap.",
            ),
        ),
    )
    return [contrast, index]


def _cap_details(limit: tuple[KappaScheme, IndexCap], check: CapCheck) -> dict[str, Any]:
    scheme, cap = limit
    return {
        "kind": scheme.kind,
        "kappa": scheme.kappa,
        "base_rate": scheme.base_rate,
        "low": scheme.low,
        "high": scheme.high,
        "mean_at_limit": scheme.mean_at_limit,
        "harmful_rate": check.harmful_rate,
        "benign_rate": check.benign_rate,
        "contrast": {
            "estimate": check.contrast,
            "bound_low": check.contrast_low,
            "bound_high": check.contrast_high,
            "shown": check.contrast_shown,
            "refuted": check.contrast_refuted,
            "exact": check.exact,
        },
        "index": {
            "estimate": check.index,
            "bound_high": check.index_high,
            "cap": cap.cap,
            "binding": cap.binding,
            "largest_harm": cap.largest_harm,
            "shown": check.index_shown,
        },
    }


def _error_rates(people: CellMoments) -> dict[str, Any]:
    """Return base rate, error rates and the covariance of (FPR, FNR)."""
    size = people.total[0]
    positives, negatives = float(size[:2].sum()), float(size[2:].sum())
    rates: dict[str, Any] = {"base_rate": positives / (positives + negatives)}
    if min(positives, negatives) == 0.0:
        return rates | {"fpr": None, "fnr": None, "covariance": None}
    fpr, fnr = float(size[2] / negatives), float(size[1] / positives)
    influence = np.array(
        [
            [0.0, 0.0, (1.0 - fpr) / negatives, -fpr / negatives],
            [-fnr / positives, (1.0 - fnr) / positives, 0.0, 0.0],
        ]
    )
    covariance = influence @ people.product[0] @ influence.T
    return rates | {"fpr": fpr, "fnr": fnr, "covariance": covariance.tolist()}


def _roc(table: Table) -> Asking[list[dict[str, float | None]] | None]:
    """Return error rates at each cut of the score, rounded to thousandths; one more scan.

    People at or above the threshold are selected; without one, nobody is.
    """
    if table.roles.y_score is None:
        return None
    score = (table.y_score * 1000.0).round() / 1000.0
    cells: CellMoments = yield table.sums(
        [Quantity("y_true", 1, table.y_true), Quantity("y_true", 0, 1.0 - table.y_true)],
        {"y_true": "label", "y_score": "number"},
        by=[Quantity("y_score", "thousandths", score)],
        order=1,
    )
    cuts, cut = np.unique(cells.labels[-1].astype(np.float64), return_inverse=True)
    positive, negative = sum_by(cut, cells.total, len(cuts)).T
    missed = np.concatenate([[0.0], np.cumsum(positive)]) / positive.sum()
    harmed = 1.0 - np.concatenate([[0.0], np.cumsum(negative)]) / negative.sum()
    ends = [*cuts.tolist(), None]
    keep = np.unique(np.linspace(0, len(ends) - 1, min(len(ends), MOST_CUTS)).round().astype(int))
    return [{"threshold": ends[k], "fpr": float(harmed[k]), "fnr": float(missed[k])} for k in keep]


def _joint(test: BetweenTest | None, alpha: float) -> JointTest:
    if test is None or not np.isfinite(test.p_value):
        note = ONE_GROUP if test is None else _untested(test)
        return JointTest(null=NULL, decision=Decision.NOT_TESTED, method="none", notes=(note,))
    return JointTest(
        null=NULL,
        decision=_decision(test.p_value, alpha),
        method=test.method,
        statistic=finite(test.statistic),
        df=None if test.method == "bonferroni" else float(test.df),
        p_value=test.p_value,
    )


def _untested(test: BetweenTest) -> Note:
    """Say why no group could be compared with everybody."""
    few = (test.groups.status == "too_few_units").any()
    return TOO_FEW if few else STATUS_NOTES["degenerate"]


def _rare(asked: Benefits, measured: MeasuredBenefits) -> bool:
    """Whether a benefit level of a 2 x 2 matrix has so few people that intervals are too short."""
    if measured.counts is None or asked.matrix is None:
        return False
    (tn, fn), (fp, tp) = asked.matrix.tolist()
    people: dict[float, float] = {}
    for benefit, count in zip((tp, fn, fp, tn), measured.counts, strict=True):
        people[benefit] = people.get(benefit, 0.0) + float(count)
    return min(people.values()) < FEW_EVENTS


def _moved(scheme: KappaScheme, base_rate: float) -> list[Note]:
    if not 0.0 < base_rate < 1.0:
        return []
    now = effective_kappa(scheme, base_rate)
    if abs(now / scheme.kappa - 1.0) <= MOVED:
        return []
    return [
        Note(
            code="base-rate-moved",
            message=f"The design is for a base rate of {scheme.base_rate:.3g}; here it is"
            f" {base_rate:.3g}, at which the same benefits encode kappa = {now:.3g} instead of"
            f" {scheme.kappa:g}. The direct contrast uses {scheme.kappa:g}.",
        )
    ]


def _decision(p_value: float, alpha: float) -> Decision:
    return Decision.DETECTED if p_value <= alpha else Decision.NOT_DETECTED


def _ci(ends: tuple[float, float | None], level: float) -> ConfidenceInterval:
    return ConfidenceInterval(low=ends[0], high=ends[1], confidence_level=level)


def _numbers(estimate: float, se: float, ends: tuple[float, float | None]) -> dict[str, Any]:
    return {"estimate": estimate, "se": se, "ci_low": ends[0], "ci_high": ends[1]}
