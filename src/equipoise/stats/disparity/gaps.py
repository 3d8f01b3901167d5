r"""How far each group's metric is from its target, with every test and interval from one root.

The engine of the audits `disparity`, `flag` and `certify`: sums over cells in, arrays over groups
out. Groups are unions of cells and may overlap or nest; the target may be a known number, the
population, a reference, the rest, or an external estimate. Unlike the plug-in method of [1]_, the
sampling error of an estimated target, and its covariance with the group, always count. Intervals
and p-values of every group follow, and those that hold for all groups together.

References
----------
.. [1] J. Tang, C. Xie, X. Zeng and L. Zhu (2026), Empirical likelihood-based fairness auditing:
   distribution-free certification and flagging. doi:10.48550/arXiv.2601.20269
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_number, check_option
from equipoise._typing import AnyArray, BoolArray, DisparityMethod, FloatArray, IntArray, Rng, Scale
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.disparity.likelihood_law import LikelihoodLaw
from equipoise.stats.disparity.means import MeanComparison, UnitCounts
from equipoise.stats.disparity.rates import RateLaw
from equipoise.stats.disparity.references import Comparison, Target, compare, covariance
from equipoise.stats.disparity.row_roots import RowRoots, Units, share_units
from equipoise.stats.inversion import GREATER, LESS
from equipoise.stats.multiplicity import correlations, max_t
from equipoise.stats.small_samples import shrunk_correlation

__all__ = [
    "LARGEST_MAX_T",
    "Disparities",
    "GroupedCells",
    "SimultaneousDisparities",
    "Target",
    "Units",
    "assess",
    "disparities",
    "joint_covariance",
    "simultaneous_disparities",
    "together",
]


class Law(Protocol):
    """One-sided tests of m groups on the normal scale, and the intervals that they give."""

    @property
    def method(self) -> AnyArray:
        """Name of the test of each group."""

    @property
    def tested(self) -> BoolArray:
        """Which groups have a test."""

    def signed_root(self, null: FloatArray, which: IntArray, tail: int) -> FloatArray:
        """Roots at `null` of the groups numbered `which`; see `equipoise.stats.inversion`."""

    def interval(self, critical: float) -> tuple[FloatArray, FloatArray]:
        """Disparities whose roots are at most `critical` in size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disparities:
    """Disparities of m groups; arrays hold NaN where `status` says there is no answer.

    Parameters
    ----------
    estimate, se : array of shape (m,)
        Difference from the target or ratio to it, and its standard error.
    group_value, target_value : array of shape (m,)
        The metric in the group and in what it is compared with.
    n, n_target : array of shape (m,)
        Rows on which the metric is defined.
    null : float
        Disparity under the null hypothesis of `statistic` and `p_value`.
    statistic, p_value : array of shape (m,)
        Two-sided test; the statistic is chi-square with one degree of freedom.
    ci_low, ci_high : array of shape (m,)
        Marginal interval at `confidence_level`; infinite on a side that is unbounded.
    confidence_level : float
        Of the interval.
    status : array of str
        "ok"; "empty": the metric is not defined on any row of the group; "too_few_units": fewer
        than 4 effective units in group or target; "degenerate": no variation, or a ratio to zero;
        "vacuous": the group is its own target; "impossible": the same with a null that cannot
        hold; "hull": the null is outside the range of the data, and the p-value is that of the
        Euclidean likelihood (none with "plug_in"); "unbounded": tested, but no finite interval.
    method : array of str
        "exact_binomial", "exact_unconditional", "saddlepoint", "few_units", "likelihood_ratio",
        "profile_el", "el", "influence_el", "influence_eel", "plug_in_el", "plug_in_eel", or "none".
    units : UnitCounts, optional
        Independent units of groups and targets; None for counts of independent rows.
    plug_in_weight : array of shape (m,)
        Variance of the disparity over the variance that the plug-in method assumes; its statistic
        is this number times chi-square. 1 for a known target.
    """

    estimate: FloatArray
    se: FloatArray
    group_value: FloatArray
    target_value: FloatArray
    n: IntArray
    n_target: IntArray
    null: float
    statistic: FloatArray
    p_value: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray
    confidence_level: float
    status: AnyArray
    method: AnyArray
    units: UnitCounts | None
    plug_in_weight: FloatArray
    _law: Law = field(repr=False)
    _cells: "GroupedCells | None" = field(repr=False)

    @property
    def tested(self) -> BoolArray:
        """True where p-values exist."""
        return np.isfinite(self.p_value)

    def root(self, null: float, tail: int = GREATER) -> FloatArray:
        """Signed root of the statistic at a hypothesised disparity.

        Parameters
        ----------
        null : float
            Hypothesised disparity.
        tail : {1, -1}
            For the alternative "greater" or "less"; they differ for exact tests only.

        Returns
        -------
        array of shape (m,)
        """
        which = np.flatnonzero(self.tested)
        result = np.full(len(self.n), np.nan)
        result[which] = self._law.signed_root(np.full(len(which), float(null)), which, tail)
        return result

    def nearer_root(self, null: float) -> FloatArray:
        """Signed root at a hypothesised disparity, of the tail that the estimate lies in.

        The other tail of an exact test holds nearly every table, and its root tells nothing.

        Parameters
        ----------
        null : float
            Hypothesised disparity.

        Returns
        -------
        array of shape (m,)
        """
        below = self.estimate < null
        return np.where(below, self.root(null, LESS), self.root(null, GREATER))

    def p_greater(self, margin: float) -> FloatArray:
        """P-values of the null "at most `margin`".

        Parameters
        ----------
        margin : float
            Largest disparity under the null.

        Returns
        -------
        array of shape (m,)
        """
        return np.asarray(special.ndtr(-self.root(margin, GREATER)))

    def p_less(self, margin: float) -> FloatArray:
        """P-values of the null "at least `margin`".

        Parameters
        ----------
        margin : float
            Smallest disparity under the null.

        Returns
        -------
        array of shape (m,)
        """
        return np.asarray(special.ndtr(self.root(margin, LESS)))

    def p_outside(self, low: float, high: float, *, fold: AnyArray | float = 1.0) -> FloatArray:
        r"""P-values of the null "between `low` and `high`".

        With b the signed root at the nearer end and d the distance between the two ends,
        :math:`\Phi(-b) + \Phi(-b - d)`: the second term is the chance of leaving on the other
        side. Without it, as in Theorem 8 of [1]_, the size reaches twice the nominal level for
        narrow intervals. The distance is the smaller of that in standard errors and that of the
        roots. Never below the two-sided p-value of `null` where that lies between the ends:
        whoever rejects "between" rejects each of its points, and an inner one on two sides.

        Where p-values of one side count several fold, so does this one as far as it is one-sided:
        :math:`f \Phi(-b) + (2 - f) \Phi(-b - d)` is the two-sided p-value when the ends meet, and f
        times that of one side when the other end is far away.

        Parameters
        ----------
        low, high : float
            Ends of the null, low <= high.
        fold : float or array of shape (m,), default 1
            f, at least 1.

        Returns
        -------
        array of shape (m,)
        """
        _check_order(low, high)
        above = self.estimate > high
        near = np.where(above, self.root(high, GREATER), -self.root(low, LESS))
        far = np.where(above, self.root(low, GREATER), -self.root(high, LESS))
        # Where all members are alike, the standard error leaves the group's own uncertainty out.
        with np.errstate(divide="ignore", invalid="ignore"):
            width = np.nan_to_num((high - low) / self.se, posinf=np.inf)
            distance = np.maximum(np.fmin(width, far - near), 0.0)
        p = fold * special.ndtr(-near) + (2.0 - fold) * special.ndtr(-near - distance)
        if low < self.null < high or low == self.null == high:
            p = np.maximum(p, self.p_value)
        outside = above | (self.estimate < low)
        return np.where(self.tested, np.where(outside, np.minimum(p, 1.0), 1.0), np.nan)

    def p_within(self, low: float, high: float) -> FloatArray:
        """P-values of the null "at most `low` or at least `high`" (two one-sided tests).

        Parameters
        ----------
        low, high : float
            Ends of the margin, low < high.

        Returns
        -------
        array of shape (m,)
            At most alpha exactly when the interval of level 1 - 2 alpha is inside the margin.
        """
        _check_order(low, high)
        return np.maximum(self.p_greater(low), self.p_less(high))

    def interval(self, critical: float) -> tuple[FloatArray, FloatArray]:
        """Disparities whose statistic is at most the square of `critical`.

        Parameters
        ----------
        critical : float
            1.96 for a marginal 95% interval; a max-t quantile for simultaneous ones.

        Returns
        -------
        low, high : array of shape (m,)
        """
        return self._law.interval(critical)

    def covariance(self) -> FloatArray:
        """Covariance matrix of the estimates, from influence functions.

        Returns
        -------
        array of shape (m, m)
        """
        return self.cells.covariance()

    @property
    def cells(self) -> "GroupedCells":
        """The cells that the groups share."""
        if self._cells is None:
            raise InvalidParameterError(
                "The covariance of disparities needs the cells that their groups share."
            )
        return self._cells

    def plug_in_coverage(self, confidence_level: float = 0.95) -> FloatArray:
        """Coverage of the plug-in interval that claims `confidence_level`.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Claimed level.

        Returns
        -------
        array of shape (m,)
        """
        z = special.ndtri((1.0 + confidence_level) / 2.0)
        with np.errstate(divide="ignore"):
            return np.asarray(special.chdtr(1.0, z**2 / self.plug_in_weight))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedCells:
    """The cells that groups share, for the covariance of their disparities.

    Parameters
    ----------
    moments : CellMoments
        Sums of (u, w) in K cells.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group.
    target : Target
        What groups are compared with.
    comparison : Comparison
        Sums of the same groups and their targets.
    """

    moments: CellMoments
    membership: Any
    target: Target
    comparison: Comparison

    def covariance(self) -> FloatArray:
        """Covariance matrix of the disparities, of shape (m, m)."""
        return covariance(self.moments, self.membership, self.target, [self.comparison])


