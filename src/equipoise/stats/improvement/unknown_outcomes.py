r"""What can be shown when the outcomes of some people are not known.

Every outcome that is not known lies somewhere between two limits. A requirement is a contrast of
utilities that must be positive; it is shown whatever the outcomes are if the *smallest* value that
it takes within the limits is. A utility is linear in an outcome y given the decisions,

.. math:: u = (a_0 + a_1 D) + y\,(b_0 + b_1 D), \qquad w = (c_0 + c_1 D) + y\,(e_0 + e_1 D),

and its denominator depends on the decisions (accuracy, precision) or on the outcomes (true and
false positive rates), never on both. In the first case the contrast is linear in every y and the
worst outcome of a row is one of its limits by the sign of the slope. In the second both rules share
the denominator, and the smallest ratio is reached where all rows below a threshold of
:math:`c_0 u_0 + c_1 u_1` take one limit and the others the other (Dinkelbach's iteration finds it).
The standard error is that of the contrast with the worst outcomes put in, decisions held fixed
([1]_, [2]_).

References
----------
.. [1] C. Manski (1989), Anatomy of the selection problem. Journal of Human Resources 24, 343-360.
   https://doi.org/10.2307/145818
.. [2] A. Rambachan, A. Coston and E. Kennedy (2022), Robust design and evaluation of predictive
   algorithms under unobserved confounding. https://doi.org/10.48550/arXiv.2212.09844
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from equipoise._typing import BoolArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.utilities import (
    UtilityEstimates,
    gram_root,
    standard_error,
)

__all__ = ["OutcomeUtility", "UnknownOutcomes", "WorstCaseEstimates", "odds_limits"]

ITERATIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeUtility:
    """A utility as a function of outcome and decision.

    Parameters
    ----------
    numerator, denominator : array of shape (2, 2)
        Coefficients of u and w: rows are 1 and y, columns 1 and D.

    Examples
    --------
    The true positive rate, y D / y:

    >>> rate = OutcomeUtility(
    ...     numerator=np.array([[0.0, 0.0], [0.0, 1.0]]),
    ...     denominator=np.array([[0.0, 0.0], [1.0, 0.0]]),
    ... )
    >>> rate.uses_outcome
    True
    """

    numerator: FloatArray
    denominator: FloatArray

    @property
    def uses_outcome(self) -> bool:
        """Whether the outcome matters at all."""
        return bool(self.numerator[1].any() or self.denominator[1].any())


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOutcomes:
    """Rows with the limits of their outcomes, and what each rule decides about them.

    Parameters
    ----------
    low, high : array of shape (n,)
        Limits of the outcome; equal where it is known.
    chance : array of shape (n, A)
        Decisions of A rules.
    group : array of shape (n,)
        Group of each row.
    weight, count : array of shape (n,)
        Sampling weights; how many identical rows a row stands for.
    unit : array of shape (n,), optional
        Cluster of each row.
    utilities : tuple of OutcomeUtility
        One for each criterion.
    """

    low: FloatArray
    high: FloatArray
    chance: FloatArray
    group: IntArray
    weight: FloatArray
    count: FloatArray
    unit: IntArray | None
    utilities: tuple[OutcomeUtility, ...]

    def worst(
        self, criterion: int, rows: BoolArray, coefficient: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the smallest contrast of one utility over rules, and the influence of every row.

        Parameters
        ----------
        criterion : int
            Which utility.
        rows : array of bool of shape (n,)
            The group.
        coefficient : array of shape (A,)
            What the utility of each rule is multiplied with.

        Returns
        -------
        tuple of float and array of shape (n,)
            Minus infinity where a denominator can be zero.
        """
        utility = self.utilities[criterion]
        used = np.flatnonzero(coefficient)
        d = self.chance[np.ix_(rows, used)]
        factor = coefficient[used]
        mass = self.weight[rows] * self.count[rows]
        low, high = self.low[rows], self.high[rows]
        u, slope_u = (a + b * d for a, b in utility.numerator)
        w, slope_w = (a + b * d for a, b in utility.denominator)
        influence = np.zeros(len(self.low))
        if utility.denominator[1].any():
            y = _least_ratio(u @ factor, slope_u @ factor, w[:, 0], slope_w[:, 0], mass, low, high)
        else:
            size = mass @ w
            if (size == 0).any():
                return -np.inf, influence
            y = np.where(slope_u @ (factor / size) > 0, low, high)
        top, bottom = u + slope_u * y[:, None], w + slope_w * y[:, None]
        size = mass @ bottom
        if (size <= 0).any():
            return -np.inf, influence
        value = (mass @ top) / size
        influence[rows] = self.weight[rows] * (((top - value * bottom) / size) @ factor)
        return float(value @ factor), influence


