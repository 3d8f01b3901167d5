"""Which groups differ, which exceed a tolerance, and which are shown to be within a margin."""

from typing import TYPE_CHECKING

import numpy as np

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
from equipoise.audits.asking import Asking, question_method
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
from equipoise.exceptions import InvalidParameterError
from equipoise.results.finding import Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.gaps import Disparities
from equipoise.stats.disparity.joint import joint_test
from equipoise.stats.disparity.simultaneous import simultaneous_disparities
from equipoise.stats.multiplicity import adjusted_p_values

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["certify", "disparity", "flag"]


@question_method
def disparity(
    self: "Audit",
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
) -> Asking[AuditResult]:
    """Say how big each subgroup's gap is, and whether there is any.

    The null hypothesis of a finding is that the subgroup's metric equals the reference; that
    of `joint` is that all do. The sampling error of an estimated reference counts.

    Parameters
    ----------
    metric : str or Metric
        A name such as ``"fpr"``, or a metric of your own.
    reference : "population", "rest", dict, float or External
        What subgroups are compared with: everybody, everybody else, a group such as
        ``{"race": "White"}``, a known number, or an estimate from elsewhere.
    depth : int, optional
        How many group columns may be combined; by default all.
    method : {"auto", "el", "eel", "plug_in"}
        The test that fits the size and kind of the data, empirical likelihood, Euclidean
        likelihood, or the plug-in method of the paper, whose intervals are too narrow or too wide
        and say so.
    scale : {"difference", "ratio"}
        Group minus reference, or group over reference (impact ratio).
    simultaneous : bool
        Whether intervals and p-values hold for all subgroups together (max-t).
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Level of the intervals.
    rng : int or numpy Generator, optional
        For the max-t critical value.

    Returns
    -------
    AuditResult
        `details` has the metric, the reference, and for each subgroup its value, the
        reference's value and the standard error.

    Examples
    --------
    Is a high-risk label as often right for African-American as for Caucasian defendants?

    >>> import equipoise as eq
    >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group="race", count="count",
    ...                  y_true="two_year_recid", y_pred="high_risk")
    >>> result = audit.disparity("ppv", reference={"race": "Caucasian"})
    >>> finding = result.findings[0]
    >>> print(finding.group, f"{finding.estimate:.3f}", f"{finding.p_value:.3f}")
    race=African-American 0.038 0.051

    Right 3.8 points more often, which chance alone could explain (p = 0.051).
    """
    check_fraction("alpha", alpha)
    check_flag("simultaneous", simultaneous)
    groups = yield from compare_subgroups(
        self.table, metric, reference, depth, method, scale, confidence_level
    )
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
        n=int(groups.measured.moments.n.sum()),
        findings=findings,
        joint=_joint(groups, null, method, alpha),
        notes=tuple(notes),
        details=comparison_details(groups, simultaneous=simultaneous),
    )


@question_method
def flag(
    self: "Audit",
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
) -> Asking[AuditResult]:
    """Say which subgroups exceed the tolerance.

    The null hypothesis of a finding is that the subgroup's gap is within the tolerance; all
    subgroups form one family, and false flags are controlled.

    Parameters
    ----------
    metric : str or Metric
        A name such as ``"fpr"``, or a metric of your own.
    margin : float, default 0
        Tolerated gap. On the ratio scale 0.2 tolerates ratios from 0.8 to 1/0.8.
    alternative : {"two-sided", "greater", "less", "outside"}
        Flag gaps other than zero, above the margin, below minus the margin, or outside.
    adjust : {"bh", "by", "holm", "bonferroni", "none", "auto"}
        Benjamini-Hochberg ("auto"), Benjamini-Yekutieli, Holm, Bonferroni or no adjustment.
    reference, depth, method, scale, alpha, confidence_level
        As in `disparity`; the interval is two-sided and marginal.

    Returns
    -------
    AuditResult

    Examples
    --------
    For whom is a high-risk label wrong more than 5 points more often than overall?

    >>> import equipoise as eq
    >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group=["race", "sex"], count="count",
    ...                  y_true="two_year_recid", y_pred="high_risk")
    >>> result = audit.flag("fpr", margin=0.05)
    >>> [finding.group for finding in result.findings if finding.decision == "detected"]
    ['race=African-American', 'race=African-American & sex=Male']
    """
    check_fraction("alpha", alpha)
    check_option("alternative", alternative, FlagAlternative)
    check_option("adjust", adjust, Adjust)
    low, high = _tolerance(margin, scale)
    if alternative == "two-sided" and margin != 0.0:
        raise InvalidParameterError(
            '`alternative="two-sided"` tests against no gap at all; with a margin say "outside".'
        )
    groups = yield from compare_subgroups(
        self.table, metric, reference, depth, method, scale, confidence_level
    )
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
        n=int(groups.measured.moments.n.sum()),
        findings=subgroup_findings(
            groups,
            p=p,
            p_raw=raw,
            decisions=_rejected(p, alpha),
            interval=(found.ci_low, found.ci_high, confidence_level),
            statistic=statistic,
        ),
        notes=tuple(notes),
        details=comparison_details(
            groups, margin=margin, alternative=alternative, adjust=rule, bounds=[low, high]
        ),
    )


