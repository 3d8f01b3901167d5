r"""How much of a gap goes with different factors, and how much does not.

On the strata that have both groups, the gap is split into a part that people alike in all factors
still show (unexplained) and a part that goes with the different mix of factors (explained); the
rest of the raw gap is due to people who have nobody to be compared with (Nopo 2008 [1]_):

.. math:: \bar y_1 - \bar y_0 = U + v(F) + \text{outside (group)} + \text{outside (comparator)}

where :math:`v(S) = \mu_S - \bar y_0` and :math:`\mu_S` is the mean of the comparator reweighted to
the group's mix of the factors S. Each factor gets its Shapley value of v, which does not depend on
an order and adds up (Shorrocks 2013 [2]_). All parts are linear in the rows up to smaller terms,
and have standard errors by their influence functions.

References
----------
.. [1] H. Nopo (2008), Matching as a tool to decompose wage gaps, Review of Economics and Statistics
   90, 290-299. doi:10.1162/rest.90.2.290
.. [2] A. F. Shorrocks (2013), Decomposition procedures for distributional analysis: a unified
   framework based on the Shapley value, Journal of Economic Inequality 11, 99-126.
   doi:10.1007/s10888-011-9214-z
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
from scipy import special

from equipoise._checks import check_finite, check_fraction
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.moments import CellMoments, linear_covariance

__all__ = ["Decomposition", "Part", "decompose", "disparity_decomposition"]

LARGEST = 10
"""Factors at most: every subset of them is a reweighting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a gap.

    Parameters
    ----------
    value, se : float
        Estimate and standard error.
    degrees : float
        Degrees of freedom of the standard error.
    """

    value: float
    se: float
    degrees: float

    @property
    def statistic(self) -> float:
        """Estimate over standard error; zero where nothing varies."""
        return self.value / self.se if self.se > 0.0 else 0.0

    @property
    def p_value(self) -> float:
        """Two-sided p-value of a part of zero."""
        return float(2.0 * special.stdtr(self.degrees, -abs(self.statistic)))

    def confidence_interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Interval of the part.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        low, high : float
        """
        level = check_fraction("confidence_level", confidence_level)
        reach = float(special.stdtrit(self.degrees, (1.0 + level) / 2.0)) * self.se
        return self.value - reach, self.value + reach

    def __str__(self) -> str:
        """The value with its 95% interval."""
        low, high = self.confidence_interval()
        return f"{self.value:.4g} ({low:.4g} to {high:.4g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """Split of a raw gap: raw = unexplained + explained + both parts outside overlap.

    Parameters
    ----------
    raw : Part
        Mean of the group minus mean of its comparator.
    unexplained : Part
        Gap among people alike in all factors, at the group's mix.
    explained : Part
        What goes with the different mix of factors.
    outside_group, outside_comparator : Part
        What is due to people without anybody alike on the other side.
    by_factor : dict of str to Part
        Shapley values; they add up to `explained`.
    without : dict of str to Part
        Unexplained gap when a factor is left out.
    group_covered, comparator_covered : float
        Shares of the rows that have somebody alike on the other side.
    ratio_explained, ratio_unexplained : float
        On the ratio scale, over the rows in overlap: reweighted comparator over comparator, and
        group over reweighted comparator. NaN where a mean is zero.
    """

    raw: Part
    unexplained: Part
    explained: Part
    outside_group: Part
    outside_comparator: Part
    by_factor: dict[str, Part]
    without: dict[str, Part]
    group_covered: float
    comparator_covered: float
    ratio_explained: float
    ratio_unexplained: float

    @property
    def statistic(self) -> float:
        """Unexplained gap over its standard error."""
        return self.unexplained.statistic

    @property
    def p_value(self) -> float:
        """P-value of no unexplained gap."""
        return self.unexplained.p_value

    def confidence_interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Interval of the unexplained gap.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        low, high : float
        """
        return self.unexplained.confidence_interval(confidence_level)

    def __str__(self) -> str:
        """Lines for people."""
        names = ", ".join(self.by_factor)
        alone, apart = 1.0 - self.group_covered, 1.0 - self.comparator_covered
        lines = [
            f"raw gap                {self.raw}",
            f"among people alike     {self.unexplained}",
            f"goes with {names}: {self.explained}",
            *(f"  {name:<20} {part}" for name, part in self.by_factor.items()),
            f"group without comparator ({alone:.0%}): {self.outside_group}",
            f"comparator without group ({apart:.0%}): {self.outside_comparator}",
        ]
        return "\n".join(lines)


