"""The questions about gaps: what is asked, and how an answer is told."""

from dataclasses import dataclass

from equipoise.results.details import Details, details_of
from equipoise.results.finding import Decision
from equipoise.results.formats import number, p_value, with_article
from equipoise.results.question import Question, Section
from equipoise.results.result import AuditResult
from equipoise.results.wording import (
    decided,
    gap,
    joint_detected,
    joint_p,
    largest,
    level,
    metric_words,
    names,
    reference_words,
    tested,
)

__all__ = ["CERTIFY", "DISPARITY", "FLAG", "DisparityDetails"]

SECTION = Section(
    id="disparity",
    heading="Is there a disparity?",
    lead="Rates by group and by intersection of groups, with intervals that allow for the"
    " uncertainty of the comparison as well as of the group.",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisparityDetails(Details):
    """What was compared, and the value of every group.

    Parameters
    ----------
    metric, scale, reference : str
        What is compared, how, and with what.
    n_units : int
        Independent units in the whole table.
    simultaneous : bool, optional
        Whether intervals hold for all groups together.
    margin, alternative, adjust : optional
        Tolerance, side and adjustment of `flag`; margin of `certify`.
    """

    metric: str = ""
    scale: str = "difference"
    reference: str = ""
    n_units: int = 0
    simultaneous: bool | None = None
    margin: float | None = None
    alternative: str | None = None
    adjust: str | None = None


def _disparity(result: AuditResult) -> str:
    metric = metric_words(result)
    differing = decided(result, Decision.DETECTED)
    compared = tested(result)
    p = joint_p(result)
    test = "" if p is None else f" (joint test p {p_value(p)})"
    jointly = joint_detected(result)
    if jointly or differing:
        furthest = largest(differing or compared, result)
        verb = "differs between subgroups" if jointly or p is None else "differs for some"
        count = f"{len(differing)} of {len(compared)} subgroups differ at the {level(result)} level"
        return f"The {metric} {verb}{test}, most for {gap(furthest)}; {count}"
    return (
        f"No difference in {metric} was detected among {len(compared)} subgroups{test};"
        " this does not show that they are equal"
    )


def _flag(result: AuditResult) -> str:
    metric = with_article(metric_words(result))
    compared = tested(result)
    flagged = decided(result, Decision.DETECTED)
    limit = _tolerance(result)
    if flagged:
        have = "has" if len(flagged) == 1 else "have"
        return (
            f"{len(flagged)} of {len(compared)} subgroups {have} {metric} {limit}:"
            f" {names(flagged, result)}; the largest gap is {gap(largest(flagged, result))}"
        )
    return (
        f"None of {len(compared)} subgroups was shown to have {metric} {limit};"
        " a subgroup too small to tell may still do so"
    )


def _certify(result: AuditResult) -> str:
    metric = metric_words(result)
    compared = tested(result)
    within = decided(result, Decision.WITHIN_MARGIN)
    beyond = decided(result, Decision.DETECTED)
    unclear = decided(result, Decision.NOT_DETECTED)
    margin = _margin(result)
    asked = [finding for finding in result.findings if not finding.is_reference]
    if len(within) == len(asked):
        return f"All {len(within)} subgroups are shown to have {with_article(metric)} {margin}"
    counts = f"{len(within)} of {len(compared)} subgroups are shown to be {margin}"
    if beyond:
        verb = "is" if len(beyond) == 1 else "are"
        more = f", {len(unclear)} stay inconclusive" if unclear else ""
        return (
            f"{len(beyond)} of {len(compared)} subgroups {verb} shown to have"
            f" {with_article(metric)} beyond the margin: {names(beyond, result)}; {counts}{more}"
        )
    if unclear:
        return (
            f"The data do not settle whether every {metric} is within the margin: {counts},"
            f" {len(unclear)} stay inconclusive ({names(unclear, result)})"
        )
    return counts


def _tolerance(result: AuditResult) -> str:
    """Write what a flagged group exceeds: ``more than 0.05 above the population``."""
    details = details_of(result.details, DisparityDetails)
    reference = reference_words(tested(result))
    side = {"greater": "above", "less": "below"}.get(str(details.alternative))
    if result.findings[0].estimand.scale == "ratio":
        low, high = details.bounds or (1.0, 1.0)
        bound = {"above": f"above {number(high)}", "below": f"below {number(low)}"}
        either = f"outside {number(low)} to {number(high)}"
        return f"{bound.get(side or '', either)} times that of {reference}"
    if side is None:
        side = "away from" if details.margin else "apart from"
    by = f"more than {number(details.margin)} " if details.margin else ""
    return f"{by}{side} {reference}"


def _margin(result: AuditResult) -> str:
    """Write what a certified group lies in: ``within 0.05 of the population``."""
    details = details_of(result.details, DisparityDetails)
    reference = reference_words(tested(result))
    if result.findings[0].estimand.scale == "ratio":
        low, high = details.bounds or (None, None)
        return f"between {number(low)} and {number(high)} times {reference}"
    return f"within {number(details.margin)} of {reference}"


DISPARITY = Question(
    name="disparity",
    answer="equipoise.audits.disparity.gaps:disparity",
    sentence="How large is each subgroup's gap in {metric}, and is there any?",
    section=SECTION,
    headline=_disparity,
    details=DisparityDetails,
)
FLAG = Question(
    name="flag",
    answer="equipoise.audits.disparity.gaps:flag",
    sentence="Which subgroups exceed the tolerance in {metric}?",
    section=SECTION,
    headline=_flag,
    details=DisparityDetails,
)
CERTIFY = Question(
    name="certify",
    answer="equipoise.audits.disparity.gaps:certify",
    sentence="Is every subgroup shown to be within the margin in {metric}?",
    section=SECTION,
    headline=_certify,
    details=DisparityDetails,
    equivalence=True,
    words={Decision.NOT_DETECTED: "inconclusive"},
)
