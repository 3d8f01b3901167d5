r"""Changes of values and gaps: two models on the same rows, or two periods.

Decisions of two models on the same rows are paired. Rows on which they agree say nothing about the
change, so that the counts *gained* (0 to 1) and *lost* (1 to 0) of each group decide: the score
test and interval of Tango [1]_ for a group (its p-value is McNemar's), exact when few rows changed,
and for the change of a gap the method of variance estimates recovery (MOVER, [2]_) on Tango's
intervals. Two periods of independent rows use the same on Wilson's intervals. Everything else (real
values, weights, clusters, which may have rows in both periods) uses influence functions summed by
cluster and a t law with Bell-McCaffrey degrees of freedom [3]_. What is kept of each group are
counts where they suffice, else rows.

References
----------
.. [1] T. Tango (1998), Equivalence test and confidence interval for the difference in proportions
   for the paired-sample design, Statistics in Medicine 17, 891-908.
   doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B
.. [2] G. Y. Zou and A. Donner (2008), Construction of confidence limits about effect measures: a
   general approach, Statistics in Medicine 27, 1693-1702, doi:10.1002/sim.3095.
.. [3] R. M. Bell and D. F. McCaffrey (2002), Bias reduction in standard errors for linear
   regression with multi-stage samples, Survey Methodology 28, 169-181.
"""

from dataclasses import dataclass, fields
from typing import Self

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
from equipoise.stats.disparity.growth import GapGrowth, GapKind, normal_quantile
from equipoise.stats.multiplicity import adjusted_p_values
from equipoise.stats.small_samples import ContrastLaw, joint_bonferroni, joint_test
from equipoise.stats.summary import Interval

__all__ = [
    "ChangeTest",
    "Changes",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """Counts by group; those of a union are sums."""

    def joined(self, cells: BoolArray) -> Self:
        """Counts of unions of groups.

        Parameters
        ----------
        cells : boolean array of shape (m, k)
            Which groups make up each union.

        Returns
        -------
        PairedCounts or PeriodCounts
        """
        join = cells.astype(np.float64)
        return type(self)(**{part.name: getattr(self, part.name) @ join for part in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCounts(_Counts):
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

    @property
    def size(self) -> FloatArray:
        """What shares of the population are made of: rows."""
        return self.n

    @property
    def values(self) -> tuple[FloatArray, FloatArray]:
        """Old and new rates."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return (self.both + self.lost) / self.n, (self.both + self.gained) / self.n


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodCounts(_Counts):
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

    @property
    def size(self) -> FloatArray:
        """What shares of the population are made of: rows."""
        return self.n

    @property
    def values(self) -> tuple[FloatArray, FloatArray]:
        """Old and new rates."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.ones_old / self.n_old, self.ones_new / self.n_new


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows, or sums of rows of one unit and group.

    Parameters
    ----------
    cell : array of shape (r,)
        Group of each row, from 0.
    unit : array of shape (r,)
        Independent unit of each row, from 0.
    n : array of shape (m,)
        Rows that count, by group.
    """

    cell: IntArray
    unit: IntArray
    n: FloatArray

    @property
    def n_units(self) -> int:
        """Independent units."""
        return int(self.unit.max(initial=-1)) + 1

    def _by_group(self, mass: FloatArray) -> FloatArray:
        sums = np.bincount(self.cell, weights=mass, minlength=len(self.n))
        return np.asarray(sums, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRows(_Rows):
    """Values of two models on the same rows.

    Parameters
    ----------
    cell, unit, n
        Group and unit of each row, and rows by group.
    u_old, w_old, u_new, w_new : array of shape (r,)
        Numerators and denominators of the metric, weights inside.
    """

    u_old: FloatArray
    w_old: FloatArray
    u_new: FloatArray
    w_new: FloatArray

    @property
    def size(self) -> FloatArray:
        """What shares of the population are made of: denominators of both models."""
        return self._by_group(self.w_old + self.w_new)

    def values(self, cells: BoolArray) -> tuple[float, float]:
        """Old and new value of some of the groups; NaN without rows."""
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
        totals = [
            np.bincount(self.unit[here], weights=part, minlength=self.n_units)[:, None]
            for part in (influence + value * share, share)
        ]
        return totals[0].astype(np.float64), totals[1].astype(np.float64), np.ones(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRows(_Rows):
    """Rows of two periods; units may have rows in both.

    Parameters
    ----------
    cell, unit, n
        Group and unit of each row, and rows by group.
    u, w : array of shape (r,)
        Numerator and denominator of the metric, weights inside; rows with w = 0 do not count.
    new : boolean array of shape (r,)
        Whether a row belongs to the later period.
    """

    u: FloatArray
    w: FloatArray
    new: BoolArray

    @property
    def size(self) -> FloatArray:
        """What shares of the population are made of: denominators of both periods."""
        return self._by_group(self.w)

    def values(self, cells: BoolArray) -> tuple[float, float]:
        """Old and new value of some of the groups; NaN without rows."""
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
        key = 2 * self.unit[here] + np.where(self.new[here], 0, 1)
        u, w = (
            np.bincount(key, weights=part[here], minlength=2 * self.n_units).reshape(-1, 2)
            for part in (self.u, self.w)
        )
        return u.astype(np.float64), w.astype(np.float64), np.array([1.0, sign])


def _ratio(u: FloatArray, w: FloatArray) -> float:
    total = float(w.sum())
    return float(u.sum()) / total if total else float("nan")


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
        z = np.full(len(self.estimate), normal_quantile((1.0 + level) / 2.0))
        low, high = self.contrast.interval(z)
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
    def estimate(self) -> FloatArray:
        """How much each gap changed."""
        return self.gap_change.estimate

    @property
    def statistic(self) -> float:
        """Statistic of the joint test."""
        return self.joint.statistic

    @property
    def p_value(self) -> float:
        """P-value of the joint test that no gap changed."""
        return self.joint.p_value

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Marginal intervals of the changes of gaps.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of each interval.

        Returns
        -------
        Interval
        """
        return Interval(*self.gap_change.confidence_interval(confidence_level))

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
            False also when a group is too small to be tested, or has rows on one side only. What
            has nothing to be compared with, as the reference itself, does not count.
        """
        bound = self.growth.bound(alpha)[self.status != "alone"]
        return len(bound) > 0 and bool(np.all(bound <= check_number("margin", margin, low=0.0)))

    def __str__(self) -> str:
        low, high = map(np.asarray, self.confidence_interval())
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
    share = np.zeros(len(rows))
    if population:
        share = table.size @ own / max(float(table.size.sum()), 1e-300)
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
    eye = np.eye(len(table.n), dtype=np.bool_)
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
            n=_rows_by(cell, (w0 != 0) | (w1 != 0), len(labels)),
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
            u=values * omega,
            w=below * omega,
            new=late,
            cell=cell,
            unit=unit,
            n=_rows_by(cell, below != 0, len(labels)),
        )
    return _against(table, labels, reference, gap)


def _codes(labels: AnyArray) -> IntArray:
    return np.asarray(np.unique(np.asarray(labels), return_inverse=True)[1], dtype=np.int64)


def _rows_by(cell: IntArray, counts: BoolArray, size: int) -> FloatArray:
    return np.bincount(cell[counts], minlength=size).astype(np.float64)


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
