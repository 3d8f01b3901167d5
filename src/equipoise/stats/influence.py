"""Estimates that are means to first order: intervals and joint tests from the influence of rows."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import FloatArray, IntArray, Rng
from equipoise.stats.multiplicity import SimultaneousTest, max_t_test
from equipoise.stats.summary import Interval

__all__ = ["InfluenceSums"]


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
