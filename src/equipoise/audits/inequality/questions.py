"""The question about benefits: what is asked, and how an answer is told."""

from dataclasses import dataclass, field
from typing import Any

from equipoise.results.assumptions import Assumption
from equipoise.results.details import Details, details_of
from equipoise.results.finding import Decision
from equipoise.results.formats import p_value
from equipoise.results.question import Question, Section
from equipoise.results.result import AuditResult
from equipoise.results.wording import amount, estimated, joint_detected, joint_p

__all__ = ["INEQUALITY", "InequalityDetails"]

SECTION = Section(
    id="benefits",
    heading="How are benefits spread?",
    lead="How unequally the decisions treat people, and how much of it lies between groups.",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InequalityDetails(Details):
    """The index, its parts and what each group adds to them.

    Parameters
    ----------
    order, benefits, soft, matrix : optional
        The index and the benefits as asked.
    mean_benefit : float, optional
        Of everybody.
    total, within, between : dict, optional
        Estimate, standard error and interval of the index and its parts.
    between_share, within_share : float, optional
        Shares of the index.
    contributions : list of dict
        What each group adds.
    error_rates, cap, roc : optional
        Error rates, the index against its cap, error rates by threshold.
    """

    order: float = 1.0
    benefits: str = ""
    soft: bool = False
    matrix: list[list[float]] | None = None
    mean_benefit: float | None = None
    total: dict[str, Any] | None = None
    within: dict[str, Any] | None = None
    between: dict[str, Any] | None = None
    between_share: float | None = None
    within_share: float | None = None
    contributions: list[dict[str, Any]] = field(default_factory=list)
    error_rates: dict[str, Any] | None = None
    cap: dict[str, Any] | None = None
    roc: list[dict[str, Any]] | None = None


def _ratio_of_errors(result: AuditResult, details: InequalityDetails) -> str:
    """Say whether harmful errors are as rare as was asked for."""
    contrast = next((f for f in result.findings if f.estimand.kind == "contrast"), None)
    if details.cap is None or contrast is None:
        return ""
    rates = ["false positive rate", "false negative rate"]
    harmful, benign = rates if details.cap["kind"] == "punitive" else reversed(rates)
    times = f"{details.cap['kappa']:g} times the {harmful}"
    if contrast.decision is Decision.DETECTED:
        return f"; {times} is shown to be above the {benign}"
    if contrast.decision is Decision.WITHIN_MARGIN:
        return f"; {times} is shown to be below the {benign}"
    return f"; whether {times} is below the {benign} is not settled"


def _inequality(result: AuditResult) -> str:
    total = next(iter(estimated(result)), None)
    p = joint_p(result)
    sentence = "" if total is None else f"The inequality of benefits is {amount(total)}"
    details = details_of(result.details, InequalityDetails)
    share = details.between_share
    if share is not None:
        whole = ", of which" if sentence else "Of the inequality of benefits"
        sentence += f"{whole} {share:.1%} lies between groups"
    if p is not None:
        found = "" if joint_detected(result) else "not "
        sentence += (
            f"; a difference in mean benefit between groups was {found}detected (p {p_value(p)})"
        )
    sentence += _ratio_of_errors(result, details)
    return sentence.lstrip("; ").capitalize() if total is None else sentence


INEQUALITY = Question(
    name="inequality",
    answer="equipoise.audits.inequality.inequality:inequality",
    drawing="equipoise.plot.decomposition:decomposition",
    sentence="How unequal are the benefits, within and between groups?",
    section=SECTION,
    subject="benefits",
    headline=_inequality,
    legend="Bars are parts of the index, lines their intervals.",
    details=InequalityDetails,
    needs_labels=False,
    assumptions=(
        Assumption(
            text="The benefit of each decision is valued as the matrix says.",
            status="not checked",
            remark="A value judgement; the explorer shows how the index changes with it.",
        ),
    ),
)
