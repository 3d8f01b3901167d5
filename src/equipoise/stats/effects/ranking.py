r"""Whether those who are predicted to gain most gain most: the area under the targeting curve.

Treat the share v of a group with the highest predictions. The rank-weighted average effect is
a mean of effects weighted by rank, :math:`\int_0^1 w(v) \tau(v) dv` ([1]_):
:math:`w(v) = -\log v - 1` for AUTOC, which looks at the very top, and :math:`w(v) = 1/2 - v` for
Qini, which looks at everyone alike. It is zero where predictions tell nothing.

References
----------
.. [1] S. Yadlowsky, S. Fleming, N. Shah, E. Brunskill and S. Wager (2025), Evaluating treatment
   prioritization rules via rank-weighted average treatment effects, Journal of the American
   Statistical Association 120. https://doi.org/10.1080/01621459.2024.2393466
"""

from typing import NamedTuple

import numpy as np

from equipoise._checks import check_option
from equipoise._typing import AnyArray, EffectRanking, FloatArray
from equipoise.stats.rows import check_lengths

__all__ = ["RankedEffect", "ranked_effect"]


class RankedEffect(NamedTuple):
    r"""A rank-weighted average effect, with the influence of each row.

    Parameters
    ----------
    estimate : float
        Zero where predictions tell nothing, negative where they are upside down.
    influence : array of shape (n,)
        Of a row of mass one; their products with the masses add up to zero.
    factor : array of shape (n,)
        a in the estimate :math:`\sum_i m_i a_i \Gamma_i`, m the masses.
    """

    estimate: float
    influence: FloatArray
    factor: FloatArray


def ranked_effect(
    score: AnyArray,
    predicted: AnyArray,
    *,
    kind: EffectRanking = "autoc",
    mass: AnyArray | None = None,
) -> RankedEffect:
    """Estimate how much more those gain who are predicted to gain more.

    Parameters
    ----------
    score : array of shape (n,)
        Doubly robust scores (`effect_scores`).
    predicted : array of shape (n,)
        Predicted effects; only their order counts, and rows with the same one share their rank.
    kind : {"autoc", "qini"}
        Weights of ranks.
    mass : array of shape (n,), optional
        Weight times count.

    Returns
    -------
    RankedEffect

    Examples
    --------
    Four people gain 3, 2, 1 and 0, as predicted.

    >>> import numpy as np
    >>> gains = np.array([3.0, 2.0, 1.0, 0.0])
    >>> ranked_effect(gains, gains, kind="qini").estimate
    0.3125
    >>> ranked_effect(gains, -gains, kind="qini").estimate
    -0.3125
    """
    check_lengths(score=score, predicted=predicted, mass=mass)
    check_option("kind", kind, EffectRanking)
    gamma, f = np.asarray(score, np.float64), np.asarray(predicted, np.float64)
    w = np.ones(len(f)) if mass is None else np.asarray(mass, np.float64)
    # Levels from the highest prediction down, and the share of rows above and up to each.
    level = np.unique(-f, return_inverse=True)[1]
    own = np.bincount(level, w)
    total = own.sum()
    high = np.cumsum(own) / total
    low = np.concatenate([[0.0], high[:-1]])
    middle = 0.5 * (low + high)
    if kind == "qini":
        weight, slope = 0.5 - middle, np.full(len(own), -1.0)
    else:
        # The mean of -log v - 1 over the ranks of a level.
        area = [np.where(v > 0.0, v * np.log(np.maximum(v, 1e-300)), 0.0) for v in (low, high)]
        full = own > 0.0
        weight, slope = np.zeros(len(own)), np.zeros(len(own))
        weight[full] = -(area[1] - area[0])[full] / (high - low)[full]
        slope[full] = -1.0 / middle[full]
    centred = gamma - w @ gamma / total
    estimate = float(np.sum(w * weight[level] * centred) / total)
    # A row moves the rank of everyone with its prediction or a lower one.
    moved = np.bincount(level, w * slope[level] * centred) / total
    below = np.cumsum(moved[::-1])[::-1]
    influence = weight[level] * centred - estimate + below[level] - float(own @ below) / total
    return RankedEffect(estimate, influence / total, weight[level] / total)
