"""Estimates that are means to first order: intervals and joint tests from the influence of rows.

The area under the ROC curve is one of them.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import FloatArray, IntArray, Rng
from equipoise.stats.multiplicity import SimultaneousTest, max_t_test
from equipoise.stats.summary import Interval

__all__ = [
    "InfluenceSums",
    "auc_influence",
    "without_noise",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InfluenceSums:
    """Sums of influence values over independent units.

    Parameters
    ----------
    weight, count : array of shape (n,)
        Sampling weight of a row, and how many rows it stands for.
    unit : array of int of shape (n,), optional
        Who a row belongs to; by default rows are independent.
    """

    weight: FloatArray
    count: FloatArray
    unit: IntArray | None = None

    @property
    def mass(self) -> FloatArray:
        """Weight times count."""
        return self.weight * self.count

    def sums(self, influence: FloatArray) -> FloatArray:
        """Return the influence of each unit.

        Parameters
        ----------
        influence : array of shape (n,)
            Of a row of mass one.

        Returns
        -------
        array
            One entry for each unit, or for each row that stands for `count` of them.
        """
        if self.unit is None:
            return self.weight * influence
        return np.asarray(np.bincount(self.unit, self.mass * influence), dtype=np.float64)

    def interval(self, estimate: float, sums: FloatArray, confidence_level: float) -> Interval:
        r"""Return the interval of one estimate: t, :math:`(\sum \psi^2)^2 / \sum \psi^4` degrees.

        Parameters
        ----------
        estimate : float
            The estimate.
        sums : array
            Influence of each unit.
        confidence_level : float
            Of the interval.

        Returns
        -------
        Interval
        """
        times = self._times
        variance, fourth = float(np.sum(times * sums**2)), float(np.sum(times * sums**4))
        degrees = max(variance**2 / fourth, 1.0 + 1e-9) if fourth > 0.0 else np.inf
        half = -float(special.stdtrit(degrees, 0.5 * (1.0 - confidence_level)) * np.sqrt(variance))
        return Interval(estimate - half, estimate + half)

    def test(
        self, estimate: FloatArray, sums: FloatArray, *, confidence_level: float, rng: Rng = None
    ) -> SimultaneousTest:
        """Test that estimates are zero, all together.

        Parameters
        ----------
        estimate : array of shape (m,)
            The estimates.
        sums : array of shape (m, units)
            Influence of each unit; none is zero throughout.
        confidence_level : float
            Simultaneous level of the intervals.
        rng : numpy.random.Generator or int, optional
            Of the law of the largest statistic.

        Returns
        -------
        SimultaneousTest
        """
        times = self._times
        return max_t_test(
            estimate,
            (sums * times) @ sums.T,
            np.sum(times * sums**4, axis=1),
            confidence_level=confidence_level,
            rng=rng,
        )

    @property
    def _times(self) -> FloatArray | float:
        return self.count if self.unit is None else 1.0


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
