r"""The mixed-integer programs for linear rules, Appendix C of the improvability paper.

Variables: coefficients b (box :math:`|b_j| \le 1` after scaling the columns), a decision
:math:`D_i` for each row, and for every utility whose denominator depends on the decisions the pair
:math:`t_g = 1/\sum w`, :math:`s_i = t_g D_i` of the transformation (C.8), written for any (u, w).
"""

from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from scipy import sparse

from equipoise._typing import FloatArray
from equipoise.search.goal import Goal
from equipoise.search.rule_space import RuleSpace
from equipoise.search.sample import TrainingSample, Utility, utility_parts

__all__ = ["Counts", "LinearProgram", "build_program", "count_splits"]

Row = tuple[dict[int, float], float, float]
Counts = tuple[int, int]
"""How many rows of the first and of the second group are selected."""

MOST_PAIRS = 1_000_000
"""Pairs of attainable values that are looked at, at most."""
LEAST_GAIN = 1e-5
"""A rule must be better than another by more than the solver's tolerance."""


@dataclass(slots=True, kw_only=True)
class LinearProgram:
    """A program under construction: variables with bounds, rows with bounds.

    Parameters
    ----------
    low, high : list of float
        Bounds of the variables.
    integer : list of bool
        Which variables are whole numbers.
    rows : list
        (coefficients by variable, lower bound, upper bound).
    cost : dict
        Objective, to be minimised.
    constant : float
        What is added to the objective.
    """

    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    cost: dict[int, float] = field(default_factory=dict)
    constant: float = 0.0

    def variables(
        self, n: int, low: float = 0.0, high: float = 1.0, *, integer: bool = False
    ) -> range:
        """Add n variables; return their numbers."""
        first = len(self.low)
        self.low += [low] * n
        self.high += [high] * n
        self.integer += [integer] * n
        return range(first, first + n)

    def require(self, terms: dict[int, float], low: float = -np.inf, high: float = np.inf) -> None:
        """Add a row: low <= terms <= high."""
        self.rows.append((terms, low, high))

    def matrix(self) -> sparse.csr_array:
        """Return the rows as a sparse matrix."""
        entries = [(k, j, v) for k, (terms, _, _) in enumerate(self.rows) for j, v in terms.items()]
        row, column, value = zip(*entries, strict=True)
        shape = (len(self.rows), len(self.low))
        return sparse.coo_array((value, (row, column)), shape=shape).tocsr()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    """The decisions, how many rows they select, and how many of each group, where that is fixed."""

    decision: range
    total: int | None
    counts: Counts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expression:
    """A linear expression, constant plus terms; a whole multiple of `step` if that is given."""

    constant: float
    terms: dict[int, float]
    step: float | None = None

    def minus(self, other: "_Expression") -> "_Expression":
        terms = dict(self.terms)
        for j, v in other.terms.items():
            terms[j] = terms.get(j, 0.0) - v
        return _Expression(constant=self.constant - other.constant, terms=terms)


def build_program(
    space: RuleSpace, goal: Goal, *, counts: Counts | None = None, below: float = np.inf
) -> tuple[LinearProgram, range]:
    """Write the program of [1] (C.5), (C.6) or (P'), for any utilities.

    Parameters
    ----------
    space : RuleSpace
        Rules to choose from.
    goal : Goal
        What to reach.
    counts : pair of int, optional
        How many rows of each group to select: ratios over the selected are then linear.
    below : float
        A cost that must be beaten.

    Returns
    -------
    LinearProgram, range
        The program and the numbers of the coefficients.
    """
    program = LinearProgram()
    sample = space.sample
    beta, decision = _linear_rule(program, space)
    selection = _Selection(decision=decision, total=space.n_selected, counts=counts)
    _require_capacity(program, sample, selection)
    most_cost = below - LEAST_GAIN
    slack, most_slack = None, 0.0
    if goal.relaxed:
        slack, most_slack = program.variables(1, 0.0, most_cost)[0], most_cost
        program.cost[slack] = 1.0
    _require_accuracy(program, sample, decision, goal, slack)
    if goal.objective == "accuracy":
        for utility, most in zip(sample.fairness, goal.widest, strict=True):
            values = _bound_gap(program, sample, utility, selection, most=float(most), extra=slack)
            floors = goal.floors - most_slack if utility is sample.accuracy else None
            _keep_attainable(program, values, floors, float(most) + most_slack)
        if not goal.relaxed:
            aim = _expressions(program, sample, sample.accuracy, selection)[goal.target]
            program.constant = -aim.constant
            program.cost |= {j: -v for j, v in aim.terms.items()}
            program.require(dict(program.cost), high=most_cost - program.constant)
    elif not goal.relaxed:
        # The relaxed program reaches a gap of zero, whole decisions often cannot: a floor just
        # above zero lets the solver stop at a rule that is as good as one can tell.
        gap = program.variables(1, goal.tolerance, most_cost)[0]
        program.cost[gap] = 1.0
        for utility in dict.fromkeys(sample.fairness):
            values = _bound_gap(program, sample, utility, selection, most=0.0, extra=gap)
            floors = goal.floors if utility is sample.accuracy else None
            _keep_attainable(program, values, floors, most_cost)
    return program, beta