@question_method
def certify(
    self: "Audit",
    metric: str | Metric,
    *,
    margin: float,
    reference: Reference = "population",
    depth: int | None = None,
    method: DisparityMethod = "auto",
    scale: Scale = "difference",
    alpha: float = 0.05,
    confidence_level: float | None = None,
) -> Asking[AuditResult]:
    """Show, where the data can, that every subgroup is within the margin.

    The null hypothesis of a finding is that the subgroup is at least the margin away, so that
    a small group is inconclusive, never within the margin for lack of data.

    Parameters
    ----------
    metric : str or Metric
        A name such as ``"fpr"``, or a metric of your own.
    margin : float
        Above 0. On the ratio scale 0.2 means ratios between 0.8 and 1/0.8.
    reference, depth, method, scale, alpha
        As in `disparity`.
    confidence_level : float, optional
        Of the intervals; by default 1 - 2 alpha, the level at which an interval inside the
        margin and a `WITHIN_MARGIN` decision are the same thing.

    Returns
    -------
    AuditResult
        Decisions are `WITHIN_MARGIN`, `DETECTED` (beyond the margin) and `NOT_DETECTED`
        (inconclusive); `joint` is the claim about all subgroups.

    Examples
    --------
    Are the sexes shown to differ by less than 5 points in accuracy from everybody?

    >>> import equipoise as eq
    >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group="sex", count="count",
    ...                  y_true="two_year_recid", y_pred="high_risk")
    >>> result = audit.certify("accuracy", margin=0.05)
    >>> [str(finding.decision) for finding in result.findings]
    ['within margin', 'within margin']
    """
    check_fraction("alpha", alpha)
    low, high = _tolerance(margin, scale)
    if margin == 0.0:
        raise InvalidParameterError(
            "`margin` must be above 0: no data can show that a gap is exactly zero."
        )
    level = 1.0 - 2.0 * alpha if confidence_level is None else confidence_level
    groups = yield from compare_subgroups(
        self.table, metric, reference, depth, method, scale, level
    )
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
        n=int(groups.measured.moments.n.sum()),
        findings=findings,
        joint=_all_within(findings, margin, alpha),
        notes=tuple(notes),
        details=comparison_details(groups, margin=margin, bounds=[low, high]),
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
    compared = [finding for finding in findings if not finding.is_reference]
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
    count = int(found.tested.sum())
    all_of_them = simultaneous_disparities(found, confidence_level=confidence_level, rng=rng)
    message = (
        f"Intervals and p-values hold for all {count} groups together ({all_of_them.rule},"
        f" critical value {all_of_them.critical:.2f})."
        if count
        else "No group could be tested."
    )
    note = Note(code="simultaneous", message=message)
    return all_of_them.low, all_of_them.high, all_of_them.p_value, note


def _adjust_note(rule: str, count: int) -> Note:
    words = {
        "bh": "Benjamini-Hochberg: the expected share of false flags is at most alpha",
        "by": "Benjamini-Yekutieli: the same under any dependence",
        "holm": "Holm: the chance of any false flag is at most alpha",
        "bonferroni": "Bonferroni: the chance of any false flag is at most alpha",
        "none": "not adjusted: with many groups some are flagged by chance",
    }[rule]
    return Note(code="multiplicity", message=f"P-values of one family of {count} groups, {words}.")
