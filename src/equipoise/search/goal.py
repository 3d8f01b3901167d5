"""What a linear rule is to reach on the training rows: the terms of (C.5), (C.6) and (P')."""

from dataclasses import dataclass

import numpy as np

from equipoise._typing import FloatArray, SearchObjective
from equipoise.search.sample import TrainingSample, Utility

__all__ = ["Goal", "utility_parts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Requirements and objective of a rule.

    Parameters
    ----------
    objective : {"fairness", "accuracy"}
        Least gap, or most accuracy of group `target`.
    target : int
        Group of the accuracy objective.
    floors : array of shape (G,)
        Accuracy that every group must reach; minus infinity for one that need not.
    widest : array of shape (F,)
        Gap that every fairness utility may have at most.
    tolerance : float
        Gaps up to this are as good as none.
    """

    objective: SearchObjective
    target: int
    floors: FloatArray
    widest: FloatArray
    tolerance: float

    @classmethod
    def of(
        cls,
        sample: TrainingSample,
        *,
        objective: SearchObjective,
        target: int,
        strictness: float,
        tolerance: float,
    ) -> "Goal":
        """Derive the goal from the status quo, to be bettered by `strictness` (iota)."""
        floors = _by_group(sample, sample.accuracy) + strictness
        widest = np.full(len(sample.fairness), np.inf)
        if objective == "accuracy":
            floors[target] = -np.inf
            gaps = [np.ptp(_by_group(sample, utility)) for utility in sample.fairness]
            widest = np.array(gaps) - strictness
        return cls(
            objective=objective, target=target, floors=floors, widest=widest, tolerance=tolerance
        )

    @property
    def least_cost(self) -> float:
        """A cost that no rule can beat."""
        return self.tolerance if self.objective == "fairness" else -np.inf

    def judge(self, accuracy: FloatArray, gaps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return cost and largest violation of the requirements, for many rules at once.

        Parameters
        ----------
        accuracy : array of shape (..., G)
            Accuracy in every group.
        gaps : array of shape (..., F)
            Gap of every fairness utility.

        Returns
        -------
        cost, violation : array of shape (...)
            The violation is positive where a requirement is not met.
        """
        violation = np.maximum(
            (self.floors - accuracy).max(axis=-1), (gaps - self.widest).max(axis=-1)
        )
        if self.objective == "accuracy":
            return -accuracy[..., self.target], violation
        return np.maximum(gaps.max(axis=-1), self.tolerance), violation


def utility_parts(
    utility: Utility, n: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return u of a row that is not selected, what selecting it adds; the same for w."""
    (u0, w0), (u1, w1) = utility(np.zeros(n)), utility(np.ones(n))
    return u0, u1 - u0, w0, w1 - w0


def _by_group(sample: TrainingSample, utility: Utility) -> FloatArray:
    u, w = utility(sample.status_quo)
    rows = [sample.group == g for g in range(sample.n_groups)]
    return np.array([u[r].sum() / w[r].sum() for r in rows])
