"""Tests of gaps between groups, on arrays: whether a mean or a rate differs, and by how much.

The numbers are those of the audits `disparity`, `flag` and `certify`, which read tables.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from equipoise._checks import check_finite, check_number
from equipoise._numbers import number
from equipoise._typing import AnyArray, DisparityMethod, FloatArray, IntArray, Rng, Scale
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.disparity.gaps import (
    Disparities,
    Target,
    Units,
    disparities,
    simultaneous_disparities,
)
from equipoise.stats.disparity.joint import JointDisparity, joint_test
from equipoise.stats.rows import GroupCodes, check_lengths, check_weight, code_clusters, code_groups
from equipoise.stats.summary import Interval, normal_quantile, p_line, summary_table

__all__ = [
    "DisparityTest",
    "JointDisparityTest",
    "MeanTest",
    "disparity_test",
    "el_test",
    "joint_disparity_test",
]

REASONS = {
    "empty": "the metric is not defined on any row",
    "too_few_units": "it takes 4 effective units on each side, and there are fewer",
    "degenerate": "nothing varies, or the ratio is to zero",
    "vacuous": "the group is what it is compared with",
    "impossible": "the group is what it is compared with",
}
"""Why a group has no test, by status of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisparityTest:
    """Gaps of groups, with a test and an interval for each.

    Parameters
    ----------
    groups : tuple
        Labels of the groups that are compared, in the order of the arrays.
    reference : str
        What they are compared with, in words.
    scale : {"difference", "ratio"}
        Group minus reference, or group over reference.
    n : array of shape (m,)
        Rows of each group on which the metric is defined.
    value, reference_value : array of shape (m,)
        The metric in the group and in the reference.
    estimate, se : array of shape (m,)
        The gap and its standard error.
    statistic, p_value : array of shape (m,)
        Two-sided test of no gap, each by itself; NaN where `status` says why there is none.
    method, status : tuple of str
        The test of each group, and "ok" or why there is no test.
    """

    groups: tuple[Hashable, ...]
    reference: str
    scale: Scale
    n: IntArray
    value: FloatArray
    reference_value: FloatArray
    estimate: FloatArray
    se: FloatArray
    statistic: FloatArray
    p_value: FloatArray
    method: tuple[str, ...]
    status: tuple[str, ...]
    _found: Disparities = field(repr=False)

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return an interval for each gap by itself.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of each interval; zero (or one, for ratios) lies outside exactly when the p-value is at
            most one minus the level.

        Returns
        -------
        Interval
            Arrays of shape (m,).
        """
        return Interval(*self._found.interval(normal_quantile(confidence_level)))

    def __str__(self) -> str:
        low, high = self._found.interval(normal_quantile(0.95))
        return summary_table(
            f"Group {'minus' if self.scale == 'difference' else 'over'} {self.reference}",
            {
                "group": self.groups,
                "n": self.n.tolist(),
                "value": self.value.tolist(),
                self.scale: self.estimate.tolist(),
                "95% interval": [Interval(*ends) for ends in zip(low, high, strict=True)],
                "p": self.p_value.tolist(),
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JointDisparityTest:
    """One test that no group differs, with simultaneous intervals.

    Parameters
    ----------
    groups : tuple
        Labels of the groups, in the order of `estimate`.
    reference : str
        What they are compared with, in words.
    estimate : array of shape (m,)
        The gap of each group.
    statistic, p_value : float
        Chi-square with `df` degrees of freedom under the null.
    df : int
        Independent comparisons among the groups.
    method : str
        The likelihood or score that was used.
    """

    groups: tuple[Hashable, ...]
    reference: str
    estimate: FloatArray
    statistic: float
    df: int
    p_value: float
    method: str
    _found: Disparities = field(repr=False)

    def confidence_interval(self, confidence_level: float = 0.95, *, rng: Rng = None) -> Interval:
        """Return intervals that cover all gaps together (max-t).

        Parameters
        ----------
        confidence_level : float, default 0.95
            Joint coverage.
        rng : Generator, int or None
            For the law of the largest root.

        Returns
        -------
        Interval
            Arrays of shape (m,).
        """
        found = simultaneous_disparities(self._found, confidence_level=confidence_level, rng=rng)
        return Interval(found.low, found.high)

    def __str__(self) -> str:
        low, high = self.confidence_interval()
        ends = zip(np.atleast_1d(low), np.atleast_1d(high), strict=True)
        return summary_table(
            f"No group differs from {self.reference}: "
            + p_line(self.statistic, self.p_value, df=self.df, name="chi-square"),
            {
                "group": self.groups,
                self._scale: self.estimate.tolist(),
                "95% together": [Interval(*pair) for pair in ends],
            },
        )

    @property
    def _scale(self) -> str:
        return "difference" if self._found.null == 0.0 else "ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanTest:
    """A mean, or a ratio of means, tested by empirical likelihood.

    Parameters
    ----------
    estimate, se : float
        The mean and its standard error.
    value : float
        The mean under the null hypothesis.
    statistic, p_value : float
        Two-sided; chi-square with one degree of freedom under the null, after the F law.
    n : int
        Rows that count.
    method : str
        The likelihood that was used.
    """

    estimate: float
    se: float
    value: float
    statistic: float
    p_value: float
    n: int
    method: str
    _found: Disparities = field(repr=False)

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return the means that the test does not reject.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        Interval
        """
        low, high = self._found.interval(normal_quantile(confidence_level))
        return Interval(self.value + float(low[0]), self.value + float(high[0]))

    def __str__(self) -> str:
        return summary_table(
            f"The mean is {number(self.value)}: "
            + p_line(self.statistic, self.p_value, df=1, name="chi-square"),
            {
                "n": [self.n],
                "mean": [self.estimate],
                "95% interval": [self.confidence_interval()],
            },
        )


