"""Which groups differ, which exceed a tolerance, and which are shown to be within a margin."""

import numpy as np
from scipy import special

from equipoise._checks import check_flag, check_fraction, check_number, check_option
from equipoise._typing import (
    Adjust,
    AnyArray,
    DisparityMethod,
    FlagAlternative,
    FloatArray,
    Rng,
    Scale,
)
from equipoise.audits.disparity.reference import Reference
from equipoise.audits.disparity.subgroups import (
    Compared,
    compare_subgroups,
    comparison_details,
    finite,
    method_words,
    plug_in_note,
    subgroup_findings,
)
from equipoise.data.metrics import Metric
from equipoise.data.table import Table
from equipoise.exceptions import InvalidParameterError
from equipoise.results.finding import Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.gaps import Disparities
from equipoise.stats.disparity.joint import joint_test
from equipoise.stats.multiplicity import adjusted_p_values, correlations, max_t

__all__ = ["certify", "disparity", "flag"]

LARGEST_MAX_T = 3000
"""More groups than this are adjusted by Bonferroni: their correlation matrix would not fit."""


def disparity(
    table: Table,
    metric: str | Metric,
    *,
    reference: Reference = "population",
    depth: int | None = None,
    method: DisparityMethod = "auto",
    scale: Scale = "difference",
    simultaneous: bool = False,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> AuditResult:
    """Estimate each subgroup's gap and test whether there is any; see `Audit.disparity`."""
    check_fraction("alpha", alpha)
    check_flag("simultaneous", simultaneous)
    groups = compare_subgroups(table, metric, reference, depth, method, scale, confidence_level)
    found = groups.found
    low, high, p = found.ci_low, found.ci_high, found.p_value
    notes = [*groups.measured.notes]
    if simultaneous:
        low, high, p, note = _simultaneous(found, confidence_level, rng)
        notes.append(note)
    elif found.tested.sum() > 1:
        notes.append(
            Note(
                code="marginal",
                message=f"Each interval and p-value stands alone; {int(found.tested.sum())} groups"
                " were looked at. Ask for simultaneous ones, or use the flag audit, to allow for"
                " that.",
            )
        )
    if method == "plug_in":
        notes.append(plug_in_note(found, confidence_level))
    null = "no group differs from " + groups.reference
    findings = subgroup_findings(
        groups,
        p=p,
        p_raw=found.p_value,
        decisions=_rejected(p, alpha),
        interval=(low, high, confidence_level),
        statistic=found.statistic,
    )
    return AuditResult(
        audit="disparity",
        null=null,
        alternative=f"the group differs from {groups.reference}",
        alpha=alpha,
        method=method_words(found, method),
        n=int(groups.measured.cells.n.sum()),
        findings=findings,
        joint=_joint(groups, null, method, alpha),
        notes=tuple(notes),
        details=comparison_details(groups) | {"simultaneous": simultaneous},
    )


def flag(
    table: Table,
    metric: str | Metric,
    *,
    margin: float = 0.0,
    alternative: FlagAlternative = "greater",
    adjust: Adjust = "auto",
    reference: Reference = "population",
    depth: int | None = None,
    method: DisparityMethod = "auto",
    scale: Scale = "difference",
    alpha: float = 0.05,
    confidence_level: float = 0.95,
) -> AuditResult:
    """Flag the subgroups that exceed the tolerance; see `Audit.flag`."""
    check_fraction("alpha", alpha)
    check_option("alternative", alternative, FlagAlternative)
    check_option("adjust", adjust, Adjust)
    low, high = _tolerance(margin, scale)
    if alternative == "two-sided" and margin != 0.0:
        raise InvalidParameterError(
            '`alternative="two-sided"` tests against no gap at all; with a margin say "outside".'
        )
    groups = compare_subgroups(table, metric, reference, depth, method, scale, confidence_level)
    found = groups.found
    raw = _flag_p_values(found, alternative, low, high)
    rule = "bh" if adjust == "auto" else adjust
    p = adjusted_p_values(raw, rule)
    bound = {"two-sided": low, "greater": high, "less": low, "outside": None}[alternative]
    statistic = found.statistic if bound is None else found.root(bound)
    gap = "gap" if scale == "difference" else "ratio"
    null, other = {
        "two-sided": (f"equal to {low:g}", f"other than {low:g}"),
        "greater": (f"at most {high:g}", f"above {high:g}"),
        "less": (f"at least {low:g}", f"below {low:g}"),
        "outside": (f"between {low:g} and {high:g}", f"outside {low:g} to {high:g}"),
    }[alternative]
    notes = [*groups.measured.notes, _adjust_note(rule, int(np.isfinite(raw).sum()))]
    if method == "plug_in":
        notes.append(plug_in_note(found, confidence_level))
    return AuditResult(
        audit="flag",
        null=f"the group's {gap} to {groups.reference} is {null}",
        alternative=f"the group's {gap} to {groups.reference} is {other}",
        alpha=alpha,
        method=method_words(found, method),
        n=int(groups.measured.cells.n.sum()),
        findings=subgroup_findings(
            groups,
            p=p,
            p_raw=raw,
            decisions=_rejected(p, alpha),
            interval=(found.ci_low, found.ci_high, confidence_level),
            statistic=statistic,
        ),
        notes=tuple(notes),
        details=comparison_details(groups)
        | {"margin": margin, "alternative": alternative, "adjust": rule, "bounds": [low, high]},
    )


def certify(
    table: Table,
    metric: str | Metric,
    *,
    margin: float,
    reference: Reference = "population",
    depth: int | None = None,
    method: DisparityMethod = "auto",
    scale: Scale = "difference",
    alpha: float = 0.05,
    confidence_level: float | None = None,
) -> AuditResult:
    """Show, where the data can, that subgroups are within the margin; see `Audit.certify`."""
    check_fraction("alpha", alpha)
    low, high = _tolerance(margin, scale)
    if margin == 0.0:
        raise InvalidParameterError(
            "`margin` must be above 0: no data can show that a gap is exactly zero."
        )
    level = 1.0 - 2.0 * alpha if confidence_level is None else confidence_level
    groups = compare_subgroups(table, metric, reference, depth, method, scale, level)
    found = groups.found
    within = found.p_within(low, high)
    beyond = adjusted_p_values(found.p_outside(low, high), "holm")
    decisions = np.where(
        within <= alpha,
        Decision.WITHIN_MARGIN,
        np.where(beyond <= alpha, Decision.DETECTED, Decision.NOT_DETECTED),
    )
    notes = [
        *groups.measured.notes,
        Note(
            code="equivalence",
            message="A group is within the margin when both one-sided tests reject, that is when"
            f" its {level:.0%} interval lies inside the margin; beyond it when the margin is"
            " exceeded after Holm's adjustment; anything else is inconclusive.",
        ),
    ]
    if method == "plug_in":
        notes.append(plug_in_note(found, level))
    findings = subgroup_findings(
        groups,
        p=within,
        p_raw=within,
        decisions=decisions,
        interval=(found.ci_low, found.ci_high, level),
        statistic=np.minimum(found.root(low), -found.root(high)),
    )
    return AuditResult(
        audit="certify",
        null=f"the group is at least the margin {margin:g} away from {groups.reference}",
        alternative=f"the group is closer than {margin:g} to {groups.reference}",
        alpha=alpha,
        method=method_words(found, method),
        n=int(groups.measured.cells.n.sum()),
        findings=findings,
        joint=_all_within(findings, margin, alpha),
        notes=tuple(notes),
        details=comparison_details(groups) | {"margin": margin, "bounds": [low, high]},
    )


def _tolerance(margin: float, scale: Scale) -> tuple[float, float]:
    """Return the ends of what is tolerated: 0 -+ margin, or 1 - margin and its reciprocal."""
    if scale == "ratio":
        value = check_number("margin", margin, low=0.0, high=0.999)
        return 1.0 - value, 1.0 / (1.0 - value)
    value = check_number("margin", margin, low=0.0)
    return -value, value


def _flag_p_values(
    found: Disparities, alternative: FlagAlternative, low: float, high: float
) -> FloatArray:
    if alternative == "greater":
        return found.p_greater(high)
    if alternative == "less":
        return found.p_less(low)
    if alternative == "outside":
        return found.p_outside(low, high)
    return found.p_value


def _rejected(p: FloatArray, alpha: float) -> AnyArray:
    return np.where(p <= alpha, Decision.DETECTED, Decision.NOT_DETECTED)


def _joint(compared: Compared, null: str, method: DisparityMethod, alpha: float) -> JointTest:
    test = joint_test(
        compared.measured.moments,
        compared.groups.membership,
        compared.target,
        binary=compared.measured.binary,
        method=method,
        units=compared.measured.units,
        use=compared.found.tested,
    )
    if not np.isfinite(test.p_value):
        note = Note(code="vacuous", message="No hypothesis is left to test jointly.")
        return JointTest(null=null, decision=Decision.NOT_TESTED, method=test.method, notes=(note,))
    return JointTest(
        null=null,
        decision=Decision.DETECTED if test.p_value <= alpha else Decision.NOT_DETECTED,
        method=test.method,
        statistic=finite(test.statistic),
        df=float(test.df),
        p_value=float(test.p_value),
    )


def _all_within(findings: tuple[Finding, ...], margin: float, alpha: float) -> JointTest:
    """Test the claim that every group is within the margin: the largest p-value decides."""
    null = f"some group is at least {margin:g} away"
    method = "intersection-union"
    compared = [f for f in findings if not any(note.code == "vacuous" for note in f.notes)]
    tested = [f.p_value for f in compared if f.p_value is not None]
    if len(tested) < len(compared) or not tested:
        note = Note(
            code="not-all-tested",
            message="Not every group could be tested, so no claim is made about all of them.",
        )
        return JointTest(null=null, decision=Decision.NOT_TESTED, method=method, notes=(note,))
    p = max(tested)
    decision = Decision.WITHIN_MARGIN if p <= alpha else Decision.NOT_DETECTED
    return JointTest(null=null, decision=decision, method=method, p_value=p)


def _simultaneous(
    found: Disparities, confidence_level: float, rng: Rng
) -> tuple[FloatArray, FloatArray, FloatArray, Note]:
    """Intervals that hold together, with p-values to match."""
    tested = found.tested
    count = int(tested.sum())
    p = np.full(len(tested), np.nan)
    if count == 0:
        note = Note(code="simultaneous", message="No group could be tested.")
        return found.ci_low, found.ci_high, p, note
    if count > LARGEST_MAX_T:
        critical = float(-special.ndtri((1.0 - confidence_level) / (2 * count)))
        p[tested] = np.minimum(found.p_value[tested] * count, 1.0)
        rule = "Bonferroni"
    else:
        law = max_t(correlations(found.covariance()[np.ix_(tested, tested)]), rng=rng)
        critical = law.critical(confidence_level)
        # From the two-sided p-value: an exact test has a different root for each side.
        raw = found.p_value[tested]
        p[tested] = np.maximum(law.p_values(-special.ndtri(raw / 2.0)), raw)
        rule = "max-t"
    low, high = found.interval(critical)
    message = (
        f"Intervals and p-values hold for all {count} groups together ({rule}, critical value"
        f" {critical:.2f})."
    )
    return low, high, p, Note(code="simultaneous", message=message)


def _adjust_note(rule: str, count: int) -> Note:
    words = {
        "bh": "Benjamini-Hochberg: the expected share of false flags is at most alpha",
        "by": "Benjamini-Yekutieli: the same under any dependence",
        "holm": "Holm: the chance of any false flag is at most alpha",
        "bonferroni": "Bonferroni: the chance of any false flag is at most alpha",
        "none": "not adjusted: with many groups some are flagged by chance",
    }[rule]
    return Note(code="multiplicity", message=f"P-values of one family of {count} groups, {words}.")
