"""What a pipeline does with a result: outcomes, gates and JUnit XML.

A gate acts on decisions, hence on tests and intervals, never on a point estimate: a small group
neither trips nor clears it by luck. What the data cannot settle is its own outcome.
"""

import xml.etree.ElementTree as ET
from collections.abc import Collection, Sequence
from enum import StrEnum

from equipoise._checks import check_option
from equipoise._names import printable
from equipoise._typing import FailOn
from equipoise.exceptions import InvalidParameterError
from equipoise.plans.dossier import Check
from equipoise.results import formats, wording
from equipoise.results.finding import Decision, Finding, JointTest
from equipoise.results.question import Question
from equipoise.results.result import AuditResult

__all__ = ["Outcome", "junit_xml", "outcome", "tripped"]


class Outcome(StrEnum):
    """What one check says as a whole."""

    DETECTED = "detected"
    NOT_DETECTED = "not detected"
    WITHIN_MARGIN = "within margin"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"
    ESTIMATED = "estimated"


def outcome(result: AuditResult) -> Outcome:
    """Sum up a result: one group beyond is enough, every group must be within.

    Parameters
    ----------
    result : AuditResult
        Any audit.

    Returns
    -------
    Outcome
        `INCONCLUSIVE` where equivalence was asked for and some group is neither shown within the
        margin nor beyond it; groups that could not be tested count as such.
    """
    findings = () if result.all_or_nothing else result.lines
    # Nothing was asked of what the others are compared with.
    asked = [finding for finding in findings if not finding.is_reference] or findings
    decisions = {finding.decision for finding in asked} - {Decision.ESTIMATED}
    joint = set() if result.joint is None else {result.joint.decision}
    if Decision.DETECTED in decisions | joint:
        return Outcome.DETECTED
    if not decisions | joint:
        return Outcome.ESTIMATED
    if decisions | joint <= {Decision.NOT_TESTED}:
        return Outcome.NOT_TESTED
    if decisions == {Decision.WITHIN_MARGIN}:
        return Outcome.WITHIN_MARGIN
    if asks_for_margin(result):
        return Outcome.INCONCLUSIVE
    return Outcome.NOT_DETECTED


def asks_for_margin(result: AuditResult) -> bool:
    """Whether the question was "is everybody within the margin?"."""
    question, margin = result.question, result.details.get("margin")
    return (
        question.equivalence
        or (question.gate_kind is not None and margin is not None)
        or (question.keeps_margin and bool(margin))
        or any(finding.decision is Decision.WITHIN_MARGIN for finding in result.findings)
    )


def _within_margin(result: AuditResult) -> bool:
    """Whether every group that was asked about is shown to be within the margin."""
    kind = result.question.gate_kind
    if kind is None:
        return outcome(result) is Outcome.WITHIN_MARGIN
    asked = {
        finding.decision
        for finding in result.findings
        if finding.estimand.kind == kind and not finding.is_reference
    }
    return asked == {Decision.WITHIN_MARGIN}


def _worse(result: AuditResult) -> bool:
    """Whether a gap is shown to have grown."""
    kind = result.question.gate_kind
    return kind is not None and any(
        finding.estimand.kind == kind and finding.decision is Decision.DETECTED
        for finding in result.findings
    )


def check_comparable(questions: Sequence[Question], *, baseline: bool) -> None:
    """Raise unless something says whether a gap grew: a question that compares, or a baseline.

    Parameters
    ----------
    questions : sequence of Question
        Those of a plan.
    baseline : bool
        Whether results of an earlier run are given.
    """
    if not baseline and all(question.gate_kind is None for question in questions):
        raise InvalidParameterError(
            "`fail_on` 'worse' needs a check with question = \"compare\", or --baseline with the"
            " results of an earlier run."
        )


