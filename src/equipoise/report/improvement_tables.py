"""What an expert reads beside the findings of improvability: every split, and what is shown."""

from dataclasses import dataclass

from equipoise.audits.improvement.questions import ImprovementDetails
from equipoise.results.details import details_of
from equipoise.results.formats import number, p_value
from equipoise.results.result import AuditResult

__all__ = ["PlainTable", "improvement_tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainTable:
    """A table of words and written numbers; the first column names the row."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def improvement_tables(result: AuditResult) -> tuple[PlainTable, ...]:
    """Return the table of splits (the paper's Table 1) and that of improvements (its Table 2).

    Parameters
    ----------
    result : AuditResult
        Of an improvability audit; one without splits has no such tables.

    Returns
    -------
    tuple of PlainTable
    """
    details = details_of(result.details, ImprovementDetails)
    if not details.splits:
        return ()
    by_split = PlainTable(
        caption="Every criterion, on the rows that judge it",
        columns=("Split", "Criterion", "Candidate", "Status quo", "p"),
        rows=tuple(
            (
                str(split["split"]),
                criterion["criterion"],
                number(criterion["a1"]),
                number(criterion["a0"]),
                p_value(criterion["p_value"]),
            )
            for split in details.splits
            for criterion in split["criteria"]
        ),
    )
    scale = "absolute" if details.margin_scale == "absolute" else "share of the status quo"
    deltas = PlainTable(
        caption=f"Largest improvement that the data show at level {number(result.alpha)} ({scale})",
        columns=("Improvement", "At least"),
        rows=tuple(
            (name, "none" if delta is None else number(delta))
            for name, delta in details.deltas.items()
        ),
    )
    return by_split, deltas
