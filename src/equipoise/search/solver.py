"""Solve mixed-integer programs with HiGHS, of which the best solution counts."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from equipoise._typing import FloatArray
from equipoise.search.program import Counts, LinearProgram

__all__ = ["Solution", "solve_all"]

STATUS = {0: "optimal", 1: "time limit", 2: "infeasible"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What the solver found.

    Parameters
    ----------
    status : str
        "optimal", "time limit", "infeasible", or the solver's own words.
    beta : array of shape (d + 1,), optional
        Coefficients; `None` if no feasible rule was found.
    cost : float, optional
        Value of the objective.
    bound : float
        Proven to be no more than any cost.
    """

    status: str
    beta: FloatArray | None = None
    cost: float | None = None
    bound: float = -np.inf

    @property
    def gap(self) -> float | None:
        """Relative distance of the cost from its bound; `None` where there is no such number."""
        if self.cost is None or not np.isfinite(self.bound):
            return None
        return max(0.0, self.cost - self.bound) / max(abs(self.cost), np.finfo(float).tiny)


def solve_all(
    written: Callable[[Counts | None, float], tuple[LinearProgram, range]],
    divisions: Sequence[Counts | None],
    *,
    start: tuple[FloatArray, float] | None,
    least_cost: float,
    deadline: float,
) -> Solution:
    """Find the best solution of several programs; each must beat the best found so far.

    Parameters
    ----------
    written : callable
        Writes the program of a division, given a cost that must be beaten; returns it with the
        numbers of its coefficients.
    divisions : sequence
        What the programs differ in, the most promising first.
    start : array and float, optional
        Coefficients and cost of a feasible rule.
    least_cost : float
        A cost that cannot be beaten; the search ends there.
    deadline : float
        When to stop, on the clock of `time.monotonic`.

    Returns
    -------
    Solution
    """
    best = Solution(status="infeasible", bound=least_cost)
    if start is not None:
        best = replace(best, status="optimal", beta=start[0], cost=start[1])
    for division in divisions:
        cost = np.inf if best.cost is None else best.cost
        if cost <= least_cost + 1e-9:
            break
        left = deadline - time.monotonic()
        if left <= 0.0:
            return replace(best, status="time limit")
        found = _solve(*written(division, cost), time_limit=left)
        if found.cost is not None:
            best = replace(found, status="optimal", bound=least_cost)
        if found.status not in {"optimal", "infeasible"}:
            # Of the other divisions nothing is known.
            bound = found.bound if len(divisions) == 1 else -np.inf
            return replace(best, status=found.status, bound=max(least_cost, bound))
    return best if best.cost is None else replace(best, bound=best.cost)


def _solve(program: LinearProgram, beta: range, *, time_limit: float) -> Solution:
    """Solve one program."""
    cost = np.zeros(len(program.low))
    cost[list(program.cost)] = list(program.cost.values())
    found = optimize.milp(
        cost,
        integrality=np.array(program.integer, dtype=np.int64),
        bounds=optimize.Bounds(program.low, program.high),
        constraints=optimize.LinearConstraint(
            program.matrix(),
            [low for _, low, _ in program.rows],
            [high for _, _, high in program.rows],
        ),
        options={"time_limit": time_limit},
    )
    status = STATUS.get(found.status, str(found.message))
    bound = -np.inf if found.mip_dual_bound is None else found.mip_dual_bound + program.constant
    if found.x is None:
        return Solution(status=status, bound=bound)
    return Solution(
        status=status,
        beta=np.asarray(found.x)[list(beta)],
        cost=float(found.fun) + program.constant,
        bound=bound,
    )
