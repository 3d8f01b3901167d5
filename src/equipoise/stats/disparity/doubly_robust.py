r"""Disparity given many or continuous factors: doubly robust, cross-fitted, any learners.

Two regressions replace the strata: of the outcome on the factors, and of membership in the group on
the factors. Each row is predicted by learners fitted to other rows, so that flexible learners do
not bias the result; it stays right if one of the two is learnt well and the other fast enough.

With weights "overlap" the gap is the residual-on-residual coefficient of Robinson (1988) [1]_, the
continuous Mantel-Haenszel estimate; with "group" it is the gap of the group's members to
comparators like them, augmented by inverse probabilities [2]_.

References
----------
.. [1] P. M. Robinson (1988), Root-N-consistent semiparametric regression, Econometrica 56, 931-954.
   doi:10.2307/1912705
.. [2] V. Chernozhukov et al. (2018), Double/debiased machine learning for treatment and structural
   parameters, Econometrics Journal 21, C1-C68. doi:10.1111/ectj.12097
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from equipoise._checks import check_finite, check_integer, check_option
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.disparity.standardised import StudentisedGap, studentised

__all__ = [
    "DoublyRobustGap",
    "DoublyRobustWeights",
    "Nuisances",
    "cross_fit",
    "doubly_robust_disparity_test",
    "doubly_robust_gap",
    "folds",
]

DoublyRobustWeights: TypeAlias = Literal["overlap", "group"]

CLIP = 0.01
"""Chances of membership nearer to 0 or 1 are moved here where they are divided by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nuisances:
    """Predictions for every row by learners fitted to other rows.

    Parameters
    ----------
    outcome : array of shape (n,)
        Expected outcome given the factors, over both groups.
    comparator_outcome : array of shape (n,)
        Expected outcome given the factors, in the comparator.
    membership : array of shape (n,)
        Chance of being in the group given the factors.
    """

    outcome: FloatArray
    comparator_outcome: FloatArray
    membership: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class DoublyRobustGap(StudentisedGap):
    """Gap of a group to comparators alike in the factors.

    Parameters
    ----------
    estimate, se, degrees : float
        As in `StudentisedGap`.
    weights : {"overlap", "group"}
        Whose gap it is.
    membership_auc : float
        How well the factors tell the groups apart; 0.5 is not at all.
    outcome_r2 : float
        Share of the outcome's variance that the factors predict.
    extreme : float
        Share of rows with a chance of membership outside [.01, .99].
    influence : array of shape (n,)
        What each row adds to the error of the estimate.
    """

    weights: DoublyRobustWeights
    membership_auc: float
    outcome_r2: float
    extreme: float
    influence: FloatArray = field(repr=False)

    @property
    def method(self) -> str:
        """Which law the p-value and the interval have."""
        return "doubly robust"

    def __str__(self) -> str:
        """One sentence for people."""
        low, high = self.confidence_interval()
        return (
            f"gap {self.estimate:.4g} ({low:.4g} to {high:.4g}), p = {self.p_value:.3g}; depends "
            f"on the learners (R2 {self.outcome_r2:.2f}, group AUC {self.membership_auc:.2f})"
        )


