"""Calibration of several objectives together, so that every weighted sum keeps parity."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from equipoise._checks import check_integer, check_option
from equipoise._typing import FloatArray, MultiObjectiveMethod
from equipoise.exceptions import SmallGroupWarning
from equipoise.mitigation._groups import group_codes, known_groups
from equipoise.stats.scores.calibrators import fit_product_kernel

__all__ = ["MultiObjectiveCalibrator"]

MOST_KERNEL_SCORES = 3


class MultiObjectiveCalibrator(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Replace K scores by the mean outcomes given all of them and the group.

    Calibrating each score by itself does not make a weighted sum mean the same in every group; the
    conditional means :math:`E(Y^k | S_1, \ldots, S_K, G)` do, whatever the weights (Theorem 2 of
    the paper). Estimation error leaves some disparity: test the sum on held-out rows
    (`equipoise.stats.scores.parity.composite_parity_test`).

    Parameters
    ----------
    method : {"auto", "kernel", "boosting"}
        A product kernel for up to three scores, gradient boosting beyond; or one of them always.
    min_group_size : int, default 50
        A group with fewer rows uses the fit of all groups together.
    random_state : int, optional
        Of gradient boosting.

    Attributes
    ----------
    groups_ : list
        Groups of the fit.
    fallback_ : dict
        Groups that use the pooled fit, and why.
    n_features_in_ : int
        Number of scores.

    Examples
    --------
    Two scores are each right on average, but clicks follow their mean. What is expected?

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=(3000, 2))
    >>> clicks = np.repeat(score.mean(axis=1, keepdims=True), 2, axis=1)
    >>> MultiObjectiveCalibrator().fit(score, clicks).predict([[0.2, 0.8]]).round(1)
    array([[0.5, 0.5]])

    One half for both.
    """

    def __init__(
        self,
        method: MultiObjectiveMethod = "auto",
        *,
        min_group_size: int = 50,
        random_state: int | None = None,
    ) -> None:
        self.method = method
        self.min_group_size = min_group_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, group: Any = None) -> Self:
        """Fit the conditional means of each group.

        Parameters
        ----------
        X : array of shape (n, K)
            Scores.
        y : array of shape (n,) or (n, q)
            Outcomes, one column for each objective.
        sample_weight : array of shape (n,), optional
            Sampling weights.
        group : array of shape (n,), optional
            Group of each row; `None` is one group.

        Returns
        -------
        MultiObjectiveCalibrator
        """
        check_option("method", self.method, MultiObjectiveMethod)
        check_integer("min_group_size", self.min_group_size, low=0)
        score, outcome = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True
        )
        self.single_ = outcome.ndim == 1
        table = outcome.reshape(len(score), -1).astype(np.float64)
        weight = _check_sample_weight(sample_weight, score, ensure_non_negative=True)
        names, codes = group_codes(group, len(score))
        sizes = np.bincount(codes, minlength=len(names))
        self.groups_ = names
        self.fallback_ = {
            name: f"{size} rows, fewer than {self.min_group_size}"
            for name, size in zip(names, sizes.tolist(), strict=True)
            if len(names) > 1 and size < self.min_group_size
        }
        fits = {
            name: self._fit(score[codes == k], table[codes == k], weight[codes == k])
            for k, name in enumerate(names)
            if name not in self.fallback_
        }
        if self.fallback_:
            fits |= dict.fromkeys(self.fallback_, self._fit(score, table, weight))
            told = "; ".join(f"{name!r} has {why}" for name, why in self.fallback_.items())
            warnings.warn(
                f"Groups too small for a fit of their own use the pooled one: {told}.",
                SmallGroupWarning,
                stacklevel=2,
            )
        self.fits_ = fits
        return self

    def predict(self, X: Any, *, group: Any = None) -> FloatArray:
        """Return the mean outcome of each objective.

        Parameters
        ----------
        X : array of shape (n, K)
            Scores.
        group : array of shape (n,), optional
            Group of each row; each must have been in the fit.

        Returns
        -------
        array of shape (n,) or (n, q)
            As `y` in the fit.
        """
        check_is_fitted(self)
        score = validate_data(self, X, dtype=np.float64, reset=False)
        codes = known_groups(group, len(score), self.groups_)
        parts = [(codes == k, self.fits_[name]) for k, name in enumerate(self.groups_)]
        width = next(iter(self.fits_.values()))(score[:1]).shape[1] if len(score) else 1
        expected = np.empty((len(score), width))
        for rows, fit in parts:
            expected[rows] = fit(score[rows]) if rows.any() else expected[rows]
        return expected[:, 0] if self.single_ else expected

    def _fit(self, score: FloatArray, outcome: FloatArray, weight: FloatArray) -> Any:
        few = score.shape[1] <= MOST_KERNEL_SCORES
        if self.method == "kernel" or (self.method == "auto" and few):
            return fit_product_kernel(outcome, score, weight=weight)
        return _Boosted(score, outcome, weight, self.random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True
        return tags


class _Boosted:
    """One gradient boosting machine for each outcome."""

    def __init__(
        self, score: FloatArray, outcome: FloatArray, weight: FloatArray, seed: int | None
    ) -> None:
        self.models = [
            HistGradientBoostingRegressor(
                max_iter=100, learning_rate=0.05, min_samples_leaf=30, random_state=seed
            ).fit(score, column, sample_weight=weight)
            for column in outcome.T
        ]

    def __call__(self, score: FloatArray) -> FloatArray:
        return np.stack([model.predict(score) for model in self.models], axis=1)
