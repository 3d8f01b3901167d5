"""Decisions under a ratio of errors, a cap on inequality, or a limit on its between-group part."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, assert_all_finite, column_or_1d, get_tags, indexable
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from equipoise._checks import check_fraction, check_number, check_option, quoted
from equipoise._typing import BoolArray, DecisionKind, EntropyConstraint, FloatArray, GroupUse
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.mitigation.penalised_logistic import PenalisedLogistic
from equipoise.stats.inequality.benefits import SPEICHER, check_matrix
from equipoise.stats.inequality.cap import (
    ThresholdPath,
    allowed_in_sequence,
    between_thresholds,
    cap_shown,
    contrast_shown,
    index_cap,
    kappa_scheme,
    threshold_path,
)
from equipoise.stats.inequality.index import kernel

__all__ = ["EntropyCappedClassifier"]

PENALTIES = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
MOST_CUTS = 2000


class EntropyCappedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Turn probabilities into decisions that keep harmful errors rarer than benign ones.

    `fit` trains `estimator` on one part of the data and chooses the most accurate threshold on the
    other part among those that are shown to satisfy the constraint.

    Parameters
    ----------
    estimator : estimator with `predict_proba`, optional
        By default logistic regression.
    constraint : {"direct", "cap", "between"}
        "direct": :math:`\kappa u < v` itself. "cap": the index of a benefit design below its cap,
        which implies the former and is much stricter. "between": the between-group part of the
        index at most `share` of what it is without a constraint.
    kappa : float, default 1
        How many benign errors a harmful one is worth.
    kind : {"punitive", "assistive"}
        Whether false positives or false negatives are harmful.
    minimum_benefit : float, default 0.1
        Of the benefit design; for "cap".
    order : float, default 1
        Of the index; for "cap" and "between".
    matrix : array of shape (2, 2), optional
        Benefits for "between"; by default ``yhat - y + 1``.
    share : float, default 0.1
        For "between".
    group_use : {"decision", "training"}
        Whether the group may be known when decisions are made: then each group has a threshold.
        Otherwise, for "between", a logistic regression with a penalty is fitted in place of
        `estimator`, and `predict` never sees the group.
    confidence_level : float or None, default 0.95
        Chance that the constraint holds beyond the sample; None takes the held-out rates at face
        value, and then the constraint fails about every other time.
    holdout : float, default 0.25
        Part of the data on which the threshold is chosen.
    random_state : int, default 0
        Of the split.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The second is the positive one.
    estimator_ : estimator
        Fitted on the training part.
    threshold_ : float or None
        People with a probability above it are selected; None where groups have their own.
    thresholds_ : dict
        Group to threshold; empty when one serves all.
    held_out_ : dict
        `fpr`, `fnr`, `accuracy`, `between` (where groups are known) on the held-out part.

    Notes
    -----
    Error rates determine the index, and a threshold on the probability reaches every pair of rates
    that the score can reach; scanning them all is exact. See
    `equipoise.stats.inequality.cap` for the test sequence that allows for having tried many.
    With groups, each has its own constraint at an equal part of the error.

    Examples
    --------
    Release decisions where a false alarm is worth three misses:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=4000)
    >>> X = (y + rng.normal(size=4000))[:, None]
    >>> rule = EntropyCappedClassifier(kappa=3).fit(X, y)
    >>> 3 * rule.held_out_["fpr"] < rule.held_out_["fnr"]
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        constraint: EntropyConstraint = "direct",
        kappa: float = 1.0,
        kind: DecisionKind = "punitive",
        minimum_benefit: float = 0.1,
        order: float = 1.0,
        matrix: Any = None,
        share: float = 0.1,
        group_use: GroupUse = "decision",
        confidence_level: float | None = 0.95,
        holdout: float = 0.25,
        random_state: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.kappa = kappa
        self.kind = kind
        self.minimum_benefit = minimum_benefit
        self.order = order
        self.matrix = matrix
        self.share = share
        self.group_use = group_use
        self.confidence_level = confidence_level
        self.holdout = holdout
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, group: Any = None) -> Self:
        """Train on one part of the rows and choose thresholds on the other.

        Parameters
        ----------
        X : array or frame of shape (n, p)
            Features, as `estimator` takes them.
        y : array of shape (n,)
            Two classes.
        group : array of shape (n,), optional
            Group of each row; "between" needs it. With `group_use="decision"` and another
            constraint, every group gets a threshold that satisfies it.

        Returns
        -------
        EntropyCappedClassifier
        """
        self._check_options(group)
        X, y = indexable(X, column_or_1d(y, warn=True))
        labels = self._labels(y)
        codes = self._codes(group, len(labels))
        rows = np.arange(len(labels))
        train, held = train_test_split(
            rows, test_size=self.holdout, stratify=labels, random_state=self.random_state
        )
        if self.constraint == "between" and self.group_use == "training":
            self._fit_penalised(X, labels, codes, train, held)
            return self
        self.estimator_ = clone(self._base()).fit(
            _safe_indexing(X, train), _safe_indexing(y, train)
        )
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = self.estimator_.n_features_in_
        score = self._score(X)
        if self.constraint == "between":
            self._choose_between(score[held], labels[held], codes[held])
        else:
            self._choose(score[train], score[held], labels, codes, held)
        self._record(score[held], labels[held], codes[held])
        return self

    def decision_function(self, X: Any, *, group: Any = None) -> FloatArray:
        """Return the probability of the positive class less the threshold.

        Parameters
        ----------
        X : array or frame of shape (n, p)
            Features.
        group : array of shape (n,), optional
            Needed when groups have their own thresholds.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self, "thresholds_")
        score = self._score(X)
        if self.threshold_ is not None:
            return np.asarray(score - self.threshold_)
        if group is None:
            raise InvalidParameterError(
                "this rule has a threshold for each group; pass `group` to `predict`."
            )
        labels = np.asarray(group).tolist()
        unseen = sorted({str(g) for g in labels if g not in self.thresholds_})
        if unseen:
            raise DataError(
                f"groups {quoted(unseen)} were not in `fit`; known are {quoted(self.thresholds_)}."
            )
        return np.asarray(score - np.array([self.thresholds_[g] for g in labels]))

    def predict(self, X: Any, *, group: Any = None) -> Any:
        """Return the decisions.

        Parameters
        ----------
        X : array or frame of shape (n, p)
            Features.
        group : array of shape (n,), optional
            Needed when groups have their own thresholds.

        Returns
        -------
        array of shape (n,)
            Labels of `classes_`.
        """
        decisions = self.decision_function(X, group=group) > 0.0
        return self.classes_[decisions.astype(np.int64)]

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _check_options(self, group: Any) -> None:
        check_option("constraint", self.constraint, EntropyConstraint)
        check_option("kind", self.kind, DecisionKind)
        check_option("group_use", self.group_use, GroupUse)
        check_number("kappa", self.kappa, low=1e-9)
        check_fraction("holdout", self.holdout)
        if self.constraint == "between":
            check_number("share", self.share, low=0.0)
            if group is None:
                raise InvalidParameterError(
                    'the constraint "between" is about groups; pass `group` to `fit`.'
                )

    def _labels(self, y: Any) -> FloatArray:
        assert_all_finite(y, input_name="y")
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise InvalidParameterError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        self.classes_, labels = np.unique(np.asarray(y), return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidParameterError("a rule needs both classes in `y`; got 1 class.")
        return np.asarray(labels.astype(np.float64))

    def _codes(self, group: Any, n: int) -> Any:
        if group is None:
            self._groups: list[Any] = [None]
            return np.zeros(n, dtype=np.int64)
        names, codes = np.unique(np.asarray(group), return_inverse=True)
        if len(codes) != n:
            raise InvalidParameterError(
                f"`group` must have one entry for each row; got {len(codes)} for {n} rows."
            )
        self._groups = names.tolist()
        return codes

    def _score(self, X: Any) -> FloatArray:
        if isinstance(self.estimator_, PenalisedLogistic):
            return self.estimator_.score(np.asarray(X, dtype=np.float64))
        return np.asarray(self.estimator_.predict_proba(X)[:, 1])

    def _choose(
        self, train_score: FloatArray, score: FloatArray, labels: FloatArray, codes: Any, held: Any
    ) -> None:
        """Pick the most accurate allowed cut-off, for everybody or for each group."""
        level = self.confidence_level
        by_group = self.group_use == "decision" and self._groups != [None]
        parts = range(len(self._groups)) if by_group else [None]
        if level is not None and by_group:
            level = 1.0 - (1.0 - level) / len(self._groups)
        # A test sequence must be fixed before it meets the held-out people.
        cuts = None if level is None else np.unique(train_score)
        if cuts is not None and len(cuts) > MOST_CUTS:
            cuts = np.quantile(cuts, np.linspace(0.0, 1.0, MOST_CUTS))
        self.thresholds_: dict[Any, float] = {}
        self.threshold_: float | None = None
        for part in parts:
            mine = np.ones(len(score), dtype=bool) if part is None else codes[held] == part
            name = None if part is None else self._groups[part]
            y = labels[held][mine]
            if not 0.0 < y.mean() < 1.0:
                raise DataError(
                    f"group {name!r} has one outcome only among its {len(y)} held-out rows; merge"
                    " it with another."
                )
            path = threshold_path(score[mine], y, cuts)
            shown = self._shown(path, level)
            allowed = shown if level is None else allowed_in_sequence(shown, self.kind)
            cut = float(path.cut[np.argmin(np.where(allowed, path.errors, np.inf))])
            if part is None:
                self.threshold_ = cut
            else:
                self.thresholds_[name] = cut

    def _shown(self, path: ThresholdPath, level: float | None) -> BoolArray:
        if self.constraint == "direct":
            return contrast_shown(path, kappa=self.kappa, kind=self.kind, confidence_level=level)
        scheme = kappa_scheme(
            base_rate=path.n1 / (path.n0 + path.n1),
            kappa=self.kappa,
            kind=self.kind,
            minimum_benefit=self.minimum_benefit,
        )
        cap = index_cap(scheme, order=self.order).cap
        return cap_shown(path, scheme, cap=cap, order=self.order, confidence_level=level)

    def _benefits(self) -> FloatArray:
        return SPEICHER if self.matrix is None else check_matrix(self.matrix, size=2)

    def _choose_between(self, score: FloatArray, y: FloatArray, codes: Any) -> None:
        paths = [threshold_path(score[codes == g], y[codes == g]) for g in range(len(self._groups))]
        limit = self.share * self._between(score > 0.5, y, codes)
        cut, _, _ = between_thresholds(paths, self._benefits(), order=self.order, limit=limit)
        self.threshold_ = None
        self.thresholds_ = dict(zip(self._groups, cut.tolist(), strict=True))

    def _fit_penalised(self, X: Any, y: FloatArray, codes: Any, train: Any, held: Any) -> None:
        """Take the most accurate penalty whose held-out between-group part is small enough."""
        features = np.asarray(X, dtype=np.float64)
        self.n_features_in_ = features.shape[1]
        models = [
            PenalisedLogistic(penalty=penalty, matrix=self._benefits(), order=self.order).fit(
                features[train], y[train], codes[train]
            )
            for penalty in PENALTIES
        ]
        decisions = [model.score(features[held]) > 0.5 for model in models]
        errors = np.array([np.mean(decision != y[held]) for decision in decisions])
        between = np.array(
            [self._between(decision, y[held], codes[held]) for decision in decisions]
        )
        allowed = between <= self.share * between[0]
        best = np.argmin(np.where(allowed, errors, np.inf)) if allowed.any() else between.argmin()
        self.estimator_ = models[int(best)]
        self.threshold_, self.thresholds_ = 0.5, {}
        self._record(self._score(features[held]), y[held], codes[held])

    def _between(self, decision: BoolArray, y: FloatArray, codes: Any) -> float:
        benefit = self._benefits()[decision.astype(np.int64), y.astype(np.int64)]
        share = np.bincount(codes, minlength=len(self._groups)) / len(y)
        total = np.bincount(codes, weights=benefit, minlength=len(self._groups)) / len(y)
        relative = np.where(share > 0.0, total / np.where(share > 0.0, share, 1.0), benefit.mean())
        return float(share @ kernel(relative / benefit.mean(), self.order))

    def _record(self, score: FloatArray, y: FloatArray, codes: Any) -> None:
        if self.threshold_ is None:
            cut = np.array([self.thresholds_[name] for name in self._groups])[codes]
        else:
            cut = np.full(len(score), self.threshold_)
        decision = score > cut
        self.held_out_ = {
            "fpr": float(decision[y == 0].mean()),
            "fnr": float(1.0 - decision[y == 1].mean()),
            "accuracy": float(np.mean(decision == y)),
        }
        if self._groups != [None]:
            self.held_out_["between"] = self._between(decision, y, codes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = get_tags(self._base()).input_tags.sparse
        # Accuracy is given up for the constraint.
        tags.classifier_tags.poor_score = True
        return tags
