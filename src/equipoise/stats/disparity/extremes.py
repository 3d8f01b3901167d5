r"""Comparison of every category with the highest or the lowest one, which the data chose.

The category with the highest observed rate is not known to have the highest rate: dividing by it as
if it were finds "disparities" among equal groups in most audits. Here every category is compared
with the one that is *truly* highest, whichever that is. If the intervals of all pairs cover
together, at Tukey's critical value, then so does

.. math:: [\min(1, \min_j L_{ij}), \min(1, \min_j U_{ij})]

for the ratio of category i to the highest, because the ratio to the highest is the smallest of the
ratios to all. Lower bounds that certify come from the comparisons with the best of Edwards and Hsu
(1983) [1]_: they are sharper, and never show a gap.

For k independent standard normal estimates the range has Tukey's law; Hayter (1984) [2]_ proved
that it is conservative for independent estimates with any variances. One-sided comparisons with a
control have Dunnett's law. Both are one-dimensional integrals. Estimates that share units have no
such formula, and their law is simulated.

References
----------
.. [1] D. G. Edwards and J. C. Hsu (1983), Multiple comparisons with the best treatment, Journal of
   the American Statistical Association 78, 965-971. doi:10.1080/01621459.1983.10477047
.. [2] A. J. Hayter (1984), A proof of the conjecture that the Tukey-Kramer multiple comparisons
   procedure is conservative, Annals of Statistics 12, 61-75. doi:10.1214/aos/1176346392
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Protocol, TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_number, check_option, check_rng
from equipoise._typing import BoolArray, Extreme, FloatArray, IntArray, Rng, Scale
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.disparity.pair_scores import ProportionPairs
from equipoise.stats.inversion import GREATER, LESS, Bracket, crossing
from equipoise.stats.pairs import Pairs as PairLaw

__all__ = [
    "CorrelatedLaw",
    "ExtremeComparison",
    "IndependentLaw",
    "Means",
    "OnePair",
    "Pairs",
    "PairsOf",
    "RangeLaw",
    "compare_counts_with_extreme",
    "compare_means_with_extreme",
    "permutation_p_value",
    "range_quantile",
    "range_tail",
]


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


class Pairs(Protocol):
    """Pairs of categories with signed roots on the normal scale, decreasing in the null."""

    def root(self, null: FloatArray) -> FloatArray:
        """Root of each pair at a hypothesised ratio or difference."""

    def interval(self, critical: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Values whose root is between minus and plus `critical`."""


class Means(Protocol):
    """Means of k categories and the law of their pairs."""

    @property
    def value(self) -> FloatArray:
        """The means, (k,)."""

    @property
    def variance(self) -> FloatArray:
        """Their variances, (k,)."""

    @property
    def n(self) -> IntArray:
        """Rows, (k,)."""

    def pairs(self, first: IntArray, second: IntArray, scale: Scale) -> Pairs:
        """Pairs of the categories."""

    def pair_correlation(self, first: IntArray, second: IntArray) -> FloatArray | None:
        """Correlation of the roots of pairs; None when the means are independent."""


