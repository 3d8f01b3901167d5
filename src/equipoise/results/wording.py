"""Every sentence that a person reads: print, HTML and command line agree."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from equipoise._typing import Multiplicity
from equipoise.results.finding import Decision, Finding
from equipoise.results.formats import decision_word, estimand_words, number, p_value, shortened

if TYPE_CHECKING:
    from equipoise.results.result import AuditResult

__all__ = [
    "finding_words",
    "headline",
    "legend_words",
    "multiplicity_words",
    "picture_words",
    "question_words",
]

_QUESTIONS = {
    "certify": "Is every subgroup shown to be within the margin in {metric}?",
    "disparity": "How large is each subgroup's gap in {metric}, and is there any?",
    "flag": "Which subgroups exceed the tolerance in {metric}?",
    "improvability": "Is there a less discriminatory alternative?",
    "inequality": "How unequal are the benefits, within and between groups?",
    "marginal_outcome": "Are people at the cut-off treated alike?",
    "predictive_parity": "Does a score mean the same in every group?",
    "treatment_effects": "Are predicted effects equally accurate in every group?",
}

_LEGENDS = {
    "disparity": "Points are estimates, bars are intervals; the shape of a point repeats what its"
    " colour says.",
    "predictive_parity": "Lines are mean outcomes by score, one for each group; shaded bands hold"
    " for all scores together.",
    "improvability": "Left: status quo and candidate on the rows that judge them, one point for"
    " each split. Middle: the p-value of each requirement by split. Right: the p-value of"
    " ever larger improvements; those below the dashed line are shown.",
    "inequality": "Bars are parts of the index, lines their intervals.",
    "treatment_effects": "Filled points are biases with their intervals, hollow ones what a"
    " correction would leave; below, how prediction errors spread over the groups.",
}


def question_words(result: "AuditResult") -> str:
    """Write the question that a result answers, with its metric where it has one."""
    words = _QUESTIONS.get(result.audit, result.audit)
    return words.format(metric=_metric(result) if result.findings else "metric")


def finding_words(finding: Finding, audit: str = "") -> str:
    """Write one finding on one line."""
    if finding.decision is Decision.NOT_TESTED:
        return f"{finding.group}: not tested, n = {finding.n}"
    p = "" if finding.p_value is None else f", p {p_value(finding.p_value)}"
    return (
        f"{finding.group}: {estimand_words(finding.estimand)} {_amount(finding)}{p},"
        f" n = {finding.n}, {decision_word(finding.decision, audit)}"
    )


def picture_words(result: "AuditResult") -> tuple[str, str]:
    """Return a title and a description of a result's picture for those who cannot see it."""
    tested = _tested(result)
    title = question_words(result)
    if not tested:
        return title, f"Nothing could be tested for the {len(result.findings)} groups asked for."
    ordered = sorted(tested, key=lambda finding: finding.estimate or 0.0)
    lowest, highest = ordered[0], ordered[-1]
    counts = ", ".join(
        f"{len(found)} {decision_word(decision, result.audit)}"
        for decision in Decision
        if (found := _decided(result, decision))
    )
    return title, (
        f"{headline(result)} Estimates run from {number(lowest.estimate)}"
        f" ({shortened(lowest.group)}) to {number(highest.estimate)}"
        f" ({shortened(highest.group)}); {counts}. The table has every value."
    )


def legend_words(result: "AuditResult") -> str:
    """Say how to read the picture of a result."""
    return _LEGENDS.get(result.audit, _LEGENDS["disparity"])


def multiplicity_words(levels: Sequence[float], multiplicity: Multiplicity) -> str:
    """Say how often a plan like this one reports something when there is nothing to report."""
    if len(levels) == 1:
        return f"The plan asks one question, at the {100 * levels[0]:g}% level."
    bound = 100 * min(sum(levels), 1.0)
    if multiplicity == "bonferroni":
        return (
            f"The plan asks {len(levels)} questions and shares one level of {bound:.3g}% among them"
            " (Bonferroni): the chance that any of them is answered wrongly is at most that, as far"
            " as each keeps its own level."
        )
    return (
        f"The plan asks {len(levels)} questions, each at its own level, which add up to"
        f" {bound:.3g}%: if there were nothing to find anywhere, the chance that at least one of"
        ' them reports something could be as large as that. Set multiplicity = "bonferroni" under'
        " [report] to share one level among them."
    )


