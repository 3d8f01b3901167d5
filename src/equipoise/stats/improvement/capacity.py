r"""Select a fixed share of people by a score, and what it costs that the cut-off is estimated.

A rule that selects the top share of *the population* has a cut-off that the sample only estimates.
Tests with decisions held fixed are about the realised cut-offs; `with_estimated_cutoffs` gives the
covariance for the population rule, as a check of how much the difference matters.
"""

from dataclasses import dataclass, replace

import numpy as np

from equipoise._checks import check_finite, check_fraction
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.improvement.utilities import UtilityEstimates

__all__ = [
    "ScoredDecisions",
    "select_top",
    "selected_copies",
    "top_share_cutoff",
    "with_estimated_cutoffs",
]

# 0.29 * 100 is 28.999...: a share that means a whole number selects that number.
ROUNDING = 1e-9
NEAR_SHARE = 0.02
NEAR_LEAST = 20


def top_share_cutoff(score: AnyArray, capacity: float, *, weight: AnyArray | None = None) -> float:
    """Return the cut-off q such that ``score >= q`` selects at most a share `capacity`.

    Parameters
    ----------
    score : array of shape (n,)
        Higher is selected first.
    capacity : float
        Share of people, in (0, 1).
    weight : array of shape (n,), optional
        Sampling weights or counts.

    Returns
    -------
    float
        The smallest score for which the share of rows at or above it is at most `capacity`; if
        ties at the top exceed the capacity, the largest score.

    Examples
    --------
    Which score admits three of ten?

    >>> top_share_cutoff([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.3)
    8.0
    """
    values = check_finite("score", score, ndim=1)
    share = check_fraction("capacity", capacity)
    w = np.ones(len(values)) if weight is None else check_finite("weight", weight, ndim=1)
    if not len(values):
        raise InvalidParameterError("a cut-off needs at least one score; got none.")
    known, where = np.unique(values, return_inverse=True)
    above = np.cumsum(np.bincount(where, weights=w)[::-1])[::-1]
    fits = np.flatnonzero(above <= share * w.sum() * (1 + ROUNDING))
    return float(known[fits[0]] if len(fits) else known[-1])


def select_top(
    score: AnyArray,
    capacity: float,
    *,
    tie: AnyArray | None = None,
    weight: AnyArray | None = None,
) -> BoolArray:
    """Select as many rows with the highest scores as the capacity allows.

    Parameters
    ----------
    score : array of shape (n,)
        Higher is selected first.
    capacity : float
        Share of rows (or of their weight), in (0, 1).
    tie : array of shape (n,), optional
        Decides between equal scores, smaller first; by default the order of the rows.
    weight : array of shape (n,), optional
        Sampling weights.

    Returns
    -------
    array of bool

    Examples
    --------
    >>> select_top([0.2, 0.9, 0.9, 0.1], 0.25).tolist()
    [False, True, False, False]
    """
    count = np.ones(len(np.asarray(score)), dtype=np.int64)
    return selected_copies(score, capacity, count, tie=tie, weight=weight) > 0