def count_splits(sample: TrainingSample, n_selected: int | None) -> list[Counts]:
    """List the ways to divide a capacity between two groups, nearest to the status quo first.

    Given how many rows of each group are selected, a mean over the selected is linear in the
    decisions: many small programs without products instead of a hard one, (P'). Empty where that
    does not help: no capacity, other than two groups, no such mean.
    """
    n = len(sample.y)
    moving = [utility_parts(utility, n)[3] for utility in (sample.accuracy, *sample.fairness)]
    if n_selected is None or sample.n_groups != 2 or not any(dw.any() for dw in moving):
        return []
    first = sample.group == 0
    if any(np.ptp(dw[rows]) for dw in moving for rows in (first, ~first)):
        return []
    now = float(sample.status_quo[first].sum())
    numbers = range(
        max(1, n_selected - int((~first).sum())), min(int(first.sum()), n_selected - 1) + 1
    )
    return [(k, n_selected - k) for k in sorted(numbers, key=lambda k: (abs(k - now), k))]


def _linear_rule(program: LinearProgram, space: RuleSpace) -> tuple[range, range]:
    """Add coefficients and decisions, and tie them: D = 1 exactly where X'b >= 0."""
    X, epsilon = space.X, space.epsilon
    beta = program.variables(X.shape[1], -1.0, 1.0)
    for j, sign in zip(beta, space.signs, strict=True):
        program.low[j] = 0.0 if sign > 0 else -1.0
        program.high[j] = 0.0 if sign < 0 else 1.0
    decision = program.variables(len(X), integer=True)
    for row, d in zip(X, decision, strict=True):
        reach = float(np.abs(row).sum())
        index = {j: float(v) for j, v in zip(beta, row, strict=True) if v}
        program.require(index | {d: -reach}, low=-reach)
        program.require(index | {d: -(reach + epsilon)}, high=-epsilon)
    return beta, decision


def _require_capacity(
    program: LinearProgram, sample: TrainingSample, selection: _Selection
) -> None:
    if selection.counts is not None:
        for g, count in enumerate(selection.counts):
            members = [selection.decision[i] for i in np.flatnonzero(sample.group == g)]
            program.require(dict.fromkeys(members, 1.0), low=count, high=count)
    elif selection.total is not None:
        everyone = dict.fromkeys(selection.decision, 1.0)
        program.require(everyone, low=selection.total, high=selection.total)


def _known_denominator(
    w0: FloatArray, dw: FloatArray, selection: _Selection, g: int
) -> float | None:
    """Return the sum of w in a group, if it is the same for every decision that is allowed."""
    if not dw.any():
        return float(w0.sum())
    if selection.counts is not None and np.ptp(dw) == 0.0:
        return float(w0.sum() + dw[0] * selection.counts[g])
    return None


def _require_accuracy(
    program: LinearProgram,
    sample: TrainingSample,
    decision: range,
    goal: Goal,
    slack: int | None,
) -> None:
    """Require U >= its floor; multiplied by the denominator it is linear even for ratios."""
    u0, du, w0, dw = utility_parts(sample.accuracy, len(sample.y))
    _, w = sample.accuracy(sample.status_quo)
    for g, floor in enumerate(goal.floors):
        rows = np.flatnonzero(sample.group == g)
        if dw[rows].any():
            # A group in which nobody counts has no utility.
            program.require({decision[i]: float(dw[i]) for i in rows}, low=1.0 - w0[rows].sum())
        if np.isneginf(floor):
            continue
        scale = float(w[rows].sum())
        terms = {decision[i]: float(du[i] - floor * dw[i]) / scale for i in rows}
        constant = float((u0[rows] - floor * w0[rows]).sum()) / scale
        if slack is not None:
            terms[slack] = 1.0
        program.require(terms, low=-constant)


