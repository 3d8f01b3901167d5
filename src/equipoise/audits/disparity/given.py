"""Gaps among people who are alike in given factors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from equipoise._checks import check_fraction
from equipoise._typing import Adjust, FlagAlternative, FloatArray, Rng
from equipoise.audits.asking import Asking
from equipoise.audits.disparity.alike import (
    AlikeComparison,
    AlikeGroups,
    GivenAsked,
    conditioning_note,
)
from equipoise.audits.disparity.questions import DisparityDetails
from equipoise.audits.disparity.strata import compare_within_strata
from equipoise.audits.disparity.subgroups import finite
from equipoise.audits.disparity.wording import family_note
from equipoise.data.metrics import Metric
from equipoise.data.table import Table
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.gaps import together
from equipoise.stats.multiplicity import adjusted_p_values
from equipoise.stats.small_samples import shrunk_correlation

__all__ = ["certify_given", "compare_alike", "disparity_given", "flag_given"]


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
    from equipoise.audits.disparity.learners import compare_by_learners

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
                notes=alike.notes_of(summaries[k]),
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
