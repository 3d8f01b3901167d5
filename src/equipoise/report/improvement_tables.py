"""What an expert reads beside the findings of improvability: every split, and what is shown."""

from dataclasses import dataclass

from equipoise.audits.improvement.questions import ImprovementDetails, NecessityDetails
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
    return (*_steps(result), by_split, deltas, *_candidates(details), *_frontier(details))


def _steps(result: AuditResult) -> tuple[PlainTable, ...]:
    """The steps of a necessity argument, and what was searched."""
    details = result.details
    if not isinstance(details, NecessityDetails):
        return ()
    steps = PlainTable(
        caption="The argument in three steps",
        columns=("Question", "Answer"),
        rows=tuple((step["question"], step["answer"]) for step in details.steps),
    )
    search = details.search
    words = {
        "candidates": "Candidates tried",
        "order_rule": "Order of the tests",
        "splits": "Splits",
        "train_fraction": "Share of rows to build on",
        "validation_fraction": "Share of those that only choose",
        "seed": "Seed",
        "features": "Features",
        "not_searched": "Not searched",
    }
    searched = PlainTable(
        caption="What was searched",
        columns=("What", "How"),
        rows=tuple((label, _written(search.get(key))) for key, label in words.items()),
    )
    return steps, searched


def _written(value: object) -> str:
    if isinstance(value, list):
        names = [str(item) for item in value]
        return f"{len(names)}: {', '.join(names)}" if names else "none"
    return number(value) if isinstance(value, float) else str(value)


def _candidates(details: ImprovementDetails) -> tuple[PlainTable, ...]:
    if not details.candidates:
        return ()
    return (
        PlainTable(
            caption=f"Candidates tried ({details.order_rule})",
            columns=("Candidate", "Rank", "p, adjusted", "State"),
            rows=tuple(
                (
                    row["name"],
                    "" if row["rank"] is None else number(float(row["rank"])),
                    "" if row["p_adjusted"] is None else p_value(row["p_adjusted"]),
                    row["state"],
                )
                for row in details.candidates
            ),
        ),
    )


def _frontier(details: ImprovementDetails) -> tuple[PlainTable, ...]:
    if not details.frontier:
        return ()
    return (
        PlainTable(
            caption="Reduction of the gap that is shown at every tolerated loss, all at once",
            columns=("Loss of at most", "Reduction of at least", "By"),
            rows=tuple(
                (number(step["loss"]), number(step["reduction"]), step["candidate"] or "none")
                for step in details.frontier
            ),
        ),
    )
