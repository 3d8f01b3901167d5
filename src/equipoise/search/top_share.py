"""Any scikit-learn model, cut at a capacity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from equipoise._checks import check_fraction, check_option
from equipoise._typing import AnyArray, Cutoff, FloatArray, IntArray
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.search.sample import TrainingSample
from equipoise.stats.improvement.capacity import select_top, top_share_cutoff

__all__ = ["Predictor", "ScoreRule", "TopShare", "fit_estimator", "score_of"]


def score_of(estimator: Any, X: AnyArray) -> FloatArray:
    """Return the score of a fitted model: probability of class 1, margin, or prediction."""
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, -1]
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X), dtype=np.float64)
    return np.asarray(estimator.predict(X), dtype=np.float64)


def fit_estimator(estimator: Any, X: AnyArray, y: AnyArray, weight: FloatArray | None) -> Any:
    """Fit a copy of a scikit-learn estimator, with weights if there are any."""
    if not hasattr(estimator, "fit") or not hasattr(estimator, "predict"):
        raise InvalidParameterError(
            "an estimator must have `fit` and `predict`, as in scikit-learn; got"
            f" {type(estimator).__name__}."
        )
    if not len(y) or (weight is not None and not weight.any()):
        raise DataError(
            f"{type(estimator).__name__} cannot be fitted: no row of positive weight is left to"
            " fit it to."
        )
    copy = clone(estimator)
    # In proportion only: a penalty would weigh less against larger weights.
    weights = {} if weight is None else _weight_arguments(copy, weight / weight.mean())
    try:
        return copy.fit(X, y, **weights)
    except ValueError as error:
        # For instance a single class of outcomes in the training rows.
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(f"{type(estimator).__name__} cannot be fitted: {reason}.") from error


def _weight_arguments(model: Any, weight: FloatArray) -> dict[str, FloatArray]:
    """Return how `fit` is given weights; in a pipeline, every step that takes them."""
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    if not has_fit_parameter(steps[-1][1], "sample_weight"):
        raise InvalidParameterError(
            f"{type(steps[-1][1]).__name__} cannot use weights; choose a model whose `fit` takes"
            " `sample_weight`."
        )
    return {
        f"{name}__sample_weight" if name else "sample_weight": weight
        for name, step in steps
        if has_fit_parameter(step, "sample_weight")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRule:
    """Select those with the highest scores of a fitted model.

    Parameters
    ----------
    model : object
        A fitted scikit-learn model.
    columns : array of int
        Features it may see.
    capacity : float
        Select this share of the rows at hand.
    cutoff : float, optional
        Select scores at or above it instead.
    report : mapping
        How it was found.
    """

    model: Any
    columns: IntArray
    capacity: float
    cutoff: float | None = None
    report: Mapping[str, Any] = field(default_factory=dict)

    def decide(self, X: AnyArray, *, weight: AnyArray | None = None) -> FloatArray:
        """Return 1 for the selected rows of `X` and 0 for the others."""
        score = self.score(X)
        if self.cutoff is not None:
            return (score >= self.cutoff).astype(np.float64)
        return select_top(score, self.capacity, weight=weight).astype(np.float64)

    def score(self, X: AnyArray) -> FloatArray:
        """Return the score that is cut."""
        return score_of(self.model, np.asarray(X, dtype=np.float64)[:, self.columns])


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """Decide what a fitted model predicts.

    Parameters
    ----------
    model : object
        A fitted scikit-learn model.
    report : mapping
        How it was found.
    """

    model: Any
    report: Mapping[str, Any] = field(default_factory=dict)

    def decide(self, X: AnyArray, *, weight: AnyArray | None = None) -> FloatArray:
        """Return the predictions for the rows of `X`; `weight` plays no part."""
        del weight
        return np.asarray(self.model.predict(np.asarray(X)), dtype=np.float64)

    def score(self, X: AnyArray) -> FloatArray:
        """Return the score behind the predictions."""
        return score_of(self.model, np.asarray(X, dtype=np.float64))


class TopShare(BaseEstimator):  # type: ignore[misc]
    """Fit a model of the outcome; select the share of people it ranks highest.

    Parameters
    ----------
    estimator : scikit-learn regressor or classifier
        Fitted to the outcome.
    capacity : float
        Share of people to select, in (0, 1).
    cutoff : {"sample", "training"}, default "sample"
        "sample": the top share of whatever rows are decided about, so the capacity is always met.
        "training": the score that cuts off the top share of the training rows; a model that fits
        its training rows too closely then selects fewer people elsewhere.
    forbidden : sequence of str
        Features the model may not see.

    Examples
    --------
    Who are the top 25% by a linear model?

    >>> from sklearn.linear_model import LinearRegression
    >>> from equipoise.search import TopShare, TrainingSample
    >>> sample = TrainingSample.from_arrays(
    ...     X=[[1.0], [2.0], [3.0], [4.0]], y=[2.0, 4.0, 6.0, 8.0], group=[0, 1, 0, 1],
    ...     status_quo=[1, 0, 0, 0], accuracy="selected_outcome")
    >>> algorithm = TopShare(LinearRegression(), capacity=0.25).select(sample)
    >>> algorithm.decide([[0.5], [9.0], [1.0], [5.0]]).tolist()
    [0.0, 1.0, 0.0, 0.0]

    The second.
    """

    def __init__(
        self,
        estimator: Any,
        capacity: float,
        *,
        cutoff: Cutoff = "sample",
        forbidden: Sequence[str] = (),
    ) -> None:
        self.estimator = estimator
        self.capacity = capacity
        self.cutoff = cutoff
        self.forbidden = forbidden

    def select(self, sample: TrainingSample) -> ScoreRule:
        """Return the algorithm fitted on the training sample.

        Parameters
        ----------
        sample : TrainingSample
            Training rows.

        Returns
        -------
        ScoreRule
        """
        share = check_fraction("capacity", self.capacity)
        check_option("cutoff", self.cutoff, Cutoff)
        columns = sample.columns(self.forbidden)
        X = sample.X[:, columns]
        model = fit_estimator(self.estimator, X, sample.y, sample.weight)
        report: dict[str, Any] = {"rule": "TopShare", "estimator": type(self.estimator).__name__}
        if self.cutoff == "sample":
            return ScoreRule(model=model, columns=columns, capacity=share, report=report)
        cutoff = top_share_cutoff(score_of(model, X), share, weight=sample.weight)
        report["cutoff"] = cutoff
        return ScoreRule(model=model, columns=columns, capacity=share, cutoff=cutoff, report=report)