def headline(result: "AuditResult") -> str:
    """Say in one sentence what was found, for a reader who reads nothing else.

    A test that does not reject shows nothing, and the sentence says so.
    """
    untested = sum(f.decision is Decision.NOT_TESTED for f in result.findings)
    if untested == len(result.findings) and _joint_p(result) is None:
        reasons = [note.message for f in result.findings for note in f.notes[:1]]
        return f"Nothing could be tested{': ' + reasons[0].rstrip('.') if reasons else ''}."
    sentence = _HEADLINES.get(result.audit, _general)(result)
    if untested:
        sentence += f"; {untested} of {len(result.findings)} could not be tested"
    return f"{sentence}."


def _disparity(result: "AuditResult") -> str:
    metric = _metric(result)
    differing = _decided(result, Decision.DETECTED)
    tested = _tested(result)
    joint_p = _joint_p(result)
    test = "" if joint_p is None else f" (joint test p {p_value(joint_p)})"
    jointly = result.joint is not None and result.joint.decision is Decision.DETECTED
    if jointly or differing:
        largest = _largest(differing or tested, result)
        verb = "differs between subgroups" if jointly or joint_p is None else "differs for some"
        count = f"{len(differing)} of {len(tested)} subgroups differ at the {_level(result)} level"
        return f"The {metric} {verb}{test}, most for {_gap(largest)}; {count}"
    return (
        f"No difference in {metric} was detected among {len(tested)} subgroups{test};"
        " this does not show that they are equal"
    )


def _flag(result: "AuditResult") -> str:
    metric = _metric(result)
    tested = _tested(result)
    flagged = _decided(result, Decision.DETECTED)
    limit = _tolerance(result)
    if flagged:
        largest = _largest(flagged, result)
        return (
            f"{len(flagged)} of {len(tested)} subgroups {_have(flagged)} a {metric}"
            f" {limit}: {_names(flagged, result)}; the largest gap is {_gap(largest)}"
        )
    return (
        f"None of {len(tested)} subgroups was shown to have a {metric} {limit};"
        " a subgroup too small to tell may still do so"
    )


def _certify(result: "AuditResult") -> str:
    metric = _metric(result)
    tested = _tested(result)
    within = _decided(result, Decision.WITHIN_MARGIN)
    beyond = _decided(result, Decision.DETECTED)
    unclear = _decided(result, Decision.NOT_DETECTED)
    margin = _margin_words(result)
    if len(within) == len(result.findings):
        return f"All {len(within)} subgroups are shown to have a {metric} {margin}"
    counts = f"{len(within)} of {len(tested)} subgroups are shown to be {margin}"
    if beyond:
        verb = "is" if len(beyond) == 1 else "are"
        more = f", {len(unclear)} stay inconclusive" if unclear else ""
        return (
            f"{len(beyond)} of {len(tested)} subgroups {verb} shown to have a {metric} beyond"
            f" the margin: {_names(beyond, result)}; {counts}{more}"
        )
    if unclear:
        return (
            f"The data do not settle whether every {metric} is within the margin: {counts},"
            f" {len(unclear)} stay inconclusive ({_names(unclear, result)})"
        )
    return counts


def _predictive_parity(result: "AuditResult") -> str:
    differing = _decided(result, Decision.DETECTED)
    p = _joint_p(result)
    test = "" if p is None else f" (global test p {p_value(p)})"
    jointly = result.joint is not None and result.joint.decision is Decision.DETECTED
    if jointly or differing:
        sentence = f"The same score does not mean the same in every group{test}"
        if differing:
            sentence += f", most for {_value(_largest(differing, result))}"
        return sentence
    return (
        f"No difference in what a score means was detected between the groups{test};"
        " this does not show that it means the same"
    )


