r"""Estimates with confidence limits at any level, for many groups at once.

Each class holds arrays over groups and answers two questions that are inverses of each other: which
limits belong to z normal standard errors, and at which z does a limit reach a hypothesised value.
The test and the interval of a contrast can therefore not disagree.

References
----------
.. [1] T. Tango (1998), Equivalence test and confidence interval for the difference in proportions
   for the paired-sample design, Statistics in Medicine 17, 891-908.
   doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B
.. [2] O. Miettinen and M. Nurminen (1985), Comparative analysis of two rates, Statistics in
   Medicine 4, 213-226, doi:10.1002/sim.4780040211.
.. [3] G. Y. Zou and A. Donner (2008), Construction of confidence limits about effect measures: a
   general approach, Statistics in Medicine 27, 1693-1702, doi:10.1002/sim.3095.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
from scipy import special

from equipoise._typing import BoolArray, FloatArray
from equipoise.stats.binomial import difference_fit
from equipoise.stats.small_samples import (
    ContrastLaw,
    Links,
    Shape,
    combine,
    contrast_law,
    pooled_shape,
    side_contrast,
)
from equipoise.stats.unit_sums import CrossSums, UnitSums

__all__ = [
    "IntervalEstimate",
    "Mover",
    "PairedChange",
    "RateChange",
    "WilsonRate",
    "stacked_laws",
    "unit_law",
]

EXACT_BELOW = 10
"""Fewer changed rows than this are tested by the exact binomial law."""

_STEPS = 60
_FAR = 38.0


class IntervalEstimate(Protocol):
    """An estimate for each of m groups with limits at any level; NaN where there is none."""

    @property
    def estimate(self) -> FloatArray:
        """Point estimates, (m,)."""

    def interval(self, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values whose root is at most `critical` in size."""

    def root(self, null: FloatArray) -> FloatArray:
        """Signed root: the z at which the limit on the side of `null` reaches it."""


@dataclass(frozen=True, slots=True)
class PairedChange:
    r"""Change of a rate on the same rows, by Tango's score.

    Parameters
    ----------
    gained, lost, n : array of shape (m,)
        Rows that went from 0 to 1, from 1 to 0, and all rows.
    exact_below : int, default 10
        With fewer changed rows the test of no change is exact: gained is binomial with probability
        1/2 given gained + lost. The limits reach zero wherever that test does not reject.

    Notes
    -----
    By enumeration up to 300 rows, the test of no change at a nominal 5% rejects at most .054 when
    up to half of the rows change, and .065 when all of them do; at 1%, at most .010 and .0135.
    """

    gained: FloatArray
    lost: FloatArray
    n: FloatArray
    exact_below: int = EXACT_BELOW

    @property
    def estimate(self) -> FloatArray:
        """Rate after minus rate before."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return (self.gained - self.lost) / self.n

    def root(self, null: FloatArray) -> FloatArray:
        """Signed root of the test that the change is `null`; decreasing in `null`."""
        root = _tango_root(self.gained, self.lost, self.n, null)
        within = (null * self.estimate >= 0.0) & (np.abs(null) <= np.abs(self.estimate))
        size = np.where(
            self._exact & within, np.minimum(np.abs(root), self._exact_root), np.abs(root)
        )
        return np.sign(root) * size

    def interval(self, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Changes that the test does not reject."""

        def root(null: FloatArray) -> FloatArray:
            return _tango_root(self.gained, self.lost, self.n, null)

        low, high = _score_limits(root, self.estimate, critical)
        zero = np.zeros_like(self.n)
        keeps_zero = self._exact & (self._exact_root <= critical)
        low = np.where(keeps_zero, np.minimum(low, zero), low)
        return low, np.where(keeps_zero, np.maximum(high, zero), high)

    @property
    def _exact(self) -> BoolArray:
        return np.asarray((self.gained + self.lost < self.exact_below) & (self.n > 0))

    @property
    def _exact_root(self) -> FloatArray:
        changed, more = self.gained + self.lost, np.maximum(self.gained, self.lost)
        # P(X >= more) for X binomial(changed, 1/2), doubled.
        tail = special.betainc(np.maximum(more, 1.0), changed - more + 1.0, 0.5)
        p = np.where(more > 0, np.minimum(2.0 * tail, 1.0), 1.0)
        return np.asarray(-special.ndtri(p / 2.0))


