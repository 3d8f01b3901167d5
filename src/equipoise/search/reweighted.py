"""A search that scales: logistic rules with reweighted rows, each swept over cut-offs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import optimize, special
from sklearn.base import BaseEstimator

from equipoise._checks import check_fraction, check_number
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import EstimationError, InvalidParameterError
from equipoise.search.sample import TrainingSample, Utility
from equipoise.search.sweep import ThresholdSweep, status_quo_directions
from equipoise.stats.improvement.capacity import select_top

__all__ = ["LinearAlgorithm", "ReweightedRule"]

N_CUTOFFS = 99


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAlgorithm:
    """Select where a linear index is high.

    Parameters
    ----------
    coefficients : array of shape (d,)
        One for each feature; zero for forbidden ones.
    intercept : float
        Added to the index.
    capacity : float, optional
        Select this share of the rows at hand instead of those with a non-negative index.
    report : mapping
        How it was found.
    """

    coefficients: FloatArray
    intercept: float
    capacity: float | None = None
    report: Mapping[str, Any] = field(default_factory=dict)

    def decide(self, X: AnyArray, *, weight: AnyArray | None = None) -> FloatArray:
        """Return 1 for the selected rows of `X` and 0 for the others."""
        score = self.score(X)
        if self.capacity is not None:
            return select_top(score, self.capacity, weight=weight).astype(np.float64)
        return (score >= 0).astype(np.float64)

    def score(self, X: AnyArray) -> FloatArray:
        """Return the index."""
        index: FloatArray = np.asarray(X, dtype=np.float64) @ self.coefficients + self.intercept
        return index


class ReweightedRule(BaseEstimator):  # type: ignore[misc]
    r"""Search linear rules by logistic regression on reweighted rows.

    Selecting row i changes the accuracy of its group by :math:`(u_1-u_0) - U_{0g}(w_1-w_0)` to
    first order, and the gap by the same expression of the fairness utility. A weighted sum of the
    two, with weights that favour one group or fairness, says whether the row should be selected
    (its sign) and how much that matters (its size): a weighted classification problem. Logistic
    regressions for a grid of weights give scores; every score is cut wherever the smallest z of
    all requirements on the training rows is largest, and the best of all is kept.

    Parameters
    ----------
    capacity : float, optional
        Share of people to select, always met; without it the cut-off is free.
    penalty : float
        Ridge penalty of standardised coefficients, per unit of total weight.
    increasing, decreasing : sequence of str
        Features that may only raise or only lower the index.
    forbidden : sequence of str
        Features that may not be used.

    Notes
    -----
    Not one of the searches of [1]_, whose mixed-integer programs (`LinearRule`) are exact but
    limited to about a hundred rows. The test is valid whatever the search.

    References
    ----------
    .. [1] E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the
       fairness-improvability of algorithms. doi:10.48550/arXiv.2405.04816

    Examples
    --------
    Is there a linear rule that is right more often than a coin, and more evenly?

    >>> rng = np.random.default_rng(1)
    >>> X, group = rng.normal(size=(500, 2)), rng.integers(2, size=500)
    >>> y = (X[:, 0] + 0.5 * rng.normal(size=500) > 0).astype(float)
    >>> coin = np.where(group == 0, rng.integers(2, size=500), 0.0)
    >>> sample = TrainingSample.from_arrays(
    ...     X=X, y=y, group=group, status_quo=coin, accuracy="accuracy")
    >>> algorithm = ReweightedRule().select(sample)
    >>> bool((algorithm.decide(X) == y).mean() > 0.8)
    True
    """

    def __init__(
        self,
        *,
        capacity: float | None = None,
        penalty: float = 1e-4,
        increasing: Sequence[str] = (),
        decreasing: Sequence[str] = (),
        forbidden: Sequence[str] = (),
    ) -> None:
        self.capacity = capacity
        self.penalty = penalty
        self.increasing = increasing
        self.decreasing = decreasing
        self.forbidden = forbidden

    def select(self, sample: TrainingSample) -> LinearAlgorithm:
        """Return the rule with the largest smallest z on the training sample.

        Parameters
        ----------
        sample : TrainingSample
            Training rows.

        Returns
        -------
        LinearAlgorithm
            Its report has the training z, the grid point, and how many fits were compared.

        Raises
        ------
        EstimationError
            If no rule gives every group a defined utility.
        """
        ridge = check_number("penalty", self.penalty, low=0.0)
        columns = sample.columns(self.forbidden)
        signs = sample.signs(columns, self.increasing, self.decreasing)
        centre, spread = sample.X[:, columns].mean(axis=0), sample.X[:, columns].std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        X = np.column_stack([np.ones(len(sample.y)), (sample.X[:, columns] - centre) / spread])
        bounds = [(None, None)] + [
            (0.0 if sign > 0 else None, 0.0 if sign < 0 else None) for sign in signs
        ]
        counts = self._counts(len(sample.y))
        sweep = ThresholdSweep.of(sample)
        best, chosen = -np.inf, None
        beta = np.zeros(X.shape[1])
        fits = 0
        for tilt, mix, gain in _gains(sample):
            beta = _weighted_logit(X, gain, bounds, ridge, start=beta)
            score = X @ beta
            z = sweep.worst_z(score, counts)
            fits += 1
            k = int(np.argmax(z))
            if z[k] > best:
                best, chosen = float(z[k]), (beta, int(counts[k]), score, tilt, mix)
        if chosen is None:
            raise EstimationError(
                "no linear rule selects people in every group, so no utility is defined. Raise the"
                " capacity, or merge groups."
            )
        beta, k, score, tilt, mix = chosen
        coefficients = np.zeros(sample.X.shape[1])
        coefficients[columns] = beta[1:] / spread
        ordered = np.sort(score)[::-1]
        cut = float(ordered[k - 1] if k == len(ordered) else (ordered[k - 1] + ordered[k]) / 2)
        return LinearAlgorithm(
            coefficients=coefficients,
            intercept=float(beta[0] - centre @ (beta[1:] / spread)) - cut,
            capacity=self.capacity,
            report={
                "rule": "ReweightedRule",
                "training_z": best,
                "group_tilt": tilt,
                "fairness_weight": mix,
                "fits": fits,
            },
        )

    def _counts(self, n: int) -> IntArray:
        if self.capacity is None:
            return np.unique(np.round(np.linspace(0.01, 0.99, N_CUTOFFS) * n).clip(1)).astype(
                np.int64
            )
        k = int(np.floor(check_fraction("capacity", self.capacity) * n + 1e-9))
        if k == 0:
            raise InvalidParameterError(
                f"a capacity of {self.capacity:g} selects nobody among {n} rows; raise it."
            )
        return np.array([k], dtype=np.int64)


def _gains(sample: TrainingSample) -> Iterator[tuple[float, float, FloatArray]]:
    """Yield what selecting each row is worth, for a grid of group and fairness weights."""
    accuracy = _marginal_gain(sample.accuracy, sample)
    toward = np.zeros((len(sample.fairness), sample.n_groups))
    change = np.zeros(len(sample.y))
    for k, (utility, (high, low)) in enumerate(
        zip(sample.fairness, status_quo_directions(sample), strict=True)
    ):
        toward[k, low], toward[k, high] = 1.0, -1.0
        change += toward[k][sample.group] * _marginal_gain(utility, sample)
    side = toward[0][sample.group]
    weight = 1.0 if sample.weight is None else sample.weight
    # A free direction first: its fit is the start of the others.
    for mix in (0.0, 0.5, 1.0, 2.0):
        for tilt in (0.0, 0.5, 1.0, -0.5, -1.0):
            yield tilt, mix, weight * (np.exp(tilt * side) * accuracy + mix * change)


def _marginal_gain(utility: Utility, sample: TrainingSample) -> FloatArray:
    """First-order change of a group's utility when a row is selected, for groups of mean size."""
    n = len(sample.y)
    u, w = utility(sample.status_quo)
    (u0, w0), (u1, w1) = utility(np.zeros(n)), utility(np.ones(n))
    gain = np.zeros(n)
    for g in range(sample.n_groups):
        rows = sample.group == g
        total = float(w[rows].sum())
        value = float(u[rows].sum()) / total if total else 0.0
        change = (u1 - u0)[rows] - value * (w1 - w0)[rows]
        gain[rows] = change / total if total else change
    scale = float(np.abs(gain).mean())
    return gain / scale if scale else gain


def _weighted_logit(
    X: FloatArray,
    gain: FloatArray,
    bounds: list[tuple[float | None, float | None]],
    ridge: float,
    *,
    start: FloatArray,
) -> FloatArray:
    """Logistic regression of the sign of the gain, weighted by its size, within bounds."""
    weight = np.abs(gain) / max(float(np.abs(gain).sum()), np.finfo(float).tiny)
    sign = np.where(gain > 0, 1.0, -1.0)
    shrink = np.full(X.shape[1], ridge)
    shrink[0] = 0.0

    def loss(beta: FloatArray) -> tuple[float, FloatArray]:
        margin = sign * (X @ beta)
        slope = -sign * weight * special.expit(-margin)
        value = float(weight @ np.logaddexp(0.0, -margin) + shrink @ beta**2 / 2)
        return value, X.T @ slope + shrink * beta

    fit = optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200}
    )
    return np.asarray(fit.x, dtype=np.float64)
