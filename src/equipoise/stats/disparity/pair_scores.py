r"""Score roots of two proportions, from counts, for many pairs at once.

The root of the hypothesis :math:`p_1 = r p_2` or :math:`p_1 = p_2 + d` is that of Miettinen and
Nurminen (1985) [1]_. Where a fitted count is below one the normal law of the score fails, and the
root is the normal quantile of the exact tail at the fitted rates instead. The root decreases in the
hypothesised value, so that p-values and intervals agree.

References
----------
.. [1] O. Miettinen and M. Nurminen (1985), Comparative analysis of two rates, Statistics in
   Medicine 4, 213-226. doi:10.1002/sim.4780040211
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import BoolArray, FloatArray, IntArray, Scale
from equipoise.stats.binomial import difference_fit, probability, upper_tail
from equipoise.stats.inversion import invert

__all__ = ["ProportionPairs", "outer_ends", "ratio_fit"]

# A count expected under the null below this needs the exact tail: without it the joint test of one
# large and six small categories has a size of .095 at a rate of .02, with it .007.
_FEW = 1.0
# Such a sample is nearly Poisson with mean below one: further counts have no probability.
_COUNTS = 40
# With more than this observed in every cell, fitted counts below one are out of reach of any test.
_MANY = 15.0
_HALVINGS = 60
_GRID = 31
# Roots within the first are never decisive; beyond the second the score bounds the exact tail.
_NEAR, _FAR = 1.0, 2.0
_ROUNDING = 1e-9
# Positions of ratios are r / (1 + r); this one stands for infinity.
_LAST = 1.0 - 1e-13
_ENDS: dict[Scale, tuple[float, float]] = {"difference": (-1.0, 1.0), "ratio": (0.0, _LAST)}
_FIRST_STEP = 0.01


@dataclass(frozen=True, slots=True)
class ProportionPairs:
    """Pairs of independent binomial counts, and the scale on which their rates are compared.

    Parameters
    ----------
    x1, n1, x2, n2 : array of shape (e,)
        Ones and rows of the first and of the second sample.
    scale : {"difference", "ratio"}
        Whether the hypothesised value is p1 - p2 or p1 / p2.
    """

    x1: FloatArray
    n1: FloatArray
    x2: FloatArray
    n2: FloatArray
    scale: Scale

    def take(self, which: IntArray) -> "ProportionPairs":
        """Return some of the pairs.

        Parameters
        ----------
        which : array of int
            Their numbers.

        Returns
        -------
        ProportionPairs
        """
        x1, n1, x2, n2 = (part[which] for part in (self.x1, self.n1, self.x2, self.n2))
        return ProportionPairs(x1=x1, n1=n1, x2=x2, n2=n2, scale=self.scale)

    @property
    def estimate(self) -> FloatArray:
        """Observed differences or ratios; a ratio to zero is infinite, and of two zeros NaN."""
        if self.scale == "difference":
            return self.x1 / self.n1 - self.x2 / self.n2
        with np.errstate(divide="ignore", invalid="ignore"):
            return (self.x1 * self.n2) / (self.x2 * self.n1)

    def root(self, null: FloatArray) -> FloatArray:
        """Signed root of each pair at a hypothesised value.

        Parameters
        ----------
        null : array of shape (e,)
            Hypothesised values: ratios of at least zero, or differences within [-1, 1].

        Returns
        -------
        array of shape (e,)
            About standard normal under the null; positive when more was observed. It decreases in
            `null`.

        Examples
        --------
        Of 48 women 5 were selected, of 60 men 14. Is the ratio of rates one, or four fifths?

        >>> x1, n1, x2, n2 = np.array([[5.0], [48.0], [14.0], [60.0]])
        >>> pair = ProportionPairs(x1=x1, n1=n1, x2=x2, n2=n2, scale="ratio")
        >>> [round(float(pair.root(np.array([ratio]))[0]), 2) for ratio in (1.0, 0.8)]
        [-1.74, -1.24]

        Neither is excluded at two standard deviations.
        """
        return self.root_within(np.asarray(null, dtype=np.float64), self._limits())

    def interval(self, critical: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Values whose root is between minus and plus `critical`.

        Parameters
        ----------
        critical : float or array of shape (e,)
            1.96 for a 95% interval of one pair.

        Returns
        -------
        low, high : array of shape (e,)
            A ratio to a rate that may be zero has an infinite upper end.
        """
        limits = self._limits()

        def root(null: FloatArray, which: IntArray) -> FloatArray:
            return self.take(which).root_within(null, (limits[0][which], limits[1][which]))

        return outer_ends(root, self.estimate, self._first_step(), critical, scale=self.scale)

    def _first_step(self) -> FloatArray:
        """Rough standard error of the difference, or of the logarithm of the ratio."""
        a, b = self.x1 + 0.5, self.x2 + 0.5
        if self.scale == "ratio":
            return np.sqrt(1.0 / a + 1.0 / b)
        return np.sqrt(
            a * (self.n1 + 1.0 - a) / (self.n1 + 1.0) ** 3
            + b * (self.n2 + 1.0 - b) / (self.n2 + 1.0) ** 3
        )

    def _fit(self, null: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.scale == "difference":
            return difference_fit(self.x1, self.n1, self.x2, self.n2, null)
        return ratio_fit(self.x1, self.n1, self.x2, self.n2, null)

    def _smallest_count(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Smallest fitted number of ones or zeros in either sample."""
        one = self.n1 * np.minimum(first, 1.0 - first)
        two = self.n2 * np.minimum(second, 1.0 - second)
        return np.asarray(np.minimum(one, two))

    def _few(self, first: FloatArray, second: FloatArray) -> BoolArray:
        return np.asarray(self._smallest_count(first, second) < _FEW)

    def _slopes(self, null: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients of the two rates in the contrast, scaled so that neither is infinite."""
        if self.scale == "difference":
            return np.ones_like(null), np.ones_like(null)
        large = null > 1.0
        with np.errstate(divide="ignore"):
            return np.where(large, 1.0 / np.maximum(null, 1.0), 1.0), np.where(large, 1.0, null)

    def _score(self, null: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        a, b = self._slopes(null)
        gap = a * self.x1 / self.n1 - b * self.x2 / self.n2
        gap -= null if self.scale == "difference" else 0.0
        variance = a**2 * first * (1.0 - first) / self.n1 + b**2 * second * (1.0 - second) / self.n2
        n = self.n1 + self.n2
        with np.errstate(divide="ignore", invalid="ignore"):
            root = gap / np.sqrt(variance * n / (n - 1.0))
        return np.where(np.abs(gap) <= _ROUNDING / n, 0.0, root)

    def _exact(
        self,
        null: FloatArray,
        first: FloatArray,
        second: FloatArray,
        score: FloatArray,
        which: BoolArray,
    ) -> FloatArray:
        """Normal quantile of the tail of the contrast at the fitted rates, never past zero."""
        a, b = self._slopes(null[which])
        n1, n2, side = self.n1[which], self.n2[which], score[which]
        one = _Sample(self.x1[which], n1, first[which], a / n1)
        two = _Sample(self.x2[which], n2, second[which], -b / n2)
        swap = two.smaller_count < one.smaller_count
        tail = _tail(one.merge(two, swap), two.merge(one, swap), np.where(side > 0, 1.0, -1.0))
        z = -special.ndtri(np.clip(tail, 1e-300, 0.5))
        # Far out the tail may be more extreme than the score, which takes over further in.
        return np.asarray(np.sign(side) * np.minimum(z, np.maximum(np.abs(side), _FAR)))

    def score_limits(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest root of the score: the exact roots where the exact tail takes over.

        Further out the exact tail may be less extreme than the score was; what is not rejected
        there is not rejected further in either.

        Returns
        -------
        low, high : array of shape (e,)
        """
        start, end = _ENDS[self.scale]
        low, high = self._takeover(end), self._takeover(start)
        return np.minimum(low, -_NEAR), np.maximum(high, _NEAR)

    def _limits(self) -> tuple[FloatArray, FloatArray]:
        """Limits of the score where counts are small; elsewhere none."""
        low, high = np.full(len(self.n1), -np.inf), np.full(len(self.n1), np.inf)
        fewest = np.minimum(
            np.minimum(self.x1, self.n1 - self.x1), np.minimum(self.x2, self.n2 - self.x2)
        )
        few = np.flatnonzero(fewest < _MANY)
        if len(few):
            low[few], high[few] = self.take(few).score_limits()
        return low, high

    def root_within(self, null: FloatArray, limits: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Signed roots with known limits of the score.

        Parameters
        ----------
        null : array of shape (e,)
            Hypothesised values.
        limits : pair of arrays of shape (e,)
            Smallest and largest root of the score, as in `score_limits`.

        Returns
        -------
        array of shape (e,)
        """
        first, second = self._fit(null)
        score = self._score(null, first, second)
        few = self._few(first, second) & (score != 0.0)
        root = np.clip(score, *limits)
        root[few] = self._exact(null, first, second, score, few)
        return root

    def _takeover(self, end: float) -> FloatArray:
        """Exact root where, on the way to one end, a fitted count falls below one."""
        near = self._roomiest()
        far = np.full(len(near), end)
        for _ in range(_HALVINGS):
            middle = 0.5 * (near + far)
            few = self._few(*self._fit(_value(middle, self.scale)))
            near, far = np.where(few, near, middle), np.where(few, middle, far)
        at = _value(far, self.scale)
        first, second = self._fit(at)
        score = self._score(at, first, second)
        return self._exact(at, first, second, score, np.ones(len(at), dtype=np.bool_))

    def _roomiest(self) -> FloatArray:
        """Position with the largest of the smallest fitted counts, on a grid."""
        grid = np.linspace(*_ENDS[self.scale], _GRID + 2)[1:-1]
        room = np.stack(
            [
                self._smallest_count(*self._fit(_value(np.full(len(self.n1), at), self.scale)))
                for at in grid
            ]
        )
        return np.asarray(grid[room.argmax(axis=0)])


def outer_ends(
    root: Callable[[FloatArray, IntArray], FloatArray],
    estimate: FloatArray,
    se: FloatArray,
    critical: FloatArray | float,
    *,
    scale: Scale,
) -> tuple[FloatArray, FloatArray]:
    """Ends of the interval of values with a root between minus and plus `critical`.

    Parameters
    ----------
    root : callable
        Signed roots of the pairs with the given numbers at one hypothesised value each, decreasing
        in that value.
    estimate : array of shape (e,)
        Where the search starts; infinite and undefined ratios are allowed.
    se : array of shape (e,)
        Rough standard error of the difference, or of the logarithm of the ratio: the first step.
    critical : float or array of shape (e,)
        Largest absolute root that is not rejected.
    scale : {"difference", "ratio"}
        Differences of rates run from -1 to 1, ratios from zero to infinity.

    Returns
    -------
    low, high : array of shape (e,)
        The limits of the scale where nothing on that side is rejected.
    """
    limit = np.broadcast_to(np.asarray(critical, dtype=np.float64), estimate.shape)
    start, end = _ENDS[scale]
    inside = np.clip(_position(np.where(np.isnan(estimate), 1.0, estimate), scale), start, end)
    step = se if scale == "difference" else se * np.maximum(inside * (1.0 - inside), 1e-3)

    def scaled(position: FloatArray, which: IntArray, _: int) -> FloatArray:
        return root(_value(position, scale), which) / limit[which]

    low, high = invert(
        scaled,
        inside,
        # A ratio of zero has no rough error. A search from the far end would miss values rejected
        # near by where the root is bounded.
        np.where(np.isfinite(step), step, _FIRST_STEP) * limit,
        critical=1.0,
        low=np.full(len(inside), start),
        high=np.full(len(inside), end),
    )
    return _value(low, scale), _value(high, scale)


def _position(value: FloatArray, scale: Scale) -> FloatArray:
    """Where a value is on its line: differences as they are, ratios at r / (1 + r)."""
    if scale == "difference":
        return value
    finite = np.where(np.isinf(value), 0.0, value)
    return np.where(np.isinf(value), _LAST, finite / (1.0 + finite))


def _value(position: FloatArray, scale: Scale) -> FloatArray:
    if scale == "difference":
        return position
    return np.where(position >= _LAST, np.inf, position / (1.0 - position))


def ratio_fit(
    x1: FloatArray, n1: FloatArray, x2: FloatArray, n2: FloatArray, ratio: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Most likely pair of proportions with a given ratio.

    Parameters
    ----------
    x1, n1, x2, n2 : array
        Ones and rows of the two samples.
    ratio : array
        First over second proportion, of at least zero.

    Returns
    -------
    first, second : array

    Examples
    --------
    >>> one = [np.array([value]) for value in (5.0, 48.0, 14.0, 60.0, 1.0)]
    >>> [float(rate[0]) == 19 / 108 for rate in ratio_fit(*one)]
    [True, True]
    """
    large = ratio > 1.0
    # The same problem read from the other side keeps all coefficients finite.
    with np.errstate(divide="ignore"):
        r = np.where(large, 1.0 / np.maximum(ratio, 1.0), ratio)
    xa, na, xb, nb = (
        np.where(large, other, own) for own, other in ((x1, x2), (n1, n2), (x2, x1), (n2, n1))
    )
    a, b, c = (na + nb) * r, r * (na + xb) + xa + nb, xa + xb
    # [1] p. 216, in the form without cancellation.
    rate = 2.0 * c / (b + np.sqrt(np.maximum(b**2 - 4.0 * a * c, 0.0)))
    rate = np.minimum(rate, 1.0)
    return np.where(large, rate, r * rate), np.where(large, r * rate, rate)


@dataclass(frozen=True, slots=True)
class _Sample:
    """Count, rows, fitted rate, and what one more of the count adds to the contrast."""

    x: FloatArray
    n: FloatArray
    rate: FloatArray
    step: FloatArray

    @property
    def smaller_count(self) -> FloatArray:
        return np.asarray(self.n * np.minimum(self.rate, 1.0 - self.rate))

    def merge(self, other: "_Sample", swap: BoolArray) -> "_Sample":
        """Return this sample, or the other one where `swap` is true."""
        return _Sample(
            np.where(swap, other.x, self.x),
            np.where(swap, other.n, self.n),
            np.where(swap, other.rate, self.rate),
            np.where(swap, other.step, self.step),
        )


def _tail(few: _Sample, other: _Sample, side: FloatArray) -> FloatArray:
    """P(side (D - observed) >= 0) for D the sum of steps times counts; `few` is enumerated."""
    from_zero = few.rate <= 0.5
    edge = np.where(from_zero, 0.0, np.maximum(few.n - _COUNTS, 0.0))
    count = edge[:, None] + np.arange(_COUNTS + 1.0)
    chance = probability(count, few.n[:, None], few.rate[:, None])
    # side * (step (count - x) + step' (other - x')) >= 0, solved for the other count.
    ahead = (side * few.step)[:, None] * (count - few.x[:, None])
    step = (side * other.step)[:, None]
    tiny = _ROUNDING * (np.abs(few.step) + np.abs(other.step))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = other.x[:, None] - ahead / step
    up = upper_tail(np.ceil(needed - _ROUNDING), other.n[:, None], other.rate[:, None])
    down = upper_tail(
        other.n[:, None] - np.floor(needed + _ROUNDING), other.n[:, None], 1.0 - other.rate[:, None]
    )
    # A second rate that does not enter (ratio zero) decides nothing.
    alone = np.where(ahead >= -tiny, 1.0, 0.0)
    reach = np.where(step > 0, up, np.where(step < 0, down, alone))
    return np.asarray((chance * reach).sum(axis=1))
