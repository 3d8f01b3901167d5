"""What may be given as a candidate, and the selection rule it stands for.

On Spark a candidate is fitted on a sample, and judged on the rows that stay there.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from equipoise._checks import nearest, quoted
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
from equipoise.exceptions import InvalidParameterError
from equipoise.results.finding import Note
from equipoise.search.sample import Algorithm, SelectionRule, TrainingSample
from equipoise.search.top_share import Predictor, TopShare, fit_estimator

__all__ = [
    "NAMED_CANDIDATES",
    "PREDICTION",
    "described",
    "fit_and_predict",
    "judged_there",
    "selection_rule",
]


NAMED_CANDIDATES: dict[str, dict[str, Any]] = {
    "equipoise.search.FeaturePath": {},
    "equipoise.search.FrontierRule": {},
    "equipoise.search.LinearRule": {},
    "equipoise.search.ReweightedEstimator": {},
    "equipoise.search.ReweightedRule": {},
    "sklearn.ensemble.ExtraTreesClassifier": {"random_state": 0},
    "sklearn.ensemble.ExtraTreesRegressor": {"random_state": 0},
    "sklearn.ensemble.GradientBoostingClassifier": {"random_state": 0},
    "sklearn.ensemble.GradientBoostingRegressor": {"random_state": 0},
    "sklearn.ensemble.HistGradientBoostingClassifier": {"random_state": 0},
    "sklearn.ensemble.HistGradientBoostingRegressor": {"random_state": 0},
    "sklearn.ensemble.RandomForestClassifier": {"random_state": 0},
    "sklearn.ensemble.RandomForestRegressor": {"random_state": 0},
    "sklearn.linear_model.LassoCV": {"random_state": 0},
    "sklearn.linear_model.LinearRegression": {},
    "sklearn.linear_model.LogisticRegression": {"max_iter": 1000},
    "sklearn.linear_model.Ridge": {},
    "sklearn.linear_model.RidgeCV": {},
    "sklearn.tree.DecisionTreeClassifier": {"random_state": 0},
    "sklearn.tree.DecisionTreeRegressor": {"random_state": 0},
}
"""Estimators and searches that a plan may name by import path, with what they are built with."""

PATHS = frozenset({"FeaturePath", "FrontierRule", "ReweightedEstimator"})
"""Searches that need an estimator: in a plan, boosted trees."""
SCALED = frozenset({"LassoCV", "LogisticRegression", "Ridge", "RidgeCV"})
"""Penalised models, which are fitted to standardised features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prediction:
    """Fit an estimator to the outcome and decide what it predicts."""

    estimator: Any

    def select(self, sample: TrainingSample) -> Algorithm:
        model = fit_estimator(self.estimator, sample.X, sample.y, sample.weight)
        report = {"rule": "predict", "estimator": type(self.estimator).__name__}
        return Predictor(model=model, report=report)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    """A function of the user's own as a selection rule."""

    function: Callable[[TrainingSample], Any]

    def select(self, sample: TrainingSample) -> Algorithm:
        found = self.function(sample)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        if hasattr(found, "decide"):
            return _Decisions(function=found.decide, report=_report(found, name))
        if callable(found):
            return _Decisions(function=found, report={"rule": name})
        raise InvalidParameterError(
            f"the candidate function {name!r} must return an algorithm (with `decide`) or a"
            f" function of the features; it returned {type(found).__name__}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decisions:
    """Decisions by a function of the features."""

    function: Callable[[AnyArray], Any]
    report: Mapping[str, Any] = field(default_factory=dict)

    def decide(self, X: AnyArray, *, weight: AnyArray | None = None) -> FloatArray:
        del weight
        decisions = np.asarray(self.function(X), dtype=np.float64)
        if decisions.shape != (len(X),) or not np.isfinite(decisions).all():
            raise InvalidParameterError(
                f"a candidate must return one finite decision for each of {len(X)} rows; got an"
                f" array of shape {decisions.shape}."
            )
        return decisions


def _report(algorithm: Any, name: str) -> Mapping[str, Any]:
    return getattr(algorithm, "report", {}) or {"rule": name}


def selection_rule(candidate: object, *, capacity: float | None) -> SelectionRule:
    """Return the selection rule that a candidate stands for.

    Parameters
    ----------
    candidate : estimator, search object, callable or str
        A string is the import path of one of `NAMED_CANDIDATES`.
    capacity : float, optional
        Share to select; estimators are then cut at it, named searches keep it.

    Returns
    -------
    SelectionRule
    """
    if isinstance(candidate, str):
        candidate = _named(candidate, capacity)
    if hasattr(candidate, "select"):
        limit = getattr(candidate, "capacity", None)
        if capacity is not None and limit is None and hasattr(candidate, "set_params"):
            from sklearn.base import clone

            inherited: SelectionRule = clone(candidate).set_params(capacity=capacity)
            return inherited
        if capacity is not None and limit != capacity:
            raise InvalidParameterError(
                f"the candidate's own capacity is {limit}, the audit's is {capacity:g}; give both"
                " the same."
            )
        return candidate
    if hasattr(candidate, "fit") and hasattr(candidate, "predict"):
        if capacity is None:
            return _Prediction(estimator=candidate)
        rule: SelectionRule = TopShare(candidate, capacity)
        return rule
    if callable(candidate):
        return _Function(function=candidate)
    raise InvalidParameterError(
        "`candidate` must be a scikit-learn estimator, an object of `equipoise.search`, a function,"
        f" or the name of a column; got {type(candidate).__name__}."
    )


def _named(name: str, capacity: float | None) -> object:
    if name not in NAMED_CANDIDATES:
        raise InvalidParameterError(
            f"`candidate` {name!r} is neither a column nor a known estimator."
            f"{nearest(name, NAMED_CANDIDATES)} Estimators: {quoted(NAMED_CANDIDATES)}."
        )
    module, _, kind = name.rpartition(".")
    options = dict(NAMED_CANDIDATES[name])
    if module == "equipoise.search":
        options["capacity"] = capacity
        if kind in PATHS:
            options["estimator"] = _named("sklearn.ensemble.HistGradientBoostingClassifier", None)
    built: object = getattr(importlib.import_module(module), kind)(**options)
    if kind not in SCALED:
        return built
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline: object = make_pipeline(StandardScaler(), built)
    return pipeline


def described(algorithm: Algorithm | None, feature_names: tuple[str, ...]) -> dict[str, Any]:
    """Describe a fitted candidate in JSON-safe words and numbers; a ready one has none."""
    if algorithm is None:
        return {}
    found = dict(algorithm.report)
    fitted = getattr(algorithm, "model", None)
    coefficients = getattr(algorithm, "coefficients", getattr(fitted, "coef_", None))
    if coefficients is not None and np.size(coefficients) == len(feature_names):
        values = map(float, np.ravel(coefficients))
        found["coefficients"] = dict(zip(feature_names, values, strict=True))
    return found


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
