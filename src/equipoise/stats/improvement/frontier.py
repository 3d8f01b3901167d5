"""The largest improvement that the data support, by inverting the test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise._checks import check_fraction
from equipoise._typing import FloatArray, SplitRule
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.splits import combine_splits
from equipoise.stats.improvement.test import Direction, ImprovementQuestion, p_value_curve
from equipoise.stats.improvement.utilities import UtilityEstimates

__all__ = ["DeltaCurve", "SplitEvidence", "delta_curve"]

COARSE = 61
FINE = 41


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

    Returns
    -------
    DeltaCurve

    References
    ----------
    .. [1] Auerbach, Liang, Tabord-Meehan and Okumura (2024). Testing the fairness-improvability of
       algorithms.

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
        for c in question.fairness:
            status_quo, candidate = np.ptp(estimates.value[c, :, : estimates.n_groups], axis=1)
            bounds.append(1.0 - candidate / status_quo if status_quo > 0 else 0.0)
    for g in groups:
        status_quo, candidate = estimates.value[0, :, g]
        gain = float(candidate - status_quo)
        if question.margin_scale == "relative":
            gain = gain / float(status_quo) if status_quo > 0 else 0.0
        bounds.append(gain)
    # The signed test keeps 1 - delta > 0.
    return min(*bounds, 1.0 - 1e-9) if fairness else min(bounds)