def joint_covariance(found: Sequence[Disparities], moments: CellMoments) -> FloatArray:
    """Covariance matrix of disparities of several metrics in the same groups.

    Parameters
    ----------
    found : sequence of M Disparities
        Each of m groups of the same cells, compared with the same target.
    moments : CellMoments
        Sums of the (u, w) of the metrics, one metric after the other, in those cells.

    Returns
    -------
    array of shape (M * m, M * m)
        All groups of the first metric come first.
    """
    first = found[0].cells
    comparisons = [one.cells.comparison for one in found]
    return covariance(moments, first.membership, first.target, comparisons)


def disparities(
    moments: CellMoments,
    membership: Any,
    target: Target,
    *,
    binary: bool,
    method: DisparityMethod = "auto",
    scale: Scale = "difference",
    null: float | None = None,
    confidence_level: float = 0.95,
    units: Units | None = None,
    n: AnyArray | None = None,
) -> Disparities:
    r"""Estimate and test the disparity of every group.

    The null hypothesis is that the group's metric equals the target plus `null` (times `null` on
    the ratio scale).

    Parameters
    ----------
    moments : CellMoments
        Sums of (u, w) in K cells; the metric in a group is sum of u over sum of w.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group; dense or scipy-sparse.
    target : Target
        What groups are compared with.
    binary : bool
        True when u and w are 0 or 1 with u <= w, without weights or clusters: the sums are then
        counts and sufficient.
    method : {"auto", "el", "eel", "plug_in"}
        "auto": a function of the sums. For 0/1 metrics of independent rows the exact binomial test
        of a known target and the law of a pair of rates (`RateLaw`); otherwise the law of a
        contrast of means of few units (`MeanComparison`). "el": empirical likelihood; "eel":
        Euclidean likelihood, from moments alone; both with the F law. "plug_in": the method of
        [1]_, which takes an estimated target as known; `plug_in_coverage` tells what that costs.
    scale : {"difference", "ratio"}
        Group minus target, or group over target.
    null : float, optional
        Hypothesised disparity; by default 0 for differences and 1 for ratios.
    confidence_level : float, default 0.95
        Of the marginal intervals.
    units : Units, optional
        The rows, for empirical likelihood of real-valued metrics. Without them such metrics use
        the Euclidean likelihood.
    n : array of shape (K,), optional
        Rows on which the metric is defined, by cell; see `compare`.

    Returns
    -------
    Disparities

    Notes
    -----
    *Deviations from* [1]_: Theorem 2 (an estimated target leaves the chi-square limit unchanged) is
    false; the moments carry the influence function of the target, or theta is profiled. Groups
    for which zero is outside the convex hull are never rejected on that ground alone.

    References
    ----------
    .. [1] J. Tang, C. Xie, X. Zeng and L. Zhu (2026), Empirical likelihood-based fairness auditing:
       distribution-free certification and flagging. doi:10.48550/arXiv.2601.20269

    Examples
    --------
    Of 2174 African-American and 854 Caucasian defendants rated as high risk, 1369 and 505
    reoffended. Is the positive predictive value the same?

    >>> import numpy as np
    >>> n, ones = np.array([2174, 854]), np.array([1369.0, 505.0])
    >>> sums = np.stack([ones, n], axis=1)
    >>> product = np.stack([np.stack([ones, ones], 1), np.stack([ones, n], 1)], 1)
    >>> cells = CellMoments(n=n, total=sums, product=product, n_units=int(n.sum()))
    >>> caucasian = Target(kind="reference", cells=np.array([False, True]))
    >>> gap = disparities(cells, np.array([[True], [False]]), caucasian, binary=True)
    >>> print(f"{gap.estimate[0]:.4f} [{gap.ci_low[0]:.4f}, {gap.ci_high[0]:.4f}]")
    0.0384 [-0.0007, 0.0778]
    >>> print(f"{gap.p_value[0]:.4f}")
    0.0545

    A gap of 3.8 points, not quite significant at 5%. Taking the Caucasian rate as known would
    claim 95% and deliver

    >>> print(f"{gap.plug_in_coverage()[0]:.3f}")
    0.696
    """
    c = compare(moments, membership, target, scale=scale, n=n)
    if moments.cross is not None and moments.shared is None and units is not None:
        moments = share_units(moments, units, membership, target)
    rows = None
    if units is not None and not binary and method in {"el", "plug_in"}:
        rows = RowRoots.of(units, c, membership, target)
    means = None
    if not (binary and method in {"auto", "plug_in"}):
        means = MeanComparison.of_cells(moments, membership, target, scale=scale)
    return assess(
        c,
        binary=binary,
        method=method,
        null=null,
        confidence_level=confidence_level,
        means=means,
        rows=rows,
        cells=GroupedCells(moments=moments, membership=membership, target=target, comparison=c),
    )