def disparity_test(
    y: AnyArray,
    group: AnyArray,
    *,
    denominator: AnyArray | None = None,
    reference: object = "population",
    reference_se: float = 0.0,
    scale: Scale = "difference",
    method: DisparityMethod = "auto",
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
) -> DisparityTest:
    r"""Test for each group that its mean is that of a reference, and estimate the gap.

    The null hypothesis of a group is :math:`\theta_g = \theta_r` with
    :math:`\theta = E[y] / E[w]`, a mean or, with `denominator` w, a rate. The sampling error of an
    estimated reference, and its covariance with the group, count.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome, decision or error of each row; 0/1 or any numbers.
    group : array of shape (n,)
        Label of each row: text, numbers or any objects.
    denominator : array of shape (n,), optional
        w. For the true positive rate pass ``y_pred * y_true`` and ``y_true``.
    reference : "population", "rest", label or float, default "population"
        Everybody, everybody else, the group of that label, or a known number that is no label.
    reference_se : float, default 0
        Standard error of a number that was estimated elsewhere.
    scale : {"difference", "ratio"}
        Group minus reference, or group over reference.
    method : {"auto", "el", "eel", "plug_in"}
        The test that fits the size and kind of the data, empirical likelihood, Euclidean
        likelihood, or the plug-in method of [1]_, which takes an estimated reference as known.
    cluster : array of shape (n,), optional
        Unit that rows repeat; rows of one unit may depend on each other.
    weight : array of shape (n,), optional
        Sampling weights.

    Returns
    -------
    DisparityTest

    Raises
    ------
    DataError
        With a single group that is compared with itself, or missing labels.

    See Also
    --------
    joint_disparity_test : one test for all groups.
    adjusted_p_values : allow for the number of groups.

    Notes
    -----
    *Deviations from* [1]_: an estimated target does change the chi-square limit of Theorem 2; see
    `equipoise.stats.disparity.gaps.disparities`, which this calls.

    References
    ----------
    .. [1] J. Tang, C. Xie, X. Zeng and L. Zhu (2026), Empirical likelihood-based fairness auditing:
       distribution-free certification and flagging. https://doi.org/10.48550/arXiv.2601.20269

    Examples
    --------
    Of 100 women 30 were hired, of 120 men 54. Were women hired less often than men?

    >>> import numpy as np
    >>> from equipoise.stats import disparity_test
    >>> hired = np.repeat([1, 0, 1, 0], [30, 70, 54, 66])
    >>> sex = np.repeat(["women", "men"], [100, 120])
    >>> print(disparity_test(hired, sex, reference="men"))
    Group minus men
    group    n  value  difference       95% interval      p
    women  100    0.3       -0.15  [-0.279, -0.0164]  0.027

    They were, by 15 points; a gap between 2 and 27 points is compatible with these numbers.
    """
    rows = _rows(y, group, denominator, cluster, weight)
    target, words, compared = _target(rows, reference, reference_se)
    found = _disparities(rows, target, compared, scale=scale, method=method)
    return DisparityTest(
        groups=tuple(rows.groups.labels[k] for k in compared),
        reference=words,
        scale=scale,
        n=found.n,
        value=found.group_value,
        reference_value=found.target_value,
        estimate=found.estimate,
        se=found.se,
        statistic=found.statistic,
        p_value=found.p_value,
        method=tuple(map(str, found.method)),
        status=tuple(map(str, found.status)),
        _found=found,
    )