def tripped(
    checks: Sequence[Check], fail_on: FailOn, *, grown: Collection[str] | None = None
) -> tuple[Check, ...]:
    """Return the checks that trip the gate.

    Parameters
    ----------
    checks : sequence of Check
        The checks of a plan.
    fail_on : {"detected", "not-within-margin", "worse", "never"}
        ``"detected"``: a group or a joint test is DETECTED. ``"not-within-margin"``: some group
        of a check with a margin is not shown to be within it; other checks do not count.
        ``"worse"``: a gap is shown to have grown, by a `compare` check or since the baseline.
    grown : collection of str, optional
        Ids of the checks with a gap that is shown to have grown since a baseline, where there is
        one.

    Returns
    -------
    tuple of Check

    Raises
    ------
    InvalidParameterError
        For ``"not-within-margin"`` when no check asks for a margin, and for ``"worse"`` when
        nothing is compared.
    """
    check_option("fail_on", fail_on, FailOn)
    if fail_on == "never":
        return ()
    if fail_on == "detected":
        return tuple(c for c in checks if outcome(c.result) is Outcome.DETECTED)
    if fail_on == "worse":
        check_comparable([c.result.question for c in checks], baseline=grown is not None)
        return tuple(c for c in checks if _worse(c.result) or c.id in (grown or ()))
    asked = [c for c in checks if asks_for_margin(c.result)]
    if not asked:
        raise InvalidParameterError(
            '`fail_on` \'not-within-margin\' needs a check with question = "certify", or "compare"'
            " or \"monitor\" with a margin; the plan has none. Add one, or use 'detected'."
        )
    return tuple(c for c in asked if not _within_margin(c.result))


def junit_xml(
    checks: Sequence[Check],
    fail_on: FailOn = "detected",
    *,
    grown: Collection[str] | None = None,
) -> str:
    """Write the checks as JUnit XML: a suite for each check, a case for each group.

    Parameters
    ----------
    checks : sequence of Check
        The checks of a plan.
    fail_on : {"detected", "not-within-margin", "worse", "never"}
        Which cases are failures: those that trip this gate. Inconclusive and untested groups are
        ``skipped`` with their reason, unless the gate is ``"not-within-margin"``.
    grown : collection of str, optional
        As in `tripped`.

    Returns
    -------
    str
        The document, ready to be written as UTF-8.
    """
    failing = {check.id for check in tripped(checks, fail_on, grown=grown)}
    root = ET.Element("testsuites", name="equipoise")
    for check in checks:
        cases = _cases(check, fail_on if check.id in failing else "never")
        kinds = [case[0].tag if len(case) else "" for case in cases]
        suite = ET.SubElement(
            root,
            "testsuite",
            name=check.id,
            tests=str(len(cases)),
            failures=str(kinds.count("failure")),
            errors="0",
            skipped=str(kinds.count("skipped")),
        )
        suite.extend(cases)
        ET.SubElement(suite, "system-out").text = printable(wording.headline(check.result))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _cases(check: Check, fail_on: FailOn) -> list[ET.Element]:
    cases = []
    found = check.result.lines
    repeated = len({f.group for f in found}) < len(found)
    tests: list[tuple[str, Finding | JointTest]] = [
        (f"{name}, {f.estimand}" if repeated else name, f)
        for name, f in zip(wording.compared_names(found, str), found, strict=True)
    ]
    if check.result.joint is not None:
        tests.append(("all groups jointly", check.result.joint))
    for name, test in tests:
        case = ET.Element("testcase", classname=f"equipoise.{check.id}", name=printable(name))
        tag = _tag(test, check, fail_on)
        if tag:
            message = printable(_message(test, check.result))
            ET.SubElement(case, tag, message=message, type=test.decision.value)
        cases.append(case)
    return cases


def _tag(test: Finding | JointTest, check: Check, fail_on: FailOn) -> str:
    """The element that a test needs inside its case: none when there is nothing to say."""
    kind = check.result.question.gate_kind
    decides = fail_on == "detected" or kind is None or _kind(test) == kind
    if test.decision is Decision.DETECTED:
        return "" if fail_on == "never" or not decides else "failure"
    if test.decision is Decision.WITHIN_MARGIN or isinstance(test, JointTest):
        return "" if test.decision is not Decision.NOT_TESTED else "skipped"
    if test.decision is Decision.ESTIMATED:
        return "skipped"
    if fail_on == "not-within-margin" and decides:
        return "failure"
    unclear = test.decision is Decision.NOT_TESTED or asks_for_margin(check.result)
    return "skipped" if unclear else ""


def _kind(test: Finding | JointTest) -> str | None:
    return None if isinstance(test, JointTest) else test.estimand.kind


def _message(test: Finding | JointTest, result: AuditResult) -> str:
    if isinstance(test, Finding) and test.withheld:
        return "; ".join(note.message for note in test.notes)
    if test.decision is Decision.NOT_TESTED:
        return "; ".join(note.message for note in test.notes)
    if isinstance(test, JointTest):
        return formats.joint_line(test)
    return (
        f"{test.estimand.words} {formats.number(test.estimate)}"
        f" {formats.interval(test.ci)}, p {formats.p_value(test.p_value)},"
        f" {formats.decision_word(test.decision, result.question.words)}"
    )
