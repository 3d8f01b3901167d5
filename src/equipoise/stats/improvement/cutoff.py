r"""What it costs that the cut-off of a top-share rule is itself estimated.

A rule that selects the top share of *the population* has a cut-off that the sample only estimates.
Tests with decisions held fixed are about the realised cut-offs; this gives the covariance for the
population rule, as a check of how much the difference matters.
"""

from dataclasses import dataclass, replace

import numpy as np

from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.moments import CellMoments
from equipoise.stats.improvement.utilities import UtilityEstimates

__all__ = ["ScoredDecisions", "with_estimated_cutoffs"]

NEAR_SHARE = 0.02
NEAR_LEAST = 20


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