def decompose(
    moments: CellMoments,
    levels: IntArray,
    factors: Sequence[str],
    *,
    n_units: tuple[int, int],
) -> Decomposition:
    """Split the gap from sums over the strata.

    Parameters
    ----------
    moments : CellMoments
        Of the quantities (outcome, 1), in cells ``2 * stratum + side``; side 1 is the group.
    levels : array of shape (K, m)
        Level of every factor in every stratum.
    factors : sequence of str
        Names of the m factors.
    n_units : (int, int)
        Independent units of the group and of the comparator, for the degrees of freedom.

    Returns
    -------
    Decomposition
    """
    m = len(factors)
    if not 1 <= m <= LARGEST:
        raise InvalidParameterError(f"A split needs 1 to {LARGEST} factors; got {m}.")
    cells = _Cells.of(moments)
    subsets = [chosen for size in range(m + 1) for chosen in combinations(range(m), size)]
    number = {chosen: i for i, chosen in enumerate(subsets)}
    reweighted = [cells.reweighted(_codes(levels[:, list(chosen)])) for chosen in subsets]
    whole = number[tuple(range(m))]
    shapley = np.zeros((m, len(subsets)))
    for chosen in subsets:
        for f in set(range(m)) - set(chosen):
            chance = factorial(len(chosen)) * factorial(m - len(chosen) - 1) / factorial(m)
            shapley[f, number[tuple(sorted((*chosen, f)))]] += chance
            shapley[f, number[chosen]] -= chance
    group_in, group_all = cells.mean(1, inside=True), cells.mean(1, inside=False)
    other_in, other_all = cells.mean(0, inside=True), cells.mean(0, inside=False)
    left_out = [reweighted[number[tuple(set(range(m)) - {f})]] for f in range(m)]
    functions = [
        group_all - other_all,
        group_in - reweighted[whole],
        reweighted[whole] - reweighted[number[()]],
        group_all - group_in,
        other_in - other_all,
        *(_sum(row, reweighted) for row in shapley),
        *(group_in - one for one in left_out),
    ]
    parts = _parts(moments, functions, n_units)
    mu, one, zero = reweighted[whole].value, group_in.value, other_in.value
    return Decomposition(
        raw=parts[0],
        unexplained=parts[1],
        explained=parts[2],
        outside_group=parts[3],
        outside_comparator=parts[4],
        by_factor=dict(zip(factors, parts[5 : 5 + m], strict=True)),
        without=dict(zip(factors, parts[5 + m :], strict=True)),
        group_covered=cells.covered(1),
        comparator_covered=cells.covered(0),
        ratio_explained=mu / zero if zero != 0.0 else np.nan,
        ratio_unexplained=one / mu if mu != 0.0 else np.nan,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    """A function of the sums: its value, and what a row adds, slope * y + level in its cell."""

    value: float
    slope: FloatArray
    level: FloatArray

    def __sub__(self, other: "_Function") -> "_Function":
        return _Function(
            value=self.value - other.value,
            slope=self.slope - other.slope,
            level=self.level - other.level,
        )


def _sum(coefficients: FloatArray, functions: Sequence[_Function]) -> _Function:
    return _Function(
        value=float(sum(c * f.value for c, f in zip(coefficients, functions, strict=True))),
        slope=np.sum([c * f.slope for c, f in zip(coefficients, functions, strict=True)], axis=0),
        level=np.sum([c * f.level for c, f in zip(coefficients, functions, strict=True)], axis=0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """Sums of weights and outcomes, (K, 2), rows, and which strata have both sides."""

    size: FloatArray
    total: FloatArray
    rows: IntArray
    both: BoolArray

    @classmethod
    def of(cls, moments: CellMoments) -> "_Cells":
        size = moments.total[:, 1].reshape(-1, 2)
        both = np.asarray((size > 0.0).all(axis=1))
        if not both.any():
            raise GroupTooSmallError(
                "No stratum has rows of both groups; use fewer factors or wider bands."
            )
        total = moments.total[:, 0].reshape(-1, 2)
        return cls(size=size, total=total, rows=moments.n.reshape(-1, 2), both=both)

    def covered(self, side: int) -> float:
        return float(self.rows[self.both, side].sum() / self.rows[:, side].sum())

    def mean(self, side: int, *, inside: bool) -> _Function:
        """Mean of a side, over all its rows or those in overlap."""
        kept = self.both if inside else np.ones(len(self.both), dtype=np.bool_)
        size = float(self.size[kept, side].sum())
        value = float(self.total[kept, side].sum()) / size
        slope = np.zeros_like(self.size)
        slope[kept, side] = 1.0 / size
        return _Function(value=value, slope=slope, level=-value * slope)

    def reweighted(self, code: IntArray) -> _Function:
        """Mean of the comparator at the group's mix of the strata that `code` numbers."""
        n, y = (
            np.stack([np.bincount(code, part[:, side] * self.both) for side in (0, 1)])
            for part in (self.size, self.total)
        )
        rows = np.bincount(code, self.rows[:, 0] * self.both)
        together = np.bincount(code, self.rows.sum(axis=1) * self.both)
        used = n[1] > 0.0
        share = n[1] / n[1].sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(used, y[0] / n[0], 0.0)
            per_row = np.where(used, share / n[0], 0.0)
            pooled = y.sum(axis=0) / n.sum(axis=0)
            # Residuals from an estimated mean are short; a lone comparator has none of its own.
            alone = rows == 1
            counted = np.where(alone, together, rows)
            inflated = np.where(used, per_row * np.sqrt(counted / (counted - 1.0)), 0.0)
        centre = np.where(alone & used, pooled, mean)
        value = float(share @ mean)
        slope, level = np.zeros_like(self.size), np.zeros_like(self.size)
        slope[:, 0] = inflated[code] * self.both
        level[:, 0] = -(inflated * np.where(used, centre, 0.0))[code] * self.both
        level[:, 1] = (mean[code] - value) / n[1].sum() * self.both
        return _Function(value=value, slope=slope, level=level)


def _codes(levels: IntArray) -> IntArray:
    """One code for each combination of levels; a single one without factors."""
    if levels.shape[1] == 0:
        return np.zeros(len(levels), dtype=np.int64)
    return np.asarray(np.unique(levels, axis=0, return_inverse=True)[1]).ravel()


def _parts(
    moments: CellMoments, functions: Sequence[_Function], n_units: tuple[int, int]
) -> list[Part]:
    slope = np.stack([one.slope.ravel() for one in functions], axis=1)
    level = np.stack([one.level.ravel() for one in functions], axis=1)
    variance = np.diag(linear_covariance(moments, [slope, level]))
    side = np.arange(len(slope)) % 2
    by_side = [
        np.diag(linear_covariance(moments, [slope * kept, level * kept]))
        for kept in ((side == 1)[:, None], (side == 0)[:, None])
    ]
    units = [max(count - 1, 1) for count in n_units]
    spread = by_side[0] ** 2 / units[0] + by_side[1] ** 2 / units[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.where(spread > 0.0, (by_side[0] + by_side[1]) ** 2 / spread, 1e10)
    return [
        Part(value=one.value, se=float(np.sqrt(max(v, 0.0))), degrees=float(d))
        for one, v, d in zip(functions, variance, degrees, strict=True)
    ]


def disparity_decomposition(
    y: AnyArray,
    member: AnyArray,
    factors: Mapping[str, AnyArray],
    *,
    weight: AnyArray | None = None,
    cluster: AnyArray | None = None,
) -> Decomposition:
    """Split the gap between a group and its comparator by the factors in which they differ.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome: 0 or 1, or any number.
    member : array of bool, shape (n,)
        True for the group, False for its comparator.
    factors : mapping of str to array of shape (n,)
        Factors with few levels; their combinations are the strata.
    weight, cluster : array of shape (n,), optional
        Sampling weight of a row, and the unit it belongs to.

    Returns
    -------
    Decomposition

    Examples
    --------
    Women are admitted less often. How much of that goes with the department they apply to?

    >>> admitted = np.repeat([1, 0, 1, 0, 1, 0, 1, 0], [60, 40, 12, 8, 2, 18, 10, 90])
    >>> woman = np.repeat([False, True, False, True], [100, 20, 20, 100])
    >>> department = np.repeat(["easy", "hard"], [120, 120])
    >>> split = disparity_decomposition(admitted, woman, {"department": department})
    >>> f"{split.raw.value:.2f}, {split.explained.value:.2f}"
    '-0.33, -0.33'

    All of it.
    """
    outcome = check_finite("y", y, ndim=1)
    side = np.asarray(member).astype(np.bool_).astype(np.int64)
    if not factors:
        raise InvalidParameterError(f"A split needs 1 to {LARGEST} factors; got 0.")
    codes = [
        np.unique(np.asarray(one).astype(str), return_inverse=True)[1] for one in factors.values()
    ]
    if any(len(one) != len(outcome) for one in (side, *codes)):
        raise InvalidParameterError(
            "`y`, `member` and every factor must have one entry for each row."
        )
    levels, stratum = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    cell = 2 * np.asarray(stratum).ravel() + side
    unit = np.arange(len(outcome)) if cluster is None else np.asarray(cluster)
    return decompose(
        CellMoments.from_rows(
            np.column_stack([outcome, np.ones(len(outcome))]),
            cell,
            n_cells=2 * len(levels),
            weight=weight,
            cluster=cluster,
        ),
        levels,
        list(factors),
        n_units=(len(np.unique(unit[side == 1])), len(np.unique(unit[side == 0]))),
    )