def joint_disparity_test(
    y: AnyArray,
    group: AnyArray,
    *,
    denominator: AnyArray | None = None,
    reference: object = "population",
    reference_se: float = 0.0,
    scale: Scale = "difference",
    method: DisparityMethod = "auto",
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
) -> JointDisparityTest:
    r"""Test that no group differs from the reference.

    The null hypothesis is :math:`\theta_g = \theta_r` for every group g; with
    ``reference="population"`` that all groups have the same mean.

    Parameters
    ----------
    y, group, denominator, reference, reference_se, scale, method, cluster, weight
        As in `disparity_test`. The test is the same on both scales; the scale is that of the
        intervals.

    Returns
    -------
    JointDisparityTest

    References
    ----------
    .. [1] J. Tang, C. Xie, X. Zeng and L. Zhu (2026), Empirical likelihood-based fairness auditing:
       distribution-free certification and flagging. https://doi.org/10.48550/arXiv.2601.20269

    Examples
    --------
    Three schools admitted 30, 45 and 35 of 100 applicants each. Do they admit at the same rate?

    >>> import numpy as np
    >>> from equipoise.stats import joint_disparity_test
    >>> admitted = np.repeat([1, 0, 1, 0, 1, 0], [30, 70, 45, 55, 35, 65])
    >>> print(joint_disparity_test(admitted, np.repeat(["A", "B", "C"], 100)))
    No group differs from the population: chi-square = 5.02 on 2 df, p = 0.081
    group  difference      95% together
    A         -0.0667  [-0.156, 0.0287]
    B          0.0833  [-0.0122, 0.179]
    C         -0.0167  [-0.109, 0.0796]

    A difference is not detected, which does not show that there is none.
    """
    rows = _rows(y, group, denominator, cluster, weight)
    target, words, compared = _target(rows, reference, reference_se)
    found = _disparities(rows, target, compared, scale=scale, method=method)
    joint = _joint(rows, target, compared, method=method, found=found)
    return JointDisparityTest(
        groups=tuple(rows.groups.labels[k] for k in compared),
        reference=words,
        estimate=found.estimate,
        statistic=joint.statistic,
        df=joint.df,
        p_value=joint.p_value,
        method=joint.method,
        _found=found,
    )