def _least_ratio(
    u: FloatArray,
    slope_u: FloatArray,
    w: FloatArray,
    slope_w: FloatArray,
    mass: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Return the outcomes at which sum(u) / sum(w), both linear in them, is smallest."""
    y = np.where(slope_w > 0, high, low)
    ratio = np.inf
    for _ in range(ITERATIONS):
        size = float(mass @ (w + slope_w * y))
        if size <= 0:
            return y
        found = float(mass @ (u + slope_u * y)) / size
        if found >= ratio:
            break
        ratio = found
        y = np.where(slope_u - ratio * slope_w > 0, low, high)
    return y


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCaseEstimates(UtilityEstimates):
    """Utilities of rows with an outcome; contrasts are the smallest that the others allow.

    Parameters
    ----------
    outcomes : UnknownOutcomes
        All rows.
    groups : tuple of int
        Numbers in `outcomes` of the groups; those of a population are None.
    rules : tuple of int
        Numbers in `outcomes` of the rules.
    """

    outcomes: UnknownOutcomes
    groups: tuple[int | None, ...]
    rules: tuple[int, ...]

    @classmethod
    def of(cls, estimates: UtilityEstimates, outcomes: UnknownOutcomes) -> Self:
        """Add the limits of outcomes to estimates from rows that have one."""
        everyone = [None] * (estimates.value.shape[2] - estimates.n_groups)
        return cls(
            value=estimates.value,
            covariance=estimates.covariance,
            support=estimates.support,
            n_groups=estimates.n_groups,
            n_units=estimates.n_units,
            outcomes=outcomes,
            groups=(*range(estimates.n_groups), *everyone),
            rules=tuple(range(estimates.value.shape[1])),
        )

    def among(self, groups: Sequence[int]) -> Self:
        """Return the estimates of some groups, in that order (and of everyone, if there)."""
        kept = [*groups, *range(self.n_groups, self.value.shape[2])]
        return replace(
            UtilityEstimates.among(self, groups),
            groups=tuple(self.groups[g] for g in kept),
        )

    def of_rules(self, rules: Sequence[int]) -> Self:
        """Return the estimates of some rules."""
        return replace(
            UtilityEstimates.of_rules(self, rules),
            rules=tuple(self.rules[a] for a in rules),
        )

    def on_log_scale(self, criteria: Sequence[int]) -> Self:
        """Refuse ratios of rates that need an outcome."""
        if any(self.outcomes.utilities[c].uses_outcome for c in criteria):
            raise InvalidParameterError(
                "with `unlabelled`, ratios are compared for metrics that need no outcome, such as"
                ' "selection_rate"; use scale="difference".'
            )
        return UtilityEstimates.on_log_scale(self, criteria)

    def _contrasts(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the smallest value of each contrast, and the covariance of these."""
        values, influence, free = np.zeros(len(rows)), [], np.zeros(len(rows), dtype=np.bool_)
        for k, row in enumerate(rows):
            free[k] = not self._uses_outcome(row)
            values[k], psi = self._worst(row)
            influence.append(psi)
        psi = np.stack(influence, axis=1)
        if self.outcomes.unit is not None:
            units = np.unique(self.outcomes.unit, return_inverse=True)[1]
            psi = np.stack([np.bincount(units, weights=column) for column in psi.T], axis=1)
        else:
            psi = psi * np.sqrt(self.outcomes.count)[:, None]
        covariance = psi.T @ psi
        both = np.ix_(free, free)
        covariance[both] = (rows @ self.covariance @ rows.T)[both]
        values[free] = rows[free] @ self.value.ravel()
        return values, covariance

    def loadings(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the smallest values, and rows whose products are their covariances.

        The outcomes at which a contrast is smallest are its own: the rank is up to the number of
        contrasts.
        """
        values, covariance = self._contrasts(rows)
        return values, gram_root(covariance)

    def contrast(self, row: FloatArray) -> tuple[float, float]:
        """Return the smallest value of a contrast and its standard error."""
        if not self._uses_outcome(row):
            return float(row @ self.value.ravel()), standard_error(row, self.covariance)
        value, covariance = self._contrasts(row[None])
        return float(value[0]), float(np.sqrt(max(covariance[0, 0], 0.0)))

    def _blocks(self, row: FloatArray) -> list[tuple[int, int, FloatArray]]:
        """Return criterion, group and coefficients of the rules, where any is not zero."""
        parts = row.reshape(self.value.shape)
        return [(c, g, parts[c, :, g]) for c, g in np.argwhere(parts.any(axis=1)).tolist()]

    def _uses_outcome(self, row: FloatArray) -> bool:
        return any(self.outcomes.utilities[c].uses_outcome for c, _, _ in self._blocks(row))

    def _worst(self, row: FloatArray) -> tuple[float, FloatArray]:
        outcomes = self.outcomes
        total, psi = 0.0, np.zeros(len(outcomes.low))
        for c, g, factors in self._blocks(row):
            group = self.groups[g]
            member = np.ones(len(psi), dtype=np.bool_) if group is None else outcomes.group == group
            coefficient = np.zeros(outcomes.chance.shape[1])
            coefficient[list(self.rules)] = factors
            value, influence = outcomes.worst(c, member, coefficient)
            total, psi = total + value, psi + influence
        return total, psi


def odds_limits(chance: FloatArray, factor: float) -> tuple[FloatArray, FloatArray]:
    """Return the chances whose odds differ from those of `chance` by a factor at most.

    Parameters
    ----------
    chance : array
        Between 0 and 1.
    factor : float
        At least 1.

    Returns
    -------
    tuple of arrays
        Lower and upper limits.

    Examples
    --------
    >>> [limit.round(3).item() for limit in odds_limits(np.array(0.5), 3.0)]
    [0.25, 0.75]
    """
    p = np.asarray(chance, dtype=np.float64)
    return p / (p + factor * (1.0 - p)), factor * p / (factor * p + 1.0 - p)