def doubly_robust_gap(
    y: FloatArray,
    member: FloatArray,
    nuisances: Nuisances,
    *,
    weights: DoublyRobustWeights = "overlap",
    weight: FloatArray | None = None,
    cluster: AnyArray | None = None,
) -> DoublyRobustGap:
    """Estimate the gap from predictions, without fitting anything.

    Parameters
    ----------
    y, member : array of shape (n,)
        Outcome, and 1 for the group.
    nuisances : Nuisances
        Cross-fitted predictions.
    weights : {"overlap", "group"}
        Average over comparable people, or over the group's own members.
    weight, cluster : array of shape (n,), optional
        Sampling weight of a row, and the unit it belongs to.

    Returns
    -------
    DoublyRobustGap
    """
    check_option("weights", weights, DoublyRobustWeights)
    rows = np.ones(len(y)) if weight is None else weight
    e = nuisances.membership
    if weights == "overlap":
        apart, left = member - e, y - nuisances.outcome
        size = float(rows @ apart**2)
        estimate = float(rows @ (apart * left)) / size
        influence = rows * apart * (left - estimate * apart) / size
    else:
        chance = np.clip(e, CLIP, 1.0 - CLIP)
        left = y - nuisances.comparator_outcome
        size = float(rows @ member)
        value = (member - (1.0 - member) * chance / (1.0 - chance)) * left
        estimate = float(rows @ value) / size
        influence = rows * (value - member * estimate) / size
    se, degrees = studentised(influence, cluster)
    variance = np.average((y - np.average(y, weights=rows)) ** 2, weights=rows)
    unpredicted = np.average((y - nuisances.outcome) ** 2, weights=rows)
    return DoublyRobustGap(
        estimate=estimate,
        se=se,
        degrees=degrees,
        weights=weights,
        membership_auc=_auc(e, member),
        outcome_r2=float(1.0 - unpredicted / variance) if variance > 0.0 else 0.0,
        extreme=float(np.average((e < CLIP) | (e > 1.0 - CLIP), weights=rows)),
        influence=influence,
    )


def cross_fit(
    factors: AnyArray,
    y: FloatArray,
    member: FloatArray,
    fold: IntArray,
    *,
    outcome_learner: Any,
    group_learner: Any,
    weight: FloatArray | None = None,
) -> Nuisances:
    """Predict every row by learners fitted to the other folds.

    Parameters
    ----------
    factors : array of shape (n, p)
        Whatever the learners accept; rows are taken by number.
    y, member : array of shape (n,)
        Outcome, and 1 for the group.
    fold : array of shape (n,)
        Fold of each row, from zero.
    outcome_learner, group_learner : scikit-learn estimators
        A regressor or classifier of the outcome, and a classifier of membership. They are copied,
        not changed.
    weight : array of shape (n,), optional
        Passed to ``fit`` as ``sample_weight``.

    Returns
    -------
    Nuisances
    """
    outcome, comparator, chance = np.empty(len(y)), np.empty(len(y)), np.empty(len(y))
    for number in range(int(fold.max()) + 1):
        out = fold == number
        kept = np.flatnonzero(~out)
        others = kept[member[kept] == 0]
        if not 0 < len(others) < len(kept):
            raise GroupTooSmallError(
                f"Fold {number} leaves rows of one group only. Use fewer splits or more rows."
            )
        outcome[out] = _predicted(outcome_learner, factors, y, kept, out, weight)
        comparator[out] = _predicted(outcome_learner, factors, y, others, out, weight)
        chance[out] = _predicted(group_learner, factors, member, kept, out, weight)
    return Nuisances(outcome=outcome, comparator_outcome=comparator, membership=chance)