def el_test(
    y: AnyArray,
    value: float,
    *,
    denominator: AnyArray | None = None,
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
) -> MeanTest:
    r"""Test by empirical likelihood that a mean has a given value.

    The null hypothesis is :math:`E[y] = v`, or :math:`E[y] / E[w] = v` with a denominator. No law
    of the outcome is assumed, and the interval has the shape of the data.

    Parameters
    ----------
    y : array of shape (n,)
        Any numbers.
    value : float
        The mean under the null hypothesis.
    denominator : array of shape (n,), optional
        w, for a ratio of means.
    cluster : array of shape (n,), optional
        Unit that rows repeat.
    weight : array of shape (n,), optional
        Sampling weights.

    Returns
    -------
    MeanTest

    Raises
    ------
    GroupTooSmallError
        If there are too few rows, or nothing varies.

    Notes
    -----
    :math:`2 \sum \log(1 + \lambda (y - v))` with :math:`\lambda` the root of
    :math:`\sum (y - v) / (1 + \lambda (y - v))` [1]_ has the law of F with n - 1 degrees; the
    statistic is the chi-square with the same p-value. A value outside the range of the data has the
    p-value of the Euclidean likelihood, and `method` says so.

    References
    ----------
    .. [1] A. B. Owen (1988), Empirical likelihood ratio confidence intervals for a single
       functional, Biometrika 75, 237-249. https://doi.org/10.1093/biomet/75.2.237

    Examples
    --------
    Twelve loans lost 0 to 9 thousand. Is a mean loss of 1 compatible with that?

    >>> from equipoise.stats import el_test
    >>> print(el_test([0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 7, 9], 1.0))
    The mean is 1: chi-square = 6.32 on 1 df, p = 0.012
    n   mean  95% interval
    12  2.83   [1.38, 4.9]

    It is not; the mean lies between 1.4 and 4.9, further up than down from 2.8.
    """
    null = check_number("value", value)
    everyone = np.zeros(len(np.asarray(y)), dtype=np.int64)
    rows = _rows(y, everyone, denominator, cluster, weight)
    found = _disparities(
        rows, Target(kind="known", value=null), [0], scale="difference", method="el"
    )
    if not found.tested[0]:
        why = REASONS.get(str(found.status[0]), "nothing varies")
        raise GroupTooSmallError(f"the mean of {int(found.n[0])} rows cannot be tested: {why}.")
    return MeanTest(
        estimate=float(found.group_value[0]),
        se=float(found.se[0]),
        value=null,
        statistic=float(found.statistic[0]),
        p_value=float(found.p_value[0]),
        n=int(found.n[0]),
        method=str(found.method[0]),
        _found=found,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows of a metric, and their sums by group."""

    groups: GroupCodes
    moments: CellMoments
    defined: IntArray
    binary: bool
    units: Units


def _rows(
    y: AnyArray,
    group: AnyArray,
    denominator: AnyArray | None,
    cluster: AnyArray | None,
    weight: AnyArray | None,
) -> _Rows:
    check_lengths(y=y, group=group, denominator=denominator, cluster=cluster, weight=weight)
    u = check_finite("y", y, ndim=1)
    w = np.ones_like(u) if denominator is None else check_finite("denominator", denominator, ndim=1)
    groups, unit, omega = code_groups(group), code_clusters(cluster), check_weight(weight)
    size = len(groups.labels)
    counts = bool(np.isin(u, (0.0, 1.0)).all() and np.isin(w, (0.0, 1.0)).all() and (u <= w).all())
    scale = 1.0 if omega is None else omega
    return _Rows(
        groups=groups,
        moments=CellMoments.from_rows(
            np.stack([u, w], axis=1), groups.code, n_cells=size, cluster=unit, weight=omega, order=3
        ),
        defined=np.bincount(groups.code, weights=w != 0.0, minlength=size).astype(np.int64),
        binary=counts and unit is None and omega is None,
        units=Units(u=u * scale, w=w * scale, cell=groups.code, unit=unit),
    )


def _target(rows: _Rows, reference: object, se: float) -> tuple[Target, str, list[int]]:
    """Return what groups are compared with, its words, and which groups are compared."""
    labels = rows.groups.labels
    everyone = list(range(len(labels)))
    spread = check_number("reference_se", se, low=0.0)
    if reference in labels:
        if reference in {"population", "rest"}:
            raise InvalidParameterError(
                f"`reference` {reference!r} is a group and a word of its own. Rename the group."
            )
        k = rows.groups.find(reference)
        cells = np.arange(len(labels)) == k
        return (
            Target(kind="reference", cells=cells),
            str(reference),
            [other for other in _several(everyone, reference) if other != k],
        )
    if reference == "population":
        return Target(kind="population"), "the population", _several(everyone, reference)
    if reference == "rest":
        return Target(kind="rest"), "the rest", _several(everyone, reference)
    if isinstance(reference, (int, float, np.number)) and not isinstance(reference, bool):
        value = check_number("reference", reference)
        kind = Target(kind="external" if spread else "known", value=value, se=spread)
        return kind, number(value), everyone
    rows.groups.find(reference)
    raise AssertionError  # pragma: no cover  (`find` raises)


def _several(groups: list[int], reference: object) -> list[int]:
    if len(groups) < 2:
        raise InvalidParameterError(
            f"`group` has one group, which cannot be compared with {reference!r}. Pass a number as"
            " `reference`, or rows of other groups too."
        )
    return groups


def _membership(rows: _Rows, compared: list[int]) -> AnyArray:
    return np.eye(len(rows.groups.labels), dtype=np.bool_)[:, compared]


def _disparities(
    rows: _Rows, target: Target, compared: list[int], *, scale: Scale, method: DisparityMethod
) -> Disparities:
    return disparities(
        rows.moments,
        _membership(rows, compared),
        target,
        binary=rows.binary,
        method=method,
        scale=scale,
        units=None if rows.binary else rows.units,
        n=rows.defined,
    )


def _joint(
    rows: _Rows,
    target: Target,
    compared: list[int],
    *,
    method: DisparityMethod,
    found: Disparities,
) -> JointDisparity:
    return joint_test(
        rows.moments,
        _membership(rows, compared),
        target,
        binary=rows.binary,
        method=method,
        units=None if rows.binary else rows.units,
        found=found,
    )
