r"""How much gaps have grown: :math:`|gap_{new}| - |gap_{old}|`, or the growth with a sign.

A test that takes the sign of the old gap from its estimate has twice its nominal size; here both
signs are tried, each at half the level. The bound holds for every group without further adjustment
when all of them have to pass (intersection-union, [1]_).

References
----------
.. [1] R. L. Berger (1982), Multiparameter hypothesis testing and acceptance sampling,
   Technometrics 24, 295-300, doi:10.1080/00401706.1982.10487790.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_number
from equipoise._typing import FloatArray
from equipoise.stats.disparity.contrasts import IntervalEstimate, Mover

__all__ = ["GapGrowth", "GapKind", "growth_between", "normal_quantile"]

GapKind: TypeAlias = Literal["absolute", "increase", "decrease"]
"""Growth of the size of a gap, or of the gap with its sign upwards or downwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GapGrowth:
    r"""How much a gap may have grown.

    With a and b the old and the new gap, :math:`|b| - |a| = \min_{s = \pm 1} \max(b - s a, -b - s
    a)`, and each of the four contrasts has limits.

    Parameters
    ----------
    difference, total : IntervalEstimate
        b - a and b + a.
    gap_old, gap_new : array of shape (m,)
        The estimates.
    kind : {"absolute", "increase", "decrease"}
        Growth of the size, or of the gap with its sign.
    """

    difference: IntervalEstimate
    total: IntervalEstimate
    gap_old: FloatArray
    gap_new: FloatArray
    kind: GapKind

    @property
    def estimate(self) -> FloatArray:
        """Observed growth."""
        if self.kind == "absolute":
            return np.asarray(np.abs(self.gap_new) - np.abs(self.gap_old))
        return (self.gap_new - self.gap_old) * (1.0 if self.kind == "increase" else -1.0)

    def bound(self, alpha: float = 0.05) -> FloatArray:
        """Upper bound of each growth; NaN where a group has too few units.

        Parameters
        ----------
        alpha : float, default 0.05
            Chance that a growth exceeds its bound.

        Returns
        -------
        array of shape (m,)
        """
        level = check_fraction("alpha", alpha)
        if self.kind != "absolute":
            low, high = self.difference.interval(_quantile(self.gap_new, 1.0 - level))
            return high if self.kind == "increase" else -low
        z = _quantile(self.gap_new, 1.0 - level / 2.0)
        (low, high), (low_total, high_total) = self.difference.interval(z), self.total.interval(z)
        return np.minimum(np.maximum(high, -low_total), np.maximum(high_total, -low))

    def lower_bound(self, alpha: float = 0.05) -> FloatArray:
        """Lower bound of each growth; NaN where a group has too few units.

        Parameters
        ----------
        alpha : float, default 0.05
            Chance that a growth lies below its bound.

        Returns
        -------
        array of shape (m,)
            Above the margin exactly when `p_grown(margin)` is below alpha.
        """
        shrunk = GapGrowth(
            difference=_Negative(self.difference),
            total=self.total,
            gap_old=self.gap_new,
            gap_new=self.gap_old,
            kind=self.kind,
        )
        return -shrunk.bound(alpha)

    def p_within(self, margin: float) -> FloatArray:
        """P-values of the null "grew by the margin or more".

        Parameters
        ----------
        margin : float
            Largest growth that is tolerated.

        Returns
        -------
        array of shape (m,)
            At most alpha exactly when `bound(alpha)` is at most the margin.
        """
        return self._below(check_number("margin", margin), self.difference)

    def p_grown(self, margin: float) -> FloatArray:
        """P-values of the null "grew by at most the margin".

        Parameters
        ----------
        margin : float
            Largest growth under the null.

        Returns
        -------
        array of shape (m,)
        """
        m = check_number("margin", margin)
        if self.kind == "absolute":
            # Old and new change places: |a| - |b| is below -margin.
            return self._below(-m, _Negative(self.difference))
        sign = 1.0 if self.kind == "increase" else -1.0
        return np.asarray(special.ndtr(-sign * self.difference.root(np.array(sign * m))))

    def _below(self, margin: float, difference: IntervalEstimate) -> FloatArray:
        """P-values of "at least the margin" for the growth along a difference."""

        def below(contrast: IntervalEstimate) -> FloatArray:
            return np.asarray(special.ndtr(contrast.root(np.array(margin))))

        if self.kind != "absolute":
            return below(difference if self.kind == "increase" else _Negative(difference))
        first = np.maximum(below(difference), below(_Negative(self.total)))
        second = np.maximum(below(self.total), below(_Negative(difference)))
        return np.minimum(2.0 * np.minimum(first, second), 1.0)


@dataclass(frozen=True, slots=True)
class _Negative:
    """A contrast with the other sign."""

    contrast: IntervalEstimate

    @property
    def estimate(self) -> FloatArray:
        return -self.contrast.estimate

    def interval(self, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = self.contrast.interval(critical)
        return -high, -low

    def root(self, null: FloatArray) -> FloatArray:
        return -self.contrast.root(-np.asarray(null))


@dataclass(frozen=True, slots=True)
class _Reported:
    """Estimates known by an interval: standard errors below and above from its two halves."""

    estimate: FloatArray
    below: FloatArray
    above: FloatArray

    def interval(self, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.estimate - critical * self.below, self.estimate + critical * self.above

    def root(self, null: FloatArray) -> FloatArray:
        distance = self.estimate - null
        return np.asarray(distance / np.where(distance > 0, self.below, self.above))


def growth_between(
    old: FloatArray, new: FloatArray, *, confidence_level: float = 0.95
) -> GapGrowth:
    """Growth of gaps between two independent samples of which only intervals are known.

    Parameters
    ----------
    old, new : array of shape (3, m)
        Estimate, lower and upper end of each gap.
    confidence_level : float, default 0.95
        Of those intervals.

    Returns
    -------
    GapGrowth

    Examples
    --------
    A gap of 2 points (0 to 4) became one of 9 (7 to 11):

    >>> old, new = np.array([[0.02], [0.0], [0.04]]), np.array([[0.09], [0.07], [0.11]])
    >>> growth = growth_between(old, new)
    >>> bool(growth.p_grown(0.0)[0] < 0.001)
    True
    """
    z = normal_quantile((1.0 + check_fraction("confidence_level", confidence_level)) / 2.0)
    parts = tuple(
        _Reported(gap[0], (gap[0] - gap[1]) / z, (gap[2] - gap[0]) / z) for gap in (new, old)
    )
    one = np.ones(new.shape[1])
    return GapGrowth(
        difference=Mover(parts, (one, -one)),
        total=Mover(parts, (one, one)),
        gap_old=old[0],
        gap_new=new[0],
        kind="absolute",
    )


def normal_quantile(probability: float) -> float:
    """Return a quantile of the normal law."""
    return float(special.ndtri(probability))


def _quantile(like: FloatArray, probability: float) -> FloatArray:
    return np.full(np.shape(like), normal_quantile(probability))