def assess(
    comparison: Comparison,
    *,
    binary: bool,
    method: DisparityMethod = "auto",
    null: float | None = None,
    confidence_level: float = 0.95,
    means: MeanComparison | None = None,
    rows: RowRoots | None = None,
    cells: GroupedCells | None = None,
) -> Disparities:
    """Choose the law of each group, test it and invert it.

    Parameters
    ----------
    comparison : Comparison
        Sums of groups and targets.
    binary, method, null, confidence_level : optional
        As in `disparities`.
    means : MeanComparison, optional
        The same groups as contrasts of means; needed unless counts decide.
    rows : RowRoots, optional
        Rows of a real-valued metric.
    cells : GroupedCells, optional
        What `Disparities.covariance` is computed from, when it is asked for.

    Returns
    -------
    Disparities
    """
    check_option("method", method, DisparityMethod)
    level = check_fraction("confidence_level", confidence_level)
    full = comparison
    natural = 1.0 if full.scale == "ratio" else 0.0
    value = natural if null is None else check_number("null", null)
    status = _status(full, means, impossible=value != natural)
    law: Law
    if means is not None and method == "auto":
        law, status = means, np.where(means.tested | (status != "ok"), status, "degenerate")
    elif method == "auto":
        law = RateLaw.of(full, status == "ok")
    else:
        c = full.as_known() if method == "plug_in" else full
        law = LikelihoodLaw.of(
            c,
            None if rows is None else replace(rows, comparison=c),
            method,
            binary=binary,
            tested=status == "ok",
            df=np.full(len(c.n), np.inf) if means is None else means.units().df,
            null=value,
        )
        status = np.where(law.hull, "hull", status)
    code = np.where((status == "ok") | (status == "hull"), law.method, "none")
    tested = code != "none"
    low, high = law.interval(float(special.ndtri((1.0 + level) / 2.0)))
    low, high = (np.where(tested, end, np.nan) for end in (low, high))
    bounded = np.isfinite(low) & np.isfinite(high)
    status = np.where(tested & ~bounded & (status == "ok"), "unbounded", status)
    statistic, p_value = _two_sided(law, value, tested)
    known = full.as_known()
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        weight = (full.se / known.se) ** 2
    return Disparities(
        estimate=full.estimate,
        se=full.se if means is None else _standard_error(means, full),
        group_value=full.group_value,
        target_value=full.target_value,
        n=full.n,
        n_target=full.n_target,
        null=value,
        statistic=statistic,
        p_value=p_value,
        ci_low=low,
        ci_high=high,
        confidence_level=level,
        status=status,
        method=code.astype(object),
        units=None if means is None else means.units(),
        plug_in_weight=weight,
        _law=law,
        _cells=cells,
    )


