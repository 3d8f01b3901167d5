"""Solve mixed-integer programs with HiGHS: one, or several of which the best counts."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from equipoise._typing import FloatArray
from equipoise.search.program import LinearProgram

__all__ = ["Solution", "solve", "solve_in_turns"]

STATUS = {0: "optimal", 1: "time limit", 2: "infeasible"}
TURNS = (200, 2_000, 20_000, None)
"""Nodes of the search tree that each program may use in its first turn, its second, and so on."""

Split = tuple[int, int]


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
    gap : float, optional
        Relative distance of the cost from its proven bound.
    """

    status: str
    beta: FloatArray | None = None
    cost: float | None = None
    gap: float | None = None


def solve(
    program: LinearProgram, beta: range, *, time_limit: float, node_limit: int | None = None
) -> Solution:
    """Solve one program.

    Parameters
    ----------
    program : LinearProgram
        What to minimise, and under which conditions.
    beta : range
        Numbers of the coefficients among its variables.
    time_limit : float
        Seconds.
    node_limit : int, optional
        Nodes of the search tree.

    Returns
    -------
    Solution
    """
    cost = np.zeros(len(program.low))
    cost[list(program.cost)] = list(program.cost.values())
    options: dict[str, Any] = {"time_limit": time_limit}
    if node_limit is not None:
        options["node_limit"] = node_limit
    found = optimize.milp(
        cost,
        integrality=np.array(program.integer, dtype=np.int64),
        bounds=optimize.Bounds(program.low, program.high),
        constraints=optimize.LinearConstraint(
            program.matrix(),
            [low for _, low, _ in program.rows],
            [high for _, _, high in program.rows],
        ),
        options=options,
    )
    status = STATUS.get(found.status, str(found.message))
    if found.x is None:
        return Solution(status=status)
    finite = found.mip_gap is not None and np.isfinite(found.mip_gap)
    return Solution(
        status=status,
        beta=np.asarray(found.x)[list(beta)],
        cost=float(found.fun),
        gap=float(found.mip_gap) if finite else None,
    )


def solve_in_turns(
    written: Callable[[Split], tuple[LinearProgram, range]],
    splits: Sequence[Split],
    *,
    floor: float,
    time_limit: float,
) -> Solution:
    """Find the best solution of several programs.

    Each gets a few nodes in turn, then those that are not settled get more; all must beat the best
    found so far. Nodes, not seconds, divide the work, so that the same data give the same rule.

    Parameters
    ----------
    written : callable
        Writes the program of a split.
    splits : sequence
        What the programs differ in, the most promising first.
    floor : float
        A cost that cannot be beaten; the search ends there.
    time_limit : float
        Seconds for all together.

    Returns
    -------
    Solution
    """
    deadline = time.monotonic() + time_limit
    best = Solution(status="infeasible")
    waiting = list(splits)
    for nodes in TURNS:
        unsettled = []
        for split in waiting:
            left = deadline - time.monotonic()
            if left <= 0.0:
                return _stopped(best, floor)
            program, beta = written(split)
            if best.cost is not None:
                program.demand_less(best.cost)
            found = solve(program, beta, time_limit=left, node_limit=nodes)
            if found.status not in {"optimal", "infeasible"}:
                unsettled.append(split)
            if found.cost is not None:
                best = Solution(status="optimal", beta=found.beta, cost=found.cost, gap=0.0)
                if found.cost <= floor + 1e-9:
                    return best
        waiting = unsettled
    return _stopped(best, floor) if waiting else best


def _stopped(best: Solution, floor: float) -> Solution:
    """Return the best so far, when its optimality is not proven."""
    gap = None
    if best.cost and np.isfinite(floor):
        gap = abs(best.cost - floor) / abs(best.cost)
    return Solution(status="time limit", beta=best.beta, cost=best.cost, gap=gap)