def _marginal_outcome(result: "AuditResult") -> str:
    differing = _decided(result, Decision.DETECTED)
    threshold = result.details.get("threshold")
    where = "at the cut-off" if threshold is None else f"at the cut-off {number(threshold)}"
    if differing:
        return (
            f"People {where} do not have the same expected outcome in every group, most for"
            f" {_value(_largest(differing, result))}"
        )
    if result.joint is not None and result.joint.decision is Decision.DETECTED:
        return (
            f"People {where} do not have the same expected outcome in every group"
            f" (joint test p {p_value(result.joint.p_value)})"
        )
    return (
        f"No difference in expected outcome between groups was detected {where};"
        " this does not show that people there are treated alike"
    )


def _improvability(result: "AuditResult") -> str:
    p = _joint_p(result)
    test = "" if p is None else f" (p {p_value(p)})"
    detected = (
        result.joint.decision is Decision.DETECTED if result.joint is not None else result.detected
    )
    if detected:
        shown = result.details.get("deltas", {}).get("fairness")
        least = f"; the gap is shown to shrink by at least {shown:.0%}" if shown else ""
        where = (
            "if these rows played no part in building it"
            if any(note.code == "ready-candidate" for note in result.notes)
            else "on rows it was not built on"
        )
        return (
            f"A less discriminatory alternative was found: {where}, the candidate is more accurate"
            f" and narrows the gap{test}{least}"
        )
    limit = {
        "data": "; it does better on most test parts, and more data may settle it",
        "search": "; it does no better itself, and another search may",
    }.get(result.details.get("limit", ""), "")
    return (
        f"The candidate was not shown to be a less discriminatory alternative{test}{limit};"
        " this does not show that none exists"
    )


def _inequality(result: "AuditResult") -> str:
    total = next((f for f in _tested(result)), None)
    p = _joint_p(result)
    sentence = "" if total is None else f"The inequality of benefits is {_amount(total)}"
    share = result.details.get("between_share")
    if share is not None:
        sentence += f", of which {share:.1%} lies between groups"
    if p is not None and result.joint is not None:
        found = result.joint.decision is Decision.DETECTED
        sentence += (
            f"; a difference in mean benefit between groups was {'' if found else 'not '}detected"
            f" (p {p_value(p)})"
        )
    return sentence.lstrip("; ").capitalize() if total is None else sentence


def _treatment_effects(result: "AuditResult") -> str:
    tested = _tested(result)
    biased = _decided(result, Decision.DETECTED)
    p = _joint_p(result)
    test = "" if p is None else f" (omnibus test p {p_value(p)})"
    jointly = result.joint is not None and result.joint.decision is Decision.DETECTED
    if biased or jointly:
        largest = _largest(biased or tested, result)
        return (
            f"Predicted effects are not equally accurate in every group{test}, most for"
            f" {_value(largest)}; {len(biased)} of {len(tested)} groups differ"
        )
    within = _decided(result, Decision.WITHIN_MARGIN)
    if within and len(within) == len(result.findings):
        margin = number(result.details.get("margin"))
        return f"All {len(within)} groups are shown to have a prediction bias within {margin}"
    return (
        f"No difference in the accuracy of predicted effects was detected among"
        f" {len(tested)} groups{test}; this does not show that they are equally accurate"
    )


def _general(result: "AuditResult") -> str:
    tested = _tested(result)
    detected = _decided(result, Decision.DETECTED)
    if detected:
        return (
            f"{len(detected)} of {len(tested)} tested: {result.alternative}; the largest is"
            f" {_value(_largest(detected, result))}"
        )
    return f"None of {len(tested)} tested: {result.alternative}; this does not show equality"


_HEADLINES: dict[str, Callable[["AuditResult"], str]] = {
    "certify": _certify,
    "disparity": _disparity,
    "flag": _flag,
    "improvability": _improvability,
    "inequality": _inequality,
    "marginal_outcome": _marginal_outcome,
    "predictive_parity": _predictive_parity,
    "treatment_effects": _treatment_effects,
}


def _decided(result: "AuditResult", decision: Decision) -> list[Finding]:
    return [f for f in result.findings if f.decision is decision]


