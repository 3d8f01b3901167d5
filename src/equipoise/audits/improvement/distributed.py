"""A candidate fitted on a sample of a Spark DataFrame, and judged on the rows that stay there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from equipoise._typing import AnyArray, FloatArray
from equipoise.audits.asking import Asking
from equipoise.audits.improvement.rows import (
    INDEX,
    SCORE_UTILITIES,
    DecisionRows,
    read_decisions,
    utility_name,
)
from equipoise.audits.improvement.trial import FittedElsewhere, Setting
from equipoise.data.metrics import Metric
from equipoise.data.table import Table
from equipoise.results.finding import Note
from equipoise.search.sample import Algorithm, SelectionRule

__all__ = ["PREDICTION", "fit_and_predict", "judged_there"]

PREDICTION = "__eq_prediction"
"""Column of what the candidate decides, or of its score."""


def judged_there(rules: Mapping[str, SelectionRule], metrics: Sequence[str | Metric]) -> bool:
    """Return whether there is one candidate, and its decisions alone are judged."""
    return (
        len(rules) == 1
        and not any(hasattr(rule, "path") for rule in rules.values())
        and all(utility_name(metric) not in (*SCORE_UTILITIES, INDEX) for metric in metrics)
    )


def fit_and_predict(
    setting: Setting, others: Table, rule: SelectionRule
) -> Asking[tuple[DecisionRows, FittedElsewhere]]:
    """Fit a candidate on the rows at hand, and read what it decides about the others.

    Parameters
    ----------
    setting : Setting
        With the sample that it is fitted on.
    others : Table
        The other rows, on Spark.
    rule : SelectionRule
        Fits the candidate.

    Yields
    ------
    Sums
        Which check the rows.

    Returns
    -------
    DecisionRows, FittedElsewhere
    """
    from equipoise.data.spark import with_predictions

    rows = setting.rows
    everyone = np.arange(len(rows.y))
    algorithm = rule.select(setting.training_sample(everyone))
    frame = with_predictions(
        others.frame, _prediction(algorithm, setting.capacity), rows.feature_names, PREDICTION
    )
    found = yield from read_decisions(
        others.with_frame(frame),
        setting.metrics,
        ready=(PREDICTION,),
        capacity=setting.capacity,
        separately=bool(rows.separate),
    )
    size = found.n_labelled
    note = Note(
        code="fitted-on-sample",
        message=f"The candidate was fitted on {len(rows.y)} rows that were drawn at random and left"
        f" the cluster. It predicted in the partitions, and was judged on {size} other rows: one"
        " split.",
    )
    fitted = FittedElsewhere(algorithm, setting.training_values(everyone), len(everyone))
    return replace(found, notes=(*found.notes, note)), fitted


def _prediction(algorithm: Algorithm, capacity: float | None) -> "Callable[[FloatArray], AnyArray]":
    """Return what a partition predicts: a score that all rows are ranked by, or decisions."""
    score = getattr(algorithm, "score", None)
    if capacity is not None and score is not None and getattr(algorithm, "cutoff", None) is None:
        ranked: Callable[[FloatArray], AnyArray] = score
        return ranked
    return algorithm.decide