def _status(c: Comparison, means: MeanComparison | None, *, impossible: bool) -> AnyArray:
    """Why a group has no test, or "ok"."""
    status = np.full(len(c.n), "ok", dtype="<U13")
    if means is not None:
        found = means.status
        status[(found == "no-variation") | (found == "no-ratio")] = "degenerate"
        status[found == "too-few-units"] = "too_few_units"
        status[found == "empty"] = "empty"
    if c.scale == "ratio":
        status[c.target_value == 0.0] = "degenerate"
    if c.target.any():
        status[~(c.target[:, 1] > 0)] = "empty"
    status[c.same] = "impossible" if impossible else "vacuous"
    status[~(c.group[:, 1] > 0)] = "empty"
    return status


def _standard_error(means: MeanComparison, c: Comparison) -> FloatArray:
    """Of the estimate, unbiased; on the ratio scale that of the contrast at the estimate."""
    if c.scale == "difference":
        return means.law(0.0).se
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(means.law(c.estimate).se / np.abs(c.target_value))


def _check_order(low: float, high: float) -> None:
    if not low <= high:
        raise InvalidParameterError(
            f"The ends of an interval of disparities must be in order; got {low} and {high}."
        )


def _two_sided(law: Law, null: float, tested: BoolArray) -> tuple[FloatArray, FloatArray]:
    which = np.flatnonzero(tested)
    at_null = np.full(len(which), null)
    above, below = (law.signed_root(at_null, which, tail) for tail in (GREATER, LESS))
    smaller = np.minimum(-above, below)
    statistic, p_value = np.full(len(tested), np.nan), np.full(len(tested), np.nan)
    # Exact tails overlap, so that both can exceed one half.
    statistic[which] = np.minimum(smaller, 0.0) ** 2
    p_value[which] = np.minimum(2.0 * special.ndtr(smaller), 1.0)
    return statistic, p_value