PairsOf: TypeAlias = Callable[[IntArray, IntArray], Pairs]
"""Pairs with the given first and second categories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremeComparison:
    """Comparison of k categories with the highest or the lowest of them.

    Parameters
    ----------
    value : array of shape (k,)
        The metric in each category.
    reference : {"highest", "lowest"}
        Which category the others are compared with.
    scale : {"difference", "ratio"}
        Category minus the extreme one, or category over it.
    eligible : array of shape (k,)
        Categories that may be the extreme one.
    n : array of shape (k,)
        Rows; of categories that share the extreme value, the one with the most rows is taken.
    """

    value: FloatArray
    reference: Extreme
    scale: Scale
    eligible: BoolArray
    n: FloatArray
    _pairs: PairsOf = field(repr=False)
    _law: RangeLaw = field(repr=False)

    def __post_init__(self) -> None:
        check_option("reference", self.reference, Extreme)
        check_option("scale", self.scale, Scale)
        if len(self.value) < 2 or not self.eligible.any():
            raise InvalidParameterError(
                f"A comparison with the {self.reference} category needs two categories, one of "
                f"them eligible; got {len(self.value)} and {int(self.eligible.sum())} eligible."
            )

    @property
    def extreme(self) -> int:
        """Number of the eligible category with the highest or lowest observed value."""
        sign = 1.0 if self.reference == "highest" else -1.0
        candidates = np.where(self.eligible, sign * self.value, -np.inf)
        best = candidates.max()
        tied = candidates >= best - 1e-12 * abs(best)
        return int(np.where(tied, self.n, -1.0).argmax())

    @property
    def natural(self) -> float:
        """Value of no disparity: one for ratios, zero for differences."""
        return 1.0 if self.scale == "ratio" else 0.0

    @property
    def estimate(self) -> FloatArray:
        """Observed disparities; NaN where the ratio is to zero."""
        other = self.value[self.extreme]
        if self.scale == "difference":
            return np.asarray(self.value - other)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.value / (other if other != 0.0 else np.nan))

    @property
    def statistic(self) -> float:
        """Largest absolute root of all pairs at no disparity."""
        return float(self._worst(self.natural).max())

    @property
    def p_value(self) -> float:
        """P-value of "all categories are equal"."""
        return float(self.p_values().min())

    def p_values(self, null: float | None = None) -> FloatArray:
        """P-values of "as high as `null` times the highest", valid for all categories at once.

        Parameters
        ----------
        null : float, optional
            Disparity under the null: 0.8 asks whether a category is shown below four fifths of the
            highest. By default no disparity. With the reference "lowest" the null is an upper
            limit.

        Returns
        -------
        array of shape (k,)
            Adjusted for the number of categories and for the choice of the extreme one.
        """
        at = self.natural if null is None else check_number("null", null)
        worst = self._worst(at)
        return np.where(worst > 0.0, np.minimum(self._law.tail(worst), 1.0), 1.0)

    def roots(self, null: float | None = None) -> FloatArray:
        """Signed roots against the category observed as extreme, taken as if chosen before.

        Parameters
        ----------
        null : float, optional
            Hypothesised disparity; by default none.

        Returns
        -------
        array of shape (k,)
            Zero for the extreme category itself.
        """
        other = np.full(len(self.value), self.extreme)
        own = np.arange(len(self.value))
        at = self.natural if null is None else check_number("null", null)
        root = self._pairs(own, other).root(np.full(len(own), at))
        return np.where(own == other, 0.0, root)

    def p_values_raw(self, null: float | None = None) -> FloatArray:
        """Two-sided p-values against the category observed as extreme, taken as if chosen before.

        Parameters
        ----------
        null : float, optional
            Hypothesised disparity; by default none.

        Returns
        -------
        array of shape (k,)
            One for the extreme category itself.
        """
        return np.asarray(2.0 * special.ndtr(-np.abs(self.roots(null))))

    def confidence_interval(self, confidence_level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Intervals of all disparities that cover together, whichever category is extreme.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Joint coverage.

        Returns
        -------
        low, high : array of shape (k,)
            The end away from the extreme is infinite where nothing is rejected there.
        """
        critical = self.critical(confidence_level)
        first, second = self._ordered()
        low, high = self._pairs(first, second).interval(critical)
        return self._nearest(first, low, self.eligible), self._nearest(first, high, self.eligible)

    def critical(self, confidence_level: float = 0.95) -> float:
        """Value of the roots of all pairs that the joint intervals use.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Joint coverage.

        Returns
        -------
        float
        """
        return self._law.critical(check_fraction("confidence_level", confidence_level))

    def bounds(self, confidence_level: float = 0.95) -> FloatArray:
        """How far each category is from the extreme one at most: bounds that certify.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Joint coverage of the bounds.

        Returns
        -------
        array of shape (k,)
            Lower bounds of the disparities for the reference "highest", upper bounds for "lowest"
            (Edwards and Hsu 1983). They never exclude "no disparity".
        """
        level = check_fraction("confidence_level", confidence_level)
        first, second = self._ordered()
        critical = self._law.one_sided(level)[second]
        pairs = self._pairs(first, second)
        side = 1.0 if self.reference == "highest" else -1.0
        root = side * pairs.root(np.full(len(first), self.natural))
        beaten = np.zeros(len(self.value), dtype=np.bool_)
        np.logical_or.at(beaten, second, root > critical)
        low, high = pairs.interval(critical)
        end = np.where(beaten[second], side * np.inf, low if side > 0 else high)
        return self._nearest(first, end, self.eligible & ~beaten)

    def p_values_within(self, null: float) -> FloatArray:
        """P-values that certify each category, valid for all of them at once.

        The null hypothesis is that the category is further from the extreme one than `null`; it is
        rejected exactly when the end of `bounds` is nearer.

        Parameters
        ----------
        null : float
            Smallest disparity allowed (largest, with the reference "lowest").

        Returns
        -------
        array of shape (k,)
        """
        first, second = self._ordered()
        pairs = self._pairs(first, second)
        side = 1.0 if self.reference == "highest" else -1.0
        k = len(self.value)
        beaten = np.full(k, -np.inf)
        np.maximum.at(beaten, second, side * pairs.root(np.full(len(first), self.natural)))
        # A category is out of the way if another beats it, or if ours is near enough to it.
        near = np.full((k, k), -np.inf)
        near[first, second] = np.maximum(
            side * pairs.root(np.full(len(first), float(null))), beaten[second]
        )
        tail = self._law.one_sided_tail(near)
        tail[~np.isin(np.arange(k * k).reshape(k, k), first * k + second)] = 0.0
        return np.asarray(tail.max(axis=1))

    def p_value_within(self, null: float) -> float:
        """P-value that certifies every category: the null is "some pair is further apart".

        Parameters
        ----------
        null : float
            Smallest disparity allowed (largest, with the reference "lowest").

        Returns
        -------
        float
            An intersection-union test, which needs no adjustment.
        """
        first, second = self._ordered()
        side = 1.0 if self.reference == "highest" else -1.0
        root = side * self._pairs(first, second).root(np.full(len(first), float(null)))
        return float(special.ndtr(-root.min()))

    def _ordered(self) -> tuple[IntArray, IntArray]:
        """All ordered pairs whose second category may be the extreme one."""
        first, second = np.nonzero(~np.eye(len(self.value), dtype=np.bool_))
        kept = self.eligible[second]
        return first[kept], second[kept]

    def _worst(self, null: float) -> FloatArray:
        """Largest root of each category against the others, on the side of a disparity."""
        first, second = self._ordered()
        root = self._pairs(first, second).root(np.full(len(first), null))
        worst = np.full(len(self.value), -np.inf)
        np.maximum.at(worst, first, -root if self.reference == "highest" else root)
        return worst

    def _nearest(self, first: IntArray, end: FloatArray, capped: BoolArray) -> FloatArray:
        """Smallest end of the pairs of each category (largest, for "lowest").

        A category that may itself be the extreme one has no disparity then.
        """
        high = self.reference == "highest"
        result = np.where(capped, self.natural, np.inf if high else -np.inf)
        (np.minimum if high else np.maximum).at(result, first, end)
        return result


