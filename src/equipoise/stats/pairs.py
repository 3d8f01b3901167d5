r"""Two proportions of independent rows: one law for every 2x2 table.

A group with x1 ones in n1 rows meets a disjoint target with x2 ones in n2 rows, a known rate, or
an external estimate. Whatever is asked (a difference, a ratio, any hypothesised value, one side or
two, equivalence, an interval) follows from two one-sided p-values, greater and less, on the normal
scale: the signed root of `inversion.SignedRoot`.

========================================== =====================================================
situation                                  law of the one-sided p-values
========================================== =====================================================
known rate, any number of rows             binomial tail; the interval is Clopper and Pearson's
smaller side of at most `EXACT_ROWS` rows  exact unconditional test of `SmallTables`
more rows; other ratios than 1; external   `saddlepoint` tail of the contrast at the most likely
estimates                                  rates under the null, with half a row of the smaller
                                           side as continuity correction
========================================== =====================================================

Which law serves is decided by rows alone: with a rule that looks at counts, one more event could
raise a p-value. A normal score test is no substitute, however many the rows: with rare events its
size is several times the nominal one.

At most `EXACT_ROWS` rows, p-values above .1 are those of the saddlepoint; above .8 all are given as
1. Nothing is decided there, and this keeps p-values monotone in the counts.

In the exact unconditional test of a difference tables are ordered by a lower score limit [1]_. The
ordering is the same for all hypotheses, which makes the test monotone in them (Buehler's
construction [2]_, [3]_). At each value of the nuisance rate the probability of a table at least as
extreme is combined with what each sample by itself says about that value, by Bonferroni's
inequality with weights .99, .005 and .005:

.. math:: p = \max_\theta \min\{ P_\theta(\text{as extreme}) / .99,\ p_1(\theta) / .005,\
   p_2(\theta) / .005 \}

which is valid because each term is. It is the idea of Berger and Boos [4]_ with an allowance in
proportion to the p-value instead of a fixed one, so that p-values have no floor.

The maximum is looked for in two steps. Rates are tried half a standard error apart. The p-value is
at least the largest found, and it can only be larger between the rates where each sample by itself
allows that much: limits of Clopper and Pearson. At these limits and around every peak between them
the law is computed anew. P-values from .001 on are right to .25%, smaller ones to a few per cent.

References
----------
.. [1] O. Miettinen and M. Nurminen (1985), Comparative analysis of two rates, Statistics in
   Medicine 4, 213-226, doi:10.1002/sim.4780040211.
.. [2] R. J. Buehler (1957), Confidence intervals for the product of two binomial parameters,
   Journal of the American Statistical Association 52, 482-493, doi:10.1080/01621459.1957.10501404.
.. [3] P. Kabaila and C. J. Lloyd (2003), The efficiency of Buehler confidence limits, Statistics &
   Probability Letters 65, 21-28, doi:10.1016/S0167-7152(03)00215-3.
.. [4] R. L. Berger and D. D. Boos (1994), P values maximized over a confidence set for the nuisance
   parameter, Journal of the American Statistical Association 89, 1012-1016,
   doi:10.1080/01621459.1994.10476836.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from equipoise._typing import Alternative, AnyArray, FloatArray, IntArray, Scale
from equipoise.stats.binomial import clopper_pearson, deviance, difference_fit, exact_tail
from equipoise.stats.inversion import GREATER, LESS, endpoint
from equipoise.stats.saddlepoint import FARTHEST, Side, tail_root

__all__ = [
    "EXACT_ROWS",
    "Counts",
    "Pairs",
    "SmallTables",
    "against_population",
    "against_rest",
    "external_root",
    "known_interval",
    "known_root",
]


EXACT_ROWS = 50
"""Rows of the smaller side up to which tables are enumerated."""

# The normal quantile of the limit that orders tables. A larger one gives more power at small
# p-values and rare events; at 1.7 p-values from .065 on are not monotone in the count.
_ORDER = 1.5
# Share of a p-value that each sample may spend on ruling out a nuisance rate by itself.
_ALLOWANCE = 0.005
# Nuisance rates that are tried, on the arcsine scale: around the observed one in standard errors,
# and over the whole range.
_NEAR = np.concatenate([[-8.0, -7.0], np.linspace(-6.0, 6.0, 25), [7.0, 8.0]])
_RANGE = np.linspace(0.0, np.pi / 2, 6)
# Peaks that are examined, as parts of the largest p-value so far, and where: as parts of the way
# between the neighbours of a peak.
_PROMISING = 0.8
_ROUNDS = 4
_BETWEEN = np.arange(1.0, 8.0) / 8.0
# No parabola between points bends more than that.
_STEEPEST = 0.7
# Counts of the enumerated side are padded to one of these, few tables to the last.
_WIDTHS = (16, EXACT_ROWS)
# Tables that are computed together.
_LONGEST_BLOCK = 250


class _Count(NamedTuple):
    """Ones and rows of a sample."""

    x: FloatArray
    n: FloatArray


class Counts(NamedTuple):
    """Ones and rows of two samples.

    Parameters
    ----------
    x1, n1, x2, n2 : array
        Of the first and of the second sample.
    """

    x1: FloatArray
    n1: FloatArray
    x2: FloatArray
    n2: FloatArray

    def swapped(self) -> "Counts":
        """The second sample first."""
        return Counts(self.x2, self.n2, self.x1, self.n1)

    def take(self, index: IntArray) -> "Counts":
        """Some of the tables, in the order of `index`."""
        return Counts(*(part[index] for part in self))


@dataclass(frozen=True, slots=True)
class SmallTables:
    """Tables that are enumerated, in blocks of similar size.

    Parameters
    ----------
    block, place : array of shape (m,)
        Block of each table, -1 for those that are not enumerated, and its place there.
    blocks : tuple
        The enumerated tables.

    Examples
    --------
    Twelve of 20 against 4 of 20: is the first rate higher?

    >>> table = Counts(*(np.array([v]) for v in (12.0, 20.0, 4.0, 20.0)))
    >>> p = SmallTables.of(table).p_value(np.zeros(1), np.zeros(1, dtype=int))
    >>> print(f"{p[0]:.4f}")
    0.0054

    Fisher's test says .0112: conditioning on the 16 ones leaves few possible tables.
    """

    block: IntArray
    place: IntArray
    blocks: tuple["_Enumerated", ...]

    @classmethod
    def of(cls, counts: Counts, most: float = EXACT_ROWS) -> "SmallTables":
        """Prepare the enumeration of all tables with at most `most` rows on the smaller side.

        Parameters
        ----------
        counts : Counts
            m tables.
        most : float, default 50
            Rows.

        Returns
        -------
        SmallTables
        """
        rows = np.minimum(counts.n1, counts.n2)
        few = np.count_nonzero(rows <= most) <= _LONGEST_BLOCK
        widths = _WIDTHS[-1:] if few else _WIDTHS
        width = np.where(rows <= most, np.searchsorted(widths, rows), -1)
        block, place = np.full(len(rows), -1), np.zeros(len(rows), dtype=np.int64)
        blocks: list[_Enumerated] = []
        for k in range(len(widths)):
            index = np.flatnonzero(width == k)
            for part in np.split(index, range(_LONGEST_BLOCK, len(index), _LONGEST_BLOCK)):
                if len(part):
                    block[part], place[part] = len(blocks), np.arange(len(part))
                    blocks.append(_Enumerated.of(counts.take(part)))
        return cls(block, place, tuple(blocks))

    def p_value(self, null: FloatArray, table: IntArray, most: float = 1.0) -> FloatArray:
        """P-values of the null "p1 - p2 is at most `null`".

        Parameters
        ----------
        null : array
            Hypothesised differences.
        table : array of int
            Tables; a table may occur more than once.
        most : float, default 1
            P-values above it may be given too small, but above it.

        Returns
        -------
        array
            1 where the estimate is at most `null`; NaN for tables with too many rows.
        """
        p = np.full(len(table), np.nan)
        block, place = self.block[table], self.place[table]
        for k, tables in enumerate(self.blocks):
            part = np.flatnonzero(block == k)
            p[part] = tables.p_value(null[part], place[part], most)
        return p


@dataclass(frozen=True, slots=True)
class _Enumerated:
    r"""Tables of which one side is enumerated and the other enters by its distribution.

    "First" is the side with fewer rows. Where that is the target, ones and zeros are exchanged as
    well, which leaves the alternative as it is: :math:`p_1 - p_2 = (1 - p_2) - (1 - p_1)`.
    """

    first: _Count
    second: _Count
    ways: FloatArray  # (m, width): log binomial coefficients of the first side
    rate: FloatArray  # (m, k): rates of the second side that are tried
    edge: FloatArray  # (m, width): largest X2 at least as extreme, for each X1
    extreme: FloatArray  # (m, width, k): P(table at least as extreme | X1 = count)
    doubt: FloatArray  # (m, k): what the second side alone allows of a p-value

    @classmethod
    def of(cls, counts: Counts) -> "_Enumerated":
        x1, n1, x2, n2 = counts
        # With as many rows on both sides, a table and its mirror image are the same table.
        flipped = (n2 < n1) | ((n2 == n1) & (n2 - x2 < x1))
        first = _Count(np.where(flipped, n2 - x2, x1), np.minimum(n1, n2))
        second = _Count(np.where(flipped, n1 - x1, x2), np.maximum(n1, n2))
        count = np.arange(first.n.max() + 1.0)
        rest = first.n[:, None] - count
        ways = special.gammaln(first.n + 1.0)[:, None] - special.gammaln(count + 1.0)
        ways -= special.gammaln(np.maximum(rest, 0.0) + 1.0)
        ways[rest < 0.0] = -np.inf
        centre = np.arcsin(np.sqrt((second.x + 0.375) / (second.n + 0.75)))[:, None]
        near = centre + _NEAR / (2.0 * np.sqrt(second.n + 0.5))[:, None]
        angle = np.concatenate([near, np.broadcast_to(_RANGE, (len(x1), len(_RANGE)))], axis=1)
        rate = np.sin(np.sort(np.clip(angle, 0.0, np.pi / 2), axis=1)) ** 2
        edge = _edges(first, second, count)
        extreme = _at_most(edge[:, :, None], second.n[:, None, None], rate[:, None, :])
        more, less = exact_tail(second.x[:, None], second.n[:, None], rate)
        doubt = 2.0 / _ALLOWANCE * np.minimum(more, less)
        return cls(first, second, ways, rate, edge, extreme, doubt)

    def p_value(self, null: FloatArray, which: IntArray, most: float) -> FloatArray:
        """P-values for "more than `null`" of the tables numbered `which`."""
        x1, n1, x2, n2 = (part[which] for part in (*self.first, *self.second))
        p = np.ones(len(which))
        against = np.flatnonzero(x1 / n1 - x2 / n2 > null)
        p[against] = np.minimum(self._largest(null[against], which[against], most), 1.0)
        return p

    def _largest(self, null: FloatArray, which: IntArray, most: float) -> FloatArray:
        """Maximum over the nuisance rate: of those that are tried, then around the best.

        Of p-values above `most` only the first.
        """
        null = null[:, None]
        rate = self.rate[which] + null
        tail, doubt = self._first(np.clip(rate, 0.0, 1.0), self.extreme[which], which)
        doubt = np.minimum(doubt, self.doubt[which])
        possible = (rate > 0.0) & (rate < 1.0)
        largest: FloatArray = np.where(possible, np.minimum(tail, doubt), 0.0).max(axis=1)
        sure, small = largest.copy(), np.flatnonzero(largest <= most)
        for _ in range(_ROUNDS):
            before, tried = sure[small], (rate[small], tail[small], doubt[small])
            sure[small], largest[small] = self._examined(
                before.copy(), null[small], which[small], tried
            )
            small = small[(largest[small] > 1.2 * before) & (sure[small] <= most)]
            if not len(small):
                break
        return np.asarray(largest)

    def _examined(
        self,
        sure: FloatArray,
        null: FloatArray,
        which: IntArray,
        curves: tuple[FloatArray, FloatArray, FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Better lower bounds than `sure`, around the best rates tried, and largest p-values."""
        rate, tail, doubt = curves
        # Less likely rates than these have smaller p-values; of the others only the tail matters.
        ends = self._ends(sure * (1.0 + 1e-6), null, which)
        end_tail, end_doubt = self._curves(ends, null, which)
        end_doubt = np.maximum(end_doubt, sure[:, None])
        below, above = rate <= ends[:, :1], rate >= ends[:, 1:]
        rate, tail, doubt = (
            np.where(below, end[:, :1], np.where(above, end[:, 1:], inside))
            for end, inside in ((ends, rate), (end_tail, tail), (end_doubt, doubt))
        )
        apart = _between_zeros(rate[:, 1:] > rate[:, :-1])
        rises = _between_zeros(tail[:, 1:] - tail[:, :-1])
        peak = (rises[:, :-1] >= 0.0) & (rises[:, 1:] <= 0.0) & (apart[:, :-1] | apart[:, 1:])
        row, best = np.nonzero(peak & (tail >= _PROMISING * sure[:, None]))
        beside = np.clip(best[:, None] + [-1, 1], 0, rate.shape[1] - 1)
        rate, tail, doubt = (curve[row[:, None], beside] for curve in (rate, tail, doubt))
        angle = np.arcsin(np.sqrt(rate))
        between = np.sin(angle[:, :1] + _BETWEEN * (angle[:, 1:] - angle[:, :1])) ** 2
        tail, doubt = (
            np.concatenate([side[:, :1], inside, side[:, 1:]], axis=1)
            for side, inside in zip(
                (tail, doubt), self._curves(between, null[row], which[row]), strict=True
            )
        )
        largest = sure.copy()
        np.maximum.at(sure, row, np.minimum(tail, doubt).max(axis=1))
        np.maximum.at(largest, row, _largest_of_smaller(tail, doubt))
        return sure, largest

    def _ends(self, p: FloatArray, null: FloatArray, which: IntArray) -> FloatArray:
        """Least and largest first rate that both samples allow at a p-value."""
        tail = np.maximum(0.5 * _ALLOWANCE * p, 1e-100)
        low, high = clopper_pearson(self.first.x[which], self.first.n[which], tail=tail)
        other = clopper_pearson(self.second.x[which], self.second.n[which], tail=tail)
        low = np.maximum(low, np.maximum(other[0] + null[:, 0], 0.0))
        high = np.minimum(high, np.minimum(other[1] + null[:, 0], 1.0))
        return np.stack([low, np.maximum(low, high)], axis=1)

    def _curves(
        self, rate: FloatArray, null: FloatArray, which: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """What the p-value is the smaller of, at first rates `rate`."""
        second = np.clip(rate - null, 0.0, 1.0)
        size = self.second.n[which, None]
        extreme = _at_most(self.edge[which][:, :, None], size[:, :, None], second[:, None, :])
        tail, doubt = self._first(rate, extreme, which)
        more, less = exact_tail(self.second.x[which, None], size, second)
        return tail, np.minimum(doubt, 2.0 / _ALLOWANCE * np.minimum(more, less))

    def _first(
        self, rate: FloatArray, extreme: FloatArray, which: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """The tail, and what the first side alone allows."""
        chance = self._chances(rate, which)
        tail = np.einsum("jck,jck->jk", chance, extreme)
        count, x = np.arange(chance.shape[1]), self.first.x[which, None]
        sides = np.stack([count >= x, count <= x], axis=1).astype(np.float64)
        doubt = 2.0 / _ALLOWANCE * (sides @ chance).min(axis=1)
        return tail / (1.0 - 2.0 * _ALLOWANCE), doubt

    def _chances(self, rate: FloatArray, which: IntArray) -> FloatArray:
        """P(X1 = count), of shape (tables, counts, rates)."""
        with np.errstate(divide="ignore"):
            one, zero = (np.maximum(np.log(r), -700.0) for r in (rate, 1.0 - rate))
        count = np.arange(self.ways.shape[1])[None, :, None]
        rest = np.maximum(self.first.n[which, None, None] - count, 0.0)
        log = count * one[:, None, :] + rest * zero[:, None, :]
        return np.asarray(np.exp(log + self.ways[which][:, :, None]))


def _edges(first: _Count, second: _Count, count: FloatArray) -> FloatArray:
    """Largest X2 that is at least as extreme as the observed table, for each X1; -1 for none.

    A table is at least as extreme when its lower limit is at least that of the observed one, so
    when its score at the observed limit is at least the quantile of the limit.
    """
    low, high = np.full_like(first.x, -1.0), np.ones_like(first.x)
    for _ in range(25):
        middle = 0.5 * (low + high)
        above = _score(Counts(*first, *second), middle) >= _ORDER
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    limit, everything = low[:, None], (low == -1.0)[:, None]
    rows, size = first.n[:, None], second.n[:, None]
    count = np.minimum(count, rows)
    inside, outside = np.full(count.shape, -1.0), np.broadcast_to(size + 1.0, count.shape)
    for _ in range(int(np.ceil(np.log2(size.max() + 2.0)))):
        middle = np.clip(np.floor(0.5 * (inside + outside)), 0.0, size)
        as_extreme = _score(Counts(count, rows, middle, size), limit) >= _ORDER - 1e-9
        further = (as_extreme | everything) & (outside - inside > 1.0)
        inside, outside = np.where(further, middle, inside), np.where(further, outside, middle)
    # Rounding must not put the observed table outside, nor a tie out of order.
    inside = np.where(count == first.x[:, None], np.maximum(inside, second.x[:, None]), inside)
    return np.maximum.accumulate(inside, axis=1)


def _largest_of_smaller(p: FloatArray, q: FloatArray) -> FloatArray:
    """Maximum over the last axis of min(p, q), also between points that are equally far apart.

    Between points the logarithms are taken as parabolas.
    """
    p, q = np.log(np.maximum(p, 1e-300)), np.log(np.maximum(q, 1e-300))
    above, slope, other = p - q, np.diff(p), np.diff(q)
    left, right = above[..., :-1], above[..., 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        way = left / (left - right)
        bulge = [0.5 * way * (1.0 - way) * _bend(curve) for curve in (slope, other)]
        crossing = p[..., :-1] + way * slope
        crossing += (slope * bulge[1] - other * bulge[0]) / (slope - other)
    crossing = np.where(left * right < 0.0, crossing, -np.inf)
    before, after = (np.clip(rise, 0.0, 1.0) for rise in (slope[..., :-1], -slope[..., 1:]))
    free = (np.minimum(before, after) > 0.0) & (np.maximum(above[..., :-2], above[..., 2:]) < 0.0)
    top = p[..., 1:-1] + (before - after) ** 2 / (8.0 * np.maximum(before + after, 1e-300))
    top = np.where(free, top, -np.inf)
    every = np.concatenate([np.minimum(p, q), crossing, top], axis=-1)
    return np.asarray(np.exp(every.max(axis=-1)))


def _bend(slope: FloatArray) -> FloatArray:
    """How much slopes fall from interval to interval, the larger of before and after."""
    fall = _between_zeros(np.clip(slope[:, :-1] - slope[:, 1:], 0.0, _STEEPEST))
    return np.maximum(fall[:, :-1], fall[:, 1:])


def _between_zeros(inside: AnyArray) -> AnyArray:
    """Add a column of zeros on either side; `numpy.pad` takes longer than what is done with it."""
    framed = np.zeros((len(inside), inside.shape[1] + 2), dtype=inside.dtype)
    framed[:, 1:-1] = inside
    return framed


def _score(counts: Counts, null: FloatArray) -> FloatArray:
    """Score statistic of Miettinen and Nurminen for a difference."""
    x1, n1, x2, n2 = counts
    p1, p2 = difference_fit(x1, n1, x2, n2, null)
    variance = (p1 * (1.0 - p1) / n1 + p2 * (1.0 - p2) / n2) * (1.0 + 1.0 / (n1 + n2 - 1.0))
    gap = x1 / n1 - x2 / n2 - null
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0.0, 0.0, gap / np.sqrt(variance))


def _at_most(x: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """P(X <= x) of a binomial count, zero for x < 0.

    Of 1 nothing is taken below 1e-17, by Bernstein's bound, and chances that must be as small are
    replaced by their bound of Chernoff.
    """
    x, n, rate = np.broadcast_arrays(x, n, rate)
    gap = x - n * rate
    far = gap * gap > 80.0 * (n * rate * (1.0 - rate) + np.abs(gap) / 3.0)
    below = gap < 0.0
    chance = np.where((x < 0.0) | (far & below), 0.0, 1.0)
    few, near = np.nonzero(far & below & (x >= 0.0)), np.nonzero(~far & (x >= 0.0) & (x < n))
    chance[few] = np.exp(-0.5 * deviance(x[few], n[few], rate[few]))
    k, n, rate = x[near], n[near], rate[near]
    chance[near] = special.betainc(n - k, k + 1.0, 1.0 - rate)
    return chance


# Where nothing is decided any more: above the first number the ordering by limits need not be
# monotone in the count, above the second the saddlepoint is not.
_UNDECIDED, _CERTAIN = 0.1, 0.8
# A ratio that is as good as infinite, with a square that is not.
_INFINITE = 1e100
# Tables whose enumeration is kept between calls; one takes some 15 kB on each side.
_MOST_KEPT = 2_000


def known_root(
    x: FloatArray, n: FloatArray, rate: FloatArray, tail: int, *, mid: bool = False
) -> FloatArray:
    """Signed root of the exact test of one proportion.

    Parameters
    ----------
    x, n : array
        Ones and rows.
    rate : array
        Hypothesised probabilities; one outside [0, 1] is ruled out by any data when all rates on
        the side of the null are impossible, and by none when all are possible.
    tail : {1, -1}
        For the alternative "greater" or "less".
    mid : bool, default False
        Mid-P: count half of the probability of the observed value.

    Returns
    -------
    array

    Examples
    --------
    None of 40 was selected. Is that less than 12%?

    >>> root = known_root(np.array([0.0]), np.array([40.0]), np.array([0.12]), LESS)
    >>> float(special.ndtr(root)[0].round(4))
    0.006

    And more than -8%? No rate is below zero, so certainly.

    >>> float(known_root(np.array([0.0]), np.array([40.0]), np.array([-0.08]), GREATER)[0])
    37.0
    """
    greater, less = exact_tail(x, n, rate, mid=mid)
    if tail == GREATER:
        return _root(np.where(rate < 0.0, 0.0, greater))
    return -_root(np.where(rate > 1.0, 0.0, less))


def known_interval(x: FloatArray, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Interval of Clopper and Pearson for proportions.

    Parameters
    ----------
    x, n : array
        Ones and rows.
    level : float
        Confidence level.

    Returns
    -------
    low, high : array

    Examples
    --------
    >>> low, high = known_interval(np.array([1.0]), np.array([10.0]), 0.95)
    >>> print(f"{low[0]:.4f} to {high[0]:.4f}")
    0.0025 to 0.4450
    """
    tail = 0.5 * (1.0 - level)
    low = np.where(x > 0, special.betaincinv(np.maximum(x, 1.0), n - x + 1.0, tail), 0.0)
    high = np.where(x < n, special.betaincinv(x + 1.0, np.maximum(n - x, 1.0), 1.0 - tail), 1.0)
    return low, high


def external_root(
    x: FloatArray,
    n: FloatArray,
    value: FloatArray,
    se: FloatArray,
    null: FloatArray,
    tail: int,
    *,
    scale: Scale = "difference",
) -> FloatArray:
    r"""Signed root for a proportion against an independent estimate that is normal.

    The saddlepoint tail of :math:`X / n - \rho T` (:math:`\rho = 1` for differences) at the most
    likely rate and target under the hypothesis, half a row included.

    Parameters
    ----------
    x, n : array
        Ones and rows of the group.
    value, se : array
        Estimate of the target and its standard error, positive.
    null : array
        Hypothesised disparities.
    tail : {1, -1}
        For the alternative "greater" or "less".
    scale : {"difference", "ratio"}
        Group minus target, or group over target.

    Returns
    -------
    array
    """
    null = np.asarray(null, dtype=np.float64)
    slope = np.maximum(null, 1.0 / _INFINITE) if scale == "ratio" else np.ones_like(null)
    shift = np.zeros_like(null) if scale == "ratio" else null
    rate = _external_fit(x + 1.0, n + 2.0, value, se, shift, slope)
    gap = x / n - rate - slope * value + (rate - shift)
    side = Side(tail / n, n, rate)
    root = tail * tail_root(tail * gap - 0.5 / n, (side,), (slope * se) ** 2)
    if scale == "ratio":
        # Every rate is at least nothing, and more than nothing once there is a one.
        none = np.where((x > 0) | (tail == LESS), FARTHEST, -FARTHEST)
        return np.where(null > 0.0, root, none)
    return np.asarray(root)


def _external_fit(
    x: FloatArray,
    n: FloatArray,
    value: FloatArray,
    se: FloatArray,
    shift: FloatArray,
    slope: FloatArray,
) -> FloatArray:
    """Most likely rate of a group when it is `shift` plus `slope` times the target."""
    low, high = np.zeros_like(slope + x), np.ones_like(slope + x)
    for _ in range(60):
        p = 0.5 * (low + high)
        # Derivative of the deviance times p (1 - p) / 2, which keeps its sign.
        pull = ((p - shift) / slope - value) / (slope * se**2) * p * (1.0 - p)
        right = n * p - x + pull > 0.0
        low, high = np.where(right, low, p), np.where(right, p, high)
    return np.asarray(0.5 * (low + high))


def against_rest(null: FloatArray, share: FloatArray, scale: Scale) -> FloatArray:
    r"""Value for group against rest that says the same as `null` for group against population.

    With the group a share s of the population, a difference d is d / (1 - s) against the rest, and
    a ratio r is r (1 - s) / (1 - r s).

    Parameters
    ----------
    null : array
        Difference or ratio of group and population.
    share : array
        Rows of the group over rows of the population, below 1.
    scale : {"difference", "ratio"}
        Which of the two.

    Returns
    -------
    array
        Infinite for ratios of 1 / s and more, which only a rest without ones allows.
    """
    if scale == "difference":
        return np.asarray(null / (1.0 - share))
    left = 1.0 - null * share
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(left > 0.0, null * (1.0 - share) / left, np.inf)


def against_population(value: FloatArray, share: FloatArray, scale: Scale) -> FloatArray:
    """Inverse of `against_rest`: a difference or ratio to the rest, as one to the population.

    Parameters
    ----------
    value : array
        Difference or ratio of group and rest.
    share : array
        Rows of the group over rows of the population, below 1.
    scale : {"difference", "ratio"}
        Which of the two.

    Returns
    -------
    array
    """
    if scale == "difference":
        return np.asarray(value * (1.0 - share))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            np.isinf(value),
            1.0 / share,
            value / (1.0 - share + share * np.minimum(value, _INFINITE)),
        )


@dataclass(frozen=True, slots=True)
class Pairs:
    """Tests and intervals for pairs of proportions; equal tables are computed once.

    Parameters
    ----------
    table : array of shape (m,)
        Number of each pair's table among the distinct ones.
    counts : Counts
        The distinct tables.
    scale : {"difference", "ratio"}
        Group minus target, or group over target.
    mid : bool
        Whether p-values are mid-P.

    Examples
    --------
    Nine of 70 against 40 of 150: is the rate the same?

    >>> pair = Pairs.of(*(np.array([v]) for v in (9.0, 70.0, 40.0, 150.0)))
    >>> print(f"{pair.p_value(0.0)[0]:.3f}")
    0.028
    >>> low, high = pair.interval(0.95)
    >>> print(f"{low[0]:.3f} to {high[0]:.3f}")
    -0.248 to -0.015
    """

    table: IntArray
    counts: Counts
    scale: Scale
    mid: bool
    _kept: "_Tables | None"

    @classmethod
    def of(
        cls,
        x1: FloatArray,
        n1: FloatArray,
        x2: FloatArray,
        n2: FloatArray,
        *,
        scale: Scale = "difference",
        mid: bool = False,
    ) -> "Pairs":
        """Find the distinct tables and prepare their enumeration.

        Parameters
        ----------
        x1, n1, x2, n2 : array of shape (m,)
            Ones and rows of the group, and of a target that shares no rows with it; n1, n2 >= 1.
        scale : {"difference", "ratio"}
            Group minus target, or group over target.
        mid : bool, default False
            Mid-P: no enumeration and no continuity correction. Closer to the nominal size on
            average over rates, but above it at some.

        Returns
        -------
        Pairs
        """
        every = Counts(*(np.asarray(part, dtype=np.float64) for part in (x1, n1, x2, n2)))
        first, table = _distinct(every)
        counts = every.take(first)
        kept = None
        if np.count_nonzero(np.minimum(counts.n1, counts.n2) <= EXACT_ROWS) <= _MOST_KEPT:
            kept = _Tables.of(counts, scale, mid=mid)
        return cls(table, counts, scale, mid, kept)

    def root(self, null: FloatArray, which: IntArray, tail: int) -> FloatArray:
        """Signed roots: normal quantiles of the one-sided p-values.

        Parameters
        ----------
        null : array
            Hypothesised disparities of the pairs `which`.
        which : array of int
            Pairs.
        tail : {1, -1}
            For the alternative "greater", with p-value Phi(-root), or "less", with Phi(root).

        Returns
        -------
        array
        """
        table = self.table[which]
        one = np.full(len(self.counts.x1), -1)
        one[table] = np.arange(len(table))
        if np.array_equal(null[one[table]], null):
            # Equal tables have equal hypotheses.
            asked = np.flatnonzero(one >= 0)
            value = np.empty(len(one))
            value[asked] = self._table_root(null[one[asked]], asked, tail)
            return value[table]
        return self._table_root(null, table, tail)

    def p_value(self, null: float, alternative: Alternative = "two-sided") -> FloatArray:
        """P-values; two-sided they are twice the smaller of the one-sided ones.

        Parameters
        ----------
        null : float
            Hypothesised disparity.
        alternative : {"two-sided", "greater", "less"}
            Side of the alternative.

        Returns
        -------
        array of shape (m,)
        """
        every = np.arange(len(self.table))
        at = np.full(len(every), float(null))
        up = special.ndtr(-self.root(at, every, GREATER))
        down = special.ndtr(self.root(at, every, LESS))
        both = np.minimum(2.0 * np.minimum(up, down), 1.0)
        return np.asarray({"greater": up, "less": down, "two-sided": both}[alternative])

    def interval(self, confidence_level: float) -> tuple[FloatArray, FloatArray]:
        """Disparities whose two-sided p-value is at least 1 - `confidence_level`.

        Parameters
        ----------
        confidence_level : float
            Of both sides together.

        Returns
        -------
        low, high : array of shape (m,)
            The upper end of a ratio is infinite where the target has no ones or no upper end.
        """
        return self.ends(float(special.ndtri(0.5 * (1.0 + confidence_level))))

    def ends(self, critical: float) -> tuple[FloatArray, FloatArray]:
        """Disparities whose roots are at most `critical` in size.

        Parameters
        ----------
        critical : float
            1.96 for a marginal 95% interval; a max-t quantile for simultaneous ones.

        Returns
        -------
        low, high : array of shape (m,)
        """
        if self._kept is None:
            parts = [
                Pairs.of(*self.counts.take(part), scale=self.scale, mid=self.mid)
                for part in _pieces(len(self.counts.x1))
            ]
            ends = [part.ends(critical) for part in parts]
            low, high = (np.concatenate(end)[self.table] for end in zip(*ends, strict=True))
            return low, high
        tables, m = self._kept, len(self.counts.x1)
        estimate, se = _plug_in(tables.counts, self.scale)
        least = np.full(2 * m, 0.0 if self.scale == "ratio" else -1.0)
        both = endpoint(
            lambda null, table, _: tables.root(null, table), estimate, se, critical, least, GREATER
        )
        low, high = both[:m], _swapped(both[m:], self.scale)
        if self.scale == "ratio":
            # The root may jump at 1, where the interval is open if 1 is rejected.
            above, below = np.split(tables.root(np.ones(2 * m), np.arange(2 * m)) > critical, 2)
            low = np.where(above, np.maximum(low, np.nextafter(1.0, 2.0)), np.fmin(low, 1.0))
            high = np.where(below, np.minimum(high, np.nextafter(1.0, 0.0)), np.fmax(high, 1.0))
        return low[self.table], high[self.table]

    def _table_root(self, null: FloatArray, table: IntArray, tail: int) -> FloatArray:
        if self._kept is None:
            root = np.empty(len(table))
            for part in _pieces(len(self.counts.x1)):
                here = np.flatnonzero((table >= part[0]) & (table <= part[-1]))
                some = Pairs.of(*self.counts.take(part), scale=self.scale, mid=self.mid)
                root[here] = some.root(null[here], table[here] - part[0], tail)
            return root
        if tail == GREATER:
            return self._kept.root(null, table)
        return -self._kept.root(_swapped(null, self.scale), table + len(self.counts.x1))


def _swapped(disparity: FloatArray, scale: Scale) -> FloatArray:
    """A disparity of the samples in the other order."""
    if scale == "difference":
        return 0.0 - disparity
    with np.errstate(divide="ignore"):
        return np.where(disparity > 0.0, 1.0 / disparity, np.inf)


def _plug_in(counts: Counts, scale: Scale) -> tuple[FloatArray, FloatArray]:
    """Estimates and about their standard errors: where ends of intervals are looked for."""
    x1, n1, x2, n2 = counts
    p1, p2 = (x1 + 1.0) / (n1 + 2.0), (x2 + 1.0) / (n2 + 2.0)
    v1, v2 = p1 * (1.0 - p1) / n1, p2 * (1.0 - p2) / n2
    if scale == "difference":
        return x1 / n1 - x2 / n2, np.sqrt(v1 + v2)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Without ones in the target the search starts far out.
        estimate = np.where(x2 > 0, x1 * n2 / (n1 * x2), np.where(x1 > 0, 1e9, 0.0))
    return estimate, np.sqrt(v1 + estimate**2 * v2) / p2


def _pieces(tables: int) -> list[IntArray]:
    return [
        np.arange(start, min(start + _MOST_KEPT, tables)) for start in range(0, tables, _MOST_KEPT)
    ]


def _distinct(columns: tuple[FloatArray, ...]) -> tuple[IntArray, IntArray]:
    """First occurrence of each distinct row, and the number of every row among them.

    The same as `numpy.unique` along an axis, ten times faster: one sort of numbers a column.
    """
    first, code = np.zeros(0, dtype=np.int64), np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, own = np.unique(column, return_inverse=True)
        joint = code * (int(own.max(initial=0)) + 1) + own
        _, first, code = np.unique(joint, return_index=True, return_inverse=True)
    return first, code


@dataclass(frozen=True, slots=True)
class _Tables:
    """Distinct tables and the alternative "greater".

    Each table is here twice, the second time with its samples swapped: "less" is "greater" then.
    """

    counts: Counts
    scale: Scale
    correction: float  # rows of the smaller side
    differences: SmallTables
    equality: FloatArray  # roots of "the same rate", for small tables on the ratio scale

    @classmethod
    def of(cls, counts: Counts, scale: Scale, *, mid: bool) -> "_Tables":
        counts = Counts(
            *(np.concatenate(both) for both in zip(counts, counts.swapped(), strict=True))
        )
        small = SmallTables.of(counts, 0.0 if mid else EXACT_ROWS)
        correction = 0.0 if mid else 0.5
        if scale == "difference":
            return cls(counts, scale, correction, small, np.zeros(0))
        null, every = np.zeros(len(counts.x1)), np.arange(len(counts.x1))
        same = cls(counts, "difference", correction, small, null).root(null, every)
        equality = np.where(small.block >= 0, same, np.nan)
        return cls(counts, scale, correction, SmallTables.of(counts, 0.0), equality)

    def root(self, null: FloatArray, table: IntArray) -> FloatArray:
        """Normal quantiles of the p-values for "more than `null`"."""
        counts = self.counts.take(table)
        if self.scale == "difference":
            p = self.differences.p_value(null, table, _UNDECIDED)
            root = np.where(p <= _UNDECIDED, _root(p), np.nan)
            rest = np.flatnonzero(np.isnan(root))
            tail = _saddlepoint_root(counts.take(rest), null[rest], self.scale, self.correction)
            small = self.differences.block[table[rest]] >= 0
            root[rest] = np.where(small, np.minimum(tail, _root(_UNDECIDED)), tail)
            root[root < _root(_CERTAIN)] = -FARTHEST
            return np.select([null < -1.0, null >= 1.0], [FARTHEST, -FARTHEST], root)
        root = _saddlepoint_root(counts, null, self.scale, self.correction)
        root[root < _root(_CERTAIN)] = -FARTHEST
        # "The same rate" means the same on both scales; other ratios keep their order to it.
        same = self.equality[table]
        beside = [np.fmax(root, same), np.fmin(root, same), np.where(np.isnan(same), root, same)]
        root = np.select([null < 1.0, null > 1.0], beside[:2], beside[2])
        none = np.where(counts.x1 > 0, FARTHEST, -FARTHEST)
        return np.select([null <= 0.0, np.isinf(null)], [none, -FARTHEST], root)


def _fit(counts: Counts, null: FloatArray, scale: Scale) -> tuple[FloatArray, FloatArray]:
    """Most likely rates under the null, closed form of Miettinen and Nurminen."""
    x1, n1, x2, n2 = counts
    if scale == "difference":
        return difference_fit(x1, n1, x2, n2, null)
    ratio = np.minimum(null, _INFINITE)
    b = n1 * ratio + x1 + n2 + x2 * ratio
    root = np.sqrt(np.maximum(b * b - 4.0 * (n1 + n2) * ratio * (x1 + x2), 0.0))
    second = np.minimum(2.0 * (x1 + x2) / (b + root), 1.0)
    return np.minimum(ratio * second, 1.0), second


def _saddlepoint_root(counts: Counts, null: FloatArray, scale: Scale, rows: float) -> FloatArray:
    """Normal quantile of the tail of the contrast, with `rows` of the smaller side added to it.

    One row of each kind is added before the rates are fitted. At a fitted rate of zero the contrast
    would not vary, and an additional one could look less extreme.
    """
    x1, n1, x2, n2 = counts
    p1, p2 = _fit(Counts(x1 + 1.0, n1 + 2.0, x2 + 1.0, n2 + 2.0), null, scale)
    a, b = 1.0 / n1, (np.minimum(null, _INFINITE) if scale == "ratio" else 1.0) / n2
    excess = a * (x1 - n1 * p1) - b * (x2 - n2 * p2) - rows * np.maximum(a, b)
    return tail_root(excess, (Side(a, n1, p1), Side(-b, n2, p2)), np.zeros_like(a))


def _root(p: FloatArray | float) -> FloatArray:
    """Normal quantile of an upper tail probability, finite."""
    return np.asarray(np.clip(-special.ndtri(p), -FARTHEST, FARTHEST))
