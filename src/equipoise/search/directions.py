"""A good linear rule from many random directions, for the exact search to start from.

A program needs minutes to find a rule that a thousand random directions contain; what it alone can
do is prove that there is no better one.
"""

import time
from dataclasses import dataclass

import numpy as np

from equipoise._typing import FloatArray, IntArray
from equipoise.search.goal import Goal
from equipoise.search.rule_space import RuleSpace
from equipoise.search.sample import utility_parts

__all__ = ["best_direction"]

ROUNDS = 60
"""Rounds where every direction is judged at all cuts; ten times as many where at one."""
DIRECTIONS = 500
KEPT = 10


def best_direction(
    space: RuleSpace, goal: Goal, *, deadline: float, rng: np.random.Generator
) -> tuple[FloatArray, float] | None:
    """Search directions at random, then near the best, and cut each where it serves the goal best.

    Parameters
    ----------
    space : RuleSpace
        Rules to choose from.
    goal : Goal
        What to reach.
    deadline : float
        When to stop, on the clock of `time.monotonic`.
    rng : numpy.random.Generator
        Source of directions.

    Returns
    -------
    beta : array of shape (d + 1,)
        Coefficients of the best rule that meets all requirements; absolute values at most 1.
    cost : float
        What it achieves. `None` instead of both if no rule was found.
    """
    n, width = space.X.shape
    if space.n_selected is not None and not 0 < space.n_selected < n:
        return None
    cuts = _Cuts.of(space, goal)
    signs = space.signs[1:]
    kept = np.empty((0, width))
    rank = np.empty((0, 2))
    for _ in range(ROUNDS if space.n_selected is None else 10 * ROUNDS):
        step = rng.normal(size=(DIRECTIONS, width - 1))
        if len(kept):
            near = rng.integers(0, len(kept), DIRECTIONS // 2)
            size = 10.0 ** rng.uniform(-3.0, 0.0, (len(near), 1))
            step[: len(near)] = kept[near, 1:] + size * step[: len(near)]
        step = np.where(signs * step < 0.0, 0.0, step)
        step /= np.maximum(np.abs(step).max(axis=1, keepdims=True), np.finfo(float).tiny)
        beta, found = cuts.best(step)
        kept, rank = np.concatenate([kept, beta]), np.concatenate([rank, found])
        best = np.lexsort(rank.T[::-1])[:KEPT]
        kept, rank = kept[best], rank[best]
        if tuple(rank[0]) <= (0.0, goal.least_cost) or time.monotonic() > deadline:
            break
    if rank[0, 0] > 0.0:
        return None
    return kept[0], float(rank[0, 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cuts:
    """Sums that give the utilities of all rules "select the k highest scores"."""

    nobody: FloatArray
    change: FloatArray
    fairness: tuple[int, ...]
    space: RuleSpace
    goal: Goal

    @classmethod
    def of(cls, space: RuleSpace, goal: Goal) -> "_Cuts":
        sample = space.sample
        utilities, fairness = sample.criteria
        member = (sample.group[:, None] == np.arange(sample.n_groups)).astype(float)
        nobody, change = [], []
        for utility in utilities:
            u0, du, w0, dw = utility_parts(utility, len(sample.y))
            nobody += [u0 @ member, w0 @ member]
            change += [du[:, None] * member, dw[:, None] * member]
        return cls(
            nobody=np.stack(nobody),
            change=np.stack(change, axis=1),
            fairness=fairness,
            space=space,
            goal=goal,
        )

    def best(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the best rule of each direction, and its (violation, cost)."""
        n_selected, epsilon = self.space.n_selected, self.space.epsilon
        score = slopes @ self.space.X[:, 1:].T
        order = np.argsort(-score, axis=1, kind="stable")
        ranked = np.take_along_axis(score, order, axis=1)
        if n_selected is None:
            cuts = slice(0, score.shape[1] - 1)
            sums = np.cumsum(self.change[order[:, :-1]], axis=1)
        else:
            cuts = slice(n_selected - 1, n_selected)
            sums = self.change[order[:, :n_selected]].sum(axis=1, keepdims=True)
        last, next_one = ranked[:, :-1][:, cuts], ranked[:, 1:][:, cuts]
        middle = (last + next_one + epsilon) / 2.0
        # The intercept must fit into the box as well; what is scaled down keeps its distance.
        scale = np.maximum(1.0, np.abs(middle))
        violation, cost = self._judged(self.nobody + sums)
        clear = last - next_one >= 1.01 * epsilon * scale
        violation = np.where(clear, np.maximum(violation, 0.0), np.inf)
        cut = _first_of_least(violation, cost)
        row = np.arange(len(slopes))
        beta = np.column_stack([-middle[row, cut], slopes]) / scale[row, cut][:, None]
        return beta, np.column_stack([violation[row, cut], cost[row, cut]])

    def _judged(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return violation and cost of rules with the given sums."""
        top, bottom = sums[..., 0::2, :], sums[..., 1::2, :]
        defined = (bottom > 0.0).all(axis=(-2, -1))
        value = top / np.where(bottom > 0.0, bottom, 1.0)
        gaps = np.ptp(value[..., list(self.fairness), :], axis=-1)
        cost, violation = self.goal.judge(value[..., 0, :], gaps)
        return np.where(defined, violation, np.inf), cost


def _first_of_least(violation: FloatArray, cost: FloatArray) -> IntArray:
    """Return the place, in each row, of the least cost among the least violations."""
    least = violation == violation.min(axis=1, keepdims=True)
    place: IntArray = np.argmin(np.where(least, cost, np.inf), axis=1)
    return place
