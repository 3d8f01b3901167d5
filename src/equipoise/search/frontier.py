r"""Whole paths of candidates between accuracy and a smaller gap.

Selecting a row changes accuracy by :math:`a = \Delta u - U_0 \Delta w` and the signed gap between
the groups i and j that the status quo favours most and least by :math:`f`, both to first order. By
the lemma of Neyman and Pearson the rules that trade one against the other best select where
:math:`E[a \mid x] - \lambda E[f \mid x]` is high. `FrontierRule` estimates the two expectations
once and so has the whole path; `ReweightedEstimator` fits one model for each :math:`\lambda`, whose
score predicts no group; `FeaturePath` leaves features out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from equipoise._checks import check_integer
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError
from equipoise.search.sample import Algorithm, TrainingSample, Utility, utility_parts
from equipoise.search.sweep import status_quo_directions
from equipoise.search.top_share import fit_estimator, score_of
from equipoise.stats.improvement.capacity import cut_top_share, select_top

__all__ = ["FeaturePath", "FrontierRule", "ReweightedEstimator", "ScoreAlgorithm"]

MAX_CLASSES = 12
"""Different values up to which an expectation is a sum over classes."""
MAX_ROWS = 40_000
"""Rows on which the weights of the gap are looked for."""
DOUBLINGS = 6
BISECTIONS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAlgorithm:
    """Select where a function of the features is high.

    Parameters
    ----------
    parts : tuple of (object, array)
        Fitted models and the values of their classes; without values, a model's own score.
    factors : tuple of float
        What each expectation is multiplied with before they are added.
    columns : array of int
        Features that are used.
    capacity : float, optional
        Select this share of the rows at hand instead of those with a positive score.
    threshold : float
        Score above which people are selected without a capacity.
    report : mapping
        How it was found.
    """

    parts: tuple[tuple[Any, FloatArray | None], ...]
    factors: tuple[float, ...]
    columns: IntArray
    capacity: float | None = None
    threshold: float = 0.0
    report: Mapping[str, Any] = field(default_factory=dict)

    def decide(self, X: AnyArray, *, weight: AnyArray | None = None) -> FloatArray:
        """Return 1 for the selected rows of `X` and 0 for the others."""
        score = self.score(X)
        if self.capacity is not None:
            return select_top(score, self.capacity, weight=weight).astype(np.float64)
        return (score > self.threshold).astype(np.float64)

    def score(self, X: AnyArray) -> FloatArray:
        """Return the score that is cut."""
        features = np.asarray(X, dtype=np.float64)[:, self.columns]
        total = np.zeros(len(features))
        for (model, values), factor in zip(self.parts, self.factors, strict=True):
            if factor:
                total += factor * _expectation(model, values, features)
        return total


def _expectation(model: Any, values: FloatArray | None, X: FloatArray) -> FloatArray:
    if values is None:
        return score_of(model, X)
    expected: FloatArray = np.asarray(model.predict_proba(X), dtype=np.float64) @ values
    return expected


def _fitted_expectation(
    estimator: Any, X: FloatArray, target: FloatArray, weight: FloatArray | None
) -> tuple[Any, FloatArray | None]:
    """Fit E[target | x]: by classes where the target has few values, else by regression."""
    values, code = np.unique(target, return_inverse=True)
    if not is_classifier(estimator):
        return fit_estimator(estimator, X, target, weight), None
    if len(values) > MAX_CLASSES:
        raise InvalidParameterError(
            f"{type(estimator).__name__} classifies, and what is to be predicted has {len(values)}"
            " different values; pass a regressor."
        )
    model = fit_estimator(estimator, X, code, weight)
    return model, values[np.asarray(model.classes_, dtype=np.int64)]


def _gains(sample: TrainingSample) -> tuple[FloatArray, FloatArray]:
    """What selecting a row adds to accuracy, and to the signed gaps, to first order."""
    weight = np.ones(len(sample.y)) if sample.weight is None else sample.weight
    accuracy = _change(sample.accuracy, sample, weight, np.zeros(len(sample.y), dtype=np.int64))
    gap = np.zeros(len(sample.y))
    for group in sample.attributes or (sample.group,):
        seen = replace(sample, group=group)
        for utility, (high, low) in zip(sample.fairness, status_quo_directions(seen), strict=True):
            side = np.where(group == high, 1.0, np.where(group == low, -1.0, 0.0))
            gap += side * _change(utility, sample, weight, group)
    return accuracy, gap


def _change(
    utility: Utility, sample: TrainingSample, weight: FloatArray, group: IntArray
) -> FloatArray:
    """First-order change of the utility of a row's group, times the number of rows."""
    n = len(sample.y)
    _, du, _, dw = utility_parts(utility, n)
    u, w = utility(sample.status_quo)
    size = int(group.max()) + 1
    top, bottom = (np.bincount(group, weights=q * weight, minlength=size) for q in (u, w))
    bottom = np.where(bottom == 0, 1.0, bottom)
    change: FloatArray = (du - (top / bottom)[group] * dw) * (weight.sum() / bottom)[group]
    return change


