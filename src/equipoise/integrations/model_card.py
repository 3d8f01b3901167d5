"""A section of a model card: Markdown for people, metadata for Hugging Face."""

from collections.abc import Iterator, Sequence
from typing import Any

from equipoise.plans.gate import outcome
from equipoise.results.disclosure import MIN_CELL, withheld_groups, without
from equipoise.results.finding import Finding
from equipoise.results.formats import count, decision_word, interval, number, p_value
from equipoise.results.result import AuditResult
from equipoise.results.wording import compared_names, headline, question_words

__all__ = ["markdown", "metadata"]

_SIGNS = str.maketrans(
    {sign: f"\\{sign}" for sign in "\\|[]`*_~$"}
    | {"\n": " ", "\r": " ", "<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
"""What would be a table, a link, code, a formula or markup in Markdown."""


def markdown(results: Sequence[AuditResult], *, min_cell: int = MIN_CELL) -> str:
    """Write results as a section of a model card.

    Parameters
    ----------
    results : sequence of AuditResult
        What is told together.
    min_cell : int, default 5
        Groups with fewer rows are withheld.

    Returns
    -------
    str
        Markdown: a heading, a sentence and a table for each question.
    """
    parts = ["## Differences between groups\n"]
    for result in _told(results, min_cell):
        rows = [
            "| "
            + " | ".join(
                (
                    group.translate(_SIGNS),
                    finding.estimand.translate(_SIGNS),
                    number(finding.estimate),
                    interval(finding.ci),
                    p_value(finding.p_value),
                    count(finding),
                    decision_word(finding.decision, result.question.words),
                )
            )
            + " |"
            for group, finding in _lines(result)
        ]
        parts.append(
            f"### {question_words(result).translate(_SIGNS)}\n\n"
            f"{headline(result).translate(_SIGNS)}\n\n"
            "| group | estimand | estimate | interval | p | n | decision |\n"
            "| --- | --- | --- | --- | --- | --- | --- |\n" + "\n".join(rows) + "\n"
        )
    parts.append(
        "*Not detected* means that the data do not show a difference, not that there is none.\n"
    )
    return "\n".join(parts)


def metadata(
    results: Sequence[AuditResult], *, model: str, dataset: str, min_cell: int = MIN_CELL
) -> dict[str, Any]:
    """Return the ``model-index`` of a Hugging Face model card.

    Parameters
    ----------
    results : sequence of AuditResult
        What is told together.
    model, dataset : str
        Their names.
    min_cell : int, default 5
        Groups with fewer rows are withheld.

    Returns
    -------
    dict
        Ready to be written as YAML at the top of the card.
    """
    told = _told(results, min_cell)
    return {
        "model-index": [
            {
                "name": model,
                "results": [
                    {
                        "task": {"type": "other", "name": question_words(result)},
                        "dataset": {"name": dataset, "type": dataset},
                        "metrics": [
                            {
                                "type": str(finding.estimand),
                                "name": f"{group}: {finding.estimand.words}",
                                "value": finding.estimate,
                                "verified": False,
                            }
                            for group, finding in _lines(result)
                            if finding.estimate is not None
                        ],
                        "source": {"name": f"equipoise: {outcome(result).value}", "url": ""},
                    }
                    for result in told
                ],
            }
        ]
    }


def _lines(result: AuditResult) -> Iterator[tuple[str, Finding]]:
    return zip(compared_names(result.findings, str), result.findings, strict=True)


def _told(results: Sequence[AuditResult], min_cell: int) -> list[AuditResult]:
    hidden = withheld_groups(results, min_cell)
    return [without(result, hidden, min_cell) for result in results]
