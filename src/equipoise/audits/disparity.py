"""Which groups differ, which exceed a tolerance, and which are shown to be within a margin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_number, check_option
from equipoise._typing import (
    Adjust,
    AnyArray,
    DisparityMethod,
    FlagAlternative,
    FloatArray,
    Rng,
    Scale,
)
from equipoise.audits.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.audits.measure import Measured, measure
from equipoise.audits.result import AuditResult
from equipoise.data.grouping import Subgroups, matching_cells, subgroup_name, subgroups
from equipoise.data.metrics import Metric
from equipoise.data.table import Table
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.disparity import Disparities, Target, disparities
from equipoise.stats.joint_disparity import joint_test
from equipoise.stats.multiplicity import adjusted_p_values, max_t_critical, max_t_p_values

__all__ = ["External", "Reference", "certify", "disparity", "flag"]

SMALL_GROUP = 30
LARGEST_MAX_T = 3000
"""More groups than this are adjusted by Bonferroni: their correlation matrix would not fit."""


@dataclass(frozen=True, slots=True)
class External:
    """A target estimated elsewhere, from data independent of the table.

    Parameters
    ----------
    value : float
        The estimate.
    se : float
        Its standard error.
    """

    value: float
    se: float


Reference: TypeAlias = str | float | Mapping[str, Any] | External

_VACUOUS = Note(code="vacuous", message="This group is what the others are compared with.")
_DEGENERATE = Note(
    code="degenerate",
    message="The metric does not vary in the group or in what it is compared with, or the ratio is"
    " to zero; no test is possible.",
)
STATUS_NOTES = {
    "degenerate": _DEGENERATE,
    "empty": Note(
        code="empty-denominator", message="The metric is not defined on any row of this group."
    ),
    "hull": Note(
        code="hull",
        message="The hypothesis lies outside the range of the data; the p-value is that of the"
        " Euclidean likelihood.",
    ),
    "impossible": _VACUOUS,
    "too_small": Note(
        code="too-small",
        message="Too few rows for a test: a real-valued metric needs at least 10 in the group and"
        " in what it is compared with.",
    ),
    "unbounded": Note(
        code="unbounded", message="The data do not bound the interval on every side."
    ),
    "vacuous": _VACUOUS,
}
"""What the reader is told of each status of the engine but "ok"."""


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
    groups = _compare(table, metric, reference, depth, method, scale, confidence_level)
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
        notes.append(_plug_in_note(found, confidence_level))
    null = "no group differs from " + groups.reference
    findings = _findings(
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
        method=_method_words(found, method),
        n=int(groups.measured.cells.n.sum()),
        findings=findings,
        joint=_joint(groups, null, method, alpha),
        notes=tuple(notes),
        details=_details(groups) | {"simultaneous": simultaneous},
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
    groups = _compare(table, metric, reference, depth, method, scale, confidence_level)
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
        notes.append(_plug_in_note(found, confidence_level))
    return AuditResult(
        audit="flag",
        null=f"the group's {gap} to {groups.reference} is {null}",
        alternative=f"the group's {gap} to {groups.reference} is {other}",
        alpha=alpha,
        method=_method_words(found, method),
        n=int(groups.measured.cells.n.sum()),
        findings=_findings(
            groups,
            p=p,
            p_raw=raw,
            decisions=_rejected(p, alpha),
            interval=(found.ci_low, found.ci_high, confidence_level),
            statistic=statistic,
        ),
        notes=tuple(notes),
        details=_details(groups)
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
    groups = _compare(table, metric, reference, depth, method, scale, level)
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
        notes.append(_plug_in_note(found, level))
    findings = _findings(
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
        method=_method_words(found, method),
        n=int(groups.measured.cells.n.sum()),
        findings=findings,
        joint=_all_within(findings, margin, alpha),
        notes=tuple(notes),
        details=_details(groups) | {"margin": margin, "bounds": [low, high]},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """Everything the three audits share."""

    measured: Measured
    groups: Subgroups
    target: Target
    found: Disparities
    reference: str
    scale: Scale


def _compare(
    table: Table,
    metric: str | Metric,
    reference: Reference,
    depth: int | None,
    method: DisparityMethod,
    scale: Scale,
    confidence_level: float,
) -> _Compared:
    check_option("method", method, DisparityMethod)
    check_option("scale", scale, Scale)
    measured = measure(table, metric, rows=method != "eel")
    groups = subgroups(measured.cells, depth=depth)
    target, words = _target(measured, reference)
    found = disparities(
        measured.moments,
        groups.membership,
        target,
        binary=measured.binary,
        method=method,
        scale=scale,
        confidence_level=confidence_level,
        units=measured.units,
        n=measured.defined,
    )
    return _Compared(
        measured=measured, groups=groups, target=target, found=found, reference=words, scale=scale
    )


def _target(measured: Measured, reference: Reference) -> tuple[Target, str]:
    if isinstance(reference, External):
        value = check_number("reference.value", reference.value)
        se = check_number("reference.se", reference.se, low=0.0)
        return Target(kind="external", value=value, se=se), f"{value:g} (external, se {se:g})"
    if isinstance(reference, Mapping):
        if not reference:
            raise InvalidParameterError('`reference` is empty; name a group, {"race": "White"}.')
        cells = matching_cells(measured.cells, dict(reference))
        if not measured.defined[cells].any():
            raise InvalidParameterError(
                f"`reference` {dict(reference)} has no row on which {measured.name!r} is defined."
            )
        names = tuple(str(label) for label in reference.values())
        return Target(kind="reference", cells=cells), subgroup_name(tuple(reference), names)
    if isinstance(reference, str):
        if reference == "population":
            return Target(kind="population"), "the population"
        if reference == "rest":
            return Target(kind="rest"), "the rest"
        raise InvalidParameterError(
            '`reference` must be "population", "rest", a dict such as {"race": "White"}, a number'
            f" or an `External`; got {reference!r}."
        )
    value = check_number("reference", reference)
    return Target(kind="known", value=value), f"{value:g}"


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


def _findings(
    compared: _Compared,
    *,
    p: FloatArray,
    p_raw: FloatArray,
    decisions: AnyArray,
    interval: tuple[FloatArray, FloatArray, float],
    statistic: FloatArray,
) -> tuple[Finding, ...]:
    found = compared.found
    low, high, level = interval
    estimand = f"{compared.measured.name} {compared.scale}"
    findings = []
    for k, name in enumerate(compared.groups.names):
        shared: dict[str, Any] = {
            "group": name,
            "estimand": estimand,
            "n": int(found.n[k]),
            "method": str(found.method[k]),
            "reference": compared.reference,
            "notes": _notes(found, k),
        }
        if not found.tested[k]:
            findings.append(Finding(decision=Decision.NOT_TESTED, **shared))
            continue
        findings.append(
            Finding(
                decision=Decision(decisions[k]),
                estimate=float(found.estimate[k]),
                ci=ConfidenceInterval(
                    low=_finite(low[k]), high=_finite(high[k]), confidence_level=level
                ),
                statistic=_finite(statistic[k]),
                p_value=float(p[k]),
                p_value_raw=float(p_raw[k]),
                **shared,
            )
        )
    return tuple(findings)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _notes(found: Disparities, k: int) -> tuple[Note, ...]:
    notes = []
    if found.status[k] != "ok":
        notes.append(STATUS_NOTES[str(found.status[k])])
    elif not found.tested[k]:
        notes.append(_DEGENERATE)
    if found.tested[k] and found.n[k] < SMALL_GROUP:
        message = f"Fewer than {SMALL_GROUP} rows: the interval is wide and approximate."
        notes.append(Note(code="small-group", message=message))
    return tuple(notes)


def _joint(compared: _Compared, null: str, method: DisparityMethod, alpha: float) -> JointTest:
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
        statistic=_finite(test.statistic),
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
        covariance = found.covariance()[np.ix_(tested, tested)]
        scale = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(scale, scale)
        critical = max_t_critical(correlation, confidence_level, rng=rng)
        roots = found.root(found.null)[tested]
        p[tested] = max_t_p_values(roots, correlation, rng=rng)
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


def _plug_in_note(found: Disparities, confidence_level: float) -> Note:
    coverage = found.plug_in_coverage(confidence_level)[found.tested]
    shown = (
        f"between {coverage.min():.1%} and {coverage.max():.1%}"
        if coverage.size
        else "an unknown share"
    )
    return Note(
        code="plug-in-coverage",
        message="The plug-in method takes the estimated reference as known. Its intervals claim"
        f" {confidence_level:.0%} and cover {shown} of the time here.",
    )


METHOD_WORDS = {
    "adjusted_el": "adjusted empirical likelihood",
    "el": "empirical likelihood",
    "exact_binomial": "exact binomial test",
    "influence_eel": "Euclidean likelihood with estimated reference",
    "influence_el": "empirical likelihood with estimated reference",
    "likelihood_ratio": "binomial likelihood ratio",
    "plug_in_eel": "plug-in Euclidean likelihood",
    "plug_in_el": "plug-in empirical likelihood",
    "profile_el": "profile empirical likelihood",
    "score": "Miettinen-Nurminen score test",
}


def _method_words(found: Disparities, method: str) -> str:
    used = sorted({str(code) for code in found.method if code != "none"})
    words = ", ".join(METHOD_WORDS.get(code, code) for code in used)
    return words or METHOD_WORDS.get(method, method)


def _details(compared: _Compared) -> dict[str, Any]:
    found = compared.found
    return {
        "metric": compared.measured.name,
        "scale": compared.scale,
        "reference": compared.reference,
        "null_value": found.null,
        "n_units": compared.measured.moments.n_units,
        "values": [
            {
                "group": name,
                "group_value": _finite(found.group_value[k]),
                "target_value": _finite(found.target_value[k]),
                "se": _finite(found.se[k]),
            }
            for k, name in enumerate(compared.groups.names)
        ],
    }
