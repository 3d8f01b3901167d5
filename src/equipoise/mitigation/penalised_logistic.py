"""Logistic regression that pays for inequality of benefits between groups."""

import numpy as np
from scipy import optimize, special

from equipoise._typing import FloatArray, IntArray
from equipoise.stats.inequality.index import kernel, kernel_slope

__all__ = ["PenalisedLogistic"]

STEEPNESS = 4.0
"""Decisions enter the penalty as sigmoid(4 z): smooth, yet close to the step at z = 0."""

RIDGE = 1e-4


class PenalisedLogistic:
    r"""Minimise log-loss plus a multiple of the between-group part at smoothed decisions.

    Parameters
    ----------
    penalty : float
        :math:`\eta`; zero gives ridge logistic regression.
    matrix : array of shape (2, 2)
        Benefits ``matrix[y_pred][y_true]``.
    order : float
        Of the index.
    """

    def __init__(self, *, penalty: float, matrix: FloatArray, order: float) -> None:
        self.penalty = penalty
        self.matrix = matrix
        self.order = order

    def fit(self, X: FloatArray, y: FloatArray, group: IntArray) -> "PenalisedLogistic":
        """Fit by L-BFGS on standardised features; the group is used here and not in `score`."""
        self.centre_, spread = X.mean(axis=0), X.std(axis=0)
        self.scale_ = np.where(spread > 0.0, spread, 1.0)
        design = np.column_stack([(X - self.centre_) / self.scale_, np.ones(len(X))])
        sign = 2.0 * y - 1.0
        label = y.astype(np.int64)
        base = self.matrix[0, label]
        gain = self.matrix[1, label] - base
        share = np.bincount(group) / len(y)

        def objective(w: FloatArray) -> tuple[float, FloatArray]:
            z = design @ w
            loss = float(np.mean(np.logaddexp(0.0, -sign * z))) + 0.5 * RIDGE * float(w @ w)
            by_z = -sign * special.expit(-sign * z) / len(y)
            decision = special.expit(STEEPNESS * z)
            benefit = base + gain * decision
            mean = float(benefit.mean())
            relative = np.bincount(group, weights=benefit) / (share * len(y)) / mean
            between = float(share @ kernel(relative, self.order))
            by_benefit = (kernel_slope(relative, self.order)[group] - self.order * between) / (
                len(y) * mean
            )
            by_z += self.penalty * by_benefit * gain * STEEPNESS * decision * (1.0 - decision)
            return loss + self.penalty * between, design.T @ by_z + RIDGE * w

        start = np.zeros(design.shape[1])
        self.weights_ = optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}
        ).x
        return self

    def score(self, X: FloatArray) -> FloatArray:
        """Return the probability of outcome 1."""
        design = (X - self.centre_) / self.scale_
        return np.asarray(special.expit(design @ self.weights_[:-1] + self.weights_[-1]))
