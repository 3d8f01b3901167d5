r"""Two proportions of independent rows: one law for every 2x2 table.

A group with x1 ones in n1 rows meets a disjoint target with x2 ones in n2 rows, a known rate, or
an external estimate. Whatever is asked (a difference, a ratio, any hypothesised value, one side or
two, equivalence, an interval) follows from two one-sided p-values, greater and less, on the normal
scale: the signed root of `inversion.SignedRoot`.

========================================== =====================================================
situation                                  law of the one-sided p-values
========================================== =====================================================
known rate, any number of rows             binomial tail; the interval is Clopper and Pearson's
smaller side of at most `EXACT_ROWS` rows  exact unconditional test of `small_tables`
more rows; other ratios than 1; external   `saddlepoint` tail of the contrast at the most likely
estimates                                  rates under the null, with half a row of the smaller
                                           side as continuity correction
========================================== =====================================================

Which law serves is decided by rows alone: with a rule that looks at counts, one more event could
raise a p-value. A normal score test is no substitute, however many the rows: with rare events its
size is several times the nominal one.

At most `EXACT_ROWS` rows, p-values above .1 are those of the saddlepoint; above .8 all are given as
1. Nothing is decided there, and this keeps p-values monotone in the counts.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import Alternative, FloatArray, IntArray, Scale
from equipoise.stats.binomial import difference_fit, exact_tail
from equipoise.stats.inversion import GREATER, LESS, invert
from equipoise.stats.saddlepoint import FARTHEST, Side, tail_root
from equipoise.stats.small_tables import EXACT_ROWS, Counts, SmallTables

__all__ = [
    "EXACT_ROWS",
    "Pairs",
    "against_population",
    "against_rest",
    "external_root",
    "known_interval",
    "known_root",
]

# Where nothing is decided any more: above the first number the ordering by limits need not be
# monotone in the count, above the second the saddlepoint is not.
_UNDECIDED, _CERTAIN = 0.1, 0.8
# A ratio that is as good as infinite, with a square that is not.
_INFINITE = 1e100
# Tables whose enumeration is kept between calls; one takes some 30 kB on each side.
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
    _kept: "tuple[_Tables, _Tables] | None"

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
            up, down = (_Tables.of(c, scale, mid=mid) for c in (counts, counts.swapped()))
            kept = (up, down)
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
        x1, n1, x2, n2 = self.counts
        p1, p2 = (x1 + 1.0) / (n1 + 2.0), (x2 + 1.0) / (n2 + 2.0)
        v1, v2 = p1 * (1.0 - p1) / n1, p2 * (1.0 - p2) / n2
        if self.scale == "ratio":
            with np.errstate(divide="ignore", invalid="ignore"):
                # Without ones in the target the search for the lower end starts far out.
                estimate = np.where(x2 > 0, x1 * n2 / (n1 * x2), np.where(x1 > 0, 1e9, 0.0))
            se = np.sqrt(v1 + estimate**2 * v2) / p2
            least, most = np.zeros_like(x1), np.full_like(x1, np.inf)
        else:
            estimate, se = x1 / n1 - x2 / n2, np.sqrt(v1 + v2)
            least, most = np.full_like(x1, -1.0), np.ones_like(x1)
        low, high = invert(self._table_root, estimate, se, critical=critical, low=least, high=most)
        if self.scale == "ratio":
            # The root may jump at 1, where the interval is open if 1 is rejected.
            every, one = np.arange(len(x1)), np.ones(len(x1))
            above = self._table_root(one, every, GREATER) > critical
            below = self._table_root(one, every, LESS) < -critical
            low = np.where(above, np.maximum(low, np.nextafter(1.0, 2.0)), np.fmin(low, one))
            high = np.where(below, np.minimum(high, np.nextafter(1.0, 0.0)), np.fmax(high, one))
            high = np.where(x2 > 0, high, np.inf)
        return low[self.table], high[self.table]

    def _table_root(self, null: FloatArray, table: IntArray, tail: int) -> FloatArray:
        if self._kept is None:
            root = np.empty(len(table))
            for part in _pieces(len(self.counts.x1)):
                here = np.flatnonzero((table >= part[0]) & (table <= part[-1]))
                some = Pairs.of(*self.counts.take(part), scale=self.scale, mid=self.mid)
                root[here] = some.root(null[here], table[here] - part[0], tail)
            return root
        up, down = self._kept
        if tail == GREATER:
            return up.root(null, table)
        if self.scale == "difference":
            return -down.root(-null, table)
        with np.errstate(divide="ignore"):
            return -down.root(np.where(null > 0.0, 1.0 / null, np.inf), table)


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
    """Distinct tables and the alternative "greater"; "less" is "greater" with samples swapped."""

    counts: Counts
    scale: Scale
    correction: float  # rows of the smaller side
    differences: SmallTables
    equality: FloatArray  # roots of "the same rate", for small tables on the ratio scale

    @classmethod
    def of(cls, counts: Counts, scale: Scale, *, mid: bool) -> "_Tables":
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
            p = self.differences.p_value(null, table)
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
