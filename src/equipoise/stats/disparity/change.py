r"""Changes of values and gaps: two models on the same rows, or two periods.

Decisions of two models on the same rows are paired. Rows on which they agree say nothing about the
change, so that the counts *gained* (0 to 1) and *lost* (1 to 0) of each group decide: the score
test and interval of Tango [1]_ for a group (its p-value is McNemar's), exact when few rows
changed, and for the change of a gap the method of variance estimates recovery (MOVER, [2]_) on
Tango's intervals. Two periods of independent rows use the same on Wilson's intervals. Everything
else (real values, weights, clusters, which may have rows in both periods) uses influence functions
summed by cluster and a t law with Bell-McCaffrey degrees of freedom [3]_.

"No gap grew by more than the margin" is about :math:`|gap_{new}| - |gap_{old}|`. A test
that takes the sign of the old gap from its estimate has twice its nominal size; here both signs are
tried, each at half the level. The bound holds for every group without further adjustment when all
of them have to pass (intersection-union, [4]_).

References
----------
.. [1] T. Tango (1998), Equivalence test and confidence interval for the difference in proportions
   for the paired-sample design, Statistics in Medicine 17, 891-908.
.. [2] G. Y. Zou and A. Donner (2008), Construction of confidence limits about effect measures: a
   general approach, Statistics in Medicine 27, 1693-1702, doi:10.1002/sim.3095.
.. [3] R. M. Bell and D. F. McCaffrey (2002), Bias reduction in standard errors for linear
   regression with multi-stage samples, Survey Methodology 28, 169-181.
.. [4] R. L. Berger (1982), Multiparameter hypothesis testing and acceptance sampling,
   Technometrics 24, 295-300, doi:10.1080/00401706.1982.10487790.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import check_finite, check_fraction, check_number, check_option, quoted
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.disparity.contrasts import (
    IntervalEstimate,
    Mover,
    PairedChange,
    RateChange,
    WilsonRate,
    stacked_laws,
    unit_law,
)
from equipoise.stats.multiplicity import adjusted_p_values
from equipoise.stats.small_samples import ContrastLaw, joint_bonferroni, joint_test

__all__ = [
    "ChangeTest",
    "Changes",
    "GapGrowth",
    "JointChange",
    "PairedCounts",
    "PairedRows",
    "PeriodCounts",
    "PeriodRows",
    "gap_changes",
    "paired_change_test",
    "period_change_test",
    "profile_test",
]

GapKind: TypeAlias = Literal["absolute", "increase", "decrease"]
"""Growth of the size of a gap, or of the gap with its sign upwards or downwards."""

_GRID = 128
_NARROW = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTest:
    """Tests that each of m changes is zero.

    Parameters
    ----------
    contrast : IntervalEstimate
        Estimates and limits.
    p_value_raw, p_value : array of shape (m,)
        Two-sided, alone and adjusted by Holm within the family; NaN where nothing was tested.
    """

    contrast: IntervalEstimate
    p_value_raw: FloatArray
    p_value: FloatArray

    @property
    def estimate(self) -> FloatArray:
        """Changes, (m,)."""
        return self.contrast.estimate

    @property
    def statistic(self) -> FloatArray:
        """Squared root of the test, chi-square with one degree of freedom."""
        return np.asarray(special.chdtri(1.0, np.maximum(self.p_value_raw, 1e-300)))

    def confidence_interval(self, confidence_level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Marginal interval of each change; it contains 0 exactly when the raw p-value is larger.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of each interval.

        Returns
        -------
        low, high : array of shape (m,)
        """
        level = check_fraction("confidence_level", confidence_level)
        low, high = self.contrast.interval(_quantile(self.estimate, (1.0 + level) / 2.0))
        return np.where(self._known, low, np.nan), np.where(self._known, high, np.nan)

    @property
    def _known(self) -> BoolArray:
        return ~np.isnan(self.p_value_raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointChange:
    """Test that all groups changed alike, so that no gap changed.

    Parameters
    ----------
    statistic : float
        Chi-square with `df` degrees of freedom; the smallest p-value with "bonferroni".
    df : int
        One less than the groups tested; their number with "bonferroni".
    p_value : float
        1 with fewer than two groups.
    method : {"profile", "sum_of_squares", "bonferroni"}
        Of roots at the best common change; of roots against the rest; for groups that share units.
    """

    statistic: float
    df: int
    p_value: float
    method: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed between an old and a new model or period.

    Parameters
    ----------
    groups : tuple of str
        Names, m of them.
    status : array of str, shape (m,)
        "ok"; "empty": no rows in the group or in one of its periods; "alone": none in what it is
        compared with; "too_few": fewer than 4 effective units or 2 degrees of freedom on a side;
        "no_variation": every row changed by the same amount.
    n : array of shape (m,)
        Rows that count, of both periods together.
    old, new : array of shape (m,)
        Values of the groups.
    change : ChangeTest
        Of the groups' values; one family.
    gap_change : ChangeTest
        Of the gaps to the reference; another family.
    growth : GapGrowth
        What can be said about the growth of gaps.
    joint : JointChange
        Test that no gap changed.
    method : str
        "tango", "wilson" or "influence".
    """

    groups: tuple[str, ...]
    status: AnyArray
    n: FloatArray
    old: FloatArray
    new: FloatArray
    change: ChangeTest
    gap_change: ChangeTest
    growth: GapGrowth
    joint: JointChange
    method: str

    @property
    def statistic(self) -> float:
        """Statistic of the joint test."""
        return self.joint.statistic

    @property
    def p_value(self) -> float:
        """P-value of the joint test that no gap changed."""
        return self.joint.p_value

    def confidence_interval(self, confidence_level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Marginal intervals of the changes of gaps.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of each interval.

        Returns
        -------
        low, high : array of shape (m,)
        """
        return self.gap_change.confidence_interval(confidence_level)

    def gate(self, margin: float, *, alpha: float = 0.05) -> bool:
        """Whether it is shown for every group that its gap grew by at most the margin.

        Parameters
        ----------
        margin : float
            Largest growth that is tolerated.
        alpha : float, default 0.05
            Chance that the gate passes although some gap grew by more.

        Returns
        -------
        bool
            False also when a group is too small to be tested. Groups without a gap do not count.
        """
        bound = self.growth.bound(alpha)[~np.isin(self.status, ("empty", "alone"))]
        return bool(np.all(bound <= check_number("margin", margin, low=0.0)))

    def __str__(self) -> str:
        low, high = self.confidence_interval()
        gaps = "gap" if len(self.groups) == 1 else "gaps"
        lines = [f"Change of {len(self.groups)} {gaps}: joint p = {self.joint.p_value:.3g}"]
        for j, group in enumerate(self.groups):
            if self.status[j] != "ok":
                lines.append(f"  {group}: not tested ({self.status[j]}, n = {self.n[j]:.0f})")
                continue
            lines.append(
                f"  {group}: value {self.old[j]:.3g} to {self.new[j]:.3g}, gap "
                f"{self.growth.gap_old[j]:.3g} to {self.growth.gap_new[j]:.3g}, change "
                f"{self.gap_change.estimate[j]:+.3g} [{low[j]:.3g}, {high[j]:.3g}], "
                f"p = {self.gap_change.p_value[j]:.3g}"
            )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCounts:
    """Decisions of two models on the same rows, by group.

    Parameters
    ----------
    both, lost, gained, neither : array of shape (m,)
        Rows with 1 under both, under the old only, under the new only, and under neither.
    """

    both: FloatArray
    lost: FloatArray
    gained: FloatArray
    neither: FloatArray

    @property
    def n(self) -> FloatArray:
        """Rows."""
        return self.both + self.lost + self.gained + self.neither

    def joined(self, cells: BoolArray) -> "PairedCounts":
        """Counts of unions of groups.

        Parameters
        ----------
        cells : boolean array of shape (m, k)
            Which groups make up each union.

        Returns
        -------
        PairedCounts
        """
        parts = (self.both, self.lost, self.gained, self.neither)
        both, lost, gained, neither = (part @ cells.astype(np.float64) for part in parts)
        return PairedCounts(both=both, lost=lost, gained=gained, neither=neither)

    @property
    def values(self) -> tuple[FloatArray, FloatArray]:
        """Old and new rates."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return (self.both + self.lost) / self.n, (self.both + self.gained) / self.n


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodCounts:
    """Counts of two independent samples, by group.

    Parameters
    ----------
    n_old, ones_old, n_new, ones_new : array of shape (m,)
        Rows and ones.
    """

    n_old: FloatArray
    ones_old: FloatArray
    n_new: FloatArray
    ones_new: FloatArray

    @property
    def n(self) -> FloatArray:
        """Rows of both samples."""
        return self.n_old + self.n_new

    def joined(self, cells: BoolArray) -> "PeriodCounts":
        """Counts of unions of groups.

        Parameters
        ----------
        cells : boolean array of shape (m, k)
            Which groups make up each union.

        Returns
        -------
        PeriodCounts
        """
        parts = (self.n_old, self.ones_old, self.n_new, self.ones_new)
        n_old, ones_old, n_new, ones_new = (part @ cells.astype(np.float64) for part in parts)
        return PeriodCounts(n_old=n_old, ones_old=ones_old, n_new=n_new, ones_new=ones_new)

    @property
    def values(self) -> tuple[FloatArray, FloatArray]:
        """Old and new rates."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.ones_old / self.n_old, self.ones_new / self.n_new


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRows:
    """Values of two models on the same rows.

    Parameters
    ----------
    u_old, w_old, u_new, w_new : array of shape (n,)
        Numerators and denominators of the metric, weights inside.
    cell : array of shape (n,)
        Group of each row, from 0.
    unit : array of shape (n,)
        Independent unit of each row, from 0.
    n_cells : int
        Number of groups.
    """

    u_old: FloatArray
    w_old: FloatArray
    u_new: FloatArray
    w_new: FloatArray
    cell: IntArray
    unit: IntArray
    n_cells: int

    @property
    def n(self) -> FloatArray:
        """Rows that count under either model, by group."""
        counts = (self.w_old != 0) | (self.w_new != 0)
        return np.bincount(self.cell[counts], minlength=self.n_cells).astype(np.float64)

    def values(self, cells: BoolArray) -> tuple[float, float]:
        """Old and new value of some of the groups.

        Parameters
        ----------
        cells : boolean array of shape (m,)
            The groups.

        Returns
        -------
        old, new : float
            NaN without rows.
        """
        here = cells[self.cell]
        return (
            _ratio(self.u_old[here], self.w_old[here]),
            _ratio(self.u_new[here], self.w_new[here]),
        )

    def sides(self, cells: BoolArray, sign: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""New value plus `sign` times the old one, as one mean over units.

        A row adds its influence :math:`(u_1 - v_1 w_1) / W_1 \pm (u_0 - v_0 w_0) / W_0`; its share
        of the mean is the average of its shares under the two models.

        Parameters
        ----------
        cells : boolean array of shape (m,)
            The groups.
        sign : float
            1 or -1.

        Returns
        -------
        u, w : array of shape (U, 1)
            Totals by unit.
        coefficients : array of shape (1,)
            Of the mean.
        """
        here = cells[self.cell]
        v0, v1 = self.values(cells)
        h0, h1 = (w[here] / w[here].sum() for w in (self.w_old, self.w_new))
        influence = self.u_new[here] / self.w_new[here].sum() - v1 * h1
        influence += sign * (self.u_old[here] / self.w_old[here].sum() - v0 * h0)
        share = 0.5 * (h0 + h1)
        value = v1 + sign * v0
        n_units = int(self.unit.max(initial=-1)) + 1
        totals = [
            np.bincount(self.unit[here], weights=part, minlength=n_units)[:, None]
            for part in (influence + value * share, share)
        ]
        return totals[0].astype(np.float64), totals[1].astype(np.float64), np.ones(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRows:
    """Rows of two periods; units may have rows in both.

    Parameters
    ----------
    u, w : array of shape (n,)
        Numerator and denominator of the metric, weights inside; rows with w = 0 do not count.
    new : boolean array of shape (n,)
        Whether a row belongs to the later period.
    cell : array of shape (n,)
        Group of each row, from 0.
    unit : array of shape (n,)
        Independent unit of each row, from 0.
    n_cells : int
        Number of groups.
    """

    u: FloatArray
    w: FloatArray
    new: BoolArray
    cell: IntArray
    unit: IntArray
    n_cells: int

    @property
    def n(self) -> FloatArray:
        """Rows that count in either period, by group."""
        return np.bincount(self.cell[self.w != 0], minlength=self.n_cells).astype(np.float64)

    def values(self, cells: BoolArray) -> tuple[float, float]:
        """Old and new value of some of the groups.

        Parameters
        ----------
        cells : boolean array of shape (m,)
            The groups.

        Returns
        -------
        old, new : float
            NaN without rows.
        """
        here = cells[self.cell]
        old, new = here & ~self.new, here & self.new
        return _ratio(self.u[old], self.w[old]), _ratio(self.u[new], self.w[new])

    def sides(self, cells: BoolArray, sign: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The new period plus `sign` times the old one, as two means over units.

        Parameters
        ----------
        cells : boolean array of shape (m,)
            The groups.
        sign : float
            1 or -1.

        Returns
        -------
        u, w : array of shape (U, 2)
            Totals by unit, the new period first.
        coefficients : array of shape (2,)
            Of the means.
        """
        here = cells[self.cell]
        n_units = int(self.unit.max(initial=-1)) + 1
        key = 2 * self.unit[here] + np.where(self.new[here], 0, 1)
        u, w = (
            np.bincount(key, weights=part[here], minlength=2 * n_units).reshape(n_units, 2)
            for part in (self.u, self.w)
        )
        return u.astype(np.float64), w.astype(np.float64), np.array([1.0, sign])


def _ratio(u: FloatArray, w: FloatArray) -> float:
    total = float(w.sum())
    return float(u.sum()) / total if total else float("nan")


def gap_changes(
    table: PairedCounts | PeriodCounts | PairedRows | PeriodRows,
    group: AnyArray,
    reference: AnyArray,
    *,
    names: tuple[str, ...],
    population: bool = False,
    gap: GapKind = "absolute",
) -> Changes:
    """Test the changes of m groups made of finest groups.

    Parameters
    ----------
    table : PairedCounts, PeriodCounts, PairedRows or PeriodRows
        Sums over C finest groups, which share no rows; the joint test is theirs.
    group, reference : boolean array of shape (C, m)
        Finest groups of each group and of what it is compared with, disjoint.
    names : tuple of str
        Of the m groups.
    population : bool, default False
        Report gaps to everybody, (1 - share) times those to `reference`, which is then the rest.
    gap : {"absolute", "increase", "decrease"}
        Which growth of a gap counts.

    Returns
    -------
    Changes
    """
    check_option("gap", gap, GapKind)
    own, other = np.asarray(group, dtype=np.bool_), np.asarray(reference, dtype=np.bool_)
    if (own & other).any():
        raise InvalidParameterError("A group and its reference must not share rows.")
    rows = table.n @ own
    share = rows / np.maximum(table.n.sum(), 1.0) if population else np.zeros(len(rows))
    parts = (
        _row_parts(table, own, other, 1.0 - share)
        if isinstance(table, (PairedRows, PeriodRows))
        else _count_parts(table, own, other, 1.0 - share)
    )
    tested = parts.status == "ok"
    # A group that is everybody has no gap; its own change is still tested.
    alone = parts.status == "alone"
    change = _tests(parts.change, tested | alone)
    gap_change = _tests(parts.difference, tested)
    return Changes(
        groups=names,
        status=parts.status,
        n=rows,
        old=parts.old,
        new=parts.new,
        change=change,
        gap_change=gap_change,
        growth=GapGrowth(
            difference=parts.difference,
            total=parts.total,
            gap_old=parts.gap_old,
            gap_new=parts.gap_new,
            kind=gap,
        ),
        joint=parts.joint,
        method=parts.method,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    status: AnyArray
    old: FloatArray
    new: FloatArray
    gap_old: FloatArray
    gap_new: FloatArray
    change: IntervalEstimate
    difference: IntervalEstimate
    total: IntervalEstimate
    joint: JointChange
    method: str


def _count_parts(
    table: PairedCounts | PeriodCounts, own: BoolArray, other: BoolArray, factor: FloatArray
) -> _Parts:
    (old, new), (old_other, new_other) = table.joined(own).values, table.joined(other).values
    missing, no_other = np.isnan(old) | np.isnan(new), np.isnan(old_other) | np.isnan(new_other)
    change: IntervalEstimate
    finest: IntervalEstimate
    if isinstance(table, PairedCounts):
        mine, theirs = table.joined(own), table.joined(other)
        sides = [PairedChange(t.gained, t.lost, t.n, exact_below=0) for t in (mine, theirs)]
        # y_new + y_old - 1 is the change from 1 - y_old to y_new.
        sums = [PairedChange(t.both, t.neither, t.n, exact_below=0) for t in (mine, theirs)]
        difference = Mover(tuple(sides), (factor, -factor))
        total = Mover(tuple(sums), (factor, -factor))
        change = PairedChange(mine.gained, mine.lost, mine.n)
        finest = PairedChange(table.gained, table.lost, table.n, exact_below=0)
        method = "tango"
    else:
        first, second = table.joined(own), table.joined(other)
        rates = (
            WilsonRate(first.ones_new, first.n_new),
            WilsonRate(first.ones_old, first.n_old),
            WilsonRate(second.ones_new, second.n_new),
            WilsonRate(second.ones_old, second.n_old),
        )
        difference = Mover(rates, (factor, -factor, -factor, factor))
        total = Mover(rates, (factor, factor, -factor, -factor))
        change = RateChange(first.ones_new, first.n_new, first.ones_old, first.n_old)
        finest = RateChange(table.ones_new, table.n_new, table.ones_old, table.n_old)
        method = "wilson"
    status = np.where(missing, "empty", np.where(no_other, "alone", "ok"))
    return _Parts(
        status=status,
        old=old,
        new=new,
        gap_old=factor * (old - old_other),
        gap_new=factor * (new - new_other),
        change=change,
        difference=difference,
        total=total,
        joint=profile_test(finest),
        method=method,
    )


def profile_test(changes: IntervalEstimate) -> JointChange:
    r"""Test that several independent changes are equal.

    .. math:: \min_t \sum_j r_j(t)^2

    with r the signed roots is chi-square with one degree of freedom less than there are groups.

    Parameters
    ----------
    changes : IntervalEstimate
        Independent estimates; NaN is left out.

    Returns
    -------
    JointChange

    Examples
    --------
    Of 100 rows each, 9 were gained and 1 lost in one group and the reverse in another:

    >>> nine, one, n = np.array([9.0, 1.0]), np.array([1.0, 9.0]), np.array([100.0, 100.0])
    >>> profile_test(PairedChange(nine, one, n))
    JointChange(statistic=12.8..., df=1, p_value=0.000..., method='profile')
    """
    estimate = changes.estimate
    known = ~np.isnan(estimate) & ~np.isnan(changes.root(np.zeros_like(estimate)))
    df = int(known.sum()) - 1
    if df < 1:
        return JointChange(statistic=0.0, df=max(df, 0), p_value=1.0, method="profile")

    def total(value: FloatArray) -> FloatArray:
        roots = changes.root(np.multiply.outer(value, np.ones(len(estimate))))
        return np.asarray((roots[..., known] ** 2).sum(axis=-1))

    grid = np.linspace(estimate[known].min(), estimate[known].max(), _GRID)
    best = int(np.argmin(total(grid)))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(_NARROW):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if total(left) < total(right) else (left, high)
    statistic = float(total(np.asarray(0.5 * (low + high))))
    return JointChange(
        statistic=statistic,
        df=df,
        p_value=float(special.chdtrc(df, statistic)),
        method="profile",
    )


def _row_parts(
    table: PairedRows | PeriodRows, own: BoolArray, other: BoolArray, factor: FloatArray
) -> _Parts:
    m = own.shape[1]
    values = np.array([[*table.values(own[:, j]), *table.values(other[:, j])] for j in range(m)]).T
    old, new, old_other, new_other = values
    missing, no_other = np.isnan(old) | np.isnan(new), np.isnan(old_other) | np.isnan(new_other)
    change = stacked_laws([_change_law(table, own[:, j], -1.0) for j in range(m)])
    difference, total = (
        stacked_laws([_gap_law(table, own[:, j], other[:, j], sign, factor[j]) for j in range(m)])
        for sign in (-1.0, 1.0)
    )
    few = difference.status == "too-few-units"
    # Nothing changed in any row: no law, and no need for one.
    still = (difference.status == "no-variation") & (difference.estimate != 0.0)
    return _Parts(
        status=np.select(
            [missing, no_other, few, still], ["empty", "alone", "too_few", "no_variation"], "ok"
        ),
        old=old,
        new=new,
        gap_old=factor * (old - old_other),
        gap_new=factor * (new - new_other),
        change=change,
        difference=difference,
        total=total,
        joint=_row_joint(table),
        method="influence",
    )


def _change_law(table: PairedRows | PeriodRows, cells: BoolArray, sign: float) -> ContrastLaw:
    if np.isnan(table.values(cells)).any():
        return _no_law()
    u, w, c = table.sides(cells, sign)
    return unit_law(u, w, c)


def _gap_law(
    table: PairedRows | PeriodRows, own: BoolArray, other: BoolArray, sign: float, factor: float
) -> ContrastLaw:
    if np.isnan([*table.values(own), *table.values(other)]).any():
        return _no_law()
    (u, w, c), (u_other, w_other, _) = table.sides(own, sign), table.sides(other, sign)
    both = factor * np.concatenate([c, -c])
    return unit_law(np.hstack([u, u_other]), np.hstack([w, w_other]), both)


def _no_law() -> ContrastLaw:
    nothing = np.array(np.nan)
    return ContrastLaw(
        **dict.fromkeys(("estimate", "se", "df", "low", "high"), nothing),
        n_units=np.array(0.0),
        n_eff=np.array(0.0),
        status=np.array("empty"),
    )


def _row_joint(table: PairedRows | PeriodRows) -> JointChange:
    """Test that the finest groups changed alike; they may share units."""
    eye = np.eye(table.n_cells, dtype=np.bool_)
    laws = stacked_laws([_gap_law(table, cells, ~cells, -1.0, 1.0) for cells in eye])
    root = np.where(laws.estimate == 0.0, 0.0, laws.root(0.0))
    cells_of_unit = np.unique(np.stack([table.unit, table.cell]), axis=1)[0]
    shared = np.bincount(cells_of_unit).max(initial=0) > 1
    found = joint_bonferroni(root) if shared else joint_test(root, share=table.n)
    return JointChange(
        statistic=float(np.nan_to_num(found.statistic)),
        df=int(found.df),
        p_value=float(np.nan_to_num(found.p_value, nan=1.0)),
        method=found.method,
    )


def _tests(contrast: IntervalEstimate, tested: BoolArray) -> ChangeTest:
    # Equal before and after in every row: a root of zero, even without any variance.
    root = np.where(contrast.estimate == 0.0, 0.0, contrast.root(np.zeros(len(tested))))
    raw = np.where(tested, 2.0 * special.ndtr(-np.abs(root)), np.nan)
    return ChangeTest(
        contrast=contrast, p_value_raw=raw, p_value=adjusted_p_values(raw, method="holm")
    )


def _quantile(like: FloatArray, probability: float) -> FloatArray:
    return np.full(np.shape(like), float(special.ndtri(probability)))


def paired_change_test(
    before: object,
    after: object,
    group: AnyArray,
    *,
    reference: object = "population",
    w_before: object = None,
    w_after: object = None,
    weight: object = None,
    cluster: AnyArray | None = None,
    gap: GapKind = "absolute",
) -> Changes:
    """Test whether gaps between groups changed between two models on the same rows.

    The null hypothesis of `p_value` is that no gap changed.

    Parameters
    ----------
    before, after : array of shape (n,)
        Decisions or values of the old and the new model; numerators when a denominator is given.
    group : array of shape (n,)
        Group of each row.
    reference : "population", "rest" or a group
        What gaps are measured against.
    w_before, w_after : array of shape (n,), optional
        Denominators, for rates among some rows: y_true for a true positive rate, the decisions
        themselves for a predictive value. 1 by default; `w_after` is `w_before` by default.
    weight : array of shape (n,), optional
        Sampling weight of a row.
    cluster : array of shape (n,), optional
        Unit of each row.
    gap : {"absolute", "increase", "decrease"}
        Which growth of a gap counts.

    Returns
    -------
    Changes

    Examples
    --------
    A new model selects 30 more of 400 women and 5 fewer of 600 men:

    >>> group = np.repeat(["women", "men"], [400, 600])
    >>> old = np.r_[np.zeros(300), np.ones(100), np.zeros(400), np.ones(200)]
    >>> new = np.r_[np.zeros(270), np.ones(130), np.zeros(405), np.ones(195)]
    >>> print(paired_change_test(old, new, group, reference="rest"))
    Change of 2 gaps: joint p = 8.66e-09
      men: value 0.333 to 0.325, gap 0.0833 to 0, change -0.0833 [-0.115, -0.0605], p = 2.49e-07
      women: value 0.25 to 0.325, gap -0.0833 to 0, change +0.0833 [0.0605, 0.115], p = 2.49e-07

    The gap of 8 points is gone; a change between 6 and 11 points is shown.
    """
    first, second = check_finite("before", before, ndim=1), check_finite("after", after, ndim=1)
    if first.shape != second.shape:
        raise InvalidParameterError(
            f"two models must be compared on the same rows; got {first.size} and {second.size}."
        )
    w0 = np.ones(len(first)) if w_before is None else check_finite("w_before", w_before, ndim=1)
    w1 = w0 if w_after is None else check_finite("w_after", w_after, ndim=1)
    labels, cell = np.unique(np.asarray(group), return_inverse=True)
    counts = weight is None and cluster is None and np.array_equal(w0, w1)
    table: PairedCounts | PairedRows
    if counts and all(np.isin(part, (0.0, 1.0)).all() for part in (first, second, w0)):

        def count(old: int, new: int) -> FloatArray:
            here = (w0 == 1.0) & (first == old) & (second == new)
            return np.bincount(cell[here], minlength=len(labels)).astype(np.float64)

        table = PairedCounts(
            both=count(1, 1), lost=count(1, 0), gained=count(0, 1), neither=count(0, 0)
        )
    else:
        omega = np.ones(len(first)) if weight is None else check_finite("weight", weight, ndim=1)
        unit = np.arange(len(first)) if cluster is None else _codes(cluster)
        table = PairedRows(
            u_old=first * omega,
            w_old=w0 * omega,
            u_new=second * omega,
            w_new=w1 * omega,
            cell=cell,
            unit=unit,
            n_cells=len(labels),
        )
    return _against(table, labels, reference, gap)


def period_change_test(
    y: object,
    group: AnyArray,
    new: AnyArray,
    *,
    reference: object = "population",
    w: object = None,
    weight: object = None,
    cluster: AnyArray | None = None,
    gap: GapKind = "absolute",
) -> Changes:
    """Test whether gaps between groups changed between two periods or tables.

    The null hypothesis of `p_value` is that no gap changed.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome or decision; the numerator when `w` is given.
    group : array of shape (n,)
        Group of each row.
    new : boolean array of shape (n,)
        Whether a row belongs to the later period or table.
    reference : "population", "rest" or a group
        What gaps are measured against.
    w : array of shape (n,), optional
        Denominator; 1 by default.
    weight : array of shape (n,), optional
        Sampling weight of a row.
    cluster : array of shape (n,), optional
        Unit of each row; a unit may have rows in both periods.
    gap : {"absolute", "increase", "decrease"}
        Which growth of a gap counts.

    Returns
    -------
    Changes

    Examples
    --------
    >>> group = np.tile(np.repeat(["a", "b"], [300, 700]), 2)
    >>> late = np.repeat([False, True], 1000)
    >>> y = np.random.default_rng(3).random(2000) < 0.3 + 0.15 * (late & (group == "a"))
    >>> found = period_change_test(y, group, late, reference="b")
    >>> print(found)
    Change of 1 gap: joint p = 0.00742
      a: value 0.267 to 0.42, gap -0.0462 to 0.0771, change +0.123 [0.0331, 0.212], p = 0.00744
    """
    values = check_finite("y", np.asarray(y, dtype=np.float64), ndim=1)
    late = np.asarray(new)
    if late.dtype != np.bool_ or late.shape != values.shape:
        raise InvalidParameterError(
            f"`new` must hold true or false for each of the {len(values)} rows; got "
            f"{late.dtype} of shape {late.shape}."
        )
    below = np.ones(len(values)) if w is None else check_finite("w", w, ndim=1)
    labels, cell = np.unique(np.asarray(group), return_inverse=True)
    table: PeriodCounts | PeriodRows
    if (
        weight is None
        and cluster is None
        and np.isin(values, (0.0, 1.0)).all()
        and np.isin(below, (0.0, 1.0)).all()
    ):

        def count(period: bool, y_above: float) -> FloatArray:
            here = (below == 1.0) & (late == period) & (values >= y_above)
            return np.bincount(cell[here], minlength=len(labels)).astype(np.float64)

        table = PeriodCounts(
            n_old=count(False, 0.0),
            ones_old=count(False, 1.0),
            n_new=count(True, 0.0),
            ones_new=count(True, 1.0),
        )
    else:
        omega = np.ones(len(values)) if weight is None else check_finite("weight", weight, ndim=1)
        unit = np.arange(len(values)) if cluster is None else _codes(cluster)
        table = PeriodRows(
            u=values * omega, w=below * omega, new=late, cell=cell, unit=unit, n_cells=len(labels)
        )
    return _against(table, labels, reference, gap)


def _codes(labels: AnyArray) -> IntArray:
    return np.asarray(np.unique(np.asarray(labels), return_inverse=True)[1], dtype=np.int64)


def _against(
    table: PairedCounts | PeriodCounts | PairedRows | PeriodRows,
    labels: AnyArray,
    reference: object,
    gap: GapKind,
) -> Changes:
    own = np.eye(len(labels), dtype=np.bool_)
    watched = np.arange(len(labels))
    if isinstance(reference, str) and reference in {"rest", "population"}:
        other = ~own
    elif reference in labels.tolist():
        at = int(np.flatnonzero(labels == reference)[0])
        watched = np.delete(watched, at)
        own, other = own[:, watched], np.repeat(own[:, at : at + 1], len(watched), axis=1)
    else:
        raise InvalidParameterError(
            f"`reference` must be 'population', 'rest' or one of the groups {quoted(labels)}; got "
            f"{reference!r}."
        )
    return gap_changes(
        table,
        own,
        other,
        names=tuple(str(labels[j]) for j in watched),
        population=isinstance(reference, str) and reference == "population",
        gap=gap,
    )
