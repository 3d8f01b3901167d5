"""Where two groups have scores in common, and whether higher scores mean higher outcomes."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import FloatArray
from equipoise.stats.scores.cells import weighted_quantile

__all__ = ["CommonSupport", "OrderingViolation", "common_support", "worst_ordering_violation"]

TAILS = np.array([0.005, 0.995])
SHARE_NEEDED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonSupport:
    """Scores that both groups have; parity outside them is not identified.

    Parameters
    ----------
    low, high : float
        Larger of the two 0.5% quantiles and smaller of the two 99.5% quantiles; ``low > high``
        when the groups do not overlap.
    share : array of shape (2,)
        Part of each group inside.
    """

    low: float
    high: float
    share: FloatArray

    @property
    def testable(self) -> bool:
        """Whether at least half of each group is inside."""
        return bool(self.share.min() >= SHARE_NEEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderingViolation:
    """The strongest sign that a lower score in one group means a higher outcome than in the other.

    Parameters
    ----------
    score_low, score_high : float
        The two scores.
    group_low : int
        Group that has the lower score and the higher estimated outcome.
    gap : float
        Difference of the estimated outcomes, positive for a violation.
    p_value : float
        One-sided, Bonferroni over all pairs of scores looked at.
    """

    score_low: float
    score_high: float
    group_low: int
    gap: float
    p_value: float


def common_support(support: FloatArray, mass: FloatArray) -> CommonSupport:
    """Find the scores two groups share.

    Parameters
    ----------
    support : array of shape (b,)
        Scores, ascending.
    mass : array of shape (2, b)
        Weight of each group at each score.

    Returns
    -------
    CommonSupport

    Examples
    --------
    Do groups scored 0 to 0.9 and 0.5 to 1.4 overlap?

    >>> import numpy as np
    >>> scores = np.arange(15) / 10
    >>> mass = np.array([scores < 0.95, scores > 0.45], dtype=float)
    >>> shared = common_support(scores, mass)
    >>> shared.low, shared.high, shared.share
    (0.5, 0.9, array([0.5, 0.5]))

    From 0.5 to 0.9, with half of each group.
    """
    ends = np.array([weighted_quantile(support, m, TAILS) for m in mass])
    low, high = float(ends[:, 0].max()), float(ends[:, 1].min())
    inside = (support >= low) & (support <= high)
    return CommonSupport(low=low, high=high, share=mass[:, inside].sum(axis=1) / mass.sum(axis=1))


def worst_ordering_violation(
    points: FloatArray, curves: FloatArray, covariance: FloatArray
) -> OrderingViolation | None:
    """Look for a lower score that means a higher outcome than a higher score in the other group.

    Parameters
    ----------
    points : array of shape (p,)
        Scores, ascending.
    curves : array of shape (2, p)
        Estimated mean outcome of each group.
    covariance : array of shape (2 * p, 2 * p)
        Of the two curves, one after the other.

    Returns
    -------
    OrderingViolation or None
        `None` with fewer than two points.

    Notes
    -----
    Second half of Definition 2 of the paper. Every pair of scores in both directions is tested
    one-sided; the smallest p-value is multiplied by their number. The power of this check has not
    been studied.
    """
    p = len(points)
    low, high = np.triu_indices(p, k=1)
    if not len(low):
        return None
    best: OrderingViolation | None = None
    for group in (0, 1):
        i, j = group * p + low, (1 - group) * p + high
        gap = curves[group, low] - curves[1 - group, high]
        variance = covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j]
        z = gap / np.sqrt(np.maximum(variance, 1e-300))
        k = int(np.argmax(z))
        p_value = min(1.0, float(special.ndtr(-z[k])) * 2 * len(low))
        if best is None or p_value < best.p_value:
            best = OrderingViolation(
                score_low=float(points[low[k]]),
                score_high=float(points[high[k]]),
                group_low=group,
                gap=float(gap[k]),
                p_value=p_value,
            )
    return best
