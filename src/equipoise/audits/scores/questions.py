"""The questions about scores: what is asked, and how an answer is told."""

from dataclasses import dataclass, field
from typing import Any, TypedDict

from equipoise.results.assumptions import Assumption
from equipoise.results.details import Details, details_of
from equipoise.results.finding import Decision
from equipoise.results.formats import number, p_value
from equipoise.results.question import Question, Section
from equipoise.results.result import AuditResult
from equipoise.results.wording import decided, joint_detected, joint_p, largest, value

__all__ = [
    "MARGINAL_OUTCOME",
    "PREDICTIVE_PARITY",
    "Curve",
    "MarginDetails",
    "ParityDetails",
]

SECTION = Section(
    id="meaning",
    heading="Does the score mean the same for everyone?",
    lead="Whether people with the same score have the same outcomes, whichever group they"
    " belong to.",
)


class Curve(TypedDict):
    """Mean outcome of a group by score, with its band."""

    group: str
    grid: list[float]
    estimate: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParityDetails(Details):
    """Curves of the groups and numbers of their comparisons.

    Parameters
    ----------
    hypothesis, unit : str
        What was tested, and what weighs alike.
    confidence_level : float
        Simultaneous level of the bands.
    curves : list of Curve
        One for each group.
    pairs : list of dict
        One for each comparison: average difference, p-values, common scores.
    """

    hypothesis: str = "parity"
    unit: str = "row"
    confidence_level: float = 0.95
    curves: list[Curve] = field(default_factory=list)
    pairs: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginDetails(Details):
    """The threshold, and the outcomes of each pair of groups there.

    Parameters
    ----------
    threshold : float, optional
        Where people were compared.
    unit : str
        What weighs alike.
    margins : list of dict
        One for each pair that could be compared.
    """

    threshold: float | None = None
    unit: str = "row"
    margins: list[dict[str, Any]] = field(default_factory=list)


def _predictive_parity(result: AuditResult) -> str:
    differing = decided(result, Decision.DETECTED)
    p = joint_p(result)
    test = "" if p is None else f" (global test p {p_value(p)})"
    if joint_detected(result) or differing:
        sentence = f"The same score does not mean the same in every group{test}"
        if differing:
            sentence += f", most for {value(largest(differing, result))}"
        return sentence
    return (
        f"No difference in what a score means was detected between the groups{test};"
        " this does not show that it means the same"
    )


def _marginal_outcome(result: AuditResult) -> str:
    differing = decided(result, Decision.DETECTED)
    threshold = details_of(result.details, MarginDetails).threshold
    where = "at the cut-off" if threshold is None else f"at the cut-off {number(threshold)}"
    if differing:
        return (
            f"People {where} do not have the same expected outcome in every group, most for"
            f" {value(largest(differing, result))}"
        )
    if joint_detected(result):
        return (
            f"People {where} do not have the same expected outcome in every group"
            f" (joint test p {p_value(joint_p(result))})"
        )
    return (
        f"No difference in expected outcome between groups was detected {where};"
        " this does not show that people there are treated alike"
    )


PREDICTIVE_PARITY = Question(
    name="predictive_parity",
    answer="equipoise.audits.scores.parity:predictive_parity",
    drawing="equipoise.plot.curves:score_curves",
    sentence="Does a score mean the same in every group?",
    section=SECTION,
    headline=_predictive_parity,
    legend="Lines are mean outcomes by score, one for each group; shaded bands hold for all scores"
    " together.",
    details=ParityDetails,
    assumptions=(
        Assumption(
            text="The groups share the scores at which they are compared.",
            status="checked",
            remark="Scores that only one group has are left out or not tested.",
        ),
        Assumption(
            text="The mean outcome changes smoothly with the score.",
            status="not checked",
            remark="A jump narrower than the bandwidth is averaged away.",
        ),
    ),
)
MARGINAL_OUTCOME = Question(
    name="marginal_outcome",
    answer="equipoise.audits.scores.margins:marginal_outcome",
    sentence="Are people at the cut-off treated alike?",
    section=SECTION,
    headline=_marginal_outcome,
    details=MarginDetails,
    assumptions=(
        Assumption(
            text="The mean outcome changes smoothly up to the cut-off.",
            status="not checked",
            remark="The fit uses the rows next to the cut-off, from one side.",
        ),
        Assumption(
            text="The score given is the score that was used for the decision.",
            status="not checked",
            remark="A decision taken on other grounds moves the margin elsewhere.",
        ),
    ),
)