def _names(name: str, n: int) -> list[str]:
    """Name the candidates of a path alike in every split, where their weights differ."""
    return [f"{name} {k} of {n}" for k in range(1, n + 1)]


class FrontierRule(BaseEstimator):  # type: ignore[misc]
    r"""Candidates along the frontier of accuracy and the gap, from two fits.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor
        Fitted to what selecting a person adds to accuracy, and to the gap.
    lambdas : int or sequence of float, default 30
        How many candidates, up to the one without a gap on the training rows; or the weights of
        the gap.
    capacity : float, optional
        Share of people to select; by default that of the audit.
    forbidden : sequence of str
        Features that may not be used.

    Notes
    -----
    The group is used to build the score, not to decide; the score contains a prediction of it, and
    the result says so. The group must not be among the features.

    References
    ----------
    .. [1] A. Agarwal, A. Beygelzimer, M. Dudik, J. Langford and H. Wallach (2018), A reductions
       approach to fair classification. https://doi.org/10.48550/arXiv.1803.02453

    Examples
    --------
    Income stands for group and for repayment. What does the path trade?

    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(1)
    >>> group = rng.integers(2, size=4000)
    >>> X = np.column_stack([rng.normal(size=4000), rng.normal(size=4000) + group])
    >>> y = (X.sum(axis=1) + rng.normal(size=4000) > 0.5).astype(float)
    >>> sample = TrainingSample.from_arrays(
    ...     X=X, y=y, group=group, status_quo=(X.sum(axis=1) > 0.5).astype(float),
    ...     accuracy="accuracy", fairness="selection_rate")
    >>> path = FrontierRule(LogisticRegression(), lambdas=3).path(sample)
    >>> for algorithm in path.values():
    ...     d = algorithm.decide(X)
    ...     print(round(np.mean(d == y), 2), round(d[group == 1].mean() - d[group == 0].mean(), 2))
    0.79 0.18
    0.75 0.09
    0.7 -0.0
    """

    def __init__(
        self,
        estimator: Any,
        *,
        lambdas: int | Sequence[float] = 30,
        capacity: float | None = None,
        forbidden: Sequence[str] = (),
    ) -> None:
        self.estimator = estimator
        self.lambdas = lambdas
        self.capacity = capacity
        self.forbidden = forbidden

    def path(self, sample: TrainingSample, name: str = "FrontierRule") -> dict[str, Algorithm]:
        """Return the candidates by name.

        Parameters
        ----------
        sample : TrainingSample
            Training rows.
        name : str
            What their names begin with.

        Returns
        -------
        dict of str to ScoreAlgorithm
        """
        columns = sample.columns(self.forbidden)
        X = sample.X[:, columns]
        accuracy, gap = _gains(sample)
        parts = tuple(
            _fitted_expectation(self.estimator, X, target, sample.weight)
            for target in (accuracy, gap)
        )
        expected = [_expectation(model, values, X) for model, values in parts]
        share = self.capacity if self.capacity is not None else sample.capacity
        if isinstance(self.lambdas, (int, np.integer)):
            n = check_integer("lambdas", self.lambdas, low=1)
            weights = _even_weights(n, expected[0], expected[1], gap, share, sample.weight)
        else:
            weights = [float(v) for v in self.lambdas]
        return {
            label: ScoreAlgorithm(
                parts=parts,
                factors=(1.0, -value),
                columns=columns,
                capacity=share,
                report={"rule": "FrontierRule", "lambda": value, "group_proxy": True},
            )
            for label, value in zip(_names(name, len(weights)), weights, strict=True)
        }

    def select(self, sample: TrainingSample) -> Algorithm:
        """Return the last candidate of the path, that with the smallest gap in training.

        Parameters
        ----------
        sample : TrainingSample
            Training rows.

        Returns
        -------
        ScoreAlgorithm
        """
        return list(self.path(sample).values())[-1]


