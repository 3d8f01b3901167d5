"""Calibrators by group: after them a score is the mean outcome, whoever has it."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from equipoise._checks import check_integer, check_option
from equipoise._typing import AnyArray, CalibrationMethod, FloatArray, ParityUnit
from equipoise.exceptions import ApproximationWarning, SmallGroupWarning
from equipoise.mitigation._groups import (
    group_codes,
    known_groups,
    outcome_column,
    score_column,
)
from equipoise.stats.scores.calibrators import fit_score_map
from equipoise.stats.scores.cells import check_unit
from equipoise.stats.scores.group_quality import group_quality

__all__ = ["GroupCalibrator"]


class GroupCalibrator(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Replace a score by the mean outcome of people of the group who have it.

    After the fit, equal calibrated scores mean equal outcomes in every group, up to sampling error.
    Fit it on rows that the model has not seen, or let it cross-fit the model (`estimator` and
    `cv`); test the result on a third set of rows.

    Parameters
    ----------
    method : {"monotone", "interpolate", "isotonic", "platt", "binning"}
        See `equipoise.stats.scores.calibrators.fit_score_map`.
    unit : {"cluster", "row"}, optional
        Whether clusters or rows weigh alike; must be said when `cluster` is given to `fit`.
    min_group_size : int, default 50
        A group with fewer rows uses the calibrator of all groups together.
    min_class_count : int, default 10
        So does a group with fewer rows of either outcome, when outcomes are 0 and 1.
    n_bins : int, default 20
        Of ``method="binning"``.
    column : int, default 0
        Column of X that has the score; others are not used.
    estimator : scikit-learn classifier, optional
        A model whose scores are calibrated; X then has its features.
    cv : int, optional
        Folds, with `estimator`: clones of it are fitted on all but one of them and score the one
        left out, the calibrator is fitted on these scores, and the model is fitted again on all
        rows. Without it `estimator` must be fitted already, on other rows: a warning tells where it
        was not.

    Attributes
    ----------
    estimator_ : classifier
        The model whose scores `predict` calibrates.
    groups_ : list
        Groups of the fit.
    fallback_ : dict
        Groups that use the pooled calibrator, and why.

    Notes
    -----
    "interpolate" is near-unbiased binning of section 4.1 of the paper; "monotone" (default) uses
    local-linear estimates, made monotone by pooling adjacent violators, so that the order within a
    group is kept.

    Examples
    --------
    A score is honest for group A and half as large as it should be for group B. Is it mended?

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group, risk = rng.choice(["A", "B"], size=6000), rng.uniform(0.2, 0.8, size=6000)
    >>> outcome = (rng.uniform(size=6000) < risk).astype(int)
    >>> score = np.where(group == "B", risk / 2, risk)
    >>> calibrator = GroupCalibrator().fit(score, outcome, group=group)
    >>> calibrator.predict([0.6, 0.3], group=["A", "B"]).round(1)
    array([0.6, 0.6])

    It is: 0.3 in group B means what 0.6 means in group A.
    """

    def __init__(
        self,
        method: CalibrationMethod = "monotone",
        *,
        unit: ParityUnit | None = None,
        min_group_size: int = 50,
        min_class_count: int = 10,
        n_bins: int = 20,
        column: int = 0,
        estimator: Any = None,
        cv: int | None = None,
    ) -> None:
        self.method = method
        self.unit = unit
        self.min_group_size = min_group_size
        self.min_class_count = min_class_count
        self.n_bins = n_bins
        self.column = column
        self.estimator = estimator
        self.cv = cv

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        group: Any = None,
        cluster: Any = None,
    ) -> Self:
        """Fit one map for each group.

        Parameters
        ----------
        X : array of shape (n, d)
            Table with the score in `column`; with `group`, a plain list of scores will do. With
            `estimator`, its features.
        y : array of shape (n,)
            Outcomes.
        sample_weight : array of shape (n,), optional
            Sampling weights.
        group : array of shape (n,), optional
            Group of each row; `None` is one group.
        cluster : array of shape (n,), optional
            Who a row belongs to.

        Returns
        -------
        GroupCalibrator
        """
        check_option("method", self.method, CalibrationMethod)
        check_integer("min_group_size", self.min_group_size, low=0)
        check_integer("min_class_count", self.min_class_count, low=0)
        check_integer("n_bins", self.n_bins, low=1)
        if self.estimator is None:
            score = score_column(self, X, column=self.column, group=group, reset=True)
        else:
            score = self._model_scores(X, y, cluster)
        outcome = outcome_column(self, y)
        check_consistent_length(score, outcome)
        weight = _check_sample_weight(sample_weight, score, ensure_non_negative=True)
        unit = check_unit(self.unit, cluster)
        names, codes = group_codes(group, len(score))
        self.groups_ = names
        self.fallback_: dict[Any, str] = {}
        rows = {"outcome": outcome, "score": score, "weight": weight}
        members = None if cluster is None else np.asarray(cluster)
        maps = {}
        for k, name in enumerate(names):
            reason = self._too_small(outcome[codes == k]) if len(names) > 1 else None
            if reason is None:
                maps[name] = self._fit_map(rows, codes == k, members, unit)
            else:
                self.fallback_[name] = reason
        if self.fallback_:
            pooled = self._fit_map(rows, np.ones(len(score), dtype=bool), members, unit)
            maps |= dict.fromkeys(self.fallback_, pooled)
            told = "; ".join(f"{name!r} has {why}" for name, why in self.fallback_.items())
            warnings.warn(
                f"Groups too small for a calibrator of their own use the pooled one: {told}.",
                SmallGroupWarning,
                stacklevel=2,
            )
        self.maps_ = maps
        return self

    def predict(self, X: Any, *, group: Any = None) -> FloatArray:
        """Return calibrated scores.

        Parameters
        ----------
        X : array of shape (n, d)
            Table with the score in `column`; with `group`, a plain list of scores will do.
        group : array of shape (n,), optional
            Group of each row; each must have been in the fit.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        if self.estimator is None:
            score = score_column(self, X, column=self.column, group=group, reset=False)
        else:
            score = _positive_scores(self.estimator_, X)
        codes = known_groups(group, len(score), self.groups_)
        calibrated = np.empty(len(score))
        for k, name in enumerate(self.groups_):
            rows = codes == k
            calibrated[rows] = self.maps_[name](score[rows])
        return calibrated

    def _model_scores(self, X: Any, y: Any, cluster: Any) -> FloatArray:
        """Return scores of rows that the model which made them has not seen."""
        folds = 5 if self.cv is None else check_integer("cv", self.cv, low=2)
        splits = (
            KFold(folds, shuffle=True, random_state=0) if cluster is None else GroupKFold(folds)
        )
        fresh = cross_val_predict(
            clone(self.estimator), X, y, groups=cluster, cv=splits, method="predict_proba"
        )[:, 1]
        if self.cv is not None:
            self.estimator_ = clone(self.estimator).fit(X, y)
            return np.asarray(fresh, dtype=np.float64)
        self.estimator_ = self.estimator
        seen = _positive_scores(self.estimator, X)
        one = np.zeros(len(seen), dtype=np.int64)
        areas = group_quality(y, seen, one, baseline=fresh, metrics=("auc",)).differences
        if areas and areas[0].estimate > 0.0 and areas[0].statistic > 3.0:
            warnings.warn(
                "`estimator` ranks these rows better than models that have not seen them, by"
                f" {areas[0].estimate:.3f} of area under the ROC curve: it was fitted on them, and"
                " the calibration will not hold elsewhere. Fit on fresh rows, or pass `cv=5`.",
                ApproximationWarning,
                stacklevel=3,
            )
        return seen

    def _fit_map(
        self,
        rows: dict[str, FloatArray],
        keep: AnyArray,
        cluster: AnyArray | None,
        unit: ParityUnit,
    ) -> Any:
        return fit_score_map(
            rows["outcome"][keep],
            rows["score"][keep],
            method=self.method,
            cluster=None if cluster is None else cluster[keep],
            unit=unit,
            weight=rows["weight"][keep],
            n_bins=self.n_bins,
        )

    def _too_small(self, outcome: FloatArray) -> str | None:
        if len(outcome) < self.min_group_size:
            return f"{len(outcome)} rows, fewer than {self.min_group_size}"
        positive = int(np.sum(outcome == 1.0))
        if positive + int(np.sum(outcome == 0.0)) < len(outcome):
            return None
        rarer = min(positive, len(outcome) - positive)
        if rarer < self.min_class_count:
            return f"{rarer} rows of the rarer outcome, fewer than {self.min_class_count}"
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


def _positive_scores(estimator: Any, X: Any) -> FloatArray:
    return np.asarray(estimator.predict_proba(X)[:, 1], dtype=np.float64)
