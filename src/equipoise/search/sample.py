"""What a selection rule is given, and what it hands back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from equipoise._checks import check_finite, nearest, quoted
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.data.metrics import RateMetric, find_metric
from equipoise.exceptions import InvalidParameterError, NotBinaryError

__all__ = [
    "Algorithm",
    "SelectionRule",
    "TrainingSample",
    "Utility",
    "named_utility",
    "utility_parts",
]

Utility: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Decisions about the rows of a sample in, their row quantities (u, w) out."""


class Algorithm(Protocol):
    """A rule that decides about people from their features."""

    @property
    def report(self) -> Mapping[str, Any]:
        """How it was found; JSON-safe."""

    def decide(self, X: AnyArray, *, weight: AnyArray | None = None) -> FloatArray:
        """Return a decision for every row of `X`."""


class SelectionRule(Protocol):
    """A way to choose an algorithm: training sample in, algorithm out."""

    def select(self, sample: "TrainingSample") -> Algorithm:
        """Return the algorithm chosen on the sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSample:
    """Training rows, the status quo on them, and what would be an improvement.

    Parameters
    ----------
    X : array of shape (n, d)
        Features.
    y : array of shape (n,)
        Outcome.
    group : array of shape (n,)
        Group of each row, 0 to G - 1.
    status_quo : array of shape (n,)
        Decisions in use.
    accuracy : callable
        Utility whose value must rise in every group: decisions in, (u, w) out.
    fairness : tuple of callable
        Utilities whose gaps must shrink; by default that of accuracy.
    feature_names : tuple of str
        Names of the columns of `X`.
    weight : array of shape (n,), optional
        Sampling weights.
    names : tuple of str
        Names of the groups.
    capacity : float, optional
        Share of people that may be selected, if that is known.
    metrics : tuple of str
        Names of the utilities, accuracy first, if they have names.
    attributes : tuple of array of shape (n,)
        Where several attributes are judged separately, the group of each row for each of them
        whose gap must shrink; `group` then holds the combinations.

    Examples
    --------
    >>> sample = TrainingSample.from_arrays(
    ...     X=[[0.0], [1.0], [0.0], [1.0]], y=[0, 1, 1, 1], group=[0, 0, 1, 1],
    ...     status_quo=[0, 1, 0, 0], accuracy="accuracy")
    >>> sample.n_groups, sample.feature_names
    (2, ('x0',))
    """

    X: FloatArray
    y: FloatArray
    group: IntArray
    status_quo: FloatArray
    accuracy: Utility
    fairness: tuple[Utility, ...]
    feature_names: tuple[str, ...]
    weight: FloatArray | None = None
    names: tuple[str, ...] = field(default=())
    capacity: float | None = None
    metrics: tuple[str, ...] = field(default=())
    attributes: tuple[IntArray, ...] = field(default=())

    @classmethod
    def from_arrays(
        cls,
        *,
        X: AnyArray | Sequence[Any],
        y: AnyArray | Sequence[Any],
        group: AnyArray | Sequence[Any],
        status_quo: AnyArray | Sequence[Any],
        accuracy: str,
        fairness: str | None = None,
        feature_names: Sequence[str] | None = None,
        weight: AnyArray | None = None,
    ) -> "TrainingSample":
        """Build a sample from arrays and the names of metrics.

        Parameters
        ----------
        X, y, group, status_quo, weight
            As in the class; `group` may hold any labels.
        accuracy, fairness : str
            Names of metrics of decisions, for instance "accuracy" or "selected_outcome".
        feature_names : sequence of str, optional
            By default x0, x1, ...

        Returns
        -------
        TrainingSample
        """
        features = check_finite("X", X, ndim=2)
        outcome = check_finite("y", y, ndim=1)
        labels, code = np.unique(np.asarray(group), return_inverse=True)
        known = tuple(feature_names or (f"x{k}" for k in range(features.shape[1])))
        gain = named_utility(accuracy, outcome)
        return cls(
            X=features,
            y=outcome,
            group=code.astype(np.int64),
            status_quo=check_finite("status_quo", status_quo, ndim=1),
            accuracy=gain,
            fairness=(gain if fairness in (None, accuracy) else named_utility(fairness, outcome),),
            feature_names=known,
            weight=None if weight is None else check_finite("weight", weight, ndim=1),
            names=tuple(str(label) for label in labels),
            metrics=(accuracy, fairness or accuracy),
        )

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group.max()) + 1

    @property
    def criteria(self) -> tuple[tuple[Utility, ...], tuple[int, ...]]:
        """Distinct utilities, accuracy first, and the number of each fairness utility."""
        distinct = [self.accuracy]
        numbers = []
        for utility in self.fairness:
            if utility not in distinct:
                distinct.append(utility)
            numbers.append(distinct.index(utility))
        return tuple(distinct), tuple(numbers)

    def columns(self, forbidden: Sequence[str]) -> IntArray:
        """Return the columns of `X` that may be used."""
        for name in forbidden:
            self.column(name)
        allowed = [k for k, name in enumerate(self.feature_names) if name not in forbidden]
        if not allowed:
            raise InvalidParameterError("every feature is forbidden; at least one must be left.")
        return np.array(allowed, dtype=np.int64)

    def column(self, name: str) -> int:
        """Return the number of a feature."""
        if name not in self.feature_names:
            raise InvalidParameterError(
                f"feature {name!r} is unknown.{nearest(name, self.feature_names)}"
                f" Features: {quoted(self.feature_names)}."
            )
        return self.feature_names.index(name)

    def signs(
        self, columns: IntArray, increasing: Sequence[str], decreasing: Sequence[str]
    ) -> FloatArray:
        """Return +1, -1 or 0 for the columns that must raise, lower or may do both."""
        both = set(increasing) & set(decreasing)
        if both:
            raise InvalidParameterError(
                f"a feature cannot be both increasing and decreasing; {quoted(sorted(both))} is."
            )
        sign = np.zeros(self.X.shape[1])
        sign[[self.column(name) for name in increasing]] = 1.0
        sign[[self.column(name) for name in decreasing]] = -1.0
        return sign[columns]


def named_utility(name: str, y: FloatArray) -> Utility:
    """Return the utility of decisions that a named metric defines, given the outcomes.

    Parameters
    ----------
    name : str
        A metric that depends on the decision.
    y : array of shape (n,)
        Outcomes.

    Returns
    -------
    callable
        Decisions in, (u, w) out.

    Examples
    --------
    Mean outcome among the selected:

    >>> u, w = named_utility("selected_outcome", np.array([3.0, 5.0]))(np.array([0.0, 1.0]))
    >>> u.tolist(), w.tolist()
    ([0.0, 5.0], [0.0, 1.0])
    """
    metric = find_metric(name)
    if metric.name == "selected_outcome":
        return lambda d: (y * d, d)
    if not isinstance(metric, RateMetric):
        raise InvalidParameterError(
            f"metric {name!r} does not depend on the decision, so no algorithm can improve it. Use"
            ' "accuracy", "selected_outcome", "tpr", or an `equipoise.Metric` of the decision.'
        )
    if "y_true" in metric.roles and not np.isin(y, (0.0, 1.0)).all():
        raise NotBinaryError(
            f"metric {name!r} needs outcomes of 0 and 1; got other values. Use"
            ' "selected_outcome" for a real outcome.'
        )
    u, w = np.array(metric.u, dtype=np.float64), np.array(metric.w, dtype=np.float64)
    outcome = y if "y_true" in metric.roles else np.ones_like(y)

    # Combinations are numbered (1, 1), (1, 0), (0, 1), (0, 0).
    selected = (2 * (1 - outcome)).astype(np.int64)
    top, bottom = u[selected], w[selected]
    top_else, bottom_else = u[selected + 1], w[selected + 1]

    def rows(d: FloatArray) -> tuple[FloatArray, FloatArray]:
        # A chance of selection counts as that share of a selected person.
        if ((d < 0.0) | (d > 1.0)).any():
            raise NotBinaryError(
                f"metric {name!r} needs decisions of 0 and 1; got other values. Give a `capacity`,"
                " or a candidate that classifies."
            )
        return d * top + (1.0 - d) * top_else, d * bottom + (1.0 - d) * bottom_else

    return rows


def utility_parts(
    utility: Utility, n: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return u of a row that is not selected, what selecting it adds; the same for w."""
    (u0, w0), (u1, w1) = utility(np.zeros(n)), utility(np.ones(n))
    return u0, u1 - u0, w0, w1 - w0
