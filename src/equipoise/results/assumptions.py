"""What an answer rests on, and which part of it the program looked at."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from equipoise.results.finding import Decision

if TYPE_CHECKING:
    from equipoise.results.result import AuditResult

__all__ = ["Assumption", "assumptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A condition, and what is known of it.

    Parameters
    ----------
    text : str
        What must hold.
    status : {"checked", "by construction", "not checked"}
        ``"not checked"`` is for the reader to judge: the table cannot show it.
    remark : str
        What was seen, or why it cannot be seen.
    """

    text: str
    status: Literal["checked", "by construction", "not checked"]
    remark: str


_SAMPLE = Assumption(
    text="The rows are a sample of the people the conclusion is about.",
    status="not checked",
    remark="The table cannot show who is missing from it.",
)
_MEASURED = Assumption(
    text="Groups and outcomes are recorded without systematic error.",
    status="not checked",
    remark="An outcome such as an arrest may itself be recorded unequally.",
)
_LABELS = Assumption(
    text="Outcomes are known for everybody, whatever was decided.",
    status="not checked",
    remark="Where only accepted applicants have outcomes, rates describe those alone.",
)


def assumptions(result: "AuditResult") -> tuple[Assumption, ...]:
    """List what a result rests on; the checked ones report what was seen.

    Parameters
    ----------
    result : AuditResult
        Any audit.

    Returns
    -------
    tuple of Assumption
        Those of every audit, then those of this question.

    Examples
    --------
    What does a comparison of rates rest on that the table cannot show?

    >>> from equipoise import AuditResult
    >>> result = AuditResult(audit="disparity", null="", alternative="", alpha=0.05, method="",
    ...                      n=100, findings=())
    >>> [a.text for a in assumptions(result) if a.status == "not checked"][1]
    'The rows are a sample of the people the conclusion is about.'
    """
    labels = (_LABELS,) if result.question.needs_labels else ()
    own = result.question.assumptions
    sizes = (_sizes(result),) if result.lines else ()
    return (_independence(result), *sizes, *own, _SAMPLE, _MEASURED, *labels)


def _independence(result: "AuditResult") -> Assumption:
    clusters = result.details.n_clusters
    if clusters:
        return Assumption(
            text="Units are independent of each other; rows of one unit need not be.",
            status="by construction",
            remark=f"Variances are computed over {clusters:,} clusters.",
        )
    return Assumption(
        text="Rows are independent of each other.",
        status="not checked",
        remark="If a person can appear in several rows, name the column in `cluster`.",
    )


def _sizes(result: "AuditResult") -> Assumption:
    untested = sum(f.decision is Decision.NOT_TESTED for f in result.lines)
    noted = sum(bool(f.notes) for f in result.lines) - untested
    seen = f"{untested:,} of {len(result.lines):,} were not tested"
    if noted > 0:
        seen += f", {noted} more carry a note"
    return Assumption(
        text="Every subgroup has enough rows for its test.",
        status="checked",
        remark=f"{seen}.",
    )