def _tango_root(
    gained: FloatArray, lost: FloatArray, n: FloatArray, null: FloatArray
) -> FloatArray:
    d = null
    b = -gained - lost + (2.0 * n - gained + lost) * d
    c = -lost * d * (1.0 - d)
    with np.errstate(invalid="ignore", divide="ignore"):
        q = (np.sqrt(np.maximum(b**2 - 8.0 * n * c, 0.0)) - b) / (4.0 * n)
        variance = n * (2.0 * q + d * (1.0 - d))
        gap = gained - lost - n * d
        root = gap / np.sqrt(np.maximum(variance, 0.0))
    return np.where(gap == 0.0, 0.0, np.clip(root, -1e3, 1e3))


@dataclass(frozen=True, slots=True)
class WilsonRate:
    """A rate with Wilson's limits.

    Parameters
    ----------
    ones, n : array of shape (m,)
        Ones and rows.
    """

    ones: FloatArray
    n: FloatArray

    @property
    def estimate(self) -> FloatArray:
        """Observed rate."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.ones / self.n

    def root(self, null: FloatArray) -> FloatArray:
        """Score root of the test that the rate is `null`."""
        with np.errstate(invalid="ignore", divide="ignore"):
            root = (self.ones - self.n * null) / np.sqrt(self.n * null * (1.0 - null))
        return np.where(self.ones == self.n * null, 0.0, root)

    def interval(self, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rates that the score test does not reject."""
        z = critical
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = (self.ones + z**2 / 2.0) / (self.n + z**2)
            spread = self.ones * (self.n - self.ones) / self.n + z**2 / 4.0
            half = z * np.sqrt(spread) / (self.n + z**2)
        return middle - half, middle + half


@dataclass(frozen=True, slots=True)
class RateChange:
    """Difference of the rates of two independent samples, by Miettinen and Nurminen's score.

    Parameters
    ----------
    ones, n : array of shape (m,)
        The later sample.
    ones_before, n_before : array of shape (m,)
        The earlier sample.
    """

    ones: FloatArray
    n: FloatArray
    ones_before: FloatArray
    n_before: FloatArray

    @property
    def estimate(self) -> FloatArray:
        """Rate after minus rate before."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.ones / self.n - self.ones_before / self.n_before

    def root(self, null: FloatArray) -> FloatArray:
        """Signed root of the score test that the difference is `null`."""
        d = np.asarray(null, dtype=np.float64) + np.zeros_like(self.n)
        p1, p0 = difference_fit(self.ones, self.n, self.ones_before, self.n_before, d)
        total = self.n + self.n_before
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = p1 * (1.0 - p1) / self.n + p0 * (1.0 - p0) / self.n_before
            root = (self.estimate - d) / np.sqrt(variance * total / (total - 1.0))
        return np.where(self.estimate == d, 0.0, np.clip(root, -1e3, 1e3))

    def interval(self, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Differences that the test does not reject."""
        return _score_limits(self.root, self.estimate, critical)


