r"""Exact unconditional tests of a difference of two proportions, one side with few rows.

Tables are ordered by a lower score limit [1]_. The ordering is the same for all hypotheses, which
makes the test monotone in them (Buehler's construction [2]_, [3]_). At each value of the nuisance
rate the probability of a table at least as extreme is combined with what each sample by itself says
about that value, by Bonferroni's inequality with weights .99, .005 and .005:

.. math:: p = \max_\theta \min\{ P_\theta(\text{as extreme}) / .99,\ p_1(\theta) / .005,\
   p_2(\theta) / .005 \}

which is valid because each term is. It is the idea of Berger and Boos [4]_ with an allowance in
proportion to the p-value instead of a fixed one, so that p-values have no floor.

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

from equipoise._typing import FloatArray, IntArray
from equipoise.stats.binomial import difference_fit, exact_tail

__all__ = ["EXACT_ROWS", "Counts", "SmallTables"]

EXACT_ROWS = 50
"""Rows of the smaller side up to which tables are enumerated."""

# The normal quantile of the limit that orders tables. A larger one gives more power at small
# p-values and rare events; at 1.7 p-values from .065 on are not monotone in the count.
_ORDER = 1.5
# Share of a p-value that each sample may spend on ruling out a nuisance rate by itself.
_ALLOWANCE = 0.005
# Nuisance rates that are tried, on the arcsine scale: around the observed one in standard errors,
# and over the whole range.
_NEAR = np.arange(-32, 33) / 4
_RANGE = np.linspace(0.0, np.pi / 2, 7)
# Counts of the enumerated side are padded to one of these.
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
        width = np.where(rows <= most, np.searchsorted(_WIDTHS, rows), -1)
        block, place = np.full(len(rows), -1), np.zeros(len(rows), dtype=np.int64)
        blocks: list[_Enumerated] = []
        for k in range(len(_WIDTHS)):
            index = np.flatnonzero(width == k)
            for part in np.split(index, range(_LONGEST_BLOCK, len(index), _LONGEST_BLOCK)):
                if len(part):
                    block[part], place[part] = len(blocks), np.arange(len(part))
                    blocks.append(_Enumerated.of(counts.take(part)))
        return cls(block, place, tuple(blocks))

    def p_value(self, null: FloatArray, table: IntArray) -> FloatArray:
        """P-values of the null "p1 - p2 is at most `null`".

        Parameters
        ----------
        null : array
            Hypothesised differences.
        table : array of int
            Tables; a table may occur more than once.

        Returns
        -------
        array
            1 where the estimate is at most `null`; NaN for tables with too many rows.
        """
        p = np.full(len(table), np.nan)
        block, place = self.block[table], self.place[table]
        for k, tables in enumerate(self.blocks):
            part = np.flatnonzero(block == k)
            p[part] = tables.p_value(null[part], place[part])
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
    doubt: FloatArray  # (m, k): two-sided p-value of the second side alone

    @classmethod
    def of(cls, counts: Counts) -> "_Enumerated":
        x1, n1, x2, n2 = counts
        flipped = n2 < n1
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
        return cls(first, second, ways, rate, edge, extreme, 2.0 * np.minimum(more, less))

    def p_value(self, null: FloatArray, which: IntArray) -> FloatArray:
        """P-values for "more than `null`" of the tables numbered `which`."""
        first = _Count(self.first.x[which, None], self.first.n[which, None])
        rate = self.rate[which] + null[:, None]
        chance = self._chances(np.clip(rate, 0.0, 1.0), which)
        tail = np.einsum("jck,jck->jk", chance, self.extreme[which])
        count = np.arange(chance.shape[1])
        more = np.einsum("jck,jc->jk", chance, (count >= first.x).astype(np.float64))
        less = np.einsum("jck,jc->jk", chance, (count <= first.x).astype(np.float64))
        doubt = np.minimum(self.doubt[which], 2.0 * np.minimum(more, less))
        # A first rate above 1 exhausts the null, one below zero contradicts it.
        tail = np.where(rate > 0.0, tail, 0.0)
        p = _largest_of_smaller(tail / (1.0 - 2.0 * _ALLOWANCE), doubt / _ALLOWANCE)
        second = _Count(self.second.x[which], self.second.n[which])
        p = np.maximum(p, self._at_zero(null, which))
        against = first.x[:, 0] / first.n[:, 0] - second.x / second.n > null
        return np.where(against, np.minimum(p, 1.0), 1.0)

    def _at_zero(self, null: FloatArray, which: IntArray) -> FloatArray:
        """P-values at a first rate of zero, which only a first side without ones allows."""
        rate = np.clip(-null, 0.0, 1.0)
        # The second side cannot rule the rate out by itself: its lower tail is this one.
        p = _at_most(self.edge[which, 0], self.second.n[which], rate) / (1.0 - 2.0 * _ALLOWANCE)
        return np.where((self.first.x[which] == 0) & (null <= 0.0), p, 0.0)

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
    """Maximum over the last axis of min(p, q), also where the curves cross between two points."""
    p, q = np.log(np.maximum(p, 1e-300)), np.log(np.maximum(q, 1e-300))
    above = p - q
    left, right = above[..., :-1], above[..., 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = p[..., :-1] + left / (left - right) * np.diff(p, axis=-1)
    crossing = np.where(left * right < 0.0, crossing, -np.inf)
    largest = np.maximum(np.minimum(p, q).max(axis=-1), crossing.max(axis=-1))
    return np.asarray(np.exp(largest))


def _score(counts: Counts, null: FloatArray) -> FloatArray:
    """Score statistic of Miettinen and Nurminen for a difference."""
    x1, n1, x2, n2 = counts
    p1, p2 = difference_fit(x1, n1, x2, n2, null)
    variance = (p1 * (1.0 - p1) / n1 + p2 * (1.0 - p2) / n2) * (1.0 + 1.0 / (n1 + n2 - 1.0))
    gap = x1 / n1 - x2 / n2 - null
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0.0, 0.0, gap / np.sqrt(variance))


def _at_most(x: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """P(X <= x) of a binomial count, zero for x < 0."""
    k = np.clip(x, 0.0, n)
    inside = special.betainc(np.maximum(n - k, 0.5), k + 1.0, 1.0 - rate)
    return np.where(x < 0.0, 0.0, np.where(x >= n, 1.0, inside))
