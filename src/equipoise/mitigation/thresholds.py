"""Decision thresholds by group at which marginal outcomes are equal."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from equipoise._checks import check_rng, nearest, quoted
from equipoise._typing import FloatArray, IntArray, Ties
from equipoise.exceptions import ApproximationWarning, InvalidParameterError
from equipoise.mitigation._groups import (
    group_codes,
    known_groups,
    outcome_column,
    score_column,
)
from equipoise.stats.scores.thresholds import equal_margin_thresholds

__all__ = ["MarginalThresholds"]


class MarginalThresholds(BaseEstimator):  # type: ignore[misc]
    """Choose a threshold for each group so that people at it have the same mean outcome.

    Parameters
    ----------
    threshold : float, default 0.5
        The common threshold in use.
    reference : object, optional
        Group that keeps its threshold; by default the overall positive rate is kept.
    labels_below : bool, default False
        Whether outcomes below the threshold are known and may be used.
    ties : {"randomise", "attainable", "error"}
        What to do where many people share a score: accept a share of those at one threshold, which
        keeps the rate in expectation; accept none of them; or raise.
    n_resamples : int, default 200
        Of the bootstrap over clusters that gives the intervals.
    confidence_level : float, default 0.95
        Of the intervals.
    random_state : int, optional
        Of the bootstrap, and of decisions at a threshold that a share of people passes.
    column : int, default 0
        Column of X that has the score; others are not used.

    Attributes
    ----------
    thresholds_ : dict
        New threshold of each group.
    intervals_ : dict
        Its confidence interval, a pair.
    extrapolated_ : dict
        Whether it lies below the old threshold, where no outcome was used.
    outcome_ : float
        Mean outcome at the new thresholds.
    positive_rate_ : tuple of two floats
        Before and after, as `predict_proba_accept` delivers it on the rows of the fit.
    accept_at_ : dict
        Share of people with exactly the threshold that is accepted; 1 where scores hardly repeat.
    bracket_ : dict
        Mean outcome just below the threshold and at it, where scores repeat.

    Notes
    -----
    See `equipoise.stats.scores.thresholds.equal_margin_thresholds`. The standard error of a
    threshold is that of the curve divided by its slope, and often large; read the intervals.

    Examples
    --------
    Group B repays more often at every score. Which thresholds treat marginal people alike?

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group, score = rng.choice(["A", "B"], size=40_000), rng.uniform(size=40_000)
    >>> repaid = (rng.uniform(size=40_000) < 0.1 + 0.7 * score + 0.1 * (group == "B")).astype(int)
    >>> rule = MarginalThresholds(0.5, labels_below=True, n_resamples=50)
    >>> rule = rule.fit(score, repaid, group=group)
    >>> bool(rule.thresholds_["A"] > 0.5 > rule.thresholds_["B"])
    True

    A lower one for B.
    """

    def __init__(
        self,
        threshold: float = 0.5,
        *,
        reference: Any = None,
        labels_below: bool = False,
        ties: Ties = "randomise",
        n_resamples: int = 200,
        confidence_level: float = 0.95,
        random_state: int | None = None,
        column: int = 0,
    ) -> None:
        self.threshold = threshold
        self.reference = reference
        self.labels_below = labels_below
        self.ties = ties
        self.n_resamples = n_resamples
        self.confidence_level = confidence_level
        self.random_state = random_state
        self.column = column

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        group: Any = None,
        cluster: Any = None,
    ) -> Self:
        """Find the thresholds.

        Parameters
        ----------
        X : array of shape (n, d)
            Table with the score in `column`; with `group`, a plain list of scores will do.
        y : array of shape (n,)
            Outcomes; those below the threshold may be NaN unless `labels_below`.
        sample_weight : array of shape (n,), optional
            Sampling weights.
        group : array of shape (n,), optional
            Group of each row; with one group the threshold stays.
        cluster : array of shape (n,), optional
            Who a row belongs to; clusters are resampled.

        Returns
        -------
        MarginalThresholds
        """
        score = score_column(self, X, column=self.column, group=group, reset=True)
        unknown = not self.labels_below and group is not None
        outcome = outcome_column(self, y, missing=unknown)
        check_consistent_length(score, outcome)
        weight = _check_sample_weight(sample_weight, score, ensure_non_negative=True)
        names, codes = group_codes(group, len(score))
        self.groups_ = names
        if len(names) == 1:
            self.thresholds_ = {names[0]: float(self.threshold)}
            self.intervals_ = {names[0]: (float(self.threshold), float(self.threshold))}
            self.extrapolated_ = {names[0]: False}
            self.accept_at_ = {names[0]: 1.0}
            self.bracket_ = {}
            self.outcome_ = None
            rate = float(np.average(score >= self.threshold, weights=weight))
            self.positive_rate_ = (rate, rate)
            return self
        found = equal_margin_thresholds(
            outcome,
            score,
            codes,
            self.threshold,
            reference=self._reference_code(names),
            labels_below=self.labels_below,
            ties=self.ties,
            cluster=cluster,
            weight=weight,
            n_resamples=self.n_resamples,
            confidence_level=self.confidence_level,
            rng=self.random_state,
        )
        self.thresholds_ = dict(zip(names, found.threshold.tolist(), strict=True))
        ends = zip(found.low.tolist(), found.high.tolist(), strict=True)
        self.intervals_ = dict(zip(names, ends, strict=True))
        self.extrapolated_ = dict(zip(names, found.extrapolated.tolist(), strict=True))
        self.outcome_ = found.outcome
        self.positive_rate_ = (found.rate_before, found.rate_after)
        self.accept_at_ = dict(zip(names, found.accept_at.tolist(), strict=True))
        pairs = [tuple(pair) for pair in found.bracket.tolist()]
        self.bracket_ = dict(zip(names, pairs, strict=True))
        if found.n_levels is not None:
            told = ", ".join(
                f"{name!r} {found.bracket[k, 1]:.2g} at {found.threshold[k]:g}"
                f" ({100 * found.accept_at[k]:.3g}% accepted)"
                for k, name in enumerate(names)
            )
            warnings.warn(
                f"Marginal outcomes can only be made nearly equal with {found.n_levels} levels of"
                f" the score: {told}.",
                ApproximationWarning,
                stacklevel=2,
            )
        below = [name for name in names if self.extrapolated_[name]]
        if below:
            warnings.warn(
                f"The thresholds of {quoted(below)} lie below {self.threshold:g}, where no outcome"
                " was used; they extrapolate a line. Test again once outcomes there are known.",
                ApproximationWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any, *, group: Any = None, random_state: int | None = None) -> IntArray:
        """Return 1 where the score reaches the threshold of its group, else 0.

        Of people with exactly the threshold a share is accepted, drawn with `random_state`.

        Parameters
        ----------
        X : array of shape (n, d)
            Table with the score in `column`; with `group`, a plain list of scores will do.
        group : array of shape (n,), optional
            Group of each row; each must have been in the fit.
        random_state : int, optional
            Of the draw; by default that of the estimator.

        Returns
        -------
        array of shape (n,)
        """
        chance = self.predict_proba_accept(X, group=group)
        drawn = check_rng(self.random_state if random_state is None else random_state)
        return (drawn.uniform(size=len(chance)) < chance).astype(np.int64)

    def predict_proba_accept(self, X: Any, *, group: Any = None) -> FloatArray:
        """Return the chance that a row is accepted: 0, 1, or a share at the threshold.

        Parameters
        ----------
        X, group
            As in `predict`.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        score = score_column(self, X, column=self.column, group=group, reset=False)
        codes = known_groups(group, len(score), self.groups_)
        limits = np.array([self.thresholds_[name] for name in self.groups_])[codes]
        share = np.array([self.accept_at_[name] for name in self.groups_])[codes]
        return np.where(score > limits, 1.0, np.where(score == limits, share, 0.0))

    def _reference_code(self, names: list[Any]) -> int | None:
        if self.reference is None:
            return None
        if self.reference not in names:
            hint = nearest(str(self.reference), [str(name) for name in names])
            raise InvalidParameterError(
                f"`reference` must be one of {quoted(names)}; got {self.reference!r}.{hint}"
            )
        return names.index(self.reference)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
