"""Calibration of several objectives together, so that every weighted sum keeps parity."""

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import SplineTransformer
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from equipoise._checks import check_integer, check_option
from equipoise._typing import FloatArray, IntArray, MultiObjectiveMethod
from equipoise.exceptions import SmallGroupWarning
from equipoise.mitigation._groups import group_codes, known_groups
from equipoise.stats.scores.calibrators import fit_product_kernel

__all__ = ["MultiObjectiveCalibrator"]

MOST_KERNEL_SCORES = 3
N_KNOTS = 5
FREE, SHRUNK = 10.0, 0.5
"""Standard deviations of coefficients, on the scale of standardised columns: of what groups share,
and of what they have of their own."""


class MultiObjectiveCalibrator(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Replace K scores by the mean outcomes given all of them and the group.

    Calibrating each score by itself does not make a weighted sum mean the same in every group; the
    conditional means :math:`E(Y^k | S_1, \ldots, S_K, G)` do, whatever the weights (Theorem 2 of
    the paper). Estimation error leaves some disparity: test the sum on held-out rows
    (`equipoise.stats.scores.parity.composite_parity_test`).

    Parameters
    ----------
    method : {"auto", "kernel", "boosting", "spline"}
        A product kernel for up to three scores, gradient boosting beyond; or one of them always.
        "spline" fits one regression for all groups, splines of the scores and their products
        (logistic for 0/1 outcomes), from which groups deviate by scores and products that are
        drawn to zero: few rows of a group change little.
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
        own = [k for k, name in enumerate(names) if name not in self.fallback_]
        if self.method == "spline":
            shared = _SharedSplines(score, table, weight, codes, own if len(names) > 1 else [])
            fits: dict[Any, Any] = {name: partial(shared, k) for k, name in enumerate(names)}
        else:
            fits = {
                names[k]: self._fit(score[codes == k], table[codes == k], weight[codes == k])
                for k in own
            }
        if self.fallback_:
            if self.method != "spline":
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


class _SharedSplines:
    """Splines of the scores that all groups share, and deviations of some groups, drawn to zero."""

    def __init__(
        self,
        score: FloatArray,
        outcome: FloatArray,
        weight: FloatArray,
        code: IntArray,
        own: list[int],
    ) -> None:
        self.own = own
        self.mean = np.average(score, axis=0, weights=weight)
        spread = np.sqrt(np.average((score - self.mean) ** 2, axis=0, weights=weight))
        self.spread = np.where(spread > 0.0, spread, 1.0)
        self.splines = SplineTransformer(
            n_knots=N_KNOTS, knots="quantile", extrapolation="linear", include_bias=False
        ).fit(score, sample_weight=weight)
        design = self._design(score, code)
        self.models = [_regression(design, column, weight) for column in outcome.T]

    def __call__(self, code: int, score: FloatArray) -> FloatArray:
        design = self._design(score, np.full(len(score), code))
        return np.stack([_mean(model, design) for model in self.models], axis=1)

    def _design(self, score: FloatArray, code: IntArray) -> FloatArray:
        z = (score - self.mean) / self.spread
        pairs = [z[:, j] * z[:, k] for k in range(z.shape[1]) for j in range(k)]
        plane = np.column_stack([z, *pairs])
        shared = np.column_stack([self.splines.transform(score), plane])
        own = np.column_stack([np.ones(len(z)), plane])
        deviations = [SHRUNK * own * (code == k)[:, None] for k in self.own]
        return np.column_stack([FREE * shared, *deviations])


def _regression(design: FloatArray, y: FloatArray, weight: FloatArray) -> Any:
    """Return a fitted model of the mean; logistic where outcomes are 0 and 1."""
    values = set(y[weight > 0.0].tolist())
    if values == {0.0, 1.0}:
        return LogisticRegression(max_iter=2_000).fit(design, y, sample_weight=weight)
    return Ridge().fit(design, y, sample_weight=weight)


def _mean(model: Any, design: FloatArray) -> FloatArray:
    if isinstance(model, LogisticRegression):
        return np.asarray(model.predict_proba(design)[:, 1])
    return np.asarray(model.predict(design))
