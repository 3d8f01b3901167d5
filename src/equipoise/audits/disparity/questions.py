"""The questions about gaps: what is asked, and how an answer is told."""

from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

from equipoise.audits.disparity.wording import extreme_headline, given_headline, split_headline
from equipoise.results.details import Details, details_of
from equipoise.results.finding import Decision
from equipoise.results.formats import number, p_value, with_article
from equipoise.results.question import Question, Section
from equipoise.results.result import AuditResult
from equipoise.results.sentences import LEADING, lead_sentence
from equipoise.results.wording import (
    compared_noun,
    decided,
    gap_size,
    joint_detected,
    joint_p,
    level,
    metric_words,
    names,
    reference_words,
    tested,
)

__all__ = [
    "CERTIFY",
    "DECOMPOSE",
    "DISPARITY",
    "FLAG",
    "IMPACT_RATIOS",
    "DecomposeDetails",
    "DisparityDetails",
    "GroupUnits",
]


class GroupUnits(TypedDict):
    """Independent units that the test of one group rests on.

    Effective units are (sum of w)^2 / sum of w^2; those of a reference that is a number, and the
    degrees of freedom of exact tests, are None. `shape` is "checked", "borrowed" or "none".
    """

    group: str
    metric: NotRequired[str]
    n_units: float
    n_eff: float
    reference_units: float | None
    reference_n_eff: float | None
    df: float | None
    shape: str


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
    tables : list of dict, optional
        Where categories are compared with the highest or lowest one: each table row by row.
    unknown : int, optional
        Rows without a known category.
    given, weights, conditional, strata : optional
        Where people alike in given factors are compared: the factors, how they are averaged, by
        strata or by learners, and for each group how it was compared: its raw gap, its strata,
        other averages and the Mantel-Haenszel family, or how well the learners predict.
    grades : list of dict, optional
        Grades of the groups of each table with many of them, and how much they differ in truth.
    units : list of GroupUnits
        Independent units of each group and of what it is compared with.
    """

    metric: str = ""
    scale: str = "difference"
    reference: str = ""
    n_units: int = 0
    simultaneous: bool | None = None
    margin: float | None = None
    alternative: str | None = None
    adjust: str | None = None
    tables: list[dict[str, Any]] | None = None
    unknown: int | None = None
    given: list[str] | None = None
    weights: str | None = None
    conditional: str | None = None
    strata: list[dict[str, Any]] | None = None
    grades: list[dict[str, Any]] | None = None
    units: list[GroupUnits] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecomposeDetails(Details):
    """How the gap of every group is made up.

    Parameters
    ----------
    metric, reference : str
        What is compared, and with what.
    n_units : int
        Independent units in the whole table.
    given : list of str
        The factors.
    split : list of dict
        For each group its parts, each with value, standard error and interval.
    """

    metric: str = ""
    reference: str = ""
    n_units: int = 0
    given: list[str] = field(default_factory=list)
    split: list[dict[str, Any]] = field(default_factory=list)


def _special(result: AuditResult) -> str | None:
    """Return what is said of comparisons with the highest, or given factors."""
    details = details_of(result.details, DisparityDetails)
    if details.tables is not None:
        return extreme_headline(result)
    return given_headline(result) if details.given is not None else None


def _disparity(result: AuditResult) -> str:
    if (special := _special(result)) is not None:
        return special
    metric = metric_words(result)
    differing = decided(result, Decision.DETECTED)
    compared = tested(result)
    p = joint_p(result)
    test = "" if p is None else f" (joint test p {p_value(p)})"
    noun = compared_noun(result, "groups")
    count = f"{len(differing)} of {len(compared)} {noun} differ at the {level(result)} level{test}"
    if differing:
        first = lead_sentence(differing, result)
        return f"{first}; {count}" if first else f"{count}, all of them smaller than {LEADING} rows"
    if joint_detected(result):
        return (
            f"The {metric} differs between groups{test}, though none of {len(compared)} is shown to"
            " differ by itself"
        )
    return (
        f"No difference in {metric} was detected among {len(compared)}"
        f" {compared_noun(result, 'subgroups')}{test};"
        " this does not show that they are equal"
    )


def _subject(result: AuditResult) -> tuple[str, str]:
    """Name what is counted, and what it has: a metric, or a gap in one of several."""
    noun = compared_noun(result, "subgroups")
    metric = with_article(metric_words(result))
    return noun, metric if noun == "subgroups" else f"a gap in {metric_words(result)}"


def _flag(result: AuditResult) -> str:
    if (special := _special(result)) is not None:
        return special
    noun, metric = _subject(result)
    compared = tested(result)
    flagged = decided(result, Decision.DETECTED)
    limit = _tolerance(result)
    if flagged:
        have = "has" if len(flagged) == 1 else "have"
        count = f"{len(flagged)} of {len(compared)} {noun} {have} {metric} {limit}"
        first = lead_sentence(flagged, result)
        return f"{first}; {count}: {names(flagged, result)}" if first else count
    return (
        f"None of {len(compared)} {noun} was shown to have {metric} {limit};"
        " a subgroup too small to tell may still do so"
    )


def _certify(result: AuditResult) -> str:
    if (special := _special(result)) is not None:
        return special
    noun, metric = _subject(result)
    compared = tested(result)
    within = decided(result, Decision.WITHIN_MARGIN)
    beyond = decided(result, Decision.DETECTED)
    unclear = decided(result, Decision.NOT_DETECTED)
    margin = _margin(result)
    asked = [finding for finding in result.findings if not finding.is_reference]
    if len(within) == len(asked):
        return f"All {len(within)} {noun} are shown to have {metric} {margin}"
    counts = f"{len(within)} of {len(compared)} {noun} are shown to be {margin}"
    if beyond:
        verb = "is" if len(beyond) == 1 else "are"
        more = f", {len(unclear)} stay inconclusive" if unclear else ""
        first = lead_sentence(beyond, result)
        start = f"{first}; " if first else ""
        return (
            f"{start}{len(beyond)} of {len(compared)} {noun} {verb} shown to have"
            f" {metric} beyond the margin: {names(beyond, result)}; {counts}{more}"
        )
    if unclear:
        return (
            f"The data do not settle whether every {metric_words(result)} is within the margin:"
            f" {counts}, {len(unclear)} stay inconclusive ({names(unclear, result)})"
        )
    return counts


def _tolerance(result: AuditResult) -> str:
    """Write what a flagged group exceeds: ``more than 5.0 percentage points above``."""
    details = details_of(result.details, DisparityDetails)
    reference = reference_words(tested(result), result.words)
    side = {"greater": "above", "less": "below"}.get(str(details.alternative))
    if result.findings[0].estimand.scale == "ratio":
        low, high = details.bounds or (1.0, 1.0)
        bound = {"above": f"above {number(high)}", "below": f"below {number(low)}"}
        either = f"outside {number(low)} to {number(high)}"
        return f"{bound.get(side or '', either)} times that of {reference}"
    if side is None:
        side = "away from" if details.margin else "apart from"
    by = f"more than {gap_size(details.margin, result)} " if details.margin else ""
    return f"{by}{side} {reference}"


def _margin(result: AuditResult) -> str:
    """Write what a certified group lies in: ``within 5.0 percentage points``."""
    details = details_of(result.details, DisparityDetails)
    reference = reference_words(tested(result), result.words)
    if result.findings[0].estimand.scale == "ratio":
        low, high = details.bounds or (None, None)
        return f"between {number(low)} and {number(high)} times {reference}"
    return f"within {gap_size(details.margin, result)} of {reference}"


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
IMPACT_RATIOS = Question(
    name="impact_ratios",
    answer="equipoise.audits.disparity.impact_ratios:impact_ratios",
    sentence="How does the {metric} of every category compare with that of the highest one?",
    section=SECTION,
    headline=extreme_headline,
    details=DisparityDetails,
    tables="equipoise.report.impact_tables:impact_tables",
    needs_labels=False,
)
DECOMPOSE = Question(
    name="decompose",
    answer="equipoise.audits.disparity.decompose:decompose",
    sentence="How much of each gap goes with different factors, and how much does not?",
    section=SECTION,
    headline=split_headline,
    details=DecomposeDetails,
    drawing="equipoise.plot.split:split_plot",
    legend="Of each group the raw gap, then the parts that add up to it: what people alike in all"
    " factors still show, what goes with each factor, and what is due to people without anybody"
    " alike. Bars are intervals; a part that is nothing at all is left out.",
    needs_labels=False,
)
