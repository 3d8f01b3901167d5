r"""The gain of a candidate that was chosen because it looked best.

Whoever is chosen among many by their estimates was lucky on average: the estimate of the winner is
too large. Given everything that is independent of it, the winner's estimate is normal, cut off
where another candidate would have won; the value at which what was observed is the median of that
law is median-unbiased. The hybrid of [1]_ also uses that the truth lies within a wide joint
interval, which keeps the correction from running away when a rival is close.

References
----------
.. [1] I. Andrews, T. Kitagawa and A. McCloskey (2024), Inference on winners. Quarterly Journal of
   Economics 139, 305-358. https://doi.org/10.1093/qje/qjad043
"""

import numpy as np

from equipoise._typing import FloatArray, Rng
from equipoise.stats.improvement.candidates import N_DRAWS, CandidateLines, joint_law

__all__ = ["winner_gain"]

BETA = 0.005
REACH = 8.0
GRID = 1601
HALVINGS = 50


def winner_gain(
    lines: CandidateLines,
    *,
    lower: float = -np.inf,
    ways: int = 1,
    n_draws: int = N_DRAWS,
    rng: Rng = None,
) -> float:
    """Return the reduction of the gap of the candidate with the largest z, without its luck.

    Where one comparison decides, it is too large as often as too small. Of several that are nearly
    tied (many groups, several criteria) the least is taken, which is too small more often.

    Parameters
    ----------
    lines : CandidateLines
        Requirements of all candidates, tested together.
    lower : float
        Joint lower bound of the same reduction: what is excluded is not told as the estimate.
    ways : int
        How many hypotheses in a row are one candidate, the gaps of the status quo pointing in
        different ways: they are no rivals of each other.
    n_draws : int
        Draws of the joint law.
    rng : numpy.random.Generator, int or None
        For the joint law.

    Returns
    -------
    float
        By how much the winner exceeds the requirement on the gap that it meets least.

    Examples
    --------
    One candidate of two is far ahead; it was not luck that made it win.

    >>> lines = CandidateLines(
    ...     estimate=np.array([9.0, 0.0]), se=np.ones(2), df=np.full(2, 1e9),
    ...     loadings=np.eye(2), owner=np.array([0, 1]), accuracy=np.zeros(2, dtype=bool))
    >>> round(winner_gain(lines, rng=1), 3)
    9.0
    """
    owner = int(np.argmax(lines.smallest_z))
    mine = np.flatnonzero((lines.owner == owner) & lines.shrinks)
    target = int(mine[np.argmin(lines.estimate[mine])])
    se, seen = float(lines.se[target]), float(lines.estimate[target])
    if se == 0.0:
        return seen
    shift = np.linspace(-REACH, REACH, GRID)
    won = _wins(lines, owner, target, shift, ways)
    gaps = lines.of(lines.shrinks)
    reach = joint_law(gaps, n_draws=n_draws, rng=rng).reach_of_both_signs(BETA)
    # In standard errors from what was seen; the chance of less falls as the truth rises.
    low, high = -reach, reach
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _below(shift, won, middle, reach) > 0.5 else (low, middle)
    return max(seen + se * (low + high) / 2.0, lower)


def _wins(
    lines: CandidateLines, owner: int, target: int, shift: FloatArray, ways: int
) -> FloatArray:
    """Whether the same candidate would be reported, the rest of the data being equal.

    That another of its lines would be the smallest is not held against it: the two lines of a gap
    that is nearly closed are nearly tied, and given which is smaller the estimate would exceed the
    gap itself.
    """
    # What is independent of the target stays; the others move with it by their correlation.
    slope = lines.loadings @ lines.loadings[target]
    varies = lines.se > 0
    z = np.where(varies, lines.estimate / np.where(varies, lines.se, 1.0), -np.inf)
    smallest = np.full((len(shift), lines.n_candidates), np.inf)
    for line, k in enumerate(lines.owner):
        smallest[:, k] = np.minimum(smallest[:, k], z[line] + slope[line] * shift)
    found: FloatArray = (smallest.argmax(axis=1) // ways == owner // ways).astype(np.float64)
    found[np.abs(shift).argmin()] = 1.0
    return found


def _below(shift: FloatArray, won: FloatArray, truth: float, reach: float) -> float:
    """Chance of an estimate up to the one seen, given that it won and lies within reach."""
    near = np.abs(shift - truth) <= reach
    mass = won * near * np.exp(-0.5 * (shift - truth) ** 2)
    total = float(mass.sum())
    if total == 0.0:
        return float(truth < 0.0)
    seen = int(np.abs(shift).argmin())
    return float(mass[:seen].sum() + 0.5 * mass[seen]) / total
