"""The question of necessity: what is asked, and how an answer is told."""

from dataclasses import dataclass, field
from typing import Any, TypedDict

from equipoise.results.assumptions import Assumption
from equipoise.results.details import IN_MEMORY, Details, details_of
from equipoise.results.formats import p_value
from equipoise.results.question import Question, Section
from equipoise.results.result import AuditResult
from equipoise.results.wording import joint_detected, joint_p

__all__ = ["IMPROVABILITY", "Curve", "ImprovementDetails"]

SECTION = Section(
    id="necessity",
    heading="Is it necessary?",
    lead="Whether a less discriminatory alternative that serves the purpose as well has been"
    " shown to exist.",
)


class Curve(TypedDict):
    """P-values of ever larger improvements."""

    delta: list[float]
    p_value: list[float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImprovementDetails(Details):
    """What was compared on each split, and the largest improvements shown.

    Parameters
    ----------
    metric, noun : str
        The accuracy metric, and how a person says it.
    fairness, groups : list of str
        Metrics whose gap counts; the groups.
    capacity, combine, margin_scale, delta_accuracy, delta_fairness : optional
        As asked.
    splits : list of dict
        One for each split; empty where nothing was tested.
    p_values, p_median, p_combined : optional
        Of the splits, their median, and combined by every rule.
    binding, limit : str, optional
        The requirement that decides most often; what likely stands in the way.
    deltas, delta_curves : dict
        Largest improvement of each kind that is shown, and the p-values behind it.
    cutoff_sensitivity : dict, optional
        P-values with a fixed and with an estimated cut-off.
    candidates : list, optional
        The fitted algorithms; in memory only.
    """

    metric: str = ""
    noun: str = ""
    fairness: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    capacity: float | None = None
    combine: str | None = None
    margin_scale: str = "relative"
    delta_accuracy: float = 0.0
    delta_fairness: float = 0.0
    splits: list[dict[str, Any]] = field(default_factory=list)
    p_values: list[float] = field(default_factory=list)
    p_median: float | None = None
    p_combined: dict[str, float] = field(default_factory=dict)
    binding: str | None = None
    limit: str | None = None
    deltas: dict[str, float | None] = field(default_factory=dict)
    delta_curves: dict[str, Curve] = field(default_factory=dict)
    cutoff_sensitivity: dict[str, float] | None = None
    candidates: list[Any] | None = field(default=None, metadata=IN_MEMORY)


def _improvability(result: AuditResult) -> str:
    details = details_of(result.details, ImprovementDetails)
    p = joint_p(result)
    test = "" if p is None else f" (p {p_value(p)})"
    if joint_detected(result):
        shown = details.deltas.get("fairness")
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
    }.get(details.limit or "", "")
    return (
        f"The candidate was not shown to be a less discriminatory alternative{test}{limit};"
        " this does not show that none exists"
    )


IMPROVABILITY = Question(
    name="improvability",
    answer="equipoise.audits.improvement.improvability:improvability",
    drawing="equipoise.plot.improvement:improvement",
    tables="equipoise.report.improvement_tables:improvement_tables",
    sentence="Is there a less discriminatory alternative?",
    section=SECTION,
    headline=_improvability,
    legend="Left: status quo and candidate on the rows that judge them, one point for each split."
    " Middle: the p-value of each requirement by split. Right: the p-value of ever larger"
    " improvements; those below the dashed line are shown.",
    details=ImprovementDetails,
    one_claim=True,
    assumptions=(
        Assumption(
            text="The candidate is judged on rows it was not built on.",
            status="by construction",
            remark="Sample splitting; a ready column is the exception, and a note says so.",
        ),
        Assumption(
            text="The accuracy measure is the legitimate aim of the decision.",
            status="not checked",
            remark="What counts as business necessity is a legal question.",
        ),
    ),
)