def _tested(result: "AuditResult") -> list[Finding]:
    return [f for f in result.findings if f.decision is not Decision.NOT_TESTED]


def _joint_p(result: "AuditResult") -> float | None:
    return None if result.joint is None else result.joint.p_value


def _null_value(result: "AuditResult") -> float:
    return float(result.details.get("null_value", 0.0))


def _distance(finding: Finding, result: "AuditResult") -> float:
    return abs((finding.estimate or 0.0) - _null_value(result))


def _largest(findings: Sequence[Finding], result: "AuditResult") -> Finding:
    return max(findings, key=lambda finding: _distance(finding, result))


def _names(findings: Sequence[Finding], result: "AuditResult", most: int = 3) -> str:
    ordered = sorted(findings, key=lambda finding: -_distance(finding, result))
    names = [shortened(finding.group) for finding in ordered[:most]]
    rest = len(findings) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def _have(findings: Sequence[Finding]) -> str:
    return "has" if len(findings) == 1 else "have"


def _level(result: "AuditResult") -> str:
    return f"{100 * result.alpha:g}%"


def _metric(result: "AuditResult") -> str:
    estimand = result.findings[0].estimand.removesuffix(" difference").removesuffix(" ratio")
    return estimand_words(estimand)


def _reference(findings: Sequence[Finding]) -> str:
    reference = findings[0].reference if findings else ""
    return shortened(reference) if reference else "the reference"


def _tolerance(result: "AuditResult") -> str:
    """Write what a flagged group exceeds: ``more than 0.05 above the population``."""
    margin = result.details.get("margin") or 0.0
    reference = _reference(_tested(result))
    side = {"greater": "above", "less": "below"}.get(str(result.details.get("alternative")))
    if _is_ratio(result):
        low, high = result.details.get("bounds", (1.0, 1.0))
        bound = {"above": f"above {number(high)}", "below": f"below {number(low)}"}
        either = f"outside {number(low)} to {number(high)}"
        return f"{bound.get(side or '', either)} times that of {reference}"
    if side is None:
        side = "apart from" if margin == 0 else "away from"
    by = f"more than {number(margin)} " if margin else ""
    return f"{by}{side} {reference}"


def _is_ratio(result: "AuditResult") -> bool:
    return result.findings[0].estimand.endswith(" ratio")


def _margin_words(result: "AuditResult") -> str:
    """Write what a certified group lies in: ``within 0.05 of the population``."""
    reference = _reference(_tested(result))
    if _is_ratio(result):
        low, high = result.details.get("bounds", (None, None))
        return f"between {number(low)} and {number(high)} times {reference}"
    return f"within {number(result.details.get('margin'))} of {reference}"


def _bounds(finding: Finding, sign: int = 1) -> str:
    ci = finding.ci
    if ci is None:
        return ""
    level = f"{100 * ci.confidence_level:g}%"
    low, high = (ci.low, ci.high) if sign > 0 else (_negated(ci.high), _negated(ci.low))
    if low is None and high is None:
        return f" ({level} interval without bounds)"
    if high is None:
        return f" ({level} bound: at least {number(low)})"
    if low is None:
        return f" ({level} bound: at most {number(high)})"
    return f" ({level} interval {number(low)} to {number(high)})"


def _negated(value: float | None) -> float | None:
    return None if value is None else -value


def _amount(finding: Finding) -> str:
    return f"{number(finding.estimate)}{_bounds(finding)}"


def _value(finding: Finding) -> str:
    return f"{shortened(finding.group)}, {estimand_words(finding.estimand)} {_amount(finding)}"


def _gap(finding: Finding) -> str:
    """Write a gap as a person says it: above, below or times the reference."""
    name, reference = shortened(finding.group), _reference([finding])
    estimate = finding.estimate or 0.0
    if finding.estimand.endswith(" ratio"):
        return f"{name}, {number(estimate)} times {reference}{_bounds(finding)}"
    if estimate >= 0.0:
        return f"{name}, {number(estimate)} above {reference}{_bounds(finding)}"
    return f"{name}, {number(-estimate)} below {reference}{_bounds(finding, sign=-1)}"