LARGEST_MAX_T = 3000
"""More groups than this are adjusted by Bonferroni: their correlation matrix would not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimultaneousDisparities:
    """Intervals that cover all disparities together, with p-values to match.

    Parameters
    ----------
    low, high, p_value : array of shape (m,)
        NaN where a group was not tested.
    critical : float
        Critical value of the intervals; NaN when no group was tested.
    rule : {"max-t", "Bonferroni"}
        How the number of groups is allowed for.
    """

    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    critical: float
    rule: str


def simultaneous_disparities(
    found: Disparities | Sequence[Disparities],
    *,
    moments: CellMoments | None = None,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> SimultaneousDisparities:
    """Return intervals and p-values that allow for the number of groups, and of metrics.

    Parameters
    ----------
    found : Disparities, or a sequence of them
        Of groups that may overlap, in one metric or in several; their covariance counts.
    moments : CellMoments, optional
        With several metrics: sums of the (u, w) of all, as in `joint_covariance`.
    confidence_level : float, default 0.95
        Joint coverage.
    rng : Generator, int or None
        For the law of the largest root.

    Returns
    -------
    SimultaneousDisparities
        The groups of several metrics stand one metric after the other.
    """
    level = check_fraction("confidence_level", confidence_level)
    parts = [found] if isinstance(found, Disparities) else list(found)
    tested, raw = (
        np.concatenate(x) for x in zip(*((f.tested, f.p_value) for f in parts), strict=True)
    )
    count = int(tested.sum())
    p = np.full(len(tested), np.nan)
    rule, critical = "max-t", np.nan
    if count > LARGEST_MAX_T:
        rule, critical = "Bonferroni", float(-special.ndtri((1.0 - level) / (2 * count)))
        p[tested] = np.minimum(raw[tested] * count, 1.0)
    elif count:
        # Draws run in an order made of numbers: the names of groups must not matter.
        order = np.flatnonzero(tested)
        value, n, df = (
            np.concatenate(x)[order]
            for x in zip(*((f.group_value, f.n, _degrees(f)) for f in parts), strict=True)
        )
        place = np.lexsort((value, n))
        order = order[place]
        matrix = parts[0].covariance() if moments is None else joint_covariance(parts, moments)
        correlation = shrunk_correlation(correlations(matrix[np.ix_(order, order)]), df[place])
        p[order], critical = together(raw[order], correlation, level, rng=rng)
    ends = [f.interval(critical) if count else (f.ci_low, f.ci_high) for f in parts]
    low, high = (np.concatenate(end) for end in zip(*ends, strict=True))
    return SimultaneousDisparities(low=low, high=high, p_value=p, critical=critical, rule=rule)


def _degrees(found: Disparities) -> FloatArray:
    """Degrees of freedom of each test; infinite where counts are sufficient."""
    return np.full(len(found.n), np.inf) if found.units is None else found.units.df


def together(
    p_value: FloatArray, correlation: FloatArray, confidence_level: float, *, rng: Rng = None
) -> tuple[FloatArray, float]:
    """P-values that allow for the number of tests, and the critical value of their intervals.

    Parameters
    ----------
    p_value : array of shape (m,)
        Two-sided p-values, one by one.
    correlation : array of shape (m, m)
        Of the estimates.
    confidence_level : float
        Joint coverage.
    rng : Generator, int or None
        For the law of the largest root.

    Returns
    -------
    p_value : array of shape (m,)
    critical : float
    """
    law = max_t(correlation, rng=rng)
    # No draw makes a family narrower than one of its intervals alone: p-values do not either.
    single = float(-special.ndtri((1.0 - confidence_level) / 2.0))
    # From the two-sided p-value: an exact test has a different root for each side.
    adjusted = np.maximum(law.p_values(-special.ndtri(p_value / 2.0)), p_value)
    return adjusted, max(law.critical(confidence_level), single)