def selected_copies(
    score: AnyArray,
    capacity: float,
    count: AnyArray,
    *,
    tie: AnyArray | None = None,
    weight: AnyArray | None = None,
) -> IntArray:
    """Return how many of the identical rows that each row stands for are selected.

    Parameters
    ----------
    score, capacity, tie, weight
        As in `select_top`; the weight is that of one of the identical rows.
    count : array of shape (n,)
        How many identical rows each stands for.

    Returns
    -------
    array of int

    Examples
    --------
    Half of eight people are selected; five of them have the second best score.

    >>> selected_copies([0.9, 0.8, 0.1], 0.5, [2, 5, 1]).tolist()
    [2, 2, 0]
    """
    values = check_finite("score", score, ndim=1)
    share = check_fraction("capacity", capacity)
    w = np.ones(len(values)) if weight is None else check_finite("weight", weight, ndim=1)
    second = np.arange(len(values)) if tie is None else np.asarray(tie)
    order = np.lexsort((second, -values))
    each, copies = w[order], np.asarray(count, dtype=np.int64)[order]
    whole = np.cumsum(each * copies)
    limit = share * whole[-1] * (1 + ROUNDING) if len(whole) else 0.0
    chosen = np.where(whole <= limit, copies, 0)
    last = int(np.searchsorted(whole, limit, side="right"))
    if last < len(whole):
        room = limit - (whole[last - 1] if last else 0.0)
        chosen[last] = min(copies[last], int(room // each[last]))
    if not chosen.any():
        raise InvalidParameterError(
            f"a capacity of {capacity:g} selects nobody among {copies.sum()} rows; raise it."
        )
    selected = np.zeros(len(values), dtype=np.int64)
    selected[order] = chosen
    return selected


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredDecisions:
    """The two rules on the test rows.

    Parameters
    ----------
    numerator, denominator : array of shape (n, C, 2)
        Row quantities, as in `estimate_utilities`.
    change_numerator, change_denominator : array of shape (n, C)
        What selecting a row adds to them, whichever rule selects it.
    score : array of shape (n, 2)
        Scores of status quo and candidate.
    selected : array of shape (n, 2)
        Their decisions: a top share of each score.
    group : array of shape (n,)
        Group of each row.
    weight, cluster : array of shape (n,), optional
        As in `estimate_utilities`.
    """

    numerator: FloatArray
    denominator: FloatArray
    change_numerator: FloatArray
    change_denominator: FloatArray
    score: FloatArray
    selected: FloatArray
    group: IntArray
    weight: AnyArray | None = None
    cluster: AnyArray | None = None


def with_estimated_cutoffs(estimates: UtilityEstimates, rules: ScoredDecisions) -> UtilityEstimates:
    r"""Return the estimates with the covariance of rules whose cut-offs are estimated.

    Parameters
    ----------
    estimates : UtilityEstimates
        With decisions held fixed.
    rules : ScoredDecisions
        The rows they come from.

    Returns
    -------
    UtilityEstimates
        Without draws: for analytic tests.

    Notes
    -----
    With cut-off q at the top share :math:`\kappa` of score S, the influence of a row on the utility
    of group g gains

    .. math:: \frac{P(G=g \mid S=q)\,E[\Delta u - U_g\,\Delta w \mid S=q, g]}{E[w 1_g]}
              \,(\kappa - 1\{S \ge q\}),

    where :math:`\Delta u, \Delta w` is what selecting a row adds. The expectation at the cut-off is
    a mean over the 2% of rows with the nearest scores. The term largely cancels between two rules
    cut at the same share.
    """
    n, criteria, _ = rules.numerator.shape
    weight = np.ones(n) if rules.weight is None else np.asarray(rules.weight, dtype=np.float64)
    groups = estimates.value.shape[2]
    psi = np.zeros((n, estimates.value.size))
    for algorithm in (0, 1):
        score, chosen = rules.score[:, algorithm], rules.selected[:, algorithm] == 1
        share = float(weight @ chosen) / float(weight.sum())
        gap = np.abs(score - score[chosen].min())
        nearest = min(max(int(NEAR_SHARE * n), NEAR_LEAST), n)
        near = np.argpartition(gap, nearest - 1)[:nearest]
        for c in range(criteria):
            for g in range(groups):
                # The last group may be everyone.
                rows = np.ones(n) if g == estimates.n_groups else rules.group == g
                value = estimates.value[c, algorithm, g]
                w = weight * rules.denominator[:, c, algorithm] * rows
                fixed = weight * rules.numerator[:, c, algorithm] * rows - value * w
                moved = rules.change_numerator[near, c] - value * rules.change_denominator[near, c]
                at_cutoff = float(np.average(moved * rows[near], weights=weight[near]))
                moving = at_cutoff * weight * (share - chosen)
                position = estimates.position(c, algorithm, g)
                psi[:, position] = (fixed + moving) / float(w.sum())
    moments = CellMoments.from_rows(psi, np.zeros(n, dtype=np.int64), cluster=rules.cluster)
    return replace(estimates, covariance=moments.product[0], draws=None)