@dataclass(frozen=True, slots=True)
class OnePair:
    """Two proportions with the law of every 2x2 table, on the scale that `Pairs` share.

    Parameters
    ----------
    law : equipoise.stats.pairs.Pairs
        One-sided exact or saddlepoint p-values.
    """

    law: PairLaw

    def root(self, null: FloatArray) -> FloatArray:
        """Signed normal quantile of the smaller one-sided p-value; zero where both exceed half."""
        every = np.arange(len(self.law.table))
        at = np.asarray(null, dtype=np.float64)
        up = np.maximum(self.law.root(at, every, GREATER), 0.0)
        down = np.minimum(self.law.root(at, every, LESS), 0.0)
        return np.where(up >= -down, up, down)

    def interval(self, critical: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Values whose root is between minus and plus `critical`."""
        each = np.broadcast_to(np.asarray(critical, dtype=np.float64), self.law.table.shape)
        low, high = np.empty(each.shape), np.empty(each.shape)
        for value in np.unique(each):
            which = each == value
            ends = self.law.interval(float(1.0 - 2.0 * special.ndtr(-value)))
            low[which], high[which] = ends[0][which], ends[1][which]
        return low, high


def compare_counts_with_extreme(
    selected: FloatArray,
    n: FloatArray,
    *,
    reference: Extreme = "highest",
    scale: Scale = "ratio",
    eligible: BoolArray | None = None,
) -> ExtremeComparison:
    """Compare rates of independent rows with the highest or lowest one.

    Parameters
    ----------
    selected, n : array of shape (k,)
        Ones and rows of each category, at least one row.
    reference : {"highest", "lowest"}
        Which category the others are compared with.
    scale : {"ratio", "difference"}
        Rate over the extreme rate, or minus it.
    eligible : array of shape (k,), optional
        Categories that may be the extreme one; by default all.

    Returns
    -------
    ExtremeComparison
        Two categories have the law of one pair, `equipoise.stats.pairs`; of more, all pairs have
        scores at Tukey's value.

    Examples
    --------
    Of four departments, which hire women at less than four fifths of the best department's rate?

    >>> hired, n = np.array([30.0, 45.0, 52.0, 12.0]), np.array([100.0, 110.0, 120.0, 80.0])
    >>> compared = compare_counts_with_extreme(hired, n)
    >>> compared.estimate.round(2).tolist()
    [0.69, 0.94, 1.0, 0.35]
    >>> low, high = compared.confidence_interval()
    >>> high.round(2).tolist()
    [1.0, 1.0, 1.0, 0.69]

    Only of the last it is shown.
    """
    x, rows = np.asarray(selected, dtype=np.float64), np.asarray(n, dtype=np.float64)
    likely = (x + 0.5) / (rows + 1.0)
    return ExtremeComparison(
        value=x / rows,
        reference=reference,
        scale=scale,
        eligible=np.ones(len(x), dtype=np.bool_) if eligible is None else eligible,
        n=rows,
        _pairs=partial(_pairs_of_rates, x, rows, scale),
        _law=IndependentLaw.of(likely, likely * (1.0 - likely) / rows, scale),
    )


def _pairs_of_rates(
    x: FloatArray, rows: FloatArray, scale: Scale, first: IntArray, second: IntArray
) -> Pairs:
    counts = x[first], rows[first], x[second], rows[second]
    if len(x) == 2:
        return OnePair(PairLaw.of(*counts, scale=scale))
    return ProportionPairs(*counts, scale=scale)


def compare_means_with_extreme(
    means: Means,
    *,
    reference: Extreme = "highest",
    scale: Scale = "ratio",
    eligible: BoolArray | None = None,
    rng: Rng = None,
) -> ExtremeComparison:
    """Compare means, with weights and clusters, with the highest or lowest one.

    Parameters
    ----------
    means : Means
        Means of categories with enough units each: `CategoryMeans`, or `DesignMeans` of a survey.
    reference : {"highest", "lowest"}
        Which category the others are compared with.
    scale : {"ratio", "difference"}
        Mean over the extreme mean, or minus it. Ratios need means of at least zero.
    eligible : array of shape (k,), optional
        Categories that may be the extreme one; by default all.
    rng : int, Generator or None
        Source of the draws of the joint law, needed when units have rows in several categories.

    Returns
    -------
    ExtremeComparison
    """
    if scale == "ratio" and means.value.min() < 0.0:
        raise InvalidParameterError(
            f"A ratio of means needs means of at least zero; got {means.value.min():.3g}. "
            'Pass `scale="difference"`.'
        )
    return ExtremeComparison(
        value=means.value,
        reference=reference,
        scale=scale,
        eligible=np.ones(len(means.value), dtype=np.bool_) if eligible is None else eligible,
        n=np.asarray(means.n, dtype=np.float64),
        _pairs=partial(means.pairs, scale=scale),
        _law=_law_of_means(means, scale, rng),
    )


def _law_of_means(means: Means, scale: Scale, rng: Rng) -> RangeLaw:
    # In an order made of numbers, so that the names of categories do not matter.
    sort = np.lexsort((means.value, means.variance, means.n))
    first, second = np.triu_indices(len(sort), k=1)
    correlation = means.pair_correlation(sort[first], sort[second])
    if correlation is None:
        return IndependentLaw.of(means.value, means.variance, scale)
    return CorrelatedLaw.simulate(correlation, sort[first], sort[second], rng=rng)


def permutation_p_value(
    selected: FloatArray, n: FloatArray, *, n_resamples: int = 20_000, rng: Rng = None
) -> float:
    """P-value of "all rates are equal" by permutation of the largest root of all pairs.

    Exact for independent rows whatever the counts. Categories are drawn in the order of their
    sizes, so that their names do not matter.

    Parameters
    ----------
    selected, n : array of shape (k,)
        Ones and rows of each category.
    n_resamples : int, default 20000
        Permutations; the smallest p-value is one over this plus one.
    rng : int, Generator or None
        Source of randomness; None means seed 0.

    Returns
    -------
    float

    Examples
    --------
    >>> 0.01 < permutation_p_value(np.array([4, 4, 9]), np.array([10, 10, 10])) < 0.1
    True
    """
    x, rows = np.asarray(selected, dtype=np.int64), np.asarray(n, dtype=np.int64)
    sort = np.lexsort((x, rows))
    x, rows = x[sort], rows[sort]
    draws = check_rng(rng).multivariate_hypergeometric(rows, int(x.sum()), size=n_resamples)
    observed = _largest_root(x[None, :], rows)[0]
    above = np.count_nonzero(_largest_root(draws, rows) >= observed * (1.0 - 1e-9))
    return float((1.0 + above) / (1.0 + n_resamples))


def _largest_root(x: IntArray, n: IntArray) -> FloatArray:
    """Largest absolute pooled root of all pairs, for each row of counts."""
    largest = np.zeros(len(x))
    for i in range(len(n)):
        for j in range(i):
            rate = (x[:, i] + x[:, j]) / (n[i] + n[j])
            variance = rate * (1.0 - rate) * (1.0 / n[i] + 1.0 / n[j])
            variance *= (n[i] + n[j]) / (n[i] + n[j] - 1.0)
            gap = np.abs(x[:, i] / n[i] - x[:, j] / n[j])
            root = gap / np.sqrt(np.where(variance > 0.0, variance, 1.0))
            np.maximum(largest, root, out=largest)
    return largest
