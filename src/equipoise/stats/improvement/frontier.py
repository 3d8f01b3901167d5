r"""Several splits of the same data: one p-value, and the largest improvement that is shown.

The splits share rows, so their p-values depend on each other in an unknown way; only rules that are
valid whatever the dependence (or under exchangeability) are offered. The smallest p-value, Fisher's
rule, cross-fitting with summed statistics and, for more than five splits, Cauchy's rule are not.
The largest improvement inverts the combined test.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise._checks import check_finite, check_fraction, check_option
from equipoise._typing import AnyArray, FloatArray, SplitRule
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.test import (
    Direction,
    ImprovementQuestion,
    Margins,
    gap_values,
    p_value_curve,
)
from equipoise.stats.improvement.utilities import UtilityEstimates

__all__ = [
    "DeltaCurve",
    "SplitEvidence",
    "central_p_value",
    "combine_splits",
    "delta_curve",
]

COARSE = 61
FINE = 41


def combine_splits(p_values: AnyArray, rule: SplitRule = "median") -> FloatArray:
    r"""Return the p-value of all splits together.

    The null hypothesis is the one that every split tests.

    Parameters
    ----------
    p_values : array of shape (K, ...)
        One p-value for each split, in the order in which the splits were drawn.
    rule : {"median", "exch_median", "bonferroni"}, default "median"
        "median": twice the median (Corollary 1 of [1]_), the lower one for even K.
        "exch_median": the smallest, over the first k splits, of twice their median ([2]_); more
        powerful, but it depends on the order of the splits.
        "bonferroni": K times the smallest.

    Returns
    -------
    array of shape (...)
        At most 1. A single split keeps its p-value.

    Notes
    -----
    Twice the median is valid by Markov's inequality: half of the p-values at or below
    :math:`\alpha/2` has probability at most :math:`\alpha`. [1]_ compares the median with
    :math:`\alpha/2`; this returns twice the median, to be compared with :math:`\alpha`.

    References
    ----------
    .. [1] E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the
       fairness-improvability of algorithms. doi:10.48550/arXiv.2405.04816
    .. [2] M. Gasparin, R. Wang and A. Ramdas (2024), Combining exchangeable p-values.
       doi:10.48550/arXiv.2404.03484

    Examples
    --------
    Five splits of the linear candidate in Table 1 of [1]_; what may be reported?

    >>> splits = [0.0524, 0.0530, 0.0223, 0.0312, 0.0158]
    >>> combine_splits(splits).round(4).item()
    0.0624

    A p-value of 0.062: not below 5%, although three single splits are.
    """
    central = central_p_value(p_values, rule)
    n_splits = len(np.asarray(p_values))
    if n_splits == 1:
        return central
    factor = n_splits if rule == "bonferroni" else 2
    return np.asarray(np.minimum(factor * central, 1.0))


def central_p_value(p_values: AnyArray, rule: SplitRule = "median") -> FloatArray:
    """Return the p-value that a rule multiplies: the lower median, or the smallest.

    Parameters
    ----------
    p_values, rule
        As in `combine_splits`.

    Returns
    -------
    array of shape (...)
        Never above what `combine_splits` returns.

    Examples
    --------
    >>> central_p_value([0.0524, 0.0530, 0.0223, 0.0312, 0.0158]).item()
    0.0312
    """
    p = check_finite("p_values", p_values)
    if p.ndim == 0 or not len(p) or (p < 0).any() or (p > 1).any():
        raise InvalidParameterError(
            f"`p_values` must hold one p-value in [0, 1] for each split; got {p_values!r}."
        )
    check_option("rule", rule, SplitRule)
    if rule == "bonferroni":
        return np.asarray(p.min(axis=0))
    if rule == "median":
        return _lower_median(p)
    return np.asarray(np.min([_lower_median(p[:k]) for k in range(1, len(p) + 1)], axis=0))


def _lower_median(p: FloatArray) -> FloatArray:
    return np.asarray(np.sort(p, axis=0)[(len(p) + 1) // 2 - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEvidence:
    """What one split has to say.

    Parameters
    ----------
    estimates : UtilityEstimates
        On the test rows of the split.
    directions : sequence of (int, int) or None
        Direction of each fairness gap, from the training rows.
    """

    estimates: UtilityEstimates
    directions: Sequence[Direction | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaCurve:
    """P-values of growing improvements, and the largest one that is shown.

    Parameters
    ----------
    delta, p_value : array of shape (D,)
        A grid from zero to where the estimate itself stops, and the combined p-value there.
    largest : float or None
        Supremum of the deltas up to the first that is not rejected, rounded down to the grid of the
        search; None when not even delta = 0 is.
    """

    delta: FloatArray
    p_value: FloatArray
    largest: float | None


def delta_curve(
    splits: Sequence[SplitEvidence],
    *,
    question: ImprovementQuestion,
    alpha: float = 0.05,
    combine: SplitRule = "median",
    fairness: bool = False,
    groups: Sequence[int] = (),
    margins: Margins | None = None,
) -> DeltaCurve:
    r"""Find the largest delta for which every smaller improvement is shown at level `alpha`.

    The null hypothesis at delta: the candidate is not a delta-improvement (Definitions 3 and 4 of
    [1]_). Deltas are tested upwards from zero and the search stops at the first that is not
    rejected, so it needs no correction; all use the same bootstrap draws and no refitting.

    Parameters
    ----------
    splits : sequence of SplitEvidence
        In the order in which they were drawn.
    question : ImprovementQuestion
        What counts as an improvement.
    alpha : float
        Level.
    combine : {"median", "exch_median", "bonferroni"}
        See `combine_splits`.
    fairness : bool
        Require delta of the fairness gaps (delta-fairness improvability).
    groups : sequence of int
        Require delta of the accuracy of these groups: one for accuracy improvability of a group,
        all for joint accuracy improvability.
    margins : Margins, optional
        Losses and tolerances that hold wherever delta is not required.

    Returns
    -------
    DeltaCurve

    References
    ----------
    .. [1] E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the
       fairness-improvability of algorithms. doi:10.48550/arXiv.2405.04816

    Examples
    --------
    A status quo is right 60% of the time in group 0 and 80% in group 1, a candidate 90% in both.
    By how much can the gap be said to shrink, with 1000 people in each group?

    >>> from equipoise.stats.improvement.utilities import estimate_utilities
    >>> group = np.repeat([0, 1], 1000)
    >>> right = np.ones((2000, 1, 2))
    >>> right[:400, 0, 0] = right[1000:1200, 0, 0] = 0.0
    >>> right[300:400, 0, 1] = right[1100:1200, 0, 1] = 0.0
    >>> estimates = estimate_utilities(right, np.ones_like(right), group, n_groups=2)
    >>> curve = delta_curve(
    ...     [SplitEvidence(estimates=estimates, directions=[(1, 0)])],
    ...     question=ImprovementQuestion(inference="analytic"),
    ...     fairness=True,
    ... )
    >>> round(curve.largest, 2)
    0.88

    By 88%; the estimate is 100%.
    """
    level = check_fraction("alpha", alpha)
    if not splits or not (fairness or groups):
        raise InvalidParameterError(
            "a delta needs at least one split, and `fairness` or `groups` that it is required of."
        )

    def p_values(deltas: FloatArray) -> FloatArray:
        curves = [
            p_value_curve(
                split.estimates,
                deltas,
                directions=split.directions,
                question=question,
                fairness=fairness,
                groups=groups,
                margins=margins,
            )
            for split in splits
        ]
        return combine_splits(np.stack(curves), combine)

    bound = max(_bound(split, question, fairness=fairness, groups=groups) for split in splits)
    grid = np.linspace(0.0, bound, COARSE) if bound > 0 else np.zeros(1)
    p = p_values(grid)
    return DeltaCurve(delta=grid, p_value=p, largest=_first_failure(grid, p, p_values, level))


def _first_failure(
    grid: FloatArray,
    p: FloatArray,
    p_values: Callable[[FloatArray], FloatArray],
    level: float,
) -> float | None:
    rejected = p <= level
    if not rejected[0]:
        return None
    if rejected.all():
        return float(grid[-1])
    last = int(np.argmin(rejected)) - 1
    fine = np.linspace(grid[last], grid[last + 1], FINE)
    kept = p_values(fine) <= level
    return float(fine[int(np.argmin(kept)) - 1])


def _bound(
    split: SplitEvidence,
    question: ImprovementQuestion,
    *,
    fairness: bool,
    groups: Sequence[int],
) -> float:
    """Largest delta at which the estimate itself is an improvement: beyond it p exceeds 1/2."""
    estimates = split.estimates
    bounds = []
    if fairness:
        for gap in question.gaps(estimates.n_groups):
            if gap.held:
                continue
            status_quo, candidate = gap_values(estimates, question, gap)
            bounds.append(1.0 - candidate / status_quo if status_quo > 0 else 0.0)
    for g in groups:
        status_quo, candidate = estimates.value[0, :, g]
        gain = float(candidate - status_quo)
        if question.margin_scale == "relative":
            gain = gain / float(status_quo) if status_quo > 0 else 0.0
        bounds.append(gain)
    # The signed test keeps 1 - delta > 0.
    return min(*bounds, 1.0 - 1e-9) if fairness else min(bounds)
