"""Exact search of linear rules by mixed-integer programming."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from equipoise._checks import check_fraction, check_integer, check_number, check_option
from equipoise._typing import FloatArray, IntArray, SearchObjective
from equipoise.exceptions import ConvergenceError, InvalidParameterError
from equipoise.search.directions import best_direction
from equipoise.search.goal import Goal, utility_by_group, utility_gaps
from equipoise.search.program import build_program, count_splits
from equipoise.search.reweighted import LinearAlgorithm
from equipoise.search.rule_space import RuleSpace
from equipoise.search.sample import TrainingSample, utility_parts
from equipoise.search.solver import Solution, solve_all

__all__ = ["LinearRule"]

# HiGHS accepts rows that are off by 1e-6; strictness below that is not strict.
MIN_STRICTNESS = 1e-5


class LinearRule(BaseEstimator):  # type: ignore[misc]
    r"""Find the best linear rule on the training rows by a mixed-integer program.

    Parameters
    ----------
    objective : {"fairness", "accuracy"}, default "fairness"
        "fairness": the smallest gap among rules that are more accurate in every group, (C.5) of
        [1]_, and (P') when the utility is a ratio. "accuracy": the most accuracy of one group
        without loss for the others or a larger gap, (C.6).
    target : int, optional
        Group of the accuracy objective; by default the one with the lowest accuracy now.
    capacity : float, optional
        Share of the training rows to select.
    max_rows : int
        More rows than this are sampled down, group by group.
    time_limit : float
        Seconds for the search; as many again where it must look for the least violation.
    strictness : float
        By how much accuracy must rise (iota); at least 1e-5, because the solver's tolerance is
        1e-6 and a smaller value would let equality pass.
    epsilon : float
        Distance from the hyperplane that rows not selected must keep.
    tolerance : float
        A gap up to this counts as none: the search stops at the first such rule.
    increasing, decreasing, forbidden : sequence of str
        Features that may only raise the index, only lower it, or not be used.
    random_state : int
        Seed of the sampling down and of the random directions.

    Notes
    -----
    The solver is HiGHS through `scipy.optimize.milp`, which reports status, gap and bound and keeps
    a time limit; an objective target is not needed, since a gap of `tolerance` closes the bound by
    itself. Solved to optimality only to about 100 rows; see `ReweightedRule` for more. The best of
    some ten thousand random directions is the start that the programs must beat: they prove that a
    rule is optimal much faster than they find it.

    *Deviations from* [1]_: big-M constants belong to each row (:math:`C_j = \|X_j\|_1` with the
    columns scaled to at most 1); the intercept is shifted by half of `epsilon` and decisions are
    recomputed, since solutions put rows on the hyperplane; (P') has its products only where they
    are used, with both McCormick bounds, and none where two groups share a capacity: then a program
    without products is solved for every division of the capacity. Utilities may be any pair (u, w),
    groups any number.
    (C.5) and (P') do not force the gap below that of the status quo: the report says whether it is.

    References
    ----------
    .. [1] E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the
       fairness-improvability of algorithms. doi:10.48550/arXiv.2405.04816

    Examples
    --------
    Is there a rule on one feature that is right for everyone?

    >>> from equipoise.search import LinearRule, TrainingSample
    >>> sample = TrainingSample.from_arrays(
    ...     X=[[0.1], [0.9], [0.2], [0.8]], y=[0, 1, 0, 1], group=[0, 0, 1, 1],
    ...     status_quo=[0, 1, 1, 0], accuracy="accuracy")
    >>> algorithm = LinearRule(strictness=0.0001).select(sample)
    >>> algorithm.report["status"]
    'infeasible'

    Not one that is *more* accurate than the status quo in both groups: it is already right for
    group 0. The algorithm is then the one with the least violation of what was required:

    >>> round(algorithm.report["least_violation"], 4)
    0.0001
    """

    def __init__(
        self,
        *,
        objective: SearchObjective = "fairness",
        target: int | None = None,
        capacity: float | None = None,
        max_rows: int = 100,
        time_limit: float = 60.0,
        strictness: float = 1e-3,
        epsilon: float = 1e-3,
        tolerance: float = 1e-3,
        increasing: Sequence[str] = (),
        decreasing: Sequence[str] = (),
        forbidden: Sequence[str] = (),
        random_state: int = 0,
    ) -> None:
        self.objective = objective
        self.target = target
        self.capacity = capacity
        self.max_rows = max_rows
        self.time_limit = time_limit
        self.strictness = strictness
        self.epsilon = epsilon
        self.tolerance = tolerance
        self.increasing = increasing
        self.decreasing = decreasing
        self.forbidden = forbidden
        self.random_state = random_state

    def select(self, sample: TrainingSample) -> LinearAlgorithm:
        """Return the rule that solves the program on (a part of) the training sample.

        Parameters
        ----------
        sample : TrainingSample
            Training rows.

        Returns
        -------
        LinearAlgorithm
            Its report has the solver's status ("optimal", "time limit" or "infeasible"), relative
            gap, seconds, rows used, the training gap and whether it improves on the status quo;
            for an infeasible program the least violation of the requirements.

        Raises
        ------
        ConvergenceError
            If the time limit passes before any feasible rule is found.
        GroupTooSmallError
            If the status quo has no utility in some group, for instance as it selects nobody.
        InvalidParameterError
            If no linear rule keeps to the capacity.
        """
        self._check(sample)
        rows = _sampled(sample.group, self.max_rows, self.random_state)
        part = _rows_of(sample, rows)
        columns = part.columns(self.forbidden)
        signs = np.concatenate([[0.0], part.signs(columns, self.increasing, self.decreasing)])
        scale = np.abs(part.X[:, columns]).max(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        X = np.column_stack([np.ones(len(rows)), part.X[:, columns] / scale])
        started = time.monotonic()
        goal = Goal.of(
            part,
            objective=self.objective,
            target=self._target(part),
            strictness=self.strictness,
            tolerance=self.tolerance,
        )
        space = RuleSpace(
            sample=part,
            X=X,
            signs=signs,
            n_selected=self._n_selected(len(rows)),
            epsilon=self.epsilon,
        )
        solution = self._solve(space, goal)
        status = solution.status
        if status == "infeasible":
            solution = self._solve(space, replace(goal, relaxed=True))
        seconds = time.monotonic() - started
        beta = solution.beta
        if beta is None and solution.status == "infeasible":
            raise InvalidParameterError(
                "no linear rule selects as many rows as `capacity` asks for, with someone of every"
                f" group on whom the metric rests, of these {len(rows)}: rows with equal features"
                " are decided alike. Change `capacity`, or use `ReweightedRule`."
            )
        if beta is None:
            raise ConvergenceError(
                f"the solver found no feasible rule for {len(rows)} rows within"
                f" {self.time_limit:g} s. Raise `time_limit`, lower `max_rows`, or use"
                " `ReweightedRule`."
            )
        # Rows on the hyperplane are selected; half of epsilon keeps them clear of rounding.
        intercept = float(beta[0]) + self.epsilon / 2
        coefficients = np.zeros(sample.X.shape[1])
        coefficients[columns] = beta[1:] / scale
        rule = LinearAlgorithm(coefficients=coefficients, intercept=intercept)
        report: dict[str, Any] = {
            "rule": "LinearRule",
            "objective": self.objective,
            "status": status,
            "solver_gap": solution.gap,
            "seconds": round(seconds, 3),
            "rows": len(rows),
            **_training_report(part, rule, goal, status),
        }
        return replace(rule, report=report)

    def _solve(self, space: RuleSpace, goal: Goal) -> Solution:
        deadline = time.monotonic() + self.time_limit
        sample = space.sample
        start = None
        # A relaxed program measures what is missing of a ratio by the denominator of the status
        # quo, a start by its own.
        if not (goal.relaxed and utility_parts(sample.accuracy, len(sample.y))[3].any()):
            rng = np.random.default_rng(self.random_state)
            start = best_direction(space, goal, deadline=deadline, rng=rng)
        divisions = [] if goal.relaxed else count_splits(sample, space.n_selected)
        return solve_all(
            lambda counts, below: build_program(space, goal, counts=counts, below=below),
            divisions or [None],
            start=start,
            least_cost=goal.least_cost,
            deadline=deadline,
        )

    def _n_selected(self, n: int) -> int | None:
        if self.capacity is None:
            return None
        n_selected = int(np.floor(check_fraction("capacity", self.capacity) * n + 1e-9))
        if n_selected < 1:
            raise InvalidParameterError(
                f"a capacity of {self.capacity:g} selects nobody of {n} rows; raise it, or raise"
                " `max_rows`."
            )
        return n_selected

    def _target(self, sample: TrainingSample) -> int:
        if self.target is not None:
            return self.target
        return int(np.argmin(utility_by_group(sample, sample.accuracy, sample.status_quo)))

    def _check(self, sample: TrainingSample) -> None:
        check_option("objective", self.objective, SearchObjective)
        check_integer("max_rows", self.max_rows, low=2 * sample.n_groups)
        check_number("time_limit", self.time_limit, low=0.01)
        check_number("strictness", self.strictness, low=MIN_STRICTNESS)
        check_number("epsilon", self.epsilon, low=MIN_STRICTNESS)
        check_number("tolerance", self.tolerance, low=0.0)
        if self.target is not None and not 0 <= self.target < sample.n_groups:
            raise InvalidParameterError(
                f"`target` must be a group from 0 to {sample.n_groups - 1}; got {self.target}."
            )
        if sample.weight is not None:
            raise InvalidParameterError(
                "the mixed-integer program takes no weights; use `ReweightedRule`."
            )


def _sampled(group: IntArray, max_rows: int, random_state: int) -> IntArray:
    """Rows to use: all, or a share of every group."""
    if len(group) <= max_rows:
        return np.arange(len(group))
    rng = np.random.default_rng(check_integer("random_state", random_state))
    order = rng.permutation(len(group))
    chosen = []
    for g in range(int(group.max()) + 1):
        members = order[group[order] == g]
        chosen.append(members[: max(2, round(max_rows * len(members) / len(group)))])
    return np.sort(np.concatenate(chosen))[:max_rows]


def _rows_of(sample: TrainingSample, rows: IntArray) -> TrainingSample:
    n = len(sample.y)

    def part(utility: Any) -> Any:
        def restricted(d: FloatArray) -> tuple[FloatArray, FloatArray]:
            # Utilities are rowwise, so what the other rows decide does not matter.
            full = sample.status_quo.copy()
            full[rows] = d
            u, w = utility(full)
            return u[rows], w[rows]

        return restricted

    if len(rows) == n:
        return sample
    known = {utility: part(utility) for utility in (sample.accuracy, *sample.fairness)}
    return replace(
        sample,
        X=sample.X[rows],
        y=sample.y[rows],
        group=sample.group[rows],
        status_quo=sample.status_quo[rows],
        accuracy=known[sample.accuracy],
        fairness=tuple(known[utility] for utility in sample.fairness),
    )


def _training_report(
    sample: TrainingSample, rule: LinearAlgorithm, goal: Goal, status: str
) -> dict[str, Any]:
    """Say what the recomputed decisions achieve on the rows of the program."""
    d = rule.decide(sample.X)
    before, after = (utility_by_group(sample, sample.accuracy, x) for x in (sample.status_quo, d))
    gaps_before, gaps = (utility_gaps(sample, x) for x in (sample.status_quo, d))
    found: dict[str, Any] = {
        "accuracy_status_quo": before.tolist(),
        "accuracy": after.tolist(),
        "gap_status_quo": float(gaps_before.max()),
        "gap": float(gaps.max()),
        "improves_training": bool((after > before).all() and (gaps < gaps_before).all()),
    }
    if status == "infeasible":
        _, violation = goal.judge(after, gaps)
        found["least_violation"] = float(np.maximum(violation, 0.0))
    return found