def _expressions(
    program: LinearProgram,
    sample: TrainingSample,
    utility: Utility,
    selection: _Selection,
) -> list[_Expression]:
    """Write the utility of every group as a linear expression; ratios by (C.8)."""
    u0, du, w0, dw = utility_parts(utility, len(sample.y))
    decision, n_selected = selection.decision, selection.total
    found = []
    for g in range(sample.n_groups):
        rows = np.flatnonzero(sample.group == g)
        scale = _known_denominator(w0[rows], dw[rows], selection, g)
        if scale is not None:
            found.append(
                _Expression(
                    constant=float(u0[rows].sum()) / scale,
                    terms={decision[i]: float(du[i]) / scale for i in rows},
                    step=1.0 / scale if _whole(u0[rows]) and _whole(du[rows]) else None,
                )
            )
            continue
        most = float(np.maximum(w0[rows], w0[rows] + dw[rows]).sum())
        if n_selected is not None and not w0[rows].any():
            most = min(most, float(np.sort(dw[rows])[::-1][:n_selected].sum()))
        least = max(1.0, float(np.minimum(w0[rows], w0[rows] + dw[rows]).sum()))
        t_low, t_high = 1.0 / most, 1.0 / least
        t = program.variables(1, t_low, t_high)[0]
        s = program.variables(len(rows), 0.0, t_high)
        for i, s_i in zip(rows, s, strict=True):
            d = decision[i]
            program.require({s_i: 1.0, d: -t_high}, high=0.0)
            program.require({s_i: 1.0, d: -t_low}, low=0.0)
            program.require({s_i: 1.0, t: -1.0, d: -t_low}, high=-t_low)
            program.require({s_i: 1.0, t: -1.0, d: -t_high}, low=-t_high)
        weights = {s_i: float(dw[i]) for i, s_i in zip(rows, s, strict=True)}
        program.require(weights | {t: float(w0[rows].sum())}, low=1.0, high=1.0)
        found.append(
            _Expression(
                constant=0.0,
                terms={s_i: float(du[i]) for i, s_i in zip(rows, s, strict=True)}
                | {t: float(u0[rows].sum())},
            )
        )
    return found


def _bound_gap(
    program: LinearProgram,
    sample: TrainingSample,
    utility: Utility,
    selection: _Selection,
    *,
    most: float,
    extra: int | None,
) -> list[_Expression]:
    """Bound all differences between groups by a number plus, if given, a variable."""
    values = _expressions(program, sample, utility, selection)
    for first, second in permutations(values, 2):
        difference = first.minus(second)
        terms = dict(difference.terms)
        if extra is not None:
            terms[extra] = -1.0
        program.require(terms, high=most - difference.constant)
    return values


def _keep_attainable(
    program: LinearProgram, values: list[_Expression], floors: FloatArray | None, most: float
) -> None:
    """Bound the values of two groups by those that differ by at most `most`, being fractions.

    With 51 and 49 rows, accuracies above one half differ by less than .001 only if there is at most
    one error in either group; that the solver cannot know.
    """
    steps = [value.step for value in values if value.step is not None]
    if len(values) != 2 or len(steps) != 2 or not np.isfinite(most):
        return
    grids = []
    for g, (value, step) in enumerate(zip(values, steps, strict=True)):
        terms = np.array(list(value.terms.values()))
        low = value.constant + terms[terms < 0.0].sum()
        high = value.constant + terms[terms > 0.0].sum()
        if floors is not None:
            low = max(low, floors[g])
        grids.append(np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step)
    if len(grids[0]) * len(grids[1]) > MOST_PAIRS:
        return
    near = np.abs(grids[0][:, None] - grids[1]) <= most + 1e-9
    for g, (value, step, grid) in enumerate(zip(values, steps, grids, strict=True)):
        kept = grid[near.any(axis=1 - g)]
        low, high = (kept.min(), kept.max()) if len(kept) else (1.0, 0.0)
        # A quarter of a step keeps rounding from excluding a value.
        program.require(
            value.terms,
            low=low - step / 4.0 - value.constant,
            high=high + step / 4.0 - value.constant,
        )


def _whole(values: FloatArray) -> bool:
    return bool((values == np.round(values)).all())
