"""What a linear rule is to reach on the training rows: the terms of (C.5), (C.6) and (P')."""

from dataclasses import dataclass

import numpy as np

from equipoise._typing import FloatArray, SearchObjective
from equipoise.exceptions import GroupTooSmallError
from equipoise.search.sample import TrainingSample, Utility

__all__ = ["Goal", "utility_by_group", "utility_gaps"]


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
    relaxed : bool
        Whether the objective is the least violation of the requirements instead.
    """

    objective: SearchObjective
    target: int
    floors: FloatArray
    widest: FloatArray
    tolerance: float
    relaxed: bool = False

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
        for utility in (sample.accuracy, *sample.fairness):
            _, w = utility(sample.status_quo)
            known = np.bincount(sample.group, weights=w, minlength=sample.n_groups) > 0
            if not known.all():
                name = (sample.names or [*map(str, range(sample.n_groups))])[int(known.argmin())]
                raise GroupTooSmallError(
                    f"the status quo has no utility in group {name!r} of the training rows: nobody"
                    " there counts for the metric. Merge groups, or choose another metric."
                )
        floors = utility_by_group(sample, sample.accuracy, sample.status_quo) + strictness
        widest = np.full(len(sample.fairness), np.inf)
        if objective == "accuracy":
            floors[target] = -np.inf
            widest = utility_gaps(sample, sample.status_quo) - strictness
        return cls(
            objective=objective, target=target, floors=floors, widest=widest, tolerance=tolerance
        )

    @property
    def least_cost(self) -> float:
        """A cost that no rule can beat."""
        if self.relaxed:
            return 0.0
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
            The violation is positive where a requirement is not met, or is the cost itself.
        """
        violation = np.maximum(
            (self.floors - accuracy).max(axis=-1), (gaps - self.widest).max(axis=-1)
        )
        if self.relaxed:
            return np.maximum(violation, 0.0), np.zeros_like(violation)
        if self.objective == "accuracy":
            return -accuracy[..., self.target], violation
        return np.maximum(gaps.max(axis=-1), self.tolerance), violation


def utility_by_group(sample: TrainingSample, utility: Utility, d: FloatArray) -> FloatArray:
    """Return the utility of decisions `d` in every group; zero where nobody counts."""
    u, w = utility(d)
    top = np.bincount(sample.group, weights=u, minlength=sample.n_groups)
    bottom = np.bincount(sample.group, weights=w, minlength=sample.n_groups)
    return np.asarray(top / np.where(bottom == 0, 1.0, bottom))


def utility_gaps(sample: TrainingSample, d: FloatArray) -> FloatArray:
    """Return the gap between groups in every fairness utility of decisions `d`."""
    values = [utility_by_group(sample, utility, d) for utility in sample.fairness]
    return np.array([np.ptp(value) for value in values])