@dataclass(frozen=True, slots=True)
class Mover:
    r"""A sum of independent estimates with limits from those of its parts.

    .. math:: L = \hat\theta - \sqrt{\textstyle\sum_k c_k^2 (\hat\theta_k - l_k)^2}

    with the upper limit in place of the lower for negative coefficients.

    Parameters
    ----------
    parts : tuple of IntervalEstimate
        Independent estimates.
    coefficients : tuple of arrays of shape (m,)
        Their coefficients.
    """

    parts: tuple[IntervalEstimate, ...]
    coefficients: tuple[FloatArray, ...]

    @property
    def estimate(self) -> FloatArray:
        """Sum of the parts."""
        terms = zip(self.parts, self.coefficients, strict=True)
        return np.asarray(sum(c * part.estimate for part, c in terms))

    def interval(self, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Limits from those of the parts."""
        below = above = np.zeros_like(self.coefficients[0])
        for part, c in zip(self.parts, self.coefficients, strict=True):
            low, high = part.interval(critical)
            down, up = c * (part.estimate - low), c * (high - part.estimate)
            below = below + np.where(c > 0, down, up) ** 2
            above = above + np.where(c > 0, up, down) ** 2
        estimate = self.estimate
        return estimate - np.sqrt(below), estimate + np.sqrt(above)

    def root(self, null: FloatArray) -> FloatArray:
        """The z at which a limit reaches `null`, with the sign of estimate - null."""
        estimate = self.estimate
        target = np.broadcast_to(np.asarray(null, dtype=np.float64), estimate.shape)
        above = estimate > target

        def size(z: FloatArray) -> FloatArray:
            low, high = self.interval(z)
            return np.where(above, estimate - low, high - estimate)

        z = _distance(size, np.abs(estimate - target), np.full_like(estimate, _FAR))
        return np.where(above, z, -z)


def _score_limits(
    root: Callable[[FloatArray], FloatArray], estimate: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Differences between -1 and 1 with a root of at most z."""
    down = _distance(lambda x: np.abs(root(estimate - x)), z, 1.0 + estimate)
    up = _distance(lambda x: np.abs(root(estimate + x)), z, 1.0 - estimate)
    return estimate - down, estimate + up


def _distance(
    size: Callable[[FloatArray], FloatArray], target: FloatArray, farthest: FloatArray
) -> FloatArray:
    """Where a function that grows from zero reaches its target, at most `farthest`.

    Roots and limits grow nearly like a power of the distance: the secant through two points on
    logarithmic scales converges in a few steps. Steps that leave the bracket halve it instead.
    """
    shape = np.broadcast_shapes(np.shape(target), np.shape(farthest))
    goal, far = np.broadcast_to(target, shape), np.broadcast_to(farthest, shape)
    moves = (goal > 0.0) & (far > 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        log_goal, high = np.log(np.where(moves, goal, 1.0)), np.log(np.where(moves, far, 1.0))
        low = high - 40.0

        def excess(log_x: FloatArray) -> FloatArray:
            return np.log(size(np.where(moves, np.exp(log_x), 0.0))) - log_goal

        reached = excess(high) > 0.0
        before, x = high - 6.0, high - 3.0
        f_before, f = excess(before), excess(x)
        for _ in range(_STEPS):
            low, high = np.where(f > 0, low, np.maximum(low, x)), np.where(f > 0, x, high)
            step = x - f * (x - before) / (f - f_before)
            inside = (step > low) & (step < high)
            before, f_before = x, f
            x = np.where(np.abs(f) < 1e-13, x, np.where(inside, step, 0.5 * (low + high)))
            if (x == before)[moves & reached].all():
                break
            f = excess(x)
    return np.where(moves, np.where(reached, np.exp(x), far), 0.0)


def unit_law(
    u: FloatArray, w: FloatArray, coefficients: FloatArray, shape: Shape | None = None
) -> ContrastLaw:
    r"""Law of a sum of means whose sides may share units.

    Parameters
    ----------
    u, w : array of shape (n, S)
        Totals of each unit in each of S sides; zero where it has no rows.
    coefficients : array of shape (S,)
        Of the means :math:`\sum u / \sum w`.
    shape : Shape, optional
        Borrowed from sides of the same kind; by default from these.

    Returns
    -------
    ContrastLaw
        Of a single contrast: scalars in its arrays.
    """
    centre = float(u.sum() / w.sum()) if w.sum() else 0.0
    sums = UnitSums.of_units(u.T, w.T, centre=centre)
    links = None
    if np.count_nonzero(w, axis=1).max(initial=0) > 1:
        links = Links.between(sums, CrossSums.of_units(u, w, centre=centre))
    sides = side_contrast(sums, pooled_shape(sums) if shape is None else shape)
    return contrast_law(combine(sides, coefficients, links))


def stacked_laws(laws: Sequence[ContrastLaw]) -> ContrastLaw:
    """Put the laws of single contrasts into arrays.

    Parameters
    ----------
    laws : sequence of ContrastLaw
        Of m contrasts.

    Returns
    -------
    ContrastLaw
        Arrays of shape (m,).
    """
    names = [field.name for field in fields(ContrastLaw)]
    return ContrastLaw(**{name: np.array([getattr(law, name) for law in laws]) for name in names})
