"""Keep a result beside the run of a model in MLflow."""

import re
from collections import Counter
from typing import Any

from equipoise.exceptions import MissingDependencyError
from equipoise.results.disclosure import MIN_CELL
from equipoise.results.formats import shortened
from equipoise.results.result import AuditResult
from equipoise.results.wording import compared_names, headline

__all__ = ["log"]

LONGEST = 230
"""Characters of a name, which MLflow limits to 250 with its number and what is logged."""


def log(result: AuditResult, *, name: str | None = None, min_cell: int = MIN_CELL) -> None:
    """Log a result to the active MLflow run.

    Estimates, ends of intervals and p-values become metrics, the sentence and whether something was
    detected become tags, and the whole result an artifact that `AuditResult.from_dict` reads.

    Parameters
    ----------
    result : AuditResult
        Any audit.
    name : str, optional
        Stands before every name; by default the question.
    min_cell : int, default 5
        Groups with fewer rows are withheld.

    Raises
    ------
    MissingDependencyError
        If MLflow is not installed.
    """
    mlflow = _library()
    told = result.disclosed(min_cell=min_cell)
    prefix = _allowed(name or result.audit)
    metrics: dict[str, float] = {}
    for place, finding in zip(_places(told, prefix), told.findings, strict=True):
        ci = finding.ci
        values = {
            "estimate": finding.estimate,
            "ci_low": None if ci is None else ci.low,
            "ci_high": None if ci is None else ci.high,
            "p_value": finding.p_value,
        }
        metrics |= {f"{place}/{key}": value for key, value in values.items() if value is not None}
    if told.joint is not None and told.joint.p_value is not None:
        metrics[f"{prefix}/joint/p_value"] = told.joint.p_value
    mlflow.log_metrics(metrics)
    mlflow.set_tags(
        {
            f"equipoise.{prefix}.detected": str(told.detected).lower(),
            f"equipoise.{prefix}.headline": headline(told),
        }
    )
    mlflow.log_dict(told.to_dict(), f"equipoise/{prefix}.json")


def _library() -> Any:
    try:
        import mlflow
    except ImportError as error:
        raise MissingDependencyError(
            "Logging to MLflow needs mlflow. Install `mlflow` or `mlflow-skinny`."
        ) from error
    return mlflow


def _places(result: AuditResult, prefix: str) -> list[str]:
    """Name each finding as MLflow allows; names that would be one are numbered."""
    times: Counter[str] = Counter()
    places = []
    for group, finding in zip(compared_names(result.findings, str), result.findings, strict=True):
        place = shortened(
            f"{prefix}/{_allowed(group)}/{_allowed(finding.estimand)}", LONGEST
        ).replace("…", "_")
        times[place] += 1
        places.append(place if times[place] == 1 else f"{place} {times[place]}")
    return places


def _allowed(text: str) -> str:
    """Replace what MLflow does not allow in the name of a metric."""
    return re.sub(r"[^\w\-. ]+", "_", text.replace("=", "."))
