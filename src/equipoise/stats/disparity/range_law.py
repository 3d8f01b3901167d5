r"""Laws of the largest difference among several estimates: all pairs, and all against one.

For k independent standard normal estimates the range has Tukey's law; Hayter (1984) proved that it
is conservative for independent estimates with any variances. One-sided comparisons with a control
have Dunnett's law. Both are one-dimensional integrals. Estimates that share units have no such
formula, and their law is simulated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_rng
from equipoise._typing import FloatArray, IntArray, Rng, Scale
from equipoise.stats.inversion import Bracket, crossing

__all__ = ["CorrelatedLaw", "IndependentLaw", "RangeLaw", "range_quantile", "range_tail"]

_STEP = 1.0 / 32.0
_DRAWS = 50_000
_ROOM, _WIDEST = 1e-6, 60.0


class RangeLaw(Protocol):
    """Law of the roots of pairs of k categories when all are equal."""

    def tail(self, root: FloatArray) -> FloatArray:
        """Chance that the largest absolute root of all pairs is at least `root`."""

    def critical(self, confidence_level: float) -> float:
        """Value that the largest absolute root of all pairs exceeds with chance 1 - level."""

    def one_sided(self, confidence_level: float) -> FloatArray:
        """Of each category, value that the largest root against it exceeds with that chance."""

    def one_sided_tail(self, root: FloatArray) -> FloatArray:
        """Chance that the largest root against category j is at least ``root[:, j]``."""


def range_tail(width: FloatArray, k: int) -> FloatArray:
    r"""Chance that the range of k independent standard normal variables is at least `width`.

    .. math:: k \int \phi(x) [(1 - \Phi(x))^{k-1} - (\Phi(x + q) - \Phi(x))^{k-1}] dx

    by the trapezoidal rule, whose error is below rounding here; small chances keep their digits.

    Parameters
    ----------
    width : array
        Ranges; at or below zero the chance is one.
    k : int
        Number of variables, at least two.

    Returns
    -------
    array

    Examples
    --------
    Two groups of seven differ by three standard errors. How often among equal groups?

    >>> round(float(range_tail(np.array(3.0 * np.sqrt(2.0)), 7)), 3)
    0.043
    """
    q = np.maximum(np.asarray(width, dtype=np.float64), 0.0)
    x = np.arange(-40.0, 12.0, _STEP)
    above, beyond = special.log_ndtr(-x), special.log_ndtr(-(x + q[..., None]))
    kept = np.minimum(np.expm1(np.minimum(beyond - above, 0.0)), 0.0)  # minus P(no overshoot)
    with np.errstate(divide="ignore"):
        inside = (k - 1.0) * np.log(-kept)
    log_density = -0.5 * x**2 - 0.5 * np.log(2.0 * np.pi)
    integrand = -np.exp(log_density + (k - 1.0) * above) * np.expm1(inside)
    return np.asarray(np.minimum(k * integrand.sum(axis=-1) * _STEP, 1.0))


def range_quantile(confidence_level: float, k: int) -> float:
    """Range of k independent standard normal variables that is exceeded with chance 1 - level.

    Parameters
    ----------
    confidence_level : float
        In (0, 1).
    k : int
        Number of variables, at least two.

    Returns
    -------
    float

    Examples
    --------
    >>> [round(range_quantile(0.95, k) / 2**0.5, 3) for k in (2, 3, 7, 14)]
    [1.96, 2.344, 2.948, 3.354]
    """
    return _range_quantile(check_fraction("confidence_level", confidence_level), k)


@cache
def _range_quantile(level: float, k: int) -> float:
    """The quantile; intervals and p-values of one table ask for the same."""

    def excess(q: FloatArray, which: IntArray) -> FloatArray:  # noqa: ARG001
        return 1.0 - level - range_tail(q, k)

    # No less than for two variables, no more than Bonferroni's value for all pairs.
    pairs = np.array([1.0, k * (k - 1.0) / 2.0])
    low, high = -np.sqrt(2.0) * special.ndtri((1.0 - level) / (2.0 * pairs))
    return float(_crossing(excess, np.array([low]), np.array([high]))[0])


def _crossing(
    function: Callable[[FloatArray, IntArray], FloatArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Where increasing functions are zero; between limits, but for errors of the integrals."""
    every = np.arange(len(low))
    near, far = low - _ROOM, high + _ROOM
    below, above = function(near, every), function(far, every)
    for end, value, wrong in ((near, below, below >= 0.0), (far, above, above <= 0.0)):
        which = np.flatnonzero(wrong)
        end[which] = -_WIDEST if end is near else _WIDEST
        value[which] = function(end[which], which)
    return crossing(function, Bracket(near, below, far, above), tolerance=1e-15)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentLaw:
    """Law of the roots of pairs of independent estimates.

    Parameters
    ----------
    shared : array of shape (k, k)
        Part of the variance of the contrast of i with j that is due to j, with values below one;
        the diagonal is not used.
    """

    shared: FloatArray

    @classmethod
    def of(cls, value: FloatArray, variance: FloatArray, scale: Scale) -> "IndependentLaw":
        """Law of the pairs of estimates with known variances.

        Parameters
        ----------
        value, variance : array of shape (k,)
            Estimates, of which ratios are taken, and their variances.
        scale : {"difference", "ratio"}
            The contrast is one estimate minus the other, or minus the ratio times the other.

        Returns
        -------
        IndependentLaw

        Examples
        --------
        >>> law = IndependentLaw.of(np.array([1.0, 2.0]), np.array([1.0, 1.0]), "ratio")
        >>> law.shared.round(2).tolist()
        [[0.5, 0.2], [0.8, 0.5]]
        """
        ratio = np.ones((len(value), len(value)))
        if scale == "ratio":
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.clip(np.nan_to_num(value[:, None] / value, nan=1.0), 1e-6, 1e6)
        due = ratio**2 * variance
        total = due + variance[:, None]
        # Two estimates without variance share alike.
        return cls(shared=np.divide(due, total, out=np.full_like(total, 0.5), where=total > 0.0))

    def tail(self, root: FloatArray) -> FloatArray:
        """Tukey's law, as in `RangeLaw`."""
        return range_tail(np.sqrt(2.0) * np.asarray(root), len(self.shared))

    def critical(self, confidence_level: float) -> float:
        """Tukey's value, as in `RangeLaw`."""
        return range_quantile(confidence_level, len(self.shared)) / float(np.sqrt(2.0))

    def one_sided(self, confidence_level: float) -> FloatArray:
        """Dunnett's value, as in `RangeLaw`."""
        level = check_fraction("confidence_level", confidence_level)

        def excess(d: FloatArray, which: IntArray) -> FloatArray:
            return self._inside(d, which) - level

        # No less than for one comparison, no more than Bonferroni's value for all of them.
        k = len(self.shared)
        low, high = -special.ndtri((1.0 - level) / np.array([1.0, k - 1.0]))
        return _crossing(excess, np.full(k, low), np.full(k, high))

    def one_sided_tail(self, root: FloatArray) -> FloatArray:
        """Dunnett's law, as in `RangeLaw`."""
        every = np.arange(len(self.shared))
        beyond = np.array([1.0 - self._inside(row, every) for row in root])
        return np.asarray(np.clip(beyond.reshape(root.shape), 0.0, 1.0))

    def _inside(self, d: FloatArray, which: IntArray) -> FloatArray:
        r"""Chance that no root against j exceeds d, for each j of `which`.

        The root is :math:`b_i U - \sqrt{1 - b_i^2} U_i` with :math:`b_i^2` the shared part of the
        variance, so that given U the roots are independent.
        """
        inside = np.empty(len(which))
        for place, j in enumerate(which):
            part = np.delete(self.shared[:, j], j)
            shared, own = np.sqrt(part), np.sqrt(1.0 - part)
            # Steps of .15 of the narrowest curve: the trapezoidal rule is right to 1e-12 with up to
            # 200 others, measured against steps five times as fine.
            with np.errstate(divide="ignore"):
                step = float(np.clip(0.15 * np.min(own / shared), _STEP, 0.25))
            u = np.arange(-9.0, 9.0, step)
            density = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi) * step
            chance = special.log_ndtr((d[place] + shared[:, None] * u) / own[:, None]).sum(axis=0)
            inside[place] = density @ np.exp(chance)
        return inside


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatedLaw:
    """Law of the roots of pairs of estimates that share units, by simulation.

    Parameters
    ----------
    largest : array of shape (draws,)
        Largest absolute roots of all pairs, in increasing order.
    against : array of shape (draws, k)
        Largest roots of the others against each category, in increasing order.
    """

    largest: FloatArray
    against: FloatArray

    @classmethod
    def simulate(
        cls, correlation: FloatArray, first: IntArray, second: IntArray, *, rng: Rng = None
    ) -> "CorrelatedLaw":
        """Draw the roots of all pairs of categories.

        Parameters
        ----------
        correlation : array of shape (e, e)
            Of the roots of the pairs. The draws depend on their order: sort categories by numbers,
            not by names.
        first, second : array of shape (e,)
            Categories of each pair, every two of them once.
        rng : int, Generator or None
            Source of randomness; None means seed 0.

        Returns
        -------
        CorrelatedLaw
        """
        # A triangular root, so that the last digits of the matrix do not turn the draws.
        ridge = 1e-9 * np.eye(len(correlation))
        factor = np.linalg.cholesky(correlation + ridge)
        draws = check_rng(rng).standard_normal((_DRAWS, len(factor))) @ factor.T
        against = np.full((_DRAWS, int(max(first.max(), second.max())) + 1), -np.inf)
        for pair, (i, j) in enumerate(zip(first, second, strict=True)):
            np.maximum(against[:, j], draws[:, pair], out=against[:, j])
            np.maximum(against[:, i], -draws[:, pair], out=against[:, i])
        largest = np.abs(draws).max(axis=1)
        return cls(largest=np.sort(largest), against=np.sort(against, axis=0))

    def tail(self, root: FloatArray) -> FloatArray:
        """Share of the draws, never below the chance of a single pair, nor zero."""
        r = np.asarray(root, dtype=np.float64)
        above = len(self.largest) - np.searchsorted(self.largest, r, side="left")
        share = (1.0 + above) / (1.0 + len(self.largest))
        return np.where(r <= 0.0, 1.0, np.maximum(share, 2.0 * special.ndtr(-np.abs(r))))

    def critical(self, confidence_level: float) -> float:
        """The smallest value whose `tail` is at most 1 - level."""
        level = check_fraction("confidence_level", confidence_level)
        rank = max(int(np.floor((1.0 - level) * (len(self.largest) + 1) + 1e-9)) - 1, 0)
        simulated = self.largest[len(self.largest) - rank - 1] if rank else self.largest[-1]
        return max(float(simulated), -float(special.ndtri((1.0 - level) / 2.0)))

    def one_sided(self, confidence_level: float) -> FloatArray:
        """Quantiles of the draws, as in `RangeLaw`."""
        level = check_fraction("confidence_level", confidence_level)
        return np.asarray(np.quantile(self.against, level, axis=0))

    def one_sided_tail(self, root: FloatArray) -> FloatArray:
        """Shares of the draws, never below the chance of a single pair."""
        draws = len(self.against)
        share = [
            (draws - np.searchsorted(column, r, side="left") + 1.0) / (draws + 1.0)
            for column, r in zip(self.against.T, root.T, strict=True)
        ]
        return np.asarray(np.maximum(np.array(share).T, special.ndtr(-root)))
