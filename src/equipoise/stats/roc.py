"""The area under the ROC curve, with the influence of every row."""

import numpy as np

from equipoise._typing import FloatArray

__all__ = ["auc_influence", "without_noise"]


def auc_influence(
    y: FloatArray, score: FloatArray, weight: FloatArray, count: FloatArray
) -> tuple[float, FloatArray]:
    """Return the area under the ROC curve and the influence of a unit of weight of every row.

    Parameters
    ----------
    y : array of shape (n,)
        Outcomes of 0 and 1, both of which occur.
    score : array of shape (n,)
        Higher for those more likely to have the outcome; equal scores count half.
    weight, count : array of shape (n,)
        Sampling weights, and how many rows a row stands for.

    Returns
    -------
    tuple of float and array of shape (n,)

    References
    ----------
    .. [1] E. DeLong, D. DeLong and D. Clarke-Pearson (1988), Comparing the areas under two or more
       correlated receiver operating characteristic curves. Biometrics 44, 837-845.
       https://doi.org/10.2307/2531595

    Examples
    --------
    >>> one = np.ones(4)
    >>> auc_influence(np.array([0.0, 0.0, 1.0, 1.0]), np.array([1.0, 2.0, 2.0, 3.0]), one, one)[0]
    0.875
    """
    levels, place = np.unique(score, return_inverse=True)
    mass = weight * count
    own = [np.bincount(place, mass * (y == k), minlength=len(levels)) for k in (0, 1)]
    size = [part.sum() for part in own]
    below = [(np.cumsum(part) - 0.5 * part)[place] / n for part, n in zip(own, size, strict=True)]
    positive = y == 1.0
    value = float(np.sum(mass * positive * below[0]) / size[1])
    above = without_noise(below[0] - value), without_noise(1.0 - below[1] - value)
    psi = np.where(positive, above[0] / size[1], above[1] / size[0])
    for k, members in enumerate((~positive, positive)):
        # DeLong divides by one less than the number of each class.
        n = size[k] ** 2 / np.sum((count * weight**2)[members])
        psi[members] *= np.sqrt(n / max(n - 1.0, 1.0))
    return value, psi


def without_noise(deviation: FloatArray) -> FloatArray:
    """Return deviations of values between 0 and 1; what rounding leaves of no deviation is zero."""
    return np.where(np.abs(deviation) <= 1e-12, 0.0, deviation)