def folds(n_splits: int, *columns: AnyArray, cluster: AnyArray | None = None) -> IntArray:
    """Fold of each row, by a hash of its place in sorted order: the order of rows does not matter.

    Identical rows are exchangeable and fall into different folds: learners that never saw one of
    them would predict all of them badly.

    Parameters
    ----------
    n_splits : int
        Number of folds, at least two.
    *columns : array of shape (n,)
        All numbers of a row.
    cluster : array of shape (n,), optional
        Unit of each row, which takes the place of the row: rows of one unit stay together.

    Returns
    -------
    array of shape (n,)
    """
    size = check_integer("n_splits", n_splits, low=2)
    if cluster is not None:
        place = np.unique(cluster, return_inverse=True)[1]
    else:
        place = np.empty(len(columns[0]), dtype=np.int64)
        place[np.lexsort(columns[::-1])] = np.arange(len(columns[0]))
    state = _mixed(place.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return np.asarray(state % np.uint64(size)).astype(np.int64)


def _mixed(state: Any) -> Any:
    """Mix the bits of 64-bit integers (the finaliser of splitmix64)."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def _predicted(
    learner: Any,
    factors: AnyArray,
    target: FloatArray,
    fitted: IntArray,
    out: AnyArray,
    weight: FloatArray | None,
) -> FloatArray:
    """Means of the target for the rows `out`, by a copy of the learner fitted to other rows."""
    if target[fitted].min() == target[fitted].max():
        return np.full(int(np.count_nonzero(out)), target[fitted[0]])
    model = deepcopy(learner)
    extra = {} if weight is None else {"sample_weight": weight[fitted]}
    model.fit(factors[fitted], target[fitted], **extra)
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(factors[out]), dtype=np.float64)
    classes = np.asarray(model.classes_, dtype=np.float64)
    return np.asarray(model.predict_proba(factors[out]) @ classes, dtype=np.float64)


def _auc(score: FloatArray, label: FloatArray) -> float:
    """Chance that a member has a higher score than a non-member, ties counted by half."""
    _, code, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2.0)[code]
    n1 = float(label.sum())
    n0 = len(label) - n1
    return float((rank @ label - n1 * (n1 + 1.0) / 2.0) / (n1 * n0))


def doubly_robust_disparity_test(
    y: AnyArray,
    member: AnyArray,
    factors: AnyArray,
    *,
    outcome_learner: Any,
    group_learner: Any,
    weights: DoublyRobustWeights = "overlap",
    n_splits: int = 5,
    weight: AnyArray | None = None,
    cluster: AnyArray | None = None,
) -> DoublyRobustGap:
    """Test whether a group differs from comparators alike in many or continuous factors.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome.
    member : array of bool, shape (n,)
        True for the group, False for its comparator.
    factors : array of shape (n, p)
        Numbers.
    outcome_learner, group_learner : scikit-learn estimators
        A regressor or classifier of the outcome, and a classifier of membership.
    weights : {"overlap", "group"}
        Average over comparable people, or over the group's own members.
    n_splits : int, default 5
        Folds.
    weight, cluster : array of shape (n,), optional
        Sampling weight of a row, and the unit it belongs to; units are never split between folds.

    Returns
    -------
    DoublyRobustGap

    Notes
    -----
    Right if one of the two regressions is learnt well; if both are wrong, so is the gap.

    Examples
    --------
    Pay rises with experience, of which the group has less. Is there a gap at equal experience?

    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> experience = rng.normal(size=(500, 1))
    >>> member = rng.random(500) < 1.0 / (1.0 + np.exp(experience[:, 0]))
    >>> pay = 2.0 * experience[:, 0] + rng.normal(size=500)
    >>> gap = doubly_robust_disparity_test(
    ...     pay, member, experience,
    ...     outcome_learner=LinearRegression(), group_learner=LogisticRegression(),
    ... )
    >>> low, high = gap.confidence_interval()
    >>> low < 0.0 < high
    True

    None is shown.
    """
    outcome = check_finite("y", y, ndim=1)
    side = np.asarray(member).astype(np.bool_).astype(np.float64)
    table = np.asarray(factors)
    if table.ndim != 2 or len({len(outcome), len(side), len(table)}) > 1:
        raise InvalidParameterError(
            "`y`, `member` and `factors` must have one row each for every person; got shapes "
            f"{outcome.shape}, {side.shape} and {table.shape}."
        )
    rows = None if weight is None else check_finite("weight", weight, ndim=1)
    numbers = [*table.T, outcome, side, *([] if rows is None else [rows])]
    nuisances = cross_fit(
        table,
        outcome,
        side,
        folds(n_splits, *numbers, cluster=cluster),
        outcome_learner=outcome_learner,
        group_learner=group_learner,
        weight=rows,
    )
    return doubly_robust_gap(
        outcome, side, nuisances, weights=weights, weight=rows, cluster=cluster
    )