def _even_weights(
    n: int,
    accuracy: FloatArray,
    gap: FloatArray,
    row_gap: FloatArray,
    share: float | None,
    weight: FloatArray | None,
) -> list[float]:
    """Return n weights that shrink the signed gap on the training rows in even steps, to zero."""
    step = max(len(gap) // MAX_ROWS, 1)
    accuracy, gap, row_gap = accuracy[::step], gap[::step], row_gap[::step]
    mass = np.ones(len(gap)) if weight is None else weight[::step]

    def remaining(value: float) -> float:
        score = accuracy - value * gap
        chosen = (
            (score > 0.0).astype(np.float64)
            if share is None
            else cut_top_share(score, share, weight=mass).chance
        )
        return float((mass * chosen * row_gap).sum())

    high = _scale(accuracy, gap)
    for _ in range(DOUBLINGS):
        if remaining(high) <= 0.0:
            break
        high *= 2.0
    start = remaining(0.0)
    found = []
    low = 0.0
    for k in range(1, n + 1):
        target, top = start * (1.0 - k / n), high
        for _ in range(BISECTIONS):
            middle = (low + top) / 2.0
            low, top = (middle, top) if remaining(middle) > target else (low, middle)
        found.append(top)
    return found


def _scale(accuracy: FloatArray, gap: FloatArray) -> float:
    """Return the weight at which gap and accuracy count alike."""
    return float(np.abs(accuracy).mean() / max(np.abs(gap).mean(), 1e-12))


def _adaptive_path(
    n: int,
    scale: float,
    start: float,
    fitted: Callable[[float], ScoreAlgorithm],
    remaining: Callable[[ScoreAlgorithm], float],
) -> list[ScoreAlgorithm]:
    """Fit n weights between zero and about the one at which the signed gap vanishes."""
    known: dict[float, tuple[float, ScoreAlgorithm | None]] = {0.0: (start, None)}
    value = scale / 2.0
    for k in range(n):
        algorithm = fitted(value)
        known[value] = (remaining(algorithm), algorithm)
        weights = sorted(known)
        over = [w for w in weights[1:] if known[w][0] <= 0.0]
        if k + 1 < max(n // 3, 1):
            below = max(w for w in weights if not over or w < over[0])
            value = (below + over[0]) / 2.0 if over else 2.0 * below
            continue
        last = weights.index(over[0]) if over else len(weights) - 1
        steps = list(pairwise(weights[: last + 1]))
        low, high = max(steps, key=lambda step: abs(known[step[0]][0] - known[step[1]][0]))
        value = (low + high) / 2.0
    return [found for _, found in (known[w] for w in sorted(known)) if found is not None]


class ReweightedEstimator(BaseEstimator):  # type: ignore[misc]
    r"""Candidates from one reweighted fit for each weight of the gap.

    Whether to select a person is a classification with label :math:`1\{v > 0\}` and weight
    :math:`|v|`, where :math:`v = a - \lambda f` is what selecting that person is worth. Any
    classifier whose `fit` takes `sample_weight` will do, with its constraints (monotone ones, say);
    its score predicts no group.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Fitted once for each weight.
    lambdas : int or sequence of float, default 10
        How many candidates, up to about the one without a gap on the training rows; or the weights
        of the gap.
    capacity : float, optional
        Share of people to select; by default that of the audit.
    forbidden : sequence of str
        Features that may not be used.

    Notes
    -----
    The first third of the fits looks for the weight at which the gap vanishes on the training rows:
    beyond it the gap grows again, in the other direction. Each of the others halves the step with
    the largest change of the gap.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(1)
    >>> group = rng.integers(2, size=4000)
    >>> X = np.column_stack([rng.normal(size=4000), rng.normal(size=4000) + group])
    >>> y = (X.sum(axis=1) + rng.normal(size=4000) > 0.5).astype(float)
    >>> sample = TrainingSample.from_arrays(
    ...     X=X, y=y, group=group, status_quo=(X.sum(axis=1) > 0.5).astype(float),
    ...     accuracy="accuracy", fairness="selection_rate")
    >>> path = ReweightedEstimator(LogisticRegression(), lambdas=[0.0, 0.2]).path(sample)
    >>> gaps = [np.diff([a.decide(X)[group == g].mean() for g in (0, 1)])[0] for a in path.values()]
    >>> bool(gaps[1] < gaps[0])
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        lambdas: int | Sequence[float] = 10,
        capacity: float | None = None,
        forbidden: Sequence[str] = (),
    ) -> None:
        self.estimator = estimator
        self.lambdas = lambdas
        self.capacity = capacity
        self.forbidden = forbidden

    def path(
        self, sample: TrainingSample, name: str = "ReweightedEstimator"
    ) -> dict[str, Algorithm]:
        """Return the candidates by name.

        Parameters
        ----------
        sample : TrainingSample
            Training rows.
        name : str
            What their names begin with.

        Returns
        -------
        dict of str to ScoreAlgorithm
        """
        columns = sample.columns(self.forbidden)
        X = sample.X[:, columns]
        accuracy, gap = _gains(sample)
        mass = np.ones(len(gap)) if sample.weight is None else sample.weight
        share = self.capacity if self.capacity is not None else sample.capacity

        def fitted(value: float) -> ScoreAlgorithm:
            worth = accuracy - value * gap
            model = fit_estimator(
                self.estimator, X, (worth > 0).astype(np.int64), mass * np.abs(worth)
            )
            return ScoreAlgorithm(
                parts=((model, None),),
                factors=(1.0,),
                columns=columns,
                capacity=share,
                threshold=0.5 if hasattr(model, "predict_proba") else 0.0,
                report={"rule": "ReweightedEstimator", "lambda": value},
            )

        def remaining(algorithm: ScoreAlgorithm) -> float:
            decided = algorithm.decide(sample.X, weight=sample.weight)
            return float((mass * decided * gap).sum())

        if isinstance(self.lambdas, (int, np.integer)):
            n = check_integer("lambdas", self.lambdas, low=1)
            start = float((mass * sample.status_quo * gap).sum())
            path = _adaptive_path(n, _scale(accuracy, gap), start, fitted, remaining)
        else:
            path = [fitted(float(v)) for v in self.lambdas]
        return dict(zip(_names(name, len(path)), path, strict=True))

    def select(self, sample: TrainingSample) -> Algorithm:
        """Return the last candidate of the path, that with the largest weight of the gap.

        Parameters
        ----------
        sample : TrainingSample
            Training rows.

        Returns
        -------
        ScoreAlgorithm
        """
        return list(self.path(sample).values())[-1]


class FeaturePath(BaseEstimator):  # type: ignore[misc]
    """Candidates that leave features out, those first in which the groups differ most.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor
        Fitted to the outcome with ever fewer features.
    max_left_out : int, default 5
        Features to leave out at most; at least one is kept.
    capacity : float, optional
        Share of people to select; by default that of the audit.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(1)
    >>> group = rng.integers(2, size=400)
    >>> X = np.column_stack([rng.normal(size=400), rng.normal(size=400) + group])
    >>> y = (X.sum(axis=1) > 0.5).astype(float)
    >>> sample = TrainingSample.from_arrays(
    ...     X=X, y=y, group=group, status_quo=y, accuracy="accuracy",
    ...     feature_names=["skill", "postcode"])
    >>> list(FeaturePath(LogisticRegression()).path(sample))
    ['FeaturePath without postcode']
    """

    def __init__(
        self, estimator: Any, *, max_left_out: int = 5, capacity: float | None = None
    ) -> None:
        self.estimator = estimator
        self.max_left_out = max_left_out
        self.capacity = capacity

    def path(self, sample: TrainingSample, name: str = "FeaturePath") -> dict[str, Algorithm]:
        """Return the candidates by name.

        Parameters
        ----------
        sample : TrainingSample
            Training rows.
        name : str
            What their names begin with.

        Returns
        -------
        dict of str to ScoreAlgorithm
        """
        most = check_integer("max_left_out", self.max_left_out, low=1)
        group = sample.attributes[0] if sample.attributes else sample.group
        high, low = status_quo_directions(replace(sample, group=group))[0]
        first, second = (sample.X[group == g] for g in (high, low))
        spread = np.sqrt((first.var(axis=0) + second.var(axis=0)) / 2.0)
        apart = np.abs(first.mean(axis=0) - second.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        order = np.argsort(-apart, kind="stable")
        share = self.capacity if self.capacity is not None else sample.capacity
        found: dict[str, Algorithm] = {}
        for k in range(1, min(most, len(order) - 1) + 1):
            columns = np.sort(order[k:]).astype(np.int64)
            model = fit_estimator(self.estimator, sample.X[:, columns], sample.y, sample.weight)
            gone = ", ".join(sample.feature_names[j] for j in order[:k])
            found[f"{name} without {gone}"] = ScoreAlgorithm(
                parts=((model, None),),
                factors=(1.0,),
                columns=columns,
                capacity=share,
                threshold=0.5,
                report={"rule": "FeaturePath", "left_out": gone},
            )
        if not found:
            raise InvalidParameterError(
                "a feature can be left out only where there are at least two; there is one."
            )
        return found

    def select(self, sample: TrainingSample) -> Algorithm:
        """Return the candidate that leaves the first feature out.

        Parameters
        ----------
        sample : TrainingSample
            Training rows.

        Returns
        -------
        ScoreAlgorithm
        """
        return next(iter(self.path(sample).values()))
